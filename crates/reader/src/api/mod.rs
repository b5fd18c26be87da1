//! Typed reads of arrays: a box of a dense array, and the rows of a sparse one in batches.

mod dense_reader;
mod number;
mod row_reader;
mod values;

pub use dense_reader::DenseReader;
pub use number::Number;
pub use row_reader::{RowBatch, RowBatches, RowReader};
pub use values::Values;
