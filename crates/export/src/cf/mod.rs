//! The vocabulary of the CF conventions, for formats that use it: units of dates, meanings of codes, and the position
//! of a raster on the Earth (coordinates of rows and columns, and a variable that describes the coordinate system).

pub(crate) mod names;
pub(crate) mod plan;

use std::sync::Arc;

use tilefs_base::calendar;
use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::time_unit::TimeUnit;

use crate::column::{Field, Labels, Metadatum};
use crate::content::element::Computed;
use crate::geo::georeference::Georeference;
use crate::geo::wkt::{CoordinateSystem, Projection};

/// A CF attribute of a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct CfAttribute {
    /// The name that the CF conventions give it.
    pub name: &'static str,
    /// Its value.
    pub value: CfValue,
}

/// The value of a [`CfAttribute`].
#[derive(Debug, Clone, PartialEq)]
pub enum CfValue {
    /// Characters.
    Text(String),
    /// Numbers, which have the type of the variable.
    Numbers(Vec<f64>),
}

impl CfAttribute {
    fn text(name: &'static str, text: impl Into<String>) -> Self {
        CfAttribute { name, value: CfValue::Text(text.into()) }
    }

    fn numbers(name: &'static str, numbers: &[f64]) -> Self {
        CfAttribute { name, value: CfValue::Numbers(numbers.to_vec()) }
    }
}

/// Returns the value of an attribute that lists variables, such as `coordinates`; `None` if no name can be listed.
///
/// Blanks separate the names. A name that contains a blank would be read as several variables that do not exist, and
/// xarray then ignores the whole list, so such names are omitted.
pub(crate) fn list_of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.into_iter().filter(|name| !name.contains(char::is_whitespace)).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Attributes whose values have the same type as the variable.
const LIKE_THE_VALUES: [&str; 6] =
    ["missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// Returns the attributes that the values of any field get, in a variable of this name.
pub(crate) fn field_attributes(field: &Field, name: &str) -> Vec<CfAttribute> {
    let mut attributes = Vec::new();
    if name != field.name {
        attributes.push(CfAttribute::text("long_name", &field.name));
    }
    if let Some(units) = units(field.datatype) {
        if units.contains("since") {
            attributes.push(CfAttribute::text("calendar", "proleptic_gregorian"));
        }
        attributes.push(CfAttribute::text("units", units));
        attributes.push(CfAttribute::text("tiledb_datatype", field.stored_as.unwrap_or(field.datatype).name()));
    }
    attributes
}

/// How an entry of the array's metadata about a field changes the attributes of the field's variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// Nothing: the attribute was generated.
    Known,
    /// This text instead of the generated one.
    Text(String),
    /// More names, for the end of the generated list.
    Names(String),
    /// A new attribute. Its values have the type of the variable if they can.
    New { like_the_values: bool },
}

impl Note {
    /// Returns the effect of the entry `note` about `field`. `is_known`: an attribute of this name was generated.
    pub(crate) fn of(note: &Metadatum, field: &Field, is_known: bool) -> Self {
        let key = note.key.as_str();
        let text = || String::from_utf8(note.value.clone()).ok().filter(|_| note.datatype.kind() == Kind::Bytes);
        match key {
            // The attribute was generated already, unless its value does not fit this type.
            "_FillValue" => Note::Known,
            _ if !is_known => {
                Note::New { like_the_values: LIKE_THE_VALUES.contains(&key) && note.datatype == field.datatype }
            }
            "long_name" | "comment" => text().map_or(Note::Known, Note::Text),
            "coordinates" | "ancillary_variables" => text().map_or(Note::Known, Note::Names),
            _ => Note::Known,
        }
    }
}

/// Maximum number of labels listed in `flag_meanings`.
const MAX_FLAGS: usize = 256;

/// Returns the `flag_meanings` of up to 256 text labels, one word each; `None` for other labels.
pub fn flag_meanings(labels: &Labels) -> Option<String> {
    let count = labels.values.len();
    if !labels.datatype.is_string() || labels.datatype.size() != 1 || count == 0 || count > MAX_FLAGS {
        return None;
    }
    let word = |label: &Vec<u8>| -> String {
        let word: String = String::from_utf8_lossy(label)
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "_-.+@".contains(c) { c } else { '_' })
            .collect();
        if word.is_empty() { "_".into() } else { word }
    };
    Some(labels.values.iter().map(word).collect::<Vec<_>>().join(" "))
}

/// Returns the conversion to days for dates in units that CF does not define exactly.
pub(crate) fn days_of(datatype: Datatype) -> Option<fn(i64) -> Option<i64>> {
    match datatype {
        Datatype::DateTimeYear => Some(calendar::days_of_years),
        Datatype::DateTimeMonth => Some(calendar::days_of_months),
        Datatype::DateTimeWeek => Some(|weeks| weeks.checked_mul(7)),
        _ => None,
    }
}

/// The number of "not a time", which is the same in all units.
pub(crate) const NOT_A_TIME: i64 = i64::MIN;

/// As [`days_of`], with a conversion that keeps "not a time", and returns `None` for a date whose days exceed 64 bits.
pub(crate) fn counted_days(datatype: Datatype) -> Option<impl Fn(i64) -> Option<i64> + Copy> {
    let days = days_of(datatype)?;
    Some(move |value| if value == NOT_A_TIME { Some(value) } else { days(value) })
}

/// Returns the `units` of a date or time in the spelling of CF and UDUNITS; days for dates that `days_of` converts.
///
/// Dates finer than nanoseconds get no "since": no reader can decode them, and some would reject the file.
pub fn units(datatype: Datatype) -> Option<String> {
    let unit = match datatype.time_unit()? {
        TimeUnit::Year | TimeUnit::Month | TimeUnit::Week => TimeUnit::Day,
        finer if finer > TimeUnit::Nanosecond => return Some(finer.name().into()),
        unit => unit,
    };
    let since = if datatype.is_datetime() { " since 1970-01-01" } else { "" };
    Some(format!("{}{since}", unit.name()))
}

/// The direction of an axis of a raster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Along a row: x, easting, longitude.
    Samples,
    /// From row to row: y, northing, latitude.
    Lines,
}

/// Returns the coordinates of the pixel centres as little-endian doubles. The raster must not be rotated.
pub fn coordinates(transform: [f64; 6], direction: Direction, length: u64) -> Arc<dyn Content> {
    let [x, width, _, y, _, height] = transform;
    let (corner, step) = match direction {
        Direction::Samples => (x, width),
        Direction::Lines => (y, height),
    };
    // From the outer edge of the first pixel.
    Arc::new(Computed::new(length, move |number| (corner + (number as f64 + 0.5) * step).to_le_bytes()))
}

/// Returns the CF attributes of the coordinates of pixel centres.
pub(crate) fn axis_attributes(place: &Georeference, direction: Direction) -> Vec<CfAttribute> {
    let of = |samples, lines| if direction == Direction::Samples { samples } else { lines };
    let mut attributes = vec![CfAttribute::text("axis", of("X", "Y"))];
    let Some(system) = CoordinateSystem::parse(&place.system) else { return attributes };
    if system.is_geographic {
        attributes.push(CfAttribute::text("standard_name", of("longitude", "latitude")));
        attributes.push(CfAttribute::text("long_name", of("longitude", "latitude")));
        attributes.push(CfAttribute::text("units", of("degrees_east", "degrees_north")));
        return attributes;
    }
    attributes.push(CfAttribute::text("standard_name", of("projection_x_coordinate", "projection_y_coordinate")));
    attributes.push(CfAttribute::text("long_name", of("x coordinate of projection", "y coordinate of projection")));
    if let Some((name, metres)) = system.unit() {
        let units = match name.to_lowercase().as_str() {
            "metre" | "meter" | "m" => "m".to_owned(),
            "us survey foot" | "foot_us" | "us survey feet" => "US_survey_foot".to_owned(),
            "foot" | "international foot" => "foot".to_owned(),
            "kilometre" | "kilometer" | "km" => "km".to_owned(),
            _ => format!("{metres} m"),
        };
        attributes.push(CfAttribute::text("units", units));
    }
    attributes
}

/// Returns the attributes of the variable that describes the coordinate system: its well-known text for GDAL and other
/// readers, and CF's parameters for projections that CF names.
pub(crate) fn grid_mapping(place: &Georeference) -> Vec<CfAttribute> {
    let mut attributes = Vec::new();
    let system = CoordinateSystem::parse(&place.system);
    if let Some((name, numbers)) = system.as_ref().and_then(words) {
        attributes.push(CfAttribute::text("grid_mapping_name", name));
        attributes.extend(numbers.into_iter().map(|(name, values)| CfAttribute::numbers(name, &values)));
    }
    if let Some(datum) = system.as_ref().and_then(CoordinateSystem::datum) {
        attributes.push(CfAttribute::numbers("semi_major_axis", &[datum.semi_major_axis]));
        // Unlike the text, CF does not use 0 for a sphere.
        if datum.inverse_flattening > 0.0 {
            attributes.push(CfAttribute::numbers("inverse_flattening", &[datum.inverse_flattening]));
        }
        attributes.push(CfAttribute::numbers("longitude_of_prime_meridian", &[datum.prime_meridian]));
    }
    if !place.system.is_empty() {
        attributes.push(CfAttribute::text("crs_wkt", place.system.clone()));
        attributes.push(CfAttribute::text("spatial_ref", place.system.clone()));
    }
    if let Some(transform) = place.transform {
        attributes.push(CfAttribute::text("GeoTransform", transform.map(|number| number.to_string()).join(" ")));
    }
    attributes
}

type NamedNumbers = Vec<(&'static str, Vec<f64>)>;

/// Returns CF's name of a projection and its parameters. Angles are in degrees, which [`CoordinateSystem::datum`]
/// checks.
fn words(system: &CoordinateSystem<'_>) -> Option<(&'static str, NamedNumbers)> {
    system.datum()?;
    if system.is_geographic {
        return Some(("latitude_longitude", Vec::new()));
    }
    let projection: Projection<'_> = system.projection()?;
    let of = |name: &str| projection.parameter(name);
    let scale = of("scale_factor").unwrap_or(1.0);
    let origin = |longitude: f64, latitude: f64| -> NamedNumbers {
        vec![("longitude_of_projection_origin", vec![longitude]), ("latitude_of_projection_origin", vec![latitude])]
    };
    let central = |longitude: f64, latitude: f64| -> NamedNumbers {
        vec![("longitude_of_central_meridian", vec![longitude]), ("latitude_of_projection_origin", vec![latitude])]
    };
    let (name, mut numbers) = match projection.method {
        "Transverse_Mercator" => {
            let mut numbers = central(of("central_meridian")?, of("latitude_of_origin")?);
            numbers.push(("scale_factor_at_central_meridian", vec![scale]));
            ("transverse_mercator", numbers)
        }
        "Lambert_Conformal_Conic_2SP" => {
            let mut numbers = central(of("central_meridian")?, of("latitude_of_origin")?);
            numbers.push(("standard_parallel", vec![of("standard_parallel_1")?, of("standard_parallel_2")?]));
            ("lambert_conformal_conic", numbers)
        }
        "Albers_Conic_Equal_Area" => {
            let mut numbers = central(of("longitude_of_center")?, of("latitude_of_center")?);
            numbers.push(("standard_parallel", vec![of("standard_parallel_1")?, of("standard_parallel_2")?]));
            ("albers_conical_equal_area", numbers)
        }
        "Lambert_Azimuthal_Equal_Area" => {
            ("lambert_azimuthal_equal_area", origin(of("longitude_of_center")?, of("latitude_of_center")?))
        }
        "Mercator_1SP" => {
            let longitude = vec![of("central_meridian")?];
            let numbers =
                vec![("longitude_of_projection_origin", longitude), ("scale_factor_at_projection_origin", vec![scale])];
            ("mercator", numbers)
        }
        "Polar_Stereographic" if scale == 1.0 => {
            let parallel = of("latitude_of_origin")?;
            let numbers = vec![
                ("straight_vertical_longitude_from_pole", vec![of("central_meridian")?]),
                ("latitude_of_projection_origin", vec![90f64.copysign(parallel)]),
                ("standard_parallel", vec![parallel]),
            ];
            ("polar_stereographic", numbers)
        }
        _ => return None,
    };
    numbers.push(("false_easting", vec![of("false_easting").unwrap_or(0.0)]));
    numbers.push(("false_northing", vec![of("false_northing").unwrap_or(0.0)]));
    Some((name, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_names_omits_names_with_blanks() {
        assert_eq!(list_of_names(["y", "a b", "x\u{a0}", "ü"]).as_deref(), Some("y ü"));
        assert_eq!(list_of_names([" "]), None);
        assert_eq!(list_of_names([]), None);
    }
    use crate::testing::{assert_random_access, read_all};

    #[test]
    fn coordinates_are_the_centres_of_pixels() {
        let transform = [10.0, 2.0, 0.0, 50.0, 0.0, -4.0];
        let y = coordinates(transform, Direction::Lines, 3);
        assert_eq!(read_all(&y), [48f64, 44.0, 40.0].map(f64::to_le_bytes).concat());
        assert_eq!(read_all(&coordinates(transform, Direction::Samples, 1)), 11f64.to_le_bytes());
        assert_random_access(&y);
    }

    #[test]
    fn system_without_cf_name_is_described_by_its_text() {
        let geographic = "GEOGCS[\"a\",DATUM[\"b\",SPHEROID[\"c\",6371000,0]],PRIMEM[\"Paris\",2.5],UNIT[\"degree\",0.0174532925199433]]";
        let names = |system: &str| -> Vec<&'static str> {
            let place = Georeference::new([0.0, 1.0, 0.0, 0.0, 0.0, -1.0], system);
            grid_mapping(&place).into_iter().map(|attribute| attribute.name).collect()
        };
        let of_text = ["crs_wkt", "spatial_ref", "GeoTransform"];
        let earth = ["semi_major_axis", "longitude_of_prime_meridian"];
        assert_eq!(names(geographic), [&["grid_mapping_name"][..], &earth, &of_text].concat());
        let projected = format!("PROJCS[\"d\",{geographic},PROJECTION[\"Krovak\"],UNIT[\"metre\",1]]");
        assert_eq!(names(&projected), [&earth[..], &of_text].concat());
        // An extension overrides the parameters.
        let extended = format!(
            "PROJCS[\"d\",{geographic},PROJECTION[\"Mercator_1SP\"],PARAMETER[\"central_meridian\",0],\
             EXTENSION[\"PROJ4\",\"+proj=merc +R=1\"]]"
        );
        assert_eq!(names(&extended), [&earth[..], &of_text].concat());
        assert_eq!(names("nonsense"), of_text);
        assert_eq!(names(""), ["GeoTransform"]);
    }
}
