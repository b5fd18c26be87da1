//! Counts the instructions of each hot path with callgrind, and compares them with those that were accepted.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use support::counting_allocator::allocations;
use support::repository;
use support::skip::{Need, skipped};

use super::hot_paths::{HotPath, hot_paths};

/// The accepted counts: the compiler, then a line for each path.
const ACCEPTED: &str = "tests/instructions/counts.txt";

/// How many times the accepted counts a path may take.
const MOST: f64 = 1.03;

/// The environment variable that lets [`run_hot_paths`] run.
const COUNTED: &str = "TILEFS_COUNTED";

/// What one run of a path takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    instructions: u64,
    allocations: u64,
}

type Counts = BTreeMap<String, Count>;

#[test]
fn hot_paths_take_no_more_instructions_than_accepted() {
    let Some(compiler) = compiler() else { return };
    let accepted = fs::read_to_string(repository::root().join(ACCEPTED)).unwrap_or_default();
    let is_accepting = env::var("TILEFS_ACCEPT").is_ok_and(|accept| accept == "yes");
    if !is_accepting && accepted.lines().next() != Some(compiler.as_str()) {
        return skipped(Need::Counter, &format!("{ACCEPTED} is not of {compiler}"));
    }
    let Some(counts) = count() else { return };
    if is_accepting {
        fs::write(repository::root().join(ACCEPTED), listed(&compiler, &counts)).expect("the list is written");
        return;
    }
    let accepted = parsed(&accepted);
    let mut grown = String::new();
    for (name, now) in &counts {
        let before = accepted.get(name).unwrap_or_else(|| panic!("{name} is not in {ACCEPTED}"));
        let ratios = [(now.instructions, before.instructions), (now.allocations, before.allocations)]
            .map(|(now, before)| now.max(1) as f64 / before.max(1) as f64);
        println!("{name}: {now:?}, {:.3} and {:.3} times those accepted", ratios[0], ratios[1]);
        if ratios.iter().any(|ratio| *ratio > MOST) {
            writeln!(grown, "{name}: {before:?}, now {now:?}").expect("a text grows");
        }
    }
    assert!(grown.is_empty(), "TILEFS_ACCEPT=yes accepts what takes more:\n{grown}");
    let gone: Vec<_> = accepted.keys().filter(|name| !counts.contains_key(*name)).collect();
    assert!(gone.is_empty(), "no longer there, but in {ACCEPTED}: {gone:?}");
}

/// Runs every path, with a mark before and after. Only a process that is counted does so.
#[test]
fn run_hot_paths() {
    if env::var_os(COUNTED).is_none() {
        return;
    }
    for HotPath { name, mut work } in hot_paths() {
        // What is made only once.
        work();
        mark();
        let before = allocations();
        work();
        let allocations = allocations() - before;
        mark();
        println!("path\t{name}\t{allocations}");
    }
}

/// Where callgrind writes down what it has counted since the last time.
#[inline(never)]
fn mark() {
    black_box(());
}

/// Returns the compiler and the processor, by which counts differ.
fn compiler() -> Option<String> {
    let Ok(output) = Command::new("rustc").arg("-V").output() else {
        skipped(Need::Counter, "there is no rustc");
        return None;
    };
    let version = String::from_utf8_lossy(&output.stdout);
    Some(format!("{} {}{}", version.trim(), env::consts::ARCH, extensions()))
}

/// Returns the extensions of the processor by which libraries choose their code.
#[cfg(target_arch = "x86_64")]
fn extensions() -> String {
    let extensions = [
        ("ssse3", is_x86_feature_detected!("ssse3")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("aes", is_x86_feature_detected!("aes")),
        ("sha", is_x86_feature_detected!("sha")),
    ];
    extensions.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| format!(" {name}")).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn extensions() -> String {
    String::new()
}

/// Counts all paths; `None` if callgrind is missing.
fn count() -> Option<Counts> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    // Without the lines of sources, callgrind starts in a fraction of the time.
    let this = env::current_exe().expect("a test is a program");
    let is_stripped = Command::new("strip").arg("--strip-debug").arg("-o").arg(&program).arg(this).status();
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--dump-before=*counter::mark*"]);
    valgrind.arg(format!("--callgrind-out-file={}", folder.path().join("counts").display()));
    valgrind.arg(&program).args(["--exact", "counter::run_hot_paths", "--nocapture", "--test-threads=1"]);
    let (Ok(_), Ok(output)) = (is_stripped, valgrind.env(COUNTED, "yes").output()) else {
        skipped(Need::Counter, "valgrind or strip is missing (packages valgrind and binutils)");
        return None;
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let paths = printed.lines().filter_map(|line| line.split_once("path\t")).map(|(_, line)| line);
    let count = |(number, line): (usize, &str)| {
        let (name, allocations) = line.split_once('\t').expect("a name and a number");
        // The marks before a path and after it are the last numbers of its two files, which are counted from 1.
        let instructions = total(&folder.path().join(format!("counts.{}", 2 * number + 2)));
        (name.to_owned(), Count { instructions, allocations: allocations.parse().expect("a number") })
    };
    Some(paths.enumerate().map(count).collect())
}

/// Returns the instructions in a file of callgrind.
fn total(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).unwrap_or_else(|| panic!("{}: no totals", file.display()))
}

fn listed(compiler: &str, counts: &Counts) -> String {
    let mut list = format!("{compiler}\nhot path\tinstructions\tallocations\n");
    for (name, Count { instructions, allocations }) in counts {
        writeln!(list, "{name}\t{instructions}\t{allocations}").expect("a text grows");
    }
    list
}

fn parsed(list: &str) -> Counts {
    let parse = |line: &str| {
        let [name, instructions, allocations] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let count = Count { instructions: instructions.parse().ok()?, allocations: allocations.parse().ok()? };
        Some((name.to_owned(), count))
    };
    list.lines().skip(2).map(|line| parse(line).unwrap_or_else(|| panic!("{ACCEPTED}: {line:?}"))).collect()
}
