//! Points in time as users type them and as folders are named: ISO 8601 in UTC, to the millisecond.
//!
//! Arrays count milliseconds since 1970-01-01T00:00:00Z, without leap seconds, as an unsigned number.

use tilefs_export::text::time::print;
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Result};

use super::grammar::moment::{self, Scanner, saturating_digits};

/// Integers below this (1973-03-03 in milliseconds) are probably a date or seconds rather than milliseconds.
const SUSPICIOUSLY_SMALL: u64 = 100_000_000_000;

/// The first millisecond of the year 10000.
const YEAR_10000: i64 = 253_402_300_800_000;

const MS_PER_DAY: i128 = 86_400_000;

/// The prefix of a count of milliseconds in a name.
const COUNT: &str = "ms-";

/// Parses an integer (milliseconds) or an ISO 8601 time in UTC to milliseconds since 1970.
///
/// Both the extended form (`2024-01-31T10:15:00.000Z`) and the basic form (`20240131T101500.000Z`) are accepted. The
/// `Z` may be omitted, and so may the fraction, the seconds and, in the extended form, the whole time of day, which is
/// then 00:00. A space may replace the `T`. A leap second counts as the first millisecond after it.
///
/// # Errors
/// [`Error::Usage`] if the text is neither, lies before 1970, or contains another time zone.
pub fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| Error::usage(format!("the time {text} is too large")));
    }
    parse_iso(text).map_err(|reason| {
        Error::usage(format!(
            "'{text}' is not a time: {reason}; write 2024-01-31T10:15:00Z, or milliseconds since 1970 as an integer"
        ))
    })
}

/// Returns the first and the last millisecond since 1970 that the name of a folder spans: a date or a time in the forms
/// that selections accept, so that `2024` is that year and `2024-01-31T10:15` that minute, or an explicit count of
/// milliseconds, `ms-1704067200000`. A span that begins before 1970 is cut; `None` for all other names, and for spans
/// that end before 1970.
pub fn span(name: &str) -> Option<(u64, u64)> {
    if let Some(digits) = name.strip_prefix(COUNT) {
        let count = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        return Some((count, count));
    }
    let (first, last) = moment::parse(Datatype::DateTimeMs, name).ok()?;
    let clipped = |count: i128| u64::try_from(count.max(0)).unwrap_or(u64::MAX);
    (last >= 0).then(|| (clipped(first), clipped(last)))
}

/// Returns a warning for a time that parsed but was probably meant differently.
pub fn warning(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let milliseconds: u64 = text.parse().ok().filter(|&value| value < SUSPICIOUSLY_SMALL)?;
    Some(format!("the time {text} is taken as milliseconds since 1970, which is {}", extended(milliseconds)))
}

/// Returns the folder name of a time, which [`span`] reads: `20240131T101500.000Z`, beyond the year 9999 a count
/// (`ms-253402300800000`).
pub fn basic(milliseconds: u64) -> String {
    iso(milliseconds).map_or_else(|| format!("{COUNT}{milliseconds}"), |text| text.replace(['-', ':'], ""))
}

/// Returns the time in the usual form: `2024-01-31T10:15:00.000Z`. Years beyond 9999 stay an integer.
pub fn extended(milliseconds: u64) -> String {
    iso(milliseconds).unwrap_or_else(|| milliseconds.to_string())
}

fn iso(milliseconds: u64) -> Option<String> {
    let milliseconds = i64::try_from(milliseconds).ok().filter(|&value| value < YEAR_10000)?;
    let mut text = String::new();
    print(Datatype::DateTimeMs, milliseconds, |bytes| text.push_str(&String::from_utf8_lossy(bytes)));
    Some(text + "Z")
}

fn parse_iso(text: &str) -> std::result::Result<u64, &'static str> {
    const SHAPE: &str = "it is not in the form of ISO 8601";
    let mut rest = Scanner { text };
    let digits = rest.digits();
    let extended = digits.len() == 4;
    let (year, month, day) = match digits.len() {
        4 => (
            digits,
            rest.after('-').and_then(Scanner::two).ok_or(SHAPE)?,
            rest.after('-').and_then(Scanner::two).ok_or(SHAPE)?,
        ),
        8 => (&digits[..4], saturating_digits(&digits[4..6]), saturating_digits(&digits[6..])),
        _ => return Err(SHAPE),
    };
    let (mut hour, mut minute, mut second, mut millisecond) = (0, 0, 0, 0);
    if rest.skip('T') || rest.skip('t') || rest.skip(' ') {
        hour = rest.two().ok_or(SHAPE)?;
        if extended && !rest.skip(':') {
            return Err(SHAPE);
        }
        minute = rest.two().ok_or(SHAPE)?;
        if if extended { rest.skip(':') } else { rest.text.starts_with(|c: char| c.is_ascii_digit()) } {
            second = rest.two().ok_or(SHAPE)?;
            if rest.skip('.') || rest.skip(',') {
                let digits = rest.digits();
                if !(1..=3).contains(&digits.len()) {
                    return Err("a fraction has one to three digits (milliseconds)");
                }
                millisecond = saturating_digits(digits) * 10i128.pow(3 - digits.len() as u32);
            }
        }
        let _ = rest.skip('Z') || rest.skip('z');
    } else if !extended {
        return Err(SHAPE);
    }
    match rest.text.as_bytes() {
        [] => {}
        [b'+' | b'-', ..] => return Err("only UTC is understood, without an offset"),
        _ => return Err(SHAPE),
    }
    let year = saturating_digits(year);
    if year < 1970 {
        return Err("arrays have no times before 1970");
    }
    let days = moment::day(year, month, day).ok_or("there is no such day")?;
    if hour > 23 || minute > 59 || second > 60 {
        return Err("there is no such time of day");
    }
    // A four-digit year is far from the end of the range.
    Ok((days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2024-01-31T10:15:00Z, as printed by `date -u -d … +%s`.
    const JANUARY: u64 = 1_706_696_100_000;

    #[test]
    fn every_form_of_one_time_is_the_same() {
        for text in [
            "1706696100000",
            "2024-01-31T10:15:00.000Z",
            "2024-01-31T10:15:00Z",
            "2024-01-31T10:15Z",
            "2024-01-31 10:15",
            "20240131T101500.000Z",
            "20240131T101500Z",
            "20240131T1015",
            "20240131t101500,0z",
        ] {
            assert_eq!(parse(text).ok(), Some(JANUARY), "{text}");
        }
        assert_eq!(parse("2024-01-31").ok(), Some(JANUARY - 10 * 3_600_000 - 15 * 60_000));
        assert_eq!(parse("2024-01-31T10:15:00.5").ok(), Some(JANUARY + 500));
        assert_eq!(parse("2024-01-31T10:15:00.07Z").ok(), Some(JANUARY + 70));
        assert_eq!(parse("1970-01-01").ok(), Some(0));
        assert_eq!(parse("2000-02-29").ok(), Some(951_782_400_000));
        assert_eq!(parse("2016-12-31T23:59:60Z").ok(), parse("2017-01-01").ok());
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "now",
            "-1",
            "1e9",
            "2024-1-31",
            "2024-13-01",
            "2024-02-30",
            "2023-02-29",
            "2100-02-29",
            "2024-01-00",
            "2024-01-31T",
            "2024-01-31T24:00",
            "2024-01-31T10",
            "2024-01-31T10:60",
            "2024-01-31T1015",
            "20240131T10:15",
            "2024-01-31T10:15:00.0000Z",
            "2024-01-31T10:15:00.Z",
            "2024-01-31T10:15:00+02:00",
            "1969-12-31",
            "2024-01-31Z",
            "2024-01-31T10:15:00ZZ",
            "18446744073709551616",
            "2024\u{e4}01-31",
        ] {
            let error = parse(text).expect_err(text);
            assert!(matches!(error, Error::Usage { .. }), "{text}");
        }
        assert!(parse("2024-01-31T10:15:00+02:00").unwrap_err().to_string().contains("UTC"));
    }

    #[test]
    fn small_integers_warn() {
        assert_eq!(
            warning("20240131").as_deref(),
            Some("the time 20240131 is taken as milliseconds since 1970, which is 1970-01-01T05:37:20.131Z")
        );
        assert_eq!(warning("1706696100000"), None);
        assert_eq!(warning("2024-01-31"), None);
    }

    #[test]
    fn times_beyond_the_calendar_stay_numbers() {
        assert_eq!(extended(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(extended(253_402_300_800_000), "253402300800000");
        assert_eq!(basic(u64::MAX), format!("ms-{}", u64::MAX));
    }

    #[test]
    fn names_mean_the_time_they_span() {
        for (name, first, last) in [
            ("2024", 1_704_067_200_000, 1_735_689_599_999),
            ("2024-01", 1_704_067_200_000, 1_706_745_599_999),
            ("20240131", 1_706_659_200_000, 1_706_745_599_999),
            ("2024-01-31T10:15", JANUARY, JANUARY + 59_999),
            ("20240131T101500Z", JANUARY, JANUARY + 999),
            ("20240131T101500.000Z", JANUARY, JANUARY),
            ("ms-1706696100000", JANUARY, JANUARY),
            ("1706696100000ms", JANUARY, JANUARY),
            ("ms-0", 0, 0),
            ("ms-18446744073709551615", u64::MAX, u64::MAX),
            ("1970", 0, 31_535_999_999),
        ] {
            assert_eq!(span(name), Some((first, last)), "{name}");
        }
        for name in
            ["", "1706696100000", "5", "ms-", "ms-+5", "ms--5", "ms-1e3", "ms-18446744073709551616", "1969", "now"]
        {
            assert_eq!(span(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn names_of_times_parse_back(milliseconds in prop_oneof![0..253_402_300_800_000_u64, any::<u64>()]) {
            prop_assert_eq!(span(&basic(milliseconds)).unwrap(), (milliseconds, milliseconds));
            prop_assert_eq!(parse(&extended(milliseconds)).unwrap(), milliseconds);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = parse(&text);
            let _ = warning(&text);
            let _ = span(&text);
        }
    }
}
