"""The exits of an array, each read with a program that people read it with.

A reader returns, for each field, the type that the program reports and the values in the form of `arrays.Field`; or the
reason why there are none. What it makes of values depends on what the program returns, never on what was stored, with one
exception: numbers of a coarser meaning are counts, such as the digits that stand for a date in a file of raw numbers.
"""

import io
import json
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from arrays import BYTES, NOT_A_TIME, WIDE, Moment, meaning, numpy_type, unit_of

# NumPy's symbols of units of time, and those of netCDF and pandas.
SYMBOLS = {"Y": "YEAR", "M": "MONTH", "W": "WEEK", "D": "DAY", "h": "HR", "m": "MIN", "s": "SEC"}
SYMBOLS |= {unit.lower(): unit for unit in ("MS", "US", "NS", "PS", "FS", "AS")}
WORDS = {"days": "DAY", "hours": "HR", "minutes": "MIN", "seconds": "SEC", "milliseconds": "MS", "microseconds": "US",
         "nanoseconds": "NS", "picoseconds": "PS", "femtoseconds": "FS", "attoseconds": "AS"}


@dataclass
class Shown:
    """What an exit gives for a field."""

    type: str
    values: list
    form: str = "values"


@dataclass
class Refused:
    """Why an exit gives nothing."""

    reason: str


def value_of(one):
    """Returns a value of NumPy, pandas, pyarrow or Python in the form of `arrays.Field`."""
    if one is None or one is np.ma.masked:
        return None
    if isinstance(one, np.ma.MaskedArray):
        return None if one.mask.all() else [value_of(each) for each in one]
    if isinstance(one, (np.datetime64, np.timedelta64)):
        if np.isnat(one):
            return None
        symbol, count = np.datetime_data(one.dtype)
        return Moment.of(SYMBOLS[symbol], int(one.astype("i8")) * count)
    if isinstance(one, np.void) and one.dtype.names:
        parts = [one[name] for name in one.dtype.names]
        return value_of(parts[0]) if len(parts) == 1 else [value_of(each) for each in parts]
    if isinstance(one, (np.ndarray, list, tuple)):
        return [value_of(each) for each in one]
    if isinstance(one, np.void):
        return one.tobytes()
    if isinstance(one, np.generic):
        return one.item()
    return one.encode() if isinstance(one, str) else one


def numbers(datatype, data):
    """Returns the values of little-endian numbers."""
    size = numpy_type(datatype).itemsize
    return [meaning(datatype, data[at : at + size]) for at in range(0, len(data), size)]


def cells_of(one, data, ends):
    """Returns the cells of a field of which a file has the stored bytes, and where each ends."""
    found, start = [], 0
    for end in ends:
        part = data[start:end]
        start = end
        if one.is_text:
            found.append(part.decode(WIDE[one.datatype], "replace").encode() if one.datatype in WIDE else part)
        else:
            values = numbers(one.datatype, part)
            found.append(values[0] if one.cells == 1 else values)
    return found


def masked(values, valid):
    return values if valid is None else [value if is_valid else None for value, is_valid in zip(values, valid)]


class Tree:
    """The files of an array."""

    def __init__(self, uri, **options):
        from tilefs.fs import TilefsFileSystem

        self.uri = str(uri)
        self.files = TilefsFileSystem(self.uri, skip_instance_cache=True, **options)
        self.schema = json.loads(self.read("schema.json"))
        #: The reasons why there are no files, by path, and why files lack columns, by path and name.
        self.reasons = {}
        for one in self.schema["not_listed"]:
            lacks = re.fullmatch(r"its column (.*) is missing: (.*)", one["reason"])
            key = f"{one['path']}: {lacks[1]}" if lacks else one["path"]
            self.reasons[key] = lacks[2] if lacks else one["reason"]

    def read(self, path):
        return self.files.cat_file(path)

    def of_field(self, path):
        """Returns the bytes of a file, or the reason why there is none."""
        try:
            return self.read(path)
        except Exception as error:  # noqa: BLE001 - the sentence is compared
            return Refused(str(error).removeprefix(f"{path}: "))


def raw(tree, fields):
    for one in fields:
        names = next(attr["files"] for attr in tree.schema["attributes"] if attr["name"] == one.name)
        path = next(name for name in names if re.fullmatch(rf"{one.name}\.\w+", name))
        data = tree.read(path)
        valid = tree.read(f"{one.name}.valid.u8") if one.nullable else None
        if one.cells == "var":
            ends = np.frombuffer(tree.read(f"{one.name}.offsets.u64"), "<u8")[1:]
        else:
            size = numpy_type(one.datatype).itemsize * one.cells
            ends = range(size, len(data) + 1, size)
        extension = path.removeprefix(one.name)
        beside = " `.offsets.u64`" if one.cells == "var" else ""
        yield one, Shown(f"`{extension}`{beside}", masked(cells_of(one, data, ends), valid), _number_form(one))


def npy(tree, fields):
    for one in fields:
        data = tree.of_field(f"npy/{one.name}.npy")
        if isinstance(data, Refused):
            yield one, data
            continue
        array = np.load(io.BytesIO(data))
        valid = np.load(io.BytesIO(tree.read(f"npy/{one.name}.valid.npy"))) if one.nullable else None
        kind = array.dtype
        if kind.names:
            kind = f"{kind[0].str} × {len(kind.names)}"
        else:
            kind = kind.str
        values = [value_of(each) for each in array]
        if array.dtype.kind == "S":
            # NumPy hides NULs at the end.
            values = [value.ljust(array.dtype.itemsize, b"\0") for value in values]
        form = "units" if one.datatype in WIDE else _number_form(one)
        yield one, Shown(f"`{kind}`", masked(values, valid), form)


def _number_form(one):
    return "values" if one.labels is None else "codes"


def arrow(tree, fields):
    import pyarrow.ipc

    yield from _table(pyarrow.ipc.open_file(pyarrow.py_buffer(tree.read("arrow/cells.arrow"))).read_all(), fields, tree, "arrow/cells.arrow")


def parquet(tree, fields):
    import pyarrow.parquet

    yield from _table(pyarrow.parquet.read_table(io.BytesIO(tree.read("parquet/cells.parquet"))), fields, tree, "parquet/cells.parquet")


def _table(table, fields, tree, path):
    table.validate(full=True)
    for one in fields:
        if one.name not in table.column_names:
            yield one, Refused(left_out(tree, path, one.name))
            continue
        column = table[one.name]
        yield one, Shown(f"`{arrow_type(column.type)}`", arrow_values(column), arrow_form(one, column.type))


def arrow_type(kind):
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        return f"dictionary of {arrow_type(kind.value_type)}"
    text = str(kind)
    for long, short in (("large_list<item: ", "list<"), ("large_list<element: ", "list<"), ("fixed_size_list<item: ", "list<"), ("fixed_size_list<element: ", "list<"),
                        ("list<element: ", "list<"), (" not null", ""), ("[3]", ""), ("large_string", "string"), ("large_binary", "binary"), ("timestamp", "timestamp")):
        text = text.replace(long, short)
    return text.replace("fixed_size_binary3", "fixed_size_binary[3]").replace("fixed_size_binary", "bytes")


def arrow_form(one, kind):
    """Returns the form of values that have such a type: integers are counts, characters or truth values."""
    import pyarrow

    while hasattr(kind, "value_type"):
        kind = kind.value_type
    datatype = one.labels.type if one.labels is not None else one.datatype
    if not pyarrow.types.is_integer(kind):
        return "values"
    if unit_of(datatype):
        return "counts"
    return "units" if datatype in WIDE else "bytes" if datatype == "BOOL" else "values"


def arrow_values(column):
    import pyarrow

    chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    return [value for chunk in chunks for value in _arrow_values(chunk)]


def _arrow_values(array):
    import pyarrow

    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        labels = _arrow_values(array.dictionary)
        return [None if code is None else labels[code] for code in array.indices.to_pylist()]
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_duration(kind):
        return [None if count is None else Moment.of(SYMBOLS[kind.unit], count) for count in array.cast(pyarrow.int64()).to_pylist()]
    if pyarrow.types.is_date32(kind):
        return [None if count is None else Moment.of("DAY", count) for count in array.cast(pyarrow.int32()).to_pylist()]
    return [value_of(each) for each in array.to_pylist()]


def left_out(tree, path, name):
    """Returns why a file of all fields lacks one."""
    return tree.reasons.get(f"{path}: {name}", "no reason")


def _text_table(tree, fields, path, delimiter):
    import pyarrow
    import pyarrow.csv

    data = tree.read(path)
    names = data.split(b"\n", 1)[0].decode().split(delimiter)
    table = pyarrow.csv.read_csv(
        io.BytesIO(data),
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pyarrow.binary() for name in names}, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )
    for one in fields:
        if one.name not in table.column_names:
            yield one, Refused(left_out(tree, path, one.name))
            continue
        cells = table[one.name].to_pylist()
        yield one, Shown(_sample(cells), [_word(one, cell) for cell in cells])


def tsv(tree, fields):
    yield from _text_table(tree, fields, "text/cells.tsv", "\t")


def csv(tree, fields):
    yield from _text_table(tree, fields, "text/cells.csv", ",")


def _sample(cells):
    found = [cell for cell in cells if cell not in (None, b"", [])]
    return f"`{found[0].decode(errors='replace') if isinstance(found[0], bytes) else json.dumps(found[0], ensure_ascii=False)}`" if found else ""


def _word(one, cell):
    """Returns the meaning of a cell of a text."""
    if cell is None:
        return None
    datatype = one.labels.type if one.labels is not None else one.datatype
    is_list = one.cells != 1
    if unit_of(datatype) or not (one.is_text if one.labels is None else datatype.startswith(("STRING", "CHAR", "BLOB", "GEOM"))):
        words = [_number(datatype, word.decode()) for word in (cell.split(b" ") if cell else [])]
        return words if is_list else words[0]
    if datatype in BYTES:
        return bytes.fromhex(cell.decode())
    return cell


def _number(datatype, word):
    if unit_of(datatype):
        return _moment(datatype, word)
    if datatype == "BOOL":
        return {"true": True, "false": False, "0": "0 is no word for a truth value", "1": "1 is no word for a truth value"}[word]
    return float(word) if datatype.startswith("FLOAT") else int(word)


def _moment(datatype, word):
    """Returns the meaning of a date, or of a duration, as texts show them."""
    unit = unit_of(datatype)
    if word in ("NaT", ""):
        return None
    if datatype.startswith("TIME_"):
        return Moment.of(unit, int(word)) if word.lstrip("-").isdigit() else _clock(word)
    if word.lstrip("-").isdigit() and unit != "YEAR":
        return "a count is no word for a date"
    day, _, clock = word.partition("T")
    date = np.datetime64(day)
    whole = Moment.of(SYMBOLS[np.datetime_data(date.dtype)[0]], int(date.astype("i8")))
    return Moment(whole.seconds + (_clock(clock.rstrip("Z")).seconds if clock else 0))


def _clock(word):
    """Returns the meaning of a time of day: hours, minutes, seconds."""
    sign = -1 if word.startswith("-") else 1
    parts = [Fraction(part) for part in word.lstrip("-").split(":")] + [Fraction(0)] * 2
    return Moment(sign * (3600 * parts[0] + 60 * parts[1] + parts[2]))


def json_lines(tree, fields):
    import base64

    rows = [json.loads(line) for line in tree.read("text/cells.jsonl").decode().splitlines()] if tree.read("text/cells.jsonl") else []

    def scalar(datatype, cell):
        if cell is None or isinstance(cell, bool):
            return cell
        if unit_of(datatype):
            return _moment(datatype, cell)
        if datatype.startswith("FLOAT"):
            return float(cell) if not isinstance(cell, str) else float(cell.replace("Infinity", "inf"))
        if datatype in ("BLOB", "ANY", "GEOM_WKB"):
            return base64.b64decode(cell)
        if datatype.startswith(("STRING", "CHAR", "GEOM_WKT")):
            return cell.encode()
        return "a number is no truth value" if datatype == "BOOL" else int(cell)

    for one in fields:
        if rows and one.name not in rows[0]:
            yield one, Refused(left_out(tree, "text/cells.jsonl", one.name))
            continue
        cells = [row[one.name] for row in rows]
        datatype = one.labels.type if one.labels is not None else one.datatype
        values = [[scalar(datatype, each) for each in cell] if isinstance(cell, list) else scalar(datatype, cell) for cell in cells]
        yield one, Shown(_sample(cells), values)


def netcdf(tree, fields):
    yield from _netcdf(tree, fields, "netcdf/array.nc")


def netcdf4(tree, fields):
    yield from _netcdf(tree, fields, "netcdf4/array.nc")


def _netcdf(tree, fields, name):
    import netCDF4

    path = name
    with netCDF4.Dataset("memory", memory=tree.read(path)) as dataset:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        yield from _variables(dataset.variables, fields, tree, path, lambda variable: set(variable.ncattrs()), lambda variable, key: variable.getncattr(key))


def hdf5(tree, fields):
    import h5py

    with h5py.File(io.BytesIO(tree.read("hdf5/array.h5"))) as file:
        yield from _variables(file, fields, tree, "hdf5/array.h5", lambda dataset: set(dataset.attrs), lambda dataset, key: dataset.attrs[key])


def _variables(variables, fields, tree, path, keys_of, attribute):
    """Yields the fields of a netCDF or HDF5 file: values, in cells of one size or end to end with `NAME_offsets`, and
    `NAME_valid`; labels in `NAME_labels`."""

    def text_of(value):
        return value.decode() if isinstance(value, bytes) else str(value)

    def values_in(name):
        variable = variables[name]
        values = variable[...]
        keys = keys_of(variable)
        units = text_of(attribute(variable, "units")).split(" ")[0] if "units" in keys else None
        if "_Unsigned" in keys and values.dtype.kind == "i":
            values = values.view(values.dtype.str.replace("i", "u"))
        return values, WORDS.get(units), units and text_of(attribute(variable, "units"))

    def cells(name, shown):
        values, unit, _ = values_in(name)
        if f"{name}_offsets" in variables:
            offsets = [int(each) for each in variables[f"{name}_offsets"][...]]
            size = values.dtype.itemsize
            return [_cell(values[start // size : end // size], unit, shown, True) for start, end in zip(offsets, offsets[1:])]
        return [_cell(each, unit, shown, False) for each in values]

    for one in fields:
        if one.name not in variables:
            yield one, Refused(left_out(tree, path, one.name))
            continue
        values, _, units = values_in(one.name)
        kind = "string" if values.dtype.kind == "O" else values.dtype.str.lstrip("<>|=")
        word = f"`{kind}{' ' + units if units else ''}`" + (" `_offsets`" if f"{one.name}_offsets" in variables else "")
        found = cells(one.name, one)
        if one.labels is not None:
            word += " `_labels`"
            labels = [_of_label(one.labels.type, each) for each in cells(f"{one.name}_labels", None)]
            found = [labels[code] if 0 <= code < len(labels) else None for code in found]
        if one.nullable:
            found = masked(found, variables[f"{one.name}_valid"][...])
        form = _form_of_variable(one, found, values.dtype)
        if one.labels is not None and form == "units":
            found = [None if each is None else bytes(each if isinstance(each, list) else [each]) for each in found]
            form = "padded"
        yield one, Shown(word, found, form)


def _form_of_variable(one, found, dtype):
    """Returns the form of a variable: characters and bytes can be numbers, and padded where cells differ in length."""
    datatype = one.labels.type if one.labels is not None else one.datatype
    first = next((each for each in found if each not in (None, [])), None)
    first = first[0] if isinstance(first, list) else first
    if datatype in (*WIDE, *BYTES) and not isinstance(first, (bytes, str)):
        return "units"
    return "padded" if one.labels is not None or dtype.kind == "S" else "values"


def _cell(values, unit, one, is_end_to_end):
    """Returns a cell of a variable: a value, a text of characters, or a list."""
    kind = values.dtype.kind if isinstance(values, (np.ndarray, np.generic)) else None
    if kind == "S":
        return values.tobytes() if isinstance(values, np.ndarray) or is_end_to_end else bytes(values)
    if kind is None:
        return values if isinstance(values, bytes) else value_of(values)
    if unit is not None:
        moments = [None if count == NOT_A_TIME else Moment.of(unit, int(count)) for count in np.ravel(values)]
        return moments if values.ndim else moments[0]
    if one is not None and one.labels is None and one.datatype == "BOOL":
        return [bool(each) for each in values] if values.ndim else bool(values)
    return value_of(values)


def _of_label(datatype, value):
    """Returns a label as its type means it; padding of characters is not part of it."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0") if not datatype.startswith(("BLOB", "GEOM_WKB")) else value
    if isinstance(value, list):
        return value
    if isinstance(value, int):
        return meaning(datatype, np.array([value]).astype(numpy_type(datatype)).tobytes()) if datatype == "BOOL" or unit_of(datatype) else value
    return value


def zarr3(tree, fields):
    yield from _zarr(tree, fields, "zarr")


def zarr2(tree, fields):
    yield from _zarr(tree, fields, "zarr2")


def _zarr(tree, fields, folder):
    import zarr

    group = zarr.open_group(f"tilefs://{folder}", mode="r", storage_options={"uri": tree.uri})
    names = dict(group.members())

    def values_in(name):
        variable = names[name]
        values = variable[...]
        units = variable.attrs.get("units")
        return values, WORDS.get(units.split(" ")[0] if units else None), units

    for one in fields:
        if one.name not in names:
            yield one, Refused(tree.reasons.get(f"{folder}/{one.name}", "no reason"))
            continue
        values, unit, units = values_in(one.name)
        word = f"`{_dtype_word(names[one.name])}{' ' + units if units else ''}`"
        found = [_cell(each, unit, one, False) for each in values]
        if one.labels is not None:
            word += " `_labels`"
            found_labels, label_unit, _ = values_in(f"{one.name}_labels")
            labels = [_of_label(one.labels.type, _cell(each, label_unit, None, False)) for each in found_labels]
            found = [labels[code] if 0 <= code < len(labels) else None for code in found]
        if one.nullable:
            found = masked(found, names[f"{one.name}_valid"][...])
        yield one, Shown(word, found, _form_of_variable(one, found, values.dtype))


def _dtype_word(array):
    kind = array.dtype
    return "string" if kind.kind in "OT" else kind.str.lstrip("<>|=")


def fits(tree, fields):
    from astropy.io import fits as astropy

    for one in fields:
        data = tree.of_field(f"fits/{one.name}.fits")
        if isinstance(data, Refused):
            yield one, data
            continue
        with astropy.open(io.BytesIO(data), do_not_scale_image_data=True) as file:
            header, stored = file[0].header, file[0].data
        # The values of a cell are an axis of their own.
        stored = stored.T if one.cells != 1 and stored.ndim > 1 and stored.shape[0] == one.cells and stored.shape[-1] != one.cells else stored
        blank, zero = header.get("BLANK"), header.get("BZERO", 0)

        def value(each, blank=blank, zero=zero):
            return None if blank is not None and each == blank else each.item() + int(zero) if zero else each.item()

        values = [[value(part) for part in each] if np.ndim(each) else value(each) for each in stored]
        if unit_of(one.datatype) and one.cells != 1 and blank is not None:
            # What is no time in a list is blank, too.
            values = [[np.iinfo("i8").min if part is None else part for part in each] for each in values] if not one.nullable else values
        if one.nullable:
            values = [None if each == [None] * one.cells else each for each in values]
        word = f"`{'float' if header['BITPIX'] < 0 else 'int'}{abs(header['BITPIX'])}`" + (" `BZERO`" if zero else "") + (" `BLANK`" if blank is not None else "")
        form = "codes" if one.labels is not None else "counts" if unit_of(one.datatype) else "bytes" if one.datatype == "BOOL" else "values"
        yield one, Shown(word, values, "nan" if header["BITPIX"] < 0 else form)


def subscript(tree, fields):
    import tilefs

    array = tilefs.open(tree.uri)
    for one in fields:
        try:
            values = array.query(attrs=[one.name], dims=[])[:][one.name]
        except Exception as error:  # noqa: BLE001 - what it cannot return is in the table
            yield one, Refused(_without_place(error, tree))
            continue
        cells = [_text_or(one, value_of(each)) for each in _cells_of_array(values)]
        form = "codes" if one.labels is not None else _form_of_cells(one, cells)
        yield one, Shown(f"`{_numpy_word(values)}`", cells, form)


def _form_of_cells(one, cells):
    parts = (part for cell in cells for part in (cell if isinstance(cell, list) else [cell]))
    first = next((part for part in parts if part is not None), None)
    if isinstance(first, int) and not isinstance(first, bool):
        return "units" if one.datatype in WIDE else "counts" if unit_of(one.datatype) else "bytes" if one.datatype == "BOOL" else "values"
    return "values"


def _cells_of_array(values):
    nulls = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    return [None if np.all(nulls[at].tolist()) else data[at] for at in range(len(data))]


def _without_place(error, tree):
    """Returns the sentence of an error without the address of the array."""
    return f"{type(error).__name__}: {error}".replace(tree.uri, "ARRAY").split("\n")[0]


def _text_or(one, value):
    """Returns a fixed text with the NULs at its end, which NumPy hides."""
    if isinstance(value, bytes) and one.cells not in (1, "var") and one.labels is None:
        return value.ljust(one.cells, b"\0")
    return value


def _numpy_word(values):
    kind = values.dtype
    word = f"{kind[0].str.lstrip('<|')} × {len(kind.names)}" if kind.names else kind.str.lstrip("<|=")
    if kind.kind == "O":
        present = [each for each in np.ma.getdata(values) if each is not None]
        word = f"object of {type(present[0]).__name__}" if present else "object"
    shape = f" × {values.shape[1]}" if values.ndim > 1 else ""
    return f"{word}{shape}" + (" masked" if isinstance(values, np.ma.MaskedArray) else "")


def rows(tree, fields):
    """Arrow in memory."""
    import tilefs

    table = tilefs.open(tree.uri).read().to_arrow()
    table.validate(full=True)
    for one in fields:
        column = table[one.name]
        yield one, Shown(f"`{arrow_type(column.type)}`", arrow_values(column), arrow_form(one, column.type))


def polars(tree, fields):
    import polars as library

    import tilefs

    frame = library.DataFrame(tilefs.open(tree.uri).read())
    for one in fields:
        column = frame[one.name].to_arrow()
        word = str(frame[one.name].dtype).replace("time_unit=", "").replace(", time_zone=None", "").replace("ordering='lexical'", "").split("(categories")[0]
        yield one, Shown(f"`{word}`", arrow_values(column), arrow_form(one, column.type))


def df(tree, fields):
    import tilefs

    array = tilefs.open(tree.uri)
    for one in fields:
        try:
            column = array.query(attrs=[one.name], dims=[]).df[:][one.name]
        except Exception as error:  # noqa: BLE001 - what it cannot return is in the table
            yield one, Refused(_without_place(error, tree))
            continue
        yield one, Shown(f"`{_pandas_word(column)}`", _pandas_values(column), _form_of_pandas(one, column))


def dask(tree, fields):
    """The frame of dask, in partitions of few rows."""
    import tilefs

    frame = tilefs.open(tree.uri).read().to_dask_dataframe(rows_of_partition=4).compute(scheduler="sync")
    for one in fields:
        column = frame[one.name]
        yield one, Shown(f"`{_pandas_word(column)}`", _pandas_values(column), _form_of_pandas(one, column))


def page(tree, fields):
    """What the page takes from schema.json: the labels of codes, which are in raw files, and for other fields the fill
    value. In JavaScript, only integers up to 2^53 are exact; larger ones are texts beside them."""
    attributes = {attr["name"]: attr for attr in tree.schema["attributes"]}
    enumerations = {enum["name"]: enum for enum in tree.schema["enumerations"]}

    def exact(owner, key):
        found = owner.get(f"{key}_text", owner[key])
        for each in found if isinstance(found, list) else [found]:
            assert isinstance(each, (str, float)) or abs(each) <= 2**53, (owner, key)
        return found

    codes_of = {one.name: shown.values for one, shown in raw(tree, [one for one in fields if one.labels is not None])}
    for one in fields:
        attribute = attributes[one.name]
        if one.labels is not None:
            shown = exact(enumerations[attribute["enumeration"]], "labels")
            labels = [_of_json(one.labels.type, each) for each in shown]
            values = [labels[code] if code is not None and 0 <= code < len(labels) else None for code in codes_of[one.name]]
            yield one, Shown(_sample(shown), values, "bytes" if one.labels.type == "BOOL" else "values")
            continue
        fill, stored = exact(attribute, "fill"), bytes.fromhex(attribute["fill_hex"])
        of_fill = type(one)(one.name, one.datatype, one.cells, False, stored=[stored], nulls=[False])
        value = [_of_json(one.datatype, each) for each in fill] if isinstance(fill, list) else _of_json(one.datatype, fill)
        if one.cells == "var" and not one.is_text:
            value = [value]
        yield of_fill, Shown(f"fill {_sample([fill])}", [value], "bytes" if one.datatype == "BOOL" else "values")


def _of_json(datatype, value):
    """Returns the meaning of a value in schema.json."""
    if unit_of(datatype):
        return None if int(value) == NOT_A_TIME else Moment.of(unit_of(datatype), int(value))
    if datatype.startswith("FLOAT"):
        return float(value)
    if datatype in BYTES or datatype == "CHAR" and re.fullmatch("(80)+", value):
        return bytes.fromhex(value)
    if isinstance(value, str) and datatype.startswith(("STRING", "CHAR", "GEOM_WKT")):
        return value.encode()
    return int(value)


def pandas(tree, fields):
    """The Parquet file in pandas."""
    import pandas as library

    frame = library.read_parquet(io.BytesIO(tree.read("parquet/cells.parquet")))
    frame = frame.reset_index() if "x" not in frame.columns else frame
    for one in fields:
        column = frame[one.name]
        yield one, Shown(f"`{_pandas_word(column)}`", _pandas_values(column), _form_of_pandas(one, column))


def _pandas_word(column):
    kind = column.dtype
    if kind == "category":
        return f"category of {kind.categories.dtype}"
    if kind == object:
        present = [each for each in column if each is not None]
        return f"object of {type(present[0]).__name__}" if present else "object"
    return str(kind)


def _pandas_values(column):
    """Returns the values of a column; pandas has NaN for missing texts and categories."""
    is_missing = lambda each: isinstance(each, float) and np.isnan(each) and column.dtype.kind != "f"  # noqa: E731
    return [None if is_missing(each) else _pandas_value(each) for each in column]


def _pandas_value(each):
    import datetime

    import pandas as library

    if isinstance(each, (np.ndarray, list, tuple, bytes, str, np.ma.MaskedArray)):
        return value_of(each)
    if each is library.NaT or each is library.NA or each is None:
        return None
    if isinstance(each, (library.Timestamp, library.Timedelta)):
        return Moment(Fraction(each.value, 10**9) if not hasattr(each, "as_unit") else Fraction(int(each.as_unit(each.unit)._value), {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[each.unit]))
    if isinstance(each, datetime.date) and not isinstance(each, datetime.datetime):
        return Moment.of("DAY", (each - datetime.date(1970, 1, 1)).days)
    return value_of(each)


def _form_of_pandas(one, column):
    import pandas as library

    datatype = one.labels.type if one.labels is not None else one.datatype
    if one.labels is not None and datatype in BYTES and column.dtype.kind in "iu":
        return "codes"

    def numbers(each):
        return each if isinstance(each, (list, tuple, np.ndarray)) else [each]

    first = next((one for each in column for one in numbers(each) if one is not None and not library.isna(one)), None)
    if isinstance(first, (int, np.integer)) and not isinstance(first, (bool, np.bool_, np.timedelta64)):
        return "counts" if unit_of(datatype) else "units" if datatype in WIDE else "bytes" if datatype == "BOOL" else "values"
    # pandas has one mark for missing floats and for NaN.
    return "nan" if column.dtype.kind in "fO" else "values"


def duckdb(tree, fields):
    """The Parquet file in DuckDB."""
    import os
    import tempfile

    import duckdb as library

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cells.parquet")
        with open(path, "wb") as file:
            file.write(tree.read("parquet/cells.parquet"))
        table = library.sql(f"from '{path}'").to_arrow_table()
        types = dict(zip(table.column_names, library.sql(f"from '{path}'").types))
    for one in fields:
        column, form = arrow_values(table[one.name]), arrow_form(one, table[one.name].type)
        word = f"`{types[one.name]}`"
        datatype = one.labels.type if one.labels is not None else one.datatype
        unit = unit_of(datatype) if datatype.startswith("TIME_") else None
        if form == "counts" and unit in ("HR", "MIN", "SEC") and one.cells == 1:
            # Parquet has no durations, and they are in seconds at least.
            column, form, word = [None if each is None else Moment.of("SEC", each) for each in column], "values", f"{word} seconds"
        yield one, Shown(word, column, form)


def h5ad(tree, fields):
    """The observations of an experiment in an AnnData file."""
    import os
    import tempfile
    import warnings

    import anndata
    import h5py

    data = tree.read("h5ad/RNA.h5ad")
    left = h5py.File(io.BytesIO(data))["obs"].attrs.get("left_out")
    reasons = json.loads(left) if left is not None else {}
    # What no frame of AnnData holds is told where the observations are described.
    told = json.loads(tree.read("obs/schema.json"))["not_listed"]
    reasons |= {one["path"].removeprefix("zarr/"): one["reason"] for one in told if one["path"].startswith("zarr/")}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "RNA.h5ad")
        with open(path, "wb") as file:
            file.write(data)
        frame = anndata.read_h5ad(path).obs
    for one, shown in _frame(frame, fields, reasons):
        if one.labels is not None and one.labels.type == "DATETIME_YEAR" and isinstance(shown, Shown):
            # The first day of each year, as Zarr counts it.
            years = [None if day is None else int(np.datetime64(day, "D").astype("M8[Y]").astype("i8")) for day in shown.values]
            shown = Shown(f"{shown.type} days", years, shown.form)
        yield one, shown


def annotated(tree, fields):
    """The observations of an experiment as the Python package returns them."""
    import warnings

    import tilefs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = tilefs.open(tree.uri).to_anndata().obs
    yield from _frame(frame, fields, {})


def _frame(frame, fields, reasons):
    for one in fields:
        if one.name not in frame.columns:
            yield one, Refused(reasons.get(one.name, "no reason"))
            continue
        column = frame[one.name]
        yield one, Shown(f"`{_pandas_word(column)}`", _pandas_values(column), _form_of_pandas(one, column))


class Files(Tree):
    """The files of a group."""

    def __init__(self, uri):
        from tilefs.fs import TilefsFileSystem

        self.uri = str(uri)
        self.files = TilefsFileSystem(self.uri, skip_instance_cache=True)
        self.reasons = {}


def xarray(tree, fields):
    """The dataset of xarray's engine: values as they are stored, and the types that they have by default."""
    import warnings

    from tilefs._xarray import TilefsBackendEntrypoint

    class Stored:
        def __init__(self, variable):
            self.variable = variable

        def __getitem__(self, _):
            return self.variable.values

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stored = TilefsBackendEntrypoint().open_dataset(tree.uri, mask_and_scale=False, decode_times=False, decode_coords=False)
        shown = TilefsBackendEntrypoint().open_dataset(tree.uri)
        variables = {name: Stored(variable) for name, variable in stored.variables.items()}
        keys = lambda one: set(one.variable.attrs)  # noqa: E731
        for one, given in _variables(variables, fields, tree, "zarr", keys, lambda variable, key: variable.variable.attrs[key]):
            if isinstance(given, Refused):
                yield one, Refused(tree.reasons.get(f"zarr/{one.name}", "no reason"))
            else:
                kind = shown.variables[one.name].dtype
                yield one, Shown(f"`{'string' if kind.kind in 'OT' else kind.str.lstrip('<>|=')}`", given.values, given.form)
