//! Points in time as users type them and as folders are named: ISO 8601 in UTC, to the millisecond.
//!
//! Arrays count milliseconds since 1970-01-01T00:00:00Z, without leap seconds, as an unsigned number.

use tilefs_base::error::{Error, Result};
use tilefs_base::timestamp::iso;
use tilefs_format::datatype::Datatype;

use crate::moment;

/// Integers below this (1973-03-03 in milliseconds) are probably a date or seconds rather than milliseconds.
const SUSPICIOUSLY_SMALL: u64 = 100_000_000_000;

/// The numbers of digits that are a year (`2024`) and a date (`20240131`).
const DIGITS_OF_DATES: [usize; 2] = [4, 8];

/// The prefix of a count of milliseconds in a name.
const COUNT: &str = "ms-";

/// Returns the first and the last millisecond since 1970 that a text spans, in `--at`, `--from` and the names in
/// `.history/`: a date or a time in the forms that selections accept, so that `2024` is that year, `20240131` that day and
/// `2024-01-31T10:15` that minute; or a count of milliseconds, `ms-1704067200000` or, unless it has four or eight digits
/// like these dates, only its digits. A span that begins before 1970 is cut. A leap second counts as the second after it.
///
/// # Errors
/// The reason, as part of a sentence: another text, a span that ends before 1970, another time zone.
pub fn span(text: &str) -> std::result::Result<(u64, u64), String> {
    let is_count = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let only_digits = is_count(text);
    let digits = match text.strip_prefix(COUNT) {
        None if only_digits && !DIGITS_OF_DATES.contains(&text.len()) => Some(text),
        digits => digits,
    };
    if let Some(digits) = digits.filter(|digits| is_count(digits)) {
        let count = digits.parse().map_err(|_| "the number is too large")?;
        return Ok((count, count));
    }
    let (earlier, leap) = before_leap_second(text).map_or((text.to_owned(), 0), |earlier| (earlier, 1000));
    let spanned = moment::parse(Datatype::DateTimeMs, &earlier).and_then(|(first, last)| match last >= 0 {
        true => Ok((first + leap, last + leap)),
        false => Err("arrays have no times before 1970".to_owned()),
    });
    let (first, last) = spanned.map_err(|reason| {
        // The forms of dates are only some of the forms of times.
        let reason = reason.split_once("; write ").map_or(reason.as_str(), |(reason, _)| reason);
        match only_digits {
            true => format!("{reason}; as milliseconds since 1970 it is {COUNT}{text}"),
            false => reason.to_owned(),
        }
    })?;
    let clipped = |count: i128| u64::try_from(count.max(0)).unwrap_or(u64::MAX);
    Ok((clipped(first), clipped(last)))
}

/// Returns a text whose second is 60, a leap second, with the second before; `None` for other texts.
fn before_leap_second(text: &str) -> Option<String> {
    let clock = text.find(['T', 't', ' '])? + 1;
    let second = clock + if text.get(clock + 2..clock + 3)? == ":" { "hh:mm:".len() } else { "hhmm".len() };
    let (before, after) = (text.get(..second)?, text.get(second..)?.strip_prefix("60")?);
    Some(format!("{before}59{after}"))
}

/// The first and the last millisecond that count; `None` where that is open.
pub type OpenWindow = (Option<u64>, Option<u64>);

/// Returns the window that a text means, in `--at` and in `.history/`: `T` ends with the last millisecond of T; `T1..T2`
/// also begins with the first millisecond of T1, and either may be omitted.
///
/// # Errors
/// As for [`span`]; for a window that ends before it begins.
pub fn window(text: &str) -> std::result::Result<OpenWindow, String> {
    let Some((start, end)) = text.split_once("..").filter(|ends| *ends != ("", "")) else {
        return Ok((None, Some(span(text)?.1)));
    };
    let end_of = |end: &str| if end.is_empty() { Ok(None) } else { span(end).map(Some) };
    let (start, end) = (end_of(start)?.map(|start| start.0), end_of(end)?.map(|end| end.1));
    match (start, end) {
        (Some(start), Some(end)) if start > end => Err("the first time is later than the second".to_owned()),
        window => Ok(window),
    }
}

/// Parses a text that a user typed with one of the functions above.
///
/// # Errors
/// [`Error::Usage`] with the reason and the forms of a time.
pub fn typed<T>(text: &str, parse: impl Fn(&str) -> std::result::Result<T, String>) -> Result<T> {
    parse(text.trim()).map_err(|reason| {
        Error::usage(format!(
            "'{text}' is not a time: {reason}; write 2024-01-31T10:15:00Z, or milliseconds since 1970 as an integer"
        ))
    })
}

/// Returns a warning for a time that parsed but was probably meant differently.
pub fn warning(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) || DIGITS_OF_DATES.contains(&text.len()) {
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

/// Returns a sentence about commits of these times, which are hidden because they lie in the future; `None` if there are
/// none.
pub fn future_commits(times: &[u64]) -> Option<String> {
    let (first, last) = (*times.first()?, *times.last()?);
    let what = match first == last {
        true => format!("what was committed with the time {} is", extended(last)),
        false => {
            format!("what was committed with {} times from {} to {} is", times.len(), extended(first), extended(last))
        }
    };
    Some(format!("{what} not shown, because that is in the future; --at {0} and .history/{0} show it", basic(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2024-01-31T10:15:00Z, as printed by `date -u -d … +%s`.
    const JANUARY: u64 = 1_706_696_100_000;

    #[test]
    fn times_mean_what_they_span() {
        let day = JANUARY - 10 * 3_600_000 - 15 * 60_000;
        for (text, first, length) in [
            ("2024", 1_704_067_200_000, 366 * 86_400_000),
            ("2024-01", 1_704_067_200_000, 31 * 86_400_000),
            ("2024-01-31", day, 86_400_000),
            ("20240131", day, 86_400_000),
            ("2024-01-31T10", JANUARY - 15 * 60_000, 3_600_000),
            ("2024-01-31T10:15Z", JANUARY, 60_000),
            ("2024-01-31 10:15", JANUARY, 60_000),
            ("20240131T1015", JANUARY, 60_000),
            ("2024-01-31T10:15:00Z", JANUARY, 1000),
            ("20240131T101500Z", JANUARY, 1000),
            ("2024-01-31T10:15:00.5", JANUARY + 500, 100),
            ("2024-01-31T10:15:00.07Z", JANUARY + 70, 10),
            ("2024-01-31T10:15:00.000Z", JANUARY, 1),
            ("20240131T101500.000Z", JANUARY, 1),
            ("20240131t101500,000z", JANUARY, 1),
            ("2024-01-31T10:15:00.0009", JANUARY, 1),
            ("1706696100000", JANUARY, 1),
            ("ms-1706696100000", JANUARY, 1),
            ("1706696100000ms", JANUARY, 1),
            ("ms-2024", 2024, 1),
            ("ms-0", 0, 1),
            ("5", 5, 1),
            ("1970", 0, 365 * 86_400_000),
            ("1970-01-01", 0, 86_400_000),
            ("2000-02-29", 951_782_400_000, 86_400_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000, 1000),
            ("18446744073709551615", u64::MAX, 1),
        ] {
            assert_eq!(span(text), Ok((first, first + (length - 1))), "{text}");
        }
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
            "2024-01-31T10:60",
            "2024-01-31T10:15:61",
            "2024-01-31T1015",
            "20240131T10:15",
            "2024-01-31T10:15:00.Z",
            "2024-01-31T10:15:00+02:00",
            "1969-12-31",
            "1969",
            "20241301",
            "2024-01-31Z",
            "2024-01-31T10:15:00ZZ",
            "18446744073709551616",
            "ms-18446744073709551616",
            "ms-",
            "ms-+5",
            "ms--5",
            "ms-1e3",
            "2024\u{e4}01-31",
        ] {
            assert!(span(text).is_err(), "{text}");
            assert!(matches!(typed(text, span).expect_err(text), Error::Usage { .. }), "{text}");
        }
        assert!(span("2024-01-31T10:15:00+02:00").unwrap_err().contains("UTC"));
        assert!(span("1000").unwrap_err().ends_with("before 1970; as milliseconds since 1970 it is ms-1000"));
        assert_eq!(typed(" 2024 ", span).ok(), span("2024").ok());
    }

    #[test]
    fn windows_have_one_end_or_two() {
        let (year, next) = (span("2024").unwrap(), span("2025").unwrap());
        for (text, start, end) in [
            ("2024", None, Some(year.1)),
            ("2024..2025", Some(year.0), Some(next.1)),
            ("2024..", Some(year.0), None),
            ("..2024", None, Some(year.1)),
            ("5..5", Some(5), Some(5)),
        ] {
            assert_eq!(window(text), Ok((start, end)), "{text}");
        }
        for text in ["", "..", "2025..2024", "2024..2025..2026", "2024...2025", "now..2024"] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn small_integers_warn() {
        assert_eq!(
            warning("1706696100").as_deref(),
            Some("the time 1706696100 is taken as milliseconds since 1970, which is 1970-01-20T18:04:56.100Z")
        );
        for meant in ["1706696100000", "2024-01-31", "2024", "20240131"] {
            assert_eq!(warning(meant), None, "{meant}");
        }
    }

    #[test]
    fn commits_of_the_future_are_named_with_a_time_that_shows_them() {
        assert_eq!(future_commits(&[]), None);
        let one = future_commits(&[JANUARY]).unwrap();
        assert!(one.contains("the time 2024-01-31T10:15:00.000Z is not shown"), "{one}");
        assert!(one.ends_with("--at 20240131T101500.000Z and .history/20240131T101500.000Z show it"), "{one}");
        // Microseconds.
        let two = future_commits(&[JANUARY * 1000, JANUARY * 1000 + 1]).unwrap();
        assert!(two.contains("2 times from 1706696100000000 to 1706696100000001"), "{two}");
        assert!(two.contains("--at ms-1706696100000001 "), "{two}");
    }

    #[test]
    fn times_beyond_the_calendar_stay_numbers() {
        assert_eq!(extended(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(extended(253_402_300_800_000), "253402300800000");
        assert_eq!(basic(u64::MAX), format!("ms-{}", u64::MAX));
    }

    proptest! {
        #[test]
        fn names_of_times_parse_back(milliseconds in prop_oneof![0..253_402_300_800_000_u64, any::<u64>()]) {
            prop_assert_eq!(span(&basic(milliseconds)).unwrap(), (milliseconds, milliseconds));
            prop_assert_eq!(span(&extended(milliseconds)).unwrap(), (milliseconds, milliseconds));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = warning(&text);
            let _ = window(&text);
        }
    }
}
