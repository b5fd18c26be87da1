//! Variable-length values of a dense array in file order: all values end to end, and the offset of each.
//!
//! The offset of a value in the file depends on the lengths of all values before it. They are summed once, on first
//! use, from the offsets of the cells inside the box of all fragments; a checkpoint is kept every 4096 cells. Then
//! any byte is located from the checkpoints and the lengths of one block.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;
use tilefs_threads as threads;
use tilefs_threads::single_flight::SingleFlight;

use super::column::DenseColumn;
use super::embedding::Embedding;
use super::pieces::{Piece, PieceSource};
use super::selection::Selection;
use super::view::DenseView;
use crate::array::context::running_sums::RunningSums;
use crate::array::folder::outline::FieldFile;
use crate::array::tiles::offsets::OFFSET;
use crate::array::tiles::open_files::OpenFiles;
use crate::array::tiles::unit::TileUnit;
use crate::array::tiles::value_plan::{ValueCopy, ValuePlan, repeat};
use crate::array::tiles::var_tiles::{OffsetReader, VarTiles};
use crate::read::{Batches, Decoding, Fetcher};

/// The number of cells between checkpoints.
const BLOCK: u64 = 4096;

/// A variable-length attribute of a dense array. Memory: 8 bytes for every 4096 cells of the box that contains all
/// fragments, once a length was requested.
pub struct DenseVarColumn {
    /// All cells of the file.
    outer: Arc<Selection>,
    /// The inner cells: those that fragments can have. Unless stated otherwise, cell numbers count only inner cells.
    embedding: Embedding,
    /// The column of the offsets of inner cells.
    cells: DenseColumn,
    view: Arc<DenseView>,
    attribute: usize,
    fill: Vec<u8>,
    files: OpenFiles<Arc<VarTiles>>,
    /// The sum of the lengths before each block, and of all lengths.
    checkpoints: SingleFlight<RunningSums>,
}

/// One block of cells.
struct ValueBlock {
    values: BlockValues,
    /// The offset of each value in the file.
    starts: Vec<u64>,
}

/// The lengths and locations of values, from the offsets of some cells.
struct BlockValues {
    /// The length of each value.
    lengths: Vec<u64>,
    /// The offset of each value in its tile; meaningless for a fill value.
    places: Vec<u64>,
    /// The sources of the cells.
    pieces: Vec<Piece>,
}

/// The plan of a read of offsets: the units that contain the offsets, and the pieces of the cells. The reader of a
/// piece is `None` for fill values.
struct OffsetPlan {
    units: Vec<TileUnit>,
    pieces: Vec<(Piece, Option<OffsetReader>)>,
}

impl Recorded for DenseVarColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { outer, embedding: _, cells, view: _, attribute: _, fill, files: _, checkpoints: _ } = self;
        cells.record(recorder);
        recorder.add::<Self>((outer, fill));
    }
}

/// The inner cells of a column with their values, whichever cells without values are around them.
struct InnerValues<'c>(&'c DenseVarColumn);

impl Recorded for InnerValues<'_> {
    fn record(&self, recorder: &mut Recorder) {
        let Self(DenseVarColumn {
            cells,
            fill,
            outer: _,
            embedding: _,
            view: _,
            attribute: _,
            files: _,
            checkpoints: _,
        }) = self;
        cells.record(recorder);
        recorder.add::<Self>(fill);
    }
}

impl InnerValues<'_> {
    /// Adds up the lengths of the values of all blocks.
    fn checkpoints(&self) -> Result<RunningSums> {
        let Self(column) = self;
        let blocks = column.blocks()?;
        let sum_of = |block| Ok(column.values_of_block(block as u64)?.lengths.iter().sum::<u64>());
        let lengths: Vec<u64> = threads::for_all(blocks, sum_of)?;
        RunningSums::of_lengths(lengths).ok_or_else(|| Error::damaged("values of more than 2^64 bytes"))
    }
}

impl DenseVarColumn {
    /// Creates the column of `attribute` (by its number in the array's schema) over a selection. `fill` is the value of
    /// a cell that no fragment has.
    ///
    /// # Errors
    /// If a fragment's schema cannot be read.
    pub fn new(view: Arc<DenseView>, selection: Arc<Selection>, attribute: usize, fill: Vec<u8>) -> Result<Self> {
        let embedding = Embedding::new(&selection, view.non_empty_box().as_ref())?;
        let inner = Arc::new(embedding.inner().clone());
        let cells = DenseColumn::new(view.clone(), inner, attribute, FieldFile::Data, vec![0; 8])?;
        let outer = selection;
        Ok(DenseVarColumn {
            outer,
            embedding,
            cells,
            view,
            attribute,
            fill,
            files: OpenFiles::new(),
            checkpoints: SingleFlight::new(),
        })
    }

    /// Returns the number of cells of the file.
    pub fn cells(&self) -> u64 {
        self.outer.cells()
    }

    /// Returns the bytes of all values together. The first call reads all offsets.
    ///
    /// # Errors
    /// Any damage in the offsets of any cell.
    pub fn byte_count(&self) -> Result<u64> {
        let checkpoints = self.checkpoints()?;
        self.start_of_block(checkpoints, checkpoints.items() as u64)
    }

    /// Reads the byte offsets of the values of file cells from `first` on. The offset after the last cell is the total.
    ///
    /// # Errors
    /// Any damage in the required offsets.
    pub fn read_offsets<'o>(&self, first: u64, out: impl Into<Output<'o, u64>>) -> Result<()> {
        self.read_offsets_into(first, out.into())
    }

    fn read_offsets_into(&self, first: u64, mut out: Output<'_, u64>) -> Result<()> {
        let (mut inner, count) = (self.embedding.inner_before(first), out.len());
        let Some(out) = out.wanted() else {
            let end = self.embedding.inner_before(first.saturating_add(count));
            let plan = self.plan_offsets(inner, end - inner)?;
            return self.batches(&plan.units).fetch_all().in_array(self.view.array().path());
        };
        if out.is_empty() {
            return Ok(());
        }
        let checkpoints = self.checkpoints()?;
        let fill = self.fill.len() as u64;
        let mut block = self.block(checkpoints, inner / BLOCK)?;
        let (mut cell, mut rest) = (first, out);
        while !rest.is_empty() {
            // The next inner cells that are consecutive in the file, and the fill values between `cell` and them.
            let (next, run) = self.embedding.outer_cell(inner);
            let starts = block.starts.get((inner % BLOCK) as usize..).unwrap_or_default();
            let next_start = match starts.first() {
                Some(start) => *start,
                None => self.byte_count()?,
            };
            let outside = (next - cell).min(rest.len() as u64) as usize;
            let (fills, behind) = rest.split_at_mut(outside);
            for (offset, distance) in fills.iter_mut().zip((1..=next - cell).rev()) {
                *offset = next_start - distance * fill;
            }
            if run == 0 {
                // The end of the file.
                behind.fill(next_start);
                return Ok(());
            }
            let inside = behind.len().min(run as usize).min(starts.len());
            let (values, behind) = behind.split_at_mut(inside);
            values.copy_from_slice(&starts[..inside]);
            (cell, inner, rest) = (next + inside as u64, inner + inside as u64, behind);
            if inner.is_multiple_of(BLOCK) && !rest.is_empty() {
                block = self.block(checkpoints, inner / BLOCK)?;
            }
        }
        Ok(())
    }

    /// Reads bytes of the values from byte `start` of all values on.
    ///
    /// # Errors
    /// Any damage in the required cells.
    pub fn read_values<'o>(&self, start: u64, out: impl Into<Output<'o>>) -> Result<()> {
        self.read_values_into(start, out.into())
    }

    fn read_values_into(&self, start: u64, mut out: Output<'_>) -> Result<()> {
        let checkpoints = self.checkpoints()?;
        let window = start..start.saturating_add(out.len());
        let blocks = checkpoints.items() as u64;
        let first_start = self.start_of_block(checkpoints, 0)?;
        if let Some(out) = out.wanted() {
            self.fill_gap(0..first_start, &window, out);
        }
        for block in self.block_of_byte(checkpoints, start)?..blocks {
            if self.start_of_block(checkpoints, block)? >= window.end {
                break;
            }
            self.read_block(checkpoints, block, &window, &mut out)?;
        }
        Ok(())
    }

    /// Plans a read of the offsets of `count` cells from cell `first`.
    fn plan_offsets(&self, first: u64, count: u64) -> Result<OffsetPlan> {
        let mut plan = OffsetPlan { units: Vec::new(), pieces: Vec::new() };
        self.cells.for_each_piece(first, count, |piece| {
            let mut add = |fragment, tile| {
                let (tiles, cells) = (self.var_tiles(fragment)?, self.view.cells_in_tile(fragment, tile)?);
                let (own, before) = (piece.tile_cells(), plan.units.len());
                tiles.offset_units(tile, cells, own.start, own.end - own.start, &mut plan.units)?;
                // There may be many units between the lines of a piece.
                if plan.units.len() > before + 2 {
                    self.cells.drop_untouched(&piece, 2 * OFFSET, before, &mut plan.units)?;
                }
                tiles.offset_reader(tile, cells, before..plan.units.len())
            };
            let reader = match piece.source {
                PieceSource::Tile { fragment, tile } => Some(self.place(fragment, add(fragment, tile))?),
                PieceSource::Fill => None,
            };
            plan.pieces.push((piece, reader));
            Ok(())
        })?;
        Ok(plan)
    }

    /// Returns the last block that begins at or before a byte, or the first block.
    fn block_of_byte(&self, checkpoints: &RunningSums, byte: u64) -> Result<u64> {
        let blocks = 1..checkpoints.items() as u64;
        Ok(partition_point(blocks, |block| Ok(self.start_of_block(checkpoints, block)? <= byte))? - 1)
    }

    /// Writes the part of `window` that lies in a block and in the gaps after its cells to `out`.
    fn read_block(
        &self,
        checkpoints: &RunningSums,
        number: u64,
        window: &Range<u64>,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let block = self.block(checkpoints, number)?;
        let end = self.start_of_block(checkpoints, number + 1)?;
        let (plan, mut fills) = self.plan_values(&block, window)?;
        let Some(out) = out.wanted() else { return plan.fetch(self.fetcher()) };
        let next_starts = block.starts.iter().skip(1).copied().chain([end]);
        let values = block.starts.iter().zip(&block.values.lengths).zip(next_starts);
        fills.extend(values.map(|((start, length), next)| start + length..next));
        fills.into_iter().for_each(|fill| self.fill_gap(fill, window, out));
        plan.read(self.fetcher(), out, |fragment, result| self.place(fragment, result))
    }

    /// Plans a read of the values of a block of cells in a window of the file. Returns the copies, and the ranges of
    /// the file that hold fill values instead.
    fn plan_values(&self, block: &ValueBlock, window: &Range<u64>) -> Result<(ValuePlan, Vec<Range<u64>>)> {
        let (mut plan, mut fills, mut copies) = (ValuePlan::default(), Vec::new(), Vec::new());
        let BlockValues { lengths, places, pieces } = &block.values;
        for piece in pieces {
            copies.clear();
            piece.for_each_line(|_, to, count, _, out_stride| {
                for number in 0..count {
                    let cell = (to + number * out_stride) as usize;
                    let value = block.starts[cell]..block.starts[cell] + lengths[cell];
                    match (piece.source, overlap(&value, window)) {
                        (PieceSource::Fill, Some(_)) => fills.push(value),
                        (PieceSource::Tile { .. }, Some((skip, part))) => {
                            copies.push(ValueCopy { from: places[cell] + skip, to: part.start, length: part.len() });
                        }
                        (_, None) => {}
                    }
                }
                Ok(())
            })?;
            let PieceSource::Tile { fragment, tile } = piece.source else { continue };
            let cells = self.view.cells_in_tile(fragment, tile)?;
            let tiles = self.var_tiles(fragment)?;
            self.place(fragment, plan.add(fragment, &tiles, tile, cells, copies.drain(..)))?;
        }
        Ok((plan, fills))
    }

    fn fetcher(&self) -> &Fetcher {
        &self.view.array().context().fetcher
    }

    fn batches<'u>(&'u self, units: &'u [TileUnit]) -> Batches<'u, TileUnit> {
        Batches::new(self.fetcher(), units, Decoding::OnThisThread)
    }

    /// Writes fill values, one after the other from the start of `gap`, to the part of the gap in `window`.
    fn fill_gap(&self, gap: Range<u64>, window: &Range<u64>, out: &mut [u8]) {
        if let Some((skipped, part)) = overlap(&gap, window) {
            repeat(&self.fill, skipped, &mut out[part]);
        }
    }

    fn checkpoints(&self) -> Result<&RunningSums> {
        self.checkpoints.get_or_retry(|| self.make_checkpoints())
    }

    /// Returns the number of blocks of inner cells.
    fn blocks(&self) -> Result<usize> {
        usize::try_from(self.cells.cells().div_ceil(BLOCK)).map_err(|_| Error::unsupported("more cells than memory"))
    }

    fn make_checkpoints(&self) -> Result<RunningSums> {
        let blocks = self.blocks()?;
        let saved = &self.view.array().context().saved;
        let decode = |bytes: &[u8]| RunningSums::decode(bytes, blocks);
        let made = ("values", self.cells.cells());
        saved.get_or_make_of(made, &InnerValues(self), decode, RunningSums::encode, InnerValues::checkpoints)
    }

    /// Returns the offset in the file of the first value of a block; after the last block, the end of the file.
    fn start_of_block(&self, checkpoints: &RunningSums, block: u64) -> Result<u64> {
        let past = || Error::internal("past the last value");
        let lengths = checkpoints.start(usize::try_from(block).unwrap_or(usize::MAX)).ok_or_else(past)?;
        let inner = block.saturating_mul(BLOCK).min(self.cells.cells());
        let outside = self.embedding.outer_cell(inner).0 - inner;
        outside
            .checked_mul(self.fill.len() as u64)
            .and_then(|fill| fill.checked_add(lengths))
            .ok_or_else(|| Error::damaged("values of more than 2^64 bytes"))
    }

    /// Returns a block of cells, which is empty after the last one.
    fn block(&self, checkpoints: &RunningSums, number: u64) -> Result<ValueBlock> {
        let values = self.values_of_block(number)?;
        let mut starts = Vec::with_capacity(values.lengths.len());
        let fill = self.fill.len() as u64;
        let mut before = checkpoints.start(number as usize).unwrap_or(0);
        let (mut outer, mut run) = (0, 0);
        for (inner, length) in (number * BLOCK..).zip(&values.lengths) {
            if run == 0 {
                (outer, run) = self.embedding.outer_cell(inner);
            }
            starts.push((outer - inner) * fill + before);
            before += length;
            outer += 1;
            run -= 1;
        }
        Ok(ValueBlock { values, starts })
    }

    /// Returns the lengths and locations of the values of one block.
    fn values_of_block(&self, block: u64) -> Result<BlockValues> {
        let first = block * BLOCK;
        let count = BLOCK.min(self.cells.cells().saturating_sub(first));
        let plan = self.plan_offsets(first, count)?;
        let (mut batches, mut range) = (self.batches(&plan.units), LineOfValues::default());
        let (mut lengths, mut places) = (vec![self.fill.len() as u64; count as usize], vec![0; count as usize]);
        let mut pieces = Vec::with_capacity(plan.pieces.len());
        for (piece, reader) in plan.pieces {
            if let (PieceSource::Tile { fragment, .. }, Some(mut reader)) = (piece.source, reader) {
                let read = piece.for_each_line(|from, to, count, stride, out_stride| {
                    range.read(&mut reader, &mut batches, from, count, stride)?;
                    for number in 0..count {
                        let cell = (to + number * out_stride) as usize;
                        (lengths[cell], places[cell]) = (range.length(number), range.start(number));
                    }
                    Ok(())
                });
                self.place(fragment, read)?;
            }
            pieces.push(piece);
        }
        Ok(BlockValues { lengths, places, pieces })
    }

    /// Adds the location of a fragment to an error.
    fn place<T>(&self, fragment: usize, result: Result<T>) -> Result<T> {
        let array = self.view.array();
        result.in_fragment(array.fragment_name(fragment)).in_array(array.path())
    }

    fn var_tiles(&self, fragment: usize) -> Result<Arc<VarTiles>> {
        let open = || self.view.array().attribute_var_tiles(fragment, self.attribute).map(Arc::new);
        self.files.get_or_open(fragment, open)
    }
}

/// Returns the part of `value` in `window`: the number of its bytes to skip, and its range in the window.
fn overlap(value: &Range<u64>, window: &Range<u64>) -> Option<(u64, Range<usize>)> {
    let (from, to) = (value.start.max(window.start), value.end.min(window.end));
    (from < to).then(|| (from - value.start, (from - window.start) as usize..(to - window.start) as usize))
}

/// The ranges of the values of one line of cells in their tile.
#[derive(Default)]
struct LineOfValues {
    /// The start and the end of each cell; for consecutive cells, the end is the start of the next cell.
    ends: Vec<u64>,
    neighbours: bool,
}

impl LineOfValues {
    /// Reads the ranges of `count` cells from cell `from`, each `stride` after the previous one.
    fn read(
        &mut self,
        reader: &mut OffsetReader,
        batches: &mut Batches<'_, TileUnit>,
        from: u64,
        count: u64,
        stride: i64,
    ) -> Result<()> {
        self.neighbours = stride == 1;
        self.ends.clear();
        if self.neighbours {
            self.ends.resize(count as usize + 1, 0);
            return reader.read(batches, from, &mut self.ends);
        }
        self.ends.resize(2 * count as usize, 0);
        for (number, range) in self.ends.chunks_exact_mut(2).enumerate() {
            reader.read(batches, from.wrapping_add((stride as u64).wrapping_mul(number as u64)), range)?;
        }
        Ok(())
    }

    fn start(&self, number: u64) -> u64 {
        self.ends[if self.neighbours { number as usize } else { 2 * number as usize }]
    }

    fn length(&self, number: u64) -> u64 {
        let end = if self.neighbours { number as usize + 1 } else { 2 * number as usize + 1 };
        self.ends[end] - self.start(number)
    }
}
