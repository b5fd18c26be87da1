//! An Arrow IPC file of a table: the columns as they are stored, between the format's metadata.
//!
//! Rows are divided into record batches, so that a streaming reader needs little memory and one that maps the file
//! needs none. The buffers are the columns' own bytes, except that validity becomes bits, offsets begin at 0 in each
//! batch, and dates in units that Arrow lacks become days or seconds.
//!
//! | field | Arrow type |
//! |---|---|
//! | numbers, booleans | the same |
//! | dates in years, months, weeks, days | `Date32`; `Timestamp` in seconds if the array has dates beyond 32-bit days |
//! | dates in seconds, ms, us, ns | `Timestamp`; hours and minutes are converted to seconds |
//! | times in seconds, ms, us, ns | `Duration`; hours and minutes are converted to seconds |
//! | finer dates and times | `Int64`, the count |
//! | text of variable length | `LargeUtf8`; `CHAR` and blobs `LargeBinary` |
//! | text and blobs of fixed length | `FixedSizeBinary` |
//! | several numbers per cell | `FixedSizeList`, `LargeList`; dates, times and booleans as the stored numbers |
//! | lists of texts, and of numbers that can be null | `LargeList` of nullable items |
//! | enumerations | `Dictionary`; a code without a label is null, and logged |
//!
//! Labels are binary unless all of them are text. Reading a text cell that is not UTF-8 is an error that names its row.
//!
//! "Not a time" is null. Each field has its TileDB datatype in the metadata key `tiledb.datatype`.

mod batch;
mod file;
mod flatbuffer;
mod message;
mod own_offsets;
pub(super) mod schema;
pub(super) mod types;

use std::sync::Arc;

use crate::column::{Column, Exported, Field, FormatResult, held_columns};
use batch::RecordBatches;
use file::IpcFile;
use schema::{ArrowField, Schema};
use types::ArrowColumn;

/// Checks whether an Arrow file can hold a field; returns the reason if not.
pub fn check(field: &Field) -> FormatResult<()> {
    ArrowColumn::check(field)
}

/// Returns the message that contains the schema of an Arrow stream.
pub(super) fn schema_message(fields: Vec<ArrowField>, metadata: Vec<(String, String)>) -> Vec<u8> {
    message::schema(&Schema { fields, metadata }, 0)
}

/// Returns the Arrow IPC file of columns with the same number of cells. `metadata` describes the whole table, by key.
///
/// The size is known without reading a cell. The metadata of a batch contain its numbers of nulls, for which the
/// batch's validity is read, and the positions of batches require one offset of every variable-length column per batch.
pub fn arrow(columns: &[Column], metadata: Vec<(String, String)>) -> FormatResult<Exported> {
    let rows = columns.first().map_or(0, Column::cells);
    let (stored, left_out) = held_columns(columns, "Arrow", ArrowColumn::new)?;
    let file = IpcFile::new(RecordBatches::new(stored, rows), metadata)?;
    Ok(Exported { content: Arc::new(file), left_out })
}

#[cfg(test)]
mod tests;
