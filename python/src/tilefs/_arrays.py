"""Arrays and groups in process: NumPy arrays, Arrow tables, metadata."""

from __future__ import annotations

import difflib
import json
import math
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _aggregates, _anndata, _datasets, _display, _options, _queries, _selections, _subscripts, _tilefs, _wording
from ._attributes import Attribute
from ._errors import DamagedError, Error, NotFoundError, UsageError
from ._rows import Rows
from ._schema import Dimension, Ends, Enumeration, Schema, dimension

if TYPE_CHECKING:
    import anndata
    import numpy
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")

# How many names an error lists.
_MOST_NAMES = 20


def open(
    uri: Any,
    mode: str = "r",
    *,
    timestamp: Union[int, Tuple[Optional[int], Optional[int]], None] = None,
    at: Optional[_options.Time] = None,
    from_: Optional[_options.Time] = None,
    key: Optional[_options.Key] = None,
    cache_size: Union[int, str, None] = None,
    threads: Optional[int] = None,
    config: Any = None,
    anonymous: Optional[bool] = None,
    io_timeout: Optional[float] = None,
    disk_cache: Any = None,
    disk_cache_size: Union[int, str, None] = None,
    index_dir: Any = None,
    originals: Optional[bool] = None,
    attr: Optional[str] = None,
) -> "Union[Array, Group]":
    """Opens an array or a group: a path, or a URI with ``file://``, ``s3://``, ``gs://`` or ``azure://``.

    >>> dem = tilefs.open("dem.tdb")
    >>> print(dem["temp"][10, :3], tilefs.open("dem.tdb", at="2024-01-01")["temp"][95, 0])
    [19.   19.01 19.02] nan

    :param mode: ``"r"``: tilefs only reads
    :param timestamp: ``at`` as TileDB-Py has it: milliseconds since 1970, or a pair of these for ``(from_, at)``
    :param at: show the array as of this time: ISO 8601 in UTC (a date or a year means its end), milliseconds since 1970,
        or a date or time of Python; now by default
    :param from_: ignore everything written before this time
    :param key: the key of an encrypted array: the path of a file, or the key itself as ``bytes``
    :param cache_size: memory for decoded tiles and indexes in bytes, or text such as ``"1G"``; 256 MiB by default
    :param threads: how many threads decode; those of the first object that is opened count for the whole process
    :param config: settings of TileDB, above all for object stores: a mapping, a ``tiledb.Config``, or the path of a file.
        Those that only tune TileDB make no difference. Secrets in a mapping get into no pickle: another process, such as
        a worker of dask, takes them from its own environment.
    :param anonymous: do not sign requests to object stores
    :param io_timeout: how many seconds to retry a request to an object store
    :param disk_cache: a folder that keeps data from object stores, with at most ``disk_cache_size`` bytes
    :param index_dir: a folder that keeps the results of passes over all cells for later processes
    :param originals: read fragments that were consolidated, as long as they are there, in place of what was made of them
    :param attr: of an array, show one attribute: ``array[10:20]`` of a dense one has its values
    :raises NotFoundError: if there is neither an array nor a group
    :raises Error: if the schema cannot be read; the subclass says why
    """
    if mode != "r":
        raise UsageError(f"tilefs only reads: mode is 'r', not {mode!r}")
    from_, at = _options.times(timestamp, from_, at)
    taken = ("uri", "mode", "timestamp", "attr")
    options = {name: value for name, value in locals().items() if name not in (*taken, "taken") and value is not None}
    options = _options.with_settings(options)
    opened = _options.opened(_tilefs.open, uri, options)
    # Pin the time, so that a process that unpickles the array shows the same state.
    pinned = {**_options.to_pickle(options), "at": opened.time(), **({} if attr is None else {"attr": attr})}
    found = _viewed(_shown(opened, (_open_again, (str(uri), pinned))), attr)
    found._options = {**options, "at": opened.time()}
    return found


class _Reopened:
    """What was opened to unpickle an object. Others that are unpickled meanwhile share it, and so its cache."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened


_REOPENED: "weakref.WeakValueDictionary[str, _Reopened]" = weakref.WeakValueDictionary()


def _open_again(uri: str, options: Mapping[str, Any]) -> "Union[Array, Group]":
    name = repr((uri, sorted(options.items())))
    shared = _REOPENED.get(name)
    if shared is None:
        shared = _REOPENED[name] = _Reopened(open(uri, **options)._opened)
    found = _viewed(_shown(shared.opened, (_open_again, (uri, options))), options.get("attr"))
    found._shared = shared
    return found


def _shown(opened: Any, origin: Tuple[Any, Tuple[Any, ...]]) -> "Union[Array, Group]":
    return Array(opened, origin) if isinstance(opened, _tilefs.Array) else Group(opened, origin)


def _viewed(opened: "Union[Array, Group]", attr: Optional[str]) -> "Union[Array, Group]":
    """Returns an array that shows one attribute, if one is given."""
    if attr is not None:
        if not isinstance(opened, Array):
            raise UsageError(f"{opened.uri} is a group, and has no attribute {attr!r}")
        opened._view = opened._attribute(attr).name
    return opened


class _Opened:
    """The base of arrays and groups: it can be closed, and unpickling opens it again."""

    def __init__(self, opened: Any, origin: Tuple[Any, Tuple[Any, ...]] = (None, ())) -> None:
        if not isinstance(opened, (_tilefs.Array, _tilefs.Group)):
            raise UsageError(f"tilefs.open({str(opened)!r}) opens an array or a group")
        self._inner: Any = opened
        self._origin = origin
        self._uri: str = opened.uri()
        self._shared: Optional[_Reopened] = None
        # With what it was opened, also secrets, which get into no pickle.
        self._options: Optional[Dict[str, Any]] = None

    @property
    def _opened(self) -> Any:
        if self._inner is None:
            raise Error(f"{self._uri} is closed")
        return self._inner

    @property
    def uri(self) -> str:
        """The path or URI."""
        return self._uri

    @property
    def mode(self) -> str:
        """``"r"``, or ``"closed"``."""
        return "r" if self.isopen else "closed"

    @property
    def isopen(self) -> bool:
        """Whether it was not closed yet."""
        return self._inner is not None

    @property
    def metadata(self) -> "Metadata":
        """The metadata, by key."""
        return Metadata(self)

    #: The same, under TileDB-Py's name.
    meta = metadata

    def close(self) -> None:
        """Releases the memory and the files. Reads in progress finish; later ones raise an error."""
        self._inner = self._shared = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return self._origin


class Array(_Opened):
    """The state of an array at one time. ``array["temp"]`` is an attribute of a dense array, which is indexed like a
    NumPy array; :meth:`read` returns rows of a sparse one.

    >>> with tilefs.open("dem.tdb") as dem:
    ...     print(dem.shape, list(dem), dem.domain)
    (100, 200) ['temp', 'cell'] ((0, 99), (0, 199))
    """

    def __init__(self, opened: Any, origin: Tuple[Any, Tuple[Any, ...]] = (None, ())) -> None:
        super().__init__(opened, origin)
        self._schema: Optional[Schema] = None
        self._dimensions: Optional[Tuple[Dimension, ...]] = None
        self._enumerations: Dict[str, Enumeration] = {}
        self._labels: Dict[str, Tuple[Array, int]] = {}
        self._attributes: Optional[Dict[str, Attribute]] = None
        self._shape: Optional[Tuple[int, ...]] = None
        self._columns: Optional[Dict[str, str]] = None
        # The attribute that is shown, if `open` was told one.
        self._view: Optional[str] = None

    @property
    def is_sparse(self) -> bool:
        """Whether the array stores only the cells that were written."""
        return bool(self._opened.is_sparse())

    @property
    def schema(self) -> Schema:
        """The whole schema: a dictionary as in ``schema.json`` of a mount, with the attributes of TileDB-Py's schemas."""
        if self._schema is None:
            self._schema = Schema(self, json.loads(self._opened.schema_json()))
        return self._schema

    @property
    def attributes(self) -> "Mapping[str, Attribute]":
        """The attributes, by name."""
        if self._attributes is None:
            outlines = self._opened.attributes()
            self._attributes = {one[0]: Attribute(self, number, *one) for number, one in enumerate(outlines)}
        return self._attributes

    @property
    def dimensions(self) -> Tuple[Dimension, ...]:
        """The dimensions, in order. The domain is the current domain, if the array has one."""
        if self._dimensions is None:
            self._dimensions = tuple(dimension(self, *one) for one in self._opened.dimensions())
        return self._dimensions

    @property
    def domain(self) -> Ends:
        """The lowest and the highest coordinate of each dimension, both included: a tuple with the words of TileDB-Py's
        domains, such as ``dim(0)`` and ``shape``."""
        return Ends(self)

    @property
    def shape(self) -> Tuple[int, ...]:
        """The number of cells along each axis of a dense array."""
        if self._shape is None:
            if self.is_sparse:
                rows = "array[...], array.query(attrs=[...])[...], or array.read(columns=[...])"
                raise UsageError(f"{self.uri} is sparse: read its rows, with {rows}")
            self._shape = tuple(self._opened.shape())
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._opened.dimensions())

    @property
    def nonempty(self) -> Optional[Tuple[slice, ...]]:
        """The smallest box of positions of a dense array that contains all written cells; ``None`` if there are none.
        ``array["temp"][array.nonempty]`` reads it."""
        box = self._opened.non_empty_box()
        return box and tuple(slice(first, last + 1) for first, last in box)

    @property
    def time(self) -> int:
        """The time whose state is read, in milliseconds since 1970."""
        return int(self._opened.time())

    @property
    def timestamp_range(self) -> Tuple[int, int]:
        """The first and the last time whose writes are read, in milliseconds since 1970."""
        return (self.schema["time"]["from_ms"] or 0, self.time)

    def nonempty_domain(self) -> Optional[Tuple[Tuple[Any, Any], ...]]:
        """Returns the lowest and the highest coordinate of written cells along each dimension, as recorded by the
        writers; ``None`` if there are none. Texts are ``bytes``, as in TileDB-Py."""
        ends = self._opened.non_empty_box() if not self.is_sparse else self.schema.get("non_empty_domain")
        return ends and tuple(
            _subscripts.coordinates(dimension, pair, is_position=not self.is_sparse)
            for dimension, pair in zip(self.dimensions, ends)
        )

    @property
    def nattr(self) -> int:
        """The number of attributes that are shown."""
        return len(self.attributes) if self._view is None else 1

    @property
    def attr_names(self) -> List[str]:
        """The names of the attributes."""
        return list(self.attributes)

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """The type of the cells of the only attribute, or of the one that is shown."""
        return self._only_attribute("dtype").dtype

    def attr(self, attribute: Union[str, int]) -> "Attribute":
        """Returns an attribute by its name or number."""
        if isinstance(attribute, str):
            return self._attribute(attribute)
        return _numbered(self.uri, "attribute", attribute, list(self.attributes.values()))

    def dim(self, dimension: Union[str, int]) -> Dimension:
        """Returns a dimension by its name or number."""
        if not isinstance(dimension, str):
            return _numbered(self.uri, "dimension", dimension, self.dimensions)
        # Of TileDB-Py, a dimension without a name has none.
        found = next((one for one in self.dimensions if one.name == (dimension or "__dim_0")), None)
        if found is None:
            raise KeyError(_no_such(self.uri, "dimension", dimension, [one.name for one in self.dimensions]))
        return found

    def enum(self, name: str) -> Enumeration:
        """Returns an enumeration by its name; :attr:`Attribute.enumeration` is that of an attribute."""
        if name not in self._enumerations:
            try:
                self._enumerations[name] = Enumeration(name, *self._opened.enumeration(name))
            except NotFoundError:
                known = [one.enumeration for one in self.attributes.values() if one.enumeration is not None]
                if name in known:
                    raise
                raise KeyError(_no_such(self.uri, "enumeration", name, known)) from None
        return self._enumerations[name]

    def query(
        self,
        attrs: Union[str, Sequence[Union[str, int]], None] = None,
        cond: Optional[str] = None,
        dims: Union[bool, Sequence[str], None] = None,
        *,
        coords: Optional[bool] = None,
        index_col: Union[bool, Sequence[str], None] = True,
        order: Optional[str] = None,
        use_arrow: Optional[bool] = None,
        return_arrow: bool = False,
        return_incomplete: bool = False,
    ) -> "_queries.Query":
        """Chooses what is read; a subscript of the result selects cells and reads them: ``array.query(attrs=["a"],
        cond="a > 3 and s in ['x', 'y']")[10:20]``, or with ``.multi_index[...]`` or ``.df[...]``.

        >>> cells = tilefs.open("cells.tdb")
        >>> cells.query(attrs=["kind"], cond="kind == 'B cell' and score > 31.5").df[:]
             id    kind
        0  2982  B cell
        1  2991  B cell

        :param attrs: the attributes, by name or number; all by default. A text that is no name is the condition:
            ``array.query("score > 3")``
        :param cond: a condition on attributes and dimensions: comparisons with numbers, text and ``None``, lists after
            ``in``, joined by ``and``, ``or`` and ``not``. ``attr("name")`` and ``dim("name")`` are fields whose names
            are no identifiers. Rows of a sparse array for which it does not hold are left out; cells of a dense array
            have the fill value.
        :param dims: the dimensions whose coordinates are returned; all of a sparse array and none of a dense one by
            default
        :param coords: whether the coordinates of all dimensions are returned
        :param index_col: for DataFrames, the columns of the index: names, ``None``, or ``True`` for those that
            ``tiledb.from_pandas`` noted
        :param order: ``"C"`` (row-major), ``"F"`` (column-major), ``"G"`` (the array's own) or ``"U"`` (any, for sparse
            arrays)
        :param use_arrow: makes no difference: DataFrames are always made from Arrow
        :param return_arrow: for ``.df``, return a table of pyarrow
        :param return_incomplete: for ``.multi_index`` and ``.df`` of sparse arrays, return the rows part by part: an object
            to iterate over, in memory that does not grow with their number unless they have to be sorted
        """
        if isinstance(attrs, str) and attrs not in self.attributes and cond is None and not attrs.isidentifier():
            attrs, cond = None, attrs
        return _queries.Query(
            self,
            attrs=attrs,
            cond=cond,
            dims=dims,
            coords=coords,
            index_col=index_col,
            order=order,
            return_arrow=return_arrow,
            return_incomplete=return_incomplete,
        )

    def subarray(
        self,
        selection: Any,
        attrs: Optional[Sequence[Union[str, int]]] = None,
        cond: Optional[str] = None,
        coords: Union[bool, Sequence[str], None] = None,
        order: Optional[str] = None,
    ) -> Any:
        """Returns cells as ``array.query(attrs, cond, order=order)[selection]`` does."""
        return self.query(attrs, cond, coords, order=order)[selection]

    def unique_dim_values(self, dim: Optional[str] = None) -> Any:
        """Returns the coordinates of written cells along a dimension of a sparse array, each once, in their order; by the
        names of all dimensions if none is given.

        >>> print(len(tilefs.open("cells.tdb").unique_dim_values("id")))
        1000
        """
        if not self.is_sparse:
            raise UsageError(f"{self.uri} is dense: all coordinates of its domain have cells")
        names = [one.name for one in self.dimensions] if dim is None else [self.dim(dim).name]
        found = _aggregates.unique(_queries.Query(self), names)
        values = {name: tuple(found.get(name, ())) for name in names}
        return values if dim is None else values[names[0]]

    @property
    def multi_index(self) -> "_queries.MultiIndex":
        """Cells of several ranges for each dimension, both ends included: ``array.multi_index[2:5, [7, 9]]``."""
        return _queries.MultiIndex(_queries.Query(self))

    @property
    def df(self) -> "_queries.Frames":
        """Cells as a DataFrame with the coordinates of each, of ranges as for :attr:`multi_index`."""
        return _queries.Frames(_queries.Query(self, coords=True))

    def label_index(self, labels: Sequence[str]) -> "_queries.LabelIndex":
        """Cells of a dense array by dimension labels: ``array.label_index(["time"])[0.5:1.5]`` takes labels in place of
        the coordinates of the dimensions that have them, both ends included, and returns them, too."""
        return _queries.LabelIndex(_queries.Query(self), labels)

    def __getitem__(self, key: Any) -> Any:
        """Returns an attribute by its name, or cells by their coordinates, as TileDB-Py does: ``array[10:12, 3]``. The
        cells are a dictionary of NumPy arrays by attribute (and dimension, if the array is sparse), or the values if a
        dense array has one attribute without a name. Slices end before their last coordinate if it is an integer. Unlike
        in TileDB-Py, a negative number is a coordinate where the domain has negative ones: of ``(-5, 4)``, ``array[-5]``
        is the first cell. Elsewhere it counts from the end."""
        if not isinstance(key, str):
            return _queries.Query(self, has_labels=True)[key]
        return self._attribute(key)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "numpy.ndarray[Any, Any]":
        if self.is_sparse:
            raise TypeError(f"{self.uri} is sparse, and NumPy has no array of that: array[:] has its rows by column")
        return self._only_attribute("array of NumPy").__array__(dtype, copy)

    def __len__(self) -> int:
        """Returns the number of coordinates of the first dimension of a dense array."""
        if self.is_sparse:
            raise TypeError(f"{self.uri} is sparse: len(array.read()) is the number of its rows")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def _only_attribute(self, what: str) -> "Attribute":
        if self.nattr != 1:
            names = ", ".join(self.attributes)
            raise TypeError(f"{self.uri} has {self.nattr} attributes and no {what}; array[name] is one of them: {names}")
        return next(iter(self.attributes.values())) if self._view is None else self._attribute(self._view)

    def _attribute(self, name: str) -> "Attribute":
        try:
            return self.attributes[name]
        except KeyError:
            raise KeyError(_no_such(self.uri, "attribute", name, self.attributes)) from None

    def _label(self, name: str) -> "Tuple[Array, int]":
        """Opens the array of a dimension label; returns it and the number of its attribute with the label."""
        if name not in self._labels:
            opened, number = self._opened.open_label(name)
            self._labels[name] = (Array(opened, (_open_label, (self, name))), number)
        return self._labels[name]

    def _columns_of_tables(self) -> Dict[str, str]:
        """Returns the names in tables of Arrow, which gives one to a field without a name."""
        import pyarrow

        if self._columns is None:
            names = [*(one.name for one in self.dimensions), *self.attributes]
            self._columns = dict(zip(names, pyarrow.schema(self.read()).names))
        return self._columns

    def _ipython_key_completions_(self) -> List[str]:
        return list(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def read(
        self,
        rows: Any = None,
        columns: Optional[Sequence[str]] = None,
        *,
        cond: Optional[str] = None,
        order: str = "array",
        as_stored: bool = False,
    ) -> "Rows":
        """Returns rows of a sparse array, or of a dense one with one dimension. Nothing is read before the rows are
        consumed.

        >>> tilefs.open("cells.tdb").read(rows=[3, 6], columns=["id", "kind"]).to_pandas()
           id    kind
        0   3  B cell
        1   6  größer

        :param rows: which rows: a mapping from dimensions to ranges, a tuple of ranges in the order of the dimensions,
            or a range of the first dimension. A range is a coordinate, a slice whose ends are both included, as in
            pandas' ``loc``, or a list of these. A ``datetime64`` is an instant, as in NumPy; a ``date`` of Python and
            text such as ``"2020-01"`` are all of that time. Text alone is a selection as in ``slice/`` of a mount.
        :param columns: names of dimensions and attributes, in the wanted order; all by default
        :param cond: a condition, as for :meth:`query`: other rows are left out. ``duckdb.sql("FROM rows")`` and others then
            take only these.
        :param order: ``"array"``, the array's own and fastest order, or ``"row"``, by coordinates
        :param as_stored: columns have codes instead of labels, counts instead of dates, and bytes instead of text: what is
            too far away for dates of Arrow, or is not UTF-8, can be read so. ``array.attr(name).dtype`` has the unit.
        """
        if order not in ("array", "row"):
            raise ValueError(f'order is "array" or "row", not {order!r}')
        if isinstance(columns, str):
            columns = [columns]
        selection = _selections.text_of(rows, {one.name: one.dtype for one in self.dimensions})
        try:
            if as_stored and columns is None:
                columns = list(self._columns_of_tables().values())
            given = None if columns is None else list(columns)
            return Rows(self, selection, given, order, as_stored=as_stored, condition=cond)
        except UsageError as error:
            known = [*(one.name for one in self.dimensions), *self.attributes]
            unknown = [one for one in columns or () if one not in known and f'"{one}"' in str(error)]
            if unknown:
                raise UsageError(_no_such(self.uri, "column", unknown[0], known)) from None
            raise

    def head(self, count: int = 5) -> "pyarrow.Table":
        """Returns the first rows of a sparse array, or of a dense one with one dimension, as a table of pyarrow."""
        return self.read().head(count)

    def sample(self, count: int, *, columns: Optional[Sequence[str]] = None, seed: Optional[int] = None) -> "pyarrow.Table":
        """Returns random rows as a table of pyarrow; see :meth:`Rows.sample`.

        >>> print(tilefs.open("cells.tdb").sample(3, columns=["id"], seed=1).num_rows)
        3
        """
        return self.read(columns=columns).sample(count, seed=seed)

    def dataset(self) -> "_datasets.Dataset":
        """Returns the rows in the form of pyarrow's datasets, whose ``scanner(columns, filter)`` reads only what it needs.

        >>> import pyarrow.compute as pc
        >>> dataset = tilefs.open("cells.tdb").dataset()
        >>> print(dataset.to_table(columns=["id"], filter=pc.field("score") > 31.5).num_rows)
        7
        """
        return _datasets.Dataset(self)

    def to_arrow(self) -> "pyarrow.Table":
        """Returns all cells as a table of pyarrow, those of a dense array with their coordinates."""
        return _queries.Query(self, coords=True).to_arrow()

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns all cells as a DataFrame: ``array.df[:]``."""
        return _queries.Query(self, coords=True).to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Returns all cells as a DataFrame of Polars. :func:`tilefs.scan_polars` reads only what is needed."""
        return _queries.Query(self, coords=True).to_polars()

    def to_numpy(self) -> Any:
        """Returns all cells as arrays of NumPy: ``array[:]``."""
        return self[:]

    def __repr__(self) -> str:
        if self._inner is None:
            return f"<tilefs.Array {self.uri!r}, closed>"
        return _display.array_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.array_page(self)


def _open_label(array: Array, name: str) -> Array:
    return array._label(name)[0]


class Group(_Opened, Mapping[str, Union[Array, "Group"]]):
    """A group: a mapping from the names of its members to arrays and groups. A member is opened when it is looked up.

    >>> group = tilefs.open("group")
    >>> print(list(group), group["dem"]["temp"].shape, "cells" in group)
    ['cells', 'dem'] (100, 200) True
    """

    def _members(self) -> Dict[str, int]:
        numbers: Dict[str, int] = {}
        for number, (name, *_) in enumerate(self._opened.members()):
            # If several members have the same name, the first one wins.
            numbers.setdefault(name, number)
        return numbers

    @property
    def members(self) -> Tuple[Tuple[str, Optional[str], str], ...]:
        """The name, the kind (``"array"``, ``"group"``, or ``None`` if the group does not store it) and the URI of each
        member."""
        return tuple((name, kind, uri) for name, kind, uri, _ in self._opened.members())

    def __getitem__(self, name: str) -> Union[Array, "Group"]:
        """Opens a member; ``group["ms/RNA/X/data"]`` opens a member of members."""
        members = self._members()
        if not isinstance(name, str):
            raise KeyError(_no_such(self.uri, "member", name, members) + ": members are named by text")
        if name in members:
            return _shown(self._opened.open_member(members[name]), (_open_member, (self, name)))
        # The names of members may contain slashes, too: the longest one that fits is meant.
        for end in (at for at in range(len(name) - 1, 0, -1) if name[at] == "/"):
            if name[:end] in members:
                member = self[name[:end]]
                if isinstance(member, Group):
                    return member[name[end + 1 :]]
                raise KeyError(f"{member.uri} is an array and has no members: {name!r}")
        raise KeyError(_no_such(self.uri, "member", name, members))

    def __contains__(self, name: object) -> bool:
        """Whether there is a member of this name; looks up members of members as indexing does."""
        try:
            return isinstance(name, str) and (name in self._members() or "/" in name and self[name] is not None)
        except KeyError:
            return False

    def to_anndata(
        self,
        measurement: Optional[str] = None,
        *,
        X: Optional[str] = "data",
        layers: Union[Sequence[str], bool] = (),
        obs_query: Optional[str] = None,
        var_query: Optional[str] = None,
        backed: bool = False,
    ) -> "anndata.AnnData":
        """Reads an experiment of TileDB-SOMA into memory. This needs anndata, pandas, SciPy and pyarrow.

        :param measurement: the name of a measurement; the only one by default
        :param X: the matrix that becomes ``X``; ``None`` for none
        :param layers: the names of other matrices, which become layers; ``True`` for all
        :param obs_query: a condition on the cells, as for :meth:`Array.query`: ``"tissue == 'lung' and n > 500"``
        :param var_query: a condition on the variables
        :param backed: leave ``X`` and the layers where they are: subscripts of these, and ``to_memory()`` of a part, read
            the rows that they need. This needs fsspec and zarr, too.
        """
        return _anndata.to_anndata(
            self, measurement, X=X, layers=layers, obs_query=obs_query, var_query=var_query, backed=backed
        )

    def batches(
        self,
        size: int,
        measurement: Optional[str] = None,
        *,
        layer: str = "data",
        shuffle: bool = False,
        seed: Optional[int] = None,
        obs_query: Optional[str] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> "_anndata.Batches":
        """Returns batches of the cells of an experiment of TileDB-SOMA, for training: each is the part of a matrix, as
        compressed rows of SciPy, and the observations of its cells as a DataFrame.

        :param size: the number of cells in a batch; the last one may have fewer
        :param measurement: the name of a measurement; the only one by default
        :param layer: the matrix
        :param shuffle: take the cells in a random order, of which 64 consecutive ones stay together, so that each batch
            reads few tiles
        :param seed: what the random order is made from
        :param obs_query: a condition on the cells, as for :meth:`Array.query`
        :param columns: the columns of the observations; all by default
        """
        return _anndata.Batches(
            self, measurement, size, layer=layer, shuffle=shuffle, seed=seed, obs_query=obs_query, columns=columns
        )

    def _ipython_key_completions_(self) -> List[str]:
        return list(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __len__(self) -> int:
        return len(self._members())

    def __repr__(self) -> str:
        if self._inner is None:
            return f"<tilefs.Group {self.uri!r}, closed>"
        return _display.group_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.group_page(self)


def _open_member(group: Group, name: str) -> Union[Array, Group]:
    return group[name]


# How TileDB-Py stores arrays of NumPy: the numbers, and the shape if there are several axes, under keys that begin so.
_NUMBERS, _SHAPE = "__np_flat_", "__np_shape_"


class Metadata(Mapping[str, Any]):
    """The metadata of an array or a group, with the types that TileDB-Py gives: a number is one of NumPy, or Python's
    ``int`` if it has no sign; several are a tuple; an array of NumPy that TileDB-Py wrote is one. Text is ``str``, ASCII
    and other bytes are ``bytes``, and a key without a value has ``()``. Dates are NumPy's, because Python's do not have all units.

    >>> dict(tilefs.open("dem.tdb").metadata)
    {'title': 'A demonstration: temperatures on a grid', 'units': '°C'}
    """

    def __init__(self, owner: _Opened) -> None:
        self._owner = owner

    def __getitem__(self, key: str) -> Any:
        found = self._stored(key)
        if found is None:
            return self._array(key)
        if isinstance(found, (str, bytes)):
            return found
        if len(found) == 1 and found.dtype.kind in "ifmM":
            return found[0]
        listed = tuple(found) if found.dtype.kind in "mM" else tuple(found.tolist())
        return listed[0] if len(listed) == 1 else listed

    def _stored(self, key: str) -> Any:
        """Returns text, bytes, or the numbers of a key; ``None`` if there is no such key."""
        import numpy

        found = self._owner._opened.metadata_value(key.encode("utf-8", "surrogateescape"))
        if found is None:
            return None
        value, dtype, _ = found
        return value if dtype is None else numpy.frombuffer(value, dtype=dtype).copy()

    def _array(self, key: str) -> Any:
        """Returns an array of NumPy."""
        import numpy

        found = self._owner._opened.metadata_value((_NUMBERS + key).encode("utf-8", "surrogateescape"))
        if found is None:
            raise KeyError(_no_such(self._owner.uri, "metadata key", key, self))
        value, dtype, datatype = found
        stored = value.encode() if isinstance(value, str) else value
        # Texts of NumPy have four bytes for each letter.
        is_text = datatype == "STRING_UTF8" and len(stored) % 4 == 0
        numbers = numpy.frombuffer(stored, dtype or ("<U1" if is_text else "S1")).copy()
        shape = self._stored(_SHAPE + key)
        if not isinstance(shape, numpy.ndarray):
            return numbers
        lengths = tuple(shape.tolist())
        are_lengths = shape.dtype.kind in "iu" and all(length >= 0 for length in lengths)
        if not are_lengths or math.prod(lengths) != len(numbers):
            raise DamagedError(f"{self._owner.uri}: the metadata {key} have {len(numbers)} numbers, and the shape {lengths}")
        return numbers.reshape(lengths)

    def _ipython_key_completions_(self) -> List[str]:
        return list(self)

    def __iter__(self) -> Iterator[str]:
        stored = [key.decode("utf-8", "surrogateescape") for key in self._owner._opened.metadata_keys()]
        names = (key[len(_NUMBERS) :] if key.startswith(_NUMBERS) else key for key in stored if not key.startswith(_SHAPE))
        return iter(dict.fromkeys(names))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        lines = [f"  {_wording.plain(key)}: {_wording.value(self[key])}" for key in list(self)[:_MOST_NAMES]]
        more = len(self) - len(lines)
        lines += [f"  and {more} more"] if more > 0 else []
        return "\n".join([f"<tilefs.Metadata of {self._owner.uri!r}: {_wording.counted(len(self), 'key')}>", *lines])


def _numbered(uri: str, kind: str, number: int, found: Sequence[T]) -> T:
    """Returns an attribute or a dimension by its number."""
    try:
        return found[number]
    except IndexError:
        raise IndexError(f"{uri} has {len(found)} {kind}s, and none has the number {number}") from None


def _no_such(uri: str, kind: str, name: Any, known: Iterable[str]) -> str:
    """Returns the sentence that there is no member or attribute of this name, and what else may be meant."""
    near = difflib.get_close_matches(str(name), known, 1)
    others = list(known)
    listed = ", ".join(others[:_MOST_NAMES]) + (f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else "")
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"{uri} has no {kind} {name!r}; {meant}it has {listed or 'none'}"
