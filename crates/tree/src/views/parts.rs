//! `parts/`: a table as many files, each of which can be read without locating the rows of any other.
//!
//! A part is named by the number of its first row, with leading zeros so that names sort like rows. If several
//! fragments may have cells with the same coordinates, rows are not counted before they are read, and the name is the
//! maximum number of rows before the part. A table without rows has one part, which has its columns.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::Forward;
use tilefs_base::error::Result;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::listing::Listing;
use tilefs_vfs::node::{Entry, Folder, NODE, Node};

use crate::cells::{MAX_PART_ROWS, Subarray};
use crate::fields::FieldFolder;
use crate::sizing::Sizing;

/// The name of the folder.
pub const PARTS: &str = "parts";

/// The folder of parts that can be concatenated: no part begins with a row of names.
pub const PARTS_WITHOUT_HEADER: &str = "parts-without-header";

/// Digits of a part's name: enough for the rows of any table.
const DIGITS: usize = 15;

/// Maximum number of parts in a folder that is listed.
const MAX_LISTED_PARTS: u64 = 1024;

/// Makes the file of the rows of one part.
pub type MakeFile = fn(&FieldFolder) -> LazyFile;

/// A folder of the parts of a table in one format. Memory: a number for each part, once determined.
pub struct PartsFolder {
    fields: FieldFolder,
    /// The ending of the names that are listed, then endings of names that are only found; each with a function that
    /// makes the files.
    formats: Vec<(&'static str, MakeFile)>,
    /// The data on which the size of a part depends.
    sizing: Sizing,
    starts: SingleFlight<Vec<u64>>,
}

impl PartsFolder {
    /// Creates the parts of the table that `fields` show. Listed names end with the first of the `formats`; files in
    /// others are found by name.
    pub fn new(fields: FieldFolder, sizing: Sizing, formats: Vec<(&'static str, MakeFile)>) -> Self {
        PartsFolder { fields, formats, sizing, starts: SingleFlight::new() }
    }

    /// Returns whether `ls` shows the folder: if there are several parts, but few enough for `ls -l`, which requests
    /// the size of each, and for programs that read everything they find. Otherwise the folder is found by name.
    pub fn listing(&self) -> Listing {
        let (subarray, sizing) = (self.fields.subarray.clone(), self.sizing);
        Listing::if_quick(move || {
            subarray.row_count().is_ok_and(|rows| {
                let most = MAX_PART_ROWS + 1..=MAX_PART_ROWS * MAX_LISTED_PARTS;
                most.contains(&rows.most()) && sizing.is_listed(rows.most(), rows.exact().is_some())
            })
        })
    }

    fn starts(&self) -> Result<&Vec<u64>> {
        self.starts.get_or_retry(|| {
            let starts = self.fields.subarray.part_starts(MAX_PART_ROWS)?;
            Ok(if starts.is_empty() { vec![0] } else { starts })
        })
    }
}

impl Folder for PartsFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some((stem, ending)) = name.split_once('.') else { return Ok(None) };
        let make = self.formats.iter().find(|(known, _)| *known == ending).map(|(_, make)| make);
        let (Some(make), Ok(first)) = (make, stem.parse::<u64>()) else { return Ok(None) };
        match self.starts()?.binary_search(&first) {
            Ok(number) if name == part_name(first, ending) => {
                let subarray = part_of(&self.fields.subarray, number, MAX_PART_ROWS)?;
                let file = make(&FieldFolder { subarray, ..self.fields.clone() });
                Ok(Some(Node::File(Arc::new(file))))
            }
            _ => Ok(None),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let Some((ending, _)) = self.formats.first() else { return Ok(Vec::new()) };
        let entry = |first: &u64| Entry::file(part_name(*first, ending));
        Ok(self.starts()?.iter().map(entry).collect())
    }

    fn modified(&self) -> SystemTime {
        self.fields.modified
    }

    fn memory(&self) -> usize {
        NODE + self.starts.get().map_or(0, |starts| starts.capacity() * size_of::<u64>())
    }
}

/// Returns the rows of a part of at most `most` rows: those of a table without rows are the table.
///
/// # Errors
/// As for [`Subarray::part_of_rows`].
pub fn part_of(table: &Arc<dyn Subarray>, number: usize, most: u64) -> Result<Arc<dyn Subarray>> {
    if table.part_starts(most)?.is_empty() { Ok(table.clone()) } else { table.part_of_rows(number, most) }
}

/// Returns the name of a part that begins with this row, or has at most so many rows before it.
pub fn part_name(first: u64, ending: &str) -> String {
    format!("{first:0DIGITS$}.{ending}")
}

/// The files of all parts in sequence; only the current one is made.
pub struct PartByPart<F> {
    subarray: Arc<dyn Subarray>,
    make: F,
    parts: usize,
    next: usize,
    current: Option<Box<dyn Forward>>,
}

impl<F: Fn(Arc<dyn Subarray>, bool) -> Result<Box<dyn Forward>> + Send> PartByPart<F> {
    /// Creates the sequence. `make` makes the file of a part's rows; its second argument says whether it is the first
    /// part. An array without rows is one part.
    ///
    /// # Errors
    /// As for [`Subarray::part_starts`].
    pub fn new(subarray: Arc<dyn Subarray>, make: F) -> Result<Self> {
        let parts = subarray.part_starts(MAX_PART_ROWS)?.len().max(1);
        Ok(PartByPart { subarray, make, parts, next: 0, current: None })
    }
}

impl<F: Fn(Arc<dyn Subarray>, bool) -> Result<Box<dyn Forward>> + Send> Forward for PartByPart<F> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        loop {
            if let Some(current) = &mut self.current
                && current.next(out)?
            {
                return Ok(true);
            }
            if self.next >= self.parts {
                return Ok(false);
            }
            let part = part_of(&self.subarray, self.next, MAX_PART_ROWS)?;
            self.current = Some((self.make)(part, self.next == 0)?);
            self.next += 1;
        }
    }
}
