"""tifffile and GDAL open the OME-TIFF of mounted pyramids of pictures, as TileDB-BioImaging writes them: all values
equal those that libtiledb reads."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import tifffile
import tiledb

XML = '<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25"/></Image></OME>'
NAMES = ["first", "second & <third>", "µ"]
COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"

# The axes of each pyramid, the shapes of its levels, the type of its values, and the number of samples of a pixel that
# lie side by side along X (as in pictures compressed as WebP).
PYRAMIDS = {
    "channels": ("CYX", [(3, 100, 130), (3, 50, 65), (3, 25, 33)], "u1", 1),
    "together": ("YXC", [(100, 130, 3), (50, 65, 3)], "u1", 1),
    "side_by_side": ("YX", [(100, 390), (50, 195)], "u1", 3),
    "times": ("TCZYX", [(2, 3, 4, 60, 70), (2, 3, 4, 30, 35)], "u2", 1),
    "alone": ("YX", [(100, 130)], "f4", 1),
    "across": ("XY", [(100, 130)], "u1", 1),
    "incomplete": ("YX", [(20, 30), (10, 15)], "u1", 1),
}

# The reasons in README.txt why some pyramids have no picture.
REFUSED = {
    "across": "the pixels of a line, along X, do not follow each other in the array",
    "incomplete": "its level l_1.tdb is missing",
}


def values(shape, dtype):
    return (np.random.default_rng(len(shape)).random(shape) * 60000).astype(dtype)


def make():
    for pyramid, (axes, shapes, dtype, samples) in PYRAMIDS.items():
        tiledb.Group.create(pyramid)
        for level, shape in enumerate(shapes):
            name = f"l_{level}.tdb"
            dims = [tiledb.Dim(axis, (0, length - 1), min(length, 32 * samples), dtype="u4") for axis, length in zip(axes, shape)]
            tiledb.Array.create(f"{pyramid}/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("intensity", dtype=dtype)]))
            with tiledb.open(f"{pyramid}/{name}", "w") as array:
                array[:] = values(shape, dtype)
                array.meta["level"] = level
            if (pyramid, level) != ("incomplete", 1):
                with tiledb.Group(pyramid, "w") as group:
                    group.add(name, name, relative=True)
        levels = [{"level": level, "name": f"l_{level}.tdb", "axes": axes, "shape": shape} for level, shape in enumerate(shapes)]
        channels = [{"id": name, "name": name, "color": dict(zip(("red", "green", "blue", "alpha"), (*colour, 255))), "min": 0.0, "max": 255.0}
                    for name, colour in zip(NAMES, COLOURS)]
        with tiledb.Group(pyramid, "w") as group:
            group.meta["dataset_type"] = "BIOIMG"
            group.meta["axes"] = axes
            group.meta["levels"] = json.dumps(levels)
            group.meta["pixel_depth"] = json.dumps({str(level): samples for level in range(len(shapes))})
            group.meta["metadata"] = json.dumps({"channels": {"intensity": channels}, "axes": [], "timeIncrement": 2.5, "timeIncrementUnit": "ms"})
            group.meta["original_metadata"] = json.dumps({"ome_metadata": XML})
        print(pyramid)


def stored(pyramid, level):
    with tiledb.open(f"{pyramid}/l_{level}.tdb") as array:
        found = array[:]
    return found if isinstance(found, np.ndarray) else found["intensity"]


def plane(pyramid, level, band):
    """Returns the pixels of the first page or, if a page has several bands, of one of its bands."""
    axes, _, _, samples = PYRAMIDS[pyramid]
    found = stored(pyramid, level)
    if samples > 1:
        found = found.reshape(len(found), -1, samples)
    return found[..., band] if axes == "YXC" or samples > 1 else found.reshape(-1, *found.shape[-2:])[0]


def check_tifffile(pyramid):
    axes, shapes, dtype, samples = PYRAMIDS[pyramid]
    path = f"mnt_{pyramid}/tiff/intensity.ome.tif"
    assert "tiff" in os.listdir(f"mnt_{pyramid}") and os.listdir(f"mnt_{pyramid}/tiff") == ["intensity.ome.tif"]
    with tifffile.TiffFile(path) as tif:
        assert tif.is_bigtiff and tif.is_ome
        [series] = tif.series
        rgb = axes == "YXC" or samples > 1
        assert series.axes == ("YXS" if rgb else axes) and len(series.levels) == len(shapes)
        assert series.keyframe.photometric == (tifffile.PHOTOMETRIC.RGB if rgb else tifffile.PHOTOMETRIC.MINISBLACK)
        for level, found in enumerate(series.levels):
            expected = stored(pyramid, level)
            if samples > 1:
                expected = expected.reshape(expected.shape[0], -1, samples)
            got = found.asarray()
            assert got.dtype == expected.dtype == dtype and np.array_equal(got, expected), level
        description = ElementTree.fromstring(tif.ome_metadata)
    [pixels] = description.iter(f"{OME}Pixels")
    assert (pixels.get("PhysicalSizeX"), pixels.get("PhysicalSizeY"), pixels.get("PhysicalSizeXUnit")) == ("0.5", "0.25", "µm")
    assert (pixels.get("TimeIncrement"), pixels.get("TimeIncrementUnit")) == ("2.5", "ms")
    channels = list(description.iter(f"{OME}Channel"))
    if not rgb:
        assert [channel.get("Name") for channel in channels] == NAMES[: len(channels)]
        assert int(channels[0].get("Color")) == -16776961
    assert path.split("/", 1)[1] in open(f"mnt_{pyramid}/README.txt").read()


def check_gdal(pyramid):
    axes, shapes, _, samples = PYRAMIDS[pyramid]
    path = f"mnt_{pyramid}/tiff/intensity.ome.tif"
    said = json.loads(subprocess.run(["gdalinfo", "-json", "-checksum", path], check=True, capture_output=True).stdout)
    lengths = dict(zip(axes, shapes[0]))
    assert said["size"] == [lengths["X"] // samples, lengths["Y"]], said["size"]
    sizes = [[dict(zip(axes, shape))["X"] // samples, dict(zip(axes, shape))["Y"]] for shape in shapes[1:]]
    for number, band in enumerate(said["bands"]):
        assert [overview["size"] for overview in band.get("overviews", [])] == sizes
        # The checksums equal those of files with just the values that libtiledb reads.
        for level in range(len(shapes)):
            tifffile.imwrite("expected.tif", plane(pyramid, level, number))
            one = json.loads(subprocess.run(["gdalinfo", "-json", "-checksum", "expected.tif"], check=True, capture_output=True).stdout)
            found = band["checksum"] if level == 0 else band["overviews"][level - 1]["checksum"]
            assert found == one["bands"][0]["checksum"], (pyramid, number, level)
    return len(said["bands"])


def check_zarr(pyramid):
    """Checks that the axes have lower-case names, which viewers require, in the image and in the arrays of its levels."""
    # Samples that lie side by side are channels.
    stored_axes = "C" * (PYRAMIDS[pyramid][3] > 1) + PYRAMIDS[pyramid][0]
    axes = stored_axes.lower()
    attributes = json.load(open(f"mnt_{pyramid}/zarr/zarr.json"))["attributes"]
    if "ome" not in attributes:
        return
    [scales] = attributes["ome"]["multiscales"]
    assert [axis["name"] for axis in scales["axes"]] == list(axes), scales["axes"]
    # One pyramid lacks a level.
    levels = [level for level in scales["datasets"] if os.path.exists(f"mnt_{pyramid}/{level['path'].split('/')[0]}")]
    assert levels
    for level in levels:
        array = json.load(open(f"mnt_{pyramid}/zarr/{level['path']}/zarr.json"))
        assert array["dimension_names"] == list(axes), array["dimension_names"]
        second = json.load(open(f"mnt_{pyramid}/zarr2/{level['path']}/.zattrs"))
        assert second["_ARRAY_DIMENSIONS"] == list(axes), second
    # The array itself has the names of its dimensions.
    level = levels[0]["path"].split("/")[0]
    own = json.load(open(f"mnt_{pyramid}/{level}/zarr/intensity/zarr.json"))["dimension_names"]
    assert own == list(stored_axes), own


def check():
    assert any("ome" in json.load(open(f"mnt_{name}/zarr/zarr.json"))["attributes"] for name in PYRAMIDS)
    for pyramid in PYRAMIDS:
        check_zarr(pyramid)
    pictures = [pyramid for pyramid in PYRAMIDS if pyramid not in REFUSED]
    for pyramid in pictures:
        check_tifffile(pyramid)
    if shutil.which("gdalinfo"):
        assert [check_gdal(pyramid) for pyramid in pictures] == [1, 3, 3, 1, 1]
    for pyramid, reason in REFUSED.items():
        assert not os.path.exists(f"mnt_{pyramid}/tiff")
        assert f"There is no tiff/intensity.ome.tif: {reason}.\n" in open(f"mnt_{pyramid}/README.txt").read()
        refused = json.load(open(f"mnt_{pyramid}/.group/group.json"))["not_listed"]
        assert refused == [{"path": "tiff/intensity.ome.tif", "reason": reason}]
    print(len(pictures))


make() if sys.argv[1] == "make" else check()
