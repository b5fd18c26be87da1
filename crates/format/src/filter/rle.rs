//! RLE of fixed-size cells: `value[cell], run u16 BE`, repeated. Variable-length strings have another form, see
//! [`super::string_rle`].

use tilefs_base::error::{Error, Result};

use super::encoded_parts::EncodedPart;
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use super::string_metadata::is_text;
use super::string_rle;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    if input.cell_size == 0 {
        return Err(input.unsupported("on cells of no bytes"));
    }
    let stage = input.parts(Rle { cell: input.cell_size });
    Ok(if is_text(input.datatype) { stage.with_strings(string_rle::decode) } else { stage })
}

struct Rle {
    /// Bytes of a cell.
    cell: usize,
}

impl DecodePart for Rle {
    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        decode(self.cell, part.encoded, part.out)
    }
}

/// Bytes of a run length, which is stored big-endian, unlike nearly everything else in the format.
const RUN_BYTES: usize = 2;

/// Expands `encoded` into exactly `out.len()` bytes. `cell` is the tile's cell size, not 0.
fn decode(cell: usize, encoded: &[u8], out: &mut [u8]) -> Result<()> {
    match cell {
        1 => decode_cells::<1>(encoded, out),
        2 => decode_cells::<2>(encoded, out),
        4 => decode_cells::<4>(encoded, out),
        8 => decode_cells::<8>(encoded, out),
        _ => decode_any(cell, encoded, out),
    }
}

fn decode_cells<const CELL: usize>(encoded: &[u8], out: &mut [u8]) -> Result<()> {
    let items = encoded.chunks_exact(CELL + RUN_BYTES);
    let (mut cells, rest) = out.as_chunks_mut::<CELL>();
    check_shape(items.remainder(), rest)?;
    for item in items {
        let mut value = [0; CELL];
        value.copy_from_slice(&item[..CELL]);
        let run = run_of(&item[CELL..]);
        let Some(filled) = cells.split_off_mut(..run) else { return Err(overshoot()) };
        filled.fill(value);
    }
    check_end(cells.len())
}

fn decode_any(cell: usize, encoded: &[u8], mut out: &mut [u8]) -> Result<()> {
    let Some(item_bytes) = cell.checked_add(RUN_BYTES) else { return check_end(out.len()) };
    let items = encoded.chunks_exact(item_bytes);
    check_shape(items.remainder(), &out[..out.len() % cell])?;
    for item in items {
        let (value, run) = item.split_at(cell);
        let filled = run_of(run).checked_mul(cell).and_then(|bytes| out.split_off_mut(..bytes));
        for slot in filled.ok_or_else(overshoot)?.chunks_exact_mut(cell) {
            slot.copy_from_slice(value);
        }
    }
    check_end(out.len())
}

fn run_of(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn check_shape(encoded_rest: &[u8], out_rest: &[u8]) -> Result<()> {
    if encoded_rest.is_empty() && out_rest.is_empty() {
        return Ok(());
    }
    Err(Error::damaged("the lengths are not whole numbers of runs and cells"))
}

fn overshoot() -> Error {
    Error::damaged("the runs decode to more cells than claimed")
}

fn check_end(left: usize) -> Result<()> {
    if left == 0 {
        return Ok(());
    }
    Err(Error::damaged("the runs decode to fewer cells than claimed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes as the format describes.
    fn encode(cell: usize, bytes: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        let mut cells = bytes.chunks_exact(cell).peekable();
        while let Some(value) = cells.next() {
            let mut run = 1u16;
            while run < u16::MAX && cells.peek() == Some(&value) {
                cells.next();
                run += 1;
            }
            encoded.extend(value);
            encoded.extend(run.to_be_bytes());
        }
        encoded
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(
            cell in 1usize..20,
            runs in prop::collection::vec((any::<u8>(), 1usize..400), 0..40),
        ) {
            let bytes: Vec<u8> = runs
                .iter()
                .flat_map(|&(value, run)| (0..run * cell).map(move |i| value.wrapping_add((i % cell) as u8)))
                .collect();
            let mut out = vec![0; bytes.len()];
            decode(cell, &encode(cell, &bytes), &mut out).unwrap();
            prop_assert_eq!(out, bytes);
        }

        #[test]
        fn never_panics(cell in 1usize..12, encoded: Vec<u8>, length in 0usize..300) {
            let _ = decode(cell, &encoded, &mut vec![0; length]);
        }
    }

    #[test]
    fn long_runs_are_split() {
        let bytes = vec![7; 200_000];
        let encoded = encode(1, &bytes);
        assert_eq!(encoded.len(), 3 * 4);
        let mut out = vec![0; bytes.len()];
        decode(1, &encoded, &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    #[test]
    fn runs_of_length_zero_are_skipped() {
        let mut out = [9; 2];
        decode(1, &[5, 0, 0, 6, 0, 2], &mut out).unwrap();
        assert_eq!(out, [6, 6]);
    }

    #[test]
    fn runs_that_do_not_fit_are_errors() {
        for cell in [1, 2, 3, 4, 8] {
            let mut item = vec![1; cell];
            item.extend([0xff, 0xff]);
            assert!(decode(cell, &item, &mut vec![0; cell]).is_err(), "too many");
            assert!(decode(cell, &item, &mut vec![0; cell * 65536]).is_err(), "too few");
            assert!(decode(cell, &item[1..], &mut vec![0; cell * 65535]).is_err(), "no whole item");
            assert!(decode(cell, &item, &mut vec![0; cell * 65535]).is_ok());
        }
        assert!(decode(3, &[], &mut [0; 2]).is_err());
        assert!(decode(usize::MAX, &[1, 2, 3], &mut [0; 2]).is_err());
    }
}
