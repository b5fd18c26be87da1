//! Samples of a dataset of TileDB-VCF merged into one VCF file: random cohorts (`random_cohort.py`), written as
//! datasets in each layout, compared with the output of `bcftools merge`, with and without `-m none`, for the files of the samples.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::paths::{file, names, node};
use support::skip::python_with;
use support::vcf::{bytes, has, opened, printed, text};
use tilefs_tree::{DomainOptions, TreeOptions, VariantLists, open};
use tilefs_vfs::Folder;

/// Number of random cohorts for each layout; `TILEFS_COHORTS` is another.
const COHORTS: u64 = 12;

fn script(name: &str) -> PathBuf {
    support::repository::root().join("tests/fixtures/generators").join(name)
}

fn run(program: &str, arguments: &[&str]) {
    printed(program, arguments);
}

/// Returns the names of a cohort's samples.
pub(super) fn samples(root: &Arc<dyn Folder>) -> Vec<String> {
    text(root, "vcf/samples.txt").lines().map(str::to_owned).collect()
}

/// Writes a file of the mount, compressed and with the index that tabix makes.
fn write_indexed(root: &Arc<dyn Folder>, path: &str, to: &Path) -> String {
    let to = to.to_str().unwrap().to_owned();
    fs::write(&to, bytes(root, path)).unwrap();
    run("bgzip", &["-f", &to]);
    run("tabix", &["-f", "-p", "vcf", &format!("{to}.gz")]);
    format!("{to}.gz")
}

/// Returns the lines of a file as bcftools writes them: the header, and the records by contig.
fn shown(path: &str) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let all = printed("bcftools", &["view", "--no-version", path]);
    let (header, lines): (Vec<&str>, Vec<&str>) = all.lines().partition(|line| line.starts_with('#'));
    let mut records: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let contig = line.split('\t').next().unwrap();
        records.entry(contig.to_owned()).or_default().push(line.to_owned());
    }
    (header.into_iter().map(str::to_owned).collect(), records)
}

/// The folders of merged samples, and the options with which bcftools merges like them.
const FOLDERS: [(&str, &[&str]); 2] = [("merged", &["-m", "none"]), ("multiallelic", &[])];

/// Merges files of samples as bcftools does.
fn merged_by_bcftools(options: &[&str], files: &[String], to: &Path) -> String {
    let to = to.to_str().unwrap().to_owned();
    let mut arguments = vec!["merge", "--no-version", "-o", &to];
    arguments.extend(options);
    arguments.extend(files.iter().map(String::as_str));
    run("bcftools", &arguments);
    to
}

fn check_same(found: &str, wanted: &str, what: &str) -> usize {
    let ((header, records), (wanted_header, wanted)) = (shown(found), shown(wanted));
    assert_eq!(header, wanted_header, "{what}");
    for (contig, wanted) in &wanted {
        let found = records.get(contig).map(Vec::as_slice).unwrap_or_default();
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!(found, wanted, "{what}");
        }
        assert_eq!(found.len(), wanted.len(), "{what} {contig}");
    }
    assert_eq!(records.len(), wanted.len(), "{what}");
    wanted.values().map(Vec::len).sum()
}

/// Writes a random cohort as a dataset.
pub(super) fn dataset(python: &str, folder: &Path, layout: &str, seed: u64) -> Arc<dyn Folder> {
    let cohort = folder.join("cohort");
    let mut arguments =
        vec![script("random_cohort.py").to_str().unwrap().to_owned(), cohort.to_str().unwrap().to_owned()];
    arguments.push(seed.to_string());
    if layout == "2" {
        arguments.extend(["--distinct-cells", "13"].map(str::to_owned));
    }
    run(python, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut inputs: Vec<String> =
        fs::read_dir(&cohort).unwrap().map(|entry| entry.unwrap().path().to_str().unwrap().to_owned()).collect();
    inputs.sort();
    let made = folder.join("dataset");
    let writer = script("variants.py");
    let mut arguments = vec![writer.to_str().unwrap(), made.to_str().unwrap()];
    arguments.extend(inputs.iter().map(String::as_str));
    arguments.extend(["--layout", layout, "--anchor-gap", "13", "--batch", "3"]);
    if !seed.is_multiple_of(2) {
        arguments.extend(["--extract", "fmt_GT,info_DP,fmt_PL"]);
    }
    run(python, &arguments);
    opened(&made)
}

pub(super) fn cohorts() -> u64 {
    std::env::var("TILEFS_COHORTS").ok().and_then(|count| count.parse().ok()).unwrap_or(COHORTS)
}

#[test]
fn random_cohorts_are_merged_as_bcftools_does() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") || !has("tabix") {
        return;
    }
    let (mut records, mut in_regions, mut multiallelic) = (0, 0, 0);
    for seed in 0..cohorts() {
        let layout = ["4", "3", "2"][seed as usize % 3];
        let folder = tempfile::tempdir().unwrap();
        let root = dataset(&python, folder.path(), layout, seed);
        let names = samples(&root);
        let path = |name: &str| folder.path().join(name);
        let files: Vec<String> = names
            .iter()
            .map(|name| write_indexed(&root, &format!("vcf/{name}.vcf"), &path(&format!("{name}.vcf"))))
            .collect();
        // Some samples, in another order.
        let chosen: Vec<usize> =
            (0..names.len()).rev().filter(|number| (seed >> number) & 1 == 0 || *number < 2).collect();
        let list = chosen.iter().map(|&number| names[number].as_str()).collect::<Vec<_>>().join(",");
        let files_of: Vec<String> = chosen.iter().map(|&number| files[number].clone()).collect();
        let own = path("own.vcf");
        for (rule, options) in FOLDERS {
            let what = format!("cohort {seed} in layout {layout}, {rule}");
            fs::write(&own, bytes(&root, &format!("vcf/{rule}/all.vcf"))).unwrap();
            let wanted = merged_by_bcftools(options, &files, &path("wanted.vcf"));
            records += check_same(own.to_str().unwrap(), &wanted, &what);

            fs::write(&own, bytes(&root, &format!("vcf/samples={list}/{rule}/all.vcf"))).unwrap();
            let wanted = merged_by_bcftools(options, &files_of, &path("wanted.vcf"));
            check_same(own.to_str().unwrap(), &wanted, &format!("{what}, samples {list}"));
        }
        multiallelic += usize::from(bytes(&root, "vcf/merged/all.vcf") != bytes(&root, "vcf/multiallelic/all.vcf"));

        for region in
            ["chr10:20-45", "chr2:60-60", "chr1:1-200", "chr10", "chr1:80-,chr10:90-95,chr10:11-40,chr1:20-40,chr10:41"]
        {
            let slice = |name: &String| {
                write_indexed(&root, &format!("vcf/slice/{region}/{name}.vcf"), &path(&format!("slice.{name}.vcf")))
            };
            let slices: Vec<String> = names.iter().map(slice).collect();
            for (rule, options) in FOLDERS {
                let compressed = path("region.vcf.gz");
                fs::write(&compressed, bytes(&root, &format!("vcf/{rule}/{region}.vcf.gz"))).unwrap();
                let wanted = merged_by_bcftools(options, &slices, &path("wanted.vcf"));
                let what = format!("cohort {seed} in layout {layout}, {rule}, region {region}");
                in_regions += check_same(compressed.to_str().unwrap(), &wanted, &what);
            }
        }
    }
    assert!(records > 600 && in_regions > 300, "{records} records, {in_regions} in regions");
    assert!(multiallelic > cohorts() as usize / 2, "{multiallelic} cohorts with multiallelic sites that are joined");
}

/// The BCF files of other cohorts have the contents of their VCF files, also through their indexes.
#[test]
fn random_cohorts_are_the_same_as_bcf() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") {
        return;
    }
    let (mut records, mut in_regions) = (0, 0);
    for seed in 1000..1000 + cohorts() {
        let layout = ["4", "3", "2"][seed as usize % 3];
        let folder = tempfile::tempdir().unwrap();
        let root = dataset(&python, folder.path(), layout, seed);
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let region = ["chr10:20-45", "chr1:80-,chr10:90-95,chr10:11-40,chr1:20-40,chr10:41"][seed as usize % 2];
        let names = samples(&root);
        let mut stems =
            vec!["merged/all".to_owned(), format!("merged/{region}"), format!("slice/{region}/{}", names[0])];
        stems.extend(names);
        for stem in &stems {
            let what = format!("cohort {seed} in layout {layout}, {stem}");
            for ending in [".vcf", ".bcf", ".bcf.csi"] {
                fs::write(path(&format!("own{ending}")), bytes(&root, &format!("vcf/{stem}{ending}"))).unwrap();
            }
            records += check_same(&path("own.bcf"), &path("own.vcf"), &what);
            run("bgzip", &["-f", &path("own.vcf")]);
            run("tabix", &["-f", "-p", "vcf", &path("own.vcf.gz")]);
            for region in ["chr10:20-45", "chr2:60-60", "chr1:80-200"] {
                let found =
                    ["own.bcf", "own.vcf.gz"].map(|name| printed("bcftools", &["view", "-H", &path(name), region]));
                assert_eq!(found[0], found[1], "{what}, region {region}");
                in_regions += found[0].lines().count();
            }
        }
    }
    assert!(records > 500 && in_regions > 100, "{records} records, {in_regions} in regions");
}

#[test]
fn lists_in_files_are_named_in_paths() {
    let folder = tempfile::tempdir().unwrap();
    let list = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let mut lists = VariantLists::default();
    lists.add_samples(&list("both.txt", "NA/1\nB 2\n")).unwrap();
    lists.add_samples(&list("unknown.txt", "C\n")).unwrap();
    lists.add_regions(&list("some.bed", "chr10\t299\t340\nchr1\t99\t102\nchr10\t0\t8\n")).unwrap();
    let dataset = tilefs_fixtures::fixtures().join("variants/v4");
    let root =
        open(&dataset, &TreeOptions { of_domains: DomainOptions::default().with(lists), ..TreeOptions::default() })
            .unwrap();
    assert_eq!(text(&root, "vcf/samples=@both/samples.txt"), "NA/1\nB 2\n");
    let regions = "chr10:300-340,chr1:100-102,chr10:1-8";
    let named = text(&root, "vcf/samples=@both/merged/@some.vcf");
    assert_eq!(named, text(&root, &format!("vcf/samples=NA%2F1,B 2/merged/{regions}.vcf")));
    assert!(named.lines().filter(|line| !line.starts_with('#')).count() > 2);
    assert_eq!(text(&root, "vcf/slice/@some/B 2.vcf"), text(&root, &format!("vcf/slice/{regions}/B 2.vcf")));
    assert_eq!(names(&root, "vcf/slice"), ["@some"]);
    for none in ["vcf/samples=@some", "vcf/slice/@both", "vcf/merged/@none.vcf", "vcf/samples=@unknown"] {
        assert!(node(&root, none).is_none(), "{none}");
    }
}

#[test]
fn a_cell_where_its_record_has_none_is_an_error_that_names_its_fragment() {
    let Some(python) = python_with("tiledb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = dataset(&python, folder.path(), "4", 3);
    assert!(!text(&root, "vcf/merged/all.vcf").is_empty());
    // With a different anchor gap, the anchors of long records are misplaced.
    let made = folder.path().join("dataset/data");
    let code =
        "import numpy, sys, tiledb\nwith tiledb.open(sys.argv[1], 'w') as a: a.meta['anchor_gap'] = numpy.uint32(7)";
    run(&python, &["-c", code, made.to_str().unwrap()]);
    let root = opened(&folder.path().join("dataset"));
    let error = file(&root, "vcf/merged/all.vcf").open().map(|_| ()).unwrap_err();
    let told = error.to_string();
    assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
    for part in ["a cell at", "dataset/data", "fragment __", "file cell ", "field start_pos"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn samples_that_are_not_there_or_named_twice_are_no_folder() {
    let root = opened(&tilefs_fixtures::fixtures().join("variants/v4"));
    assert!(node(&root, "vcf/samples=B 2,NA%2F1").is_some());
    for none in ["vcf/samples=B 2,B 2", "vcf/samples=C", "vcf/samples=B 2,%zz", "vcf/merged/1:0.vcf"] {
        assert!(node(&root, none).is_none(), "{none}");
    }
    assert!(node(&root, "vcf/samples=B 2/NA%2F1.vcf").is_none());
    assert_eq!(text(&root, "vcf/samples=B 2/samples.txt"), "B 2\n");
    assert_eq!(text(&root, "vcf/samples=B 2/B 2.vcf"), text(&root, "vcf/B 2.vcf"));
}
