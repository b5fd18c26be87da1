//! The arrays of a group and their attributes.

use std::sync::Arc;

use serde_json::{Map, Value};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;

use super::array::{Attributes, Layout, Marks, chunk_of};
use super::types::ZarrType;
use super::{Array, Group, Node, json as texts};
use crate::cf::names::Names;
use crate::cf::{self, CfAttribute, CfValue, Direction, Note};
use crate::column::boxes::{BoxedColumns, Boxes, Rows};
use crate::column::dataset::{Dataset, Variable};
use crate::column::{AuxiliaryCoordinates, Column, Field, Labels, Metadatum};
use crate::geo::georeference::{Georeference, GeoreferencedAxes};

/// Number of coordinates of an axis in a chunk.
const COORDINATES_OF_A_CHUNK: u64 = 1 << 20;

/// Returns the group of an array.
pub fn group(columns: &BoxedColumns) -> Group {
    let mut builder = Builder::new(&columns.metadata);
    builder.group.attributes.entry("Conventions").or_insert_with(|| "CF-1.8".into());
    match columns.sparse {
        true => builder.sparse(columns),
        false => builder.dense(columns),
    }
    builder.group
}

/// Returns the group of variables that share dimensions.
pub fn of_dataset(dataset: &Dataset<Arc<dyn Boxes>>) -> Group {
    let mut builder = Builder::new(&dataset.metadata);
    let dimensions: Vec<String> = dataset.dimensions.iter().map(|(name, _)| builder.names.give(name)).collect();
    for Variable { axes, column } in &dataset.variables {
        let along: Vec<String> = axes.iter().filter_map(|&axis| dimensions.get(axis).cloned()).collect();
        let own = dataset.dimension_of_coordinates(&column.field().name, axes);
        match own.and_then(|axis| dimensions.get(axis)) {
            Some(name) => builder.column_of_name(name.clone(), column, &along),
            None => builder.column(column, &along),
        }
    }
    builder.group
}

struct Builder {
    group: Group,
    /// Names of arrays and dimensions; only an axis has the same name as its coordinates.
    names: Names,
    /// Attributes of every array over the cells.
    shared: Attributes,
}

impl Builder {
    fn new(metadata: &[Metadatum]) -> Self {
        let mut names = Names::of_zarr();
        names.give(super::METADATA);
        let attributes =
            metadata.iter().map(|metadatum| (metadatum.key.clone(), texts::metadatum(metadatum))).collect();
        Builder { group: Group { attributes, ..Group::default() }, names, shared: Map::new() }
    }

    fn dense(&mut self, columns: &BoxedColumns) {
        let axes: Vec<String> = columns.dimensions.iter().map(|axis| self.names.give(&axis.field().name)).collect();
        for (number, (axis, name)) in columns.dimensions.iter().zip(&axes).enumerate() {
            self.axis(axis, number, name, columns.georeference.as_ref());
        }
        let before = self.group.members.len();
        for AuxiliaryCoordinates { axis, column } in &columns.auxiliary {
            if let Some(axis) = axes.get(*axis) {
                self.column(column, std::slice::from_ref(axis));
            }
        }
        self.share_coordinates(before);
        if let Some(georeference) = columns.georeference.as_ref().filter(|axes| axes.need_a_system()) {
            self.grid_mapping(&georeference.place);
        }
        for column in &columns.attributes {
            self.column(column, &axes);
        }
    }

    fn sparse(&mut self, columns: &BoxedColumns) {
        let cells = match columns.dimensions.as_slice() {
            // The coordinates of the cells are those of their axis.
            [axis] if ZarrType::of(axis.field()).is_ok_and(|kind| kind.values.is_none()) => {
                let name = self.names.give(&axis.field().name);
                self.column_of_name(name.clone(), axis, std::slice::from_ref(&name));
                [name]
            }
            several => {
                let cells = [self.names.give("cells")];
                for column in several {
                    self.column(column, &cells);
                }
                self.share_coordinates(0);
                cells
            }
        };
        for column in &columns.attributes {
            self.column(column, &cells);
        }
    }

    /// Makes the members from index `from` the coordinates of all later arrays.
    fn share_coordinates(&mut self, from: usize) {
        let names = self.group.members.iter().skip(from).map(|(name, _)| name.as_str());
        if let Some(coordinates) = cf::list_of_names(names) {
            self.shared.insert("coordinates".to_owned(), coordinates.into());
        }
    }

    /// Adds the coordinates along an axis of a dense array.
    fn axis(&mut self, axis: &Arc<dyn Boxes>, number: usize, name: &str, georeference: Option<&GeoreferencedAxes>) {
        let field = axis.field();
        let Ok(kind) = ZarrType::of(field) else { return };
        let earthly = georeference.filter(|georeference| !georeference.place.is_rotated());
        let earthly = earthly.and_then(|georeference| match number {
            _ if number == georeference.samples => Some((georeference, Direction::Samples)),
            _ if number == georeference.lines => Some((georeference, Direction::Lines)),
            _ => None,
        });
        let transform = earthly.and_then(|(on_earth, _)| on_earth.place.transform.filter(|_| !on_earth.are_labelled));
        let mut attributes = Map::new();
        let placed = match (transform, earthly) {
            (Some(transform), Some((_, direction))) => {
                let length = axis.shape().iter().product();
                let field = Field::new(name, Datatype::Float64);
                let centres = cf::coordinates(transform, direction, length);
                let column = Column::fixed(field, vec![length], centres);
                Arc::new(Rows::of(column, COORDINATES_OF_A_CHUNK)) as Arc<dyn Boxes>
            }
            _ => {
                attributes = named(cf::field_attributes(field, name));
                axis.clone()
            }
        };
        if let Some((on_earth, direction)) =
            earthly.filter(|(on_earth, _)| on_earth.are_labelled || transform.is_some())
        {
            for attribute in cf::axis_attributes(&on_earth.place, direction) {
                attributes.entry(attribute.name).or_insert_with(|| attribute_value(&attribute));
            }
        }
        let kind = if transform.is_some() { ZarrType::of(placed.field()).unwrap_or(kind) } else { kind };
        add_notes(&mut attributes, field, None);
        let chunk = placed.shape().iter().map(|&length| length.clamp(1, COORDINATES_OF_A_CHUNK)).collect();
        self.add(name.to_owned(), &placed, chunk, kind, attributes, &[name.to_owned()], None);
    }

    /// Adds one attribute, or coordinates of cells, and the arrays that explain it.
    fn column(&mut self, column: &Arc<dyn Boxes>, axes: &[String]) {
        if ZarrType::of(column.field()).is_ok() {
            let name = self.names.give(&column.field().name);
            self.column_of_name(name, column, axes);
        }
    }

    /// Like [`Self::column`], under a name that is already reserved.
    fn column_of_name(&mut self, name: String, column: &Arc<dyn Boxes>, axes: &[String]) {
        let field = column.field();
        let Ok(kind) = ZarrType::of(field) else { return };
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
            self.validity(valid, &name, column, chunk.clone(), axes);
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
        self.add(name, column, chunk, kind, attributes, axes, null.filter(|_| field.nullable));
    }

    /// Adds the array of booleans that marks the cells of a nullable column that have a value.
    fn validity(&mut self, name: String, of: &str, column: &Arc<dyn Boxes>, chunk: Vec<u64>, axes: &[String]) {
        let mut attributes = Map::new();
        attributes.insert("long_name".to_owned(), format!("whether {of} has a value").into());
        let layout = Layout { chunk, dimensions: axes.to_vec(), attributes };
        self.group.members.push((name, Node::Array(Arc::new(Array::of_validity(column, Marks::Valid, layout)))));
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
        let rows: Arc<dyn Boxes> = Arc::new(Rows::of(column, count));
        self.add(array, &rows, vec![count.max(1)], kind, attributes, &[axis], None);
    }

    /// Adds the array that describes the coordinate system.
    fn grid_mapping(&mut self, place: &Georeference) {
        let name = self.names.give("crs");
        self.shared.insert("grid_mapping".to_owned(), name.clone().into());
        let attributes = named(cf::grid_mapping(place));
        let field = Field::new(&name, Datatype::Int32);
        // There always is a type for a number.
        let Ok(kind) = ZarrType::of(&field) else { return };
        let layout = Layout { chunk: Vec::new(), dimensions: Vec::new(), attributes };
        let zero = move |_: &IndexBox| Ok(Column::fixed(field.clone(), Vec::new(), Arc::new(vec![0; 4])));
        let array = Array::new(Vec::new(), kind, layout, zero);
        self.group.members.push((name, Node::Array(Arc::new(array))));
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
        let array = Array::of_values(column, kind, null, Layout { chunk, dimensions, attributes });
        self.group.members.push((name, Node::Array(Arc::new(array))));
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
