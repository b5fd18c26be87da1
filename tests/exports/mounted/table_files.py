"""pyarrow, pandas and SciPy read the tables of an array in a mount: all values equal those that libtiledb reads."""

import io
import json
import os
import re

import numpy as np
import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import scipy.io

import expected
from expected import arrays, same

array = arrays()
# The labels of attributes whose values are codes of texts.
enumerations = {name: one for name, one in array.schema.get("enumerations", {}).items() if one["type"] == "STRING_UTF8"}
labels = {one["name"]: [bytes.fromhex(value).decode() for value in enumerations[one["enumeration"]]["values_hex"]]
          for one in array.schema["attrs"] if one.get("enumeration") in enumerations}
ordered = {one["name"]: enumerations[one["enumeration"]]["ordered"] for one in array.schema["attrs"] if one["name"] in labels}
checked = 0


def arrow(part):
    table = pyarrow.ipc.open_file(pyarrow.memory_map(f"{part.folder}arrow/cells.arrow")).read_all()
    table.validate(full=True)
    assert table.num_rows == part.index.size, part
    if array.dense:
        assert table.column_names[0] == array.schema["dims"][0]["name"], part
        coordinates = part.coordinates(0)
        same(table[0].to_numpy().astype(coordinates.dtype), coordinates, f"{part}: the dimension in Arrow")
    for field in array.fields:
        column, cells, valid = table[field.name], part.cells(field), part.valid(field)
        assert [value is not None for value in column.to_pylist()] == valid.tolist(), f"{part} {field.name}: other nulls"
        if field.name in labels:
            wanted = [labels[field.name][code] for code in cells[valid, 0]]
            assert column.drop_null().to_pylist() == wanted, f"{part} {field.name} in Arrow"
            assert column.type.ordered == ordered[field.name], f"{part} {field.name} in Arrow: ordered"
            category = column.to_pandas().cat
            assert category.ordered == ordered[field.name] and list(category.categories) == labels[field.name], f"{part} {field.name}"
        elif not field.count:
            values = [np.array(value, field.dtype).tobytes() if isinstance(value, list) else value.encode() if isinstance(value, str)
                      else value for value in column.to_pylist()]
            assert [value for value in values if value is not None] == cells[valid].tolist(), f"{part} {field.name} in Arrow"
        elif field.count > 1:
            values = [value for value in column.to_pylist() if value is not None]
            same(np.array(values, field.dtype), cells[valid], f"{part} {field.name} in Arrow")
        elif field.dtype.kind in "mM":
            same(column.drop_null().to_numpy().astype(field.dtype), cells[valid, 0], f"{part} {field.name} in Arrow")
        elif field.type in ("BLOB", "CHAR") or field.type.startswith("STRING"):
            got = b"".join(value.encode("latin1") if isinstance(value, str) else value for value in column.drop_null().to_pylist())
            assert got == cells[valid].tobytes(), f"{part} {field.name} in Arrow"
        else:
            same(column.drop_null().to_numpy(zero_copy_only=False) if field.dtype.kind == "b" else column.drop_null().to_numpy(),
                 cells[valid, 0], f"{part} {field.name} in Arrow")


def table(part):
    """Checks every cell of the tables. The options of pandas only prevent it from reading texts as numbers or nulls."""
    for file, separator in ("cells.tsv", "\t"), ("cells.csv", ","):
        text = open(f"{part.folder}text/{file}", "rb").read().decode("latin1")
        frame = pandas.read_csv(io.StringIO(text), sep=separator, keep_default_na=False, dtype=str)
        assert len(frame) == part.index.size, f"{part} {file}: {len(frame)} rows"
        names = [dimension["name"] for dimension in array.schema["dims"]] + [one["name"] for one in array.schema["attrs"]]
        wide = [field.name for field in array.fields if field.type in expected.WIDE_TEXT]
        assert [name.encode("latin1").decode() for name in frame] == [name for name in names if name not in wide], f"{part} {file}: {list(frame)}"
        if array.dense:
            # As NumPy prints them.
            coordinates = [str(value) for value in part.coordinates(0)]
            assert list(frame[frame.columns[0]]) == coordinates, f"{part} {file}: the dimension"
        for field in array.fields:
            if field.name in wide:
                continue
            where = f"{part} {field.name} in {file}"
            got = list(frame[field.name.encode().decode("latin1")])
            cells, valid = part.cells(field), part.valid(field)
            assert all(value == "" for value, there in zip(got, valid) if not there), f"{where}: nulls"
            got = [value for value, there in zip(got, valid) if there]
            if field.name in labels:
                codes = cells[valid, 0].tolist()
                assert [value.encode("latin1").decode() for value in got] == [labels[field.name][code] for code in codes], where
            elif field.type == "BLOB" or field.type.startswith("GEOM_WKB") or field.type == "ANY":
                assert [bytes.fromhex(value) for value in got] == [bytes(cell) for cell in cells[valid]], where
            elif field.type == "CHAR" or field.type.startswith("STRING") or field.type == "GEOM_WKT":
                assert [value.encode("latin1") for value in got] == [bytes(cell) for cell in cells[valid]], where
            elif field.dtype.kind in "iufb":
                kind = float if field.dtype.kind == "f" else int
                values = [np.frombuffer(cell, field.dtype) for cell in cells[valid]] if not field.count else cells[valid]
                assert [len(value.split()) for value in got] == [len(cell) for cell in values], where
                same(np.array([field.dtype.type(kind(word)) for value in got for word in value.split()], field.dtype),
                     np.concatenate([*values, np.empty(0, field.dtype)]), where)
            elif field.dtype.kind == "M":
                words = [word or "NaT" for value in got for word in (value.split() if field.count != 1 else [value])]
                same(np.array(words, field.dtype), np.ravel(cells[valid]), where)


def lines(part):
    """Checks that NAME.txt of an enumerated attribute has its labels, one per line, if all codes have labels."""
    for field in array.fields:
        if field.name in labels and field.count == 1:
            got = open(f"{part.folder}text/{field.name}.txt", newline="").read().split("\n")[:-1]
            codes = zip(part.cells(field)[:, 0].tolist(), part.valid(field))
            wanted = [re.sub("[\r\n]", " ", labels[field.name][code]) if there else "" for code, there in codes]
            assert got == wanted, f"{part} {field.name}.txt"


def matrix_market(part):
    if array.dense or len(array.schema["dims"]) != 2 or array.schema["allows_dups"]:
        return
    rows, columns = (part.cells(field)[:, 0].astype("<i8") - int(dimension["domain"][0])
                     for field, dimension in zip(array.fields, array.schema["dims"]))
    for field in array.fields[2:]:
        if not any(file.endswith(".mtx") for file in array.files[field.name]):
            continue
        matrix = scipy.io.mmread(f"{part.folder}text/{field.name}.mtx")
        got = {(int(row), int(column)): value for row, column, value in zip(matrix.row, matrix.col, matrix.data)}
        wanted = dict(zip(zip(rows.tolist(), columns.tolist()), part.cells(field)[:, 0]))
        assert {at: field.dtype.type(value) for at, value in got.items()} == wanted, f"{part} {field.name} as a matrix"
        lengths = [int(high) - int(low) + 1 for low, high in (dimension["domain"] for dimension in array.schema["dims"])]
        if max(lengths) > 2**30:
            # The domain is only reserved space. The size of the matrix is in SOMA's metadata, unless a cell lies beyond
            # it.
            meta = json.load(open(f"{part.folder}meta.json"))
            stated = [meta[f"{dimension['name']}_domain_upper"]["values"][0] + 1 for dimension in array.schema["dims"]]
            lengths = [max(length, int(field.cells.max()) + 1) for length, field in zip(stated, array.fields)]
        assert list(matrix.shape) == lengths, f"{part}: {matrix.shape}"
        global checked
        checked += 1


def in_parts(part):
    """Checks that the files in parts/ have the rows and columns of the table, also if that has no rows."""
    folder, files = f"{part.folder}parquet", sorted(os.listdir(f"{part.folder}parquet/parts"))
    whole = pyarrow.parquet.read_table(f"{folder}/cells.parquet")
    pieces = [pyarrow.parquet.read_table(f"{folder}/parts/{file}") for file in files]
    assert pieces and all(piece.schema == whole.schema for piece in pieces), f"{part}: {files}"
    assert sum(piece.num_rows for piece in pieces) == whole.num_rows == part.index.size, f"{part}: {files}"
    assert files[0] == "0" * 15 + ".parquet" and (whole.num_rows > 0 or len(files) == 1), f"{part}: {files}"
    with pyarrow.ipc.open_file(f"{part.folder}arrow/parts/{'0' * 15}.arrow") as first:
        assert first.schema.names == whole.schema.names, f"{part}: {first.schema}"
    header = open(f"{part.folder}text/cells.tsv").readline()
    assert open(f"{part.folder}text/parts/{'0' * 15}.tsv").readline() == header, f"{part}"


for part in array.parts():
    arrow(part)
    in_parts(part)
    table(part)
    lines(part)
    matrix_market(part)
    checked += len(array.fields)
print(checked)
