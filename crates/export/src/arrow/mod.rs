//! An Arrow IPC file of a table: the columns as they are stored, between the format's metadata.
//!
//! Rows are cut into record batches, so that a reader that streams needs little memory and one that maps
//! needs none. The buffers are the columns' own bytes; only validity becomes bits, offsets begin at 0 in
//! each batch, and dates in units that Arrow lacks become seconds.
//!
//! | field | Arrow type |
//! |---|---|
//! | numbers, booleans | the same |
//! | dates in seconds, ms, us, ns | `Timestamp`; years to minutes are converted to seconds |
//! | times in seconds, ms, us, ns | `Duration`; hours and minutes are converted to seconds |
//! | dates and times that are finer | `Int64`, the count |
//! | text of variable length | `LargeUtf8`; `CHAR` and blobs `LargeBinary` |
//! | text and blobs of fixed length | `FixedSizeBinary` |
//! | several numbers a cell | `FixedSizeList`, `LargeList`; dates, times and booleans are the numbers that are stored |
//! | enumerations | `Dictionary`; a code without label is null, and the log says so |
//!
//! Labels that are not all text are binary. A cell of a text that is not UTF-8 cannot be read: its row is in the error.
//!
//! "Not a time" is null. Each field says its TileDB datatype in the metadata key `tiledb.datatype`.

mod batch;
mod file;
mod flatbuffer;
mod message;
pub(super) mod schema;
mod types;

use std::sync::Arc;

use super::column::{Column, Exported, Field, FormatResult, held_columns};
use batch::RecordBatches;
use file::File;
use schema::{Field as ArrowField, Schema};
use types::ArrowColumn;

/// Whether an Arrow file can hold a field, and if not why.
pub fn check(field: &Field) -> FormatResult<()> {
    ArrowColumn::check(field)
}

/// The message that tells readers of an Arrow stream a schema.
pub(super) fn schema_message(fields: Vec<ArrowField>, metadata: Vec<(String, String)>) -> Vec<u8> {
    message::schema(&Schema { fields, metadata }, 0)
}

/// The Arrow IPC file of columns with the same number of cells. `metadata` is said of the whole table, by key.
///
/// The size is known without reading a cell. The metadata of a batch needs its number of nulls, for which
/// the batch's validity is read, and the places of batches need one offset each of every variable-length
/// column.
pub fn arrow(columns: &[Column], metadata: Vec<(String, String)>) -> FormatResult<Exported> {
    let rows = columns.first().map_or(0, Column::cells);
    let (stored, left_out) = held_columns(columns, "Arrow", ArrowColumn::new)?;
    let file = File::new(RecordBatches::new(stored, rows), metadata)?;
    Ok(Exported { content: Arc::new(file), left_out })
}

#[cfg(test)]
mod tests;
