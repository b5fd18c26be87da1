//! Maps each row to its cell. The map is a list of segments. A segment for which cells must be read is made when one of
//! its rows is first read.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tilefs_base::error::{Error, Result};
use tilefs_threads;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_threads::{self as threads, cancellation, for_all};

use super::segments::{RowBuffers, RowSegment, VisitedRows};
use super::store::SpillStore;

/// All rows of a view, or some consecutive ones. Memory: a few words per segment, and the limit of the [`SpillStore`]
/// for the segments that were made.
pub struct RowMap {
    segments: Vec<Arc<LazySegment>>,
    /// The first row of each segment, and finally the end, as far as they are known.
    starts: RwLock<Vec<u64>>,
    store: Arc<SpillStore>,
}

/// A segment of the map, already made or not yet.
pub enum LazySegment {
    Made(RowSegment),
    ToMake {
        /// The source that makes the segment, and the segment's number in it.
        source: Arc<dyn SegmentSource>,
        number: usize,
        rows: OnceLock<u64>,
        made: SingleFlight<RowSegment>,
    },
}

/// Makes consecutive segments.
pub trait SegmentSource: Send + Sync {
    /// Returns the most rows that a segment can have.
    fn most_rows(&self, number: usize) -> u64;

    /// Returns the number of rows of a segment, if it is known before anything of the segment is read.
    fn known_rows(&self, number: usize) -> Option<u64>;

    /// Returns the number of rows of a segment, if it can be determined without making the segment.
    ///
    /// # Errors
    /// Any damage in the data that determines the number.
    fn count_rows(&self, number: usize) -> Result<Option<u64>>;

    /// Makes a segment.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are its rows.
    fn make(&self, number: usize) -> Result<RowSegment>;

    /// Adds the location of the segments to an error.
    fn locate(&self, error: Error) -> Error;
}

impl LazySegment {
    /// Returns segment `number` of a source, not made yet.
    pub fn new(source: Arc<dyn SegmentSource>, number: usize) -> Self {
        let rows = source.known_rows(number).map_or_else(OnceLock::new, OnceLock::from);
        LazySegment::ToMake { source, number, rows, made: SingleFlight::new() }
    }

    /// Returns the most rows that the segment can have.
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

    /// Determines the number of rows without making the segment; returns `false` if that is not possible.
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

    fn segment(&self) -> Result<&RowSegment> {
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
    /// Returns the map of segments that are already made.
    pub fn new(segments: Vec<RowSegment>, store: Arc<SpillStore>) -> Self {
        Self::of(segments.into_iter().map(LazySegment::Made).map(Arc::new).collect(), store)
    }

    /// Returns the map of these segments. `store` keeps the segments that are made.
    pub fn of(segments: Vec<Arc<LazySegment>>, store: Arc<SpillStore>) -> Self {
        let mut starts = vec![0];
        let mut end = 0u64;
        for rows in segments.iter().map_while(|segment| segment.known_rows()) {
            end = end.saturating_add(rows);
            starts.push(end);
        }
        RowMap { segments, starts: RwLock::new(starts), store }
    }

    /// Returns the number of rows, if it is known by now.
    pub fn known_count(&self) -> Option<u64> {
        let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
        starts.get(self.segments.len()).copied()
    }

    /// Returns the number of rows of each segment, if all are known by now.
    pub fn known_counts(&self) -> Option<Vec<u64>> {
        self.segments.iter().map(|segment| segment.known_rows()).collect()
    }

    /// Returns the number of rows. Makes the segments whose number of rows is unknown, on all cores.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn count(&self) -> Result<u64> {
        self.count_telling(|_, _| ())
    }

    /// As [`RowMap::count`]; calls `tell` after each segment with the number of finished segments and the number of all
    /// segments.
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

    /// Returns the store of the segments that were made.
    pub fn store(&self) -> &Arc<SpillStore> {
        &self.store
    }

    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Returns a segment if it is a cell slab. Reads nothing.
    pub fn slab(&self, number: usize) -> Option<&RowSegment> {
        match &**self.segments.get(number)? {
            LazySegment::Made(slab @ RowSegment::CellSlab { .. }) => Some(slab),
            _ => None,
        }
    }

    /// Returns a segment, which is made now if it was not yet. If the previous segment is made, as in a sequential
    /// read, the next segments are made concurrently with this one. The first rows wait only for their own segment.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn segment(&self, number: usize) -> Result<&RowSegment> {
        let segment = self.segments.get(number).ok_or_else(past_the_end)?;
        let is_next = number.checked_sub(1).is_some_and(|before| self.segments[before].is_made());
        if !segment.is_made() && is_next {
            let end = (number + threads::decoding()).min(self.segments.len());
            let wanted: Vec<usize> = (number..end).filter(|number| !self.segments[*number].is_made()).collect();
            // The reader of the other segment gets its error.
            for_all(wanted.len(), |at| {
                let _ = self.segments[wanted[at]].segment();
                Ok::<(), Error>(())
            })?;
        }
        segment.segment()
    }

    /// Returns whether there are segments that are made from cells, and not only from the metadata of fragments.
    pub fn reads_cells(&self) -> bool {
        self.segments.iter().any(|segment| matches!(**segment, LazySegment::ToMake { .. }))
    }

    /// Returns the approximate memory of the map in bytes.
    pub fn memory(&self) -> usize {
        self.store.sizes().0 + self.segments.len() * (size_of::<LazySegment>() + 2 * size_of::<u64>())
    }

    /// Returns the range of rows of a segment.
    ///
    /// # Errors
    /// As [`RowMap::count`], for the segments up to this one.
    pub fn rows_of(&self, number: usize) -> Result<Range<u64>> {
        Ok(self.start_of(number)?..self.start_of(number + 1)?)
    }

    /// Returns the segment that holds a row; the last one past the end.
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

    /// Returns the first row of a segment, or the end of the last.
    fn start_of(&self, number: usize) -> Result<u64> {
        loop {
            let known = {
                let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(start) = starts.get(number) {
                    return Ok(*start);
                }
                starts.len()
            };
            // The lock is not held while cells are read.
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

    /// Visits `count` rows from row `first`, in order. Each visit gets rows of one block of one segment.
    ///
    /// # Errors
    /// Those of `visit`; any damage in the data that determines which cells are these rows; [`Error::Internal`] for
    /// rows past the end, [`Error::Io`] from the temporary file.
    pub fn for_each(&self, first: u64, count: u64, mut visit: impl FnMut(VisitedRows<'_>) -> Result<()>) -> Result<()> {
        self.visit_rows(first, count, &mut visit)
    }

    fn visit_rows(&self, first: u64, count: u64, visit: &mut dyn FnMut(VisitedRows<'_>) -> Result<()>) -> Result<()> {
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
                self.segment(number)?.for_each(own, &self.store, &mut buffers, visit)?;
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
