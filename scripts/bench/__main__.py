"""Runs the sections named on the command line, or all of them."""

import importlib
import sys

from . import common

if __name__ == "__main__":
    common.print_machine()
    for section in sys.argv[1:] or ["dense", "open", "sparse", "paths"]:
        importlib.import_module(f"bench.{section}").run()
