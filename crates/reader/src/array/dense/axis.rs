//! The coordinates along one axis of a dense array, which are computed and not stored.

use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};

use super::selection::AxisSelection;

/// The coordinates of the selected positions of an axis, as little-endian integers of the dimension's size.
pub struct AxisCoordinates {
    selection: AxisSelection,
    /// The coordinate at position 0, as two's complement bits.
    low: u64,
    size: usize,
}

impl Recorded for AxisCoordinates {
    fn record(&self, recorder: &mut Recorder) {
        let Self { selection, low, size } = self;
        recorder.add::<Self>((selection, low, size));
    }
}

impl AxisCoordinates {
    /// `low` is the low end of the domain in two's complement bits, `size` the number of bytes of a coordinate.
    pub fn new(selection: AxisSelection, low: u64, size: usize) -> Self {
        AxisCoordinates { selection, low, size: size.clamp(1, 8) }
    }

    /// Returns the number of cells along the axis.
    pub fn count(&self) -> u64 {
        self.selection.len()
    }

    /// Returns the bytes of one coordinate.
    pub fn cell_size(&self) -> usize {
        self.size
    }

    /// Fills `out` with whole coordinates from number `first` on.
    ///
    /// # Errors
    /// [`Error::Usage`] past the end of the axis.
    pub fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let mut cells = out.chunks_exact_mut(self.size);
        let count = cells.len() as u64;
        for run in self.selection.runs(first, count) {
            let mut coordinate = self.low.wrapping_add(run.first);
            for cell in cells.by_ref().take(run.count as usize) {
                cell.copy_from_slice(&coordinate.to_le_bytes()[..self.size]);
                coordinate = coordinate.wrapping_add(run.step as u64);
            }
        }
        match cells.next() {
            None => Ok(()),
            Some(_) => Err(Error::internal(format!("only {} coordinates along the axis", self.selection.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::selection::AxisRange;
    use super::*;

    #[test]
    fn coordinates_follow_the_selection() {
        let ranges = [AxisRange { first: 3, step: -2, count: 2 }, AxisRange { first: 8, step: 1, count: 1 }];
        let axis = AxisCoordinates::new(AxisSelection::new(ranges, 10).unwrap(), -4i64 as u64, 2);
        let mut out = [0; 6];
        axis.read(0, &mut out).unwrap();
        let coordinates: Vec<i16> = out.chunks(2).map(|cell| i16::from_le_bytes([cell[0], cell[1]])).collect();
        assert_eq!(coordinates, [-1, -3, 4]);
        assert!(axis.read(2, &mut [0; 4]).is_err());
    }
}
