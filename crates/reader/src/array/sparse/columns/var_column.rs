//! A variable-size column of a sparse array: the values of all rows concatenated, and the byte at which each row
//! starts.

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Inputs, Recorded, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;
use tilefs_threads::for_all;
use tilefs_threads::single_flight::SingleFlight;

use super::gather::GatherList;
use super::saved_values::{BlockStart, SavedVarIndex, SegmentIndex};
use super::var_files::{ValuePlace, VarFiles, too_long};
use crate::array::FieldId;
use crate::array::context::IndexKey;
use crate::array::context::running_sums::RunningSums;
use crate::array::sparse::rows::row_map::RowMap;
use crate::array::sparse::rows::segments::RowSegment;
use crate::array::sparse::select::cells::TileCells;
use crate::array::sparse::select::files::VarFile;
use crate::array::sparse::view::SparseView;
use crate::array::tiles::open_files::OpenFiles;
use crate::array::tiles::value_plan::{ValueCopy, ValuePlan, repeat};

/// Number of blocks of rows whose sizes are computed together.
const BLOCKS_AT_ONCE: usize = 64;

/// The purpose of allocated memory, as errors name it.
const VALUES: &str = "the values of a column";

/// A column of variable-size values, one per row. Reads are independent of each other and may run concurrently.
pub struct VarColumn {
    view: Arc<SparseView>,
    field: FieldId,
    /// Identifies this column's entries in the cache of indexes. An entry holds, for each tile of a cell slab, the
    /// number of bytes before the tile.
    number: u64,
    index: SingleFlight<BlockIndex>,
    /// Bytes of all values.
    bytes: SingleFlight<u64>,
    /// The index that an earlier mount has saved.
    saved: OnceLock<Option<SavedVarIndex>>,
    open: OpenFiles<Arc<VarFile>>,
}

/// The bytes at which the values of blocks of rows start, as far as they are known. Memory: 16 bytes for each block;
/// cell slabs have no blocks.
struct BlockIndex {
    segments: Vec<SingleFlight<SegmentIndex>>,
    /// The bytes at which the values of the map's first segments start, as far as they are known.
    starts: RwLock<RunningSums>,
}

/// A segment of the map of rows: consecutive cells of one fragment, in whole tiles.
#[derive(Clone, Copy)]
struct SlabSegment {
    segment: usize,
    fragment: u32,
    position: u64,
    rows: u64,
}

impl Recorded for VarColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { view, field, number: _, index: _, bytes: _, saved: _, open: _ } = self;
        view.record(recorder);
        recorder.add::<Self>(field);
    }
}

impl VarColumn {
    /// Returns the column of the coordinates along a string dimension.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is no such dimension.
    pub fn of_dimension(view: Arc<SparseView>, dimension: usize) -> Result<Self> {
        let wanted = view.array().schema().dimensions.get(dimension);
        if !wanted.is_some_and(|wanted| wanted.is_variable()) {
            return Err(Error::internal(format!("no string dimension {dimension}")));
        }
        Ok(Self::new(view, FieldId::Dimension(dimension)))
    }

    /// Returns the column of the values of a variable-size attribute, given its number in the array's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is no such attribute.
    pub fn of_attribute(view: Arc<SparseView>, attribute: usize) -> Result<Self> {
        let wanted = view.array().schema().attributes.get(attribute);
        if !wanted.is_some_and(|wanted| wanted.is_variable()) {
            return Err(Error::internal(format!("no variable-size attribute {attribute}")));
        }
        Ok(Self::new(view, FieldId::Attribute(attribute)))
    }

    fn new(view: Arc<SparseView>, field: FieldId) -> Self {
        let number = view.array().context().indexes.new_owner();
        let (index, bytes, saved) = (SingleFlight::new(), SingleFlight::new(), OnceLock::new());
        VarColumn { view, field, number, index, bytes, saved, open: OpenFiles::new() }
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// As [`SparseView::row_count`].
    pub fn row_count(&self) -> Result<u64> {
        self.view.row_count()
    }

    /// Returns the number of bytes of all values. Reads only metadata for tiles whose cells are all rows. For all other
    /// tiles, reads the offsets of cells, once.
    ///
    /// # Errors
    /// Any damage in the metadata or offsets.
    pub fn byte_count(&self) -> Result<u64> {
        let bytes = self.bytes.get_or_make(|| {
            if self.view.shows_every_cell()? {
                return self.files()?.byte_count();
            }
            if let Some(saved) = self.saved() {
                return Ok(saved.bytes());
            }
            self.start_of_segment(self.view.map()?.segment_count())
        });
        bytes.copied()
    }

    fn inputs(&self) -> Option<Inputs> {
        Some(self.view.saved().inputs_of_cut()?.part(format_args!("values of {:?}", self.field)))
    }

    fn saved(&self) -> Option<&SavedVarIndex> {
        let read = || self.view.saved().indexes().get(&self.inputs()?, SavedVarIndex::decode);
        self.saved.get_or_init(read).as_ref()
    }

    /// Saves the index once it is complete. An index of slabs alone is not saved, because the metadata suffice for it.
    fn keep(&self) -> Result<()> {
        let (Some(inputs), None) = (self.inputs(), self.saved()) else { return Ok(()) };
        let segments = (0..self.index()?.segments.len()).map(|number| self.segment_index(number).cloned());
        let found = SavedVarIndex { segments: segments.collect::<Result<_>>()? };
        if found.segments.iter().any(|segment| !segment.blocks.is_empty()) {
            self.view.saved().indexes().put(&inputs, &found.encode());
        }
        Ok(())
    }

    /// Reads the bytes at which the values of rows start, from row `first` on; the last entry may be the end of the
    /// last row.
    ///
    /// # Errors
    /// Any damage in the data that is needed for these rows.
    pub fn read_offsets<'o>(&self, first: u64, out: impl Into<Output<'o, u64>>) -> Result<()> {
        self.read_offsets_into(first, out.into())
    }

    fn read_offsets_into(&self, first: u64, mut out: Output<'_, u64>) -> Result<()> {
        let map = self.view.map()?;
        let past = || Error::internal("rows past the last one");
        let last = first.checked_add(out.len()).ok_or_else(past)?;
        let files = self.files()?;
        let (mut number, mut row) = (map.segment_of(first)?, first);
        while row < last {
            if number == map.segment_count() {
                // After the last row.
                if row + 1 < last || row > map.count()? {
                    return Err(past());
                }
                let end = self.byte_count()?;
                out.part(row - first..last - first).wanted().into_iter().flatten().for_each(|offset| *offset = end);
                break;
            }
            let own = map.rows_of(number)?;
            let rows = row..own.end.min(last);
            if !rows.is_empty() {
                let into = out.part(rows.start - first..rows.end - first);
                let base = self.start_of_segment(number)?;
                match slab_of(map, number) {
                    Some(slab) => self.slab_offsets(slab, rows.start - own.start, base, into, &files)?,
                    None => self.block_offsets(number, rows.start - own.start, base, into, &files)?,
                }
                row = rows.end;
            }
            number += 1;
        }
        Ok(())
    }

    /// Reads bytes of the values, starting at byte `start`.
    ///
    /// # Errors
    /// Any damage in the data that is needed for these bytes.
    pub fn read_values<'o>(&self, start: u64, out: impl Into<Output<'o>>) -> Result<()> {
        self.read_values_into(start, out.into())
    }

    fn read_values_into(&self, start: u64, mut out: Output<'_>) -> Result<()> {
        let map = self.view.map()?;
        let files = self.files()?;
        self.for_each_segment_of_bytes(start, out.len(), |number, from, bytes| {
            let into = out.part(bytes);
            match slab_of(map, number) {
                Some(slab) => self.read_slab(slab, from, into, &files),
                None => self.read_blocks(number, from, into, &files),
            }
        })
    }

    /// Reads the whole column: the byte at which each value starts, the end of the last value, and the bytes of all
    /// values. Locates each value only once if the map has no cell slab.
    ///
    /// # Errors
    /// Any damage in the data that is read.
    pub fn read_all(&self) -> Result<(Vec<u64>, Vec<u8>)> {
        let (map, rows) = (self.view.map()?, self.row_count()?);
        let offsets_of = "the offsets of a column";
        if (0..map.segment_count()).any(|number| map.slab(number).is_some()) {
            let offsets =
                memory::fill(rows.saturating_add(1), 1, offsets_of, |first, out| self.read_offsets(first, out))?;
            let bytes = memory::fill(self.byte_count()?, 1, VALUES, |start, out| self.read_values(start, out))?;
            return Ok((offsets, bytes));
        }
        let (files, mut starts) = (self.files()?, Vec::new());
        let (mut offsets, mut bytes) = (vec![0], Vec::new());
        self.for_each_block(0..rows, &files, |files, gathered, values| {
            memory::reserve(&mut offsets, values.len(), offsets_of)?;
            starts.clear();
            let (before, mut length) = (bytes.len(), 0u64);
            for value in values {
                starts.push(i128::from(length));
                length = length.checked_add(value.length).ok_or_else(too_long)?;
                offsets.push((before as u64).saturating_add(length));
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            // Before allocating: this fails if tiles have fewer bytes.
            let plan = files.plan(gathered, values, &starts, length)?;
            memory::resize(&mut bytes, before.saturating_add(length), VALUES)?;
            files.copy(&plan, bytes.get_mut(before..).unwrap_or_default())
        })?;
        Ok((offsets, bytes))
    }

    /// Returns the row whose value holds a byte. If several values start at this byte, all but the last are empty:
    /// returns the row of the last.
    ///
    /// # Errors
    /// Any damage in the data that determines it.
    pub fn row_at(&self, byte: u64) -> Result<u64> {
        let map = self.view.map()?;
        let last = self.segment_of_byte(byte)?.min(map.segment_count().saturating_sub(1));
        let rows = if map.segment_count() > 0 { map.rows_of(last)?.end } else { 0 };
        let behind = partition_point(1..rows, |row| {
            let mut start = [0];
            self.read_offsets(row, &mut start[..])?;
            Ok(start[0] <= byte)
        })?;
        Ok(behind - 1)
    }

    fn files(&self) -> Result<VarFiles<'_>> {
        Ok(VarFiles::new(self.view.query()?, self.field, &self.open))
    }

    fn index(&self) -> Result<&BlockIndex> {
        self.index.get_or_make(|| {
            let map = self.view.map()?;
            let mut segments = Vec::new();
            segments.resize_with(map.segment_count(), SingleFlight::new);
            let are_slabs = (0..segments.len()).all(|number| map.slab(number).is_some());
            let saved = if are_slabs { None } else { self.saved() };
            if let Some(saved) = saved.filter(|saved| saved.segments.len() == segments.len()) {
                for (segment, saved) in segments.iter().zip(&saved.segments) {
                    segment.get_or_make(|| Ok(saved.clone()))?;
                }
            }
            Ok(BlockIndex { segments, starts: RwLock::default() })
        })
    }

    fn segment_index(&self, number: usize) -> Result<&SegmentIndex> {
        let own = self.index()?.segments.get(number).ok_or_else(|| Error::internal("no such segment"))?;
        own.get_or_make(|| {
            let map = self.view.map()?;
            if let Some(slab) = slab_of(map, number) {
                let bytes = self.tile_starts(slab)?.total();
                return Ok(SegmentIndex { bytes, blocks: Vec::new() });
            }
            let rows: Vec<u64> = map.segment(number)?.block_starts().collect();
            let own = map.rows_of(number)?;
            self.view.saved().indexes().note_measured(own.end - own.start);
            let (mut byte, mut blocks) = (0u64, Vec::with_capacity(rows.len()));
            for (row, size) in rows.iter().zip(self.block_sizes(own, &rows)?) {
                blocks.push(BlockStart { row: *row, byte });
                byte = byte.checked_add(size).ok_or_else(too_long)?;
            }
            Ok(SegmentIndex { bytes: byte, blocks })
        })
    }

    /// Returns the number of bytes before a segment, or of all bytes if `number` is the number of segments.
    fn start_of_segment(&self, number: usize) -> Result<u64> {
        let index = self.index()?;
        let known = || index.starts.read().unwrap_or_else(PoisonError::into_inner);
        let missing = {
            let known = known();
            if let Some(start) = known.start(number) {
                return Ok(start);
            }
            known.items()..number
        };
        // The lock is not held while offsets are read.
        for_all(missing.len(), |at| self.segment_index(missing.start + at).map(drop))?;
        let mut starts = index.starts.write().unwrap_or_else(PoisonError::into_inner);
        while starts.items() < number {
            let bytes = self.segment_index(starts.items())?.bytes;
            let end = starts.total().checked_add(bytes).ok_or_else(too_long)?;
            let is_last = starts.items() + 1 == index.segments.len();
            if let Some(recorded) = self.bytes.get().filter(|recorded| is_last && **recorded != end) {
                let reason = format!("{end} bytes of values where the metadata of tiles say {recorded}");
                return Err(Error::damaged(reason).in_array(self.view.array().path()));
            }
            starts.push(bytes).ok_or_else(too_long)?;
        }
        let start = starts.start(number).ok_or_else(|| Error::internal("no such segment"))?;
        drop(starts);
        if number == index.segments.len() {
            self.keep()?;
        }
        Ok(start)
    }

    /// Returns the last segment that starts at or before a byte; the number of segments if all end at or before it.
    fn segment_of_byte(&self, byte: u64) -> Result<usize> {
        let index = self.index()?;
        loop {
            let known = {
                let starts = index.starts.read().unwrap_or_else(PoisonError::into_inner);
                if starts.items() == index.segments.len() || starts.total() > byte {
                    return Ok(starts.item_at(byte));
                }
                starts.items()
            };
            self.start_of_segment(known + 1)?;
        }
    }

    /// Returns the size in bytes of each block's values. `starts` are the first rows of the blocks among `rows`.
    fn block_sizes(&self, rows: Range<u64>, starts: &[u64]) -> Result<Vec<u64>> {
        let end_of = |block: usize| starts.get(block + 1).copied().unwrap_or(rows.end - rows.start);
        let groups = for_all(starts.len().div_ceil(BLOCKS_AT_ONCE), |group| {
            let files = self.files()?;
            let blocks = group * BLOCKS_AT_ONCE..starts.len().min((group + 1) * BLOCKS_AT_ONCE);
            let sizes = blocks.map(|block| {
                let mut size = 0u64;
                let own = rows.start + starts[block]..rows.start + end_of(block);
                self.for_each_block(own, &files, |_, _, values| {
                    size = values.iter().fold(size, |size, value| size.saturating_add(value.length));
                    Ok(())
                })?;
                Ok(size)
            });
            sizes.collect::<Result<Vec<u64>>>()
        });
        Ok(groups?.concat())
    }

    /// Visits the segments that hold the wanted bytes: passes the number of the segment, the byte within the segment at
    /// which the wanted part starts, and the range of this part among the wanted bytes.
    fn for_each_segment_of_bytes(
        &self,
        start: u64,
        length: u64,
        mut visit: impl FnMut(usize, u64, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let past = || Error::internal("values past the end of the column");
        let end = start.checked_add(length).ok_or_else(past)?;
        let mut number = self.segment_of_byte(start)?;
        let mut at = start;
        while at < end {
            if number >= self.index()?.segments.len() {
                return Err(past());
            }
            let (before, after) = (self.start_of_segment(number)?, self.start_of_segment(number + 1)?);
            let to = end.min(after);
            if to > at {
                visit(number, at - before, at - start..to - start)?;
                at = to;
            }
            number += 1;
        }
        Ok(())
    }

    /// Visits rows that are stored in blocks: passes the cells of a block, and the place of each row's value.
    fn for_each_block<'a>(
        &'a self,
        rows: Range<u64>,
        files: &VarFiles<'a>,
        mut visit: impl FnMut(&VarFiles<'a>, &GatherList, &[ValuePlace]) -> Result<()>,
    ) -> Result<()> {
        let (mut gathered, mut values) = (GatherList::default(), Vec::new());
        self.view.map()?.for_each(rows.start, rows.end - rows.start, |rows| {
            gathered.set(&rows)?;
            files.open_ahead(&gathered);
            values.clear();
            values.resize(rows.count() as usize, ValuePlace::default());
            files.values(&gathered, &mut values)?;
            visit(files, &gathered, &values)
        })
    }

    /// Reads the bytes at which a segment's values start, from its row `first` on. `base` bytes precede the segment.
    fn block_offsets<'a>(
        &'a self,
        segment: usize,
        first: u64,
        base: u64,
        mut out: Output<'_, u64>,
        files: &VarFiles<'a>,
    ) -> Result<()> {
        let rows = self.view.map()?.rows_of(segment)?;
        let blocks = &self.segment_index(segment)?.blocks;
        let block = blocks.partition_point(|block| block.row <= first).saturating_sub(1);
        let block = blocks.get(block).copied().unwrap_or_default();
        let (mut byte, mut row) = (base + block.byte, block.row);
        let wanted = rows.start + block.row..rows.start + first + out.len();
        let Some(out) = out.wanted() else { return self.fetch_blocks(wanted, false, files) };
        self.for_each_block(wanted, files, |_, _, values| {
            for value in values {
                if let Some(place) = row.checked_sub(first) {
                    out[place as usize] = byte;
                }
                byte += value.length;
                row += 1;
            }
            Ok(())
        })
    }

    /// Reads bytes of the values of a segment, starting at its byte `start`.
    fn read_blocks<'a>(&'a self, segment: usize, start: u64, mut out: Output<'_>, files: &VarFiles<'a>) -> Result<()> {
        let blocks = &self.segment_index(segment)?.blocks;
        let first = blocks.partition_point(|block| block.byte <= start).saturating_sub(1);
        let from = blocks.get(first).copied().unwrap_or_default();
        let rows = self.rows_of_bytes(segment, start..start + out.len())?;
        let Some(out) = out.wanted() else { return self.fetch_blocks(rows, true, files) };
        // Relative to `start`: the first block may begin before it.
        let mut byte = i128::from(from.byte) - i128::from(start);
        let mut starts = Vec::new();
        self.for_each_block(rows, files, |files, gathered, values| {
            starts.clear();
            for value in values {
                starts.push(byte);
                byte += i128::from(value.length);
            }
            files.copy(&files.plan(gathered, values, &starts, out.len())?, out)
        })
    }

    /// Fetches the units that [`VarColumn::for_each_block`] needs for some rows, and the units of their values if
    /// `values` is set.
    fn fetch_blocks(&self, rows: Range<u64>, values: bool, files: &VarFiles<'_>) -> Result<()> {
        let mut gathered = GatherList::default();
        let mut units = Vec::new();
        self.view.map()?.for_each(rows.start, rows.end - rows.start, |rows| {
            gathered.set(&rows)?;
            units.clear();
            files.open_ahead(&gathered);
            files.units(&gathered, values, &mut units)?;
            files.batches(&units).fetch_all()
        })
    }

    /// Returns the rows of the blocks of a segment that hold some of its bytes.
    fn rows_of_bytes(&self, segment: usize, bytes: Range<u64>) -> Result<Range<u64>> {
        let rows = self.view.map()?.rows_of(segment)?;
        let blocks = &self.segment_index(segment)?.blocks;
        let first = blocks.partition_point(|block| block.byte <= bytes.start).saturating_sub(1);
        let last = blocks.partition_point(|block| block.byte < bytes.end);
        let from = blocks.get(first).copied().unwrap_or_default().row;
        let to = blocks.get(last).map_or(rows.end - rows.start, |block| block.row);
        Ok(rows.start + from..rows.start + to)
    }

    /// Returns where the values of each tile of a slab begin.
    fn tile_starts(&self, slab: SlabSegment) -> Result<Arc<RunningSums>> {
        let indexes = &self.view.array().context().indexes;
        indexes.get_or_load(IndexKey::TileStarts(self.number, slab.segment as u64), || {
            let files = self.files()?;
            let (cells, file) = (files.cells(slab.fragment), files.get(slab.fragment)?);
            let mut starts = RunningSums::default();
            let read = cells.for_each_tile(slab.position, slab.rows, |_, tile| {
                if tile.count != tile.in_tile {
                    return Err(Error::damaged("a cell slab that begins or ends within a tile"));
                }
                starts.push(file.tile_size(tile.tile, tile.in_tile)?).ok_or_else(too_long)
            });
            files.place(slab.fragment, read)?;
            let weight = starts.memory();
            Ok((starts, weight))
        })
    }

    /// As [`VarColumn::block_offsets`], for a slab.
    fn slab_offsets(
        &self,
        slab: SlabSegment,
        first: u64,
        base: u64,
        mut out: Output<'_, u64>,
        files: &VarFiles<'_>,
    ) -> Result<()> {
        let starts = self.tile_starts(slab)?;
        let (cells, file) = (files.cells(slab.fragment), files.get(slab.fragment)?);
        let position = slab.position + first;
        let (mut units, mut parts) = (Vec::new(), Vec::new());
        let planned = cells.for_each_tile(position, out.len(), |done, tile| {
            parts.push((done, tile, file.plan_offsets(&[tile], &mut units)?));
            Ok(())
        });
        files.place(slab.fragment, planned)?;
        let mut batches = files.batches(&units);
        let Some(out) = out.wanted() else { return files.place(slab.fragment, batches.fetch_all()) };
        for (done, tile, mut reader) in parts {
            let into = &mut out[done as usize..(done + tile.count) as usize];
            let place = cells.place_of(position + done) - cells.place_of(slab.position);
            let before = base + starts.start(place as usize).unwrap_or(0);
            files.place(slab.fragment, reader.read(&mut batches, tile.first, into))?;
            into.iter_mut().for_each(|offset| *offset += before);
        }
        Ok(())
    }

    /// As [`VarColumn::read_blocks`], for a slab: the values of a tile are already in row order.
    fn read_slab(&self, slab: SlabSegment, start: u64, mut out: Output<'_>, files: &VarFiles<'_>) -> Result<()> {
        let mut plan = ValuePlan::default();
        self.for_each_tile_of_bytes(slab, start..start + out.len(), files, |file, tile, bytes, place| {
            match file {
                VarFile::Stored(tiles) => {
                    let length = (bytes.end - bytes.start) as usize;
                    let copy = ValueCopy { from: bytes.start, to: place.start as usize, length };
                    plan.add(slab.fragment as usize, tiles, tile.tile, tile.in_tile, [copy])?;
                }
                VarFile::Fill(fill) => {
                    out.part(place).wanted().into_iter().for_each(|out| repeat(fill, bytes.start, out));
                }
            }
            Ok(())
        })?;
        match out.wanted() {
            Some(out) => files.read(&plan, out),
            None => files.place(slab.fragment, plan.fetch(files.fetcher())),
        }
    }

    /// Visits the tiles of a slab that hold some of its bytes: passes the tile, the range of bytes within the tile's
    /// values, and this range among the wanted bytes.
    fn for_each_tile_of_bytes(
        &self,
        slab: SlabSegment,
        wanted: Range<u64>,
        files: &VarFiles<'_>,
        mut visit: impl FnMut(&VarFile, TileCells, Range<u64>, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let starts = self.tile_starts(slab)?;
        let (cells, file) = (files.cells(slab.fragment), files.get(slab.fragment)?);
        let first_place = cells.place_of(slab.position);
        let mut tile = starts.item_at(wanted.start);
        let mut at = wanted.start;
        while at < wanted.end {
            let past = || Error::damaged("values past the end of the fragment");
            let own_bytes = starts.range(tile).ok_or_else(past)?;
            let to = own_bytes.end.min(wanted.end);
            if to > at {
                let positions = cells.positions_of(first_place + tile as u64);
                let own = cells.at(positions.start, u64::MAX).ok_or_else(past)?;
                let (from, before) = (own_bytes.start, wanted.start);
                let visited = visit(&file, own, at - from..to - from, at - before..to - before);
                files.place(slab.fragment, visited)?;
                at = to;
            }
            tile += 1;
        }
        Ok(())
    }
}

fn slab_of(map: &RowMap, segment: usize) -> Option<SlabSegment> {
    match map.slab(segment)? {
        RowSegment::CellSlab { fragment, position, rows } => {
            Some(SlabSegment { segment, fragment: *fragment, position: *position, rows: *rows })
        }
        _ => None,
    }
}
