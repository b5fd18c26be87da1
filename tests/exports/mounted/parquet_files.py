"""pyarrow, DuckDB and Polars read the Parquet file of an array in a mount: all values equal those that libtiledb reads,
the bounds in the footer hold, and rows are in the order that it declares."""

import os
import sys

import duckdb
import numpy as np
import polars
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import expected
from expected import same

array = expected.arrays()
enumerations = {name: one for name, one in array.schema.get("enumerations", {}).items() if one["type"] == "STRING_UTF8"}
labels = {one["name"]: [bytes.fromhex(value).decode() for value in enumerations[one["enumeration"]]["values_hex"]]
          for one in array.schema["attrs"] if one.get("enumeration") in enumerations}
checked = 0


def is_text(field):
    return field.type in ("BLOB", "CHAR", "ANY") or field.type.startswith(("STRING", "GEOM")) and field.type not in expected.WIDE_TEXT


def compare(column, field, part, where):
    """Checks a column as Arrow represents it. Years and months are dates, "not a time" is null."""
    cells, valid = part.cells(field), part.valid(field)
    if field.dtype.kind == "M" and field.count == 1:
        valid = valid & ~np.isnat(cells[:, 0])
    if field.name in labels:
        there = (cells[:, 0].astype("<i8") >= 0) & (cells[:, 0].astype("<i8") < len(labels[field.name]))
        valid = valid & there
    values = column.to_pylist()
    assert [value is not None for value in values] == valid.tolist(), f"{where}: other nulls"
    values = [value for value in values if value is not None]
    if field.name in labels:
        assert values == [labels[field.name][code] for code in cells[valid, 0]], where
    elif is_text(field):
        got = [value.encode() if isinstance(value, str) else value for value in values]
        wanted = [bytes(cell) for cell in cells[valid]]
        assert got == wanted, where
    elif not field.count:
        wanted = cells[valid]
        assert len(values) == len(wanted), where
        for got, cell in zip(values, wanted):
            same(np.array(got, field.dtype), np.frombuffer(bytes(cell), field.dtype), where)
    elif field.count > 1:
        same(np.array(values, field.dtype), cells[valid], where)
    elif field.dtype.kind in "mM":
        column = column.drop_null()
        if pyarrow.types.is_integer(column.type):
            got = column.to_numpy().astype("<i8")
            # Without the Arrow schema there are no durations: hours and minutes are in seconds.
            factor = {"h": 3600, "m": 60}.get(expected.unit(field.type), 1) if field.dtype.kind == "m" else 1
            same(got, cells[valid, 0].view("<i8") * factor, where)
        else:
            same(column.to_numpy().astype(field.dtype), cells[valid, 0], where)
    else:
        column = column.drop_null()
        got = column.to_numpy(zero_copy_only=False) if field.dtype.kind == "b" else column.to_numpy()
        same(got.astype(field.dtype), cells[valid, 0], where)


def check_bounds(metadata, table, where):
    """Checks that no value lies outside the bounds of its row group."""
    count, row = 0, 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        part = table.slice(row, rows.num_rows)
        row += rows.num_rows
        for number in range(rows.num_columns):
            chunk = rows.column(number)
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max:
                continue
            column = part[chunk.path_in_schema.split(".")[0]].combine_chunks()
            least, most = statistics.min, statistics.max
            if pyarrow.types.is_temporal(column.type):
                # Python's times have no nanoseconds.
                column = column.cast(f"int{column.type.bit_width}")
                least, most = statistics.min_raw, statistics.max_raw
            values = pyarrow.compute.min_max(column).as_py()
            if values["min"] is None:
                continue
            assert least <= values["min"] and values["max"] <= most, f"{where}: {chunk.path_in_schema} {least} {most} {values}"
            count += 1
    return count


def check_order(metadata, table, where):
    """Checks that rows are sorted by the columns that each row group declares; returns their number."""
    declared = {metadata.row_group(group).sorting_columns for group in range(metadata.num_row_groups)}
    assert len(declared) <= 1, f"{where}: {declared}"
    columns = declared.pop() if declared else ()
    assert not any(column.descending or column.nulls_first for column in columns), where
    assert [metadata.schema.column(column.column_index).path for column in columns] == [table.column_names[column.column_index] for column in columns], where
    # Python's times have no nanoseconds.
    keys = [table[column.column_index].combine_chunks() for column in columns]
    keys = [key.cast(f"int{key.type.bit_width}") if pyarrow.types.is_temporal(key.type) else key for key in keys]
    rows = list(zip(*(key.to_pylist() for key in keys)))
    assert rows == sorted(rows), f"{where}: not sorted by {columns}"
    return len(columns)


def in_microseconds(path, table, where):
    """Checks that the file with microseconds has the same table if all dates are whole microseconds, and otherwise is
    an error."""
    dates = [column for column in table.columns if column.type == pyarrow.timestamp("ns")]
    if all(value is None or value % 1000 == 0 for column in dates for value in column.cast("int64").to_pylist()):
        coarse = pyarrow.parquet.read_table(path)
        for name in table.column_names:
            is_date = table[name].type == pyarrow.timestamp("ns")
            assert coarse[name].type == (pyarrow.timestamp("us") if is_date else table[name].type), where
            assert coarse[name].cast(table[name].type).equals(table[name]), where
        return
    try:
        pyarrow.parquet.read_table(path)
    except OSError:
        return
    raise SystemExit(f"{where}: dates lost precision")


bounds = 0
for part in array.parts():
    path = f"{part.folder}parquet/cells.parquet"
    file = pyarrow.parquet.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    assert table.num_rows == part.index.size, part
    tables = {"pyarrow": table, "DuckDB": duckdb.sql(f"from '{path}'").to_arrow_table(), "Polars": polars.read_parquet(path).to_arrow()}
    for reader, read in tables.items():
        assert read.column_names == table.column_names, f"{part} {reader}"
        if array.dense:
            assert read.column_names[0] == array.schema["dims"][0]["name"], part
            coordinates = part.coordinates(0)
            same(read[0].to_numpy().astype(coordinates.dtype), coordinates, f"{part}: the dimension by {reader}")
        for field in array.fields:
            compare(read[field.name], field, part, f"{part} {field.name} by {reader}")
            checked += 1
    bounds += check_bounds(file.metadata, table, part)
    order = check_order(file.metadata, table, part)
    assert order == 1 or not array.dense or not table.num_rows or "slice" in part.folder, part
    micros = f"{part.folder}parquet/cells.us.parquet"
    assert os.path.exists(micros) == any(column.type == pyarrow.timestamp("ns") for column in table.columns), part
    if os.path.exists(micros):
        in_microseconds(micros, table, part)
if not array.dense and len(array.fields[0].cells) and array.fields[0].count:
    # The coordinates of old versions, and long texts, may have no bounds.
    assert bounds or array.fields[0].dtype.kind == "M", "no bounds"
print(checked)
