//! Runs a test in a process of its own: for tests that measure or change what belongs to the whole process, such as its
//! memory, while other tests of the same program run.

use std::any::type_name;
use std::env;
use std::process::Command;

/// The environment variable with the name of the test that this process runs.
const ALONE: &str = "TILEFS_TEST_ALONE";

/// Runs the body of a test in a new process of the same program; must be called by the test itself. What the test prints
/// is printed by this process.
///
/// # Panics
/// If the body panics.
pub fn in_own_process<F: FnOnce()>(body: F) {
    // The type of a closure is named after the function that it is in: `program::module::test::{{closure}}`.
    let test = type_name::<F>().split("::{{closure}}").next().unwrap_or_default();
    let test = test.split_once("::").map_or(test, |(_, within)| within);
    if env::var(ALONE).is_ok_and(|alone| alone == test) {
        return body();
    }
    let mut alone = Command::new(env::current_exe().expect("a test is a program"));
    let output = alone.args(["--exact", test, "--nocapture"]).env(ALONE, test).output().expect("this program starts");
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{printed}");
    eprint!("{errors}");
    assert!(output.status.success(), "{test} failed in a process of its own: {}", output.status);
    assert!(printed.contains("1 passed"), "no test is called {test}");
}
