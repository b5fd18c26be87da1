//! The commands of the pages in docs/ run in the order of their page, and print what the page shows.
//!
//! A block marked `sh` or `python` runs; all blocks of a page share a shell and a folder. A block marked `text` directly
//! after it is its output, in which `...` stands for any text of a line or, alone on a line, for any lines. Blocks with
//! other marks, such as `console`, show commands for other machines.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use crate::tools::has;
use support::skip::{can_mount, python_with};

/// A page of docs/, and what its commands need besides tilefs.
struct Page {
    name: &'static str,
    programs: &'static [&'static str],
    packages: &'static str,
}

const PAGES: [Page; 8] = [
    Page { name: "single-cell", programs: &[], packages: "anndata, scipy" },
    Page { name: "variants", programs: &["bcftools", "plink2"], packages: "duckdb, tiledb" },
    Page { name: "rasters", programs: &["gdalinfo"], packages: "numpy, tifffile, tiledb" },
    Page { name: "climate", programs: &["ncdump"], packages: "netCDF4, tiledb, xarray, zarr" },
    Page { name: "tables", programs: &[], packages: "duckdb, pandas, pyarrow, tiledb" },
    Page { name: "serving", programs: &["curl", "gdalinfo"], packages: "aiohttp, fsspec, xarray, zarr" },
    Page { name: "clusters", programs: &[], packages: "dask, distributed, numpy" },
    Page { name: "operations", programs: &["curl"], packages: "boto3, moto.server" },
];

/// Pages whose commands are tested elsewhere: the examples in Python by `python/tests/test_readme.py`.
const TESTED_ELSEWHERE: [&str; 2] = ["python", "types"];

/// A fenced block of a page.
struct Block<'a> {
    mark: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).map(|(mark, text)| Block { mark, text }).collect()
}

/// Returns whether a line is as a page shows it, where `...` stands for any text.
fn line_is(shown: &str, printed: &str) -> bool {
    match shown.split_once("...") {
        None => shown.trim_end() == printed.trim_end(),
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| line_is(after, &rest[at..]))
        }),
    }
}

/// Returns whether lines are as a page shows them, where `...` alone stands for any lines.
fn output_is(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| output_is(rest, &printed[skipped..])),
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, others)| line_is(first, line) && output_is(rest, others))
        }
    }
}

#[test]
fn three_dots_stand_for_any_text_and_any_lines() {
    let is = |shown: &str, printed: &str| {
        output_is(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
    };
    assert!(is("a\n...\nd", "a\nb\nc\nd") && is("...\nd", "d") && is("a ... z", "a b z") && is("...z", "é z"));
    assert!(!is("a\n...\nd", "a\nb") && !is("a ... z", "a b y") && !is("a", "a\nb") && !is("a\nb", "a"));
}

/// The folder in which the commands of a page run, with the samples that it names. Whatever the commands mount in it is
/// unmounted when it is dropped.
struct Desk {
    folder: TempDir,
}

impl Desk {
    /// Makes the folder; `python` is the interpreter with the packages that the page needs.
    fn new(python: &str, needs_samples: bool) -> Desk {
        let desk = Desk { folder: tempfile::tempdir().unwrap() };
        let (at, repository) = (desk.folder.path(), support::repository::root());
        fs::create_dir(at.join("mnt")).unwrap();
        fs::create_dir(at.join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_tilefs"), at.join("bin/tilefs")).unwrap();
        // A link to an interpreter would lose its packages.
        fs::write(at.join("bin/python3"), format!("#!/bin/sh\nexec '{python}' \"$@\"\n")).unwrap();
        fs::set_permissions(at.join("bin/python3"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(at.join("tests")).unwrap();
        symlink(tilefs_fixtures::fixtures(), at.join("tests/fixtures")).unwrap();
        symlink(repository.join("examples"), at.join("examples")).unwrap();
        let real = support::corpora::corpus().join("real");
        for (name, of_corpus) in
            [("pbmc_soma", "pbmc_soma"), ("photo", "photo_china_rgb"), ("co2_weekly", "co2_weekly")]
        {
            symlink(real.join(of_corpus), at.join(name)).unwrap();
        }
        if needs_samples {
            let script = repository.join("tests/exports/pages/samples.py").display().to_string();
            crate::tools::run(at, python, &["-W", "ignore", &script, &repository.display().to_string()]);
        }
        desk
    }

    /// Returns commands with the mount points, and the ports of servers, of this folder.
    fn here(&self, text: &str, ports: &[(String, String)]) -> String {
        let mounts = format!("{}/mnt/", self.folder.path().display());
        ports.iter().fold(text.replace("/mnt/", &mounts), |text, (shown, free)| text.replace(shown, free))
    }

    /// Runs the blocks of a page in one shell, and returns the output of each.
    fn run(&self, blocks: &[Block<'_>]) -> Vec<String> {
        let at = self.folder.path();
        let ports: Vec<(String, String)> = ["8080", "8081", "5555"].map(|shown| (shown.to_owned(), free_port())).into();
        let mut script = "set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
        for (number, block) in blocks.iter().enumerate() {
            let text = self.here(block.text, &ports);
            match block.mark {
                "sh" => write!(script, "{{\n{text}\n}} > {number}.printed\n").unwrap(),
                "python" => {
                    write!(script, "python3 - > {number}.printed <<'END OF BLOCK'\n{text}\nEND OF BLOCK\n").unwrap()
                }
                _ => {}
            }
        }
        let path = format!("{}:{}", at.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        // A page waits for its servers without a limit.
        let bounded = ["300", "bash", "-c", &script];
        let output = Command::new("timeout").args(bounded).current_dir(at).env("PATH", path).output().unwrap();
        let printed = (0..blocks.len()).map(|number| fs::read_to_string(at.join(format!("{number}.printed"))));
        let printed: Vec<String> = printed.map(Result::unwrap_or_default).collect();
        assert!(output.status.success(), "{}\n{printed:#?}", String::from_utf8_lossy(&output.stderr));
        printed
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for mount in fs::read_dir(self.folder.path().join("mnt")).unwrap() {
            let _ = Command::new("umount").arg("-l").arg(mount.unwrap().path()).output();
        }
    }
}

/// Returns a port on which no server listens now.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs a page of docs/, and compares what each block prints with the block of text behind it.
fn runs_as_it_shows(name: &str) {
    let page = PAGES.iter().find(|page| page.name == name).unwrap();
    if !can_mount() || !page.programs.iter().all(|program| has(program)) {
        return;
    }
    let Some(python) = python_with(page.packages) else { return };
    let file = support::repository::root().join(format!("docs/{name}.md"));
    let text = fs::read_to_string(file).unwrap();
    let blocks = blocks(&text);
    let desk = Desk::new(&python, page.packages.contains("tiledb"));
    let printed = desk.run(&blocks);
    let mut compared = 0;
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| block.mark == "text") {
        let of = &printed[number - 1];
        let (shown, of): (Vec<&str>, Vec<&str>) = (block.text.lines().collect(), of.lines().collect());
        assert!(output_is(&shown, &of), "{name}.md shows\n{}\nand the commands print\n{}", block.text, of.join("\n"));
        compared += 1;
    }
    assert!(compared > 0, "{name}.md shows no output");
}

#[test]
fn the_page_about_single_cell_data_is_true() {
    runs_as_it_shows("single-cell");
}

#[test]
fn the_page_about_variants_is_true() {
    runs_as_it_shows("variants");
}

#[test]
fn the_page_about_rasters_is_true() {
    runs_as_it_shows("rasters");
}

#[test]
fn the_page_about_climate_data_is_true() {
    runs_as_it_shows("climate");
}

#[test]
fn the_page_about_tables_is_true() {
    runs_as_it_shows("tables");
}

#[test]
fn the_page_about_serving_is_true() {
    runs_as_it_shows("serving");
}

#[test]
fn the_page_about_clusters_is_true() {
    runs_as_it_shows("clusters");
}

#[test]
fn the_page_about_operations_is_true() {
    runs_as_it_shows("operations");
}

/// Pages by task have names in small letters; others are references.
#[test]
fn every_page_is_tested_and_named_in_the_readme() {
    let root = support::repository::root();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150, "README.md has {} lines", readme.lines().count());
    let mut pages = 0;
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".md").filter(|name| name.starts_with(char::is_lowercase)) else { continue };
        let is_tested = PAGES.iter().any(|page| page.name == name) || TESTED_ELSEWHERE.contains(&name);
        assert!(is_tested, "no test runs docs/{file}");
        assert!(readme.contains(&format!("(docs/{file})")), "README.md does not name docs/{file}");
        pages += 1;
    }
    assert_eq!(pages, PAGES.len() + TESTED_ELSEWHERE.len());
}
