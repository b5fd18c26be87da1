//! Typed reads of arrays: boxes of dense arrays, and rows of sparse arrays in batches.

mod dense_reader;
mod number;
mod row_reader;
mod values;

pub use dense_reader::DenseReader;
pub use number::Number;
pub use row_reader::{RowBatch, RowBatches, RowReader};
pub use values::Values;
