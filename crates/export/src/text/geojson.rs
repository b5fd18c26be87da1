//! Geometries in GeoJSON (RFC 7946), as they are stored: coordinates are not converted to the system of GeoJSON's readers.

use super::style::NotShown;
use crate::geo::wkb::{Geometry, GeometryKind, GeometryParts, Vertex};

/// Appends a geometry in well-known binary; one of no bytes, as GDAL stores a feature without a geometry, is null.
///
/// # Errors
/// Fails if it is none, and if GeoJSON cannot hold it: curves, and coordinates that are not numbers.
pub fn append(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), NotShown> {
    if bytes.is_empty() {
        out.extend(b"null");
        return Ok(());
    }
    append_geometry(&Geometry::read(bytes).map_err(|error| NotShown::Geometry(error.what()))?, out)
}

fn append_geometry(geometry: &Geometry, out: &mut Vec<u8>) -> Result<(), NotShown> {
    let (name, key) = match geometry.kind {
        GeometryKind::Point => ("Point", "coordinates"),
        GeometryKind::LineString => ("LineString", "coordinates"),
        GeometryKind::Polygon | GeometryKind::Triangle => ("Polygon", "coordinates"),
        GeometryKind::MultiPoint => ("MultiPoint", "coordinates"),
        GeometryKind::MultiLineString => ("MultiLineString", "coordinates"),
        GeometryKind::MultiPolygon | GeometryKind::Surface => ("MultiPolygon", "coordinates"),
        GeometryKind::GeometryCollection => ("GeometryCollection", "geometries"),
    };
    out.extend(format!("{{\"type\":\"{name}\",\"{key}\":").into_bytes());
    match (&geometry.parts, geometry.kind) {
        (GeometryParts::Geometries(parts), GeometryKind::GeometryCollection) => {
            append_list(parts, out, append_geometry)?;
        }
        _ => append_coordinates(geometry, out)?,
    }
    out.push(b'}');
    Ok(())
}

/// Appends the coordinates of a geometry, which is no collection.
fn append_coordinates(geometry: &Geometry, out: &mut Vec<u8>) -> Result<(), NotShown> {
    match &geometry.parts {
        GeometryParts::Vertices(vertices) if geometry.kind == GeometryKind::Point => match vertices.first() {
            Some(vertex) => append_vertex(vertex, out),
            None => {
                out.extend(b"[]");
                Ok(())
            }
        },
        GeometryParts::Vertices(vertices) => append_list(vertices, out, append_vertex),
        GeometryParts::Rings(rings) => append_list(rings, out, |ring, out| append_list(ring, out, append_vertex)),
        GeometryParts::Geometries(parts) => append_list(parts, out, append_coordinates),
    }
}

fn append_vertex(vertex: &Vertex, out: &mut Vec<u8>) -> Result<(), NotShown> {
    let coordinates = [Some(vertex.x), Some(vertex.y), vertex.z];
    let present: Vec<f64> = coordinates.into_iter().flatten().collect();
    append_list(&present, out, |coordinate, out| {
        if !coordinate.is_finite() {
            return Err(NotShown::Geometry("a coordinate that is no number"));
        }
        out.extend_from_slice(zmij::Buffer::new().format(*coordinate).as_bytes());
        Ok(())
    })
}

fn append_list<T>(
    items: &[T],
    out: &mut Vec<u8>,
    append: impl Fn(&T, &mut Vec<u8>) -> Result<(), NotShown>,
) -> Result<(), NotShown> {
    out.push(b'[');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        append(item, out)?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u32) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }

    /// Returns a geometry of this type, with these bytes after the type.
    fn wkb(kind: u32, rest: &[Vec<u8>]) -> Vec<u8> {
        [vec![1], number(kind), rest.concat()].concat()
    }

    fn places(coordinates: &[f64]) -> Vec<u8> {
        coordinates.iter().flat_map(|coordinate| coordinate.to_le_bytes()).collect()
    }

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        append(bytes, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_has_the_form_of_the_standard() {
        let point = wkb(1, &[places(&[1.5, -2.0])]);
        let line = wkb(1002, &[number(2), places(&[0.0, 0.1, 0.25, 1e300, 2.0, 3.0])]);
        let ring = [number(3), places(&[0.0, 0.0, 1.0, 0.0, 0.0, 0.0])].concat();
        let polygon = wkb(3, &[number(2), ring.clone(), ring.clone()]);
        let triangle = wkb(17, &[number(1), ring]);
        let shown = "[[0.0,0.0],[1.0,0.0],[0.0,0.0]]";
        for (bytes, expected) in [
            (point.clone(), r#"{"type":"Point","coordinates":[1.5,-2.0]}"#.to_owned()),
            (wkb(1, &[places(&[f64::NAN; 2])]), r#"{"type":"Point","coordinates":[]}"#.to_owned()),
            (line.clone(), r#"{"type":"LineString","coordinates":[[0.0,0.1,0.25],[1e+300,2.0,3.0]]}"#.to_owned()),
            (polygon.clone(), format!(r#"{{"type":"Polygon","coordinates":[{shown},{shown}]}}"#)),
            (wkb(4, &[number(1), point.clone()]), r#"{"type":"MultiPoint","coordinates":[[1.5,-2.0]]}"#.to_owned()),
            (wkb(5, &[number(0)]), r#"{"type":"MultiLineString","coordinates":[]}"#.to_owned()),
            (wkb(6, &[number(1), polygon]), format!(r#"{{"type":"MultiPolygon","coordinates":[[{shown},{shown}]]}}"#)),
            (wkb(16, &[number(1), triangle]), format!(r#"{{"type":"MultiPolygon","coordinates":[[{shown}]]}}"#)),
            (
                wkb(7, &[number(1), point]),
                r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1.5,-2.0]}]}"#.to_owned(),
            ),
        ] {
            assert_eq!(text(&bytes), expected);
        }
    }

    #[test]
    fn what_the_standard_lacks_is_refused() {
        for bytes in [wkb(8, &[number(0)]), wkb(2, &[number(1), places(&[0.0, f64::INFINITY])]), vec![7; 5]] {
            assert!(append(&bytes, &mut Vec::new()).is_err(), "{bytes:?}");
        }
    }
}
