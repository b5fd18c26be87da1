"""Cells by coordinates and conditions, as TileDB-Py reads them: ``array.query(attrs=["a"], cond="a > 3")[10:20]``.

Cells of a dense array are boxes by attribute; those of a sparse one are rows, by attribute and dimension.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _aggregates, _conditions, _frames, _parts, _repeats, _streams, _subscripts
from ._conditions import Field
from ._errors import Error, UsageError
from ._subscripts import Range

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from ._arrays import Array
    from ._attributes import Attribute
    from ._rows import Rows
    from ._schema import Dimension

# Cells by the names of attributes and dimensions.
_Cells = Dict[str, Any]

_ORDERS = ("C", "F", "G", "U")


class Query:
    """Which columns of an array are read, of which cells, and in which order; ``array.query(...)`` makes one. A
    subscript selects coordinates and reads: ``query[10:20]``, ``query.multi_index[[3, 7]]``, ``query.df[:]``.

    >>> query = tilefs.open("cells.tdb").query(attrs=["state"], dims=["id"])
    >>> query.multi_index[[3, slice(9, 12)]]
    {'id': array([ 3,  9, 12]), 'state': array(['off', 'off', 'on'], dtype='<U3')}
    """

    def __init__(
        self,
        array: "Array",
        *,
        attrs: Optional[Sequence[Union[str, int]]] = None,
        cond: Optional[str] = None,
        dims: Union[bool, Sequence[str], None] = None,
        coords: Optional[bool] = None,
        index_col: Union[bool, Sequence[str], None] = True,
        order: Optional[str] = None,
        return_arrow: bool = False,
        return_incomplete: bool = False,
        has_labels: bool = False,
    ) -> None:
        self._array = array
        attrs = [attrs] if isinstance(attrs, str) else attrs
        if attrs is None and array._view is not None:
            attrs = [array._view]
        dims = [dims] if isinstance(dims, str) else dims
        #: The condition, as it was given.
        self.cond = cond
        #: ``"C"``, ``"F"``, ``"G"`` or ``"U"``.
        self.order = order or ("U" if array.is_sparse else "C")
        if self.order not in _ORDERS or (self.order == "U" and not array.is_sparse):
            raise ValueError(
                f"order is 'C' (row-major), 'F' (column-major), 'G' (the array's own) or, for sparse arrays, 'U' (any), not {order!r}"
            )
        self._attributes = list(dict.fromkeys(array.attr(one).name for one in (array.attributes if attrs is None else attrs)))
        self._dimensions = _chosen_dimensions(array, dims, coords)
        self._index = index_col
        self._is_arrow = return_arrow
        #: Whether ``multi_index`` and ``df`` return their results part by part.
        self.return_incomplete = return_incomplete
        if return_incomplete and not array.is_sparse:
            raise UsageError(f"{array.uri} is dense: return_incomplete=True is for rows of sparse arrays")
        # `array[...]` has labels, and `array.query()[...]` their numbers.
        self._has_labels = has_labels
        self._condition = _conditions.parse(cond, _Fields(array)) if cond else None

    @property
    def attrs(self) -> List[str]:
        """The names of the attributes that are read."""
        return list(self._attributes)

    @property
    def dims(self) -> List[str]:
        """The names of the dimensions whose coordinates are read."""
        return list(self._dimensions)

    def __getitem__(self, key: Any) -> Any:
        """Returns cells as ``array[key]`` does: a dictionary of arrays, or the values themselves if a dense array has one
        attribute without a name."""
        if self._is_arrow:
            raise UsageError("return_arrow=True is for query(...).df[...]")
        ranges, shaping = _subscripts.half_open(self._array, key)
        if self._array.is_sparse:
            rows = self._shown(self._rows(ranges), self._has_labels)
            return {name: rows[name] for name in (*self._attributes, *self._dimensions)}
        boxes = self._shown(self._boxes(ranges), self._has_labels)
        if self.order != "G":
            # With an ellipsis, a single cell is an array without axes, as in TileDB-Py.
            boxes = {name: values[shaping + (Ellipsis,)] for name, values in boxes.items()}
        if self._array._view is not None and list(boxes) == [self._array._view]:
            return boxes[self._array._view]
        return boxes[""] if list(boxes) == [""] else boxes

    def agg(self, aggs: _aggregates.Wanted) -> "_aggregates.Aggregation":
        """Returns what computes sums, counts, means and extremes of the cells that a subscript selects. They are read once,
        part by part.

        >>> cells = tilefs.open("cells.tdb")
        >>> cells.query(attrs=["score"]).agg(["count", "min"])[0:300]
        {'count': 100, 'min': 0.0}

        :param aggs: ``"count"``, ``"null_count"``, ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``, or a list of these, of
            each attribute; or a mapping from names to these
        """
        return _aggregates.Aggregation(self, aggs)

    @property
    def multi_index(self) -> "MultiIndex":
        """Cells of several ranges for each dimension, both ends included."""
        return MultiIndex(self)

    @property
    def df(self) -> "Frames":
        """Cells as a DataFrame, of ranges as for :attr:`multi_index`."""
        return Frames(self)

    def to_arrow(self) -> "pyarrow.Table":
        """Returns the cells as a table of pyarrow."""
        return Frames(self)._table(slice(None))

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns the cells as a DataFrame."""
        frames = Frames(self)
        return frames._framed(frames._table(slice(None)))

    def to_polars(self) -> "polars.DataFrame":
        """Returns the cells as a DataFrame of Polars."""
        import polars

        return polars.from_arrow(self.to_arrow())  # type: ignore[return-value]

    def to_numpy(self) -> Any:
        """Returns the cells as arrays of NumPy."""
        return self[:]

    def head(self, count: int = 5) -> "pyarrow.Table":
        """Returns the first cells as a table of pyarrow. Of a sparse array, only what is needed for these is read; a dense one
        is read whole, so take a part of a large one, such as ``query().df[0:9]``."""
        import pyarrow

        if not self._array.is_sparse:
            return self.to_arrow().slice(0, max(0, count))
        found, left = [], max(0, count)
        for part in _streams.Parts(self, [[(None, None)]] * self._array.ndim, Frames(self)._named):
            found.append(part.slice(0, left))
            left -= found[-1].num_rows
            if not left:
                break
        return pyarrow.concat_tables(found)

    def label_index(self, labels: Sequence[str]) -> "LabelIndex":
        """Cells by dimension labels; see :meth:`Array.label_index`."""
        return LabelIndex(self, labels)

    def __repr__(self) -> str:
        return f"<tilefs.Query of {self._array.uri!r}: {self._text()}>; [...], .multi_index[...] and .df[...] read"

    def _text(self) -> str:
        where = f" where {self.cond}" if self.cond else ""
        return f"{', '.join((*self._dimensions, *self._attributes))}{where}, order {self.order!r}"

    def _names(self) -> List[str]:
        """Returns the names of all columns: dimensions first, each in the order of the schema."""
        attributes, dimensions = set(self._attributes), set(self._dimensions)
        return [
            *(one.name for one in self._array.dimensions if one.name in dimensions),
            *(name for name in self._array.attributes if name in attributes),
        ]

    def _shown(self, cells: _Cells, has_labels: bool) -> _Cells:
        """Returns cells with the types that TileDB-Py has."""
        attributes = self._array.attributes
        shown = {}
        for name, values in cells.items():
            attribute = attributes.get(name)
            if attribute is not None and has_labels:
                values = _frames.labelled(self._array, attribute, values)
            shown[name] = values if attribute is None else _as_in_tiledb_py(attribute, values)
        return shown

    def _boxes(self, ranges: Sequence[Sequence[Range]]) -> _Cells:
        """Returns the cells of a dense array: each axis has the positions of its ranges, in their order."""
        array = self._array
        axes = _subscripts.axes(array, ranges)
        shape = tuple(sum(count for _, _, count in one) for one in axes)
        kept = self._holds(axes, shape)
        boxes = _grids(array, axes, shape, self._dimensions)
        for name in self._attributes:
            attribute = array.attributes[name]
            values = attribute._read(axes)
            boxes[name] = values if kept is None else _filled(attribute, values, kept)
        return {name: self._ordered(values, axes) for name, values in boxes.items()}

    def _holds(self, axes: Sequence[Sequence[Tuple[int, int, int]]], shape: Tuple[int, ...]) -> Any:
        """Returns for which cells of a box the condition holds; ``None`` without a condition."""
        array = self._array
        if self._condition is None:
            return None
        names = _conditions.fields_of(self._condition)
        columns = {name: array.attributes[name]._read(axes) for name in names if name in array.attributes}
        columns.update(_grids(array, axes, shape, [name for name in names if name not in columns]))
        return _conditions.evaluate(self._condition, columns, math.prod(shape)).reshape(shape)

    def _held(self, axes: Sequence[Sequence[Tuple[int, int, int]]], names: Sequence[str]) -> _Cells:
        """Returns the cells of a box for which the condition holds, one after the other."""
        import numpy

        array = self._array
        shape = tuple(sum(count for _, _, count in one) for one in axes)
        kept = self._holds(axes, shape)
        columns = _grids(array, axes, shape, [name for name in names if name not in array.attributes])
        for name in names:
            if name in array.attributes:
                columns[name] = array.attributes[name]._read(axes)
        chosen = numpy.ones(shape, dtype=bool) if kept is None else kept
        return {name: columns[name][chosen] for name in names}

    def _ordered(self, values: Any, axes: Sequence[Sequence[Tuple[int, int, int]]]) -> Any:
        import numpy

        if self.order == "F":
            return values.copy(order="F")
        if self.order == "G":
            cells = values.reshape((-1, *values.shape[len(axes) :]))
            return cells[_global_order(self._array, axes)]
        return values if isinstance(values, numpy.ma.MaskedArray) else numpy.ascontiguousarray(values)

    def _rows(self, ranges: Sequence[Sequence[Range]]) -> _Cells:
        """Returns the rows of a sparse array, by column."""
        return self._columns(self._table(ranges, as_stored=True))

    def _columns(self, table: "pyarrow.Table") -> _Cells:
        """Returns the columns of a table of what is stored as arrays of NumPy."""
        array, columns = self._array, {}
        for number, name in enumerate((*self._dimensions, *self._attributes)):
            if name in array.attributes:
                columns[name] = _column(table.column(number), array.attributes[name])
            else:
                columns[name] = _coordinates(table.column(number), array.dim(name))
        return columns

    def _of_stored(self, table: "pyarrow.Table") -> _Cells:
        """Returns a table of what is stored, with names of fields, in the types of NumPy that subscripts have."""
        array, columns = self._array, {}
        for name in table.column_names:
            is_attribute = name in array.attributes
            columns[name] = _column(table.column(name), array.attributes[name]) if is_attribute else _coordinates(table.column(name), array.dim(name))
        return self._shown(columns, True)

    def _table(self, ranges: Sequence[Sequence[Range]], *, as_stored: bool = False) -> "pyarrow.Table":
        """Returns the rows of a sparse array as a table of the chosen columns, dimensions first, with what is stored or what
        it means. Rows that the condition leaves out take memory only while their batch is read."""
        import pyarrow

        array, given = self._array, ranges
        ranges = self._pushed_down(ranges)
        wanted = [*self._dimensions, *self._attributes]
        has_repeats = self._has_repeats(given)
        order = [one.name for one in array.dimensions] if self._is_sorted or has_repeats else []
        tested = sorted(_conditions.fields_of(self._condition)) if self._condition else []
        read = list(dict.fromkeys([*wanted, *order, *tested]))
        if not read:
            # A table without columns has no rows, but the condition may be wrong for other reasons.
            return pyarrow.table({})
        stored = array._columns_of_tables()
        if any(not one for one in ranges):
            table = _frames.no_rows(array, read, pyarrow.schema(array.read(columns=[stored[name] for name in read], as_stored=as_stored)))
        else:
            rows = self._rows_of(ranges, read, "row" if self.order == "C" else "array", as_stored)
            table = _streams.table_of(self, rows, read, len(wanted) if not order else len(read))
        if self._is_sorted and self.order == "F":
            table = table.sort_by([(stored[name], "ascending") for name in reversed(order)])
        columns = [_coordinates(table.column(stored[name]), array.dim(name)) for name in order]
        places = _repeats.order(array.dimensions, columns, given) if has_repeats else None
        if self._is_sorted and self.order == "G":
            places = _order_of_rows(array, columns)
        return (table if places is None else table.take(places)).select(range(len(wanted)))

    @property
    def _is_sorted(self) -> bool:
        """Whether rows have to be sorted after they were read. Fragments that may have the same cells are merged. Others are
        one after the other, in no order of the array."""
        schema = self._array.schema
        return self.order == "F" or self.order == "G" and schema.allows_duplicates and schema.cell_order != "hilbert"

    def _has_repeats(self, ranges: Sequence[Sequence[Range]]) -> bool:
        """Returns whether rows are read several times, or in the order of ranges."""
        return self.order in ("C", "F") and _repeats.may_repeat(self._array.dimensions, ranges)

    def _rows_of(self, ranges: Sequence[Sequence[Range]], names: Sequence[str], order: str, as_stored: bool) -> "Rows":
        """Returns the rows in these ranges, with columns of these names, without the parts that the condition rules out by
        the bounds of their tiles."""
        array, stored = self._array, self._array._columns_of_tables()
        rows = array.read(rows=_selection(array, ranges), columns=[stored[name] for name in names], order=order, as_stored=as_stored)
        if self._condition is None:
            return rows
        parts = _parts.possible(rows._rows, self._array, self._condition, _parts.ROWS)
        return rows if parts is None else rows._of_parts(_parts.ROWS, parts)

    def _tested(self, name: str, column: Any) -> Any:
        """Returns a column in the form that conditions evaluate: text stays in Arrow."""
        attribute = self._array.attributes.get(name)
        if attribute is None:
            dimension = self._array.dim(name)
            return column if dimension.dtype == object else _numbers(column, dimension.dtype, False)
        if attribute.enumeration is not None:
            codes = _numbers(column.indices if hasattr(column, "indices") else column, attribute.dtype, True)
            return _frames.known_codes(self._array, attribute, codes)
        return column if attribute._value_dtype.kind in "OSUV" else _numbers(column, attribute._value_dtype, attribute.nullable)

    def _pushed_down(self, ranges: Sequence[Sequence[Range]]) -> List[List[Range]]:
        """Returns ranges without coordinates that the condition rules out. It is tested for each row that is left."""
        found = [list(one) for one in ranges]
        if self._condition is None:
            return found
        numbers = {one.name: number for number, one in enumerate(self._array.dimensions)}
        for one in _conditions.conjuncts(self._condition):
            number = numbers.get(one.field.name)
            if number is None or not one.field.is_dimension or one.value is None:
                continue
            dimension = self._array.dimensions[number]
            # Coordinates outside the domain select nothing, but as a range they would be an error.
            domain = dimension.domain or (None, None)
            if one.operator == "in" and all(range_ == (None, None) for range_ in found[number]):
                values = [_as_coordinate(dimension, value) for value in one.value]
                found[number] = [part for value in values for part in _subscripts.narrowed([domain], value, value)]
            elif one.operator in ("<", "<=", ">", ">=", "=="):
                value = _as_coordinate(dimension, one.value)
                low = value if one.operator in (">", ">=", "==") else None
                high = value if one.operator in ("<", "<=", "==") else None
                given = [_as_range(dimension, each) for each in found[number]]
                allowed = _subscripts.narrowed([domain], low, high)
                found[number] = [part for ends in allowed for part in _subscripts.narrowed(given, *ends)]
        return found


class MultiIndex:
    """Cells of any number of ranges for each dimension, both ends included: ``array.multi_index[2:5, [7, slice(9, 12)]]``.
    Returns a dictionary, with coordinates before attributes."""

    def __init__(self, query: Query) -> None:
        if query._is_arrow:
            raise UsageError("return_arrow=True is for query(...).df[...]")
        self._query = query

    def __getitem__(self, key: Any) -> Any:
        query = self._query
        if query.return_incomplete:
            return _streams.Parts(query, _ranges_of(query, key), self._of_table, as_stored=True)
        if _subscripts.is_nothing(key):
            return query._shown(_nothing(query), True)
        return self._cells(_subscripts.closed(query._array, key))

    def _of_table(self, table: "pyarrow.Table") -> _Cells:
        shown = self._query._shown(self._query._columns(table), True)
        return {name: shown[name] for name in self._query._names()}

    def _cells(self, ranges: Sequence[Sequence[Range]]) -> _Cells:
        query = self._query
        if any(not one for one in ranges):
            return query._shown(_nothing(query), True)
        cells = query._rows(ranges) if query._array.is_sparse else query._boxes(ranges)
        shown = query._shown(cells, True)
        return {name: shown[name] for name in query._names()}

    def __repr__(self) -> str:
        return f"<tilefs.MultiIndex of {self._query._array.uri!r}>"


class LabelIndex(MultiIndex):
    """Cells by dimension labels instead of coordinates; see :meth:`Array.label_index`."""

    def __init__(self, query: Query, labels: Sequence[str]) -> None:
        super().__init__(query)
        array = query._array
        if array.is_sparse:
            raise UsageError("labels select cells of dense arrays only")
        self._labels: Dict[int, Any] = {}
        for name in labels:
            label = array.schema.dim_label(name)
            if label.dim_index in self._labels:
                raise UsageError(f"the labels {name} and {self._labels[label.dim_index].name} are of the same dimension")
            self._labels[label.dim_index] = label

    def __getitem__(self, key: Any) -> _Cells:
        ranges, labels = self._ranges(key)
        return {**dict(reversed(labels.items())), **self._cells(ranges)}

    def _ranges(self, key: Any) -> Tuple[List[List[Range]], _Cells]:
        """Returns the ranges of coordinates that a subscript selects, and the labels of these."""
        array = self._query._array
        keys = key if isinstance(key, tuple) else (key,)
        coordinates = tuple(slice(None) if number in self._labels else one for number, one in enumerate(keys))
        ranges = _subscripts.closed(array, coordinates)
        labels = {}
        for number, label in self._labels.items():
            if number < len(keys):
                ranges[number] = label._ranges(array, keys[number])
                labels[label.name] = label._values(array, ranges[number])
        return ranges, labels


class Frames:
    """Cells as DataFrames of pandas: ``array.df[2:5, [7, 9]]``, with ranges as for ``multi_index``. With
    ``return_arrow=True``, they are tables of pyarrow."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def __getitem__(self, key: Any) -> Any:
        query = self._query
        if query.return_incomplete:
            return _streams.Parts(query, _ranges_of(query, key), lambda table: self._shown(self._named(table)))
        return self._shown(self._table(key))

    def _shown(self, table: "pyarrow.Table") -> Any:
        return table if self._query._is_arrow else self._framed(table)

    def _framed(self, table: "pyarrow.Table") -> "pandas.DataFrame":
        query = self._query
        return _frames.indexed(_frames.frame(query._array, table), query._array.metadata, query._index)

    def _named(self, table: "pyarrow.Table") -> "pyarrow.Table":
        """Returns rows with the names of the array, in its order."""
        query = self._query
        return table.rename_columns([*query._dimensions, *query._attributes]).select(query._names())

    def _table(self, key: Any) -> "pyarrow.Table":
        import pyarrow

        query, array = self._query, self._query._array
        ranges = [] if _subscripts.is_nothing(key) else _subscripts.closed(array, key)
        is_empty = any(not one for one in ranges) or not ranges
        if array.is_sparse:
            return self._named(query._table([[]] * array.ndim if is_empty else ranges))
        cells = _nothing(query) if is_empty else query._boxes(ranges)
        cells = {name: cells[name] for name in query._names()}
        order = "F" if query.order == "F" else "C"
        columns = []
        for name, values in cells.items():
            # Cells of several numbers have an axis for these.
            further = array.attributes[name]._cell_shape if name in array.attributes else ()
            columns.append(_frames.column(array, name, values.reshape((-1, *further), order=order)))
        return pyarrow.table(columns, names=list(cells))

    def __repr__(self) -> str:
        return f"<tilefs.Frames of {self._query._array.uri!r}: {self._query._text()}>; [...] reads, [:] all"


def _ranges_of(query: Query, key: Any) -> List[List[Range]]:
    """Returns the ranges of a subscript of ``multi_index`` or ``df``."""
    return [[] for _ in query._array.dimensions] if _subscripts.is_nothing(key) else _subscripts.closed(query._array, key)


class _Fields(Mapping[str, Field]):
    """The fields of an array that conditions can compare."""

    def __init__(self, array: "Array") -> None:
        self._array = array

    def __getitem__(self, name: str) -> Field:
        array = self._array
        attribute = array.attributes.get(name)
        if attribute is None:
            dimension = next((one for one in array.dimensions if one.name == name), None)
            if dimension is None:
                raise KeyError(name)
            return Field(name, True, dimension.dtype)
        if attribute._has_several or attribute._has_numbers:
            raise UsageError(f"a condition compares single values, and cells of {name} have several")
        labels = array.enum(attribute.enumeration) if attribute.enumeration is not None else None
        return Field(
            name,
            False,
            attribute.dtype,
            attribute.nullable,
            None if labels is None else labels.values(),
            labels is not None and labels.ordered,
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._array.attributes
        yield from (one.name for one in self._array.dimensions)

    def __len__(self) -> int:
        return len(self._array.attributes) + self._array.ndim


def _chosen_dimensions(array: "Array", dims: Any, coords: Optional[bool]) -> List[str]:
    """Returns the dimensions whose coordinates are read: all of a sparse array and none of a dense one, unless told
    otherwise."""
    if dims not in (None, False) and coords:
        raise ValueError("give dims= or coords=, not both")
    names = [one.name for one in array.dimensions]
    if dims is True or coords:
        return names
    if dims is None and coords is None:
        return names if array.is_sparse else []
    return [array.dim(one).name for one in dims or ()]


def _grids(
    array: "Array", axes: Sequence[Sequence[Tuple[int, int, int]]], shape: Tuple[int, ...], names: Sequence[str]
) -> _Cells:
    """Returns the coordinates of each cell of a box along the named dimensions."""
    import numpy

    grids = {}
    for number, (dimension, ranges) in enumerate(zip(array.dimensions, axes)):
        if dimension.name in names:
            low: Any = dimension.domain[0] if dimension.domain else 0
            first = int(low.astype("int64")) if dimension.dtype.kind == "M" else int(low)
            along = numpy.concatenate([_integers(first + start, count) for start, _, count in ranges])
            along = along.view("int64").astype(dimension.dtype) if dimension.dtype.kind == "M" else along.astype(dimension.dtype)
            along = along.reshape([-1 if axis == number else 1 for axis in range(len(shape))])
            grids[dimension.name] = numpy.broadcast_to(along, shape).copy()
    return {name: grids[name] for name in names}


def _integers(first: int, count: int) -> "numpy.ndarray[Any, Any]":
    import numpy

    # Modulo 2^64, which casts to any type of integers.
    integers: "numpy.ndarray[Any, Any]" = numpy.arange(count, dtype="u8") + numpy.uint64(first % 2**64)
    return integers


def _global_order(array: "Array", axes: Sequence[Sequence[Tuple[int, int, int]]]) -> "numpy.ndarray[Any, Any]":
    """Returns the cells of a box in the array's own order: tile by tile."""
    import numpy

    shape = tuple(sum(count for _, _, count in one) for one in axes)
    tiles, cells = [], []
    for number, ranges in enumerate(axes):
        positions = numpy.concatenate([numpy.arange(start, start + count) for start, _, count in ranges])
        extent = array.dimensions[number]._extent_in_cells or max(array.shape[number], 1)
        along = [-1 if axis == number else 1 for axis in range(len(shape))]
        tiles.append(numpy.broadcast_to((positions // extent).reshape(along), shape).ravel())
        cells.append(numpy.broadcast_to(positions.reshape(along), shape).ravel())
    return _by_tile(array, tiles, cells)


def _by_tile(array: "Array", tiles: List[Any], cells: List[Any]) -> "numpy.ndarray[Any, Any]":
    """Returns the order of cells by the numbers of their tiles, and by their coordinates, along each dimension."""
    import numpy

    schema = array.schema
    keys = [
        *(tiles if schema.tile_order == "row-major" else tiles[::-1]),
        *(cells if schema.cell_order == "row-major" else cells[::-1]),
    ]
    order: "numpy.ndarray[Any, Any]" = numpy.lexsort(keys[::-1])
    return order


def _order_of_rows(array: "Array", columns: Sequence[Any]) -> "numpy.ndarray[Any, Any]":
    """Returns rows with these coordinates in the array's own order: tile by tile. The same cells stay as they are."""
    import numpy

    tiles, cells = [], []
    for dimension, values in zip(array.dimensions, columns):
        # Texts have no tiles, and as numbers they compare faster.
        along = numpy.unique(values, return_inverse=True)[1] if dimension.dtype == object else values
        cells.append(along)
        tiles.append(dimension._tiles_of(along))
    return _by_tile(array, tiles, cells)


def _filled(attribute: "Attribute", values: Any, kept: "numpy.ndarray[Any, Any]") -> Any:
    """Returns values with the fill value where a cell is not kept."""
    import numpy

    fill = attribute._fill_values
    is_null = attribute.nullable and not attribute._fill_is_valid
    if values.dtype == object:
        values[~kept] = None if is_null else fill
        return values
    if isinstance(values, numpy.ma.MaskedArray):
        data, mask = values.data, numpy.ma.getmaskarray(values)
        data[~kept] = fill
        mask = numpy.where(kept.reshape(kept.shape + (1,) * (mask.ndim - kept.ndim)), mask, is_null)
        return numpy.ma.MaskedArray(data, mask=mask)
    values[~kept] = fill
    return values


def _selection(array: "Array", ranges: Sequence[Sequence[Range]]) -> Optional[Dict[str, Any]]:
    chosen = {}
    for dimension, several in zip(array.dimensions, ranges):
        if not any(low is None and high is None for low, high in several):
            chosen[dimension.name] = [low if low is high else slice(low, high) for low, high in several]
    return chosen or None


def _as_coordinate(dimension: "Dimension", value: Any) -> Any:
    """Returns a value of a condition as a coordinate."""
    import numpy

    if dimension.dtype.kind == "M":
        return numpy.array(value, dtype="int64").view(dimension.dtype)[()]
    return value if isinstance(value, bytes) else value.item()


def _as_range(dimension: "Dimension", given: Range) -> Range:
    """Returns a range whose ends compare with those of conditions."""
    import numpy

    if dimension.dtype == object:
        low, high = (one.encode() if isinstance(one, str) else one for one in given)
    elif dimension.dtype.kind == "M":
        low, high = (one if one is None else numpy.datetime64(one) for one in given)
    else:
        low, high = given
    return low, high


def _numbers(column: Any, dtype: "numpy.dtype[Any]", is_nullable: bool) -> "numpy.ndarray[Any, Any]":
    """Returns a column of Arrow as numbers of NumPy, masked where it can be null."""
    import numpy

    # Arrow has null for NaT.
    if column.null_count == 0 or (dtype.kind in "mM" and not is_nullable):
        values = column.to_numpy(zero_copy_only=False) if hasattr(column, "buffers") else column.to_numpy()
        values = values.astype(dtype, copy=False)
        return numpy.ma.MaskedArray(values, mask=numpy.zeros(len(values), dtype=bool)) if is_nullable else values
    nulls = column.is_null().to_numpy(zero_copy_only=False) if hasattr(column, "buffers") else column.is_null().to_numpy()
    present = column.drop_null()
    values = present.to_numpy(zero_copy_only=False) if hasattr(present, "buffers") else present.to_numpy()
    filled = numpy.zeros(len(column), dtype=dtype)
    filled[~nulls] = values.astype(dtype, copy=False)
    return numpy.ma.MaskedArray(filled, mask=nulls)


def _column(column: Any, attribute: "Attribute") -> "numpy.ndarray[Any, Any]":
    """Returns the stored column of an attribute as an array of NumPy; ``None`` is text that is null."""
    import numpy

    if attribute._has_several:
        return _several(column, attribute)
    if attribute.dtype == object:
        cells = numpy.empty(len(column), dtype=object)
        if attribute._has_numbers:
            for number, one in enumerate(column):
                cells[number] = None if one.values is None else one.values.to_numpy(zero_copy_only=False)
        else:
            cells[:] = _texts(column, attribute)
        return cells
    return _numbers(column, attribute.dtype, attribute.nullable)


def _texts(column: Any, attribute: "Attribute") -> List[Any]:
    """Returns stored texts or bytes; ASCII stays bytes."""
    import pyarrow

    if not attribute._has_text or attribute.datatype == "STRING_ASCII":
        return list(column.to_pylist())
    try:
        if attribute._number_type.itemsize == 1:
            return list(column.cast(pyarrow.large_string()).to_pylist())
        # Wide characters are lists of their units.
        return [None if one.values is None else one.values.to_numpy().tobytes().decode(attribute._encoding) for one in column]
    except (pyarrow.ArrowInvalid, UnicodeDecodeError):
        name, encoding = attribute.name, attribute._encoding.upper()
        raise Error(f"{attribute._array.uri}: a cell of {name} is not {encoding}; read(as_stored=True) has its bytes") from None


def _several(column: Any, attribute: "Attribute") -> "numpy.ndarray[Any, Any]":
    """Returns a column of cells of several numbers: complex numbers, or an array with an axis for the numbers."""
    import numpy

    shape = (len(column), attribute.values_per_cell or 1)
    nulls = numpy.asarray(column.is_null().to_numpy(), dtype=bool)
    values = numpy.zeros(shape, attribute._number_type)
    # Of null cells, the values are whatever is stored.
    parts = [one.flatten().to_numpy(zero_copy_only=False) for one in column.chunks]
    if parts:
        values[~nulls] = numpy.concatenate(parts).astype(attribute._number_type, copy=False).reshape((-1, shape[1]))
    if attribute._is_complex:
        values = values.view(attribute.dtype)[:, 0]
    else:
        nulls = numpy.broadcast_to(nulls[:, None], shape)
    return numpy.ma.MaskedArray(values, mask=nulls) if attribute.nullable else values


def _as_in_tiledb_py(attribute: "Attribute", values: Any) -> Any:
    """Returns values as TileDB-Py has them: ASCII as ``bytes``, text that can be null as a masked array, and cells of
    several numbers as structured ones."""
    import numpy

    if attribute.enumeration is not None:
        return values
    if attribute._cell_shape:
        whole = numpy.ascontiguousarray(numpy.ma.getdata(values)).view(attribute.dtype)[..., 0]
        nulls = numpy.ma.getmaskarray(values)[..., 0]
        return numpy.ma.MaskedArray(whole, mask=nulls) if attribute.nullable else whole
    if values.dtype != object:
        return values
    nulls = numpy.array([one is None for one in values.ravel()], dtype=bool).reshape(values.shape)
    if not attribute._has_numbers:
        empty = b"" if attribute.datatype in ("STRING_ASCII", "CHAR") else ""
        # The fill value is a zero, which NumPy leaves out at the end of a text.
        absent = (None, "\0", b"\0")
        shown = [empty if one in absent else one.encode() if isinstance(one, str) and empty == b"" else one for one in values.ravel()]
        values = numpy.empty(len(shown), dtype=object)
        values[:] = shown
        values = values.reshape(nulls.shape)
    return numpy.ma.MaskedArray(values, mask=nulls) if attribute.nullable else values


def _coordinates(column: Any, dimension: "Dimension") -> "numpy.ndarray[Any, Any]":
    """Returns a column of coordinates as an array of NumPy; texts are ``bytes``, as in TileDB-Py."""
    import numpy

    if dimension.dtype != object:
        return _numbers(column, dimension.dtype, False)
    texts = numpy.empty(len(column), dtype=object)
    texts[:] = [one.encode() if isinstance(one, str) else bytes(one) for one in column.to_pylist()]
    return texts


def _nothing(query: Query) -> _Cells:
    """Returns no cells, with the right types."""
    import numpy

    array, found = query._array, {}
    for name in query._names():
        attribute = array.attributes.get(name)
        if attribute is None:
            found[name] = numpy.empty(0, dtype=array.dim(name).dtype)
            continue
        values = numpy.empty((0, *attribute._cell_shape), dtype=attribute._value_dtype)
        found[name] = numpy.ma.MaskedArray(values, mask=False) if attribute.nullable and values.dtype != object else values
    return found
