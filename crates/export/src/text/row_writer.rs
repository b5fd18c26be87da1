//! Writes a few rows at a time, column by column, to the output of a read, or prefetches the cells they are made of.

use std::ops::Range;
use std::sync::PoisonError;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;

use super::rows::{TextColumn, TextLines};
use crate::content::element::by_elements;
use crate::content::read_head;
use crate::content::validity::RowValidity;

/// Number of rows written together, so that all columns of a batch stay in the processor's cache.
const BATCH: u64 = 1024;

/// The same for prefetching, which writes nothing.
const BATCH_AHEAD: u64 = 16 * BATCH;

impl Content for TextLines {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (offset, mut rest) = read_head(&self.header, offset, out);
        if rest.is_empty() {
            return Ok(());
        }
        let end = offset + rest.len();
        let is_ahead = rest.wanted().is_none();
        let last = &self.last[usize::from(is_ahead)];
        let known = *last.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut row, mut place) = self.row_at(offset, known)?;
        let mut writer = RowWriter::new(offset, rest);
        loop {
            if is_ahead && !self.varies() && (offset..end).contains(&place) {
                // Only the position after all whole rows is needed.
                let whole = ((end - place) / self.fixed).min(self.rows - row);
                self.columns.iter().try_for_each(|column| column.cells.read_ahead((row, 0), (row + whole, 0)))?;
                (row, place) = (row + whole, place + whole * self.fixed);
                if place == end {
                    break;
                }
            }
            let most = if is_ahead { BATCH_AHEAD } else { BATCH };
            let count = most.min(self.rows - row).min((end - place).div_ceil(self.fixed));
            if count == 0 {
                return Err(Error::damaged("the offsets of the values end too early"));
            }
            writer.lay_out(self, row, count, place)?;
            writer.write(self, row)?;
            let at_end = writer.at_end;
            // The next read begins in this row of the last batch.
            (row, place) = writer.next(row);
            if at_end {
                break;
            }
        }
        *last.lock().unwrap_or_else(PoisonError::into_inner) = (row, place);
        Ok(())
    }
}

/// The requested characters, the current rows, and buffers that are reused for each batch.
pub struct RowWriter<'a> {
    /// The position in the file of the first character of `out`.
    start: u64,
    out: Output<'a>,
    /// The position of the next character of each requested row, and of the row after them.
    places: Vec<u64>,
    /// The row that contains the character after the requested ones, counted from the first, and its position.
    after: (u64, u64),
    /// Whether the current rows are the last that the read requests.
    at_end: bool,
    /// For each column, the number of the first element of each row, and of the row after.
    elements: Vec<Vec<u64>>,
    values: Vec<u8>,
    validity: RowValidity,
}

impl<'a> RowWriter<'a> {
    /// Creates a writer for a read of `out` at the position `start`.
    pub fn new(start: u64, out: Output<'a>) -> Self {
        RowWriter {
            start,
            out,
            places: Vec::new(),
            after: (0, 0),
            at_end: false,
            elements: Vec::new(),
            values: Vec::new(),
            validity: RowValidity::default(),
        }
    }

    fn end(&self) -> u64 {
        self.start + self.out.len()
    }

    /// Computes the positions of `count` rows from `first`, which is at `place`, and keeps those of requested rows.
    fn lay_out(&mut self, rows: &TextLines, first: u64, count: u64, place: u64) -> Result<()> {
        self.elements.resize_with(rows.columns.len(), Vec::new);
        self.places.clear();
        self.places.extend((0..=count).map(|row| rows.header.len() as u64 + (first + row) * rows.fixed));
        for (column, elements) in rows.columns.iter().zip(&mut self.elements) {
            column.cells.elements(first, count, elements)?;
            if column.varies() {
                self.places.iter_mut().zip(elements).for_each(|(place, element)| *place += *element * column.width);
            }
        }
        if self.places.first() != Some(&place) {
            return Err(Error::damaged("the offsets of the values do not begin at 0"));
        }
        // At least two rows: the first, which begins before the end, and the one after it.
        let end = self.end();
        let seen = self.places[..self.places.len() - 1].partition_point(|&place| place < end);
        self.places.truncate(seen + 1);
        let next = if self.places[seen] <= end { seen } else { seen - 1 };
        self.at_end = self.places[seen] >= end;
        self.after = (next as u64, self.places[next]);
        Ok(())
    }

    /// Returns the row that contains the character after the requested part of the batch, and its position.
    pub fn next(&self, first: u64) -> (u64, u64) {
        (first + self.after.0, self.after.1)
    }

    /// Writes the requested part of the current rows, of which `first` is the first.
    pub fn write(&mut self, rows: &TextLines, first: u64) -> Result<()> {
        self.places.pop();
        let elements = std::mem::take(&mut self.elements);
        let last = rows.columns.len() - 1;
        for (number, (column, elements)) in rows.columns.iter().zip(&elements).enumerate() {
            let marks = Separators {
                separator: rows.separator,
                // In all columns but the last, every cell is followed by a separator.
                rows_of_line: if number == last { rows.rows_of_line } else { u64::MAX },
                row_of_line: if number == last { first % rows.rows_of_line } else { 0 },
            };
            self.column(column, elements, first, marks)?;
        }
        self.elements = elements;
        Ok(())
    }

    /// Writes the cells of a column, each followed by its separator or line break, and advances the positions.
    fn column(&mut self, column: &TextColumn, elements: &[u64], first: u64, mut marks: Separators) -> Result<()> {
        let count = self.places.len();
        // Only the requested part of the first and the last cell is read: cells may be larger than memory.
        let from = elements[0] + self.seen(column, elements, 0).start;
        let to = elements[count - 1] + self.seen(column, elements, count - 1).end;
        column.cells.read_values(from..to, &self.out, &mut self.values)?;
        self.validity.read(column.cells.validity.as_ref(), first..first + count as u64, &self.out)?;
        let (start, end, size) = (self.start, self.end(), column.cells.size);
        let bytes = |from_element: u64, to_element: u64| {
            &self.values[((from_element - from) * size) as usize..((to_element - from) * size) as usize]
        };
        for (index, place) in self.places.iter_mut().enumerate() {
            let cell = elements[index]..elements[index + 1];
            let after = *place + (cell.end - cell.start) * column.width;
            let text = *place..after;
            *place = after + 1;
            let Some(out) = self.out.wanted() else { continue };
            let null = self.validity.is_null(index);
            let mark = marks.next();
            if index > 0 && index + 1 < count {
                // Only the first and the last row can be requested in part; this one is requested whole.
                let out = &mut out[(text.start - start) as usize..(after + 1 - start) as usize];
                let (text, end) = out.split_at_mut(out.len() - 1);
                print(column, bytes(cell.start, cell.end), null, text);
                end[0] = mark;
                continue;
            }
            let seen = text.start.max(start)..after.min(end);
            if seen.start < seen.end {
                let out = Output::Into(&mut out[(seen.start - start) as usize..(seen.end - start) as usize]);
                by_elements(column.width as usize, usize::MAX, seen.start - text.start, out, |element, mut out| {
                    let first = cell.start + element;
                    let count = out.len() / column.width;
                    out.wanted().into_iter().for_each(|out| print(column, bytes(first, first + count), null, out));
                    Ok(())
                })?;
            }
            if (start..end).contains(&after) {
                out[(after - start) as usize] = mark;
            }
        }
        Ok(())
    }

    /// Returns the requested elements of a row's cell.
    fn seen(&self, column: &TextColumn, elements: &[u64], index: usize) -> Range<u64> {
        let (place, count) = (self.places[index], elements[index + 1] - elements[index]);
        let skipped = (self.start.saturating_sub(place) / column.width).min(count);
        skipped..self.end().saturating_sub(place).div_ceil(column.width).min(count)
    }
}

/// Writes the elements of a cell to the characters reserved for them.
fn print(column: &TextColumn, values: &[u8], null: bool, out: &mut [u8]) {
    let (size, width, lead) = (column.cells.size as usize, column.width as usize, usize::from(column.spaced));
    match null {
        false if column.printer.is_run() => column.printer.print_run(values, out),
        false if values.len() == size => {
            out[..lead].fill(b' ');
            column.printer.print(values, &mut out[lead..]);
        }
        _ => {
            for (value, out) in values.chunks_exact(size).zip(out.chunks_exact_mut(width)) {
                out[..lead].fill(b' ');
                match null {
                    true => column.printer.print_null(&mut out[lead..]),
                    false => column.printer.print(value, &mut out[lead..]),
                }
            }
        }
    }
}

/// The separators after each cell of a column.
struct Separators {
    separator: u8,
    rows_of_line: u64,
    row_of_line: u64,
}

impl Separators {
    fn next(&mut self) -> u8 {
        self.row_of_line += 1;
        if self.row_of_line == self.rows_of_line {
            self.row_of_line = 0;
            return b'\n';
        }
        self.separator
    }
}
