//! The names of fragments, fields and fates in an explanation.

use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::origin::{FragmentState, ValuePart};
use tilefs_tree::select::time;

/// Returns the name of a fragment by its number in the array's folder.
pub fn fragment(array: &OpenedArray, number: usize) -> &str {
    array.folder().fragment(number).map_or("", |entry| entry.name())
}

/// Returns the first and the last time of a fragment, in milliseconds since 1970.
pub fn times(array: &OpenedArray, number: usize) -> (u64, u64) {
    array.folder().fragment(number).map_or((0, 0), |entry| (entry.times.t1, entry.times.t2))
}

/// Returns when a fragment was written in ISO 8601.
pub fn when(array: &OpenedArray, number: usize) -> String {
    match times(array, number) {
        (first, last) if first == last => time::extended(first),
        (first, last) => format!("{} to {}", time::extended(first), time::extended(last)),
    }
}

/// Returns the word for a state of a fragment.
pub fn state(state: FragmentState) -> &'static str {
    match state {
        FragmentState::Counts(_) => "counts",
        FragmentState::Later => "later",
        FragmentState::Earlier => "earlier",
        FragmentState::PartlyOutside => "partly_outside",
        FragmentState::Replaced(_) => "replaced",
        FragmentState::InOriginals => "in_originals",
    }
}

/// Returns why a fragment does not count, as the end of a sentence; empty if it does.
pub fn reason(array: &OpenedArray, state: FragmentState) -> String {
    match state {
        FragmentState::Counts(_) => String::new(),
        FragmentState::Later => "written later than the time asked for".to_owned(),
        FragmentState::Earlier => "written earlier than the times asked for".to_owned(),
        FragmentState::PartlyOutside => "written over times of which some are not asked for".to_owned(),
        FragmentState::Replaced(Some(by)) => format!("replaced by the consolidated fragment {}", fragment(array, by)),
        FragmentState::Replaced(None) => "replaced by a consolidation".to_owned(),
        FragmentState::InOriginals => "the fragments of which it was made are read in its place".to_owned(),
    }
}

/// Returns the word for a part of a value.
pub fn part(part: ValuePart) -> &'static str {
    match part {
        ValuePart::Values => "values",
        ValuePart::Offsets => "offsets",
        ValuePart::Validity => "validity",
    }
}
