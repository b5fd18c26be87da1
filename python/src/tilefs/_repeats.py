"""Rows of ranges that overlap or repeat each other. In row-major and column-major order, TileDB reads a row as often as
ranges contain it; along a single dimension, it reads one range after the other."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

if TYPE_CHECKING:
    import numpy

    from ._schema import Dimension
    from ._subscripts import Range


def may_repeat(dimensions: Sequence["Dimension"], ranges: Sequence[Sequence["Range"]]) -> bool:
    """Returns whether ranges overlap, or whether those along a single dimension are out of order."""
    import numpy

    for dimension, several in zip(dimensions, ranges):
        lows, highs = (_ends(dimension, [one[end] for one in several]) for end in (0, 1))
        if len(several) == 1 or lows is None or highs is None:
            continue
        by_low = numpy.argsort(lows[0], kind="stable")
        if lows[1].any() or highs[1].any() or (highs[0][by_low][:-1] >= lows[0][by_low][1:]).any():
            return True
        if len(ranges) == 1 and (numpy.diff(by_low) < 0).any():
            return True
    return False


def order(
    dimensions: Sequence["Dimension"], columns: Sequence[Any], ranges: Sequence[Sequence["Range"]]
) -> "Optional[numpy.ndarray[Any, Any]]":
    """Returns the numbers of the rows in the order in which they are read, of which some are there several times; ``None``
    if each is there once, in its order. The rows lie in the ranges, and are sorted; ``columns`` are their coordinates."""
    import numpy

    found = [None if len(several) == 1 else _rows(*along, several) for along, several in zip(zip(dimensions, columns), ranges)]
    if len(ranges) == 1:
        return found[0]
    times = numpy.ones(len(columns[0]), dtype="int64")
    for rows in found:
        if rows is not None:
            times *= numpy.bincount(rows, minlength=len(times))
    return None if (times == 1).all() else numpy.repeat(numpy.arange(len(times)), times)


def _rows(dimension: "Dimension", along: Any, ranges: Sequence["Range"]) -> "Optional[numpy.ndarray[Any, Any]]":
    """Returns the rows of one range after the other, by coordinates along one dimension; ``None`` if ends have another
    type, such as texts that stand for all of a month."""
    import numpy

    lows, highs = (_ends(dimension, [one[end] for one in ranges]) for end in (0, 1))
    if lows is None or highs is None:
        return None
    by_coordinate = numpy.argsort(along, kind="stable")
    ordered = along[by_coordinate]
    first = numpy.where(lows[1], 0, numpy.searchsorted(ordered, lows[0], "left"))
    last = numpy.where(highs[1], len(ordered), numpy.searchsorted(ordered, highs[0], "right"))
    return numpy.concatenate([by_coordinate[start:stop] for start, stop in zip(first.tolist(), last.tolist())])


def _ends(dimension: "Dimension", ends: Sequence[Any]) -> "Optional[Tuple[Any, Any]]":
    """Returns ends of ranges in the type of coordinates, and which of them are open."""
    import numpy

    dtype, is_open = dimension.dtype, numpy.array([one is None for one in ends])
    if dtype == object:
        values = [b"" if one is None else one.encode() if isinstance(one, str) else bytes(one) for one in ends]
        found = numpy.empty(len(values), dtype=object)
        found[:] = values
        return found, is_open
    kind = numbers.Integral if dtype.kind in "iu" else numbers.Real if dtype.kind == "f" else numpy.datetime64
    if not all(one is None or isinstance(one, kind) for one in ends):
        return None
    try:
        found = numpy.array([numpy.zeros((), dtype)[()] if one is None else one for one in ends]).astype(dtype)
    except OverflowError:
        return None
    is_same = all(one is None or stored == one for one, stored in zip(ends, found))
    return (found, is_open) if is_same else None
