//! An array of a hierarchy: the contents of its `zarr.json`, and the chunks made of the cells of columns.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::dense::IndexBox;

use super::types::ZarrType;
use crate::boxes::{Boxes, Framed, box_of_tile};
use crate::content::Content;
use crate::element::Converted;
use crate::masked::Masked;

pub type Attributes = Map<String, Value>;

/// Makes the content of a chunk from the box of the array's cells in it.
type MakeChunk = Box<dyn Fn(&IndexBox) -> Result<Arc<dyn Content>> + Send + Sync>;

/// An array: the contents of its `zarr.json`, and its chunks.
pub struct Array {
    pub(super) shape: Vec<u64>,
    /// The lengths of a chunk, as many as `shape` has.
    pub(super) chunk: Vec<u64>,
    pub(super) data_type: Value,
    pub(super) codecs: Value,
    pub(super) fill_value: Value,
    pub(super) attributes: Attributes,
    pub(super) dimensions: Vec<String>,
    /// Size of a chunk in bytes, if it is the same for all.
    pub(super) chunk_bytes: Option<u64>,
    pub(super) make: MakeChunk,
}

/// The presentation of a column's cells as an array: the lengths of its chunks, its dimensions, and its attributes.
pub(super) struct Layout {
    /// As many as the column has axes.
    pub chunk: Vec<u64>,
    /// The same number, plus one if a cell has several values.
    pub dimensions: Vec<String>,
    pub attributes: Attributes,
}

/// The cells of a nullable column that an array of booleans marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Valid,
    Null,
}

impl Array {
    /// Creates the array of the values of a column; `null` replaces null cells.
    pub(super) fn of_values(column: &Arc<dyn Boxes>, kind: ZarrType, null: Option<Vec<u8>>, layout: Layout) -> Self {
        let Layout { chunk, dimensions, attributes } = layout;
        let (mut shape, mut lengths) = (column.shape().to_vec(), chunk.clone());
        if let Some(values) = kind.values {
            shape.push(values);
            lengths.push(values.max(1));
        }
        let rank = chunk.len();
        let (data_type, codecs, fill_value) = (kind.data_type.clone(), kind.codecs.clone(), kind.fill_value.clone());
        let chunk_bytes = kind.cell_size().and_then(|size| bytes_of(&chunk, size));
        let cells = column.clone();
        let make = move |cells_of_chunk: &IndexBox| {
            // Drop the axis of the values of a cell: every chunk has all of them.
            let (first, count) = (cells_of_chunk.first.get(..rank), cells_of_chunk.count.get(..rank));
            let (Some(first), Some(count)) = (first, count) else {
                return Err(Error::internal("a chunk without axes"));
            };
            let mut column = cells.column(&IndexBox { first: first.to_vec(), count: count.to_vec() })?;
            if let (Some(null), Some(validity)) = (&null, &column.validity) {
                column.values = Arc::new(Masked::new(column.values, validity.clone(), null.clone()));
            }
            kind.chunk(column, &chunk)
        };
        let make = Box::new(make);
        Array { shape, chunk: lengths, data_type, codecs, fill_value, attributes, dimensions, chunk_bytes, make }
    }

    /// Creates an array of booleans that marks which cells of a nullable column are valid, or null.
    pub(super) fn of_validity(column: &Arc<dyn Boxes>, marks: Marks, layout: Layout) -> Self {
        let Layout { chunk, dimensions, attributes } = layout;
        let (cells, lengths) = (column.clone(), chunk.clone());
        let make = move |cells_of_chunk: &IndexBox| -> Result<Arc<dyn Content>> {
            let column = cells.column(cells_of_chunk)?;
            let validity = column.validity.ok_or_else(|| Error::internal("a nullable column without validity"))?;
            // Booleans are 0 and 1; any byte that is not 0 means valid.
            let booleans = Converted::new(validity, 1, 1, move |from, to| {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from((*from != 0) == (marks == Marks::Valid)));
                Ok(())
            });
            Ok(Framed::within(Arc::new(booleans), &column.shape, &lengths, vec![0]))
        };
        Array {
            shape: column.shape().to_vec(),
            chunk_bytes: bytes_of(&chunk, 1),
            chunk,
            data_type: "bool".into(),
            codecs: json!([{"name": "bytes"}]),
            fill_value: false.into(),
            attributes,
            dimensions,
            make: Box::new(make),
        }
    }

    /// Returns the number of chunks along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Returns the size of a chunk in bytes, if all have the same.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_bytes
    }

    /// Returns the chunk with these numbers, one along each axis; `None` if there is none.
    ///
    /// # Errors
    /// Fails if required metadata or, for cells of variable length, their offsets cannot be read.
    pub fn chunk(&self, numbers: &[u64]) -> Result<Option<Arc<dyn Content>>> {
        box_of_tile(&self.shape, &self.chunk, numbers).map(|cells| (self.make)(&cells)).transpose()
    }
}

/// Returns the lengths of the chunks of a column: those of its tiles, cut to the axis.
pub(super) fn chunk_of(column: &Arc<dyn Boxes>) -> Vec<u64> {
    column.extents().iter().zip(column.shape()).map(|(&extent, &length)| extent.min(length).max(1)).collect()
}

pub(super) fn bytes_of(chunk: &[u64], cell_size: u64) -> Option<u64> {
    chunk.iter().try_fold(cell_size, |bytes, &length| bytes.checked_mul(length))
}
