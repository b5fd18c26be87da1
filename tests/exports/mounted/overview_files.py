"""GDAL and tifffile read the overviews of mounted rasters: all pixels are those that GDAL chooses for overviews of a copy.

`make` writes arrays of sides that factors of two divide, and of others; `check` copies the TIFF of each from its mount, lets
GDAL make the overviews of the copy anew, and compares all pixels.
"""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import rasterio
import tifffile
import tiledb
from rasterio.enums import Resampling


class Raster:
    """`place` is where the axis of the bands is: "first", "last", or None if there is none. Real and imaginary parts of complex
    values are bands, too."""

    def __init__(self, name, lines, columns, dtype, tile, place=None, bands=1, is_complex=False, palette=False, no_data=None):
        self.name, self.size, self.dtype, self.tile, self.place = name, (lines, columns), np.dtype(dtype), tile, place
        self.bands, self.is_complex, self.palette, self.no_data = bands, is_complex, palette, no_data

    def pixels(self):
        """Returns values that differ from line to line and from column to column, with the bands first."""
        band, line, column = np.indices((self.bands, *self.size), dtype="u4")
        mixed = (line * np.uint32(2654435761)) ^ (column * np.uint32(40503)) ^ (band * np.uint32(97))
        return (mixed >> 3).astype(self.dtype)

    def make(self):
        dim = lambda name, length, tile: tiledb.Dim(name=name, domain=(0, length - 1), tile=min(tile, length), dtype=np.uint64)
        plane = [dim(name, length, tile) for name, length, tile in zip("YX", self.size, self.tile)]
        bands = [dim("BANDS", self.bands, self.bands if self.place == "last" else 1)]
        dims = {None: plane, "first": bands + plane, "last": plane + bands}[self.place]
        dtype = np.dtype(np.complex64) if self.is_complex else self.dtype
        filters = tiledb.FilterList([tiledb.ZstdFilter()], chunksize=1 << 12)
        attribute = tiledb.Attr("v", dtype=dtype, filters=filters)
        tiledb.Array.create(self.name, tiledb.ArraySchema(tiledb.Domain(*dims), [attribute]))
        pixels = self.pixels()
        last = np.ascontiguousarray(np.moveaxis(pixels, 0, -1))
        cells = {None: last.view(dtype)[..., 0], "first": pixels, "last": last}[self.place]
        with tiledb.open(self.name, "w") as array:
            array[:] = cells
            if self.palette:
                entries = "".join(f'<Entry c1="{n}" c2="{255 - n}" c3="7" c4="255"/>' for n in range(256))
                band = f'<PAMRasterBand band="1"><ColorInterp>Palette</ColorInterp><ColorTable>{entries}</ColorTable></PAMRasterBand>'
                text = f"<PAMDataset>{band}</PAMDataset>"
                array.meta._array_or_group._put_metadata("_gdal", np.frombuffer(text.encode(), "u1"))
            if self.no_data is not None:
                array.meta["__tiledb_attr.v._FillValue"] = self.no_data


RASTERS = [
    Raster("even", 1024, 2048, "u1", (256, 256)),
    Raster("odd", 1001, 1537, "u2", (100, 160)),
    Raster("tall", 4099, 301, "i2", (64, 64)),
    Raster("strip", 300, 5001, "f4", (7, 5001), no_data=np.float32(12)),
    Raster("wide_values", 777, 2050, "f8", (128, 128)),
    Raster("large_integers", 515, 1030, "u4", (128, 128)),
    Raster("just_one", 257, 16, "u1", (16, 16)),
    Raster("none", 256, 256, "u1", (64, 64)),
    Raster("pictures", 1031, 777, "u1", (128, 128), "last", 3),
    Raster("planes", 1003, 769, "u2", (96, 96), "first", 3),
    Raster("planes_of_strips", 4099, 1031, "u2", (100, 1031), "first", 2),
    Raster("long_planes", 6007, 501, "u1", (50, 501), "first", 2),
    Raster("very_wide_planes", 520, 41003, "u2", (200, 41003), "first", 2),
    Raster("very_wide_tiles", 515, 41003, "u2", (256, 256), "first", 2),
    Raster("complex", 600, 1111, "f4", (64, 64), bands=2, is_complex=True),
    Raster("colours", 1001, 1537, "u1", (100, 160), palette=True),
]


def levels(path):
    """Returns the pixels of each overview, the bands first."""
    with rasterio.open(path) as tif:
        count = len(tif.overviews(1))
    found = []
    for level in range(count):
        with rasterio.open(path, overview_level=level) as tif:
            found.append(tif.read())
    return found


def factors(size):
    """Returns the factors of the overviews that `gdaladdo` makes by default."""
    factor, found = 1, []
    while max(-(-length // factor) for length in size) > 256:
        factor *= 2
        found.append(factor)
    return found


def check_form(raster, path, found):
    printed = subprocess.run(["gdalinfo", path], check=True, capture_output=True, text=True).stdout
    sizes = [tuple(-(-length // factor) for length in raster.size) for factor in factors(raster.size)]
    listed = [f"{columns}x{lines}" for lines, columns in sizes]
    for line in re.findall(r"^ *Overviews: (.*)$", printed, re.M):
        assert line.split(", ") == listed, f"{path}: {line}"
    assert len(re.findall(r"^ *Overviews:", printed, re.M)) == (raster.bands if sizes else 0), printed
    with tifffile.TiffFile(path) as tif:
        assert len(tif.pages) == 1 + len(sizes), path
        image = tif.pages[0]
        assert not image.is_reduced
        for page, size, pixels in zip(tif.pages[1:], sizes, found):
            assert page.is_reduced and (page.imagelength, page.imagewidth) == size, path
            assert (page.photometric, page.planarconfig, page.dtype) == (image.photometric, image.planarconfig, image.dtype), path
            own = page.asarray().reshape(pixels.shape if page.planarconfig == 2 or len(pixels) == 1 else (*size, len(pixels)))
            own = own if own.shape == pixels.shape else np.moveaxis(own, -1, 0)
            assert np.array_equal(own, pixels, equal_nan=own.dtype.kind == "f"), f"{path} by tifffile"
            assert (42113 in page.tags) == (42113 in image.tags) == (raster.no_data is not None), path


def same(raster, found, expected, how):
    assert len(found) == len(expected) == len(factors(raster.size)), f"{raster.name}: {len(found)}, {how} {len(expected)}"
    for factor, one, other in zip(factors(raster.size), found, expected):
        assert one.shape == other.shape and one.tobytes() == other.tobytes(), f"{raster.name} by {factor}: {how} differs"


def check(raster):
    path = f"mnt_{raster.name}/tiff/v.tif"
    found = levels(path)
    check_form(raster, path, found)
    shutil.copyfile(path, "copy.tif")
    same(raster, levels("copy.tif"), found, "a copy")
    with rasterio.open("copy.tif") as tif:
        assert tif.read().tobytes() == raster.pixels().tobytes(), raster.name
    if not factors(raster.size):
        return
    # Overviews that exist are made again in their places.
    with rasterio.open("copy.tif", "r+") as tif:
        tif.build_overviews(factors(raster.size), Resampling.nearest)
    if raster.name != "very_wide_planes":
        # GDAL's choice of lines depends on the tiles of the overviews that it finds.
        same(raster, levels("copy.tif"), found, "GDAL, in place,")
    # GDAL 3.6 has numbers of single precision for values that do not fit into 16 bits.
    if raster.dtype.itemsize <= 2 or raster.dtype == np.float32:
        shutil.copyfile(path, "copy.tif")
        for arguments in ["-clean", "copy.tif"], ["-r", "nearest", "copy.tif"]:
            subprocess.run(["gdaladdo", "-q", *arguments], check=True)
        same(raster, levels("copy.tif"), found, "gdaladdo")


if sys.argv[1] == "make":
    for raster in RASTERS:
        raster.make()
        print(raster.name)
else:
    for raster in RASTERS:
        check(raster)
