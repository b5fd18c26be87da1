//! Plans how to find the rows of an array: which cells are rows as they are stored, and which must be merged or
//! filtered. Reads nothing but metadata.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_storage::together;

use super::coincidence::{self, Coincidence, TileStretch};
use super::overlap::{KeyRanges, TileGroup, TilesOfFragment, groups};
use super::span::FragmentSpan;
use super::task::{MergeKind, MergeTask};
use crate::array::sparse::select::query::Query;
use crate::array::sparse::select::selection::Share;
use crate::array::sparse::select::stream::FragmentSource;

/// How to find the rows among some cells.
pub enum PlanStep {
    /// All cells are rows.
    CellSlab {
        fragment: usize,
        positions: Range<u64>,
    },
    /// Filter the cells of one fragment, or merge rounded cells.
    Task(MergeTask),
    Merge(PlannedMerge),
}

/// Tiles of fragments whose cells interleave in the array's order.
pub struct PlannedMerge {
    pub parts: Vec<MergePart>,
    pub coincidence: Coincidence,
}

/// The cells that a merge takes from one fragment.
pub struct MergePart {
    pub fragment: usize,
    pub positions: Range<u64>,
    /// The span of the whole fragment; `positions` are part of it.
    pub span: Arc<FragmentSpan>,
}

/// Plans how to find the rows of an array.
pub struct Planner<'a> {
    pub query: &'a Query,
    pub sources: &'a [FragmentSource<'a>],
}

/// The span of each fragment, by its number.
type Spans = HashMap<usize, Arc<FragmentSpan>>;

impl Planner<'_> {
    /// Returns the steps, in row order.
    ///
    /// # Errors
    /// Any damage in the metadata that locate cells.
    pub fn plan(&self) -> Result<Vec<PlanStep>> {
        let mut steps = Vec::new();
        let with_cells = (0..self.sources.len()).filter(|&fragment| self.sources[fragment].cells.count() > 0);
        let fragments: Vec<usize> = with_cells.collect();
        if self.query.array.schema().allows_duplicates || fragments.len() == 1 {
            for fragment in fragments {
                self.add_alone(self.all_tiles(fragment), &mut steps)?;
            }
            return Ok(steps);
        }
        let spans = fragments.iter().map(|&number| Ok((number, Arc::new(FragmentSpan::new(&self.sources[number])?))));
        let spans = spans.collect::<Result<Spans>>()?;
        // In most arrays the non-empty domains suffice to separate the fragments.
        let whole: Vec<_> = fragments.iter().map(|fragment| (*fragment, spans[fragment].whole())).collect();
        let groups = groups(&whole);
        let chained: Vec<usize> = groups.iter().flat_map(chain_of).collect();
        for group in groups {
            match group {
                TileGroup::Alone((fragment, _)) => self.add_alone(self.all_tiles(fragment), &mut steps)?,
                TileGroup::Together(_) => {
                    let chain: Vec<usize> = chain_of(&group).collect();
                    match self.is_searched(&chain, &chained, &spans) {
                        true => self.add_searched(&chain, &spans, &mut steps)?,
                        false => self.add_overlapping(&chain, &spans, &mut steps)?,
                    }
                }
            }
        }
        Ok(steps)
    }

    fn all_tiles(&self, fragment: usize) -> TilesOfFragment {
        (fragment, 0..self.sources[fragment].cells.tile_count())
    }

    /// Returns whether to search for the rows of a chain when they are first read, which reads only the R-trees of
    /// fragments that overlap with these rows. This pays if all chains together have many fragments, and few of this
    /// chain's overlap at any one place.
    fn is_searched(&self, chain: &[usize], chained: &[usize], spans: &Spans) -> bool {
        let tiles = chained.iter().map(|&fragment| self.sources[fragment].cells.tile_count());
        let portions = self.query.portions;
        let are_many =
            chained.len() > portions.chained_fragments || tiles.fold(0, u64::saturating_add) > portions.chained_tiles;
        are_many
            && self.query.plan.can_be_searched()
            && chain.iter().all(|&fragment| self.sources[fragment].is_strictly_ordered())
            && deepest(chain.iter().map(|fragment| spans[fragment].whole()))
                <= chained.len() / portions.fragments_of_one_place.max(1)
    }

    /// Adds one merge of a chain of fragments. Reads nothing but footers.
    fn add_searched(&self, chain: &[usize], spans: &Spans, steps: &mut Vec<PlanStep>) -> Result<()> {
        let parts = self.merge_parts(chain.iter().map(|&fragment| self.all_tiles(fragment)), spans);
        let coincidence = coincidence::by_fragments(self.query, &self.stretches(&parts))?;
        steps.push(PlanStep::Merge(PlannedMerge { parts, coincidence }));
        Ok(())
    }

    /// Returns a merge of all cells at once, in each fragment's stored order, as libtiledb merges whatever the order
    /// is.
    pub fn everything_at_once(&self) -> MergeTask {
        let parts = self.sources.iter().filter(|source| source.cells.count() > 0);
        let parts = parts.map(|source| (source.fragment, 0..source.cells.count())).collect();
        MergeTask { parts, kind: MergeKind::AsTheyCome }
    }

    /// Adds the steps for a chain of fragments, according to the boxes of all their tiles.
    fn add_overlapping(&self, chain: &[usize], spans: &Spans, steps: &mut Vec<PlanStep>) -> Result<()> {
        let array = &self.query.array;
        let read = together(&*array.context().storage, array.path(), chain.to_vec(), |fragment| {
            spans[&fragment].tiles(&self.sources[fragment]).map(|tiles| (fragment, tiles))
        });
        let key_ranges = read.into_iter().collect::<Result<Vec<_>>>()?;
        for group in self.join_versions(groups(&key_ranges), &key_ranges) {
            match group {
                TileGroup::Alone(tiles) => self.add_alone(tiles, steps)?,
                TileGroup::Together(tiles) => self.add_merge(tiles, spans, steps)?,
            }
        }
        Ok(())
    }

    /// Joins groups if a fragment's next group may continue with an older cell of the same coordinates.
    fn join_versions(&self, parts: Vec<TileGroup>, key_ranges: &[(usize, &KeyRanges)]) -> Vec<TileGroup> {
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

    /// Adds the steps for tiles that no tile of another fragment overlaps.
    fn add_alone(&self, (fragment, places): TilesOfFragment, steps: &mut Vec<PlanStep>) -> Result<()> {
        let source = &self.sources[fragment];
        let cells = source.cells;
        if source.has_versions {
            let span = FragmentSpan::new(source)?;
            span.tiles(source)?;
            return self.add_merge(vec![(fragment, places)], &HashMap::from([(fragment, Arc::new(span))]), steps);
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

    fn add_filter(&self, steps: &mut Vec<PlanStep>, fragment: usize, positions: Range<u64>) {
        if let Some(PlanStep::Task(task)) = steps.last_mut()
            && task.kind == MergeKind::Filter
            && task.cells() < self.query.portions.segment_rows
            && let [(last, before)] = &mut task.parts[..]
            && *last == fragment
            && before.end == positions.start
        {
            before.end = positions.end;
            return;
        }
        steps.push(PlanStep::Task(MergeTask { parts: vec![(fragment, positions)], kind: MergeKind::Filter }));
    }

    fn add_merge(&self, tiles: Vec<TilesOfFragment>, spans: &Spans, steps: &mut Vec<PlanStep>) -> Result<()> {
        let parts = self.merge_parts(tiles.into_iter(), spans);
        if self.query.plan.is_rounded() {
            let parts = parts.into_iter().map(|part| (part.fragment, part.positions)).collect();
            steps.push(PlanStep::Task(MergeTask { parts, kind: MergeKind::NewestThatMeet }));
            return Ok(());
        }
        let coincidence = coincidence::by_tiles(self.query, &self.stretches(&parts))?;
        steps.push(PlanStep::Merge(PlannedMerge { parts, coincidence }));
        Ok(())
    }

    fn merge_parts(&self, tiles: impl Iterator<Item = TilesOfFragment>, spans: &Spans) -> Vec<MergePart> {
        let part = |(fragment, places): TilesOfFragment| {
            let cells = self.sources[fragment].cells;
            let positions = cells.positions_of(places.start).start..cells.positions_of(places.end).start;
            MergePart { fragment, positions, span: spans[&fragment].clone() }
        };
        tiles.map(part).collect()
    }

    fn stretches(&self, parts: &[MergePart]) -> Vec<TileStretch<'_>> {
        let sources = parts.iter().map(|part| &self.sources[part.fragment]);
        sources.zip(parts).map(|(source, part)| TileStretch { source, positions: part.positions.clone() }).collect()
    }
}

/// Returns the fragments of a group whose key ranges overlap.
fn chain_of(group: &TileGroup) -> impl Iterator<Item = usize> + '_ {
    let tiles = if matches!(group, TileGroup::Together(_)) { tiles_of(group) } else { &[] };
    tiles.iter().map(|(fragment, _)| *fragment)
}

/// Returns the largest number of spans that overlap at any one place.
fn deepest<'a>(spans: impl Iterator<Item = &'a KeyRanges>) -> usize {
    let (mut lows, mut highs): (Vec<_>, Vec<_>) = spans.filter_map(|span| span.low(0).zip(span.high(0))).unzip();
    lows.sort_unstable();
    highs.sort_unstable();
    let mut ended = 0;
    let open = lows.iter().zip(1..).map(|(low, begun)| {
        while highs.get(ended).is_some_and(|high| high < low) {
            ended += 1;
        }
        begun - ended
    });
    open.max().unwrap_or(0)
}

fn tiles_of(part: &TileGroup) -> &[TilesOfFragment] {
    match part {
        TileGroup::Alone(tiles) => std::slice::from_ref(tiles),
        TileGroup::Together(tiles) => tiles,
    }
}

fn add_slab(steps: &mut Vec<PlanStep>, fragment: usize, positions: Range<u64>) {
    match steps.last_mut() {
        Some(PlanStep::CellSlab { fragment: last, positions: before })
            if *last == fragment && before.end == positions.start =>
        {
            before.end = positions.end;
        }
        _ => steps.push(PlanStep::CellSlab { fragment, positions }),
    }
}
