"""zarr-python opens zarr/ of the parts of an array: nonempty/, slice/, islice/ and by-row/. All values equal those that
libtiledb reads."""

import sys

import numpy as np
import tiledb
import zarr

ROWS, COLUMNS = slice(37, 91), slice(1_000_003, 1_000_040)


def make():
    # The domain is much larger than the written cells, which begin and end within tiles.
    domain = tiledb.Domain(tiledb.Dim("y", (0, 9_999), 16, dtype="i4"), tiledb.Dim("x", (0, 9_999_999), 10, dtype="i4"))
    attributes = [tiledb.Attr("v", dtype="f4"), tiledb.Attr("t", dtype="U0", var=True), tiledb.Attr("n", dtype="i2", nullable=True)]
    tiledb.Array.create("far", tiledb.ArraySchema(domain, attributes))
    random = np.random.default_rng(1)
    shape = (ROWS.stop - ROWS.start, COLUMNS.stop - COLUMNS.start)
    texts = np.array([["é" * (i % 4) + str(i) for i in range(k, k + shape[1])] for k in range(shape[0])], dtype="O")
    null = random.integers(0, 4, shape, dtype="u1") > 0
    with tiledb.open("far", "w") as array:
        numbers = np.ma.masked_array(random.integers(-9, 9, shape, dtype="i2"), ~null)
        array[ROWS, COLUMNS] = {"v": random.random(shape, dtype="f4"), "t": texts, "n": numbers}
    domain = tiledb.Domain(*(tiledb.Dim(name, (0, 99), 7, dtype="i8") for name in "ij"))
    tiledb.Array.create("cells", tiledb.ArraySchema(domain, [tiledb.Attr("v", dtype="i4")], sparse=True))
    places = random.permutation(10_000)[:500]
    with tiledb.open("cells", "w") as array:
        array[places // 100, places % 100] = {"v": places.astype("i4")}
    print("far cells")


def same(group, expected, what):
    for name, values in expected.items():
        got = group[name][...]
        assert got.shape == values.shape and np.array_equal(got, values.astype(got.dtype)), f"{what}: {name}"


def cells(rows, columns):
    """Returns what libtiledb reads from a box of `far`, and which nullable cells are not null."""
    with tiledb.open("far") as array:
        read = array.query(attrs=["v", "t", "n"])[rows, columns]
    masked = read.pop("n")
    read["n_valid"] = ~np.ma.getmaskarray(masked)
    return read, masked


def check_box(path, rows, columns, strides=(1, 1)):
    step = tuple(slice(None, None, stride) for stride in strides)
    read, masked = cells(rows, columns)
    expected = {name: values[step] for name, values in read.items()}
    expected["y"], expected["x"] = np.arange(rows.start, rows.stop)[step[0]], np.arange(columns.start, columns.stop)[step[1]]
    group = zarr.open_group(f"mnt_far/{path}/zarr", mode="r")
    same(group, expected, path)
    valid = expected["n_valid"]
    assert valid.any() and np.array_equal(group["n"][...][valid], masked.data[step][valid]), path


def check():
    check_box("nonempty", ROWS, COLUMNS)
    for within in "slice/40..59,1000005..1000030", "nonempty/slice/40..59,1000005..1000030":
        check_box(within, slice(40, 60), slice(1_000_005, 1_000_031))
    check_box("slice/40..60..3,1000005..1000030", slice(40, 61), slice(1_000_005, 1_000_031), (3, 1))
    check_box("nonempty/islice/-5:,:7", slice(ROWS.stop - 5, ROWS.stop), slice(COLUMNS.start, COLUMNS.start + 7))
    with tiledb.open("cells") as array:
        for path, order, box in ("by-row", "C", None), ("slice/10..39,5..60", "G", (10, 39, 5, 60)), ("by-row/slice/10..39,5..60", "C", (10, 39, 5, 60)):
            rows, columns = ((box[0], box[1]), (box[2], box[3])) if box else ((0, 99), (0, 99))
            expected = array.query(order=order).multi_index[slice(*rows), slice(*columns)]
            group = zarr.open_group(f"mnt_cells/{path}/zarr", mode="r")
            same(group, expected, path)
            assert len(expected["v"]) > 50
    print(8)


make() if sys.argv[1] == "make" else check()
