//! Dates of the proleptic Gregorian calendar, which is that of TileDB and of NumPy's `datetime64`: numbers of days,
//! months and years since 1970, over the whole range of 64-bit integers.

/// Days in 400 years, the period of the calendar.
const DAYS_OF_ERA: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const EPOCH_SHIFT: i64 = 719_468;

/// Returns the year, month (1 to 12) and day (1 to 31) of a day counted from 1970-01-01.
pub fn civil(days: i64) -> (i64, u32, u32) {
    // Reduce first, so that the shift cannot overflow.
    let shifted = days.rem_euclid(DAYS_OF_ERA) + EPOCH_SHIFT;
    let era = days.div_euclid(DAYS_OF_ERA) + shifted / DAYS_OF_ERA;
    let day_of_era = (shifted % DAYS_OF_ERA) as u32;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + i64::from(year_of_era) + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the year and month (1 to 12) of a month counted from 1970-01.
pub fn year_and_month(months: i64) -> (i64, u32) {
    (months.div_euclid(12) + 1970, months.rem_euclid(12) as u32 + 1)
}

/// Returns the first day of a month, both counted from 1970; `None` if it does not fit in 64 bits.
pub fn days_of_months(months: i64) -> Option<i64> {
    let (year, month) = year_and_month(months);
    let march_year = i128::from(year) - i128::from(month <= 2);
    let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    let march_month = i128::from((month + 9) % 12);
    let day_of_year = (153 * march_month + 2) / 5;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i64::try_from(era * i128::from(DAYS_OF_ERA) + day_of_era - i128::from(EPOCH_SHIFT)).ok()
}

/// Returns the first day of a year, both counted from 1970; `None` if it does not fit in 64 bits.
pub fn days_of_years(years: i64) -> Option<i64> {
    years.checked_mul(12).and_then(days_of_months)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn days_match_a_walk_through_the_calendar() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = |year: i64, month: u32| match month {
            2 => 28 + u32::from(leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..400_000 {
            assert_eq!(civil(days), (year, month, day));
            if day == 1 {
                let months = (year - 1970) * 12 + i64::from(month) - 1;
                assert_eq!(days_of_months(months), Some(days));
            }
            day += 1;
            if day > length(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in (-900_000..=0).rev() {
            assert_eq!(civil(days), (year, month, day), "{days}");
            day -= 1;
            if day == 0 {
                (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
                day = length(year, month);
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        assert_eq!(civil(i64::MAX), (25_252_734_927_768_524, 7, 27));
        assert_eq!(civil(i64::MIN), (-25_252_734_927_764_585, 6, 7));
        assert_eq!(days_of_months(i64::MAX), None);
        assert_eq!(days_of_years(i64::MIN), None);
        assert_eq!(days_of_years(30), Some(10_957));
    }

    proptest! {
        #[test]
        fn months_begin_on_their_first_day(months in -100_000_000_000i64..100_000_000_000) {
            let days = days_of_months(months).unwrap();
            let (year, month, day) = civil(days);
            prop_assert_eq!((year, month), year_and_month(months));
            prop_assert_eq!(day, 1);
        }
    }
}
