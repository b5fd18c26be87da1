//! Contents of which others are made: values in memory and in arrays, and how they are put together.

#[macro_use]
mod typed;

pub(crate) mod bits;
pub(crate) mod blanked;
#[doc(hidden)]
pub mod compose;
#[doc(hidden)]
pub mod element;
#[doc(hidden)]
pub mod grid;
#[doc(hidden)]
pub mod masked;
#[doc(hidden)]
pub mod offsets;
pub mod padded;
#[doc(hidden)]
pub mod raw;
pub(crate) mod refusal;
pub(crate) mod utf8;
#[doc(hidden)]
pub mod validity;
pub mod var;

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;

/// Bytes that kernels read from a file at once: a page in memory. If one of them cannot be read, none of them is.
pub(crate) const MEMORY_PAGE: u64 = 4096;

/// Copies to `out` the bytes of a content's head, which is in memory, that the read covers. Returns the offset at which
/// the rest of the read begins, and the output for the rest.
pub(crate) fn read_head<'a>(head: &[u8], offset: u64, out: Output<'a>) -> (u64, Output<'a>) {
    let within = usize::try_from(offset).ok().and_then(|offset| head.get(offset..)).unwrap_or(&[]);
    let (mut now, rest) = out.split_at(within.len() as u64);
    if let Some(now) = now.wanted() {
        now.copy_from_slice(&within[..now.len()]);
    }
    (offset + now.len(), rest)
}

/// Writes to `out` a content from `offset` on, part after part. `part` returns the part at an offset, and its position.
///
/// # Errors
/// Fails if a part cannot be read, or does not have the length of its place.
pub(crate) fn read_parts(
    mut offset: u64,
    mut out: Output<'_>,
    part: impl Fn(u64) -> Result<(Range<u64>, Arc<dyn Content>)>,
) -> Result<()> {
    while !out.is_empty() {
        let (place, content) = part(offset)?;
        let (now, later) = out.split_at(place.end.saturating_sub(offset));
        let length = now.len();
        if length == 0 || content.len() != place.end - place.start {
            return Err(Error::damaged("offsets that do not agree with the values"));
        }
        content.read(offset - place.start, now)?;
        (offset, out) = (offset + length, later);
    }
    Ok(())
}
