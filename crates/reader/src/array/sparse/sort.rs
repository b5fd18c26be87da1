//! Puts cells into another order than they are stored in, with a bounded amount of memory: sorted in parts, which are
//! then merged.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::Result;

use crate::memory;

use super::column::FixedColumn;
use super::key::{AxisColumn, CellOrder, KeyPlan};
use super::record::{Record, SortedRunWriter, merge};
use super::row_map::RowMap;
use super::rows::{Address, Rows, SCATTERED_ROWS, ScatteredSegment, Segment};
use super::store::{Blob, Store};
use super::var_column::VarColumn;
use super::view::SparseView;
use crate::threads::{self, for_all};

/// The part of the cache's budget that sorting may take beside it while it goes on, half of it for what is being
/// sorted and half for what was.
const SORT_SHARE: usize = 4;

/// Bytes of records that are sorted at once are at least so many, however small the budget is.
const LEAST_PART: usize = 256 << 10;

/// Cells or rows that are looked at together.
const ROWS_AT_ONCE: u64 = 8192;

/// The rows of a view sorted row-major by their coordinates; those of the same coordinates as they were. They are kept in
/// `store`.
///
/// # Errors
/// Any damage in the coordinates; [`Error::Unsupported`] for more cells than can be told apart.
pub fn sort_rows(view: &Arc<SparseView>, store: Arc<Store>) -> Result<RowMap> {
    let query = view.query()?;
    let plan = KeyPlan::new(query.array.schema(), CellOrder::RowMajor)?;
    let (rows, columns) = (view.row_count()?, RowColumns::new(view)?);
    let sorted = Store::new(sorting_share(query.budget()));
    // Each thread has one share of the rows: fewer parts are better to merge.
    let share = rows.div_ceil(threads::decoding() as u64).max(1);
    let runs = for_all(threads::decoding(), |number| {
        let first = (share * number as u64).min(rows);
        let mut writer = SortedRunWriter::new(&sorted, part_bytes(query.budget()));
        let (mut batch, mut record) = (RowBatch::default(), Record::default());
        let (mut row, most_text) = (first, part_bytes(query.budget()) as u64);
        let end = (first + share).min(rows);
        while row < end {
            let count = batch.read(view, &columns, &plan, row..end, most_text)?;
            for cell in 0..count as usize {
                record.key.clear();
                let key = &batch.keys[cell * plan.words()..(cell + 1) * plan.words()];
                plan.sortable_bytes(key, &batch.columns, cell, &mut record.key);
                record.rank = row + cell as u64;
                record.address = batch.addresses[cell];
                writer.push(&record)?;
            }
            row += count;
        }
        writer.finish()
    })?;
    let mut list = AddressWriter::new(&store);
    merge(&sorted, &runs.concat(), |record| list.push(record.address))?;
    let segment = Segment::Scattered(list.finish()?);
    Ok(RowMap::new(vec![segment], store))
}

/// Bytes of memory for what was sorted, of the cache's budget.
pub fn sorting_share(budget: usize) -> usize {
    budget / SORT_SHARE / 2
}

/// Bytes of records that one thread sorts at once.
pub fn part_bytes(budget: usize) -> usize {
    (sorting_share(budget) / threads::decoding()).max(LEAST_PART)
}

/// The coordinates of rows.
struct RowColumns {
    dimensions: Vec<Dimension>,
}

enum Dimension {
    Fixed(FixedColumn),
    Text(Box<VarColumn>),
}

impl RowColumns {
    fn new(view: &Arc<SparseView>) -> Result<Self> {
        let dimensions = view.query()?.plan.axes.iter().enumerate().map(|(number, axis)| {
            Ok(match axis.is_text() {
                true => Dimension::Text(Box::new(VarColumn::of_dimension(view.clone(), number)?)),
                false => Dimension::Fixed(FixedColumn::of_dimension(view.clone(), number)?),
            })
        });
        Ok(RowColumns { dimensions: dimensions.collect::<Result<_>>()? })
    }
}

/// Some rows: their cells and coordinates.
#[derive(Default)]
struct RowBatch {
    addresses: Vec<Address>,
    columns: Vec<AxisColumn>,
    keys: Vec<u64>,
    bytes: Vec<u8>,
}

impl RowBatch {
    /// Reads the first of some rows, as many as have no more than `most_text` bytes of text along a dimension, or one.
    fn read(
        &mut self,
        view: &SparseView,
        from: &RowColumns,
        plan: &KeyPlan,
        rows: Range<u64>,
        most_text: u64,
    ) -> Result<u64> {
        self.columns.resize_with(plan.axes.len(), AxisColumn::default);
        let (first, mut count) = (rows.start, ROWS_AT_ONCE.min(rows.end - rows.start));
        for (column, dimension) in self.columns.iter_mut().zip(&from.dimensions) {
            column.clear();
            if let Dimension::Text(text) = dimension {
                column.offsets.resize(count as usize + 1, 0);
                text.offsets(first, &mut column.offsets)?;
                let start = column.offsets[0];
                let fit = column.offsets.partition_point(|offset| offset.saturating_sub(start) <= most_text);
                count = (fit as u64).saturating_sub(1).max(1);
            }
        }
        for (number, dimension) in from.dimensions.iter().enumerate() {
            let column = &mut self.columns[number];
            match dimension {
                Dimension::Fixed(fixed) => {
                    self.bytes.resize(count as usize * fixed.cell_size(), 0);
                    fixed.read(first, &mut self.bytes)?;
                    plan.axes[number].positions(&self.bytes, &mut column.positions)?;
                }
                Dimension::Text(text) => {
                    column.offsets.truncate(count as usize + 1);
                    let start = column.offsets[0];
                    let length = usize::try_from(column.offsets[count as usize] - start).unwrap_or(usize::MAX);
                    memory::resize(&mut column.bytes, length, "the text of coordinates")?;
                    text.read(start, &mut column.bytes)?;
                    column.offsets.iter_mut().for_each(|offset| *offset -= start);
                }
            }
        }
        plan.keys(&self.columns, count as usize, &mut self.keys);
        self.addresses.clear();
        view.map()?.for_each(first, count, |rows| add_addresses(&rows, &mut self.addresses))?;
        Ok(count)
    }
}

/// Appends the cells that rows are.
fn add_addresses(rows: &Rows<'_>, addresses: &mut Vec<Address>) -> Result<()> {
    match rows {
        Rows::CellSlab { fragment, position, rows } => {
            for position in *position..position + rows {
                addresses.push(Address::new(*fragment, position)?);
            }
        }
        Rows::Interleaved(interleaved) => {
            let mut next: Vec<u64> = interleaved.parts.iter().map(|part| part.position).collect();
            for code in &interleaved.codes {
                let part = usize::from(code >> 1);
                if code & 1 == 0 {
                    addresses.push(Address::new(interleaved.parts[part].fragment, next[part])?);
                }
                next[part] += 1;
            }
        }
        Rows::Scattered(list) => addresses.extend_from_slice(list),
    }
    Ok(())
}

/// Makes a [`ScatteredSegment`], row by row.
pub struct AddressWriter<'a> {
    store: &'a Store,
    blocks: Vec<Blob>,
    block: Vec<u8>,
    rows: u64,
}

impl<'a> AddressWriter<'a> {
    pub fn new(store: &'a Store) -> Self {
        AddressWriter { store, blocks: Vec::new(), block: Vec::new(), rows: 0 }
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn push(&mut self, address: Address) -> Result<()> {
        self.block.extend(address.to_bits().to_le_bytes());
        self.rows += 1;
        if self.rows.is_multiple_of(SCATTERED_ROWS) {
            self.blocks.push(self.store.put(std::mem::take(&mut self.block))?);
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn finish(mut self) -> Result<ScatteredSegment> {
        if !self.block.is_empty() {
            self.blocks.push(self.store.put(self.block)?);
        }
        Ok(ScatteredSegment::new(self.blocks, self.rows))
    }
}
