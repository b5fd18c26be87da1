//! Text for formats whose text is UTF-8: reading a cell that is not UTF-8 is an error that names the cell.
//!
//! TileDB accepts any bytes as ASCII or UTF-8 text, and only reading a whole column shows whether its text is valid.
//! The type of a column therefore follows from the schema, and the bytes are checked as they are read.

use std::ops::Range;
use std::str;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_base::content::Content;
use tilefs_base::error::{Locate, Result};
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;

use crate::content::offsets::{Offsets, wrong_offsets};
use crate::content::refusal::{NOT_UTF8, refused_cell};
use crate::content::validity::Validity;

/// The most bytes that a character has before or after any one of its bytes.
const CUT: u64 = 3;

/// How many starts of cells are read together: 64 KiB at most ...
const STARTS_AT_ONCE: usize = 8192;

/// ... but fewer at first: a block of Parquet has 1,024 rows.
const FIRST_STARTS: usize = 1024;

/// Returns whether a byte of UTF-8 continues a character.
fn is_continuation(byte: &u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Splits bytes of UTF-8 into the end of a character that began before them, whole characters, and the beginning of a
/// character that continues after them.
fn split_at_cut_characters(bytes: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let before = bytes.iter().take(CUT as usize).take_while(|byte| is_continuation(byte)).count();
    let (before, rest) = bytes.split_at(before);
    let last = rest.iter().rev().take(CUT as usize).position(|byte| !is_continuation(byte));
    let cut = last.map(|behind| behind + 1).filter(|&length| {
        let lead = rest.get(rest.len() - length).copied().unwrap_or_default();
        // The number of leading ones is that of the bytes of a character, and 0 for ASCII.
        lead.leading_ones() as usize > length
    });
    let (whole, after) = rest.split_at(rest.len() - cut.unwrap_or(0));
    (before, whole, after)
}

/// The values of a text column; reading anything that is not UTF-8 fails.
pub struct Utf8Values {
    values: Arc<dyn Content>,
    offsets: Offsets,
    /// Null cells are not checked, because the format does not show their values.
    validity: Option<Validity>,
    /// The column's name.
    name: String,
    /// A row that starts at or before the end of the bytes checked last; a sequential reader continues there.
    checked_to: AtomicU64,
}

impl Utf8Values {
    /// Creates the content. `values` and `offsets` are those of the column `name`. Null cells are not
    /// checked.
    pub fn new(values: Arc<dyn Content>, offsets: impl Into<Offsets>, validity: Option<Validity>, name: &str) -> Self {
        let checked_to = AtomicU64::new(0);
        Utf8Values { values, offsets: offsets.into(), validity, name: name.to_owned(), checked_to }
    }

    fn rows(&self) -> u64 {
        self.offsets.count()
    }

    /// Returns the start of a row, or the end of the last row if `row` is the number of rows.
    fn start(&self, row: u64) -> Result<u64> {
        self.offsets.at(row)
    }

    /// Sets `starts` to the starts of at most `most` rows, from row `first` on.
    fn read_starts(&self, first: u64, most: usize, starts: &mut Vec<u64>) -> Result<()> {
        starts.resize(self.rows().saturating_sub(first).min(most as u64) as usize, 0);
        self.offsets.read_into(first, starts)
    }

    /// Sets `starts` to the starts of some rows, and returns the first of these rows, which begins at or before `byte`.
    /// Tries the rows after the bytes checked last, and searches only if they do not hold `byte`.
    fn find_starts(&self, byte: u64, starts: &mut Vec<u64>) -> Result<u64> {
        let next = self.checked_to.load(Ordering::Relaxed);
        self.read_starts(next, FIRST_STARTS, starts)?;
        if starts.first().is_some_and(|first| *first <= byte) && starts.last().is_some_and(|last| *last > byte) {
            return Ok(next);
        }
        let row = self.row_at(byte)?;
        self.read_starts(row, FIRST_STARTS, starts)?;
        Ok(row)
    }

    /// Returns the last row that begins at or before a byte.
    fn row_at(&self, byte: u64) -> Result<u64> {
        Ok(partition_point(1..self.rows(), |row| Ok(self.start(row)? <= byte))? - 1)
    }

    /// Checks the cells that overlap `bytes`; `read` holds the bytes at these positions.
    fn check(&self, bytes: Range<u64>, read: &[u8]) -> Result<()> {
        // An ASCII character is never part of another one, so the cell boundaries do not matter.
        if read.is_ascii() {
            return Ok(());
        }
        let (before, whole, after) = split_at_cut_characters(read);
        let whole_bytes = bytes.start + before.len() as u64..bytes.end - after.len() as u64;
        if !self.is_text_of_whole_cells(&whole_bytes, whole)? {
            return self.check_each_cell(bytes, read);
        }
        self.check_each_cell(bytes.start..whole_bytes.start, before)?;
        self.check_each_cell(whole_bytes.end..bytes.end, after)
    }

    /// Returns whether `read`, the bytes at `bytes`, is valid text in which no cell begins within a character. If not,
    /// the cells may still be right: null cells need not be text.
    fn is_text_of_whole_cells(&self, bytes: &Range<u64>, read: &[u8]) -> Result<bool> {
        if simdutf8::basic::from_utf8(read).is_err() {
            return Ok(false);
        }
        let (mut starts, mut most) = (Vec::new(), FIRST_STARTS);
        let mut row = self.find_starts(bytes.start, &mut starts)?;
        let mut last_start = 0;
        while !starts.is_empty() {
            for (number, &start) in (row..).zip(&starts) {
                if start < last_start {
                    return Err(wrong_offsets());
                }
                if start >= bytes.end {
                    self.checked_to.store(number.saturating_sub(1), Ordering::Relaxed);
                    return Ok(true);
                }
                if start > bytes.start && read.get((start - bytes.start) as usize).is_none_or(is_continuation) {
                    return Ok(false);
                }
                last_start = start;
            }
            row += starts.len() as u64;
            most = (2 * most).min(STARTS_AT_ONCE);
            self.read_starts(row, most, &mut starts)?;
        }
        Ok(true)
    }

    /// Checks the cells that overlap `bytes` one by one, and names the first that is not text.
    fn check_each_cell(&self, bytes: Range<u64>, read: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut row = self.row_at(bytes.start)?;
        let mut start = self.start(row)?;
        while row < self.rows() && start < bytes.end {
            let end = self.start(row + 1)?;
            if end < start {
                return Err(wrong_offsets());
            }
            let seen = start.max(bytes.start)..end.min(bytes.end);
            if !seen.is_empty()
                && !self.is_text(start..end, seen, bytes.start, read)?
                && self.validity.as_ref().map_or(Ok(true), |validity| validity.is_valid(row))?
            {
                return Err(refused_cell(row, NOT_UTF8));
            }
            (row, start) = (row + 1, end);
        }
        Ok(())
    }

    /// Returns whether the bytes `seen` of a cell are characters or parts of characters. `read` begins at byte `first`.
    fn is_text(&self, cell: Range<u64>, seen: Range<u64>, first: u64, read: &[u8]) -> Result<bool> {
        if cell == seen {
            let own = read.get((seen.start - first) as usize..(seen.end - first) as usize);
            return Ok(own.is_some_and(|own| str::from_utf8(own).is_ok()));
        }
        // Extends the range to complete the characters at its ends.
        let wide = seen.start.saturating_sub(CUT).max(cell.start)..seen.end.saturating_add(CUT).min(cell.end);
        let mut bytes = vec![0; (wide.end - wide.start) as usize];
        self.values.read_at(wide.start, &mut bytes)?;
        let cut = match wide.start > cell.start {
            true => bytes.iter().take(CUT as usize).take_while(|byte| is_continuation(byte)).count(),
            false => 0,
        };
        let whole = bytes.get(cut..).unwrap_or_default();
        Ok(match str::from_utf8(whole) {
            Ok(_) => true,
            // The last character continues after the bytes that were read.
            Err(error) => error.error_len().is_none() && wide.end < cell.end,
        })
    }
}

impl Content for Utf8Values {
    fn len(&self) -> u64 {
        self.values.len()
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        let length = out.len();
        self.values.read(offset, out.part(0..length))?;
        match out.wanted() {
            Some(read) => self.check(offset..offset + length, read).in_field(&self.name),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values_of(cells: &[Vec<u8>], validity: Option<Vec<u8>>) -> Utf8Values {
        let mut offsets = vec![0u64];
        cells.iter().for_each(|cell| offsets.push(offsets[offsets.len() - 1] + cell.len() as u64));
        let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let validity = validity.map(|bytes| Arc::new(bytes).into());
        Utf8Values::new(Arc::new(cells.concat()), Arc::new(offsets), validity, "name")
    }

    /// Cells made of pieces of characters, most of which form valid text.
    fn cells() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let whole = "[a-cäß€😀]{0,6}".prop_map(String::into_bytes);
        let piece =
            prop::sample::select(vec![b"\xc3".to_vec(), b"\xa4".to_vec(), b"\xe2\x82".to_vec(), b"\x80".to_vec()]);
        let cell = prop_oneof![9 => whole.clone(), 1 => (whole.clone(), piece, whole).prop_map(|(a, b, c)| [a, b, c].concat())];
        prop::collection::vec(cell, 1..12)
    }

    proptest! {
        #[test]
        fn values_read_are_valid_text_of_their_cells(cells in cells(), validity in prop::collection::vec(0u8..2, 12)) {
            let validity = validity[..cells.len()].to_vec();
            let values = values_of(&cells, Some(validity.clone()));
            let bad = cells.iter().zip(&validity).position(|(cell, byte)| *byte != 0 && str::from_utf8(cell).is_err());
            let all = cells.concat();
            let mut read = vec![0; all.len()];
            match (values.read_at(0, &mut read), bad) {
                (Ok(()), None) => prop_assert_eq!(&read, &all),
                (Err(error), Some(row)) => {
                    let found = error.to_string();
                    prop_assert!(found.contains(&format!("row {row},")) && found.contains("name"), "{}", found);
                }
                (result, bad) => prop_assert!(false, "{:?} {:?}", result, bad),
            }
            // Each byte is also rejected on its own if it is not part of a character.
            let refused = (0..all.len()).filter(|&at| values.read_at(at as u64, &mut [0]).is_err()).count();
            prop_assert_eq!(refused > 0, bad.is_some());
            if bad.is_none() {
                for start in 0..all.len() {
                    prop_assert!(values.read_at(start as u64, &mut vec![0; all.len() - start]).is_ok());
                }
            }
        }
    }

    proptest! {
        /// The starts of the cells of a block are read in more than one piece.
        #[test]
        fn bytes_of_a_block_are_text_if_they_are_text_in_their_cells(
            cells in cells(), good in prop::collection::vec("[aé€😀]{0,2}", 1..9), at in 0..3 * STARTS_AT_ONCE,
            window in (any::<prop::sample::Index>(), any::<prop::sample::Index>())
        ) {
            let many = (0..3 * STARTS_AT_ONCE).map(|row| good[row % good.len()].clone().into_bytes());
            let mut all: Vec<Vec<u8>> = many.collect();
            all.splice(at..at, cells);
            // Whether each byte is a part of a character of its cell, and whether all of its cell are.
            let (mut is_text, mut is_in_text) = (Vec::new(), Vec::new());
            for cell in &all {
                for chunk in cell.utf8_chunks() {
                    is_text.resize(is_text.len() + chunk.valid().len(), true);
                    is_text.resize(is_text.len() + chunk.invalid().len(), false);
                }
                is_in_text.resize(is_text.len(), str::from_utf8(cell).is_ok());
            }
            let (bytes, values) = (all.concat(), values_of(&all, None));
            let (one, other) = (window.0.index(bytes.len() + 1), window.1.index(bytes.len() + 1));
            for window in [one.min(other)..one.max(other), 0..bytes.len()] {
                let places = window.start as u64..window.end as u64;
                let found = values.check(places, &bytes[window.clone()]).map_err(|error| error.to_string());
                if !is_text[window.clone()].iter().all(|own| *own) {
                    prop_assert!(found.is_err(), "{:?}", window);
                } else if is_in_text[window.clone()].iter().all(|own| *own) {
                    prop_assert_eq!(found, Ok(()));
                }
            }
        }
    }

    #[test]
    fn cut_characters_are_those_whose_other_bytes_are_missing() {
        let text = "aé€😀z".as_bytes();
        for start in 0..text.len() {
            for end in start..=text.len() {
                let (before, whole, after) = split_at_cut_characters(&text[start..end]);
                assert_eq!([before, whole, after].concat(), &text[start..end]);
                assert!(str::from_utf8(whole).is_ok() && before.len() <= 3 && after.len() <= 3, "{start}..{end}");
            }
        }
        assert_eq!(split_at_cut_characters(b"ab"), (&b""[..], &b"ab"[..], &b""[..]));
    }

    #[test]
    fn character_split_between_cells_is_invalid() {
        let values = values_of(&[b"a\xc3".to_vec(), b"\xa4".to_vec()], None);
        assert!(values.read_at(0, &mut [0; 3]).is_err());
        values.read_at(0, &mut [0; 1]).unwrap();
    }
}
