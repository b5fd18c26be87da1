"""Queries with conditions give what TileDB-Py gives: `array.query(cond="a > 3")[...]`, `.multi_index`, `.df`."""

import pathlib
import shutil

import numpy as np
import pandas
import pytest
from conftest import tiledb

import tilefs
from tilefs import _parts

ENUMERATIONS = [
    tiledb.Enumeration("colours", False, np.array(["red", "green", "blue"])),
    tiledb.Enumeration("levels", True, np.array(["low", "mid", "high"])),
    tiledb.Enumeration("tens", False, np.array([10, 20, 30], dtype=np.int64)),
]

ATTRIBUTES = [
    tiledb.Attr("n", dtype=np.int32, nullable=True),
    tiledb.Attr("f", dtype=np.float64),
    tiledb.Attr("g", dtype=np.float32, nullable=True),
    tiledb.Attr("s", dtype=str, var=True),
    tiledb.Attr("m", dtype="ascii", var=True, nullable=True),
    tiledb.Attr("u", dtype=np.uint8),
    tiledb.Attr("b", dtype=bool),
    tiledb.Attr("t", dtype="datetime64[D]"),
    tiledb.Attr("c", dtype=np.int8, enum_label="colours"),
    tiledb.Attr("l", dtype=np.int8, enum_label="levels"),
    tiledb.Attr("k", dtype=np.int8, enum_label="tens"),
    tiledb.Attr("e", dtype=np.int8, enum_label="colours", nullable=True),
    tiledb.Attr("i", dtype=np.int8),
]

VALUES = {
    "n": pandas.Series([1, None, 3, 4, None, 6], dtype="Int32"),
    "f": np.array([0.0, -0.0, np.nan, 1.5, np.inf, -np.inf]),
    "g": pandas.Series([1, None, 3, 4, None, 6], dtype="Float32"),
    "s": np.array(["a", "b", "", "abc", "é", "zz"], dtype=object),
    "m": pandas.Series(["x", None, "", "y", None, "zz"], dtype=object),
    "u": np.array([0, 255, 128, 3, 4, 5], np.uint8),
    "b": np.array([1, 0, 1, 0, 1, 1], bool),
    "t": np.array(["2020-01-01", "NaT", "1960-01-01", "2021-01-01", "2022-01-01", "2023-01-01"], "M8[D]"),
    "c": np.array([0, 1, 2, 0, 1, 2], np.int8),
    "l": np.array([0, 1, 2, 2, 1, 0], np.int8),
    "k": np.array([0, 1, 2, 0, 1, 2], np.int8),
    "e": pandas.Series([0, None, 2, 1, None, 0], dtype="Int8"),
    "i": np.array([-1, -128, 127, 0, 1, 2], np.int8),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queries")
    dim = tiledb.Dim("d", domain=(0, 9), tile=3, dtype=np.int64)
    for name in ("dense", "sparse"):
        schema = tiledb.ArraySchema(tiledb.Domain(dim), ATTRIBUTES, sparse=name == "sparse", enums=ENUMERATIONS)
        tiledb.Array.create(str(folder / name), schema)
        with tiledb.open(str(folder / name), "w") as array:
            array[np.arange(6) if name == "sparse" else slice(0, 6)] = VALUES
    return folder


# Each gives the same in both libraries.
CONDITIONS = """
n == 3 | n != 3 | not (n == 3) | not (n != 3) | n == None | n != None | not (n == None) | None == n | n in [1, 3]
n not in [1, 3] | n < 4 | n >= 4 | 4 <= n | n == -3 | n == - -3 | n == +3 | n == val(3) | attr('n') == 3
f == 0 | f != 0 | f < 1 | f >= 1 | f in [0.0] | f not in [0.0, 1.5] | not f < 1 | f == -0.0 | 0 < f < 2 | f > 1e400
f == None | f != None | g != 3 | g not in [3] | g > 2
s == '' | s != '' | s < 'b' | s >= 'é' | s in ['a', 'é'] | s not in ['a', ''] | s == None | s != None | s == b'a'
s == 'a' or s == 'b' and n == 3 | m == None | m != None | m == '' | m != '' | m < 'y' | m in ['', 'x'] | m not in ['x']
not (m == 'x') | u < 200 | u == 255 | u < 1.5 | u == True | b == True | b == 1 | b == False | b != True
t == 18262 | t < 0 | t > 18000 | t in [18262] | c == 'red' | c != 'red' | c in ['red', 'blue'] | c not in ['red']
c == 'none' | c != 'none' | c in ['none', 'red'] | c not in ['none'] | c in ['none'] | not (c == 'none')
l < 'mid' | l <= 'mid' | l > 'low' | l == 'high' | l < 'none' | l >= 'none' | l in ['low'] | not (l < 'mid')
k == 10 | k == 11 | k in [10, 30] | k != 10 | e == 'red' | e != 'red' | e == None | e != None | e in ['red']
e not in ['red'] | e != 'none' | not (e == 'red') | i > -1 | i == -128 | i == 1.0 | i == 1.7 | d in [1, 2, 9]
d not in [1, 2] | n == 3 and n == None or m == None | n not in [1] and m not in ['x']
""".replace("\n", "|").replace("(n == 3) |", "(n == 3) |").split("|")
CONDITIONS = [one.strip() for one in CONDITIONS if one.strip()] + ["(n == 3) | (n == 4)", "(n == 3) & (f != 0)"]

# These are for sparse arrays: TileDB-Py refuses them for dense ones.
OF_DIMENSIONS = ["d < 3", "dim('d') >= 3", "d != 3", "d == 3 or n == 4", "2 < d <= 4 and n != None", "d == 3 and d == 4", "d == 99", "d in [3, 99]", "d > 4 and d < 1000"]


def same(ours, theirs):
    assert list(ours) == list(theirs)
    for name in theirs:
        assert ours[name].shape == theirs[name].shape and (ours[name].dtype == theirs[name].dtype or not theirs[name].size), name
        np.testing.assert_array_equal(np.ma.getmaskarray(ours[name]), np.ma.getmaskarray(theirs[name]))
        is_known = ~np.ma.getmaskarray(theirs[name])
        np.testing.assert_array_equal(np.ma.getdata(ours[name])[is_known], np.ma.getdata(theirs[name])[is_known])


@pytest.mark.parametrize("condition", CONDITIONS + OF_DIMENSIONS)
def test_conditions_select_the_rows_that_tiledb_selects(paths, condition):
    path = str(paths / "sparse")
    attrs = ["u", "n", "s", "f", "b", "t"]
    with tiledb.open(path) as theirs:
        expected = theirs.query(cond=condition, attrs=attrs)[:]
    array = tilefs.open(path)
    query = array.query(cond=condition, attrs=attrs)
    same(query[:], expected)
    assert query.multi_index[:]["d"].tolist() == expected["d"].tolist()
    assert query.df[:]["d"].tolist() == expected["d"].tolist()
    # Columns that only the condition needs are not returned.
    assert list(array.query(cond=condition, attrs=["i"], dims=False)[:]) == ["i"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_cells_of_dense_arrays_have_the_fill_value_where_a_condition_fails(paths, condition):
    path = str(paths / "dense")
    attrs = ["u", "n", "f", "b", "t", "i"]
    with tiledb.open(path) as theirs:
        expected = theirs.query(cond=condition, attrs=attrs)[0:6]
    same(tilefs.open(path).query(cond=condition, attrs=attrs)[0:6], expected)


# What TileDB-Py cannot compare, and libtiledb could: each is the first condition written differently.
MORE = [
    ("n == 1 or n == 3", "not (n not in [1, 3])"),
    ("u == 255 or u == 3", "u in [255, 3]"),
    ("b == 1", "b in [True]"),
    ("t == 18262", "t == '2020-01-01'"),
    ("t > 18261 and t != None", "t >= '2020-01-01'"),
    ("n == 3", "val(3) == n"),
    ("f <= 0 or f >= 2", "not (0 < f < 2)"),
    ("n <= 3 and s != 'a'", "not (n > 3 or s == 'a')"),
    ("n <= 3 or s == 'a'", "not (n > 3 and not s == 'a')"),
    ("n == 3", "(n == 3) & (n == 3) & (n == 3)"),
]


@pytest.mark.parametrize("known, other", MORE)
def test_more_conditions_are_understood(paths, known, other):
    array = tilefs.open(paths / "sparse")
    assert array.query(cond=known)[:]["d"].tolist() == array.query(cond=other)[:]["d"].tolist() != []


REFUSED = [
    ("n ==", "not a condition"),
    ("n", "no condition"),
    ("3", "no condition"),
    ("n + 1 == 3", "no field"),
    ("n == s", "no value"),
    ("nope == 1", "no field 'nope'"),
    ("colour == 1 or cc == 2", "no field"),
    ("attr('d') == 3", "no attribute 'd'"),
    ("dim('n') == 3", "no dimension 'n'"),
    ("n < None", "null compares only"),
    ("n is None", "== None"),
    ("n in []", "a list with a value"),
    ("n in (1, 2)", "needs a list"),
    ("n in [1.5]", "integers"),
    ("s > 1", "in quotes"),
    ("n == 'x'", "numbers of the type int32"),
    ("u == 256", "which 256 is not"),
    ("u > -1", "which -1 is not"),
    ("n == 99999999999", "which 99999999999 is not"),
    ("c < 'red'", "no order"),
    ("c == 0", "labels"),
    ("k == '10'", "labels"),
    ("t == 'soon'", "dates such as"),
    ("t == '2020-01-01T12:30'", "cannot hold"),
    ("n == 3 | n == 4", "parentheses"),
    ("__import__('os').system('true') == 0", "no field"),
    ("f == 10 ** 3", "no value"),
    ("n == 3 if True else 2", "no condition"),
    ("s.x == 1", "no field"),
    ("not " * 200 + "n == 3", "levels|nested"),
    ("(" * 5000 + "n == 3" + ")" * 5000, "nested|not a condition"),
    ("\0", "not a condition"),
]


@pytest.mark.parametrize("condition, reason", REFUSED)
def test_other_texts_are_refused_with_a_reason(paths, condition, reason):
    for name in ("dense", "sparse"):
        with pytest.raises(tilefs.UsageError, match=reason):
            tilefs.open(paths / name).query(cond=condition)


def test_long_conditions_take_no_recursion(paths):
    array = tilefs.open(paths / "sparse")
    assert array.query(cond=" or ".join(f"n == {number}" for number in range(3000)))[:]["n"].tolist() == [1, 3, 4, 6]
    assert array.query(cond=" & ".join(["(n == 3)"] * 50))[:]["n"].tolist() == [3]


def test_conditions_narrow_what_is_read(paths):
    query = tilefs.open(paths / "sparse").query(cond="d > 1 and d <= 4 and n != None and d < 100")
    assert query._pushed_down([[(None, None)]]) == [[(1, 4)]]
    assert query._pushed_down([[(0, 2), (3, 3), (7, 9)]]) == [[(1, 2), (3, 3)]]
    query = tilefs.open(paths / "sparse").query(cond="d in [1, 3] and n == 4 or d == 2")
    assert query._pushed_down([[(None, None)]]) == [[(None, None)]]
    assert tilefs.open(paths / "sparse").query(cond="d in [1, 3]")._pushed_down([[(None, None)]]) == [[(1, 1), (3, 3)]]


def test_nothing_found_has_the_right_types(paths):
    array = tilefs.open(paths / "sparse")
    for rows in (array.query(cond="n > 1000")[:], array.query(cond="d > 5 and d < 3")[:], array.multi_index[[]]):
        assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(rows, 0)
        assert rows["d"].dtype == np.int64 and rows["f"].dtype == np.float64 and rows["t"].dtype == "M8[D]"
    assert len(array.query(cond="n > 1000").df[:]) == 0


@pytest.mark.parametrize("order", ["C", "F", "G"])
def test_orders_of_dense_arrays(tmp_path, order):
    dims = [tiledb.Dim("y", domain=(1, 7), tile=3, dtype=np.int32), tiledb.Dim("x", domain=(0, 4), tile=2, dtype=np.int32)]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.int32)])
    tiledb.Array.create(str(tmp_path / "a"), schema)
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[:] = np.arange(35, dtype=np.int32).reshape(7, 5)
    with tiledb.open(str(tmp_path / "a")) as theirs:
        ours = tilefs.open(tmp_path / "a")
        for options in ({"coords": True}, {"dims": ["x"]}, {}):
            # libtiledb reads in global order only whole tiles.
            key = (slice(1, 7), slice(0, 4)) if order == "G" else (slice(2, 6), slice(1, 4))
            expected = theirs.query(order="G" if order == "G" else "C", **options)[key]
            found = ours.query(order=order, **options)[key]
            assert list(found) == list(expected)
            for name in expected:
                np.testing.assert_array_equal(found[name], expected[name])
                # TileDB-Py gives cells in column order the shape of those in row order.
                assert found[name].flags["F_CONTIGUOUS"] == (order != "C")
    for other in ("U", "CF"):
        with pytest.raises(ValueError, match="order is"):
            ours.query(order=other)
    with pytest.raises(KeyError, match="no attribute 'b'"):
        ours.query(attrs=["b"])
    with pytest.raises(KeyError, match="no dimension 'z'"):
        ours.query(dims=["z"])


@pytest.mark.parametrize("order", ["C", "F", "U"])
def test_orders_of_sparse_arrays(tmp_path, order):
    dims = [tiledb.Dim(name, domain=(0, 9), tile=3, dtype=np.int32) for name in "yx"]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.int32)], sparse=True)
    tiledb.Array.create(str(tmp_path / "a"), schema)
    y, x = (one.ravel() for one in np.meshgrid(np.arange(10), np.arange(10), indexing="ij"))
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[y, x] = np.arange(100, dtype=np.int32)
    found = tilefs.open(tmp_path / "a").query(order=order)[2:5]["a"].tolist()
    expected = {"C": list(range(20, 50)), "F": [10 * row + column for column in range(10) for row in (2, 3, 4)]}
    assert found == expected[order] if order != "U" else sorted(found) == expected["C"]


def test_frames_have_the_types_and_index_that_pandas_had(tmp_path):
    """A frame comes back as it was; TileDB-Py itself needs an older pandas than ours to write it."""
    path = str(tmp_path / "frame")
    dim = tiledb.Dim("key", domain=(None, None), dtype="ascii")
    attrs = [tiledb.Attr("a", dtype=np.int64), tiledb.Attr("d", dtype=np.uint8), tiledb.Attr("n", dtype=np.int16, nullable=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True))
    with tiledb.open(path, "w") as array:
        array[np.array(["k1", "k2"], dtype="S")] = {"a": [1, 2], "d": [1, 0], "n": pandas.Series([None, 3], dtype="Int16")}
        array.meta["__pandas_attribute_repr"] = '{"d": "bool"}'
        array.meta["__pandas_index_dims"] = '{"key": "<U0"}'
    array = tilefs.open(path)
    frame = array.df[:]
    assert frame.index.tolist() == ["k1", "k2"] and frame.index.name == "key"
    assert frame.dtypes.astype(str).to_dict() == {"a": "int64", "d": "bool", "n": "Int16"}
    assert array.query(index_col=None).df["k1":"k1"].columns.tolist() == ["key", "a", "d", "n"]
    table = array.query(return_arrow=True, attrs=["n"]).df[:]
    assert table.column_names == ["key", "n"] and table["n"].to_pylist() == [None, 3]
    with pytest.raises(tilefs.UsageError, match="df"):
        array.query(return_arrow=True)[:]


def test_schemas_have_the_attributes_of_tiledb_py(paths):
    for name in ("dense", "sparse"):
        with tiledb.open(str(paths / name)) as theirs:
            ours = tilefs.open(paths / name)
            for attribute in ("sparse", "ndim", "nattr", "shape", "version", "cell_order", "tile_order"):
                assert getattr(ours.schema, attribute) == getattr(theirs.schema, attribute), attribute
            dim, expected = ours.schema.domain.dim(0), theirs.schema.domain.dim("d")
            assert (dim.name, dim.domain, dim.tile, dim.dtype, dim.size) == (expected.name, expected.domain, expected.tile, expected.dtype, expected.size)
            assert [one.name for one in ours.schema.domain] == ["d"] and ours.schema.domain.has_dim("d")
            for number in range(theirs.nattr):
                attr, expected = ours.attr(number), theirs.attr(number)
                assert (attr.name, attr.isnullable, attr.isvar, attr.isanon, attr.enum_label) == (
                    expected.name, expected.isnullable, expected.isvar, expected.isanon, expected.enum_label
                )
                if not attr.isvar and not attr.isnullable:
                    assert attr.dtype == expected.dtype
                    np.testing.assert_array_equal(attr.fill, np.asarray(expected.fill).ravel().astype(attr.dtype)[0])
            assert ours.schema.has_attr("n") and not ours.schema.has_attr("x") and ours.attr("n") is ours["n"]
            levels = ours.enum("levels")
            assert levels.ordered and levels.values().tolist() == ["low", "mid", "high"] and ours.enum("tens").dtype == np.int64


def test_labels_select_cells(tmp_path):
    dims = [tiledb.Dim("d1", domain=(1, 4), dtype=np.int32), tiledb.Dim("d2", domain=(1, 3), dtype=np.int32)]
    labels = {
        0: {"l1": dims[0].create_label_schema("decreasing", np.int64)},
        1: {"l2": dims[1].create_label_schema("increasing", np.int64), "l3": dims[1].create_label_schema("increasing", np.float64)},
    }
    path = str(tmp_path / "labels")
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.int64)], dim_labels=labels))
    with tiledb.open(path, "w") as array:
        array[:] = {
            "a": np.arange(1, 13).reshape(4, 3), "l1": np.arange(4, 0, -1), "l2": np.arange(-1, 2), "l3": np.linspace(0, 1.0, 3)
        }
    with tiledb.open(path) as theirs:
        ours = tilefs.open(path)
        for names, key in (
            (["l1"], slice(3, 4)), (["l1", "l3"], (2, slice(0.5, 1.0))), (["l2"], (slice(None), slice(-1, 0))),
            (["l1", "l2"], (slice(1, 3), slice(0, 1))), (["l3"], ([1, 2], slice(0.4, 0.6))),
        ):
            expected, found = theirs.label_index(names)[key], ours.label_index(names)[key]
            assert set(found) == set(expected)
            for name in expected:
                np.testing.assert_array_equal(found[name], expected[name])
    assert ours.label_index(["l1"])[100:200]["a"].size == 0
    with pytest.raises(tilefs.UsageError, match="no dimension label 'l9'; it has l1, l2, l3"):
        ours.label_index(["l9"])
    with pytest.raises(tilefs.UsageError, match="same dimension"):
        ours.label_index(["l2", "l3"])


def test_what_is_stored_where(tmp_path, paths):
    tiledb.Group.create(str(tmp_path / "g"))
    with tiledb.Group(str(tmp_path / "g"), "w") as group:
        for name in ("dense", "sparse"):
            tiledb.Array.create(str(tmp_path / "g" / name), tiledb.ArraySchema.load(str(paths / name)))
            group.add(name, name, relative=True)
    (tmp_path / "plain").mkdir()
    assert [tilefs.object_type(path) for path in (tmp_path / "g", tmp_path / "g/dense", tmp_path / "plain", tmp_path / "no")] == ["group", "array", None, None]
    expected = []
    tiledb.ls(str(tmp_path), lambda path, kind: expected.append((path.replace("file://", ""), kind)))
    assert tilefs.ls(tmp_path) == sorted(expected) == [(str(tmp_path / "g"), "group")]
    for order in ("preorder", "postorder"):
        seen = []
        found = tilefs.walk(tmp_path, lambda *one: seen.append(one), order)
        expected = []
        tiledb.walk(str(tmp_path), lambda path, kind: expected.append((path.replace("file://", ""), kind)), order)
        assert found == seen and sorted(found) == sorted(expected) and (found[0] == (str(tmp_path / "g"), "group")) == (order == "preorder")
    theirs, ours = tiledb.array_fragments(str(paths / "sparse")), tilefs.array_fragments(paths / "sparse")
    for expected, found in zip(theirs, ours):
        assert found[:-1] == (
            expected.uri.replace("file://", ""), expected.timestamp_range, expected.version, expected.sparse, expected.cell_num, expected.nonempty_domain
        )
        stored = sum(file.stat().st_size for file in pathlib.Path(found.uri).glob("[ad]*.tdb"))
        assert found.stored_bytes == stored > 0
    assert len(ours) == len(theirs) == 1
    with pytest.raises(tilefs.UsageError, match="group"):
        tilefs.array_fragments(tmp_path / "g")


def test_open_takes_the_arguments_of_tiledb_py(paths, tmp_path):
    path = str(tmp_path / "times")
    dim = tiledb.Dim("d", domain=(0, 3), tile=2, dtype=np.int32)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("", dtype=np.int32)]))
    for time in (10, 20, 30):
        with tiledb.open(path, "w", timestamp=time) as array:
            array[:] = np.full(4, time, np.int32)
    for timestamp in (15, 20, (0, 10), (11, 25), (None, 20)):
        with tiledb.open(path, timestamp=timestamp) as theirs:
            ours = tilefs.open(path, "r", timestamp=timestamp)
            np.testing.assert_array_equal(ours[:], theirs[:])
            assert ours.timestamp_range == theirs.timestamp_range
    assert tilefs.open(path, config=tiledb.Config({"vfs.s3.region": "eu-west-1"}))[0] == 30
    with pytest.raises(tilefs.UsageError, match="only reads"):
        tilefs.open(path, "w")
    with pytest.raises(tilefs.UsageError, match="not both"):
        tilefs.open(path, timestamp=3, at=4)
    with pytest.raises(tilefs.UsageError, match="pair"):
        tilefs.open(path, timestamp=(1, 2, 3))


@pytest.fixture(scope="module")
def ascending(tmp_path_factory):
    """Returns a sparse array with integers, dates and labels that ascend along its dimension, and the integers."""
    path = tmp_path_factory.mktemp("ascending") / "array"
    count = 200_000
    numbers = np.arange(count)
    dim = tiledb.Dim("id", domain=(0, 10**6), tile=10**5, dtype=np.int64)
    kinds = tiledb.Enumeration("kinds", False, np.array(["a", "b", "c", "d"]))
    attrs = [tiledb.Attr("n", dtype=np.int32), tiledb.Attr("t", dtype="datetime64[s]"), tiledb.Attr("kind", dtype=np.int8, enum_label="kinds")]
    schema = tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=1000, enums=[kinds])
    tiledb.Array.create(str(path), schema)
    with tiledb.open(str(path), "w") as array:
        array[numbers] = {"n": (numbers * 3).astype("i4"), "t": numbers.astype("M8[s]"), "kind": (numbers // 50_000).astype("i1")}
    return path


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("n > 590000", 3333),
        ("n >= 300 and n < 600", 100),
        ("n == 9 or n == 599997", 2),
        ("t < '1970-01-01T00:01:00'", 60),
        ("kind == 'd'", 50_000),
        ("kind in ['a', 'nothing'] and n < 30", 10),
        ("not (n < 599991)", 3),
        ("n < 0", 0),
    ],
)
def test_bounds_of_tiles_rule_out_parts(ascending, tmp_path, condition, expected):
    copy = tmp_path / "array"
    shutil.copytree(ascending, copy)
    array = tilefs.open(copy)
    kept = _parts.possible(array.read()._rows, array, array.query(cond=condition)._condition)
    total = len(array.read()._rows.part_starts(_parts.ROWS))
    assert kept is not None and len(kept) <= max(3, total // 3)
    # Tiles that are ruled out are not read: damage those of the middle.
    if all(abs(part - total // 2) > 0 for part in kept):
        damage(copy, total // 2 * _parts.ROWS // 1000 + 5)
        with pytest.raises(tilefs.DamagedError):
            tilefs.open(copy).query(attrs=["n"]).df[:]
    found = tilefs.open(copy).query(cond=condition).df[:]
    assert len(found) == expected


def damage(path, tile):
    """Overwrites a part of the file of the attribute `n`."""
    (file,) = path.glob("__fragments/*/a0.tdb")
    with open(file, "r+b") as opened:
        opened.seek(file.stat().st_size * tile // 200)
        opened.write(b"\xff" * 64)


def test_bounds_rule_out_nothing_that_holds(ascending):
    array = tilefs.open(ascending)
    numbers = np.arange(200_000) * 3
    random = np.random.default_rng(5)
    for _ in range(20):
        low, high = sorted(random.integers(-100, 700_000, 2).tolist())
        found = array.query(attrs=["n"], cond=f"n > {low} and n <= {high} or n == {low * 3}")[:]
        expected = numbers[((numbers > low) & (numbers <= high)) | (numbers == low * 3)]
        np.testing.assert_array_equal(np.sort(found["n"]), expected)
    # Nothing is ruled out.
    assert _parts.possible(array.read()._rows, array, array.query(cond="n != 3")._condition) is None
    assert _parts.possible(array.read(order="row")._rows, array, array.query(cond="n < 3")._condition) in (None, [0])
