"""Converts NumPy's indices to positions along each axis: basic ones, and lists of positions and masks."""

from __future__ import annotations

import math
import operator
from typing import Any, List, Sequence, Tuple

Axis = Tuple[int, int, int]


def resolve(key: Any, shape: Sequence[int]) -> Tuple[List[Axis], Tuple[Any, ...]]:
    """Returns the first position, the step and the count that ``key`` selects along each axis, and the index that gives
    the result its shape: it removes the axes of integers and inserts one for each ``None``."""
    keys = key if isinstance(key, tuple) else (key,)
    given = sum(1 for one in keys if one is not None and one is not Ellipsis)
    if given > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {given} were indexed")
    if sum(1 for one in keys if one is Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(one is Ellipsis for one in keys):
        keys += (Ellipsis,)
    axes: List[Axis] = []
    shaping: List[Any] = []
    for one in keys:
        if one is None:
            shaping.append(None)
        elif one is Ellipsis:
            rest = shape[len(axes) : len(axes) + len(shape) - given]
            axes += [(0, 1, size) for size in rest]
            shaping += [slice(None)] * len(rest)
        elif isinstance(one, slice):
            axes.append(_range(one, shape[len(axes)]))
            shaping.append(slice(None))
        else:
            axes.append((_position(one, len(axes), shape[len(axes)]), 1, 1))
            shaping.append(0)
    return axes, tuple(shaping)


def is_advanced(key: Any) -> bool:
    """Returns whether an index has lists of positions or masks, which NumPy calls advanced."""
    keys = key if isinstance(key, tuple) else (key,)
    return any(isinstance(one, (list, range)) or getattr(one, "ndim", 0) > 0 or _is_truth(one) for one in keys)


def resolve_advanced(key: Any, shape: Sequence[int]) -> Tuple[List[List[Axis]], Tuple[Any, ...]]:
    """Returns for each axis the ranges of positions that have to be read, and the index that selects from these cells what
    NumPy would select from all."""
    keys = _with_positions(key, shape)
    axes: List[List[Axis]] = []
    index: List[Any] = []
    for one in keys:
        if one is None:
            index.append(None)
        elif isinstance(one, slice):
            axes.append([_range(one, shape[len(axes)])])
            index.append(slice(None))
        elif getattr(one, "ndim", 0) > 0:
            ranges, places = _runs(one, len(axes), shape[len(axes)])
            axes.append(ranges)
            index.append(places)
        else:
            axes.append([(_position(one, len(axes), shape[len(axes)]), 1, 1)])
            index.append(0)
    return axes, tuple(index)


def cells_of(axes: Sequence[Sequence[Axis]], index: Tuple[Any, ...]) -> int:
    """Returns how many cells an index selects from those that are read."""
    import numpy

    arrays = [one for one in index if getattr(one, "ndim", 0)]
    along = [one for one in index if one is not None]
    others = math.prod(sum(one[2] for one in axis) for axis, one in zip(axes, along) if isinstance(one, slice))
    return others * math.prod(numpy.broadcast_shapes(*(one.shape for one in arrays)))


def _with_positions(key: Any, shape: Sequence[int]) -> List[Any]:
    """Returns an index with arrays of positions in place of lists and masks, and slices in place of an ellipsis."""
    given: List[Any] = [one if one is None or one is Ellipsis or isinstance(one, slice) else _array(one) for one in (key if isinstance(key, tuple) else (key,))]
    # A mask is for as many axes as it has.
    widths = [0 if one is None or one is Ellipsis else one.ndim if _is_mask(one) else 1 for one in given]
    if sum(widths) > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {sum(widths)} were indexed")
    ellipses = sum(1 for one in given if one is Ellipsis)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not ellipses:
        given, widths = [*given, Ellipsis], [*widths, 0]
    keys: List[Any] = []
    axis = 0
    for one, width in zip(given, widths):
        if one is Ellipsis:
            width = len(shape) - sum(widths)
            keys += [slice(None)] * width
        elif _is_mask(one):
            covered = tuple(shape[axis : axis + width])
            if one.shape != covered:
                raise IndexError(f"a mask of shape {one.shape} does not fit axes of lengths {covered}")
            keys += list(one.nonzero())
        else:
            keys.append(one)
        axis += width
    return keys


def _array(key: Any) -> Any:
    """Returns a list of positions or a mask as an array; a single position as it is."""
    import numpy

    found = numpy.asarray(key)
    if found.dtype.kind == "b" and found.ndim == 0:
        raise IndexError("a mask has an axis: True and False select no cells")
    # An empty list has no type of its own.
    found = found.astype("int64") if isinstance(key, list) and found.size == 0 else found
    return found if found.ndim else key


def _is_mask(key: Any) -> bool:
    return getattr(key, "ndim", 0) > 0 and key.dtype.kind == "b"


def _runs(positions: Any, axis: int, size: int) -> Tuple[List[Axis], Any]:
    """Returns ranges of positions along an axis, ascending, and where each of the given ones is among them."""
    import numpy

    if positions.dtype.kind not in "iu":
        raise IndexError(f"arrays used as indices have integers or booleans, not {positions.dtype}")
    wrong = (positions < -size) | (positions >= size)
    if wrong.any():
        raise IndexError(f"index {positions[wrong][0]} is out of bounds for axis {axis} with size {size}")
    whole = positions.astype("int64")
    found, places = numpy.unique(numpy.where(whole < 0, whole + size, whole), return_inverse=True)
    if not len(found):
        return [(0, 1, 0)], places.reshape(positions.shape).astype("int64")
    cuts = numpy.flatnonzero(numpy.diff(found) != 1) + 1
    runs = [(int(run[0]), 1, len(run)) for run in numpy.split(found, cuts)]
    return runs, places.reshape(positions.shape)


def _is_truth(key: Any) -> bool:
    return isinstance(key, bool) or type(key).__name__ in ("bool_", "bool")


def _range(key: slice, size: int) -> Axis:
    positions = range(*key.indices(size))
    # A range over a huge domain may have more positions than len() can return.
    span = positions.stop - positions.start
    count = max(0, -(-span // positions.step))
    if count <= 1:
        # With at most one position, the step is unused and may be larger than the domain.
        return (positions.start if count else 0, 1, count)
    return (positions.start, positions.step, count)


def _position(key: Any, axis: int, size: int) -> int:
    try:
        if _is_truth(key):
            raise TypeError
        position = operator.index(key)
    except TypeError:
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`) and None are valid indices, not {type(key).__name__}: "
            "read a box and index the result"
        ) from None
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {size}")
    return position % size if size else position
