//! The unstructured data of a measurement: AnnData's `uns`, which TileDB-SOMA stores in a collection of that name.
//!
//! Numbers and texts are metadata of the collection, arrays of numbers are dense arrays, lists of texts are data frames
//! with a column `values`, and nested data are collections again. Everything else is omitted, which the group records.
//!
//! Source: the output of `tiledbsoma.io` (`soma_uns_outgest_hint`).

use std::sync::Arc;

use tilefs_export::zarr::{ZarrNode, anndata};
use tilefs_export::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::error::Result;
use tilefs_reader::OpenedObject;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray, describe_field};
use crate::domains::soma::{self, Element, MatrixAxis};
use crate::fields::meta;
use crate::objects::members::NamedMembers;

/// The metadata key under which the original type of a data frame is stored.
const HINT: &str = "soma_uns_outgest_hint";

/// Its value for a list.
const LIST: &str = "array_1d";

/// The column of a list's elements.
const VALUES: &str = "values";

/// Prefix of SOMA's own metadata of a collection, which were not in `uns`.
const OWN: &str = "soma_";

/// The converted elements of a collection by name, and the names of all other elements, with the reasons.
#[derive(Default)]
pub struct Unstructured {
    pub elements: Vec<(String, ZarrNode)>,
    pub left_out: Vec<(String, String)>,
}

/// Converts the elements of a collection, and of nested ones.
///
/// # Errors
/// Fails if the collection, or metadata in it, cannot be read.
pub fn unstructured(collection: &OpenedGroup) -> Result<Unstructured> {
    let mut found = Unstructured::default();
    for datum in meta::for_formats(&*collection.metadata()?) {
        if datum.key.starts_with(OWN) {
            continue;
        }
        match scalar(&datum) {
            Ok(node) => found.elements.push((datum.key, node)),
            Err(reason) => found.left_out.push((datum.key, reason.to_string())),
        }
    }
    let members = NamedMembers::new(collection.members()?);
    for name in members.names.iter().flatten() {
        let node = match members.open(collection, name)? {
            Some(OpenedObject::Group(inner)) => {
                let inner = unstructured(&inner)?;
                found.left_out.extend(inner.left_out.into_iter().map(|(own, why)| (format!("{name}/{own}"), why)));
                Ok(ZarrNode::Group(Arc::new(anndata::mapping(inner.elements))))
            }
            Some(OpenedObject::Array(array)) => of_array(&array)?,
            None => Err(Unrepresentable::new("it is gone")),
        };
        match node {
            Ok(node) => found.elements.push((name.clone(), node)),
            Err(reason) => found.left_out.push((name.clone(), reason.to_string())),
        }
    }
    Ok(found)
}

/// Returns a number or a text.
fn scalar(datum: &Metadatum) -> FormatResult<ZarrNode> {
    let is_text = datum.datatype.is_string() && datum.datatype.size() == 1;
    let field = Field::new(&datum.key, datum.datatype);
    let (values, length) = (Arc::new(datum.value.clone()), datum.value.len() as u64);
    if is_text {
        let offsets = [0, length].map(u64::to_le_bytes).concat();
        let field = Field { datatype: Datatype::StringUtf8, ..field.with_values_per_cell(None) };
        return anndata::scalar(Column::variable(field, Vec::new(), values, Arc::new(offsets)));
    }
    if datum.datatype.kind() == Kind::Bytes || length != datum.datatype.size() as u64 {
        return Err(Unrepresentable::new("metadata that are neither text nor a single number"));
    }
    anndata::scalar(Column::fixed(field, Vec::new(), values))
}

fn of_array(array: &Arc<OpenedArray>) -> Result<FormatResult<ZarrNode>> {
    match Element::of(array.schema()) {
        Some(Element::DataFrame) => list(array),
        _ if !array.schema().is_sparse() => soma::dense_array(array, [&MatrixAxis::default(); 2]),
        _ => Ok(Err(Unrepresentable::new("only numbers, texts, dense arrays and lists of texts are carried over"))),
    }
}

/// Returns the elements of a list in the order of its rows.
fn list(array: &Arc<OpenedArray>) -> Result<FormatResult<ZarrNode>> {
    let metadata = array.metadata()?;
    let hint = meta::for_formats(&metadata).into_iter().find(|datum| datum.key == HINT);
    let schema = array.schema();
    let values = schema.attributes.iter().position(|attribute| attribute.name == VALUES);
    let (Some(number), Some(LIST)) = (values, hint.as_ref().and_then(|datum| str::from_utf8(&datum.value).ok())) else {
        return Ok(Err(Unrepresentable::new("a data frame that was not a list")));
    };
    let id = FieldId::Attribute(number);
    if let Err(reason) = anndata::check(&describe_field(id, schema, VALUES)) {
        return Ok(Err(reason));
    }
    let subarray: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
    let rows = subarray.shape()?.first().copied().unwrap_or(0);
    Ok(Ok(soma::frame_column(&subarray, id, rows)?.node()?))
}
