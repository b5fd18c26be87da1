//! The tree shows what libtiledb reads: for the fixtures, the corpus, and the arrays of other projects if they are
//! present.
//!
//! `TILEFS_PYTHON` is a Python with the tiledb package, for comparing arrays without recorded reads; the default is
//! that of `.venv`, which `scripts/test.sh` makes. `TILEFS_CORPUS` names another corpus and `TILEFS_PEERS` the arrays
//! of other projects. `TILEFS_CASE=text` checks only objects with that text in their path, and shows every failure.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::check::check;
use support::corpora::{corpus, peers};
use support::manifest::{Expected, Object, add_row_orders, load};
use support::parallel;
use support::promise;
use support::report::Report;
use support::repository::root;
use support::shown::file;
use support::skip::{Need, skipped};

#[test]
fn fixtures_read_as_libtiledb_reads_them() {
    let mut objects = load(&tilefs_fixtures::fixtures().join("manifest.json"), "");
    objects.extend(load(&tilefs_fixtures::fixtures().join("bitsort/manifest.json"), "bitsort/"));
    objects.extend(load(&tilefs_fixtures::fixtures().join("filtered/manifest.json"), "filtered/"));
    prove("fixtures", objects);
}

#[test]
fn corpus_reads_as_libtiledb_reads_it() {
    prove("corpus", with_row_orders(load(&corpus().join("manifest.json"), "")));
}

#[test]
fn real_data_read_as_libtiledb_reads_them() {
    prove("real data", with_row_orders(load(&corpus().join("manifest_real.json"), "")));
}

#[test]
fn arrays_of_other_projects_read_as_libtiledb_reads_them() {
    let Some(peers) = peers() else { return };
    let Some(python) = python_with_tiledb() else {
        skipped(
            Need::Python,
            "no Python with the tiledb package (TILEFS_PYTHON): arrays of other projects are opened, not compared",
        );
        return open_all(&peers);
    };
    let out = tempfile::tempdir().expect("a temporary folder");
    let script = root().join("tests/fixtures/generators/record_expected.py");
    let status = Command::new(python).arg(script).arg(&peers).arg(out.path()).status().expect("Python runs");
    assert!(status.success(), "record_expected.py failed");
    prove("arrays of other projects", load(&out.path().join("manifest.json"), "peers/"));
}

#[test]
fn a_wrong_expectation_is_a_failure() {
    let mut objects = load(&tilefs_fixtures::fixtures().join("manifest.json"), "");
    let demo = objects.iter_mut().find(|object| object.name == "demo").expect("the demo is among the fixtures");
    assert_eq!(check(demo).failures(), 0);
    let fields = demo.reads[0].fields.as_mut().expect("the full read has fields");
    fields[0].values = Expected::Sha256("00".repeat(32));
    assert_eq!(check(demo).failures(), 1, "other values");
    demo.reads[0].cells += 1;
    assert_eq!(check(demo).failures(), 2, "another number of cells");
    demo.place.push("nothing");
    assert_eq!(check(demo).failures(), 1, "no array");
    let rows = objects.iter_mut().find(|object| object.name == "arrays/sparse/dups").expect("it is among the fixtures");
    assert_eq!(check(rows).failures(), 0);
    rows.reads[0].row_order_digest = Some("00".repeat(8));
    assert_eq!(check(rows).failures(), 1, "another order of rows");
}

#[test]
fn what_is_not_looked_at_is_a_failure() {
    let objects = load(&tilefs_fixtures::fixtures().join("manifest.json"), "");
    let mut looked_at: Vec<Object> = load(&tilefs_fixtures::fixtures().join("manifest.json"), "");
    looked_at.retain(|object| ["demo", "arrays/sparse/dups", "arrays/groups/experiment"].contains(&&*object.name));
    let report = looked_at.iter().map(check).fold(Report::default(), Report::joined_with);
    assert_eq!(report.failures(), 0);
    assert_eq!(promise::missing(&looked_at, &report), [""; 0]);
    let all_kinds = promise::missing(&objects, &report);
    for kind in ["objects", "dense arrays", "sparse slices", "metadata", "enumerations", "row orders"] {
        assert!(all_kinds.iter().any(|line| line.contains(&format!(" {kind} are promised"))), "{kind}: {all_kinds:?}");
    }
    let nothing = std::panic::catch_unwind(|| prove("nothing", Vec::new()));
    assert!(nothing.is_err(), "no objects at all");
}

#[test]
fn fragments_have_as_many_bytes_as_their_footers_say() {
    let objects = load(&tilefs_fixtures::fixtures().join("manifest.json"), "");
    let mut compared = 0;
    for object in objects.iter().filter(|object| !object.is_group && object.key.is_none()) {
        let mounted = tilefs_tree::open(&object.place, &tilefs_tree::TreeOptions::default());
        let mounted = mounted.unwrap_or_else(|error| panic!("{}: {error}", object.name));
        let table = file(&*mounted, "fragments", ".tsv").expect("every array has this file");
        for line in String::from_utf8(table).expect("text").lines().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let (bytes, name) = (columns[6], columns[9]);
            let inner = [object.place.join("__fragments").join(name), object.place.join(name)];
            let folder = inner.iter().find(|folder| folder.is_dir()).expect("the fragment is there");
            let files = fs::read_dir(folder).expect("a folder is listed").map(|file| file.expect("a file"));
            let of_tiles = files.filter(|file| !file.file_name().to_string_lossy().starts_with("__fragment_metadata"));
            let stored: u64 = of_tiles.map(|file| file.metadata().expect("a file").len()).sum();
            assert_eq!(bytes, stored.to_string(), "{}: {name}", object.name);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} fragments were compared");
}

fn prove(title: &str, mut objects: Vec<Object>) {
    assert!(!objects.is_empty(), "{title}: the manifest has no objects");
    let case = env::var("TILEFS_CASE").ok();
    if let Some(case) = &case {
        objects.retain(|object| object.name.contains(case.as_str()));
        objects.iter().for_each(|object| println!("{title}: {}", object.place.display()));
    }
    let mut report = parallel::map(&objects, check).into_iter().fold(Report::default(), Report::joined_with);
    report.print(&format!("{title}: {} objects", objects.len()), case.is_some());
    assert!(report.failures() == 0, "{title}: {} failures", report.failures());
    let missing = promise::missing(&objects, &report);
    assert!(missing.is_empty(), "{title}: {}", missing.join("; "));
}

/// Adds the orders in which libtiledb returns rows. The fixtures have them, not the corpus.
fn with_row_orders(mut objects: Vec<Object>) -> Vec<Object> {
    let recorded = fs::read(tilefs_fixtures::fixtures().join("corpus_reads.json")).expect("a file of the fixtures");
    let recorded: serde_json::Value = serde_json::from_slice(&recorded).expect("JSON");
    assert!(add_row_orders(&mut objects, &recorded["row_orders"]) > 0, "no row order is known");
    objects
}

/// Checks that everything that looks like an array or a group opens, or fails with a reason.
fn open_all(folder: &Path) {
    let (mut opened, mut refused) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a folder is listed");
        let names: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder is listed").path()).collect();
        let is = |name: &str| names.iter().any(|path| path.ends_with(name));
        if ["__schema", "__array_schema.tdb", "__group", "__tiledb_group.tdb"].into_iter().any(is) {
            match tilefs_tree::open(&folder, &tilefs_tree::TreeOptions::default()) {
                Ok(_) => opened += 1,
                Err(error) => {
                    println!("  {error}");
                    refused += 1;
                }
            }
        }
        let inner = |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("__"));
        folders.extend(names.into_iter().filter(|path| path.is_dir() && inner(path)));
    }
    println!("{opened} arrays and groups open, {refused} are refused");
    assert!(opened > 0);
}

/// Returns a Python with libtiledb: `TILEFS_PYTHON`, or that of the tests or of the benchmarks.
fn python_with_tiledb() -> Option<PathBuf> {
    let given = env::var_os("TILEFS_PYTHON").map(PathBuf::from);
    let ours = [".venv/bin/python", "target/bench/venv/bin/python"].map(|path| root().join(path));
    let candidates = given.into_iter().chain(ours).chain(["python3".into()]);
    let has_tiledb = |python: &PathBuf| {
        let quiet = Command::new(python).args(["-c", "import tiledb, numpy"]).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(has_tiledb)
}
