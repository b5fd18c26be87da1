//! The values of fields whose files are intact: they must equal those of the intact array, and not be an error.
//!
//! File names alone determine the dependencies of a field, not the reader's requests: the schema, the commits and the
//! metadata of fragments, its own files, and in a sparse array the coordinates.

use std::collections::HashSet;
use std::sync::Arc;

use support::fields::{contents, fields, subarray};
use tilefs_base::error::Result;
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow};
use tilefs_storage::{MemoryStorage, Storage, StoreKey};
use tilefs_tree::cells::FieldId;

/// The bytes of the raw files of each field.
type Fields = Vec<(FieldId, Result<Vec<Vec<u8>>>)>;

/// The values of an array's fields.
pub struct Values {
    fields: Fields,
    /// Whether the values of one field can determine the rows of all (through delete conditions), or the numbers of its
    /// files can differ in older fragments.
    is_entangled: bool,
}

/// The owner of a file.
#[derive(PartialEq, Eq, Hash)]
enum Owner {
    Field(FieldId),
    /// Metadata, labels and enumerations, on which no values depend.
    Nobody,
    /// All fields depend on it.
    Everybody,
}

fn owner(root: &StoreKey, key: &StoreKey) -> Owner {
    let path = String::from_utf8_lossy(&key.as_bytes()[root.as_bytes().len()..]).into_owned();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["__meta", _] | ["__labels", ..] | ["__schema", "__enumerations", _] => Owner::Nobody,
        ["__fragments", _, file] => {
            let stem = file.strip_suffix(".tdb").unwrap_or_default();
            let stem = stem.strip_suffix("_var").or(stem.strip_suffix("_validity")).unwrap_or(stem);
            let number = stem.strip_prefix('a').and_then(|number| number.parse().ok());
            number.map_or(Owner::Everybody, |number| Owner::Field(FieldId::Attribute(number)))
        }
        _ => Owner::Everybody,
    }
}

fn read(storage: &MemoryStorage, root: &StoreKey) -> Result<Fields> {
    let context = Arc::new(Context::new(Arc::new(storage.clone()), 1 << 20, 1, None));
    let array = OpenedArray::open(Arc::new(ArrayFolder::open(context, root)?), TimeWindow::ALL)?;
    let subarray = subarray(Arc::new(array))?;
    let bytes = |field| -> Result<Vec<Vec<u8>>> {
        contents(&*subarray, field)?
            .iter()
            .map(|content| {
                let mut bytes = vec![0; usize::try_from(content.len()).unwrap_or(0).min(16 << 20)];
                content.read_at(0, &mut bytes).map(|()| bytes)
            })
            .collect()
    };
    Ok(fields(&*subarray).map(|field| (field, bytes(field))).collect())
}

impl Values {
    /// Reads the values of an intact array.
    pub fn of(storage: &MemoryStorage, root: &StoreKey) -> Values {
        let keys = storage.keys();
        let has_deletes = keys.iter().any(|key| key.as_bytes().ends_with(b".del"));
        let schemas = keys.iter().filter(|key| key.parent().is_some_and(|folder| folder == root.join("__schema")));
        let fields = read(storage, root).unwrap();
        assert!(!fields.is_empty() && fields.iter().all(|(_, bytes)| bytes.is_ok()));
        Values { fields, is_entangled: has_deletes || schemas.count() > 1 }
    }

    /// Compares the fields whose files are intact after damage; returns the number of their files.
    pub fn compare(&self, whole: &MemoryStorage, damaged: &MemoryStorage, root: &StoreKey) -> u64 {
        let object = |storage: &MemoryStorage, key: &StoreKey| storage.bytes(key).zip(storage.length(key).ok());
        let keys: HashSet<StoreKey> = whole.keys().into_iter().chain(damaged.keys()).collect();
        let is_changed = |key: &&StoreKey| object(whole, key) != object(damaged, key);
        let changed: Vec<&StoreKey> = keys.iter().filter(is_changed).collect();
        // Added or removed files change the listing.
        let is_there = |key: &&&StoreKey| object(whole, key).is_some() && object(damaged, key).is_some();
        let owners: HashSet<Owner> = changed.iter().map(|key| owner(root, key)).collect();
        if self.is_entangled || !changed.iter().all(|key| is_there(&key)) || owners.contains(&Owner::Everybody) {
            return 0;
        }
        let found = read(damaged, root).unwrap_or_else(|error| panic!("nothing that all need was damaged: {error}"));
        let mut compared = 0;
        for ((field, due), (other, bytes)) in self.fields.iter().zip(&found) {
            assert_eq!(field, other);
            if owners.contains(&Owner::Field(*field)) {
                continue;
            }
            let (due, bytes) =
                (due.as_ref().unwrap(), bytes.as_ref().unwrap_or_else(|error| panic!("{field:?}: {error}")));
            assert!(due == bytes, "{field:?} has other values, though its files were not changed");
            compared += due.len() as u64;
        }
        compared
    }
}

#[test]
fn another_value_of_an_untouched_field_is_found() {
    let root = StoreKey::from("/array");
    let folder = tilefs_fixtures::fixtures().join("demo");
    let whole = MemoryStorage::load(&folder, &root).unwrap();
    let mut values = Values::of(&whole, &root);
    assert_eq!(values.compare(&whole, &whole, &root), 2);
    // A field whose file was damaged is not compared.
    let damaged = whole.clone();
    for key in damaged.keys().into_iter().filter(|key| key.name() == Some(b"a0.tdb")) {
        damaged.put(key, Vec::new());
    }
    assert_eq!(values.compare(&whole, &damaged, &root), 1);
    values.fields[1].1.as_mut().unwrap()[0][7] ^= 1;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| values.compare(&whole, &damaged, &root)));
    assert!(found.is_err());
}
