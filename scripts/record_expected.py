#!/usr/bin/env python3
"""Records what libtiledb reads from all arrays and groups under a folder, as a manifest for the tests.

usage: scripts/record_expected.py FOLDER OUT

Writes OUT/manifest.json and files with the cells' bytes next to it; changes nothing in FOLDER. Needs the `tiledb` and
`numpy` packages. If libtiledb cannot open or read an object, its error is recorded.
"""

import json
import multiprocessing
import os
import sys

from fixtures.capi import TileDBError, version
from fixtures.expect import Recorder

KINDS = {"__schema": "array", "__array_schema.tdb": "array", "__group": "group", "__tiledb_group.tdb": "group"}


def main(folder, out):
    folder, out = os.path.abspath(folder), os.path.abspath(out)
    objects = []
    for path, kind in sorted(found(folder)):
        # One process per object, because libtiledb can crash on damaged arrays.
        with multiprocessing.Pool(1) as pool:
            result = pool.apply_async(record, (folder, out, path, kind))
            try:
                objects.append(result.get(timeout=60))
            except multiprocessing.TimeoutError:
                objects.append(refused(path, kind, "libtiledb crashed or took too long"))
    with open(os.path.join(out, "manifest.json"), "w") as file:
        json.dump({"written_by": f"libtiledb {version()}", "arrays_in": folder, "objects": objects}, file, ensure_ascii=False)
    print(f"{len(objects)} objects under {folder}")


def found(folder):
    """Yields (path, kind) of all objects, parents before children. Dimension labels belong to their arrays and are left
    out."""
    for place, folders, files in os.walk(folder):
        kind = next((KINDS[name] for name in folders + files if name in KINDS), None)
        if kind:
            yield os.path.relpath(place, folder), kind
        folders[:] = [name for name in folders if not name.startswith("__")]


def record(folder, out, path, kind):
    recorder = Recorder(folder, version(), out)
    try:
        getattr(recorder, kind)(path)
    except TileDBError as error:
        return refused(path, kind, str(error))
    return recorder.objects[0]


def refused(path, kind, error):
    return {"path": path, "kind": kind, "tags": [], "newest_error": error, "reads": []}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
