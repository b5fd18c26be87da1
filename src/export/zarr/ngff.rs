//! What OME-NGFF 0.5 says of a pyramid of pictures.

use serde_json::{Map, Value, json};

use crate::export::pyramid::{ATTRIBUTE, Channel, Level, Pyramid};

/// The `ome` attribute of a pyramid; `None` where the axes are in no order that NGFF allows: time, channel, and two or
/// three of space.
pub fn ome(pyramid: &Pyramid) -> Option<Value> {
    let first = pyramid.levels.first()?;
    let order: Vec<usize> = first.axes.chars().map(|axis| "TCZYX".find(axis)).collect::<Option<_>>()?;
    let has_space = first.axes.ends_with("YX");
    let is_same = |level: &Level| level.axes == first.axes && level.samples == 1;
    if !has_space || !order.is_sorted_by(|a, b| a < b) || !pyramid.levels.iter().all(is_same) {
        return None;
    }
    let axes: Vec<Value> = first.axes.chars().map(|axis| axis_of(axis, pyramid)).collect();
    let dataset = |level: &Level| {
        let scale: Vec<f64> = first
            .axes
            .chars()
            .zip(first.shape.iter().zip(&level.shape))
            .map(|(axis, (&whole, &own))| {
                let step = pyramid.steps.along(axis).map_or(1.0, |step| step.size);
                step * if own > 0.0 { whole / own } else { 1.0 }
            })
            .collect();
        let path = format!("{}/{ATTRIBUTE}", level.name);
        json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    };
    let datasets: Vec<Value> = pyramid.levels.iter().map(dataset).collect();
    let mut ome = json!({"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]});
    let channels: Option<Vec<Value>> = pyramid.channels.iter().map(channel).collect();
    if let Some(channels) = channels.filter(|channels| !channels.is_empty()) {
        ome["omero"] = json!({"channels": channels});
    }
    Some(ome)
}

fn axis_of(axis: char, pyramid: &Pyramid) -> Value {
    let kind = match axis {
        'T' => "time",
        'C' => "channel",
        _ => "space",
    };
    let mut said = json!({"name": axis.to_string(), "type": kind});
    if let Some(step) = pyramid.steps.along(axis) {
        said["unit"] = step.unit.name.into();
    }
    said
}

/// The name, colour and limits of a channel; `None` for one without a name.
fn channel(channel: &Channel) -> Option<Value> {
    let mut out = Map::new();
    out.insert("label".to_owned(), channel.name.as_deref()?.into());
    out.insert("active".to_owned(), true.into());
    if let Some([red, green, blue, _]) = channel.colour {
        out.insert("color".to_owned(), format!("{red:02X}{green:02X}{blue:02X}").into());
    }
    if let Some([least, most]) = channel.limits {
        out.insert("window".to_owned(), json!({"min": least, "max": most, "start": least, "end": most}));
    }
    Some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::column::Metadatum;
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
        ome(&Pyramid::of(&metadata)?)
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
    }
}
