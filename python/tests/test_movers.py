"""What those type who move from TileDB-Py: aggregates, views of an attribute, results in parts, repeated ranges."""

import math
import pickle

import numpy as np
import pytest
from conftest import tiledb

import tilefs
from tilefs import _streams

OPERATIONS = ("count", "sum", "mean", "min", "max")
NUMBERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


@pytest.fixture(scope="module", params=[True, False], ids=["sparse", "dense"])
def numbers(request, tmp_path_factory):
    """Returns an array with an attribute of each type of numbers, with and without nulls."""
    path, random = str(tmp_path_factory.mktemp("numbers") / "a"), np.random.default_rng(5)
    domain = tiledb.Domain(tiledb.Dim("y", domain=(0, 39), tile=7, dtype="i4"), tiledb.Dim("x", domain=(0, 24), tile=4, dtype="i4"))
    attrs = [tiledb.Attr(f"{kind}{'n' * null}", dtype=kind, nullable=null) for kind in NUMBERS for null in (False, True)]
    tiledb.Array.create(path, tiledb.ArraySchema(domain, attrs, sparse=request.param, capacity=100))
    values = {one.name: random.integers(0 if one.name[0] == "u" else -50, 50, 1000).astype(one.name[:2]) for one in attrs}
    nulls = {one.name: random.integers(0, 2, 1000).astype("u1") for one in attrs if one.isnullable}
    with tiledb.open(path, "w") as array:
        if request.param:
            y, x = (one.ravel() for one in np.meshgrid(np.arange(40), np.arange(25), indexing="ij"))
            tiledb.sparse_array._setitem_impl_sparse(array, (y, x), values, nulls)
        else:
            shaped = [{name: one.reshape(40, 25) for name, one in of.items()} for of in (values, nulls)]
            array._setitem_impl((slice(None), slice(None)), *shaped)
    return path


def same(ours, theirs):
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, float):
        return type(ours) is float and (math.isnan(ours) and math.isnan(theirs) or math.isclose(ours, theirs, rel_tol=1e-12))
    return ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("cond", [None, "i4 < 10", "f8 > 1000"])
def test_aggregates_are_those_of_tiledb(numbers, cond, monkeypatch):
    # Pieces of few cells, as large arrays have them.
    monkeypatch.setattr(_streams, "CELLS", 64)
    array = tilefs.open(numbers)
    # In dense arrays, TileDB counts cells for which the condition does not hold, and of none the least is a zero.
    wanted = [one for one in OPERATIONS if cond is None or array.is_sparse or one in ("sum", "mean")]
    with tiledb.open(numbers) as theirs:
        for name in array.attributes:
            ours, due = array.query(cond=cond), theirs.query(cond=cond)
            for key in ((slice(None), slice(None)), (slice(3, 20), 4), (7, 9)):
                assert same(ours.agg({name: wanted})[key], due.agg({name: wanted})[key]), (name, key)
            assert same(ours.agg({name: "sum"}).multi_index[[(1, 4), 9], :], due.agg({name: "sum"}).multi_index[[(1, 4), 9], :])
            if array.attr(name).nullable and (cond is None or array.is_sparse):
                assert ours.agg({name: "null_count"})[:] == due.agg({name: "null_count"})[:]
        assert same(array.query(attrs=["i4", "f8"]).agg("sum")[:], {one: {"sum": array.query().agg({one: "sum"})[:]} for one in ("i4", "f8")})


def test_aggregates_are_exact_and_say_what_has_none(tmp_path, cells):
    path = str(tmp_path / "a")
    domain = tiledb.Domain(tiledb.Dim("x", domain=(0, 3), tile=2, dtype="i4"))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i8"), tiledb.Attr("u", dtype="u8")]))
    values = {"a": np.array([2**63 - 1, 2**63 - 1, -(2**63), 5]), "u": np.array([2**64 - 1] * 4, "u8")}
    with tiledb.open(path, "w") as array:
        array[:] = values
    for name, stored in values.items():
        assert tilefs.open(path).query().agg({name: "sum"})[:] == sum(int(one) for one in stored)
    query = tilefs.open(cells[0]).query()
    assert query.agg({"kind": ["min", "max"], "id": "max"})[:] == {"kind": {"min": "B cell", "max": "größer"}, "id": {"max": 2997}}
    for wrong, reason in (({"kind": "sum"}, "kind has no sum"), ({"state": "max"}, "no order"), ("median", "null_count"), ({"scor": "sum"}, "did you mean 'score'")):
        with pytest.raises((tilefs.UsageError, KeyError), match=reason):
            query.agg(wrong)


@pytest.mark.parametrize("most", [1, 7, 50, 10**6])
def test_pieces_are_the_box(tmp_path, most):
    path = str(tmp_path / "a")
    dims = [tiledb.Dim("y", domain=(-3, 40), tile=5, dtype="i4"), tiledb.Dim("x", domain=(2, 30), tile=4, dtype="i4")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype="i4")]))
    array, axes = tilefs.open(path), [[(1, 1, 17), (30, 1, 9)], [(0, 1, 29)]]
    seen = np.zeros(array.shape, dtype=int)
    for piece in _streams.pieces(array, axes, most):
        ((y, _, height),), ((x, _, width),) = piece
        assert height * width <= max(most, 20)
        assert most < 50 or height * width >= 20 or y + height in (18, 39) or y in (1, 30) or x + width == 29
        seen[y : y + height, x : x + width] += 1
    expected = np.zeros(array.shape, dtype=int)
    expected[1:18] = expected[30:39] = 1
    assert (seen == expected).all()


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("kinds", [("i4",), ("u8",), ("M8[D]",), ("ascii",), ("f8",), ("i4", "i4"), ("ascii", "f8")])
def test_repeated_ranges_are_read_as_often_as_in_tiledb(tmp_path, kinds, duplicates):
    random, path = np.random.default_rng(7), str(tmp_path / "a")

    def coordinate(kind, number):
        if kind == "ascii":
            return f"{number:02}"
        return np.datetime64("2020-01-01") + int(number) if kind == "M8[D]" else np.dtype(kind).type(number)

    dims = []
    for number, kind in enumerate(kinds):
        ends = (None, None) if kind == "ascii" else (coordinate(kind, 0), coordinate(kind, 20))
        tile = None if kind == "ascii" else np.timedelta64(4, "D") if kind == "M8[D]" else np.dtype(kind).type(4)
        dims.append(tiledb.Dim(f"d{number}", domain=ends, tile=tile, dtype=kind))
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype="i4")], sparse=True, allows_duplicates=duplicates, capacity=3))
    cells = sorted({tuple(one) for one in random.integers(0, 12, (40, len(kinds))).tolist()})
    with tiledb.open(path, "w") as array:
        array[tuple(np.array([coordinate(kind, one[axis]) for one in cells]) for axis, kind in enumerate(kinds))] = np.arange(len(cells), dtype="i4")
    ours = tilefs.open(path)
    with tiledb.open(path) as theirs:
        for trial in range(12):
            key = []
            for kind in kinds:
                ranges = [slice(*(coordinate(kind, end) for end in sorted(random.integers(0, 12, 2)))) for _ in range(trial % 4 + 1)]
                key.append([*ranges, coordinate(kind, 5)] if trial % 2 else ranges)
            key = tuple(key) if len(key) > 1 else key[0]
            for order in ("C", "F"):
                due = theirs.query(order=order).multi_index[key]
                found = ours.query(order=order).multi_index[key]
                assert found["a"].tolist() == due["a"].tolist() and found["d0"].tolist() == due["d0"].tolist(), (order, key)
            assert sorted(ours.multi_index[key]["a"]) == sorted(set(ours.query(order="C").multi_index[key]["a"]))


def test_an_attribute_is_shown_alone(numbers, tmp_path):
    array, theirs = tilefs.open(numbers, attr="i4"), tiledb.open(numbers, attr="i4")
    assert (array.nattr, array.dtype) == (theirs.nattr, theirs.dtype) == (1, np.dtype("i4"))
    assert list(array.multi_index[1:2, 3]) == list(theirs.multi_index[1:2, 3]) and list(array.df[1:2, 3])[-1] == "i4"
    for opened in (array, pickle.loads(pickle.dumps(array))):
        # Of a sparse array, TileDB-Py takes the letters of the name for names.
        due = theirs.query(attrs=["i4"]).multi_index[3:4, 4:5] if array.is_sparse else theirs[3:5, 4:6]
        found = opened[3:5, 4:6]
        np.testing.assert_array_equal(found["i4"] if array.is_sparse else found, due["i4"] if array.is_sparse else due)
    if not array.is_sparse:
        np.testing.assert_array_equal(np.asarray(array), theirs[:])
        assert len(array) == len(theirs) == 40
    with pytest.raises(KeyError, match="did you mean"):
        tilefs.open(numbers, attr="i44")
    tiledb.Group.create(str(tmp_path / "group"))
    with pytest.raises(tilefs.UsageError, match="is a group"):
        tilefs.open(tmp_path / "group", attr="a")


def test_words_are_those_of_tiledb(numbers):
    array, theirs = tilefs.open(numbers), tiledb.open(numbers)
    for words in (lambda one: one.domain.shape, lambda one: one.domain.dim("x").name, lambda one: one.domain.dim(0).tile, lambda one: one.domain.has_dim("z"),
                  lambda one: one.domain.ndim, lambda one: one.domain.dtype, lambda one: one.domain.homogeneous,
                  lambda one: one.mode, lambda one: one.isopen, lambda one: one.schema.attr_names, lambda one: one.attr_names):  # fmt: skip
        assert words(array) == words(theirs)
    assert array.domain == ((0, 39), (0, 24)) and pickle.loads(pickle.dumps(array.domain)) == array.domain and array
    key = (slice(2, 4), slice(3, 9))
    for name, due in theirs.subarray(key, attrs=["u1"], coords=True).items():
        np.testing.assert_array_equal(np.sort(array.subarray(key, attrs=["u1"], coords=True)[name].ravel()), np.sort(due.ravel()))
    if array.is_sparse:
        with pytest.raises(TypeError, match="len\\(array.read"):
            len(array)
        assert array.unique_dim_values() == dict(theirs.unique_dim_values()) and array.unique_dim_values("x") == theirs.unique_dim_values("x")
    else:
        with pytest.raises(tilefs.UsageError, match="is dense"):
            array.unique_dim_values()
    array.close()
    assert not array.isopen and array.mode == "closed"


def test_fragments_have_their_values_in_tuples(numbers):
    ours, theirs = tilefs.array_fragments(numbers), tiledb.FragmentInfoList(numbers)
    # Of dense arrays, TileDB counts the cells of whole tiles, also outside the domain.
    counts = ("cell_num",) if ours.sparse[0] else ()
    for name in ("uri", "version", "nonempty_domain", "timestamp_range", "sparse", *counts):
        found, due = getattr(ours, name), getattr(theirs, name)
        assert [str(one).replace("file://", "") for one in found] == [str(one).replace("file://", "") for one in due], name
        assert getattr(ours[0], name) == found[0]
    assert len(ours) == len(theirs) and isinstance(ours, tilefs.FragmentInfoList) and pickle.loads(pickle.dumps(ours)) == list(ours)


@pytest.mark.parametrize("order", ["C", "F", "G", "U"])
@pytest.mark.parametrize("cond", [None, "score > 20", "score < 0"])
def test_results_in_parts_are_the_whole(cells, order, cond):
    array = tilefs.open(cells[0])
    query, parts = (array.query(order=order, cond=cond, return_incomplete=one) for one in (False, True))
    for key in (slice(None), [slice(100, 400), 900, slice(300, 600)], []):
        whole = query.multi_index[key]
        found = list(parts.multi_index[key])
        for name, due in whole.items():
            assert np.concatenate([one[name] for one in found]).tolist() == due.tolist()
        frames = list(parts.df[key])
        assert sum(map(len, frames)) == len(query.df[key]) and all((one.dtypes == query.df[key].dtypes).all() for one in frames)
        # Each loop reads again.
        again = parts.df[key]
        assert [len(one) for one in again] == [len(one) for one in again]


def test_dense_arrays_have_no_parts(demo):
    with pytest.raises(tilefs.UsageError, match="is dense"):
        tilefs.open(demo).query(return_incomplete=True)
