//! The metadata of RLE and DICTIONARY on variable-length strings, which these filters store with their offsets.
//!
//! ```text
//! number of metadata parts u32 (0), number of data parts u32 (1),
//! bytes of the strings u32, encoded bytes u32, bytes of the offsets u32,
//! width of run lengths or ids u8, width of string lengths u8, then for DICTIONARY the dictionary
//! ```

use tilefs_base::error::{Error, Result};

use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// Returns whether the filters store strings of this type with their offsets.
pub(super) fn is_text(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8)
}

/// The metadata that both filters need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringMetadata {
    /// Width of run lengths (RLE) or of ids (DICTIONARY): 1, 2, 4 or 8 bytes.
    pub number_bytes: usize,
    /// Width of string lengths: 1, 2, 4 or 8 bytes.
    pub length_bytes: usize,
}

impl StringMetadata {
    /// Reads the metadata, and checks its lengths against the encoded data and the outputs.
    pub fn parse(metadata: &mut Cursor<'_>, encoded: &[u8], out: &[u8], offsets: &[u64]) -> Result<Self> {
        let parts = (metadata.u32("number of metadata parts")?, metadata.u32("number of data parts")?);
        if parts != (0, 1) {
            return Err(Error::damaged(format!("strings in {} metadata and {} data parts", parts.0, parts.1)));
        }
        let agree = |what: &str, claimed: u32, actual: u64| {
            if u64::from(claimed) == actual {
                return Ok(());
            }
            Err(Error::damaged(format!("{claimed} bytes of {what} claimed instead of {actual}")))
        };
        agree("strings", metadata.u32("bytes of strings")?, out.len() as u64)?;
        agree("encoded strings", metadata.u32("encoded bytes")?, encoded.len() as u64)?;
        agree("offsets", metadata.u32("bytes of offsets")?, 8 * offsets.len() as u64)?;
        let number_bytes = width(metadata.u8("width of numbers")?);
        let length_bytes = width(metadata.u8("width of string lengths")?);
        Ok(StringMetadata { number_bytes, length_bytes })
    }
}

/// Returns a width in bytes. TileDB writes 1, 2, 4 or 8; its reader rounds other values up.
fn width(stored: u8) -> usize {
    match stored {
        0 | 1 => 1,
        2 => 2,
        3 | 4 => 4,
        _ => 8,
    }
}

/// The starts and lengths of the strings in a dictionary; kept between parts to reuse its memory.
#[derive(Default)]
pub(super) struct StringIndex(pub Vec<(u32, u32)>);

impl StringIndex {
    /// Frees the memory if it is more than `kept_bytes`.
    pub fn trim(&mut self, kept_bytes: usize) {
        if self.0.capacity() * size_of::<(u32, u32)>() > kept_bytes {
            self.0 = Vec::new();
        }
    }

    /// Reads a dictionary, whose length was stored as a `u32`.
    pub fn read(&mut self, dictionary: &[u8], length_bytes: usize) -> Result<()> {
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

/// Splits off a big-endian integer of `width` bytes.
#[inline(always)]
pub(super) fn take_number(bytes: &mut &[u8], width: usize) -> Option<u64> {
    let taken = bytes.split_off(..width)?;
    Some(match *taken {
        [a] => a.into(),
        [a, b] => u16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    })
}
