#!/usr/bin/env python3
"""Makes tests/fixtures/tiles: dense arrays of which libtiledb 2.3 wrote cells to wrong tiles, and some without such cells.

usage: PYTHON scripts/make_tile_fixtures.py FOLDER

PYTHON is an interpreter with the package tiledb 0.9.5; FOLDER is tests/fixtures/tiles/2.3. Every written cell holds its
coordinate.
"""

import os
import shutil
import sys

import numpy as np
import tiledb

# Name, type, domain, extent, and the first and the last coordinate of the write.
ARRAYS = [
    ("elsewhere", np.int16, (-38, 88), 32, (7, 87)),
    ("more_tiles", np.int8, (-64, 63), 32, (0, 31)),
    ("whole", np.int8, (-64, 63), 32, (0, 0)),
    ("unaffected", np.int32, (-38, 88), 32, (7, 87)),
]


def main():
    root = sys.argv[1]
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    for name, kind, domain, extent, (first, last) in ARRAYS:
        path = os.path.join(root, name)
        dimension = tiledb.Dim(name="x", domain=domain, tile=extent, dtype=kind)
        attribute = tiledb.Attr(name="v", dtype=np.int32)
        tiledb.DenseArray.create(path, tiledb.ArraySchema(domain=tiledb.Domain(dimension), attrs=[attribute]))
        with tiledb.DenseArray(path, "w") as array:
            array[first : last + 1] = np.arange(first, last + 1, dtype=np.int32)


main()
