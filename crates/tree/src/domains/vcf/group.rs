//! Recognises the groups that are datasets of TileDB-VCF: they have an array of variant calls, `data`, and an array of the
//! headers of the source files, `vcf_headers`, which may be in the group `metadata` instead.

use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::Object;
use tilefs_reader::array::Array;
use tilefs_reader::group::Group;
use tilefs_vcf::dataset::arrays::{VariantDataset, is_calls};

use crate::objects::members::NamedMembers;

const DATA: &str = "data";
const HEADERS: &str = "vcf_headers";
const METADATA: &str = "metadata";

/// Returns the dataset of a group, if the group has the members of one. Opens both arrays, and reads no cell.
///
/// # Errors
/// Fails if the members, a schema or the metadata cannot be read, and for layouts other than 2, 3 and 4.
pub fn dataset_of(group: &Group) -> Result<Option<VariantDataset>> {
    let members = NamedMembers::new(group.members()?);
    let has = |name: &str| members.by_name.contains_key(name);
    if !has(DATA) || !(has(HEADERS) || has(METADATA)) {
        return Ok(None);
    }
    let Some(Object::Array(data)) = members.open(group, DATA)? else { return Ok(None) };
    if !is_calls(data.schema()) {
        return Ok(None);
    }
    let headers = match members.open(group, HEADERS)? {
        Some(Object::Array(headers)) => headers,
        _ => {
            let Some(Object::Group(inner)) = members.open(group, METADATA)? else { return Ok(None) };
            let members = NamedMembers::new(inner.members()?);
            let Some(Object::Array(headers)) = members.open(&inner, HEADERS)? else { return Ok(None) };
            headers
        }
    };
    VariantDataset::new(data, headers)
}

/// Returns the dataset that a group is, if this member is the array of its variant calls. Logs a dataset whose headers
/// are damaged.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time. Missing headers cost the calls nothing.
pub fn dataset_of_calls(group: &Group, array: &Arc<Array>) -> Result<Option<VariantDataset>> {
    if !is_calls(array.schema()) {
        return Ok(None);
    }
    match dataset_of(group) {
        Ok(found) => Ok(found.filter(|dataset| dataset.data.path() == array.path())),
        Err(error) if error.is_transient() && !matches!(error, Error::Missing { .. }) => Err(error),
        Err(error) => {
            log::warn!("{}: tables show the fields of variants as they are stored: {error}", array.path());
            Ok(None)
        }
    }
}
