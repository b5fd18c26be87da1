//! The grammar of selections: the names of folders in `slice/` and `islice/`, and the cells that they select.
//!
//! ```text
//! selection := one per dimension, separated by ','; with a name in any order; those left out are whole
//! dimension := [ name '=' ] range ( '+' range )*        or an attribute: see `attributes.rs`
//! range     := v | v..v | v.. | ..v | ..   each of the last four with [..step]; both ends included
//!            | a:b[:step]                  half-open, as in TileDB-Py; integers only
//! v         := integer | float | date | time | text | first | last | last-9
//! ```
//!
//! * In names and values `%` begins an escape. `,` `+` `=` `%` `/` and `..` must be escaped in them; a lone `%` is the
//!   empty text.
//! * Dimensions without a name come first, in order. A name may also be that of a label of a dimension; the ranges are
//!   then ranges of the label's values: see `labels.rs`. A dimension of that name takes precedence.
//! * A negative step goes down, and the upper end then comes first. For sparse arrays, the order is irrelevant.
//! * Dates are ISO 8601 and mean the time that they span: see [`moment`].
//! * Ranges are clipped to the domain; it is an error if nothing remains. Only half-open ranges may be empty.
//! * Cells of dense arrays come in the order in which they are selected, and may repeat; each selected cell of a sparse
//!   array comes once, in the array's own order.
//! * In `islice/`, numbers are positions by NumPy's rules: see [`position`].

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod attributes;
pub mod bounds;
pub mod calendar;
pub mod error;
mod hint;
mod labels;
mod meaning;
pub mod moment;
pub mod position;
mod progression;
mod ranges;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;
pub mod time;
mod token;
mod value;

use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::dense::{AxisRange, AxisSelection, Selection};
use tilefs_reader::array::sparse::CoordinateRange;

pub use attributes::{SelectedRows, rows};
pub use bounds::{Addressing, DimensionBounds, Label, SelectableLabel, coordinate_text, range_text};
use bounds::{integer_ends, scalar};
use error::Result;
pub use error::{SelectionError, SelectionErrorKind, explain};
pub use meaning::{meaning, meaning_of_rows};
use progression::Progression;
use ranges::Selected;
use resolve::resolve;
use token::SelectionToken;

/// Returns the cells of a dense array that a selection selects, in its order.
///
/// # Errors
/// Fails if the text does not parse, a range lies outside, or there are more cells than a file can hold.
pub fn dense(text: &str, by: Addressing, dimensions: &[DimensionBounds]) -> Result<Selection> {
    let all = SelectionToken { text, at: 0 };
    let too_large = || SelectionError::of(SelectionErrorKind::TooLarge, all, "more cells than a file can hold");
    let selected = resolve(&syntax::parse(text)?, by, dimensions)?;
    let mut axes = Vec::with_capacity(dimensions.len());
    for (selected, bounds) in selected.into_iter().zip(dimensions) {
        let domain = bounds.domain.as_ref().and_then(integer_ends);
        let (Selected::Counted(progressions), Some((low, high))) = (selected, domain) else {
            let message = format!("dimension {} has no positions", bounds.name);
            return Err(SelectionError::syntax(all, message));
        };
        let size = u64::try_from(high - low + 1).map_err(|_| too_large())?;
        let ranges = progressions.into_iter().flat_map(|progression| positions(progression, low));
        axes.push(AxisSelection::new(ranges, size).map_err(|_| too_large())?);
    }
    Selection::new(axes).map_err(|_| too_large())
}

/// Returns the selected coordinates along each dimension of a sparse array: ascending and disjoint, except that ranges
/// with steps may overlap. A cell is selected if each dimension has a range that contains its coordinate.
///
/// # Errors
/// Fails if the text does not parse, or a range lies outside.
pub fn sparse(text: &str, by: Addressing, dimensions: &[DimensionBounds]) -> Result<Vec<Vec<CoordinateRange>>> {
    sparse_by(&syntax::parse(text)?, by, dimensions)
}

/// As [`sparse`], for a text that was parsed.
fn sparse_by(
    texts: &[syntax::DimensionText<'_>],
    by: Addressing,
    dimensions: &[DimensionBounds],
) -> Result<Vec<Vec<CoordinateRange>>> {
    let selected = resolve(texts, by, dimensions)?;
    let of_dimension = |(selected, bounds): (Selected, &DimensionBounds)| match selected {
        Selected::Counted(progressions) => joined_progressions(progressions, bounds.datatype),
        Selected::Ranges(ranges) => joined_ranges(ranges),
    };
    Ok(selected.into_iter().zip(dimensions).map(of_dimension).collect())
}

/// Returns the selected coordinates as [`sparse`], with `None` for a dimension that is not restricted.
///
/// # Errors
/// As for [`sparse`].
pub fn restricted(
    text: &str,
    by: Addressing,
    dimensions: &[DimensionBounds],
) -> Result<Vec<Option<Vec<CoordinateRange>>>> {
    restricted_by(&syntax::parse(text)?, by, dimensions)
}

/// As [`restricted`], for a text that was parsed.
fn restricted_by(
    texts: &[syntax::DimensionText<'_>],
    by: Addressing,
    dimensions: &[DimensionBounds],
) -> Result<Vec<Option<Vec<CoordinateRange>>>> {
    let chosen = sparse_by(texts, by, dimensions)?.into_iter().map(|chosen| {
        let is_whole = chosen.iter().any(|one| one.low.is_none() && one.high.is_none());
        (!is_whole).then_some(chosen)
    });
    Ok(chosen.collect())
}

/// Returns a progression, which lies in the domain, as positions from the domain's low end.
fn positions(progression: Progression, low: i128) -> impl Iterator<Item = AxisRange> {
    let Progression { first, step, count } = progression;
    let first = (first - low) as u64;
    let (ranges, range) = match (i64::try_from(step), u64::try_from(count)) {
        (Ok(step), Ok(count)) => (1, AxisRange { first, step, count }),
        // Progressions with such large steps have two or three elements.
        _ => (count, AxisRange { first, step: 1, count: 1 }),
    };
    (0..ranges).map(move |number| AxisRange { first: (i128::from(first) + step * number as i128) as u64, ..range })
}

fn joined_progressions(progressions: Vec<Progression>, datatype: Datatype) -> Vec<CoordinateRange> {
    let mut progressions: Vec<Progression> = progressions.into_iter().map(Progression::ascending).collect();
    progressions.sort_unstable_by_key(|one| (one.step != 1, one.first));
    let mut joined: Vec<Progression> = Vec::new();
    for next in progressions {
        match joined.last_mut() {
            Some(last) if last.step == 1 && next.step == 1 && next.first <= last.last() + 1 => {
                let end = last.last().max(next.last());
                last.count = (end - last.first) as u128 + 1;
            }
            _ => joined.push(next),
        }
    }
    joined.sort_by_key(|one| one.first);
    let range = |one: Progression| CoordinateRange {
        low: Some(scalar(datatype, one.first)),
        high: Some(scalar(datatype, one.last())),
        step: one.step as u64,
    };
    joined.into_iter().map(range).collect()
}

fn joined_ranges(mut ranges: Vec<(Option<Scalar>, Option<Scalar>)>) -> Vec<CoordinateRange> {
    ranges.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) => a.compare(b),
        _ => a.is_some().cmp(&b.is_some()),
    });
    let mut joined: Vec<CoordinateRange> = Vec::new();
    for (low, high) in ranges {
        if let Some(last) = joined.last_mut() {
            let meets = match (&last.high, &low) {
                (Some(end), Some(low)) => end.compare(low).is_ge(),
                _ => true,
            };
            if meets {
                let further = match (&last.high, &high) {
                    (Some(end), Some(high)) => high.compare(end).is_gt(),
                    (end, _) => end.is_some(),
                };
                if further {
                    last.high = high;
                }
                continue;
            }
        }
        joined.push(CoordinateRange { low, high, step: 1 });
    }
    joined
}
