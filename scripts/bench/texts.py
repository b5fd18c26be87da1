"""Text that is not ASCII compared with ASCII text of as many bytes: the processor time of each format, and Arrow tables in
Python beside TileDB-Py's own. Formats whose text is UTF-8 have to check it."""

import resource
import statistics
import subprocess

import numpy as np
import tiledb

from .common import TILEFS, alternate, made, ratio, seconds, show, table, warm
from .python import OURS_SPARSE, process

ROWS = 5_000_000

# As many bytes each.
CITIES = {
    "ASCII": ["Zuurich", "Sao Paaulo", "tokyo-jpn", "Berlin", "Rome"],
    "not ASCII": ["Zürich", "São Paulo", "東京都", "Berlin", "Rome"],
}

FORMATS = ["city.txt", "arrow/cells.arrow", "parquet/cells.parquet", "netcdf/array.nc", "netcdf4/array.nc", "hdf5/array.h5", "zarr"]

THEIRS = """
    import pyarrow, tiledb
    pyarrow.table({"one": [1]})
    array = tiledb.open(sys.argv[1])
    start = time.perf_counter()
    array.query(return_arrow=True, order="U").df[:]
    print(time.perf_counter() - start)
"""


def people(kind):
    """Returns the path of a table with two texts, a float and a nullable integer."""

    def make(path):
        zstd = tiledb.FilterList([tiledb.ZstdFilter()])
        dim = tiledb.Dim("id", domain=(0, 2**40), tile=100_000, dtype=np.int64, filters=zstd)
        attrs = [tiledb.Attr(name, dtype=str, var=True, filters=zstd) for name in ("name", "city")]
        attrs += [tiledb.Attr("x", dtype=np.float64, filters=zstd), tiledb.Attr("n", dtype=np.int32, nullable=True, filters=zstd)]
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=100_000))
        random = np.random.default_rng(1)
        cities = np.array(CITIES[kind], dtype=object)
        number = lambda: random.integers(0, len(cities), ROWS)
        count = np.ma.array(number().astype(np.int32), mask=number() == 0)
        with tiledb.open(path, "w") as array:
            import pyarrow

            column = pyarrow.array(count.data, mask=count.mask).to_pandas(integer_object_nulls=True)
            array[np.arange(ROWS)] = {"name": cities[number()], "city": cities[number()], "x": random.normal(size=ROWS), "n": column}

    return made("people-" + kind.replace(" ", "-").lower(), make)


def processor(path, name):
    """Returns the seconds of processor time that it takes to print a file, or all chunks of a Zarr array."""
    names = [name]
    if name == "zarr":
        chunks = subprocess.run([TILEFS, "ls", path, "zarr/city/c"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        names = [f"zarr/city/c/{chunk}" for chunk in chunks]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([TILEFS, "cat", "--index-dir", "none", path, *names], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run():
    ascii, other = (people(kind) for kind in CITIES)
    warm(ascii), warm(other)
    rows = []
    for name in FORMATS:
        a, b = alternate(lambda: processor(ascii, name), lambda: processor(other, name))
        rows.append([name, show(statistics.median(a)), show(statistics.median(b)), f"{statistics.median(b) / statistics.median(a):.2f}"])
    table("texts: processor time of `tilefs cat`, 5 million rows", ["file", "ASCII", "not ASCII", "ratio"], rows)
    rows = []
    for kind, path in (("ASCII", ascii), ("not ASCII", other)):
        ours, theirs = alternate(lambda: process(OURS_SPARSE, path), lambda: process(THEIRS, path))
        rows.append([kind, seconds(ours), seconds(theirs), ratio(ours, theirs)])
    table("texts: all columns as an Arrow table in Python", ["text", "tilefs", "TileDB-Py's Arrow", "faster by"], rows)
