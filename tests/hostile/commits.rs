//! Damaged files of consolidated commits. They have no checksum, and without other evidence nobody would miss a
//! fragment that they lose.

use std::fs;
use std::path::{Path, PathBuf};

use support::parallel;
use support::stored::{Copy, file_below};
use tilefs_base::error::{Error, Result};
use tilefs_reader::array::verify::{Progress, verify};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, Folder};

/// Returns all raw files of an array, including coordinates.
fn values(array: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let root = tree::open(
        array,
        &TreeOptions {
            reading: tilefs_reader::ReaderOptions { threads: 1, cache_size: 1 << 20, ..Default::default() },
            ..TreeOptions::default()
        },
    )?;
    let raw = |folder: &dyn Folder| -> Result<Vec<(String, Vec<u8>)>> {
        let explains = [".txt", ".json", ".tsv", ".hdr"];
        let entries = folder.list()?.into_iter().filter(|entry| entry.kind == EntryKind::File);
        let raw = entries.filter(|entry| !explains.iter().any(|ending| entry.name.ends_with(ending)));
        raw.map(|entry| Ok((entry.name.clone(), support::shown::file(folder, &entry.name, "")?))).collect()
    };
    let mut values = raw(&*root)?;
    values.extend(raw(&*support::shown::subfolder(&*root, "dims")?)?);
    Ok(values)
}

/// Merges all commits of an array into one file, as consolidation and vacuuming of commits do.
fn consolidate_commits(array: &Path) -> PathBuf {
    let folder = array.join("__commits");
    let mut marks: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    marks.sort();
    let mut bytes = Vec::new();
    for mark in marks.iter().filter(|mark| mark.extension().is_some_and(|kind| kind == "wrt" || kind == "del")) {
        bytes.extend(format!("__commits/{}\n", mark.file_name().unwrap().to_str().unwrap()).bytes());
        if mark.extension().is_some_and(|kind| kind == "del") {
            let delete = fs::read(mark).unwrap();
            bytes.extend((delete.len() as u64).to_le_bytes());
            bytes.extend(delete);
        }
        fs::remove_file(mark).unwrap();
    }
    let file = folder.join("__1600000001000_1600000005000_0123456789abcdef0123456789abcdef_22.con");
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn no_flipped_bit_in_consolidated_commits_gives_other_values() {
    for fixture in ["sparse/deletes", "sparse/overlap", "dense/consolidated_vacuumed"] {
        let first = Copy::of(fixture);
        let whole = values(&first.path()).unwrap();
        let bits: Vec<usize> = {
            if file_below(&first.path().join("__commits"), ".con").is_none() {
                consolidate_commits(&first.path());
            }
            let file = first.file("__commits", ".con");
            (0..8 * fs::metadata(file).unwrap().len() as usize).collect()
        };
        assert_eq!(values(&first.path()).unwrap(), whole, "{fixture}");
        let outcomes = parallel::map(&bits.chunks(64).collect::<Vec<_>>(), |bits| {
            let copy = Copy::of(fixture);
            let file = match file_below(&copy.path().join("__commits"), ".con") {
                Some(file) => file,
                None => consolidate_commits(&copy.path()),
            };
            let bytes = fs::read(&file).unwrap();
            let outcome = |bit: &usize| {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                fs::write(&file, flipped).unwrap();
                match values(&copy.path()) {
                    Ok(values) if values == whole => Outcome::Right,
                    Ok(_) => Outcome::Wrong(*bit),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("__commits") && text.contains("array "), "bit {bit}: {text}");
                        Outcome::Refused
                    }
                }
            };
            bits.iter().map(outcome).collect::<Vec<_>>()
        });
        let outcomes = outcomes.concat();
        let count = |wanted: &Outcome| outcomes.iter().filter(|outcome| *outcome == wanted).count();
        let wrong: Vec<&Outcome> = outcomes.iter().filter(|one| matches!(one, Outcome::Wrong(_))).collect();
        let (refused, right) = (count(&Outcome::Refused), count(&Outcome::Right));
        println!("{fixture}: {} bits, {refused} refused, {right} without effect, {wrong:?}", bits.len());
        assert!(wrong.is_empty() && refused > 0, "{fixture}: {} bits give other values", wrong.len());
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Refused,
    Right,
    /// Other values, after this bit was flipped.
    Wrong(usize),
}

/// After a vacuum, an ignore file revokes names that consolidated commits still contain.
#[test]
fn what_an_ignore_file_takes_back_is_not_missed() {
    let copy = Copy::of("sparse/overlap");
    let file = consolidate_commits(&copy.path());
    let text = fs::read_to_string(&file).unwrap();
    let first = text.lines().next().unwrap();
    let name = first.strip_prefix("__commits/").unwrap().strip_suffix(".wrt").unwrap();
    fs::remove_dir_all(copy.path().join("__fragments").join(name)).unwrap();
    let error = values(&copy.path()).unwrap_err();
    assert!(matches!(&error, Error::Damaged { .. }) && error.to_string().contains(name), "{error}");
    fs::write(file.with_extension("ign"), format!("{first}\n")).unwrap();
    assert!(values(&copy.path()).is_ok());
}

/// A reader that lists an array between the last file of a fragment and its commit sees an uncommitted fragment.
#[test]
fn a_commit_in_progress_is_not_a_lost_one() {
    let copy = Copy::of("sparse/overlap");
    let directory = || tree::open_array(&copy.path(), &TreeOptions::default()).unwrap().folder().clone();
    let mark = copy.file("__commits", ".wrt");
    fs::remove_file(&mark).unwrap();
    assert!(matches!(directory().directory().warnings(), [one] if one.contains("its commit is lost")));
    assert!(directory().directory().uncommitted().is_empty());
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let name = format!("__{now}_{now}_0123456789abcdef0123456789abcdef_22");
    let old = copy.path().join("__fragments").join(mark.file_stem().unwrap());
    fs::rename(old, copy.path().join("__fragments").join(&name)).unwrap();
    assert!(directory().directory().warnings().is_empty());
    assert_eq!(directory().directory().uncommitted(), [format!("__fragments/{name}").into()]);
}

/// A lost commit looks like one that is about to be written; README.txt and verification name both.
#[test]
fn complete_fragments_without_a_commit_are_named() {
    for is_recent in [false, true] {
        let copy = Copy::of("sparse/overlap");
        let mark = copy.file("__commits", ".wrt");
        fs::remove_file(&mark).unwrap();
        let mut name = mark.file_stem().unwrap().to_str().unwrap().to_owned();
        if is_recent {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
            let recent = format!("__{now}_{now}_0123456789abcdef0123456789abcdef_22");
            let fragments = copy.path().join("__fragments");
            fs::rename(fragments.join(&name), fragments.join(&recent)).unwrap();
            name = recent;
        }
        let root = tree::open(&copy.path(), &TreeOptions::default()).unwrap();
        let readme = String::from_utf8(support::shown::file(&*root, "README.txt", "").unwrap()).unwrap();
        let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
        let array = tree::open_array(&copy.path(), &TreeOptions::default()).unwrap();
        let findings = verify(&array, &Progress::default());
        assert!(findings.places.is_empty());
        let advice = format!("an empty file __commits/{name}.wrt shows it");
        assert!(matches!(&findings.warnings[..], [one] if one.contains(&advice)), "{:?}", findings.warnings);
        assert!(readme.contains(&advice), "{readme}");
    }
}

/// libtiledb 2.14 left the commits of fragments behind that it vacuumed after their commits were consolidated.
#[test]
fn commits_that_a_vacuum_left_behind_are_a_remark() {
    let copy = Copy::of("dense/consolidated");
    let whole = values(&copy.path()).unwrap();
    let marks = fs::read_dir(copy.path().join("__commits")).unwrap().map(|entry| entry.unwrap().path());
    let marks = marks.filter(|path| path.extension().is_some_and(|kind| kind == "wrt"));
    let names: Vec<String> = marks.map(|mark| mark.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let fragments = copy.path().join("__fragments");
    let take_away = |name: &String| fs::remove_dir_all(fragments.join(name)).unwrap();
    let ignore = |names: &[&String]| {
        let lines: String = names.iter().map(|name| format!("__commits/{name}.wrt\n")).collect();
        let file = "__1600000001000_1600000003000_0123456789abcdef0123456789abcdef_22.ign";
        fs::write(copy.path().join("__commits").join(file), lines).unwrap();
    };
    let is_original = |name: &&String| {
        let mut times = name.split('_').filter(|part| part.len() == 13);
        let (first, last) = (times.next().unwrap(), times.next().unwrap());
        first == last && first != "1600000004000"
    };
    let originals: Vec<&String> = names.iter().filter(is_original).collect();
    assert_eq!(originals.len(), 3);
    originals.iter().for_each(|name| take_away(name));
    fs::remove_file(copy.file("__commits", ".vac")).unwrap();
    assert!(values(&copy.path()).is_err(), "their commits are there");
    ignore(&originals);
    assert_eq!(values(&copy.path()).unwrap(), whole);
    let array = tree::open_array(&copy.path(), &TreeOptions::default()).unwrap();
    let findings = verify(&array, &Progress::default());
    assert!(findings.places.is_empty(), "{:?}", findings.places);
    assert!(matches!(&findings.warnings[..], [one] if one.contains("3 committed fragments are not there")));
    // Nothing covers the time of another fragment that is named.
    let other = names.iter().find(|name| name.contains("_1600000004000_")).unwrap();
    ignore(&[&originals[..], &[other]].concat());
    take_away(other);
    assert!(values(&copy.path()).is_err());
}

#[test]
fn fragments_without_a_folder_of_commits_are_no_empty_array() {
    for fixture in ["sparse/overlap", "dense/overlap"] {
        let copy = Copy::of(fixture);
        fs::remove_dir_all(copy.path().join("__commits")).unwrap();
        let error = values(&copy.path()).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains("__commits"), "{error}");
    }
    // An array without commits is empty.
    let copy = Copy::of("sparse/empty");
    let whole = values(&copy.path()).unwrap();
    let _ = fs::remove_dir_all(copy.path().join("__commits"));
    assert_eq!(values(&copy.path()).unwrap(), whole);
}

/// Some libraries name files of commits after the first and the last commit in them, even if these are not in order of
/// time.
#[test]
fn times_of_lists_need_not_ascend() {
    let copy = Copy::of("sparse/overlap");
    let whole = values(&copy.path()).unwrap();
    let file = consolidate_commits(&copy.path());
    fs::rename(&file, file.with_file_name("__9_3_0123456789abcdef0123456789abcdef_13.con")).unwrap();
    assert_eq!(values(&copy.path()).unwrap(), whole);
}

#[test]
fn a_part_that_is_a_link_to_nowhere_is_not_empty() {
    for (fixture, part) in [
        ("sparse/overlap", "__commits"),
        ("sparse/overlap", "__fragments"),
        ("sparse/overlap", "__schema"),
        ("dense/metadata", "__meta"),
        ("groups/experiment", "__group"),
        ("groups/experiment", "__meta"),
    ] {
        for is_link in [true, false] {
            let copy = Copy::of(fixture);
            let path = copy.path().join(part);
            fs::remove_dir_all(&path).unwrap();
            match is_link {
                true => std::os::unix::fs::symlink("nowhere", &path).unwrap(),
                false => fs::write(&path, []).unwrap(),
            }
            let looked = match tree::open_stored(&copy.path(), &TreeOptions::default()) {
                Err(error) => Err(error),
                Ok(tree::Stored::Array(array)) => array.metadata().map(drop),
                Ok(tree::Stored::Group(group)) => group.members().and_then(|_| group.metadata()).map(drop),
                Ok(tree::Stored::Directory(_)) => panic!("it is an array or a group"),
            };
            let error = looked.expect_err(part);
            // The target of a link may exist again at the next attempt.
            let is_told =
                if is_link { matches!(error, Error::Io { .. }) } else { matches!(error, Error::Damaged { .. }) };
            assert!(is_told && error.to_string().contains(part), "{part}: {error}");
        }
    }
}

/// A vacuum removes the commit, then the fragment, and last the vacuum file that names it.
#[test]
fn what_a_vacuum_is_about_to_take_away_is_explained() {
    let warnings = |copy: &Copy| {
        let array = tree::open_array(&copy.path(), &TreeOptions::default()).unwrap();
        array.folder().directory().warnings().to_vec()
    };
    let copy = Copy::of("sparse/consolidated");
    let whole = values(&copy.path()).unwrap();
    let mark = copy.file("__commits", ".wrt");
    let name = mark.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(fs::read_to_string(copy.file("__commits", ".vac")).unwrap().contains(&name));
    assert!(warnings(&copy).is_empty());
    fs::remove_file(mark).unwrap();
    assert!(warnings(&copy).is_empty());
    assert_eq!(values(&copy.path()).unwrap(), whole);
    fs::remove_dir_all(copy.path().join("__fragments").join(&name)).unwrap();
    assert!(matches!(&warnings(&copy)[..], [one] if one.contains("vacuum") && one.contains(&name)));
    assert_eq!(values(&copy.path()).unwrap(), whole);
    fs::remove_file(copy.file("__commits", ".vac")).unwrap();
    // Without the vacuum file, two other fragments count again, but none is missing.
    assert!(warnings(&copy).is_empty());
}
