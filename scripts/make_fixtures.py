#!/usr/bin/env python3
"""Makes tests/fixtures: small TileDB arrays written by libtiledb, and what libtiledb reads from them.

usage: scripts/make_fixtures.py [--venv FOLDER] [--out FOLDER]

Needs the `tiledb` and `numpy` packages; with --venv, makes a virtual environment there that has them and uses it. A new run gives the
same bytes, up to the random parts that libtiledb puts into encrypted files and enumeration names.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

TILEDB = "tiledb==0.36.1"  # libtiledb 2.30.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--venv", help="make a virtual environment with tiledb here, and run in it")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../tests/fixtures"))
    options = parser.parse_args()
    if options.venv:
        rerun_in(options.venv, ["--out", options.out])
    try:
        import tiledb  # noqa: F401
    except ImportError:
        sys.exit("make_fixtures.py: the tiledb package is missing; run it with --venv FOLDER")
    from fixtures import cases_dense, cases_groups, cases_sparse
    from fixtures.capi import version
    from fixtures.expect import Recorder

    root = os.path.abspath(options.out)
    for made in ("arrays", "demo", "expected"):
        shutil.rmtree(os.path.join(root, made), ignore_errors=True)
    recorder = Recorder(root, version())
    for module in (cases_groups, cases_dense, cases_sparse):
        module.make(root, recorder)
    remove_empty_folders(root)
    with open(os.path.join(root, "manifest.json"), "w") as file:
        file.write('{"written_by": "libtiledb %s",\n"objects": [\n' % version())
        lines = (json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in sorted(recorder.objects, key=lambda e: e["path"]))
        file.write(",\n".join(lines) + "\n]}\n")
    report(root, recorder)


def rerun_in(venv, arguments):
    python = os.path.join(venv, "bin/python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", TILEDB, "numpy"], check=True)
    os.execv(python, [python, os.path.abspath(__file__), *arguments])


def remove_empty_folders(root):
    """Version control does not keep them, and TileDB reads the arrays without."""
    for folder, _, _ in os.walk(root, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)


def report(root, recorder):
    files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    reads = sum(len(entry["reads"]) for entry in recorder.objects)
    print(f"{len(recorder.objects)} objects, {reads} reads, {len(files)} files, {sum(map(os.path.getsize, files)) / 1e6:.2f} MB in {root}")


if __name__ == "__main__":
    main()
