#!/usr/bin/env python3
"""Reduces an array on a Dask cluster whose workers each mount it, and compares with NumPy.

    dask_cluster.py ARRAY [ATTRIBUTE] [--workers N] [--rows N] [--options "..."]

ARRAY is a dense array of numbers: a folder, or s3://bucket/path. Every worker mounts it on a separate folder, reads
blocks of rows as NumPy files, and returns the sum, the minimum and the maximum of each; only these pass between
processes. The cluster here consists of local processes. For one on several machines, replace LocalCluster with your own
client. A worker needs tilefs, /dev/fuse, and access to the array.

Needs dask, distributed and NumPy, and the program tilefs (or its path in the environment variable TILEFS).
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy
from distributed import Client, LocalCluster, WorkerPlugin, get_worker

TILEFS = os.environ.get("TILEFS", "tilefs")


class Mount(WorkerPlugin):
    """Mounts the array on a worker, as long as the worker runs."""

    name = "tilefs"

    def __init__(self, array, options):
        self.array = array
        self.options = options

    def setup(self, worker):
        self.folder = tempfile.mkdtemp(prefix="tilefs-")
        subprocess.run([TILEFS, "mount", *self.options, self.array, self.folder], check=True)

    def teardown(self, worker):
        subprocess.run([TILEFS, "umount", "--lazy", self.folder], check=True)
        os.rmdir(self.folder)


def reduce_block(attribute, first, end):
    """Returns the sum, the minimum and the maximum of the rows from position `first` to before `end`, and the address
    of the worker."""
    worker = get_worker()
    rows = os.path.join(worker.plugins[Mount.name].folder, "islice", f"{first}..{end}", "npy", f"{attribute}.npy")
    values = numpy.load(rows, mmap_mode="r")
    return *reduce(values), worker.address


def reduce(values):
    """Returns the sum, the minimum and the maximum, without missing values."""
    return numpy.nansum(values, dtype="f8"), numpy.fmin.reduce(values, axis=None), numpy.fmax.reduce(values, axis=None)


def is_mounted(dask_worker):
    return os.path.ismount(dask_worker.plugins[Mount.name].folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("array")
    parser.add_argument("attribute", nargs="?", help="the first one if not given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, help="rows of a block; those of a tile if not given")
    parser.add_argument("--options", default="", help="more options for tilefs mount")
    arguments = parser.parse_args()
    options = shlex.split(arguments.options)

    schema = json.loads(subprocess.check_output([TILEFS, "info", "--json", *options, arguments.array]))
    attribute = arguments.attribute or schema["attributes"][0]["name"]
    axis = schema["dimensions"][0]
    length, step = schema["shape"][0], arguments.rows or int(axis["tile_extent"])
    blocks = [(first, min(first + step, length)) for first in range(0, length, step)]

    with LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            client.register_plugin(Mount(arguments.array, options))
            mounts = sum(client.run(is_mounted).values())
            firsts, ends = zip(*blocks)
            parts = client.gather(client.map(reduce_block, [attribute] * len(blocks), firsts, ends, pure=False))
            client.unregister_worker_plugin(Mount.name)
    total = sum(part[0] for part in parts)
    least, greatest = (ends.reduce([part[i] for part in parts]) for i, ends in ((1, numpy.fmin), (2, numpy.fmax)))
    readers = len({part[3] for part in parts})
    print(f"{attribute}: sum {total:.6g}, from {least} to {greatest}")
    print(f"{len(blocks)} blocks, read by {readers} of {mounts} workers that had it mounted")

    whole = subprocess.check_output([TILEFS, "cat", *options, arguments.array, f"npy/{attribute}.npy"])
    with tempfile.TemporaryFile() as file:
        file.write(whole)
        file.seek(0)
        expected = reduce(numpy.load(file))
    if not numpy.allclose((total, least, greatest), expected, equal_nan=True):
        sys.exit("NumPy says otherwise: sum {:.6g}, from {} to {}".format(*expected))
    print("NumPy says the same")


if __name__ == "__main__":
    main()
