//! Sparse arrays as columns: one row per cell, in the same order for all columns.
//!
//! A [`SparseView`] determines which cells are rows, and their order; [`FixedColumn`] and [`VarColumn`] read one file's
//! part of each row. The order and the rows are those of libtiledb's unordered read.

mod axis;
mod box_join;
mod bucket_sort;
mod build;
mod cells;
mod coincidence;
mod column;
mod coordinates;
mod deletes;
mod distinct;
mod every;
mod external_sort;
mod files;
mod gather;
mod hilbert;
mod key;
mod lazy_merge;
mod merge;
mod narrow;
mod newest;
mod overlap;
mod parts;
mod plan;
mod prefetch;
mod query;
mod radix;
mod rank;
mod rounding;
mod row_map;
mod rows;
mod saved_rows;
mod saved_values;
mod selection;
mod sort;
mod span;
mod store;
mod stream;
mod summary;
mod task;
mod var_column;
mod var_files;
mod view;
mod visible;
mod writers;

pub use column::FixedColumn;
pub(super) use coordinates::CoordinateCheck;
pub(super) use deletes::visible_deletes;
pub use files::coordinates_of_tile;
pub(super) use key::{AxisColumn, CellOrder, KeyPlan};
pub use parts::MapPart;
pub use query::{Portions, RowCount};
pub use selection::CoordinateRange;
pub use summary::{FieldOfRows, RowSummary};
pub use var_column::VarColumn;
pub use view::{SparseView, Unmerged};
