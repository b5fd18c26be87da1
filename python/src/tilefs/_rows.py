"""Rows of arrays: tables of Arrow, of which nothing is read before they are consumed."""

from __future__ import annotations

import operator
import random
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _conditions, _dask, _display, _frames, _parts, _progress, _streams
from ._errors import of_streams

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from . import _tilefs
    from ._arrays import Array

# The rows of a part where only the first rows are wanted.
_FEW_ROWS = 1024


class Rows:
    """Rows of an array, for everything that takes Arrow tables: ``pyarrow.table(rows)``, ``polars.DataFrame(rows)``,
    ``pandas.DataFrame.from_arrow(rows)``, or DuckDB's ``FROM rows``. Each of these reads the rows again, batch by
    batch.

    >>> rows = tilefs.open("cells.tdb").read(rows={"id": slice(100, 199)})
    >>> print(len(rows), rows.to_arrow().column_names)
    33 ['id', 'kind', 'score', 'state']
    """

    def __init__(
        self,
        array: Array,
        selection: Optional[str],
        columns: Optional[List[str]],
        order: str,
        parts: Tuple[Tuple[int, List[int]], ...] = (),
        as_stored: bool = False,
        condition: Optional[str] = None,
    ) -> None:
        self._array = array
        self._selection = selection
        self._columns = columns
        self._order = order
        # The most rows of a part, and the parts that are read; then those of these rows, and so on.
        self._parts = parts
        self._as_stored = as_stored
        #: The condition that rows meet.
        self._condition = condition
        self._query = array.query(cond=condition) if condition else None
        rows: "_tilefs.Rows" = array._opened.rows(selection, columns, order == "row", as_stored)
        for most, chosen in parts:
            rows = rows.some_parts(most, chosen)
        self._rows = rows

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return Rows, (self._array, self._selection, self._columns, self._order, self._parts, self._as_stored, self._condition)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self._query is not None:
            return self._reader().__arrow_c_stream__(requested_schema)
        return self._rows.__arrow_c_stream__(requested_schema)

    def _reader(self) -> "pyarrow.RecordBatchReader":
        """Returns the rows batch by batch."""
        import pyarrow

        query = self._query
        if query is None or query._condition is None:
            return pyarrow.RecordBatchReader.from_stream(self)
        array, schema = self._array, pyarrow.schema(self)
        fields = {stored: name for name, stored in array._columns_of_tables().items()}
        tested = sorted(_conditions.fields_of(query._condition))
        names = list(dict.fromkeys([*(fields[name] for name in schema.names), *tested]))
        stored = array._columns_of_tables()
        rows = Rows(array, self._selection, [stored[name] for name in names], self._order, self._parts, self._as_stored)
        possible = _parts.possible(rows._rows, array, query._condition, _parts.ROWS)
        rows = rows if possible is None else rows._of_parts(_parts.ROWS, possible)
        return pyarrow.RecordBatchReader.from_batches(schema, _streams.batches(query, rows, names, len(schema.names)))

    def __arrow_c_schema__(self) -> Any:
        return self._rows.__arrow_c_schema__()

    def __len__(self) -> int:
        """Returns the number of rows. If fragments may hold the same cells, this reads their coordinates; with a condition,
        what it tests."""
        if self._query is not None:
            with of_streams():
                return sum(batch.num_rows for batch in self._with_columns(self._rows_columns()[:1])._reader())
        return self._rows.count()

    def _rows_columns(self) -> List[str]:
        """Returns the names of the columns of the table."""
        return list(self._columns or self._array._columns_of_tables().values())

    def head(self, count: int = 5) -> "pyarrow.Table":
        """Returns the first rows as a pyarrow table. Only their tiles are read, if no rows have to be sorted or merged."""
        import pyarrow

        batches, left, most = [], max(0, count), max(count, _FEW_ROWS)
        reader = self._of_parts(most, range(len(self._rows.part_starts(most))))._reader()
        with of_streams():
            while left:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                batches.append(batch.slice(0, left))
                left -= len(batches[-1])
        return pyarrow.Table.from_batches(batches, reader.schema)

    def sample(self, count: int, *, seed: Optional[int] = None) -> "pyarrow.Table":
        """Returns random rows as a pyarrow table, each at most once, in the order of the array. Only their tiles are read, if
        the number of rows is known; with a condition, or if fragments may hold the same cells, all are.

        :param count: how many rows; all, if there are not more
        :param seed: what the choice is made from
        """
        import numpy
        import pyarrow

        if count < 0:
            raise ValueError(f"a sample has at least 0 rows, not {count}")
        chooser = random.Random(seed)
        most, is_exact = self._rows.known_count()
        starts = self._rows.part_starts(_FEW_ROWS) if is_exact and self._query is None else [0]
        total = most if is_exact and self._query is None else len(self)
        chosen = numpy.sort(numpy.array(chooser.sample(range(total), min(count, total)), dtype="int64"))
        if len(starts) < 2:
            return _taken(self._reader(), chosen)
        places = numpy.searchsorted(numpy.array(starts), chosen, "right") - 1
        found = []
        for part in numpy.unique(places).tolist():
            reader = self._of_parts(_FEW_ROWS, [part])._reader()
            found.append(_taken(reader, chosen[places == part] - starts[part]))
        return pyarrow.concat_tables(found) if found else pyarrow.schema(self).empty_table()

    def to_arrow(self, *, progress: bool = True) -> "pyarrow.Table":
        """Returns the rows as a pyarrow table. If that takes more than two seconds, a bar shows the progress in terminals and
        notebooks, unless ``progress`` is false."""
        import pyarrow

        with of_streams():
            reader = self._reader()
            batches = list(_progress.shown(reader, self._rows.known_count()[0], progress))
        return pyarrow.Table.from_batches(batches, reader.schema)

    def to_dask_dataframe(self, condition: Optional[str] = None, *, rows_of_partition: int = _dask.ROWS) -> Any:
        """Returns the rows as a DataFrame of dask. Its workers open the array by its address and options; a key in memory
        is not passed on. If rows are ordered by the only dimension, it is the index, and divisions are known. Columns that
        are not used are not read. All have the types of :attr:`Array.df`, in each partition and without rows: integers
        that can be null are exact, and lists stay what they are. Days and bytes have pandas' types of Arrow, because
        dask cannot tell what objects are.

        >>> frame = tilefs.open("cells.tdb").read(columns=["id", "score"]).to_dask_dataframe("score > 30")
        >>> print(frame.npartitions, frame.known_divisions, len(frame))
        1 True 99

        :param condition: as for :meth:`Array.query`: other rows are left out; partitions that it rules out are not read
        :param rows_of_partition: the most rows of a partition, unless one tile has more
        """
        if self._condition is not None:
            condition = self._condition if condition is None else f"({self._condition}) and ({condition})"
        return _dask.frame_of(self, condition, rows_of_partition)

    def to_pandas(self, *, progress: bool = True, **options: Any) -> "pandas.DataFrame":
        """Returns the rows as a DataFrame with the types of :attr:`Array.df`. With options, which are those of pyarrow's
        ``Table.to_pandas``, that makes it."""
        table = self.to_arrow(progress=progress)
        if options or self._as_stored:
            return table.to_pandas(**options)
        fields = {stored: name for name, stored in self._array._columns_of_tables().items()}
        frame = _frames.frame(self._array, table.rename_columns([fields.get(name, name) for name in table.column_names]))
        return _frames.typed(frame, self._array.metadata).set_axis(table.column_names, axis=1)

    def to_polars(self, *, progress: bool = True) -> "polars.DataFrame":
        """Returns the rows as a DataFrame of Polars."""
        import polars

        return polars.from_arrow(self.to_arrow(progress=progress))  # type: ignore[return-value]

    def to_numpy(self, *, progress: bool = True) -> Dict[str, Any]:
        """Returns the rows as arrays of NumPy by column, of which :meth:`Array.__getitem__` has the types."""
        array, names = self._array, self._rows_columns()
        rows = Rows(array, self._selection, names, self._order, self._parts, True, self._condition)
        fields = {stored: name for name, stored in array._columns_of_tables().items()}
        table = rows.to_arrow(progress=progress)
        return array.query()._of_stored(table.rename_columns([fields[name] for name in table.column_names]))

    @property
    def parts(self) -> int:
        """How many parts of about a million rows there are, each of which can be read without the others."""
        return len(self._rows.part_starts(_dask.ROWS))

    def part(self, number: int) -> "Rows":
        """Returns the rows of one of the :attr:`parts`, which have a length and parts of their own."""
        count = self.parts
        try:
            chosen = range(count)[operator.index(number)] if number >= 0 else None
        except IndexError:
            chosen = None
        if chosen is None:
            raise IndexError(f"there are {count} parts, and none has the number {number}")
        return self._of_parts(_dask.ROWS, [chosen])

    def to_ray_dataset(self) -> Any:
        """Returns the rows as a dataset of Ray, with a task for each of the :attr:`parts`. This needs Ray."""
        import ray.data

        def read(row: Mapping[str, Any], rows: "Rows" = self) -> "pyarrow.Table":
            return rows.part(int(row["id"][0])).to_arrow()

        return ray.data.range(self.parts, override_num_blocks=self.parts).map_batches(read, batch_size=1)

    def _with_columns(self, columns: Sequence[str]) -> "Rows":
        return Rows(self._array, self._selection, list(columns), self._order, self._parts, self._as_stored, self._condition)

    def _of_parts(self, most: int, parts: Sequence[int]) -> "Rows":
        """Returns the rows of some of the parts of at most ``most`` rows, by their numbers."""
        chosen = (*self._parts, (most, list(parts)))
        return Rows(self._array, self._selection, self._columns, self._order, chosen, self._as_stored, self._condition)

    def __repr__(self) -> str:
        return _display.rows_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.rows_page(self)


def _taken(reader: "pyarrow.RecordBatchReader", chosen: "numpy.ndarray[Any, Any]") -> "pyarrow.Table":
    """Returns rows of a stream by their numbers, which are in order."""
    import numpy
    import pyarrow

    found, before = [], 0
    with of_streams():
        for batch in reader:
            first, last = numpy.searchsorted(chosen, [before, before + batch.num_rows])
            if last > first:
                found.append(batch.take(pyarrow.array(chosen[first:last] - before)))
            before += batch.num_rows
            if last == len(chosen):
                break
    return pyarrow.Table.from_batches(found, reader.schema)
