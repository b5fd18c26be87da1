//! Selections by labels: `lat=40..50` selects the cells along a dimension by the values that label them.
//!
//! The array locates the values; here, ranges of values become ranges of the dimension's coordinates.

use super::bounds::{Addressing, DimensionBounds, Label, integer_ends, scalar};
use super::error::{Result, SelectionError};
use super::progression::Progression;
use super::ranges::{Selected, counted, uncounted};
use super::syntax::DimensionText;

/// Returns the coordinates of `dimension` that ranges of a label select.
///
/// # Errors
/// Fails if a range does not parse, or no cell has such a label; with the kind `Unread` if labels cannot be read.
pub fn of_label(
    text: &DimensionText<'_>,
    by: Addressing,
    label: &dyn Label,
    dimension: &DimensionBounds,
) -> Result<Selected> {
    if by == Addressing::Position {
        let message = format!("a label has no positions of its own: use slice/, or positions of {}", dimension.name);
        return Err(SelectionError::syntax(text.whole, message));
    }
    let unread = |error| SelectionError::unread(text.whole, error);
    let bounds = label.bounds().map_err(unread)?;
    if bounds.limit.is_none() && bounds.is_number() {
        return Err(SelectionError::outside(text.whole, "no cell has a value of this label"));
    }
    let domain = dimension.domain.as_ref().and_then(integer_ends);
    let limit = dimension.limit.as_ref().and_then(integer_ends);
    let (Some((origin, _)), Some((lowest, highest))) = (domain, limit) else {
        return Err(SelectionError::syntax(text.whole, "the labelled dimension has no positions"));
    };
    let mut progressions = Vec::new();
    for range in &text.ranges {
        let valid = |error: SelectionError| error.with_valid(|| bounds.valid());
        let (low, high) = if bounds.is_counted() {
            match counted(range, &bounds).map_err(valid)? {
                None => continue,
                Some(values) if values.step == 1 => {
                    let end = |value| Some(scalar(bounds.datatype, value));
                    (end(values.first), end(values.last()))
                }
                Some(_) => return Err(SelectionError::syntax(range.whole, "labels are selected without steps")),
            }
        } else {
            uncounted(range, &bounds).map_err(valid)?
        };
        let positions = label.positions(low.as_ref(), high.as_ref()).map_err(unread)?;
        let runs = positions.into_iter().filter_map(|run| {
            let first = origin + i128::from(run.start);
            Progression::between(first, origin + i128::from(run.end) - 1, 1)?.clipped(lowest, highest)
        });
        let before = progressions.len();
        progressions.extend(runs);
        if progressions.len() == before {
            return Err(valid(SelectionError::outside(range.whole, "no cell has such a label")));
        }
    }
    Ok(Selected::Counted(progressions))
}
