//! Ranges of `islice/`: 0-based positions within the part shown, by NumPy's rules for basic slices. They are half-open
//! in every notation, negative ones count from the end, and positions outside are ignored.

use super::bounds::{DimensionBounds, integer_ends};
use super::error::{Result, SelectionError};
use super::progression::Progression;
use super::ranges::colons;
use super::syntax::{RangeForm, RangeText};
use super::token::SelectionToken;
use super::value;

/// Returns the coordinates at the positions of a range; `None` if it is empty.
///
/// # Errors
/// With the kind `Outside` for a single position past the end, and `Syntax` for a text that is not a position.
pub fn range(range: &RangeText<'_>, bounds: &DimensionBounds) -> Result<Option<Progression>> {
    let (low, length) = match bounds.shown.as_ref().and_then(integer_ends) {
        Some((low, high)) => (low, high - low + 1),
        None => (0, 0),
    };
    let (from, to, step) = match range.form {
        RangeForm::One(one) if !one.text.contains(':') => {
            let position = value::position(one)?;
            let counted = if position < 0 { position + length } else { position };
            if !(0..length).contains(&counted) {
                return Err(SelectionError::outside(one, format!("there are {length} positions")));
            }
            return Ok(Progression::between(low + counted, low + counted, 1));
        }
        RangeForm::One(one) => colons(one)?,
        RangeForm::Span { from, to, step } => (from, to, step),
    };
    let step = step.map_or(Ok(1), value::step)?;
    // Counting down can begin at the last position and stop before the first.
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let end = |token: SelectionToken<'_>, open: i128| {
        if token.is_empty() {
            return Ok(open);
        }
        let position = value::position(token)?;
        Ok((if position < 0 { position + length } else { position }).clamp(least, most))
    };
    let (open_first, open_past) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (first, past) = (end(from, open_first)?, end(to, open_past)?);
    Ok(Progression::between(low + first, low + past - step.signum(), step))
}

/// Returns the valid positions, as a user would type them.
pub fn valid(bounds: &DimensionBounds) -> String {
    match bounds.shown.as_ref().and_then(integer_ends) {
        Some((low, high)) => format!("positions 0 to {}, or -{} to -1", high - low, high - low + 1),
        None => "no position at all".to_owned(),
    }
}
