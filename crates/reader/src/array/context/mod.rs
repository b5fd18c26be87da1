//! The state that all arrays of one mount share.

pub mod budget;
pub mod running_sums;
pub mod saved;
pub mod watch;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_base::error::{Error, Result};
use tilefs_base::statistics::{Statistic, Value};
use tilefs_format::filter::Key;
use tilefs_storage::{Links, Storage};

use crate::cache::{self, Cache, CacheKey};
use crate::read::Fetcher;

use budget::Budget;
use saved::SavedIndexes;
use watch::FolderWatch;

/// The storage, the caches and the key.
pub struct Context {
    budget: Budget,
    /// The storage that files are read from.
    pub storage: Arc<dyn Storage>,
    /// Reads and decodes units, and caches them.
    pub fetcher: Fetcher,
    /// Cached indexes.
    pub indexes: Indexes,
    /// The encryption key, if there is one.
    pub key: Option<Arc<Key>>,
    /// Whether members of a group, like symbolic links, may be outside of the group.
    pub links: Links,
    /// Whether fragments that were consolidated are read in place of what was made of them, as long as they are there.
    pub reads_originals: bool,
    /// The contents of opened folders, to detect changes.
    pub watch: FolderWatch,
    /// Results that are saved for later mounts.
    pub saved: SavedIndexes,
}

impl Context {
    /// Creates a context whose caches take at most `budget` bytes together and that decodes on at most `threads`
    /// threads at once.
    pub fn new(storage: Arc<dyn Storage>, budget: usize, threads: usize, key: Option<Arc<Key>>) -> Self {
        let budget = Budget::new(budget);
        let fetcher = Fetcher::new(storage.clone(), budget.decoded_units(), threads);
        let indexes = Indexes { cache: Cache::new(budget.indexes()), next_owner: AtomicU64::new(0) };
        let (watch, saved) = (FolderWatch::default(), SavedIndexes::default());
        let links = Links::Anywhere;
        Context { budget, storage, fetcher, indexes, key, links, reads_originals: false, watch, saved }
    }

    /// Sets where members of groups and links may lead.
    pub(crate) fn with_links(self, links: Links) -> Self {
        Context { links, ..self }
    }

    /// Sets whether fragments that were consolidated are read in place of what was made of them.
    pub(crate) fn with_originals(self, reads_originals: bool) -> Self {
        Context { reads_originals, ..self }
    }

    /// Sets where results are saved for later mounts.
    pub(crate) fn with_saved(self, saved: SavedIndexes) -> Self {
        Context { saved, ..self }
    }

    /// The budget of all caches, and its shares.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the statistics of the caches and of decoding.
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
        let budget = Value::Now(self.budget.bytes() as u64);
        statistics.push(Statistic::new("cache_budget_bytes", "Memory that both may hold together", budget));
        statistics.extend(self.fetcher.statistics());
        statistics.extend(self.saved.statistics());
        statistics
    }
}

/// A number that writers record for each tile of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TileStatistic {
    /// The sum of the values that are not null, as the bits of an integer or, for floats, of a `f64`.
    Sum,
    /// The number of nulls.
    Nulls,
}

/// The key of an index: a parsed part of a fragment's metadata, or data that locates cells in files. Numbers are those
/// of the fragment's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKey {
    /// The fields of a fragment's metadata, by the number of the fragment's first file.
    Records(u64),
    /// The boxes of a fragment's tiles.
    Mbrs(u64),
    /// The delete conditions that a fragment has applied.
    Conditions(u64),
    /// The tile offsets of a file.
    Tiles(u64),
    /// The decoded tile sizes of a file with values of variable size.
    VarSizes(u64),
    /// The least and the greatest values of the tiles of a file.
    TileExtremes(u64),
    /// A number of each tile of a file.
    TileStatistic(TileStatistic, u64),
    /// The chunks of a tile, by file and tile.
    Chunks(u64, u64),
    /// The files that give the order of values that the filter BITSORT sorted in a fragment.
    SortedCells(u64),
    /// The order of the values of one tile of such a fragment.
    StoredOrder(u64, u64),
    /// A decoded tile that is too large to be kept in memory.
    Spilled(u64, u64),
    /// The number of bytes before each tile of a segment of the rows of a column.
    TileStarts(u64, u64),
    /// A chunk of a generic tile, decoded.
    GenericChunk(u64, u64),
    /// The labels of an enumeration, by owner and number.
    Enumeration(u64, u64),
    /// A part of a text that was made to learn its length, by owner and number.
    TextPiece(u64, u64),
    /// A tile of an image's overview, by owner and number.
    OverviewTile(u64, u64),
}

impl CacheKey for IndexKey {
    fn neighbourhood(&self) -> Self {
        *self
    }
}

/// A cache of indexes with its own byte budget.
pub struct Indexes {
    cache: Cache<IndexKey, dyn Any + Send + Sync>,
    next_owner: AtomicU64,
}

impl Indexes {
    /// Returns the index of a key; `load` makes and weighs it on a miss. All callers must expect the same type for a
    /// kind of key.
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

    /// Returns the index of a key, if it is cached.
    ///
    /// # Errors
    /// Fails if it has another type.
    pub fn get<T: Any + Send + Sync>(&self, key: IndexKey) -> Result<Option<Arc<T>>> {
        let typed = |index: Arc<dyn Any + Send + Sync>| {
            index.downcast().map_err(|_| Error::internal("an index has another type than its key says"))
        };
        self.cache.get(&key).map(typed).transpose()
    }

    /// Returns whether the index of a key is cached or being made.
    pub fn contains_soon(&self, key: IndexKey) -> bool {
        self.cache.contains_soon(&key)
    }

    /// Returns a number for keys of a new owner.
    pub fn new_owner(&self) -> u64 {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }
}
