//! Lists with one number per tile in which release 2.2 left entries without tiles.

use std::ops::RangeInclusive;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::{FRAGMENT_METADATA, FragmentFacts, sections};

use super::folder::ArrayFolder;
use super::fragment::list_bytes;
use super::metadata_tiles::tile_numbers::TileNumbers;

/// The format versions of release 2.2, which left such entries in dense fragments with nullable attributes.
const SPACED: RangeInclusive<u32> = 7..=8;

/// Entries per tile in such a list, at most.
const ENTRIES_PER_TILE: u64 = 2;

impl ArrayFolder {
    /// Reads the section of a fragment's metadata at `list`, with one number for each of `tiles` tiles. If the list may
    /// have entries without tiles, the list of tile offsets at `offsets` shows which: it has them at the same places.
    ///
    /// # Errors
    /// Any damage in the section, or a number of entries with tiles other than `tiles`.
    pub(super) fn numbers_of_tiles(
        &self,
        fragment: usize,
        facts: &FragmentFacts,
        list: u64,
        offsets: u64,
        tiles: u64,
    ) -> Result<TileNumbers> {
        match self.numbers(fragment, list, tiles) {
            Err(Error::Damaged { .. }) if facts.dense && SPACED.contains(&facts.version) => {}
            read => return read,
        }
        let all_of = |section: u64| {
            let payload = self.section(fragment, section, list_bytes(tiles.saturating_mul(ENTRIES_PER_TILE)))?;
            sections::parse_u64_list(&payload).map_err(|error| self.in_section(error, fragment, section))
        };
        let (numbers, offsets_of_tiles) = (all_of(list)?, all_of(offsets)?);
        let entries = sections::entries_of_tiles(&offsets_of_tiles, tiles)
            .map_err(|error| self.in_section(error, fragment, offsets))?;
        let of_tiles = entries.iter().map(|&entry| numbers.get(entry).copied());
        let of_tiles = of_tiles.collect::<Option<Vec<u64>>>().filter(|_| numbers.len() == offsets_of_tiles.len());
        let reason = || format!("{} entries beside {} offsets", numbers.len(), offsets_of_tiles.len());
        let of_tiles = of_tiles.ok_or_else(|| self.in_section(Error::damaged(reason()), fragment, list))?;
        Ok(of_tiles.into())
    }

    /// Adds the place of a section to an error.
    fn in_section(&self, error: Error, fragment: usize, section: u64) -> Error {
        let name = self.fragment(fragment).map_or("", |entry| entry.name());
        error.in_file(FRAGMENT_METADATA).at(section).in_fragment(name).in_array(self.path())
    }
}
