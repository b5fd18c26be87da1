"""Each awk that is installed prints the same for the command in README.txt that computes a mean: what NumPy computes of the
values that are numbers, nothing if there are none."""

import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
import tiledb

INF, NAN = np.inf, np.nan
FLOATS = {
    "finite": [1.5, -2.25, 1e300, 1e300, 0.1, 7, 8, 9],
    "some": [1.5, NAN, -0.0, 2.5, NAN, 1e-300, 3, 4],
    "up": [1.5, INF, 3, 2, INF, 0, 0, NAN],
    "down": [-INF, 1, 1, 1, 1, 1, 1, 1],
    "both": [1, INF, 2, -INF, INF, NAN, 3, 4],
    "none": [NAN] * 8,
}
INTEGERS = {"small": [1, 2, 3, 4, 5, 6, 7, 9], "large": [2**62, 2**62, 2**62, 0, 0, 0, 0, 0], "negative": [-(2**40)] * 8}
NULLS = [0, 3, 4]


def attributes():
    """Returns arrays, each with the type and the values of its attribute, and which of them are null."""
    for name, values in FLOATS.items():
        yield f"f8_{name}", "f8", values, []
        yield f"f8_{name}_nulls", "f8", values, NULLS
        if name != "finite":
            yield f"f4_{name}", "f4", values, []
    for name, values in INTEGERS.items():
        yield f"i8_{name}", "i8", values, []
        yield f"i8_{name}_nulls", "i8", values, NULLS
    yield "i8_nulls", "i8", INTEGERS["small"], range(8)
    yield "f8_nulls", "f8", FLOATS["both"], range(8)


def expected(values):
    values = values[~np.isnan(values.astype("f8"))]
    if not len(values):
        return ""
    with np.errstate(invalid="ignore"):
        mean = values.astype("f8").mean()
    return f"{mean:.10g}\n"


def printed(program, name, awks):
    """Returns what the command for a mean in README.txt of an array prints, with each awk."""
    cat = lambda path: subprocess.run([program, "cat", name, path], check=True, capture_output=True).stdout
    lines = cat("README.txt").decode().splitlines()
    command = next(line for number, line in enumerate(lines) if lines[number - 1].startswith("The mean of "))
    awk, text, path = shlex.split(command)
    assert awk == "awk", command
    values = cat(path)
    return [subprocess.run([*awk, text], check=True, input=values, capture_output=True).stdout.decode() for awk in awks]


def check():
    program = os.environ["TILEFS_PROGRAM"]
    awks = [awk for awk in (["mawk"], ["gawk"], ["original-awk"], ["busybox", "awk"]) if shutil.which(awk[0])]
    for name, kind, values, nulls in attributes():
        domain = tiledb.Domain(*(tiledb.Dim(axis, (0, length - 1), 2, dtype="i4") for axis, length in (("y", 2), ("x", 4))))
        attribute = tiledb.Attr("a", dtype=kind, nullable=len(nulls) > 0)
        tiledb.Array.create(name, tiledb.ArraySchema(domain, [attribute]))
        values, valid = np.array(values, kind), np.ones(8, bool)
        valid[list(nulls)] = False
        with tiledb.open(name, "w") as array:
            whole = slice(None)
            if len(nulls):
                array._setitem_impl((whole, whole), {"a": values.reshape(2, 4)}, {"a": valid.reshape(2, 4).astype("u1")})
            else:
                array[:] = {"a": values.reshape(2, 4)}
        wanted = expected(values[valid])
        for awk, found in zip(awks, printed(program, name, awks)):
            assert found == wanted, f"{name}: {awk} prints {found!r}, and NumPy {wanted!r}"


{"check": check}[sys.argv[1]]()
