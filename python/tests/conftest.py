"""Fixtures: arrays that libtiledb writes."""

import os
import pathlib

import numpy as np
import pytest

tiledb = pytest.importorskip("tiledb")

DEMO = pathlib.Path(__file__).parents[2] / "tests/fixtures/demo"


@pytest.fixture(scope="session")
def demo():
    """Returns the array of the README: temp[y, x] = 20 - y/10 + x/100, 100 rows and 200 columns."""
    return DEMO


def write_dense(path, values, *, low=0, tile=None, key=None, **attribute):
    """Writes a dense array with these values in its attribute `a`."""
    tile = tile or 3
    dims = [
        tiledb.Dim(f"d{axis}", domain=(low, low + size - 1), tile=min(tile, size), dtype=np.int64)
        for axis, size in enumerate(values.shape)
    ]
    attr = tiledb.Attr("a", dtype=attribute.pop("dtype", values.dtype), **attribute)
    context = tiledb.Ctx({"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": key}) if key else tiledb.Ctx()
    tiledb.Array.create(str(path), tiledb.ArraySchema(tiledb.Domain(*dims), [attr]), ctx=context)
    with tiledb.open(str(path), "w", ctx=context) as array:
        array[:] = values
    return path


@pytest.fixture(scope="session")
def cells(tmp_path_factory):
    """Returns a sparse array of a thousand rows, and its values by column."""
    path = tmp_path_factory.mktemp("sparse") / "cells.tdb"
    ids = np.arange(0, 3000, 3, dtype=np.int64)
    kinds = np.array(["T cell", "B cell", "größer"], dtype=object)[np.arange(1000) % 3]
    scores = np.sqrt(np.arange(1000)).astype(np.float32)
    codes = (np.arange(1000) % 2).astype(np.int8)
    labels = tiledb.Enumeration("states", False, np.array(["on", "off"], dtype="U3"))
    dim = tiledb.Dim("id", domain=(0, 9999), tile=100, dtype=np.int64)
    attrs = [
        tiledb.Attr("kind", dtype=str, var=True),
        tiledb.Attr("score", dtype=np.float32),
        tiledb.Attr("state", dtype=np.int8, enum_label="states"),
    ]
    schema = tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=64, enums=[labels])
    tiledb.Array.create(str(path), schema)
    with tiledb.open(str(path), "w") as array:
        array[ids] = {"kind": kinds, "score": scores, "state": codes}
    columns = {"id": ids, "kind": kinds, "score": scores, "state": np.array(["on", "off"], dtype=object)[codes]}
    return path, columns


@pytest.fixture
def mountable():
    """Skips the test if nothing can be mounted."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
