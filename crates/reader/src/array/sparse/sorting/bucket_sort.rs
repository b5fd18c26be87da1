//! Sorts more cells than fit in memory by keys of one word: distributes them among buckets by the first bits of their
//! keys, and then sorts bucket by bucket in memory.

use tilefs_base::error::{Error, Result};
use tilefs_threads;
use tilefs_threads::{self as threads, cancellation, for_all};

use super::radix::sort_by_word;
use crate::array::sparse::rows::address::Address;
use crate::array::sparse::rows::store::{Blob, SpillStore};
use crate::vectors::in_wide_vectors;

/// The bits of a key that choose one of 256 buckets.
const BUCKET_BITS: u32 = 8;

/// The most bytes of a bucket that are written, and later read, together.
const PIECE_BYTES: usize = 16 << 10;

/// The memory in bytes for a cell while its bucket is sorted: two copies of its key and address, and one more address.
const SORTED_BYTES: usize = 2 * size_of::<(u64, Address)>() + size_of::<Address>();

/// The bytes of a cell in a bucket: a key and an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellLayout {
    /// The number of last bits in which keys differ.
    key_bits: u32,
    /// Bits of a position.
    position_bits: u32,
    /// Bits of the address if it and the key are in one word.
    address_bits: Option<u32>,
}

impl CellLayout {
    /// Returns the layout for keys that differ only in their last `key_bits` bits, and for addresses of so many
    /// fragments with at most `cells` cells each.
    pub fn new(key_bits: u32, fragments: usize, cells: u64) -> Self {
        let bits_below = |count: u64| u64::BITS - count.saturating_sub(1).leading_zeros();
        let position_bits = bits_below(cells);
        let address_bits = position_bits + bits_below(fragments as u64);
        // A word cannot be shifted by all of its bits.
        let fits = key_bits + address_bits <= u64::BITS && address_bits < u64::BITS;
        CellLayout { key_bits, position_bits, address_bits: fits.then_some(address_bits) }
    }

    /// Returns the bytes of a cell.
    fn size(self) -> usize {
        if self.address_bits.is_some() { size_of::<u64>() } else { 2 * size_of::<u64>() }
    }

    /// Appends a cell.
    #[inline]
    fn append(self, key: u64, address: Address, bytes: &mut Vec<u8>) {
        match self.address_bits {
            Some(bits) => bytes.extend_from_slice(&(key << bits | address.packed(self.position_bits)).to_le_bytes()),
            None => {
                bytes.extend_from_slice(&(u128::from(key) | u128::from(address.to_bits()) << 64).to_le_bytes());
            }
        }
    }

    /// Visits keys and addresses among the bytes of cells.
    fn for_each(self, bytes: &[u8], mut visit: impl FnMut(u64, Address) -> Result<()>) -> Result<()> {
        match self.address_bits {
            Some(_) => bytes.as_chunks().0.iter().try_for_each(|cell| {
                let word = u64::from_le_bytes(*cell);
                visit(self.key(word), self.address(word))
            }),
            None => bytes.as_chunks().0.iter().try_for_each(|cell| {
                let (key, address) = two_words(cell);
                visit(key, address)
            }),
        }
    }

    /// Returns the key of a cell in one word.
    #[inline]
    fn key(self, word: u64) -> u64 {
        word >> self.address_bits.unwrap_or(0)
    }

    /// Returns the address of a cell in one word.
    #[inline]
    fn address(self, word: u64) -> Address {
        let bits = self.address_bits.unwrap_or(0);
        Address::from_packed(word & ((1 << bits) - 1), self.position_bits)
    }
}

fn two_words(cell: &[u8; 16]) -> (u64, Address) {
    let bits = u128::from_le_bytes(*cell);
    (bits as u64, Address::from_bits((bits >> 64) as u64))
}

/// Cells whose keys have the same first bits, in the order in which they were added.
#[derive(Debug, Default)]
struct KeyBucket {
    blobs: Vec<Blob>,
}

/// The buckets of cells, in the order of their keys.
#[derive(Debug)]
pub struct KeyBuckets {
    buckets: Vec<KeyBucket>,
    layout: CellLayout,
    /// The number of last bits of keys by which the cells of a bucket are yet to be sorted.
    bits: u32,
}

/// Distributes cells among buckets.
pub struct BucketWriter<'a> {
    store: &'a SpillStore,
    layout: CellLayout,
    bits: u32,
    /// The cells of each bucket that are not in the store yet.
    pieces: Vec<Vec<u8>>,
    piece_bytes: usize,
    buckets: Vec<KeyBucket>,
}

impl<'a> BucketWriter<'a> {
    /// Returns a writer into `store`, which itself holds at most about `most_bytes` bytes of cells.
    pub fn new(store: &'a SpillStore, layout: CellLayout, most_bytes: usize) -> Self {
        Self::by_bits(store, layout, layout.key_bits, most_bytes)
    }

    /// As [`BucketWriter::new`], for keys that differ only in their last `bits`.
    fn by_bits(store: &'a SpillStore, layout: CellLayout, bits: u32, most_bytes: usize) -> Self {
        let count = 1 << BUCKET_BITS.min(bits);
        let piece_bytes = (most_bytes / count).clamp(layout.size(), PIECE_BYTES) / layout.size() * layout.size();
        let mut buckets = Vec::new();
        buckets.resize_with(count, KeyBucket::default);
        let bits = bits.saturating_sub(BUCKET_BITS);
        BucketWriter { store, layout, bits, pieces: vec![Vec::new(); count], piece_bytes, buckets }
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// [`Error::Io`] from the temporary file.
    #[inline]
    pub fn push(&mut self, key: u64, address: Address) -> Result<()> {
        // The number of buckets is a power of two.
        let number = (key >> self.bits) as usize & (self.pieces.len() - 1);
        let piece = &mut self.pieces[number];
        if piece.is_empty() {
            piece.reserve_exact(self.piece_bytes);
        }
        self.layout.append(key, address, piece);
        if piece.len() >= self.piece_bytes { self.close(number) } else { Ok(()) }
    }

    fn close(&mut self, number: usize) -> Result<()> {
        let blob = self.store.put(std::mem::take(&mut self.pieces[number]))?;
        self.buckets[number].blobs.push(blob);
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`] from the temporary file.
    pub fn finish(mut self) -> Result<KeyBuckets> {
        for number in 0..self.pieces.len() {
            if !self.pieces[number].is_empty() {
                self.close(number)?;
            }
        }
        Ok(KeyBuckets { buckets: self.buckets, layout: self.layout, bits: self.bits })
    }
}

impl KeyBucket {
    fn cells(&self, layout: CellLayout) -> usize {
        self.blobs.iter().map(Blob::length).sum::<usize>() / layout.size()
    }

    /// Visits the bytes of the cells piece by piece, in the order in which they were added.
    fn for_each_piece(&self, store: &SpillStore, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut buffer = Vec::new();
        self.blobs.iter().try_for_each(|blob| {
            cancellation::check()?;
            visit(store.get(blob, &mut buffer)?)
        })
    }

    fn sorted(&self, store: &SpillStore, layout: CellLayout) -> Result<Vec<Address>> {
        let count = self.cells(layout);
        if layout.address_bits.is_some() {
            let mut words: Vec<u64> = Vec::with_capacity(count);
            self.for_each_piece(store, |piece| {
                words.extend(piece.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
                Ok(())
            })?;
            sort_by_word(&mut words, &mut Vec::new(), |word| layout.key(*word));
            return Ok(words.into_iter().map(|word| layout.address(word)).collect());
        }
        let mut cells: Vec<(u64, Address)> = Vec::with_capacity(count);
        self.for_each_piece(store, |piece| {
            cells.extend(piece.as_chunks().0.iter().map(two_words));
            Ok(())
        })?;
        sort_by_word(&mut cells, &mut Vec::new(), |cell| cell.0);
        Ok(cells.into_iter().map(|cell| cell.1).collect())
    }
}

impl KeyBuckets {
    /// Appends to each bucket the cells of the bucket of the same keys in `behind`.
    pub fn append(&mut self, behind: KeyBuckets) {
        for (bucket, mut behind) in self.buckets.iter_mut().zip(behind.buckets) {
            bucket.blobs.append(&mut behind.blobs);
        }
    }

    /// Visits all cells sorted by their keys, and cells with the same key in the order in which they were added. Each
    /// thread takes at most about `most_bytes` of memory. Buckets that need more are divided into smaller ones in
    /// `store`.
    ///
    /// # Errors
    /// Those of `visit`; [`Error::Io`](tilefs_base::error::Error::Io) from the temporary file.
    pub fn for_each(
        self,
        store: &SpillStore,
        most_bytes: usize,
        visit: &mut dyn FnMut(&[Address]) -> Result<()>,
    ) -> Result<()> {
        let (layout, bits, most) = (self.layout, self.bits, (most_bytes / SORTED_BYTES).max(1));
        let mut left = self.buckets.into_iter().filter(|bucket| !bucket.blobs.is_empty()).peekable();
        while left.peek().is_some() {
            let group: Vec<KeyBucket> = left.by_ref().take(threads::decoding().max(1)).collect();
            let sorted = for_all(group.len(), |number| {
                let bucket = &group[number];
                (bucket.cells(layout) <= most).then(|| bucket.sorted(store, layout)).transpose()
            })?;
            for (bucket, sorted) in group.into_iter().zip(sorted) {
                match sorted {
                    Some(addresses) => visit(&addresses)?,
                    None if bits == 0 => visit_all(&bucket, layout, store, visit)?,
                    None => {
                        let mut writer = BucketWriter::by_bits(store, layout, bits, most_bytes);
                        bucket
                            .for_each_piece(store, |piece| layout.for_each(piece, |key, own| writer.push(key, own)))?;
                        drop(bucket);
                        writer.finish()?.for_each(store, most_bytes, visit)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Visits the cells of a bucket in the order in which they were added.
fn visit_all(
    bucket: &KeyBucket,
    layout: CellLayout,
    store: &SpillStore,
    visit: &mut dyn FnMut(&[Address]) -> Result<()>,
) -> Result<()> {
    let mut addresses = Vec::new();
    bucket.for_each_piece(store, |piece| {
        addresses.clear();
        layout.for_each(piece, |_, address| {
            addresses.push(address);
            Ok(())
        })?;
        visit(&addresses)
    })
}

/// Packs positions along several axes into keys of one word that sort as the positions do, the first axis being the
/// most significant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPacking {
    /// For each axis the least position, the greatest distance from it, and the shift of that distance.
    axes: Vec<(u64, u64, u32)>,
    bits: u32,
}

impl KeyPacking {
    /// Returns the packing of positions that lie between these ends, both included, along each axis; `None` if one word
    /// does not hold them.
    pub fn new(ends: &[(u64, u64)]) -> Option<Self> {
        let (mut axes, mut bits) = (Vec::new(), 0);
        for (low, high) in ends.iter().rev() {
            let most = high.checked_sub(*low)?;
            let own = u64::BITS - most.leading_zeros();
            // An axis with one position takes no bits. A word cannot be shifted by all of its bits.
            axes.push((*low, most, if own == 0 { 0 } else { bits }));
            bits += own;
        }
        axes.reverse();
        (bits <= u64::BITS).then_some(KeyPacking { axes, bits })
    }

    /// Returns the number of last bits in which keys differ.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Fills `keys` with the keys of `cells` cells, given their positions along each axis.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a position outside the ends.
    pub fn keys<'p>(
        &self,
        positions: impl Iterator<Item = &'p [u64]>,
        cells: usize,
        keys: &mut Vec<u64>,
    ) -> Result<()> {
        keys.clear();
        keys.resize(cells, 0);
        for ((low, most, shift), positions) in self.axes.iter().zip(positions) {
            let greatest = in_wide_vectors(|| {
                let mut greatest = 0;
                for (key, position) in keys.iter_mut().zip(positions) {
                    let distance = position.wrapping_sub(*low);
                    greatest = greatest.max(distance);
                    *key |= distance << shift;
                }
                greatest
            });
            if greatest > *most || positions.len() < cells {
                return Err(Error::damaged("a coordinate outside the boxes of all fragments"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(number: usize) -> Address {
        Address::new(number as u32 % 5, number as u64).unwrap()
    }

    proptest! {
        /// Beside the stable sort of the standard library: in memory and in a file, in parts, with skewed keys.
        #[test]
        fn cells_are_in_the_order_that_comparing_gives(
            keys in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..3, Just(1 << 40)], 0..400),
            bits in prop_oneof![Just(0u32), 1u32..64, Just(64)],
            most_bytes in prop_oneof![Just(0usize), Just(4000), Just(1 << 20)],
            limit in prop_oneof![Just(0usize), Just(usize::MAX)],
            share in 1usize..500,
            is_narrow in any::<bool>(),
        ) {
            let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let layout = if is_narrow { CellLayout::new(bits, 5, 400) } else { CellLayout { address_bits: None, ..CellLayout::new(bits, 5, 400) } };
            let mut cells: Vec<(u64, Address)> = keys.iter().enumerate().map(|(number, key)| (key & mask, address(number))).collect();
            let store = SpillStore::new(limit);
            let mut buckets = BucketWriter::new(&store, layout, most_bytes).finish().unwrap();
            for share in cells.chunks(share) {
                let mut writer = BucketWriter::new(&store, layout, most_bytes);
                share.iter().for_each(|(key, address)| writer.push(*key, *address).unwrap());
                buckets.append(writer.finish().unwrap());
            }
            let mut sorted = Vec::new();
            buckets.for_each(&store, most_bytes, &mut |some| { sorted.extend_from_slice(some); Ok(()) }).unwrap();
            cells.sort_by_key(|cell| cell.0);
            prop_assert_eq!(sorted, cells.iter().map(|cell| cell.1).collect::<Vec<_>>());
        }

        #[test]
        fn keys_sort_as_positions_do(
            lows in (any::<u64>(), any::<u64>(), any::<u64>()),
            lengths in (0u64..70_000, 0u64..9, 0u64..1 << 40),
            cells in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 2..30),
        ) {
            let ends = [(lows.0, lengths.0), (lows.1, lengths.1), (lows.2, lengths.2)].map(|(low, length)| (low, low.saturating_add(length)));
            let packing = KeyPacking::new(&ends).unwrap();
            let within = |(low, high): (u64, u64), at: u64| low + at % (high - low + 1);
            let mut cells: Vec<[u64; 3]> = cells.iter().map(|cell| [within(ends[0], cell.0), within(ends[1], cell.1), within(ends[2], cell.2)]).collect();
            let columns: Vec<Vec<u64>> = (0..3).map(|axis| cells.iter().map(|cell| cell[axis]).collect()).collect();
            let mut keys = Vec::new();
            packing.keys(columns.iter().map(Vec::as_slice), cells.len(), &mut keys).unwrap();
            let mut order: Vec<usize> = (0..cells.len()).collect();
            order.sort_by_key(|cell| keys[*cell]);
            let sorted: Vec<[u64; 3]> = order.iter().map(|cell| cells[*cell]).collect();
            prop_assert!(keys.iter().all(|key| packing.bits() == 64 || *key >> packing.bits() == 0));
            cells.sort();
            prop_assert_eq!(sorted, cells);
        }
    }

    #[test]
    fn a_key_and_an_address_take_one_word_if_they_fit() {
        for (key_bits, fragments, cells, size) in [
            (0, 0, 0, 8),
            (30, 1, 1 << 34, 8),
            (31, 1, 1 << 34, 16),
            (30, 2, 1 << 33, 8),
            (30, 3, 1 << 33, 16),
            (64, 1, 1, 8),
            (64, 1, 2, 16),
        ] {
            let layout = CellLayout::new(key_bits, fragments, cells);
            assert_eq!(layout.size(), size, "{key_bits} {fragments} {cells}");
            let last = Address::new(fragments.saturating_sub(1) as u32, cells.saturating_sub(1)).unwrap();
            let key = if key_bits == 0 { 0 } else { u64::MAX >> (64 - key_bits) };
            let mut bytes = Vec::new();
            layout.append(key, last, &mut bytes);
            assert_eq!(bytes.len(), size);
            let mut found = Vec::new();
            layout
                .for_each(&bytes, |key, address| {
                    found.push((key, address));
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, [(key, last)]);
        }
    }

    #[test]
    fn positions_that_one_word_does_not_hold_are_not_packed() {
        assert!(KeyPacking::new(&[(0, u64::MAX), (5, 5)]).is_some_and(|packing| packing.bits() == 64));
        assert!(KeyPacking::new(&[(5, 5), (0, u64::MAX)]).is_some());
        assert!(KeyPacking::new(&[(0, u64::MAX), (5, 6)]).is_none());
        assert!(KeyPacking::new(&[(6, 5)]).is_none());
        let packing = KeyPacking::new(&[(3, 9), (0, 1)]).unwrap();
        let keys = |a: u64, b: u64| packing.keys([[a].as_slice(), &[b]].into_iter(), 1, &mut Vec::new());
        assert!(keys(3, 0).is_ok() && keys(9, 1).is_ok());
        assert!(keys(2, 0).is_err() && keys(10, 0).is_err() && keys(3, 2).is_err());
    }
}
