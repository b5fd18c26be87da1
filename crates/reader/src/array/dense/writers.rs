//! Which dense fragments the releases 2.3 to 2.9 wrote with cells in the wrong tiles.
//!
//! Those releases cut a write into space tiles by a rule that fails for domains of INT8 and INT16 that begin below zero:
//! they convert coordinate, low end and extent to unsigned numbers of the same size, and C++ then divides them as signed
//! numbers of 32 bits. From coordinate 0 on the difference is short of the right one by all numbers of the type. Such a
//! write fails, has another number of tiles than its box, or leaves cells out. The bytes do not tell which are left out.

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::Dimension;

/// Format versions of the releases 2.3 to 2.9, which had the rule.
pub const WRONG_TILES: std::ops::Range<u32> = 9..14;

/// Whether the rule of those releases puts a write of the box `ranges` into as many tiles as there are, but not into the
/// same ones. A fragment with another number of tiles than its box is called damaged anyway.
pub fn are_tiles_in_doubt(dimensions: &[Dimension], ranges: &[Range]) -> bool {
    let (mut due, mut written, mut are_same) = (1u64, 1u64, true);
    for (dimension, range) in dimensions.iter().zip(ranges) {
        let Some((first, last)) = dimension.tile_number(&range.low).zip(dimension.tile_number(&range.high)) else {
            return false;
        };
        let count = last.wrapping_sub(first).wrapping_add(1);
        due = due.wrapping_mul(count);
        match OldTiles::new(dimension, range) {
            Some(old) => {
                are_same &= old.count == count && old.begin_like(first);
                written = written.wrapping_mul(old.count);
            }
            None => written = written.wrapping_mul(count),
        }
    }
    due == written && !are_same
}

/// The tiles along one dimension that those releases gave a write.
struct OldTiles {
    /// How many, in the unsigned numbers of 64 bits in which those releases counted.
    count: u64,
    /// The number of the first one.
    first: i64,
    extent: i64,
    /// How many numbers the type has.
    whole: i64,
}

impl OldTiles {
    /// `None` for types of which the rule is right, and where one tile spans the domain.
    fn new(dimension: &Dimension, range: &Range) -> Option<Self> {
        let bytes = dimension.datatype.size();
        if dimension.datatype.kind() != Kind::Signed || bytes >= 4 {
            return None;
        }
        let whole = 1i64 << (8 * bytes);
        let low = unsigned(&dimension.domain.as_ref()?.low, whole)?;
        let extent = i64::try_from(dimension.extent_length()?).ok().filter(|extent| *extent > 0)?;
        let number = |value: &Scalar| Some((unsigned(value, whole)? - low) / extent);
        let (first, last) = (number(&range.low)?, number(&range.high)?);
        Some(OldTiles { count: (last - first + 1) as u64, first, extent, whole })
    }

    /// Whether the first one covers the coordinates of today's tile of a number. The low end of a tile is cut to the type.
    fn begin_like(&self, today: u64) -> bool {
        i64::try_from(today).is_ok_and(|today| (self.first - today) * self.extent % self.whole == 0)
    }
}

/// The bits of a number of a small signed type as an unsigned one.
fn unsigned(value: &Scalar, whole: i64) -> Option<i64> {
    match value {
        Scalar::Signed(value) => Some(value.rem_euclid(whole)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;
    use tilefs_format::schema::fixture::dimension;

    use super::*;

    /// The tiles that those releases computed of a write, each by its first coordinate: step by step, with the types of C++.
    fn tiles_of_release(low: i8, extent: i8, first: i8, last: i8) -> (u64, i8) {
        let number = |value: i8| (i32::from(value as u8) - i32::from(low as u8)) / i32::from(extent as u8);
        let (begin, end) = (number(first) as i64 as u64, number(last) as i64 as u64);
        let begins_at = u64::from(low as u8).wrapping_add(begin.wrapping_mul(u64::from(extent as u8))) as u8 as i8;
        (end.wrapping_sub(begin).wrapping_add(1), begins_at)
    }

    /// Every write into some domains of INT8, across zero and not, with extents that divide 256 and not.
    #[test]
    fn writes_are_in_doubt_where_as_many_tiles_begin_elsewhere() {
        let mut doubtful = 0;
        for (low, high, extent) in [(-128, 111, 16), (-100, 99, 7), (-3, 4, 4), (-20, -1, 6), (0, 90, 8), (-5, 100, 1)]
        {
            let mut tiled = dimension("x", low, high, extent);
            tiled.datatype = Datatype::Int8;
            for first in low..=high {
                for last in first..=high {
                    let range = Range { low: Scalar::Signed(first), high: Scalar::Signed(last) };
                    let found = are_tiles_in_doubt(std::slice::from_ref(&tiled), &[range]);
                    let (count, begin) = tiles_of_release(low as i8, extent as i8, first as i8, last as i8);
                    let today = (first - low) / extent;
                    let due =
                        count == ((last - low) / extent - today + 1) as u64 && i64::from(begin) != low + today * extent;
                    assert_eq!(found, due, "{first} to {last} in {low} to {high} by {extent}");
                    assert!(!found || (low < 0 && last >= 0));
                    doubtful += usize::from(found);
                }
            }
        }
        assert!(doubtful > 100, "{doubtful}");
    }
}
