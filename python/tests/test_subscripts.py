"""`array[10:12]` and `array.multi_index[2:5, [7, 9]]` give what TileDB-Py gives for the same subscripts."""

import random

import numpy as np
import pytest
from conftest import tiledb

import tilefs

DAY = np.timedelta64(1, "D")


def dense(path):
    dims = [tiledb.Dim("y", domain=(1, 7), tile=3, dtype=np.int64), tiledb.Dim("x", domain=(0, 4), tile=2, dtype=np.int64)]
    attrs = [tiledb.Attr("a", dtype=np.int32), tiledb.Attr("s", dtype=str, var=True), tiledb.Attr("n", dtype=np.float64, nullable=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), attrs))
    numbers = np.arange(35).reshape(7, 5)
    texts = np.array(["é" * (number % 3) for number in range(35)], dtype=object).reshape(7, 5)
    with tiledb.open(path, "w") as array:
        array[:] = {"a": numbers.astype(np.int32), "s": texts, "n": numbers.astype(np.float64)}


def one_value(path):
    dim = tiledb.Dim("x", domain=(1, 10), tile=4, dtype=np.uint16)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("", dtype=np.float32)]))
    with tiledb.open(path, "w") as array:
        array[:] = np.arange(10, dtype=np.float32)


def days(path):
    first = np.datetime64("2020-01-01")
    dim = tiledb.Dim("t", domain=(first, first + 9 * DAY), tile=5 * DAY, dtype="datetime64[D]")
    attrs = [tiledb.Attr("a", dtype=np.int8), tiledb.Attr("b", dtype="S3")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs))
    with tiledb.open(path, "w") as array:
        array[:] = {"a": np.arange(10, dtype=np.int8), "b": np.array([b"%03d" % day for day in range(10)])}


def rows(path):
    import pandas

    dims = [tiledb.Dim("id", domain=(0, 99), tile=10, dtype=np.int64), tiledb.Dim("x", domain=(0.0, 9.0), tile=5.0, dtype=np.float64)]
    kinds = tiledb.Enumeration("kinds", False, np.array(["T cell", "B cell"]))
    attrs = [tiledb.Attr("s", dtype=str, var=True), tiledb.Attr("n", dtype=np.int32, nullable=True), tiledb.Attr("k", dtype=np.int8, enum_label="kinds")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True, enums=[kinds]))
    count = 20
    values = {
        "s": np.array([f"v{number}" for number in range(count)], dtype=object),
        "n": pandas.Series([None if number % 3 == 0 else number for number in range(count)], dtype="Int32"),
        "k": (np.arange(count) % 2).astype(np.int8),
    }
    with tiledb.open(path, "w") as array:
        array[np.arange(count) * 3, np.arange(count) % 7 * 1.5] = values


def texts(path):
    dim = tiledb.Dim("k", domain=(None, None), tile=None, dtype="ascii")
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.int32)], sparse=True))
    with tiledb.open(path, "w") as array:
        array[np.array(["a", "bb", "c", "d", "e"], dtype="S")] = np.arange(5, dtype=np.int32)


@pytest.fixture(scope="module", params=[dense, one_value, days, rows, texts], ids=lambda make: make.__name__)
def both(request, tmp_path_factory):
    """Returns an array as TileDB-Py opens it, and as tilefs does."""
    path = str(tmp_path_factory.mktemp("subscripts") / "array")
    request.param(path)
    with tiledb.open(path) as theirs:
        yield theirs, tilefs.open(path)


def coordinate(chosen, dimension):
    if dimension.dtype.kind == "S":
        return chosen.choice(["a", "b", "bb", "c", "e", "zz"])
    if dimension.dtype.kind == "f":
        return chosen.randrange(7) * 1.5
    low, high = dimension.domain
    if dimension.dtype.kind == "M":
        return low + chosen.randrange(10) * DAY
    return chosen.randint(int(low), min(int(high), 70))


def subscript(chosen, dimension, is_closed, takes_lists):
    low, high = sorted((coordinate(chosen, dimension), coordinate(chosen, dimension)))
    if not is_closed and dimension.dtype.kind in "iu":
        high += 1
    kinds = [slice(None), low, slice(low, high), slice(low, None), slice(None, high)]
    return chosen.choice(kinds + [sorted({low, coordinate(chosen, dimension)})] * takes_lists)


def assert_same(ours, theirs):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for name in theirs:
            assert_same(ours[name], theirs[name])
        return
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype or theirs.size == 0
    np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
    np.testing.assert_array_equal(np.ma.filled(ours, 0), np.ma.filled(theirs, 0))


def sorted_rows(columns):
    """Sorts rows by their coordinates, because TileDB-Py promises no order."""
    order = sorted(range(len(next(iter(columns.values())))), key=lambda row: [repr(column[row]) for column in columns.values()])
    return {name: column[order] for name, column in columns.items()}


@pytest.mark.parametrize("seed", range(60))
def test_subscripts_give_what_tiledb_py_gives(both, seed):
    theirs, ours = both
    chosen = random.Random(seed)
    is_closed = seed % 2 == 1
    dimensions = [theirs.dim(axis) for axis in range(theirs.ndim)]
    takes_lists = is_closed or theirs.schema.sparse
    key = tuple(subscript(chosen, one, is_closed, takes_lists) for one in dimensions[: chosen.randint(1, theirs.ndim)])
    key = key[0] if len(key) == 1 else key
    if isinstance(key, str) and not is_closed:
        # Text alone is the name of an attribute.
        return
    try:
        expected = (theirs.multi_index if is_closed else theirs)[key]
    except (IndexError, tiledb.TileDBError):
        # It refuses ranges outside of the written cells.
        return
    found = (ours.multi_index if is_closed else ours)[key]
    if theirs.schema.sparse:
        expected, found = sorted_rows(dict(expected)), sorted_rows(found)
    if is_closed and isinstance(expected, dict) and "n" in expected:
        # TileDB-Py drops the mask here: what it has for nulls is the stored value.
        nulls = np.ma.getmaskarray(found["n"])
        found["n"] = np.ma.filled(found["n"], 0)
        expected["n"] = np.where(nulls, 0, expected["n"])
    assert_same(found, dict(expected) if isinstance(expected, dict) else expected)


def test_negative_numbers_count_from_the_end_of_domains_without_them(both):
    theirs, ours = both
    if theirs.schema.sparse or theirs.dim(0).dtype.kind not in "iu":
        return
    for key in (-1, slice(-3, None)):
        assert_same(ours[key], theirs[key])
    # TileDB-Py drops one more cell here than NumPy.
    values = ours[-3:-1]
    assert_same(values, ours[-3:][:-1] if not isinstance(values, dict) else {name: one[:-1] for name, one in ours[-3:].items()})


def test_written_domains_and_times_are_those_of_tiledb_py(both):
    theirs, ours = both
    assert ours.nonempty_domain() == theirs.nonempty_domain()
    assert [type(end) for end in ours.nonempty_domain()[0]] == [type(end) for end in theirs.nonempty_domain()[0]]
    assert ours.timestamp_range[0] == theirs.timestamp_range[0]
    assert dict(ours.meta) == dict(ours.metadata)


def test_wrong_subscripts_are_exceptions(both):
    theirs, ours = both
    with pytest.raises(IndexError, match="too many indices"):
        ours[(slice(None),) * (theirs.ndim + 1)]
    with pytest.raises(IndexError, match="single ellipsis"):
        ours[..., ...]
    with pytest.raises(IndexError, match="no step"):
        ours.multi_index[slice(coordinate(random.Random(1), theirs.dim(0)), None, 2)]


def test_many_ranges_take_no_recursion(tmp_path):
    one_value(str(tmp_path / "dense"))
    rows(str(tmp_path / "sparse"))
    many = [number % 10 + 1 for number in range(20_000)]
    assert len(tilefs.open(tmp_path / "dense").multi_index[many][""]) == len(many)
    assert set(tilefs.open(tmp_path / "sparse").multi_index[many]["id"]) == {3, 6, 9}


def test_an_array_without_cells_has_no_rows_of_its_types(tmp_path):
    dim = tiledb.Dim("id", domain=(0, 99), tile=10, dtype=np.int64)
    tiledb.Array.create(str(tmp_path / "empty"), tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.int16)], sparse=True))
    array = tilefs.open(tmp_path / "empty")
    found = array[:]
    assert [(name, column.dtype, len(column)) for name, column in found.items()] == [("a", np.int16, 0), ("id", np.int64, 0)]
    assert array.nonempty_domain() is None


def test_codes_of_a_dense_array_become_labels(tmp_path):
    path = str(tmp_path / "array")
    dim = tiledb.Dim("x", domain=(0, 9), tile=5, dtype=np.int64)
    kinds = tiledb.Enumeration("kinds", False, np.array(["T cell", "B cell"]))
    schema = tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("k", dtype=np.int8, enum_label="kinds")], enums=[kinds])
    tiledb.Array.create(path, schema)
    with tiledb.open(path, "w") as array:
        array[0:4] = np.array([0, 1, 1, 0], dtype=np.int8)
    array = tilefs.open(path)
    assert array[0:3]["k"].tolist() == array.multi_index[0:2]["k"].tolist() == ["T cell", "B cell", "B cell"]
    # Nobody wrote the last one.
    assert array[2:5]["k"].tolist() == ["B cell", "T cell", None]
    assert array["k"][2:4].tolist() == [1, 0]
