//! Maps rows to cells in the files of each fragment, and back.

use tilefs_base::error::{Error, Result};

use crate::array::sparse::rows::address::Address;
use crate::array::sparse::rows::segments::{CellCode, InterleavedRows, VisitedRows};
use crate::array::sparse::select::cells::CellSlab;
use crate::array::sparse::sorting::radix::sort_by_word;

/// The cells of some rows in file order, so that each part of a file is read only once.
#[derive(Debug, Default)]
pub struct GatherList {
    pub slabs: Vec<CellSlab>,
    /// For each cell of all slabs its row, counted from the first of these rows; [`DROPPED`] if it is not a row.
    pub rows: Vec<u32>,
}

/// Marks a cell that lies between others and is not a row.
pub const DROPPED: u32 = u32::MAX;

impl InterleavedRows {
    /// Returns the cells of each part that has some.
    pub fn slabs(&self) -> impl Iterator<Item = CellSlab> {
        let with_cells = self.parts.iter().filter(|part| part.cells > 0);
        with_cells.map(|part| CellSlab { fragment: part.fragment, position: part.position, cells: part.cells })
    }
}

impl GatherList {
    /// Collects the cells of rows that are not a cell slab.
    ///
    /// # Errors
    /// [`Error::Damaged`] if they are one.
    pub fn set(&mut self, rows: &VisitedRows<'_>) -> Result<()> {
        match rows {
            VisitedRows::Interleaved(interleaved) => self.set_mixed(interleaved),
            VisitedRows::Scattered(addresses) => self.set_scattered(addresses),
            VisitedRows::CellSlab { .. } => return Err(Error::damaged("a cell slab among blocks")),
        }
        Ok(())
    }

    fn set_mixed(&mut self, interleaved: &InterleavedRows) {
        self.slabs.clear();
        self.rows.clear();
        self.rows.resize(interleaved.codes.len(), DROPPED);
        let mut next = Vec::with_capacity(interleaved.parts.len());
        let mut cells = 0;
        for part in &interleaved.parts {
            next.push(cells as usize);
            cells += part.cells;
        }
        self.slabs.extend(interleaved.slabs());
        let mut row = 0;
        for code in &interleaved.codes {
            let next = &mut next[code.part()];
            if code.is_row() {
                self.rows[*next] = row;
                row += 1;
            }
            *next += 1;
        }
    }

    pub fn set_scattered(&mut self, addresses: &[Address]) {
        self.slabs.clear();
        self.rows.clear();
        let mut runs = runs_of(addresses);
        sort_by_word(&mut runs, &mut Vec::new(), |run| run.first.to_bits());
        for RowRun { first, row, cells } in runs {
            let (fragment, position, count) = (first.fragment(), first.position(), u64::from(cells));
            match self.slabs.last_mut() {
                Some(last) if last.fragment == fragment && last.position + last.cells == position => {
                    last.cells += count;
                }
                _ => self.slabs.push(CellSlab { fragment, position, cells: count }),
            }
            self.rows.extend(row..row + cells);
        }
    }
}

/// Consecutive rows that are consecutive cells of one fragment. Most rows of a sorted array are in long runs.
#[derive(Clone, Copy)]
struct RowRun {
    first: Address,
    row: u32,
    cells: u32,
}

fn runs_of(addresses: &[Address]) -> Vec<RowRun> {
    let follows = |a: &Address, b: &Address| a.fragment() == b.fragment() && a.position() + 1 == b.position();
    let mut row = 0;
    let runs = addresses.chunk_by(follows).filter_map(|run| {
        let (first, cells) = (*run.first()?, run.len() as u32);
        row += cells;
        Some(RowRun { first, row: row - cells, cells })
    });
    runs.collect()
}

/// Copies the cells of scattered rows, which `cells` holds in file order, into row order.
pub fn scatter(rows: &[u32], cells: &[u8], cell_size: usize, out: &mut [u8]) {
    match cell_size {
        1 => scatter_sized::<1>(rows, cells, out),
        2 => scatter_sized::<2>(rows, cells, out),
        4 => scatter_sized::<4>(rows, cells, out),
        8 => scatter_sized::<8>(rows, cells, out),
        16 => scatter_sized::<16>(rows, cells, out),
        _ => {
            for (row, cell) in rows.iter().zip(cells.chunks_exact(cell_size.max(1))) {
                let start = (*row as usize).saturating_mul(cell_size);
                if let Some(out) = out.get_mut(start..start.saturating_add(cell_size)) {
                    out.copy_from_slice(cell);
                }
            }
        }
    }
}

/// As [`scatter`]. [`DROPPED`] is no row of `out`.
fn scatter_sized<const SIZE: usize>(rows: &[u32], cells: &[u8], out: &mut [u8]) {
    let (cells, _) = cells.as_chunks::<SIZE>();
    let (out, _) = out.as_chunks_mut::<SIZE>();
    for (row, cell) in rows.iter().zip(cells) {
        if let Some(out) = out.get_mut(*row as usize) {
            *out = *cell;
        }
    }
}

/// Sorts the cells of interleaved rows, which `cells` holds part by part, into row order.
pub fn interleave(interleaved: &InterleavedRows, cells: &[u8], cell_size: usize, out: &mut [u8]) {
    let mut next = Vec::with_capacity(interleaved.parts.len());
    let mut start = 0;
    for part in &interleaved.parts {
        next.push(start);
        start += part.cells as usize;
    }
    match cell_size {
        1 => interleave_sized::<1>(&interleaved.codes, &mut next, cells, out),
        2 => interleave_sized::<2>(&interleaved.codes, &mut next, cells, out),
        4 => interleave_sized::<4>(&interleaved.codes, &mut next, cells, out),
        8 => interleave_sized::<8>(&interleaved.codes, &mut next, cells, out),
        16 => interleave_sized::<16>(&interleaved.codes, &mut next, cells, out),
        _ => {
            let mut rows = out.chunks_exact_mut(cell_size.max(1));
            for code in &interleaved.codes {
                let next = &mut next[code.part()];
                if code.is_row()
                    && let Some(row) = rows.next()
                {
                    row.copy_from_slice(&cells[*next * cell_size..(*next + 1) * cell_size]);
                }
                *next += 1;
            }
        }
    }
}

fn interleave_sized<const SIZE: usize>(codes: &[CellCode], next: &mut [usize], cells: &[u8], out: &mut [u8]) {
    let (cells, _) = cells.as_chunks::<SIZE>();
    let (rows, _) = out.as_chunks_mut::<SIZE>();
    let mut row = 0;
    for code in codes {
        let next = &mut next[code.part()];
        // The last code is a row, so `row` is in range, and the next row overwrites a dropped cell.
        rows[row] = cells[*next];
        row += usize::from(code.is_row());
        *next += 1;
    }
}
