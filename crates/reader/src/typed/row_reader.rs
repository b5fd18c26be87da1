//! Reads the rows of sparse arrays, batch by batch.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::datatype::Datatype;
use tilefs_format::fragment::Descent;
use tilefs_format::scalar::Range;
use tilefs_threads::for_all;

use super::values::Values;
use crate::array::sparse::{CoordinateRange, FixedColumn, RowCondition, RowCount, SparseView, VarColumn};
use crate::array::{FieldId, OpenedArray};

/// The default number of rows of a batch.
const DEFAULT_BATCH_ROWS: u64 = 1 << 16;

/// The columns of a batch of this many rows are read on several threads.
const ROWS_TO_SHARE: u64 = 1 << 12;

/// The rows of a sparse array: one for each cell, in the array's global order, without deleted cells and with the newest
/// of each coordinate.
///
/// ```no_run
/// # fn main() -> tilefs_reader::Result<()> {
/// let array = tilefs_reader::open("s3://bucket/cells")?.into_array()?;
/// for batch in array.rows()?.columns(&["soma_joinid", "cell_type"])?.batches()? {
///     let batch = batch?;
///     let ids: Vec<i64> = batch.column("soma_joinid")?.to_vec()?;
///     println!("{} rows from {:?}", batch.len(), ids.first());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RowReader {
    view: Arc<SparseView>,
    fields: Vec<RowField>,
    rows_of_batch: u64,
}

/// A column of the rows.
#[derive(Debug, Clone)]
struct RowField {
    name: String,
    datatype: Datatype,
    is_variable: bool,
    is_nullable: bool,
    id: FieldId,
}

impl OpenedArray {
    /// Returns a reader of the rows of a sparse array, with all columns, dimensions first. Reads the array's footers.
    ///
    /// # Errors
    /// [`Error::Usage`] for a dense array; any damage in a footer.
    pub fn rows(self: &Arc<Self>) -> Result<RowReader> {
        let schema = self.schema();
        if !schema.is_sparse() {
            return Err(Error::usage(format!("{} is dense: read boxes of it", self.path())));
        }
        let dimensions = schema.dimensions.iter().enumerate().map(|(number, dimension)| RowField {
            name: dimension.name.clone(),
            datatype: dimension.datatype,
            is_variable: dimension.is_variable(),
            is_nullable: false,
            id: FieldId::Dimension(number),
        });
        let attributes = schema.attributes.iter().enumerate().map(|(number, attribute)| RowField {
            name: attribute.name.clone(),
            datatype: attribute.datatype,
            is_variable: attribute.is_variable(),
            is_nullable: attribute.nullable,
            id: FieldId::Attribute(number),
        });
        let fields = dimensions.chain(attributes).collect();
        let view = Arc::new(SparseView::new(self.clone())?);
        Ok(RowReader { view, fields, rows_of_batch: DEFAULT_BATCH_ROWS })
    }
}

impl RowReader {
    /// Selects columns, in this order.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is neither a dimension nor an attribute.
    pub fn columns(self, names: &[&str]) -> Result<Self> {
        let fields = names.iter().map(|name| {
            let found = self.fields.iter().find(|field| field.name == *name).cloned();
            found.ok_or_else(|| Error::usage(format!("{} has no column {name:?}", self.view.array().path())))
        });
        let fields = fields.collect::<Result<_>>()?;
        Ok(RowReader { fields, ..self })
    }

    /// Selects rows whose coordinates lie in these ranges: a list for each dimension, or `None` for the whole
    /// dimension. Only tiles whose boxes intersect the ranges are read.
    ///
    /// # Errors
    /// [`Error::Usage`] for ranges that do not fit the dimensions; any damage in the R-trees.
    pub fn select(self, ranges: &[Option<Vec<CoordinateRange>>]) -> Result<Self> {
        let view = Arc::new(self.view.select(ranges)?);
        Ok(RowReader { view, ..self })
    }

    /// Selects rows for which all conditions on attributes hold.
    ///
    /// # Errors
    /// [`Error::Usage`] for conditions that do not fit their attributes.
    pub fn matching(self, conditions: Vec<RowCondition>) -> Result<Self> {
        let view = Arc::new(self.view.matching(conditions)?);
        Ok(RowReader { view, ..self })
    }

    /// Selects the rows of the tiles that `decide` does not skip, by the range of a dimension in boxes; see
    /// [`SparseView::within_boxes`].
    ///
    /// # Errors
    /// Those of `decide`; any damage in the R-trees.
    pub fn within_boxes(self, dimension: usize, decide: impl FnMut(&Range) -> Result<Descent>) -> Result<Self> {
        let view = Arc::new(self.view.within_boxes(dimension, decide)?);
        Ok(RowReader { view, ..self })
    }

    /// Sets the maximum number of rows of a batch, at least 1. A batch is one tile if a tile has more rows.
    pub fn rows_of_batch(self, rows: u64) -> Self {
        RowReader { rows_of_batch: rows.max(1), ..self }
    }

    /// Returns the number of rows as far as footers tell, without reading a cell.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn known_count(&self) -> Result<RowCount> {
        self.view.known_row_count()
    }

    /// Returns the number of rows. If fragments may hold the same cells, this reads the coordinates of their tiles.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn count(&self) -> Result<u64> {
        self.view.row_count()
    }

    /// Reads all rows, one batch after the other. The first batch needs only its own tiles. Memory: one batch, besides
    /// the cache, and what decoding takes on each thread.
    ///
    /// # Errors
    /// Any damage in the metadata that locates cells.
    pub fn batches(self) -> Result<RowBatches> {
        let parts = self.view.parts(self.rows_of_batch)?.len();
        Ok(RowBatches { reader: self, next: 0, parts })
    }

    /// Returns where a row of a batch is stored: the name of its fragment, and the number of the cell there. `None`
    /// past the last row.
    ///
    /// # Errors
    /// As for [`RowReader::batches`].
    pub fn origin(&self, batch: usize, row: u64) -> Result<Option<(String, u64)>> {
        let parts = self.view.parts(self.rows_of_batch)?;
        let part = parts.get(batch).ok_or_else(|| Error::usage(format!("there is no batch {batch}")))?;
        let cell = self.view.part(part)?.stored_cell(row)?;
        Ok(cell.map(|(fragment, position)| (self.view.array().fragment_name(fragment).to_owned(), position)))
    }

    fn read_part(&self, number: usize) -> Result<RowBatch> {
        let parts = self.view.parts(self.rows_of_batch)?;
        let part = parts.get(number).ok_or_else(|| Error::internal("no such part"))?;
        let view = Arc::new(self.view.part(part)?);
        let rows = view.row_count()?;
        let columns = match rows {
            ..ROWS_TO_SHARE => self.fields.iter().map(|field| field.read(&view, rows)).collect::<Result<_>>()?,
            // The first one that fails is reported.
            _ => for_all(self.fields.len(), |number| match self.fields.get(number) {
                Some(field) => field.read(&view, rows),
                None => Err(Error::internal("no such column")),
            })?,
        };
        Ok(RowBatch { rows, columns })
    }
}

impl RowField {
    /// Reads the values of all rows of a view.
    fn read(&self, view: &Arc<SparseView>, rows: u64) -> Result<Values> {
        let validity_bytes = match self.id {
            FieldId::Attribute(number) if self.is_nullable => {
                Some(read_fixed(&FixedColumn::of_validity(view.clone(), number)?, rows)?)
            }
            _ => None,
        };
        let values = if self.is_variable {
            let column = match self.id {
                FieldId::Dimension(number) => VarColumn::of_dimension(view.clone(), number)?,
                FieldId::Attribute(number) => VarColumn::of_attribute(view.clone(), number)?,
            };
            let (offsets, bytes) = column.read_all()?;
            Values::variable(&self.name, self.datatype, offsets, bytes)
        } else {
            let column = match self.id {
                FieldId::Dimension(number) => FixedColumn::of_dimension(view.clone(), number)?,
                FieldId::Attribute(number) => FixedColumn::of_attribute(view.clone(), number)?,
            };
            Values::fixed(&self.name, self.datatype, column.cell_size(), read_fixed(&column, rows)?)
        };
        Ok(values.with_validity(validity_bytes))
    }
}

fn read_fixed(column: &FixedColumn, rows: u64) -> Result<Vec<u8>> {
    memory::fill(rows, column.cell_size(), "the rows of a batch", |first, out| column.read(first, out))
}

/// Reads the rows of an array batch by batch. A batch may be empty if all its cells were deleted or overwritten.
pub struct RowBatches {
    reader: RowReader,
    next: usize,
    parts: usize,
}

impl Iterator for RowBatches {
    type Item = Result<RowBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next < self.parts).then(|| {
            self.next += 1;
            self.reader.read_part(self.next - 1).in_array(self.reader.view.array().path())
        })
    }
}

/// Consecutive rows, column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBatch {
    rows: u64,
    columns: Vec<Values>,
}

impl RowBatch {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        usize::try_from(self.rows).unwrap_or(usize::MAX)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns all selected columns, in the selected order.
    pub fn all_columns(&self) -> &[Values] {
        &self.columns
    }

    /// Returns the values of a dimension or an attribute.
    ///
    /// # Errors
    /// [`Error::Usage`] for a column that was not selected.
    pub fn column(&self, name: &str) -> Result<&Values> {
        let found = self.columns.iter().find(|column| column.field() == name);
        found.ok_or_else(|| Error::usage(format!("the batch has no column {name:?}")))
    }
}
