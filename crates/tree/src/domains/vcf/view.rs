//! How arrays of TileDB-VCF datasets are shown as tables.

use std::sync::Arc;

use tilefs_vcf::table::VariantTables;

/// The presentation of an array of a TileDB-VCF dataset as a table.
#[derive(Clone)]
pub enum TableView {
    /// Variant calls.
    Calls(Arc<VariantTables>),
    /// Statistics of alleles, whose `CHAR` values are text.
    Statistics,
}
