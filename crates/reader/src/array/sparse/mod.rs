//! Sparse arrays as columns: one row per cell, in the same order for all columns.
//!
//! A [`SparseView`] determines which cells are rows, and their order; [`FixedColumn`] and [`VarColumn`] read one file's
//! part of each row. The rows and their order are the same as in libtiledb's unordered read.
//!
//! From the lowest to the highest, and each uses only those before it: `select`, which cells may be rows; `rows`, which
//! cell each row is; `sorting`; `merge`, which finds the rows; `view`; `columns`; `sorted_rows` and `statistics`.

mod columns;
mod merge;
pub(super) mod rows;
pub(super) mod select;
mod sorted_rows;
mod sorting;
mod statistics;
mod view;

pub use columns::fixed_column::FixedColumn;
pub use columns::var_column::VarColumn;
pub use rows::parts::MapPart;
pub use select::conditions::{RowCondition, ValueRange, has_one_value};
pub(super) use select::coordinates::CoordinateCheck;
pub(super) use select::deletes::visible_deletes;
pub use select::files::coordinates_of_tile;
pub use select::query::{Portions, RowCount};
pub use select::selection::CoordinateRange;
pub use statistics::RowStatistics;
pub use view::{SparseView, Unmerged};
