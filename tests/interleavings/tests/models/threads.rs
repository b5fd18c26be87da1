//! Models of the thread team, of lent work, and of locks for long work.

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Barrier};
use shuttle::thread;

use tilefs_interleavings as threads;
use tilefs_interleavings::proof::{Model, prove};
use tilefs_interleavings::source;
use tilefs_interleavings::team::Team;

/// Creates a team of helpers that wait forever, as those of the program do.
fn team(helpers: usize) -> &'static Team {
    let team: &'static Team = Box::leak(Box::new(Team::new()));
    threads::endless(|| (0..helpers).for_each(|_| team.grow().unwrap()));
    team
}

/// Lends work that ends only if `threads` threads run it at once. After that no thread may be inside.
fn all_join(team: &Team, threads: usize) {
    // Counting needs no scheduling point of its own: other threads run at the barrier.
    let (all_here, inside) = (Barrier::new(threads), std::sync::atomic::AtomicUsize::new(0));
    team.share(threads - 1, &|| {
        inside.fetch_add(1, Ordering::SeqCst);
        all_here.wait();
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    assert_eq!(inside.load(Ordering::SeqCst), 0, "a helper is still inside");
}

fn an_idle_helper_joins() {
    all_join(team(1), 2);
}

/// The caller wakes one helper, which wakes the next.
fn all_idle_helpers_join() {
    all_join(team(2), 3);
}

fn a_helper_joins_again() {
    let team = team(1);
    all_join(team, 2);
    all_join(team, 2);
}

/// Two callers share one helper: whichever work it joins, both end.
fn two_callers_share_a_helper() {
    let team = team(1);
    let done = Arc::new(AtomicUsize::new(0));
    let share = |done: Arc<AtomicUsize>| {
        let left = AtomicUsize::new(2);
        let take = |left: usize| left.checked_sub(1);
        team.share(1, &|| {
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
    };
    let other = done.clone();
    let second = thread::spawn(move || share(other));
    share(done.clone());
    second.join().unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 4);
}

#[test]
fn the_team_loses_no_wake_up() {
    prove(
        &[source!("crates/threads/src/team.rs"), source!("crates/threads/src/lent_work.rs")],
        &[
            Model::under_all("an idle helper joins", an_idle_helper_joins),
            Model::under_many("all idle helpers join", all_idle_helpers_join),
            Model::under_many("a helper joins again", a_helper_joins_again),
            Model::under_many("two callers share a helper", two_callers_share_a_helper),
        ],
    );
}
