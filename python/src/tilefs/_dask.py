"""Arrays and tables of dask: each worker opens the array by its address, and reads the tiles or rows of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from . import _conditions, _frames, _parts, _streams
from ._errors import UsageError

if TYPE_CHECKING:
    import pandas

    from ._arrays import Array
    from ._attributes import Attribute
    from ._rows import Rows

#: The most rows of a partition, unless one tile has more.
ROWS = 1 << 20


def array_of(attribute: "Attribute", chunks: Any) -> Any:
    """Returns an attribute as an array of dask; :meth:`Attribute.to_dask_array` documents the parameters."""
    import dask.array
    import numpy
    from dask.base import tokenize

    array = attribute._array
    tiles = _tiles(array) + tuple((length,) for length in attribute._cell_shape)
    # Of objects, nobody knows how large they are: those of text are about this long.
    dtype = numpy.dtype("S32") if attribute.dtype == object else attribute._value_dtype
    if chunks == "tiles":
        chunks = tiles
    chunks = dask.array.core.normalize_chunks(chunks, attribute.shape, dtype=dtype, previous_chunks=tiles)  # pyright: ignore[reportAttributeAccessIssue]
    empty = numpy.empty((0,) * attribute.ndim, dtype=attribute._value_dtype)
    return dask.array.from_array(
        _Values(attribute),
        chunks=chunks,
        name=f"tilefs-{tokenize(array.uri, array.timestamp_range, attribute.name, chunks)}",
        lock=False,
        asarray=False,
        fancy=False,
        meta=numpy.ma.masked_array(empty) if attribute.nullable and attribute.dtype != object else empty,
    )


class _Values:
    """The values of an attribute with the type that they have, where cells of several numbers have an axis for these."""

    def __init__(self, attribute: "Attribute") -> None:
        self._attribute = attribute
        self.shape, self.ndim, self.dtype = attribute.shape, attribute.ndim, attribute._value_dtype

    def __getitem__(self, key: Any) -> Any:
        return self._attribute[key]

    def __reduce__(self) -> Any:
        return _Values, (self._attribute,)


def _tiles(array: "Array") -> Tuple[Tuple[int, ...], ...]:
    """Returns the lengths of the tiles along each axis. The first one is shorter if the array begins within it."""
    found = []
    for dimension, length in zip(array.dimensions, array.shape):
        extent = dimension._extent_in_cells or length
        first = extent - dimension._cells_before
        lengths = [min(first, length)] if length else [0]
        rest = length - lengths[0]
        found.append((*lengths, *[extent] * (rest // extent), *([rest % extent] if rest % extent else [])))
    return tuple(found)


def frame_of(rows: "Rows", condition: Optional[str], rows_of_partition: int) -> Any:
    """Returns rows as a DataFrame of dask; :meth:`Rows.to_dask_dataframe` documents the parameters."""
    import dask.config
    import dask.dataframe

    if rows_of_partition < 1:
        raise UsageError(f"a partition has at least one row, not {rows_of_partition}")
    array = rows._array
    numbers = list(range(len(rows._rows.part_starts(rows_of_partition))))
    if condition is not None:
        parsed = array.query(cond=condition)._condition
        possible = None if parsed is None else _parts.possible(rows._rows, array, parsed, rows_of_partition)
        # There is at least one partition.
        numbers = numbers if possible is None else possible or numbers[:1]
    index, divisions = _divisions(rows, rows_of_partition, numbers)
    names = list(rows._columns or [*(one.name for one in array.dimensions), *array.attributes])
    read = _Partition(rows, condition, rows_of_partition, index, [name for name in names if name != index])
    # Otherwise dask makes a text of each object: of lists, bytes and dates, too.
    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_map(
            read, numbers, meta=read.nothing(), divisions=divisions, label="tilefs-rows", enforce_metadata=True
        )


def _divisions(rows: "Rows", most: int, numbers: Sequence[int]) -> Tuple[Optional[str], Optional[Tuple[Any, ...]]]:
    """Returns the dimension that is the index, and the lowest coordinate of each of these partitions and the highest of the
    last one, if the rows are ordered by the dimension."""
    array = rows._array
    # Along a Hilbert curve, and where coordinates are rounded, neighbours are in any order.
    if array.ndim != 1 or array.schema.cell_order not in ("row-major", "col-major") or array.dimensions[0].dtype == object:
        return None, None
    name = array.dimensions[0].name
    if rows._columns is not None and name not in rows._columns:
        return None, None
    ends = _parts.ends(rows._rows, array, 0, most)
    if ends is None or not ends[0] or any(not high < low for high, low in zip(ends[1], ends[0][1:])):
        return name, None
    import pandas

    found = [*(ends[0][number] for number in numbers), ends[1][numbers[-1]]]
    return name, tuple(pandas.Timestamp(one) if array.dimensions[0].dtype.kind == "M" else one.item() for one in found)


class _Partition:
    """Reads partitions of a table. Dask pickles it, and asks it for fewer columns if others are not used."""

    def __init__(self, rows: "Rows", condition: Optional[str], most: int, index: Optional[str], columns: Sequence[str]) -> None:
        self._rows, self._condition, self._most = rows, condition, most
        self._index = index
        self._columns = list(columns)

    def __call__(self, number: int, columns: Optional[Sequence[str]] = None) -> "pandas.DataFrame":
        return self._read([number], self._columns if columns is None else columns)

    def nothing(self) -> "pandas.DataFrame":
        """Returns a table with all columns and no rows."""
        return self._read([], self._columns)

    def _read(self, parts: List[int], columns: Sequence[str]) -> "pandas.DataFrame":
        array, index = self._rows._array, [] if self._index is None else [self._index]
        names = [*index, *columns]
        query = array.query(cond=self._condition)
        tested = sorted(_conditions.fields_of(query._condition)) if query._condition is not None else []
        # Without columns, a table would not have its number of rows.
        read = list(dict.fromkeys([*names, *tested])) or [array.dimensions[0].name]
        stored = array._columns_of_tables()
        rows = self._rows._with_columns([stored[name] for name in read])._of_parts(self._most, parts)
        shown = read[: len(names) or 1]
        # Dask does not know what its objects are: it cannot write days and bytes as Parquet unless their type says it.
        table = _streams.table_of(query, rows, read, len(shown))
        table = table.select(range(len(shown))).rename_columns(shown)
        frame = _frames.typed(_frames.frame(array, table, keeps_arrow=True), array.metadata)
        return frame.set_index(index[0]) if index else frame[list(columns)]  # pyright: ignore[reportReturnType]

    def __dask_tokenize__(self) -> Any:
        array = self._rows._array
        chosen = (self._rows._selection, self._rows._order, self._condition, self._most, self._index, self._columns)
        return (array.uri, array.timestamp_range, *chosen)
