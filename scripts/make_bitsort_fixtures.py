#!/usr/bin/env python3
"""Makes tests/fixtures/bitsort.tar.zst: arrays with the filter BITSORT, and what libtiledb reads from them.

usage: scripts/make_bitsort_fixtures.py [--venv FOLDER] [--out FOLDER]

Only libtiledb 2.13 and 2.14 have the filter. The script needs Python 3.10 and the package `tiledb` 0.20.0 with `numpy`; with --venv, makes a virtual
environment there that has them and uses it. A new run gives the same bytes, up to the random parts of encrypted files.
"""

import os
import shutil
import sys

from make_fixtures import options_of, pack, remove_empty_folders, report, write_manifest

PACKAGES = ["tiledb==0.20.0", "numpy==1.24.4"]  # libtiledb 2.14.0


def main():
    root = options_of(__doc__, "bitsort", PACKAGES)
    from fixtures import cases_bitsort
    from fixtures.capi import version
    from fixtures.expect import Recorder

    if not version().startswith(("2.13.", "2.14.")):
        sys.exit(f"make_bitsort_fixtures.py: libtiledb {version()} has no BITSORT")
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    recorder = Recorder(root, version())
    cases_bitsort.make(root, recorder)
    remove_empty_folders(root)
    write_manifest(root, recorder)
    report(root, recorder)
    pack("bitsort", os.path.dirname(root), os.path.basename(root))


if __name__ == "__main__":
    main()
