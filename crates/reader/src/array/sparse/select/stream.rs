//! The cells of one fragment in stored order, a batch at a time: their keys, and which of them are visible.
//!
//! A stream verifies coordinates before anything relies on them: they lie in the domain and in the box that the R-tree
//! gives for their tile, and they ascend in the array's order. Rounded coordinates lie around the box, in any order.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_format::scalar::Scalar;
use tilefs_threads::cancellation;

use super::cells::{FragmentCells, TileCells};
use super::files::{FixedFile, append_strings, string_tiles};
use super::selection::CoordinateSelection;
use super::visible::{CellFilter, CellVisibility};
use crate::array::order::axis::KeyAxis;
use crate::array::order::key::{AxisColumn, KeyPlan};
use crate::array::order::writers::{ORDERED_SINCE, writers_agree};
use crate::array::{OpenedArray, TileBoxes};

/// A fragment, ready for reading its cells.
pub struct FragmentSource<'a> {
    pub array: &'a OpenedArray,
    pub fragment: usize,
    pub cells: &'a FragmentCells,
    pub filter: CellFilter<'a>,
    pub selection: Option<&'a CoordinateSelection>,
    /// Whether `cells` are exactly the selected cells.
    pub is_narrowed: bool,
    /// The time of cells that have no time of their own.
    pub time: u64,
    /// The order of the cells.
    pub plan: &'a KeyPlan,
    /// Whether the cells have times of their own, and several cells may have the same coordinates.
    pub has_versions: bool,
}

/// Consecutive cells of one tile, as read.
#[derive(Debug, Default)]
pub struct CellBatch {
    /// The tile that holds them.
    pub tile: u64,
    /// The position of the first cell.
    pub position: u64,
    pub count: usize,
    /// The words of the keys, cell after cell; empty if cells are not compared.
    pub keys: Vec<u64>,
    /// One column per dimension; empty unless cells are compared and keys leave their order open.
    pub columns: Vec<AxisColumn>,
    /// Which coordinates of each cell are -0.0, a bit per dimension; empty if none is.
    pub negative_zeros: Vec<u64>,
    pub visibility: CellVisibility,
}

impl CellBatch {
    /// Returns the key of a cell.
    #[inline]
    pub fn key(&self, cell: usize, words: usize) -> &[u64] {
        &self.keys[cell * words..(cell + 1) * words]
    }

    /// Returns which coordinates of a cell are -0.0, a bit per dimension.
    #[inline]
    pub fn zeros(&self, cell: usize) -> u64 {
        self.negative_zeros.get(cell).copied().unwrap_or(0)
    }
}

/// Buffers for reading, which batches need not keep.
#[derive(Debug, Default)]
pub struct StreamBuffers {
    columns: Vec<AxisColumn>,
    bytes: Vec<u8>,
}

/// Reads some of a fragment's cells in batches.
pub struct KeyStream<'a> {
    source: &'a FragmentSource<'a>,
    left: Range<u64>,
    batch_cells: u64,
    /// Whether to compute keys. Otherwise only data that determines the visibility of single cells is read.
    compares: bool,
    /// The last cell of the previous batch.
    last: Option<(Vec<u64>, Vec<AxisColumn>)>,
    /// The place of cells that are out of order, if the writer may have sorted by other rules.
    disorder: Option<String>,
    has_loose_ties: bool,
}

impl<'a> KeyStream<'a> {
    /// Returns a stream of the cells at these positions, at most `batch_cells` at once.
    pub fn new(source: &'a FragmentSource<'a>, positions: Range<u64>, batch_cells: u64, compares: bool) -> Self {
        KeyStream { source, left: positions, batch_cells, compares, last: None, disorder: None, has_loose_ties: false }
    }

    pub fn source(&self) -> &'a FragmentSource<'a> {
        self.source
    }

    /// Returns the place at which the cells read so far are out of order without damage: some releases sorted by other
    /// rules.
    pub fn disorder(&self) -> Option<&str> {
        self.disorder.as_deref()
    }

    /// Returns whether some cells read so far share their place in the order with cells of other coordinates: the two
    /// zeros, or coordinates with the same place on the Hilbert curve. The order of such cells is not defined.
    pub fn has_loose_ties(&self) -> bool {
        self.has_loose_ties
    }

    /// Reads the next batch; returns `false` at the end.
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
        batch.tile = cells.tile;
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
            // Give the batch's old buffers to `buffers` for reuse.
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

    /// Remembers the last cell of a batch that is about to be overwritten.
    fn keep_last(&mut self, batch: &CellBatch) {
        let words = self.source.plan.words();
        if let Some(start) = batch.keys.len().checked_sub(words) {
            let cell = start / words;
            let columns = batch.columns.iter().map(|column| column.only(cell)).collect();
            self.last = Some((batch.keys[start..].to_vec(), columns));
        }
    }

    /// Checks that cells ascend. If they do not, either the fragment is damaged, or its writer compared differently.
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

    /// Returns whether the writer may have sorted these cells by other rules, or before they were rounded.
    fn may_disagree(&self, columns: &[AxisColumn]) -> bool {
        let last = self.last.iter().flat_map(|(_, columns)| columns);
        let mut strings = columns.iter().chain(last);
        self.source.plan.is_rounded()
            || self.source.version() < ORDERED_SINCE
            || strings.any(|column| !column.bytes.is_ascii())
    }
}

impl FragmentSource<'_> {
    /// Adds the fragment and the array to an error.
    pub fn place(&self, error: Error) -> Error {
        error.in_fragment(self.array.fragment_name(self.fragment)).in_array(self.array.path())
    }

    /// Returns whether an order other than that of `plan` is certainly damage: see [`KeyStream::disorder`].
    pub fn is_strictly_ordered(&self) -> bool {
        self.plan.is_exact() && !self.plan.is_rounded() && self.version() >= ORDERED_SINCE
    }

    /// Returns whether the order of the cells is reliable before they have been checked.
    pub fn is_surely_ordered(&self) -> bool {
        writers_agree(self.plan, self.version())
    }

    /// Returns the oldest format version by whose rules the cells may be sorted.
    fn version(&self) -> u32 {
        self.array.sorting_version(self.fragment).unwrap_or(0)
    }

    /// Returns the position that all cells have along a dimension, if it is known without reading the cells.
    fn known_position(&self, dimension: usize) -> Option<u64> {
        self.selection.filter(|_| self.is_narrowed)?.only_position(dimension)
    }

    /// Returns whether the coordinates along a dimension decide which cells are selected.
    fn selects_by(&self, dimension: usize) -> bool {
        !self.is_narrowed && self.selection.is_some_and(|selection| selection.restricts(dimension))
    }

    /// Returns the dimensions whose coordinates must be read to find rows. `compares` says whether cells of several
    /// fragments are compared.
    pub fn dimensions_to_read(&self, compares: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.plan.axes.len()).filter(move |&dimension| {
            self.known_position(dimension).is_none() && (compares || self.selects_by(dimension))
        })
    }

    /// Returns the key of one cell; long strings are cut off.
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

    /// Adds the field and the file of a dimension's coordinates to an error.
    fn in_coordinates(&self, error: Error, dimension: usize) -> Error {
        let error = error.in_field(&self.plan.axes[dimension].name);
        match FixedFile::name_of_dimension(self.array, self.fragment, dimension) {
            Ok(file) => error.in_file(file),
            Err(_) => error,
        }
    }

    /// Returns the boxes of the fragment's tiles.
    ///
    /// # Errors
    /// As [`ArrayFolder::mbrs`](crate::array::ArrayFolder::mbrs).
    pub fn mbrs(&self) -> Result<Arc<TileBoxes>> {
        self.array.folder().mbrs(self.array.number(self.fragment))
    }
}

/// Appends the coordinates of some cells along one dimension to a column, and checks that they lie in the domain and in
/// the box of their tile.
///
/// # Errors
/// Any damage in them.
pub(crate) fn read_column(
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
        append_strings(&array.context().fetcher, &string_tiles(array, fragment, number)?, cells, column)?;
        let (Scalar::Text(low), Scalar::Text(high)) = (&bounds.low, &bounds.high) else { return Err(outside(0)) };
        // A writer that compares bytes as signed numbers does so for the bounds, too.
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
    let possible = axis.possible(&bounds);
    let (Some(low), Some(high)) = (axis.position(&possible.low), axis.position(&possible.high)) else {
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

/// Adds the tile and the cell to an error that only has the cell's index among the cells read together.
fn place_in_tile(error: Error, cells: TileCells) -> Error {
    let cell = error.place().and_then(|place| place.offset).unwrap_or(0);
    Error::damaged(format!("tile {}, cell {}: a coordinate outside the domain", cells.tile, cells.first + cell))
}

fn find_negative_zeros(axis: &KeyAxis, number: usize, bytes: &[u8], negative_zeros: &mut Vec<u64>) {
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
