//! `_metadata`: the row groups of several Parquet files with the same columns, in one footer. Readers open it instead of the
//! footers of the files.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads::single_flight::SingleFlight;

use super::file::{ParquetFile, tail};
use super::metadata::MAGIC;
use crate::content::compose::Concat;
use crate::content::{read_head, read_parts};

/// Maximum length in bytes: readers hold all of it in memory, and so does a mount.
const MAX_LENGTH: u64 = 256 << 20;

/// The metadata of several files.
pub struct PartsMetadata<F> {
    files: usize,
    /// Returns the path of a file and the file, by its number.
    file: F,
    rows: u64,
    length: u64,
    tail: SingleFlight<Arc<Concat>>,
}

impl<F: Fn(usize) -> Result<(String, ParquetFile)> + Send + Sync> PartsMetadata<F> {
    /// Creates the metadata of at least one file. Makes each file, one after the other, but reads none of its cells.
    ///
    /// # Errors
    /// Those of `file`; [`Error::Unsupported`] if the metadata would be too long.
    pub fn new(files: usize, file: F) -> Result<Self> {
        let (mut rows, mut groups, mut length) = (0u64, 0u64, None);
        for number in 0..files {
            let (place, part) = file(number)?;
            rows = rows.saturating_add(part.rows());
            groups = groups.saturating_add(part.most_of_groups(Some(&place)).unwrap_or(u64::MAX));
            length = part.reserved_for_tail(groups).map(|tail| MAGIC.len() as u64 + tail);
            length = length.filter(|&length| length <= MAX_LENGTH);
            if length.is_none() {
                let reason = format!("metadata of {files} parts, which are longer than {} MiB", MAX_LENGTH >> 20);
                return Err(Error::unsupported(reason));
            }
        }
        let length = length.ok_or_else(|| Error::internal("metadata of no file"))?;
        Ok(PartsMetadata { files, file, rows, length, tail: SingleFlight::new() })
    }

    fn tail(&self) -> Result<&Arc<Concat>> {
        self.tail.get_or_make(|| {
            let (mut groups, mut last) = (Vec::new(), None);
            for number in 0..self.files {
                let (place, part) = (self.file)(number)?;
                groups.extend(part.row_groups(Some(&place), groups.len())?);
                last = Some(part);
            }
            let last = last.ok_or_else(|| Error::internal("metadata of no file"))?;
            Ok(Arc::new(tail(last.footer_of(self.rows, groups), self.length - MAGIC.len() as u64)?))
        })
    }
}

impl<F: Fn(usize) -> Result<(String, ParquetFile)> + Send + Sync> Content for PartsMetadata<F> {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (offset, rest) = read_head(&MAGIC, offset, out);
        read_parts(offset, rest, |_| Ok((MAGIC.len() as u64..self.length, self.tail()?.clone())))
    }
}
