//! The domain and its dimensions: types, bounds and tile extents.

use tilefs_base::error::{Error, Locate, Result};

use super::field::{CellValNum, datatype, no_filters};
use crate::cursor::Cursor;
use crate::datatype::{Datatype, Kind};
use crate::pipeline::Pipeline;
use crate::scalar::{Range, Scalar};

/// The stored bytes of the smallest dimension: a name length, a flag, and two bounds of one byte each.
const MIN_BYTES: usize = 7;

/// One dimension of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// The name; empty if the writer gave none.
    pub name: String,
    /// The type of coordinates.
    pub datatype: Datatype,
    /// 1; variable for string dimensions.
    pub cell_count: CellValNum,
    /// If empty, the schema's filters for coordinates apply.
    pub filters: Pipeline,
    /// Both ends are included. `None` for string dimensions only.
    pub domain: Option<Range>,
    /// Coordinates per tile as stored, in the type of the dimension; never zero. A length above the maximum of a signed
    /// type is stored wrapped around, as a negative number: [`Dimension::extent_length`] returns the length. `None`
    /// means one tile for everything: for strings, in Hilbert order, and in some old arrays.
    pub extent: Option<Scalar>,
}

impl Dimension {
    /// Returns whether coordinates have a variable size.
    pub fn is_variable(&self) -> bool {
        self.cell_count == CellValNum::Variable
    }

    /// Returns the number of coordinates of an integer, date or time dimension, minus one (a full 64-bit domain has
    /// 2^64).
    pub fn last_position(&self) -> Option<u64> {
        let domain = self.domain.as_ref()?;
        domain.high.distance_above(&domain.low)
    }

    /// Returns the number of coordinates per tile of an integer, date or time dimension; `None` if it has no extent, so
    /// that one tile spans the domain.
    pub fn extent_length(&self) -> Option<u64> {
        match self.extent.as_ref()? {
            Scalar::Signed(extent) => Some(*extent as u64 & low_bits(self.datatype)),
            Scalar::Unsigned(extent) => Some(*extent),
            _ => None,
        }
    }

    /// Returns the extent for display: a length that was stored wrapped around becomes unsigned.
    pub fn unwrapped_extent(&self) -> Option<Scalar> {
        match self.extent {
            Some(Scalar::Signed(..0)) => self.extent_length().map(Scalar::Unsigned),
            ref extent => extent.clone(),
        }
    }

    /// Returns the index of the tile that contains `value`, counted from the low end of the domain. For integers, dates
    /// and times; `None` below the domain or for other kinds.
    pub fn tile_number(&self, value: &Scalar) -> Option<u64> {
        let position = value.distance_above(&self.domain.as_ref()?.low)?;
        match self.extent_length() {
            Some(length) => position.checked_div(length),
            None => Some(0),
        }
    }

    fn check(&self) -> Result<()> {
        let supported = match self.datatype.kind() {
            Kind::Bytes => self.datatype == Datatype::StringAscii && self.is_variable(),
            Kind::Signed | Kind::Unsigned | Kind::Float => self.cell_count == CellValNum::Fixed(1),
        };
        if !supported {
            let cell = match self.cell_count {
                CellValNum::Fixed(number) => number.to_string(),
                CellValNum::Variable => "any number of".to_owned(),
            };
            return Err(Error::unsupported(format!("dimension of {cell} {} a cell", self.datatype.name())));
        }
        let Some(domain) = &self.domain else {
            return match self.extent {
                None => Ok(()),
                Some(_) => Err(Error::damaged("string dimension with a tile extent")),
            };
        };
        if !domain.is_ordered() {
            return Err(Error::damaged(format!("domain from {} to {}", domain.low, domain.high)));
        }
        match &self.extent {
            Some(extent) if !self.fits(extent, domain) => {
                Err(Error::damaged(format!("tile extent {extent} in a domain from {} to {}", domain.low, domain.high)))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether an extent is above zero and at most as long as the domain.
    fn fits(&self, extent: &Scalar, domain: &Range) -> bool {
        match (extent, &domain.low, &domain.high) {
            (Scalar::Signed(_) | Scalar::Unsigned(_), ..) => {
                let length = self.extent_length().zip(self.last_position());
                length.is_some_and(|(length, last)| length > 0 && length - 1 <= last)
            }
            (Scalar::Float32(extent), Scalar::Float32(low), Scalar::Float32(high)) => {
                *extent > 0.0 && *extent <= high - low + 1.0
            }
            (Scalar::Float64(extent), Scalar::Float64(low), Scalar::Float64(high)) => {
                *extent > 0.0 && *extent <= high - low + 1.0
            }
            _ => false,
        }
    }
}

/// Returns a mask of the bits of an integer type.
fn low_bits(datatype: Datatype) -> u64 {
    u64::MAX >> (64 - 8 * datatype.size().clamp(1, 8))
}

/// Reads the domain at the cursor: at least one dimension.
pub(super) fn parse_domain(cursor: &mut Cursor<'_>, version: u32) -> Result<Vec<Dimension>> {
    let shared = if version < 5 { Some(datatype(cursor, "datatype of dimensions")?) } else { None };
    let count = cursor.u32("number of dimensions")?;
    if count == 0 {
        return Err(cursor.error("number of dimensions", "no dimensions"));
    }
    let count = cursor.checked_count(u64::from(count), MIN_BYTES, "number of dimensions")?;
    let mut dimensions = Vec::new();
    for _ in 0..count {
        dimensions.push(parse_dimension(cursor, shared)?);
    }
    Ok(dimensions)
}

/// Reads a dimension. Before version 5, all dimensions have the type `shared`, and only name, bounds and extent are
/// stored.
fn parse_dimension(cursor: &mut Cursor<'_>, shared: Option<Datatype>) -> Result<Dimension> {
    let start = cursor.position() as u64;
    let name = cursor.text32("dimension name")?;
    let place = |error: Error| error.in_field(name).at(start);
    let (datatype, cell_count, filters, bytes) = match shared {
        Some(datatype) => (datatype, CellValNum::Fixed(1), no_filters(), 2 * datatype.size() as u64),
        None => {
            let datatype = datatype(cursor, "datatype of the dimension")?;
            let cell_count = CellValNum::parse(cursor)?;
            (datatype, cell_count, Pipeline::parse(cursor)?, cursor.u64("size of the domain")?)
        }
    };
    let domain = match (cell_count, bytes) {
        (CellValNum::Variable, 0) => None,
        (CellValNum::Fixed(_), bytes) if bytes == 2 * datatype.size() as u64 => {
            Some(Range::parse(cursor, datatype, false, "domain")?)
        }
        _ => return Err(place(Error::damaged(format!("domain of {bytes} bytes")))),
    };
    let extent = match cursor.u8("null tile extent")? {
        0 => Some(Scalar::parse(datatype, cursor.bytes(datatype.size(), "tile extent")?)?),
        _ => None,
    };
    let dimension = Dimension { name: name.to_owned(), datatype, cell_count, filters, domain, extent };
    dimension.check().map_err(place)?;
    Ok(dimension)
}
