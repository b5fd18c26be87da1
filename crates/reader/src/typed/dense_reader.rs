//! Reads boxes of dense arrays.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::datatype::Kind;
use tilefs_format::schema::Attribute;

use super::number::Number;
use super::values::{Values, expect_type};
use crate::array::dense::grid::PositionBox;
use crate::array::dense::{AxisSelection, DenseColumn, DenseVarColumn, DenseView, Selection};
use crate::array::{FieldFile, OpenedArray};

/// Reads boxes of a dense array. Several threads may read at the same time. Memory: the boxes of all fragments.
pub struct DenseReader {
    view: Arc<DenseView>,
}

impl OpenedArray {
    /// Returns a reader of boxes of a dense array. Reads its footers.
    ///
    /// # Errors
    /// [`Error::Usage`] for a sparse array; any damage in a footer.
    pub fn dense(self: &Arc<Self>) -> Result<DenseReader> {
        if self.schema().is_sparse() {
            return Err(Error::usage(format!("{} is sparse: read its rows", self.path())));
        }
        Ok(DenseReader { view: Arc::new(DenseView::new(self.clone())?) })
    }
}

impl DenseReader {
    /// Returns the lowest and the highest coordinate of each dimension: of the current domain if one is set, else of
    /// the domain. Dates and times count their unit.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a current domain outside the domain.
    pub fn domain(&self) -> Result<Vec<RangeInclusive<i128>>> {
        let (array, grid) = (self.view.array(), self.view.grid());
        let whole = match &array.schema().current_domain {
            Some(ranges) => grid.box_of(ranges).in_field("current domain").in_array(array.path())?,
            None => grid.domain(),
        };
        Ok(self.coordinates(&whole))
    }

    /// Returns the smallest box that contains every cell ever written; `None` for an array without fragments.
    pub fn non_empty_domain(&self) -> Option<Vec<RangeInclusive<i128>>> {
        self.view.non_empty_box().map(|positions| self.coordinates(&positions))
    }

    /// Reads the numbers of an attribute in a box, in row-major order. The box is a range of coordinates for each
    /// dimension, both ends included. Cells that were never written have the fill value;
    /// [`DenseReader::read_values`] also tells which cells are null.
    ///
    /// ```no_run
    /// # fn main() -> tilefs_reader::Result<()> {
    /// let array = tilefs_reader::open("dem.tdb")?.into_array()?;
    /// let heights: Vec<f32> = array.dense()?.read("height", &[0..=99, 200..=299])?;
    /// assert_eq!(heights.len(), 100 * 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown attribute, another type, or a box outside the domain; any damage in the cells.
    pub fn read<T: Number>(
        &self,
        attribute: &str,
        ranges: &[RangeInclusive<impl Into<i128> + Copy>],
    ) -> Result<Vec<T>> {
        let mut numbers = Vec::new();
        let column = self.number_column::<T>(attribute, ranges)?;
        let count = column.cells().saturating_mul((column.cell_size() / size_of::<T>()) as u64);
        memory::resize(&mut numbers, usize::try_from(count).unwrap_or(usize::MAX), "the cells of a box")?;
        read_numbers(&column, &mut numbers)?;
        Ok(numbers)
    }

    /// As [`DenseReader::read`], into memory of the caller.
    ///
    /// # Errors
    /// As for [`DenseReader::read`], and [`Error::Usage`] if the length of `out` is not the count of numbers in the
    /// box.
    pub fn read_into<T: Number>(
        &self,
        attribute: &str,
        ranges: &[RangeInclusive<impl Into<i128> + Copy>],
        out: &mut [T],
    ) -> Result<()> {
        let column = self.number_column::<T>(attribute, ranges)?;
        let count = column.cells().saturating_mul((column.cell_size() / size_of::<T>()) as u64);
        if count != out.len() as u64 {
            return Err(Error::usage(format!("the box has {count} numbers, and there is room for {}", out.len())));
        }
        read_numbers(&column, out)
    }

    /// Reads the values of an attribute of any type in a box, in row-major order, with their validity.
    ///
    /// # Errors
    /// As for [`DenseReader::read`], except for the type.
    pub fn read_values(&self, attribute: &str, ranges: &[RangeInclusive<impl Into<i128> + Copy>]) -> Result<Values> {
        let (number, field) = self.attribute(attribute)?;
        let selection = Arc::new(self.selection(ranges)?);
        let validity_bytes = match field.nullable {
            true => Some(self.bytes(&selection, number, FieldFile::Validity, vec![field.fill_validity])?),
            false => None,
        };
        let values = if field.is_variable() {
            let column = DenseVarColumn::new(self.view.clone(), selection, number, field.fill.clone())?;
            let offsets = memory::fill(column.cells().saturating_add(1), 1, "the offsets of a box", |first, out| {
                column.read_offsets(first, out)
            })?;
            let bytes = memory::fill(column.byte_count()?, 1, "the values of a box", |start, out| {
                column.read_values(start, out)
            })?;
            Values::variable(attribute, field.datatype, offsets, bytes)
        } else {
            let bytes = self.bytes(&selection, number, FieldFile::Data, field.fill.clone())?;
            Values::fixed(attribute, field.datatype, field.fill.len(), bytes)
        };
        Ok(values.with_validity(validity_bytes))
    }

    fn number_column<T: Number>(
        &self,
        attribute: &str,
        ranges: &[RangeInclusive<impl Into<i128> + Copy>],
    ) -> Result<DenseColumn> {
        let (number, field) = self.attribute(attribute)?;
        expect_type::<T>(attribute, field.datatype)?;
        if field.is_variable() {
            return Err(Error::usage(format!("the values of {attribute} vary in number: read them as values")));
        }
        let selection = Arc::new(self.selection(ranges)?);
        DenseColumn::new(self.view.clone(), selection, number, FieldFile::Data, field.fill.clone())
    }

    fn bytes(&self, selection: &Arc<Selection>, number: usize, file: FieldFile, fill: Vec<u8>) -> Result<Vec<u8>> {
        let column = DenseColumn::new(self.view.clone(), selection.clone(), number, file, fill)?;
        let mut bytes = memory::zeros(column.cells(), column.cell_size(), "the cells of a box")?;
        column.read(0, &mut bytes[..])?;
        Ok(bytes)
    }

    fn attribute(&self, name: &str) -> Result<(usize, &Attribute)> {
        let array = self.view.array();
        let found = array.schema().attribute_named(name);
        let found = found.and_then(|number| Some((number, array.schema().attributes.get(number)?)));
        found.ok_or_else(|| Error::usage(format!("{} has no attribute {name:?}", array.path())))
    }

    /// Converts a box of coordinates to positions.
    fn selection(&self, ranges: &[RangeInclusive<impl Into<i128> + Copy>]) -> Result<Selection> {
        let axes = &self.view.grid().axes;
        if ranges.len() != axes.len() {
            return Err(Error::usage(format!("{} ranges for {} dimensions", ranges.len(), axes.len())));
        }
        let dimensions = &self.view.array().schema().dimensions;
        let chosen = axes.iter().zip(self.lows()).zip(ranges).zip(dimensions);
        let chosen = chosen.map(|(((axis, low), range), dimension)| {
            let (start, end): (i128, i128) = ((*range.start()).into(), (*range.end()).into());
            let high = low + i128::from(axis.size) - 1;
            if start < low || end > high || start > end {
                let name = &dimension.name;
                return Err(Error::usage(format!("{start}..={end} is no range of {name} within {low}..={high}")));
            }
            // Both are less than the size of the axis.
            Ok(AxisSelection::contiguous((start - low) as u64, (end - start + 1) as u64))
        });
        Selection::new(chosen.collect::<Result<_>>()?)
    }

    /// Returns the lowest coordinate of each dimension.
    fn lows(&self) -> impl Iterator<Item = i128> {
        let dimensions = &self.view.array().schema().dimensions;
        self.view.grid().axes.iter().zip(dimensions).map(|(axis, dimension)| match dimension.datatype.kind() {
            Kind::Unsigned => i128::from(axis.low),
            _ => i128::from(axis.low as i64),
        })
    }

    fn coordinates(&self, positions: &PositionBox) -> Vec<RangeInclusive<i128>> {
        let ends = positions.low.iter().zip(&positions.high);
        self.lows().zip(ends).map(|(low, (first, last))| low + i128::from(*first)..=low + i128::from(*last)).collect()
    }
}

/// Reads all cells of a column.
fn read_numbers<T: Number>(column: &DenseColumn, out: &mut [T]) -> Result<()> {
    column.read(0, bytemuck::cast_slice_mut::<T, u8>(out))?;
    out.iter_mut().for_each(|number| *number = number.of_little_endian());
    Ok(())
}
