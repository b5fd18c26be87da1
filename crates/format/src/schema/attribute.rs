//! Attributes: type, values per cell, fill value.

use tilefs_base::error::{Error, Locate, Result};

use super::field::{CellValNum, DataOrder, data_order, datatype};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::pipeline::Pipeline;

/// The stored bytes of the smallest attribute: name length, type, values per cell, empty pipeline.
const MIN_BYTES: usize = 17;

/// The most bytes of all fill values of one schema before version 6, which does not store them.
const MAX_IMPLIED_FILL: u64 = 1 << 24;

/// One attribute of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Empty for the anonymous attribute.
    pub name: String,
    /// The type of an element of a cell.
    pub datatype: Datatype,
    /// The number of elements of a cell.
    pub cell_count: CellValNum,
    /// The filters of the values.
    pub filters: Pipeline,
    /// The bytes of a cell that was never written: the whole cell if its size is fixed, else one value of at least one
    /// byte.
    pub fill: Vec<u8>,
    /// Whether cells can be null.
    pub nullable: bool,
    /// The validity of a cell that was never written, 0 for null; only meaningful for nullable attributes.
    pub fill_validity: u8,
    /// The order of the values, of an array of dimension labels.
    pub order: DataOrder,
    /// The name of the enumeration that the values index.
    pub enumeration: Option<String>,
}

impl Attribute {
    /// Returns whether cells have different numbers of elements.
    pub fn is_variable(&self) -> bool {
        self.cell_count == CellValNum::Variable
    }

    /// Returns the bytes of one cell; `None` if they vary.
    pub fn cell_size(&self) -> Option<usize> {
        match self.cell_count {
            CellValNum::Fixed(number) => usize::try_from(number).ok()?.checked_mul(self.datatype.size()),
            CellValNum::Variable => None,
        }
    }
}

pub(super) fn parse_attributes(cursor: &mut Cursor<'_>, version: u32) -> Result<Vec<Attribute>> {
    let count = cursor.u32("number of attributes")?;
    let count = cursor.checked_count(u64::from(count), MIN_BYTES, "number of attributes")?;
    let mut implied_fill = MAX_IMPLIED_FILL;
    let mut attributes = Vec::new();
    for _ in 0..count {
        attributes.push(parse_attribute(cursor, version, &mut implied_fill)?);
    }
    Ok(attributes)
}

fn parse_attribute(cursor: &mut Cursor<'_>, version: u32, implied_fill: &mut u64) -> Result<Attribute> {
    let start = cursor.position() as u64;
    let name = cursor.text32("attribute name")?;
    let place = |error: Error| error.in_field(name).at(start);
    let datatype = datatype(cursor, "datatype of the attribute")?;
    let cell_count = CellValNum::parse(cursor)?;
    let filters = Pipeline::parse(cursor)?;
    let fill = if version >= 6 {
        cursor.str64("fill value")?.to_vec()
    } else {
        default_fill(datatype, cell_count, implied_fill).map_err(place)?
    };
    let (nullable, fill_validity) =
        if version >= 7 { (cursor.u8("nullable")? != 0, cursor.u8("fill value validity")?) } else { (false, 0) };
    let order = if version >= 17 { data_order(cursor)? } else { DataOrder::Unordered };
    let enumeration = if version >= 20 { cursor.text32("enumeration name")? } else { "" };
    let enumeration = Some(enumeration).filter(|name| !name.is_empty()).map(str::to_owned);
    let attribute = Attribute {
        name: name.to_owned(),
        datatype,
        cell_count,
        filters,
        fill,
        nullable,
        fill_validity,
        order,
        enumeration,
    };
    let fits = match attribute.cell_count {
        CellValNum::Fixed(_) => attribute.cell_size() == Some(attribute.fill.len()),
        CellValNum::Variable => !attribute.fill.is_empty(),
    };
    if !fits {
        return Err(place(Error::damaged(format!("fill value of {} bytes", attribute.fill.len()))));
    }
    Ok(attribute)
}

/// Returns the fill value before format version 6: the default of the type, repeated for every value of a fixed-size
/// cell.
fn default_fill(datatype: Datatype, cell_count: CellValNum, budget: &mut u64) -> Result<Vec<u8>> {
    let element = datatype.default_fill();
    let number = match cell_count {
        CellValNum::Fixed(number) => number,
        CellValNum::Variable => 1,
    };
    let bytes = u64::from(number) * element.len() as u64;
    match budget.checked_sub(bytes) {
        Some(left) => *budget = left,
        None => return Err(Error::unsupported(format!("cells of {bytes} bytes in a schema without fill values"))),
    }
    Ok(element.repeat(number as usize))
}
