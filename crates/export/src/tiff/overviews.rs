//! The overviews of an image: smaller versions that a program reads instead of the whole image for a small copy.
//!
//! Each overview is an image of tiles or strips. A tile is computed when it is read: from the next larger overview if
//! that is known, or from only the tiles and chunks of the array that hold its pixels. A tile is kept in the cache of
//! indexes, and saved in the index folder if it takes long to compute. Memory: a tile per reader, and the cache.
//!
//! In the file, smaller overviews come first. A reader that goes on from one overview to the next will read all: then
//! those that are saved are computed one from the other, the largest from the array.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Inputs, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_reader::array::dense::{AxisSelection, IndexBox, Selection};
use tilefs_reader::array::{Context, IndexKey};

use super::page::PageProperties;
use super::sampling::{ImageSide, Sampling, Storing};
use super::tiles::{ImageAxes, TileBytes, TileLayout, too_large};
use crate::column::boxes::{Boxes, SpacedBoxes};
use crate::column::{Column, Field, FormatResult};

/// Maximum side of a tile, and its maximum size in bytes unless its pixels are very large.
const MOST_SIDE: u64 = 512;
const MOST_TILE: u64 = 1 << 20;

/// Minimum side of a tile: TIFF requires multiples of it.
const LEAST_SIDE: u64 = 16;

/// The least factor of an overview whose tiles each need so many chunks that these do not stay in the cache.
const LARGE_FACTOR: u64 = 16;

/// Maximum size in bytes of tiles that are computed as a whole and kept.
const MOST_KEPT: u64 = 4 << 20;

/// The first level whose tiles are saved: each of their pixels stands for 16 pixels of the image.
const FIRST_SAVED: usize = 2;

/// Keeps the tiles of the overviews of one image, in the cache of indexes and in the index folder.
pub struct OverviewStore {
    context: Arc<Context>,
    owner: u64,
    /// The level whose last tile was read last; 0 for none.
    ended: AtomicUsize,
    /// Whether a reader has gone on from one overview to the next.
    is_copied: AtomicBool,
}

impl OverviewStore {
    /// Creates the store of an image.
    pub fn new(context: Arc<Context>) -> Self {
        let owner = context.indexes.new_owner();
        OverviewStore { context, owner, ended: AtomicUsize::new(0), is_copied: AtomicBool::new(false) }
    }

    /// Notes that a tile of a level is read.
    fn note(&self, level: usize, is_first: bool, is_last: bool) {
        if is_first && self.ended.load(Ordering::Relaxed) == level + 1 {
            self.is_copied.store(true, Ordering::Relaxed);
        }
        if is_last {
            self.ended.store(level, Ordering::Relaxed);
        }
    }
}

/// The pixels of one overview as cells.
struct Overview {
    of: Arc<dyn SpacedBoxes>,
    sampling: Arc<Sampling>,
    level: usize,
    axes: ImageAxes,
    shape: Vec<u64>,
    /// The side of the largest square tile.
    side: u64,
    /// Whether the image has tiles, not strips.
    is_tiled: bool,
}

impl Overview {
    fn new(
        of: Arc<dyn SpacedBoxes>,
        sampling: Arc<Sampling>,
        level: usize,
        axes: ImageAxes,
        (side, is_tiled): (u64, bool),
    ) -> Self {
        let mut shape = of.shape().to_vec();
        let [samples, lines] = sampling.size(level);
        (shape[axes.samples], shape[axes.lines]) = (samples, lines);
        Overview { of, sampling, level, axes, shape, side, is_tiled }
    }
}

impl Boxes for Overview {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, sampling, level, axes, shape, side, is_tiled } = self;
        recorder.add::<Self>((&**sampling, level, axes, shape, side, is_tiled));
        of.record(recorder);
    }

    fn field(&self) -> &Field {
        self.of.field()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        let of_array = self.of.extents();
        let extent = [self.axes.samples, self.axes.lines].map(|axis| of_array.get(axis).copied().unwrap_or(1));
        let block = block(self.sampling.size(self.level), extent, 1 << self.level, self.side, self.is_tiled);
        let mut extents = vec![1; self.shape.len()];
        (extents[self.axes.samples], extents[self.axes.lines]) = (block[0], block[1]);
        extents
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let axes = cells.first.iter().zip(&cells.count).zip(self.of.shape()).enumerate();
        let axes = axes.map(|(axis, ((&first, &count), &length))| {
            let side = match axis {
                axis if axis == self.axes.samples => ImageSide::Columns,
                axis if axis == self.axes.lines => ImageSide::Lines,
                _ => return Ok(AxisSelection::contiguous(first, count)),
            };
            let pixels =
                (first..first.saturating_add(count)).map(|pixel| self.sampling.in_image(self.level, side, pixel));
            AxisSelection::of_positions(pixels, length)
        });
        self.of.spaced_column(&Selection::new(axes.collect::<Result<_>>()?)?)
    }
}

/// Returns the overviews of an image, largest first: the form of each, and its tiles. `axes` are the axes of `cells`.
///
/// # Errors
/// Fails if one of them is too large.
pub fn overviews(
    cells: &Arc<dyn SpacedBoxes>,
    image: &PageProperties,
    axes: &ImageAxes,
    store: OverviewStore,
) -> FormatResult<Vec<(PageProperties, Arc<dyn Content>)>> {
    let storing = storing(image);
    let sampling = Arc::new(Sampling::of(image.layout.size(), storing));
    let side = side_of_tile(image.layout.pixel());
    let form = (side, image.layout.tile().is_some());
    let level = |level| {
        let cells = Arc::new(Overview::new(cells.clone(), sampling.clone(), level, axes.clone(), form));
        let layout = TileLayout::of(&*cells, axes.clone());
        let layout = layout.and_then(|layout| match image.layout.tile().is_some() && !is_small(layout.size()) {
            true => layout.wider_than_image(),
            false => Some(layout),
        });
        let layout = Arc::new(layout.ok_or_else(too_large)?);
        Ok((PageProperties { layout: layout.clone(), ..image.clone() }, TileBytes::new(cells, layout)))
    };
    let levels: Vec<(PageProperties, TileBytes)> =
        (1..=sampling.overviews()).map(level).collect::<FormatResult<_>>()?;
    let first_saved = first_saved(&levels, store.context.saved.most_of_one());
    let cells_of_image = cells.shape().iter().copied().fold(1, u64::saturating_mul);
    let store = Arc::new(store);
    let mut all: Vec<(PageProperties, Arc<dyn Content>)> = Vec::new();
    let mut larger: Option<Arc<OverviewTiles>> = None;
    for (level, (page, tiles)) in (1..).zip(levels) {
        if page.layout.length(0) > MOST_KEPT {
            all.push((page, Arc::new(tiles)));
            larger = None;
            continue;
        }
        let first = larger.as_ref().map_or(0, |larger| larger.first.saturating_add(larger.tiles.layout().count()));
        let (sampling, store, inputs) = (sampling.clone(), store.clone(), OnceLock::new());
        let cells = if level >= first_saved { cells_of_image } else { 0 };
        let overview =
            Arc::new(OverviewTiles { level, sampling, tiles, store, first, cells, inputs, larger: larger.take() });
        larger = Some(overview.clone());
        all.push((page, overview));
    }
    Ok(all)
}

/// Returns how the pixels of an image are stored.
fn storing(image: &PageProperties) -> Storing {
    let [columns, _] = image.layout.size();
    let strip = [columns, image.layout.lines_of_strip().into()];
    Storing {
        is_contiguous: image.is_contiguous || image.bands == 1,
        value: image.bytes_of_value().into(),
        block: image.layout.tile().map_or(strip, |tile| tile.map(u64::from)),
    }
}

/// Returns the side of the largest square tile whose pixels have `pixel` bytes each.
fn side_of_tile(pixel: u64) -> u64 {
    let mut side = MOST_SIDE;
    while side > LEAST_SIDE && (side * side).saturating_mul(pixel) > MOST_TILE {
        side /= 2;
    }
    side
}

/// Returns the columns and lines of a tile of an overview of this size, by this factor, of an array with tiles of
/// `extent`. A tile has at most about as many pixels as a square of side `side`, and little padding.
///
/// A chunk of the array often has whole lines of its tile. If it does not stay in the cache, it is decoded again for
/// each tile of the overview with pixels of these lines. So the overview's tiles end where the array's tiles end, if
/// possible; otherwise they are wide if each needs many chunks.
///
/// An overview of an image with tiles has tiles, too, unless it is small or narrow: a Cloud Optimized GeoTIFF has no
/// strips, by which its validators understand tiles as wide as the image.
fn block(size: [u64; 2], extent: [u64; 2], factor: u64, side: u64, is_tiled: bool) -> [u64; 2] {
    let [columns, lines] = size;
    let most = side.saturating_mul(side);
    let steps = extent.map(|extent| step(extent, factor));
    let wide = extent[0].div_ceil(factor).max(side);
    let is_large = factor >= LARGE_FACTOR && steps[0].is_none_or(|step| step > wide);
    let wide = if is_large { most } else { wide }.min(most / LEAST_SIDE);
    let even = |length: u64, most: u64, step: Option<u64>, least: u64| {
        let own = length.div_ceil(length.div_ceil(most));
        let stepped = own.next_multiple_of(step.unwrap_or(least));
        let is_fit = stepped <= most && stepped <= length.next_multiple_of(least);
        if is_fit { stepped } else { own.next_multiple_of(least) }
    };
    // An image that is narrow or very low has strips, which need no padding.
    let is_strip = columns <= wide || lines < LEAST_SIDE && columns.saturating_mul(lines) <= most;
    let (width, least) = match is_strip && (is_small(size) || !is_tiled) {
        true => (columns, 1),
        false => (even(columns, wide, steps[0], LEAST_SIDE), LEAST_SIDE),
    };
    [width, even(lines, (most / width).max(1), steps[1], least)]
}

/// Returns whether an overview of this size may have strips: if no side is long, or it is narrow.
fn is_small(size: [u64; 2]) -> bool {
    size.iter().all(|&length| length <= MOST_SIDE) || size.iter().any(|&length| length < LEAST_SIDE)
}

/// Returns the least side in pixels that TIFF allows for a tile of an overview and that covers whole tiles of the
/// array; `None` if there is none.
fn step(extent: u64, factor: u64) -> Option<u64> {
    let pixels = extent.checked_div(factor).filter(|&pixels| pixels > 0 && extent.is_multiple_of(factor))?;
    let twos = pixels.trailing_zeros().min(LEAST_SIDE.trailing_zeros());
    pixels.checked_mul(LEAST_SIDE >> twos)
}

/// Returns the first level that takes at most `most` bytes with all later levels, but at least [`FIRST_SAVED`].
fn first_saved(levels: &[(PageProperties, TileBytes)], most: u64) -> usize {
    let mut bytes = 0u64;
    let fits = |(page, _): &&(PageProperties, TileBytes)| {
        bytes = bytes.saturating_add(page.layout.bytes());
        bytes <= most
    };
    let count = levels.iter().rev().take_while(fits).count();
    (levels.len() + 1 - count).max(FIRST_SAVED)
}

/// The tiles of one overview, end to end. They are computed when they are read.
struct OverviewTiles {
    level: usize,
    sampling: Arc<Sampling>,
    /// Computes tiles from the array.
    tiles: TileBytes,
    store: Arc<OverviewStore>,
    /// The number of the first tile among those of all overviews.
    first: u64,
    /// The number of cells of the image, or 0 if the tiles are not saved.
    cells: u64,
    /// What they depend on, once that was recorded; `None` if they are not saved.
    inputs: OnceLock<Option<Inputs>>,
    /// The overview of the level before this one.
    larger: Option<Arc<OverviewTiles>>,
}

impl OverviewTiles {
    fn layout(&self) -> &TileLayout {
        self.tiles.layout()
    }

    /// Returns the key of a tile in the cache.
    fn cached_key(&self, number: u64) -> IndexKey {
        IndexKey::OverviewTile(self.store.owner, self.first.saturating_add(number))
    }

    /// Returns what the tiles depend on, if they are saved.
    fn inputs(&self) -> Option<Inputs> {
        let record = || self.store.context.saved.inputs_of(("overview", self.cells), &self.tiles);
        if self.cells > 0 { *self.inputs.get_or_init(record) } else { None }
    }

    /// Returns what a tile depends on, if it is saved.
    fn inputs_of_tile(&self, number: u64) -> Option<Inputs> {
        Some(self.inputs()?.part(format_args!("tile {number}")))
    }

    /// Returns the bytes of a tile.
    fn tile(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        let context = &self.store.context;
        context.indexes.get_or_load(self.cached_key(number), || {
            let length = self.layout().length(number) as usize;
            let decode = |bytes: &[u8]| (bytes.len() == length).then(|| bytes.to_vec());
            let inputs = self.inputs_of_tile(number);
            let bytes = context.saved.get_or_make(inputs, decode, Vec::clone, || self.make(number))?;
            let weight = bytes.len();
            Ok((bytes, weight))
        })
    }

    /// Returns whether a tile need not be computed, or is being computed.
    fn is_known(&self, number: u64) -> bool {
        let context = &self.store.context;
        context.indexes.contains_soon(self.cached_key(number))
            || self.inputs_of_tile(number).is_some_and(|inputs| context.saved.has(&inputs))
    }

    fn make(&self, number: u64) -> Result<Vec<u8>> {
        if let Some(larger) = &self.larger
            && let Some(bytes) = self.sample_larger(number, larger)?
        {
            return Ok(bytes);
        }
        let mut bytes = memory::zeros(self.layout().length(number), 1, "a tile of an overview")?;
        self.tiles.tile(number)?.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Computes a tile from tiles of the larger overview; `None` if most of those are unknown, unless all will be read and
    /// are saved, or if they lack some of its pixels.
    fn sample_larger(&self, number: u64, larger: &OverviewTiles) -> Result<Option<Vec<u8>>> {
        let outside = || Error::internal(format!("there is no tile {number} of an overview"));
        let place = self.layout().place(number).ok_or_else(outside)?;
        let of_side = |side: ImageSide, pixels: Range<u64>| -> Option<Vec<u64>> {
            pixels.map(|pixel| self.sampling.in_larger(self.level, side, pixel)).collect()
        };
        let Some((columns, lines)) =
            of_side(ImageSide::Columns, place.columns).zip(of_side(ImageSide::Lines, place.lines))
        else {
            return Ok(None);
        };
        let [width, height] = larger.layout().sides();
        let rows = || lines.chunk_by(|one, next| one / height == next / height);
        let runs = || columns.chunk_by(|one, next| one / width == next / width);
        let source = |row: &[u64], run: &[u64]| larger.layout().tile_at(place.plane, row[0], run[0]);
        let sources = rows().flat_map(|row| runs().map(move |run| source(row, run)));
        let (known, all) =
            sources.fold((0, 0), |(known, all), tile| (known + usize::from(larger.is_known(tile)), all + 1));
        // The few that are not known are computed: others want them, too, and their chunks are those of this tile.
        let will_be_known = self.store.is_copied.load(Ordering::Relaxed) && larger.inputs().is_some();
        if 2 * known < all && !will_be_known {
            return Ok(None);
        }
        let pixel = self.layout().pixel() as usize;
        let mut bytes = memory::zeros(self.layout().length(number), 1, "a tile of an overview")?;
        let fill = self.tiles.fill_value();
        bytes.chunks_exact_mut(fill.len()).for_each(|cell| cell.copy_from_slice(&fill));
        let [own_width, _] = self.layout().sides();
        let mut own_lines = bytes.chunks_exact_mut(own_width as usize * pixel);
        for row in rows() {
            let tiles: Vec<(&[u64], Arc<Vec<u8>>)> =
                runs().map(|run| Ok((run, larger.tile(source(row, run))?))).collect::<Result<_>>()?;
            for (line, own) in row.iter().zip(own_lines.by_ref()) {
                let mut pixels = own.chunks_exact_mut(pixel);
                for (run, tile) in &tiles {
                    for (column, own) in run.iter().zip(pixels.by_ref()) {
                        let at = ((line % height * width + column % width) as usize) * pixel;
                        own.copy_from_slice(tile.get(at..at + pixel).ok_or_else(outside)?);
                    }
                }
            }
        }
        Ok(Some(bytes))
    }
}

impl Content for OverviewTiles {
    fn len(&self) -> u64 {
        self.tiles.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let number = self.layout().at(at);
            let into = at - self.layout().offset(number);
            self.store.note(self.level, number == 0 && into == 0, number + 1 == self.layout().count());
            let tile = self.tile(number)?;
            let (mut now, later) = rest.split_at(self.layout().length(number) - into);
            at += now.len();
            if let Some(now) = now.wanted() {
                now.copy_from_slice(&tile[into as usize..into as usize + now.len()]);
            }
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        self.tiles.band(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_end_with_those_of_the_array_and_have_little_padding() {
        assert_eq!(block([15812, 15812], [1024, 1024], 2, 512, false), [512, 512]);
        assert_eq!(block([1977, 1977], [1024, 1024], 16, 512, false), [512, 512]);
        assert_eq!(block([750, 1000], [64, 64], 2, 512, false), [384, 512]);
        // Those of the array do not end with pixels of the overview.
        assert_eq!(block([1501, 2500], [500, 500], 2, 512, false), [512, 512]);
        assert_eq!(block([1977, 1977], [1000, 1000], 16, 512, false), [1977, 132]);
        // An array of strips, and one of very long ones.
        assert_eq!(block([15812, 15812], [31623, 64], 2, 512, false), [15812, 16]);
        assert_eq!(block([1977, 1977], [31623, 64], 16, 512, false), [1977, 132]);
        assert_eq!(block([50_000, 5000], [100_000, 10], 2, 512, false), [12512, 32]);
        // Narrow and low images.
        assert_eq!(block([3, 5000], [6, 64], 2, 512, false), [3, 5000]);
        assert_eq!(block([50_000, 3], [64, 6], 2, 512, false), [50_000, 3]);
        assert_eq!(block([500_000, 3], [64, 6], 2, 512, false), [512, 16]);
        for (columns, lines) in [(300, 300), (513, 513), (1025, 700), (9999, 129)] {
            for side in [16, 64, 512] {
                let [width, height] = block([columns, lines], [100, 100], 2, side, false);
                assert!(width * height <= side * side + 16 * width, "{columns}x{lines} {side}: {width}x{height}");
            }
        }
    }

    #[test]
    fn overviews_of_tiled_images_have_tiles() {
        assert_eq!(block([500, 1000], [1024, 1024], 2, 512, true), [512, 512]);
        assert_eq!(block([512, 1000], [1024, 1024], 2, 512, true), [512, 512]);
        assert_eq!(block([1977, 1977], [1008, 1008], 16, 512, true), [1984, 144]);
        assert_eq!(block([1976, 1977], [1008, 1008], 16, 512, true)[0], 1984);
        assert_eq!(block([400, 300], [1024, 1024], 2, 512, true), [400, 300]);
        for (columns, lines) in [(300, 600), (512, 513), (1024, 700), (9999, 129), (513, 40)] {
            for (side, factor) in [(64, 2), (512, 4), (512, 32)] {
                let [width, height] = block([columns, lines], [1024, 1024], factor, side, true);
                assert!(width % 16 == 0 && height % 16 == 0, "{columns}x{lines}: {width}x{height}");
            }
        }
        // Not 9 columns, or lines, of padding for each.
        assert_eq!(block([7, 5003], [64, 64], 2, 512, true), [7, 5003]);
    }

    #[test]
    fn steps_cover_whole_tiles() {
        let all = [(1024, 16), (1024, 64), (1000, 2), (1000, 16), (500, 4), (8, 16), (0, 2)];
        let found = all.map(|(extent, factor)| step(extent, factor));
        assert_eq!(found, [Some(64), Some(16), Some(2000), None, Some(2000), None, None]);
    }
}
