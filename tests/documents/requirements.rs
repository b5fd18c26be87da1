//! Skipped tests are reported in only one way, and are failures if `TILEFS_REQUIRE` requires what is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::repository::{files_below, root, text};
use support::skip::{Need, REQUIRE, skipped};

#[test]
#[ignore = "a part of the other tests"]
fn this_misses_the_peers() {
    skipped(Need::Peers, "it is missing for a test");
}

/// Runs the test above in another process.
fn run(list: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "requirements::this_misses_the_peers"]).env_remove(REQUIRE);
    command.envs(list.map(|list| (REQUIRE, list))).output().unwrap()
}

#[test]
fn what_is_required_and_missing_is_a_failure() {
    for list in [None, Some(""), Some("all,-peers"), Some("fuse,root"), Some("peers,-peers")] {
        let output = run(list);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{list:?}: {said}");
        assert!(
            said.contains("SKIPPED: requirements::this_misses_the_peers: it is missing for a test"),
            "{list:?}: {said}"
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{list:?}");
    }
    for list in ["all", "peers", " fuse , peers", "all,-fuse", "-peers,all", "all,-peesr"] {
        let output = run(Some(list));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains("1 failed") && said.contains(REQUIRE), "{list}: {said}");
    }
}

#[test]
fn every_need_has_one_name() {
    for (number, (need, name)) in Need::ALL.into_iter().enumerate() {
        let requires = |list: &str| need.is_required(list);
        assert!(requires(name) && requires("all") && !requires("") && !requires(&format!("all,-{name}")), "{name}");
        let others = Need::ALL.into_iter().enumerate().filter(|(other, _)| *other != number);
        assert!(others.into_iter().all(|(_, (other, _))| other != need && !other.is_required(name)), "{name}");
    }
}

#[test]
fn the_tests_before_a_change_is_taken_require_all_but_a_few() {
    let run = text(".ci/run");
    let lists = run.lines().filter_map(|line| line.split_once("TILEFS_REQUIRE=")).map(|(_, list)| list);
    let list = lists.map(|list| list.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(list.len(), 1, "{list:?}");
    let missing: Vec<&str> =
        Need::ALL.into_iter().filter(|(need, _)| !need.is_required(list[0])).map(|(_, name)| name).collect();
    assert_eq!(missing, ["fuse-for-all", "fuse-control", "spark", "peers", "packages", "counter"]);
}

#[test]
fn no_test_skips_in_another_way() {
    let tests = root().join("tests");
    let files = files_below(&tests, &["rs", "py"]);
    assert!(files.len() > 50, "{}", files.len());
    let says_so = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("SKIPPED");
    let mut found: Vec<_> =
        files.iter().filter(|path| says_so(path)).map(|path| path.strip_prefix(&tests).unwrap()).collect();
    found.sort();
    // This test itself and packages.rs are exceptions: packages.rs forwards the messages of a script through
    // support/skip.rs.
    assert_eq!(found, ["documents/requirements.rs", "program/packages.rs", "support/skip.rs"].map(Path::new));
}
