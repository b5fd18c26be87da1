"""GDL, a free IDL, opens fits/NAME.fits of a mount with the procedures of IDL's Astronomy Library: all values are those that
libtiledb reads, and the coordinates of the sky are those of astropy."""

import os
import subprocess
import sys
import warnings

import numpy as np
import tiledb

TYPES = [f"{kind}{size}" for size in (1, 2, 4, 8) for kind in "iu"] + ["f4", "f8"]
SHAPES = {"image": (5, 9), "cube": (3, 4, 6)}
SKY = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 202.5, "CRVAL2": 47.25, "CRPIX1": 4.0, "CRPIX2": 2.0, "CDELT1": -0.001,
       "CDELT2": 0.001, "CUNIT1": "deg", "CUNIT2": "deg", "RADESYS": "ICRS"}
# The types that IDL's arrays have, by the names that `size` gives them.
OF_IDL = {"BYTE": "u1", "INT": "i2", "UINT": "u2", "LONG": "i4", "ULONG": "u4", "LONG64": "i8", "ULONG64": "u8", "FLOAT": "f4", "DOUBLE": "f8"}
LIBRARY = "/usr/share/gnudatalanguage"
random = np.random.default_rng(52)


def write(name, values, metadata, nulls=None):
    dims = [tiledb.Dim(axis, domain=(3, 2 + length), tile=min(length, 4), dtype="i4") for axis, length in zip("zyx"[-values.ndim:], values.shape)]
    attribute = tiledb.Attr("flux", dtype=values.dtype, nullable=nulls is not None)
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), [attribute]))
    with tiledb.open(name, "w") as array:
        array[:] = values if nulls is None else {"flux": np.ma.masked_array(values, nulls)}
        array.meta.update(metadata)


def values(dtype, shape):
    if dtype[0] == "f":
        made = random.normal(0, 1e5, shape).astype(dtype)
        made.flat[:2] = np.nan, np.inf
        return made
    ends = np.iinfo(dtype)
    made = random.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)
    made.flat[:3] = ends.min, ends.max, 0
    return made


def make():
    for dtype in TYPES:
        for shape, lengths in SHAPES.items():
            write(f"{shape}_{dtype}", values(dtype, lengths), SKY if (shape, dtype) == ("image", "f4") else {})
    write("nulls", random.integers(-99, 99, (4, 6), dtype="i4"), {}, random.random((4, 6)) < 0.3)
    print(*(f"{shape}_{dtype}" for shape in SHAPES for dtype in TYPES), "nulls")


def idl(lines):
    """Runs a program of IDL; returns what it prints."""
    with open("program.pro", "w") as program:
        program.write("\n".join([*lines, "exit", ""]))
    library = ":".join(f"+{LIBRARY}/{part}" for part in ("astrolib", "lib"))
    run = subprocess.run(["gdl", "-quiet", "program.pro"], env={**os.environ, "GDL_PATH": library}, capture_output=True, text=True, check=True)
    assert "Execution halted" not in run.stderr, run.stderr
    return run.stdout.splitlines()


def read(how, name):
    """Returns lines that write an array beside its type and shape."""
    path = f"mnt_{name}/fits/flux.fits"
    return [f"a = {how.format(path)}", f"openw, 1, '{name}.values'", "writeu, 1, a", "close, 1",
            "print, 'FOUND ', size(a, /tname), ' ', strjoin(strtrim(size(a, /dimensions), 2), ',')"]


def found(how, names):
    told = [line.split()[1:] for line in idl(line for name in names for line in read(how, name)) if line.startswith("FOUND ")]
    for name, (kind, shape) in zip(names, told, strict=True):
        # IDL's first axis varies fastest.
        yield name, np.fromfile(f"{name}.values", OF_IDL[kind]).reshape([int(length) for length in shape.split(",")][::-1])


def stored(name):
    with tiledb.open(name) as array:
        cells = array[:]
    return cells["flux"] if isinstance(cells, dict) else cells


def check():
    from astropy.io import fits
    from astropy.wcs import WCS

    # readfits reads no integers of 64 bits, and mrdfits scales signed bytes to floats only if it is asked to.
    names = [f"{shape}_{dtype}" for shape in SHAPES for dtype in TYPES]
    ways = {"readfits('{}', h, /silent)": [name for name in names if not name.endswith("8") or name.endswith("f8")],
            "mrdfits('{}', 0, h, /silent, /unsigned)": [name for name in names if not name.endswith("i1")],
            "mrdfits('{}', 0, h, /silent, /fscale)": [name for name in names if name.endswith("i1")]}
    for how, of_way in ways.items():
        for name, got in found(how, of_way):
            wanted = stored(name)
            assert got.shape == wanted.shape and (got.dtype == wanted.dtype or name.endswith("i1")), f"{how} {name}: {got.dtype} {got.shape}"
            assert np.array_equal(got, wanted.astype(got.dtype), equal_nan=got.dtype.kind == "f"), f"{how} {name}"
    [(_, got)], nulls = found("readfits('{}', h, /silent)", ["nulls"]), stored("nulls")
    [blank] = [int(line) for line in idl(["print, sxpar(headfits('mnt_nulls/fits/flux.fits'), 'BLANK')"])]
    assert ((got == blank) == nulls.mask).all() and (got[~nulls.mask] == nulls.data[~nulls.mask]).all()
    pixels = [[0, 0], [3, 1], [8, 4]]
    columns, lines = ([pixel[axis] for pixel in pixels] for axis in (0, 1))
    told = idl(["h = headfits('mnt_image_f4/fits/flux.fits')", "extast, h, map", f"xy2ad, {columns}, {lines}, map, a, d", "print, [a, d], format='(F20.12)'"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = WCS(fits.getheader("mnt_image_f4/fits/flux.fits")).wcs_pix2world(pixels, 0)
    assert np.allclose(np.array(told, "f8").reshape(2, -1).T, expected, rtol=0, atol=1e-9), told


{"make": make, "check": check}[sys.argv[1]]()
