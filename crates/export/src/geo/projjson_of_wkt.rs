//! Converts coordinate systems from well-known text of both versions to PROJ's JSON form (PROJJSON 0.7), as far as it has
//! words for all elements that change positions. Others, such as remarks, are left out.

use serde_json::{Map, Number, Value, json};

use crate::geo::wkt::{DEGREE, METHODS, SHARED, WktElement, WktValue};

/// The form that the result has.
const SCHEMA: &str = "https://proj.org/schemas/v0.7/projjson.schema.json";

/// The elements of a compound system that are none of its parts.
const ABOUT: [&str; 9] =
    ["ID", "AUTHORITY", "USAGE", "SCOPE", "AREA", "BBOX", "VERTICALEXTENT", "TIMEEXTENT", "REMARK"];

/// Maximum numbers of axes and of parameters of a system, and length of a unit's name: each axis and parameter has a copy
/// of it.
const MAX_AXES: usize = 3;
const MAX_PARAMETERS: usize = 32;
const MAX_UNIT: usize = 256;

/// The beginnings of names that Esri gives to datums, and by which PROJ finds none in PROJJSON: of all that are registered,
/// those of PROJ 9.5.
const ONLY_ESRI: [&str; 7] = [
    "D_BH_ETRS89",
    "D_CR-SIRGAS",
    "D_D48",
    "D_Hermannskogel",
    "D_IG",
    "D_Mayotte_Geodetic_Reference_Frame_2023",
    "D_Observatorio_Meteorologico_1939",
];

/// Elements of a system that means more than the others say: a text of the first version that PROJ's own words extend, such
/// as a shift of the datum, and one of Esri with a unit of height, for an axis that none of them names.
const MORE: [&str; 3] = ["EXTENSION", "BOUNDCRS", "LINUNIT"];

/// Elements of a datum that move positions, which are bound systems for PROJ.
const SHIFTS: [&str; 2] = ["TOWGS84", "EXTENSION"];

/// Returns the PROJJSON of a geographic, geodetic, projected, vertical or compound system; `None` for others, and if an
/// element that changes positions has no word in it.
pub fn projjson(text: &str) -> Option<Value> {
    let Value::Object(system) = system(&WktElement::parse(text)?)? else { return None };
    let schema = [("$schema".to_owned(), SCHEMA.into())];
    Some(Value::Object(schema.into_iter().chain(system).collect()))
}

fn system(element: &WktElement<'_>) -> Option<Value> {
    let mut system = named(element)?;
    let kind = kind(element)?;
    system.insert("type".to_owned(), kind.into());
    if element.child(&MORE).is_some() {
        return None;
    }
    match kind {
        "CompoundCRS" => {
            let parts = element.children().filter(|child| !child.is(&ABOUT));
            system.insert("components".to_owned(), parts.map(self::system).collect::<Option<Vec<_>>>()?.into());
        }
        "ProjectedCRS" => {
            let base = element.child(&["GEOGCS", "BASEGEOGCRS", "BASEGEODCRS"])?;
            system.insert("base_crs".to_owned(), base_system(base)?.into());
            system.insert("conversion".to_owned(), conversion(element, base)?);
            system.append(&mut axes(element, "Cartesian")?);
        }
        "VerticalCRS" => {
            let datum = element.child(&["VERT_DATUM", "VDATUM", "VERTICALDATUM"])?;
            if datum.child(&SHIFTS).is_some() {
                return None;
            }
            let mut frame = named(datum)?;
            frame.insert("type".to_owned(), "VerticalReferenceFrame".into());
            frame.append(&mut identifier(datum)?);
            system.insert("datum".to_owned(), frame.into());
            system.append(&mut axes(element, "vertical")?);
        }
        _ => {
            system.append(&mut frame(element)?);
            system.append(&mut axes(element, "ellipsoidal")?);
        }
    }
    system.append(&mut identifier(element)?);
    Some(system.into())
}

/// Returns PROJJSON's type of a system, unless the keyword is of another kind of system.
fn kind(element: &WktElement<'_>) -> Option<&'static str> {
    Some(match element.keyword.to_ascii_uppercase().as_str() {
        "GEOGCS" | "GEOGCRS" | "GEOGRAPHICCRS" => "GeographicCRS",
        "GEODCRS" | "GEODETICCRS" => match element.child(&["CS"])?.word(0)?.eq_ignore_ascii_case("ellipsoidal") {
            true => "GeographicCRS",
            false => "GeodeticCRS",
        },
        "PROJCS" | "PROJCRS" | "PROJECTEDCRS" => "ProjectedCRS",
        "VERT_CS" | "VERTCRS" | "VERTICALCRS" => "VerticalCRS",
        "COMPD_CS" | "COMPOUNDCRS" => "CompoundCRS",
        _ => return None,
    })
}

/// Returns the geographic system of a projected one.
fn base_system(base: &WktElement<'_>) -> Option<Map<String, Value>> {
    if base.child(&MORE).is_some() {
        return None;
    }
    let mut system = named(base)?;
    system.insert("type".to_owned(), "GeographicCRS".into());
    system.append(&mut frame(base)?);
    system.append(&mut axes(base, "ellipsoidal")?);
    // The unit of the base is that of the meridian, or it is degrees: the text does not say which.
    let unit = base.child(&["PRIMEM", "PRIMEMERIDIAN"]).and_then(|meridian| meridian.child(&["ANGLEUNIT"]));
    if unit.is_some_and(|unit| self::unit(unit).is_none_or(|unit| unit != "degree")) {
        return None;
    }
    system.append(&mut identifier(base)?);
    Some(system)
}

/// Returns an object with the name of an element.
fn named(element: &WktElement<'_>) -> Option<Map<String, Value>> {
    let name = Value::from(element.text()?);
    Some([("name".to_owned(), name)].into_iter().collect())
}

/// Returns the reference frame of a geographic system, or its ensemble of frames.
fn frame(system: &WktElement<'_>) -> Option<Map<String, Value>> {
    let ensemble = system.child(&["ENSEMBLE"]);
    let element = ensemble.or_else(|| system.child(&["DATUM", "GEODETICDATUM", "TRF"]))?;
    let name = element.text()?;
    if element.child(&SHIFTS).is_some() || ONLY_ESRI.iter().any(|only| name.starts_with(only)) {
        return None;
    }
    // The first version has no brackets in the name of a datum, and so another name than the datum.
    let is_first_version = element.child(&["SPHEROID"]).is_some();
    if is_first_version && system.text().is_some_and(|system| system.contains('[')) {
        return None;
    }
    let mut frame = named(element)?;
    if name == "WGS_1984" {
        frame.insert("name".to_owned(), "World Geodetic System 1984".into());
    }
    let ellipsoid = element.child(&["SPHEROID", "ELLIPSOID"])?;
    frame.insert("ellipsoid".to_owned(), self::ellipsoid(ellipsoid)?);
    let key = match ensemble {
        Some(_) => {
            let members = element.children().filter(|child| child.is(&["MEMBER"])).map(|member| {
                let mut found = named(member)?;
                found.append(&mut identifier(member)?);
                Some(Value::from(found))
            });
            frame.insert("members".to_owned(), members.collect::<Option<Vec<_>>>()?.into());
            let accuracy = element.child(&["ENSEMBLEACCURACY"])?.word(0)?;
            frame.insert("accuracy".to_owned(), accuracy.into());
            "datum_ensemble"
        }
        None => {
            let epoch = system.child(&["DYNAMIC"]).and_then(|dynamic| dynamic.child(&["FRAMEEPOCH"]));
            let kind = if epoch.is_some() { "DynamicGeodeticReferenceFrame" } else { "GeodeticReferenceFrame" };
            frame.insert("type".to_owned(), kind.into());
            if let Some(epoch) = epoch {
                frame.insert("frame_reference_epoch".to_owned(), epoch.json_number(0)?);
            }
            "datum"
        }
    };
    if let Some(meridian) = system.child(&["PRIMEM", "PRIMEMERIDIAN"]).filter(|one| one.number(1) != Some(0.0)) {
        let unit = meridian.child(&["ANGLEUNIT"]);
        // Of the first version, some writers mean the unit of the system, and others degrees.
        let unit_of_system = system.child(&["UNIT"]).map(self::unit);
        if unit.is_none() && unit_of_system.is_some_and(|unit| unit.is_none_or(|unit| unit != "degree")) {
            return None;
        }
        let mut found = named(meridian)?;
        found.insert("longitude".to_owned(), measure(meridian.json_number(1)?, unit, "degree")?);
        found.append(&mut identifier(meridian)?);
        frame.insert("prime_meridian".to_owned(), found.into());
    }
    frame.append(&mut identifier(element)?);
    Some([(key.to_owned(), frame.into())].into_iter().collect())
}

fn ellipsoid(element: &WktElement<'_>) -> Option<Value> {
    let mut found = named(element)?;
    let axis = measure(element.json_number(1)?, element.child(&["LENGTHUNIT"]), "metre")?;
    // The text uses 0 for a sphere.
    if element.number(2)? == 0.0 {
        found.insert("radius".to_owned(), axis);
    } else {
        found.insert("semi_major_axis".to_owned(), axis);
        found.insert("inverse_flattening".to_owned(), element.json_number(2)?);
    }
    found.append(&mut identifier(element)?);
    Some(found.into())
}

/// Returns the projection of a system. The first version gives angles in the unit of the geographic system, and lengths in
/// that of the projected one.
fn conversion(system: &WktElement<'_>, base: &WktElement<'_>) -> Option<Value> {
    let Some(element) = system.child(&["CONVERSION"]) else { return conversion_of_first_version(system, base) };
    let method = element.child(&["METHOD"])?;
    let mut found_method = named(method)?;
    found_method.append(&mut identifier(method)?);
    let parameter = |parameter: &WktElement<'_>| {
        let mut found = named(parameter)?;
        found.insert("value".to_owned(), parameter.json_number(1)?);
        let unit = parameter.children().find(|child| !child.is(&["ID"]))?;
        found.insert("unit".to_owned(), self::unit(unit)?);
        found.append(&mut identifier(parameter)?);
        Some(Value::from(found))
    };
    let parameters = at_most(MAX_PARAMETERS, element, "PARAMETER")?.map(parameter);
    let parameters = parameters.collect::<Option<Vec<_>>>()?;
    let mut found = named(element)?;
    found.insert("method".to_owned(), found_method.into());
    found.insert("parameters".to_owned(), parameters.into());
    found.append(&mut identifier(element)?);
    Some(found.into())
}

fn conversion_of_first_version(system: &WktElement<'_>, base: &WktElement<'_>) -> Option<Value> {
    let wanted = system.child(&["PROJECTION"])?.text()?;
    let (method, _, names) = METHODS.into_iter().find(|(_, name, _)| name.eq_ignore_ascii_case(wanted))?;
    if method.starts_with("Polar") {
        // Both axes go south, or both north, along meridians that the text does not name.
        return None;
    }
    let (length, angle) = (unit(system.child(&["UNIT"])?)?, unit(base.child(&["UNIT"])?)?);
    let parameter = |parameter: &WktElement<'_>| {
        let name = parameter.text()?;
        // False eastings and northings have one name in the first version; those at the natural origin come first.
        let is_false_origin = names.iter().any(|(name, _)| name.contains("false origin"));
        let mut known = names.iter().chain(if is_false_origin { &SHARED[2..] } else { &SHARED[..2] });
        let (name, _) = known.find(|(_, first)| first.eq_ignore_ascii_case(name))?;
        let unit = match *name {
            "Scale factor at natural origin" => "unity".into(),
            name if name.contains("asting") || name.contains("orthing") => length.clone(),
            _ => angle.clone(),
        };
        Some(json!({"name": name, "value": parameter.json_number(1)?, "unit": unit}))
    };
    let parameters = at_most(MAX_PARAMETERS, system, "PARAMETER")?.map(parameter);
    let parameters = parameters.collect::<Option<Vec<_>>>()?;
    Some(json!({"name": "unnamed", "method": {"name": method}, "parameters": parameters}))
}

/// Returns the coordinate system, as a member of the object. Without axes, the latitude comes first, which has no effect
/// in GeoParquet: there, the longitude or easting always comes first.
fn axes(system: &WktElement<'_>, subtype: &str) -> Option<Map<String, Value>> {
    let shared = system.child(&["UNIT", "LENGTHUNIT", "ANGLEUNIT"]);
    let axis = |axis: &WktElement<'_>| {
        let direction = axis.word(1)?;
        let (name, short) = name_of_axis(axis.text()?, direction);
        let unit = axis.child(&["UNIT", "LENGTHUNIT", "ANGLEUNIT"]).or(shared)?;
        // PROJJSON's words for directions are those of the second version, in their case.
        let direction = if direction.chars().all(|c| c.is_ascii_uppercase()) {
            direction.to_lowercase()
        } else {
            direction.to_owned()
        };
        let mut found = json!({"name": name, "abbreviation": short, "direction": direction, "unit": self::unit(unit)?});
        if let Some(meridian) = axis.child(&["MERIDIAN"]) {
            let longitude = measure(meridian.json_number(0)?, meridian.child(&["ANGLEUNIT"]), "degree")?;
            found["meridian"] = json!({"longitude": longitude});
        }
        Some(found)
    };
    let mut found = at_most(MAX_AXES, system, "AXIS")?.map(axis).collect::<Option<Vec<_>>>()?;
    if found.is_empty() {
        let names: &[[&str; 3]] = match subtype {
            "ellipsoidal" => &[["Geodetic latitude", "Lat", "north"], ["Geodetic longitude", "Lon", "east"]],
            "Cartesian" => &[["Easting", "E", "east"], ["Northing", "N", "north"]],
            _ => &[["Up", "H", "up"]],
        };
        let unit = match shared {
            Some(unit) => self::unit(unit)?,
            // The base of a projected system of the second version has neither axes nor a unit.
            None if subtype == "ellipsoidal" => "degree".into(),
            None => return None,
        };
        let axis = |[name, short, direction]: &[&str; 3]| json!({"name": name, "abbreviation": short, "direction": direction, "unit": unit});
        found = names.iter().map(axis).collect();
    }
    let subtype = system.child(&["CS"]).and_then(|kind| kind.word(0)).unwrap_or(subtype);
    let axes = json!({"subtype": subtype, "axis": found});
    Some([("coordinate_system".to_owned(), axes)].into_iter().collect())
}

/// Returns the elements of a keyword within another one; `None` if there are more than `most`.
fn at_most<'e, 't>(
    most: usize,
    element: &'e WktElement<'t>,
    keyword: &'static str,
) -> Option<impl Iterator<Item = &'e WktElement<'t>>> {
    let found = move || element.children().filter(move |child| child.is(&[keyword]));
    (found().count() <= most).then(found)
}

/// Returns the name of an axis and its abbreviation: `easting (E)` has both.
fn name_of_axis(text: &str, direction: &str) -> (String, String) {
    let (name, short) = match text.trim_end_matches(')').rsplit_once('(') {
        Some((name, short)) if text.ends_with(')') => (name.trim(), short),
        _ => (text, ""),
    };
    let name = match (name, direction.to_ascii_lowercase().as_str()) {
        ("", "east") => "easting",
        ("", "north") => "northing",
        ("", direction) => return (direction.to_owned(), short.to_owned()),
        (name, _) => name,
    };
    let mut letters = name.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    (first + letters.as_str(), short.to_owned())
}

/// Returns a number in a unit; without the unit if that is the rule.
fn measure(number: Value, unit: Option<&WktElement<'_>>, rule: &str) -> Option<Value> {
    let unit = unit.map_or(Some(rule.into()), self::unit)?;
    Some(if unit == rule { number } else { json!({"value": number, "unit": unit}) })
}

/// Returns a unit: one of the three known by name, or one that is described.
fn unit(element: &WktElement<'_>) -> Option<Value> {
    let (name, factor) = (element.text().filter(|name| name.len() <= MAX_UNIT)?, element.number(1)?);
    let kind = match element.keyword.to_ascii_uppercase().as_str() {
        "LENGTHUNIT" => "LinearUnit",
        "ANGLEUNIT" => "AngularUnit",
        "SCALEUNIT" => "ScaleUnit",
        // The first version has one word for all: no length is the fraction of a metre that a degree is of a radian.
        "UNIT" if (factor - DEGREE).abs() < 1e-9 || ["radian", "grad"].contains(&name) => "AngularUnit",
        "UNIT" => "LinearUnit",
        _ => return None,
    };
    match kind {
        "LinearUnit" if factor == 1.0 => Some("metre".into()),
        "AngularUnit" if (factor - DEGREE).abs() < 1e-14 => Some("degree".into()),
        "ScaleUnit" if factor == 1.0 => Some("unity".into()),
        _ => Some(json!({"type": kind, "name": name, "conversion_factor": element.json_number(1)?})),
    }
}

/// Returns the identifier of an element as a member of its object; nothing if it has none.
fn identifier(element: &WktElement<'_>) -> Option<Map<String, Value>> {
    let Some(id) = element.child(&["ID", "AUTHORITY"]) else { return Some(Map::new()) };
    let code = match id.values.get(1)? {
        WktValue::Text(text) => text.parse::<u32>().map_or_else(|_| (*text).into(), Value::from),
        WktValue::Word(word) => word.parse::<u32>().map_or_else(|_| (*word).into(), Value::from),
        WktValue::Element(_) => return None,
    };
    let id = json!({"authority": id.text()?, "code": code});
    Some([("id".to_owned(), id)].into_iter().collect())
}

impl<'a> WktElement<'a> {
    fn word(&self, place: usize) -> Option<&'a str> {
        match self.values.get(place)? {
            WktValue::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns a number, an integer if it is written as one.
    fn json_number(&self, place: usize) -> Option<Value> {
        let word = self.word(place)?;
        let integer = word.parse::<i64>().ok().map(Number::from);
        integer.or_else(|| Number::from_f64(word.parse().ok()?)).map(Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::projjson::well_known_text;

    #[test]
    fn the_text_of_the_result_is_the_text() {
        for text in [
            concat!(
                r#"PROJCRS["WGS 84 / UTM zone 16N",BASEGEOGCRS["WGS 84",ENSEMBLE["World Geodetic System 1984 ensemble","#,
                r#"MEMBER["Transit"],ELLIPSOID["WGS 84",6378137,298.257223563,LENGTHUNIT["metre",1]],ENSEMBLEACCURACY[2.0]]],"#,
                r#"CONVERSION["UTM zone 16N",METHOD["Transverse Mercator",ID["EPSG",9807]],"#,
                r#"PARAMETER["Longitude of natural origin",-87,ANGLEUNIT["degree",0.0174532925199433]],"#,
                r#"PARAMETER["Scale factor at natural origin",0.9996,SCALEUNIT["unity",1]],"#,
                r#"PARAMETER["False easting",500000,LENGTHUNIT["metre",1]]],CS[Cartesian,2],"#,
                r#"AXIS["easting (E)",east,ORDER[1],LENGTHUNIT["metre",1]],"#,
                r#"AXIS["northing (N)",north,ORDER[2],LENGTHUNIT["metre",1]],ID["EPSG",32616]]"#,
            ),
            concat!(
                r#"GEOGCRS["a",DYNAMIC[FRAMEEPOCH[2010]],DATUM["d",ELLIPSOID["e",6371,0,LENGTHUNIT["km",1000]]],"#,
                r#"PRIMEM["Paris",2.5,ANGLEUNIT["degree",0.0174532925199433]],CS[ellipsoidal,0]]"#
            ),
        ] {
            // Without axes, those of the first version are meant.
            let found = projjson(text).unwrap();
            let shown = well_known_text(&found.to_string()).unwrap();
            assert!(shown == text || text.contains("CS[ellipsoidal,0]") && shown.starts_with(&text[..90]), "{shown}");
        }
    }

    #[test]
    fn texts_of_the_first_version_have_units_and_axes() {
        let text = r#"PROJCS["a",GEOGCS["b",DATUM["c",SPHEROID["d",6378137,298.25]],PRIMEM["Greenwich",0],
            UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["central_meridian",9],
            PARAMETER["false_easting",5],UNIT["US survey foot",0.304800609601219],AUTHORITY["EPSG","2230"]]"#;
        let found = projjson(text).unwrap();
        assert_eq!(found["conversion"]["method"]["name"], "Transverse Mercator");
        let foot = json!({"type": "LinearUnit", "name": "US survey foot", "conversion_factor": 0.304800609601219});
        assert_eq!(
            found["conversion"]["parameters"],
            json!([
                {"name": "Longitude of natural origin", "value": 9, "unit": "degree"},
                {"name": "False easting", "value": 5, "unit": foot},
            ])
        );
        assert_eq!(found["coordinate_system"]["axis"][0]["unit"], foot);
        assert_eq!(found["id"], json!({"authority": "EPSG", "code": 2230}));
    }

    #[test]
    fn what_has_no_word_is_not_converted() {
        let of_method = |method: &str| {
            format!(
                "PROJCS[\"a\",GEOGCS[\"b\",DATUM[\"c\",SPHEROID[\"d\",1,2]],UNIT[\"degree\",0.0174532925199433]],\
                 PROJECTION[\"{method}\"],UNIT[\"metre\",1]]"
            )
        };
        assert!(projjson(&of_method("Mercator_1SP")).is_some());
        for text in ["", "EPSG:4326", "{}", "LOCAL_CS[\"a\"]", "GEOGCS[\"a\"]", &of_method("Unknown")] {
            assert_eq!(projjson(text), None, "{text}");
        }
        let extended =
            of_method("Mercator_1SP").replace("UNIT[\"metre\",1]]", "UNIT[\"metre\",1],EXTENSION[\"PROJ4\",\"\"]]");
        assert_eq!(projjson(&extended), None);
        for shift in ["TOWGS84[1,2,3]", "EXTENSION[\"PROJ4_GRIDS\",\"a.gsb\"]"] {
            let shifted =
                of_method("Mercator_1SP").replace("SPHEROID[\"d\",1,2]", &format!("SPHEROID[\"d\",1,2],{shift}"));
            assert_eq!(projjson(&shifted), None, "{shift}");
        }
        let paris =
            |unit: &str| format!("GEOGCS[\"a\",DATUM[\"c\",SPHEROID[\"d\",1,2]],PRIMEM[\"Paris\",2.3],UNIT[{unit}]]");
        assert!(projjson(&paris("\"degree\",0.0174532925199433")).is_some());
        assert_eq!(projjson(&paris("\"grad\",0.015707963267949")), None);
    }

    #[test]
    fn copies_of_a_unit_are_bounded() {
        let system = |parameters: usize, axes: usize, unit: usize| {
            let parameters = "PARAMETER[\"false_easting\",1],".repeat(parameters);
            let axes = ",AXIS[\"x\",EAST]".repeat(axes);
            format!(
                "PROJCS[\"a\",GEOGCS[\"b\",DATUM[\"c\",SPHEROID[\"d\",1,2]],UNIT[\"degree\",0.0174532925199433]],\
                 PROJECTION[\"Mercator_1SP\"],{parameters}UNIT[\"{}\",2]{axes}]",
                "u".repeat(unit)
            )
        };
        assert!(
            projjson(&system(1, 2, 10)).is_some() && projjson(&system(MAX_PARAMETERS, MAX_AXES, MAX_UNIT)).is_some()
        );
        for (parameters, axes, unit) in [(MAX_PARAMETERS + 1, 2, 10), (1, MAX_AXES + 1, 10), (1, 2, MAX_UNIT + 1)] {
            assert_eq!(projjson(&system(parameters, axes, unit)), None, "{parameters} {axes} {unit}");
        }
    }
}
