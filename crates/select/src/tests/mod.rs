//! Helpers shared by the tests of the grammar: dimensions, and selections as lists of coordinates.

mod attributes;
mod labels;
mod properties;
mod tables;

use std::sync::Arc;

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::Range;

use super::calendar::Calendar;
use super::*;

fn counted(name: &str, datatype: Datatype, low: i128, high: i128) -> DimensionBounds {
    let scalar = |value: i128| match datatype.kind() {
        Kind::Unsigned => Scalar::Unsigned(value as u64),
        _ => Scalar::Signed(value as i64),
    };
    let range = Some(Range { low: scalar(low), high: scalar(high) });
    DimensionBounds {
        name: name.to_owned(),
        datatype,
        domain: range.clone(),
        limit: range.clone(),
        shown: range,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }
}

fn floats(name: &str, low: f64, high: f64) -> DimensionBounds {
    let range = Some(Range { low: Scalar::Float64(low), high: Scalar::Float64(high) });
    let (domain, limit, shown) = (range.clone(), range.clone(), range);
    DimensionBounds {
        name: name.to_owned(),
        datatype: Datatype::Float64,
        domain,
        limit,
        shown,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }
}

fn strings(name: &str) -> DimensionBounds {
    let datatype = Datatype::StringAscii;
    DimensionBounds {
        name: name.to_owned(),
        datatype,
        domain: None,
        limit: None,
        shown: None,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }
}

/// Returns the coordinates that a selection selects along each axis of a dense array.
fn coordinates(text: &str, by: Addressing, dimensions: &[DimensionBounds]) -> Result<Vec<Vec<i128>>> {
    let selection = dense(text, by, dimensions)?;
    let axes = selection.axes().iter().zip(dimensions);
    Ok(axes
        .map(|(axis, bounds)| {
            let (low, _) = integer_ends(bounds.domain.as_ref().unwrap()).unwrap();
            (0..axis.len()).map(|index| low + i128::from(axis.position(index).unwrap())).collect()
        })
        .collect())
}

fn contains(range: &CoordinateRange, coordinate: &Scalar) -> bool {
    let steps = |low: &Scalar| coordinate.distance_above(low).is_some_and(|distance| distance % range.step == 0);
    range.low.as_ref().is_none_or(|low| low.compare(coordinate).is_le())
        && range.high.as_ref().is_none_or(|high| high.compare(coordinate).is_ge())
        && (range.step == 1 || range.low.as_ref().is_some_and(steps))
}

/// Returns whether any coordinate of another range may be selected.
fn overlaps(range: &CoordinateRange, other: &Range) -> bool {
    range.low.as_ref().is_none_or(|low| low.compare(&other.high).is_le())
        && range.high.as_ref().is_none_or(|high| high.compare(&other.low).is_ge())
}
