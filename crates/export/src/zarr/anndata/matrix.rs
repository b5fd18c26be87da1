//! Matrices: sparse ones by compressed rows or columns, and those with a value in every cell.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;
use tilefs_threads as threads;

use super::runs::out_of_order;
use super::{BandedMatrix, CELLS_OF_A_CHUNK, encoding, encoding_of_array};
use crate::column::boxes::{BoxedRows, Boxes};
use crate::column::{Column, Field, FormatResult};
use crate::content::compose::Slice;
use crate::content::element::{Converted, ConvertedColumn, by_elements};
use crate::zarr::array::{ArrayLayout, ZarrArray, chunk_of};
use crate::zarr::types::ZarrType;
use crate::zarr::{ZarrGroup, ZarrNode};

/// The coordinate by which the cells of a matrix are sorted, and which is therefore only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressed {
    /// Compressed sparse rows.
    Rows,
    /// Compressed sparse columns.
    Columns,
}

/// A sparse matrix.
pub struct CompressedMatrix {
    /// The axis whose positions `indptr` counts.
    pub compressed: Compressed,
    /// Numbers of rows and columns.
    pub shape: [u64; 2],
    /// `indptr`: for each value of the sorted coordinate, the number of cells before the first with it, and the total
    /// at the end, `i64`.
    pub starts: Arc<dyn Content>,
    /// The other coordinate of each cell, ascending among cells with the same sorted coordinate.
    pub minor: Column,
    /// The values that are not zero.
    pub values: Column,
    /// The same cells for passes over whole rows, if they are stored row by row or in bands of rows.
    pub banded: Option<BandedMatrix>,
}

impl CompressedMatrix {
    /// Returns the group of the matrix: `data` and `indices` are the cells' values and coordinates, and `indptr` is
    /// computed when read. No cell is read now.
    ///
    /// # Errors
    /// [`Unrepresentable`](crate::Unrepresentable) for values that have no type in Zarr.
    pub fn group(self) -> FormatResult<ZarrGroup> {
        let name = match self.compressed {
            Compressed::Rows => "csr_matrix",
            Compressed::Columns => "csc_matrix",
        };
        let array = |column: Column, cells: u64, dimension: &str| -> FormatResult<ZarrNode> {
            let kind = ZarrType::of(&column.field)?;
            column.check()?;
            let rows: Arc<dyn Boxes> = Arc::new(BoxedRows::of(column, cells));
            let (dimensions, attributes) = (vec![dimension.to_owned()], encoding_of_array());
            let layout = ArrayLayout { chunk: chunk_of(&rows), dimensions, attributes };
            Ok(ZarrNode::Array(Arc::new(ZarrArray::of_values(&rows, kind, None, layout))))
        };
        let (indices, indptr) = (self.indices(), self.indptr(self.starts.clone()));
        let members = vec![
            ("data".to_owned(), array(self.values, CELLS_OF_A_CHUNK, "cells")?),
            ("indices".to_owned(), array(indices, CELLS_OF_A_CHUNK, "cells")?),
            ("indptr".to_owned(), array(indptr, STARTS_OF_A_CHUNK, "starts")?),
        ];
        let mut attributes = encoding(name, "0.1.0");
        attributes.insert("shape".to_owned(), self.shape.to_vec().into());
        Ok(ZarrGroup { attributes, members })
    }

    /// Reads the other coordinate and the value of cells whose numbers are given, range after range: of whole rows, or of
    /// whole columns if these are compressed. Coordinates have the type of [`CompressedMatrix::indices`].
    ///
    /// # Errors
    /// Fails if any of them cannot be read, and for memory of another size.
    pub fn read(&self, ranges: &[Range<u64>], indices: &mut [u8], values: &mut [u8]) -> Result<()> {
        let columns = [self.indices(), self.values.clone()];
        match &self.banded {
            Some(banded) => banded.read(ranges, columns[0].field.datatype.size(), indices, values),
            None => {
                let mut tasks = Vec::new();
                for (column, out) in columns.iter().zip([indices, values]) {
                    add_tasks(column, ranges, out, &mut tasks)?;
                }
                run(tasks)
            }
        }
    }

    /// Returns whether all cells of the shape are stored, row by row, if no cell is stored twice. Reads no cell.
    pub fn is_full(&self) -> bool {
        let [rows, columns] = self.shape;
        let is_by_row = self.compressed == Compressed::Rows && self.minor.field.datatype == Datatype::Int64;
        is_by_row && rows.checked_mul(columns) == Some(self.values.cells())
    }

    /// Reads the values of a matrix that [is full](CompressedMatrix::is_full).
    ///
    /// # Errors
    /// Fails if cells cannot be read; [`Error::Damaged`] if they are not those of the shape, row by row.
    pub fn read_full(&self, values: &mut [u8]) -> Result<()> {
        let cells = self.values.cells();
        if let Some(banded) = &self.banded {
            return banded.read_full(cells, values);
        }
        let columns = self.shape[1].max(1);
        let parts =
            (0..cells).step_by(CELLS_OF_A_CHUNK as usize).map(|first| first..cells.min(first + CELLS_OF_A_CHUNK));
        let checked = threads::map(parts, |part| {
            let mut minor = memory::zeros(part.end - part.start, 8, "columns of a matrix")?;
            self.minor.values.read_at(part.start * 8, &mut minor)?;
            let is_in_place = |(cell, column): (u64, &[u8; 8])| u64::from_le_bytes(*column) == cell % columns;
            match part.zip(minor.as_chunks().0).all(is_in_place) {
                true => Ok(()),
                false => Err(out_of_order()),
            }
        });
        checked.into_iter().collect::<Result<()>>()?;
        let mut tasks = Vec::new();
        add_tasks(&self.values, std::slice::from_ref(&(0..cells)), values, &mut tasks)?;
        run(tasks)
    }

    /// Returns the other coordinate of each cell as SciPy keeps it: in 32 bits where these suffice.
    pub fn indices(&self) -> Column {
        self.narrowed(self.minor.clone())
    }

    /// Returns `indptr` as SciPy keeps it, for a reader of all of it: the first read counts the cells of all rows, if
    /// that is a pass without a cache.
    pub fn whole_indptr(&self) -> Column {
        self.indptr(match &self.banded {
            Some(banded) => banded.bands.starts().clone(),
            None => self.starts.clone(),
        })
    }

    fn indptr(&self, starts: Arc<dyn Content>) -> Column {
        self.narrowed(Column::fixed(Field::new("indptr", Datatype::Int64), vec![starts.len() / 8], starts))
    }

    /// Returns integers in 32 bits if that is enough for all coordinates and counts: SciPy would convert
    /// larger ones.
    fn narrowed(&self, column: Column) -> Column {
        let [rows, columns] = self.shape;
        let greatest = rows.max(columns).max(self.minor.cells());
        let is_narrow = i32::try_from(greatest).is_ok() && self.minor.field.datatype == Datatype::Int64;
        if is_narrow { in_32_bits(column) } else { column }
    }
}

/// Consecutive cells of a column, and the memory for them.
struct ReadTask<'c, 'o> {
    column: &'c dyn Content,
    offset: u64,
    out: &'o mut [u8],
}

fn run(tasks: Vec<ReadTask<'_, '_>>) -> Result<()> {
    threads::map(tasks.into_iter(), |task| task.column.read_at(task.offset, task.out)).into_iter().collect()
}

/// Adds the tasks of reading ranges of the cells of a column, each of as many cells as a chunk has.
fn add_tasks<'c, 'o>(
    column: &'c Column,
    ranges: &[Range<u64>],
    mut out: &'o mut [u8],
    tasks: &mut Vec<ReadTask<'c, 'o>>,
) -> Result<()> {
    let size = column.field.datatype.size() as u64;
    for range in ranges {
        let mut cell = range.start;
        while cell < range.end {
            let count = CELLS_OF_A_CHUNK.min(range.end - cell);
            let own = out.split_off_mut(..(count * size) as usize);
            let own = own.ok_or_else(|| Error::internal("ranges of more cells than were counted"))?;
            tasks.push(ReadTask { column: &*column.values, offset: cell.saturating_mul(size), out: own });
            cell += count;
        }
    }
    Ok(())
}

/// Returns a column of integers of 64 bits as one of 32 bits. Reading an integer that does not fit is an error.
fn in_32_bits(column: Column) -> Column {
    let fitting = |value| i32::try_from(value).ok().map(i32::to_le_bytes);
    let named = ConvertedColumn::new(&column.field.name);
    let values = Arc::new(Converted::integers(column.values, "no integer of 32 bits", named, fitting));
    let field = Field { datatype: Datatype::Int32, ..column.field };
    Column { field, values, ..column }
}

/// Returns `indptr`, `i64`, of cells sorted by these coordinates, which are less than `length`. Nothing is read now.
pub fn starts_of(coordinates: Arc<dyn Content>, length: u64) -> Arc<dyn Content> {
    Arc::new(Starts::new(coordinates, length.saturating_add(1)))
}

/// Returns a matrix that has all cells of its shape, in row-major order.
///
/// # Errors
/// [`Unrepresentable`](crate::Unrepresentable) for values that have no type in Zarr.
pub fn full(values: &Column, shape: [u64; 2]) -> FormatResult<ZarrNode> {
    let kind = ZarrType::of(&values.field)?;
    values.check()?;
    let size = kind.cell_size().unwrap_or(1);
    let [rows, columns] = shape;
    let chunk = vec![(CELLS_OF_A_CHUNK / columns.max(1)).clamp(1, rows.max(1)), columns.max(1)];
    let line = columns.saturating_mul(size);
    let (cells, field) = (values.values.clone(), values.field.clone());
    let cells = move |own: &IndexBox| {
        let (&[first, _], &[count, _]) = (own.first.as_slice(), own.count.as_slice()) else {
            return Err(Error::internal("a chunk of a matrix has two axes"));
        };
        let values = Slice::new(cells.clone(), first.saturating_mul(line), count.saturating_mul(line));
        Ok(Column::fixed(field.clone(), own.count.clone(), Arc::new(values)))
    };
    let dimensions = vec!["rows".to_owned(), "columns".to_owned()];
    let layout = ArrayLayout { chunk, dimensions, attributes: encoding_of_array() };
    Ok(ZarrNode::Array(Arc::new(ZarrArray::new(shape.to_vec(), kind, layout, cells))))
}

/// Returns the values of a dense array, whose chunks are its tiles.
///
/// # Errors
/// [`Unrepresentable`](crate::Unrepresentable) for values that have no type in Zarr.
pub fn dense(values: &Arc<dyn Boxes>) -> FormatResult<ZarrNode> {
    let kind = ZarrType::of(values.field())?;
    let dimensions = (0..values.shape().len()).map(|axis| format!("axis_{axis}")).collect();
    let layout = ArrayLayout { chunk: chunk_of(values), dimensions, attributes: encoding_of_array() };
    Ok(ZarrNode::Array(Arc::new(ZarrArray::of_values(values, kind, None, layout))))
}

/// Numbers per chunk of `indptr`; each chunk is computed on its own.
const STARTS_OF_A_CHUNK: u64 = 1 << 16;

/// Number of reads whose ends are remembered: those of neighbouring chunks.
const ENDS: usize = 64;

/// Number of coordinates examined at a time.
const LOOKED_AT: usize = 1 << 16;

/// `indptr`: for each coordinate from 0 on, the number of cells before the first with it, and the total at the end,
/// `i64`.
///
/// Only the ends of recent reads are kept: other starts are found by a binary search among the sorted coordinates, and
/// the coordinates of the range are then read once. So reading everything in order, or several parts concurrently, is
/// one pass over the coordinates. A read takes memory for some coordinates.
struct Starts {
    /// `i64`, ascending.
    coordinates: Arc<dyn Content>,
    /// The number of elements of `indptr`.
    count: u64,
    /// Coordinates before which reads ended, each with a cell that is not behind the first with that coordinate.
    ends: LruCache<u64, u64>,
}

impl Starts {
    fn new(coordinates: Arc<dyn Content>, count: u64) -> Self {
        Starts { coordinates, count, ends: LruCache::new(ENDS) }
    }

    fn cells(&self) -> u64 {
        self.coordinates.len() / 8
    }

    /// Returns how many cells precede the first with this coordinate or a greater one.
    fn cells_before(&self, coordinate: u64) -> Result<u64> {
        let mut bytes = [0; 8];
        partition_point(0..self.cells(), |cell| {
            self.coordinates.read_at(cell * 8, &mut bytes)?;
            Ok(parsed(bytes)? < coordinate)
        })
    }

    /// Returns a cell from which to search forward for the first with this coordinate or a greater one.
    fn cell_near(&self, coordinate: u64) -> Result<u64> {
        match self.ends.get(&coordinate) {
            _ if coordinate == 0 => Ok(0),
            Some(cell) => Ok(cell),
            None => self.cells_before(coordinate),
        }
    }

    /// Reads the numbers from that of a coordinate on; `out` has space for at least one.
    fn read_from(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let end = first + out.len() / 8;
        let mut cell = self.cell_near(first)?;
        let Some(out) = out.wanted() else {
            let behind = self.cells_before(end - 1)?.saturating_add(1).min(self.cells());
            return self.coordinates.read(cell * 8, Output::Ahead(behind.saturating_sub(cell) * 8));
        };
        let mut numbers = out.as_chunks_mut::<8>().0.iter_mut();
        let (mut next, mut last) = (first, cell);
        let (mut bytes, mut before) = (Vec::new(), 0);
        while next < end && cell < self.cells() {
            let count = (self.cells() - cell).min(LOOKED_AT as u64);
            bytes.resize(count as usize * 8, 0);
            self.coordinates.read_at(cell * 8, &mut bytes)?;
            for (coordinate, at) in bytes.as_chunks::<8>().0.iter().zip(cell..) {
                let coordinate = parsed(*coordinate)?;
                if coordinate < before {
                    return Err(Error::damaged("cells that are not in the order of their coordinates"));
                }
                before = coordinate;
                if coordinate < next {
                    continue;
                }
                let behind = coordinate.saturating_add(1).min(end);
                numbers.by_ref().take((behind - next) as usize).for_each(|number| *number = at.to_le_bytes());
                (next, last) = (behind, at);
                if next == end {
                    break;
                }
            }
            cell += count;
        }
        if next < end {
            last = self.cells();
            numbers.for_each(|number| *number = last.to_le_bytes());
        }
        self.ends.put(end, last);
        Ok(())
    }
}

/// Decodes a coordinate, which must not be negative.
fn parsed(bytes: [u8; 8]) -> Result<u64> {
    u64::try_from(i64::from_le_bytes(bytes)).map_err(|_| Error::damaged("a cell of a matrix before its first row"))
}

impl Content for Starts {
    fn len(&self) -> u64 {
        self.count.saturating_mul(8)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(8, usize::MAX, offset, out, |first, out| self.read_from(first, out))
    }
}
