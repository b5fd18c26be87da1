//! What the tree shows is what libtiledb reads: for the fixtures, and for the larger collections of arrays where they
//! are there.
//!
//! `TILEFS_CORPUS` says where the larger collections are (default: `../shared/corpus` or `../../shared/corpus` beside
//! this checkout). `TILEFS_CASE=text` checks only objects with that text in their path, and shows every failure.

mod support;

use std::env;
use std::path::{Path, PathBuf};

use support::check::check;
use support::manifest::{Expected, Object, load};
use support::parallel;
use support::report::Report;

#[test]
fn fixtures_read_as_libtiledb_reads_them() {
    prove("fixtures", load(&home().join("tests/fixtures/manifest.json"), ""));
}

#[test]
fn corpus_reads_as_libtiledb_reads_it() {
    let Some(corpus) = corpus() else {
        println!("SKIPPED: there is no corpus; TILEFS_CORPUS says where it is");
        return;
    };
    prove("corpus", load(&corpus.join("manifest.json"), ""));
}

#[test]
fn real_data_read_as_libtiledb_reads_them() {
    let Some(corpus) = corpus() else {
        println!("SKIPPED: there is no corpus; TILEFS_CORPUS says where it is");
        return;
    };
    prove("real data", load(&corpus.join("manifest_real.json"), ""));
}

#[test]
fn a_wrong_expectation_is_a_failure() {
    let mut objects = load(&home().join("tests/fixtures/manifest.json"), "");
    let demo = objects.iter_mut().find(|object| object.name == "demo").expect("the demo is among the fixtures");
    assert_eq!(check(demo).failures(), 0);
    let fields = demo.reads[0].fields.as_mut().expect("the full read has fields");
    fields[0].values = Expected::Sha256("00".repeat(32));
    assert_eq!(check(demo).failures(), 1, "other values");
    demo.reads[0].cells += 1;
    assert_eq!(check(demo).failures(), 2, "another number of cells");
    demo.place.push("nothing");
    assert_eq!(check(demo).failures(), 1, "no array");
}

fn prove(title: &str, mut objects: Vec<Object>) {
    let case = env::var("TILEFS_CASE").ok();
    if let Some(case) = &case {
        objects.retain(|object| object.name.contains(case.as_str()));
        objects.iter().for_each(|object| println!("{title}: {}", object.place.display()));
    }
    let mut report = parallel::map(&objects, check).into_iter().fold(Report::default(), Report::add);
    report.print(&format!("{title}: {} objects", objects.len()), case.is_some());
    assert!(report.failures() == 0, "{title}: {} failures", report.failures());
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the corpus, if there is one.
fn corpus() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("TILEFS_CORPUS") {
        return Some(folder.into());
    }
    let beside = ["../shared/corpus", "../../shared/corpus"].map(|path| home().join(path));
    beside
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .find(|folder| folder.join("manifest.json").exists())
}
