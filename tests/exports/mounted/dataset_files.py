"""xarray opens a group in the form of TileDB-CF as the dataset from which it was written, whole or in parts, and NCO and
CDO join the parts along time."""

import sys

import numpy as np
import tiledb

RANDOM = np.random.default_rng(1)
LENGTHS = {"time": 5, "lat": 7, "lon": 12, "station": 4}
# Name, dimensions, values, attributes, and the value for missing data.
VARIABLES = [
    ("time", ["time"], np.arange(5) * 10.0, {"units": "days since 2023-01-01", "calendar": "standard"}, None),
    ("lat", ["lat"], np.linspace(-90, 90, 7), {"units": "degrees_north", "standard_name": "latitude"}, None),
    ("lon", ["lon"], np.arange(0, 360, 30, dtype="f4"), {"units": "degrees_east"}, None),
    ("t", ["time", "lat", "lon"], RANDOM.normal(size=(5, 7, 12)).astype("f4"), {"units": "K", "grid_mapping": "crs"}, -999.0),
    ("p", ["time", "lat", "lon"], RANDOM.integers(0, 99, (5, 7, 12), dtype="i2"), {"scale_factor": 0.5, "add_offset": 3.0}, None),
    ("orog", ["lat", "lon"], RANDOM.normal(size=(7, 12)), {"units": "m"}, None),
    ("height", ["station"], np.array([1, 2, 3, 4], "f4"), {}, None),
    ("count", ["station"], np.array([1, -2, 2**40, 4], "i8"), {"valid_min": -5}, None),
    ("crs", [], np.array(7, "i4"), {"grid_mapping_name": "latitude_longitude"}, None),
]
GLOBAL = {"title": "A test", "number": 5, "list": (1.0, 2.0)}


def original():
    import netCDF4

    with netCDF4.Dataset("original.nc", "w") as file:
        for key, value in GLOBAL.items():
            setattr(file, key, np.array(value) if key == "list" else value)
        for name, length in LENGTHS.items():
            file.createDimension(name, None if name == "time" else length)
        for name, dimensions, values, attributes, missing in VARIABLES:
            variable = file.createVariable(name, values.dtype, dimensions, fill_value=missing)
            variable.set_auto_maskandscale(False)
            variable.setncatts(attributes)
            variable[...] = values


def group(folder, arrays, suffix, unlimited):
    """Writes a group; `arrays` has the names of the members and of the variables in each."""
    tiledb.group_create(folder)
    known = {name: (dimensions, values, attributes, missing) for name, dimensions, values, attributes, missing in VARIABLES}
    with tiledb.Group(folder, "w") as members:
        for key, value in GLOBAL.items():
            members.meta[key] = value
        for member, names in arrays.items():
            uri = f"{folder}/{member}"
            dimensions = known[names[0]][0] or ["__scalars"]
            ends = [{"time": unlimited, "__scalars": 1}.get(name) or LENGTHS[name] for name in dimensions]
            domain = tiledb.Domain(*(tiledb.Dim(name, (0, end - 1), min(end, 512), dtype="u8") for name, end in zip(dimensions, ends)))
            called = {name: name + suffix if name in dimensions else name for name in names}
            attributes = [tiledb.Attr(called[name], dtype=known[name][1].dtype, fill=known[name][3]) for name in names]
            tiledb.Array.create(uri, tiledb.ArraySchema(domain, attributes))
            shape = [LENGTHS.get(name, 1) for name in dimensions]
            with tiledb.open(uri, "w") as array:
                box = tuple(slice(0, length) for length in shape)
                array[box] = {called[name]: known[name][1].reshape(shape) for name in names}
                for name in names:
                    for key, value in known[name][2].items():
                        array.meta[f"__tiledb_attr.{called[name]}.{key}"] = value
            members.add(member, name=member, relative=True)


CALENDARS = ["standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian"]
# Days since 1999-11-25 06:00, and a number for each.
DAYS = np.arange(900)


def calendar_group(calendar):
    """Writes a group with one variable along a time of a calendar."""
    folder = f"in_{calendar}"
    tiledb.group_create(folder)
    with tiledb.Group(folder, "w") as members:
        for name, values in ("time", DAYS + 0.25), ("t", DAYS.astype("f4")):
            called = "time.data" if name == "time" else name
            domain = tiledb.Domain(tiledb.Dim("time", (0, len(DAYS) - 1), len(DAYS), dtype="u8"))
            attribute = tiledb.Attr(called, dtype=values.dtype)
            tiledb.Array.create(f"{folder}/{name}", tiledb.ArraySchema(domain, [attribute]))
            with tiledb.open(f"{folder}/{name}", "w") as array:
                array[:] = values
                if name == "time":
                    array.meta["__tiledb_attr.time.data.units"] = "days since 1999-11-25"
                    array.meta["__tiledb_attr.time.data.calendar"] = calendar
            members.add(name, name=name, relative=True)


def check_calendar(calendar):
    """Checks what dates of a calendar select, which xarray looks up with cftime."""
    import os

    import xarray

    folder = f"mnt_in_{calendar}"
    times = xarray.coders.CFDatetimeCoder(use_cftime=True)
    wanted = xarray.open_dataset(f"{folder}/netcdf/group.nc", decode_times=times)
    assert wanted["time"].dt.calendar == calendar
    for first, last in ("2001-02", "2001-02"), ("2000-02-28", "2000-03-01"), ("2000", "2000"), ("1999-11-25", "2000-01-01"):
        selection = first if first == last else f"{first}..{last}"
        with xarray.open_dataset(f"{folder}/slice/time={selection}/netcdf/group.nc", decode_times=times) as found:
            xarray.testing.assert_identical(found, wanted.sel(time=slice(first, last)))
    for date, has_it in [
        ("2000-02-29", calendar != "noleap"),
        ("2001-02-29", calendar in ("all_leap", "360_day")),
        ("2001-02-30", calendar == "360_day"),
        ("2001-01-31", calendar != "360_day"),
        ("2001-03-01T06", True),
        ("2001-03-01T07", False),
    ]:
        assert os.path.exists(f"{folder}/slice/time={date}/netcdf") == has_it, (calendar, date)


# Sparse arrays whose dimensions are the coordinates, and the variables in each.
POINTS = {"array1": ["orog"], "array3": ["t", "p"]}


def points_of(member, names, cells, folder, members):
    """Writes a sparse array as TileDB-CF does with `coords_to_dims`. `cells` selects the cells that it has, in a grid."""
    known = {name: (dimensions, values, attributes, missing) for name, dimensions, values, attributes, missing in VARIABLES}
    along = known[names[0]][0]
    coordinates = [known[name][1] for name in along]
    dimensions = []
    for name, values in zip(along, coordinates):
        most = np.finfo(values.dtype).max
        dimensions.append(tiledb.Dim(name, (-most, most), dtype=values.dtype))
    attributes = [tiledb.Attr(name, dtype=known[name][1].dtype, fill=known[name][3]) for name in names]
    schema = tiledb.ArraySchema(tiledb.Domain(*dimensions), attributes, sparse=True)
    tiledb.Array.create(f"{folder}/{member}", schema)
    grid = [one[cells(one)] for one in np.meshgrid(*coordinates, indexing="ij")]
    with tiledb.open(f"{folder}/{member}", "w") as array:
        array[tuple(grid)] = {name: known[name][1][cells(known[name][1])] for name in names}
        for kind, described in ("dim", along), ("attr", names):
            for name in described:
                for key, value in known[name][2].items():
                    array.meta[f"__tiledb_{kind}.{name}.{key}"] = value
    members.add(member, name=member, relative=True)


def every_cell(values):
    return np.ones(values.shape, bool)


def not_every_fifth(values):
    """Cells of a grid without every fifth, but some of each line and column."""
    return np.arange(values.size).reshape(values.shape) % 5 != 0


def points_group(folder, cells):
    """Writes a group as TileDB-CF does with `coords_to_dims`: variables along coordinates are points."""
    group(folder, {"array0": ["crs"], "array2": ["height", "count"]}, ".data", 10_000)
    with tiledb.Group(folder, "w") as members:
        for member, names in POINTS.items():
            points_of(member, names, cells, folder, members)


WIND = RANDOM.normal(size=(5, 4)).astype("f4")


def stations_group(folder, last):
    """Writes points along coordinates and a dimension without any, which another array has, too."""
    group(folder, {"array0": ["height", "count"]}, ".data", 10_000)
    dimensions = (tiledb.Dim("time", (-1e300, 1e300), dtype="f8"), tiledb.Dim("station", (0, last), dtype="u8"))
    schema = tiledb.ArraySchema(tiledb.Domain(*dimensions), [tiledb.Attr("wind", dtype="f4")], sparse=True)
    tiledb.Array.create(f"{folder}/array1", schema)
    with tiledb.open(f"{folder}/array1", "w") as array:
        times, stations = np.meshgrid(np.arange(5) * 10.0, np.arange(4, dtype="u8"), indexing="ij")
        array[times.ravel(), stations.ravel()] = WIND.ravel()
        array.meta["__tiledb_dim.time.units"] = "days since 2023-01-01"
    with tiledb.Group(folder, "w") as members:
        members.add("array1", name="array1", relative=True)


def check_stations():
    """Checks that a dimension without coordinates is one of all arrays, if its domain is the same."""
    import os

    import xarray

    for found in xarray.open_dataset("mnt_stations/netcdf/group.nc"), xarray.open_zarr("mnt_stations/zarr").load():
        assert (found["wind"].values == WIND).all() and found["wind"].dims == ("time", "station")
        assert dict(found.sizes) == {"time": 5, "station": 4} and "station" not in found.variables
        assert (found["height"].values == [1, 2, 3, 4]).all() and str(found["time"].values[1])[:10] == "2023-01-11"
    assert not os.path.exists("mnt_unlike/netcdf")


def scattered_group(folder):
    """Writes points that lie on no grid."""
    tiledb.group_create(folder)
    dimensions = (tiledb.Dim(name, (-1e9, 1e9), dtype="f8") for name in ("lat", "lon"))
    schema = tiledb.ArraySchema(tiledb.Domain(*dimensions), [tiledb.Attr("t", dtype="f4")], sparse=True)
    tiledb.Array.create(f"{folder}/stations", schema)
    with tiledb.open(f"{folder}/stations", "w") as array:
        places = np.arange(2000.0)
        array[places, places] = np.arange(2000, dtype="f4")
        array.meta["__tiledb_attr.t.units"] = "K"
    with tiledb.Group(folder, "w") as members:
        members.add("stations", name="stations", relative=True)


def check_scattered(folder):
    """Checks that points on no grid are only points."""
    import os

    import xarray

    assert not {"netcdf", "zarr"} & set(os.listdir(folder))
    try:
        open(f"{folder}/netcdf/group.nc").close()
        raise AssertionError("points on no grid became one")
    except OSError:
        with open(f"{folder}/.tilefs/errors.txt") as errors:
            assert "2000 points lie on no grid: it would have 2000 x 2000 cells" in errors.read()
    points = xarray.open_zarr(f"{folder}/zarr/stations").load()
    assert (points["t"].values == np.arange(2000)).all() and points["t"].attrs["units"] == "K"


def check_points(folder):
    """Checks the grids that variables become whose points have the coordinates of a dataset."""
    import os

    import xarray

    for decode in True, False:
        wanted = xarray.open_dataset("original.nc", decode_cf=decode)
        for file in "netcdf/group.nc", "netcdf4/group.nc":
            xarray.testing.assert_identical(xarray.open_dataset(f"{folder}/{file}", decode_cf=decode), wanted)
        xarray.testing.assert_identical(xarray.open_zarr(f"{folder}/zarr", decode_cf=decode).load(), wanted)
    # Nothing is read for a listing.
    assert not {"netcdf", "zarr"} & set(os.listdir(folder))
    wanted = xarray.open_dataset("original.nc")
    for selection, part in [
        ("time=2023-01", {"time": slice("2023-01", "2023-01")}),
        ("lat=-30..60,lon=90..200", {"lat": slice(-30, 60), "lon": slice(90, 200)}),
    ]:
        for found in (
            xarray.open_dataset(f"{folder}/slice/{selection}/netcdf/group.nc"),
            xarray.open_zarr(f"{folder}/slice/{selection}/zarr").load(),
        ):
            xarray.testing.assert_identical(found, wanted.sel(part))


def check_holes(folder):
    """Checks variables some of whose cells have no point."""
    import xarray

    wanted = xarray.open_dataset("original.nc")
    for found in (
        xarray.open_dataset(f"{folder}/netcdf/group.nc"),
        xarray.open_dataset(f"{folder}/netcdf4/group.nc"),
        xarray.open_zarr(f"{folder}/zarr").load(),
    ):
        for name in "t", "p", "orog":
            values = wanted[name].where(not_every_fifth(wanted[name].values))
            xarray.testing.assert_equal(found[name], values.astype(found[name].dtype))
    # Points of one array, without the group.
    points = xarray.open_dataset(f"{folder}/array3/netcdf/array.nc")
    grid = points.set_index(cells=["time", "lat", "lon"]).unstack("cells")
    xarray.testing.assert_equal(grid["t"], found["t"].drop_vars("crs", errors="ignore"))


def make():
    points_group("points", every_cell)
    points_group("holes", not_every_fifth)
    scattered_group("scattered")
    stations_group("stations", 3)
    stations_group("unlike", 9)
    for calendar in CALENDARS:
        calendar_group(calendar)
    together = {"array0": ["crs"], "array1": ["lat"], "array2": ["orog"], "array3": ["lon"], "array4": ["height", "count"]}
    group("collected", together | {"array5": ["time"], "array6": ["t", "p"]}, ".data", 10_000)
    group("each", {"scalars" if name == "crs" else name: [name] for name, *_ in VARIABLES}, ".data", 10_000)
    group("xarray", {name: [name] for name, *_ in VARIABLES}, "_", 2**32 - 512)
    # Arrays whose dimensions differ.
    tiledb.group_create("other")
    with tiledb.Group("other", "w") as members:
        for name, end in ("a", 9), ("b", 99):
            tiledb.from_numpy(f"other/{name}", np.arange(end))
            members.add(name, name=name, relative=True)
    print("collected each xarray other points holes scattered stations unlike", *(f"in_{calendar}" for calendar in CALENDARS))


def check_files(folder):
    """Checks the record dimension, and the file for h5py."""
    import h5py
    import netCDF4

    with netCDF4.Dataset(f"{folder}/netcdf/group.nc") as file:
        assert file.data_model.startswith("NETCDF3") and file.dimensions["time"].isunlimited() and len(file.dimensions["time"]) == 5
        assert not file.dimensions["lat"].isunlimited()
    with netCDF4.Dataset(f"{folder}/netcdf4/group.nc") as file:
        assert file.data_model == "NETCDF4" and file.dimensions["time"].isunlimited() and len(file.dimensions["time"]) == 5
        assert not file.dimensions["lat"].isunlimited() and file["orog"].chunking() == "contiguous"
    with h5py.File(f"{folder}/netcdf4/group.nc") as file:
        assert file["t"].maxshape == (None, 7, 12) and file["lat"].maxshape == (7,)
    with h5py.File(f"{folder}/hdf5/group.h5") as file:
        for name, _, values, *_ in VARIABLES:
            assert file[name].dtype == values.dtype and (file[name][...] == values).all(), name
            assert file[name].maxshape == file[name].shape and file[name].chunks is None, name


def check_parts(folder):
    """Checks parts of all variables."""
    import os

    import xarray

    wanted = xarray.open_dataset("original.nc")
    for selection, part in [
        ("time=2023-01-11..2023-01-31,lat=-30..30", wanted.sel(time=slice("2023-01-11", "2023-01-31"), lat=slice(-30, 30))),
        ("time=2023-02", wanted.sel(time=slice("2023-02", "2023-02"))),
        ("station=1..2,lon=270..", wanted.isel(station=slice(1, 3)).sel(lon=slice(270, None))),
        ("lat=30+90", wanted.sel(lat=[30, 90])),
    ]:
        for file in "netcdf/group.nc", "netcdf4/group.nc":
            with xarray.open_dataset(f"{folder}/slice/{selection}/{file}") as found:
                xarray.testing.assert_identical(found, part)
        xarray.testing.assert_identical(xarray.open_zarr(f"{folder}/slice/{selection}/zarr").load(), part)
    for wrong in "2023-01", "time=1999", "time=x", "altitude=3", "":
        assert not os.path.exists(f"{folder}/slice/{wrong}/netcdf"), wrong


def join(program):
    """Joins parts along time with NCO or CDO, from the files of both formats of netCDF."""
    import subprocess

    import xarray

    original()
    wanted = xarray.open_dataset("original.nc")
    for name in "collected", "each", "xarray":
        for file in "netcdf/group.nc", "netcdf4/group.nc":
            parts = [f"mnt_{name}/slice/time={time}/{file}" for time in ("..2023-01-15", "2023-01-21", "2023-01-31..")]
            if program == "ncrcat":
                subprocess.run(["ncrcat", "-O", *parts, "joined.nc"], check=True)
                with xarray.open_dataset("joined.nc") as joined:
                    xarray.testing.assert_equal(joined, wanted)
                    assert joined.encoding["unlimited_dims"] == {"time"}
            else:
                subprocess.run(["cdo", "-s", "-O", "-f", "nc4", "mergetime", *parts, "joined.nc"], check=True)
                with xarray.open_dataset("joined.nc") as joined:
                    xarray.testing.assert_equal(joined["t"].drop_vars("crs", errors="ignore"), wanted["t"].drop_vars("crs", errors="ignore"))
    print(6)


def check():
    import os

    import xarray
    import zarr

    original()
    for decode in True, False:
        wanted = xarray.open_dataset("original.nc", decode_cf=decode)
        for name in "collected", "each", "xarray":
            xarray.testing.assert_identical(xarray.open_dataset(f"mnt_{name}/netcdf4/group.nc", decode_cf=decode), wanted)
            xarray.testing.assert_identical(xarray.open_dataset(f"mnt_{name}/netcdf/group.nc", decode_cf=decode), wanted)
            xarray.testing.assert_identical(xarray.open_zarr(f"mnt_{name}/zarr", decode_cf=decode).load(), wanted)
            second = xarray.open_zarr(f"mnt_{name}/zarr2", decode_cf=decode, zarr_format=2)
            xarray.testing.assert_identical(second.load(), wanted)
    for name in "collected", "each", "xarray":
        check_files(f"mnt_{name}")
        check_parts(f"mnt_{name}")
    check_points("mnt_points")
    check_holes("mnt_holes")
    check_scattered("mnt_scattered")
    check_stations()
    for calendar in CALENDARS:
        check_calendar(calendar)
    assert {"netcdf", "zarr"} <= set(os.listdir("mnt_each")) and "netcdf4" not in os.listdir("mnt_each")
    assert not {"netcdf", "zarr", "slice"} & set(os.listdir("mnt_other")) and not os.path.exists("mnt_other/slice")
    assert not os.path.exists("mnt_other/netcdf") and "data" in zarr.open_group("mnt_other/zarr/a", mode="r")
    print(10 + 4 * len(CALENDARS))


{"make": make, "check": check}.get(sys.argv[1], lambda: join(sys.argv[1]))()
