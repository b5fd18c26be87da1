//! The rows of a sparse array in one window of time.

use std::sync::{Arc, OnceLock};

use tilefs_base::entry_key::KeyWriter;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_format::fragment::Descent;
use tilefs_format::scalar::Range;
use tilefs_storage::together;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_threads::{LogInterval, cancellation};

use super::merge::build::build;
use super::rows::parts::{self, MapPart};
use super::rows::row_map::RowMap;
use super::rows::saved_rows::SavedRows;
use super::rows::segments::{RowSegment, VisitedRows};
use super::rows::store::SpillStore;
use super::select::cells::FragmentCells;
use super::select::conditions::RowCondition;
use super::select::deletes::visible_deletes;
use super::select::narrow::narrowed;
use super::select::query::{Portions, Query, RowCount};
use super::select::selection::{CoordinateRange, CoordinateSelection, Share};
use crate::array::OpenedArray;
use crate::array::order::key::{KeyOrder, KeyPlan};

/// The rows of a sparse array, in the same order for all columns. This is the order of libtiledb's unordered read: the
/// array's global order, with one row per coordinate; or if duplicates are allowed, fragment by fragment, oldest first,
/// as stored.
///
/// Reads only footers if these suffice. Otherwise the first use reads the R-trees of fragments whose non-empty domains
/// overlap; if there are very many, only of those that overlap with the rows that are read. For about a million rows at
/// a time, it reads the coordinates of tiles whose cells interleave, and the data that determines which cells are
/// visible in fragments with deletes or across an end of the window.
pub struct SparseView {
    query: Arc<Query>,
    /// The same query, narrowed to the selected cells.
    narrowed: SingleFlight<Arc<Query>>,
    /// The number of rows as far as it is known from the footers.
    count_by_footers: SingleFlight<RowCount>,
    /// The view with the same rows in stored order, if this view sorts them.
    stored: Option<Arc<SparseView>>,
    map: SingleFlight<Arc<RowMap>>,
    parts: SingleFlight<Vec<MapPart>>,
    /// Describes which rows of the array these are, and in which order; part of the keys of saved data.
    description: String,
    saved: OnceLock<Arc<SavedRows>>,
    /// The number of rows that an earlier mount has saved.
    saved_count: OnceLock<Option<u64>>,
}

/// The rows of a view fragment by fragment, each as stored.
pub struct Unmerged {
    /// The view of these rows.
    pub view: SparseView,
    /// The first row of each fragment that has cells.
    pub starts: Vec<u64>,
}

impl Recorded for SparseView {
    fn record(&self, recorder: &mut Recorder) {
        let Self {
            query,
            description,
            narrowed: _,
            count_by_footers: _,
            stored: _,
            map: _,
            parts: _,
            saved: _,
            saved_count: _,
        } = self;
        query.array.record(recorder);
        recorder.add::<Self>(description);
    }
}

impl SparseView {
    /// Reads the footers of all visible fragments, and the array's deletes.
    ///
    /// # Errors
    /// Any damage in these; [`Error::Unsupported`] for update commits and dense fragments.
    pub fn new(array: Arc<OpenedArray>) -> Result<Self> {
        Self::with_portions(array, Portions::default())
    }

    /// As [`SparseView::new`], with other limits for finding rows. The rows are the same.
    ///
    /// # Errors
    /// As [`SparseView::new`].
    pub fn with_portions(array: Arc<OpenedArray>, portions: Portions) -> Result<Self> {
        let schema = array.schema();
        let plan = KeyPlan::new(schema, KeyOrder::Global).in_array(array.path())?;
        array.read_outlines();
        let mut cells = Vec::with_capacity(array.fragment_count());
        for fragment in 0..array.fragment_count() {
            let outline = array.outline(fragment)?;
            let facts = &outline.facts;
            let own = match facts.dense {
                true => Err(Error::unsupported("a dense fragment in a sparse array")),
                false => FragmentCells::new(facts.sparse_tiles, outline.schema.capacity, facts.last_tile_cells),
            };
            cells.push(own.in_fragment(array.fragment_name(fragment)).in_array(array.path())?);
        }
        let deletes = visible_deletes(&array)?;
        let portions = Portions { segment_rows: portions.segment_rows.max(1), ..portions };
        let query = Query {
            array,
            plan,
            deletes,
            conditions: Vec::new(),
            selection: None,
            cells,
            is_narrowed: false,
            portions,
        };
        Ok(Self::with(Arc::new(query), None, String::new()))
    }

    fn with(query: Arc<Query>, stored: Option<Arc<SparseView>>, description: String) -> Self {
        let (count_by_footers, map, parts) = (SingleFlight::new(), SingleFlight::new(), SingleFlight::new());
        SparseView {
            query,
            narrowed: SingleFlight::new(),
            count_by_footers,
            stored,
            map,
            parts,
            description,
            saved: OnceLock::new(),
            saved_count: OnceLock::new(),
        }
    }

    /// Returns the array.
    pub fn array(&self) -> &Arc<OpenedArray> {
        &self.query.array
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn row_count(&self) -> Result<u64> {
        match (self.known_row_count()?, &self.stored) {
            (RowCount::Exactly(rows), _) => Ok(rows),
            (RowCount::AtMost(_), Some(stored)) => stored.row_count(),
            (RowCount::AtMost(_), None) => {
                let lines = LogInterval::new();
                let map = self.map()?;
                let rows = map.count_telling(|done, all| {
                    if lines.is_due() {
                        let percent = done * 100 / all.max(1);
                        log::info!("{}: counting rows, {percent} % done", self.query.array.path());
                    }
                })?;
                self.saved().keep_count(rows);
                if let Some(counts) = map.known_counts() {
                    self.saved().keep_segment_counts(&counts);
                }
                Ok(rows)
            }
        }
    }

    /// Returns the number of rows as far as it is known without reading a cell: from footers, or because the rows were
    /// counted before, possibly in an earlier mount.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn known_row_count(&self) -> Result<RowCount> {
        if let Some(stored) = &self.stored {
            return stored.known_row_count();
        }
        match self.map.get().and_then(|map| map.known_count()) {
            Some(rows) => Ok(RowCount::Exactly(rows)),
            None => match self.count_by_footers.get_or_make(|| self.query.count_by_footers())? {
                RowCount::AtMost(most) => Ok(match self.saved_count().filter(|rows| rows <= most) {
                    Some(rows) => RowCount::Exactly(rows),
                    None => RowCount::AtMost(*most),
                }),
                exact => Ok(*exact),
            },
        }
    }

    fn saved_count(&self) -> Option<u64> {
        *self.saved_count.get_or_init(|| self.saved().count())
    }

    /// Returns the data about these rows that is saved for later mounts.
    pub(super) fn saved(&self) -> &Arc<SavedRows> {
        self.saved.get_or_init(|| {
            let inputs = self.query.array.context().saved.inputs_of(("rows", self.query.most_rows()), self);
            Arc::new(SavedRows::new(&self.query, inputs))
        })
    }

    /// Returns whether the footers show that every cell of every fragment is a row.
    pub(super) fn shows_every_cell(&self) -> Result<bool> {
        match &self.stored {
            Some(stored) => stored.shows_every_cell(),
            None => Ok(self.count_by_footers.get_or_make(|| self.query.count_by_footers())?.exact().is_some()),
        }
    }

    /// Returns the rows whose coordinates lie within some ranges, in the same order. For each dimension there is a list
    /// of ranges, or `None` for all of it. Fragments and tiles whose boxes exclude such rows are skipped.
    ///
    /// # Errors
    /// [`Error::Usage`] for ranges that do not fit the dimensions; any damage in the R-trees.
    pub fn select(&self, ranges: &[Option<Vec<CoordinateRange>>]) -> Result<Self> {
        let Query { array, plan, .. } = &*self.query;
        let selection = CoordinateSelection::new(&plan.axes, ranges)?;
        let mut cells = Vec::with_capacity(self.query.cells.len());
        let mut touched = Vec::new();
        for (fragment, all) in self.query.cells.iter().enumerate() {
            if may_have_some(&self.query, &selection, fragment)? {
                touched.push(fragment);
            }
            cells.push(all.restricted(std::iter::empty())?);
        }
        // Concurrent, because each R-tree takes at least one request.
        let found = together(&*array.context().storage, array.path(), touched, |fragment| {
            let own = chosen_tiles(&self.query, &selection, fragment);
            own.in_fragment(array.fragment_name(fragment)).in_array(array.path()).map(|own| (fragment, own))
        });
        for chosen in found {
            let (fragment, own) = chosen?;
            cells[fragment] = own;
        }
        let query = Query {
            array: array.clone(),
            plan: KeyPlan::new(array.schema(), KeyOrder::Global)?,
            deletes: self.query.deletes.clone(),
            conditions: self.query.conditions.clone(),
            selection: Some(selection),
            cells,
            is_narrowed: false,
            portions: self.query.portions,
        };
        Ok(self.in_same_order(Self::with(Arc::new(query), None, format!("{} selected {ranges:?}", self.description))))
    }

    /// Returns the rows for which all `conditions` hold, in the same order. Which they are is found as they are read, for
    /// about a million cells at a time.
    ///
    /// # Errors
    /// [`Error::Usage`] for conditions that do not fit their attributes.
    pub fn matching(&self, conditions: Vec<RowCondition>) -> Result<Self> {
        let Query { array, selection, cells, deletes, is_narrowed, portions, .. } = &*self.query;
        conditions.iter().try_for_each(|condition| condition.check(array))?;
        let description = format!("{} where {conditions:?}", self.description);
        let query = Query {
            array: array.clone(),
            plan: KeyPlan::new(array.schema(), KeyOrder::Global)?,
            deletes: deletes.clone(),
            conditions: [self.query.conditions.clone(), conditions].concat(),
            selection: selection.clone(),
            cells: cells.clone(),
            is_narrowed: *is_narrowed,
            portions: *portions,
        };
        Ok(self.in_same_order(Self::with(Arc::new(query), None, description)))
    }

    /// Returns the rows of the tiles that `decide` does not skip, in the same order. `decide` gets the range of the
    /// dimension in the box of a fragment, then in the boxes of its R-tree, down to the tiles. A box contains all cells
    /// below it, and may be larger. Boxes without selected cells are left out.
    ///
    /// # Errors
    /// Those of `decide`; any damage in the R-trees.
    pub fn within_boxes(&self, dimension: usize, mut decide: impl FnMut(&Range) -> Result<Descent>) -> Result<Self> {
        let Query { array, plan, selection, .. } = &*self.query;
        let mut decide = |ranges: &[Range]| {
            cancellation::check()?;
            let is_selected = selection.as_ref().is_none_or(|s| s.share(&plan.axes, ranges.iter()) != Share::None);
            match ranges.get(dimension).filter(|_| is_selected) {
                Some(range) => decide(range),
                None => Ok(if is_selected { Descent::Enter } else { Descent::Skip }),
            }
        };
        let mut cells = Vec::with_capacity(self.query.cells.len());
        for (fragment, own) in self.query.cells.iter().enumerate() {
            let domain = array.outline(fragment)?.facts.covering_ranges().unwrap_or_default();
            let descent = if own.count() == 0 { Descent::Skip } else { decide(&domain)? };
            let mut tiles = Vec::new();
            if matches!(descent, Descent::Enter) {
                let boxes = array.folder().mbrs(array.number(fragment))?;
                let descended = boxes.descend(&mut decide, |some| tiles.push(some));
                descended.in_fragment(array.fragment_name(fragment)).in_array(array.path())?;
            }
            cells.push(match descent {
                Descent::Take => own.clone(),
                Descent::Skip | Descent::Enter => own.restricted(tiles.into_iter())?,
            });
        }
        // Which cells these are distinguishes saved data about them from that of other boxes.
        let mut key = KeyWriter::new();
        cells.iter().for_each(|own| key.part(format_args!("{own:?}")));
        let description = format!("{} within boxes {:?}", self.description, key.finish());
        let query = Query {
            array: array.clone(),
            plan: KeyPlan::new(array.schema(), KeyOrder::Global)?,
            deletes: self.query.deletes.clone(),
            conditions: self.query.conditions.clone(),
            selection: selection.clone(),
            cells,
            is_narrowed: false,
            portions: self.query.portions,
        };
        Ok(self.in_same_order(Self::with(Arc::new(query), None, description)))
    }

    /// Returns rows of this view in its order: those of `chosen`, which has them as stored.
    fn in_same_order(&self, chosen: Self) -> Self {
        if self.stored.is_some() { Arc::new(chosen).by_row_order() } else { chosen }
    }

    /// Returns the same rows sorted by coordinates, the first dimension being the most significant. The sort is stable.
    pub fn by_row_order(self: &Arc<Self>) -> Self {
        let stored = self.stored.clone().unwrap_or_else(|| self.clone());
        Self::with(self.query.clone(), Some(stored.clone()), format!("{} by row", stored.description))
    }

    /// Returns a view of the same rows fragment by fragment, each as stored: it merges nothing. Returns `None` if
    /// footers do not prove that every cell is a row.
    ///
    /// The fragments are sorted by the low ends of their boxes along the last dimension. With two dimensions, the rows
    /// of two fragments with the same first coordinate are thus in the order of the last coordinate: boxes that overlap
    /// along the first dimension are disjoint along the last.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn unmerged(&self) -> Result<Option<Unmerged>> {
        let query = &self.query;
        if !self.shows_every_cell()? {
            return Ok(None);
        }
        let with_cells = (0..query.cells.len()).filter(|&fragment| query.cells[fragment].count() > 0);
        let last = query.plan.axes.len().saturating_sub(1);
        let low = |fragment: usize| Ok((query.range_in_footer(fragment, last)?.map(|ends| ends.0), fragment));
        let mut fragments = with_cells.map(low).collect::<Result<Vec<_>>>()?;
        fragments.sort_unstable();
        let slab = |&(_, fragment): &(Option<u64>, usize)| RowSegment::CellSlab {
            fragment: fragment as u32,
            position: 0,
            rows: query.cells[fragment].count(),
        };
        let slabs: Vec<RowSegment> = fragments.iter().map(slab).collect();
        let starts = slabs.iter().scan(0u64, |start, slab| {
            let own = *start;
            *start = start.saturating_add(slab.rows());
            Some(own)
        });
        let starts = starts.collect();
        let view = Self::with(query.clone(), None, format!("{} unmerged", self.description));
        view.map.get_or_make(|| Ok(Arc::new(RowMap::new(slabs, Arc::new(SpillStore::new(0))))))?;
        Ok(Some(Unmerged { view, starts }))
    }

    /// Returns how many bands of rows the boxes of the fragments touch, as [`SparseView::band_of_rows`] divides the
    /// rows; counts a band once for each fragment. `None` if there are no bands, or if a fragment has no box.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn bands_of_fragments(&self) -> Result<Option<u64>> {
        let (Some(_), Some(axis)) = (self.band_of_rows(), self.query.plan.axes.first()) else { return Ok(None) };
        let mut bands = 0u64;
        for (fragment, cells) in self.query.cells.iter().enumerate().filter(|(_, cells)| cells.count() > 0) {
            let Some((low, high)) = self.query.range_in_footer(fragment, 0)? else { return Ok(None) };
            let own = axis.tile(high).saturating_sub(axis.tile(low)).saturating_add(1);
            bands = bands.saturating_add(own.min(cells.count()));
        }
        Ok(Some(bands))
    }

    /// Divides the rows into parts of at most `most` rows, or of one tile if that has more. Each part states the most
    /// rows that it can have, and that the parts before it can have. Reads no cell, except if cells may be out of
    /// order. The first call determines `most`.
    ///
    /// # Errors
    /// Any damage in the metadata that locate cells.
    pub fn parts(&self, most: u64) -> Result<&[MapPart]> {
        let parts = self.parts.get_or_make(|| Ok(parts::cut(self.map()?, &self.query()?.cells, most.max(1))))?;
        Ok(parts)
    }

    /// Returns the rows of one of the [`SparseView::parts`] as a view of their own.
    ///
    /// # Errors
    /// As [`SparseView::parts`].
    pub fn part(&self, part: &MapPart) -> Result<Self> {
        let cut = self.query.cut();
        let description = format!("{} part {cut} {} {}", self.description, part.before, part.most_rows);
        let view = Self::with(self.query()?.clone(), None, description);
        let map = parts::part_of(self.map()?, part);
        view.count_by_footers.get_or_make(|| Ok(RowCount::AtMost(part.most_rows)))?;
        view.map.get_or_make(|| Ok(Arc::new(map)))?;
        Ok(view)
    }

    /// Returns whether the stored rows are surely sorted by coordinates, the last dimension being the most significant.
    pub fn is_column_major(&self) -> bool {
        self.stored.is_none() && self.query.is_column_major()
    }

    /// Returns the dimensions by which the rows are surely sorted, the most significant first; none if they are not known
    /// to be sorted by all.
    pub fn sorted_by(&self) -> Vec<usize> {
        match self.stored {
            Some(_) => (0..self.query.plan.axes.len()).collect(),
            None => self.query.sorted_by(),
        }
    }

    /// Returns the extent of space tiles along the first of two dimensions, if the rows surely come space tile by space
    /// tile in row-major order, but are not sorted by coordinates as a whole. Within a band of this many first
    /// coordinates, rows with the same first coordinate are in the order of the last.
    pub fn band_of_rows(&self) -> Option<u64> {
        if self.stored.is_none() { self.query.band_of_rows() } else { None }
    }

    /// Returns the approximate memory that the view holds at present, in bytes.
    pub fn memory(&self) -> usize {
        let stored = self.stored.as_ref().map_or(0, |stored| stored.memory());
        let map = self.map.get().map_or(0, |map| map.memory());
        stored + map + self.query.cells.len() * size_of::<FragmentCells>()
    }

    fn build_map(&self) -> Result<RowMap> {
        let query = self.query()?;
        let map = build(query, &Arc::new(self.saved().of_query(query)))?;
        match (self.known_row_count()?.exact(), map.known_count()) {
            (Some(known), Some(found)) if known != found => {
                let reason = format!("{found} rows where the footers of its fragments, or --index-dir, say {known}");
                Err(Error::damaged(reason).in_array(self.query.array.path()))
            }
            _ => Ok(map),
        }
    }

    /// Returns the query whose cell positions the map of rows refers to.
    ///
    /// # Errors
    /// Any damage in the R-trees of selected cells; those of the storage.
    pub(in crate::array) fn query(&self) -> Result<&Arc<Query>> {
        match &self.stored {
            Some(stored) => stored.query(),
            None if self.query.selection.is_none() || self.query.is_narrowed => Ok(&self.query),
            None => {
                self.narrowed.get_or_make(|| Ok(narrowed(&self.query)?.map_or_else(|| self.query.clone(), Arc::new)))
            }
        }
    }

    /// Returns the fragment of a row, and the position of its cell there; `None` past the last row.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn stored_cell(&self, row: u64) -> Result<Option<(usize, u64)>> {
        let mut found = None;
        self.map()?.for_each(row, 1, |rows| {
            found = match rows {
                VisitedRows::CellSlab { fragment, position, .. } => Some((fragment, position)),
                VisitedRows::Scattered(addresses) => addresses.first().map(|cell| (cell.fragment(), cell.position())),
                VisitedRows::Interleaved(interleaved) => interleaved.last_cell(),
            };
            Ok(())
        })?;
        Ok(found.map(|(fragment, position)| (fragment as usize, position)))
    }

    /// Returns whether segments of the rows are merged when they are read, which compares coordinates. Does not sort:
    /// sorted rows are known before the first of them is read.
    pub(super) fn merges_when_read(&self) -> Result<bool> {
        let is_sorted = self.stored.is_some() && !self.query.is_row_major();
        Ok(!is_sorted && self.map()?.reads_cells())
    }

    /// Returns the map from rows to cells.
    pub(in crate::array) fn map(&self) -> Result<&Arc<RowMap>> {
        self.map.get_or_make(|| match &self.stored {
            None => self.build_map().map(Arc::new),
            Some(stored) if self.query.is_row_major() => stored.map().cloned(),
            Some(stored) => self.sort_map(stored).map(Arc::new),
        })
    }
}

/// Returns whether a fragment may have selected cells, according to its footer.
fn may_have_some(query: &Query, selection: &CoordinateSelection, fragment: usize) -> Result<bool> {
    if query.cells[fragment].count() == 0 {
        return Ok(false);
    }
    let outline = query.array.outline(fragment)?;
    let domain = outline.facts.covering_ranges().unwrap_or_default();
    Ok(selection.share(&query.plan.axes, domain.iter()) != Share::None)
}

/// Returns the cells of the tiles that a selection touches.
fn chosen_tiles(query: &Query, selection: &CoordinateSelection, fragment: usize) -> Result<FragmentCells> {
    let (array, axes) = (&query.array, &query.plan.axes);
    let mut touched = Vec::new();
    let descent = |share| match share {
        Share::None => Descent::Skip,
        Share::Some => Descent::Enter,
        Share::All => Descent::Take,
    };
    array.folder().mbrs(array.number(fragment))?.descend(
        |ranges| {
            cancellation::check()?;
            Ok(descent(selection.share(axes, ranges.iter())))
        },
        |tiles| touched.push(tiles),
    )?;
    query.cells[fragment].restricted(touched.into_iter())
}
