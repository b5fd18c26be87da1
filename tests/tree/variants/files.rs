//! Datasets of TileDB-VCF as VCF files: those of the fixtures, and those of TileDB-VCF's own tests (`TILEFS_PEERS`, see
//! tests/support/corpora.rs) compared with their source files, as bcftools reads both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::corpora::peers;
use support::paths::{file, names, node};
use support::skip::python_with;
use support::vcf::{bytes, has, opened, printed, text};
use tilefs_base::statistics::Value;
use tilefs_tree::{MountedTree, TreeOptions, open_stored};
use tilefs_vfs::{Node, ServedTree};

/// The datasets of the fixtures.
const DATASETS: [&str; 4] = ["v2", "v3", "v4", "extracted"];

fn variants() -> PathBuf {
    tilefs_fixtures::fixtures().join("variants")
}

/// Returns the expected files of a dataset, by the names of samples in paths.
fn expected(dataset: &str) -> Vec<(String, String)> {
    let folder = fs::read_dir(variants().join("expected").join(dataset)).unwrap();
    let mut all: Vec<_> = folder
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    assert!(all.len() > 1);
    all
}

#[test]
fn each_sample_is_a_vcf_file() {
    for dataset in DATASETS {
        let root = opened(&variants().join(dataset));
        let mut listed = BTreeSet::from(["samples.txt".to_owned()]);
        for (sample, wanted) in expected(dataset) {
            assert_eq!(text(&root, &format!("vcf/{sample}.vcf")), wanted, "{dataset} {sample}");
            listed.extend([".vcf", ".vcf.gz"].map(|ending| format!("{sample}{ending}")));
        }
        assert_eq!(names(&root, "vcf").into_iter().collect::<BTreeSet<_>>(), listed, "{dataset}");
        let samples = text(&root, "vcf/samples.txt");
        assert_eq!(samples, if dataset == "v2" || dataset == "v3" { "B 2\nNA/1\n" } else { "\nB 2\nNA/1\n" });
        for none in ["vcf/B%202.vcf", "vcf/NA.vcf", "vcf/.vcf", "vcf/B 2", "vcf/B 2.bcf.gz", "vcf/slice/chr1:0/B 2.vcf"]
        {
            assert!(node(&root, none).is_none(), "{dataset} {none}");
        }
    }
}

/// Returns the contig, and the first and the last position of the record on a line.
fn extent(line: &str) -> (&str, u32, u32) {
    let fields: Vec<&str> = line.split('\t').collect();
    let start: u32 = fields[1].parse().unwrap();
    let end = fields[7].split(';').find_map(|field| field.strip_prefix("END=")).map(|end| end.parse().unwrap());
    (fields[0], start, end.unwrap_or(start + fields[3].len() as u32 - 1))
}

#[test]
fn a_region_has_the_records_that_overlap_it() {
    let regions = [
        ("chr10", 1, u32::MAX),
        ("chr10", 6, 7),
        ("chr10", 8, 8),
        ("chr10", 300, 340),
        ("chr10", 341, 341),
        ("chr10", 440, 600),
        ("chr10", 1240, 1300),
        ("chr10", 1241, 1299),
        ("chr2", 1, 20),
        ("chr1", 100, 102),
        ("chr1", 103, 248_956_421),
        ("chr1", 248_956_422, 300_000_000),
        ("HLA:01:01", 100, 100),
        ("chrUn", 1, 99),
        ("none", 1, 2),
    ];
    let mut found = 0;
    for dataset in DATASETS {
        let root = opened(&variants().join(dataset));
        for (sample, whole) in expected(dataset) {
            for (contig, low, high) in regions {
                let is_wanted = |line: &&str| {
                    line.starts_with('#') || {
                        let (of, start, end) = extent(line);
                        of == contig && start <= high && end >= low
                    }
                };
                let wanted: String = whole.lines().filter(is_wanted).flat_map(|line| [line, "\n"]).collect();
                found += wanted.lines().filter(|line| !line.starts_with('#')).count();
                let region =
                    format!("{contig}:{low}-{}", if high == u32::MAX { String::new() } else { high.to_string() });
                let shown = text(&root, &format!("vcf/slice/{region}/{sample}.vcf"));
                assert_eq!(shown, wanted, "{dataset} {sample} {region}");
            }
            // Several regions have each record once, even if it overlaps two of them.
            let some =
                [("chr10", 440, 600), ("chr1", 103, 900), ("chr10", 300, 345), ("chr10", 1241, 1299), ("chr2", 1, 20)];
            let overlaps = |line: &str| {
                let (of, start, end) = extent(line);
                some.iter().any(|&(contig, low, high)| of == contig && start <= high && end >= low)
            };
            let wanted = whole.lines().filter(|line| line.starts_with('#') || overlaps(line));
            let wanted: String = wanted.flat_map(|line| [line, "\n"]).collect();
            let list = some.map(|(contig, low, high)| format!("{contig}:{low}-{high}")).join(",");
            assert_eq!(text(&root, &format!("vcf/slice/{list}/{sample}.vcf")), wanted, "{dataset} {sample} {list}");
            let of_contig = text(&root, &format!("vcf/slice/chr10/{sample}.vcf"));
            assert_eq!(of_contig, text(&root, &format!("vcf/slice/chr10:1-/{sample}.vcf")));
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn damage_is_an_error_of_the_sample_that_it_is_in() {
    let copy = tempfile::tempdir().unwrap();
    let dataset = copy.path().join("v4");
    support::stored::copy_folder(&variants().join("v4"), &dataset);
    // The second file has the fragments of B 2.
    let fragments: Vec<PathBuf> =
        fs::read_dir(dataset.join("data/__fragments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of_second = fragments.iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("__3_3_"));
    let info = of_second.unwrap().join("a6_var.tdb");
    let mut bytes = fs::read(&info).unwrap();
    *bytes.last_mut().unwrap() ^= 0xff;
    fs::write(&info, bytes).unwrap();
    let root = opened(&dataset);
    let error = file(&root, "vcf/B 2.vcf").open().map(|_| ()).unwrap_err();
    assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
    let told = error.to_string();
    assert!(told.contains("v4/data") && told.contains("__3_3_") && told.contains("a6_var.tdb"), "{told}");
    let mut forward = file(&root, "vcf/B 2.vcf").forward().unwrap().unwrap();
    let (mut part, mut result) = (Vec::new(), Ok(true));
    while let Ok(true) = result {
        result = forward.next(&mut part);
    }
    assert!(result.is_err());
    let sound = expected("v4").into_iter().find(|(sample, _)| sample == "NA%2F1").unwrap();
    assert_eq!(text(&root, "vcf/NA%2F1.vcf"), sound.1);
}

#[test]
fn a_dataset_whose_layout_is_not_known_says_so() {
    let copy = tempfile::tempdir().unwrap();
    let dataset = copy.path().join("v4");
    support::stored::copy_folder(&variants().join("v4"), &dataset);
    fs::remove_dir_all(dataset.join("data/__meta")).unwrap();
    let root = opened(&dataset);
    let error = root.lookup("vcf").map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("version"), "{error}");
    assert!(text(&root, "README.txt").contains("There is no vcf/"));
    assert!(text(&root, ".tilefs/views.txt").contains("not here: "));
    assert!(names(&root, "data").contains(&"README.txt".to_owned()));
}

#[test]
fn views_of_variants_are_named_and_listed() {
    let root = opened(&variants().join("v4"));
    assert!(root.list().unwrap().iter().any(|entry| entry.name == "vcf"));
    assert!(text(&root, "README.txt").contains("bcftools view vcf/SAMPLE.vcf.gz 1:12000-13000"));
    assert!(text(&root, ".tilefs/views.txt").contains("vcf/slice/1:12000-13000/SAMPLE.vcf"));
    // Other groups have no such view.
    let other = opened(&tilefs_fixtures::fixtures().join("arrays/groups/experiment"));
    assert!(node(&other, "vcf").is_none() && !text(&other, "README.txt").contains("vcf"));
}

/// Returns the header and the records of a file, as bcftools shows them.
fn viewed(path: &Path) -> (Vec<String>, Vec<String>) {
    let all = printed("bcftools", &["view", "--no-version", path.to_str().unwrap()]);
    let (header, records): (Vec<&str>, Vec<&str>) = all.lines().partition(|line| line.starts_with('#'));
    // bcftools adds definitions of contigs that a header does not name.
    let header = header.into_iter().filter(|line| !line.ends_with("=<ID=chrUn>")).map(str::to_owned).collect();
    (header, records.into_iter().map(str::to_owned).collect())
}

#[test]
fn indexes_lead_bcftools_and_tabix_to_the_records_of_a_region() {
    if !has("bcftools") || !has("tabix") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for dataset in DATASETS {
        let root = opened(&variants().join(dataset));
        for (sample, whole) in expected(dataset) {
            // The same file beside each index.
            let indexed = ["tbi", "csi"].map(|ending| {
                let compressed = path(&format!("{ending}.vcf.gz"));
                fs::write(&compressed, bytes(&root, &format!("vcf/{sample}.vcf.gz"))).unwrap();
                let index = bytes(&root, &format!("vcf/{sample}.vcf.gz.{ending}"));
                fs::write(format!("{compressed}.{ending}"), index).unwrap();
                compressed
            });
            assert_eq!(printed("bgzip", &["-dc", &indexed[0]]), whole);
            let mut counts: Vec<(String, usize)> = Vec::new();
            for (contig, _, _) in whole.lines().filter(|line| !line.starts_with('#')).map(extent) {
                match counts.last_mut().filter(|(last, _)| last == contig) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((contig.to_owned(), 1)),
                }
            }
            let binary = path("counted.bcf");
            fs::write(&binary, bytes(&root, &format!("vcf/{sample}.bcf"))).unwrap();
            fs::write(format!("{binary}.csi"), bytes(&root, &format!("vcf/{sample}.bcf.csi"))).unwrap();
            for file in indexed.iter().chain([&binary]) {
                let all: usize = counts.iter().map(|(_, count)| count).sum();
                assert_eq!(printed("bcftools", &["index", "--nrecords", file]).trim(), all.to_string(), "{file}");
                let told = printed("bcftools", &["index", "--stats", file]);
                let told = told.lines().map(|line| line.split('\t').collect::<Vec<_>>());
                let told: Vec<(String, usize)> =
                    told.map(|columns| (columns[0].to_owned(), columns[2].parse().unwrap())).collect();
                assert_eq!(told, counts, "{dataset} {sample} {file}");
            }
            for region in
                ["chr10", "chr10:8-8", "chr10:1241-1299", "chr10:300-340", "chr1:102-248956422", "chr2:18-999999"]
            {
                let from_slice = path("slice.vcf");
                fs::write(&from_slice, bytes(&root, &format!("vcf/slice/{region}/{sample}.vcf"))).unwrap();
                let wanted = printed("bcftools", &["view", "--no-header", &from_slice]);
                for compressed in &indexed {
                    let found = printed("bcftools", &["view", "--no-header", compressed, region]);
                    assert_eq!(found, wanted, "{dataset} {sample} {region} {compressed}");
                }
                let lines = fs::read_to_string(&from_slice).unwrap();
                let lines: String =
                    lines.lines().filter(|line| !line.starts_with('#')).flat_map(|l| [l, "\n"]).collect();
                for compressed in &indexed {
                    let found = printed("tabix", &[compressed, region]);
                    assert_eq!(found, lines, "{dataset} {sample} {region} {compressed}");
                }
            }
        }
    }
}

/// The datasets of TileDB-VCF's own tests have the records of their source files. `small.bcf` was changed after the
/// datasets were made: they lack DP and GQ of its first record. Fields with attributes of their own come last.
#[test]
fn datasets_of_tiledb_vcf_are_the_files_they_were_made_of() {
    let Some(peers) = peers() else { return };
    if !has("bcftools") {
        return;
    }
    let inputs = peers.join("tiledb-vcf-inputs");
    let folder = tempfile::tempdir().unwrap();
    let both = [("HG01762", "small.bcf"), ("HG00280", "small2.bcf")];
    let datasets = [
        ("v2_ingested_2samples", &both[..]),
        ("v3_ingested_2samples", &both),
        ("v4_ingested_2samples_GT_DP_PL", &both),
        ("old_format", &[("HG00280", "small3.vcf")]),
    ];
    for (dataset, files) in datasets {
        let root = opened(&peers.join("tiledb-vcf").join(dataset));
        for (sample, input) in files {
            let own = folder.path().join("own.vcf");
            fs::write(&own, bytes(&root, &format!("vcf/{sample}.vcf"))).unwrap();
            let ((header, records), (wanted_header, mut wanted)) = (viewed(&own), viewed(&inputs.join(input)));
            if *input != "small.bcf" {
                assert_eq!(header, wanted_header, "{dataset} {sample}");
            } else {
                let is_old = |record: &str| record.contains("\t0/0:.:.:0:0,0,0");
                assert!(is_old(&wanted[0]));
                wanted[0] = wanted[0].replace("\t0/0:.:.:0:0,0,0", "\t0/0:0:0:0:0,0,0");
                assert_eq!(header.last(), wanted_header.last());
            }
            let sorted = |records: &[String]| records.iter().map(|record| by_name(record)).collect::<Vec<_>>();
            assert_eq!(sorted(&records), sorted(&wanted), "{dataset} {sample}");
            if !dataset.contains("GT_DP_PL") {
                assert_eq!(records, wanted, "{dataset} {sample}");
            }
        }
    }
}

/// Returns a record with its FORMAT fields sorted by name.
fn by_name(record: &str) -> String {
    let fields: Vec<&str> = record.split('\t').collect();
    let mut pairs: Vec<_> = fields[8].split(':').zip(fields[9].split(':')).collect();
    pairs.sort();
    format!("{:?} {pairs:?}", &fields[..8])
}

/// `variants.py` converts every file of TileDB-VCF's own tests to a dataset in each layout: bcftools finds the
/// same records in both. Layouts 2 and 3 have no END that follows from the reference allele.
#[test]
fn every_file_comes_back_from_a_dataset_made_of_it() {
    let Some(peers) = peers() else { return };
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = support::repository::root().join("tests/fixtures/generators/variants.py");
    let (mut count, mut of_layout_2) = (0, 0);
    for input in fs::read_dir(peers.join("tiledb-vcf-inputs")).unwrap() {
        let input = input.unwrap().path();
        let samples = printed("bcftools", &["query", "-l", input.to_str().unwrap()]);
        if samples.lines().count() > 1 {
            // TileDB-VCF takes only files with one sample.
            continue;
        }
        let sample = samples.lines().next().unwrap_or("%").to_owned();
        let name = input.file_name().unwrap().to_str().unwrap();
        let plain = folder.path().join(format!("{name}.plain.vcf"));
        let all = printed("bcftools", &["view", "--no-version", input.to_str().unwrap()]);
        fs::write(&plain, &all).unwrap();
        for layout in ["4", "3", "2"] {
            let dataset = folder.path().join(format!("{name}.{layout}"));
            let arguments = [script.to_str().unwrap(), dataset.to_str().unwrap(), plain.to_str().unwrap()];
            let arguments = [&arguments[..], &["--layout", layout, "--anchor-gap", "50"]].concat();
            let made = Command::new(&python).args(&arguments).output().unwrap();
            let errors = String::from_utf8_lossy(&made.stderr);
            // Layouts 2 and 3 count the lengths of contigs, and layout 2 has no two cells with the same end.
            let is_impossible = (layout != "4" && errors.contains("has no length"))
                || (layout == "2" && errors.contains("Duplicate coordinates"));
            if is_impossible {
                continue;
            }
            assert!(made.status.success(), "{name} in layout {layout}: {errors}");
            of_layout_2 += usize::from(layout == "2");
            let own = folder.path().join("own.vcf");
            fs::write(&own, bytes(&opened(&dataset), &format!("vcf/{sample}.vcf"))).unwrap();
            let ((header, mut records), (wanted_header, mut wanted)) = (viewed(&own), viewed(&plain));
            assert_eq!(header, wanted_header, "{name} in layout {layout}");
            if layout != "4" {
                // Records with the same start may come in the order of their ends.
                records = records.iter().map(|record| without_end(record)).collect();
                wanted = wanted.iter().map(|record| without_end(record)).collect();
                records.sort();
                wanted.sort();
            }
            assert_eq!(records, wanted, "{name} in layout {layout}");
            count += records.len();
        }
    }
    assert!(count > 2000 && of_layout_2 > 5, "{count} records, {of_layout_2} files in layout 2");
}

/// Returns a record without an END that follows from the reference allele, because layouts 2 and 3 do not store it; any
/// other END is moved to the end.
fn without_end(record: &str) -> String {
    let mut fields: Vec<String> = record.split('\t').map(str::to_owned).collect();
    let (_, start, end) = extent(record);
    let is_told = start + fields[3].len() as u32 - 1 == end;
    let mut info: Vec<&str> = fields[7].split(';').filter(|field| !field.starts_with("END=")).collect();
    let last = format!("END={end}");
    if !is_told {
        info.retain(|field| *field != ".");
        info.push(&last);
    }
    fields[7] = if info.is_empty() { ".".to_owned() } else { info.join(";") };
    fields.join("\t")
}

/// Writes files of one sample each as a dataset of a layout.
fn write(folder: &Path, name: &str, files: &[String], arguments: &[&str]) -> Option<PathBuf> {
    let python = python_with("tiledb")?;
    let script = support::repository::root().join("tests/fixtures/generators/variants.py");
    let dataset = folder.join(name);
    let mut command = Command::new(python);
    command.arg(script).arg(&dataset);
    for (number, text) in files.iter().enumerate() {
        let path = folder.join(format!("{name}.{number}.vcf"));
        fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let made = command.args(arguments).output().unwrap();
    assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
    Some(dataset)
}

/// Returns a VCF file of one sample: contigs of its header, and records by contig and position, whose depth numbers
/// them.
fn vcf(sample: &str, contigs: impl Iterator<Item = String>, records: &[(&str, u32)]) -> String {
    let mut text = "##fileformat=VCFv4.3\n##INFO=<ID=DP,Number=1,Type=Integer,Description=\"d\">\n\
        ##FORMAT=<ID=GT,Number=1,Type=String,Description=\"g\">\n"
        .to_owned();
    text.extend(contigs.map(|contig| format!("##contig=<ID={contig},length=5000>\n")));
    text += &format!("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{sample}\n");
    for (number, (contig, position)) in records.iter().enumerate() {
        text += &format!("{contig}\t{position}\t.\tA\tC\t.\tPASS\tDP={number}\tGT\t0/1\n");
    }
    text
}

/// Returns the contig and the position of each record of a file.
fn places(text: &str) -> Vec<(String, u32)> {
    let records = text.lines().filter(|line| !line.starts_with('#'));
    records.map(extent).map(|(contig, start, _)| (contig.to_owned(), start)).collect()
}

#[test]
fn a_contig_named_in_full_is_that_contig() {
    let contigs = ["chr1", "chr1:100", "chr1:100-200", "HLA-A*01:01:01:01", "HLA-C*06:46N", "x%3A1", "s/1"];
    let records: Vec<(&str, u32)> =
        contigs.iter().flat_map(|contig| [100, 150, 200, 250].map(|position| (*contig, position))).collect();
    let named = || contigs.iter().map(|contig| (*contig).to_owned());
    let folder = tempfile::tempdir().unwrap();
    for layout in ["4", "3", "2"] {
        let files = [vcf("S1", named(), &records), vcf("S2", named(), &records)];
        let Some(dataset) = write(folder.path(), layout, &files, &["--layout", layout]) else { return };
        let root = opened(&dataset);
        let region = |region: &str| places(&text(&root, &format!("vcf/slice/{region}/S1.vcf")));
        let on = |contig: &str, positions: &[u32]| {
            positions.iter().map(|position| (contig.to_owned(), *position)).collect::<Vec<_>>()
        };
        for contig in contigs {
            let written = contig.replace('%', "%25").replace('/', "%2F");
            assert_eq!(region(&written), on(contig, &[100, 150, 200, 250]), "{layout} {contig}");
            assert_eq!(region(&format!("{{{written}}}")), on(contig, &[100, 150, 200, 250]), "{layout} {contig}");
            assert_eq!(region(&format!("{written}:150-200")), on(contig, &[150, 200]), "{layout} {contig}");
            assert_eq!(region(&format!("{{{written}}}:250")), on(contig, &[250]), "{layout} {contig}");
            let merged = text(&root, &format!("vcf/merged/{written}:200-.vcf"));
            assert_eq!(places(&merged), on(contig, &[200, 250]), "{layout} {contig}");
        }
        assert_eq!(region("{chr1}:100-200"), on("chr1", &[100, 150, 200]));
        assert_eq!(region("chr1:100-200,chr1:150,HLA-C*06:46N:250-").len(), 6);
        for none in ["chr1:0", "chr1:5-x", "{chr1", "HLA-C*06:47N", "{chr1}150"] {
            assert!(node(&root, &format!("vcf/slice/{none}/S1.vcf")).is_none(), "{layout} {none}");
            let Some(Node::Folder(slices)) = node(&root, "vcf/slice") else { panic!("no slices") };
            assert!(slices.why_absent(none).unwrap().contains("1:12000-13000"), "{layout} {none}");
        }
    }
}

/// A contig that no header names is one if records are on it, also if its name has a colon.
#[test]
fn contigs_that_only_records_name_are_found() {
    let records = [("chr1", 5), ("odd:7", 9)];
    let folder = tempfile::tempdir().unwrap();
    let file = vcf("S1", ["chr1".to_owned()].into_iter(), &records);
    let Some(dataset) = write(folder.path(), "unnamed", &[file], &[]) else { return };
    let root = opened(&dataset);
    for (region, wanted) in [("odd:7", &records[1..]), ("odd:7:1-9", &records[1..]), ("chr1:5,odd:7", &records)] {
        let found = places(&text(&root, &format!("vcf/slice/{region}/S1.vcf")));
        assert_eq!(found, wanted.iter().map(|(contig, at)| ((*contig).to_owned(), *at)).collect::<Vec<_>>());
    }
    let name = "vcf/slice/odd:7/S1.vcf";
    assert_eq!(remark(&dataset, name), None);
}

/// Returns the remark about a file: the same after its length was asked for, and after it was read in sequence.
fn remark(dataset: &Path, path: &str) -> Option<String> {
    let [streamed, measured] = [0; 2].map(|_| file(&opened(dataset), path));
    let mut forward = streamed.forward().unwrap().unwrap();
    while forward.next(&mut Vec::new()).unwrap() {}
    measured.len().unwrap();
    assert_eq!(measured.remark(), streamed.remark(), "{path}");
    measured.remark()
}

#[test]
fn selections_without_records_say_why() {
    for name in DATASETS {
        let dataset = variants().join(name);
        let of = |path: &str| remark(&dataset, path);
        for (path, wanted) in [
            (
                "vcf/slice/10:5-9/B 2.vcf",
                "no header names the contig 10, and no record is on it; the nearest name is chr10",
            ),
            ("vcf/slice/10:5,chr10:5/B 2.vcf.gz", "no header names the contig 10"),
            ("vcf/slice/chr11/B 2.bcf", "the nearest name is chr1"),
            ("vcf/merged/CHR2:5-9.vcf", "the nearest name is chr2"),
            (
                "vcf/samples=B 2/merged/nothing_like_it:5.vcf.gz",
                "no header names the contig nothing_like_it, and no record",
            ),
            ("vcf/slice/a_1,b_2,c_3,d_4,e_5/B 2.vcf", "so it is with 2 more contigs"),
            ("vcf/slice/chr10:1-4/B 2.vcf", "no record overlaps chr10:1-4"),
            ("vcf/slice/chr10:4,chrEmpty/NA%2F1.vcf", "no record overlaps chr10:4; no record overlaps chrEmpty"),
            ("vcf/plink/chr10:1299-1301.bim", "no record here has exactly one alternative allele"),
            ("vcf/plink/chr10:1,300.bed", "no record here has exactly one alternative allele"),
            ("vcf/plink/chr10:1-4.bim", "no record overlaps chr10:1-4"),
            ("vcf/plink/10:5.bed", "the nearest name is chr10"),
            ("vcf/slice/chr1:400000000-/B 2.vcf", "chr1 ends at 248956422, before chr1:400000000-"),
        ] {
            let found = of(path).unwrap_or_default();
            assert!(found.contains(wanted), "{name} {path}: {found}");
            assert_eq!(found.lines().count(), 1);
        }
        for none in [
            "vcf/B 2.vcf",
            "vcf/slice/chr10:5/B 2.vcf",
            "vcf/merged/chr10:5,chr10:1-4.vcf",
            "vcf/plink/chr10:5,chr10:95.bim",
        ] {
            assert_eq!(of(none), None, "{name} {none}");
        }
        let index = file(&opened(&dataset), "vcf/slice/chr99:5/B 2.vcf.gz.tbi");
        index.len().unwrap();
        assert!(index.remark().unwrap().contains("chr99"));
    }
}

#[test]
fn samples_with_names_too_long_for_a_file_are_files() {
    let folder = tempfile::tempdir().unwrap();
    let long = ["x".repeat(300), format!("{}/a", "ä".repeat(150)), "y".repeat(224)];
    let files: Vec<String> =
        long.iter().map(|sample| vcf(sample, ["chr1".to_owned()].into_iter(), &[("chr1", 5)])).collect();
    for layout in ["4", "3"] {
        let Some(dataset) = write(folder.path(), layout, &files, &["--layout", layout]) else { return };
        let root = opened(&dataset);
        let listed: Vec<String> = names(&root, "vcf").into_iter().filter(|name| name.ends_with(".vcf")).collect();
        assert_eq!(listed.len(), 3);
        assert_eq!(listed.iter().filter(|name| name.contains("%~")).count(), 2);
        let mut shown = BTreeSet::new();
        for name in &listed {
            assert!(name.len() <= 255);
            let whole = text(&root, &format!("vcf/{name}"));
            shown.insert(
                whole.lines().find(|line| line.starts_with("#CHROM")).unwrap().rsplit('\t').next().unwrap().to_owned(),
            );
            assert_eq!(text(&root, &format!("vcf/slice/chr1/{name}")), whole);
            let stem = name.strip_suffix(".vcf").unwrap();
            assert!(text(&root, &format!("vcf/samples={stem}/merged/all.vcf")).contains("\tDP=0\t"));
        }
        assert_eq!(shown, long.iter().cloned().collect());
        let none = format!("vcf/{}%~0123456789abcdef.vcf", "x".repeat(194));
        assert!(node(&root, &none).is_none());
    }
}

/// Headers of assemblies name contigs by the hundred thousand. Those without records, and their order, cost nothing.
#[test]
fn records_on_few_of_many_contigs_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let contig = |number: u32| format!("ctg{number:05}");
    let [first, middle, last] = [0, 11_111, 19_999].map(contig);
    let records = [(last.as_str(), 5), (middle.as_str(), 7), (middle.as_str(), 4000), (first.as_str(), 9)];
    let wanted: Vec<(String, u32)> = records.map(|(contig, position)| (contig.to_owned(), position)).into();
    for layout in ["4", "3", "2"] {
        // The header has the contigs in descending order.
        let files = ["S1", "S2"].map(|sample| vcf(sample, (0..20_000).rev().map(contig), &records));
        let Some(dataset) = write(folder.path(), layout, &files, &["--layout", layout]) else { return };
        let root = opened(&dataset);
        assert_eq!(places(&text(&root, "vcf/S1.vcf")), wanted, "{layout}");
        assert_eq!(places(&text(&root, "vcf/merged/all.vcf")), wanted, "{layout}");
        let regions = format!("vcf/slice/{first},{middle}:1-9/S2.vcf");
        assert_eq!(places(&text(&root, &regions)), [wanted[1].clone(), wanted[3].clone()], "{layout}");
        if has("bcftools") {
            let path = folder.path().join("all.bcf");
            fs::write(&path, bytes(&root, "vcf/S1.bcf")).unwrap();
            assert_eq!(places(&printed("bcftools", &["view", path.to_str().unwrap()])), wanted, "{layout}");
        }
    }
}

/// Returns how many decoded units a new mount of a dataset looks up to make a file, and the places of its records.
fn looked_up(dataset: &Path, path: &str) -> (u64, Vec<(String, u32)>) {
    let stored = open_stored(dataset, &TreeOptions::default()).unwrap();
    let tree = MountedTree::new(stored, &TreeOptions::default()).unwrap();
    let content = file(&tree.root(), path).open().unwrap();
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes).unwrap();
    let total = |name: &str| {
        let of_name = tree.statistics().into_iter().filter(|one| one.name == name).map(|one| one.value);
        of_name.map(|value| if let Value::Total(count) = value { count } else { 0 }).sum::<u64>()
    };
    (total("cache_hits") + total("cache_misses"), places(&String::from_utf8(bytes).unwrap()))
}

/// Small contigs, and regions of a contig, are read together: there may be tens of thousands.
#[test]
fn many_small_contigs_and_regions_take_few_queries() {
    const CONTIGS: u32 = 400;
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..CONTIGS).map(|number| format!("ctg{number:05}")).collect();
    let records: Vec<(&str, u32)> =
        names.iter().rev().flat_map(|name| [5, 900, 901].map(|position| (name.as_str(), position))).collect();
    let wanted: Vec<(String, u32)> = records.iter().map(|(name, position)| ((*name).to_owned(), *position)).collect();
    for layout in ["4", "3", "2"] {
        // The header has the contigs in descending order.
        let files = ["S1", "S2"].map(|sample| vcf(sample, names.iter().rev().cloned(), &records));
        let Some(dataset) = write(folder.path(), layout, &files, &["--layout", layout]) else { return };
        let on_one = names[7].as_str();
        let regions: Vec<String> = (0..200).map(|number| format!("{on_one}:{}", 700 + 3 * number)).collect();
        for (file, wanted) in [
            ("vcf/S1.vcf".to_owned(), wanted.clone()),
            ("vcf/merged/all.vcf".to_owned(), wanted.clone()),
            (format!("vcf/merged/{}.vcf", regions[..60].join(",")), Vec::new()),
            // One of these is at 901, none at 900.
            (format!("vcf/slice/{}/S2.vcf", regions.join(",")), vec![(on_one.to_owned(), 901)]),
        ] {
            let (count, found) = looked_up(&dataset, &file);
            assert_eq!(found, wanted, "{layout} {file}");
            assert!(count < 4 * u64::from(CONTIGS), "{layout} {file}: {count} units looked up");
        }
    }
}
