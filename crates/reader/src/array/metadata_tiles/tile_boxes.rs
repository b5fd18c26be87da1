//! The boxes of a sparse fragment's tiles: its R-tree. A large R-tree is read page by page.

use tilefs_base::error::Result;
use tilefs_format::fragment::{RTree, RTreeLayout, ReadAt};
use tilefs_format::schema::ArraySchema;

use super::generic_tile::{GenericTile, StoredList};

/// The bytes of an R-tree: kept as a whole if it is small, else in pages that the cache keeps or evicts.
pub enum TreeBytes {
    /// All boxes of a small tree.
    Whole(Box<[u8]>),
    /// The tree is read page by page.
    Paged(Box<GenericTile>),
}

/// The boxes of a sparse fragment's tiles.
pub type TileBoxes = RTree<TreeBytes>;

impl ReadAt for TreeBytes {
    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<()> {
        match self {
            TreeBytes::Whole(bytes) => bytes.read_at(start, out),
            TreeBytes::Paged(tile) => tile.read_at(start, out),
        }
    }
}

/// Reads the section of an R-tree once and checks that each box contains the boxes below it. At most `most` bytes of a
/// level are kept meanwhile.
///
/// # Errors
/// As [`RTreeLayout::read`].
pub(crate) fn read_boxes(
    section: StoredList<'_>,
    version: u32,
    schema: &ArraySchema,
    most: usize,
) -> Result<TileBoxes> {
    match section {
        StoredList::Whole(payload) => {
            let RTree { layout, bytes } = RTree::parse(payload, version, schema)?;
            Ok(RTree { layout, bytes: TreeBytes::Whole(bytes) })
        }
        StoredList::Long(mut tile) => {
            let layout = RTreeLayout::read(&mut *tile, version, schema, most)?;
            Ok(RTree { layout, bytes: TreeBytes::Paged(tile.index()?.into()) })
        }
    }
}

/// Returns the memory of an R-tree without its pages in the cache.
pub(crate) fn memory_of_boxes(boxes: &TileBoxes) -> usize {
    let bytes = match &boxes.bytes {
        TreeBytes::Whole(bytes) => bytes.len(),
        TreeBytes::Paged(tile) => tile.memory(),
    };
    boxes.layout.memory() + bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tilefs_format::fragment::Descent;
    use tilefs_format::scalar::{Range, Scalar};
    use tilefs_format::schema::fixture;
    use tilefs_storage::{MemoryStorage, SimulatedStorage, StoreKey};

    use super::super::generic_tile::{open_section, tests::stored};
    use super::*;
    use crate::array::Context;

    const TILES: i64 = 20_000;

    /// Tile `n` has coordinates from 3n to 3n + 2 along both dimensions.
    fn rtree() -> Vec<u8> {
        let mut widths = vec![1];
        while widths[0] < TILES {
            widths.insert(0, widths[0] * 10);
        }
        let mut bytes = 10u32.to_le_bytes().to_vec();
        bytes.extend((widths.len() as u32).to_le_bytes());
        for width in widths {
            let count = (TILES as u64).div_ceil(width as u64);
            bytes.extend(count.to_le_bytes());
            for node in 0..count as i64 {
                let (low, high) = (3 * node * width, 3 * ((node + 1) * width).min(TILES) - 1);
                bytes.extend([low, high, low, high].iter().flat_map(|bound| (*bound as i32).to_le_bytes()));
            }
        }
        bytes
    }

    #[test]
    fn a_large_tree_is_fetched_once_and_then_page_by_page() {
        let (memory, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/rtree"));
        let payload = rtree();
        let pages = payload.len().div_ceil(65536);
        memory.put(key.clone(), stored(payload.chunks(65536)));
        for (budget, keeps) in [(1 << 20, false), (64 << 20, true)] {
            let storage = Arc::new(SimulatedStorage::new(Arc::new(memory.clone()), Duration::ZERO));
            let context = Arc::new(Context::new(storage.clone(), budget, 1, None));
            let section = open_section(&context, &key, 0, payload.len() as u64).unwrap();
            let boxes = read_boxes(section, 22, &fixture::sparse(), usize::MAX).unwrap();
            assert_eq!(boxes.tiles(), TILES as u64);
            assert!(memory_of_boxes(&boxes) < 64 << 10, "{}", memory_of_boxes(&boxes));
            let opened = storage.take_requests().len();
            assert!(opened <= 4, "{opened} requests");
            // A point query needs only the pages of its path.
            for tile in [12_345, 0, TILES - 1] {
                let wanted = Range { low: Scalar::Signed(3 * tile + 1), high: Scalar::Signed(3 * tile + 1) };
                let (mut found, mut visited) = (Vec::new(), 0);
                let decide = |ranges: &[Range]| {
                    visited += 1;
                    Ok(if ranges[1].overlaps(&wanted) { Descent::Enter } else { Descent::Skip })
                };
                boxes.descend(decide, |tiles| found.extend(tiles)).unwrap();
                assert_eq!(found, [tile as u64]);
                assert!(visited <= 1 + 5 * 10, "{visited} boxes");
                let requests = storage.take_requests().len();
                assert!(requests <= if keeps { 0 } else { 5 }, "{requests} requests for tile {tile}");
            }
            // A pass requests each page only once, however small the cache is.
            let (mut cursor, mut ranges) = (boxes.boxes(), Vec::new());
            for tile in 0..TILES {
                cursor.read(tile as u64, &mut ranges).unwrap();
                assert_eq!(ranges[0], Range { low: Scalar::Signed(3 * tile), high: Scalar::Signed(3 * tile + 2) });
            }
            let requests = storage.take_requests().len();
            assert!(requests <= if keeps { 0 } else { pages }, "{requests} requests for {pages} pages");
        }
    }
}
