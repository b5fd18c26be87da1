"""ome-zarr opens zarr/ of mounted pyramids of pictures, as TileDB-BioImaging and TileDB-SOMA write them: all values equal
those that libtiledb reads."""

import contextlib
import json
import os
import sys

import numpy as np
import tiledb
import zarr

# Pyramids by the order of their axes. NGFF does not allow some orders, nor samples that lie side by side along an axis
# that is not the last: such groups have a reason and the plain arrays.
PYRAMIDS = {"CYX": (3, 100, 130), "YX": (90, 70), "XY": (90, 30), "TCZYX": (2, 3, 4, 40, 50), "CXY": (2, 60, 40), "YXC": (40, 60, 3), "CTYX": (2, 3, 20, 30),
            "YX-rgb": (70, 3 * 88), "TZYX-rgba": (2, 3, 40, 4 * 52)}
# The number of samples of a pixel that lie side by side along X; they become channels. The first is a picture as
# TileDB-BioImaging compresses it as WebP.
SAMPLES = {"XY": 3, "YX-rgb": 3, "TZYX-rgba": 4}
CHANNELS_IN = {"YX-rgb": 0, "TZYX-rgba": 1}
# Multiscale images: the number of the axis along each dimension (x, y, channels), and the shapes of the levels.
IMAGES = {"image": ((2, 1, 0), {"full": [3, 64, 96], "half": [3, 32, 48]}), "flat": ((1, 0), {"full": [50, 70], "s": [25, 35]})}
ALLOWED = ["CYX", "YX", "TCZYX", "CXY", *CHANNELS_IN]
LEVELS = 3
XML = '<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25"/></Image></OME>'
PIXELS = {"T": 1, "C": 1, "Z": 1, "Y": 0.25, "X": 0.5}


def shape_of(name, level):
    axes = name.split("-")[0]
    samples = SAMPLES.get(name, 1) if name in CHANNELS_IN else 1
    small = lambda axis, length: (length // samples >> level) * samples if axis == "X" else length >> level
    return tuple(small(axis, length) if axis in "YX" else length for axis, length in zip(axes, PYRAMIDS[name]))


def values(name, level):
    return np.random.default_rng(level).integers(0, 256, shape_of(name, level), dtype="u1")


def shown(name, values):
    """Returns the values with the samples of a pixel along an axis of channels."""
    if name not in CHANNELS_IN:
        return values
    return np.moveaxis(values.reshape(*values.shape[:-1], -1, SAMPLES[name]), -1, CHANNELS_IN[name])


def make():
    for name in PYRAMIDS:
        pyramid(name)
    for name in IMAGES:
        image(name)
    print(*PYRAMIDS, *IMAGES)


def pyramid(of):
    axes = of.split("-")[0]
    tiledb.Group.create(of)
    for level in range(LEVELS):
        name, shape = f"l_{level}.tdb", shape_of(of, level)
        dims = [tiledb.Dim(axis, (0, length - 1), min(length, 32), dtype="u4") for axis, length in zip(axes, shape)]
        filters = None
        if of == "YX-rgb":
            # A tile has whole pixels.
            dims[1] = tiledb.Dim("X", (0, shape[1] - 1), min(shape[1], 48), dtype="u4")
            filters = tiledb.FilterList([tiledb.WebpFilter(input_format=tiledb.filter.lt.WebpInputFormat.WEBP_RGB, quality=100.0, lossless=True)])
        tiledb.Array.create(f"{of}/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("intensity", dtype="u1", filters=filters)]))
        with tiledb.open(f"{of}/{name}", "w") as array:
            array[:] = values(of, level)
            array.meta["level"] = level
        with tiledb.Group(of, "w") as group:
            group.add(name, name, relative=True)
    levels = [{"level": level, "name": f"l_{level}.tdb", "axes": axes, "shape": shape_of(of, level)} for level in range(LEVELS)]
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    channels = [{"id": name, "name": name, "color": dict(zip(("red", "green", "blue", "alpha"), (*colour, 255))), "min": 0.0, "max": 255.0}
                for name, colour in zip(("first", "second", "third"), colours)]
    with tiledb.Group(of, "w") as group:
        group.meta["dataset_type"] = "BIOIMG"
        group.meta["axes"] = axes
        group.meta["levels"] = json.dumps(levels)
        group.meta["pixel_depth"] = json.dumps({str(level): SAMPLES.get(of, 1) for level in range(LEVELS)})
        group.meta["metadata"] = json.dumps({"channels": {"intensity": channels}, "axes": []})
        group.meta["original_metadata"] = json.dumps({"ome_metadata": XML})


def image(of):
    """Writes a multiscale image of TileDB-SOMA, whose dimensions have no names of axes."""
    permutation, shapes = IMAGES[of]
    tiledb.Group.create(of)
    for name, shape in shapes.items():
        dims = [tiledb.Dim(f"soma_dim_{number}", (0, length - 1), min(length, 32), dtype="i8") for number, length in enumerate(shape)]
        tiledb.Array.create(f"{of}/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("soma_data", dtype="u2")]))
        with tiledb.open(f"{of}/{name}", "w") as array:
            array[:] = np.random.default_rng(len(name)).integers(0, 9999, shape, dtype="u2")
            array.meta["soma_object_type"] = "SOMADenseNDArray"
        with tiledb.Group(of, "w") as group:
            group.add(name, name, relative=True)
            group.meta[f"soma_level_{name}"] = json.dumps(shape)
    with tiledb.Group(of, "w") as group:
        group.meta["soma_object_type"] = "SOMAMultiscaleImage"
        group.meta["soma_coordinate_space"] = json.dumps([{"name": "x", "unit": None}, {"name": "y", "unit": None}])
        group.meta["soma_multiscale_image_schema"] = json.dumps({"data_axis_permutation": permutation, "shape": shapes["full"]})


def check_images():
    import rasterio
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    for of, (permutation, shapes) in IMAGES.items():
        axes = "".join("xyc"[axis] for axis in permutation)
        [node] = [node for node in Reader(parse_url(f"mnt_{of}/zarr"))() if node.data]
        assert [axis["name"] for axis in node.metadata["axes"]] == list(axes)
        assert len(node.data) == len(shapes)
        for (name, shape), data in zip(shapes.items(), node.data):
            with tiledb.open(f"{of}/{name}") as array:
                expected = array[:]["soma_data"]
            assert expected.shape == tuple(shape) and np.array_equal(data.compute(), expected), (of, name)
            member = zarr.open_array(f"mnt_{of}/zarr/{name}/soma_data", mode="r")
            assert member.metadata.dimension_names == tuple(axes)
        # Elsewhere dimensions have their own names.
        names = zarr.open_array(f"mnt_{of}/full/zarr/soma_data", mode="r").metadata.dimension_names
        assert names == tuple(f"soma_dim_{number}" for number in range(len(axes))), names
        assert os.listdir(f"mnt_{of}/tiff") == ["soma_data.ome.tif"]
        with rasterio.open(f"mnt_{of}/tiff/soma_data.ome.tif") as picture, tiledb.open(f"{of}/full") as array:
            expected = array[:]["soma_data"]
            assert np.array_equal(picture.read(1), expected[0] if expected.ndim == 3 else expected)


def check():
    check_images()
    from ome_zarr.axes import Axes
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    for of in PYRAMIDS:
        axes = of.split("-")[0]
        path = f"mnt_{of}/zarr"
        assert "zarr" not in os.listdir(f"mnt_{of}")
        group = zarr.open_group(path, mode="r")
        assert sorted(group.group_keys()) == [f"l_{level}.tdb" for level in range(LEVELS)]
        nodes = [node for node in Reader(parse_url(path))() if node.data]
        if of not in ALLOWED:
            assert not nodes and "ome" not in group.attrs and (axes in group.attrs["left_out"]["ome"] or axes in SAMPLES)
            # ome-zarr rejects these axes too.
            with contextlib.suppress(ValueError):
                Axes(list(axes.lower()))
                assert axes in SAMPLES, axes
            assert np.array_equal(group["l_0.tdb/intensity"][...], values(of, 0))
            continue
        place = CHANNELS_IN.get(of, 0)
        of_zarr = axes.lower()[:place] + "c" * (of in CHANNELS_IN) + axes.lower()[place:]
        [scales] = group.attrs["ome"]["multiscales"]
        [node] = nodes
        assert len(node.data) == LEVELS
        for level, data in enumerate(node.data):
            with tiledb.open(f"{of}/l_{level}.tdb") as array:
                expected = array[:]["intensity"]
            assert np.array_equal(expected, values(of, level)) and np.array_equal(data.compute(), shown(of, expected)), level
            [transformation] = scales["datasets"][level]["coordinateTransformations"]
            sizes = list(zip(axes, shape_of(of, 0), shape_of(of, level)))
            sizes[CHANNELS_IN.get(of, 0):0] = [("C", 1, 1)] * (of in CHANNELS_IN)
            assert transformation["scale"] == [PIXELS[axis] * whole / own for axis, whole, own in sizes]
            member = zarr.open_array(f"{path}/{scales['datasets'][level]['path']}", mode="r")
            assert member.metadata.dimension_names == tuple(of_zarr)
        assert [axis["name"] for axis in node.metadata["axes"]] == list(of_zarr)
        if "C" in axes or of == "YX-rgb":
            assert node.metadata["channel_names"] == ["first", "second", "third"], node.metadata
    print(len(PYRAMIDS))


make() if sys.argv[1] == "make" else check()
