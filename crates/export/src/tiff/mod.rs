//! A raster as an uncompressed BigTIFF: one directory, and behind it the tiles, all of one length or, as strips, of as many
//! lines as a tile of the array has.
//!
//! * Where the array's tiles are a multiple of 16 wide and high, which TIFF wants, they are the TIFF's; those on the edge
//!   are filled up. Otherwise each row of tiles is a strip; one that would be very long is cut into tiles of
//!   about the size of the array's.
//! * Bands of which all of a pixel lie together in the array do so here; others lie one behind the other.
//! * GeoTIFF: the EPSG's number of the coordinate system. A projected system without one is its well-known text, as Esri
//!   and GDAL write it, a geographic one its ellipsoid and meridian. Pixels are areas.
//! * The value that marks missing ones, and what is known of each band, are in GDAL's tags.
//! * A pyramid of pictures has a directory for each plane, with those of its smaller levels as SubIFDs, and OME-XML.
//!
//! Sources: TIFF 6.0 and the BigTIFF design; Adobe's TIFF Technical Note 1 for SubIFDs; OGC GeoTIFF 1.1; GDAL's GTiff
//! driver for tags 42112 and 42113; the OME-TIFF specification.

mod directory;
mod geo;
mod ome;
mod page;
mod pyramid;
mod tiles;

use std::sync::Arc;

use tilefs_format::datatype::Datatype;

use super::boxes::Boxes;
use super::column::{Field, FormatResult, Unrepresentable};
use super::compose::{Concat, Repeat};
use super::content::Content;
use super::number;
use super::pam::Band;
use super::raster::{Interleave, Raster, Scene, line_and_sample_axes};
use super::xml::escape;
use directory::{HEADER, Value};
use page::{Page, Photometric};
pub use pyramid::{check_levels, ome_tiff};
use tiles::{Axes, Layout, Tiles};

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

/// The picture of a column whose cells can be had box by box. No cell is read.
pub fn tiff(cells: &Arc<dyn Boxes>, scene: &Scene) -> FormatResult<Arc<dyn Content>> {
    let field = cells.field();
    check(field, cells.shape().len())?;
    let raster = Raster::of(field, cells.shape(), scene.band_axis)?;
    let bands = u16::try_from(raster.bands).ok().filter(|&bands| bands > 0).ok_or_else(too_large)?;
    check_size([raster.samples, raster.lines])?;
    let is_contiguous = raster.interleave == Interleave::Pixels;
    let is_picture = are_colours(scene) || is_contiguous && scene.bands.iter().all(|band| band.colour.is_none());
    let photometric = match palette(field, scene) {
        Some(colours) if bands == 1 => Photometric::Palette(colours),
        _ if field.datatype == Datatype::UInt8 && (3..=4).contains(&bands) && is_picture => Photometric::Rgb,
        _ => Photometric::Grey,
    };
    let axes = axes(cells.shape().len(), scene.band_axis, is_contiguous).ok_or_else(too_large)?;
    let layout = Arc::new(Layout::of(&**cells, axes).ok_or_else(too_large)?);
    let page = Page { layout: layout.clone(), datatype: field.datatype, bands, is_contiguous, photometric };
    let directory = |start: u64| {
        let mut directory = page.directory(0..layout.count(), start);
        if let Some(place) = &scene.place {
            geo::add(&mut directory, place);
        }
        if let Some(text) = of_bands(scene, bands) {
            directory.add(42112, Value::text(&text));
        }
        if let Some(no_data) = field.no_data.as_deref().and_then(|value| number::text(field.datatype, value)) {
            directory.add(42113, Value::text(&no_data));
        }
        directory
    };
    let end = directory(0).length().and_then(|length| length.checked_add(HEADER.len() as u64)).ok_or_else(too_large)?;
    let start = start_of_tiles(end, &layout).ok_or_else(too_large)?;
    let mut parts: Vec<Arc<dyn Content>> = vec![Arc::new(HEADER.to_vec())];
    parts.append(&mut directory(start).contents(HEADER.len() as u64, 0));
    parts.push(Arc::new(Repeat::zeros(start - end)));
    parts.push(Arc::new(Tiles::new(cells.clone(), layout)));
    Ok(Arc::new(Concat::new(parts)))
}

fn too_large() -> Unrepresentable {
    Unrepresentable::new("a TIFF has a band at least and up to 65535, and up to 2^63 bytes")
}

/// Whether a picture may have so many columns and lines.
fn check_size(size: [u64; 2]) -> FormatResult<()> {
    match size.iter().all(|length| (1..=i32::MAX as u64).contains(length)) {
        true => Ok(()),
        false => Err(Unrepresentable::new("a TIFF has a column and a line at least, and up to 2^31-1 of each")),
    }
}

/// What the axes of an array of so many are in its picture.
fn axes(rank: usize, band_axis: Option<usize>, is_contiguous: bool) -> Option<Axes> {
    // Of two axes none is that of the bands; these are several values a cell.
    let band_axis = if rank == 2 { None } else { Some(band_axis.unwrap_or(0)) };
    let [lines, samples] = line_and_sample_axes(rank, band_axis)?;
    let planes = band_axis.filter(|_| !is_contiguous);
    Some(Axes { lines, samples, bands: band_axis.filter(|_| is_contiguous), planes: planes.into_iter().collect() })
}

/// The first byte from `end` on where the tiles of a picture may begin; `None` where they then end too late.
fn start_of_tiles(end: u64, layout: &Layout) -> Option<u64> {
    let start = end.checked_next_multiple_of(ALIGNMENT)?;
    start.checked_add(layout.bytes()).filter(|&end| end <= i64::MAX as u64).map(|_| start)
}

/// The tiles begin at a multiple of this, so that a reader's pages hold whole values.
const ALIGNMENT: u64 = 64;

fn are_colours(scene: &Scene) -> bool {
    let colours = scene.bands.iter().take(3).map(|band| band.colour.as_deref());
    colours.eq(["Red", "Green", "Blue"].map(Some))
}

/// The colours of the values of the only band, as TIFF has them, which knows no opacity; `None` where there are none.
fn palette(field: &Field, scene: &Scene) -> Option<Vec<u16>> {
    let count = match field.datatype {
        Datatype::UInt8 => 1 << 8,
        Datatype::UInt16 => 1 << 16,
        _ => return None,
    };
    let [Band { palette, .. }] = &scene.bands[..] else { return None };
    let part = |value: usize, part: usize| {
        let part = palette.get(value).map_or(0, |colour| colour[part].clamp(0, 255));
        // From 8 bits to 16.
        part.unsigned_abs() * 257
    };
    let of_part = |place: usize| (0..count).map(move |value| part(value, place));
    (!palette.is_empty()).then(|| (0..3).flat_map(of_part).collect())
}

/// What is known of the bands, as GDAL writes it into its tag; `None` where that is nothing.
fn of_bands(scene: &Scene, bands: u16) -> Option<String> {
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
