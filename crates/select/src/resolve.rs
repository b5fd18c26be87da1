//! Resolves a parsed selection against the dimensions.

use std::collections::HashMap;

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::Range;

use super::bounds::{Addressing, DimensionBounds, SelectableLabel, integer_ends};
use super::error::{Result, SelectionError};
use super::labels::of_label;
use super::progression::Progression;
use super::ranges::{Selected, counted, uncounted};
use super::syntax::DimensionText;
use super::token::SelectionToken;
use super::{position, value};

/// The most names of a kind that an error lists.
const MAX_NAMES: usize = 10;

/// Returns the selection along each dimension, in order.
///
/// # Errors
/// The first error, from left to right.
pub fn resolve(texts: &[DimensionText<'_>], by: Addressing, dimensions: &[DimensionBounds]) -> Result<Vec<Selected>> {
    let mut selected: Vec<Option<Selected>> = vec![None; dimensions.len()];
    // By dimension, the text that gave its ranges, and the label by which it did.
    let mut given_by: HashMap<usize, (&DimensionText<'_>, Option<&str>)> = HashMap::new();
    let mut numbers: HashMap<&str, (usize, Option<&SelectableLabel>)> = HashMap::new();
    for (place, text) in texts.iter().enumerate() {
        let (number, label) = match text.name {
            None if place > 0 && texts[place - 1].name.is_some() => {
                let (before, own) = (texts[place - 1].whole.text, text.whole.text);
                let message = format!(
                    "ranges without a name come before those with one; to add {own} to {before}, write {before}+{own}"
                );
                return Err(SelectionError::syntax(text.whole, message));
            }
            None if place >= dimensions.len() => {
                let count = dimensions.len();
                let dimensions = if count == 1 { "one dimension".to_owned() } else { format!("{count} dimensions") };
                return Err(SelectionError::syntax(text.whole, format!("the array has only {dimensions}")));
            }
            None => (place, None),
            Some(name) => {
                if numbers.is_empty() {
                    let all = || dimensions.iter().enumerate();
                    let labels = all().flat_map(|(number, one)| one.labels.iter().map(move |label| (number, label)));
                    numbers.extend(labels.map(|(number, label)| (label.0.name(), (number, Some(label)))));
                    numbers.extend(all().map(|(number, one)| (one.name.as_str(), (number, None))));
                }
                let known = numbers.get(&*value::decoded(name)?).copied();
                known.ok_or_else(|| unknown_name(name, dimensions, &[]).with_guess(text.whole.text, false))?
            }
        };
        let (Some(bounds), Some(slot)) = (dimensions.get(number), selected.get_mut(number)) else { continue };
        let by_label = label.map(|label| label.0.name());
        if let Some(before) = given_by.insert(number, (text, by_label)) {
            return Err(selected_twice(text, by_label, before, &called(bounds, number)));
        }
        let (selected, called) = match label {
            None => (of_dimension(text, by, bounds), format!("dimension {}", called(bounds, number))),
            Some(label) => (of_label(text, by, &*label.0, bounds), format!("label {}", label.0.name())),
        };
        let explained =
            |error: SelectionError| SelectionError { message: format!("{called}: {}", error.message), ..error };
        // Dates have dashes, too.
        let is_date = label.is_none() && bounds.datatype.time_unit().is_some();
        let is_integral = label.is_none() && bounds.is_counted();
        let guessed = |error: SelectionError| match is_date {
            true => error,
            false => error.with_guess(text.whole.text, is_integral),
        };
        *slot = Some(selected.map_err(|error| guessed(explained(error)))?);
    }
    Ok(selected.into_iter().zip(dimensions).map(|(one, bounds)| one.unwrap_or_else(|| whole(bounds))).collect())
}

/// Returns the error of a dimension whose ranges the text `before` gave, each by a label or not.
fn selected_twice(
    text: &DimensionText<'_>,
    by_label: Option<&str>,
    (before, label_before): (&DimensionText<'_>, Option<&str>),
    dimension: &str,
) -> SelectionError {
    let (before, own) = (before.whole.text, text.whole.text);
    let meant = if label_before == by_label {
        let added = own.split_once('=').map_or(own, |(_, ranges)| ranges);
        format!("to add {added}, write {before}+{added}")
    } else {
        "write one of them".to_owned()
    };
    SelectionError::syntax(text.whole, format!("{before} selects along {dimension} already; {meant}"))
}

/// Returns the error of a name that is of nothing by which `dimensions` and `attributes` are selected.
pub(super) fn unknown_name(
    name: SelectionToken<'_>,
    dimensions: &[DimensionBounds],
    attributes: &[&str],
) -> SelectionError {
    let listed = |names: &[&str]| {
        let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
        names[..names.len().min(MAX_NAMES)].join(", ") + more
    };
    let own: Vec<&str> = dimensions.iter().map(|one| one.name.as_str()).collect();
    let labels: Vec<&str> = dimensions.iter().flat_map(|one| &one.labels).map(|label| label.0.name()).collect();
    let (mut kinds, mut message) = ("dimension".to_owned(), format!("; there are: {}", listed(&own)));
    for (kind, names) in [("label", labels.as_slice()), ("attribute", attributes)] {
        if !names.is_empty() {
            kinds += &format!(" or {kind}");
            message += &format!("; and the {kind}s {}", listed(names));
        }
    }
    SelectionError::syntax(name, format!("no such {kinds}{message}"))
}

fn called(bounds: &DimensionBounds, number: usize) -> String {
    if bounds.name.is_empty() { format!("number {number}") } else { bounds.name.clone() }
}

/// Returns the whole shown range of a dimension.
fn whole(bounds: &DimensionBounds) -> Selected {
    if !bounds.is_counted() {
        let range = match bounds.datatype.kind() {
            Kind::Bytes => bounds.limit.as_ref(),
            _ => bounds.shown.as_ref(),
        };
        return Selected::Ranges(match range {
            Some(Range { low, high }) => vec![(Some(low.clone()), Some(high.clone()))],
            None if bounds.datatype.kind() == Kind::Bytes => vec![(None, None)],
            None => Vec::new(),
        });
    }
    let shown = bounds.shown.as_ref().and_then(integer_ends);
    Selected::Counted(shown.and_then(|(low, high)| Progression::between(low, high, 1)).into_iter().collect())
}

fn of_dimension(text: &DimensionText<'_>, by: Addressing, bounds: &DimensionBounds) -> Result<Selected> {
    let valid = |error: SelectionError| match by {
        Addressing::Coordinate => error.with_valid(|| bounds.valid()),
        Addressing::Position => error.with_valid(|| position::valid(bounds)),
    };
    if bounds.is_counted() {
        let mut progressions = Vec::with_capacity(text.ranges.len());
        for range in &text.ranges {
            let progression = match by {
                Addressing::Coordinate => counted(range, bounds),
                Addressing::Position => position::range(range, bounds),
            };
            progressions.extend(progression.map_err(valid)?);
        }
        return Ok(Selected::Counted(progressions));
    }
    if by == Addressing::Position {
        return Err(SelectionError::syntax(text.whole, "it has no positions, only coordinates: use slice/"));
    }
    let mut ranges = Vec::with_capacity(text.ranges.len());
    for range in &text.ranges {
        ranges.push(uncounted(range, bounds).map_err(valid)?);
    }
    Ok(Selected::Ranges(ranges))
}
