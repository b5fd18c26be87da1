//! The arrays of a group that TileDB-CF wrote: how they are recognized, and the dimensions that they share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::Metadatum;
use tilefs_export::content::grid::CoordinateAxis;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{ArrayType, CellValNum, Dimension};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::AxisSelection;
use tilefs_reader::group::OpenedGroup;
use tilefs_threads::single_flight::SingleFlight;

use crate::cells::Subarray;
use crate::cells::dense::DenseArray;
use crate::cells::grid::{GridArray, coordinates_of};
use crate::cells::sparse::SparseSubarray;
use crate::domains::cf::{GroupDataset, GroupDimension, MemberArray, MemberCells};
use crate::fields::meta;
use crate::objects::open_folder;

/// The dimension of variables without dimensions.
const SCALARS: &str = "__scalars";

/// Suffixes appended to the name of a variable that equals the name of a dimension.
const SUFFIXES: [&str; 2] = [".data", ".index"];

/// Prefixes of the metadata of attributes and of dimensions.
const OF_ATTRIBUTES: &str = "__tiledb_attr.";
const OF_DIMENSIONS: &str = "__tiledb_dim.";

/// Maximum number of members of a group that is examined.
const MAX_MEMBERS: usize = 1024;

/// The arrays of a group that are the variables of a dataset. No cells have been read.
pub struct DatasetMembers {
    members: Vec<DatasetMember>,
    /// The dimensions of the dense arrays.
    dimensions: Vec<GroupDimension>,
    metadata: Vec<Metadatum>,
    modified: SystemTime,
    dataset: SingleFlight<Arc<GroupDataset>>,
}

/// An array of the group.
struct DatasetMember {
    cells: StoredCells,
    /// The variable name of each attribute.
    variables: Vec<String>,
}

/// The cells of an array of the group.
enum StoredCells {
    Dense(Arc<DenseArray>),
    /// The rows of a sparse array, sorted by coordinates.
    Points(Arc<SparseSubarray>),
}

impl DatasetMembers {
    /// Returns the members of a group that are one dataset; `None` for groups of other kinds. Opens members until one does
    /// not fit. Also returns whether the result is final: a damaged member may be restored.
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

    /// Returns these members of a group, which fit.
    fn of_arrays(
        group: &OpenedGroup,
        opened: &[(&str, Arc<OpenedArray>)],
        modified: SystemTime,
    ) -> Result<Option<Self>> {
        let mut is_marked = false;
        let (mut names, mut members) = (HashSet::new(), Vec::new());
        for (member, array) in opened {
            let own: Vec<String> =
                array.schema().attributes.iter().map(|one| variable_name(array, member, &one.name)).collect();
            if !own.iter().all(|name| names.insert(name.clone())) {
                return Ok(None);
            }
            is_marked |= is_of_tiledb_cf(array, &own)?;
            let cells = match array.schema().is_sparse() {
                true => StoredCells::Points(Arc::new(SparseSubarray::new(array.clone(), true))),
                false => StoredCells::Dense(Arc::new(DenseArray::new(array.clone())?)),
            };
            members.push(DatasetMember { cells, variables: own });
        }
        let Some(dimensions) = dimensions(&members)?.filter(|_| is_marked) else { return Ok(None) };
        if !have_axes_in_common(&members, &dimensions, &names)? {
            return Ok(None);
        }
        let (metadata, dataset) = (meta::for_formats(&*group.metadata()?), SingleFlight::new());
        Ok(Some(DatasetMembers { members, dimensions, metadata, modified, dataset }))
    }

    /// Returns whether some variables are points, whose coordinates are the dimensions of the dataset.
    pub fn have_points(&self) -> bool {
        points(&self.members).next().is_some()
    }

    /// Returns the dataset. Reads the coordinates of sparse arrays the first time.
    ///
    /// # Errors
    /// Fails if coordinates cannot be read; [`Error::Unsupported`] if points lie on no grid.
    pub fn dataset(&self) -> Result<Arc<GroupDataset>> {
        self.dataset.get_or_retry(|| self.placed().map(Arc::new)).cloned()
    }

    fn placed(&self) -> Result<GroupDataset> {
        let mut dimensions = self.dimensions.clone();
        add_dimensions_of_points(&self.members, &mut dimensions)?;
        let mut arrays = Vec::new();
        for DatasetMember { cells, variables } in &self.members {
            let cells = match cells {
                StoredCells::Dense(dense) => MemberCells::Dense(dense.clone()),
                StoredCells::Points(rows) => {
                    let stored = &rows.array().schema().dimensions;
                    let axes = stored.iter().map(|one| axis(&dimensions, &one.name)).collect::<Result<_>>()?;
                    MemberCells::Grid(Arc::new(GridArray::new(rows.clone(), axes)?))
                }
            };
            arrays.push(MemberArray::new(cells, variables.clone(), &dimensions, self.modified)?);
        }
        Ok(GroupDataset { dimensions, arrays, metadata: self.metadata.clone(), modified: self.modified })
    }
}

/// Returns the rows of the sparse arrays.
fn points(members: &[DatasetMember]) -> impl Iterator<Item = &Arc<SparseSubarray>> {
    members.iter().filter_map(|member| match &member.cells {
        StoredCells::Points(rows) => Some(rows),
        StoredCells::Dense(_) => None,
    })
}

/// Returns the axis of a grid along a dimension: its coordinates, or else its positions.
fn axis(dimensions: &[GroupDimension], name: &str) -> Result<Arc<CoordinateAxis>> {
    let found = dimensions.iter().find(|dimension| dimension.name == name);
    let dimension = found.ok_or_else(|| Error::internal("a dimension of no array"))?;
    match &dimension.coordinates {
        Some(coordinates) => Ok(coordinates.clone()),
        None => CoordinateAxis::of_positions(dimension.shown.len()).map(Arc::new),
    }
}

/// Returns whether an array has the form of those that hold variables.
fn fits(array: &OpenedArray) -> bool {
    let schema = array.schema();
    let is_sparse = schema.array_type == ArrayType::Sparse;
    let has_places = |dimension: &Dimension| match is_sparse {
        true => dimension.datatype.kind() != Kind::Bytes && dimension.cell_count == CellValNum::Fixed(1),
        false => dimension.datatype.time_unit().is_none() && begins_at_0(dimension),
    };
    !(is_sparse && schema.allows_duplicates)
        && schema.dimensions.iter().all(|dimension| !dimension.name.is_empty() && has_places(dimension))
        && schema.attributes.iter().all(|attribute| {
            !attribute.name.is_empty()
                && !attribute.nullable
                && (attribute.cell_count == CellValNum::Fixed(1)
                    || attribute.cell_count == CellValNum::Variable && !is_sparse)
        })
}

fn begins_at_0(dimension: &Dimension) -> bool {
    let low = dimension.domain.as_ref().map(|domain| &domain.low);
    matches!(low, Some(Scalar::Signed(0) | Scalar::Unsigned(0)))
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
    has_metadata_with(array, OF_ATTRIBUTES)
}

fn has_metadata_with(array: &OpenedArray, prefix: &str) -> Result<bool> {
    Ok(array.metadata()?.iter().any(|(key, _)| key.starts_with(prefix.as_bytes())))
}

/// Returns whether the coordinates along a dimension of a sparse array are positions, as TileDB-CF stores dimensions
/// without coordinates.
fn has_positions(array: &OpenedArray, dimension: &Dimension) -> Result<bool> {
    let described = format!("{OF_DIMENSIONS}{}.", dimension.name);
    Ok(dimension.datatype == Datatype::UInt64 && begins_at_0(dimension) && !has_metadata_with(array, &described)?)
}

/// Returns whether dimensions of the same name are the same: those of sparse arrays have one type, and those of positions
/// one domain, also with dense arrays. Coordinates have no name of a variable or of a dense array's dimension.
fn have_axes_in_common(
    members: &[DatasetMember],
    of_dense: &[GroupDimension],
    variables: &HashSet<String>,
) -> Result<bool> {
    let mut seen: HashMap<&str, (Datatype, Option<u64>)> = HashMap::new();
    for rows in points(members) {
        for dimension in &rows.array().schema().dimensions {
            let last = if has_positions(rows.array(), dimension)? { last_position(dimension) } else { None };
            let own = (dimension.datatype, last);
            let dense = of_dense.iter().find(|one| one.name == dimension.name);
            let is_same = match last {
                Some(last) => dense.is_none_or(|dense| dense.last == last),
                None => dense.is_none() && !variables.contains(&dimension.name),
            };
            if !is_same || *seen.entry(&dimension.name).or_insert(own) != own {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns the last position of the domain of a dimension of positions.
fn last_position(dimension: &Dimension) -> Option<u64> {
    match dimension.domain.as_ref().map(|domain| &domain.high) {
        Some(Scalar::Unsigned(high)) => Some(*high),
        _ => None,
    }
}

/// Adds the dimensions of sparse arrays, in the order of the arrays. Reads their coordinates.
fn add_dimensions_of_points(members: &[DatasetMember], dimensions: &mut Vec<GroupDimension>) -> Result<()> {
    let mut done = HashSet::new();
    for rows in points(members) {
        for dimension in &rows.array().schema().dimensions {
            if !done.insert(dimension.name.as_str()) {
                continue;
            }
            let mut columns = Vec::new();
            for other in points(members) {
                let number = other.array().schema().dimensions.iter().position(|one| one.name == dimension.name);
                columns.extend(number.map(|number| coordinates_of(other, number)).transpose()?);
            }
            let axis = CoordinateAxis::of(&columns)?;
            match has_positions(rows.array(), dimension)? {
                false => dimensions.push(GroupDimension::of_coordinates(&dimension.name, axis)),
                true => add_positions(dimensions, dimension, axis.positions())?,
            }
        }
    }
    Ok(())
}

/// Adds a dimension along which `length` positions were written, or lengthens that of dense arrays.
fn add_positions(dimensions: &mut Vec<GroupDimension>, dimension: &Dimension, length: u64) -> Result<()> {
    let last = last_position(dimension).filter(|last| length <= last.saturating_add(1));
    let last = last.ok_or_else(|| Error::damaged("a coordinate outside the domain").in_field(&dimension.name))?;
    match dimensions.iter_mut().find(|known| known.name == dimension.name) {
        Some(known) => {
            known.shown = AxisSelection::contiguous(0, known.shown.len().max(length));
            known.grows = known.shown.len() <= last;
        }
        None => dimensions.push(GroupDimension::of_positions(&dimension.name, last, length)),
    }
    Ok(())
}

/// Returns the dimensions of the dense arrays, in the order of the arrays. `None` if dimensions of the same name differ.
fn dimensions(members: &[DatasetMember]) -> Result<Option<Vec<GroupDimension>>> {
    struct Seen<'a> {
        name: &'a str,
        /// The last position of the domain, and the last one written.
        last: u64,
        written: Option<u64>,
    }
    let mut all: Vec<Seen> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for member in members {
        let StoredCells::Dense(dense) = &member.cells else { continue };
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
        GroupDimension::of_positions(one.name, one.last, one.written.map_or(0, |last| last.saturating_add(1)))
    };
    Ok(Some(all.into_iter().map(dimension).collect()))
}
