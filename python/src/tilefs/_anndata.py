"""Experiments of TileDB-SOMA as AnnData, and batches of their cells.

The values of a matrix are decoded into the memory of SciPy's compressed rows; there is no table of coordinates between.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _frames, _tilefs
from ._errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    import anndata
    import numpy
    import pandas
    import pyarrow
    import scipy.sparse

    from ._arrays import Array, Group

#: The column that numbers the rows of a data frame.
_JOINID = "soma_joinid"
#: The attribute of a matrix.
_VALUE = "soma_data"
#: The measurement that TileDB-SOMA makes from AnnData's `raw`.
_RAW = "raw"

#: The metadata key of the original name, as JSON, of the column of row names, and that column if it had none.
_INDEX_KEY = "soma_dataframe_original_index_name"
_INDEXES = {"obs": "obs_id", "var": "var_id"}

#: What `uns` was, if it was an array of text, and how its columns begin.
_HINT_KEY = "soma_uns_outgest_hint"
_COLUMN = "values"

#: Consecutive cells that stay together when batches are shuffled.
_CELLS_TOGETHER = 64


def to_anndata(
    experiment: "Group",
    measurement: Optional[str],
    *,
    X: Optional[str],
    layers: Union[Sequence[str], bool],
    obs_query: Optional[str],
    var_query: Optional[str],
    backed: bool,
) -> "anndata.AnnData":
    """Returns a measurement of an experiment; :meth:`Group.to_anndata` documents the parameters."""
    import anndata

    measured = _measurement(experiment, measurement)
    observations, variables = _array(experiment, "obs"), _array(measured, "var")
    # What is backed is whole, and then a part of it is shown.
    obs = _Frame.read(observations, "obs", None if backed else obs_query)
    var = _Frame.read(variables, "var", None if backed else var_query)
    matrices = _group(measured, "X")
    names = list(matrices or ())
    main = X if X in names else None
    if main is None and X not in (None, "data"):
        raise KeyError(f"{measured.uri} has no layer {X!r}; it has {', '.join(names) or 'none'}")
    extra = [name for name in names if name != main] if layers is True else list(layers or ())
    for name in extra:
        if name not in names:
            raise KeyError(f"{measured.uri} has no layer {name!r}; it has {', '.join(names) or 'none'}")
    stored = _Stored(experiment, measured) if backed else None

    def matrix(name: str) -> Any:
        return _matrix(_array(matrices, name), obs, var) if stored is None else stored.matrix(name)

    # These first, because a full one has columns meanwhile: the memory for these is free when larger ones are read.
    elements: Dict[str, Any] = {
        "obsm": _elements(measured, "obsm", obs, None),
        "varm": _elements(measured, "varm", var, None),
        "obsp": _elements(measured, "obsp", obs, obs),
        "varp": _elements(measured, "varp", var, var),
    }
    data = anndata.AnnData(
        X=None if main is None else matrix(main),
        obs=obs.frame,
        var=var.frame,
        layers={name: matrix(name) for name in extra},
        uns=_unstructured(_group(measured, "uns")),
        raw=_raw(experiment, measured, obs),
        **elements,
    )
    if not backed or obs_query is None and var_query is None:
        return data
    chosen = (_Frame.read(observations, "obs", obs_query).rows, _Frame.read(variables, "var", var_query).rows)
    return data[tuple(slice(None) if rows is None else rows for rows in chosen)]


class _Stored:
    """The matrices of a measurement where they are stored: anndata reads the rows that it needs."""

    def __init__(self, experiment: "Group", measured: "Group") -> None:
        try:
            import fsspec
            import zarr
        except ImportError as error:
            raise ImportError(f"backed=True reads matrices through fsspec and zarr, and there is no {error.name}: pip install fsspec zarr") from None

        # The entry point of an installed package does this.
        if "tilefs" not in fsspec.available_protocols():
            fsspec.register_implementation("tilefs", "tilefs.fs.TilefsFileSystem")
        opened = zarr.open_group("tilefs://zarr", mode="r", storage_options={"uri": experiment.uri, **_options_of(experiment)})
        # Of several measurements, each has a folder.
        if opened.attrs.get("encoding-type") != "anndata":
            opened = opened[f"ms/{measured.uri.rstrip('/').rsplit('/', 1)[-1]}"]
        self._zarr: Any = opened

    def matrix(self, name: str) -> Any:
        import anndata

        found = self._zarr[f"layers/{name}" if f"layers/{name}" in self._zarr else "X"]
        return anndata.io.sparse_dataset(found) if "shape" in found.attrs else found


def _options_of(group: "Group") -> Dict[str, Any]:
    """Returns the options with which a group was opened, or the group that it is a member of."""
    owner: Any = group
    while hasattr(owner._origin[1][0], "_origin"):
        owner = owner._origin[1][0]
    # What is unpickled has no secrets.
    return dict(owner._options or owner._origin[1][1])


class _Frame(NamedTuple):
    """The rows of a data frame that a query selects."""

    frame: "pandas.DataFrame"
    #: The numbers of these rows, ascending; ``None`` for all.
    rows: "Optional[numpy.ndarray[Any, Any]]"
    #: How many rows the array has.
    total: int

    @classmethod
    def read(cls, array: "Array", kind: str, condition: Optional[str]) -> "_Frame":
        import numpy

        whole = [[(None, None)]] * array.ndim
        table = array.query(cond=condition, order="C")._table(whole).replace_schema_metadata(None)
        numbers = table.column(_JOINID).to_numpy()
        every = numbers if condition is None else array.read(columns=[_JOINID]).to_arrow().column(_JOINID).to_numpy()
        _check_numbers(array, every)
        if numpy.any(numpy.diff(numbers) < 0):
            table = table.sort_by(_JOINID)
            numbers = table.column(_JOINID).to_numpy()
        frame = _exact(table.drop_columns([_JOINID]))
        return cls(_named(frame, array, kind), None if condition is None else numbers, len(every))


def _exact(table: "pyarrow.Table") -> "pandas.DataFrame":
    """Returns a table as a DataFrame in which integers and booleans beside nulls are themselves; pandas would make them
    floating point and objects, which AnnData cannot write."""
    import pandas

    columns = {}
    for name, found in zip(table.column_names, table.columns):
        exact = _frames.beside_nulls(found) if found.null_count else None
        columns[name] = found.to_pandas() if exact is None else exact
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))


def _check_numbers(array: "Array", numbers: "numpy.ndarray[Any, Any]") -> None:
    """Refuses rows that are not numbered from 0 on, each once: row i of a matrix would be the values of another one."""
    refused = _tilefs.why_not_numbered(numbers.astype("int64").tobytes())
    if refused is not None:
        raise UnsupportedError(f"{array.uri}: {refused}")


def _named(frame: "pandas.DataFrame", array: "Array", kind: str) -> "pandas.DataFrame":
    """Returns a frame with the names of its rows as its index."""
    original = json.loads(array.metadata.get(_INDEX_KEY, "null"))
    name = original if isinstance(original, str) else _INDEXES.get(kind, "index")
    if name in frame:
        frame = frame.set_index(name)
        frame.index.name = original
    return frame


def _measurement(experiment: "Group", name: Optional[str]) -> "Group":
    """Returns a measurement, or the only one besides `raw`."""
    measurements = _group(experiment, "ms")
    if measurements is None or "obs" not in experiment:
        raise UsageError(f"{experiment.uri} is no experiment of TileDB-SOMA: it has no obs and ms")
    if name is None:
        names = [one for one in measurements if one != _RAW]
        if len(names) != 1:
            raise UsageError(f"{experiment.uri} has the measurements {', '.join(measurements)}: name one")
        name = names[0]
    return measurements[name]  # type: ignore[return-value]


def _group(owner: "Group", name: str) -> "Optional[Group]":
    return owner.get(name)  # type: ignore[return-value]


def _array(owner: Any, name: str) -> "Array":
    found = owner[name]
    if not hasattr(found, "is_sparse"):
        raise UsageError(f"{found.uri} is a group, and an array is expected")
    return found  # type: ignore[no-any-return]


def _matrix(array: "Array", rows: _Frame, columns: Optional[_Frame]) -> Any:
    """Returns a matrix: one of compressed rows for a sparse array, otherwise an array of NumPy. ``columns`` are those of
    the matrix; ``None`` if their number is that of the array."""
    chosen = None if columns is None else columns.rows
    if not array.is_sparse:
        values = array[_VALUE][: rows.total, : None if columns is None else columns.total]
        values = values if rows.rows is None else values[rows.rows]
        return values if chosen is None else values[:, chosen]
    matrix = _compressed(array, rows, None if columns is None else columns.total)
    return matrix if chosen is None else matrix[:, chosen]


def _compressed(array: "Array", rows: _Frame, columns: Optional[int]) -> "scipy.sparse.csr_matrix":
    """Returns the chosen rows of a sparse matrix."""
    import scipy.sparse

    stored = array._opened.matrix([rows.total, columns])
    is_by_row, shape, cells = stored.outline()
    starts = stored.indptr()
    if is_by_row and rows.rows is not None:
        return _some_rows(stored, starts, rows.rows, shape[1])
    parts = (*stored.cells([(0, cells)]), starts)
    if is_by_row:
        return scipy.sparse.csr_matrix(parts, shape=shape, copy=False)
    matrix: Any = scipy.sparse.csc_matrix(parts, shape=shape, copy=False).tocsr()
    return matrix if rows.rows is None else matrix[rows.rows]


def _some_rows(stored: Any, starts: "numpy.ndarray[Any, Any]", rows: "numpy.ndarray[Any, Any]", columns: int) -> Any:
    """Returns rows of a matrix that is stored by rows, in the order of their numbers."""
    import numpy
    import scipy.sparse

    lengths = starts[rows + 1] - starts[rows]
    own_starts = numpy.zeros(len(rows) + 1, dtype=starts.dtype)
    numpy.cumsum(lengths, out=own_starts[1:])
    # Rows that follow each other are read together.
    is_first = numpy.ones(len(rows), dtype=bool)
    is_first[1:] = rows[1:] != rows[:-1] + 1
    is_last = numpy.append(is_first[1:], True)[: len(rows)]
    ranges = list(zip(starts[rows[is_first]].tolist(), starts[rows[is_last] + 1].tolist()))
    parts = (*stored.cells(ranges), own_starts)
    return scipy.sparse.csr_matrix(parts, shape=(len(rows), columns), copy=False)


def _elements(measurement: "Group", name: str, rows: _Frame, columns: Optional[_Frame]) -> Dict[str, Any]:
    """Returns the matrices of ``obsm``, ``varm``, ``obsp`` or ``varp``; the first two are arrays of NumPy."""
    elements = _group(measurement, name)
    found = {}
    for key in elements or ():
        array = _array(elements, key)
        found[key] = _full(array, rows) if columns is None else _matrix(array, rows, columns)
    return found


def _full(array: "Array", rows: _Frame) -> "numpy.ndarray[Any, Any]":
    """Returns the chosen rows of a matrix with a value in each cell."""
    import numpy

    if array.is_sparse and rows.rows is None and not array.schema.allows_duplicates:
        # Without the numbers of columns, which would take as much memory.
        values = array._opened.matrix([rows.total, None]).full()
        if values is not None:
            return values  # type: ignore[no-any-return]
    matrix = _matrix(array, rows, None)
    if not hasattr(matrix, "toarray"):
        return matrix  # type: ignore[no-any-return]

    rows, columns = matrix.shape
    if matrix.nnz == rows * columns and (matrix.indices.reshape(rows, columns) == numpy.arange(columns)).all():
        # All cells are stored, in their order.
        return matrix.data.reshape(rows, columns)  # type: ignore[no-any-return]
    return matrix.toarray()  # type: ignore[no-any-return]


def _raw(experiment: "Group", measured: "Group", obs: _Frame) -> Optional[Dict[str, Any]]:
    """Returns the data before variables were selected, if the experiment has them."""
    measurements = _group(experiment, "ms")
    if measurements is None or _RAW not in measurements:
        return None
    raw = measurements[_RAW]
    matrices = _group(raw, "X")  # type: ignore[arg-type]
    if raw.uri == measured.uri or not matrices:
        return None
    var = _Frame.read(_array(raw, "var"), "var", None)
    name = "data" if "data" in matrices else next(iter(matrices))
    return {"X": _matrix(_array(matrices, name), obs, var), "var": var.frame, "varm": _elements(raw, "varm", var, None)}  # type: ignore[arg-type]


def _unstructured(group: "Optional[Group]", entered: Optional[Set[str]] = None) -> Dict[str, Any]:
    """Returns ``uns``: numbers, text, arrays and data frames by name, nested. Names of collections may double at each level,
    so a collection is under the first of its names only."""
    if group is None:
        return {}
    entered = set() if entered is None else entered
    entered.add(group._opened.canonical())
    found: Dict[str, Any] = {}
    for name in group:
        member = group[name]
        if hasattr(member, "is_sparse"):
            found[name] = _unstructured_array(member)  # type: ignore[arg-type]
        elif member._opened.canonical() in entered:
            warnings.warn(f"{group.uri}: {name!r} is left out of uns, because it is there under another name", stacklevel=2)
        else:
            found[name] = _unstructured(member, entered)  # pyright: ignore[reportArgumentType]
    found.update({key: value for key, value in group.metadata.items() if not key.startswith("soma_")})
    return found


def _unstructured_array(array: "Array") -> Any:
    import numpy

    if not array.is_sparse:
        return array[_VALUE][...]
    if _text(array, "soma_object_type") != "SOMADataFrame":
        return array.query(order="C").df[:]
    frame = _Frame.read(array, "uns", None).frame
    hint = _text(array, _HINT_KEY)
    if hint == "array_1d" and _COLUMN in frame:
        return numpy.asarray(list(frame[_COLUMN]))
    if hint == "array_2d":
        return numpy.asarray([list(frame[f"{_COLUMN}_{number}"]) for number in range(len(frame.columns))]).T
    return frame


def _text(array: "Array", key: str) -> Any:
    """Returns a text of the metadata, which other libraries may store as ASCII."""
    value = array.metadata.get(key)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class Batches(Sequence["Tuple[scipy.sparse.csr_matrix, pandas.DataFrame]"]):
    """Batches of the cells of an experiment: each is the part of a matrix, as compressed rows, and the cells' observations.
    A batch is read when it is looked up, so that a ``DataLoader`` of PyTorch with ``batch_size=None`` shares them between
    its workers, which are forked or spawned; :meth:`Group.batches` documents the parameters."""

    def __init__(
        self,
        experiment: "Group",
        measurement: Optional[str],
        size: int,
        *,
        layer: str,
        shuffle: bool,
        seed: Optional[int],
        obs_query: Optional[str],
        columns: Optional[Sequence[str]],
    ) -> None:
        import numpy

        if size < 1:
            raise ValueError(f"a batch has at least one cell, not {size}")
        self._measured = _measurement(experiment, measurement)
        self._layer, self._size = layer, size
        self._obs = _Frame.read(_array(experiment, "obs"), "obs", obs_query)
        if columns is not None:
            self._obs = self._obs._replace(frame=self._obs.frame[list(columns)])
        count = len(self._obs.frame)
        # Positions in the frame, batch by batch.
        self._order = numpy.arange(count)
        if shuffle:
            blocks = numpy.array_split(self._order, numpy.arange(_CELLS_TOGETHER, count, _CELLS_TOGETHER))
            numpy.random.default_rng(seed).shuffle(blocks)
            self._order = numpy.concatenate(blocks) if blocks else self._order
        self._matrix: Any = None

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def __getitem__(self, number: Any) -> Any:
        import numpy

        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} batches, and none has the number {number}")
        first = number % len(self) * self._size
        places = numpy.sort(self._order[first : first + self._size])
        rows = places if self._obs.rows is None else self._obs.rows[places]
        array = _array(self._measured, f"X/{self._layer}")
        chosen = self._obs._replace(rows=rows)
        matrix = self._opened_matrix(array)
        if matrix is None:
            return _matrix(array, chosen, None), self._obs.frame.iloc[places]
        stored, starts, columns = matrix
        return _some_rows(stored, starts, rows, columns), self._obs.frame.iloc[places]

    def _opened_matrix(self, array: "Array") -> Any:
        """Returns the matrix, where its rows begin, and the number of its columns, which all batches share; ``None`` for
        matrices that are not stored by rows."""
        if self._matrix is None:
            columns = len(_array(self._measured, "var").read(columns=[_JOINID]))
            stored = array._opened.matrix([self._obs.total, columns]) if array.is_sparse else None
            is_by_row = stored is not None and stored.outline()[0]
            self._matrix = (stored, stored.indptr(), columns) if is_by_row and stored is not None else ()
        return self._matrix or None

    def __getstate__(self) -> Dict[str, Any]:
        # A process that unpickles it opens the matrix again.
        return {**self.__dict__, "_matrix": None}

    def __repr__(self) -> str:
        return f"<tilefs.Batches of {self._measured.uri!r}: {len(self)} of {self._size} cells>"

