//! RLE of variable-length strings: `run length, string length, string`, repeated. The numbers are big-endian; the
//! metadata gives their widths.
//!
//! Writers have a bug: they choose the width of string lengths without looking at the string of the last run. If that
//! string is the longest, its stored length may have lost its high bytes; the string itself is complete. The decoder
//! takes its length from the end of the data, where it must end.

use tilefs_base::error::{Error, Result};

use super::scratch::CodecStates;
use super::string_metadata::{StringMetadata, take_number};
use crate::cursor::Cursor;

/// Decodes the strings into exactly `out.len()` bytes, and the start of each into `offsets`.
pub(super) fn decode(
    metadata: &mut Cursor<'_>,
    mut encoded: &[u8],
    out: &mut [u8],
    offsets: &mut [u64],
    _: &mut CodecStates,
) -> Result<()> {
    let widths = StringMetadata::parse(metadata, encoded, out, offsets)?;
    let mut strings = Strings { out, written: 0, offsets };
    while !encoded.is_empty() {
        let numbers = take_number(&mut encoded, widths.number_bytes)
            .and_then(|run| Some((run, take_number(&mut encoded, widths.length_bytes)?)));
        let Some((run, stored_length)) = numbers else { return Err(Error::damaged("the last run is cut off")) };
        let length = if run == strings.offsets.len() as u64 && run > 0 {
            last_length(stored_length, widths.length_bytes, encoded.len())?
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

/// Returns the length of the string of the last run, which ends with the data.
fn last_length(stored: u64, length_bytes: usize, left: usize) -> Result<u64> {
    let left = left as u64;
    let kept = if length_bytes == 8 { u64::MAX } else { (1 << (8 * length_bytes)) - 1 };
    if stored <= left && left & kept == stored {
        return Ok(left);
    }
    Err(Error::damaged(format!("the last string has {stored} bytes, {left} are left")))
}

/// The outputs that are still to be filled.
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
            return Err(Error::damaged("the runs decode to more than claimed"));
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
        Err(Error::damaged("the runs decode to less than claimed"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn width(largest: usize) -> usize {
        match largest {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        }
    }

    fn metadata(strings: usize, encoded: usize, cells: usize, widths: [usize; 2]) -> Vec<u8> {
        let mut metadata: Vec<u8> =
            [0, 1, strings, encoded, 8 * cells].iter().flat_map(|&number| (number as u32).to_le_bytes()).collect();
        metadata.extend(widths.map(|width| width as u8));
        metadata
    }

    /// Encodes as the format describes, with the bug of the writers.
    fn encode(cells: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
        let runs: Vec<&[Vec<u8>]> = cells.chunk_by(|a, b| a == b).collect();
        let run_bytes = width(runs.iter().map(|run| run.len()).max().unwrap_or(0));
        let considered = runs.len().saturating_sub(1).max(1);
        let length_bytes = width(runs.iter().take(considered).map(|run| run[0].len()).max().unwrap_or(0));
        let mut encoded = Vec::new();
        for run in runs {
            encoded.extend(&(run.len() as u64).to_be_bytes()[8 - run_bytes..]);
            encoded.extend(&(run[0].len() as u64).to_be_bytes()[8 - length_bytes..]);
            encoded.extend(&run[0]);
        }
        let strings = cells.iter().map(Vec::len).sum();
        (metadata(strings, encoded.len(), cells.len(), [run_bytes, length_bytes]), encoded)
    }

    fn decoded(metadata: &[u8], encoded: &[u8], bytes: usize, cells: usize) -> Result<(Vec<u8>, Vec<u64>)> {
        let (mut out, mut offsets) = (vec![0; bytes], vec![0; cells]);
        decode(&mut Cursor::new(metadata), encoded, &mut out, &mut offsets, &mut CodecStates::default())?;
        Ok((out, offsets))
    }

    fn check(cells: &[Vec<u8>]) {
        let (metadata, encoded) = encode(cells);
        let bytes = cells.concat();
        let starts: Vec<u64> = cells
            .iter()
            .scan(0, |end, cell| {
                *end += cell.len() as u64;
                Some(*end - cell.len() as u64)
            })
            .collect();
        let found = decoded(&metadata, &encoded, bytes.len(), cells.len()).unwrap();
        assert_eq!(found, (bytes, starts));
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(
            runs in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), 1usize..300), 0..20),
            last in 0usize..700,
        ) {
            let mut cells: Vec<Vec<u8>> =
                runs.into_iter().flat_map(|(cell, run)| std::iter::repeat_n(cell, run)).collect();
            check(&cells);
            cells.push(vec![b'x'; last]);
            check(&cells);
        }

        #[test]
        fn never_panics(widths: [u8; 2], encoded: Vec<u8>, bytes in 0usize..200, cells in 0usize..20) {
            let metadata = metadata(bytes, encoded.len(), cells, widths.map(usize::from));
            let _ = decoded(&metadata, &encoded, bytes, cells);
        }
    }

    #[test]
    fn the_last_string_may_have_lost_the_high_bytes_of_its_length() {
        let cells = [b"a".to_vec(), vec![b'x'; 300]];
        let (_, encoded) = encode(&cells);
        assert_eq!(encoded[3..5], [1, 44], "300 is stored as 44");
        check(&cells);
        check(&[b"a".to_vec(), vec![0; 65536 + 7], vec![0; 65536 + 7]]);
        // The remaining bytes must agree with the stored low bytes of the length.
        let (metadata, mut encoded) = encode(&cells);
        encoded[4] = 45;
        assert!(decoded(&metadata, &encoded, 301, 2).is_err());
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let cells = [b"ab".to_vec(), b"ab".to_vec(), b"c".to_vec()];
        let (good, encoded) = encode(&cells);
        decoded(&good, &encoded, 5, 3).unwrap();
        assert!(decoded(&good, &encoded, 4, 3).is_err());
        assert!(decoded(&good, &encoded, 5, 2).is_err());
        assert!(decoded(&good, &encoded[..6], 5, 3).is_err());
        for (claimed, cells) in [((4, 3), 3), ((6, 3), 3), ((5, 2), 2), ((5, 4), 4)] {
            let metadata = metadata(claimed.0, encoded.len(), claimed.1, [1, 1]);
            assert!(decoded(&metadata, &encoded, claimed.0, cells).is_err(), "{claimed:?}");
        }
        // A run of 2^64 - 1 strings, and a string of 2^64 - 1 bytes.
        let metadata = metadata(5, 17, 3, [8, 8]);
        let run = [&[0xff; 8][..], &[0, 0, 0, 0, 0, 0, 0, 1, b'x']].concat();
        assert!(decoded(&metadata, &run, 5, 3).is_err());
        let length = [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[0xff; 8], b"x"].concat();
        assert!(decoded(&metadata, &length, 5, 3).is_err());
    }
}
