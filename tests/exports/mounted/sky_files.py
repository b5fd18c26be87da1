"""Images of the sky and volumes of the brain, made with TileDB: astropy, GDAL and nibabel find their coordinates, units and
scales, of the whole and of parts."""

import subprocess
import sys

import numpy as np
import tiledb

SKY = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 202.5, "CRVAL2": 47.25, "CRPIX1": 21.0, "CRPIX2": 16.0, "CDELT1": -0.001,
       "CDELT2": 0.001, "CUNIT1": "deg", "CUNIT2": "deg", "RADESYS": "ICRS", "WCSAXES": 2, "OBJECT": "M 51", "EXPTIME": 300.5, "NAXIS": 7,
       "telescope used": "O'Brien", "HISTORY": "flat\nbias", "DATAMAX": 3.0, "notes": "a word " * 40}
AFFINE = np.array([[2.0, 0, 0.5, -90], [0, 3, 0, -126], [0, 0, 4, -72], [0, 0, 0, 1]])


def write(name, names, values, metadata, of_values=(), low=0):
    dims = [tiledb.Dim(axis, domain=(low, low + length - 1), tile=min(length, 7), dtype="i4") for axis, length in zip(names, values.shape)]
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("flux", dtype=values.dtype)]))
    with tiledb.open(name, "w") as array:
        array[:] = values
        array.meta.update(metadata)
        array.meta.update({f"__tiledb_attr.flux.{key}": value for key, value in of_values})


def values(*shape):
    return np.random.default_rng(51).normal(100, 30, shape)


def make():
    write("sky", "yx", values(30, 40).astype("f4"), SKY, [("units", "Jy/beam")])
    write("counts", "yx", values(30, 40).astype("u2"), {}, [("scale_factor", 0.5), ("add_offset", 10.0)], low=5)
    write("brain", "ijk", values(6, 8, 10).astype("i2"), {"affine": AFFINE.ravel().tolist()})
    write("planes", ["t", "z", "y", "x"], values(2, 3, 4, 5).astype("f8"), {"affine": str(AFFINE.tolist())})
    write("strip", "ab", values(2, 40000).astype("i1"), {})
    print("sky counts brain planes strip")


def check():
    import nibabel
    from astropy.io import fits
    from astropy.wcs import WCS

    def image(path):
        with fits.open(path) as file:
            file.verify("exception")
            return file[0].header, np.array(file[0].data)

    def stored(name):
        with tiledb.open(name) as array:
            return array[:]["flux"] if isinstance(array[:], dict) else array[:]

    header, sky = image("mnt_sky/fits/flux.fits")
    whole = WCS(header)
    assert (sky == stored("sky")).all() and header["BUNIT"] == "Jy/beam" and header["NAXIS"] == 2
    assert header["OBJECT"] == "M 51" and header["EXPTIME"] == 300.5 and header["TELESCOPE USED"] == "O'Brien", repr(header)
    assert list(header["HISTORY"]) == ["flat", "bias"] and header["NOTES"] == SKY["notes"].rstrip() and "DATAMAX" not in header
    assert np.allclose(whole.wcs_pix2world([[20, 15]], 0), [[202.5, 47.25]])
    for folder, first in ("slice/y=7..20,x=11..30", (7, 11)), ("islice/7:21,11:31", (7, 11)):
        header, part = image(f"mnt_sky/{folder}/fits/flux.fits")
        assert (part == sky[7:21, 11:31]).all()
        got, wanted = WCS(header).wcs_pix2world([[3, 4]], 0), whole.wcs_pix2world([[3 + first[1], 4 + first[0]]], 0)
        assert np.allclose(got, wanted, rtol=0, atol=1e-12), folder
    header, part = image("mnt_sky/islice/::2,5:/fits/flux.fits")
    assert (part == sky[::2, 5:]).all() and "CTYPE1" not in header and header["OBJECT"] == "M 51"
    subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "mnt_sky/fits/flux.fits", "sky.raw"], check=True)
    # GDAL's first line is the last row.
    assert (np.fromfile("sky.raw", "<f4").reshape(sky.shape)[::-1] == sky).all()

    header, counts = image("mnt_counts/fits/flux.fits")
    assert np.allclose(counts, stored("counts") * 0.5 + 10)
    assert (header["CTYPE1"], header["CRVAL1"], header["CRVAL2"]) == ("x", 5.0, 5.0)
    header, _ = image("mnt_counts/islice/2:,::3/fits/flux.fits")
    assert (header["CRVAL1"], header["CDELT1"], header["CRVAL2"], header["CDELT2"]) == (5.0, 3.0, 7.0, 1.0)
    assert np.allclose(nibabel.load("mnt_counts/nifti/flux.nii").get_fdata().T, stored("counts") * 0.5 + 10)

    brain = nibabel.load("mnt_brain/nifti/flux.nii")
    assert isinstance(brain, nibabel.Nifti1Image) and (np.asanyarray(brain.dataobj) == stored("brain")).all()
    assert (brain.affine == AFFINE).all() and brain.header.get_data_dtype() == np.dtype("<i2")
    part = nibabel.load("mnt_brain/islice/1:5,::2,3:/nifti/flux.nii")
    sliced = brain.slicer[1:5, ::2, 3:]
    assert (np.asanyarray(part.dataobj) == np.asanyarray(sliced.dataobj)).all() and np.allclose(part.affine, sliced.affine)
    planes = nibabel.load("mnt_planes/nifti/flux.nii")
    assert (planes.get_fdata() == stored("planes").T).all() and (planes.affine == AFFINE).all()
    strip = nibabel.load("mnt_strip/nifti/flux.nii")
    assert isinstance(strip, nibabel.Nifti2Image) and (np.asanyarray(strip.dataobj) == stored("strip")).all()


{"make": make, "check": check}[sys.argv[1]]()
