//! Determines which cells of a fragment are visible: by when each was written and deleted, by the array's deletes,
//! and by the conditions of a reader.

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::FragmentField;

use super::cells::TileCells;
use super::conditions::{ConditionOfFragment, RowCondition};
use super::deletes::{Delete, FragmentCondition};
use super::files::FixedFile;
use crate::array::OpenedArray;

/// The visibility of consecutive cells. Each list is empty if it would have the same entry for all cells.
#[derive(Debug, Default)]
pub struct CellVisibility {
    /// The time of each cell, if it is not the fragment's time.
    pub times: Vec<u64>,
    /// Whether each cell is present in the window of time. An absent cell does not hide others with the same
    /// coordinates.
    pub present: Vec<bool>,
    /// Whether each cell is shown, if it is present and the newest of its coordinates. A cell that is not shown does
    /// hide others.
    pub shown: Vec<bool>,
}

impl CellVisibility {
    pub fn is_present(&self, cell: usize) -> bool {
        self.present.get(cell).is_none_or(|present| *present)
    }

    pub fn is_shown(&self, cell: usize) -> bool {
        self.shown.get(cell).is_none_or(|shown| *shown)
    }

    /// Marks `count` cells as present unless they are marked already, so that the caller can clear some.
    pub fn start_present(&mut self, count: usize) -> &mut [bool] {
        if self.present.is_empty() {
            self.present.resize(count, true);
        }
        &mut self.present
    }
}

/// The data that determines which cells of one fragment are visible.
pub struct CellFilter<'a> {
    array: &'a OpenedArray,
    /// The times of the cells, if they have their own and these matter.
    times: Option<FixedFile>,
    /// Whether some of the fragment's times may lie outside the window.
    is_partial: bool,
    deletion_times: Option<FixedFile>,
    deletes: Vec<FragmentCondition<'a>>,
    conditions: Vec<ConditionOfFragment<'a>>,
}

impl<'a> CellFilter<'a> {
    /// Returns the filter of a visible fragment. With `compares_times`, the filter reads the cells' own times, if there
    /// are any, to find the newest of several cells.
    ///
    /// # Errors
    /// Any damage in the metadata that determine visibility.
    pub fn new(
        array: &'a OpenedArray,
        fragment: usize,
        deletes: &'a [Delete],
        selected_by: &'a [RowCondition],
        compares_times: bool,
    ) -> Result<Self> {
        let (outline, number) = (array.outline(fragment)?, array.number(fragment));
        let facts = &outline.facts;
        let entry = array.folder().fragment(number).ok_or_else(|| Error::damaged("no such fragment"))?;
        let is_partial = facts.has_timestamps && !array.window().contains(&entry.times);
        let mut wants_times = is_partial || (compares_times && facts.has_timestamps);
        let mut applied = Vec::new();
        // A delete does not apply to cells that were written after it.
        let later = deletes.iter().filter(|delete| delete.time >= entry.times.t1);
        for delete in later {
            if array.folder().processed_conditions(number)?.contains(&delete.marker) {
                continue;
            }
            let by_cell = facts.has_timestamps && delete.time <= entry.times.t2;
            wants_times |= by_cell;
            applied.push(FragmentCondition::new(array, fragment, delete, by_cell)?);
        }
        let visibility = |wanted: bool, field: FragmentField| -> Result<Option<FixedFile>> {
            if wanted { FixedFile::of_marks(array, fragment, field).map(Some) } else { Ok(None) }
        };
        let times = visibility(wants_times, FragmentField::Timestamps)?;
        let deletion_times = visibility(facts.has_delete_metadata, FragmentField::DeleteTimestamps)?;
        let conditions = selected_by.iter().map(|condition| ConditionOfFragment::new(array, fragment, condition));
        let conditions = conditions.collect::<Result<_>>()?;
        Ok(CellFilter { array, times, is_partial, deletion_times, deletes: applied, conditions })
    }

    /// Returns whether footers and times show that every cell of a visible fragment is present and shown.
    ///
    /// # Errors
    /// Any damage in the footer.
    pub fn surely_keeps_all(array: &OpenedArray, fragment: usize, deletes: &[Delete]) -> Result<bool> {
        let (facts, number) = (&array.outline(fragment)?.facts, array.number(fragment));
        let entry = array.folder().fragment(number).ok_or_else(|| Error::damaged("no such fragment"))?;
        let is_partial = facts.has_timestamps && !array.window().contains(&entry.times);
        let is_deleted_from = deletes.iter().any(|delete| delete.time >= entry.times.t1);
        Ok(!is_partial && !facts.has_delete_metadata && !is_deleted_from)
    }

    /// Returns whether every cell is present and shown.
    pub fn keeps_all(&self) -> bool {
        !self.is_partial && self.deletion_times.is_none() && self.deletes.is_empty() && self.conditions.is_empty()
    }

    /// Determines the visibility of some cells of a tile.
    ///
    /// # Errors
    /// Any damage in the data that determines visibility.
    pub fn mark(&self, cells: TileCells, visibility: &mut CellVisibility) -> Result<()> {
        let window = self.array.window();
        visibility.times.clear();
        visibility.present.clear();
        visibility.shown.clear();
        if let Some(file) = &self.times {
            numbers(file, cells, &mut visibility.times).in_field("t")?;
            if self.is_partial {
                let inside = |time: &u64| (window.start..=window.end).contains(time);
                visibility.present.extend(visibility.times.iter().map(inside));
            }
        }
        if let Some(file) = &self.deletion_times {
            let mut deleted = Vec::new();
            numbers(file, cells, &mut deleted).in_field("dt")?;
            // The largest time stands for "never". In a window that reaches to the end of time, only such cells are
            // alive.
            let lives = |time: &u64| *time > window.end || *time == u64::MAX;
            visibility.shown.extend(deleted.iter().map(lives));
        }
        if !self.deletes.is_empty() || !self.conditions.is_empty() {
            visibility.shown.resize(cells.count as usize, true);
        }
        for delete in &self.deletes {
            delete.apply(cells, &visibility.times, &mut visibility.shown)?;
        }
        for condition in &self.conditions {
            condition.apply(cells, &mut visibility.shown)?;
        }
        Ok(())
    }
}

fn numbers(file: &FixedFile, cells: TileCells, out: &mut Vec<u64>) -> Result<()> {
    let mut bytes = vec![0; cells.count as usize * size_of::<u64>()];
    file.read(cells, &mut bytes)?;
    out.extend(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes));
    Ok(())
}
