//! The tiles or strips of an image: the cells and the position of each.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::lru_cache::LruCache;
use tilefs_base::output::Output;
use tilefs_reader::array::dense::IndexBox;

use crate::column::boxes::{Boxes, Framed};
use crate::column::{FormatResult, Unrepresentable};

/// TIFF requires the sides of tiles to be multiples of this.
const SIDE: u64 = 16;

/// Number of tiles whose contents are kept.
const KEPT: usize = 16;

/// Target size in bytes of a band of tiles for prefetching.
const BAND: u64 = 1 << 20;

/// Maximum size in bytes of a strip. A longer one is divided into tiles, which differ from the array's.
const MAX_STRIP: u64 = 32 << 20;

/// The roles of an array's axes in an image. Axes that are not listed have length 1.
#[derive(Debug, Clone, Hash)]
pub struct ImageAxes {
    pub lines: usize,
    pub samples: usize,
    /// The axis of the adjacent bands of a pixel.
    pub bands: Option<usize>,
    /// Each combination of indexes along these axes is a plane; the last axis varies fastest.
    pub planes: Vec<usize>,
}

/// The pixels of a tile that lie within the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TilePlace {
    pub plane: u64,
    pub columns: Range<u64>,
    pub lines: Range<u64>,
}

/// The assignment of cells to tiles or strips, which are numbered from the first of the first plane.
#[derive(Hash)]
pub struct TileLayout {
    axes: ImageAxes,
    /// The lengths of the array's axes.
    shape: Vec<u64>,
    /// Columns and lines of a plane.
    samples: u64,
    lines: u64,
    planes: u64,
    /// Columns and lines of a tile; a strip has all columns.
    width: u64,
    height: u64,
    is_tiled: bool,
    /// Size in bytes of a pixel in one plane.
    pixel: u64,
    /// Number of tiles of a plane, and its size in bytes.
    tiles_of_plane: u64,
    plane_bytes: u64,
}

impl TileLayout {
    /// Returns the layout of cells, of which there must be at least one; `None` if they have too many bytes.
    pub fn of(cells: &dyn Boxes, axes: ImageAxes) -> Option<Self> {
        let (shape, extents) = (cells.shape().to_vec(), cells.extents());
        let length = |axis: usize| shape.get(axis).copied().filter(|&length| length > 0);
        let (samples, lines) = (length(axes.samples)?, length(axes.lines)?);
        let (wide, high) = (*extents.get(axes.samples)?, *extents.get(axes.lines)?);
        let planes = axes.planes.iter().try_fold(1u64, |all, &axis| all.checked_mul(length(axis)?))?;
        let pixel = cells.field().cell_size()?.checked_mul(axes.bands.map_or(Some(1), length)?)?;
        // A tile may extend past the image, but must not reach into the next tile of the array.
        let fits = wide.is_multiple_of(SIDE) && (high.is_multiple_of(SIDE) || high >= lines && wide < samples);
        let strip = samples.checked_mul(high.min(lines))?.checked_mul(pixel)?;
        let is_tiled = fits || wide < samples && strip > MAX_STRIP;
        // A tile need not be longer than the image.
        let side = |extent: u64, length: u64| extent.min(length).checked_next_multiple_of(SIDE);
        let (width, height) = match is_tiled {
            true => (side(wide, samples)?, side(high, lines)?),
            false => (samples, high.min(lines)),
        };
        let (across, down) = (samples.div_ceil(width), lines.div_ceil(height));
        let tiles_of_plane = across.checked_mul(down)?;
        let plane_bytes = match is_tiled {
            true => tiles_of_plane.checked_mul(width)?.checked_mul(height)?.checked_mul(pixel)?,
            false => samples.checked_mul(lines)?.checked_mul(pixel)?,
        };
        plane_bytes.checked_mul(planes).filter(|&bytes| bytes <= i64::MAX as u64)?;
        Some(TileLayout {
            axes,
            shape,
            samples,
            lines,
            planes,
            width,
            height,
            is_tiled,
            pixel,
            tiles_of_plane,
            plane_bytes,
        })
    }

    /// Makes tiles wider by the least step if they are as wide as the image, because some programs take such tiles for
    /// strips; `None` if they have too many bytes.
    pub fn wider_than_image(self) -> Option<Self> {
        if !self.is_tiled || self.width != self.samples {
            return Some(self);
        }
        let width = self.width.checked_add(SIDE)?;
        let tile = width.checked_mul(self.height)?.checked_mul(self.pixel)?;
        let plane_bytes = self.tiles_of_plane.checked_mul(tile)?;
        plane_bytes.checked_mul(self.planes).filter(|&bytes| bytes <= i64::MAX as u64)?;
        Some(TileLayout { width, plane_bytes, ..self })
    }

    /// Returns the numbers of columns and lines of the image.
    pub fn size(&self) -> [u64; 2] {
        [self.samples, self.lines]
    }

    pub fn planes(&self) -> u64 {
        self.planes
    }

    /// Returns the sides of a tile; `None` for strips.
    pub fn tile(&self) -> Option<[u32; 2]> {
        let side = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
        self.is_tiled.then(|| [side(self.width), side(self.height)])
    }

    /// Returns the columns and lines of a tile or strip.
    pub fn sides(&self) -> [u64; 2] {
        [self.width, self.height]
    }

    /// Returns the size in bytes of a pixel in one plane.
    pub fn pixel(&self) -> u64 {
        self.pixel
    }

    /// Returns the number of lines of a strip.
    pub fn lines_of_strip(&self) -> u32 {
        u32::try_from(self.height).unwrap_or(u32::MAX)
    }

    /// Returns the number of tiles or strips.
    pub fn count(&self) -> u64 {
        self.tiles_of_plane.saturating_mul(self.planes)
    }

    /// Returns the tiles or strips of a plane.
    pub fn tiles_of_plane(&self, plane: u64) -> Range<u64> {
        let first = plane.saturating_mul(self.tiles_of_plane);
        first..first.saturating_add(self.tiles_of_plane)
    }

    /// Returns the size of all tiles or strips in bytes.
    pub fn bytes(&self) -> u64 {
        self.plane_bytes.saturating_mul(self.planes)
    }

    /// Returns the size in bytes of each tile or strip, except the last strip of a plane.
    fn each(&self) -> u64 {
        self.width * self.height * self.pixel
    }

    /// Returns the position of a tile, relative to the first.
    pub fn offset(&self, number: u64) -> u64 {
        number / self.tiles_of_plane * self.plane_bytes + number % self.tiles_of_plane * self.each()
    }

    /// Returns the size of a tile in bytes.
    pub fn length(&self, number: u64) -> u64 {
        self.each().min(self.plane_bytes - number % self.tiles_of_plane * self.each())
    }

    /// Returns the tile that contains a byte.
    pub fn at(&self, offset: u64) -> u64 {
        offset / self.plane_bytes * self.tiles_of_plane + offset % self.plane_bytes / self.each()
    }

    /// Returns the tile that contains a pixel.
    pub fn tile_at(&self, plane: u64, line: u64, column: u64) -> u64 {
        let across = self.samples.div_ceil(self.width);
        plane * self.tiles_of_plane + line / self.height * across + column / self.width
    }

    /// Returns the pixels of a tile; `None` if there is no such tile.
    pub fn place(&self, number: u64) -> Option<TilePlace> {
        let (plane, tile) = (number / self.tiles_of_plane, number % self.tiles_of_plane);
        let across = self.samples.div_ceil(self.width);
        let (line, sample) = (tile / across * self.height, tile % across * self.width);
        let lines = self.height.min(self.lines.checked_sub(line)?);
        let samples = self.width.min(self.samples.checked_sub(sample)?);
        (plane < self.planes).then_some(TilePlace {
            plane,
            columns: sample..sample + samples,
            lines: line..line + lines,
        })
    }

    /// Returns the cells of a tile that lie within the image, and the tile's own lengths.
    fn cells(&self, number: u64) -> Option<(IndexBox, Vec<u64>)> {
        let TilePlace { mut plane, columns, lines } = self.place(number)?;
        let rank = self.shape.len();
        let mut cells = IndexBox { first: vec![0; rank], count: vec![1; rank] };
        let mut frame = vec![1; rank];
        let mut set = |axis: usize, first: u64, count: u64, framed: u64| {
            *cells.first.get_mut(axis)? = first;
            *cells.count.get_mut(axis)? = count;
            *frame.get_mut(axis)? = framed;
            Some(())
        };
        let (first, count) = (lines.start, lines.end - lines.start);
        set(self.axes.lines, first, count, if self.is_tiled { self.height } else { count })?;
        set(self.axes.samples, columns.start, columns.end - columns.start, self.width)?;
        if let Some(axis) = self.axes.bands {
            let bands = *self.shape.get(axis)?;
            set(axis, 0, bands, bands)?;
        }
        for &axis in self.axes.planes.iter().rev() {
            let length = *self.shape.get(axis)?;
            set(axis, plane % length, 1, 1)?;
            plane /= length;
        }
        Some((cells, frame))
    }
}

/// The bytes of all tiles, end to end. Memory: the contents of recently read tiles.
pub struct TileBytes {
    cells: Arc<dyn Boxes>,
    layout: Arc<TileLayout>,
    kept: LruCache<u64, Arc<dyn Content>>,
}

impl Recorded for TileBytes {
    fn record(&self, recorder: &mut Recorder) {
        let Self { cells, layout, kept: _ } = self;
        recorder.add::<Self>(&**layout);
        cells.record(recorder);
    }
}

impl TileBytes {
    pub fn new(cells: Arc<dyn Boxes>, layout: Arc<TileLayout>) -> Self {
        TileBytes { cells, layout, kept: LruCache::new(KEPT) }
    }

    pub fn layout(&self) -> &TileLayout {
        &self.layout
    }

    /// Returns the value of cells outside the image.
    pub fn fill_value(&self) -> Vec<u8> {
        let field = self.cells.field();
        let size = field.cell_size().unwrap_or(1) as usize;
        if field.fill.len() == size { field.fill.clone() } else { vec![0; size] }
    }

    /// Returns the bytes of a tile or strip.
    ///
    /// # Errors
    /// Fails if required metadata cannot be read.
    pub fn tile(&self, number: u64) -> Result<Arc<dyn Content>> {
        self.kept.get_or_make(number, || {
            let outside = || Error::internal(format!("there is no tile {number} of an image"));
            let (cells, frame) = self.layout.cells(number).ok_or_else(outside)?;
            let column = self.cells.column(&cells)?;
            Ok(Framed::within(column.values, &column.shape, &frame, self.fill_value()))
        })
    }
}

impl Content for TileBytes {
    fn len(&self) -> u64 {
        self.layout.bytes()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let number = self.layout.at(at);
            let into = at - self.layout.offset(number);
            let (now, later) = rest.split_at(self.layout.length(number) - into);
            at += now.len();
            self.tile(number)?.read(into, now)?;
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        let together = (BAND / self.layout.each().max(1)).max(1);
        let first = self.layout.at(offset) / together * together;
        let last = (first + together).min(self.layout.count()) - 1;
        self.layout.offset(first)..self.layout.offset(last) + self.layout.length(last)
    }
}

/// Alignment of the tiles, so that a reader's pages hold whole values.
const ALIGNMENT: u64 = 64;

/// Returns the first byte from `end` on at which the tiles of an image may begin; `None` if they would end too late.
pub fn start_of_tiles(end: u64, layout: &TileLayout) -> Option<u64> {
    let start = end.checked_next_multiple_of(ALIGNMENT)?;
    start.checked_add(layout.bytes()).filter(|&end| end <= i64::MAX as u64).map(|_| start)
}

/// Returns the reason for an image with too many bands, or with too many bytes.
pub fn too_large() -> Unrepresentable {
    Unrepresentable::new("a TIFF has a band at least and up to 65535, and up to 2^63 bytes")
}

/// Checks whether an image may have this many columns and lines.
pub fn check_size(size: [u64; 2]) -> FormatResult<()> {
    match size.iter().all(|length| (1..=i32::MAX as u64).contains(length)) {
        true => Ok(()),
        false => Err(Unrepresentable::new("a TIFF has a column and a line at least, and up to 2^31-1 of each")),
    }
}
