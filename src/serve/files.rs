//! The pieces of the bytes of a file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use hyper::body::Bytes;
use tilefs_base::error::Result;
use tilefs_vfs::read_ahead::Reader;

use super::connection::body::Pieces;
use super::connection::buffers::{LARGE, SMALL};
use super::http::refusal::Refusal;
use super::served_file::ServedFile;
use super::site::Site;

/// Size of the first piece: a reader that needs only a header should not wait for more.
const FIRST_PIECE: u64 = SMALL as u64;

/// A part of a reply.
pub enum ReplyPart {
    /// Bytes between ranges.
    Bytes(Bytes),
    /// A range of the file.
    Range(Range<u64>),
}

impl ReplyPart {
    pub fn length(&self) -> u64 {
        match self {
            ReplyPart::Bytes(bytes) => bytes.len() as u64,
            ReplyPart::Range(range) => range.end.saturating_sub(range.start),
        }
    }
}

/// The bytes of a file, or of ranges of it, for one request.
pub struct FilePieces {
    file: Arc<ServedFile>,
    reader: Arc<Reader>,
    parts: VecDeque<ReplyPart>,
    /// The size of the next piece.
    size: u64,
    site: Arc<Site>,
    path: String,
}

impl FilePieces {
    /// Creates the pieces of these parts, whose ranges lie within the file.
    pub fn new(site: &Arc<Site>, path: String, file: Arc<ServedFile>, parts: VecDeque<ReplyPart>) -> Self {
        let known = file.reader().take();
        let reader = known.unwrap_or_else(|| site.read_ahead.open(file.content.clone()));
        FilePieces { file, reader, parts, size: FIRST_PIECE, site: site.clone(), path }
    }

    /// Prefetches from the first byte, for a request for the whole file.
    pub fn expect_all(&self) {
        self.site.read_ahead.note_all(&self.reader);
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let length = range.end.saturating_sub(range.start);
        self.site.read_ahead.note(&self.reader, range.start, length);
        // At most LARGE.
        let mut buffer = self.site.buffers.take(length as usize);
        self.file.content.read_at(range.start, buffer.as_mut_slice())?;
        Ok(buffer.into_bytes())
    }
}

impl Pieces for FilePieces {
    fn next(&mut self) -> std::result::Result<Option<Bytes>, Refusal> {
        let range = match self.parts.pop_front() {
            None => return Ok(None),
            Some(ReplyPart::Bytes(bytes)) => return Ok(Some(bytes)),
            Some(ReplyPart::Range(range)) => range,
        };
        let end = range.end.min(range.start.saturating_add(self.size));
        if end < range.end {
            self.parts.push_front(ReplyPart::Range(end..range.end));
        }
        self.size = if self.site.buffers.are_crowded() { FIRST_PIECE } else { (LARGE as u64).min(2 * self.size) };
        let (site, doing) = (&self.site, || format!("read of {} at {}", self.path, range.start));
        let read = site.attempt(doing, || Ok(self.read(range.start..end)?));
        if read.is_err() {
            // Keep the range, so that dropping this value ends the prefetching.
            self.parts.push_front(ReplyPart::Range(range));
        }
        read.map(Some)
    }
}

impl Drop for FilePieces {
    fn drop(&mut self) {
        let mut kept = self.file.reader();
        // A client that has received everything may ask for the bytes that follow. For a client that is gone, nothing
        // is prefetched.
        if kept.is_none() && self.parts.is_empty() {
            *kept = Some(self.reader.clone());
        } else {
            drop(kept);
            self.site.read_ahead.close(&self.reader);
        }
    }
}
