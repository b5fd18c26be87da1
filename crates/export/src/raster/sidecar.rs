//! Small texts that tell other programs how to read the raw file next to them: GDAL's `.vrt`, NRRD's `.nhdr` and
//! MetaImage's `.mhd`.

use std::borrow::Cow;

use tilefs_base::markup::escape;
use tilefs_format::datatype::Kind;

use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::raster::pam_text::{of_band, of_raster};
use crate::raster::{Interleave, Raster, Scene};

/// Maximum size in bytes of the bands before the last in a `.vrt`: the description of a band is repeated in each raster.
const LONGEST_VRT: usize = 256 << 20;

/// Checks whether a `.vrt` can describe a field of an array of this rank; returns the reason if not.
pub fn check_vrt(field: &Field, rank: usize) -> FormatResult<()> {
    gdal_type(field)?;
    // With a single value per cell, any number of axes is allowed.
    Raster::check(field, if field.values_per_cell == Some(1) { rank.min(3) } else { rank })
}

/// Returns GDAL's virtual raster over a column's raw, row-major file `data_file` in the same folder.
///
/// If an array has more than three axes, all axes but those of lines and columns are bands,
/// in the order of the file. The georeference may be
/// any affine transform. If the raster is smaller than the file, the data after its last column and row are omitted.
pub fn vrt(column: &Column, scene: &Scene, data_file: &str) -> FormatResult<Vec<u8>> {
    let field = &column.field;
    let complex = if scene.is_complex { "C" } else { "" };
    let data_type = format!("{complex}{}", gdal_type(field)?);
    let raster = Raster::all_of(&scene.of_pixels(field), &column.shape, scene.band_axis)?;
    let Raster { samples, lines, bands, interleave, rasters, .. } = raster;
    let size = u128::from(field.datatype.size() as u64) * if scene.is_complex { 2 } else { 1 };
    let (samples_wide, lines_wide, bands_wide) = (u128::from(samples), u128::from(lines), u128::from(bands));
    let (pixel, line, band) = match interleave {
        Interleave::Bands => (size, size * samples_wide, size * samples_wide * lines_wide),
        Interleave::Lines => (size, size * samples_wide * bands_wide, size * samples_wide),
        Interleave::Pixels => (size * bands_wide, size * bands_wide * samples_wide, size),
    };
    let each = size * samples_wide * lines_wide * bands_wide;
    let all_bands = rasters.saturating_mul(bands);
    let (samples, lines) = (samples.min(scene.samples.unwrap_or(samples)), lines.min(scene.lines.unwrap_or(lines)));
    if samples > i32::MAX as u64 || lines > i32::MAX as u64 || all_bands > 65_535 {
        return Err(Unrepresentable::new("GDAL has rasters of up to 2^31-1 columns and lines, and 65535 bands"));
    }
    let mut text = format!("<VRTDataset rasterXSize=\"{samples}\" rasterYSize=\"{lines}\">\n");
    text += &of_raster(scene);
    for number in 0..all_bands {
        if text.len() > LONGEST_VRT {
            return Err(Unrepresentable::new(format!("a .vrt of more than {} MiB", LONGEST_VRT >> 20)));
        }
        text += &format!(
            "  <VRTRasterBand dataType=\"{data_type}\" band=\"{}\" subClass=\"VRTRawRasterBand\">\n",
            number + 1
        );
        text += &of_band(field, scene, raster.place_of_band(number));
        text += &format!(
            "    <SourceFilename relativeToVRT=\"1\">{}</SourceFilename>\n    <ImageOffset>{}</ImageOffset>\n    \
             <PixelOffset>{pixel}</PixelOffset>\n    <LineOffset>{line}</LineOffset>\n    \
             <ByteOrder>LSB</ByteOrder>\n  </VRTRasterBand>\n",
            escape(&beside(data_file)),
            each * u128::from(number / bands) + band * u128::from(number % bands),
        );
    }
    text += "</VRTDataset>\n";
    Ok(text.into_bytes())
}

fn gdal_type(field: &Field) -> FormatResult<&'static str> {
    Ok(match (field.datatype.kind(), field.datatype.size()) {
        (Kind::Unsigned, 1) => "Byte",
        (Kind::Unsigned, 2) => "UInt16",
        (Kind::Unsigned, 4) => "UInt32",
        (Kind::Unsigned, _) => "UInt64",
        (Kind::Signed, 1) => return Err(Unrepresentable::new("older versions of GDAL have no 8-bit signed integers")),
        (Kind::Signed, 2) => "Int16",
        (Kind::Signed, 4) => "Int32",
        (Kind::Signed, _) => "Int64",
        (Kind::Float, 4) => "Float32",
        (Kind::Float, _) => "Float64",
        (Kind::Bytes, _) => return Err(Unrepresentable::bytes()),
    })
}

/// Checks whether an `.nhdr` or `.mhd` can describe a field of an array of this rank; returns the reason if not.
pub fn check_image(field: &Field, rank: usize) -> FormatResult<()> {
    if field.values_per_cell.is_none() {
        return Err(Unrepresentable::varying_cells());
    }
    if field.is_bytes() {
        return Err(Unrepresentable::bytes());
    }
    if rank == 0 || rank + usize::from(field.values_per_cell != Some(1)) > 16 {
        return Err(Unrepresentable::new("an image has 1 to 16 axes"));
    }
    Ok(())
}

/// The lengths of an image's axes, fastest first, without the channels.
struct Image {
    lengths: Vec<u64>,
    /// Number of values of a pixel that are adjacent: several values per cell, or a last axis of bands.
    channels: Option<u64>,
    /// Whether the channels are an axis of the array.
    is_axis: bool,
}

impl Image {
    fn of(column: &Column, scene: &Scene) -> FormatResult<Self> {
        check_image(&column.field, column.shape.len())?;
        let mut lengths: Vec<u64> = column.shape.iter().rev().copied().collect();
        if let Some(values @ 2..) = column.field.values_per_cell {
            return Ok(Image { lengths, channels: Some(values.into()), is_axis: false });
        }
        let is_last = scene.band_axis.is_some_and(|axis| axis + 1 == lengths.len());
        let channels = (is_last && lengths.len() > 1).then(|| lengths.remove(0));
        Ok(Image { lengths, channels, is_axis: true })
    }
}

/// Returns the detached NRRD header of a column's raw, row-major file. NRRD lists the fastest axis first.
pub fn nhdr(column: &Column, scene: &Scene, data_file: &str) -> FormatResult<Vec<u8>> {
    let field = &column.field;
    let image = Image::of(column, scene)?;
    let mut sizes: Vec<String> = image.lengths.iter().map(u64::to_string).collect();
    let mut kinds = vec!["domain"; sizes.len()];
    if let Some(channels) = image.channels {
        sizes.insert(0, channels.to_string());
        let is_colour = |colours: &[&str]| {
            let found = scene.bands.each().map(|band| band.colour.as_deref());
            found.eq(colours.iter().map(|&colour| Some(colour)))
        };
        kinds.insert(
            0,
            match channels {
                _ if !image.is_axis => "list",
                3 if is_colour(&["Red", "Green", "Blue"]) => "RGB-color",
                4 if is_colour(&["Red", "Green", "Blue", "Alpha"]) => "RGBA-color",
                _ => "vector",
            },
        );
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
    text += &format!("data file: {}\n", one_line(&beside(data_file)));
    Ok(text.into_bytes())
}

/// Returns whether a MetaImage header can name a file: readers interpret a name with `%` as a pattern of numbered
/// files, and would find other files.
pub fn can_mhd_name(data_file: &str) -> bool {
    !data_file.contains('%')
}

/// Returns the MetaImage header of a column's raw, row-major file. MetaImage lists the fastest axis first too.
pub fn mhd(column: &Column, scene: &Scene, data_file: &str) -> FormatResult<Vec<u8>> {
    let field = &column.field;
    let image = Image::of(column, scene)?;
    let sizes: Vec<String> = image.lengths.iter().map(u64::to_string).collect();
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
    if let Some(channels) = image.channels {
        text += &format!("ElementNumberOfChannels = {channels}\n");
    }
    // The file's name must be last in the header.
    text += &format!("ElementType = {element}\nElementDataFile = {}\n", one_line(&beside(data_file)));
    Ok(text.into_bytes())
}

/// Returns the name of a file in the same folder as a header refers to it. Readers drop blanks at the start of a name,
/// and would open another file; MetaImage's reader interprets `=` and `~`.
fn beside(data_file: &str) -> Cow<'_, str> {
    if data_file.starts_with(|first: char| !first.is_alphanumeric()) {
        format!("./{data_file}").into()
    } else {
        data_file.into()
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;

    use super::*;
    use crate::content::compose::Repeat;
    use crate::geo::bands::Band;
    use std::sync::Arc;

    fn column(datatype: Datatype, shape: &[u64], values: u32) -> Column {
        let field = Field::new("a", datatype).with_values_per_cell(Some(values));
        let length = shape.iter().product::<u64>() * field.cell_size().unwrap();
        Column::fixed(field, shape.to_vec(), Arc::new(Repeat::zeros(length)))
    }

    #[test]
    fn headers_list_the_fastest_axis_first() {
        let plain = Scene::default();
        let text =
            String::from_utf8(nhdr(&column(Datatype::Float32, &[2, 3, 4], 1), &plain, "a.f32").unwrap()).unwrap();
        assert!(text.contains("type: float\ndimension: 3\nsizes: 4 3 2\n"), "{text}");
        assert!(text.ends_with("endian: little\ndata file: a.f32\n"), "{text}");
        let text = String::from_utf8(nhdr(&column(Datatype::UInt8, &[2, 3], 3), &plain, "a.u8").unwrap()).unwrap();
        assert!(text.contains("sizes: 3 3 2\nkinds: list domain domain\n") && !text.contains("endian"), "{text}");
        let text = String::from_utf8(mhd(&column(Datatype::Int16, &[2, 3, 4], 2), &plain, "a.i16").unwrap()).unwrap();
        assert!(text.contains("DimSize = 4 3 2\nElementNumberOfChannels = 2\nElementType = MET_SHORT\n"), "{text}");
        assert!(text.ends_with("ElementDataFile = a.i16\n"), "{text}");
    }

    #[test]
    fn a_vrt_says_where_each_band_begins() {
        let column = column(Datatype::UInt16, &[2, 3, 4], 1);
        let text = String::from_utf8(vrt(&column, &Scene::default(), "a<\".u16").unwrap()).unwrap();
        assert!(text.contains("<ImageOffset>24</ImageOffset>\n    <PixelOffset>2<"), "{text}");
        assert!(text.contains("<LineOffset>8</LineOffset>"), "{text}");
        assert!(text.contains(">a&lt;&quot;.u16</SourceFilename>"), "{text}");
        let text = String::from_utf8(vrt(&column, &Scene::default(), " a.u16").unwrap()).unwrap();
        assert!(text.contains(">./ a.u16</SourceFilename>"), "{text}");
    }

    #[test]
    fn a_last_axis_of_bands_are_channels() {
        let scene = Scene { band_axis: Some(2), ..Scene::default() };
        let picture = column(Datatype::UInt8, &[3, 5, 4], 1);
        let text = String::from_utf8(nhdr(&picture, &scene, "a.u8").unwrap()).unwrap();
        assert!(text.contains("sizes: 4 5 3\nkinds: vector domain domain\n"), "{text}");
        let text = String::from_utf8(mhd(&picture, &scene, "a.u8").unwrap()).unwrap();
        assert!(
            text.contains("NDims = 2\n") && text.contains("DimSize = 5 3\nElementNumberOfChannels = 4\n"),
            "{text}"
        );
        let text = String::from_utf8(vrt(&picture, &scene, "a.u8").unwrap()).unwrap();
        assert!(text.contains("rasterXSize=\"5\" rasterYSize=\"3\""), "{text}");
        assert!(text.contains("<ImageOffset>3</ImageOffset>\n    <PixelOffset>4<"), "{text}");
    }

    #[test]
    fn vrt_omits_padding_and_describes_bands() {
        let band = Band {
            description: Some("<a>".into()),
            scale: Some(0.5),
            offset: Some(-1e-7),
            palette: vec![[1, 2, 3, 255]],
            categories: vec!["sea & land".into()],
            ..Band::default()
        };
        let scene = Scene { samples: Some(3), lines: Some(2), bands: vec![band].into(), ..Scene::default() };
        let mut column = column(Datatype::Int16, &[4, 5], 1);
        column.field.no_data = Some(vec![255, 255]);
        let text = String::from_utf8(vrt(&column, &scene, "a").unwrap()).unwrap();
        for part in [
            "rasterXSize=\"3\" rasterYSize=\"2\"",
            "<LineOffset>10<",
            "<Description>&lt;a&gt;<",
            "<NoDataValue>-1<",
            "<Offset>-0.0000001</Offset>\n    <Scale>0.5<",
            "<Entry c1=\"1\" c2=\"2\" c3=\"3\" c4=\"255\"/>",
            "<Category>sea &amp; land<",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn complex_numbers_are_one_band() {
        let scene = Scene { is_complex: true, ..Scene::default() };
        let text = String::from_utf8(vrt(&column(Datatype::Float32, &[2, 3, 4], 2), &scene, "a").unwrap()).unwrap();
        assert!(text.contains("dataType=\"CFloat32\" band=\"2\"") && !text.contains("band=\"3\""), "{text}");
        assert!(text.contains("<ImageOffset>96</ImageOffset>\n    <PixelOffset>8<"), "{text}");
    }

    #[test]
    fn unsupported_columns_are_refused() {
        assert!(check_vrt(&Field::new("a", Datatype::Int8), 2).is_err());
        assert!(check_vrt(&Field::new("a", Datatype::Int16), 4).is_ok());
        assert!(check_vrt(&Field::new("a", Datatype::Int16).with_values_per_cell(Some(2)), 3).is_err());
        assert!(check_image(&Field::new("a", Datatype::StringAscii), 2).is_err());
        assert!(check_image(&Field::new("a", Datatype::Int16).with_values_per_cell(None), 2).is_err());
        let wide = column(Datatype::UInt8, &[1 << 20, 1 << 33], 1);
        assert!(vrt(&wide, &Scene::default(), "a").is_err());
    }
}
