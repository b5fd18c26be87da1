#!/usr/bin/env python3
"""Makes small TileDB arrays written by libtiledb, records what libtiledb reads from them, and packs them for the tests.

usage: scripts/make_fixtures.py [--venv FOLDER] [--out FOLDER]

The arrays are made in FOLDER (default: target/made/fixtures); tests/fixtures gets arrays.tar.zst and, unpacked, demo, enormous, huge and long.

Needs the `tiledb` and `numpy` packages; with --venv, makes a virtual environment there that has them and uses it. A new run gives the
same bytes, up to the random parts that libtiledb puts into encrypted files and enumeration names.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

def pinned(*names):
    """Returns the packages with these names, in the versions of requirements.txt."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "requirements.txt")) as file:
        return [line.strip() for line in file if line.split("==")[0] in names]


PACKAGES = pinned("tiledb", "numpy")
HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.normpath(f"{HERE}/../tests/fixtures")
MADE = os.path.normpath(f"{HERE}/../target/made")


def main():
    root = options_of(__doc__, "fixtures", PACKAGES)
    from fixtures import cases_dense, cases_groups, cases_sparse
    from fixtures.capi import version
    from fixtures.expect import Recorder

    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    recorder = Recorder(root, version())
    for module in (cases_groups, cases_dense, cases_sparse):
        module.make(root, recorder)
    remove_empty_folders(root)
    write_manifest(root, recorder)
    report(root, recorder)
    pack("arrays", root, "arrays", "expected", "manifest.json")
    for plain in ("demo", "enormous", "huge", "long"):
        shutil.rmtree(f"{FIXTURES}/{plain}", ignore_errors=True)
        shutil.copytree(f"{root}/{plain}", f"{FIXTURES}/{plain}")


def options_of(description, default, packages):
    """Returns the absolute path of the folder to make, from the command line. With --venv, runs the script again in
    that virtual environment. `default` is a folder in target/made."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--venv", help="make a virtual environment with tiledb here, and run in it")
    parser.add_argument("--out", default=f"{MADE}/{default}")
    options = parser.parse_args()
    if options.venv:
        rerun_in(options.venv, packages, ["--out", options.out])
    try:
        import tiledb  # noqa: F401
    except ImportError:
        sys.exit(f"{os.path.basename(sys.argv[0])}: the tiledb package is missing; run it with --venv FOLDER")
    return os.path.abspath(options.out)


def write_manifest(root, recorder):
    with open(os.path.join(root, "manifest.json"), "w") as file:
        file.write('{"written_by": "libtiledb %s",\n"objects": [\n' % recorder.version)
        lines = (json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in sorted(recorder.objects, key=lambda e: e["path"]))
        file.write(",\n".join(lines) + "\n]}\n")


def rerun_in(venv, packages, arguments):
    python = os.path.join(venv, "bin/python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    os.execv(python, [python, os.path.abspath(sys.argv[0]), *arguments])


def pack(name, folder, *parts):
    """Makes the archive NAME.tar.zst of the fixtures from files and folders in `folder`."""
    subprocess.run([f"{HERE}/pack_fixtures.sh", f"{FIXTURES}/{name}.tar.zst", folder, *parts], check=True)


def unpack(name, folder):
    """The opposite of `pack`."""
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["tar", "--zstd", "-xf", f"{FIXTURES}/{name}.tar.zst", "-C", folder], check=True)


def remove_empty_folders(root):
    """Removes empty folders. TileDB reads the arrays without them, so other readers must, too."""
    for folder, _, _ in os.walk(root, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)


def report(root, recorder):
    files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    reads = sum(len(entry["reads"]) for entry in recorder.objects)
    print(f"{len(recorder.objects)} objects, {reads} reads, {len(files)} files, {sum(map(os.path.getsize, files)) / 1e6:.2f} MB in {root}")


if __name__ == "__main__":
    main()
