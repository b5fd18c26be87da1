"""Small random reads of a file whose tiles are all in the cache, with direct I/O, beside a mount that only copies from
memory. Needs fio."""

import json
import shutil
import statistics
import subprocess
import sys

from .common import TOY, alternate, mounted, served, table, warm
from .dense import SIDE, raster

# The bytes of a read, and the number of readers.
READS = [("4k", 1), ("4k", 4), ("128k", 1)]

SECONDS = 2


def run():
    if not shutil.which("fio"):
        sys.exit("bench: the section `small` needs fio")
    path = raster("byteshuffle+zstd")
    warm(path)
    rows = []
    with mounted(path, "--cache-size", "1G") as ours, served([TOY]) as toy:
        files = [(ours, f"{ours.path}/temp.f32"), (toy, f"{toy.path}/memory.bin")]
        for size, readers in READS:
            rates, costs = zip(*(zip(*one) for one in alternate(*(reading(*file, size, readers) for file in files))))
            (our_rate, toy_rate), (our_cost, toy_cost) = (tuple(map(statistics.median, each)) for each in (rates, costs))
            rows.append([f"{size}, {readers} at a time", f"{our_rate:,.0f}", f"{toy_rate:,.0f}", f"{our_rate / toy_rate:.2f}", f"{our_cost:.1f}", f"{toy_cost:.1f}"])
    header = ["random reads", "tilefs: a second", "memory: a second", "ratio", "tilefs: µs of processor time", "memory: µs"]
    table("small: reads of a cached raster in tiles of 512 x 512 float32", header, rows)


def reading(mount, file, size, readers):
    """Returns a side that reads for some seconds, and returns the reads a second and the mount's µs for each."""
    with open(file, "rb") as whole:
        for _ in range(SIDE * SIDE * 4 >> 20):
            whole.read(1 << 20)

    def one():
        before = mount.cpu_seconds()
        command = ["fio", "--name=small", f"--filename={file}", "--rw=randread", f"--bs={size}", "--direct=1", f"--size={SIDE * SIDE * 4}", "--readonly"]
        command += [f"--numjobs={readers}", "--thread", "--group_reporting", "--ioengine=psync", "--norandommap", "--randrepeat=0"]
        command += ["--time_based", f"--runtime={SECONDS}", "--output-format=json"]
        read = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["jobs"][0]["read"]
        return read["iops"], (mount.cpu_seconds() - before) / read["total_ios"] * 1e6

    return one
