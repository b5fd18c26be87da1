//! The cells of a sparse matrix with 60,000 columns. Every row has 500 cells in each fragment that covers it.
//!
//! Fragments come in groups. The fragments of a group cover the same rows, and each group covers the rows after those
//! of the group before: with one fragment per group, writes append rows; with several, they update rows. A space tile
//! of 2048 rows may contain the end of one group and the start of the next; there, the cells of the two groups
//! interleave in the global order although their boxes are disjoint.
//!
//! Cell `slot` of a row is in column `120 * slot + (37 * row + 11 * slot + shift) % 120`. `shift` is 7 times the number
//! of the fragment in its group. In every tenth row, fragments with odd numbers use the shift of the fragment before,
//! and so have the same coordinates.

use std::ops::Range;

use super::cells::{Axis, Bounds, Cells, Datatype, Field};

const ROW: u64 = 500;
const STEP: u64 = 120;
/// The rows of a space tile.
const BAND: u64 = 2048;
/// The cells of a row in a space tile.
const BLOCK: u64 = 20;
/// The number of distinct values, which are the first eighths from 0 on.
const VALUES: u64 = 1021;

pub struct Matrix {
    rows: u64,
    overlapping: u64,
    sums: Sums,
}

impl Matrix {
    /// Makes a matrix with `cells` cells in each fragment and `overlapping` fragments in each group.
    pub fn new(cells: u64, overlapping: u64) -> Result<Self, String> {
        if cells == 0 || !cells.is_multiple_of(ROW) {
            return Err(format!("{cells} cells of a fragment are not a multiple of {ROW}, the cells of a row"));
        }
        // With more, shifts would repeat.
        if !(1..=STEP).contains(&overlapping) {
            return Err(format!("{overlapping} fragments over the same rows, not 1 to {STEP}"));
        }
        Ok(Matrix { rows: cells / ROW, overlapping, sums: Sums::new(overlapping) })
    }

    /// Returns the runs of a fragment, one per space tile, in global order, from the one that contains cell `from`.
    fn runs(&self, fragment: u64, from: u64) -> impl Iterator<Item = Run> {
        let first = fragment / self.overlapping * self.rows;
        let end = first + self.rows;
        // All rows of a band come before those of later bands, so this finds the band of cell `from`.
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

    /// Returns the parts of runs that contain a range of cells.
    fn parts(&self, fragment: u64, cells: Range<u64>) -> impl Iterator<Item = (Run, Range<u64>)> {
        let runs = self.runs(fragment, cells.start).take_while(move |run| run.start < cells.end);
        runs.map(move |run| {
            let end = (run.start + run.rows * BLOCK).min(cells.end);
            let part = cells.start.max(run.start) - run.start..end - run.start;
            (run, part)
        })
    }
}

/// The cells of a fragment in one space tile.
struct Run {
    /// The number of the fragment in its group.
    member: u64,
    row: u64,
    rows: u64,
    block: u64,
    /// The number of the first cell in the fragment.
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

    /// Calls `call` with the row and the column of each cell in a range.
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

    /// Returns candidates for the cells with the lowest and the highest column of a range: the first and the last cell
    /// of each row. Rows repeat after [`STEP`] rows.
    fn outer(cells: Range<u64>) -> impl Iterator<Item = u64> {
        let (first, last) = (cells.start / BLOCK, (cells.end - 1) / BLOCK);
        let rows = (first..=last.min(first + STEP)).chain([last]);
        rows.flat_map(move |row| [(row * BLOCK).max(cells.start), (row * BLOCK + BLOCK).min(cells.end) - 1])
    }
}

/// Prefix sums over the rows of a space tile: the sums of the cells' distances from the first columns of their slots.
struct Sums(Vec<u64>);

impl Sums {
    /// The number of blocks after which these distances repeat.
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

    /// Returns the sum over all rows before `row`.
    fn before(&self, run: &Run, row: u64) -> u64 {
        let place = (run.member * Self::BLOCKS + run.block % Self::BLOCKS) * (STEP + 1);
        let sum = |rows: u64| self.0[(place + rows) as usize];
        row / STEP * sum(STEP) + sum(row % STEP)
    }

    /// Returns the sum of the columns of a range of cells.
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
            // All columns of a block are less than those of the next block.
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
        // The sum of the row numbers, counted from the first row of the run, of all cells before `cell`.
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

    /// Appends values that count up.
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
