"""pyarrow, pandas and SciPy read the tables of a sparse array in a mount: every value is libtiledb's."""

import io

import numpy as np
import pandas
import pyarrow
import pyarrow.ipc
import scipy.io

from expected import arrays, same

array = arrays()
# Of the attributes whose values are codes of text labels.
enumerations = {name: one for name, one in array.schema.get("enumerations", {}).items() if one["type"] == "STRING_UTF8"}
labels = {one["name"]: [bytes.fromhex(value).decode() for value in enumerations[one["enumeration"]]["values_hex"]]
          for one in array.schema["attrs"] if one.get("enumeration") in enumerations}
checked = 0


def arrow(part):
    table = pyarrow.ipc.open_file(pyarrow.memory_map(f"{part.folder}arrow/cells.arrow")).read_all()
    table.validate(full=True)
    assert table.num_rows == part.index.size, part
    for field in array.fields:
        column, cells, valid = table[field.name], part.cells(field), part.valid(field)
        assert [value is not None for value in column.to_pylist()] == valid.tolist(), f"{part} {field.name}: other nulls"
        if field.name in labels:
            expected = [labels[field.name][code] for code in cells[valid, 0]]
            assert column.drop_null().to_pylist() == expected, f"{part} {field.name} in Arrow"
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
    """The numbers of the tables; their text has its line breaks and tabs replaced."""
    for file, options in ("cells.tsv", {"sep": "\t", "quoting": 3}), ("cells.csv", {"skipinitialspace": True}):
        text = open(f"{part.folder}text/{file}", "rb").read().decode("latin1")
        frame = pandas.read_csv(io.StringIO(text), keep_default_na=False, dtype=str, **options)
        assert len(frame) == part.index.size, f"{part} {file}: {len(frame)} rows"
        for field in array.fields:
            if field.name in labels:
                codes = zip(part.cells(field)[:, 0].tolist(), part.valid(field))
                # Line breaks and tabs of labels are spaces.
                expected = [" ".join(labels[field.name][code].split()) if there else "NA" for code, there in codes]
                assert [" ".join(value.split()) for value in frame[field.name]] == expected, f"{part} {field.name} in {file}"
                continue
            if field.count != 1 or field.type not in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FLOAT32", "FLOAT64"):
                continue
            cells, valid = part.cells(field)[:, 0], part.valid(field)
            got = [value.strip() for value in frame[field.name]]
            null, kind = ("NaN", float) if field.dtype.kind == "f" else ("NA", int)
            assert all(value == null for value, there in zip(got, valid) if not there), f"{part} {field.name} in {file}"
            got = np.array([kind(value) for value, there in zip(got, valid) if there], field.dtype)
            assert np.array_equal(got, cells[valid], equal_nan=field.dtype.kind == "f"), f"{part} {field.name} in {file}"


def matrix_market(part):
    if len(array.schema["dims"]) != 2 or array.schema["allows_dups"]:
        return
    rows, columns = (part.cells(field)[:, 0].astype("<i8") - int(dimension["domain"][0])
                     for field, dimension in zip(array.fields, array.schema["dims"]))
    for field in array.fields[2:]:
        if not any(file.endswith(".mtx") for file in array.files[field.name]):
            continue
        matrix = scipy.io.mmread(f"{part.folder}text/{field.name}.mtx")
        got = {(int(row), int(column)): value for row, column, value in zip(matrix.row, matrix.col, matrix.data)}
        expected = dict(zip(zip(rows.tolist(), columns.tolist()), part.cells(field)[:, 0]))
        assert {at: field.dtype.type(value) for at, value in got.items()} == expected, f"{part} {field.name} as a matrix"
        lengths = [int(high) - int(low) + 1 for low, high in (dimension["domain"] for dimension in array.schema["dims"])]
        assert list(matrix.shape) == lengths, f"{part}: {matrix.shape}"
        global checked
        checked += 1


for part in array.parts():
    arrow(part)
    table(part)
    matrix_market(part)
    checked += len(array.fields)
print(checked)
