//! Coordinates that count times since a date, as dates. CF describes them by `units` and `calendar`.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::number;
use tilefs_export::{Column, Field, Metadatum};
use tilefs_format::datatype::Datatype;
use tilefs_format::text;

use crate::fields::coordinates::each;
use crate::select::calendar::Calendar;
use crate::select::moment;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Most coordinates that are decoded.
const MOST: u64 = 1 << 22;

/// How a variable counts times.
struct TimeUnits {
    /// Milliseconds of a unit.
    unit: f64,
    /// The date that 0 stands for, in milliseconds since 1970 in its calendar.
    since: i64,
    calendar: Calendar,
}

/// Returns coordinates as dates of a calendar, in milliseconds, if they count times in one; otherwise as they are.
///
/// # Errors
/// Fails if the coordinates cannot be read.
pub fn decoded(column: Column) -> Result<(Column, Calendar)> {
    let count = column.cells();
    let is_number = column.field.values_per_cell == Some(1) && !column.field.is_bytes();
    let units = TimeUnits::of(&column.field.notes).filter(|_| is_number && count <= MOST);
    let (Some(units), None) = (units, column.field.datatype.time_unit()) else {
        return Ok((column, Calendar::default()));
    };
    let (mut values, mut are_dates) = (Vec::new(), true);
    each(&column, |bytes| {
        let value = value(column.field.datatype, bytes).and_then(|value| units.date(value));
        are_dates &= value.is_some();
        values.extend(value.unwrap_or(i64::MIN).to_le_bytes());
    })?;
    if !are_dates {
        return Ok((column, Calendar::default()));
    }
    let dates = Column::fixed(Field::new(column.field.name, Datatype::DateTimeMs), vec![count], Arc::new(values));
    Ok((dates, units.calendar))
}

fn value(datatype: Datatype, bytes: &[u8]) -> Option<f64> {
    number::text(datatype, bytes)?.parse().ok()
}

impl TimeUnits {
    fn of(notes: &[Metadatum]) -> Option<Self> {
        let note = |key: &str| {
            let found = notes.iter().find(|note| note.key == key)?;
            text::decode(found.datatype, &found.value).map(|text| text.trim_end_matches('\0').to_lowercase())
        };
        let units = note("units")?;
        let (unit, since) = units.split_once(" since ")?;
        let unit = match unit.trim() {
            "weeks" | "week" => 7.0 * DAY as f64,
            "days" | "day" | "d" => DAY as f64,
            "hours" | "hour" | "hrs" | "hr" | "h" => 3_600_000.0,
            "minutes" | "minute" | "mins" | "min" => 60_000.0,
            "seconds" | "second" | "secs" | "sec" | "s" => 1000.0,
            "milliseconds" | "millisecond" | "msec" | "ms" => 1.0,
            _ => return None,
        };
        let calendar = Calendar::named(note("calendar").as_deref().unwrap_or("standard"))?;
        Some(TimeUnits { unit, since: instant(calendar, since)?, calendar })
    }

    /// Returns the date of a value, in milliseconds since 1970; `None` if there is none.
    fn date(&self, value: f64) -> Option<i64> {
        let milliseconds = (value * self.unit).round();
        if milliseconds.is_nan() || milliseconds.abs() >= 9e15 {
            return None;
        }
        let date = self.since.checked_add(milliseconds as i64)?;
        let (year, ..) = self.calendar.date(i128::from(date.div_euclid(DAY)));
        self.calendar.has_year(year).then_some(date)
    }
}

/// Parses `2000-1-1 0:0:0`, a date of a calendar that may have a time in UTC, as milliseconds since 1970.
fn instant(calendar: Calendar, text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches("utc").trim_end_matches('z').trim_end();
    let (date, time) = text.split_once([' ', 't']).unwrap_or((text, "0:0:0"));
    let padded = |text: &str, separator: char, joined: &str| {
        let parts: Vec<String> = text.trim().split(separator).map(|part| format!("{part:0>2}")).collect();
        parts.join(joined)
    };
    let (year, days) = date.split_once('-')?;
    let iso = format!("{year:0>4}-{}T{}", padded(days, '-', "-"), padded(time, ':', ":"));
    moment::parse_in(calendar, Datatype::DateTimeMs, &iso).ok().and_then(|(first, _)| i64::try_from(first).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: &str, calendar: &str) -> Option<TimeUnits> {
        TimeUnits::of(&[Metadatum::text("units", units), Metadatum::text("calendar", calendar)])
    }

    fn date(calendar: &str, text: &str) -> i64 {
        let calendar = Calendar::named(calendar).unwrap();
        moment::parse_in(calendar, Datatype::DateTimeMs, text).unwrap().0 as i64
    }

    #[test]
    fn counts_are_dates_of_their_calendar() {
        let cases = [
            ("days since 2000-01-01", "standard", 547.0, "2001-07-01"),
            ("hours since 1900-1-1 0:0:0", "gregorian", 1.5, "1900-01-01T01:30:00"),
            ("seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian", -1.0, "1969-12-31T23:59:59"),
            ("days since 1850-01-01 00:00:00", "noleap", 365.0 * 150.0 + 59.0, "2000-03-01"),
            ("days since 1999-03-01", "365_day", 365.0, "2000-03-01"),
            ("days since 1999-02-28", "all_leap", 1.0, "1999-02-29"),
            ("days since 2001-02-28", "360_day", 2.0, "2001-02-30"),
            ("hours since 2001-01-01", "360_day", 24.0 * 59.0 + 6.0, "2001-02-30T06:00:00"),
            ("days since 0001-01-01", "proleptic_gregorian", 0.0, "0001-01-01"),
            // As cftime says.
            ("days since 0001-01-01", "standard", 730_121.0, "2000-01-01"),
            ("days since 1582-10-15", "standard", -1.0, "1582-10-04"),
            ("days since 1899-12-31", "julian", 60.0, "1900-02-29"),
        ];
        for (text, calendar, value, wanted) in cases {
            assert_eq!(units(text, calendar).unwrap().date(value), Some(date(calendar, wanted)), "{text} {calendar}");
        }
        for (text, calendar) in [
            ("days since 2000-01-01", "none"),
            ("months since 2000-01-01", "standard"),
            ("days", "standard"),
            ("days since 0000-01-01", "standard"),
            ("days since x", "standard"),
            ("days since 2000-02-29", "noleap"),
            ("days since 2000-01-31", "360_day"),
        ] {
            assert!(units(text, calendar).is_none(), "{text} {calendar}");
        }
        let days = units("days since 0001-01-01", "standard").unwrap();
        assert_eq!((days.date(-1.0), days.date(f64::NAN), days.date(1e300)), (None, None, None));
    }
}
