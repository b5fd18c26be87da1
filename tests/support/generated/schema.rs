//! Writes array schemas.

use super::cells::{Axis, Cells, Field};
use crate::generic_tile::{NO_FILTERS, VERSION};

/// Returns the payload of the schema of a sparse array without filters.
pub fn schema(cells: &dyn Cells, capacity: u64) -> Vec<u8> {
    const SPARSE: u8 = 1;
    const ROW_MAJOR: u8 = 0;
    let mut bytes = VERSION.to_le_bytes().to_vec();
    bytes.extend([0, SPARSE, ROW_MAJOR, ROW_MAJOR]); // no duplicates
    bytes.extend(capacity.to_le_bytes());
    // The pipelines of coordinates, offsets and validity.
    bytes.extend(NO_FILTERS.repeat(3));
    bytes.extend((cells.dimensions().len() as u32).to_le_bytes());
    for (field, axis) in cells.dimensions().iter().zip(cells.axes()) {
        put_field(field, &mut bytes);
        put_axis(axis, &mut bytes);
    }
    bytes.extend((cells.attributes().len() as u32).to_le_bytes());
    for field in cells.attributes() {
        put_field(field, &mut bytes);
        let fill = field.datatype.fill().repeat(field.values.unwrap_or(1) as usize);
        bytes.extend((fill.len() as u64).to_le_bytes());
        bytes.extend(fill);
        bytes.extend([0; 3]); // not nullable, validity of the fill value, no order
        bytes.extend(0u32.to_le_bytes()); // no enumeration
    }
    // No labels, no enumerations, an empty current domain of version 0.
    bytes.extend([0; 12]);
    bytes.push(1);
    bytes
}

fn put_field(field: &Field, to: &mut Vec<u8>) {
    to.extend((field.name.len() as u32).to_le_bytes());
    to.extend(field.name.bytes());
    to.push(field.datatype as u8);
    to.extend(field.values.unwrap_or(u32::MAX).to_le_bytes());
    to.extend(NO_FILTERS);
}

fn put_axis(axis: &Axis, to: &mut Vec<u8>) {
    to.extend(16u64.to_le_bytes());
    to.extend(axis.domain.0.to_le_bytes());
    to.extend(axis.domain.1.to_le_bytes());
    to.push(0); // there is an extent
    to.extend(axis.extent.to_le_bytes());
}
