//! Dimension labels: names for the positions along a dimension, each kept in an array of its own.

use super::{CellValNum, DataOrder, data_order, datatype};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::Result;

/// The least bytes a label takes: its numbers, flags and the lengths of its names.
const LEAST_BYTES: usize = 28;

/// Where the values of a label are, and what they are like.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionLabel {
    /// The number of the labelled dimension.
    pub dimension: u32,
    pub name: String,
    /// Whether `uri` is relative to the array's folder.
    pub relative: bool,
    /// The array that holds the label, dense and with one dimension; not to be trusted as a path.
    pub uri: String,
    /// The attribute in that array.
    pub attribute: String,
    pub order: DataOrder,
    pub datatype: Datatype,
    pub cell_count: CellValNum,
    pub external: bool,
}

pub(super) fn parse_labels(cursor: &mut Cursor<'_>) -> Result<Vec<DimensionLabel>> {
    let count = cursor.u32("number of labels")?;
    let count = cursor.checked_count(u64::from(count), LEAST_BYTES, "number of labels")?;
    let mut labels = Vec::new();
    for _ in 0..count {
        labels.push(DimensionLabel {
            dimension: cursor.u32("labelled dimension")?,
            name: cursor.text32("label name")?.to_owned(),
            relative: cursor.u8("relative label URI")? != 0,
            uri: cursor.text64("label URI")?.to_owned(),
            attribute: cursor.text32("label attribute")?.to_owned(),
            order: data_order(cursor)?,
            datatype: datatype(cursor, "datatype of the label")?,
            cell_count: CellValNum::parse(cursor)?,
            external: cursor.u8("external label")? != 0,
        });
    }
    Ok(labels)
}
