"""The parts of long tables: each alone, and all together, have the rows of the whole table, as read by text tools,
DuckDB and Polars. `parquet/_metadata` has the row groups of all parts, for pyarrow and Dask.

`make` writes tables of over a million rows: fragments whose cells interleave, the same with overwritten cells, a single
fragment, and a line. `check` reads them through a mount.
"""

import glob
import os
import subprocess
import sys

import dask.dataframe
import duckdb
import numpy as np
import polars
import pyarrow.dataset
import pyarrow.parquet
import tiledb

COLUMNS, BANDS = 400_000, 3
MOST = 1 << 20
SMALL = tiledb.FilterList([tiledb.DoubleDeltaFilter(), tiledb.ZstdFilter()])


def write_bands(name, again):
    dims = [tiledb.Dim("y", domain=(0, BANDS - 1), tile=BANDS, dtype="i8", filters=SMALL),
            tiledb.Dim("x", domain=(0, COLUMNS - 1), tile=1000, dtype="i8", filters=SMALL)]
    attrs = [tiledb.Attr("v", dtype="i8", filters=SMALL), tiledb.Attr("s", dtype="ascii", var=True, filters=[tiledb.ZstdFilter()])]
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True, capacity=5000))
    x = np.arange(COLUMNS)
    for band in range(BANDS):
        with tiledb.open(name, "w") as array:
            array[np.full(COLUMNS, band), x] = {"v": band * COLUMNS + x, "s": np.array(["a", "bc", ""], "S2")[x % 3]}
    if again:
        x = np.arange(0, COLUMNS, 7)
        with tiledb.open(name, "w") as array:
            array[np.full(len(x), 1), x] = {"v": -x, "s": np.full(len(x), b"new")}


def make():
    write_bands("bands", again=False)
    write_bands("again", again=True)
    rows = np.arange(1_200_000)
    dim = tiledb.Dim("i", domain=(0, 10**9), tile=10**6, dtype="i8", filters=SMALL)
    attr = tiledb.Attr("v", dtype="i8", filters=SMALL)
    tiledb.Array.create("alone", tiledb.ArraySchema(tiledb.Domain(dim), [attr], sparse=True, capacity=3000))
    with tiledb.open("alone", "w") as array:
        array[rows * 3] = rows
    dim = tiledb.Dim("i", domain=(0, len(rows) - 1), tile=10_000, dtype="i8", filters=SMALL)
    tiledb.Array.create("line", tiledb.ArraySchema(tiledb.Domain(dim), [attr]))
    with tiledb.open("line", "w") as array:
        array[:] = rows


def shell(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def check_metadata(folder, rows, total, value):
    """Checks the row groups of all parts in one file."""
    assert "_metadata" not in os.listdir(folder), folder
    metadata = pyarrow.parquet.read_metadata(f"{folder}/_metadata")
    own = [metadata.row_group(number).to_dict() for number in range(metadata.num_row_groups)]
    for one in (column for group in own for column in group["columns"]):
        one["file_path"] = ""
    parts = [pyarrow.parquet.read_metadata(part) for part in sorted(glob.glob(f"{folder}/parts/*.parquet"))]
    assert own == [part.row_group(number).to_dict() for part in parts for number in range(part.num_row_groups)], folder
    assert metadata.num_rows == rows and metadata.schema.equals(parts[0].schema), folder
    table = pyarrow.dataset.parquet_dataset(f"{folder}/_metadata")
    assert sorted(table.files) == sorted(glob.glob(f"{folder}/parts/*.parquet")), table.files
    assert table.count_rows() == rows and pyarrow.compute.sum(table.to_table(columns=["v"])["v"]).as_py() == total
    is_value = pyarrow.dataset.field("v") == value
    groups = [group for part in table.get_fragments(filter=is_value) for group in part.subset(filter=is_value).row_groups]
    assert 1 <= len(groups) < metadata.num_row_groups and table.count_rows(filter=is_value) >= 1, (folder, len(groups))
    # Without it, the rows of the whole table and those of the parts would be read.
    frame = dask.dataframe.read_parquet(folder)
    assert len(frame) == rows and int(frame["v"].sum().compute()) == total, folder


def check(folder, name):
    assert ("rows_at_most" in open(f"{folder}/schema.json").read()) == (name == "again")
    with tiledb.open(name) as array:
        cells = array.query(order="U")[:] if array.schema.sparse else array.query(coords=True)[:]
        dims = [array.dim(number).name for number in range(array.ndim)]
    rows, total = len(cells["v"]), int(cells["v"].sum())
    parts = sorted(glob.glob(f"{folder}/text/parts/*.tsv"))
    names = [os.path.basename(part) for part in parts]
    assert len(parts) >= 2 and names[0] == "000000000000000.tsv", names
    assert names == sorted(os.path.basename(part).replace("parquet", "tsv") for part in glob.glob(f"{folder}/parquet/parts/*"))
    assert sorted(os.listdir(f"{folder}/arrow/parts")) == [part.replace("tsv", "arrow") for part in names]

    # Each part alone, the last one first.
    lengths, sums, before = [], [], []
    for part in reversed(parts):
        table = polars.read_csv(part, separator="\t", schema_overrides={"v": polars.Int64})
        assert 0 < len(table) <= MOST and table.columns[: len(dims)] == dims
        lengths.insert(0, len(table))
        sums.append(int(table["v"].sum()))
        before.insert(0, int(os.path.basename(part).split(".")[0]))
    assert sum(lengths) == rows and sum(sums) == total, (name, sum(lengths), rows)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    # The name of a part is the number of rows before it; if cells were overwritten, the maximum number.
    assert (np.array(before) == starts).all() if name != "again" else (np.array(before) >= starts).all()

    # All together.
    bare = f"{folder}/text/parts-without-header/*.tsv"
    assert shell(f"cat {bare} | wc -l").split() == [str(rows)]
    whole = subprocess.run(f"tail -n +2 {folder}/text/cells.tsv | md5sum; cat {bare} | md5sum", shell=True, check=True, capture_output=True, text=True)
    assert len(set(whole.stdout.split("\n")[:2])) == 1, name
    counted = shell(f"printf '%s\\0' {folder}/text/parts/*.tsv | xargs -0 -n 1 -P 4 awk 'FNR > 1 {{n++}} END {{print n}}'")
    assert sum(map(int, counted.split())) == rows
    assert shell(f"head -1 {folder}/text/parts/{before[1]:015}.csv").rstrip() == ",".join([*dims, *(c for c in ("v", "s") if c in cells)])
    glob_of_parquet = f"{folder}/parquet/parts/*.parquet"
    assert duckdb.sql(f"SELECT count(*), sum(v) FROM read_parquet('{glob_of_parquet}')").fetchall() == [(rows, total)]
    assert polars.scan_parquet(glob_of_parquet).select(polars.len(), polars.sum("v")).collect().row(0) == (rows, total)
    value = int(cells["v"][rows * 2 // 3])
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{glob_of_parquet}') WHERE v = {value}").fetchall()[0][0] == int((cells["v"] == value).sum())
    check_metadata(f"{folder}/parquet", rows, total, value)
    arrow = [polars.read_ipc(part)["v"] for part in sorted(glob.glob(f"{folder}/arrow/parts/*.arrow"))]
    assert (np.concatenate(arrow) == polars.read_parquet(glob_of_parquet)["v"].to_numpy()).all()
    for wrong in ("000000000000001.tsv", "0.tsv", f"{before[1]:015}.txt", "x.tsv", f"{before[1]:016}.tsv"):
        assert not os.path.exists(f"{folder}/text/parts/{wrong}"), wrong
    # `python3` in the commands is the one that has the packages.
    path = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    readme = open(f"{folder}/README.txt").read()
    for command in [line.strip() for line in readme.split("\n") if "/parts" in line]:
        text = subprocess.run(command, shell=True, check=True, capture_output=True, text=True, cwd=folder, env=path).stdout
        assert text, command
        if "wc" in command or "NR}" in command or "duckdb" in command:
            assert str(rows) in text, (command, text)
    # After all parts have been read, the rows are counted.
    assert f" {rows} " in readme, readme


NAMES = ["bands", "again", "alone", "line"]
if sys.argv[1] == "make":
    make()
    print(*NAMES)
else:
    for one in NAMES:
        check(f"mnt_{one}", one)
