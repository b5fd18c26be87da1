"""Tests rows of sparse arrays as Arrow tables, as pyarrow, pandas, Polars and DuckDB read them."""

import shutil

import pickle

import numpy as np
import pytest
import tiledb
import tilefs

pyarrow = pytest.importorskip("pyarrow")


def test_rows_are_those_that_were_written(cells):
    path, columns = cells
    array = tilefs.open(path)
    table = pyarrow.table(array.read())
    assert table.column_names == list(columns) and table.num_rows == len(array.read()) == 1000
    for name, values in columns.items():
        assert table[name].to_pylist() == values.tolist(), name
    assert pyarrow.types.is_dictionary(table.schema.field("state").type)
    assert array.is_sparse and "sparse" in repr(array)


@pytest.mark.parametrize("options", [{}, {"cache_size": 2 << 20}], ids=["cached", "small cache"])
def test_rows_of_several_large_batches_are_those_that_were_written(tmp_path, options):
    """A batch has a million rows: so these have large blocks of memory, the last one a smaller one. With a small cache,
    most tiles are decoded into these blocks when they are first read, and into the cache later."""
    count = 2_300_000
    dim = tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
    attr = tiledb.Attr("value", dtype=np.float64)
    tiledb.Array.create(str(tmp_path / "a"), tiledb.ArraySchema(tiledb.Domain(dim), [attr], sparse=True))
    ids = np.arange(count, dtype=np.int64) * 7
    values = np.random.default_rng(5).random(count)
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[ids] = values
    array = tilefs.open(tmp_path / "a", **options)
    for _ in range(3):
        table = pyarrow.table(array.read())
        assert table["id"].num_chunks == 3
        np.testing.assert_array_equal(table["id"].to_numpy(), ids)
        np.testing.assert_array_equal(table["value"].to_numpy(), values)


def test_text_is_checked_once_and_by_whole_cells(tmp_path):
    """pyarrow checks all offsets and characters again; a byte that is no character is an error that names its cell."""
    random = np.random.default_rng(8)
    words = np.array(["", "Rome", "Zürich", "São Paulo", "東京都", "🦀" * 3], dtype=object)
    texts = words[random.integers(0, len(words), 50_000)]
    dim = tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64)
    attrs = [tiledb.Attr("name", dtype=str, var=True), tiledb.Attr("also", dtype=str, var=True, nullable=True)]
    tiledb.Array.create(str(tmp_path / "a"), tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True))
    nullable = pyarrow.array([text if text != "Rome" else None for text in texts])
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[np.arange(len(texts))] = {"name": texts, "also": nullable}
    table = pyarrow.table(tilefs.open(tmp_path / "a").read())
    table.validate(full=True)
    assert table["name"].type == pyarrow.large_string() and table["name"].to_pylist() == texts.tolist()
    assert table["also"].to_pylist() == nullable.to_pylist()
    (file,) = (tmp_path / "a").glob("__fragments/*/a0_var.tdb")
    stored = bytearray(file.read_bytes())
    at = stored.rindex("ü".encode())
    stored[at + 1] = ord("x")
    file.write_bytes(stored)
    with pytest.raises(pyarrow.ArrowException, match=r"UTF-8.*name|name.*UTF-8"):
        pyarrow.table(tilefs.open(tmp_path / "a").read())


@pytest.mark.parametrize("options", [{}, {"cache_size": 2 << 20}], ids=["cached", "small cache"])
def test_damage_in_a_large_batch_says_where(tmp_path, options):
    count = 500_000
    dim = tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64)
    attr = tiledb.Attr("value", dtype=np.float64, filters=tiledb.FilterList([tiledb.ChecksumMD5Filter()]))
    tiledb.Array.create(str(tmp_path / "a"), tiledb.ArraySchema(tiledb.Domain(dim), [attr], sparse=True))
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[np.arange(count)] = np.random.default_rng(5).random(count)
    (file,) = (tmp_path / "a").glob("__fragments/*/a0.tdb")
    stored = bytearray(file.read_bytes())
    stored[len(stored) // 2 + 1000] ^= 1
    file.write_bytes(stored)
    with pytest.raises(pyarrow.ArrowException, match=f"checksum of the data .*fragment {file.parent.name}, file .*a0.tdb"):
        pyarrow.table(tilefs.open(tmp_path / "a", **options).read())


SELECTIONS = [
    (slice(300, 600), lambda ids: (ids >= 300) & (ids <= 600)),
    (slice(None, 30), lambda ids: ids <= 30),
    (slice(2900, None), lambda ids: ids >= 2900),
    ({"id": [3, 9, slice(30, 36)]}, lambda ids: np.isin(ids, [3, 9, 30, 33, 36])),
    (6, lambda ids: ids == 6),
    (np.int64(6), lambda ids: ids == 6),
    ((slice(0, 100),), lambda ids: ids <= 100),
    (np.array([0, 3]), lambda ids: ids <= 3),
    ("0..5+9", lambda ids: np.isin(ids, [0, 3, 9])),
    (None, lambda ids: ids >= 0),
    ({}, lambda ids: ids >= 0),
    ({"id": slice(None)}, lambda ids: ids >= 0),
    (7, lambda ids: ids < 0),
]


@pytest.mark.parametrize("rows, chosen", SELECTIONS, ids=[str(rows) for rows, _ in SELECTIONS])
def test_selected_rows_and_columns_come_in_order(cells, rows, chosen):
    path, columns = cells
    table = pyarrow.table(tilefs.open(path).read(rows=rows, columns=["score", "id"]))
    expected = columns["id"][chosen(columns["id"])]
    assert table.column_names == ["score", "id"] and table["id"].to_pylist() == expected.tolist()
    assert table["score"].to_pylist() == columns["score"][chosen(columns["id"])].tolist()


def test_wrong_rows_and_columns_are_exceptions(cells):
    array = tilefs.open(cells[0])
    for rows in ({"none": 3}, "9..3", 20_000, (1, 2), [], {"id": "a"}):
        with pytest.raises(ValueError):
            array.read(rows=rows)
    with pytest.raises(tilefs.UsageError, match="it has id, kind, score, state"):
        array.read(columns=["id", "none"])
    with pytest.raises(TypeError):
        array.read(rows=object())
    with pytest.raises(ValueError, match="order"):
        array.read(order="none")
    with pytest.raises(tilefs.UsageError, match="sparse"):
        array["score"][:]
    with pytest.raises(tilefs.UsageError, match="sparse"):
        array.shape


def test_pandas_polars_and_duckdb_take_the_rows(cells):
    path, columns = cells
    rows = tilefs.open(path).read(rows=slice(0, 299))
    frame = rows.to_pandas()
    assert frame["kind"].tolist() == columns["kind"][:100].tolist() and frame["state"].tolist() == columns["state"][:100].tolist()
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(rows)["id"].to_list() == columns["id"][:100].tolist()
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql("SELECT kind, count(*), max(id) FROM rows GROUP BY kind ORDER BY max(id)").fetchall()
    assert found == [("B cell", 33, 291), ("größer", 33, 294), ("T cell", 34, 297)]


def test_an_array_without_rows_is_a_table_without_rows(tmp_path):
    dim = tiledb.Dim("id", domain=(0, 9), tile=10, dtype=np.int64)
    schema = tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=str, var=True)], sparse=True)
    tiledb.Array.create(str(tmp_path / "array"), schema)
    rows = tilefs.open(tmp_path / "array").read()
    table = pyarrow.table(rows)
    assert table.num_rows == len(rows) == 0 and table.column_names == ["id", "a"]
    assert pyarrow.schema(rows) == table.schema


def test_rows_of_overlapping_fragments_and_both_orders(tmp_path):
    rng = np.random.default_rng(7)
    dims = [tiledb.Dim(name, domain=(0, 999), tile=100, dtype=np.int32) for name in "yx"]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("v", dtype="f8")], sparse=True, capacity=50)
    path = str(tmp_path / "array")
    tiledb.Array.create(path, schema)
    cells = {}
    for time in range(1, 6):
        flat = rng.choice(10**6, 700, replace=False)
        values = rng.normal(size=700)
        with tiledb.open(path, "w", timestamp=time) as array:
            array[flat // 1000, flat % 1000] = values
        cells.update(zip(flat.tolist(), values.tolist()))
    array = tilefs.open(path)
    ordered = pyarrow.table(array.read(order="row"))
    found = ordered["y"].to_numpy() * 1000 + ordered["x"].to_numpy()
    assert found.tolist() == sorted(cells) and ordered["v"].to_pylist() == [cells[one] for one in sorted(cells)]
    own = pyarrow.table(array.read())
    assert dict(zip((own["y"].to_numpy() * 1000 + own["x"].to_numpy()).tolist(), own["v"].to_pylist())) == cells
    box = pyarrow.table(array.read(rows={"x": slice(100, 199), "y": slice(5, 500)}, columns=["v"]))
    inside = [value for one, value in cells.items() if 100 <= one % 1000 <= 199 and 5 <= one // 1000 <= 500]
    assert sorted(box["v"].to_pylist()) == sorted(inside) and len(inside) > 50


def test_texts_and_dates_select_rows(tmp_path):
    names = tiledb.Dim("name", domain=(None, None), tile=None, dtype="ascii")
    days = tiledb.Dim("day", domain=(np.datetime64("2020-01-01"), np.datetime64("2029-12-31")), tile=np.timedelta64(10, "D"), dtype="M8[D]")
    schema = tiledb.ArraySchema(tiledb.Domain(names, days), [tiledb.Attr("v", dtype="i4")], sparse=True, allows_duplicates=True)
    path = str(tmp_path / "array")
    tiledb.Array.create(path, schema)
    stored = ["", "a", "a,b", "a..c", "last", "100%"]
    dates = np.datetime64("2024-01-01") + np.arange(6) * 40
    with tiledb.open(path, "w") as array:
        array[np.array(stored, dtype=object), dates] = np.arange(6, dtype="i4")
    array = tilefs.open(path)
    for number, name in enumerate(stored):
        assert pyarrow.table(array.read(rows={"name": name}))["v"].to_pylist() == [number], name
    import datetime

    for low, high in [("2024-02-01", "2024-04-29"), (datetime.date(2024, 2, 1), datetime.date(2024, 4, 29)), (dates[1] - 1, dates[2] + 1)]:
        assert pyarrow.table(array.read(rows={"day": slice(low, high)}))["v"].to_pylist() == [1, 2]
    assert array.domain == (None, (np.datetime64("2020-01-01"), np.datetime64("2029-12-31")))


@pytest.mark.parametrize("unit, last", [("Y", "2030"), ("W", "2020-12-31"), ("D", "2021-12-31"), ("h", "2020-03-01T00"), ("ns", "2020-03-01T00")])
def test_dates_of_numpy_are_instants_and_numbers_are_no_dates(tmp_path, unit, last):
    import datetime

    first, last = np.datetime64("2020-01-02" if unit == "W" else "2020-01-01", unit), np.datetime64(last, unit)
    step = np.timedelta64(6, "h").astype("m8[ns]") if unit == "ns" else np.timedelta64(1, unit)
    days = np.arange(first, last, step)
    dim = tiledb.Dim("day", domain=(first, last), tile=step, dtype=f"M8[{unit}]")
    path = str(tmp_path / "array")
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("v", dtype="i4")], sparse=True))
    with tiledb.open(path, "w") as array:
        array[days] = np.arange(len(days), dtype="i4")
    array = tilefs.open(path)
    for instant in [np.datetime64("2020"), np.datetime64("2020-02"), np.datetime64("2020-01-02"), np.datetime64("2020-01-02T06"), np.datetime64("2020-01-02T06", "ns")]:
        # A unit of the dimension that is coarser holds the instant.
        expected = np.flatnonzero(days == instant.astype(days.dtype)).tolist()
        if unit == "W" and instant < first:
            continue
        assert pyarrow.table(array.read(rows={"day": instant}))["v"].to_pylist() == expected, instant
    whole_day = pyarrow.table(array.read(rows={"day": datetime.date(2020, 1, 2)}))["v"].to_pylist()
    assert len(whole_day) == {"h": 24, "ns": 4}.get(unit, 1)
    for number in (2020, np.int64(18263), 2020.5):
        with pytest.raises(TypeError, match="are dates, not numbers"):
            array.read(rows={"day": number})
    with pytest.raises(ValueError, match="NaT"):
        array.read(rows={"day": np.datetime64("NaT")})


def test_files_that_vanish_are_exceptions_of_the_reader(cells, tmp_path):
    path = shutil.copytree(cells[0], tmp_path / "array")
    array = tilefs.open(path)
    rows = array.read()
    (fragment,) = (path / "__fragments").iterdir()
    shutil.rmtree(fragment)
    with pytest.raises(Exception, match=fragment.name):
        pyarrow.table(rows)


def test_a_closed_array_has_no_rows_but_those_that_were_asked_for(cells):
    array = tilefs.open(cells[0])
    rows = array.read(rows=slice(0, 9))
    array.close()
    assert pyarrow.table(rows)["id"].to_pylist() == [0, 3, 6, 9]
    with pytest.raises(tilefs.Error, match="closed"):
        array.read()


def test_a_dense_array_of_one_dimension_is_a_table(tmp_path):
    dim = tiledb.Dim("i", domain=(1, 6), tile=4, dtype=np.int64)
    tiledb.Array.create(str(tmp_path / "array"), tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype="f4")]))
    with tiledb.open(str(tmp_path / "array"), "w") as array:
        array[:] = np.arange(6, dtype="f4")
    table = pyarrow.table(tilefs.open(tmp_path / "array").read(rows=slice(2, 3)))
    assert table.to_pydict() == {"i": [2, 3], "a": [1.0, 2.0]}


def test_parts_together_are_the_rows(tmp_path):
    """Parts are read without the others, in any process."""
    path = str(tmp_path / "long")
    count = 3_000_000
    schema = tiledb.ArraySchema(tiledb.Domain(tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64)), [tiledb.Attr("a", dtype=np.int8)], sparse=True)
    tiledb.Array.create(path, schema)
    with tiledb.open(path, "w") as array:
        array[np.arange(count)] = (np.arange(count) % 100).astype("i1")
    rows = tilefs.open(path).read(columns=["id", "a"])
    assert rows.parts == 3
    parts = [pickle.loads(pickle.dumps(rows.part(number))).to_arrow() for number in range(rows.parts)]
    assert pyarrow.concat_tables(parts).equals(rows.to_arrow())
    with pytest.raises(IndexError, match="there are 3 parts"):
        rows.part(3)
