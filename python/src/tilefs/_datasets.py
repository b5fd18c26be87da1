"""Rows for programs that say which columns and rows they need: pyarrow's scanners, and lazy frames of Polars.

What they ask for is also applied to the rows that are read, so what is made of it here only has to leave out nothing.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Union

from . import _conditions, _queries
from ._errors import UsageError

if TYPE_CHECKING:
    import polars
    import pyarrow

    from ._arrays import Array
    from ._conditions import Condition
    from ._rows import Rows

_OPERATORS = ("<", "<=", ">", ">=", "==")


class Dataset:
    """The rows of an array with the methods of pyarrow's datasets; ``array.dataset()`` makes one. Scanners read the columns
    that they need, and the tiles that a filter does not rule out by ranges of coordinates or extremes of values.

    >>> print(tilefs.open("cells.tdb").dataset().scanner(columns=["kind"]).head(2)["kind"].to_pylist())
    ['T cell', 'B cell']
    """

    def __init__(self, array: "Array") -> None:
        self._array = array

    @property
    def schema(self) -> "pyarrow.Schema":
        """The types of all columns."""
        import pyarrow

        return pyarrow.schema(self._array.read())

    def scanner(self, columns: Union[Sequence[str], Dict[str, Any], None] = None, filter: Any = None, **options: Any) -> Any:
        """Returns a scanner of pyarrow for these columns of the rows for which an expression of pyarrow holds.

        :param columns: names, or expressions by the names of results
        :param filter: an expression, such as ``pyarrow.compute.field("a") > 3``
        :param options: as for ``pyarrow.dataset.Scanner.from_batches``
        """
        import pyarrow
        from pyarrow.dataset import Scanner

        whole = self.schema
        names = whole.names
        wanted = names if columns is None else list(columns.values()) if isinstance(columns, dict) else list(columns)
        asked = " ".join(map(str, [*wanted, "" if filter is None else filter]))
        read = [name for name in names if columns is None or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", asked)]
        hint = None if filter is None else _hint(self._array, str(filter))
        schema = pyarrow.schema([whole.field(name) for name in read])
        rows = _rows(self._array, read or names[:1], hint)
        reader = pyarrow.RecordBatchReader.from_batches(schema, []) if rows is None else rows._reader()
        return Scanner.from_batches(reader, columns=columns, filter=filter, **options)

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> "pyarrow.Table":
        """Returns these columns of these rows as a table."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> "Iterator[pyarrow.RecordBatch]":
        """Returns these columns of these rows, batch by batch."""
        return self.scanner(columns, filter, **options).to_batches()  # type: ignore[no-any-return]

    def count_rows(self, filter: Any = None) -> int:
        """Returns the number of rows."""
        return len(self._array.read()) if filter is None else int(self.scanner([], filter).count_rows())

    def head(self, count: int, columns: Any = None, filter: Any = None) -> "pyarrow.Table":
        """Returns the first rows as a table."""
        return self.scanner(columns, filter).head(count)

    def __repr__(self) -> str:
        return f"<tilefs.Dataset of {self._array.uri!r}: {', '.join(self.schema.names)}>"


def scan_polars(source: Any, **options: Any) -> "polars.LazyFrame":
    """Returns the rows of an array as a lazy frame of Polars. Columns that are not used are not read, nor tiles that
    comparisons with numbers and texts rule out.

    >>> import polars as pl
    >>> frame = tilefs.scan_polars("cells.tdb").filter(pl.col("id") >= 2990).select("kind").collect()
    >>> print(frame.shape)
    (3, 1)

    :param source: an array, or its path or URI
    :param options: as for :func:`tilefs.open`
    """
    import polars
    import pyarrow
    from polars.io.plugins import register_io_source

    from ._arrays import Array, open

    array = source if isinstance(source, Array) else open(source, **options)
    if not isinstance(array, Array):
        raise UsageError(f"{array.uri} is a group: rows are those of an array")
    whole = pyarrow.schema(array.read())

    def batches(columns: Optional[List[str]], predicate: Any, most: Optional[int], size: Optional[int]) -> Iterator[Any]:
        read = list(columns or whole.names)
        if predicate is not None:
            read += [name for name in predicate.meta.root_names() if name not in read]
        rows = _rows(array, read, None if predicate is None else _hint(array, _text_of(predicate), is_nan_greatest=True))
        left = most
        for batch in () if rows is None else rows._reader():
            frame = polars.from_arrow(batch)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame.select(columns or whole.names)  # type: ignore[union-attr]
            frame = frame if left is None else frame.head(left)
            yield frame
            left = None if left is None else left - len(frame)
            if left == 0:
                return

    return register_io_source(batches, schema=polars.from_arrow(whole.empty_table()).schema)  # type: ignore[union-attr]


def _rows(array: "Array", columns: Sequence[str], hint: "Optional[Condition]") -> "Optional[Rows]":
    """Returns rows with these columns of tables, at least those for which a condition holds; ``None`` if there are none."""
    query = _queries.Query(array)
    query._condition = hint
    fields = {stored: name for name, stored in array._columns_of_tables().items()}
    ranges = query._pushed_down([[(None, None)]] * array.ndim) if array.is_sparse else [[(None, None)]] * array.ndim
    if any(not one for one in ranges):
        return None
    return query._rows_of(ranges, [fields[name] for name in columns], "array", False)


def _text_of(predicate: "polars.Expr") -> str:
    """Returns the comparisons of columns with numbers and texts that all have to hold for a predicate, as a condition."""
    return " and ".join(_comparisons(predicate))


def _comparisons(predicate: "polars.Expr") -> List[str]:
    # What Polars prints of an expression alone may be the text of another one with such a text in it.
    parts = predicate.meta.pop()
    if len(parts) != 2:
        return []
    for one, other in (parts, parts[::-1]):
        if str(predicate) == f"[({one}) & ({other})]":
            return [*_comparisons(one), *_comparisons(other)]
        for operator in _OPERATORS:
            if str(predicate) == f"[({one}) {operator} ({other})]":
                name, value = _column(one), _literal(other)
                return [] if name is None or value is None else [f"{name} {operator} {value!r}"]
    return []


def _column(expression: "polars.Expr") -> Optional[str]:
    names = expression.meta.root_names()
    return names[0] if len(names) == 1 and names[0].isidentifier() and str(expression) == f'col("{names[0]}")' else None


def _literal(expression: "polars.Expr") -> Union[int, float, str, None]:
    import polars

    if expression.meta.root_names() or not expression.meta.is_literal():
        return None
    value = polars.select(expression).item()
    return value if type(value) in (int, str) or type(value) is float and value - value == 0 else None


def _hint(array: "Array", text: str, is_nan_greatest: bool = False) -> "Optional[Condition]":
    """Returns a condition that holds wherever ``text`` does: of what it joins by ``and``, the comparisons that mean the same
    for all programs.

    :param is_nan_greatest: whether the program takes NaN as greater than all numbers
    """
    try:
        parsed = ast.parse(text.strip(), mode="eval").body if text else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [one for one in map(lambda part: _comparison(array, part), _joined(parsed)) if one is not None]
    if is_nan_greatest:
        # The greatest value of a tile may leave NaN out.
        found = [one for one in found if one.field.dtype.kind != "f" or one.operator not in (">", ">=")]
    if not found:
        return None
    return found[0] if len(found) == 1 else _conditions.Combination(True, tuple(found))


def _joined(node: Optional[ast.AST]) -> List[ast.AST]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [one for value in node.values for one in _joined(value)]
    return [] if node is None else [node]


def _comparison(array: "Array", node: ast.AST) -> "Optional[_conditions.Comparison]":
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    try:
        found = _conditions.parse(ast.unparse(node), _queries._Fields(array))
    except (UsageError, TypeError):
        return None
    if not isinstance(found, _conditions.Comparison) or found.operator not in _OPERATORS:
        return None
    if found.field.dtype.kind in "mM":
        return None
    # A number that the type of the column rounds is another comparison: these programs compare it as it is.
    numbers = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, (int, float))]
    is_rounded = any(abs(number) != abs(found.value.item()) for number in numbers)
    return None if is_rounded else found
