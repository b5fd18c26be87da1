//! A merge of tiles of several fragments, cut into segments that are made one by one, each when it is first read.
//!
//! Segments have equally many cells. A search finds where a segment begins in each fragment, so no other segment is
//! read. If cells cannot be searched, or all R-trees are read anyway, segments are cut at keys instead.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_storage::together;
use tilefs_threads as threads;
use tilefs_threads::address_space;

use super::coincidence::{self, Coincidence, TileStretch};
use super::overlap::KeyRanges;
use super::plan::{MergePart, PlannedMerge};
use super::prefetch;
use super::rank::{self, RankBounds, SortedLists};
use super::task::{MergeKind, MergeTask};
use super::tournament::{Halt, Merged};
use crate::array::sparse::rows::row_map::SegmentSource;
use crate::array::sparse::rows::segments::RowSegment;
use crate::array::sparse::rows::store::SpillStore;
use crate::array::sparse::select::query::Query;
use crate::array::sparse::select::stream::FragmentSource;

/// Number of segment boundaries that are cached, for a merge of few fragments.
const KEPT_PLACES: usize = 64;

/// Approximate limit for the number of positions in all cached boundaries together.
const KEPT_POSITIONS: usize = 1 << 18;

/// After this many segments with cells of several fragments, freed memory is returned to the system, at about two
/// percent of the time of these segments. Segments are made on many threads, whose arenas would otherwise each keep as
/// much memory as the largest segments needed: a third of what a long read takes.
const MERGED_PER_RETURN: usize = 8;

/// A merge and its cuts. Memory: two keys for each tile of the fragments that were opened (held by the parts), a key or
/// a word for each segment, and [`KEPT_POSITIONS`].
pub struct LazyMerge {
    query: Arc<Query>,
    store: Arc<SpillStore>,
    parts: Vec<MergePart>,
    coincidence: Coincidence,
    cut: SegmentCut,
    /// For each segment number, the position in each part at which the segment begins.
    places: LruCache<usize, Arc<[u64]>>,
    /// For each segment, a hash of its place, or 0 before the place is found. Finding it again must give the same hash.
    found: Vec<AtomicU64>,
    /// The number of segments that were made from several fragments.
    merged: AtomicUsize,
}

enum SegmentCut {
    /// Into segments of [`segment_rows`](crate::array::sparse::select::query::Portions::segment_rows) cells, the last
    /// of fewer, counted over all `cells` in merge order. A segment begins at the cell with that count, or at the first
    /// cell with the same coordinates, so a segment has no more rows than cells were counted.
    ByRank { cells: u64 },
    /// At ascending keys, or prefixes of keys.
    ByKeys { keys: Vec<Vec<u64>> },
}

impl LazyMerge {
    /// Cuts a merge into segments. `store` keeps the segments that are made.
    ///
    /// # Errors
    /// Any damage in coordinates, if tiles are so large that finding keys to cut at means reading cells.
    pub fn new(query: Arc<Query>, store: Arc<SpillStore>, planned: PlannedMerge) -> Result<Arc<Self>> {
        let PlannedMerge { parts, coincidence } = planned;
        let capacity = (KEPT_POSITIONS / parts.len().max(1)).min(KEPT_PLACES).max(2 * threads::decoding() + 2);
        let places = LruCache::new(capacity);
        let cells = parts.iter().map(|part| part.positions.end - part.positions.start).fold(0, u64::saturating_add);
        let (cut, merged) = (SegmentCut::ByRank { cells }, AtomicUsize::new(0));
        let mut merge = LazyMerge { query, store, parts, coincidence, cut, places, found: Vec::new(), merged };
        let is_open = merge.parts.iter().all(|part| part.span.known_tiles().is_some());
        if (!merge.query.plan.can_be_searched() || (coincidence == Coincidence::Possible && is_open))
            && let Some(keys) = merge.keys_to_cut_at(cells)?
        {
            merge.cut = SegmentCut::ByKeys { keys };
        }
        merge.found.resize_with(merge.segment_count() + 1, AtomicU64::default);
        Ok(Arc::new(merge))
    }

    /// Returns the number of segments.
    pub fn segment_count(&self) -> usize {
        match &self.cut {
            SegmentCut::ByRank { cells } => {
                usize::try_from(cells.div_ceil(self.query.portions.segment_rows)).unwrap_or(usize::MAX)
            }
            SegmentCut::ByKeys { keys } => keys.len() + 1,
        }
    }

    /// Makes a segment. Reports the number of cells processed to `progress`.
    ///
    /// # Errors
    /// Any damage in its cells.
    pub fn merge(&self, number: usize, progress: &dyn Fn(u64)) -> Merged<RowSegment> {
        let start = self.place(number)?;
        let (mut ends, kind) = if let Some(rows) = self.known_rows(number) {
            (self.latest_place(number + 1)?, MergeKind::Every { rows })
        } else {
            let end = self.place(number + 1)?;
            let kind = match self.count_between(&start, &end)? {
                Some(rows) if self.query.plan.can_be_searched() => MergeKind::Every { rows },
                _ => MergeKind::Newest,
            };
            (end.to_vec(), kind)
        };
        let own: Vec<usize> = (0..self.parts.len()).filter(|&part| start[part] < ends[part]).collect();
        let parts = own.iter().map(|&part| (self.parts[part].fragment, start[part]..ends[part])).collect();
        let (segment, behind) = MergeTask { parts, kind }.run(&self.query, &self.store, progress)?;
        if own.len() > 1 && self.merged.fetch_add(1, Ordering::Relaxed) % MERGED_PER_RETURN == MERGED_PER_RETURN - 1 {
            address_space::return_freed_memory();
        }
        if let Some(behind) = behind {
            // The next segment begins where this one ends.
            ends.copy_from_slice(&start);
            own.iter().zip(behind).for_each(|(part, position)| ends[*part] = position);
            self.keep_place(number + 1, ends)?;
        }
        Ok(segment)
    }

    /// Returns the number of cells before a segment, if the merge is cut by rank.
    fn cells_before(&self, number: usize) -> u64 {
        let SegmentCut::ByRank { cells } = self.cut else { return 0 };
        (number as u64).saturating_mul(self.query.portions.segment_rows).min(cells)
    }

    /// Returns the position in each part at which a segment begins, and the previous one ends.
    fn place(&self, number: usize) -> Result<Arc<[u64]>> {
        if let Some(known) = self.places.get(&number) {
            return Ok(known);
        }
        let place = match &self.cut {
            _ if number == 0 => self.parts.iter().map(|part| part.positions.start).collect(),
            _ if number >= self.segment_count() => self.parts.iter().map(|part| part.positions.end).collect(),
            SegmentCut::ByRank { .. } => self.place_by_rank(number)?,
            SegmentCut::ByKeys { keys } => {
                let (lists, key) = (FragmentLists::new(self), &keys[number - 1]);
                let windows = (0..self.parts.len()).map(|part| rank::window(&lists, part, key));
                let (low, high) = windows.unzip();
                let bounds = RankBounds { low, high };
                lists.prepare(&bounds)?;
                let window = |part: usize| (bounds.low[part], bounds.high[part]);
                let first = |part| rank::first_not_before(&lists, part, window(part), key);
                (0..self.parts.len()).map(first).collect::<Result<Vec<u64>>>()?
            }
        };
        self.keep_place(number, place)
    }

    fn place_by_rank(&self, number: usize) -> Result<Vec<u64>> {
        let (lists, rank) = (FragmentLists::new(self), self.cells_before(number));
        let place = match self.coincidence {
            Coincidence::Nowhere => rank::place_among_distinct(&lists, rank),
            _ => rank::place_at(&lists, rank),
        };
        let place = place.in_array(self.query.array.path())?;
        let before = place.iter().zip(&self.parts).map(|(position, part)| position - part.positions.start);
        if self.coincidence == Coincidence::Nowhere && before.fold(0, u64::saturating_add) != rank {
            let reason = "coordinates of two fragments' cells, though the boxes of their tiles lie apart";
            return Err(Error::damaged(reason).in_array(self.query.array.path()));
        }
        Ok(place)
    }

    /// Returns for each part the latest position at which a segment can begin. Reads no cell.
    fn latest_place(&self, number: usize) -> Result<Vec<u64>> {
        match number < self.segment_count() {
            true => Ok(rank::bounds_at(&FragmentLists::new(self), self.cells_before(number))?.high),
            false => Ok(self.parts.iter().map(|part| part.positions.end).collect()),
        }
    }

    /// Returns the number of rows between two places, if the boxes of tiles determine it.
    fn count_between(&self, start: &[u64], end: &[u64]) -> Result<Option<u64>> {
        let own = (0..self.parts.len()).filter(|&part| start[part] < end[part]);
        let own: Vec<(FragmentSource<'_>, Range<u64>)> = own
            .map(|part| Ok((self.query.source(self.parts[part].fragment)?, start[part]..end[part])))
            .collect::<Result<_>>()?;
        let stretches: Vec<TileStretch<'_>> =
            own.iter().map(|(source, positions)| TileStretch { source, positions: positions.clone() }).collect();
        let rows = own.iter().map(|(_, positions)| positions.end - positions.start).fold(0, u64::saturating_add);
        Ok((coincidence::by_tiles(&self.query, &stretches)? == Coincidence::Nowhere).then_some(rows))
    }

    fn keep_place(&self, number: usize, place: Vec<u64>) -> Result<Arc<[u64]>> {
        let mut hasher = DefaultHasher::new();
        place.hash(&mut hasher);
        let hash = hasher.finish() | 1;
        let disorder = || Error::damaged("coordinates out of order").in_array(self.query.array.path());
        if let Some(found) = self.found.get(number)
            && let Err(other) = found.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed)
            && other != hash
        {
            return Err(disorder());
        }
        let place: Arc<[u64]> = place.into();
        self.places.put(number, place.clone());
        Ok(place)
    }

    /// Returns whether a search by rank is possible: all fragments are sorted by today's rules, and cells out of order
    /// are damage. Whether a writer had other rules shows only in a merge, which then takes all cells as they come.
    fn can_be_searched(&self) -> Result<bool> {
        let is_ordered = |part: &MergePart| Ok(self.query.source(part.fragment)?.is_strictly_ordered());
        let are_ordered = self.parts.iter().map(is_ordered).collect::<Result<Vec<bool>>>()?;
        Ok(self.query.plan.can_be_searched() && are_ordered.into_iter().all(|is_ordered| is_ordered))
    }

    /// Returns keys at which to cut the merge into segments of about
    /// [`segment_rows`](crate::array::sparse::select::query::Portions::segment_rows) cells; `None` if the boxes give
    /// too few keys and cells can be searched instead when a segment is first read.
    fn keys_to_cut_at(&self, cells: u64) -> Result<Option<Vec<Vec<u64>>>> {
        let wanted = usize::try_from(segments_of_merge(cells / self.query.portions.segment_rows, threads::decoding()))
            .unwrap_or(usize::MAX);
        if wanted < 2 {
            return Ok(Some(Vec::new()));
        }
        let mut keys: Vec<&[u64]> = Vec::new();
        for part in &self.parts {
            let cells = &self.query.cells[part.fragment];
            let end = cells.place_of(part.positions.end.saturating_sub(1)) + 1;
            let tiles = part.span.known_tiles().unwrap_or(part.span.whole());
            keys.extend((cells.place_of(part.positions.start)..end).filter_map(|place| tiles.low(place)));
        }
        keys.sort_unstable();
        keys.dedup();
        let mut seen = Vec::new();
        if keys.len() < wanted.saturating_mul(8) {
            if self.can_be_searched()? {
                return Ok(None);
            }
            // There are few large tiles, or boxes that tell nothing, so read cells.
            let lists = FragmentLists::new(self);
            let step = (cells / (4 * wanted as u64)).max(1);
            for (number, part) in self.parts.iter().enumerate() {
                for position in part.positions.clone().step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
                    seen.push(lists.key_at(number, position)?);
                }
            }
            seen.sort_unstable();
            seen.dedup();
            keys = seen.iter().map(Vec::as_slice).collect();
        }
        let cuts = (1..wanted).map(|number| (number as u128 * keys.len() as u128 / wanted as u128) as usize);
        let cuts = cuts.filter_map(|at| Some(self.query.plan.decisive(keys.get(at)?).to_vec()));
        let mut cuts: Vec<Vec<u64>> = cuts.collect();
        cuts.dedup();
        Ok(Some(cuts))
    }
}

impl SegmentSource for LazyMerge {
    fn most_rows(&self, number: usize) -> u64 {
        let SegmentCut::ByKeys { keys } = &self.cut else {
            return self.cells_before(number + 1) - self.cells_before(number);
        };
        let lists = FragmentLists::new(self);
        let ends = |part: usize| {
            let positions = &self.parts[part].positions;
            let low = number.checked_sub(1).and_then(|before| keys.get(before));
            let low = low.map_or(positions.start, |key| rank::window(&lists, part, key).0);
            (low, keys.get(number).map_or(positions.end, |key| rank::window(&lists, part, key).1))
        };
        (0..self.parts.len()).map(ends).fold(0, |sum, (low, high)| sum.saturating_add(high.saturating_sub(low)))
    }

    fn known_rows(&self, number: usize) -> Option<u64> {
        match (&self.cut, self.coincidence) {
            (SegmentCut::ByRank { .. }, Coincidence::Nowhere) => Some(self.most_rows(number)),
            _ => None,
        }
    }

    fn count_rows(&self, number: usize) -> Result<Option<u64>> {
        match self.known_rows(number) {
            Some(rows) => Ok(Some(rows)),
            None => self.count_between(&self.place(number)?, &self.place(number + 1)?),
        }
    }

    fn make(&self, number: usize) -> Result<RowSegment> {
        self.merge(number, &|_| ()).map_err(|halt| halt.into_error(&self.query))
    }

    fn locate(&self, error: Error) -> Error {
        error.in_array(self.query.array.path())
    }
}

/// The parts of a merge as searchable lists, for one thread.
struct FragmentLists<'a> {
    merge: &'a LazyMerge,
    /// For each open list, the key ranges of its tiles.
    tiles: Vec<OnceLock<&'a KeyRanges>>,
    sources: Vec<OnceLock<FragmentSource<'a>>>,
}

impl<'a> FragmentLists<'a> {
    fn new(merge: &'a LazyMerge) -> Self {
        let tiles = merge.parts.iter().map(|part| part.span.known_tiles().map_or_else(OnceLock::new, OnceLock::from));
        FragmentLists { merge, tiles: tiles.collect(), sources: merge.parts.iter().map(|_| OnceLock::new()).collect() }
    }

    fn source(&self, list: usize) -> Result<&FragmentSource<'a>> {
        if let Some(source) = self.sources[list].get() {
            return Ok(source);
        }
        let source = self.merge.query.source(self.merge.parts[list].fragment)?;
        Ok(self.sources[list].get_or_init(|| source))
    }
}

impl SortedLists for FragmentLists<'_> {
    fn count(&self) -> usize {
        self.merge.parts.len()
    }

    fn positions(&self, list: usize) -> Range<u64> {
        self.merge.parts[list].positions.clone()
    }

    fn ranges(&self, list: usize) -> &KeyRanges {
        self.tiles[list].get().copied().unwrap_or(self.merge.parts[list].span.whole())
    }

    fn start_of(&self, list: usize, range: u64) -> u64 {
        let MergePart { fragment, positions, .. } = &self.merge.parts[list];
        match self.tiles[list].get() {
            Some(_) => {
                let start = self.merge.query.cells[*fragment].positions_of(range).start;
                start.clamp(positions.start, positions.end)
            }
            None if range == 0 => positions.start,
            None => positions.end,
        }
    }

    fn range_at(&self, list: usize, position: u64) -> u64 {
        match self.tiles[list].get() {
            Some(_) => self.merge.query.cells[self.merge.parts[list].fragment].place_of(position),
            None => 0,
        }
    }

    fn open(&self, lists: Vec<usize>) -> Result<bool> {
        let closed: Vec<usize> = lists.into_iter().filter(|&list| self.tiles[list].get().is_none()).collect();
        let any = !closed.is_empty();
        let array = &self.merge.query.array;
        let opened = together(&*array.context().storage, array.path(), closed, |list| {
            let tiles = self.merge.parts[list].span.tiles(self.source(list)?)?;
            self.tiles[list].get_or_init(|| tiles);
            Ok(())
        });
        opened.into_iter().collect::<Result<()>>()?;
        Ok(any)
    }

    fn prepare(&self, bounds: &RankBounds) -> Result<()> {
        let windows = bounds.unsettled().map(|list| Ok((self.source(list)?, bounds.low[list]..bounds.high[list])));
        prefetch::coordinates(&windows.collect::<Result<Vec<_>>>()?, true)
    }

    fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>> {
        self.source(list)?.key_at(position)
    }
}

impl Halt {
    /// Returns the error of a merge that does not accept cells out of order.
    pub fn into_error(self, query: &Query) -> Error {
        match self {
            Halt::Failed(error) => error,
            Halt::Disorder(place) => Error::damaged(format!("cells in no order: {place}")).in_array(query.array.path()),
            Halt::Ties | Halt::Enough | Halt::Repetition { .. } => {
                Error::damaged("cells in no order").in_array(query.array.path())
            }
        }
    }
}

/// Returns the number of segments for a merge whose cells fill `wanted` segments. Above the number of threads, the
/// result is a multiple of it, so that no thread works alone at the end when all segments are made.
fn segments_of_merge(wanted: u64, threads: usize) -> u64 {
    let threads = threads.max(1) as u64;
    if wanted <= threads { wanted } else { wanted.checked_next_multiple_of(threads).unwrap_or(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_has_a_multiple_of_the_threads_as_segments() {
        for (wanted, threads, segments) in [
            (0, 3, 0),
            (3, 3, 3),
            (4, 3, 6),
            (5, 9, 5),
            (100, 3, 102),
            (u64::MAX, 1, u64::MAX),
            (u64::MAX, 2, u64::MAX),
        ] {
            assert_eq!(segments_of_merge(wanted, threads), segments, "{wanted} segments, {threads} threads");
        }
    }
}
