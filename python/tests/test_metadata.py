"""Metadata have the types and values that TileDB-Py gives."""

import numpy as np
import pytest
from conftest import tiledb

import tilefs

lt = pytest.importorskip("tiledb.libtiledb")

VALUES = {
    "int": 1,
    "float": 1.5,
    "bool": True,
    "text": "größer",
    "empty text": "",
    "bytes": b"\xff\x00",
    "empty bytes": b"",
    "tuple": (1, 2),
    "floats": (1.5, 2.5),
    "tuple of one": (7,),
    "nothing": (),
    "matrix": np.arange(6).reshape(2, 3),
    "vector": np.array([1.5, 2.5]),
    "vector of one": np.array([3], "i2"),
    "vector of none": np.array([], "f4"),
    "no axes": np.array(5.5),
    "truths": np.array([True, False]),
    "days": np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "bytes of NumPy": np.bytes_(b"\xff"),
    "letters": np.array(["a", "é"]),
    "cube": np.arange(24, dtype="u1").reshape(2, 3, 4),
    "ä": np.array([1, 2], "i8"),
    **{name: np.dtype(name).type(3) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")},
}
# What TileDB-Py writes only through its library.
STORED = {
    "ascii": (lt.DataType.STRING_ASCII, b"abc"),
    "chars": (lt.DataType.CHAR, b"abc"),
    "empty ascii": (lt.DataType.STRING_ASCII, b""),
    "utf8": (lt.DataType.STRING_UTF8, "größer".encode()),
    "blob": (lt.DataType.BLOB, b"\xff"),
}


@pytest.fixture(scope="module", params=["array", "group"])
def both(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("metadata") / "it")
    if request.param == "array":
        tiledb.from_numpy(path, np.arange(3)).close()
    else:
        tiledb.Group.create(path)
    with tiledb.open(path, "w") if request.param == "array" else tiledb.Group(path, "w") as opened:
        opened.meta.update(VALUES)
        for key, (datatype, value) in STORED.items():
            if request.param == "group":
                opened._put_metadata(key, datatype, len(value), value)
    with tiledb.open(path) if request.param == "array" else tiledb.Group(path) as theirs:
        yield tilefs.open(path).metadata, theirs.meta


def test_values_and_types_are_those_of_tiledb_py(both):
    ours, theirs = both
    assert set(ours) == set(theirs) and len(ours) == len(theirs)
    for key in theirs:
        found, expected = ours[key], theirs[key]
        assert type(found) is type(expected), key
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), key
        np.testing.assert_array_equal(found, expected, key)
        assert key in ours and np.shape(found) == np.shape(expected)


def test_arrays_can_be_changed_and_absent_keys_name_near_ones(both):
    ours, _ = both
    ours["matrix"][0, 0] = 9
    assert ours["matrix"][0, 0] == 0
    with pytest.raises(KeyError, match="did you mean 'matrix'"):
        ours["matrxi"]
    assert "__np_flat_matrix" not in list(ours) and "absent" not in ours


@pytest.mark.parametrize("shape", [(4, 2**40), (-1, 3), (-2, -3), (2.0, 3.0), (6, 0), (2**62, 2**62)])
def test_a_shape_that_does_not_fit_is_damage(tmp_path, shape):
    tiledb.Group.create(str(tmp_path / "g"))
    with tiledb.Group(str(tmp_path / "g"), "w") as group:
        group.meta["a"] = np.arange(6).reshape(2, 3)
        group.meta["__np_shape_a"] = shape
    with pytest.raises(tilefs.DamagedError, match="6 numbers"):
        tilefs.open(tmp_path / "g").metadata["a"]
