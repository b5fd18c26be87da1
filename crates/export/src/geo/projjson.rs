//! Converts coordinate systems from PROJ's JSON form (PROJJSON 0.1 to 0.7) to well-known text of the second version
//! (ISO 19162:2019).
//!
//! Both have the same elements. The text is at most a few times as long as the JSON, and the depth of the JSON is
//! limited by `serde_json`.

use serde_json::Value;
use tilefs_base::json;
use tilefs_threads::cancellation;

/// Returns the well-known text of a geographic, projected or compound system, or of the source of a bound one; `None`
/// for others, and if a required element is missing.
pub fn well_known_text(json: &str) -> Option<String> {
    system(&json::parse(json, cancellation::check).ok()?)
}

fn system(json: &Value) -> Option<String> {
    let mut parts = vec![quoted(json.get("name")?)?];
    let keyword = match kind(json)? {
        "GeographicCRS" => "GEOGCRS",
        "GeodeticCRS" => "GEODCRS",
        "ProjectedCRS" => "PROJCRS",
        "CompoundCRS" => "COMPOUNDCRS",
        "VerticalCRS" => "VERTCRS",
        // The coordinates are in the source system; the rest describes a conversion to another system.
        "BoundCRS" => return system(json.get("source_crs")?),
        _ => return None,
    };
    match keyword {
        "GEOGCRS" | "GEODCRS" => parts.append(&mut frame(json, "DATUM")?),
        "PROJCRS" => {
            let base = json.get("base_crs")?;
            let keyword = if kind(base) == Some("GeodeticCRS") { "BASEGEODCRS" } else { "BASEGEOGCRS" };
            let mut inner = vec![quoted(base.get("name")?)?];
            inner.append(&mut frame(base, "DATUM")?);
            inner.extend(identifier(base));
            parts.push(element(keyword, inner));
            parts.push(conversion(json.get("conversion")?)?);
        }
        "VERTCRS" => parts.append(&mut frame(json, "VDATUM")?),
        _ => parts.append(&mut list(json, "components", system)?),
    }
    if keyword != "COMPOUNDCRS" {
        parts.append(&mut axes(json.get("coordinate_system")?)?);
    }
    parts.extend(identifier(json));
    Some(element(keyword, parts))
}

/// Returns the reference frame, or the ensemble of frames, with the prime meridian.
fn frame(json: &Value, keyword: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let (frame, mut inner) = match json.get("datum").filter(|datum| !datum.is_null()) {
        Some(frame) => {
            if let Some(epoch) = frame.get("frame_reference_epoch") {
                parts.push(element("DYNAMIC", vec![element("FRAMEEPOCH", vec![number(epoch)?])]));
            }
            (frame, vec![quoted(frame.get("name")?)?])
        }
        None => {
            let ensemble = json.get("datum_ensemble")?;
            let mut inner = vec![quoted(ensemble.get("name")?)?];
            let member = |member: &Value| Some(element("MEMBER", vec![quoted(member.get("name")?)?]));
            inner.append(&mut list(ensemble, "members", member)?);
            (ensemble, inner)
        }
    };
    if let Some(ellipsoid) = frame.get("ellipsoid") {
        inner.push(self::ellipsoid(ellipsoid)?);
    }
    let is_ensemble = json.get("datum").is_none_or(Value::is_null);
    if is_ensemble {
        inner.push(element("ENSEMBLEACCURACY", vec![number(frame.get("accuracy")?)?]));
    }
    inner.extend(identifier(frame));
    parts.push(element(if is_ensemble { "ENSEMBLE" } else { keyword }, inner));
    if let Some(meridian) = frame.get("prime_meridian") {
        let (longitude, unit) = measure(meridian.get("longitude")?, "degree")?;
        parts.push(element("PRIMEM", vec![quoted(meridian.get("name")?)?, longitude, unit]));
    }
    Some(parts)
}

fn ellipsoid(json: &Value) -> Option<String> {
    let (axis, unit) = measure(json.get("semi_major_axis").or_else(|| json.get("radius"))?, "metre")?;
    let flattening = match (json.get("inverse_flattening"), json.get("semi_minor_axis")) {
        (Some(flattening), _) => number(flattening)?,
        (None, Some(minor)) => {
            let (major, minor) = (axis.parse::<f64>().ok()?, measure(minor, "metre")?.0.parse::<f64>().ok()?);
            // The text uses 0 for a sphere.
            if major == minor { "0".to_owned() } else { (major / (major - minor)).to_string() }
        }
        (None, None) => "0".to_owned(),
    };
    Some(element("ELLIPSOID", vec![quoted(json.get("name")?)?, axis, flattening, unit]))
}

fn conversion(json: &Value) -> Option<String> {
    let method = json.get("method")?;
    let mut inner = vec![quoted(method.get("name")?)?];
    inner.extend(identifier(method));
    let mut parts = vec![quoted(json.get("name")?)?, element("METHOD", inner)];
    let parameter = |json: &Value| {
        let mut inner = vec![quoted(json.get("name")?)?, number(json.get("value")?)?];
        inner.push(unit(json.get("unit")?)?);
        inner.extend(identifier(json));
        Some(element("PARAMETER", inner))
    };
    if json.get("parameters").is_some() {
        parts.append(&mut list(json, "parameters", parameter)?);
    }
    parts.extend(identifier(json));
    Some(element("CONVERSION", parts))
}

/// Returns the kind of coordinates, and each axis.
fn axes(json: &Value) -> Option<Vec<String>> {
    let axis = |(number, json): (usize, &Value)| {
        let mut name = json.get("name")?.as_str()?.to_lowercase();
        if let Some(short) = json.get("abbreviation").and_then(Value::as_str).filter(|short| !short.is_empty()) {
            name += &format!(" ({short})");
        }
        let mut inner = vec![quoted(&name.into())?, word(json.get("direction")?)?];
        if let Some(meridian) = json.get("meridian") {
            let (longitude, unit) = measure(meridian.get("longitude")?, "degree")?;
            inner.push(element("MERIDIAN", vec![longitude, unit]));
        }
        inner.push(element("ORDER", vec![(number + 1).to_string()]));
        inner.push(unit(json.get("unit")?)?);
        Some(element("AXIS", inner))
    };
    let found = json.get("axis")?.as_array()?;
    let mut parts = vec![element("CS", vec![word(json.get("subtype")?)?, found.len().to_string()])];
    parts.append(&mut found.iter().enumerate().map(axis).collect::<Option<_>>()?);
    Some(parts)
}

/// Returns a number and its unit, which is `rule` if not given.
fn measure(json: &Value, rule: &str) -> Option<(String, String)> {
    match json.get("value") {
        Some(value) => Some((number(value)?, unit(json.get("unit")?)?)),
        None => Some((number(json)?, unit(&rule.into())?)),
    }
}

/// Returns a unit: one of the three known by name, or one that is described.
fn unit(json: &Value) -> Option<String> {
    match json.as_str() {
        Some("metre") => return Some("LENGTHUNIT[\"metre\",1]".to_owned()),
        Some("degree") => return Some("ANGLEUNIT[\"degree\",0.0174532925199433]".to_owned()),
        Some("unity") => return Some("SCALEUNIT[\"unity\",1]".to_owned()),
        _ => {}
    }
    let keyword = match kind(json)? {
        "LinearUnit" => "LENGTHUNIT",
        "AngularUnit" => "ANGLEUNIT",
        "ScaleUnit" => "SCALEUNIT",
        "TimeUnit" => "TIMEUNIT",
        "ParametricUnit" => "PARAMETRICUNIT",
        _ => return None,
    };
    Some(element(keyword, vec![quoted(json.get("name")?)?, number(json.get("conversion_factor")?)?]))
}

fn identifier(json: &Value) -> Option<String> {
    let id = json.get("id")?;
    let code = id.get("code")?;
    let code = if code.is_string() { quoted(code) } else { number(code) };
    Some(element("ID", vec![quoted(id.get("authority")?)?, code?]))
}

fn list(json: &Value, key: &str, of: impl Fn(&Value) -> Option<String>) -> Option<Vec<String>> {
    json.get(key)?.as_array()?.iter().map(of).collect()
}

fn kind(json: &Value) -> Option<&str> {
    json.get("type")?.as_str()
}

fn element(keyword: &str, parts: Vec<String>) -> String {
    format!("{keyword}[{}]", parts.join(","))
}

fn quoted(json: &Value) -> Option<String> {
    let text: String = json.as_str()?.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// Returns a keyword such as `north`.
fn word(json: &Value) -> Option<String> {
    json.as_str().filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric())).map(str::to_owned)
}

/// Returns a number, which is a text if its digits matter.
fn number(json: &Value) -> Option<String> {
    match json {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|_| text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::wkt::CoordinateSystem;

    const UTM: &str = r#"{"type": "ProjectedCRS", "name": "WGS 84 / UTM zone 16N",
        "base_crs": {"type": "GeographicCRS", "name": "WGS 84",
            "datum_ensemble": {"name": "World Geodetic System 1984 ensemble", "members": [{"name": "Transit"}],
                "ellipsoid": {"name": "WGS 84", "semi_major_axis": 6378137, "inverse_flattening": 298.257223563},
                "accuracy": "2.0"}},
        "conversion": {"name": "UTM zone 16N", "method": {"name": "Transverse Mercator", "id": {"authority": "EPSG", "code": 9807}},
            "parameters": [
                {"name": "Latitude of natural origin", "value": 0, "unit": "degree"},
                {"name": "Longitude of natural origin", "value": -87, "unit": "degree"},
                {"name": "Scale factor at natural origin", "value": 0.9996, "unit": "unity"},
                {"name": "False easting", "value": 500000, "unit": "metre"},
                {"name": "False northing", "value": 0, "unit": "metre"}]},
        "coordinate_system": {"subtype": "Cartesian", "axis": [
            {"name": "Easting", "abbreviation": "E", "direction": "east", "unit": "metre"},
            {"name": "Northing", "abbreviation": "N", "direction": "north", "unit": "metre"}]},
        "id": {"authority": "EPSG", "code": 32616}}"#;

    #[test]
    fn a_projected_system_has_all_its_elements() {
        let text = well_known_text(UTM).unwrap();
        let expected = concat!(
            r#"PROJCRS["WGS 84 / UTM zone 16N",BASEGEOGCRS["WGS 84",ENSEMBLE["World Geodetic System 1984 ensemble","#,
            r#"MEMBER["Transit"],ELLIPSOID["WGS 84",6378137,298.257223563,LENGTHUNIT["metre",1]],ENSEMBLEACCURACY[2.0]]],"#,
            r#"CONVERSION["UTM zone 16N",METHOD["Transverse Mercator",ID["EPSG",9807]],"#,
            r#"PARAMETER["Latitude of natural origin",0,ANGLEUNIT["degree",0.0174532925199433]],"#,
            r#"PARAMETER["Longitude of natural origin",-87,ANGLEUNIT["degree",0.0174532925199433]],"#,
            r#"PARAMETER["Scale factor at natural origin",0.9996,SCALEUNIT["unity",1]],"#,
            r#"PARAMETER["False easting",500000,LENGTHUNIT["metre",1]],"#,
            r#"PARAMETER["False northing",0,LENGTHUNIT["metre",1]]],CS[Cartesian,2],"#,
            r#"AXIS["easting (E)",east,ORDER[1],LENGTHUNIT["metre",1]],"#,
            r#"AXIS["northing (N)",north,ORDER[2],LENGTHUNIT["metre",1]],ID["EPSG",32616]]"#,
        );
        assert_eq!(text, expected);
        let system = CoordinateSystem::parse(&text).unwrap();
        assert_eq!(system.unit(), Some(("metre", 1.0)));
        let projection = system.projection().unwrap();
        assert_eq!((projection.method, projection.parameter("central_meridian")), ("Transverse_Mercator", Some(-87.0)));
        assert_eq!(system.datum().unwrap().inverse_flattening, 298.257223563);
    }

    #[test]
    fn frames_may_be_dynamic_and_ellipsoids_spheres() {
        let json = r#"{"type": "BoundCRS", "name": "b", "source_crs": {"type": "GeographicCRS", "name": "a \"b\"",
            "datum": {"type": "DynamicGeodeticReferenceFrame", "name": "d", "frame_reference_epoch": 2010,
                "ellipsoid": {"name": "e", "radius": {"value": 6371, "unit": {"type": "LinearUnit", "name": "km", "conversion_factor": 1000}}},
                "prime_meridian": {"name": "Paris", "longitude": 2.5}},
            "coordinate_system": {"subtype": "ellipsoidal", "axis": []}}}"#;
        let expected = concat!(
            r#"GEOGCRS["a ""b""",DYNAMIC[FRAMEEPOCH[2010]],DATUM["d",ELLIPSOID["e",6371,0,LENGTHUNIT["km",1000]]],"#,
            r#"PRIMEM["Paris",2.5,ANGLEUNIT["degree",0.0174532925199433]],CS[ellipsoidal,0]]"#
        );
        assert_eq!(well_known_text(json).as_deref(), Some(expected));
    }

    #[test]
    fn invalid_text_is_rejected() {
        for json in
            ["", "{}", "[]", r#"{"type": "EngineeringCRS", "name": "a"}"#, r#"{"type": "ProjectedCRS", "name": "a"}"#]
        {
            assert_eq!(well_known_text(json), None, "{json}");
        }
        let deep = r#"{"type":"BoundCRS","name":"a","source_crs":"#.repeat(100_000);
        assert_eq!(well_known_text(&deep), None);
    }
}
