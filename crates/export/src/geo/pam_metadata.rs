//! GDAL's metadata of a raster or band: items in domains, and ground control points.
//!
//! They are kept as GDAL wrote them, and written again as XML, in the form that its PAM files and virtual rasters share.

use tilefs_base::error::Result;
use tilefs_base::markup::escape;
use tilefs_base::xml::{XmlElement, XmlReader};

/// The rows and columns that are shown of a raster: the first of each, and the distance to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RasterWindow {
    /// The first row.
    pub row: u64,
    /// Rows from one that is shown to the next.
    pub row_step: u64,
    /// The first column.
    pub column: u64,
    /// Columns from one that is shown to the next.
    pub column_step: u64,
}

/// The domain of the coefficients of a sensor's rational polynomials.
const RATIONAL_POLYNOMIALS: &str = "RPC";

/// The domain that says where other rasters have the coordinates of each pixel.
const GEOLOCATION: &str = "GEOLOCATION";

/// The prefix of items that describe the values of all pixels.
const STATISTICS: &str = "STATISTICS_";

/// A domain of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataDomain {
    /// Empty for the default domain.
    pub name: String,
    /// The items of the domain.
    pub content: DomainContent,
}

/// The content of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainContent {
    /// Texts by key.
    Items(Vec<(String, String)>),
    /// A document: its format (`xml` or `json`), and its text as part of an XML file.
    Document {
        /// The format.
        format: String,
        /// XML between the tags of the domain.
        xml: String,
    },
}

impl MetadataDomain {
    /// Parses an element `Metadata`; `None` if the domain is empty.
    pub(crate) fn parse<'t>(reader: &mut XmlReader<'t>, element: &XmlElement<'t>) -> Result<Option<Self>> {
        let name = element.attribute("domain").unwrap_or_default().to_owned();
        let format = element.attribute("format").filter(|format| ["xml", "json"].contains(format));
        if let Some(format) = format {
            let (_, xml) = reader.source(element)?;
            let content = DomainContent::Document { format: format.to_owned(), xml: xml.to_owned() };
            return Ok((!xml.is_empty()).then_some(MetadataDomain { name, content }));
        }
        let mut items = Vec::new();
        while let Some(item) = reader.child(element)? {
            if item.name() != "MDI" {
                continue;
            }
            // Like GDAL's parser, this keeps blanks at the end.
            let value = reader.text(&item)?.trim_start().to_owned();
            if let (Some(key), false) = (item.attribute("key"), value.is_empty()) {
                items.push((key.to_owned(), value));
            }
        }
        Ok((!items.is_empty()).then_some(MetadataDomain { name, content: DomainContent::Items(items) }))
    }

    /// Returns the items; none for a document.
    pub fn items(&self) -> &[(String, String)] {
        match &self.content {
            DomainContent::Items(items) => items,
            DomainContent::Document { .. } => &[],
        }
    }

    /// Returns an item of the default domain, by its key.
    pub fn default_item<'d>(domains: &'d [MetadataDomain], key: &str) -> Option<&'d str> {
        let default = domains.iter().filter(|domain| domain.name.is_empty());
        let mut items = default.flat_map(MetadataDomain::items);
        items.find_map(|(known, value)| (known == key).then_some(value.as_str()))
    }

    /// Returns whether a tag of a TIFF can hold the domain as items.
    pub(crate) fn has_tag_form(&self) -> bool {
        matches!(self.content, DomainContent::Items(_))
            && !["IMAGE_STRUCTURE", RATIONAL_POLYNOMIALS].contains(&&*self.name)
    }

    /// Returns what holds for a window of the raster; `None` if nothing does.
    pub fn within(&self, window: RasterWindow) -> Option<Self> {
        let DomainContent::Items(items) = &self.content else { return Some(self.clone()) };
        if self.name == GEOLOCATION {
            return None;
        }
        let is_sensor = self.name == RATIONAL_POLYNOMIALS;
        let items = items.iter().filter(|(key, _)| !key.starts_with(STATISTICS)).map(|(key, value)| {
            // Pixels are numbered at their centres.
            let moved = match key.as_str() {
                "LINE_OFF" if is_sensor => moved(value, window.row, window.row_step),
                "SAMP_OFF" if is_sensor => moved(value, window.column, window.column_step),
                "LINE_SCALE" if is_sensor => moved(value, 0, window.row_step),
                "SAMP_SCALE" if is_sensor => moved(value, 0, window.column_step),
                _ => None,
            };
            (key.clone(), moved.unwrap_or_else(|| value.clone()))
        });
        let content = DomainContent::Items(items.collect());
        (content != DomainContent::Items(Vec::new())).then_some(MetadataDomain { content, ..self.clone() })
    }

    /// Returns the XML element, with this many blanks in front of it.
    pub(crate) fn element(&self, indent: usize) -> String {
        let mut text = format!("{:indent$}<Metadata", "");
        if !self.name.is_empty() {
            text += &format!(" domain=\"{}\"", escape(&self.name));
        }
        match &self.content {
            DomainContent::Document { format, xml } => text += &format!(" format=\"{format}\">{xml}"),
            DomainContent::Items(items) => {
                text += ">\n";
                for (key, value) in items {
                    text += &format!("{:indent$}  <MDI key=\"{}\">{}</MDI>\n", "", escape(key), escape(value));
                }
                text += &format!("{:indent$}", "");
            }
        }
        text + "</Metadata>\n"
    }
}

/// Returns the number of a pixel, counted from `first` in steps; `None` if it is not a number.
fn moved(number: &str, first: u64, step: u64) -> Option<String> {
    let number: f64 = number.split_whitespace().next()?.parse().ok()?;
    Some(((number - first as f64) / step.max(1) as f64).to_string())
}

/// Ground control points: pixels whose coordinates are known, and their coordinate system.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlPoints {
    /// The XML attributes of the list, among them the system's text as `Projection`.
    system: Vec<(String, String)>,
    points: Vec<ControlPoint>,
}

/// A ground control point.
#[derive(Debug, Clone, PartialEq)]
struct ControlPoint {
    /// The column and the row, counted from the upper left corner of the first pixel.
    pixel: [f64; 2],
    /// The other XML attributes: name and coordinates.
    others: Vec<(String, String)>,
    /// A remark.
    info: Option<String>,
}

impl ControlPoints {
    /// Parses an element `GCPList`; `None` if it has no points.
    pub(crate) fn parse<'t>(reader: &mut XmlReader<'t>, element: &XmlElement<'t>) -> Result<Option<Self>> {
        let attributes = |element: &XmlElement<'_>| -> Vec<(String, String)> {
            // What a prefix means is known only within the text.
            let own = element.attributes().filter(|(name, _)| !name.contains(':'));
            own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let mut points = Vec::new();
        while let Some(point) = reader.child(element)? {
            if point.name() != "GCP" {
                continue;
            }
            let mut info = None;
            while let Some(child) = reader.child(&point)? {
                if child.name() == "Info" && info.is_none() {
                    info = Some(reader.text(&child)?.trim().to_owned()).filter(|info| !info.is_empty());
                }
            }
            let number = |name: &str| point.attribute(name)?.trim().parse::<f64>().ok();
            let (Some(column), Some(row)) = (number("Pixel"), number("Line")) else { continue };
            let is_other = |(name, _): &(String, String)| !["pixel", "line"].contains(&&*name.to_lowercase());
            let others = attributes(&point).into_iter().filter(is_other).collect();
            points.push(ControlPoint { pixel: [column, row], others, info });
        }
        Ok((!points.is_empty()).then(|| ControlPoints { system: attributes(element), points }))
    }

    /// Returns the points for a window of the raster, in which the centres of pixels keep their position.
    pub fn within(mut self, window: RasterWindow) -> Self {
        let axes = [(window.column, window.column_step), (window.row, window.row_step)];
        for point in &mut self.points {
            for (place, (first, step)) in point.pixel.iter_mut().zip(axes) {
                *place = (*place - first as f64 - 0.5) / step.max(1) as f64 + 0.5;
            }
        }
        self
    }

    /// Returns the XML element.
    pub(crate) fn element(&self) -> String {
        let attributes = |all: &[(String, String)]| -> String {
            all.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape(value))).collect()
        };
        let mut text = format!("  <GCPList{}>\n", attributes(&self.system));
        for ControlPoint { pixel: [pixel, line], others, info } in &self.points {
            let info = info.as_ref().map(|info| format!("<Info>{}</Info>", escape(info))).unwrap_or_default();
            text += &format!("    <GCP{} Pixel=\"{pixel}\" Line=\"{line}\">{info}</GCP>\n", attributes(others));
        }
        text + "  </GCPList>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: RasterWindow = RasterWindow { row: 10, row_step: 2, column: 4, column_step: 1 };

    fn domain(xml: &str) -> MetadataDomain {
        parsed_domain(xml).unwrap()
    }

    fn parsed_domain(xml: &str) -> Option<MetadataDomain> {
        let mut reader = XmlReader::new(xml, || Ok(())).unwrap();
        let root = reader.root().unwrap();
        MetadataDomain::parse(&mut reader, &root).unwrap()
    }

    fn points(xml: &str) -> Option<ControlPoints> {
        let mut reader = XmlReader::new(xml, || Ok(())).unwrap();
        let root = reader.root().unwrap();
        ControlPoints::parse(&mut reader, &root).unwrap()
    }

    #[test]
    fn a_domain_is_written_as_it_was_read() {
        for xml in [
            "<Metadata>\n  <MDI key=\"a &lt;b&gt;\">x &amp; y\nz </MDI>\n</Metadata>\n",
            "<Metadata domain=\"of mine\">\n  <MDI key=\"k\">v</MDI>\n</Metadata>\n",
            "<Metadata domain=\"xml:XMP\" format=\"xml\"><a b=\"c\">&lt;</a><!-- d --></Metadata>\n",
            "<Metadata domain=\"json:a\" format=\"json\">{\"k\": \"&amp;\"}</Metadata>\n",
        ] {
            assert_eq!(domain(xml).element(0), xml);
        }
        let empty = "<Metadata><MDI key=\"k\"/></Metadata>";
        assert_eq!(parsed_domain(empty), None);
    }

    #[test]
    fn a_window_moves_sensors_and_has_no_statistics() {
        let item = |key: &str, value: &str| format!("<MDI key=\"{key}\">{value}</MDI>");
        let sensor = [("LINE_OFF", "110"), ("LINE_SCALE", "50 pixels"), ("SAMP_OFF", "5"), ("LAT_OFF", "7.5")];
        let items: String = sensor.map(|(key, value)| item(key, value)).concat();
        let moved = domain(&format!("<Metadata domain=\"RPC\">{items}</Metadata>")).within(WINDOW).unwrap();
        let values: Vec<&str> = moved.items().iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["50", "25", "1", "7.5"]);
        let items = [item("STATISTICS_MEAN", "3"), item("LINE_OFF", "3")].concat();
        let kept = domain(&format!("<Metadata>{items}</Metadata>")).within(WINDOW).unwrap();
        assert_eq!(kept.items(), [("LINE_OFF".to_owned(), "3".to_owned())]);
        assert_eq!(domain("<Metadata><MDI key=\"STATISTICS_MEAN\">3</MDI></Metadata>").within(WINDOW), None);
        assert_eq!(domain("<Metadata domain=\"GEOLOCATION\"><MDI key=\"a\">3</MDI></Metadata>").within(WINDOW), None);
    }

    #[test]
    fn control_points_keep_their_pixels() {
        let xml = "<GCPList Projection=\"a&amp;b\"><GCP Id=\"1\" Pixel=\"4.5\" Line=\"12.5\" X=\"1\" Y=\"2\" Z=\"0\"><Info>a&lt;</Info></GCP></GCPList>";
        let found = points(xml).unwrap();
        let written = found.element();
        assert!(
            written.contains("<GCPList Projection=\"a&amp;b\">")
                && written.contains("Pixel=\"4.5\" Line=\"12.5\"><Info>a&lt;</Info>")
        );
        let moved = found.within(WINDOW).element();
        assert!(moved.contains("Id=\"1\" X=\"1\" Y=\"2\" Z=\"0\" Pixel=\"0.5\" Line=\"1.5\""), "{moved}");
        assert_eq!(points("<GCPList/>"), None);
    }
}
