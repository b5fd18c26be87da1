//! The tiles or strips of a picture: which cells are in each, and where it lies.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use crate::array::dense::IndexBox;
use crate::error::{Error, Result};
use crate::export::boxes::{Boxes, Framed};
use crate::export::content::{Content, check_range};
use crate::export::element::by_elements;
use crate::export::raster::{Interleave, Raster, line_and_sample_axes};
use crate::read::Output;

/// TIFF has tiles whose sides are multiples of this.
const SIDE: u64 = 16;

/// Tiles whose contents are kept.
const KEPT: usize = 16;

/// Reading ahead goes by as many tiles as have about this many bytes.
const BAND: u64 = 1 << 20;

/// Which of the cells are in which tile or strip, counted from the first of the first plane on.
pub struct Layout {
    raster: Raster,
    /// The axes of lines, samples and bands among those of the array.
    axes: [Option<usize>; 3],
    rank: usize,
    /// Columns and lines of a tile; of a strip the columns are all.
    width: u64,
    height: u64,
    is_tiled: bool,
    /// Bytes of a pixel in one plane.
    pixel: u64,
    /// Tiles of a plane, and its bytes.
    tiles_of_plane: u64,
    plane_bytes: u64,
}

impl Layout {
    /// The layout of a raster's cells; `None` where it has too many bytes.
    pub fn of(raster: &Raster, cells: &dyn Boxes, band_axis: Option<usize>) -> Option<Self> {
        let rank = cells.shape().len();
        let values_are_bands = rank == 2;
        let band_axis = if values_are_bands { None } else { Some(band_axis.unwrap_or(0)) };
        let [lines, samples] = line_and_sample_axes(rank, band_axis)?;
        let extents = cells.extents();
        let (wide, high) = (*extents.get(samples)?, *extents.get(lines)?);
        let is_tiled = wide.is_multiple_of(SIDE) && high.is_multiple_of(SIDE);
        // A tile that is longer than the picture holds no more of it.
        let side = |extent: u64, length: u64| Some(extent.min(length.checked_next_multiple_of(SIDE)?));
        let (width, height) = match is_tiled {
            true => (side(wide, raster.samples)?, side(high, raster.lines)?),
            false => (raster.samples, high.min(raster.lines)),
        };
        let is_contiguous = raster.interleave == Interleave::Pixels;
        let size = cells.field().datatype.size() as u64;
        let pixel = if is_contiguous { size.checked_mul(raster.bands)? } else { size };
        let (across, down) = (raster.samples.div_ceil(width), raster.lines.div_ceil(height));
        let tiles_of_plane = across.checked_mul(down)?;
        let plane_bytes = match is_tiled {
            true => tiles_of_plane.checked_mul(width)?.checked_mul(height)?.checked_mul(pixel)?,
            false => raster.samples.checked_mul(raster.lines)?.checked_mul(pixel)?,
        };
        let layout = Layout {
            raster: raster.clone(),
            axes: [Some(lines), Some(samples), band_axis],
            rank,
            width,
            height,
            is_tiled,
            pixel,
            tiles_of_plane,
            plane_bytes,
        };
        plane_bytes.checked_mul(layout.planes()).filter(|&bytes| bytes <= i64::MAX as u64).map(|_| layout)
    }

    /// The sides of a tile; `None` of strips.
    pub fn tile(&self) -> Option<[u32; 2]> {
        let side = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
        self.is_tiled.then(|| [side(self.width), side(self.height)])
    }

    /// Lines of a strip.
    pub fn lines(&self) -> u32 {
        u32::try_from(self.height).unwrap_or(u32::MAX)
    }

    fn planes(&self) -> u64 {
        if self.raster.interleave == Interleave::Pixels { 1 } else { self.raster.bands }
    }

    /// How many tiles or strips there are.
    pub fn count(&self) -> u64 {
        self.tiles_of_plane.saturating_mul(self.planes())
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.plane_bytes.saturating_mul(self.planes())
    }

    /// Bytes of each but the last strip of a plane.
    fn each(&self) -> u64 {
        self.width * self.height * self.pixel
    }

    /// Where a tile begins, from the first on.
    pub fn offset(&self, number: u64) -> u64 {
        number / self.tiles_of_plane * self.plane_bytes + number % self.tiles_of_plane * self.each()
    }

    /// Bytes of a tile.
    pub fn length(&self, number: u64) -> u64 {
        self.each().min(self.plane_bytes - number % self.tiles_of_plane * self.each())
    }

    /// The tile of a byte.
    fn at(&self, offset: u64) -> u64 {
        offset / self.plane_bytes * self.tiles_of_plane + offset % self.plane_bytes / self.each()
    }

    /// The cells of a tile that lie within the picture, and the lengths that it has itself.
    fn cells(&self, number: u64) -> Option<(IndexBox, Vec<u64>)> {
        let (plane, tile) = (number / self.tiles_of_plane, number % self.tiles_of_plane);
        let across = self.raster.samples.div_ceil(self.width);
        let (line, sample) = (tile / across * self.height, tile % across * self.width);
        let mut cells = IndexBox { first: vec![0; self.rank], count: vec![1; self.rank] };
        let mut frame = vec![1; self.rank];
        let mut set = |axis: Option<usize>, first: u64, count: u64, framed: u64| {
            let axis = axis?;
            *cells.first.get_mut(axis)? = first;
            *cells.count.get_mut(axis)? = count;
            *frame.get_mut(axis)? = framed;
            Some(())
        };
        let lines = self.height.min(self.raster.lines.checked_sub(line)?);
        let samples = self.width.min(self.raster.samples.checked_sub(sample)?);
        set(self.axes[0], line, lines, if self.is_tiled { self.height } else { lines })?;
        set(self.axes[1], sample, samples, self.width)?;
        if let Some(axis) = self.axes[2] {
            let (first, count) = if self.planes() == 1 { (0, self.raster.bands) } else { (plane, 1) };
            set(Some(axis), first, count, count)?;
        }
        Some((cells, frame))
    }
}

/// The bytes of all tiles, one behind the other. Memory: what the last tiles read keep open.
pub struct Tiles {
    cells: Arc<dyn Boxes>,
    layout: Arc<Layout>,
    kept: Mutex<LruCache<u64, Arc<dyn Content>>>,
}

impl Tiles {
    pub fn new(cells: Arc<dyn Boxes>, layout: Arc<Layout>) -> Self {
        let kept = Mutex::new(LruCache::new(NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN)));
        Tiles { cells, layout, kept }
    }

    fn tile(&self, number: u64) -> Result<Arc<dyn Content>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tile) = kept().get(&number) {
            return Ok(tile.clone());
        }
        let outside = || Error::internal(format!("there is no tile {number} of a picture"));
        let (cells, frame) = self.layout.cells(number).ok_or_else(outside)?;
        let column = self.cells.column(&cells)?;
        let size = column.field.cell_size().unwrap_or(1) as usize;
        let fill = if column.field.fill.len() == size { column.field.fill } else { vec![0; size] };
        let tile = Framed::within(column.values, &column.shape, &frame, fill);
        kept().put(number, tile.clone());
        Ok(tile)
    }
}

impl Content for Tiles {
    fn len(&self) -> u64 {
        self.layout.bytes()
    }

    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        check_range(self.len(), offset, out.len())?;
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

/// Computes a number from its place in a row.
type Compute = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// 64-bit numbers that are computed.
pub struct Computed {
    count: u64,
    of: Compute,
}

impl Computed {
    pub fn new(count: u64, of: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        Computed { count, of: Box::new(of) }
    }
}

impl Content for Computed {
    fn len(&self) -> u64 {
        self.count.saturating_mul(8)
    }

    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        check_range(self.len(), offset, out.len())?;
        by_elements(8, usize::MAX, offset, out, |first, mut out| {
            let numbers = out.wanted().into_iter().flat_map(|out| out.as_chunks_mut().0);
            (first..).zip(numbers).for_each(|(number, bytes)| *bytes = (self.of)(number).to_le_bytes());
            Ok(())
        })
    }
}
