//! GDAL's persistent auxiliary metadata (PAM): the XML text in which its TileDB driver describes a raster, under the
//! array's metadata key `_gdal` or, before TileDB 1.7, in a file `NAME.tdb.aux.xml` in the array's folder.
//!
//! The elements are those that GDAL's `GDALPamDataset` and `GDALPamRasterBand` write. The driver adds the size of the
//! raster and the order of its axes as items of the domain `IMAGE_STRUCTURE`, and a `Subdataset` for each attribute
//! besides the main one. Memory and time are bounded by the length of the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_base::xml::{XmlElement, XmlReader};
use tilefs_format::datatype::Datatype;
use tilefs_threads::cancellation;

use crate::geo::bands::{Band, Bands};
use crate::geo::georeference::Georeference;
use crate::geo::pam_metadata::{ControlPoints, MetadataDomain};
use crate::geo::wkt;
use crate::number;

/// Maximum number of bands whose settings are read; GDAL supports no more.
const MAX_BANDS: u64 = 65_536;

/// The root element.
const ROOT: &str = "PAMDataset";

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
    pub metadata: Arc<Vec<MetadataDomain>>,
    /// Pixels whose coordinates are known.
    pub control_points: Option<Arc<ControlPoints>>,
    /// Whether each pixel is a complex number, stored as a pair of values.
    pub is_complex: Option<bool>,
    /// The bands that are described, and those before them.
    pub bands: Bands,
    /// By attribute name.
    subdatasets: HashMap<String, Pam>,
}

impl Pam {
    /// Parses the XML text. Prefixes of names need no declaration: the driver writes none for its own element
    /// `tiledb:OverviewCount`, and GDAL accepts any in documents within the metadata.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the place if the text is malformed or another document, [`Error::Unsupported`] beyond a
    /// limit; [`Error::Cancelled`].
    pub fn parse(xml: &str) -> Result<Self> {
        // Writers may have included a final NUL.
        let mut reader = XmlReader::new(xml.trim_end_matches('\0'), cancellation::check)?;
        let root = reader.root()?;
        if root.name() != ROOT {
            return Err(Error::damaged(format!("the root element is {}, not {ROOT}", root.name())));
        }
        let pam = Pam::of(&mut reader, &root, true)?;
        reader.finish()?;
        Ok(pam)
    }

    fn of<'t>(reader: &mut XmlReader<'t>, dataset: &XmlElement<'t>, is_main: bool) -> Result<Self> {
        let (mut pam, mut place, mut metadata) = (Pam::default(), RasterPlace::default(), Vec::new());
        while let Some(child) = reader.child(dataset)? {
            match child.name() {
                "SRS" if place.system.is_none() => {
                    let text = trimmed(reader, &child)?;
                    if text.as_ref().is_some_and(|text| text.len() > wkt::MAX_LENGTH) {
                        return Err(Error::unsupported(format!(
                            "a coordinate system of more than {} bytes",
                            wkt::MAX_LENGTH
                        )));
                    }
                    place.system = Some((text, child));
                }
                "GeoTransform" if !place.has_transform => {
                    place.has_transform = true;
                    place.transform = trimmed(reader, &child)?.and_then(|numbers| transform(&numbers));
                }
                "Metadata" if child.attribute("domain") == Some("IMAGE_STRUCTURE") => pam.structure(reader, &child)?,
                "PAMRasterBand" => {
                    let number = child.attribute("band").and_then(|number| number.parse::<u64>().ok());
                    let number = number.unwrap_or(pam.bands.count() + 1).checked_sub(1);
                    if let Some(number) = number.filter(|number| *number < MAX_BANDS) {
                        pam.bands.describe(number, band(reader, &child)?);
                    }
                }
                "Subdataset" if is_main => {
                    let (name, mut found) = (child.attribute("name").map(str::to_owned), None);
                    while let Some(inner) = reader.child(&child)? {
                        if inner.name() == ROOT && found.is_none() {
                            found = Some(Pam::of(reader, &inner, false)?);
                        }
                    }
                    if let (Some(name), Some(inner)) = (name, found) {
                        pam.subdatasets.entry(name).or_insert(inner);
                    }
                }
                // The names of subdatasets are those in the array.
                "Metadata" if child.attribute("domain") != Some("SUBDATASETS") => {
                    metadata.extend(MetadataDomain::parse(reader, &child)?);
                }
                "GCPList" => pam.control_points = ControlPoints::parse(reader, &child)?.map(Arc::new),
                _ => {}
            }
        }
        (pam.place, pam.metadata) = (place.georeference(), Arc::new(metadata));
        Ok(pam)
    }

    /// Reads the domain in which the driver describes how the array stores the raster.
    fn structure<'t>(&mut self, reader: &mut XmlReader<'t>, domain: &XmlElement<'t>) -> Result<()> {
        while let Some(item) = reader.child(domain)? {
            let value = if item.name() == "MDI" { trimmed(reader, &item)? } else { None };
            let size = || value.as_ref()?.parse().ok().filter(|&size: &u64| size > 0);
            match item.attribute("key").filter(|_| item.name() == "MDI") {
                Some("X_SIZE") => self.samples = size(),
                Some("Y_SIZE") => self.lines = size(),
                Some("DATA_TYPE") => self.is_complex = value.as_deref().map(is_complex),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the description of the array's attribute `name`. `is_only`: it is the array's only attribute.
    ///
    /// The driver writes the bands of a raster into one attribute, or into one attribute each (`NAME_1`, `NAME_2`). In
    /// the latter case, `is_flat`: the array has no axis of bands. All rasters of an array have the same size and
    /// position.
    pub fn of_attribute(&self, name: &str, is_only: bool, is_flat: bool) -> AttributePam<'_> {
        let numbered = name.rsplit_once('_').and_then(|(stem, number)| Some((stem, number.parse::<u64>().ok()?)));
        let (own, number) = match (self.subdatasets.get(name), numbered) {
            (Some(own), _) => (Some(own), None),
            (None, Some((stem, number))) if is_flat => match self.subdatasets.get(stem) {
                Some(own) => (Some(own), Some(number)),
                None => (Some(self), Some(number).filter(|_| !is_only || stem == MAIN_ATTRIBUTE)),
            },
            _ => (Some(self).filter(|_| is_only || name == MAIN_ATTRIBUTE), None),
        };
        AttributePam { own, main: self, number }
    }
}

/// The description of one attribute as a raster.
#[derive(Clone, Copy)]
pub struct AttributePam<'a> {
    /// What is said of the raster, of which the attribute may be one band.
    own: Option<&'a Pam>,
    /// What is said of all rasters.
    main: &'a Pam,
    /// The number of the only band, from 1.
    number: Option<u64>,
}

impl<'a> AttributePam<'a> {
    /// Returns the metadata of the raster, except for what describes how the array stores it.
    pub fn metadata(&self) -> Arc<Vec<MetadataDomain>> {
        self.own.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// Returns the pixels whose coordinates are known.
    pub fn control_points(&self) -> Option<&'a Arc<ControlPoints>> {
        self.first_of(|pam| pam.control_points.as_ref())
    }

    /// Returns the position of the raster in its coordinate reference system, if it is known.
    pub fn place(&self) -> Option<&'a Georeference> {
        self.first_of(|pam| pam.place.as_ref())
    }

    /// Returns the number of columns of the raster.
    pub fn samples(&self) -> Option<u64> {
        self.first_of(|pam| pam.samples)
    }

    /// Returns the number of rows of the raster.
    pub fn lines(&self) -> Option<u64> {
        self.first_of(|pam| pam.lines)
    }

    /// Returns whether each pixel is a complex number, stored as a pair of values.
    pub fn is_complex(&self) -> Option<bool> {
        self.first_of(|pam| pam.is_complex)
    }

    /// Returns the bands that are described, and those before them.
    pub fn bands(&self) -> Cow<'a, Bands> {
        let all = self.own.map(|own| &own.bands);
        match (all, self.number) {
            (Some(all), None) => Cow::Borrowed(all),
            (Some(all), Some(number)) => {
                let band = number.checked_sub(1).and_then(|number| all.get(number)).cloned();
                Cow::Owned(band.into_iter().collect::<Vec<_>>().into())
            }
            (None, _) => Cow::Owned(Bands::default()),
        }
    }

    fn first_of<T>(&self, of: impl Fn(&'a Pam) -> Option<T>) -> Option<T> {
        self.own.and_then(&of).or_else(|| of(self.main))
    }
}

/// The driver's name for the attribute of a raster's values.
const MAIN_ATTRIBUTE: &str = "TDB_VALUES";

/// Reads the description of a band.
fn band<'t>(reader: &mut XmlReader<'t>, element: &XmlElement<'t>) -> Result<Band> {
    let mut band = Band::default();
    let number = |text: Option<String>| text?.parse().ok().filter(|number: &f64| number.is_finite());
    while let Some(child) = reader.child(element)? {
        match child.name() {
            "Description" => band.description = trimmed(reader, &child)?,
            "NoDataValue" => {
                let text = trimmed(reader, &child)?;
                band.no_data = exact_number(&child).or_else(|| Some(number_word(&text?)));
            }
            "UnitType" => band.unit = trimmed(reader, &child)?,
            "Offset" => band.offset = number(trimmed(reader, &child)?),
            "Scale" => band.scale = number(trimmed(reader, &child)?),
            "ColorInterp" => band.colour = trimmed(reader, &child)?,
            "ColorTable" => band.palette = palette(reader, &child)?,
            "CategoryNames" => {
                band.categories.clear();
                while let Some(name) = reader.child(&child)? {
                    if name.name() == "Category" {
                        band.categories.push(trimmed(reader, &name)?.unwrap_or_default());
                    }
                }
            }
            "Metadata" => band.metadata.extend(MetadataDomain::parse(reader, &child)?),
            "GDALRasterAttributeTable" => band.attribute_table = Some(reader.source(&child)?.0.to_owned()),
            "Histograms" | "Minimum" | "Maximum" | "Mean" | "StandardDeviation" => {
                band.statistics.push(reader.source(&child)?.0.to_owned());
            }
            _ => {}
        }
    }
    Ok(band)
}

fn palette<'t>(reader: &mut XmlReader<'t>, table: &XmlElement<'t>) -> Result<Vec<[i16; 4]>> {
    let mut palette = Vec::new();
    while let Some(entry) = reader.child(table)? {
        if entry.name() == "Entry" {
            let part = |name| entry.attribute(name).and_then(|part| part.parse::<i16>().ok());
            let [red, green, blue] = ["c1", "c2", "c3"].map(|name| part(name).unwrap_or(0));
            palette.push([red, green, blue, part("c4").unwrap_or(255)]);
        }
    }
    Ok(palette)
}

/// Returns the text within an element, without surrounding blanks; `None` if there is none.
fn trimmed<'t>(reader: &mut XmlReader<'t>, element: &XmlElement<'t>) -> Result<Option<String>> {
    let text = reader.text(element)?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Returns whether GDAL's name of a type, or its number, is that of complex numbers.
fn is_complex(datatype: &str) -> bool {
    datatype.starts_with("CInt") || datatype.starts_with("CFloat") || ["8", "9", "10", "11"].contains(&datatype)
}

/// Unifies the spellings of not-a-number: GDAL also writes `-nan` and `1.#QNAN`.
fn number_word(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if lower.contains("nan") { "nan".to_owned() } else { lower }
}

/// Returns a number whose bytes GDAL wrote too, because its text has fewer digits than the number.
fn exact_number(element: &XmlElement<'_>) -> Option<String> {
    let digits = element.attribute("le_hex_equiv")?;
    let bytes = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)?.to_be_bytes();
    number::text(Datatype::Float64, &bytes).map(|text| number_word(&text))
}

/// Returns the transform of a raster, if it is finite.
fn transform(numbers: &str) -> Option<[f64; 6]> {
    let numbers: Vec<f64> = numbers.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
    let transform: [f64; 6] = numbers.try_into().ok()?;
    transform.iter().all(|number| number.is_finite()).then_some(transform)
}

/// The elements that place a raster: the first of each counts.
#[derive(Default)]
struct RasterPlace<'t> {
    /// The text of the system, and its element.
    system: Option<(Option<String>, XmlElement<'t>)>,
    has_transform: bool,
    transform: Option<[f64; 6]>,
}

impl RasterPlace<'_> {
    fn georeference(self) -> Option<Georeference> {
        let (text, element) = self.system.map_or((None, None), |(text, element)| (text, Some(element)));
        let system = text.unwrap_or_default();
        if self.transform.is_none() && system.is_empty() {
            return None;
        }
        let attribute = |name| element.as_ref().and_then(|element| element.attribute(name)).map(str::to_owned);
        let is_mapping = |mapping: &String| mapping.chars().all(|c| c.is_ascii_digit() || ",- ".contains(c));
        Some(Georeference {
            transform: self.transform,
            system,
            axis_mapping: attribute("dataaxistosrsaxismapping").filter(is_mapping),
            epoch: attribute("coordinateepoch").filter(|epoch| epoch.parse::<f64>().is_ok()),
        })
    }
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
        assert_eq!((pam.bands.count(), pam.bands.get(0)), (2, Some(&Band::default())));
        let band = pam.bands.get(1).unwrap();
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
        let no_data = depth.bands().get(0).and_then(|band| band.no_data.clone());
        assert_eq!((depth.samples(), depth.lines(), no_data.as_deref()), (Some(7), Some(929), Some("nan")));
        assert_eq!((depth.place(), depth.is_complex()), (pam.place.as_ref(), Some(false)));
        assert_eq!(pam.of_attribute("TDB_VALUES", false, false).bands().count(), 2);
        assert_eq!(pam.of_attribute("anything", true, false).bands().count(), 2);
        assert_eq!(pam.of_attribute("anything", false, false).bands().count(), 0);
        let second = pam.of_attribute("TDB_VALUES_2", false, true).bands();
        assert_eq!((second.count(), second.get(0).and_then(|band| band.unit.as_deref())), (1, Some("m")));
        assert_eq!(pam.of_attribute("TDB_VALUES_9", false, true).bands().count(), 0);
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
        assert!(Pam::parse(&format!("<PAMDataset>{many}</PAMDataset>")).is_ok());
    }

    #[test]
    fn bands_that_are_not_described_take_no_memory() {
        let rasters: String = (0..10_000)
            .map(|number| format!("<Subdataset name=\"a{number}\"><PAMDataset><PAMRasterBand band=\"65536\"/></PAMDataset></Subdataset>"))
            .collect();
        let pam = Pam::parse(&format!("<PAMDataset>{rasters}</PAMDataset>")).unwrap();
        let bands = pam.of_attribute("a7", false, true).bands();
        assert_eq!((bands.count(), bands.described().count()), (65_536, 1));
    }

    #[test]
    fn invalid_text_is_rejected() {
        for xml in ["", "<PAMDataset>", "<VRTDataset/>", "<!DOCTYPE a [<!ENTITY b \"c\">]><PAMDataset>&b;</PAMDataset>"]
        {
            assert!(Pam::parse(xml).is_err(), "{xml}");
        }
        let parsed = |xml: &str| Pam::parse(xml).unwrap();
        for transform in ["", "1,2,3", "1,2,3,4,5,inf", "1,2,3,4,5,x"] {
            let xml = format!("<PAMDataset><GeoTransform>{transform}</GeoTransform></PAMDataset>");
            assert_eq!(parsed(&xml), Pam::default(), "{xml}");
        }
        let far = "<PAMDataset><PAMRasterBand band=\"99999999999\"/><PAMRasterBand band=\"0\"/></PAMDataset>";
        assert_eq!(parsed(far), Pam::default());
        let deep = |depth: usize| format!("<PAMDataset>{}{}</PAMDataset>", "<a>".repeat(depth), "</a>".repeat(depth));
        assert_eq!(parsed(&deep(200)), Pam::default());
        // Programs that get a part of the text would fail at that depth.
        assert!(Pam::parse(&deep(200_000)).is_err() && Pam::parse(&"<PAMDataset>".repeat(200_000)).is_err());
    }
}
