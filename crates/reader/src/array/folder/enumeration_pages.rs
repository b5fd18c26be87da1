//! An enumeration that is read page by page, for readers that want some of its values: one that the cache cannot hold
//! would be decoded as a whole for each of them.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_format::enumeration::StoredValues;

use crate::array::context::Context;
use crate::array::metadata_tiles::generic_tile::GenericTile;

/// Bytes of values that are read together; a longer value is read alone.
const READ_TOGETHER: u64 = 64 << 10;

/// Bytes of the place where a value starts.
const PLACE: u64 = 8;

/// The values of an enumeration in its file. Memory: 32 bytes for each page of 64 KiB; the cache keeps or evicts each page
/// on its own.
pub struct EnumerationPages {
    /// Has the cache of the pages, which know it weakly.
    _context: Arc<Context>,
    pages: GenericTile,
    stored: StoredValues,
}

impl EnumerationPages {
    pub(super) fn new(context: &Arc<Context>, pages: GenericTile, stored: StoredValues) -> Self {
        EnumerationPages { _context: context.clone(), pages, stored }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.stored.count
    }

    /// Passes some values to `visit`, in order, until it returns whether to go on. Memory: the places of the values, and a
    /// page, or the longest value.
    ///
    /// # Errors
    /// Any damage in the pages with the values; [`Error::Damaged`] for values that are not there.
    pub fn for_each(&self, numbers: Range<u64>, mut visit: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let places = self.places(&numbers)?;
        let (mut first, mut bytes) = (0, Vec::new());
        while let Some(&[start, next, ..]) = places.get(first..) {
            let together = places
                .get(first + 1..)
                .map_or(0, |ends| ends.partition_point(|end| end.saturating_sub(start) <= READ_TOGETHER));
            let ends = places.get(first + 1..first + 1 + together.max(1)).unwrap_or_default();
            let length = ends.last().unwrap_or(&next).saturating_sub(start);
            memory::resize(&mut bytes, usize::try_from(length).unwrap_or(usize::MAX), "labels")?;
            self.pages.read_at(self.stored.start.saturating_add(start), &mut bytes)?;
            let mut from = start;
            for &end in ends {
                let value = bytes.get((from - start) as usize..(end - start) as usize);
                if !visit(value.ok_or_else(|| Error::internal("a value that was not read"))?) {
                    return Ok(());
                }
                from = end;
            }
            first += ends.len();
        }
        Ok(())
    }

    /// Returns where values start, and where the last of them ends. They never decrease.
    fn places(&self, numbers: &Range<u64>) -> Result<Vec<u64>> {
        let StoredValues { count, length, size, .. } = self.stored;
        let beyond = || Error::damaged(format!("values {} to {} of {count} wanted", numbers.start, numbers.end));
        if numbers.end > count || numbers.start > numbers.end {
            return Err(beyond());
        }
        if let Some(size) = size {
            return Ok((numbers.start..=numbers.end).map(|number| number.saturating_mul(size)).collect());
        }
        let mut bytes = Vec::new();
        // The end of the last value is not stored.
        let stored = count.min(numbers.end.saturating_add(1)) - numbers.start;
        memory::resize(&mut bytes, usize::try_from(stored * PLACE).unwrap_or(usize::MAX), "places of labels")?;
        self.pages.read_at(self.stored.offsets_start().saturating_add(numbers.start * PLACE), &mut bytes)?;
        let mut places: Vec<u64> = bytes.as_chunks().0.iter().map(|place| u64::from_le_bytes(*place)).collect();
        places.extend((numbers.end == count).then_some(length));
        match places.is_sorted() && places.last().is_none_or(|&last| last <= length) {
            true => Ok(places),
            false => Err(beyond()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tilefs_format::enumeration::Enumeration;
    use tilefs_storage::{MemoryStorage, StoreKey};

    use super::*;
    use crate::array::metadata_tiles::generic_tile::tests::stored;

    /// Returns the payload of a file with these values, of a fixed size if one is given.
    fn payload(values: &[Vec<u8>], size: Option<u32>) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for name in ["e", "file"] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.push(11);
        bytes.extend(size.unwrap_or(u32::MAX).to_le_bytes());
        bytes.push(0);
        let data = values.concat();
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(&data);
        if size.is_none() {
            bytes.extend((PLACE * values.len() as u64).to_le_bytes());
            let mut start = 0u64;
            for value in values {
                bytes.extend(start.to_le_bytes());
                start += value.len() as u64;
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn pages_have_the_values_of_the_whole(
            lengths in prop::collection::vec(prop_oneof![0usize..9, Just(READ_TOGETHER as usize + 7)], 0..40),
            fixed in prop::option::of(1u32..9),
            [one, other] in prop::array::uniform2(0u64..41),
            most in 0usize..50,
        ) {
            let letters = |(number, length): (usize, &usize)| -> Vec<u8> {
                let length = fixed.map_or(*length, |size| size as usize);
                (0..length).map(|at| b'a' + ((number + at) % 26) as u8).collect()
            };
            let values: Vec<Vec<u8>> = lengths.iter().enumerate().map(letters).collect();
            let payload = payload(&values, fixed);
            let whole = Enumeration::parse(&payload).unwrap();
            let (memory, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/values"));
            memory.put(key.clone(), stored(payload.chunks(4096)));
            let context = Arc::new(Context::new(Arc::new(memory), 1 << 20, 1, None));
            let pages = EnumerationPages::new(&context, GenericTile::open(&context, &key).unwrap(), whole.stored_values());
            prop_assert_eq!(pages.count(), values.len() as u64);
            let (start, end) = (one.min(other).min(pages.count()), one.max(other).min(pages.count()));
            let mut found = Vec::new();
            pages.for_each(start..end, |value| {
                found.push(value.to_vec());
                found.len() < most
            }).unwrap();
            let due = ((end - start) as usize).min(most.max(1));
            prop_assert_eq!(&found[..], &values[start as usize..][..due]);
            prop_assert!(pages.for_each(start..pages.count() + 1, |_| true).is_err());
        }
    }
}
