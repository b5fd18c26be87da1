//! Sorts rows into another order than the stored one, in bounded memory: by the digits of keys that pack their
//! coordinates, or if these do not fit in a word, by comparing them.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_base::memory;
use tilefs_threads;
use tilefs_threads::{self as threads, for_all};

use super::columns::fixed_column::FixedColumn;
use super::columns::var_column::VarColumn;
use super::rows::address::Address;
use super::rows::row_map::RowMap;
use super::rows::segments::{AddressWriter, RowSegment, VisitedRows};
use super::rows::store::SpillStore;
use super::select::cells::FragmentCells;
use super::select::query::Query;
use super::sorting::bucket_sort::{BucketWriter, CellLayout, KeyPacking};
use super::sorting::external_sort::{SortRecord, SortedRunWriter, merge};
use super::view::SparseView;
use crate::array::order::key::{AxisColumn, KeyOrder, KeyPlan};

/// Rows that are read together.
const ROWS_AT_ONCE: u64 = 8192;

impl SparseView {
    /// Returns the rows of another view sorted row-major. Loads them if they are saved.
    pub(crate) fn sort_map(&self, stored: &Arc<SparseView>) -> Result<RowMap> {
        let query = stored.query()?;
        let store = Arc::new(SpillStore::new(query.budget().row_map()));
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
fn sort_rows(view: &Arc<SparseView>, store: Arc<SpillStore>) -> Result<RowMap> {
    let query = view.query()?;
    let plan = KeyPlan::new(query.array.schema(), KeyOrder::RowMajor)?;
    let mut list = AddressWriter::new(&store);
    match packing(query)? {
        Some(packing) => sort_packed(view, &plan, &packing, &mut list)?,
        None => sort_compared(view, &plan, &mut list)?,
    }
    let segment = RowSegment::Scattered(list.finish()?);
    Ok(RowMap::new(vec![segment], store))
}

/// Returns how one word holds the coordinates of all rows, according to the boxes of the fragments; `None` if it does
/// not.
fn packing(query: &Query) -> Result<Option<KeyPacking>> {
    let mut ends = Vec::with_capacity(query.plan.axes.len());
    for (dimension, axis) in query.plan.axes.iter().enumerate() {
        if axis.is_text() {
            return Ok(None);
        }
        let mut own: Option<(u64, u64)> = None;
        for fragment in (0..query.cells.len()).filter(|&fragment| query.cells[fragment].count() > 0) {
            // Without a box, reading checks that coordinates are in the domain.
            let (low, high) = query.range_in_footer(fragment, dimension)?.unwrap_or((0, axis.last()));
            own = Some(own.map_or((low, high), |own| (own.0.min(low), own.1.max(high))));
        }
        ends.push(own.unwrap_or((0, 0)));
    }
    Ok(KeyPacking::new(&ends))
}

/// Lists the rows of a view sorted by the digits of keys.
fn sort_packed(
    view: &Arc<SparseView>,
    plan: &KeyPlan,
    packing: &KeyPacking,
    list: &mut AddressWriter<'_>,
) -> Result<()> {
    let query = view.query()?;
    let budget = query.budget();
    let sorted = SpillStore::new(budget.sorted_runs());
    let most = query.cells.iter().map(FragmentCells::count).max().unwrap_or(0);
    let layout = CellLayout::new(packing.bits(), query.cells.len(), most);
    let new_writer = || BucketWriter::new(&sorted, layout, budget.sorted_run());
    let add = |writer: &mut BucketWriter<'_>, batch: &mut SortedBatch, _| {
        let positions = batch.columns.iter().map(|column| column.positions.as_slice());
        packing.keys(positions, batch.addresses.len(), &mut batch.keys)?;
        batch.keys.iter().zip(&batch.addresses).try_for_each(|(key, address)| writer.push(*key, *address))
    };
    let mut buckets = new_writer().finish()?;
    for share in for_each_share(view, plan, new_writer, add, BucketWriter::finish)? {
        buckets.append(share);
    }
    buckets.for_each(&sorted, budget.sorted_run(), &mut |addresses| list.extend(addresses))
}

/// Lists the rows of a view sorted by comparing them.
fn sort_compared(view: &Arc<SparseView>, plan: &KeyPlan, list: &mut AddressWriter<'_>) -> Result<()> {
    let budget = view.query()?.budget();
    let sorted = SpillStore::new(budget.sorted_runs());
    let new_writer = || SortedRunWriter::new(&sorted, budget.sorted_run());
    let add = |writer: &mut SortedRunWriter<'_>, batch: &mut SortedBatch, first| {
        plan.keys(&batch.columns, batch.addresses.len(), &mut batch.keys);
        let mut record = SortRecord::default();
        for (cell, address) in batch.addresses.iter().enumerate() {
            record.key.clear();
            let key = &batch.keys[cell * plan.words()..(cell + 1) * plan.words()];
            plan.sortable_bytes(key, &batch.columns, cell, &mut record.key);
            (record.rank, record.address) = (first + cell as u64, *address);
            writer.push(&record)?;
        }
        Ok(())
    };
    let runs = for_each_share(view, plan, new_writer, add, SortedRunWriter::finish)?;
    merge(&sorted, &runs.concat(), |record| list.push(record.address))
}

/// Reads the rows of a view in batches, one share of them on each thread. `add` gets the writer of the share, a batch,
/// and the number of its first row. Returns what the writers are finished to, in the order of the shares.
fn for_each_share<W, T: Send>(
    view: &Arc<SparseView>,
    plan: &KeyPlan,
    new_writer: impl Fn() -> W + Sync,
    add: impl Fn(&mut W, &mut SortedBatch, u64) -> Result<()> + Sync,
    finish: impl Fn(W) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (rows, columns) = (view.row_count()?, RowColumns::new(view)?);
    let most_text = view.query()?.budget().sorted_run() as u64;
    let share = rows.div_ceil(threads::decoding() as u64).max(1);
    for_all(threads::decoding(), |number| {
        let mut row = share.saturating_mul(number as u64).min(rows);
        let end = row.saturating_add(share).min(rows);
        let (mut writer, mut batch) = (new_writer(), SortedBatch::default());
        while row < end {
            let count = batch.read(view, &columns, plan, row..end, most_text)?;
            add(&mut writer, &mut batch, row)?;
            row += count;
        }
        finish(writer)
    })
}

/// The columns of the rows' coordinates.
struct RowColumns {
    dimensions: Vec<SortedDimension>,
}

enum SortedDimension {
    Fixed(FixedColumn),
    Text(Box<VarColumn>),
}

impl RowColumns {
    fn new(view: &Arc<SparseView>) -> Result<Self> {
        let dimensions = view.query()?.plan.axes.iter().enumerate().map(|(number, axis)| {
            Ok(match axis.is_text() {
                true => SortedDimension::Text(Box::new(VarColumn::of_dimension(view.clone(), number)?)),
                false => SortedDimension::Fixed(FixedColumn::of_dimension(view.clone(), number)?),
            })
        });
        Ok(RowColumns { dimensions: dimensions.collect::<Result<_>>()? })
    }
}

/// A batch of rows: their cells and coordinates.
#[derive(Default)]
struct SortedBatch {
    addresses: Vec<Address>,
    columns: Vec<AxisColumn>,
    keys: Vec<u64>,
    bytes: Vec<u8>,
}

impl SortedBatch {
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
            if let SortedDimension::Text(text) = dimension {
                column.offsets.resize(count as usize + 1, 0);
                text.read_offsets(first, &mut column.offsets)?;
                let start = column.offsets[0];
                let fit = column.offsets.partition_point(|offset| offset.saturating_sub(start) <= most_text);
                count = (fit as u64).saturating_sub(1).max(1);
            }
        }
        for (number, dimension) in from.dimensions.iter().enumerate() {
            let column = &mut self.columns[number];
            match dimension {
                SortedDimension::Fixed(fixed) => {
                    self.bytes.resize(count as usize * fixed.cell_size(), 0);
                    fixed.read(first, &mut self.bytes)?;
                    plan.axes[number].positions(&self.bytes, &mut column.positions)?;
                }
                SortedDimension::Text(text) => {
                    column.offsets.truncate(count as usize + 1);
                    let start = column.offsets[0];
                    let length = usize::try_from(column.offsets[count as usize] - start).unwrap_or(usize::MAX);
                    memory::resize(&mut column.bytes, length, "the text of coordinates")?;
                    text.read_values(start, &mut column.bytes)?;
                    column.offsets.iter_mut().for_each(|offset| *offset -= start);
                }
            }
        }
        self.addresses.clear();
        view.map()?.for_each(first, count, |rows| add_addresses(&rows, &mut self.addresses))?;
        Ok(count)
    }
}

/// Appends the addresses of the rows' cells.
fn add_addresses(rows: &VisitedRows<'_>, addresses: &mut Vec<Address>) -> Result<()> {
    match rows {
        VisitedRows::CellSlab { fragment, position, rows } => {
            addresses.extend(Address::consecutive(*fragment, *position, *rows)?);
        }
        VisitedRows::Interleaved(interleaved) => {
            let mut next: Vec<u64> = interleaved.parts.iter().map(|part| part.position).collect();
            for code in &interleaved.codes {
                let part = code.part();
                if code.is_row() {
                    addresses.push(Address::new(interleaved.parts[part].fragment, next[part])?);
                }
                next[part] += 1;
            }
        }
        VisitedRows::Scattered(list) => addresses.extend_from_slice(list),
    }
    Ok(())
}
