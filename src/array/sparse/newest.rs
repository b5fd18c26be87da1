//! The rows of a merge: of the cells with the same coordinates the newest one, in whatever order they come.
//!
//! Within a fragment that holds cells of several times, those of one coordinate may be stored in any order: libtiledb
//! 2.11 wrote them so. A fragment without such times was written at once. What is in it twice is as new as itself, and
//! both are rows.

use std::cmp::Ordering;
use std::ops::Range;

use super::merge::{CellSink, CellStream, Part};
use super::rows::MixedWriter;
use super::task::Merged;
use crate::error::Error;

/// Stretches of cells of one fragment with the same coordinates that may be rows: more than any sound one has.
const MOST_STRETCHES: usize = 1 << 16;

/// Tells a [`MixedWriter`] of each cell that is a row, and of the others of its part before it that they are dropped.
pub struct Newest<'a, 'b> {
    writer: &'a mut MixedWriter<'b>,
    /// By part, the position of the first cell that the writer has not been told of.
    told: Vec<u64>,
    /// The part and the age of the newest cells with the present coordinates.
    part: usize,
    age: (u64, usize),
    /// The positions of those that are shown.
    rows: Vec<Range<u64>>,
}

impl<'a, 'b> Newest<'a, 'b> {
    /// The parts start at these positions.
    pub fn new(writer: &'a mut MixedWriter<'b>, starts: impl Iterator<Item = u64>) -> Self {
        Newest { writer, told: starts.collect(), part: 0, age: (0, 0), rows: Vec::new() }
    }

    /// Tells of the last rows. Cells behind them are left out.
    pub fn finish(mut self) -> Merged<()> {
        self.tell()
    }

    #[inline]
    fn tell(&mut self) -> Merged<()> {
        for rows in self.rows.drain(..) {
            for _ in self.told[self.part]..rows.start {
                self.writer.push(self.part, false)?;
            }
            for _ in rows.clone() {
                self.writer.push(self.part, true)?;
            }
            self.told[self.part] = rows.end;
        }
        Ok(())
    }

    #[inline]
    fn add_row(&mut self, position: u64) -> Merged<()> {
        if let Some(last) = self.rows.last_mut()
            && last.end == position
        {
            last.end += 1;
            return Ok(());
        }
        if self.rows.len() == MOST_STRETCHES {
            return Err(Error::unsupported("a fragment that repeats one coordinate very often").into());
        }
        self.rows.push(position..position + 1);
        Ok(())
    }
}

impl CellSink for Newest<'_, '_> {
    #[inline]
    fn take<S: CellStream>(&mut self, number: usize, part: &Part<S>, is_same: bool) -> Merged<()> {
        let age = part.age();
        let order = if is_same { age.cmp(&self.age) } else { Ordering::Greater };
        match order {
            Ordering::Less => return Ok(()),
            Ordering::Equal if part.stream.has_versions() => return Ok(()),
            Ordering::Equal => {}
            Ordering::Greater if is_same => self.rows.clear(),
            Ordering::Greater => self.tell()?,
        }
        (self.part, self.age) = (number, age);
        if part.is_shown() { self.add_row(part.position()) } else { Ok(()) }
    }
}
