//! The properties of a fragment that stay in memory while it is not being read.

use tilefs_base::error::{Error, Locate, Result};

use super::FragmentField;
use crate::cursor::Cursor;
use crate::packed_ranges::PackedRanges;
use crate::scalar::{Range, Scalar};
use crate::schema::{ArraySchema, Dimension};

/// The properties of a fragment. Small, so that it can be kept for every fragment of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentFacts {
    /// Format version of the fragment.
    pub version: u32,
    /// Whether the fragment stores every cell of its tiles; a sparse fragment stores coordinates. Dense arrays of old
    /// versions can have sparse fragments.
    pub dense: bool,
    /// See [`FragmentFacts::non_empty_ranges`].
    pub(super) non_empty_domain: Option<PackedRanges>,
    /// Tiles of a sparse fragment, 0 for a dense one; see [`FragmentFacts::tile_count`].
    pub sparse_tiles: u64,
    /// Cells in the last tile of a sparse fragment; meaningless for a dense one.
    pub last_tile_cells: u64,
    /// Whether each cell has a timestamp, because the fragment was consolidated from others.
    pub has_timestamps: bool,
    /// Whether each cell tells when it was deleted, and by which condition.
    pub has_delete_metadata: bool,
    /// Bytes of the files of all fields together, as the writer recorded them.
    pub stored_bytes: u64,
    /// 0 before version 3; see [`FragmentFacts::rtree_offset`].
    pub(super) rtree_offset: u64,
    /// 0 before version 16; see [`FragmentFacts::processed_conditions_offset`].
    pub(super) processed_conditions_offset: u64,
    pub(super) attribute_count: u32,
    pub(super) dimension_count: u32,
}

impl FragmentFacts {
    /// Appends an unambiguous, self-delimiting encoding of all properties, for cache keys. An array can have a million
    /// fragments, and formatting each as text would take seconds.
    pub fn append_identity(&self, out: &mut Vec<u8>) {
        let FragmentFacts {
            version,
            dense,
            non_empty_domain,
            sparse_tiles,
            last_tile_cells,
            has_timestamps,
            has_delete_metadata,
            stored_bytes,
            rtree_offset,
            processed_conditions_offset,
            attribute_count,
            dimension_count,
        } = self;
        for number in [version, attribute_count, dimension_count] {
            out.extend(number.to_le_bytes());
        }
        out.extend([dense, has_timestamps, has_delete_metadata].map(|flag| u8::from(*flag)));
        for number in [sparse_tiles, last_tile_cells, stored_bytes, rtree_offset, processed_conditions_offset] {
            out.extend(number.to_le_bytes());
        }
        let ranges = non_empty_domain.as_ref();
        out.extend(ranges.map_or(u64::MAX, |ranges| ranges.iter().count() as u64).to_le_bytes());
        out.extend(ranges.map_or([].as_slice(), PackedRanges::bytes));
    }

    /// Returns the non-empty domain: a range per dimension as stored, or the domain where the stored range may leave
    /// out cells; `None` for a fragment without cells.
    pub fn non_empty_ranges(&self) -> Option<Vec<Range>> {
        self.non_empty_domain.as_ref().map(PackedRanges::to_vec)
    }

    /// Returns ranges that hold the coordinates of all cells: the non-empty domain, without the high ends of texts that
    /// may leave out cells.
    pub fn covering_ranges(&self) -> Option<Vec<Range>> {
        let ranges = self.non_empty_domain.as_ref()?.iter();
        Some(ranges.map(|range| covering_texts(self.version, range)).collect())
    }

    /// Returns the range of the non-empty domain along one dimension.
    pub fn non_empty_range(&self, dimension: usize) -> Option<Range> {
        self.non_empty_domain.as_ref()?.iter().nth(dimension)
    }

    /// Returns the offset of the R-tree's generic tile in the metadata file, from version 3.
    pub fn rtree_offset(&self) -> Option<u64> {
        (self.version >= 3).then_some(self.rtree_offset)
    }

    /// Returns the offset of the generic tile of the processed conditions, from version 16.
    pub fn processed_conditions_offset(&self) -> Option<u64> {
        (self.version >= 16).then_some(self.processed_conditions_offset)
    }

    /// Returns the number of slots in every list that has an entry per field.
    pub fn slot_count(&self) -> usize {
        let fields = self.attribute_count as usize + 1;
        if self.version < 5 {
            return fields;
        }
        fields
            + self.dimension_count as usize
            + usize::from(self.has_timestamps)
            + 2 * usize::from(self.has_delete_metadata)
    }

    /// Returns the slot of a field; `None` if the fragment has no such field. From version 5, the slot of
    /// [`FragmentField::Coordinates`] still exists but is unused.
    pub fn slot(&self, field: FragmentField) -> Option<usize> {
        let attributes = self.attribute_count as usize;
        let dimensions = self.dimension_count as usize;
        let behind = attributes + 1 + dimensions;
        match field {
            FragmentField::Attribute(number) => (number < attributes).then_some(number),
            FragmentField::Coordinates => (self.version < 5).then_some(attributes),
            FragmentField::Dimension(number) => {
                (self.version >= 5 && number < dimensions).then_some(attributes + 1 + number)
            }
            FragmentField::Timestamps => self.has_timestamps.then_some(behind),
            FragmentField::DeleteTimestamps => {
                self.has_delete_metadata.then_some(behind + usize::from(self.has_timestamps))
            }
            FragmentField::DeleteConditionIndex => {
                self.has_delete_metadata.then_some(behind + usize::from(self.has_timestamps) + 1)
            }
        }
    }

    /// Returns the number of tiles of every field. The tiles of a dense fragment are the space tiles that its non-empty
    /// domain touches.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a dense count does not fit 64 bits.
    pub fn tile_count(&self, schema: &ArraySchema) -> Result<u64> {
        if !self.dense {
            return Ok(self.sparse_tiles);
        }
        // Do not collect the ranges in a list: this function runs for each tile.
        let Some(ranges) = &self.non_empty_domain else { return Ok(0) };
        schema
            .dimensions
            .iter()
            .zip(ranges.iter())
            .try_fold(1u64, |count, (dimension, range)| count.checked_mul(tiles_along(dimension, &range)?))
            .ok_or_else(|| Error::damaged("more tiles than 64 bits count").in_field("non-empty domain"))
    }

    /// Returns the number of tiles in a row of tiles. A read of cells in row-major order returns to each of these tiles
    /// until it has finished the row. 1 for a sparse fragment, whose tiles are read one after the other.
    pub fn tiles_of_a_row(&self, schema: &ArraySchema) -> u64 {
        let (true, Some(ranges)) = (self.dense, &self.non_empty_domain) else { return 1 };
        let dimensions = schema.dimensions.iter().zip(ranges.iter());
        // Leading dimensions with an extent of 1 do not count: a tile ends before the next coordinate along them.
        let thick = dimensions.skip_while(|(dimension, _)| dimension.extent_length() == Some(1)).skip(1);
        thick.fold(1, |count: u64, (dimension, range)| {
            count.saturating_mul(tiles_along(dimension, &range).unwrap_or(u64::MAX))
        })
    }

    /// Returns the number of cells that tile `tile` stores; dense tiles are always complete. `None` if there is no such
    /// tile, or if the number of a dense tile does not fit 64 bits.
    pub fn cells_in_tile(&self, schema: &ArraySchema, tile: u64) -> Option<u64> {
        let last = self.tile_count(schema).ok()?.checked_sub(1)?;
        if tile > last {
            None
        } else if self.dense {
            schema.cells_per_dense_tile()
        } else if tile == last {
            Some(self.last_tile_cells)
        } else {
            Some(schema.capacity)
        }
    }

    /// Checks that the fields agree with each other and with the schema. A non-empty domain that may leave out cells is
    /// replaced by the domain.
    pub(super) fn check(&mut self, schema: &ArraySchema) -> Result<()> {
        if let Some(mut ranges) = self.non_empty_ranges() {
            let mut is_replaced = false;
            for (dimension, range) in schema.dimensions.iter().zip(&mut ranges).filter(|_| !self.dense) {
                if let Some(domain) = domain_if_crossing_1970(self.version, dimension)
                    && domain.contains(&range.low)
                    && domain.contains(&range.high)
                {
                    *range = domain.clone();
                    is_replaced = true;
                }
            }
            if is_replaced {
                self.non_empty_domain = Some(PackedRanges::new(&ranges));
            }
            for (dimension, range) in schema.dimensions.iter().zip(&ranges) {
                check_range(self.dense, dimension, range).in_field(&dimension.name)?;
            }
        }
        if self.dense {
            if schema.is_sparse() {
                return Err(Error::damaged("dense fragment in a sparse array").in_field("dense"));
            }
            return self.tile_count(schema).map(|_| ());
        }
        if self.sparse_tiles > 0 && !(1..=schema.capacity).contains(&self.last_tile_cells) {
            let reason = format!("{} cells in the last tile, {} in the others", self.last_tile_cells, schema.capacity);
            return Err(Error::damaged(reason).in_field("last tile cell number"));
        }
        Ok(())
    }
}

/// Returns the number of space tiles that a range of a dense dimension touches.
fn tiles_along(dimension: &Dimension, range: &Range) -> Option<u64> {
    dimension.tile_number(&range.high)?.checked_sub(dimension.tile_number(&range.low)?)?.checked_add(1)
}

/// Checks that a non-empty domain lies in the domain. For a dense fragment, it may extend to the end of the domain's
/// last tile.
fn check_range(dense: bool, dimension: &Dimension, range: &Range) -> Result<()> {
    let Some(domain) = &dimension.domain else { return Ok(()) };
    let in_last_tile = || match (dimension.tile_number(&range.high), dimension.tile_number(&domain.high)) {
        (Some(tile), Some(last)) => tile <= last,
        _ => false,
    };
    let inside = domain.contains(&range.low) && (domain.contains(&range.high) || (dense && in_last_tile()));
    if inside && range.is_ordered() {
        return Ok(());
    }
    let reason = format!(
        "non-empty domain from {} to {} in a domain from {} to {}",
        range.low, range.high, domain.low, domain.high
    );
    Err(Error::damaged(reason))
}

/// The first format version whose libraries compare dates and times as signed numbers in sparse fragments. Earlier
/// libraries compared dates and times as unsigned numbers.
pub const SIGNED_TIMES_SINCE: u32 = 5;

/// Returns the domain of a dimension, if libraries of this format version computed the bounds of its dates from
/// unsigned comparisons and the domain has dates before and after 1970. Such bounds are unreliable.
///
/// If a tile has dates of both kinds, its low bound is the earliest date from 1970 on, and its high bound is the latest
/// date before 1970. They do not bound its dates. The non-empty domain of a sparse fragment extends from the lowest
/// low bound to the highest high bound, and so may leave out any date.
fn domain_if_crossing_1970(version: u32, dimension: &Dimension) -> Option<&Range> {
    let domain = dimension.domain.as_ref()?;
    let is_old = version < SIGNED_TIMES_SINCE && dimension.datatype.is_datetime();
    let is_crossing = matches!((&domain.low, &domain.high), (Scalar::Signed(..0), Scalar::Signed(0..)));
    (is_old && is_crossing).then_some(domain)
}

/// Returns the domain, if these bounds of a tile of a sparse fragment do not bound its dates; see
/// [`domain_if_crossing_1970`].
pub(super) fn domain_if_unsigned<'a>(version: u32, dimension: &'a Dimension, range: &Range) -> Option<&'a Range> {
    let is_wrapped = matches!((&range.low, &range.high), (Scalar::Signed(0..), Scalar::Signed(..0)));
    let domain = domain_if_crossing_1970(version, dimension)?;
    (is_wrapped && domain.contains(&range.low) && domain.contains(&range.high)).then_some(domain)
}

/// The first format version whose libraries keep the high end of a range of texts that begins with the empty text.
///
/// Earlier libraries took the high end of such a range for empty when they extended it by further texts. The high end of
/// what they stored is that of the texts that came last, for boxes of tiles, boxes above them, and the non-empty domain.
const EMPTY_TEXTS_SINCE: u32 = 10;

/// Returns a range that holds all texts of the cells for which a library of this format version stored `range`.
pub(super) fn covering_texts(version: u32, range: Range) -> Range {
    let begins_empty = matches!(&range.low, Scalar::Text(low) if low.is_empty());
    if version < EMPTY_TEXTS_SINCE && begins_empty { Range::of_texts_from(range.low) } else { range }
}

/// Reads one range per dimension of the schema.
pub(super) fn parse_ranges(cursor: &mut Cursor<'_>, schema: &ArraySchema) -> Result<PackedRanges> {
    let mut parse =
        |dimension: &Dimension| Range::parse(cursor, dimension.datatype, dimension.is_variable(), "non-empty domain");
    let ranges = schema.dimensions.iter().map(&mut parse).collect::<Result<Vec<_>>>()?;
    Ok(PackedRanges::new(&ranges))
}

/// Returns the numbers of attributes and dimensions. They fit 32 bits, as the schema stores them so.
pub(super) fn counts(schema: &ArraySchema) -> Result<(u32, u32)> {
    let narrow = |count: usize| u32::try_from(count).map_err(|_| Error::damaged("too many fields"));
    Ok((narrow(schema.attributes.len())?, narrow(schema.dimensions.len())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> FragmentFacts {
        FragmentFacts {
            version: 22,
            dense: false,
            non_empty_domain: Some(PackedRanges::new(&[range(Scalar::Signed(1), Scalar::Signed(2))])),
            sparse_tiles: 3,
            last_tile_cells: 4,
            has_timestamps: false,
            has_delete_metadata: false,
            stored_bytes: 5,
            rtree_offset: 6,
            processed_conditions_offset: 7,
            attribute_count: 8,
            dimension_count: 9,
        }
    }

    fn range(low: Scalar, high: Scalar) -> Range {
        Range { low, high }
    }

    #[test]
    fn other_facts_have_other_identities() {
        let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
        let domain = |ranges: &[Range]| Some(PackedRanges::new(ranges));
        let (one, two) = (Scalar::Signed(1), Scalar::Signed(2));
        let others = [
            facts(),
            FragmentFacts { version: 21, ..facts() },
            FragmentFacts { dense: true, ..facts() },
            FragmentFacts { sparse_tiles: 4, ..facts() },
            FragmentFacts { last_tile_cells: 3, ..facts() },
            FragmentFacts { has_timestamps: true, ..facts() },
            FragmentFacts { has_delete_metadata: true, ..facts() },
            FragmentFacts { stored_bytes: 6, ..facts() },
            FragmentFacts { rtree_offset: 5, ..facts() },
            FragmentFacts { processed_conditions_offset: 5, ..facts() },
            FragmentFacts { attribute_count: 9, ..facts() },
            FragmentFacts { dimension_count: 8, ..facts() },
            FragmentFacts { non_empty_domain: None, ..facts() },
            FragmentFacts { non_empty_domain: domain(&[]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(one.clone(), one.clone())]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(Scalar::Unsigned(1), two.clone())]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(Scalar::Float32(1.0), two.clone())]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(Scalar::Float64(1.0), two)]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(text("a"), text("bc"))]), ..facts() },
            FragmentFacts { non_empty_domain: domain(&[range(text("ab"), text("c"))]), ..facts() },
        ];
        let mut identities: Vec<Vec<u8>> = Vec::new();
        for other in &others {
            identities.push(Vec::new());
            identities.last_mut().map(|identity| other.append_identity(identity)).unwrap();
        }
        for (number, identity) in identities.iter().enumerate() {
            assert!(!identities[..number].contains(identity), "{:?}", others[number]);
        }
        let mut again = Vec::new();
        facts().append_identity(&mut again);
        assert_eq!(identities[0], again);
    }
}
