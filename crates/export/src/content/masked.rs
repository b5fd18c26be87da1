//! The values of a nullable column with one value in place of every null.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;

use crate::content::element::{BLOCK, by_elements};
use crate::content::validity::{RowValidity, Validity};

/// A column's values, in which every null cell holds the same bytes.
pub struct Masked {
    values: Arc<dyn Content>,
    validity: Validity,
    /// Bytes of one cell.
    null: Vec<u8>,
}

impl Masked {
    /// Creates the content. `values` has as many cells as `validity`, each as long as `null`, which is not empty.
    pub fn new(values: Arc<dyn Content>, validity: impl Into<Validity>, null: Vec<u8>) -> Self {
        Masked { values, validity: validity.into(), null }
    }
}

impl Content for Masked {
    fn record(&self, recorder: &mut Recorder) {
        let Self { values, validity, null } = self;
        recorder.add::<Self>(null);
        values.record(recorder);
        validity.record(recorder);
    }

    fn len(&self) -> u64 {
        self.values.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let size = self.null.len() as u64;
        let mut validity = RowValidity::default();
        by_elements(self.null.len(), BLOCK, offset, out, |first, mut out| {
            let length = out.len();
            self.values.read(first * size, out.part(0..length))?;
            validity.read(Some(&self.validity), first..first + length / size, &out)?;
            let Some(out) = out.wanted() else { return Ok(()) };
            for cell in validity.nulls() {
                out[cell * self.null.len()..][..self.null.len()].copy_from_slice(&self.null);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nulls_hold_the_null_value(validity in proptest::collection::vec(0u8..3, 0..50), width in 1usize..5) {
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

    #[test]
    fn values_and_validity_are_prefetched() {
        assert_reads_ahead(|sources| {
            let values = sources.values(Arc::new(vec![1; 3000]));
            Arc::new(Masked::new(values, sources.values(Arc::new(vec![0; 1000])), vec![9, 8, 7]))
        });
    }
}
