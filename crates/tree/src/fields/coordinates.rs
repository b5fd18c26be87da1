//! The coordinates along the axes of a dense array that the array itself has, as labels of its dimensions.
//!
//! * GDAL's multidimensional TileDB driver calls the label of `NAME` `NAME_label`, and stores the kind of the axis
//!   (`_DIM_TYPE`) and its direction (`_DIM_DIRECTION`) in the metadata of the label's array.
//! * Other writers choose names for the content. The first label with distinct values along a dimension of plain
//!   integers becomes the coordinates by which readers look cells up, and gives the axis its name: `lat(lat)`. Labels
//!   of numbers or dates take precedence over text. All other labels are auxiliary coordinates.
//! * The array's metadata about a label, in TileDB-CF's form for dimensions (`__tiledb_dim.LABEL.KEY`), become its
//!   attributes. Floats named latitude or longitude, with values in that range, are in degrees unless the metadata say
//!   otherwise.

use std::collections::HashSet;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_export::{Column, Metadatum, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::schema::{CellValNum, DimensionLabel};
use tilefs_reader::array::{Metadata, OpenedArray};

use crate::cells::dense::DenseSubarray;
use crate::cells::{FieldId, column, describe_field};
use crate::fields::FieldFolder;
use crate::fields::meta::{self, text_value};
use crate::fields::notes::{Notes, UNIT, unit_of};

const KIND: &str = "_DIM_TYPE";
const DIRECTION: &str = "_DIM_DIRECTION";

/// Maximum number of values that are examined; GDAL does not label longer dimensions.
const MAX_VALUES: u64 = 10 << 20;

/// Maximum number of unordered values that are compared with each other, and maximum total size of texts in bytes.
const MAX_UNORDERED: u64 = 1 << 18;
const MAX_TEXT: u64 = 32 << 20;

/// Number of values examined at a time.
const VALUES_AT_ONCE: u64 = 8192;

/// Coordinates of one axis that give positions on the Earth, or that GDAL wrote.
#[derive(Debug, Clone)]
pub struct Coordinates {
    /// The values of the label, with the label's metadata as notes.
    pub column: Column,
    /// GDAL's name of the kind of axis: `HORIZONTAL_X`, `TEMPORAL`.
    pub kind: Option<String>,
    /// The index of the label.
    label: usize,
}

/// All coordinates that labels give an axis.
#[derive(Debug, Clone, Default)]
pub struct LabelCoordinates {
    /// The coordinates by which readers look cells up, instead of by cell number.
    pub main: Option<Column>,
    pub auxiliary: Vec<Column>,
}

impl LabelCoordinates {
    /// Finds the coordinates of the part of a dimension that is shown. `known` is the result of [`Coordinates::of`].
    /// Reads labels to find out whether their values are distinct.
    ///
    /// # Errors
    /// Fails if the array of a label or its values cannot be read.
    pub fn of(fields: &FieldFolder, notes: &Notes, dimension: usize, known: Option<&Coordinates>) -> Result<Self> {
        let schema = fields.schema();
        let mut found = LabelCoordinates { main: known.map(|known| known.column.clone()), auxiliary: Vec::new() };
        let mut columns = Vec::new();
        for (number, label) in schema.labels.iter().enumerate() {
            if label.dimension as usize == dimension && known.is_none_or(|known| known.label != number) {
                columns.extend(opened(fields, notes, label)?.map(|(column, _)| column));
            }
        }
        // A stable sort: keeps the order of the schema otherwise.
        columns.sort_by_key(|column| column.field.is_bytes());
        let is_numbered = has_mere_numbers(fields, dimension);
        for column in columns {
            match found.main.is_none() && is_numbered && is_one_to_one(&column)? {
                true => found.main = Some(column),
                false => found.auxiliary.push(column),
            }
        }
        // The dimension's notes apply to the coordinates that replace it.
        if let Some(main) = &mut found.main {
            let label = known.and_then(|known| schema.labels.get(known.label)).map(|label| label.name.as_str());
            let of_label = notes.of_label(label.unwrap_or(&main.field.name));
            let of_dimension = notes.of_field(FieldId::Dimension(dimension));
            main.field.notes = first_of_each_key([of_label, of_dimension, std::mem::take(&mut main.field.notes)]);
        }
        Ok(found)
    }
}

impl Coordinates {
    /// Finds the coordinates of a dimension; `None` if no label provides them, or if that label is not supported.
    ///
    /// # Errors
    /// Fails if the array of the label or its metadata cannot be read.
    pub fn of(fields: &FieldFolder, notes: &Notes, dimension: usize) -> Result<Option<Self>> {
        let schema = fields.schema();
        let of_gdal = format!("{}_label", schema.dimension_name(dimension));
        let is_it = |label: &DimensionLabel| {
            label.dimension as usize == dimension
                && label.datatype.kind() != Kind::Bytes
                && label.cell_count == CellValNum::Fixed(1)
        };
        let labels = || schema.labels.iter().enumerate().filter(|(_, label)| is_it(label));
        if let Some((number, label)) = labels().find(|(_, label)| label.name == of_gdal) {
            let Some((mut column, metadata)) = opened(fields, notes, label)? else { return Ok(None) };
            column.field.name = schema.dimension_name(dimension).into_owned();
            return Ok(Some(Coordinates { column, kind: text_value(&metadata, KIND), label: number }));
        }
        if !has_mere_numbers(fields, dimension) {
            return Ok(None);
        }
        for (number, label) in labels() {
            let Some(direction) = EarthDirection::of(label) else { continue };
            match direction.of_values(fields, notes, label) {
                Ok(Some(column)) => {
                    return Ok(Some(Coordinates { column, kind: Some(direction.kind().to_owned()), label: number }));
                }
                Err(error) if error.is_transient() => return Err(error),
                // The files of the label report the damage.
                Ok(None) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Returns the first coordinate and the step, if all steps are equal.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    pub fn spacing(&self) -> Result<Option<(f64, f64)>> {
        let count = self.column.cells();
        if !(2..=MAX_VALUES).contains(&count) {
            return Ok(None);
        }
        let datatype = self.column.field.datatype;
        let one = |number: u64| -> Result<Option<f64>> {
            let mut bytes = vec![0; datatype.size()];
            self.column.values.read_at(number * datatype.size() as u64, &mut bytes)?;
            Ok(double(datatype, &bytes))
        };
        let (Some(first), Some(last)) = (one(0)?, one(count - 1)?) else { return Ok(None) };
        let step = (last - first) / (count - 1) as f64;
        // GDAL's tolerance.
        let tolerance = step.abs() * 1e-3;
        let (mut before, mut is_regular) = (first - step, step.is_finite() && step != 0.0);
        each(&self.column, |value| {
            let value = double(datatype, value).unwrap_or(f64::NAN);
            is_regular &= (value - before - step).abs() <= tolerance;
            before = value;
        })?;
        Ok(is_regular.then_some((first, step)))
    }
}

/// Returns the labels along the only dimension of a dense array, as columns of its table.
///
/// # Errors
/// Fails if the array of a label cannot be read.
pub fn dimension_labels(fields: &FieldFolder) -> Result<Vec<Column>> {
    if fields.schema().is_sparse() || fields.schema().dimensions.len() != 1 {
        return Ok(Vec::new());
    }
    let labels = fields.schema().labels.iter().filter_map(|label| labelled(fields, label).transpose());
    labels.map(|found| Ok(found?.0)).collect()
}

/// Returns whether the coordinates of a dimension are plain integers, which other coordinates may replace; dates are
/// not.
fn has_mere_numbers(fields: &FieldFolder, dimension: usize) -> bool {
    fields.schema().dimensions.get(dimension).is_some_and(|dimension| dimension.datatype.time_unit().is_none())
}

/// Returns the values of a label along the part of its dimension that is shown, with all notes, and the metadata of its
/// array. `None` if there is no axis, or if the label is not supported.
fn opened(fields: &FieldFolder, notes: &Notes, label: &DimensionLabel) -> Result<Option<(Column, Arc<Metadata>)>> {
    let Some((mut column, array)) = labelled(fields, label)? else { return Ok(None) };
    let metadata = array.metadata()?;
    let of_array = notes_of_array(&metadata, text_value(&metadata, KIND).as_deref());
    let guessed = EarthDirection::of(label).map(EarthDirection::notes).unwrap_or_default();
    column.field.notes = first_of_each_key([notes.of_label(&label.name), of_array, guessed]);
    column.bounds = bounds(&column)?;
    Ok(Some((column, metadata)))
}

/// Returns the values of a label along the part of its dimension that is shown, and the array that contains them.
fn labelled(fields: &FieldFolder, label: &DimensionLabel) -> Result<Option<(Column, Arc<OpenedArray>)>> {
    let array = fields.subarray.array();
    let Some(axis) = fields.subarray.selection().and_then(|shown| shown.axes().get(label.dimension as usize)) else {
        return Ok(None);
    };
    let (opened, subarray) = match DenseSubarray::of_label(array, label, Some(axis)) {
        Ok(found) => found,
        // `labels/` reports the reason.
        Err(Error::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let id = FieldId::Attribute(opened.attribute);
    let field = describe_field(id, opened.array.schema(), &label.name);
    Ok(Some((column(&subarray, id, field)?, opened.array)))
}

/// Merges notes; an earlier note takes precedence over a later note with the same key.
fn first_of_each_key(notes: [Vec<Metadatum>; 3]) -> Vec<Metadatum> {
    let mut keys = HashSet::new();
    notes.into_iter().flatten().filter(|note| keys.insert(note.key.clone())).collect()
}

/// Returns whether all values are distinct, and none is missing.
fn is_one_to_one(column: &Column) -> Result<bool> {
    let (datatype, cells) = (column.field.datatype, column.cells());
    if let Some(offsets) = &column.offsets {
        let mut seen = HashSet::new();
        if cells > MAX_UNORDERED || column.values.len() > MAX_TEXT || column.field.datatype.size() != 1 {
            return Ok(false);
        }
        let (mut ends, mut values) = (vec![0; offsets.count() as usize + 1], vec![0; column.values.len() as usize]);
        offsets.read_into(0, &mut ends)?;
        column.values.read_at(0, &mut values)?;
        return Ok(ends.windows(2).all(|ends| match ends {
            &[start, end] => values.get(start as usize..end as usize).is_some_and(|value| seen.insert(value)),
            _ => false,
        }));
    }
    if column.field.values_per_cell != Some(1) || column.field.is_bytes() || cells > MAX_VALUES {
        return Ok(false);
    }
    let mut before: Option<OrderedNumber> = None;
    let (mut rises, mut falls, mut are_numbers) = (true, true, true);
    each(column, |value| match OrderedNumber::of(datatype, value) {
        Some(value) => {
            rises &= before.is_none_or(|before| before < value);
            falls &= before.is_none_or(|before| before > value);
            before = Some(value);
        }
        None => are_numbers = false,
    })?;
    if !are_numbers || rises || falls || cells > MAX_UNORDERED {
        return Ok(are_numbers && (rises || falls));
    }
    let (mut seen, mut is_new) = (HashSet::new(), true);
    each(column, |value| is_new &= seen.insert(value.to_vec()))?;
    Ok(is_new)
}

/// A number that is comparable with others of its type.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum OrderedNumber {
    Integer(i128),
    Float(f64),
}

impl OrderedNumber {
    /// Decodes a number; `None` for NaN, NaT and other types.
    fn of(datatype: Datatype, value: &[u8]) -> Option<Self> {
        match number::integer(datatype, value) {
            Some(integer) => {
                let is_moment = datatype.time_unit().is_none() || integer != i128::from(i64::MIN);
                is_moment.then_some(OrderedNumber::Integer(integer))
            }
            None => float(datatype, value).filter(|value| !value.is_nan()).map(OrderedNumber::Float),
        }
    }
}

/// A direction on the Earth, recognised by the name of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EarthDirection {
    North,
    East,
}

impl EarthDirection {
    fn of(label: &DimensionLabel) -> Option<Self> {
        let name = label.name.to_lowercase();
        match name.as_str() {
            _ if label.datatype.kind() != Kind::Float => None,
            "lat" | "latitude" => Some(EarthDirection::North),
            "lon" | "long" | "longitude" => Some(EarthDirection::East),
            _ => None,
        }
    }

    /// Returns GDAL's name of such an axis.
    fn kind(self) -> &'static str {
        match self {
            EarthDirection::North => "HORIZONTAL_Y",
            EarthDirection::East => "HORIZONTAL_X",
        }
    }

    fn notes(self) -> Vec<Metadatum> {
        let (name, units, axis) = match self {
            EarthDirection::North => ("latitude", "degrees_north", "Y"),
            EarthDirection::East => ("longitude", "degrees_east", "X"),
        };
        let notes = [("standard_name", name), ("units", units), ("axis", axis)];
        notes.map(|(key, text)| Metadatum::text(key, text)).to_vec()
    }

    /// Returns the values of a label, if they are degrees in range and distinct.
    fn of_values(self, fields: &FieldFolder, notes: &Notes, label: &DimensionLabel) -> Result<Option<Column>> {
        let Some((column, _)) = opened(fields, notes, label)? else { return Ok(None) };
        let is_it = self.could_be(&column)? && is_one_to_one(&column)?;
        Ok(is_it.then_some(column))
    }

    /// Returns whether all values are in the range of degrees.
    fn could_be(self, column: &Column) -> Result<bool> {
        if column.cells() > MAX_VALUES {
            return Ok(false);
        }
        let most = if self == EarthDirection::North { 90.0 } else { 540.0 };
        let mut could_be = true;
        each(column, |value| {
            could_be &= float(column.field.datatype, value).is_some_and(|value| value.abs() <= most);
        })?;
        Ok(could_be)
    }
}

/// Returns the CF attributes of the coordinates, from the metadata of the label's array.
fn notes_of_array(metadata: &Metadata, kind: Option<&str>) -> Vec<Metadatum> {
    let axis = match kind {
        Some("HORIZONTAL_X") => Some("X"),
        Some("HORIZONTAL_Y") => Some("Y"),
        Some("VERTICAL") => Some("Z"),
        Some("TEMPORAL") => Some("T"),
        _ => None,
    };
    let positive = match text_value(metadata, DIRECTION).as_deref() {
        Some("UP") => Some("up"),
        Some("DOWN") => Some("down"),
        _ => None,
    };
    let unit = meta::for_formats(metadata).into_iter().find(|metadatum| metadatum.key == UNIT);
    let said = [
        axis.map(|axis| Metadatum::text("axis", axis)),
        positive.map(|positive| Metadatum::text("positive", positive)),
        unit.and_then(|unit| unit_of(&unit)),
    ];
    said.into_iter().flatten().collect()
}

/// Returns the least and the greatest value of 64-bit integers; some formats cannot store all such values.
fn bounds(column: &Column) -> Result<Option<(i128, i128)>> {
    let datatype = column.field.datatype;
    if column.offsets.is_some() || datatype.size() < 8 || datatype.kind() == Kind::Float || column.cells() > MAX_VALUES
    {
        return Ok(None);
    }
    let mut bounds: Option<(i128, i128)> = None;
    each(column, |value| {
        if let Some(value) = number::integer(datatype, value) {
            bounds = Some(bounds.map_or((value, value), |(least, most)| (least.min(value), most.max(value))));
        }
    })?;
    Ok(bounds)
}

/// Calls `look` with each value of a column of fixed-size cells.
pub(crate) fn each(column: &Column, mut look: impl FnMut(&[u8])) -> Result<()> {
    let size = column.field.datatype.size() as u64;
    let (mut offset, end) = (0, column.values.len());
    let mut bytes = Vec::new();
    while offset < end {
        bytes.resize((end - offset).min(VALUES_AT_ONCE * size) as usize, 0);
        column.values.read_at(offset, &mut bytes)?;
        bytes.chunks_exact(size as usize).for_each(&mut look);
        offset += bytes.len() as u64;
    }
    Ok(())
}

fn double(datatype: Datatype, value: &[u8]) -> Option<f64> {
    match number::integer(datatype, value) {
        Some(integer) => Some(integer as f64),
        None => float(datatype, value),
    }
}

fn float(datatype: Datatype, value: &[u8]) -> Option<f64> {
    match datatype {
        Datatype::Float32 => Some(f64::from(f32::from_le_bytes(value.try_into().ok()?))),
        Datatype::Float64 => Some(f64::from_le_bytes(value.try_into().ok()?)),
        _ => None,
    }
}
