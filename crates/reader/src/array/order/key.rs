//! Keys that sort as the cells of an array do: a few 64-bit words a cell, compared word by word.
//!
//! The global order compares first the space tiles of two cells, dimension by dimension, then their coordinates. A key
//! packs just that: the numbers of the tiles, then the positions within them, each in the least number of bits that
//! holds its range. For most arrays this gives one or two words.

use std::cmp::Ordering;

use tilefs_base::error::{Error, Result};
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{ArraySchema, Layout};

use super::axis::{KeyAxis, Scale, is_cut, text_word};
use super::hilbert::Hilbert;

/// An order of an array's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// Tile by tile, or along the Hilbert curve: as the schema says.
    Global,
    /// By coordinates, the first dimension being the most significant.
    RowMajor,
}

/// One component of a key: of one dimension, or of all dimensions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyField {
    /// The index along the Hilbert curve.
    Hilbert,
    /// The number of the space tile along a dimension.
    Tile(usize),
    /// The position within the space tile if the key has the tile number, otherwise within the domain.
    Position(usize),
    /// The first bytes of a string.
    Text(usize),
}

/// A field and its place in the key: the word, and the shift to the left.
#[derive(Debug, Clone, Copy)]
struct PackedField {
    field: KeyField,
    word: usize,
    shift: u32,
}

/// The layout of the keys of an array's cells in one order.
#[derive(Debug)]
pub struct KeyPlan {
    pub axes: Vec<KeyAxis>,
    /// The dimensions with more than one coordinate, most significant first within a space tile.
    directed: Vec<usize>,
    fields: Vec<PackedField>,
    words: usize,
    hilbert: Option<Hilbert>,
    /// For each dimension, whether the key has the number of its space tile.
    tiled: Vec<bool>,
    /// For each word, the string dimension whose first bytes it holds.
    texts: Vec<Option<usize>>,
}

/// Coordinates of some consecutive cells along one dimension.
#[derive(Debug, Default)]
pub struct AxisColumn {
    /// The positions of fixed-size coordinates.
    pub positions: Vec<u64>,
    /// For strings: the start of each string in `bytes`, and the end of the last.
    pub offsets: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl AxisColumn {
    /// Returns a string of the column; empty past the end.
    pub fn text(&self, cell: usize) -> &[u8] {
        let range = self.offsets.get(cell).zip(self.offsets.get(cell + 1));
        range.and_then(|(start, end)| self.bytes.get(*start as usize..*end as usize)).unwrap_or(&[])
    }

    pub fn clear(&mut self) {
        self.positions.clear();
        self.offsets.clear();
        self.bytes.clear();
    }

    /// Returns a column with only one cell of this column.
    pub fn only(&self, cell: usize) -> Self {
        let mut only = AxisColumn::default();
        only.set_only(self, cell);
        only
    }

    /// Replaces the contents with one cell of another column.
    pub fn set_only(&mut self, from: &AxisColumn, cell: usize) {
        self.clear();
        self.positions.extend(from.positions.get(cell));
        if !from.offsets.is_empty() {
            self.bytes.extend_from_slice(from.text(cell));
            self.offsets.extend([0, self.bytes.len() as u64]);
        }
    }
}

impl KeyPlan {
    /// # Errors
    /// [`Error::Unsupported`] for dimensions or orders that this library cannot sort by.
    pub fn new(schema: &ArraySchema, order: KeyOrder) -> Result<Self> {
        let axes: Vec<KeyAxis> = schema
            .dimensions
            .iter()
            .map(|one| KeyAxis::new(one, schema.coordinate_filters(one)))
            .collect::<Result<_>>()?;
        let is_hilbert = order == KeyOrder::Global && schema.cell_order == Layout::Hilbert;
        let hilbert = if is_hilbert { Some(Hilbert::new(axes.len())?) } else { None };
        let tiled: Vec<bool> =
            axes.iter().map(|axis| order == KeyOrder::Global && !is_hilbert && axis.tile(axis.last()) > 0).collect();
        let directed = |layout: Layout| -> Vec<usize> {
            match layout {
                Layout::ColMajor if order == KeyOrder::Global => (0..axes.len()).rev().collect(),
                _ => (0..axes.len()).collect(),
            }
        };
        let mut packer = Packer::default();
        if is_hilbert {
            packer.add(KeyField::Hilbert, 64);
        }
        for number in directed(schema.tile_order) {
            if tiled[number] {
                packer.add(KeyField::Tile(number), bits(axes[number].tile(axes[number].last())));
            }
        }
        for number in directed(schema.cell_order) {
            match axes[number].scale {
                Scale::Text => packer.add(KeyField::Text(number), 64),
                Scale::Integer { last, extent: Some(extent), .. } if tiled[number] && !axes[number].is_rounded() => {
                    packer.add(KeyField::Position(number), bits(last.min(extent - 1)));
                }
                Scale::Integer { last, .. } | Scale::Float { last, .. } => {
                    packer.add(KeyField::Position(number), bits(last));
                }
            }
        }
        let Packer { fields, words, .. } = packer;
        // At least one word, so that every key has a first one.
        let words = words.max(1);
        let mut texts = vec![None; words];
        for packed in &fields {
            if let KeyField::Text(number) = packed.field {
                texts[packed.word] = Some(number);
            }
        }
        let directed = directed(schema.cell_order).into_iter().filter(|&number| axes[number].has_order()).collect();
        Ok(KeyPlan { axes, directed, fields, words, hilbert, tiled, texts })
    }

    /// Returns the number of words of a key, at least 1.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns whether keys always decide which of two cells comes first; otherwise long strings must be compared, too.
    pub fn is_exact(&self) -> bool {
        self.texts.iter().all(Option::is_none)
    }

    pub fn is_hilbert(&self) -> bool {
        self.hilbert.is_some()
    }

    /// Returns whether two keys have the same place along the Hilbert curve. Writers order the cells of one place by
    /// rules of their own: by the last dimension first before libtiledb 2.22, by the first in consolidated fragments.
    pub fn is_one_place(&self, a: &[u64], b: &[u64]) -> bool {
        self.is_hilbert() && a.first() == b.first()
    }

    /// Returns whether the order is that of the coordinates, the first dimension being the most significant.
    /// `is_one_tile` returns whether all cells surely lie in one space tile along a dimension.
    pub fn is_row_major(&self, is_one_tile: impl Fn(usize) -> bool) -> bool {
        self.directed.is_sorted() && self.is_by_coordinates(is_one_tile)
    }

    /// As [`KeyPlan::is_row_major`], the last dimension being the most significant.
    pub fn is_column_major(&self, is_one_tile: impl Fn(usize) -> bool) -> bool {
        self.directed.iter().rev().is_sorted() && self.is_by_coordinates(is_one_tile)
    }

    /// Returns whether the order would be the same without the tile numbers, which come before all coordinates. The
    /// tile along the most significant dimension never makes a difference.
    fn is_by_coordinates(&self, is_one_tile: impl Fn(usize) -> bool) -> bool {
        let has_no_say = |&number: &usize| !self.tiled[number] || is_one_tile(number);
        self.hilbert.is_none() && self.directed.iter().skip(1).all(has_no_say)
    }

    /// Returns whether the domain has dates or times on both sides of 1970.
    pub fn crosses_1970(&self) -> bool {
        self.axes.iter().any(KeyAxis::crosses_1970)
    }

    /// Returns whether equal keys can belong to different coordinates: 0.0 and -0.0 have the same key.
    pub fn has_floats(&self) -> bool {
        self.axes.iter().any(KeyAxis::is_float)
    }

    /// Returns whether a filter rounds some coordinates, so that cells need not be in order.
    pub fn is_rounded(&self) -> bool {
        self.axes.iter().any(KeyAxis::is_rounded)
    }

    /// Returns whether sorted cells can be searched by their keys. Cells with the same place on the Hilbert curve, and
    /// the two zeros, are in no defined order among themselves, and keys hold only the beginning of long strings.
    pub fn can_be_searched(&self) -> bool {
        self.is_exact() && !self.is_hilbert() && !self.has_floats() && !self.is_rounded()
    }

    /// Fills `keys` with the keys of `cells` cells, given one column per dimension.
    pub fn keys(&self, columns: &[AxisColumn], cells: usize, keys: &mut Vec<u64>) {
        keys.clear();
        keys.resize(cells * self.words, 0);
        for packed in &self.fields {
            let rows = keys.chunks_exact_mut(self.words).map(|key| &mut key[packed.word]);
            match packed.field {
                KeyField::Hilbert => self.add_hilbert(columns, rows),
                KeyField::Tile(number) => {
                    let positions = &columns[number].positions;
                    let mut tile = SpaceTile::default();
                    for (word, position) in rows.zip(positions) {
                        tile.move_to(&self.axes[number], *position);
                        *word |= tile.number << packed.shift;
                    }
                }
                KeyField::Position(number) if self.is_within_tile(number) => {
                    let positions = &columns[number].positions;
                    let mut tile = SpaceTile::default();
                    for (word, position) in rows.zip(positions) {
                        tile.move_to(&self.axes[number], *position);
                        *word |= (position - tile.first) << packed.shift;
                    }
                }
                KeyField::Position(number) => {
                    for (word, position) in rows.zip(&columns[number].positions) {
                        *word |= position << packed.shift;
                    }
                }
                KeyField::Text(number) => {
                    for (cell, word) in rows.enumerate() {
                        *word = text_word(columns[number].text(cell));
                    }
                }
            }
        }
    }

    /// Returns whether keys have the position within the space tile along a dimension.
    fn is_within_tile(&self, number: usize) -> bool {
        self.tiled[number] && !self.axes[number].is_float() && !self.axes[number].is_rounded()
    }

    fn add_hilbert<'a>(&self, columns: &[AxisColumn], rows: impl Iterator<Item = &'a mut u64>) {
        let Some(hilbert) = self.hilbert else { return };
        let mut places = vec![0; self.axes.len()];
        let domains: Vec<(f64, f64)> = self.axes.iter().map(KeyAxis::domain).collect();
        for (cell, word) in rows.enumerate() {
            for (number, place) in places.iter_mut().enumerate() {
                let (axis, column, (low, high)) = (&self.axes[number], &columns[number], domains[number]);
                *place = match column.positions.get(cell) {
                    Some(&position) => hilbert.place_of_number(axis.number_in_domain(position), low, high),
                    None => hilbert.place_of_text(column.text(cell)),
                };
            }
            *word = hilbert.index(&mut places);
        }
    }

    /// Returns a lower and an upper bound of the keys of all cells in a box: the keys of its corners. If a corner's key
    /// cuts off a string, all words behind it are the lowest or the highest possible.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a box outside the domain.
    pub fn bounds(&self, ranges: &[Range]) -> Result<(Vec<u64>, Vec<u64>)> {
        let (mut low_corner, mut high_corner) = (Vec::new(), Vec::new());
        for (axis, range) in self.axes.iter().zip(ranges) {
            let possible = axis.possible(range);
            low_corner.push(AxisColumn::of_one(axis, &possible.low)?);
            high_corner.push(AxisColumn::of_one(axis, &possible.high)?);
        }
        let (mut low, mut high) = (Vec::new(), Vec::new());
        self.keys(&low_corner, 1, &mut low);
        self.keys(&high_corner, 1, &mut high);
        if let Some(hilbert) = &self.hilbert {
            let indexes = self.hilbert_bounds(hilbert, &low_corner, &high_corner);
            // A range of Hilbert values does not bound the coordinates.
            low.fill(0);
            high.fill(u64::MAX);
            (low[0], high[0]) = indexes;
        }
        let cut = |key: &[u64]| (0..key.len()).find(|&word| self.texts[word].is_some() && is_cut(key[word]));
        if let Some(word) = cut(&low) {
            low[word + 1..].fill(0);
        }
        if let Some(word) = cut(&high) {
            high[word + 1..].fill(u64::MAX);
        }
        Ok((low, high))
    }

    fn hilbert_bounds(&self, hilbert: &Hilbert, low: &[AxisColumn], high: &[AxisColumn]) -> (u64, u64) {
        let place = |number: usize, column: &AxisColumn| -> u64 {
            let (from, to) = self.axes[number].domain();
            match column.positions.first() {
                Some(&position) => hilbert.place_of_number(self.axes[number].number_in_domain(position), from, to),
                None => hilbert.place_of_text(column.text(0)),
            }
        };
        let places = |columns: &[AxisColumn], text: u64| -> Vec<u64> {
            let columns = columns.iter().enumerate();
            columns
                .map(|(number, column)| if self.axes[number].is_text() { text } else { place(number, column) })
                .collect()
        };
        // Between two strings there may be bytes that the curve takes for negative, so strings can be anywhere.
        hilbert.bounds(&places(low, 0), &places(high, hilbert.last_place()))
    }

    /// Appends bytes that sort, compared as unsigned, as the cells do: the key, with whole strings in place of their
    /// first bytes. Each string ends with two zeros; a zero within it is followed by 255.
    pub fn sortable_bytes(&self, key: &[u64], columns: &[AxisColumn], cell: usize, out: &mut Vec<u8>) {
        for (word, text) in key.iter().zip(&self.texts) {
            match text {
                None => out.extend(word.to_be_bytes()),
                Some(number) => {
                    for byte in columns[*number].text(cell) {
                        out.push(*byte);
                        if *byte == 0 {
                            out.push(u8::MAX);
                        }
                    }
                    out.extend([0, 0]);
                }
            }
        }
    }

    /// Compares two keys. If the keys leave the order open, returns the dimension whose strings decide it.
    #[inline]
    pub fn compare(&self, a: &[u64], b: &[u64]) -> std::result::Result<Ordering, usize> {
        for ((a, b), text) in a.iter().zip(b).zip(&self.texts) {
            match (a.cmp(b), text) {
                (Ordering::Equal, Some(number)) if is_cut(*a) => return Err(*number),
                (Ordering::Equal, _) => {}
                (unequal, _) => return Ok(unequal),
            }
        }
        Ok(Ordering::Equal)
    }

    /// Returns the prefix of a key that suffices to decide whether another cell comes before it: up to the first string
    /// that the key cuts off. For Hilbert order it is the place on the curve, because cells of one place may come in
    /// any order.
    pub fn decisive<'a>(&self, key: &'a [u64]) -> &'a [u64] {
        if self.is_hilbert() {
            return &key[..1];
        }
        let cut = (0..key.len()).find(|&word| self.texts[word].is_some() && is_cut(key[word]));
        cut.map_or(key, |word| &key[..=word])
    }

    /// Compares two cells whose keys are equal up to a string that both cut off: by the whole strings of dimension
    /// `number`, then by the fields after it.
    pub fn compare_behind(&self, number: usize, a: (&[AxisColumn], usize), b: (&[AxisColumn], usize)) -> Ordering {
        let ((a, a_cell), (b, b_cell)) = (a, b);
        let from = self.fields.iter().position(|packed| packed.field == KeyField::Text(number)).unwrap_or(0);
        for packed in &self.fields[from..] {
            let order = match packed.field {
                KeyField::Text(number) => a[number].text(a_cell).cmp(b[number].text(b_cell)),
                // Tiles and the Hilbert index come before any string.
                KeyField::Position(number) | KeyField::Tile(number) => {
                    a[number].positions.get(a_cell).cmp(&b[number].positions.get(b_cell))
                }
                KeyField::Hilbert => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}

impl AxisColumn {
    /// Returns a column of one coordinate.
    fn of_one(axis: &KeyAxis, value: &Scalar) -> Result<Self> {
        let mut column = AxisColumn::default();
        match value {
            Scalar::Text(text) if axis.is_text() => {
                column.bytes.clone_from(text);
                column.offsets = vec![0, text.len() as u64];
            }
            _ => {
                let position = axis.position(value);
                let outside = || Error::damaged(format!("{value} lies outside the domain of {}", axis.name));
                column.positions.push(position.ok_or_else(outside)?);
            }
        }
        Ok(column)
    }
}

/// The space tile of the previous cell. The next cell mostly lies in the same one, which saves a slow division.
struct SpaceTile {
    number: u64,
    /// The first and the last position of the tile.
    first: u64,
    last: u64,
}

impl Default for SpaceTile {
    fn default() -> Self {
        SpaceTile { number: 0, first: 1, last: 0 }
    }
}

impl SpaceTile {
    #[inline]
    fn move_to(&mut self, axis: &KeyAxis, position: u64) {
        if (self.first..=self.last).contains(&position) {
            return;
        }
        self.number = axis.tile(position);
        (self.first, self.last) = match axis.scale {
            Scale::Integer { extent: Some(extent), .. } if !axis.is_rounded() => {
                let first = self.number.saturating_mul(extent);
                (first, first.saturating_add(extent - 1))
            }
            // For floats, the boundaries of tiles depend on the rounding of quotients.
            _ => (position, position),
        };
    }
}

/// Packs fields into words.
#[derive(Default)]
struct Packer {
    fields: Vec<PackedField>,
    words: usize,
    /// Free bits in the last word.
    left: u32,
}

impl Packer {
    fn add(&mut self, field: KeyField, bits: u32) {
        if bits == 0 {
            return;
        }
        if bits > self.left {
            self.words += 1;
            self.left = 64;
        }
        self.left -= bits;
        self.fields.push(PackedField { field, word: self.words - 1, shift: self.left });
    }
}

/// Returns the number of bits that hold every number up to `most`.
fn bits(most: u64) -> u32 {
    64 - most.leading_zeros()
}
