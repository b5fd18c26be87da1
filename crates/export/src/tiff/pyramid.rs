//! An image pyramid as one BigTIFF: OME-TIFF.
//!
//! ```text
//! header
//! directory of plane 0, with the OME-XML; directories of the same plane in the smaller levels, its SubIFDs
//! directory of plane 1; ...
//! tiles of the largest level, plane after plane
//! tiles of the next level; ...
//! ```
//!
//! The planes are all combinations of channel, depth and time, in the order of the array; three or four adjacent 8-bit
//! channels are the samples of one plane. All directories of a level except that of plane 0 have the same length, so
//! that all positions are computed. Memory: the OME-XML, and the contents of recently read tiles.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;

use super::directory::{HEADER, ImageDirectory, REDUCED, SUBFILE_TYPE, TagValues};
use super::images::Images;
use super::ome::{self, OmeImage};
use super::page::{PageProperties, Photometric};
use super::tiles::{ImageAxes, TileBytes, TileLayout, check_size, start_of_tiles, too_large};
use crate::column::boxes::Boxes;
use crate::column::samples::SeparatedSamples;
use crate::column::{FormatResult, Unrepresentable};
use crate::content::compose::Concat;
use crate::pyramid::{Pyramid, PyramidLevel};

/// Maximum number of planes: OME-XML numbers them with 31 bits.
const MAX_PLANES: u64 = i32::MAX as u64;

/// Maximum number of channels: each has an element in the OME-XML, which is held in memory.
const MAX_CHANNELS: u64 = 1 << 16;

/// Maximum number of levels: a pyramid whose levels are half as long has fewer.
const MAX_LEVELS: usize = 64;

/// Checks whether an image may have as many levels as a pyramid, without opening an array.
pub fn check_levels(pyramid: &Pyramid) -> FormatResult<()> {
    match pyramid.levels.len() {
        0..=MAX_LEVELS => Ok(()),
        count => Err(Unrepresentable::new(format!("it has {count} levels, and a pyramid has up to {MAX_LEVELS}"))),
    }
}

/// Returns the levels of a pyramid called `name` as one image; `cells` has the cells of each level, in the same order.
/// No cell is read.
pub fn ome_tiff(pyramid: &Pyramid, cells: &[Arc<dyn Boxes>], name: &str) -> FormatResult<Arc<dyn Content>> {
    check_levels(pyramid)?;
    let planned = pyramid.levels.iter().zip(cells).map(|(level, cells)| PlannedLevel::of(level, cells));
    let planned: Vec<PlannedLevel> = planned.collect::<FormatResult<_>>()?;
    let first = planned.first().ok_or_else(|| Unrepresentable::new("a pyramid has a level at least"))?;
    for (level, planned) in pyramid.levels.iter().zip(&planned) {
        if planned.planes != first.planes || planned.page.bands != first.page.bands {
            let reason = format!("its level {} has other axes, or another number of planes", level.number);
            return Err(Unrepresentable::new(reason));
        }
        if planned.page.datatype != first.page.datatype {
            return Err(Unrepresentable::new(format!("its level {} is of another type", level.number)));
        }
    }
    let planes = first.page.layout.planes();
    let description = TagValues::text(&first.image(pyramid, name)?.xml());
    let directories = Directories::new(planned.iter().map(|level| level.page.clone()).collect(), planes, description);
    let directories = directories.ok_or_else(too_large)?;
    let starts = directories.starts.clone();
    let head: Vec<Arc<dyn Content>> = vec![Arc::new(HEADER.to_vec()), Arc::new(directories)];
    let tiles =
        planned.into_iter().map(|level| Arc::new(TileBytes::new(level.cells, level.page.layout)) as Arc<dyn Content>);
    Ok(Arc::new(Images::new(head, starts.into_iter().zip(tiles), 0)))
}

/// A level that an image can hold.
struct PlannedLevel {
    cells: Arc<dyn Boxes>,
    page: PageProperties,
    /// OME's name of the type of its values.
    kind: &'static str,
    /// The axes of the planes and their lengths, in the order of the array.
    planes: Vec<(char, u64)>,
}

impl PlannedLevel {
    fn of(level: &PyramidLevel, cells: &Arc<dyn Boxes>) -> FormatResult<Self> {
        let refused = |reason: String| Unrepresentable::new(reason);
        let mut axes: Vec<char> = level.axes.chars().collect();
        let field = cells.field();
        let is_told = |axis: char| axes.iter().filter(|&&other| other == axis).count() == 1;
        if axes.len() != cells.shape().len() || !axes.iter().all(|&axis| "TCZYX".contains(axis) && is_told(axis)) {
            return Err(refused(format!("the axes of its level {} are not T, C, Z, Y and X", level.number)));
        }
        let place = |axes: &[char], axis: char| axes.iter().position(|&other| other == axis);
        let (Some(lines), Some(samples)) = (place(&axes, 'Y'), place(&axes, 'X')) else {
            return Err(refused(format!("its level {} has no lines, or no columns", level.number)));
        };
        if samples < lines {
            return Err(Unrepresentable::new("the pixels of a line, along X, do not follow each other in the array"));
        }
        let Some(kind) = ome::kind(field.datatype).filter(|_| field.values_per_cell == Some(1)) else {
            return Err(Unrepresentable::new(
                "OME has integers of up to 32 bits and floating-point numbers, one per pixel",
            ));
        };
        let mut cells = cells.clone();
        if level.samples > 1 {
            let separated = SeparatedSamples::new(cells, level.samples, axes.len());
            cells = Arc::new(separated.filter(|_| samples + 1 == axes.len()).ok_or_else(|| {
                refused(format!("the columns of its level {} are not {} per pixel", level.number, level.samples))
            })?);
            axes.push('C');
        }
        let lengths: Vec<u64> = cells.shape().to_vec();
        let bands = place(&axes, 'C').filter(|&axis| {
            let are_colours = (3..=4).contains(&lengths[axis]) && field.datatype == Datatype::UInt8;
            axis + 1 == axes.len() && (are_colours || level.samples > 1)
        });
        let is_plane = |&axis: &usize| ![Some(lines), Some(samples), bands].contains(&Some(axis));
        let planes: Vec<usize> = (0..axes.len()).filter(is_plane).collect();
        check_size([lengths[samples], lengths[lines]])?;
        let count = planes.iter().try_fold(1u64, |all, &axis| all.checked_mul(lengths[axis]));
        if !count.is_some_and(|count| (1..=MAX_PLANES).contains(&count)) {
            return Err(Unrepresentable::new("an OME-TIFF has a plane at least, and up to 2^31-1"));
        }
        let named = planes.iter().map(|&axis| (axes[axis], lengths[axis])).collect();
        let layout = TileLayout::of(&*cells, ImageAxes { lines, samples, bands, planes }).ok_or_else(too_large)?;
        let bands = u16::try_from(bands.map_or(1, |axis| lengths[axis])).map_err(|_| too_large())?;
        let photometric = if (3..=4).contains(&bands) { Photometric::Rgb } else { Photometric::Grey };
        let datatype = field.datatype;
        let layout = Arc::new(layout);
        let page = PageProperties { layout, datatype, is_complex: false, bands, is_contiguous: true, photometric };
        Ok(PlannedLevel { cells, page, kind, planes: named })
    }

    /// Returns the OME-XML description of the image whose largest level this is.
    fn image<'a>(&self, pyramid: &'a Pyramid, name: &'a str) -> FormatResult<OmeImage<'a>> {
        let [columns, lines] = self.page.layout.size();
        let bands = u64::from(self.page.bands);
        let mut lengths = vec![('X', columns), ('Y', lines)];
        lengths.extend((bands > 1).then_some(('C', bands)));
        lengths.extend(&self.planes);
        if lengths.iter().any(|&(axis, length)| axis == 'C' && length > MAX_CHANNELS) {
            return Err(Unrepresentable::new(format!("an OME-TIFF may have up to {MAX_CHANNELS} channels")));
        }
        Ok(OmeImage {
            name,
            order: self.planes.iter().rev().map(|(axis, _)| *axis).collect(),
            lengths,
            samples: bands,
            kind: self.kind,
            channels: &pyramid.channels,
            steps: &pyramid.steps,
            planes: self.page.layout.planes(),
        })
    }
}

/// The directories of all planes, each followed by those of its smaller levels. They are made when read.
struct Directories {
    /// All levels, largest first.
    levels: Vec<PageProperties>,
    /// The start of the tiles of each level.
    starts: Vec<u64>,
    planes: u64,
    /// For the first directory.
    description: TagValues,
    /// Length in bytes of the directory of a plane in each level; `each` is their sum.
    lengths: Vec<u64>,
    each: u64,
    /// Length in bytes of the directories of the first plane.
    first: u64,
}

impl Directories {
    /// Creates the directories; `None` if the file would be too long.
    fn new(levels: Vec<PageProperties>, planes: u64, description: TagValues) -> Option<Self> {
        let none = vec![0; levels.len()];
        let (starts, lengths) = (none.clone(), none);
        let mut all = Directories { levels, starts, planes, description, lengths, each: 0, first: 0 };
        all.lengths = (0..all.levels.len()).map(|level| all.directory(level, 1, 0).length()).collect::<Option<_>>()?;
        all.each = all.lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length))?;
        let described = all.directory(0, 0, 0).length()?;
        all.first = all.each.checked_sub(*all.lengths.first()?)?.checked_add(described)?;
        let rest = all.each.checked_mul(planes.saturating_sub(1))?;
        let mut end = all.first.checked_add(rest)?.checked_add(HEADER.len() as u64)?;
        for (level, start) in all.levels.iter().zip(&mut all.starts) {
            *start = start_of_tiles(end, &level.layout)?;
            end = *start + level.layout.bytes();
        }
        Some(all)
    }

    /// Returns the position of the directories of a plane, relative to those of the first.
    fn bytes(&self, plane: u64) -> Range<u64> {
        match plane.checked_sub(1) {
            None => 0..self.first,
            Some(before) => {
                let start = self.first + before * self.each;
                start..start + self.each
            }
        }
    }

    /// Returns the plane whose directories contain a byte.
    fn plane(&self, offset: u64) -> u64 {
        offset.checked_sub(self.first).map_or(0, |behind| behind / self.each + 1)
    }

    /// Returns the directory of a plane in a level. `behind` is the position in the file of the directory of the next
    /// level.
    fn directory(&self, level: usize, plane: u64, behind: u64) -> ImageDirectory {
        let page = &self.levels[level];
        let mut directory = page.directory(page.layout.tiles_of_plane(plane), self.starts[level]);
        if level > 0 {
            directory.add(SUBFILE_TYPE, TagValues::Long(vec![REDUCED]));
            return directory;
        }
        if plane == 0 {
            directory.add(270, self.description.clone());
        }
        let places = self.lengths.iter().skip(1).scan(behind, |at, length| {
            let place = *at;
            *at += length;
            Some(place)
        });
        let places: Vec<u64> = places.collect();
        if !places.is_empty() {
            directory.add(330, TagValues::Directories(places));
        }
        directory
    }

    /// Returns all directories of a plane.
    fn of_plane(&self, plane: u64) -> Concat {
        let place = |plane: u64| HEADER.len() as u64 + self.bytes(plane).start;
        let next = if plane + 1 < self.planes { place(plane + 1) } else { 0 };
        let smaller: u64 = self.lengths.iter().skip(1).sum();
        let bytes = self.bytes(plane);
        let mut at = place(plane) + (bytes.end - bytes.start) - smaller;
        let mut parts = self.directory(0, plane, at).contents(place(plane), next);
        for (level, length) in self.lengths.iter().enumerate().skip(1) {
            parts.append(&mut self.directory(level, plane, 0).contents(at, 0));
            at += length;
        }
        Concat::new(parts)
    }
}

impl Content for Directories {
    fn len(&self) -> u64 {
        self.bytes(self.planes.saturating_sub(1)).end
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let plane = self.plane(at);
            let bytes = self.bytes(plane);
            let (now, later) = rest.split_at(bytes.end - at);
            let length = now.len();
            self.of_plane(plane).read(at - bytes.start, now)?;
            (at, rest) = (at + length, later);
        }
        Ok(())
    }
}
