//! The fragments that a consolidated fragment replaces, as long as they are not vacuumed.
//!
//! If two fragments have a cell with the same coordinates and the same time, the cell of the later fragment in the
//! order of the array counts. In the fragment that a consolidation makes of them, both cells have this time, and
//! nothing shows which cell came from which fragment: most releases store such cells in no order. While the replaced
//! fragments are still there, they are read in place of the consolidated one, so that a consolidation changes no value.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_format::name::TimestampedName;
use tilefs_format::scalar::Range;
use tilefs_format::schema::{ArraySchema, ArrayType, Dimension};

use crate::array::directory::window::TimeWindow;
use crate::array::folder::{ArrayFolder, Outline};

/// A fragment that replaces more than this many is read itself, unless its reader asks for what it replaced.
const MOST_REPLACED: usize = 1024;

impl ArrayFolder {
    /// Returns the fragments to read in `window`, oldest first: the visible ones, but in place of a consolidated
    /// fragment the fragments that it replaces, if all of them are still there, and the reader asks for them or they may
    /// have cells with the same coordinates and the same time.
    ///
    /// # Errors
    /// Those of the storage, if footers have to be read.
    pub(crate) fn fragments_to_read(&self, window: TimeWindow, schema: &ArraySchema) -> Result<Vec<usize>> {
        let is_sparse = schema.array_type == ArrayType::Sparse;
        let visible = self.directory().visible_fragments(window, is_sparse);
        let reads_originals = self.context.reads_originals;
        if !reads_originals && (!is_sparse || schema.allows_duplicates) {
            return Ok(visible);
        }
        let replaced = self.directory().replaced_fragments();
        if replaced.is_empty() {
            return Ok(visible);
        }
        let mut read = Vec::with_capacity(visible.len());
        for &fragment in &visible {
            let parts = match reads_originals {
                true => self.parts_of(fragment, &replaced, usize::MAX),
                false => self.parts_with_ties(fragment, &replaced, schema)?,
            };
            match parts {
                Some(parts) => {
                    read.extend(parts.into_iter().filter(|part| self.directory().is_in_force(*part, window)));
                }
                None => read.push(fragment),
            }
        }
        read.sort_unstable_by_key(|&fragment| (self.times(fragment).map(|times| times.t1), fragment));
        read.dedup();
        Ok(read)
    }

    /// Returns the fragments of which a consolidated one was made, if some of their cells may tie, and all of them can
    /// be read.
    fn parts_with_ties(
        &self,
        fragment: usize,
        replaced: &HashMap<usize, Vec<usize>>,
        schema: &ArraySchema,
    ) -> Result<Option<Vec<usize>>> {
        let Some(parts) = self.parts_of(fragment, replaced, MOST_REPLACED) else { return Ok(None) };
        let times: Vec<TimestampedName> = parts.iter().filter_map(|&part| self.times(part)).collect();
        // By names alone, before anything is read. Parts are in the order of their start times.
        if !times.windows(2).any(|pair| pair[1].t1 <= pair[0].t2) {
            return Ok(None);
        }
        if !self.readable(fragment)?.is_some_and(|outline| outline.facts.has_timestamps) {
            return Ok(None);
        }
        self.read_outlines(&parts);
        let mut boxes = Vec::with_capacity(parts.len());
        for &part in &parts {
            let Some(outline) = self.readable(part)? else { return Ok(None) };
            boxes.push(outline.facts.non_empty_ranges().unwrap_or_default());
        }
        // Lossy filters move coordinates, and releases compare strings by different rules.
        let is_exact = |dimension: &Dimension| !dimension.is_variable() && !dimension.filters.is_lossy();
        let exact: Vec<usize> = match schema.coords_filters.is_lossy() {
            true => Vec::new(),
            false => (0..schema.dimensions.len()).filter(|&number| is_exact(&schema.dimensions[number])).collect(),
        };
        let may_tie = |first: usize, second: usize| {
            times[second].t1 <= times[first].t2 && overlap(&boxes[first], &boxes[second], &exact)
        };
        let ties = (0..parts.len()).any(|first| (first + 1..parts.len()).any(|second| may_tie(first, second)));
        Ok(ties.then_some(parts))
    }

    /// Returns the facts of a fragment; `None` if it is damaged, or was vacuumed meanwhile.
    fn readable(&self, fragment: usize) -> Result<Option<Arc<Outline>>> {
        match self.outline(fragment) {
            Ok(outline) => Ok(Some(outline)),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) if error.is_transient() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Returns the fragments of which a consolidated one was made, in one consolidation or several, by their start
    /// times. `None` if it was not, they are more than `most`, or the lists of what was replaced contradict each other.
    pub(crate) fn parts_of(
        &self,
        fragment: usize,
        replaced: &HashMap<usize, Vec<usize>>,
        most: usize,
    ) -> Option<Vec<usize>> {
        replaced.get(&fragment)?;
        let (mut parts, mut seen, mut left) = (Vec::new(), HashSet::new(), vec![fragment]);
        while let Some(next) = left.pop() {
            let Some(sources) = replaced.get(&next) else {
                parts.push(next);
                continue;
            };
            let times = self.times(next)?;
            let is_within =
                |source: &usize| self.times(*source).is_some_and(|own| times.t1 <= own.t1 && own.t2 <= times.t2);
            if !seen.insert(next) || sources.is_empty() || !sources.iter().all(is_within) {
                return None;
            }
            left.extend(sources);
            if left.len() + parts.len() > most {
                return None;
            }
        }
        parts.sort_unstable_by_key(|&part| (self.times(part).map(|times| times.t1), part));
        parts.dedup();
        Some(parts)
    }

    fn times(&self, fragment: usize) -> Option<TimestampedName> {
        self.fragment(fragment).map(|entry| entry.times)
    }
}

/// Returns whether two boxes overlap along all of these dimensions.
fn overlap(a: &[Range], b: &[Range], dimensions: &[usize]) -> bool {
    let along = |&dimension: &usize| match (a.get(dimension), b.get(dimension)) {
        (Some(a), Some(b)) => a.overlaps(b),
        _ => false,
    };
    dimensions.iter().all(along)
}
