//! Saves the rows of a view for later mounts: how many there are, and the segments that were made by reading cells.
//!
//! The inputs of segments include how the map was cut, because that determines where each segment begins. Saved bytes are
//! checked like everything stored: each cell that they name must exist in its fragment.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::Inputs;
use tilefs_format::cursor::Cursor;
use tilefs_storage::MOST_ENTRY;
use tilefs_threads::for_all;

use super::address::Address;
use super::row_map::{LazySegment, RowMap, SegmentSource};
use super::segments::{
    InterleavedBlock, InterleavedRows, InterleavedSegment, RowSegment, SCATTERED_ROWS, ScatteredSegment,
};
use super::store::SpillStore;
use crate::array::SavedIndexes;
use crate::array::sparse::select::cells::FragmentCells;
use crate::array::sparse::select::query::Query;

/// The first byte of a segment's entry.
const INTERLEAVED: u8 = 0;
const SCATTERED: u8 = 1;
const CELL_SLAB: u8 = 2;

/// Blocks of a [`ScatteredSegment`] in one entry.
const SCATTERED_BLOCKS: u64 = 128;

/// The saved rows of one view.
pub struct SavedRows {
    query: Arc<Query>,
    /// `None` if nothing is saved.
    inputs: Option<Inputs>,
}

impl SavedRows {
    /// Creates the saved rows of a view of a query, which depend on `inputs`; `None` if nothing is saved.
    pub fn new(query: &Arc<Query>, inputs: Option<Inputs>) -> Self {
        SavedRows { query: query.clone(), inputs }
    }

    /// Returns the saved data of the same rows, for the cell numbering of another query.
    pub fn of_query(&self, query: &Arc<Query>) -> Self {
        SavedRows { query: query.clone(), inputs: self.inputs }
    }

    pub fn indexes(&self) -> &SavedIndexes {
        &self.query.array.context().saved
    }

    /// Returns the saved number of rows.
    pub fn count(&self) -> Option<u64> {
        let decode = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let rows = self.indexes().get(&self.inputs?.part("count"), decode)?;
        (rows <= self.query.most_rows()).then_some(rows)
    }

    pub fn keep_count(&self, rows: u64) {
        if let Some(inputs) = self.inputs {
            self.indexes().put(&inputs.part("count"), &rows.to_le_bytes());
        }
    }

    /// Returns the inputs of data that depends on how the map of rows is cut.
    pub fn inputs_of_cut(&self) -> Option<Inputs> {
        Some(self.inputs?.part(self.query.cut()))
    }

    /// Returns the saved number of rows of each segment, if it is known for this many segments.
    pub fn segment_counts(&self, segments: usize) -> Option<Vec<u64>> {
        let counts = |bytes: &[u8]| {
            let (counts, rest) = bytes.as_chunks();
            let counts: Vec<u64> = counts.iter().map(|count| u64::from_le_bytes(*count)).collect();
            (rest.is_empty() && counts.len() == segments).then_some(counts)
        };
        self.indexes().get(&self.inputs_of_cut()?.part("segments"), counts)
    }

    pub fn keep_segment_counts(&self, counts: &[u64]) {
        if let Some(inputs) = self.inputs_of_cut() {
            let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            self.indexes().put(&inputs.part("segments"), &bytes);
        }
    }

    /// Returns a lazy segment: when it is made, it is loaded if it was saved, otherwise made by `source` and saved.
    /// `number` is its number in the map, `rows` its number of rows if that is known.
    pub fn lazy(
        self: &Arc<Self>,
        store: &Arc<SpillStore>,
        number: usize,
        rows: Option<u64>,
        source: (Arc<dyn SegmentSource>, usize),
    ) -> LazySegment {
        let (saved, store) = (self.clone(), store.clone());
        LazySegment::new(Arc::new(SavedSegment { saved, store, number, rows, source: source.0, at: source.1 }), 0)
    }

    /// Returns all segments of a map that was made at once, if they are saved.
    pub fn whole(&self, store: &SpillStore) -> Option<Vec<RowSegment>> {
        let inputs = self.inputs_of_cut()?;
        let count = |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        let pieces = self.indexes().get(&inputs.part("pieces"), count)?;
        let piece = |number| {
            let inputs = inputs.part(format_args!("piece {number}"));
            let segment = self.indexes().get(&inputs, |bytes| decode(bytes, &self.query.cells, store));
            segment.ok_or_else(|| Error::internal("not saved"))
        };
        for_all(pieces, piece).ok()
    }

    /// Saves a map that was made at once, unless it is so large that it would displace everything else.
    ///
    /// # Errors
    /// Those of the store.
    pub fn keep_whole(&self, map: &RowMap) -> Result<()> {
        let Some(inputs) = self.inputs_of_cut() else { return Ok(()) };
        let size = |segment: &LazySegment| match segment {
            LazySegment::Made(RowSegment::Scattered(list)) => list.rows.saturating_mul(size_of::<Address>() as u64),
            LazySegment::Made(RowSegment::Interleaved(interleaved)) => interleaved.stored_bytes(),
            LazySegment::Made(RowSegment::CellSlab { .. }) | LazySegment::ToMake { .. } => 0,
        };
        let bytes = map.segments().iter().map(|segment| size(segment)).fold(0, u64::saturating_add);
        if bytes > self.indexes().most_of_one() {
            return Ok(());
        }
        let mut pieces = 0u64;
        let mut keep = |segment: &RowSegment| -> Result<bool> {
            let Some(bytes) = encode(segment, map.store())? else { return Ok(false) };
            self.indexes().put(&inputs.part(format_args!("piece {pieces}")), &bytes);
            pieces += 1;
            Ok(true)
        };
        for segment in map.segments() {
            let LazySegment::Made(segment) = &**segment else { return Ok(()) };
            let is_kept = match segment {
                RowSegment::Scattered(list) => {
                    let parts = (0..list.rows.div_ceil(SCATTERED_ROWS)).step_by(SCATTERED_BLOCKS as usize);
                    let mut kept = parts
                        .map(|block| keep(&RowSegment::Scattered(list.part(block, SCATTERED_BLOCKS * SCATTERED_ROWS))));
                    kept.try_fold(true, |all, kept| Ok::<bool, Error>(all && kept?))?
                }
                segment => keep(segment)?,
            };
            if !is_kept {
                return Ok(());
            }
        }
        self.indexes().put(&inputs.part("pieces"), &pieces.to_le_bytes());
        Ok(())
    }
}

/// A segment that is loaded if it was saved, otherwise made and saved.
struct SavedSegment {
    saved: Arc<SavedRows>,
    store: Arc<SpillStore>,
    number: usize,
    rows: Option<u64>,
    source: Arc<dyn SegmentSource>,
    /// The number of the segment in `source`.
    at: usize,
}

impl SavedSegment {
    fn inputs(&self) -> Option<Inputs> {
        Some(self.saved.inputs_of_cut()?.part(format_args!("segment {}", self.number)))
    }
}

impl SegmentSource for SavedSegment {
    fn most_rows(&self, _: usize) -> u64 {
        self.source.most_rows(self.at)
    }

    fn known_rows(&self, _: usize) -> Option<u64> {
        self.source.known_rows(self.at).or(self.rows)
    }

    fn count_rows(&self, _: usize) -> Result<Option<u64>> {
        match self.known_rows(0) {
            Some(rows) => Ok(Some(rows)),
            // Loading the saved segment takes no more than counting its rows.
            None if self.inputs().is_some_and(|inputs| self.saved.indexes().has(&inputs)) => Ok(None),
            None => self.source.count_rows(self.at),
        }
    }

    fn make(&self, _: usize) -> Result<RowSegment> {
        let (indexes, cells, inputs) = (self.saved.indexes(), &self.saved.query.cells, self.inputs());
        let most = self.most_rows(0);
        let decoded = |bytes: &[u8]| decode(bytes, cells, &self.store).filter(|segment| segment.rows() <= most);
        if let Some(segment) = inputs.and_then(|inputs| indexes.get(&inputs, decoded)) {
            return Ok(segment);
        }
        let segment = self.source.make(self.at)?;
        indexes.note_merged(most);
        if let (Some(inputs), Some(bytes)) = (inputs, encode(&segment, &self.store)?) {
            indexes.put(&inputs, &bytes);
        }
        Ok(segment)
    }

    fn locate(&self, error: Error) -> Error {
        self.source.locate(error)
    }
}

/// Encodes a segment; `None` if it is too large for an entry.
fn encode(segment: &RowSegment, store: &SpillStore) -> Result<Option<Vec<u8>>> {
    let (mut out, mut buffer) = (Vec::new(), Vec::new());
    match segment {
        RowSegment::CellSlab { fragment, position, rows } => {
            out.push(CELL_SLAB);
            out.extend(fragment.to_le_bytes());
            out.extend(position.to_le_bytes());
            out.extend(rows.to_le_bytes());
        }
        RowSegment::Interleaved(interleaved) => {
            if interleaved.stored_bytes() > MOST_ENTRY as u64 {
                return Ok(None);
            }
            out.push(INTERLEAVED);
            out.extend(interleaved.rows.to_le_bytes());
            out.extend((interleaved.fragments.len() as u64).to_le_bytes());
            out.extend(interleaved.fragments.iter().flat_map(|fragment| fragment.to_le_bytes()));
            for block in &interleaved.blocks {
                let bytes = store.get(&block.blob, &mut buffer)?;
                out.extend((bytes.len() as u64).to_le_bytes());
                out.extend(bytes);
            }
        }
        RowSegment::Scattered(list) => {
            if list.rows.saturating_mul(size_of::<Address>() as u64) > MOST_ENTRY as u64 {
                return Ok(None);
            }
            out.push(SCATTERED);
            let mut left = list.rows;
            for blob in list.blocks.iter().skip(list.first_block as usize) {
                let bytes = store.get(blob, &mut buffer)?;
                let rows = left.min((bytes.len() / size_of::<Address>()) as u64);
                out.extend(&bytes[..rows as usize * size_of::<Address>()]);
                left -= rows;
            }
        }
    }
    Ok((out.len() <= MOST_ENTRY).then_some(out))
}

/// Decodes a segment; `None` if the bytes are malformed, or name cells that do not exist.
fn decode(bytes: &[u8], cells: &[FragmentCells], store: &SpillStore) -> Option<RowSegment> {
    let has = |fragment: u32, position: u64, count: u64| {
        let cells = cells.get(fragment as usize)?;
        (position.checked_add(count)? <= cells.count()).then_some(())
    };
    let mut cursor = Cursor::new(bytes);
    match cursor.u8("kind").ok()? {
        CELL_SLAB => {
            let (fragment, position) = (cursor.u32("fragment").ok()?, cursor.u64("position").ok()?);
            let rows = cursor.u64("rows").ok()?;
            cursor.expect_end("a cell slab").ok()?;
            has(fragment, position, rows)?;
            Some(RowSegment::CellSlab { fragment, position, rows })
        }
        INTERLEAVED => {
            let (rows, fragments) = (cursor.u64("rows").ok()?, cursor.u64("fragments").ok()?);
            let fragments = cursor.checked_count(fragments, size_of::<u32>(), "fragments").ok()?;
            let fragments = cursor.bytes(fragments * size_of::<u32>(), "fragments").ok()?.as_chunks().0;
            let fragments: Arc<[u32]> = fragments.iter().map(|fragment| u32::from_le_bytes(*fragment)).collect();
            let (mut blocks, mut first_row, mut block) = (Vec::new(), 0u64, InterleavedRows::default());
            while !cursor.is_at_end() {
                let length = cursor.u64("block").ok()?;
                let stored = cursor.bytes_u64(length, "block").ok()?;
                block.decode(stored, &fragments)?;
                for part in &block.parts {
                    has(part.fragment, part.position, part.cells)?;
                }
                block.is_sound().then_some(())?;
                blocks.push(InterleavedBlock { first_row, blob: store.put(stored.to_vec()).ok()? });
                first_row = first_row.checked_add(block.rows)?;
            }
            (first_row == rows).then_some(RowSegment::Interleaved(InterleavedSegment { fragments, blocks, rows }))
        }
        SCATTERED => {
            let (addresses, rest) = bytes.get(1..)?.as_chunks();
            if !rest.is_empty() {
                return None;
            }
            let (mut blocks, mut block) = (Vec::new(), Vec::new());
            for addresses in addresses.chunks(SCATTERED_ROWS as usize) {
                for bits in addresses {
                    let address = Address::from_bits(u64::from_le_bytes(*bits));
                    has(address.fragment(), address.position(), 1)?;
                    block.extend(bits);
                }
                blocks.push(store.put(std::mem::take(&mut block)).ok()?);
            }
            Some(RowSegment::Scattered(ScatteredSegment::new(blocks, addresses.len() as u64)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::segments::{InterleavedWriter, RowBuffers, VisitedRows};
    use super::*;

    /// Fragments of 1000 cells each.
    fn fragments(count: usize) -> Vec<FragmentCells> {
        (0..count).map(|_| FragmentCells::new(10, 100, 100).unwrap()).collect()
    }

    /// Returns the cells of all rows of a segment; panics if it names a cell that no fragment has.
    fn cells(segment: &RowSegment, store: &SpillStore) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        let visit = &mut |rows: VisitedRows<'_>| {
            match rows {
                VisitedRows::CellSlab { fragment, position, rows } => {
                    all.extend((position..position + rows).map(|at| (fragment, at)));
                }
                VisitedRows::Scattered(list) => all.extend(list.iter().map(|cell| (cell.fragment(), cell.position()))),
                VisitedRows::Interleaved(interleaved) => {
                    let mut parts = interleaved.parts.clone();
                    for code in &interleaved.codes {
                        let part = &mut parts[code.part()];
                        if code.is_row() {
                            all.push((part.fragment, part.position));
                        }
                        part.position += 1;
                    }
                }
            }
            Ok(())
        };
        segment.for_each(0..segment.rows(), store, &mut RowBuffers::default(), visit).unwrap();
        all
    }

    fn interleaved(store: &SpillStore, turns: &[(u8, bool)]) -> RowSegment {
        let mut writer = InterleavedWriter::new(store, &[(0, 5), (1, 0), (2, 900), (1, 500)]);
        let mut left = [995, 500, 100, 500];
        for (part, is_row) in turns {
            let part = usize::from(part % 4);
            if left[part] > 0 {
                left[part] -= 1;
                writer.push(part, *is_row).unwrap();
            }
        }
        RowSegment::Interleaved(writer.finish().unwrap())
    }

    fn scattered(store: &SpillStore, list: &[(u32, u64)]) -> RowSegment {
        let blocks = list.chunks(SCATTERED_ROWS as usize).map(|rows| {
            let bytes = rows.iter().flat_map(|cell| Address::new(cell.0, cell.1).unwrap().to_bits().to_le_bytes());
            store.put(bytes.collect()).unwrap()
        });
        RowSegment::Scattered(ScatteredSegment::new(blocks.collect(), list.len() as u64))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn segments_are_what_they_were(
            turns in prop::collection::vec((any::<u8>(), any::<bool>()), 0..1500),
            list in prop::collection::vec((0u32..3, 0u64..1000), 0..300),
            repeated in 1usize..60,
        ) {
            let (store, fragments) = (SpillStore::new(usize::MAX), fragments(3));
            let list = list.repeat(repeated);
            for segment in [
                interleaved(&store, &turns),
                scattered(&store, &list),
                RowSegment::CellSlab { fragment: 2, position: 3, rows: 997 },
            ] {
                let bytes = encode(&segment, &store).unwrap().unwrap();
                let read = decode(&bytes, &fragments, &store).unwrap();
                prop_assert_eq!(read.rows(), segment.rows());
                prop_assert_eq!(cells(&read, &store), cells(&segment, &store));
                // Fragments with fewer cells, and truncated bytes.
                prop_assert!(segment.rows() == 0 || decode(&bytes, &fragments[..0], &store).is_none());
                let short = decode(&bytes[..bytes.len() - 1], &fragments, &store);
                prop_assert!(short.is_none_or(|short| short.rows() < segment.rows()));
            }
        }

        /// Corrupt bytes with the right checksum: they must cause no panic, and name no cell that does not exist.
        #[test]
        fn wrong_bytes_name_no_cell_that_is_not_there(
            turns in prop::collection::vec((any::<u8>(), any::<bool>()), 0..300),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            random in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let (store, fragments) = (SpillStore::new(usize::MAX), fragments(3));
            let mut bytes = encode(&interleaved(&store, &turns), &store).unwrap().unwrap();
            changes.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte; });
            for bytes in [bytes, random] {
                if let Some(segment) = decode(&bytes, &fragments, &store) {
                    prop_assert!(cells(&segment, &store).iter().all(|cell| cell.0 < 3 && cell.1 < 1000));
                }
            }
        }
    }
}
