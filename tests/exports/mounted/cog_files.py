"""rio-cogeo finds that the TIFFs of mounted rasters with tiles are Cloud Optimized GeoTIFFs, without warnings.

`make` writes rasters whose overviews have tiles of several forms, or that have none.
"""

import sys

import numpy as np
import tiledb

# Lines, columns, and the sides of tiles.
RASTERS = {
    "even": (1024, 2048, 256, 256),
    "odd": (1001, 1537, 96, 160),
    "tall": (4099, 301, 64, 64),
    "wide": (600, 5003, 512, 512),
    "power": (2048, 1024, 512, 512),
    "small": (300, 400, 128, 128),
    "other": (1500, 1500, 1008, 1008),
}


def values(name):
    lines, columns, *_ = RASTERS[name]
    line, column = np.indices((lines, columns), dtype="u4")
    return ((line * np.uint32(2654435761)) ^ (column * np.uint32(40503))).astype("u2")


def make():
    for name, (lines, columns, high, wide) in RASTERS.items():
        dims = [tiledb.Dim("Y", (0, lines - 1), min(high, lines), dtype="u8"), tiledb.Dim("X", (0, columns - 1), min(wide, columns), dtype="u8")]
        tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("v", dtype="u2", filters=[tiledb.ZstdFilter()])]))
        with tiledb.open(name, "w") as array:
            array[:] = values(name)
    print(*RASTERS)


def check():
    import rasterio
    from rio_cogeo.cogeo import cog_validate

    for name, (lines, columns, *_) in RASTERS.items():
        path = f"mnt_{name}/tiff/v.tif"
        found = cog_validate(path, strict=True, quiet=True)
        assert found[0] and not found[1] and not found[2], (name, found)
        with rasterio.open(path) as image:
            assert np.array_equal(image.read(1), values(name)), name
            assert (max(lines, columns) > 256) == bool(image.overviews(1)), name
            for level, factor in enumerate(image.overviews(1)):
                with rasterio.open(path, OVERVIEW_LEVEL=level) as overview:
                    rows, samples = (np.minimum((np.arange(n) * (whole / n) + 0.5).astype(int), whole - 1) for n, whole in [(overview.height, lines), (overview.width, columns)])
                    if level == 0:
                        assert np.array_equal(overview.read(1), values(name)[np.ix_(rows, samples)]), (name, factor)


make() if sys.argv[1] == "make" else check()
