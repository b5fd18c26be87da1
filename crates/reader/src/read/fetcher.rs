//! Gets units: from the cache, or from the storage in batches, decoded.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_format::error::{Error, Locate, Result};

use super::permits::{Permit, Permits};
use super::unit::{Decoded, StoredRange, Unit, UnitKey};
use crate::cache::{Buffer, Buffers, Cache, Lookup, Promise};
use crate::statistics::Statistic;
use crate::storage::{ReadRange, Storage, StoreKey, is_far, together};
use crate::threads;
use crate::threads::cancellation::{self, Turn};

/// A batch is of units of about so many decoded bytes together: what a reader holds on to at a time.
const BATCH_BYTES: u64 = 4 << 20;

/// As much where requests are waits: each is to be worth one.
const FAR_BATCH_BYTES: u64 = 16 << 20;

/// From so many decoded bytes on, several threads decode the units of a batch.
const WORTH_THREADS: u64 = 512 << 10;

/// Gets decoded units for all readers of one mount.
///
/// Memory: the cache's budget; for each reader a batch, and the stored bytes of that batch while it is decoded; and one
/// unit that is too large to be kept.
pub struct Fetcher {
    storage: Arc<dyn Storage>,
    cache: Cache<UnitKey, Decoded>,
    buffers: Arc<Buffers>,
    permits: Permits,
    /// Held by the thread that has a unit too large to be kept.
    large: Turn,
    far_batch_bytes: u64,
    next_file: AtomicU64,
}

type Missing<'c, 'u, U> = (&'u U, usize, Promise<'c, UnitKey, Decoded>);

impl Fetcher {
    /// Keeps at most `budget` bytes of what was decoded; at most `threads` threads decode at once.
    pub fn new(storage: Arc<dyn Storage>, budget: usize, threads: usize) -> Self {
        Fetcher {
            storage,
            cache: Cache::new(budget),
            buffers: Arc::default(),
            permits: Permits::new(threads),
            large: Turn::new(),
            // No more than a part of what may be kept.
            far_batch_bytes: FAR_BATCH_BYTES.min(budget as u64 / 8).max(BATCH_BYTES),
            next_file: AtomicU64::new(0),
        }
    }

    /// What is kept of what was decoded.
    pub fn cache(&self) -> &Cache<UnitKey, Decoded> {
        &self.cache
    }

    /// Memory to decode into.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// The right to decode, as soon as one of those who may is done. Whoever has it waits for nothing.
    pub fn permit(&self) -> Permit<'_> {
        self.permits.take()
    }

    /// How much was decoded.
    pub fn statistics(&self) -> Vec<Statistic> {
        self.permits.statistics()
    }

    /// The first of `count` consecutive numbers for [`UnitKey::file`] that nobody else has.
    pub fn new_files(&self, count: u64) -> u64 {
        self.next_file.fetch_add(count, Ordering::Relaxed)
    }

    /// All of these units, which should be of no more than a batch. What is missing is read in one batch.
    ///
    /// # Errors
    /// That of the first unit that has one; the others are in the cache nevertheless.
    pub fn fetch<U: Unit>(&self, units: &[U], how: Decoding) -> Result<Vec<Arc<Decoded>>> {
        cancellation::check()?;
        if let [unit] = units {
            return Ok(vec![self.fetch_one(unit)?]);
        }
        let mut fetched: Vec<Option<Result<Arc<Decoded>>>> = Vec::with_capacity(units.len());
        let (mut missing, mut loading): (Vec<Missing<'_, '_, U>>, _) = (Vec::new(), Vec::new());
        for (number, unit) in units.iter().enumerate() {
            fetched.push(match self.cache.find(unit.key()) {
                Lookup::Ready(decoded) => Some(Ok(decoded)),
                Lookup::Loading(flight) => {
                    loading.push((number, flight));
                    None
                }
                Lookup::Missing(promise) => {
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
        // Only now, as others may be waiting for those above. The last one first: who loads them goes from the first to
        // the last, and would wake this thread for each.
        for (number, flight) in loading.into_iter().rev() {
            fetched[number] = Some(match flight.wait() {
                // Whoever loads it gave up.
                Err(Error::Cancelled) => self.fetch_one(&units[number]),
                outcome => outcome,
            });
        }
        fetched.into_iter().map(|one| one.unwrap_or_else(|| Err(Error::internal("a unit was not fetched")))).collect()
    }

    /// One unit.
    ///
    /// # Errors
    /// Any damage in it.
    pub fn fetch_one<U: Unit>(&self, unit: &U) -> Result<Arc<Decoded>> {
        self.cache.get_or_load(unit.key(), || {
            let stored = self.read_one(unit)?;
            let decoded = self.decode(unit, stored)?;
            let weight = decoded.weight();
            Ok((Arc::new(decoded), weight))
        })
    }

    /// A unit that is too large to be kept, for `work` to do something with. One of these is in memory at a time.
    ///
    /// # Errors
    /// Those of the unit, and of `work`.
    pub fn with_large<U: Unit, T>(&self, unit: &U, work: impl FnOnce(Decoded) -> Result<T>) -> Result<T> {
        let _alone = self.large.take()?;
        let stored = self.read_one(unit)?;
        work(self.decode(unit, stored)?)
    }

    /// Reads the stored bytes of all, and decodes each.
    fn load<U: Unit>(&self, missing: Vec<Missing<'_, '_, U>>, how: Decoding) -> Vec<(usize, Result<Arc<Decoded>>)> {
        let stored = self.read_all(&missing);
        let decoded_bytes: u64 = missing.iter().map(|(unit, ..)| unit.size()).sum();
        let decode = |((unit, number, promise), stored): (Missing<'_, '_, U>, Result<Stored>)| {
            let decoded = stored.and_then(|stored| {
                cancellation::check()?;
                self.decode(unit, stored)
            });
            let outcome = match decoded {
                Ok(decoded) => {
                    let weight = decoded.weight();
                    Ok(promise.fulfil(Arc::new(decoded), weight))
                }
                Err(error) => Err(promise.fail(error)),
            };
            (number, outcome)
        };
        if how == Decoding::OnManyThreads && missing.len() > 1 && decoded_bytes >= WORTH_THREADS {
            threads::map(missing.into_iter().zip(stored), decode)
        } else {
            missing.into_iter().zip(stored).map(decode).collect()
        }
    }

    /// The stored bytes of each unit. Where they cannot be read together each has its own outcome.
    fn read_all<U: Unit>(&self, missing: &[Missing<'_, '_, U>]) -> Vec<Result<Stored>> {
        let mut stored: Vec<Result<Stored>> = missing.iter().map(|(unit, ..)| self.room(*unit)).collect();
        match self.read_together(missing, &mut stored) {
            Ok(()) => stored,
            Err(Error::Cancelled) => missing.iter().map(|_| Err(Error::Cancelled)).collect(),
            // It took its time to say so, and each of the others would.
            Err(error @ Error::Io { .. }) if missing.first().is_some_and(|(unit, ..)| self.is_far(*unit)) => {
                missing.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => missing.iter().map(|(unit, ..)| self.read_one(*unit)).collect(),
        }
    }

    /// Fills the memory of all units, file by file.
    fn read_together<U: Unit>(&self, missing: &[Missing<'_, '_, U>], stored: &mut [Result<Stored>]) -> Result<()> {
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
            Some(file) if is_far(&*self.storage, file) => {
                together(&*self.storage, file, files, read).into_iter().collect()
            }
            _ => files.into_iter().try_for_each(read),
        }
    }

    /// Whether the file of a unit, and with it those of the others of its column, is one that requests wait for.
    fn is_far(&self, unit: &impl Unit) -> bool {
        let mut is_far_away = false;
        let looked = unit.for_each_stored(&mut |stored| is_far_away |= is_far(&*self.storage, stored.file));
        looked.is_ok() && is_far_away
    }

    /// How many stored bytes units are fetched in together, of which this is the first.
    fn batch_bytes(&self, unit: &impl Unit) -> u64 {
        if self.is_far(unit) { self.far_batch_bytes } else { BATCH_BYTES }
    }

    fn read_one<U: Unit>(&self, unit: &U) -> Result<Stored> {
        cancellation::check()?;
        let mut stored = self.room(unit)?;
        let (mut rest, mut outcome) = (stored.bytes(), Ok(()));
        unit.for_each_stored(&mut |StoredRange { file, offset, length }| {
            let (into, behind) = std::mem::take(&mut rest).split_at_mut(length as usize);
            rest = behind;
            if outcome.is_ok() {
                outcome = self.storage.read_at(file, offset, into).in_file(file);
            }
        })?;
        outcome.map(|()| stored)
    }

    /// Memory for the stored bytes of a unit.
    fn room<U: Unit>(&self, unit: &U) -> Result<Stored> {
        let mut length = 0u64;
        unit.for_each_stored(&mut |range| length = length.saturating_add(range.length))?;
        if unit.is_stored_plain() {
            return unit.room(&self.buffers).map(Stored::Decoded);
        }
        let no_memory = || Error::unsupported(format!("{length} stored bytes: not enough memory"));
        // Where it wastes little, memory that a unit can be decoded into afterwards: a batch takes hardly more than the
        // larger of its stored and its decoded bytes, and as little of it is new.
        let room = if length <= unit.size() && unit.size() / 2 <= length { unit.size() } else { length };
        let (length, room) = usize::try_from(length).ok().zip(usize::try_from(room).ok()).ok_or_else(no_memory)?;
        let mut bytes = self.buffers.try_get(room).ok_or_else(no_memory)?;
        bytes.truncate(length);
        Ok(Stored::Encoded(bytes))
    }

    fn decode<U: Unit>(&self, unit: &U, stored: Stored) -> Result<Decoded> {
        match stored {
            Stored::Decoded(bytes) => {
                self.permits.count(bytes.len() as u64, bytes.len() as u64);
                Ok(Decoded::of_bytes(bytes))
            }
            Stored::Encoded(bytes) => {
                let mut permit = self.permit();
                permit.count(bytes.len(), unit.size());
                unit.decode(&bytes, &self.buffers, permit.scratch())
            }
        }
    }
}

/// The stored bytes of a unit.
enum Stored {
    Encoded(Buffer),
    /// Those that are the decoded ones.
    Decoded(Buffer),
}

impl Stored {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Stored::Encoded(bytes) | Stored::Decoded(bytes) => bytes,
        }
    }
}

/// Who decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoding {
    /// The thread that asks: one of several that read ahead, or that each do a part of the work.
    OnThisThread,
    /// Others too, where there is enough to do: somebody waits.
    OnManyThreads,
}

/// Goes through the units of a plan, fetching them batch by batch. Holds one batch.
pub struct Batches<'a, U> {
    fetcher: &'a Fetcher,
    units: &'a [U],
    how: Decoding,
    /// Which are held.
    held: Range<usize>,
    decoded: Vec<Arc<Decoded>>,
    /// Those before this one are of a batch that has failed, and are fetched one by one.
    one_by_one: usize,
}

impl<'a, U: Unit> Batches<'a, U> {
    pub fn new(fetcher: &'a Fetcher, units: &'a [U], how: Decoding) -> Self {
        Batches { fetcher, units, how, held: 0..0, decoded: Vec::new(), one_by_one: 0 }
    }

    /// The units of the plan.
    pub fn units(&self) -> &'a [U] {
        self.units
    }

    /// A unit by its number. Where it is not at hand, it is fetched with those behind it.
    ///
    /// # Errors
    /// Any damage in it; that of another unit of its batch is left to those who want that one.
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

    /// Fetches all, to be in the cache.
    ///
    /// # Errors
    /// The first of any unit; the batches behind it are left out.
    pub fn fetch_all(self) -> Result<()> {
        let mut first = 0;
        while first < self.units.len() {
            let end = self.end_of_batch(first);
            self.fetcher.fetch(&self.units[first..end], self.how)?;
            first = end;
        }
        Ok(())
    }

    /// As [`Batches::fetch_all`], for those who read the units one after the other then: damage is left to that reading,
    /// which knows whose it is.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Cancelled`], which it would only meet once more.
    pub fn fetch_before_reading(self) -> Result<()> {
        match self.fetch_all() {
            Err(error @ (Error::Io { .. } | Error::Cancelled)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Where the batch ends that begins with a unit: behind it at least.
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
