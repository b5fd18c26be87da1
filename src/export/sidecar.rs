//! Small texts that tell other programs how to read the raw file beside them: GDAL's `.vrt`, NRRD's `.nhdr`
//! and MetaImage's `.mhd`.

use super::column::{Column, Field, Fit, Misfit};
use super::georeference::Georeference;
use super::number;
use super::raster::{Interleave, Raster};
use crate::format::datatype::Kind;

/// Whether a `.vrt` can describe a field of an array with so many axes, and if not why.
pub fn check_vrt(field: &Field, rank: usize) -> Fit<()> {
    gdal_type(field)?;
    Raster::check(field, rank)
}

/// GDAL's virtual raster over a column's raw, row-major file of the name `data_file` in the same folder.
///
/// `axes` names the axes as for the ENVI header; the georeference may be any affine transform.
pub fn vrt(column: &Column, axes: &[String], place: Option<&Georeference>, data_file: &str) -> Fit<Vec<u8>> {
    let field = &column.field;
    let data_type = gdal_type(field)?;
    let Raster { samples, lines, bands, interleave } = Raster::of(field, &column.shape, axes)?;
    let size = u128::from(field.datatype.size() as u64);
    let (samples_wide, lines_wide, bands_wide) = (u128::from(samples), u128::from(lines), u128::from(bands));
    let (pixel, line, band) = match interleave {
        Interleave::Bands => (size, size * samples_wide, size * samples_wide * lines_wide),
        Interleave::Lines => (size, size * samples_wide * bands_wide, size * samples_wide),
        Interleave::Pixels => (size * bands_wide, size * bands_wide * samples_wide, size),
    };
    if samples > i32::MAX as u64 || lines > i32::MAX as u64 || bands > 65_535 {
        return Err(Misfit::new("GDAL has rasters of up to 2^31-1 columns and lines, and 65535 bands"));
    }
    let mut text = format!("<VRTDataset rasterXSize=\"{samples}\" rasterYSize=\"{lines}\">\n");
    if let Some(place) = place {
        let transform: Vec<String> = place.transform.iter().map(f64::to_string).collect();
        if !place.system.is_empty() {
            text += &format!("  <SRS dataAxisToSRSAxisMapping=\"2,1\">{}</SRS>\n", escape(&place.system));
        }
        text += &format!("  <GeoTransform>{}</GeoTransform>\n", transform.join(", "));
    }
    let fill = field.no_data().and_then(|fill| number::text(field.datatype, fill));
    let fill = fill.map_or(String::new(), |fill| format!("    <NoDataValue>{fill}</NoDataValue>\n"));
    for number in 0..bands {
        text += &format!(
            "  <VRTRasterBand dataType=\"{data_type}\" band=\"{}\" subClass=\"VRTRawRasterBand\">\n{fill}    \
             <SourceFilename relativeToVRT=\"1\">{}</SourceFilename>\n    <ImageOffset>{}</ImageOffset>\n    \
             <PixelOffset>{pixel}</PixelOffset>\n    <LineOffset>{line}</LineOffset>\n    \
             <ByteOrder>LSB</ByteOrder>\n  </VRTRasterBand>\n",
            number + 1,
            escape(data_file),
            band * u128::from(number),
        );
    }
    text += "</VRTDataset>\n";
    Ok(text.into_bytes())
}

fn gdal_type(field: &Field) -> Fit<&'static str> {
    Ok(match (field.datatype.kind(), field.datatype.size()) {
        (Kind::Unsigned, 1) => "Byte",
        (Kind::Unsigned, 2) => "UInt16",
        (Kind::Unsigned, 4) => "UInt32",
        (Kind::Unsigned, _) => "UInt64",
        (Kind::Signed, 1) => return Err(Misfit::new("older versions of GDAL have no 8-bit signed integers")),
        (Kind::Signed, 2) => "Int16",
        (Kind::Signed, 4) => "Int32",
        (Kind::Signed, _) => "Int64",
        (Kind::Float, 4) => "Float32",
        (Kind::Float, _) => "Float64",
        (Kind::Bytes, _) => return Err(Misfit::new("a raster has no text or blobs")),
    })
}

/// Whether an `.nhdr` or `.mhd` can describe a field of an array with so many axes, and if not why.
pub fn check_image(field: &Field, rank: usize) -> Fit<()> {
    if field.values_per_cell.is_none() {
        return Err(Misfit::new("an image's cells have one size, and here each cell has its own"));
    }
    if field.is_bytes() {
        return Err(Misfit::new("an image has no text or blobs"));
    }
    if rank == 0 || rank + usize::from(field.values_per_cell != Some(1)) > 16 {
        return Err(Misfit::new("an image has 1 to 16 axes"));
    }
    Ok(())
}

/// The detached NRRD header of a column's raw, row-major file. NRRD lists the fastest axis first.
pub fn nhdr(column: &Column, data_file: &str) -> Fit<Vec<u8>> {
    let field = &column.field;
    check_image(field, column.shape.len())?;
    let mut sizes: Vec<String> = column.shape.iter().rev().map(u64::to_string).collect();
    let mut kinds = vec!["domain"; sizes.len()];
    if let Some(values @ 2..) = field.values_per_cell {
        sizes.insert(0, values.to_string());
        kinds.insert(0, "list");
    }
    let number = match field.datatype.kind() {
        Kind::Float if field.datatype.size() == 4 => "float".into(),
        Kind::Float => "double".into(),
        Kind::Signed => format!("int{}", 8 * field.datatype.size()),
        _ => format!("uint{}", 8 * field.datatype.size()),
    };
    let mut text = format!(
        "NRRD0004\ntype: {number}\ndimension: {}\nsizes: {}\nkinds: {}\nencoding: raw\n",
        sizes.len(),
        sizes.join(" "),
        kinds.join(" ")
    );
    if field.datatype.size() > 1 {
        text += "endian: little\n";
    }
    text += &format!("data file: {}\n", one_line(data_file));
    Ok(text.into_bytes())
}

/// The MetaImage header of a column's raw, row-major file. MetaImage lists the fastest axis first too.
pub fn mhd(column: &Column, data_file: &str) -> Fit<Vec<u8>> {
    let field = &column.field;
    check_image(field, column.shape.len())?;
    let sizes: Vec<String> = column.shape.iter().rev().map(u64::to_string).collect();
    let element = match (field.datatype.kind(), field.datatype.size()) {
        (Kind::Signed, 1) => "MET_CHAR",
        (Kind::Signed, 2) => "MET_SHORT",
        (Kind::Signed, 4) => "MET_INT",
        (Kind::Signed, _) => "MET_LONG_LONG",
        (Kind::Float, 4) => "MET_FLOAT",
        (Kind::Float, _) => "MET_DOUBLE",
        (_, 1) => "MET_UCHAR",
        (_, 2) => "MET_USHORT",
        (_, 4) => "MET_UINT",
        _ => "MET_ULONG_LONG",
    };
    let mut text = format!(
        "ObjectType = Image\nNDims = {}\nBinaryData = True\nBinaryDataByteOrderMSB = False\nDimSize = {}\n",
        sizes.len(),
        sizes.join(" ")
    );
    if let Some(values @ 2..) = field.values_per_cell {
        text += &format!("ElementNumberOfChannels = {values}\n");
    }
    // The file's name ends the header.
    text += &format!("ElementType = {element}\nElementDataFile = {}\n", one_line(data_file));
    Ok(text.into_bytes())
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::compose::Repeat;
    use crate::format::datatype::Datatype;
    use std::sync::Arc;

    fn column(datatype: Datatype, shape: &[u64], values: u32) -> Column {
        let field = Field::new("a", datatype).with_values_per_cell(Some(values));
        let length = shape.iter().product::<u64>() * field.cell_size().unwrap();
        Column::fixed(field, shape.to_vec(), Arc::new(Repeat::zeros(length)))
    }

    #[test]
    fn headers_list_the_fastest_axis_first() {
        let text = String::from_utf8(nhdr(&column(Datatype::Float32, &[2, 3, 4], 1), "a.f32").unwrap()).unwrap();
        assert!(text.contains("type: float\ndimension: 3\nsizes: 4 3 2\n"), "{text}");
        assert!(text.ends_with("endian: little\ndata file: a.f32\n"), "{text}");
        let text = String::from_utf8(nhdr(&column(Datatype::UInt8, &[2, 3], 3), "a.u8").unwrap()).unwrap();
        assert!(text.contains("sizes: 3 3 2\nkinds: list domain domain\n") && !text.contains("endian"), "{text}");
        let text = String::from_utf8(mhd(&column(Datatype::Int16, &[2, 3, 4], 2), "a.i16").unwrap()).unwrap();
        assert!(text.contains("DimSize = 4 3 2\nElementNumberOfChannels = 2\nElementType = MET_SHORT\n"), "{text}");
        assert!(text.ends_with("ElementDataFile = a.i16\n"), "{text}");
    }

    #[test]
    fn a_vrt_says_where_each_band_begins() {
        let axes = ["band", "y", "x"].map(String::from);
        let text = String::from_utf8(vrt(&column(Datatype::UInt16, &[2, 3, 4], 1), &axes, None, "a<\".u16").unwrap());
        let text = text.unwrap();
        assert!(text.contains("<ImageOffset>24</ImageOffset>\n    <PixelOffset>2<"), "{text}");
        assert!(text.contains("<LineOffset>8</LineOffset>"), "{text}");
        assert!(text.contains(">a&lt;&quot;.u16</SourceFilename>"), "{text}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(check_vrt(&Field::new("a", Datatype::Int8), 2).is_err());
        assert!(check_vrt(&Field::new("a", Datatype::Int16), 4).is_err());
        assert!(check_image(&Field::new("a", Datatype::StringAscii), 2).is_err());
        assert!(check_image(&Field::new("a", Datatype::Int16).with_values_per_cell(None), 2).is_err());
        let wide = column(Datatype::UInt8, &[1 << 20, 1 << 33], 1);
        assert!(vrt(&wide, &[], None, "a").is_err());
    }
}
