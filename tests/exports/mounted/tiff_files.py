"""tifffile and rasterio open tiff/NAME.tif of a mount: all values equal those that libtiledb reads."""

import os

import numpy as np
import rasterio
import tifffile

from expected import arrays, same

array = arrays()
checked = 0
for part in array.parts():
    assert "tiff" not in os.listdir(part.folder or ".")
    for field in array.fields:
        files = array.files[field.name]
        name = next((file for file in files if file.startswith("tiff/")), None)
        if not name:
            continue
        path, cells = f"{part.folder}{name}", part.cells(field)
        with tifffile.TiffFile(path) as tif:
            assert tif.is_bigtiff and len(tif.pages) == 1 and tif.pages[0].compression == 1
            got = tif.asarray()
            said = tif.pages[0].tags["ImageWidth"].value * tif.pages[0].tags["ImageLength"].value
        assert said * (got.size // said) == cells.size, f"{path}: {got.shape}"
        # The axis of the bands is last if those of a pixel are adjacent, otherwise first, as in the array.
        same(np.ascontiguousarray(got).view(cells.dtype if cells.dtype.kind not in "mM?" else got.dtype), cells.view(got.dtype), path)
        if got.dtype != np.float16 and got.dtype.itemsize < 8:
            with rasterio.open(path) as tif:
                read = tif.read()
            contiguous = got.ndim == 3 and got.shape[-1] == read.shape[0] and got.shape[:2] == read.shape[1:]
            same(np.moveaxis(read, 0, -1) if contiguous else read, cells.view(got.dtype), f"{path} by rasterio")
        checked += 1
print(checked)
