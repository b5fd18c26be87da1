//! The offsets of values of variable length.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads::cancellation;

/// Bytes of offsets read at a time.
const AT_ONCE: u64 = 1 << 20;

/// The offsets of values in bytes: the start of each, and the end of the last. As a content, they are little-endian u64.
#[derive(Clone)]
pub struct Offsets(Arc<dyn Content>);

typed_content!(Offsets);

impl Offsets {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        (self.len() / 8).saturating_sub(1)
    }

    /// Reads the start of a value or, for the number of values, the end of the last.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn at(&self, value: u64) -> Result<u64> {
        let mut offset = [0];
        self.read_into(value, &mut offset)?;
        Ok(offset[0])
    }

    /// Reads consecutive offsets, from that of the value `first`.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn read_into(&self, first: u64, offsets: &mut [u64]) -> Result<()> {
        let mut bytes = vec![0; offsets.len() * 8];
        self.read_at(first.saturating_mul(8), &mut bytes)?;
        offsets.iter_mut().zip(decoded(&bytes)).for_each(|(offset, read)| *offset = read);
        Ok(())
    }

    /// Reads the start of each of some values, and the end of the last; or prefetches them and returns nothing, if `out`
    /// has no memory.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn of(&self, values: Range<u64>, out: &Output<'_>) -> Result<Vec<u64>> {
        let mut bytes = Vec::new();
        let length = values.end.saturating_sub(values.start).saturating_add(1).saturating_mul(8);
        self.read(values.start.saturating_mul(8), out.aside(length, &mut bytes))?;
        Ok(decoded(&bytes).collect())
    }

    /// Calls `each` with the length in bytes of every value.
    ///
    /// # Errors
    /// Fails if the offsets cannot be read, or decrease, or if `each` fails.
    pub(crate) fn for_each_length(&self, mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let (mut last, mut at) = (None, 0);
        let mut bytes = Vec::new();
        while at < self.len() {
            cancellation::check()?;
            bytes.resize((self.len() - at).min(AT_ONCE) as usize, 0);
            self.read_at(at, &mut bytes)?;
            for offset in decoded(&bytes) {
                if let Some(last) = last {
                    each(offset.checked_sub(last).ok_or_else(wrong_offsets)?)?;
                }
                last = Some(offset);
            }
            at += bytes.len() as u64;
        }
        Ok(())
    }
}

fn decoded(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|offset| u64::from_le_bytes(*offset))
}

/// Returns the error for offsets that contradict each other or the values.
pub fn wrong_offsets() -> Error {
    Error::damaged("offsets of values that do not begin at 0, or decrease")
}
