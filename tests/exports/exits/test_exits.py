"""All exits show the same values, for each type: those that TileDB's library wrote."""

import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

for package in ("tiledb", "pyarrow", "pandas", "polars", "duckdb", "netCDF4", "h5py", "zarr", "astropy", "anndata", "xarray", "dask"):
    pytest.importorskip(package)

import arrays  # noqa: E402
import compare  # noqa: E402
import fsspec  # noqa: E402
import readers  # noqa: E402
import types_table  # noqa: E402

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/types.md"

# The exits, each with its name in the table; those of grids need a dense array.
EXITS = {
    "raw": readers.raw, "NumPy file": readers.npy, "TSV": readers.tsv, "CSV (pyarrow)": readers.csv, "JSON lines": readers.json_lines,
    "Arrow file (pyarrow)": readers.arrow, "Parquet (pyarrow)": readers.parquet, "Parquet (pandas)": readers.pandas, "Parquet (DuckDB)": readers.duckdb,
    "netCDF (netCDF4)": readers.netcdf, "netCDF-4 (netCDF4)": readers.netcdf4, "HDF5 (h5py)": readers.hdf5,
    "Zarr 3": readers.zarr3, "Zarr 2": readers.zarr2, "FITS (astropy)": readers.fits,
    "`[]`": readers.subscript, "`df`": readers.df, "`read()` in pyarrow": readers.rows, "`read()` in Polars": readers.polars,
    "`to_dask_dataframe`": readers.dask, "xarray": readers.xarray, "page (`schema.json`)": readers.page,
}
# The observations of an experiment of TileDB-SOMA.
ANNOTATED = {"h5ad (anndata)": readers.h5ad, "`to_anndata`": readers.annotated}
ONLY_DENSE = ("FITS (astropy)",)
CASES = ("one_soma", "nulls_soma", "extremes_soma", "none_sparse", "one_sparse", "one_dense", "nulls_sparse", "extremes_sparse", "extremes_dense")
# The cases with all types, and the exits that read these as one table; others take long for so many attributes.
OF_ALL = ("one_soma", "one_sparse", "one_dense", "extremes_sparse")
FIELD_BY_FIELD = ("`[]`", "`df`")
# The cases that the table of types is made of, whose exits are read once.
OF_TABLE = ("one_soma", "one_sparse", "one_dense")


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Returns the trees of arrays, and their fields, by case."""
    fsspec.register_implementation("tilefs", "tilefs.fs.TilefsFileSystem", clobber=True)
    folder = tmp_path_factory.mktemp("exits")
    made = {}
    for case in CASES:
        rows, _, form = case.partition("_")
        fields = arrays.filled(rows, case not in OF_ALL)
        if form == "soma":
            made[case] = readers.Files(arrays.experiment(folder / case, fields)), fields
        else:
            made[case] = readers.Tree(arrays.write(folder / case, fields, form == "sparse")), fields
    return made


@pytest.fixture(scope="module")
def shown(trees):
    """Returns what an exit gives for each field of a case. What the table is made of is kept."""
    kept = {}

    def of(case, name):
        if (case, name) in kept:
            return kept[case, name]
        tree, fields = trees[case]
        is_slow = name in FIELD_BY_FIELD and case not in OF_TABLE
        found = list({**EXITS, **ANNOTATED}[name](tree, [one for one in fields if one.is_of_few] if is_slow else fields))
        if case in OF_TABLE:
            kept[case, name] = found
        return found

    return of


@pytest.mark.parametrize("case", CASES)
def test_every_exit_shows_what_was_stored(shown, case):
    wrong = []
    for name in ANNOTATED if case.endswith("soma") else EXITS:
        if name in ONLY_DENSE and not case.endswith("dense"):
            continue
        for one, given in shown(case, name):
            if isinstance(given, readers.Shown):
                wrong += [f"{name}, {one.name}: {got!r} is not {want!r}" for want, got in compare.differences(one, given)[:1]]
    assert not wrong, "\n".join([f"{len(wrong)} fields", *wrong[:60]])


def test_the_table_of_types_is_true(shown):
    given = {}
    for name in {**EXITS, **ANNOTATED}:
        case = "one_dense" if name in ONLY_DENSE else "one_soma" if name in ANNOTATED else "one_sparse"
        given[name] = {one.name: found for one, found in shown(case, name)}
    text = types_table.table(given)
    if os.environ.get("TILEFS_ACCEPT") == "yes":
        DOCUMENT.write_text(text)
    assert DOCUMENT.read_text() == text, "docs/types.md is not what exits give; TILEFS_ACCEPT=yes rewrites it"


@pytest.fixture(scope="module")
def few(trees, tmp_path_factory):
    """Returns the tree of an array whose README.txt has room for the reasons of all its files."""
    names = ("int32", "int32_var", "char", "blob", "string_utf8_several", "string_utf16_several")
    fields = [one for one in trees["one_dense"][1] if one.name in names]
    return readers.Tree(arrays.write(tmp_path_factory.mktemp("few") / "array", fields, False))


@pytest.fixture(scope="module")
def address(few):
    """Returns the address of a server of the array of few fields."""
    command = os.environ.get("TILEFS_COMMAND")
    if command is None:
        pytest.skip("TILEFS_COMMAND does not name the program")
    tree = few
    server = subprocess.Popen([command, "serve", "--listen", "127.0.0.1:0", tree.uri], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        words = (word for line in server.stdout for word in line.split())
        yield next(word for word in words if word.startswith("http://")).rstrip("/.,")
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def plain(error):
    """Returns the sentence of an error without the place before and behind it."""
    return re.sub(r"^.*not supported: | \(field .*\)$", "", str(error))


def test_one_reason_has_one_sentence(few, address):
    tree = few
    kinds = {
        "cells of varying size": ["npy/int32_var.npy", "fits/int32_var.fits", "zarr2/int32_var"],
        "no numbers": ["fits/char.fits", "fits/blob.fits", "fits/string_utf8_several.fits", "char.bytes.hdr", "blob.bytes.hdr"],
        "wide text": ["text/string_utf16_several.txt"],
    }
    for kind, paths in kinds.items():
        found = {path: tree.reasons.get(path) for path in paths}
        assert None not in found.values() and len(set(found.values())) == 1, (kind, found, sorted(tree.reasons))
        readme = " ".join(tree.read("README.txt").decode().split())
        for path, reason in found.items():
            assert reason in readme, (path, reason)
            if path.startswith("zarr"):
                continue  # a folder that is looked up by the readers of Zarr
            with pytest.raises(Exception) as caught:
                tree.read(path)
            assert str(caught.value).endswith(reason), (path, caught.value)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{address}/{path}")
            assert reason in refused.value.read().decode(), path


# Cells that exits of UTF-8 cannot hold.
@pytest.mark.parametrize("cells", [[b"a", b"\xff"], [b"a", b"\xc3"], ["日本".encode(), b"ab\xe6\x97"]])
def test_a_cell_that_cannot_be_held_has_one_sentence(tmp_path, cells):
    text = arrays.Field("text", "STRING_UTF8", "var", stored=cells, nulls=[False, False])
    tree = readers.Tree(arrays.write(tmp_path / "array", [text], True))
    sentences = {}
    for name in ("JSON lines", "Arrow file (pyarrow)", "Parquet (pyarrow)", "Zarr 3", "Zarr 2", "`read()` in pyarrow"):
        with pytest.raises(Exception) as caught:
            list(EXITS[name](tree, [text]))
        sentences.setdefault(plain(caught.value), []).append(name)
    assert list(sentences) == ["the value of row 1, which is not UTF-8; the attribute's raw files have its bytes"], sentences
    # The other exits show the bytes.
    for name in ("raw", "TSV", "CSV (pyarrow)"):
        ((_, shown),) = EXITS[name](tree, [text])
        assert shown.values == cells, name
