"""Compares the Python package with TileDB-Py, each in a new process with empty caches: dense arrays as NumPy arrays and
sparse arrays as Arrow tables. Also compares ranges of a file with those of a mount."""

import statistics
import subprocess
import sys
import textwrap

from .common import alternate, mounted, ratio, seconds, table, warm
from .dense import SIDE, VARIANTS, raster
from .sparse import LEGACY, matrix, strings

# The bytes of a range, and the number of ranges read from each file.
RANGE, RANGES = 1 << 20, 256


def process(script, *arguments):
    """Returns the seconds that a new process measures, after its imports, and prints."""
    prelude = "import sys, time\n"
    ran = subprocess.run([sys.executable, "-c", prelude + textwrap.dedent(script), *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return float(ran.stdout)


OURS_DENSE = """
    import numpy, tilefs
    array = tilefs.open(sys.argv[1])
    start = time.perf_counter()
    array["temp"][:]
    print(time.perf_counter() - start)
"""

THEIRS_DENSE = """
    import numpy, tiledb
    array = tiledb.open(sys.argv[1])
    start = time.perf_counter()
    array[:]
    print(time.perf_counter() - start)
"""

# pyarrow imports pandas, if it is installed, for its first table.
OURS_SPARSE = """
    import pyarrow, tilefs
    pyarrow.table({"one": [1]})
    array = tilefs.open(sys.argv[1])
    start = time.perf_counter()
    pyarrow.table(array.read())
    print(time.perf_counter() - start)
"""

# This returns a dictionary of NumPy arrays. Both programs return the cells in the order that is cheapest for them.
THEIRS_SPARSE = """
    import numpy, tiledb
    config = dict(one.split("=") for one in sys.argv[2:])
    array = tiledb.open(sys.argv[1], ctx=tiledb.Ctx(config))
    start = time.perf_counter()
    array.query(order="U")[:]
    print(time.perf_counter() - start)
"""

OURS_RANGES = """
    from tilefs.fs import TilefsFileSystem
    fs = TilefsFileSystem(sys.argv[1])
    size, count = int(sys.argv[2]), int(sys.argv[3])
    start = time.perf_counter()
    fs.cat_ranges(["temp.f32"] * count, [number * size for number in range(count)], [number * size + size for number in range(count)], on_error="raise")
    print(time.perf_counter() - start)
"""

MOUNTED_RANGES = """
    import concurrent.futures, os
    size, count = int(sys.argv[2]), int(sys.argv[3])
    start = time.perf_counter()
    file = os.open(sys.argv[1], os.O_RDONLY)
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: os.pread(file, size, number * size), range(count)))
    print(time.perf_counter() - start)
"""


def dense():
    rows, ratios = [], []
    for variant in VARIANTS:
        path = raster(variant)
        warm(path)
        ours, theirs = alternate(lambda: process(OURS_DENSE, path), lambda: process(THEIRS_DENSE, path))
        ratios.append(statistics.median(theirs) / statistics.median(ours))
        rows.append([variant, seconds(ours), seconds(theirs), ratio(ours, theirs)])
    rows.append(["geometric mean", "", "", f"{statistics.geometric_mean(ratios):.2f}x"])
    header = ["filters", 'tilefs: array["temp"][:]', "tiledb: array[:]", "faster by"]
    table(f"python, dense: {SIDE} x {SIDE} float32, 256 MiB, as a NumPy array", header, rows)


def sparse():
    cases = [
        ("20 million cells, 1 fragment", matrix(20, 1), {}),
        ("5 million cells, 20 overlapping fragments; legacy reader", matrix(5, 20), LEGACY),
        ("5 million rows with two strings", strings(), {}),
    ]
    rows = []
    for name, path, config in cases:
        warm(path)
        settings = [f"{key}={value}" for key, value in config.items()]
        ours, theirs = alternate(lambda: process(OURS_SPARSE, path), lambda: process(THEIRS_SPARSE, path, *settings))
        rows.append([name, seconds(ours), seconds(theirs), ratio(ours, theirs)])
    header = ["array", "tilefs: pyarrow.table(array.read())", "tiledb: all columns", "faster by"]
    table("python, sparse: all columns, in the array's own order", header, rows)


def ranges():
    rows = []
    for variant in VARIANTS:
        path = raster(variant)
        warm(path)

        def through_mount():
            with mounted(path) as mount:
                return process(MOUNTED_RANGES, f"{mount.path}/temp.f32", str(RANGE), str(RANGES))

        ours, theirs = alternate(lambda: process(OURS_RANGES, path, str(RANGE), str(RANGES)), through_mount)
        rows.append([variant, seconds(ours), seconds(theirs), ratio(ours, theirs)])
    header = ["filters", "fsspec: cat_ranges", "fresh mount: 16 threads", "faster by"]
    table(f"python, fsspec: {RANGES} ranges of {RANGE >> 20} MiB", header, rows)


def run():
    dense()
    sparse()
    ranges()
