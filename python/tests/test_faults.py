"""Tests that arrays on a disk which fails for a while are read again by the same objects."""

import itertools
import os
import time

import numpy as np
import pytest
import tilefs
from tilefs.fs import TilefsFileSystem

# The mount point of a file system that fails as the extended attribute of its folder says: tests/program/faults.
FAULTY = os.environ.get("TILEFS_TEST_FAULTY")

OPERATIONS = ["Lookup", "Attributes", "Open", "OpenFolder", "ListFolder", "Read"]
ERRORS = ["ENOENT", "EIO", "ESTALE", "EINTR"]
FAULTS = list(itertools.product(OPERATIONS, ERRORS)) + [("Read", how) for how in ("HalfThere", "HalfTheSize", "HalfRead")]
FOREVER = 10**9


@pytest.fixture
def fail():
    if FAULTY is None:
        pytest.skip("no disk that fails")

    def begin(operation, how, spared, count):
        os.setxattr(FAULTY, "user.fault", f"{operation} {how} {spared} {count}".encode())

    yield begin
    os.removexattr(FAULTY, "user.fault")


def in_the_end(read):
    """Returns the first result that is no error: damage is remembered for a moment."""
    begin = time.monotonic()
    while True:
        try:
            return read()
        except (OSError, tilefs.Error):
            assert time.monotonic() - begin < 30
            time.sleep(0.05)


@pytest.mark.parametrize("spared, count", [(0, FOREVER), (2, 1), (5, FOREVER)])
@pytest.mark.parametrize("operation, how", FAULTS)
def test_arrays_are_right_or_an_error_and_right_afterwards(fail, demo, operation, how, spared, count):
    right = tilefs.open(demo)["temp"][:]
    assert right.shape == (100, 200)
    before = tilefs.open(FAULTY)
    opened = [before]
    fail(operation, how, spared, count)
    for read in (lambda: before, lambda: tilefs.open(FAULTY)):
        try:
            array = read()
            opened.append(array)
            assert np.array_equal(array["temp"][:], right)
        except (OSError, tilefs.Error):
            pass
    os.removexattr(FAULTY, "user.fault")
    for array in [*opened, tilefs.open(FAULTY)]:
        assert np.array_equal(in_the_end(lambda array=array: array["temp"][:]), right)


@pytest.mark.parametrize("spared, count", [(0, FOREVER), (2, 1), (5, FOREVER)])
@pytest.mark.parametrize("operation, how", FAULTS)
def test_files_are_right_or_an_error_and_right_afterwards(fail, demo, operation, how, spared, count):
    paths = ["temp.f32", "meta.json", "dims/x.i64", "slice/3..9,1..70/temp.f32"]
    right = [TilefsFileSystem(demo).cat_file(path) for path in paths]
    fs = TilefsFileSystem(FAULTY, skip_instance_cache=True)
    assert "temp.f32" in fs.ls("", detail=False)
    fail(operation, how, spared, count)
    for path, expected in zip(paths, right, strict=True):
        try:
            assert fs.cat_file(path) == expected
        except (OSError, tilefs.Error) as error:
            assert not isinstance(error, FileNotFoundError)
    os.removexattr(FAULTY, "user.fault")
    for path, expected in zip(paths, right, strict=True):
        assert in_the_end(lambda path=path: fs.cat_file(path)) == expected
