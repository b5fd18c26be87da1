//! RLE of var-length strings: `run length, string length, string`, repeated; the numbers are
//! big-endian and as wide as the frame says.
//!
//! A known fault of writers: the width of string lengths is chosen without regard to the string of the
//! last run. If that is the longest, its stored length has lost its high bytes, while the string
//! itself is complete. As it must end where the data ends, its length is known all the same.

use super::string_frame::{StringFrame, take_number};
use crate::error::{Error, Result};
use crate::format::cursor::Cursor;

/// Decodes the strings into exactly `out.len()` bytes and the start of each into `offsets`.
pub(super) fn undo(metadata: &mut Cursor<'_>, mut encoded: &[u8], out: &mut [u8], offsets: &mut [u64]) -> Result<()> {
    let frame = StringFrame::parse(metadata, encoded, out, offsets)?;
    let mut strings = Strings { out, written: 0, offsets };
    while !encoded.is_empty() {
        let numbers = take_number(&mut encoded, frame.number_bytes)
            .and_then(|run| Some((run, take_number(&mut encoded, frame.length_bytes)?)));
        let Some((run, stored_length)) = numbers else { return Err(Error::damaged("the last run is cut off")) };
        let length = if run == strings.offsets.len() as u64 && run > 0 {
            last_length(stored_length, frame.length_bytes, encoded.len())?
        } else {
            stored_length
        };
        let string = usize::try_from(length).ok().and_then(|length| encoded.split_off(..length));
        let Some(string) = string else {
            return Err(Error::damaged(format!("a string of {length} bytes, {} left", encoded.len())));
        };
        strings.repeat(run, string)?;
    }
    strings.finish()
}

/// The length of the string of the last run, which ends with the data.
fn last_length(stored: u64, length_bytes: usize, left: usize) -> Result<u64> {
    let left = left as u64;
    let kept = if length_bytes == 8 { u64::MAX } else { (1 << (8 * length_bytes)) - 1 };
    if stored <= left && left & kept == stored {
        return Ok(left);
    }
    Err(Error::damaged(format!("the last string has {stored} bytes, {left} are left")))
}

/// What is still to be filled.
struct Strings<'a> {
    out: &'a mut [u8],
    written: u64,
    offsets: &'a mut [u64],
}

impl Strings<'_> {
    fn repeat(&mut self, run: u64, string: &[u8]) -> Result<()> {
        let bytes = (string.len() as u64).checked_mul(run).and_then(|bytes| usize::try_from(bytes).ok());
        let out = bytes.and_then(|bytes| self.out.split_off_mut(..bytes));
        let offsets = usize::try_from(run).ok().and_then(|run| self.offsets.split_off_mut(..run));
        let (Some(out), Some(offsets)) = (out, offsets) else {
            return Err(Error::damaged("the runs hold more than they claim"));
        };
        for offset in offsets.iter_mut() {
            *offset = self.written;
            self.written += string.len() as u64;
        }
        if let [byte] = string {
            out.fill(*byte);
        } else if !string.is_empty() {
            for slot in out.chunks_exact_mut(string.len()) {
                slot.copy_from_slice(string);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        if self.out.is_empty() && self.offsets.is_empty() {
            return Ok(());
        }
        Err(Error::damaged("the runs hold less than they claim"))
    }
}
