"""Parts of tables: which of them can have rows for which a condition holds, by the bounds that writers recorded for tiles."""

from __future__ import annotations

from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _conditions
from ._conditions import Comparison, Condition

if TYPE_CHECKING:
    import numpy

    from . import _tilefs
    from ._arrays import Array

#: The most rows of a part whose bounds are compared with a condition, unless one tile has more.
ROWS = 1 << 15

# Lower and upper bounds of each part, and of which parts they are known.
_Bounds = Optional[Tuple[Any, Any, "numpy.ndarray[Any, Any]"]]


def possible(rows: "_tilefs.Rows", array: "Array", condition: Condition, most: int = ROWS) -> Optional[List[int]]:
    """Returns the numbers of the parts of at most ``most`` rows that the condition does not rule out; ``None`` if it rules
    out none."""
    import numpy

    fields = {name: _bounds(rows, array, name, most) for name in sorted(_conditions.fields_of(condition))}
    known = {name: bounds for name, bounds in fields.items() if bounds is not None}
    if not known:
        return None
    count = len(next(iter(known.values()))[2])
    kept = _kept(condition, known, count)
    return None if kept.all() else numpy.flatnonzero(kept).tolist()


def ends(rows: "_tilefs.Rows", array: "Array", dimension: int, most: int) -> Optional[Tuple[List[Any], List[Any]]]:
    """Returns the lowest and the highest coordinate of each part of at most ``most`` rows, as far as all are known."""
    found = rows.part_bounds(most, True, dimension)
    if found is None or any(one is None for one in found):
        return None
    dtype = array.dimensions[dimension].dtype
    return [_value(one[0], dtype) for one in found if one], [_value(one[1], dtype) for one in found if one]


def _bounds(rows: "_tilefs.Rows", array: "Array", name: str, most: int) -> _Bounds:
    """Returns the lower and the upper bounds of the values of a field in each part, and of which parts they are known."""
    import numpy

    attribute = array.attributes.get(name)
    names = list(array.attributes) if attribute is not None else [one.name for one in array.dimensions]
    dtype = array.dim(name).dtype if attribute is None else attribute.dtype
    found = rows.part_bounds(most, attribute is None, names.index(name))
    if found is None:
        return None
    is_known = numpy.array([one is not None for one in found], dtype=bool)
    if not is_known.any():
        return None
    nothing = b"" if dtype == object or dtype.kind in "SV" else bytes(dtype.itemsize)
    low, high = ([_value(nothing if one is None else one[end], dtype) for one in found] for end in (0, 1))
    kind = object if dtype == object or dtype.kind in "SV" else "int64" if dtype.kind in "mM" else dtype
    return numpy.array(low).astype(kind), numpy.array(high).astype(kind), is_known


def _value(stored: bytes, dtype: "numpy.dtype[Any]") -> Any:
    import numpy

    return stored if dtype == object or dtype.kind in "SV" else numpy.frombuffer(stored, dtype)[0]


def _kept(condition: Condition, bounds: Dict[str, Any], count: int) -> "numpy.ndarray[Any, Any]":
    """Returns which parts the condition does not rule out."""
    import numpy

    if isinstance(condition, Comparison):
        known = bounds.get(condition.field.name)
        found = None if known is None else _compared(condition, known[0], known[1])
        return numpy.full(count, True) if known is None or found is None else found | ~known[2]
    kept = numpy.full(count, condition.needs_all)
    for one in condition.conditions:
        kept = kept & _kept(one, bounds, count) if condition.needs_all else kept | _kept(one, bounds, count)
    return kept


def _compared(comparison: Comparison, low: Any, high: Any) -> "Optional[numpy.ndarray[Any, Any]]":
    """Returns which parts can have values for which the comparison holds; ``None`` if bounds do not tell."""
    field, operator, value = comparison.field, comparison.operator, comparison.value
    if value is None or operator not in ("<", "<=", ">", ">=", "==", "in"):
        return None
    values: Sequence[Any] = value if operator == "in" else [value]
    if field.labels is not None:
        if operator not in ("==", "in"):
            return None
        labels = field.labels.tolist()
        values = [labels.index(one) for one in values if one in labels]
    if operator in ("==", "in"):
        found: "numpy.ndarray[Any, Any]" = low != low
        for one in values:
            found = found | ((low <= one) & (high >= one)).astype(bool)
        return found
    end, compare = _ENDS[operator]
    kept: "numpy.ndarray[Any, Any]" = compare(low if end == 0 else high, values[0]).astype(bool)
    return kept


# Of these, the lower or the upper bound decides.
_ENDS: "Dict[str, Tuple[int, Callable[[Any, Any], Any]]]" = {"<": (0, lt), "<=": (0, le), ">": (1, gt), ">=": (1, ge)}
