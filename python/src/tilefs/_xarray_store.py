"""The arrays of a group in `zarr/` of a tree, as variables of xarray.

The metadata and the chunks are files of the tree; this file reads them without zarr, which takes longer to import and to
call than such a group to read. The tree has few of Zarr's codecs: numbers as they are, and texts after their lengths.
Boxes of attributes of dense arrays that are stored as Zarr has them are read from the array, so that whatever is not
needed of a chunk is not copied.
"""

from __future__ import annotations

import asyncio
import base64
import difflib
import json
import math
import os
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy
from xarray import Variable
from xarray.backends import AbstractDataStore, BackendArray
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from . import _options, _tilefs
from ._arrays import Array, open
from ._errors import NotFoundError

#: The folder of the tree.
_FOLDER = "zarr"
#: The file that describes a group or an array.
_METADATA = "zarr.json"
#: How many chunks are read at the same time.
_CHUNKS_AT_ONCE = min(32, (os.cpu_count() or 1) + 4)


class Source:
    """The tree of an array or a group, and the attributes of an array that may be read directly. Unpickling opens them
    again."""

    def __init__(self, uri: str, options: Dict[str, Any]) -> None:
        self._origin = (uri, options)
        self.tree = _options.opened(_tilefs.Tree, uri, options)
        opened = open(uri, **options)
        self._array = opened if isinstance(opened, Array) and not opened.is_sparse else None

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        uri, options = self._origin
        return Source, (uri, _options.to_pickle(options))

    def attribute(self, name: str) -> Optional[Any]:
        """Returns an attribute of a dense array whose cells have one value each, and are stored as Zarr has them."""
        found = None if self._array is None else self._array.attributes.get(name)
        if found is None or found.nullable or found.enumeration is not None or found.isvar or found._cell_shape:
            return None
        return found

    def metadata(self, folder: str) -> Dict[str, Any]:
        """Returns what is said of the group or the array in a folder."""
        return json.loads(self.tree.read(f"{folder}/{_METADATA}"))  # type: ignore[no-any-return]

    def members(self, folder: str, metadata: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
        """Returns what is said of the members of a group, by name. The group's own metadata have it all, unless that
        means counting rows."""
        consolidated = metadata.get("consolidated_metadata")
        if consolidated is not None:
            return {path: one for path, one in consolidated["metadata"].items() if "/" not in path}
        found = {}
        for name, is_folder in self.tree.names(folder) or ():
            if is_folder:
                try:
                    found[name] = self.metadata(f"{folder}/{name}")
                except FileNotFoundError:
                    # A folder of something else.
                    continue
        return found


# How many groups an error names.
_MOST_NAMES = 20


def _no_such_group(source: Source, group: str) -> NotFoundError:
    """Returns the error that there is no such group, with the groups that there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = [path[1:] for path, _ in islice(GroupStore(source, "").groups(), _MOST_NAMES + 2) if path != "/"]
    near = difflib.get_close_matches(group, known, 1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(known[:_MOST_NAMES]) + ", ..." * (len(known) > _MOST_NAMES)
    return NotFoundError(f"{source._origin[0]} has no group {group!r}; {meant}it has {listed or 'none'}")


class GroupStore(AbstractDataStore):
    """A group of the tree."""

    def __init__(self, source: Source, group: str) -> None:
        names = [name for name in group.split("/") if name]
        self._source, self._folder = source, "/".join([_FOLDER, *names])
        self._is_root = not names
        try:
            self._metadata = source.metadata(self._folder)
        except NotFoundError:
            if self._is_root:
                raise
            self._metadata = {}
        if names and self._metadata.get("node_type") != "group":
            raise _no_such_group(source, "/".join(names))
        self._members = source.members(self._folder, self._metadata)

    def groups(self, entered: Optional[Set[str]] = None) -> Iterator[Tuple[str, "GroupStore"]]:
        """Returns this group and all groups in it by their paths, which begin with a slash. Names of groups may double at each
        level, so a group is under the first of its names only."""
        entered = set() if entered is None else entered
        entered.update(path for path in [self._source.tree.group(self._folder)] if path is not None)
        yield "/", self
        for name, metadata in self._members.items():
            if metadata["node_type"] == "group":
                if self._source.tree.group(f"{self._folder}/{name}") in entered:
                    warnings.warn(f"the group {name!r} is left out, because it is there under another name", stacklevel=2)
                    continue
                own = GroupStore(self._source, f"{self._folder[len(_FOLDER):]}/{name}")
                for path, store in own.groups(entered):
                    yield f"/{name}{path.rstrip('/')}", store

    def get_variables(self) -> Dict[str, Variable]:
        return {name: self._variable(name, one) for name, one in self._members.items() if one["node_type"] == "array"}

    def get_attrs(self) -> Dict[str, Any]:
        return {key: value for key, value in self._metadata.get("attributes", {}).items() if not key.lower().startswith("_nc")}

    def _variable(self, name: str, metadata: Mapping[str, Any]) -> Variable:
        values: Any = ChunkedArray(self._source, f"{self._folder}/{name}", Layout.of(metadata))
        attribute = self._source.attribute(name) if self._is_root else None
        # The domain may be shown in part.
        if attribute is not None and attribute.shape == values.shape and attribute._value_dtype == values.dtype:
            values = AttributeArray(values, name)
        dimensions, chunk = metadata["dimension_names"], values.layout.chunk
        encoding = {"chunks": chunk, "preferred_chunks": dict(zip(dimensions, chunk))}
        if values.dtype.kind == "T":
            encoding["dtype"] = values.dtype
        attributes = dict(metadata.get("attributes", {}))
        if "_FillValue" in attributes:
            attributes["_FillValue"] = _fill_value(attributes["_FillValue"], values.dtype)
        return Variable(dimensions, indexing.LazilyIndexedArray(values), attributes, encoding)


class Layout(NamedTuple):
    """What Zarr says of the values of an array."""

    shape: Tuple[int, ...]
    #: The lengths of a chunk.
    chunk: Tuple[int, ...]
    dtype: "numpy.dtype[Any]"
    #: Whether each cell of a chunk is preceded by its length.
    has_lengths: bool

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Layout":
        kind = metadata["data_type"]
        shape = tuple(metadata["shape"])
        chunk = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        return cls(shape, chunk, _dtype(kind), kind in ("string", "variable_length_bytes"))

    def cells(self, chunk: bytes) -> "numpy.ndarray[Any, Any]":
        """Returns the cells of a chunk."""
        if not self.has_lengths:
            return numpy.frombuffer(chunk, self.dtype).reshape(self.chunk)
        is_text = self.dtype.kind == "T" or self.dtype.metadata is not None
        cells = numpy.empty(math.prod(self.chunk), self.dtype)
        cells[:] = list(_cells_after_lengths(chunk, is_text))
        return cells.reshape(self.chunk)


def _dtype(kind: Any) -> "numpy.dtype[Any]":
    """Returns NumPy's type for one of Zarr."""
    if kind == "string":
        types: Any = getattr(numpy, "dtypes", None)
        name: Any = types.StringDType() if hasattr(types, "StringDType") else create_vlen_dtype(str)
    elif kind == "variable_length_bytes":
        name = object
    elif isinstance(kind, str):
        name = numpy.dtype(kind).newbyteorder("<")
    elif kind["name"] == "numpy.datetime64":
        name = f"<M8[{kind['configuration']['scale_factor']}{kind['configuration']['unit']}]"
    else:
        name = f"S{kind['configuration']['length_bytes']}"
    found: "numpy.dtype[Any]" = numpy.dtype(name)
    return found


def _cells_after_lengths(chunk: bytes, is_text: bool) -> Iterator[Any]:
    """Yields the cells of a chunk that has their number and then each after its length, as Zarr's `vlen-utf8` says."""
    number = struct.Struct("<I").unpack_from
    (count,), at = number(chunk), 4
    for _ in range(count):
        (length,) = number(chunk, at)
        start, at = at + 4, at + 4 + length
        yield chunk[start:at].decode() if is_text else chunk[start:at]


def _fill_value(value: Any, dtype: "numpy.dtype[Any]") -> Any:
    """Returns the marker of missing values. Those of floats are the bytes of a double in base 64, as xarray writes them."""
    return struct.unpack("<d", base64.b64decode(value))[0] if dtype.kind == "f" else value


class ChunkedArray(BackendArray):
    """The values of an array, whose chunks are files."""

    def __init__(self, source: Source, folder: str, layout: Layout) -> None:
        self.source, self._folder, self.layout = source, folder, layout
        self.shape, self.dtype = layout.shape, layout.dtype

    def __getitem__(self, key: Any) -> Any:
        read = self._points if isinstance(key, indexing.VectorizedIndexer) else self._box
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.VECTORIZED, read)

    async def async_getitem(self, key: Any) -> Any:
        return await asyncio.to_thread(self.__getitem__, key)

    def _box(self, key: Tuple[Any, ...]) -> Any:
        """Returns the cells at positions: of each axis, an integer, a slice, or a list of positions."""
        axes = [_positions(one, size) for one, size in zip(key, self.shape)]
        found = numpy.empty([len(positions) for positions in axes], self.dtype)
        pieces = [list(_pieces(positions, length)) for positions, length in zip(axes, self.layout.chunk)]

        def copy(numbers: Tuple[int, ...], cells: "numpy.ndarray[Any, Any]", own: Sequence["_Piece"]) -> None:
            found[_open_mesh([piece.to for piece in own])] = cells[_open_mesh([piece.from_ for piece in own])]

        self._read({tuple(piece.chunk for piece in own): own for own in product(*pieces)}, copy)
        # With an ellipsis, a single cell stays an array of this type.
        shaping = [0 if isinstance(one, (int, numpy.integer)) else slice(None) for one in key]
        return found[tuple([*shaping, ...])]

    def _points(self, key: Tuple[Any, ...]) -> Any:
        """Returns the cells at points, whose positions along each axis are an array; the axes of slices come last."""
        slices = [number for number, one in enumerate(key) if isinstance(one, slice)]
        arrays = []
        for number, (one, size) in enumerate(zip(key, self.shape)):
            if isinstance(one, slice):
                behind = len(slices) - 1 - slices.index(number)
                arrays.append(_positions(one, size).reshape(-1, *[1] * behind))
            else:
                arrays.append(_positions(one, size).reshape(*numpy.shape(one), *[1] * len(slices)))
        points = numpy.broadcast_arrays(*arrays)
        flat = [positions.ravel() for positions in points]
        found = numpy.empty(points[0].size, self.dtype)
        numbers = numpy.array([positions // length for positions, length in zip(flat, self.layout.chunk)])
        chunks, of_points = numpy.unique(numbers, axis=1, return_inverse=True)
        of_points = of_points.ravel()
        order = numpy.argsort(of_points, kind="stable")
        ends = numpy.cumsum(numpy.bincount(of_points, minlength=chunks.shape[1]))

        def copy(chunk: Tuple[int, ...], cells: "numpy.ndarray[Any, Any]", own: Any) -> None:
            found[own] = cells[tuple(positions[own] % length for positions, length in zip(flat, self.layout.chunk))]

        wanted = zip(map(tuple, chunks.T.tolist()), numpy.split(order, ends[:-1]))
        self._read(dict(wanted), copy)
        return found.reshape(points[0].shape)

    def _read(self, wanted: Mapping[Tuple[int, ...], Any], copy: Callable[..., None]) -> None:
        """Reads chunks by their numbers, and calls ``copy`` with the numbers, the cells and what is wanted of each."""
        cancellation = _tilefs.Cancellation()

        def read(numbers: Tuple[int, ...], own: Any, *cancelled: Any) -> None:
            path = "/".join([self._folder, "c", *map(str, numbers)])
            copy(numbers, self.layout.cells(self.source.tree.read(path, None, None, *cancelled)), own)

        if len(wanted) < 2:
            for one in wanted.items():
                read(*one)
            return
        with ThreadPoolExecutor(min(_CHUNKS_AT_ONCE, len(wanted)), "tilefs-chunks") as threads:
            reads = [threads.submit(read, *one, cancellation) for one in wanted.items()]
            try:
                for done in reads:
                    done.result()
            except BaseException:
                # Signals, too: the reads end soon, and those that have not begun do not begin.
                cancellation.cancel()
                threads.shutdown(wait=False, cancel_futures=True)
                raise


class _Piece(NamedTuple):
    """The positions along an axis that are in one chunk: where they are in it, and among all wanted ones."""

    chunk: int
    from_: Any
    to: Any


def _positions(key: Any, size: int) -> "numpy.ndarray[Any, Any]":
    """Returns the positions of an integer, a slice or a list along an axis."""
    if isinstance(key, slice):
        return numpy.arange(*key.indices(size))
    return numpy.atleast_1d(key) % max(size, 1)


def _pieces(positions: "numpy.ndarray[Any, Any]", length: int) -> Iterator[_Piece]:
    chunks = positions // length
    # Positions may come in any order, and several times.
    order = numpy.argsort(chunks, kind="stable")
    ends = numpy.flatnonzero(numpy.diff(chunks[order])) + 1
    for to in numpy.split(order, ends) if len(order) else ():
        chunk = int(chunks[to[0]])
        yield _Piece(chunk, _as_slice(positions[to] - chunk * length), _as_slice(to))


def _as_slice(positions: "numpy.ndarray[Any, Any]") -> Any:
    """Returns positions as a slice if they follow each other: NumPy copies those faster."""
    first, last = int(positions[0]), int(positions[-1])
    follow = last - first == len(positions) - 1 and bool((numpy.diff(positions) == 1).all())
    return slice(first, last + 1) if follow else positions


def _open_mesh(axes: Sequence[Any]) -> Tuple[Any, ...]:
    """Returns the index of all combinations of positions."""
    if all(isinstance(one, slice) for one in axes):
        return tuple(axes)
    return numpy.ix_(*(numpy.arange(one.start, one.stop) if isinstance(one, slice) else one for one in axes))


class AttributeArray(ChunkedArray):
    """The values of an attribute of a dense array. Boxes are read from the array, single positions chunk by chunk."""

    def __init__(self, chunked: ChunkedArray, name: str) -> None:
        super().__init__(chunked.source, chunked._folder, chunked.layout)
        self._name = name

    def _box(self, key: Tuple[Any, ...]) -> Any:
        attribute = self.source.attribute(self._name)
        if attribute is None or any(isinstance(one, numpy.ndarray) for one in key):
            return super()._box(key)
        return attribute[key]
