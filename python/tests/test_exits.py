"""Every way out of an array gives the cells that were written, for every type, order and storage: subscripts, frames, Arrow,
Polars, dask and parts; also codes without a label, nulls, and no rows at all, with the same types."""

import pickle

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import tiledb

import tilefs

dask = pytest.importorskip("dask")


class Kind:
    """A type of attribute, and a cell for each of four rows. The rows at 1 and 3 are null if it is nullable."""

    def __init__(self, cells, dtype, *, labels=None, ordered=False, can_be_null=True, shown=None, **options):
        self.cells, self.dtype, self.labels, self.ordered = cells, dtype, labels, ordered
        self.can_be_null, self.options = can_be_null, options
        # The cells as Python has them, if not those that are written.
        self.shown = cells if shown is None else shown

    def expected(self, is_nullable):
        return [None if is_nullable and row in (1, 3) else one for row, one in enumerate(self.shown)]

    def written(self, is_nullable):
        cells = np.empty(4, dtype=object)
        if self.options.get("var"):
            cells[:] = [None if is_nullable and row in (1, 3) else one for row, one in enumerate(self.cells)]
            return cells
        return np.array(self.cells, dtype=self.dtype)


def numbers(dtype):
    ends = np.iinfo(dtype)
    return Kind([int(ends.min), int(ends.max), int(ends.max) - 4, 7], dtype)


CODES = [0, 1, -1, 7]
KINDS = {
    **{dtype: numbers(dtype) for dtype in ("i1", "i2", "i4", "u1", "u2", "u4", "u8")},
    "i8": Kind([-(2**63), 2**53 + 1, 2**53 + 3, 2**63 - 1], "i8"),
    "f4": Kind([0.5, -2.5, float("inf"), 1e30], "f4", shown=[0.5, -2.5, float("inf"), float(np.float32(1e30))]),
    "f8": Kind([0.1, -2.5, float("-inf"), 1e300], "f8"),
    "bool": Kind([True, False, True, False], "bool"),
    "days": Kind(["2024-01-01", "1900-02-28", "1970-01-01", "0001-01-01"], "M8[D]"),
    "months": Kind(["2024-01", "1900-02", "1970-01", "0001-01"], "M8[M]", can_be_null=False),
    "nanoseconds": Kind([1, -(2**60), 2**60 + 1, 0], "M8[ns]"),
    "complex": Kind([1 + 2j, 3 - 1j, 0j, -1j], "c16", can_be_null=False),
    "half complex": Kind([1 + 2j, 3 - 1j, 0j, -1j], "c8", can_be_null=False),
    "fixed bytes": Kind([b"ab", b"abcd", b"", b"x"], "S4", can_be_null=False),
    "pair": Kind([(1, 2), (3, 4), (5, 6), (7, 8)], [("", "i4"), ("", "i4")], can_be_null=False),
    "text": Kind(["a", "größer", "", "x" * 900], "U0", var=True),
    "ascii": Kind(["a", "bc", "", "x" * 900], "ascii", var=True),
    "bytes": Kind([b"a", b"\xff\x00", b"", b"x" * 900], "S0", var=True, can_be_null=False),
    "lists": Kind([np.arange(count, dtype="i4") for count in (1, 2, 3, 2000)], "i4", var=True, can_be_null=False),
    "labels": Kind(CODES, "i1", labels=np.array(["x", "y"]), shown=["x", "y", None, None]),
    "ordered labels": Kind(CODES, "i4", labels=np.array(["x", "y"]), ordered=True, shown=["x", "y", None, None]),
    "labels of booleans": Kind(CODES, "i1", labels=np.array([False, True]), shown=[False, True, None, None]),
    "labels of numbers": Kind(CODES, "i2", labels=np.array([10, 20], "i8"), shown=[10, 20, None, None]),
    "labels of wide codes": Kind([0, 1, 2**63, 2], "u8", labels=np.array(["x", "y"]), shown=["x", "y", None, None]),
}
CASES = [(name, is_sparse, is_nullable) for name, kind in KINDS.items() for is_sparse in (True, False) for is_nullable in ((False, True) if kind.can_be_null else (False,))]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{'sparse' if case[1] else 'dense'}{'-nullable' if case[2] else ''}")
def case(request, tmp_path_factory):
    name, is_sparse, is_nullable = request.param
    kind, path = KINDS[name], str(tmp_path_factory.mktemp("exits") / "a")
    enums = [] if kind.labels is None else [tiledb.Enumeration("e", kind.ordered, kind.labels)]
    attr = tiledb.Attr("a", dtype=kind.dtype, nullable=is_nullable, enum_label="e" if enums else None, **kind.options)
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 3), tile=2, dtype=np.int64))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [attr], sparse=is_sparse, capacity=2 if is_sparse else 0, enums=enums))
    with tiledb.open(path, "w") as array:
        # As `tiledb.from_pandas` does: a subscript makes floating point of numbers beside nulls.
        nulls = {"a": np.array([1, 0, 1, 0], dtype="u1")} if is_nullable else {}
        if is_sparse:
            tiledb.sparse_array._setitem_impl_sparse(array, np.arange(4), {"a": kind.written(is_nullable)}, nulls)
        else:
            array._setitem_impl(slice(None), {"a": kind.written(is_nullable)}, nulls)
    return kind, tilefs.open(path), kind.expected(is_nullable)


def plain(kind, values):
    """Returns values as Python has them; ``None`` for what is missing."""
    found = []
    for one in values:
        if one is None or one is np.ma.masked or one is pandas.NA or one is pandas.NaT:
            found.append(None)
        elif isinstance(one, float) and one != one:
            found.append(None)
        elif isinstance(kind.dtype, str) and kind.dtype.startswith("M8"):
            # Arrow and pandas have no months.
            found.append(str(np.datetime64(getattr(one, "asm8", one)).astype(kind.dtype)))
        elif isinstance(one, np.ndarray) and one.dtype != object:
            found.append(one.tolist())
        elif isinstance(one, (bytes, np.bytes_)) and not kind.options.get("var"):
            found.append(bytes(one).rstrip(b"\0"))
        elif isinstance(one, bytes) and kind.dtype == "ascii":
            found.append(one.decode())
        elif isinstance(one, np.generic):
            found.append(one.item())
        else:
            found.append(one)
    if kind.dtype in ("c8", "c16"):
        found = [complex(*one) if isinstance(one, list) else one for one in found]
    return [tuple(one) if isinstance(one, list) else one for one in found]


def stored(kind, expected):
    return plain(kind, [None if one is None else np.array(one, dtype=kind.dtype)[()] if isinstance(kind.dtype, str) and kind.dtype[:2] == "M8" else one for one in expected])


def orders(array):
    return ("C", "F", "G", "U") if array.is_sparse else ("C", "F", "G")


def test_subscripts_have_the_cells(case):
    kind, array, expected = case
    assert plain(kind, (array[:]["a"])) == stored(kind, expected)
    assert plain(kind, (array[1:3]["a"])) == stored(kind, expected)[1:3]
    for order in orders(array):
        assert plain(kind, (array.query(order=order).multi_index[:]["a"])) == stored(kind, expected), order
        assert plain(kind, (array.query(order=order).multi_index[[1, slice(3, 3)]]["a"])) == [stored(kind, expected)[row] for row in (1, 3)]


def test_queries_have_the_stored_codes(case):
    kind, array, _ = case
    if kind.labels is not None:
        codes = array.query()[:]["a"]
        with tiledb.open(array.uri) as theirs:
            due = theirs.query()[:]["a"]
        assert codes.dtype == kind.dtype == due.dtype and codes.tolist() == np.ma.MaskedArray(due, np.ma.getmaskarray(codes)).tolist()


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m"])
@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_frames_refuse_dates_that_seconds_cannot_hold(tmp_path, unit, far):
    for is_sparse in (True, False):
        path = str(tmp_path / str(is_sparse))
        domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 1), tile=2, dtype=np.int64))
        tiledb.Array.create(path, tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype=f"M8[{unit}]")], sparse=is_sparse))
        with tiledb.open(path, "w") as array:
            array[np.arange(2) if is_sparse else slice(None)] = np.array([1, far]).view(f"M8[{unit}]")
        with pytest.raises(tilefs.UnsupportedError, match=f"the value {far} of row 1, which is too far away"):
            tilefs.open(path).df[:]


def test_frames_have_the_cells(case):
    kind, array, expected = case
    for order in orders(array)[:2]:
        query = array.query(order=order)
        assert plain(kind, query.df[:]["a"].tolist()) == stored(kind, expected), order
        table = array.query(order=order, return_arrow=True).df[:]
        assert plain(kind, table["a"].to_pandas(date_as_object=False).tolist() if kind.dtype == "M8[ns]" else table["a"].to_pylist()) == stored(kind, expected)
    if kind.dtype == "S4":
        assert array.df[:]["a"].str.len().tolist() == [4, 4, 4, 4]


def test_tables_have_the_cells(case):
    kind, array, expected = case
    rows = array.read(columns=["a"])
    found = rows.to_arrow()["a"]
    values = found.cast("int64").to_pylist() if pyarrow.types.is_timestamp(found.type) and kind.dtype == "M8[ns]" else found.to_pylist()
    if kind.dtype == "M8[ns]":
        values = [None if one is None else np.datetime64(one, "ns") for one in values]
    assert plain(kind, values) == stored(kind, expected)
    if kind.dtype not in ("M8[ns]",):
        assert plain(kind, [one.to_list() if isinstance(one, polars.Series) else one for one in polars.DataFrame(rows)["a"].to_list()]) == stored(kind, expected)
    assert len(rows) == 4 and rows.head(2)["a"].combine_chunks().equals(found.slice(0, 2).combine_chunks())
    assert "4 rows" in repr(rows)


def test_parts_are_the_rows(case):
    kind, array, _ = case
    rows = array.read(columns=["a"])
    whole = rows.to_arrow()
    # Parts of two rows, as those of a million.
    parts = [rows._of_parts(2, [number]) for number in range(2)]
    for number, part in enumerate(parts):
        for one in (part, pickle.loads(pickle.dumps(part)), part._of_parts(1, range(len(part._rows.part_starts(1)))), part.part(0)):
            assert len(one) == 2 and "2 rows" in repr(one) and "2 rows" in one._repr_html_()
            assert one.to_arrow().equals(whole.slice(2 * number, 2)) and one.head(1).equals(whole.slice(2 * number, 1))
            assert one.parts == 1
        assert len(part.to_dask_dataframe()) == 2


def type_in_dask(kind, of_pandas):
    """Returns the type of a column: that in pandas, but for days and bytes, which are objects there."""
    are_days = kind.dtype in ("M8[D]", "M8[M]")
    return pandas.ArrowDtype if are_days or kind.dtype in ("S4", "S0") else of_pandas.dtypes["a"]


def is_type(found, due):
    return isinstance(found, due) if isinstance(due, type) else found == due


def test_frames_of_dask_are_those_of_pandas(case):
    kind, array, expected = case
    frame = array.read().to_dask_dataframe(rows_of_partition=2)
    of_pandas = array.df[:]
    assert frame.npartitions == 2
    found = frame.compute(scheduler="sync")
    assert plain(kind, found["a"].tolist()) == stored(kind, expected) == plain(kind, of_pandas["a"].tolist())
    parts = [frame.get_partition(number).compute(scheduler="sync") for number in range(2)]
    due = type_in_dask(kind, of_pandas)
    for other in (frame, found, *parts, frame[["a"]].compute(scheduler="sync")):
        assert is_type(other.dtypes["a"], due), other
    assert is_type(frame["a"].compute(scheduler="sync").dtype, due)


def test_no_rows_have_the_types(case):
    kind, array, _ = case
    some = array.df[:].dtypes["a"]
    nothing = array.df[[]]
    assert len(nothing) == 0 and nothing.dtypes["a"] == some
    assert array.query(return_arrow=True).df[[]].schema.field("a").type == array.query(return_arrow=True).df[:].schema.field("a").type
    empty = array.multi_index[[]]["a"]
    whole = array.multi_index[:]["a"]
    assert len(empty) == 0 and isinstance(empty, np.ma.MaskedArray) == isinstance(whole, np.ma.MaskedArray)
    if all(one is not None for one in whole):
        assert empty.dtype == whole.dtype
    if array.is_sparse:
        frame = array.read().to_dask_dataframe("id < 0")
        due = type_in_dask(kind, array.df[:])
        assert len(frame) == 0 and is_type(frame.dtypes["a"], due) and frame.compute(scheduler="sync").dtypes["a"] == frame.dtypes["a"]
        assert array.query(cond="id < 0").df[:].dtypes["a"] == some


def test_booleans_are_booleans(tmp_path):
    path = str(tmp_path / "a")
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 9), tile=2, dtype=np.int64))
    attr = tiledb.Attr("a", dtype="i1", enum_label="e")
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [attr], sparse=True, enums=[tiledb.Enumeration("e", False, np.array([True, False]))]))
    with tiledb.open(path, "w") as array:
        array[np.arange(4)] = np.array([0, 1, 1, 0], "i1")
    array = tilefs.open(path)
    for frame in (array.df[:], array.read().to_dask_dataframe().compute(scheduler="sync")):
        assert frame["a"].cat.categories.dtype == bool and (frame["a"] == True).tolist() == [True, False, False, True]  # noqa: E712
    for key in (slice(None), slice(7, 9), []):
        assert array.query(return_arrow=True).df[key].schema.field("a").type.value_type == pyarrow.bool_()
        assert array.query(cond="a == True").df[key]["a"].cat.categories.tolist() == [True, False]


@pytest.mark.parametrize("cell_order", ["row-major", "col-major"])
@pytest.mark.parametrize("tile_order", ["row-major", "col-major"])
@pytest.mark.parametrize("kind", ["i4", "u8", "f8", "M8[D]", "ascii"])
def test_global_order_of_duplicates_is_that_of_tiledb(tmp_path, cell_order, tile_order, kind):
    random = np.random.default_rng(3)
    ends = {"i4": (-7, 12, 3), "u8": (3, 22, 3), "f8": (-7.0, 12.0, 2.5), "M8[D]": (np.datetime64("2000-01-03"), np.datetime64("2000-02-20"), np.timedelta64(4, "D"))}
    low, high, tile = ends.get(kind, (None, None, None))
    dims = [tiledb.Dim("y", domain=(low, high), tile=tile, dtype=kind), tiledb.Dim("x", domain=(0, 30), tile=7, dtype="i4")]
    path = str(tmp_path / "a")
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype="i4")], sparse=True, allows_duplicates=True, cell_order=cell_order, tile_order=tile_order, capacity=5))
    for fragment in range(2):
        numbers = random.integers(3, 12, 20)
        y = np.array([f"{one:02}" for one in numbers]) if kind == "ascii" else low + numbers if kind == "M8[D]" else numbers.astype(kind)
        with tiledb.open(path, "w") as array:
            array[y, random.integers(0, 30, 20)] = (np.arange(20) + 100 * fragment).astype("i4")
    with tiledb.open(path) as array:
        expected = array.query(order="G")[:]
    found = tilefs.open(path).query(order="G")[:]
    assert found["y"].tolist() == expected["y"].tolist() and found["x"].tolist() == expected["x"].tolist()
    assert sorted(found["a"].tolist()) == sorted(expected["a"].tolist())


def test_schemas_have_the_words_of_tiledb_py(case):
    kind, array, _ = case
    with tiledb.open(array.uri) as theirs:
        ours, attribute = array.schema, theirs.attr("a")
        assert (ours.cell_order, ours.tile_order) == (theirs.schema.cell_order, theirs.schema.tile_order)
        if not attribute.isvar:
            assert array.attr("a").dtype == attribute.dtype
        if not attribute.isvar and not attribute.isnullable:
            fill = np.asarray(attribute.fill)
            # That of one number is a number here, and an array of one there.
            assert array.attr("a").dtype.kind not in "cV" or array.attr("a").fill.shape == fill.shape
            assert np.asarray(array.attr("a").fill).tobytes() == fill.tobytes()


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ns"])
def test_tiles_of_dates_have_their_unit(tmp_path, unit):
    low = np.array(0, "i8").view(f"M8[{unit}]")
    domain = tiledb.Domain(tiledb.Dim("t", domain=(low, low + 9), tile=np.timedelta64(5, unit), dtype=f"M8[{unit}]"))
    tiledb.Array.create(str(tmp_path / "a"), tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i4")], sparse=True))
    tile = tilefs.open(tmp_path / "a").dim("t").tile
    assert tile == np.timedelta64(5, unit) and tile.dtype == f"m8[{unit}]"


def test_weeks_beyond_days_are_no_empty_selection(tmp_path):
    low = np.array(2**61, "i8").view("M8[W]")
    domain = tiledb.Domain(tiledb.Dim("t", domain=(low, low + 9), tile=np.timedelta64(5, "W"), dtype="M8[W]"))
    tiledb.Array.create(str(tmp_path / "a"), tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i4")], sparse=True))
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[low + np.arange(10)] = np.arange(10, dtype="i4")
    with pytest.raises(tilefs.Error):
        tilefs.open(tmp_path / "a").query(attrs=["a"], dims=False)[low + 3 : low + 5]


def test_arrays_are_arrays_of_numpy(tmp_path, demo, cells):
    values = np.arange(6.0).reshape(2, 3)
    tiledb.from_numpy(str(tmp_path / "a"), values).close()
    array = tilefs.open(tmp_path / "a")
    np.testing.assert_array_equal(np.asarray(array), values)
    assert np.sum(array) == 15 and np.asarray(array, dtype="i4").dtype == np.int32
    for wrong, reason in ((demo, "2 attributes.*temp, cell"), (cells[0], "is sparse")):
        with pytest.raises(TypeError, match=reason):
            np.asarray(tilefs.open(wrong))
    for key in (None, (None, 1)):
        with pytest.raises(IndexError, match="None is no coordinate"):
            array[key]


def test_frames_of_dask_are_written_as_parquet(case, tmp_path):
    kind, array, expected = case
    if kind.dtype in ("c8", "c16") or kind.dtype == "i4" and kind.options or not isinstance(kind.dtype, str):
        # Parquet has no complex numbers; of lists, dask wants to be told the type.
        return
    array.read().to_dask_dataframe(rows_of_partition=2).to_parquet(str(tmp_path))
    assert plain(kind, pandas.read_parquet(tmp_path)["a"].tolist()) == stored(kind, expected)
