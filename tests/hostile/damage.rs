//! Reads damaged arrays: reads that need a damaged file fail with its place, all others are right, and none is ever
//! wrong.
//!
//! Removes, truncates, zeroes and alters every file of some fixtures in turn. Damage that the format makes detectable
//! is checked strictly: a byte is either the undamaged one or an error. A single altered byte is detectable only if a
//! checksum or a cipher covers it; otherwise it must at least cause no panic.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use support::manifest::{Object, load};
use support::parallel;
use tempfile::TempDir;
use tilefs_base::error::{Error, Result};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, Folder, Node};

/// Bytes per read: few, so that the surroundings of a damaged place are read separately.
const PIECE: usize = 128;

/// One way to damage a file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    Removed,
    Emptied,
    /// Truncated to half its length.
    Halved,
    /// Truncated by one byte.
    Shortened,
    Zeroed,
    /// One byte is altered, at this many thousandths of the length.
    Altered(usize),
}

use Damage::{Altered, Emptied, Halved, Removed, Shortened, Zeroed};

const LOSSES: [Damage; 5] = [Removed, Emptied, Halved, Shortened, Zeroed];

#[test]
fn lost_bytes_are_errors_and_never_other_values() {
    let faults = damage_all(&LOSSES, |_, _| true);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn altered_bytes_are_found_where_something_covers_them_and_cause_no_panic_anywhere() {
    let places: Vec<Damage> = (0..=12).map(|step| Altered(step * 83)).collect();
    let faults = damage_all(&places, is_covered);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// An error states array, fragment, file, field and offset exactly, as far as the format determines them.
#[test]
fn the_whole_place_is_told_at_once() {
    let demo = fixture("demo");
    let folder = subfolders(&demo.place.join("__fragments")).into_iter().max().expect("a fragment");
    let fragment = Path::new("__fragments").join(&folder);
    let (data, metadata) = (fragment.join("a0.tdb"), fragment.join("__fragment_metadata.tdb"));
    // A tile is a count of chunks (8 bytes), then for each chunk its decoded size, its stored size and the size of the
    // filters' metadata (4 bytes each), these metadata and the data. Small tiles are decoded as a whole, so the offset
    // is that of the tile.
    let whole = fs::read(demo.place.join(&data)).expect("a file is read");
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().expect("four bytes")) as usize;
    assert_eq!(number(0), 1, "one chunk in the first tile");
    let second_tile = 8 + 12 + number(12) + number(16);
    let damaged: [(&[u8], usize, &str); 3] = [
        (&[0xff; 8], 0, "field number of chunks"),
        (&[0xff; 4], 12, "field chunk header"),
        (&[0; 16], 28, "filter ZSTD"),
    ];
    for (bytes, at, part) in damaged {
        let copy = Copy::of(&demo);
        let mut stored = whole.clone();
        let at = second_tile + at;
        stored[at..at + bytes.len()].copy_from_slice(bytes);
        fs::remove_file(copy.path().join(&data)).expect("a file is removed");
        fs::write(copy.path().join(&data), stored).expect("a file is written");
        let shown = columns(&copy.path()).expect("the files of cells are not needed to open");
        let temp = shown.iter().find(|shown| shown.name == "temp.f32").expect("an attribute");
        let error = temp.read().into_iter().find_map(Result::err).expect("an error");
        let place = error.place().expect("a place");
        assert_eq!(place.array.as_deref(), copy.path().to_str(), "{error}");
        assert_eq!(place.fragment.as_deref(), Some(&*folder), "{error}");
        assert!(place.file.as_deref().is_some_and(|named| Path::new(named).ends_with(&data)), "{error}");
        let shown = place.to_string();
        assert!(shown.ends_with(&format!(", {part}, offset {second_tile}")), "{error}");
    }
    let copy = Copy::of(&demo);
    apply(Zeroed, &demo.place.join(&metadata), &copy.path().join(&metadata));
    let error = columns(&copy.path()).and_then(|shown| shown[0].read().swap_remove(0)).expect_err("an error");
    let place = error.place().expect("a place");
    assert_eq!((place.fragment.as_deref(), place.field.as_deref()), (Some(&*folder), Some("footer size")), "{error}");
}

#[test]
fn a_lost_fragment_gives_no_older_values() {
    let mut lost = 0;
    for object in objects().iter().filter(|object| object.tags.iter().any(|tag| tag == "overlap")) {
        let whole = undamaged(object);
        for folder in subfolders(&object.place.join("__fragments")) {
            let copy = Copy::of(object);
            fs::remove_dir_all(copy.path().join("__fragments").join(&folder)).expect("a folder is removed");
            let faults = compare(&whole, &copy.path(), &Path::new("__fragments").join(&folder), true);
            assert!(faults.is_empty(), "{}: {}", object.name, faults.join("\n"));
            let shown =
                columns(&copy.path()).map(|files| files.iter().all(|file| file.read().iter().all(Result::is_ok)));
            assert!(!shown.unwrap_or(false), "{}: nothing is missed without {folder}", object.name);
            lost += 1;
        }
    }
    assert!(lost > 10, "{lost} fragments");
}

#[test]
fn a_damaged_attribute_costs_no_other() {
    let objects = objects();
    let object =
        objects.iter().find(|object| object.name.ends_with("dense/filters_float32")).expect("a fixture of filters");
    for damage in LOSSES {
        let copy = Copy::of(object);
        let file =
            files_of(&object.place).into_iter().find(|file| file.ends_with("a3.tdb")).expect("a fourth attribute");
        apply(damage, &object.place.join(&file), &copy.path().join(&file));
        let shown = columns(&copy.path()).expect("an attribute's file is not needed to open");
        let mut damaged = 0;
        for after in &shown {
            let pieces = after.read();
            let is_fourth = after.name == "lz4.f32";
            assert!(is_fourth || pieces.iter().all(Result::is_ok), "{damage:?}: {} is not readable", after.name);
            damaged += pieces.iter().filter(|piece| piece.is_err()).count();
            if is_fourth && damage == Shortened {
                assert!(pieces.iter().any(Result::is_ok), "the tiles before the cut are readable");
            }
        }
        assert!(damaged > 0, "{damage:?} of a3.tdb is not noticed");
    }
}

#[test]
fn damaged_metadata_and_labels_cost_no_values() {
    for (name, part, folder) in [
        ("arrays/dense/metadata", "__meta", "meta"),
        ("arrays/dense/enumerations", "__enumerations", "enums"),
        ("arrays/dense/labels", "__labels", "labels"),
    ] {
        let object = &fixture(name);
        let whole = undamaged(object);
        let texts = texts_of(&object.place, folder).expect("the fixture is whole");
        let files: Vec<PathBuf> =
            all_files_of(&object.place).into_iter().filter(|file| file.iter().any(|one| one == part)).collect();
        assert!(!files.is_empty(), "{name} has no {part}");
        let mut noticed = 0;
        for file in files {
            for damage in LOSSES.into_iter().filter(|damage| *damage != Removed) {
                let copy = Copy::of(object);
                apply(damage, &object.place.join(&file), &copy.path().join(&file));
                let title = format!("{name} {} {damage:?}", file.display());
                let faults = compare(&whole, &copy.path(), &file, true);
                assert!(faults.is_empty(), "{title}: {}", faults.join("\n"));
                let shown = columns(&copy.path()).expect("it opens");
                let readable = shown.iter().all(|file| file.read().iter().all(Result::is_ok));
                assert!(readable, "{title}: the values need nothing of it");
                // The visible part of damaged data is right or an error.
                let after = match texts_of(&copy.path(), folder) {
                    Ok(after) => after,
                    Err(error) => {
                        noticed += 1;
                        assert_eq!(unclear(&error, &copy.path(), &file), None, "{title}");
                        continue;
                    }
                };
                for (one, bytes) in &after {
                    match bytes {
                        Ok(bytes) => {
                            let before =
                                texts.iter().find(|(name, _)| name == one).and_then(|(_, was)| was.as_ref().ok());
                            assert_eq!(before, Some(bytes), "{title}: {one}");
                        }
                        Err(error) => {
                            noticed += 1;
                            assert_eq!(unclear(error, &copy.path(), &file), None, "{title}");
                        }
                    }
                }
            }
        }
        assert!(noticed > 0, "{name}: no damage is noticed");
    }
}

#[test]
fn a_damaged_member_costs_no_other() {
    let group = fixture("arrays/groups/experiment");
    for member in ["raw", "results/run 1"] {
        let copy = Copy::of(&group);
        let schema = files_of(&copy.path().join(member)).into_iter().find(|file| file.starts_with("__schema"));
        let schema = Path::new(member).join(schema.expect("a member has a schema"));
        apply(Halved, &group.place.join(&schema), &copy.path().join(&schema));
        let open = |path: &[&str]| {
            let options = TreeOptions {
                reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 1, ..Default::default() },
                ..TreeOptions::default()
            };
            let mut folder = tree::open(&copy.path(), &options)?;
            for name in path {
                folder = support::shown::subfolder(&*folder, name)?;
            }
            support::shown::file(&*folder, "v", ".i32")
        };
        let members: [&[&str]; 3] = [&["raw"], &["results", "first run"], &["results", "second%2Frun"]];
        let readable = members.map(|path| open(path).is_ok());
        let expected = if member == "raw" { [false, true, true] } else { [true, false, true] };
        assert_eq!(readable, expected, "with {member} damaged");
    }
}

/// Damages every file of every array in all these ways; returns the failures. `strict` returns whether other values
/// than the undamaged ones are a failure for a file of an array.
fn damage_all(ways: &[Damage], strict: impl Fn(&Object, &Path) -> bool + Sync) -> Vec<String> {
    let objects = objects();
    let cases: Vec<(&Object, PathBuf)> =
        objects.iter().flat_map(|object| files_of(&object.place).into_iter().map(move |file| (object, file))).collect();
    println!("{} files of {} arrays, {} ways each", cases.len(), objects.len(), ways.len());
    assert!(!cases.is_empty());
    let wholes: Vec<_> = objects.iter().map(|object| (&object.name, undamaged(object))).collect();
    let faults = parallel::map(&cases, |(object, file)| {
        let (_, whole) = wholes.iter().find(|(name, _)| **name == object.name).expect("all are read before");
        let strict = strict(object, file);
        let mut faults = Vec::new();
        let copy = Copy::of(object);
        for &damage in ways {
            apply(damage, &object.place.join(file), &copy.path().join(file));
            let found = std::panic::catch_unwind(AssertUnwindSafe(|| compare(whole, &copy.path(), file, strict)));
            for fault in found.unwrap_or_else(|_| vec!["PANIC".to_owned()]) {
                faults.push(format!("{} {} {damage:?}: {fault}", object.name, file.display()));
            }
        }
        faults
    });
    faults.into_iter().flatten().collect()
}

/// The arrays to damage. Each has only one schema, so that readers cannot fall back to an older one.
fn objects() -> Vec<Object> {
    const NAMES: [&str; 13] = [
        "demo",
        "arrays/dense/filters_float32",
        "arrays/dense/filters_int64",
        "arrays/dense/filters_chunks",
        "arrays/dense/overlap",
        "arrays/dense/overlap_col",
        "arrays/dense/nullable",
        "arrays/dense/var",
        "arrays/dense/encrypted",
        "arrays/sparse/encrypted",
        "arrays/sparse/overlap",
        "arrays/sparse/dups",
        "arrays/sparse/dim_text",
    ];
    let manifest = tilefs_fixtures::fixtures().join("manifest.json");
    load(&manifest, "").into_iter().filter(|object| NAMES.contains(&object.name.as_str())).collect()
}

/// Returns a fixture by its path.
fn fixture(name: &str) -> Object {
    let manifest = tilefs_fixtures::fixtures().join("manifest.json");
    load(&manifest, "").into_iter().find(|object| object.name == name).unwrap_or_else(|| panic!("no fixture {name}"))
}

/// Returns whether a checksum or a cipher covers every byte of a file's chunks.
fn is_covered(object: &Object, file: &Path) -> bool {
    let name = file.file_name().expect("a file has a name").to_string_lossy();
    if object.key.is_some() {
        return fragment_of(file).is_some() && name != "__fragment_metadata.tdb";
    }
    let number =
        name.strip_prefix('a').and_then(|rest| rest.split(['.', '_']).next()).and_then(|digits| digits.parse().ok());
    let attrs = &object.schema.as_ref().expect("an array has a schema").attrs;
    number.and_then(|number: usize| attrs.get(number)).is_some_and(|attr| attr.name.starts_with("checksum"))
}

/// A copy of a fixture for damaging: it has links to the fixture's files until they are damaged. Its key is beside it.
struct Copy(TempDir);

impl Copy {
    fn of(object: &Object) -> Copy {
        let copy = Copy(TempDir::new().expect("a temporary folder"));
        link_folder(&object.place, &copy.path());
        if let Some(key) = &object.key {
            fs::write(key_file(&copy.path()), key).expect("a key is written");
        }
        copy
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("array")
    }
}

/// Returns the file with the key of a copy of an encrypted array.
fn key_file(array: &Path) -> PathBuf {
    array.with_file_name("key")
}

fn link_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder is made");
    for entry in fs::read_dir(from).expect("a folder is listed") {
        let entry = entry.expect("a folder is listed");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            link_folder(&entry.path(), &target);
        } else {
            // Damaging a file replaces the link, so the fixture stays intact.
            let made = fs::hard_link(entry.path(), &target).or_else(|_| fs::copy(entry.path(), &target).map(drop));
            made.expect("a file is linked or copied");
        }
    }
}

/// Returns all files that affect values and are not empty, as commit markers are, relative to the folder.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut found = all_files_of(folder);
    // Metadata are presented in files of their own.
    found.retain(|file| !file.starts_with("__meta"));
    found
}

fn all_files_of(folder: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, base: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder is listed") {
            let path = entry.expect("a folder is listed").path();
            if path.is_dir() {
                walk(&path, base, found);
            } else if path.metadata().expect("a file has a length").len() > 0 {
                found.push(path.strip_prefix(base).expect("within the folder").to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

fn subfolders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder is listed");
    entries.map(|entry| entry.expect("a folder is listed").file_name().to_string_lossy().into_owned()).collect()
}

/// Replaces a file of the copy by damaged bytes.
fn apply(damage: Damage, original: &Path, copy: &Path) {
    let mut bytes = fs::read(original).expect("a file is read");
    // Earlier damage may have removed it.
    let _ = fs::remove_file(copy);
    match damage {
        Removed => return,
        Emptied => bytes.clear(),
        Halved => bytes.truncate(bytes.len() / 2),
        Shortened => bytes.truncate(bytes.len() - 1),
        Zeroed => bytes.fill(0),
        Altered(thousandths) => {
            let place = (bytes.len() - 1) * thousandths / 1000;
            bytes[place] ^= 0x55;
        }
    }
    fs::write(copy, bytes).expect("a file is written");
}

/// Returns a raw file of the tree.
struct Shown {
    name: String,
    file: std::sync::Arc<dyn tilefs_vfs::File>,
}

impl Shown {
    /// Returns its bytes, piece by piece; a single error if even its length is unknown.
    fn read(&self) -> Vec<Result<Vec<u8>>> {
        let (length, content) = match (self.file.len(), self.file.open()) {
            (Ok(length), Ok(content)) => (length, content),
            (Err(error), _) | (_, Err(error)) => return vec![Err(error)],
        };
        assert_eq!(length, content.len(), "{}: the length", self.name);
        let pieces = (0..length).step_by(PIECE).map(|offset| {
            let mut piece = vec![0; PIECE.min((length - offset) as usize)];
            content.read_at(offset, &mut piece).map(|()| piece)
        });
        pieces.collect()
    }
}

/// Returns the bytes of all columns of an undamaged array, by file name.
fn undamaged(object: &Object) -> Vec<(String, Vec<u8>)> {
    let copy = Copy::of(object);
    let files = columns(&copy.path()).unwrap_or_else(|error| panic!("{}: {error}", object.name));
    let read = |file: Shown| {
        let pieces: Result<Vec<Vec<u8>>> = file.read().into_iter().collect();
        let bytes = pieces.unwrap_or_else(|error| panic!("{} {}: {error}", object.name, file.name)).concat();
        (file.name, bytes)
    };
    files.into_iter().map(read).collect()
}

/// Returns the raw files of all columns, including coordinates.
fn columns(array: &Path) -> Result<Vec<Shown>> {
    let key_file = Some(key_file(array)).filter(|file| file.exists());
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions {
            at: Some(u64::MAX),
            cache_size: 1 << 20,
            threads: 1,
            key_file,
            ..Default::default()
        },
        ..TreeOptions::default()
    };
    let root = tree::open(array, &options)?;
    let mut found = raw_files(&*root, "")?;
    if let Some(Node::Folder(dims)) = root.lookup("dims")? {
        found.extend(raw_files(&*dims, "dims/")?);
    }
    Ok(found)
}

/// Returns the files of a folder of the tree, each as bytes or an error.
fn texts_of(array: &Path, folder: &str) -> Result<Vec<(String, Result<Vec<u8>>)>> {
    let root = tree::open(
        array,
        &TreeOptions {
            reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 1, ..Default::default() },
            ..TreeOptions::default()
        },
    )?;
    let folder = support::shown::subfolder(&*root, folder)?;
    let mut found = Vec::new();
    for entry in folder.list()?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
        let bytes = support::shown::file(&*folder, &support::shown::decoded(&entry.name), "");
        found.push((entry.name, bytes));
    }
    Ok(found)
}

fn raw_files(folder: &dyn Folder, prefix: &str) -> Result<Vec<Shown>> {
    let generated = [".txt", ".json", ".tsv", ".hdr"];
    let mut found = Vec::new();
    for entry in folder.list()?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
        if !generated.iter().any(|ending| entry.name.ends_with(ending))
            && let Some(Node::File(file)) = folder.lookup(&entry.name)?
        {
            found.push(Shown { name: format!("{prefix}{}", entry.name), file });
        }
    }
    Ok(found)
}

/// Compares the columns of a damaged array with the undamaged ones. Errors must name `damaged`.
fn compare(whole: &[(String, Vec<u8>)], array: &Path, damaged: &Path, strict: bool) -> Vec<String> {
    let shown = match columns(array) {
        Ok(shown) => shown,
        Err(error) => return unclear(&error, array, damaged).into_iter().collect(),
    };
    let mut faults = Vec::new();
    for (name, expected) in whole {
        let Some(after) = shown.iter().find(|after| after.name == *name) else {
            faults.push(format!("{name} is gone"));
            continue;
        };
        let pieces = after.read();
        let unopened = pieces.len() == 1 && pieces[0].is_err();
        if strict && !unopened && pieces.len() != expected.len().div_ceil(PIECE) {
            faults.push(format!("{name} has another length"));
            continue;
        }
        for (number, piece) in pieces.iter().enumerate() {
            let place = number * PIECE..((number + 1) * PIECE).min(expected.len());
            match piece {
                Err(error) => faults.extend(unclear(error, array, damaged)),
                Ok(bytes) if strict && expected.get(place.clone()) != Some(bytes) => {
                    faults.push(format!("{name} has other bytes from {}", place.start));
                }
                Ok(_) => {}
            }
        }
    }
    faults.dedup();
    faults.truncate(3);
    faults
}

/// Returns why an error is incomplete. It must have one line with a reason and the whole place: the array, the fragment
/// and file that are damaged, and if stored bytes are wrong, the offset or the field.
fn unclear(error: &Error, array: &Path, damaged: &Path) -> Option<String> {
    let text = error.to_string();
    if text.chars().any(char::is_control) {
        return Some(format!("the error has control characters: {text:?}"));
    }
    let reason = match error {
        Error::Damaged { reason, .. }
        | Error::Missing { reason, .. }
        | Error::Io { reason, .. }
        | Error::Key { reason, .. } => reason,
        Error::Unsupported { what, .. } => what,
        // Without a schema, the folder is not recognized as an array.
        Error::NotAnArray { reason, .. } if damaged.starts_with("__schema") && !reason.is_empty() => return None,
        _ => return Some(format!("another kind of error: {text}")),
    };
    let Some(place) = error.place() else { return Some(format!("no place: {text}")) };
    let fragment = fragment_of(damaged);
    let file = place.file.as_deref().map(Path::new);
    let names_damaged = file.is_some_and(|file| file.ends_with(damaged.file_name().unwrap_or_default()));
    // The contradiction may show in another file, to which damaged metadata of the fragment refer.
    let names_fragment = file.is_some() && fragment.is_some();
    let lacking = [
        ("a reason", !reason.is_empty()),
        ("the array", place.array.as_deref().is_some_and(|named| Path::new(named).starts_with(array))),
        ("the fragment", fragment.is_none() || place.fragment.as_deref() == fragment),
        ("the file", names_damaged || names_fragment),
        (
            "an offset, a filter or a field",
            matches!(error, Error::Io { .. } | Error::Missing { .. })
                || place.offset.is_some()
                || place.filter.is_some()
                || place.field.is_some(),
        ),
    ];
    let lacking: Vec<&str> = lacking.into_iter().filter(|(_, said)| !said).map(|(what, _)| what).collect();
    (!lacking.is_empty()).then(|| format!("the error lacks {}: {text}", lacking.join(", ")))
}

/// Returns the name of the fragment that contains a file of an array, or that the file itself is.
fn fragment_of(file: &Path) -> Option<&str> {
    file.strip_prefix("__fragments").ok()?.iter().next()?.to_str()
}
