//! Plans how the rows of an array are found: which cells are rows as they are stored, and which have to be merged or
//! gone through one by one.

use std::ops::Range;

use super::build::Query;
use super::overlap::{KeyRange, TileGroup, TilesOfFragment, groups, loosen, tighten};
use super::rows::MOST_MERGED;
use super::selection::Share;
use super::stream::FragmentSource;
use super::task::MergeTask;
use crate::error::{Error, Locate, Result};
use crate::format::scalar::Range as CoordinateRange;
use crate::threads;

/// Cells of one task where cells are gone through one by one.
const TASK_CELLS: u64 = 1 << 20;

/// Tasks per thread that a merge is cut into, so that all threads end at about the same time.
const TASKS_PER_THREAD: usize = 4;

/// What becomes of some cells.
pub enum Step {
    /// All are rows.
    CellSlab {
        fragment: usize,
        positions: Range<u64>,
    },
    Merge(MergeTask),
}

/// Plans how the rows of an array are found.
pub struct Planner<'a> {
    pub query: &'a Query,
    pub sources: &'a [FragmentSource<'a>],
}

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
        let key_ranges = fragments.iter().map(|&fragment| Ok((fragment, vec![self.span_of_fragment(fragment)?])));
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
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more fragments than can be merged.
    pub fn everything_at_once(&self) -> Result<Step> {
        let parts = self.sources.iter().filter(|source| source.cells.count() > 0);
        let parts = parts.map(|source| (source.fragment, 0..source.cells.count())).collect();
        let task = MergeTask { parts, compares: true, accepts_disorder: true };
        check_parts(&task)?;
        Ok(Step::Merge(task))
    }

    fn span_of_fragment(&self, fragment: usize) -> Result<KeyRange> {
        let outline = self.query.array.outline(fragment)?;
        let ranges = outline.facts.non_empty_domain.as_deref();
        let ranges = ranges.ok_or_else(|| Error::damaged("cells, but no non-empty domain"));
        ranges.and_then(|ranges| self.key_range(ranges)).in_field("non-empty domain").map_err(|error| {
            error.in_fragment(self.query.array.fragment_name(fragment)).in_array(self.query.array.path())
        })
    }

    /// Where cells in a box lie in the order.
    fn key_range(&self, ranges: &[CoordinateRange]) -> Result<KeyRange> {
        let (low, high) = self.query.plan.bounds(ranges)?;
        Ok(KeyRange { low: low.into(), high: high.into() })
    }

    /// Tiles of fragments that overlap as a whole.
    fn add_overlapping(&self, tiles: &[TilesOfFragment], steps: &mut Vec<Step>) -> Result<()> {
        let mut key_ranges = Vec::new();
        for (fragment, _) in tiles {
            key_ranges.push((*fragment, self.spans_of_tiles(*fragment)?));
        }
        for part in self.join_versions(groups(&key_ranges), &key_ranges) {
            match part {
                TileGroup::Alone(tiles) => self.add_alone(tiles, steps)?,
                TileGroup::Together(tiles) => self.add_merge(&tiles, &key_ranges, steps)?,
            }
        }
        Ok(())
    }

    fn spans_of_tiles(&self, fragment: usize) -> Result<Vec<KeyRange>> {
        let source = &self.sources[fragment];
        let name = self.query.array.fragment_name(fragment);
        let mbrs = source.mbrs()?;
        let (mut key_ranges, mut boxes, mut ranges) = (Vec::new(), mbrs.boxes(), Vec::new());
        for tile in source.cells.tiles() {
            let key_range = boxes.read(tile, &mut ranges).and_then(|()| self.key_range(&ranges));
            key_ranges.push(key_range.in_field("R-tree").in_fragment(name).in_array(self.query.array.path())?);
        }
        if source.is_surely_ordered() {
            tighten(&mut key_ranges)
        } else {
            loosen(&mut key_ranges)
        }
        Ok(key_ranges)
    }

    /// Joins parts between which a fragment may go on with an older cell of the same coordinates.
    fn join_versions(&self, parts: Vec<TileGroup>, key_ranges: &[(usize, Vec<KeyRange>)]) -> Vec<TileGroup> {
        let mut joined: Vec<TileGroup> = Vec::new();
        for part in parts {
            let touches = |before: &TileGroup| {
                tiles_of(before).iter().any(|(fragment, places)| {
                    let continues = tiles_of(&part).iter().any(|(other, _)| other == fragment);
                    let key_ranges =
                        key_ranges.iter().find(|(number, _)| number == fragment).map(|(_, key_ranges)| key_ranges);
                    continues
                        && self.sources[*fragment].has_versions
                        && key_ranges
                            .and_then(|key_ranges| {
                                key_ranges.get(places.end as usize - 1).zip(key_ranges.get(places.end as usize))
                            })
                            .is_some_and(|(last, next)| last.high >= next.low)
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
            let key_ranges = [(fragment, self.spans_of_tiles(fragment)?)];
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
                _ => add_filter(steps, fragment, positions),
            }
        }
        Ok(())
    }

    /// A merge, cut into several where the order allows it.
    fn add_merge(
        &self,
        tiles: &[TilesOfFragment],
        key_ranges: &[(usize, Vec<KeyRange>)],
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let whole: Vec<(usize, Range<u64>)> = tiles
            .iter()
            .map(|(fragment, places)| {
                let cells = self.sources[*fragment].cells;
                (*fragment, cells.positions_of(places.start).start..cells.positions_of(places.end).start)
            })
            .collect();
        let mut rest = MergeTask { parts: whole, compares: true, accepts_disorder: false };
        let wanted = tasks_of_merge(rest.cells(), threads::decoding());
        for cut in self.cuts(tiles, key_ranges, &rest, wanted)? {
            let mut before = MergeTask { parts: Vec::new(), ..rest };
            for (fragment, positions) in &mut rest.parts {
                let key_ranges = key_ranges
                    .iter()
                    .find(|(number, _)| number == fragment)
                    .map(|(_, key_ranges)| key_ranges.as_slice());
                let at = self.find(*fragment, positions.clone(), key_ranges.unwrap_or(&[]), &cut)?;
                before.parts.push((*fragment, positions.start..at));
                positions.start = at;
            }
            add_task(steps, before)?;
        }
        add_task(steps, rest)
    }

    /// Keys at which to cut a merge into about so many.
    fn cuts(
        &self,
        tiles: &[TilesOfFragment],
        key_ranges: &[(usize, Vec<KeyRange>)],
        task: &MergeTask,
        wanted: usize,
    ) -> Result<Vec<Vec<u64>>> {
        if wanted < 2 {
            return Ok(Vec::new());
        }
        let mut keys: Vec<Vec<u64>> = Vec::new();
        for (fragment, places) in tiles {
            let Some((_, key_ranges)) = key_ranges.iter().find(|(number, _)| number == fragment) else { continue };
            let key_ranges = key_ranges.get(places.start as usize..places.end as usize).unwrap_or(&[]);
            keys.extend(key_ranges.iter().map(|key_range| key_range.low.to_vec()));
        }
        keys.sort_unstable();
        keys.dedup();
        if keys.len() < 8 * wanted {
            // Few large tiles, or boxes that tell nothing: look into them.
            keys.clear();
            let step = task.cells() / (4 * wanted as u64);
            for (fragment, positions) in &task.parts {
                for position in positions.clone().step_by(step.max(1) as usize) {
                    keys.push(self.sources[*fragment].key_at(position)?);
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let mut cuts: Vec<Vec<u64>> =
            (1..wanted).map(|number| self.query.plan.decisive(&keys[number * keys.len() / wanted]).to_vec()).collect();
        cuts.dedup();
        Ok(cuts)
    }

    /// The first position whose cell does not come before `cut`.
    fn find(&self, fragment: usize, positions: Range<u64>, key_ranges: &[KeyRange], cut: &[u64]) -> Result<u64> {
        let source = &self.sources[fragment];
        let (mut low, mut high) = (positions.start, positions.end);
        // Tiles that end before the cut, and those that begin at or after it.
        let first = key_ranges.partition_point(|key_range| &key_range.high[..cut.len()] < cut) as u64;
        let last = key_ranges.partition_point(|key_range| &key_range.low[..cut.len()] < cut) as u64;
        low = low.max(source.cells.positions_of(first).start).min(high);
        high = high.min(source.cells.positions_of(last).start).max(low);
        while low < high {
            let middle = low + (high - low) / 2;
            if &source.key_at(middle)?[..cut.len()] < cut {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// Into how many tasks a merge is cut: where there are more than threads, so many that none works on alone at the end.
fn tasks_of_merge(cells: u64, threads: usize) -> usize {
    let most = TASKS_PER_THREAD * threads;
    match usize::try_from(cells / TASK_CELLS).map_or(most, |tasks| tasks.min(most)) {
        few if few <= threads => few,
        more => more.next_multiple_of(threads),
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

fn add_filter(steps: &mut Vec<Step>, fragment: usize, positions: Range<u64>) {
    if let Some(Step::Merge(task)) = steps.last_mut()
        && !task.compares
        && task.cells() < TASK_CELLS
        && let [(last, before)] = &mut task.parts[..]
        && *last == fragment
        && before.end == positions.start
    {
        before.end = positions.end;
        return;
    }
    steps.push(Step::Merge(MergeTask { parts: vec![(fragment, positions)], compares: false, accepts_disorder: false }));
}

fn add_task(steps: &mut Vec<Step>, mut task: MergeTask) -> Result<()> {
    task.parts.retain(|(_, positions)| !positions.is_empty());
    check_parts(&task)?;
    if !task.parts.is_empty() {
        steps.push(Step::Merge(task));
    }
    Ok(())
}

fn check_parts(task: &MergeTask) -> Result<()> {
    if task.parts.len() > MOST_MERGED {
        return Err(Error::unsupported(format!("{} overlapping fragments", task.parts.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_works_on_alone() {
        for (cells, threads, tasks) in [
            (0, 3, 0),
            (3 * TASK_CELLS, 3, 3),
            (4 * TASK_CELLS, 3, 6),
            (5 * TASK_CELLS, 9, 5),
            (100 * TASK_CELLS, 3, 12),
            (u64::MAX, 1, 4),
        ] {
            assert_eq!(tasks_of_merge(cells, threads), tasks, "{cells} cells, {threads} threads");
        }
    }
}
