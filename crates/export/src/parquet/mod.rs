//! A Parquet file of a table: the columns as they are stored, PLAIN and uncompressed, between the format's metadata.
//!
//! | field | Parquet type |
//! |---|---|
//! | integers of 8 and 16 bits | `INT32` of that many bits, signed or not |
//! | integers of 32 and 64 bits, floats | the same, unsigned ones by their logical type |
//! | booleans | `BOOLEAN` |
//! | dates in years, months, weeks, days | `DATE` |
//! | dates in hours, minutes, s, ms; us; ns | `TIMESTAMP` in milli-, micro- and nanoseconds, of no time zone |
//! | times | `INT64`, the count (of hours and minutes in seconds), to Arrow a duration: Parquet's end with the day |
//! | dates and times that are finer | `INT64`, the count |
//! | text of variable length | `STRING`; `CHAR` and blobs `BYTE_ARRAY` |
//! | text and blobs of fixed length | `FIXED_LEN_BYTE_ARRAY` |
//! | several numbers a cell | `LIST`; dates, times and booleans are the numbers that are stored |
//! | enumerations | the labels, as indices into a dictionary; a code without label is null, and the log says so |
//!
//! Labels that are not all text are binary. A cell of a text that is not UTF-8 cannot be read: its row is in the error.
//!
//! "Not a time" is null. For readers that make Arrow of it the file has an Arrow schema too, where each field says its
//! TileDB datatype in the metadata key `tiledb.datatype`.

mod chunk;
mod file;
mod groups;
mod lists;
mod metadata;
mod statistics;
mod thrift;
mod types;
mod values;

use std::sync::Arc;

use super::column::{Column, Exported, Field, FormatResult, held_columns};
use file::File;
pub use groups::TileRows;
use groups::{RowGroups, rows_of_group};
use types::ParquetColumn;

/// Whether a Parquet file can hold a field, and if not why.
pub fn check(field: &Field) -> FormatResult<()> {
    ParquetColumn::check(field)
}

/// The Parquet file of columns with the same number of cells. Row groups begin where `tiles` do, if these are given.
///
/// The size is known without reading a cell. The footer, and with it all places, needs one offset a row group of every
/// column of variable length, and where a column has nulls a chunk of it needs the validity of its rows. The footer counts
/// the lists of columns in which they have a length each or can be null: it reads all their offsets and validity.
///
/// `metadata` is said of the whole table, by key.
pub fn parquet(
    columns: &[Column],
    tiles: Option<&dyn TileRows>,
    metadata: Vec<(String, String)>,
) -> FormatResult<Exported> {
    let rows = columns.first().map_or(0, Column::cells);
    let (stored, left_out) = held_columns(columns, "Parquet", ParquetColumn::new)?;
    let row_length = stored.iter().fold(0u64, |sum, column| {
        let length = column.row_length().unwrap_or_else(|| 4 + column.values.len() / rows.max(1));
        sum.saturating_add(length)
    });
    let dictionaries = stored.iter().filter_map(|column| column.dictionary.as_ref());
    let dictionaries = dictionaries.map(|dictionary| dictionary.plain.as_slice().len() as u64).sum();
    let groups = RowGroups::new(rows, rows_of_group(rows, stored.len() as u64, row_length, dictionaries), tiles);
    Ok(Exported { content: Arc::new(File::new(stored, groups, metadata)?), left_out })
}

#[cfg(test)]
mod tests;
