//! The cells of a sparse matrix, 60,000 columns wide, of which every row has 500 in each fragment that spans it.
//!
//! Fragments come in groups. Those of a group span the same rows, groups follow each other: by one fragment in a group
//! rows are appended, by more they are updated. Space tiles of 2048 rows are shared by the fragments of two groups where
//! these meet, so that the cells of the fragments take turns in the global order though their boxes are apart.
//!
//! The cell number `slot` of a row is in column `120 * slot + (37 * row + 11 * slot + shift) % 120`. `shift` is 7 times
//! the number of the fragment in its group; in every tenth row fragments of odd numbers have that of the one before, and
//! so the same coordinates.

use std::ops::Range;

use crate::cells::{Axis, Bounds, Cells, Datatype, Field};

const ROW: u64 = 500;
const STEP: u64 = 120;
/// Rows of a space tile.
const BAND: u64 = 2048;
/// Cells that a row has in a space tile.
const BLOCK: u64 = 20;
/// Values are eighths from 0 to this.
const VALUES: u64 = 1021;

pub struct Matrix {
    rows: u64,
    overlapping: u64,
    sums: Sums,
}

impl Matrix {
    /// With so many cells in each fragment, and so many fragments in a group.
    pub fn new(cells: u64, overlapping: u64) -> Result<Self, String> {
        if cells == 0 || !cells.is_multiple_of(ROW) {
            return Err(format!("{cells} cells of a fragment are not rows of {ROW}"));
        }
        // With more, shifts come again.
        if !(1..=STEP).contains(&overlapping) {
            return Err(format!("{overlapping} fragments over the same rows: 1 to {STEP} can be"));
        }
        Ok(Matrix { rows: cells / ROW, overlapping, sums: Sums::new(overlapping) })
    }

    /// The cells of a fragment in the space tiles that it spans, in their order: those from a number on.
    fn runs(&self, fragment: u64, from: u64) -> impl Iterator<Item = Run> {
        let first = fragment / self.overlapping * self.rows;
        let end = first + self.rows;
        // A row lies before all rows of later bands.
        let row = first + from / ROW;
        let mut band = (row / BAND * BAND).max(first);
        let mut block = {
            let height = (band / BAND * BAND + BAND).min(end) - band;
            (from - (band - first) * ROW) / (height * BLOCK)
        };
        let member = fragment % self.overlapping;
        std::iter::from_fn(move || {
            if band >= end {
                return None;
            }
            let next = (band / BAND * BAND + BAND).min(end);
            let rows = next - band;
            let run = Run { member, row: band, rows, block, start: (band - first) * ROW + block * rows * BLOCK };
            block += 1;
            if block == ROW / BLOCK {
                (band, block) = (next, 0);
            }
            Some(run)
        })
    }

    /// The parts of runs that hold some cells.
    fn parts(&self, fragment: u64, cells: Range<u64>) -> impl Iterator<Item = (Run, Range<u64>)> {
        let runs = self.runs(fragment, cells.start).take_while(move |run| run.start < cells.end);
        runs.map(move |run| {
            let end = (run.start + run.rows * BLOCK).min(cells.end);
            let part = cells.start.max(run.start) - run.start..end - run.start;
            (run, part)
        })
    }
}

/// The cells that a fragment has in a space tile.
struct Run {
    /// The number of the fragment in its group.
    member: u64,
    row: u64,
    rows: u64,
    block: u64,
    /// The number of the first in the fragment.
    start: u64,
}

impl Run {
    fn column(&self, cell: u64) -> u64 {
        let (row, slot) = (self.row + cell / BLOCK, self.block * BLOCK + cell % BLOCK);
        STEP * slot + (37 * row + 11 * slot + self.shift(row)) % STEP
    }

    fn shift(&self, row: u64) -> u64 {
        7 * (if row.is_multiple_of(10) { self.member - self.member % 2 } else { self.member })
    }

    /// Calls for the row and the column of each of some cells.
    fn each(&self, cells: Range<u64>, mut call: impl FnMut(u64, u64)) {
        let mut cell = cells.start;
        while cell < cells.end {
            let row = self.row + cell / BLOCK;
            let end = (cell / BLOCK * BLOCK + BLOCK).min(cells.end);
            let slot = self.block * BLOCK + cell % BLOCK;
            let mut within = (37 * row + 11 * slot + self.shift(row)) % STEP;
            for slot in slot..slot + (end - cell) {
                call(row, STEP * slot + within);
                within = if within + 11 < STEP { within + 11 } else { within + 11 - STEP };
            }
            cell = end;
        }
    }

    /// The cells among which the least and the greatest column of some are: the first and the last of each row, and
    /// rows come again after [`STEP`].
    fn outer(cells: Range<u64>) -> impl Iterator<Item = u64> {
        let (first, last) = (cells.start / BLOCK, (cells.end - 1) / BLOCK);
        let rows = (first..=last.min(first + STEP)).chain([last]);
        rows.flat_map(move |row| [(row * BLOCK).max(cells.start), (row * BLOCK + BLOCK).min(cells.end) - 1])
    }
}

/// Sums over rows of the space tiles of a fragment, of how far the cells are from the first columns of their slots.
struct Sums(Vec<u64>);

impl Sums {
    /// After so many blocks columns are as far from those of their slots again.
    const BLOCKS: u64 = 6;

    fn new(overlapping: u64) -> Self {
        let mut sums = Vec::new();
        for (member, block) in (0..overlapping).flat_map(|member| (0..Self::BLOCKS).map(move |block| (member, block))) {
            let run = Run { member, row: 0, rows: STEP, block, start: 0 };
            let mut sum = 0;
            for row in 0..=STEP {
                sums.push(sum);
                sum += (row * BLOCK..(row + 1) * BLOCK).map(|cell| run.column(cell) % STEP).sum::<u64>();
            }
        }
        Sums(sums)
    }

    /// The sum over all rows before one.
    fn before(&self, run: &Run, row: u64) -> u64 {
        let place = (run.member * Self::BLOCKS + run.block % Self::BLOCKS) * (STEP + 1);
        let sum = |rows: u64| self.0[(place + rows) as usize];
        row / STEP * sum(STEP) + sum(row % STEP)
    }

    /// The sum of the columns of some cells.
    fn columns(&self, run: &Run, cells: Range<u64>) -> u64 {
        let (first, last) = (cells.start.div_ceil(BLOCK), cells.end / BLOCK);
        if first >= last {
            return cells.map(|cell| run.column(cell)).sum();
        }
        let slots: u64 = (0..BLOCK).map(|cell| STEP * (run.block * BLOCK + cell)).sum();
        let whole = slots * (last - first) + self.before(run, run.row + last) - self.before(run, run.row + first);
        let rest = (cells.start..first * BLOCK).chain(last * BLOCK..cells.end);
        whole + rest.map(|cell| run.column(cell)).sum::<u64>()
    }
}

const AXES: [Axis; 2] = [
    Axis { domain: (0, u32::MAX as i64), extent: BAND as i64 },
    Axis { domain: (0, (ROW * STEP) as i64 - 1), extent: (BLOCK * STEP) as i64 },
];
const DIMENSIONS: [Field; 2] = [
    Field { name: "obs", datatype: Datatype::Int64, values: Some(1), period: 0 },
    Field { name: "var", datatype: Datatype::Int64, values: Some(1), period: 0 },
];
const ATTRIBUTES: [Field; 1] = [Field { name: "data", datatype: Datatype::Float32, values: Some(1), period: VALUES }];

impl Cells for Matrix {
    fn axes(&self) -> &[Axis] {
        &AXES
    }

    fn dimensions(&self) -> &[Field] {
        &DIMENSIONS
    }

    fn attributes(&self) -> &[Field] {
        &ATTRIBUTES
    }

    fn bounds(&self, fragment: u64, cells: Range<u64>) -> Bounds {
        let (mut rows, mut columns) = ((u64::MAX, 0), (u64::MAX, 0));
        let mut blocks = (u64::MAX, 0);
        for (run, part) in self.parts(fragment, cells) {
            rows.0 = rows.0.min(run.row + part.start / BLOCK);
            rows.1 = rows.1.max(run.row + (part.end - 1) / BLOCK);
            // Columns of a block come before those of the next.
            if run.block > blocks.0 && run.block < blocks.1 {
                continue;
            }
            blocks = (blocks.0.min(run.block), blocks.1.max(run.block));
            for column in Run::outer(part).map(|cell| run.column(cell)) {
                columns = (columns.0.min(column), columns.1.max(column));
            }
        }
        [rows, columns].map(|(low, high)| (low as i64, high as i64)).to_vec()
    }

    fn sum_of_coordinates(&self, dimension: usize, fragment: u64, cells: Range<u64>) -> i64 {
        // Of the rows of all cells of a run before one, from its first.
        let before = |cell: u64| {
            let (whole, rest) = (cell / BLOCK, cell % BLOCK);
            BLOCK * whole * whole.saturating_sub(1) / 2 + whole * rest
        };
        let sums = self.parts(fragment, cells).map(|(run, part)| match dimension {
            0 => (part.end - part.start) * run.row + before(part.end) - before(part.start),
            _ => self.sums.columns(&run, part),
        });
        sums.sum::<u64>() as i64
    }

    fn write_dimension(&self, dimension: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>) {
        to.reserve(8 * (cells.end - cells.start) as usize);
        for (run, part) in self.parts(fragment, cells) {
            match dimension {
                0 => run.each(part, |row, _| to.extend(row.to_le_bytes())),
                _ => run.each(part, |_, column| to.extend(column.to_le_bytes())),
            }
        }
    }

    /// The values of a fragment count up.
    fn write_attribute(&self, _: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>) {
        to.reserve(4 * (cells.end - cells.start) as usize);
        let mut value = (cells.start + 13 * fragment) % VALUES;
        for _ in cells {
            to.extend((value as f32 / 8.0).to_le_bytes());
            value = if value + 1 < VALUES { value + 1 } else { 0 };
        }
    }

    fn bytes_before(&self, _: usize, _: u64, _: u64) -> u64 {
        0
    }
}
