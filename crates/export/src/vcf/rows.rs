//! The records of one sample as lines of VCF, in the order of their first positions, each once.
//!
//! Rows are cells, sorted by their coordinate; a row may have no line, because anchors repeat a record. Where a region
//! is selected, the rows are the cells in which a record that overlaps it lies or has an anchor.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};
use tilefs_reader::read::Output;
use tilefs_reader::threads::cancellation;

use super::layout::{CellPositions, Contigs, Layout};
use super::{Header, Record};
use crate::column::{Column, FormatResult, Unrepresentable};
use crate::text::cells::ColumnCells;
use crate::text::{Position, TextRows};

/// Number of rows read together.
const BATCH_ROWS: u64 = 512;

/// Number of bytes of one column read together, unless one cell has more.
const BATCH_BYTES: u64 = 1 << 20;

/// The longest cell that is read, in bytes. htslib's lines are shorter than 2 GiB, but memory must be bounded.
const MAX_CELL: u64 = 64 << 20;

/// The most bytes of lines that are sorted together: those of records that begin within an anchor gap.
const MAX_SORTED: usize = 64 << 20;

/// The cells of one sample, column by column: one row per cell, sorted by coordinate.
pub struct Columns {
    /// The path of the array, for errors.
    pub array: String,
    /// The coordinate along the dimension of positions.
    pub coordinate: Column,
    /// The first position of each record.
    pub start: Column,
    /// The last position of each record.
    pub end: Column,
    /// QUAL.
    pub quality: Column,
    /// REF and ALT.
    pub alleles: Column,
    /// ID.
    pub id: Column,
    /// FILTER.
    pub filters: Column,
    /// The blobs of the INFO fields.
    pub info: Column,
    /// The blobs of the FORMAT fields.
    pub format: Column,
    /// Fields with attributes of their own.
    pub extracted: Vec<Extracted>,
    /// The contig of each record.
    pub contig: ContigOf,
}

/// A field of records that has an attribute of its own.
pub struct Extracted {
    /// Whether it is an INFO or a FORMAT field.
    pub kind: ExtractedKind,
    /// The name of the field.
    pub name: Vec<u8>,
    /// The blobs of the field.
    pub column: Column,
}

/// The part of a record that a field belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractedKind {
    /// INFO.
    Info,
    /// FORMAT.
    Format,
}

/// The source of the contig of a record.
pub enum ContigOf {
    /// All records are of this contig.
    One(Vec<u8>),
    /// A dimension.
    Column(Box<Column>),
    /// The positions, which count the contigs before.
    Positions(Arc<Contigs>),
}

/// The places of columns in [`VariantRows::cells`].
const COORDINATE: usize = 0;
const START: usize = 1;
const END: usize = 2;
const QUALITY: usize = 3;
const ALLELES: usize = 4;
const ID: usize = 5;
const FILTERS: usize = 6;
const INFO: usize = 7;
const FORMAT: usize = 8;
/// The number of columns that every dataset has. Columns of extracted fields follow, then the contig.
const FIXED: usize = 9;

/// The lines of a sample's records. Memory: none; a batch of rows at a time while lines are made, and the lines of
/// records that begin within an anchor gap, where these have to be sorted.
pub struct VariantRows {
    array: String,
    cells: Vec<ColumnCells>,
    extracted: Vec<(ExtractedKind, Vec<u8>)>,
    contig: Place,
    rows: u64,
    layout: Layout,
    header: Arc<Header>,
    has_sample: bool,
    region: Option<Region>,
}

enum Place {
    One(Vec<u8>),
    /// The last column.
    Column,
    Positions(Arc<Contigs>),
}

/// A selected region.
struct Region {
    /// The first and the last position.
    positions: RangeInclusive<u32>,
    /// The first coordinate of a cell of a record that overlaps it.
    low: u32,
    /// The number of rows among which the records that begin before `low` are.
    lead: u64,
}

/// The cells of a few rows, in reusable buffers.
#[derive(Default)]
pub struct Scratch {
    columns: Vec<Loaded>,
    lines: Vec<u8>,
    /// The first position of each of the `lines`, and its place among them.
    places: Vec<(u32, Range<usize>)>,
}

/// The cells of one column.
#[derive(Default)]
struct Loaded {
    /// The number of the first element of each row, and of the row after.
    elements: Vec<u64>,
    values: Vec<u8>,
    size: usize,
}

impl Loaded {
    fn cell(&self, row: usize) -> &[u8] {
        let place = |row: usize| Some((self.elements.get(row)? - self.elements.first()?) as usize * self.size);
        let range = place(row).zip(place(row + 1));
        range.and_then(|(from, to)| self.values.get(from..to)).unwrap_or(&[])
    }

    fn number(&self, row: usize) -> u32 {
        self.cell(row).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }
}

impl Layout {
    /// Returns the coordinates between which each record that overlaps these positions has a cell.
    pub fn coordinates_of(&self, positions: &RangeInclusive<u32>) -> RangeInclusive<u32> {
        let (low, high) = (*positions.start(), *positions.end());
        match self.is_by_end() {
            true => low..=high.saturating_add(self.anchor_gap()),
            false => low.saturating_sub(self.anchor_gap())..=high,
        }
    }
}

impl VariantRows {
    /// Creates the lines of all rows, or of the records that overlap `positions`; then the rows are the cells whose
    /// coordinates lie within [`Layout::coordinates_of`] these. `has_sample` tells whether the file has a column for
    /// the sample.
    ///
    /// # Errors
    /// Fails if coordinates, by which the first rows of a region are searched, cannot be read.
    pub fn new(
        columns: Columns,
        layout: Layout,
        header: Arc<Header>,
        has_sample: bool,
        positions: Option<RangeInclusive<u32>>,
    ) -> Result<FormatResult<Self>> {
        let rows = columns.coordinate.cells();
        let array = columns.array.clone();
        let (cells, extracted, contig) = match columns.into_cells(rows) {
            Ok(parts) => parts,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut made = VariantRows { array, cells, extracted, contig, rows, layout, header, has_sample, region: None };
        if let Some(positions) = positions {
            let low = *made.layout.coordinates_of(&positions).start();
            // The first cell at or behind `low` of a record before it is at most a gap away.
            let lead = made.first_row_at(low.saturating_add(made.layout.anchor_gap()).saturating_add(1), made.rows)?;
            made.region = Some(Region { positions, low, lead });
        }
        Ok(Ok(made))
    }

    /// Returns the coordinate of a row.
    fn coordinate(&self, row: u64) -> Result<u32> {
        let mut bytes = Vec::new();
        self.cells[COORDINATE].read_values(row..row + 1, &Output::Into(&mut []), &mut bytes)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    /// Returns the first of the first `rows` rows whose coordinate is not below this one.
    fn first_row_at(&self, coordinate: u32, rows: u64) -> Result<u64> {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.coordinate(middle)? < coordinate {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Reads as many rows as fit, at most `most`, and returns their number.
    fn load(&self, first: u64, most: u64, columns: &mut Vec<Loaded>) -> Result<usize> {
        columns.resize_with(self.cells.len(), Loaded::default);
        let mut count = BATCH_ROWS.min(most);
        for (cells, loaded) in self.cells.iter().zip(&mut *columns) {
            loaded.size = cells.size as usize;
            cells.elements(first, count, &mut loaded.elements)?;
            let start = loaded.elements.first().copied().unwrap_or(0);
            let fit = loaded.elements.partition_point(|end| (end - start).saturating_mul(cells.size) <= BATCH_BYTES);
            count = count.min((fit as u64).saturating_sub(1).max(1));
        }
        for (cells, loaded) in self.cells.iter().zip(columns) {
            loaded.elements.truncate(count as usize + 1);
            let range = loaded.elements.first().zip(loaded.elements.last());
            let range = range.map_or(0..0, |(&from, &to)| from..to);
            if (range.end - range.start).saturating_mul(cells.size) > MAX_CELL {
                return Err(Error::unsupported(format!("a value of more than {MAX_CELL} bytes")));
            }
            cells.read_values(range, &Output::Into(&mut []), &mut loaded.values)?;
        }
        Ok(count as usize)
    }

    fn cell(&self, columns: &[Loaded], row: usize) -> CellPositions {
        let number = |column: usize| columns.get(column).map_or(0, |loaded| loaded.number(row));
        CellPositions { coordinate: number(COORDINATE), start: number(START), end: number(END) }
    }

    /// Appends the line of a row.
    fn append_line(&self, columns: &[Loaded], row: usize, out: &mut Vec<u8>) -> Result<()> {
        let bytes = |column: usize| columns.get(column).map_or(&[][..], |loaded| loaded.cell(row));
        let CellPositions { start, end, .. } = self.cell(columns, row);
        let (first, contig) = match &self.contig {
            Place::One(name) => (0, name.as_slice()),
            Place::Column => (0, bytes(self.cells.len() - 1)),
            Place::Positions(contigs) => contigs.at(start)?,
        };
        let of_kind = |wanted: ExtractedKind| -> Vec<(&[u8], &[u8])> {
            let all = self.extracted.iter().enumerate().filter(|(_, (kind, _))| *kind == wanted);
            all.map(|(number, (_, name))| (name.as_slice(), bytes(FIXED + number))).collect()
        };
        let outside = || Error::damaged(format!("a record that ends at {end}, before its contig begins"));
        let record = Record {
            contig,
            start: start - first,
            end: end.checked_sub(first).ok_or_else(outside)?,
            quality: columns.get(QUALITY).map_or(0, |loaded| loaded.number(row)),
            alleles: bytes(ALLELES),
            id: bytes(ID),
            filters: bytes(FILTERS),
            info: bytes(INFO),
            format: bytes(FORMAT),
            extracted_info: &of_kind(ExtractedKind::Info),
            extracted_format: &of_kind(ExtractedKind::Format),
        };
        record.append(&self.header, self.has_sample, out)
    }

    /// Returns whether a record overlaps the region, if one is selected.
    fn is_selected(&self, cell: CellPositions) -> bool {
        self.region.as_ref().is_none_or(|region| {
            cell.start <= *region.positions.end() && cell.end.max(cell.start) >= *region.positions.start()
        })
    }

    /// Appends the records whose lines belong to rows from `first` on, where records lie at their first positions;
    /// returns the row after.
    fn append_by_start(&self, first: u64, end: u64, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<u64> {
        let count = self.load(first, end - first, &mut scratch.columns)?;
        for row in 0..count {
            let cell = self.cell(&scratch.columns, row);
            if self.layout.cell_before(cell)?.is_none() && self.is_selected(cell) {
                self.append_line(&scratch.columns, row, out)?;
            }
        }
        Ok(first + count as u64)
    }

    /// As [`VariantRows::append_by_start`], where records lie at their last positions: the first cell of a record lies
    /// at most a gap behind its first position. So the records that begin up to a gap before a row are in the rows
    /// before it.
    fn append_by_end(&self, first: u64, end: u64, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<u64> {
        let end = end.min(first.saturating_add(BATCH_ROWS));
        // The last first position that is certain to be in the rows before a row, and one more.
        let known = |row: u64| Ok(self.coordinate(row)?.saturating_sub(self.layout.anchor_gap()));
        let low = if first == 0 { 0 } else { known(first)? };
        let high = if end == self.rows { None } else { Some(known(end)?) };
        let from = self.first_row_at(low, first)?;
        let low = self.region.as_ref().map_or(low, |region| low.max(region.low));
        self.append_sorted(from..end, scratch, out, |cell, before| {
            before.is_none() && cell.start >= low && high.is_none_or(|high| cell.start < high)
        })?;
        Ok(end)
    }

    /// Appends the records that begin before the first coordinate of the region, sorted by their first positions.
    fn append_lead(&self, region: &Region, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<()> {
        self.append_sorted(0..region.lead, scratch, out, |cell, before| {
            cell.start < region.low && before.is_none_or(|before| before < region.low)
        })
    }

    /// Appends the selected records among some rows that `is_wanted` accepts, sorted by their first positions. It gets
    /// the positions of a cell, and the coordinate of the same record's cell before it.
    fn append_sorted(
        &self,
        rows: Range<u64>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
        is_wanted: impl Fn(CellPositions, Option<u32>) -> bool,
    ) -> Result<()> {
        let mut first = rows.start;
        scratch.lines.clear();
        scratch.places.clear();
        while first < rows.end {
            cancellation::check()?;
            let count = self.load(first, rows.end - first, &mut scratch.columns)?;
            for row in 0..count {
                let cell = self.cell(&scratch.columns, row);
                if is_wanted(cell, self.layout.cell_before(cell)?) && self.is_selected(cell) {
                    let start = scratch.lines.len();
                    self.append_line(&scratch.columns, row, &mut scratch.lines)?;
                    scratch.places.push((cell.start, start..scratch.lines.len()));
                }
            }
            if scratch.lines.len() > MAX_SORTED {
                return Err(Error::unsupported("more than 64 MiB of records that begin within an anchor gap"));
            }
            first += count as u64;
        }
        scratch.places.sort_by_key(|(start, _)| *start);
        for (_, place) in &scratch.places {
            out.extend_from_slice(scratch.lines.get(place.clone()).unwrap_or_default());
        }
        Ok(())
    }
}

impl TextRows for VariantRows {
    type Scratch = Scratch;

    fn header(&self) -> &[u8] {
        &[]
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn column_count(&self) -> usize {
        1
    }

    fn advance(&self, at: Position, end: u64, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<Position> {
        cancellation::check()?;
        let mut append = || {
            let end = end.min(self.rows);
            if let Some(region) = self.region.as_ref().filter(|_| at.row == 0) {
                self.append_lead(region, scratch, out)?;
            }
            match self.layout.is_by_end() {
                true => self.append_by_end(at.row, end, scratch, out),
                false => self.append_by_start(at.row, end, scratch, out),
            }
        };
        append().map(Position::before_row).in_array(&self.array)
    }

    fn read_ahead(&self, from: Position, to: Position) -> Result<()> {
        self.cells.iter().try_for_each(|cells| cells.read_ahead((from.row, 0), (to.row, 0)))
    }
}

impl Columns {
    /// Returns the cells of the columns in their places.
    #[expect(clippy::type_complexity, reason = "the parts of VariantRows, and used once")]
    fn into_cells(self, rows: u64) -> FormatResult<(Vec<ColumnCells>, Vec<(ExtractedKind, Vec<u8>)>, Place)> {
        let fixed = [&self.coordinate, &self.start, &self.end, &self.quality];
        let variable = [&self.alleles, &self.id, &self.filters, &self.info, &self.format];
        let extracted = self.extracted.iter().map(|extracted| &extracted.column);
        let contig = match &self.contig {
            ContigOf::Column(column) => Some(&**column),
            _ => None,
        };
        for column in fixed {
            if column.field.values_per_cell != Some(1) || column.field.datatype.size() != 4 {
                return Err(Unrepresentable::new(format!("{} is not one number of 32 bits", column.field.name)));
            }
        }
        let all = fixed.into_iter().chain(variable).chain(extracted).chain(contig).enumerate();
        let cells = all.map(|(number, column)| {
            column.check()?;
            let name = &column.field.name;
            let size = if number == FILTERS { 4 } else { 1 };
            if number > QUALITY && (column.field.values_per_cell.is_some() || column.field.datatype.size() != size) {
                return Err(Unrepresentable::new(format!("{name} is not of values of {size} bytes, of any number")));
            }
            if column.cells() != rows {
                return Err(Unrepresentable::new(format!("{name} has not as many rows as the others")));
            }
            ColumnCells::new(column)
        });
        let cells = cells.collect::<FormatResult<Vec<_>>>()?;
        let contig = match self.contig {
            ContigOf::One(name) => Place::One(name),
            ContigOf::Column(_) => Place::Column,
            ContigOf::Positions(contigs) => Place::Positions(contigs),
        };
        let extracted = self.extracted.into_iter().map(|extracted| (extracted.kind, extracted.name)).collect();
        Ok((cells, extracted, contig))
    }
}
