"""Arrays and DataFrames of dask, in one process and on a cluster, have the values of the array."""

import os
import pathlib
import pickle
import signal
import subprocess
import sys

import numpy as np
import pandas
import pytest
from conftest import tiledb, write_dense

import tilefs

dask = pytest.importorskip("dask")
pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Returns a sparse array of 50,000 rows."""
    path = tmp_path_factory.mktemp("dask") / "table"
    ids = np.arange(0, 100_000, 2)
    dim = tiledb.Dim("id", domain=(0, 10**6), tile=10_000, dtype=np.int64)
    attrs = [tiledb.Attr("n", dtype=np.int32), tiledb.Attr("x", dtype=np.float64), tiledb.Attr("s", dtype=str, var=True)]
    tiledb.Array.create(str(path), tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=1000))
    with tiledb.open(str(path), "w") as array:
        array[ids] = {"n": (ids // 2).astype("i4"), "x": np.sqrt(ids), "s": np.array([f"s{one % 7}" for one in ids], dtype=object)}
    return path


@pytest.mark.parametrize("chunks", ["auto", "tiles", (5, 8), -1])
def test_arrays_have_the_values(tmp_path, chunks):
    values = np.arange(17 * 31, dtype="i4").reshape(17, 31)
    array = tilefs.open(write_dense(tmp_path / "a", values, low=-5, tile=6))["a"].to_dask_array(chunks)
    np.testing.assert_array_equal(array.compute(scheduler="threads"), values)
    np.testing.assert_array_equal(array[3:9, ::-4].sum(axis=0).compute(scheduler="sync"), values[3:9, ::-4].sum(axis=0))
    if chunks == "tiles":
        assert array.chunks == ((6, 6, 5), (6, 6, 6, 6, 6, 1))


def test_chunks_follow_tiles_where_a_current_domain_begins_within_one(tmp_path):
    dim = tiledb.Dim("d", domain=(0, 99), tile=10, dtype=np.int64)
    dims = tiledb.Domain(dim)
    schema = tiledb.ArraySchema(dims, [tiledb.Attr("a", dtype=np.int32)])
    current = tiledb.CurrentDomain(tiledb.Ctx())
    box = tiledb.NDRectangle(tiledb.Ctx(), dims)
    box.set_range("d", 7, 41)
    current.set_ndrectangle(box)
    schema.set_current_domain(current)
    tiledb.Array.create(str(tmp_path / "a"), schema)
    with tiledb.open(str(tmp_path / "a"), "w") as array:
        array[7:42] = np.arange(35, dtype="i4")
    array = tilefs.open(tmp_path / "a")["a"].to_dask_array("tiles")
    assert array.chunks == ((3, 10, 10, 10, 2),) and array.compute(scheduler="sync").tolist() == list(range(35))


def test_nulls_and_text_stay(tmp_path):
    masked = np.ma.MaskedArray(np.arange(12, dtype="i4"), mask=np.arange(12) % 3 == 0)
    path = str(tmp_path / "a")
    attrs = [tiledb.Attr("n", dtype=np.int32, nullable=True), tiledb.Attr("s", dtype=str, var=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(tiledb.Dim("d", domain=(0, 11), tile=5, dtype=np.int64)), attrs))
    texts = np.array([f"t{one}" for one in range(12)], dtype=object)
    with tiledb.open(path, "w") as array:
        array[:] = {"n": tiledb.Nullable(masked) if hasattr(tiledb, "Nullable") else masked, "s": texts}
    opened = tilefs.open(path)
    found = opened["n"].to_dask_array("tiles").compute(scheduler="sync")
    assert isinstance(found, np.ma.MaskedArray) and found.tolist() == opened["n"][:].tolist()
    assert opened["s"].to_dask_array("tiles").compute(scheduler="sync").tolist() == texts.tolist()


def test_frames_have_the_rows(table):
    frame = tilefs.open(table).read().to_dask_dataframe(rows_of_partition=8000)
    expected = tilefs.open(table).read().to_pandas().set_index("id")
    assert frame.npartitions == 7 and frame.known_divisions and frame.divisions[:2] == (0, 16_000) and frame.divisions[-1] == 99_998
    pandas.testing.assert_frame_equal(frame.compute(scheduler="sync"), expected, check_dtype=False)
    pandas.testing.assert_frame_equal(frame.loc[15_990:16_010].compute(scheduler="sync"), expected.loc[15_990:16_010], check_dtype=False)
    assert frame.groupby("s")["n"].sum().compute(scheduler="sync").to_dict() == expected.groupby("s")["n"].sum().to_dict()


def test_conditions_and_columns_are_pushed_down(table, monkeypatch):
    from tilefs import _dask

    frame = tilefs.open(table).read(columns=["id", "n", "s"]).to_dask_dataframe("n >= 39990 and s != 's1'", rows_of_partition=8000)
    assert frame.npartitions == 3 and frame.divisions[0] == 64_000
    expected = tilefs.open(table).read().to_pandas().query("n >= 39990 and s != 's1'")
    assert frame["n"].compute(scheduler="sync").tolist() == expected["n"].tolist()
    read = []
    monkeypatch.setattr(_dask._Partition, "_read", lambda self, parts, columns, original=_dask._Partition._read: read.append(list(columns)) or original(self, parts, columns))
    assert frame["n"].sum().compute(scheduler="sync") == expected["n"].sum()
    assert read and all(columns == ["n"] for columns in read)
    nothing = tilefs.open(table).read().to_dask_dataframe("n < 0")
    assert len(nothing) == 0 and list(nothing.columns) == ["n", "x", "s"]


def test_rows_in_no_order_have_no_divisions(tmp_path):
    path = str(tmp_path / "two")
    dims = [tiledb.Dim(name, domain=(0, 99), tile=10, dtype=np.int64) for name in "yx"]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.int32)], sparse=True))
    with tiledb.open(path, "w") as array:
        array[np.arange(50), np.arange(50)] = np.arange(50, dtype="i4")
    frame = tilefs.open(path).read().to_dask_dataframe()
    assert not frame.known_divisions and list(frame.columns) == ["y", "x", "a"] and len(frame) == 50


def test_a_cluster_reads(cluster, table, tmp_path):
    values = np.random.default_rng(1).random((400, 300))
    array = tilefs.open(write_dense(tmp_path / "a", values, tile=40))["a"].to_dask_array("tiles")
    assert np.isclose(array.sum().compute(), values.sum())
    frame = tilefs.open(table).read().to_dask_dataframe(rows_of_partition=5000)
    assert frame["x"].sum().compute() == pytest.approx(np.sqrt(np.arange(0, 100_000, 2)).sum())


def test_the_result_is_right_if_a_worker_is_killed(cluster, table):
    def slowly(frame):
        import time

        time.sleep(0.2)
        return frame

    frame = tilefs.open(table).read().to_dask_dataframe(rows_of_partition=2000).map_partitions(slowly)
    future = cluster.compute(frame["n"].sum())
    victim = next(iter(cluster.run(os.getpid).values()))
    cluster.run(lambda: None)
    os.kill(victim, signal.SIGKILL)
    assert future.result(timeout=120) == sum(range(50_000))


def test_the_example_reduces_an_array_on_a_cluster(demo):
    example = pathlib.Path(__file__).parents[2] / "examples/dask_in_process.py"
    ran = subprocess.run([sys.executable, example, demo, "cell"], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    values = tilefs.open(demo)["cell"][:]
    expected = f"cell: sum {values.sum(dtype='f8'):.6g}, from {values.min()} to {values.max()}\n28 blocks by 2 workers"
    assert ran.stdout.startswith(expected), ran.stdout


def test_what_is_unpickled_shares_a_cache(table, demo):
    pickled = pickle.dumps(tilefs.open(demo)["temp"])
    # By URI and options: no data.
    assert len(pickled) < 1000
    one, other = pickle.loads(pickled), pickle.loads(pickled)
    assert one._array._opened is other._array._opened
    one._array.close()
    assert other[0, 0] == 20.0
    rows = pickle.loads(pickle.dumps(tilefs.open(table).read(rows=slice(0, 10), columns=["n"])))
    assert rows.to_arrow().column("n").to_pylist() == [0, 1, 2, 3, 4, 5]
