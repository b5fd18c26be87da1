//! The one abstraction between arrays and those who read files.

use std::sync::Arc;

use crate::error::{Error, Result};

/// The bytes of one virtual file: known length, readable at any offset, immutable.
pub trait Content: Send + Sync {
    /// The exact length in bytes.
    fn len(&self) -> u64;

    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` with the bytes from `offset`. The range lies within the length: the callers at the
    /// edge (the mount, `tilefs cat`) clip it.
    ///
    /// # Errors
    /// When any byte of the range cannot be proven right; `buf` then holds nothing of use.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// A sequential reader will soon want this range: decode it ahead where that saves time. A hint;
    /// errors are left for the read itself.
    fn prepare(&self, _offset: u64, _length: u64) {}
}

/// The bytes of a file from the first on, for those who do not need to know how many there are.
pub trait Forward: Send {
    /// Replaces what is in `out` by the next bytes; `false` where there are no more.
    ///
    /// # Errors
    /// When any of them cannot be proven right.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

/// Refuses a read that does not lie within `length` bytes.
pub(crate) fn check_range(length: u64, offset: u64, wanted: usize) -> Result<()> {
    match offset.checked_add(wanted as u64) {
        Some(end) if end <= length => Ok(()),
        _ => Err(Error::internal(format!("read past the end, at offset {offset}"))),
    }
}

impl<C: Content + ?Sized> Content for Arc<C> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        (**self).read_at(offset, buf)
    }

    fn prepare(&self, offset: u64, length: u64) {
        (**self).prepare(offset, length);
    }
}

/// Bytes that are in memory already: headers, generated texts, small metadata.
impl Content for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(buf.len())?))
            .ok_or_else(|| Error::internal(format!("read past the end, at offset {offset}")))?;
        buf.copy_from_slice(range);
        Ok(())
    }
}
