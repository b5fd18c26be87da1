"""Type checkers find no mistakes in the package, and see the types that users get."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1]

USES = """
import numpy
import tilefs

array = tilefs.open("dem.tdb")
assert isinstance(array, tilefs.Array)
shape: tuple[int, ...] = array.shape
dtype: "numpy.dtype[numpy.generic]" = array["temp"].dtype
rows: tilefs.Rows = array.read(rows={"id": slice(1, 5)}, columns=["id"])
count: int = len(rows) + rows.parts
wrong: str = array.ndim
"""


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_package_has_no_mistakes(checker, tmp_path):
    # The packages of this interpreter, whichever is the first on the path.
    options = ["--cache-dir", str(tmp_path), "--python-executable", sys.executable] if checker == "mypy" else ["--pythonpath", sys.executable]
    ran = run(checker, *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_users_see_the_types(tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    ran = run("mypy", "--cache-dir", str(tmp_path), "--config-file", "", "--ignore-missing-imports", "--follow-imports", "silent", str(tmp_path / "uses.py"))
    mistakes = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert len(mistakes) == 1 and 'expression has type "int", variable has type "str"' in mistakes[0], ran.stdout + ran.stderr
