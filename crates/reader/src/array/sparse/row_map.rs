//! Which cell each row is: the segments of all rows, of which those that take reading are made when one of their rows is
//! first wanted.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tilefs_format::error::{Error, Result};

use super::rows::{RowBuffers, Rows, Segment};
use super::store::Store;
use crate::array::single_flight::SingleFlight;
use crate::threads::{self, cancellation, for_all};

/// All rows of a view, or some consecutive ones. Memory: a few words for each segment, and what the [`Store`] is allowed
/// for those that were made.
pub struct RowMap {
    segments: Vec<Arc<LazySegment>>,
    /// The first row of each segment, and the end, as far as that is known.
    starts: RwLock<Vec<u64>>,
    store: Arc<Store>,
}

/// A segment of the map, made or to be made.
pub enum LazySegment {
    Made(Segment),
    ToMake {
        /// What makes it, and its number there.
        source: Arc<dyn SegmentSource>,
        number: usize,
        rows: OnceLock<u64>,
        made: SingleFlight<Segment>,
    },
}

/// Makes segments that follow each other.
pub trait SegmentSource: Send + Sync {
    /// As many rows as a segment can have.
    fn most_rows(&self, number: usize) -> u64;

    /// How many rows a segment has, if that can be said before anything of it is read.
    fn known_rows(&self, number: usize) -> Option<u64>;

    /// How many rows a segment has, where that can be found out without making it.
    ///
    /// # Errors
    /// Any damage in what tells.
    fn count_rows(&self, number: usize) -> Result<Option<u64>>;

    /// Makes a segment.
    ///
    /// # Errors
    /// Any damage in what decides which cells are its rows.
    fn make(&self, number: usize) -> Result<Segment>;

    /// Adds to an error where its segments are.
    fn locate(&self, error: Error) -> Error;
}

impl LazySegment {
    /// Segment `number` of a source.
    pub fn new(source: Arc<dyn SegmentSource>, number: usize) -> Self {
        let rows = source.known_rows(number).map_or_else(OnceLock::new, OnceLock::from);
        LazySegment::ToMake { source, number, rows, made: SingleFlight::new() }
    }

    /// As many rows as it can have.
    pub fn most_rows(&self) -> u64 {
        match self {
            LazySegment::Made(segment) => segment.rows(),
            LazySegment::ToMake { source, number, rows, .. } => {
                rows.get().copied().unwrap_or_else(|| source.most_rows(*number))
            }
        }
    }

    fn known_rows(&self) -> Option<u64> {
        match self {
            LazySegment::Made(segment) => Some(segment.rows()),
            LazySegment::ToMake { rows, .. } => rows.get().copied(),
        }
    }

    /// Finds out how many rows it has without making it; `false` where that cannot be.
    fn count_rows(&self) -> Result<bool> {
        let LazySegment::ToMake { source, number, rows, .. } = self else { return Ok(true) };
        if rows.get().is_none()
            && let Some(counted) = source.count_rows(*number)?
        {
            rows.get_or_init(|| counted);
        }
        Ok(rows.get().is_some())
    }

    fn is_made(&self) -> bool {
        match self {
            LazySegment::Made(_) => true,
            LazySegment::ToMake { made, .. } => made.get().is_some(),
        }
    }

    fn segment(&self) -> Result<&Segment> {
        match self {
            LazySegment::Made(segment) => Ok(segment),
            LazySegment::ToMake { source, number, rows, made } => made.get_or_make(|| {
                let segment = source.make(*number)?;
                let counted = *rows.get_or_init(|| segment.rows());
                if counted != segment.rows() {
                    let reason = format!("{} rows where the boxes of tiles leave room for {counted}", segment.rows());
                    return Err(source.locate(Error::damaged(reason)));
                }
                Ok(segment)
            }),
        }
    }
}

impl RowMap {
    /// The rows of segments that are there.
    pub fn new(segments: Vec<Segment>, store: Arc<Store>) -> Self {
        Self::of(segments.into_iter().map(LazySegment::Made).map(Arc::new).collect(), store)
    }

    /// The rows of these segments. What they make is kept in `store`.
    pub fn of(segments: Vec<Arc<LazySegment>>, store: Arc<Store>) -> Self {
        let mut starts = vec![0];
        let mut end = 0u64;
        for rows in segments.iter().map_while(|segment| segment.known_rows()) {
            end = end.saturating_add(rows);
            starts.push(end);
        }
        RowMap { segments, starts: RwLock::new(starts), store }
    }

    /// How many rows there are, if that is known by now.
    pub fn known_count(&self) -> Option<u64> {
        let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
        starts.get(self.segments.len()).copied()
    }

    /// How many rows each segment has, if that is known of all by now.
    pub fn known_counts(&self) -> Option<Vec<u64>> {
        self.segments.iter().map(|segment| segment.known_rows()).collect()
    }

    /// How many rows there are. Segments whose rows are not known before are made for it, on all cores.
    ///
    /// # Errors
    /// Any damage in what decides which cells are rows.
    pub fn count(&self) -> Result<u64> {
        self.count_telling(|_, _| ())
    }

    /// As [`RowMap::count`]; `tell` is told after each segment how many are done, and of how many.
    ///
    /// # Errors
    /// As [`RowMap::count`].
    pub fn count_telling(&self, tell: impl Fn(usize, usize) + Sync) -> Result<u64> {
        if let Some(known) = self.known_count() {
            return Ok(known);
        }
        let unknown: Vec<&Arc<LazySegment>> =
            self.segments.iter().filter(|segment| segment.known_rows().is_none()).collect();
        let done = AtomicUsize::new(0);
        for_all(unknown.len(), |number| {
            if !unknown[number].count_rows()? {
                unknown[number].segment()?;
            }
            tell(done.fetch_add(1, Ordering::Relaxed) + 1, unknown.len());
            Ok::<(), Error>(())
        })?;
        self.start_of(self.segments.len())
    }

    pub fn segments(&self) -> &[Arc<LazySegment>] {
        &self.segments
    }

    /// Where made segments are kept.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The cell slab that a segment is, if it is one. Nothing is read for it.
    pub fn slab(&self, number: usize) -> Option<&Segment> {
        match &**self.segments.get(number)? {
            LazySegment::Made(slab @ Segment::CellSlab { .. }) => Some(slab),
            _ => None,
        }
    }

    /// A segment, made now if it was not yet; where the one before it was made, as sequential readers do it, together with
    /// those that come next. The first rows wait for nothing but their own segment.
    ///
    /// # Errors
    /// Any damage in what decides which cells are rows.
    pub fn segment(&self, number: usize) -> Result<&Segment> {
        let segment = self.segments.get(number).ok_or_else(past_the_end)?;
        let is_next = number.checked_sub(1).is_some_and(|before| self.segments[before].is_made());
        if !segment.is_made() && is_next {
            let end = (number + threads::decoding()).min(self.segments.len());
            let wanted: Vec<usize> = (number..end).filter(|number| !self.segments[*number].is_made()).collect();
            // What is wrong with one is told to whoever wants it.
            for_all(wanted.len(), |at| {
                let _ = self.segments[wanted[at]].segment();
                Ok::<(), Error>(())
            })?;
        }
        segment.segment()
    }

    /// Bytes of memory that this takes, about.
    pub fn memory(&self) -> usize {
        self.store.sizes().0 + self.segments.len() * (size_of::<LazySegment>() + 2 * size_of::<u64>())
    }

    /// The rows of a segment.
    ///
    /// # Errors
    /// As [`RowMap::count`], for the segments up to this one.
    pub fn rows_of(&self, number: usize) -> Result<Range<u64>> {
        Ok(self.start_of(number)?..self.start_of(number + 1)?)
    }

    /// The segment that holds a row; past the end the last one.
    ///
    /// # Errors
    /// As [`RowMap::count`], for the segments up to this one.
    pub fn segment_of(&self, row: u64) -> Result<usize> {
        loop {
            let known = {
                let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
                if starts.len() > self.segments.len() || starts.last().is_some_and(|end| *end > row) {
                    return Ok(starts.partition_point(|start| *start <= row).saturating_sub(1));
                }
                starts.len()
            };
            self.start_of(known)?;
        }
    }

    /// The first row of a segment, or the end of the last.
    fn start_of(&self, number: usize) -> Result<u64> {
        loop {
            let known = {
                let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(start) = starts.get(number) {
                    return Ok(*start);
                }
                starts.len()
            };
            // Nobody waits for the lock while cells are read.
            let segment = known.checked_sub(1).and_then(|last| self.segments.get(last)).ok_or_else(past_the_end)?;
            if !segment.count_rows()? {
                self.segment(known - 1)?;
            }
            let mut starts = self.starts.write().unwrap_or_else(PoisonError::into_inner);
            while let Some(rows) = starts.len().checked_sub(1).and_then(|last| self.segments.get(last)?.known_rows()) {
                let end = starts.last().copied().unwrap_or(0).saturating_add(rows);
                starts.push(end);
            }
        }
    }

    /// Visits `count` rows from row `first`, in order, in pieces of one segment and block.
    ///
    /// # Errors
    /// Those of `visit`; any damage in what decides which cells are these rows; [`Error::Internal`] for rows past the
    /// end, [`Error::Io`] from the temporary file.
    pub fn for_each(&self, first: u64, count: u64, mut visit: impl FnMut(Rows<'_>) -> Result<()>) -> Result<()> {
        let end = first.checked_add(count).ok_or_else(past_the_end)?;
        if count == 0 {
            return Ok(());
        }
        let mut buffers = RowBuffers::default();
        let mut row = first;
        let mut number = self.segment_of(first)?;
        while row < end {
            cancellation::check()?;
            if number >= self.segments.len() {
                return Err(past_the_end());
            }
            let rows = self.rows_of(number)?;
            if rows.end > row {
                let to = end.min(rows.end);
                let own = row - rows.start..to - rows.start;
                self.segment(number)?.for_each(own, &self.store, &mut buffers, &mut visit)?;
                row = to;
            }
            number += 1;
        }
        Ok(())
    }
}

fn past_the_end() -> Error {
    Error::internal("rows past the last one")
}
