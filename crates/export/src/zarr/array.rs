//! An array of a hierarchy: the contents of its `zarr.json`, and the chunks made of the cells of columns.

use std::sync::Arc;

use serde_json::{Map, Value};
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;

use super::types::{WholeElements, ZarrType};
use crate::column::boxes::{Boxes, box_of_tile};
use crate::column::{Column, Field};
use crate::content::element::Converted;
use crate::content::masked::Masked;
use crate::content::validity::Validity;

pub type Attributes = Map<String, Value>;

/// Reads a box of cells of an array. The box has no axis for the values of a cell.
type CellsOf = Box<dyn Fn(&IndexBox) -> Result<Column> + Send + Sync>;

/// An array: the contents of its `zarr.json`, and its chunks.
pub struct ZarrArray {
    pub(super) shape: Vec<u64>,
    /// The lengths of a chunk, as many as `shape` has.
    pub(super) chunk: Vec<u64>,
    pub(super) kind: ZarrType,
    pub(super) attributes: Attributes,
    pub(super) dimensions: Vec<String>,
    pub(super) cells: CellsOf,
}

/// The presentation of a column's cells as an array: the lengths of its chunks, its dimensions, and its attributes.
pub(super) struct ArrayLayout {
    /// As many as the column has axes.
    pub chunk: Vec<u64>,
    /// The same number, plus one if a cell has several values.
    pub dimensions: Vec<String>,
    pub attributes: Attributes,
}

impl ZarrArray {
    /// Creates the array of the values of a column; `null` replaces null cells.
    pub(super) fn of_values(
        column: &Arc<dyn Boxes>,
        kind: ZarrType,
        null: Option<Vec<u8>>,
        layout: ArrayLayout,
    ) -> Self {
        let cells = column.clone();
        let cells = move |of: &IndexBox| {
            let mut column = cells.column(of)?;
            if let (Some(null), Some(validity)) = (&null, &column.validity) {
                column.values = Arc::new(Masked::new(column.values, validity.clone(), null.clone()));
            }
            Ok(column)
        };
        Self::new(column.shape().to_vec(), kind, layout, cells)
    }

    /// Creates an array of booleans that marks some cells of a nullable column: the valid or the null ones.
    pub(super) fn of_marks(
        column: &Arc<dyn Boxes>,
        marks: impl Fn(&Validity) -> Converted + Send + Sync + 'static,
        layout: ArrayLayout,
    ) -> Self {
        let cells = column.clone();
        let cells = move |of: &IndexBox| -> Result<Column> {
            let column = cells.column(of)?;
            let validity = column.validity.ok_or_else(|| Error::internal("a nullable column without validity"))?;
            let field = Field::new(column.field.name, Datatype::Bool);
            Ok(Column::fixed(field, column.shape, Arc::new(marks(&validity))))
        };
        Self::new(column.shape().to_vec(), ZarrType::booleans(), layout, cells)
    }

    /// Creates an array whose shape, without the axis of the values of a cell, is `shape`.
    pub(super) fn new(
        mut shape: Vec<u64>,
        kind: ZarrType,
        layout: ArrayLayout,
        cells: impl Fn(&IndexBox) -> Result<Column> + Send + Sync + 'static,
    ) -> Self {
        let ArrayLayout { mut chunk, dimensions, attributes } = layout;
        if let Some(values) = kind.values {
            shape.push(values);
            chunk.push(values.max(1));
        }
        ZarrArray { shape, chunk, kind, attributes, dimensions, cells: Box::new(cells) }
    }

    /// Returns its attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the length of each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns Zarr's data type.
    pub(crate) fn data_type(&self) -> &Value {
        &self.kind.data_type
    }

    /// Returns all elements in row-major order, without chunks.
    ///
    /// # Errors
    /// As [`ZarrArray::chunk`].
    pub fn elements(&self) -> Result<WholeElements> {
        let shape = self.cell_axes(&self.shape);
        let all = IndexBox { first: vec![0; shape.len()], count: shape.to_vec() };
        Ok(self.kind.elements((self.cells)(&all)?, self.first_row(&all)))
    }

    /// Returns the row of the first element of a box, if each element is a row.
    fn first_row(&self, cells: &IndexBox) -> Option<u64> {
        match cells.first.as_slice() {
            &[first] if self.kind.values.is_none() => Some(first),
            _ => None,
        }
    }

    /// Drops the axis of the values of a cell.
    fn cell_axes<'a>(&self, lengths: &'a [u64]) -> &'a [u64] {
        let axes = lengths.len() - usize::from(self.kind.values.is_some());
        lengths.get(..axes).unwrap_or(lengths)
    }

    /// Returns the number of chunks along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Returns the size of a chunk in bytes, if all have the same.
    pub fn chunk_bytes(&self) -> Option<u64> {
        let cells = self.cell_axes(&self.chunk).iter();
        cells.copied().try_fold(self.kind.cell_size()?, |bytes, length| bytes.checked_mul(length))
    }

    /// Returns the chunk with these numbers, one along each axis; `None` if there is none.
    ///
    /// # Errors
    /// Fails if required metadata or, for cells of variable length, their offsets cannot be read.
    pub fn chunk(&self, numbers: &[u64]) -> Result<Option<Arc<dyn Content>>> {
        let Some(IndexBox { first, count }) = box_of_tile(&self.shape, &self.chunk, numbers) else { return Ok(None) };
        // The axis of the values of a cell is never divided.
        let own = IndexBox { first: self.cell_axes(&first).to_vec(), count: self.cell_axes(&count).to_vec() };
        self.kind.chunk((self.cells)(&own)?, self.cell_axes(&self.chunk), self.first_row(&own)).map(Some)
    }
}

/// Returns the lengths of the chunks of a column: those of its tiles, clipped to the axis.
pub(super) fn chunk_of(column: &Arc<dyn Boxes>) -> Vec<u64> {
    column.extents().iter().zip(column.shape()).map(|(&extent, &length)| extent.min(length).max(1)).collect()
}
