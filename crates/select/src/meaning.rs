//! A selection in plain words: the cells it selects along each dimension, or the reason why it is wrong.

use tilefs_format::scalar::Scalar;

use super::bounds::{Addressing, DimensionBounds, scalar};
use super::error::{Result, explain};
use super::progression::Progression;
use super::ranges::Selected;
use super::resolve::resolve;
use super::syntax;

/// Maximum number of ranges of a dimension that are shown; for more, only the number is.
const SHOWN: usize = 8;

/// Returns lines for people: the coordinates selected along each dimension. `Err` holds the selection with a caret
/// under the error, the reason, and the valid range.
pub fn meaning(selection: &str, by: Addressing, dimensions: &[DimensionBounds]) -> std::result::Result<String, String> {
    let selected = select(selection, by, dimensions).map_err(|error| explain(selection, &error))?;
    let mut lines = format!("{selection}\n");
    for (selected, bounds) in selected.iter().zip(dimensions) {
        let (count, mut ranges) = match selected {
            Selected::Counted(progressions) => {
                let count = progressions.iter().fold(0u128, |sum, one| sum.saturating_add(one.count));
                let ranges = progressions.iter().take(SHOWN + 1).map(|one| progression(*one, bounds));
                (format!("{count} coordinate{}", if count == 1 { "" } else { "s" }), ranges.collect::<Vec<_>>())
            }
            Selected::Ranges(ranges) => {
                let texts = ranges.iter().take(SHOWN + 1).map(|(low, high)| range(low.as_ref(), high.as_ref(), bounds));
                ("a range".to_owned(), texts.collect())
            }
        };
        if ranges.len() > SHOWN {
            ranges.truncate(SHOWN);
            ranges.push("...".to_owned());
        }
        let what = match ranges.len() {
            0 => "nothing".to_owned(),
            1 => format!("{count}: {}", ranges.join("")),
            _ => format!("{count}: {}", ranges.join(" + ")).replacen("a range", "ranges", 1),
        };
        lines.push_str(&format!("  {}: {what}\n", bounds.name));
    }
    Ok(lines)
}

fn select(selection: &str, by: Addressing, dimensions: &[DimensionBounds]) -> Result<Vec<Selected>> {
    resolve(&syntax::parse(selection)?, by, dimensions)
}

fn progression(one: Progression, bounds: &DimensionBounds) -> String {
    let text = |value: i128| bounds.coordinate_text(&scalar(bounds.datatype, value));
    match (one.count, one.step) {
        (1, _) => text(one.first),
        (_, 1) => format!("{}..{}", text(one.first), text(one.last())),
        (_, step) => format!("{}..{}..{step}", text(one.first), text(one.last())),
    }
}

fn range(low: Option<&Scalar>, high: Option<&Scalar>, bounds: &DimensionBounds) -> String {
    let text = |end: Option<&Scalar>| end.map(|end| bounds.coordinate_text(end)).unwrap_or_default();
    match (low, high) {
        (Some(low), Some(high)) if low == high => text(Some(low)),
        _ => format!("{}..{}", text(low), text(high)),
    }
}
