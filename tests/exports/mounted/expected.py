"""The values that libtiledb read from an array of the fixtures, and the folders of its mount that show all of it or a
part.

Scripts that use this are run with the mount point and the path of the array in the fixtures.
"""

import json
import os
import sys

import numpy as np

FIXTURES = os.environ["TILEFS_FIXTURES"]
UNITS = {"YEAR": "Y", "MONTH": "M", "WEEK": "W", "DAY": "D", "HR": "h", "MIN": "m", "SEC": "s", "MS": "ms", "US": "us", "NS": "ns",
         "PS": "ps", "FS": "fs", "AS": "as"}
NUMBERS = {"INT8": "<i1", "UINT8": "<u1", "INT16": "<i2", "UINT16": "<u2", "INT32": "<i4", "UINT32": "<u4", "INT64": "<i8",
           "UINT64": "<u8", "FLOAT32": "<f4", "FLOAT64": "<f8", "BOOL": "?"}
WIDE_TEXT = {"STRING_UTF16": "<u2", "STRING_UCS2": "<u2", "STRING_UTF32": "<u4", "STRING_UCS4": "<u4"}


def unit(name):
    """Returns NumPy's name of the unit of a date or time."""
    return UNITS.get(name.split("_", 1)[-1]) if name.startswith(("DATETIME_", "TIME_")) else None


def numpy_type(name):
    if unit(name):
        return np.dtype(f"<{'M8' if name.startswith('DATETIME') else 'm8'}[{unit(name)}]")
    return np.dtype(NUMBERS.get(name) or WIDE_TEXT.get(name) or "u1")


class Field:
    """The cells of an attribute, or of a dimension of a sparse array: an array of cells by values, or the bytes of each
    cell."""

    def __init__(self, entry, order):
        self.name, self.type, self.dtype = entry["name"], entry["type"], numpy_type(entry["type"])
        self.is_dimension = entry["field"] == "dim"
        self.count = None if entry["cell_val_num"] == "var" else entry["cell_val_num"]
        values = read(entry["file"])
        if self.count:
            cells = np.frombuffer(values, self.dtype).reshape(-1, self.count)
        else:
            ends = [*np.frombuffer(read(entry["offsets_file"]), "<u8").tolist(), len(values)]
            cells = np.empty(len(ends) - 1, object)
            cells[:] = [values[a:b] for a, b in zip(ends, ends[1:])]
        self.valid = np.frombuffer(read(entry["validity_file"]), "?")[order] if "validity_file" in entry else None
        self.cells = cells[order]


class Array:
    def __init__(self, mount, path):
        self.mount = mount
        found = [one for one in json.load(open(f"{FIXTURES}/manifest.json"))["objects"] if one["path"] == path]
        self.schema, full = found[0]["schema"], next(one for one in found[0]["reads"] if one["name"] == "full")
        self.dense = self.schema["array_type"] == "dense"
        order = slice(None) if self.dense else np.fromfile(f"{FIXTURES}/{full['row_order_file']}", "<u4")
        self.fields = [Field(one, order) for one in full["fields"]]
        self.shape = tuple(full["shape"]) if self.dense else (full["cells"],)
        # The mount's own schema.json lists the names under which a netCDF file or a table has the cells.
        shown = json.load(open(f"{mount}/schema.json"))
        self.files = {one["name"]: one["files"] for one in shown["dimensions"] + shown["attributes"]}

    def field(self, name):
        return next(field for field in self.fields if field.name == name)

    def parts(self):
        """Yields the whole array, and a part of it by coordinates and by positions."""
        yield Part(self, "", np.arange(np.prod(self.shape)).reshape(self.shape))
        yield from (self.dense_parts() if self.dense else self.sparse_parts())

    def dense_parts(self):
        every = np.arange(np.prod(self.shape)).reshape(self.shape)
        by_coordinate, by_position, index, reverse = [], [], [], []
        for axis, dimension in enumerate(self.schema["dims"]):
            low, length, suffix = int(dimension["domain"][0]), self.shape[axis], unit(dimension["type"]) or ""
            # Every second cell except the first along the first axis; all except the last along the others.
            first, last, step = (1, length - 1, 2) if axis == 0 else (0, length - 2, 1)
            by_coordinate.append(f"{low + first}{suffix}..{low + last}{suffix}" + (f"..{step}" if step > 1 else ""))
            index.append(slice(first, last + 1, step))
            by_position.append("::-1" if axis == 0 else "-2:")
            reverse.append(slice(None, None, -1) if axis == 0 else slice(-2, None))
        yield Part(self, f"slice/{','.join(by_coordinate)}/", every[tuple(index)], tuple(index))
        yield Part(self, f"islice/{','.join(by_position)}/", every[tuple(reverse)], tuple(reverse))

    def sparse_parts(self):
        """Yields rows by a range of the first dimension, which has integers, dates or times; their order is that of the
        array."""
        dimension = self.schema["dims"][0]
        field, suffix = self.fields[0], unit(dimension["type"]) or ""
        if not field.count or field.dtype.kind == "f" or not len(field.cells):
            return
        at = field.cells[:, 0].astype("<i8")
        low, high = np.sort(at)[[len(at) // 4, 3 * len(at) // 4]].tolist()
        rows = np.flatnonzero((low <= at) & (at <= high))
        yield Part(self, f"slice/{low}{suffix}..{high}{suffix}/", rows)
        start = int(dimension["domain"][0])
        yield Part(self, f"islice/{low - start}:{high - start + 1}/", rows)


class Part:
    """A folder with the cells whose numbers are in `index`, an array with the shape of the files."""

    def __init__(self, array, prefix, index, axes=None):
        self.array, self.index, self.axes = array, index, axes
        self.folder = f"{array.mount}/{prefix}"
        assert index.size or not array.fields[0].cells.size, prefix

    def __str__(self):
        return self.folder

    def cells(self, field):
        """Returns the values of a field in this part, as (cells, values per cell), or the bytes of each cell."""
        return field.cells[self.index.ravel()]

    def valid(self, field):
        return np.ones(self.index.size, "?") if field.valid is None else field.valid[self.index.ravel()]

    def coordinates(self, axis):
        """Returns the coordinates along an axis of a dense array."""
        dimension = self.array.schema["dims"][axis]
        kind = numpy_type(dimension["type"])
        all = np.arange(self.array.shape[axis]).astype("<u8") + np.array(int(dimension["domain"][0]) % 2**64, "<u8")
        all = all if self.axes is None else all[self.axes[axis]]
        return all.astype(f"<i{kind.itemsize}" if kind.kind in "mM" else kind).view(kind)


def read(file):
    with open(f"{FIXTURES}/{file}", "rb") as file:
        return file.read()


def same(got, expected, what):
    """Compares bytes, so that every NaN counts and -0.0 is not 0.0."""
    got, expected = np.ascontiguousarray(got), np.ascontiguousarray(expected)
    assert got.size == expected.size, f"{what}: {got.size} values, not {expected.size}"
    if got.tobytes() != expected.tobytes():
        wrong = np.flatnonzero((got.ravel() != expected.ravel()) & ((got.ravel() == got.ravel()) | (expected.ravel() == expected.ravel())))
        first = wrong[0] if wrong.size else 0
        raise AssertionError(f"{what}: value {first} is {got.ravel()[first]}, not {expected.ravel()[first]}")


def arrays():
    return Array(sys.argv[1], sys.argv[2])
