"""Checks an installed wheel: `installed.py ARRAY VALUES`. ARRAY is the sample array, VALUES a file with the values of
`temp` that libtiledb read.

It needs only the packages that the wheel installs, and fsspec."""

import multiprocessing
import os
import subprocess
import sys

import numpy

import tilefs


def first_value(array):
    return float(tilefs.open(array)["temp"][0, 0])


def main(array, values):
    expected = numpy.fromfile(values, "<f4").reshape(100, 200)
    opened = tilefs.open(array)
    assert numpy.array_equal(opened["temp"][:], expected)
    assert numpy.array_equal(opened["temp"][10:20, ::-2], expected[10:20, ::-2])
    try:
        tilefs.open(array + "/none")
        raise AssertionError("a path that does not exist was opened")
    except FileNotFoundError as error:
        assert "none" in str(error)

    import fsspec

    with fsspec.open("tilefs://temp.f32", uri=array) as file:
        assert file.read() == expected.tobytes()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(first_value, (array,)) == expected[0, 0]

    command = os.path.join(os.path.dirname(sys.executable), "tilefs")
    assert subprocess.check_output([command, "cat", array, "temp.f32"]) == expected.tobytes()
    assert tilefs.__version__ in subprocess.check_output([command, "--version"], text=True)
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        with tilefs.mount(array) as path:
            assert (path / "temp.f32").read_bytes() == expected.tobytes()
        assert not path.exists()
    else:
        print("SKIPPED: mounting, /dev/fuse cannot be opened", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
