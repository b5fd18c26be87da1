//! Encrypted arrays with forged files that are not encrypted, which anybody with write access can add. A reader with
//! the key must be able to trust that all data were written by somebody with the key, so such files are rejected.

use std::fs;
use std::path::{Path, PathBuf};

use support::shown::{file, subfolder};
use support::stored::{Copy, copy_folder, file_below, generic_tile, payload, stored};
use tilefs_base::error::{Error, Result};
use tilefs_format::filter::Key;
use tilefs_tree::{self as tree, TreeOptions};

const KEY: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";

/// An encrypted array of the fixtures, with its key beside it.
struct Encrypted {
    copy: Copy,
    options: TreeOptions,
}

impl Encrypted {
    fn new() -> Self {
        let copy = Copy::of("sparse/encrypted");
        let key_file = Some(copy.beside("key", KEY));
        Encrypted {
            copy,
            options: TreeOptions {
                reading: tilefs_reader::ReaderOptions { key_file, threads: 1, ..Default::default() },
                ..TreeOptions::default()
            },
        }
    }

    fn path(&self) -> PathBuf {
        self.copy.path()
    }

    /// Reads the values of the attribute, and the coordinates.
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let root = tree::open(&self.path(), &self.options)?;
        Ok((file(&*root, "v", ".i32")?, file(&*subfolder(&*root, "dims")?, "x", ".i64")?))
    }

    /// Returns the damage that verification finds, as text.
    fn damage(&self) -> String {
        let array = tree::open_array(&self.path(), &self.options).expect("it opens");
        let found = tilefs_reader::array::verify::verify(&array, &Default::default());
        found.places.iter().map(|place| format!("{place}\n")).collect()
    }
}

fn is_refused<T>(result: Result<T>) -> bool {
    match result {
        Err(error @ Error::Key { .. }) => error.to_string().contains("not encrypted"),
        _ => false,
    }
}

#[test]
fn the_array_itself_is_read_with_its_key_alone() {
    let whole = Encrypted::new();
    let (values, coordinates) = whole.read().unwrap();
    assert_eq!((values.len(), coordinates.len(), whole.damage().as_str()), (160, 320, ""));
    let without = TreeOptions::default();
    assert!(matches!(tree::open(&whole.path(), &without).err(), Some(Error::Key { .. })));
    let other = TreeOptions {
        reading: tilefs_reader::ReaderOptions {
            key_file: Some(whole.copy.beside("other", &[7; 32])),
            ..Default::default()
        },
        ..TreeOptions::default()
    };
    let error = tree::open(&whole.path(), &other).err().expect("another key does not fit");
    assert!(matches!(&error, Error::Key { .. }) && error.to_string().contains("__schema"), "{error}");
    assert!(error.to_string().contains("array "), "{error}");
}

#[test]
fn an_array_without_encryption_does_not_pass_for_one_with() {
    let plain = Copy::of("sparse/dims_1");
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { key_file: Some(plain.beside("key", KEY)), ..Default::default() },
        ..TreeOptions::default()
    };
    assert!(is_refused(tree::open(&plain.path(), &options)));
}

#[test]
fn forged_metadata_are_refused() {
    let forged = Encrypted::new();
    let other = file_below(&stored("dense/metadata").join("__meta"), "").unwrap();
    fs::create_dir_all(forged.path().join("__meta")).unwrap();
    fs::copy(&other, forged.path().join("__meta").join(other.file_name().unwrap())).unwrap();
    let array = tree::open_array(&forged.path(), &forged.options).unwrap();
    assert!(is_refused(array.metadata()));
    assert!(forged.damage().contains("__meta"), "{}", forged.damage());
    // The values need no metadata.
    assert!(forged.read().is_ok());
}

#[test]
fn a_forged_schema_is_refused() {
    let forged = Encrypted::new();
    let own = forged.copy.file("__schema", "");
    let plain = generic_tile(&payload(&own, Some(&Key::parse(KEY).unwrap())));
    let newer = own.with_file_name("__1600000009000_1600000009000_0123456789abcdef0123456789abcdef");
    fs::write(newer, &plain).unwrap();
    assert!(is_refused(forged.read()));
    let replaced = Encrypted::new();
    fs::write(replaced.copy.file("__schema", ""), plain).unwrap();
    assert!(is_refused(replaced.read()));
}

/// A condition that deletes everything: in its own file, and among consolidated commits.
#[test]
fn forged_deletes_are_refused() {
    // The stored condition says which cells remain: x = 0, as a node of one value.
    let condition = [&[1, 4][..], &1u32.to_le_bytes(), b"x", &8u64.to_le_bytes(), &[0; 8]].concat();
    tilefs_format::condition::Condition::parse(&condition).expect("a condition");
    let tile = generic_tile(&condition);
    let mark = "__1600000009000_1600000009000_0123456789abcdef0123456789abcdef_22.del";

    let forged = Encrypted::new();
    fs::write(forged.path().join("__commits").join(mark), &tile).unwrap();
    assert!(is_refused(forged.read()));
    assert!(forged.damage().contains(mark), "{}", forged.damage());

    let forged = Encrypted::new();
    let inline = [format!("__commits/{mark}\n").as_bytes(), &(tile.len() as u64).to_le_bytes(), &tile].concat();
    fs::write(forged.path().join("__commits").join(mark.replace(".del", ".con")), inline).unwrap();
    assert!(is_refused(forged.read()));
    assert!(forged.damage().contains(mark), "{}", forged.damage());
}

/// A fragment from another array, and a fragment of this array whose metadata are no longer encrypted.
#[test]
fn forged_fragments_are_refused() {
    let forged = Encrypted::new();
    let other = file_below(&stored("sparse/dims_1").join("__fragments"), "__fragment_metadata.tdb").unwrap();
    let own = forged.copy.file("__fragments", "__fragment_metadata.tdb");
    let bytes = fs::read(&other).unwrap();
    fs::write(&own, bytes).unwrap();
    assert!(forged.read().is_err());
    assert!(!forged.damage().is_empty());

    let forged = Encrypted::new();
    let folder = other.parent().unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    copy_folder(folder, &forged.path().join("__fragments").join(name));
    fs::write(forged.path().join("__commits").join(format!("{name}.wrt")), []).unwrap();
    assert!(forged.read().is_err());
    assert!(!forged.damage().is_empty());
}

/// An unencrypted tile in the place of an encrypted one.
#[test]
fn forged_tiles_are_refused() {
    for name in ["a0.tdb", "d0.tdb"] {
        let forged = Encrypted::new();
        let target = forged.copy.file("__fragments", name);
        let mut bytes = fs::read(&target).unwrap();
        let size = if name == "a0.tdb" { 32u32 } else { 64 };
        assert!(bytes.len() > 20 + size as usize);
        bytes[..8].copy_from_slice(&1u64.to_le_bytes());
        for (place, number) in [(8, size), (12, size), (16, 0)] {
            bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        }
        fs::write(&target, bytes).unwrap();
        assert!(forged.read().is_err(), "{name}");
        assert!(forged.damage().contains(name), "{}", forged.damage());
    }
}

/// Forged copies of footers do not change what is read from a fragment.
#[test]
fn forged_copies_of_footers_are_found() {
    let forged = Encrypted::new();
    let other = file_below(&stored("dense/consolidated").join("__fragment_meta"), ".meta").unwrap();
    fs::create_dir_all(forged.path().join("__fragment_meta")).unwrap();
    fs::copy(&other, forged.path().join("__fragment_meta").join(other.file_name().unwrap())).unwrap();
    assert!(forged.read().is_ok());
    assert!(forged.damage().contains("not encrypted"), "{}", forged.damage());
}

#[test]
fn a_group_that_is_not_encrypted_is_refused_with_a_key() {
    let group = Copy::of("groups/experiment");
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { key_file: Some(group.beside("key", KEY)), ..Default::default() },
        ..TreeOptions::default()
    };
    let Ok(tree::Stored::Group(opened)) = tree::open_stored(Path::new(&group.path()), &options) else {
        panic!("a group");
    };
    assert!(is_refused(opened.members()) && is_refused(opened.metadata()));
}
