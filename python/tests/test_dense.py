"""Compares dense arrays, read as NumPy arrays, with what was written."""

import os
import pickle
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import tiledb
import tilefs

from conftest import write_dense

RNG = np.random.default_rng(3)
SHAPE = (7, 11)


def random_values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "M" or dtype.kind == "m":
        return RNG.integers(-(10**6), 10**6, SHAPE).astype(dtype)
    if dtype.kind == "f":
        return RNG.normal(size=SHAPE).astype(dtype)
    if dtype.kind == "b":
        return RNG.integers(0, 2, SHAPE).astype(dtype)
    if dtype.kind == "S":
        return np.array([b"abc", b"x", b""], dtype=dtype)[RNG.integers(0, 3, SHAPE)]
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, SHAPE, dtype=dtype, endpoint=True)


TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?", "M8[D]", "M8[ns]", "M8[Y]", "m8[s]", "S3"]


@pytest.mark.parametrize("dtype", TYPES)
def test_values_of_each_type_are_those_that_were_written(tmp_path, dtype):
    values = random_values(dtype)
    array = tilefs.open(write_dense(tmp_path / "array", values))
    found = array["a"][:]
    assert found.dtype == values.dtype == array["a"].dtype and np.array_equal(found, values)
    assert array.shape == array["a"].shape == SHAPE and (array.ndim, array["a"].size) == (2, 77)
    # NumPy owns the memory: nothing is copied, and everything can be written.
    assert found.flags.owndata or found.base.flags.owndata
    assert found.flags.writeable and found.flags.c_contiguous


KEYS = [
    np.s_[[3, 0, -1]],
    np.s_[[1], 2],
    np.s_[2:5, ::2],
    np.s_[::-1, ::-3],
    np.s_[-1],
    np.s_[..., 3],
    np.s_[-2, -3],
    np.s_[5:2],
    np.s_[None, 1:2, None, ::4],
    np.s_[...],
    np.s_[100:, :],
    np.s_[::3, 1::5],
]


@pytest.mark.parametrize("low", [0, 1, -20])
@pytest.mark.parametrize("order", ["row-major", "col-major"])
def test_indices_select_what_they_select_of_numpy(tmp_path, low, order):
    values = random_values("i4")
    dims = [tiledb.Dim(name, domain=(low, low + size - 1), tile=4, dtype=np.int64) for name, size in zip("yx", SHAPE)]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.int32)], cell_order=order, tile_order=order)
    tiledb.Array.create(str(tmp_path / "array"), schema)
    with tiledb.open(str(tmp_path / "array"), "w") as array:
        array[:] = np.asarray(values, order="C" if order == "row-major" else "F")
    attribute = tilefs.open(tmp_path / "array")["a"]
    for key in KEYS:
        expected, found = values[key], attribute[key]
        assert np.shape(found) == np.shape(expected) and np.array_equal(found, expected), key
        assert type(found) is type(expected), key
    for key in [7, (0, 11), (0, -12), (0, 0, 0), "a", ([1], 99)]:
        with pytest.raises(IndexError):
            attribute[key]


@pytest.mark.parametrize("order", ["row-major", "col-major"])
def test_large_boxes_are_what_was_written(tmp_path, order):
    """Several threads read boxes of more than 8 MiB."""
    values = RNG.normal(size=(3001, 1500))
    dims = [tiledb.Dim(name, domain=(0, size - 1), tile=tile, dtype=np.int64) for name, size, tile in [("y", 3001, 300), ("x", 1500, 256)]]
    attr = tiledb.Attr("a", dtype=np.float64, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [attr], cell_order=order, tile_order="row-major")
    tiledb.Array.create(str(tmp_path / "array"), schema)
    with tiledb.open(str(tmp_path / "array"), "w") as array:
        array[:] = np.asarray(values, order="C" if order == "row-major" else "F")
    attribute = tilefs.open(tmp_path / "array")["a"]
    for key in [np.s_[:], np.s_[7:2900, 3:1400], np.s_[::-1, :], np.s_[::2], np.s_[:, ::-1]]:
        assert np.array_equal(attribute[key], values[key]), key


def test_an_attribute_is_an_array_to_numpy_and_dask(demo):
    temp = tilefs.open(demo)["temp"]
    y, x = np.mgrid[0:100, 0:200]
    expected = (20 - y / 10 + x / 100).astype(np.float32)
    assert np.allclose(np.asarray(temp), expected) and np.asarray(temp, dtype="f8").dtype == np.float64
    dask_array = pytest.importorskip("dask.array")
    lazy = dask_array.from_array(temp, chunks=(30, 70))
    assert np.allclose(lazy.mean(axis=0).compute(scheduler="threads"), expected.mean(axis=0))


def test_nullable_values_are_masked(tmp_path):
    values = RNG.integers(0, 100, 77).astype(np.int16)
    valid = RNG.integers(0, 2, 77).astype(bool)
    dim = tiledb.Dim("d", domain=(0, 76), tile=10, dtype=np.int64)
    schema = tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.int16, nullable=True)])
    tiledb.Array.create(str(tmp_path / "array"), schema)
    pandas = pytest.importorskip("pandas")
    with tiledb.open(str(tmp_path / "array"), "w") as array:
        array[:] = {"a": pandas.arrays.IntegerArray(values, ~valid)}
    attribute = tilefs.open(tmp_path / "array")["a"]
    for key in KEYS_OF_ONE_AXIS:
        found = attribute[key]
        assert np.array_equal(np.ma.getmaskarray(found), ~valid[key]), key
        assert np.array_equal(np.ma.compressed(found), np.ma.compressed(np.ma.MaskedArray(values[key], ~valid[key])))
    missing = int(np.flatnonzero(~valid)[0])
    assert attribute[missing] is np.ma.masked
    with pytest.raises(TypeError, match="masked"):
        np.asarray(attribute)


KEYS_OF_ONE_AXIS = [np.s_[:], np.s_[5:60:7], np.s_[::-2], np.s_[9:3], np.s_[None, 4:9]]


def test_texts_are_objects(tmp_path):
    texts = np.array(["", "a", "größer", "x" * 300], dtype=object)[RNG.integers(0, 4, 20)]
    array = tilefs.open(write_dense(tmp_path / "array", texts, dtype=str, var=True))
    assert array["a"].dtype == object and array["a"][::-3].tolist() == texts[::-3].tolist()
    assert array["a"][3] == texts[3] and array["a"][5:5].shape == (0,)


def test_several_numbers_of_a_cell_are_the_last_axis(tmp_path):
    dtype = np.dtype([("", "f4"), ("", "f4"), ("", "f4")])
    values = np.zeros(9, dtype=dtype)
    for number, name in enumerate(dtype.names):
        values[name] = np.arange(9) * 10 + number
    array = tilefs.open(write_dense(tmp_path / "array", values))
    expected = np.arange(9)[:, None] * 10 + np.arange(3)
    assert array["a"].shape == (9, 3) and np.array_equal(array["a"][:], expected)
    assert np.array_equal(array["a"][4], expected[4]) and np.array_equal(array["a"][2:8:3], expected[2:8:3])


def test_the_schema_tells_what_is_stored(tmp_path, demo):
    array = tilefs.open(demo)
    assert not array.is_sparse and [one.name for one in array.dimensions] == ["y", "x"]
    assert array.domain == ((0, 99), (0, 199)) and "temp" in array and list(array) == list(array.attributes)
    assert {one["name"] for one in array.schema["attributes"]} == set(array.attributes)
    assert "dense" in repr(array) and "temp" in repr(array["temp"])
    with pytest.raises(KeyError, match="it has temp"):
        array["tmp"]
    dates = tiledb.Dim("t", domain=(np.datetime64("2020-01-01"), np.datetime64("2020-12-30")), tile=np.timedelta64(30, "D"), dtype="M8[D]")
    tiledb.Array.create(str(tmp_path / "dates"), tiledb.ArraySchema(tiledb.Domain(dates), [tiledb.Attr("v", dtype="i4", fill=-5)]))
    array = tilefs.open(tmp_path / "dates")
    assert array.domain == ((np.datetime64("2020-01-01"), np.datetime64("2020-12-30")),) and array.shape == (365,)
    assert array.nonempty is None and set(array["v"][:].tolist()) == {-5}


def test_huge_domains_are_indexed_by_position():
    array = tilefs.open(__import__("conftest").DEMO.parent / "enormous")
    assert array.shape == (2**62,) and array.domain == ((-(2**61), 2**61 - 1),)
    (box,) = array.nonempty
    assert array["v"][box].tolist() == [6, 7, 8, 9, -1, -1, -1, 13, 14, 15]
    assert array["name"][box][:2].tolist() == ["#6", "#7"]
    assert array["v"][box.start :: 2**60][0] == 6
    with pytest.raises((MemoryError, ValueError)):
        array["v"][:]


def test_metadata_have_the_types_of_python(tmp_path):
    path = write_dense(tmp_path / "array", np.zeros(3, "i4"))
    written = {"int": 5, "float": 0.5, "text": "größer", "bytes": b"\xff\x00", "several": (1, 2, 3), "ä": 1}
    with tiledb.open(str(path), "w") as array:
        array.meta.update(written)
    metadata = tilefs.open(path).metadata
    assert dict(metadata) == written and len(metadata) == 6 and "none" not in metadata
    with pytest.raises(KeyError):
        metadata["none"]


def test_earlier_times_are_read(tmp_path):
    path = tmp_path / "array"
    dim = tiledb.Dim("d", domain=(0, 3), tile=4, dtype=np.int64)
    tiledb.Array.create(str(path), tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype="i4")]))
    for time in (1000, 2000):
        with tiledb.open(str(path), "w", timestamp=time) as array:
            array[:] = np.full(4, time, "i4")
    assert tilefs.open(path)["a"][0] == 2000
    import datetime

    for at in (1500, "1970-01-01T00:00:01.5Z", np.datetime64(1500, "ms"), datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)):
        assert tilefs.open(path, at=at)["a"][0] == 1000, at
    # Text means the time that it spans, as in the program.
    for at in ("1970", "1970-01-01", datetime.date(1970, 1, 1)):
        assert tilefs.open(path, at=at)["a"][0] == 2000, at
    assert tilefs.open(path, at="ms-1500")["a"][0] == 1000
    for wrong in ("yesterday", "1500"):
        with pytest.raises(ValueError):
            tilefs.open(path, at=wrong)
    with pytest.raises(tilefs.UsageError, match="later"):
        tilefs.open(path, at=1, from_=2)


def test_keys_are_files_or_bytes(tmp_path):
    key = b"0123456789abcdeF0123456789abcdeF"
    path = write_dense(tmp_path / "array", np.arange(5), key=key.decode())
    (tmp_path / "key").write_bytes(key)
    for given in (key, tmp_path / "key", str(tmp_path / "key")):
        assert tilefs.open(path, key=given)["a"][:].tolist() == [0, 1, 2, 3, 4]
    for wrong in (None, b"1" * 32, b"short", tmp_path / "none"):
        with pytest.raises(tilefs.EncryptionError):
            tilefs.open(path, key=wrong)["a"][:]


def test_errors_are_exceptions_with_the_message_of_the_program(tmp_path, demo):
    with pytest.raises(tilefs.NotFoundError, match="did you mean") as found:
        tilefs.open(demo.parent / "dmeo")
    assert isinstance(found.value, FileNotFoundError) and isinstance(found.value, tilefs.Error)
    with pytest.raises(tilefs.NotFoundError, match="tiledb://"):
        tilefs.open("tiledb://namespace/array")
    for wrong in (5, None, [], object()):
        with pytest.raises(TypeError):
            tilefs.open(wrong)
    with pytest.raises(TypeError):
        tilefs.open(demo, none=1)
    with pytest.raises(tilefs.UsageError, match="did you mean"):
        tilefs.open(demo, config={"vfs.s3.regoin": "x"})
    with pytest.raises((OverflowError, TypeError)):
        tilefs.open(demo, cache_size=-1)
    with pytest.raises(tilefs.UsageError, match="no rows"):
        tilefs.open(demo).read()


def test_a_closed_array_is_an_exception(demo):
    with tilefs.open(demo) as array:
        temp = array["temp"]
        assert temp[0, 0] == 20
    for use in (lambda: temp[0, 0], lambda: array.shape and array.metadata["a"], lambda: array.schema, lambda: array.read()):
        with pytest.raises(tilefs.Error, match="is closed"):
            use()
    assert "closed" in repr(array)
    array.close()


def test_files_that_vanish_are_exceptions(tmp_path):
    values = RNG.integers(0, 1000, (400, 500))
    path = write_dense(tmp_path / "array", values, tile=100)
    array = tilefs.open(path)
    (fragment,) = (path / "__fragments").iterdir()
    shutil.rmtree(fragment)
    with pytest.raises(tilefs.DamagedError, match=fragment.name):
        array["a"][:]
    shutil.rmtree(path)
    with pytest.raises(tilefs.Error):
        tilefs.open(path)


def test_damaged_bytes_are_exceptions(tmp_path):
    path = write_dense(tmp_path / "array", np.arange(100), filters=tiledb.FilterList([tiledb.ChecksumSHA256Filter()]))
    data = next(path.glob("__fragments/*/a0.tdb"))
    stored = bytearray(data.read_bytes())
    stored[-3] ^= 1
    data.write_bytes(stored)
    with pytest.raises(tilefs.DamagedError, match="a0.tdb"):
        tilefs.open(path)["a"][:]


def test_threads_share_an_array(demo):
    temp = tilefs.open(demo)["temp"]
    expected = temp[:]
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            (y, x), (h, w) = rng.integers(0, 90, 2), rng.integers(1, 20, 2)
            if not np.array_equal(temp[y : y + h, x : x + w], expected[y : y + h, x : x + w]):
                wrong.append((y, x, h, w))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_other_threads_run_during_a_read(tmp_path):
    path = write_dense(tmp_path / "array", np.zeros((3000, 3000)), tile=500, filters=tiledb.FilterList([tiledb.GzipFilter()]))
    attribute = tilefs.open(path, cache_size=1 << 20)["a"]
    done, turns = threading.Event(), [0]

    def count():
        while not done.is_set():
            turns[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = turns[0]
    attribute[:]
    during = turns[0] - before
    done.set()
    counter.join()
    # If the read held the interpreter's lock, the counting thread would hardly run during it.
    assert during > 1000


# Opens a bucket whose server accepts and never answers, and sends itself the signal as a terminal does.
INTERRUPTED = """
import os, signal, socket, threading, time
import tilefs

# Programs that are started in the background ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)

listener = socket.create_server(("127.0.0.1", 0))
config = {"vfs.s3.endpoint_override": f"http://127.0.0.1:{listener.getsockname()[1]}", "vfs.s3.region": "us-east-1"}
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    tilefs.open("s3://bucket/array", config=config, anonymous=True, io_timeout=60)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start < 30)
"""


def test_ctrl_c_ends_a_read_that_waits():
    # Run it in a new process: here, libtiledb has replaced Python's signal handler with one that crashes if the signal
    # was ignored.
    ran = subprocess.run([sys.executable, "-X", "faulthandler", "-c", INTERRUPTED], capture_output=True, text=True, timeout=90)
    assert (ran.returncode, ran.stdout) == (0, "interrupted True\n"), ran


def test_no_key_gets_into_a_pickle(tmp_path):
    key = "0123456789abcdeF0123456789abcdeF"
    path = write_dense(tmp_path / "secret", np.arange(5), key=key)
    (tmp_path / "key").write_text(key)
    by_file = tilefs.open(path, key=tmp_path / "key")
    assert pickle.loads(pickle.dumps(by_file))["a"][1] == 1
    by_value = pickle.dumps(tilefs.open(path, key=key.encode()))
    assert key.encode() not in by_value
    with pytest.raises(tilefs.EncryptionError):
        pickle.loads(by_value)
    fs = pytest.importorskip("tilefs.fs").TilefsFileSystem(path, key=key.encode())
    assert fs.cat_file("a.i64")[8] == 1 and key.encode() not in pickle.dumps(fs)


def test_pickled_arrays_are_opened_again_as_of_the_same_time(tmp_path):
    path = write_dense(tmp_path / "array", np.arange(5))
    array = tilefs.open(path)
    with tiledb.open(str(path), "w") as writer:
        writer[:] = np.arange(5) + 10
    assert pickle.loads(pickle.dumps(array))["a"][:].tolist() == array["a"][:].tolist() == [0, 1, 2, 3, 4]
    assert tilefs.open(path)["a"][0] == 10


def test_groups_are_mappings(tmp_path):
    write_dense(tmp_path / "one", np.arange(3))
    tiledb.Group.create(str(tmp_path / "group"))
    tiledb.Group.create(str(tmp_path / "inner"))
    with tiledb.Group(str(tmp_path / "group"), "w") as group:
        group.add(str(tmp_path / "one"), name="first")
        group.add(str(tmp_path / "inner"), name="second")
        group.meta["key"] = "value"
    group = tilefs.open(tmp_path / "group")
    assert isinstance(group, tilefs.Group) and sorted(group) == ["first", "second"] and len(group) == 2
    assert group["first"]["a"][:].tolist() == [0, 1, 2] and isinstance(group["second"], tilefs.Group)
    assert dict(group.metadata) == {"key": "value"} and {name for name, *_ in group.members} == set(group)
    assert pickle.loads(pickle.dumps(group["first"]))["a"][1] == 1
    assert group._ipython_key_completions_() == list(group) and group["first"]._ipython_key_completions_() == ["a"]
    with pytest.raises(KeyError, match="no member"):
        group["third"]


def test_paths_of_names_open_members_of_members(tmp_path):
    write_dense(tmp_path / "one", np.arange(3))
    for name in ("outer", "inner"):
        tiledb.Group.create(str(tmp_path / name))
    with tiledb.Group(str(tmp_path / "outer"), "w") as group:
        group.add(str(tmp_path / "inner"), name="ms")
        group.add(str(tmp_path / "inner"), name="ms/RNA")
        group.add(str(tmp_path / "one"), name="one")
    with tiledb.Group(str(tmp_path / "inner"), "w") as group:
        group.add(str(tmp_path / "one"), name="X")
    group = tilefs.open(tmp_path / "outer")
    for name in ("ms/X", "ms/RNA/X", "one"):
        assert name in group and group[name]["a"][:].tolist() == [0, 1, 2], name
    assert pickle.loads(pickle.dumps(group["ms/RNA/X"]))["a"][1] == 1
    for name, reason in [("ms/Y", "no member 'Y'"), ("ones", "did you mean 'one'"), ("one/a", "has no members"), ("", "no member")]:
        assert name not in group
        with pytest.raises(KeyError, match=reason):
            group[name]
