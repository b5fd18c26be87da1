//! A merge of tiles of several fragments, cut into segments that are made one by one, each when it is first wanted.
//!
//! Where boxes tell that every cell is a row, the segments are of equally many rows, and where one begins in each
//! fragment is found by searching. Else segments are cut at keys, and how many rows one has is known when it was made.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lru::LruCache;

use super::plan::{Coincidence, MergePart, PlannedMerge};
use super::query::Query;
use super::rank::{self, SortedLists};
use super::row_map::SegmentSource;
use super::rows::Segment;
use super::store::Store;
use super::stream::FragmentSource;
use super::task::{Halt, MergeKind, MergeTask, Merged};
use crate::error::{Error, Locate, Result};
use crate::threads;

/// Places between segments that are remembered, of a merge of few fragments.
const KEPT_PLACES: usize = 64;

/// Positions that all remembered places have together, about.
const KEPT_POSITIONS: usize = 1 << 18;

/// A merge and how it is cut. Memory: two keys for each tile, which the parts hold, a key for each segment, and
/// [`KEPT_POSITIONS`].
pub struct LazyMerge {
    query: Arc<Query>,
    store: Arc<Store>,
    parts: Vec<MergePart>,
    cut: Cut,
    /// By the number of the segment that begins there, where it begins in each part.
    places: Mutex<LruCache<usize, Arc<[u64]>>>,
    /// A hash of each place that was found, or 0: a place that is found again is the same.
    found: Vec<AtomicU64>,
}

enum Cut {
    /// Into segments of [`Query::segment_rows`], of which the last may be shorter. Every cell is a row.
    ByRows { rows: u64 },
    /// At keys, or beginnings of keys, which ascend.
    ByKeys { keys: Vec<Vec<u64>>, crossed: Crossed },
}

/// Segments in which cells of different fragments may have the same coordinates, or not all cells count.
enum Crossed {
    All,
    /// These, which ascend. In the others every cell is a row.
    Some(Vec<usize>),
}

impl LazyMerge {
    /// Cuts a merge. What its segments become is kept in `store`.
    ///
    /// # Errors
    /// Any damage in coordinates, where tiles are so large that these are looked at to find keys to cut at.
    pub fn new(query: Arc<Query>, store: Arc<Store>, planned: PlannedMerge) -> Result<Arc<Self>> {
        let PlannedMerge { parts, coincidence } = planned;
        let capacity = (KEPT_POSITIONS / parts.len().max(1)).clamp(2 * threads::decoding() + 2, KEPT_PLACES);
        let places = Mutex::new(LruCache::new(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN)));
        let cells = parts.iter().map(|part| part.positions.end - part.positions.start).fold(0, u64::saturating_add);
        let mut merge = LazyMerge { query, store, parts, cut: Cut::ByRows { rows: cells }, places, found: Vec::new() };
        // Cells at one place of a Hilbert curve, and the two zeros, are in no order that could be searched.
        let is_searchable = !merge.query.plan.is_hilbert() && !merge.query.plan.has_floats();
        if coincidence != Coincidence::Nowhere || !is_searchable {
            let keys = merge.keys_to_cut_at(cells)?;
            let crossed = match coincidence {
                Coincidence::Anywhere => Crossed::All,
                Coincidence::Nowhere => Crossed::Some(Vec::new()),
                Coincidence::Among(tiles) => Crossed::Some(merge.segments_of(&tiles, &keys)),
            };
            merge.cut = Cut::ByKeys { keys, crossed };
        }
        merge.found.resize_with(merge.segment_count() + 1, AtomicU64::default);
        Ok(Arc::new(merge))
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        match &self.cut {
            Cut::ByRows { rows } => usize::try_from(rows.div_ceil(self.query.segment_rows)).unwrap_or(usize::MAX),
            Cut::ByKeys { keys, .. } => keys.len() + 1,
        }
    }

    /// Makes a segment, telling `progress` about cells gone through.
    ///
    /// # Errors
    /// Any damage in its cells.
    pub fn merge(&self, number: usize, progress: impl Fn(u64) + Copy) -> Merged<Segment> {
        let (start, mut ends) = match &self.cut {
            Cut::ByRows { .. } => {
                let lists = Lists::new(self);
                let ends = match number + 1 == self.segment_count() {
                    true => self.parts.iter().map(|part| part.positions.end).collect(),
                    false => rank::bounds_at(&lists, self.rows_before(number + 1)).high,
                };
                (self.place(number)?, ends)
            }
            Cut::ByKeys { .. } => (self.place(number)?, self.place(number + 1)?.to_vec()),
        };
        let own: Vec<usize> = (0..self.parts.len()).filter(|&part| start[part] < ends[part]).collect();
        let parts = own.iter().map(|&part| (self.parts[part].fragment, start[part]..ends[part])).collect();
        let kind = match &self.cut {
            Cut::ByRows { .. } => MergeKind::Every { rows: self.rows_before(number + 1) - self.rows_before(number) },
            Cut::ByKeys { .. } => MergeKind::Newest,
        };
        let (segment, behind) = MergeTask { parts, kind }.run(&self.query, &self.store, progress)?;
        if let Some(behind) = behind {
            // The next segment begins where this one ends.
            ends.copy_from_slice(&start);
            own.iter().zip(behind).for_each(|(part, position)| ends[*part] = position);
            self.keep_place(number + 1, ends)?;
        }
        Ok(segment)
    }

    /// Rows before a segment that is cut by rows.
    fn rows_before(&self, number: usize) -> u64 {
        let Cut::ByRows { rows } = self.cut else { return 0 };
        (number as u64).saturating_mul(self.query.segment_rows).min(rows)
    }

    /// Where a segment begins in each part, and the one before ends.
    fn place(&self, number: usize) -> Result<Arc<[u64]>> {
        let known = self.places.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        if number == 0 {
            return Ok(self.parts.iter().map(|part| part.positions.start).collect());
        }
        let lists = Lists::new(self);
        let place = match &self.cut {
            _ if number >= self.segment_count() => self.parts.iter().map(|part| part.positions.end).collect(),
            Cut::ByRows { .. } => {
                rank::positions_at(&lists, self.rows_before(number)).in_array(self.query.array.path())?
            }
            Cut::ByKeys { keys, .. } => {
                let key = &keys[number - 1];
                let parts = (0..self.parts.len())
                    .map(|part| rank::first_not_before(&lists, part, lists.window(part, key), key));
                parts.collect::<Result<Vec<u64>>>()?
            }
        };
        self.keep_place(number, place)
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
        self.places.lock().unwrap_or_else(PoisonError::into_inner).put(number, place.clone());
        Ok(place)
    }

    /// Keys at which to cut the merge into segments of about [`Query::segment_rows`] cells.
    fn keys_to_cut_at(&self, cells: u64) -> Result<Vec<Vec<u64>>> {
        let wanted = usize::try_from(segments_of_merge(cells / self.query.segment_rows, threads::decoding()))
            .unwrap_or(usize::MAX);
        if wanted < 2 {
            return Ok(Vec::new());
        }
        let mut keys: Vec<&[u64]> = Vec::new();
        for part in &self.parts {
            let cells = &self.query.cells[part.fragment];
            let end = cells.place_of(part.positions.end.saturating_sub(1)) + 1;
            keys.extend((cells.place_of(part.positions.start)..end).filter_map(|place| part.key_ranges.low(place)));
        }
        keys.sort_unstable();
        keys.dedup();
        let mut seen = Vec::new();
        if keys.len() < wanted.saturating_mul(8) {
            // Few large tiles, or boxes that tell nothing: look into them.
            let lists = Lists::new(self);
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
        Ok(cuts)
    }

    /// The segments that some tiles, given by their part and place, may have cells in.
    fn segments_of(&self, tiles: &[(usize, u64)], keys: &[Vec<u64>]) -> Vec<usize> {
        let mut segments = Vec::new();
        for (part, place) in tiles {
            let key_ranges = &self.parts[*part].key_ranges;
            let Some((low, high)) = key_ranges.low(*place).zip(key_ranges.high(*place)) else { continue };
            let first = keys.partition_point(|key| key.as_slice() <= &low[..key.len().min(low.len())]);
            let last = keys.partition_point(|key| key.as_slice() <= &high[..key.len().min(high.len())]);
            segments.extend(first..=last);
        }
        segments.sort_unstable();
        segments.dedup();
        segments
    }
}

impl SegmentSource for LazyMerge {
    fn most_rows(&self, number: usize) -> u64 {
        let Cut::ByKeys { keys, .. } = &self.cut else {
            return self.rows_before(number + 1) - self.rows_before(number);
        };
        let lists = Lists::new(self);
        let ends = |part: usize| {
            let positions = &self.parts[part].positions;
            let low = number.checked_sub(1).and_then(|before| keys.get(before));
            let low = low.map_or(positions.start, |key| lists.window(part, key).0);
            (low, keys.get(number).map_or(positions.end, |key| lists.window(part, key).1))
        };
        (0..self.parts.len()).map(ends).fold(0, |sum, (low, high)| sum.saturating_add(high.saturating_sub(low)))
    }

    fn known_rows(&self, number: usize) -> Option<u64> {
        match &self.cut {
            Cut::ByRows { .. } => Some(self.rows_before(number + 1) - self.rows_before(number)),
            Cut::ByKeys { .. } => None,
        }
    }

    fn count_rows(&self, number: usize) -> Result<Option<u64>> {
        let Cut::ByKeys { crossed, .. } = &self.cut else { return Ok(self.known_rows(number)) };
        match crossed {
            Crossed::Some(crossed) if crossed.binary_search(&number).is_err() => {
                let (start, end) = (self.place(number)?, self.place(number + 1)?);
                let rows = start.iter().zip(end.iter()).map(|(start, end)| end.saturating_sub(*start));
                Ok(Some(rows.fold(0, u64::saturating_add)))
            }
            _ => Ok(None),
        }
    }

    fn make(&self, number: usize) -> Result<Segment> {
        self.merge(number, |_| ()).map_err(|halt| halt.into_error(&self.query))
    }
}

/// The parts of a merge as lists to be searched.
struct Lists<'a> {
    merge: &'a LazyMerge,
    sources: Vec<OnceLock<FragmentSource<'a>>>,
}

impl<'a> Lists<'a> {
    fn new(merge: &'a LazyMerge) -> Self {
        Lists { merge, sources: merge.parts.iter().map(|_| OnceLock::new()).collect() }
    }
}

impl SortedLists for Lists<'_> {
    fn count(&self) -> usize {
        self.merge.parts.len()
    }

    fn positions(&self, list: usize) -> Range<u64> {
        self.merge.parts[list].positions.clone()
    }

    fn window(&self, list: usize, key: &[u64]) -> (u64, u64) {
        let part = &self.merge.parts[list];
        let cells = &self.merge.query.cells[part.fragment];
        let within = |position: u64| position.clamp(part.positions.start, part.positions.end);
        let first = within(cells.positions_of(part.key_ranges.ending_before(key)).start);
        (first, within(cells.positions_of(part.key_ranges.beginning_before(key)).start).max(first))
    }

    fn known_key(&self, list: usize, positions: Range<u64>) -> Option<&[u64]> {
        let part = &self.merge.parts[list];
        let middle = positions.start + positions.end.saturating_sub(positions.start) / 2;
        part.key_ranges.low(self.merge.query.cells[part.fragment].place_of(middle))
    }

    fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>> {
        let source = match self.sources[list].get() {
            Some(source) => source,
            None => {
                let source = self.merge.query.source(self.merge.parts[list].fragment)?;
                self.sources[list].get_or_init(|| source)
            }
        };
        source.key_at(position)
    }
}

impl Halt {
    /// The error that a merge ends with which accepts no disorder.
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

/// Into how many segments a merge is cut that has cells for `wanted`: where there are more than threads, so many that none
/// works on alone at the end when all are made.
fn segments_of_merge(wanted: u64, threads: usize) -> u64 {
    let threads = threads.max(1) as u64;
    if wanted <= threads { wanted } else { wanted.checked_next_multiple_of(threads).unwrap_or(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_works_on_alone() {
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
