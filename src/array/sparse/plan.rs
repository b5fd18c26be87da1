//! Plans how the rows of an array are found: which cells are rows as they are stored, and which have to be merged or
//! gone through one by one. Nothing but metadata is read for it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::box_join::{Boxes, for_each_pair, intersect};
use super::overlap::{KeyRanges, TileGroup, TilesOfFragment, groups};
use super::query::{MOST_PAIRS, Query};
use super::selection::Share;
use super::stream::FragmentSource;
use super::task::{MergeKind, MergeTask};
use crate::error::{Error, Locate, Result};
use crate::format::scalar::Range as CoordinateRange;
use crate::storage::together;

/// What becomes of some cells.
pub enum Step {
    /// All are rows.
    CellSlab {
        fragment: usize,
        positions: Range<u64>,
    },
    /// Those of one fragment are gone through.
    Filter(MergeTask),
    Merge(PlannedMerge),
}

/// Tiles of fragments whose cells come by turns in the order of the array.
pub struct PlannedMerge {
    pub parts: Vec<MergePart>,
    pub coincidence: Coincidence,
}

/// The cells that a merge has of one fragment.
pub struct MergePart {
    pub fragment: usize,
    pub positions: Range<u64>,
    /// Of all tiles of the fragment, of which `positions` are some.
    pub key_ranges: Arc<KeyRanges>,
}

/// Which cells of a merge may have the same coordinates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coincidence {
    /// None of different fragments, and all cells count: every cell is a row.
    Nowhere,
    /// Those of these tiles, each given by its part and its place among the tiles of the fragment. All cells count.
    Among(Vec<(usize, u64)>),
    /// Any, or some cells do not count.
    Anywhere,
}

/// Plans how the rows of an array are found.
pub struct Planner<'a> {
    pub query: &'a Query,
    pub sources: &'a [FragmentSource<'a>],
}

/// By fragment, where its tiles lie in the order.
type SpansOfFragments = HashMap<usize, Arc<KeyRanges>>;

impl Planner<'_> {
    /// What to do, in the order of the rows.
    ///
    /// # Errors
    /// Any damage in the metadata that tell where cells lie.
    pub fn plan(&self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let with_cells = (0..self.sources.len()).filter(|&fragment| self.sources[fragment].cells.count() > 0);
        let fragments: Vec<usize> = with_cells.collect();
        if self.query.array.schema().allows_duplicates || fragments.len() == 1 {
            for fragment in fragments {
                self.add_alone((fragment, 0..self.sources[fragment].cells.tile_count()), &mut steps)?;
            }
            return Ok(steps);
        }
        // Most arrays' fragments are told apart by their non-empty domains.
        let key_ranges = fragments.iter().map(|&fragment| Ok((fragment, self.span_of_fragment(fragment)?)));
        for part in groups(&key_ranges.collect::<Result<Vec<_>>>()?) {
            match part {
                TileGroup::Alone((fragment, _)) => {
                    self.add_alone((fragment, 0..self.sources[fragment].cells.tile_count()), &mut steps)?;
                }
                TileGroup::Together(tiles) => self.add_overlapping(&tiles, &mut steps)?,
            }
        }
        Ok(steps)
    }

    /// To merge all cells there are at once, each fragment's as they come: what libtiledb does whatever the order.
    pub fn everything_at_once(&self) -> MergeTask {
        let parts = self.sources.iter().filter(|source| source.cells.count() > 0);
        let parts = parts.map(|source| (source.fragment, 0..source.cells.count())).collect();
        MergeTask { parts, kind: MergeKind::AsTheyCome }
    }

    fn span_of_fragment(&self, fragment: usize) -> Result<KeyRanges> {
        let outline = self.query.array.outline(fragment)?;
        let ranges = outline.facts.non_empty_domain.as_deref();
        let ranges = ranges.ok_or_else(|| Error::damaged("cells, but no non-empty domain"));
        let mut span = KeyRanges::new(self.query.plan.words());
        let bounds = ranges.and_then(|ranges| self.query.plan.bounds(ranges)).in_field("non-empty domain");
        let (low, high) = bounds.map_err(|error| self.sources[fragment].place(error))?;
        span.push(&low, &high);
        Ok(span)
    }

    /// Tiles of fragments that overlap as a whole.
    fn add_overlapping(&self, tiles: &[TilesOfFragment], steps: &mut Vec<Step>) -> Result<()> {
        let array = &self.query.array;
        let fragments = tiles.iter().map(|(fragment, _)| *fragment).collect();
        let spans = together(&*array.context().storage, array.path(), fragments, |fragment| {
            Ok((fragment, self.spans_of_tiles(fragment)?))
        });
        let key_ranges = spans.into_iter().collect::<Result<Vec<_>>>()?;
        let parts = self.join_versions(groups(&key_ranges), &key_ranges);
        let key_ranges: SpansOfFragments =
            key_ranges.into_iter().map(|(fragment, own)| (fragment, Arc::new(own))).collect();
        for part in parts {
            match part {
                TileGroup::Alone(tiles) => self.add_alone(tiles, steps)?,
                TileGroup::Together(tiles) => self.add_merge(&tiles, &key_ranges, steps)?,
            }
        }
        Ok(())
    }

    fn spans_of_tiles(&self, fragment: usize) -> Result<KeyRanges> {
        let source = &self.sources[fragment];
        let mbrs = source.mbrs()?;
        let domain = match source.is_strictly_ordered() {
            true => self.query.array.outline(fragment)?.facts.non_empty_domain.clone(),
            false => None,
        };
        let mut key_ranges = KeyRanges::new(self.query.plan.words());
        let (mut boxes, mut ranges) = (mbrs.boxes(), Vec::new());
        for tile in source.cells.tiles() {
            let read = boxes.read(tile, &mut ranges).and_then(|()| match &domain {
                Some(domain) if !self.lies_in(&ranges, domain) => {
                    Err(Error::damaged(format!("the box of tile {tile} leaves the non-empty domain")))
                }
                _ => Ok(()),
            });
            let bounds = read.and_then(|()| self.query.plan.bounds(&ranges)).in_field("R-tree");
            let (low, high) = bounds.map_err(|error| source.place(error))?;
            key_ranges.push(&low, &high);
        }
        if source.is_surely_ordered() {
            key_ranges.tighten()
        } else {
            key_ranges.loosen()
        }
        Ok(key_ranges)
    }

    /// Whether a box of numbers lies in another.
    fn lies_in(&self, ranges: &[CoordinateRange], domain: &[CoordinateRange]) -> bool {
        ranges.iter().zip(domain).zip(&self.query.plan.axes).all(|((range, domain), axis)| {
            let position = |value| axis.position(value);
            let is_below = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a <= b);
            axis.is_text()
                || is_below(position(&domain.low), position(&range.low))
                    && is_below(position(&range.high), position(&domain.high))
        })
    }

    /// Joins parts between which a fragment may go on with an older cell of the same coordinates.
    fn join_versions(&self, parts: Vec<TileGroup>, key_ranges: &[(usize, KeyRanges)]) -> Vec<TileGroup> {
        if !self.sources.iter().any(|source| source.has_versions) {
            return parts;
        }
        let mut joined: Vec<TileGroup> = Vec::new();
        for part in parts {
            let touches = |before: &TileGroup| {
                tiles_of(before).iter().any(|(fragment, places)| {
                    let continues = tiles_of(&part).iter().any(|(other, _)| other == fragment);
                    let own = key_ranges.iter().find(|(number, _)| number == fragment).map(|(_, own)| own);
                    let ends = own.and_then(|own| own.high(places.end.checked_sub(1)?).zip(own.low(places.end)));
                    continues
                        && self.sources[*fragment].has_versions
                        && ends.is_some_and(|(last_high, next_low)| last_high >= next_low)
                })
            };
            match joined.last_mut() {
                Some(before) if touches(before) => {
                    let mut tiles = tiles_of(before).to_vec();
                    for (fragment, places) in tiles_of(&part) {
                        match tiles.iter_mut().find(|(other, _)| other == fragment) {
                            Some((_, before)) => before.end = places.end,
                            None => tiles.push((*fragment, places.clone())),
                        }
                    }
                    *before = TileGroup::Together(tiles);
                }
                _ => joined.push(part),
            }
        }
        joined
    }

    /// Tiles that nothing of another fragment lies across.
    fn add_alone(&self, (fragment, places): TilesOfFragment, steps: &mut Vec<Step>) -> Result<()> {
        let source = &self.sources[fragment];
        let cells = source.cells;
        if source.has_versions {
            let key_ranges = HashMap::from([(fragment, Arc::new(self.spans_of_tiles(fragment)?))]);
            return self.add_merge(&[(fragment, places)], &key_ranges, steps);
        }
        if source.filter.keeps_all() && source.selection.is_none() {
            add_slab(steps, fragment, cells.positions_of(places.start).start..cells.positions_of(places.end).start);
            return Ok(());
        }
        let mbrs = source.mbrs()?;
        let (mut boxes, mut ranges) = (mbrs.boxes(), Vec::new());
        let (axes, first_tiles) = (&self.query.plan.axes, cells.tiles().skip(places.start as usize));
        for (place, tile) in places.zip(first_tiles) {
            let share = match source.selection {
                Some(selection) => {
                    boxes.read(tile, &mut ranges)?;
                    selection.share(axes, ranges.iter())
                }
                None => Share::All,
            };
            let positions = cells.positions_of(place);
            match share {
                Share::None => {}
                Share::All if source.filter.keeps_all() => add_slab(steps, fragment, positions),
                _ => self.add_filter(steps, fragment, positions),
            }
        }
        Ok(())
    }

    fn add_filter(&self, steps: &mut Vec<Step>, fragment: usize, positions: Range<u64>) {
        if let Some(Step::Filter(task)) = steps.last_mut()
            && task.cells() < self.query.segment_rows
            && let [(last, before)] = &mut task.parts[..]
            && *last == fragment
            && before.end == positions.start
        {
            before.end = positions.end;
            return;
        }
        steps.push(Step::Filter(MergeTask { parts: vec![(fragment, positions)], kind: MergeKind::Filter }));
    }

    fn add_merge(&self, tiles: &[TilesOfFragment], key_ranges: &SpansOfFragments, steps: &mut Vec<Step>) -> Result<()> {
        let mut parts = Vec::with_capacity(tiles.len());
        for (fragment, places) in tiles {
            let own = key_ranges.get(fragment).ok_or_else(|| Error::internal("a fragment without key ranges"))?;
            let cells = self.sources[*fragment].cells;
            let positions = cells.positions_of(places.start).start..cells.positions_of(places.end).start;
            parts.push(MergePart { fragment: *fragment, positions, key_ranges: own.clone() });
        }
        let coincidence = self.coincidence(&parts)?;
        steps.push(Step::Merge(PlannedMerge { parts, coincidence }));
        Ok(())
    }

    /// Which cells of a merge may have the same coordinates, as far as the boxes of fragments and tiles tell.
    fn coincidence(&self, parts: &[MergePart]) -> Result<Coincidence> {
        let mut boxes = Boxes::new(self.query.joined_dimensions().count());
        for part in parts {
            let source = &self.sources[part.fragment];
            let all_count = source.filter.keeps_all() && source.selection.is_none() && !source.has_versions;
            let own = self.query.box_of_fragment(part.fragment)?;
            let Some(own) = own.filter(|_| all_count && source.is_strictly_ordered()) else {
                return Ok(Coincidence::Anywhere);
            };
            boxes.push(own.into_iter());
        }
        let (mut budget, mut pairs) = (MOST_PAIRS, Vec::new());
        if !for_each_pair(&boxes, &mut budget, |a, b| pairs.push((a, b))) {
            return Ok(Coincidence::Anywhere);
        }
        let mut tiles = Vec::new();
        for pair in pairs {
            if !self.add_meeting_tiles(parts, &boxes, pair, &mut budget, &mut tiles)? {
                return Ok(Coincidence::Anywhere);
            }
        }
        tiles.sort_unstable();
        tiles.dedup();
        Ok(if tiles.is_empty() { Coincidence::Nowhere } else { Coincidence::Among(tiles) })
    }

    /// Adds the tiles of two parts whose boxes intersect; `false` where finding them takes more than `budget`.
    fn add_meeting_tiles(
        &self,
        parts: &[MergePart],
        of_parts: &Boxes,
        pair: (usize, usize),
        budget: &mut u64,
        tiles: &mut Vec<(usize, u64)>,
    ) -> Result<bool> {
        let mut boxes = Boxes::new(self.query.joined_dimensions().count());
        let mut places = Vec::new();
        for (number, other) in [pair, (pair.1, pair.0)] {
            let (part, other_box) = (&parts[number], of_parts.ends(other));
            let source = &self.sources[part.fragment];
            let Some(left) = budget.checked_sub(part.key_ranges.count()) else { return Ok(false) };
            *budget = left;
            let mbrs = source.mbrs()?;
            let (mut stored, mut ranges) = (mbrs.boxes(), Vec::new());
            for (place, tile) in source.cells.tiles().enumerate() {
                stored.read(tile, &mut ranges).map_err(|error| source.place(error))?;
                let own = self.query.joined_dimensions().map(|dimension| {
                    let (axis, range) = (self.query.plan.axes.get(dimension)?, ranges.get(dimension)?);
                    axis.position(&range.low).zip(axis.position(&range.high))
                });
                let own: Option<Vec<(u64, u64)>> = own.collect();
                let own = own.ok_or_else(|| {
                    source.place(Error::damaged(format!("the box of tile {tile} leaves the domain")).in_field("R-tree"))
                })?;
                if intersect(&own, other_box) {
                    boxes.push(own.into_iter());
                    places.push((number, place as u64));
                }
            }
        }
        Ok(for_each_pair(&boxes, budget, |a, b| {
            let (a, b) = (places[a], places[b]);
            if a.0 != b.0 {
                tiles.extend([a, b]);
            }
        }))
    }
}

fn tiles_of(part: &TileGroup) -> &[TilesOfFragment] {
    match part {
        TileGroup::Alone(tiles) => std::slice::from_ref(tiles),
        TileGroup::Together(tiles) => tiles,
    }
}

fn add_slab(steps: &mut Vec<Step>, fragment: usize, positions: Range<u64>) {
    match steps.last_mut() {
        Some(Step::CellSlab { fragment: last, positions: before })
            if *last == fragment && before.end == positions.start =>
        {
            before.end = positions.end;
        }
        _ => steps.push(Step::CellSlab { fragment, positions }),
    }
}
