"""`help()` of everything public has an example, and the examples give what they show."""

import doctest
import inspect
import shutil

import pytest
from conftest import tiledb

import tilefs

# `mount` and `Mount` need /dev/fuse, and labels an array of their own: the README and other tests have these.
WITHOUT = {"Mount", "mount", "DimensionLabel", "__version__"}
PUBLIC = [name for name in tilefs.__all__ if name not in WITHOUT and not (inspect.isclass(getattr(tilefs, name)) and issubclass(getattr(tilefs, name), Exception))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, demo, cells):
    folder = tmp_path_factory.mktemp("help")
    shutil.copytree(demo, folder / "dem.tdb")
    shutil.copytree(cells[0], folder / "cells.tdb")
    tiledb.Group.create(str(folder / "group"))
    with tiledb.Group(str(folder / "group"), "w") as group:
        for name in ("dem", "cells"):
            group.add(str(folder / f"{name}.tdb"), name)
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_give_what_they_show(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    found = doctest.DocTestFinder().find(getattr(tilefs, name), name, globs={"tilefs": tilefs})
    assert any(one.examples for one in found), f"help(tilefs.{name}) has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    printed = []
    for one in found:
        runner.run(one, out=printed.append)
    assert runner.failures == 0, "".join(printed)
