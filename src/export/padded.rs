//! Text of variable length as text of one length: each value followed by zeros up to the longest.

use std::sync::Arc;

use super::content::{Content, check_range};
use crate::error::{Error, Result};

/// Bytes of padded values that are made at a time.
const BLOCK: u64 = 1 << 20;

/// Bytes of offsets that are read at a time.
const OFFSETS: u64 = 1 << 20;

/// The bytes of the longest value. `offsets` are the `u64`, one more than there are values, at which they begin.
///
/// # Errors
/// When offsets cannot be read, or go backwards.
pub fn longest(offsets: &dyn Content) -> Result<u64> {
    let (mut longest, mut last) = (0, 0);
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < offsets.len() {
        bytes.resize((offsets.len() - at).min(OFFSETS) as usize, 0);
        offsets.read_at(at, &mut bytes)?;
        for offset in bytes.as_chunks().0.iter().map(|offset| u64::from_le_bytes(*offset)) {
            longest = longest.max(offset.checked_sub(last).ok_or_else(backwards)?);
            last = offset;
        }
        at += bytes.len() as u64;
    }
    Ok(longest)
}

fn backwards() -> Error {
    Error::damaged("offsets of values that go backwards")
}

/// The values, each as long as the longest. Memory of a read: some MiB, or two rows if those are longer.
pub struct Padded {
    values: Arc<dyn Content>,
    offsets: Arc<dyn Content>,
    width: u64,
    rows: u64,
}

impl Padded {
    /// `offsets` are as for [`longest`], which gives the `width`; it is at least 1.
    pub fn new(values: Arc<dyn Content>, offsets: Arc<dyn Content>, width: u64) -> Self {
        let rows = (offsets.len() / 8).saturating_sub(1);
        Padded { values, offsets, width: width.max(1), rows }
    }

    /// Fills `out` with whole rows from row `first`.
    fn rows(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.width as usize;
        let mut bytes = vec![0; (out.len() / width + 1) * 8];
        self.offsets.read_at(first * 8, &mut bytes)?;
        let offsets: Vec<u64> = bytes.as_chunks().0.iter().map(|offset| u64::from_le_bytes(*offset)).collect();
        let (Some(&start), Some(&end)) = (offsets.first(), offsets.last()) else { return Ok(()) };
        let length = end.checked_sub(start).filter(|&length| length <= out.len() as u64).ok_or_else(backwards)?;
        let mut values = vec![0; length as usize];
        self.values.read_at(start, &mut values)?;
        for (row, ends) in out.chunks_exact_mut(width).zip(offsets.windows(2)) {
            let (from, to) = (ends[0].wrapping_sub(start) as usize, ends[1].wrapping_sub(start) as usize);
            let value = values.get(from..to).filter(|value| value.len() <= width).ok_or_else(backwards)?;
            let (text, padding) = row.split_at_mut(value.len());
            text.copy_from_slice(value);
            padding.fill(0);
        }
        Ok(())
    }
}

impl Content for Padded {
    fn len(&self) -> u64 {
        self.rows.saturating_mul(self.width)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, buf.len())?;
        let end = offset + buf.len() as u64;
        let mut row = offset / self.width;
        let mut whole = Vec::new();
        let mut at = offset;
        while at < end {
            let rows = (end.div_ceil(self.width) - row).min((BLOCK / self.width).max(1));
            whole.resize((rows * self.width) as usize, 0);
            self.rows(row, &mut whole)?;
            // The ends of the range may cut the first and the last row.
            let start = row * self.width;
            let upto = (start + whole.len() as u64).min(end);
            let part = &whole[(at - start) as usize..(upto - start) as usize];
            buf[(at - offset) as usize..(upto - offset) as usize].copy_from_slice(part);
            at = upto;
            row += rows;
        }
        Ok(())
    }

    fn prepare(&self, offset: u64, length: u64) {
        self.offsets.prepare(offset / self.width * 8, (length / self.width + 2).saturating_mul(8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{assert_random_access, read_all};
    use proptest::prelude::*;

    fn offsets<'a>(values: impl IntoIterator<Item = &'a Vec<u8>>) -> Arc<dyn Content> {
        let mut bytes = 0u64.to_le_bytes().to_vec();
        let mut at = 0;
        for value in values {
            at += value.len() as u64;
            bytes.extend(at.to_le_bytes());
        }
        Arc::new(bytes)
    }

    proptest! {
        #[test]
        fn each_value_is_followed_by_zeros(values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..30)) {
            let offsets = offsets(&values);
            let longest = longest(&offsets).unwrap();
            prop_assert_eq!(longest, values.iter().map(Vec::len).max().unwrap_or(0) as u64);
            let width = longest.max(1) as usize;
            let expected: Vec<u8> = values.iter().flat_map(|value| {
                let mut row = value.clone();
                row.resize(width, 0);
                row
            }).collect();
            let padded = Padded::new(Arc::new(values.concat()), offsets, longest);
            prop_assert_eq!(read_all(&padded), expected);
            assert_random_access(&padded);
        }
    }

    #[test]
    fn blocks_join_without_a_seam() {
        let values: Vec<Vec<u8>> = (0..5000usize).map(|i| vec![i as u8; i % 1000]).collect();
        let padded = Padded::new(Arc::new(values.concat()), offsets(&values), 999);
        let whole = read_all(&padded);
        for (row, value) in whole.chunks(999).zip(&values) {
            assert!(row.starts_with(value) && row[value.len()..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn offsets_that_go_backwards_are_damage() {
        let bad: Vec<u8> = [0u64, 5, 3].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert!(longest(&bad).is_err());
        let padded = Padded::new(Arc::new(vec![0; 5]), Arc::new(bad), 5);
        assert!(padded.read_at(0, &mut [0; 10]).is_err());
    }
}
