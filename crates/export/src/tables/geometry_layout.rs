//! Where the geometries of a table lie: their relation to the dimensions by which the array is sorted, as the metadata of
//! GDAL and TileDB-SOMA tell it, and the bounds that follow from it.

use std::sync::Arc;

use serde_json::Value;
use tilefs_base::json;
use tilefs_format::datatype::Datatype;
use tilefs_format::text;
use tilefs_threads::cancellation;

use super::boxes::{AroundCentres, SIDES, boxes};
use super::reach::{PlacedGeometries, Reach, is_lower};
use crate::column::{Column, ColumnStatistics, Field, Metadatum};

/// GDAL's key for the name of the geometry attribute.
pub const GEOMETRY: &str = "GEOMETRY_ATTRIBUTE_NAME";

/// GDAL's name for the attribute if no key names it.
const USUAL_NAME: &str = "wkb_geometry";

/// GDAL's dimensions.
const AXES: [&str; 3] = ["_X", "_Y", "_Z"];

/// If a table has all rows of its array: the names of dimensions of FLOAT64, and the least and the greatest coordinate.
pub type CoordinateRanges = Vec<(String, [f64; 2])>;

/// The relation of the geometries to the dimensions of their array.
pub enum GeometryLayout {
    /// GDAL's: the centres of the boxes, along x and y.
    Centres(Box<[Column; 2]>),
    /// TileDB-SOMA's: the sides of the boxes, in the order of `SIDES`.
    Boxes(Box<[Column; 4]>),
    /// The coordinates of points, without another geometry.
    Points(Vec<Column>),
}

impl GeometryLayout {
    /// Returns the layout of a table whose geometries are in the column `primary`, or of points that are nothing but
    /// coordinates; `None` if nothing is known of their places.
    pub fn of(columns: &[Column], of_array: &[Metadatum], primary: Option<&str>) -> Option<Self> {
        let coordinates = |name: &str| {
            let is_number = |field: &Field| field.datatype == Datatype::Float64 && field.values_per_cell == Some(1);
            let mut all = columns.iter();
            all.find(|column| column.field.name == name && is_number(&column.field) && column.validity.is_none())
                .cloned()
        };
        let points = |names: &[&str]| {
            let found: Vec<Column> = names.iter().take(3).map_while(|name| coordinates(name)).collect();
            (found.len() > 1).then_some(GeometryLayout::Points(found))
        };
        match value(of_array, "soma_object_type").as_deref() {
            Some("SOMAGeometryDataFrame") if primary.is_some() => {
                let axes = axes_of_soma(of_array)?;
                let [x, y, ..] = axes.as_slice() else { return None };
                let side = |axis, end| coordinates(&format!("tiledb__internal__{axis}__{end}"));
                return Some(GeometryLayout::Boxes(Box::new([
                    side(x, "min")?,
                    side(y, "min")?,
                    side(x, "max")?,
                    side(y, "max")?,
                ])));
            }
            Some("SOMAPointCloudDataFrame") if primary.is_none() => {
                let axes = axes_of_soma(of_array)?;
                return points(&axes.iter().map(String::as_str).collect::<Vec<_>>());
            }
            _ => {}
        }
        if value(of_array, "dataset_type").as_deref() != Some("geometry") {
            return None;
        }
        match primary {
            Some(name) if name == name_of_gdal(of_array) => {
                Some(GeometryLayout::Centres(Box::new([coordinates(AXES[0])?, coordinates(AXES[1])?])))
            }
            Some(_) => None,
            None => points(&AXES),
        }
    }

    /// Returns the place of each side of the boxes, in the order of [`SIDES`]; `None` for points.
    fn places(&self) -> Option<[&Column; 4]> {
        match self {
            GeometryLayout::Centres(centres) => Some(std::array::from_fn(|side| &centres[side % 2])),
            GeometryLayout::Boxes(sides) => Some(std::array::from_fn(|side| &sides[side])),
            GeometryLayout::Points(_) => None,
        }
    }

    /// Returns the geometries with their places, if bounds follow from how far they reach; `None` for points.
    pub fn placed(&self, geometries: &Column) -> Option<PlacedGeometries> {
        let places = self.places()?;
        let have_bounds = places.iter().all(|place| place.statistics.is_some());
        if have_bounds { PlacedGeometries::new(geometries, places) } else { None }
    }

    /// Returns the dimensions that are the sides of boxes around the geometries: each holds its geometry.
    pub fn stored_sides(&self, reach: Option<&Reach>) -> Option<[Column; 4]> {
        let side = |number: usize, column: &Column| {
            let field = Field::new(SIDES[number], Datatype::Float64);
            Column { field, sort_rank: None, ..column.clone() }
        };
        match self {
            GeometryLayout::Centres(_) => None,
            GeometryLayout::Boxes(sides) => {
                let hold_all = reach.is_some_and(|reach| reach.outwards == [0.0; 4]);
                hold_all.then(|| std::array::from_fn(|number| side(number, &sides[number])))
            }
            GeometryLayout::Points(coordinates) => {
                let [x, y, ..] = coordinates.as_slice() else { return None };
                Some([side(0, x), side(1, y), side(2, x), side(3, y)])
            }
        }
    }

    /// Returns columns of the sides of the boxes around the geometries, with their bounds as far as they are known.
    pub fn computed_sides(&self, geometries: &Column, reach: Option<&Reach>) -> Option<[Column; 4]> {
        let (places, mut sides) = (self.places()?, boxes(geometries)?);
        for (number, side) in sides.iter_mut().enumerate() {
            let most = reach.map(|reach| [reach.outwards[number], reach.inwards[number]]);
            let most = most.filter(|most| most.iter().all(|most| most.is_finite()));
            let bounds = |places: &Arc<dyn ColumnStatistics>, [outwards, inwards]: [f64; 2]| {
                let [below, above] = if is_lower(number) { [outwards, inwards] } else { [inwards, outwards] };
                Arc::new(AroundCentres { centres: places.clone(), below, above })
            };
            let places = places[number].statistics.as_ref();
            side.statistics = places.zip(most).map(|(places, most)| bounds(places, most) as _);
        }
        Some(sides)
    }

    /// Returns the least coordinates of all geometries, and the greatest.
    pub fn bounds(&self, ranges: impl FnOnce() -> CoordinateRanges, reach: Option<&Reach>) -> Option<Vec<f64>> {
        let bounds: Vec<f64> = match self {
            GeometryLayout::Centres(_) | GeometryLayout::Boxes(_) => reach?.sides.to_vec(),
            GeometryLayout::Points(coordinates) => {
                let ranges = ranges();
                let range = |column: &Column| {
                    ranges.iter().find(|(name, _)| *name == column.field.name).map(|(_, range)| *range)
                };
                let ranges = coordinates.iter().map(range).collect::<Option<Vec<_>>>()?;
                [0, 1].iter().flat_map(|end: &usize| ranges.iter().map(move |range| range[*end])).collect()
            }
        };
        Some(bounds).filter(|bounds| bounds.iter().all(|bound| bound.is_finite()))
    }
}

/// Returns the names of the axes of the space of an object of TileDB-SOMA.
fn axes_of_soma(of_array: &[Metadatum]) -> Option<Vec<String>> {
    let space: Value = json::parse(&value(of_array, "soma_coordinate_space")?, cancellation::check).ok()?;
    space.as_array()?.iter().map(|axis| Some(axis.get("name")?.as_str()?.to_owned())).collect()
}

/// Returns the name that GDAL gives to its geometries.
pub fn name_of_gdal(of_array: &[Metadatum]) -> String {
    value(of_array, GEOMETRY).unwrap_or_else(|| USUAL_NAME.to_owned())
}

/// Returns a text in the metadata of an array.
pub fn value(of_array: &[Metadatum], key: &str) -> Option<String> {
    let metadatum = of_array.iter().find(|metadatum| metadatum.key == key)?;
    match metadatum.datatype {
        // GDAL writes texts like this.
        Datatype::UInt8 => String::from_utf8(metadatum.value.clone()).ok(),
        datatype => text::decode(datatype, &metadatum.value).map(|text| text.into_owned()),
    }
}
