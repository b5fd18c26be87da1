//! Datasets of TileDB-VCF as BCF files: bcftools, pysam and cyvcf2 read the same in them as in the VCF files, whole and
//! through the index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use support::corpora::peers;
use support::paths::{file, node};
use support::skip::python_with;
use support::vcf::{bytes, has, opened, printed, text};
use tilefs_vfs::Folder;

/// The datasets of the fixtures, and the names of their samples in paths.
const DATASETS: [(&str, &[&str]); 4] = [
    ("v2", &["B 2", "NA%2F1"]),
    ("v3", &["B 2", "NA%2F1"]),
    ("v4", &["%", "B 2", "NA%2F1"]),
    ("extracted", &["%", "B 2", "NA%2F1"]),
];

const REGIONS: [&str; 8] = [
    "chr10",
    "chr10:8-8",
    "chr10:1241-1299",
    "chr10:300-340",
    "chr1:102-248956422",
    "chr2:18-999999",
    "HLA%3A01%3A01:100",
    "chrEmpty",
];

fn dataset(name: &str) -> PathBuf {
    tilefs_fixtures::fixtures().join("variants").join(name)
}

/// Writes the forms of a file of `vcf/`, given without its ending, to a folder: `own.vcf`, and `own.bcf` with its
/// index.
fn write(root: &Arc<dyn Folder>, stem: &str, to: &Path) -> [String; 2] {
    for ending in [".vcf", ".bcf", ".bcf.csi"] {
        fs::write(to.join(format!("own{ending}")), bytes(root, &format!("vcf/{stem}{ending}"))).unwrap();
    }
    [".vcf", ".bcf"].map(|ending| to.join(format!("own{ending}")).to_str().unwrap().to_owned())
}

/// Returns what bcftools reads in a file.
fn viewed(path: &str, regions: &[&str]) -> String {
    let all = printed("bcftools", &[&["view", "--no-version", path][..], regions].concat());
    // In text output, bcftools adds definitions of contigs that the header of a file with an index does not name.
    all.lines().filter(|line| !line.ends_with("=<ID=chrUn>")).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn bcf_has_what_vcf_has() {
    if !has("bcftools") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut records = 0;
    for (name, samples) in DATASETS {
        let root = opened(&dataset(name));
        let of_samples = samples.iter().map(|sample| sample.to_string());
        let of_regions =
            REGIONS.iter().flat_map(|region| samples.iter().map(move |one| format!("slice/{region}/{one}")));
        let merged = REGIONS.iter().chain(&["all"]).map(|stem| format!("merged/{stem}"));
        let chosen =
            ["samples=B 2/merged/all", "samples=NA%2F1,B 2/merged/chr10:1-50", "samples=B 2/B 2"].map(str::to_owned);
        for stem in of_samples.chain(of_regions).chain(merged).chain(chosen) {
            let [vcf, bcf] = write(&root, &stem, folder.path());
            let wanted = viewed(&vcf, &[]);
            assert_eq!(viewed(&bcf, &[]), wanted, "{name} {stem}");
            records += wanted.lines().filter(|line| !line.starts_with('#')).count();
        }
    }
    assert!(records > 200, "{records}");
}

/// The file has the bytes that bcftools writes for the same text, including the numbers of names. Records whose last
/// FORMAT field is a text are left out, because bcftools pads it with one more NUL.
#[test]
fn records_have_the_bytes_that_bcftools_writes() {
    if !has("bcftools") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = opened(&dataset("v3"));
    for stem in ["slice/chr1/NA%2F1", "slice/chr10:40-1300/NA%2F1", "slice/chr2:1000000/NA%2F1", "merged/chr10:40-1300"]
    {
        let [vcf, bcf] = write(&root, stem, folder.path());
        let uncompressed = |path: &str| {
            let output = Command::new("bcftools").args(["view", "--no-version", "-Ou", path]).output().unwrap();
            assert!(output.status.success());
            output.stdout
        };
        let own = Command::new("bgzip").args(["-dc", &bcf]).output().unwrap().stdout;
        assert!(!own.is_empty() && uncompressed(&vcf) == own, "{stem}");
        assert!(uncompressed(&bcf) == own, "{stem}");
    }
}

#[test]
fn the_index_leads_to_the_records_of_a_region() {
    if !has("bcftools") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut found = 0;
    for (name, samples) in DATASETS {
        let root = opened(&dataset(name));
        for stem in samples.iter().copied().chain(["merged/all"]) {
            let [_, bcf] = write(&root, stem, folder.path());
            // This release of bcftools has no way to write a contig with colons in a region.
            for region in REGIONS.into_iter().filter(|region| !region.contains('%')) {
                let from_slice = folder.path().join("slice.vcf").to_str().unwrap().to_owned();
                let path = match stem {
                    "merged/all" => format!("vcf/merged/{region}.vcf"),
                    _ => format!("vcf/slice/{region}/{stem}.vcf"),
                };
                fs::write(&from_slice, bytes(&root, &path)).unwrap();
                let wanted = viewed(&from_slice, &[]);
                assert_eq!(viewed(&bcf, &[region]), wanted, "{name} {stem} {region}");
                found += wanted.lines().filter(|line| !line.starts_with('#')).count();
            }
        }
    }
    assert!(found > 50, "{found}");
}

/// Opens the text file and the binary file with the package, and compares their records.
const PYSAM: &str = "
import pysam, sys
vcf, bcf = (pysam.VariantFile(path) for path in sys.argv[1:3])
wanted, found = ([str(record) for record in file] for file in (vcf, bcf))
assert wanted and found == wanted, (found, wanted)
assert bcf.is_bcf and list(bcf.header.samples) == list(vcf.header.samples)
region = [(r.pos, r.ref, r.alts, [s.allele_indices for s in r.samples.values()]) for r in bcf.fetch('chr10', 299, 340)]
assert [one[0] for one in region] == [40, 41, 90], region
";

const CYVCF2: &str = "
import cyvcf2, sys
wanted, found = ([str(variant) for variant in cyvcf2.VCF(path)] for path in sys.argv[1:3])
assert wanted and found == wanted, (found, wanted)
region = [(v.POS, v.genotypes) for v in cyvcf2.VCF(sys.argv[2])('chr10:300-340')]
assert [one[0] for one in region] == [40, 41, 90], region
";

#[test]
fn pysam_and_cyvcf2_read_the_file_and_a_region() {
    let folder = tempfile::tempdir().unwrap();
    let [vcf, bcf] = write(&opened(&dataset("v4")), "merged/all", folder.path());
    for (package, code) in [("pysam", PYSAM), ("cyvcf2", CYVCF2)] {
        let Some(python) = python_with(package) else { continue };
        let output = Command::new(&python).args(["-c", code, &vcf, &bcf]).output().unwrap();
        assert!(output.status.success(), "{package}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Checks the files of TileDB-VCF's own tests, in its datasets.
#[test]
fn datasets_of_tiledb_vcf_are_bcf_files() {
    let Some(peers) = peers() else { return };
    if !has("bcftools") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut records = 0;
    for name in ["v2_ingested_2samples", "v3_ingested_2samples", "v4_ingested_2samples_GT_DP_PL", "old_format"] {
        let root = opened(&peers.join("tiledb-vcf").join(name));
        let samples = text(&root, "vcf/samples.txt");
        for stem in samples.lines().chain(["merged/all"]) {
            let [vcf, bcf] = write(&root, stem, folder.path());
            let wanted = viewed(&vcf, &[]);
            assert_eq!(viewed(&bcf, &[]), wanted, "{name} {stem}");
            records += wanted.lines().filter(|line| !line.starts_with('#')).count();
        }
    }
    assert!(records > 100, "{records}");
}

#[test]
fn damage_is_an_error_of_the_sample_that_it_is_in() {
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("v4");
    support::stored::copy_folder(&dataset("v4"), &path);
    let fragments = fs::read_dir(path.join("data/__fragments")).unwrap().map(|entry| entry.unwrap().path());
    // The second file has the fragments of B 2.
    let of_second =
        fragments.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("__3_3_"));
    let info = of_second.unwrap().join("a6_var.tdb");
    let mut stored = fs::read(&info).unwrap();
    *stored.last_mut().unwrap() ^= 0xff;
    fs::write(&info, stored).unwrap();
    let root = opened(&path);
    for ending in [".bcf", ".bcf.csi"] {
        let error = file(&root, &format!("vcf/B 2{ending}")).open().map(|_| ()).unwrap_err();
        assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
        let told = error.to_string();
        assert!(told.contains("v4/data") && told.contains("__3_3_") && told.contains("a6_var.tdb"), "{told}");
    }
    let mut forward = file(&root, "vcf/B 2.bcf").forward().unwrap().unwrap();
    let (mut part, mut result) = (Vec::new(), Ok(true));
    while let Ok(true) = result {
        result = forward.next(&mut part);
    }
    assert!(result.is_err());
    assert!(!bytes(&root, "vcf/NA%2F1.bcf").is_empty());
    for none in ["vcf/B 2.bcf.tbi", "vcf/.bcf", "vcf/B 2.ubcf", "vcf/slice/chr1:0/B 2.bcf"] {
        assert!(node(&root, none).is_none(), "{none}");
    }
}
