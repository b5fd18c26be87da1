//! The cells of one fragment in stored order, a batch at a time: their keys, and which of them count.
//!
//! Coordinates are proven here before anything is concluded from them: they lie in the domain and in the
//! box that the R-tree gives for their tile, and they ascend in the order of the array.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_format::scalar::Scalar;

use super::axis::Axis;
use super::cells::{FragmentCells, TileCells};
use super::files::{FixedFile, VarFile};
use super::key::{AxisColumn, KeyPlan};
use super::selection::Selection;
use super::visible::{CellFilter, CellVisibility};
use super::writers::{ORDERED_SINCE, writers_agree};
use crate::array::{Array, TileBoxes};
use crate::threads::cancellation;

/// A fragment, ready to be gone through.
pub struct FragmentSource<'a> {
    pub array: &'a Array,
    pub fragment: usize,
    pub cells: &'a FragmentCells,
    pub filter: CellFilter<'a>,
    pub selection: Option<&'a Selection>,
    /// Whether `cells` are exactly the selected ones.
    pub is_narrowed: bool,
    /// Of cells that have none of their own.
    pub time: u64,
    /// The order of the cells.
    pub plan: &'a KeyPlan,
    /// Whether its cells have times of their own, and several may have the same coordinates.
    pub has_versions: bool,
}

/// Some consecutive cells of one tile, as read.
#[derive(Debug, Default)]
pub struct CellBatch {
    /// Position of the first cell.
    pub position: u64,
    pub count: usize,
    /// Words of keys, cell after cell; empty where nothing is compared.
    pub keys: Vec<u64>,
    /// One per dimension: all of them where keys leave the order open, else those a selection looks at.
    pub columns: Vec<AxisColumn>,
    /// Which coordinates of each cell are -0.0, a bit per dimension; empty if none is.
    pub negative_zeros: Vec<u64>,
    pub visibility: CellVisibility,
}

impl CellBatch {
    /// The key of a cell.
    #[inline]
    pub fn key(&self, cell: usize, words: usize) -> &[u64] {
        &self.keys[cell * words..(cell + 1) * words]
    }

    /// Which coordinates of a cell are -0.0.
    #[inline]
    pub fn zeros(&self, cell: usize) -> u64 {
        self.negative_zeros.get(cell).copied().unwrap_or(0)
    }
}

/// The buffers that reading takes and batches need not keep.
#[derive(Debug, Default)]
pub struct StreamBuffers {
    columns: Vec<AxisColumn>,
    bytes: Vec<u8>,
}

/// Goes through some of a fragment's cells.
pub struct Stream<'a> {
    source: &'a FragmentSource<'a>,
    left: Range<u64>,
    batch_cells: u64,
    /// Whether keys are made. Without, only what decides about single cells is read.
    compares: bool,
    /// The last cell of the batch before.
    last: Option<(Vec<u64>, Vec<AxisColumn>)>,
    /// Where cells are out of order, if the writer may have sorted by other rules.
    disorder: Option<String>,
    has_loose_ties: bool,
}

impl<'a> Stream<'a> {
    /// The cells at these positions, at most `batch_cells` at once.
    pub fn new(source: &'a FragmentSource<'a>, positions: Range<u64>, batch_cells: u64, compares: bool) -> Self {
        Stream { source, left: positions, batch_cells, compares, last: None, disorder: None, has_loose_ties: false }
    }

    pub fn source(&self) -> &'a FragmentSource<'a> {
        self.source
    }

    /// Where the cells that were read are out of order, though nothing is damaged: some releases sorted otherwise.
    pub fn disorder(&self) -> Option<&str> {
        self.disorder.as_deref()
    }

    /// Whether cells that were read share their place in the order with cells of other coordinates, and are in no
    /// order among these: there are two zeros, and many coordinates at one place of the Hilbert curve.
    pub fn has_loose_ties(&self) -> bool {
        self.has_loose_ties
    }

    /// Reads the next batch; `false` at the end.
    ///
    /// # Errors
    /// Any damage in the cells.
    pub fn read(&mut self, batch: &mut CellBatch, buffers: &mut StreamBuffers) -> Result<bool> {
        cancellation::check()?;
        let source = self.source;
        let wanted = (self.left.end - self.left.start).min(self.batch_cells);
        if wanted == 0 {
            return Ok(false);
        }
        let cells = source.cells.at(self.left.start, wanted);
        let cells = cells.ok_or_else(|| Error::damaged("a cell past the end of the fragment"))?;
        self.read_cells(cells, batch, buffers)
            .in_fragment(source.array.fragment_name(source.fragment))
            .in_array(source.array.path())?;
        batch.position = self.left.start;
        batch.count = cells.count as usize;
        self.left.start += cells.count;
        Ok(true)
    }

    fn read_cells(&mut self, cells: TileCells, batch: &mut CellBatch, buffers: &mut StreamBuffers) -> Result<()> {
        let source = self.source;
        let plan = source.plan;
        source.filter.mark(cells, &mut batch.visibility)?;
        let keeps_columns = self.compares && !plan.is_exact();
        if keeps_columns {
            self.keep_last(batch);
            // The batch is left with buffers to be filled anew.
            std::mem::swap(&mut batch.columns, &mut buffers.columns);
        } else if self.compares {
            self.keep_last(batch);
        }
        batch.negative_zeros.clear();
        buffers.columns.resize_with(plan.axes.len(), AxisColumn::default);
        for number in 0..plan.axes.len() {
            let column = &mut buffers.columns[number];
            column.clear();
            if let Some(position) = source.known_position(number) {
                column.positions.resize(cells.count as usize, position);
            } else if self.compares || source.selects_by(number) {
                read_column(source, number, cells, column, &mut buffers.bytes, &mut batch.negative_zeros)
                    .map_err(|error| source.in_coordinates(error, number))?;
            }
        }
        if let Some(selection) = source.selection.filter(|_| !source.is_narrowed) {
            let present = batch.visibility.start_present(cells.count as usize);
            for (number, column) in buffers.columns.iter().enumerate() {
                if selection.restricts(number) {
                    selection.apply(number, column, present);
                }
            }
        }
        if self.compares {
            plan.keys(&buffers.columns, cells.count as usize, &mut batch.keys);
            self.has_loose_ties |= !batch.negative_zeros.is_empty();
            self.check_order(cells, &batch.keys, &buffers.columns)?;
        }
        if keeps_columns {
            std::mem::swap(&mut batch.columns, &mut buffers.columns);
        }
        Ok(())
    }

    /// Puts the last cell of a batch aside that is about to be replaced.
    fn keep_last(&mut self, batch: &CellBatch) {
        let words = self.source.plan.words();
        if let Some(start) = batch.keys.len().checked_sub(words) {
            let cell = start / words;
            let columns = batch.columns.iter().map(|column| column.only(cell)).collect();
            self.last = Some((batch.keys[start..].to_vec(), columns));
        }
    }

    /// Cells ascend. Where they do not, either the fragment is damaged or the writer compared otherwise.
    fn check_order(&mut self, cells: TileCells, keys: &[u64], columns: &[AxisColumn]) -> Result<()> {
        let (plan, words) = (self.source.plan, self.source.plan.words());
        let mut previous = self.last.as_ref().map(|(key, columns)| (key.as_slice(), columns.as_slice(), 0));
        for (cell, key) in keys.chunks_exact(words).enumerate() {
            if let Some((before, before_columns, before_cell)) = previous {
                let order = plan.compare(before, key).unwrap_or_else(|dimension| {
                    plan.compare_behind(dimension, (before_columns, before_cell), (columns, cell))
                });
                if order == Ordering::Greater && plan.is_one_place(before, key) {
                    self.has_loose_ties = true;
                } else if order == Ordering::Greater {
                    let place = format!("tile {}, cell {}", cells.tile, cells.first + cell as u64);
                    if !self.may_disagree(columns) {
                        return Err(Error::damaged(format!("{place}: coordinates out of order")));
                    }
                    let fragment = self.source.array.fragment_name(self.source.fragment);
                    self.disorder = Some(format!("fragment {fragment}, {place}"));
                    return Ok(());
                }
            }
            previous = Some((key, columns, cell));
        }
        Ok(())
    }

    /// Whether the writer may have sorted these cells by other rules.
    fn may_disagree(&self, columns: &[AxisColumn]) -> bool {
        let last = self.last.iter().flat_map(|(_, columns)| columns);
        let mut strings = columns.iter().chain(last);
        self.source.version() < ORDERED_SINCE || strings.any(|column| !column.bytes.is_ascii())
    }
}

impl FragmentSource<'_> {
    /// Says that an error is about this fragment.
    pub fn place(&self, error: Error) -> Error {
        error.in_fragment(self.array.fragment_name(self.fragment)).in_array(self.array.path())
    }

    /// Whether the order of the cells is proven damage where it is not that of `plan`: see [`Stream::disorder`].
    pub fn is_strictly_ordered(&self) -> bool {
        self.plan.is_exact() && self.version() >= ORDERED_SINCE
    }

    /// Whether the order of the cells can be relied upon before they have been looked at.
    pub fn is_surely_ordered(&self) -> bool {
        writers_agree(self.plan, self.version())
    }

    /// The fragment's format version.
    fn version(&self) -> u32 {
        self.array.outline(self.fragment).map_or(0, |outline| outline.facts.version)
    }

    /// Returns the position of all cells along a dimension, if it is known without reading them.
    fn known_position(&self, dimension: usize) -> Option<u64> {
        self.selection.filter(|_| self.is_narrowed)?.only_position(dimension)
    }

    /// Returns whether the coordinates along a dimension decide which cells are selected.
    fn selects_by(&self, dimension: usize) -> bool {
        !self.is_narrowed && self.selection.is_some_and(|selection| selection.restricts(dimension))
    }

    /// Returns the dimensions whose coordinates must be read to find rows. `compares`: cells of several fragments are
    /// compared.
    pub fn dimensions_to_read(&self, compares: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.plan.axes.len()).filter(move |&dimension| {
            self.known_position(dimension).is_none() && (compares || self.selects_by(dimension))
        })
    }

    /// The key of one cell, as far as keys go.
    ///
    /// # Errors
    /// Any damage in its coordinates.
    pub fn key_at(&self, position: u64) -> Result<Vec<u64>> {
        let cells = self.cells.at(position, 1).ok_or_else(|| Error::damaged("a cell past the end of the fragment"))?;
        let mut columns = Vec::new();
        columns.resize_with(self.plan.axes.len(), AxisColumn::default);
        for (number, column) in columns.iter_mut().enumerate() {
            read_column(self, number, cells, column, &mut Vec::new(), &mut Vec::new())
                .map_err(|error| self.in_coordinates(error, number))
                .in_fragment(self.array.fragment_name(self.fragment))
                .in_array(self.array.path())?;
        }
        let mut key = Vec::new();
        self.plan.keys(&columns, 1, &mut key);
        Ok(key)
    }

    /// Says that an error is about the coordinates along a dimension, where it does not say more.
    fn in_coordinates(&self, error: Error, dimension: usize) -> Error {
        let error = error.in_field(&self.plan.axes[dimension].name);
        match FixedFile::name_of_dimension(self.array, self.fragment, dimension) {
            Ok(file) => error.in_file(file),
            Err(_) => error,
        }
    }

    /// The boxes of the fragment's tiles.
    ///
    /// # Errors
    /// As [`ArrayFolder::mbrs`](crate::array::ArrayFolder::mbrs).
    pub fn mbrs(&self) -> Result<Arc<TileBoxes>> {
        self.array.folder().mbrs(self.array.number(self.fragment))
    }
}

/// Appends the coordinates of some cells along one dimension to a column, and proves that they lie in the domain and in the
/// box of their tile.
///
/// # Errors
/// Any damage in them.
pub(super) fn read_column(
    source: &FragmentSource<'_>,
    number: usize,
    cells: TileCells,
    column: &mut AxisColumn,
    bytes: &mut Vec<u8>,
    negative_zeros: &mut Vec<u64>,
) -> Result<()> {
    let (array, fragment, axis) = (source.array, source.fragment, &source.plan.axes[number]);
    let bounds = source.mbrs()?.range(cells.tile, number).in_file(FRAGMENT_METADATA)?;
    let outside = |cell: usize| {
        let place = format!("tile {}, cell {}", cells.tile, cells.first + cell as u64);
        Error::damaged(format!("{place}: a coordinate outside the tile's box in the R-tree"))
    };
    if axis.is_text() {
        VarFile::of_dimension(array, fragment, number)?.append(cells, column)?;
        let (Scalar::Text(low), Scalar::Text(high)) = (&bounds.low, &bounds.high) else { return Err(outside(0)) };
        // A writer that takes bytes for signed numbers looks for the bounds in the same way.
        if low.is_ascii() && high.is_ascii() && column.bytes.is_ascii() {
            let inside = |text: &[u8]| low.as_slice() <= text && text <= high.as_slice();
            if let Some(cell) = (0..cells.count as usize).find(|cell| !inside(column.text(*cell))) {
                return Err(outside(cell));
            }
        }
        return Ok(());
    }
    bytes.resize(cells.count as usize * axis.datatype.size(), 0);
    FixedFile::of_dimension(array, fragment, number)?.read(cells, bytes)?;
    axis.positions(bytes, &mut column.positions).map_err(|error| place_in_tile(error, cells))?;
    let (Some(low), Some(high)) = (axis.position(&bounds.low), axis.position(&bounds.high)) else {
        let reason = format!("the box of tile {} in the R-tree leaves the domain", cells.tile);
        return Err(Error::damaged(reason).in_file(FRAGMENT_METADATA));
    };
    let extremes = column.positions.iter().fold((u64::MAX, 0), |(least, most), at| (least.min(*at), most.max(*at)));
    if extremes.0 < low || extremes.1 > high {
        let cell = column.positions.iter().position(|at| *at < low || *at > high);
        return Err(outside(cell.unwrap_or(0)));
    }
    if axis.is_float() {
        find_negative_zeros(axis, number, bytes, negative_zeros);
    }
    Ok(())
}

/// Says which cell of which tile it is about, for an error that knows it only among those read together.
fn place_in_tile(error: Error, cells: TileCells) -> Error {
    let cell = error.place().and_then(|place| place.offset).unwrap_or(0);
    Error::damaged(format!("tile {}, cell {}: a coordinate outside the domain", cells.tile, cells.first + cell))
}

fn find_negative_zeros(axis: &Axis, number: usize, bytes: &[u8], negative_zeros: &mut Vec<u64>) {
    let size = axis.datatype.size();
    let is_negative_zero = |cell: &[u8]| cell.last() == Some(&0x80) && cell[..size - 1].iter().all(|byte| *byte == 0);
    if !bytes.chunks_exact(size).any(is_negative_zero) {
        return;
    }
    negative_zeros.resize(bytes.len() / size, 0);
    for (zeros, cell) in negative_zeros.iter_mut().zip(bytes.chunks_exact(size)) {
        *zeros |= u64::from(is_negative_zero(cell)) << (number % 64);
    }
}
