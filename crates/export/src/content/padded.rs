//! Text of variable length as text of fixed length: each value is padded with zeros to the length of the longest.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;

use crate::content::element::by_elements;
use crate::content::offsets::{Offsets, wrong_offsets};

/// Bytes of padded values produced at a time.
const BLOCK: u64 = 1 << 20;

/// Maximum number of values among which the longest is searched for: an array of a few stored bytes can have 2^60
/// cells, and listing a folder waits for the result.
const MAX_VALUES: u64 = 1 << 24;

/// Returns the length of the longest value in bytes; `None` if there are too many to look at. `offsets` are the `u64`
/// offsets at which the values begin, plus the final end.
///
/// # Errors
/// Fails if the offsets cannot be read, or decrease.
pub fn longest(offsets: &Offsets) -> Result<Option<u64>> {
    if offsets.len() / 8 > MAX_VALUES {
        return Ok(None);
    }
    let mut longest = 0;
    offsets.for_each_length(|length| {
        longest = longest.max(length);
        Ok(())
    })?;
    Ok(Some(longest))
}

/// The values, each padded to the length of the longest. A read takes a few MiB of memory.
pub struct Padded {
    values: Arc<dyn Content>,
    offsets: Offsets,
    width: u64,
    rows: u64,
}

impl Padded {
    /// Creates the content. `offsets` are as for [`longest`], which determines the `width`; it is at least 1.
    pub fn new(values: Arc<dyn Content>, offsets: impl Into<Offsets>, width: u64) -> Self {
        let offsets = offsets.into();
        let rows = offsets.count();
        Padded { values, offsets, width: width.max(1), rows }
    }

    /// Reads whole rows starting at row `first`.
    fn rows(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let width = self.width as usize;
        let rows = out.len() / self.width;
        let offsets = self.offsets.of(first..first + rows, &out)?;
        let (start, end) = match offsets.as_slice() {
            [start, .., end] => (*start, *end),
            // Prefetching: the positions of the values are needed even so.
            _ => (self.offsets.at(first)?, self.offsets.at(first + rows)?),
        };
        let length = end.checked_sub(start).filter(|&length| length <= out.len()).ok_or_else(wrong_offsets)?;
        let mut values = Vec::new();
        self.values.read(start, out.aside(length, &mut values))?;
        let rows = out.wanted().into_iter().flat_map(|out| out.chunks_exact_mut(width));
        for (row, ends) in rows.zip(offsets.windows(2)) {
            let (from, to) = (ends[0].wrapping_sub(start) as usize, ends[1].wrapping_sub(start) as usize);
            let value = values.get(from..to).filter(|value| value.len() <= width).ok_or_else(wrong_offsets)?;
            let (text, padding) = row.split_at_mut(value.len());
            text.copy_from_slice(value);
            padding.fill(0);
        }
        Ok(())
    }

    /// Reads parts of rows, one row at a time: offsets may claim that a value is larger than memory.
    fn long_rows(&self, offset: u64, mut rest: Output<'_>) -> Result<()> {
        let (mut row, mut within) = (offset / self.width, offset % self.width);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.width - within);
            let (start, end) = (self.offsets.at(row)?, self.offsets.at(row + 1)?);
            let length = end.checked_sub(start).filter(|&length| length <= self.width && end <= self.values.len());
            let (text, mut padding) = now.split_at(length.ok_or_else(wrong_offsets)?.saturating_sub(within));
            if !text.is_empty() {
                self.values.read(start + within, text)?;
            }
            if let Some(padding) = padding.wanted() {
                padding.fill(0);
            }
            (rest, row, within) = (later, row + 1, 0);
        }
        Ok(())
    }
}

impl Content for Padded {
    fn len(&self) -> u64 {
        self.rows.saturating_mul(self.width)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        if self.width > BLOCK {
            return self.long_rows(offset, out);
        }
        by_elements(self.width as usize, (BLOCK / self.width) as usize, offset, out, |row, out| self.rows(row, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
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
            let longest = longest(&offsets.clone().into()).unwrap().unwrap();
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
    fn long_values_are_read_in_parts() {
        let long = BLOCK as usize + 5;
        let values: Vec<Vec<u8>> = [long, 3, 0, long - 70].iter().map(|length| vec![7; *length]).collect();
        let expected: Vec<u8> =
            values.iter().flat_map(|value| [value.clone(), vec![0; long - value.len()]].concat()).collect();
        let padded = Padded::new(Arc::new(values.concat()), offsets(&values), long as u64);
        assert!(read_all(&padded) == expected);
        for (start, end) in [(0, 9), (long - 4, long + 9), (2 * long - 1, 3 * long + 1), (4 * long - 71, 4 * long)] {
            let mut part = vec![1; end - start];
            padded.read_at(start as u64, &mut part).unwrap();
            assert_eq!(part, expected[start..end], "{start}");
        }
        assert_reads_ahead(|sources| {
            let offsets = sources.index(offsets(&values));
            Arc::new(Padded::new(sources.values(Arc::new(values.concat())), offsets, long as u64))
        });
    }

    /// A content of this many zeros.
    struct Zeros(u64);

    impl Content for Zeros {
        fn len(&self) -> u64 {
            self.0
        }

        fn fill(&self, _: u64, mut out: Output<'_>) -> Result<()> {
            out.wanted().into_iter().for_each(|out| out.fill(0));
            Ok(())
        }
    }

    #[test]
    fn too_many_values_are_not_searched() {
        assert_eq!(longest(&Arc::new(Zeros(8 << 10)).into()).unwrap(), Some(0));
        assert_eq!(longest(&Arc::new(Zeros(8 << 60)).into()).unwrap(), None);
    }

    #[test]
    fn value_claiming_to_exceed_memory_takes_none() {
        let claimed = (1 << 59) + 5;
        let ends: Vec<u8> = [0, claimed, claimed + 1].iter().flat_map(|end: &u64| end.to_le_bytes()).collect();
        let padded = Padded::new(Arc::new(Zeros(claimed + 1)), Arc::new(ends), claimed);
        for offset in [0, 7, claimed - 100, claimed, 2 * claimed - 4096] {
            padded.read_at(offset, &mut [1; 4096]).unwrap();
            padded.read(offset, Output::Ahead(4096)).unwrap();
        }
    }

    #[test]
    fn offsets_that_go_backwards_are_damage() {
        let bad: Vec<u8> = [0u64, 5, 3].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert!(longest(&Arc::new(bad.clone()).into()).is_err());
        let padded = Padded::new(Arc::new(vec![0; 5]), Arc::new(bad), 5);
        assert!(padded.read_at(0, &mut [0; 10]).is_err());
    }

    #[test]
    fn offsets_determine_prefetched_values() {
        let values: Vec<Vec<u8>> = (0..3000usize).map(|i| vec![i as u8; i * 7 % 1000]).collect();
        assert_reads_ahead(|sources| {
            let offsets = sources.index(offsets(&values));
            Arc::new(Padded::new(sources.values(Arc::new(values.concat())), offsets, 999))
        });
    }
}
