//! Resolves a range of a dimension, whose text was parsed.

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};

use super::bounds::{DimensionBounds, integer_ends};
use super::error::{Result, SelectionError};
use super::progression::Progression;
use super::syntax::{RangeForm, RangeText};
use super::token::SelectionToken;
use super::value;

/// The selection along one dimension, range by range as typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Selected {
    /// Coordinates of integers, dates and times. All lie within the limit.
    Counted(Vec<Progression>),
    /// Ranges of floats or text. An end is `None` if it is unlimited.
    Ranges(Vec<(Option<Scalar>, Option<Scalar>)>),
}

/// Resolves a range of a dimension of integers, dates or times; `None` if it is empty, such as `5:5`.
pub(super) fn counted(range: &RangeText<'_>, bounds: &DimensionBounds) -> Result<Option<Progression>> {
    let limit = bounds.limit.as_ref().and_then(integer_ends);
    let (lowest, highest) = limit.ok_or_else(|| SelectionError::syntax(range.whole, "it has no domain"))?;
    let wanted = match range.form {
        RangeForm::One(one) if is_half_open(one, bounds) => half_open(one, bounds)?,
        RangeForm::One(one) => {
            let (low, high) = value::counted(one, bounds)?;
            Progression::between(low, high, 1)
        }
        RangeForm::Span { from, to, step } => span(range.whole, from, to, step, bounds)?,
    };
    let Some(wanted) = wanted else { return Ok(None) };
    match wanted.clipped(lowest, highest) {
        Some(progression) => Ok(Some(progression)),
        None => Err(SelectionError::outside(range.whole, "no part of this lies within the domain")),
    }
}

/// Resolves `from..to..step`, both ends included.
fn span(
    whole: SelectionToken<'_>,
    from: SelectionToken<'_>,
    to: SelectionToken<'_>,
    step: Option<SelectionToken<'_>>,
    bounds: &DimensionBounds,
) -> Result<Option<Progression>> {
    if let Some(colon) = [from, to].into_iter().find(|token| is_half_open(*token, bounds)) {
        return Err(SelectionError::syntax(colon, "either a..b, with both ends, or a:b, without the last; not both"));
    }
    let step = step.map_or(Ok(1), value::step)?;
    let end =
        |token: SelectionToken<'_>| if token.is_empty() { Ok(None) } else { value::counted(token, bounds).map(Some) };
    let (typed_from, typed_to) = (end(from)?, end(to)?);
    let shown = bounds.shown.as_ref().and_then(integer_ends);
    // A date less precise than the dimension counts as a whole, at either end.
    let (first, last) = match step > 0 {
        true => (typed_from.or(shown).map(|ends| ends.0), typed_to.or(shown).map(|ends| ends.1)),
        false => (typed_from.or(shown).map(|ends| ends.1), typed_to.or(shown).map(|ends| ends.0)),
    };
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    match Progression::between(first, last, step) {
        Some(progression) => Ok(Some(progression)),
        None if typed_from.is_none() || typed_to.is_none() => {
            Err(SelectionError::outside(whole, "nothing shown lies there; give both ends"))
        }
        None if step > 0 => {
            let message = format!("the ends are the wrong way round; backwards is {}..{}..-{step}", from.text, to.text);
            Err(SelectionError::syntax(whole, message))
        }
        None => Err(SelectionError::syntax(whole, "with a negative step the upper end comes first")),
    }
}

/// Returns whether a token is half-open: colons are part of dates and times, but mean the half-open form for integers.
fn is_half_open(token: SelectionToken<'_>, bounds: &DimensionBounds) -> bool {
    bounds.datatype.time_unit().is_none() && token.text.contains(':')
}

/// Resolves `a:b:step` as in NumPy and TileDB-Py, except that negative numbers are coordinates.
fn half_open(text: SelectionToken<'_>, bounds: &DimensionBounds) -> Result<Option<Progression>> {
    let (from, to, step) = colons(text)?;
    let step = step.map_or(Ok(1), value::step)?;
    let end = |token: SelectionToken<'_>| {
        if token.is_empty() { Ok(None) } else { value::counted(token, bounds).map(|v| Some(v.0)) }
    };
    let (from, to) = (end(from)?, end(to)?);
    let Some((low, high)) = bounds.shown.as_ref().and_then(integer_ends) else {
        return Ok(from.zip(to).and_then(|(from, to)| Progression::between(from, to - step.signum(), step)));
    };
    let (first, past) = match step > 0 {
        true => (from.unwrap_or(low), to.unwrap_or(high + 1)),
        false => (from.unwrap_or(high), to.unwrap_or(low - 1)),
    };
    Ok(Progression::between(first, past - step.signum(), step))
}

/// Splits a token into the two or three parts between colons; the last may be missing or empty.
pub(super) fn colons(
    text: SelectionToken<'_>,
) -> Result<(SelectionToken<'_>, SelectionToken<'_>, Option<SelectionToken<'_>>)> {
    let parts: Vec<SelectionToken<'_>> = text.split(':').take(4).collect();
    match *parts.as_slice() {
        [from, to] => Ok((from, to, None)),
        [from, to, step] => Ok((from, to, Some(step).filter(|step| !step.is_empty()))),
        _ => Err(SelectionError::syntax(text, "a half-open range is a:b or a:b:step")),
    }
}

/// Resolves a range of a dimension of floats or strings.
pub(super) fn uncounted(range: &RangeText<'_>, bounds: &DimensionBounds) -> Result<(Option<Scalar>, Option<Scalar>)> {
    let is_text = bounds.datatype.kind() == Kind::Bytes;
    let read = |token: SelectionToken<'_>| match is_text {
        true => value::text(token).map(Scalar::Text),
        false if token.text.contains(':') => {
            Err(SelectionError::syntax(token, "the half-open form is for integers; write a..b, with both ends"))
        }
        false => value::float(token, bounds),
    };
    let (low, high) = match range.form {
        RangeForm::One(one) => {
            let value = read(one)?;
            (Some(value.clone()), Some(value))
        }
        RangeForm::Span { step: Some(step), .. } => {
            return Err(SelectionError::syntax(step, "steps are for integers, dates and times"));
        }
        RangeForm::Span { from, to, step: None } => {
            let end = |token: SelectionToken<'_>| if token.is_empty() { Ok(None) } else { read(token).map(Some) };
            (end(from)?, end(to)?)
        }
    };
    let open = if is_text { &bounds.limit } else { &bounds.shown };
    let is_typed = low.is_some() && high.is_some();
    let low = low.or_else(|| open.as_ref().map(|open| open.low.clone()));
    let high = high.or_else(|| open.as_ref().map(|open| open.high.clone()));
    if let (Some(low), Some(high)) = (&low, &high)
        && low.compare(high).is_gt()
    {
        return Err(match is_typed {
            true => SelectionError::syntax(range.whole, "the ends are the wrong way round"),
            false => SelectionError::outside(range.whole, "nothing shown lies there; give both ends"),
        });
    }
    clip(low, high, bounds.limit.as_ref())
        .ok_or_else(|| SelectionError::outside(range.whole, "no part of this lies within the domain"))
}

/// Returns the part of a range that lies within the limit.
fn clip(low: Option<Scalar>, high: Option<Scalar>, limit: Option<&Range>) -> Option<(Option<Scalar>, Option<Scalar>)> {
    let Some(limit) = limit else { return Some((low, high)) };
    let low = low.filter(|low| low.compare(&limit.low).is_gt()).unwrap_or_else(|| limit.low.clone());
    let high = high.filter(|high| high.compare(&limit.high).is_lt()).unwrap_or_else(|| limit.high.clone());
    low.compare(&high).is_le().then_some((Some(low), Some(high)))
}
