//! Detects dense fragments in which releases 2.3 to 2.9 wrote cells to wrong tiles.
//!
//! Those releases divided a write into space tiles by a rule that fails for domains of INT8 and INT16 that begin below
//! zero: it converts coordinate, low end and extent to unsigned numbers of the same size, which C++ then divides as
//! signed 32-bit numbers. From coordinate 0 on, the difference is too small by the number of values of the type. Such a
//! write fails, has extra tiles after its own, or leaves out cells. The bytes do not show which cells are left out.

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{Dimension, Layout};

/// The format versions of releases 2.3 to 2.9, which had this rule.
pub const WRONG_TILES: std::ops::Range<u32> = 9..14;

/// The result of those releases' rule for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The cells are in the tiles of the write's box.
    Right,
    /// The cells are in the tiles of the write's box, followed by extra tiles; the total number of tiles.
    Followed(u64),
    /// The cells are in other tiles; the total number of tiles.
    Elsewhere(u64),
}

/// Returns where the rule of those releases puts a write of the box `ranges`.
pub(crate) fn placement(dimensions: &[Dimension], tile_order: Layout, ranges: &[Range]) -> Placement {
    // Extra tiles come after all others only along the axis that varies slowest in tile order.
    let slowest = if tile_order == Layout::ColMajor { dimensions.len().saturating_sub(1) } else { 0 };
    let (mut written, mut is_followed, mut is_right) = (1u64, false, true);
    for (axis, (dimension, range)) in dimensions.iter().zip(ranges).enumerate() {
        let Some((first, last)) = dimension.tile_number(&range.low).zip(dimension.tile_number(&range.high)) else {
            return Placement::Right;
        };
        let count = last.wrapping_sub(first).wrapping_add(1);
        let Some(old) = OldTiles::new(dimension, range) else {
            written = written.wrapping_mul(count);
            continue;
        };
        written = written.wrapping_mul(old.count);
        let begin_alike = old.begin_like(first);
        let is_longer = axis == slowest && old.count > count && i64::try_from(old.count).is_ok();
        is_followed |= begin_alike && is_longer;
        is_right &= begin_alike && (old.count == count || is_longer);
    }
    match (is_right, is_followed) {
        (true, false) => Placement::Right,
        (true, true) => Placement::Followed(written),
        (false, _) => Placement::Elsewhere(written),
    }
}

/// The tiles along one dimension that those releases gave to a write.
struct OldTiles {
    /// Their number, in the unsigned 64-bit arithmetic of those releases.
    count: u64,
    /// The number of the first tile.
    first: i64,
    extent: i64,
    /// The number of values of the type.
    whole: i64,
}

impl OldTiles {
    /// Returns `None` for types for which the rule is correct, and if one tile spans the domain.
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

    /// Returns whether the first tile covers the coordinates of a tile according to the current rule. The low end of a
    /// tile is truncated to the type.
    fn begin_like(&self, today: u64) -> bool {
        i64::try_from(today).is_ok_and(|today| (self.first - today) * self.extent % self.whole == 0)
    }
}

/// Converts a number of a small signed type to the bits of an unsigned one.
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

    /// Computes the tiles of a write like those releases, step by step, with the types of C++. Each tile is given by
    /// its first coordinate.
    fn tiles_of_release(low: i8, extent: i8, first: i8, last: i8) -> (u64, i8) {
        let number = |value: i8| (i32::from(value as u8) - i32::from(low as u8)) / i32::from(extent as u8);
        let (begin, end) = (number(first) as i64 as u64, number(last) as i64 as u64);
        let begins_at = u64::from(low as u8).wrapping_add(begin.wrapping_mul(u64::from(extent as u8))) as u8 as i8;
        (end.wrapping_sub(begin).wrapping_add(1), begins_at)
    }

    /// Tests every write into some domains of INT8, across zero and not, with extents that divide 256 and not. A write
    /// is correct if each cell is in the tile in which the current rule looks for it, among the tiles of the release.
    #[test]
    fn placement_is_right_if_each_cell_is_in_its_tile() {
        let (mut followed, mut elsewhere) = (0, 0);
        for (low, high, extent) in [(-128, 111, 16), (-100, 99, 7), (-3, 4, 4), (-20, -1, 6), (0, 90, 8), (-5, 100, 1)]
        {
            let mut tiled = dimension("x", low, high, extent);
            tiled.datatype = Datatype::Int8;
            for first in low..=high {
                for last in first..=high {
                    let range = Range { low: Scalar::Signed(first), high: Scalar::Signed(last) };
                    let found = placement(std::slice::from_ref(&tiled), Layout::RowMajor, &[range]);
                    let (count, begin) = tiles_of_release(low as i8, extent as i8, first as i8, last as i8);
                    let today = (first - low) / extent;
                    let due = ((last - low) / extent - today + 1) as u64;
                    // With fewer tiles, or so many that no write succeeds, cells are left out.
                    let is_enough = (due..1 << 32).contains(&count);
                    let wanted = match is_enough && i64::from(begin) == low + today * extent {
                        true if count == due => Placement::Right,
                        true => Placement::Followed(count),
                        false => Placement::Elsewhere(count),
                    };
                    assert_eq!(found, wanted, "{first} to {last} in {low} to {high} by {extent}");
                    assert!(found == Placement::Right || (low < 0 && last >= 0));
                    followed += usize::from(matches!(found, Placement::Followed(_)));
                    elsewhere += usize::from(matches!(found, Placement::Elsewhere(_)));
                }
            }
        }
        assert!(elsewhere > 100 && followed > 100, "{elsewhere} {followed}");
    }

    /// Extra tiles along another axis than the slowest lie among the tiles of the box.
    #[test]
    fn extra_tiles_are_accepted_only_after_all_others() {
        let mut tiled = dimension("x", -64, 63, 32);
        tiled.datatype = Datatype::Int8;
        let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
        let (longer, same) = (range(0, 31), range(-64, -33));
        let both = [tiled.clone(), tiled];
        let of = |order, ranges: [&Range; 2]| placement(&both, order, &ranges.map(Clone::clone));
        assert_eq!(of(Layout::RowMajor, [&longer, &same]), Placement::Followed(2));
        assert_eq!(of(Layout::RowMajor, [&same, &longer]), Placement::Elsewhere(2));
        assert_eq!(of(Layout::ColMajor, [&same, &longer]), Placement::Followed(2));
        assert_eq!(of(Layout::ColMajor, [&longer, &same]), Placement::Elsewhere(2));
        assert_eq!(of(Layout::RowMajor, [&same, &same]), Placement::Right);
    }
}
