//! Rows of text in sequence, for readers that need not know their length.

use std::sync::Arc;

use tilefs_base::content::Forward;
use tilefs_base::error::Result;
use tilefs_threads::{self as threads, for_all};

use super::position::Position;
use super::table::{LoadedRows, Table};

/// Target size in bytes of the text made at a time, once a reader has asked for more than the first rows.
const PORTION: usize = 8 << 20;

/// Number of rows made at first.
const FIRST_ROWS: u64 = 64;

/// Returns a header and rows of text in sequence, without determining the number of their bytes.
pub fn forward(table: Arc<Table>) -> impl Forward {
    FromFront { table, at: Position::default(), rows: 0 }
}

/// Rows written in sequence.
struct FromFront {
    table: Arc<Table>,
    at: Position,
    /// Number of rows made last; 0 before the header.
    rows: u64,
}

impl Forward for FromFront {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        if self.rows == 0 {
            out.extend_from_slice(self.table.header());
            self.rows = FIRST_ROWS;
            if !out.is_empty() {
                return Ok(true);
            }
        }
        if self.at.row >= self.table.rows() {
            return Ok(false);
        }
        // Each thread formats a part. A thread that meets long rows stops early, and the parts of the threads after it
        // are dropped.
        let share = self.rows.div_ceil(threads::decoding() as u64);
        let parts = for_all(threads::decoding(), |number| {
            let first = self.at.row.saturating_add(number as u64 * share);
            let start = if number == 0 { self.at } else { Position::before_row(first) };
            some(&self.table, start, first.saturating_add(share).min(self.table.rows()))
        })?;
        let mut before = self.at;
        for (start, part, after) in parts {
            if start != before {
                break;
            }
            out.extend(part);
            before = after;
        }
        let made = (before.row - self.at.row).max(1);
        self.at = before;
        let fitting = PORTION as u64 * made / out.len().max(1) as u64;
        self.rows = fitting.clamp(1, 4 * self.rows);
        Ok(true)
    }
}

/// Returns the text from a position to the row `end`, or the first [`PORTION`] bytes or so of it.
fn some(table: &Table, start: Position, end: u64) -> Result<(Position, Vec<u8>, Position)> {
    let (mut at, mut text, mut scratch) = (start, Vec::new(), LoadedRows::default());
    while at.row < end && text.len() < PORTION {
        at = table.advance(at, end, &mut scratch, &mut text)?;
    }
    Ok((start, text, at))
}
