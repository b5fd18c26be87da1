//! The OME-NGFF 0.5 metadata of an image pyramid.

use serde_json::{Map, Value, json};

use crate::column::{FormatResult, Unrepresentable};
use crate::pyramid::{Channel, Pyramid, PyramidLevel};

/// Returns the `ome` attribute of a pyramid, or the reason why NGFF cannot describe it.
pub fn ome(pyramid: &Pyramid) -> FormatResult<Value> {
    let [first, others @ ..] = &pyramid.levels[..] else {
        return Err(Unrepresentable::new("it has no levels"));
    };
    let all_axes = axes_with_channels(first)?;
    check_axes(&all_axes)?;
    if let Some(other) = others.iter().find(|level| level.axes != first.axes) {
        let reason = format!("the levels have different axes, {} and {}", first.axes, other.axes);
        return Err(Unrepresentable::new(reason));
    }
    if pyramid.levels.iter().any(|level| level.samples != first.samples) {
        return Err(Unrepresentable::new("the levels have different numbers of samples per pixel"));
    }
    let axes: Vec<Value> = all_axes.chars().map(|axis| axis_of(axis, pyramid)).collect();
    let dataset = |level: &PyramidLevel| {
        let scale: Vec<f64> = all_axes
            .chars()
            .map(|axis| {
                let length = |of: &PyramidLevel| {
                    let lengths = of.axes.chars().zip(&of.shape);
                    lengths.filter(|(name, _)| *name == axis).map(|(_, length)| *length).next().unwrap_or(1.0)
                };
                let (whole, own) = (length(first), length(level));
                let step = pyramid.steps.along(axis).map_or(1.0, |step| step.size);
                step * if own > 0.0 { whole / own } else { 1.0 }
            })
            .collect();
        let path = format!("{}/{}", level.name, pyramid.attribute);
        json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    };
    let datasets: Vec<Value> = pyramid.levels.iter().map(dataset).collect();
    let mut ome = json!({"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]});
    let channels: Option<Vec<Value>> = pyramid.channels.iter().map(channel).collect();
    if let Some(channels) = channels.filter(|channels| !channels.is_empty()) {
        ome["omero"] = json!({"channels": channels});
    }
    Ok(ome)
}

/// Returns the axes of a level in Zarr: with channels behind the time, if the samples of a pixel are adjacent along X.
fn axes_with_channels(level: &PyramidLevel) -> FormatResult<String> {
    let axes = level.axes.as_str();
    if level.samples == 1 {
        return Ok(axes.to_owned());
    }
    if !axes.ends_with("YX") || axes.contains('C') {
        return Err(Unrepresentable::new("the samples of its pixels are adjacent, but not along the last axis, X"));
    }
    let (time, space) = axes.split_at(usize::from(axes.starts_with('T')));
    Ok(format!("{time}C{space}"))
}

/// Checks whether NGFF allows these axes in this order: time, then channels, then two or three spatial axes, in any
/// order.
fn check_axes(axes: &str) -> FormatResult<()> {
    let rank = |axis: char| match axis {
        'T' => Some(0),
        'C' => Some(1),
        'Z' | 'Y' | 'X' => Some(2),
        _ => None,
    };
    let ranks: Option<Vec<u8>> = axes.chars().map(rank).collect();
    let is_twice = axes.char_indices().any(|(at, axis)| axes[..at].contains(axis));
    match ranks {
        Some(ranks)
            if ranks.is_sorted() && !is_twice && (2..=3).contains(&ranks.iter().filter(|&&rank| rank == 2).count()) =>
        {
            Ok(())
        }
        _ => Err(Unrepresentable::new(format!(
            "the axes are {axes}, and NGFF has them in the order of time, channels and two or three of space"
        ))),
    }
}

fn axis_of(axis: char, pyramid: &Pyramid) -> Value {
    let kind = match axis {
        'T' => "time",
        'C' => "channel",
        _ => "space",
    };
    // Viewers such as Viv know the names only in lower case.
    let mut object = json!({"name": axis.to_ascii_lowercase().to_string(), "type": kind});
    if let Some(step) = pyramid.steps.along(axis) {
        object["unit"] = step.unit.name.into();
    }
    object
}

/// Returns the name, colour and limits of a channel; `None` for one without a name.
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
    use crate::column::Metadatum;

    fn ome_of(levels: &str, xml: &str) -> FormatResult<Value> {
        let channels = json!({"channels": {"intensity": [
            {"name": "a", "color": {"red": 255, "green": 0, "blue": 10, "alpha": 255}, "min": 0.0, "max": 9.0}
        ]}});
        let all = [
            ("dataset_type", "BIOIMG".to_owned()),
            ("levels", levels.to_owned()),
            ("metadata", channels.to_string()),
            ("original_metadata", json!({"ome_metadata": xml}).to_string()),
        ];
        ome(&Pyramid::of(&all.map(|(key, value)| Metadatum::text(key, value))).unwrap())
    }

    #[test]
    fn levels_are_scales() {
        let levels = r#"[{"level": 1, "name": "l_1.tdb", "axes": "CYX", "shape": [3, 128, 150]},
            {"level": 0, "name": "l_0.tdb", "axes": "CYX", "shape": [3, 256, 300]}]"#;
        let xml =
            r#"<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25" PhysicalSizeYUnit="mm"/></Image></OME>"#;
        let ome = ome_of(levels, xml).unwrap();
        let scale = &ome["multiscales"][0];
        assert_eq!(scale["axes"][0], json!({"name": "c", "type": "channel"}));
        assert_eq!(scale["axes"][2], json!({"name": "x", "type": "space", "unit": "micrometer"}));
        assert_eq!(scale["datasets"][0]["path"], "l_0.tdb/intensity");
        assert_eq!(scale["datasets"][1]["coordinateTransformations"][0]["scale"], json!([1.0, 0.5, 1.0]));
        assert_eq!(ome["omero"]["channels"][0]["color"], "FF000A");
    }

    #[test]
    fn axes_are_in_stored_order_or_refused_with_the_reason() {
        let of = |axes: &str| {
            let shape = vec![4; axes.len()];
            ome_of(&json!([{"level": 0, "name": "a", "axes": axes, "shape": shape}]).to_string(), "no xml")
        };
        for axes in ["TCZYX", "YX", "CYX", "TXYZ", "CXY"] {
            let found = of(axes).unwrap();
            let names =
                found["multiscales"][0]["axes"].as_array().unwrap().iter().map(|axis| axis["name"].as_str().unwrap());
            assert_eq!(names.collect::<String>(), axes.to_lowercase());
        }
        for axes in ["YXC", "CTYX", "SYX", "YXT", "Y", "CYY", "", "ZYXC"] {
            assert!(of(axes).unwrap_err().0.contains(&format!("the axes are {axes},")), "{axes}");
        }
        let two = r#"[{"level": 0, "name": "a", "axes": "YX", "shape": [4, 4]},
            {"level": 1, "name": "b", "axes": "XY", "shape": [2, 2]}]"#;
        assert!(ome_of(two, "").unwrap_err().0.contains("YX and XY"));
    }
}
