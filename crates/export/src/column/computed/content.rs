//! The contents of a computed column: its values, offsets and validity, and those of the elements of lists.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::read::Output;

use super::{Cells, ComputedColumns, Size};
use crate::content::Content;

/// A content of a column.
pub struct PartOfColumn {
    pub of: Arc<ComputedColumns>,
    /// The number of the column.
    pub number: usize,
    pub part: Part,
    pub length: u64,
}

/// The part of a column that a content holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Values,
    Offsets,
    Validity,
    ElementOffsets,
    ElementValidity,
}

impl PartOfColumn {
    /// Returns where a block begins in this content, given its first row and the size of all blocks before it.
    fn start(&self, row: u64, before: Size) -> u64 {
        match self.part {
            Part::Values => before.bytes,
            Part::Offsets => row * 8,
            Part::Validity => row,
            Part::ElementOffsets => before.elements * 8,
            Part::ElementValidity => before.elements,
        }
    }

    /// Returns where each block begins in this content, and where the last one ends.
    fn start_of(&self, rows: &[u64], before: &[Size], block: usize) -> u64 {
        let last = rows.len().saturating_sub(1);
        let block = block.min(last);
        self.start(rows.get(block).copied().unwrap_or(0), before.get(block).copied().unwrap_or_default())
    }

    /// Writes to `out` the bytes of a block from `skipped`; `before` is the size of all blocks before it.
    fn copy(&self, cells: &Cells, before: Size, skipped: u64, out: &mut [u8]) -> Result<()> {
        let lost = || Error::damaged("cells that have another length than they had");
        let skipped = usize::try_from(skipped).map_err(|_| lost())?;
        let bytes = match self.part {
            Part::Values => &cells.values,
            Part::Validity => &cells.validity,
            Part::ElementValidity => &cells.element_validity,
            Part::Offsets | Part::ElementOffsets => {
                // The start of each cell is the end of the one before it.
                let (ends, base) = match (self.part, cells.is_list()) {
                    (Part::ElementOffsets, _) => (&cells.element_ends, before.bytes),
                    (_, true) => (&cells.ends, before.elements),
                    (_, false) => (&cells.ends, before.bytes),
                };
                let first = skipped / 8;
                let count = (skipped % 8 + out.len()).div_ceil(8);
                let mut bytes = Vec::with_capacity(count * 8);
                for number in first..first + count {
                    let end = match number.checked_sub(1) {
                        None => 0,
                        Some(cell) => *ends.get(cell).ok_or_else(lost)?,
                    };
                    bytes.extend((base + end).to_le_bytes());
                }
                let part = bytes.get(skipped % 8..).and_then(|bytes| bytes.get(..out.len()));
                out.copy_from_slice(part.ok_or_else(lost)?);
                return Ok(());
            }
        };
        let part = bytes.get(skipped..).and_then(|bytes| bytes.get(..out.len()));
        out.copy_from_slice(part.ok_or_else(lost)?);
        Ok(())
    }
}

impl Content for PartOfColumn {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let measured = self.of.measured()?;
        let (rows, before) = (&measured.rows, measured.before.get(self.number));
        let before = before.ok_or_else(|| Error::internal("no such column"))?;
        let count = rows.len().saturating_sub(1);
        let start = |block: usize| self.start_of(rows, before, block);
        // The last block that begins at or before the offset: those without bytes of their own come before it.
        let (mut low, mut high) = (0, count.max(1));
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if start(middle) <= offset { low = middle } else { high = middle }
        }
        let (mut at, mut rest, mut block) = (offset, out, low);
        if rest.wanted().is_none() {
            let first = rows.get(block).copied().unwrap_or(0);
            while block < count && start(block) < offset.saturating_add(rest.len()) {
                block += 1;
            }
            let wanted = first..rows.get(block).copied().unwrap_or(first);
            return if rest.is_empty() || wanted.is_empty() {
                Ok(())
            } else {
                self.of.compute.read_ahead(wanted, self.number)
            };
        }
        while !rest.is_empty() {
            let end = if block < count { start(block + 1) } else { self.length };
            let (mut now, later) = rest.split_at(end.saturating_sub(at));
            let length = now.len();
            if let Some(out) = now.wanted().filter(|out| !out.is_empty()) {
                let before = before.get(block).copied().unwrap_or_default();
                if block < count {
                    let range = rows.get(block..block + 2).map_or(0..0, range);
                    let cells = self.of.block(self.number, block, range)?;
                    self.copy(&cells, before, at - start(block), out)?;
                } else {
                    // Behind all blocks is the last offset.
                    let last = if self.part == Part::Offsets && self.of.is_list(self.number) {
                        before.elements
                    } else {
                        before.bytes
                    };
                    let from = usize::try_from(at - start(block)).unwrap_or(usize::MAX);
                    let part = last.to_le_bytes().get(from..from.saturating_add(out.len())).map(<[u8]>::to_vec);
                    let part = part.ok_or_else(|| Error::internal("a read past the last offset"))?;
                    out.copy_from_slice(&part);
                }
            } else if block >= count {
                return Err(Error::internal("a read past the end of a computed column"));
            }
            (at, rest, block) = (at + length, later, block + 1);
        }
        Ok(())
    }
}

fn range(rows: &[u64]) -> Range<u64> {
    rows.first().copied().unwrap_or(0)..rows.last().copied().unwrap_or(0)
}
