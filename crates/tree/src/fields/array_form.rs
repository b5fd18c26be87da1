//! The form that a domain gives to the files of an array: the columns of its table, and the kind of its Zarr group.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::column::computed::Notation;
use tilefs_export::zarr::ZarrGroup;
use tilefs_export::{Column, Field, FormatResult};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::OpenedArray;

use crate::cells::Subarray;

/// The forms of an array in a domain; all are plain without one.
#[derive(Clone, Default)]
pub struct ArrayForm {
    pub table: Option<TableForm>,
    pub zarr: Option<ZarrForm>,
    /// The letters of the axes of an image, one for each dimension.
    pub axes: Option<String>,
    /// The number of samples of a pixel that are adjacent along the last axis; in Zarr they have an axis of their own.
    pub samples: Option<u64>,
}

/// The form of an array as a table.
#[derive(Clone)]
pub enum TableForm {
    /// The stored columns; `CHAR` values of variable length are text.
    WithTexts,
    Computed(Arc<dyn ComputedTable>),
}

impl TableForm {
    /// Returns the stored column in its form.
    pub fn of_stored(&self, mut column: Column) -> Column {
        let is_text = column.field.datatype == Datatype::Char && column.offsets.is_some();
        if is_text && matches!(self, TableForm::WithTexts) {
            column.field.datatype = Datatype::StringUtf8;
        }
        column
    }

    /// Returns the table, if its columns are computed.
    pub fn computed(&self) -> Option<&dyn ComputedTable> {
        match self {
            TableForm::WithTexts => None,
            TableForm::Computed(table) => Some(&**table),
        }
    }
}

/// A table with columns that a domain computes from the stored ones.
pub trait ComputedTable: Send + Sync {
    /// Returns the columns of the cells of a subarray, each with the index of the stored column that it shows, if it
    /// shows one.
    ///
    /// # Errors
    /// Fails if what determines the columns cannot be read, or if a cell is damaged; the error names its place.
    fn columns(
        &self,
        subarray: &Arc<dyn Subarray>,
        stored: Vec<Column>,
        notation: Notation,
    ) -> Result<Vec<(Option<usize>, Column)>>;

    /// Returns where the stored columns are that the table does not have.
    fn about_stored(&self) -> &'static str;
}

/// The form of an array as a Zarr group of its own.
#[derive(Clone, Copy)]
pub struct ZarrForm {
    /// The kind of the group, such as `a data frame`.
    pub what: &'static str,
    /// Returns the reason why the group cannot hold a field.
    pub check: fn(&Field) -> FormatResult<()>,
    /// Makes the group, or returns the reason why the array has only a plain one.
    pub make: fn(&Arc<OpenedArray>) -> Result<FormatResult<ZarrGroup>>,
}
