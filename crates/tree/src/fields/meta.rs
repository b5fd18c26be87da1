//! `meta/` and `meta.json`: the metadata of an array or a group as files.
//!
//! `meta/KEY` holds the value of a key, depending on its type:
//!
//! * text (`CHAR` and all strings, WKT): exactly the stored bytes, in the stored encoding, without a final line break
//! * numbers, dates, times, booleans: decimal text, one value per line. It parses back to the same number; dates are
//!   counts in the unit of their type, floats that are not finite are `nan`, `inf`, `-inf`
//! * blobs, WKB and `ANY`: exactly the stored bytes
//!
//! `meta.json` is one object with all keys, in byte order: `{"KEY": {"type": "FLOAT64", "count": 3, "values": [1.5, 2,
//! "nan"], "file": "KEY"}}`. Text has `"text"`, and other bytes have `"hex"`, instead of `"values"`; dates and times
//! also have their `"unit"`. `"file"` is the name in `meta/`. Integers beyond 2^53 are repeated as text, under their
//! key with the suffix `_text` (`"values_text"`). A key that is not UTF-8 is shown with U+FFFD, and its bytes are in
//! `"key_hex"`. A value of more than 256 KiB, or one that would make the file larger than a few MiB, has `"left_out"`
//! instead, with its size in bytes; it is in `meta/KEY`.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::hex::hex;
use tilefs_base::output::Output;
use tilefs_export::{Metadatum, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;
use tilefs_reader::array::Metadata;
use tilefs_reader::array::MetadataItem as Stored;
use tilefs_vfs::node::ExtendedAttributes;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile, LazyFolder};

use crate::fields::lines::Lines;
use crate::names::FileNames;
use crate::wording::value::{number_json, with_large_integers_as_text};

/// Adds `meta/` and `meta.json` to the folder of an array or a group. Reads nothing until either of them is read.
pub fn add_to(
    folder: &mut FixedFolder,
    modified: SystemTime,
    read: impl Fn() -> Result<Arc<Metadata>> + Clone + Send + Sync + 'static,
) {
    let for_json = read.clone();
    folder.add_folder("meta", LazyFolder::new(modified, move || Ok(files(&*read()?, modified))));
    folder.add_file("meta.json", LazyFile::text(modified, move || Ok(json(&*for_json()?))));
}

/// Returns a file for each key.
fn files(metadata: &Metadata, modified: SystemTime) -> FixedFolder {
    let mut folder = FixedFolder::new(modified);
    for ((_, value), name) in metadata.iter().zip(file_names(metadata)) {
        let (value, described) = (value.clone(), value.clone());
        let file = LazyFile::new(modified, move || file_content(&value));
        folder.add_file(name, file.described_by(move || extended_attributes(&described)));
    }
    folder
}

/// Returns the name in `meta/` of each key, in the order of the keys.
fn file_names(metadata: &Metadata) -> Vec<String> {
    let mut names = FileNames::new(&[]);
    metadata.iter().map(|(key, _)| names.give(&String::from_utf8_lossy(key), &[""])).collect()
}

fn extended_attributes(value: &Stored) -> ExtendedAttributes {
    vec![
        ("user.tiledb.type".to_owned(), value.datatype.name().into()),
        ("user.tiledb.count".to_owned(), value.count.to_string().into_bytes()),
    ]
}

/// Returns the content of a value's file. It is made when read, since numbers take many times more bytes as text.
fn file_content(value: &Arc<Stored>) -> Result<Arc<dyn Content>> {
    if value.datatype.kind() == Kind::Bytes {
        return Ok(Arc::new(RawBytes(value.clone())));
    }
    let (value, size) = (value.clone(), value.datatype.size());
    let count = value.len() / size as u64;
    let lines = Lines::new(count, move |numbers: Range<u64>, text: &mut Vec<u8>| {
        let mut bytes = vec![0; (numbers.end - numbers.start) as usize * size];
        value.read_at(numbers.start * size as u64, &mut bytes)?;
        for one in bytes.chunks_exact(size) {
            match number::integer(value.datatype, one) {
                Some(integer) => text.extend(itoa::Buffer::new().format(integer).bytes()),
                None => text.extend(number::text(value.datatype, one).unwrap_or_default().bytes()),
            }
            text.push(b'\n');
        }
        Ok(numbers.end)
    });
    Ok(Arc::new(lines?))
}

/// A value's bytes as stored.
struct RawBytes(Arc<Stored>);

impl Content for RawBytes {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        out.wanted().map_or(Ok(()), |out| self.0.read_at(offset, out))
    }
}

/// Maximum memory in bytes that the values in one `meta.json` take while it is made.
pub const MAX_JSON: u64 = 8 << 20;

/// Memory in bytes that a number takes while `meta.json` is made.
const NUMBER_IN_JSON: u64 = 64;

/// Returns the text of `meta.json`.
fn json(metadata: &Metadata) -> String {
    let mut all = Map::new();
    let mut space = MAX_JSON;
    for ((key, value), file) in metadata.iter().zip(file_names(metadata)) {
        let mut entry = described(value, &mut space);
        entry.insert("file".to_owned(), file.into());
        let mut name = String::from_utf8_lossy(key).into_owned();
        if name.as_bytes() != key {
            entry.insert("key_hex".to_owned(), hex(key).into());
            while all.contains_key(&name) || metadata.get(&name).is_some() {
                name.push(char::REPLACEMENT_CHARACTER);
            }
        }
        all.insert(name, with_large_integers_as_text(Value::Object(entry)));
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(all)).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the value of a key as text; `None` if there is none, or it is no text.
pub fn text_value(metadata: &Metadata, key: &str) -> Option<String> {
    let value = metadata.get(key)?;
    Some(text::decode(value.datatype, value.bytes()?)?.into_owned())
}

/// Returns the metadata for formats that hold a whole array in one file: all except the largest values, which
/// [`left_out`] mentions.
pub fn for_formats(metadata: &Metadata) -> Vec<Metadatum> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let given = |(key, value): (&[u8], &Arc<Stored>)| {
        Some(Metadatum { key: text(key), datatype: value.datatype, value: value.bytes()?.to_vec() })
    };
    metadata.iter().filter_map(given).collect()
}

/// Returns sentences about the values that are only in `meta/` and about the keys that are too long, if any.
pub fn left_out(metadata: &Metadata) -> Vec<String> {
    large_values(metadata).into_iter().chain(long_keys(metadata)).collect()
}

fn long_keys(metadata: &Metadata) -> Option<String> {
    let mut keys = metadata.long_keys();
    let first = keys.next()?;
    let beginning = String::from_utf8_lossy(&first.beginning);
    let others = match keys.count() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(format!("the metadata key {beginning}...{others} is not shown: it has {} bytes", first.length))
}

fn large_values(metadata: &Metadata) -> Option<String> {
    let mut large = metadata.iter().filter(|(_, value)| value.bytes().is_none());
    let (key, value) = large.next()?;
    let key = String::from_utf8_lossy(key);
    let others = match large.count() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(format!("the value of the metadata key {key}{others} is only in meta/: it has {} bytes", value.len()))
}

/// Returns a value for programs: its type, the number of values, and the values, if they fit in `space`, from which
/// their size is subtracted.
pub fn described(value: &Stored, space: &mut u64) -> Map<String, Value> {
    let datatype = value.datatype;
    let mut entry = Map::new();
    entry.insert("type".to_owned(), datatype.name().into());
    entry.insert("count".to_owned(), value.count.into());
    let needed = match datatype.kind() {
        Kind::Bytes => 4 * value.len(),
        _ => value.len() / datatype.size() as u64 * NUMBER_IN_JSON,
    };
    match value.bytes().filter(|_| needed <= *space) {
        Some(bytes) => {
            *space -= needed;
            let (form, values) = values_of(datatype, bytes);
            entry.insert(form.to_owned(), values);
        }
        None => {
            entry.insert("left_out".to_owned(), format!("{} bytes", value.len()).into());
        }
    }
    if let Some(unit) = datatype.time_unit() {
        entry.insert("unit".to_owned(), unit.symbol().into());
    }
    entry
}

/// Returns the values, and the key of their form.
fn values_of(datatype: Datatype, bytes: &[u8]) -> (&'static str, Value) {
    if let Some(text) = text::decode(datatype, bytes) {
        return ("text", text.into());
    }
    if datatype.kind() == Kind::Bytes {
        return ("hex", hex(bytes).into());
    }
    ("values", bytes.chunks_exact(datatype.size()).map(|one| number_json(datatype, one)).collect())
}

#[cfg(test)]
mod tests {
    use tilefs_format::metadata::MetadataValue;

    use super::*;
    use proptest::prelude::*;
    use tilefs_vfs::node::{Folder, Node};

    fn value(datatype: Datatype, bytes: &[u8]) -> MetadataValue {
        MetadataValue { datatype, count: (bytes.len() / datatype.size()) as u32, bytes: bytes.to_vec() }
    }

    fn bytes_of(datatype: Datatype, bytes: &[u8]) -> Vec<u8> {
        let content = file_content(&Arc::new(value(datatype, bytes).into())).unwrap();
        let mut bytes = vec![0; content.len() as usize];
        content.read_at(0, &mut bytes).unwrap();
        bytes
    }

    fn text_of(datatype: Datatype, bytes: &[u8]) -> String {
        String::from_utf8(bytes_of(datatype, bytes)).unwrap()
    }

    fn json_of(datatype: Datatype, bytes: &[u8]) -> String {
        Value::Object(described(&value(datatype, bytes).into(), &mut MAX_JSON.clone())).to_string()
    }

    #[test]
    fn the_file_of_a_value_has_its_text_or_its_bytes() {
        assert_eq!(text_of(Datatype::Int16, &[1, 0, 0xff, 0xff]), "1\n-1\n");
        assert_eq!(text_of(Datatype::Float32, &0.1f32.to_le_bytes()), "0.1\n");
        assert_eq!(text_of(Datatype::Float64, &f64::NEG_INFINITY.to_le_bytes()), "-inf\n");
        assert_eq!(text_of(Datatype::DateTimeDay, &(-3i64).to_le_bytes()), "-3\n");
        assert_eq!(text_of(Datatype::Bool, &[1, 0]), "1\n0\n");
        assert_eq!(text_of(Datatype::StringUtf8, "a\nü".as_bytes()), "a\nü");
        assert_eq!(text_of(Datatype::StringUtf16, &[b'a', 0]), "a\0");
        assert_eq!(text_of(Datatype::Int32, &[]), "");
        assert_eq!(bytes_of(Datatype::Blob, &[0, 255]), [0, 255]);
    }

    #[test]
    fn a_value_in_json_has_the_key_of_its_form() {
        assert_eq!(
            json_of(Datatype::UInt64, &[255; 8]),
            r#"{"type":"UINT64","count":1,"values":[18446744073709551615]}"#
        );
        assert_eq!(
            json_of(Datatype::Float64, &[1.5f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat()),
            r#"{"type":"FLOAT64","count":2,"values":[1.5,"nan"]}"#
        );
        assert_eq!(json_of(Datatype::StringUtf16, &[0xe4, 0]), r#"{"type":"STRING_UTF16","count":1,"text":"ä"}"#);
        assert_eq!(json_of(Datatype::Char, &[0xe4]), r#"{"type":"CHAR","count":1,"hex":"e4"}"#);
        assert_eq!(json_of(Datatype::StringUtf8, &[]), r#"{"type":"STRING_UTF8","count":0,"text":""}"#);
        assert_eq!(
            json_of(Datatype::TimeNs, &7i64.to_le_bytes()),
            r#"{"type":"TIME_NS","count":1,"values":[7],"unit":"ns"}"#
        );
    }

    proptest! {
        #[test]
        fn numbers_read_back_from_both(single in any::<u32>(), double in any::<u64>()) {
            let (single, double) = (f32::from_bits(single), f64::from_bits(double));
            prop_assume!(single.is_finite() && double.is_finite());
            let lines = text_of(Datatype::Float32, &single.to_le_bytes());
            prop_assert_eq!(lines.trim().parse::<f32>().unwrap().to_bits(), single.to_bits());
            let lines = text_of(Datatype::Float64, &double.to_le_bytes());
            prop_assert_eq!(lines.trim().parse::<f64>().unwrap().to_bits(), double.to_bits());
            let in_json: f64 = number_json(Datatype::Float32, &single.to_le_bytes()).to_string().parse().unwrap();
            prop_assert_eq!(in_json.to_bits(), f64::from(single).to_bits());
            let in_json: f64 = number_json(Datatype::Float64, &double.to_le_bytes()).to_string().parse().unwrap();
            prop_assert_eq!(in_json.to_bits(), double.to_bits());
        }
    }

    #[test]
    fn values_beyond_the_limit_are_left_out() {
        let keys = (0..100u8).map(|key| (vec![key], value(Datatype::Int8, &[key; 2000])));
        let metadata: Metadata = keys.collect();
        let text = json(&metadata);
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let entries = parsed.as_object().unwrap();
        assert_eq!(entries.len(), 100);
        let held = entries.values().filter(|entry| entry.get("values").is_some()).count() as u64;
        assert_eq!(held, MAX_JSON / (2000 * NUMBER_IN_JSON));
        assert!(entries.values().all(|entry| entry.get("values").is_some() || entry["left_out"] == "2000 bytes"));
    }

    #[test]
    fn every_key_has_a_file_and_an_entry() {
        let keys: [&[u8]; 5] = [b"..", b"a/b", b"\xff", "\u{fffd}".as_bytes(), b""];
        let metadata: Metadata = keys.iter().map(|key| (key.to_vec(), value(Datatype::Char, key))).collect();
        let folder = files(&metadata, SystemTime::UNIX_EPOCH);
        let parsed: Value = serde_json::from_str(&json(&metadata)).unwrap();
        let entries = parsed.as_object().unwrap();
        assert_eq!(entries.len(), keys.len());
        for (name, entry) in entries {
            let key = entry.get("key_hex").map_or(name.clone(), |hex| hex.as_str().unwrap().to_owned());
            let Some(Node::File(file)) = folder.lookup(entry["file"].as_str().unwrap()).unwrap() else {
                panic!("{key}: no file {}", entry["file"])
            };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.open().unwrap().read_at(0, &mut bytes).unwrap();
            assert!(bytes == key.as_bytes() || hex(&bytes) == key, "{key}");
        }
        assert_eq!(parsed[".."]["file"], "%2E.");
    }
}
