//! One value of a selection, interpreted for its dimension.

use std::borrow::Cow;

use tilefs_base::percent;
use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::Scalar;

use super::bounds::{DimensionBounds, integer_ends};
use super::error::{Result, SelectionError};
use super::moment::{self, saturating_digits};
use super::token::SelectionToken;

/// Returns the first and last coordinate that a value of an integer, date or time dimension means; they differ only for
/// dates less precise than the dimension. Values far outside every type saturate at [`moment::SATURATED`].
pub fn counted(token: SelectionToken<'_>, bounds: &DimensionBounds) -> Result<(i128, i128)> {
    if let Some((end, offset)) = keyword(token) {
        let shown = bounds.shown.as_ref().and_then(integer_ends);
        let (low, high) = shown.ok_or_else(|| SelectionError::outside(token, "the array holds nothing"))?;
        let value = integer_text(offset).ok_or_else(|| offset_error(token, "9"))?;
        let value = if end == End::First { low - value } else { high - value };
        return Ok((value, value));
    }
    let text = decoded(token)?;
    if bounds.datatype.time_unit().is_some() {
        return moment::parse_in(bounds.calendar, bounds.datatype, &text)
            .map_err(|reason| SelectionError::syntax(token, reason));
    }
    match signed_text(&text) {
        Some(value) => Ok((value, value)),
        None => Err(SelectionError::syntax(token, "not an integer")),
    }
}

/// Parses a value of a dimension of floats.
pub fn float(token: SelectionToken<'_>, bounds: &DimensionBounds) -> Result<Scalar> {
    if let Some((end, offset)) = keyword(token) {
        let shown = bounds.shown.as_ref().ok_or_else(|| SelectionError::outside(token, "the array holds nothing"))?;
        let offset: f64 = decimal(offset).ok_or_else(|| offset_error(token, "0.5"))?;
        return Ok(match if end == End::First { &shown.low } else { &shown.high } {
            Scalar::Float32(value) => Scalar::Float32((f64::from(*value) - offset) as f32),
            Scalar::Float64(value) => Scalar::Float64(value - offset),
            other => other.clone(),
        });
    }
    let text = decoded(token)?;
    let value = match bounds.datatype {
        Datatype::Float32 => decimal(&text).map(Scalar::Float32),
        _ => decimal(&text).map(Scalar::Float64),
    };
    value.ok_or_else(|| {
        // `1e+5` was cut at its plus sign.
        let hint = if text.ends_with(['e', 'E']) { "; '+' joins ranges: write 1e5 for 1e+5" } else { "" };
        SelectionError::syntax(token, format!("not a number{hint}"))
    })
}

/// Parses a value of a string dimension: any text is valid, including `first` and `last`.
pub fn text(token: SelectionToken<'_>) -> Result<Vec<u8>> {
    percent::unescape(token.text).map_err(|place| broken_escape(token, place))
}

/// Parses a step: any integer but 0.
pub fn step(token: SelectionToken<'_>) -> Result<i128> {
    match signed_text(token.text) {
        Some(0) => Err(SelectionError::syntax(token, "a step of 0 selects nothing")),
        Some(step) => Ok(step),
        None => Err(SelectionError::syntax(token, "a step is an integer: the distance between coordinates")),
    }
}

/// Parses a position; negative ones count from the end.
pub fn position(token: SelectionToken<'_>) -> Result<i128> {
    signed_text(token.text)
        .ok_or_else(|| SelectionError::syntax(token, "not a position; 0 is the first one and -1 the last"))
}

/// Decodes the escapes of a name or other text.
pub fn decoded(token: SelectionToken<'_>) -> Result<Cow<'_, str>> {
    if !token.text.contains('%') {
        return Ok(Cow::Borrowed(token.text));
    }
    match String::from_utf8(text(token)?) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(_) => Err(SelectionError::syntax(token, "its escapes make no UTF-8")),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// Parses `first`, `last`, `last-9`: returns the end, and the offset without its sign (`0` for none).
fn keyword(token: SelectionToken<'_>) -> Option<(End, &str)> {
    let (end, rest) = match token.text.strip_prefix("last") {
        Some(rest) => (End::Last, rest),
        None => (End::First, token.text.strip_prefix("first")?),
    };
    match rest.strip_prefix('-') {
        Some(offset) => Some((end, offset)),
        None => rest.is_empty().then_some((end, "0")),
    }
}

fn offset_error(token: SelectionToken<'_>, example: &str) -> SelectionError {
    SelectionError::syntax(token, format!("after 'last-' comes a number, as in last-{example}"))
}

fn signed_text(text: &str) -> Option<i128> {
    match text.strip_prefix('-') {
        Some(digits) => integer_text(digits).map(|value| -value),
        None => integer_text(text),
    }
}

fn integer_text(digits: &str) -> Option<i128> {
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then(|| saturating_digits(digits))
}

/// Parses a decimal number with or without exponent, but none of the words that Rust also accepts.
fn decimal<F: std::str::FromStr>(text: &str) -> Option<F> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if is_decimal { text.parse().ok() } else { None }
}

fn broken_escape(token: SelectionToken<'_>, place: usize) -> SelectionError {
    let rest = token.part(place, token.text.len());
    let end = rest.text.char_indices().nth(3).map_or(rest.text.len(), |(end, _)| end);
    SelectionError::syntax(rest.part(0, end), "'%' comes before two hexadecimal digits; itself it is written %25")
}
