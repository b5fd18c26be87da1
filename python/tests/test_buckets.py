"""Tests arrays in a bucket of an S3 server that runs in this process."""

import os

import fsspec
import numpy as np
import pytest
import tilefs
from tilefs.fs import TilefsFileSystem

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(demo, monkeypatch):
    """Starts a server whose bucket `test` has the sample array as `demo`, and yields its endpoint."""
    server = moto_server.ThreadedMotoServer(port=0)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="test")
    for folder, _, names in os.walk(demo):
        for name in names:
            path = os.path.join(folder, name)
            client.upload_file(path, "test", f"demo/{os.path.relpath(path, demo)}")
    fsspec.register_implementation("tilefs", TilefsFileSystem, clobber=True)
    yield endpoint
    server.stop()


def test_a_bucket_is_read_like_a_folder(demo, bucket):
    config = {"vfs.s3.endpoint_override": bucket, "vfs.s3.use_virtual_addressing": "false"}
    array = tilefs.open("s3://test/demo", config=config)
    assert np.array_equal(array["temp"][5:50, ::3], tilefs.open(demo)["temp"][5:50, ::3])
    with pytest.raises(tilefs.NotFoundError):
        tilefs.open("s3://test/none", config=config)
    whole = TilefsFileSystem(demo).cat_file("temp.f32")
    for options in ({"uri": "s3://test/demo", "config": config}, {"fo": "test/demo", "target_protocol": "s3", "target_options": {"endpoint_url": bucket}}):
        assert fsspec.filesystem("tilefs", **options).cat_file("temp.f32") == whole


def test_urls_chain_to_a_bucket(demo, bucket):
    pytest.importorskip("s3fs")
    with fsspec.open("tilefs://temp.f32::s3://test/demo", s3={"endpoint_url": bucket}) as file:
        assert file.read() == TilefsFileSystem(demo).cat_file("temp.f32")
