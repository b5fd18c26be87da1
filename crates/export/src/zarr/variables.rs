//! The arrays of a group and their attributes.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Map, Value};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;

use super::array::{ArrayLayout, Attributes, ZarrArray, chunk_of};
use super::json as texts;
use super::node::{METADATA, ZarrGroup, ZarrNode};
use super::types::ZarrType;
use crate::cf::names::UniqueNames;
use crate::cf::plan::{CfColumn, CfVariables, EarthAxis, add_array, add_dataset};
use crate::cf::{self, CfAttribute, CfValue, Note};
use crate::column::boxes::{BoxedColumns, BoxedRows, Boxes};
use crate::column::dataset::CfDataset;
use crate::column::{Column, Field, Labels, Metadatum};
use crate::content::validity::Validity;
use crate::geo::georeference::Georeference;

/// Number of coordinates of an axis in a chunk.
const COORDINATES_OF_A_CHUNK: u64 = 1 << 20;

/// Returns the group of an array.
pub fn group(columns: &BoxedColumns) -> ZarrGroup {
    let mut builder = GroupBuilder::new(&columns.metadata);
    builder.group.attributes.entry("Conventions").or_insert_with(|| "CF-1.8".into());
    let Ok(()) = add_array(&mut builder, columns);
    builder.group
}

/// Returns the group of variables that share dimensions.
pub fn of_dataset(dataset: &CfDataset<Arc<dyn Boxes>>) -> ZarrGroup {
    let mut builder = GroupBuilder::new(&dataset.metadata);
    let Ok(_) = add_dataset(&mut builder, dataset);
    builder.group
}

struct GroupBuilder {
    group: ZarrGroup,
    names: UniqueNames,
    dimensions: Vec<String>,
    /// Attributes of every array over the cells.
    shared: Attributes,
}

impl CfVariables for GroupBuilder {
    type Column = Arc<dyn Boxes>;
    /// Columns that Zarr cannot hold are left out.
    type Failure = Infallible;

    fn names(&mut self) -> &mut UniqueNames {
        &mut self.names
    }

    fn count(&self) -> usize {
        self.group.members.len()
    }

    fn is_along_cells(&self, column: &Arc<dyn Boxes>) -> bool {
        ZarrType::of(column.field()).is_ok_and(|kind| kind.values.is_none())
    }

    fn add_dimension(&mut self, name: String, _: u64) -> Result<usize, Infallible> {
        self.dimensions.push(name);
        Ok(self.dimensions.len() - 1)
    }

    fn add_axis(
        &mut self,
        name: String,
        _: usize,
        axis: &Arc<dyn Boxes>,
        on_earth: Option<&EarthAxis<'_>>,
    ) -> Result<(), Infallible> {
        let field = axis.field();
        let Ok(kind) = ZarrType::of(field) else { return Ok(()) };
        let length = axis.cells();
        let (placed, kind, mut attributes) = match on_earth.and_then(|on_earth| on_earth.coordinates(length)) {
            Some(centres) => {
                let column = Column::fixed(Field::new(&name, Datatype::Float64), vec![length], centres);
                let kind = ZarrType::of(&column.field).unwrap_or(kind);
                let rows: Arc<dyn Boxes> = Arc::new(BoxedRows::of(column, COORDINATES_OF_A_CHUNK));
                (rows, kind, Map::new())
            }
            None => (axis.clone(), kind, named(cf::field_attributes(field, &name))),
        };
        for attribute in on_earth.map(EarthAxis::attributes).unwrap_or_default() {
            attributes.entry(attribute.name).or_insert_with(|| attribute_value(&attribute));
        }
        add_notes(&mut attributes, field, None);
        let chunk = placed.shape().iter().map(|&length| length.clamp(1, COORDINATES_OF_A_CHUNK)).collect();
        self.add(name.clone(), &placed, chunk, kind, attributes, &[name], None);
        Ok(())
    }

    fn add_column(&mut self, column: &Arc<dyn Boxes>, dimensions: &[usize]) -> Result<(), Infallible> {
        if ZarrType::of(column.field()).is_err() {
            return Ok(());
        }
        let name = self.names.give(&column.field().name);
        self.add_column_of_name(name, column, dimensions)
    }

    fn add_column_of_name(
        &mut self,
        name: String,
        column: &Arc<dyn Boxes>,
        dimensions: &[usize],
    ) -> Result<(), Infallible> {
        let axes: Vec<String> = dimensions.iter().filter_map(|&number| self.dimensions.get(number).cloned()).collect();
        let field = column.field();
        let Ok(kind) = ZarrType::of(field) else { return Ok(()) };
        let mut attributes = named(cf::field_attributes(field, &name));
        let missing = field.no_data.as_ref().or(field.null.as_ref().filter(|_| field.nullable));
        let missing = missing.filter(|_| !field.is_bytes() && kind.cell_size().is_some());
        let missing = missing.and_then(|value| Some((value, kind.fill_value_attribute(value)?)));
        let marker = missing.as_ref().map(|(_, value)| value.clone());
        let is_single = field.values_per_cell == Some(1) && !field.nullable;
        let not_a_time = || cf::days_of(field.datatype).filter(|_| is_single).map(|_| cf::NOT_A_TIME.into());
        if let Some(value) = marker.or_else(not_a_time) {
            attributes.insert("_FillValue".to_owned(), value);
        }
        attributes.extend(self.shared.clone());
        let chunk = chunk_of(column);
        if field.nullable {
            let valid = self.names.give(&format!("{name}_valid"));
            if let Some(names) = cf::list_of_names([valid.as_str()]) {
                attributes.insert("ancillary_variables".to_owned(), names.into());
            }
            self.validity(valid, &name, column, chunk.clone(), &axes);
        }
        if let Some(labels) = &field.labels {
            if let (Some(meanings), true) = (cf::flag_meanings(labels), field.values_per_cell == Some(1)) {
                let codes: Vec<u64> = (0..labels.values.len() as u64).collect();
                attributes.insert("flag_values".to_owned(), codes.into());
                attributes.insert("flag_meanings".to_owned(), meanings.into());
            }
            self.labels(&name, labels);
        }
        add_notes(&mut attributes, field, Some(&kind));
        let null = missing.map(|(value, _)| value.repeat(field.values_per_cell.unwrap_or(1) as usize));
        self.add(name, column, chunk, kind, attributes, &axes, null.filter(|_| field.nullable));
        Ok(())
    }

    fn share_coordinates(&mut self, from: usize, _: &[usize]) {
        let names = self.group.members.iter().skip(from).map(|(name, _)| name.as_str());
        if let Some(coordinates) = cf::list_of_names(names) {
            self.shared.insert("coordinates".to_owned(), coordinates.into());
        }
    }

    fn add_grid_mapping(&mut self, place: &Georeference) {
        let name = self.names.give("crs");
        self.shared.insert("grid_mapping".to_owned(), name.clone().into());
        let attributes = named(cf::grid_mapping(place));
        let field = Field::new(&name, Datatype::Int32);
        // There always is a type for a number.
        let Ok(kind) = ZarrType::of(&field) else { return };
        let layout = ArrayLayout { chunk: Vec::new(), dimensions: Vec::new(), attributes };
        let zero = move |_: &IndexBox| Ok(Column::fixed(field.clone(), Vec::new(), Arc::new(vec![0; 4])));
        let array = ZarrArray::new(Vec::new(), kind, layout, zero);
        self.group.members.push((name, ZarrNode::Array(Arc::new(array))));
    }
}

impl GroupBuilder {
    fn new(metadata: &[Metadatum]) -> Self {
        let mut names = UniqueNames::of_zarr();
        names.give(METADATA);
        let attributes =
            metadata.iter().map(|metadatum| (metadatum.key.clone(), texts::metadatum(metadatum))).collect();
        let group = ZarrGroup { attributes, ..ZarrGroup::default() };
        GroupBuilder { group, names, dimensions: Vec::new(), shared: Map::new() }
    }

    /// Adds the array of booleans that marks the cells of a nullable column that have a value.
    fn validity(&mut self, name: String, of: &str, column: &Arc<dyn Boxes>, chunk: Vec<u64>, axes: &[String]) {
        let mut attributes = Map::new();
        attributes.insert("long_name".to_owned(), format!("whether {of} has a value").into());
        let layout = ArrayLayout { chunk, dimensions: axes.to_vec(), attributes };
        self.group
            .members
            .push((name, ZarrNode::Array(Arc::new(ZarrArray::of_marks(column, Validity::valid_cells, layout)))));
    }

    /// Adds all labels of an enumeration, in the order of their codes.
    fn labels(&mut self, name: &str, labels: &Labels) {
        let column = labels.column(name);
        let count = column.cells();
        let Ok(kind) = ZarrType::of(&column.field) else { return };
        if column.check().is_err() {
            return;
        }
        let axis = self.names.give(&format!("{name}_label"));
        let array = self.names.give(&format!("{name}_labels"));
        let mut attributes = Map::new();
        attributes.insert("long_name".to_owned(), format!("labels of the codes of {name}, from 0 on").into());
        attributes.extend(named(cf::field_attributes(&column.field, name)));
        let rows: Arc<dyn Boxes> = Arc::new(BoxedRows::of(column, count));
        self.add(array, &rows, vec![count.max(1)], kind, attributes, &[axis], None);
    }

    /// Adds an array of the cells of a column; `null` replaces null cells.
    #[expect(clippy::too_many_arguments, reason = "each describes another property of the array")]
    fn add(
        &mut self,
        name: String,
        column: &Arc<dyn Boxes>,
        chunk: Vec<u64>,
        kind: ZarrType,
        attributes: Attributes,
        axes: &[String],
        null: Option<Vec<u8>>,
    ) {
        let mut dimensions = axes.to_vec();
        if kind.values.is_some() {
            dimensions.push(self.names.give(&format!("{name}_values")));
        }
        let array = ZarrArray::of_values(column, kind, null, ArrayLayout { chunk, dimensions, attributes });
        self.group.members.push((name, ZarrNode::Array(Arc::new(array))));
    }
}

fn attribute_value(attribute: &CfAttribute) -> Value {
    match &attribute.value {
        CfValue::Text(text) => text.as_str().into(),
        CfValue::Numbers(numbers) => match numbers.as_slice() {
            &[number] => number.into(),
            several => several.into(),
        },
    }
}

/// Returns attributes with their names.
fn named(attributes: Vec<CfAttribute>) -> Attributes {
    attributes.iter().map(|attribute| (attribute.name.to_owned(), attribute_value(attribute))).collect()
}

/// Adds the array's metadata about a field to the generated attributes. `kind` is the type of its values.
fn add_notes(attributes: &mut Attributes, field: &Field, kind: Option<&ZarrType>) {
    for note in &field.notes {
        let ours = attributes.get_mut(&note.key);
        match (Note::of(note, field, ours.is_some()), ours) {
            (Note::Text(text), Some(ours)) => *ours = text.into(),
            (Note::Names(more), Some(Value::String(names))) => *names += &format!(" {more}"),
            (Note::New { like_the_values }, _) => {
                let converted = kind.filter(|_| like_the_values).and_then(|kind| {
                    let each = note.value.chunks_exact(note.datatype.size());
                    let mut values = each.map(|value| kind.value(value)).collect::<Option<Vec<_>>>()?;
                    Some(if values.len() == 1 { values.pop()? } else { values.into() })
                });
                attributes.insert(note.key.clone(), converted.unwrap_or_else(|| texts::metadatum(note)));
            }
            _ => {}
        }
    }
}
