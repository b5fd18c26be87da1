"""Attributes of arrays, which are read like arrays of NumPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from . import _dask, _display, _indices
from ._errors import Error

if TYPE_CHECKING:
    import numpy

    from ._arrays import Array

# The encodings of variable-length text, by datatype.
_ENCODINGS = {
    "STRING_ASCII": "utf-8",
    "STRING_UTF8": "utf-8",
    "GEOM_WKT": "utf-8",
    "STRING_UTF16": "utf-16-le",
    "STRING_UCS2": "utf-16-le",
    "STRING_UTF32": "utf-32-le",
    "STRING_UCS4": "utf-32-le",
}

# Single cells are read with the box in which they lie, if it has at most so many cells, or so many times theirs.
_MOST_READ, _MOST_BESIDE = 1 << 22, 64

# The datatypes of bytes without an encoding, which stay bytes.
_BYTES = ("CHAR", "BLOB", "ANY", "GEOM_WKB")


class Attribute:
    """An attribute of an array. In a dense array, it is indexed like a NumPy array, by 0-based positions along each
    axis: with integers, slices, ``...``, ``None``, lists of positions and masks. Each index reads from storage.

    >>> temp = tilefs.open("dem.tdb")["temp"]
    >>> print(temp.dtype, temp.shape, temp[-1, ::100])
    float32 (100, 200) [10.1 11.1]
    """

    def __init__(
        self,
        array: Array,
        number: int,
        name: str,
        datatype: str,
        value_type: str,
        cell_type: Optional[str],
        values_per_cell: Optional[int],
        nullable: bool,
        enumeration: Optional[str],
    ) -> None:
        self._array = array
        self._number = number
        self._value_type = value_type
        self._cell_type = cell_type
        #: The name.
        self.name = name
        #: The type in TileDB.
        self.datatype = datatype
        #: How many values a cell has; ``None`` if each has its own number.
        self.values_per_cell = values_per_cell
        #: Whether cells can be null.
        self.nullable = nullable
        #: The name of the enumeration whose codes the values are.
        self.enumeration = enumeration

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """The type of a cell, as in TileDB-Py: that of arrays which indexing returns, unless a cell has several numbers that
        are no complex number. These have a structured type, and an axis of their own in ``array["name"][...]``. It is
        ``object`` for cells of variable size."""
        import numpy

        if not self._cell_shape:
            return self._value_dtype
        return numpy.dtype([(f"f{number}", self._value_dtype) for number in range(self._cell_shape[0])])

    @property
    def _value_dtype(self) -> "numpy.dtype[Any]":
        """The type of the arrays that indexing returns."""
        import numpy

        if self._is_complex:
            return numpy.dtype(f"c{2 * self._number_type.itemsize}")
        return numpy.dtype(object if self._cell_type is None else self._cell_type)

    @property
    def _number_type(self) -> "numpy.dtype[Any]":
        """The type of one of the values of a cell."""
        import numpy

        return numpy.dtype(self._value_type)

    @property
    def _is_complex(self) -> bool:
        """Whether a cell is a complex number: two numbers of floating point."""
        return self.values_per_cell == 2 and self._number_type.kind == "f"

    @property
    def shape(self) -> Tuple[int, ...]:
        """The number of cells along each axis; if a cell has several values, their number comes last."""
        return self._array.shape + self._cell_shape

    @property
    def isnullable(self) -> bool:
        """Whether cells can be null."""
        return self.nullable

    @property
    def isvar(self) -> bool:
        """Whether each cell has its own size."""
        return self.values_per_cell is None

    @property
    def isanon(self) -> bool:
        """Whether the attribute has no name."""
        return self.name == ""

    @property
    def enum_label(self) -> Optional[str]:
        """The name of the enumeration."""
        return self.enumeration

    @property
    def filters(self) -> List[Dict[str, Any]]:
        """The filters of the values, by name and options."""
        return list(self._array.schema._field("attributes", self._number)["filters"])

    @property
    def fill(self) -> Any:
        """The value of cells that nobody wrote."""
        import numpy

        stored = bytes.fromhex(self._array.schema._field("attributes", self._number)["fill_hex"])
        if self.values_per_cell is None:
            encoding = _ENCODINGS.get(self.datatype)
            if encoding is not None:
                return stored.decode(encoding, "replace")
            return stored if self.datatype in _BYTES else numpy.frombuffer(stored, self._value_type)
        # As in TileDB-Py, that of several numbers is in an array.
        found = numpy.frombuffer(stored, self.dtype)
        return found if self._has_several else found[0]

    @property
    def _fill_values(self) -> Any:
        """The fill value as indexing returns it, which has an axis for several numbers."""
        return self.fill.view(self._value_dtype) if self._cell_shape else self.fill

    @property
    def _fill_is_valid(self) -> bool:
        return bool(self._array.schema._field("attributes", self._number).get("fill_is_valid", True))

    @property
    def _encoding(self) -> str:
        """The encoding of texts of variable size."""
        return _ENCODINGS[self.datatype]

    @property
    def _has_text(self) -> bool:
        """Whether a cell is a text of variable size."""
        return self.values_per_cell is None and self.datatype in _ENCODINGS

    @property
    def _has_several(self) -> bool:
        """Whether a cell has several numbers, such as those of a complex one."""
        return self._is_complex or self._cell_shape != ()

    @property
    def _has_numbers(self) -> bool:
        """Whether a cell of variable size is a list of numbers."""
        return self.values_per_cell is None and self.datatype not in _ENCODINGS and self.datatype not in _BYTES

    @property
    def _cell_shape(self) -> Tuple[int, ...]:
        # A cell of several bytes or characters is one value in NumPy, and so is a complex number.
        if self.values_per_cell in (None, 1) or self._cell_type != self._value_type or self._is_complex:
            return ()
        return (self.values_per_cell or 1,)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The product of the shape."""
        product = 1
        for length in self.shape:
            product *= length
        return product

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if _indices.is_advanced(key):
            ranges, index = _indices.resolve_advanced(key, self._array.shape)
            cells, wanted = math.prod(sum(one[2] for one in axis) for axis in ranges), _indices.cells_of(ranges, index)
            if cells > max(_MOST_READ, _MOST_BESIDE * wanted):
                raise IndexError(f"{wanted} single cells lie in a box of {cells}: read them by array.multi_index, or box by box")
            return self._read(ranges)[index]
        axes, shaping = _indices.resolve(key, self._array.shape)
        return self._read([[one] for one in axes])[shaping]

    def _read(self, axes: Sequence[Sequence[_indices.Axis]]) -> Any:
        """Returns the cells at positions: for each axis, those of its ranges, in their order."""
        opened = self._array._opened
        nulls = opened.read_nulls(self._number, axes) if self.nullable else None
        if self.values_per_cell is None:
            result = self._read_variable(opened, axes, nulls)
        else:
            result = opened.read(self._number, axes)
            if self._is_complex:
                result = result.view(self._value_dtype)[..., 0]
        if nulls is not None:
            import numpy

            if result.dtype == object:
                result[nulls] = None
            else:
                nulls = nulls.reshape(nulls.shape + (1,) * len(self._cell_shape))
                result = numpy.ma.MaskedArray(result, mask=numpy.broadcast_to(nulls, result.shape))
        return result

    def to_dask_array(self, chunks: Any = "auto") -> Any:
        """Returns the values as an array of dask. Its workers open the array by its address and options; a key in memory is
        not passed on.

        >>> print(tilefs.open("dem.tdb")["temp"].to_dask_array("tiles").chunks)
        ((32, 32, 32, 4), (32, 32, 32, 32, 32, 32, 8))

        :param chunks: as for ``dask.array.from_array``: ``"auto"``, which makes chunks of whole tiles, sizes in cells, or
            ``"tiles"``, a chunk for each tile
        """
        return _dask.array_of(self, chunks)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "numpy.ndarray[Any, Any]":
        import numpy

        if copy is False:
            raise ValueError("the values of an attribute are read into a new array")
        if self.nullable:
            # NumPy would silently drop the mask.
            raise TypeError(f"{self.name} can be null: index it, which gives a masked array")
        return numpy.asarray(self[...], dtype=dtype)

    def _read_variable(self, opened: Any, axes: Sequence[Sequence[_indices.Axis]], nulls: Any) -> "numpy.ndarray[Any, Any]":
        import numpy

        offsets, stored = opened.read_variable(self._number, axes)
        cells = numpy.empty(len(offsets) - 1, dtype=object)
        ends = offsets.tolist()
        pairs = list(zip(ends, ends[1:]))
        if nulls is not None:
            # What is stored below a null is no cell.
            pairs = [(0, 0) if is_null else pair for pair, is_null in zip(pairs, nulls.ravel().tolist())]
        encoding = _ENCODINGS.get(self.datatype)
        if encoding is not None:
            text = stored.tobytes()
            try:
                cells[:] = [text[start:end].decode(encoding) for start, end in pairs]
            except UnicodeDecodeError as error:
                raise Error(f"{self._array.uri}: a cell of {self.name} is not {encoding.upper()}: {error}") from None
        elif self.datatype in _BYTES:
            text = stored.tobytes()
            cells[:] = [text[start:end] for start, end in pairs]
        else:
            numbers = stored.view(self._value_type)
            size = numbers.dtype.itemsize
            for number, (start, end) in enumerate(pairs):
                cells[number] = numbers[start // size : end // size]
        return cells.reshape([sum(count for _, _, count in one) for one in axes])

    def __repr__(self) -> str:
        return _display.attribute_text(self)

    def _repr_html_(self) -> Optional[str]:
        return _display.attribute_page(self)
