//! The tables of the variant calls of TileDB-VCF datasets: the columns of fields have what pysam reads from the VCF
//! files of the mount, in each layout and format. Damage in a cell is an error that names the cell.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use support::corpora::peers;
use support::paths::{file, names};
use support::skip::{Need, python_with, skipped};
use support::vcf::{bytes, has, opened, printed, text};
use tilefs_vfs::Folder;

/// The datasets of the fixtures, and their layouts.
const DATASETS: [(&str, &str); 4] = [("v2", "2"), ("v3", "3"), ("v4", "4"), ("extracted", "4")];

fn variants() -> PathBuf {
    tilefs_fixtures::fixtures().join("variants")
}

/// Returns a script of this test.
fn script(name: &str) -> PathBuf {
    support::repository::root().join("tests/tree/variants").join(name)
}

/// Returns a Python with pysam, and a Python with packages that read tables.
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

/// Returns the output of a program; the test fails if the program fails.
fn output(program: &str, arguments: &[&str], what: &str) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Compares the tables of a dataset with the VCF files of its samples; returns the number of records.
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

/// Runs make_datasets.py; returns the folder with its datasets.
fn made() -> Option<(tempfile::TempDir, String)> {
    let python = python_with("tiledb, numpy, pyarrow")?;
    let folder = tempfile::tempdir().unwrap();
    output(&python, &[script("make_datasets.py").to_str().unwrap(), folder.path().to_str().unwrap()], "datasets");
    Some((folder, python))
}

/// Two headers that define fields and filters differently, records with fields that none of them defines, and a field
/// with the name of a column.
#[test]
fn headers_that_differ_share_a_table() {
    let Some((folder, _)) = made() else { return };
    let root = opened(&folder.path().join("types"));
    let names = "contig start_pos sample real_start_pos end_pos qual alleles id filter_ids filters info_A info_B info_C \
                 info_other fmt_GT fmt_GT_phased_ fmt_phased fmt_GT_phased fmt_other";
    let rows = [
        "1|9|a|9|9|5.0|A,C|.|1 1|low|1|0.5|1,2|NEW=x|0/1|true|3||",
        "1|9|b|9|9|6.0|A,C,G|.|2 3 0|low;PASS|0.25,2|1,2|||1:2|false||t|",
        "1|19|a|19|19||A|rs1|0|||||NEW=y;OTHER|.:1|false|||MORE=7",
        "1|29|b|29|29||A,C|.|1 0|PASS||||C=4|1||||",
    ];
    let row = |row: &str| row.replace('|', "\t").replace("0/1", "0|1").replace("1:2", "1/2").replace(".:1", "./1");
    let wanted =
        [names.replace(' ', "\t")].into_iter().chain(rows.map(row)).map(|line| line + "\n").collect::<String>();
    assert_eq!(text(&root, "data/by-row/text/cells.tsv"), wanted);
    // A slice has the same columns, and raw files the stored bytes.
    let slice = text(&root, "data/slice/1,19..29/text/cells.tsv");
    assert_eq!(
        slice.lines().collect::<Vec<_>>(),
        wanted.lines().take(1).chain(wanted.lines().skip(3)).collect::<Vec<_>>()
    );
    assert!(bytes(&root, "data/alleles.bytes").starts_with(b"A,C\0A\0A,C,G\0"));
    assert!(bytes(&root, "data/info.u8").starts_with(b"\x04\0\0\0A\0\x01\0\0\0"));
    assert!(text(&root, "README.txt").contains("list_contains(fmt_GT, 1)"));
    assert!(text(&root, "data/README.txt").contains("info_NAME"));
}

#[test]
fn malformed_values_are_errors_that_name_their_cell() {
    let Some((folder, _)) = made() else { return };
    let broken = [
        ("count", "info"),
        ("length", "info"),
        ("kind", "info"),
        ("twice", "info"),
        ("allele", "fmt"),
        ("filter", "filter_ids"),
        ("alleles", "alleles"),
    ];
    for (name, attribute) in broken {
        let root = opened(&folder.path().join(format!("broken_{name}")));
        for view in ["text/cells.tsv", "arrow/cells.arrow", "parquet/parts/000000000000000.parquet"] {
            let read = file(&root, &format!("data/{view}")).open().and_then(|content| {
                let mut all = vec![0; content.len() as usize];
                content.read_at(0, &mut all)
            });
            let error = read.unwrap_err();
            assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO, "{name} {view}");
            let told = error.to_string();
            let place = format!("{attribute} of cell 1");
            assert!(told.contains(&place) && told.contains("fragment __1_1_"), "{name} {view}: {told}");
        }
        // The stored bytes can be read all the same.
        assert!(!bytes(&root, "data/info.u8").is_empty());
        let sound = text(&root, "data/slice/1,49/text/cells.tsv");
        assert!(sound.lines().count() == 2 && sound.contains("1/1"), "{name}: {sound}");
    }
}

#[test]
fn statistics_of_alleles_are_text() {
    let Some((folder, python)) = made() else { return };
    let root = opened(&folder.path().join("statistics"));
    assert_eq!(
        text(&root, "variant_stats/text/cells.tsv"),
        "contig\tpos\tallele\tac\tn_hom\n1\t9\tA,C\t3\t3\n1\t9\tref\t-1\t-1\n"
    );
    let program = "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); \
                   print([str(c.type) for c in t.columns], t.to_pylist()[0])";
    let path = folder.path().join("statistics.parquet");
    for (array, wanted) in [
        ("variant_stats", "'allele': 'A,C', 'ac': 3, 'n_hom': 3}"),
        ("allele_count", "'ref': 'A,C', 'alt': 'A,C', 'filter': 'A,C', 'gt': 'A,C', 'count': 3}"),
    ] {
        fs::write(&path, bytes(&root, &format!("{array}/parquet/cells.parquet"))).unwrap();
        let printed = String::from_utf8(output(&python, &["-c", program, path.to_str().unwrap()], array)).unwrap();
        assert!(printed.contains(wanted) && !printed.contains("binary"), "{printed}");
    }
}

/// The command of README.txt computes the frequencies that the genotypes of the records have.
#[test]
fn frequencies_of_alleles_are_those_of_the_genotypes() {
    let Some(peers) = peers() else { return };
    let Some(python) = python_with("duckdb") else { return };
    if !has("bcftools") {
        return;
    }
    let root = opened(&peers.join("tiledb-vcf/old_format"));
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("merged.vcf");
    fs::write(&merged, bytes(&root, "vcf/merged/all.vcf")).unwrap();
    let lines =
        printed("bcftools", &["query", "-f", "%CHROM\\t%POS0\\t%REF\\t%ALT[\\t%GT]\\n", merged.to_str().unwrap()]);
    let mut wanted: Vec<String> = Vec::new();
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let genotypes: Vec<usize> = columns[4..]
            .iter()
            .flat_map(|one| one.split(['/', '|']))
            .filter_map(|allele| allele.parse().ok())
            .collect();
        for (number, other) in columns[3].split(',').enumerate() {
            let count = genotypes.iter().filter(|&&allele| allele == number + 1).count();
            if count > 0 {
                let frequency = count as f64 / genotypes.len() as f64;
                wanted.push(format!("{} {} {},{other} {frequency:?}", columns[0], columns[1], columns[2]));
            }
        }
    }
    let readme = text(&root, "README.txt");
    let command = readme.lines().find(|line| line.contains("sum(ac)")).unwrap();
    let query = command.trim().strip_prefix("duckdb -c \"").unwrap().strip_suffix('"').unwrap();
    let stored = folder.path().join("stored.parquet");
    fs::write(&stored, bytes(&root, "variant_stats/parquet/cells.parquet")).unwrap();
    let query = query.replace("variant_stats/parquet/parts/*.parquet", stored.to_str().unwrap());
    let program = "import sys, duckdb\nfor row in duckdb.sql(sys.argv[1]).fetchall(): print(*row)";
    let found = String::from_utf8(output(&python, &["-c", program, &query], "frequencies")).unwrap();
    let mut found: Vec<&str> = found.lines().filter(|line| !line.contains(" ref ")).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    assert!(found.len() > 5 && found.iter().any(|line| line.ends_with(" 0.5")), "{found:?}");
}

/// Checks the datasets of TileDB-VCF's own tests, and those that `variants.py` makes from its files.
#[test]
fn tables_of_tiledb_vcf_have_the_fields_of_the_records() {
    let Some(peers) = peers() else { return };
    let Some(interpreters) = interpreters() else { return };
    let Some(python) = python_with("tiledb") else { return };
    let mut count = 0;
    let datasets =
        [("v2_ingested_2samples", "2"), ("v3_ingested_2samples", "3"), ("v4_ingested_2samples_GT_DP_PL", "4")];
    for (dataset, layout) in datasets {
        count += compared(&opened(&peers.join("tiledb-vcf").join(dataset)), layout, &interpreters, dataset);
    }
    let folder = tempfile::tempdir().unwrap();
    let variants = support::repository::root().join("tests/fixtures/generators/variants.py");
    for input in fs::read_dir(peers.join("tiledb-vcf-inputs")).unwrap() {
        let input = input.unwrap().path();
        let Some(path) = input.to_str().filter(|path| path.ends_with(".vcf")) else { continue };
        let name = input.file_name().unwrap().to_str().unwrap();
        for layout in ["4", "3", "2"] {
            let dataset = folder.path().join(format!("{name}.{layout}"));
            let arguments = [variants.to_str().unwrap(), dataset.to_str().unwrap(), path];
            let arguments = [&arguments[..], &["--layout", layout, "--anchor-gap", "50"]].concat();
            // Skip files that the script cannot convert: it supports only one sample, and other tests check which files
            // a layout cannot have.
            if Command::new(&python).args(&arguments).output().unwrap().status.success() {
                count += compared(&opened(&dataset), layout, &interpreters, &format!("{name} in layout {layout}"));
            }
        }
    }
    assert!(count > 100, "{count}");
}
