//! The key range of a fragment's cells, according to its footer and its R-tree.

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::Range as CoordinateRange;
use tilefs_threads::single_flight::SingleFlight;

use super::overlap::KeyRanges;
use crate::array::sparse::select::stream::FragmentSource;

/// The keys that bound the cells of a fragment. The non-empty domain in the footer bounds all of them. The boxes of the
/// R-tree, which is read on first use, bound the cells of each tile. Memory: two keys, and two per tile once the R-tree
/// was read.
pub struct FragmentSpan {
    whole: KeyRanges,
    tiles: SingleFlight<KeyRanges>,
}

impl FragmentSpan {
    /// Returns the span of a fragment that has cells. Reads only its footer.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a non-empty domain that is missing or leaves the domain.
    pub fn new(source: &FragmentSource<'_>) -> Result<Self> {
        let outline = source.array.outline(source.fragment)?;
        let ranges = outline.facts.covering_ranges();
        let ranges = ranges.ok_or_else(|| Error::damaged("cells, but no non-empty domain"));
        let bounds = ranges.and_then(|ranges| source.plan.bounds(&ranges)).in_field("non-empty domain");
        let (low, high) = bounds.map_err(|error| source.place(error))?;
        let mut whole = KeyRanges::new(source.plan.words());
        whole.push(&low, &high);
        Ok(FragmentSpan { whole, tiles: SingleFlight::new() })
    }

    /// Returns the keys that bound all cells, as the range of a single tile.
    pub fn whole(&self) -> &KeyRanges {
        &self.whole
    }

    /// Returns the key range of each tile, if the R-tree was read.
    pub fn known_tiles(&self) -> Option<&KeyRanges> {
        self.tiles.get()
    }

    /// Returns the key range of each tile. Both ends ascend. `source` must be of the same fragment.
    ///
    /// # Errors
    /// Any damage in the R-tree; [`Error::Damaged`] for a box that leaves the domain, or for one that leaves the
    /// non-empty domain if the fragment's writer is known to respect that.
    pub fn tiles(&self, source: &FragmentSource<'_>) -> Result<&KeyRanges> {
        self.tiles.get_or_make(|| read_tiles(source))
    }
}

fn read_tiles(source: &FragmentSource<'_>) -> Result<KeyRanges> {
    let mbrs = source.mbrs()?;
    let outline = source.array.outline(source.fragment)?;
    let domain = outline.facts.covering_ranges().filter(|_| source.is_strictly_ordered());
    let mut key_ranges = KeyRanges::new(source.plan.words());
    let (mut boxes, mut ranges) = (mbrs.boxes(), Vec::new());
    for tile in source.cells.tiles() {
        let read = boxes.read(tile, &mut ranges).and_then(|()| match &domain {
            Some(domain) if !lies_in(source, &ranges, domain) => {
                Err(Error::damaged(format!("the box of tile {tile} leaves the non-empty domain")))
            }
            _ => Ok(()),
        });
        let bounds = read.and_then(|()| source.plan.bounds(&ranges)).in_field("R-tree");
        let (low, high) = bounds.map_err(|error| source.place(error))?;
        key_ranges.push(&low, &high);
    }
    if source.is_surely_ordered() {
        key_ranges.tighten()
    } else {
        key_ranges.loosen()
    }
    Ok(key_ranges)
}

/// Returns whether a box lies in another along the numeric dimensions.
fn lies_in(source: &FragmentSource<'_>, ranges: &[CoordinateRange], domain: &[CoordinateRange]) -> bool {
    ranges.iter().zip(domain).zip(&source.plan.axes).all(|((range, domain), axis)| {
        let position = |value| axis.position(value);
        let is_below = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a <= b);
        axis.is_text()
            || is_below(position(&domain.low), position(&range.low))
                && is_below(position(&range.high), position(&domain.high))
    })
}
