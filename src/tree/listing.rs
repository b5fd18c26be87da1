//! Which files `ls` shows: `ls -l` asks for the size of each, and some sizes take a pass over all cells.

use std::fmt;
use std::sync::Arc;

/// More rows than this are not gone through because somebody lists a folder.
const MOST_LISTED: u64 = 1 << 24;

/// The metadata of more fragments than this are not read because somebody lists a folder.
const MOST_OPENED: usize = 128;

/// Whether `ls` shows a file. Those that it does not show are found by their names.
#[derive(Clone)]
pub enum Listing {
    Always,
    Never,
    /// Where this holds at the time of listing.
    If(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl Listing {
    pub fn is_listed(&self) -> bool {
        match self {
            Listing::Always => true,
            Listing::Never => false,
            Listing::If(holds) => holds(),
        }
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Listing::Always => "Always",
            Listing::Never => "Never",
            Listing::If(_) => "If",
        })
    }
}

/// What the size of a file depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizing {
    /// The number of rows alone, and on what the schema tells.
    Count,
    /// The number of rows, and the sizes of tiles, which the metadata of each of so many fragments tell.
    Tiles { fragments: usize },
    /// The value of every cell.
    Cells,
}

impl Sizing {
    /// Whether a file is listed of which this is known: as many rows as there can be, and whether there are so many.
    pub fn is_listed(self, most_rows: u64, is_exact: bool) -> bool {
        most_rows <= MOST_LISTED
            || match self {
                Sizing::Count => is_exact,
                Sizing::Tiles { fragments } => is_exact && fragments <= MOST_OPENED,
                Sizing::Cells => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_take_a_long_pass_are_not_listed() {
        for (sizing, rows, is_exact, is_listed) in [
            (Sizing::Cells, MOST_LISTED, false, true),
            (Sizing::Cells, MOST_LISTED + 1, true, false),
            (Sizing::Count, MOST_LISTED + 1, true, true),
            (Sizing::Count, MOST_LISTED + 1, false, false),
            (Sizing::Count, MOST_LISTED, false, true),
            (Sizing::Tiles { fragments: MOST_OPENED + 1 }, MOST_LISTED, true, true),
            (Sizing::Tiles { fragments: MOST_OPENED }, MOST_LISTED + 1, true, true),
            (Sizing::Tiles { fragments: MOST_OPENED }, MOST_LISTED + 1, false, false),
            (Sizing::Tiles { fragments: MOST_OPENED + 1 }, MOST_LISTED + 1, true, false),
        ] {
            assert_eq!(sizing.is_listed(rows, is_exact), is_listed, "{sizing:?} {rows} {is_exact}");
        }
    }
}
