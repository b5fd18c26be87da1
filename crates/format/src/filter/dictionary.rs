//! DICTIONARY of variable-length strings: the metadata has the distinct strings, `length, string` each, and the data
//! has one id per cell. All numbers are big-endian; the metadata gives their widths.

use tilefs_base::error::{Error, Result};

use super::encoded_parts::EncodedPart;
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use super::string_metadata::{StringMetadata, is_text, take_number};
use crate::cursor::Cursor;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    if !is_text(input.datatype) {
        return Err(input.unsupported_type(input.datatype));
    }
    Ok(input.parts(WithoutOffsets).with_strings(decode))
}

/// Refuses data that is not strings with their offsets: no writer makes a dictionary of anything else.
struct WithoutOffsets;

impl DecodePart for WithoutOffsets {
    fn decode(&self, _: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        Err(Error::damaged("the strings are not stored with their offsets"))
    }
}

/// Decodes the strings into exactly `out.len()` bytes, and the start of each into `offsets`.
fn decode(
    metadata: &mut Cursor<'_>,
    mut encoded: &[u8],
    mut out: &mut [u8],
    offsets: &mut [u64],
    states: &mut CodecStates,
) -> Result<()> {
    let index = &mut states.dictionary;
    let widths = StringMetadata::parse(metadata, encoded, out, offsets)?;
    let dictionary = metadata.str32("dictionary")?;
    index.read(dictionary, widths.length_bytes)?;
    if encoded.len() as u64 != widths.number_bytes as u64 * offsets.len() as u64 {
        return Err(Error::damaged(format!("{} bytes of ids for {} cells", encoded.len(), offsets.len())));
    }
    let mut written = 0;
    for offset in offsets {
        *offset = written;
        let id = take_number(&mut encoded, widths.number_bytes).and_then(|id| usize::try_from(id).ok());
        let Some(&(start, length)) = id.and_then(|id| index.0.get(id)) else {
            return Err(Error::damaged(format!("an id beyond the {} strings of the dictionary", index.0.len())));
        };
        let string = &dictionary[start as usize..][..length as usize];
        let Some(slot) = out.split_off_mut(..string.len()) else {
            return Err(Error::damaged("the ids decode to more bytes than claimed"));
        };
        slot.copy_from_slice(string);
        written += u64::from(length);
    }
    if out.is_empty() {
        return Ok(());
    }
    Err(Error::damaged("the ids decode to fewer bytes than claimed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metadata(strings: usize, encoded: usize, cells: usize, widths: [u8; 2], dictionary: &[u8]) -> Vec<u8> {
        let mut metadata: Vec<u8> =
            [0, 1, strings, encoded, 8 * cells].iter().flat_map(|&number| (number as u32).to_le_bytes()).collect();
        metadata.extend(widths);
        metadata.extend((dictionary.len() as u32).to_le_bytes());
        metadata.extend(dictionary);
        metadata
    }

    /// Encodes as the format describes.
    fn encode(cells: &[Vec<u8>], [id_bytes, length_bytes]: [usize; 2]) -> (Vec<u8>, Vec<u8>) {
        let (mut dictionary, mut encoded, mut seen) = (Vec::new(), Vec::new(), Vec::<&Vec<u8>>::new());
        for cell in cells {
            let id = seen.iter().position(|&known| known == cell).unwrap_or_else(|| {
                seen.push(cell);
                dictionary.extend(&(cell.len() as u64).to_be_bytes()[8 - length_bytes..]);
                dictionary.extend(cell);
                seen.len() - 1
            });
            encoded.extend(&(id as u64).to_be_bytes()[8 - id_bytes..]);
        }
        let strings = cells.iter().map(Vec::len).sum();
        let widths = [id_bytes as u8, length_bytes as u8];
        (metadata(strings, encoded.len(), cells.len(), widths, &dictionary), encoded)
    }

    fn decoded(metadata: &[u8], encoded: &[u8], bytes: usize, cells: usize) -> Result<(Vec<u8>, Vec<u64>)> {
        let (mut out, mut offsets) = (vec![0; bytes], vec![0; cells]);
        decode(&mut Cursor::new(metadata), encoded, &mut out, &mut offsets, &mut CodecStates::default())?;
        Ok((out, offsets))
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(
            cells in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..100),
            id_bytes in prop::sample::select(vec![1usize, 2, 4, 8]),
            length_bytes in prop::sample::select(vec![1usize, 2, 4, 8]),
        ) {
            let (metadata, encoded) = encode(&cells, [id_bytes, length_bytes]);
            let bytes = cells.concat();
            let (out, offsets) = decoded(&metadata, &encoded, bytes.len(), cells.len()).unwrap();
            prop_assert_eq!(out, bytes);
            let mut end = 0;
            for (offset, cell) in offsets.into_iter().zip(&cells) {
                prop_assert_eq!(offset, end);
                end += cell.len() as u64;
            }
        }

        #[test]
        fn never_panics(widths: [u8; 2], dictionary: Vec<u8>, encoded: Vec<u8>, bytes in 0usize..200) {
            let cells = encoded.len() / usize::from(widths[0].clamp(1, 8));
            let metadata = metadata(bytes, encoded.len(), cells, widths, &dictionary);
            let _ = decoded(&metadata, &encoded, bytes, cells);
        }
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let cells = [b"ab".to_vec(), b"c".to_vec(), b"ab".to_vec()];
        let (good, encoded) = encode(&cells, [1, 1]);
        decoded(&good, &encoded, 5, 3).unwrap();
        for bytes in [4, 6] {
            let metadata = metadata(bytes, 3, 3, [1, 1], b"\x02ab\x01c");
            assert!(decoded(&metadata, &encoded, bytes, 3).is_err(), "{bytes} bytes");
        }
        assert!(decoded(&good, &[0, 1, 2], 5, 3).is_err(), "no such id");
        assert!(decoded(&good[..good.len() - 1], &encoded, 5, 3).is_err(), "a dictionary cut off");
        let metadata = metadata(5, 3, 3, [1, 1], b"\x02ab\x02c");
        assert!(decoded(&metadata, &encoded, 5, 3).is_err(), "a string cut off");
    }
}
