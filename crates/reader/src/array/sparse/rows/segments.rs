//! The segments of a map of rows, each in one of three forms: a slab of consecutive cells of one fragment, blocks of
//! interleaved rows, or blocks of addresses.
//!
//! A block of interleaved rows has one code for every processed cell. The code says which fragment the cell comes from,
//! always as this fragment's next cell, and whether the cell is a row or dropped. The block lists its fragments, and
//! the position of the first cell that it takes from each. So each block can be read on its own, and its codes only
//! need to number its own fragments.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;

use super::address::Address;
use super::store::{Blob, SpillStore};

/// The least codes of a full block, and the least per fragment: the positions of fragments must not outweigh the codes.
const LEAST_CODES: usize = 16384;
const CODES_PER_FRAGMENT: usize = 16;

/// The most parts that one block can choose from: a code has 15 bits for them.
const MOST_PARTS: usize = 1 << 15;

/// Stands for the number of a part that the current block does not list, because it has no cell of the part yet.
const NOT_LISTED: u16 = u16::MAX;

/// Bytes of a part in a stored block: its number in the segment, its position, and its number of cells.
const STORED_PART: usize = 16;

/// Consecutive rows of the map that are stored together.
pub enum RowSegment {
    /// Consecutive cells of one fragment.
    CellSlab {
        fragment: u32,
        position: u64,
        rows: u64,
    },
    Interleaved(InterleavedSegment),
    /// Cells of any fragments in any order.
    Scattered(ScatteredSegment),
}

/// Interleaved cells of several fragments, or some of the cells of one.
pub struct InterleavedSegment {
    /// The fragments from which the blocks take cells.
    pub fragments: Arc<[u32]>,
    pub(crate) blocks: Vec<InterleavedBlock>,
    pub(crate) rows: u64,
}

pub(crate) struct InterleavedBlock {
    pub(crate) first_row: u64,
    pub(crate) blob: Blob,
}

/// A list of cells, in row order.
pub struct ScatteredSegment {
    /// Blocks of [`SCATTERED_ROWS`] addresses; the last may have fewer.
    pub blocks: Arc<[Blob]>,
    /// The number of the block whose first row is the segment's first row.
    pub first_block: u64,
    pub rows: u64,
}

impl ScatteredSegment {
    /// Creates a segment of `rows` rows from its blocks.
    pub fn new(blocks: Vec<Blob>, rows: u64) -> Self {
        ScatteredSegment { blocks: blocks.into(), first_block: 0, rows }
    }

    /// Returns at most `rows` rows of the segment, from the first row of block `block` on.
    pub fn part(&self, block: u64, rows: u64) -> Self {
        let left = self.rows.saturating_sub(block.saturating_mul(SCATTERED_ROWS));
        ScatteredSegment { blocks: self.blocks.clone(), first_block: self.first_block + block, rows: rows.min(left) }
    }
}

/// Rows in a block of a [`ScatteredSegment`].
pub const SCATTERED_ROWS: u64 = 8192;

/// Consecutive rows, in the representation of their segment.
pub enum VisitedRows<'a> {
    CellSlab { fragment: u32, position: u64, rows: u64 },
    Interleaved(&'a InterleavedRows),
    Scattered(&'a [Address]),
}

impl VisitedRows<'_> {
    pub fn count(&self) -> u64 {
        match self {
            VisitedRows::CellSlab { rows, .. } => *rows,
            VisitedRows::Interleaved(interleaved) => interleaved.rows,
            VisitedRows::Scattered(addresses) => addresses.len() as u64,
        }
    }
}

/// Rows from several fragments: the cells of each, and the order in which they interleave.
#[derive(Debug, Default)]
pub struct InterleavedRows {
    pub parts: Vec<InterleavedPart>,
    /// For each processed cell its part, and whether it is a row.
    pub codes: Vec<CellCode>,
    pub rows: u64,
}

/// The cells of one fragment among interleaved rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterleavedPart {
    pub fragment: u32,
    /// The position of the first of these cells.
    pub position: u64,
    /// The number of cells, including dropped ones.
    pub cells: u64,
}

/// The part that a cell of interleaved rows belongs to, and whether the cell is a row or dropped: the number of the
/// part, shifted left by one, plus 1 if the cell is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellCode(u16);

impl CellCode {
    /// Returns the code of a cell of a part, of which there are at most [`MOST_PARTS`].
    fn new(part: u16, is_row: bool) -> Self {
        CellCode(part << 1 | u16::from(!is_row))
    }

    /// Returns the number of the cell's part.
    pub fn part(self) -> usize {
        usize::from(self.0 >> 1)
    }

    /// Returns whether the cell is a row.
    pub fn is_row(self) -> bool {
        self.0 & 1 == 0
    }
}

impl RowSegment {
    /// Visits some rows, numbered within the segment, in order. Each visit gets rows of one block.
    ///
    /// # Errors
    /// Those of `visit`; [`Error::Io`] from the temporary file.
    pub fn for_each(
        &self,
        rows: Range<u64>,
        store: &SpillStore,
        buffers: &mut RowBuffers,
        visit: &mut dyn FnMut(VisitedRows<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            RowSegment::CellSlab { fragment, position, .. } => {
                let (position, rows) = (position + rows.start, rows.end - rows.start);
                visit(VisitedRows::CellSlab { fragment: *fragment, position, rows })
            }
            RowSegment::Interleaved(interleaved) => interleaved.for_each(rows, store, buffers, visit),
            RowSegment::Scattered(list) => list.for_each(rows, store, buffers, visit),
        }
    }

    /// Returns the first row of each block, numbered within the segment. A cell slab has no blocks.
    pub fn block_starts(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            RowSegment::CellSlab { .. } => Box::new(std::iter::empty()),
            RowSegment::Interleaved(interleaved) => Box::new(interleaved.blocks.iter().map(|block| block.first_row)),
            RowSegment::Scattered(list) => Box::new((0..list.rows).step_by(SCATTERED_ROWS as usize)),
        }
    }

    pub fn rows(&self) -> u64 {
        match self {
            RowSegment::CellSlab { rows, .. } => *rows,
            RowSegment::Interleaved(interleaved) => interleaved.rows,
            RowSegment::Scattered(list) => list.rows,
        }
    }
}

/// Buffers for reading rows, kept for the next block.
#[derive(Default)]
pub struct RowBuffers {
    stored: Vec<u8>,
    interleaved: InterleavedRows,
    addresses: Vec<Address>,
}

impl InterleavedSegment {
    /// Returns the stored bytes of all blocks.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.blob.length() as u64).sum()
    }

    fn for_each(
        &self,
        rows: Range<u64>,
        store: &SpillStore,
        buffers: &mut RowBuffers,
        visit: &mut dyn FnMut(VisitedRows<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut number = self.blocks.partition_point(|block| block.first_row <= rows.start).saturating_sub(1);
        let mut row = rows.start;
        while row < rows.end {
            cancellation::check()?;
            let block = self.blocks.get(number).ok_or_else(broken)?;
            let end = self.blocks.get(number + 1).map_or(self.rows, |next| next.first_row);
            number += 1;
            // A block of dropped cells alone has no rows.
            if end <= row {
                continue;
            }
            let to = rows.end.min(end);
            let stored = store.get(&block.blob, &mut buffers.stored)?;
            let interleaved = &mut buffers.interleaved;
            interleaved.decode(stored, &self.fragments).ok_or_else(broken)?;
            interleaved.cut(row - block.first_row, to - row);
            visit(VisitedRows::Interleaved(interleaved))?;
            row = to;
        }
        Ok(())
    }
}

fn broken() -> Error {
    Error::damaged("the map of rows does not hold together")
}

impl InterleavedRows {
    /// Decodes a stored block that takes cells of these fragments, in place of the previous rows. Returns `None` if the
    /// block is malformed.
    pub(crate) fn decode(&mut self, stored: &[u8], fragments: &[u32]) -> Option<()> {
        let (rows, stored) = stored.split_first_chunk()?;
        let (parts, stored) = stored.split_first_chunk()?;
        let (parts, codes) = stored.split_at_checked(STORED_PART.checked_mul(u32::from_le_bytes(*parts) as usize)?)?;
        self.rows = u64::from_le_bytes(*rows);
        self.parts.clear();
        for part in parts.as_chunks::<STORED_PART>().0 {
            let (number, part) = part.split_first_chunk()?;
            let (position, part) = part.split_first_chunk()?;
            let (cells, _) = part.split_first_chunk()?;
            self.parts.push(InterleavedPart {
                fragment: *fragments.get(u32::from_le_bytes(*number) as usize)?,
                position: u64::from_le_bytes(*position),
                cells: u32::from_le_bytes(*cells).into(),
            });
        }
        decode_codes(codes, most_codes(fragments.len()), &mut self.codes)
    }

    /// Returns the fragment and the position of the last row: its cell is the last that was processed.
    pub fn last_cell(&self) -> Option<(u32, u64)> {
        let part = self.parts.get(self.codes.last()?.part())?;
        Some((part.fragment, part.position + part.cells.checked_sub(1)?))
    }

    /// Returns whether the codes name existing parts, and match the number of cells of each part and the number of
    /// rows.
    pub(crate) fn is_sound(&self) -> bool {
        let (mut cells, mut rows) = (vec![0u64; self.parts.len()], 0);
        for code in &self.codes {
            match cells.get_mut(code.part()) {
                Some(cells) => *cells += 1,
                None => return false,
            }
            rows += u64::from(code.is_row());
        }
        rows == self.rows && self.parts.iter().zip(cells).all(|(part, cells)| part.cells == cells)
    }

    /// Drops the first `skipped` rows, keeps the next `count`, and recounts the cells of each part.
    fn cut(&mut self, skipped: u64, count: u64) {
        // Also removes dropped cells after the last row: callers rely on the last code being a row.
        if skipped == 0 && count == self.rows && self.codes.last().is_some_and(|code| code.is_row()) {
            return;
        }
        self.parts.iter_mut().for_each(|part| part.cells = 0);
        let mut at = 0;
        let mut left = skipped;
        while left > 0 {
            let code = self.codes[at];
            self.parts[code.part()].position += 1;
            left -= u64::from(code.is_row());
            at += 1;
        }
        self.codes.drain(..at);
        let mut end = 0;
        let mut rows = 0;
        while rows < count && end < self.codes.len() {
            let code = self.codes[end];
            self.parts[code.part()].cells += 1;
            rows += u64::from(code.is_row());
            end += 1;
        }
        self.codes.truncate(end);
        self.rows = rows;
    }
}

impl ScatteredSegment {
    fn for_each(
        &self,
        rows: Range<u64>,
        store: &SpillStore,
        buffers: &mut RowBuffers,
        visit: &mut dyn FnMut(VisitedRows<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let number = row / SCATTERED_ROWS;
            let blob = self.blocks.get((self.first_block + number) as usize).ok_or_else(broken)?;
            let (addresses, _) = store.get(blob, &mut buffers.stored)?.as_chunks();
            let first = row - number * SCATTERED_ROWS;
            let to = (rows.end - number * SCATTERED_ROWS).min(SCATTERED_ROWS);
            let wanted = addresses.get(first as usize..to as usize).ok_or_else(broken)?;
            buffers.addresses.clear();
            buffers.addresses.extend(wanted.iter().map(|bits| Address::from_bits(u64::from_le_bytes(*bits))));
            visit(VisitedRows::Scattered(&buffers.addresses))?;
            row += to - first;
        }
        Ok(())
    }
}

/// Builds an [`InterleavedSegment`] code by code. Memory: 14 bytes per part, and one block.
pub struct InterleavedWriter<'a> {
    store: &'a SpillStore,
    fragments: Arc<[u32]>,
    /// For each part, the position of its next cell after the finished blocks.
    positions: Vec<u64>,
    /// The number of each part in the current block, or [`NOT_LISTED`].
    numbers: Vec<u16>,
    /// The parts of the current block, and how many cells the block has of each part.
    listed: Vec<(u32, u32)>,
    codes: Vec<CellCode>,
    most_codes: usize,
    blocks: Vec<InterleavedBlock>,
    rows: u64,
}

impl<'a> InterleavedWriter<'a> {
    /// Starts a segment that takes the cells of each fragment in `starts` from its position on. A fragment may be
    /// listed more than once.
    pub fn new(store: &'a SpillStore, starts: &[(u32, u64)]) -> Self {
        let most_codes = most_codes(starts.len());
        InterleavedWriter {
            store,
            fragments: starts.iter().map(|start| start.0).collect(),
            positions: starts.iter().map(|start| start.1).collect(),
            numbers: vec![NOT_LISTED; starts.len()],
            listed: Vec::new(),
            codes: Vec::with_capacity(most_codes),
            most_codes,
            blocks: Vec::new(),
            rows: 0,
        }
    }

    /// Adds the next processed cell.
    #[inline]
    pub fn push(&mut self, part: usize, is_row: bool) -> Result<()> {
        let number = match self.numbers[part] {
            NOT_LISTED => self.list(part)?,
            number => number,
        };
        self.codes.push(CellCode::new(number, is_row));
        if self.codes.len() == self.most_codes { self.close() } else { Ok(()) }
    }

    /// Gives a part a number in the current block, or in the next one if this one has no numbers left.
    #[cold]
    fn list(&mut self, part: usize) -> Result<u16> {
        if self.listed.len() == MOST_PARTS {
            self.close()?;
        }
        let number = self.listed.len() as u16;
        self.numbers[part] = number;
        self.listed.push((part as u32, 0));
        Ok(number)
    }

    fn close(&mut self) -> Result<()> {
        let first_row = self.rows;
        for code in &self.codes {
            self.listed[code.part()].1 += 1;
            self.rows += u64::from(code.is_row());
        }
        let mut stored = (self.rows - first_row).to_le_bytes().to_vec();
        stored.extend((self.listed.len() as u32).to_le_bytes());
        for (part, cells) in &self.listed {
            let position = &mut self.positions[*part as usize];
            stored.extend(part.to_le_bytes());
            stored.extend(position.to_le_bytes());
            stored.extend(cells.to_le_bytes());
            *position += u64::from(*cells);
            self.numbers[*part as usize] = NOT_LISTED;
        }
        encode_codes(&self.codes, self.listed.len(), &mut stored);
        self.codes.clear();
        self.listed.clear();
        self.blocks.push(InterleavedBlock { first_row, blob: self.store.put(stored)? });
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn finish(mut self) -> Result<InterleavedSegment> {
        if !self.codes.is_empty() {
            self.close()?;
        }
        self.blocks.shrink_to_fit();
        Ok(InterleavedSegment { fragments: self.fragments, blocks: self.blocks, rows: self.rows })
    }
}

/// Returns the number of codes after which a block is full, in a segment of `parts` parts.
fn most_codes(parts: usize) -> usize {
    LEAST_CODES.max(CODES_PER_FRAGMENT * parts.min(MOST_PARTS))
}

/// The encodings of a block's codes: one byte each, two bytes each, or runs of a code and a length.
const BYTES: u8 = 0;
const PAIRS: u8 = 1;
const RUNS: u8 = 2;

fn encode_codes(codes: &[CellCode], parts: usize, out: &mut Vec<u8>) {
    let width = if parts <= 128 { 1 } else { 2 };
    let runs = codes.chunk_by(|a, b| a == b);
    if 6 * runs.clone().count() <= width * codes.len() {
        out.push(RUNS);
        for run in runs {
            out.extend(run[0].0.to_le_bytes());
            out.extend((run.len() as u32).to_le_bytes());
        }
    } else if width == 1 {
        out.push(BYTES);
        out.extend(codes.iter().map(|code| code.0 as u8));
    } else {
        out.push(PAIRS);
        out.extend(codes.iter().flat_map(|code| code.0.to_le_bytes()));
    }
}

fn decode_codes(stored: &[u8], most: usize, codes: &mut Vec<CellCode>) -> Option<()> {
    let (kind, stored) = stored.split_first()?;
    codes.clear();
    match *kind {
        BYTES => codes.extend(stored.iter().map(|code| CellCode((*code).into()))),
        PAIRS => codes.extend(stored.as_chunks().0.iter().map(|code| CellCode(u16::from_le_bytes(*code)))),
        RUNS => {
            for [a, b, length @ ..] in stored.as_chunks::<6>().0 {
                let length = u32::from_le_bytes(*length) as usize;
                let end = codes.len().checked_add(length).filter(|end| *end <= most)?;
                codes.resize(end, CellCode(u16::from_le_bytes([*a, *b])));
            }
        }
        _ => return None,
    }
    Some(())
}

/// Builds a [`ScatteredSegment`] row by row.
pub struct AddressWriter<'a> {
    store: &'a SpillStore,
    blocks: Vec<Blob>,
    block: Vec<u8>,
    rows: u64,
}

impl<'a> AddressWriter<'a> {
    pub fn new(store: &'a SpillStore) -> Self {
        AddressWriter { store, blocks: Vec::new(), block: Vec::new(), rows: 0 }
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn push(&mut self, address: Address) -> Result<()> {
        self.extend(&[address])
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn extend(&mut self, mut addresses: &[Address]) -> Result<()> {
        while !addresses.is_empty() {
            let room = (SCATTERED_ROWS - self.rows % SCATTERED_ROWS) as usize;
            let (fitting, others) = addresses.split_at(room.min(addresses.len()));
            let start = self.block.len();
            self.block.resize(start + size_of_val(fitting), 0);
            for (bytes, address) in self.block[start..].as_chunks_mut().0.iter_mut().zip(fitting) {
                *bytes = address.to_bits().to_le_bytes();
            }
            self.rows += fitting.len() as u64;
            if self.rows.is_multiple_of(SCATTERED_ROWS) {
                self.blocks.push(self.store.put(std::mem::take(&mut self.block))?);
            }
            addresses = others;
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn finish(mut self) -> Result<ScatteredSegment> {
        if !self.block.is_empty() {
            self.blocks.push(self.store.put(self.block)?);
        }
        Ok(ScatteredSegment::new(self.blocks, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::row_map::RowMap;
    use super::*;

    /// Returns the cells of rows, one by one.
    fn cells(rows: &VisitedRows<'_>) -> Vec<(u32, u64)> {
        match rows {
            VisitedRows::CellSlab { fragment, position, rows } => {
                (*position..position + rows).map(|at| (*fragment, at)).collect()
            }
            VisitedRows::Scattered(list) => list.iter().map(|cell| (cell.fragment(), cell.position())).collect(),
            VisitedRows::Interleaved(interleaved) => {
                let mut parts = interleaved.parts.clone();
                let mut cells = Vec::new();
                for code in &interleaved.codes {
                    let part = &mut parts[code.part()];
                    if code.is_row() {
                        cells.push((part.fragment, part.position));
                    }
                    part.position += 1;
                    part.cells -= 1;
                }
                assert!(parts.iter().all(|part| part.cells == 0));
                cells
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_rows_are_part_of_all(
            parts in prop_oneof![1usize..4, 120usize..140, 300usize..400],
            // Runs of one part, so that the test covers all encodings.
            runs in prop::collection::vec((any::<u16>(), 1usize..400, any::<bool>()), 1..120),
            // A cell of each of more parts than a block can choose from.
            others in prop_oneof![4 => Just(0usize), 1 => 60_000usize..90_000],
            longest in prop_oneof![Just(1usize), Just(400)],
            asked in prop::collection::vec((any::<u64>(), 0u64..10_000), 8),
            limit in prop_oneof![Just(0usize), Just(usize::MAX)],
        ) {
            let store = Arc::new(SpillStore::new(limit));
            let starts: Vec<(u32, u64)> = (0..parts + others).map(|part| (part as u32 % 7, 1000 * part as u64)).collect();
            let mut writer = InterleavedWriter::new(&store, &starts);
            let mut next = starts.clone();
            let mut expected = vec![(9, 5), (9, 6), (9, 7)];
            let others = (0..others).map(|other| (parts + other, 1, other % 3 > 0));
            let runs = runs.into_iter().map(|(part, length, is_row)| (usize::from(part) % parts, length, is_row));
            for (part, length, is_row) in runs.clone().chain(others).chain(runs) {
                for _ in 0..length.min(longest) {
                    writer.push(part, is_row).unwrap();
                    if is_row {
                        expected.push(next[part]);
                    }
                    next[part].1 += 1;
                }
            }
            let interleaved = writer.finish().unwrap();
            let scattered: Vec<(u32, u64)> = (0..9000).map(|row| (row % 5, u64::from(row * 7919 % 1000))).collect();
            expected.extend(&scattered);
            let blocks = scattered.chunks(SCATTERED_ROWS as usize).map(|rows| {
                let bytes = rows.iter().flat_map(|cell| Address::new(cell.0, cell.1).unwrap().to_bits().to_le_bytes());
                store.put(bytes.collect()).unwrap()
            });
            let scattered = ScatteredSegment::new(blocks.collect(), scattered.len() as u64);
            let slab = RowSegment::CellSlab { fragment: 9, position: 5, rows: 3 };
            let map = RowMap::new(vec![slab, RowSegment::Interleaved(interleaved), RowSegment::Scattered(scattered)], store);
            let count = map.count().unwrap();
            prop_assert_eq!(count, expected.len() as u64);
            for (first, wanted) in asked.into_iter().chain([(0, count)]) {
                let first = first % count;
                let wanted = wanted.min(count - first);
                let mut seen = Vec::new();
                map.for_each(first, wanted, |rows| {
                    let cells = cells(&rows);
                    assert_eq!(cells.len() as u64, rows.count());
                    seen.extend(cells);
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(&seen[..], &expected[first as usize..][..wanted as usize]);
            }
            prop_assert!(map.for_each(count, 1, |_| Ok(())).is_err());
        }
    }
}
