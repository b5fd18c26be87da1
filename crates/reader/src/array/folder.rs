//! An array as stored: all its fragments and schemas, at any time. Views of the array as of some time
//! share it, so that what one has read the others need not read again.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lru::LruCache;
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::folder::METADATA;
use tilefs_format::fragment::FragmentFacts;
use tilefs_format::schema::ArraySchema;

use super::context::Context;
use super::directory::{Directory, FragmentEntry, SchemaEntry};
use super::enumerations::Enumerations;
use super::footer_copies::read_copies;
use super::fragment::MetadataEnd;
use super::generic::{decode_inline_tile, read_generic_tile};
use super::listing::FolderListing;
use super::once::Once;
use super::timed_files::{TimedFile, timed_files};
use super::window::TimeWindow;
use crate::storage::{StoreKey, is_far, together};
use crate::threads::{self, LogInterval};

/// What is kept of every fragment once its footer was read; the rest is read again when a tile is.
#[derive(Debug)]
pub struct Outline {
    pub facts: FragmentFacts,
    /// The schema that the fragment was written under.
    pub schema: Arc<ArraySchema>,
}

/// What is known of a fragment: nothing, its [`Outline`], or what is wrong with its stored bytes.
type Known = OnceLock<Outcome>;

type Outcome = std::result::Result<Arc<Outline>, Box<Error>>;

/// The number of ends of fragments' metadata files that are kept, each of some KiB.
const ENDS_KEPT: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The same in a far storage, where reading one again is a round trip; each is of at most 64 KiB.
const FAR_ENDS_KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Numbers of files in keys that each fragment has: see [`super::fragment`].
const FILES_PER_FRAGMENT: u64 = 1 << 24;

/// From so many fragments on, a look for consolidated metadata pays.
const WORTH_COPIES: usize = 32;

/// Footers are so small that a thread should have some to read.
const LEAST_PER_THREAD: usize = 8;

/// A schema may be of so many bytes, some ten thousand attributes, however small the cache is ...
const MOST_SCHEMA: usize = 4 << 20;

/// ... and of this part of what the cache may hold: parsed, short fields take as many times more.
const PARSED_SCHEMA: usize = 8;

/// A schema is stored in fewer than so many times as many bytes as it may be of.
const MOST_STORED: u64 = 4;

/// An array's folder. Memory: the names, and some 250 bytes for each fragment of a few dimensions whose footer was
/// read.
pub struct ArrayFolder {
    pub context: Arc<Context>,
    directory: Directory,
    /// By the number of the fragment.
    outlines: Box<[Known]>,
    schemas: Mutex<HashMap<String, Arc<Once<Arc<ArraySchema>>>>>,
    /// The ends of the metadata files that were read last, by the number of the fragment: besides the footers there is
    /// in them what is wanted next.
    ends: Mutex<LruCache<usize, Arc<MetadataEnd>>>,
    pub(super) enumerations: Enumerations,
    first_file: u64,
}

impl ArrayFolder {
    /// Lists an array's folder; reads no schema and no fragment.
    ///
    /// # Errors
    /// As [`Directory::read`].
    pub fn open(context: Arc<Context>, path: &StoreKey) -> Result<Self> {
        let listing = FolderListing::read(&*context.storage, path).in_array(path)?;
        Self::open_listed(context, listing)
    }

    /// As [`ArrayFolder::open`], of a folder that was listed a moment ago.
    ///
    /// # Errors
    /// As there.
    pub fn open_listed(context: Arc<Context>, listing: FolderListing) -> Result<Self> {
        let path = listing.root().clone();
        let directory = Directory::read_listed(&*context.storage, listing).in_array(path)?;
        directory.warnings().iter().for_each(|warning| log::warn!("{warning}"));
        for fragment in directory.uncommitted() {
            log::info!(
                "{}: the fragment {fragment} is not shown yet, as its writer has not committed it",
                directory.root
            );
        }
        let outlines: Box<[Known]> = directory.fragments().iter().map(|_| Known::new()).collect();
        let first_file = context.fetcher.new_files(FILES_PER_FRAGMENT * outlines.len() as u64);
        let ends_kept = if is_far(&*context.storage, &directory.root) { FAR_ENDS_KEPT } else { ENDS_KEPT };
        Ok(ArrayFolder {
            context,
            directory,
            outlines,
            schemas: Mutex::default(),
            ends: Mutex::new(LruCache::new(ends_kept)),
            enumerations: Enumerations::default(),
            first_file,
        })
    }

    pub fn path(&self) -> &StoreKey {
        &self.directory.root
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The times of all commits, of data, schemas and metadata, ascending, each once.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder of metadata cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn commit_times(&self) -> Result<Vec<u64>> {
        let mut times = self.directory.commit_times();
        times.extend(self.metadata_files()?.iter().map(|one| one.times.t2));
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// When the first of data, schemas and metadata was written; `None` where that is not known of any.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub fn began(&self) -> Result<Option<u64>> {
        let of_metadata = self.metadata_files()?.iter().map(|one| one.times.t1).min();
        Ok(self.directory.began().into_iter().chain(of_metadata).min())
    }

    /// All files of metadata, in force or not.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub fn metadata_files(&self) -> Result<Vec<TimedFile>> {
        let names = self.directory.metadata_names(&*self.context.storage).in_array(self.path())?;
        timed_files(&names, &self.path().join(METADATA)).in_array(self.path())
    }

    /// A fragment by its number in this folder.
    pub fn fragment(&self, number: usize) -> Option<&FragmentEntry> {
        self.directory.fragments().get(number)
    }

    /// The first of the numbers of files in keys of a fragment.
    pub fn first_file(&self, fragment: usize) -> u64 {
        self.first_file + FILES_PER_FRAGMENT * fragment as u64
    }

    /// What a fragment's footer says; read once.
    ///
    /// # Errors
    /// Any damage in the fragment's metadata or its schema.
    pub fn outline(&self, number: usize) -> Result<Arc<Outline>> {
        let (Some(known), Some(entry)) = (self.outlines.get(number), self.fragment(number)) else {
            return Err(Error::internal(format!("no fragment number {number}")).in_array(self.path()));
        };
        if let Some(known) = known.get() {
            return known.clone().map_err(|error| *error);
        }
        keep(known, self.located(entry, self.read_outline(number))).map_err(|error| *error)
    }

    /// Reads a schema and, where requests are waits, the footers of the few fragments that are likely to count in the
    /// window, all at once. What is wrong with any is told by those who ask for it.
    pub(super) fn read_ahead(&self, schema: &str, window: TimeWindow) {
        if !is_far(&*self.context.storage, self.path()) {
            return;
        }
        let fragments = self.directory.visible_fragments(window, false);
        let fragments = if fragments.len() < WORTH_COPIES { fragments } else { Vec::new() };
        let wanted: Vec<Option<usize>> = [None].into_iter().chain(fragments.into_iter().map(Some)).collect();
        together(&*self.context.storage, self.path(), wanted, |fragment| match fragment {
            Some(number) => drop(self.outline(number)),
            None => drop(self.schema(schema)),
        });
    }

    /// Reads the footers of fragments that were not read yet, on all cores; what is wrong with one is told by
    /// [`ArrayFolder::outline`].
    ///
    /// Where there are many, those in files of consolidated fragment metadata are taken from there: writers keep such
    /// copies so that readers need not open every fragment. A copy that does not parse is passed over, and the
    /// fragment's own footer is compared with it before a cell is read.
    pub fn read_outlines(&self, numbers: &[usize]) {
        let is_unread = |number: &usize| self.outlines.get(*number).is_some_and(|known| known.get().is_none());
        let mut unread: Vec<usize> = numbers.iter().copied().filter(is_unread).collect();
        if unread.len() >= WORTH_COPIES {
            read_copies(self, &unread, |number, footer| {
                if let (Some(known), Some(entry)) = (self.outlines.get(number), self.fragment(number))
                    && let Some(outline) = self.outline_of_copy(entry, footer)
                {
                    let _ = keep(known, self.located(entry, Ok(outline)));
                }
            });
            unread.retain(is_unread);
        }
        let (count, done, lines) = (unread.len(), AtomicUsize::new(0), LogInterval::new());
        let read = |number: usize| {
            let (Some(known), Some(entry)) = (self.outlines.get(number), self.fragment(number)) else { return };
            // What is wrong is told to whoever asks for this one.
            let _ = keep(known, self.located(entry, self.read_outline(number)));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if lines.is_due() {
                log::info!("{}: the footers of {done} of {count} fragments are read", self.path());
            }
        };
        match is_far(&*self.context.storage, self.path()) {
            true => drop(together(&*self.context.storage, self.path(), unread, read)),
            false => {
                threads::for_each(unread.chunks(LEAST_PER_THREAD), |some| some.iter().copied().for_each(read));
            }
        }
    }

    fn located(&self, entry: &FragmentEntry, outline: Result<Outline>) -> Outcome {
        outline.map(Arc::new).in_fragment(entry.name()).in_array(self.path()).map_err(Box::new)
    }

    /// A schema by the name that fragments give it; read once.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is none of that name or it does not parse.
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
        let most = (self.context.budget() / PARSED_SCHEMA).max(MOST_SCHEMA);
        let payload = match self.directory.listing().folder() {
            // Every array has one of this name: that of another must not be taken for it.
            folder if folder.identity.is_some() && entry.times.is_none() => {
                let stored = self.context.storage.read_in(folder, &entry.name, MOST_STORED * most as u64)?;
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

    /// The ends of metadata files that were read last.
    pub(super) fn ends(&self) -> MutexGuard<'_, LruCache<usize, Arc<MetadataEnd>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a file in a fragment's folder.
    pub fn fragment_file(&self, fragment: usize, name: &str) -> StoreKey {
        self.fragment(fragment).map_or_else(|| self.path().clone(), |entry| self.directory.folder_of(entry)).join(name)
    }
}

/// Remembers what was read of a fragment, unless it could not be read; gives what is known then.
fn keep(known: &Known, outcome: Outcome) -> Outcome {
    match outcome {
        Err(error) if error.is_passing() => Err(error),
        outcome => known.get_or_init(|| outcome).clone(),
    }
}
