//! A raster as an uncompressed BigTIFF: directories, followed by tiles, all of the same length, or by strips with as
//! many lines as a tile of the array. The first directory describes the image, each further directory one of
//! its overviews.
//!
//! * If the width and height of the array's tiles are multiples of 16, as TIFF requires, they become the TIFF's tiles;
//!   those on the edge are padded. Otherwise each row of tiles is a strip; a very long one is divided into tiles of
//!   about the size of the array's.
//! * If the bands of a pixel are adjacent in the array, they are also adjacent in the TIFF; otherwise the TIFF has one
//!   band after the other.
//! * GeoTIFF: the EPSG code of the coordinate system. A projected system without one is stored as its well-known text,
//!   as Esri and GDAL write it, a geographic one as its ellipsoid and prime meridian; the PAM file has all of such a
//!   system, as of compound ones. Pixels are areas, or points if the metadata say so.
//! * The value that marks missing data, if all bands have the same, and the descriptions and metadata of bands, are in
//!   GDAL's tags. Everything else that GDAL knows of a raster is in the PAM file beside the image ([`pam_beside`]).
//! * An image pyramid has a directory for each plane, with those of its smaller levels as SubIFDs, and OME-XML.
//!
//! The order is that of a Cloud Optimized GeoTIFF: all directories precede all tiles. The directory of the image comes
//! first, but its tiles last, after the tiles of all overviews from the smallest on. A program that copies the whole
//! file reads the array about four times: for the smallest overview, for the largest, which halves the image,
//! for all overviews between, and for the image itself (`overviews.rs`). In a large file, zeros lie before the tiles of each overview,
//! so that reading ahead computes none of them.
//!
//! Sources: TIFF 6.0 and the BigTIFF design; Adobe's TIFF Technical Note 1 for SubIFDs; OGC GeoTIFF 1.1; GDAL's GTiff
//! driver for tags 42112 and 42113; the OME-TIFF specification.

mod directory;
mod geo;
mod images;
mod ome;
mod overviews;
mod page;
mod pyramid;
mod sampling;
mod tiles;

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::markup::escape;
use tilefs_format::datatype::Datatype;

use crate::column::boxes::SpacedBoxes;
use crate::column::{Field, FormatResult, Unrepresentable};
use crate::geo::bands::Band;
use crate::geo::pam_metadata::MetadataDomain;
use crate::raster::pam_text::pam_file;
use crate::raster::{Interleave, Raster, Scene, line_and_sample_axes};
use directory::{HEADER, REDUCED, SUBFILE_TYPE, TagValues};
use images::Images;
pub use overviews::OverviewStore;
use overviews::overviews;
use page::{PageProperties, Photometric};
pub use pyramid::{check_levels, ome_tiff};
use tiles::{ImageAxes, TileBytes, TileLayout, check_size, start_of_tiles, too_large};

/// Zeros after the tiles of an image with overviews. GDAL reads the last bytes of each file that it opens, up to 8 KiB, and
/// a tile would be decoded for them.
const END_PADDING: u64 = 16 << 10;

/// Returns the number of zeros before the tiles of an overview of an image with this many bytes, if it is large.
/// `is_first`: the tiles of no other overview come before.
///
/// Linux reads up to 1 MiB ahead of a program that reads the directories or one overview, and file(1) reads the first
/// 7 MiB. For the overview that follows, a large part of the array would be decoded.
fn gap_before_overview(image: u64, is_first: bool) -> u64 {
    let most = if is_first { 9 << 20 } else { 2 << 20 };
    if image < 64 << 20 { 0 } else { (image / 128).min(most) }
}

/// Checks whether a TIFF can hold a field of an array of this rank; returns the reason if not.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    if rank < 2 {
        return Err(Unrepresentable::new("an image has two axes"));
    }
    if field.is_bytes() {
        return Err(Unrepresentable::bytes());
    }
    Raster::check(field, rank)
}

/// Returns the image of a column whose cells can be read box by box, with its overviews, whose tiles are kept in `store`.
/// No cell is read.
pub fn tiff(cells: &Arc<dyn SpacedBoxes>, scene: &Scene, store: OverviewStore) -> FormatResult<Arc<dyn Content>> {
    let field = cells.field();
    let axes = axes(cells.shape().len(), scene.band_axis, is_contiguous(cells, scene)?).ok_or_else(too_large)?;
    let page = page(cells, scene, &axes)?;
    let overviews = overviews(cells, &page, &axes, store)?;
    let image: (PageProperties, Arc<dyn Content>) =
        (page.clone(), Arc::new(TileBytes::new(cells.clone(), page.layout.clone())));
    let levels: Vec<(PageProperties, Arc<dyn Content>)> = [image].into_iter().chain(overviews).collect();
    let no_data = scene.common_no_data(field, page.bands.into());
    let directory = |level: usize, start: u64| {
        let page = &levels[level].0;
        let mut directory = page.directory(0..page.layout.count(), start);
        if level == 0 {
            geo::add(&mut directory, scene.place.as_ref(), scene.has_points());
            if let Some(text) = gdal_items(scene, page.bands) {
                directory.add(42112, TagValues::text(&text));
            }
        } else {
            directory.add(SUBFILE_TYPE, TagValues::Long(vec![REDUCED]));
        }
        if let Some(no_data) = &no_data {
            directory.add(42113, TagValues::text(no_data));
        }
        directory
    };
    let mut end = HEADER.len() as u64;
    let mut places = Vec::new();
    for level in 0..levels.len() {
        places.push(end);
        end = directory(level, 0).length().and_then(|length| end.checked_add(length)).ok_or_else(too_large)?;
    }
    let image_bytes = page.layout.bytes();
    let (mut starts, mut tiles) = (vec![0; levels.len()], Vec::new());
    for (level, ((page, content), place)) in levels.iter().zip(&mut starts).enumerate().rev() {
        let gap = if level > 0 { gap_before_overview(image_bytes, tiles.is_empty()) } else { 0 };
        let start = start_of_tiles(end.saturating_add(gap), &page.layout).ok_or_else(too_large)?;
        tiles.push((start, content.clone()));
        *place = start;
        end = start + page.layout.bytes();
    }
    let mut head: Vec<Arc<dyn Content>> = vec![Arc::new(HEADER.to_vec())];
    for (level, start) in starts.into_iter().enumerate() {
        let next = places.get(level + 1).copied().unwrap_or(0);
        head.append(&mut directory(level, start).contents(places[level], next));
    }
    let padding = if tiles.len() > 1 { END_PADDING } else { 0 };
    Ok(Arc::new(Images::new(head, tiles, padding)))
}

/// Returns whether the bands of a pixel are adjacent, rather than being a plane each.
fn is_contiguous(cells: &Arc<dyn SpacedBoxes>, scene: &Scene) -> FormatResult<bool> {
    let field = scene.of_pixels(cells.field());
    check(&field, cells.shape().len())?;
    Ok(Raster::of(&field, cells.shape(), scene.band_axis)?.interleave == Interleave::Pixels)
}

/// Returns the form of the image.
fn page(cells: &Arc<dyn SpacedBoxes>, scene: &Scene, axes: &ImageAxes) -> FormatResult<PageProperties> {
    let field = &*scene.of_pixels(cells.field());
    let raster = Raster::of(field, cells.shape(), scene.band_axis)?;
    let bands = u16::try_from(raster.bands).ok().filter(|&bands| bands > 0).ok_or_else(too_large)?;
    check_size([raster.samples, raster.lines])?;
    let is_contiguous = raster.interleave == Interleave::Pixels;
    let is_picture = are_colours(scene) || is_contiguous && scene.bands.kinds().all(|band| band.colour.is_none());
    let photometric = match palette(field, scene) {
        Some(colours) if bands == 1 => Photometric::Palette(colours),
        _ if field.datatype == Datatype::UInt8 && (3..=4).contains(&bands) && is_picture => Photometric::Rgb,
        _ => Photometric::Grey,
    };
    let layout = Arc::new(TileLayout::of(&**cells, axes.clone()).ok_or_else(too_large)?);
    let (datatype, is_complex) = (field.datatype, scene.is_complex);
    Ok(PageProperties { layout, datatype, is_complex, bands, is_contiguous, photometric })
}

/// Returns the PAM file beside the image, which GDAL reads with it; `None` if the tags of the image say everything.
///
/// # Errors
/// As for [`tiff`].
pub fn pam_beside(field: &Field, shape: &[u64], scene: &Scene) -> FormatResult<Option<String>> {
    let pixels = scene.of_pixels(field);
    check(&pixels, shape.len())?;
    let bands = Raster::of(&pixels, shape, scene.band_axis)?.bands;
    let is_beyond_tags = |band: &Band| {
        let has_opacity = band.palette.iter().any(|[.., opacity]| *opacity != 255);
        let has_lists = !band.categories.is_empty() || !band.statistics.is_empty() || band.attribute_table.is_some();
        has_opacity || has_lists || !band.metadata.iter().all(MetadataDomain::has_tag_form)
    };
    let has_no_data = !scene.have_no_data(field, bands, |number| number.is_none());
    let is_needed = has_no_data && scene.common_no_data(field, bands).is_none()
        || scene.control_points.is_some()
        || !scene.metadata.iter().all(MetadataDomain::has_tag_form)
        || scene.place.as_ref().is_some_and(|place| !geo::holds(place))
        || scene.bands.kinds().any(is_beyond_tags);
    Ok(is_needed.then(|| pam_file(field, scene, bands)))
}

/// Returns the role of each axis of an array of rank `rank` in its image.
fn axes(rank: usize, band_axis: Option<usize>, is_contiguous: bool) -> Option<ImageAxes> {
    // With two axes, the bands are the values of a cell.
    let band_axis = if rank == 2 { None } else { Some(band_axis.unwrap_or(0)) };
    let [lines, samples] = line_and_sample_axes(rank, band_axis)?;
    let planes = band_axis.filter(|_| !is_contiguous);
    Some(ImageAxes { lines, samples, bands: band_axis.filter(|_| is_contiguous), planes: planes.into_iter().collect() })
}

fn are_colours(scene: &Scene) -> bool {
    let colours = scene.bands.each().take(3).map(|band| band.colour.as_deref());
    colours.eq(["Red", "Green", "Blue"].map(Some))
}

/// Returns the colours of the values of the only band in TIFF's form, which has no opacity; `None` if there are none.
fn palette(field: &Field, scene: &Scene) -> Option<Vec<u16>> {
    let count = match field.datatype {
        Datatype::UInt8 => 1 << 8,
        Datatype::UInt16 => 1 << 16,
        _ => return None,
    };
    let palette = &scene.bands.get(0).filter(|_| scene.bands.count() == 1)?.palette;
    let part = |value: usize, part: usize| {
        let part = palette.get(value).map_or(0, |colour| colour[part].clamp(0, 255));
        // From 8 bits to 16.
        part.unsigned_abs() * 257
    };
    let of_part = |place: usize| (0..count).map(move |value| part(value, place));
    (!palette.is_empty()).then(|| (0..3).flat_map(of_part).collect())
}

/// Returns the metadata of the raster, and the descriptions and metadata of the bands, in GDAL's tag; `None` if there are
/// none.
fn gdal_items(scene: &Scene, bands: u16) -> Option<String> {
    let has_keys = geo::has_keys(scene.place.as_ref());
    // Escaped twice because GDAL unescapes twice.
    let escape = |text: &str| escape(&escape(text));
    let of_domains = |domains: &[MetadataDomain], of: &str| -> String {
        let items = domains.iter().filter(|domain| domain.has_tag_form()).flat_map(|domain| {
            let place =
                if domain.name.is_empty() { String::new() } else { format!(" domain=\"{}\"", escape(&domain.name)) };
            let is_own = |(key, _): &&(String, String)| !(has_keys && domain.name.is_empty() && key == "AREA_OR_POINT");
            let items = domain.items().iter().filter(is_own);
            items.map(move |(key, value)| {
                format!("  <Item name=\"{}\"{of}{place}>{}</Item>\n", escape(key), escape(value))
            })
        });
        items.collect()
    };
    // The form of the image says that it has a palette, or a single grey band.
    let is_beyond_form = |colour: &String| colour != "Palette" && !(bands == 1 && colour == "Gray");
    let items = |(number, band): (usize, &Band)| {
        let properties = [
            ("DESCRIPTION", "description", band.description.clone()),
            ("OFFSET", "offset", band.offset.map(|offset| offset.to_string())),
            ("SCALE", "scale", band.scale.map(|scale| scale.to_string())),
            ("UNITTYPE", "unittype", band.unit.clone()),
            ("COLORINTERP", "colorinterp", band.colour.clone().filter(is_beyond_form)),
        ];
        let item = move |(name, role, value): (&str, &str, Option<String>)| {
            let value = escape(&value?);
            Some(format!("  <Item name=\"{name}\" sample=\"{number}\" role=\"{role}\">{value}</Item>\n"))
        };
        let described: String = properties.into_iter().filter_map(item).collect();
        described + &of_domains(&band.metadata, &format!(" sample=\"{number}\""))
    };
    let of_bands = scene.bands.each().take(bands.into()).enumerate().map(items);
    let text: String = [of_domains(&scene.metadata, "")].into_iter().chain(of_bands).collect();
    (!text.is_empty()).then(|| format!("<GDALMetadata>\n{text}</GDALMetadata>\n"))
}

#[cfg(test)]
mod tests;
