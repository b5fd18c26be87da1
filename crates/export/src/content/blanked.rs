//! The texts of a nullable column without what lies below its nulls.
//!
//! The bytes of a null have no meaning, and a format whose texts are UTF-8, or end at a NUL, would refuse some of them.
//! Such a byte of a null becomes a blank: this depends on the byte alone, so any part of the content can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;

use crate::content::element::{BLOCK, by_elements};
use crate::content::offsets::{Offsets, wrong_offsets};
use crate::content::validity::{RowValidity, Validity};

/// How many rows are looked at together.
const ROWS: u64 = 8192;

/// The values of a column of texts, in which bytes of null cells are ASCII and not NUL.
pub struct Blanked {
    values: Arc<dyn Content>,
    offsets: Offsets,
    validity: Validity,
    /// A row that begins before the end of the bytes that were read last; a sequential reader continues there.
    last: AtomicU64,
}

fn is_plain(byte: &u8) -> bool {
    byte.is_ascii() && *byte != 0
}

impl Blanked {
    /// Returns the values of a column, which has these offsets, with the bytes of its nulls replaced if it can have any.
    pub fn of(values: Arc<dyn Content>, offsets: &Offsets, validity: Option<&Validity>) -> Arc<dyn Content> {
        match validity {
            Some(validity) => Arc::new(Blanked {
                values,
                offsets: offsets.clone(),
                validity: validity.clone(),
                last: AtomicU64::new(0),
            }),
            None => values,
        }
    }

    /// Returns a row that begins at or before a byte, and not long before it.
    fn row_at(&self, byte: u64) -> Result<u64> {
        let last = self.last.load(Ordering::Relaxed);
        if byte.checked_sub(self.offsets.at(last)?).is_some_and(|before| before <= BLOCK as u64) {
            return Ok(last);
        }
        let behind = partition_point(1..self.offsets.count(), |row| Ok(self.offsets.at(row)? <= byte))?;
        Ok(behind.saturating_sub(1))
    }

    /// Replaces the bytes of nulls among those of the content from `first` on.
    fn blank(&self, first: u64, bytes: &mut [u8]) -> Result<()> {
        let end = first + bytes.len() as u64;
        let rows = self.offsets.count();
        let mut row = self.row_at(first)?;
        let (mut starts, mut validity) = (Vec::new(), RowValidity::default());
        while row < rows {
            let count = ROWS.min(rows - row);
            starts.clear();
            starts.resize(count as usize + 1, 0);
            self.offsets.read_into(row, &mut starts)?;
            validity.read(Some(&self.validity), row..row + count, &Output::Into(&mut []))?;
            for cell in validity.nulls() {
                let [start, stop] = starts[cell..cell + 2] else { return Err(wrong_offsets()) };
                let place = start.clamp(first, end)..stop.clamp(first, end);
                let within = (place.start - first) as usize..(place.end - first) as usize;
                let Some(below) = bytes.get_mut(within) else { return Err(wrong_offsets()) };
                below.iter_mut().filter(|byte| !is_plain(byte)).for_each(|byte| *byte = b' ');
            }
            if starts.last().is_some_and(|last| *last >= end) {
                let behind = starts.partition_point(|start| *start < end) as u64;
                self.last.store(row + behind.saturating_sub(1), Ordering::Relaxed);
                return Ok(());
            }
            row += count;
        }
        Ok(())
    }
}

impl Content for Blanked {
    fn len(&self) -> u64 {
        self.values.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(1, BLOCK, offset, out, |first, mut out| {
            let length = out.len();
            self.values.read(first, out.part(0..length))?;
            match out.wanted() {
                Some(bytes) if !bytes.iter().all(is_plain) => self.blank(first, bytes),
                _ => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    fn blanked(cells: &[(Vec<u8>, bool)]) -> Arc<dyn Content> {
        let mut end = 0;
        let ends = cells.iter().map(|(cell, _)| {
            end += cell.len() as u64;
            end
        });
        let offsets: Vec<u8> = [0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect();
        let values: Vec<u8> = cells.iter().flat_map(|(cell, _)| cell.clone()).collect();
        let validity: Vec<u8> = cells.iter().map(|(_, is_valid)| u8::from(*is_valid)).collect();
        let offsets: Arc<dyn Content> = Arc::new(offsets);
        let validity: Arc<dyn Content> = Arc::new(validity);
        Blanked::of(Arc::new(values), &offsets.into(), Some(&validity.into()))
    }

    proptest! {
        #[test]
        fn only_bytes_of_nulls_change(
            cells in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..5), any::<bool>()), 0..60)
        ) {
            let blank = |byte: &u8| if is_plain(byte) { *byte } else { b' ' };
            let expected: Vec<u8> = cells
                .iter()
                .flat_map(|(cell, is_valid)| match is_valid {
                    true => cell.clone(),
                    false => cell.iter().map(blank).collect(),
                })
                .collect();
            let content = blanked(&cells);
            prop_assert_eq!(read_all(&content), expected);
            assert_random_access(&content);
        }
    }

    #[test]
    fn values_are_prefetched() {
        assert_reads_ahead(|sources| {
            let offsets: Vec<u8> = (0..=1000u64).flat_map(|row| (3 * row).to_le_bytes()).collect();
            let values = sources.values(Arc::new(vec![b'a'; 3000]));
            let (offsets, validity): (Arc<dyn Content>, Arc<dyn Content>) =
                (Arc::new(offsets), Arc::new(vec![0; 1000]));
            Blanked::of(values, &offsets.into(), Some(&validity.into()))
        });
    }
}
