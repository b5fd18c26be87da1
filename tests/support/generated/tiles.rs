//! The tile files of a fragment, without filters. Any range of their bytes can be computed without the bytes before it.

use std::ops::Range;

use super::cells::Cells;

/// The bytes before the chunks of a tile, and before the data of a chunk.
const TILE_HEAD: u64 = 8;
const CHUNK_HEAD: u64 = 12;
const CHUNK: u64 = 65536;

/// The part of a field that a file stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Dimension(usize),
    Attribute(usize),
    /// The starts of variable-size values within their tile.
    Offsets(usize),
    /// Variable-size values.
    Values(usize),
}

/// One file of a fragment.
pub struct TileFile<'a> {
    pub cells: &'a dyn Cells,
    pub part: Part,
    pub fragment: u64,
    /// Cells of the fragment.
    pub count: u64,
    /// Cells of a tile.
    pub capacity: u64,
}

impl TileFile<'_> {
    /// Returns the bytes of a cell, if all cells have the same size.
    fn cell_size(&self) -> Option<u64> {
        match self.part {
            Part::Dimension(dimension) => self.cells.dimensions()[dimension].cell_size(),
            Part::Attribute(attribute) => self.cells.attributes()[attribute].cell_size(),
            Part::Offsets(_) => Some(8),
            Part::Values(_) => None,
        }
    }

    /// Returns the number of cells in a chunk. For variable-size values, it allows for the longest ones.
    fn chunk_cells(&self) -> u64 {
        self.cell_size().map_or(CHUNK / 16, |size| CHUNK / size)
    }

    /// Returns the bytes of all values before a cell.
    fn values_before(&self, cell: u64) -> u64 {
        match (self.cell_size(), self.part) {
            (Some(size), _) => size * cell,
            (None, Part::Values(attribute)) => self.cells.bytes_before(attribute, self.fragment, cell),
            (None, _) => unreachable!("only values have different lengths"),
        }
    }

    pub fn tiles(&self) -> u64 {
        self.count.div_ceil(self.capacity)
    }

    fn tile_cells(&self, tile: u64) -> Range<u64> {
        tile * self.capacity..((tile + 1) * self.capacity).min(self.count)
    }

    /// Returns the offset of a tile; for the index after the last tile, the length of the file.
    pub fn tile_offset(&self, tile: u64) -> u64 {
        let heads = |cells: u64| TILE_HEAD + CHUNK_HEAD * cells.div_ceil(self.chunk_cells());
        let cells = (tile * self.capacity).min(self.count);
        let (whole, rest) = (cells / self.capacity, cells % self.capacity);
        whole * heads(self.capacity) + if rest > 0 { heads(rest) } else { 0 } + self.values_before(cells)
    }

    /// Returns the bytes of a tile's values.
    pub fn tile_size(&self, tile: u64) -> u64 {
        let cells = self.tile_cells(tile);
        self.values_before(cells.end) - self.values_before(cells.start)
    }

    pub fn byte_count(&self) -> u64 {
        self.tile_offset(self.tiles())
    }

    /// Returns the bytes of a range, which must lie in the file.
    pub fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut window = Window { range: range.clone(), bytes: Vec::with_capacity((range.end - range.start) as usize) };
        let mut tile = last_at_most(self.tiles(), |tile| self.tile_offset(tile), range.start);
        while tile < self.tiles() && self.tile_offset(tile) < range.end {
            self.read_tile(tile, &mut window);
            tile += 1;
        }
        window.bytes
    }

    fn read_tile(&self, tile: u64, window: &mut Window) {
        let (start, cells, step) = (self.tile_offset(tile), self.tile_cells(tile), self.chunk_cells());
        let chunks = (cells.end - cells.start).div_ceil(step);
        window.put(start, &chunks.to_le_bytes());
        let cells_of = |chunk: u64| cells.start + chunk * step..(cells.start + (chunk + 1) * step).min(cells.end);
        let offset = |chunk: u64| {
            let values = self.values_before(cells_of(chunk).start) - self.values_before(cells.start);
            start + TILE_HEAD + CHUNK_HEAD * chunk + values
        };
        let first = last_at_most(chunks, offset, window.range.start);
        for chunk in first..chunks {
            let (at, cells) = (offset(chunk), cells_of(chunk));
            if at >= window.range.end {
                break;
            }
            let length = self.values_before(cells.end) - self.values_before(cells.start);
            let mut head = [length as u32, length as u32, 0].map(u32::to_le_bytes).concat();
            window.put(at, &head);
            let at = at + CHUNK_HEAD;
            let wanted = window.range.start.max(at)..window.range.end.min(at + length);
            if wanted.is_empty() {
                continue;
            }
            // Fixed-size cells are computed only within the requested range.
            let (from, cells) = match self.cell_size() {
                Some(size) => {
                    let (from, to) = ((wanted.start - at) / size, (wanted.end - at).div_ceil(size));
                    (at + from * size, cells.start + from..cells.start + to)
                }
                None => (at, cells),
            };
            head.clear();
            self.write(tile, cells, &mut head);
            window.put(from, &head);
        }
    }

    fn write(&self, tile: u64, cells: Range<u64>, to: &mut Vec<u8>) {
        match self.part {
            Part::Dimension(dimension) => self.cells.write_dimension(dimension, self.fragment, cells, to),
            Part::Attribute(attribute) | Part::Values(attribute) => {
                self.cells.write_attribute(attribute, self.fragment, cells, to);
            }
            Part::Offsets(attribute) => {
                let before = |cell: u64| self.cells.bytes_before(attribute, self.fragment, cell);
                let first = before(tile * self.capacity);
                cells.for_each(|cell| to.extend((before(cell) - first).to_le_bytes()));
            }
        }
    }
}

/// The bytes of a range, collected in order.
struct Window {
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl Window {
    /// Appends the part of `bytes`, located at offset `at`, that lies in the range.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        let wanted = self.range.start.max(at)..self.range.end.min(end);
        if !wanted.is_empty() {
            self.bytes.extend(&bytes[(wanted.start - at) as usize..(wanted.end - at) as usize]);
        }
    }
}

/// Returns the index of the last of `count` ascending places that is at most `offset`, or 0.
fn last_at_most(count: u64, place: impl Fn(u64) -> u64, offset: u64) -> u64 {
    let (mut low, mut high) = (0, count);
    while high > low + 1 {
        let middle = low + (high - low) / 2;
        if place(middle) <= offset { low = middle } else { high = middle }
    }
    low
}
