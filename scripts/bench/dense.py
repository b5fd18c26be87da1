"""A 256 MiB float32 raster in five variants: `cat` through a fresh mount compared with libtiledb reading into memory.

Also measures the two limits: a mount that only copies from memory, and `tilefs verify`, which only decodes."""

import hashlib
import os
import statistics
import subprocess

import numpy as np
import tiledb

from .common import TILEFS, TOY, alternate, cat, first_part, made, mounted, ratio, seconds, served, table, timed, warm

SIDE, TILE = 8192, 512
VARIANTS = {
    "none": [],
    "zstd": [tiledb.ZstdFilter()],
    "byteshuffle+zstd": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter()],
    "bitshuffle+lz4": [tiledb.BitShuffleFilter(), tiledb.LZ4Filter()],
    "gzip": [tiledb.GzipFilter()],
}


def values():
    """Smooth values with noise, rounded to 0.01."""
    y, x = np.ogrid[0:SIDE, 0:SIDE]
    smooth = 15 + 10 * np.sin(y / 300) * np.cos(x / 200)
    noise = np.random.default_rng(7).normal(0, 0.5, (SIDE, SIDE))
    return (smooth + noise).round(2).astype(np.float32)


def raster(variant):
    """Returns the path of the raster in one of the variants."""

    def make(path):
        dims = [tiledb.Dim(name, domain=(0, SIDE - 1), tile=TILE, dtype=np.int64) for name in "yx"]
        attr = tiledb.Attr("temp", dtype=np.float32, filters=tiledb.FilterList(VARIANTS[variant]))
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
        with tiledb.open(path, "w") as array:
            array[:] = values()

    return made(f"raster-{variant}", make)


def run():
    rows = []
    for variant in VARIANTS:
        path = raster(variant)
        warm(path)
        peak = []

        def ours():
            with mounted(path) as mount:
                time = cat(f"{mount.path}/temp.f32")
                peak.append(mount.memory())
            return time

        def theirs():
            with tiledb.open(path) as array:
                return timed(lambda: array[:])

        def delivery():
            with served([TOY]) as mount:
                return first_part(f"{mount.path}/memory.bin", SIDE * SIDE * 4)

        def decoding():
            return timed(lambda: subprocess.run([TILEFS, "verify", path], stdout=subprocess.DEVNULL, check=True))

        check(path)
        a, b, delivered, decoded = alternate(ours, theirs, delivery, decoding)
        speed = SIDE * SIDE * 4 / 2**30 / statistics.median(a)
        stored = sum(os.path.getsize(os.path.join(f, n)) for f, _, names in os.walk(path) for n in names) >> 20
        rows.append([variant, f"{stored} MiB", seconds(a), seconds(b), ratio(a, b), f"{speed:.2f} GiB/s", seconds(delivered), seconds(decoded), f"{max(peak):.0f} MiB"])
    header = ["filters", "stored", "cat, fresh mount: median (best)", "libtiledb into memory", "faster by", "cat", "delivery alone", "decoding alone", "peak memory"]
    table("dense: 8192 x 8192 float32 in tiles of 512 x 512, 256 MiB; stored files in the page cache for both", header, rows)


def check(path):
    """Checks that the mount returns the same bytes as libtiledb."""
    with mounted(path) as mount, open(f"{mount.path}/temp.f32", "rb") as file, tiledb.open(path) as array:
        ours = hashlib.file_digest(file, "sha256").hexdigest()
        assert ours == hashlib.sha256(array[:]["temp"].tobytes()).hexdigest(), f"{path}: the mount gives other bytes than libtiledb"
