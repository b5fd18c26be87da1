//! The values of keywords in the header of a FITS image.

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;
use tilefs_format::time_unit::TimeUnit;

use crate::column::Metadatum;
use crate::number;

/// Maximum number of bytes of a text, which takes a card for each 67 of them.
pub(super) const LONGEST_TEXT: usize = 32 << 10;

/// The value of a keyword.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeywordValue {
    /// A number, as the header has it.
    Number(String),
    Flag(bool),
    /// Printable ASCII.
    Text(String),
}

impl KeywordValue {
    pub(super) fn integer(value: impl Into<i128>) -> Self {
        KeywordValue::Number(value.into().to_string())
    }

    /// Returns a number; `None` for those that FITS cannot hold: not-a-number and infinities.
    pub(super) fn float(value: f64) -> Option<Self> {
        value.is_finite().then(|| KeywordValue::Number(format!("{value:?}").to_uppercase()))
    }

    /// Returns a text, if all of it is printable ASCII.
    pub(super) fn text(text: &str) -> Option<Self> {
        let is_printable = text.len() <= LONGEST_TEXT && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_printable.then(|| KeywordValue::Text(text.to_owned()))
    }

    /// Returns the value of an entry of the metadata, if it is a text or one number.
    pub(super) fn of(datum: &Metadatum) -> Option<Self> {
        if datum.datatype.kind() == Kind::Bytes {
            return KeywordValue::text(text::decode(datum.datatype, &datum.value)?.trim_end_matches('\0'));
        }
        if datum.datatype == Datatype::Bool {
            let [byte] = datum.value[..] else { return None };
            return Some(KeywordValue::Flag(byte != 0));
        }
        match number::integer(datum.datatype, &datum.value) {
            Some(integer) => Some(KeywordValue::integer(integer)),
            None => KeywordValue::float(float_of(datum)?),
        }
    }
}

/// Returns the only number of an entry of the metadata.
pub(super) fn float_of(datum: &Metadatum) -> Option<f64> {
    number::text(datum.datatype, &datum.value)?.parse().ok()
}

/// Returns the standard's symbol of the unit of dates and times; `None` for numbers and for units that it does not have.
pub(super) fn unit_of(datatype: Datatype) -> Option<&'static str> {
    Some(match datatype.time_unit()? {
        // A year of the standard has 365.25 days.
        TimeUnit::Year | TimeUnit::Month | TimeUnit::Week => return None,
        TimeUnit::Day => "d",
        TimeUnit::Minute => "min",
        unit => unit.symbol(),
    })
}
