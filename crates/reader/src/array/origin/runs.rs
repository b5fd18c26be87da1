//! Consecutive cells of a file that come from consecutive cells of one tile, or are fill values.

use super::place::CellPlace;

/// Consecutive cells, which end at a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRun {
    /// The number of the first cell in the file.
    pub first: u64,
    /// The number of cells.
    pub count: u64,
    /// The first of them in its fragment; `None` for fill values.
    pub place: Option<CellPlace>,
}

/// Collects runs, and joins those that continue each other.
pub(super) struct RunList {
    found: Vec<CellRun>,
    most: usize,
}

impl RunList {
    /// Creates a list of at most `most` runs.
    pub fn new(most: usize) -> Self {
        RunList { found: Vec::new(), most }
    }

    /// Adds a run. Returns `false` if the list is full.
    pub fn add(&mut self, run: CellRun) -> bool {
        if let Some(last) = self.found.last_mut()
            && continues(last, &run)
        {
            last.count += run.count;
            return true;
        }
        let has_room = self.found.len() < self.most;
        if has_room {
            self.found.push(run);
        }
        has_room
    }

    /// Returns the runs in their order.
    pub fn finish(self) -> Vec<CellRun> {
        self.found
    }
}

fn continues(last: &CellRun, next: &CellRun) -> bool {
    let follows = match (&last.place, &next.place) {
        (None, None) => true,
        (Some(last_place), Some(place)) => {
            (last_place.fragment, last_place.tile) == (place.fragment, place.tile)
                && last_place.cell.checked_add(last.count) == Some(place.cell)
        }
        _ => false,
    };
    follows && last.first.checked_add(last.count) == Some(next.first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, count: u64, tile: u64, cell: u64) -> CellRun {
        CellRun { first, count, place: Some(CellPlace { fragment: 0, tile, in_tile: 9, cell, time: None }) }
    }

    #[test]
    fn runs_that_continue_each_other_are_one() {
        let mut runs = RunList::new(2);
        let added = [run(0, 2, 0, 3), run(2, 1, 0, 5), run(3, 1, 1, 6), run(4, 1, 1, 8)].map(|one| runs.add(one));
        assert_eq!(added, [true, true, true, false]);
        assert_eq!(runs.finish(), [run(0, 3, 0, 3), run(3, 1, 1, 6)]);
    }
}
