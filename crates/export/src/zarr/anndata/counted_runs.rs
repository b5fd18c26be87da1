//! The runs that a pass found as it counted the cells of each row. With them, nobody needs to decode the rows again.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilefs_base::error::Result;

/// Consecutive stored cells of one row.
#[derive(Debug, Clone, Copy)]
struct CountedRun {
    row: u32,
    cells: u32,
}

/// The runs of all cells, piece by piece. Memory: 8 bytes per run.
#[derive(Debug, Default)]
pub struct CountedRuns {
    pieces: Vec<RunsOfPiece>,
}

/// The runs of consecutive cells.
#[derive(Debug)]
pub struct RunsOfPiece {
    first: u64,
    runs: Vec<CountedRun>,
}

impl RunsOfPiece {
    /// Starts without a run, at a cell.
    pub fn new(first: u64) -> Self {
        RunsOfPiece { first, runs: Vec::new() }
    }

    /// Adds a run after the runs added before. Returns whether the run can be held: its row has to fit 32 bits.
    pub fn add(&mut self, row: u64, cells: u64) -> bool {
        let (Ok(row), Ok(cells)) = (u32::try_from(row), u32::try_from(cells)) else { return false };
        self.runs.push(CountedRun { row, cells });
        true
    }

    /// Takes the memory of these runs out of what is left. Returns whether that is enough; otherwise nothing is left.
    pub fn fits(&self, left: &AtomicUsize) -> bool {
        let needed = self.runs.len() * size_of::<CountedRun>();
        let take = |left: usize| Some(left.saturating_sub(needed));
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok_and(|before| before >= needed)
    }
}

impl CountedRuns {
    /// Joins the runs of all pieces, in order; `None` if those of a piece are missing.
    pub fn of_pieces(pieces: impl Iterator<Item = Option<RunsOfPiece>>) -> Option<Self> {
        let mut pieces: Vec<RunsOfPiece> = pieces.collect::<Option<_>>()?;
        pieces.iter_mut().for_each(|piece| piece.runs.shrink_to_fit());
        Some(CountedRuns { pieces })
    }

    /// Calls `visit` with the row and the cells of each run among some cells, in stored order.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn for_each(&self, wanted: &Range<u64>, mut visit: impl FnMut(u64, Range<u64>) -> Result<()>) -> Result<()> {
        let number = self.pieces.partition_point(|piece| piece.first <= wanted.start).saturating_sub(1);
        for piece in self.pieces.get(number..).unwrap_or_default() {
            let mut first = piece.first;
            for run in &piece.runs {
                if first >= wanted.end {
                    return Ok(());
                }
                let end = first + u64::from(run.cells);
                let own = first.max(wanted.start)..end.min(wanted.end);
                if !own.is_empty() {
                    visit(u64::from(run.row), own)?;
                }
                first = end;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_of_any_cells_are_found(
            pieces in prop::collection::vec(prop::collection::vec((0u64..9, 1u64..7), 1..8), 0..6),
            asked in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..10),
        ) {
            let rows: Vec<u64> = pieces.iter().flatten().flat_map(|&(row, count)| vec![row; count as usize]).collect();
            let mut first = 0;
            let made = pieces.iter().map(|runs| {
                let mut piece = RunsOfPiece::new(first);
                first += runs.iter().map(|run| run.1).sum::<u64>();
                runs.iter().all(|&(row, cells)| piece.add(row, cells)).then_some(piece)
            });
            let runs = CountedRuns::of_pieces(made).unwrap();
            for (a, b) in asked {
                let (a, b) = (a.index(rows.len() + 1), b.index(rows.len() + 1));
                let wanted = a.min(b) as u64..a.max(b) as u64;
                let (mut found, mut next) = (Vec::new(), wanted.start);
                runs.for_each(&wanted, |row, cells| {
                    assert_eq!(cells.start, next);
                    next = cells.end;
                    found.extend(cells.map(|_| row));
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(&found[..], &rows[wanted.start as usize..wanted.end as usize]);
            }
        }
    }

    #[test]
    fn runs_take_no_more_memory_than_allowed() {
        let piece = |count: u64| {
            let mut piece = RunsOfPiece::new(0);
            assert!((0..count).all(|row| piece.add(row, 1)));
            piece
        };
        let left = AtomicUsize::new(5 * size_of::<CountedRun>());
        assert!(piece(3).fits(&left) && piece(2).fits(&left) && !piece(1).fits(&left));
        let left = AtomicUsize::new(5 * size_of::<CountedRun>());
        assert!(!piece(6).fits(&left) && !piece(1).fits(&left), "pieces without a gap");
        assert!(!piece(0).add(1 << 32, 1));
        assert!(CountedRuns::of_pieces([Some(piece(1)), None].into_iter()).is_none());
    }
}
