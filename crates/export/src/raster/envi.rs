//! The ENVI header: a small text that tells GIS programs how to read the raw file next to it.
//!
//! `temp.f32.hdr` describes `temp.f32`. ENVI supports rasters of up to three axes.

use tilefs_format::datatype::Kind;

use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::geo::bands::Band;
use crate::geo::georeference::Georeference;
use crate::number;
use crate::raster::{Interleave, Raster, Scene};

/// Checks whether an ENVI header can describe a field of an array of this rank; returns the reason if not.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    data_type(field)?;
    Raster::check(field, rank)
}

/// Returns the text of the header of a column's raw, row-major file.
///
/// The axes are lines and samples, or bands, lines and samples in the order that the scene gives; several values per
/// cell are bands. The georeference is used if rows go south and columns east, the only case that ENVI's `map info`
/// describes.
///
/// A line in ENVI's sense is a whole row of the file, so columns after the raster's last one cannot be omitted; the
/// description mentions them. Rows after its last one can be omitted, unless another band follows.
pub fn header(column: &Column, scene: &Scene) -> FormatResult<Vec<u8>> {
    let field = &column.field;
    let data_type = data_type(field)?;
    let Raster { samples, lines, bands, interleave, .. } = Raster::of(field, &column.shape, scene.band_axis)?;
    let order = match interleave {
        Interleave::Bands => "bsq",
        Interleave::Lines => "bil",
        Interleave::Pixels => "bip",
    };
    let mut description = plain(&field.name);
    if let Some(own) = scene.samples.filter(|&own| own < samples) {
        description += &format!("; the raster is the first {own} columns, as in the .vrt file");
    }
    let first = scene.no_data(field, 0);
    if !scene.have_no_data(field, bands, |number| number == first.as_deref()) {
        description += "; the bands mark missing values by different numbers, which the .vrt file has";
    }
    let can_end_early = bands == 1 || interleave != Interleave::Bands;
    let lines = scene.lines.filter(|&own| can_end_early && own < lines).unwrap_or(lines);
    let mut text = format!(
        "ENVI\ndescription = {{{description}}}\nsamples = {samples}\nlines = {lines}\nbands = {bands}\n\
         header offset = 0\nfile type = ENVI Standard\ndata type = {data_type}\ninterleave = {order}\n\
         byte order = 0\n",
    );
    if let Some(fill) = field.no_data.as_deref().and_then(|fill| number::text(field.datatype, fill)) {
        text += &format!("data ignore value = {fill}\n");
    }
    // Of complex numbers, each part is a band here.
    if !scene.is_complex {
        text += &of_bands(scene);
    }
    if let Some(place) = scene.place.as_ref().filter(|place| place.is_north_up())
        && let Some(transform) = place.transform
    {
        text += &map_info(place, transform);
    }
    Ok(text.into_bytes())
}

/// Returns the names of the bands, their gains and offsets, and which three are red, green and blue.
fn of_bands(scene: &Scene) -> String {
    let mut text = String::new();
    let mut list = |key: &str, values: Vec<String>| text += &format!("{key} = {{{}}}\n", values.join(", "));
    if scene.bands.kinds().any(|band| band.description.is_some()) {
        let name = |(number, band): (usize, &Band)| match &band.description {
            // A comma would end a name.
            Some(name) => plain(name).replace(',', ";"),
            None => format!("Band {}", number + 1),
        };
        list("band names", scene.bands.each().enumerate().map(name).collect());
    }
    if scene.bands.kinds().any(|band| band.scale.is_some() || band.offset.is_some()) {
        list("data gain values", scene.bands.each().map(|band| band.scale.unwrap_or(1.0).to_string()).collect());
        list("data offset values", scene.bands.each().map(|band| band.offset.unwrap_or(0.0).to_string()).collect());
    }
    let of_colour = |colour: &str| scene.bands.each().position(|band| band.colour.as_deref() == Some(colour));
    if let [Some(red), Some(green), Some(blue)] = ["Red", "Green", "Blue"].map(of_colour) {
        list("default bands", [red, green, blue].iter().map(|band| (band + 1).to_string()).collect());
    }
    text
}

/// Returns ENVI's `data type` number.
fn data_type(field: &Field) -> FormatResult<u8> {
    let no = |what: &'static str| Err(Unrepresentable::new(format!("ENVI has no {what}")));
    Ok(match (field.datatype.kind(), field.datatype.size()) {
        (Kind::Bytes, _) => return Err(Unrepresentable::bytes()),
        (Kind::Signed, 1) => return no("8-bit signed integers"),
        (Kind::Unsigned, 1) => 1,
        (Kind::Signed, 2) => 2,
        (Kind::Signed, 4) => 3,
        (Kind::Float, 4) => 4,
        (Kind::Float, _) => 5,
        (Kind::Unsigned, 2) => 12,
        (Kind::Unsigned, 4) => 13,
        (Kind::Signed, _) => 14,
        (Kind::Unsigned, _) => 15,
    })
}

/// Returns the map info. The tie point is the upper left corner of the upper left pixel, which ENVI calls pixel (1, 1).
fn map_info(place: &Georeference, transform: [f64; 6]) -> String {
    let [x, width, _, y, _, height] = transform;
    let height = -height;
    let (name, rest) = match place.utm_zone() {
        Some((zone, north)) => {
            ("UTM", format!(", {zone}, {}, WGS-84, units=Meters", if north { "North" } else { "South" }))
        }
        None if place.is_geographic() => {
            let datum = if place.system_name() == Some("WGS 84") { "WGS-84, " } else { "" };
            ("Geographic Lat/Lon", format!(", {datum}units=Degrees"))
        }
        None => ("Arbitrary", String::new()),
    };
    let mut text = format!("map info = {{{name}, 1, 1, {x}, {y}, {width}, {height}{rest}}}\n");
    // Readers know only the first version of well-known text, and a brace would end the value.
    let system = plain(&place.system);
    if system.starts_with("PROJCS[") || system.starts_with("GEOGCS[") {
        text += &format!("coordinate system string = {{{system}}}\n");
    }
    text
}

/// Replaces characters that would end a value of the header.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '{' || c == '}' { ' ' } else { c }).collect::<String>().trim().into()
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;

    use super::*;
    use std::sync::Arc;

    fn column(field: Field, shape: &[u64]) -> Column {
        let length = shape.iter().product::<u64>() * field.cell_size().unwrap();
        Column::fixed(field, shape.to_vec(), Arc::new(vec![0; length as usize]))
    }

    fn text(field: Field, shape: &[u64], axes: &[&str], place: Option<&Georeference>) -> String {
        let axes: Vec<String> = axes.iter().map(|&name| name.to_owned()).collect();
        let scene = Scene { place: place.cloned(), ..Scene::of_axes(&axes, shape) };
        String::from_utf8(header(&column(field, shape), &scene).unwrap()).unwrap()
    }

    #[test]
    fn axes_become_bands_lines_and_samples() {
        let field = Field::new("a", Datatype::UInt16);
        let lines = text(field.clone(), &[3, 4], &["y", "x"], None);
        assert!(lines.contains("samples = 4\nlines = 3\nbands = 1\n"), "{lines}");
        assert!(lines.contains("data type = 12\ninterleave = bsq\nbyte order = 0\n"), "{lines}");
        let bands = text(field.clone(), &[2, 3, 4], &["band", "y", "x"], None);
        assert!(bands.contains("samples = 4\nlines = 3\nbands = 2\n") && bands.contains("= bsq"), "{bands}");
        let pixels = text(field.clone(), &[3, 4, 2], &["Y", "X", "BANDS"], None);
        assert!(pixels.contains("samples = 4\nlines = 3\nbands = 2\n") && pixels.contains("= bip"), "{pixels}");
        let several = text(field.with_values_per_cell(Some(5)), &[3, 4], &["y", "x"], None);
        assert!(several.contains("samples = 4\nlines = 3\nbands = 5\n") && several.contains("= bip"), "{several}");
    }

    #[test]
    fn unsupported_types_are_refused_with_the_reason() {
        let reason = check(&Field::new("a", Datatype::Int8), 2).unwrap_err();
        assert_eq!(reason.to_string(), "ENVI has no 8-bit signed integers");
        assert!(check(&Field::new("a", Datatype::StringUtf8), 2).is_err());
        assert!(check(&Field::new("a", Datatype::Float64), 4).is_err());
        assert!(check(&Field::new("a", Datatype::Float64), 3).is_ok());
        assert!(check(&Field::new("a", Datatype::Float64).with_values_per_cell(Some(2)), 3).is_err());
    }

    #[test]
    fn north_up_rasters_get_map_info() {
        let system = "PROJCS[\"WGS 84 / UTM zone 33S\"]";
        let mut place = Georeference::new([440720.5, 60.0, 0.0, 3751320.0, 0.0, -30.0], system);
        let field = Field::new("a", Datatype::Float32).with_no_data(f32::NAN.to_le_bytes());
        let header = text(field.clone(), &[3, 4], &["y", "x"], Some(&place));
        let info = "map info = {UTM, 1, 1, 440720.5, 3751320, 60, 30, 33, South, WGS-84, units=Meters}\n";
        assert!(header.contains(info), "{header}");
        assert!(header.contains("coordinate system string = {PROJCS[\"WGS 84 / UTM zone 33S\"]}\n"), "{header}");
        assert!(header.contains("data ignore value = nan\n"), "{header}");
        place.transform = Some([440720.5, 60.0, 0.0, 3751320.0, 0.0, 30.0]);
        assert!(!text(field, &[3, 4], &["y", "x"], Some(&place)).contains("map info"));
    }

    #[test]
    fn bands_have_names_gains_and_colours() {
        let band = |name: &str, colour: &str| Band {
            description: Some(name.into()),
            colour: Some(colour.into()),
            ..Band::default()
        };
        let mut bands = vec![band("a, b}", "Blue"), band("c", "Red"), band("d", "Green")];
        bands[1].scale = Some(0.1);
        bands[2].offset = Some(-5.0);
        let scene =
            Scene { bands: bands.into(), lines: Some(2), samples: Some(3), band_axis: Some(2), ..Scene::default() };
        let column = column(Field::new("a", Datatype::UInt8), &[4, 5, 3]);
        let header = String::from_utf8(header(&column, &scene).unwrap()).unwrap();
        for line in [
            "description = {a; the raster is the first 3 columns, as in the .vrt file}\n",
            "samples = 5\nlines = 2\nbands = 3\n",
            "band names = {a; b, c, d}\n",
            "data gain values = {1, 0.1, 1}\ndata offset values = {0, 0, -5}\n",
            "default bands = {2, 3, 1}\n",
        ] {
            assert!(header.contains(line), "{line} is missing in {header}");
        }
    }

    #[test]
    fn a_name_cannot_break_the_header() {
        let header = text(Field::new("a}\nsamples = 9\n{", Datatype::UInt8), &[3, 4], &["y", "x"], None);
        assert!(header.contains("description = {a  samples = 9}\n"), "{header}");
    }
}
