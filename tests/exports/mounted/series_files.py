"""The cells of a sparse array with one dimension lie along it: xarray selects by its coordinates, and dates have units
that netCDF's readers know. All values are those that were written."""

import sys

import numpy as np
import tiledb

DAYS = np.datetime64("2023-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
MOMENTS = np.datetime64("2023-01-01T00:00:00.000000001", "ns") + np.arange(40) * np.timedelta64(90, "m")
NAMES = np.array(sorted(f"gene{number}" for number in range(40)), "S")
VALUES = np.arange(40) * 0.5


def create(name, dimension, coordinates, duplicates):
    schema = tiledb.ArraySchema(tiledb.Domain(dimension), [tiledb.Attr("v", dtype="f8")], sparse=True, allows_duplicates=duplicates)
    tiledb.Array.create(name, schema)
    # Two writes, each with every second cell.
    for half in slice(0, None, 2), slice(1, None, 2):
        with tiledb.open(name, "w") as array:
            array[coordinates[half]] = {"v": VALUES[half]}


def make():
    for name, dates in ("days", DAYS), ("moments", MOMENTS):
        domain = (np.datetime64("1990-01-01", "ns"), np.datetime64("2100-01-01", "ns"))
        create(name, tiledb.Dim("date", domain, np.timedelta64(7, "D").astype("m8[ns]"), dtype="M8[ns]"), dates, name == "days")
    create("genes", tiledb.Dim("gene", (None, None), None, dtype="ascii"), NAMES, False)
    print("days moments genes")


def check():
    import netCDF4
    import xarray

    def formats(name):
        # If duplicates are allowed, the cells of each write are together, and sorted within it.
        folder = f"mnt_{name}/by-row" if name == "days" else f"mnt_{name}"
        yield xarray.open_dataset(f"{folder}/netcdf/array.nc")
        yield xarray.open_zarr(f"{folder}/zarr")

    for name, dates, first, last in ("days", DAYS, "2023-01-05", "2023-01-10"), ("moments", MOMENTS, "2023-01-01T06", "2023-01-01T18"):
        for data in formats(name):
            assert data["v"].dims == data["date"].dims == ("date",)
            assert (data["date"].values == dates).all() and (data["v"].values == VALUES).all()
            part = data.sel(date=slice(first, last))
            wanted = (dates >= np.datetime64(first)) & (dates < np.datetime64(last) + 1)
            assert 1 < wanted.sum() < 40 and (part["v"].values == VALUES[wanted]).all()
    units = [netCDF4.Dataset(f"mnt_{name}/netcdf/array.nc")["date"].units for name in ("days", "moments")]
    assert units == ["days since 1970-01-01", "nanoseconds since 1970-01-01"]
    for data in formats("genes"):
        assert [float(data["v"].sel(gene=NAMES[number].decode())) for number in (0, 7, 39)] == [0, 3.5, 19.5]
    print(8)


make() if sys.argv[1] == "make" else check()
