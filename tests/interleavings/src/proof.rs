//! Runs models under many schedules, with all wake-ups and with each of them lost.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::sync::{self, WakeUp};

/// Schedules of each kind that a model runs under, unless it runs under all.
const SCHEDULES: usize = 1000;

/// Maximum number of schedules of a model that runs under all.
const MOST_SCHEDULES: usize = 100_000;

/// The steps after which a schedule counts as hung: some thread waits again and again for something that no other
/// thread does.
const MOST_STEPS: usize = 20_000;

/// The seed of all schedules, so that each run of the tests is the same.
const SEED: u64 = 0x7469_6c65_6673;

/// A test of some files under one schedule.
pub struct Model {
    name: &'static str,
    run: fn(),
    schedules: Schedules,
}

/// The schedules that a model runs under.
enum Schedules {
    All,
    /// Random ones, and random ones that change threads only a few times.
    Many,
}

impl Model {
    /// Creates a model that runs under all schedules: of two threads that do little.
    pub fn under_all(name: &'static str, run: fn()) -> Self {
        Model { name, run, schedules: Schedules::All }
    }

    /// Creates a model that runs under many schedules.
    pub fn under_many(name: &'static str, run: fn()) -> Self {
        Model { name, run, schedules: Schedules::Many }
    }
}

/// A file that is modelled.
pub struct Source {
    /// Its path in the repository.
    pub path: &'static str,
    pub text: &'static str,
}

/// Names a file that is modelled by its path in the repository.
#[macro_export]
macro_rules! source {
    ($path:literal) => {
        $crate::proof::Source { path: $path, text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path)) }
    };
}

/// Proves, as far as models can, that no file waits for ever, and that the models would notice if it did:
///
/// * every model passes under every schedule that is tried, also if threads wake spuriously;
/// * the models reach all calls in the files that wake threads;
/// * for every such call there is a model that fails, because threads wait for ever, if its wake-ups are lost;
/// * every model fails for some call.
///
/// # Panics
/// If one of these does not hold.
pub fn prove(sources: &[Source], models: &[Model]) {
    sync::take_seen();
    let mut seen = BTreeSet::new();
    for model in models {
        explore(model, None).unwrap_or_else(|why| panic!("{} fails: {why}", model.name));
        explore_spurious(model).unwrap_or_else(|why| panic!("{} fails if woken spuriously: {why}", model.name));
        seen.extend(sync::take_seen());
    }
    let mut useful = BTreeSet::new();
    for source in sources {
        let reached: BTreeMap<u32, WakeUp> =
            seen.iter().filter(|(file, ..)| file.ends_with(source.path)).map(|&wake_up| (wake_up.1, wake_up)).collect();
        let written = wake_ups(source.text);
        assert_eq!(reached.keys().copied().collect::<Vec<_>>(), written, "the wake-ups of {}", source.path);
        for (line, wake_up) in reached {
            let fails = |model: &&Model| match explore(model, Some(wake_up)) {
                Ok(()) => false,
                Err(why) if why.starts_with("deadlock!") || why.starts_with("exceeded max_steps") => true,
                Err(why) => panic!("{} fails otherwise without {}:{line}: {why}", model.name, source.path),
            };
            let failing: Vec<_> = models.iter().filter(fails).map(|model| model.name).collect();
            assert!(!failing.is_empty(), "no model misses the wake-up of {}:{line}", source.path);
            println!("without the wake-up of {}:{line} these hang: {failing:?}", source.path);
            useful.extend(failing);
        }
    }
    let names: BTreeSet<_> = models.iter().map(|model| model.name).collect();
    assert_eq!(useful, names, "every model must miss some wake-up");
}

/// Runs a model of threads that do not wait for each other, under many schedules.
///
/// # Panics
/// If the model fails.
pub fn check(run: fn()) {
    explore(&Model::under_many("", run), None).unwrap_or_else(|why| panic!("{why}"));
}

/// Runs a model. Returns why it fails.
fn explore(model: &Model, lost: Option<WakeUp>) -> Result<(), String> {
    let run = model.run;
    let execution = move || {
        sync::begin(lost);
        run();
    };
    match model.schedules {
        Schedules::Many => explore_many(execution),
        Schedules::All => {
            let count = under(DfsScheduler::new(Some(MOST_SCHEDULES), false), execution)?;
            if count < MOST_SCHEDULES { Ok(()) } else { Err(format!("more than {MOST_SCHEDULES} schedules")) }
        }
    }
}

/// Runs a model whose threads also wake without a reason.
fn explore_spurious(model: &Model) -> Result<(), String> {
    let run = model.run;
    explore_many(move || {
        sync::begin(None);
        drop(shuttle::future::spawn(async { (0..8).for_each(|_| sync::wake_spuriously()) }));
        run();
    })
}

fn explore_many(execution: impl Fn() + Clone + Send + Sync + 'static) -> Result<(), String> {
    under(RandomScheduler::new_from_seed(SEED, SCHEDULES), execution.clone())?;
    under(PctScheduler::new_from_seed(SEED, 3, SCHEDULES), execution).map(drop)
}

/// Runs an execution under the schedules of a scheduler. Returns their number, or why one fails.
fn under(scheduler: impl Scheduler + 'static, execution: impl Fn() + Send + Sync + 'static) -> Result<usize, String> {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let outcome = catch_unwind(AssertUnwindSafe(|| Runner::new(scheduler, config).run(execution)));
    outcome.map_err(|panic| reason(&*panic))
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

/// Returns the lines of a file that wake threads: calls of condition variables, and of functions with
/// `#[track_caller]`. Tests are at the end of a file.
fn wake_ups(text: &str) -> Vec<u32> {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    // Functions that only wake other threads: the places are their calls, not their bodies.
    let passing: Vec<&str> = program
        .split("#[track_caller]")
        .skip(1)
        .filter_map(|rest| rest.split_once("fn ")?.1.split_once('('))
        .map(|(name, _)| name)
        .collect();
    let mut lines = Vec::new();
    let mut is_passing = false;
    for (number, line) in (1..).zip(program.lines()) {
        if line == "    }" {
            is_passing = false;
        } else if line.trim() == "#[track_caller]" {
            is_passing = true;
        }
        let calls = passing.iter().any(|name| line.contains(&format!(".{name}(")));
        if !is_passing && (line.contains(".notify_one()") || line.contains(".notify_all()") || calls) {
            lines.push(number);
        }
    }
    lines
}
