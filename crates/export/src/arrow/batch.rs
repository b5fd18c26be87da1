//! The record batches: the rows of each, the positions of its buffers, and their contents.
//!
//! The position of a batch is computed. The size of a fixed-size buffer follows from the number of rows. The data
//! buffer of a variable-length column reserves, in each batch, the space between its rounded-up first and last offsets
//! plus 64 bytes. So the space of all earlier batches follows from a single offset. The buffers of list elements are
//! placed in the same way.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};

use super::message::{ALIGNMENT, BatchContents, BufferPlace, FieldNode};
use super::own_offsets::OwnOffsets;
use super::types::{ArrowColumn, BufferLayout};
use crate::content::bits::Bits;
use crate::content::compose::{Concat, Repeat, Slice};
use crate::content::offsets::Offsets;
use crate::content::validity::Validity;

/// Target size of a batch in bytes.
const BATCH_BYTES: u64 = 32 << 20;

/// Maximum number of rows of a batch, unless there would be too many batches.
const MAX_ROWS: u64 = 1 << 20;

/// Maximum number of batches: the footer lists them, and is held in memory.
const MAX_BATCHES: u64 = 1 << 16;

/// All rows of a table, divided into batches.
pub struct RecordBatches {
    pub columns: Vec<ArrowColumn>,
    pub rows: u64,
    rows_of_batch: u64,
}

/// One batch: the contents of its message, and its body.
pub struct RecordBatch {
    pub contents: BatchContents,
    pub body: Concat,
}

impl RecordBatches {
    /// Divides columns of `rows` cells each into batches.
    pub fn new(columns: Vec<ArrowColumn>, rows: u64) -> Self {
        let row: u64 = columns.iter().map(|column| column.row_length().unwrap_or(16)).fold(1, u64::saturating_add);
        let of_size = (BATCH_BYTES / row).clamp(1, MAX_ROWS);
        // A multiple of this makes all validity buffers of full batches end on a boundary.
        let rows_of_batch = of_size.max(rows / MAX_BATCHES).max(4096).next_multiple_of(8 * ALIGNMENT);
        RecordBatches::of(columns, rows, rows_of_batch)
    }

    /// Divides columns into batches of `rows_of_batch` rows each.
    pub(super) fn of(columns: Vec<ArrowColumn>, rows: u64, rows_of_batch: u64) -> Self {
        RecordBatches { columns, rows, rows_of_batch }
    }

    /// Returns the number of batches; 0 if there are no rows.
    pub fn count(&self) -> u64 {
        self.rows.div_ceil(self.rows_of_batch)
    }

    /// Returns the total length of the bodies of all batches in bytes; `None` if it exceeds 2^63.
    pub fn total(&self) -> Option<u64> {
        let full = self.rows / self.rows_of_batch;
        let fixed = full.checked_mul(self.fixed(self.rows_of_batch)?)?;
        let mut total = fixed.checked_add(match self.rows % self.rows_of_batch {
            0 => 0,
            rows => self.fixed(rows)?,
        })?;
        for column in self.columns.iter().filter(|column| column.offsets.is_some()) {
            total = total.checked_add(column.reserved(column.end(), self.count())?)?;
        }
        (total <= i64::MAX as u64).then_some(total)
    }

    /// Returns the total length of the bodies before a batch in bytes.
    pub fn before(&self, batch: u64) -> Result<u64> {
        let too_long = || Error::usage("a record batch over 2^63 bytes");
        if batch >= self.count() {
            return self.total().ok_or_else(too_long);
        }
        let mut before = batch * self.fixed(self.rows_of_batch).ok_or_else(too_long)?;
        for column in &self.columns {
            if let Some(offsets) = &column.offsets {
                let place = column.place_at(offsets, batch * self.rows_of_batch)?;
                before += column.reserved(place, batch).ok_or_else(too_long)?;
            }
        }
        Ok(before)
    }

    /// Returns contents with the same number of nodes and buffers as every batch, from which the length of its message
    /// follows.
    pub fn outline(&self) -> BatchContents {
        let nodes = self.columns.iter().map(|column| 1 + usize::from(column.has_child())).sum();
        let buffers = self.columns.iter().map(|column| column.buffers()).sum();
        BatchContents {
            rows: 1,
            nodes: vec![FieldNode { length: 1, nulls: 1 }; nodes],
            buffers: vec![BufferPlace { offset: 1, length: 1 }; buffers],
            body_length: 1,
        }
    }

    /// Reads the validity of a batch's rows, and composes its body of parts of the columns.
    pub fn batch(&self, number: u64) -> Result<RecordBatch> {
        let first = number * self.rows_of_batch;
        let rows = self.rows_of_batch.min(self.rows - first);
        let mut body = Body::default();
        for column in &self.columns {
            body.column(column, first, rows)?;
        }
        let space = self.before(number + 1)?.checked_sub(self.before(number)?).filter(|&space| space == body.length);
        let body_length = space.ok_or_else(|| Error::damaged("offsets that do not agree with the values"))?;
        let contents = BatchContents { rows, nodes: body.nodes, buffers: body.buffers, body_length };
        Ok(RecordBatch { contents, body: Concat::new(body.parts) })
    }

    /// Returns the size in bytes of the fixed-size buffers of this many rows.
    fn fixed(&self, rows: u64) -> Option<u64> {
        self.columns.iter().try_fold(0u64, |total, column| {
            let validity = if column.validity.is_some() { padded(rows.div_ceil(8))? } else { 0 };
            let values = match (column.row_length(), column.layout) {
                (_, BufferLayout::Bits) => padded(rows.div_ceil(8))?,
                (Some(length), _) => padded(rows.checked_mul(length)?)?,
                (None, _) => padded(rows.checked_add(1)?.checked_mul(8)?)?,
            };
            total.checked_add(validity)?.checked_add(values)
        })
    }
}

impl ArrowColumn {
    /// Returns the number of bytes of a cell's values; `None` if the number varies.
    fn row_length(&self) -> Option<u64> {
        match self.layout {
            BufferLayout::Values(size) => Some(size),
            BufferLayout::Bits => Some(1),
            BufferLayout::List { values, size } => Some(values * size),
            BufferLayout::Bytes | BufferLayout::VariableList(_) | BufferLayout::Nullable(_) | BufferLayout::Texts => {
                None
            }
        }
    }

    fn has_child(&self) -> bool {
        !matches!(self.layout, BufferLayout::Values(_) | BufferLayout::Bits | BufferLayout::Bytes)
    }

    /// Returns the end of the values of all rows.
    fn end(&self) -> UnitPlace {
        let bytes = self.values.len();
        UnitPlace { unit: self.elements.as_ref().map_or(bytes, |elements| elements.count()), byte: bytes }
    }

    /// Returns the start of the values of a row.
    fn place_at(&self, offsets: &Offsets, row: u64) -> Result<UnitPlace> {
        let (unit, end) = (offsets.at(row)?, self.end());
        if unit > end.unit {
            return Err(wrong_offset(unit, self));
        }
        let byte = match (self.layout, self.elements.as_ref().and_then(|elements| elements.offsets.as_ref())) {
            (BufferLayout::Nullable(size), _) => unit * size,
            (_, Some(offsets)) => offsets.at(unit)?,
            (_, None) => unit,
        };
        if byte > end.byte { Err(wrong_offset(byte, self)) } else { Ok(UnitPlace { unit, byte }) }
    }

    /// Returns the space in bytes that `batches` batches, which end at `place`, reserve for the buffers whose length
    /// depends on the values.
    fn reserved(&self, place: UnitPlace, batches: u64) -> Option<u64> {
        let mut total = padded(place.byte)?.checked_add(batches.checked_mul(ALIGNMENT)?)?;
        let of_elements = match self.layout {
            BufferLayout::Nullable(_) => [Some(place.unit.div_ceil(8)), None],
            BufferLayout::Texts => [Some(place.unit.div_ceil(8)), Some(place.unit.checked_mul(8)?)],
            _ => [None, None],
        };
        for length in of_elements.into_iter().flatten() {
            total = total.checked_add(padded(length)?)?.checked_add(batches.checked_mul(ALIGNMENT)?)?;
        }
        Some(total)
    }

    /// Returns the number of buffers in a batch, including those that are always empty.
    fn buffers(&self) -> usize {
        match self.layout {
            BufferLayout::Values(_) | BufferLayout::Bits => 2,
            BufferLayout::List { .. } | BufferLayout::Bytes => 3,
            BufferLayout::VariableList(_) | BufferLayout::Nullable(_) => 4,
            BufferLayout::Texts => 5,
        }
    }
}

/// A place among the values of a column: in the units of its offsets, and in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnitPlace {
    unit: u64,
    byte: u64,
}

/// A body under construction.
#[derive(Default)]
struct Body {
    nodes: Vec<FieldNode>,
    buffers: Vec<BufferPlace>,
    parts: Vec<Arc<dyn Content>>,
    length: u64,
}

impl Body {
    fn column(&mut self, column: &ArrowColumn, first: u64, rows: u64) -> Result<()> {
        let part = |of: &Arc<dyn Content>, size: u64| -> Arc<dyn Content> {
            Arc::new(Slice::new(of.clone(), first * size, rows * size))
        };
        let validity = column.validity.as_ref().map(|validity| validity.part(first, rows));
        let nulls = validity.as_ref().map_or(Ok(0), Validity::null_count)?;
        self.nodes.push(FieldNode { length: rows, nulls });
        match validity {
            Some(validity) => self.buffer(Arc::new(validity.bits())),
            None => self.nothing(),
        }
        match (column.layout, &column.offsets) {
            (BufferLayout::Values(size), _) => self.buffer(part(&column.values, size)),
            (BufferLayout::Bits, _) => self.buffer(Arc::new(Bits::new(part(&column.values, 1)))),
            (BufferLayout::List { values, size }, _) => {
                self.nodes.push(FieldNode { length: rows * values, nulls: 0 });
                self.nothing();
                self.buffer(part(&column.values, values * size));
            }
            (BufferLayout::Bytes, Some(offsets)) => self.variable(column, offsets, 1, first, rows)?,
            (BufferLayout::VariableList(size), Some(offsets)) => self.variable(column, offsets, size, first, rows)?,
            (BufferLayout::Nullable(_) | BufferLayout::Texts, Some(offsets)) => {
                self.elements(column, offsets, first, rows)?
            }
            (_, None) => return Err(Error::damaged("values of variable length without offsets")),
        }
        Ok(())
    }

    /// Adds the offsets of lists, and a child with the elements.
    fn elements(&mut self, column: &ArrowColumn, offsets: &Offsets, first: u64, rows: u64) -> Result<()> {
        let elements = column.elements.as_ref().ok_or_else(|| Error::internal("lists without elements"))?;
        let (start, end) = (column.place_at(offsets, first)?, column.place_at(offsets, first + rows)?);
        let count = end.unit.checked_sub(start.unit).ok_or_else(|| wrong_offset(end.unit, column))?;
        let bytes = end.byte.checked_sub(start.byte).ok_or_else(|| wrong_offset(end.byte, column))?;
        self.buffer(Arc::new(OwnOffsets::new(column, offsets, first..first + rows, start.unit..end.unit, 1)));
        let validity = elements.validity.part(start.unit, count);
        self.nodes.push(FieldNode { length: count, nulls: validity.null_count()? });
        let space = |from: u64, to: u64| padded(to).zip(padded(from)).map_or(0, |(to, from)| to - from + ALIGNMENT);
        let bits = space(start.unit.div_ceil(8), end.unit.div_ceil(8));
        self.padded_buffer(Arc::new(validity.bits()), bits);
        if let Some(offsets) = &elements.offsets {
            let own = OwnOffsets::new(column, offsets, start.unit..end.unit, start.byte..end.byte, 1);
            self.padded_buffer(Arc::new(own), space(start.unit * 8, end.unit * 8));
        }
        let values = Slice::new(column.values.clone(), start.byte, bytes);
        self.padded_buffer(Arc::new(values), space(start.byte, end.byte));
        Ok(())
    }

    /// Adds offsets that begin at 0 and count values of `size` bytes, and the values.
    fn variable(&mut self, column: &ArrowColumn, offsets: &Offsets, size: u64, first: u64, rows: u64) -> Result<()> {
        let (start, end) = (offset_at(offsets, first, column)?, offset_at(offsets, first + rows, column)?);
        let length = end.checked_sub(start).ok_or_else(|| wrong_offset(end, column))?;
        if offsets.len() == (first + rows + 1) * 8 && end != column.values.len() {
            return Err(wrong_offset(end, column));
        }
        self.buffer(Arc::new(OwnOffsets::new(column, offsets, first..first + rows, start..end, size)));
        if column.has_child() {
            self.nodes.push(FieldNode { length: length / size, nulls: 0 });
            self.nothing();
        }
        let space = padded(end).zip(padded(start)).map_or(0, |(end, start)| end - start + ALIGNMENT);
        self.padded_buffer(Arc::new(Slice::new(column.values.clone(), start, length)), space);
        Ok(())
    }

    /// Adds a buffer that is empty in every batch.
    fn nothing(&mut self) {
        self.buffers.push(BufferPlace { offset: self.length, length: 0 });
    }

    fn buffer(&mut self, content: Arc<dyn Content>) {
        let space = content.len().next_multiple_of(ALIGNMENT);
        self.padded_buffer(content, space);
    }

    fn padded_buffer(&mut self, content: Arc<dyn Content>, space: u64) {
        let length = content.len();
        self.buffers.push(BufferPlace { offset: self.length, length });
        self.parts.push(content);
        self.parts.push(Arc::new(Repeat::zeros(space.saturating_sub(length))));
        self.length += space;
    }
}

fn padded(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(ALIGNMENT)
}

/// Returns the byte offset of a row's values.
fn offset_at(offsets: &Offsets, row: u64, column: &ArrowColumn) -> Result<u64> {
    let offset = offsets.at(row)?;
    if offset > column.values.len() {
        return Err(wrong_offset(offset, column));
    }
    Ok(offset)
}

fn wrong_offset(offset: u64, column: &ArrowColumn) -> Error {
    Error::damaged(format!("the offset {offset} of a value")).in_field(&column.field.name)
}
