#!/usr/bin/env python3
"""Reduces an array on a Dask cluster whose workers read it with the package tilefs, without a mount.

    dask_in_process.py ARRAY [ATTRIBUTE] [--workers N | --scheduler ADDRESS] [--config KEY=VALUE ...] [--repeat N]

ARRAY is a dense array of numbers: a folder that all workers see, or s3://bucket/path. Workers open it by its address, and
read tiles; only sums, minima and maxima pass between processes. Without --scheduler, the cluster consists of local
processes. A worker needs the packages tilefs, dask, distributed and NumPy, and access to the array. --config passes
settings of TileDB, such as vfs.s3.endpoint_override=http://host:9000.
"""

import argparse
import time

import dask.array
from distributed import Client, LocalCluster

import tilefs


def reduced(values):
    """Returns the sum, the minimum and the maximum, without missing values, to be computed together."""
    return dask.array.nansum(values, dtype="f8"), dask.array.nanmin(values), dask.array.nanmax(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("array")
    parser.add_argument("attribute", nargs="?", help="the first one if not given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler", help="the address of a running cluster")
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    config = dict(one.split("=", 1) for one in arguments.config)

    array = tilefs.open(arguments.array, config=config or None)
    attribute = array[arguments.attribute] if arguments.attribute else array.attr(0)
    values = attribute.to_dask_array("tiles" if attribute.size < 10**7 else "auto")
    with Client(arguments.scheduler or LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None)) as client:
        for _ in range(arguments.repeat):
            start = time.perf_counter()
            total, least, greatest = (one.result() for one in client.compute(reduced(values)))
            seconds = time.perf_counter() - start
            print(f"{attribute.name}: sum {total:.6g}, from {least} to {greatest}")
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
            print(f"{values.npartitions} blocks by {workers} workers, {values.nbytes / seconds / 1e6:.0f} MB/s", flush=True)


if __name__ == "__main__":
    main()
