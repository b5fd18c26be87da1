//! Dates and times as ISO 8601, as precise as their unit: `2024-01-31`, `2024-01-31T10:15`, `10:15:00.250`.
//!
//! Years have at least four digits, and a sign before year 0 and after 9999. As in NumPy, the smallest integer is not a
//! time, `NaT`.

use tilefs_base::calendar;

use crate::datatype::Datatype;
use crate::time_unit::TimeUnit::{self, *};

/// Returns the length of the longest text of a date or time, to which every text is padded.
///
/// All 64-bit counts have a text, so coarse units need space for very large years.
pub fn width(datatype: Datatype) -> usize {
    let unit = unit_of(datatype);
    match (datatype.is_datetime(), unit) {
        (true, Year) => 20,
        (true, Month) => 22,
        (true, Week) => 25,
        (true, Day) => 24,
        (true, Hour) => 26,
        (true, Minute) => 27,
        (true, Second) => 28,
        (true, Millisecond | Microsecond) => 29,
        (true, Nanosecond) => 29,
        (true, Picosecond) => 32,
        (true, Femtosecond) => 35,
        (true, _) => 38,
        (false, Hour) => 20,
        (false, Minute) => 22,
        (false, Second) => 23,
        (false, Millisecond | Microsecond | Nanosecond | Picosecond) => 24,
        (false, Femtosecond) => 25,
        (false, _) => 28,
    }
}

/// Calls `write` with the text of a date or time.
pub fn print(datatype: Datatype, value: i64, write: impl FnOnce(&[u8])) {
    let mut text = ShortText { bytes: [0; 48], length: 0 };
    if value == i64::MIN {
        text.put(b"NaT");
    } else if datatype.is_datetime() {
        date(&mut text, unit_of(datatype), value);
    } else {
        // Negative times have a sign, and the same digits as positive ones.
        if value < 0 {
            text.put(b"-");
        }
        time_of_day(&mut text, unit_of(datatype), value.unsigned_abs());
    }
    write(&text.bytes[..text.length]);
}

fn date(text: &mut ShortText, unit: TimeUnit, value: i64) {
    // The days, and the rest of the day in the unit.
    let (days, rest) = match unit {
        Year => return text.year(i128::from(value) + 1970),
        Month => {
            let (year, month) = calendar::year_and_month(value);
            text.year(year.into());
            text.put(b"-");
            return text.digits(month.into(), 2);
        }
        // Weeks begin on the epoch's weekday. Their days may exceed 64 bits, so 400-year cycles are split off first.
        Week => return weeks(text, value),
        Day => (value, 0),
        Hour => (value.div_euclid(24), value.rem_euclid(24)),
        Minute => (value.div_euclid(24 * 60), value.rem_euclid(24 * 60)),
        _ => {
            let ticks = ticks_of_second(unit) as i64;
            let seconds = value.div_euclid(ticks);
            text.day(seconds.div_euclid(86_400));
            text.put(b"T");
            return clock(text, unit, seconds.rem_euclid(86_400) as u64, value.rem_euclid(ticks) as u64);
        }
    };
    text.day(days);
    if unit != Day {
        text.put(b"T");
        time_of_day(text, unit, rest as u64);
    }
}

fn weeks(text: &mut ShortText, value: i64) {
    // The calendar repeats after 400 years, which are 20,871 weeks.
    let (cycles, weeks) = (value.div_euclid(20_871), value.rem_euclid(20_871));
    let (year, month, day) = calendar::civil(weeks * 7);
    text.civil(i128::from(year) + 400 * i128::from(cycles), month, day);
}

/// Writes hours and smaller units down to the unit; more than 24 hours stay hours.
fn time_of_day(text: &mut ShortText, unit: TimeUnit, value: u64) {
    match unit {
        Hour => text.digits(value, 2),
        Minute => {
            text.digits(value / 60, 2);
            text.put(b":");
            text.digits(value % 60, 2);
        }
        _ => clock(text, unit, value / ticks_of_second(unit), value % ticks_of_second(unit)),
    }
}

fn clock(text: &mut ShortText, unit: TimeUnit, seconds: u64, ticks: u64) {
    text.digits(seconds / 3600, 2);
    text.put(b":");
    text.digits(seconds / 60 % 60, 2);
    text.put(b":");
    text.digits(seconds % 60, 2);
    let places = ticks_of_second(unit).ilog10() as usize;
    if places > 0 {
        text.put(b".");
        text.digits(ticks, places);
    }
}

/// Returns the number of ticks of a unit of seconds or less in a second.
fn ticks_of_second(unit: TimeUnit) -> u64 {
    unit.per_second().unwrap_or(1)
}

/// Returns the unit of a date or time; only these are printed.
fn unit_of(datatype: Datatype) -> TimeUnit {
    datatype.time_unit().unwrap_or(Second)
}

/// A short text under construction.
struct ShortText {
    bytes: [u8; 48],
    length: usize,
}

impl ShortText {
    fn put(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    /// Appends a number with at least `least` digits.
    fn digits(&mut self, value: u64, least: usize) {
        if least == 2 && value < 100 {
            return self.put(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
        }
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value);
        for _ in digits.len()..least {
            self.put(b"0");
        }
        self.put(digits.as_bytes());
    }

    fn year(&mut self, year: i128) {
        if !(0..=9999).contains(&year) {
            self.put(if year < 0 { b"-" } else { b"+" });
        }
        // A year has at most 19 digits, since it comes from a 64-bit count.
        self.digits(u64::try_from(year.unsigned_abs()).unwrap_or(u64::MAX), 4);
    }

    fn civil(&mut self, year: i128, month: u32, day: u32) {
        self.year(year);
        self.put(b"-");
        self.digits(month.into(), 2);
        self.put(b"-");
        self.digits(day.into(), 2);
    }

    fn day(&mut self, days: i64) {
        let (year, month, day) = calendar::civil(days);
        self.civil(year.into(), month, day);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Datatype::*;
    use proptest::prelude::*;

    fn text(datatype: Datatype, value: i64) -> String {
        let mut text = String::new();
        print(datatype, value, |bytes| text = String::from_utf8(bytes.to_vec()).unwrap());
        text
    }

    #[test]
    fn units_decide_the_precision() {
        assert_eq!(text(DateTimeYear, 54), "2024");
        assert_eq!(text(DateTimeYear, -1971), "-0001");
        assert_eq!(text(DateTimeYear, 8030), "+10000");
        assert_eq!(text(DateTimeMonth, -1), "1969-12");
        assert_eq!(text(DateTimeWeek, 1), "1970-01-08");
        assert_eq!(text(DateTimeDay, 19_753), "2024-01-31");
        assert_eq!(text(DateTimeHr, -1), "1969-12-31T23");
        assert_eq!(text(DateTimeMin, 61), "1970-01-01T01:01");
        assert_eq!(text(DateTimeSec, 86_399), "1970-01-01T23:59:59");
        assert_eq!(text(DateTimeMs, -1), "1969-12-31T23:59:59.999");
        assert_eq!(text(DateTimeNs, 1), "1970-01-01T00:00:00.000000001");
        assert_eq!(text(DateTimeAs, 1), "1970-01-01T00:00:00.000000000000000001");
        assert_eq!(text(DateTimeNs, i64::MIN), "NaT");
        assert_eq!(text(TimeHr, 30), "30");
        assert_eq!(text(TimeMin, 61), "01:01");
        assert_eq!(text(TimeMs, 86_399_250), "23:59:59.250");
        assert_eq!(text(TimeUs, -1), "-00:00:00.000001");
    }

    #[test]
    fn the_ends_of_the_range_fill_the_width() {
        for number in DateTimeYear as u8..=TimeAs as u8 {
            let datatype = Datatype::from_number(number).unwrap();
            let ends = [i64::MIN + 1, i64::MAX].map(|value| text(datatype, value).len());
            assert_eq!(*ends.iter().max().unwrap(), width(datatype), "{}", datatype.name());
        }
    }

    proptest! {
        #[test]
        fn weeks_are_seven_days(weeks in -1_000_000_000i64..1_000_000_000) {
            prop_assert_eq!(text(DateTimeWeek, weeks), text(DateTimeDay, 7 * weeks));
        }

        #[test]
        fn finer_units_give_the_same_time(seconds in -9_000_000_000i64..9_000_000_000) {
            let coarse = text(DateTimeSec, seconds);
            prop_assert_eq!(text(DateTimeNs, seconds * 1_000_000_000), format!("{coarse}.000000000"));
            prop_assert_eq!(text(DateTimeMin, seconds.div_euclid(60)), &coarse[..16]);
        }
    }
}
