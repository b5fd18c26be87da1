//! Selections of rows by attributes: `price=10..20,kind=a+b` beside the ranges of dimensions.
//!
//! Names of dimensions and labels come first. `%null` selects nulls, and `..` what is not null. Of an attribute with an
//! enumeration, the ranges are those of the labels: in the order of the list if that is meaningful.

use std::collections::HashSet;
use std::sync::Arc;

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::enumeration::Enumeration;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::Attribute;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::sparse::{CoordinateRange, RowCondition, ValueRange, has_one_value};

use super::bounds::{Addressing, DimensionBounds, scalar};
use super::calendar::Calendar;
use super::error::{Result, SelectionError};
use super::ranges::{counted, uncounted};
use super::resolve::unknown_name;
use super::syntax::{self, DimensionText, RangeForm, RangeText};
use super::token::SelectionToken;
use super::value;

/// The token that selects nulls. No escape begins like this, so no text is lost.
const NULL: &str = "%null";

/// Maximum number of ranges of codes that the labels of one attribute may be.
const MAX_RANGES: usize = 1 << 16;

/// The rows that a selection selects.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedRows {
    /// The coordinates along each dimension, or `None` for all of it.
    pub ranges: Vec<Option<Vec<CoordinateRange>>>,
    /// Conditions on attributes, all of which hold.
    pub conditions: Vec<RowCondition>,
}

/// Returns the rows that a selection selects by dimensions, their labels, and attributes of a sparse array.
///
/// # Errors
/// As [`sparse`](crate::sparse); with the kind `Unread` if an enumeration cannot be read.
pub fn rows(text: &str, by: Addressing, dimensions: &[DimensionBounds], array: &OpenedArray) -> Result<SelectedRows> {
    let (of_dimensions, of_attributes) = split(text, dimensions, array)?;
    let ranges = match of_dimensions.is_empty() {
        true => vec![None; dimensions.len()],
        false => crate::restricted_by(&of_dimensions, by, dimensions)?,
    };
    let mut conditions: Vec<RowCondition> = Vec::with_capacity(of_attributes.len());
    for (number, text) in of_attributes {
        let Some(attribute) = array.schema().attributes.get(number) else { continue };
        let called = |error: SelectionError| SelectionError {
            message: format!("attribute {}: {}", attribute.name, error.message),
            ..error
        };
        if by == Addressing::Position {
            let error = SelectionError::syntax(text.whole, "its values have no positions: use slice/");
            return Err(called(error));
        }
        if conditions.iter().any(|known| known.attribute == number) {
            let message = "it has its ranges already; several are joined by '+'";
            return Err(called(SelectionError::syntax(text.whole, message)));
        }
        conditions.push(condition(number, attribute, &text, array).map_err(called)?);
    }
    Ok(SelectedRows { ranges, conditions })
}

/// The texts of a selection by dimensions, and those by attributes with the numbers of these.
type Texts<'a> = (Vec<DimensionText<'a>>, Vec<(usize, DimensionText<'a>)>);

/// Parses a selection, and tells attributes from dimensions by their names.
///
/// # Errors
/// If the text does not parse.
pub fn split<'a>(text: &'a str, dimensions: &[DimensionBounds], array: &OpenedArray) -> Result<Texts<'a>> {
    let own = dimensions.iter().map(|dimension| dimension.name.as_str());
    let labels = dimensions.iter().flat_map(|dimension| &dimension.labels).map(|label| label.0.name());
    let known: HashSet<&str> = own.chain(labels).collect();
    let (mut of_dimensions, mut of_attributes) = (Vec::new(), Vec::new());
    for text in syntax::parse(text)? {
        let name = text.name.map(value::decoded).transpose()?.filter(|name| !known.contains(&**name));
        let attributes = &array.schema().attributes;
        let number = name.as_ref().map(|name| attributes.iter().position(|attribute| attribute.name == *name));
        match (number, text.name) {
            (Some(Some(number)), _) => of_attributes.push((number, text)),
            (Some(None), Some(name)) => {
                let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
                return Err(unknown_name(name, dimensions, &names).with_guess(text.whole.text, false));
            }
            _ => of_dimensions.push(text),
        }
    }
    Ok((of_dimensions, of_attributes))
}

fn condition(
    number: usize,
    attribute: &Attribute,
    text: &DimensionText<'_>,
    array: &OpenedArray,
) -> Result<RowCondition> {
    if !has_one_value(attribute) {
        let message = "its cells have several values, by which no rows are selected";
        return Err(SelectionError::syntax(text.whole, message));
    }
    let labels = attribute.enumeration.as_ref().map(|name| array.enumeration(name));
    let labels = labels.transpose().map_err(|error| SelectionError::unread(text.whole, error))?;
    let mut selected = RowCondition { attribute: number, ranges: Vec::new(), with_null: false };
    for range in &text.ranges {
        match (range.form, &labels) {
            (RangeForm::One(SelectionToken { text: NULL, .. }), _) if attribute.nullable => selected.with_null = true,
            (RangeForm::One(SelectionToken { text: NULL, .. }), _) => {
                return Err(SelectionError::outside(range.whole, "none of its values is null"));
            }
            (RangeForm::Span { from, to, step: None }, _) if from.is_empty() && to.is_empty() => {
                selected.ranges.push(ValueRange { low: None, high: None });
            }
            (_, Some(labels)) => selected.ranges.extend(codes(range, labels, attribute.datatype)?),
            (_, None) => selected.ranges.extend(values(range, attribute.datatype)?),
        }
        let count = selected.ranges.len();
        if count > MAX_RANGES {
            let message = format!("labels in {count} places of the list, where {MAX_RANGES} are possible");
            return Err(SelectionError::of(super::SelectionErrorKind::TooLarge, text.whole, message));
        }
    }
    Ok(selected)
}

/// Resolves a range of the values of a type; `None` if it is empty, such as `5:5`.
fn values(range: &RangeText<'_>, datatype: Datatype) -> Result<Option<ValueRange>> {
    if let RangeForm::Span { step: Some(step), .. } = range.form {
        return Err(SelectionError::syntax(step, "values are selected without steps"));
    }
    if let Some(truth) = truth(range, datatype) {
        return Ok(Some(truth));
    }
    let bounds = bounds_of(datatype);
    let valid = |error: SelectionError| error.with_valid(|| example(datatype).to_owned());
    if !bounds.is_counted() {
        let (low, high) = uncounted(range, &bounds).map_err(valid)?;
        return Ok(Some(ValueRange { low, high }));
    }
    if let Some(word) =
        ends(range).into_iter().find(|end| end.text.starts_with("first") || end.text.starts_with("last"))
    {
        return Err(valid(SelectionError::syntax(word, "values have no first and no last one; leave the end out")));
    }
    let found = counted(range, &bounds).map_err(valid)?;
    match found {
        Some(values) if values.step != 1 && values.count > 1 => {
            Err(SelectionError::syntax(range.whole, "values are selected without steps"))
        }
        found => Ok(found.map(|values| {
            let end = |value| Some(scalar(datatype, value));
            ValueRange { low: end(values.first), high: end(values.last()) }
        })),
    }
}

/// Returns the range that `true` or `false` is, if it is one of them and the type is that of truth values.
fn truth(range: &RangeText<'_>, datatype: Datatype) -> Option<ValueRange> {
    let (Datatype::Bool, RangeForm::One(one)) = (datatype, range.form) else { return None };
    let end = |value| Some(Scalar::Unsigned(value));
    match one.text {
        "false" => Some(ValueRange { low: end(0), high: end(0) }),
        // Any byte but 0 is true.
        "true" => Some(ValueRange { low: end(1), high: end(u64::from(u8::MAX)) }),
        _ => None,
    }
}

fn ends<'a>(range: &RangeText<'a>) -> Vec<SelectionToken<'a>> {
    match range.form {
        RangeForm::One(one) => vec![one],
        RangeForm::Span { from, to, .. } => vec![from, to],
    }
}

/// Returns what one types to select values of a type.
fn example(datatype: Datatype) -> &'static str {
    match datatype.kind() {
        Kind::Bytes => "any text, and ranges such as a..b",
        _ if datatype.is_datetime() => "dates, and ranges such as 2020-01..2020-03-15",
        _ if datatype.is_time() => "times, and ranges such as 08:00..12:30",
        Kind::Float => "numbers, and ranges such as 0.5..9, 0.5.. or ..9",
        _ => "integers, and ranges such as 5..9, 5.. or ..9",
    }
}

/// Returns the values of a type in the form of a dimension without ends of its own.
fn bounds_of(datatype: Datatype) -> DimensionBounds {
    let bits = 8 * u32::try_from(datatype.size()).unwrap_or(8).clamp(1, 8);
    let limit = match datatype.kind() {
        Kind::Signed => {
            let high = i64::MAX >> (64 - bits);
            // The least date means that there is none.
            let low = if datatype.time_unit().is_some() { -high } else { -high - 1 };
            Some(Range { low: Scalar::Signed(low), high: Scalar::Signed(high) })
        }
        Kind::Unsigned => Some(Range { low: Scalar::Unsigned(0), high: Scalar::Unsigned(u64::MAX >> (64 - bits)) }),
        Kind::Bytes | Kind::Float => None,
    };
    DimensionBounds {
        name: String::new(),
        datatype,
        domain: limit.clone(),
        shown: limit.clone(),
        limit,
        labels: Vec::new(),
        calendar: Calendar::Gregorian,
    }
}

/// Returns the codes of the labels in a range, as ranges of codes.
pub(super) fn codes(range: &RangeText<'_>, labels: &Arc<Enumeration>, datatype: Datatype) -> Result<Vec<ValueRange>> {
    let valid = |error: SelectionError| error.with_valid(|| some_of(labels));
    let Some(mut wanted) = values(range, labels.datatype).map_err(valid)? else { return Ok(Vec::new()) };
    // An open end is no label, also where the type has a greatest or least value.
    if let RangeForm::Span { from, to, .. } = range.form {
        wanted.low = wanted.low.filter(|_| !from.text.is_empty());
        wanted.high = wanted.high.filter(|_| !to.text.is_empty());
    }
    let parsed = |bytes: &[u8]| Scalar::parse(labels.datatype, bytes);
    let unread = |error| SelectionError::unread(range.whole, error);
    let all = labels.values().map(parsed).collect::<tilefs_base::error::Result<Vec<_>>>().map_err(unread)?;
    let place = |end: &Option<Scalar>| end.as_ref().and_then(|end| all.iter().position(|label| label == end));
    let missing = |end: &Option<Scalar>| end.is_some() && place(end).is_none();
    let is_by_place = labels.ordered && matches!(range.form, RangeForm::Span { .. });
    if is_by_place && (missing(&wanted.low) || missing(&wanted.high)) {
        return Err(valid(SelectionError::outside(range.whole, "the ends of a range are labels of the list")));
    }
    let places = place(&wanted.low).unwrap_or(0)..=place(&wanted.high).unwrap_or(usize::MAX);
    let is_chosen = |number: usize, label: &Scalar| match is_by_place {
        true => places.contains(&number),
        false => {
            wanted.low.as_ref().is_none_or(|low| label.compare(low).is_ge())
                && wanted.high.as_ref().is_none_or(|high| label.compare(high).is_le())
        }
    };
    let mut runs: Vec<(i128, i128)> = Vec::new();
    for (number, _) in all.iter().enumerate().filter(|(number, label)| is_chosen(*number, label)) {
        let number = number as i128;
        match runs.last_mut().filter(|last| last.1 + 1 == number) {
            Some(last) => last.1 = number,
            None => runs.push((number, number)),
        }
    }
    if runs.is_empty() {
        return Err(valid(SelectionError::outside(range.whole, "no such label")));
    }
    let end = |value| Some(scalar(datatype, value));
    Ok(runs.into_iter().map(|(low, high)| ValueRange { low: end(low), high: end(high) }).collect())
}

/// Returns the first labels of a list.
fn some_of(labels: &Enumeration) -> String {
    const SHOWN: usize = 8;
    let text = |bytes: &[u8]| {
        Scalar::parse(labels.datatype, bytes).map(|label| super::coordinate_text(labels.datatype, &label)).ok()
    };
    let mut shown: Vec<String> = labels.values().take(SHOWN).filter_map(text).collect();
    if labels.len() > SHOWN {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}
