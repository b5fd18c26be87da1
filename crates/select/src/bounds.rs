//! The properties of a dimension that a selection needs: its name, type and limits.

use std::fmt;
use std::ops;
use std::sync::Arc;

use tilefs_base::characters::steers;
use tilefs_base::error::Result;
use tilefs_base::percent;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::ArraySchema;
use tilefs_format::time_text;
use tilefs_format::time_unit::TimeUnit;

use super::calendar::Calendar;

/// The meaning of the numbers in a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// TileDB's coordinates: `slice/`.
    Coordinate,
    /// 0-based positions: `islice/`.
    Position,
}

/// A dimension as selections see it.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionBounds {
    pub name: String,
    pub datatype: Datatype,
    /// Positions of dense arrays are counted from its low end. `None` for strings.
    pub domain: Option<Range>,
    /// The limits to which ranges are clipped: the current domain if set, otherwise the domain. Always within the
    /// domain.
    pub limit: Option<Range>,
    /// The range shown if nothing is selected, which defines `first`, `last` and open ends; positions of `islice` are
    /// counted from its low end. Always within the limit. `None` if there are no coordinates, and for strings, whose
    /// open ends are limited only by `limit`.
    pub shown: Option<Range>,
    /// Labels by which its cells can also be selected.
    pub labels: Vec<SelectableLabel>,
    /// The calendar of dates.
    pub calendar: Calendar,
}

impl DimensionBounds {
    /// Returns the dimensions of a schema with their whole ranges shown.
    pub fn of_schema(schema: &ArraySchema) -> Vec<Self> {
        let current = schema.current_domain.as_deref().unwrap_or_default();
        let limits = current.iter().map(Some).chain(std::iter::repeat(None));
        let fields = schema.dimensions.iter().zip(schema.dimension_names());
        let bounds = fields.zip(limits).map(|((dimension, name), current)| {
            // For strings, empty bounds mean that there are none.
            let empty = |text: &Scalar| matches!(text, Scalar::Text(bytes) if bytes.is_empty());
            let current = current.filter(|range| !(empty(&range.low) && empty(&range.high)));
            let limit = current.or(dimension.domain.as_ref()).cloned();
            DimensionBounds {
                name: name.into_owned(),
                datatype: dimension.datatype,
                domain: dimension.domain.clone(),
                shown: limit.clone(),
                limit,
                labels: Vec::new(),
                calendar: Calendar::Gregorian,
            }
        });
        bounds.collect()
    }

    /// Returns whether coordinates are counted: integers, dates, times.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.datatype.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns whether coordinates are numbers, dates or times, which have a minimum and a maximum.
    pub(super) fn is_number(&self) -> bool {
        self.datatype.kind() != Kind::Bytes
    }

    /// Returns the selectable range as a user would type it.
    pub(super) fn valid(&self) -> String {
        match &self.limit {
            Some(limit) => format!("{}..{}", self.coordinate_text(&limit.low), self.coordinate_text(&limit.high)),
            None => "any text".to_owned(),
        }
    }

    /// Formats a coordinate as [`coordinate_text`] does, dates in their calendar.
    pub(super) fn coordinate_text(&self, coordinate: &Scalar) -> String {
        let text = coordinate_text(self.datatype, coordinate);
        let (Scalar::Signed(count), Some((_, clock))) = (coordinate, text.split_once('T')) else { return text };
        let Some(ticks) = self.datatype.time_unit().and_then(TimeUnit::per_second) else { return text };
        if self.calendar == Calendar::Gregorian {
            return text;
        }
        let days = i128::from(*count).div_euclid(i128::from(ticks) * 86_400);
        let (year, month, day) = self.calendar.date(days);
        let sign = if year < 0 {
            "-"
        } else if year > 9999 {
            "%2B"
        } else {
            ""
        };
        format!("{sign}{:04}-{month:02}-{day:02}T{clock}", year.unsigned_abs())
    }
}

/// Returns the ends of a range of integers, dates or times.
pub fn integer_ends(range: &Range) -> Option<(i128, i128)> {
    integer(&range.low).zip(integer(&range.high))
}

/// Returns an integer, date or time as a number.
pub(super) fn integer(scalar: &Scalar) -> Option<i128> {
    match scalar {
        Scalar::Signed(value) => Some(i128::from(*value)),
        Scalar::Unsigned(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Formats a range as typed in a selection: `0..99`, `2024-01-01..2024-12-31`.
pub fn range_text(datatype: Datatype, range: &Range) -> String {
    format!("{}..{}", coordinate_text(datatype, &range.low), coordinate_text(datatype, &range.high))
}

/// Formats a coordinate as typed in a selection: dates and times in ISO 8601, text with percent escapes. The result
/// selects exactly this coordinate.
pub fn coordinate_text(datatype: Datatype, coordinate: &Scalar) -> String {
    match coordinate {
        Scalar::Signed(count) => match datatype.time_unit() {
            // The smallest count is not a time.
            Some(unit) if *count == i64::MIN => format!("{count}{unit}"),
            Some(_) => {
                let mut text = String::new();
                time_text::print(datatype, *count, |bytes| text.push_str(&String::from_utf8_lossy(bytes)));
                text.replace('+', "%2B")
            }
            None => count.to_string(),
        },
        Scalar::Text(bytes) => escaped(bytes),
        Scalar::Unsigned(value) => value.to_string(),
        // With an exponent if that is shorter.
        Scalar::Float32(value) => format!("{value:?}"),
        Scalar::Float64(value) => format!("{value:?}"),
    }
}

/// Escapes text for a selection.
fn escaped(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "%".to_owned();
    }
    let mut out = String::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => text,
            // The valid part before the first invalid byte.
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        for character in valid.chars() {
            // A single dot is allowed; next to another one, or at an end, it would be taken for a range.
            if steers(character) || ",+=%/.".contains(character) {
                percent::escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
            } else {
                out.push(character);
            }
        }
        rest = &rest[valid.len()..];
        if let Some((byte, after)) = rest.split_first() {
            percent::escape(&[*byte], &mut out);
            rest = after;
        }
    }
    out
}

/// Values that label the cells along one dimension.
pub trait Label: Send + Sync {
    fn name(&self) -> &str;

    /// Returns the label in the form of a dimension: its type, with the least and the greatest value as limits.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    fn bounds(&self) -> Result<DimensionBounds>;

    /// Returns the positions of the values from `low` to `high`, both included, counted from the low end of the
    /// dimension's domain: ascending and disjoint.
    ///
    /// # Errors
    /// Fails if required values cannot be read, are not in the declared order, or are too many.
    fn positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Vec<ops::Range<u64>>>;
}

/// A label of a dimension; equal only to itself.
#[derive(Clone)]
pub struct SelectableLabel(pub Arc<dyn Label>);

impl fmt::Debug for SelectableLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SelectableLabel").field(&self.0.name()).finish()
    }
}

impl PartialEq for SelectableLabel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Returns a coordinate that lies within the domain of its type.
pub fn scalar(datatype: Datatype, value: i128) -> Scalar {
    match datatype.kind() {
        Kind::Signed => Scalar::Signed(value as i64),
        _ => Scalar::Unsigned(value as u64),
    }
}
