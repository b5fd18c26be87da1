//! Builds the map of a query's rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::{LogInterval, for_all};

use super::lazy_merge::LazyMerge;
use super::plan::{PlanStep, Planner};
use super::task::MergeTask;
use super::tournament::{Halt, Merged};
use crate::array::OpenedArray;
use crate::array::sparse::rows::row_map::{LazySegment, RowMap, SegmentSource};
use crate::array::sparse::rows::saved_rows::SavedRows;
use crate::array::sparse::rows::segments::RowSegment;
use crate::array::sparse::rows::store::SpillStore;
use crate::array::sparse::select::query::Query;
use crate::array::sparse::select::stream::FragmentSource;

/// Work on at least this many cells is logged.
const LOGGED_CELLS: u64 = 1 << 21;

/// Builds the map of all rows of a query. Segments that must read cells are made lazily, except if writers may have
/// sorted the cells by other rules: then the first cell out of order changes the order of all rows, so all segments are
/// made now.
///
/// Loads segments that an earlier mount saved, and saves segments for which cells had to be read.
///
/// # Errors
/// Any damage in the data that determines which cells are rows, as far as this reads it.
pub fn build(query: &Arc<Query>, saved: &Arc<SavedRows>) -> Result<RowMap> {
    let sources: Vec<FragmentSource<'_>> =
        (0..query.cells.len()).map(|fragment| query.source(fragment)).collect::<Result<_>>()?;
    let store = Arc::new(SpillStore::new(query.budget().row_map()));
    let planner = Planner { query, sources: &sources };
    let steps = planner.plan()?;
    let is_ordered = steps.iter().all(|step| match step {
        PlanStep::Merge(merge) => merge.parts.iter().all(|part| sources[part.fragment].is_strictly_ordered()),
        PlanStep::CellSlab { .. } | PlanStep::Task(_) => true,
    });
    if !is_ordered && let Some(segments) = saved.whole(&store) {
        return Ok(RowMap::new(segments, store));
    }
    let segments = segments(query, &store, steps)?;
    if is_ordered {
        let is_counted = segments.iter().all(PlannedSegment::is_counted);
        let counts = if is_counted { None } else { saved.segment_counts(segments.len()) }.unwrap_or_default();
        let lazy = segments.into_iter().enumerate().map(|(number, segment)| {
            let source: (Arc<dyn SegmentSource>, usize) = match segment {
                PlannedSegment::Slab { fragment, positions } => {
                    return Arc::new(LazySegment::Made(slab(fragment, &positions)));
                }
                PlannedSegment::Task(segment) => (segment, 0),
                PlannedSegment::Merge(merge, number) => (merge, number),
            };
            Arc::new(saved.lazy(&store, number, counts.get(number).copied(), source))
        });
        return Ok(RowMap::of(lazy.collect(), store));
    }
    let made = match make_all(&query.array, &segments) {
        Err(Halt::Disorder(place)) => {
            let array = query.array.path();
            log::warn!("{array}: cells are not in the order of the array ({place}); merging all as they come");
            let all = TaskSegment { query: query.clone(), store: store.clone(), task: planner.everything_at_once() };
            make_all(&query.array, &[PlannedSegment::Task(Arc::new(all))])
        }
        done => done,
    };
    let map = RowMap::new(made.map_err(|halt| halt.into_error(query))?, store);
    saved.indexes().note_merged(segments.iter().map(PlannedSegment::cells_to_read).fold(0, u64::saturating_add));
    saved.keep_whole(&map)?;
    Ok(map)
}

/// A segment that is planned, before anything of it is read.
enum PlannedSegment {
    Slab { fragment: u32, positions: Range<u64> },
    Task(Arc<TaskSegment>),
    Merge(Arc<LazyMerge>, usize),
}

/// A segment made by one merge task.
struct TaskSegment {
    query: Arc<Query>,
    store: Arc<SpillStore>,
    task: MergeTask,
}

fn segments(query: &Arc<Query>, store: &Arc<SpillStore>, steps: Vec<PlanStep>) -> Result<Vec<PlannedSegment>> {
    let mut segments = Vec::new();
    for step in steps {
        match step {
            PlanStep::CellSlab { fragment, positions } => {
                segments.push(PlannedSegment::Slab { fragment: fragment as u32, positions });
            }
            PlanStep::Task(task) => {
                let segment = TaskSegment { query: query.clone(), store: store.clone(), task };
                segments.push(PlannedSegment::Task(Arc::new(segment)));
            }
            PlanStep::Merge(planned) => {
                let merge = LazyMerge::new(query.clone(), store.clone(), planned)?;
                segments.extend((0..merge.segment_count()).map(|number| PlannedSegment::Merge(merge.clone(), number)));
            }
        }
    }
    Ok(segments)
}

/// Makes all segments now, on all cores.
fn make_all(array: &OpenedArray, segments: &[PlannedSegment]) -> Merged<Vec<RowSegment>> {
    let cells = segments.iter().map(PlannedSegment::cells_to_read).fold(0, u64::saturating_add);
    let progress = MergeProgress::new(array, cells);
    let made = for_all(segments.len(), |number| segments[number].make(&|cells| progress.add(cells)))?;
    progress.finish();
    Ok(made)
}

impl PlannedSegment {
    /// Returns whether its number of rows is known.
    fn is_counted(&self) -> bool {
        match self {
            PlannedSegment::Slab { .. } => true,
            PlannedSegment::Task(segment) => segment.known_rows(0).is_some(),
            PlannedSegment::Merge(merge, number) => merge.known_rows(*number).is_some(),
        }
    }

    fn cells_to_read(&self) -> u64 {
        match self {
            PlannedSegment::Slab { .. } => 0,
            PlannedSegment::Task(segment) => segment.task.cells(),
            PlannedSegment::Merge(merge, number) => merge.most_rows(*number),
        }
    }

    fn make(&self, progress: &dyn Fn(u64)) -> Merged<RowSegment> {
        match self {
            PlannedSegment::Slab { fragment, positions } => Ok(slab(*fragment, positions)),
            PlannedSegment::Task(segment) => segment.run(progress),
            PlannedSegment::Merge(merge, number) => merge.merge(*number, progress),
        }
    }
}

fn slab(fragment: u32, positions: &Range<u64>) -> RowSegment {
    RowSegment::CellSlab { fragment, position: positions.start, rows: positions.end - positions.start }
}

impl TaskSegment {
    fn run(&self, progress: &dyn Fn(u64)) -> Merged<RowSegment> {
        self.task.run(&self.query, &self.store, progress).map(|(segment, _)| segment)
    }
}

impl SegmentSource for TaskSegment {
    fn most_rows(&self, _number: usize) -> u64 {
        self.task.cells()
    }

    fn known_rows(&self, _number: usize) -> Option<u64> {
        None
    }

    fn count_rows(&self, _number: usize) -> Result<Option<u64>> {
        Ok(None)
    }

    fn make(&self, _number: usize) -> Result<RowSegment> {
        self.run(&|_| ()).map_err(|halt| halt.into_error(&self.query))
    }

    fn locate(&self, error: Error) -> Error {
        error.in_array(self.query.array.path())
    }
}

/// Logs the progress of a long merge.
struct MergeProgress<'a> {
    array: &'a OpenedArray,
    cells: u64,
    done: AtomicU64,
    start: Instant,
    lines: LogInterval,
}

impl<'a> MergeProgress<'a> {
    fn new(array: &'a OpenedArray, cells: u64) -> Self {
        if cells >= LOGGED_CELLS {
            log::info!("{}: finding the rows among {cells} cells that overlap or are filtered", array.path());
        }
        MergeProgress { array, cells, done: AtomicU64::new(0), start: Instant::now(), lines: LogInterval::new() }
    }

    fn add(&self, cells: u64) {
        let done = self.done.fetch_add(cells, Ordering::Relaxed) + cells;
        if self.lines.is_due() {
            let percent = done.saturating_mul(100) / self.cells.max(1);
            log::info!("{}: {percent} % of {} cells", self.array.path(), self.cells);
        }
    }

    fn finish(&self) {
        if self.cells >= LOGGED_CELLS {
            log::info!("{}: done in {:.1} s", self.array.path(), self.start.elapsed().as_secs_f64());
        }
    }
}
