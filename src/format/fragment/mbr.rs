//! The minimum bounding rectangles (MBRs) of a sparse fragment's tiles, from the leaves of its R-tree.

use super::facts::domain_if_unsigned;
use crate::error::{Error, Locate, Result};
use crate::format::cursor::Cursor;
use crate::format::datatype::Datatype;
use crate::format::scalar::{Range, Scalar, range_bytes};
use crate::format::schema::ArraySchema;

/// A tree of 64-bit counts is no higher, however small its fanout.
const MOST_LEVELS: u32 = 64;

/// One MBR per tile, in tile order. Kept as stored (but see [`MbrList::parse_rtree`]), which is 16 bytes per tile and dimension of 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct MbrList {
    /// Type of each dimension, and whether its size varies.
    dimensions: Box<[(Datatype, bool)]>,
    bytes: Box<[u8]>,
    starts: Starts,
}

/// Where in the bytes each MBR starts.
#[derive(Debug, Clone, PartialEq)]
enum Starts {
    /// All dimensions are of fixed size, and so is an MBR.
    Even {
        size: usize,
        count: usize,
    },
    Listed(Box<[u32]>),
}

impl MbrList {
    /// Reads the payload of the R-tree's generic tile in a fragment of this version. Dense fragments have a tree
    /// without levels and give an empty list. Bounds of times before and after 1970 that an old library took for
    /// unsigned numbers become the domain: such a tile has to be looked into.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the levels do not fill the payload, or a bound is out of order.
    pub fn parse_rtree(payload: &[u8], version: u32, schema: &ArraySchema) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        if version < 5 {
            let dimensions = cursor.u32("number of dimensions")?;
            if dimensions as usize != schema.dimensions.len() {
                let reason = format!("R-tree of {dimensions} dimensions, array of {}", schema.dimensions.len());
                return Err(cursor.error("number of dimensions", reason));
            }
        }
        let fanout = cursor.u32("fanout")?;
        if version < 5 {
            let datatype = Datatype::from_number(cursor.u8("datatype of dimensions")?)?;
            if schema.dimensions.iter().any(|dimension| dimension.datatype != datatype) {
                return Err(cursor.error("datatype of dimensions", format!("R-tree of {}", datatype.name())));
            }
        }
        let levels = cursor.u32("number of levels")?;
        if levels > MOST_LEVELS || (levels > 0 && fanout == 0) {
            return Err(cursor.error("number of levels", format!("{levels} levels of fanout {fanout}")));
        }
        let mut leaves = Self::empty(schema);
        // The root comes first, the leaves last.
        for level in 1..=levels {
            if level == levels {
                leaves = Self::parse_list(&mut cursor, version, schema)?;
            } else {
                skip_list(&mut cursor, schema)?;
            }
        }
        cursor.expect_end("R-tree")?;
        Ok(leaves)
    }

    /// Reads a count and that many MBRs: a level of the R-tree, or the whole list before version 3.
    pub(super) fn parse_list(cursor: &mut Cursor<'_>, version: u32, schema: &ArraySchema) -> Result<Self> {
        let dimensions = dimensions(schema);
        let count = cursor.u64("number of MBRs")?;
        let count = cursor.checked_count(count, least_size(&dimensions), "number of MBRs")?;
        let mut list = if dimensions.iter().any(|&(_, variable)| variable) {
            let (bytes, starts) = listed(cursor, &dimensions, count)?;
            MbrList { bytes: bytes.into(), starts: Starts::Listed(starts), dimensions }
        } else {
            let size = least_size(&dimensions);
            // The count has been checked: this many bytes are there.
            let bytes = cursor.bytes(count.saturating_mul(size), "MBRs")?;
            MbrList { bytes: bytes.into(), starts: Starts::Even { size, count }, dimensions }
        };
        list.check(version, schema)?;
        Ok(list)
    }

    fn empty(schema: &ArraySchema) -> Self {
        MbrList { dimensions: dimensions(schema), bytes: Box::default(), starts: Starts::Even { size: 0, count: 0 } }
    }

    /// How many MBRs there are, which has to be the number of tiles.
    pub fn len(&self) -> usize {
        match &self.starts {
            Starts::Even { count, .. } => *count,
            Starts::Listed(starts) => starts.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The range of one dimension in the MBR of one tile; `None` when there is no such tile or dimension.
    pub fn range(&self, tile: usize, dimension: usize) -> Option<Range> {
        let (datatype, _) = *self.dimensions.get(dimension)?;
        let (low, high) = self.bounds(tile, dimension)?;
        Some(Range { low: Scalar::parse(datatype, low).ok()?, high: Scalar::parse(datatype, high).ok()? })
    }

    /// As [`MbrList::range`], but the little-endian bytes of low and high, without a copy.
    pub fn bounds(&self, tile: usize, dimension: usize) -> Option<(&[u8], &[u8])> {
        self.all_bounds(tile)?.nth(dimension)
    }

    /// Low and high of each dimension in the MBR of one tile, as little-endian bytes.
    pub fn all_bounds(&self, tile: usize) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
        let start = match &self.starts {
            Starts::Even { size, count } => (tile < *count).then(|| tile.checked_mul(*size))??,
            Starts::Listed(starts) => *starts.get(tile)? as usize,
        };
        let mut cursor = Cursor::new(self.bytes.get(start..)?);
        // Parsing has been through all of these: none can fail.
        Some(
            self.dimensions
                .iter()
                .map_while(move |&(datatype, variable)| range_bytes(&mut cursor, datatype, variable, "MBR").ok()),
        )
    }

    /// Bytes of memory behind this list.
    pub fn memory(&self) -> usize {
        let starts = match &self.starts {
            Starts::Even { .. } => 0,
            Starts::Listed(starts) => size_of_val::<[u32]>(starts),
        };
        self.bytes.len() + starts + size_of_val::<[(Datatype, bool)]>(&self.dimensions)
    }

    /// Numbers are in order. (Some writers compare strings as signed bytes, so nothing is asked of those.) Bounds that
    /// say nothing become the domain.
    fn check(&mut self, version: u32, schema: &ArraySchema) -> Result<()> {
        let mut replaced = Vec::new();
        for tile in 0..self.len() {
            let bounds = self.all_bounds(tile).into_iter().flatten();
            for (number, (&(datatype, variable), (low, high))) in self.dimensions.iter().zip(bounds).enumerate() {
                if variable {
                    continue;
                }
                let range = Range { low: Scalar::parse(datatype, low)?, high: Scalar::parse(datatype, high)? };
                if range.is_ordered() {
                    continue;
                }
                match domain_if_unsigned(version, &schema.dimensions[number], &range) {
                    Some(domain) => replaced.push((tile, number, domain)),
                    None => {
                        return Err(Error::damaged(format!("MBR of tile {tile} out of order")).in_field("MBRs"));
                    }
                }
            }
        }
        for (tile, number, domain) in replaced {
            self.replace(tile, number, domain)?;
        }
        Ok(())
    }

    /// Puts other bounds in the place of those of one dimension in the MBR of one tile. All dimensions are of fixed
    /// size.
    fn replace(&mut self, tile: usize, dimension: usize, range: &Range) -> Result<()> {
        let Starts::Even { size, .. } = self.starts else { return Ok(()) };
        let (datatype, _) = self.dimensions[dimension];
        let start = tile * size + least_size(&self.dimensions[..dimension]);
        let bounds = [range.low.to_bytes(datatype)?, range.high.to_bytes(datatype)?].concat();
        self.bytes[start..start + bounds.len()].copy_from_slice(&bounds);
        Ok(())
    }
}

fn dimensions(schema: &ArraySchema) -> Box<[(Datatype, bool)]> {
    schema.dimensions.iter().map(|dimension| (dimension.datatype, dimension.is_variable())).collect()
}

/// The least bytes of an MBR, and exactly its bytes when no dimension varies: bounds, or the two lengths of them.
fn least_size(dimensions: &[(Datatype, bool)]) -> usize {
    dimensions.iter().map(|&(datatype, variable)| if variable { 16 } else { 2 * datatype.size() }).sum()
}

/// The bytes of `count` MBRs of varying size, and where each starts in them.
fn listed<'a>(
    cursor: &mut Cursor<'a>,
    dimensions: &[(Datatype, bool)],
    count: usize,
) -> Result<(&'a [u8], Box<[u32]>)> {
    let mut ahead = cursor.clone();
    let first = ahead.position();
    let mut starts = Vec::with_capacity(count);
    for _ in 0..count {
        let start = u32::try_from(ahead.position() - first);
        starts.push(start.map_err(|_| Error::unsupported("R-tree of more than 4 GiB"))?);
        for &(datatype, variable) in dimensions {
            range_bytes(&mut ahead, datatype, variable, "MBR")?;
        }
    }
    let bytes = cursor.bytes(ahead.position() - first, "MBRs")?;
    Ok((bytes, starts.into()))
}

fn skip_list(cursor: &mut Cursor<'_>, schema: &ArraySchema) -> Result<()> {
    let dimensions = dimensions(schema);
    let count = cursor.u64("number of MBRs")?;
    for _ in 0..cursor.checked_count(count, least_size(&dimensions), "number of MBRs")? {
        for &(datatype, variable) in &dimensions {
            range_bytes(cursor, datatype, variable, "MBR")?;
        }
    }
    Ok(())
}
