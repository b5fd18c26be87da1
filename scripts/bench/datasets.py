"""Opens an array that TileDB-CF wrote in xarray: with the engine of the Python package and with TileDB-CF's own, which
opens no groups, each in a new process. Compares the values, and the seconds of opening and loading all of it, a slab, and
a series at one place.

TILEFS_BENCH_CF is the interpreter of an environment with TileDB-CF, the releases that it works with, and the package."""

import json
import os
import subprocess
import textwrap

from .common import alternate, made, ratio, seconds, table, warm

PYTHON = os.environ.get("TILEFS_BENCH_CF", "python3")

# TileDB-CF 0.9 names a type that newer releases of TileDB-Py do not have, in an annotation only.
IMPORTS = """
    import hashlib, json, sys, time
    import numpy, tiledb
    tiledb.libtiledb.Metadata = getattr(tiledb.libtiledb, "Metadata", object)
    import tiledb.cf, xarray
"""

MAKE = """
    random = numpy.random.default_rng(1)
    days, lats, lons = 365, 181, 360
    coords = {"time": numpy.arange(days), "lat": numpy.linspace(-90, 90, lats), "lon": numpy.arange(lons) * 1.0}
    season = numpy.sin(numpy.arange(days) / 58)[:, None, None].astype("f4")
    fields = {
        name: (("time", "lat", "lon"), (season + random.normal(size=(days, lats, lons)).round(1).astype("f4")), {"units": "K"})
        for name in ("air", "sea")
    }
    dataset = xarray.Dataset(fields, coords)
    encoding = {name: {"tiles": (10, 91, 180), "filters": tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(5)])} for name in fields}
    tiledb.cf.from_xarray(dataset, sys.argv[1], encoding=encoding)
"""

READ = """
    engine, uri, part = sys.argv[1:4]
    if engine == "tilefs":
        from tilefs._xarray import TilefsBackendEntrypoint as engine
    else:
        # The first array that is opened starts the threads of the library.
        tiledb.default_ctx()
    indexers = json.loads(part)
    start = time.perf_counter()
    dataset = xarray.open_dataset(f"{uri}/air", engine=engine)
    found = dataset.isel({name: slice(*ends) for name, ends in indexers.items()}).load()
    elapsed = time.perf_counter() - start
    digest = hashlib.sha256(numpy.ascontiguousarray(found["air"].values)).hexdigest()
    print(json.dumps([elapsed, digest, found["air"].dims, found["air"].dtype.str, dict(found["air"].attrs)]))
"""

PARTS = {"all of it": {}, "a slab of a month": {"time": [31, 59]}, "a series at one place": {"lat": [90, 91], "lon": [10, 11]}}


def ran(script, *arguments):
    whole = textwrap.dedent(IMPORTS) + textwrap.dedent(script)
    return subprocess.run([PYTHON, "-W", "ignore", "-c", whole, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def run():
    path = made("dataset-cf", lambda folder: ran(MAKE, folder))
    warm(path)
    rows = []
    for title, part in PARTS.items():
        found = []

        def side(engine):
            elapsed, *rest = json.loads(ran(READ, engine, path, json.dumps(part)).splitlines()[-1])
            found.append(rest)
            return elapsed

        ours, theirs = alternate(lambda: side("tilefs"), lambda: side("tiledb"))
        assert all(one == found[0] for one in found), f"{title}: {found[0]} {found[1]}"
        rows.append([title, seconds(ours), seconds(theirs), ratio(ours, theirs)])
    table("An array of TileDB-CF in xarray: median (best)", ["", "tilefs", "TileDB-CF", ""], rows)
