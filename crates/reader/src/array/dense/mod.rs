//! Dense reads: the value of every cell of a box, in the order of a file.

pub mod axis;
mod box_tree;
mod cached_read;
pub mod column;
mod column_copy;
pub mod column_plan;
mod column_read;
pub mod embedding;
pub mod grid;
pub mod pieces;
pub mod scattered;
pub mod selection;
mod statistics;
pub mod var;
pub mod view;
mod written;

pub use axis::AxisCoordinates;
pub use column::DenseColumn;
pub use selection::{AxisRange, AxisSelection, IndexBox, Selection};
pub use statistics::CellStatistics;
pub use var::DenseVarColumn;
pub use view::DenseView;
