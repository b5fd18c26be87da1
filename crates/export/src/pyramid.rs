//! Image pyramids as written by TileDB-BioImaging and TileDB-SOMA: the description of their levels in a group's metadata.
//!
//! TileDB-BioImaging's group has an array for each level, and these metadata, as JSON: `levels`, a list of their names, axes and
//! shapes; `pixel_depth`, the number of samples of a pixel that are adjacent along X in each level (a level compressed
//! as WebP has no axis of channels); `metadata`, the channels and the size of a pixel; `original_metadata`, with the
//! OME-XML of the source image. Source: TileDB-BioImaging 0.3, `converters/` and `helpers.py`.
//!
//! A multiscale image of TileDB-SOMA has `soma_level_NAME`, the shape of each level; `soma_coordinate_space`, the names of
//! the axes of space; and `soma_multiscale_image_schema`, whose `data_axis_permutation` has the number of the axis along
//! each dimension, and one number more for the channels. Source: TileDB-SOMA 2.3, `_multiscale_image.py`.

use std::cmp::Ordering;

use serde_json::Value;
use tilefs_base::json;
use tilefs_base::xml::XmlReader;
use tilefs_format::text;
use tilefs_threads::cancellation;

use crate::column::Metadatum;

/// The names of the attribute of the values: TileDB-BioImaging's and TileDB-SOMA's.
const INTENSITY: &str = "intensity";
const DATA: &str = "soma_data";

/// The `dataset_type` of the groups of TileDB-BioImaging.
const DATASET: &str = "bioimg";

/// The `soma_object_type` of those of TileDB-SOMA.
const IMAGE: &str = "SOMAMultiscaleImage";

/// The levels of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Pyramid {
    /// The name of the attribute that has the values of each level.
    pub attribute: &'static str,
    /// At least one, largest first.
    pub levels: Vec<PyramidLevel>,
    /// In order; only as many as are described.
    pub channels: Vec<Channel>,
    /// The distances of pixels along each axis.
    pub steps: Steps,
}

/// One level of a pyramid.
#[derive(Debug, Clone, PartialEq)]
pub struct PyramidLevel {
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
pub struct Steps(Vec<(char, AxisStep)>);

/// A length or, along the axis T, a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisStep {
    /// Above 0.
    pub size: f64,
    /// The unit of the distance.
    pub unit: &'static OmeUnit,
}

/// A unit in the spellings of OME-XML and OME-NGFF.
#[derive(Debug, PartialEq)]
pub struct OmeUnit {
    /// The abbreviation: `um`.
    pub symbol: &'static str,
    /// The name that OME-NGFF requires: `micrometer`.
    pub name: &'static str,
}

const fn unit(symbol: &'static str, name: &'static str) -> OmeUnit {
    OmeUnit { symbol, name }
}

/// The first is the default.
const LENGTHS: [OmeUnit; 8] = [
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
const TIMES: [OmeUnit; 7] = [
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
        Pyramid::of_bioimaging(metadata).or_else(|| Pyramid::of_soma(metadata))
    }

    fn of_bioimaging(metadata: &[Metadatum]) -> Option<Self> {
        if !text_of(metadata, "dataset_type")?.eq_ignore_ascii_case(DATASET) {
            return None;
        }
        let json = |key: &str| json_of(metadata, key);
        let depths = json("pixel_depth").unwrap_or_default();
        let mut levels: Vec<PyramidLevel> =
            json("levels")?.as_array()?.iter().map(|level| PyramidLevel::of(level, &depths)).collect::<Option<_>>()?;
        levels.sort_by_key(|level| level.number);
        if levels.is_empty() {
            return None;
        }
        let description = json("metadata").unwrap_or_default();
        let original = json("original_metadata").unwrap_or_default();
        let original = original.get("ome_metadata").and_then(Value::as_str).unwrap_or_default();
        let (channels, steps) = (channels(&description), Steps::of(&description, original));
        Some(Pyramid { attribute: INTENSITY, levels, channels, steps })
    }

    /// Sizes of pixels are not read: SOMA's coordinates of the finest level are those of its pixels.
    fn of_soma(metadata: &[Metadatum]) -> Option<Self> {
        if text_of(metadata, "soma_object_type")? != IMAGE {
            return None;
        }
        let space = json_of(metadata, "soma_coordinate_space")?;
        let letter = |axis: &Value| match axis.get("name")?.as_str()? {
            "x" | "X" => Some('X'),
            "y" | "Y" => Some('Y'),
            "z" | "Z" => Some('Z'),
            _ => None,
        };
        let mut letters = space.as_array()?.iter().map(letter).collect::<Option<Vec<char>>>()?;
        letters.push('C');
        let schema = json_of(metadata, "soma_multiscale_image_schema")?;
        let axis = |number: &Value| letters.get(usize::try_from(number.as_u64()?).ok()?);
        let axes: String = schema.get("data_axis_permutation")?.as_array()?.iter().map(axis).collect::<Option<_>>()?;
        let level = |metadatum: &Metadatum| {
            let name = metadatum.key.strip_prefix("soma_level_")?.to_owned();
            let shape = json_of(metadata, &metadatum.key)?;
            let shape: Vec<f64> = shape.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
            (shape.len() == axes.len()).then(|| PyramidLevel { number: 0, name, axes: axes.clone(), shape, samples: 1 })
        };
        let mut levels: Vec<PyramidLevel> = metadata.iter().filter_map(level).collect();
        levels.sort_by(|one, other| other.shape.partial_cmp(&one.shape).unwrap_or(Ordering::Equal));
        (0..).zip(&mut levels).for_each(|(number, level)| level.number = number);
        let (channels, steps) = (Vec::new(), Steps::default());
        (!levels.is_empty()).then_some(Pyramid { attribute: DATA, levels, channels, steps })
    }
}

fn text_of(metadata: &[Metadatum], key: &str) -> Option<String> {
    let found = metadata.iter().find(|metadatum| metadatum.key == key)?;
    text::decode(found.datatype, &found.value).map(|text| text.into_owned())
}

fn json_of(metadata: &[Metadatum], key: &str) -> Option<Value> {
    json::parse(&text_of(metadata, key)?, cancellation::check).ok()
}

impl PyramidLevel {
    fn of(json: &Value, depths: &Value) -> Option<Self> {
        let number = json.get("level")?.as_u64()?;
        let level = PyramidLevel {
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
        let pixels = XmlReader::new(original, cancellation::check).and_then(|mut reader| reader.find("Pixels"));
        let pixels = pixels.ok().flatten();
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
                let pixels = pixels.as_ref()?;
                let size = pixels.attribute(&attribute)?.parse().ok()?;
                Some((size, pixels.attribute(&format!("{attribute}Unit")).unwrap_or(usual)))
            };
            let (size, unit) = own.or_else(original)?;
            let unit = unit.replace('\u{3BC}', "µ");
            let is_it =
                |known: &&OmeUnit| known.symbol == unit || known.name == unit || known.symbol.replace('µ', "u") == unit;
            let unit = units.iter().find(is_it)?;
            (size.is_finite() && size > 0.0).then_some((axis, AxisStep { size, unit }))
        };
        Steps("TZYX".chars().filter_map(step).collect())
    }

    /// Returns the step along an axis, if known.
    pub fn along(&self, axis: char) -> Option<AxisStep> {
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
    let all = description.get("channels").and_then(|channels| channels.get(INTENSITY)?.as_array());
    all.into_iter().flatten().map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the pyramid of a group with these metadata and the `dataset_type` of a pyramid.
    fn pyramid(values: &[(&str, Value)]) -> Option<Pyramid> {
        let kind = ("dataset_type", "BIOIMG".to_owned());
        let all = values.iter().map(|(key, value)| (*key, value.to_string())).chain([kind]);
        Pyramid::of(&all.map(|(key, value)| Metadatum::text(key, value)).collect::<Vec<_>>())
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
    fn levels_of_soma_are_ordered_by_size() {
        let image = |permutation: &str, axes: &[&str]| {
            let space: Vec<Value> = axes.iter().map(|name| json!({"name": name, "unit": null})).collect();
            let all = [
                ("soma_object_type", "SOMAMultiscaleImage".to_owned()),
                ("soma_coordinate_space", json!(space).to_string()),
                ("soma_multiscale_image_schema", format!("{{\"data_axis_permutation\": {permutation}}}")),
                ("soma_level_small", "[3, 32, 48]".to_owned()),
                ("soma_level_full", "[3, 64, 96]".to_owned()),
            ];
            Pyramid::of(&all.map(|(key, value)| Metadatum::text(key, value)))
        };
        let found = image("[2, 1, 0]", &["x", "y"]).unwrap();
        let levels: Vec<_> = found.levels.iter().map(|level| (level.number, level.name.as_str())).collect();
        assert_eq!(levels, [(0, "full"), (1, "small")]);
        assert_eq!((found.attribute, found.levels[0].axes.as_str()), ("soma_data", "CYX"));
        assert_eq!(image("[2, 1, 0]", &["z", "Y"]).unwrap().levels[0].axes, "CYZ");
        for (permutation, axes) in [("[2, 1, 0]", ["x", "row"]), ("[3, 1, 0]", ["x", "y"]), ("7", ["x", "y"])] {
            assert_eq!(image(permutation, &axes), None);
        }
        // Levels of other dimensions are none.
        assert_eq!(image("[1, 0]", &["x", "y"]), None);
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
