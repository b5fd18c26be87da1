//! Divides the rows of a view into parts that can be read without finding the rows of other parts.

use std::ops::Range;
use std::sync::Arc;

use super::row_map::{LazySegment, RowMap};
use super::segments::{RowSegment, SCATTERED_ROWS};
use crate::array::sparse::select::cells::FragmentCells;

/// A part of a `RowMap`: whole segments, or pieces of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPart {
    /// The most rows that the parts before can have.
    pub before: u64,
    /// The most rows that this part can have.
    pub most_rows: u64,
    pieces: Vec<PieceOfPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PieceOfPart {
    /// A segment by its number.
    Whole(usize),
    /// Consecutive rows of a segment.
    Rows { segment: usize, rows: Range<u64> },
}

impl MapPart {
    fn add(&mut self, piece: PieceOfPart, rows: u64) {
        self.most_rows = self.most_rows.saturating_add(rows);
        self.pieces.push(piece);
    }
}

/// Cuts a map into parts of at most `most` rows. Cell slabs are cut between tiles; a tile with more rows is a part of
/// its own. Reads nothing.
pub fn cut(map: &RowMap, cells: &[FragmentCells], most: u64) -> Vec<MapPart> {
    let mut parts: Vec<MapPart> = Vec::new();
    for (number, segment) in map.segments().iter().enumerate() {
        let all = segment.most_rows();
        let mut row = 0;
        while row < all {
            let (room, is_empty) =
                parts.last().map_or((0, false), |part| (most.saturating_sub(part.most_rows), part.pieces.is_empty()));
            let end = row + rows_that_fit(segment, cells, row, room).min(all - row);
            let end = if end == row && is_empty { row + first_rows(segment, cells, row).min(all - row) } else { end };
            if end == row {
                let before = parts.last().map_or(0, |part| part.before.saturating_add(part.most_rows));
                parts.push(MapPart { before, most_rows: 0, pieces: Vec::new() });
                continue;
            }
            let piece = match row == 0 && end == all {
                true => PieceOfPart::Whole(number),
                false => PieceOfPart::Rows { segment: number, rows: row..end },
            };
            if let Some(part) = parts.last_mut() {
                part.add(piece, end - row);
            }
            row = end;
        }
    }
    parts
}

/// Returns the map of a part's rows.
pub fn part_of(map: &RowMap, part: &MapPart) -> RowMap {
    let segments = part.pieces.iter().filter_map(|piece| match piece {
        PieceOfPart::Whole(number) => map.segments().get(*number).cloned(),
        PieceOfPart::Rows { segment, rows } => {
            let piece = match &**map.segments().get(*segment)? {
                LazySegment::Made(RowSegment::CellSlab { fragment, position, .. }) => {
                    let (position, rows) = (position + rows.start, rows.end - rows.start);
                    RowSegment::CellSlab { fragment: *fragment, position, rows }
                }
                LazySegment::Made(RowSegment::Scattered(list)) => {
                    RowSegment::Scattered(list.part(rows.start / SCATTERED_ROWS, rows.end - rows.start))
                }
                // Such a segment is never cut.
                LazySegment::Made(RowSegment::Interleaved(_)) | LazySegment::ToMake { .. } => return None,
            };
            Some(Arc::new(LazySegment::Made(piece)))
        }
    });
    RowMap::of(segments.collect(), map.store().clone())
}

/// Returns how many rows of a segment, from `row` on, fit into `room` rows. The segment can be cut before and after
/// them.
fn rows_that_fit(segment: &LazySegment, cells: &[FragmentCells], row: u64, room: u64) -> u64 {
    let left = segment.most_rows() - row;
    match segment {
        _ if left <= room => left,
        LazySegment::Made(RowSegment::CellSlab { fragment, position, .. }) => {
            let Some(cells) = cells.get(*fragment as usize) else { return 0 };
            let at = position + row;
            cells.positions_of(cells.place_of(at.saturating_add(room))).start.saturating_sub(at)
        }
        LazySegment::Made(RowSegment::Scattered(_)) => room / SCATTERED_ROWS * SCATTERED_ROWS,
        LazySegment::Made(RowSegment::Interleaved(_)) | LazySegment::ToMake { .. } => 0,
    }
}

/// Returns the fewest rows of a segment, from `row` on, that can be cut off as a piece.
fn first_rows(segment: &LazySegment, cells: &[FragmentCells], row: u64) -> u64 {
    match segment {
        LazySegment::Made(RowSegment::CellSlab { fragment, position, .. }) => {
            let at = position + row;
            cells.get(*fragment as usize).map_or(u64::MAX, |cells| cells.positions_of(cells.place_of(at)).end - at)
        }
        LazySegment::Made(RowSegment::Scattered(_)) => SCATTERED_ROWS,
        LazySegment::Made(RowSegment::Interleaved(_)) | LazySegment::ToMake { .. } => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tilefs_base::error::{Error, Result};

    use super::super::row_map::SegmentSource;
    use super::super::segments::VisitedRows;
    use super::super::store::SpillStore;
    use super::*;

    /// Segments whose number of rows is unknown until they are made: the first few cells of a fragment.
    struct Unknown(Vec<(u64, u64)>);

    impl SegmentSource for Unknown {
        fn most_rows(&self, number: usize) -> u64 {
            self.0[number].1
        }

        fn known_rows(&self, _: usize) -> Option<u64> {
            None
        }

        fn count_rows(&self, _: usize) -> Result<Option<u64>> {
            Ok(None)
        }

        fn make(&self, number: usize) -> Result<RowSegment> {
            Ok(RowSegment::CellSlab { fragment: 9, position: 1000 * number as u64, rows: self.0[number].0 })
        }

        fn locate(&self, error: Error) -> Error {
            error
        }
    }

    fn rows(map: &RowMap) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        map.for_each(0, map.count().unwrap(), |rows| {
            if let VisitedRows::CellSlab { fragment, position, rows } = rows {
                all.extend((position..position + rows).map(|position| (fragment, position)));
            }
            Ok(())
        })
        .unwrap();
        all
    }

    proptest! {
        #[test]
        fn parts_are_the_rows_one_after_the_other(
            segments in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..40, 1u64..9), 0..12),
            most in 1u64..50,
        ) {
            let mut cells = Vec::new();
            let unknown = segments.iter().filter(|one| !one.0).map(|one| (one.1.min(one.2), one.2)).collect();
            let source = Arc::new(Unknown(unknown));
            let (mut of_source, mut lazy) = (0, Vec::new());
            for (is_slab, count, _, capacity) in &segments {
                if *is_slab {
                    let tiles = count.div_ceil(*capacity);
                    let last = count - tiles.saturating_sub(1) * capacity;
                    let fragment = cells.len() as u32;
                    cells.push(FragmentCells::new(tiles, *capacity, if tiles > 0 { last } else { 1 }).unwrap());
                    lazy.push(LazySegment::Made(RowSegment::CellSlab { fragment, position: 0, rows: *count }));
                } else {
                    lazy.push(LazySegment::new(source.clone(), of_source));
                    of_source += 1;
                }
            }
            let map = RowMap::of(lazy.into_iter().map(Arc::new).collect(), Arc::new(SpillStore::new(0)));
            let parts = cut(&map, &cells, most);
            let mut all = Vec::new();
            let mut before = 0;
            for part in &parts {
                let own = part_of(&map, part);
                prop_assert!(part.most_rows <= most || part.pieces.len() == 1);
                prop_assert!(own.count().unwrap() <= part.most_rows && part.most_rows > 0);
                prop_assert_eq!(part.before, before);
                before += part.most_rows;
                all.extend(rows(&own));
                // A slab begins and ends at the boundaries of tiles.
                for segment in own.segments() {
                    if let LazySegment::Made(RowSegment::CellSlab { fragment, position, rows }) = &**segment {
                        let cells = &cells[*fragment as usize];
                        let end = position + rows;
                        prop_assert_eq!(cells.positions_of(cells.place_of(*position)).start, *position);
                        prop_assert!(end == cells.count() || cells.positions_of(cells.place_of(end)).start == end);
                    }
                }
            }
            prop_assert_eq!(all, rows(&map));
        }
    }
}
