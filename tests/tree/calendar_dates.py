"""Prints random dates of every calendar, and the days since 1970-01-01 that cftime counts for them."""

import random
import sys

import cftime

NAMES = ["proleptic_gregorian", "julian", "standard", "noleap", "all_leap", "360_day"]


def day_of(name, year, month, day):
    """Returns the days since 1970-01-01; None if the calendar has no such date."""
    try:
        date = cftime.datetime(year, month, day, calendar=name)
    except ValueError:
        return None
    return round(cftime.date2num(date, "days since 1970-01-01", name))


def main(seed, count):
    chosen = random.Random(seed)
    print(f"# cftime {cftime.__version__}, {' '.join(sys.argv[1:])}")
    for name in NAMES:
        ends = [(1582, 10, 4), (1582, 10, 10), (1582, 10, 15), (1900, 2, 28), (1900, 2, 29), (1900, 3, 1)]
        ends += [(2000, 2, 29), (2000, 12, 30), (2001, 2, 29), (2001, 2, 30), (2001, 1, 31)]
        made = [(chosen.randint(1, 4000), chosen.randint(1, 12), chosen.randint(1, 31)) for _ in range(count)]
        for date in ends + made:
            days = day_of(name, *date)
            print(name, *date, "none" if days is None else days)


main(int(sys.argv[1]), int(sys.argv[2]))
