"""Compares `cat` of all columns of a sparse array through a fresh mount with libtiledb, which reads the columns into
memory.

libtiledb is timed twice: through `A[:]`, as Python programs use it, and through its C interface with buffers that are
large enough, its fastest way.
"""

import os
import time

import numpy as np
import tiledb

from .common import alternate, cat, made, mounted, ratio, seconds, table, timed, warm

CACHE = "128M"
MILLION = 1_000_000


COLUMNS, CELLS_A_ROW, ROWS_AT_ONCE = 30_000, 200, 1_000


def cells(count):
    """Returns `count` distinct coordinates of a matrix, row by row, and their values."""
    rng = np.random.default_rng(11)
    rows = count // CELLS_A_ROW

    def some_rows():
        order = np.argpartition(rng.random((ROWS_AT_ONCE, COLUMNS), np.float32), CELLS_A_ROW, axis=1)
        return np.sort(order[:, :CELLS_A_ROW], axis=1)

    # Generating all rows would take long, so they repeat, at a distance that no codec detects.
    parts = [some_rows() for _ in range(10)]
    x = np.concatenate([parts[i % len(parts)] for i in range(-(-rows // ROWS_AT_ONCE))])[:rows]
    y = np.repeat(np.arange(rows, dtype=np.int64), CELLS_A_ROW)
    return y, x.reshape(-1).astype(np.int64), rng.gamma(2, 2, count).round(3).astype(np.float32)


def matrix(millions, fragments):
    """Returns the path of a matrix without duplicates. Its cells are in one fragment, or in several that all span the
    matrix and that share the cells at random."""

    def make(path):
        zstd = tiledb.FilterList([tiledb.ZstdFilter()])
        dims = [tiledb.Dim(name, domain=(0, 2**31), tile=2048, dtype=np.int64, filters=zstd) for name in "yx"]
        attr = tiledb.Attr("data", dtype=np.float32, filters=zstd)
        schema = tiledb.ArraySchema(tiledb.Domain(*dims), [attr], sparse=True, capacity=100_000, allows_duplicates=False)
        tiledb.Array.create(path, schema)
        y, x, data = cells(millions * MILLION)
        of = np.random.default_rng(3).integers(0, fragments, len(y))
        for n in range(fragments):
            mine = of == n
            with tiledb.open(path, "w", timestamp=1_700_000_000_000 + n) as array:
                array[y[mine], x[mine]] = data[mine]

    return made(f"matrix-{millions}M-{fragments}", make)


def strings():
    def make(path):
        zstd = tiledb.FilterList([tiledb.ZstdFilter()])
        dim = tiledb.Dim("id", domain=(0, 2**40), tile=2048, dtype=np.int64, filters=zstd)
        attrs = [tiledb.Attr(name, dtype=str, var=True, filters=zstd) for name in ("name", "kind")]
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=100_000))
        ids = np.arange(5 * MILLION, dtype=np.int64) * 3
        numbers = np.random.default_rng(5).integers(0, 10**9, len(ids))
        names = np.array([f"cell_{n:x}-{i % 7}" for i, n in enumerate(numbers)], dtype=object)
        kinds = np.array(["T cell", "B cell", "NK cell", "monocyte", "dendritic cell"], dtype=object)[numbers % 5]
        with tiledb.open(path, "w") as array:
            array[ids] = {"name": names, "kind": kinds}

    return made("strings-5M", make)


INCOMPLETE = 2  # of libtiledb's query states


def ours(path, files, peak):
    with mounted(path, "--cache-size", CACHE) as mount:
        elapsed = cat(*(f"{mount.path}/{file}" for file in files))
        peak.append(mount.memory())
    return elapsed


def theirs(path, columns, **config):
    """Reads the columns through the C API into buffers that are large enough. `columns` maps names to the bytes of a
    cell, None for variable length."""
    import ctypes

    from fixtures.arrays import Opened
    from fixtures.capi import FOREVER, READ, Tiledb

    db = Tiledb(**config)
    with Opened(db, path, READ, 0, FOREVER) as array:
        count = 20 * MILLION
        buffers = []
        query = db.make("query_alloc", array, READ)
        db.query_set_layout(query, 3)
        for name, size in columns.items():
            data = np.empty(count * (size or 8), "u1")
            sizes = [np.array([len(data)], "<u8")]
            db.query_set_data_buffer(query, name, data, sizes[0])
            if size is None:
                offsets = np.empty(count, "<u8")
                sizes.append(np.array([offsets.nbytes], "<u8"))
                db.query_set_offsets_buffer(query, name, offsets, sizes[1])
                buffers.append(offsets)
            buffers.append((data, sizes))
        start = time.perf_counter()
        while True:
            db.query_submit(query)
            if db.get("query_get_status", query, kind=ctypes.c_int) != INCOMPLETE:
                break  # otherwise the next part goes into the same buffers
        return time.perf_counter() - start


def python(path, **config):
    """Reads all columns as a Python program does."""
    with tiledb.open(path, ctx=tiledb.Ctx(config)) as array:
        return timed(lambda: array[:])


MATRIX_FILES, MATRIX_COLUMNS = ["dims/y.i64", "dims/x.i64", "data.f32"], {"y": 8, "x": 8, "data": 4}
LEGACY = {"sm.query.sparse_global_order.reader": "legacy"}


def run():
    string_files = ["dims/id.i64", "name.offsets.u64", "name.bytes", "kind.offsets.u64", "kind.bytes"]
    string_columns = {"id": 8, "name": None, "kind": None}
    cases = [
        ("(a) 20 million cells, 1 fragment", matrix(20, 1), MATRIX_FILES, MATRIX_COLUMNS, {}, None),
        ("(b) 20 million cells, 20 overlapping fragments; legacy reader", matrix(20, 20), MATRIX_FILES, MATRIX_COLUMNS, LEGACY, 3),
        ("(b) 5 million cells, 20 overlapping fragments; legacy reader", matrix(5, 20), MATRIX_FILES, MATRIX_COLUMNS, LEGACY, 3),
        ("(b) 5 million cells, 20 overlapping fragments; default reader", matrix(5, 20), MATRIX_FILES, MATRIX_COLUMNS, {}, 1),
        ("(c) 5 million rows with two strings", strings(), string_files, string_columns, {}, None),
    ]
    if os.environ.get("TILEFS_BENCH_SLOW") != "1":
        print("sparse: libtiledb's default reader of overlapping fragments takes minutes; TILEFS_BENCH_SLOW=1 measures it too")
        cases = [case for case in cases if "default" not in case[0]]
    rows, of_one_fragment = [], None
    for name, path, files, columns, config, runs in cases:
        warm(path)
        peak = []
        a, b = alternate(lambda: ours(path, files, peak), lambda: theirs(path, columns, **config), runs=runs)
        of_one_fragment = of_one_fragment or a
        wheel = [python(path, **config) for _ in range(runs or 3)]
        relative = f"{1 / float(ratio(a, of_one_fragment)[:-1]):.2f}" if "20 million" in name else ""
        rows.append([name, seconds(a), seconds(wheel), ratio(a, wheel), seconds(b), ratio(a, b), relative, f"{max(peak):.0f} MiB"])
    header = ["array", "cat of all columns: median (best)", "tiledb-py, A[:]", "faster by"]
    header += ["libtiledb's C interface", "faster by", "times (a)", "peak memory"]
    table(f"sparse: fresh mounts with --cache-size {CACHE}; stored files in the page cache for both", header, rows)
