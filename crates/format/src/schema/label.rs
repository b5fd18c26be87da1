//! Dimension labels: values that name the positions along a dimension. Each label is stored in its own array.

use tilefs_base::error::Result;

use super::field::{CellValNum, DataOrder, data_order, datatype};
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// The stored bytes of the smallest label: its numbers, flags and the lengths of its names.
const MIN_BYTES: usize = 28;

/// The location and the type of a label's values.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionLabel {
    /// The index of the labelled dimension.
    pub dimension: u32,
    /// The label's name.
    pub name: String,
    /// Whether `uri` is relative to the array's folder.
    pub relative: bool,
    /// The array that stores the label, dense and with one dimension. Untrusted as a path.
    pub uri: String,
    /// The attribute in that array.
    pub attribute: String,
    /// The order of the labels along the dimension.
    pub order: DataOrder,
    /// The type of an element of a label.
    pub datatype: Datatype,
    /// The number of elements of a label.
    pub cell_count: CellValNum,
    /// Whether the array of the labels is elsewhere.
    pub external: bool,
}

pub(super) fn parse_labels(cursor: &mut Cursor<'_>) -> Result<Vec<DimensionLabel>> {
    let count = cursor.u32("number of labels")?;
    let count = cursor.checked_count(u64::from(count), MIN_BYTES, "number of labels")?;
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
