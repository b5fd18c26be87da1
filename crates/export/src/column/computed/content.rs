//! The contents of a computed column: its values, offsets and validity, and those of the elements of lists.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;

use super::cells::{CellKind, Cells, Size};
use super::{ComputedColumns, ComputedField};
use crate::column::{Column, Elements};

impl ComputedColumns {
    /// Returns the columns, in their order. Computes all cells, to know their lengths.
    ///
    /// # Errors
    /// Fails if a stored cell cannot be read, or a cell cannot be computed.
    pub fn columns(self: &Arc<Self>) -> Result<Vec<Column>> {
        let measured = self.measured()?;
        let column = |(number, ComputedField { field, kind }): (usize, &ComputedField)| {
            let all = measured.before.get(number).and_then(|before| before.last()).copied().unwrap_or_default();
            let part = |part, length| Arc::new(PartOfColumn { of: self.clone(), number, part, length });
            let rows = self.compute.rows();
            let shape = vec![rows];
            let values = part(ColumnPart::Values, all.bytes);
            let field = field.clone().with_values_per_cell(kind.values_per_cell());
            let offsets = || part(ColumnPart::Offsets, (rows + 1).saturating_mul(8));
            let elements =
                |offsets| Elements { offsets, validity: part(ColumnPart::ElementValidity, all.elements).into() };
            let column = match kind {
                CellKind::Value(_) => Column::fixed(field, shape, values),
                CellKind::Text => Column::variable(field, shape, values, offsets()),
                CellKind::Numbers(_) => Column::variable(field, shape, values, offsets()).with_elements(elements(None)),
                CellKind::Texts => {
                    let ends = part(ColumnPart::ElementOffsets, (all.elements + 1).saturating_mul(8));
                    Column::variable(field, shape, values, offsets()).with_elements(elements(Some(ends.into())))
                }
            };
            if column.field.nullable { column.with_validity(part(ColumnPart::Validity, rows)) } else { column }
        };
        Ok(self.compute.columns().iter().enumerate().map(column).collect())
    }
}

/// A content of a column.
pub struct PartOfColumn {
    pub of: Arc<ComputedColumns>,
    /// The number of the column.
    pub number: usize,
    pub part: ColumnPart,
    pub length: u64,
}

/// The part of a column that a content holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnPart {
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
            ColumnPart::Values => before.bytes,
            ColumnPart::Offsets => row * 8,
            ColumnPart::Validity => row,
            ColumnPart::ElementOffsets => before.elements * 8,
            ColumnPart::ElementValidity => before.elements,
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
            ColumnPart::Values => &cells.values,
            ColumnPart::Validity => &cells.validity_bytes,
            ColumnPart::ElementValidity => &cells.element_validity_bytes,
            ColumnPart::Offsets | ColumnPart::ElementOffsets => {
                // The start of each cell is the end of the one before it.
                let (ends, base) = match (self.part, cells.is_list()) {
                    (ColumnPart::ElementOffsets, _) => (&cells.element_ends, before.bytes),
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
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, number, part, length: _ } = self;
        recorder.add::<Self>((number, part));
        of.record(recorder);
    }

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
                    let last = if self.part == ColumnPart::Offsets && self.of.is_list(self.number) {
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
