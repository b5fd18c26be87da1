//! The proofs themselves are tested: each kind of flaw in a file or in its models is found.

mod event;

use shuttle::sync::Arc;
use shuttle::thread;

use tilefs_interleavings::proof::{Model, prove};
use tilefs_interleavings::source;

use event::Event;

/// One thread waits for an event, with `wait`, that another sets, with `set`.
fn model(wait: fn(&Event), set: fn(&Event)) {
    let event = Arc::new(Event::default());
    let other = event.clone();
    let waiting = thread::spawn(move || wait(&other));
    set(&event);
    waiting.join().unwrap();
}

fn right() {
    model(Event::wait, Event::set);
}

fn set_twice() {
    model(Event::wait, Event::set_twice);
}

#[test]
#[should_panic(expected = "silent fails: deadlock!")]
fn a_forgotten_wake_up_is_found() {
    prove(&[], &[Model::under_all("silent", || model(Event::wait, Event::set_silently))]);
}

#[test]
#[should_panic(expected = "impatient fails if woken spuriously: ")]
fn a_wait_without_a_predicate_is_found() {
    prove(&[], &[Model::under_all("impatient", || model(Event::wait_once, Event::set))]);
}

#[test]
#[should_panic(expected = "no model misses the wake-up of tests/interleavings/tests/models/flawed/event.rs:")]
fn a_needless_wake_up_is_found() {
    let models = [Model::under_all("right", right), Model::under_all("set twice", set_twice)];
    prove(&[source!("tests/interleavings/tests/models/flawed/event.rs")], &models);
}

#[test]
#[should_panic(expected = "the wake-ups of tests/interleavings/tests/models/flawed/event.rs")]
fn a_wake_up_that_no_model_reaches_is_found() {
    prove(&[source!("tests/interleavings/tests/models/flawed/event.rs")], &[Model::under_all("right", right)]);
}

#[test]
#[should_panic(expected = "every model must miss some wake-up")]
fn a_model_that_cannot_fail_is_found() {
    prove(&[], &[Model::under_all("right", right)]);
}
