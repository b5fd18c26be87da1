//! Selections of rows by attributes: of every sparse array of the fixtures, the rows are those of the whole array whose
//! values lie in the ranges. Deletes, duplicates and fragments that overlap are among them.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use support::columns::{Number, number_of, size_of};
use support::paths::{node, whole};
use tilefs_base::error::{Error, Result};
use tilefs_tree::TreeOptions;
use tilefs_vfs::{Folder, Node};

/// A value of a cell.
#[derive(Debug, Clone, PartialEq)]
enum AttributeValue {
    Integer(i128),
    Real(f64),
    Text(Vec<u8>),
    Null,
}

/// An attribute and its values in all rows.
struct Compared {
    values: Vec<AttributeValue>,
    is_nullable: bool,
}

fn bytes(root: &Arc<dyn Folder>, path: &str) -> Result<Vec<u8>> {
    match node(root, path) {
        Some(Node::File(file)) => whole(&*file.open()?),
        _ => Err(Error::NotFound { path: path.to_owned() }),
    }
}

fn schema(root: &Arc<dyn Folder>) -> Option<Value> {
    serde_json::from_slice(&bytes(root, "schema.json").ok()?).ok()
}

/// Returns an attribute that has one number or text per cell, and no labels; `None` for others.
fn column(root: &Arc<dyn Folder>, attribute: &Value) -> Option<Result<Compared>> {
    let datatype = attribute["datatype"].as_str()?;
    let files: Vec<&str> = attribute["files"].as_array()?.iter().filter_map(Value::as_str).collect();
    let is_text = matches!(datatype, "STRING_ASCII" | "STRING_UTF8" | "CHAR");
    let (is_variable, is_nullable) = (attribute["values_per_cell"] == "variable", attribute["nullable"] == true);
    let is_single = if is_text { is_variable } else { attribute["values_per_cell"] == 1 };
    if attribute["enumeration"].is_string() || datatype.contains("TIME") || datatype == "BLOB" || !is_single {
        return None;
    }
    let first = *files.first()?;
    let with_ending = |ending: &str| files.iter().copied().find(|file| file.ends_with(ending));
    let (offsets, validity) = (with_ending(".offsets.u64"), with_ending(".valid.u8"));
    let read = || {
        let data = bytes(root, first)?;
        let mut values: Vec<AttributeValue> = match offsets {
            Some(offsets) => {
                let offsets = bytes(root, offsets)?;
                let ends: Vec<usize> =
                    offsets.as_chunks().0.iter().map(|end| u64::from_le_bytes(*end) as usize).collect();
                ends.windows(2).map(|ends| AttributeValue::Text(data[ends[0]..ends[1]].to_vec())).collect()
            }
            None => data.chunks_exact(size_of(datatype)).map(|cell| number(datatype, cell)).collect(),
        };
        let valid = validity.filter(|_| is_nullable).map(|file| bytes(root, file)).transpose()?;
        for (value, valid) in values.iter_mut().zip(valid.unwrap_or_default()) {
            if valid == 0 {
                *value = AttributeValue::Null;
            }
        }
        Ok(Compared { values, is_nullable })
    };
    Some(read())
}

fn number(datatype: &str, cell: &[u8]) -> AttributeValue {
    match number_of(datatype, cell) {
        Some(Number::Integer(value)) => AttributeValue::Integer(value),
        Some(Number::Real(value)) => AttributeValue::Real(value),
        None => panic!("{datatype} is no number"),
    }
}

/// Returns a value as it is typed in a selection.
fn written(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Null => "%null".to_owned(),
        AttributeValue::Integer(value) => value.to_string(),
        AttributeValue::Real(value) => format!("{value:?}"),
        AttributeValue::Text(text) if text.is_empty() => "%".to_owned(),
        AttributeValue::Text(text) => text.iter().map(|byte| format!("%{byte:02x}")).collect(),
    }
}

fn is_within(value: &AttributeValue, low: &AttributeValue, high: &AttributeValue) -> bool {
    match (value, low, high) {
        (AttributeValue::Integer(value), AttributeValue::Integer(low), AttributeValue::Integer(high)) => {
            low <= value && value <= high
        }
        (AttributeValue::Real(value), AttributeValue::Real(low), AttributeValue::Real(high)) => {
            low <= value && value <= high
        }
        (AttributeValue::Text(value), AttributeValue::Text(low), AttributeValue::Text(high)) => {
            low <= value && value <= high
        }
        _ => false,
    }
}

/// What a selection says, and whether it holds for a value.
type Case = (String, Box<dyn Fn(&AttributeValue) -> bool>);

/// Returns selections of an attribute: of ranges, of two values, of nulls, and of what is not null.
fn cases(column: &Compared) -> Vec<Case> {
    let is_number = |value: &AttributeValue| {
        !matches!(value, AttributeValue::Null) && !matches!(value, AttributeValue::Real(value) if !value.is_finite())
    };
    let mut known: Vec<&AttributeValue> = column.values.iter().filter(|value| is_number(value)).collect();
    known.sort_by(|a, b| match (is_within(a, a, b), is_within(b, b, a)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        _ => Ordering::Greater,
    });
    let mut cases: Vec<Case> = Vec::new();
    if let [first, .., last] = *known {
        let middle = known[known.len() / 2];
        for (low, high) in [(first, middle), (middle, last), (middle, middle)] {
            let (low, high) = (low.clone(), high.clone());
            let text = format!("{}..{}", written(&low), written(&high));
            cases.push((text, Box::new(move |value| is_within(value, &low, &high))));
        }
        let (low, high) = (first.clone(), last.clone());
        let text = format!("{}+{}", written(first), written(last));
        cases.push((text, Box::new(move |value| is_within(value, &low, &low) || is_within(value, &high, &high))));
    }
    cases.push(("..".to_owned(), Box::new(|value| *value != AttributeValue::Null)));
    if column.is_nullable {
        cases.push(("%null".to_owned(), Box::new(|value| *value == AttributeValue::Null)));
    }
    cases
}

/// Compares selections of one array. Returns how many were compared.
fn compare(root: &Arc<dyn Folder>, place: &Path) -> usize {
    let Some(schema) = schema(root).filter(|schema| schema["array_type"] == "sparse") else { return 0 };
    let names = |of: &str| schema[of].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    let mut compared = 0;
    for (number, attribute) in schema["attributes"].as_array().into_iter().flatten().enumerate() {
        let name = attribute["name"].as_str().unwrap_or_default();
        let is_taken = names("dimensions").chain(names("dimension_labels")).any(|other| other == name);
        let Some(Ok(column)) = column(root, attribute).filter(|_| !is_taken) else { continue };
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for (text, holds) in cases(&column) {
            let selection = format!("slice/{escaped}={text}");
            let what = format!("{}: {selection}", place.display());
            let Some(Node::Folder(slice)) = node(root, &selection) else { panic!("{what}: no such folder") };
            let selected = self::schema(&slice).and_then(|schema| self::column(&slice, &schema["attributes"][number]));
            let selected = match selected {
                Some(Ok(selected)) => selected.values,
                Some(Err(error)) if error.to_string().contains("when cells were written") => continue,
                Some(Err(error)) => panic!("{what}: {error}"),
                None => panic!("{what}: no column"),
            };
            let wanted: Vec<String> = column.values.iter().filter(|value| holds(value)).map(written).collect();
            assert_eq!(selected.iter().map(written).collect::<Vec<_>>(), wanted, "{what}");
            compared += 1;
        }
    }
    compared
}

fn arrays_below(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("__schema").is_dir() || folder.join("__array_schema.tdb").exists() {
        found.push(folder.to_owned());
        return;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).for_each(|entry| arrays_below(&entry.path(), found));
}

#[test]
fn rows_are_selected_by_the_values_of_attributes() {
    let mut arrays = Vec::new();
    arrays_below(&tilefs_fixtures::fixtures().join("arrays/sparse"), &mut arrays);
    let open = |path: &Path| tilefs_tree::open(path, &TreeOptions::default()).ok();
    let compared: usize = arrays.iter().filter_map(|path| Some(compare(&open(path)?, path))).sum();
    assert!(compared > 300, "{compared} selections were compared");
}
