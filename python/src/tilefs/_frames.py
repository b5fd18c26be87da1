"""Cells as columns of Arrow and pandas. Every exit that has these takes them from here, so that all have the same types,
also without rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from ._errors import UnsupportedError

if TYPE_CHECKING:
    import numpy
    import pandas
    import pyarrow

    from ._arrays import Array
    from ._attributes import Attribute
    from ._schema import Enumeration

# The key of the metadata with the types of columns that `tiledb.from_pandas` wrote, and that of the columns of the index.
_TYPES, _INDEX = "__pandas_attribute_repr", "__pandas_index_dims"


def labelled(array: "Array", attribute: "Attribute", values: Any) -> Any:
    """Returns labels in place of the codes of an enumeration. A code without a label, such as the fill value, is missing:
    ``None``, or masked if the attribute is nullable."""
    import numpy

    if attribute.enumeration is None:
        return values
    labels = array.enum(attribute.enumeration).values()
    codes = numpy.ma.getdata(values)
    has_label = (codes >= 0) & (codes.astype("u8") < len(labels)) & ~numpy.ma.getmaskarray(values)
    if attribute.nullable or has_label.all():
        found = labels[numpy.where(has_label, codes, 0)] if len(labels) else numpy.empty(codes.shape, dtype=labels.dtype)
        return numpy.ma.MaskedArray(found, mask=~has_label) if attribute.nullable else found
    found = numpy.full(codes.shape, None, dtype=object)
    found[has_label] = labels[codes[has_label]]
    return found


def known_codes(array: "Array", attribute: "Attribute", codes: Any) -> Any:
    """Returns the codes of an enumeration, of which those without a label, such as the fill value, are masked."""
    import numpy

    if attribute.enumeration is None:
        return codes
    labels, stored = array.enum(attribute.enumeration).values(), numpy.ma.getdata(codes)
    has_no_label = (stored < 0) | (stored.astype("u8") >= len(labels)) | numpy.ma.getmaskarray(codes)
    return numpy.ma.MaskedArray(stored, mask=has_no_label) if attribute.nullable or has_no_label.any() else codes


def column(array: "Array", name: str, values: Any) -> "pyarrow.Array":
    """Returns cells of a dense array as a column of Arrow, of the type that rows have."""
    import numpy
    import pyarrow

    attribute = array.attributes.get(name)
    nulls = numpy.ma.getmaskarray(values) if isinstance(values, numpy.ma.MaskedArray) else None
    data = numpy.ma.getdata(values)
    if attribute is not None and attribute.enumeration is not None:
        return _coded(array, attribute, data, nulls)
    if attribute is not None and (attribute.dtype.kind == "c" or attribute._cell_shape):
        return _of_several(attribute, data, nulls)
    if data.dtype == object:
        return _of_any_size(attribute, data)
    if data.dtype.kind in "SV":
        size = data.dtype.itemsize
        # NumPy leaves out zeros at the end.
        is_null = [False] * len(data) if nulls is None else nulls.tolist()
        cells = [None if null else bytes(one).ljust(size, b"\0") for one, null in zip(data.tolist(), is_null)]
        return pyarrow.array(cells, type=pyarrow.binary(size))
    return _of_one(name, data, nulls)


def _coded(array: "Array", attribute: "Attribute", codes: Any, nulls: Any) -> "pyarrow.Array":
    import pyarrow

    known = array.enum(attribute.enumeration or "")
    has_no_label = (codes < 0) | (codes.astype("u8") >= len(known))
    shown = pyarrow.array(codes, mask=has_no_label if nulls is None else has_no_label | nulls)
    return pyarrow.DictionaryArray.from_arrays(shown, _labels(known), ordered=known.ordered)


def _labels(known: "Enumeration") -> "pyarrow.Array":
    """Returns labels as rows have them in their dictionaries."""
    import pyarrow

    if known.dtype.kind in "SUO":
        return pyarrow.array(known._stored, type=None if known._stored else pyarrow.string())
    return _of_one(known.name, known.values(), None)


def _of_several(attribute: "Attribute", data: Any, nulls: Any) -> "pyarrow.Array":
    """Returns cells of several numbers, such as complex ones, as lists."""
    import numpy
    import pyarrow

    count = attribute.values_per_cell or 1
    numbers = numpy.ascontiguousarray(data).reshape(-1).view(attribute._number_type)
    is_null = None if nulls is None else pyarrow.array(nulls.reshape((-1, count))[:, 0] if attribute._cell_shape else nulls.ravel())
    return pyarrow.FixedSizeListArray.from_arrays(_counts(numbers), count, mask=is_null)


def _of_any_size(attribute: "Optional[Attribute]", cells: Any) -> "pyarrow.Array":
    """Returns texts, bytes or lists of numbers; ``None`` is null. Types are given, because no cells would not tell them."""
    import numpy
    import pyarrow

    if attribute is None or not attribute._has_numbers:
        return pyarrow.array(cells.tolist(), type=pyarrow.string() if attribute is None or attribute._has_text else pyarrow.binary())
    present = [numpy.empty(0, attribute._number_type) if one is None else one for one in cells]
    starts = numpy.cumsum([0, *(len(one) for one in present)])
    numbers = numpy.concatenate([numpy.empty(0, attribute._number_type), *present])
    nulls = pyarrow.array([one is None for one in cells], type=pyarrow.bool_())
    return pyarrow.ListArray.from_arrays(pyarrow.array(starts, "int32"), _counts(numbers), mask=nulls)


def _counts(numbers: "numpy.ndarray[Any, Any]") -> "pyarrow.Array":
    """Returns the numbers of lists, in which dates and lengths of time are counts of their unit."""
    import pyarrow

    return pyarrow.array(numbers.view("int64") if numbers.dtype.kind in "mM" else numbers)


def _of_one(name: str, values: "numpy.ndarray[Any, Any]", nulls: Any) -> "pyarrow.Array":
    """Returns cells of one number, date or length of time. The last two have a unit of Arrow, or are counts of one that is
    too fine for it; "not a time" is null."""
    import numpy
    import pyarrow

    if values.dtype.kind not in "mM":
        return pyarrow.array(values, mask=nulls)
    absent = numpy.isnat(values) if nulls is None else numpy.isnat(values) | nulls
    unit = numpy.datetime_data(values.dtype)[0]
    if unit in ("ps", "fs", "as"):
        return pyarrow.array(values.view("int64"), mask=absent)
    if unit in ("Y", "M", "W", "D") and values.dtype.kind == "M":
        shown = numpy.where(absent, 0, values.view("int64")).view(values.dtype)
        days, ends = shown.astype("datetime64[D]"), numpy.iinfo("int32")
        counts = days.view("int64")
        # Days of Arrow have 32 bits, in which pyarrow cuts others off.
        if (days.astype(values.dtype) == shown).all() and (counts >= ends.min).all() and (counts <= ends.max).all():
            return pyarrow.array(counts.astype("int32"), mask=absent).cast(pyarrow.date32())
    if unit not in ("s", "ms", "us", "ns"):
        values = _in_seconds(name, values, absent)
    return pyarrow.array(values, mask=absent)


def _in_seconds(name: str, values: "numpy.ndarray[Any, Any]", absent: Any) -> "numpy.ndarray[Any, Any]":
    """Returns dates or lengths of time in seconds, in which NumPy wraps those around that are too far away."""
    import numpy

    seconds = values.astype(f"{values.dtype.kind}8[s]")
    wrong = numpy.flatnonzero(~absent & (seconds.astype(values.dtype) != values))
    if len(wrong):
        first = int(values.view("int64")[wrong[0]])
        what = "too far away for the dates and times of this format"
        raise UnsupportedError(f"not supported: the value {first} of row {wrong[0]}, which is {what} (field {name})")
    return seconds


def no_rows(array: "Array", names: Sequence[str], schema: "pyarrow.Schema") -> "pyarrow.Table":
    """Returns a table of these columns without rows, whose dictionaries have the labels of enumerations."""
    import pyarrow

    columns = []
    for name, field in zip(names, schema):
        found = pyarrow.nulls(0, type=field.type)
        attribute = array.attributes.get(name)
        if pyarrow.types.is_dictionary(field.type) and attribute is not None and attribute.enumeration is not None:
            labels = _labels(array.enum(attribute.enumeration))
            codes = pyarrow.array([], type=field.type.index_type)
            found = pyarrow.DictionaryArray.from_arrays(codes, labels.cast(field.type.value_type), ordered=field.type.ordered)
        columns.append(found)
    return pyarrow.Table.from_arrays(columns, schema=schema)


def frame(array: "Array", table: "pyarrow.Table", *, keeps_arrow: bool = False) -> "pandas.DataFrame":
    """Returns a table as a DataFrame. Integers and booleans that can be null have pandas' types for these, so that they
    stay exact and keep their type with and without nulls; complex numbers are NumPy's. Days and bytes are objects, or, if
    ``keeps_arrow``, have pandas' types of Arrow."""
    import pandas

    table = table.replace_schema_metadata(None)
    columns = {name: _series(array, name, found, keeps_arrow) for name, found in zip(table.column_names, table.columns)}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))


def beside_nulls(found: "pyarrow.ChunkedArray") -> Any:
    """Returns integers or booleans of which some may be null in pandas' type for these, in which they stay themselves;
    ``None`` for other types."""
    import pandas
    from pyarrow import types

    if types.is_boolean(found.type):
        return pandas.BooleanDtype().__from_arrow__(found)
    if not types.is_integer(found.type):
        return None
    kind = f"{'Int' if types.is_signed_integer(found.type) else 'UInt'}{found.type.bit_width}"
    return getattr(pandas, f"{kind}Dtype")().__from_arrow__(found)


def _series(array: "Array", name: str, found: "pyarrow.ChunkedArray", keeps_arrow: bool) -> Any:
    import pandas
    import pyarrow
    from pyarrow import types

    attribute = array.attributes.get(name)
    if attribute is not None and attribute.dtype.kind == "c":
        return _complex(attribute, found)
    # Times finer than nanoseconds are integers, of which some may be no time.
    exact = beside_nulls(found) if found.null_count or attribute is not None and attribute.nullable else None
    if exact is not None:
        return exact
    are_bytes = types.is_binary(found.type) or types.is_large_binary(found.type) or types.is_fixed_size_binary(found.type)
    if keeps_arrow and (found.type == pyarrow.date32() or are_bytes):
        # pandas does not read back the types of fixed size that it notes in Parquet files.
        found = found.cast(pyarrow.binary()) if types.is_fixed_size_binary(found.type) else found
        return pandas.ArrowDtype(found.type).__from_arrow__(found)
    if found.type == pyarrow.date32():
        return _dates(found)
    return found.to_pandas()


def _complex(attribute: "Attribute", found: "pyarrow.ChunkedArray") -> "numpy.ndarray[Any, Any]":
    """Returns pairs as complex numbers; NaN for null."""
    import numpy

    numbers = numpy.full(len(found), numpy.nan, dtype=attribute.dtype)
    nulls = numpy.asarray(found.is_null().to_numpy(), dtype=bool)
    parts = [one.flatten().to_numpy(zero_copy_only=False) for one in found.chunks]
    pairs = numpy.concatenate(parts) if parts else numpy.empty(0)
    numbers[~nulls] = pairs.astype(attribute._number_type, copy=False).view(attribute.dtype)
    return numbers


def _dates(found: "pyarrow.ChunkedArray") -> "pandas.Series":
    """Returns days as dates of Python, as TileDB-Py does, or as ``datetime64`` if some are beyond Python's years."""
    try:
        return found.to_pandas()
    except ValueError:
        return found.to_pandas(date_as_object=False)


def typed(frame: "pandas.DataFrame", metadata: Mapping[str, Any]) -> "pandas.DataFrame":
    """Returns a frame with the types of columns that ``tiledb.from_pandas`` noted in the metadata."""
    noted = _noted(metadata)
    if "" in noted.get(_INDEX, {}):
        frame = frame.rename(columns={"__dim_0": ""})
    types = {name: kind for one in noted.values() for name, kind in one.items() if name in frame}
    return frame.astype(types) if types else frame


def indexed(frame: "pandas.DataFrame", metadata: Mapping[str, Any], index: Any) -> "pandas.DataFrame":
    """Returns a frame with the types and the index that ``tiledb.from_pandas`` noted in the metadata."""
    frame = typed(frame, metadata)
    indexes = [name for name in _noted(metadata).get(_INDEX, {}) if name in frame]
    if index is True:
        if indexes:
            frame = frame.set_index(indexes)
            frame.index.names = [None if name == "__tiledb_rows" else name for name in frame.index.names]
    elif index:
        frame = frame.set_index(list(index) if not isinstance(index, str) else index)
    return frame


def _noted(metadata: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    return {key: json.loads(metadata[key]) for key in (_TYPES, _INDEX) if key in metadata}
