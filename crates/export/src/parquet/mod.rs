//! A Parquet file of a table: the columns as they are stored, PLAIN and uncompressed, between the format's metadata.
//!
//! | field | Parquet type |
//! |---|---|
//! | integers of 8 and 16 bits | `INT32` of that many bits, signed or not |
//! | integers of 32 and 64 bits, floats | the same, unsigned ones by their logical type |
//! | booleans | `BOOLEAN` |
//! | dates in years, months, weeks, days | `DATE` |
//! | dates in hours, minutes, s, ms; us; ns | `TIMESTAMP` in milli-, micro- and nanoseconds, of no time zone |
//! | times | `INT64`, the count (of hours and minutes in seconds); to Arrow a duration, because Parquet's times end with the day |
//! | finer dates and times | `INT64`, the count |
//! | text of variable length | `STRING`; `CHAR` and blobs `BYTE_ARRAY` |
//! | text and blobs of fixed length | `FIXED_LEN_BYTE_ARRAY` |
//! | several numbers per cell | `LIST`; dates, times and booleans as the stored numbers |
//! | lists of texts, and of numbers that can be null | `LIST` of optional elements |
//! | structs | a group of their members, none of which is optional |
//! | enumerations | the labels, as indices into a dictionary; a code without a label is null, and logged |
//!
//! Labels are binary unless all of them are text. Reading a text cell that is not UTF-8 is an error that names its row.
//! Columns with such cells, or with dates that may not fit, share no page of 4 KiB with other columns and are far from
//! the footer, so a program that asks for other columns reads none of their bytes.
//!
//! "Not a time" is null. For readers that convert to Arrow, the file also has an Arrow schema, in which each field has
//! its TileDB datatype in the metadata key `tiledb.datatype`.

mod chunk;
mod file;
mod groups;
mod lists;
mod metadata;
mod parts;
mod statistics;
mod thrift;
mod types;
mod values;

use std::sync::Arc;

use crate::column::{Column, Exported, Field, FormatResult, LeftOut, held_columns};
pub use file::ParquetFile;
pub use groups::TileRows;
use groups::{RowGroups, rows_of_group};
pub use parts::PartsMetadata;
use types::ParquetColumn;

/// Checks whether a Parquet file can hold a field; returns the reason if not.
pub fn check(field: &Field) -> FormatResult<()> {
    ParquetColumn::check(field)
}

/// A column whose cells have members, none of which is null: a column of numbers each.
pub struct StructColumn {
    /// Its name.
    pub name: String,
    /// The members, by their names.
    pub members: Vec<Column>,
    /// Whether reading members fails for some cells. This must make no other column unreadable.
    pub may_refuse: bool,
}

/// Returns the Parquet file of columns with the same number of cells. Row groups begin at the starts of `tiles`, if
/// given.
///
/// The size is known without reading a cell. The footer, and therefore all positions, require one offset per row group
/// of every column of variable length; a chunk with nulls requires the validity of its rows. The footer counts the
/// lists of columns in which they vary in length or can be null, for which it reads all their offsets and validity.
///
/// `metadata` describes the whole table, by key.
pub fn parquet(
    columns: &[Column],
    tiles: Option<&dyn TileRows>,
    metadata: Vec<(String, String)>,
) -> FormatResult<Exported> {
    let (file, left_out) = parquet_file(columns, None, tiles, metadata)?;
    Ok(Exported { content: Arc::new(file), left_out })
}

/// As [`parquet`], with a last column that has members.
pub fn parquet_file(
    columns: &[Column],
    last: Option<&StructColumn>,
    tiles: Option<&dyn TileRows>,
    metadata: Vec<(String, String)>,
) -> FormatResult<(ParquetFile, LeftOut)> {
    let rows = columns.first().map_or(0, Column::cells);
    let (mut stored, left_out) = held_columns(columns, "Parquet", ParquetColumn::new)?;
    if let Some(StructColumn { name, members, may_refuse }) = last {
        let within = |column| ParquetColumn { within: Some(name.clone()), may_refuse: *may_refuse, ..column };
        stored.extend(held_columns(members, "Parquet", ParquetColumn::new)?.0.into_iter().map(within));
    }
    let row_length = stored.iter().fold(0u64, |sum, column| {
        let length = column.row_length().unwrap_or_else(|| 4 + column.values.len() / rows.max(1));
        sum.saturating_add(length)
    });
    let dictionaries = stored.iter().filter_map(|column| column.dictionary.as_ref());
    let dictionaries = dictionaries.map(|dictionary| dictionary.plain.as_slice().len() as u64).sum();
    let groups = RowGroups::new(rows, rows_of_group(rows, stored.len() as u64, row_length, dictionaries), tiles);
    Ok((ParquetFile::new(stored, groups, metadata)?, left_out))
}

#[cfg(test)]
mod tests;
