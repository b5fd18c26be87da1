"""What is stored where: the types of folders, and the fragments of arrays."""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional, Set, Tuple

from . import _options, _subscripts, _tilefs
from ._arrays import Array, open
from ._errors import UsageError


# What is called with a URI and "array" or "group".
Visit = Callable[[str, str], Any]


class Fragment(NamedTuple):
    """A fragment: the result of one write, or of the consolidation of several.

    >>> print([fragment.cell_num for fragment in tilefs.array_fragments("dem.tdb")])
    [18000, 2000]
    """

    #: Where it is stored.
    uri: str
    #: The first and the last time of its writes, in milliseconds since 1970.
    timestamp_range: Tuple[int, int]
    #: The version of the format.
    version: int
    #: Whether it stores single cells, and no boxes.
    sparse: bool
    #: The number of cells that it stores.
    cell_num: int
    #: The lowest and the highest coordinate along each dimension; ``None`` for a fragment without cells.
    nonempty_domain: Optional[Tuple[Tuple[Any, Any], ...]]
    #: The bytes of the files of its tiles.
    stored_bytes: int


class FragmentInfoList(List[Fragment]):
    """The fragments of an array, oldest first, and what they have in tuples of one value for each.

    >>> fragments = tilefs.FragmentInfoList("dem.tdb")
    >>> print(len(fragments), fragments.cell_num, fragments[0].nonempty_domain)
    2 (18000, 2000) ((0, 89), (0, 199))
    """

    def __init__(self, uri: Any, **options: Any) -> None:
        with open(uri, **options) as array:
            if not isinstance(array, Array):
                raise UsageError(f"{array.uri} is a group: fragments are those of an array")
            super().__init__(_fragment(array, *one) for one in array._opened.fragments())
            #: The address of the array.
            self.array_uri: str = array.uri

    @property
    def uri(self) -> Tuple[str, ...]:
        """Where the fragments are stored."""
        return tuple(one.uri for one in self)

    @property
    def timestamp_range(self) -> Tuple[Tuple[int, int], ...]:
        """The first and the last time of the writes of each, in milliseconds since 1970."""
        return tuple(one.timestamp_range for one in self)

    @property
    def version(self) -> Tuple[int, ...]:
        """The versions of the format."""
        return tuple(one.version for one in self)

    @property
    def sparse(self) -> Tuple[bool, ...]:
        """Whether each stores single cells, and no boxes."""
        return tuple(one.sparse for one in self)

    @property
    def cell_num(self) -> Tuple[int, ...]:
        """The numbers of cells."""
        return tuple(one.cell_num for one in self)

    @property
    def nonempty_domain(self) -> Tuple[Any, ...]:
        """The lowest and the highest coordinate of each along each dimension."""
        return tuple(one.nonempty_domain for one in self)

    def __reduce__(self) -> Any:
        return list, (list(self),)


def array_fragments(uri: Any, **options: Any) -> FragmentInfoList:
    """Returns the fragments of an array, oldest first.

    >>> print(tilefs.array_fragments("dem.tdb").nonempty_domain)
    (((0, 89), (0, 199)), ((90, 99), (0, 199)))

    :param options: as for :func:`tilefs.open`, such as ``timestamp`` and ``config``
    """
    return FragmentInfoList(uri, **options)


def _fragment(array: Array, name: str, times: Tuple[int, int], version: int, is_dense: bool, cells: int, ends: Any, stored: int) -> Fragment:
    dimensions = zip(array.dimensions, ends)
    domain = tuple(_subscripts.coordinates(dimension, pair, is_position=False) for dimension, pair in dimensions)
    folder = "__fragments/" if version >= 12 else ""
    return Fragment(f"{array.uri}/{folder}{name}", times, version, not is_dense, cells, domain or None, stored)


def object_type(uri: Any, **options: Any) -> Optional[str]:
    """Returns ``"array"`` or ``"group"``, or ``None`` if there is neither.

    >>> print(tilefs.object_type("dem.tdb"), tilefs.object_type("nothing"))
    array None

    :param options: as for :func:`tilefs.open`, such as ``config``
    """
    return _options.opened(_tilefs.object_type, uri, options)


def ls(uri: Any, visit: Optional[Visit] = None, **options: Any) -> List[Tuple[str, str]]:
    """Returns the URI and the type of each array and group in a folder or a group's folder; calls ``visit(uri, type)``
    for each, if given.

    >>> print([(uri.rsplit("/")[-1], kind) for uri, kind in tilefs.ls(".")])
    [('cells.tdb', 'array'), ('dem.tdb', 'array'), ('group', 'group')]

    :param options: as for :func:`tilefs.open`, such as ``config``
    """
    found = [(path, kind) for path, kind in _options.opened(_tilefs.objects, uri, options) if kind is not None]
    return _visited(found, visit)


def walk(uri: Any, visit: Optional[Visit] = None, order: str = "preorder", **options: Any) -> List[Tuple[str, str]]:
    """Returns the URI and the type of each array and group below a folder; calls ``visit(uri, type)`` for each, if given.

    >>> print([uri.rsplit("/")[-1] for uri, kind in tilefs.walk(".") if kind == "array"])
    ['cells.tdb', 'dem.tdb']

    :param order: ``"preorder"``: a group before its members, or ``"postorder"``
    :param options: as for :func:`tilefs.open`, such as ``config``
    """
    if order not in ("preorder", "postorder"):
        raise ValueError(f"order is 'preorder' or 'postorder', not {order!r}")
    found: List[Tuple[str, str]] = []
    # Folders to enter and, for "postorder", groups to name after what is in them.
    waiting: List[Tuple[str, Optional[str], bool]] = [(str(uri), None, False)]
    # Links may lead to the same folder by many paths, and around in circles: each is entered once.
    entered: Set[str] = set()
    while waiting:
        path, kind, is_entered = waiting.pop()
        if kind != "array" and not is_entered:
            local = path[len("file://") :] if path.startswith("file://") else path
            place = local if "://" in local else os.path.realpath(local)
            if place in entered:
                continue
            entered.add(place)
        if kind is not None and (kind == "array" or is_entered or order == "preorder"):
            found.append((path, kind))
        if kind == "array" or is_entered:
            continue
        if kind is not None and order == "postorder":
            waiting.append((path, kind, True))
        below = [one for one in _options.opened(_tilefs.objects, path, options) if not _is_internal(one[0])]
        waiting += [(inner, inner_kind, False) for inner, inner_kind in reversed(below)]
    return _visited(found, visit)


def _is_internal(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith(("__", "."))


def _visited(found: List[Tuple[str, str]], visit: Optional[Visit]) -> List[Tuple[str, str]]:
    if visit is not None:
        for one in found:
            visit(*one)
    return found
