//! The rows of an array as Arrow files, for programs that read them in process.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tilefs_export::Content;
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::Array;

use crate::cells::Subarray;
use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::sparse::SparseSubarray;
use crate::fields::array_form::ArrayForm;
use crate::fields::{FieldFolder, FieldNames};
use crate::node::shown::ShownViews;
use crate::options::Extent;
use crate::select::Addressing;
use crate::views::arrow::arrow_of;
use crate::views::parts::part_of;
use crate::views::tables;

/// The rows of a sparse array, or of a dense one with one dimension, in files of up to a million rows each, as in
/// `arrow/parts`. A table without rows is one file. Memory: a number for each part.
pub struct ArrowParts {
    fields: FieldFolder,
    columns: Option<Vec<String>>,
    parts: usize,
}

impl ArrowParts {
    /// Creates the files of the rows that `selection` selects, which is the name of a folder in `slice/`, with these
    /// columns in this order. `by_row` sorts the rows of a sparse array by coordinates.
    ///
    /// # Errors
    /// [`Error::Usage`] for a selection that selects nothing, an unknown column, or a dense array of several
    /// dimensions; any damage in footers.
    pub fn new(array: Arc<Array>, selection: Option<&str>, columns: Option<Vec<String>>, by_row: bool) -> Result<Self> {
        let names = Arc::new(FieldNames::of(array.schema()));
        let mut subarray: Arc<dyn Subarray> = if array.schema().is_sparse() {
            Arc::new(SparseSubarray::new(array, by_row))
        } else {
            let dense = Arc::new(DenseArray::new(array)?);
            let (whole, _) = dense.default_selection(Extent::Domain)?;
            Arc::new(DenseSubarray::new(dense, whole))
        };
        if let Some(selection) = selection {
            let selected = subarray.select(selection, Addressing::Coordinate);
            subarray = selected.map_err(|error| error.into_error(selection))?;
        }
        let fields =
            FieldFolder { subarray, names, modified: UNIX_EPOCH, shown: ShownViews::NONE, form: ArrayForm::default() };
        if !fields.has_one_axis() {
            let dimensions = fields.schema().dimensions.len();
            let path = fields.subarray.array().path();
            return Err(Error::usage(format!("{path} is dense with {dimensions} dimensions, so it has no rows")));
        }
        tables::check_columns(&fields, columns.as_deref())?;
        let parts = fields.subarray.part_starts()?.len().max(1);
        Ok(ArrowParts { fields, columns, parts })
    }

    /// Returns the number of rows of all files together.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn rows(&self) -> Result<u64> {
        Ok(self.fields.subarray.shape()?.iter().product())
    }

    /// Returns the number of files, at least 1.
    pub fn count(&self) -> usize {
        self.parts
    }

    /// Returns a file.
    ///
    /// # Errors
    /// [`Error::Internal`] for a number that is not below [`ArrowParts::count`]; any damage in the metadata that
    /// locates cells, and in offsets.
    pub fn part(&self, number: usize) -> Result<Arc<dyn Content>> {
        let subarray = part_of(&self.fields.subarray, number)?;
        arrow_of(&FieldFolder { subarray, ..self.fields.clone() }, self.columns.as_deref())
    }
}
