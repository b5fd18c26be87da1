//! Finds one row for each coordinate in a merge of cells that are not in the merge's order.
//!
//! The cells come as libtiledb merges them: each fragment's cells in stored order. Cells with the same coordinates need
//! not be adjacent then. So all cells are sorted by their coordinates to find the newest of each, and the remaining
//! ones are sorted back into merge order. Both sorts take a bounded amount of memory.

use std::collections::HashSet;

use super::tournament::{CellSink, CellStream, MergeInput, Merged, merge};
use crate::array::Budget;
use crate::array::order::key::KeyPlan;
use crate::array::sparse::rows::address::Address;
use crate::array::sparse::rows::segments::{AddressWriter, ScatteredSegment};
use crate::array::sparse::rows::store::SpillStore;
use crate::array::sparse::select::stream::FragmentSource;
use crate::array::sparse::sorting::external_sort::{self, SortRecord, SortedRunWriter};

/// Bytes at the end of a record's key that encode the cell's age, so that the newest sorts first. If cells of a
/// fragment with versions have the same age, the cells of its last tile sort first.
const AGE_BYTES: usize = 3 * size_of::<u64>();

/// Returns the rows of a merge of `streams`. Each stream reads the source with the same index. `store` keeps the rows.
///
/// # Errors
/// Those of the streams; [`Error::Unsupported`] for more cells than an [`Address`] can tell apart, [`Error::Io`] from
/// the temporary file.
pub fn distinct_rows<S: CellStream>(
    plan: &KeyPlan,
    sources: &[FragmentSource<'_>],
    streams: Vec<S>,
    budget: Budget,
    store: &SpillStore,
) -> Merged<ScatteredSegment> {
    let fragments: Vec<usize> = sources.iter().map(|source| source.fragment).collect();
    let with_versions: HashSet<usize> =
        sources.iter().filter(|source| source.has_versions).map(|source| source.fragment).collect();
    let sorted = SpillStore::new(budget.sorted_runs());
    let mut cells = ByCoordinates {
        fragments: &fragments,
        writer: SortedRunWriter::new(&sorted, budget.sorted_run()),
        record: SortRecord::default(),
        seen: 0,
        plan,
    };
    merge(plan, streams, &mut cells)?;
    let runs = cells.writer.finish()?;
    let ordered = SpillStore::new(budget.sorted_runs());
    let mut by_place = SortedRunWriter::new(&ordered, budget.sorted_run());
    let mut newest = SortRecord::default();
    external_sort::merge(&sorted, &runs, |record| {
        let (coordinates, age) = record.key.split_at(record.key.len() - AGE_BYTES);
        let (newest_coordinates, newest_age) = newest.key.split_at(newest.key.len().saturating_sub(AGE_BYTES));
        let is_row = if coordinates == newest_coordinates && !newest.key.is_empty() {
            // See `Newest` about cells of the same age.
            age == newest_age && !with_versions.contains(&(record.address.fragment() as usize))
        } else {
            newest.clone_from(record);
            true
        };
        if !is_row || record.rank & SHOWN == 0 {
            return Ok(());
        }
        by_place.push(&SortRecord { key: Vec::new(), rank: record.rank, address: record.address })
    })?;
    let mut list = AddressWriter::new(store);
    external_sort::merge(&ordered, &by_place.finish()?, |record| list.push(record.address))?;
    Ok(list.finish()?)
}

/// The bit of a rank that marks a cell as shown; the other bits number the cells in merge order.
const SHOWN: u64 = 1;

/// Sorts the cells of a merge by their coordinates, the newest first.
struct ByCoordinates<'a> {
    plan: &'a KeyPlan,
    /// The fragment of each input.
    fragments: &'a [usize],
    writer: SortedRunWriter<'a>,
    record: SortRecord,
    seen: u64,
}

impl CellSink for ByCoordinates<'_> {
    fn take<S: CellStream>(&mut self, number: usize, input: &MergeInput<S>, _: bool) -> Merged<()> {
        let (batch, record) = (&input.batch, &mut self.record);
        record.key.clear();
        self.plan.sortable_bytes(batch.key(input.cell, self.plan.words()), &batch.columns, input.cell, &mut record.key);
        record.key.extend(batch.zeros(input.cell).to_be_bytes());
        let (time, age) = input.age();
        record.key.extend((!time).to_be_bytes());
        record.key.extend((!(age as u64)).to_be_bytes());
        let tile = if input.stream.has_versions() { batch.tile } else { 0 };
        record.key.extend((!tile).to_be_bytes());
        record.rank = self.seen << 1 | u64::from(input.is_shown());
        record.address = Address::new(self.fragments[number] as u32, input.position())?;
        self.seen += 1;
        Ok(self.writer.push(record)?)
    }
}
