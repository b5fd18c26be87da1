"""xarray, netCDF4, GDAL, rasterio, ITK and NumPy interpret missing values, pictures, texts and units as the array means
them.

`make` writes the arrays with libtiledb, `check` opens them in their mounts.
"""

import os
import sys

import netCDF4
import numpy as np
import rasterio
import SimpleITK
import tiledb
import xarray
from rasterio.enums import ColorInterp

PICTURE = np.random.default_rng(1).integers(0, 256, (30, 40, 3)).astype("u1")
FILM = np.stack([PICTURE, PICTURE[::-1]])
IDENTIFIERS = np.array([2**62 + 1, -(2**63), 7], "i8")
NULLS = np.array([False, True, False, False, True, False])
WORDS = ["", "größer", "a longer text", "b"]


def write(name, dims, attributes, write, sparse=False, meta=None):
    dims = [tiledb.Dim(name=dim, domain=(0, length - 1), tile=min(length, 4), dtype=np.int32) for dim, length in dims]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), attributes, sparse=sparse)
    tiledb.Array.create(name, schema)
    for where, values in write:
        with tiledb.open(name, "w") as array:
            array[where] = values
    with tiledb.open(name, "w") as array:
        for key, value in (meta or {}).items():
            array.meta[key] = value


def make():
    whole = slice(None)
    line = lambda length: [("x", length)]
    attribute = lambda name, dtype, **more: tiledb.Attr(name=name, dtype=dtype, **more)
    write("picture", [("y", 30), ("x", 40), ("c", 3)], [attribute("a", "u1")], [(whole, PICTURE)])
    write("rgb", [("y", 30), ("x", 40), ("rgb", 3)], [attribute("a", "u1")], [(whole, PICTURE)])
    write("film", [("t", 2), ("y", 30), ("x", 40), ("rgb", 3)], [attribute("a", "u1")], [(whole, FILM)])
    write("series", [("t", 2), ("band", 3), ("y", 30), ("x", 40)], [attribute("a", "u1", fill=7)], [(whole, np.moveaxis(FILM, -1, 1).copy())])
    write("planes", [("p", 30), ("q", 40), ("r", 3)], [attribute("a", "u1")], [(whole, PICTURE)])
    write("identifiers", line(3), [attribute("a", "i8")], [(whole, IDENTIFIERS)])
    half = slice(0, 5)
    write("half", line(9), [attribute("a", "i4")], [(half, np.arange(5, dtype="i4"))])
    write("white", line(9), [attribute("a", "u1")], [(half, np.array([255, 1, 2, 3, 4], "u1"))])
    write("paper", [("y", 3), ("x", 5)], [attribute("a", "u1")], [((slice(0, 1), whole), np.array([[255, 1, 2, 3, 4]], "u1"))])
    write("dark", line(9), [attribute("a", "u1")], [(half, np.array([254, 1, 2, 3, 4], "u1"))])
    parts = [(slice(0, 2), np.array([1, 2], "i4")), (slice(2, 4), np.array([3, 4], "i4")), (slice(5, 9), np.array([6, 7, 8, 9], "i4"))]
    write("gap", line(9), [attribute("a", "i4")], parts)
    write("chosen", [("y", 2), ("x", 3)], [attribute("a", "i2", fill=-1)], [(whole, np.array([[1, -1, 3], [4, 5, 6]], "i2"))])
    for name, dtype, values in [("nulls", "i4", np.arange(6)), ("nulls_float", "f4", np.arange(6) + 0.5), ("nulls_bool", "?", np.arange(6) % 2)]:
        write(name, line(6), [attribute("a", dtype, nullable=True)], [])
        with tiledb.open(name, "w") as array:
            array._setitem_impl(whole, {"a": values.astype(dtype)}, {"a": (~NULLS).astype("u1")})
    write("full", line(256), [attribute("a", "u1", nullable=True)], [])
    with tiledb.open("full", "w") as array:
        array._setitem_impl(whole, {"a": np.arange(256).astype("u1")}, {"a": np.arange(256).astype("u1") % 7 != 1})
    texts = [attribute("ascii", "ascii", var=True), attribute("utf8", str, var=True)]
    write("words", line(4), texts, [(whole, {"ascii": np.array([word.replace("ö", "o").replace("ß", "s") for word in WORDS], object), "utf8": np.array(WORDS, object)})])
    domain = tiledb.Domain(tiledb.Dim(name="gene", domain=(None, None), tile=None, dtype="ascii"))
    tiledb.Array.create("genes", tiledb.ArraySchema(domain, [attribute("n", "i4"), attribute("text", str, var=True)], sparse=True))
    with tiledb.open("genes", "w") as array:
        array[["BRCA1", "A", "TP53"]] = {"n": np.array([1, 2, 3], "i4"), "text": np.array(["one", "zwölf", ""], object)}
    meta = {
        "__tiledb_attr.temp.air.units": "K", "__tiledb_attr.temp.air.scale_factor": 0.5, "__tiledb_attr.temp.air._FillValue": -999,
        "__tiledb_attr.temp.air.long_name": "air temperature", "__tiledb_attr.nothing.units": "m", "__tiledb_dim.x.axis": "X", "title": "air",
        "__tiledb_attr.temp.air.valid_range": np.array([-100, 100], "i2"), "levels": np.array([1.5, 2.5]),
    }
    write("cf", [("y", 2), ("x", 3)], [attribute("temp.air", "i2")], [(whole, np.array([[1, -999, 3], [4, 5, 6]], "i2"))], meta=meta)
    print("picture rgb film series planes identifiers half white paper dark gap chosen nulls nulls_float nulls_bool full words genes cf")


def opened(name, **options):
    return xarray.open_dataset(f"mnt_{name}/netcdf/array.nc", engine="netcdf4", **options)


def equal(got, expected, what):
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=expected.dtype.kind == "f"), f"{what}: {got!r}, not {expected!r}"


def check_pictures():
    for name in "picture", "rgb", "planes":
        for file in "a.vrt", "a.u8":
            with rasterio.open(f"mnt_{name}/{file}") as got:
                equal(np.moveaxis(got.read(), 0, -1), PICTURE, f"{name} {file}")
                assert got.nodata is None, f"{name} {file}: {got.nodata}"
                colours = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
                assert name != "rgb" or got.colorinterp == colours or file == "a.u8", f"{name} {file}: {got.colorinterp}"
        with rasterio.open(f"mnt_{name}/islice/0:4,0:2/a.vrt") as got:
            equal(np.moveaxis(got.read(), 0, -1), PICTURE[:4, :2], f"{name} in part")
        for file in "a.nhdr", "a.mhd":
            image = SimpleITK.ReadImage(f"mnt_{name}/{file}")
            assert image.GetSize() == (40, 30) and image.GetNumberOfComponentsPerPixel() == 3, f"{name} {file}: {image}"
            equal(SimpleITK.GetArrayFromImage(image), PICTURE, f"{name} {file}")
        equal(opened(name).a.values, PICTURE, f"{name} as netCDF")
    with rasterio.open("mnt_rgb/islice/..,..,2+0/a.vrt") as got:
        assert got.colorinterp == (ColorInterp.blue, ColorInterp.red), got.colorinterp


def check_four_axes():
    in_bands = np.moveaxis(FILM, -1, 1).reshape(6, 30, 40)
    colours = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    for name in "film", "series":
        with rasterio.open(f"mnt_{name}/a.vrt") as got:
            equal(got.read(), in_bands, f"{name} as bands")
            assert name == "series" or got.colorinterp == colours * 2, got.colorinterp
            assert got.nodata == (7 if name == "series" else None), got.nodata
    for number in 0, 1:
        with rasterio.open(f"mnt_film/slice/t={number}/a.vrt") as got:
            equal(np.moveaxis(got.read(), 0, -1), FILM[number], "one picture of the film")
        with rasterio.open(f"mnt_series/slice/t={number},band=1..2,y=3..20/a.vrt") as got:
            equal(got.read(), in_bands[3 * number + 1 : 3 * number + 3, 3:21], "two bands of the series")
    for file in "a.nhdr", "a.mhd":
        image = SimpleITK.ReadImage(f"mnt_film/{file}")
        assert image.GetSize() == (40, 30, 2) and image.GetNumberOfComponentsPerPixel() == 3, f"{file}: {image}"
        equal(SimpleITK.GetArrayFromImage(image), FILM, f"film {file}")
    equal(opened("film").a.values, FILM, "film as netCDF")


def check_missing():
    nan = np.nan
    equal(opened("identifiers").a.values, IDENTIFIERS, "identifiers")
    equal(opened("half").a.values, [0.0, 1, 2, 3, 4, nan, nan, nan, nan], "half")
    equal(opened("gap").a.values, [1.0, 2, 3, 4, nan, 6, 7, 8, 9], "gap")
    with xarray.open_dataset("mnt_half/islice/0:5/netcdf/array.nc", engine="netcdf4") as part:
        equal(part.a.values, np.arange(5, dtype="i4"), "the half that was written")
    # A true 255 matters more than marking missing values.
    white = opened("white").a
    equal(white.values, np.array([255, 1, 2, 3, 4, 255, 255, 255, 255], "u1"), "white")
    assert white.comment == "cells that were never written hold 255, and so may others", white.attrs
    equal(opened("dark").a.values, np.array([254, 1, 2, 3, 4, nan, nan, nan, nan], "f4"), "dark")
    equal(opened("chosen").a.values, np.array([[1, nan, 3], [4, 5, 6]], "f4"), "chosen")
    for file in "a.vrt", "a.i16":
        with rasterio.open(f"mnt_chosen/{file}") as got:
            assert got.nodata == -1 and got.read(1, masked=True).mask.tolist() == [[False, True, False], [False] * 3], f"{file}: {got.nodata}"
    with rasterio.open("mnt_paper/a.vrt") as got:
        assert got.nodata is None, got.nodata
    # A row of cells is not a raster.
    assert not os.path.exists("mnt_white/a.vrt") and not os.path.exists("mnt_white/a.u8.hdr")


def check_nulls():
    for name, values in ("nulls", np.arange(6.0)), ("nulls_float", np.arange(6, dtype="f4") + 0.5):
        equal(opened(name).a.values, np.where(NULLS, np.nan, values).astype(values.dtype), name)
    file = netCDF4.Dataset("mnt_nulls/netcdf/array.nc")
    assert file["a"][:].mask.tolist() == NULLS.tolist() and file["a"][:].compressed().tolist() == [0, 2, 3, 5], file["a"][:]
    masked = netCDF4.Dataset("mnt_nulls_bool/netcdf/array.nc")["a"][:]
    assert masked.mask.tolist() == NULLS.tolist() and masked.compressed().tolist() == [0, 0, 1, 1], masked
    for name in "nulls", "nulls_float", "nulls_bool":
        for options in {}, {"mmap_mode": "r"}:
            equal(np.load(f"mnt_{name}/npy/a.valid.npy", **options), ~NULLS, f"{name} as mask")
    equal(np.load("mnt_nulls/islice/4:1:-1/npy/a.valid.npy"), ~NULLS[4:1:-1], "a part of the mask")
    # All values are in use, so only the mask can mark nulls.
    full = opened("full")
    equal(full.a.values, np.arange(256).astype("u1"), "full")
    assert full.a.ancillary_variables == "a_valid" and full.a_valid.standard_name == "status_flag", full
    equal(full.a_valid.values, (np.arange(256) % 7 != 1).astype("i1"), "full as mask")


def check_words():
    words = opened("words")
    assert words.utf8.values.tolist() == WORDS and words.utf8.dims == ("x",), words.utf8
    assert words.ascii.values.tolist() == ["", "groser", "a longer text", "b"], words.ascii
    part = xarray.open_dataset("mnt_words/islice/3:0:-2/netcdf/array.nc", engine="netcdf4")
    assert part.utf8.values.tolist() == ["b", "größer"], part.utf8
    genes = opened("genes")
    got = {gene: (n, text) for gene, n, text in zip(genes.gene.values.tolist(), genes.n.values.tolist(), genes.text.values.tolist())}
    assert got == {"BRCA1": (1, "one"), "A": (2, "zwölf"), "TP53": (3, "")}, got


def check_notes():
    file = opened("cf")
    temp = file["temp.air"]
    equal(temp.values, np.array([[0.5, np.nan, 1.5], [2, 2.5, 3]], "f4").astype(temp.dtype), "temp")
    assert temp.units == "K" and temp.long_name == "air temperature" and file.x.axis == "X", file
    assert temp.valid_range.tolist() == [-100, 100] and temp.valid_range.dtype == np.int16, temp.attrs
    assert file.attrs.pop("levels").tolist() == [1.5, 2.5]
    assert file.attrs == {"title": "air", "__tiledb_attr.nothing.units": "m", "Conventions": "CF-1.8"}, file.attrs
    with rasterio.open("mnt_cf/temp.air.vrt") as got:
        said = got.nodata, got.units, got.scales, got.descriptions
        assert said == (-999, ("K",), (0.5,), ("air temperature",)), said


if sys.argv[1] == "make":
    make()
else:
    for check in check_pictures, check_four_axes, check_missing, check_nulls, check_words, check_notes:
        check()
    print("done")
