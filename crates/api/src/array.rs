//! An array at one point in time.

use std::fmt;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::{DenseReader, Metadata, RowReader};
use tilefs_select::{Addressing, DimensionBounds, SelectedRows};

/// An array at one point in time. Clones share what was read.
#[derive(Clone)]
pub struct Array(Arc<tilefs_reader::OpenedArray>);

impl Array {
    pub(crate) fn new(array: Arc<tilefs_reader::OpenedArray>) -> Self {
        Array(array)
    }

    /// Returns the path or URI.
    pub fn path(&self) -> String {
        self.0.path().to_string()
    }

    /// Returns the schema in force at the time of the array.
    pub fn schema(&self) -> &ArraySchema {
        self.0.schema()
    }

    /// Returns the first and the last time whose writes the array shows, in milliseconds since 1970.
    pub fn time_window(&self) -> (u64, u64) {
        (self.0.window().start, self.0.window().end)
    }

    /// Returns the time of the newest write that the array shows, in milliseconds since 1970.
    pub fn last_commit(&self) -> Option<u64> {
        self.0.last_commit()
    }

    /// Returns the metadata, which is read once.
    ///
    /// # Errors
    /// Any damage in the metadata.
    pub fn metadata(&self) -> Result<Arc<Metadata>> {
        self.0.metadata()
    }

    /// Returns a reader of boxes of a dense array. Reads its footers.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a sparse array; any damage in a footer.
    pub fn dense(&self) -> Result<DenseReader> {
        self.0.dense()
    }

    /// Returns a reader of the rows that a selection selects, in the notation of paths in a mount: ranges for each
    /// dimension, with both ends included, by name or in the order of the schema.
    ///
    /// ```
    /// # fn main() -> tilefs_api::Result<()> {
    /// # let path = tilefs_fixtures::fixtures().join("arrays/sparse/dim_times");
    /// let visits = tilefs_api::open(path)?.into_array()?;
    /// let spring = visits.select("day=2022-03..2022-05,ms=08:00..12:00")?;
    /// # assert!(spring.count()? > 0);
    /// for batch in spring.columns(&["v"])?.batches()? {
    ///     let values: Vec<i32> = batch?.column("v")?.to_vec()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A date means the time that it spans, `10..` has no end, `3+7..9` are several ranges, `last` is the greatest
    /// coordinate of the domain, and `,` separates dimensions. `price=5..9` selects by an attribute, and `price=%null` nulls. In texts, `%2C` is a comma, and likewise for `+ = % /`.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a dense array, and for a text that is no selection of this array, with
    /// the place and the reason; any damage in the R-trees.
    pub fn select(&self, selection: &str) -> Result<RowReader> {
        let rows = self.rows()?;
        let dimensions = DimensionBounds::of_schema(self.schema());
        let selected = tilefs_select::rows(selection, Addressing::Coordinate, &dimensions, &self.0);
        let SelectedRows { ranges, conditions } = selected.map_err(|error| error.into_error(selection))?;
        let rows = rows.select(&ranges)?;
        if conditions.is_empty() { Ok(rows) } else { rows.matching(conditions) }
    }

    /// Returns a reader of the rows of a sparse array, with all columns, dimensions first. Reads the array's footers.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a dense array; any damage in a footer.
    pub fn rows(&self) -> Result<RowReader> {
        self.0.rows()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Array").field(&self.path()).finish()
    }
}
