//! A manifest of arrays and groups, with the data that libtiledb reads from them: see tests/fixtures/README.md.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// An array or a group, and what must be read from it.
pub struct Object {
    /// Its location.
    pub place: PathBuf,
    /// Its name in reports.
    pub name: String,
    pub is_group: bool,
    pub key: Option<String>,
    /// The error with which libtiledb fails to open it.
    pub newest_error: Option<String>,
    /// Whether it contains absolute addresses, so that reads differ at its current location.
    pub moved: bool,
    pub tags: Vec<String>,
    pub schema: Option<Schema>,
    pub reads: Vec<Read>,
}

pub struct Schema {
    pub dense: bool,
    pub cell_order: String,
    pub allows_duplicates: bool,
    pub version: u64,
    pub dims: Vec<Dim>,
    pub attrs: Vec<Attr>,
    /// Per dimension, both ends included.
    pub current_domain: Option<Vec<(Value, Value)>>,
    /// The name, whether the labels are text, and the bytes of each label.
    pub enumerations: Vec<(String, bool, Vec<Vec<u8>>)>,
}

pub struct Dim {
    pub name: String,
    pub datatype: String,
    pub domain: Option<(Value, Value)>,
}

pub struct Attr {
    pub name: String,
    pub datatype: String,
    pub nullable: bool,
    /// Values per cell; `None` if the number varies.
    pub cells: Option<usize>,
    /// Whether its filters include WebP.
    pub webp: bool,
}

/// One read of an object.
pub struct Read {
    pub name: String,
    /// From and to, in milliseconds; `None` is everything.
    pub window: Option<(u64, u64)>,
    /// Per dimension, both ends included; `None` is everything.
    pub subarray: Option<Vec<(Value, Value)>>,
    pub cells: usize,
    /// `None` if only `sha256` is known.
    pub fields: Option<Vec<Field>>,
    /// The digest of the fields in order: values, offsets, validity.
    pub sha256: Option<String>,
    /// The file with the number, among the sorted rows, of each row in libtiledb's own order (u32).
    pub row_order: Option<PathBuf>,
    /// If only this is known, the first digits of the SHA-256 of these numbers, with equal rows counted as the first of
    /// them.
    pub row_order_digest: Option<String>,
    pub metadata: Option<Vec<Metadata>>,
    pub members: Option<Vec<Member>>,
    /// The error with which libtiledb fails.
    pub newest_error: Option<String>,
    /// Whether libtiledb's result differs from what was written.
    pub disputed: bool,
    pub as_written_cells: Option<usize>,
    /// The schema, if it is not the newest.
    pub schema: Option<Schema>,
}

pub struct Field {
    pub name: String,
    pub datatype: String,
    pub is_dimension: bool,
    pub cells: Option<usize>,
    /// The error with which libtiledb fails to read the field, so that its values are not known.
    pub newest_error: Option<String>,
    pub values: Expected,
    pub offsets: Option<Expected>,
    pub validity: Option<Expected>,
}

/// Bytes, or their digest.
pub enum Expected {
    File(PathBuf),
    Sha256(String),
}

pub struct Metadata {
    pub key: String,
    pub datatype: String,
    pub value: Vec<u8>,
}

pub struct Member {
    pub name: Option<String>,
    pub is_group: bool,
    pub relative_path: Option<String>,
}

/// Returns all objects of a manifest; paths in it are relative to its folder. `prefix` precedes the names in reports.
pub fn load(file: &Path, prefix: &str) -> Vec<Object> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let manifest: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let base = file.parent().expect("a file is in a folder");
    let arrays = optional_text(&manifest["arrays_in"]).map_or(base.to_owned(), PathBuf::from);
    list(&manifest["objects"]).iter().map(|entry| object(entry, base, &arrays, prefix)).collect()
}

/// Adds the digests of row orders that were recorded separately from a manifest, by "path read"; returns the number of
/// reads with one.
pub fn add_row_orders(objects: &mut [Object], recorded: &Value) -> usize {
    let mut added = 0;
    for object in objects {
        for read in &mut object.reads {
            read.row_order_digest = optional_text(&recorded[format!("{} {}", object.name, read.name)]);
            added += usize::from(read.row_order_digest.is_some());
        }
    }
    added
}

fn object(entry: &Value, base: &Path, arrays: &Path, prefix: &str) -> Object {
    let path = text(&entry["path"]);
    Object {
        place: arrays.join(&path),
        name: format!("{prefix}{path}"),
        is_group: entry["kind"] == "group",
        key: optional_text(&entry["key"]),
        newest_error: optional_text(&entry["newest_error"]),
        moved: entry["relocatable"] == false,
        tags: list(&entry["tags"]).iter().map(text).collect(),
        schema: schema(&entry["schema"]),
        reads: list(&entry["reads"]).iter().map(|one| read(one, base)).collect(),
    }
}

fn schema(entry: &Value) -> Option<Schema> {
    entry.as_object()?;
    let dims = list(&entry["dims"]).iter().map(|dim| Dim {
        name: text(&dim["name"]),
        datatype: text(&dim["type"]),
        domain: dim["domain"].as_array().map(|ends| (ends[0].clone(), ends[1].clone())),
    });
    let attrs = list(&entry["attrs"]).iter().map(|attr| Attr {
        name: text(&attr["name"]),
        datatype: text(&attr["type"]),
        nullable: attr["nullable"] == true,
        cells: number(&attr["cell_val_num"]),
        webp: list(&attr["filters"]["filters"]).iter().any(|filter| filter["type"] == "WEBP"),
    });
    let enumerations = entry["enumerations"].as_object().into_iter().flatten().map(|(name, one)| {
        let datatype = text(&one["type"]);
        let is_text = datatype == "CHAR" || datatype.starts_with("STRING_");
        (name.clone(), is_text, list(&one["values_hex"]).iter().map(|value| from_hex(&text(value))).collect())
    });
    Some(Schema {
        dense: entry["array_type"] == "dense",
        cell_order: text(&entry["cell_order"]),
        allows_duplicates: entry["allows_dups"] == true,
        version: entry["version"].as_u64().unwrap_or(0),
        dims: dims.collect(),
        attrs: attrs.collect(),
        current_domain: entry["current_domain"].as_array().map(|ranges| ranges.iter().map(pair).collect()),
        enumerations: enumerations.collect(),
    })
}

fn read(entry: &Value, base: &Path) -> Read {
    Read {
        name: text(&entry["name"]),
        window: entry["timestamps"]
            .as_array()
            .map(|ends| (ends[0].as_u64().unwrap_or(0), ends[1].as_u64().unwrap_or(u64::MAX))),
        subarray: entry["subarray"].as_array().map(|ranges| ranges.iter().map(pair).collect()),
        cells: number(&entry["cells"]).unwrap_or(0),
        fields: entry["fields"].as_array().map(|fields| fields.iter().map(|one| field(one, base)).collect()),
        sha256: optional_text(&entry["sha256"]),
        row_order: optional_text(&entry["row_order_file"]).map(|file| base.join(file)),
        row_order_digest: None,
        metadata: entry["metadata"].as_array().map(|entries| entries.iter().map(metadata).collect()),
        members: entry["members"].as_array().map(|members| members.iter().map(member).collect()),
        newest_error: optional_text(&entry["newest_error"]),
        disputed: entry["disputed"] == true,
        as_written_cells: number(&entry["as_written_cells"]),
        schema: schema(&entry["schema"]),
    }
}

fn field(entry: &Value, base: &Path) -> Field {
    let expected = |kind: &str| {
        let file = optional_text(&entry[format!("{kind}file")]).map(|file| Expected::File(base.join(file)));
        file.or_else(|| optional_text(&entry[format!("{kind}sha256")]).map(Expected::Sha256))
    };
    Field {
        name: text(&entry["name"]),
        datatype: text(&entry["type"]),
        is_dimension: entry["field"] == "dim",
        cells: number(&entry["cell_val_num"]),
        newest_error: optional_text(&entry["newest_error"]),
        values: expected("").unwrap_or_else(|| Expected::Sha256(String::new())),
        offsets: expected("offsets_"),
        validity: expected("validity_"),
    }
}

fn metadata(entry: &Value) -> Metadata {
    Metadata { key: text(&entry["key"]), datatype: text(&entry["type"]), value: from_hex(&text(&entry["hex"])) }
}

fn member(entry: &Value) -> Member {
    Member {
        name: optional_text(&entry["name"]),
        is_group: entry["type"] == "group",
        relative_path: optional_text(&entry["relative_path"]),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn optional_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().map(|number| number as usize)
}

fn pair(value: &Value) -> (Value, Value) {
    (value[0].clone(), value[1].clone())
}

fn from_hex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}
