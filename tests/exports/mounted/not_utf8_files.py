"""Bytes that are not UTF-8 in columns of text: each view has them unchanged, or returns an error if its format has only
UTF-8. No reader gets a different text.

`make` writes the arrays with libtiledb, `check` reads the views with their readers.
"""

import json
import sys

import duckdb
import netCDF4
import numpy as np
import pandas
import polars
import pyarrow.feather
import pyarrow.parquet
import tiledb
import xarray
import zarr

# The bytes that are not UTF-8 are far from those that readers need for other purposes, because a read that contains any
# of them fails as a whole.
ROWS = 50000
WORDS = [b"zz"] * (ROWS // 2) + [b"ab\xff", b"ok", b"\xe4x"] + [b"zz"] * (ROWS // 2 - 3)
LETTERS = [b"abcdefgh"[row % 8 : row % 8 + 1] for row in range(ROWS)]
LABELS = [b"x\xff", b"x\xfe", b"y"]
CODES = [row % 3 for row in range(ROWS)]
NUMBERS = list(range(ROWS))


def make():
    for name, is_sparse, words in ("dense", False, WORDS), ("sparse", True, WORDS), ("labels", False, [b"zz"] * ROWS):
        dimension = tiledb.Dim("x", domain=(0, ROWS - 1), tile=ROWS, dtype="i4")
        attributes = [
            tiledb.Attr("word", dtype="ascii", var=True),
            tiledb.Attr("fine", dtype="ascii", var=True),
            tiledb.Attr("code", dtype="u1", enum_label="kinds"),
            tiledb.Attr("n", dtype="i4"),
        ]
        kinds = tiledb.Enumeration("kinds", False, np.array(LABELS, "S2"))
        schema = tiledb.ArraySchema(tiledb.Domain(dimension), attributes, sparse=is_sparse, enums=[kinds])
        tiledb.Array.create(name, schema)
        with tiledb.open(name, "w") as array:
            cells = {"word": np.array(words, "S3"), "fine": np.array(LETTERS, "S1")}
            cells |= {"code": np.array(CODES, "u1"), "n": np.arange(ROWS, dtype="i4")}
            array[np.arange(ROWS, dtype="i4") if is_sparse else slice(0, ROWS)] = cells
    # So few rows that a reader of the footer would read all of the file.
    dimension = tiledb.Dim("x", domain=(None, None), tile=None, dtype="ascii")
    attributes = [tiledb.Attr("word", dtype="ascii", var=True), tiledb.Attr("n", dtype="i4"), tiledb.Attr("last", dtype="ascii", var=True)]
    tiledb.Array.create("small", tiledb.ArraySchema(tiledb.Domain(dimension), attributes, sparse=True))
    with tiledb.open("small", "w") as array:
        array[np.array([b"a", b"b\xff"], "O")] = {"word": np.array([b"a", b"b"], "S1"), "n": np.array([1, 2], "i4"), "last": np.array([b"\xff", b"c"], "O")}
    print("dense sparse labels small")


def fails(read, *kinds):
    """Returns true if a reader fails with one of these exceptions; fails if it succeeds."""
    try:
        got = read()
    except kinds:
        return True
    raise AssertionError(f"read as {got}")


def whole(path):
    with open(path, "rb") as file:
        return file.read()


def check(name):
    mount, letters = f"mnt_{name}", [letter.decode() for letter in LETTERS]
    # Byte streams have the bytes.
    assert whole(f"{mount}/word.txt") == b"".join(word + b"\n" for word in WORDS)
    rows = [b"%d\t%s\t%s\t%s\t%d\n" % (i, WORDS[i], LETTERS[i], LABELS[CODES[i]], i) for i in range(ROWS)]
    assert whole(f"{mount}/text/cells.tsv") == b"x\tword\tfine\tcode\tn\n" + b"".join(rows)
    assert whole(f"{mount}/enums/kinds.txt") == b"".join(label + b"\n" for label in LABELS)
    for path, separator in (f"{mount}/text/cells.tsv", "\t"), (f"{mount}/text/cells.csv", ","):
        frame = pandas.read_csv(path, sep=separator, encoding="latin-1")
        assert [word.encode("latin-1") for word in frame["word"]] == WORDS
        assert [label.encode("latin-1") for label in frame["code"]] == [LABELS[code] for code in CODES]
        # Readers that support only UTF-8 report an error.
        fails(lambda: pandas.read_csv(path, sep=separator), UnicodeDecodeError)
        fails(lambda: polars.read_csv(path, separator=separator), polars.exceptions.PolarsError)
        fails(lambda: duckdb.sql(f"from read_csv('{path}', delim='{separator}')").fetchall(), duckdb.Error)

    # In formats whose text is UTF-8, only these bytes cannot be read.
    table = f"{mount}/parquet/cells.parquet"
    fails(lambda: pyarrow.parquet.read_table(table, columns=["word"]), OSError)
    assert pyarrow.parquet.read_table(table, columns=["fine", "n"])["n"].to_pylist() == NUMBERS
    codes = pyarrow.parquet.read_table(table, columns=["code"])["code"].to_pylist()
    assert codes == [LABELS[code] for code in CODES], codes[:9]
    fails(lambda: pyarrow.feather.read_table(f"{mount}/arrow/cells.arrow", memory_map=False), OSError)

    fails(lambda: whole(f"{mount}/zarr/word/c/0"), OSError)
    group = zarr.open(f"{mount}/zarr", mode="r")
    fails(lambda: group["word"][:], OSError)
    assert list(group["fine"][:]) == letters and list(group["n"][:]) == NUMBERS
    assert [bytes(label) for label in group["code_labels"][:]] == LABELS

    # Readers of netCDF read the header and much of the data after it at once, so that an error would keep the file from
    # opening. They decode the bytes themselves.
    with netCDF4.Dataset(f"{mount}/netcdf/array.nc") as file:
        fails(lambda: file["word"][:], UnicodeDecodeError)
        file["word"].set_auto_chartostring(False)
        assert np.ma.getdata(file["word"][:]).tobytes() == b"".join(word.ljust(3, b"\0") for word in WORDS)
        assert list(file["fine"][:]) == letters and list(file["n"][:]) == NUMBERS
    fails(lambda: xarray.open_dataset(f"{mount}/netcdf/array.nc")["word"].load(), UnicodeDecodeError)
    assert list(xarray.open_dataset(f"{mount}/netcdf/array.nc")["n"].values) == NUMBERS

    with open(f"{mount}/schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    assert schema["enumerations"][0]["labels"] == [{"hex": "78ff"}, {"hex": "78fe"}, "y"], schema["enumerations"]


def check_small():
    for table in "mnt_small/parquet/cells.parquet", "mnt_small/parquet/parts/000000000000000.parquet":
        assert pyarrow.parquet.read_schema(table).names == ["x", "word", "n", "last"]
        assert pyarrow.parquet.read_table(table, columns=["n"])["n"].to_pylist() == [1, 2]
        assert pyarrow.parquet.read_table(table, columns=["word", "n"])["word"].to_pylist() == ["a", "b"]
        assert duckdb.sql(f"select n, word from '{table}'").fetchall() == [(1, "a"), (2, "b")]
        assert polars.read_parquet(table, columns=["n", "word"])["word"].to_list() == ["a", "b"]
        fails(lambda: pyarrow.parquet.read_table(table, columns=["last"]), OSError)
        fails(lambda: pyarrow.parquet.read_table(table, columns=["x"]), OSError)
    told = open("mnt_small/.tilefs/errors.txt").read()
    assert "last" in told and "row 0" in told and "row 1" in told and "UTF-8" in told, told


def check_labels():
    letters = [letter.decode() for letter in LETTERS]
    with netCDF4.Dataset("mnt_labels/netcdf/array.nc") as file:
        assert list(file["fine"][:]) == letters and list(file["n"][:]) == NUMBERS
        assert file["code_labels"][:].data.tobytes() == b"".join(label.ljust(2, b"\0") for label in LABELS)
    with xarray.open_dataset("mnt_labels/netcdf/array.nc") as dataset:
        assert list(dataset["n"].values) == NUMBERS


if sys.argv[1] == "make":
    make()
else:
    for name in "dense", "sparse":
        check(name)
    check_labels()
    check_small()
