//! Copies of fragments' footers in the array's files of consolidated fragment metadata, so that not every fragment has
//! to be opened.
//!
//! They are a cache: what is missing in them, or does not parse, is read from the fragment itself. What they say is held
//! against the fragment's own footer before a cell of it is read. A copy that hides a fragment's cells keeps anybody from
//! asking for them, so that only [`compare_copies`] finds it.

use std::collections::HashMap;

use super::directory::FragmentEntry;
use super::folder::{ArrayFolder, Outline};
use super::generic::{read_generic_tile, read_generic_tile_within};
use crate::error::{Error, Locate, Result};
use crate::format::fragment::{FragmentFooter, parse_consolidated_footers, schema_name};
use crate::storage::StoreKey;
use crate::threads;

/// Files of more bytes, decoded, than this or the cache may hold are left alone: they are held as a whole while footers
/// are read from them.
const MOST_PAYLOAD: u64 = 16 << 20;

/// Fragments of earlier versions are not looked up: their footers need not name the schema, and some releases wrote
/// copies of them that are not what the fragment has.
const COPIED_SINCE: u32 = 10;

/// Reads all copies, and compares them with the footers of the fragments that are there; what is wrong with copies or
/// files of them. A fragment whose own footer cannot be read is passed over.
pub(super) fn compare_copies(folder: &ArrayFolder) -> Vec<Error> {
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

/// Fails if a footer is not that of the fragment.
fn is_copy(folder: &ArrayFolder, number: usize, footer: &[u8]) -> Result<()> {
    let (Some(entry), Ok(own)) = (folder.fragment(number), folder.read_outline(number)) else { return Ok(()) };
    if entry.times.version < COPIED_SINCE {
        return Ok(());
    }
    let schema = folder.schema(schema_name(footer)?)?;
    let facts = FragmentFooter::parse(footer, entry.times.version, &schema)?.facts;
    if facts != own.facts || schema != own.schema {
        return Err(Error::damaged("the copy of a footer is not what the fragment has"));
    }
    Ok(())
}

/// The payloads of files of consolidated fragment metadata.
#[derive(Debug, Default)]
pub(super) struct FooterCopies(Vec<Vec<u8>>);

impl FooterCopies {
    /// Reads the files that there are. What is wrong with one is only worth a line in the log.
    pub fn read(folder: &ArrayFolder) -> Self {
        let files = folder.directory().consolidated_metadata(&*folder.context.storage).unwrap_or_else(|error| {
            log::info!("{}", error.in_array(folder.path()));
            Vec::new()
        });
        let mut left = MOST_PAYLOAD.max(folder.context.budget() as u64 / 4);
        let payloads = files.iter().filter_map(|file| {
            let payload = read_payload(folder, file, left).in_array(folder.path());
            let payload = payload.inspect_err(|error| log::info!("{error}")).ok().flatten()?;
            left -= payload.len() as u64;
            Some(payload)
        });
        FooterCopies(payloads.collect())
    }

    /// The footers by the name of their fragment; of several copies the first counts.
    pub fn by_name(&self, array: &StoreKey) -> HashMap<&str, &[u8]> {
        let mut footers = HashMap::new();
        for payload in &self.0 {
            match parse_consolidated_footers(payload) {
                Ok(copies) => copies.iter().for_each(|copy| {
                    footers.entry(copy.name).or_insert(copy.footer);
                }),
                Err(error) => log::info!("{}", error.in_file("consolidated fragment metadata").in_array(array)),
            }
        }
        footers
    }
}

/// The payload of a file; `None` if it is larger than `most`.
fn read_payload(folder: &ArrayFolder, file: &StoreKey, most: u64) -> Result<Option<Vec<u8>>> {
    read_generic_tile_within(&folder.context, file, most)
}

impl ArrayFolder {
    /// What a copy of a fragment's footer says, if it can be used.
    pub(super) fn outline_of_copy(&self, entry: &FragmentEntry, footer: &[u8]) -> Option<Outline> {
        let version = entry.times.version;
        if version < COPIED_SINCE {
            return None;
        }
        let schema = self.schema(schema_name(footer).ok()?).ok()?;
        let facts = FragmentFooter::parse(footer, version, &schema).ok()?.facts;
        Some(Outline { facts, schema })
    }
}
