"""Cells by coordinates, as TileDB-Py selects them: ``array[10:12]`` and ``array.multi_index[2:5, [7, 9]]``.

Coordinates are those of the domain, not positions. A slice of ``array[...]`` ends before its last coordinate if the
dimension has integers, and includes it otherwise; slices of ``multi_index`` include both ends. Cells of a dense array
are boxes by attribute; those of a sparse one are rows, by attribute and dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from ._errors import Error

if TYPE_CHECKING:
    import numpy

    from ._arrays import Array, Attribute, Dimension

# A range of coordinates, both included; `None` is the end of the domain.
_Range = Tuple[Any, Any]


def cells_of(array: "Array", key: Any) -> Any:
    """Returns the cells of ``array[key]``: a dictionary, or the values themselves if a dense array has one attribute
    without a name."""
    ranges = _per_dimension(array, key, _half_open)
    if array.is_sparse:
        rows = _rows(array, ranges)
        # The coordinates come after the attributes.
        return {name: rows[name] for name in (*array.attributes, *_names(array))}
    boxes = _boxes(array, ranges)
    keys = _expanded(key, array.ndim)
    squeezed = tuple(0 if _is_scalar(one) else slice(None) for one in keys)
    boxes = {name: values[squeezed] for name, values in boxes.items()}
    return boxes[""] if list(boxes) == [""] else boxes


class MultiIndex:
    """Cells of any number of ranges for each dimension, both ends included: ``array.multi_index[2:5, [7, slice(9, 12)]]``.
    Returns a dictionary, with the coordinates of a sparse array before its attributes."""

    def __init__(self, array: "Array") -> None:
        self._array = array

    def __getitem__(self, key: Any) -> "Dict[str, numpy.ndarray[Any, Any]]":
        ranges = _per_dimension(self._array, key, _closed)
        if self._array.is_sparse:
            rows = _rows(self._array, ranges)
            return {name: rows[name] for name in (*_names(self._array), *self._array.attributes)}
        return _boxes(self._array, ranges)

    def __repr__(self) -> str:
        return f"<tilefs.MultiIndex of {self._array.uri!r}>"


def coordinates(dimension: "Dimension", stored: Sequence[Any], *, is_position: bool) -> Tuple[Any, ...]:
    """Converts coordinates as in ``schema.json``, or positions along a dense dimension, to values of the dimension's
    type; texts become bytes."""
    import numpy

    if dimension.dtype == object:
        return tuple(_bytes(one) for one in stored)
    start = int(numpy.asarray(dimension.domain[0]).astype("i8")) if is_position and dimension.domain else 0
    ends = (numpy.array(one + start).astype(dimension.dtype) for one in stored)
    # Numbers are Python's, as in TileDB-Py, and dates NumPy's, which has all units.
    return tuple(end[()] if end.dtype.kind == "M" else end.item() for end in ends)


def _names(array: "Array") -> List[str]:
    return [dimension.name for dimension in array.dimensions]


def _expanded(key: Any, ndim: int) -> Tuple[Any, ...]:
    """Returns a subscript for each dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    if sum(1 for one in keys if one is Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = sum(1 for one in keys if one is not Ellipsis)
    if given > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {given} were indexed")
    at = next((number for number, one in enumerate(keys) if one is Ellipsis), len(keys))
    return keys[:at] + (slice(None),) * (ndim - given) + keys[at + 1 :]


def _is_scalar(key: Any) -> bool:
    return not isinstance(key, (slice, list, range, set, frozenset)) and type(key).__name__ != "ndarray"


def _per_dimension(array: "Array", key: Any, range_of: Any) -> List[List[_Range]]:
    """Returns the ranges of each dimension."""
    found = []
    for dimension, one in zip(array.dimensions, _expanded(key, array.ndim)):
        several = [one] if _is_scalar(one) or isinstance(one, slice) else list(one)
        found.append([range_of(dimension, each) for each in several])
    return found


def _closed(dimension: "Dimension", key: Any) -> _Range:
    if isinstance(key, tuple) and len(key) == 2:
        key = slice(*key)
    if not isinstance(key, slice):
        return key, key
    if key.step is not None:
        raise IndexError(f"a slice of coordinates has no step: dimension {dimension.name}")
    return key.start, key.stop


def _half_open(dimension: "Dimension", key: Any) -> _Range:
    low, high = _closed(dimension, key)
    if dimension.dtype.kind not in "iu":
        return low, high
    # Negative coordinates of a domain that has none count from its end, as in NumPy.
    first, last = dimension.domain or (0, 0)
    low, high = (end + int(last) + 1 if end is not None and end < 0 <= first else end for end in (low, high))
    return low, high - 1 if isinstance(key, slice) and high is not None else high


def _boxes(array: "Array", ranges: Sequence[Sequence[_Range]]) -> "Dict[str, numpy.ndarray[Any, Any]]":
    """Returns the cells of a dense array by attribute: each axis has the positions of its ranges, in their order."""
    positions = [
        _slices(dimension, length, several)
        for dimension, length, several in zip(array.dimensions, array.shape, ranges)
    ]
    return {name: _labelled(array, attribute, _box(attribute, positions, ())) for name, attribute in array.attributes.items()}


def _box(attribute: "Attribute", positions: Sequence[Sequence[slice]], chosen: Tuple[slice, ...]) -> Any:
    """Returns the cells at all combinations of the slices; ``chosen`` are those of the first axes."""
    import numpy

    axis = len(chosen)
    if axis == len(positions):
        return attribute[chosen]
    parts = [_box(attribute, positions, (*chosen, one)) for one in positions[axis]]
    if len(parts) == 1:
        return parts[0]
    join = numpy.ma.concatenate if attribute.nullable and attribute.values_per_cell is not None else numpy.concatenate
    return join(parts, axis=axis)


def _slices(dimension: "Dimension", length: int, ranges: Sequence[_Range]) -> List[slice]:
    """Returns the positions of ranges of coordinates, as slices; adjacent ranges are joined."""
    import numpy

    first, last = dimension.domain or (0, 0)

    def position(end: Any) -> int:
        if dimension.dtype.kind == "M":
            end = numpy.datetime64(end).astype(dimension.dtype)
            return int(end.astype("int64")) - int(first.astype("int64"))
        return int(end) - int(first)

    found: List[slice] = []
    for low, high in ranges:
        start = 0 if low is None else position(low)
        stop = length if high is None else min(position(high) + 1, length)
        if start < 0 or start >= length or stop <= start:
            raise IndexError(f"dimension {dimension.name} has coordinates {first} to {last}, not {low} to {high}")
        if found and found[-1].stop == start:
            start = found.pop().start
        found.append(slice(start, stop))
    return found


def _labelled(array: "Array", attribute: "Attribute", values: Any) -> Any:
    """Returns labels in place of the codes of an enumeration, and ``None`` for a code without a label, such as the fill
    value."""
    import numpy

    if attribute.enumeration is None:
        return values
    known = next(one for one in array.schema["enumerations"] if one["name"] == attribute.enumeration)
    if "labels" not in known:
        raise Error(f"{array.uri}: the labels of {attribute.name} are too many; array[{attribute.name!r}] has their codes")
    labels = numpy.array(known["labels"])
    codes = numpy.ma.getdata(values)
    nulls = numpy.ma.getmaskarray(values)
    has_label = (codes >= 0) & (codes.astype("u8") < len(labels))
    if (has_label | nulls).all():
        labelled = labels[numpy.where(has_label, codes, 0)] if len(labels) else codes.astype(object)
    else:
        labelled = numpy.full(codes.shape, None, dtype=object)
        labelled[has_label] = labels[codes[has_label]]
    return numpy.ma.MaskedArray(labelled, mask=nulls) if attribute.nullable else labelled


def _rows(array: "Array", ranges: Sequence[Sequence[_Range]]) -> "Dict[str, numpy.ndarray[Any, Any]]":
    """Returns the rows of a sparse array, by column."""
    selection = {}
    for dimension, several in zip(array.dimensions, ranges):
        if any(low is None and high is None for low, high in several):
            continue
        selection[dimension.name] = [low if low is high else slice(low, high) for low, high in several]
    table = array.read(rows=selection or None).to_arrow()
    # By number, because an attribute without a name has one in a table.
    types = [(one.name, one.dtype) for one in (*array.dimensions, *array.attributes.values())]
    columns = {name: _column(table.column(number), dtype) for number, (name, dtype) in enumerate(types)}
    for dimension in array.dimensions:
        if dimension.dtype == object:
            columns[dimension.name][:] = [_bytes(text) for text in columns[dimension.name]]
    return columns


def _bytes(text: Any) -> bytes:
    """Returns a coordinate of text as TileDB-Py has it."""
    return text.encode() if isinstance(text, str) else bytes(text)


def _column(column: Any, dtype: "numpy.dtype[Any]") -> "numpy.ndarray[Any, Any]":
    """Returns a column of Arrow as an array of NumPy, with the nulls masked; text that can be null has ``None``."""
    import numpy
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        labels = column.cast(column.type.value_type)
        return numpy.array(labels.to_pylist(), dtype=object if labels.null_count else None)
    if dtype == object:
        cells = numpy.empty(len(column), dtype=object)
        cells[:] = column.to_pylist()
        return cells
    if column.null_count == 0:
        return column.to_numpy().astype(dtype, copy=False)
    nulls = column.is_null().to_numpy()
    values = column.drop_null().to_numpy().astype(dtype, copy=False)
    filled = numpy.zeros(len(column), dtype=dtype)
    filled[~nulls] = values
    return numpy.ma.MaskedArray(filled, mask=nulls)
