"""xarray, GDAL and rasterio find in a mount what GDAL's multidimensional TileDB driver stores about an array: its
coordinate system, unit and attributes, and the coordinates, which are dimension labels.

`make` writes arrays as that driver does, `check` opens them in their mounts.
"""

import json
import subprocess
import sys

import netCDF4
import numpy as np
import rasterio
import tiledb
import xarray

HOURS, EASTINGS, NORTHINGS = np.array([700000, 700006, 700012], "i8"), 444650 + 10.0 * np.arange(7), 4640510 - 20.0 * np.arange(5)
LONGITUDES, LATITUDES = np.array([-10, -9.5, -8, -4, 2, 20]), np.array([40, 42, 45, 50.0])
DIRECTIONS = {"time": ("TEMPORAL", "FUTURE"), "level": ("VERTICAL", "UP"), "X": ("HORIZONTAL_X", "EAST"), "lon": ("HORIZONTAL_X", "EAST"), "Y": ("HORIZONTAL_Y", "SOUTH"), "lat": ("HORIZONTAL_Y", "NORTH")}


class Variable:
    """One array, whose attribute has its name; dimensions count from 0. `axes` has the coordinates along each
    dimension, or their number."""

    def __init__(self, name, axes, system, dtype="f4", fill=None, **attributes):
        self.name, self.axes, self.system, self.attributes = name, axes, system, attributes
        self.dtype, self.fill = np.dtype(dtype), fill
        self.shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in axes.values())
        self.values = (np.arange(np.prod(self.shape)).reshape(self.shape) % 251).astype(dtype)

    def make(self):
        dims = [tiledb.Dim(name=name, domain=(0, length - 1), tile=length, dtype=np.uint64) for name, length in zip(self.axes, self.shape)]
        labels = {}
        for number, (name, axis) in enumerate(self.axes.items()):
            if not isinstance(axis, int):
                order = "increasing" if axis[1] > axis[0] else "decreasing"
                labels[number] = {f"{name}_label": dims[number].create_label_schema(order, axis.dtype)}
        more = {} if self.fill is None else {"fill": self.fill}
        schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr(name=self.name, dtype=self.dtype, **more)], dim_labels=labels)
        tiledb.Array.create(self.name, schema)
        for number, (name, axis) in enumerate(self.axes.items()):
            if not isinstance(axis, int):
                self.write_label(name, axis)
        with tiledb.open(self.name, "w") as array:
            array[:] = self.values
            if self.system:
                array.meta["_CRS"] = json.dumps(rasterio.crs.CRS.from_user_input(self.system).to_dict(projjson=True))
            for key, value in self.attributes.items():
                array.meta[key] = value

    def write_label(self, name, axis):
        with tiledb.open(self.name) as array:
            label = array.schema.dim_label(f"{name}_label").uri
        with tiledb.open(label if "://" in label else f"{self.name}/{label}", "w") as array:
            array[:] = axis
            array.meta["_DIM_TYPE"], array.meta["_DIM_DIRECTION"] = DIRECTIONS[name]

    def open(self, **options):
        return xarray.open_dataset(f"mnt_{self.name}/netcdf/array.nc", engine="netcdf4", **options)


UTM = Variable("warmth", {"time": HOURS, "Y": NORTHINGS, "X": EASTINGS}, "EPSG:32616", fill=np.float32(-999), _UNIT="K", long_name="air temperature",
               standard_name="air_temperature", cell_methods="time: mean", title="a run", valid_range=np.array([-100, 400], "f4"))
DEGREES = Variable("depth", {"lat": LATITUDES, "lon": LONGITUDES}, "EPSG:4326", "i2", _UNIT="m")
BARE = Variable("bare", {"y": 4, "x": 6}, "EPSG:3035", "u1")
PLACED = Variable("placed", {"Y": NORTHINGS, "X": EASTINGS}, None, "u2")
FLIPPED = Variable("flipped", {"X": EASTINGS, "Y": NORTHINGS}, "EPSG:2263", "u2", units="kg")
LAST = Variable("last", {"Y": NORTHINGS, "X": EASTINGS, "level": np.array([1.0, 2, 4, 8, 16, 32])}, "EPSG:32616", "u2")
VARIABLES = [UTM, DEGREES, BARE, PLACED, FLIPPED, LAST]


def equal(got, expected, what):
    assert np.array_equal(got, expected), f"{what}: {got!r}, not {expected!r}"


def same_system(file, name, system):
    crs = file[file[name].grid_mapping]
    assert rasterio.crs.CRS.from_wkt(crs.crs_wkt) == rasterio.crs.CRS.from_user_input(system), crs
    return crs


def check_projected():
    with UTM.open() as file:
        warmth = file.warmth
        equal(warmth.values, UTM.values, "warmth")
        assert warmth.dims == ("time", "Y", "X") and warmth.units == "K" and warmth.cell_methods == "time: mean", warmth
        assert warmth.long_name == "air temperature" and warmth.standard_name == "air_temperature", warmth
        assert warmth.valid_range.tolist() == [-100, 400] and warmth.encoding["_FillValue"] == -999, (warmth.attrs, warmth.encoding)
        assert file.attrs == {"title": "a run", "Conventions": "CF-1.8"}, file.attrs
        for name, values in ("time", HOURS), ("Y", NORTHINGS), ("X", EASTINGS):
            equal(file[name].values, values, name)
        assert (file.time.axis, file.Y.axis, file.X.axis) == ("T", "Y", "X"), file
        assert file.X.standard_name == "projection_x_coordinate" and file.Y.units == "m", file
        crs = same_system(file, "warmth", "EPSG:32616")
        said = crs.grid_mapping_name, crs.longitude_of_central_meridian, crs.scale_factor_at_central_meridian, crs.false_easting
        assert said == ("transverse_mercator", -87, 0.9996, 500000), crs
        equal(warmth.sel(time=700006, Y=4640470).values, UTM.values[1, 2], "a row by its coordinates")
    transform = rasterio.Affine(10, 0, 444645, 0, -20, 4640520)
    for path in "warmth.vrt", "warmth.f32":
        with rasterio.open(f"mnt_warmth/{path}") as got:
            assert got.crs == rasterio.crs.CRS.from_epsg(32616) and got.transform == transform and got.nodata == -999, f"{path}: {got.profile}"
            equal(got.read(), UTM.values, path)
            assert path != "warmth.vrt" or got.units == ("K",) * 3, got.units
    with rasterio.open('netcdf:mnt_warmth/netcdf/array.nc:warmth') as got:
        assert got.transform == transform and got.crs == rasterio.crs.CRS.from_epsg(32616), got.profile
    with rasterio.open("mnt_warmth/islice/1,0:4:2,2:6/warmth.vrt") as got:
        assert got.transform == rasterio.Affine(10, 0, 444665, 0, -40, 4640530), got.transform
        equal(got.read(1), UTM.values[1, 0:4:2, 2:6], "a part")
    with xarray.open_dataset("mnt_warmth/islice/1,0:4:2,2:6/netcdf/array.nc", engine="netcdf4") as part:
        equal(part.Y.values, NORTHINGS[0:4:2], "Y of a part")


def check_geographic():
    with DEGREES.open() as file:
        equal(file.lon.values, LONGITUDES, "lon")
        equal(file.lat.values, LATITUDES, "lat")
        assert file.lon.units == "degrees_east" and file.lat.standard_name == "latitude" and file.depth.units == "m", file
        assert same_system(file, "depth", "EPSG:4326").grid_mapping_name == "latitude_longitude"
        # The steps differ, so no transform is right.
        assert "GeoTransform" not in file.crs.attrs, file.crs
    with rasterio.open("mnt_depth/depth.vrt") as got:
        assert got.crs == rasterio.crs.CRS.from_epsg(4326) and got.transform.is_identity and got.units == ("m",), got.profile
    said = json.loads(subprocess.run(["gdalmdiminfo", "mnt_depth/netcdf/array.nc"], check=True, capture_output=True).stdout)
    types = {dimension["name"]: dimension.get("type") for dimension in said["dimensions"]}
    assert types == {"lat": "HORIZONTAL_Y", "lon": "HORIZONTAL_X"}, said
    assert said["arrays"]["depth"]["unit"] == "m" and "WGS 84" in said["arrays"]["depth"]["srs"]["wkt"], said["arrays"]["depth"]


def check_others():
    with BARE.open() as file:
        same_system(file, "bare", "EPSG:3035")
        equal(file.x.values, np.arange(6), "x without coordinates")
        assert "standard_name" not in file.x.attrs, file.x
    with rasterio.open("mnt_bare/bare.vrt") as got:
        assert got.crs == rasterio.crs.CRS.from_epsg(3035) and got.transform.is_identity, got.profile
    with rasterio.open("mnt_placed/placed.vrt") as got:
        assert got.crs is None and got.transform == rasterio.Affine(10, 0, 444645, 0, -20, 4640520), got.profile
    with FLIPPED.open() as file:
        assert file.flipped.dims == ("X", "Y") and file.flipped.units == "kg" and file.Y.units == "US_survey_foot", file
        equal(file.X.values, EASTINGS, "X first")
        crs = same_system(file, "flipped", "EPSG:2263")
        assert np.allclose(crs.false_easting, 984250.0, atol=1e-3) and crs.grid_mapping_name == "lambert_conformal_conic", crs
    with rasterio.open("mnt_flipped/flipped.vrt") as got:
        assert got.transform.is_identity, "rows that go from west to east have no transform"
    with rasterio.open("mnt_last/last.vrt") as got:
        assert got.count == 6 and got.transform == rasterio.Affine(10, 0, 444645, 0, -20, 4640520), got.profile
        equal(np.moveaxis(got.read(), 0, -1), LAST.values, "last")
    with netCDF4.Dataset("mnt_last/netcdf/array.nc") as file:
        assert file["level"].axis == "Z" and file["level"].positive == "up", file["level"]


if sys.argv[1] == "make":
    for variable in VARIABLES:
        variable.make()
    print(*(variable.name for variable in VARIABLES))
else:
    for check in check_projected, check_geographic, check_others:
        check()
    print("done")
