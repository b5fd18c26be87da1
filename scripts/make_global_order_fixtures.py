#!/usr/bin/env python3
"""Makes tests/fixtures/tiles/2.2: dense arrays with nullable attributes that libtiledb 2.2 wrote in global order.

usage: PYTHONPATH=WHEEL python3 scripts/make_global_order_fixtures.py FOLDER [NAME...]

WHEEL is the unpacked wheel of tiledb 0.8.0 (format version 7) or 0.8.11 (version 8) for any Python, of which only the
library is used (pip install --target WHEEL --no-deps --only-binary :all: --python-version 3.8 tiledb==0.8.11); FOLDER is
tests/fixtures/tiles/2.2/7 or 8. With NAMEs, makes these arrays only. Needs numpy.

Each array is written completely, in the number of submits in its name. The number of a cell counts the cells of the
domain in row-major order; it is null if it is a multiple of 3. `n` holds the number, and `text` holds it as decimal
digits, or nothing if it is a multiple of 4.
"""

import itertools
import os
import shutil
import sys

import numpy as np

from fixtures.capi import DATATYPES, LAYOUTS, VAR, WRITE, Tiledb

# Per array: type, the number of tiles along each dimension, the extent, the first coordinate, orders of tiles and cells,
# the number of submits, and attributes.
ARRAYS = [
    ("INT8", (5,), 3, -2, "row", "row", 1, ("n",)),
    ("UINT8", (4, 2), 2, 3, "row", "col", 2, ("text",)),
    ("INT16", (2, 2), 2, 1, "row", "col", 2, ("n", "text")),
    ("UINT16", (3, 2, 2), 2, 0, "col", "row", 3, ("n",)),
    ("INT32", (7,), 2, -4, "row", "row", 4, ("text",)),
    ("UINT32", (3, 3), 3, 5, "col", "col", 5, ("n", "text")),
    ("INT64", (2, 2, 2), 1, -1, "row", "row", 5, ("n",)),
    ("UINT64", (9,), 1, 0, "row", "row", 3, ("text", "n")),
]
MILLISECONDS = 1000


def main(root, *only):
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    db = Tiledb()
    for kind, tiles, extent, low, tile_order, cell_order, submits, attributes in ARRAYS:
        path = os.path.join(root, f"{kind.lower()}_{submits}")
        if only and os.path.basename(path) not in only:
            continue
        create(db, path, kind, [(low, low + count * extent - 1) for count in tiles], extent, (tile_order, cell_order), attributes)
        numbers = in_global_order(tiles, extent, tile_order, cell_order)
        # Not at the ends of tiles, except for tiles of one cell.
        ends = [len(numbers) * number // submits for number in range(submits + 1)]
        write(db, path, attributes, [numbers[first:last] for first, last in zip(ends, ends[1:])])
        os.remove(os.path.join(path, "__lock.tdb"))


def in_global_order(tiles, extent, tile_order, cell_order):
    """Returns the numbers of all cells in the order in which they are written."""
    shape = [count * extent for count in tiles]
    number_of = np.arange(np.prod(shape)).reshape(shape)
    places = itertools.product(of_order(tiles, tile_order), of_order([extent] * len(tiles), cell_order))
    return [int(number_of[tuple(a * extent + b for a, b in zip(tile, cell))]) for tile, cell in places]


def of_order(shape, order):
    """Returns all indices of a shape, in row-major or column-major order."""
    if order == "row":
        return list(itertools.product(*map(range, shape)))
    return [index[::-1] for index in itertools.product(*map(range, shape[::-1]))]


def create(db, path, kind, domain, extent, orders, attributes):
    number, numpy_type = DATATYPES[kind]
    schema, space = db.make("array_schema_alloc", 0), db.make("domain_alloc")
    for name, ends in zip("yxz", domain):
        ends, one = np.array(ends, numpy_type), np.array([extent], numpy_type)
        db.domain_add_dimension(space, db.make("dimension_alloc", name, number, ends, one))
    db.array_schema_set_domain(schema, space)
    for name in attributes:
        attribute = db.make("attribute_alloc", name, DATATYPES["STRING_ASCII" if name == "text" else "INT32"][0])
        db.attribute_set_cell_val_num(attribute, VAR if name == "text" else 1)
        db.attribute_set_nullable(attribute, 1)
        db.array_schema_add_attribute(schema, attribute)
    db.array_schema_set_tile_order(schema, LAYOUTS[orders[0]])
    db.array_schema_set_cell_order(schema, LAYOUTS[orders[1]])
    db.array_create(path, schema)


def write(db, path, attributes, submits):
    """Writes cells, given by their numbers, in several submits of one query."""
    array = db.make("array_alloc", path)
    db.array_open_at(array, WRITE, MILLISECONDS)
    query = db.make("query_alloc", array, WRITE)
    db.query_set_layout(query, LAYOUTS["global"])
    kept = []
    for numbers in submits:
        valid = np.array([number % 3 > 0 for number in numbers], "u1")
        texts = [b"" if number % 4 == 0 else b"%d" % number for number in numbers]
        offsets = np.cumsum([0] + [len(text) for text in texts[:-1]]).astype("<u8")
        # Never empty, as the library takes no null pointers.
        values = {"n": np.array(numbers, "<i4"), "text": np.frombuffer(b"".join(texts) + b" ", "u1")}
        sizes = {"n": 4 * len(numbers), "text": sum(map(len, texts))}
        for name in attributes:
            size, of_offsets, of_valid = (np.array([size], "<u8") for size in (sizes[name], offsets.nbytes, valid.nbytes))
            kept += [size, of_offsets, of_valid, values, offsets, valid]
            if name == "text":
                db.query_set_buffer_var_nullable(query, name, offsets, of_offsets, values[name], size, valid, of_valid)
            else:
                db.query_set_buffer_nullable(query, name, values[name], size, valid, of_valid)
        db.query_submit(query)
    db.query_finalize(query)
    db.array_close(array)


main(*sys.argv[1:])
