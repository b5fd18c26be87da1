//! An image, or a plane of one, as described by a directory: its form, and the positions of its tiles.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::datatype::{Datatype, Kind};

use super::directory::{ImageDirectory, TagValues};
use super::tiles::TileLayout;
use crate::content::element::Computed;

/// The interpretation of an image's values for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Photometric {
    Grey,
    /// The first three bands; a fourth is the opacity.
    Rgb,
    /// All red components of the colours, then all green and all blue ones.
    Palette(Vec<u16>),
}

/// The properties shared by all planes of an image.
#[derive(Clone)]
pub struct PageProperties {
    pub layout: Arc<TileLayout>,
    pub datatype: Datatype,
    /// Whether each value is a complex number, of two parts of the type.
    pub is_complex: bool,
    pub bands: u16,
    /// Whether the bands of a pixel are adjacent, rather than being a plane each.
    pub is_contiguous: bool,
    pub photometric: Photometric,
}

impl PageProperties {
    pub fn bytes_of_value(&self) -> u16 {
        self.datatype.size() as u16 * if self.is_complex { 2 } else { 1 }
    }

    /// Returns the directory of these tiles; the first tile of the first plane is at the byte `start`. The directory's
    /// length does not depend on the position of the tiles.
    pub fn directory(&self, tiles: Range<u64>, start: u64) -> ImageDirectory {
        let bands = self.bands;
        let form = match (self.datatype.kind(), self.is_complex) {
            (Kind::Float, false) => 3,
            (Kind::Signed, false) => 2,
            (_, false) => 1,
            (Kind::Float, true) => 6,
            (_, true) => 5,
        };
        let [samples, lines] = self.layout.size().map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        let mut directory = ImageDirectory::default();
        directory.add(256, TagValues::Long(vec![samples]));
        directory.add(257, TagValues::Long(vec![lines]));
        directory.add(258, TagValues::Short(vec![8 * self.bytes_of_value(); bands.into()]));
        directory.add(259, TagValues::Short(vec![1]));
        directory.add(277, TagValues::Short(vec![bands]));
        directory.add(284, TagValues::Short(vec![if self.is_contiguous || bands == 1 { 1 } else { 2 }]));
        directory.add(339, TagValues::Short(vec![form; bands.into()]));
        let is_rgb = self.photometric == Photometric::Rgb;
        directory.add(
            262,
            TagValues::Short(vec![match &self.photometric {
                Photometric::Grey => 1,
                Photometric::Rgb => 2,
                Photometric::Palette(_) => 3,
            }]),
        );
        if let Photometric::Palette(colours) = &self.photometric {
            directory.add(320, TagValues::Short(colours.clone()));
        }
        let extra = bands.saturating_sub(if is_rgb { 3 } else { 1 });
        if extra > 0 {
            // The fourth band of a colour image is its opacity; other extra bands are unspecified.
            directory.add(338, TagValues::Short(vec![if is_rgb { 2 } else { 0 }; extra.into()]));
        }
        let [offsets, counts] = match self.layout.tile() {
            Some([width, height]) => {
                directory.add(322, TagValues::Long(vec![width]));
                directory.add(323, TagValues::Long(vec![height]));
                [324, 325]
            }
            None => {
                directory.add(278, TagValues::Long(vec![self.layout.lines_of_strip()]));
                [273, 279]
            }
        };
        let numbers = |of: fn(&TileLayout, u64) -> u64, plus: u64| {
            let (layout, first) = (self.layout.clone(), tiles.start);
            let count = tiles.end.saturating_sub(first);
            TagValues::Computed(Arc::new(Computed::new(count, move |number| {
                (plus + of(&layout, first + number)).to_le_bytes()
            })))
        };
        directory.add(offsets, numbers(TileLayout::offset, start));
        directory.add(counts, numbers(TileLayout::length, 0));
        directory
    }
}
