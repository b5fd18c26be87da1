//! Builds the datasets and attributes of a file from the plan of a netCDF file.

use hdf5_layout::{
    AttributeMessage, CharacterSet, Dataset, Dataspace, Datatype, FileLayout, HeapPlan, ObjectId, StringPadding, Tree,
};
use tilefs_base::error::{Error, Result};

use super::chunks::{chunks_in_order, filled_up};
use super::file::{DatasetValues, Hdf5};
use crate::content::offsets::Offsets;
use crate::netcdf::plan::{FilePlan, Meaning, NcAttribute, NcDimension, PlannedVariable};
use crate::netcdf::types::NcType;

/// The conventions that a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The conventions of netCDF's library.
    NetCdf4,
    /// The conventions of h5py.
    Plain,
}

/// Attributes that are reserved by libraries.
const RESERVED: [&str; 9] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "DIMENSION_LABELS",
];

/// Builds the file of a plan.
///
/// # Errors
/// Fails if offsets of texts cannot be read, or if HDF5 cannot hold something.
pub fn file(plan: &FilePlan, form: Form) -> Result<Hdf5> {
    let mut builder = TreeBuilder { form, tree: Tree::new(), values: vec![None] };
    builder.attributes(ObjectId::ROOT, &plan.attributes)?;
    let mut scales = Vec::new();
    for (number, dimension) in plan.dimensions.iter().enumerate() {
        scales.push(builder.scale(plan, number, dimension)?);
    }
    for variable in plan.variables.iter().filter(|variable| !is_scale(plan, variable)) {
        let dataset = builder.variable(plan, variable)?;
        let axes = builder.dimensions(variable).iter().map(|number| scales.get(*number).copied().flatten());
        // Readers of netCDF reject a dataset if only some of its axes have scales.
        for (axis, scale) in axes.collect::<Option<Vec<_>>>().unwrap_or_default().into_iter().enumerate() {
            builder.tree.attach_scale(dataset, axis, scale).map_err(unsupported)?;
        }
    }
    let layout = FileLayout::build(builder.tree).map_err(unsupported)?;
    Ok(Hdf5::new(layout, builder.values))
}

struct TreeBuilder {
    form: Form,
    tree: Tree,
    /// Indexed by the tree's objects.
    values: Vec<Option<DatasetValues>>,
}

impl TreeBuilder {
    /// Adds the dimension scale of a dimension: its coordinates or, in netCDF-4, a dataset that only has its length.
    fn scale(&mut self, plan: &FilePlan, number: usize, dimension: &NcDimension) -> Result<Option<ObjectId>> {
        let coordinates = plan.variables.iter().find(|variable| is_scale_of(variable, number, dimension));
        let (scale, name) = match coordinates {
            Some(variable) => (self.variable(plan, variable)?, dimension.name.clone()),
            None if self.form == Form::Plain => return Ok(None),
            None => {
                let length = dimension.length;
                let dataset = Dataset::new(Datatype::Float { size: 4 }, Dataspace::vector(length)).unwritten();
                let dataset = match plan.growing.contains(&number) {
                    true => dataset.chunked(vec![1]).unlimited(vec![0]),
                    false => dataset,
                };
                let name = format!("This is a netCDF dimension but not a netCDF variable.{length:>10}");
                (self.add(&dimension.name, dataset, None)?, name)
            }
        };
        self.tree.make_scale(scale, &name).map_err(unsupported)?;
        if self.form == Form::NetCdf4 {
            let identifier = u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes().to_vec();
            let identifier = AttributeMessage::new(Datatype::signed(4), Dataspace::Scalar, identifier);
            self.tree.attribute(scale, "_Netcdf4Dimid", identifier).map_err(unsupported)?;
        }
        Ok(Some(scale))
    }

    /// Adds the dataset of a variable, with its attributes.
    fn variable(&mut self, plan: &FilePlan, variable: &PlannedVariable) -> Result<ObjectId> {
        let dimensions = self.dimensions(variable);
        let lengths: Vec<u64> = dimensions.iter().map(|number| length_of(plan, *number)).collect();
        let space = if lengths.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(lengths.clone()) };
        let datatype = self.datatype(plan, variable);
        let is_boolean = datatype == Datatype::boolean();
        let mut dataset = Dataset::new(datatype, space);
        if let Some(fill_value) = fill_value(variable).filter(|_| !is_boolean) {
            dataset = dataset.fill_value(little_endian(variable.nc_type, &fill_value));
        }
        let mut values = DatasetValues { values: variable.content.clone(), offsets: None };
        if let Meaning::Strings { offsets } = &variable.meaning {
            dataset = dataset.heap(heap_plan(offsets)?);
            values.offsets = Some(offsets.clone());
        }
        let is_growing = |axis: &usize| dimensions.get(*axis).is_some_and(|number| plan.growing.contains(number));
        let growing: Vec<usize> = (0..dimensions.len()).filter(is_growing).collect();
        if self.form == Form::NetCdf4 && !growing.is_empty() {
            // Strings have no zeros after the last one.
            let is_divided = values.offsets.is_some();
            let chunk = chunks_in_order(&lengths, variable.nc_type.size() as u64, is_divided);
            if !is_divided {
                values.values = filled_up(values.values, &lengths, &chunk);
            }
            dataset = dataset.chunked(chunk).unlimited(growing);
        }
        let dataset = self.add(&variable.name, dataset, Some(values))?;
        self.attributes(dataset, &variable.attributes)?;
        Ok(dataset)
    }

    fn add(&mut self, name: &str, dataset: Dataset, values: Option<DatasetValues>) -> Result<ObjectId> {
        let added = self.tree.dataset(ObjectId::ROOT, name, dataset).map_err(unsupported)?;
        self.values.push(values);
        Ok(added)
    }

    /// Returns the dimensions of a variable's dataset.
    fn dimensions<'a>(&self, variable: &'a PlannedVariable) -> &'a [usize] {
        match (self.form, &variable.meaning, variable.dimensions.split_last()) {
            (Form::Plain, Meaning::Characters, Some((_, cells))) => cells,
            _ => &variable.dimensions,
        }
    }

    fn datatype(&self, plan: &FilePlan, variable: &PlannedVariable) -> Datatype {
        // A third value represents null.
        let has_nulls = variable.attributes.iter().any(|attribute| attribute.name == "_FillValue");
        match (variable.nc_type, &variable.meaning, self.form) {
            (NcType::Byte, Meaning::Booleans, Form::Plain) if !has_nulls => Datatype::boolean(),
            (NcType::Char, Meaning::Characters, Form::Plain) => {
                let length = variable.dimensions.last().map_or(1, |number| length_of(plan, *number));
                Datatype::FixedString {
                    // A cell has fewer than 2^32 values.
                    size: u32::try_from(length).unwrap_or(u32::MAX),
                    padding: StringPadding::NullPadded,
                    character_set: CharacterSet::Utf8,
                }
            }
            (nc_type, ..) => datatype_of(nc_type),
        }
    }

    fn attributes(&mut self, object: ObjectId, attributes: &[NcAttribute]) -> Result<()> {
        for attribute in attributes {
            let is_reserved = RESERVED.contains(&attribute.name.as_str());
            let free = |name: &String| attributes.iter().all(|other| other.name != *name);
            let mut name = if is_reserved { format!("{}_", attribute.name) } else { attribute.name.clone() };
            while is_reserved && !free(&name) {
                name.push('_');
            }
            self.tree.attribute(object, &name, self.attribute(attribute)).map_err(unsupported)?;
        }
        Ok(())
    }

    fn attribute(&self, NcAttribute { nc_type, values, .. }: &NcAttribute) -> AttributeMessage {
        let datatype = datatype_of(*nc_type);
        if values.is_empty() && !(*nc_type == NcType::Char && self.form == Form::Plain) {
            return AttributeMessage::null(datatype);
        }
        if *nc_type != NcType::Char {
            let count = (values.len() / nc_type.size()) as u64;
            let is_scalar = count == 1 && self.form == Form::Plain;
            let space = if is_scalar { Dataspace::Scalar } else { Dataspace::vector(count) };
            return AttributeMessage::new(datatype, space, little_endian(*nc_type, values));
        }
        let text = std::str::from_utf8(values).ok().filter(|text| !text.contains('\0'));
        match text {
            Some(text) if self.form == Form::Plain => AttributeMessage::text(text),
            _ => {
                // This is what netCDF's library writes; it does not count the NUL as a character.
                let padding = if text.is_some() { StringPadding::NullTerminated } else { StringPadding::NullPadded };
                let character_set = if values.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
                let size = u32::try_from(values.len()).unwrap_or(u32::MAX);
                let datatype = Datatype::FixedString { size, padding, character_set };
                AttributeMessage::new(datatype, Dataspace::Scalar, values.clone())
            }
        }
    }
}

pub fn unsupported(error: hdf5_layout::Error) -> Error {
    Error::unsupported(error.to_string())
}

fn length_of(plan: &FilePlan, dimension: usize) -> u64 {
    plan.dimensions.get(dimension).map_or(1, |dimension| dimension.length)
}

fn is_scale_of(variable: &PlannedVariable, number: usize, dimension: &NcDimension) -> bool {
    variable.name == dimension.name && variable.dimensions == [number]
}

fn is_scale(plan: &FilePlan, variable: &PlannedVariable) -> bool {
    plan.dimensions.iter().enumerate().any(|(number, dimension)| is_scale_of(variable, number, dimension))
}

/// Returns the big-endian value of a variable's unwritten cells: without a `_FillValue`, the default of netCDF's library.
/// Readers such as kerchunk take it for missing data, and without one it would be 0. `None` for texts.
fn fill_value(variable: &PlannedVariable) -> Option<Vec<u8>> {
    let default = variable.nc_type.default_fill()?;
    let own = variable.attributes.iter().find(|attribute| attribute.name == "_FillValue");
    Some(own.map_or(default, |own| own.values.clone()))
}

fn datatype_of(nc_type: NcType) -> Datatype {
    match nc_type {
        NcType::Byte => Datatype::signed(1),
        NcType::Short => Datatype::signed(2),
        NcType::Int => Datatype::signed(4),
        NcType::Int64 => Datatype::signed(8),
        NcType::UByte => Datatype::unsigned(1),
        NcType::UShort => Datatype::unsigned(2),
        NcType::UInt => Datatype::unsigned(4),
        NcType::UInt64 => Datatype::unsigned(8),
        NcType::Float => Datatype::Float { size: 4 },
        NcType::Double => Datatype::Float { size: 8 },
        NcType::String => Datatype::text(),
        NcType::Char => Datatype::FixedString {
            size: 1,
            padding: StringPadding::NullTerminated,
            character_set: CharacterSet::Ascii,
        },
    }
}

/// Converts values of a plan, which are big-endian, to little-endian.
fn little_endian(nc_type: NcType, values: &[u8]) -> Vec<u8> {
    values.chunks_exact(nc_type.size()).flat_map(|value| value.iter().rev().copied()).collect()
}

/// Plans the positions in the global heap of the texts that begin at these offsets.
pub fn heap_plan(offsets: &Offsets) -> Result<HeapPlan> {
    let mut plan = HeapPlan::new();
    offsets.for_each_length(|length| plan.push(length).map_err(|problem| Error::unsupported(problem.to_string())))?;
    Ok(plan)
}
