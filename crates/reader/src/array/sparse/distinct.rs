//! A merge of cells that are not in the order they are merged by: one row for each coordinate all the same.
//!
//! The cells come as libtiledb merges them, each fragment's as they are stored. Those of the same coordinates need not
//! follow each other then, so they are found by sorting all cells by their coordinates; what is left is put back into
//! the order it came in. Both sorts take a bounded amount of memory.

use std::collections::HashSet;

use super::external_sort::{self, Record, SortedRunWriter};
use super::key::KeyPlan;
use super::merge::{CellSink, CellStream, MergeInput, Merged, merge};
use super::rows::{Address, AddressWriter, ScatteredSegment};
use super::store::Store;
use super::stream::FragmentSource;
use crate::array::Budget;

/// Bytes at the end of a record's key that say how new the cell is: the newest sorts first.
const AGE_BYTES: usize = 2 * size_of::<u64>();

/// Returns the rows of a merge of `streams`, of which each is of the source of the same number. `store` keeps the rows.
///
/// # Errors
/// Those of the streams; [`Error::Unsupported`] for more cells than can be told apart, [`Error::Io`] from the
/// temporary file.
pub fn distinct_rows<S: CellStream>(
    plan: &KeyPlan,
    sources: &[FragmentSource<'_>],
    streams: Vec<S>,
    budget: Budget,
    store: &Store,
) -> Merged<ScatteredSegment> {
    let fragments: Vec<usize> = sources.iter().map(|source| source.fragment).collect();
    let with_versions: HashSet<usize> =
        sources.iter().filter(|source| source.has_versions).map(|source| source.fragment).collect();
    let sorted = Store::new(budget.sorted_runs());
    let mut cells = ByCoordinates {
        fragments: &fragments,
        writer: SortedRunWriter::new(&sorted, budget.sorted_run()),
        record: Record::default(),
        seen: 0,
        plan,
    };
    merge(plan, streams, &mut cells)?;
    let runs = cells.writer.finish()?;
    let ordered = Store::new(budget.sorted_runs());
    let mut by_place = SortedRunWriter::new(&ordered, budget.sorted_run());
    let mut newest = Record::default();
    external_sort::merge(&sorted, &runs, |record| {
        let (coordinates, age) = record.key.split_at(record.key.len() - AGE_BYTES);
        let (newest_coordinates, newest_age) = newest.key.split_at(newest.key.len().saturating_sub(AGE_BYTES));
        let is_row = if coordinates == newest_coordinates && !newest.key.is_empty() {
            // See `Newest` about cells that are as new as each other.
            age == newest_age && !with_versions.contains(&(record.address.fragment() as usize))
        } else {
            newest.clone_from(record);
            true
        };
        if !is_row || record.rank & SHOWN == 0 {
            return Ok(());
        }
        by_place.push(&Record { key: Vec::new(), rank: record.rank, address: record.address })
    })?;
    let mut list = AddressWriter::new(store);
    external_sort::merge(&ordered, &by_place.finish()?, |record| list.push(record.address))?;
    Ok(list.finish()?)
}

/// The bit of a rank that says whether the cell is shown; the others number the cells as they come.
const SHOWN: u64 = 1;

/// Sorts the cells of a merge by their coordinates, the newest first.
struct ByCoordinates<'a> {
    plan: &'a KeyPlan,
    /// By input.
    fragments: &'a [usize],
    writer: SortedRunWriter<'a>,
    record: Record,
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
        record.rank = self.seen << 1 | u64::from(input.is_shown());
        record.address = Address::new(self.fragments[number] as u32, input.position())?;
        self.seen += 1;
        Ok(self.writer.push(record)?)
    }
}
