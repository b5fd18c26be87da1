//! A selection in plain words: the cells it selects along each dimension, or the reason why it is wrong.

use tilefs_format::scalar::Scalar;
use tilefs_reader::array::OpenedArray;

use super::attributes::{rows, split};
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
    Ok(lines_of(selection, &selected, dimensions))
}

/// As [`meaning`], for a selection of rows of a sparse array, which may be by attributes, too.
pub fn meaning_of_rows(
    selection: &str,
    by: Addressing,
    dimensions: &[DimensionBounds],
    array: &OpenedArray,
) -> std::result::Result<String, String> {
    let found = (|| {
        // All of it has to be right.
        rows(selection, by, dimensions, array)?;
        let (of_dimensions, of_attributes) = split(selection, dimensions, array)?;
        Ok((resolve(&of_dimensions, by, dimensions)?, of_attributes))
    })();
    let (selected, of_attributes) = found.map_err(|error| explain(selection, &error))?;
    let mut lines = lines_of(selection, &selected, dimensions);
    for (number, text) in of_attributes {
        let name = array.schema().attributes.get(number).map_or("", |attribute| attribute.name.as_str());
        let ranges: Vec<&str> = text.ranges.iter().take(SHOWN + 1).map(|range| range.whole.text).collect();
        let more = if ranges.len() > SHOWN { " + ..." } else { "" };
        let ranges = ranges.into_iter().take(SHOWN).collect::<Vec<_>>().join(" + ");
        lines.push_str(&format!("  {name}: values {ranges}{more}\n"));
    }
    Ok(lines)
}

/// Returns a line for each dimension.
fn lines_of(selection: &str, selected: &[Selected], dimensions: &[DimensionBounds]) -> String {
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
    lines
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
