//! Which fragments of an array's folder count, and why the others do not.

use std::collections::{HashMap, HashSet};

use tilefs_format::name::TimestampedName;

use crate::array::OpenedArray;

/// Whether the cells of a fragment count, or why they do not. Other fragments are given by their numbers in the
/// array's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentState {
    /// They count; this is the fragment's number among those that do, oldest first.
    Counts(usize),
    /// The fragment was written after the array's window of time.
    Later,
    /// The fragment was written before the window.
    Earlier,
    /// The fragment was written over a span of time of which the window has only a part.
    PartlyOutside,
    /// A consolidation replaced it by another fragment, if that is known.
    Replaced(Option<usize>),
    /// The fragments of which it was made are read in its place.
    InOriginals,
}

impl FragmentState {
    /// Returns the fragment's number among those that count, if it does.
    pub fn visible(self) -> Option<usize> {
        match self {
            FragmentState::Counts(number) => Some(number),
            _ => None,
        }
    }
}

/// Returns the state of each committed fragment, by its number in the array's folder. Reads nothing.
pub fn fragment_states(array: &OpenedArray) -> Vec<FragmentState> {
    let (directory, window) = (array.folder().directory(), array.window());
    let is_sparse = array.schema().is_sparse();
    let counting: HashMap<usize, usize> =
        array.fragments.iter().enumerate().map(|(visible, &number)| (number, visible)).collect();
    let visible: HashSet<usize> = directory.visible_fragments(window, is_sparse).into_iter().collect();
    let in_force: HashSet<usize> = directory.committed_fragments(window, is_sparse).into_iter().collect();
    let replacements: HashMap<usize, usize> = directory
        .replaced_fragments()
        .into_iter()
        .filter(|(by, _)| in_force.contains(by))
        .flat_map(|(by, replaced)| replaced.into_iter().map(move |number| (number, by)))
        .collect();
    let state = |number: usize, times: &TimestampedName| match counting.get(&number) {
        Some(&visible) => FragmentState::Counts(visible),
        None if visible.contains(&number) => FragmentState::InOriginals,
        None if in_force.contains(&number) => FragmentState::Replaced(replacements.get(&number).copied()),
        None if times.t1 > window.end => FragmentState::Later,
        None if times.t2 < window.start => FragmentState::Earlier,
        None => FragmentState::PartlyOutside,
    };
    directory.fragments().iter().enumerate().map(|(number, entry)| state(number, &entry.times)).collect()
}
