"""Tests that forked processes read what their parent has opened."""

import concurrent.futures
import contextlib
import gc
import multiprocessing
import os
import threading

import numpy as np
import pytest
import tiledb
import tilefs

from conftest import write_dense
from forks import in_child

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

from tilefs.fs import TilefsFileSystem  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

KEY = b"0123456789abcdeF0123456789abcdeF"


@pytest.fixture
def rows(tmp_path):
    """Returns a sparse array of several batches, and its coordinates."""
    count = 2_300_000
    dim = tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64)
    schema = tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("value", dtype=np.int32)], sparse=True)
    tiledb.Array.create(str(tmp_path / "rows"), schema)
    ids = np.arange(count, dtype=np.int64) * 3
    with tiledb.open(str(tmp_path / "rows"), "w") as array:
        array[ids] = (ids // 7).astype(np.int32)
    return tmp_path / "rows", ids


@pytest.fixture
def group(tmp_path):
    """Returns a group with an array and a group of an array."""
    for name in ("outer", "outer/inner"):
        tiledb.Group.create(str(tmp_path / name))
    for name, low in (("outer/first", 0), ("outer/inner/second", 10)):
        write_dense(tmp_path / name, np.arange(low, low + 5))
    with tiledb.Group(str(tmp_path / "outer"), "w") as group:
        group.add("first", name="first", relative=True)
        group.add("inner", name="inner", relative=True)
        group.meta["key"] = "value"
    with tiledb.Group(str(tmp_path / "outer/inner"), "w") as group:
        group.add("second", name="second", relative=True)
    return tmp_path / "outer"


def test_children_read_arrays_with_all_that_belongs_to_them(demo, cells):
    array, table = tilefs.open(demo), tilefs.open(cells[0])
    attribute, metadata, query = array["temp"], array.metadata, table.read(rows={"id": slice(0, 300)})
    whole, keys, expected = attribute[:], dict(metadata), pyarrow.table(query)

    def use():
        assert np.array_equal(attribute[:], whole) and attribute[0, 0] == 20
        assert array.shape == (100, 200) and array.nonempty is not None and array.schema and dict(metadata) == keys
        assert repr(array) and array.time and [one.name for one in array.dimensions] == ["y", "x"]
        assert len(query) == len(expected) and pyarrow.table(query).equals(expected)
        assert len(pyarrow.table(table.read())) == 1000
        assert np.array_equal(tilefs.open(demo)["temp"][5:7], whole[5:7])
        array.close()
        gc.collect()

    assert [in_child(use) for _ in range(20)] == [0] * 20
    assert np.array_equal(attribute[:], whole)


def test_children_read_groups_and_their_members(group):
    outer = tilefs.open(group)
    first, inner = outer["first"], outer["inner"]
    second = inner["second"]
    assert second["a"][1] == 11

    def use():
        assert first["a"][:].tolist() == [0, 1, 2, 3, 4] and second["a"][:].tolist() == [10, 11, 12, 13, 14]
        assert sorted(outer) == ["first", "inner"] and dict(outer.metadata) == {"key": "value"}
        assert outer["inner"]["second"]["a"][2] == 12 and inner["second"]["a"][3] == 13
        assert {name for name, *_ in inner.members} == {"second"}

    assert [in_child(use) for _ in range(5)] == [0] * 5


def test_children_read_files_of_the_tree(demo, group):
    fs, of_group = TilefsFileSystem(demo), TilefsFileSystem(group)
    whole = fs.cat_file("temp.f32")
    file = fs.open("temp.f32", block_size=1000)
    beginning = file.read(10)
    assert "first" in of_group.ls("", detail=False)

    def use():
        assert fs.cat_file("temp.f32") == whole and fs.info("temp.f32")["size"] == len(whole)
        assert beginning + file.read() == whole
        assert fs.cat_ranges(["temp.f32"] * 50, list(range(50)), list(range(4, 54))) == [whole[at : at + 4] for at in range(50)]
        assert fs.ls("dims", detail=False) == ["dims/y.i64", "dims/x.i64"]
        assert of_group.cat_file("inner/second/a.i64") == np.arange(10, 15).tobytes()
        fs.invalidate_cache()
        assert fs.cat_file("temp.f32", 0, 4) == whole[:4]

    assert [in_child(use) for _ in range(5)] == [0] * 5


def test_a_child_goes_on_with_a_stream_where_its_parent_was(rows):
    path, ids = rows
    reader = pyarrow.RecordBatchReader.from_stream(tilefs.open(path).read())
    read = 0
    for _ in range(2):
        read += reader.read_next_batch().num_rows

    def use():
        rest = reader.read_all()
        np.testing.assert_array_equal(rest["id"].to_numpy(), ids[read:])

    assert 0 < read < len(ids) and in_child(use) == 0
    np.testing.assert_array_equal(reader.read_all()["id"].to_numpy(), ids[read:])


def test_children_have_the_key_of_an_encrypted_array(tmp_path):
    path = write_dense(tmp_path / "array", np.arange(5), key=KEY.decode())
    file = tmp_path / "key"
    file.write_bytes(KEY)
    from_memory, from_file = tilefs.open(path, key=KEY), tilefs.open(path, key=file)
    fs = TilefsFileSystem(path, key=KEY)
    file.unlink()

    def use():
        assert from_memory["a"][:].tolist() == from_file["a"][:].tolist() == [0, 1, 2, 3, 4]
        assert fs.cat_file("a.i64") == np.arange(5).tobytes()

    assert [in_child(use) for _ in range(3)] == [0] * 3


def test_children_see_what_their_parent_sees(tmp_path, monkeypatch):
    path = write_dense(tmp_path / "array", np.arange(5))
    monkeypatch.chdir(tmp_path)
    options = {"index_dir": "indexes", "cache_size": 8 << 20, "threads": 3}
    array, fs = tilefs.open("array", **options), TilefsFileSystem("array", skip_instance_cache=True, **options)
    early = tilefs.open("array", at=array.time)
    with tiledb.open(str(path), "w") as writer:
        writer[:] = np.arange(5) + 10
    # A commit with a time at which the array was not open yet, as of a writer whose clock is slow.
    with tiledb.open(str(path), "w", timestamp=array.time - 1) as writer:
        writer[:] = np.arange(5) + 20

    def use():
        os.chdir("/")
        assert array["a"][:].tolist() == early["a"][:].tolist() == [0, 1, 2, 3, 4]
        fs.invalidate_cache()
        assert fs.cat_file("a.i64") == (np.arange(5) + 10).tobytes()
        with pytest.raises(tilefs.NotFoundError):
            tilefs.open("array")

    assert in_child(use) == 0


def test_a_child_shows_changes_when_it_is_asked_to(tmp_path):
    path = write_dense(tmp_path / "array", np.arange(5))
    fs = TilefsFileSystem(path, skip_instance_cache=True)
    old, new = np.arange(5).tobytes(), (np.arange(5) + 10).tobytes()
    assert fs.cat_file("a.i64") == old
    with tiledb.open(str(path), "w") as writer:
        writer[:] = np.arange(5) + 10

    def use():
        assert fs.cat_file("a.i64") == old
        fs.invalidate_cache()
        assert fs.cat_file("a.i64") == new
        assert in_child(lambda: fs.cat_file("a.i64") == new or os._exit(5)) == 0

    assert in_child(use) == 0 and fs.cat_file("a.i64") == old


def test_forks_of_forks_read(demo):
    array = tilefs.open(demo)
    first = array["temp"][0].tolist()

    def use(depth):
        # Half of the processes do not read before they fork.
        assert depth % 2 or array["temp"][0].tolist() == first
        if depth:
            assert in_child(lambda: use(depth - 1)) == 0
        assert array["temp"][0].tolist() == first

    assert in_child(lambda: use(6)) == 0


@contextlib.contextmanager
def readers(*works):
    """Lets threads repeat these works."""
    stop = threading.Event()
    failures = []

    def repeat(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    [thread.start() for thread in threads]
    try:
        yield
    finally:
        stop.set()
        [thread.join() for thread in threads]
    assert not failures


def test_children_read_that_were_forked_during_reads(demo, cells):
    # A cache that holds little, so that there is always something to decode.
    array, table, fs = tilefs.open(demo, cache_size=1 << 16), tilefs.open(cells[0]), TilefsFileSystem(demo)
    whole, ids = array["temp"][:], cells[1]["id"].tolist()

    def read_rows():
        assert pyarrow.table(table.read(columns=["id"]))["id"].to_pylist() == ids

    def read_files():
        fs.invalidate_cache()
        assert fs.cat_file("text/temp.txt") and fs.cat_ranges(["temp.f32"] * 4, 0, 4)

    def use():
        assert np.array_equal(array["temp"][:], whole)
        assert pyarrow.table(table.read(columns=["id"]))["id"].to_pylist() == ids
        assert fs.cat_file("temp.f32") == whole.tobytes()
        assert np.array_equal(tilefs.open(demo)["temp"][:], whole)

    # Each child inherits the locks in the state in which the threads held them.
    with readers(lambda: array["temp"][:], lambda: array["temp"][:], read_rows, read_files, lambda: tilefs.open(demo)["temp"][0]):
        assert [in_child(use) for _ in range(60)] == [0] * 60


SHARED = {}


def read_row(number):
    return SHARED["array"]["temp"][number].tolist(), SHARED["fs"].cat_file("temp.f32", 800 * number, 800 * number + 8)


def test_pools_of_processes_read(demo):
    SHARED.update(array=tilefs.open(demo), fs=TilefsFileSystem(demo))
    whole = SHARED["array"]["temp"][:]
    expected = [(row.tolist(), row[:2].tobytes()) for row in whole]
    fork = multiprocessing.get_context("fork")
    for _ in range(3):
        with fork.Pool(4) as pool:
            assert pool.map(read_row, range(100), chunksize=3) == expected
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
            assert list(pool.map(read_row, range(100))) == expected
