//! The values of a nullable column with one value in the place of every null.

use std::sync::Arc;

use super::content::{Content, check_range};
use crate::error::Result;

/// Cells whose validity is looked at at a time.
const BLOCK: usize = 1 << 16;

/// A column's values, in which every null cell holds the same bytes.
pub struct Masked {
    values: Arc<dyn Content>,
    validity: Arc<dyn Content>,
    /// Bytes of one cell.
    null: Vec<u8>,
}

impl Masked {
    /// `validity` has one byte a cell, 0 for null; `values` as many cells, each as long as `null`, which is not empty.
    pub fn new(values: Arc<dyn Content>, validity: Arc<dyn Content>, null: Vec<u8>) -> Self {
        Masked { values, validity, null }
    }
}

impl Content for Masked {
    fn len(&self) -> u64 {
        self.values.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, buf.len())?;
        self.values.read_at(offset, buf)?;
        let size = self.null.len();
        let end = offset + buf.len() as u64;
        let (mut cell, last) = (offset / size as u64, end.div_ceil(size as u64));
        let mut validity = Vec::new();
        while cell < last {
            validity.resize((last - cell).min(BLOCK as u64) as usize, 0);
            self.validity.read_at(cell, &mut validity)?;
            for (number, _) in validity.iter().enumerate().filter(|(_, valid)| **valid == 0) {
                let start = (cell + number as u64) * size as u64;
                // The ends of the range may cut the first and the last cell.
                let (from, to) = (start.max(offset), (start + size as u64).min(end));
                let null = &self.null[(from - start) as usize..(to - start) as usize];
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(null);
            }
            cell += validity.len() as u64;
        }
        Ok(())
    }

    fn prepare(&self, offset: u64, length: u64) {
        let size = self.null.len() as u64;
        self.values.prepare(offset, length);
        self.validity.prepare(offset / size, length / size + 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{assert_random_access, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nulls_hold_the_value_for_it(validity in proptest::collection::vec(0u8..3, 0..50), width in 1usize..5) {
            let values: Vec<u8> = (0..validity.len() * width).map(|i| i as u8).collect();
            let null: Vec<u8> = (0..width).map(|i| 200 + i as u8).collect();
            let mut expected = values.clone();
            for (cell, valid) in expected.chunks_mut(width).zip(&validity) {
                if *valid == 0 {
                    cell.copy_from_slice(&null);
                }
            }
            let masked = Masked::new(Arc::new(values), Arc::new(validity), null);
            prop_assert_eq!(read_all(&masked), expected);
            assert_random_access(&masked);
        }
    }

    #[test]
    fn blocks_join_without_a_seam() {
        let validity: Vec<u8> = (0..3 * BLOCK + 5).map(|i| (i % 3 != 0) as u8).collect();
        let expected: Vec<u8> = validity.iter().flat_map(|valid| if *valid == 0 { [9, 8] } else { [1, 2] }).collect();
        let values = Arc::new([1, 2].repeat(validity.len()));
        let masked = Masked::new(values, Arc::new(validity), vec![9, 8]);
        assert!(read_all(&masked) == expected);
    }
}
