//! What a folder of files shows of an array, dense or sparse, whole or in part: the values of its
//! attributes and dimensions in the order of the files.

use std::sync::Arc;

use tilefs_export::boxes::Boxes;
use tilefs_export::column::Summaries;
use tilefs_export::parquet::TileRows;
use tilefs_export::{Column, Content, Field};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Result};
use tilefs_format::schema::{ArraySchema, CellValNum};
use tilefs_reader::array::Array;
use tilefs_reader::array::dense::{IndexBox, Selection};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::storage::EntryKey;

use super::grammar::{self, By};

/// An attribute or dimension, by its number in the array's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldId {
    Attribute(usize),
    Dimension(usize),
}

impl FieldId {
    /// How the field is described to the formats, under `name`.
    pub fn describe(self, schema: &ArraySchema, name: &str) -> Field {
        match self {
            FieldId::Attribute(number) => {
                let attribute = &schema.attributes[number];
                Field::new(name, attribute.datatype)
                    .with_values_per_cell(values_per_cell(attribute.cell_count))
                    .with_nullable(attribute.nullable)
                    .with_fill(attribute.fill.clone())
            }
            FieldId::Dimension(number) => {
                let dimension = &schema.dimensions[number];
                Field::new(name, dimension.datatype).with_values_per_cell(values_per_cell(dimension.cell_count))
            }
        }
    }

    pub fn datatype(self, schema: &ArraySchema) -> Datatype {
        match self {
            FieldId::Attribute(number) => schema.attributes[number].datatype,
            FieldId::Dimension(number) => schema.dimensions[number].datatype,
        }
    }
}

fn values_per_cell(count: CellValNum) -> Option<u32> {
    match count {
        CellValNum::Fixed(count) => Some(count),
        CellValNum::Variable => None,
    }
}

/// Rows of a part of a table.
pub const MOST_PART_ROWS: u64 = 1 << 20;

/// The cells that the files of one folder show. Making contents reads metadata, no cells, unless a length
/// depends on them.
pub trait Subarray: Send + Sync {
    fn array(&self) -> &Arc<Array>;

    /// Dense: cells along each axis. Sparse: the number of rows.
    ///
    /// # Errors
    /// When rows have to be counted and something that takes is damaged.
    fn shape(&self) -> Result<Vec<u64>>;

    /// The least and the greatest coordinate that may be shown along a dimension of integers, dates or times; `None`
    /// for others, and where it is not known.
    ///
    /// # Errors
    /// When a footer that is needed for it cannot be read.
    fn bounds(&self, dimension: usize) -> Result<Option<(i128, i128)>>;

    /// The number of cells that are shown, as far as that is known without reading any.
    ///
    /// # Errors
    /// Any damage in footers.
    fn row_count(&self) -> Result<RowCount>;

    /// The key of what is told about the cells in this order, where it is saved for later mounts.
    ///
    /// # Errors
    /// Any damage in footers.
    fn saved_key(&self) -> Result<Option<EntryKey>>;

    /// The shape where nothing has to be read for it.
    fn known_shape(&self) -> Option<Vec<u64>>;

    /// Bytes of memory that this holds at present, about.
    fn memory(&self) -> usize {
        0
    }

    /// What is shown of each axis of a dense array.
    fn selection(&self) -> Option<&Selection> {
        None
    }

    /// Whether every cell that is shown was written with a value of this attribute, so that none holds the fill value
    /// for want of another. `None` where finding out would take too long.
    ///
    /// # Errors
    /// When a footer or a schema that is needed for it cannot be read.
    fn all_written(&self, _attribute: usize) -> Result<Option<bool>> {
        // A cell of a sparse array is there because it was written.
        Ok(Some(true))
    }

    /// Where tiles begin among the rows, where that can be told from metadata.
    ///
    /// # Errors
    /// When rows have to be counted and something that takes is damaged.
    fn tile_rows(&self) -> Result<Option<Arc<dyn TileRows>>> {
        Ok(None)
    }

    /// What is known of the values of a field without reading them.
    ///
    /// # Errors
    /// When rows have to be counted and something that takes is damaged.
    fn summaries(&self, _field: FieldId) -> Result<Option<Arc<dyn Summaries>>> {
        Ok(None)
    }

    /// The values of a field, little-endian, cell after cell.
    ///
    /// # Errors
    /// When metadata that is needed cannot be read.
    fn values(&self, field: FieldId) -> Result<Arc<dyn Content>>;

    /// The byte offsets of a field of variable length: one more than there are cells, `u64` little-endian.
    ///
    /// # Errors
    /// As [`Subarray::values`].
    fn offsets(&self, field: FieldId) -> Result<Arc<dyn Content>>;

    /// One byte a cell, 0 for null, of a nullable attribute.
    ///
    /// # Errors
    /// As [`Subarray::values`].
    fn validity(&self, field: FieldId) -> Result<Arc<dyn Content>>;

    /// The values of a fixed-size attribute with the first axis running fastest; `None` for sparse arrays.
    ///
    /// # Errors
    /// As [`Subarray::values`].
    fn column_major_values(&self, _field: FieldId) -> Result<Option<Arc<dyn Content>>> {
        Ok(None)
    }

    /// How long the tiles of a dense array are along each axis; `None` for sparse arrays.
    fn extents(&self) -> Option<Vec<u64>> {
        None
    }

    /// The cells in a box of what is shown of a dense array.
    ///
    /// # Errors
    /// For sparse arrays.
    fn part(&self, _cells: &IndexBox) -> Result<Arc<dyn Subarray>> {
        Err(Error::internal("a sparse array has rows and no boxes"))
    }

    /// Where the rows can be cut into parts that are read without finding the rows of the others: for each part as many
    /// rows as the parts before it can have. A part has [`MOST_PART_ROWS`] rows at most, unless one tile has more.
    ///
    /// # Errors
    /// When metadata that is needed cannot be read; for arrays of several axes.
    fn part_starts(&self) -> Result<Vec<u64>>;

    /// The rows of the part of this number.
    ///
    /// # Errors
    /// As [`Subarray::part_starts`].
    fn part_of_rows(&self, number: usize) -> Result<Arc<dyn Subarray>>;

    /// The cells of the whole array that a selection names, in their place.
    ///
    /// # Errors
    /// When the selection does not parse or lies outside.
    fn select(&self, selection: &str, by: By) -> grammar::error::Result<Arc<dyn Subarray>>;
}

/// A field with all that the formats may want of it; `field` describes it.
///
/// # Errors
/// When metadata that is needed cannot be read.
pub fn column(subarray: &dyn Subarray, id: FieldId, field: Field) -> Result<Column> {
    let shape = match id {
        FieldId::Dimension(axis) if !subarray.array().schema().is_sparse() => vec![subarray.shape()?[axis]],
        _ => subarray.shape()?,
    };
    let bounds = match id {
        FieldId::Dimension(dimension) => subarray.bounds(dimension)?,
        FieldId::Attribute(_) => None,
    };
    let nullable = field.nullable;
    let values = subarray.values(id)?;
    let mut column = match field.values_per_cell {
        Some(_) => Column::fixed(field, shape, values),
        None => Column::variable(field, shape, values, subarray.offsets(id)?),
    };
    column.bounds = bounds;
    Ok(if nullable { column.with_validity(subarray.validity(id)?) } else { column })
}

/// The cells of an attribute of a dense array, of which any box can be had.
pub struct DenseBoxes {
    subarray: Arc<dyn Subarray>,
    id: FieldId,
    field: Field,
    shape: Vec<u64>,
    extents: Vec<u64>,
}

impl DenseBoxes {
    /// `field` describes the attribute. Nothing is read.
    ///
    /// # Errors
    /// For sparse arrays.
    pub fn new(subarray: Arc<dyn Subarray>, id: FieldId, field: Field) -> Result<Self> {
        let extents = subarray.extents().ok_or_else(|| Error::internal("a sparse array has no tiles of cells"))?;
        let shape = subarray.shape()?;
        Ok(DenseBoxes { subarray, id, field, shape, extents })
    }
}

impl Boxes for DenseBoxes {
    fn field(&self) -> &Field {
        &self.field
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        self.extents.clone()
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        column(&*self.subarray.part(cells)?, self.id, self.field.clone())
    }
}
