//! The metadata that BYTESHUFFLE, BITSHUFFLE, BITSORT, XOR, SCALE_FLOAT and WEBP share: the number of parts, and the
//! bytes of each part in the filtered data.
//!
//! ```text
//! number of parts u32, bytes of each part u32, then the metadata of earlier filters
//! ```

use tilefs_base::error::{Error, Result};

use crate::cursor::Cursor;

/// The lengths of the parts. Their sum is the length of the data.
#[derive(Debug)]
pub(super) struct PartLengths<'a> {
    lengths: &'a [[u8; 4]],
}

impl<'a> PartLengths<'a> {
    /// Reads the lengths at the cursor and checks that they sum to `data_bytes`.
    pub fn parse(metadata: &mut Cursor<'a>, data_bytes: usize) -> Result<Self> {
        let count = metadata.u32("number of parts")?;
        let count = metadata.checked_count(count.into(), 4, "number of parts")?;
        let (lengths, _) = metadata.bytes(4 * count, "part lengths")?.as_chunks();
        let sum: u64 = lengths.iter().map(|&length| u64::from(u32::from_le_bytes(length))).sum();
        if sum != data_bytes as u64 {
            return Err(Error::damaged(format!("the parts have {sum} bytes, the data {data_bytes}")));
        }
        Ok(PartLengths { lengths })
    }

    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Calls `undo` with each part of `data` and the bytes of `out` at the same offset.
    pub fn for_each(
        &self,
        mut data: &[u8],
        mut out: &mut [u8],
        mut undo: impl FnMut(&[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        for &length in self.lengths {
            let length = u32::from_le_bytes(length) as usize;
            match (data.split_off(..length), out.split_off_mut(..length)) {
                (Some(part), Some(out)) => undo(part, out)?,
                _ => return Err(Error::damaged("a part is longer than the data")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_data() {
        let metadata = [2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 99];
        let mut cursor = Cursor::new(&metadata);
        let parts = PartLengths::parse(&mut cursor, 4).unwrap();
        assert_eq!(cursor.remaining(), 1);
        let mut seen = Vec::new();
        let see = |part: &[u8], out: &mut [u8]| {
            seen.push((part.to_vec(), out.len()));
            Ok(())
        };
        parts.for_each(b"abcd", &mut [0; 4], see).unwrap();
        assert_eq!(seen, [(b"abc".to_vec(), 3), (b"d".to_vec(), 1)]);
        assert!(parts.for_each(b"abcd", &mut [0; 3], |_, _| Ok(())).is_err());
        assert!(PartLengths::parse(&mut Cursor::new(&metadata), 5).is_err());
        assert!(PartLengths::parse(&mut Cursor::new(&[0xff; 16]), 5).is_err());
    }
}
