"""ome-zarr opens zarr/ of a mounted pyramid of pictures, as TileDB-BioImaging writes them: every value is libtiledb's."""

import json
import os
import sys

import numpy as np
import tiledb
import zarr

SHAPES = [(3, 100, 130), (3, 50, 65), (3, 25, 33)]
XML = '<OME><Image><Pixels PhysicalSizeX="0.5" PhysicalSizeY="0.25"/></Image></OME>'
PIXELS = {"C": 1, "Y": 0.25, "X": 0.5}


def values(level):
    return np.random.default_rng(level).integers(0, 256, SHAPES[level], dtype="u1")


def make():
    tiledb.Group.create("pyramid")
    for level, shape in enumerate(SHAPES):
        name = f"l_{level}.tdb"
        dims = [tiledb.Dim(axis, (0, length - 1), min(length, 32), dtype="u4") for axis, length in zip("CYX", shape)]
        tiledb.Array.create(f"pyramid/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("intensity", dtype="u1")]))
        with tiledb.open(f"pyramid/{name}", "w") as array:
            array[:] = values(level)
            array.meta["level"] = level
        with tiledb.Group("pyramid", "w") as group:
            group.add(name, name, relative=True)
    levels = [{"level": level, "name": f"l_{level}.tdb", "axes": "CYX", "shape": shape} for level, shape in enumerate(SHAPES)]
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    channels = [{"id": name, "name": name, "color": dict(zip(("red", "green", "blue", "alpha"), (*colour, 255))), "min": 0.0, "max": 255.0}
                for name, colour in zip(("first", "second", "third"), colours)]
    with tiledb.Group("pyramid", "w") as group:
        group.meta["dataset_type"] = "BIOIMG"
        group.meta["axes"] = "CYX"
        group.meta["levels"] = json.dumps(levels)
        group.meta["metadata"] = json.dumps({"channels": {"intensity": channels}, "axes": []})
        group.meta["original_metadata"] = json.dumps({"ome_metadata": XML})
    print("pyramid")


def check():
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    path = "mnt_pyramid/zarr"
    assert "zarr" not in os.listdir("mnt_pyramid")
    group = zarr.open_group(path, mode="r")
    assert sorted(group.group_keys()) == [f"l_{level}.tdb" for level in range(len(SHAPES))]
    [scales] = group.attrs["ome"]["multiscales"]
    [node] = [node for node in Reader(parse_url(path))() if node.data]
    assert len(node.data) == len(SHAPES)
    for level, (data, shape) in enumerate(zip(node.data, SHAPES)):
        with tiledb.open(f"pyramid/l_{level}.tdb") as array:
            expected = array[:]["intensity"]
        assert np.array_equal(expected, values(level)) and np.array_equal(data.compute(), expected), level
        [transformation] = scales["datasets"][level]["coordinateTransformations"]
        assert transformation["scale"] == [PIXELS[axis] * whole / own for axis, whole, own in zip("CYX", SHAPES[0], shape)]
        assert zarr.open_array(f"{path}/{scales['datasets'][level]['path']}", mode="r").metadata.dimension_names == tuple("CYX")
    assert [axis["name"] for axis in node.metadata["axes"]] == list("CYX")
    assert node.metadata["channel_names"] == ["first", "second", "third"], node.metadata
    print(len(SHAPES))


make() if sys.argv[1] == "make" else check()
