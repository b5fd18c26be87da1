//! Sparse arrays as columns: one row per cell, in the same order for all columns.
//!
//! A [`SparseView`] determines which cells are rows, and their order; [`FixedColumn`] and [`VarColumn`] read one file's
//! part of each row. The order and the rows are those of libtiledb's unordered read.

mod columns;
mod merge;
mod rows;
mod select;
mod sorted_rows;
mod sorting;
mod statistics;
mod view;

pub use columns::fixed_column::FixedColumn;
pub use columns::var_column::VarColumn;
pub use rows::parts::MapPart;
pub(super) use select::coordinates::CoordinateCheck;
pub(super) use select::deletes::visible_deletes;
pub use select::files::coordinates_of_tile;
pub use select::query::{Portions, RowCount};
pub use select::selection::CoordinateRange;
pub use statistics::RowStatistics;
pub use view::{SparseView, Unmerged};
