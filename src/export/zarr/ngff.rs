//! Pyramids of pictures, as OME-NGFF 0.5 has them: what a group says of its levels.
//!
//! TileDB-BioImaging writes a group of arrays, one for each level, and into the group's metadata under `levels` a JSON list
//! of their names, axes and shapes, under `metadata` the channels, and under `original_metadata` the OME-XML of the picture
//! that it was made from.

use serde_json::{Map, Value, json};

use crate::export::column::Metadatum;
use crate::format::text;

/// What the converter calls the attribute of the values, and its `dataset_type`.
const ATTRIBUTE: &str = "intensity";
const DATASET: &str = "bioimg";

/// The `ome` attribute of a pyramid; `None` of other groups, and where the axes are in no order that NGFF allows: time,
/// channel, and two or three of space.
pub fn ome(metadata: &[Metadatum]) -> Option<Value> {
    let text = |key: &str| {
        let found = metadata.iter().find(|metadatum| metadatum.key == key)?;
        text::decode(found.datatype, &found.value)
    };
    let json = |key: &str| serde_json::from_str::<Value>(&text(key)?).ok();
    if !text("dataset_type")?.eq_ignore_ascii_case(DATASET) {
        return None;
    }
    let mut levels = json("levels")?.as_array()?.iter().map(Level::of).collect::<Option<Vec<_>>>()?;
    levels.sort_by_key(|level| level.number);
    let first = levels.first()?;
    let order: Vec<usize> = first.axes.chars().map(|axis| "TCZYX".find(axis)).collect::<Option<_>>()?;
    let has_space = first.axes.ends_with("YX");
    if !has_space || !order.is_sorted_by(|a, b| a < b) || levels.iter().any(|level| level.axes != first.axes) {
        return None;
    }
    let sizes = json("original_metadata").and_then(|said| said.get("ome_metadata")?.as_str().map(PixelSizes::of));
    let sizes = sizes.unwrap_or_default();
    let axes: Vec<Value> = first.axes.chars().map(|axis| axis_of(axis, &sizes)).collect();
    let dataset = |level: &Level| {
        let scale: Vec<f64> = first
            .axes
            .chars()
            .zip(first.shape.iter().zip(&level.shape))
            .map(|(axis, (&whole, &own))| sizes.of_axis(axis) * if own > 0.0 { whole / own } else { 1.0 })
            .collect();
        let path = format!("{}/{ATTRIBUTE}", level.name);
        json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    };
    let datasets: Vec<Value> = levels.iter().map(dataset).collect();
    let mut ome = json!({"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]});
    if let Some(channels) = json("metadata").as_ref().and_then(channels) {
        ome["omero"] = json!({"channels": channels});
    }
    Some(ome)
}

/// One level of a pyramid.
struct Level {
    number: u64,
    name: String,
    axes: String,
    shape: Vec<f64>,
}

impl Level {
    fn of(json: &Value) -> Option<Self> {
        let level = Level {
            number: json.get("level")?.as_u64()?,
            name: json.get("name")?.as_str()?.to_owned(),
            axes: json.get("axes")?.as_str()?.to_owned(),
            shape: json.get("shape")?.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?,
        };
        (level.shape.len() == level.axes.chars().count()).then_some(level)
    }
}

fn axis_of(axis: char, sizes: &PixelSizes) -> Value {
    let kind = match axis {
        'T' => "time",
        'C' => "channel",
        _ => "space",
    };
    let mut said = json!({"name": axis.to_string(), "type": kind});
    if let Some((_, unit)) = sizes.0.iter().find(|(known, _)| *known == axis).map(|(_, size)| size) {
        said["unit"] = unit.as_str().into();
    }
    said
}

/// How large pixels are along an axis, in a unit as NGFF writes it.
#[derive(Default)]
struct PixelSizes(Vec<(char, (f64, String))>);

impl PixelSizes {
    /// From OME-XML; what it does not say is not known.
    fn of(xml: &str) -> Self {
        let Ok(document) = roxmltree::Document::parse(xml) else { return PixelSizes::default() };
        let Some(pixels) = document.descendants().find(|node| node.tag_name().name() == "Pixels") else {
            return PixelSizes::default();
        };
        let size = |axis: char| {
            let size: f64 = pixels.attribute(format!("PhysicalSize{axis}").as_str())?.parse().ok()?;
            let unit = match pixels.attribute(format!("PhysicalSize{axis}Unit").as_str()).unwrap_or("µm") {
                "µm" | "μm" | "um" => "micrometer",
                "nm" => "nanometer",
                "mm" => "millimeter",
                "cm" => "centimeter",
                "m" => "meter",
                _ => return None,
            };
            (size.is_finite() && size > 0.0).then(|| (axis, (size, unit.to_owned())))
        };
        PixelSizes("ZYX".chars().filter_map(size).collect())
    }

    fn of_axis(&self, axis: char) -> f64 {
        self.0.iter().find(|(known, _)| *known == axis).map_or(1.0, |(_, (size, _))| *size)
    }
}

/// The names, colours and limits of the channels.
fn channels(said: &Value) -> Option<Vec<Value>> {
    let channels = said.get("channels")?.get(ATTRIBUTE)?.as_array()?;
    let channel = |channel: &Value| {
        let mut out = Map::new();
        out.insert("label".to_owned(), channel.get("name")?.clone());
        out.insert("active".to_owned(), true.into());
        let part = |colour: &str| channel.get("color")?.get(colour)?.as_u64().filter(|&part| part < 256);
        if let (Some(red), Some(green), Some(blue)) = (part("red"), part("green"), part("blue")) {
            out.insert("color".to_owned(), format!("{red:02X}{green:02X}{blue:02X}").into());
        }
        if let (Some(least), Some(most)) = (channel.get("min"), channel.get("max")) {
            out.insert("window".to_owned(), json!({"min": least, "max": most, "start": least, "end": most}));
        }
        Some(Value::Object(out))
    };
    channels.iter().map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::datatype::Datatype;

    fn said(levels: &str, xml: &str) -> Option<Value> {
        let channels = json!({"channels": {"intensity": [
            {"name": "a", "color": {"red": 255, "green": 0, "blue": 10, "alpha": 255}, "min": 0.0, "max": 9.0}
        ]}});
        let all = [
            ("dataset_type", "BIOIMG".to_owned()),
            ("levels", levels.to_owned()),
            ("metadata", channels.to_string()),
            ("original_metadata", json!({"ome_metadata": xml}).to_string()),
        ];
        let metadata = all.map(|(key, value)| Metadatum {
            key: key.to_owned(),
            datatype: Datatype::StringUtf8,
            value: value.into_bytes(),
        });
        ome(&metadata)
    }

    #[test]
    fn levels_are_scales() {
        let levels = r#"[{"level": 1, "name": "l_1.tdb", "axes": "CYX", "shape": [3, 128, 150]},
            {"level": 0, "name": "l_0.tdb", "axes": "CYX", "shape": [3, 256, 300]}]"#;
        let xml =
            r#"<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25" PhysicalSizeYUnit="mm"/></Image></OME>"#;
        let ome = said(levels, xml).unwrap();
        let scale = &ome["multiscales"][0];
        assert_eq!(scale["axes"][0], json!({"name": "C", "type": "channel"}));
        assert_eq!(scale["axes"][2], json!({"name": "X", "type": "space", "unit": "micrometer"}));
        assert_eq!(scale["datasets"][0]["path"], "l_0.tdb/intensity");
        assert_eq!(scale["datasets"][1]["coordinateTransformations"][0]["scale"], json!([1.0, 0.5, 1.0]));
        assert_eq!(ome["omero"]["channels"][0]["color"], "FF000A");
    }

    #[test]
    fn other_orders_and_groups_are_none() {
        let of = |axes: &str| {
            let shape = vec![4; axes.len()];
            said(&json!([{"level": 0, "name": "a", "axes": axes, "shape": shape}]).to_string(), "no xml")
        };
        assert!(of("TCZYX").is_some() && of("YX").is_some());
        for axes in ["YXC", "CTYX", "CXY", "SYX", "Y", ""] {
            assert!(of(axes).is_none(), "{axes}");
        }
        assert!(said("nonsense", "").is_none());
        assert!(ome(&[]).is_none());
    }
}
