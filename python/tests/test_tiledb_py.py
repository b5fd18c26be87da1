"""Runs the tests of reading that TileDB-Py's package contains, with tilefs as the reader."""

import collections
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent / "tiledb_py"
FILES = ("multi_index", "query_condition", "pandas_dataframe", "dimension_label", "enumeration", "current_domain", "core", "aggregates")


def listed():
    lines = (HERE / "differences.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(": ")[0] for line in lines if not line.startswith("#")}


def without_parameters(name):
    return re.sub(r"\[.*", "", name)


def run(folder, tests, *options, **environment):
    arguments = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-rf", "--tb=short", "-o", "python_classes=*Test*", *options]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *tests], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    return ran.stdout, set(re.findall(r"^FAILED (\S+)", ran.stdout, re.MULTILINE))


def test_reads_of_its_own_tests_give_the_same(tmp_path):
    tests = pathlib.Path(importlib.util.find_spec("tiledb").origin).parent / "tests"
    log = tmp_path / "reads.jsonl"
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    files = [str(tests / f"test_{name}.py") for name in FILES]
    printed, failed = run(tmp_path, files, "-p", "tilefs_shim", PYTHONPATH=path, TILEFS_SHIM_LOG=str(log))
    reads = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    counts = collections.Counter(read["outcome"] for read in reads)
    print(printed.splitlines()[-1], dict(counts))
    names = {without_parameters(one.split("tests/")[-1]) for one in failed} - listed()
    if names:
        # Those that TileDB-Py fails alone, for example because it does not work with this version of pandas, do not count.
        again = [str(tests / name) for name in names]
        names -= {without_parameters(one.split("tests/")[-1]) for one in run(tmp_path, again)[1]}
    wrong = [read for read in reads if read["outcome"] in ("different", "tilefs fails")]
    unexpected = [read for read in wrong if without_parameters(read["test"]) not in listed()]
    assert not names and not unexpected, (names, unexpected, printed[-5000:])
    assert counts["equal"] > 900 and " passed" in printed
