//! Coordinates that count times since a date, as dates. CF describes them by `units` and `calendar`.

use std::sync::Arc;

use tilefs_export::number;
use tilefs_export::{Column, Field, Metadatum};
use tilefs_format::calendar;
use tilefs_format::datatype::Datatype;
use tilefs_format::error::Result;
use tilefs_format::text;

use crate::fields::coordinates::each;
use crate::select::moment;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// The first day of the Gregorian calendar in the calendar `standard`: 1582-10-15.
const FIRST_GREGORIAN_DAY: i64 = -141_427;

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Calendar {
    /// The Gregorian calendar from 1582 on, before it the Julian one.
    Standard,
    Gregorian,
    /// All years have 365 days.
    NoLeap,
}

/// Returns coordinates as dates in milliseconds if they count times in a calendar whose dates TileDB has, too; otherwise as
/// they are.
///
/// # Errors
/// Fails if the coordinates cannot be read.
pub fn decoded(column: Column) -> Result<Column> {
    let count = column.cells();
    let is_number = column.field.values_per_cell == Some(1) && !column.field.is_bytes();
    let units = TimeUnits::of(&column.field.notes).filter(|_| is_number && count <= MOST);
    let (Some(units), None) = (units, column.field.datatype.time_unit()) else { return Ok(column) };
    let (mut values, mut are_dates) = (Vec::new(), true);
    each(&column, |bytes| {
        let value = value(column.field.datatype, bytes).and_then(|value| units.date(value));
        are_dates &= value.is_some();
        values.extend(value.unwrap_or(i64::MIN).to_le_bytes());
    })?;
    if !are_dates {
        return Ok(column);
    }
    Ok(Column::fixed(Field::new(column.field.name, Datatype::DateTimeMs), vec![count], Arc::new(values)))
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
        let calendar = match note("calendar").as_deref() {
            None | Some("standard" | "gregorian") => Calendar::Standard,
            Some("proleptic_gregorian") => Calendar::Gregorian,
            Some("noleap" | "365_day") => Calendar::NoLeap,
            // They have dates that TileDB's calendar lacks.
            Some(_) => return None,
        };
        Some(TimeUnits { unit, since: calendar.count(instant(since)?)?, calendar })
    }

    /// Returns the date of a value, in milliseconds since 1970; `None` if there is none.
    fn date(&self, value: f64) -> Option<i64> {
        let milliseconds = (value * self.unit).round();
        if milliseconds.is_nan() || milliseconds.abs() >= 9e15 {
            return None;
        }
        self.calendar.date(self.since.checked_add(milliseconds as i64)?)
    }
}

impl Calendar {
    /// Returns the milliseconds since 1970 in this calendar of a date of TileDB's calendar.
    fn count(self, date: i64) -> Option<i64> {
        let days = date.div_euclid(DAY);
        if self != Calendar::NoLeap {
            return Some(date).filter(|_| self == Calendar::Gregorian || days >= FIRST_GREGORIAN_DAY);
        }
        let (year, month, day) = calendar::civil(days);
        let days = 365 * (year - 1970) + days_before(month) + i64::from(day) - 1;
        let is_there = (month, day) != (2, 29);
        is_there.then_some(days * DAY + date.rem_euclid(DAY))
    }

    /// Returns the date of TileDB's calendar of milliseconds since 1970 in this calendar.
    fn date(self, count: i64) -> Option<i64> {
        let days = count.div_euclid(DAY);
        if self != Calendar::NoLeap {
            return Some(count).filter(|_| self == Calendar::Gregorian || days >= FIRST_GREGORIAN_DAY);
        }
        let (year, of_year) = (days.div_euclid(365), days.rem_euclid(365));
        let month = (1..=12).rev().find(|&month| days_before(month) <= of_year).unwrap_or(1);
        let first = calendar::days_of_months(12 * year + i64::from(month) - 1)?;
        (first + of_year - days_before(month)).checked_mul(DAY)?.checked_add(count.rem_euclid(DAY))
    }
}

/// Returns the days before a month in a year of 365 days.
fn days_before(month: u32) -> i64 {
    const DAYS: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    DAYS.get(month as usize - 1).copied().unwrap_or(0)
}

/// Parses `2000-1-1 0:0:0`, a date that may have a time in UTC, as milliseconds since 1970.
fn instant(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches("utc").trim_end_matches('z').trim_end();
    let (date, time) = text.split_once([' ', 't']).unwrap_or((text, "0:0:0"));
    let padded = |text: &str, separator: char, joined: &str| {
        let parts: Vec<String> = text.trim().split(separator).map(|part| format!("{part:0>2}")).collect();
        parts.join(joined)
    };
    let (year, days) = date.split_once('-')?;
    let iso = format!("{year:0>4}-{}T{}", padded(days, '-', "-"), padded(time, ':', ":"));
    moment::parse(Datatype::DateTimeMs, &iso).ok().and_then(|(first, _)| i64::try_from(first).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: &str, calendar: &str) -> Option<TimeUnits> {
        let note = |key: &str, value: &str| Metadatum {
            key: key.into(),
            datatype: Datatype::StringUtf8,
            value: value.as_bytes().to_vec(),
        };
        TimeUnits::of(&[note("units", units), note("calendar", calendar)])
    }

    fn date(text: &str) -> i64 {
        moment::parse(Datatype::DateTimeMs, text).unwrap().0 as i64
    }

    #[test]
    fn counts_are_dates_of_their_calendar() {
        let cases = [
            ("days since 2000-01-01", "standard", 547.0, "2001-07-01"),
            ("hours since 1900-1-1 0:0:0", "gregorian", 1.5, "1900-01-01T01:30:00"),
            ("seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian", -1.0, "1969-12-31T23:59:59"),
            ("days since 1850-01-01 00:00:00", "noleap", 365.0 * 150.0 + 59.0, "2000-03-01"),
            ("days since 1999-03-01", "365_day", 365.0, "2000-03-01"),
            ("days since 0001-01-01", "proleptic_gregorian", 0.0, "0001-01-01"),
        ];
        for (text, calendar, value, wanted) in cases {
            assert_eq!(units(text, calendar).unwrap().date(value), Some(date(wanted)), "{text} {calendar}");
        }
        for (text, calendar) in [
            ("days since 2000-01-01", "360_day"),
            ("months since 2000-01-01", "standard"),
            ("days", "standard"),
            ("days since 0001-01-01", "standard"),
            ("days since x", "standard"),
            ("days since 2000-02-29", "noleap"),
        ] {
            assert!(units(text, calendar).is_none(), "{text} {calendar}");
        }
        let days = units("days since 1582-10-15", "standard").unwrap();
        assert_eq!((days.date(0.0), days.date(-1.0)), (Some(date("1582-10-15")), None));
        assert_eq!((days.date(f64::NAN), days.date(1e300)), (None, None));
    }
}
