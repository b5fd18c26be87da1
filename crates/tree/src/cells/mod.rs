//! The cells of an array, dense or sparse, whole or in part, that a folder of files shows: the values of its attributes
//! and dimensions in file order.

pub mod axis_summary;
pub mod dense;
pub mod grid;
pub(crate) mod label_search;
pub mod matrix;
pub mod sparse;

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::Recorder;
use tilefs_export::column::ColumnStatistics;
use tilefs_export::column::boxes::{Boxes, SpacedBoxes};
use tilefs_export::content::validity::Validity;
use tilefs_export::parquet::TileRows;
use tilefs_export::{Column, Field};
use tilefs_format::schema::{ArraySchema, CellValNum};
pub use tilefs_reader::array::FieldId;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::{IndexBox, Selection};
use tilefs_reader::array::origin::{CellOrigin, CellRun};
use tilefs_reader::array::sparse::RowCount;
use tilefs_select::{self as select, Addressing};

/// Returns the description of a field for the formats, under `name`.
pub fn describe_field(field: FieldId, schema: &ArraySchema, name: &str) -> Field {
    match field {
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

fn values_per_cell(count: CellValNum) -> Option<u32> {
    match count {
        CellValNum::Fixed(count) => Some(count),
        CellValNum::Variable => None,
    }
}

/// Maximum number of rows of a part of a table.
pub const MAX_PART_ROWS: u64 = 1 << 20;

/// The cells that the files of one folder show. Making contents reads metadata but no cells, unless a length depends on
/// them.
pub trait Subarray: Send + Sync {
    fn array(&self) -> &Arc<OpenedArray>;

    /// Returns whether the cells are rows, and not places along several axes.
    fn are_rows(&self) -> bool {
        self.array().schema().is_sparse()
    }

    /// Returns the number of cells along each axis (dense) or the number of rows (sparse).
    ///
    /// # Errors
    /// Fails if rows have to be counted and data required for that are damaged.
    fn shape(&self) -> Result<Vec<u64>>;

    /// Returns bounds of the coordinates shown along a dimension of integers, dates or times; `None` for other types,
    /// and if they are not known.
    ///
    /// # Errors
    /// Fails if a required footer cannot be read.
    fn bounds(&self, dimension: usize) -> Result<Option<(i128, i128)>>;

    /// Returns the number of cells shown, as far as it is known without reading any.
    ///
    /// # Errors
    /// Any damage in footers.
    fn row_count(&self) -> Result<RowCount>;

    /// Records which cells these are, and in which order, as [`Recorded`] does.
    ///
    /// [`Recorded`]: tilefs_base::inputs::Recorded
    fn record(&self, recorder: &mut Recorder);

    /// Returns the shape, if known without reading.
    fn known_shape(&self) -> Option<Vec<u64>>;

    /// Returns the approximate memory in bytes that this holds now.
    fn memory(&self) -> usize {
        0
    }

    /// Returns the part shown along each axis of a dense array.
    fn selection(&self) -> Option<&Selection> {
        None
    }

    /// Returns whether every shown cell was written with a value of this attribute, so that none holds the fill value
    /// because it is unwritten. `None` if finding out would take too long.
    ///
    /// # Errors
    /// Fails if a required footer or schema cannot be read.
    fn all_written(&self, _attribute: usize) -> Result<Option<bool>> {
        // Every cell of a sparse array was written.
        Ok(Some(true))
    }

    /// Returns the starts of tiles among the rows, if the metadata contain them.
    ///
    /// # Errors
    /// Fails if rows have to be counted and data required for that are damaged.
    fn tile_rows(&self) -> Result<Option<Arc<dyn TileRows>>> {
        Ok(None)
    }

    /// Returns known bounds of the values of a field.
    ///
    /// # Errors
    /// Fails if rows have to be counted and data required for that are damaged.
    fn statistics(&self, _field: FieldId) -> Result<Option<Arc<dyn ColumnStatistics>>> {
        Ok(None)
    }

    /// Returns the dimensions by which the rows are surely sorted in ascending order, the most significant first; none if
    /// that is not known, and for arrays of several axes.
    ///
    /// # Errors
    /// Any damage in footers.
    fn sorted_by(&self) -> Result<Vec<usize>>;

    /// Returns the values of a field, little-endian, cell by cell.
    ///
    /// # Errors
    /// Fails if required metadata cannot be read.
    fn values(&self, field: FieldId) -> Result<Arc<dyn Content>>;

    /// Returns the byte offsets of a field of variable length: one more than there are cells, `u64` little-endian.
    ///
    /// # Errors
    /// As for [`Subarray::values`].
    fn offsets(&self, field: FieldId) -> Result<Arc<dyn Content>>;

    /// Returns where a row of a sparse array is stored: the name of its fragment, and the number of the cell there.
    /// `None` past the last row, and for dense arrays.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    fn origin(&self, _row: u64) -> Result<Option<(String, u64)>> {
        Ok(None)
    }

    /// Returns where a cell's value of an attribute comes from, by the cell's number in file order, and which other cells
    /// have its coordinates; `None` past the last cell.
    ///
    /// # Errors
    /// Any damage in the data that determines it.
    fn cell_origin(&self, _attribute: usize, _cell: u64) -> Result<Option<CellOrigin>> {
        Ok(None)
    }

    /// Returns where the first cells come from for an attribute, as at most `most` runs.
    ///
    /// # Errors
    /// Any damage in the data that determines it.
    fn runs(&self, _attribute: usize, _most: usize) -> Result<Vec<CellRun>> {
        Ok(Vec::new())
    }

    /// Returns the selected cells of a sparse array that are not shown; `None` without a selection, and for very many
    /// cells.
    ///
    /// # Errors
    /// Any damage in the delete conditions.
    fn hidden(&self) -> Result<Option<CellOrigin>> {
        Ok(None)
    }

    /// Returns whether the rows are some of the array's, because of a selection.
    fn is_part(&self) -> bool {
        false
    }

    /// Returns one byte per cell of a nullable attribute, 0 for null.
    ///
    /// # Errors
    /// As for [`Subarray::values`].
    fn validity(&self, field: FieldId) -> Result<Validity>;

    /// Returns the values of a fixed-size attribute with the first axis varying fastest; `None` for sparse arrays.
    ///
    /// # Errors
    /// As for [`Subarray::values`].
    fn column_major_values(&self, _field: FieldId) -> Result<Option<Arc<dyn Content>>> {
        Ok(None)
    }

    /// Returns the lengths of the tiles of a dense array along each axis; `None` for sparse arrays.
    fn extents(&self) -> Option<Vec<u64>> {
        None
    }

    /// Returns the cells in a box of the part of a dense array that is shown.
    ///
    /// # Errors
    /// Fails for sparse arrays.
    fn part(&self, _cells: &IndexBox) -> Result<Arc<dyn Subarray>> {
        Err(Error::internal("a sparse array has rows and no boxes"))
    }

    /// Returns the cells at some indexes along each axis of the part of a dense array that is shown.
    ///
    /// # Errors
    /// Fails for sparse arrays.
    fn spaced_part(&self, _indexes: &Selection) -> Result<Arc<dyn Subarray>> {
        Err(Error::internal("a sparse array has rows and no indexes along its axes"))
    }

    /// Returns the starts of parts that can be read without locating the rows of the others: for each part, the maximum
    /// number of rows before it. A part has at most `most` rows, usually [`MAX_PART_ROWS`], unless one tile has more. The
    /// first call for a sparse array determines `most`.
    ///
    /// # Errors
    /// Fails if required metadata cannot be read, and for arrays of several axes.
    fn part_starts(&self, most: u64) -> Result<Vec<u64>>;

    /// Returns the rows of a part of at most `most` rows, given its index.
    ///
    /// # Errors
    /// As for [`Subarray::part_starts`].
    fn part_of_rows(&self, number: usize, most: u64) -> Result<Arc<dyn Subarray>>;

    /// Returns the cells of the whole array that a selection selects.
    ///
    /// # Errors
    /// Fails if the selection does not parse or lies outside.
    fn select(&self, selection: &str, by: Addressing) -> select::error::Result<Arc<dyn Subarray>>;
}

/// Returns a field as a column for the formats; `field` describes it.
///
/// # Errors
/// Fails if required metadata cannot be read.
pub fn column(subarray: &dyn Subarray, id: FieldId, field: Field) -> Result<Column> {
    let shape = match id {
        FieldId::Dimension(axis) if !subarray.array().schema().is_sparse() => vec![subarray.shape()?[axis]],
        _ => subarray.shape()?,
    };
    let (bounds, extremes) = match id {
        FieldId::Dimension(dimension) => (subarray.bounds(dimension)?, None),
        // Elsewhere they would be read for nothing.
        FieldId::Attribute(number) if field.datatype.is_datetime() => {
            (None, subarray.array().integer_extremes(number)?)
        }
        FieldId::Attribute(_) => (None, None),
    };
    let nullable = field.nullable;
    let values = subarray.values(id)?;
    let mut column = match field.values_per_cell {
        Some(_) => Column::fixed(field, shape, values),
        None => Column::variable(field, shape, values, subarray.offsets(id)?),
    };
    (column.bounds, column.extremes) = (bounds, extremes);
    Ok(if nullable { column.with_validity(subarray.validity(id)?) } else { column })
}

/// The cells of an attribute of a dense array, readable in any box.
pub struct DenseBoxes {
    subarray: Arc<dyn Subarray>,
    id: FieldId,
    field: Field,
    shape: Vec<u64>,
    extents: Vec<u64>,
}

impl DenseBoxes {
    /// Creates the cells; `field` describes the attribute. Reads nothing.
    ///
    /// # Errors
    /// Fails for sparse arrays.
    pub fn new(subarray: Arc<dyn Subarray>, id: FieldId, field: Field) -> Result<Self> {
        let extents = subarray.extents().ok_or_else(|| Error::internal("a sparse array has no tiles of cells"))?;
        let shape = subarray.shape()?;
        Ok(DenseBoxes { subarray, id, field, shape, extents })
    }
}

impl Boxes for DenseBoxes {
    fn record(&self, recorder: &mut Recorder) {
        let Self { subarray, id, field, shape: _, extents: _ } = self;
        subarray.record(recorder);
        recorder.add_shown::<Self>((id, field));
    }

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

impl SpacedBoxes for DenseBoxes {
    fn spaced_column(&self, indexes: &Selection) -> Result<Column> {
        column(&*self.subarray.spaced_part(indexes)?, self.id, self.field.clone())
    }
}
