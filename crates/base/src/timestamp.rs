//! Points in time as texts: ISO 8601 in UTC, to the millisecond.

use crate::calendar::civil;

/// The first millisecond of the year 10000.
const YEAR_10000: u64 = 253_402_300_800_000;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Returns a time in milliseconds since 1970 in the usual form, `2024-01-31T10:15:00.000Z`; `None` from the year 10000 on.
pub fn iso(milliseconds: u64) -> Option<String> {
    if milliseconds >= YEAR_10000 {
        return None;
    }
    let (days, rest) = (milliseconds / DAY, milliseconds % DAY);
    let (year, month, day) = civil(i64::try_from(days).ok()?);
    let (seconds, milliseconds) = (rest / 1000, rest % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_825_599_999, "2000-02-29T11:59:59.999Z"),
            (1_706_696_100_000, "2024-01-31T10:15:00.000Z"),
            (YEAR_10000 - 1, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso(milliseconds).as_deref(), Some(text));
        }
        assert_eq!((iso(YEAR_10000), iso(u64::MAX)), (None, None));
    }
}
