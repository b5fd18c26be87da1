//! Chunks of datasets that can grow. HDF5 stores such datasets in chunks only; these are chosen so that the elements have the
//! order of the whole dataset, and lie one after the other, with zeros after the last one.

use std::sync::Arc;

use tilefs_base::content::Content;

use crate::content::compose::{Concat, Repeat};

/// Target size in bytes of a chunk of several indexes of the first axis: that of HDF5's cache of chunks.
const SEVERAL: u64 = 1 << 20;

/// Maximum size in bytes of a chunk of one index of the first axis, which readers may load as a whole.
const LARGEST: u64 = 64 << 20;

/// Returns the shape of the chunks of a dataset of this shape, whose elements have `size` bytes: entire along the inner axes,
/// one index along the outer axes. Only the first axis is cut elsewhere: then the last chunk may be longer than what is left
/// of the dataset, unless `is_divided`.
pub fn chunks_in_order(shape: &[u64], size: u64, is_divided: bool) -> Vec<u64> {
    let mut chunk = vec![1; shape.len()];
    let mut bytes = size.max(1);
    for (axis, length) in shape.iter().map(|length| (*length).max(1)).enumerate().rev() {
        if axis == 0 {
            let most = (SEVERAL / bytes).clamp(1, length);
            let divides = |count: &u64| !is_divided || length.is_multiple_of(*count);
            chunk[axis] = (1..=most).rev().find(divides).unwrap_or(1);
        } else if bytes.saturating_mul(length) > LARGEST {
            break;
        } else {
            (chunk[axis], bytes) = (length, bytes * length);
        }
    }
    chunk
}

/// Returns the elements of all chunks of a dataset: its own, then zeros to the end of the last chunk.
pub fn filled_up(values: Arc<dyn Content>, shape: &[u64], chunk: &[u64]) -> Arc<dyn Content> {
    let past_the_end = match (shape.first(), chunk.first()) {
        (Some(&length), Some(&count)) if length > 0 => length.next_multiple_of(count.max(1)) - length,
        _ => 0,
    };
    if past_the_end == 0 {
        return values;
    }
    let of_one = shape.first().map_or(0, |length| values.len() / length);
    let zeros = Repeat::zeros(past_the_end.saturating_mul(of_one));
    Arc::new(Concat::new(vec![values, Arc::new(zeros)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_all;
    use proptest::prelude::*;

    #[test]
    fn chunks_are_near_their_target() {
        assert_eq!(chunks_in_order(&[5], 8, false), [5]);
        assert_eq!(chunks_in_order(&[1 << 40], 8, false), [1 << 17]);
        assert_eq!(chunks_in_order(&[1 << 40, 10, 10], 4, false), [2621, 10, 10]);
        assert_eq!(chunks_in_order(&[9, 1000, 2000], 4, false), [1, 1000, 2000]);
        assert_eq!(chunks_in_order(&[9, 100, 1000, 2000], 4, false), [1, 1, 1000, 2000]);
        assert_eq!(chunks_in_order(&[9, 1 << 30], 4, false), [1, 1]);
        assert_eq!(chunks_in_order(&[0, 3, 0], 4, false), [1, 3, 1]);
        assert_eq!(chunks_in_order(&[1_000_000], 16, true), [62_500]);
        assert_eq!(chunks_in_order(&[1_000_003], 16, true), [1]);
        assert!(chunks_in_order(&[], 4, false).is_empty());
    }

    proptest! {
        /// Chunk by chunk, each in row-major order, the elements are those of the dataset in order.
        #[test]
        fn elements_of_chunks_have_the_order_of_the_dataset(
            shape in proptest::collection::vec(1u64..9, 1..4), size in prop_oneof![Just(1u64), Just(1 << 18), Just(1 << 24)],
        ) {
            let chunk = chunks_in_order(&shape, size, false);
            let elements: u64 = shape.iter().product();
            let value = |element: u64| (element % 255) as u8 + 1;
            let values: Arc<dyn Content> = Arc::new((0..elements).map(value).collect::<Vec<u8>>());
            let stored = read_all(&*filled_up(values, &shape, &chunk));
            let in_chunk: u64 = chunk.iter().product();
            let grid: Vec<u64> = shape.iter().zip(&chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect();
            prop_assert_eq!(stored.len() as u64, in_chunk * grid.iter().product::<u64>());
            let index = |number: u64, lengths: &[u64]| {
                let mut rest = number;
                let mut index: Vec<u64> = lengths.iter().rev().map(|length| (rest % length, rest /= length).0).collect();
                index.reverse();
                index
            };
            for (at, stored) in (0..).zip(&stored) {
                let (first, within) = (index(at / in_chunk, &grid), index(at % in_chunk, &chunk));
                let place: Vec<u64> = (0..shape.len()).map(|axis| first[axis] * chunk[axis] + within[axis]).collect();
                let is_inside = place.iter().zip(&shape).all(|(place, length)| place < length);
                let number = place.iter().zip(&shape).fold(0, |number, (place, length)| number * length + place);
                prop_assert_eq!(*stored, if is_inside { value(number) } else { 0 });
            }
        }
    }
}
