//! Dates and times as users type them, ISO 8601, converted to counts of a dimension's unit.
//!
//! A text stands for the time that it spans: `2024-01` is all of January, whatever the unit. If the dimension's unit is
//! coarser than the text, the text stands for the whole unit around it, as in NumPy's conversion.
//!
//! * Dates: `2024`, `2024-01`, `2024-01-31`, `2024-01-31T10`, `2024-01-31T10:15`, `2024-01-31T10:15:00.250`; without
//!   colons `20240131`, `20240131T1015`, `20240131T101500.25`. A `Z` may follow a time of day: everything is UTC. Years
//!   before 0 and after 9999 have a sign (`-0044`, `+12024`).
//! * Times of the `TIME` types: `10`, `10:15`, `10:15:00.250`; without colons `T1015`. A sign and more than 24 hours
//!   are allowed.
//! * Both: a count of the dimension's unit with NumPy's name of it, since 1970 or midnight: `19753D`, `-5ms`.

use tilefs_format::datatype::Datatype;
use tilefs_format::time_unit::TimeUnit;

use crate::calendar::Calendar;

/// Counts saturate here, far outside any domain.
pub const SATURATED: i128 = 1 << 100;

const SECONDS_OF_DAY: i128 = 86_400;

/// Attoseconds in a second: the finest unit.
const ATTO: i128 = 1_000_000_000_000_000_000;

/// Returns the first and the last count of a dimension's unit in the time that a text spans.
///
/// # Errors
/// The reason, as part of a sentence.
pub fn parse(datatype: Datatype, text: &str) -> Result<(i128, i128), String> {
    parse_in(Calendar::Gregorian, datatype, text)
}

/// Does the same as [`parse`] for dates of any calendar.
///
/// # Errors
/// The reason, as part of a sentence.
pub fn parse_in(calendar: Calendar, datatype: Datatype, text: &str) -> Result<(i128, i128), String> {
    let unit = datatype.time_unit().unwrap_or(TimeUnit::Attosecond);
    if let Some(count) = count(text, unit)? {
        return Ok((count, count));
    }
    let (low, high) = match datatype.is_datetime() {
        true => date(text, calendar)?.in_unit(unit, calendar),
        false => time(text, unit)?,
    };
    Ok((low.clamp(-SATURATED, SATURATED), high.clamp(-SATURATED, SATURATED)))
}

/// Parses digits as a number that saturates at [`SATURATED`].
pub fn saturating_digits(digits: &str) -> i128 {
    digits.bytes().fold(0, |sum, digit| (sum * 10 + i128::from(digit - b'0')).min(SATURATED))
}

/// Parses `19753D`: digits, then letters that are the unit.
fn count(text: &str, unit: TimeUnit) -> Result<Option<i128>, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let letters = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &digits[..digits.len() - letters.len()];
    if digits.is_empty() || letters.is_empty() || !letters.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(None);
    }
    if letters != unit.symbol() {
        return Err(format!("counts of this dimension are in its unit, {unit}, as in 100{unit}"));
    }
    let count = saturating_digits(digits);
    Ok(Some(if negative { -count } else { count }))
}

/// A time since 1970 or midnight: seconds, and the fraction of a second in attoseconds, which is never negative.
#[derive(Clone, Copy)]
struct Moment {
    seconds: i128,
    attoseconds: i128,
}

impl Moment {
    /// Returns the number of the unit (an hour or less) that contains the moment.
    fn in_unit(self, unit: TimeUnit) -> i128 {
        let ticks = match unit.per_second() {
            Some(ticks) => i128::from(ticks),
            None if unit == TimeUnit::Minute => return self.seconds.div_euclid(60),
            None => return self.seconds.div_euclid(3600),
        };
        self.seconds.saturating_mul(ticks).saturating_add(self.attoseconds / (ATTO / ticks))
    }
}

/// A span of time.
enum Span {
    /// A year.
    Year(i128),
    /// A year, and a month of it, counted from 0.
    Month(i128, i128),
    /// A day since 1970.
    Day(i128),
    /// The first and last moment of a shorter span.
    Moments(Moment, Moment),
}

impl Span {
    /// Returns the numbers of the first and the last unit that overlap the span.
    fn in_unit(&self, unit: TimeUnit, calendar: Calendar) -> (i128, i128) {
        if unit <= TimeUnit::Month {
            let (year, first, last) = match *self {
                Span::Year(year) => (year, 0, 11),
                Span::Month(year, month) => (year, month, month),
                Span::Day(_) | Span::Moments(..) => {
                    let (year, month, _) = calendar.date(self.days(calendar).0);
                    (year, month - 1, month - 1)
                }
            };
            let years = year - 1970;
            return if unit == TimeUnit::Year { (years, years) } else { (years * 12 + first, years * 12 + last) };
        }
        let (first, last) = self.days(calendar);
        match (unit, self) {
            (TimeUnit::Week, _) => (first.div_euclid(7), last.div_euclid(7)),
            (TimeUnit::Day, _) => (first, last),
            (_, Span::Moments(first, last)) => (first.in_unit(unit), last.in_unit(unit)),
            _ => {
                let begin = Moment { seconds: first * SECONDS_OF_DAY, attoseconds: 0 };
                let end = Moment { seconds: (last + 1) * SECONDS_OF_DAY - 1, attoseconds: ATTO - 1 };
                (begin.in_unit(unit), end.in_unit(unit))
            }
        }
    }

    /// Returns the first and last day.
    fn days(&self, calendar: Calendar) -> (i128, i128) {
        match *self {
            Span::Year(year) => (calendar.first_day(year, 0), calendar.first_day(year + 1, 0) - 1),
            Span::Month(year, month) => (calendar.first_day(year, month), calendar.first_day(year, month + 1) - 1),
            Span::Day(day) => (day, day),
            Span::Moments(first, last) => {
                (first.seconds.div_euclid(SECONDS_OF_DAY), last.seconds.div_euclid(SECONDS_OF_DAY))
            }
        }
    }
}

const DATE: &str = "not a date; write 2024, 2024-01, 2024-01-31 or 2024-01-31T10:15:00.5";

fn date(text: &str, calendar: Calendar) -> Result<Span, String> {
    let mut rest = Scanner { text };
    let sign = rest.sign();
    let digits = rest.digits();
    let basic = sign.is_none() && digits.len() == 8;
    if !basic && sign.is_none() && digits.len() > 4 {
        return Err("years beyond 9999 have a sign, as in %2B12024".into());
    }
    if digits.len() < 4 {
        return Err(DATE.into());
    }
    let (year, month, day) = if basic {
        let (year, month, day) = (&digits[..4], &digits[4..6], &digits[6..]);
        (saturating_digits(year), saturating_digits(month), saturating_digits(day))
    } else {
        // Leaves space for adding a cycle of the calendar to the year without leaving the range of the arithmetic.
        let year = saturating_digits(digits).min(SATURATED >> 20);
        let year = if sign == Some('-') { -year } else { year };
        if !calendar.has_year(year) {
            return Err("the calendar has no such year".into());
        }
        if rest.is_empty() {
            return Ok(Span::Year(year));
        }
        let month = rest.after('-').and_then(Scanner::two).ok_or(DATE)?;
        if !(1..=12).contains(&month) {
            return Err("there is no such month".into());
        }
        if rest.is_empty() {
            return Ok(Span::Month(year, month - 1));
        }
        (year, month, rest.after('-').and_then(Scanner::two).ok_or(DATE)?)
    };
    let day = calendar.day(year, month, day).ok_or("there is no such day")?;
    if rest.is_empty() {
        return Ok(Span::Day(day));
    }
    if !rest.skip('T') && !rest.skip('t') && !rest.skip(' ') {
        return Err(DATE.into());
    }
    let hour = rest.two().ok_or(DATE)?;
    let clock = clock(&mut rest, hour, !basic).ok_or(DATE)?;
    let _ = rest.skip('Z') || rest.skip('z');
    match rest.text.as_bytes() {
        [] => {}
        [b'+' | b'-', ..] => return Err("only UTC is understood, without an offset".into()),
        _ => return Err(DATE.into()),
    }
    if hour > 23 {
        return Err("there is no such time of day".into());
    }
    let (mut first, mut last) = clock?;
    first.seconds += day * SECONDS_OF_DAY;
    last.seconds += day * SECONDS_OF_DAY;
    Ok(Span::Moments(first, last))
}

const TIME: &str = "not a time; write 07, 07:30 or 07:30:00.5";

fn time(text: &str, unit: TimeUnit) -> Result<(i128, i128), String> {
    let mut rest = Scanner { text };
    let sign = rest.sign();
    let basic = rest.skip('T') && !rest.text.contains(':');
    let hour = match basic {
        true => rest.two().ok_or(TIME)?,
        false => saturating_digits(Some(rest.digits()).filter(|digits| digits.len() >= 2).ok_or(TIME)?),
    };
    let (first, last) = clock(&mut rest, hour, !basic).ok_or(TIME)??;
    if !rest.is_empty() {
        return Err(TIME.into());
    }
    // The sign applies to the whole text; a negative text spans times that are further from midnight.
    let (first, last) = (first.in_unit(unit), last.in_unit(unit));
    Ok(if sign == Some('-') { (-last, -first) } else { (first, last) })
}

/// Parses the rest of a time of day whose hour was read, and returns its first and last moment; `None` if the rest has
/// another form.
fn clock(rest: &mut Scanner<'_>, hour: i128, colons: bool) -> Option<Result<(Moment, Moment), String>> {
    let next = |rest: &mut Scanner<'_>| match colons {
        true if rest.skip(':') => rest.two().map(Some),
        false if rest.text.starts_with(|c: char| c.is_ascii_digit()) => rest.two().map(Some),
        _ => Some(None),
    };
    let spanning = |seconds: i128, length: i128| {
        let last = Moment { seconds: seconds + length - 1, attoseconds: ATTO - 1 };
        Some(Ok((Moment { seconds, attoseconds: 0 }, last)))
    };
    let Some(minute) = next(rest)? else { return spanning(hour * 3600, 3600) };
    let second = next(rest)?;
    if minute > 59 || second.is_some_and(|second| second > 59) {
        return Some(Err("there is no such time of day".into()));
    }
    let Some(second) = second else { return spanning(hour * 3600 + minute * 60, 60) };
    let seconds = hour * 3600 + minute * 60 + second;
    if !rest.skip('.') && !rest.skip(',') {
        return spanning(seconds, 1);
    }
    let digits = rest.digits();
    if !(1..=18).contains(&digits.len()) {
        return Some(Err("a fraction of a second has 1 to 18 digits".into()));
    }
    let length = 10i128.pow(18 - digits.len() as u32);
    let attoseconds = saturating_digits(digits) * length;
    Some(Ok((Moment { seconds, attoseconds }, Moment { seconds, attoseconds: attoseconds + length - 1 })))
}

/// Parses a text from the front; `text` is the rest.
pub struct Scanner<'a> {
    pub text: &'a str,
}

impl<'a> Scanner<'a> {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn skip(&mut self, character: char) -> bool {
        let rest = self.text.strip_prefix(character);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    pub fn after(&mut self, character: char) -> Option<&mut Self> {
        self.skip(character).then_some(self)
    }

    fn sign(&mut self) -> Option<char> {
        let sign = self.text.chars().next().filter(|sign| ['+', '-'].contains(sign))?;
        self.text = &self.text[1..];
        Some(sign)
    }

    /// Takes all digits that come next.
    pub fn digits(&mut self) -> &'a str {
        let rest = self.text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &self.text[..self.text.len() - rest.len()];
        self.text = rest;
        digits
    }

    /// Takes two digits.
    pub fn two(&mut self) -> Option<i128> {
        let (digits, rest) = self.text.split_at_checked(2)?;
        self.text = rest;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| saturating_digits(digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Datatype::*;
    use proptest::prelude::*;

    #[test]
    fn text_means_the_time_it_spans() {
        for (datatype, text, low, high) in [
            (DateTimeYear, "2024", 54, 54),
            (DateTimeYear, "2024-06-15", 54, 54),
            (DateTimeYear, "-0001", -1971, -1971),
            (DateTimeYear, "+10000", 8030, 8030),
            (DateTimeMonth, "2024", 648, 659),
            (DateTimeMonth, "1969-12", -1, -1),
            (DateTimeMonth, "2024-01-31T10", 648, 648),
            (DateTimeWeek, "1970-01-07", 0, 0),
            (DateTimeWeek, "1970-01-08", 1, 1),
            (DateTimeWeek, "1970-01", 0, 4),
            (DateTimeDay, "2024-01", 19_723, 19_753),
            (DateTimeDay, "2024-02", 19_754, 19_782),
            (DateTimeDay, "2024", 19_723, 20_088),
            (DateTimeDay, "20240131", 19_753, 19_753),
            (DateTimeDay, "2024-01-31T23:59", 19_753, 19_753),
            (DateTimeHr, "1970-01-01", 0, 23),
            (DateTimeHr, "1969-12-31T23", -1, -1),
            (DateTimeMin, "1970-01-01T01", 60, 119),
            (DateTimeSec, "1970-01-01T00:01", 60, 119),
            (DateTimeSec, "19700101T000100Z", 60, 60),
            (DateTimeMs, "1970-01-01T00:00:01.5", 1500, 1599),
            (DateTimeMs, "1970-01-01T00:00:01.5009", 1500, 1500),
            (DateTimeUs, "1970-01-01 00:00:01", 1_000_000, 1_999_999),
            (DateTimeNs, "1970-01-01T00:00:00.000000001", 1, 1),
            (DateTimeAs, "1970-01-01T00:00:00.000000000000000001", 1, 1),
            (DateTimeDay, "19753D", 19_753, 19_753),
            (DateTimeMs, "-5ms", -5, -5),
            (TimeHr, "10", 10, 10),
            (TimeHr, "10:59", 10, 10),
            (TimeMin, "10:15", 615, 615),
            (TimeSec, "10:15", 36_900, 36_959),
            (TimeSec, "T101501", 36_901, 36_901),
            (TimeSec, "T10:15:01", 36_901, 36_901),
            (TimeSec, "100:00:00", 360_000, 360_000),
            (TimeSec, "-00:01", -119, -60),
            (TimeNs, "00:00:00.25", 250_000_000, 259_999_999),
            (TimeAs, "3as", 3, 3),
        ] {
            assert_eq!(parse(datatype, text), Ok((low, high)), "{text} in {}", datatype.name());
        }
    }

    #[test]
    fn invalid_dates_and_times_are_refused() {
        for text in [
            "",
            "-",
            "1",
            "20",
            "202",
            "20240",
            "202401",
            "2024-1",
            "2024-13",
            "2024-00",
            "2024-02-30",
            "2023-02-29",
            "2024-01-00",
            "2024-01-31T",
            "2024-01-31T1",
            "2024-01-31T24",
            "2024-01-31T10:60",
            "2024-01-31T10:1",
            "2024-01-31T1015",
            "20240131T10:15",
            "2024-01-31T10:15:60",
            "2024-01-31T10:15:00.",
            "20240230",
            "2024-01-31T10:15:00.1234567890123456789",
            "2024-01-31T10+02:00",
            "2024-01-31Z",
            "now",
            "2024-01-31x",
            "5h",
            "5Days",
            "2024é",
            "é",
            "-é",
            "٢٠٢٤",
            "2024-01-31T10:15ZZ",
        ] {
            assert!(parse(DateTimeDay, text).is_err(), "{text}");
        }
        for text in
            ["", "1", "1:00", "10:", "10:6", "10:60", "T1", "T10:1", "2024-01-01", "10:15Z", "T101", "10é", "5D"]
        {
            assert!(parse(TimeSec, text).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_their_calendar() {
        let days = |calendar, text| parse_in(calendar, DateTimeDay, text).ok();
        assert_eq!(days(Calendar::Days360, "1970-02-30"), Some((59, 59)));
        assert_eq!(days(Calendar::Days360, "1971"), Some((360, 719)));
        assert_eq!(days(Calendar::NoLeap, "1972-02"), Some((761, 788)));
        assert_eq!(days(Calendar::NoLeap, "1972-02-29"), None);
        assert_eq!(days(Calendar::AllLeap, "19710229"), Some((425, 425)));
        // Without the days from the 5th to the 14th.
        assert_eq!(days(Calendar::Mixed, "1582-10"), Some((-141_431, -141_411)));
        assert_eq!((days(Calendar::Mixed, "0000"), days(Calendar::Mixed, "1582-10-10")), (None, None));
        let end = parse_in(Calendar::Days360, DateTimeMs, "1970-01-30T23:59:59.999");
        assert_eq!(end, Ok((30 * 86_400_000 - 1, 30 * 86_400_000 - 1)));
    }

    #[test]
    fn distant_times_saturate() {
        let digits = "9".repeat(60);
        for number in DateTimeYear as u8..=TimeAs as u8 {
            let datatype = Datatype::from_number(number).unwrap();
            let text = if datatype.is_datetime() { format!("+{digits}-12-31T23") } else { format!("{digits}:00:00") };
            let (low, high) = parse(datatype, &text).unwrap();
            assert!(low > i128::from(u64::MAX) && high >= low && high <= SATURATED, "{}", datatype.name());
            let (low, high) = parse(datatype, &format!("-{}", text.trim_start_matches('+'))).unwrap();
            assert!(high < i128::from(i64::MIN) && high >= low && low >= -SATURATED, "{}", datatype.name());
            let count = format!("-{digits}{}", datatype.time_unit().unwrap());
            assert_eq!(parse(datatype, &count), Ok((-SATURATED, -SATURATED)));
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9TZ:. +-]{0,24}|\\PC{0,20}", number in 18u8..40) {
            if let Ok((low, high)) = parse(Datatype::from_number(number).unwrap(), &text) {
                prop_assert!(low <= high);
            }
        }

        /// The spans of finer texts are consecutive, and together equal that of the coarser text.
        #[test]
        fn months_make_years(year in 0i64..9999, number in 19u8..31) {
            let datatype = Datatype::from_number(number).unwrap();
            let (low, high) = parse(datatype, &format!("{year:04}")).unwrap();
            let mut next = low;
            for month in 1..=12 {
                let (first, last) = parse(datatype, &format!("{year:04}-{month:02}")).unwrap();
                // A week may belong to two months.
                prop_assert!(first == next || datatype == DateTimeWeek && first + 1 == next);
                next = last + 1;
            }
            prop_assert_eq!(next, high + 1);
        }

        #[test]
        fn seconds_make_minutes(minute in 0i128..2_000_000_000, number in 24u8..31) {
            let datatype = Datatype::from_number(number).unwrap();
            let (year, month, day) = Calendar::Gregorian.date(minute / 1440);
            let text = format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}", minute / 60 % 24, minute % 60);
            let (low, high) = parse(datatype, &text).unwrap();
            let units = 60 * 10i128.pow(3 * u32::from(number - DateTimeSec as u8));
            prop_assert_eq!((low, high), (minute * units, (minute + 1) * units - 1));
            let (first, _) = parse(datatype, &format!("{text}:00")).unwrap();
            let (_, last) = parse(datatype, &format!("{text}:59")).unwrap();
            prop_assert_eq!((low, high), (first, last));
        }
    }
}
