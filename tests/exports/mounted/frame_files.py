"""pandas reads the frames that TileDB-Py's from_pandas stored, from Parquet and Arrow files of mounted arrays: with
their index, nullable types, and categories. If this TileDB-Py works with this pandas, they equal the frames of its
open_dataframe.

`make` stores random frames; `check` reads them once they are mounted."""

import sys

import numpy as np
import pandas
import tiledb
import tiledb.dataframe_

FRAMES = 8
WORKS = int(pandas.__version__.split(".")[0]) < 3
# Skip the version check: later versions of pandas also have the functions that the frames below need.
tiledb.dataframe_.check_dataframe_deps = lambda: None


def frame(seed):
    """Returns a frame of random columns of all types that TileDB-Py stores, with one of each kind of index."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 200))
    gone = lambda: random.random(rows) < 0.3
    days = pandas.Timestamp("2020-02-29").value + np.cumsum(random.integers(1, 10**15, rows))
    words = random.choice(np.array(["", "a", "ä", "word"], object), rows)
    kinds = {
        "int64": random.integers(-2**63, 2**63 - 1, rows),
        "uint8": random.integers(0, 256, rows, "u1"),
        "Int64": pandas.array(random.integers(-2**62, 2**62, rows)),
        "UInt16": pandas.array(random.integers(0, 2**16, rows, "u2")),
        "Int8": pandas.array(random.integers(-128, 127, rows, "i1")),
        "float": np.where(gone(), np.nan, random.normal(size=rows)),
        "Float64": pandas.array(random.normal(size=rows), "Float64"),
        "bool": random.random(rows) < 0.5,
        "boolean": pandas.array(random.random(rows) < 0.5, "boolean"),
        "word": words,
        "blob": np.array([word.encode("latin-1") for word in words], object),
        "time": days.astype("M8[ns]"),
        "kind": pandas.Categorical(random.choice(["x", "y", "z"], rows), ["z", "y", "x"], ordered=bool(seed % 2)),
        "level": pandas.Categorical(random.choice([30, 10, 20], rows), [10, 20, 30, 40]),
    }
    for name in ("Int64", "UInt16", "Int8", "Float64", "boolean"):
        kinds[name][gone()] = pandas.NA
    names = random.permutation(list(kinds))[: int(random.integers(3, len(kinds) + 1))] if seed >= 4 else list(kinds)
    numbers = np.sort(random.choice(10**6, rows, replace=False))
    index = [
        None,
        pandas.Index(numbers, name="number"),
        pandas.DatetimeIndex(days.astype("M8[ns]"), name="date"),
        pandas.MultiIndex.from_arrays([numbers, np.array([f"s{n}" for n in numbers], object)], names=["number", "site"]),
    ][seed % 4]
    columns = {name: pandas.Series(kinds[name], index, dtype=object if name in ("word", "blob") else None) for name in names}
    return pandas.DataFrame(columns, index)


def make():
    for seed in range(FRAMES):
        stored = frame(seed)
        tiledb.from_pandas(f"frame{seed}", stored, sparse=seed % 4 != 0, debug=False)
        print(f"frame{seed}")


def compare(read, wanted, where):
    assert read.index.names == wanted.index.names, f"{where}: {read.index.names}, not {wanted.index.names}"
    read, wanted = read.sort_index(), wanted.sort_index()
    # From pandas 3 on, texts have another type.
    texts = [name for name in wanted.columns if name == "word"]
    read, wanted = (one.astype({name: object for name in texts}) for one in (read, wanted))
    pandas.testing.assert_frame_equal(read[list(wanted.columns)], wanted, check_index_type=False, check_column_type=False)
    assert list(map(str, read[list(wanted.columns)].dtypes)) == list(map(str, wanted.dtypes)), where


def check():
    for seed in range(FRAMES):
        stored, folder = frame(seed), f"mnt_frame{seed}"
        # Parquet has no dictionaries of numbers, so the column has the numbers themselves; a code may have none.
        numbers = stored.astype({name: "Int64" for name in stored.columns if name == "level"})
        found = {"Parquet": pandas.read_parquet(f"{folder}/parquet/cells.parquet"), "Arrow": pandas.read_feather(f"{folder}/arrow/cells.arrow")}
        for how, read in found.items():
            compare(read, numbers if how == "Parquet" else stored, f"{folder} by {how}, as stored")
            if WORKS:
                # open_dataframe drops the order of categories.
                if "kind" in read:
                    read["kind"] = read["kind"].cat.as_unordered()
                theirs = tiledb.open_dataframe(f"frame{seed}").astype(read.dtypes[lambda types: types.index == "level"])
                compare(read, theirs, f"{folder} by {how}, as TileDB-Py has it")


make() if sys.argv[1] == "make" else check()
