//! The sites of gVCF blocks in datasets of TileDB-VCF (`make_gvcf.py`), compared with `bcftools convert --gvcf2vcf` of the
//! files of the same datasets, whole and in regions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use support::paths::{file, names, node};
use support::skip::python_with;
use support::vcf::{bytes, has, opened, printed, text};
use tilefs_base::error::Error;
use tilefs_tree::{DomainOptions, TreeOptions, VariantReference, open};
use tilefs_vfs::Folder;

/// A dataset with its reference genome, and the file that bcftools makes of it.
struct Expanded {
    folder: tempfile::TempDir,
    root: Arc<dyn Folder>,
    wanted: String,
}

impl Expanded {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

fn with_reference(dataset: &Path, reference: &Path) -> Arc<dyn Folder> {
    let of_domains = DomainOptions::default().with(VariantReference::open(reference).unwrap());
    open(dataset, &TreeOptions { of_domains, ..TreeOptions::default() }).unwrap()
}

/// Writes a dataset, and expands the file of its sample.
fn expanded(python: &str, seed: u64, layout: &str, kind: &str) -> Expanded {
    let folder = tempfile::tempdir().unwrap();
    let script = support::repository::root().join("tests/tree/variants/make_gvcf.py");
    let arguments = [script.to_str().unwrap(), folder.path().to_str().unwrap(), &seed.to_string(), layout, kind];
    printed(python, &arguments);
    let dataset = folder.path().join("dataset");
    let (blocks, reference) = (folder.path().join("blocks.vcf"), folder.path().join("ref.fa"));
    fs::write(&blocks, bytes(&opened(&dataset), "vcf/s.vcf")).unwrap();
    // bcftools writes an index, so one that tilefs has to make is that of a copy.
    let copy = folder.path().join("copy.fa");
    fs::copy(&reference, &copy).unwrap();
    let options = ["convert", "--no-version", "--gvcf2vcf", "-f", reference.to_str().unwrap()];
    let wanted = printed("bcftools", &[&options[..], &[blocks.to_str().unwrap()]].concat());
    let mut chosen = if seed.is_multiple_of(2) { reference } else { copy };
    if seed.is_multiple_of(3) {
        printed("bgzip", &[chosen.to_str().unwrap()]);
        chosen.set_extension("fa.gz");
    }
    let root = with_reference(&dataset, &chosen);
    Expanded { folder, root, wanted }
}

/// Returns the lines of a file without those of its header.
fn records(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Sorts the records of each contig by position.
fn sorted(text: &str) -> String {
    let head: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let mut lines: Vec<(usize, u32, &str)> = Vec::new();
    for line in records(text) {
        let mut columns = line.split('\t');
        let contig = columns.next().unwrap();
        let place = ["chr2", "chr10", "chr1"].iter().position(|name| *name == contig).unwrap();
        lines.push((place, columns.next().unwrap().parse().unwrap(), line));
    }
    lines.sort_by_key(|(place, position, _)| (*place, *position));
    head.into_iter().chain(lines.into_iter().map(|(_, _, line)| line)).flat_map(|line| [line, "\n"]).collect()
}

const REGIONS: [&str; 8] = [
    "chr10",
    "chr10:17",
    "chr10:300-420",
    "chr2:890-",
    "chr1:1-40",
    "chr10:1-60,chr10:61-500,chr2:7",
    "chr2:100-101,chr2:103-104,chr2:106-400",
    "chr10:1999-3000",
];

#[test]
fn sites_are_those_that_bcftools_makes() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") || !has("tabix") {
        return;
    }
    let (mut sites, mut in_regions) = (0, 0);
    for (seed, layout, kind) in [
        (1, "2", ""),
        (2, "3", ""),
        (3, "4", ""),
        (4, "4", ""),
        (5, "3", "overlapping"),
        (6, "4", "overlapping"),
        (7, "4", "overlapping"),
    ] {
        let made = expanded(&python, seed, layout, kind);
        let found = text(&made.root, "vcf/sites/s.vcf");
        let wanted = if kind.is_empty() { made.wanted.clone() } else { sorted(&made.wanted) };
        assert!(kind.is_empty() || wanted != made.wanted);
        for (number, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
            assert_eq!(found, wanted, "{seed}, line {number}");
        }
        assert_eq!(found, wanted, "{seed}");
        assert_eq!(text(&made.root, "vcf/samples=s/sites/s.vcf"), found);
        sites += records(&found).len();
        // Regions that divide a contig have each of its lines once.
        let step = 7 * seed as usize;
        let divided: Vec<String> = (1..2000).step_by(step).map(|at| format!("chr10:{at}-{}", at + step - 1)).collect();
        let of_contig = text(&made.root, "vcf/sites/slice/chr10/s.vcf");
        assert_eq!(text(&made.root, &format!("vcf/sites/slice/{}/s.vcf", divided.join(","))), of_contig, "{seed}");
        let [plain, compressed, binary] = ["own.vcf", "own.vcf.gz", "own.bcf"].map(|name| made.path(name));
        for (path, ending) in [(&compressed, ".vcf.gz"), (&binary, ".bcf")] {
            fs::write(path, bytes(&made.root, &format!("vcf/sites/s{ending}"))).unwrap();
        }
        let view = |path: &str, region: &[&str]| {
            printed("bcftools", &[&["view", "--no-version", "--no-header", path], region].concat())
        };
        fs::write(&plain, &found).unwrap();
        let whole = view(&plain, &[]);
        assert_eq!(view(&compressed, &[]), whole, "{seed}");
        assert_eq!(view(&binary, &[]), whole, "{seed}");
        for index in [".vcf.gz.tbi", ".vcf.gz.csi", ".bcf.csi"] {
            let path = made.path(&format!("own{index}"));
            fs::write(&path, bytes(&made.root, &format!("vcf/sites/s{index}"))).unwrap();
            let file = if index.starts_with(".bcf") { &binary } else { &compressed };
            for regions in REGIONS {
                let slice = text(&made.root, &format!("vcf/sites/slice/{regions}/s.vcf"));
                fs::write(&plain, &slice).unwrap();
                // With a list, bcftools sorts by the first mention of contigs.
                let wanted: String = sorted(&view(file, &[regions]));
                assert_eq!(view(&plain, &[]), wanted, "{seed} {index} {regions}");
                in_regions += records(&slice).len();
            }
            fs::remove_file(&path).unwrap();
        }
    }
    assert!(sites > 10_000 && in_regions > 10_000, "{sites} {in_regions}");
}

/// Blocks of several windows of sites, and windows that have only a part of one.
#[test]
fn long_blocks_are_divided() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") {
        return;
    }
    for layout in ["2", "4"] {
        let made = expanded(&python, 8, layout, "long");
        let mut forward = file(&made.root, "vcf/sites/s.vcf").forward().unwrap().unwrap();
        let (mut streamed, mut part) = (Vec::new(), Vec::new());
        while forward.next(&mut part).unwrap() {
            assert!(part.len() <= 2 << 20, "{}", part.len());
            streamed.extend_from_slice(&part);
        }
        assert!(streamed.len() > 20 << 20 && streamed == made.wanted.as_bytes(), "{layout}");
        let content = file(&made.root, "vcf/sites/s.vcf").open().unwrap();
        assert_eq!(content.len(), streamed.len() as u64);
        for at in (0..streamed.len()).step_by(3_333_333).rev() {
            let mut part = vec![0; 5000.min(streamed.len() - at)];
            content.read_at(at as u64, &mut part).unwrap();
            assert!(part == streamed[at..at + part.len()], "{layout} at {at}");
        }
    }
}

/// Returns the error of a read in sequence, and of opening the file.
fn errors(root: &Arc<dyn Folder>, path: &str) -> [Error; 2] {
    let opened = file(root, path).open().map(|_| ()).unwrap_err();
    let mut forward = file(root, path).forward().unwrap().unwrap();
    let mut part = Vec::new();
    loop {
        match forward.next(&mut part) {
            Ok(true) => {}
            Ok(false) => panic!("{path} has no error"),
            Err(error) => return [opened, error],
        }
    }
}

fn fixture() -> PathBuf {
    tilefs_fixtures::fixtures().join("variants/v4")
}

#[test]
fn a_reference_that_lacks_a_base_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let reference = folder.path().join("ref.fa");
    let root = |fasta: &str, index: Option<&str>| {
        fs::write(&reference, fasta).unwrap();
        let at = folder.path().join("ref.fa.fai");
        match index {
            Some(index) => fs::write(&at, index).unwrap(),
            None => drop(fs::remove_file(&at)),
        }
        with_reference(&fixture(), &reference)
    };
    // The block of B 2 has chr10:41-340.
    let sound = format!(">chr10\n{}\n", "acgtN".repeat(68));
    let lines = text(&root(&sound, None), "vcf/sites/B 2.vcf");
    let of_block = records(&lines).into_iter().filter(|line| line.contains("<NON_REF>"));
    assert_eq!(of_block.clone().count(), 300);
    assert!(of_block.clone().all(|line| !line.contains("END=")));
    assert_eq!(of_block.clone().next_back(), Some("chr10\t340\t.\tN\t<NON_REF>\t.\t.\t.\tGT:DP\t0/0:5"));
    for (fasta, index, reason) in [
        (">chr1\nAC\n".to_owned(), None, "no base at chr10:41 in the reference, which has no contig chr10"),
        (sound.replace("acgtN", "acgt"), None, "no base at chr10:273 in the reference, which has 272 bases of chr10"),
        (sound.replace("acgtN", "ac;tN"), None, "no base, but ';'"),
        (format!("{sound}A\nAC\n"), None, "lines of different lengths in the contig chr10"),
        (sound.clone(), Some("chr10\t340\t7\t34\t35\n"), "ends after the 348 bytes of the FASTA file"),
        (sound.clone(), Some("chr10\t339\t7\t339\t340\n"), "does not fit the file, at chr10"),
        (sound.clone(), Some("chr10 340 7 340 341\n"), "not a contig and four numbers"),
    ] {
        let root = root(&fasta, index);
        for error in errors(&root, "vcf/sites/B 2.vcf") {
            let told = error.to_string();
            assert!(told.contains(reason) && told.contains("ref.fa") && told.contains("v4/data"), "{told}");
            assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
        }
        // Other files need no reference, and a region without blocks no base.
        assert!(!bytes(&root, "vcf/B 2.vcf").is_empty());
        assert_eq!(records(&text(&root, "vcf/sites/slice/chr1:100-102/B 2.vcf")).len(), 1);
    }
}

#[test]
fn sites_need_the_reference_and_are_not_listed() {
    let none = opened(&fixture());
    assert!(node(&none, "vcf/sites").is_none() && node(&none, "vcf/samples=B 2/sites").is_none());
    let Some(tilefs_vfs::Node::Folder(vcf)) = none.lookup("vcf").unwrap() else { panic!("no folder vcf") };
    assert!(vcf.why_absent("sites").unwrap().contains("--reference"));
    let folder = tempfile::tempdir().unwrap();
    let reference = folder.path().join("ref.fa");
    fs::write(&reference, ">chr10\nA\n").unwrap();
    let root = with_reference(&fixture(), &reference);
    assert!(!names(&root, "vcf").contains(&"sites".to_owned()));
    assert!(names(&root, "vcf/sites").is_empty());
    for path in ["merged", "plink", "samples.txt", "sites", "samples=B 2", "C.vcf", "slice/chr1/sites"] {
        assert!(node(&root, &format!("vcf/sites/{path}")).is_none(), "{path}");
    }
    assert!(node(&root, "vcf/slice/chr1/sites").is_none());
}

#[test]
fn the_program_takes_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let reference = folder.path().join("ref.fa");
    fs::write(&reference, format!(">chr10\n{}\n", "A".repeat(340))).unwrap();
    let run = |arguments: &[&str]| {
        let dataset = fixture();
        let program = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("cat").arg(dataset).args(arguments).output();
        let output = program.unwrap();
        let [out, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), out, told)
    };
    let path = "vcf/sites/slice/chr10:100-102/B 2.vcf";
    let (status, _, told) = run(&[path]);
    assert!(status == Some(1) && told.contains("--reference"), "{told}");
    let (status, out, told) = run(&["--reference", reference.to_str().unwrap(), path]);
    assert_eq!((status, records(&out).len()), (Some(0), 3), "{told}");
    let (status, _, told) = run(&["--reference", "/nonexistent.fa", path]);
    assert!(status == Some(2) && told.contains("/nonexistent.fa"), "{told}");
}
