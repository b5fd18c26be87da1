"""Writes arrays with overlapping fragments, deletes and consolidations, and says what was written and what TileDB reads.

    origins.py FOLDER SEED

Each write has values of its own, so that a value tells which write it comes from. manifest.json has an object per array: the
writes (time, cells, values), the deletes (time, and the value above which cells are deleted), and what libtiledb reads at some
times.
"""

import json
import random
import sys
from pathlib import Path

import numpy
import tiledb

FOLDER, SEED = Path(sys.argv[1]), sys.argv[2]
# Values of a write are its number times this, and more.
PER_WRITE = 1000
START = 1_700_000_000_000
FILTERS = [[], [tiledb.GzipFilter(level=5)]]


def schema(sparse, random_, filters, duplicates=False, order="row-major"):
    extent = random_.choice([2, 3, 5])
    dims = [
        tiledb.Dim(name=name, domain=(1, 12), tile=extent, dtype=numpy.int32, filters=tiledb.FilterList(filters))
        for name in ("y", "x")
    ]
    attributes = [
        tiledb.Attr(name="a", dtype=numpy.int32, filters=tiledb.FilterList(filters)),
        tiledb.Attr(name="s", dtype="ascii", var=True, filters=tiledb.FilterList(filters)),
        tiledb.Attr(name="n", dtype=numpy.int16, nullable=True, filters=tiledb.FilterList(filters)),
    ]
    options = {"capacity": random_.choice([2, 4, 100]), "allows_duplicates": duplicates} if sparse else {}
    for key in ("coords_filters", "offsets_filters", "validity_filters"):
        options[key] = tiledb.FilterList(filters)
    return tiledb.ArraySchema(
        domain=tiledb.Domain(*dims), attrs=attributes, sparse=sparse, cell_order=order, tile_order=order, **options
    )


def attributes(number, count):
    """Returns the values of a write: numbers, texts, and numbers of which every third is missing."""
    values = [PER_WRITE * number + at for at in range(count)]
    return {
        "a": numpy.array(values, dtype=numpy.int32),
        "s": numpy.array([text(value) for value in values], dtype=object),
        "n": values,
    }


def text(value):
    return "w" * (value % 7) + str(value)


def nullable(values, shape):
    mask = numpy.array([value % 3 != 0 for value in values], dtype=numpy.uint8).reshape(shape)
    return numpy.array(values, dtype=numpy.int16).reshape(shape), mask


def write_sparse(path, random_, time, number):
    places = random_.sample([(y, x) for y in range(1, 9) for x in range(1, 9)], random_.randint(4, 20))
    own = attributes(number, len(places))
    values, mask = nullable(own["n"], len(places))
    with tiledb.open(path, "w", timestamp=time) as array:
        query = {"a": own["a"], "s": own["s"], "n": masked(values, mask)}
        array[numpy.array([y for y, _ in places], dtype=numpy.int32), numpy.array([x for _, x in places], dtype=numpy.int32)] = query
    return {"time": time, "cells": places, "values": own["a"].tolist()}


def masked(values, mask):
    import pandas

    found = pandas.array(values.tolist(), dtype="Int16")
    found[mask == 0] = pandas.NA
    return found


def write_dense(path, random_, time, number):
    (y1, y2), (x1, x2) = (sorted(random_.sample(range(1, 13), 2)) for _ in range(2))
    shape = (y2 - y1 + 1, x2 - x1 + 1)
    count = shape[0] * shape[1]
    own = attributes(number, count)
    with tiledb.open(path, "w", timestamp=time) as array:
        values = {"a": own["a"].reshape(shape), "s": own["s"].reshape(shape)}
        values["n"] = numpy.array(own["n"], dtype=numpy.int16).reshape(shape)
        array[y1 : y2 + 1, x1 : x2 + 1] = values
    cells = [(y, x) for y in range(y1, y2 + 1) for x in range(x1, x2 + 1)]
    return {"time": time, "cells": cells, "values": own["a"].tolist()}


def read(path, at, sparse):
    with tiledb.open(path, timestamp=at) as array:
        found = array.query(attrs=["a"])[:]
        if sparse:
            cells = [[int(y), int(x)] for y, x in zip(found["y"], found["x"])]
            return {"at": at, "cells": cells, "values": found["a"].tolist()}
        values = found["a"] if isinstance(found, dict) else found
        cells = [[y, x] for y in range(1, 13) for x in range(1, 13)]
        return {"at": at, "cells": cells, "values": numpy.asarray(values).ravel().tolist()}


def consolidate(path, vacuum):
    config = tiledb.Config({"sm.consolidation.mode": "fragments"})
    tiledb.consolidate(path, config=config)
    if vacuum:
        tiledb.vacuum(path, config=tiledb.Config({"sm.vacuum.mode": "fragments"}))


def make(number):
    random_ = random.Random(f"{SEED} {number}")
    sparse, filters = number % 3 != 0, FILTERS[number % 2]
    duplicates = sparse and number % 5 == 4
    order = random_.choice(["row-major", "col-major"])
    path = str(FOLDER / f"array{number}")
    tiledb.Array.create(path, schema(sparse, random_, filters, duplicates, order))
    writes, deletes, time = [], [], START
    for step in range(random_.randint(3, 6)):
        time += 1000
        write = write_sparse if sparse else write_dense
        writes.append(write(path, random_, time, len(writes) + 1))
        if sparse and not duplicates and random_.random() < 0.4:
            time += 1000
            above = random_.choice(writes)["values"][0] + random_.randint(0, 8)
            with tiledb.open(path, "d", timestamp=time) as array:
                array.query(cond=f"a > {above} and a < {above + 5}").submit()
            deletes.append({"time": time, "above": above, "below": above + 5})
    consolidated = random_.choice(["no", "no", "kept", "vacuumed"])
    if consolidated != "no":
        consolidate(path, consolidated == "vacuumed")
    times = [None, time, *(write["time"] for write in writes[:-1])]
    # Libtiledb shows a consolidated dense fragment only as a whole.
    if consolidated == "vacuumed" and not sparse:
        times = [None]
    reads = [read(path, at, sparse) for at in times]
    return {
        "path": path, "sparse": sparse, "duplicates": duplicates, "consolidated": consolidated, "gzip": bool(filters),
        "writes": writes, "deletes": deletes, "reads": reads,
    }


def main():
    manifest = [make(number) for number in range(15)]
    (FOLDER / "manifest.json").write_text(json.dumps(manifest))


main()
