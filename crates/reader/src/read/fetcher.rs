//! Fetches units from the cache, or in batches from storage.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::statistics::Statistic;
use tilefs_storage::{ReadRange, Storage, StoreKey, together};
use tilefs_threads as threads;
use tilefs_threads::cancellation::{self, Turn};

use super::permits::{Permit, Permits};
use super::unit::{Decoded, StoredRange, Unit, UnitKey};
use crate::cache::{BufferPool, Cache, CacheLookup, PooledBuffer, Promise, Weight};

/// Target size of a batch in decoded bytes, which is what a reader holds at a time.
const BATCH_BYTES: u64 = 4 << 20;

/// The target size for storage with high latency, where each batch should be worth its round trip.
const REMOTE_BATCH_BYTES: u64 = 16 << 20;

/// From this many decoded bytes on, several threads decode a batch.
const PARALLEL_DECODE_BYTES: u64 = 512 << 10;

/// Only reads of more bytes bypass the cache. A request of the kernel is smaller, and the next request of its reader
/// needs the rest of the last unit from the cache.
const LEAST_BYPASSING_BYTES: u64 = 1 << 20;

/// A part of a unit, and the memory to which it is copied.
pub(crate) struct UnitCopy<'u, 'o, U> {
    pub unit: &'u U,
    /// The offset of the first byte in the decoded unit.
    pub start: usize,
    pub out: &'o mut [u8],
}

/// Fetches decoded units for all readers of one mount.
///
/// Memory: the cache's budget; for each reader one batch, and its stored bytes while it is decoded; and one unit that
/// is too large to be cached.
pub struct Fetcher {
    storage: Arc<dyn Storage>,
    cache: Cache<UnitKey, Decoded>,
    buffers: Arc<BufferPool>,
    permits: Permits,
    /// Held by the thread that processes a unit too large to be cached.
    large: Turn,
    remote_batch_bytes: u64,
    next_file: AtomicU64,
}

type MissingUnit<'c, 'u, U> = (&'u U, usize, Promise<'c, UnitKey, Decoded>);

impl Fetcher {
    /// Creates a fetcher that caches at most `budget` bytes and decodes on at most `threads` threads at once.
    pub fn new(storage: Arc<dyn Storage>, budget: usize, threads: usize) -> Self {
        Fetcher {
            storage,
            cache: Cache::new(budget),
            buffers: Arc::default(),
            permits: Permits::new(threads),
            large: Turn::new(),
            // At most an eighth of the budget.
            remote_batch_bytes: REMOTE_BATCH_BYTES.min(budget as u64 / 8).max(BATCH_BYTES),
            next_file: AtomicU64::new(0),
        }
    }

    /// Returns the cache of decoded units.
    pub fn cache(&self) -> &Cache<UnitKey, Decoded> {
        &self.cache
    }

    /// Returns the buffer pool for decoding.
    pub fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }

    /// Waits for a permit to decode. Never block while holding it.
    pub fn permit(&self) -> Permit<'_> {
        self.permits.take()
    }

    /// Returns the counters of decoding.
    pub fn statistics(&self) -> Vec<Statistic> {
        self.permits.statistics()
    }

    /// Reserves `count` consecutive values of [`UnitKey::file`] and returns the first.
    pub(crate) fn new_files(&self, count: u64) -> u64 {
        self.next_file.fetch_add(count, Ordering::Relaxed)
    }

    /// Returns all `units`, which should be no more than a batch. All misses are read in one batch.
    ///
    /// # Errors
    /// The error of the first unit that fails; the other units are cached nevertheless.
    pub(crate) fn fetch<U: Unit>(&self, units: &[U], how: Decoding) -> Result<Vec<Arc<Decoded>>> {
        cancellation::check()?;
        if let [unit] = units {
            return Ok(vec![self.fetch_one(unit)?]);
        }
        let mut fetched: Vec<Option<Result<Arc<Decoded>>>> = Vec::with_capacity(units.len());
        let (mut missing, mut loading): (Vec<MissingUnit<'_, '_, U>>, _) = (Vec::new(), Vec::new());
        for (number, unit) in units.iter().enumerate() {
            fetched.push(match self.cache.find(unit.key()) {
                CacheLookup::Ready(decoded) => Some(Ok(decoded)),
                CacheLookup::Loading(flight) => {
                    loading.push((number, flight));
                    None
                }
                CacheLookup::Missing(promise) => {
                    missing.push((unit, number, promise));
                    None
                }
            });
        }
        if !missing.is_empty() {
            for (number, outcome) in self.load(missing, how) {
                fetched[number] = Some(outcome);
            }
        }
        // Wait only now, because other threads may wait for the units loaded above. Wait for the last one first: its
        // loader goes from first to last and would otherwise wake this thread for each.
        for (number, flight) in loading.into_iter().rev() {
            fetched[number] = Some(match flight.wait() {
                // The loading thread was cancelled.
                Err(Error::Cancelled) => self.fetch_one(&units[number]),
                outcome => outcome,
            });
        }
        fetched.into_iter().map(|one| one.unwrap_or_else(|| Err(Error::internal("a unit was not fetched")))).collect()
    }

    /// Returns one unit.
    ///
    /// # Errors
    /// Any damage in it.
    pub(crate) fn fetch_one<U: Unit>(&self, unit: &U) -> Result<Arc<Decoded>> {
        self.cache.get_or_load(unit.key(), || {
            let stored = self.read_one(unit)?;
            let decoded = self.decode(unit, stored)?;
            let weight = weight(unit, &decoded);
            Ok((Arc::new(decoded), weight))
        })
    }

    /// Returns whether a read of `wanted` bytes should bypass the cache: if the read is large, and the cache could
    /// not hold the `all` bytes around it until they are read again.
    pub(crate) fn should_bypass_cache(&self, wanted: u64, all: u64) -> bool {
        wanted > LEAST_BYPASSING_BYTES && all > self.cache.recent_budget() as u64
    }

    /// Copies parts of units with cells of fixed size. A unit that is wanted as a whole is decoded directly into the
    /// output, and does not enter the cache unless it was read before.
    ///
    /// # Errors
    /// The first error of any unit.
    pub(crate) fn copy_once<U: Unit>(&self, pieces: Vec<UnitCopy<'_, '_, U>>) -> Result<()> {
        threads::map(pieces.into_iter(), |piece| self.copy_piece(piece)).into_iter().collect()
    }

    fn copy_piece<U: Unit>(&self, piece: UnitCopy<'_, '_, U>) -> Result<()> {
        cancellation::check()?;
        let UnitCopy { unit, start, out } = piece;
        if start == 0 && out.len() as u64 == unit.size() && self.cache.try_bypass(unit.key()) {
            return self.decode_into(unit, out);
        }
        let decoded = self.fetch_one(unit)?;
        let part = decoded.bytes.get(start..).and_then(|bytes| bytes.get(..out.len()));
        out.copy_from_slice(part.ok_or_else(|| Error::internal("a part beyond the end of its unit"))?);
        Ok(())
    }

    /// Decodes a unit into memory of its size.
    fn decode_into(&self, unit: &impl Unit, out: &mut [u8]) -> Result<()> {
        if unit.is_stored_plain() {
            self.read_stored(unit, out)?;
            self.permits.count(out.len() as u64, out.len() as u64);
            return Ok(());
        }
        let mut stored = self.read_one(unit)?;
        let mut permit = self.permit();
        permit.count(stored.bytes().len(), unit.size());
        unit.decode_into(stored.bytes(), out, &self.buffers, permit.scratch())
    }

    /// Passes a unit that is too large to be cached to `work`. One such unit is in memory at a time.
    ///
    /// # Errors
    /// The errors of the unit, and of `work`.
    pub(crate) fn with_large<U: Unit, T>(&self, unit: &U, work: impl FnOnce(Decoded) -> Result<T>) -> Result<T> {
        let _alone = self.large.take()?;
        let stored = self.read_one(unit)?;
        work(self.decode(unit, stored)?)
    }

    /// Reads the stored bytes of all missing units and decodes each.
    fn load<U: Unit>(&self, missing: Vec<MissingUnit<'_, '_, U>>, how: Decoding) -> Vec<(usize, Result<Arc<Decoded>>)> {
        let stored = self.read_all(&missing);
        let decoded_bytes: u64 = missing.iter().map(|(unit, ..)| unit.size()).sum();
        let decode = |((unit, number, promise), stored): (MissingUnit<'_, '_, U>, Result<StoredUnit>)| {
            let decoded = stored.and_then(|stored| {
                cancellation::check()?;
                self.decode(unit, stored)
            });
            let outcome = match decoded {
                Ok(decoded) => {
                    let weight = weight(unit, &decoded);
                    Ok(promise.fulfil(Arc::new(decoded), weight))
                }
                Err(error) => Err(promise.fail(error)),
            };
            (number, outcome)
        };
        if how == Decoding::OnManyThreads && missing.len() > 1 && decoded_bytes >= PARALLEL_DECODE_BYTES {
            threads::map(missing.into_iter().zip(stored), decode)
        } else {
            missing.into_iter().zip(stored).map(decode).collect()
        }
    }

    /// Reads the stored bytes of each unit. If the batch fails, each unit is retried alone and has its own outcome.
    fn read_all<U: Unit>(&self, missing: &[MissingUnit<'_, '_, U>]) -> Vec<Result<StoredUnit>> {
        let mut stored: Vec<Result<StoredUnit>> = missing.iter().map(|(unit, ..)| self.stored_buffer(*unit)).collect();
        match self.read_together(missing, &mut stored) {
            Ok(()) => stored,
            Err(Error::Cancelled) => missing.iter().map(|_| Err(Error::Cancelled)).collect(),
            // Remote storage has already retried; retrying each unit would take as long again.
            Err(error @ Error::Io { .. }) if missing.first().is_some_and(|(unit, ..)| self.is_remote(*unit)) => {
                missing.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => missing.iter().map(|(unit, ..)| self.read_one(*unit)).collect(),
        }
    }

    /// Fills the buffers of all units, grouped by file.
    fn read_together<U: Unit>(
        &self,
        missing: &[MissingUnit<'_, '_, U>],
        stored: &mut [Result<StoredUnit>],
    ) -> Result<()> {
        let mut files: Vec<(&StoreKey, Vec<ReadRange<'_>>)> = Vec::new();
        for ((unit, ..), stored) in missing.iter().zip(stored) {
            let Ok(stored) = stored else { continue };
            let mut rest = stored.bytes();
            unit.for_each_stored(&mut |StoredRange { file, offset, length }| {
                let (into, behind) = std::mem::take(&mut rest).split_at_mut(length as usize);
                rest = behind;
                match files.iter_mut().rev().find(|(known, _)| *known == file) {
                    Some((_, ranges)) => ranges.push(ReadRange { offset, into }),
                    None => files.push((file, vec![ReadRange { offset, into }])),
                }
            })?;
        }
        let read = |(file, mut ranges): (&StoreKey, Vec<ReadRange<'_>>)| self.storage.read_ranges(file, &mut ranges);
        match files.first().map(|(file, _)| *file) {
            Some(file) if self.storage.is_remote(file) => {
                together(&*self.storage, file, files, read).into_iter().collect()
            }
            _ => files.into_iter().try_for_each(read),
        }
    }

    /// Returns whether the unit's file, and so the files of its column, are in storage with high latency.
    fn is_remote(&self, unit: &impl Unit) -> bool {
        let mut is_remote = false;
        let looked = unit.for_each_stored(&mut |stored| is_remote |= self.storage.is_remote(stored.file));
        looked.is_ok() && is_remote
    }

    /// Returns the batch size in decoded bytes for units of which this is the first.
    fn batch_bytes(&self, unit: &impl Unit) -> u64 {
        if self.is_remote(unit) { self.remote_batch_bytes } else { BATCH_BYTES }
    }

    fn read_one<U: Unit>(&self, unit: &U) -> Result<StoredUnit> {
        cancellation::check()?;
        let mut stored = self.stored_buffer(unit)?;
        self.read_stored(unit, stored.bytes())?;
        Ok(stored)
    }

    /// Reads the stored bytes of a unit into memory of their length.
    fn read_stored(&self, unit: &impl Unit, out: &mut [u8]) -> Result<()> {
        let (mut rest, mut outcome) = (out, Ok(()));
        unit.for_each_stored(&mut |StoredRange { file, offset, length }| {
            let (into, behind) = std::mem::take(&mut rest).split_at_mut(length as usize);
            rest = behind;
            if outcome.is_ok() {
                outcome = self.storage.read_at(file, offset, into).in_file(file);
            }
        })?;
        outcome
    }

    /// Allocates the buffer for the stored bytes of a unit.
    fn stored_buffer<U: Unit>(&self, unit: &U) -> Result<StoredUnit> {
        let mut length = 0u64;
        unit.for_each_stored(&mut |range| length = length.saturating_add(range.length))?;
        if unit.is_stored_plain() {
            return unit.room(&self.buffers).map(StoredUnit::Decoded);
        }
        let no_memory = || Error::unsupported(format!("{length} stored bytes: not enough memory"));
        // If it wastes little, allocate enough to reuse the buffer for decoding: a batch then needs little more than
        // the larger of its stored and decoded sizes, and less fresh memory.
        let capacity = if length <= unit.size() && unit.size() / 2 <= length { unit.size() } else { length };
        let (length, capacity) =
            usize::try_from(length).ok().zip(usize::try_from(capacity).ok()).ok_or_else(no_memory)?;
        let mut bytes = self.buffers.try_get(capacity).ok_or_else(no_memory)?;
        bytes.truncate(length);
        Ok(StoredUnit::Encoded(bytes))
    }

    fn decode<U: Unit>(&self, unit: &U, stored: StoredUnit) -> Result<Decoded> {
        match stored {
            StoredUnit::Decoded(bytes) => {
                self.permits.count(bytes.len() as u64, bytes.len() as u64);
                Ok(Decoded::of_bytes(unit.start(), bytes))
            }
            StoredUnit::Encoded(bytes) => {
                let mut permit = self.permit();
                permit.count(bytes.len(), unit.size());
                unit.decode(&bytes, &self.buffers, permit.scratch())
            }
        }
    }
}

/// Returns the memory of a unit, and that of all units that are read in turn with it.
fn weight(unit: &impl Unit, decoded: &Decoded) -> Weight {
    let bytes = decoded.weight();
    let in_turn = usize::try_from(unit.in_turn()).unwrap_or(usize::MAX);
    Weight { bytes, in_turn: bytes.saturating_mul(in_turn) }
}

/// The stored bytes of a unit.
enum StoredUnit {
    Encoded(PooledBuffer),
    /// Bytes stored without filters, which are the decoded bytes.
    Decoded(PooledBuffer),
}

impl StoredUnit {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            StoredUnit::Encoded(bytes) | StoredUnit::Decoded(bytes) => bytes,
        }
    }
}

/// The threads that decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoding {
    /// The calling thread: it is one of several that prefetch, or that each do a part of the work.
    OnThisThread,
    /// Helper threads too if there is enough to do: a reader is waiting.
    OnManyThreads,
}

/// Iterates over the units of a plan, fetching them in batches. Holds one batch.
pub struct Batches<'a, U> {
    fetcher: &'a Fetcher,
    units: &'a [U],
    how: Decoding,
    /// The range of units that are held.
    held: Range<usize>,
    decoded: Vec<Arc<Decoded>>,
    /// End of a failed batch: units before it are fetched one by one.
    one_by_one: usize,
}

impl<'a, U: Unit> Batches<'a, U> {
    /// Prepares reading the units in order.
    pub fn new(fetcher: &'a Fetcher, units: &'a [U], how: Decoding) -> Self {
        Batches { fetcher, units, how, held: 0..0, decoded: Vec::new(), one_by_one: 0 }
    }

    /// Returns the units of the plan.
    pub fn units(&self) -> &'a [U] {
        self.units
    }

    /// Returns a unit by its index. If it is not held, fetches it together with the units after it.
    ///
    /// # Errors
    /// Any damage in it; damage in another unit of its batch is reported when that unit is requested.
    pub fn get(&mut self, number: usize) -> Result<&Arc<Decoded>> {
        if !self.held.contains(&number) {
            let end = if number < self.one_by_one { number + 1 } else { self.end_of_batch(number) };
            self.decoded.clear();
            (self.held, self.decoded) = match self.fetcher.fetch(&self.units[number..end], self.how) {
                Ok(decoded) => (number..end, decoded),
                Err(_) if end > number + 1 => {
                    self.one_by_one = end;
                    (number..number + 1, self.fetcher.fetch(&self.units[number..number + 1], self.how)?)
                }
                Err(error) => return Err(error),
            };
        }
        self.decoded.get(number - self.held.start).ok_or_else(|| Error::internal("a unit past the end of its plan"))
    }

    /// Fetches all units into the cache.
    ///
    /// # Errors
    /// The first error of any unit; later batches are not fetched.
    pub(crate) fn fetch_all(self) -> Result<()> {
        let mut first = 0;
        while first < self.units.len() {
            let end = self.end_of_batch(first);
            self.fetcher.fetch(&self.units[first..end], self.how)?;
            first = end;
        }
        Ok(())
    }

    /// As [`Batches::fetch_all`], for callers that then read the units one by one. Damage is ignored here, because the
    /// later read can say where it belongs.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Cancelled`], which the later read would only meet again.
    pub(crate) fn fetch_before_reading(self) -> Result<()> {
        match self.fetch_all() {
            Err(error @ (Error::Io { .. } | Error::Cancelled)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the end of the batch that begins with unit `first`; a batch has at least one unit.
    fn end_of_batch(&self, first: usize) -> usize {
        let most = self.units.get(first).map_or(0, |unit| self.fetcher.batch_bytes(unit));
        let mut bytes = 0u64;
        let sizes = self.units[first..].iter().map(|unit| {
            bytes = bytes.saturating_add(unit.size());
            bytes
        });
        (first + sizes.take_while(|bytes| *bytes <= most).count()).max(first + 1).min(self.units.len())
    }
}
