//! An array as stored: all its fragments and schemas, at any time. Views of the array as of some time
//! share it, so that what one has read the others need not read again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::directory::{Directory, FragmentEntry, SchemaEntry};
use super::enumerations::Enumerations;
use super::generic::read_generic_tile;
use super::timed_files::commit_times;
use crate::cache::Cache;
use crate::error::{Error, Locate, Result};
use crate::filter::Key;
use crate::format::folder::METADATA;
use crate::format::fragment::FragmentFacts;
use crate::format::schema::ArraySchema;
use crate::storage::Storage;

/// What all arrays of one mount share.
pub struct Context {
    pub storage: Arc<dyn Storage>,
    pub cache: Arc<Cache>,
    pub key: Option<Arc<Key>>,
}

/// What is kept of every fragment once its footer was read; the rest is read again when a tile is.
#[derive(Debug)]
pub struct Outline {
    pub facts: FragmentFacts,
    /// The schema that the fragment was written under.
    pub schema: Arc<ArraySchema>,
}

/// A fragment of which nothing, or its [`Outline`], is known.
struct Fragment {
    entry: FragmentEntry,
    outline: OnceLock<Result<Arc<Outline>>>,
}

/// Numbers of cache sources that each fragment has for its files: see [`super::fragment`].
const SOURCES_PER_FRAGMENT: u64 = 1 << 24;

/// An array's folder. Memory: the names, and under 1 KiB for each fragment whose footer was read.
pub struct ArrayFolder {
    pub context: Arc<Context>,
    directory: Directory,
    fragments: Vec<Fragment>,
    schemas: Mutex<HashMap<String, Arc<ArraySchema>>>,
    pub(super) enumerations: Enumerations,
    first_source: u64,
}

impl ArrayFolder {
    /// Lists an array's folder; reads no schema and no fragment.
    ///
    /// # Errors
    /// As [`Directory::read`].
    pub fn open(context: Arc<Context>, path: &Path) -> Result<Self> {
        let directory = Directory::read(&*context.storage, path).in_array(path)?;
        let fragments: Vec<Fragment> = directory
            .fragments()
            .iter()
            .map(|entry| Fragment { entry: entry.clone(), outline: OnceLock::new() })
            .collect();
        let first_source = context.cache.new_sources(SOURCES_PER_FRAGMENT * fragments.len() as u64);
        Ok(ArrayFolder {
            context,
            directory,
            fragments,
            schemas: Mutex::default(),
            enumerations: Enumerations::default(),
            first_source,
        })
    }

    pub fn path(&self) -> &Path {
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
        let of_metadata = commit_times(&*self.context.storage, &self.path().join(METADATA)).in_array(self.path())?;
        let mut times = self.directory.commit_times();
        times.extend(of_metadata);
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// A fragment by its number in this folder.
    pub fn fragment(&self, number: usize) -> Option<&FragmentEntry> {
        self.fragments.get(number).map(|fragment| &fragment.entry)
    }

    /// The first of the numbers of cache sources of a fragment.
    pub fn first_source(&self, fragment: usize) -> u64 {
        self.first_source + SOURCES_PER_FRAGMENT * fragment as u64
    }

    /// What a fragment's footer says; read once.
    ///
    /// # Errors
    /// Any damage in the fragment's metadata or its schema.
    pub fn outline(&self, number: usize) -> Result<Arc<Outline>> {
        let Some(fragment) = self.fragments.get(number) else {
            return Err(Error::damaged(format!("no fragment number {number}")).in_array(self.path()));
        };
        fragment
            .outline
            .get_or_init(|| {
                self.read_outline(number).map(Arc::new).in_fragment(&fragment.entry.name).in_array(self.path())
            })
            .clone()
    }

    /// A schema by the name that fragments give it; read once.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is none of that name or it does not parse.
    pub fn schema(&self, name: &str) -> Result<Arc<ArraySchema>> {
        if let Some(schema) = self.lock_schemas().get(name) {
            return Ok(schema.clone());
        }
        let entry = self.directory.schema_named(name).ok_or_else(|| {
            Error::damaged(format!("the schema {name} is not there")).in_file("__schema").in_array(self.path())
        })?;
        let schema = Arc::new(self.read_schema(entry).in_array(self.path())?);
        self.lock_schemas().insert(name.to_owned(), schema.clone());
        Ok(schema)
    }

    fn read_schema(&self, entry: &SchemaEntry) -> Result<ArraySchema> {
        let payload = read_generic_tile(&*self.context.storage, &entry.file, 0, self.context.key.as_deref())?;
        ArraySchema::parse(&payload).in_file(&entry.file)
    }

    fn lock_schemas(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<ArraySchema>>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a file in a fragment's folder.
    pub fn fragment_file(&self, fragment: usize, name: &str) -> PathBuf {
        self.fragments.get(fragment).map(|fragment| fragment.entry.folder.join(name)).unwrap_or_default()
    }
}
