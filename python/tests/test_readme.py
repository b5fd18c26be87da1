"""Tests that the examples of the README, and those of docs/python.md, run and print what they should."""

import ast
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1]


def examples(page):
    return re.findall(r"```python\n(.*?)```", (FOLDER / page).read_text(encoding="utf-8"), re.DOTALL)


README, PAGE = examples("README.md"), examples("../docs/python.md")
EXAMPLES = README + PAGE
PRINTED = [
    "(100, 200) (10, 100) float32 12.09",
    "33 ['B cell', 'größer', 'T cell']",
    "33 35",
    "('y', 'x') ",
    "1000 19.59",
    "            20.0            20.01",
    "20.0 {",
    "(10, 100) 33",
    "{'y': 100, 'x': 200} 1000",
    "dem.tdb: a TileDB array",
]


def test_every_example_has_its_output():
    assert (len(README), len(PAGE), len(PRINTED)) == (7, 3, 10)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_each_example_runs(tmp_path, demo, cells, mountable, number):
    shutil.copytree(demo, tmp_path / "dem.tdb")
    shutil.copytree(cells[0], tmp_path / "cells.tdb")
    # The wheel's entry point does this, but the wheel is not installed here.
    register = "import fsspec; fsspec.register_implementation('tilefs', 'tilefs.fs.TilefsFileSystem')\n"
    if "engine=" in EXAMPLES[number]:
        register += "import xarray.backends.plugins as plugins; from tilefs._xarray import TilefsBackendEntrypoint as Engine\n"
        register += "known = plugins.list_engines(); plugins.list_engines = lambda: {**known, 'tilefs': Engine()}\n"
    command = [sys.executable, "-X", "utf8", "-c", register + EXAMPLES[number]]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    assert PRINTED[number] in ran.stdout, ran.stdout


def cells_of_notebook():
    cells = json.loads((FOLDER / "examples.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_has_the_examples_of_the_readme():
    assert [one.rstrip("\n") for one in README] == cells_of_notebook()[-len(README) :]


def test_the_notebook_runs_from_the_first_cell_to_the_last(tmp_path, mountable):
    """As in a notebook, the value of an expression that ends a cell is shown."""
    script = "import fsspec; fsspec.register_implementation('tilefs', 'tilefs.fs.TilefsFileSystem')\n"
    script += "import xarray.backends.plugins as plugins; from tilefs._xarray import TilefsBackendEntrypoint as Engine\n"
    script += "known = plugins.list_engines(); plugins.list_engines = lambda: {**known, 'tilefs': Engine()}\n"
    for cell in cells_of_notebook():
        *before, last = ast.parse(cell).body
        shown = isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print(")
        script += cell if not shown else f"{ast.unparse(ast.Module(before, []))}\nprint(len(({ast.unparse(last)})._repr_html_()))"
        script += "\n"
    ran = subprocess.run([sys.executable, "-X", "utf8", "-c", script], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert all(int(line) > 1000 for line in lines[:3]) and len(lines) >= 3 + len(README) and "12.09" in ran.stdout, ran.stdout
