"""Schemas of arrays: a dictionary as in ``schema.json``, with the attributes that users of TileDB-Py read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _display, _subscripts
from ._errors import UsageError

if TYPE_CHECKING:
    import numpy

    from ._arrays import Array
    from ._attributes import Attribute
    from ._subscripts import Range


class Dimension:
    """A dimension of an array.

    >>> y = tilefs.open("dem.tdb").dim("y")
    >>> print(y.name, y.domain, y.dtype, y.size)
    y (0, 99) int64 100
    """

    def __init__(self, array: "Array", name: str, datatype: str, dtype: "numpy.dtype[Any]", domain: Any) -> None:
        self._array = array
        #: The name.
        self.name: str = name
        #: The type in TileDB.
        self.datatype: str = datatype
        #: The type of coordinates; ``object`` for text.
        self.dtype: "numpy.dtype[Any]" = dtype
        #: The lowest and the highest coordinate, both included; ``None`` for text.
        self.domain: Optional[Tuple[Any, Any]] = domain

    @property
    def isvar(self) -> bool:
        """Whether coordinates are text."""
        return self.domain is None

    @property
    def tile(self) -> Any:
        """The extent of a tile, in the type of coordinates or, for dates, as a ``timedelta64``; ``None`` without one."""
        import numpy

        extent = self._stored["tile_extent"]
        if extent is None or self.dtype == object:
            return None
        if self.dtype.kind == "M":
            return numpy.array(extent, dtype="int64").view(self.dtype.str.replace("M", "m", 1))[()]
        return self.dtype.type(extent)

    @property
    def size(self) -> int:
        """The number of coordinates of a dimension with integers or dates."""
        if self.domain is None or self.dtype.kind not in "iumM":
            raise TypeError(f"dimension {self.name} has no number of coordinates: they are no integers")
        low, high = (int(end.astype("int64")) if self.dtype.kind in "mM" else int(end) for end in self.domain)
        return high - low + 1

    @property
    def shape(self) -> Tuple[int]:
        """The number of coordinates, as a tuple."""
        return (self.size,)

    @property
    def filters(self) -> List[Dict[str, Any]]:
        """The filters of the coordinates, by name and options."""
        return list(self._stored["filters"])

    @property
    def _stored(self) -> Dict[str, Any]:
        return self._array.schema._field("dimensions", [one is self for one in self._array.dimensions].index(True))

    @property
    def _cells_before(self) -> int:
        """How many cells of its tile lie before the lowest coordinate: where a current domain begins within a tile."""
        stored, low = self._stored["domain"], self.domain[0] if self.domain is not None else None
        if not self._extent_in_cells or not isinstance(stored[0], int) or not isinstance(low, int):
            return 0
        return (low - stored[0]) % self._extent_in_cells

    def _tiles_of(self, coordinates: Any) -> Any:
        """Returns the number of the tile of each coordinate, along the dimension."""
        import numpy

        extent = self._stored["tile_extent"]
        if extent is None or self.domain is None:
            return numpy.zeros(len(coordinates), dtype="u8")
        if self.dtype.kind == "f":
            return numpy.floor((coordinates - self.domain[0]) / extent)
        # Modulo 2^64, which is right for all types of integers.
        low = int(self.domain[0].astype("int64") if self.dtype.kind in "mM" else self.domain[0]) - self._cells_before
        return (coordinates.astype("int64").astype("u8") - numpy.uint64(low % 2**64)) // numpy.uint64(extent)

    @property
    def _extent_in_cells(self) -> Optional[int]:
        extent = self._stored["tile_extent"]
        return None if extent is None else int(extent)

    def __repr__(self) -> str:
        return f"<tilefs.Dimension {self.name!r}: {self.datatype}, {self.domain}>"


def dimension(array: "Array", name: str, datatype: str, dtype: Optional[str], ends: Any) -> Dimension:
    """Makes a dimension of what the extension module tells about it."""
    import numpy

    kind = numpy.dtype(dtype or object)
    return Dimension(array, name, datatype, kind, ends and tuple(coordinate(end, kind) for end in ends))


def coordinate(value: Any, dtype: "numpy.dtype[Any]") -> Any:
    """Returns a stored number as a coordinate: a date, if the dimension has dates."""
    import numpy

    return numpy.array(value, dtype="int64").view(dtype)[()] if dtype.kind in "mM" else value


class Enumeration:
    """Labels, whose numbers an attribute stores.

    >>> cells = tilefs.open("cells.tdb")
    >>> print(cells.enum(cells.attr("state").enumeration).values())
    ['on' 'off']
    """

    def __init__(self, name: str, ordered: bool, dtype: Optional[str], stored: List[Any]) -> None:
        import numpy

        #: The name.
        self.name: str = name
        #: Whether the order of the labels has a meaning.
        self.ordered: bool = ordered
        # Of texts, NumPy leaves out zeros at the end.
        self._stored = stored
        if dtype is None:
            self._values = numpy.array(stored, dtype=None if stored else "U1")
        else:
            self._values = numpy.frombuffer(b"".join(stored), dtype=dtype)

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """The type of the labels."""
        return self._values.dtype

    def values(self) -> "numpy.ndarray[Any, Any]":
        """Returns the labels."""
        return self._values

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<tilefs.Enumeration {self.name!r}: {len(self._values)} labels>"


class Domain(Sequence[Dimension]):
    """The dimensions of an array, in order.

    >>> domain = tilefs.open("dem.tdb").schema.domain
    >>> print([dimension.name for dimension in domain], domain.shape)
    ['y', 'x'] (100, 200)
    """

    def __init__(self, array: "Array") -> None:
        self._array = array

    def __getitem__(self, number: Any) -> Any:
        return self._array.dimensions[number]

    def __len__(self) -> int:
        return self._array.ndim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def shape(self) -> Tuple[int, ...]:
        """The number of coordinates of each dimension, if all have integers or dates."""
        return tuple(one.size for one in self)

    def dim(self, dimension: Union[str, int]) -> Dimension:
        """Returns a dimension by its name or number."""
        return self._array.dim(dimension)

    def has_dim(self, name: str) -> bool:
        """Returns whether there is a dimension of this name."""
        return any(one.name == name for one in self)

    def __repr__(self) -> str:
        return f"<tilefs.Domain of {self._array.uri!r}: {', '.join(one.name for one in self)}>"


class Ends(Tuple[Optional[Tuple[Any, Any]], ...]):
    """The domain of an array: the lowest and the highest coordinate of each dimension, both included.

    >>> domain = tilefs.open("dem.tdb").domain
    >>> print(domain, domain.shape, domain.dim("x").tile)
    ((0, 99), (0, 199)) (100, 200) 32
    """

    _array: "Array"

    def __new__(cls, array: "Array") -> "Ends":
        found = super().__new__(cls, tuple(dimension.domain for dimension in array.dimensions))
        found._array = array
        return found

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self)

    @property
    def shape(self) -> Tuple[int, ...]:
        """The number of coordinates of each dimension, if all have integers or dates."""
        return Domain(self._array).shape

    @property
    def size(self) -> int:
        """The product of the shape."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """The type of coordinates, which is the same for all dimensions."""
        found = {one.dtype for one in self._array.dimensions}
        if len(found) != 1:
            raise TypeError(f"the dimensions of {self._array.uri} have several types: dim(name).dtype is that of one")
        return found.pop()

    @property
    def homogeneous(self) -> bool:
        """Whether all dimensions have the same type."""
        return len({one.dtype for one in self._array.dimensions}) == 1

    def dim(self, dimension: Union[str, int]) -> Dimension:
        """Returns a dimension by its name or number."""
        return self._array.dim(dimension)

    def has_dim(self, name: str) -> bool:
        """Returns whether there is a dimension of this name."""
        return Domain(self._array).has_dim(name)


class Schema(Dict[str, Any]):
    """The whole schema of an array: a dictionary as in ``schema.json`` of a mount.

    >>> schema = tilefs.open("cells.tdb").schema
    >>> print(schema.sparse, schema.nattr, schema["capacity"], schema.cell_order)
    True 3 64 row-major
    """

    def __init__(self, array: "Array", stored: Dict[str, Any]) -> None:
        super().__init__(stored)
        self._array = array

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))

    @property
    def sparse(self) -> bool:
        """Whether the array stores only the cells that were written."""
        return self._array.is_sparse

    @property
    def domain(self) -> Domain:
        """The dimensions."""
        return Domain(self._array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def nattr(self) -> int:
        """The number of attributes."""
        return self._array.nattr

    @property
    def shape(self) -> Tuple[int, ...]:
        """The number of coordinates of each dimension, if all have integers or dates."""
        return self.domain.shape

    @property
    def version(self) -> int:
        """The version of the format."""
        return int(self["format_version"])

    @property
    def capacity(self) -> Optional[int]:
        """The number of cells in a tile of a sparse array."""
        return self.get("capacity")

    @property
    def allows_duplicates(self) -> bool:
        """Whether several rows of a sparse array may have the same coordinates."""
        return bool(self.get("allows_duplicates"))

    @property
    def cell_order(self) -> str:
        """The order of cells in a tile: ``"row-major"``, ``"col-major"`` or ``"hilbert"``."""
        return str(self["cell_order"]).replace("column-", "col-")

    @property
    def tile_order(self) -> str:
        """The order of tiles: ``"row-major"`` or ``"col-major"``."""
        return str(self["tile_order"]).replace("column-", "col-")

    @property
    def coords_filters(self) -> List[Dict[str, Any]]:
        """The filters of coordinates, by name and options."""
        return list(self["coordinate_filters"])

    @property
    def offsets_filters(self) -> List[Dict[str, Any]]:
        """The filters of the offsets of values of variable size, by name and options."""
        return list(self["offset_filters"])

    @property
    def validity_filters(self) -> List[Dict[str, Any]]:
        """The filters of validities, by name and options."""
        return list(self["validity_filters"])

    def attr(self, attribute: Union[str, int]) -> "Attribute":
        """Returns an attribute by its name or number."""
        return self._array.attr(attribute)

    @property
    def attr_names(self) -> List[str]:
        """The names of the attributes."""
        return list(self._array.attributes)

    def has_attr(self, name: str) -> bool:
        """Returns whether there is an attribute of this name."""
        return name in self._array.attributes

    def has_dim_label(self, name: str) -> bool:
        """Returns whether there is a dimension label of this name."""
        return any(one["name"] == name for one in self.get("dimension_labels", ()))

    def dim_label(self, name: str) -> "DimensionLabel":
        """Returns a dimension label by its name."""
        for one in self.get("dimension_labels", ()):
            if one["name"] == name:
                return DimensionLabel(
                    name, one["dimension_number"], one["order"], one["uri"], one["attribute"]
                )
        known = ", ".join(one["name"] for one in self.get("dimension_labels", ()))
        raise UsageError(f"{self._array.uri} has no dimension label {name!r}; it has {known or 'none'}")

    def __repr__(self) -> str:
        return _display.schema_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.schema_page(self)

    def _field(self, kind: str, number: int) -> Dict[str, Any]:
        return dict(self[kind][number])


class DimensionLabel(NamedTuple):
    """A value for each coordinate along a dimension, by which cells are selected."""

    name: str
    #: The number of the dimension.
    dim_index: int
    #: ``"increasing"``, ``"decreasing"`` or ``"unordered"``.
    label_order: str
    #: The folder of the array that stores the labels, relative to the array's.
    uri: str
    #: The attribute that holds them.
    label_attr_name: str

    def _ranges(self, array: "Array", key: Any) -> "List[Range]":
        """Returns the coordinates whose labels lie in ranges, both ends included."""
        import numpy

        first, labels = self._stored(array)
        found: "List[Range]" = []
        for ends in _label_ranges(key):
            low, high = (one.decode() if isinstance(one, bytes) and labels.dtype == object else one for one in ends)
            chosen = numpy.flatnonzero(_within(labels, low, high))
            # Labels that are in order are next to each other.
            for run in numpy.split(chosen, numpy.flatnonzero(numpy.diff(chosen) != 1) + 1):
                if len(run):
                    found.append((self._coordinate(array, first + int(run[0])), self._coordinate(array, first + int(run[-1]))))
        return found

    def _values(self, array: "Array", ranges: "Sequence[Range]") -> Any:
        """Returns the labels of coordinates."""
        import numpy

        first, labels = self._stored(array)
        if labels.dtype == object and array._label(self.name)[0].attr(self.label_attr_name).datatype == "STRING_ASCII":
            labels = numpy.array([one.encode() for one in labels], dtype=object)
        positions = [one for part in _subscripts.positions(array, self.dim_index, ranges) for one in range(part[0], part[0] + part[2])]
        return labels[numpy.array(positions, dtype="int64") - first]

    def _coordinate(self, array: "Array", position: int) -> Any:
        """Returns the coordinate of a position along the dimension."""
        import numpy

        dimension = array.dimensions[self.dim_index]
        first: Any = dimension.domain[0] if dimension.domain else 0
        if dimension.dtype.kind != "M":
            return first + position
        return numpy.array(int(first.astype("int64")) + position, dtype="int64").view(dimension.dtype)[()]

    def _stored(self, array: "Array") -> Tuple[int, Any]:
        """Returns the position of the first label that was written, and the labels from there on."""
        import numpy

        opened, attribute = array._label(self.name)
        written = opened.nonempty
        if written is None:
            return 0, numpy.empty(0, dtype=opened.attr(attribute).dtype)
        return written[0].start, opened.attr(attribute)[written]


def _label_ranges(key: Any) -> "List[Range]":
    several = key if isinstance(key, (list, range)) or getattr(key, "ndim", False) else [key]
    found = []
    for one in several:
        if isinstance(one, slice):
            if one.step is not None:
                raise IndexError("a slice of labels has no step")
            found.append((one.start, one.stop))
        else:
            found.append(one if isinstance(one, tuple) else (one, one))
    return found


def _within(labels: Any, low: Any, high: Any) -> Any:
    import numpy

    found = numpy.ones(len(labels), dtype=bool)
    if low is not None:
        found &= labels >= low
    return found if high is None else found & (labels <= high)
