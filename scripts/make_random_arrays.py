#!/usr/bin/env python3
"""Makes random arrays with random histories, and records what libtiledb reads from them, in the form of the fixtures.

usage: scripts/make_random_arrays.py FOLDER SEED COUNT

FOLDER gets arrays/, expected/ and manifest.json. The same seed gives the same arrays, whatever their number, up to random
parts of names and encrypted files. An array that libtiledb cannot create is left out, as is one on which libtiledb
crashes; their numbers are printed. Needs the `tiledb` and `numpy` packages.
"""

import concurrent.futures
import os
import shutil
import sys

from fixtures import cases_random
from fixtures.capi import TileDBError, version
from fixtures.expect import Recorder
from make_fixtures import remove_empty_folders, write_manifest


def main(folder, seed, count):
    root = os.path.abspath(folder)
    os.makedirs(root, exist_ok=True)
    recorder, left_out = Recorder(root, version()), []
    for number in range(count):
        made = made_apart(root, seed, number)
        recorder.objects += made
        left_out += [] if made else [number]
    remove_empty_folders(root)
    write_manifest(root, recorder)
    print(f"seed {seed}: {len(recorder.objects)} arrays; left out: {left_out}")


def made_apart(root, seed, number):
    """Returns the entries of an array that a process of its own makes, since libtiledb can crash."""
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(made, root, seed, number).result(timeout=120)
        except (TileDBError, concurrent.futures.process.BrokenProcessPool, concurrent.futures.TimeoutError) as error:
            print(f"random_{number:04}: {type(error).__name__} {error}", file=sys.stderr)
            shutil.rmtree(f"{root}/arrays/random_{number:04}", ignore_errors=True)
            return []


def made(root, seed, number):
    recorder = Recorder(root, version())
    cases_random.make(root, recorder, seed, number)
    return recorder.objects


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
