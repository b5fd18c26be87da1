//! The table of variant calls.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::Column;
use tilefs_export::column::computed::Notation;
use tilefs_vcf::dataset::arrays::VariantDataset;
use tilefs_vcf::table::{CallRows, VariantTables};

use crate::cells::Subarray;
use crate::fields::array_form::ComputedTable;

/// The variant calls of a dataset as a table, whose columns [`VariantTables`] describes.
pub struct CallTable(VariantTables);

impl CallTable {
    pub fn new(dataset: VariantDataset) -> Self {
        CallTable(VariantTables::new(Arc::new(dataset)))
    }
}

impl ComputedTable for CallTable {
    fn columns(
        &self,
        subarray: &Arc<dyn Subarray>,
        stored: Vec<Column>,
        notation: Notation,
    ) -> Result<Vec<(Option<usize>, Column)>> {
        let subarray = subarray.clone();
        let rows = CallRows { stored, origin: Box::new(move |row| subarray.origin(row)) };
        let columns = self.0.columns(rows, notation)?.into_iter();
        Ok(columns.map(|one| (one.stored, one.column)).collect())
    }

    fn about_stored(&self) -> &'static str {
        "its columns info_NAME and fmt_NAME are the fields in info and fmt, whose bytes are in info.u8 and fmt.u8"
    }
}
