"""Tests the fsspec filesystem, alone and in the libraries that read through it."""

import io
import os
import pickle
import shutil

import numpy as np
import pytest
import tiledb
import tilefs

fsspec = pytest.importorskip("fsspec")

from fsspec.spec import AbstractFileSystem  # noqa: E402
from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests  # noqa: E402
from tilefs.fs import TilefsFileSystem  # noqa: E402


@pytest.fixture(autouse=True)
def registered():
    # The wheel's entry point does this.
    fsspec.register_implementation("tilefs", TilefsFileSystem, clobber=True)


@pytest.fixture
def fs(demo):
    return TilefsFileSystem(demo)


def test_names_sizes_and_bytes_are_those_of_the_tree(fs):
    assert {"README.txt", "schema.json", "temp.f32", "dims"} <= set(fs.ls("", detail=False))
    assert fs.ls("dims", detail=False) == ["dims/y.i64", "dims/x.i64"]
    by_name = {one["name"]: one for one in fs.ls("tilefs://")}
    assert by_name["temp.f32"]["size"] == 80_000 and by_name["temp.f32"]["type"] == "file"
    assert by_name["dims"]["type"] == "directory" and fs.isdir("/dims/") and fs.isfile("tilefs://dims/y.i64")
    stored = fs.cat_file("temp.f32")
    assert np.frombuffer(stored, "<f4").reshape(100, 200)[0, :2].tolist() == [20.0, np.float32(20.01)]
    # Names that are not listed can be opened, too.
    assert fs.exists("slice/3..4,5/npy/temp.npy") and not fs.exists("none") and not fs.exists("temp.f32/none")
    assert np.load(io.BytesIO(fs.cat_file("slice/3..4,5/npy/temp.npy"))).shape == (2, 1)
    assert fs.info("zarr")["type"] == "directory" and "zarr" not in fs.ls("", detail=False)
    assert sorted(fs.find("dims")) == ["dims/x.i64", "dims/y.i64"] and fs.glob("*.f32") == ["temp.f32"]
    assert fs.modified("temp.f32") == fs.created("temp.f32") and fs.ukey("temp.f32") != fs.ukey("cell.i32")


RANGES = [(None, None), (0, 0), (0, 10), (79_990, None), (-10, None), (None, -79_990), (5, 3), (79_999, 99_999), (100_000, 100_001), (-5, -2)]


@pytest.mark.parametrize("start, end", RANGES)
def test_ranges_are_those_of_bytes(fs, start, end):
    assert fs.cat_file("temp.f32", start, end) == fs.cat_file("temp.f32")[start:end]


def test_many_ranges_are_read_at_once(fs):
    rng = np.random.default_rng(1)
    starts = rng.integers(0, 80_000, 500).tolist()
    ends = [start + length for start, length in zip(starts, rng.integers(0, 3000, 500).tolist())]
    whole = fs.cat_file("temp.f32")
    assert fs.cat_ranges(["temp.f32"] * 500, starts, ends) == [whole[start:end] for start, end in zip(starts, ends)]
    found = fs.cat_ranges(["temp.f32", "none", "dims"], 0, 4, on_error="return")
    assert found[0] == whole[:4] and isinstance(found[1], FileNotFoundError) and isinstance(found[2], IsADirectoryError)
    with pytest.raises(FileNotFoundError, match="none"):
        fs.cat_ranges(["temp.f32", "none"], 0, 4, on_error="raise")
    assert set(fs.cat(["dims/y.i64", "dims/x.i64"])) == {"dims/y.i64", "dims/x.i64"}
    assert set(fs.cat("dims", recursive=True)) == {"dims/y.i64", "dims/x.i64"}


def test_files_are_read_and_sought(fs):
    whole = fs.cat_file("temp.f32")
    with fs.open("temp.f32") as file:
        assert file.read(10) == whole[:10] and file.seek(-4, 2) == 79_996 and file.read() == whole[-4:]
        assert file.size == 80_000 and file.seekable() and not file.writable()
    with fs.open("text/temp.txt", "r") as file:
        assert len(file.readline().split()) == 200
    assert fs.head("temp.f32", 3) == whole[:3] and fs.tail("temp.f32", 3) == whole[-3:]


def test_nothing_can_be_written_and_nothing_leads_out(fs, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    attempts = [
        lambda: fs.open("new", "wb"),
        lambda: fs.open("temp.f32", "ab"),
        lambda: fs.pipe("new", b"x"),
        lambda: fs.mkdir("new"),
        lambda: fs.makedirs("new"),
        lambda: fs.rm("temp.f32"),
        lambda: fs.rmdir("dims"),
        lambda: fs.mv("temp.f32", "new"),
        lambda: fs.cp_file("temp.f32", "new"),
        lambda: fs.touch("temp.f32"),
        lambda: fs.put_file(str(tmp_path / "file"), "new"),
    ]
    for attempt in attempts:
        with pytest.raises(OSError, match="[Rr]ead-only"):
            attempt()
    for path in ["..", "../etc/passwd", "dims/../../etc/passwd", "/etc/passwd", "dims/..", "a\0b", "\\..\\x", "%2e%2e", "dims/./y.i32"]:
        assert not fs.exists(path), path
    with pytest.raises(FileNotFoundError, match="did you mean temp.f32"):
        fs.cat_file("tmp.f32")
    for read in (lambda: fs.open("dims"), lambda: fs.cat_file("dims")):
        with pytest.raises(IsADirectoryError):
            read()


def test_paths_begin_with_the_array(demo, fs, tmp_path):
    shutil.copytree(demo, tmp_path / "inner/dem.tdb")
    with fsspec.open(f"tilefs://{tmp_path}/inner/dem.tdb/temp.f32") as file:
        assert file.read() == fs.cat_file("temp.f32")
    everything = fsspec.filesystem("tilefs")
    root = f"{tmp_path}/inner/dem.tdb".strip("/")
    assert everything.ls(f"/{root}/dims", detail=False) == [f"{root}/dims/y.i64", f"{root}/dims/x.i64"]
    assert everything.glob(f"tilefs:///{root}/*.f32") == [f"{root}/temp.f32"] and everything.isdir(root)
    again = pickle.loads(pickle.dumps(everything))
    assert again.cat_ranges([f"/{root}/temp.f32"] * 2, [0, 4], [4, 8]) == [fs.cat_file("temp.f32", 0, 4), fs.cat_file("temp.f32", 4, 8)]
    assert not everything.exists(f"/{root}/none") and not everything.exists(f"{tmp_path}/inner") and not everything.exists("s3")
    with pytest.raises(tilefs.NotFoundError, match="no array or group on the way"):
        everything.ls(f"{tmp_path}/inner")


def test_chained_urls_name_the_array(demo, fs):
    whole = fs.cat_file("temp.f32")
    for url in [f"tilefs://temp.f32::file://{demo}", f"tilefs://temp.f32::{demo}"]:
        with fsspec.open(url) as file:
            assert file.read() == whole
    other, path = fsspec.url_to_fs(f"tilefs::file://{demo}")
    assert isinstance(other, TilefsFileSystem) and other.exists("temp.f32") and path == ""
    same = pickle.loads(pickle.dumps(fs))
    assert same.cat_file("temp.f32") == whole
    with pytest.raises(tilefs.NotFoundError):
        fsspec.filesystem("tilefs", uri=str(demo.parent / "none"))
    assert TilefsFileSystem._strip_protocol(["tilefs://a/b/", "/c"]) == ["a/b", "c"]


def test_changes_show_after_invalidating_the_cache(tmp_path):
    path = str(tmp_path / "array")
    dim = tiledb.Dim("d", domain=(0, 3), tile=4, dtype=np.int64)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype="i4")]))
    fs = TilefsFileSystem(path, skip_instance_cache=True)
    for value in (1, 2):
        with tiledb.open(path, "w") as array:
            array[:] = np.full(4, value, "i4")
        before = fs.cat_file("a.i32")
        fs.invalidate_cache()
        assert fs.cat_file("a.i32") == np.full(4, value, "<i4").tobytes() != before


def test_files_that_vanish_are_exceptions(demo, tmp_path):
    path = shutil.copytree(demo, tmp_path / "array")
    fs = TilefsFileSystem(path)
    shutil.rmtree(next((path / "__fragments").iterdir()))
    with pytest.raises(OSError):
        fs.cat_file("temp.f32")


def test_xarray_and_zarr_open_the_arrays(demo):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    data = xarray.open_zarr("tilefs://zarr", storage_options={"uri": str(demo)}, consolidated=False)
    assert data["temp"].shape == (100, 200) and float(data["temp"][0, 1]) == np.float32(20.01)
    part = xarray.open_zarr(f"tilefs://slice/0..9,0..9/zarr::file://{demo}", consolidated=False)
    assert part["temp"].shape == (10, 10)


def test_pandas_dask_and_duckdb_open_parquet(cells):
    path, columns = cells
    pandas = pytest.importorskip("pandas")
    url, options = "tilefs://parquet/cells.parquet", {"uri": str(path)}
    frame = pandas.read_parquet(url, storage_options=options, columns=["id", "score"])
    assert frame["id"].tolist() == columns["id"].tolist()
    dask = pytest.importorskip("dask.dataframe")
    assert dask.read_parquet(url, storage_options=options)["id"].sum().compute(scheduler="threads") == columns["id"].sum()
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register_filesystem(TilefsFileSystem(path))
    assert connection.sql(f"SELECT count(*), sum(id) FROM '{url}' WHERE id < 300").fetchall() == [(100, sum(range(0, 300, 3)))]


def test_anndata_reads_an_experiment():
    anndata = pytest.importorskip("anndata")
    zarr = pytest.importorskip("zarr")
    experiment = os.environ.get("TILEFS_TEST_EXPERIMENT")
    if not experiment:
        pytest.skip("no experiment of TileDB-SOMA was given")
    store = zarr.storage.FsspecStore.from_url("tilefs://zarr", storage_options={"uri": experiment}, read_only=True)
    cells = anndata.read_zarr(store)
    with tilefs.open(experiment + "/obs") as obs:
        assert cells.n_obs == len(obs.read()) > 0


class DictTree:
    """A tree of files with names that a test chooses. fsspec's own tests need them, and no array has them."""

    def __init__(self, files):
        self.files = files

    def _below(self, path):
        prefix = f"{path}/" if path else ""
        return {name[len(prefix) :].split("/")[0] for name in self.files if name.startswith(prefix)}

    def info(self, path):
        if path in self.files:
            return len(self.files[path]), 0.0
        if not self._below(path):
            raise tilefs.NotFoundError(path)
        return None, 0.0

    def names(self, path):
        if self.info(path)[0] is not None:
            return None
        return [(name, self.info(f"{path}/{name}".strip("/"))[0] is None) for name in sorted(self._below(path))]

    def list(self, path):
        names = self.names(path)
        return names and [(name, self.info(f"{path}/{name}".strip("/"))) for name, _ in names]

    def group(self, path):
        self.info(path)
        return None

    def read(self, path, start=None, end=None):
        return self.files[path][start:end]


class ScenarioFileSystem(TilefsFileSystem):
    """A filesystem that reads like `TilefsFileSystem`, except that the files are those that fsspec's fixtures write."""

    cachable = False

    def __init__(self):
        AbstractFileSystem.__init__(self)
        self.uri, self._trees = "scenario", {"": DictTree({})}

    def makedirs(self, path, exist_ok=False):
        """A folder exists once there is a file in it."""

    def mkdir(self, path, create_parents=True, **kwargs):
        """Does nothing, like `makedirs`."""

    def pipe_file(self, path, value, *args, **kwargs):
        self._trees[""].files[self._strip_protocol(path)] = value

    def touch(self, path, truncate=True, **kwargs):
        self.pipe_file(path, b"")

    def rm(self, path, recursive=False, maxdepth=None):
        for name in self.find(path):
            del self._trees[""].files[name]


class TestGetOfFsspec(AbstractFixtures, AbstractGetTests):
    """Runs fsspec's own tests of reading: `get` with all its forms of paths, globs and recursion. Its other tests
    write."""

    @pytest.fixture
    def fs(self):
        return ScenarioFileSystem()

    @pytest.fixture
    def fs_path(self):
        return "folder"

    @pytest.fixture
    def supports_empty_directories(self):
        return False
