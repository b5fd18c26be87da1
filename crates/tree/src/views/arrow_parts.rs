//! The rows of an array as Arrow files, for programs that read them in process.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::array::{OpenedArray, ValueBounds};
use tilefs_select::Addressing;

use crate::cells::dense::DenseSubarray;
use crate::cells::label_search::labelled;
use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray};
use crate::fields::FieldFolder;
use crate::fields::array_form::ArrayForm;
use crate::options::Extent;
use crate::shown::ShownViews;
use crate::views::arrow::{ArrowValues, arrow_of};
use crate::views::names::field_names;
use crate::views::parts::part_of;
use crate::views::tables;

/// The rows of a sparse array, or of a dense one with one dimension, in files of up to a million rows each, as in
/// `arrow/parts`, or of fewer. A table without rows is one file. Memory: a number for each part.
pub struct ArrowParts {
    fields: FieldFolder,
    /// The tables that are divided, one after the other: all rows, or some parts of these.
    tables: Vec<DividedTable>,
    columns: Option<Vec<String>>,
    is_by_row: bool,
    values: ArrowValues,
    /// The most rows of a part, unless one tile has more.
    most: u64,
    /// The most rows before each part.
    starts: Vec<u64>,
}

/// Some of the parts of a table, by their numbers, and the most rows of a part.
pub type ChosenParts = (u64, Vec<usize>);

/// A table, and the number of its first part among those of all tables.
struct DividedTable {
    rows: Arc<dyn Subarray>,
    first: usize,
}

impl ArrowParts {
    /// Creates the files of the rows that `selection` selects, which is the name of a folder in `slice/`, with these
    /// columns in this order. `by_row` sorts the rows of a sparse array by coordinates. A file has at most `most` rows,
    /// unless one tile has more. Columns that are named have `values`. Of `within`, each entry chooses parts of the rows that the entry before it leaves.
    ///
    /// # Errors
    /// [`Error::Usage`] for a selection that selects nothing, an unknown column, or a dense array of several
    /// dimensions; any damage in footers.
    pub fn new(
        array: Arc<OpenedArray>,
        selection: Option<&str>,
        columns: Option<Vec<String>>,
        (by_row, values): (bool, ArrowValues),
        within: &[ChosenParts],
        most: u64,
    ) -> Result<Self> {
        let names = Arc::new(field_names(array.schema()));
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
        let mut rows = vec![fields.subarray.clone()];
        for (most, chosen) in within {
            let (tables, _) = divided(rows, *most)?;
            rows = chosen.iter().map(|&number| part_among(&tables, number, *most)).collect::<Result<_>>()?;
        }
        let (tables, starts) = divided(rows, most)?;
        Ok(ArrowParts { fields, tables, columns, is_by_row: by_row, values, most, starts })
    }

    /// Returns the number of rows of all files together, or of those with these numbers.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows; as for [`ArrowParts::part`].
    pub fn rows(&self, chosen: Option<&[usize]>) -> Result<u64> {
        self.counted(chosen)?.into_iter().try_fold(0u64, |sum, rows| {
            let count = rows.shape()?.iter().product();
            Ok(sum.saturating_add(count))
        })
    }

    /// Returns the number of rows as far as it is known without reading cells.
    ///
    /// # Errors
    /// Any damage in footers; as for [`ArrowParts::part`].
    pub fn known_rows(&self, chosen: Option<&[usize]>) -> Result<RowCount> {
        self.counted(chosen)?.into_iter().try_fold(RowCount::Exactly(0), |sum, rows| {
            let more = rows.row_count()?;
            let most = sum.most().saturating_add(more.most());
            Ok(if sum.exact().and(more.exact()).is_some() { RowCount::Exactly(most) } else { RowCount::AtMost(most) })
        })
    }

    /// Returns the tables that have the rows of all files, or of those with these numbers.
    fn counted(&self, chosen: Option<&[usize]>) -> Result<Vec<Arc<dyn Subarray>>> {
        match chosen {
            None => Ok(self.tables.iter().map(|table| table.rows.clone()).collect()),
            Some(chosen) => chosen.iter().map(|&number| part_among(&self.tables, number, self.most)).collect(),
        }
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
        if self.is_by_row || self.known_rows(None)?.exact().is_none() {
            return Ok(None);
        }
        let bounds_of = |number: usize| {
            let part = part_among(&self.tables, number, self.most)?;
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
        let subarray = part_among(&self.tables, number, self.most)?;
        arrow_of(&FieldFolder { subarray, ..self.fields.clone() }, self.columns.as_deref(), self.values)
    }
}

/// Divides tables into parts of at most `most` rows; returns the most rows before each part. A table without rows is one
/// part.
fn divided(rows: Vec<Arc<dyn Subarray>>, most: u64) -> Result<(Vec<DividedTable>, Vec<u64>)> {
    let (mut tables, mut starts, mut before) = (Vec::with_capacity(rows.len()), Vec::new(), 0u64);
    for rows in rows {
        tables.push(DividedTable { rows: rows.clone(), first: starts.len() });
        let own = rows.part_starts(most)?;
        starts.extend(own.iter().map(|start| before.saturating_add(*start)));
        if own.is_empty() {
            starts.push(before);
        }
        before = before.saturating_add(rows.row_count()?.most());
    }
    Ok((tables, starts))
}

/// Returns a part of tables by its number among the parts of all of them.
fn part_among(tables: &[DividedTable], number: usize, most: u64) -> Result<Arc<dyn Subarray>> {
    let table = tables.iter().rev().find(|table| table.first <= number);
    let table = table.ok_or_else(|| Error::internal("a part of no table"))?;
    part_of(&table.rows, number - table.first, most)
}
