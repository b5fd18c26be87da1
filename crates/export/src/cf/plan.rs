//! The plan of a file or group under the CF conventions: which variables the columns of an array or dataset become, along
//! which dimensions, and in which order. Each format says how it holds a variable.

use std::sync::Arc;

use tilefs_base::content::Content;

use super::names::UniqueNames;
use super::{CfAttribute, Direction, axis_attributes, coordinates};
use crate::column::boxes::Boxes;
use crate::column::dataset::{CfDataset, Variable};
use crate::column::{AuxiliaryCoordinates, Column, Columns, Field};
use crate::geo::georeference::{Georeference, GeoreferencedAxes};

/// A representation of a column's cells.
pub(crate) trait CfColumn {
    /// Returns the description of the cells.
    fn field(&self) -> &Field;

    /// Returns the number of cells.
    fn cells(&self) -> u64;
}

impl CfColumn for Column {
    fn field(&self) -> &Field {
        &self.field
    }

    fn cells(&self) -> u64 {
        self.cells()
    }
}

impl CfColumn for Arc<dyn Boxes> {
    fn field(&self) -> &Field {
        (**self).field()
    }

    fn cells(&self) -> u64 {
        self.shape().iter().fold(1, |product, &length| product.saturating_mul(length))
    }
}

/// A file or group in some format, to which variables are added. Dimensions have numbers, from 0.
pub(crate) trait CfVariables {
    /// The representation of the cells that the format is made from.
    type Column: CfColumn;

    /// The reason why the format cannot hold something.
    type Failure;

    /// Returns the names of variables and dimensions; only an axis has the same name as its coordinates.
    fn names(&mut self) -> &mut UniqueNames;

    /// Returns the number of variables.
    fn count(&self) -> usize;

    /// Returns whether a column becomes a variable with one element for each cell.
    fn is_along_cells(&self, column: &Self::Column) -> bool;

    /// Adds a dimension under a name that is already reserved; returns its number.
    fn add_dimension(&mut self, name: String, length: u64) -> Result<usize, Self::Failure>;

    /// Adds the coordinates along an axis of a grid under the name of its dimension, which is the last one.
    fn add_axis(
        &mut self,
        name: String,
        dimension: usize,
        axis: &Self::Column,
        on_earth: Option<&EarthAxis<'_>>,
    ) -> Result<(), Self::Failure>;

    /// Adds one attribute, or coordinates of cells, and the variables that explain it.
    fn add_column(&mut self, column: &Self::Column, dimensions: &[usize]) -> Result<(), Self::Failure>;

    /// Like [`Self::add_column`], under a name that is already reserved.
    fn add_column_of_name(
        &mut self,
        name: String,
        column: &Self::Column,
        dimensions: &[usize],
    ) -> Result<(), Self::Failure>;

    /// Makes the variables from number `from` the coordinates of all later variables along these dimensions.
    fn share_coordinates(&mut self, from: usize, dimensions: &[usize]);

    /// Adds the variable that describes the coordinate system, and names it in all later variables.
    fn add_grid_mapping(&mut self, place: &Georeference);
}

/// Adds the variables of an array.
pub(crate) fn add_array<V: CfVariables>(variables: &mut V, columns: &Columns<V::Column>) -> Result<(), V::Failure> {
    if columns.sparse { add_table(variables, columns) } else { add_grid(variables, columns) }
}

fn add_grid<V: CfVariables>(variables: &mut V, columns: &Columns<V::Column>) -> Result<(), V::Failure> {
    let mut axes = Vec::new();
    for (number, axis) in columns.dimensions.iter().enumerate() {
        let name = variables.names().give(&axis.field().name);
        let dimension = variables.add_dimension(name.clone(), axis.cells())?;
        axes.push(dimension);
        let on_earth = columns.georeference.as_ref().and_then(|axes| EarthAxis::of(axes, number));
        variables.add_axis(name, dimension, axis, on_earth.as_ref())?;
    }
    let before = variables.count();
    for AuxiliaryCoordinates { axis, column } in &columns.auxiliary {
        if let Some(axis) = axes.get(*axis) {
            variables.add_column(column, &[*axis])?;
        }
    }
    variables.share_coordinates(before, &axes);
    if let Some(georeference) = columns.georeference.as_ref().filter(|axes| axes.need_a_system()) {
        variables.add_grid_mapping(&georeference.place);
    }
    columns.attributes.iter().try_for_each(|column| variables.add_column(column, &axes))
}

fn add_table<V: CfVariables>(variables: &mut V, columns: &Columns<V::Column>) -> Result<(), V::Failure> {
    let cells = columns.dimensions.iter().chain(&columns.attributes).next().map_or(0, CfColumn::cells);
    let rows = match columns.dimensions.as_slice() {
        // The coordinates of the cells are those of their axis.
        [axis] if variables.is_along_cells(axis) => {
            let name = variables.names().give(&axis.field().name);
            let rows = [variables.add_dimension(name.clone(), cells)?];
            variables.add_column_of_name(name, axis, &rows)?;
            rows
        }
        several => {
            let name = variables.names().give("cells");
            let rows = [variables.add_dimension(name, cells)?];
            let before = variables.count();
            several.iter().try_for_each(|column| variables.add_column(column, &rows))?;
            variables.share_coordinates(before, &rows);
            rows
        }
    };
    columns.attributes.iter().try_for_each(|column| variables.add_column(column, &rows))
}

/// Adds variables that share dimensions; returns the number of each dimension.
pub(crate) fn add_dataset<V: CfVariables>(
    variables: &mut V,
    dataset: &CfDataset<V::Column>,
) -> Result<Vec<usize>, V::Failure> {
    let mut dimensions = Vec::new();
    for (name, length) in &dataset.dimensions {
        let name = variables.names().give(name);
        dimensions.push((variables.add_dimension(name.clone(), *length)?, name));
    }
    for Variable { axes, column } in &dataset.variables {
        let along: Vec<usize> = axes.iter().filter_map(|&axis| Some(dimensions.get(axis)?.0)).collect();
        let own = dataset.dimension_of_coordinates(&column.field().name, axes);
        match own.and_then(|axis| dimensions.get(axis)).filter(|_| variables.is_along_cells(column)) {
            Some((_, name)) => variables.add_column_of_name(name.clone(), column, &along)?,
            None => variables.add_column(column, &along)?,
        }
    }
    Ok(dimensions.into_iter().map(|(number, _)| number).collect())
}

/// An axis of a raster whose coordinates are positions on the Earth.
pub(crate) struct EarthAxis<'a> {
    place: &'a Georeference,
    direction: Direction,
    /// The transform that gives the coordinates; `None` if the array itself has them.
    transform: Option<[f64; 6]>,
}

impl<'a> EarthAxis<'a> {
    /// Returns the axis with a number, if there are such coordinates along it: the raster must not be rotated.
    fn of(axes: &'a GeoreferencedAxes, number: usize) -> Option<Self> {
        let direction = match number {
            _ if axes.place.is_rotated() => return None,
            _ if number == axes.samples => Direction::Samples,
            _ if number == axes.lines => Direction::Lines,
            _ => return None,
        };
        let transform = axes.place.transform.filter(|_| !axes.are_labelled);
        let is_known = axes.are_labelled || transform.is_some();
        is_known.then_some(EarthAxis { place: &axes.place, direction, transform })
    }

    /// Returns the coordinates of the pixel centres as little-endian doubles; `None` if they are those of the array.
    pub fn coordinates(&self, length: u64) -> Option<Arc<dyn Content>> {
        self.transform.map(|transform| coordinates(transform, self.direction, length))
    }

    /// Returns the CF attributes of the coordinates.
    pub fn attributes(&self) -> Vec<CfAttribute> {
        axis_attributes(self.place, self.direction)
    }
}
