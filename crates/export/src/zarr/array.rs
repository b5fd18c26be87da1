//! An array of a hierarchy: what its `zarr.json` says, and how its chunks are made of the cells of columns.

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

/// An array: what its `zarr.json` says, and its chunks.
pub struct Array {
    pub(super) shape: Vec<u64>,
    /// The lengths of a chunk, as many as `shape` has.
    pub(super) chunk: Vec<u64>,
    pub(super) data_type: Value,
    pub(super) codecs: Value,
    pub(super) fill_value: Value,
    pub(super) attributes: Attributes,
    pub(super) dimensions: Vec<String>,
    /// Bytes of a chunk, where that is the same for all.
    pub(super) chunk_bytes: Option<u64>,
    pub(super) make: MakeChunk,
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
            // Without the axis of the values of a cell, which all are in every chunk.
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

    /// Which cells of a nullable column are valid, or null, as booleans.
    pub(super) fn of_validity(column: &Arc<dyn Boxes>, marks: Marks, layout: Layout) -> Self {
        let Layout { chunk, dimensions, attributes } = layout;
        let (cells, lengths) = (column.clone(), chunk.clone());
        let make = move |cells_of_chunk: &IndexBox| -> Result<Arc<dyn Content>> {
            let column = cells.column(cells_of_chunk)?;
            let validity = column.validity.ok_or_else(|| Error::internal("a nullable column without validity"))?;
            // Booleans are 0 and 1, and valid is whatever is not 0.
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

    /// How many chunks there are along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Bytes of every chunk, where they are all as long.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_bytes
    }

    /// The chunk of these numbers, one along each axis; `None` where there is none.
    ///
    /// # Errors
    /// When metadata that is needed cannot be read or, of cells of variable length, their offsets.
    pub fn chunk(&self, numbers: &[u64]) -> Result<Option<Arc<dyn Content>>> {
        box_of_tile(&self.shape, &self.chunk, numbers).map(|cells| (self.make)(&cells)).transpose()
    }
}

/// The lengths of the chunks of a column: those of its tiles, none longer than the axis.
pub(super) fn chunk_of(column: &Arc<dyn Boxes>) -> Vec<u64> {
    column.extents().iter().zip(column.shape()).map(|(&extent, &length)| extent.min(length).max(1)).collect()
}

pub(super) fn bytes_of(chunk: &[u64], cell_size: u64) -> Option<u64> {
    chunk.iter().try_fold(cell_size, |bytes, &length| bytes.checked_mul(length))
}
