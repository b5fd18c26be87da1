//! Data frames and matrices as AnnData encodes them in Zarr: groups and arrays whose attributes `encoding-type` and
//! `encoding-version` identify them.
//!
//! Source: AnnData's description of its on-disk format, and the files that anndata writes (`anndata` 0.1.0, `dataframe`
//! 0.2.0, `csr_matrix` and `csc_matrix` 0.1.0).

mod banded_matrix;
mod bands;
mod counted_runs;
mod cuts;
mod frame;
mod in_row_order;
mod matrix;
mod runs;
mod starts;
mod stretches;
mod unstructured;

use super::array::Attributes;
use super::{METADATA, ZarrGroup, ZarrNode};
use crate::cf::names::UniqueNames;

pub use banded_matrix::BandedMatrix;
pub use bands::{BandLimits, RowBands};
pub use cuts::{CELLS_OF_A_PART, Cuts};
pub use frame::{DataFrame, FrameColumn, check};
pub use in_row_order::InRowOrder;
pub use matrix::{Compressed, CompressedMatrix, dense, full, starts_of};
pub use starts::{CellOrder, RowStarts};
pub use stretches::Sections;
pub use unstructured::scalar;

/// Number of cells of a matrix's chunks.
const CELLS_OF_A_CHUNK: u64 = 1 << 20;

/// Returns the attributes of this encoding.
fn encoding(name: &str, version: &str) -> Attributes {
    let mut attributes = Attributes::new();
    attributes.insert("encoding-type".to_owned(), name.into());
    attributes.insert("encoding-version".to_owned(), version.into());
    attributes
}

/// Returns the attributes of an array of numbers.
fn encoding_of_array() -> Attributes {
    encoding("array", "0.2.0")
}

/// Returns annotated data: observations, variables and their matrices under AnnData's names (`X`, `obs`, `layers`,
/// ...). `left_out` has the names of omitted members, with the reasons.
pub fn annotated_data(members: Vec<(String, ZarrNode)>, left_out: Vec<(String, String)>) -> ZarrGroup {
    let mut group = ZarrGroup { attributes: encoding("anndata", "0.1.0"), members };
    left_out.into_iter().for_each(|(name, reason)| group.leave_out(&name, reason));
    group
}

/// Returns a mapping of elements by name: `layers`, `obsm` and the like. A name that Zarr does not allow is changed
/// slightly, and the attribute `left_out` contains it.
pub fn mapping(elements: Vec<(String, ZarrNode)>) -> ZarrGroup {
    let mut names = UniqueNames::of_zarr();
    names.give(METADATA);
    let mut group = ZarrGroup { attributes: encoding("dict", "0.1.0"), ..ZarrGroup::default() };
    for (name, node) in elements {
        let given = names.give(&name);
        note_new_name(&mut group, &name, &given);
        group.members.push((given, node));
    }
    group
}

/// Records the name that a member has instead of its own.
fn note_new_name(group: &mut ZarrGroup, name: &str, given: &str) {
    if name != given {
        group.leave_out(name, format!("the name is not possible here; its values are in {given}"));
    }
}

/// Returns the matrix and the variables as they were before a subset was chosen.
pub fn raw(members: Vec<(String, ZarrNode)>) -> ZarrGroup {
    ZarrGroup { attributes: encoding("raw", "0.1.0"), members }
}

#[cfg(test)]
mod tests;
