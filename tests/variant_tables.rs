//! The tables of the variant calls of TileDB-VCF datasets: what pysam reads from the VCF files of the mount is in the
//! columns of their fields, in each layout and format. Damage in a cell is an error that names it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use support::corpora::peers;
use support::skip::{Need, python_with, skipped};
use support::vcf::{bytes, file, names, opened, text};
use tilefs::tree::Folder;

/// The datasets of the fixtures, and their layouts.
const DATASETS: [(&str, &str); 4] = [("v2", "2"), ("v3", "3"), ("v4", "4"), ("extracted", "4")];

fn variants() -> PathBuf {
    tilefs_fixtures::fixtures().join("variants")
}

/// A script of this test.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/variant_tables").join(name)
}

/// Python with pysam, and Python with what reads tables.
fn interpreters() -> Option<(String, String)> {
    let has_pysam = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let import = Command::new(python).args(["-c", "import pysam"]).output();
        import.is_ok_and(|output| output.status.success())
    });
    if has_pysam.is_none() {
        skipped(Need::Programs, "python3 cannot import pysam (package python3-pysam)");
    }
    Some((has_pysam?.to_owned(), python_with("duckdb, numpy, pyarrow")?))
}

/// The output of a program; the test fails if the program does.
fn output(program: &str, arguments: &[&str], what: &str) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The number of records that are the same in the tables of a dataset and in the VCF files of its samples.
fn compared(root: &Arc<dyn Folder>, layout: &str, (pysam, python): &(String, String), what: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for sample in names(root, "vcf").iter().filter(|name| name.ends_with(".vcf")) {
        fs::write(path(sample), bytes(root, &format!("vcf/{sample}"))).unwrap();
    }
    let parts = ["cells.parquet", "part.parquet", "cells.arrow", "cells.tsv"];
    let views =
        ["parquet/cells.parquet", "parquet/parts/000000000000000.parquet", "arrow/cells.arrow", "text/cells.tsv"];
    for (name, view) in parts.iter().zip(views) {
        fs::write(path(name), bytes(root, &format!("data/{view}"))).unwrap();
    }
    let folder = folder.path().to_str().unwrap();
    let records = output(pysam, &[script("read_vcf.py").to_str().unwrap(), folder], what);
    fs::write(path("records.json"), records).unwrap();
    let count = output(python, &[script("compare.py").to_str().unwrap(), folder, layout], what);
    String::from_utf8(count).unwrap().trim().parse().unwrap()
}

#[test]
fn columns_are_the_fields_of_the_records() {
    let Some(interpreters) = interpreters() else { return };
    for (dataset, layout) in DATASETS {
        let root = opened(&variants().join(dataset));
        let count = compared(&root, layout, &interpreters, dataset);
        assert!(count >= 15, "{dataset}: {count}");
    }
}
