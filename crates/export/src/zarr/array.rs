//! An array of a hierarchy: what its `zarr.json` says, and how its chunks are made of the cells of columns.

use std::sync::Arc;

use serde_json::{Map, Value};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::dense::IndexBox;

use super::types::{Elements, ZarrType};
use crate::boxes::{Boxes, box_of_tile};
use crate::column::{Column, Field};
use crate::content::Content;
use crate::element::Converted;
use crate::masked::Masked;

pub type Attributes = Map<String, Value>;

/// Gives a box of cells; the axis of the values of a cell is not counted.
type CellsOf = Box<dyn Fn(&IndexBox) -> Result<Column> + Send + Sync>;

/// An array: what its `zarr.json` says, and its chunks.
pub struct Array {
    pub(super) shape: Vec<u64>,
    /// The lengths of a chunk, as many as `shape` has.
    pub(super) chunk: Vec<u64>,
    pub(super) kind: ZarrType,
    pub(super) attributes: Attributes,
    pub(super) dimensions: Vec<String>,
    pub(super) cells: CellsOf,
}

/// How an array lies over the cells of a column: the lengths of its chunks, its dimensions, and what is said of it.
pub(super) struct Layout {
    /// As many as the column has axes.
    pub chunk: Vec<u64>,
    /// The same, and one more where a cell is several values.
    pub dimensions: Vec<String>,
    pub attributes: Attributes,
}

/// Which cells of a nullable column an array of booleans marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Valid,
    Null,
}

impl Array {
    /// The values of a column; `null` is what takes the place of null cells.
    pub(super) fn of_values(column: &Arc<dyn Boxes>, kind: ZarrType, null: Option<Vec<u8>>, layout: Layout) -> Self {
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

    /// Which cells of a nullable column are valid, or null, as booleans.
    pub(super) fn of_validity(column: &Arc<dyn Boxes>, marks: Marks, layout: Layout) -> Self {
        let cells = column.clone();
        let cells = move |of: &IndexBox| -> Result<Column> {
            let column = cells.column(of)?;
            let validity = column.validity.ok_or_else(|| Error::internal("a nullable column without validity"))?;
            // Booleans are 0 and 1, and valid is whatever is not 0.
            let booleans = Converted::new(validity, 1, 1, move |from, to| {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from((*from != 0) == (marks == Marks::Valid)));
                Ok(())
            });
            let field = Field::new(column.field.name, Datatype::Bool);
            Ok(Column::fixed(field, column.shape, Arc::new(booleans)))
        };
        Self::new(column.shape().to_vec(), ZarrType::booleans(), layout, cells)
    }

    /// An array whose shape, without the axis of the values of a cell, is `shape`.
    pub(super) fn new(
        mut shape: Vec<u64>,
        kind: ZarrType,
        layout: Layout,
        cells: impl Fn(&IndexBox) -> Result<Column> + Send + Sync + 'static,
    ) -> Self {
        let Layout { mut chunk, dimensions, attributes } = layout;
        if let Some(values) = kind.values {
            shape.push(values);
            chunk.push(values.max(1));
        }
        Array { shape, chunk, kind, attributes, dimensions, cells: Box::new(cells) }
    }

    /// What is said of it.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The length of each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Zarr's data type.
    pub fn data_type(&self) -> &Value {
        &self.kind.data_type
    }

    /// All elements in row-major order, not in chunks.
    ///
    /// # Errors
    /// As [`Array::chunk`].
    pub fn elements(&self) -> Result<Elements> {
        let shape = self.cell_axes(&self.shape);
        let all = IndexBox { first: vec![0; shape.len()], count: shape.to_vec() };
        Ok(self.kind.elements((self.cells)(&all)?))
    }

    /// The axes without that of the values of a cell.
    fn cell_axes<'a>(&self, lengths: &'a [u64]) -> &'a [u64] {
        let axes = lengths.len() - usize::from(self.kind.values.is_some());
        lengths.get(..axes).unwrap_or(lengths)
    }

    /// How many chunks there are along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Bytes of every chunk, where they are all as long.
    pub fn chunk_bytes(&self) -> Option<u64> {
        let cells = self.cell_axes(&self.chunk).iter();
        cells.copied().try_fold(self.kind.cell_size()?, |bytes, length| bytes.checked_mul(length))
    }

    /// The chunk of these numbers, one along each axis; `None` where there is none.
    ///
    /// # Errors
    /// When metadata that is needed cannot be read or, of cells of variable length, their offsets.
    pub fn chunk(&self, numbers: &[u64]) -> Result<Option<Arc<dyn Content>>> {
        let Some(IndexBox { first, count }) = box_of_tile(&self.shape, &self.chunk, numbers) else { return Ok(None) };
        // All values of a cell are in every chunk.
        let own = IndexBox { first: self.cell_axes(&first).to_vec(), count: self.cell_axes(&count).to_vec() };
        self.kind.chunk((self.cells)(&own)?, self.cell_axes(&self.chunk)).map(Some)
    }
}

/// The lengths of the chunks of a column: those of its tiles, none longer than the axis.
pub(super) fn chunk_of(column: &Arc<dyn Boxes>) -> Vec<u64> {
    column.extents().iter().zip(column.shape()).map(|(&extent, &length)| extent.min(length).max(1)).collect()
}
