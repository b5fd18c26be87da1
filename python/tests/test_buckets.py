"""Tests arrays in a bucket of an S3 server that runs in this process."""

import os
import shutil

import fsspec
import numpy as np
import pytest
import tiledb
import tilefs
from tilefs.fs import TilefsFileSystem

from conftest import write_dense
from forks import in_child

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")


def upload(endpoint, folder, name):
    """Copies a folder into the bucket `test`, under this name."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    for inner, _, names in os.walk(folder):
        for file in names:
            path = os.path.join(inner, file)
            client.upload_file(path, "test", f"{name}/{os.path.relpath(path, folder)}")


@pytest.fixture
def bucket(demo, monkeypatch):
    """Starts a server whose bucket `test` has the sample array as `demo`, and yields its endpoint."""
    server = moto_server.ThreadedMotoServer(port=0)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="test")
    upload(endpoint, demo, "demo")
    fsspec.register_implementation("tilefs", TilefsFileSystem, clobber=True)
    yield endpoint
    server.stop()


def test_a_bucket_is_read_like_a_folder(demo, bucket):
    config = settings(bucket)
    array = tilefs.open("s3://test/demo", config=config)
    assert np.array_equal(array["temp"][5:50, ::3], tilefs.open(demo)["temp"][5:50, ::3])
    with pytest.raises(tilefs.NotFoundError):
        tilefs.open("s3://test/none", config=config)
    whole = TilefsFileSystem(demo).cat_file("temp.f32")
    for options in ({"uri": "s3://test/demo", "config": config}, {"fo": "test/demo", "target_protocol": "s3", "target_options": {"endpoint_url": bucket}}):
        assert fsspec.filesystem("tilefs", **options).cat_file("temp.f32") == whole


def settings(endpoint):
    return {"vfs.s3.endpoint_override": endpoint, "vfs.s3.use_virtual_addressing": "false"}


def test_large_dense_reads_from_a_bucket_are_whole(bucket, tmp_path):
    """Several lines of tiles are read at the same time."""
    values = np.arange(4096 * 4000, dtype=np.uint32).reshape(4096, 4000) // 7
    write_dense(tmp_path / "large", values, tile=300, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
    upload(bucket, tmp_path / "large", "large")
    attribute = tilefs.open("s3://test/large", config=settings(bucket))["a"]
    np.testing.assert_array_equal(attribute[:], values)
    np.testing.assert_array_equal(attribute[5:4001, 7:], values[5:4001, 7:])
    np.testing.assert_array_equal(attribute[::2, ::-1], values[::2, ::-1])


def test_column_major_tiles_larger_than_a_small_cache_are_whole(bucket, tmp_path):
    """Their rows are read from all chunks of a tile, so that parts would evict each other's chunks."""
    dims = [tiledb.Dim(f"d{axis}", domain=(0, size - 1), tile=tile, dtype=np.int32) for axis, (size, tile) in enumerate([(6000, 2000), (1500, 700)])]
    attr = tiledb.Attr("a", dtype=np.int32, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
    tiledb.Array.create(str(tmp_path / "large"), tiledb.ArraySchema(tiledb.Domain(*dims), [attr], cell_order="col-major"))
    values = np.arange(6000 * 1500, dtype=np.int32).reshape(6000, 1500) // 5
    with tiledb.open(str(tmp_path / "large"), "w") as array:
        array[:] = values
    upload(bucket, tmp_path / "large", "large")
    for options in ({}, {"cache_size": 24 << 20}):
        array = tilefs.open("s3://test/large", config=settings(bucket), **options)
        np.testing.assert_array_equal(array["a"][:], values)


def test_a_large_read_ends_when_a_file_is_gone(bucket, tmp_path):
    values = np.zeros((4096, 4096), np.uint32)
    write_dense(tmp_path / "large", values, tile=512)
    upload(bucket, tmp_path / "large", "large")
    array = tilefs.open("s3://test/large", config=settings(bucket))
    (file,) = (tmp_path / "large").glob("__fragments/*/a0.tdb")
    client = boto3.client("s3", endpoint_url=bucket, region_name="us-east-1")
    client.delete_object(Bucket="test", Key=f"large/{file.relative_to(tmp_path / 'large')}")
    with pytest.raises(tilefs.Error, match=f"{file.parent.name}/a0.tdb"):
        array["a"][:]


def test_many_rows_come_from_a_bucket(bucket, tmp_path):
    """Four parts of a million rows are read at the same time."""
    pyarrow = pytest.importorskip("pyarrow")
    count = 4_500_000
    dim = tiledb.Dim("id", domain=(0, 2**40), tile=2**20, dtype=np.int64, filters=tiledb.FilterList([tiledb.DoubleDeltaFilter(), tiledb.ZstdFilter()]))
    attr = tiledb.Attr("value", dtype=np.int32, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
    tiledb.Array.create(str(tmp_path / "rows"), tiledb.ArraySchema(tiledb.Domain(dim), [attr], sparse=True, capacity=100_000))
    ids, values = np.arange(count) * 3, (np.arange(count) // 100).astype(np.int32)
    with tiledb.open(str(tmp_path / "rows"), "w") as array:
        array[ids] = values
    upload(bucket, tmp_path / "rows", "rows")
    table = pyarrow.table(tilefs.open("s3://test/rows", config=settings(bucket)).read())
    np.testing.assert_array_equal(table["id"].to_numpy(), ids)
    np.testing.assert_array_equal(table["value"].to_numpy(), values)


def test_urls_chain_to_a_bucket(demo, bucket):
    pytest.importorskip("s3fs")
    with fsspec.open("tilefs://s3/test/demo/temp.f32", config=settings(bucket)) as file:
        assert len(file.read()) == 80_000
    with fsspec.open("tilefs://temp.f32::s3://test/demo", s3={"endpoint_url": bucket}) as file:
        assert file.read() == TilefsFileSystem(demo).cat_file("temp.f32")


def test_forked_processes_have_connections_of_their_own(demo, bucket, tmp_path):
    options = {"config": settings(bucket), "disk_cache": str(tmp_path / "cache")}
    array, fs = tilefs.open("s3://test/demo", **options), TilefsFileSystem("s3://test/demo", config=settings(bucket))
    whole = tilefs.open(demo)["temp"][:]
    assert np.array_equal(array["temp"][:10], whole[:10]) and "temp.f32" in fs.ls("", detail=False)

    def use():
        assert np.array_equal(array["temp"][:], whole) and fs.cat_file("temp.f32") == whole.tobytes()
        assert in_child(lambda: array["temp"][0, 0] == 20 or os._exit(5)) == 0

    assert [in_child(use) for _ in range(3)] == [0] * 3
    assert np.array_equal(array["temp"][:], whole)


def test_xarray_opens_arrays_and_groups_in_buckets(bucket, demo, tmp_path, monkeypatch):
    xarray = pytest.importorskip("xarray")
    from tilefs._xarray import TilefsBackendEntrypoint

    engine = TilefsBackendEntrypoint
    config = settings(bucket)
    expected = xarray.open_dataset(demo, engine=engine)
    xarray.testing.assert_identical(xarray.open_dataset("s3://test/demo", engine=engine, config=config).load(), expected.load())
    upload(bucket, group_of(demo, tmp_path / "group"), "group")
    tree = xarray.open_datatree("s3://test/group", engine=engine, config=config)
    np.testing.assert_array_equal(tree["dem/temp"].values, expected["temp"].values)
    # Without options, the address of the server comes from the environment.
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket)
    assert engine().guess_can_open("s3://test/demo") and not engine().guess_can_open("s3://test/none")


def group_of(array, folder):
    """Writes a group with a copy of an array, as `dem`."""
    tiledb.Group.create(str(folder))
    shutil.copytree(array, folder / "dem")
    with tiledb.Group(str(folder), "w") as group:
        group.add("dem", "dem", relative=True)
    return folder
