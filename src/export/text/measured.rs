//! A table whose every row has its place: marks here and there, found in one pass, from which the rows between are
//! written anew.

use std::sync::{Arc, Mutex, PoisonError};

use super::table::{Position, Scratch, Table};
use crate::array::sparse::parallel::{for_all, threads};
use crate::error::{Error, Result};
use crate::export::content::{Content, check_range, read_head};
use crate::read::Output;

/// Marks are at least this far apart: what a read has to write in vain before its first byte.
const SPACING: u64 = 32 << 10;

/// So many marks are kept at most, of 32 bytes each; where there would be more, they are farther apart.
pub(super) const MOST_MARKS: usize = 1 << 18;

/// So many rows are measured by one thread without a break.
const ROWS_AT_A_TIME: u64 = 64 << 10;

/// So many of these for each thread are measured before their marks are gathered.
const PARTS_OF_THREAD: usize = 16;

/// The text of a table, which can be read from any place.
pub struct Measured {
    table: Arc<Table>,
    marks: Marks,
    length: u64,
    /// A place near the end of the last read, which is where the next one usually begins.
    last: Mutex<Mark>,
}

/// The place of a position in the file.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    place: u64,
    position: Position,
}

/// Marks in rising order.
struct Marks {
    spacing: u64,
    most: usize,
    marks: Vec<Mark>,
}

impl Marks {
    fn new(most: usize) -> Self {
        Marks { spacing: SPACING, most, marks: Vec::new() }
    }

    /// Keeps a mark behind all others, if it is far enough from the last one.
    fn add(&mut self, mark: Mark) {
        if self.marks.last().is_some_and(|last| mark.place - last.place < self.spacing) {
            return;
        }
        if self.marks.len() == self.most {
            self.spacing *= 2;
            let mut next = 0;
            self.marks.retain(|mark| {
                let keep = mark.place >= next;
                if keep {
                    next = mark.place + self.spacing;
                }
                keep
            });
        }
        self.marks.push(mark);
    }

    /// The last mark that is not behind a place.
    fn before(&self, place: u64) -> Mark {
        let after = self.marks.partition_point(|mark| mark.place <= place);
        after.checked_sub(1).and_then(|number| self.marks.get(number)).copied().unwrap_or_default()
    }

    /// The position of the first mark at a place or behind it; that behind the last of `rows` where there is none.
    fn behind(&self, place: u64, rows: u64) -> Position {
        let behind = self.marks.partition_point(|mark| mark.place < place);
        self.marks.get(behind).map_or(Position { row: rows, ..Position::default() }, |mark| mark.position)
    }
}

impl Measured {
    pub(super) fn new(table: Arc<Table>) -> Result<Self> {
        let too_long = || Error::unsupported("the text would be longer than 2^63 bytes");
        let mut marks = Marks::new(MOST_MARKS);
        let mut length = table.header.len() as u64;
        let mut first = 0;
        while first < table.rows {
            let parts_left = (table.rows - first).div_ceil(ROWS_AT_A_TIME);
            let parts = (PARTS_OF_THREAD * threads()).min(usize::try_from(parts_left).unwrap_or(usize::MAX));
            let measured = for_all(parts, |number| {
                let start = (first + number as u64 * ROWS_AT_A_TIME).min(table.rows);
                measure(&table, start, (start + ROWS_AT_A_TIME).min(table.rows))
            })?;
            for (part, part_length) in measured {
                for Mark { place, position } in part.marks {
                    marks.add(Mark { place: length + place, position });
                }
                length =
                    length.checked_add(part_length).filter(|&length| length <= i64::MAX as u64).ok_or_else(too_long)?;
            }
            first += parts as u64 * ROWS_AT_A_TIME;
        }
        let start = Mark { place: table.header.len() as u64, position: Position::default() };
        Ok(Measured { table, marks, length, last: Mutex::new(start) })
    }
}

/// The marks of some rows, counted from the first of them, and their length.
fn measure(table: &Table, first: u64, end: u64) -> Result<(Marks, u64)> {
    let mut marks = Marks::new(MOST_MARKS / (PARTS_OF_THREAD * threads()));
    let (mut scratch, mut text, mut length) = (Scratch::default(), Vec::new(), 0u64);
    let mut position = Position { row: first, ..Position::default() };
    while position.row < end {
        marks.add(Mark { place: length, position });
        text.clear();
        position = table.advance(position, end, &mut scratch, &mut text)?;
        length = length.saturating_add(text.len() as u64);
    }
    Ok((marks, length))
}

impl Content for Measured {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        check_range(self.length, offset, out.len())?;
        let (start, rest) = read_head(&self.table.header, offset, out);
        if rest.is_empty() {
            return Ok(());
        }
        let end = start + rest.len();
        let Output::Into(rest) = rest else {
            // Where a row begins between two marks is known only to who writes the rows before it.
            let behind = self.marks.behind(end, self.table.rows);
            return self.table.read_ahead(self.marks.before(start).position, behind);
        };
        let mut mark = self.marks.before(start);
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if (mark.place..=start).contains(&last.place) {
            mark = last;
        }
        let (mut scratch, mut text) = (Scratch::default(), Vec::new());
        loop {
            text.clear();
            if mark.position.row >= self.table.rows {
                return Err(Error::damaged("rows that are shorter than they were"));
            }
            let position = self.table.advance(mark.position, self.table.rows, &mut scratch, &mut text)?;
            let text_end = mark.place + text.len() as u64;
            let (from, to) = (mark.place.max(start), text_end.min(end));
            if from < to {
                rest[(from - start) as usize..(to - start) as usize]
                    .copy_from_slice(&text[(from - mark.place) as usize..(to - mark.place) as usize]);
            }
            if text_end >= end {
                break;
            }
            mark = Mark { place: text_end, position };
        }
        // The next read may begin within what was written last.
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = mark;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_thin_out_and_stay_in_order() {
        let mut marks = Marks::new(8);
        for row in 0..1000u64 {
            marks.add(Mark { place: 100 + row * SPACING / 2, position: Position { row, ..Position::default() } });
            assert!(marks.marks.len() <= 8);
        }
        assert!(marks.marks.windows(2).all(|two| two[1].place - two[0].place >= marks.spacing));
        assert_eq!(marks.marks[0].position.row, 0);
        for place in [100, 5000, 100 + 250 * SPACING, u64::MAX] {
            let before = marks.before(place);
            assert!(before.place <= place && before.place == 100 + before.position.row * SPACING / 2);
            assert!(marks.behind(place, 1000).row >= before.position.row);
        }
    }
}
