//! Which of the cells with the same coordinates is shown, and why the others are not: the rules of a merge, for a few
//! cells. The map of rows has the last word on what is shown; tests compare the two.

use std::collections::HashMap;

use super::candidates::CellCandidate;
use super::place::CellFate;

/// Returns what became of each candidate, which are in the order of age of their fragments and, within a fragment, in
/// stored order. Cells with other coordinates do not matter to each other.
pub(super) fn fates(candidates: &[CellCandidate], allows_duplicates: bool) -> Vec<CellFate> {
    let mut newest: HashMap<Vec<u8>, &CellCandidate> = HashMap::new();
    for candidate in candidates.iter().filter(|one| counts(one)) {
        newest
            .entry(candidate.identity())
            .and_modify(|known| {
                if replaces(candidate, known) {
                    *known = candidate;
                }
            })
            .or_insert(candidate);
    }
    let fate = |candidate: &CellCandidate| {
        if candidate.state.visible().is_none() {
            return CellFate::InFragment(candidate.state);
        }
        if !candidate.is_present {
            return CellFate::OutsideOfTime(candidate.age.0);
        }
        let newest = newest.get(&candidate.identity()).filter(|_| !allows_duplicates);
        match newest {
            Some(newest) if newest.age > candidate.age => CellFate::Overwritten(newest.place.clone()),
            // A fragment that was written at once may have a cell twice, and then both are rows.
            Some(newest) if newest.place != candidate.place && candidate.has_versions => {
                CellFate::Tied(newest.place.clone())
            }
            _ => candidate.deletion.clone().map_or(CellFate::Shown, CellFate::Deleted),
        }
    };
    candidates.iter().map(fate).collect()
}

fn counts(candidate: &CellCandidate) -> bool {
    candidate.state.visible().is_some() && candidate.is_present
}

/// Returns whether a cell hides an earlier one with the same coordinates. Of cells with the same time in one fragment,
/// the first in the last tile that has one counts.
fn replaces(candidate: &CellCandidate, known: &CellCandidate) -> bool {
    candidate.age > known.age || candidate.age == known.age && candidate.place.tile > known.place.tile
}
