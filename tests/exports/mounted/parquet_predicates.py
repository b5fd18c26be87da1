"""Every query by equality or range with DuckDB, pyarrow and Polars on a Parquet file of a mount finds the rows that a
full scan finds, whatever bounds the footer has. "Not a time" is null to all of them, and NaN lies above all numbers to
DuckDB and Polars.

`make` writes random arrays with libtiledb, `check` queries values of each column and values between them. `ask FILE...`
does the same with Parquet files of any origin.
"""

import sys

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tiledb

ARRAYS = 12
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "M8[D]", "M8[us]", "M8[ns]"]


def words(rng, count):
    return np.array(["".join(rng.choice(list("abz~"), rng.integers(0, 6))) for _ in range(count)], "S6")


def numbers(rng, dtype, count):
    if dtype.startswith("M8"):
        values = rng.integers(-10**4, 10**4, count)
        values[rng.random(count) < 0.1] = np.iinfo("i8").min
        return values.astype("i8").view(dtype)
    if dtype.startswith("f"):
        # Some tiles have only negative numbers, some have none that is not a number.
        special = [0.0, -0.0, np.inf, -np.inf, np.nan][: int(rng.integers(0, 6))]
        values = np.array([*special, *(rng.integers(-400, [-300, 400][int(rng.integers(0, 2))], 20) / 4)], dtype)
        return rng.choice(values, count)
    ends = np.iinfo(dtype)
    return rng.choice(np.array([ends.min, ends.max, *rng.integers(0, 100, 20)], dtype), count)


def write(name, rng, attributes, is_sparse):
    length, tile = int(rng.integers(10, 200)), int(rng.integers(2, 20))
    dimension = tiledb.Dim("x", domain=(0, length - 1), tile=min(tile, length), dtype="i4")
    attrs = [
        tiledb.Attr(a, dtype="ascii", var=True) if t == "text" else tiledb.Attr(a, dtype=t, nullable=a.endswith("_or_null"))
        for a, t in attributes
    ]
    more = {"sparse": True, "capacity": tile} if is_sparse else {}
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(dimension), attrs, **more))
    for _ in range(int(rng.integers(1, 4))):
        low = int(rng.integers(0, length))
        high = int(rng.integers(low, length)) + 1
        cells = {a: words(rng, high - low) if t == "text" else numbers(rng, t, high - low) for a, t in attributes}
        for a in (a for a, _ in attributes if a.endswith("_or_null")):
            cells[a] = np.ma.array(cells[a], mask=rng.random(high - low) < 0.3)
        with tiledb.open(name, "w") as array:
            array[np.arange(low, high) if is_sparse else slice(low, high)] = cells
    if rng.random() < 0.4:
        tiledb.consolidate(name)
        tiledb.vacuum(name)


def make():
    # If a write has fewer tiles than attributes, libtiledb records wrong bounds of text.
    attributes = [tiledb.Attr("s", dtype="ascii", var=True), tiledb.Attr("a", dtype="i4"), tiledb.Attr("b", dtype="f8")]
    schema = tiledb.ArraySchema(tiledb.Domain(tiledb.Dim("x", domain=(0, 99), tile=100, dtype="i4")), attributes)
    tiledb.Array.create("stale", schema)
    with tiledb.open("stale", "w") as array:
        array[10:13] = {"s": np.array(["aa", "zz", "mm"], "S2"), "a": np.arange(3, dtype="i4"), "b": np.arange(3.0)}
    rng = np.random.default_rng(26)
    for number in range(ARRAYS):
        types = rng.choice(["text", *TYPES], int(rng.integers(2, 6)))
        attributes = [(f"c{place}", str(dtype)) for place, dtype in enumerate(types)]
        if number % 3 == 0:
            # Not together with text, because libtiledb 2.30 then crashes if there are few tiles.
            attributes = [(f"c{place}_or_null", str(dtype)) for place, dtype in enumerate(rng.choice(TYPES[:10], 3))]
        write(f"r{number}", rng, attributes, number % 2 == 1)
    print("stale", *(f"r{number}" for number in range(ARRAYS)))


def ask(path, table):
    """Queries values of each column and ranges between them; returns the number of queries."""
    asked = 0
    for column in table.column_names:
        kind = table[column].type
        is_time, is_integer, is_float = pa.types.is_temporal(kind), pa.types.is_integer(kind), pa.types.is_floating(kind)
        if not (is_time or is_integer or is_float or pa.types.is_large_string(kind)):
            continue
        values = table[column].drop_null().unique()
        if is_float:
            values = values.filter(pc.invert(pc.is_nan(values)))
        if len(values) == 0:
            continue
        ordered = values.take(pc.sort_indices(values))
        quoted = '"' + column.replace('"', '""') + '"'
        for place in {0, len(ordered) // 2, len(ordered) - 1}:
            value, literal = ordered[place], ordered.slice(place, 1)
            # DuckDB reads durations as their counts.
            counted = literal.view("i8") if pa.types.is_duration(kind) else literal
            duckdb.register("literal", pa.table({"value": counted}))
            # Readers use bounds if they know the value beforehand.
            has_literal = is_integer or is_float or (not is_time and value.as_py().isprintable())
            in_sql = "(SELECT value FROM literal)"
            if has_literal:
                in_sql = str(value) if is_integer else "'" + str(value).replace("'", "''") + "'"
                in_sql += ("::FLOAT" if kind == pa.float32() else "::DOUBLE") if is_float else ""
            in_polars = polars.lit(polars.from_arrow(literal)).first() if is_time else polars.lit(value.as_py())
            for operator, compare in ("=", pc.equal), ("<=", pc.less_equal), (">=", pc.greater_equal):
                wanted = pc.sum(compare(table[column], value).cast("i8")).as_py() or 0
                own, theirs = pc.field(column), polars.col(column)
                expression = {"=": own == value, "<=": own <= value, ">=": own >= value}[operator]
                test = {"=": theirs == in_polars, "<=": theirs <= in_polars, ">=": theirs >= in_polars}[operator]
                query = f"SELECT count(*) FROM '{path}' WHERE {quoted} {operator} {in_sql}"
                found = {
                    "pyarrow": pq.read_table(path, filters=expression).num_rows,
                    "DuckDB": duckdb.sql(query).fetchall()[0][0],
                    "Polars": polars.scan_parquet(path).filter(test).collect().height,
                }
                asked += 1
                if is_float and operator == ">=":
                    above = pc.sum(pc.is_nan(table[column]).cast("i8")).as_py() or 0
                    found["DuckDB"], found["Polars"] = found["DuckDB"] - above, found["Polars"] - above
                assert set(found.values()) == {wanted}, f"{path}: {column} {operator} {value}: {found}, not {wanted}"
            # From the value to the next existing one, and to a value between the two.
            if is_integer and place + 1 < len(ordered):
                for end in ordered[place + 1].as_py(), (value.as_py() + ordered[place + 1].as_py()) // 2:
                    low, own, theirs = value.as_py(), pc.field(column), polars.col(column)
                    wanted = sum(low <= cell <= end for cell in table[column].to_pylist() if cell is not None)
                    query = f"SELECT count(*) FROM '{path}' WHERE {quoted} BETWEEN {low} AND {end}"
                    found = {
                        "pyarrow": pq.read_table(path, filters=(own >= pa.scalar(low, kind)) & (own <= pa.scalar(end, kind))).num_rows,
                        "DuckDB": duckdb.sql(query).fetchall()[0][0],
                        "Polars": polars.scan_parquet(path).filter((theirs >= polars.lit(low)) & (theirs <= polars.lit(end))).collect().height,
                    }
                    asked += 1
                    assert set(found.values()) == {wanted}, f"{path}: {column} from {low} to {end}: {found}, not {wanted}"
    return asked


def check(name):
    path = f"mnt_{name}/parquet/cells.parquet"
    table = pq.read_table(path)
    asked = ask(path, table)
    # "Not a time" is null to every reader.
    with tiledb.open(name) as array:
        for attribute in (array.attr(number) for number in range(array.nattr)):
            if attribute.dtype.kind == "M" and attribute.dtype.str.endswith(("D]", "s]")):
                stored = array[:][attribute.name]
                nulls = int(np.isnat(stored).sum())
                for own in (table, polars.read_ipc(f"mnt_{name}/arrow/cells.arrow").to_arrow()):
                    assert own[attribute.name].null_count == nulls, f"{name}: {attribute.name}: {own[attribute.name].null_count}, not {nulls}"
    return asked


if sys.argv[1] == "make":
    make()
elif sys.argv[1] == "ask":
    print(sum(ask(path, pq.read_table(path)) for path in sys.argv[2:]))
else:
    names = ["stale", *(f"r{number}" for number in range(ARRAYS))]
    asked = sum(check(name) for name in names)
    assert asked > 200, asked
    # Footers have bounds of floats, except where a number is missing.
    files = [pq.ParquetFile(f"mnt_{name}/parquet/cells.parquet") for name in names]
    bounded = [
        chunk.statistics is not None and chunk.statistics.has_min_max
        for file in files
        for group in range(file.metadata.num_row_groups)
        for chunk in (file.metadata.row_group(group).column(number) for number in range(file.metadata.num_columns))
        if chunk.physical_type in ("FLOAT", "DOUBLE")
    ]
    assert {True, False} == set(bounded), bounded
    path = "mnt_stale/parquet/cells.parquet"
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE s = 'zz'").fetchall() == [(1,)]
    print(asked)
