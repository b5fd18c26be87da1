//! Writes a few rows at a time, column by column, into the bytes that a read wants.

use super::rows::{Rows, TextColumn};
use crate::error::{Error, Result};

/// The characters that a read wants, the rows at hand, and buffers that are used again for each batch.
pub struct Batch<'a> {
    /// The place in the file of the first character of `out`.
    start: u64,
    out: &'a mut [u8],
    /// The place of the next character of each row that is seen; then that of the row after them.
    places: Vec<u64>,
    /// The row that holds the character after what is seen, counted from the first, and its place.
    after: (u64, u64),
    at_end: bool,
    /// For each column, the number of the first element of each row, and of the row after.
    elements: Vec<Vec<u64>>,
    values: Vec<u8>,
    validity: Vec<u8>,
    /// For an element that the ends of the read cut.
    edge: Vec<u8>,
}

impl<'a> Batch<'a> {
    /// For a read of `out` from the place `start`.
    pub fn new(start: u64, out: &'a mut [u8]) -> Self {
        Batch {
            start,
            out,
            places: Vec::new(),
            after: (0, 0),
            at_end: false,
            elements: Vec::new(),
            values: Vec::new(),
            validity: Vec::new(),
            edge: Vec::new(),
        }
    }

    fn end(&self) -> u64 {
        self.start + self.out.len() as u64
    }

    /// Finds the places of `count` rows from `first`, which is at `place`, and keeps those that are seen.
    pub fn lay_out(&mut self, rows: &Rows, first: u64, count: u64, place: u64) -> Result<()> {
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
        // Two rows at least: the first, whose place is before the end, and the one after it.
        let end = self.end();
        let seen = self.places[..self.places.len() - 1].partition_point(|&place| place < end);
        self.places.truncate(seen + 1);
        let next = if self.places[seen] <= end { seen } else { seen - 1 };
        self.at_end = self.places[seen] >= end;
        self.after = (next as u64, self.places[next]);
        Ok(())
    }

    /// Whether the rows that were laid out are the last that the read wants.
    pub fn reaches_end(&self) -> bool {
        self.at_end
    }

    /// The row that holds the character after what is seen of the batch, and its place.
    pub fn next(&self, first: u64) -> (u64, u64) {
        (first + self.after.0, self.after.1)
    }

    /// Writes what is seen of the rows that were laid out, of which `first` is the first.
    pub fn write(&mut self, rows: &Rows, first: u64) -> Result<()> {
        self.places.pop();
        let elements = std::mem::take(&mut self.elements);
        let last = rows.columns.len() - 1;
        for (number, (column, elements)) in rows.columns.iter().zip(&elements).enumerate() {
            let marks = Marks {
                separator: rows.separator,
                // Of all columns but the last every cell is followed by a separator.
                rows_of_line: if number == last { rows.rows_of_line } else { u64::MAX },
                row_of_line: if number == last { first % rows.rows_of_line } else { 0 },
            };
            self.column(column, elements, first, marks)?;
        }
        self.elements = elements;
        Ok(())
    }

    /// Writes the cells of a column, each with the mark behind it, and moves the places on.
    fn column(&mut self, column: &TextColumn, elements: &[u64], first: u64, mut marks: Marks) -> Result<()> {
        let count = self.places.len();
        // Of the first and the last cell only what is seen is read: cells may be longer than memory.
        let from = elements[0] + self.cut(column, elements, 0).0;
        let to = elements[count - 1] + self.cut(column, elements, count - 1).1;
        let mut values = std::mem::take(&mut self.values);
        values.resize((to.saturating_sub(from) * column.cells.size) as usize, 0);
        if !values.is_empty() {
            column.cells.values.read_at(from * column.cells.size, &mut values)?;
        }
        self.validity.clear();
        if let Some(validity) = &column.cells.validity {
            self.validity.resize(count, 0);
            validity.read_at(first, &mut self.validity)?;
        }
        let bytes = |from_element: u64, to_element: u64| {
            let range = (from_element - from) * column.cells.size..(to_element - from) * column.cells.size;
            &values[range.start as usize..range.end as usize]
        };
        for index in 0..count {
            let mark = marks.next();
            let null = self.validity.get(index) == Some(&0);
            let place = self.places[index];
            let after = place + (elements[index + 1] - elements[index]) * column.width;
            self.places[index] = after + 1;
            if index > 0 && index + 1 < count {
                // Wholly seen, as only the first and the last row are cut.
                let out = &mut self.out[(place - self.start) as usize..(after + 1 - self.start) as usize];
                let (text, end) = out.split_at_mut(out.len() - 1);
                print(column, bytes(elements[index], elements[index + 1]), null, text);
                end[0] = mark;
                continue;
            }
            let (skipped, upto) = self.cut_at(column, place, elements[index + 1] - elements[index]);
            if skipped < upto {
                let bytes = bytes(elements[index] + skipped, elements[index] + upto);
                self.cut_elements(column, place + skipped * column.width, bytes, null);
            }
            self.put(after, &[mark]);
        }
        self.values = values;
        Ok(())
    }

    /// The elements of a row's cell that are seen: how many are skipped, and up to which.
    fn cut(&self, column: &TextColumn, elements: &[u64], index: usize) -> (u64, u64) {
        self.cut_at(column, self.places[index], elements[index + 1] - elements[index])
    }

    fn cut_at(&self, column: &TextColumn, place: u64, count: u64) -> (u64, u64) {
        let skipped = (self.start.saturating_sub(place) / column.width).min(count);
        let upto = self.end().saturating_sub(place).div_ceil(column.width).min(count);
        (skipped, upto)
    }

    /// Writes elements from `place` on, where the ends of the read may cut the first and the last.
    fn cut_elements(&mut self, column: &TextColumn, place: u64, bytes: &[u8], null: bool) {
        let length = bytes.len() / column.cells.size as usize * column.width as usize;
        let mut edge = std::mem::take(&mut self.edge);
        // As long as what is seen, and two elements more at most.
        edge.resize(length, 0);
        print(column, bytes, null, &mut edge);
        self.put(place, &edge);
        self.edge = edge;
    }

    /// Copies what is seen of a text at `place`.
    fn put(&mut self, place: u64, text: &[u8]) {
        let (from, to) = (place.max(self.start), (place + text.len() as u64).min(self.end()));
        if from < to {
            let target = &mut self.out[(from - self.start) as usize..(to - self.start) as usize];
            target.copy_from_slice(&text[(from - place) as usize..(to - place) as usize]);
        }
    }
}

/// Writes the elements of a cell into as many characters as they have.
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

/// What follows each cell of a column.
struct Marks {
    separator: u8,
    rows_of_line: u64,
    row_of_line: u64,
}

impl Marks {
    fn next(&mut self) -> u8 {
        self.row_of_line += 1;
        if self.row_of_line == self.rows_of_line {
            self.row_of_line = 0;
            return b'\n';
        }
        self.separator
    }
}
