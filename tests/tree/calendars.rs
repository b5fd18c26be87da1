//! Dates of calendars are the days that cftime counts, the library with which netCDF4 and xarray read such dates.

use std::process::Command;
use std::time::SystemTime;

use support::skip::python_with;
use tilefs_format::datatype::Datatype;
use tilefs_tree::select::calendar::Calendar;
use tilefs_tree::select::moment;

/// Also makes `crates/select/src/tests/calendar_dates.txt`, with the arguments 1 and 40.
const SCRIPT: &str = include_str!("calendar_dates.py");

#[test]
fn random_dates_are_the_days_that_cftime_counts() {
    let Some(python) = python_with("cftime") else { return };
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    let output = Command::new(python).args(["-c", SCRIPT, &seed.to_string(), "2000"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut dates, mut none) = (0, 0);
    for line in String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let &[name, year, month, day, days] = &line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let calendar = Calendar::named(name).unwrap();
        let number = |text: &str| text.parse::<i128>().unwrap();
        let text = format!("{:04}-{:02}-{:02}", number(year), number(month), number(day));
        let found = moment::parse_in(calendar, Datatype::DateTimeDay, &text);
        if days == "none" {
            assert!(found.is_err(), "seed {seed}: {line}");
            none += 1;
            continue;
        }
        let count = number(days) + calendar.day(1970, 1, 1).unwrap();
        assert_eq!(found, Ok((count, count)), "seed {seed}: {line}");
        assert_eq!(calendar.date(count), (number(year), number(month), number(day)), "seed {seed}: {line}");
        dates += 1;
    }
    assert!(dates > 10_000 && none > 100, "{dates} dates, {none} that are not there");
}
