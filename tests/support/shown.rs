//! Columns from the virtual tree, found by the documented names of its files.

use std::sync::Arc;

use serde_json::Value;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_vfs::{EntryKind, Folder, Node};

use super::columns::{Column, size_of};
use super::manifest::Schema;

/// Returns all columns in the folder of an array or a slice, in the order of the schema (sparse: dimensions first),
/// each as its cells or an error.
///
/// # Errors
/// If there is no folder of coordinates.
pub fn columns_of(folder: &dyn Folder, schema: &Schema) -> Result<Vec<(String, Result<Column>)>> {
    let mut columns = Vec::new();
    if !schema.dense {
        let dims = subfolder(folder, "dims")?;
        for (number, dim) in schema.dims.iter().enumerate() {
            let cells = (dim.datatype != "STRING_ASCII").then_some(1);
            let name = if dim.name.is_empty() { &format!("__dim_{number}") } else { &dim.name };
            let read = column(&*dims, name, &dim.datatype, cells, false);
            columns.push((dim.name.clone(), read.map(|column| Column { is_dimension: true, ..column })));
        }
    }
    for attr in &schema.attrs {
        columns.push((attr.name.clone(), column(folder, &attr.name, &attr.datatype, attr.cells, attr.nullable)));
    }
    Ok(columns)
}

/// Reads one column: `NAME.EXT`, and `NAME.offsets.u64` and `NAME.valid.u8` if it has them.
fn column(folder: &dyn Folder, name: &str, datatype: &str, cells: Option<usize>, nullable: bool) -> Result<Column> {
    let values = file(folder, name, &format!(".{}", extension(datatype)))?;
    let offsets = match cells {
        Some(_) => None,
        None => Some(offsets_within(&file(folder, name, ".offsets.u64")?, values.len(), name)?),
    };
    let validity = if nullable { Some(file(folder, name, ".valid.u8")?) } else { None };
    let column = Column {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        cell_size: cells.map(|cells| cells * size_of(datatype)),
        is_dimension: false,
        values,
        offsets,
        validity,
    };
    match &column.validity {
        Some(validity) if validity.len() != column.cells() => {
            Err(Error::damaged(format!("{name}: {} validity bytes for {} cells", validity.len(), column.cells())))
        }
        _ => Ok(column),
    }
}

/// Returns the start of each cell, from n + 1 offsets, the last of which must be the end of the values.
pub fn offsets_within(bytes: &[u8], end: usize, name: &str) -> Result<Vec<u64>> {
    let mut offsets: Vec<u64> =
        bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes"))).collect();
    let last = offsets.pop();
    if last != Some(end as u64) || !bytes.len().is_multiple_of(8) || !offsets.is_sorted() {
        return Err(Error::damaged(format!("{name}: the offsets end at {last:?}, the values at {end}")));
    }
    Ok(offsets)
}

/// Returns the extension of a datatype's raw file.
pub fn extension(datatype: &str) -> &'static str {
    match (datatype, size_of(datatype)) {
        ("INT8", _) => "i8",
        ("UINT8", _) => "u8",
        ("INT16", _) => "i16",
        ("INT32", _) => "i32",
        ("UINT64", _) => "u64",
        ("FLOAT32", _) => "f32",
        ("FLOAT64", _) => "f64",
        ("BOOL", _) => "bool",
        (_, 1) => "bytes",
        (_, 2) => "u16",
        (_, 4) => "u32",
        _ => "i64",
    }
}

/// Reads the file of a user's name; the file name may be escaped.
pub fn file(folder: &dyn Folder, name: &str, extension: &str) -> Result<Vec<u8>> {
    match find(folder, name, extension)? {
        Some(Node::File(file)) => {
            let length = file.len()?;
            let content = file.open()?;
            if content.len() != length {
                return Err(Error::damaged(format!("{name}{extension}: {} bytes, not {length}", content.len())));
            }
            read_all(&*content)
        }
        _ => Err(Error::NotFound { path: format!("{name}{extension}") }),
    }
}

/// The files of a tree, by path.
pub type Files = Vec<(String, Vec<u8>)>;

/// Folders of arrays that [`files_of`] reads; it reads all folders of groups.
const READ_FOLDERS: [&str; 3] = ["dims", "labels", ".group"];

/// Texts with paths, times and warnings.
const EXPLAINING: [&str; 6] = ["README.txt", ".hdr", "schema.txt", "fragments.tsv", "group.json", "schema.json"];

/// Reads everything in a tree that does not depend on its place and time: for arrays the values, coordinates and
/// metadata, for groups the members and their contents, for labels their values.
///
/// # Errors
/// If anything cannot be read, a member of a group included.
pub fn files_of(root: &dyn Folder) -> Result<Files> {
    let mut files = Files::new();
    add_files(root, "", &mut files)?;
    Ok(files)
}

fn add_files(folder: &dyn Folder, path: &str, files: &mut Files) -> Result<()> {
    let entries = folder.list()?;
    let is_group = entries.iter().any(|entry| entry.name == ".group");
    for entry in entries {
        let path = format!("{path}/{}", entry.name);
        let is_read = match entry.kind {
            EntryKind::File => !EXPLAINING.iter().any(|end| entry.name.ends_with(end)),
            EntryKind::Folder => is_group || READ_FOLDERS.contains(&entry.name.as_str()),
        };
        if !is_read {
            continue;
        }
        match folder.lookup(&entry.name)? {
            Some(Node::File(file)) => {
                let bytes = read_all(&*file.open()?)?;
                let text = String::from_utf8_lossy(&bytes);
                // The table of members tells the errors of members.
                if path.ends_with("members.tsv") && !text.lines().skip(1).all(|line| line.ends_with("\tok")) {
                    return Err(Error::missing("a member").in_file(path));
                }
                files.push((path, bytes));
            }
            Some(Node::Folder(inner)) => add_files(&*inner, &path, files)?,
            None => return Err(Error::NotFound { path }),
        }
    }
    Ok(())
}

/// Reads all bytes, and parts of them again in another order.
pub fn read_all(content: &dyn tilefs_base::content::Content) -> Result<Vec<u8>> {
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes)?;
    for part in [3, 1, 4, 0, 2] {
        let (start, end) = (bytes.len() * part / 5, bytes.len() * (part + 1) / 5);
        let (start, end) = (start + (end - start) / 7, end.min(start + 100));
        let mut again = vec![0xaa; end.saturating_sub(start)];
        content.read_at(start.min(end) as u64, &mut again)?;
        if again != bytes[start.min(end)..end] {
            return Err(Error::damaged(format!("two reads of bytes {start}..{end} differ")));
        }
    }
    Ok(bytes)
}

/// Returns the node of a user's name with an extension, by its own name or its escaped one.
pub fn find(folder: &dyn Folder, name: &str, extension: &str) -> Result<Option<Node>> {
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['%', '/', '\\']);
    if plain
        && !name.chars().any(char::is_control)
        && let Some(node) = folder.lookup(&format!("{name}{extension}"))?
    {
        return Ok(Some(node));
    }
    for entry in folder.list()? {
        let Some(stem) = entry.name.strip_suffix(extension) else { continue };
        let cut = stem.split_once("%~").is_some_and(|(start, _)| name.starts_with(&decoded(start)));
        if cut || decoded(stem) == name || (name.is_empty() && stem == "%") {
            return folder.lookup(&entry.name);
        }
    }
    if name.is_empty() { folder.lookup(&format!("data{extension}")) } else { Ok(None) }
}

/// Returns a file name with its percent escapes decoded.
pub fn decoded(stem: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = stem.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn subfolder(folder: &dyn Folder, name: &str) -> Result<Arc<dyn Folder>> {
    match folder.lookup(name)? {
        Some(Node::Folder(found)) => Ok(found),
        _ => Err(Error::NotFound { path: format!("{name}/") }),
    }
}

/// Returns the folder of a window of time, both ends included: `.history/TO` or `.history/FROM..TO`.
pub fn history(root: &dyn Folder, (from, to): (u64, u64)) -> Result<Arc<dyn Folder>> {
    let time = tilefs_tree::select::time::basic;
    let name = if from == 0 { time(to) } else { format!("{}..{}", time(from), time(to)) };
    subfolder(&*subfolder(root, ".history")?, &name)
}

/// Returns the folder of a box of cells: `slice/LOW..HIGH,LOW..HIGH`.
pub fn slice(root: &dyn Folder, schema: &Schema, ranges: &[(Value, Value)]) -> Result<Arc<dyn Folder>> {
    let selection = selection(schema, ranges);
    subfolder(&*subfolder(root, "slice")?, &selection)
}

/// Returns a box as the path of a slice.
pub fn selection(schema: &Schema, ranges: &[(Value, Value)]) -> String {
    let ends = schema.dims.iter().zip(ranges).map(|(dim, (low, high))| {
        let end = |value: &Value| match value {
            Value::String(text) if dim.datatype == "STRING_ASCII" => {
                // The manifests write bytes as Latin-1.
                text.chars().map(|c| escaped(u32::from(c) as u8)).collect()
            }
            Value::String(special) => special.to_lowercase(),
            number => format!("{number}{}", unit(&dim.datatype)),
        };
        format!("{}..{}", end(low), end(high))
    });
    ends.collect::<Vec<_>>().join(",")
}

/// Returns the suffix of a count of a date or time: NumPy's name of the unit.
fn unit(datatype: &str) -> &str {
    let name = datatype.strip_prefix("DATETIME_").or_else(|| datatype.strip_prefix("TIME_"));
    let units = [("YEAR", "Y"), ("MONTH", "M"), ("WEEK", "W"), ("DAY", "D"), ("HR", "h"), ("MIN", "m"), ("SEC", "s")];
    let fine = [("MS", "ms"), ("US", "us"), ("NS", "ns"), ("PS", "ps"), ("FS", "fs"), ("AS", "as")];
    units.iter().chain(&fine).find(|(long, _)| Some(*long) == name).map_or("", |(_, unit)| unit)
}

fn escaped(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}
