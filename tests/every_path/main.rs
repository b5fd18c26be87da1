//! Every path of the fixtures shows what it showed before: the same names, sizes, bytes, attributes and errors.
//!
//! `fixtures.digests` has a digest for each part of each array and group. If one differs, the test names the part and,
//! if the listing of an earlier run is in `target/tmp/every_path/`, each path with its old and new facts.
//! `TILEFS_ACCEPT=yes` rewrites the digests, after a change that is meant to change them. `TILEFS_ONLY` names the arrays
//! and groups to compare, separated by colons, for a first look.
//!
//! `scripts/list_every_path.sh` lists other folders: `TILEFS_LIST` names them, separated by colons, `TILEFS_LIST_TO` the
//! file to write, and `TILEFS_LIST_THREADS` the number of threads that decode.
//!
//! A listing depends neither on the machine nor on the time: everything is shown as of a fixed time, and the path of the
//! listed folder and the version of tilefs are replaced in names, bytes, attributes and errors.
//!
//! The parts:
//!
//! * [`objects`]: the arrays and groups in a folder
//! * [`walk`]: every path of one of them
//! * [`probes`]: names that no folder lists
//! * [`neutral`]: replaces what differs between machines
//! * [`digests`]: the committed digests, and differences between two listings

mod digests;
mod neutral;
mod objects;
mod probes;
mod walk;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use digests::{differences, digests, full_text};
use neutral::Neutral;
use objects::objects_in;
use support::parallel;
use walk::every_path;

/// The number of differences that a failure shows.
const SHOWN: usize = 40;

#[test]
fn every_path_of_the_fixtures_shows_what_it_showed() {
    let committed = support::repository::root().join("tests/every_path/fixtures.digests");
    if let Ok(names) = env::var("TILEFS_ONLY") {
        let names: Vec<&str> = names.split(':').collect();
        let new = digests(&listing(tilefs_fixtures::fixtures(), &|name| names.contains(&name), None));
        let old = fs::read_to_string(&committed).expect("a file of the repository");
        let old: String = names.iter().map(|name| section(&old, name)).collect();
        assert_eq!(differences_of_digests(&old, &new), [""; 0]);
        return;
    }
    let text = listing(tilefs_fixtures::fixtures(), &|_| true, None);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_path");
    fs::create_dir_all(&folder).expect("a folder in target/");
    let (accepted, latest) = (folder.join("accepted.txt"), folder.join("latest.txt"));
    fs::write(&latest, &text).expect("a file in target/");
    let new = digests(&text);
    if env::var_os("TILEFS_ACCEPT").is_some_and(|accept| accept == "yes") {
        fs::write(&committed, &new).expect("the digests are written");
    }
    let old = fs::read_to_string(&committed).expect("a file of the repository");
    if old == new {
        fs::rename(&latest, &accepted).expect("a file in target/");
        return;
    }
    let known = fs::read_to_string(&accepted).ok().filter(|text| digests(text) == old);
    panic!("{}", explanation(&old, &new, known.as_deref(), &text, &latest));
}

/// Returns what a developer has to know about digests that differ.
fn explanation(old: &str, new: &str, known: Option<&str>, text: &str, latest: &Path) -> String {
    let (title, lines) = match known {
        Some(known) => ("paths", differences(known, text)),
        None => ("parts", differences_of_digests(old, new)),
    };
    let shown = lines[..lines.len().min(SHOWN)].join("\n");
    let how = match known {
        Some(_) => String::new(),
        None => format!(
            "\n{} has every path. To see which of them differ, run this test at the commit before the change, with the \
             same target folder, and then here again.",
            latest.display()
        ),
    };
    format!(
        "{} lines of {title} differ:\n{shown}{how}\nIf the change is meant: TILEFS_ACCEPT=yes cargo test --test every_path",
        lines.len()
    )
}

/// Returns the digests of an object, with the line of its name.
fn section(digests: &str, object: &str) -> String {
    let mut lines = digests.split_inclusive('\n').skip_while(|line| line.trim_end() != object);
    let name = lines.next().unwrap_or_else(|| panic!("{object} has no digests"));
    std::iter::once(name).chain(lines.take_while(|line| line.starts_with("  "))).collect()
}

#[test]
fn a_section_has_the_lines_of_its_object() {
    let digests = "a\n  1 .\n  2 b\na/b\n  3 .\nb\n  4 .\n";
    assert_eq!(["a", "a/b", "b"].map(|object| section(digests, object)).concat(), digests);
}

/// Returns the differences between digests, each line with its object.
fn differences_of_digests(old: &str, new: &str) -> Vec<String> {
    let lines = |text: &str| {
        let mut object = "";
        let mut lines = String::new();
        for line in text.lines() {
            match line.strip_prefix("  ").and_then(|rest| rest.split_once(' ')) {
                Some((digest, part)) => lines += &format!("{object}\t{}\t{digest}\n", part.trim_start()),
                None => object = line,
            }
        }
        lines
    };
    differences(&lines(old), &lines(new))
}

/// The program of `scripts/list_every_path.sh`.
#[test]
#[ignore = "lists the folders that TILEFS_LIST names"]
fn given_folders_are_listed() {
    let folders = env::var_os("TILEFS_LIST").expect("TILEFS_LIST names the folders to list");
    let out = env::var_os("TILEFS_LIST_TO").map(PathBuf::from).expect("TILEFS_LIST_TO names the file to write");
    let threads = env::var("TILEFS_LIST_THREADS").ok().map(|number| number.parse().expect("a number of threads"));
    let texts: Vec<String> = env::split_paths(&folders).map(|folder| listing(&folder, &|_| true, threads)).collect();
    fs::write(&out, texts.concat()).expect("the listing is written");
}

#[test]
fn a_listing_depends_on_the_data_and_not_on_the_folder_or_the_threads() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let [short, long] = ["s", "a_longer_name/below"].map(|name| place.path().join(name));
    for object in ["demo", "arrays/groups/experiment", "variants/v4"] {
        for folder in [&short, &long] {
            support::stored::copy_folder(&tilefs_fixtures::fixtures().join(object), &folder.join(object));
        }
    }
    let (one, many) = (listing(&short, &|_| true, Some(1)), listing(&long, &|_| true, Some(8)));
    assert_eq!(differences(&one, &many), [""; 0]);
    assert!(one.lines().count() > 1000 && !one.contains("panic"));
    fs::remove_dir_all(long.join("demo/__fragments")).expect("the fragments are there");
    let lost = differences(&one, &listing(&long, &|_| true, None));
    assert!(lost.iter().any(|line| line.starts_with("+ demo\ttemp.f32\t")), "{lost:?}");
    assert!(lost.iter().all(|line| line[2..].starts_with("demo\t")), "{lost:?}");
}

/// Returns every path of the arrays and groups in a folder whose names are wanted.
fn listing(folder: &Path, is_wanted: &dyn Fn(&str) -> bool, threads: Option<usize>) -> String {
    let neutral = Neutral::new(folder);
    let mut objects = objects_in(folder);
    objects.retain(|object| is_wanted(&object.name));
    assert!(!objects.is_empty(), "{} has no arrays and no groups", folder.display());
    let mut listed = parallel::map(&objects, |object| (object.name.clone(), every_path(object, &neutral, threads)));
    listed.sort();
    full_text(&listed)
}
