//! Reading the footers of many fragments: from copies in the array's consolidated fragment metadata, which avoid
//! opening every fragment, and from the fragments themselves.
//!
//! The copies are a cache: footers that are missing or do not parse are read from the fragments. A copy is compared
//! with the fragment's own footer before a cell of the fragment is read. A copy that hides cells of a fragment keeps
//! readers from requesting them, so only [`compare_copies`] detects it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::{FooterReader, FragmentFooter, parse_consolidated_footers, schema_name};
use tilefs_storage::together;
use tilefs_threads;
use tilefs_threads::{self as threads, LogInterval, cancellation};

use super::outline::Outline;
use crate::array::directory::FragmentEntry;
use crate::array::directory::ascending::Ascending;
use crate::array::folder::{ArrayFolder, MIN_FRAGMENTS_FOR_COPIES};
use crate::array::metadata_tiles::generic_tile::{for_each_chunk, read_generic_tile};

/// Bytes of footers that are collected before they are processed.
const BATCH_BYTES: usize = 1 << 20;

/// The minimum number of copies per thread, because a single one is little work.
const MIN_COPIES_PER_THREAD: usize = 64;

/// The minimum number of footers per thread, because a single footer is little work.
const MIN_FOOTERS_PER_THREAD: usize = 8;

/// Copies for fragments of earlier versions are not used: their footers need not name the schema, and some releases
/// wrote copies that differ from the fragment's footer.
const MIN_COPIED_VERSION: u32 = 10;

/// Compares all copies with the footers of existing fragments, and returns the errors of copies and of their files.
/// Skips fragments whose own footer cannot be read.
pub(crate) fn compare_copies(folder: &ArrayFolder) -> Vec<Error> {
    let storage = &*folder.context.storage;
    let files = match folder.directory().consolidated_metadata(storage) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    if files.is_empty() {
        return Vec::new();
    }
    let names = folder.directory().fragments().iter().enumerate();
    let numbers: HashMap<&str, usize> = names.map(|(number, entry)| (entry.name(), number)).collect();
    let mut wrong = Vec::new();
    for file in files {
        let payload = match read_generic_tile(&folder.context, &file, 0) {
            Ok(payload) => payload,
            Err(error) => {
                wrong.push(error);
                continue;
            }
        };
        match parse_consolidated_footers(&payload).in_file(&file) {
            Ok(copies) => {
                let compared = threads::map(copies.iter(), |copy| {
                    let number = *numbers.get(copy.name)?;
                    is_copy(folder, number, copy.footer).in_fragment(copy.name).in_file(&file).err()
                });
                wrong.extend(compared.into_iter().flatten());
            }
            Err(error) => wrong.push(error),
        }
    }
    wrong
}

/// Fails if a copy differs from the fragment's footer.
fn is_copy(folder: &ArrayFolder, number: usize, footer: &[u8]) -> Result<()> {
    let (Some(entry), Ok(own)) = (folder.fragment(number), folder.read_outline(number)) else { return Ok(()) };
    if entry.times.version < MIN_COPIED_VERSION {
        return Ok(());
    }
    let schema = folder.schema(schema_name(footer)?)?;
    let facts = FragmentFooter::parse(footer, entry.times.version, &schema)?.facts;
    if facts != own.facts || schema != own.schema {
        return Err(Error::damaged("the copy of a footer differs from the fragment's footer"));
    }
    Ok(())
}

/// Reads the copies of the footers of some fragments, given by their numbers, and passes each number with its footer to
/// `visit`, from several threads. The first copy of a footer counts. Errors in a file are only logged. Memory: some
/// hundred bytes per requested fragment, and a batch of footers.
fn read_copies(folder: &ArrayFolder, numbers: &[usize], visit: impl Fn(usize, &[u8]) + Send + Sync) {
    let files = folder.directory().consolidated_metadata(&*folder.context.storage).unwrap_or_else(|error| {
        log::info!("{}", error.in_array(folder.path()));
        Vec::new()
    });
    if files.is_empty() {
        return;
    }
    let named = numbers.iter().filter_map(|&number| Some((folder.fragment(number)?.name(), number)));
    let mut wanted: Vec<(&str, usize)> = named.collect();
    wanted.sort_unstable();
    let mut is_found = vec![false; wanted.len()];
    let mut names = Ascending::new(&wanted, |(name, _)| name);
    let mut find = |name: &str| {
        let found = names.find(name)?;
        let was_found = std::mem::replace(is_found.get_mut(found)?, true);
        wanted.get(found).filter(|_| !was_found).map(|(_, number)| *number)
    };
    for file in files {
        let (mut reader, mut batch) = (FooterReader::default(), Batch::default());
        let read = for_each_chunk(&folder.context, &file, |chunk| {
            reader.take(chunk, &mut find, |number, footer| batch.add(number, footer, &visit))
        });
        let read = read.and_then(|()| reader.finish(|number, footer| batch.add(number, footer, &visit)).in_file(&file));
        batch.visit(&visit);
        if let Err(error) = read.in_array(folder.path()) {
            log::info!("{error}");
        }
    }
}

/// Footers that are processed together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The number of each fragment, and the end of its footer in `bytes`.
    footers: Vec<(usize, usize)>,
}

impl Batch {
    fn add(&mut self, number: usize, footer: &[u8], visit: &(impl Fn(usize, &[u8]) + Send + Sync)) -> Result<()> {
        self.bytes.extend_from_slice(footer);
        self.footers.push((number, self.bytes.len()));
        if self.bytes.len() >= BATCH_BYTES {
            cancellation::check()?;
            self.visit(visit);
        }
        Ok(())
    }

    fn visit(&mut self, visit: &(impl Fn(usize, &[u8]) + Send + Sync)) {
        let starts = [0].into_iter().chain(self.footers.iter().map(|(_, end)| *end));
        let footers: Vec<(usize, &[u8])> = starts
            .zip(&self.footers)
            .filter_map(|(start, &(number, end))| Some((number, self.bytes.get(start..end)?)))
            .collect();
        threads::for_each(footers.chunks(MIN_COPIES_PER_THREAD), |some| {
            some.iter().for_each(|&(number, footer)| visit(number, footer));
        });
        self.bytes.clear();
        self.footers.clear();
    }
}

impl ArrayFolder {
    /// Reads the footers of fragments that have not been read, on all cores. [`ArrayFolder::outline`] returns their
    /// errors.
    ///
    /// If there are many, footers come from consolidated fragment metadata, if possible: writers keep these copies so
    /// that readers need not open every fragment. A copy that does not parse is skipped. The fragment's own footer is
    /// compared with the copy before a cell is read.
    pub fn read_outlines(&self, numbers: &[usize]) {
        let is_unread = |number: &usize| self.outlines.get(*number).is_some_and(|known| known.get().is_none());
        let mut unread: Vec<usize> = numbers.iter().copied().filter(is_unread).collect();
        if unread.len() >= MIN_FRAGMENTS_FOR_COPIES {
            read_copies(self, &unread, |number, footer| {
                if let (Some(known), Some(entry)) = (self.outlines.get(number), self.fragment(number))
                    && let Some(outline) = self.outline_of_copy(entry, footer)
                {
                    let _ = known.set(Arc::new(outline));
                }
            });
            unread.retain(is_unread);
        }
        let (count, done, lines) = (unread.len(), AtomicUsize::new(0), LogInterval::new());
        let read = |number: usize| {
            // Errors are returned to callers that request this fragment.
            let _ = self.outline(number);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if lines.is_due() {
                log::info!("{}: the footers of {done} of {count} fragments are read", self.path());
            }
        };
        match self.context.storage.is_remote(self.path()) {
            true => drop(together(&*self.context.storage, self.path(), unread, read)),
            false => {
                threads::for_each(unread.chunks(MIN_FOOTERS_PER_THREAD), |some| some.iter().copied().for_each(read));
            }
        }
    }

    /// Returns the facts in a copy of a fragment's footer, if the copy can be used.
    fn outline_of_copy(&self, entry: &FragmentEntry, footer: &[u8]) -> Option<Outline> {
        let version = entry.times.version;
        if version < MIN_COPIED_VERSION {
            return None;
        }
        let schema = self.schema(schema_name(footer).ok()?).ok()?;
        let facts = FragmentFooter::parse(footer, version, &schema).ok()?.facts;
        Some(Outline { facts, schema })
    }
}
