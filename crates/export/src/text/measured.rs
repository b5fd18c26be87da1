//! Rows of text that can be read at any position: one pass over the rows records checkpoints, and a read formats the
//! rows from the checkpoint before it.

use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads::{self as threads, for_all};

use super::position::Position;
use super::table::{LoadedRows, Table};
use crate::content::read_head;

/// Minimum distance between checkpoints in bytes, which is the most that a read formats in vain before its first byte.
const SPACING: u64 = 32 << 10;

/// Maximum number of checkpoints, of 32 bytes each; beyond it, they are spaced farther apart.
const MAX_CHECKPOINTS: usize = 1 << 18;

/// Rows that one thread measures at a time.
const ROWS_AT_A_TIME: u64 = 64 << 10;

/// Number of these parts per thread that are measured before their checkpoints are gathered.
const PARTS_OF_THREAD: usize = 16;

/// A header and rows of text, readable at any position.
pub struct Measured {
    table: Arc<Table>,
    checkpoints: Checkpoints,
    length: u64,
    /// A position near the end of the last read: the next read usually begins there.
    last: Mutex<Checkpoint>,
}

/// A position in the table, and its byte offset in the file.
#[derive(Debug, Clone, Copy, Default)]
struct Checkpoint {
    place: u64,
    position: Position,
}

/// Checkpoints in ascending order.
struct Checkpoints {
    spacing: u64,
    most: usize,
    checkpoints: Vec<Checkpoint>,
}

impl Checkpoints {
    fn new(most: usize) -> Self {
        Checkpoints { spacing: SPACING, most, checkpoints: Vec::new() }
    }

    /// Adds a checkpoint after all others, if it is far enough from the last one.
    fn add(&mut self, checkpoint: Checkpoint) {
        if self.checkpoints.last().is_some_and(|last| checkpoint.place - last.place < self.spacing) {
            return;
        }
        if self.checkpoints.len() == self.most {
            self.spacing *= 2;
            let mut next = 0;
            self.checkpoints.retain(|checkpoint| {
                let keep = checkpoint.place >= next;
                if keep {
                    next = checkpoint.place + self.spacing;
                }
                keep
            });
        }
        self.checkpoints.push(checkpoint);
    }

    /// Returns the last checkpoint at or before a byte.
    fn before(&self, place: u64) -> Checkpoint {
        let after = self.checkpoints.partition_point(|checkpoint| checkpoint.place <= place);
        after.checked_sub(1).and_then(|number| self.checkpoints.get(number)).copied().unwrap_or_default()
    }

    /// Returns whether a checkpoint for the same position has a different byte offset.
    fn contradict(&self, found: Checkpoint) -> bool {
        let key = |position: Position| (position.row, position.column, position.element);
        let number = self.checkpoints.binary_search_by_key(&key(found.position), |one| key(one.position));
        number.is_ok_and(|number| self.checkpoints[number].place != found.place)
    }

    /// Returns the position of the first checkpoint at or after a byte; the position after the last of `rows` if there
    /// is none.
    fn behind(&self, place: u64, rows: u64) -> Position {
        let behind = self.checkpoints.partition_point(|checkpoint| checkpoint.place < place);
        self.checkpoints
            .get(behind)
            .map_or(Position { row: rows, ..Position::default() }, |checkpoint| checkpoint.position)
    }
}

impl Measured {
    /// Restores the result of [`Measured::new`] for the same rows in an earlier mount, from the bytes of
    /// [`Measured::to_bytes`]; `None` if the bytes are invalid.
    pub fn of_saved(table: Arc<Table>, bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let (length, spacing) = (numbers.next()?, numbers.next()?);
        let (header, mut checkpoints) = (table.header().len() as u64, Checkpoints::new(MAX_CHECKPOINTS));
        let mut before = None;
        while let Some(place) = numbers.next() {
            let (row, column, element) = (numbers.next()?, u32::try_from(numbers.next()?).ok()?, numbers.next()?);
            let position = Position { row, column, element };
            let key = (row, column, element);
            let is_within = row < table.rows() && (column as usize) < table.column_count() && place < length;
            if !is_within || place < header || before.is_some_and(|before| before >= (place, key)) {
                return None;
            }
            before = Some((place, key));
            checkpoints.checkpoints.push(Checkpoint { place, position });
        }
        let first = checkpoints.checkpoints.first();
        let begins =
            first.map_or(table.rows() == 0, |first| first.place == header && first.position == Position::default());
        let is_sound = rest.is_empty() && begins && length >= header && length <= i64::MAX as u64;
        if !is_sound || checkpoints.checkpoints.len() > MAX_CHECKPOINTS {
            return None;
        }
        checkpoints.spacing = spacing;
        let start = Checkpoint { place: header, position: Position::default() };
        Some(Measured { table, checkpoints, length, last: Mutex::new(start) })
    }

    /// Returns the bytes from which [`Measured::of_saved`] restores this result.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [self.length, self.checkpoints.spacing].into_iter().flat_map(u64::to_le_bytes).collect();
        for Checkpoint { place, position } in &self.checkpoints.checkpoints {
            let numbers = [*place, position.row, position.column.into(), position.element];
            bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        }
        bytes
    }

    /// Determines the length and the positions of rows in a pass over all cells, on all cores. The result keeps one
    /// position per 32 KiB or more, at most `MAX_CHECKPOINTS`.
    ///
    /// # Errors
    /// Fails if a cell cannot be read, or the text would be longer than 2^63 bytes.
    pub fn new(table: Arc<Table>) -> Result<Self> {
        let too_long = || Error::unsupported("the text would be longer than 2^63 bytes");
        let mut checkpoints = Checkpoints::new(MAX_CHECKPOINTS);
        let mut length = table.header().len() as u64;
        let mut first = 0;
        while first < table.rows() {
            let parts_left = (table.rows() - first).div_ceil(ROWS_AT_A_TIME);
            let parts = (PARTS_OF_THREAD * threads::decoding()).min(usize::try_from(parts_left).unwrap_or(usize::MAX));
            let measured = for_all(parts, |number| {
                let start = (first + number as u64 * ROWS_AT_A_TIME).min(table.rows());
                measure(&table, start, (start + ROWS_AT_A_TIME).min(table.rows()))
            })?;
            for (part, part_length) in measured {
                for Checkpoint { place, position } in part.checkpoints {
                    checkpoints.add(Checkpoint { place: length + place, position });
                }
                length =
                    length.checked_add(part_length).filter(|&length| length <= i64::MAX as u64).ok_or_else(too_long)?;
            }
            first += parts as u64 * ROWS_AT_A_TIME;
        }
        let start = Checkpoint { place: table.header().len() as u64, position: Position::default() };
        Ok(Measured { table, checkpoints, length, last: Mutex::new(start) })
    }
}

/// Measures some rows: returns their checkpoints, with offsets relative to the first row, and the length of their text.
fn measure(table: &Table, first: u64, end: u64) -> Result<(Checkpoints, u64)> {
    let mut checkpoints = Checkpoints::new(MAX_CHECKPOINTS / (PARTS_OF_THREAD * threads::decoding()));
    let (mut scratch, mut text, mut length) = (LoadedRows::default(), Vec::new(), 0u64);
    let mut position = Position { row: first, ..Position::default() };
    while position.row < end {
        checkpoints.add(Checkpoint { place: length, position });
        text.clear();
        position = table.advance(position, end, &mut scratch, &mut text)?;
        length = length.saturating_add(text.len() as u64);
    }
    Ok((checkpoints, length))
}

impl Content for Measured {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (start, rest) = read_head(self.table.header(), offset, out);
        if rest.is_empty() {
            return Ok(());
        }
        let end = start + rest.len();
        let Output::Into(rest) = rest else {
            // The rows before a byte are not formatted, so the range is widened to the checkpoints around it.
            let behind = self.checkpoints.behind(end, self.table.rows());
            return self.table.read_ahead(self.checkpoints.before(start).position, behind);
        };
        let mut checkpoint = self.checkpoints.before(start);
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if (checkpoint.place..=start).contains(&last.place) {
            checkpoint = last;
        }
        let (mut scratch, mut text) = (LoadedRows::default(), Vec::new());
        loop {
            text.clear();
            if checkpoint.position.row >= self.table.rows() {
                return Err(Error::damaged("rows that are shorter than they were"));
            }
            let position = self.table.advance(checkpoint.position, self.table.rows(), &mut scratch, &mut text)?;
            let text_end = checkpoint.place + text.len() as u64;
            let found = Checkpoint { place: text_end, position };
            let is_at_end = position.row >= self.table.rows();
            if self.checkpoints.contradict(found) || (is_at_end && text_end != self.length) {
                return Err(Error::damaged(format!("row {} begins at another place than it did", position.row)));
            }
            let (from, to) = (checkpoint.place.max(start), text_end.min(end));
            if from < to {
                rest[(from - start) as usize..(to - start) as usize]
                    .copy_from_slice(&text[(from - checkpoint.place) as usize..(to - checkpoint.place) as usize]);
            }
            if text_end >= end {
                break;
            }
            checkpoint = found;
        }
        // The next read may begin within the part that was formatted last.
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = checkpoint;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_thin_out_and_stay_ordered() {
        let mut checkpoints = Checkpoints::new(8);
        for row in 0..1000u64 {
            checkpoints
                .add(Checkpoint { place: 100 + row * SPACING / 2, position: Position { row, ..Position::default() } });
            assert!(checkpoints.checkpoints.len() <= 8);
        }
        assert!(checkpoints.checkpoints.windows(2).all(|two| two[1].place - two[0].place >= checkpoints.spacing));
        assert_eq!(checkpoints.checkpoints[0].position.row, 0);
        for place in [100, 5000, 100 + 250 * SPACING, u64::MAX] {
            let before = checkpoints.before(place);
            assert!(before.place <= place && before.place == 100 + before.position.row * SPACING / 2);
            assert!(checkpoints.behind(place, 1000).row >= before.position.row);
        }
    }
}
