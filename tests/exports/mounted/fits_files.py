"""astropy opens fits/NAME.fits of a mount, and checks it against the standard: all values and coordinates are those that
libtiledb reads."""

import os
import warnings

import numpy as np
from astropy.io import fits
from astropy.wcs import WCS

from expected import arrays, same

array = arrays()
checked = 0
for part in array.parts():
    assert "fits" not in os.listdir(part.folder)
    for field in array.fields:
        name = next((file for file in array.files[field.name] if file.startswith("fits/")), None)
        if not name:
            continue
        path, cells, valid = f"{part.folder}{name}", part.cells(field), part.valid(field)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with fits.open(path) as file:
                file.verify("exception")
                header, got = file[0].header, file[0].data
            stored = fits.getdata(path, do_not_scale_image_data=True)
        shape = (*part.index.shape, field.count) if field.count > 1 else part.index.shape
        assert got.shape == shape, f"{path}: {got.shape}"
        wanted = cells.reshape(-1, field.count)
        wanted = wanted.view("<i8") if wanted.dtype.kind in "mM" else wanted.view("u1") if wanted.dtype.kind == "b" else wanted
        got = got.reshape(-1, field.count)
        stem = name.removeprefix("fits/").removesuffix(".fits")
        assert header.get("EXTNAME", "").rstrip() == (stem.rstrip() if stem.isascii() else ""), path
        if not valid.all() and wanted.dtype.kind == "f":
            assert np.isnan(got[~valid]).all(), path
        elif not valid.all():
            assert (stored.reshape(-1, field.count)[~valid] == header["BLANK"]).all(), path
        if wanted.dtype.kind == "f":
            got, wanted = got[valid].astype(wanted.dtype), wanted[valid]
            assert np.array_equal(got, wanted, equal_nan=True), path
        elif got.dtype.kind in "iu":
            same(got.astype(wanted.dtype), wanted, path)
        else:
            # BLANK makes astropy return floats, which cannot hold all integers.
            exact = stored.reshape(-1, field.count)[valid].astype(object) + int(header.get("BZERO", 0))
            assert (exact == wanted[valid].astype(object)).all(), path
        # Values of a cell are FITS' first axis.
        first, world = 2 if field.count > 1 else 1, WCS(header)
        for axis in range(part.index.ndim):
            number, expected = part.index.ndim - axis - 1 + first, part.coordinates(axis)
            pixels = np.zeros((len(expected), world.naxis))
            pixels[:, number - 1] = np.arange(len(expected))
            found = world.wcs_pix2world(pixels, 0)[:, number - 1]
            counts = expected.view("<i8") if expected.dtype.kind in "mM" else expected
            assert np.allclose(found, counts.astype("f8"), rtol=1e-12, atol=0), f"{path}: axis {axis}"
        checked += 1
print(checked)
