"""Counts, sums, means and extremes of cells, which are read once, part by part: ``query.agg(["count", "max"])[10:20]``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple, Union

from . import _streams, _subscripts
from ._errors import UsageError

if TYPE_CHECKING:
    import numpy

    from ._queries import Query
    from ._subscripts import Range

#: Operations for each attribute, or by its name.
Wanted = Union[str, Sequence[str], Mapping[str, Union[str, Sequence[str]]]]

_OPERATIONS = ("count", "null_count", "sum", "mean", "min", "max")


class Aggregation:
    """What a query computes of the cells that a subscript selects; ``query.agg(...)`` makes one."""

    def __init__(self, query: "Query", aggs: Wanted) -> None:
        self._query = query
        several = aggs if isinstance(aggs, Mapping) else {name: aggs for name in query._attributes}
        self._wanted = {name: _operations(query, name, one) for name, one in several.items()}

    def __getitem__(self, key: Any) -> Any:
        """Computes the results of the cells that ``array[key]`` selects: a value, if there is one operation of one
        attribute; otherwise a dictionary by operation, by attribute, or of both."""
        return self._of(_subscripts.half_open(self._query._array, key)[0])

    @property
    def multi_index(self) -> "_OfRanges":
        """The same of cells of several ranges, both ends included."""
        return _OfRanges(self)

    def label_index(self, labels: Sequence[str]) -> "_OfRanges":
        """The same of cells by dimension labels."""
        return _OfRanges(self, labels)

    @property
    def df(self) -> Any:
        """Is not there, as in TileDB-Py: results are no table of cells."""
        raise NotImplementedError("results are no table of cells: agg(...)[...] or agg(...).multi_index[...] returns them")

    def _of(self, ranges: Sequence[Sequence["Range"]]) -> Any:
        totals = {name: _Total(self._query, name, wanted) for name, wanted in self._wanted.items()}
        for columns in _streams.columns(self._query, ranges, list(totals)):
            for name, column in columns.items():
                totals[name].add(column)
        found = {name: {one: totals[name].result(one) for one in wanted} for name, wanted in self._wanted.items()}
        if len(found) != 1:
            return found
        (of_one,) = found.values()
        return next(iter(of_one.values())) if len(of_one) == 1 else of_one

    def __repr__(self) -> str:
        listed = "; ".join(f"{', '.join(wanted)} of {name}" for name, wanted in self._wanted.items())
        return f"<tilefs.Aggregation of {self._query._array.uri!r}: {listed}>"


class _OfRanges:
    def __init__(self, aggregation: Aggregation, labels: Sequence[str] = ()) -> None:
        self._aggregation = aggregation
        self._labels = labels

    def __getitem__(self, key: Any) -> Any:
        query = self._aggregation._query
        if self._labels:
            return self._aggregation._of(query.label_index(self._labels)._ranges(key)[0])
        nothing: List[List["Range"]] = [[] for _ in query._array.dimensions]
        return self._aggregation._of(nothing if _subscripts.is_nothing(key) else _subscripts.closed(query._array, key))


def _operations(query: "Query", name: str, given: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    """Returns the operations on a field.

    :raises UsageError: if there are no such operations, or they need other values than the field has
    """
    wanted = (given,) if isinstance(given, str) else tuple(given)
    unknown = [one for one in wanted if one not in _OPERATIONS]
    if unknown or not wanted:
        raise UsageError(f"agg computes {', '.join(_OPERATIONS)}, not {unknown[0] if unknown else 'nothing'!r}")
    array = query._array
    is_dimension = name not in array.attributes and any(one.name == name for one in array.dimensions)
    if is_dimension:
        kind, is_single, labels = array.dim(name).dtype.kind, True, None
    else:
        attribute = array.attr(name)
        kind, labels = attribute.dtype.kind, attribute.enumeration
        is_single = not attribute._has_several and not attribute._has_numbers
    for one in wanted:
        if one in ("sum", "mean") and (not is_single or labels is not None or kind not in "iufb"):
            raise UsageError(f"{name} has no {one}: its cells are no numbers")
        if one in ("min", "max") and not is_single:
            raise UsageError(f"{name} has no {one}: its cells have several values")
        if one in ("min", "max") and labels is not None and not array.enum(labels).ordered:
            raise UsageError(f"{name} has no {one}: its labels have no order")
    return wanted


class _Total:
    """What is known of the cells of a field that were read so far."""

    def __init__(self, query: "Query", name: str, wanted: Sequence[str]) -> None:
        self._attribute = query._array.attributes.get(name)
        self._query = query
        self._needs_sum = "sum" in wanted or "mean" in wanted
        self._needs_ends = "min" in wanted or "max" in wanted
        dtype = query._array.dim(name).dtype if self._attribute is None else self._attribute.dtype
        self._has_floats = dtype.kind == "f"
        self._has_labels = self._attribute is not None and self._attribute.enumeration is not None
        self._count = self._nulls = 0
        self._sum: Any = 0.0 if self._has_floats else 0
        self._ends: List[Any] = []

    def add(self, column: Any) -> None:
        """Adds a part of the column."""
        import numpy

        self._count += len(column)
        if not isinstance(column, numpy.ndarray):
            # Text of Arrow.
            self._nulls += column.null_count
            present = column.drop_null().to_pylist() if self._needs_ends else []
        elif column.dtype == object:
            present = [one for one in column if one is not None]
            self._nulls += len(column) - len(present)
        else:
            present = self._without_nulls(column)
            self._nulls += len(column) - len(present)
            if self._needs_sum and len(present):
                self._sum = _sum(self._sum, present)
        if self._needs_ends and len(present):
            self._ends += _least_and_greatest(present)
            self._ends = [min(self._ends), max(self._ends)]

    def _without_nulls(self, column: Any) -> Any:
        from ._frames import known_codes

        import numpy

        if self._has_labels and self._attribute is not None:
            column = known_codes(self._query._array, self._attribute, column)
        if isinstance(column, numpy.ma.MaskedArray):
            nulls = numpy.ma.getmaskarray(column)
            # Cells of several numbers have an axis for these.
            column = numpy.ma.getdata(column)[~nulls.any(axis=tuple(range(1, nulls.ndim)))]
        return column

    def result(self, operation: str) -> Any:
        """Returns the result of all cells. Without any, a sum is 0, and other results are NaN or, of integers, ``None``; so is
        the sum of an attribute that can be null."""
        if operation == "count":
            return self._count
        if operation == "null_count":
            return self._nulls
        present, nothing = self._count - self._nulls, math.nan if self._has_floats else None
        is_nullable = self._attribute is not None and self._attribute.nullable
        if present == 0 and is_nullable:
            return nothing
        if operation == "sum":
            return self._sum
        if operation == "mean":
            return self._sum / present if present else math.nan
        if not self._ends:
            return nothing
        found = self._ends[operation == "max"]
        if self._has_labels and self._attribute is not None:
            return self._query._array.enum(self._attribute.enumeration or "").values()[found]
        if isinstance(found, bytes) and self._attribute is not None and self._attribute.datatype == "STRING_UTF8":
            return found.decode("utf-8", "replace")
        return found


def _sum(before: Any, values: "numpy.ndarray[Any, Any]") -> Any:
    """Returns a sum, which is exact for integers. Floats are added one after the other, as in TileDB and in Python."""
    import numpy

    if values.dtype.kind == "f":
        return float(numpy.add.accumulate(numpy.concatenate([[before], values]), dtype="f8")[-1])
    if values.dtype.itemsize < 8:
        return before + int(values.sum(dtype="i8"))
    # The halves of integers of 64 bits cannot overflow in a part.
    low = values & numpy.array(0xFFFFFFFF, dtype=values.dtype)
    return before + (int((values >> numpy.array(32, dtype=values.dtype)).sum()) << 32) + int(low.sum())


def _least_and_greatest(values: Any) -> List[Any]:
    """Returns the least and the greatest of values; NaN and "not a time" are neither, as far as there are others."""
    import numpy

    if isinstance(values, list):
        return [min(values), max(values)]
    if values.dtype.kind in "mM":
        values = values[~numpy.isnat(values)]
        return [values.min(), values.max()] if len(values) else []
    if values.dtype.kind == "f":
        numbers = values[~numpy.isnan(values)]
        return [float(numbers.min()), float(numbers.max())] if len(numbers) else []
    if values.dtype.kind in "SV":
        return _least_and_greatest(values.tolist())
    return [values.min().item(), values.max().item()]


def unique(query: "Query", names: Sequence[str]) -> Dict[str, Any]:
    """Returns the distinct values of columns, in order."""
    import numpy

    found: Dict[str, Any] = {}
    for columns in _streams.columns(query, [[(None, None)]] * query._array.ndim, names):
        for name, column in columns.items():
            if not isinstance(column, numpy.ndarray):
                column = numpy.array([one.encode() if isinstance(one, str) else one for one in column.unique().to_pylist()], dtype=object)
            known = [found[name]] if name in found else []
            found[name] = numpy.unique(numpy.concatenate([*known, column]))
    return found
