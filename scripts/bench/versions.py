"""Compares this binary with an older one (TILEFS_OLD): the same reads through fresh mounts of each, alternately."""

import os
import random
import statistics
import sys

import numpy as np
import tiledb

from .common import TILEFS, alternate, cat, made, mounted, ratio, seconds, table, timed, warm
from .dense import SIDE, TILE, VARIANTS, raster
from .sparse import matrix

OLD = os.environ.get("TILEFS_OLD")


def bytes_raster():
    """256 MiB of uint8 in tiles of 512 x 512, compressed by zstd."""

    def make(path):
        side = 2 * SIDE
        dims = [tiledb.Dim(name, domain=(0, side - 1), tile=TILE, dtype=np.int64) for name in "yx"]
        attr = tiledb.Attr("temp", dtype=np.uint8, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
        y, x = np.ogrid[0:SIDE, 0:SIDE]
        noise = np.random.default_rng(3).normal(0, 2, (SIDE, SIDE))
        quarter = np.clip(120 + 80 * np.sin(y / 300) * np.cos(x / 200) + noise, 0, 255).astype(np.uint8)
        with tiledb.open(path, "w") as array:
            array[:] = np.tile(quarter, (2, 2))

    return made("raster-u8-zstd", make)


def scattered(path):
    """Returns the seconds for 300 random reads of 4 KiB, one after the other."""
    size = os.path.getsize(path)
    places = random.Random(5)
    offsets = [places.randrange(0, size - 4096) & ~4095 for _ in range(300)]

    def read():
        with open(path, "rb", buffering=0) as file:
            for offset in offsets:
                os.pread(file.fileno(), 4096, offset)

    return timed(read)


def run():
    if not OLD:
        sys.exit("bench: TILEFS_OLD names no older binary to compare with")
    rows = []

    def compare(name, array, read):
        warm(array)
        peak, cpu = {OLD: [], TILEFS: []}, {OLD: [], TILEFS: []}

        def side(binary):
            def measure():
                with mounted(array, binary=binary) as mount:
                    time = read(mount.path)
                    peak[binary].append(mount.memory())
                    cpu[binary].append(mount.cpu_seconds())
                return time

            return measure

        old, new = alternate(side(OLD), side(TILEFS))
        cpus = f"{statistics.median(cpu[OLD]):.2f} / {statistics.median(cpu[TILEFS]):.2f} s"
        peaks = f"{max(peak[OLD]):.0f} / {max(peak[TILEFS]):.0f} MiB"
        rows.append([name, seconds(old), seconds(new), ratio(new, old), cpus, peaks])

    for variant in VARIANTS:
        compare(f"cat, float32 {variant}", raster(variant), lambda mount: cat(f"{mount}/temp.f32"))
    compare("cat, uint8 zstd", bytes_raster(), lambda mount: cat(f"{mount}/temp.u8"))
    shuffled = raster("byteshuffle+zstd")
    compare("one column", shuffled, lambda mount: cat(f"{mount}/slice/..,100/temp.f32"))
    compare("300 x 4 KiB", shuffled, lambda mount: scattered(f"{mount}/temp.f32"))
    cells = matrix(2, 1)
    compare("sparse, all columns", cells, lambda mount: cat(*(f"{mount}/{name}" for name in ("dims/y.i64", "dims/x.i64", "data.f32"))))
    compare("sparse, 300 x 4 KiB", cells, lambda mount: scattered(f"{mount}/data.f32"))
    header = ["read", "old: median (best)", "new", "faster by", "processor time old / new", "peak memory"]
    table("the older binary beside this one; stored files in the page cache for both", header, rows)
