"""`xarray.open_dataset(path)` recognises arrays and groups, and gives what xarray's engine for Zarr gives for their tree."""

import pathlib
import pickle
import shutil
import sys
import tomllib

import fsspec
import numpy as np
import pytest
from conftest import tiledb

import tilefs

xarray = pytest.importorskip("xarray")

PROJECT = pathlib.Path(__file__).parents[1] / "pyproject.toml"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """Installs the entry points of the package, which is not installed here."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "tilefs-0.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tilefs\nVersion: 0.0.0\n")
    groups = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    sys.path.insert(0, str(folder))
    # fsspec has read the entry points already.
    fsspec.register_implementation("tilefs", "tilefs.fs.TilefsFileSystem", clobber=True)
    xarray.backends.plugins.list_engines.cache_clear()
    yield
    sys.path.remove(str(folder))
    xarray.backends.plugins.list_engines.cache_clear()


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Returns a group with a dense array with nulls, labels and times, and a sparse array."""
    folder = tmp_path_factory.mktemp("xarray") / "group"
    tiledb.Group.create(str(folder))
    dims = [tiledb.Dim(name, domain=(1, size), tile=tile, dtype=np.int32) for name, size, tile in (("y", 10, 4), ("x", 6, 2))]
    kinds = tiledb.Enumeration("kinds", False, np.array(["sea", "land"]))
    attrs = [tiledb.Attr("temp", dtype=np.float32), tiledb.Attr("n", dtype=np.int16, nullable=True), tiledb.Attr("kind", dtype=np.int8, enum_label="kinds"), tiledb.Attr("t", dtype="datetime64[s]")]
    tiledb.Array.create(str(folder / "dense"), tiledb.ArraySchema(tiledb.Domain(*dims), attrs, enums=[kinds]))
    numbers = np.arange(60).reshape(10, 6)
    with tiledb.open(str(folder / "dense"), "w") as array:
        array[:] = {"temp": numbers.astype("f4"), "n": numbers.astype("i2"), "kind": (numbers % 2).astype("i1"), "t": numbers.astype("M8[s]")}
        array.meta["title"] = "temperatures"
    dim = tiledb.Dim("id", domain=(0, 999), tile=10, dtype=np.int64)
    tiledb.Array.create(str(folder / "sparse"), tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.float64)], sparse=True))
    with tiledb.open(str(folder / "sparse"), "w") as array:
        array[np.arange(0, 300, 3)] = np.arange(100.0)
    with tiledb.Group(str(folder), "w") as opened:
        for name in ("dense", "sparse"):
            opened.add(name, name, relative=True)
    return folder


def by_zarr(uri):
    return xarray.open_zarr("tilefs://zarr", storage_options={"uri": str(uri)}, consolidated=False, chunks=None)


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_datasets_are_those_of_the_tree(group, name):
    dataset = xarray.open_dataset(group / name)
    xarray.testing.assert_identical(dataset, by_zarr(group / name))
    for variable, expected in by_zarr(group / name).variables.items():
        assert dataset.variables[variable].encoding.get("chunks") == expected.encoding.get("chunks")
    assert {one for one in dataset} and dataset.sizes == by_zarr(group / name).sizes


def test_values_are_those_that_were_written(group):
    dataset = xarray.open_dataset(str(group / "dense"))
    np.testing.assert_array_equal(dataset["temp"].values, np.arange(60, dtype="f4").reshape(10, 6))
    assert dataset["temp"].sel(y=3, x=5).item() == 16
    assert dataset.attrs["title"] == "temperatures"


def test_chunks_are_tiles(group):
    pytest.importorskip("dask")
    dataset = xarray.open_dataset(group / "dense", chunks={})
    assert dataset["temp"].chunks == ((4, 4, 2), (2, 2, 2))
    xarray.testing.assert_identical(dataset.compute(), xarray.open_dataset(group / "dense").load())


def test_boxes_are_read_from_the_array(group, monkeypatch):
    """Whole chunks would be decoded. Nulls and labels are in the form that only these have."""
    values = np.arange(60, dtype="f4").reshape(10, 6)
    dataset = pickle.loads(pickle.dumps(xarray.open_dataset(group / "dense")))

    def refuse(array, wanted, copy):
        raise AssertionError(f"{array} {wanted}")

    monkeypatch.setattr("tilefs._xarray_store.ChunkedArray._read", refuse)
    for key in [(slice(None), slice(None)), (3, slice(1, 5, 2)), (slice(None, None, -3), 5), (9, 0), (slice(4, 4), 2), (-1, slice(-2, None))]:
        np.testing.assert_array_equal(dataset["temp"][key].values, values[key], err_msg=str(key))
    for name in ("n", "kind"):
        with pytest.raises(AssertionError):
            dataset[name][2:4, 3].load()


def points(*positions):
    return xarray.DataArray(np.array(positions), dims=[f"p{axis}" for axis in range(np.ndim(positions))])


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"y": 3},
        {"y": -1, "x": 0},
        {"y": slice(1, None, 3), "x": slice(None, None, -1)},
        {"y": slice(9, 2, -2), "x": 4},
        {"y": slice(5, 5)},
        {"y": [7, 0, 7], "x": [5, 1]},
        {"y": [4, 5, 6], "x": slice(1, 4)},
        {"y": [], "x": [2]},
        {"y": points(9, 2, 9), "x": points(0, 3, -1)},
        {"y": points([1, 8], [0, 3]), "x": slice(4, 1, -1)},
        {"y": slice(2, 7, 2), "x": points(5, 0)},
        {"y": points(3, 3), "x": 2},
    ],
)
def test_any_index_gives_what_zarr_gives(group, index):
    dataset, expected = xarray.open_dataset(group / "dense"), by_zarr(group / "dense")
    found = pickle.loads(pickle.dumps(dataset)).isel(index).load()
    xarray.testing.assert_identical(found, expected.isel(index).load())
    for name in found.variables:
        assert found[name].dtype == expected[name].dtype


def test_texts_and_pairs_are_those_of_the_tree(tmp_path):
    folder = tmp_path / "texts"
    dims = [tiledb.Dim(name, domain=(0, 4), tile=2, dtype=np.uint64) for name in ("y", "x")]
    attrs = [tiledb.Attr("word", dtype=str, var=True), tiledb.Attr("pair", dtype="S2"), tiledb.Attr("bytes", dtype="S0", var=True), tiledb.Attr("two", dtype=np.complex64)]
    tiledb.Array.create(str(folder), tiledb.ArraySchema(tiledb.Domain(*dims), attrs))
    words = np.array([f"{'größer' * (number % 3)}{number}" for number in range(25)], dtype=object).reshape(5, 5)
    with tiledb.open(str(folder), "w") as array:
        array[:] = {"word": words, "pair": np.full((5, 5), b"ab", "S2"), "bytes": np.full((5, 5), b"xyz", object), "two": np.arange(25).reshape(5, 5) + np.complex64(7j)}
    dataset, expected = xarray.open_dataset(folder), by_zarr(folder)
    for index in ({}, {"y": 2, "x": 3}, {"y": [4, 1]}, {"y": points(0, 4), "x": points(1, 1)}):
        found = dataset.isel(index).load()
        xarray.testing.assert_identical(found, expected.isel(index).load())
        assert {name: found[name].dtype for name in found} == {name: expected[name].dtype for name in found}
    assert dataset["word"].values.tolist() == words.tolist()


def test_groups_are_trees(group):
    tree = xarray.open_datatree(group)
    assert set(tree.children) == {"dense", "sparse"}
    xarray.testing.assert_identical(tree["dense"].to_dataset().drop_attrs(deep=False), by_zarr(group / "dense").drop_attrs(deep=False))
    assert set(xarray.open_groups(group)) == {"/", "/dense", "/sparse"}
    dataset = xarray.open_dataset(group, group="dense")
    np.testing.assert_array_equal(dataset["temp"].values, by_zarr(group / "dense")["temp"].values)


def test_sparse_arrays_with_one_dimension_are_along_it(group):
    dataset = xarray.open_dataset(group / "sparse")
    assert dataset["a"].dims == ("id",) and dataset["a"].sel(id=27).item() == 9.0
    np.testing.assert_array_equal(dataset["id"].values, np.arange(0, 300, 3))
    np.testing.assert_array_equal(dataset["a"].sel(id=slice(30, 60)).values, np.arange(10.0, 21.0))


def write_variables(folder, **sizes):
    """Writes a group of arrays as TileDB-CF does that mark nothing: attributes along dimensions from 0."""
    tiledb.Group.create(str(folder))
    with tiledb.Group(str(folder), "w") as group:
        for name, lengths in sizes.items():
            dims = [tiledb.Dim(axis, domain=(0, length - 1), tile=4, dtype=np.uint64) for axis, length in lengths.items()]
            tiledb.Array.create(str(folder / name), tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr(name, dtype=np.float64)]))
            with tiledb.open(str(folder / name), "w") as array:
                array[:] = np.random.default_rng(1).random(tuple(lengths.values()))
            group.add(name, name, relative=True)
        group.meta["title"], group.meta["coordinates"] = "whole", "height"
    return folder


def test_arrays_along_the_same_dimensions_are_one_dataset(tmp_path):
    dataset = xarray.open_dataset(write_variables(tmp_path / "one", wind={"y": 5, "x": 7}, height={"y": 5}))
    assert set(dataset.data_vars) == {"wind"} and set(dataset.coords) == {"height"} and dataset.attrs == {"title": "whole"}
    with tiledb.open(str(tmp_path / "one/wind")) as array:
        np.testing.assert_array_equal(dataset["wind"].values, array[:]["wind"])
    chunked = xarray.open_dataset(tmp_path / "one", chunks={})
    assert chunked["wind"].chunks == ((4, 1), (4, 3)) and dict(chunked.sizes) == {"y": 5, "x": 7}
    # Dimensions of other lengths are others.
    assert not xarray.open_dataset(write_variables(tmp_path / "two", wind={"y": 5}, rain={"y": 6})).variables
    assert set(xarray.open_datatree(tmp_path / "two").children) == {"wind", "rain"}


def test_earlier_times(tmp_path):
    path = str(tmp_path / "times")
    dim = tiledb.Dim("d", domain=(0, 3), tile=2, dtype=np.int32)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("a", dtype=np.int32)]))
    for time in (10, 20):
        with tiledb.open(path, "w", timestamp=time) as array:
            array[:] = np.full(4, time, np.int32)
    for options in ({"at": 15}, {"timestamp": 10}, {"timestamp": (0, 19)}):
        assert xarray.open_dataset(path, **options)["a"].values.tolist() == [10] * 4
    assert xarray.open_dataset(path, engine="tilefs")["a"].values.tolist() == [20] * 4


def test_other_things_are_left_to_other_engines(tmp_path, group):
    from tilefs._xarray import TilefsBackendEntrypoint

    guess = TilefsBackendEntrypoint().guess_can_open
    (tmp_path / "file.nc").write_bytes(b"CDF\1")
    for other in (tmp_path, tmp_path / "file.nc", tmp_path / "none", "https://example.org/a.nc", "a::b", 3, b"x", None):
        assert not guess(other), other
    assert guess(group) and guess(str(group / "dense")) and guess(f"file://{group}/dense")
    with pytest.raises(tilefs.NotFoundError):
        xarray.open_dataset(tmp_path / "none", engine="tilefs")


def test_an_unknown_group_is_answered_with_those_that_there_are(demo, tmp_path):
    for folder in ("group", "group/part"):
        tiledb.Group.create(str(tmp_path / folder))
    shutil.copytree(demo, tmp_path / "group/dem")
    shutil.copytree(demo, tmp_path / "group/part/inner")
    for folder, names in (("group/part", ["inner"]), ("group", ["dem", "part"])):
        with tiledb.Group(str(tmp_path / folder), "w") as group:
            for name in names:
                group.add(name, name, relative=True)
    for group, meant in (("x", ""), ("dmm", "did you mean 'dem'. "), ("part/iner", "did you mean 'part/inner'. "), ("dem/temp", "")):
        with pytest.raises(tilefs.NotFoundError, match=f"has no group '{group}'; {meant}.*it has dem, part, part/inner"):
            xarray.open_dataset(tmp_path / "group", engine="tilefs", group=group)
    with pytest.raises(tilefs.NotFoundError, match="has no group 'x'; it has none"):
        xarray.open_dataset(demo, engine="tilefs", group="x")
    assert "temp" in xarray.open_dataset(tmp_path / "group", engine="tilefs", group="part/inner")
