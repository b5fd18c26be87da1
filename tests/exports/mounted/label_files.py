"""xarray and SciPy look cells up by the dimension labels of an array, and so do slices. All values are those that were
written through TileDB's labels."""

import sys

import numpy as np
import tiledb

LAT, LON = np.linspace(90, -90, 37), np.arange(-180, 180, 10.0)
TIME = np.array(["2023-01-05", "2023-01-20", "2023-02-03", "2023-02-18", "2023-03-01", "2023-03-15"], "M8[D]")
LEVEL = np.array([1, 3, 4, 7, 8, 9], "i4")
GENES = np.array(["A", "BRCA1", "EGFR", "TP53", "Z"], "S")
VALUES = np.random.default_rng(1).normal(size=(6, 37, 36)).astype("f4")


def create(name, dimensions, attribute, labels, sparse=False):
    """Creates an array; `labels` has the dimension, name, order and type of each label."""
    domain = tiledb.Domain(*(tiledb.Dim(name, (0, length - 1), tile, dtype="i4") for name, length, tile in dimensions))
    schemas = {}
    for dimension, label, order, dtype in labels:
        schemas.setdefault(dimension, {})[label] = tiledb.DimLabelSchema(order, np.dtype(dtype), np.dtype("i4"), 4)
    tiledb.Array.create(name, tiledb.ArraySchema(domain, [attribute], dim_labels=schemas, sparse=sparse))


def make():
    labels = [(0, "time", "increasing", "M8[D]"), (0, "level", "increasing", "i4")]
    labels += [(1, "lat", "decreasing", "f8"), (2, "lon", "increasing", "f8")]
    create("climate", [("z", 6, 4), ("y", 37, 10), ("x", 36, 16)], tiledb.Attr("t", dtype="f4"), labels)
    with tiledb.open("climate", "w") as array:
        array[:] = {"t": VALUES, "time": TIME, "level": LEVEL, "lat": LAT, "lon": LON}
        array.meta["__tiledb_dim.lat.long_name"] = "from pole to pole"
    create("genes", [("g", 5, 2)], tiledb.Attr("n", dtype="i4"), [(0, "gene", "increasing", "S")])
    with tiledb.open("genes", "w") as array:
        array[:] = {"n": np.arange(5, dtype="i4"), "gene": GENES}
    # TileDB neither writes nor queries the labels of a sparse array through the array itself.
    labels = [(0, "lat", "decreasing", "f8"), (0, "code", "increasing", "S"), (0, "day", "increasing", "M8[D]")]
    create("stations", [("s", 10, 3)], tiledb.Attr("v", dtype="i4"), labels, sparse=True)
    written = {"lat": (0, LAT[:10]), "code": (0, np.array([f"s{number}" for number in range(7)], "S")), "day": (2, TIME)}
    for label, (first, values) in written.items():
        with tiledb.open(tiledb.ArraySchema.load("stations").dim_label(label).uri, "w") as array:
            array[first : first + len(values)] = values
    with tiledb.open("stations", "w") as array:
        array[[1, 4, 7]] = {"v": np.array([10, 40, 70], "i4")}
    print("climate genes stations")


def same(data, rows, columns, times=slice(None)):
    expected = {"time": TIME[times], "lat": LAT[rows], "lon": LON[columns], "level": LEVEL[times], "t": VALUES[times, rows, columns]}
    for name, values in expected.items():
        got = data[name].values
        assert got.shape == values.shape and (got.astype(values.dtype) == values).all(), name
    assert data["t"].dims == ("time", "lat", "lon") and data["level"].dims == ("time",) and "level" in data.coords
    units = {name: data[name].attrs["units"] for name in ("lat", "lon")}
    assert units == {"lat": "degrees_north", "lon": "degrees_east"}
    assert data["lat"].attrs["long_name"] == "from pole to pole"
    assert not any(key.startswith("__tiledb") for key in data.attrs)


def check():
    import xarray

    def formats(folder):
        yield xarray.open_dataset(f"{folder}/netcdf/array.nc")
        yield xarray.open_zarr(f"{folder}/zarr")

    everything, north, february = slice(None), slice(8, 11), slice(2, 4)
    for data in formats("mnt_climate"):
        same(data, everything, everything)
        same(data.sel(lat=slice(50, 40), lon=slice(0, 20), time="2023-02"), north, slice(18, 21), february)
    for selection in "lat=40..50,time=2023-02", "time=2023-02,lat=50+45+40":
        for data in formats(f"mnt_climate/slice/{selection}"):
            same(data, north, everything, february)
    for data in formats("mnt_climate/slice/level=4..8"):
        same(data, everything, everything, slice(2, 5))
    values = np.fromfile("mnt_climate/slice/lat=45,lon=-180..-161/t.f32", "f4").reshape(6, 1, 2)
    assert (values == VALUES[:, 9:10, :2]).all()
    for data in formats("mnt_genes"):
        assert [int(data["n"].sel(gene=gene)) for gene in ("BRCA1", "Z")] == [1, 4]
    assert (np.fromfile("mnt_genes/slice/gene=B..F+Z/n.i32", "i4") == [1, 2, 4]).all()
    assert open("mnt_genes/text/cells.tsv").read().splitlines()[:3] == ["g\tgene\tn", "0\tA\t0", "1\tBRCA1\t1"]
    transform = open("mnt_climate/islice/0/t.vrt").read().split("<GeoTransform>")[1].split("<")[0]
    assert [float(number) for number in transform.split(",")] == [-185, 10, 0, 92.5, 0, -5]
    for selection, values in ("lat=70..90", [10, 40]), ("lat=55", [70]), ("lat=85+55..60", [10, 70]):
        assert (np.fromfile(f"mnt_stations/slice/{selection}/v.i32", "i4") == values).all(), selection
    stations_with_labels()
    print(12)


def stations_with_labels():
    """The tables of a sparse array show the labels of its rows; stations whose label was not written have none."""
    import pyarrow.ipc
    import pyarrow.parquet

    lines = ["s\tlat\tcode\tday\tv", "1\t85.0\ts1\t\t10", "4\t70.0\ts4\t2023-02-03\t40", "7\t55.0\t\t2023-03-15\t70"]
    text = open("mnt_stations/text/cells.tsv").read().splitlines()
    assert text == lines, text
    expected = [[1, 85.0, "s1", None, 10], [4, 70.0, "s4", "2023-02-03", 40], [7, 55.0, None, "2023-03-15", 70]]
    for folder, rows in ("mnt_stations", expected), ("mnt_stations/slice/lat=70..90", expected[:2]):
        for table in pyarrow.parquet.read_table(f"{folder}/parquet/cells.parquet"), pyarrow.ipc.open_file(f"{folder}/arrow/cells.arrow").read_all():
            found = table.set_column(3, "day", table["day"].cast("date32").cast("string")).to_pylist()
            assert [list(row.values()) for row in found] == rows, found


make() if sys.argv[1] == "make" else check()
