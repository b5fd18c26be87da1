//! The axes of an image, for formats that describe the position of each pixel along them.

use tilefs_format::datatype::Datatype;

/// An axis of an image: a dimension, and which positions along it the image shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAxis {
    /// The name of the dimension.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// The coordinate of its first position.
    pub low: i128,
    /// The first position that the image shows, and the distance from one to the next; `None` if they are not evenly
    /// spaced.
    pub positions: Option<(u64, i64)>,
}

impl ImageAxis {
    /// Returns the coordinate of the first pixel and the distance of two pixels, if they are evenly spaced.
    pub fn spacing(&self) -> Option<(i128, i64)> {
        let (first, step) = self.positions?;
        Some((self.low + i128::from(first), step))
    }

    /// Returns the first position that the image shows, if it shows all from there on to the last.
    pub(crate) fn start_of_run(&self) -> Option<u64> {
        self.positions.filter(|(_, step)| *step == 1).map(|(first, _)| first)
    }
}
