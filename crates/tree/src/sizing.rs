//! Which files are listed by what their sizes depend on: some take a pass over all cells.

/// Maximum number of rows that listing a folder may scan.
const MAX_LISTED: u64 = 1 << 24;

/// Maximum number of fragments whose metadata listing a folder may read.
const MAX_OPENED: usize = 128;

/// The data on which the size of a file depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizing {
    /// Only the number of rows, and the schema.
    Count,
    /// The number of rows, and the sizes of tiles, which are in the metadata of each fragment.
    Tiles { fragments: usize },
    /// The value of every cell.
    Cells,
}

impl Sizing {
    /// Returns whether a file is listed; `most_rows` is the maximum number of rows, and `is_exact` says whether it is
    /// the exact number.
    pub fn is_listed(self, most_rows: u64, is_exact: bool) -> bool {
        most_rows <= MAX_LISTED
            || match self {
                Sizing::Count => is_exact,
                Sizing::Tiles { fragments } => is_exact && fragments <= MAX_OPENED,
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
            (Sizing::Cells, MAX_LISTED, false, true),
            (Sizing::Cells, MAX_LISTED + 1, true, false),
            (Sizing::Count, MAX_LISTED + 1, true, true),
            (Sizing::Count, MAX_LISTED + 1, false, false),
            (Sizing::Count, MAX_LISTED, false, true),
            (Sizing::Tiles { fragments: MAX_OPENED + 1 }, MAX_LISTED, true, true),
            (Sizing::Tiles { fragments: MAX_OPENED }, MAX_LISTED + 1, true, true),
            (Sizing::Tiles { fragments: MAX_OPENED }, MAX_LISTED + 1, false, false),
            (Sizing::Tiles { fragments: MAX_OPENED + 1 }, MAX_LISTED + 1, true, false),
        ] {
            assert_eq!(sizing.is_listed(rows, is_exact), is_listed, "{sizing:?} {rows} {is_exact}");
        }
    }
}
