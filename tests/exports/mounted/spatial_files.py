"""zarr-python, ome-zarr, GeoPandas, Dask and anndata open the parts of spatialdata/ of a mounted experiment in TileDB-SOMA's
form: all values equal those that libtiledb reads, and transformations lead to the scene. `read` opens it with spatialdata."""

import json
import sys

import numpy as np
import tiledb

from soma_files import add, create, frame, group, matrix, text, variables

SPOTS, GENES, CELLS = 40, 6, 2500
SCENE = ("left", "right")
# What leads from the scene to each element, as TileDB-SOMA writes it, and the matrix of the way back.
TRANSFORMS = {
    "spots": ({"transform_type": "ScaleTransform", "transform": {"scale_factors": [0.5, 4.0]}}, [[2, 0, 0], [0, 0.25, 0]]),
    "cells": ({"transform_type": "AffineTransform", "transform": {"matrix": [[0, 2, 5], [-1, 0, 7], [0, 0, 1]]}}, [[0, -1, 7], [0.5, 0, -2.5]]),
    "lone": (None, [[1, 0, 0], [0, 1, 0]]),
    "picture": ({"transform_type": "UniformScaleTransform", "transform": {"scale": 2.0}}, [[0.5, 0, 0], [0, 0.5, 0]]),
    "outlines": ({"transform_type": "ScaleTransform", "transform": {"scale_factors": [2.0, 0.5]}}, [[0.5, 0, 0], [0, 2, 0]]),
    "molecules": ({"transform_type": "IdentityTransform", "transform": {}}, [[1, 0, 0], [0, 1, 0]]),
}
LEVELS = {"full": (3, 64, 96), "half": (3, 32, 48)}
random = np.random.default_rng(48)


def space(axes):
    return json.dumps([{"name": axis, "unit": None} for axis in axes])


def points(path, axes=("x", "y"), rows=SPOTS, **metadata):
    dims = [tiledb.Dim(axis, (-1e9, 1e9), 100.0, dtype="f8") for axis in axes] + [tiledb.Dim("soma_joinid", (0, 1000), 50, dtype="i8")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("n", dtype="i8")], sparse=True))
    with tiledb.open(path, "w") as array:
        array[(*random.uniform(0, 100, (len(axes), rows)), random.permutation(rows))] = {"n": random.integers(0, 99, rows)}
        array.meta["soma_object_type"] = "SOMAPointCloudDataFrame"
        array.meta["soma_coordinate_space"] = space(axes)
        for key, value in metadata.items():
            array.meta[key] = value


def geometries(path, shapes, axes=("x", "y"), **columns):
    """Makes a frame of geometries as TileDB-SOMA does: the dimensions are the sides of their boxes."""
    import shapely

    bounds = shapely.bounds(shapes)
    sides = {f"tiledb__internal__{axis}__{end}": bounds[:, 2 * number + place]
             for number, end in enumerate(("min", "max")) for place, axis in enumerate(axes)}
    dims = [tiledb.Dim(side, (-1e9, 1e9), 2048.0, dtype="f8") for side in sides] + [tiledb.Dim("soma_joinid", (0, 9999), 50, dtype="i8")]
    attrs = [tiledb.Attr("soma_geometry", dtype="wkb", var=True), tiledb.Attr("kind", dtype="U0", var=True)]
    attrs += [tiledb.Attr(name, dtype="i8") for name in columns]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True))
    cells = {"soma_geometry": text(shapely.to_wkb(shapes)), "kind": text(shape.geom_type for shape in shapes), **columns}
    with tiledb.open(path, "w") as array:
        array[(*sides.values(), random.permutation(len(shapes)))] = cells
        array.meta["soma_object_type"] = "SOMAGeometryDataFrame"
        array.meta["soma_coordinate_space"] = space(axes)


def polygons():
    """Returns boxes, circles with holes, and pairs of boxes."""
    import shapely

    low = random.uniform(0, 100, (CELLS, 2))
    boxes = shapely.box(*low.T, *(low + random.uniform(1, 5, (CELLS, 2))).T)
    rings = shapely.difference(shapely.buffer(shapely.centroid(boxes), 3), shapely.buffer(shapely.centroid(boxes), 1))
    pairs = shapely.multipolygons([[shape, shapely.transform(shape, lambda points: points + 10)] for shape in boxes])
    return np.where(np.arange(CELLS) % 3 == 0, boxes, np.where(np.arange(CELLS) % 3 == 1, rings, pairs))


def image(path):
    schema = {"data_axis_permutation": [2, 1, 0], "shape": LEVELS["full"], "has_channel_axis": True, "datatype": "C"}
    group(path, "SOMAMultiscaleImage", soma_coordinate_space=space("xy"), soma_multiscale_image_schema=json.dumps(schema),
          **{f"soma_level_{name}": json.dumps(shape) for name, shape in LEVELS.items()})
    for name, shape in LEVELS.items():
        dims = [tiledb.Dim(f"soma_dim_{axis}", (0, length - 1), min(length, 32), dtype="i8") for axis, length in enumerate(shape)]
        tiledb.Array.create(f"{path}/{name}", tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("soma_data", dtype="u1")]))
        with tiledb.open(f"{path}/{name}", "w") as array:
            array[:] = random.integers(0, 256, shape, dtype="u1")
    add(path, *LEVELS)


def collection(path, *names):
    """Makes a collection of a scene, with the transformations of its members."""
    with tiledb.Group(path, "w") as made:
        for name in names:
            transform = TRANSFORMS.get(name, (None,))[0]
            if transform is not None:
                of_axes = {"input_axes": SCENE, "output_axes": ("x", "y")}
                made.meta[f"soma_scene_registry_{name}"] = json.dumps({**transform, "transform": {**transform["transform"], **of_axes}})
    add(path, *names)


def make():
    group("spatial", "SOMAExperiment")
    frame("spatial/obs", SPOTS, [("obs_id", "U0", {"var": True})], {"obs_id": text(f"spot {row}" for row in range(SPOTS))})
    group("spatial/ms", "SOMACollection")
    group("spatial/ms/RNA", "SOMAMeasurement")
    variables("spatial/ms/RNA/var", GENES, "G")
    group("spatial/ms/RNA/X", "SOMACollection")
    matrix("spatial/ms/RNA/X/data", (SPOTS, GENES), 0.4)
    add("spatial/ms/RNA/X", "data")
    add("spatial/ms/RNA", "var", "X")
    add("spatial/ms", "RNA")
    group("spatial/spatial", "SOMACollection")
    scene = group("spatial/spatial/s1", "SOMAScene", soma_coordinate_space=space(SCENE))
    for name in "obsl", "img", "varl", "varl/RNA":
        group(f"{scene}/{name}", "SOMACollection")
    points(f"{scene}/obsl/spots", soma_geometry=2.5, soma_geometry_type="radius")
    points(f"{scene}/obsl/cells")
    points(f"{scene}/obsl/lone")
    points(f"{scene}/obsl/deep", ("x", "y", "z"))
    points(f"{scene}/obsl/named", ("a", "b"))
    import shapely

    shapes = polygons()
    geometries(f"{scene}/obsl/outlines", shapes)
    geometries(f"{scene}/obsl/mixed", np.append(shapes[:9], shapely.linestrings([[0, 0], [1, 1]])))
    geometries(f"{scene}/obsl/heights", shapely.force_3d(shapes[:9]))
    geometries(f"{scene}/obsl/places", shapely.points(random.uniform(0, 9, (9, 2))))
    geometries(f"{scene}/obsl/twice", shapes[:9], geometry=np.arange(9))
    collection(f"{scene}/obsl", "spots", "cells", "lone", "deep", "named", "outlines", "mixed", "heights", "places", "twice")
    points(f"{scene}/varl/RNA/molecules", rows=GENES)
    collection(f"{scene}/varl/RNA", "molecules")
    collection(f"{scene}/varl", "RNA")
    image(f"{scene}/img/picture")
    collection(f"{scene}/img", "picture")
    add(scene, "obsl", "img", "varl")
    # No scene, and a scene without a space.
    group("spatial/spatial/bare", "SOMAScene")
    add("spatial/spatial", "s1", "bare")
    add("spatial", "obs", "ms", "spatial")
    print("spatial")


STORE = "mnt_spatial/spatialdata"
LEFT_OUT = ["deep", "named", "mixed", "heights", "places", "twice"]
ELEMENTS = {"shapes": {"s1_spots": "obsl/spots", "s1_outlines": "obsl/outlines"}, "images": {"s1_picture": "img/picture"},
            "points": {"s1_cells": "obsl/cells", "s1_lone": "obsl/lone", "s1_RNA_molecules": "varl/RNA/molecules"}}


def stored(path):
    with tiledb.open(f"spatial/spatial/s1/{path}") as array:
        return array[:]


def same(table, path, x, y):
    """Compares a table with the cells of an array, in the order of the numbers of rows."""
    cells = stored(path)
    order, own = np.argsort(table["soma_joinid"].to_numpy()), np.argsort(cells["soma_joinid"])
    for name, found in {"x": x, "y": y, "n": table["n"], "soma_joinid": table["soma_joinid"]}.items():
        assert (np.asarray(found)[order] == cells[name][own]).all(), f"{path} {name}"


def same_outlines(frame):
    """Compares polygons with those that libtiledb reads."""
    import shapely

    cells = stored("obsl/outlines")
    order = np.argsort(cells["soma_joinid"])
    wanted = shapely.from_wkb([np.asarray(cell).tobytes() for cell in cells["soma_geometry"][order]])
    frame = frame.sort_values("soma_joinid")
    assert frame.geometry.name == "geometry" and len(frame) == CELLS and (frame["kind"] == cells["kind"][order]).all()
    assert shapely.equals_exact(frame.geometry.values, wanted, 0).all() and set(frame.geom_type) == {"Polygon", "MultiPolygon"}


def check():
    import anndata
    import dask.dataframe
    import geopandas
    import zarr

    root = zarr.open_group(STORE, mode="r")
    assert root.attrs["spatialdata_attrs"] == {"version": "0.2"}
    left_out = root.attrs["left_out"]
    assert left_out.keys() == {"spatial/bare", *(f"spatial/s1/obsl/{name}" for name in LEFT_OUT)}, left_out
    assert set(root.group_keys()) == {"images", "points", "shapes", "tables"}
    for kind, elements in ELEMENTS.items():
        assert set(root[kind].group_keys()) == set(elements), kind
        for key, path in elements.items():
            name, attributes = path.rpartition("/")[2], root[kind][key].attrs.asdict()
            described = attributes["ome"]["multiscales"][0] if kind == "images" else attributes
            [transformation] = described["coordinateTransformations"]
            found = np.array(transformation["affine"])
            if kind == "images":
                # The axes are channels, y and x.
                assert found[0].tolist() == [1, 0, 0, 0] and not found[1:, 0].any()
                found = found[[2, 1]][:, [2, 1, 3]]
            assert found.tolist() == TRANSFORMS[name][1], key
            assert transformation["output"]["name"] == ("s1" if TRANSFORMS[name][0] else key)
    spots = geopandas.read_parquet(f"{STORE}/shapes/s1_spots/shapes.parquet")
    same(spots, "obsl/spots", spots.geometry.x, spots.geometry.y)
    assert (spots["radius"] == 2.5).all() and spots.geometry.name == "geometry"
    same_outlines(geopandas.read_parquet(f"{STORE}/shapes/s1_outlines/shapes.parquet"))
    for key, path in ELEMENTS["points"].items():
        cloud = dask.dataframe.read_parquet(f"{STORE}/points/{key}/points.parquet").compute()
        same(cloud, path, cloud["x"], cloud["y"])
        assert "radius" not in cloud
    assert [channel["label"] for channel in root["images/s1_picture"].attrs["ome"]["omero"]["channels"]] == ["0", "1", "2"]
    [levels] = [image["datasets"] for image in root["images/s1_picture"].attrs["ome"]["multiscales"]]
    for name, level in zip(LEVELS, levels, strict=True):
        assert (root[f"images/s1_picture/{level['path']}"][:] == stored(f"img/picture/{name}")["soma_data"]).all()
    table = anndata.read_zarr(f"{STORE}/tables/RNA")
    with tiledb.open("spatial/ms/RNA/X/data") as array:
        cells = array[:]
    expected = np.zeros((SPOTS, GENES), "f4")
    expected[cells["soma_dim_0"], cells["soma_dim_1"]] = cells["soma_data"]
    assert (table.X.toarray() == expected).all() and table.obs_names[3] == "spot 3"


def read():
    """Opens the store with spatialdata, whose dependencies exclude those of other tests."""
    import spatialdata
    from spatialdata.transformations import get_transformation

    store = spatialdata.read_zarr(STORE)
    for kind, elements in ELEMENTS.items():
        assert set(getattr(store, kind)) == set(elements), kind
        for key, path in elements.items():
            name, element = path.rpartition("/")[2], getattr(store, kind)[key]
            [(to, map)] = get_transformation(element, get_all=True).items()
            assert to == ("s1" if TRANSFORMS[name][0] else key)
            assert map.to_affine_matrix(("x", "y"), ("x", "y"))[:2].tolist() == TRANSFORMS[name][1], key
    same(store.shapes["s1_spots"], "obsl/spots", store.shapes["s1_spots"].geometry.x, store.shapes["s1_spots"].geometry.y)
    same_outlines(store.shapes["s1_outlines"])
    spatialdata.models.ShapesModel.validate_shapes_not_mixed_types(store.shapes["s1_outlines"])
    for key, path in ELEMENTS["points"].items():
        cloud = store.points[key].compute()
        same(cloud, path, cloud["x"], cloud["y"])
    for scale, name in enumerate(LEVELS):
        assert (store.images["s1_picture"][f"scale{scale}"]["image"].values == stored(f"img/picture/{name}")["soma_data"]).all()
    assert list(store.tables) == ["RNA"] and store.tables["RNA"].shape == (SPOTS, GENES)
    print(store)


{"make": make, "check": check, "read": read}[sys.argv[1]]()
