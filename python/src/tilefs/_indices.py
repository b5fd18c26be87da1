"""Converts NumPy's basic indices to positions along each axis."""

from __future__ import annotations

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
    # In NumPy, a boolean is a mask.
    if isinstance(key, bool) or type(key).__name__ in ("bool_", "bool"):
        raise IndexError("masks are not supported: read a box and index the result")
    try:
        position = operator.index(key)
    except TypeError:
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`) and None are valid indices, not {type(key).__name__}: "
            "read a box and index the result"
        ) from None
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {size}")
    return position % size if size else position
