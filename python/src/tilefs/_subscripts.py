"""Ranges of coordinates, as TileDB-Py writes them: ``array[10:12]`` and ``array.multi_index[2:5, [7, 9]]``.

Coordinates are those of the domain, not positions. A slice of ``array[...]`` ends before its last coordinate if the
dimension has integers, and includes it otherwise; slices of ``multi_index`` include both ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from ._errors import UsageError

if TYPE_CHECKING:
    from ._arrays import Array
    from ._indices import Axis
    from ._schema import Dimension

#: A range of coordinates, both included; `None` is the end of the domain.
Range = Tuple[Any, Any]


def half_open(array: "Array", key: Any) -> Tuple[List[List[Range]], Tuple[Any, ...]]:
    """Returns the ranges of ``array[key]`` for each dimension, and the index that gives a box its shape: it removes the
    axes of single coordinates and applies steps."""
    ranges, shaping = [], []
    for dimension, one in zip(array.dimensions, _expanded(key, array.ndim)):
        step = one.step if isinstance(one, slice) else None
        if step is not None:
            if array.is_sparse:
                raise IndexError(f"rows are selected without a step: dimension {dimension.name}")
            one = slice(one.start, one.stop)
        ranges.append([_half_open(dimension, each) for each in _several(one)])
        shaping.append(0 if _is_scalar(one) else slice(None, None, step))
    return ranges, tuple(shaping)


def closed(array: "Array", key: Any) -> List[List[Range]]:
    """Returns the ranges of ``array.multi_index[key]`` for each dimension. The open ends of a slice are those of the
    written cells."""
    ranges = []
    written: Any = False
    given = len([one for one in (key if isinstance(key, tuple) else (key,)) if one is not Ellipsis])
    for number, (dimension, one) in enumerate(zip(array.dimensions, _expanded(key, array.ndim))):
        found = [_closed(dimension, each) for each in _several(one)]
        is_open = any((low is None) != (high is None) or (low is None and not array.is_sparse) for low, high in found)
        if is_open and number < given:
            written = array.nonempty_domain() if written is False else written
            if written is not None:
                low, high = written[number]
                found = [(low if one[0] is None else one[0], high if one[1] is None else one[1]) for one in found]
        ranges.append(found)
    return ranges


def is_nothing(key: Any) -> bool:
    """Returns whether a subscript is an empty list or tuple."""
    return not isinstance(key, (str, bytes)) and hasattr(key, "__len__") and len(key) == 0


def axes(array: "Array", ranges: Sequence[Sequence[Range]]) -> "List[List[Axis]]":
    """Returns the positions of ranges of a dense array, for each axis."""
    return [positions(array, number, one) for number, one in enumerate(ranges)]


def positions(array: "Array", number: int, ranges: Sequence[Range]) -> "List[Axis]":
    """Returns the positions of ranges along a dimension of a dense array; ranges that follow each other are joined."""
    dimension, length = array.dimensions[number], array.shape[number]
    first, last = dimension.domain or (0, 0)
    found: "List[Axis]" = []
    for low, high in ranges:
        start = 0 if low is None else _position(dimension, low)
        stop = length if high is None else min(_position(dimension, high) + 1, length)
        if start < 0 or start >= length or stop <= start:
            raise IndexError(f"dimension {dimension.name} has coordinates {first} to {last}, not {low} to {high}")
        if found and found[-1][0] + found[-1][2] == start:
            start = found.pop()[0]
        found.append((start, 1, stop - start))
    return found


def narrowed(ranges: Sequence[Range], low: Any, high: Any) -> List[Range]:
    """Returns the parts of ranges between two coordinates, both included; ``None`` does not bound them."""
    found = []
    for first, last in ranges:
        first = low if first is None else first if low is None else max(first, low)
        last = high if last is None else last if high is None else min(last, high)
        if first is None or last is None or first <= last:
            found.append((first, last))
    return found


def coordinates(dimension: "Dimension", stored: Sequence[Any], *, is_position: bool) -> Tuple[Any, ...]:
    """Converts coordinates as in ``schema.json``, or positions along a dense dimension, to values of the dimension's
    type; texts become bytes."""
    import numpy

    if dimension.dtype == object:
        # What is no UTF-8 has its bytes in hexadecimal digits.
        return tuple(one.encode() if isinstance(one, str) else bytes.fromhex(one["hex"]) if isinstance(one, dict) else bytes(one) for one in stored)
    start = int(numpy.asarray(dimension.domain[0]).astype("i8")) if is_position and dimension.domain else 0
    ends = (numpy.array(one + start).astype(dimension.dtype) for one in stored)
    # Numbers are Python's, as in TileDB-Py, and dates NumPy's, which has all units.
    return tuple(end[()] if end.dtype.kind == "M" else end.item() for end in ends)


def _expanded(key: Any, ndim: int) -> Tuple[Any, ...]:
    """Returns a subscript for each dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    if sum(1 for one in keys if one is Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if any(one is None for one in keys):
        raise IndexError("None is no coordinate: a dimension takes a coordinate, a slice or a list of these")
    given = sum(1 for one in keys if one is not Ellipsis)
    if given > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {given} were indexed")
    at = next((number for number, one in enumerate(keys) if one is Ellipsis), len(keys))
    return keys[:at] + (slice(None),) * (ndim - given) + keys[at + 1 :]


def _is_scalar(key: Any) -> bool:
    if getattr(key, "ndim", None) == 0:
        return True
    return not isinstance(key, slice) and (isinstance(key, (str, bytes, tuple)) or not hasattr(key, "__iter__"))


def _several(key: Any) -> List[Any]:
    if isinstance(key, slice) or _is_scalar(key):
        return [key]
    # The numbers of NumPy and Arrow become Python's, but not dates, of which Python does not have all units.
    dtype = getattr(key, "dtype", None)
    if getattr(dtype, "kind", None) in ("i", "u", "f"):
        return list(key.tolist())
    found: List[Any] = []
    for one in key:
        if isinstance(one, list) or getattr(one, "ndim", False):
            found += _several(one)
        else:
            found.append(one.as_py() if hasattr(one, "as_py") else one)
    return found


def _closed(dimension: "Dimension", key: Any) -> Range:
    if isinstance(key, tuple) and len(key) == 2:
        key = slice(*key)
    key = key if isinstance(key, slice) else slice(key, key)
    for end in (key.start, key.stop):
        if dimension.dtype == object and end is not None and not isinstance(end, (str, bytes)):
            raise UsageError(f"dimension {dimension.name} has texts, not {end!r}")
    if key.step is not None:
        raise IndexError(f"a slice of coordinates has no step: dimension {dimension.name}")
    return key.start, key.stop


def _half_open(dimension: "Dimension", key: Any) -> Range:
    low, high = _closed(dimension, key)
    if dimension.dtype.kind not in "iu":
        return low, high
    for end in (low, high):
        if end is not None and not hasattr(end, "__index__"):
            raise IndexError(f"dimension {dimension.name} has integers, not {end!r}")
    # Negative coordinates of a domain that has none count from its end, as in NumPy.
    first, last = dimension.domain or (0, 0)
    low, high = (end + int(last) + 1 if end is not None and end < 0 <= first else end for end in (low, high))
    return low, high - 1 if isinstance(key, slice) and high is not None else high


def _position(dimension: "Dimension", end: Any) -> int:
    first: Any = dimension.domain[0] if dimension.domain else 0
    if dimension.dtype.kind != "M":
        return int(_integer(dimension, end)) - int(first)
    import numpy

    if isinstance(end, (int, float)):
        raise IndexError(f"dimension {dimension.name} has dates, not the number {end!r}")
    return int(numpy.datetime64(end).astype(dimension.dtype).astype("int64")) - int(first.astype("int64"))


def _integer(dimension: "Dimension", end: Any) -> int:
    try:
        number: Optional[int] = int(end)
    except (TypeError, ValueError):
        number = None
    if number is None or number != end:
        raise UsageError(f"dimension {dimension.name} has integers, not {end!r}")
    return number
