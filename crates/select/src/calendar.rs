//! Calendars of climate data: dates as days, counted over any number of years.
//!
//! TileDB has one calendar, the Gregorian one for all years. Models of the climate also run in years of 365, 366 or 360
//! days, and records of observations use the Julian calendar before 1582.

use tilefs_base::calendar;

/// A calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calendar {
    /// The Gregorian calendar for all years, with a year 0: the calendar of TileDB and NumPy.
    #[default]
    Gregorian,
    /// The Julian calendar for all years from year 1 on.
    Julian,
    /// The Julian calendar from year 1 to 1582-10-04, which 1582-10-15 of the Gregorian one follows.
    Mixed,
    /// All years have 365 days.
    NoLeap,
    /// All years have 366 days.
    AllLeap,
    /// All months have 30 days.
    Days360,
}

/// Days in 400 years of the Gregorian calendar, and in 4 years of the Julian one.
const DAYS_OF_400_YEARS: i128 = 146_097;
const DAYS_OF_4_YEARS: i128 = 1461;

/// The first day of the Gregorian calendar in the mixed one: 1582-10-15, which follows 1582-10-04.
const FIRST_GREGORIAN_DAY: i128 = -141_427;
const CHANGE: (i128, i128) = (1582, 10);
const LAST_JULIAN: i128 = 4;
const FIRST_GREGORIAN: i128 = 15;

/// Days from 0000-03-01 of the Julian calendar to 1970-01-01 of the Gregorian one.
const JULIAN_SHIFT: i128 = 719_470;

/// Days before each month in a year of 365 days.
const DAYS_BEFORE: [i128; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Calendar {
    /// Returns the calendar with a name of the CF conventions, in lower case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "proleptic_gregorian" => Calendar::Gregorian,
            "julian" => Calendar::Julian,
            "standard" | "gregorian" => Calendar::Mixed,
            "noleap" | "365_day" => Calendar::NoLeap,
            "all_leap" | "366_day" => Calendar::AllLeap,
            "360_day" => Calendar::Days360,
            _ => return None,
        })
    }

    /// Returns the first day of a month (0 to 12) of any year. Day 0 is 1970-01-01; in the Julian calendar it is the day
    /// that has this date in the Gregorian one.
    pub fn first_day(self, year: i128, month: i128) -> i128 {
        let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12));
        let before = DAYS_BEFORE.get(month as usize).copied().unwrap_or(0);
        match self {
            Calendar::Gregorian => {
                let (cycles, year) = (year.div_euclid(400), year.rem_euclid(400));
                // The year is now between 0 and 399, so the result is small.
                let days = calendar::days_of_months(((year - 1970) * 12 + month) as i64).unwrap_or_default();
                cycles * DAYS_OF_400_YEARS + i128::from(days)
            }
            Calendar::Julian => {
                // Years that begin in March have their leap day at the end.
                let (march_year, march_month) = (year - i128::from(month < 2), (month + 10) % 12);
                let (cycles, year) = (march_year.div_euclid(4), march_year.rem_euclid(4));
                cycles * DAYS_OF_4_YEARS + 365 * year + (153 * march_month + 2) / 5 - JULIAN_SHIFT
            }
            Calendar::Mixed if (year, month + 1) <= CHANGE => Calendar::Julian.first_day(year, month),
            Calendar::Mixed => Calendar::Gregorian.first_day(year, month),
            Calendar::NoLeap => 365 * (year - 1970) + before,
            Calendar::AllLeap => 366 * (year - 1970) + before + i128::from(month > 1),
            Calendar::Days360 => 360 * (year - 1970) + 30 * month,
        }
    }

    /// Returns whether the calendar has a year.
    pub fn has_year(self, year: i128) -> bool {
        year > 0 || !matches!(self, Calendar::Julian | Calendar::Mixed)
    }

    /// Returns the day of a date whose month and day count from 1; `None` if there is no such day.
    pub fn day(self, year: i128, month: i128, day: i128) -> Option<i128> {
        if !(1..=12).contains(&month) || day < 1 || !self.has_year(year) {
            return None;
        }
        if self == Calendar::Mixed && (year, month) == CHANGE {
            let calendar = match day {
                ..=LAST_JULIAN => Calendar::Julian,
                FIRST_GREGORIAN.. => Calendar::Gregorian,
                _ => return None,
            };
            return calendar.day(year, month, day);
        }
        let day = self.first_day(year, month - 1) + day - 1;
        (day < self.first_day(year, month)).then_some(day)
    }

    /// Returns the year, the month and the day, which count from 1, of a day.
    pub fn date(self, day: i128) -> (i128, i128, i128) {
        match self {
            Calendar::Gregorian => {
                let (cycles, day) = (day.div_euclid(DAYS_OF_400_YEARS), day.rem_euclid(DAYS_OF_400_YEARS));
                let (year, month, day) = calendar::civil(day as i64);
                (cycles * 400 + i128::from(year), i128::from(month), i128::from(day))
            }
            Calendar::Julian => {
                let (cycles, day) = (
                    (day + JULIAN_SHIFT).div_euclid(DAYS_OF_4_YEARS),
                    (day + JULIAN_SHIFT).rem_euclid(DAYS_OF_4_YEARS),
                );
                let year = (day - day / (DAYS_OF_4_YEARS - 1)) / 365;
                let day = day - 365 * year;
                let march_month = (5 * day + 2) / 153;
                let month = (march_month + 2) % 12 + 1;
                (4 * cycles + year + i128::from(month <= 2), month, day - (153 * march_month + 2) / 5 + 1)
            }
            Calendar::Mixed if day < FIRST_GREGORIAN_DAY => Calendar::Julian.date(day),
            Calendar::Mixed => Calendar::Gregorian.date(day),
            Calendar::NoLeap => self.date_in_equal_years(day, 365),
            Calendar::AllLeap => self.date_in_equal_years(day, 366),
            Calendar::Days360 => self.date_in_equal_years(day, 360),
        }
    }

    fn date_in_equal_years(self, day: i128, length: i128) -> (i128, i128, i128) {
        let year = day.div_euclid(length) + 1970;
        let month = (0..12).rev().find(|&month| self.first_day(year, month) <= day).unwrap_or(0);
        (year, month + 1, day - self.first_day(year, month) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [&str; 6] = ["proleptic_gregorian", "julian", "standard", "noleap", "all_leap", "360_day"];

    /// The days that cftime counts for dates, made by `tests/tree/calendar_dates.py`.
    const DATES: &str = include_str!("tests/calendar_dates.txt");

    #[test]
    fn dates_are_the_days_that_cftime_counts() {
        for line in DATES.lines().filter(|line| !line.starts_with('#')) {
            let &[name, year, month, day, count] = &line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let calendar = Calendar::named(name).unwrap();
            let [year, month, day] = [year, month, day].map(|number| number.parse().unwrap());
            let epoch = calendar.day(1970, 1, 1).unwrap();
            let count = count.parse::<i128>().ok().map(|count| epoch + count);
            assert_eq!(calendar.day(year, month, day), count, "{line}");
            if let Some(count) = count {
                assert_eq!(calendar.date(count), (year, month, day), "{line}");
            }
        }
        assert!(ALL.iter().all(|name| DATES.lines().filter(|line| line.starts_with(name)).count() > 20));
    }

    #[test]
    fn days_that_a_calendar_lacks_are_none() {
        let is_there = |name: &str, year, month, day| Calendar::named(name).unwrap().day(year, month, day).is_some();
        for name in ALL {
            let leap_days = [1900, 2000, 2001].map(|year| is_there(name, year, 2, 29));
            let wanted = match name {
                "julian" => [true, true, false],
                "noleap" => [false; 3],
                "all_leap" | "360_day" => [true; 3],
                _ => [false, true, false],
            };
            assert_eq!(leap_days, wanted, "{name}");
            assert_eq!(is_there(name, 2001, 2, 30), name == "360_day");
            assert_eq!(is_there(name, 2001, 1, 31), name != "360_day");
            assert_eq!(is_there(name, 1582, 10, 10), name != "standard");
            assert_eq!(is_there(name, 0, 1, 1), !["julian", "standard"].contains(&name));
            assert!(!is_there(name, 2001, 13, 1) && !is_there(name, 2001, 0, 1) && !is_there(name, 2001, 1, 0));
        }
        assert_eq!(Calendar::named("none"), None);
    }

    proptest! {
        #[test]
        fn days_are_dates_and_dates_are_days(day in -1_000_000i128..4_000_000, name in proptest::sample::select(&ALL[..])) {
            let calendar = Calendar::named(name).unwrap();
            let (year, month, of_month) = calendar.date(day);
            if calendar.has_year(year) {
                prop_assert_eq!(calendar.day(year, month, of_month), Some(day));
                let next = calendar.date(day + 1);
                prop_assert!(next > (year, month, of_month));
            }
        }
    }
}
