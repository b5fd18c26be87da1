//! GDAL's persistent auxiliary metadata (PAM): the XML text in which its TileDB driver describes a raster, under the
//! array's metadata key `_gdal` or, before TileDB 1.7, in a file `NAME.tdb.aux.xml` in the array's folder.
//!
//! The elements are those that GDAL's `GDALPamDataset` and `GDALPamRasterBand` write. The driver adds the size of the
//! raster and the order of its axes as items of the domain `IMAGE_STRUCTURE`, and a `Subdataset` for each attribute
//! besides the main one. Memory and time are bounded by the length of the text.

use std::borrow::Cow;

use roxmltree::{Document, Node};
use tilefs_format::datatype::Datatype;

use crate::geo::georeference::Georeference;
use crate::geo::pam_metadata::{ControlPoints, MetadataDomain};
use crate::number;
use crate::xml::{attribute, text};

/// Maximum number of bands whose settings are read; GDAL supports no more.
const MAX_BANDS: usize = 65_536;

/// The beginning of the root element.
const ROOT: &str = "<PAMDataset";

/// GDAL's description of a raster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pam {
    /// The position of the raster in its coordinate reference system, if it is known.
    pub place: Option<Georeference>,
    /// Number of columns of the raster; the array's columns are rounded up to whole tiles.
    pub samples: Option<u64>,
    /// Number of rows of the raster.
    pub lines: Option<u64>,
    /// The metadata of the raster, except for what describes how the array stores it.
    pub metadata: Vec<MetadataDomain>,
    /// Pixels whose coordinates are known.
    pub control_points: Option<ControlPoints>,
    /// Whether each pixel is a complex number, stored as a pair of values.
    pub is_complex: Option<bool>,
    /// Starts with band 1; bands without a description are empty.
    pub bands: Vec<Band>,
    /// By attribute name.
    subdatasets: Vec<(String, Pam)>,
}

/// The description of one band. Texts are as GDAL wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Band {
    /// The name of the band.
    pub description: Option<String>,
    /// A number, or `nan`.
    pub no_data: Option<String>,
    /// The unit of the values.
    pub unit: Option<String>,
    /// A value means this plus [`scale`](Self::scale) times what is stored.
    pub offset: Option<f64>,
    /// The factor of stored values.
    pub scale: Option<f64>,
    /// GDAL's name of a colour: `Gray`, `Red`, `Palette`.
    pub colour: Option<String>,
    /// The colours of a palette: red, green, blue and alpha.
    pub palette: Vec<[i16; 4]>,
    /// The meanings of the values 0, 1 and so on.
    pub categories: Vec<String>,
    /// The metadata of the band.
    pub metadata: Vec<MetadataDomain>,
    /// GDAL's table of attributes of values, as an XML element.
    pub attribute_table: Option<String>,
    /// Histograms, and other XML elements that describe the values of all pixels.
    pub statistics: Vec<String>,
}

impl Pam {
    /// Parses the XML text; `None` if it is not PAM.
    pub fn parse(xml: &str) -> Option<Self> {
        // Writers may have included a final NUL.
        let xml = with_prefixes(xml.trim_end_matches('\0'));
        let document = Document::parse(&xml).ok()?;
        let root = document.root_element();
        root.has_tag_name("PAMDataset").then(|| Pam::of(root, document.input_text(), true))
    }

    fn of(dataset: Node<'_, '_>, source: &str, is_main: bool) -> Self {
        let mut pam = Pam { place: place(dataset), ..Pam::default() };
        for child in dataset.children() {
            match child.tag_name().name() {
                "Metadata" if attribute(child, "domain").as_deref() == Some("IMAGE_STRUCTURE") => {
                    for item in child.children().filter(|item| item.has_tag_name("MDI")) {
                        let size = || text(item)?.parse().ok().filter(|&size: &u64| size > 0);
                        match attribute(item, "key").as_deref() {
                            Some("X_SIZE") => pam.samples = size(),
                            Some("Y_SIZE") => pam.lines = size(),
                            Some("DATA_TYPE") => pam.is_complex = text(item).map(|name| is_complex(&name)),
                            _ => {}
                        }
                    }
                }
                "PAMRasterBand" => {
                    let number = attribute(child, "band").and_then(|number| number.parse::<usize>().ok());
                    let Some(place) = number.unwrap_or(pam.bands.len() + 1).checked_sub(1) else { continue };
                    if place < MAX_BANDS {
                        pam.bands.resize(pam.bands.len().max(place + 1), Band::default());
                        pam.bands[place] = Band::of(child, source);
                    }
                }
                "Subdataset" if is_main => {
                    let inner = child.children().find(|inner| inner.has_tag_name("PAMDataset"));
                    if let (Some(name), Some(inner)) = (attribute(child, "name"), inner) {
                        pam.subdatasets.push((name, Pam::of(inner, source, false)));
                    }
                }
                // The names of subdatasets are those in the array.
                "Metadata" if attribute(child, "domain").as_deref() != Some("SUBDATASETS") => {
                    pam.metadata.extend(MetadataDomain::parse(child, source));
                }
                "GCPList" => pam.control_points = ControlPoints::parse(child),
                _ => {}
            }
        }
        pam
    }

    /// Returns the description of the array's attribute `name`. `is_only`: it is the array's only attribute.
    ///
    /// The driver writes the bands of a raster into one attribute, or into one attribute each (`NAME_1`, `NAME_2`). In
    /// the latter case, `is_flat`: the array has no axis of bands. All rasters of an array have the same size and
    /// position.
    pub fn of_attribute(&self, name: &str, is_only: bool, is_flat: bool) -> Pam {
        let numbered = name.rsplit_once('_').and_then(|(stem, number)| Some((stem, number.parse::<usize>().ok()?)));
        let subdataset = |wanted: &str| self.subdatasets.iter().find(|(name, _)| name == wanted).map(|(_, pam)| pam);
        let (own, number) = match (subdataset(name), numbered) {
            (Some(own), _) => (Some(own), None),
            (None, Some((stem, number))) if is_flat => match subdataset(stem) {
                Some(own) => (Some(own), Some(number)),
                None => (Some(self), Some(number).filter(|_| !is_only || stem == MAIN_ATTRIBUTE)),
            },
            _ => (Some(self).filter(|_| is_only || name == MAIN_ATTRIBUTE), None),
        };
        let bands = own.map_or(&[][..], |own| &own.bands);
        let bands = match number {
            Some(number) => number.checked_sub(1).and_then(|place| bands.get(place)).cloned().into_iter().collect(),
            None => bands.to_vec(),
        };
        let metadata = own.map(|own| own.metadata.clone()).unwrap_or_default();
        let own = own.unwrap_or(self);
        Pam {
            metadata,
            control_points: own.control_points.clone().or_else(|| self.control_points.clone()),
            place: own.place.clone().or_else(|| self.place.clone()),
            samples: own.samples.or(self.samples),
            lines: own.lines.or(self.lines),
            is_complex: own.is_complex.or(self.is_complex),
            bands,
            subdatasets: Vec::new(),
        }
    }
}

/// The driver's name for the attribute of a raster's values.
const MAIN_ATTRIBUTE: &str = "TDB_VALUES";

impl Band {
    fn of(element: Node<'_, '_>, source: &str) -> Self {
        let mut band = Band::default();
        let number = |child| text(child)?.parse().ok().filter(|number: &f64| number.is_finite());
        for child in element.children() {
            match child.tag_name().name() {
                "Description" => band.description = text(child),
                "NoDataValue" => band.no_data = exact_number(child).or_else(|| Some(number_word(&text(child)?))),
                "UnitType" => band.unit = text(child),
                "Offset" => band.offset = number(child),
                "Scale" => band.scale = number(child),
                "ColorInterp" => band.colour = text(child),
                "ColorTable" => {
                    let part = |entry, name| attribute(entry, name).and_then(|part| part.parse::<i16>().ok());
                    let entries = child.children().filter(|entry| entry.has_tag_name("Entry"));
                    band.palette = entries
                        .map(|entry| {
                            let [red, green, blue] = ["c1", "c2", "c3"].map(|name| part(entry, name).unwrap_or(0));
                            [red, green, blue, part(entry, "c4").unwrap_or(255)]
                        })
                        .collect();
                }
                "CategoryNames" => {
                    let names = child.children().filter(|name| name.has_tag_name("Category"));
                    band.categories = names.map(|name| text(name).unwrap_or_default()).collect();
                }
                "Metadata" => band.metadata.extend(MetadataDomain::parse(child, source)),
                "GDALRasterAttributeTable" => {
                    band.attribute_table = source.get(child.range()).map(str::to_owned);
                }
                "Histograms" | "Minimum" | "Maximum" | "Mean" | "StandardDeviation" => {
                    band.statistics.extend(source.get(child.range()).map(str::to_owned));
                }
                _ => {}
            }
        }
        band
    }
}

/// Returns whether GDAL's name of a type, or its number, is that of complex numbers.
fn is_complex(datatype: &str) -> bool {
    datatype.starts_with("CInt") || datatype.starts_with("CFloat") || ["8", "9", "10", "11"].contains(&datatype)
}

/// Maximum number of prefixes that a text may use without declaring them.
const MAX_PREFIXES: usize = 8;

/// Returns the text with a declaration of each prefix that it uses. The driver declares none for its own element
/// `tiledb:OverviewCount`, and GDAL accepts any in documents within the metadata.
fn with_prefixes(xml: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(xml);
    for _ in 0..MAX_PREFIXES {
        let Err(roxmltree::Error::UnknownNamespace(prefix, _)) = Document::parse(&text) else { break };
        let Some((before, after)) = text.split_once(ROOT) else { break };
        text = Cow::Owned(format!("{before}{ROOT} xmlns:{prefix}=\"{prefix}\"{after}"));
    }
    text
}

/// Unifies the spellings of not-a-number: GDAL also writes `-nan` and `1.#QNAN`.
fn number_word(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if lower.contains("nan") { "nan".to_owned() } else { lower }
}

/// Returns a number whose bytes GDAL wrote too, because its text has fewer digits than the number.
fn exact_number(element: Node<'_, '_>) -> Option<String> {
    let digits = attribute(element, "le_hex_equiv")?;
    let bytes = u64::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 16)?.to_be_bytes();
    number::text(Datatype::Float64, &bytes).map(|text| number_word(&text))
}

/// Returns the transform of a raster, if it has a finite one.
fn transform(dataset: Node<'_, '_>) -> Option<[f64; 6]> {
    let numbers = text(dataset.children().find(|child| child.has_tag_name("GeoTransform"))?)?;
    let numbers: Vec<f64> = numbers.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
    let transform: [f64; 6] = numbers.try_into().ok()?;
    transform.iter().all(|number| number.is_finite()).then_some(transform)
}

fn place(dataset: Node<'_, '_>) -> Option<Georeference> {
    let system = dataset.children().find(|child| child.has_tag_name("SRS"));
    let transform = transform(dataset);
    let well_known_text = system.and_then(text).unwrap_or_default();
    if transform.is_none() && well_known_text.is_empty() {
        return None;
    }
    let axis_mapping = system.and_then(|system| attribute(system, "dataaxistosrsaxismapping"));
    Some(Georeference {
        transform,
        system: well_known_text,
        axis_mapping: axis_mapping.filter(|mapping| mapping.chars().all(|c| c.is_ascii_digit() || ",- ".contains(c))),
        epoch: system
            .and_then(|system| attribute(system, "coordinateepoch"))
            .filter(|epoch| epoch.parse::<f64>().is_ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<PAMDataset>
  <SRS dataAxisToSRSAxisMapping="1,2">PROJCS["WGS 84 / UTM zone 32N",UNIT["a&amp;lt;"]]</SRS>
  <GeoTransform>  4.4072e+05,  6.0e+01,  0.0,  3.75132e+06,  0.0, -3.0e+01</GeoTransform>
  <Metadata domain="IMAGE_STRUCTURE"><MDI key="DATA_TYPE">CFloat32</MDI><MDI key="X_SIZE">699</MDI><MDI key="Y_SIZE">929</MDI></Metadata>
  <Metadata><MDI key="X_SIZE">1</MDI></Metadata>
  <PAMRasterBand band="2">
    <Description>near &lt;infrared&gt;</Description><NoDataValue>-9.999E+03</NoDataValue><UnitType>m</UnitType>
    <Offset>10</Offset><Scale>0.5</Scale><ColorInterp>Palette</ColorInterp>
    <ColorTable><Entry c1="1" c2="2" c3="3" c4="4"/></ColorTable>
    <CategoryNames><Category>sea</Category><Category/></CategoryNames>
  </PAMRasterBand>
  <Subdataset name="depth"><PAMDataset>
    <Metadata domain="IMAGE_STRUCTURE"><MDI KEY="X_SIZE">7</MDI><MDI KEY="DATA_TYPE">6</MDI></Metadata>
    <PAMRasterBand band="1"><NoDataValue>nan</NoDataValue></PAMRasterBand>
  </PAMDataset></Subdataset>
</PAMDataset>"#;

    #[test]
    fn the_text_gives_place_size_and_bands() {
        let pam = Pam::parse(XML).unwrap();
        let place = pam.place.as_ref().unwrap();
        assert_eq!(place.transform, Some([440720.0, 60.0, 0.0, 3751320.0, 0.0, -30.0]));
        assert_eq!(place.system, "PROJCS[\"WGS 84 / UTM zone 32N\",UNIT[\"a&lt;\"]]");
        assert_eq!(place.axis_mapping.as_deref(), Some("1,2"));
        assert_eq!((pam.samples, pam.lines, pam.is_complex), (Some(699), Some(929), Some(true)));
        assert_eq!((pam.bands.len(), &pam.bands[0]), (2, &Band::default()));
        let band = &pam.bands[1];
        assert_eq!(band.description.as_deref(), Some("near <infrared>"));
        assert_eq!(band.no_data.as_deref(), Some("-9.999e+03"));
        assert_eq!((band.offset, band.scale, band.unit.as_deref()), (Some(10.0), Some(0.5), Some("m")));
        assert_eq!((band.colour.as_deref(), &band.palette[..]), (Some("Palette"), &[[1, 2, 3, 4]][..]));
        assert_eq!(band.categories, ["sea", ""]);
    }

    #[test]
    fn attributes_have_their_own_bands_and_share_the_place() {
        let pam = Pam::parse(XML).unwrap();
        let depth = pam.of_attribute("depth", false, true);
        assert_eq!((depth.samples, depth.lines, depth.bands[0].no_data.as_deref()), (Some(7), Some(929), Some("nan")));
        assert_eq!((&depth.place, depth.is_complex), (&pam.place, Some(false)));
        assert_eq!(pam.of_attribute("TDB_VALUES", false, false).bands.len(), 2);
        assert_eq!(pam.of_attribute("anything", true, false).bands.len(), 2);
        assert_eq!(pam.of_attribute("anything", false, false).bands.len(), 0);
        let second = pam.of_attribute("TDB_VALUES_2", false, true);
        assert_eq!((second.bands.len(), second.bands[0].unit.as_deref()), (1, Some("m")));
        assert_eq!(pam.of_attribute("TDB_VALUES_9", false, true).bands.len(), 0);
    }

    #[test]
    fn prefixes_need_no_declaration() {
        let xml = "<PAMDataset><SRS>GEOGCS[]</SRS><tiledb:OverviewCount>2</tiledb:OverviewCount>\
                   <Metadata domain=\"xml:a\" format=\"xml\"><b:c/></Metadata></PAMDataset>";
        let pam = Pam::parse(xml).unwrap();
        assert_eq!(
            (pam.place.unwrap().system.as_str(), pam.metadata[0].element(0).contains("<b:c/>")),
            ("GEOGCS[]", true)
        );
        let many: String = (0..100).map(|number| format!("<a{number}:b/>")).collect();
        assert_eq!(Pam::parse(&format!("<PAMDataset>{many}</PAMDataset>")), None);
    }

    #[test]
    fn invalid_text_is_rejected() {
        for xml in ["", "<PAMDataset>", "<VRTDataset/>", "<!DOCTYPE a [<!ENTITY b \"c\">]><PAMDataset>&b;</PAMDataset>"]
        {
            assert_eq!(Pam::parse(xml), None, "{xml}");
        }
        for transform in ["", "1,2,3", "1,2,3,4,5,inf", "1,2,3,4,5,x"] {
            let xml = format!("<PAMDataset><GeoTransform>{transform}</GeoTransform></PAMDataset>");
            assert_eq!(Pam::parse(&xml), Some(Pam::default()), "{xml}");
        }
        let far = "<PAMDataset><PAMRasterBand band=\"99999999999\"/><PAMRasterBand band=\"0\"/></PAMDataset>";
        assert_eq!(Pam::parse(far), Some(Pam::default()));
        let deep = format!("<PAMDataset>{}", "<a>".repeat(200_000));
        assert_eq!(Pam::parse(&deep), None);
        let deep = format!("<PAMDataset>{}{}</PAMDataset>", "<a>".repeat(200_000), "</a>".repeat(200_000));
        assert_eq!(Pam::parse(&deep), Some(Pam::default()));
    }
}
