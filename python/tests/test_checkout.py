"""`pip install ./python` in a checkout: what it needs is looked for, and the rest is maturin's."""

import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]
MATURIN = """
def _told(*given):
    print("maturin", *given)
build_wheel = build_editable = build_sdist = prepare_metadata_for_build_wheel = prepare_metadata_for_build_editable = _told
get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel = _told
"""


@pytest.fixture
def checkout(tmp_path):
    """Returns a checkout without sources of Rust but their manifests, and a folder of programs."""
    for name in ("python/from_checkout.py", "Cargo.toml", "crates/python/Cargo.toml"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE.parent / name, tmp_path / "tree" / name)
    (tmp_path / "tree/python/maturin.py").write_text(MATURIN)
    (tmp_path / "bin").mkdir()
    return tmp_path


def build(checkout):
    code = "import from_checkout; from_checkout.build_wheel('wheels')"
    ran = subprocess.run([sys.executable, "-c", code], cwd=checkout / "tree/python", env={"PATH": str(checkout / "bin")}, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def program(checkout, name, prints=""):
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


def test_what_is_missing_is_said(checkout):
    status, told = build(checkout)
    assert status == 1 and "no cargo in PATH" in told and "rustup.rs" in told
    program(checkout, "cargo", "cargo 1.70.0 (ec8a8a0ca 2023-04-25)")
    status, told = build(checkout)
    assert status == 1 and "cargo 1.70.0" in told and "is older than" in told
    program(checkout, "cargo", "cargo 1.999.0")
    status, told = build(checkout)
    assert status == 1 and "no C compiler" in told
    program(checkout, "cc")
    status, told = build(checkout)
    assert status == 0 and told.startswith("maturin wheels") and (checkout / "tree/python/data/scripts").is_dir()
    shutil.rmtree(checkout / "tree/crates")
    status, told = build(checkout)
    assert status == 1 and "not in a checkout" in told
