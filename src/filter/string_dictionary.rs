//! DICTIONARY of var-length strings: the distinct strings in the metadata, `length, string` each, and
//! in the data one id per cell. All numbers are big-endian and as wide as the frame says.

use super::string_frame::{StringFrame, take_number};
use crate::error::{Error, Result};
use crate::format::cursor::Cursor;

/// Where the strings of a dictionary lie in its bytes; kept to reuse its memory.
#[derive(Default)]
pub(super) struct Entries(Vec<(u32, u32)>);

impl Entries {
    /// Gives the memory back if it is more than `kept_bytes`.
    pub fn trim(&mut self, kept_bytes: usize) {
        if self.0.capacity() * size_of::<(u32, u32)>() > kept_bytes {
            self.0 = Vec::new();
        }
    }

    /// Reads a dictionary, whose length was stored as a `u32`.
    fn read(&mut self, dictionary: &[u8], length_bytes: usize) -> Result<()> {
        self.0.clear();
        let mut rest = dictionary;
        while !rest.is_empty() {
            let length = take_number(&mut rest, length_bytes);
            let start = dictionary.len() - rest.len();
            let string = length.and_then(|length| rest.split_off(..usize::try_from(length).ok()?));
            let Some(string) = string else {
                return Err(Error::damaged(format!("string {} of the dictionary is cut off", self.0.len())));
            };
            self.0.push((start as u32, string.len() as u32));
        }
        Ok(())
    }
}

/// Decodes the strings into exactly `out.len()` bytes and the start of each into `offsets`.
pub(super) fn undo(
    metadata: &mut Cursor<'_>,
    mut encoded: &[u8],
    mut out: &mut [u8],
    offsets: &mut [u64],
    entries: &mut Entries,
) -> Result<()> {
    let frame = StringFrame::parse(metadata, encoded, out, offsets)?;
    let dictionary = metadata.str32("dictionary")?;
    entries.read(dictionary, frame.length_bytes)?;
    if encoded.len() as u64 != frame.number_bytes as u64 * offsets.len() as u64 {
        return Err(Error::damaged(format!("{} bytes of ids for {} cells", encoded.len(), offsets.len())));
    }
    let mut written = 0;
    for offset in offsets {
        *offset = written;
        let id = take_number(&mut encoded, frame.number_bytes).and_then(|id| usize::try_from(id).ok());
        let Some(&(start, length)) = id.and_then(|id| entries.0.get(id)) else {
            return Err(Error::damaged(format!("an id beyond the {} strings of the dictionary", entries.0.len())));
        };
        let string = &dictionary[start as usize..][..length as usize];
        let Some(slot) = out.split_off_mut(..string.len()) else {
            return Err(Error::damaged("the ids stand for more bytes than they claim"));
        };
        slot.copy_from_slice(string);
        written += u64::from(length);
    }
    if out.is_empty() {
        return Ok(());
    }
    Err(Error::damaged("the ids stand for fewer bytes than they claim"))
}
