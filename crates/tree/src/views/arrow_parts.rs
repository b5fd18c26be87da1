//! The rows of an array as Arrow files, for programs that read them in process.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tilefs_export::Content;
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::array::{OpenedArray, ValueBounds};
use tilefs_select::Addressing;

use crate::cells::dense::DenseSubarray;
use crate::cells::label_search::labelled;
use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray};
use crate::fields::array_form::ArrayForm;
use crate::fields::{FieldFolder, FieldNames};
use crate::node::shown::ShownViews;
use crate::options::Extent;
use crate::views::arrow::arrow_of;
use crate::views::parts::part_of;
use crate::views::tables;

/// The rows of a sparse array, or of a dense one with one dimension, in files of up to a million rows each, as in
/// `arrow/parts`, or of fewer. A table without rows is one file. Memory: a number for each part.
pub struct ArrowParts {
    fields: FieldFolder,
    columns: Option<Vec<String>>,
    is_by_row: bool,
    /// The most rows of a part, unless one tile has more.
    most: u64,
    /// The most rows before each part.
    starts: Vec<u64>,
}

impl ArrowParts {
    /// Creates the files of the rows that `selection` selects, which is the name of a folder in `slice/`, with these
    /// columns in this order. `by_row` sorts the rows of a sparse array by coordinates. A file has at most `most` rows,
    /// unless one tile has more.
    ///
    /// # Errors
    /// [`Error::Usage`] for a selection that selects nothing, an unknown column, or a dense array of several
    /// dimensions; any damage in footers.
    pub fn new(
        array: Arc<OpenedArray>,
        selection: Option<&str>,
        columns: Option<Vec<String>>,
        by_row: bool,
        most: u64,
    ) -> Result<Self> {
        let names = Arc::new(FieldNames::of(array.schema()));
        let mut subarray: Arc<dyn Subarray> = if array.schema().is_sparse() {
            Arc::new(SparseSubarray::new(array, by_row))
        } else {
            let dense = Arc::new(labelled(array)?);
            let (whole, _) = dense.default_selection(Extent::Domain)?;
            Arc::new(DenseSubarray::new(dense, whole))
        };
        if let Some(selection) = selection {
            let selected = subarray.select(selection, Addressing::Coordinate);
            subarray = selected.map_err(|error| error.into_error(selection))?;
        }
        let (shown, form, told) = (ShownViews::NONE, ArrayForm::default(), Arc::default());
        let fields = FieldFolder { subarray, names, modified: UNIX_EPOCH, shown, form, told };
        if !fields.has_one_axis() {
            let dimensions = fields.schema().dimensions.len();
            let path = fields.subarray.array().path();
            return Err(Error::usage(format!("{path} is dense with {dimensions} dimensions, so it has no rows")));
        }
        tables::check_columns(&fields, columns.as_deref())?;
        let mut starts = fields.subarray.part_starts(most)?;
        if starts.is_empty() {
            starts.push(0);
        }
        Ok(ArrowParts { fields, columns, is_by_row: by_row, most, starts })
    }

    /// Returns the number of rows of all files together.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn rows(&self) -> Result<u64> {
        Ok(self.fields.subarray.shape()?.iter().product())
    }

    /// Returns the number of rows as far as it is known without reading cells.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn known_rows(&self) -> Result<RowCount> {
        self.fields.subarray.row_count()
    }

    /// Returns the number of files, at least 1.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the most rows before each file.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Returns bounds of the values of a field in each file, as far as metadata have them. `None` if rows would have to be
    /// located first: if they are sorted, or if cells of several fragments may be the same row.
    ///
    /// # Errors
    /// Any damage in these metadata.
    pub fn bounds(&self, field: FieldId) -> Result<Option<Vec<Option<ValueBounds>>>> {
        if self.is_by_row || self.known_rows()?.exact().is_none() {
            return Ok(None);
        }
        let bounds_of = |number: usize| {
            let part = part_of(&self.fields.subarray, number, self.most)?;
            let rows = part.shape()?.iter().product();
            part.statistics(field)?.map_or(Ok(None), |statistics| statistics.bounds(0..rows))
        };
        (0..self.count()).map(bounds_of).collect::<Result<_>>().map(Some)
    }

    /// Returns a file.
    ///
    /// # Errors
    /// [`Error::Internal`] for a number that is not below [`ArrowParts::count`]; any damage in the metadata that
    /// locates cells, and in offsets.
    pub fn part(&self, number: usize) -> Result<Arc<dyn Content>> {
        let subarray = part_of(&self.fields.subarray, number, self.most)?;
        arrow_of(&FieldFolder { subarray, ..self.fields.clone() }, self.columns.as_deref())
    }
}
