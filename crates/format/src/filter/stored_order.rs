//! The order in which the cells of a tile are stored, for the values that BITSORT sorted.

use std::cmp::Ordering;

use tilefs_base::error::{Error, Result};

/// The permutation between the cells of a tile in the array's order and in stored order.
#[derive(Debug)]
pub struct StoredOrder {
    /// For each cell in the array's order, its index among the stored cells.
    places: Vec<u32>,
    /// The cells whose coordinates equal those of the cell before.
    ties: Vec<u32>,
}

impl StoredOrder {
    /// Returns the order of `cells` stored cells. `compare` compares the coordinates of two stored cells.
    ///
    /// # Errors
    /// [`Error::Damaged`] for more than 2^32 - 1 cells.
    pub fn new(cells: usize, compare: impl Fn(usize, usize) -> Ordering) -> Result<Self> {
        let cells = u32::try_from(cells).map_err(|_| Error::damaged(format!("{cells} cells in one tile")))?;
        let mut places: Vec<u32> = (0..cells).collect();
        let compare = |a: u32, b: u32| compare(a as usize, b as usize);
        places.sort_by(|&a, &b| compare(a, b));
        let ties = (1..cells).filter(|&cell| {
            let cell = cell as usize;
            compare(places[cell - 1], places[cell]).is_eq()
        });
        let ties = ties.collect();
        Ok(StoredOrder { places, ties })
    }

    /// Copies stored values to `out`, in the array's order of the cells.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is not one value per cell; [`Error::Unsupported`] if cells with equal coordinates
    /// have different values, as it is not stored which cell has which.
    pub fn restore(&self, value_bytes: usize, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let expected = self.places.len().checked_mul(value_bytes);
        if expected != Some(stored.len()) || stored.len() != out.len() {
            let reason = format!("{} bytes of sorted values for {} cells", stored.len(), self.places.len());
            return Err(Error::damaged(reason));
        }
        let value = |cell: u32| {
            let start = self.places[cell as usize] as usize * value_bytes;
            &stored[start..start + value_bytes]
        };
        if let Some(tie) = self.ties.iter().find(|&&tie| value(tie - 1) != value(tie)) {
            return Err(Error::unsupported(format!(
                "filter BITSORT on cells with equal coordinates, such as cell {tie} and the one before: \
                 TileDB did not store which of them has which value"
            )));
        }
        for (cell, out) in (0..).zip(out.chunks_exact_mut(value_bytes)) {
            out.copy_from_slice(value(cell));
        }
        Ok(())
    }
}
