//! The one abstraction between arrays and those who read files.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::read::Output;

/// Bytes of a band where nothing is known of tiles.
const BAND: u64 = 1 << 20;

/// The bytes of one virtual file: known length, readable at any offset, immutable.
pub trait Content: Send + Sync {
    /// The exact length in bytes.
    fn len(&self) -> u64;

    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives `out` the bytes from `offset`. The range lies within the length: the callers at the edge (the mount,
    /// `tilefs cat`) clip it.
    ///
    /// A content that is made of others reads from them with outputs of the same kind. So reading ahead has decoded what
    /// the bytes of the range are made of, and makes none of them.
    ///
    /// # Errors
    /// When any byte of the range cannot be proven right; what was to be filled then holds nothing of use. Reading ahead
    /// need not meet what the read itself will.
    fn read(&self, offset: u64, out: Output<'_>) -> Result<()>;

    /// The part of the file around a byte within its length that comes from the same tiles, where that is known; else
    /// about a MiB. Reading ahead goes by these.
    fn band(&self, offset: u64) -> Range<u64> {
        unknown_band(self.len(), offset)
    }

    /// The file that is likely read next by somebody who begins to read this one, where files are read in a series. To
    /// be asked once a reader, when it begins.
    fn next_file(&self) -> Option<Arc<dyn Content>> {
        None
    }

    /// Fills `buf` with the bytes from `offset`: [`Content::read`] into memory.
    ///
    /// # Errors
    /// As there.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(offset, Output::Into(buf))
    }
}

/// The bytes of a file from the first on, for those who do not need to know how many there are.
pub trait Forward: Send {
    /// Replaces what is in `out` by the next bytes; `false` where there are no more.
    ///
    /// # Errors
    /// When any of them cannot be proven right.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        (**self).next(out)
    }
}

/// About a MiB around a byte of a content of so many bytes.
pub(crate) fn unknown_band(length: u64, offset: u64) -> Range<u64> {
    let start = offset - offset % BAND;
    start..start.saturating_add(BAND).min(length).max(offset.saturating_add(1))
}

/// Refuses a read that does not lie within `length` bytes.
pub(crate) fn check_range(length: u64, offset: u64, wanted: u64) -> Result<()> {
    match offset.checked_add(wanted) {
        Some(end) if end <= length => Ok(()),
        _ => Err(Error::internal(format!("read past the end, at offset {offset}"))),
    }
}

/// Gives `out` what of it lies within the first bytes of a content, which are in memory; returns the offset of what lies
/// behind them, and the output for that.
pub(crate) fn read_head<'a>(head: &[u8], offset: u64, out: Output<'a>) -> (u64, Output<'a>) {
    let within = usize::try_from(offset).ok().and_then(|offset| head.get(offset..)).unwrap_or(&[]);
    let (mut now, rest) = out.split_at(within.len() as u64);
    if let Some(now) = now.wanted() {
        now.copy_from_slice(&within[..now.len()]);
    }
    (offset + now.len(), rest)
}

impl<C: Content + ?Sized> Content for Arc<C> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        (**self).read(offset, out)
    }

    fn band(&self, offset: u64) -> Range<u64> {
        (**self).band(offset)
    }

    fn next_file(&self) -> Option<Arc<dyn Content>> {
        (**self).next_file()
    }
}

/// Bytes that are in memory already: headers, generated texts, small metadata.
impl Content for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        check_range(Content::len(self), offset, out.len())?;
        if let Some(out) = out.wanted() {
            // Within the length, which is a usize.
            out.copy_from_slice(&self[offset as usize..][..out.len()]);
        }
        Ok(())
    }
}
