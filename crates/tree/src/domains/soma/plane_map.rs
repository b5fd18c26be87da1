//! Affine maps of the plane, as TileDB-SOMA writes the transformations from a scene to what lies in it, and as
//! SpatialData reads those from an element to its scene.

use serde_json::{Value, json};
use tilefs_base::json;
use tilefs_threads::cancellation;

/// An affine map of the plane: for x and for y, the factors of x and y, and what is added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaneMap([[f64; 3]; 2]);

impl PlaneMap {
    pub const IDENTITY: PlaneMap = PlaneMap([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);

    /// Parses a transformation of TileDB-SOMA between two spaces with these axes; `None` if it is none.
    pub fn of_soma(text: &str, from: &[String], to: &[String]) -> Option<Self> {
        let stored: Value = json::parse(text, cancellation::check).ok()?;
        let transform = stored.get("transform")?;
        let has_axes = |key: &str, axes: &[String]| {
            let names = transform.get(key).and_then(Value::as_array);
            names.is_some_and(|names| names.iter().map(Value::as_str).eq(axes.iter().map(|axis| Some(axis.as_str()))))
        };
        if !has_axes("input_axes", from) || !has_axes("output_axes", to) {
            return None;
        }
        let scale = |x: f64, y: f64| PlaneMap([[x, 0.0, 0.0], [0.0, y, 0.0]]);
        match stored.get("transform_type")?.as_str()? {
            "IdentityTransform" => Some(Self::IDENTITY),
            "UniformScaleTransform" => transform.get("scale")?.as_f64().map(|factor| scale(factor, factor)),
            "ScaleTransform" => match numbers(transform.get("scale_factors")?)?[..] {
                [x, y] => Some(scale(x, y)),
                _ => None,
            },
            "AffineTransform" => {
                let rows: Vec<Vec<f64>> =
                    transform.get("matrix")?.as_array()?.iter().map(numbers).collect::<Option<_>>()?;
                let [x, y, _] = rows.as_slice() else { return None };
                Some(PlaneMap([x.as_slice().try_into().ok()?, y.as_slice().try_into().ok()?]))
            }
            _ => None,
        }
    }

    /// Returns the map in the other direction, if there is one.
    pub fn inverse(&self) -> Option<Self> {
        let PlaneMap([[a, b, c], [d, e, f]]) = *self;
        let area = a * e - b * d;
        let rows = [[e, -b, b * f - c * e], [-d, a, c * d - a * f]].map(|row| row.map(|number| number / area));
        rows.iter().flatten().all(|number| number.is_finite()).then_some(PlaneMap(rows))
    }

    /// Returns the map as SpatialData's metadata of an element with these axes, of which each is x, y or another one that
    /// stays as it is; `space` is the name of the space to which it leads.
    pub fn to_spatialdata(self, axes: &[&str], space: &str) -> Value {
        let row = |to: &&str| -> Vec<f64> {
            let own = match *to {
                "x" => self.0[0],
                "y" => self.0[1],
                _ => return axes.iter().map(|from| f64::from(u8::from(from == to))).chain([0.0]).collect(),
            };
            let factor = |from: &&str| match *from {
                "x" => own[0],
                "y" => own[1],
                _ => 0.0,
            };
            axes.iter().map(factor).chain([own[2]]).collect()
        };
        let matrix: Vec<Vec<f64>> = axes.iter().map(row).collect();
        let kind = |axis: &str| if axis == "c" { "channel" } else { "space" };
        let described: Vec<Value> =
            axes.iter().map(|axis| json!({"name": axis, "type": kind(axis), "unit": "unit"})).collect();
        json!({
            "type": "affine",
            "affine": matrix,
            "input": {"name": axes.concat(), "axes": described},
            "output": {"name": space, "axes": described},
        })
    }
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kind: &str, more: &str) -> Option<PlaneMap> {
        let axes = r#""input_axes": ["a", "b"], "output_axes": ["x", "y"]"#;
        let text = format!(r#"{{"transform_type": "{kind}", "transform": {{{axes}{more}}}}}"#);
        PlaneMap::of_soma(&text, &["a".to_owned(), "b".to_owned()], &["x".to_owned(), "y".to_owned()])
    }

    #[test]
    fn every_transformation_of_soma_has_its_inverse() {
        let scale = |x, y| Some(PlaneMap([[x, 0.0, 0.0], [0.0, y, 0.0]]));
        assert_eq!(map("IdentityTransform", ""), Some(PlaneMap::IDENTITY));
        assert_eq!(map("UniformScaleTransform", r#", "scale": 0.5"#), scale(0.5, 0.5));
        assert_eq!(map("ScaleTransform", r#", "scale_factors": [0.5, 4.0]"#), scale(0.5, 4.0));
        assert_eq!(map("ScaleTransform", r#", "scale_factors": [0.5, 4.0]"#).unwrap().inverse(), scale(2.0, 0.25));
        let affine = map("AffineTransform", r#", "matrix": [[0, 2, 5], [-1, 0, 7], [0, 0, 1]]"#).unwrap();
        assert_eq!(affine.inverse(), Some(PlaneMap([[0.0, -1.0, 7.0], [0.5, 0.0, -2.5]])));
        assert_eq!(map("ScaleTransform", r#", "scale_factors": [0.0, 4.0]"#).unwrap().inverse(), None);
    }

    #[test]
    fn other_texts_and_other_axes_are_no_transformation() {
        assert_eq!(map("Rotation", ""), None);
        assert_eq!(map("ScaleTransform", r#", "scale_factors": [1, 2, 3]"#), None);
        assert_eq!(map("AffineTransform", r#", "matrix": [[1, 2], [3, 4]]"#), None);
        let [a, b] = [["a".to_owned(), "b".to_owned()], ["b".to_owned(), "a".to_owned()]];
        let text = r#"{"transform_type": "IdentityTransform", "transform": {"input_axes": ["a", "b"], "output_axes": ["a", "b"]}}"#;
        assert!(PlaneMap::of_soma(text, &a, &a).is_some() && PlaneMap::of_soma(text, &a, &b).is_none());
        assert_eq!(PlaneMap::of_soma("{", &a, &a), None);
    }

    #[test]
    fn channels_stay_as_they_are() {
        let map = PlaneMap([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let found = map.to_spatialdata(&["c", "y", "x"], "scene");
        assert_eq!(found["affine"], json!([[1.0, 0.0, 0.0, 0.0], [0.0, 5.0, 4.0, 6.0], [0.0, 2.0, 1.0, 3.0]]));
        assert_eq!((&found["input"]["name"], &found["output"]["name"]), (&json!("cyx"), &json!("scene")));
    }
}
