"""Cells part by part, in memory that does not grow with the selection: batches of rows and pieces of boxes for which a
condition holds, and the parts that ``return_incomplete=True`` gives."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Sequence

from . import _conditions, _frames, _subscripts
from ._errors import of_streams

if TYPE_CHECKING:
    import pyarrow

    from ._arrays import Array
    from ._indices import Axis
    from ._queries import Query
    from ._rows import Rows
    from ._subscripts import Range

#: The most cells of a piece of a box, unless one tile has more.
CELLS = 1 << 20
# How many times more cells a tile may have before it is cut, too.
_CELLS_OF_TILES = 16
# The most rows of a part of a table that had to be put in order as a whole.
_ROWS = 1 << 20


def batches(query: "Query", rows: "Rows", names: Sequence[str], count: int) -> "Iterator[pyarrow.RecordBatch]":
    """Returns batches of the rows for which the condition of a query holds, with the first ``count`` of their columns,
    which have these names."""
    import pyarrow

    reader = pyarrow.RecordBatchReader.from_stream(rows)
    condition = query._condition
    tested = [] if condition is None else sorted(_conditions.fields_of(condition))
    places = {name: list(names).index(name) for name in tested}
    with of_streams():
        for batch in reader:
            chosen = batch.select(range(count))
            if condition is None:
                yield chosen
                continue
            columns = {name: query._tested(name, batch.column(places[name])) for name in tested}
            holds = _conditions.evaluate(condition, columns, batch.num_rows)
            if holds.any():
                yield chosen.filter(pyarrow.array(holds))


def columns(query: "Query", ranges: Sequence[Sequence["Range"]], names: Sequence[str]) -> Iterator[Dict[str, Any]]:
    """Returns the columns of these names, part by part, of the cells of a query in these ranges for which its condition
    holds: arrays of NumPy, masked where cells may be null, and text of rows as arrays of Arrow."""
    array = query._array
    if any(not one for one in ranges):
        return
    if not array.is_sparse:
        for axes in pieces(array, _subscripts.axes(array, ranges)):
            yield query._held(axes, names)
        return
    wanted = query._pushed_down(ranges)
    if any(not one for one in wanted):
        return
    tested = sorted(_conditions.fields_of(query._condition)) if query._condition else []
    read = list(dict.fromkeys([*names, *tested]))
    for batch in batches(query, query._rows_of(wanted, read, "array", True), read, len(names)):
        yield {name: query._tested(name, batch.column(number)) for number, name in enumerate(names)}


def pieces(array: "Array", axes: "Sequence[Sequence[Axis]]", most: int = CELLS) -> "Iterator[List[List[Axis]]]":
    """Cuts a box of a dense array, given by positions along each axis, into pieces of at most ``most`` cells, of whole
    tiles unless these are much larger."""
    counts = [sum(count for _, _, count in one) for one in axes]
    extents = [dimension._extent_in_cells or length for dimension, length in zip(array.dimensions, array.shape)]
    sizes = list(counts)
    for least, limit in ((extents, most), ([1] * len(extents), most * _CELLS_OF_TILES)):
        for number, extent in enumerate(least):
            others = math.prod(sizes) // max(sizes[number], 1)
            if others * sizes[number] > limit:
                fit = max(limit // max(others, 1), 1)
                sizes[number] = min(sizes[number], max(fit // extent * extent, extent))
    before = [dimension._cells_before for dimension in array.dimensions]
    cut = [list(_cut(one, size, first)) for one, size, first in zip(axes, sizes, before)]
    for piece in itertools.product(*cut):
        yield [[one] for one in piece]


def _cut(ranges: "Sequence[Axis]", size: int, before: int) -> "Iterator[Axis]":
    """Cuts ranges of positions where a multiple of ``size`` is, counted from ``before`` cells before the first."""
    for start, step, count in ranges:
        stop = start + count
        while start < stop:
            end = min(((start + before) // size + 1) * size - before, stop)
            yield start, step, end - start
            start = end


class Parts:
    """The results of a query, part by part: tables, DataFrames or dictionaries. Each loop reads them again.

    >>> parts = tilefs.open("cells.tdb").query(attrs=["score"], return_incomplete=True).df[:]
    >>> print(sum(len(frame) for frame in parts))
    999
    """

    def __init__(
        self,
        query: "Query",
        ranges: Sequence[Sequence["Range"]],
        shown: "Callable[[pyarrow.Table], Any]",
        *,
        as_stored: bool = False,
    ) -> None:
        self._query = query
        self._as_stored = as_stored
        self._ranges = ranges
        self._shown = shown

    def __iter__(self) -> Iterator[Any]:
        query, is_empty = self._query, True
        for table in self._tables():
            if table.num_rows:
                is_empty = False
                yield self._shown(table)
        if is_empty:
            yield self._shown(query._table([[]] * query._array.ndim, as_stored=self._as_stored))

    def _tables(self) -> "Iterator[pyarrow.Table]":
        import pyarrow

        query = self._query
        ranges = query._pushed_down(self._ranges)
        if query._is_sorted or query._has_repeats(self._ranges) or any(not one for one in ranges):
            table = query._table(self._ranges, as_stored=self._as_stored)
            yield from (table.slice(first, _ROWS) for first in range(0, table.num_rows, _ROWS))
            return
        wanted = [*query._dimensions, *query._attributes]
        tested = sorted(_conditions.fields_of(query._condition)) if query._condition else []
        read = list(dict.fromkeys([*wanted, *tested]))
        rows = query._rows_of(ranges, read, "row" if query.order == "C" else "array", self._as_stored)
        for batch in batches(query, rows, read, len(wanted)):
            yield pyarrow.Table.from_batches([batch])

    def __repr__(self) -> str:
        return f"<tilefs.Parts of {self._query._array.uri!r}: iterate over it to read them>"


def table_of(query: "Query", rows: "Rows", names: Sequence[str], count: int) -> "pyarrow.Table":
    """Returns the rows for which the condition of a query holds as a table of the first ``count`` columns."""
    import pyarrow

    if query._condition is None:
        table = rows.to_arrow().select(range(count))
        return table if table.num_rows else _frames.no_rows(query._array, names[:count], table.schema)
    kept = list(batches(query, rows, names, count))
    whole = pyarrow.schema(rows)
    schema = pyarrow.schema([whole.field(number) for number in range(count)], whole.metadata)
    return pyarrow.Table.from_batches(kept, schema) if kept else _frames.no_rows(query._array, names[:count], schema)
