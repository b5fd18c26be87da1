//! Columns that can be read box by box, for formats made of tiles or chunks. A box of the array is read as a column of
//! its own, and can be padded to the size of the tile that it fills.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;
use tilefs_reader::array::dense::{IndexBox, Selection};
use tilefs_threads::single_flight::SingleFlight;

use crate::column::{Column, Columns, Field};
use crate::content::compose::Slice;
use crate::content::element::{Converted, ConvertedColumn, by_elements};
use crate::content::offsets::wrong_offsets;

/// The cells of an attribute or dimension, readable in any box.
pub trait Boxes: Send + Sync {
    /// Returns the description of the cells.
    fn field(&self) -> &Field;

    /// Returns the length of each axis.
    fn shape(&self) -> &[u64];

    /// Returns the length of the array's tiles along each axis, at least 1. An array without tiles returns lengths that
    /// are efficient to read at once.
    fn extents(&self) -> Vec<u64>;

    /// Records what the cells depend on, as [`Content::record`] does.
    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }

    /// Returns the cells of a box, which must lie within the shape, in row-major order.
    ///
    /// # Errors
    /// Fails if required metadata or, for cells of variable length, their offsets cannot be read.
    fn column(&self, cells: &IndexBox) -> Result<Column>;
}

/// Cells that can be read at intervals, without the cells between them.
pub trait SpacedBoxes: Boxes {
    /// Returns the cells at all combinations of the selected indexes along each axis, in row-major order. The indexes
    /// must lie within the shape.
    ///
    /// # Errors
    /// As for [`Boxes::column`].
    fn spaced_column(&self, indexes: &Selection) -> Result<Column>;
}

/// All columns of one array or slice, read box by box.
pub type BoxedColumns = Columns<Arc<dyn Boxes>>;

/// A function that makes the whole column, called when any part of the column is first needed.
type MakeColumn = Box<dyn Fn() -> Result<Column> + Send + Sync>;

/// A column with one axis, whose boxes are parts of its contents.
pub struct BoxedRows {
    field: Field,
    shape: [u64; 1],
    extent: u64,
    make: MakeColumn,
    made: SingleFlight<Column>,
}

/// Preferred size of a box of rows in bytes. For values of variable length it counts only the offsets.
const BYTES_OF_ROWS: u64 = 1 << 20;

impl BoxedRows {
    /// Creates a column with `rows` rows; `make` returns all of them.
    pub fn new(field: Field, rows: u64, make: impl Fn() -> Result<Column> + Send + Sync + 'static) -> Self {
        let extent = (BYTES_OF_ROWS / field.cell_size().unwrap_or(8).max(1)).max(1);
        BoxedRows { field, shape: [rows], extent, make: Box::new(make), made: SingleFlight::new() }
    }

    /// Serves all rows of a column in boxes of `extent` rows.
    pub fn of(column: Column, extent: u64) -> Self {
        let (field, rows) = (column.field.clone(), column.cells());
        BoxedRows { extent: extent.max(1), ..BoxedRows::new(field, rows, move || Ok(column.clone())) }
    }

    fn all(&self) -> Result<Column> {
        self.made.get_or_retry(&self.make).cloned()
    }
}

impl Boxes for BoxedRows {
    fn field(&self) -> &Field {
        &self.field
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        vec![self.extent]
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let (&[first], &[count]) = (cells.first.as_slice(), cells.count.as_slice()) else {
            return Err(Error::internal("a box of rows has one axis"));
        };
        let all = self.all()?;
        let part = |content: Arc<dyn Content>, size: u64| -> Arc<dyn Content> {
            Arc::new(Slice::new(content, first.saturating_mul(size), count.saturating_mul(size)))
        };
        let validity = all.validity.map(|validity| validity.part(first, count));
        let (values, offsets) = match (all.offsets, all.field.cell_size()) {
            (None, size) => (part(all.values, size.unwrap_or(1)), None),
            (Some(offsets), _) => {
                let (start, end) = (offsets.at(first)?, offsets.at(first.saturating_add(count))?);
                let length = end.checked_sub(start).filter(|_| end <= all.values.len());
                let length = length.ok_or_else(wrong_offsets)?;
                let own = Arc::new(Slice::new(
                    offsets.content(),
                    first.saturating_mul(8),
                    count.saturating_add(1).saturating_mul(8),
                ));
                let named = ConvertedColumn::new(&all.field.name).from_row(Some(first));
                let from_here = Converted::integers(own, "before the first offset", named, move |offset| {
                    Some((offset as u64).checked_sub(start)?.to_le_bytes())
                });
                (Arc::new(Slice::new(all.values, start, length)) as _, Some(Arc::new(from_here).into()))
            }
        };
        Ok(Column { shape: vec![count], values, offsets, validity, ..all })
    }
}

/// Returns the box of a tile in a grid of tiles over a shape, cut to the shape. `tile` is the tile's number along each
/// axis. `None` if there is no such tile.
pub(crate) fn box_of_tile(shape: &[u64], extents: &[u64], tile: &[u64]) -> Option<IndexBox> {
    if tile.len() != shape.len() {
        return None;
    }
    let mut cells = IndexBox { first: Vec::new(), count: Vec::new() };
    for ((&number, &length), &extent) in tile.iter().zip(shape).zip(extents) {
        let first = number.checked_mul(extent).filter(|&first| first < length)?;
        cells.first.push(first);
        cells.count.push(extent.min(length - first));
    }
    Some(cells)
}

/// A box of cells at the origin of a larger box, both numbered in row-major order.
#[derive(Debug, Clone)]
pub struct PaddedBox {
    shape: Vec<u64>,
    frame: Vec<u64>,
}

impl PaddedBox {
    /// Creates a box with the lengths `shape` in a box with the lengths `frame`, none of which is smaller. Each has
    /// fewer than 2^63 cells.
    pub fn new(shape: &[u64], frame: &[u64]) -> Self {
        let mut own = PaddedBox { shape: Vec::new(), frame: Vec::new() };
        for (&length, &framed) in shape.iter().zip(frame) {
            match (own.shape.last_mut(), own.frame.last_mut()) {
                // Along an axis that the box fills, its cells continue where the cells of the axis before end.
                (Some(before), Some(framed_before)) if length == framed => {
                    *before *= length;
                    *framed_before *= framed;
                }
                _ => {
                    own.shape.push(length);
                    own.frame.push(framed);
                }
            }
        }
        own
    }

    /// Returns the number of cells of the frame.
    pub fn cells(&self) -> u64 {
        self.frame.iter().product()
    }

    /// Returns how many cells of the inner box precede a cell of the frame.
    pub(crate) fn own_before(&self, cell: u64) -> u64 {
        let (mut in_frame, mut own) = (self.cells(), self.shape.iter().product::<u64>());
        if cell >= in_frame {
            return own;
        }
        let (mut before, mut rest) = (0, cell);
        for (&length, &framed) in self.shape.iter().zip(&self.frame) {
            in_frame /= framed.max(1);
            own /= length.max(1);
            let index = rest / in_frame.max(1);
            rest %= in_frame.max(1);
            if index >= length {
                return before + length * own;
            }
            before += index * own;
        }
        before
    }
}

/// The values of a box at the origin of a larger one; all other cells hold a fill value.
pub struct Framed {
    of: Arc<dyn Content>,
    frame: PaddedBox,
    /// The bytes of one cell; not empty.
    fill: Vec<u8>,
}

impl Framed {
    /// Pads `of` to `frame`, if `frame` is larger than `shape`. `of` has the cells of `shape`, each as long as `fill`.
    pub fn within(of: Arc<dyn Content>, shape: &[u64], frame: &[u64], fill: Vec<u8>) -> Arc<dyn Content> {
        if shape == frame {
            return of;
        }
        Arc::new(Framed { of, frame: PaddedBox::new(shape, frame), fill })
    }

    /// Reads whole cells starting at cell `first`.
    fn read_cells(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let size = self.fill.len() as u64;
        let last = first + out.len() / size;
        let own = self.frame.own_before(first)..self.frame.own_before(last);
        let mut bytes = Vec::new();
        self.of.read(own.start * size, out.aside((own.end - own.start) * size, &mut bytes))?;
        let Some(mut out) = out.wanted() else { return Ok(()) };
        let line = self.frame.frame.last().copied().unwrap_or(1).max(1);
        let mut rest = bytes.as_slice();
        let mut cell = first;
        while cell < last {
            let end = (cell - cell % line + line).min(last);
            let count = self.frame.own_before(end) - self.frame.own_before(cell);
            let (now, later) = out.split_at_mut(((end - cell) * size) as usize);
            let (values, behind) = now.split_at_mut((count * size) as usize);
            let (from, more) = rest.split_at(values.len());
            values.copy_from_slice(from);
            behind.chunks_exact_mut(self.fill.len()).for_each(|cell| cell.copy_from_slice(&self.fill));
            (out, rest, cell) = (later, more, end);
        }
        Ok(())
    }
}

impl Content for Framed {
    fn len(&self) -> u64 {
        self.frame.cells().saturating_mul(self.fill.len() as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let most = (CELLS_AT_ONCE / self.fill.len().max(1)).max(1);
        by_elements(self.fill.len(), most, offset, out, |first, out| self.read_cells(first, out))
    }
}

/// Maximum size in bytes of the temporary buffer for cells.
const CELLS_AT_ONCE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;

    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    fn one_box(first: u64, count: u64) -> IndexBox {
        IndexBox { first: vec![first], count: vec![count] }
    }

    #[test]
    fn boxes_of_rows_equal_parts_of_their_column() {
        let field = Field::new("a", Datatype::Int16);
        let column = Column::fixed(field, vec![5], Arc::new((0..10).collect::<Vec<u8>>()))
            .with_validity(Arc::new(vec![1, 0, 1, 1, 0]));
        let rows = BoxedRows::of(column, 2);
        let part = rows.column(&one_box(1, 2)).unwrap();
        assert!(part.check().is_ok());
        assert_eq!(read_all(&*part.values), [2, 3, 4, 5]);
        assert_eq!(read_all(&*part.validity.unwrap()), [0, 1]);
    }

    #[test]
    fn boxes_of_variable_length_rows_have_their_own_offsets() {
        let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
        let offsets: Vec<u8> = [0u64, 1, 3, 3, 6].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let rows = |offsets: Vec<u8>| {
            BoxedRows::of(Column::variable(field.clone(), vec![4], Arc::new(b"abbccc".to_vec()), Arc::new(offsets)), 9)
        };
        let part = rows(offsets.clone()).column(&one_box(1, 3)).unwrap();
        assert!(part.check().is_ok());
        assert_eq!(read_all(&*part.values), b"bbccc");
        assert_eq!(read_all(&*part.offsets.unwrap()), [0u64, 2, 2, 5].map(u64::to_le_bytes).concat());
        let backwards: Vec<u8> = [0u64, 5, 3, 3, 2].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert!(rows(backwards).column(&one_box(1, 3)).is_err());
    }

    #[test]
    fn grid_contains_tiles_that_begin_within_it() {
        let of = |tile: &[u64]| box_of_tile(&[5, 4], &[2, 4], tile);
        assert_eq!(of(&[2, 0]), Some(IndexBox { first: vec![4, 0], count: vec![1, 4] }));
        assert_eq!(of(&[1, 0]), Some(IndexBox { first: vec![2, 0], count: vec![2, 4] }));
        for outside in [&[3, 0][..], &[0, 1], &[u64::MAX, 0], &[0], &[0, 0, 0]] {
            assert_eq!(of(outside), None);
        }
        assert_eq!(box_of_tile(&[0], &[1], &[0]), None);
    }

    proptest! {
        #[test]
        fn frame_is_filled_around_its_box(
            axes in proptest::collection::vec((0u64..4, 0u64..3), 1..4),
            size in 1usize..5,
        ) {
            let shape: Vec<u64> = axes.iter().map(|(length, _)| *length).collect();
            let frame: Vec<u64> = axes.iter().map(|(length, more)| length + more).collect();
            let cells = shape.iter().product::<u64>() as usize;
            let of: Vec<u8> = (0..cells * size).map(|byte| byte as u8 + 1).collect();
            let mut own = of.chunks(size);
            let mut expected = Vec::new();
            for cell in 0..frame.iter().product::<u64>() {
                let mut rest = cell;
                let mut is_own = true;
                for (&length, &framed) in shape.iter().zip(&frame).rev() {
                    is_own &= rest % framed < length;
                    rest /= framed;
                }
                expected.extend(if is_own { own.next().unwrap().to_vec() } else { vec![0; size] });
            }
            let framed = Framed::within(Arc::new(of), &shape, &frame, vec![0; size]);
            prop_assert_eq!(read_all(&*framed), expected);
            assert_random_access(&*framed);
        }
    }

    #[test]
    fn cells_of_the_box_are_prefetched() {
        assert_reads_ahead(|sources| {
            Framed::within(sources.values(Arc::new(vec![1; 3 * 50 * 70])), &[50, 70], &[64, 80], vec![0; 3])
        });
    }
}
