"""Zarr, BigTIFF and Parquet through a fresh mount, compared with the raw file of the same cells; xarray and dask compared with libtiledb."""

import os
import shutil
import statistics
import subprocess
import sys

import tiledb

from .common import alternate, cat, made, mounted, ratio, seconds, table, timed, warm
from .dense import SIDE, raster
from .sparse import matrix

# Runs in a process that has already imported everything, so that only opening and reading count.
MEAN = """
import sys, time
import xarray
xarray.open_zarr
sys.stdin.readline()
start = time.perf_counter()
with xarray.open_zarr(sys.argv[1], consolidated=True) as data:
    data["temp"].mean().compute(scheduler="threads")
print(time.perf_counter() - start)
"""


def run():
    path = raster("byteshuffle+zstd")
    warm(path)
    rows = []

    def through(*files):
        def one():
            with mounted(path) as mount:
                return cat(*(f"{mount.path}/{file}" for file in files))

        return one

    tiles = SIDE // 512
    chunks = [f"zarr/temp/c/{y}/{x}" for y in range(tiles) for x in range(tiles)]

    def side_by_side():
        with mounted(path) as mount:
            names = "\n".join(f"{mount.path}/{chunk}" for chunk in chunks)
            command = ["xargs", "-P", "4", "-n", "16", "cat"]
            return timed(lambda: subprocess.run(command, input=names, text=True, stdout=subprocess.DEVNULL, check=True))

    raw, zarr, parallel, tiff = alternate(through("temp.f32"), through(*chunks), side_by_side, through("tiff/temp.tif"))
    rows.append(["raster: cat of temp.f32", seconds(raw), "", "", ""])
    rows.append([f"raster: cat of {len(chunks)} Zarr chunks", seconds(zarr), "temp.f32", seconds(raw), ratio(zarr, raw)])
    rows.append(["raster: the same by 4 at a time", seconds(parallel), "temp.f32", seconds(raw), ratio(parallel, raw)])
    rows.append(["raster: cat of tiff/temp.tif", seconds(tiff), "temp.f32", seconds(raw), ratio(tiff, raw)])

    def mean_of(zarr):
        process = subprocess.Popen([sys.executable, "-c", MEAN, zarr], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate("\n")
        return float(out)

    def mean():
        with mounted(path) as mount:
            return mean_of(f"{mount.path}/zarr")

    def copy(to):
        with mounted(path) as mount:
            shutil.copytree(f"{mount.path}/zarr", to)

    def theirs():
        with tiledb.open(path) as array:
            return timed(lambda: array[:]["temp"].mean())

    try:
        import dask, xarray, zarr  # noqa: F401
    except ImportError as error:
        print(f"SKIPPED: open_zarr().mean(): {error}", file=sys.stderr)
    else:
        copied = made("raster-zarr", copy)
        warm(copied)
        a, b, c = alternate(mean, theirs, lambda: mean_of(copied))
        rows.append(["raster: xarray.open_zarr().mean(), dask's threads", seconds(a), "libtiledb's read and mean", seconds(b), ratio(a, b)])
        rows.append(["the same", seconds(a), "of a Zarr copy on the local disk", seconds(c), ratio(a, c)])

    cells = matrix(20, 1)
    warm(cells)
    with mounted(cells) as mount:
        size = os.path.getsize(f"{mount.path}/parquet/cells.parquet")

    def whole():
        with mounted(cells) as mount:
            return cat(f"{mount.path}/parquet/cells.parquet")

    [times] = alternate(whole)
    rows.append(["20 million cells: cat of cells.parquet", seconds(times), "", "", f"{size / 1e6 / statistics.median(times):.0f} MB/s"])
    header = ["what", "tilefs: median (best)", "other side", "other: median (best)", "faster by"]
    table("formats: a fresh mount each time; stored files in the page cache", header, rows)
