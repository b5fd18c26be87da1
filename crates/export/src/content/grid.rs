//! Rows as the cells of a grid: its axes are the distinct coordinates of the rows, and a cell without a row holds a fill
//! value.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::dense::{AxisSelection, Selection};

use crate::content::element::{BLOCK, by_elements};

/// Maximum number of coordinates along an axis.
const MAX_COORDINATES: usize = 1 << 22;

/// Number of rows that are placed at a time.
const BLOCK_ROWS: u64 = 4096;

/// Maximum number of cells for each row, and for a grid of few rows: points that lie on no grid would fill a disk.
const MAX_CELLS_PER_ROW: u64 = 64;
const MAX_CELLS_OF_FEW_ROWS: u64 = 1 << 20;

/// The coordinates along one dimension, row by row.
#[derive(Clone)]
pub struct RowCoordinates {
    /// A number, date or time.
    pub datatype: Datatype,
    /// The values, little-endian.
    pub values: Arc<dyn Content>,
}

impl RowCoordinates {
    /// Returns the coordinates in a range of rows, and for each a number that is greater for a greater coordinate.
    fn read(&self, rows: Range<u64>) -> Result<(Vec<u8>, Vec<u64>)> {
        let size = self.datatype.size();
        let mut bytes = vec![0; (rows.end - rows.start) as usize * size];
        self.values.read_at(rows.start * size as u64, &mut bytes)?;
        let orders = orders(self.datatype, &bytes)?;
        Ok((bytes, orders))
    }

    fn rows(&self) -> u64 {
        self.values.len() / self.datatype.size().max(1) as u64
    }
}

/// Returns for each value a number that is greater for a greater value. 0.0 and -0.0 have the same.
fn orders(datatype: Datatype, bytes: &[u8]) -> Result<Vec<u64>> {
    const SIGN: u64 = 1 << 63;
    let of_float = |value: f64| {
        // Adding zero turns -0.0 into 0.0.
        let bits = (value + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    };
    // One loop for each of the common types, because all coordinates of an array pass here.
    Ok(match (datatype.kind(), datatype.size()) {
        (Kind::Float, 4) => {
            bytes.as_chunks().0.iter().map(|value| of_float(f32::from_le_bytes(*value).into())).collect()
        }
        (Kind::Float, _) => bytes.as_chunks().0.iter().map(|value| of_float(f64::from_le_bytes(*value))).collect(),
        (Kind::Signed, 8) => bytes.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value) ^ SIGN).collect(),
        (Kind::Unsigned, 8) => bytes.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).collect(),
        (_, size) => {
            bytes.chunks_exact(size).map(|value| order(Scalar::parse(datatype, value)?)).collect::<Result<_>>()?
        }
    })
}

/// As [`orders`], for an integer.
fn order(value: Scalar) -> Result<u64> {
    match value {
        Scalar::Signed(value) => Ok((value as u64) ^ (1 << 63)),
        Scalar::Unsigned(value) => Ok(value),
        _ => Err(Error::internal("texts are no coordinates of a grid")),
    }
}

/// Returns the blocks of some rows.
fn blocks(rows: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = rows.end;
    rows.step_by(BLOCK_ROWS as usize).map(move |first| first..end.min(first + BLOCK_ROWS))
}

/// The distinct coordinates along an axis of a grid, in ascending order. Memory: 16 bytes for each, of which there are at
/// most 2^22.
pub struct CoordinateAxis {
    orders: Vec<u64>,
    /// The bytes of the coordinates, one after the other.
    values: Arc<Vec<u8>>,
}

impl CoordinateAxis {
    /// Finds the coordinates along one dimension of several arrays, which are of the same type. Reads all of them.
    ///
    /// # Errors
    /// Fails if coordinates cannot be read; [`Error::Unsupported`] if more than 2^22 differ.
    pub fn of(columns: &[RowCoordinates]) -> Result<Self> {
        let mut found = DistinctCoordinates::default();
        for column in columns {
            for rows in blocks(0..column.rows()) {
                let (bytes, orders) = column.read(rows)?;
                for (order, value) in orders.into_iter().zip(bytes.chunks_exact(column.datatype.size())) {
                    found.add(order, value)?;
                }
            }
        }
        Ok(found.into_axis())
    }

    /// Returns the axis of `length` positions, counted from 0.
    pub fn of_positions(length: u64) -> Result<Self> {
        if length > MAX_COORDINATES as u64 {
            return Err(Error::unsupported(format!("more than {MAX_COORDINATES} positions along a dimension")));
        }
        let orders: Vec<u64> = (0..length).collect();
        let values = orders.iter().flat_map(|position| position.to_le_bytes()).collect();
        Ok(CoordinateAxis { orders, values: Arc::new(values) })
    }

    /// Returns the number of coordinates.
    pub fn len(&self) -> u64 {
        self.orders.len() as u64
    }

    /// Returns the number of positions up to the greatest coordinate, if coordinates are positions counted from 0.
    pub fn positions(&self) -> u64 {
        self.orders.last().map_or(0, |last| last.saturating_add(1))
    }

    /// Returns whether there are no coordinates.
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Returns the coordinates, little-endian.
    pub fn values(&self) -> &Arc<Vec<u8>> {
        &self.values
    }

    /// Returns the place of a coordinate among those of the axis. It probably is `last` or the one after it.
    fn place(&self, order: u64, last: usize) -> Option<usize> {
        let is_at = |place: &usize| self.orders.get(*place) == Some(&order);
        [last, last + 1].into_iter().find(is_at).or_else(|| self.orders.binary_search(&order).ok())
    }
}

/// Different coordinates, in the order in which they were found.
#[derive(Default)]
struct DistinctCoordinates {
    orders: Vec<u64>,
    values: Vec<Vec<u8>>,
    places: HashMap<u64, usize>,
    /// The place of the coordinate that was added last.
    last: usize,
}

impl DistinctCoordinates {
    /// Adds a coordinate. Rows of a grid repeat the same ones in the same order, so it probably is the last one or the one
    /// after it.
    fn add(&mut self, order: u64, value: &[u8]) -> Result<()> {
        let is_at = |place: &usize| self.orders.get(*place) == Some(&order);
        let known = [self.last, self.last + 1].into_iter().find(is_at).or_else(|| self.places.get(&order).copied());
        if known.is_none() && self.orders.len() == MAX_COORDINATES {
            return Err(Error::unsupported(format!("more than {MAX_COORDINATES} coordinates along a dimension")));
        }
        self.last = known.unwrap_or_else(|| {
            self.places.insert(order, self.orders.len());
            self.orders.push(order);
            self.values.push(value.to_vec());
            self.orders.len() - 1
        });
        Ok(())
    }

    fn into_axis(self) -> CoordinateAxis {
        let mut all: Vec<(u64, Vec<u8>)> = self.orders.into_iter().zip(self.values).collect();
        all.sort_unstable_by_key(|(order, _)| *order);
        let (orders, values): (Vec<u64>, Vec<Vec<u8>>) = all.into_iter().unzip();
        CoordinateAxis { orders, values: Arc::new(values.concat()) }
    }
}

/// The cells that rows are in a grid. Memory: 8 bytes for every 4096 rows, in addition to the axes.
pub struct RowGrid {
    dimensions: Vec<(RowCoordinates, Arc<CoordinateAxis>)>,
    rows: u64,
    cells: u64,
    /// The cell of the first row of each block.
    starts: Vec<u64>,
}

impl RowGrid {
    /// Places rows, which are sorted by their coordinates along the dimensions, the first dimension most significant. Each
    /// axis has all coordinates of its dimension. Reads the coordinates.
    ///
    /// # Errors
    /// Fails if coordinates cannot be read; [`Error::Unsupported`] if the grid has far more cells than rows, or several
    /// rows in a cell.
    pub fn new(dimensions: Vec<(RowCoordinates, Arc<CoordinateAxis>)>) -> Result<Self> {
        let rows = dimensions.first().map_or(0, |(coordinates, _)| coordinates.rows());
        let cells = dimensions.iter().try_fold(1u64, |cells, (_, axis)| cells.checked_mul(axis.len()));
        let most = rows.saturating_mul(MAX_CELLS_PER_ROW).max(MAX_CELLS_OF_FEW_ROWS);
        let cells = cells.filter(|cells| *cells <= most).ok_or_else(|| {
            let lengths: Vec<String> = dimensions.iter().map(|(_, axis)| axis.len().to_string()).collect();
            Error::unsupported(format!("{rows} points lie on no grid: it would have {} cells", lengths.join(" x ")))
        })?;
        let mut grid = RowGrid { dimensions, rows, cells, starts: Vec::new() };
        let mut last = None;
        for block in blocks(0..rows) {
            let cells = grid.cells_of(block)?;
            for &cell in &cells {
                if last.is_some_and(|last| cell <= last) {
                    return Err(Error::unsupported("several points have the same coordinates"));
                }
                last = Some(cell);
            }
            grid.starts.extend(cells.first());
        }
        Ok(grid)
    }

    /// Returns the axes.
    pub fn axes(&self) -> impl Iterator<Item = &Arc<CoordinateAxis>> {
        self.dimensions.iter().map(|(_, axis)| axis)
    }

    /// Returns whether each cell has a row: their order is then the same.
    pub fn is_complete(&self) -> bool {
        self.rows == self.cells
    }

    /// Returns the values of a column of rows as cells of the grid. `fill` are the bytes of a cell without a row, and not
    /// empty.
    pub fn values(self: &Arc<Self>, of: Arc<dyn Content>, fill: Vec<u8>) -> Arc<dyn Content> {
        match self.is_complete() {
            true => of,
            false => Arc::new(GridValues { grid: self.clone(), of, fill }),
        }
    }

    /// Returns the cells of some rows.
    fn cells_of(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let mut cells = vec![0u64; (rows.end - rows.start) as usize];
        for (coordinates, axis) in &self.dimensions {
            let (_, orders) = coordinates.read(rows.clone())?;
            let mut place = 0;
            for (cell, order) in cells.iter_mut().zip(orders) {
                place = axis.place(order, place).ok_or_else(|| Error::internal("a coordinate outside its axis"))?;
                // Less than the number of cells.
                *cell = *cell * axis.len() + place as u64;
            }
        }
        Ok(cells)
    }

    /// Returns the rows among which those of some cells are: whole blocks.
    fn rows_around(&self, cells: &Range<u64>) -> Range<u64> {
        let first = self.starts.partition_point(|start| *start <= cells.start).saturating_sub(1) as u64;
        let end = self.starts.partition_point(|start| *start < cells.end) as u64;
        first * BLOCK_ROWS..(end * BLOCK_ROWS).min(self.rows).max(first * BLOCK_ROWS)
    }
}

/// The values of rows as cells of a grid, some of which have no row.
struct GridValues {
    grid: Arc<RowGrid>,
    of: Arc<dyn Content>,
    fill: Vec<u8>,
}

impl GridValues {
    /// Writes the values of consecutive cells, and reads those of a block of rows that are in these cells.
    fn place(&self, cells: &Range<u64>, block: Range<u64>, out: &mut [u8]) -> Result<()> {
        let width = self.fill.len();
        let places = self.grid.cells_of(block.clone())?;
        let within =
            places.partition_point(|cell| *cell < cells.start)..places.partition_point(|cell| *cell < cells.end);
        let places = places.get(within.clone()).unwrap_or(&[]);
        let mut values = vec![0; places.len() * width];
        self.of.read_at((block.start + within.start as u64) * width as u64, &mut values)?;
        for (cell, value) in places.iter().zip(values.chunks_exact(width)) {
            let place = (cell - cells.start) as usize * width;
            if let Some(out) = out.get_mut(place..place + width) {
                out.copy_from_slice(value);
            }
        }
        Ok(())
    }

    /// Prefetches the values and the coordinates of rows.
    fn read_ahead(&self, rows: Range<u64>) -> Result<()> {
        let of = |content: &Arc<dyn Content>, width: u64| {
            content.read(rows.start * width, Output::Ahead((rows.end - rows.start) * width))
        };
        of(&self.of, self.fill.len() as u64)?;
        self.grid.dimensions.iter().try_for_each(|(one, _)| of(&one.values, one.datatype.size() as u64))
    }
}

impl Content for GridValues {
    fn len(&self) -> u64 {
        self.grid.cells.saturating_mul(self.fill.len() as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let width = self.fill.len();
        by_elements(width, BLOCK, offset, out, |first, mut out| {
            let cells = first..first + out.len() / width as u64;
            let rows = self.grid.rows_around(&cells);
            let Some(out) = out.wanted() else { return self.read_ahead(rows) };
            out.chunks_exact_mut(width).for_each(|cell| cell.copy_from_slice(&self.fill));
            blocks(rows).try_for_each(|block| self.place(&cells, block, out))
        })
    }
}

/// The cells of a grid at some indexes along each axis.
pub struct SelectedCells {
    of: Arc<dyn Content>,
    /// The lengths of the axes of `of`.
    shape: Vec<u64>,
    selection: Selection,
    /// Bytes of a cell, at least 1.
    width: usize,
}

impl SelectedCells {
    /// Creates the content, which is `of` itself if everything is selected. The selected positions lie within `shape`,
    /// the lengths of the axes of `of`.
    pub fn within(of: Arc<dyn Content>, shape: Vec<u64>, selection: Selection, width: usize) -> Arc<dyn Content> {
        let covers = |(axis, length): (&AxisSelection, &u64)| {
            axis.len() == *length && axis.ranges().iter().all(|range| (range.first, range.step) == (0, 1))
        };
        match selection.axes().iter().zip(&shape).all(covers) {
            true => of,
            false => Arc::new(SelectedCells { of, shape, selection, width: width.max(1) }),
        }
    }

    /// Writes the cells of one line, from an index along the last axis on. `line` is the number of the line.
    fn line(&self, mut line: u64, index: u64, mut out: Output<'_>) -> Result<()> {
        let past = || Error::internal("a cell past the end of a selection");
        let width = self.width as u64;
        let (last, outer) = self.selection.axes().split_last().ok_or_else(past)?;
        let (&length, lengths) = self.shape.split_last().ok_or_else(past)?;
        let mut lines_before = 0u64;
        let mut lines_per_step = 1u64;
        for (axis, length) in outer.iter().zip(lengths).rev() {
            let position = axis.position(line % axis.len().max(1)).ok_or_else(past)?;
            lines_before += position * lines_per_step;
            lines_per_step = lines_per_step.saturating_mul(*length);
            line /= axis.len().max(1);
        }
        let start = lines_before * length;
        for run in last.runs(index, out.len() / width) {
            let (mut now, later) = out.split_at(run.count * width);
            match run.step {
                1 => self.of.read((start + run.first) * width, now)?,
                _ => {
                    for number in 0..run.count {
                        let position = run.first.wrapping_add((run.step as u64).wrapping_mul(number));
                        self.of.read((start + position) * width, now.part(number * width..(number + 1) * width))?;
                    }
                }
            }
            out = later;
        }
        Ok(())
    }
}

impl Content for SelectedCells {
    fn len(&self) -> u64 {
        self.selection.cells().saturating_mul(self.width as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        // Prefetching a long range line by line is what reading it does.
        let length = self.selection.axes().last().map_or(1, |axis| axis.len().max(1));
        by_elements(self.width, BLOCK, offset, out, |first, mut out| {
            let (mut cell, end) = (first, first + out.len() / self.width as u64);
            while cell < end {
                let count = (length - cell % length).min(end - cell);
                let part = (cell - first) * self.width as u64..(cell - first + count) * self.width as u64;
                self.line(cell / length, cell % length, out.part(part))?;
                cell += count;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tilefs_reader::array::dense::AxisRange;

    use super::*;
    use crate::testing::{assert_random_access, read_all};

    /// Returns the grid of these points, and the value of each: its number, in the order of coordinates.
    fn grid_of(points: &[(i32, f64)]) -> Result<(Arc<RowGrid>, Arc<dyn Content>)> {
        let column = |datatype, values: Vec<u8>| RowCoordinates { datatype, values: Arc::new(values) };
        let first = column(Datatype::Int32, points.iter().flat_map(|point| point.0.to_le_bytes()).collect());
        let second = column(Datatype::Float64, points.iter().flat_map(|point| point.1.to_le_bytes()).collect());
        let axis = |column: &RowCoordinates| CoordinateAxis::of(std::slice::from_ref(column)).map(Arc::new);
        let axes = [axis(&first)?, axis(&second)?];
        let grid = RowGrid::new([first, second].into_iter().zip(axes).collect())?;
        let values: Vec<u8> = (1..=points.len() as u32).flat_map(u32::to_le_bytes).collect();
        Ok((Arc::new(grid), Arc::new(values)))
    }

    proptest! {
        #[test]
        fn each_row_is_at_its_coordinates(points in proptest::collection::btree_set((-4i32..4, -3i8..3), 1..60)) {
            let points: Vec<(i32, f64)> = points.iter().map(|(x, y)| (*x, f64::from(*y) / 2.0)).collect();
            let (grid, values) = grid_of(&points).unwrap();
            let sorted = |mut all: Vec<f64>| { all.sort_by(f64::total_cmp); all.dedup(); all };
            let lines = sorted(points.iter().map(|point| point.0.into()).collect());
            let columns = sorted(points.iter().map(|point| point.1).collect());
            let mut expected = Vec::new();
            for x in &lines {
                for y in &columns {
                    let number = points.iter().position(|point| f64::from(point.0) == *x && point.1 == *y);
                    expected.extend(number.map_or(u32::MAX, |number| number as u32 + 1).to_le_bytes());
                }
            }
            let cells = grid.values(values, vec![0xff; 4]);
            prop_assert_eq!(read_all(&*cells), expected);
            assert_random_access(&*cells);
            prop_assert_eq!(grid.is_complete(), points.len() == lines.len() * columns.len());
        }

        #[test]
        fn orders_compare_as_coordinates_do(first in any::<[u8; 8]>(), second in any::<[u8; 8]>()) {
            use Datatype::{DateTimeDay, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
            for datatype in [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64, DateTimeDay] {
                let [first, second] = [&first[..datatype.size()], &second[..datatype.size()]];
                let values = [first, second].map(|bytes| Scalar::parse(datatype, bytes).unwrap());
                if !values.iter().any(Scalar::is_nan) {
                    let orders = orders(datatype, &[first, second].concat()).unwrap();
                    prop_assert_eq!(orders[0].cmp(&orders[1]), values[0].compare(&values[1]));
                }
            }
        }

        #[test]
        fn selected_cells_are_those_at_the_indexes(
            shape in (1u64..5, 1u64..5, 1u64..7),
            picks in proptest::collection::vec((0u64..7, -2i64..3, 0u64..4), 3),
        ) {
            let shape = vec![shape.0, shape.1, shape.2];
            let cells: u64 = shape.iter().product();
            let of: Arc<dyn Content> = Arc::new((0..cells).flat_map(|cell| (cell as u16).to_le_bytes()).collect::<Vec<u8>>());
            let axes: Vec<AxisSelection> = picks.iter().zip(&shape).map(|((first, step, count), length)| {
                let step = if *step == 0 { 1 } else { *step };
                let first = first % length;
                let room = if step > 0 { (length - 1 - first) / step as u64 } else { first / step.unsigned_abs() };
                AxisSelection::new([AxisRange { first, step, count: (*count).min(room + 1) }], *length).unwrap()
            }).collect();
            let positions: Vec<Vec<u64>> = axes.iter()
                .map(|axis| (0..axis.len()).map(|index| axis.position(index).unwrap()).collect())
                .collect();
            let mut expected = Vec::new();
            for a in &positions[0] {
                for b in &positions[1] {
                    for c in &positions[2] {
                        expected.extend((((a * shape[1] + b) * shape[2] + c) as u16).to_le_bytes());
                    }
                }
            }
            let selected = SelectedCells::within(of, shape, Selection::new(axes).unwrap(), 2);
            prop_assert_eq!(read_all(&*selected), expected);
            assert_random_access(&*selected);
        }
    }

    #[test]
    fn many_blocks_of_rows_join_without_a_seam() {
        // All but every seventh cell of 100 x 200.
        let all = (0..100).flat_map(|x| (0..200).map(move |y| (x, f64::from(y))));
        let points: Vec<(i32, f64)> =
            all.enumerate().filter(|(number, _)| number % 7 != 0).map(|(_, point)| point).collect();
        let (grid, values) = grid_of(&points).unwrap();
        let cells = read_all(&*grid.values(values, vec![0; 4]));
        let mut next = 0;
        for (number, cell) in cells.as_chunks().0.iter().enumerate() {
            next += u32::from(number % 7 != 0);
            assert_eq!(u32::from_le_bytes(*cell), if number % 7 == 0 { 0 } else { next });
        }
    }

    #[test]
    fn zeros_of_both_signs_are_one_coordinate() {
        let (grid, _) = grid_of(&[(0, -0.0), (1, 0.0)]).unwrap();
        assert_eq!(grid.axes().map(|axis| axis.len()).collect::<Vec<_>>(), [2, 1]);
        assert!(matches!(grid_of(&[(0, -0.0), (0, 0.0)]), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn points_that_lie_on_no_grid_are_refused() {
        let points: Vec<(i32, f64)> = (0..2000).map(|number| (number, f64::from(number))).collect();
        let error = grid_of(&points).err().unwrap();
        assert!(error.to_string().contains("it would have 2000 x 2000 cells"), "{error}");
    }
}
