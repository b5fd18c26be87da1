//! Annotated data (`.h5ad`): the groups and arrays that [`zarr::anndata`](crate::zarr::anndata) makes, as HDF5.
//!
//! AnnData stores the same elements with the same attributes in both, so only types differ: booleans are the
//! enumeration that h5py writes, and texts are variable-length strings, also in attributes. Two kinds of values have no
//! type in an `.h5ad` file: dates, which anndata does not read from HDF5, and bytes of variable length. The attribute
//! `left_out` of their group names them.
//!
//! Source: AnnData's description of its on-disk format.

use std::sync::Arc;

use hdf5_layout::{AttributeMessage, Dataset, Dataspace, Datatype, FileLayout, ObjectId, Tree};
use serde_json::Value;
use tilefs_base::content::Content;
use tilefs_base::error::Result;

use super::file::{DatasetValues, Hdf5};
use super::tree::{heap_plan, unsupported};
use crate::column::{FormatResult, Unrepresentable};
use crate::zarr::{LEFT_OUT, WholeElements, ZarrArray, ZarrGroup, ZarrNode};

/// Returns the `.h5ad` file of annotated data. The layout only needs the offsets of all texts.
///
/// # Errors
/// Fails if offsets of texts cannot be read, or if HDF5 cannot hold the data.
pub fn annotated_data(group: &ZarrGroup) -> Result<Arc<dyn Content>> {
    let mut builder = AnnotatedBuilder { tree: Tree::new(), values: vec![None] };
    builder.group(ObjectId::ROOT, group)?;
    let layout = FileLayout::build(builder.tree).map_err(unsupported)?;
    Ok(Arc::new(Hdf5::new(layout, builder.values)))
}

struct AnnotatedBuilder {
    tree: Tree,
    /// The values of each object of the tree.
    values: Vec<Option<DatasetValues>>,
}

impl AnnotatedBuilder {
    /// Adds the attributes and members of a group.
    fn group(&mut self, object: ObjectId, group: &ZarrGroup) -> Result<()> {
        let mut attributes = group.attributes.clone();
        let mut left_out =
            attributes.remove(LEFT_OUT).and_then(|reasons| reasons.as_object().cloned()).unwrap_or_default();
        let mut members = Vec::new();
        for (name, member) in &group.members {
            match types_of(member) {
                Ok(()) => members.push((name, member)),
                Err(reason) => drop(left_out.insert(name.clone(), reason.to_string().into())),
            }
        }
        // A data frame lists its columns.
        if let Some(order) = attributes.get_mut("column-order").and_then(Value::as_array_mut) {
            order.retain(|column| column.as_str().is_some_and(|path| has_column(group, path)));
        }
        if !left_out.is_empty() {
            attributes.insert(LEFT_OUT.to_owned(), Value::Object(left_out));
        }
        for (name, value) in &attributes {
            self.tree.attribute(object, name, attribute(value)).map_err(unsupported)?;
        }
        for (name, member) in members {
            match member {
                ZarrNode::Group(inner) => {
                    let added = self.tree.group(object, name).map_err(unsupported)?;
                    self.values.push(None);
                    self.group(added, inner)?;
                }
                ZarrNode::Array(array) => self.dataset(object, name, array)?,
            }
        }
        Ok(())
    }

    fn dataset(&mut self, parent: ObjectId, name: &str, array: &ZarrArray) -> Result<()> {
        let datatype = datatype(array.data_type())?;
        let space = match array.shape() {
            [] => Dataspace::Scalar,
            shape => Dataspace::Simple(shape.to_vec()),
        };
        let WholeElements { values, offsets } = array.elements()?;
        let mut dataset = Dataset::new(datatype, space);
        if let Some(offsets) = &offsets {
            dataset = dataset.heap(heap_plan(offsets)?);
        }
        let added = self.tree.dataset(parent, name, dataset).map_err(unsupported)?;
        self.values.push(Some(DatasetValues { values, offsets }));
        for (name, value) in array.attributes() {
            self.tree.attribute(added, name, attribute(value)).map_err(unsupported)?;
        }
        Ok(())
    }
}

/// Checks that HDF5 has types for everything in an element. A mapping or data frame may lack some members; any other
/// group is one value in several arrays and needs all of them.
fn types_of(node: &ZarrNode) -> FormatResult<()> {
    match node {
        ZarrNode::Array(array) => datatype(array.data_type()).map(drop),
        ZarrNode::Group(group) => match group.attributes.get("encoding-type").and_then(Value::as_str) {
            // A group without an encoding has those columns of a data frame whose names begin with its name and a slash.
            Some("dataframe" | "dict" | "raw") | None => Ok(()),
            _ => group.members.iter().try_for_each(|(_, member)| types_of(member)),
        },
    }
}

/// Returns whether HDF5 has types for the column of this name, whose slashes may separate names of groups.
fn has_column(group: &ZarrGroup, path: &str) -> bool {
    group.members.iter().any(|(name, member)| match (member, path.strip_prefix(name.as_str())) {
        (_, Some("")) => types_of(member).is_ok(),
        (ZarrNode::Group(inner), Some(rest)) => rest.strip_prefix('/').is_some_and(|rest| has_column(inner, rest)),
        _ => false,
    })
}

/// Returns the HDF5 datatype of a Zarr data type.
fn datatype(of: &Value) -> FormatResult<Datatype> {
    let name = of.as_str().or(of["name"].as_str()).unwrap_or_default();
    let size = |digits: &str| digits.parse::<u32>().map(|bits| bits / 8).ok();
    let number = [("int", Datatype::signed as fn(u32) -> Datatype), ("uint", Datatype::unsigned), ("float", float)];
    let number = number.iter().find_map(|(prefix, make)| Some(make(size(name.strip_prefix(prefix)?)?)));
    match (name, number) {
        (_, Some(number)) => Ok(number),
        ("bool", _) => Ok(Datatype::boolean()),
        ("string", _) => Ok(Datatype::text()),
        ("numpy.datetime64", _) => Err(Unrepresentable::new("anndata reads no dates from HDF5")),
        _ => Err(Unrepresentable::new(format!("AnnData has no {name} in HDF5"))),
    }
}

fn float(size: u32) -> Datatype {
    Datatype::Float { size }
}

/// Returns an attribute as h5py writes the same Python value. Values without an HDF5 type become JSON.
fn attribute(value: &Value) -> AttributeMessage {
    let text = |value: &Value| value.as_str().filter(|text| !text.contains('\0')).map(str::to_owned);
    if let Some(text) = text(value) {
        return AttributeMessage::text(&text);
    }
    match value {
        Value::Bool(value) => AttributeMessage::new(Datatype::boolean(), Dataspace::Scalar, vec![u8::from(*value)]),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(signed), _) => AttributeMessage::signed(signed),
            (_, Some(float)) => AttributeMessage::float(float),
            _ => AttributeMessage::text(&value.to_string()),
        },
        Value::Array(values) => {
            let space = Dataspace::vector(values.len() as u64);
            if let Some(texts) = values.iter().map(text).collect::<Option<Vec<String>>>() {
                return AttributeMessage::texts(space, texts);
            }
            if let Some(numbers) = values.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>() {
                let bytes = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
                return AttributeMessage::new(Datatype::signed(8), space, bytes);
            }
            if let Some(numbers) = values.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>() {
                let bytes = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
                return AttributeMessage::new(Datatype::Float { size: 8 }, space, bytes);
            }
            AttributeMessage::text(&value.to_string())
        }
        other => AttributeMessage::text(&other.to_string()),
    }
}
