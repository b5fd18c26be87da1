//! A group that TileDB-CF wrote as one dataset: its arrays are variables along shared dimensions, which are identified
//! by name.
//!
//! TileDB-CF (0.9, `from_netcdf` and `from_xarray`) writes groups in this form:
//!
//! * The members are usually dense arrays with integer dimensions that start at 0; dimensions of the same name have the same
//!   domain. A dimension that was unlimited has a much larger domain than was written, so the length of a dimension
//!   here is the largest extent written along it in any array.
//! * Each attribute is a variable. If its name equals a dimension of its array, `.data` is appended to it, or `_` if
//!   the array has that name too.
//! * Variables without dimensions are attributes along `__scalars`, which has length 1.
//! * With `coords_to_dims`, variables along coordinates are sparse arrays whose dimensions are the coordinates; each
//!   of their cells is a row. Metadata of the coordinates are metadata of these arrays, under `__tiledb_dim.NAME.KEY`.
//! * Metadata of variables are metadata of the arrays, under `__tiledb_attr.NAME.KEY`; global attributes are metadata
//!   of the group.

mod files;
pub mod group;
mod members;
mod slices;
mod times;

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::column::boxes::{BoxedRows, Boxes};
use tilefs_export::column::dataset::{CfDataset, Variable};
use tilefs_export::content::grid::{CoordinateAxis, SelectedCells};
use tilefs_export::hdf5::{Form, hdf5_of_dataset};
use tilefs_export::netcdf::netcdf_of_dataset;
use tilefs_export::zarr::{self, ZarrGroup};
use tilefs_export::{Column, Field, Metadatum};
use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::{self, Scalar};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::{AxisSelection, IndexBox, Selection};

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::grid::{GridArray, GridSubarray};
use crate::cells::label_search::ColumnLabel;
use crate::cells::{DenseBoxes, FieldId, Subarray, column};
use crate::fields::FieldFolder;
use crate::fields::array_form::ArrayForm;
use crate::fields::columns::padded;
use crate::fields::rasters::Rasters;
use crate::select::calendar::Calendar;
use crate::select::{self, Addressing, DimensionBounds, SelectableLabel};
use crate::shown::ShownViews;
use crate::views::names::field_names;

/// The variables of a group, or parts of them. No cells have been read but coordinates that are dimensions.
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
    /// The coordinates at all positions, if the dimension of an array has them.
    coordinates: Option<Arc<CoordinateAxis>>,
}

/// An array of the group, with its dimensions resolved.
struct MemberArray {
    cells: MemberCells,
    /// The shown part of it.
    fields: FieldFolder,
    /// Indexes of its dimensions among those of the group.
    axes: Vec<usize>,
    /// The variable name of each attribute.
    variables: Vec<String>,
}

/// All cells of an array of the group.
#[derive(Clone)]
enum MemberCells {
    Dense(Arc<DenseArray>),
    Grid(Arc<GridArray>),
}

impl MemberCells {
    fn array(&self) -> &Arc<OpenedArray> {
        match self {
            MemberCells::Dense(dense) => dense.array(),
            MemberCells::Grid(grid) => grid.array(),
        }
    }

    fn part(&self, shown: Selection) -> Arc<dyn Subarray> {
        match self {
            MemberCells::Dense(dense) => Arc::new(DenseSubarray::new(dense.clone(), shown)),
            MemberCells::Grid(grid) => Arc::new(GridSubarray::new(grid.clone(), shown)),
        }
    }
}

impl MemberArray {
    /// Creates the part of an array along the shown positions of the dimensions.
    fn new(
        cells: MemberCells,
        variables: Vec<String>,
        dimensions: &[GroupDimension],
        modified: SystemTime,
    ) -> Result<Self> {
        let schema = cells.array().schema();
        let number = |name: &str| dimensions.iter().position(|known| known.name == name);
        let axes: Vec<usize> = schema.dimensions.iter().filter_map(|one| number(&one.name)).collect();
        let shown = schema.dimensions.iter().map(|one| match number(&one.name) {
            Some(axis) => dimensions[axis].shown.clone(),
            None => AxisSelection::contiguous(0, 1),
        });
        let (shown, names) = (Selection::new(shown.collect())?, Arc::new(field_names(schema)));
        let subarray = cells.part(shown);
        let (shown, form, told) = (ShownViews::NONE, ArrayForm::default(), Arc::default());
        let fields = FieldFolder { subarray, names, shown, modified, form, told };
        Ok(MemberArray { cells, fields, axes, variables })
    }
}

impl GroupDataset {
    /// Returns the dataset as one Zarr group.
    ///
    /// # Errors
    /// Fails if the metadata of an array cannot be read.
    pub fn zarr(&self) -> Result<ZarrGroup> {
        let boxes = |array: &MemberArray, id: FieldId, field: Field| -> Result<Arc<dyn Boxes>> {
            let cells = DenseBoxes::new(array.fields.subarray.clone(), id, field)?;
            Ok(if array.axes.is_empty() { Arc::new(OneCell(cells)) } else { Arc::new(cells) })
        };
        let rows = |column: Column| -> Arc<dyn Boxes> {
            let extent = column.cells();
            Arc::new(BoxedRows::of(column, extent))
        };
        Ok(zarr::zarr_of_dataset(&self.with(boxes, rows)?))
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
        let of_array = |array: &MemberArray, id: FieldId, field: Field| {
            let column = change(column(&*array.fields.subarray, id, field)?)?;
            Ok(if array.axes.is_empty() { Column { shape: Vec::new(), ..column } } else { column })
        };
        self.with(of_array, |column| column)
    }

    /// Returns the coordinates along a dimension: those of the dimension itself, or the values of the variable of its
    /// name.
    fn coordinates(&self, dimension: usize) -> Result<Option<Column>> {
        if let Some(column) = self.coordinates_of_arrays(dimension)? {
            return Ok(Some(column));
        }
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

    /// Returns the coordinates at all positions of a dimension, if they are those of the dimension of an array.
    fn coordinates_of_arrays(&self, number: usize) -> Result<Option<Column>> {
        let Some(dimension) = self.dimensions.get(number) else { return Ok(None) };
        let Some(coordinates) = &dimension.coordinates else { return Ok(None) };
        let place = |array: &MemberArray| array.axes.iter().position(|axis| *axis == number);
        let found = self.arrays.iter().find_map(|array| Some((array, FieldId::Dimension(place(array)?))));
        let (array, id) = found.ok_or_else(|| Error::internal("a dimension of no array"))?;
        let field = Field { name: dimension.name.clone(), ..Rasters::of(&array.fields)?.describe(id)? };
        Ok(Some(Column::fixed(field, vec![coordinates.len()], coordinates.values().clone())))
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
            .map(|array| MemberArray::new(array.cells.clone(), array.variables.clone(), &dimensions, self.modified));
        let (arrays, metadata) = (arrays.collect::<Result<_>>()?, self.metadata.clone());
        Ok(GroupDataset { dimensions, arrays, metadata, modified: self.modified })
    }

    /// Builds the dataset; `cells` returns the cells of an attribute, `rows` those of a dimension.
    fn with<C>(
        &self,
        cells: impl Fn(&MemberArray, FieldId, Field) -> Result<C>,
        rows: impl Fn(Column) -> C,
    ) -> Result<CfDataset<C>> {
        let mut variables = Vec::new();
        for (number, dimension) in self.dimensions.iter().enumerate() {
            if let Some(all) = self.coordinates_of_arrays(number)? {
                let shown = Selection::new(vec![dimension.shown.clone()])?;
                let (width, shape) = (all.field.datatype.size(), vec![dimension.shown.len()]);
                let values = SelectedCells::within(all.values, all.shape, shown, width);
                variables.push(Variable { axes: vec![number], column: rows(Column::fixed(all.field, shape, values)) });
            }
        }
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

impl GroupDimension {
    /// Creates a dimension of positions up to `last`, of which the first `length` were written.
    fn of_positions(name: &str, last: u64, length: u64) -> Self {
        let shown = AxisSelection::contiguous(0, length);
        GroupDimension { name: name.to_owned(), last, shown, grows: length <= last, coordinates: None }
    }

    /// Creates a dimension of coordinates.
    fn of_coordinates(name: &str, axis: CoordinateAxis) -> Self {
        let shown = AxisSelection::contiguous(0, axis.len());
        let last = axis.len().saturating_sub(1);
        GroupDimension { name: name.to_owned(), last, shown, grows: false, coordinates: Some(Arc::new(axis)) }
    }

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
