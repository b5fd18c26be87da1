//! Arrays of any size whose stored bytes are computed when they are read: by the server `examples/generated`, and by
//! tests of arrays that are larger than a disk.
//!
//! * [`array`]: an array: its objects, in the order of their keys, and their bytes
//! * [`cells`]: what the cells of an array are
//! * [`matrix`], [`table`]: the kinds of arrays
//! * [`schema`], [`metadata`], [`tiles`]: the stored forms

pub mod array;
pub mod cells;
pub mod matrix;
pub mod metadata;
pub mod schema;
pub mod table;
pub mod tiles;
