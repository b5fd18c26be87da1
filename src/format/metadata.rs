//! Array and group metadata: the files in `__meta` (the format's "Metadata" page).

use super::cursor::Cursor;
use super::datatype::Datatype;
use crate::error::{Error, Locate, Result};

/// One entry of a metadata file: what it does to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataEntry {
    /// Text by custom, bytes by format.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the key.
    pub value: Option<MetadataValue>,
}

/// The value of a key: `bytes` are `count` values of the type, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataValue {
    pub datatype: Datatype,
    /// May be 0: a key without a value. Of strings it counts code units, not characters.
    pub count: u32,
    pub bytes: Vec<u8>,
}

/// More entries than anyone puts in one file; they take more memory than their bytes.
const MOST_ENTRIES: usize = 1 << 20;

/// Reads the payload of a metadata file: entries until the end. They are to be applied in their order, and the
/// files in the order of their start times; the last entry of a key wins.
///
/// # Errors
/// [`Error::Damaged`] when an entry ends early, [`Error::Unsupported`] for an unknown type and for more than
/// 2^20 entries.
pub fn parse_metadata(payload: &[u8]) -> Result<Vec<MetadataEntry>> {
    let mut cursor = Cursor::new(payload);
    let mut entries = Vec::new();
    while !cursor.is_at_end() {
        if entries.len() == MOST_ENTRIES {
            return Err(Error::unsupported(format!("more than {MOST_ENTRIES} metadata entries in one file")));
        }
        let start = cursor.position() as u64;
        let key = cursor.str32("key")?.to_vec();
        let deletion = cursor.u8("deletion")? != 0;
        let value = if deletion { None } else { Some(parse_value(&mut cursor).at(start)?) };
        entries.push(MetadataEntry { key, value });
    }
    Ok(entries)
}

fn parse_value(cursor: &mut Cursor<'_>) -> Result<MetadataValue> {
    let datatype = Datatype::from_number(cursor.u8("datatype")?)?;
    let count = cursor.u32("number of values")?;
    let size = u64::from(count) * datatype.size() as u64;
    let bytes = cursor.bytes_u64(size, "values").map_err(|_| {
        Error::damaged(format!("{count} {} in {} bytes", datatype.name(), cursor.remaining())).in_field("values")
    })?;
    Ok(MetadataValue { datatype, count, bytes: bytes.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The writer's side, as the format describes it.
    fn write(entries: &[MetadataEntry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.extend((entry.key.len() as u32).to_le_bytes());
            bytes.extend(&entry.key);
            bytes.push(u8::from(entry.value.is_none()));
            if let Some(value) = &entry.value {
                bytes.push(value.datatype as u8);
                bytes.extend(value.count.to_le_bytes());
                bytes.extend(&value.bytes);
            }
        }
        bytes
    }

    fn values() -> impl Strategy<Value = MetadataValue> {
        (0u8..44, prop::collection::vec(any::<u8>(), 0..5)).prop_map(|(number, seed)| {
            let datatype = Datatype::from_number(number).unwrap();
            let bytes = seed.iter().flat_map(|&byte| vec![byte; datatype.size()]).collect();
            MetadataValue { datatype, count: seed.len() as u32, bytes }
        })
    }

    fn entries() -> impl Strategy<Value = Vec<MetadataEntry>> {
        let entry = (prop::collection::vec(any::<u8>(), 0..9), prop::option::of(values()));
        prop::collection::vec(entry.prop_map(|(key, value)| MetadataEntry { key, value }), 0..6)
    }

    proptest! {
        #[test]
        fn reads_what_was_written(entries in entries()) {
            prop_assert_eq!(parse_metadata(&write(&entries)).unwrap(), entries);
        }

        #[test]
        fn a_cut_gives_a_prefix_or_an_error(entries in entries(), cut in any::<prop::sample::Index>()) {
            let bytes = write(&entries);
            let cut = cut.index(bytes.len() + 1);
            if let Ok(fewer) = parse_metadata(&bytes[..cut]) {
                prop_assert_eq!(write(&fewer), &bytes[..cut]);
            }
        }
    }

    #[test]
    fn entries_are_bounded() {
        // Deletions of the empty key.
        let bytes = [0, 0, 0, 0, 1].repeat(MOST_ENTRIES);
        assert_eq!(parse_metadata(&bytes).unwrap().len(), MOST_ENTRIES);
        assert!(parse_metadata(&[bytes, vec![0, 0, 0, 0, 1]].concat()).is_err());
    }

    #[test]
    fn claims_beyond_the_file_are_damage() {
        let bytes = [1, 0, 0, 0, b'k', 0, 3, 255, 255, 255, 255, 0];
        let error = parse_metadata(&bytes).unwrap_err();
        assert!(error.to_string().contains("4294967295 FLOAT64"), "{error}");
        assert!(parse_metadata(&[1, 0, 0, 0, b'k', 0, 44, 0, 0, 0, 0]).is_err());
    }
}
