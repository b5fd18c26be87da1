"""Tests that Ctrl-C ends every call that takes long. Each case would take days."""

import subprocess
import sys

import numpy as np
import pytest
import tiledb

# Runs cases one after the other and sends itself the signal a moment after each began, as a terminal does. It runs in a
# new process: in that of the tests, libtiledb has replaced Python's signal handler.
PRELUDE = """
import os, signal, sys, threading, time
import tilefs
from tilefs.fs import TilefsFileSystem

# Programs that are started in the background ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted(case):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        try:
            case()
        except Exception:
            # Of another library, which does not know of the signal. The next call of a Python function does.
            time.sleep(5)
    except KeyboardInterrupt:
        return True
    finally:
        timer.cancel()
    return False

def run(cases):
    for name, case in cases.items():
        print(name, interrupted(case), flush=True)

fs, array = TilefsFileSystem(sys.argv[1]), tilefs.open(sys.argv[1])
text = "text/cells.tsv"
"""

FILES = """
run({
    "info": lambda: fs.info(text),
    "ls": lambda: fs.ls(text),
    "exists": lambda: fs.exists(text),
    "isfile": lambda: fs.isfile(text),
    "isdir": lambda: fs.isdir(text),
    "open": lambda: fs.open(text),
    "cat_file": lambda: fs.cat_file(text, 5, 10),
    "cat": lambda: fs.cat([text, "text/cells.csv"]),
    "cat_ranges": lambda: fs.cat_ranges([text, text, text], 0, 10),
    "glob": lambda: fs.glob(text),
    "find": lambda: fs.find(text),
    "du": lambda: fs.du(text),
    "ukey": lambda: fs.ukey(text),
    "modified": lambda: fs.modified(text),
    "get": lambda: fs.get_file("a.u8", "/dev/null"),
    "head": lambda: fs.head(text),
})
"""

ARRAYS = """
import pyarrow, polars
rows = array.read()
few = array.read(columns=["s"])
run({
    "variable": lambda: array["s"][:],
    "strided": lambda: array["a"][:: 1 << 13],
    "to_arrow": lambda: rows.to_arrow(),
    "to_pandas": lambda: few.to_pandas(),
    "pyarrow": lambda: pyarrow.table(rows),
    "polars": lambda: polars.DataFrame(rows),
    "batches": lambda: [None for _ in pyarrow.RecordBatchReader.from_stream(rows)],
})
"""


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """Returns a dense array of 2^40 cells, one attribute of which has cells of variable size."""
    path = str(tmp_path_factory.mktemp("endless") / "array")
    dim = tiledb.Dim("x", domain=(0, 2**40 - 1), tile=2**20, dtype=np.int64)
    attrs = [tiledb.Attr("a", dtype=np.uint8), tiledb.Attr("s", dtype="U0")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs))
    with tiledb.open(path, "w") as array:
        array[0:4] = {"a": np.arange(4, dtype=np.uint8), "s": np.array(["a", "bb", "", "d"])}
    return path


@pytest.mark.parametrize("cases", [FILES, ARRAYS], ids=["files", "arrays"])
def test_ctrl_c_ends_what_takes_long(endless, cases):
    pytest.importorskip("fsspec")
    command = [sys.executable, "-X", "faulthandler", "-c", PRELUDE + cases, endless]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 and lines and all(line.endswith(" True") for line in lines), ran
