//! What dimensions, attributes and labels have in common: types, values per cell, orders, filters.

use tilefs_base::error::{Locate, Result};

use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::pipeline::Pipeline;

/// The number of values in one cell (the format's `cell_val_num`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValNum {
    /// At least 1.
    Fixed(u32),
    /// Each cell has its own number of elements.
    Variable,
}

impl CellValNum {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        match cursor.u32("values per cell")? {
            0 => Err(cursor.error("values per cell", "no value per cell")),
            u32::MAX => Ok(CellValNum::Variable),
            number => Ok(CellValNum::Fixed(number)),
        }
    }
}

/// The order of an attribute's values along the array. Those of dimension labels are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataOrder {
    /// In no order.
    Unordered,
    /// Ascending.
    Increasing,
    /// Descending.
    Decreasing,
}

/// Returns the pipeline of a field whose pipeline is not stored: no filters, and TileDB's default chunk size.
pub(super) fn no_filters() -> Pipeline {
    Pipeline { max_chunk_size: 65536, filters: Vec::new() }
}

pub(super) fn data_order(cursor: &mut Cursor<'_>) -> Result<DataOrder> {
    match cursor.u8("data order")? {
        0 => Ok(DataOrder::Unordered),
        1 => Ok(DataOrder::Increasing),
        2 => Ok(DataOrder::Decreasing),
        other => Err(cursor.error("data order", format!("data order {other}"))),
    }
}

pub(super) fn datatype(cursor: &mut Cursor<'_>, field: &str) -> Result<Datatype> {
    Datatype::from_number(cursor.u8(field)?).in_field(field).at((cursor.position() as u64).saturating_sub(1))
}
