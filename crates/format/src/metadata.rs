//! Array and group metadata: the files in `__meta` (the format's "Metadata" page).

use tilefs_base::error::{Error, Locate, Result};

use super::datatype::Datatype;

/// One entry of a metadata file: it sets or deletes one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataEntry {
    /// Text by convention; the format allows any bytes.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the key.
    pub value: Option<MetadataValue>,
}

/// The value of a key: `bytes` are `count` values of the type, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataValue {
    /// The type of the values.
    pub datatype: Datatype,
    /// May be 0, for a key without a value. For strings, the number of code units, not characters.
    pub count: u32,
    /// The little-endian values.
    pub bytes: Vec<u8>,
}

/// One entry of a metadata file without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHead {
    /// The key.
    pub key: MetadataKey,
    /// `None` deletes the key.
    pub value: Option<ValueHead>,
}

/// The key of an entry, which need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataKey {
    /// A key of up to 64 KiB.
    Whole(Vec<u8>),
    /// The place of a longer key in the payload, in bytes.
    Long {
        /// The offset of the key.
        start: u64,
        /// Its length; checked to be within the payload.
        length: u64,
    },
}

/// The type and length of a value, and the place of its bytes in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueHead {
    /// The type of the values.
    pub datatype: Datatype,
    /// The number of values.
    pub count: u32,
    /// The offset of the values in the payload, in bytes.
    pub start: u64,
    /// Bytes of `count` values of the type; checked to be within the payload.
    pub length: u64,
}

/// The most entries that are accepted in one file. Entries take more memory than their stored bytes.
const MAX_ENTRIES: usize = 1 << 20;

/// The longest key in bytes that is read together with its entry.
const MAX_KEY: u64 = 1 << 16;

/// Reads the payload of a metadata file: entries up to the end. Apply them in order, and files in the order of their
/// start times; the last entry of a key wins.
///
/// # Errors
/// As for [`parse_entries`].
pub fn parse_metadata(payload: &[u8]) -> Result<Vec<MetadataEntry>> {
    let bytes_at = |start: u64, length: u64| {
        let range = usize::try_from(start).ok().zip(usize::try_from(start.checked_add(length)?).ok());
        range.and_then(|(start, end)| payload.get(start..end))
    };
    let ends = || Error::damaged("the bytes end early");
    let mut entries = Vec::new();
    let read = |start: u64, out: &mut [u8]| {
        out.copy_from_slice(bytes_at(start, out.len() as u64).ok_or_else(ends)?);
        Ok(())
    };
    parse_entries(payload.len() as u64, read, |entry| {
        let value = entry.value.map(|ValueHead { datatype, count, start, length }| {
            let bytes = bytes_at(start, length).ok_or_else(ends)?.to_vec();
            Ok(MetadataValue { datatype, count, bytes })
        });
        let key = match entry.key {
            MetadataKey::Whole(key) => key,
            MetadataKey::Long { start, length } => bytes_at(start, length).ok_or_else(ends)?.to_vec(),
        };
        entries.push(MetadataEntry { key, value: value.transpose()? });
        Ok(())
    })?;
    Ok(entries)
}

/// Reads the entries of a payload of `length` bytes and passes them to `visit` in order. `read` fills a buffer with the
/// bytes from an offset. The bytes of values are skipped, and so are those of
/// keys longer than 64 KiB.
///
/// # Errors
/// [`Error::Damaged`] if an entry ends early, [`Error::Unsupported`] for an unknown type and for more than 2^20 entries;
/// errors of `read` and `visit`.
pub fn parse_entries(
    length: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
    mut visit: impl FnMut(EntryHead) -> Result<()>,
) -> Result<()> {
    let (mut at, mut entries) = (0, 0);
    // Reads a field of up to 8 bytes.
    let mut fixed = |at: &mut u64, size: u64, field: &str| {
        let mut bytes = [0; 8];
        let end = at.checked_add(size).filter(|&end| end <= length);
        let reason = || format!("{size} bytes wanted, {} left", length - *at);
        let end = end.ok_or_else(|| Error::damaged(reason()).in_field(field).at(*at))?;
        read(*at, &mut bytes[..size as usize])?;
        *at = end;
        Ok::<_, Error>(u64::from_le_bytes(bytes))
    };
    while at < length {
        if entries == MAX_ENTRIES {
            return Err(Error::unsupported(format!("more than {MAX_ENTRIES} metadata entries in one file")));
        }
        entries += 1;
        let start = at;
        let key_length = fixed(&mut at, 4, "key")?;
        let key = if key_length > MAX_KEY {
            let key = MetadataKey::Long { start: at, length: key_length };
            if key_length > length - at {
                let reason = format!("{key_length} bytes wanted, {} left", length - at);
                return Err(Error::damaged(reason).in_field("key").at(start));
            }
            at += key_length;
            key
        } else {
            let mut key = Vec::with_capacity(key_length as usize);
            while (key.len() as u64) < key_length {
                let part = (key_length - key.len() as u64).min(8);
                key.extend(&fixed(&mut at, part, "key")?.to_le_bytes()[..part as usize]);
            }
            MetadataKey::Whole(key)
        };
        let value = if fixed(&mut at, 1, "deletion")? != 0 {
            None
        } else {
            let datatype = Datatype::from_number(fixed(&mut at, 1, "datatype")? as u8).at(start)?;
            let count = fixed(&mut at, 4, "number of values")? as u32;
            let size = u64::from(count) * datatype.size() as u64;
            let left = length - at;
            if size > left {
                let reason = format!("{count} {} in {left} bytes", datatype.name());
                return Err(Error::damaged(reason).in_field("values").at(start));
            }
            at += size;
            Some(ValueHead { datatype, count, start: at - size, length: size })
        };
        visit(EntryHead { key, value })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a metadata file as the format describes it.
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
        let bytes = [0, 0, 0, 0, 1].repeat(MAX_ENTRIES);
        assert_eq!(parse_metadata(&bytes).unwrap().len(), MAX_ENTRIES);
        assert!(parse_metadata(&[bytes, vec![0, 0, 0, 0, 1]].concat()).is_err());
    }

    #[test]
    fn long_keys_are_skipped_and_those_beyond_the_file_are_damage() {
        let of = |length: usize| [&(length as u32).to_le_bytes()[..], &vec![b'k'; length], &[1]].concat();
        let keys = |bytes: &[u8]| {
            let (mut keys, mut longest_read) = (Vec::new(), 0);
            let read = |start: u64, out: &mut [u8]| {
                longest_read = longest_read.max(out.len());
                out.copy_from_slice(&bytes[start as usize..][..out.len()]);
                Ok(())
            };
            parse_entries(bytes.len() as u64, read, |entry| {
                keys.push(entry.key);
                Ok(())
            })?;
            assert!(longest_read <= 8);
            Ok::<_, Error>(keys)
        };
        let (longest, longer) = (1 << 16, (1 << 16) + 1);
        let bytes = [of(longest), of(longer), of(1)].concat();
        let found = keys(&bytes).unwrap();
        let start = of(longest).len() as u64 + 4;
        assert_eq!(found[1], MetadataKey::Long { start, length: longer as u64 });
        assert!(matches!(&found[0], MetadataKey::Whole(key) if key.len() == longest));
        assert_eq!(found[2], MetadataKey::Whole(b"k".to_vec()));
        assert_eq!(parse_metadata(&bytes).unwrap()[1].key.len(), longer);
        assert!(matches!(keys(&bytes[..start as usize + longest]), Err(Error::Damaged { .. })));
    }

    #[test]
    fn claims_beyond_the_file_are_damage() {
        let bytes = [1, 0, 0, 0, b'k', 0, 3, 255, 255, 255, 255, 0];
        let error = parse_metadata(&bytes).unwrap_err();
        assert!(error.to_string().contains("4294967295 FLOAT64"), "{error}");
        assert!(parse_metadata(&[1, 0, 0, 0, b'k', 0, 44, 0, 0, 0, 0]).is_err());
    }
}
