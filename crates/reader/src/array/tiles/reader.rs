//! Copies from the tiles of a file with a plan.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};

use super::Tiles;
use super::strided::Strided;
use super::unit::TileUnit;
use crate::read::{Batches, Decoded, Decoding, UnitCopy};

impl Tiles {
    /// Copies decoded bytes of one tile from `start` to `out`. `size` is the decoded size of the whole tile.
    ///
    /// # Errors
    /// Any damage in the required chunks, and in no others.
    pub fn read(self: &Arc<Self>, tile: u64, size: u64, start: u64, out: &mut [u8]) -> Result<()> {
        let (context, mut units) = (self.file.context()?, Vec::new());
        self.units(tile, size, start..start.saturating_add(out.len() as u64), &mut units)?;
        let mut batches = Batches::new(&context.fetcher, &units, Decoding::OnThisThread);
        TileReader::new(0..units.len()).copy(&mut batches, start, out)
    }

    /// Returns a unit from the cache, and fetches it on a miss.
    ///
    /// # Errors
    /// Any damage in it.
    pub fn fetch(&self, unit: &TileUnit) -> Result<Arc<Decoded>> {
        self.file.context()?.fetcher.fetch_one(unit)
    }

    /// Decodes a whole tile.
    ///
    /// # Errors
    /// Any damage in it.
    pub fn check(self: &Arc<Self>, tile: u64, size: u64) -> Result<()> {
        let context = self.file.context()?;
        let mut units = Vec::new();
        self.units(tile, size, 0..size, &mut units)?;
        Batches::new(&context.fetcher, &units, Decoding::OnThisThread).fetch_all()
    }
}

/// Copies from the units of one tile, which are a range of a plan's units. Holds the most recent unit, from which a
/// copy needs no look-up.
#[derive(Debug, Clone)]
pub struct TileReader {
    /// A range of the plan's units.
    units: Range<usize>,
    held: Option<(Range<u64>, Arc<Decoded>)>,
}

impl TileReader {
    /// The units must be in the order of the tile.
    pub fn new(units: Range<usize>) -> Self {
        TileReader { units, held: None }
    }

    /// Copies decoded bytes from byte `start` of the tile.
    ///
    /// # Errors
    /// Any damage in the units that contain them.
    pub fn copy(&mut self, batches: &mut Batches<'_, TileUnit>, mut start: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if let Some((range, decoded)) = &self.held
                && range.contains(&start)
            {
                let within = (start - range.start) as usize;
                let length = ((range.end - start) as usize).min(out.len());
                let (now, later) = out.split_at_mut(length);
                now.copy_from_slice(decoded.bytes.get(within..within + length).ok_or_else(|| outside_of_units(start))?);
                start += length as u64;
                out = later;
            } else {
                self.held = Some(self.unit_of(batches, start)?);
            }
        }
        Ok(())
    }

    /// Copies `count` cells, the first at byte `start` of the tile, to positions `out_step` bytes apart.
    ///
    /// # Errors
    /// As [`TileReader::copy`].
    pub(crate) fn copy_strided(
        &mut self,
        batches: &mut Batches<'_, TileUnit>,
        mut start: u64,
        cells: Strided,
        mut count: usize,
        mut out: &mut [u8],
        out_step: usize,
    ) -> Result<()> {
        while count > 0 {
            let held = self.held.as_ref().filter(|(range, _)| range.contains(&start));
            let within = held.and_then(|(range, decoded)| decoded.bytes.get((start - range.start) as usize..));
            let mut copied = cells.cells_within(within.map_or(0, <[u8]>::len)).min(count);
            match within {
                Some(from) if copied > 0 => cells.copy(copied, from, out, out_step),
                // The next cell is in another unit, or across two.
                _ => {
                    copied = 1;
                    let first = out.get_mut(..cells.size).ok_or_else(|| outside_of_units(start))?;
                    self.copy(batches, start, first)?;
                }
            }
            start += (copied * cells.step) as u64;
            out = out.get_mut(copied * out_step..).unwrap_or_default();
            count -= copied;
        }
        Ok(())
    }

    /// Returns the unit that contains byte `start` of the tile, and the unit's range in the tile.
    #[cold]
    fn unit_of(&self, batches: &mut Batches<'_, TileUnit>, start: u64) -> Result<(Range<u64>, Arc<Decoded>)> {
        let own = batches.units().get(self.units.clone()).unwrap_or_default();
        let number = own.partition_point(|unit| unit.start <= start).saturating_sub(1);
        let range = own.get(number).map(TileUnit::range).filter(|range| range.contains(&start));
        let range = range.ok_or_else(|| outside_of_units(start))?;
        Ok((range, batches.get(self.units.start + number)?.clone()))
    }
}

/// Divides a copy of decoded bytes, from byte `start` of a tile on, into the parts of the units that hold them. The
/// units must be in the order of the tile.
///
/// # Errors
/// [`Error::Internal`] for bytes that are in none of the units.
pub(crate) fn add_pieces<'u, 'o>(
    units: &'u [TileUnit],
    mut start: u64,
    mut out: &'o mut [u8],
    pieces: &mut Vec<UnitCopy<'u, 'o, TileUnit>>,
) -> Result<()> {
    for unit in units {
        let range = unit.range();
        if out.is_empty() || range.end <= start {
            continue;
        }
        let within = start.checked_sub(range.start).ok_or_else(|| outside_of_units(start))?;
        let length = (range.end - start).min(out.len() as u64) as usize;
        let (now, later) = out.split_at_mut(length);
        pieces.push(UnitCopy { unit, start: within as usize, out: now });
        (start, out) = (start + length as u64, later);
    }
    if out.is_empty() { Ok(()) } else { Err(outside_of_units(start)) }
}

fn outside_of_units(start: u64) -> Error {
    Error::internal(format!("byte {start} of a tile is in none of its units"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tilefs_format::datatype::Datatype;
    use tilefs_format::filter::{Decoder, TileContext};
    use tilefs_format::pipeline::{Filter, Pipeline};

    use super::*;
    use crate::array::context::Context;
    use crate::array::tiles::tile_file::TileFile;
    use crate::read::Unit;
    use tilefs_storage::LocalStorage;

    /// Returns the only tile of a file that contains `stored`, followed by a hole up to `length`, with `recorded` bytes
    /// recorded.
    fn tiles(
        filters: Vec<Filter>,
        stored: &[u8],
        length: u64,
        recorded: u64,
    ) -> (tempfile::TempDir, Arc<Context>, Arc<Tiles>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a0.tdb");
        fs::write(&path, stored).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let storage = Arc::new(LocalStorage::new());
        let context = Arc::new(Context::new(storage, 64 << 20, 1, None));
        let of = TileContext {
            datatype: Datatype::UInt8,
            cell_size: 1,
            format_version: 22,
            writer_version: None,
            key: None,
        };
        let decoder = Decoder::new(&Pipeline { max_chunk_size: 65536, filters }, &of).unwrap();
        let file = context.fetcher.new_files(1);
        let file = TileFile::new(&context, file, path.into(), vec![0].into(), recorded).unwrap();
        let tiles = Tiles::new(&context, file, decoder, 1);
        (folder, context, Arc::new(tiles))
    }

    fn numbers<const COUNT: usize>(count: u64, heads: [u32; COUNT]) -> Vec<u8> {
        count.to_le_bytes().into_iter().chain(heads.iter().flat_map(|number| number.to_le_bytes())).collect()
    }

    fn damaged(stored: &[u8], length: u64, recorded: u64, size: u64) -> String {
        let (_folder, _context, tiles) = tiles(Vec::new(), stored, length, recorded);
        match tiles.read(0, size, 0, &mut [0; 1]) {
            Err(error @ Error::Damaged { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns a tile of chunks of `chunk` cells each, in runs of one cell if `in_runs`.
    fn stored_in_chunks(cells: &[u8], chunk: usize, in_runs: bool) -> Vec<u8> {
        let mut stored = (cells.len().div_ceil(chunk) as u64).to_le_bytes().to_vec();
        for cells in cells.chunks(chunk) {
            let size = cells.len() as u32;
            if in_runs {
                let heads = [size, 3 * size, 16, 0, 1, size, 3 * size];
                stored.extend(heads.iter().flat_map(|number| number.to_le_bytes()));
                stored.extend(cells.iter().flat_map(|cell| [*cell, 0, 1]));
            } else {
                stored.extend([size, size, 0].iter().flat_map(|number| number.to_le_bytes()));
                stored.extend(cells);
            }
        }
        stored
    }

    proptest! {
        /// The units are the tile, or its chunks.
        #[test]
        fn cells_that_bypass_the_cache_are_the_same(
            size in prop_oneof![1usize..2000, 131_060usize..132_000],
            chunk in 2000usize..5000,
            in_runs: bool,
            ends: [prop::sample::Index; 2],
        ) {
            let cells: Vec<u8> = (0..size).map(|cell| (cell * cell / 7) as u8).collect();
            let stored = stored_in_chunks(&cells, chunk, in_runs);
            let filters = if in_runs { vec![Filter::Rle { level: -1 }] } else { Vec::new() };
            let length = stored.len() as u64;
            let (_folder, context, tiles) = tiles(filters, &stored, length, length);
            let mut ends = ends.map(|end| end.index(size + 1));
            ends.sort_unstable();
            let wanted = &cells[ends[0]..ends[1]];
            let mut units = Vec::new();
            tiles.units(0, size as u64, ends[0] as u64..ends[1] as u64, &mut units).unwrap();
            let whole = |unit: &&TileUnit| unit.start >= ends[0] as u64 && unit.range().end <= ends[1] as u64;
            let whole = units.iter().filter(whole).count();
            for reads in 1..4 {
                let (mut out, mut pieces) = (vec![0; wanted.len()], Vec::new());
                add_pieces(&units, ends[0] as u64, &mut out, &mut pieces).unwrap();
                context.fetcher.copy_once(pieces).unwrap();
                prop_assert!(out == wanted, "read {}", reads);
                let cached = units.iter().filter(|unit| context.fetcher.cache().contains(&unit.key())).count();
                prop_assert_eq!(cached, if reads == 1 { units.len() - whole } else { units.len() });
            }
            let mut out = vec![0; wanted.len()];
            tiles.read(0, size as u64, ends[0] as u64, &mut out).unwrap();
            prop_assert!(out == wanted);
        }
    }

    proptest! {
        /// A cached chunk is found by the size of the first one, which says where a chunk begins only if all before it
        /// have that size.
        #[test]
        fn cached_chunks_of_any_sizes_are_read(
            chunks in prop::collection::vec(prop_oneof![Just(30_000usize), 1usize..60_000], 8..12),
            reads in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
        ) {
            let size = chunks.iter().sum::<usize>();
            let cells: Vec<u8> = (0..size).map(|cell| (cell * cell / 7) as u8).collect();
            let mut stored = (chunks.len() as u64).to_le_bytes().to_vec();
            let mut start = 0;
            for chunk in chunks {
                let heads = [chunk as u32, chunk as u32, 0];
                stored.extend(heads.iter().flat_map(|number| number.to_le_bytes()));
                stored.extend(&cells[start..start + chunk]);
                start += chunk;
            }
            let length = stored.len() as u64;
            let (_folder, _context, tiles) = tiles(Vec::new(), &stored, length, length);
            for (one, other) in reads {
                let (one, other) = (one.index(size + 1), other.index(size + 1));
                let (start, end) = (one.min(other), one.max(other));
                let mut out = vec![0; end - start];
                tiles.read(0, size as u64, start as u64, &mut out).unwrap();
                prop_assert!(out == cells[start..end]);
            }
        }
    }

    #[test]
    fn a_recorded_size_beyond_the_file_is_damage() {
        let many = numbers(1 << 40, [1 << 16, 1 << 16, 0]);
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1000).contains("stored bytes for 1000 decoded ones"));
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1 << 30).contains("the file ends at 20"));
        let long = numbers(1, [u32::MAX, u32::MAX, 0]);
        assert!(damaged(&long, long.len() as u64, 20, u32::MAX.into()).contains("a chunk leaves its tile"));
    }

    #[test]
    fn a_hole_is_not_read_as_empty_chunks() {
        let many = numbers(1 << 18, [1 << 16, 0, 0]);
        assert!(damaged(&many, 1 << 40, 1 << 40, 1 << 30).contains("an empty chunk before others"));
    }

    #[test]
    fn pieces_larger_than_the_cache_are_refused() {
        // 2 GiB of one value in 98 KiB.
        let run = [7, 0xff, 0xff].repeat(32769);
        let original = 32769 * 65535;
        let mut stored = numbers(1, [original, run.len() as u32, 16, 0, 1, original, run.len() as u32]);
        stored.extend(run);
        let length = stored.len() as u64;
        let (_folder, _context, tiles) = tiles(vec![Filter::Rle { level: -1 }], &stored, length, length);
        let error = tiles.read(0, original.into(), 0, &mut [0; 1]).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("2147516415 bytes that can only be decoded together"), "{error}");
    }
}
