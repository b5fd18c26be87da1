//! The overviews of an image: smaller versions of it, which a program reads instead of the whole image for a small copy.
//!
//! Each overview is an image of square tiles. A tile is computed when it is read: from the next larger overview if that
//! is known, or from only the tiles and chunks of the array that hold one of its pixels. It is kept in the cache of indexes,
//! and saved in the index folder if computing it again would take long. Memory: a tile for each reader, and the cache.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::array::dense::{AxisSelection, IndexBox, Selection};
use tilefs_reader::array::{Context, IndexKey};
use tilefs_reader::memory;
use tilefs_reader::read::Output;
use tilefs_reader::storage::EntryKey;

use super::page::Page;
use super::sampling::{Sampling, Side, Storing};
use super::tiles::{Axes, Layout, Tiles};
use super::too_large;
use crate::boxes::{Boxes, SpacedBoxes};
use crate::column::{Column, Field, FormatResult};
use crate::content::Content;

/// Maximum side of a tile, and its maximum size in bytes unless its pixels are very large.
const MOST_SIDE: u64 = 512;
const MOST_TILE: u64 = 1 << 20;

/// Minimum side of a tile: TIFF requires multiples of it.
const LEAST_SIDE: u64 = 16;

/// Maximum size in bytes of tiles that are computed as a whole and kept.
const MOST_KEPT: u64 = 4 << 20;

/// The first level whose tiles are saved: each of their pixels is one of 16 of the image.
const FIRST_SAVED: usize = 2;

/// Where the tiles of the overviews of one image are kept: in the cache of indexes, and in the index folder.
pub struct OverviewStore {
    context: Arc<Context>,
    /// The key of the image; `None` if nothing is saved.
    key: Option<EntryKey>,
    owner: u64,
}

impl OverviewStore {
    /// Creates the store of an image; `key` tells it from all others, and is `None` if nothing is saved.
    pub fn new(context: Arc<Context>, key: Option<EntryKey>) -> Self {
        let owner = context.indexes.new_owner();
        OverviewStore { context, key, owner }
    }
}

/// The pixels of one overview as cells.
struct Overview {
    of: Arc<dyn SpacedBoxes>,
    sampling: Arc<Sampling>,
    level: usize,
    axes: Axes,
    shape: Vec<u64>,
    /// The sides of a tile.
    side: u64,
}

impl Overview {
    fn new(of: Arc<dyn SpacedBoxes>, sampling: Arc<Sampling>, level: usize, axes: Axes, side: u64) -> Self {
        let mut shape = of.shape().to_vec();
        let [samples, lines] = sampling.size(level);
        (shape[axes.samples], shape[axes.lines]) = (samples, lines);
        Overview { of, sampling, level, axes, shape, side }
    }
}

impl Boxes for Overview {
    fn field(&self) -> &Field {
        self.of.field()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        let is_side = |axis: usize| axis == self.axes.samples || axis == self.axes.lines;
        (0..self.shape.len()).map(|axis| if is_side(axis) { self.side } else { 1 }).collect()
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let axes = cells.first.iter().zip(&cells.count).zip(self.of.shape()).enumerate();
        let axes = axes.map(|(axis, ((&first, &count), &length))| {
            let side = match axis {
                axis if axis == self.axes.samples => Side::Columns,
                axis if axis == self.axes.lines => Side::Lines,
                _ => return Ok(AxisSelection::contiguous(first, count)),
            };
            let pixels =
                (first..first.saturating_add(count)).map(|pixel| self.sampling.in_image(self.level, side, pixel));
            AxisSelection::of_positions(pixels, length)
        });
        self.of.spaced_column(&Selection::new(axes.collect::<Result<_>>()?)?)
    }
}

/// Returns the overviews of an image, largest first: the form of each, and its tiles. `axes` are those of `cells`.
///
/// # Errors
/// Fails if one of them is too large.
pub fn overviews(
    cells: &Arc<dyn SpacedBoxes>,
    image: &Page,
    axes: &Axes,
    store: OverviewStore,
) -> FormatResult<Vec<(Page, Arc<dyn Content>)>> {
    let storing = storing(image);
    let sampling = Arc::new(Sampling::of(image.layout.size(), storing));
    let side = side_of_tile(image.layout.pixel());
    let level = |level| {
        let cells = Arc::new(Overview::new(cells.clone(), sampling.clone(), level, axes.clone(), side));
        let layout = Arc::new(Layout::of(&*cells, axes.clone()).ok_or_else(too_large)?);
        Ok((Page { layout: layout.clone(), ..image.clone() }, Tiles::new(cells, layout)))
    };
    let levels: Vec<(Page, Tiles)> = (1..=sampling.overviews()).map(level).collect::<FormatResult<_>>()?;
    let first_saved = first_saved(&levels, store.context.saved.most_of_one());
    let key = store.key.map(|key| key.of(format_args!("overviews {storing:?} {axes:?} {side}")));
    let store = Arc::new(OverviewStore { key, ..store });
    let mut all: Vec<(Page, Arc<dyn Content>)> = Vec::new();
    let mut larger: Option<Arc<OverviewTiles>> = None;
    for (level, (page, tiles)) in (1..).zip(levels) {
        if page.layout.length(0) > MOST_KEPT {
            all.push((page, Arc::new(tiles)));
            continue;
        }
        let first = larger.as_ref().map_or(0, |larger| larger.first.saturating_add(larger.tiles.layout().count()));
        let (sampling, store, is_saved) = (sampling.clone(), store.clone(), level >= first_saved);
        let overview =
            Arc::new(OverviewTiles { level, sampling, tiles, store, first, is_saved, larger: larger.take() });
        larger = Some(overview.clone());
        all.push((page, overview));
    }
    Ok(all)
}

/// Returns how the pixels of an image are stored.
fn storing(image: &Page) -> Storing {
    let [columns, _] = image.layout.size();
    let strip = [columns, image.layout.lines_of_strip().into()];
    Storing {
        is_contiguous: image.is_contiguous || image.bands == 1,
        value: image.datatype.size() as u64,
        block: image.layout.tile().map_or(strip, |tile| tile.map(u64::from)),
    }
}

/// Returns the side of tiles whose pixels have so many bytes.
fn side_of_tile(pixel: u64) -> u64 {
    let mut side = MOST_SIDE;
    while side > LEAST_SIDE && (side * side).saturating_mul(pixel) > MOST_TILE {
        side /= 2;
    }
    side
}

/// Returns the first level from which on all levels together have at most `most` bytes, but at least [`FIRST_SAVED`].
fn first_saved(levels: &[(Page, Tiles)], most: u64) -> usize {
    let mut bytes = 0u64;
    let fits = |(page, _): &&(Page, Tiles)| {
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
    tiles: Tiles,
    store: Arc<OverviewStore>,
    /// The number of the first tile among those of all overviews.
    first: u64,
    is_saved: bool,
    /// The overview of the level before this one.
    larger: Option<Arc<OverviewTiles>>,
}

impl OverviewTiles {
    fn layout(&self) -> &Layout {
        self.tiles.layout()
    }

    /// Returns the key of a tile in the cache.
    fn cached_key(&self, number: u64) -> IndexKey {
        IndexKey::OverviewTile(self.store.owner, self.first.saturating_add(number))
    }

    /// Returns the key of a tile in the index folder, if it is saved there.
    fn saved_key(&self, number: u64) -> Option<EntryKey> {
        let key = self.store.key.filter(|_| self.is_saved)?;
        Some(key.of(format_args!("tile {number} of level {}", self.level)))
    }

    /// Returns the bytes of a tile.
    fn tile(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        let context = &self.store.context;
        context.indexes.get_or_load(self.cached_key(number), || {
            let length = self.layout().length(number) as usize;
            let decode = |bytes: &[u8]| (bytes.len() == length).then(|| bytes.to_vec());
            let key = self.saved_key(number);
            let bytes = context.saved.get_or_make(key, decode, Vec::clone, || self.make(number))?;
            let weight = bytes.len();
            Ok((bytes, weight))
        })
    }

    /// Returns whether a tile need not be computed.
    fn is_known(&self, number: u64) -> Result<bool> {
        let context = &self.store.context;
        let is_cached = context.indexes.get::<Vec<u8>>(self.cached_key(number))?.is_some();
        Ok(is_cached || self.saved_key(number).is_some_and(|key| context.saved.has(&key)))
    }

    fn make(&self, number: u64) -> Result<Vec<u8>> {
        if let Some(larger) = &self.larger
            && let Some(bytes) = self.from_larger(number, larger)?
        {
            return Ok(bytes);
        }
        let mut bytes = memory::zeros(self.layout().length(number), 1, "a tile of an overview")?;
        self.tiles.tile(number)?.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Computes a tile from those of the larger overview; `None` if these are not known, or do not have all of its pixels.
    fn from_larger(&self, number: u64, larger: &OverviewTiles) -> Result<Option<Vec<u8>>> {
        let outside = || Error::internal(format!("there is no tile {number} of an overview"));
        let place = self.layout().place(number).ok_or_else(outside)?;
        let of_side = |side: Side, pixels: Range<u64>| -> Option<Vec<u64>> {
            pixels.map(|pixel| self.sampling.in_larger(self.level, side, pixel)).collect()
        };
        let Some((columns, lines)) = of_side(Side::Columns, place.columns).zip(of_side(Side::Lines, place.lines))
        else {
            return Ok(None);
        };
        let [width, height] = larger.layout().sides();
        let rows = || lines.chunk_by(|one, next| one / height == next / height);
        let runs = || columns.chunk_by(|one, next| one / width == next / width);
        let source = |row: &[u64], run: &[u64]| larger.layout().tile_at(place.plane, row[0], run[0]);
        for (row, run) in rows().flat_map(|row| runs().map(move |run| (row, run))) {
            if !larger.is_known(source(row, run))? {
                return Ok(None);
            }
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
