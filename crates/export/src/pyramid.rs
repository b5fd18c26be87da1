//! Image pyramids as written by TileDB-BioImaging: the description of their levels in a group's metadata.
//!
//! The group has an array for each level, and these metadata, as JSON: `levels`, a list of their names, axes and
//! shapes; `pixel_depth`, the number of samples of a pixel that are adjacent along X in each level (a level compressed
//! as WebP has no axis of channels); `metadata`, the channels and the size of a pixel; `original_metadata`, with the
//! OME-XML of the source image. Source: TileDB-BioImaging 0.3, `converters/` and `helpers.py`.

use serde_json::Value;
use tilefs_format::text;

use crate::column::Metadatum;

/// The converter's name for the attribute of the values.
pub const ATTRIBUTE: &str = "intensity";

/// The `dataset_type` of its groups.
const DATASET: &str = "bioimg";

/// The levels of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Pyramid {
    /// At least one, largest first.
    pub levels: Vec<Level>,
    /// In order; only as many as are described.
    pub channels: Vec<Channel>,
    /// The distances of pixels along each axis.
    pub steps: Steps,
}

/// One level of a pyramid.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The number of the level; level 0 is the finest.
    pub number: u64,
    /// The name of the group's member.
    pub name: String,
    /// One letter for each dimension of the array: T, C, Z, Y, X.
    pub axes: String,
    /// One length per axis.
    pub shape: Vec<f64>,
    /// Number of samples of a pixel that are adjacent along X; 1 if the samples have an axis of their own.
    pub samples: u64,
}

/// The description of a channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channel {
    /// The name of the channel.
    pub name: Option<String>,
    /// Red, green, blue and opacity.
    pub colour: Option<[u8; 4]>,
    /// The least and the greatest value.
    pub limits: Option<[f64; 2]>,
}

/// The distances between values along each axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps(Vec<(char, Step)>);

/// A length or, along the axis T, a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Above 0.
    pub size: f64,
    /// The unit of the distance.
    pub unit: &'static Unit,
}

/// A unit in the spellings of OME-XML and OME-NGFF.
#[derive(Debug, PartialEq)]
pub struct Unit {
    /// The abbreviation: `um`.
    pub symbol: &'static str,
    /// The name that OME-NGFF requires: `micrometer`.
    pub name: &'static str,
}

const fn unit(symbol: &'static str, name: &'static str) -> Unit {
    Unit { symbol, name }
}

/// The first is the default.
const LENGTHS: [Unit; 8] = [
    unit("µm", "micrometer"),
    unit("nm", "nanometer"),
    unit("mm", "millimeter"),
    unit("cm", "centimeter"),
    unit("m", "meter"),
    unit("km", "kilometer"),
    unit("pm", "picometer"),
    unit("Å", "angstrom"),
];

/// The first is the default.
const TIMES: [Unit; 7] = [
    unit("s", "second"),
    unit("ms", "millisecond"),
    unit("µs", "microsecond"),
    unit("ns", "nanosecond"),
    unit("min", "minute"),
    unit("h", "hour"),
    unit("d", "day"),
];

impl Pyramid {
    /// Reads the metadata of a group; `None` if it is not a pyramid.
    pub fn of(metadata: &[Metadatum]) -> Option<Self> {
        let text = |key: &str| {
            let found = metadata.iter().find(|metadatum| metadatum.key == key)?;
            text::decode(found.datatype, &found.value)
        };
        let json = |key: &str| serde_json::from_str::<Value>(&text(key)?).ok();
        if !text("dataset_type")?.eq_ignore_ascii_case(DATASET) {
            return None;
        }
        let depths = json("pixel_depth").unwrap_or_default();
        let mut levels: Vec<Level> =
            json("levels")?.as_array()?.iter().map(|level| Level::of(level, &depths)).collect::<Option<_>>()?;
        levels.sort_by_key(|level| level.number);
        if levels.is_empty() {
            return None;
        }
        let description = json("metadata").unwrap_or_default();
        let original = json("original_metadata").unwrap_or_default();
        let original = original.get("ome_metadata").and_then(Value::as_str).unwrap_or_default();
        Some(Pyramid { levels, channels: channels(&description), steps: Steps::of(&description, original) })
    }
}

impl Level {
    fn of(json: &Value, depths: &Value) -> Option<Self> {
        let number = json.get("level")?.as_u64()?;
        let level = Level {
            number,
            name: json.get("name")?.as_str()?.to_owned(),
            axes: json.get("axes")?.as_str()?.to_owned(),
            shape: json.get("shape")?.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?,
            samples: depths.get(number.to_string()).and_then(Value::as_u64).unwrap_or(1),
        };
        (level.shape.len() == level.axes.chars().count() && level.samples > 0).then_some(level)
    }
}

impl Steps {
    /// Reads the group's own metadata; steps that these do not contain come from the OME-XML of the source image.
    fn of(description: &Value, original: &str) -> Self {
        let document = roxmltree::Document::parse(original).ok();
        let pixels = document
            .as_ref()
            .and_then(|document| document.descendants().find(|node| node.tag_name().name() == "Pixels"));
        let step = |axis: char| {
            let (key, attribute, units) = match axis {
                'T' => ("timeIncrement".to_owned(), "TimeIncrement".to_owned(), &TIMES[..]),
                _ => (format!("physicalSize{axis}"), format!("PhysicalSize{axis}"), &LENGTHS[..]),
            };
            let usual = units.first()?.symbol;
            let own = description.get(&key).and_then(Value::as_f64).map(|size| {
                let unit = description.get(format!("{key}Unit")).and_then(Value::as_str);
                (size, unit.unwrap_or(usual))
            });
            let original = || {
                let size = pixels?.attribute(attribute.as_str())?.parse().ok()?;
                Some((size, pixels?.attribute(format!("{attribute}Unit").as_str()).unwrap_or(usual)))
            };
            let (size, unit) = own.or_else(original)?;
            let unit = unit.replace('\u{3BC}', "µ");
            let is_it =
                |known: &&Unit| known.symbol == unit || known.name == unit || known.symbol.replace('µ', "u") == unit;
            let unit = units.iter().find(is_it)?;
            (size.is_finite() && size > 0.0).then_some((axis, Step { size, unit }))
        };
        Steps("TZYX".chars().filter_map(step).collect())
    }

    /// Returns the step along an axis, if known.
    pub fn along(&self, axis: char) -> Option<Step> {
        self.0.iter().find(|(known, _)| *known == axis).map(|(_, step)| *step)
    }
}

fn channels(description: &Value) -> Vec<Channel> {
    let channel = |channel: &Value| {
        let part = |name: &str| u8::try_from(channel.get("color")?.get(name)?.as_u64()?).ok();
        let colour = || Some([part("red")?, part("green")?, part("blue")?, part("alpha").unwrap_or(u8::MAX)]);
        let limit = |name: &str| channel.get(name).and_then(Value::as_f64);
        Channel {
            name: channel.get("name").and_then(Value::as_str).map(str::to_owned),
            colour: colour(),
            limits: limit("min").zip(limit("max")).map(|(least, most)| [least, most]),
        }
    };
    let all = description.get("channels").and_then(|channels| channels.get(ATTRIBUTE)?.as_array());
    all.into_iter().flatten().map(channel).collect()
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;

    use super::*;
    use serde_json::json;

    /// Returns the pyramid of a group with these metadata and the `dataset_type` of a pyramid.
    fn pyramid(values: &[(&str, Value)]) -> Option<Pyramid> {
        let kind = ("dataset_type", "BIOIMG".to_owned());
        let all = values.iter().map(|(key, value)| (*key, value.to_string())).chain([kind]);
        let metadatum = |(key, value): (&str, String)| Metadatum {
            key: key.to_owned(),
            datatype: Datatype::StringUtf8,
            value: value.into_bytes(),
        };
        Pyramid::of(&all.map(metadatum).collect::<Vec<_>>())
    }

    fn levels() -> Value {
        json!([
            {"level": 1, "name": "l_1.tdb", "axes": "YX", "shape": [2, 9]},
            {"level": 0, "name": "l_0.tdb", "axes": "YX", "shape": [4, 18]},
        ])
    }

    #[test]
    fn levels_are_ordered_and_have_samples() {
        let found = pyramid(&[("levels", levels()), ("pixel_depth", json!({"0": 3, "1": 1}))]).unwrap();
        let levels: Vec<_> = found.levels.iter().map(|level| (level.name.as_str(), level.samples)).collect();
        assert_eq!(levels, [("l_0.tdb", 3), ("l_1.tdb", 1)]);
        assert!(found.channels.is_empty() && found.steps == Steps::default());
    }

    #[test]
    fn steps_of_the_group_take_precedence() {
        let own = json!({"physicalSizeX": 0.5, "physicalSizeXUnit": "μm", "timeIncrement": 2, "physicalSizeZ": 0});
        let xml = r#"<OME><Image><Pixels PhysicalSizeX="9" PhysicalSizeY="0.25" PhysicalSizeYUnit="mm"
            PhysicalSizeZ="1" PhysicalSizeZUnit="pixel"/></Image></OME>"#;
        let values = [("levels", levels()), ("metadata", own), ("original_metadata", json!({"ome_metadata": xml}))];
        let steps = pyramid(&values).unwrap().steps;
        let step = |axis| steps.along(axis).map(|step| (step.size, step.unit.symbol, step.unit.name));
        assert_eq!(step('X'), Some((0.5, "µm", "micrometer")));
        assert_eq!(step('Y'), Some((0.25, "mm", "millimeter")));
        assert_eq!(step('T'), Some((2.0, "s", "second")));
        assert_eq!(step('Z'), None);
        let only = [("levels", levels()), ("original_metadata", json!({"ome_metadata": xml}))];
        assert_eq!(pyramid(&only).unwrap().steps.along('X').map(|step| step.size), Some(9.0));
    }

    #[test]
    fn other_groups_are_rejected() {
        assert!(pyramid(&[]).is_none());
        for levels in [json!("no list"), json!([]), json!([{"level": 0, "name": "a", "axes": "YX", "shape": [4]}])] {
            assert!(pyramid(&[("levels", levels)]).is_none());
        }
        assert!(Pyramid::of(&[]).is_none());
    }
}
