//! The folder of an array: all its fragments and schemas of all times. Views of the array as of different times share
//! it, so each fragment and schema is read once.

pub mod enumeration_pages;
pub mod enumerations;
pub mod footer_copies;
pub mod outline;
pub mod replaced;
pub mod sorted_file;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lru::LruCache;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::folder::METADATA;
use tilefs_format::schema::ArraySchema;
use tilefs_storage::{StoreKey, together};
use tilefs_threads::address_space;
use tilefs_threads::single_flight::SingleFlight;

use super::context::Context;
use super::directory::listing::FolderListing;
use super::directory::timed_files::{TimedFile, timed_files};
use super::directory::window::{TimeWindow, now};
use super::directory::{ArrayDirectory, FragmentEntry, SchemaEntry};
use super::metadata_tiles::generic_tile::{decode_inline_tile, read_generic_tile};
use enumerations::Enumerations;
use outline::MetadataEnd;
use outline::Outline;

/// The [`Outline`] of a fragment, once it was read. Errors are not kept: its files may be restored.
pub(crate) type LazyOutline = OnceLock<Arc<Outline>>;

/// The number of kept ends of fragments' metadata files, of some KiB each.
const CACHED_ENDS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The same for a storage with latency, where reading an end again is a round trip; each has at most 64 KiB.
const CACHED_REMOTE_ENDS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The number of cache key numbers reserved for the files of each fragment: see [`super::fragment`].
const FILES_PER_FRAGMENT: u64 = 1 << 24;

/// From this number of fragments on, looking for consolidated metadata is worthwhile.
pub(crate) const MIN_FRAGMENTS_FOR_COPIES: usize = 32;

/// From this number of fragments on, reading an array's folder frees much memory.
const MANY_FRAGMENTS: usize = 1 << 16;

/// A schema may have this many bytes (some ten thousand attributes), however small the cache is.
const ALWAYS_ALLOWED_SCHEMA_BYTES: usize = 4 << 20;

/// The stored bytes of a schema are at most this many times its permitted size.
const MAX_STORED_RATIO: u64 = 4;

/// An array's folder. Memory: the names, and some 250 bytes for each fragment with few dimensions whose footer was
/// read.
pub struct ArrayFolder {
    /// The storage, caches and key that all arrays of a mount share.
    pub context: Arc<Context>,
    directory: Arc<ArrayDirectory>,
    /// By the number of the fragment.
    pub(crate) outlines: Box<[LazyOutline]>,
    schemas: Mutex<HashMap<String, Arc<SingleFlight<Arc<ArraySchema>>>>>,
    /// The ends of the most recently read metadata files, by the number of the fragment. Besides footers they contain
    /// the sections that are usually needed next.
    ends: Mutex<LruCache<usize, Arc<MetadataEnd>>>,
    pub(crate) enumerations: Enumerations,
    first_file: u64,
    /// The time when the folder was listed, in milliseconds since 1970.
    listed: u64,
}

impl ArrayFolder {
    /// Opens an array's folder. Lists it, but reads no schema and no fragment.
    ///
    /// # Errors
    /// As `Directory::read`.
    pub fn open(context: Arc<Context>, path: &StoreKey) -> Result<Self> {
        let listing = FolderListing::read(&*context.storage, path).in_array(path)?;
        Self::open_listed(context, listing)
    }

    /// As [`ArrayFolder::open`], for a folder that has just been listed.
    ///
    /// # Errors
    /// As for [`ArrayFolder::open`].
    pub fn open_listed(context: Arc<Context>, listing: FolderListing) -> Result<Self> {
        let path = listing.root().clone();
        let directory = ArrayDirectory::read_listed(&*context.storage, listing).in_array(path)?;
        directory.warnings().iter().for_each(|warning| log::warn!("{warning}"));
        for fragment in directory.uncommitted() {
            log::info!(
                "{}: the fragment {fragment} is not shown yet, as its writer has not committed it",
                directory.root
            );
        }
        if directory.fragments().len() >= MANY_FRAGMENTS {
            // The names of the listing were some hundred MiB.
            address_space::return_freed_memory();
        }
        Ok(Self::of_directory(context, Arc::new(directory), now()))
    }

    fn of_directory(context: Arc<Context>, directory: Arc<ArrayDirectory>, listed: u64) -> Self {
        let outlines: Box<[LazyOutline]> = directory.fragments().iter().map(|_| LazyOutline::new()).collect();
        let first_file = context.fetcher.new_files(FILES_PER_FRAGMENT * outlines.len() as u64);
        let is_remote = context.storage.is_remote(&directory.root);
        if is_remote {
            // Readers prefetch so far ahead that the default share would evict values before their use.
            context.fetcher.cache().hold_prefetched(context.budget().read_ahead());
        }
        let ends_kept = if is_remote { CACHED_REMOTE_ENDS } else { CACHED_ENDS };
        ArrayFolder {
            context,
            directory,
            outlines,
            schemas: Mutex::default(),
            ends: Mutex::new(LruCache::new(ends_kept)),
            enumerations: Enumerations::default(),
            first_file,
            listed,
        }
    }

    /// Returns the same folder in another context. Uses only what has no locks, so that a forked child may call it.
    pub(crate) fn in_context(&self, context: Arc<Context>) -> Self {
        Self::of_directory(context, Arc::clone(&self.directory), self.listed)
    }

    /// Returns the array's folder.
    pub fn path(&self) -> &StoreKey {
        &self.directory.root
    }

    /// Returns the names in the folder.
    pub fn directory(&self) -> &ArrayDirectory {
        &self.directory
    }

    /// Returns the times of all commits of data, schemas and metadata, in ascending order, each once.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder of metadata cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn commit_times(&self) -> Result<Vec<u64>> {
        let mut times = self.directory.commit_times();
        times.extend(self.metadata_files()?.iter().map(|one| one.times.t2));
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// Returns the times of the commits that a window hides and that lay in the future when the folder was listed:
    /// their writers chose a time, or have a clock that is ahead. Ascending, each once.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub(crate) fn future_commits(&self, window: TimeWindow) -> Result<Vec<u64>> {
        let end = window.end.max(self.listed);
        // An object store may list metadata later than the rest, and then also those of the meantime.
        let end_of_metadata = end.max(now());
        let mut times = self.directory.commit_times();
        times.retain(|&time| time > end);
        times.extend(self.metadata_files()?.iter().map(|one| one.times.t2).filter(|&time| time > end_of_metadata));
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// Returns the time of the first commit of data, schemas or metadata; `None` if no time is known.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub fn began(&self) -> Result<Option<u64>> {
        let of_metadata = self.metadata_files()?.iter().map(|one| one.times.t1).min();
        Ok(self.directory.began().into_iter().chain(of_metadata).min())
    }

    /// Returns all metadata files, in force or not.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub(crate) fn metadata_files(&self) -> Result<Vec<TimedFile>> {
        let names = self.directory.metadata_names(&*self.context.storage).in_array(self.path())?;
        timed_files(&names, &self.path().join(METADATA)).in_array(self.path())
    }

    /// Returns a fragment by its number in this folder.
    pub fn fragment(&self, number: usize) -> Option<&FragmentEntry> {
        self.directory.fragments().get(number)
    }

    /// Returns the first cache key number of a fragment's files.
    pub(crate) fn first_file(&self, fragment: usize) -> u64 {
        self.first_file + FILES_PER_FRAGMENT * fragment as u64
    }

    /// Returns the facts in a fragment's footer, which is read once.
    ///
    /// # Errors
    /// Any damage in the fragment's metadata or its schema.
    pub fn outline(&self, number: usize) -> Result<Arc<Outline>> {
        let (Some(known), Some(entry)) = (self.outlines.get(number), self.fragment(number)) else {
            return Err(Error::internal(format!("no fragment number {number}")).in_array(self.path()));
        };
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let outline = self.located(entry, self.read_outline(number))?;
        Ok(known.get_or_init(|| outline).clone())
    }

    /// Prefetches a schema and the footers of visible fragments concurrently, if there are few fragments and requests
    /// have latency. Errors are not reported here, but when a schema or a footer is requested.
    pub(crate) fn read_ahead(&self, schema: &str, window: TimeWindow) {
        if !self.context.storage.is_remote(self.path()) {
            return;
        }
        let fragments = self.directory.visible_fragments(window, false);
        let fragments = if fragments.len() < MIN_FRAGMENTS_FOR_COPIES { fragments } else { Vec::new() };
        let wanted: Vec<Option<usize>> = [None].into_iter().chain(fragments.into_iter().map(Some)).collect();
        together(&*self.context.storage, self.path(), wanted, |fragment| match fragment {
            Some(number) => drop(self.outline(number)),
            None => drop(self.schema(schema)),
        });
    }

    pub(crate) fn located(&self, entry: &FragmentEntry, outline: Result<Outline>) -> Result<Arc<Outline>> {
        outline.map(Arc::new).in_fragment(entry.name()).in_array(self.path())
    }

    /// Returns the schema with this name, as fragments refer to it. Each is read once.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such schema or it does not parse.
    pub fn schema(&self, name: &str) -> Result<Arc<ArraySchema>> {
        let entry = self.directory.schema_named(name).ok_or_else(|| {
            Error::missing(format!("the schema {name} is not there")).in_file("__schema").in_array(self.path())
        })?;
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        let schema = schemas.entry(name.to_owned()).or_default().clone();
        drop(schemas);
        schema.get_or_make(|| self.read_schema(entry).map(Arc::new).in_array(self.path())).cloned()
    }

    fn read_schema(&self, entry: &SchemaEntry) -> Result<ArraySchema> {
        let most = self.context.budget().schema().max(ALWAYS_ALLOWED_SCHEMA_BYTES);
        let payload = match self.directory.listing().folder() {
            // Every array has a schema of this name, so the schema of a replaced array must not be used.
            folder if folder.identity.is_some() && entry.times.is_none() => {
                let stored = self.context.storage.read_in(folder, &entry.name, MAX_STORED_RATIO * most as u64)?;
                decode_inline_tile(&self.context, &stored).in_file(&entry.file)?
            }
            _ => read_generic_tile(&self.context, &entry.file, 0)?,
        };
        if payload.len() > most {
            let what = format!("a schema of {} bytes where --cache-size has room for {most}", payload.len());
            return Err(Error::unsupported(what).in_file(&entry.file));
        }
        ArraySchema::parse(&payload).in_file(&entry.file)
    }

    /// Returns the ends of the most recently read metadata files.
    pub(crate) fn ends(&self) -> MutexGuard<'_, LruCache<usize, Arc<MetadataEnd>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of a file in a fragment's folder.
    pub(crate) fn fragment_file(&self, fragment: usize, name: &str) -> StoreKey {
        self.fragment(fragment).map_or_else(|| self.path().clone(), |entry| self.directory.folder_of(entry)).join(name)
    }
}
