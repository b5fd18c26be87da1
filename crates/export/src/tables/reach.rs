//! How far geometries reach from the places by which their array is sorted. It is found in a pass over them: what a
//! program has noted of the geometries that it wrote says nothing of those that others have written, changed or deleted.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_threads::{cancellation, for_all};

use super::boxes::{SIDES, box_of};
use super::geometries::{BLOCK_ROWS, StoredGeometries};
use crate::column::Column;

/// Blocks of rows that a thread goes through at a time.
const BLOCKS_AT_A_TIME: u64 = 64;

/// Maximum size in bytes of geometries that are gone through to find their bounds.
const MAX_BYTES: u64 = 4 << 30;

/// Geometries, and the coordinates of their places.
pub struct PlacedGeometries {
    geometries: StoredGeometries,
    /// The dimensions that tell where geometries are, each once.
    places: Vec<Arc<dyn Content>>,
    /// For each side of the box around a geometry, the number of its dimension.
    place_of: [usize; 4],
}

/// How far geometries reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// By side of a box: the greatest distance outwards from its place, at least 0; infinite if it is not known.
    pub outwards: [f64; 4],
    /// The same inwards.
    pub inwards: [f64; 4],
    /// The sides of the box around all; "not a number" if none has a box.
    pub sides: [f64; 4],
}

impl PlacedGeometries {
    /// Pairs a column of geometries with the places of their sides, single floats of 64 bits; `None` if there are so many
    /// that going through them takes too long.
    pub(super) fn new(geometries: &Column, places: [&Column; 4]) -> Option<Self> {
        let stored = StoredGeometries::of(geometries).filter(|_| geometries.values.len() <= MAX_BYTES)?;
        let fits = places.iter().all(|place| place.values.len() == stored.rows.saturating_mul(8));
        let mut distinct: Vec<Arc<dyn Content>> = Vec::new();
        let place_of = places.map(|place| {
            let known = distinct.iter().position(|known| Arc::ptr_eq(known, &place.values));
            known.unwrap_or_else(|| {
                distinct.push(place.values.clone());
                distinct.len() - 1
            })
        });
        fits.then_some(PlacedGeometries { geometries: stored, places: distinct, place_of })
    }

    /// Returns the number of geometries.
    pub fn rows(&self) -> u64 {
        self.geometries.rows
    }

    /// Goes through all geometries.
    ///
    /// # Errors
    /// Fails if they or their places cannot be read; [`Error::Damaged`] for bytes that are no geometry.
    pub fn reach(&self) -> Result<Reach> {
        let blocks = self.rows().div_ceil(BLOCK_ROWS);
        let parts = usize::try_from(blocks.div_ceil(BLOCKS_AT_A_TIME)).unwrap_or(usize::MAX);
        let reach = for_all(parts, |number| {
            let first = number as u64 * BLOCKS_AT_A_TIME;
            let blocks = first..(first + BLOCKS_AT_A_TIME).min(blocks);
            blocks
                .map(|block| self.reach_of_block(block))
                .try_fold(Reach::NONE, |all, one| Ok::<_, Error>(all.and(one?)))
        })?;
        Ok(reach.into_iter().fold(Reach::NONE, Reach::and))
    }

    fn reach_of_block(&self, number: u64) -> Result<Reach> {
        cancellation::check()?;
        let rows = self.geometries.block(number);
        let read = |of: &Arc<dyn Content>| {
            let mut bytes = vec![0; 8 * (rows.end - rows.start) as usize];
            of.read_once(8 * rows.start, &mut bytes)?;
            Ok::<_, Error>(bytes.as_chunks().0.iter().map(|place| f64::from_le_bytes(*place)).collect::<Vec<f64>>())
        };
        let places = self.places.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut found = Reach::NONE;
        self.geometries.for_each(rows.clone(), &mut |row, geometry| {
            let Some(geometry) = geometry else { return Ok(()) };
            let (sides, number) = (box_of(geometry, row)?, (row - rows.start) as usize);
            let of_row = self.place_of.map(|place| places[place].get(number).copied().unwrap_or(f64::NAN));
            found = found.and(Reach::of(sides, of_row));
            Ok(())
        })?;
        Ok(found)
    }
}

impl Recorded for PlacedGeometries {
    fn record(&self, recorder: &mut Recorder) {
        let Self { geometries, places, place_of } = self;
        recorder.add::<Self>(place_of);
        geometries.record(recorder);
        places.iter().for_each(|place| Content::record(place, recorder));
    }
}

impl Reach {
    /// That of no geometry.
    const NONE: Reach = Reach { outwards: [0.0; 4], inwards: [0.0; 4], sides: [f64::NAN; 4] };

    /// Returns that of one geometry, given the sides of its box and their places.
    fn of(sides: [f64; 4], places: [f64; 4]) -> Self {
        let distance = |side: usize, is_positive: bool| {
            let distance = if is_positive { sides[side] - places[side] } else { places[side] - sides[side] };
            match (sides[side].is_nan(), distance.is_nan()) {
                // It has no box.
                (true, _) => 0.0,
                (false, true) => f64::INFINITY,
                (false, false) => distance.max(0.0),
            }
        };
        let outwards = std::array::from_fn(|side| distance(side, !is_lower(side)));
        Reach { outwards, inwards: std::array::from_fn(|side| distance(side, is_lower(side))), sides }
    }

    /// Returns that of the geometries of both.
    fn and(self, other: Self) -> Self {
        // Of a number and "not a number", these functions return the number.
        let outermost = |side: usize| match is_lower(side) {
            true => self.sides[side].min(other.sides[side]),
            false => self.sides[side].max(other.sides[side]),
        };
        let most = |one: [f64; 4], other: [f64; 4]| std::array::from_fn(|side| one[side].max(other[side]));
        let (outwards, inwards) = (most(self.outwards, other.outwards), most(self.inwards, other.inwards));
        Reach { outwards, inwards, sides: std::array::from_fn(outermost) }
    }

    /// Returns the bytes from which [`Reach::decode`] restores this.
    pub fn encode(&self) -> Vec<u8> {
        self.outwards.iter().chain(&self.inwards).chain(&self.sides).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Restores what was encoded; `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let numbers: Vec<f64> = numbers.iter().map(|number| f64::from_le_bytes(*number)).collect();
        let (outwards, rest) = numbers.split_first_chunk::<4>()?;
        let (inwards, sides) = rest.split_first_chunk::<4>()?;
        let reach = Reach { outwards: *outwards, inwards: *inwards, sides: sides.try_into().ok()? };
        outwards.iter().chain(inwards).all(|most| *most >= 0.0).then_some(reach)
    }
}

/// Returns whether a side, by its number among [`SIDES`], is a least coordinate.
pub(super) fn is_lower(side: usize) -> bool {
    side < SIDES.len() / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tilefs_format::datatype::Datatype;

    use super::*;
    use crate::column::Field;

    /// A line between two places in well-known binary.
    fn line(ends: [f64; 4]) -> Vec<u8> {
        let coordinates = ends.iter().flat_map(|number| number.to_le_bytes());
        [1u8, 2, 0, 0, 0, 2, 0, 0, 0].into_iter().chain(coordinates).collect()
    }

    fn numbers(values: impl Iterator<Item = f64>) -> Column {
        let bytes: Vec<u8> = values.flat_map(f64::to_le_bytes).collect();
        Column::fixed(Field::new("_X", Datatype::Float64), vec![bytes.len() as u64 / 8], Arc::new(bytes))
    }

    proptest! {
        #[test]
        fn no_geometry_reaches_farther(
            lines in prop::collection::vec((prop::array::uniform4(-1e6f64..1e6), prop::array::uniform2(-1e6f64..1e6)), 0..40),
            repeated in prop::sample::select(vec![1usize, 200]),
        ) {
            let lines = lines.repeat(repeated);
            let cells: Vec<u8> = lines.iter().flat_map(|(ends, _)| line(*ends)).collect();
            let offsets: Vec<u8> = (0..=lines.len() as u64).flat_map(|row| (41 * row).to_le_bytes()).collect();
            let field = Field::new("g", Datatype::GeomWkb).with_values_per_cell(None);
            let geometries = Column::variable(field, vec![lines.len() as u64], Arc::new(cells), Arc::new(offsets));
            let [x, y] = [0, 1].map(|axis| numbers(lines.iter().map(|(_, centre)| centre[axis])));
            let found = PlacedGeometries::new(&geometries, [&x, &y, &x, &y]).unwrap().reach().unwrap();
            prop_assert_eq!(Reach::decode(&found.encode()).map(|one| one.encode()), Some(found.encode()));
            for side in 0..4 {
                let of = |(ends, centre): &([f64; 4], [f64; 2])| {
                    let (one, other) = (ends[side % 2], ends[side % 2 + 2]);
                    let end = if is_lower(side) { one.min(other) } else { one.max(other) };
                    let outwards = if is_lower(side) { centre[side % 2] - end } else { end - centre[side % 2] };
                    (end, outwards.max(0.0))
                };
                let most = lines.iter().map(|line| of(line).1).fold(0.0, f64::max);
                let ends = lines.iter().map(|line| of(line).0);
                let end = if is_lower(side) { ends.fold(f64::NAN, f64::min) } else { ends.fold(f64::NAN, f64::max) };
                prop_assert_eq!(found.outwards[side], most);
                let inwards = lines.iter().map(|(ends, centre)| {
                    let (end, _) = of(&(*ends, *centre));
                    if is_lower(side) { end - centre[side % 2] } else { centre[side % 2] - end }
                });
                prop_assert_eq!(found.inwards[side], inwards.fold(0.0, f64::max));
                prop_assert!(found.sides[side] == end || lines.is_empty() && found.sides[side].is_nan());
            }
        }
    }

    #[test]
    fn what_has_no_box_or_no_place_is_known_to_be_so() {
        let one = Reach::of([0.0, 0.0, 1.0, 1.0], [f64::NAN, 0.5, 2.0, 0.5]);
        assert_eq!(one.outwards, [f64::INFINITY, 0.5, 0.0, 0.5]);
        assert_eq!(one.inwards, [f64::INFINITY, 0.0, 1.0, 0.0]);
        assert_eq!(Reach::of([f64::NAN; 4], [0.5; 4]).outwards, [0.0; 4]);
        assert_eq!(one.and(Reach::NONE), one);
        assert_eq!(Reach::decode(&[0; 63]), None);
        assert_eq!(Reach::decode(&[[255; 8]; 12].concat()), None);
    }
}
