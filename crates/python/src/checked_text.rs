//! Columns of text whose bytes were checked when they were read: the tree's Arrow files give an error for a cell that is
//! not UTF-8. `arrow_ipc` would check them a second time, which takes a tenth of the time to read a table.
//!
//! Invariant of the `unsafe` block: a column is of type `LargeUtf8` in an Arrow file of the tree only if its values are
//! those of `tilefs_export`'s `Utf8Values`, in which each cell is UTF-8. Offsets are checked here, as those of bytes.
#![allow(unsafe_code)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeStringArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

/// Returns the schema with which batches are decoded: columns of text are bytes.
pub fn as_bytes(schema: &Schema) -> SchemaRef {
    let fields = schema.fields.iter().map(|field| match field.data_type() {
        DataType::LargeUtf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::LargeBinary)),
        _ => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns a batch of [`as_bytes`] with the columns of `schema`.
///
/// # Errors
/// If it has other columns.
pub fn with_text(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(&schema.fields).map(|(column, field)| match field.data_type() {
        DataType::LargeUtf8 => text(column),
        _ => column.clone(),
    });
    RecordBatch::try_new(schema.clone(), columns.collect())
}

fn text(column: &ArrayRef) -> ArrayRef {
    let (offsets, values, nulls) = column.as_binary::<i64>().clone().into_parts();
    // SAFETY: the offsets are those of an array of bytes; each cell is UTF-8, see above.
    Arc::new(unsafe { LargeStringArray::new_unchecked(offsets, values, nulls) })
}
