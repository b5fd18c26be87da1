//! No value lies outside the bounds that are reported for its row, exact bounds are values, and numbers of nulls are
//! right, whoever wrote the array: checked for the fixtures and the larger collections (see tests/support/corpora.rs). Parquet footers have these
//! bounds and numbers, merged over the rows of a row group, and queries skip row groups by them.
//!
//! `TILEFS_ARRAYS` names a folder: all arrays below it are also checked. `TILEFS_CASE=text` checks only arrays with
//! that text in their path.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use support::columns::compare_values;
use support::corpora::{corpus, peers};
use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::Column;
use tilefs_export::column::ColumnStatistics;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::ArrayType;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::ValueBounds;
use tilefs_threads as threads;
use tilefs_tree::cells::dense::{DenseArray, DenseSubarray};
use tilefs_tree::cells::sparse::SparseSubarray;
use tilefs_tree::cells::{FieldId, Subarray, column, describe_field};
use tilefs_tree::{Extent, TreeOptions, open_array};

/// Maximum number of rows that are checked individually. In longer arrays, these are spread over all rows.
const MOST_ROWS: u64 = 2000;

#[test]
fn bounds_and_numbers_of_nulls_hold() {
    let mut arrays = arrays_below(tilefs_fixtures::fixtures());
    arrays.extend(arrays_below(&corpus()));
    if let Some(peers) = peers() {
        arrays.extend(arrays_below(&peers));
    }
    if let Some(folder) = env::var_os("TILEFS_ARRAYS") {
        arrays.extend(arrays_below(Path::new(&folder)));
    }
    let case = env::var("TILEFS_CASE").unwrap_or_default();
    arrays.retain(|array| array.to_string_lossy().contains(&case));
    threads::start_team(threads::usual());
    let found: Vec<Found> = threads::map(arrays.iter(), |array| look_at(array));
    let mut all = Found::default();
    found.into_iter().for_each(|one| all.add(one));
    println!("{} folders, {} arrays opened, {} columns with bounds", arrays.len(), all.arrays, all.columns);
    println!("{} bounds hold, {} do not, {} could not be told or read", all.held, all.wrong.len(), all.refused);
    println!("{} least and {} greatest values are exact", all.exact.0, all.exact.1);
    println!("{} bounds of floats, {} numbers of nulls, {} not 0", all.floats, all.counted, all.with_nulls);
    all.wrong.iter().take(40).for_each(|wrong| println!("{wrong}"));
    assert!(all.wrong.is_empty(), "{} bounds or numbers of nulls are wrong", all.wrong.len());
    let has_enough = all.held > 10_000 && all.attributes > 100 && all.floats > 1000 && all.with_nulls > 10;
    let has_enough = has_enough && all.exact.0 > 1000 && all.exact.1 > 1000;
    assert!(has_enough || !case.is_empty(), "too few bounds or numbers of nulls");
}

/// Bounds that exclude a value, at either end, in any of several rows; bounds that are said to be exact, and are not.
#[test]
fn bounds_that_leave_a_value_out_are_found() {
    struct Same(ValueBounds);
    impl ColumnStatistics for Same {
        fn bounds(&self, _rows: Range<u64>) -> Result<Option<ValueBounds>> {
            Ok(Some(self.0.clone()))
        }

        fn nulls(&self, _rows: Range<u64>) -> Result<Option<u64>> {
            Ok(Some(0))
        }
    }
    let values: Vec<Option<Vec<u8>>> = [3i16, -4, 9].iter().map(|value| Some(value.to_le_bytes().to_vec())).collect();
    let bounds = |least: &[u8], greatest: &[u8]| ValueBounds {
        least: least.into(),
        greatest: greatest.into(),
        ..ValueBounds::default()
    };
    let not_a_number = Same(bounds(&0f32.to_le_bytes(), &1f32.to_le_bytes()));
    let mut found = Found::default();
    let nan = [Some(f32::NAN.to_le_bytes().to_vec())];
    compare("", &Seen::of(Datatype::Float32, &nan), &not_a_number, 0..1, &mut found);
    assert_eq!(found.wrong.len(), 1);
    let mut found = Found::default();
    compare("", &Seen::of(Datatype::Int16, &[None]), &not_a_number, 0..1, &mut found);
    assert_eq!(found.wrong.len(), 1);
    for (least, greatest, outside) in [(-4i16, 9i16, 0), (-3, 9, 1), (-4, 8, 1), (0, 8, 2), (-4, -4, 2)] {
        let statistics = Same(bounds(&least.to_le_bytes(), &greatest.to_le_bytes()));
        let mut found = Found::default();
        compare("", &Seen::of(Datatype::Int16, &values), &statistics, 0..3, &mut found);
        assert_eq!(found.wrong.len(), outside, "{least} to {greatest}");
        let mut seen = Seen::of(Datatype::Int16, &values);
        seen.keep_extremes();
        let mut of_extremes = Found::default();
        compare("", &seen, &statistics, 0..3, &mut of_extremes);
        assert_eq!(of_extremes.wrong.is_empty(), found.wrong.is_empty(), "{least} to {greatest}");
        assert_eq!(found.held, 1 - u64::from(outside > 0));
    }
    for (least, greatest, wrong) in [(-4i16, 9i16, 0), (-5, 9, 1), (-4, 10, 1), (-5, 10, 2)] {
        let (is_least_exact, is_greatest_exact) = (true, true);
        let of_all = bounds(&least.to_le_bytes(), &greatest.to_le_bytes());
        let statistics = Same(ValueBounds { is_least_exact, is_greatest_exact, ..of_all });
        let mut found = Found::default();
        compare("", &Seen::of(Datatype::Int16, &values), &statistics, 0..3, &mut found);
        assert_eq!(found.wrong.len(), wrong, "{least} to {greatest}");
    }
}

/// The results of checking arrays.
#[derive(Default)]
struct Found {
    arrays: usize,
    columns: usize,
    /// Number of columns of attributes with bounds.
    attributes: usize,
    /// Number of ranges of rows whose values are all within the bounds.
    held: u64,
    /// Of these, the number of ranges of floats.
    floats: u64,
    /// Numbers of exact lower and upper bounds.
    exact: (u64, u64),
    /// Number of ranges of rows whose number of nulls is known.
    counted: u64,
    /// Of these, the number of ranges with nulls.
    with_nulls: u64,
    /// Number of arrays and columns that could not be read.
    refused: u64,
    wrong: Vec<String>,
}

impl Found {
    fn add(&mut self, other: Found) {
        self.arrays += other.arrays;
        self.columns += other.columns;
        self.attributes += other.attributes;
        self.held += other.held;
        self.floats += other.floats;
        self.exact.0 += other.exact.0;
        self.exact.1 += other.exact.1;
        self.counted += other.counted;
        self.with_nulls += other.with_nulls;
        self.refused += other.refused;
        self.wrong.extend(other.wrong);
    }
}

/// Returns all folders with a schema, at any depth.
fn arrays_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        if folder.join("__array_schema.tdb").exists() || folder.join("__schema").is_dir() {
            found.push(folder);
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        left.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    found.sort();
    found
}

fn look_at(path: &Path) -> Found {
    let mut found = Found::default();
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { threads: 1, ..Default::default() },
        ..TreeOptions::default()
    };
    // Encrypted, damaged and unsupported arrays have no Parquet file.
    let Ok(array) = open_array(path, &options) else {
        found.refused += 1;
        return found;
    };
    match subarray(&array) {
        Ok(subarray) => {
            found.arrays += 1;
            let schema = array.schema();
            let dimensions =
                (0..schema.dimensions.len()).map(FieldId::Dimension).filter(|_| schema.array_type == ArrayType::Sparse);
            for field in dimensions.chain((0..schema.attributes.len()).map(FieldId::Attribute)) {
                if look_at_field(path, &*subarray, field, &mut found).is_err() {
                    found.refused += 1;
                }
            }
        }
        Err(_) => found.refused += 1,
    }
    found
}

fn subarray(array: &Arc<OpenedArray>) -> Result<Box<dyn Subarray>> {
    if array.schema().array_type == ArrayType::Sparse {
        return Ok(Box::new(SparseSubarray::new(array.clone(), false)));
    }
    let dense = Arc::new(DenseArray::new(array.clone())?);
    let selection = dense.default_selection(Extent::NonEmpty)?.0;
    Ok(Box::new(DenseSubarray::new(dense, selection)))
}

fn look_at_field(path: &Path, subarray: &dyn Subarray, field: FieldId, found: &mut Found) -> Result<()> {
    let Some(statistics) = subarray.statistics(field)? else { return Ok(()) };
    let schema = subarray.array().schema();
    let datatype = field.datatype(schema);
    let column = column(subarray, field, describe_field(field, schema, "column"))?;
    found.columns += 1;
    found.attributes += usize::from(matches!(field, FieldId::Attribute(_)));
    let rows = column.cells();
    let place = format!("{} {field:?}", path.display());
    if rows <= MOST_ROWS {
        look_at_rows(&place, datatype, &cells(&column, 0..rows)?, &*statistics, found);
        return Ok(());
    }
    for first in (0..rows).step_by((rows / MOST_ROWS) as usize) {
        // A single row, and several together.
        for count in [1, 2 + first % 61] {
            let rows = first..(first + count).min(rows);
            let cells = cells(&column, rows.clone())?;
            compare(&place, &Seen::of(datatype, &cells), &*statistics, rows, found);
        }
    }
    Ok(())
}

/// Looks at each row of a column alone, together with several others, and together with all that follow.
fn look_at_rows(
    place: &str,
    datatype: Datatype,
    cells: &[Option<Vec<u8>>],
    statistics: &dyn ColumnStatistics,
    found: &mut Found,
) {
    let mut following = Seen::of(datatype, &[]);
    for (first, cell) in cells.iter().enumerate().rev() {
        following.add(cell.as_deref());
        following.keep_extremes();
        compare(place, &following, statistics, first as u64..cells.len() as u64, found);
        for count in [1, 2 + first % 61] {
            let end = (first + count).min(cells.len());
            compare(place, &Seen::of(datatype, &cells[first..end]), statistics, first as u64..end as u64, found);
        }
    }
}

/// The cells in some rows: the number of nulls, and the values.
struct Seen<'a> {
    datatype: Datatype,
    nulls: u64,
    values: Vec<&'a [u8]>,
}

impl<'a> Seen<'a> {
    fn of(datatype: Datatype, cells: &'a [Option<Vec<u8>>]) -> Self {
        let mut seen = Seen { datatype, nulls: 0, values: Vec::new() };
        cells.iter().for_each(|cell| seen.add(cell.as_deref()));
        seen
    }

    fn add(&mut self, cell: Option<&'a [u8]>) {
        match cell {
            Some(value) => self.values.push(value),
            None => self.nulls += 1,
        }
    }

    /// Keeps only one of the least and one of the greatest values, and one that is not a number. No other can be outside
    /// of bounds, or equal to one, unless these are.
    fn keep_extremes(&mut self) {
        let not_a_number = self.values.iter().find(|value| self.is_nan(value)).copied();
        let numbers = || self.values.iter().filter(|value| !self.is_nan(value)).copied();
        let least = numbers().min_by(|a, b| self.order(a, b));
        let greatest = numbers().max_by(|a, b| self.order(a, b));
        self.values = [not_a_number, least, greatest].into_iter().flatten().collect();
    }

    fn is_nan(&self, value: &[u8]) -> bool {
        Scalar::parse(self.datatype, value).is_ok_and(|value| value.is_nan())
    }

    fn order(&self, a: &[u8], b: &[u8]) -> Ordering {
        compare_values(self.datatype.name(), a, b)
    }
}

/// Returns the values of some rows, `None` for null.
fn cells(column: &Column, rows: Range<u64>) -> Result<Vec<Option<Vec<u8>>>> {
    let read = |content: &Arc<dyn Content>, bytes: Range<u64>| -> Result<Vec<u8>> {
        let mut read = vec![0; (bytes.end - bytes.start) as usize];
        content.read_at(bytes.start, &mut read)?;
        Ok(read)
    };
    let marks = column.validity.as_ref().map(|validity| read(&validity.content(), rows.clone())).transpose()?;
    let values: Vec<Vec<u8>> = match &column.offsets {
        Some(offsets) => {
            let offsets = read(&offsets.content(), rows.start * 8..rows.end * 8 + 8)?;
            let offsets: Vec<u64> = offsets.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
            offsets.windows(2).map(|ends| read(&column.values, ends[0]..ends[1])).collect::<Result<_>>()?
        }
        None => {
            let size = column.field.cell_size().expect("no offsets, so each cell has the same size");
            let values = read(&column.values, rows.start * size..rows.end * size)?;
            values.chunks_exact(size as usize).map(<[u8]>::to_vec).collect()
        }
    };
    let is_valid = |row: usize| marks.as_ref().is_none_or(|marks| marks[row] != 0);
    Ok(values.into_iter().enumerate().map(|(row, value)| is_valid(row).then_some(value)).collect())
}

/// Compares the cells in `rows` with the bounds and the number of nulls that are reported for them.
fn compare(place: &str, seen: &Seen<'_>, statistics: &dyn ColumnStatistics, rows: Range<u64>, found: &mut Found) {
    let Seen { datatype, nulls, values } = seen;
    if let Ok(Some(counted)) = statistics.nulls(rows.clone()) {
        found.counted += 1;
        found.with_nulls += u64::from(*nulls > 0);
        if counted != *nulls {
            found.wrong.push(format!("{place} rows {rows:?}: {nulls} nulls, not {counted}"));
        }
    }
    let Ok(Some(bounds)) = statistics.bounds(rows.clone()) else {
        found.refused += 1;
        return;
    };
    let ValueBounds { least, greatest, is_least_exact, is_greatest_exact } = bounds;
    let is_outside =
        |value: &[u8]| seen.is_nan(value) || seen.order(value, &least).is_lt() || seen.order(value, &greatest).is_gt();
    let outside = values.iter().filter(|value| is_outside(value));
    found.floats += u64::from(datatype.kind() == Kind::Float);
    let mut wrong: Vec<String> =
        outside.map(|value| format!("{place} rows {rows:?}: {value:?} outside of {least:?} to {greatest:?}")).collect();
    found.exact.0 += u64::from(is_least_exact);
    found.exact.1 += u64::from(is_greatest_exact);
    for bound in [(is_least_exact, &least), (is_greatest_exact, &greatest)].iter().filter(|bound| bound.0) {
        if !values.iter().any(|value| seen.order(value, bound.1).is_eq()) {
            wrong.push(format!("{place} rows {rows:?}: no value is {:?}, which should be exact", bound.1));
        }
    }
    found.held += u64::from(wrong.is_empty());
    found.wrong.extend(wrong);
}
