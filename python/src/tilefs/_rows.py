"""Rows of arrays: tables of Arrow, of which nothing is read before they are consumed."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple

from . import _dask, _display
from ._errors import of_streams

if TYPE_CHECKING:
    import pandas
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
    ) -> None:
        self._array = array
        self._selection = selection
        self._columns = columns
        self._order = order
        # The most rows of a part, and the parts that are read; then those of these rows, and so on.
        self._parts = parts
        rows: "_tilefs.Rows" = array._opened.rows(selection, columns, order == "row")
        for most, chosen in parts:
            rows = rows.some_parts(most, chosen)
        self._rows = rows

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return Rows, (self._array, self._selection, self._columns, self._order, self._parts)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._rows.__arrow_c_schema__()

    def __len__(self) -> int:
        """Returns the number of rows. If fragments may hold the same cells, this reads their coordinates."""
        return self._rows.count()

    def head(self, count: int = 5) -> "pyarrow.Table":
        """Returns the first rows as a pyarrow table. Only their tiles are read, if no rows have to be sorted or merged."""
        import pyarrow

        batches, left, most = [], max(0, count), max(count, _FEW_ROWS)
        reader = pyarrow.RecordBatchReader.from_stream(self._of_parts(most, range(len(self._rows.part_starts(most)))))
        with of_streams():
            while left:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                batches.append(batch.slice(0, left))
                left -= len(batches[-1])
        return pyarrow.Table.from_batches(batches, reader.schema)

    def to_arrow(self) -> "pyarrow.Table":
        """Returns the rows as a pyarrow table."""
        import pyarrow

        with of_streams():
            return pyarrow.RecordBatchReader.from_stream(self).read_all()

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
        return _dask.frame_of(self, condition, rows_of_partition)

    def to_pandas(self, **options: Any) -> "pandas.DataFrame":
        """Returns the rows as a DataFrame. The options are those of pyarrow's ``Table.to_pandas``."""
        return self.to_arrow().to_pandas(**options)

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
        return Rows(self._array, self._selection, list(columns), self._order, self._parts)

    def _of_parts(self, most: int, parts: Sequence[int]) -> "Rows":
        """Returns the rows of some of the parts of at most ``most`` rows, by their numbers."""
        return Rows(self._array, self._selection, self._columns, self._order, (*self._parts, (most, list(parts))))

    def __repr__(self) -> str:
        return _display.rows_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.rows_page(self)
