//! What all arrays of one mount share.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_format::error::{Error, Result};
use tilefs_format::filter::Key;

use crate::cache::{self, Cache};
use crate::read::Fetcher;
use crate::statistics::{Statistic, Value};
use crate::storage::{Links, Storage};

use super::saved::SavedIndexes;
use super::watch::Watch;

/// Indexes may take this part of the budget.
const INDEX_SHARE: usize = 4;

/// The storage, what is kept of it, and the key.
pub struct Context {
    pub storage: Arc<dyn Storage>,
    pub fetcher: Fetcher,
    pub indexes: Indexes,
    pub key: Option<Arc<Key>>,
    /// Where the members of a group may be, as what links may lead to.
    pub links: Links,
    /// What was in the folders that were opened.
    pub watch: Watch,
    /// What earlier mounts found out.
    pub saved: SavedIndexes,
}

impl Context {
    /// All that is kept takes at most `budget` bytes; at most `threads` threads decode at once.
    pub fn new(storage: Arc<dyn Storage>, budget: usize, threads: usize, key: Option<Arc<Key>>) -> Self {
        let for_indexes = budget / INDEX_SHARE;
        let fetcher = Fetcher::new(storage.clone(), budget - for_indexes, threads);
        let indexes = Indexes { cache: Cache::new(for_indexes), next_owner: AtomicU64::new(0) };
        let (watch, saved) = (Watch::default(), SavedIndexes::default());
        Context { storage, fetcher, indexes, key, links: Links::Anywhere, watch, saved }
    }

    /// The same, where members of groups may be so far away.
    pub fn with_links(self, links: Links) -> Self {
        Context { links, ..self }
    }

    /// The same, which saves what it finds out for later mounts.
    pub fn with_saved(self, saved: SavedIndexes) -> Self {
        Context { saved, ..self }
    }

    /// The bytes that all that is kept may take.
    pub fn budget(&self) -> usize {
        self.fetcher.cache().budget() + self.indexes.cache.budget()
    }

    /// What the caches have done, and what was decoded.
    pub fn statistics(&self) -> Vec<Statistic> {
        let caches = [("decoded", self.fetcher.cache().statistics()), ("indexes", self.indexes.cache.statistics())];
        let of_both = |name, help, value: fn(&cache::Statistics) -> Value| {
            caches.map(|(cache, counts)| Statistic::new(name, help, value(&counts)).of("cache", cache))
        };
        let mut statistics: Vec<Statistic> = [
            of_both("cache_hits", "Look-ups that found a value", |counts| Value::Total(counts.hits)),
            of_both("cache_misses", "Look-ups after which it had to be made", |counts| Value::Total(counts.misses)),
            of_both("cache_evictions", "Values that made room for others", |counts| Value::Total(counts.evictions)),
            of_both("cache_bytes", "Memory that is held", |counts| Value::Now(counts.used as u64)),
        ]
        .concat();
        let budget = Value::Now(self.budget() as u64);
        statistics.push(Statistic::new("cache_budget_bytes", "Memory that both may hold together", budget));
        statistics.extend(self.fetcher.statistics());
        statistics.extend(self.saved.statistics());
        statistics
    }
}

/// Which index: what was parsed of a fragment's metadata, or what finds cells in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKey {
    /// What a fragment's metadata says of its fields, by the number of the fragment's first file.
    Records(u64),
    /// The boxes of a fragment's tiles.
    Mbrs(u64),
    /// The delete conditions that a fragment has applied.
    Conditions(u64),
    /// The tile offsets of a file.
    Tiles(u64),
    /// The sizes of the tiles of a file of values of variable size.
    VarSizes(u64),
    /// The least and the greatest values of the tiles of a file.
    TileExtremes(u64),
    /// The chunks of a tile of a file.
    Chunks(u64, u64),
    /// The files that tell the order of values that filter BITSORT sorted, of a fragment.
    SortedCells(u64),
    /// The order of the values of a tile of such a fragment.
    StoredOrder(u64, u64),
    /// A decoded tile that is too large to be kept in memory.
    Spilled(u64, u64),
    /// The bytes before each tile of a segment of the rows of a column.
    TileStarts(u64, u64),
    /// A chunk of a generic tile, decoded.
    GenericChunk(u64, u64),
    /// The labels of an enumeration.
    Enumeration(u64, u64),
}

/// Indexes that were read not long ago, under a budget of their own.
pub struct Indexes {
    cache: Cache<IndexKey, dyn Any + Send + Sync>,
    next_owner: AtomicU64,
}

impl Indexes {
    /// The index of a key, made and weighed by `load` where it is not here. All callers with a kind of key expect one
    /// type.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn get_or_load<T: Any + Send + Sync>(
        &self,
        key: IndexKey,
        load: impl FnOnce() -> Result<(T, usize)>,
    ) -> Result<Arc<T>> {
        let index = self.cache.get_or_load(key, || {
            let (index, weight) = load()?;
            Ok((Arc::new(index) as Arc<dyn Any + Send + Sync>, weight))
        })?;
        index.downcast().map_err(|_| Error::internal("an index has another type than its key says"))
    }

    /// A number for keys that no other owner has.
    pub fn new_owner(&self) -> u64 {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// The bytes that indexes may take.
    pub fn budget(&self) -> usize {
        self.cache.budget()
    }
}
