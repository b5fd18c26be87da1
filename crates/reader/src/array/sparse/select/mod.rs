//! The cells of each fragment that may be rows: the cells that a selection, conditions, the deletes and the time keep, and a stream
//! of these cells in stored order.

pub mod box_join;
pub mod cells;
pub mod conditions;
pub mod coordinates;
pub mod deletes;
pub mod files;
pub mod narrow;
pub mod query;
pub mod selection;
pub mod stream;
pub mod visible;
