//! OME-XML: the description of the planes of a pyramid's directories.
//!
//! Source: the OME data model of 2016-06 (`ome.xsd`), and its use in OME-TIFF.

use std::fmt::Write;

use tilefs_base::markup::escape;
use tilefs_format::datatype::Datatype;

use crate::pyramid::{Channel, Steps};

const NAMESPACE: &str = "http://www.openmicroscopy.org/Schemas/OME/2016-06";

/// The image that the planes form.
pub struct OmeImage<'a> {
    pub name: &'a str,
    /// The axes along which planes vary, fastest first: some of C, Z, T.
    pub order: Vec<char>,
    /// Lengths by axis: those of X and Y, and others that are not 1.
    pub lengths: Vec<(char, u64)>,
    /// Number of adjacent bands of a plane, which are the channels.
    pub samples: u64,
    pub kind: &'static str,
    pub channels: &'a [Channel],
    pub steps: &'a Steps,
    pub planes: u64,
}

/// Returns OME's name of a type; `None` for types that it does not support.
pub fn kind(datatype: Datatype) -> Option<&'static str> {
    Some(match datatype {
        Datatype::Int8 => "int8",
        Datatype::Int16 => "int16",
        Datatype::Int32 => "int32",
        Datatype::UInt8 => "uint8",
        Datatype::UInt16 => "uint16",
        Datatype::UInt32 => "uint32",
        Datatype::Float32 => "float",
        Datatype::Float64 => "double",
        _ => return None,
    })
}

impl OmeImage<'_> {
    fn length(&self, axis: char) -> u64 {
        self.lengths.iter().find(|(known, _)| *known == axis).map_or(1, |(_, length)| *length)
    }

    /// Returns the text for the tag ImageDescription.
    pub fn xml(&self) -> String {
        let rest = "CZT".chars().filter(|axis| !self.order.contains(axis));
        // Adjacent bands vary faster than all planes.
        let (first, behind): (Vec<char>, Vec<char>) = rest.partition(|&axis| axis == 'C' && self.samples > 1);
        let order: String = first.iter().chain(&self.order).chain(&behind).collect();
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OME xmlns=\"{NAMESPACE}\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{NAMESPACE} {NAMESPACE}/ome.xsd\" Creator=\"tilefs {}\">\
             <Image ID=\"Image:0\" Name=\"{}\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XY{order}\" Type=\"{}\" \
             BigEndian=\"false\" Interleaved=\"{}\"",
            env!("CARGO_PKG_VERSION"),
            escape(self.name),
            self.kind,
            self.samples > 1,
        );
        // Writing to a string cannot fail.
        for axis in "XYZCT".chars() {
            let _ = write!(text, " Size{axis}=\"{}\"", self.length(axis));
        }
        for axis in "XYZ".chars() {
            if let Some(step) = self.steps.along(axis) {
                let (size, unit) = (step.size, step.unit.symbol);
                let _ = write!(text, " PhysicalSize{axis}=\"{size}\" PhysicalSize{axis}Unit=\"{unit}\"");
            }
        }
        if let Some(step) = self.steps.along('T') {
            let _ = write!(text, " TimeIncrement=\"{}\" TimeIncrementUnit=\"{}\"", step.size, step.unit.symbol);
        }
        text += ">";
        self.channels(&mut text);
        let _ = write!(text, "<TiffData IFD=\"0\" PlaneCount=\"{}\"/></Pixels></Image></OME>", self.planes);
        text
    }

    /// Writes one element for each channel; for adjacent bands, one for all.
    fn channels(&self, text: &mut String) {
        for number in 0..self.length('C') / self.samples.max(1) {
            let _ = write!(text, "<Channel ID=\"Channel:0:{number}\" SamplesPerPixel=\"{}\"", self.samples);
            let channel =
                self.channels.get(usize::try_from(number).unwrap_or(usize::MAX)).filter(|_| self.samples == 1);
            if let Some(name) = channel.and_then(|channel| channel.name.as_deref()) {
                let _ = write!(text, " Name=\"{}\"", escape(name));
            }
            if let Some(colour) = channel.and_then(|channel| channel.colour) {
                let _ = write!(text, " Color=\"{}\"", i32::from_be_bytes(colour));
            }
            *text += "/>";
        }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_base::xml::XmlReader;

    use super::*;

    fn image<'a>(order: &str, samples: u64, channels: &'a [Channel], steps: &'a Steps) -> OmeImage<'a> {
        OmeImage {
            name: "a <b>",
            order: order.chars().collect(),
            lengths: vec![('X', 5), ('Y', 4), ('C', 3), ('T', 2)],
            samples,
            kind: "uint8",
            channels,
            steps,
            planes: 6 / samples,
        }
    }

    #[test]
    fn order_has_all_axes_and_begins_with_adjacent_samples() {
        let steps = Steps::default();
        for (order, samples, expected) in [("CT", 1, "XYCTZ"), ("TC", 1, "XYTCZ"), ("T", 3, "XYCTZ"), ("", 1, "XYCZT")]
        {
            let text = image(order, samples, &[], &steps).xml();
            assert!(text.contains(&format!("DimensionOrder=\"{expected}\"")), "{order}: {text}");
            assert_eq!(text.matches("<Channel ").count() as u64, 3 / samples);
        }
    }

    #[test]
    fn the_text_is_xml_with_names_and_colours() {
        let named = Channel { name: Some("\"µ\" & \u{1}".to_owned()), colour: Some([255, 0, 0, 255]), limits: None };
        let text = image("CT", 1, &[named], &Steps::default()).xml();
        let found = |name: &str| XmlReader::new(&text, || Ok(())).unwrap().find(name).unwrap().unwrap();
        let mut all = XmlReader::new(&text, || Ok(())).unwrap();
        all.root().and_then(|_| all.finish()).unwrap();
        assert_eq!(found("Image").attribute("Name"), Some("a <b>"));
        assert_eq!(found("Channel").attribute("Name"), Some("\"µ\" &  "));
        assert_eq!(found("Channel").attribute("Color"), Some("-16776961"));
        assert_eq!(found("Pixels").attribute("SizeZ"), Some("1"));
        assert_eq!(found("TiffData").attribute("PlaneCount"), Some("6"));
        assert!(text.ends_with("OME>"));
    }
}
