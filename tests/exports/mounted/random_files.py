"""Programs open every view of random arrays in a mount: all values equal those that libtiledb reads.

usage: random_files.py MNT

MNT has the arrays of `tests/fixtures/generators/make_random_arrays.py`, and TILEFS_FIXTURES is the folder that it made.
"""

import csv
import json
import os
import sys

import h5py
import netCDF4
import numpy as np
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import scipy.io
import zarr

import expected

TEXTS = ("STRING_ASCII", "STRING_UTF8", "CHAR")
# Units whose numbers all formats keep; netCDF and HDF5 have no years, months or weeks, and nothing finer than nanoseconds.
UNITS = {"D", "h", "m", "s", "ms", "us", "ns"}
# Units for which some formats have finer ones, and the greatest number that surely fits these.
COARSE, GREATEST = {"Y", "M", "W", "D", "h", "m", "s"}, 10**7
ZARR_CONFIG = {"mode": "r"}

csv.field_size_limit(1 << 30)


class Cells:
    """The cells of an array as libtiledb reads them: for each field a list of bytes, or None for a null."""

    def __init__(self, mount, entry):
        self.mount, self.path, self.dimension_labels = mount, entry["path"], entry["labels"]
        self.array = expected.Array(mount, entry["path"])
        self.fields = self.array.fields
        enums = self.array.schema.get("enumerations", {})
        self.labels = {attr["name"]: [bytes.fromhex(label) for label in enums[attr["enumeration"]]["values_hex"]]
                       for attr in self.array.schema["attrs"] if "enumeration" in attr}
        self.is_table = not self.array.dense or len(self.array.shape) == 1
        self.shown = json.load(open(f"{mount}/schema.json"))

    def of(self, field):
        valid = np.ones(len(field.cells), "?") if field.valid is None else field.valid
        raw = [cell if isinstance(cell, bytes) else cell.tobytes() for cell in field.cells]
        return [cell if there else None for cell, there in zip(raw, valid)]

    def files(self, field, *endings):
        return [file for file in self.array.files[field.name] if file.endswith(endings)]

    def has_no_form(self):
        """Returns whether a cell is an error in some formats: a text that is not UTF-8 (a cell that was never written, for
        example), or a date that does not fit."""
        for field in self.fields:
            if field.type in TEXTS:
                try:
                    b"\n".join(cell for cell in self.of(field) if cell).decode()
                except UnicodeDecodeError:
                    return True
            elif expected.unit(field.type) in COARSE:
                numbers = np.concatenate([np.frombuffer(cell, "<i8") for cell in self.of(field) if cell] or [np.empty(0, "<i8")])
                if (abs(numbers[numbers != np.iinfo("<i8").min]) > GREATEST).any():
                    return True
        return False


def compare(cells, field, got, view):
    """Compares cells; `got` has bytes or None for each. A null in a view that has no nulls may be anything."""
    wanted = cells.of(field)
    assert len(got) == len(wanted), f"{field.name}: {len(got)} cells, not {len(wanted)}"
    for number, (value, cell) in enumerate(zip(got, wanted)):
        assert value == cell, f"{field.name} in {view}, cell {number}: {value}, not {cell}"


def of_numbers(field, values):
    """Returns the bytes of each cell from the values of a reader, which may have wider numbers than the array."""
    values = np.ascontiguousarray(values)
    if values.dtype.kind in "iufb" and values.dtype.itemsize != field.dtype.itemsize:
        values = values.astype(field.dtype)
    raw, size = values.tobytes(), field.dtype.itemsize * field.count
    assert len(raw) % size == 0, f"{field.name}: {len(raw)} bytes"
    return with_nulls(field, [raw[start:start + size] for start in range(0, len(raw), size)])


def with_nulls(field, values):
    return values if field.valid is None else [value if there else None for value, there in zip(values, field.valid)]


def npy(cells):
    for field in cells.fields:
        for file in cells.files(field, ".npy"):
            values = np.load(f"{cells.mount}/{file}")
            if file.endswith(".valid.npy"):
                assert values.ravel(order="C").tolist() == field.valid.tolist(), file
            else:
                assert values.shape == cells.array.shape, f"{file}: {values.shape}"
                compare(cells, field, of_numbers(field, np.ascontiguousarray(values)), file)


def column_major(cells):
    shape = cells.array.shape
    for field in cells.fields if cells.array.dense else []:
        for file in cells.files(field, ""):
            if file.startswith("F/") and not file.endswith(".npy"):
                values = np.fromfile(f"{cells.mount}/{file}", "u1").reshape(*shape[::-1], -1)
                rows = np.ascontiguousarray(values.transpose(*range(len(shape))[::-1], len(shape)))
                raw = [cell.tobytes() for cell in rows.reshape(-1, rows.shape[-1])]
                compare(cells, field, with_nulls(field, raw), file)


def compare_column(cells, field, column, view):
    """Compares a column of an Arrow table, in which a code without a label and "not a time" are null."""
    wanted, got = cells.of(field), column.to_pylist() if field.dtype.kind not in "mM" or field.count != 1 else None
    if field.name in cells.labels:
        labels = cells.labels[field.name]
        there = [cell is not None and 0 <= code < len(labels) for code, cell in zip(field.cells[:, 0].tolist(), wanted)]
        wanted = [labels[code] if known else None for code, known in zip(field.cells[:, 0].tolist(), there)]
        got = [None if value is None else value.encode() for value in got]
    elif got is None:
        wanted, got = times_in_unit_of(field, column.type), column
        for width in (column.type.bit_width, 64):
            got = got.cast(f"int{width}")
        got = got.to_pylist()
    elif field.type in TEXTS or field.type == "BLOB":
        got = [value.encode() if isinstance(value, str) else value for value in got]
    else:
        got = [None if value is None else np.array(value, field.dtype).tobytes() for value in got]
    assert got == wanted, f"{field.name} in {view}: {first_difference(got, wanted)}"


def times_in_unit_of(field, kind):
    """Returns dates or durations as numbers in the unit of a type of Arrow, or in their own if it has none."""
    times = field.cells[:, 0]
    unit = "D" if pyarrow.types.is_date32(kind) else getattr(kind, "unit", expected.unit(field.type))
    numbers = times.astype(f"{field.dtype.kind}8[{unit}]").astype("<i8").tolist()
    valid = ~np.isnat(times) & (True if field.valid is None else field.valid)
    return [number if there else None for number, there in zip(numbers, valid)]


def tables(cells):
    """Arrow, Parquet, and their parts."""
    if not cells.is_table:
        return
    arrow = pyarrow.ipc.open_file(f"{cells.mount}/arrow/cells.arrow").read_all()
    arrow.validate(full=True)
    whole = {"Arrow": arrow, "Parquet": pyarrow.parquet.read_table(f"{cells.mount}/parquet/cells.parquet")}
    for kind, read in ("arrow", lambda file: pyarrow.ipc.open_file(file).read_all()), ("parquet", pyarrow.parquet.read_table):
        folder = f"{cells.mount}/{kind}/parts"
        whole[f"{kind} in parts"] = pyarrow.concat_tables([read(f"{folder}/{file}") for file in sorted(os.listdir(folder))], promote_options="permissive")
    for view, table in whole.items():
        for field in cells.fields:
            compare_column(cells, field, table[field.name], view)


def first_difference(got, wanted):
    if len(got) != len(wanted):
        return f"{len(got)} cells, not {len(wanted)}"
    return next(f"cell {number}: {one}, not {other}" for number, (one, other) in enumerate(zip(got, wanted)) if one != other)


def is_text_of(cells, field, text, cell):
    """Returns whether a text of a table stands for a cell."""
    if cell is None:
        return text == ""
    if field.name in cells.labels:
        code, labels = int(np.frombuffer(cell, field.dtype)[0]), cells.labels[field.name]
        return text.encode("latin1") == (labels[code] if 0 <= code < len(labels) else b"")
    if field.type == "BLOB":
        return bytes.fromhex(text) == cell
    if field.type in TEXTS:
        return text.encode("latin1") == cell
    numbers = np.frombuffer(cell, field.dtype)
    words = text.split() if field.count != 1 else [text]
    if field.dtype.kind == "b":
        return words == ["true" if number else "false" for number in numbers]
    if expected.unit(field.type) == "Y":
        return [int(word) - 1970 if word else np.iinfo("<i8").min for word in words] == np.frombuffer(cell, "<i8").tolist()
    if field.dtype.kind == "M":
        # NumPy does not print what overflows. Years beyond 9999 have a sign.
        if expected.unit(field.type) in COARSE and (abs(np.frombuffer(cell, "<i8").astype("f8")) > GREATEST).any():
            return len(words) == len(numbers)
        return [word.removeprefix("+") or "NaT" for word in words] == [str(number) for number in numbers]
    if field.dtype.kind == "m":
        return len(words) == len(numbers)
    got = np.array([float(word) if field.dtype.kind == "f" else int(word) for word in words], field.dtype)
    is_number = numbers == numbers
    return len(got) == len(numbers) and (is_number == (got == got)).all() and got[is_number].tobytes() == numbers[is_number].tobytes()


def text_tables(cells):
    if not cells.is_table:
        return
    for file, separator in ("cells.tsv", "\t"), ("cells.csv", ","):
        with open(f"{cells.mount}/text/{file}", encoding="latin1", newline="") as text:
            header, *rows = list(csv.reader(text, delimiter=separator))
        header = [name.encode("latin1").decode() for name in header]
        for field in cells.fields:
            place, wanted = header.index(field.name), cells.of(field)
            assert len(rows) == len(wanted), f"{file}: {len(rows)} rows, not {len(wanted)}"
            for number, (row, cell) in enumerate(zip(rows, wanted)):
                assert is_text_of(cells, field, row[place], cell), f"{field.name} in {file}, row {number}: {row[place]!r} for {cell}"


def array_files(cells):
    """netCDF, netCDF-4, HDF5 and Zarr: numbers and times."""
    group, second = (zarr.open_group(f"{cells.mount}/{folder}", **ZARR_CONFIG) for folder in ("zarr", "zarr2"))
    classic = netCDF4.Dataset(f"{cells.mount}/netcdf/array.nc") if os.path.exists(f"{cells.mount}/netcdf/array.nc") else None
    with netCDF4.Dataset(f"{cells.mount}/netcdf4/array.nc") as fourth, h5py.File(f"{cells.mount}/hdf5/array.h5") as hdf5:
        for data in filter(None, (classic, fourth)):
            data.set_auto_maskandscale(False)
        readers = {"HDF5": (hdf5, lambda variable: variable[()]), "netCDF-4": (fourth, lambda variable: variable[:]),
                   "zarr": (group, lambda variable: variable[...]), "zarr2": (second, lambda variable: variable[...])}
        readers |= {"netCDF": (classic, lambda variable: variable[:])} if classic else {}
        for field in cells.fields:
            is_time = field.dtype.kind in "mM"
            if not field.count or field.type in TEXTS or field.type == "BLOB" or (is_time and expected.unit(field.type) not in UNITS):
                continue
            for view, (data, read) in readers.items():
                names = data.variables if isinstance(data, netCDF4.Dataset) else data
                if field.name in names and not (is_time and view.startswith("netCDF")):
                    compare(cells, field, of_numbers(field, read(names[field.name])), view)
    if classic:
        classic.close()


def matrices(cells):
    # SciPy reads no integers beyond 63 bits.
    for field in (field for field in cells.fields if field.dtype != "<u8"):
        for file in cells.files(field, ".mtx"):
            matrix = scipy.io.mmread(f"{cells.mount}/{file}")
            assert matrix.nnz <= len(field.cells), file
            got = sorted(np.asarray(matrix.data).astype(field.dtype).tobytes()[start:start + field.dtype.itemsize]
                         for start in range(0, matrix.nnz * field.dtype.itemsize, field.dtype.itemsize))
            wanted = sorted(cell.tobytes() for cell in field.cells)
            assert got == wanted or field.valid is not None or field.dtype.kind == "f", file


def dimension_labels(cells):
    """Labels of dimensions, and a slice by them."""
    for name, values in cells.dimension_labels.items():
        assert np.fromfile(f"{cells.mount}/labels/{name}.f64").tolist() == values, name
        low, high = sorted((values[len(values) // 3], values[-1]))
        within = [value for value in values if low <= value <= high]
        folder = f"{cells.mount}/slice/{name}={low}..{high}"
        assert np.fromfile(f"{folder}/labels/{name}.f64").tolist() == within, f"{name} from {low} to {high}"


def every_file(cells):
    """All files that `ls` shows with all views can be read to the end that they have."""
    for folder, _, files in os.walk(cells.mount):
        for name in files:
            with open(f"{folder}/{name}", "rb") as file:
                assert len(file.read()) == os.stat(f"{folder}/{name}").st_size, f"{folder}/{name}: another size"


# The views, and whether some cells are errors in them.
VIEWS = {npy: False, column_major: False, text_tables: False, matrices: False, dimension_labels: False, tables: True, array_files: True, every_file: True}


def main(mount):
    with open(f"{os.environ['TILEFS_FIXTURES']}/manifest.json") as file:
        objects = [entry for entry in json.load(file)["objects"] if "key" not in entry]
    failures, compared, left_out = [], 0, 0
    for entry in objects:
        cells = Cells(f"{mount}/{os.path.basename(entry['path'])}", entry)
        has_no_form = cells.has_no_form()
        for view, may_lack_forms in VIEWS.items():
            if may_lack_forms and has_no_form:
                left_out += 1
                continue
            try:
                view(cells)
                compared += 1
            except Exception as error:
                failures.append(f"{entry['path']} {view.__name__}: {type(error).__name__} {error}"[:1000])
    print(f"{compared} comparisons of views of {len(objects)} arrays; {left_out} left out because of cells that have no form there")
    sys.exit("\n".join(failures) if failures else 0 if compared else "nothing was compared")


if __name__ == "__main__":
    main(sys.argv[1])
