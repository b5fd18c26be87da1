//! The metadata of an array or a group: keys and values as of a time window.
//!
//! A few stored bytes can decode to a value of a GiB. Small values are kept in memory; large ones are read in ranges
//! from storage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::datatype::Datatype;
use tilefs_format::folder::METADATA;
use tilefs_format::metadata::{EntryHead, MetadataKey, MetadataValue, ValueHead, parse_entries};
use tilefs_storage::{Listed, StoreKey, together};

use super::context::Context;
use super::directory::timed_files::{TimedFile, files_in_force};
use super::directory::window::TimeWindow;
use super::metadata_tiles::generic_tile::{GenericTile, max_decoded};

/// Values up to this length are kept in memory, no matter how many there are.
const SMALL_VALUE_BYTES: u64 = 256;

/// Values up to this length are kept in memory as long as there are few.
const MAX_VALUE_BYTES_IN_MEMORY: u64 = 256 << 10;

/// The number of files that are opened concurrently; each takes some KiB until it has been read.
const MAX_CONCURRENT_FILES: usize = 64;

/// The bytes that are kept of a key that is too long to be held in memory.
const LONG_KEY_BEGINNING: u64 = 64;

/// Memory of a key besides its bytes: its entry in the map, and later that of its file.
const ENTRY_OVERHEAD: u64 = 160;

/// Keys in byte order, as TileDB lists them, with their typed values. Memory: a small multiple of the stored bytes, and
/// a few MiB.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    values: BTreeMap<Vec<u8>, Arc<MetadataItem>>,
    long_keys: BTreeSet<LongKey>,
}

/// A key of more than 64 KiB, which is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LongKey {
    /// The first bytes of the key.
    pub beginning: Vec<u8>,
    /// The length of the key in bytes.
    pub length: u64,
}

/// The value of a key: `count` values of a type, little-endian.
#[derive(Debug, Clone)]
pub struct MetadataItem {
    /// The type of the values.
    pub datatype: Datatype,
    /// May be 0 for a key without a value. For strings it counts code units, not characters.
    pub count: u32,
    bytes: Bytes,
}

#[derive(Debug, Clone)]
enum Bytes {
    InMemory(Vec<u8>),
    /// At `start` in the payload of a metadata file.
    Stored {
        tile: Arc<GenericTile>,
        start: u64,
        length: u64,
    },
}

impl MetadataItem {
    /// Returns the length of the value in bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::InMemory(bytes) => bytes.len() as u64,
            Bytes::Stored { length, .. } => *length,
        }
    }

    /// Returns whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes; `None` for a large value, which can only be read in ranges.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::InMemory(bytes) => Some(bytes),
            Bytes::Stored { .. } => None,
        }
    }

    /// Copies bytes of the value from `offset`.
    ///
    /// # Errors
    /// Any damage in the bytes that are read, [`Error::Damaged`] past the end.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= self.len());
        let end = end.ok_or_else(|| Error::damaged(format!("byte {offset} of a value of {}", self.len())))?;
        match &self.bytes {
            // The offset is within the length, which is a usize.
            Bytes::InMemory(bytes) => out.copy_from_slice(&bytes[offset as usize..end as usize]),
            Bytes::Stored { tile, start, .. } => tile.read_at(start + offset, out)?,
        }
        Ok(())
    }
}

impl From<MetadataValue> for MetadataItem {
    fn from(value: MetadataValue) -> Self {
        MetadataItem { datatype: value.datatype, count: value.count, bytes: Bytes::InMemory(value.bytes) }
    }
}

/// Stored bytes that were read so far, and the memory of the data decoded from them.
#[derive(Default)]
struct MemoryUse {
    stored: u64,
    used: u64,
    /// Memory that is allowed however few bytes are stored.
    always_allowed: u64,
}

impl MemoryUse {
    fn new(context: &Context) -> Self {
        MemoryUse { always_allowed: context.budget().metadata() as u64, ..MemoryUse::default() }
    }
}

impl Metadata {
    /// Reads the metadata in force in a window for the array or group in the folder `root`. `names` are the files in
    /// its `__meta`; without `__meta`, as before format version 4, the metadata is empty.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, [`Error::Key`] if the file is encrypted and its key is missing or wrong. Never
    /// returns only some of the keys, except that it leaves out [long ones](Metadata::long_keys).
    pub(crate) fn read_listed(
        context: &Arc<Context>,
        root: &StoreKey,
        names: &[Listed],
        window: TimeWindow,
    ) -> Result<Self> {
        Self::read_files(context, names, &root.join(METADATA), window).in_array(root)
    }

    fn read_files(context: &Arc<Context>, names: &[Listed], folder: &StoreKey, window: TimeWindow) -> Result<Self> {
        let (mut metadata, mut held) = (Metadata::default(), MemoryUse::new(context));
        let mut files = files_in_force(&*context.storage, names, folder, window)?;
        while !files.is_empty() {
            let later = files.split_off(files.len().min(MAX_CONCURRENT_FILES));
            let open = |one: TimedFile| GenericTile::open(context, &one.file).map(|tile| (one.file, tile));
            for opened in together(&*context.storage, folder, std::mem::replace(&mut files, later), open) {
                let (file, tile) = opened?;
                metadata.add_file(&file, tile, &mut held)?;
            }
        }
        Ok(metadata)
    }

    /// Applies the entries of a file.
    fn add_file(&mut self, file: &StoreKey, tile: GenericTile, held: &mut MemoryUse) -> Result<()> {
        let tile = Arc::new(tile);
        held.stored = held.stored.saturating_add(tile.stored());
        let most = max_decoded(held.stored);
        let room = most.max(held.always_allowed);
        let read = |start: u64, out: &mut [u8]| tile.read_at(start, out);
        let entries = parse_entries(tile.size(), read, |entry| {
            let EntryHead { key, value } = entry;
            let length = value.map_or(0, |head| head.length);
            let in_memory =
                length <= SMALL_VALUE_BYTES || (length <= MAX_VALUE_BYTES_IN_MEMORY && held.used + length <= most / 2);
            let key = match key {
                MetadataKey::Whole(key) => Ok(key),
                MetadataKey::Long { start, length } => Err(long_key(&tile, start, length)?),
            };
            let kept = key.as_ref().map_or_else(|long| long.beginning.len(), Vec::len) as u64;
            held.used += ENTRY_OVERHEAD + kept + if in_memory { length } else { 0 };
            if held.used > room {
                let what =
                    format!("more than {room} bytes of keys and small values where --cache-size has room for these");
                return Err(Error::unsupported(what));
            }
            match key {
                Ok(key) => self.apply(key, value.map(|head| value_of(&tile, head, in_memory)).transpose()?),
                Err(long) if value.is_some() => drop(self.long_keys.insert(long)),
                Err(long) => drop(self.long_keys.remove(&long)),
            }
            Ok(())
        });
        entries.in_file(file)
    }

    /// Decodes a whole metadata file, whether or not it is in force.
    ///
    /// # Errors
    /// The first damage in it.
    pub(super) fn verify_file(context: &Arc<Context>, file: &StoreKey) -> Result<()> {
        let mut metadata = Metadata::default();
        metadata.add_file(file, GenericTile::open(context, file)?, &mut MemoryUse::new(context))?;
        metadata.verify()
    }

    /// Applies one entry to its key.
    fn apply(&mut self, key: Vec<u8>, value: Option<MetadataItem>) {
        match value {
            Some(value) => self.values.insert(key, Arc::new(value)),
            None => self.values.remove(&key),
        };
    }

    /// Decodes the values that are not in memory.
    ///
    /// # Errors
    /// The first damage in it.
    fn verify(&self) -> Result<()> {
        let mut part = vec![0; MAX_VALUE_BYTES_IN_MEMORY as usize];
        for value in self.values.values().filter(|value| value.bytes().is_none()) {
            let mut at = 0;
            while at < value.len() {
                let length = (value.len() - at).min(MAX_VALUE_BYTES_IN_MEMORY);
                value.read_at(at, &mut part[..length as usize])?;
                at += length;
            }
        }
        Ok(())
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the keys that are too long to be held in memory. They and their values are left out.
    pub fn long_keys(&self) -> impl Iterator<Item = &LongKey> {
        self.long_keys.iter()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataItem> {
        self.values.get(key.as_bytes()).map(|value| &**value)
    }

    /// Iterates over all keys in byte order. A key is text by convention, but the format allows any bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Arc<MetadataItem>)> {
        self.values.iter().map(|(key, value)| (key.as_slice(), value))
    }
}

impl FromIterator<(Vec<u8>, MetadataValue)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, MetadataValue)>>(values: I) -> Self {
        let values = values.into_iter().map(|(key, value)| (key, Arc::new(value.into()))).collect();
        Metadata { values, long_keys: BTreeSet::new() }
    }
}

/// Reads the beginning of a long key. Keys of equal length and beginning count as one.
fn long_key(tile: &GenericTile, start: u64, length: u64) -> Result<LongKey> {
    let mut beginning = vec![0; LONG_KEY_BEGINNING.min(length) as usize];
    tile.read_at(start, &mut beginning)?;
    Ok(LongKey { beginning, length })
}

/// Returns the value of an entry in the payload of a file.
fn value_of(tile: &Arc<GenericTile>, head: ValueHead, in_memory: bool) -> Result<MetadataItem> {
    let ValueHead { datatype, count, start, length } = head;
    let bytes = if in_memory {
        let mut bytes = vec![0; length as usize];
        tile.read_at(start, &mut bytes)?;
        Bytes::InMemory(bytes)
    } else {
        Bytes::Stored { tile: tile.clone(), start, length }
    };
    Ok(MetadataItem { datatype, count, bytes })
}

#[cfg(test)]
mod tests {
    use super::super::directory::timed_files::names_in;
    use super::super::metadata_tiles::generic_tile::tests::stored;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use tilefs_storage::LocalStorage;

    fn value(byte: u8) -> MetadataItem {
        MetadataValue { datatype: Datatype::UInt8, count: 1, bytes: vec![byte] }.into()
    }

    proptest! {
        #[test]
        fn the_last_entry_of_a_key_is_in_force(files in prop::collection::vec(
            prop::collection::vec((0u8..4, prop::option::of(any::<u8>())), 0..6), 0..4)) {
            let mut metadata = Metadata::default();
            let mut last = HashMap::new();
            for file in &files {
                file.iter().for_each(|&(key, byte)| metadata.apply(vec![key], byte.map(value)));
                last.extend(file.iter().copied());
            }
            last.retain(|_, value| value.is_some());
            let found: HashMap<u8, Option<u8>> =
                metadata.iter().map(|(key, value)| (key[0], value.bytes().unwrap().first().copied())).collect();
            prop_assert_eq!(metadata.len(), last.len());
            prop_assert_eq!(found, last);
        }
    }

    /// Returns the payload of a file with one key for each of these values.
    fn payload(values: &[(Datatype, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, (datatype, value)) in values.iter().enumerate() {
            let key = format!("key{number:04}");
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend(key.bytes());
            bytes.extend([0, *datatype as u8]);
            bytes.extend(((value.len() / datatype.size()) as u32).to_le_bytes());
            bytes.extend(*value);
        }
        bytes
    }

    fn read_folder(context: &Arc<Context>, root: &StoreKey) -> Result<Metadata> {
        let folder = context.storage.know(root)?;
        let names = names_in(&*context.storage, &folder, METADATA)?;
        Metadata::read_listed(context, root, &names, TimeWindow::ALL)
    }

    fn read(payloads: &[Vec<u8>]) -> Result<Metadata> {
        read_within(1 << 20, payloads)
    }

    fn read_within(budget: usize, payloads: &[Vec<u8>]) -> Result<Metadata> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(METADATA)).unwrap();
        for (number, payload) in payloads.iter().enumerate() {
            let name = format!("__{number}_{number}_{number:032x}");
            std::fs::write(folder.path().join(METADATA).join(name), stored(payload.chunks(65536))).unwrap();
        }
        let storage = Arc::new(LocalStorage::new());
        let context = Arc::new(Context::new(storage, budget, 1, None));
        let metadata = read_folder(&context, &folder.path().into())?;
        for (_, value) in metadata.iter() {
            // While the files exist.
            value.read_at(0, &mut vec![0; value.len().min(1000) as usize])?;
            value.read_at(value.len(), &mut []).unwrap();
            assert!(value.read_at(value.len(), &mut [0]).is_err());
        }
        Ok(metadata)
    }

    #[test]
    fn large_values_are_not_kept_in_memory() {
        let long: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let values = [(Datatype::StringUtf8, &b"short"[..]), (Datatype::UInt32, &long), (Datatype::Int8, &[1, 2])];
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(METADATA)).unwrap();
        let file = folder.path().join(METADATA).join(format!("__1_1_{:032x}", 1));
        std::fs::write(&file, stored(payload(&values).chunks(65536))).unwrap();
        let storage = Arc::new(LocalStorage::new());
        let context = Arc::new(Context::new(storage, 1 << 20, 1, None));
        let metadata = read_folder(&context, &folder.path().into()).unwrap();
        assert_eq!(metadata.get("key0000").and_then(MetadataItem::bytes), Some(&b"short"[..]));
        assert_eq!(metadata.get("key0002").and_then(MetadataItem::bytes), Some(&[1, 2][..]));
        let large = metadata.get("key0001").unwrap();
        assert_eq!((large.bytes(), large.len(), large.count), (None, long.len() as u64, 300_000));
        for start in [0, 1, 65_530, long.len() - 100] {
            let mut part = [0; 100];
            large.read_at(start as u64, &mut part).unwrap();
            assert_eq!(part, long[start..start + 100]);
        }
    }

    #[test]
    fn large_values_in_few_stored_bytes_are_not_kept_in_memory() {
        // 64 MiB of zeros as one value, and as some hundred.
        let zeros = vec![0; 64 << 20];
        let one = read(&[payload(&[(Datatype::Int8, &zeros)])]).unwrap();
        assert_eq!(one.get("key0000").unwrap().len(), 64 << 20);
        let parts: Vec<(Datatype, &[u8])> = zeros.chunks(256 << 10).map(|part| (Datatype::Int8, part)).collect();
        let many = read(&[payload(&parts)]).unwrap();
        assert_eq!(many.len(), 256);
        let held: usize = many.iter().filter_map(|(_, value)| value.bytes()).map(<[u8]>::len).sum();
        assert!(held < 4 << 20, "{held}");
        // Keys are kept in memory, so their number is limited.
        let empty: Vec<(Datatype, &[u8])> = (0..9999).map(|_| (Datatype::Int8, &[][..])).collect();
        assert_eq!(read(&[payload(&empty)]).unwrap().len(), 9999);
        let error = read(&[[0, 0, 0, 0, 1].repeat(100_000)]).unwrap_err();
        assert!(error.to_string().contains("bytes of keys"), "{error}");
    }

    #[test]
    fn a_long_key_costs_no_other() {
        let entry = |key: &[u8], deletes: bool, value: &[u8]| {
            let mut bytes = [&(key.len() as u32).to_le_bytes()[..], key, &[u8::from(deletes)]].concat();
            if !deletes {
                bytes.extend([Datatype::UInt8 as u8]);
                bytes.extend((value.len() as u32).to_le_bytes());
                bytes.extend(value);
            }
            bytes
        };
        let long = vec![b'k'; 100_000];
        let first = [entry(b"a", false, &[1]), entry(&long, false, &[2; 300]), entry(b"b", false, &[3])].concat();
        let metadata = read(std::slice::from_ref(&first)).unwrap();
        let keys: Vec<&[u8]> = metadata.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"a", b"b"]);
        let left_out: Vec<&LongKey> = metadata.long_keys().collect();
        assert_eq!(left_out, [&LongKey { beginning: vec![b'k'; 64], length: 100_000 }]);
        let second = [entry(&long, true, &[]), entry(b"a", true, &[])].concat();
        let later = read(&[first, second]).unwrap();
        assert_eq!((later.len(), later.long_keys().count()), (1, 0));
    }

    #[test]
    fn a_hundred_thousand_similar_keys_are_read() {
        let values: Vec<[u8; 4]> = (0..100_000u32).map(u32::to_le_bytes).collect();
        let values: Vec<(Datatype, &[u8])> = values.iter().map(|value| (Datatype::UInt32, &value[..])).collect();
        let payload = payload(&values);
        // Compressed, each key takes a few bytes.
        let metadata = read_within(1 << 30, std::slice::from_ref(&payload)).unwrap();
        assert_eq!(metadata.len(), 100_000);
        assert_eq!(metadata.get("key77777").and_then(MetadataItem::bytes), Some(&77_777u32.to_le_bytes()[..]));
        assert!(read_within(64 << 20, &[payload]).is_err());
    }
}
