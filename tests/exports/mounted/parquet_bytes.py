"""A query of a Parquet file in a mount reads only the columns and the row groups that it needs.

`make` writes an array; `check` counts the bytes that each reader requests once the array is mounted. Polars maps the file
into memory, so its own report of the row groups that it reads is counted."""

import os
import re
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet
import tiledb

ROWS = 2_000_000
TILE = 50_000


def make():
    dimension = tiledb.Dim("when", domain=(0, 10**9), tile=10**6, dtype="i8")
    names = [tiledb.Attr(name, dtype="f8") for name in "abcd"]
    maybe = tiledb.Attr("maybe", dtype="f4", nullable=True)
    attributes = [tiledb.Attr("number", dtype="i4"), tiledb.Attr("word", dtype="ascii", var=True), *names, maybe]
    schema = tiledb.ArraySchema(tiledb.Domain(dimension), attributes, sparse=True, capacity=TILE)
    tiledb.Array.create("table", schema)
    # In two fragments, one after the other, so that no rows are merged.
    for half in range(2):
        rows = np.arange(half * ROWS // 2, (half + 1) * ROWS // 2)
        words = np.array([f"{row // 1000:09}" for row in rows], "S9")
        values = {name: rows / (number + 1) for number, name in enumerate("abcd")}
        with tiledb.open("table", "w") as array:
            # TileDB-Py stores NaN as null.
            maybe = np.where(rows % 7 == 0, np.nan, -rows).astype("f4")
            array[rows * 3] = {"number": (ROWS - rows).astype("i4"), "word": words, **values, "maybe": maybe}
    print("table")


def asked():
    """Returns the number of bytes that this process has read so far."""
    return int(next(line for line in open("/proc/self/io") if line.startswith("rchar")).split()[1])


def polars_query(path, column, low, high):
    """Returns the sum of the rows that Polars finds, and the number of row groups that it reads."""
    script = (
        "import polars, sys; path, column, low, high = sys.argv[1:];"
        "value = str if column == 'word' else float if column in 'a maybe' else int;"
        "rows = polars.scan_parquet(path).filter(polars.col(column).is_between(polars.lit(value(low)), polars.lit(value(high))));"
        "print(rows.select(polars.col('b').sum()).collect().item())"
    )
    command = [sys.executable, "-c", script, path, column, str(low), str(high)]
    done = subprocess.run(command, env=dict(os.environ, POLARS_VERBOSE="1"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reports = re.findall(r"Predicate pushdown: reading (\d+) / (\d+) row groups", done.stderr)
    return float(done.stdout.split()[-1]), int(reports[0][0]) if reports else None


def check():
    path = "mnt_table/parquet/cells.parquet"
    metadata = pyarrow.parquet.read_metadata(path)
    groups, size = metadata.num_row_groups, metadata.num_rows * (8 + 4 + 13 + 4 * 8 + 4)
    assert metadata.num_rows == ROWS and 10 <= groups <= 40, metadata
    # All row groups begin with a tile.
    row = 0
    for group in range(groups):
        assert row % TILE == 0, (group, row)
        count = metadata.row_group(group).num_rows
        nulls = np.count_nonzero(np.arange(row, row + count) % 7 == 0)
        assert metadata.row_group(group).column(7).statistics.null_count == nulls, group
        row += count
    rows = np.arange(ROWS)
    queries = [
        # The condition, as SQL and for pyarrow, the matching rows, and the maximum number of row groups that DuckDB reads.
        # Texts have no bounds in the footer. pyarrow ignores the bounds of columns with nulls in any file.
        ("\"when\" BETWEEN 3000000 AND 3000300", ("when", 3000000, 3000300), (rows >= 1000000) & (rows <= 1000100), 1),
        ("number BETWEEN 500 AND 600", ("number", 500, 600), (ROWS - rows >= 500) & (ROWS - rows <= 600), 1),
        ("a BETWEEN 500 AND 600", ("a", 500.0, 600.0), (rows >= 500) & (rows <= 600), 1),
        ("maybe BETWEEN -1999900 AND -1999800", ("maybe", -1999900.0, -1999800.0), (rows >= 1999800) & (rows <= 1999900) & (rows % 7 > 0), 1),
        ("word BETWEEN '000000700' AND '000000701'", ("word", "000000700", "000000701"), (rows // 1000 >= 700) & (rows // 1000 <= 701), groups),
    ]
    footer = metadata.serialized_size
    # The first query also loads libraries, so it is not counted.
    duckdb.sql(f"SELECT sum(b) FROM '{path}' WHERE number < 0").fetchall()
    pyarrow.parquet.read_table(path, columns=["b"], filters=[("number", "<", 0)], use_threads=False)
    for condition, (column, low, high), fits, most in queries:
        wanted = float((rows[fits] / 2).sum())
        # Two columns of some row groups and, before these, the footer, which readers read twice.
        limit = most * (size // groups) * 24 // 61 + 2 * footer + (1 << 20)
        before = asked()
        found = duckdb.sql(f"SELECT sum(b) FROM '{path}' WHERE {condition}").fetchall()[0][0]
        read = asked() - before
        assert abs(found - wanted) < 1 and read < limit, f"DuckDB reads {read} of {size} bytes for {condition}: {found}, not {wanted}"
        before = asked()
        table = pyarrow.parquet.read_table(path, columns=["b"], filters=[(column, ">=", low), (column, "<=", high)], use_threads=False)
        read = asked() - before
        found = float(table["b"].to_numpy().sum())
        limit = max(limit, size) if column == "maybe" else limit
        assert abs(found - wanted) < 1 and read < limit, f"pyarrow reads {read} of {size} bytes for {condition}: {found}, not {wanted}"
        # Polars skips only by exact bounds. TileDB's upper bound of negative floats is a positive number.
        most_of_polars = groups if column == "maybe" else most
        found, read = polars_query(path, column, low, high)
        fits_most = read is not None and read <= most_of_polars
        assert abs(found - wanted) < 1 and fits_most, f"Polars reads {read} of {groups} row groups for {condition}: {found}, not {wanted}"
    # Readers may take the extremes from exact bounds, and must read the data where bounds are not exact.
    least, most = duckdb.sql(f"SELECT min(number), max(number) FROM '{path}'").fetchall()[0]
    assert (least, most) == (1, ROWS), (least, most)


make() if sys.argv[1] == "make" else check()
