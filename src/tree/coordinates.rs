//! The coordinates of the rows, columns and other positions of a dense array where the array has them itself: as a label
//! of each dimension. GDAL's multidimensional TileDB driver calls the label of `NAME` `NAME_label`, and says in the
//! metadata of the label's array what kind of axis it is (`_DIM_TYPE`) and which way it goes (`_DIM_DIRECTION`).

use tilefs_export::{Column, Field, Metadatum, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::error::{Error, Result};
use tilefs_format::schema::CellValNum;
use tilefs_format::text;
use tilefs_reader::array::Metadata;

use super::fields::FieldFolder;
use super::labels;
use super::names::dimension_name;
use super::notes::{UNIT, unit_of};
use super::subarray::{FieldId, column};

const KIND: &str = "_DIM_TYPE";
const DIRECTION: &str = "_DIM_DIRECTION";

/// More values are not looked through; GDAL labels no longer dimension.
const MOST_VALUES: u64 = 10 << 20;

/// How many values are looked at together.
const VALUES_AT_ONCE: u64 = 8192;

/// The coordinates that are subarray of one axis.
#[derive(Debug, Clone)]
pub struct Coordinates {
    /// Under the name of the dimension, with what the label's metadata says of it.
    pub column: Column,
    /// GDAL's word for the kind of axis: `HORIZONTAL_X`, `TEMPORAL`.
    pub kind: Option<String>,
}

impl Coordinates {
    /// Those of a dimension; `None` where no label is them, or none that can be read by its kind.
    ///
    /// # Errors
    /// When the array of the label or its metadata cannot be read.
    pub fn of(fields: &FieldFolder, dimension: usize) -> Result<Option<Self>> {
        let array = fields.subarray.array();
        let Some(axis) = fields.subarray.selection().and_then(|selection| selection.axes().get(dimension)) else {
            return Ok(None);
        };
        let dimension_name = dimension_name(array.schema(), dimension);
        let name = format!("{dimension_name}_label");
        let is_it = |label: &&tilefs_format::schema::DimensionLabel| {
            label.dimension as usize == dimension
                && label.name == name
                && label.datatype.kind() != Kind::Bytes
                && label.cell_count == CellValNum::Fixed(1)
        };
        let Some(label) = array.schema().labels.iter().find(is_it) else { return Ok(None) };
        let (opened, subarray) = match labels::subarray(array, label, Some(axis)) {
            Ok(found) => found,
            // `labels/` says why.
            Err(Error::Unsupported { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = opened.array.metadata()?;
        let kind = word(&metadata, KIND);
        let mut field = Field::new(dimension_name, label.datatype);
        field.notes = notes(&metadata, kind.as_deref());
        let mut column = column(&subarray, FieldId::Attribute(opened.attribute), field)?;
        column.bounds = bounds(&column)?;
        Ok(Some(Coordinates { column, kind }))
    }

    /// The first coordinate and the step to each next, where all steps are alike.
    ///
    /// # Errors
    /// When the values cannot be read.
    pub fn spacing(&self) -> Result<Option<(f64, f64)>> {
        let count = self.column.cells();
        if !(2..=MOST_VALUES).contains(&count) {
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
        // As far from it as GDAL allows.
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

/// What the metadata says of the coordinates, in the words of CF.
fn notes(metadata: &Metadata, kind: Option<&str>) -> Vec<Metadatum> {
    let text = |key: &str, value: &str| Metadatum {
        key: key.to_owned(),
        datatype: Datatype::StringUtf8,
        value: value.as_bytes().to_vec(),
    };
    let axis = match kind {
        Some("HORIZONTAL_X") => Some("X"),
        Some("HORIZONTAL_Y") => Some("Y"),
        Some("VERTICAL") => Some("Z"),
        Some("TEMPORAL") => Some("T"),
        _ => None,
    };
    let positive = match word(metadata, DIRECTION).as_deref() {
        Some("UP") => Some("up"),
        Some("DOWN") => Some("down"),
        _ => None,
    };
    let unit = super::meta::for_formats(metadata).into_iter().find(|metadatum| metadatum.key == UNIT);
    let said = [
        axis.map(|axis| text("axis", axis)),
        positive.map(|positive| text("positive", positive)),
        unit.and_then(|unit| unit_of(&unit)),
    ];
    said.into_iter().flatten().collect()
}

/// A short text of the metadata.
fn word(metadata: &Metadata, key: &str) -> Option<String> {
    let value = metadata.get(key)?;
    Some(text::decode(value.datatype, value.bytes()?)?.into_owned())
}

/// The least and the greatest of integers that a format may have no place for.
fn bounds(column: &Column) -> Result<Option<(i128, i128)>> {
    let datatype = column.field.datatype;
    if datatype.size() < 8 || datatype.kind() == Kind::Float || column.cells() > MOST_VALUES {
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

fn each(column: &Column, mut look: impl FnMut(&[u8])) -> Result<()> {
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
        None => number::text(datatype, value)?.parse().ok(),
    }
}
