//! One number per tile of a file: its offset or its size. Long lists are read page by page.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::sections;

use super::generic_tile::{GenericTile, StoredList};

/// Bytes of a number, and of the count before the numbers.
const NUMBER: u64 = 8;

/// One number per tile. Memory: 8 bytes per tile in short lists; 32 bytes per 8192 tiles in long lists, whose pages the
/// cache keeps or evicts individually.
pub enum TileNumbers {
    /// All numbers of a short list.
    Listed(Arc<[u64]>),
    /// A long list, which is read page by page.
    Paged {
        /// The section with the list.
        pages: Box<GenericTile>,
        /// How many numbers it has.
        count: u64,
    },
}

impl TileNumbers {
    /// Reads a section with one number for each of `tiles` tiles. From a long section, reads only the count.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the count is not the number of tiles, or if the numbers do not fill the section exactly.
    pub fn read(section: StoredList<'_>, tiles: u64) -> Result<Self> {
        let tile = match section {
            StoredList::Whole(payload) => {
                let list = sections::parse_u64_list(&payload)?;
                check_count(list.len() as u64, tiles)?;
                return Ok(TileNumbers::Listed(list.into()));
            }
            StoredList::Long(tile) => tile,
        };
        let pages = Box::new(tile.index()?);
        let mut count = [0; NUMBER as usize];
        pages.read_at(0, &mut count)?;
        let count = u64::from_le_bytes(count);
        check_count(count, tiles)?;
        if count.checked_add(1).and_then(|numbers| numbers.checked_mul(NUMBER)) != Some(pages.size()) {
            let reason = format!("{count} numbers in {} bytes", pages.size());
            return Err(Error::damaged(reason).in_field("list"));
        }
        Ok(TileNumbers::Paged { pages, count })
    }

    /// Returns the count of numbers.
    pub fn count(&self) -> u64 {
        match self {
            TileNumbers::Listed(list) => list.len() as u64,
            TileNumbers::Paged { count, .. } => *count,
        }
    }

    /// Returns the number of a tile; `None` if there is no such tile.
    ///
    /// # Errors
    /// Any damage in the page that contains it.
    pub fn get(&self, tile: u64) -> Result<Option<u64>> {
        match self {
            TileNumbers::Listed(list) => Ok(usize::try_from(tile).ok().and_then(|tile| list.get(tile).copied())),
            TileNumbers::Paged { count, .. } if tile >= *count => Ok(None),
            TileNumbers::Paged { pages, .. } => {
                let mut number = [0; NUMBER as usize];
                pages.read_at((tile + 1) * NUMBER, &mut number)?;
                Ok(Some(u64::from_le_bytes(number)))
            }
        }
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        match self {
            TileNumbers::Listed(list) => size_of_val::<[u64]>(list),
            TileNumbers::Paged { pages, .. } => pages.memory(),
        }
    }
}

impl From<Vec<u64>> for TileNumbers {
    fn from(list: Vec<u64>) -> Self {
        TileNumbers::Listed(list.into())
    }
}

fn check_count(count: u64, tiles: u64) -> Result<()> {
    if count == tiles {
        return Ok(());
    }
    Err(Error::damaged(format!("{count} entries for {tiles} tiles")).in_field("number of tiles"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::generic_tile::{open_section, tests::stored};
    use super::*;
    use crate::array::Context;
    use tilefs_storage::{MemoryStorage, SimulatedStorage, StoreKey};

    #[test]
    fn long_lists_are_read_page_by_page_and_no_page_twice() {
        let (memory, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/list"));
        let list: Vec<u64> = (0..60_000).map(|tile| tile * 977 + tile % 7).collect();
        let numbers = [list.len() as u64].into_iter().chain(list.iter().copied());
        let payload: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        memory.put(key.clone(), stored(payload.chunks(65536)));
        let storage = Arc::new(SimulatedStorage::new(Arc::new(memory), Duration::ZERO));
        let context = Arc::new(Context::new(storage.clone(), 1 << 20, 1, None));
        let open = |tiles| open_section(&context, &key, 0, 0).and_then(|section| TileNumbers::read(section, tiles));
        assert!(open(59_999).is_err() && open(60_001).is_err());
        storage.take_requests();
        let read = open(60_000).unwrap();
        assert!(storage.take_requests().len() <= 4);
        assert!(read.memory() < 64 << 10, "{}", read.memory());
        for (tile, number) in (0..).zip(&list) {
            assert_eq!(read.get(tile).unwrap(), Some(*number));
        }
        assert_eq!(read.get(60_000).unwrap(), None);
        let requests = storage.take_requests().len();
        assert!(requests <= payload.len().div_ceil(65536), "{requests} requests");
        for _ in 0..1000 {
            read.get(59_000).unwrap();
        }
        assert_eq!(storage.take_requests().len(), 0);
    }

    #[test]
    fn a_list_must_fill_its_section() {
        let (memory, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/list"));
        for (more, is_right) in [(0, true), (8, false)] {
            let mut payload = 40_000u64.to_le_bytes().to_vec();
            payload.resize(8 + 8 * 40_000 + more, 1);
            memory.put(key.clone(), stored(payload.chunks(65536)));
            let context = Arc::new(Context::new(Arc::new(memory.clone()), 1 << 20, 1, None));
            let section = open_section(&context, &key, 0, 1 << 20).unwrap();
            assert_eq!(TileNumbers::read(section, 40_000).is_ok(), is_right);
        }
    }
}
