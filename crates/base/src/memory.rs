//! Fallible allocation of sizes that come from stored numbers: an error instead of an abort.

use crate::error::{Error, Result};

/// Resizes a vector to `length`, filling new elements with zero.
///
/// # Errors
/// [`Error::Unsupported`] if there is not enough memory; `what` names its purpose in the message.
pub fn resize<T: Copy + Default>(vector: &mut Vec<T>, length: usize, what: &str) -> Result<()> {
    reserve(vector, length.saturating_sub(vector.len()), what)?;
    vector.resize(length, T::default());
    Ok(())
}

/// Makes room for more elements of a vector.
///
/// # Errors
/// As [`resize`].
pub fn reserve<T>(vector: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    let length = vector.len().saturating_add(more);
    vector.try_reserve(more).map_err(|_| not_enough(length.saturating_mul(size_of::<T>()), what))
}

/// Allocates `count` times `size` zero bytes.
///
/// # Errors
/// As [`resize`].
pub fn zeros(count: u64, size: usize, what: &str) -> Result<Vec<u8>> {
    let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
    let mut bytes = Vec::new();
    resize(&mut bytes, length.ok_or_else(|| not_enough(usize::MAX, what))?, what)?;
    Ok(bytes)
}

/// Number of elements that [`fill`] reads first.
const FIRST_STEP: usize = 1 << 20;

/// Makes a vector of `count` times `size` elements. `read` fills consecutive parts; its first argument counts times of
/// `size`. Each part is at most as long as all parts before it, or a MiB of elements, so a count that is too large costs
/// an error of `read` and little memory.
///
/// # Errors
/// Those of `read`; [`Error::Unsupported`] if there is not enough memory.
pub fn fill<T: Copy + Default>(
    count: u64,
    size: usize,
    what: &str,
    mut read: impl FnMut(u64, &mut [T]) -> Result<()>,
) -> Result<Vec<T>> {
    let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
    let length = length.ok_or_else(|| not_enough(usize::MAX, what))?;
    let mut filled = Vec::new();
    // With a `size` of 0 there is nothing to fill.
    while filled.len() < length {
        let start = filled.len();
        let step = start.max((FIRST_STEP / size).max(1).saturating_mul(size));
        resize(&mut filled, start.saturating_add(step).min(length), what)?;
        read((start / size) as u64, &mut filled[start..])?;
    }
    Ok(filled)
}

fn not_enough(bytes: usize, what: &str) -> Error {
    Error::unsupported(format!("{bytes} bytes for {what}: not enough memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_is_an_error() {
        let mut some = vec![7u16];
        resize(&mut some, 3, "numbers").unwrap();
        assert_eq!(some, [7, 0, 0]);
        let error = resize(&mut some, 1 << 60, "numbers").unwrap_err();
        assert!(error.to_string().contains("2305843009213693952 bytes for numbers: not enough memory"), "{error}");
        assert_eq!(some, [7, 0, 0]);
        resize(&mut some, 1, "numbers").unwrap();
        assert_eq!(some, [7]);
        assert_eq!(zeros(3, 2, "cells").unwrap(), [0; 6]);
        assert!(zeros(u64::MAX, 2, "cells").is_err() && zeros(1 << 61, 1, "cells").is_err());
    }

    #[test]
    fn a_vector_is_filled_part_by_part() {
        for (count, size) in [(0, 1), (5, 4), (3 << 20, 1), (700_001, 5), (3, 2 << 20)] {
            let mut parts = Vec::new();
            let read = |first: u64, part: &mut [u8]| {
                assert_eq!(part.len() % size, 0);
                parts.push(part.len());
                for (number, cell) in (first..).zip(part.chunks_mut(size)) {
                    cell.fill(number as u8);
                }
                Ok(())
            };
            let filled = fill(count, size, "cells", read).unwrap();
            assert_eq!(filled.len(), count as usize * size);
            assert!((0..).zip(filled.chunks(size)).all(|(number, cell)| cell.iter().all(|byte| *byte == number as u8)));
            let before = |number: usize| parts[..number].iter().sum::<usize>();
            assert!((1..parts.len()).all(|number| parts[number] <= before(number)), "{parts:?}");
        }
    }

    #[test]
    fn a_count_that_is_too_large_takes_little_memory() {
        let mut asked = 0;
        let read = |first: u64, part: &mut [u8]| {
            asked = first + part.len() as u64;
            if asked > 3 << 20 { Err(Error::damaged("no more")) } else { Ok(()) }
        };
        assert!(fill(1 << 40, 1, "cells", read).is_err());
        assert_eq!(asked, 4 << 20);
        assert!(fill(u64::MAX, 2, "cells", |_, _: &mut [u8]| Ok(())).is_err());
    }
}
