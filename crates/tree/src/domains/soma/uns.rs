//! The unstructured data of a measurement: AnnData's `uns`, which TileDB-SOMA stores in a collection of that name.
//!
//! Numbers and texts are metadata of the collection, arrays of numbers are dense arrays, lists of texts are data frames
//! with a column `values`, other data frames are such, and nested data are collections again. Everything else is omitted, which the group records, and
//! so are further names of a collection.
//!
//! Source: the output of `tiledbsoma.io` (`soma_uns_outgest_hint`).

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::zarr::{ZarrNode, anndata};
use tilefs_export::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_reader::OpenedObject;
use tilefs_reader::array::{OpenedArray, Visits};
use tilefs_reader::group::OpenedGroup;
use tilefs_threads::cancellation;

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray, describe_field};
use crate::domains::soma::{self, Element, MatrixAxis};
use crate::fields::meta;
use crate::objects::members::NamedMembers;

/// The metadata key under which the original type of a data frame is stored.
const HINT: &str = "soma_uns_outgest_hint";

/// Its value for a list, and for a table of texts.
const LIST: &str = "array_1d";
const TABLE: &str = "array_2d";

/// The column of a list's elements.
const VALUES: &str = "values";

/// Prefix of SOMA's own metadata of a collection, which were not in `uns`.
const OWN: &str = "soma_";

/// The converted elements of a collection by name, and the names of all other elements, with the reasons.
pub struct Unstructured {
    pub elements: Vec<(String, ZarrNode)>,
    pub left_out: Vec<(String, String)>,
}

/// Converts the elements of a collection, and of nested ones. A collection that has several names is converted once.
///
/// # Errors
/// Fails if the collection, or metadata in it, cannot be read.
pub fn unstructured(collection: &OpenedGroup) -> Result<Unstructured> {
    let mut visits = Visits::new();
    visits.is_first(collection.context(), collection.path());
    let mut left_out = Vec::new();
    let elements = elements(collection, "", &mut visits, &mut left_out)?;
    Ok(Unstructured { elements, left_out })
}

/// Converts the elements of a collection whose names begin with `prefix` in the list of what is omitted.
fn elements(
    collection: &OpenedGroup,
    prefix: &str,
    visits: &mut Visits,
    left_out: &mut Vec<(String, String)>,
) -> Result<Vec<(String, ZarrNode)>> {
    let mut found = Vec::new();
    for datum in meta::for_formats(&*collection.metadata()?) {
        if datum.key.starts_with(OWN) {
            continue;
        }
        match scalar(&datum) {
            Ok(node) => found.push((datum.key, node)),
            Err(reason) => left_out.push((format!("{prefix}{}", datum.key), reason.to_string())),
        }
    }
    let members = NamedMembers::new(collection.members()?);
    for name in members.names.iter().flatten() {
        cancellation::check()?;
        let node = match members.open(collection, name)? {
            Some(OpenedObject::Group(inner)) if !visits.is_first(inner.context(), inner.path()) => {
                Err(Unrepresentable::new("the same collection is shown under another name"))
            }
            Some(OpenedObject::Group(inner)) => {
                let inner = elements(&inner, &format!("{prefix}{name}/"), visits, left_out)?;
                Ok(ZarrNode::Group(Arc::new(anndata::mapping(inner))))
            }
            Some(OpenedObject::Array(array)) => of_array(&array)?,
            None => Err(Unrepresentable::new("it is gone")),
        };
        match node {
            Ok(node) => found.push((name.clone(), node)),
            Err(reason) => left_out.push((format!("{prefix}{name}"), reason.to_string())),
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
        Some(Element::DataFrame) => frame(array),
        _ if !array.schema().is_sparse() => soma::dense_array(array, [&MatrixAxis::default(); 2]),
        _ => Ok(Err(Unrepresentable::new(
            "only numbers, texts, dense arrays, lists of texts and data frames are carried over",
        ))),
    }
}

/// Returns a data frame, or the list that was stored as one.
fn frame(array: &Arc<OpenedArray>) -> Result<FormatResult<ZarrNode>> {
    let metadata = array.metadata()?;
    let hint = meta::for_formats(&metadata).into_iter().find(|datum| datum.key == HINT);
    match hint.as_ref().and_then(|datum| str::from_utf8(&datum.value).ok()) {
        Some(LIST) => list(array),
        Some(TABLE) => Ok(Err(Unrepresentable::new("a table of texts that was no data frame"))),
        _ => Ok(soma::data_frame(array, None)?.map(|frame| ZarrNode::Group(Arc::new(frame.group)))),
    }
}

/// Returns the elements of a list in the order of its rows.
fn list(array: &Arc<OpenedArray>) -> Result<FormatResult<ZarrNode>> {
    let schema = array.schema();
    let values = schema.attributes.iter().position(|attribute| attribute.name == VALUES);
    let Some(number) = values else {
        return Ok(Err(Unrepresentable::new(format!("a list without a column {VALUES}"))));
    };
    let id = FieldId::Attribute(number);
    if let Err(reason) = anndata::check(&describe_field(id, schema, VALUES)) {
        return Ok(Err(reason));
    }
    let subarray: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
    let rows = subarray.shape()?.first().copied().unwrap_or(0);
    Ok(Ok(soma::frame_column(&subarray, id, rows)?.node()?))
}
