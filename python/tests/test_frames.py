"""What those type who come from pandas, Polars and Arrow: first and random rows, conditions, frames that read only what is asked."""

import pickle
import sys

import duckdb
import numpy as np
import pandas
import polars as pl
import pyarrow
import pyarrow.compute as pc
import pytest
from conftest import tiledb

import tilefs
from tilefs import _parts, _progress, _rows

CONDITIONS = ("score > 20", "kind == 'B cell' and id < 600", "state == 'on' or id == 3", "score < 0")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Returns a sparse array of 40 tiles, of which extremes are known, and its values."""
    path, random = str(tmp_path_factory.mktemp("many") / "a"), np.random.default_rng(2)
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 10**6), tile=1000, dtype="i8"))
    attrs = [tiledb.Attr("a", dtype="i4"), tiledb.Attr("f", dtype="f4"), tiledb.Attr("s", dtype="U0", var=True), tiledb.Attr("n", dtype="i8", nullable=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(domain, attrs, sparse=True, capacity=100))
    frame = pandas.DataFrame({"id": np.arange(4000) * 3, "a": np.arange(4000) // 7, "f": random.normal(size=4000).astype("f4"), "s": [f"{one % 40:02}" for one in range(4000)]})
    with tiledb.open(path, "w") as array:
        values = {name: frame[name].to_numpy() if name != "s" else frame["s"].to_numpy(dtype="U") for name in ("a", "f", "s")}
        tiledb.sparse_array._setitem_impl_sparse(array, (frame["id"].to_numpy(),), {**values, "n": np.full(4000, 2**53 + 1)}, {"n": (np.arange(4000) % 2).astype("u1")})
    return path, frame


@pytest.mark.parametrize("cond", CONDITIONS)
@pytest.mark.parametrize("order", ["array", "row"])
def test_rows_of_a_condition_are_those_of_queries(cells, cond, order):
    array = tilefs.open(cells[0])
    rows, due = array.read(cond=cond, order=order), array.query(cond=cond, order="C", return_arrow=True).df[:]
    for one in (rows, pickle.loads(pickle.dumps(rows))):
        assert one.to_arrow().equals(due) and len(one) == due.num_rows and pyarrow.table(one).equals(due)
        assert one.head(3).equals(due.slice(0, 3)) and pl.DataFrame(one).equals(pl.from_arrow(due))
    assert duckdb.sql("select count(*), sum(score) from rows").fetchall()[0][0] == due.num_rows
    assert array.read({"id": slice(0, 300)}, ["kind"], cond=cond).to_arrow().equals(array.query(attrs=["kind"], dims=[], cond=cond, order="C", return_arrow=True).df[0:300])
    assert "at most 1000 rows" in repr(rows) or "at most 1\u202f000 rows" in repr(rows)
    assert len(rows.to_dask_dataframe()) == due.num_rows
    with pytest.raises(tilefs.UsageError, match="did you mean 'score'"):
        array.read(cond="scor > 3")


def test_a_text_that_is_no_name_is_a_condition(cells):
    array = tilefs.open(cells[0])
    assert array.query("score > 31.5").df[:].equals(array.query(cond="score > 31.5").df[:])
    assert list(array.query("score")[:3]) == ["score", "id"]
    with pytest.raises(KeyError, match="did you mean 'score'"):
        array.query("scor")


def test_all_have_one_meaning(cells, demo, many):
    for path in (cells[0], many[0]):
        array = tilefs.open(path)
        frame = array.df[:]
        for one in (array, array.query(), array.read()):
            pandas.testing.assert_frame_equal(one.to_pandas(), frame)
            assert one.to_arrow().equals(array.query(return_arrow=True).df[:]) and one.to_polars().equals(pl.from_arrow(one.to_arrow()))
            found = one.to_numpy()
            for name, due in (array.query() if isinstance(one, tilefs.Query) else array)[:].items():
                assert found[name].dtype == due.dtype and found[name].tolist() == due.tolist()
            assert one.head(3).equals(one.to_arrow().slice(0, 3))
    dense = tilefs.open(demo)
    pandas.testing.assert_frame_equal(dense.to_pandas(), dense.df[:])
    assert dense.to_polars().columns == ["y", "x", "temp", "cell"] and dense.to_numpy()["temp"].shape == (100, 200)
    assert dense.query(attrs=["temp"]).to_arrow().column_names == ["temp"] and dense.query(attrs=["temp"]).head(2).num_rows == 2


def tiles_read(work):
    """Returns what some work returns, and how many rows streams had to give for it."""
    seen, original = [], _rows.Rows._reader

    def reader(self):
        found = original(self)
        if self._query is None:
            schema, batches = found.schema, list(found)
            seen.extend(batch.num_rows for batch in batches)
            return pyarrow.RecordBatchReader.from_batches(schema, batches)
        return found

    _rows.Rows._reader = reader
    try:
        return work(), sum(seen)
    finally:
        _rows.Rows._reader = original


FILTERS = (
    (pc.field("a") > 560, pl.col("a") > 560, 0.2),
    ((pc.field("a") > 100) & (pc.field("a") <= 110), (pl.col("a") > 100) & (pl.col("a") <= 110), 0.2),
    (pc.field("id") < 90.5, pl.col("id") < 90.5, 1.1),
    (pc.field("id") < 90, pl.col("id") < 90, 0.2),
    ((pc.field("a") > 560) | (pc.field("a") < 3), (pl.col("a") > 560) | (pl.col("a") < 3), 1.1),
    (~(pc.field("a") > 3), ~(pl.col("a") > 3), 1.1),
    (pc.field("s") == "07", pl.col("s") == "07", 1.1),
    (pc.field("n").is_null(), pl.col("n").is_null(), 1.1),
    (pc.field("f") > 0.25, pl.col("f") > 0.25, 1.1),
    (pc.field("f") > 0.1, pl.col("f") > pl.lit(0.1, dtype=pl.Float64), 1.1),
    ((pc.field("n") > 200).is_null(), (pl.col("n") > 200).is_null(), 1.1),
)

# What Polars prints has comparisons in it that need not hold for a row.
MENTIONED = (
    (pl.col("n") > 200).fill_null(True),
    (pl.col("a") > 560) ^ (pl.col("id") > 9000),
    (pl.col("a") > 560) != (pl.col("id") > 9000),
    (pl.col("a") > 560).cast(pl.Int32) < 1,
    (pl.col("a") > 560) < (pl.col("id") >= 0),
    pl.col("s") == '07")]) & ([(col("s")) == ("08',
    pl.col("s") == "0\\t7",
    (pl.col("a") > 100) & (pl.col("s").is_in(["07", "11"])),
)


@pytest.mark.parametrize("number", range(len(MENTIONED)))
def test_predicates_of_polars_lose_no_rows(many, number, monkeypatch):
    monkeypatch.setattr(_parts, "ROWS", 100)
    predicate = MENTIONED[number]
    whole = pl.from_arrow(tilefs.open(many[0]).read().to_arrow())
    assert tilefs.scan_polars(many[0]).filter(predicate).collect().equals(whole.filter(predicate))


@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_filters_of_arrow_and_polars_leave_tiles_out(many, number, monkeypatch):
    monkeypatch.setattr(_parts, "ROWS", 100)
    of_arrow, of_polars, most = FILTERS[number]
    array = tilefs.open(many[0])
    whole = array.read().to_arrow()
    for columns in (None, ["s"], ["f", "id"]):
        due = whole.filter(of_arrow) if columns is None else whole.filter(of_arrow).select(columns)
        found, rows = tiles_read(lambda: array.dataset().to_table(columns, of_arrow))
        assert found.equals(due) and rows <= most * whole.num_rows
        lazy = tilefs.scan_polars(array).filter(of_polars)
        found, rows = tiles_read(lambda: (lazy if columns is None else lazy.select(columns)).collect())
        assert found.equals(pl.from_arrow(due)) and rows <= most * whole.num_rows
    assert array.dataset().count_rows() == 4000 and array.dataset().count_rows(of_arrow) == whole.filter(of_arrow).num_rows
    assert array.dataset().to_table({"b": pc.field("a") * 2}, of_arrow)["b"].to_pylist() == [2 * one for one in whole.filter(of_arrow)["a"].to_pylist()]


def test_lazy_frames_read_what_is_wanted(many):
    lazy = tilefs.scan_polars(many[0])
    assert lazy.collect_schema() == pl.from_arrow(tilefs.open(many[0]).read().to_arrow()).schema
    assert lazy.head(7).collect()["id"].to_list() == [3 * one for one in range(7)]
    assert lazy.group_by("a").agg(pl.len()).collect().height == 572
    assert lazy.filter(pl.col("id") > 10**7).collect().height == 0
    with pytest.raises(tilefs.NotFoundError):
        tilefs.scan_polars("nothing")


@pytest.mark.parametrize("cond", [None, "a > 100"])
def test_samples_are_random_rows(many, cond):
    path, frame = many
    rows = tilefs.open(path).read(cond=cond)
    known = set((frame if cond is None else frame[frame["a"] > 100])["id"])
    assert rows.sample(50, seed=1)["id"].to_pylist() == rows.sample(50, seed=1)["id"].to_pylist() != rows.sample(50, seed=2)["id"].to_pylist()
    seen = np.zeros(12000, dtype=int)
    for seed in range(60):
        ids = rows.sample(100, seed=seed)["id"].to_numpy()
        assert len(set(ids)) == 100 and set(ids) <= known and (np.diff(ids) > 0).all()
        seen[ids] += 1
    # Each third of the rows is chosen about as often.
    thirds = [int(one.sum()) for one in np.array_split(seen[sorted(known)], 3)]
    assert all(abs(one - 2000) < 200 for one in thirds), thirds
    whole = rows.sample(10**6)
    assert whole.num_rows == len(known) and rows.sample(0).num_rows == 0 and whole.schema == rows.to_arrow().schema
    with pytest.raises(ValueError, match="at least 0"):
        rows.sample(-1)


def test_a_few_random_rows_do_not_read_all(tmp_path):
    path = str(tmp_path / "a")
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 10**6), tile=10**5, dtype="i8"))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i4")], sparse=True, capacity=1000))
    with tiledb.open(path, "w") as array:
        array[np.arange(10**5)] = np.arange(10**5, dtype="i4")
    found, rows = tiles_read(lambda: tilefs.open(path).sample(5, seed=3))
    assert found.num_rows == 5 and found["a"].to_pylist() == found["id"].to_pylist() and rows <= 5 * 2000


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("is_wanted", [True, False])
def test_long_reads_show_a_bar(cells, monkeypatch, is_wanted):
    rows, terminal = tilefs.open(cells[0]).read(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    rows.to_arrow(progress=is_wanted)
    assert terminal.text == ""
    monkeypatch.setattr(_progress, "_BEFORE", 0.0)
    for read in (rows.to_arrow, rows.to_pandas, rows.to_polars, rows.to_numpy):
        terminal.text = ""
        read(progress=is_wanted)
        assert ("100% of at most 1" in terminal.text) == is_wanted and (not is_wanted or terminal.text.endswith("\r"))


def test_texts_tell_values_and_conditions(cells, demo):
    assert "title: A demonstration: temperatures on a grid" in repr(tilefs.open(demo).metadata)
    array = tilefs.open(cells[0])
    for one in (array.query("score > 3"), array.query("score > 3").df):
        assert "score > 3" in repr(one) and "id, kind, score, state" in repr(one) and "[" in repr(one)
    for name in ("head", "sample", "to_polars", "dataset", "agg"):
        assert name in dir(array) or name in dir(array.query())
    assert array._ipython_key_completions_() == list(array)
