#!/usr/bin/env python3
"""Makes tests/fixtures/filtered.tar.zst: arrays with coordinates that SCALE_FLOAT rounds, and what libtiledb reads from them; arrays with tiles of nothing.

usage: scripts/make_filtered_fixtures.py [--venv FOLDER] [--out FOLDER]

Needs the packages of make_fixtures.py; with --venv, makes a virtual environment there that has them and uses it. libtiledb 2.8 to 2.26 cut off the GZIP
streams of tiles of nothing, so these arrays are written in an environment of libtiledb 2.14 (Python 3.10, in the PATH), which is made in a temporary
folder. A new run gives the same bytes.
"""

import os
import shutil
import subprocess
import tempfile

from make_fixtures import HERE, PACKAGES, options_of, pack, remove_empty_folders, report, write_manifest

CUTS_OFF = ["tiledb==0.20.0", "numpy==1.24.4"]  # libtiledb 2.14.0


def main():
    root = options_of(__doc__, "filtered", PACKAGES)
    from fixtures import cases_filtered
    from fixtures.capi import version
    from fixtures.expect import Recorder

    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    recorder = Recorder(root, version())
    cases_filtered.make(root, recorder)
    with tempfile.TemporaryDirectory() as venv:
        subprocess.run(["python3.10", "-m", "venv", venv], check=True)
        subprocess.run([f"{venv}/bin/python", "-m", "pip", "install", "--quiet", *CUTS_OFF], check=True)
        make = "import sys; from fixtures import cases_filtered; cases_filtered.make_empty(sys.argv[1])"
        subprocess.run([f"{venv}/bin/python", "-c", make, root], check=True, env=os.environ | {"PYTHONPATH": HERE})
    remove_empty_folders(root)
    write_manifest(root, recorder)
    report(root, recorder)
    pack("filtered", os.path.dirname(root), os.path.basename(root))


if __name__ == "__main__":
    main()
