//! The layout that compressors and the encryption share: they encode the data and the metadata of earlier filters, part
//! by part, and list the lengths of the parts.
//!
//! ```text
//! metadata: number of metadata parts u32, number of data parts u32,
//!           per part, metadata parts first: length u32, encoded length u32, more for encryption
//! data:     the encoded parts in the same order
//! ```

use tilefs_base::error::{Error, Result};

use crate::cursor::Cursor;

/// Bytes of the two lengths of a part.
const LENGTHS_BYTES: usize = 8;

/// The parts of one chunk.
#[derive(Debug)]
pub(super) struct EncodedParts<'a> {
    /// One entry of `entry_bytes` for each part.
    entries: &'a [u8],
    entry_bytes: usize,
    metadata_parts: usize,
}

/// One part: its input, its output, and the rest of its entry.
pub(super) struct EncodedPart<'a, 'o> {
    /// The entry after the two lengths.
    pub extra: &'a [u8],
    pub encoded: &'a [u8],
    pub out: &'o mut [u8],
}

impl<'a> EncodedParts<'a> {
    /// Reads a list of parts that fills the whole metadata. Each entry has `extra_bytes` after its lengths.
    pub fn parse(metadata: &'a [u8], extra_bytes: usize) -> Result<Self> {
        let entry_bytes = LENGTHS_BYTES + extra_bytes;
        let mut cursor = Cursor::new(metadata);
        let metadata_parts = cursor.u32("number of metadata parts")?;
        let data_parts = cursor.u32("number of data parts")?;
        let count = u64::from(metadata_parts) + u64::from(data_parts);
        let count = cursor.checked_count(count, entry_bytes, "number of parts")?;
        let entries = cursor.bytes(count * entry_bytes, "parts")?;
        if !cursor.is_at_end() {
            return Err(cursor.error("parts", "metadata follows the last part"));
        }
        // At most `count`, which is a usize.
        Ok(EncodedParts { entries, entry_bytes, metadata_parts: metadata_parts as usize })
    }

    /// Returns the bytes that all metadata parts decode to, and that all data parts decode to.
    pub fn decoded_bytes(&self) -> (u64, u64) {
        let sum = |entries: &[u8]| entries.chunks_exact(self.entry_bytes).map(|entry| u64::from(length(entry))).sum();
        let (metadata, data) = self.entries.split_at(self.metadata_parts * self.entry_bytes);
        (sum(metadata), sum(data))
    }

    /// Decodes every part with `decode`, into `metadata` and `out`, whose lengths are those of
    /// [`EncodedParts::decoded_bytes`].
    pub fn decode_all<'o>(
        &self,
        mut data: &[u8],
        mut metadata: &'o mut [u8],
        mut out: &'o mut [u8],
        mut decode: impl FnMut(EncodedPart<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        for (index, entry) in self.entries.chunks_exact(self.entry_bytes).enumerate() {
            let encoded_bytes = length(&entry[4..]) as usize;
            let Some((encoded, rest)) = data.split_at_checked(encoded_bytes) else {
                return Err(Error::damaged(format!("part {index} claims {encoded_bytes} bytes, {} left", data.len())));
            };
            data = rest;
            let side = if index < self.metadata_parts { &mut metadata } else { &mut out };
            let Some(part) = side.split_off_mut(..length(entry) as usize) else {
                return Err(Error::damaged(format!("part {index} is longer than its output")));
            };
            decode(EncodedPart { extra: &entry[LENGTHS_BYTES..], encoded, out: part })?;
        }
        if !data.is_empty() {
            return Err(Error::damaged(format!("{} bytes follow the last part", data.len())));
        }
        Ok(())
    }
}

/// Checks that a codec has filled the output of a part.
pub(super) fn check_filled(written: u64, out: &[u8]) -> Result<()> {
    if written == out.len() as u64 {
        return Ok(());
    }
    Err(Error::damaged(format!("decodes to {written} bytes instead of {}", out.len())))
}

/// Checks that a codec has read a part to its end.
pub(super) fn check_read(read: u64, encoded: &[u8]) -> Result<()> {
    if read == encoded.len() as u64 {
        return Ok(());
    }
    Err(Error::damaged(format!("the stream ends after {read} of {} bytes", encoded.len())))
}

/// Returns the `u32` at the start of an entry.
fn length(entry: &[u8]) -> u32 {
    u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(counts: [u32; 2], lengths: &[u32]) -> Vec<u8> {
        counts.iter().chain(lengths).flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn metadata_parts_come_first_on_both_sides() {
        let metadata = frame([1, 2], &[1, 2, 3, 1, 0, 0]);
        let parts = EncodedParts::parse(&metadata, 0).unwrap();
        assert_eq!(parts.decoded_bytes(), (1, 3));
        let (mut left, mut right) = ([0; 1], [0; 3]);
        let mut seen = Vec::new();
        parts
            .decode_all(b"aab", &mut left, &mut right, |part| {
                seen.push((part.encoded.to_vec(), part.out.len()));
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [(b"aa".to_vec(), 1), (b"b".to_vec(), 3), (vec![], 0)]);
    }

    #[test]
    fn counts_and_lengths_are_bounded_by_the_bytes() {
        assert!(EncodedParts::parse(&frame([u32::MAX, u32::MAX], &[]), 0).is_err());
        assert!(EncodedParts::parse(&frame([0, 1], &[1]), 0).is_err());
        assert!(EncodedParts::parse(&frame([0, 1], &[1, 1, 1]), 0).is_err());
        let metadata = frame([0, 1], &[1, 5]);
        let parts = EncodedParts::parse(&metadata, 0).unwrap();
        assert!(parts.decode_all(b"1234", &mut [], &mut [0], |_| Ok(())).is_err());
        assert!(parts.decode_all(b"123456", &mut [], &mut [0], |_| Ok(())).is_err());
        assert!(parts.decode_all(b"12345", &mut [], &mut [], |_| Ok(())).is_err());
        assert!(parts.decode_all(b"12345", &mut [], &mut [0], |_| Ok(())).is_ok());
    }
}
