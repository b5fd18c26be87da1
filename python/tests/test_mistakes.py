"""What goes wrong is said in a sentence: wrong names and types, closed objects, arrays that vanish, and queries that match
nothing or ask for very much."""

import concurrent.futures
import random
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import tiledb

import tilefs


@pytest.mark.parametrize(
    "mistake, error, message",
    [
        (lambda array: array["scor"], KeyError, "did you mean 'score'"),
        (lambda array: array.attr(7), IndexError, "3 attributes, and none has the number 7"),
        (lambda array: array.dim("idd"), KeyError, "did you mean 'id'"),
        (lambda array: array.dim(3), IndexError, "1 dimensions, and none has the number 3"),
        (lambda array: array.enum("state"), KeyError, "did you mean 'states'"),
        (lambda array: array.read(columns=["id", "scor"]), tilefs.UsageError, "did you mean 'score'"),
        (lambda array: array.read(rows={"idd": 3}), tilefs.UsageError, "there are: id"),
        (lambda array: array.read(rows={"id": "a"}), tilefs.UsageError, "not an integer"),
        (lambda array: array.query(attrs=["scor"]), KeyError, "did you mean 'score'"),
        (lambda array: array.query(cond="scor > 3"), tilefs.UsageError, "did you mean 'score'"),
        (lambda array: array.query(cond="score > 'a'"), tilefs.UsageError, "numbers of the type float32"),
        (lambda array: array.query(order="X"), ValueError, "row-major"),
        (lambda array: array.multi_index["a"], tilefs.UsageError, "integer"),
        (lambda array: array["score"][0:3], tilefs.UsageError, "is sparse: read its rows"),
        (lambda array: tilefs.open(array.uri, "w"), tilefs.UsageError, "only reads"),
        (lambda array: tilefs.open(array.uri, at="yesterday"), tilefs.UsageError, "not a time"),
    ],
)
def test_mistakes_are_explained(cells, mistake, error, message):
    with pytest.raises(error, match=message):
        mistake(tilefs.open(cells[0]))


def test_closed_objects_say_so(cells, demo):
    array, dense = tilefs.open(cells[0]), tilefs.open(demo)
    query, temp = array.query(cond="score > 3"), dense["temp"]
    for one in (array, dense):
        one.close()
    for use in (lambda: temp[0, 0], lambda: query.df[:], array.read, lambda: dict(array.meta), lambda: dense[0, 0], array.nonempty_domain):
        with pytest.raises(tilefs.Error, match="is closed"):
            use()


def test_free_threaded_interpreters_are_refused_with_a_sentence():
    """There is none here: an ordinary one plays it."""
    script = "import sys, sysconfig; sys.modules['tilefs._tilefs'] = None; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1; import tilefs"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 1 and "ImportError: tilefs does not run in free-threaded Python yet" in ran.stderr
    ordinary = subprocess.run([sys.executable, "-c", script.replace("= 1", "= 0")], capture_output=True, text=True)
    assert ordinary.returncode == 1 and "free-threaded" not in ordinary.stderr.splitlines()[-1]


def test_threads_read_while_another_closes(cells):
    array = tilefs.open(cells[0])
    expected = len(array.df[:])

    def read(_):
        try:
            return len(array.df[:])
        except tilefs.Error as error:
            assert "is closed" in str(error)
            return expected

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        found = threads.map(read, range(64))
        threads.submit(array.close)
        assert set(found) == {expected}


def test_arrays_that_vanish_are_errors(cells, demo, tmp_path):
    for source, use in ((cells[0], lambda array: array.df[:]), (demo, lambda array: array["temp"][:])):
        copy = tmp_path / source.name
        shutil.copytree(source, copy)
        array = tilefs.open(copy)
        shutil.rmtree(copy)
        with pytest.raises(tilefs.Error, match=source.name):
            use(array)
        assert isinstance(repr(array), str)
        with pytest.raises(tilefs.NotFoundError):
            tilefs.open(copy)


def test_queries_that_match_nothing_have_the_types_of_others(cells):
    array = tilefs.open(cells[0])
    whole = array.multi_index[:]
    for found in (array.multi_index[1:2], array.multi_index[[]], array.query(cond="score < 0").multi_index[:]):
        assert {name: (len(one), one.dtype.kind) for name, one in found.items()} == {name: (0, one.dtype.kind) for name, one in whole.items()}
    frame = array.df[:]
    for found in (array.df[1:2], array.query(cond="score < 0").df[:], array.df[[]]):
        assert len(found) == 0 and list(found.columns) == ["id", "kind", "score", "state"]
        assert found["state"].cat.categories.tolist() == ["on", "off"]
        assert found["id"].dtype == frame["id"].dtype and found["score"].dtype == frame["score"].dtype
    assert array.query(cond="score < 0", return_arrow=True).df[:].schema.equals(array.query(return_arrow=True).df[:].schema)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_hundred_thousand_ranges(tmp_path, is_sparse):
    """No recursion, and no time that grows with the square."""
    path, count = str(tmp_path / "array"), 1_000_000
    dim = tiledb.Dim("x", domain=(0, count - 1), tile=10_000, dtype=np.int64)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.float64)], sparse=is_sparse))
    with tiledb.open(path, "w") as array:
        if is_sparse:
            array[np.arange(count)] = np.arange(float(count))
        else:
            array[:] = np.arange(float(count))
    chosen = random.Random(1).sample(range(count), 100_000)
    array = tilefs.open(path)
    for key in (chosen, [slice(one, one) for one in chosen]):
        found = array.multi_index[key]["a"]
        np.testing.assert_array_equal(np.sort(found) if is_sparse else found, np.sort(np.array(chosen, dtype=float)) if is_sparse else np.array(chosen, dtype=float))
    condition = " or ".join(f"x == {one}" for one in chosen[:2000])
    if is_sparse:
        assert sorted(array.query(cond=condition).df[:]["x"]) == sorted(chosen[:2000])
        assert len(array.query(cond=f"x in {chosen[:5000]}").df[:]) == 5000


@pytest.fixture(scope="module")
def others(cells, tmp_path_factory):
    """Returns a group with one member, and a sparse array along text."""
    folder = tmp_path_factory.mktemp("others")
    tiledb.Group.create(str(folder / "group"))
    with tiledb.Group(str(folder / "group"), "w") as group:
        group.add(str(cells[0]), name="cells")
        group.meta["title"] = "x"
    domain = tiledb.Domain(tiledb.Dim("name", domain=(None, None), tile=None, dtype="ascii"))
    tiledb.Array.create(str(folder / "text"), tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i4")], sparse=True))
    with tiledb.open(str(folder / "text"), "w") as array:
        array[np.array(["a", "b"])] = np.array([1, 2], "i4")
    return tilefs.open(folder / "group"), tilefs.open(folder / "text")


@pytest.mark.parametrize(
    "mistake, error, message",
    [
        (lambda demo, group, text: tilefs.Group(group.uri), tilefs.UsageError, r"tilefs\.open\('.*group'\)"),
        (lambda demo, group, text: tilefs.Array(text.uri), tilefs.UsageError, r"tilefs\.open\('.*text'\)"),
        (lambda demo, group, text: group[0], KeyError, "no member 0; it has cells"),
        (lambda demo, group, text: group.meta["titel"], KeyError, "did you mean 'title'"),
        (lambda demo, group, text: text.multi_index[5], tilefs.UsageError, "dimension name has texts, not 5"),
        (lambda demo, group, text: text[3:5], tilefs.UsageError, "dimension name has texts, not 3"),
        (lambda demo, group, text: text.read(rows=5), tilefs.UsageError, "dimension name has texts, not 5"),
        (lambda demo, group, text: text["a"][0], tilefs.UsageError, r"is sparse: read its rows, with .*array\.read"),
        (lambda demo, group, text: tilefs.open(demo, timestamp=1.5), tilefs.UsageError, "timestamp.* not 1.5"),
        (lambda demo, group, text: tilefs.open(demo, at=-1), tilefs.UsageError, "^at .* not -1"),
        (lambda demo, group, text: tilefs.open(demo, from_=True), tilefs.UsageError, "^from_ .* not True"),
        (lambda demo, group, text: tilefs.open(demo, cache_size="many"), tilefs.UsageError, "cache_size .* not 'many'"),
        (lambda demo, group, text: tilefs.open(demo, cache_size="99999999999T"), tilefs.UsageError, "cache_size"),
        (lambda demo, group, text: tilefs.open(demo, disk_cache_size=-1), OverflowError, "disk_cache_size .* not -1"),
        (lambda demo, group, text: tilefs.open(demo, threads="4"), tilefs.UsageError, "threads .* not '4'"),
        (lambda demo, group, text: tilefs.open(demo, io_timeout="5"), tilefs.UsageError, "io_timeout .* not '5'"),
        (lambda demo, group, text: tilefs.open(demo, config=5), tilefs.UsageError, "config is a mapping, .* not int"),
        (lambda demo, group, text: tilefs.open(5), TypeError, "uri is a path or a URI, not 5"),
        (lambda demo, group, text: tilefs.ls("nope"), FileNotFoundError, "nope"),
        (lambda demo, group, text: tilefs.walk("nope"), FileNotFoundError, "nope"),
    ],
)
def test_errors_name_the_argument_and_what_to_type(demo, others, mistake, error, message):
    with pytest.raises(error, match=message) as found:
        mistake(demo, *others)
    assert not isinstance(found.value, tilefs.DamagedError)


def test_a_key_that_is_no_file_is_not_repeated(demo):
    with pytest.raises(tilefs.EncryptionError, match='key=b"..."') as error:
        tilefs.open(demo, key="hunter2")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("size, count", [("1G", 1 << 30), ("512 MiB", 512 << 20), ("3kb", 3 << 10), ("7", 7), (np.int64(9), 9)])
def test_sizes_may_have_a_unit(demo, size, count):
    assert tilefs._options._bytes("cache_size", size) == count
    assert tilefs.open(demo, cache_size=size)["temp"][0, 0] == 20


def test_names_need_no_list(cells):
    query = tilefs.open(cells[0]).query(attrs="score", dims="id")
    assert query.attrs == ["score"] and query.dims == ["id"]


def test_labels_that_are_absent_are_told(cells):
    array = tilefs.open(cells[0])
    with pytest.warns(UserWarning, match="state has no label 'onn'.*did you mean 'on'"):
        assert len(array.query(cond="state == 'onn'").df[:]) == 0
    with pytest.warns(UserWarning, match="there are 'on', 'off'"):
        assert len(array.query(cond="state in ['xyz', 'on']").df[:]) == 500
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(array.query(cond="state == 'on'").df[:]) == 500


def test_backed_experiments_name_what_is_missing(monkeypatch):
    from tilefs import _anndata

    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match="pip install fsspec zarr"):
        _anndata._Stored(None, None)


def test_coordinates_that_are_not_utf8_are_bytes(tmp_path):
    path, coordinates = str(tmp_path / "a"), [b"\x81", b"\x82", b"\xff\xfe"]
    domain = tiledb.Domain(tiledb.Dim("d", domain=(None, None), tile=None, dtype="ascii"))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [tiledb.Attr("a", dtype="i4")], sparse=True))
    with tiledb.open(path, "w") as array:
        array[np.array(coordinates)] = np.array([1, 2, 3], "i4")
    array = tilefs.open(path)
    with tiledb.open(path) as theirs:
        assert array.nonempty_domain() == theirs.nonempty_domain() and tilefs.array_fragments(path).nonempty_domain == (theirs.nonempty_domain(),)
        assert array[:]["d"].tolist() == theirs[:]["d"].tolist() == coordinates
    assert array.multi_index[b"\x82"]["a"].tolist() == [2] and array.unique_dim_values("d") == tuple(coordinates)
    assert array.read(as_stored=True).to_arrow()["d"].to_pylist() == coordinates
    with pytest.raises(tilefs.UnsupportedError, match="not UTF-8"):
        array.read().to_arrow()


@pytest.mark.parametrize("far", [-(2**63) + 1, 2**63 - 10, -(2**62)])
@pytest.mark.parametrize("unit", ["Y", "W", "D", "h", "s", "ns"])
def test_far_dates_are_read_as_stored(tmp_path, unit, far):
    path = str(tmp_path / "a")
    values = np.array([far, 1, -(2**63)]).view(f"M8[{unit}]")
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 9), tile=5, dtype="i4"))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, [tiledb.Attr("t", dtype=f"M8[{unit}]")], sparse=True))
    with tiledb.open(path, "w") as array:
        array[np.arange(3)] = values
    array = tilefs.open(path)
    found = array[:]["t"]
    assert found.dtype == values.dtype == array.attr("t").dtype and found.view("i8").tolist() == values.view("i8").tolist()
    counts = array.read(columns=["t"], as_stored=True)
    assert counts.to_arrow()["t"].to_pylist() == values.view("i8").tolist() and counts.to_pandas()["t"].dtype == np.int64
