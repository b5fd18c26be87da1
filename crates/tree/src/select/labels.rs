//! Selections by labels: `lat=40..50` selects the cells along a dimension by the values that label them.
//!
//! The array locates the values; here, ranges of values become ranges of the dimension's coordinates.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error;
use tilefs_format::scalar::Scalar;

use super::bounds::{DimensionBounds, integer_ends};
use super::error::{Result, SelectionError};
use super::progression::Progression;
use super::resolve::{Selected, counted, uncounted};
use super::syntax::DimensionText;
use super::{Addressing, scalar};

/// Values that label the cells along one dimension.
pub trait Label: Send + Sync {
    fn name(&self) -> &str;

    /// Returns the label in the form of a dimension: its type, with the least and the greatest value as limits.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn bounds(&self) -> error::Result<DimensionBounds>;

    /// Returns the positions of the values from `low` to `high`, both included, counted from the low end of the
    /// dimension's domain: ascending and disjoint.
    ///
    /// # Errors
    /// Fails if required values cannot be read, are not in the declared order, or are too many.
    fn positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> error::Result<Vec<Range<u64>>>;
}

/// A label of a dimension; equal only to itself.
#[derive(Clone)]
pub struct DimensionLabel(pub Arc<dyn Label>);

impl fmt::Debug for DimensionLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DimensionLabel").field(&self.0.name()).finish()
    }
}

impl PartialEq for DimensionLabel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

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
