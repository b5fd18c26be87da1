//! Sorts more records than fit in memory: sorts runs of them, spills each run, then merges the runs.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;

use crate::array::sparse::rows::address::Address;
use crate::array::sparse::rows::store::{Blob, SpillStore};

/// Bytes of records that are written, and later read, together. A merge holds this much of every run in memory.
const PIECE_BYTES: usize = 16 << 10;

/// A cell to sort by its key, then by its rank.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortRecord {
    /// Compared as unsigned bytes.
    pub key: Vec<u8>,
    pub rank: u64,
    pub address: Address,
}

/// A run of sorted records.
#[derive(Debug, Clone)]
pub struct SortedRun {
    blobs: Arc<[Blob]>,
}

/// Collects records, and sorts them into runs.
pub struct SortedRunWriter<'a> {
    store: &'a SpillStore,
    most_bytes: usize,
    /// The records of the current run, unsorted.
    entries: Vec<SortEntry>,
    /// The parts of keys that do not fit in an entry.
    tails: Vec<u8>,
    runs: Vec<SortedRun>,
}

/// An entry for sorting a record. It holds most keys whole.
#[derive(Clone, Copy)]
struct SortEntry {
    /// The first bytes of the key, padded with zeros.
    head: u128,
    /// The offset in `tails` of the rest of the key.
    tail: u32,
    key_bytes: u32,
    rank: u64,
    address: Address,
}

/// Bytes of a key that an entry holds.
const HEAD: usize = size_of::<u128>();

impl SortEntry {
    fn tail<'a>(&self, tails: &'a [u8]) -> &'a [u8] {
        let start = self.tail as usize;
        let length = (self.key_bytes as usize).saturating_sub(HEAD);
        tails.get(start..start + length).unwrap_or_default()
    }

    fn compare(&self, other: &Self, tails: &[u8]) -> Ordering {
        let tail = || self.tail(tails).cmp(other.tail(tails));
        self.head.cmp(&other.head).then_with(tail).then_with(|| self.rank.cmp(&other.rank))
    }
}

impl<'a> SortedRunWriter<'a> {
    /// Returns a writer that sorts at most `most_bytes` at once, and spills runs into `store`.
    pub fn new(store: &'a SpillStore, most_bytes: usize) -> Self {
        // Offsets into the tails have 32 bits.
        let most_bytes = most_bytes.min(1 << 30);
        SortedRunWriter { store, most_bytes, entries: Vec::new(), tails: Vec::new(), runs: Vec::new() }
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file; [`Error::Unsupported`] for keys of more than a gibibyte.
    pub fn push(&mut self, record: &SortRecord) -> Result<()> {
        let (head, tail) = record.key.split_at(record.key.len().min(HEAD));
        if tail.len() > 1 << 30 {
            return Err(Error::unsupported(format!("coordinates of {} bytes", record.key.len())));
        }
        let added = tail.len() + size_of::<SortEntry>();
        if self.entries.len() * size_of::<SortEntry>() + self.tails.len() + added > self.most_bytes {
            self.close()?;
        }
        let mut padded = [0; HEAD];
        padded[..head.len()].copy_from_slice(head);
        self.entries.push(SortEntry {
            head: u128::from_be_bytes(padded),
            tail: self.tails.len() as u32,
            key_bytes: record.key.len() as u32,
            rank: record.rank,
            address: record.address,
        });
        self.tails.extend_from_slice(tail);
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn finish(mut self) -> Result<Vec<SortedRun>> {
        self.close()?;
        Ok(self.runs)
    }

    fn close(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let tails = std::mem::take(&mut self.tails);
        self.entries.sort_unstable_by(|a, b| a.compare(b, &tails));
        let mut blobs = Vec::new();
        let mut bytes = Vec::new();
        for entry in self.entries.drain(..) {
            let head = entry.head.to_be_bytes();
            bytes.extend(entry.key_bytes.to_le_bytes());
            bytes.extend(&head[..HEAD.min(entry.key_bytes as usize)]);
            bytes.extend(entry.tail(&tails));
            bytes.extend(entry.rank.to_le_bytes());
            bytes.extend(entry.address.to_bits().to_le_bytes());
            if bytes.len() >= PIECE_BYTES {
                blobs.push(self.store.put(std::mem::take(&mut bytes))?);
            }
        }
        if !bytes.is_empty() {
            blobs.push(self.store.put(bytes)?);
        }
        self.tails = tails;
        self.tails.clear();
        self.runs.push(SortedRun { blobs: blobs.into() });
        Ok(())
    }
}

/// Visits the records of all runs in order.
///
/// # Errors
/// Those of `visit`, [`Error::Io`] from the temporary file.
pub fn merge(store: &SpillStore, runs: &[SortedRun], mut visit: impl FnMut(&SortRecord) -> Result<()>) -> Result<()> {
    let mut readers: Vec<SortedRunReader<'_>> = runs.iter().map(|run| SortedRunReader::new(store, run)).collect();
    let mut next = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        let mut record = SortRecord::default();
        if reader.read(&mut record)? {
            next.push(Reverse((record, number)));
        }
    }
    while let Some(mut least) = next.peek_mut() {
        cancellation::check()?;
        let Reverse((record, number)) = &mut *least;
        visit(record)?;
        if !readers[*number].read(record)? {
            std::collections::binary_heap::PeekMut::pop(least);
        }
    }
    Ok(())
}

/// Reads the records of a run in order.
struct SortedRunReader<'a> {
    store: &'a SpillStore,
    blobs: std::slice::Iter<'a, Blob>,
    buffer: Vec<u8>,
    bytes: Vec<u8>,
    at: usize,
}

impl<'a> SortedRunReader<'a> {
    fn new(store: &'a SpillStore, run: &'a SortedRun) -> Self {
        SortedRunReader { store, blobs: run.blobs.iter(), buffer: Vec::new(), bytes: Vec::new(), at: 0 }
    }

    /// Reads the next record; returns `false` at the end.
    fn read(&mut self, record: &mut SortRecord) -> Result<bool> {
        if self.at == self.bytes.len() {
            let Some(blob) = self.blobs.next() else { return Ok(false) };
            self.bytes.clear();
            self.bytes.extend_from_slice(self.store.get(blob, &mut self.buffer)?);
            self.at = 0;
        }
        self.parse(record).ok_or_else(|| Error::damaged("sorted records do not hold together"))?;
        Ok(true)
    }

    fn parse(&mut self, record: &mut SortRecord) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let before = rest.len();
        let (length, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (address, rest) = rest.split_first_chunk()?;
        record.key.clear();
        record.key.extend_from_slice(key);
        record.rank = u64::from_le_bytes(*rank);
        record.address = Address::from_bits(u64::from_le_bytes(*address));
        self.at += before - rest.len();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_merge_into_what_sorting_gives(
            keys in prop::collection::vec(("[ab]{0,20}", 0u64..3), 0..200),
            most_bytes in prop_oneof![Just(0usize), Just(500), Just(1 << 20)],
            limit in prop_oneof![Just(0usize), Just(usize::MAX)],
        ) {
            let store = SpillStore::new(limit);
            // Random keys of which none is a prefix of another, as the keys of cells are.
            let records = keys.into_iter().zip(0..).map(|((text, rank), number)| SortRecord {
                key: [text.as_bytes(), &[0, 0]].concat(),
                rank: 1000 * rank + number,
                address: Address::new(number as u32, number).unwrap(),
            });
            let mut records: Vec<SortRecord> = records.collect();
            let mut runs = Vec::new();
            for part in records.chunks(70) {
                let mut writer = SortedRunWriter::new(&store, most_bytes);
                part.iter().for_each(|record| writer.push(record).unwrap());
                runs.extend(writer.finish().unwrap());
            }
            let mut merged = Vec::new();
            merge(&store, &runs, |record| {
                merged.push(record.clone());
                Ok(())
            })
            .unwrap();
            records.sort();
            prop_assert_eq!(merged, records);
        }
    }
}
