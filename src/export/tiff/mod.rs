//! A raster as an uncompressed BigTIFF: one directory, and behind it the tiles, all of one length or, as strips, of as many
//! lines as a tile of the array has.
//!
//! * Where the array's tiles are a multiple of 16 wide and high, which TIFF wants, they are the TIFF's; those on the edge
//!   are filled up. Otherwise each row of tiles is a strip.
//! * Bands of which all of a pixel lie together in the array do so here; others lie one behind the other.
//! * GeoTIFF: the EPSG's number of the coordinate system. A projected system without one is its well-known text, as Esri
//!   and GDAL write it, a geographic one its ellipsoid and meridian. Pixels are areas.
//! * The value that marks missing ones, and what is known of each band, are in GDAL's tags.
//!
//! Sources: TIFF 6.0 and the BigTIFF design; OGC GeoTIFF 1.1; GDAL's GTiff driver for tags 42112 and 42113.

mod directory;
mod geo;
mod tiles;

use std::sync::Arc;

use super::boxes::Boxes;
use super::column::{Field, FormatResult, Unrepresentable};
use super::compose::Concat;
use super::content::Content;
use super::number;
use super::pam::Band;
use super::raster::{Interleave, Raster, Scene};
use crate::format::datatype::Kind;
use directory::{Directory, Value};
use tiles::{Computed, Layout, Tiles};

/// Whether a TIFF can hold a field of an array with so many axes, and if not why.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    if rank < 2 {
        return Err(Unrepresentable::new("a picture has two axes"));
    }
    if field.is_bytes() {
        return Err(Unrepresentable::new("a picture has no text or blobs"));
    }
    Raster::check(field, rank)
}

/// Tags that more than one place needs.
const STRIPS: [u16; 2] = [273, 279];
const TILES: [u16; 2] = [324, 325];

/// The picture of a column whose cells can be had box by box. No cell is read.
pub fn tiff(cells: &Arc<dyn Boxes>, scene: &Scene) -> FormatResult<Arc<dyn Content>> {
    let field = cells.field();
    check(field, cells.shape().len())?;
    let raster = Raster::of(field, cells.shape(), scene.band_axis)?;
    let too_large = || Unrepresentable::new("a TIFF has up to 2^31-1 columns and lines, 65535 bands and 2^63 bytes");
    let [samples, lines] = [raster.samples, raster.lines].map(|length| u32::try_from(length).ok());
    let (Some(samples), Some(lines), Ok(bands)) = (samples, lines, u16::try_from(raster.bands)) else {
        return Err(too_large());
    };
    if samples == 0 || lines == 0 || bands == 0 || samples > i32::MAX as u32 || lines > i32::MAX as u32 {
        return Err(Unrepresentable::new(
            "a TIFF has a column, a line and a band at least, and up to 2^31-1 of the first two",
        ));
    }
    let layout = Layout::of(&raster, &**cells, scene.band_axis).ok_or_else(too_large)?;
    let bits = 8 * field.datatype.size() as u16;
    let form = match field.datatype.kind() {
        Kind::Float => 3,
        Kind::Signed => 2,
        _ => 1,
    };
    let is_contiguous = raster.interleave == Interleave::Pixels;
    let is_picture = are_colours(scene) || is_contiguous && scene.bands.iter().all(|band| band.colour.is_none());
    let is_rgb = bits == 8 && form == 1 && (3..=4).contains(&bands) && is_picture;
    let mut directory = Directory::default();
    directory.add(256, Value::Long(vec![samples]));
    directory.add(257, Value::Long(vec![lines]));
    directory.add(258, Value::Short(vec![bits; bands.into()]));
    directory.add(259, Value::Short(vec![1]));
    directory.add(262, Value::Short(vec![if is_rgb { 2 } else { 1 }]));
    directory.add(277, Value::Short(vec![bands]));
    directory.add(284, Value::Short(vec![if is_contiguous || bands == 1 { 1 } else { 2 }]));
    directory.add(339, Value::Short(vec![form; bands.into()]));
    let extra = bands - if is_rgb { 3 } else { 1 };
    if extra > 0 {
        // The fourth of a picture is its opacity, of others nothing is said.
        directory.add(338, Value::Short(vec![if is_rgb { 2 } else { 0 }; extra.into()]));
    }
    let [offsets, counts] = match layout.tile() {
        Some([width, height]) => {
            directory.add(322, Value::Long(vec![width]));
            directory.add(323, Value::Long(vec![height]));
            TILES
        }
        None => {
            directory.add(278, Value::Long(vec![layout.lines()]));
            STRIPS
        }
    };
    if let Some(place) = &scene.place {
        geo::add(&mut directory, place);
    }
    if let Some(text) = of_bands(scene, bands) {
        directory.add(42112, Value::Text(text));
    }
    if let Some(no_data) = field.no_data.as_deref().and_then(|value| number::text(field.datatype, value)) {
        directory.add(42113, Value::Text(no_data));
    }
    let layout = Arc::new(layout);
    let numbers = |of: fn(&Layout, u64, u64) -> u64, start: u64| {
        let layout = layout.clone();
        Value::Computed(Arc::new(Computed::new(layout.count(), move |number| of(&layout, number, start))))
    };
    directory.add(counts, numbers(|layout, number, _| layout.length(number), 0));
    directory.add(offsets, numbers(|_, _, _| 0, 0));
    // Where the tiles begin does not change the directory's length.
    let start = directory.length().and_then(|length| length.checked_next_multiple_of(ALIGNMENT));
    let start = start.filter(|start| start.checked_add(layout.bytes()).is_some_and(|end| end <= i64::MAX as u64));
    let start = start.ok_or_else(too_large)?;
    directory.replace(offsets, numbers(|layout, number, start| start + layout.offset(number), start));
    let mut parts = directory.contents(start);
    parts.push(Arc::new(Tiles::new(cells.clone(), layout)));
    Ok(Arc::new(Concat::new(parts)))
}

/// The tiles begin at a multiple of this, so that a reader's pages hold whole values.
const ALIGNMENT: u64 = 64;

fn are_colours(scene: &Scene) -> bool {
    let colours = scene.bands.iter().take(3).map(|band| band.colour.as_deref());
    colours.eq(["Red", "Green", "Blue"].map(Some))
}

/// What is known of the bands, as GDAL writes it into its tag; `None` where that is nothing.
fn of_bands(scene: &Scene, bands: u16) -> Option<String> {
    let escape = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
    };
    let items = |(number, band): (usize, &Band)| {
        let said = [
            ("DESCRIPTION", "description", band.description.clone()),
            ("OFFSET", "offset", band.offset.map(|offset| offset.to_string())),
            ("SCALE", "scale", band.scale.map(|scale| scale.to_string())),
            ("UNITTYPE", "unittype", band.unit.clone()),
            ("COLORINTERP", "colorinterp", band.colour.clone().filter(|colour| colour != "Palette")),
        ];
        let item = move |(name, role, value): (&str, &str, Option<String>)| {
            // GDAL undoes it twice.
            let value = escape(&escape(&value?));
            Some(format!("  <Item name=\"{name}\" sample=\"{number}\" role=\"{role}\">{value}</Item>\n"))
        };
        said.into_iter().filter_map(item).collect::<String>()
    };
    let text: String = scene.bands.iter().take(bands.into()).enumerate().map(items).collect();
    (!text.is_empty()).then(|| format!("<GDALMetadata>\n{text}</GDALMetadata>\n"))
}

#[cfg(test)]
mod tests;
