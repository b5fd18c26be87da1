//! The rows of a merge: the newest of the cells with the same coordinates, in whatever order they come.
//!
//! A fragment that holds cells of several times may store the cells of one coordinate in any order: libtiledb 2.11
//! wrote such fragments. If several cells of a coordinate have the same time, nothing shows which cell is the newest,
//! and the row is the cell that libtiledb reads: the first such cell in the last tile that has one. A fragment without
//! times was written at once, so if it has a coordinate twice, both cells are equally new, and both are rows.

use std::cmp::Ordering;
use std::ops::Range;

use tilefs_base::error::Error;

use super::tournament::{CellSink, CellStream, MergeInput, Merged};
use crate::array::sparse::rows::segments::InterleavedWriter;

/// Limit for the stretches of cells with the same coordinates in one fragment that may be rows. No sound fragment
/// reaches it.
const MOST_STRETCHES: usize = 1 << 16;

/// Reports each cell that is a row to an [`InterleavedWriter`], and before it the cells of its input that are dropped.
pub struct Newest<'a, 'b> {
    writer: &'a mut InterleavedWriter<'b>,
    /// For each input, the position of the first cell that has not been reported to the writer.
    next: Vec<u64>,
    /// The input, the age and the tile of the newest cells with the current coordinates.
    input: usize,
    age: (u64, usize),
    tile: u64,
    /// The positions of the newest cells that are shown: the first stretch, which is mostly one cell, and any other
    /// stretches.
    rows: Range<u64>,
    more: Vec<Range<u64>>,
}

impl<'a, 'b> Newest<'a, 'b> {
    /// Creates a sink for inputs that start at these positions.
    pub fn new(writer: &'a mut InterleavedWriter<'b>, starts: impl Iterator<Item = u64>) -> Self {
        Newest { writer, next: starts.collect(), input: 0, age: (0, 0), tile: 0, rows: 0..0, more: Vec::new() }
    }

    /// Reports the last rows. Cells after them are left out.
    pub fn finish(mut self) -> Merged<()> {
        self.tell()
    }

    /// Discards the rows that are not reported yet, because a newer cell has these coordinates.
    fn forget(&mut self) {
        self.rows = 0..0;
        self.more.clear();
    }

    #[inline]
    fn tell(&mut self) -> Merged<()> {
        let rows = std::mem::replace(&mut self.rows, 0..0);
        self.tell_of(rows)?;
        if self.more.is_empty() { Ok(()) } else { self.tell_of_more() }
    }

    #[cold]
    fn tell_of_more(&mut self) -> Merged<()> {
        std::mem::take(&mut self.more).into_iter().try_for_each(|rows| self.tell_of(rows))
    }

    #[inline]
    fn tell_of(&mut self, rows: Range<u64>) -> Merged<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for _ in self.next[self.input]..rows.start {
            self.writer.push(self.input, false)?;
        }
        for _ in rows.clone() {
            self.writer.push(self.input, true)?;
        }
        self.next[self.input] = rows.end;
        Ok(())
    }

    #[inline]
    fn add_row(&mut self, position: u64) -> Merged<()> {
        if self.rows.is_empty() {
            self.rows = position..position + 1;
            return Ok(());
        }
        let last = self.more.last_mut().unwrap_or(&mut self.rows);
        if last.end == position {
            last.end += 1;
            return Ok(());
        }
        if self.more.len() == MOST_STRETCHES {
            return Err(Error::unsupported("a fragment that repeats one coordinate very often").into());
        }
        self.more.push(position..position + 1);
        Ok(())
    }
}

impl CellSink for Newest<'_, '_> {
    #[inline]
    fn take<S: CellStream>(&mut self, number: usize, input: &MergeInput<S>, is_same: bool) -> Merged<()> {
        let age = input.age();
        let order = if is_same { age.cmp(&self.age) } else { Ordering::Greater };
        match order {
            Ordering::Less => return Ok(()),
            Ordering::Equal if !input.stream.has_versions() => {}
            Ordering::Equal if input.batch.tile <= self.tile => return Ok(()),
            Ordering::Equal => self.forget(),
            Ordering::Greater if is_same => self.forget(),
            Ordering::Greater => self.tell()?,
        }
        (self.input, self.age, self.tile) = (number, age, input.batch.tile);
        if input.is_shown() { self.add_row(input.position()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tilefs_format::schema::fixture;

    use super::super::tournament::merge;
    use super::*;
    use crate::array::order::key::{KeyOrder, KeyPlan};
    use crate::array::sparse::rows::row_map::RowMap;
    use crate::array::sparse::rows::segments::{RowSegment, VisitedRows};
    use crate::array::sparse::rows::store::SpillStore;
    use crate::array::sparse::select::stream::{CellBatch, StreamBuffers};

    /// The cells of one fragment: a coordinate, a time, and whether the cell is shown.
    type Cells = Vec<(u64, u64, bool)>;

    /// Returns them in batches of three, each a tile.
    struct Listed {
        cells: Cells,
        age: usize,
        has_versions: bool,
        next: usize,
    }

    impl CellStream for Listed {
        fn read(&mut self, batch: &mut CellBatch, _: &mut StreamBuffers) -> Merged<bool> {
            let cells = &self.cells[self.next..self.cells.len().min(self.next + 3)];
            batch.tile = (self.next / 3) as u64;
            batch.position = 100 + self.next as u64;
            batch.count = cells.len();
            batch.keys = cells.iter().map(|cell| cell.0).collect();
            batch.visibility.times =
                if self.has_versions { cells.iter().map(|cell| cell.1).collect() } else { Vec::new() };
            batch.visibility.shown = cells.iter().map(|cell| cell.2).collect();
            self.next += cells.len();
            Ok(!cells.is_empty())
        }

        fn time(&self) -> u64 {
            5
        }

        fn age(&self) -> usize {
            self.age
        }

        fn has_versions(&self) -> bool {
            self.has_versions
        }
    }

    fn plan() -> KeyPlan {
        let mut schema = fixture::sparse();
        schema.dimensions = vec![fixture::dimension("x", 0, 9, 10)];
        KeyPlan::new(&schema, KeyOrder::Global).unwrap()
    }

    /// Returns the (fragment, position) of each row.
    fn rows_of(fragments: &[(Cells, bool)]) -> Vec<(u32, u64)> {
        let store = std::sync::Arc::new(SpillStore::new(usize::MAX));
        let starts: Vec<(u32, u64)> = (0..fragments.len() as u32).map(|number| (number, 100)).collect();
        let mut writer = InterleavedWriter::new(&store, &starts);
        let mut newest = Newest::new(&mut writer, starts.iter().map(|start| start.1));
        let listed = |(age, (cells, has_versions)): (usize, &(Cells, bool))| Listed {
            cells: cells.clone(),
            age,
            has_versions: *has_versions,
            next: 0,
        };
        let streams = fragments.iter().enumerate().map(listed).collect();
        assert!(merge(&plan(), streams, &mut newest).and_then(|()| newest.finish()).is_ok());
        let map = RowMap::new(vec![RowSegment::Interleaved(writer.finish().unwrap())], store);
        let mut rows = Vec::new();
        map.for_each(0, map.count().unwrap(), |some| {
            let VisitedRows::Interleaved(interleaved) = some else { panic!("no merge") };
            let mut next: Vec<u64> = interleaved.parts.iter().map(|part| part.position).collect();
            for code in &interleaved.codes {
                let part = code.part();
                if code.is_row() {
                    rows.push((interleaved.parts[part].fragment, next[part]));
                }
                next[part] += 1;
            }
            Ok(())
        })
        .unwrap();
        rows
    }

    #[test]
    fn what_a_fragment_holds_twice_is_two_rows() {
        let twice = vec![(1, 5, true), (3, 5, true), (3, 5, true)];
        assert_eq!(rows_of(&[(twice.clone(), false)]), [(0, 100), (0, 101), (0, 102)]);
        assert_eq!(rows_of(&[(twice.clone(), true)]), [(0, 100), (0, 101)]);
        assert_eq!(rows_of(&[(twice, false), (vec![(3, 5, true)], false)]), [(0, 100), (1, 100)]);
        // Tiles have three cells.
        let often: Cells = (0..8).map(|_| (3, 5, true)).chain([(4, 5, true)]).collect();
        assert_eq!(rows_of(&[(often, true)]), [(0, 106), (0, 108)]);
        let other_times = [4, 7, 7, 6, 7, 7, 4].map(|time| (3, time, true)).to_vec();
        assert_eq!(rows_of(&[(other_times, true)]), [(0, 104)]);
    }

    #[test]
    fn any_number_of_fragments_is_merged() {
        // In each of these, the next one replaces one cell; the other cell is its own.
        let count = 70_000;
        let cells = |number: u64| (vec![(0, 5, true), (1 + number, 5, !number.is_multiple_of(5))], false);
        let fragments: Vec<(Cells, bool)> = (0..count).map(cells).collect();
        let own = (0..count).filter(|number| !number.is_multiple_of(5)).map(|number| (number as u32, 101));
        let expected: Vec<(u32, u64)> = [(count as u32 - 1, 100)].into_iter().chain(own).collect();
        assert!(rows_of(&fragments) == expected);
    }

    proptest! {
        #[test]
        fn the_newest_is_the_row_whatever_the_order(
            fragments in prop::collection::vec(
                (prop::collection::vec((0u64..5, 0u64..10, any::<bool>()), 0..12), any::<bool>()), 1..4),
        ) {
            let mut fragments = fragments;
            for (cells, _) in &mut fragments {
                // Stable: the times stay in no order.
                cells.sort_by_key(|cell| cell.0);
            }
            let mut expected = Vec::new();
            for coordinate in 0..5 {
                let mut found = Vec::new();
                for (age, (cells, has_versions)) in fragments.iter().enumerate() {
                    for (position, cell) in (100..).zip(cells).filter(|(_, cell)| cell.0 == coordinate) {
                        let time = if *has_versions { cell.1 } else { 5 };
                        found.push(((time, age), position, cell.2, *has_versions));
                    }
                }
                let Some(newest) = found.iter().map(|one| one.0).max() else { continue };
                let mut rows: Vec<_> = found.into_iter().filter(|one| one.0 == newest).collect();
                if rows[0].3 {
                    let tile = |position: u64| (position - 100) / 3;
                    let last = rows.iter().map(|one| tile(one.1)).max();
                    rows.retain(|one| Some(tile(one.1)) == last);
                    rows.truncate(1);
                }
                expected.extend(rows.iter().filter(|one| one.2).map(|one| (newest.1 as u32, one.1)));
            }
            prop_assert_eq!(rows_of(&fragments), expected);
        }
    }
}
