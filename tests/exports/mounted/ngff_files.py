"""ome-zarr opens zarr/ of mounted pyramids of pictures, as TileDB-BioImaging writes them: all values equal those that
libtiledb reads."""

import contextlib
import json
import os
import sys

import numpy as np
import tiledb
import zarr

# Pyramids by the order of their axes. NGFF does not allow some orders, nor samples that lie side by side: such groups
# have a reason and the plain arrays.
PYRAMIDS = {"CYX": (3, 100, 130), "YX": (90, 70), "XY": (90, 30), "TCZYX": (2, 3, 4, 40, 50), "CXY": (2, 60, 40), "YXC": (40, 60, 3), "CTYX": (2, 3, 20, 30)}
# The number of samples of a pixel that lie side by side along X.
SAMPLES = {"XY": 3}
ALLOWED = ["CYX", "YX", "TCZYX", "CXY"]
LEVELS = 3
XML = '<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25"/></Image></OME>'
PIXELS = {"T": 1, "C": 1, "Z": 1, "Y": 0.25, "X": 0.5}


def shape_of(axes, level):
    return tuple(length >> level if axis in "YX" else length for axis, length in zip(axes, PYRAMIDS[axes]))


def values(axes, level):
    return np.random.default_rng(level).integers(0, 256, shape_of(axes, level), dtype="u1")


def make():
    for axes in PYRAMIDS:
        pyramid(axes)
    print(*PYRAMIDS)


def pyramid(axes):
    tiledb.Group.create(axes)
    for level in range(LEVELS):
        name, shape = f"l_{level}.tdb", shape_of(axes, level)
        dims = [tiledb.Dim(axis, (0, length - 1), min(length, 32), dtype="u4") for axis, length in zip(axes, shape)]
        tiledb.Array.create(f"{axes}/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("intensity", dtype="u1")]))
        with tiledb.open(f"{axes}/{name}", "w") as array:
            array[:] = values(axes, level)
            array.meta["level"] = level
        with tiledb.Group(axes, "w") as group:
            group.add(name, name, relative=True)
    levels = [{"level": level, "name": f"l_{level}.tdb", "axes": axes, "shape": shape_of(axes, level)} for level in range(LEVELS)]
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    channels = [{"id": name, "name": name, "color": dict(zip(("red", "green", "blue", "alpha"), (*colour, 255))), "min": 0.0, "max": 255.0}
                for name, colour in zip(("first", "second", "third"), colours)]
    with tiledb.Group(axes, "w") as group:
        group.meta["dataset_type"] = "BIOIMG"
        group.meta["axes"] = axes
        group.meta["levels"] = json.dumps(levels)
        group.meta["pixel_depth"] = json.dumps({str(level): SAMPLES.get(axes, 1) for level in range(LEVELS)})
        group.meta["metadata"] = json.dumps({"channels": {"intensity": channels}, "axes": []})
        group.meta["original_metadata"] = json.dumps({"ome_metadata": XML})


def check():
    from ome_zarr.axes import Axes
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    for axes in PYRAMIDS:
        path = f"mnt_{axes}/zarr"
        assert "zarr" not in os.listdir(f"mnt_{axes}")
        group = zarr.open_group(path, mode="r")
        assert sorted(group.group_keys()) == [f"l_{level}.tdb" for level in range(LEVELS)]
        nodes = [node for node in Reader(parse_url(path))() if node.data]
        if axes not in ALLOWED:
            assert not nodes and "ome" not in group.attrs and (axes in group.attrs["left_out"]["ome"] or axes in SAMPLES)
            # ome-zarr rejects these axes too.
            with contextlib.suppress(ValueError):
                Axes(list(axes.lower()))
                assert axes in SAMPLES, axes
            assert np.array_equal(group["l_0.tdb/intensity"][...], values(axes, 0))
            continue
        [scales] = group.attrs["ome"]["multiscales"]
        [node] = nodes
        assert len(node.data) == LEVELS
        for level, data in enumerate(node.data):
            with tiledb.open(f"{axes}/l_{level}.tdb") as array:
                expected = array[:]["intensity"]
            assert np.array_equal(expected, values(axes, level)) and np.array_equal(data.compute(), expected), level
            [transformation] = scales["datasets"][level]["coordinateTransformations"]
            sizes = zip(axes, shape_of(axes, 0), shape_of(axes, level))
            assert transformation["scale"] == [PIXELS[axis] * whole / own for axis, whole, own in sizes]
            member = zarr.open_array(f"{path}/{scales['datasets'][level]['path']}", mode="r")
            assert member.metadata.dimension_names == tuple(axes.lower())
        assert [axis["name"] for axis in node.metadata["axes"]] == list(axes.lower())
        if "C" in axes:
            assert node.metadata["channel_names"] == ["first", "second", "third"], node.metadata
    print(len(PYRAMIDS))


make() if sys.argv[1] == "make" else check()
