//! Reads in which libtiledb returns overwritten cells beside the newer ones.

use super::check::{cells_within, expected_column};
use super::columns::{Column, digest};
use super::manifest::{Object, Read};

/// libtiledb's rows of such a read, some with the coordinates of others.
pub struct Disputed {
    rows: Vec<Column>,
    as_written_cells: Option<usize>,
}

impl Disputed {
    /// Returns the rows of a read of an object; `None` if libtiledb returns every coordinate once, so that there is
    /// nothing to dispute.
    pub fn of(object: &Object, read: &Read) -> Option<Self> {
        let is_whole = |one: &&Read| one.disputed && one.subarray.is_none() && one.window == read.window;
        let whole = object.reads.iter().find(is_whole)?;
        let all = whole.fields.as_ref()?.iter().map(expected_column).collect::<Option<Vec<Column>>>()?;
        let (rows, as_written_cells) = match &read.subarray {
            None => (all, whole.as_written_cells),
            Some(ranges) => {
                let numbers = cells_within(object.schema.as_ref()?, &all, whole, ranges);
                (all.iter().map(|column| column.masked(numbers.iter().copied())).collect(), None)
            }
        };
        let is_same_read = read.sha256.as_ref().is_none_or(|expected| digest(&rows) == *expected);
        (is_same_read && repeated(&rows).is_some()).then_some(Disputed { rows, as_written_cells })
    }

    /// Returns what is wrong with sorted rows. They must be libtiledb's rows, one for each coordinate.
    pub fn differs(&self, columns: &[Column]) -> Option<String> {
        if columns.len() != self.rows.len() {
            return Some("other fields".to_owned());
        }
        let count = cells(columns);
        if let Some(written) = self.as_written_cells.filter(|written| *written != count) {
            return Some(format!("{count} rows instead of the {written} written"));
        }
        if let Some(row) = repeated(columns) {
            return Some(format!("row {row} has the coordinates of one before"));
        }
        let is_theirs = |row: usize| {
            (0..cells(&self.rows)).any(|other| self.rows.iter().zip(columns).all(|(a, b)| a.cell(other) == b.cell(row)))
        };
        if let Some(row) = (0..count).find(|&row| !is_theirs(row)) {
            return Some(format!("row {row} is none of libtiledb's"));
        }
        let distinct = (0..cells(&self.rows)).filter(|&row| !is_repeated(&self.rows, row)).count();
        (distinct != count).then(|| format!("{count} rows instead of {distinct}"))
    }
}

fn cells(columns: &[Column]) -> usize {
    columns.first().map_or(0, Column::cells)
}

/// Returns the first row with the coordinates of the row before it.
fn repeated(columns: &[Column]) -> Option<usize> {
    (0..cells(columns)).find(|&row| is_repeated(columns, row))
}

fn is_repeated(columns: &[Column], row: usize) -> bool {
    let dimensions = || columns.iter().filter(|column| column.is_dimension);
    (0..row).any(|other| dimensions().all(|column| column.cell(other) == column.cell(row)))
}
