#!/usr/bin/env python3
"""Makes tests/fixtures/writers.tar.zst: sparse arrays that older libraries wrote in special ways, and the values written.

usage: scripts/make_writer_fixtures.py [--venvs FOLDER] [--venv FOLDER] [--out FOLDER] [--only KIND]

Needs the interpreters named below in the PATH, to make an environment for each writer under --venvs (default:
writer-venvs in the temporary folder), and the packages of make_fixtures.py; with --venv, makes an environment there
that has them and runs in it. With --only, keeps the fixtures of other kinds. Names on disk and the times at which
TileDB 1.6 and 1.7 write differ in each run; everything else is the same.

The expected values are those written: for each coordinate the newest cell up to a time. libtiledb itself drops or
duplicates cells of some of the arrays, or fails to read them, so the expected values are recorded from copies with one
fragment. Where libtiledb is wrong, the manifest has its number of rows as "libtiledb_cells", or its error. For arrays
with the same coordinates twice in one fragment, the expected values are those that libtiledb reads; if these are
fragments of several times and were made of others that are still there, they are those written.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from make_fixtures import HERE, MADE, PACKAGES, pack, remove_empty_folders, rerun_in, report, unpack, write_manifest

# The name of the folder, the interpreter, the packages, and the numbers of the arrays of each kind.
WRITERS = [
    ("1.6", "python3.7", ["tiledb==0.4.4", "numpy<1.20"], {"twice": range(2)}),
    ("1.7", "python3.7", ["tiledb==0.5.9", "numpy<1.20"], {"times": range(4), "floats": range(2), "limits": [4, 8, 19]}),
    ("2.0", "python3.8", ["tiledb==0.6.6", "numpy<1.20"], {"older": range(2)}),
    ("2.2", "python3.8", ["tiledb==0.8.11", "numpy<2"], {"limits": [1, 8, 12]}),
    ("2.3", "python3.8", ["tiledb==0.9.5", "numpy<2"], {"limits": [0, 4, 9]}),
    ("2.9", "python3.9", ["tiledb==0.15.6", "numpy<2"], {"versions": range(2), "limits": [0, 2, 3, 4, 6, 18]}),
    ("2.10", "python3.9", ["tiledb==0.16.5", "numpy<2"], {"versions": range(3)}),
    ("2.11", "python3.9", ["tiledb==0.17.6", "numpy<2"], {"versions": range(8), "lost": [50, 93], "ties": range(3), "ties_kept": [0, 1, 3]}),
    ("2.12", "python3.9", ["tiledb==0.18.3", "numpy<2"], {"versions": range(2)}),
    ("2.14", "python3.9", ["tiledb==0.20.0", "numpy<2"], {"versions": range(1), "hilbert": range(4)}),
    ("2.15", "python3.9", ["tiledb==0.21.6", "numpy<2"], {"versions": range(1), "ties": range(3), "ties_kept": [0, 3]}),
    ("2.19", "python3.9", ["tiledb==0.25.0", "numpy<2"], {"ties": range(2), "ties_kept": range(1)}),
    ("2.30", "python3.11", PACKAGES, {"hilbert": range(2), "zeros": range(4), "limits": [1, 5, 9, 17, 18], "ties": range(2), "ties_kept": range(2), "upgraded": range(3)}),
]

# The writer that creates the arrays of a kind, to which the writer in the list adds.
CREATORS = {"older": "1.7", "upgraded": "2.2"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--venvs", default=os.path.join(tempfile.gettempdir(), "writer-venvs"))
    parser.add_argument("--venv")
    parser.add_argument("--out", default=f"{MADE}/writers")
    parser.add_argument("--only", metavar="KIND")
    options = parser.parse_args()
    if options.venv:
        only = ["--only", options.only] if options.only else []
        rerun_in(options.venv, PACKAGES, ["--venvs", options.venvs, "--out", options.out, *only])
    from fixtures.capi import version
    from fixtures.expect_written import WrittenRecorder

    root = os.path.abspath(options.out)
    recorder = WrittenRecorder(root, version())
    if options.only:
        if not os.path.exists(root):
            unpack("writers", os.path.dirname(root))
        recorder.objects += forget(root, options.only)
    else:
        shutil.rmtree(root, ignore_errors=True)
    for name, _, _, kinds in WRITERS:
        kinds = {kind: numbers for kind, numbers in kinds.items() if options.only in (None, kind)}
        if not kinds:
            continue
        python = python_of(options.venvs, name)
        for kind, numbers in kinds.items():
            others = {"OLDER_PYTHON": python_of(options.venvs, CREATORS[kind])} if kind in CREATORS else {}
            command = [python, f"{HERE}/fixtures/cases_writers.py", f"{root}/arrays/{name}", kind, *map(str, numbers)]
            subprocess.run(command, check=True, env=os.environ | others)
            for number in numbers:
                path = f"arrays/{name}/{kind}_{number}"
                with open(f"{root}/{path}.json") as file:
                    writes = json.load(file)
                os.remove(f"{root}/{path}.json")
                if writes:
                    recorder.written(path, writes, tags=["sparse", "writers", kind])
                else:
                    recorder.array(path, boxes=[[(4, 11)], [(20, 25)]], tags=["sparse", "writers", kind])
    remove_empty_folders(root)
    write_manifest(root, recorder)
    report(root, recorder)
    pack("writers", os.path.dirname(root), os.path.basename(root))


def python_of(venvs, writer):
    """Returns the interpreter of a writer, in an environment that is made if it does not exist."""
    interpreter, packages = next(row[1:3] for row in WRITERS if row[0] == writer)
    python = os.path.join(venvs, writer, "bin/python")
    if not os.path.exists(python):
        subprocess.run([interpreter, "-m", "venv", os.path.join(venvs, writer)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def forget(root, kind):
    """Removes the arrays of a kind and their expected values; returns the manifest entries of the others."""
    with open(f"{root}/manifest.json") as file:
        objects = json.load(file)["objects"]
    for entry in objects:
        if kind in entry["tags"]:
            shutil.rmtree(f"{root}/{entry['path']}")
            shutil.rmtree(f"{root}/expected/{entry['path'].split('/', 1)[1]}", ignore_errors=True)
    return [entry for entry in objects if kind not in entry["tags"]]


if __name__ == "__main__":
    main()
