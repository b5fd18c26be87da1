//! Finds out which cells are the rows of an array, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::cells::FragmentCells;
use super::deletes::Delete;
use super::key::KeyPlan;
use super::plan::{Planner, Step};
use super::rows::{RowMap, Segment};
use super::selection::Selection;
use super::store::Store;
use super::stream::FragmentSource;
use super::task::{Halt, MergeTask, Merged};
use super::visible::CellFilter;
use crate::array::Array;
use crate::error::{Error, Locate, Result};
use crate::threads::for_all;

/// The part of the cache's budget that the map of rows may take beside it.
pub const MAP_SHARE: usize = 8;

/// Work of at least this many cells is worth a line in the log.
const LOGGED_CELLS: u64 = 1 << 21;

/// How often work in progress is told about.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// What rows come from.
pub struct Query {
    pub array: Arc<Array>,
    pub plan: KeyPlan,
    pub deletes: Vec<Delete>,
    pub selection: Option<Selection>,
    /// By fragment, as visible in the array: the cells of all tiles that can have rows.
    pub cells: Vec<FragmentCells>,
}

impl Query {
    /// The map of all rows.
    ///
    /// # Errors
    /// Any damage in what decides which cells are rows.
    pub fn build(&self) -> Result<RowMap> {
        let sources: Vec<FragmentSource<'_>> =
            (0..self.cells.len()).map(|fragment| self.source(fragment)).collect::<Result<_>>()?;
        let store = Arc::new(Store::new(self.budget() / MAP_SHARE));
        let planner = Planner { query: self, sources: &sources };
        let segments = match execute(&self.array, &sources, &planner.plan()?, &store) {
            Err(Halt::Disorder(place)) => {
                let array = self.array.path();
                log::warn!("{array}: cells are not in the order of the array ({place}); merging all as they come");
                execute(&self.array, &sources, &[planner.everything_at_once()?], &store)
            }
            done => done,
        };
        let segments = segments.map_err(|halt| match halt {
            Halt::Failed(error) => error,
            // Merging as they come accepts every order.
            Halt::Disorder(place) => Error::damaged(format!("cells in no order: {place}")).in_array(self.array.path()),
            Halt::Ties => Error::damaged("cells in no order").in_array(self.array.path()),
        })?;
        Ok(RowMap::new(segments, store))
    }

    /// The budget of the cache, which the map's is a share of.
    pub fn budget(&self) -> usize {
        self.array.context().budget()
    }

    /// Whether the rows are surely sorted by coordinates already, the first dimension being the most significant.
    pub fn is_row_major(&self) -> bool {
        self.plan.is_row_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    /// As [`Query::is_row_major`], the last dimension being the most significant.
    pub fn is_column_major(&self) -> bool {
        self.plan.is_column_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    fn is_surely_ordered(&self) -> bool {
        let is_ordered = |fragment: usize| self.source(fragment).is_ok_and(|source| source.is_surely_ordered());
        !self.array.schema().allows_duplicates && (0..self.cells.len()).all(is_ordered)
    }

    /// Whether all cells surely lie in one space tile along a dimension: the boxes of the fragments do.
    fn is_one_tile(&self, dimension: usize) -> bool {
        let tiles = |fragment: usize| {
            let outline = self.array.outline(fragment).ok()?;
            let range = outline.facts.non_empty_domain.as_deref()?.get(dimension)?;
            let axis = self.plan.axes.get(dimension)?;
            Some([axis.tile(axis.position(&range.low)?), axis.tile(axis.position(&range.high)?)])
        };
        let Some(ends) = (0..self.cells.len()).map(tiles).collect::<Option<Vec<_>>>() else { return false };
        let mut tiles = ends.iter().flatten();
        let first = tiles.next();
        tiles.all(|tile| Some(tile) == first)
    }

    fn source(&self, fragment: usize) -> Result<FragmentSource<'_>> {
        let array = &*self.array;
        let place = |error: Error| error.in_fragment(array.fragment_name(fragment)).in_array(array.path());
        let outline = array.outline(fragment)?;
        let entry = array.folder().fragment(array.number(fragment));
        let time = entry.map_or(0, |entry| entry.times.t1);
        let has_versions = !array.schema().allows_duplicates && outline.facts.has_timestamps;
        let filter = CellFilter::new(array, fragment, &self.deletes, has_versions).map_err(place)?;
        let (plan, selection) = (&self.plan, self.selection.as_ref());
        Ok(FragmentSource {
            array,
            fragment,
            cells: &self.cells[fragment],
            filter,
            selection,
            time,
            plan,
            has_versions,
        })
    }
}

/// Does all steps, on all cores.
fn execute(array: &Array, sources: &[FragmentSource<'_>], steps: &[Step], store: &Store) -> Merged<Vec<Segment>> {
    let merges = steps.iter().filter_map(|step| if let Step::Merge(task) = step { Some(task) } else { None });
    let merges: Vec<&MergeTask> = merges.collect();
    let progress = Progress::new(array, merges.iter().map(|task| task.cells()).fold(0, u64::saturating_add));
    let merged = for_all(merges.len(), |number| merges[number].run(sources, store, |cells| progress.add(cells)))?;
    progress.finish(store);
    let mut merged = merged.into_iter();
    let segments = steps.iter().filter_map(|step| match step {
        Step::CellSlab { fragment, positions } => Some(Segment::CellSlab {
            fragment: *fragment as u32,
            position: positions.start,
            rows: positions.end - positions.start,
        }),
        Step::Merge(_) => merged.next(),
    });
    Ok(segments.collect())
}

/// Tells the log how far the work is, where it is much.
struct Progress<'a> {
    array: &'a Array,
    cells: u64,
    done: AtomicU64,
    start: Instant,
    /// When the next line is due.
    next_line: Mutex<Instant>,
}

impl<'a> Progress<'a> {
    fn new(array: &'a Array, cells: u64) -> Self {
        let start = Instant::now();
        if cells >= LOGGED_CELLS {
            log::info!("{}: finding the rows among {cells} cells that overlap or are filtered", array.path());
        }
        Progress { array, cells, done: AtomicU64::new(0), start, next_line: Mutex::new(start + LOG_INTERVAL) }
    }

    fn add(&self, cells: u64) {
        let done = self.done.fetch_add(cells, Ordering::Relaxed) + cells;
        if let Ok(mut due) = self.next_line.try_lock()
            && Instant::now() >= *due
        {
            *due += LOG_INTERVAL;
            let percent = done.saturating_mul(100) / self.cells.max(1);
            log::info!("{}: {percent} % of {} cells", self.array.path(), self.cells);
        }
    }

    fn finish(&self, store: &Store) {
        if self.cells >= LOGGED_CELLS {
            let (memory, file) = store.sizes();
            let (memory, file, seconds) = (memory >> 10, file >> 10, self.start.elapsed().as_secs_f64());
            let path = self.array.path();
            log::info!("{path}: done in {seconds:.1} s; {memory} KiB in memory, {file} KiB in a temporary file");
        }
    }
}
