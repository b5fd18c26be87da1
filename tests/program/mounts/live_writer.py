"""Writes to an array for a while: commits, new attributes, metadata, consolidations and vacuums.

After each commit it prints the time of the commit and, for each attribute, its name and the digest of what libtiledb
reads as of that time.
"""

import hashlib
import sys
import time

import numpy
import tiledb

path, seconds = sys.argv[1], float(sys.argv[2])
random = numpy.random.default_rng(7)
SIDE = 256


def create():
    domain = tiledb.Domain(
        *(tiledb.Dim(name, domain=(0, SIDE - 1), tile=64, dtype="int32") for name in "yx")
    )
    attributes = [tiledb.Attr("v", dtype="int32", filters=[tiledb.ZstdFilter()])]
    tiledb.Array.create(path, tiledb.ArraySchema(domain, attributes))


last = 0


def now():
    """Returns the time in milliseconds, never the same twice."""
    global last
    last = max(last + 1, int(time.time() * 1000))
    return last


def tell(when):
    with tiledb.open(path, timestamp=when) as array:
        values = array[:]
        # If there is one attribute, some releases return the array itself.
        values = values if isinstance(values, dict) else {array.attr(0).name: values}
        for name, cells in values.items():
            digest = hashlib.sha256(numpy.ascontiguousarray(cells, "<i4").tobytes()).hexdigest()
            print(when, name, digest, flush=True)


def write():
    with tiledb.open(path) as array:
        names = [array.attr(number).name for number in range(array.nattr)]
    rows, columns = sorted(random.integers(0, SIDE, 2)), sorted(random.integers(0, SIDE, 2))
    shape = (rows[1] - rows[0] + 1, columns[1] - columns[0] + 1)
    cells = {name: random.integers(-1000, 1000, shape, "int32") for name in names}
    when = now()
    with tiledb.open(path, "w", timestamp=when) as array:
        array[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = cells
    tell(when)


def evolve(number):
    when = now()
    evolution = tiledb.ArraySchemaEvolution(tiledb.Ctx())
    evolution.add_attribute(tiledb.Attr(f"w{number}", dtype="int32"))
    evolution.timestamp(when)
    evolution.array_evolve(path)
    tell(when)


def describe(number):
    with tiledb.open(path, "w", timestamp=now()) as array:
        array.meta["number"] = number


def tidy(mode, vacuum):
    config = tiledb.Config({"sm.consolidation.mode": mode, "sm.vacuum.mode": mode})
    tiledb.consolidate(path, config=config)
    if vacuum:
        tiledb.vacuum(path, config=config)


if seconds == 0:
    create()
    write()
else:
    end, number = time.time() + seconds, 0
    while time.time() < end:
        number += 1
        write()
        if number % 10 == 3 and number < 60:
            evolve(number)
        if number % 4 == 0:
            describe(number)
        if number % 5 == 0:
            tidy("fragments", vacuum=number % 10 == 0)
        if number % 7 == 0:
            tidy("fragment_meta", vacuum=True)
        if number % 9 == 0:
            tidy("commits", vacuum=True)
            tidy("array_meta", vacuum=True)
        time.sleep(0.05)
