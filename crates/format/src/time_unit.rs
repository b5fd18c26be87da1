//! The units of dates and times.

use std::fmt;

use TimeUnit::*;

/// The unit of a date or time. Coarser units come before finer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimeUnit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
    Femtosecond,
    Attosecond,
}

/// All units, with NumPy's symbol and the word for several of them.
const ALL: [(TimeUnit, &str, &str); 13] = [
    (Year, "Y", "years"),
    (Month, "M", "months"),
    (Week, "W", "weeks"),
    (Day, "D", "days"),
    (Hour, "h", "hours"),
    (Minute, "m", "minutes"),
    (Second, "s", "seconds"),
    (Millisecond, "ms", "milliseconds"),
    (Microsecond, "us", "microseconds"),
    (Nanosecond, "ns", "nanoseconds"),
    (Picosecond, "ps", "picoseconds"),
    (Femtosecond, "fs", "femtoseconds"),
    (Attosecond, "as", "attoseconds"),
];

impl TimeUnit {
    /// Returns the unit that is this many units finer than another; `None` behind the finest.
    pub(crate) fn finer_than(coarser: TimeUnit, units: usize) -> Option<Self> {
        ALL.get(coarser as usize + units).map(|(unit, ..)| *unit)
    }

    /// Returns NumPy's symbol: `Y M W D h m s ms us ns ps fs as`.
    pub fn symbol(self) -> &'static str {
        ALL[self as usize].1
    }

    /// Returns the word for several units, such as `days`.
    pub fn name(self) -> &'static str {
        ALL[self as usize].2
    }

    /// Returns the number of units in a second: 1 for seconds, 10^18 for attoseconds. `None` for coarser units.
    pub fn per_second(self) -> Option<u64> {
        (self as u32).checked_sub(Second as u32).map(|steps| 1000_u64.pow(steps))
    }
}

/// Writes the symbol.
impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_in_its_row() {
        for (number, (unit, ..)) in ALL.into_iter().enumerate() {
            assert_eq!(unit as usize, number);
            assert_eq!(TimeUnit::finer_than(Year, number), Some(unit));
        }
        assert_eq!(TimeUnit::finer_than(Hour, 9), None);
    }

    #[test]
    fn a_second_has_a_thousand_units_for_each_step() {
        let per_second = [Minute, Second, Millisecond, Attosecond].map(TimeUnit::per_second);
        assert_eq!(per_second, [None, Some(1), Some(1000), Some(1_000_000_000_000_000_000)]);
    }
}
