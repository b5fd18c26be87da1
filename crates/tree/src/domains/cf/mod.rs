//! A group that TileDB-CF wrote as one dataset: its arrays are variables along shared dimensions, which are identified
//! by name.
//!
//! TileDB-CF (0.9, `from_netcdf` and `from_xarray`) writes groups in this form:
//!
//! * The members are dense arrays with integer dimensions that start at 0; dimensions of the same name have the same
//!   domain. A dimension that was unlimited has a much larger domain than was written, so the length of a dimension
//!   here is the largest extent written along it in any array.
//! * Each attribute is a variable. If its name equals a dimension of its array, `.data` is appended to it, or `_` if
//!   the array has that name too.
//! * Variables without dimensions are attributes along `__scalars`, which has length 1.
//! * Metadata of variables are metadata of the arrays, under `__tiledb_attr.NAME.KEY`; global attributes are metadata
//!   of the group.

mod files;
pub mod group;
mod slices;
mod times;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::column::boxes::Boxes;
use tilefs_export::column::dataset::{CfDataset, Variable};
use tilefs_export::hdf5::{Form, hdf5_of_dataset};
use tilefs_export::netcdf::netcdf_of_dataset;
use tilefs_export::zarr::{self, ZarrGroup};
use tilefs_export::{Column, Content, Field, Metadatum};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Result};
use tilefs_format::scalar::{self, Scalar};
use tilefs_format::schema::{ArrayType, CellValNum};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::{AxisSelection, IndexBox, Selection};
use tilefs_reader::group::OpenedGroup;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::label_search::ColumnLabel;
use crate::cells::{DenseBoxes, FieldId, column};
use crate::fields::array_form::ArrayForm;
use crate::fields::columns::padded;
use crate::fields::meta;
use crate::fields::rasters::Rasters;
use crate::fields::{FieldFolder, FieldNames};
use crate::node::shown::ShownViews;
use crate::objects::open_folder;
use crate::select::calendar::Calendar;
use crate::select::{self, Addressing, DimensionBounds, SelectableLabel};

/// The dimension of variables without dimensions.
const SCALARS: &str = "__scalars";

/// Suffixes appended to the name of a variable that equals the name of a dimension.
const SUFFIXES: [&str; 2] = [".data", ".index"];

/// Prefix of the metadata of attributes.
const OF_ATTRIBUTES: &str = "__tiledb_attr.";

/// Maximum number of members of a group that is examined.
const MAX_MEMBERS: usize = 1024;

/// The variables of a group, or parts of them. No cells have been read.
pub struct GroupDataset {
    dimensions: Vec<GroupDimension>,
    arrays: Vec<MemberArray>,
    metadata: Vec<Metadatum>,
    modified: SystemTime,
}

/// A dimension that arrays of the group share.
#[derive(Clone)]
struct GroupDimension {
    name: String,
    /// The last position of its domain.
    last: u64,
    /// The positions that are shown; by default those up to the last one written along it in any array.
    shown: AxisSelection,
    /// Whether its domain is larger than what was written.
    grows: bool,
}

/// An array of the group, with its dimensions resolved.
struct MemberArray {
    dense: Arc<DenseArray>,
    /// The shown part of it.
    fields: FieldFolder,
    /// Indexes of its dimensions among those of the group.
    axes: Vec<usize>,
    /// The variable name of each attribute.
    variables: Vec<String>,
}

impl MemberArray {
    /// Creates the part of an array along the shown positions of the dimensions.
    fn new(
        dense: Arc<DenseArray>,
        variables: Vec<String>,
        dimensions: &[GroupDimension],
        modified: SystemTime,
    ) -> Result<Self> {
        let schema = dense.array().schema();
        let number = |name: &str| dimensions.iter().position(|known| known.name == name);
        let axes: Vec<usize> = schema.dimensions.iter().filter_map(|one| number(&one.name)).collect();
        let shown = schema.dimensions.iter().map(|one| match number(&one.name) {
            Some(axis) => dimensions[axis].shown.clone(),
            None => AxisSelection::contiguous(0, 1),
        });
        let (shown, names) = (Selection::new(shown.collect())?, Arc::new(FieldNames::of(schema)));
        let subarray = Arc::new(DenseSubarray::new(dense.clone(), shown));
        let fields = FieldFolder { subarray, names, shown: ShownViews::NONE, modified, form: ArrayForm::default() };
        Ok(MemberArray { dense, fields, axes, variables })
    }
}

impl GroupDataset {
    /// Returns the dataset of a group; `None` for groups of other kinds. Opens members until one does not fit. Also
    /// returns whether the result is final: a damaged member may be restored.
    ///
    /// # Errors
    /// Fails if the group's members or metadata, or a member, cannot be read.
    pub fn of(group: &OpenedGroup, modified: SystemTime) -> Result<(Option<Self>, bool)> {
        let members = group.members()?;
        if members.is_empty() || members.len() > MAX_MEMBERS {
            return Ok((None, true));
        }
        let mut opened = Vec::new();
        for member in members.iter() {
            let Some(path) = member.place.path() else { return Ok((None, true)) };
            let array = match open_folder(group.context().clone(), path, group.window()) {
                Err(error) if error.is_transient() => return Err(error),
                // The member's own folder reports the error.
                Err(error) => return Ok((None, !matches!(error, Error::Damaged { .. }))),
                Ok(array) => array,
            };
            if !fits(&array) {
                return Ok((None, true));
            }
            opened.push((member.name.as_str(), array));
        }
        Ok((Self::of_arrays(group, &opened, modified)?, true))
    }

    /// Returns the dataset of these members of a group, which fit.
    fn of_arrays(
        group: &OpenedGroup,
        opened: &[(&str, Arc<OpenedArray>)],
        modified: SystemTime,
    ) -> Result<Option<Self>> {
        let mut is_marked = false;
        let (mut names, mut variables) = (HashSet::new(), Vec::new());
        for (member, array) in opened {
            let own: Vec<String> =
                array.schema().attributes.iter().map(|one| variable_name(array, member, &one.name)).collect();
            if !own.iter().all(|name| names.insert(name.clone())) {
                return Ok(None);
            }
            is_marked |= is_of_tiledb_cf(array, &own)?;
            variables.push(own);
        }
        let opened: Vec<Arc<DenseArray>> =
            opened.iter().map(|(_, array)| Ok(Arc::new(DenseArray::new(array.clone())?))).collect::<Result<_>>()?;
        let Some(dimensions) = dimensions(&opened)?.filter(|_| is_marked) else { return Ok(None) };
        let members = opened.into_iter().zip(variables);
        let arrays = members.map(|(dense, variables)| MemberArray::new(dense, variables, &dimensions, modified));
        let (arrays, metadata) = (arrays.collect::<Result<_>>()?, meta::for_formats(&*group.metadata()?));
        Ok(Some(GroupDataset { dimensions, arrays, metadata, modified }))
    }

    /// Returns the dataset as one Zarr group.
    ///
    /// # Errors
    /// Fails if the metadata of an array cannot be read.
    pub fn zarr(&self) -> Result<ZarrGroup> {
        let boxes = |array: &MemberArray, id: FieldId, field: Field| -> Result<Arc<dyn Boxes>> {
            let cells = DenseBoxes::new(array.fields.subarray.clone(), id, field)?;
            Ok(if array.axes.is_empty() { Arc::new(OneCell(cells)) } else { Arc::new(cells) })
        };
        Ok(zarr::zarr_of_dataset(&self.with(boxes)?))
    }

    /// Returns the dataset as one netCDF file.
    ///
    /// # Errors
    /// Fails if the metadata of an array cannot be read; `Unsupported` if netCDF cannot hold it.
    pub fn netcdf(&self) -> Result<Arc<dyn Content>> {
        Ok(netcdf_of_dataset(&self.columns(padded)?)?.file.content)
    }

    /// Returns the dataset as one HDF5 file.
    ///
    /// # Errors
    /// As for [`GroupDataset::netcdf`].
    pub fn hdf5(&self, form: Form) -> Result<Arc<dyn Content>> {
        hdf5_of_dataset(&self.columns(Ok)?, form)
    }

    fn columns(&self, change: impl Fn(Column) -> Result<Column>) -> Result<CfDataset<Column>> {
        self.with(|array, id, field| {
            let column = change(column(&*array.fields.subarray, id, field)?)?;
            Ok(if array.axes.is_empty() { Column { shape: Vec::new(), ..column } } else { column })
        })
    }

    /// Returns the coordinates along a dimension: the values of the variable of its name.
    fn coordinates(&self, dimension: usize) -> Result<Option<Column>> {
        let Some(name) = self.dimensions.get(dimension).map(|one| &one.name) else { return Ok(None) };
        for array in self.arrays.iter().filter(|array| array.axes == [dimension]) {
            let rasters = Rasters::of(&array.fields)?;
            let mut variables = array.fields.attributes().zip(&array.variables);
            if let Some((id, _)) = variables.find(|(_, own)| *own == name) {
                let field = Field { name: name.clone(), ..rasters.describe_all(id)? };
                return column(&*array.fields.subarray, id, field).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the part of the dataset that a selection selects: ranges of coordinates by the names of their dimensions, or
    /// of positions where a dimension has no coordinates.
    ///
    /// # Errors
    /// Fails if the selection does not parse, selects nothing, or if coordinates cannot be read.
    pub fn select(&self, selection: &str) -> Result<Self> {
        if let Some(part) = selection.split(',').find(|part| !part.contains('=')) {
            let names: Vec<&str> = self.dimensions.iter().map(|one| one.name.as_str()).collect();
            let names = names.join(", ");
            return Err(Error::usage(format!("selection {part}: it names no dimension; there are: {names}")));
        }
        let mut bounds = Vec::new();
        for (number, dimension) in self.dimensions.iter().enumerate() {
            let coordinates = self.coordinates(number)?.map(times::decoded).transpose()?;
            let label = coordinates
                .and_then(|(column, calendar)| Some(ColumnLabel::new(&dimension.name, column)?.in_calendar(calendar)));
            bounds.push(dimension.bounds(label));
        }
        let chosen =
            select::dense(selection, Addressing::Coordinate, &bounds).map_err(|error| error.into_error(selection))?;
        let shown = self.dimensions.iter().zip(chosen.axes());
        let dimensions: Vec<GroupDimension> =
            shown.map(|(one, axis)| GroupDimension { shown: axis.clone(), ..one.clone() }).collect();
        let arrays = self
            .arrays
            .iter()
            .map(|array| MemberArray::new(array.dense.clone(), array.variables.clone(), &dimensions, self.modified));
        let (arrays, metadata) = (arrays.collect::<Result<_>>()?, self.metadata.clone());
        Ok(GroupDataset { dimensions, arrays, metadata, modified: self.modified })
    }

    /// Builds the dataset; `cells` returns the cells of an attribute.
    fn with<C>(&self, cells: impl Fn(&MemberArray, FieldId, Field) -> Result<C>) -> Result<CfDataset<C>> {
        let mut variables = Vec::new();
        for array in &self.arrays {
            let rasters = Rasters::of(&array.fields)?;
            for (id, name) in array.fields.attributes().zip(&array.variables) {
                let field = Field { name: name.clone(), ..rasters.describe_all(id)? };
                variables.push(Variable { axes: array.axes.clone(), column: cells(array, id, field)? });
            }
        }
        let dimensions = self.dimensions.iter().map(|one| (one.name.clone(), one.shown.len())).collect();
        let growing = (0..self.dimensions.len()).filter(|&number| self.dimensions[number].grows).collect();
        Ok(CfDataset { dimensions, variables, growing, metadata: self.metadata.clone() })
    }
}

/// Returns whether an array has the form of those that hold variables.
fn fits(array: &OpenedArray) -> bool {
    let schema = array.schema();
    schema.array_type == ArrayType::Dense
        && schema.dimensions.iter().all(|dimension| {
            !dimension.name.is_empty()
                && dimension.datatype.time_unit().is_none()
                && dimension
                    .domain
                    .as_ref()
                    .is_some_and(|domain| matches!(domain.low, Scalar::Signed(0) | Scalar::Unsigned(0)))
        })
        && schema.attributes.iter().all(|attribute| {
            !attribute.name.is_empty()
                && !attribute.nullable
                && matches!(attribute.cell_count, CellValNum::Fixed(1) | CellValNum::Variable)
        })
}

/// Returns the variable name of an attribute in an array that is the group's member `member`.
fn variable_name(array: &OpenedArray, member: &str, attribute: &str) -> String {
    let is_dimension = |name: &&str| array.schema().dimensions.iter().any(|dimension| dimension.name == **name);
    let without = SUFFIXES.iter().find_map(|suffix| attribute.strip_suffix(suffix).filter(is_dimension));
    let without = without.or_else(|| attribute.strip_suffix('_').filter(|name| *name == member).filter(is_dimension));
    without.unwrap_or(attribute).to_owned()
}

/// Returns whether the array has any property that shows it was written by TileDB-CF.
fn is_of_tiledb_cf(array: &OpenedArray, variables: &[String]) -> Result<bool> {
    let schema = array.schema();
    let is_renamed = schema.attributes.iter().zip(variables).any(|(attribute, name)| attribute.name != *name);
    if is_renamed || schema.dimensions.iter().any(|dimension| dimension.name == SCALARS) {
        return Ok(true);
    }
    let metadata = array.metadata()?;
    Ok(metadata.iter().any(|(key, _)| key.starts_with(OF_ATTRIBUTES.as_bytes())))
}

impl GroupDimension {
    /// Returns the dimension as selections see it; its coordinates, if it has any, are a label.
    fn bounds(&self, coordinates: Option<ColumnLabel>) -> DimensionBounds {
        let range = |last: u64| scalar::Range { low: Scalar::Unsigned(0), high: Scalar::Unsigned(last) };
        let shown = self.shown.len().checked_sub(1).map(range);
        DimensionBounds {
            // The dimension itself would hide the label.
            name: if coordinates.is_some() { String::new() } else { self.name.clone() },
            datatype: Datatype::UInt64,
            domain: Some(range(self.last)),
            limit: shown.clone(),
            shown,
            labels: coordinates.map(|label| SelectableLabel(Arc::new(label))).into_iter().collect(),
            calendar: Calendar::default(),
        }
    }
}

/// Returns all dimensions, in the order of the arrays. `None` if dimensions of the same name differ.
fn dimensions(arrays: &[Arc<DenseArray>]) -> Result<Option<Vec<GroupDimension>>> {
    struct Seen<'a> {
        name: &'a str,
        /// The last position of the domain, and the last one written.
        last: u64,
        written: Option<u64>,
    }
    let mut all: Vec<Seen> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for dense in arrays {
        let written = dense.view()?.non_empty_box();
        let is_scalar = |name: &str, last: u64| name == SCALARS && last == 0;
        let domain = dense.grid().domain();
        for (axis, dimension) in dense.array().schema().dimensions.iter().enumerate() {
            let Some(&last) = domain.high.get(axis) else { return Ok(None) };
            if is_scalar(&dimension.name, last) {
                continue;
            }
            let number = *numbers.entry(&dimension.name).or_insert(all.len());
            if number == all.len() {
                all.push(Seen { name: &dimension.name, last, written: None });
            }
            let Some(seen) = all.get_mut(number).filter(|seen| seen.last == last) else { return Ok(None) };
            seen.written = seen.written.max(written.as_ref().and_then(|written| written.high.get(axis).copied()));
        }
    }
    let dimension = |one: Seen<'_>| {
        let shown = AxisSelection::contiguous(0, one.written.map_or(0, |last| last + 1));
        GroupDimension { name: one.name.to_owned(), last: one.last, shown, grows: one.written < Some(one.last) }
    };
    Ok(Some(all.into_iter().map(dimension).collect()))
}

/// The only cell along the axis of an array, without that axis.
struct OneCell(DenseBoxes);

impl Boxes for OneCell {
    fn field(&self) -> &Field {
        self.0.field()
    }

    fn shape(&self) -> &[u64] {
        &[]
    }

    fn extents(&self) -> Vec<u64> {
        Vec::new()
    }

    fn column(&self, _: &IndexBox) -> Result<Column> {
        let column = self.0.column(&IndexBox { first: vec![0], count: vec![1] })?;
        Ok(Column { shape: Vec::new(), ..column })
    }
}
