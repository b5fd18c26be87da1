//! The ENVI header: a small text that tells GIS programs how to read the raw file beside it.
//!
//! `temp.f32.hdr` describes `temp.f32`. ENVI knows rasters of up to three axes.

use super::column::{Column, Field, Fit, Misfit};
use super::georeference::Georeference;
use super::number;
use super::raster::{Interleave, Raster};
use crate::format::datatype::Kind;

/// Whether an ENVI header can describe a field of an array with so many axes, and if not why.
pub fn check(field: &Field, rank: usize) -> Fit<()> {
    data_type(field)?;
    Raster::check(field, rank)
}

/// The text of the header of a column's raw, row-major file.
///
/// `axes` names the axes, one per axis of the shape; one called `band` or `bands` decides the interleave of
/// three. Axes are lines and samples, or bands, lines and samples; several values a cell are the bands. The
/// georeference is used where rows go south and columns east, since ENVI's `map info` is made for that.
pub fn header(column: &Column, axes: &[String], georeference: Option<&Georeference>) -> Fit<Vec<u8>> {
    let field = &column.field;
    let data_type = data_type(field)?;
    let raster = Raster::of(field, &column.shape, axes)?;
    let interleave = match raster.interleave {
        Interleave::Bands => "bsq",
        Interleave::Lines => "bil",
        Interleave::Pixels => "bip",
    };
    let mut text = format!(
        "ENVI\ndescription = {{{}}}\nsamples = {}\nlines = {}\nbands = {}\nheader offset = 0\n\
         file type = ENVI Standard\ndata type = {data_type}\ninterleave = {interleave}\nbyte order = 0\n",
        plain(&field.name),
        raster.samples,
        raster.lines,
        raster.bands,
    );
    if let Some(fill) = field.no_data().and_then(|fill| number::text(field.datatype, fill)) {
        text += &format!("data ignore value = {fill}\n");
    }
    if let Some(place) = georeference.filter(|place| place.is_north_up()) {
        text += &map_info(place);
    }
    Ok(text.into_bytes())
}

/// ENVI's `data type` number.
fn data_type(field: &Field) -> Fit<u8> {
    let no = |what: &'static str| Err(Misfit::new(format!("ENVI has no {what}")));
    Ok(match (field.datatype.kind(), field.datatype.size()) {
        (Kind::Bytes, _) => return no("text or blobs"),
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

/// The tie point is the upper left corner of the upper left pixel, which ENVI calls pixel (1, 1).
fn map_info(place: &Georeference) -> String {
    let [x, width, _, y, _, height] = place.transform;
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
    // Readers know the first form of well-known text only, and a brace would end the value.
    let system = plain(&place.system);
    if system.starts_with("PROJCS[") || system.starts_with("GEOGCS[") {
        text += &format!("coordinate system string = {{{system}}}\n");
    }
    text
}

/// Without what would end a value of the header.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '{' || c == '}' { ' ' } else { c }).collect::<String>().trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::datatype::Datatype;
    use std::sync::Arc;

    fn column(field: Field, shape: &[u64]) -> Column {
        let length = shape.iter().product::<u64>() * field.cell_size().unwrap();
        Column::fixed(field, shape.to_vec(), Arc::new(vec![0; length as usize]))
    }

    fn text(field: Field, shape: &[u64], axes: &[&str], place: Option<&Georeference>) -> String {
        let axes: Vec<String> = axes.iter().map(|&name| name.to_owned()).collect();
        String::from_utf8(header(&column(field, shape), &axes, place).unwrap()).unwrap()
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
    fn what_envi_lacks_is_refused_with_the_reason() {
        let reason = check(&Field::new("a", Datatype::Int8), 2).unwrap_err();
        assert_eq!(reason.to_string(), "ENVI has no 8-bit signed integers");
        assert!(check(&Field::new("a", Datatype::StringUtf8), 2).is_err());
        assert!(check(&Field::new("a", Datatype::Float64), 4).is_err());
        assert!(check(&Field::new("a", Datatype::Float64), 3).is_ok());
        assert!(check(&Field::new("a", Datatype::Float64).with_values_per_cell(Some(2)), 3).is_err());
    }

    #[test]
    fn north_up_rasters_get_map_info() {
        let mut place = Georeference {
            transform: [440720.5, 60.0, 0.0, 3751320.0, 0.0, -30.0],
            system: "PROJCS[\"WGS 84 / UTM zone 33S\"]".into(),
        };
        let field = Field::new("a", Datatype::Float32).with_fill(f32::NAN.to_le_bytes());
        let header = text(field.clone(), &[3, 4], &["y", "x"], Some(&place));
        let info = "map info = {UTM, 1, 1, 440720.5, 3751320, 60, 30, 33, South, WGS-84, units=Meters}\n";
        assert!(header.contains(info), "{header}");
        assert!(header.contains("coordinate system string = {PROJCS[\"WGS 84 / UTM zone 33S\"]}\n"), "{header}");
        assert!(header.contains("data ignore value = nan\n"), "{header}");
        place.transform[5] = 30.0;
        assert!(!text(field, &[3, 4], &["y", "x"], Some(&place)).contains("map info"));
    }

    #[test]
    fn a_name_cannot_break_the_header() {
        let header = text(Field::new("a}\nsamples = 9\n{", Datatype::UInt8), &[3, 4], &["y", "x"], None);
        assert!(header.contains("description = {a  samples = 9}\n"), "{header}");
    }
}
