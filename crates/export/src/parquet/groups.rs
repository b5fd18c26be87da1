//! Divides the rows of a table into row groups.

use std::ops::Range;

use tilefs_reader::array::sparse::SparseView;

/// Target size of a row group in bytes.
const GROUP_BYTES: u64 = 32 << 20;

/// Usual maximum number of rows: readers decide for each row group whether they need it.
const MAX_ROWS: u64 = 1 << 17;

/// Minimum target number of rows, however long rows are.
const MIN_ROWS: u64 = 1 << 10;

/// Target maximum of chunks (columns times row groups): the footer lists all of them, and should stay short ...
const MAX_CHUNKS: u64 = 1 << 16;

/// ... and of row groups, which some readers count in 16 bits.
const MAX_GROUPS: u64 = 1 << 14;

/// The starts of tiles among the rows of a table.
pub trait TileRows: Send + Sync {
    /// Returns the last of these rows that is the first of a tile, or lies where tiles interleave anyway; `None` if
    /// there is none, or none is known.
    fn last_start(&self, rows: Range<u64>) -> Option<u64>;
}

impl TileRows for SparseView {
    fn last_start(&self, rows: Range<u64>) -> Option<u64> {
        // Reading the rows will report the error.
        self.last_tile_start(rows).ok().flatten()
    }
}

/// Consecutive rows divided into groups.
#[derive(Debug)]
pub struct RowGroups {
    /// The first row of each group, and the end of the last.
    starts: Vec<u64>,
}

/// Returns the number of rows a group should have, for a table of `columns` columns, `row_length` bytes per row and
/// `dictionaries` bytes of labels.
pub fn rows_of_group(rows: u64, columns: u64, row_length: u64, dictionaries: u64) -> u64 {
    // Each group repeats the dictionaries.
    let bytes = GROUP_BYTES.max(dictionaries.saturating_mul(8));
    let of_size = (bytes / row_length.max(1)).clamp(MIN_ROWS, MAX_ROWS);
    let of_dictionary = dictionaries / row_length.max(1);
    let most_groups = (MAX_CHUNKS / columns.max(1)).clamp(1, MAX_GROUPS);
    of_size.max(of_dictionary).max(rows / most_groups).next_multiple_of(8)
}

impl RowGroups {
    /// Creates groups of about `rows_of_group` rows. If the tiles are known, groups begin with tiles, unless these are
    /// much longer.
    pub fn new(rows: u64, rows_of_group: u64, tiles: Option<&dyn TileRows>) -> Self {
        let (wanted, half) = (rows_of_group.max(1), rows_of_group / 2);
        let mut starts = vec![0];
        let mut start = 0;
        while rows - start > wanted + half {
            let ideal = start + wanted;
            let near = start + half.max(1)..ideal + half + 1;
            let found =
                tiles.and_then(|tiles| tiles.last_start(near.start..ideal + 1).or_else(|| tiles.last_start(near)));
            start = found.unwrap_or(ideal);
            starts.push(start);
        }
        if rows > 0 {
            starts.push(rows);
        }
        RowGroups { starts }
    }

    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the rows of a group.
    pub fn rows(&self, group: usize) -> Range<u64> {
        self.starts[group]..self.starts[group + 1]
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.starts.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// Returns the number of rows of all groups.
    pub fn total(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Every(u64);

    impl TileRows for Every {
        fn last_start(&self, rows: Range<u64>) -> Option<u64> {
            let last = (rows.end - 1) / self.0 * self.0;
            rows.contains(&last).then_some(last)
        }
    }

    fn starts(rows: u64, of_group: u64, tile: Option<u64>) -> Vec<u64> {
        let tiles = tile.map(Every);
        RowGroups::new(rows, of_group, tiles.as_ref().map(|tiles| tiles as &dyn TileRows)).starts
    }

    #[test]
    fn groups_begin_with_tiles() {
        assert_eq!(starts(0, 100, None), [0]);
        assert_eq!(starts(1, 100, None), [0, 1]);
        assert_eq!(starts(350, 100, None), [0, 100, 200, 350]);
        assert_eq!(starts(350, 100, Some(30)), [0, 90, 180, 270, 350]);
        assert_eq!(starts(350, 100, Some(70)), [0, 70, 140, 210, 350]);
        assert_eq!(starts(500, 100, Some(120)), [0, 120, 240, 360, 500]);
        // Longer tiles are split.
        assert_eq!(starts(700, 100, Some(400)), [0, 100, 200, 300, 400, 500, 600, 700]);
    }

    #[test]
    fn groups_are_neither_too_many_nor_too_large() {
        assert_eq!(rows_of_group(1 << 40, 1, 8, 0), 1 << 26);
        assert_eq!(rows_of_group(1 << 20, 3, 24, 0), MAX_ROWS);
        assert_eq!(rows_of_group(1 << 20, 3, 1 << 12, 0), 1 << 13);
        assert_eq!(rows_of_group(1 << 20, 1, u64::MAX, 0), MIN_ROWS);
        // A dictionary must not dominate its group.
        assert!(rows_of_group(1 << 40, 1, 1, 64 << 20) >= 64 << 20);
        assert_eq!(rows_of_group(1 << 20, u64::MAX, 8, 0), 1 << 20);
    }
}
