//! Values without the nulls between them, as Parquet's pages store them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;

use crate::content::bits::Bits;
use crate::content::offsets::{Offsets, wrong_offsets};
use crate::content::validity::{RowValidity, Validity};

/// Number of rows between remembered positions.
pub const BLOCK_ROWS: u64 = 1024;

/// Number of blocks read at a time.
const BLOCKS_AT_ONCE: usize = 32;

/// The validity of the rows of a page, whose values are counted.
#[derive(Clone)]
pub struct CountedValidity {
    validity: Validity,
    /// The number of rows with a value before each block, and in all blocks.
    before: Arc<Vec<u32>>,
}

impl CountedValidity {
    /// Counts the values of at most 2^31 rows.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn of(validity: Validity) -> Result<Self> {
        let rows = validity.len();
        let (mut before, mut count) = (vec![0], 0);
        let mut buf = vec![0; (BLOCK_ROWS * BLOCKS_AT_ONCE as u64).min(rows) as usize];
        let mut row = 0;
        while row < rows {
            let part = &mut buf[..(rows - row).min(BLOCK_ROWS * BLOCKS_AT_ONCE as u64) as usize];
            validity.read_at(row, part)?;
            for block in part.chunks(BLOCK_ROWS as usize) {
                count += block.iter().map(|byte| u32::from(*byte != 0)).sum::<u32>();
                before.push(count);
            }
            row += part.len() as u64;
        }
        Ok(CountedValidity { validity, before: Arc::new(before) })
    }

    /// Returns the number of rows with a value.
    pub fn values(&self) -> u64 {
        self.before.last().copied().unwrap_or(0).into()
    }

    fn rows(&self) -> u64 {
        self.validity.len()
    }

    /// Returns one bit per row, as pages store it.
    pub fn bits(&self) -> Bits {
        self.validity.bits()
    }

    /// Returns the block that contains a value, given the value's number.
    fn block_of(&self, value: u64) -> usize {
        self.before.partition_point(|&before| u64::from(before) <= value).saturating_sub(1)
    }

    fn rows_of(&self, blocks: &Range<usize>) -> Range<u64> {
        let row = |block: usize| (block as u64).saturating_mul(BLOCK_ROWS).min(self.rows());
        row(blocks.start)..row(blocks.end)
    }
}

/// The values of the rows that have one, end to end.
pub struct Compacted {
    /// The values of all rows.
    values: Arc<dyn Content>,
    size: u64,
    validity: CountedValidity,
}

impl Compacted {
    /// Creates the content. `values` has `size` bytes for each row.
    pub fn new(values: Arc<dyn Content>, size: u64, validity: CountedValidity) -> Self {
        Compacted { values, size, validity }
    }
}

impl Content for Compacted {
    fn len(&self) -> u64 {
        self.validity.values() * self.size
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        let (mut values, mut bytes) = (Vec::new(), Vec::new());
        let before = &self.validity.before;
        while !rest.is_empty() {
            let first = self.validity.block_of(at / self.size);
            // With nulls, memory is taken for a few blocks at a time.
            let last = self.validity.block_of((at + rest.len() - 1) / self.size);
            let most = (BLOCKS_AT_ONCE / (self.size as usize / 64 + 1)).max(1);
            let end = if rest.wanted().is_some() { last.min(first.saturating_add(most - 1)) } else { last } + 1;
            let rows = self.validity.rows_of(&(first..end));
            let (start, stop) = (u64::from(before[first]) * self.size, u64::from(before[end]) * self.size);
            let (mut now, later) = rest.split_at(stop - at);
            let skipped = at - start;
            at += now.len();
            rest = later;
            if u64::from(before[end] - before[first]) == rows.end - rows.start {
                self.values.read(rows.start * self.size + skipped, now)?;
                continue;
            }
            let count = rows.end - rows.start;
            self.values.read(rows.start * self.size, now.aside(count * self.size, &mut values))?;
            self.validity.validity.read(rows.start, now.aside(count, &mut bytes))?;
            let Some(out) = now.wanted() else { continue };
            let kept = keep_valid(&mut values, self.size as usize, &bytes);
            let there = values[..kept].get(skipped as usize..).and_then(|there| there.get(..out.len()));
            out.copy_from_slice(there.ok_or_else(changed)?);
        }
        Ok(())
    }
}

fn changed() -> Error {
    Error::damaged("nulls that are not the ones counted before")
}

/// Moves the valid values to the front, given their validity bytes; returns the length of the valid values in bytes.
fn keep_valid(values: &mut [u8], size: usize, validity: &[u8]) -> usize {
    match size {
        1 => keep_valid_of::<1>(values, validity),
        2 => keep_valid_of::<2>(values, validity),
        4 => keep_valid_of::<4>(values, validity),
        8 => keep_valid_of::<8>(values, validity),
        _ => {
            let mut to = 0;
            for (row, _) in validity.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                values.copy_within(row * size..(row + 1) * size, to);
                to += size;
            }
            to
        }
    }
}

fn keep_valid_of<const SIZE: usize>(values: &mut [u8], validity: &[u8]) -> usize {
    let (values, _) = values.as_chunks_mut::<SIZE>();
    let mut to = 0;
    // Branchless: each value is written, and overwritten by the next if it is null.
    for (row, byte) in validity.iter().enumerate().take(values.len()) {
        values[to] = values[row];
        to += usize::from(*byte != 0);
    }
    to * SIZE
}

/// Bytes of variable-length values that are read at a time and written with their lengths.
const TEXT_BATCH: u64 = 256 << 10;

/// Size of the length before each value of a column of texts or bytes.
pub const LENGTH: u64 = 4;

/// The values of some rows, without nulls. Each value is preceded by its length, except in lists.
pub struct LengthsAndBytes {
    /// The values of the whole column.
    values: Arc<dyn Content>,
    offsets: Offsets,
    rows: Range<u64>,
    /// Size of the length before each value in bytes, [`LENGTH`] or 0.
    prefix: u64,
    /// The position of the bytes of these rows.
    bytes: Range<u64>,
    /// The validity of the rows, if any can be null, and the start of each block's values in this content.
    validity: Option<(CountedValidity, Vec<u64>)>,
    length: u64,
    /// The block at which the last read ended, and its start: the next read usually begins there.
    last: Mutex<(u64, u64)>,
}

impl LengthsAndBytes {
    /// Creates the content for the values of `rows`, whose bytes lie at `bytes`, each preceded by its length in
    /// `prefix` bytes: [`LENGTH`], or 0.
    ///
    /// # Errors
    /// Fails if there are nulls and their lengths cannot be read.
    pub fn new(
        values: Arc<dyn Content>,
        offsets: impl Into<Offsets>,
        rows: Range<u64>,
        bytes: Range<u64>,
        prefix: u64,
        validity: Option<CountedValidity>,
    ) -> Result<Self> {
        let mut new = LengthsAndBytes {
            values,
            offsets: offsets.into(),
            length: (rows.end - rows.start) * prefix + (bytes.end - bytes.start),
            rows,
            bytes,
            prefix,
            validity: None,
            last: Mutex::default(),
        };
        if let Some(validity) = validity {
            let (mut starts, mut start) = (vec![0], 0);
            let mut offsets = Vec::new();
            for block in 0..(new.rows.end - new.rows.start).div_ceil(BLOCK_ROWS) {
                let rows = new.block(block);
                new.read_offsets(&rows, &mut offsets)?;
                let valid = new.validity_of(&validity, &rows)?;
                let lengths = offsets.windows(2).enumerate().filter(|(row, _)| !valid.is_null(*row));
                start += lengths.map(|(_, ends)| ends[1] - ends[0] + prefix).sum::<u64>();
                starts.push(start);
            }
            new.length = start;
            new.validity = Some((validity, starts));
        }
        Ok(new)
    }

    /// Returns the rows of a block, as row numbers of the column.
    fn block(&self, number: u64) -> Range<u64> {
        let row = |block: u64| self.rows.start.saturating_add(block.saturating_mul(BLOCK_ROWS)).min(self.rows.end);
        row(number)..row(number + 1)
    }

    /// Reads the validity of some rows, given as row numbers of the column.
    fn validity_of(&self, page: &CountedValidity, rows: &Range<u64>) -> Result<RowValidity> {
        RowValidity::of(Some(&page.validity), rows.start - self.rows.start..rows.end - self.rows.start)
    }

    /// Reads the offsets of the values of some rows and the final end.
    fn read_offsets(&self, rows: &Range<u64>, offsets: &mut Vec<u64>) -> Result<()> {
        offsets.resize((rows.end - rows.start + 1) as usize, 0);
        self.offsets.read_into(rows.start, offsets)?;
        let within =
            |offset: Option<&u64>| offset.is_some_and(|offset| (self.bytes.start..=self.bytes.end).contains(offset));
        if !offsets.is_sorted() || !within(offsets.first()) || !within(offsets.last()) {
            return Err(wrong_offsets());
        }
        Ok(())
    }

    /// Returns the start of a block's values in this content.
    fn start_of(&self, block: u64) -> Result<u64> {
        if let Some((_, starts)) = &self.validity {
            return Ok(starts.get(block as usize).copied().unwrap_or(self.length));
        }
        let row = self.block(block).start;
        let offset = self.offsets.at(row)?.checked_sub(self.bytes.start);
        let start = offset.map(|offset| offset.saturating_add(self.prefix * (row - self.rows.start)));
        start.filter(|&start| start <= self.length).ok_or_else(wrong_offsets)
    }

    /// Returns the last block that begins at or before a position, and its start.
    fn find(&self, place: u64) -> Result<(u64, u64)> {
        let (known, start) = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut low, mut high) = (0, (self.rows.end - self.rows.start).div_ceil(BLOCK_ROWS));
        let mut found = (0, 0);
        if start <= place {
            found = (known, start);
            low = known;
            // Try the neighbourhood of the last read first.
            let next = known + 1;
            if next < high {
                match self.start_of(next)? {
                    start if start > place => return Ok(found),
                    start => found = (next, start),
                }
                low = next;
            }
        } else {
            high = known;
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.start_of(middle)? {
                start if start > place => high = middle,
                start => (low, found) = (middle, (middle, start)),
            }
        }
        Ok(found)
    }

    /// Writes the values of a block as far as `out` covers them. The values begin at position `start`, and `out` begins
    /// at position `at`. Advances `at`, and returns the rest of `out`.
    fn read_block<'o>(&self, rows: Range<u64>, start: u64, at: &mut u64, mut out: Output<'o>) -> Result<Output<'o>> {
        let mut offsets = Vec::new();
        self.read_offsets(&rows, &mut offsets)?;
        let validity = self.validity.as_ref().map(|(validity, _)| self.validity_of(validity, &rows)).transpose()?;
        let validity = validity.unwrap_or_default();
        let mut block = BlockReader { offsets, validity, prefix: self.prefix, row: 0, place: start, at: *at };
        let mut values = Vec::new();
        while !out.is_empty() && block.skip() {
            out = match block.value_bytes() > TEXT_BATCH {
                true => self.read_long_value(&mut block, out)?,
                false => self.read_batch(&mut block, &mut values, out)?,
            };
        }
        *at = block.at;
        Ok(out)
    }

    /// Writes the next value as far as `out` covers it, without holding the value in memory.
    fn read_long_value<'o>(&self, block: &mut BlockReader, out: Output<'o>) -> Result<Output<'o>> {
        let length = block.value_bytes();
        let out = block.write(&(length as u32).to_le_bytes()[..self.prefix as usize], out);
        let (now, later) = out.split_at((block.place + length).saturating_sub(block.at));
        let wanted = now.len();
        if wanted > 0 {
            self.values.read(block.offsets[block.row] + (block.at - block.place), now)?;
        }
        block.at += wanted;
        block.place += length;
        block.row += 1;
        Ok(later)
    }

    /// Writes the next values, as many as are read at a time, as far as `out` covers them. Reads whole values, even if
    /// only a part is requested, and the bytes of nulls between values.
    fn read_batch<'o>(&self, block: &mut BlockReader, values: &mut Vec<u8>, mut out: Output<'o>) -> Result<Output<'o>> {
        let (end, place_of_end) = block.batch(out.len());
        let first = block.offsets[block.row];
        let length = block.offsets[end] - first;
        if out.wanted().is_none() {
            self.values.read(first, Output::Ahead(length))?;
            let (now, later) = out.split_at(place_of_end - block.at);
            block.at += now.len();
            (block.row, block.place) = (end, place_of_end);
            return Ok(later);
        }
        values.resize(length as usize, 0);
        self.values.read_at(first, values)?;
        out = block.write_whole_values(first, end, values, out);
        while block.row < end && !out.is_empty() {
            if !block.validity.is_null(block.row) {
                let value = &values[(block.offsets[block.row] - first) as usize..][..block.value_bytes() as usize];
                out = block.write(&(value.len() as u32).to_le_bytes()[..self.prefix as usize], out);
                out = block.write(value, out);
            }
            block.row += 1;
        }
        Ok(out)
    }
}

/// The progress of a read through the values of a block.
struct BlockReader {
    /// The offset of each row's value in the column, and the final end.
    offsets: Vec<u64>,
    validity: RowValidity,
    /// Size of the length before each value.
    prefix: u64,
    /// The next row, by its number in the block.
    row: usize,
    /// The position in the content at which the value of this row, or the rest of it, begins.
    place: u64,
    /// The position in the content at which the rest of the output begins.
    at: u64,
}

impl BlockReader {
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the length of the next row's value.
    fn value_bytes(&self) -> u64 {
        self.offsets[self.row + 1] - self.offsets[self.row]
    }

    /// Skips nulls, and values that end before the output begins; returns `false` at the end of the block.
    fn skip(&mut self) -> bool {
        while self.row < self.rows() {
            if !self.validity.is_null(self.row) {
                let end = self.place + self.prefix + self.value_bytes();
                if end > self.at {
                    return true;
                }
                self.place = end;
            }
            self.row += 1;
        }
        false
    }

    /// Returns the end of the rows that are read together with the next one for `wanted` bytes of output, and the
    /// position in the content at which their values end.
    fn batch(&self, wanted: u64) -> (usize, u64) {
        let (first, wanted_end) = (self.offsets[self.row], self.at + wanted);
        let (mut end, mut place) = (self.row, self.place);
        while end < self.rows() && place < wanted_end && self.offsets[end + 1] - first <= TEXT_BATCH {
            if !self.validity.is_null(end) {
                place += self.prefix + self.offsets[end + 1] - self.offsets[end];
            }
            end += 1;
        }
        (end, place)
    }

    /// Writes the values of the rows up to `end` that fit completely in `out`, if `out` begins at the start of a value.
    /// `values` begins at the offset `first`.
    fn write_whole_values<'o>(&mut self, first: u64, end: usize, values: &[u8], mut out: Output<'o>) -> Output<'o> {
        let Some(bytes) = out.wanted().filter(|_| self.at == self.place) else { return out };
        let prefix = self.prefix as usize;
        let (mut row, mut filled) = (self.row, 0);
        while row < end {
            if !self.validity.is_null(row) {
                let value = &values[(self.offsets[row] - first) as usize..(self.offsets[row + 1] - first) as usize];
                let Some(target) = bytes.get_mut(filled..filled + prefix + value.len()) else { break };
                let (length, target) = target.split_at_mut(prefix);
                length.copy_from_slice(&(value.len() as u32).to_le_bytes()[..prefix]);
                target.copy_from_slice(value);
                filled += prefix + value.len();
            }
            row += 1;
        }
        self.row = row;
        self.place += filled as u64;
        self.at += filled as u64;
        out.split_at(filled as u64).1
    }

    /// Writes the content's next bytes as far as `out` covers them.
    fn write<'o>(&mut self, bytes: &[u8], out: Output<'o>) -> Output<'o> {
        let skipped = (self.at.saturating_sub(self.place) as usize).min(bytes.len());
        let (mut now, later) = out.split_at((bytes.len() - skipped) as u64);
        if let Some(now) = now.wanted() {
            now.copy_from_slice(&bytes[skipped..][..now.len()]);
        }
        self.at += now.len();
        self.place += bytes.len() as u64;
        later
    }
}

impl Content for LengthsAndBytes {
    fn len(&self) -> u64 {
        self.length
    }

    /// Prefetching reads the lengths into memory.
    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut block, mut start) = self.find(offset)?;
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let rows = self.block(block);
            if rows.is_empty() {
                return Err(Error::damaged("offsets that do not agree with the values"));
            }
            rest = self.read_block(rows, start, &mut at, rest)?;
            if rest.is_empty() {
                break;
            }
            block += 1;
            start = self.start_of(block)?;
            if start != at {
                return Err(Error::damaged("offsets that do not agree with the values"));
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (block, start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead_within, read_all};
    use proptest::prelude::*;

    fn marks(count: usize, every: usize) -> Vec<u8> {
        (0..count).map(|row| u8::from(every == 0 || row % every != 0 && row / 2000 % 2 == 0)).collect()
    }

    proptest! {
        #[test]
        fn valid_values_are_end_to_end(count in 0usize..5000, every in 0usize..4, size in 1usize..20) {
            let marks = marks(count, every);
            let values: Vec<u8> = (0..count * size).map(|i| (i * 7 / 3) as u8).collect();
            let expected: Vec<u8> = values
                .chunks(size)
                .zip(&marks)
                .filter(|(_, mark)| **mark != 0)
                .flat_map(|(value, _)| value.to_vec())
                .collect();
            let validity = CountedValidity::of(Arc::new(marks).into()).unwrap();
            let compacted = Compacted::new(Arc::new(values), size as u64, validity);
            prop_assert!(read_all(&compacted) == expected);
            assert_random_access(&compacted);
        }
    }

    /// Texts of 0 to 6 bytes, one of them long.
    fn texts(count: usize) -> (Vec<u8>, Vec<u8>, Vec<Vec<u8>>) {
        let text = |row: usize| vec![b'a' + (row % 26) as u8; if row == 1500 { 300_000 } else { row * 5 % 7 }];
        let texts: Vec<Vec<u8>> = (0..count).map(text).collect();
        let mut offsets = vec![0u64];
        texts.iter().for_each(|text| offsets.push(offsets[offsets.len() - 1] + text.len() as u64));
        (texts.concat(), offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(), texts)
    }

    #[test]
    fn texts_follow_their_lengths() {
        let parts = [(3000, 0..3000, 0), (3000, 1100..2900, 3), (5000, 1..4999, 2), (10, 3..3, 0), (9000, 0..9000, 1)];
        for ((count, rows, every), prefix) in parts.into_iter().flat_map(|part| [(part.clone(), LENGTH), (part, 0)]) {
            let (values, offsets, texts) = texts(count);
            let here = &texts[rows.start as usize..rows.end as usize];
            let marks = marks(here.len(), every);
            let validity = (every > 0).then(|| CountedValidity::of(Arc::new(marks.clone()).into()).unwrap());
            let start: usize = texts[..rows.start as usize].concat().len();
            let bytes = start as u64..(start + here.concat().len()) as u64;
            let content =
                LengthsAndBytes::new(Arc::new(values), Arc::new(offsets), rows, bytes, prefix, validity).unwrap();
            let expected: Vec<u8> = here
                .iter()
                .zip(&marks)
                .filter(|(_, mark)| **mark != 0)
                .flat_map(|(text, _)| [&(text.len() as u32).to_le_bytes()[..prefix as usize], text].concat())
                .collect();
            assert!(read_all(&content) == expected, "{count} {every}");
            assert_random_access(&content);
        }
    }

    #[test]
    fn values_are_prefetched() {
        assert_reads_ahead_within(8 * BLOCK_ROWS * BLOCKS_AT_ONCE as u64, |sources| {
            let validity = CountedValidity::of(sources.values(Arc::new(marks(100_000, 3))).into()).unwrap();
            Arc::new(Compacted::new(sources.values(Arc::new(vec![1; 800_000])), 8, validity))
        });
        assert_reads_ahead_within(TEXT_BATCH + 20 * BLOCK_ROWS, |sources| {
            let (values, offsets, _) = texts(3000);
            let bytes = 0..values.len() as u64;
            let (values, offsets) = (sources.values(Arc::new(values)), sources.index(Arc::new(offsets)));
            Arc::new(LengthsAndBytes::new(values, offsets, 0..3000, bytes, LENGTH, None).unwrap())
        });
    }
}
