//! Compares one array or group with its entry in the manifest.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tilefs_base::error::Result;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{Folder, Node};

use super::columns::{
    Column, Number, canonical_dense, canonical_sparse, compare_rows, digest, hex, number_of, size_of,
};
use super::disputed::Disputed;
use super::manifest::{Expected, Object, Read, Schema};
use super::report::Report;
use super::shown;

/// The kind of checks of `.history`.
pub const HISTORY: &str = "reads below .history";

/// Checks an object; returns the report.
pub fn check(object: &Object) -> Report {
    let mut report = Report::default();
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut report = Report::default();
        Check { object, report: &mut report, key: key_file(object) }.all();
        report
    }));
    match checked {
        Ok(made) => report.joined_with(made),
        Err(cause) => {
            let text = cause.downcast_ref::<String>().cloned();
            let text = text.or_else(|| cause.downcast_ref::<&str>().map(|&text| text.to_owned()));
            report.failed("objects", &object.name, "", "", format!("PANIC: {}", text.unwrap_or_default()));
            report
        }
    }
}

fn key_file(object: &Object) -> Option<NamedTempFile> {
    let key = object.key.as_ref()?;
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(key.as_bytes()).expect("a temporary file is written");
    Some(file)
}

struct Check<'a> {
    object: &'a Object,
    report: &'a mut Report,
    key: Option<NamedTempFile>,
}

impl Check<'_> {
    fn all(&mut self) {
        let opened = self.open(None);
        match (&self.object.newest_error, opened) {
            // Reading more than libtiledb can is allowed, but there is nothing to compare with.
            (Some(_), Err(error)) if error.to_string().is_empty() => {
                self.failed("objects", "", "", "an error without a word");
            }
            (Some(_), _) => self.report.passed("objects that libtiledb cannot open"),
            (None, Err(error)) => self.failed("objects", "", "", format!("cannot open: {error}")),
            (None, Ok(root)) => {
                self.report.passed("objects");
                for read in &self.object.reads {
                    if read.window.is_none() {
                        self.read(read, &*root);
                    } else {
                        self.history(read, &*root);
                        match self.open(read.window) {
                            Ok(root) => self.read(read, &*root),
                            Err(_) if read.newest_error.is_some() => {
                                self.report.passed("reads that libtiledb cannot do")
                            }
                            Err(error) => self.failed("reads", &read.name, "", format!("cannot open: {error}")),
                        }
                    }
                }
            }
        }
    }

    /// Opens the tree in a window of time; without one, in the newest state, which may be dated in the future.
    fn open(&self, window: Option<(u64, u64)>) -> Result<Arc<dyn Folder>> {
        let (from, at) = window.unwrap_or((0, u64::MAX));
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions {
                at: Some(at),
                from: (from > 0).then_some(from),
                key_file: self.key.as_ref().map(|file| file.path().to_owned()),
                cache_size: 32 << 20,
                threads: 1,
                ..Default::default()
            },
            ..TreeOptions::default()
        };
        tree::open(&self.object.place, &options)
    }

    /// Checks the same window of time by a name below `.history`.
    fn history(&mut self, read: &Read, root: &dyn Folder) {
        let Some(window) = read.window else { return };
        let mut report = Report::default();
        match shown::history(root, window) {
            Ok(then) => Check { object: self.object, report: &mut report, key: None }.read(read, &*then),
            Err(_) if read.newest_error.is_some() => {}
            Err(error) => {
                report.failed(HISTORY, &self.object.name, &read.name, ".history", error.to_string());
            }
        }
        self.report.add_as(HISTORY, report);
    }

    fn read(&mut self, read: &Read, root: &dyn Folder) {
        if let Some(members) = &read.members {
            self.members(read, members, root);
            match shown::subfolder(root, ".group") {
                Ok(folder) => self.metadata(read, &*folder),
                Err(error) => self.failed("groups", &read.name, ".group", error.to_string()),
            }
            return;
        }
        let schema = read.schema.as_ref().or(self.object.schema.as_ref()).expect("an array has a schema");
        self.cells(read, schema, root);
        self.metadata(read, root);
        if read.name == "full" {
            self.enumerations(schema, root);
        }
    }

    fn cells(&mut self, read: &Read, schema: &Schema, root: &dyn Folder) {
        let kind = match (&read.fields, schema.dense, read.window) {
            (None, true, _) => "dense slices",
            (None, false, _) => "sparse slices",
            (_, true, None) => "dense arrays",
            (_, false, None) => "sparse arrays",
            (_, true, _) => "dense arrays in a window of time",
            (_, false, _) => "sparse arrays in a window of time",
        };
        let part = read.subarray.as_ref().filter(|ranges| !(schema.dense && is_whole(schema, ranges)));
        let columns = match part {
            None => shown::columns_of(root, schema),
            Some(ranges) => shown::slice(root, schema, ranges).and_then(|folder| shown::columns_of(&*folder, schema)),
        };
        if read.newest_error.is_some() {
            return self.report.passed("reads that libtiledb cannot do");
        }
        let place = part.map(|ranges| shown::selection(schema, ranges)).unwrap_or_default();
        let columns = match columns {
            Err(error) => return self.failed(kind, &read.name, &place, error.to_string()),
            Ok(columns) => columns,
        };
        let expected_errors = read.fields.iter().flatten().map(|field| field.newest_error.as_deref());
        let disputed = Disputed::of(self.object, read);
        let mut found = Vec::new();
        let mut known = Vec::new();
        for ((name, column), expected_error) in columns.into_iter().zip(expected_errors.chain(std::iter::repeat(None)))
        {
            match (column, expected_error) {
                (Ok(column), None) => known.push(column),
                (Err(error), None) => match found.iter_mut().find(|(_, what)| *what == error.to_string()) {
                    Some((names, _)) => *names = format!("{names}, {name}"),
                    None => found.push((format!("{place} {name}"), error.to_string())),
                },
                (Err(_), Some(_)) => self.report.passed("fields that libtiledb cannot read"),
                (Ok(_), Some(why)) => found.push((name.clone(), format!("has values, but libtiledb says: {why}"))),
            }
        }
        if found.is_empty() && !known.is_empty() {
            let (canonical, order) = match schema.dense {
                true => (canonical_dense(&known), Vec::new()),
                false => canonical_sparse(&known),
            };
            found = match (&disputed, &read.sha256) {
                (Some(disputed), _) => disputed.differs(&canonical).map(|what| (place, what)).into_iter().collect(),
                (None, None) => fields_differ(read, &canonical),
                (None, Some(expected)) if digest(&canonical) == *expected => Vec::new(),
                (None, Some(_)) => self.slice_differs(read, schema, &canonical),
            };
            if found.is_empty() {
                self.row_order(read, &canonical, &order);
            }
        }
        match found.as_slice() {
            [] if read.disputed => self.report.passed("reads that are disputed"),
            [] => self.report.passed(kind),
            found => found.iter().for_each(|(field, what)| self.failed(kind, &read.name, field, what)),
        }
    }

    /// Returns the differences in a slice of which only a digest is known, by cutting the slice out of the expected
    /// whole.
    fn slice_differs(&self, read: &Read, schema: &Schema, columns: &[Column]) -> Vec<(String, String)> {
        let ranges = read.subarray.as_deref().unwrap_or_default();
        let selection = shown::selection(schema, ranges);
        let full = self.object.reads.iter().find(|one| one.name == "full");
        let whole = full.and_then(|full| full.fields.as_ref()?.iter().map(expected_column).collect::<Option<Vec<_>>>());
        let (Some(full), Some(whole)) = (full, whole) else {
            return vec![(selection, "the digest differs".to_owned())];
        };
        let numbers = cells_within(schema, &whole, full, ranges);
        let expected: Vec<Column> = whole.iter().map(|column| column.masked(numbers.iter().copied())).collect();
        let differing = expected
            .iter()
            .zip(columns)
            .filter(|(a, b)| digest(std::slice::from_ref(a)) != digest(std::slice::from_ref(b)));
        differing.map(|(a, b)| (format!("{} in {selection}", b.name), first_difference(a, b, &read.shape()))).collect()
    }

    /// Checks that the rows are in the order in which libtiledb returned them.
    fn row_order(&mut self, read: &Read, sorted: &[Column], order: &[u32]) {
        if let Some(recorded) = &read.row_order_digest {
            match order_digest(sorted, order).starts_with(recorded) {
                true => self.report.passed("row orders"),
                false => self.failed("row orders", &read.name, "", "the rows come in another order than libtiledb's"),
            }
        }
        let Some(file) = &read.row_order else { return };
        let expected = fs::read(file).expect("an expected file");
        let expected = expected.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")));
        let wrong = order.iter().zip(expected).position(|(&got, expected)| {
            got != expected && compare_rows(sorted, got as usize, expected as usize).is_ne()
        });
        match wrong {
            None => self.report.passed("row orders"),
            Some(row) => self.failed("row orders", &read.name, "", format!("row {row} is another than libtiledb's")),
        }
    }

    fn metadata(&mut self, read: &Read, folder: &dyn Folder) {
        let Some(expected) = &read.metadata else { return };
        let meta = shown::subfolder(folder, "meta");
        let listed = match &meta {
            Ok(meta) => meta.list().map(|entries| entries.len()),
            Err(_) if expected.is_empty() => Ok(0),
            Err(error) => Err(error.clone()),
        };
        match listed {
            Err(error) => return self.failed("metadata", &read.name, "", error.to_string()),
            Ok(count) if count != expected.len() => {
                return self.failed("metadata", &read.name, "", format!("{count} keys, not {}", expected.len()));
            }
            Ok(_) => {}
        }
        let Ok(meta) = meta else { return };
        for entry in expected {
            match shown::file(&*meta, &entry.key, "").map(|file| stored(&entry.datatype, file)) {
                Err(error) => self.failed("metadata", &read.name, &entry.key, error.to_string()),
                Ok(got) if got != entry.value => {
                    let what = format!("{} {}, not {}", entry.datatype, hex(&got), hex(&entry.value));
                    self.failed("metadata", &read.name, &entry.key, what);
                }
                Ok(_) => self.report.passed("metadata"),
            }
        }
    }

    /// Checks the files with the labels of enumerations of text, one per line.
    fn enumerations(&mut self, schema: &Schema, root: &dyn Folder) {
        for (name, is_text, values) in &schema.enumerations {
            let got = shown::subfolder(root, "enums").and_then(|enums| shown::file(&*enums, name, ".txt"));
            let lines = match &got {
                Err(error) => return self.failed("enumerations", "", name, error.to_string()),
                Ok(text) => text.split_inclusive(|&byte| byte == b'\n').collect::<Vec<_>>(),
            };
            let expected: Vec<Vec<u8>> = values.iter().map(|value| one_line(value)).collect();
            if lines.len() != values.len() {
                self.failed("enumerations", "", name, format!("{} lines, not {}", lines.len(), values.len()));
            } else if *is_text && lines != expected {
                self.failed("enumerations", "", name, "another label");
            } else {
                self.report.passed("enumerations");
            }
        }
    }

    /// Checks that the members within the group are folders with their names.
    fn members(&mut self, read: &Read, members: &[super::manifest::Member], root: &dyn Folder) {
        if self.object.moved {
            return self.report.passed("groups that were moved");
        }
        let mut wrong = Vec::new();
        let mut names = BTreeSet::new();
        for member in members {
            let Some(path) = &member.relative_path else { continue };
            let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
            let name = member.name.as_deref().unwrap_or(last);
            names.insert(name);
            if !matches!(shown::find(root, name, ""), Ok(Some(Node::Folder(_)))) {
                wrong.push(name);
            }
        }
        match wrong.as_slice() {
            [] => self.report.passed("groups"),
            _ => self.failed("groups", &read.name, &wrong.join(", "), "no such folder"),
        }
    }

    fn failed(&mut self, kind: &'static str, read: &str, field: &str, what: impl Into<String>) {
        // The report already names the object.
        let place = self.object.place.display().to_string();
        self.report.failed(kind, &self.object.name, read, field, what.into().replace(&place, "..."));
    }
}

/// Returns the fields that are not as expected, and the differences.
pub fn fields_differ(read: &Read, columns: &[Column]) -> Vec<(String, String)> {
    let fields = read.fields.iter().flatten().filter(|field| field.newest_error.is_none());
    let mut found = Vec::new();
    for (field, column) in fields.zip(columns) {
        if column.cells() != read.cells {
            found.push((field.name.clone(), format!("{} cells, not {}", column.cells(), read.cells)));
            continue;
        }
        let parts = [
            ("values", Some(&field.values), Some(column.values.clone())),
            ("offsets", field.offsets.as_ref(), column.offset_bytes()),
            ("validity", field.validity.as_ref(), column.validity.clone()),
        ];
        let differs = parts.into_iter().find(|(_, expected, got)| match (expected, got) {
            (Some(expected), Some(got)) => !is(expected, got),
            (expected, got) => expected.is_some() != got.is_some(),
        });
        if let Some((part, ..)) = differs {
            let detail = expected_column(field).map(|expected| first_difference(&expected, column, &read.shape()));
            found.push((field.name.clone(), detail.unwrap_or_else(|| format!("the {part} differ"))));
        }
    }
    found
}

impl Read {
    /// Returns the number of cells along each dimension of a dense read; empty for a sparse one.
    fn shape(&self) -> Vec<usize> {
        let ranges = self.subarray.iter().flatten();
        ranges.map(|(low, high)| (integer(high) - integer(low) + 1).max(0) as usize).collect()
    }
}

/// Returns whether a box is the one that the files of a dense array's folder cover.
fn is_whole(schema: &Schema, ranges: &[(Value, Value)]) -> bool {
    match &schema.current_domain {
        Some(current) => current == ranges,
        None => schema.dims.iter().zip(ranges).all(|(dim, range)| dim.domain.as_ref() == Some(range)),
    }
}

/// Returns the digest of the number of each row among the sorted rows; equal rows count as the first of them.
fn order_digest(sorted: &[Column], order: &[u32]) -> String {
    let mut first: Vec<u32> = (0..order.len() as u32).collect();
    for row in 1..first.len() {
        if compare_rows(sorted, row - 1, row).is_eq() {
            first[row] = first[row - 1];
        }
    }
    hex(&Sha256::digest(order.iter().flat_map(|&row| first[row as usize].to_le_bytes()).collect::<Vec<u8>>()))
}

fn integer(value: &Value) -> i128 {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).unwrap_or(0)
}

fn is(expected: &Expected, got: &[u8]) -> bool {
    match expected {
        Expected::File(file) => fs::read(file).expect("an expected file") == got,
        Expected::Sha256(digest) => hex(&Sha256::digest(got)) == *digest,
    }
}

/// Returns the expected column, if its bytes are known.
pub fn expected_column(field: &super::manifest::Field) -> Option<Column> {
    let bytes = |expected: &Expected| match expected {
        Expected::File(file) => Some(fs::read(file).expect("an expected file")),
        Expected::Sha256(_) => None,
    };
    let offsets = field.offsets.as_ref().map(bytes).map(|known| {
        let known = known?;
        Some(known.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes"))).collect())
    });
    Some(Column {
        name: field.name.clone(),
        datatype: field.datatype.clone(),
        cell_size: field.cells.map(|cells| cells * size_of(&field.datatype)),
        is_dimension: field.is_dimension,
        values: bytes(&field.values)?,
        offsets: match offsets {
            None => None,
            Some(known) => Some(known?),
        },
        validity: match &field.validity {
            None => None,
            Some(expected) => Some(bytes(expected)?),
        },
    })
}

/// Returns the numbers of the cells of the whole that lie in a box.
pub fn cells_within(schema: &Schema, whole: &[Column], full: &Read, ranges: &[(Value, Value)]) -> Vec<usize> {
    let count = whole.first().map_or(0, Column::cells);
    if schema.dense {
        let origin: Vec<i128> = full.subarray.iter().flatten().map(|(low, _)| integer(low)).collect();
        let shape = full.shape();
        return (0..count)
            .filter(|&number| {
                let place = coordinates(number, &shape);
                let within = |axis: usize| {
                    let at = origin[axis] + place[axis] as i128;
                    integer(&ranges[axis].0) <= at && at <= integer(&ranges[axis].1)
                };
                (0..shape.len()).all(within)
            })
            .collect();
    }
    let within = |row: usize, dim: usize| {
        let cell = whole[dim].cell(row);
        let (low, high) = &ranges[dim];
        match number_of(&whole[dim].datatype, cell) {
            Some(Number::Integer(value)) => integer(low) <= value && value <= integer(high),
            Some(Number::Real(value)) => real(low) <= value && value <= real(high),
            None => latin1(low).as_slice() <= cell && cell <= latin1(high).as_slice(),
        }
    };
    (0..count).filter(|&row| (0..schema.dims.len()).all(|dim| within(row, dim))).collect()
}

fn real(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(f64::NAN)
}

fn latin1(value: &Value) -> Vec<u8> {
    value.as_str().unwrap_or_default().chars().map(|c| u32::from(c) as u8).collect()
}

/// Returns the position of a cell in a box, given its number in row-major order.
fn coordinates(number: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = number;
    let mut place: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&length| {
            let at = rest % length.max(1);
            rest /= length.max(1);
            at
        })
        .collect();
    place.reverse();
    place
}

/// Describes the first difference between two columns, for people.
fn first_difference(expected: &Column, got: &Column, shape: &[usize]) -> String {
    if expected.cells() != got.cells() {
        return format!("{} cells, not {}", got.cells(), expected.cells());
    }
    let validity = |column: &Column, number: usize| column.validity.as_ref().map(|validity| validity[number]);
    let differs = |&number: &usize| {
        expected.cell(number) != got.cell(number) || validity(expected, number) != validity(got, number)
    };
    let differing: Vec<usize> = (0..expected.cells()).filter(differs).collect();
    let Some(&first) = differing.first() else { return "the same cells at other offsets".to_owned() };
    let place =
        if got.is_dimension || shape.is_empty() { String::new() } else { format!(" {:?}", coordinates(first, shape)) };
    let show = |column: &Column| {
        let cell = column.cell(first);
        let number = match number_of(&column.datatype, cell) {
            Some(Number::Integer(value)) => format!(" = {value}"),
            Some(Number::Real(value)) => format!(" = {value}"),
            None => format!(" {:?}", String::from_utf8_lossy(&cell[..cell.len().min(40)])),
        };
        let valid = validity(column, first).map_or(String::new(), |valid| format!(" validity {valid}"));
        format!("{}{number}{valid}", hex(&cell[..cell.len().min(24)]))
    };
    let count = differing.len();
    format!("{count} of {} cells differ, first {first}{place}: {}, not {}", expected.cells(), show(got), show(expected))
}

/// Returns a label as a line of text.
fn one_line(value: &[u8]) -> Vec<u8> {
    let mut line: Vec<u8> = value.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
    line.push(b'\n');
    line
}

/// Returns the stored bytes of a metadata value from its file, in which numbers, dates and times are text, one per
/// line.
fn stored(datatype: &str, file: Vec<u8>) -> Vec<u8> {
    fn each<T: std::str::FromStr, const N: usize>(text: &str, bytes: impl Fn(T) -> [u8; N]) -> Option<Vec<u8>> {
        let values = text.lines().map(|line| line.parse::<T>().ok().map(&bytes));
        Some(values.collect::<Option<Vec<_>>>()?.concat())
    }
    let Ok(text) = std::str::from_utf8(&file) else { return file };
    let bytes = match datatype {
        "INT8" => each(text, i8::to_le_bytes),
        "UINT8" | "BOOL" => each(text, u8::to_le_bytes),
        "INT16" => each(text, i16::to_le_bytes),
        "UINT16" => each(text, u16::to_le_bytes),
        "INT32" => each(text, i32::to_le_bytes),
        "UINT32" => each(text, u32::to_le_bytes),
        "UINT64" => each(text, u64::to_le_bytes),
        "FLOAT32" => each(text, f32::to_le_bytes),
        "FLOAT64" => each(text, f64::to_le_bytes),
        _ if datatype == "INT64" || datatype.contains("TIME") => each(text, i64::to_le_bytes),
        _ => None,
    };
    bytes.unwrap_or(file)
}
