//! The bytes of a file: [`Content`], read at any offset, and [`Forward`], read in sequence.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::inputs::{Recorded, Recorder};
use crate::output::Output;

/// Size of a band in bytes if the tiles are not known.
const BAND: u64 = 1 << 20;

/// The bytes of one virtual file: of known length, readable at any offset, immutable.
pub trait Content: Send + Sync {
    /// Returns the exact length in bytes.
    fn len(&self) -> u64;

    /// Returns whether the file is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes from `offset` to `out`, which is not empty. The range lies within the length. Called by
    /// [`Content::read`], which checks the range.
    ///
    /// A content that is made of other contents reads from these with outputs of the same kind. Prefetching a range
    /// therefore decodes everything its bytes are made of, and produces none of the bytes.
    ///
    /// # Errors
    /// Fails if any byte of the range cannot be proven right; the output then holds nothing useful. Prefetching may
    /// succeed where the read itself fails.
    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()>;

    /// Writes the bytes from `offset` to `out`. The range must lie within the length: the callers at the edge (the
    /// mount, `tilefs cat`) clip it.
    ///
    /// # Errors
    /// As for [`Content::fill`].
    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        match offset.checked_add(out.len()) {
            Some(end) if end <= self.len() && out.is_empty() => Ok(()),
            Some(end) if end <= self.len() => self.fill(offset, out),
            _ => Err(Error::internal(format!("read past the end, at offset {offset}"))),
        }
    }

    /// Returns the part of the file around a byte, which lies within the length, that comes from the same tiles; if the
    /// tiles are not known, about one MiB. Prefetching proceeds in these units.
    fn band(&self, offset: u64) -> Range<u64> {
        unknown_band(self.len(), offset)
    }

    /// Returns where the part of the file around a byte ends that a reader of this byte may want without the rest of the
    /// file: one of several images. Prefetching goes no further.
    fn end_of_part(&self, offset: u64) -> u64 {
        let _ = offset;
        self.len()
    }

    /// Returns about how many bytes are decoded and cached for each byte of the file: more than one if the file shows
    /// only a part of the data that it is computed from. Limits how far ahead of a reader data are prefetched.
    fn decoded_per_byte(&self) -> u64 {
        1
    }

    /// Records what the bytes depend on, as [`Recorded`] does. What is made of contents that do not say it is not saved for
    /// later mounts.
    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }

    /// Returns the file that a reader of this one will probably read next, if files are read in series. Call it once
    /// per reader, when it begins to read.
    fn next_file(&self) -> Option<Arc<dyn Content>> {
        None
    }

    /// Fills `buf` with the bytes from `offset`: [`Content::read`] into memory.
    ///
    /// # Errors
    /// As for [`Content::read`].
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(offset, Output::Into(buf))
    }

    /// As [`Content::read_at`], for a reader that makes one pass over the content: bytes that were decoded for it need not
    /// be kept in a cache.
    ///
    /// # Errors
    /// As for [`Content::read`].
    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_at(offset, buf)
    }
}

impl Recorded for dyn Content {
    fn record(&self, recorder: &mut Recorder) {
        Content::record(self, recorder);
    }
}

/// The bytes of a file in sequence, for readers that do not need to know its length.
pub trait Forward: Send {
    /// Replaces the contents of `out` by the next bytes; returns `false` at the end.
    ///
    /// # Errors
    /// Fails if any of them cannot be proven right.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        (**self).next(out)
    }
}

/// Returns about one MiB around a byte of a content of this length.
pub fn unknown_band(length: u64, offset: u64) -> Range<u64> {
    let start = offset - offset % BAND;
    start..start.saturating_add(BAND).min(length).max(offset.saturating_add(1))
}

impl<C: Content + ?Sized> Content for Arc<C> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        (**self).fill(offset, out)
    }

    fn band(&self, offset: u64) -> Range<u64> {
        (**self).band(offset)
    }

    fn end_of_part(&self, offset: u64) -> u64 {
        (**self).end_of_part(offset)
    }

    fn decoded_per_byte(&self) -> u64 {
        (**self).decoded_per_byte()
    }

    fn record(&self, recorder: &mut Recorder) {
        Content::record(&**self, recorder);
    }

    fn next_file(&self) -> Option<Arc<dyn Content>> {
        (**self).next_file()
    }

    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        (**self).read_once(offset, buf)
    }
}

/// Bytes already in memory: headers, generated texts, small metadata.
impl Content for Vec<u8> {
    fn record(&self, recorder: &mut Recorder) {
        recorder.add::<Self>(self);
    }

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        if let Some(out) = out.wanted() {
            // Lies within the length, which is a usize.
            out.copy_from_slice(&self[offset as usize..][..out.len()]);
        }
        Ok(())
    }
}
