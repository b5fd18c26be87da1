//! The XML of a raster's properties: a file of GDAL's persistent auxiliary metadata (PAM), and the elements that virtual
//! rasters share with it.

use tilefs_base::markup::escape;

use crate::column::Field;
use crate::geo::bands::Band;
use crate::geo::georeference::Georeference;
use crate::geo::pam_metadata::MetadataDomain;
use crate::raster::Scene;

/// Returns the PAM file of a raster with this many bands: everything that is known except the values.
pub fn pam_file(field: &Field, scene: &Scene, bands: u64) -> String {
    let mut text = format!("<PAMDataset>\n{}", of_raster(scene));
    for number in 0..bands {
        let properties = of_band(field, scene, number);
        if !properties.is_empty() {
            text += &format!("  <PAMRasterBand band=\"{}\">\n{properties}  </PAMRasterBand>\n", number + 1);
        }
    }
    text + "</PAMDataset>\n"
}

/// Returns the elements of the raster as a whole: coordinate system and transform, metadata, ground control points.
///
/// Without an explicit axis mapping, GDAL takes x for the easting or longitude, whatever the order of the system's axes
/// is.
pub(crate) fn of_raster(scene: &Scene) -> String {
    let mut text = scene.place.as_ref().map(of_place).unwrap_or_default();
    text.extend(scene.metadata.iter().map(|domain| domain.element(2)));
    text.extend(scene.control_points.as_ref().map(|points| points.element()));
    text
}

fn of_place(place: &Georeference) -> String {
    let mut text = String::new();
    if !place.system.is_empty() {
        let attribute = |name: &str, value: &Option<String>| {
            value.as_ref().map_or(String::new(), |value| format!(" {name}=\"{}\"", escape(value)))
        };
        text += &format!(
            "  <SRS{}{}>{}</SRS>\n",
            attribute("dataAxisToSRSAxisMapping", &place.axis_mapping),
            attribute("coordinateEpoch", &place.epoch),
            escape(&place.system)
        );
    }
    if let Some(transform) = place.transform {
        text += &format!("  <GeoTransform>{}</GeoTransform>\n", transform.map(|number| number.to_string()).join(", "));
    }
    text
}

/// Returns the elements of a band, numbered from 0.
pub(crate) fn of_band(field: &Field, scene: &Scene, number: u64) -> String {
    let none = Band::default();
    let band = scene.band(number).unwrap_or(&none);
    let mut text = String::new();
    let mut element = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!("    <{name}>{}</{name}>\n", escape(&value));
        }
    };
    element("Description", band.description.clone());
    element("NoDataValue", scene.no_data(field, number));
    element("UnitType", band.unit.clone());
    element("Offset", band.offset.map(|offset| offset.to_string()));
    element("Scale", band.scale.map(|scale| scale.to_string()));
    element("ColorInterp", band.colour.clone());
    if !band.palette.is_empty() {
        let entry =
            |[c1, c2, c3, c4]: &[i16; 4]| format!("      <Entry c1=\"{c1}\" c2=\"{c2}\" c3=\"{c3}\" c4=\"{c4}\"/>\n");
        let entries: String = band.palette.iter().map(entry).collect();
        text += &format!("    <ColorTable>\n{entries}    </ColorTable>\n");
    }
    if !band.categories.is_empty() {
        let category = |name: &String| format!("      <Category>{}</Category>\n", escape(name));
        let categories: String = band.categories.iter().map(category).collect();
        text += &format!("    <CategoryNames>\n{categories}    </CategoryNames>\n");
    }
    text.extend(band.metadata.iter().map(|domain: &MetadataDomain| domain.element(4)));
    text.extend(band.attribute_table.iter().chain(&band.statistics).map(|xml| format!("    {xml}\n")));
    text
}
