"""A twentieth of a large raster by GDAL, through a fresh mount: with nothing saved, and with saved overviews. Compared with decoding
alone, and with TileDB-Py."""

import os
import shutil
import subprocess
import tempfile

import numpy as np
import tiledb

from .common import TILEFS, alternate, made, mounted, ratio, seconds, table, timed, warm

# 10^9 cells.
SIDE = 31_623
TILE = 1024


def raster(path):
    dims = [tiledb.Dim(name, domain=(0, SIDE - 1), tile=TILE, dtype=np.uint64) for name in "yx"]
    attr = tiledb.Attr("v", dtype=np.uint8, filters=tiledb.FilterList([tiledb.ZstdFilter(level=3)]))
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
    random = np.random.default_rng(1)
    columns = np.arange(SIDE)[None]
    with tiledb.open(path, "w") as array:
        for first in range(0, SIDE, TILE):
            lines = np.arange(first, min(first + TILE, SIDE))[:, None]
            smooth = 128 + 60 * np.sin(lines / 900) + 60 * np.cos(columns / 700)
            array[first : first + len(lines), :] = smooth.astype(np.uint8) + random.integers(0, 4, smooth.shape, np.uint8)


def run():
    path = made("raster-1e9", raster)
    warm(path)
    folder = tempfile.mkdtemp(prefix="tilefs-bench-")
    saved, small, processor = f"{folder}/saved", f"{folder}/small.tif", {}

    def preview(index, name):
        with mounted(path, "--index-dir", index) as mount:
            before = mount.cpu_seconds()
            command = ["gdal_translate", "-q", "-outsize", "5%", "5%", f"{mount.path}/tiff/v.tif", small]
            time = timed(lambda: subprocess.run(command, check=True))
            processor.setdefault(name, []).append(mount.cpu_seconds() - before)
            return time

    def first():
        shutil.rmtree(saved, ignore_errors=True)
        return preview(saved, "first")

    def decoding():
        before = os.times()
        time = timed(lambda: subprocess.run([TILEFS, "verify", "--index-dir", "none", path], stdout=subprocess.DEVNULL, check=True))
        after = os.times()
        processor.setdefault("decoding", []).append(after[2] + after[3] - before[2] - before[3])
        return time

    def python():
        with tiledb.open(path) as array:
            return timed(lambda: array[:]["v"][::20, ::20].copy())

    # Each second preview follows a first one.
    a, b, alone, other = alternate(first, lambda: preview(saved, "second"), decoding, python)
    shutil.rmtree(folder)
    rows = [
        ["the first time", seconds(a), "decoding alone", seconds(alone), ratio(a, alone)],
        ["the first time, processor", seconds(processor["first"]), "decoding alone", seconds(processor["decoding"]), ratio(processor["first"], processor["decoding"])],
        ["the first time", seconds(a), "TileDB-Py's array[:][::20, ::20]", seconds(other), ratio(a, other)],
        ["the second time, in another mount", seconds(b), "the first time", seconds(a), ratio(b, a)],
        ["the second time, processor", seconds(processor["second"]), "", "", ""],
    ]
    header = ["gdal_translate -outsize 5%", "tilefs: median (best)", "other side", "other: median (best)", "faster by"]
    table("previews: a raster of 10^9 cells, zstd; stored files in the page cache", header, rows)
