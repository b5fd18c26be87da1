//! The files of a variable-size column in all fragments: the sizes of rows' values, and copies of the values.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_storage::together;

use super::gather::{DROPPED, GatherList};
use crate::array::FieldId;
use crate::array::sparse::select::cells::FragmentCells;
use crate::array::sparse::select::files::{VarFile, string_tiles};
use crate::array::sparse::select::query::Query;
use crate::array::tiles::open_files::OpenFiles;
use crate::array::tiles::unit::{TileUnit, drop_untouched};
use crate::array::tiles::value_plan::{ValueCopy, ValuePlan, repeat};
use crate::read::{Batches, Decoding, Fetcher};

/// The place of a row's value in the values of its tile, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValuePlace {
    pub start: u64,
    pub length: u64,
}

/// Copies of values of several fragments.
#[derive(Default)]
pub struct Copies {
    stored: ValuePlan,
    /// Those from fragments that lack the field, each with its fragment.
    fill: Vec<(u32, ValueCopy)>,
}

/// The files of a column, opened on first use.
pub struct VarFiles<'a> {
    query: &'a Query,
    field: FieldId,
    open: &'a OpenFiles<Arc<VarFile>>,
}

impl<'a> VarFiles<'a> {
    pub fn new(query: &'a Query, field: FieldId, open: &'a OpenFiles<Arc<VarFile>>) -> Self {
        VarFiles { query, field, open }
    }

    /// Returns the cells that the positions in a fragment number.
    pub fn cells(&self, fragment: u32) -> &'a FragmentCells {
        &self.query.cells[fragment as usize]
    }

    /// # Errors
    /// Any damage in the metadata of the files.
    pub fn get(&self, fragment: u32) -> Result<Arc<VarFile>> {
        let number = fragment as usize;
        self.place(fragment, self.open.get_or_open(number, || self.open_one(number)))
    }

    /// Opens the files of gathered rows; concurrently if each request is a round trip.
    pub fn open_ahead(&self, gathered: &GatherList) {
        let array = &self.query.array;
        let fragments = gathered.slabs.iter().map(|slab| slab.fragment as usize);
        self.open.open_ahead(&*array.context().storage, array.path(), fragments, |number| self.open_one(number));
    }

    fn open_one(&self, fragment: usize) -> Result<Arc<VarFile>> {
        let array = &*self.query.array;
        let file = match self.field {
            FieldId::Dimension(dimension) => string_tiles(array, fragment, dimension).map(VarFile::Stored),
            FieldId::Attribute(attribute) => VarFile::of_attribute(array, fragment, attribute),
        };
        file.map(Arc::new)
    }

    /// Returns the bytes of the values of all cells, according to the metadata of tiles.
    ///
    /// # Errors
    /// Any damage in these metadata.
    pub fn byte_count(&self) -> Result<u64> {
        let array = &self.query.array;
        let fragments: Vec<u32> = (0..self.query.cells.len() as u32).collect();
        let counted = together(&*array.context().storage, array.path(), fragments, |fragment| {
            let (cells, mut bytes) = (self.cells(fragment), 0u64);
            if cells.count() == 0 {
                return Ok(0);
            }
            let file = self.get(fragment)?;
            let read = cells.for_each_tile(0, cells.count(), |_, tile| {
                bytes = bytes.checked_add(file.tile_size(tile.tile, tile.in_tile)?).ok_or_else(too_long)?;
                Ok(())
            });
            self.place(fragment, read)?;
            Ok(bytes)
        });
        counted.into_iter().try_fold(0u64, |sum, bytes| sum.checked_add(bytes?).ok_or_else(too_long))
    }

    /// Adds the fragment and the array to an error.
    pub fn place<T>(&self, fragment: u32, result: Result<T>) -> Result<T> {
        let array = &self.query.array;
        result.in_fragment(array.fragment_name(fragment as usize)).in_array(array.path())
    }

    /// Reads the places of the values of gathered rows, one per row.
    ///
    /// # Errors
    /// Any damage in the offsets.
    pub fn values(&self, gathered: &GatherList, values: &mut [ValuePlace]) -> Result<()> {
        let (mut units, mut pieces, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        self.query.for_each_tile(gathered.slabs.iter().copied(), |fragment, own| {
            tiles.push((fragment, own.len(), self.get(fragment)?.plan_offsets(own, &mut units)?));
            pieces.extend_from_slice(own);
            Ok(())
        })?;
        let (mut batches, mut offsets) = (self.batches(&units), Vec::new());
        let (mut pieces, mut rows) = (pieces.iter(), gathered.rows.iter());
        for (fragment, count, mut reader) in tiles {
            let read = pieces.by_ref().take(count).try_for_each(|cells| {
                offsets.resize(cells.count as usize + 1, 0);
                reader.read(&mut batches, cells.first, &mut offsets)?;
                for (pair, row) in offsets.windows(2).zip(rows.by_ref()) {
                    if *row != DROPPED {
                        values[*row as usize] = ValuePlace { start: pair[0], length: pair[1] - pair[0] };
                    }
                }
                Ok(())
            });
            self.place(fragment, read)?;
        }
        Ok(())
    }

    /// Plans copies of the values of gathered rows into `length` bytes of memory, as far as they intersect it. `starts`
    /// has the first byte of each row's value relative to the beginning of the memory; it may be negative or past the
    /// end.
    ///
    /// # Errors
    /// If a tile does not have the bytes of its values; any damage in the index of its chunks.
    pub fn plan(&self, gathered: &GatherList, values: &[ValuePlace], starts: &[i128], length: usize) -> Result<Copies> {
        let (mut plan, mut copies) = (Copies::default(), Vec::new());
        let mut rest = gathered.rows.iter();
        self.query.for_each_tile(gathered.slabs.iter().copied(), |fragment, pieces| {
            let count: u64 = pieces.iter().map(|cells| cells.count).sum();
            copies.clear();
            for row in rest.by_ref().take(count as usize) {
                let row = *row as usize;
                let (Some(value), Some(start)) = (values.get(row), starts.get(row)) else { continue };
                let from = (*start).max(0);
                let to = (*start + i128::from(value.length)).min(length as i128);
                if from < to {
                    let (to, length) = (from as usize, (to - from) as usize);
                    copies.push(ValueCopy { from: value.start + (from - start) as u64, to, length });
                }
            }
            let copies = copies.drain(..);
            match (&*self.get(fragment)?, pieces.first()) {
                (VarFile::Stored(tiles), Some(first)) => {
                    plan.stored.add(fragment as usize, tiles, first.tile, first.in_tile, copies)?;
                }
                _ => plan.fill.extend(copies.map(|copy| (fragment, copy))),
            }
            Ok(())
        })?;
        Ok(plan)
    }

    /// Copies the values of a plan into `out`.
    ///
    /// # Errors
    /// Any damage in the values.
    pub fn copy(&self, plan: &Copies, out: &mut [u8]) -> Result<()> {
        for (fragment, ValueCopy { from, to, length }) in &plan.fill {
            let out = out.get_mut(*to..).and_then(|out| out.get_mut(..*length));
            let out = out.ok_or_else(|| Error::internal("a copy outside of the output"))?;
            if let VarFile::Fill(fill) = &*self.get(*fragment)? {
                repeat(fill, *from, out);
            }
        }
        self.read(&plan.stored, out)
    }

    /// Reads the values of a plan into `out`.
    ///
    /// # Errors
    /// Any damage in the values.
    pub fn read(&self, plan: &ValuePlan, out: &mut [u8]) -> Result<()> {
        plan.read(self.fetcher(), out, |fragment, result| self.place(fragment as u32, result))
    }

    /// Prepares reading units in order, on this thread.
    pub fn batches<'u>(&'u self, units: &'u [TileUnit]) -> Batches<'u, TileUnit> {
        Batches::new(self.fetcher(), units, Decoding::OnThisThread)
    }

    /// Returns what fetches the units.
    pub fn fetcher(&self) -> &Fetcher {
        &self.query.array.context().fetcher
    }

    /// Adds the units that hold the offsets of gathered rows, and the units of their values if `values` is set.
    ///
    /// # Errors
    /// Any damage in the data that locates the units.
    pub fn units(&self, gathered: &GatherList, values: bool, units: &mut Vec<TileUnit>) -> Result<()> {
        self.query.for_each_tile(gathered.slabs.iter().copied(), |fragment, pieces| {
            let (file, mut own) = (self.get(fragment)?, Vec::new());
            let mut reader = file.plan_offsets(pieces, &mut own)?;
            if let VarFile::Stored(tiles) = &*file
                && values
            {
                let (mut start, mut end, mut batches) = ([0], [0], self.batches(&own));
                let mut bytes: Vec<Range<u64>> = Vec::with_capacity(pieces.len());
                for cells in pieces {
                    reader.read(&mut batches, cells.first, &mut start)?;
                    reader.read(&mut batches, cells.first + cells.count, &mut end)?;
                    if start[0] < end[0] {
                        bytes.push(start[0]..end[0]);
                    }
                }
                let (tile, cells) = pieces.first().map_or((0, 0), |first| (first.tile, first.in_tile));
                if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
                    let before = units.len();
                    tiles.value_units(tile, cells, first.start..last.end, units)?;
                    drop_untouched(bytes.iter().cloned(), before, units);
                }
            }
            units.append(&mut own);
            Ok(())
        })
    }
}

/// Returns the error for values whose total size does not fit 64 bits.
pub fn too_long() -> Error {
    Error::damaged("values of more than 2^64 bytes")
}
