//! Sorts rows into another order than the stored one, in bounded memory: sorts parts, then merges them.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::Result;

use crate::memory;

use super::column::FixedColumn;
use super::external_sort::{Record, SortedRunWriter, merge};
use super::key::{AxisColumn, CellOrder, KeyPlan};
use super::row_map::RowMap;
use super::rows::{Address, AddressWriter, Rows, Segment};
use super::store::Store;
use super::var_column::VarColumn;
use super::view::SparseView;
use crate::threads::{self, for_all};

/// Rows that are read together.
const ROWS_AT_ONCE: u64 = 8192;

impl SparseView {
    /// Returns the rows of another view sorted row-major. Loads them if they are saved.
    pub(super) fn sort_map(&self, stored: &Arc<SparseView>) -> Result<RowMap> {
        let query = stored.query()?;
        let store = Arc::new(Store::new(query.budget().row_map()));
        let saved = self.saved().of_query(query);
        if let Some(segments) = saved.whole(&store) {
            return Ok(RowMap::new(segments, store));
        }
        let map = sort_rows(stored, store)?;
        saved.indexes().note_merged(map.count()?);
        saved.keep_whole(&map)?;
        Ok(map)
    }
}

/// Sorts the rows of a view row-major by their coordinates. The sort is stable. `store` keeps the rows.
///
/// # Errors
/// Any damage in the coordinates; [`Error::Unsupported`] for more cells than an [`Address`] can tell apart.
fn sort_rows(view: &Arc<SparseView>, store: Arc<Store>) -> Result<RowMap> {
    let query = view.query()?;
    let plan = KeyPlan::new(query.array.schema(), CellOrder::RowMajor)?;
    let (rows, columns) = (view.row_count()?, RowColumns::new(view)?);
    let sorted = Store::new(query.budget().sorted_runs());
    // Each thread sorts one share of the rows: fewer runs are faster to merge.
    let share = rows.div_ceil(threads::decoding() as u64).max(1);
    let runs = for_all(threads::decoding(), |number| {
        let first = (share * number as u64).min(rows);
        let mut writer = SortedRunWriter::new(&sorted, query.budget().sorted_run());
        let (mut batch, mut record) = (RowBatch::default(), Record::default());
        let (mut row, most_text) = (first, query.budget().sorted_run() as u64);
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

/// The columns of the rows' coordinates.
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

/// A batch of rows: their cells and coordinates.
#[derive(Default)]
struct RowBatch {
    addresses: Vec<Address>,
    columns: Vec<AxisColumn>,
    keys: Vec<u64>,
    bytes: Vec<u8>,
}

impl RowBatch {
    /// Reads the first of some rows: as many as have at most `most_text` bytes of text along each dimension, but at
    /// least one.
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

/// Appends the addresses of the rows' cells.
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
