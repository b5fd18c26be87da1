//! GeoTIFF: the position of the pixels, and their coordinate system.

use super::directory::{ImageDirectory, TagValues};
use crate::geo::georeference::Georeference;
use crate::geo::wkt::CoordinateSystem;

const PIXEL_SCALE: u16 = 33550;
const TIE_POINT: u16 = 33922;
const TRANSFORMATION: u16 = 34264;
const KEYS: u16 = 34735;
const DOUBLES: u16 = 34736;
const TEXTS: u16 = 34737;

/// The code for anything without an EPSG code.
const USER_DEFINED: u16 = 32767;

/// The EPSG code of the degree.
const DEGREE: u16 = 9102;

/// The keys of a system in ascending order, with the values that do not fit into them.
#[derive(Default)]
struct Keys {
    /// A key, the tag that contains its value (0: this one), the number of values, and the value or its index.
    entries: Vec<[u16; 4]>,
    doubles: Vec<f64>,
    texts: String,
}

impl Keys {
    fn short(&mut self, key: u16, value: u16) {
        self.entries.push([key, 0, 1, value]);
    }

    fn double(&mut self, key: u16, value: f64) {
        self.entries.push([key, DOUBLES, 1, self.doubles.len() as u16]);
        self.doubles.push(value);
    }

    /// Adds a text, which ends with a bar; omits it if TIFF's 16-bit indexes do not reach it.
    fn text(&mut self, key: u16, text: &str) {
        let text: String = text.chars().map(|c| if c.is_ascii() && c != '|' { c } else { '_' }).collect();
        let place = u16::try_from(self.texts.len()).ok().zip(u16::try_from(text.len() + 1).ok());
        if let Some((start, length)) = place {
            self.entries.push([key, TEXTS, length, start]);
            self.texts += &text;
            self.texts.push('|');
        }
    }
}

/// Returns whether the keys can say everything about a georeference: its system has a code and no vertical part, and x is
/// the easting or longitude. GDAL reads other systems from the file of metadata beside the image.
pub fn holds(place: &Georeference) -> bool {
    let is_northing_first = |system: &CoordinateSystem<'_>| system.has_northing_first() == Some(true);
    let has_key = |system: &CoordinateSystem<'_>| {
        let mapping = place.axis_mapping.as_deref().map(|mapping| mapping.split(',').map(str::trim).take(2));
        let swaps = mapping.map(|mapping| mapping.eq(["2", "1"]));
        system.is_alone && system.epsg().is_some() && swaps.is_none_or(|swaps| swaps == is_northing_first(system))
    };
    let system = &place.system;
    place.epoch.is_none() && (system.is_empty() || CoordinateSystem::parse(system).as_ref().is_some_and(has_key))
}

/// Returns whether the keys of a georeference say if its pixels are areas or points: without a system there are none,
/// because GDAL takes a key of pixels alone for that of an unknown system.
pub fn has_keys(place: Option<&Georeference>) -> bool {
    place.is_some_and(|place| CoordinateSystem::parse(&place.system).is_some())
}

/// Adds the tags of a georeference. `are_points`: the coordinates of a pixel are those of its centre.
pub fn add(directory: &mut ImageDirectory, place: Option<&Georeference>, are_points: bool) {
    if let Some((place, [x, x_column, x_row, y, y_column, y_row])) =
        place.and_then(|place| Some((place, place.transform?)))
    {
        // The position in the tags is that of the corner of the first pixel, or of its centre.
        let inside = if are_points && has_keys(Some(place)) { 0.5 } else { 0.0 };
        let (x, y) = (x + inside * (x_column + x_row), y + inside * (y_column + y_row));
        match place.is_north_up() {
            true => {
                directory.add(PIXEL_SCALE, TagValues::Double(vec![x_column, -y_row, 0.0]));
                directory.add(TIE_POINT, TagValues::Double(vec![0.0, 0.0, 0.0, x, y, 0.0]));
            }
            false => {
                let rows = [[x_column, x_row, 0.0, x], [y_column, y_row, 0.0, y], [0.0; 4], [0.0, 0.0, 0.0, 1.0]];
                directory.add(TRANSFORMATION, TagValues::Double(rows.concat()));
            }
        }
    }
    let keys = keys(place.map_or("", |place| &place.system), are_points);
    if keys.entries.is_empty() {
        return;
    }
    let count = keys.entries.len() as u16;
    directory.add(KEYS, TagValues::Short([1, 1, 0, count].into_iter().chain(keys.entries.concat()).collect()));
    if !keys.doubles.is_empty() {
        directory.add(DOUBLES, TagValues::Double(keys.doubles));
    }
    if !keys.texts.is_empty() {
        directory.add(TEXTS, TagValues::text(&keys.texts));
    }
}

fn keys(text: &str, are_points: bool) -> Keys {
    let mut keys = Keys::default();
    let Some(system) = CoordinateSystem::parse(text) else { return keys };
    // GDAL reads the text of a projected system without a code only if its model is not called projected.
    let model = match (system.epsg(), system.is_geographic) {
        (_, true) => 2,
        (Some(_), false) => 1,
        (None, false) => USER_DEFINED,
    };
    keys.short(1024, model);
    // Pixels are areas or points.
    keys.short(1025, if are_points { 2 } else { 1 });
    match (system.epsg(), system.is_geographic) {
        (Some(number), true) => keys.short(2048, number),
        (Some(number), false) => keys.short(3072, number),
        (None, true) => {
            keys.short(2048, USER_DEFINED);
            keys.text(2049, system.name().unwrap_or("unnamed"));
            keys.short(2050, USER_DEFINED);
            keys.short(2054, DEGREE);
            if let Some(datum) = system.datum() {
                keys.short(2056, USER_DEFINED);
                keys.double(2057, datum.semi_major_axis);
                keys.double(2059, datum.inverse_flattening);
                keys.double(2061, datum.prime_meridian);
            }
        }
        (None, false) => {
            keys.short(3072, USER_DEFINED);
            keys.text(3073, &format!("ESRI PE String = {text}"));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_codes_or_texts() {
        let of = |system: &str| {
            let keys = keys(system, false);
            (keys.entries, keys.doubles, keys.texts)
        };
        let geographic =
            r#"GEOGCS["a",DATUM["b",SPHEROID["c",6371000,300]],PRIMEM["Paris",2.5],UNIT["degree",0.0174532925199433]]"#;
        let (entries, doubles, texts) = of(geographic);
        assert_eq!(entries[..3], [[1024, 0, 1, 2], [1025, 0, 1, 1], [2048, 0, 1, USER_DEFINED]]);
        assert_eq!((doubles.as_slice(), texts.as_str()), (&[6371000.0, 300.0, 2.5][..], "a|"));
        let projected = format!(r#"PROJCS["d",{geographic},PROJECTION["Krovak"],UNIT["metre",1]]"#);
        let (entries, _, texts) = of(&projected);
        assert_eq!((entries[0], entries[2]), ([1024, 0, 1, USER_DEFINED], [3072, 0, 1, USER_DEFINED]));
        assert_eq!(texts, format!("ESRI PE String = {projected}|"));
        let numbered = format!("{},AUTHORITY[\"EPSG\",\"4326\"]]", geographic.trim_end_matches(']').to_owned() + "]");
        assert_eq!(of(&numbered).0.last(), Some(&[2048, 0, 1, 4326]));
        assert!(of("nonsense").0.is_empty());
        assert_eq!(keys(geographic, true).entries[..2], [[1024, 0, 1, 2], [1025, 0, 1, 2]]);
        assert!(keys("", true).entries.is_empty());
    }
}
