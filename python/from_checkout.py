"""Builds the package where pip asks for it, as in ``pip install ./python``: by maturin, after a look at what it needs.
``scripts/package.sh wheel`` makes wheels for other machines, which also have the program ``tilefs``."""

import os
import pathlib
import re
import shutil
import subprocess

import maturin
from maturin import get_requires_for_build_editable, get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def _missing():
    """Returns what is missing, and what to type."""
    if not (ROOT / "crates/python/Cargo.toml").is_file():
        return f"{HERE} is not in a checkout of tilefs: the module's sources, {ROOT / 'crates/python'}, are not there"
    rust = "install Rust: https://rustup.rs, or rustup update"
    cargo = shutil.which("cargo")
    if cargo is None:
        return f"there is no cargo in PATH; {rust}"
    wanted = re.search(r'^rust-version = "([0-9.]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    printed = subprocess.run([cargo, "--version"], capture_output=True, text=True, cwd=ROOT).stdout
    found = re.match(r"cargo ([0-9]+)\.([0-9]+)", printed)
    if wanted and found and tuple(map(int, found.groups())) < tuple(map(int, wanted[1].split(".")[:2])):
        return f"{printed.strip()} is older than {wanted[1]}, which tilefs needs; {rust}"
    if not any(shutil.which(name) for name in (os.environ.get("CC", "cc"), "cc", "gcc", "clang")):
        return "there is no C compiler in PATH; install one: sudo apt-get install gcc libc6-dev"
    return None


def _prepared():
    missing = _missing()
    if missing is not None:
        raise SystemExit(f"tilefs cannot be built: {missing}")
    # scripts/package.sh puts the program here; maturin wants the folder.
    (HERE / "data/scripts").mkdir(parents=True, exist_ok=True)
    return maturin


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _prepared().build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _prepared().build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    return _prepared().build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return _prepared().prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return _prepared().prepare_metadata_for_build_editable(metadata_directory, config_settings)
