//! The offsets of the rows of one batch: they begin at 0, as those of each batch do.

use std::ops::Range;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::output::Output;

use super::types::ArrowColumn;
use crate::content::compose::Slice;
use crate::content::element::{BLOCK, by_elements};
use crate::content::offsets::Offsets;

/// The size of an offset in bytes.
const SIZE: u64 = 8;

/// The offsets of some rows of a column, counted from the first one, in units of a value's size.
pub(super) struct OwnOffsets {
    /// The offsets, counted from the first row of the column.
    stored: Slice,
    /// The offsets that these rows may have.
    within: Range<u64>,
    /// The size of a value in the units of the stored offsets.
    value_size: u64,
    column: String,
}

impl OwnOffsets {
    /// Creates the offsets of `rows`, and of the end of the last row. All must lie in `within`.
    pub(super) fn new(
        column: &ArrowColumn,
        offsets: &Offsets,
        rows: Range<u64>,
        within: Range<u64>,
        value_size: u64,
    ) -> Self {
        let stored = Slice::new(offsets.content(), rows.start * SIZE, (rows.end - rows.start + 1) * SIZE);
        OwnOffsets { stored, within, value_size, column: column.field.name.clone() }
    }

    /// Returns the stored offset of row `row`.
    fn stored_offset(&self, row: u64) -> Result<u64> {
        let mut bytes = [0; SIZE as usize];
        self.stored.read_at(row * SIZE, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Replaces stored offsets, from that of row `first` on, by those counted from the first of all rows.
    ///
    /// # Errors
    /// If one is smaller than the one before, lies outside, or is not a whole number of values.
    fn convert(&self, first: u64, offsets: &mut [[u8; SIZE as usize]]) -> Result<()> {
        let Range { start, end } = self.within;
        let earlier = first.checked_sub(1).map_or(Ok(start), |row| self.stored_offset(row))?.max(start);
        let mut before = earlier;
        // Simple enough for the compiler to use vector instructions.
        let mut is_sound = true;
        for bytes in &*offsets {
            let offset = u64::from_le_bytes(*bytes);
            is_sound &= before <= offset;
            before = offset;
        }
        let is_whole = |bytes: &[u8; 8]| (u64::from_le_bytes(*bytes) - start).is_multiple_of(self.value_size);
        if !(is_sound && before <= end && (self.value_size == 1 || offsets.iter().all(is_whole))) {
            return Err(self.wrong_offset(earlier, offsets));
        }
        for bytes in offsets {
            let own = u64::from_le_bytes(*bytes) - start;
            *bytes = (if self.value_size == 1 { own } else { own / self.value_size }).to_le_bytes();
        }
        Ok(())
    }

    /// Returns the error for the first wrong offset after `before`.
    fn wrong_offset(&self, mut before: u64, offsets: &[[u8; SIZE as usize]]) -> Error {
        let is_wrong = |offset: &u64| {
            let is_in_order = (before..=self.within.end).contains(offset);
            let is_whole = offset.checked_sub(self.within.start).is_some_and(|own| own.is_multiple_of(self.value_size));
            before = *offset;
            !(is_in_order && is_whole)
        };
        match offsets.iter().map(|bytes| u64::from_le_bytes(*bytes)).find(is_wrong) {
            Some(offset) => Error::damaged(format!("the offset {offset} of a value")).in_field(&self.column),
            None => Error::internal("offsets that are wrong together and right alone"),
        }
    }
}

impl Content for OwnOffsets {
    fn len(&self) -> u64 {
        self.stored.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(SIZE as usize, BLOCK / SIZE as usize, offset, out, |first, mut out| {
            let length = out.len();
            self.stored.read(first * SIZE, out.part(0..length))?;
            match (out.wanted(), first.checked_sub(1)) {
                (Some(out), _) => self.convert(first, out.as_chunks_mut().0),
                // The conversion will need it, too.
                (None, Some(earlier)) => self.stored.read(earlier * SIZE, Output::Ahead(SIZE)),
                (None, None) => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::read_all;

    fn own(offsets: &[u64], within: Range<u64>, value_size: u64) -> OwnOffsets {
        let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let length = bytes.len() as u64;
        OwnOffsets { stored: Slice::new(Arc::new(bytes), 0, length), within, value_size, column: "a".to_owned() }
    }

    #[test]
    fn an_offset_below_the_last_one_of_the_block_before_is_damage() {
        let in_block = BLOCK as u64 / SIZE;
        let mut offsets: Vec<u64> = (0..in_block + 2).collect();
        let last = offsets[offsets.len() - 1];
        assert!(own(&offsets, 0..last, 1).read_at(0, &mut vec![0; offsets.len() * 8]).is_ok());
        offsets[in_block as usize] = in_block - 2;
        let damaged = own(&offsets, 0..last, 1);
        let (all, end) =
            (damaged.read_at(0, &mut vec![0; offsets.len() * 8]), damaged.read_at(in_block * 8, &mut [0; 8]));
        for error in [all.unwrap_err(), end.unwrap_err()] {
            assert!(error.to_string().contains(&format!("the offset {} of", in_block - 2)), "{error}");
        }
    }

    proptest! {
        #[test]
        fn sound_offsets_count_from_the_first(
            steps in prop::collection::vec(0u64..9, 1..40), start in 0u64..1 << 60, value_size in 1u64..9,
        ) {
            let mut numbers = vec![0];
            numbers.extend(steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }));
            let stored: Vec<u64> = numbers.iter().map(|number| start + number * value_size).collect();
            let content = own(&stored, start..stored[stored.len() - 1], value_size);
            prop_assert_eq!(read_all(&content), numbers.iter().flat_map(|own| own.to_le_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn an_error_names_the_first_wrong_offset(
            offsets in prop::collection::vec(prop::sample::select(vec![0, 39, 40, 41, 42, 44, 48, 49, 50, u64::MAX]), 1..5),
            value_size in 1u64..3,
        ) {
            let (start, end) = (40, 48);
            let mut before = start;
            let wrong = offsets.iter().find(|&&offset| {
                let is_sound = before <= offset && offset <= end && (offset - start) % value_size == 0;
                before = offset;
                !is_sound
            });
            let read = own(&offsets, start..end, value_size).read_at(0, &mut vec![0; offsets.len() * 8]);
            match wrong {
                Some(offset) => {
                    let (error, named) = (read.unwrap_err().to_string(), format!("the offset {offset} of"));
                    prop_assert!(error.contains(&named), "{}", error);
                }
                None => prop_assert!(read.is_ok()),
            }
        }
    }
}
