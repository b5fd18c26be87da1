//! The results of passes that one mount saves are used by the next one, which repeats no pass and shows the same bytes,
//! unless the array has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Once};

use tilefs_base::statistics::Value;
use tilefs_threads as threads;
use tilefs_tree::{self as tree, IndexOptions, TreeOptions};
use tilefs_vfs::{Folder, Node, ServedTree};

/// The key of the encrypted fixtures.
const KEYS: [(&str, &str); 2] =
    [("dense", "0123456789abcdeF0123456789abcdeF"), ("sparse", "abcdefghijklmnopqrstuvwxyz012345")];

/// A folder for saved results, and the options with it.
struct Index {
    folder: tempfile::TempDir,
}

impl Index {
    fn new() -> Self {
        static TEAM: Once = Once::new();
        TEAM.call_once(|| threads::start_team(threads::usual()));
        Index { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn options(&self) -> TreeOptions {
        let index = IndexOptions { folder: self.path(), most: 64 << 20, is_required: true, least_cells: 0 };
        TreeOptions {
            reading: tilefs_reader::ReaderOptions {
                index: Some(index),
                threads: 2,
                cache_size: 32 << 20,
                ..Default::default()
            },
            ..TreeOptions::default()
        }
    }

    fn entries(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|suffix| suffix == "tilefs-index")).collect()
    }
}

/// The files of a mount, and its counters.
struct Seen {
    /// By path, the bytes of a file or its error.
    files: BTreeMap<String, Result<Vec<u8>, String>>,
    statistics: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn count(&self, name: &str) -> u64 {
        self.statistics[name]
    }
}

/// Unlisted files whose sizes take a pass over cells.
const UNLISTED: [&str; 7] = [
    "text/cells.csv",
    "by-row/README.txt",
    "by-row/text/cells.tsv",
    "text/parts/000000000000000.tsv",
    "text/parts-without-header/000000000000000.csv",
    "zarr/zarr.json",
    "zarr/indptr/c/0",
];

/// Reads all listed files of an array, and some unlisted ones.
fn mount(path: &Path, options: &TreeOptions) -> Seen {
    let stored = tree::open_stored(path, options).unwrap();
    let tree = tree::MountedTree::new(stored, options).unwrap();
    let mut files = BTreeMap::new();
    read_all(&tree.root(), "", &mut files);
    for path in UNLISTED {
        let found = path.split('/').try_fold(Node::Folder(tree.root()), |node, name| match node {
            Node::Folder(folder) => folder.lookup(name).ok().flatten(),
            Node::File(_) => None,
        });
        if let Some(Node::File(file)) = found {
            files.insert(path.to_owned(), bytes_of(&*file));
        }
    }
    let total = |value| match value {
        Value::Total(count) => Some(count),
        _ => None,
    };
    let statistics = tree.statistics();
    let statistics = statistics.iter().filter_map(|one| Some((one.name, total(one.value)?))).collect();
    Seen { files, statistics }
}

fn bytes_of(file: &dyn tilefs_vfs::File) -> Result<Vec<u8>, String> {
    let read = || {
        let content = file.open()?;
        let mut bytes = vec![0; content.len() as usize];
        // Read in pieces, as a kernel does.
        for (number, piece) in bytes.chunks_mut(5000).enumerate() {
            content.read_at(5000 * number as u64, piece)?;
        }
        Ok(bytes)
    };
    read().map_err(|error: tilefs_base::error::Error| error.to_string())
}

fn read_all(folder: &Arc<dyn Folder>, path: &str, files: &mut BTreeMap<String, Result<Vec<u8>, String>>) {
    for entry in folder.list().unwrap() {
        let path = format!("{path}{}", entry.name);
        match folder.lookup(&entry.name).unwrap().unwrap() {
            Node::Folder(inner) if entry.name != "slice" && entry.name != "islice" => {
                read_all(&inner, &format!("{path}/"), files);
            }
            Node::Folder(_) => {}
            Node::File(file) => drop(files.insert(path, bytes_of(&*file))),
        }
    }
}

/// Texts depend on whether the rows are already counted, so they may differ.
fn without_texts(seen: &Seen) -> BTreeMap<&str, &Result<Vec<u8>, String>> {
    let is_text = |path: &str| ["README.txt", "schema.txt", "schema.json"].iter().any(|name| path.ends_with(name));
    seen.files.iter().map(|(path, bytes)| (path.as_str(), bytes)).filter(|(path, _)| !is_text(path)).collect()
}

fn compare(one: &Seen, other: &Seen, about: &str) {
    let (one, other) = (without_texts(one), without_texts(other));
    assert!(one.keys().eq(other.keys()), "{about}: {:?}, {:?}", one.keys(), other.keys());
    for (path, bytes) in one {
        assert!(*bytes == *other[path], "{about}: {path} differs");
    }
}

fn fixtures() -> Vec<PathBuf> {
    let root = tilefs_fixtures::fixtures().join("arrays");
    let mut all: Vec<PathBuf> = ["dense", "sparse"]
        .iter()
        .flat_map(|kind| fs::read_dir(root.join(kind)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // Of the dense arrays, only those with variable-length values or tables.
            let is_dense = path.parent().is_some_and(|kind| kind.ends_with("dense"));
            let has_measures =
                ["var", "dims_1", "enumerations", "types_text", "evolution"].iter().any(|part| name.contains(part));
            name != "encrypted" && (!is_dense || has_measures)
        })
        .collect();
    all.sort();
    assert!(all.len() > 40, "{}", all.len());
    all
}

fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_second_mount_finds_out_nothing_again() {
    let mut merged = 0;
    let mut measured = 0;
    for path in fixtures() {
        let index = Index::new();
        let without = mount(
            &path,
            &TreeOptions {
                reading: tilefs_reader::ReaderOptions { index: None, ..index.options().reading },
                ..index.options()
            },
        );
        let first = mount(&path, &index.options());
        let second = mount(&path, &index.options());
        let name = path.display().to_string();
        compare(&without, &first, &name);
        compare(&first, &second, &name);
        assert_eq!([second.count("merged_cells"), second.count("measured_rows")], [0, 0], "{name}");
        assert_eq!(second.count("index_writes"), 0, "{name}");
        // Within one mount, a view of an array also uses the results that another one saved.
        assert!(without.count("merged_cells") >= first.count("merged_cells"), "{name}");
        merged += first.count("merged_cells");
        measured += first.count("measured_rows");
    }
    assert!(merged > 1000 && measured > 1000, "{merged} {measured}");
}

/// Each state of an array has its own entries, which stay while other states are read.
#[test]
fn other_times_of_an_array_have_other_entries() {
    let mut times_seen = 0;
    let changing = ["deletes", "consolidated", "overlap", "evolution", "nullable", "var", "enumerations"];
    let is_changing = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        changing.iter().any(|part| name.starts_with(part)) && !name.contains("vacuumed") && name != "deletes_many"
    };
    for path in fixtures().into_iter().filter(is_changing) {
        let index = Index::new();
        let stored = tree::open_array(&path, &TreeOptions::default()).unwrap();
        let mut times = stored.folder().commit_times().unwrap();
        times.insert(0, 1);
        for round in 0..2 {
            for at in &times {
                for from in [None, Some(times[times.len() / 2])] {
                    let options = TreeOptions {
                        reading: tilefs_reader::ReaderOptions {
                            at: Some(*at),
                            from: from.filter(|from| from <= at),
                            ..index.options().reading
                        },
                        ..index.options()
                    };
                    let about = format!("{} {at} {from:?} {round}", path.display());
                    let without = TreeOptions {
                        reading: tilefs_reader::ReaderOptions { index: None, ..options.reading.clone() },
                        ..options.clone()
                    };
                    let (Ok(stored), Ok(other)) =
                        (tree::open_stored(&path, &options), tree::open_stored(&path, &without))
                    else {
                        continue;
                    };
                    if tree::root(stored, &options).is_err() || tree::root(other, &without).is_err() {
                        continue;
                    }
                    compare(&mount(&path, &options), &mount(&path, &without), &about);
                    times_seen += 1;
                }
            }
        }
    }
    assert!(times_seen > 60, "{times_seen}");
}

/// Arrays that replace each other: the same path, but other fragments, deletes, schemas.
#[test]
fn an_array_in_the_place_of_another_has_other_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (index, place) = (Index::new(), folder.path().join("array"));
    let (mut arrays, mut unlisted) = (0, BTreeSet::new());
    for _ in 0..2 {
        for path in fixtures().iter().filter(|path| path.parent().is_some_and(|kind| kind.ends_with("sparse"))) {
            copied(path, &place);
            let seen = mount(&place, &index.options());
            compare(
                &seen,
                &mount(
                    &place,
                    &TreeOptions {
                        reading: tilefs_reader::ReaderOptions { index: None, ..index.options().reading },
                        ..index.options()
                    },
                ),
                &path.display().to_string(),
            );
            arrays += 1;
            unlisted.extend(UNLISTED.into_iter().filter(|path| seen.files.contains_key(*path)));
        }
    }
    assert!(arrays > 50, "{arrays} arrays");
    assert_eq!(unlisted.len(), UNLISTED.len(), "{unlisted:?} alone were found");
    // One fragment less, as after a vacuum.
    let path = tilefs_fixtures::fixtures().join("arrays/sparse/overlap");
    copied(&path, &place);
    let whole = mount(&place, &index.options());
    let last = fs::read_dir(place.join("__commits")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    fs::remove_file(last).unwrap();
    let less = mount(&place, &index.options());
    compare(
        &less,
        &mount(
            &place,
            &TreeOptions {
                reading: tilefs_reader::ReaderOptions { index: None, ..index.options().reading },
                ..index.options()
            },
        ),
        "a fragment less",
    );
    assert!(without_texts(&less) != without_texts(&whole));
}

#[test]
fn damaged_entries_change_nothing() {
    let root = tilefs_fixtures::fixtures().join("arrays");
    for name in [
        "sparse/overlap_text",
        "sparse/deletes",
        "sparse/overlap_hilbert",
        "sparse/types",
        "dense/var",
        "sparse/soma_matrix",
    ] {
        let path = root.join(name);
        let index = Index::new();
        let right = mount(&path, &index.options());
        for round in 0..3u8 {
            let entries = index.entries();
            assert!(!entries.is_empty(), "{name}");
            for (number, entry) in entries.iter().enumerate() {
                let mut bytes = fs::read(entry).unwrap();
                match round {
                    0 => {
                        let at = (number * 7919) % bytes.len();
                        bytes[at] ^= 1 << (number % 8);
                    }
                    1 => bytes.truncate((number * 31) % bytes.len()),
                    // The entry of another key.
                    _ => bytes = fs::read(&entries[(number + 1) % entries.len()]).unwrap(),
                }
                fs::write(entry, bytes).unwrap();
            }
            let seen = mount(&path, &index.options());
            compare(&right, &seen, name);
            // The damaged entries were misses, and were written again.
            assert!(seen.count("index_misses") > 0 && seen.count("index_writes") > 0, "{name} {round}");
            assert_eq!(mount(&path, &index.options()).count("index_writes"), 0, "{name} {round}");
        }
    }
}

#[test]
fn nothing_is_saved_of_what_is_read_with_a_key() {
    let index = Index::new();
    let key_file = index.folder.path().join("key");
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { key_file: Some(key_file.clone()), ..index.options().reading },
        ..index.options()
    };
    for (kind, key) in KEYS {
        fs::write(&key_file, key).unwrap();
        let path = tilefs_fixtures::fixtures().join("arrays").join(kind).join("encrypted");
        mount(&path, &options);
    }
    assert_eq!(index.entries(), [] as [PathBuf; 0]);
}

/// Writes a generated array.
fn written(folder: &Path, name: &str) -> PathBuf {
    let (array, root) = (support::generated::array::Array::named(name).unwrap(), folder.join(name));
    for object in (0..array.objects()).map(|number| array.object(number)) {
        let path = root.join(array.key(object));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, array.read(object, 0..array.len(object))).unwrap();
    }
    root
}

/// Runs the program with a cache directory, and otherwise default settings; returns its output or its error.
fn tilefs(cache: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
    let output = command.env("XDG_CACHE_HOME", cache).env_remove("TILEFS_INDEX_DIR").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn commands_tell_each_other_how_many_rows_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, path) = (folder.path().join("cache"), written(folder.path(), "overlapping-200000-f20"));
    let array = path.to_str().unwrap();
    let info = || tilefs(&cache, &["info", array]).unwrap();
    assert!(info().contains("rows_at_most"), "{}", info());
    // No count is saved: none was computed, or there was no folder for it.
    tilefs(&cache, &["ls", "-l", array, "--index-dir", "none"]).unwrap();
    assert!(info().contains("rows_at_most"), "{}", info());
    let listed = tilefs(&cache, &["ls", "-lR", array]).unwrap();
    assert!(!info().contains("rows_at_most"), "{}", info());
    assert!(fs::read_dir(cache.join("tilefs/index")).unwrap().count() > 2);
    // The sizes come from the saved results, because without the files of coordinates they cannot be computed.
    let sizes = |listed: &str| {
        let text = listed.lines().filter(|line| line.ends_with("cells.tsv"));
        text.map(str::to_owned).collect::<Vec<_>>()
    };
    for fragment in fs::read_dir(path.join("__fragments")).unwrap() {
        for file in ["d0.tdb", "d1.tdb", "a0.tdb"] {
            let _ = fs::write(fragment.as_ref().unwrap().path().join(file), b"");
        }
    }
    let again = tilefs(&cache, &["ls", "-lR", array]).unwrap();
    assert_eq!((sizes(&again), sizes(&again).len()), (sizes(&listed), 1));
}

#[test]
fn a_folder_that_was_given_must_be_usable_and_another_need_not() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, path) = (folder.path().join("cache"), written(folder.path(), "overlapping-200000-f20"));
    let array = path.to_str().unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let complaint = tilefs(&cache, &["info", array, "--index-dir", open.to_str().unwrap()]).unwrap_err();
    assert!(complaint.contains("--index-dir") && complaint.contains("others can write to it"), "{complaint}");
    fs::create_dir_all(cache.join("tilefs")).unwrap();
    fs::write(cache.join("tilefs/index"), b"no folder").unwrap();
    assert!(tilefs(&cache, &["ls", "-l", array]).unwrap().contains("README.txt"));
}

/// While a mount reads, its folder is emptied, removed, and replaced by something else.
#[test]
fn a_folder_that_goes_away_changes_nothing() {
    let path = tilefs_fixtures::fixtures().join("arrays/sparse/overlap");
    let index = Index::new();
    let right = mount(&path, &index.options());
    let options = index.options();
    let stored = tree::open_stored(&path, &options).unwrap();
    let tree = tree::MountedTree::new(stored, &options).unwrap();
    fs::remove_dir_all(index.path()).unwrap();
    fs::write(index.path(), "a file").unwrap();
    let mut files = BTreeMap::new();
    read_all(&tree.root(), "", &mut files);
    for (path, bytes) in files {
        let is_text = ["README.txt", "schema.txt", "schema.json"].iter().any(|name| path.ends_with(name));
        assert!(is_text || bytes == right.files[&path], "{path}");
    }
}
