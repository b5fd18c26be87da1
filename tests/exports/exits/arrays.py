"""Arrays with an attribute for each type, number of values per cell and kind of null, written by TileDB's library.

A `Field` knows what it stores, in one form for all exits: `None` for a null, otherwise `int`, `float`, `bool` or `bytes` for
one value, a `Moment` for a date or a duration, and a `list` of these for several values. Texts are their bytes in UTF-8.
"""

import os
import struct
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/generators"))

from fixtures.arrays import Array, Attr, Column, Dim, Enum  # noqa: E402
from fixtures.capi import DATATYPES, UNITS, VAR, numpy_type  # noqa: E402

TYPES = list(DATATYPES)
TEXTS = ("CHAR", "STRING_ASCII", "STRING_UTF8", "GEOM_WKT")
WIDE = {"STRING_UTF16": "utf-16-le", "STRING_UCS2": "utf-16-le", "STRING_UTF32": "utf-32-le", "STRING_UCS4": "utf-32-le"}
BYTES = ("BLOB", "ANY", "GEOM_WKB")
NOT_A_TIME = -(2**63)
# A type of each kind, for the cases that need not have all.
FEW = ("INT8", "INT64", "UINT64", "FLOAT32", "BOOL", "CHAR", "STRING_UTF8", "STRING_UTF16", "BLOB", "DATETIME_YEAR", "DATETIME_NS", "DATETIME_PS", "TIME_MIN")
# Values of a cell with several.
SEVERAL = 3

SECONDS = {"WEEK": 604_800, "DAY": 86_400, "HR": 3600, "MIN": 60, "SEC": 1}
SECONDS |= {unit: Fraction(1, 1000 ** (place + 1)) for place, unit in enumerate(("MS", "US", "NS", "PS", "FS", "AS"))}


@dataclass(frozen=True)
class Moment:
    """A date or a duration, in seconds since 1970 or midnight, however it was counted."""

    seconds: Fraction

    @staticmethod
    def of(unit, count):
        if unit in ("YEAR", "MONTH"):
            year, month = (1970 + count, 0) if unit == "YEAR" else (1970 + count // 12, count % 12)
            return Moment(Fraction(86_400 * _days(year, month)))
        return Moment(Fraction(count) * SECONDS[unit])


def _days(year, month):
    """Returns the days from 1970 to the first of a month, which counts from 0, in the proleptic Gregorian calendar."""
    before = year - 1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 365 * before + before // 4 - before // 100 + before // 400 - 719_162 + sum(lengths[:month])


def unit_of(datatype):
    """Returns the unit of a date or a duration; None for other types."""
    return datatype.rpartition("_")[2] if datatype.startswith(("DATETIME_", "TIME_")) else None


def meaning(datatype, data):
    """Returns the value of the bytes of one stored value."""
    if datatype == "FLOAT32":
        # The shortest decimal, as texts have it, is another double.
        return np.frombuffer(data, "<f4")[0]
    value = np.frombuffer(data, numpy_type(datatype))[0]
    if unit_of(datatype):
        return None if value == NOT_A_TIME else Moment.of(unit_of(datatype), int(value))
    return bool(value) if datatype == "BOOL" else value.item()


@dataclass
class Field:
    """An attribute, and what its cells store."""

    name: str
    datatype: str
    cells: object = 1  # values per cell, or "var"
    nullable: bool = False
    labels: "Enum | None" = None
    stored: list = field(default_factory=list)  # the bytes of each cell
    nulls: list = field(default_factory=list)

    @property
    def is_of_few(self):
        """Whether the field, or its labels, are of one of the `FEW` types."""
        return (self.datatype if self.labels is None else self.labels.type) in FEW

    @property
    def is_text(self):
        """Whether a cell is a text or bytes as a whole."""
        return self.datatype in (*TEXTS, *WIDE, *BYTES)

    def values(self):
        """Returns what the cells mean."""
        return [None if null else self._value(data) for data, null in zip(self.stored, self.nulls)]

    def in_form(self, form):
        """Returns what the cells mean in an exit of this form: `codes` instead of labels, `counts` instead of dates and
        durations, `units` (numbers) instead of wide characters or bytes, `bytes` instead of truth values, and `values`."""
        if form == "codes":
            return [None if null else meaning(self.datatype, data) for data, null in zip(self.stored, self.nulls)]
        if form in ("counts", "units", "bytes"):
            kind = "u1" if self.datatype in (*TEXTS, *BYTES) else numpy_type(self.datatype)
            if self.labels:
                counts = self.labels.values
                counts = [list(each) if isinstance(each, bytes) else int(each) for each in counts]
                codes = self.in_form("codes")
                return [counts[code] if code is not None and 0 <= code < len(counts) else None for code in codes]
            found = [None if null else np.frombuffer(data, kind).tolist() for data, null in zip(self.stored, self.nulls)]
            if self.cells != 1:
                return found
            return [None if one is None or unit_of(self.datatype) and one[0] == NOT_A_TIME else one[0] for one in found]
        return self.values()

    def _value(self, data):
        if self.labels is not None:
            code = meaning(self.datatype, data)
            return label(self.labels, self.labels.values[code]) if 0 <= code < len(self.labels.values) else None
        if self.datatype in WIDE:
            return data.decode(WIDE[self.datatype]).encode()
        if self.is_text:
            return data
        size = numpy_type(self.datatype).itemsize
        values = [meaning(self.datatype, data[at : at + size]) for at in range(0, len(data), size)]
        return values[0] if self.cells == 1 else values


def label(enum, value):
    """Returns the meaning of a label."""
    if enum.type in WIDE:
        return value.decode(WIDE[enum.type]).encode()
    if enum.type in (*TEXTS, *BYTES):
        return value if isinstance(value, bytes) else value.encode()
    return meaning(enum.type, np.array([value]).astype(numpy_type(enum.type)).tobytes())


def extremes(datatype):
    """Returns single values that every exit should hold: the ends of the type, zeros, what floats have beside numbers."""
    kind = numpy_type(datatype)
    if datatype == "BOOL":
        values = [0, 1, 1, 0, 1, 0]
    elif unit_of(datatype):
        values = [0, NOT_A_TIME, 1, -1, 600, -600]
    elif kind.kind == "f":
        values = [np.nan, np.inf, -np.inf, -0.0, np.finfo(kind).max, np.nextafter(kind.type(0), kind.type(1))]
    else:
        limits = np.iinfo(kind)
        values = [limits.min, limits.max, 0, 1, limits.max - 1, 7]
    return [np.array([value]).astype(kind).tobytes() for value in values]


def texts(datatype, length):
    """Returns the bytes of texts or blobs: empty, with quotes, breaks, words that mean null, and NULs where no exit
    refuses them; or all of a length."""
    if datatype in WIDE:
        values = ["", "a\0b", "日本", "NA", "x", " \t\n\r"]
    elif datatype == "STRING_UTF8":
        values = ["", "NaN", "日本é", "NA", 'q"u,o\'te', " \t\n\r"]
    elif datatype == "GEOM_WKT":
        values = [f"POINT ({x} {x + 1})" for x in range(6)]
    elif datatype == "GEOM_WKB":
        return [struct.pack("<bIdd", 1, 1, x, x + 1)[: length or None] for x in range(6)]
    elif datatype in BYTES:
        return [one[:length] if length else one for one in (b"\0\xff\x80", b"abc", b"   ", b"\xc3\x28\0", b"a\nb", b"\xff\xff\xff")]
    else:
        values = ["", "a\0b" if datatype == "CHAR" else "NaN", "null", "NA", 'q"u,o\'te', " \t\n\r"]
    if length:
        values = [(value + "xyz")[:length] for value in ("abc", "a\0b", "NA", "q\",", " \t\n", "1")]
    return [value.encode(WIDE.get(datatype, "utf-8")) for value in values]


def under_null(one):
    """Returns bytes that a cell has below a null, where nothing should look."""
    size = numpy_type(one.datatype).itemsize
    count = 2 if one.cells == "var" else one.cells
    if one.is_text:
        return b"\xff" * size * count
    return np.full(count, np.frombuffer(extremes(one.datatype)[4], numpy_type(one.datatype))[0]).tobytes()


def cells_of(one):
    """Returns the cells of a field in the array of extremes."""
    if one.is_text:
        found = texts(one.datatype, 0 if one.cells == "var" else one.cells)
    else:
        values = extremes(one.datatype)
        if one.cells == "var":
            found = [b"", values[0], b"".join(values[:3]), b"".join(values[3:]), values[5], b"".join(values)]
        else:
            found = [b"".join(values[(at + more) % 6] for more in range(one.cells)) for at in range(6)]
    return found


def codes_of(one):
    """Returns codes of labels: all of them, and those that have none."""
    kind = np.iinfo(numpy_type(one.datatype))
    count = len(one.labels.values)
    values = [0, count - 1, count, kind.max, -1 if kind.min else kind.max - 1, 1]
    return [np.array([value]).astype(numpy_type(one.datatype)).tobytes() for value in values]


def labels_of(datatype):
    """Returns labels of a type."""
    if datatype in WIDE:
        values = [text.encode(WIDE[datatype]) for text in ("one", "", "日本")]
    elif datatype in BYTES:
        values = [b"\xff\0", b"", b"abc"]
    elif datatype in TEXTS:
        values = ["one", "", "NA", 't"o'] if datatype != "STRING_UTF8" else ["one", "", "日本"]
    elif datatype == "BOOL":
        values = [0, 1]
    elif unit_of(datatype):
        values = [0, -1, 600]
    elif numpy_type(datatype).kind == "f":
        values = [0.5, -1e30, 2.0]
    else:
        limits = np.iinfo(numpy_type(datatype))
        values = np.array([limits.max, limits.min, 7], numpy_type(datatype))
    return Enum(f"labels_{datatype.lower()}", values, datatype)


def fields():
    """Returns a field of each kind, without cells."""
    found = []
    for datatype in TYPES:
        for cells, word in ((1, ""), (SEVERAL, "_several"), ("var", "_var")):
            if datatype == "ANY" and cells != "var" or datatype in WIDE and cells == 1:
                continue
            for nullable in (False, True):
                name = f"{datatype.lower()}{word}{'_null' if nullable else ''}"
                found.append(Field(name, datatype, cells, nullable))
    for datatype in TYPES:
        if datatype != "ANY":
            for nullable in (False, True):
                name = f"enum_{datatype.lower()}{'_null' if nullable else ''}"
                found.append(Field(name, "INT8", 1, nullable, labels_of(datatype)))
    words = Enum("words", ["one", "", "日本"])
    for datatype in ("UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64"):
        found.append(Field(f"code_{datatype.lower()}_null", datatype, 1, True, words))
    return found


def filled(case, of_few=False):
    """Returns the fields with the cells of a case: all, or those of `FEW` types."""
    made = [one for one in fields() if one.is_of_few or not of_few]
    for one in made:
        cells = codes_of(one) if one.labels is not None else cells_of(one)
        plain = codes_of(one)[:2] if one.labels is not None else cells[2:4]
        if case == "none":
            one.stored, one.nulls = [], []
        elif case == "one":
            one.stored, one.nulls = plain[:1], [False]
        elif case == "nulls":
            one.stored = [under_null(one) if one.nullable else plain[0]] * 3
            one.nulls = [one.nullable] * 3
        else:
            one.stored = cells + [under_null(one) if one.nullable else plain[0]] * 2
            one.nulls = [False] * 6 + [one.nullable] * 2
    return made


def write(path, made, sparse):
    """Writes an array with the dimension `x` whose cells the fields have."""
    count = len(made[0].stored)
    enums = {one.labels.name: one.labels for one in made if one.labels is not None}
    attrs = [Attr(one.name, one.datatype, one.cells, one.nullable, enum=one.labels and one.labels.name) for one in made]
    high = 99 if sparse else max(count, 1) - 1
    array = Array(str(path), [Dim("x", "INT32", (0, high), min(4, high + 1))], attrs, sparse=sparse, enums=enums.values())
    columns = {}
    for one in made:
        validity = np.array([not null for null in one.nulls], "u1") if one.nullable else None
        columns[one.name] = Column.of_cells(one.stored, one.cells == "var", validity)
    if sparse:
        columns["x"] = Column.numbers(range(count), "INT32")
    if count:
        array.write(1, columns)
    return path


def experiment(path, made):
    """Writes an experiment of TileDB-SOMA whose observations have the fields; returns its path."""
    import tiledb

    count = len(made[0].stored)
    for folder in ("ms/RNA/X",):
        os.makedirs(path / folder)
    enums = {one.labels.name: one.labels for one in made if one.labels is not None}
    attrs = [Attr(one.name, one.datatype, one.cells, one.nullable, enum=one.labels and one.labels.name) for one in made]
    columns = {}
    for one in made:
        validity = np.array([not null for null in one.nulls], "u1") if one.nullable else None
        columns[one.name] = Column.of_cells(one.stored, one.cells == "var", validity)
    columns["soma_joinid"] = Column.numbers(range(count), "INT64")
    columns["obs_id"] = Column.text([f"c{row}" for row in range(count)])
    joinid = [Dim("soma_joinid", "INT64", (0, 999), 100)]
    Array(str(path / "obs"), joinid, [Attr("obs_id", "STRING_UTF8", "var"), *attrs], sparse=True, enums=enums.values()).write(1, columns)
    ids = {"soma_joinid": Column.numbers(range(2), "INT64"), "var_id": Column.text(["g0", "g1"])}
    Array(str(path / "ms/RNA/var"), joinid, [Attr("var_id", "STRING_UTF8", "var")], sparse=True).write(1, ids)
    dims = [Dim(f"soma_dim_{axis}", "INT64", (0, 999), 100) for axis in (0, 1)]
    cells = {"soma_dim_0": Column.numbers([0], "INT64"), "soma_dim_1": Column.numbers([1], "INT64"), "soma_data": Column.numbers([1.5], "FLOAT32")}
    Array(str(path / "ms/RNA/X/data"), dims, [Attr("soma_data", "FLOAT32")], sparse=True).write(1, cells)
    for name, kind in (("obs", "SOMADataFrame"), ("ms/RNA/var", "SOMADataFrame"), ("ms/RNA/X/data", "SOMASparseNDArray")):
        with tiledb.open(str(path / name), "w") as array:
            array.meta["soma_object_type"] = kind
    for folder, kind in (("ms/RNA/X", "SOMACollection"), ("ms/RNA", "SOMAMeasurement"), ("ms", "SOMACollection"), (".", "SOMAExperiment")):
        tiledb.Group.create(str(path / folder))
        with tiledb.Group(str(path / folder), "w") as group:
            for name in sorted(os.listdir(path / folder)):
                if not name.startswith("__"):
                    group.add(name, name, relative=True)
            group.meta["soma_object_type"] = kind
    return path
