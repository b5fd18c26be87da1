"""Slices as paths, and the same raster in other formats."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from .common import RUNS, TILEFS, alternate, cat, mounted, ratio, seconds, table, timed, warm
from .dense import SIDE, raster

TEXT_PART = 256 << 20


def run():
    path = raster("byteshuffle+zstd")
    warm(path)
    formats(path)
    one_value(path)
    many_paths(path)


def formats(path):
    def through(file):
        def side():
            with mounted(path) as mount:
                return cat(f"{mount.path}/{file}")

        return side

    def text():
        with mounted(path) as mount:
            command = ["head", "-c", str(TEXT_PART), f"{mount.path}/text/temp.txt"]
            return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))

    raw, npy, netcdf, part = alternate(through("temp.f32"), through("npy/temp.npy"), through("netcdf/array.nc"), text)
    slower = lambda times: f"{(statistics.median(times) / statistics.median(raw) - 1) * 100:+.1f} %"
    speed = TEXT_PART / 1e6 / statistics.median(part)
    rows = [["temp.f32", seconds(raw), ""], ["npy/temp.npy", seconds(npy), slower(npy)], ["netcdf/array.nc", seconds(netcdf), slower(netcdf)],
            ["text/temp.txt, 256 MiB of it", seconds(part), f"{speed:.0f} MB/s of text"]]
    table("paths: cat of a 256 MiB raster through a fresh mount", ["file", "median (best)", "beside the raw file"], rows)


def one_value(path):
    cell = SIDE // 2 + 45, SIDE // 2 + 120
    file = f"slice/{cell[0]},{cell[1]}/temp.f32"
    code = f"import tiledb; print(tiledb.open({path!r})[{cell[0]}, {cell[1]}])"

    def od_of_fresh_mount():
        """Mounts afresh, so that nothing has been read yet."""
        with mounted(path) as mount:
            return timed(lambda: subprocess.run(["od", "-An", "-tf4", f"{mount.path}/{file}"], stdout=subprocess.DEVNULL, check=True))

    def mount_and_od():
        with tempfile.TemporaryDirectory(prefix="tilefs-bench-") as folder:
            start = time.perf_counter()
            subprocess.run([TILEFS, "mount", path, folder], check=True)
            subprocess.run(["od", "-An", "-tf4", f"{folder}/{file}"], stdout=subprocess.DEVNULL, check=True)
            elapsed = time.perf_counter() - start
            subprocess.run([TILEFS, "umount", folder], check=True)
        return elapsed

    def python():
        return timed(lambda: subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True))

    od, both, theirs = alternate(od_of_fresh_mount, mount_and_od, python)
    rows = [["od on a fresh mount", seconds(od), seconds(theirs), ratio(od, theirs)], ["mount, then od", seconds(both), seconds(theirs), ratio(both, theirs)]]
    table("paths: one value", ["tilefs", "median (best)", "python -c with tiledb", "faster by"], rows)


def many_paths(path):
    rates, memory = [], []
    for _ in range(RUNS):
        with mounted(path) as mount:
            open_all(mount.path, 0, 1000)
            before = mount.memory("VmRSS")
            start = time.perf_counter()
            open_all(mount.path, 1000, 10_000)
            rates.append(10_000 / (time.perf_counter() - start))
            memory.append((before, mount.memory("VmRSS")))
    before, after = (statistics.median(m[i] for m in memory) for i in (0, 1))
    rows = [[f"{statistics.median(rates):.0f} a second", f"{before:.1f} MiB", f"{after:.1f} MiB"]]
    table("paths: 10,000 different slices of one tile, each opened and read", ["opened", "memory after the first 1,000", "at the end"], rows)


def open_all(root, first, count):
    for i in range(first, first + count):
        y, x = divmod(i, 400)
        file = os.open(f"{root}/slice/{y}..{y + 1},{x}/temp.f32", os.O_RDONLY)
        assert len(os.read(file, 8)) == 8
        os.close(file)
