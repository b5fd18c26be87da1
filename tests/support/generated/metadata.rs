//! The metadata of a fragment: R-tree, tile offsets, minima and maxima, sums and the footer, as TileDB's own library
//! writes them, but without filters. Each section is computed on request.

use std::ops::Range;
use std::sync::OnceLock;

use super::array::Array;
use super::cells::{Bounds, Datatype};
use super::tiles::{Part, TileFile};
use crate::generic_tile::{self, VERSION};

/// Children of an inner node of an R-tree.
const FANOUT: usize = 10;

/// The sections of a fragment's metadata, in stored order. Slots are the attributes, an unused one, and the dimensions.
#[derive(Debug, Clone, Copy)]
enum Section {
    Rtree,
    List(List, usize),
    Statistics,
    ProcessedConditions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    TileOffsets,
    VarOffsets,
    VarSizes,
    ValidityOffsets,
    Minima,
    Maxima,
    Sums,
    NullCounts,
}

const LISTS: [List; 8] = [
    List::TileOffsets,
    List::VarOffsets,
    List::VarSizes,
    List::ValidityOffsets,
    List::Minima,
    List::Maxima,
    List::Sums,
    List::NullCounts,
];

/// The byte ranges of the sections. They are the same for all fragments of an array, which have equally many cells.
#[derive(Default)]
pub struct Places(OnceLock<Vec<Range<u64>>>);

/// The field of a slot.
enum Slot {
    Attribute(usize),
    Unused,
    Dimension(usize),
}

/// The metadata of one fragment.
pub struct Metadata<'a> {
    array: &'a Array,
    fragment: u64,
}

impl<'a> Metadata<'a> {
    pub fn new(array: &'a Array, fragment: u64) -> Self {
        Metadata { array, fragment }
    }

    fn slots(&self) -> usize {
        self.array.cells.attributes().len() + 1 + self.array.cells.dimensions().len()
    }

    fn slot(&self, slot: usize) -> Slot {
        let attributes = self.array.cells.attributes().len();
        match slot {
            _ if slot < attributes => Slot::Attribute(slot),
            _ if slot == attributes => Slot::Unused,
            _ => Slot::Dimension(slot - attributes - 1),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let lists = LISTS.iter().flat_map(|list| (0..self.slots()).map(|slot| Section::List(*list, slot)));
        [Section::Rtree].into_iter().chain(lists).chain([Section::Statistics, Section::ProcessedConditions]).collect()
    }

    fn places(&self) -> &'a [Range<u64>] {
        self.array.places.0.get_or_init(|| {
            let first = Metadata::new(self.array, 0);
            let mut end = 0;
            let lengths =
                first.sections().into_iter().map(|section| generic_tile::unfiltered_len(first.payload(section).len()));
            let places = lengths.map(|length| {
                let start = end;
                end += length as u64;
                start..end
            });
            places.collect()
        })
    }

    /// Returns the length of the file.
    pub fn byte_count(&self) -> u64 {
        self.footer_offset() + self.footer().len() as u64 + 8
    }

    fn footer_offset(&self) -> u64 {
        self.places().last().map_or(0, |place| place.end)
    }

    /// Returns the bytes of a range, which must lie in the file.
    pub fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut start = range.start;
        for (number, (section, place)) in self.sections().into_iter().zip(self.places()).enumerate() {
            if place.start < range.end && range.start < place.end {
                let tile =
                    self.array.section(self.fragment, number, || generic_tile::unfiltered(&self.payload(section)));
                assert_eq!(tile.len() as u64, place.end - place.start, "{section:?} of fragment {}", self.fragment);
                start = start.min(place.start);
                bytes.resize((place.start - start) as usize, 0);
                bytes.extend(&*tile);
            }
        }
        let at = self.footer_offset();
        if at < range.end {
            start = start.min(at);
            let footer = self.footer();
            bytes.resize((at - start) as usize, 0);
            bytes.extend(&footer);
            bytes.extend((footer.len() as u64).to_le_bytes());
        }
        bytes[(range.start - start) as usize..(range.end - start) as usize].to_vec()
    }

    fn payload(&self, section: Section) -> Vec<u8> {
        match section {
            Section::Rtree => self.rtree(),
            Section::List(list, slot) => self.list(list, slot),
            Section::Statistics => self.statistics(),
            Section::ProcessedConditions => 0u64.to_le_bytes().to_vec(),
        }
    }

    fn tiles(&self) -> u64 {
        self.array.fragment_cells.div_ceil(self.array.capacity)
    }

    fn tile_cells(&self, tile: u64) -> Range<u64> {
        tile * self.array.capacity..((tile + 1) * self.array.capacity).min(self.array.fragment_cells)
    }

    /// Returns the R-tree: the root first, the boxes of the tiles last.
    fn rtree(&self) -> Vec<u8> {
        let leaves = (0..self.tiles()).map(|tile| self.array.cells.bounds(self.fragment, self.tile_cells(tile)));
        let mut levels: Vec<Vec<Bounds>> = vec![leaves.collect()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            levels.push(below.chunks(FANOUT).map(union).collect());
        }
        let mut bytes = (FANOUT as u32).to_le_bytes().to_vec();
        bytes.extend((levels.len() as u32).to_le_bytes());
        for level in levels.iter().rev() {
            bytes.extend((level.len() as u64).to_le_bytes());
            level.iter().for_each(|bounds| put_bounds(bounds, &mut bytes));
        }
        bytes
    }

    fn file(&self, part: Part) -> TileFile<'a> {
        self.array.file(self.fragment, part)
    }

    /// Returns the files of a slot: the one of fixed-size values or of offsets, and the one of variable-size values.
    fn files(&self, slot: usize) -> [Option<TileFile<'a>>; 2] {
        match self.slot(slot) {
            Slot::Attribute(attribute) if self.array.cells.attributes()[attribute].values.is_none() => {
                [Part::Offsets(attribute), Part::Values(attribute)].map(|part| Some(self.file(part)))
            }
            Slot::Attribute(attribute) => [Some(self.file(Part::Attribute(attribute))), None],
            Slot::Unused => [None, None],
            Slot::Dimension(dimension) => [Some(self.file(Part::Dimension(dimension))), None],
        }
    }

    fn list(&self, list: List, slot: usize) -> Vec<u8> {
        let tiles = self.tiles();
        let [file, values] = self.files(slot);
        let numbers: Vec<u64> = match list {
            List::TileOffsets => {
                (0..tiles).map(|tile| file.as_ref().map_or(0, |file| file.tile_offset(tile))).collect()
            }
            List::VarOffsets => {
                (0..tiles).map(|tile| values.as_ref().map_or(0, |file| file.tile_offset(tile))).collect()
            }
            List::VarSizes => (0..tiles).map(|tile| values.as_ref().map_or(0, |file| file.tile_size(tile))).collect(),
            List::ValidityOffsets => vec![0; tiles as usize],
            List::Minima => return self.extremes(slot, |(least, _)| least),
            List::Maxima => return self.extremes(slot, |(_, greatest)| greatest),
            List::Sums => (0..tiles).filter_map(|tile| self.sum(slot, self.tile_cells(tile))).collect(),
            List::NullCounts => Vec::new(),
        };
        let mut bytes = (numbers.len() as u64).to_le_bytes().to_vec();
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    /// Returns the minimum, or the maximum, of each tile.
    fn extremes(&self, slot: usize, which: impl Fn((Vec<u8>, Vec<u8>)) -> Vec<u8>) -> Vec<u8> {
        let values: Vec<u8> = match self.slot(slot) {
            Slot::Attribute(attribute) => {
                let tiles =
                    (0..self.tiles()).filter_map(|tile| self.least_and_greatest(attribute, self.tile_cells(tile)));
                tiles.flat_map(which).collect()
            }
            // As many zeros as zipped coordinates would take.
            Slot::Unused => vec![0; 8 * self.array.cells.dimensions().len() * self.tiles() as usize],
            Slot::Dimension(_) => Vec::new(),
        };
        [&(values.len() as u64).to_le_bytes()[..], &0u64.to_le_bytes(), &values].concat()
    }

    /// Returns the values of a range of cells, at most one period of them, and the bytes of a value.
    fn values(&self, attribute: usize, cells: Range<u64>) -> Option<(Vec<u8>, usize)> {
        let field = &self.array.cells.attributes()[attribute];
        let size = field.cell_size().filter(|_| field.period > 0)?;
        let end = cells.end.min(cells.start + field.period);
        let mut bytes = Vec::new();
        self.array.cells.write_attribute(attribute, self.fragment, cells.start..end, &mut bytes);
        Some((bytes, size as usize))
    }

    fn least_and_greatest(&self, attribute: usize, cells: Range<u64>) -> Option<(Vec<u8>, Vec<u8>)> {
        let (bytes, size) = self.values(attribute, cells)?;
        let values = bytes.chunks_exact(size);
        // No value is negative, so floats sort by their bits.
        let in_order = |value: &&[u8]| match self.array.cells.attributes()[attribute].datatype {
            Datatype::Char | Datatype::Utf8 => value.to_vec(),
            _ => value.iter().rev().copied().collect(),
        };
        Some((values.clone().min_by_key(in_order)?.to_vec(), values.max_by_key(in_order)?.to_vec()))
    }

    /// Returns the sum of a range of cells as it is stored; `None` for slots without sums.
    fn sum(&self, slot: usize, cells: Range<u64>) -> Option<u64> {
        let attribute = match self.slot(slot) {
            Slot::Attribute(attribute) => attribute,
            Slot::Unused => return Some(0),
            Slot::Dimension(dimension) => {
                return Some(self.array.cells.sum_of_coordinates(dimension, self.fragment, cells) as u64);
            }
        };
        let field = &self.array.cells.attributes()[attribute];
        let number: fn([u8; 4]) -> f64 = match field.datatype {
            Datatype::Int32 => |bytes| f64::from(i32::from_le_bytes(bytes)),
            Datatype::Float32 => |bytes| f64::from(f32::from_le_bytes(bytes)),
            _ => return None,
        };
        // All values are multiples of an eighth, so the sums are exact.
        let sum = |cells: Range<u64>| -> f64 {
            let (bytes, _) = self.values(attribute, cells).unwrap_or_default();
            bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).sum()
        };
        let (length, period) = (cells.end - cells.start, field.period);
        let whole = if length >= period { sum(cells.start..cells.end) * (length / period) as f64 } else { 0.0 };
        let total = whole + sum(cells.end - length % period..cells.end);
        Some(if field.datatype == Datatype::Int32 { total as i64 as u64 } else { total.to_bits() })
    }

    /// Returns the statistics of the whole fragment: minimum, maximum, sum and number of nulls of each slot.
    fn statistics(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for slot in 0..self.slots() {
            let all = 0..self.array.fragment_cells;
            let extremes = match self.slot(slot) {
                Slot::Attribute(attribute) => self.least_and_greatest(attribute, all.clone()),
                Slot::Unused => Some((vec![0; 8], vec![0; 8])),
                Slot::Dimension(_) => None,
            };
            let (least, greatest) = extremes.unwrap_or_default();
            for value in [least, greatest] {
                bytes.extend((value.len() as u64).to_le_bytes());
                bytes.extend(value);
            }
            bytes.extend(self.sum(slot, all).unwrap_or(0).to_le_bytes());
            bytes.extend(0u64.to_le_bytes());
        }
        bytes
    }

    /// Returns the footer, without the length after it.
    pub fn footer(&self) -> Vec<u8> {
        let schema = self.array.schema_name();
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend((schema.len() as u64).to_le_bytes());
        bytes.extend(schema.bytes());
        bytes.extend([0, 0]); // sparse, with a non-empty domain
        put_bounds(&self.array.cells.bounds(self.fragment, 0..self.array.fragment_cells), &mut bytes);
        let last = self.tile_cells(self.tiles() - 1);
        bytes.extend(self.tiles().to_le_bytes());
        bytes.extend((last.end - last.start).to_le_bytes());
        bytes.extend([0, 0]); // no timestamps, no metadata of deletes
        for which in 0..2 {
            for slot in 0..self.slots() {
                let file = &self.files(slot)[which];
                bytes.extend(file.as_ref().map_or(0, TileFile::byte_count).to_le_bytes());
            }
        }
        bytes.resize(bytes.len() + 8 * self.slots(), 0); // no validity
        self.places().iter().for_each(|place| bytes.extend(place.start.to_le_bytes()));
        bytes
    }
}

fn union(boxes: &[Bounds]) -> Bounds {
    let mut all = boxes[0].clone();
    for bounds in &boxes[1..] {
        for (all, one) in all.iter_mut().zip(bounds) {
            *all = (all.0.min(one.0), all.1.max(one.1));
        }
    }
    all
}

fn put_bounds(bounds: &Bounds, to: &mut Vec<u8>) {
    for (low, high) in bounds {
        to.extend(low.to_le_bytes());
        to.extend(high.to_le_bytes());
    }
}
