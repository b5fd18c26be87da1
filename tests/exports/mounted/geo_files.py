"""GeoPandas, pyarrow, DuckDB and GDAL open the geometries of mounted arrays, stored as GDAL's vector driver and TileDB-SOMA
store them: all equal those that libtiledb reads, and readers of a region skip the row groups elsewhere."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import urllib.request

import numpy as np
import tiledb
from tiledb.sparse_array import _setitem_impl_sparse

FEATURES = 200_000
REGION = (10.0, 20.0, 14.0, 26.0)
SPACE = json.dumps([{"name": "x", "unit": None}, {"name": "y", "unit": None}])
random = np.random.default_rng(51)


def create(name, dims, attrs, metadata, cells, valid=None, **options):
    """Writes a sparse array with these cells; `valid` has the validity of nullable attributes."""
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True, capacity=10_000, **options))
    with tiledb.open(name, "w") as array:
        _setitem_impl_sparse(array, tuple(cells.pop(dim.name) for dim in dims), cells, valid or {})
        for key, value in metadata.items():
            array.meta[key] = value


def of_bytes(values):
    cells = np.empty(len(values), "O")
    cells[:] = list(values)
    return cells


def layer(name, count, damaged=(), **metadata):
    """Writes boxes as GDAL writes a layer: the dimensions are the centres of the envelopes. Of damaged geometries, the end is
    missing."""
    import pyproj
    import shapely

    low = np.stack([random.uniform(-170, 160, count), random.uniform(-80, 70, count)])
    high = low + random.uniform(0, 3, (2, count))
    shapes = shapely.box(*low, *high)
    shapes[::7] = shapely.linestrings(np.stack([low.T, high.T], axis=1)[::7])
    shapes[::9] = shapely.multipolygons([[shape] for shape in shapely.box(*low, *high)[::9]])
    pads = (high - low) / 2
    extent = dict(zip(("MINX", "MINY", "MAXX", "MAXY"), (*low.min(axis=1), *high.max(axis=1))))
    of_gdal = {"dataset_type": "geometry", "GEOMETRY_ATTRIBUTE_NAME": "wkb_geometry", "FID_ATTRIBUTE_NAME": "FID", "FEATURE_COUNT": count,
               "PAD_X": float(pads[0].max()), "PAD_Y": float(pads[1].max()), "GeometryType": "Unknown", "CRS": pyproj.CRS(4326).to_json(),
               **{f"LAYER_EXTENT_{side}": float(value) for side, value in extent.items()}}
    dims = [tiledb.Dim(axis, domain, 18.0, dtype="f8") for axis, domain in (("_X", (-360.0, 360.0)), ("_Y", (-90.0, 90.0)))]
    attrs = [tiledb.Attr("FID", dtype="i8"), tiledb.Attr("wkb_geometry", dtype="blob", var=True), tiledb.Attr("name", dtype="U0", var=True)]
    cells = {"_X": low[0] + pads[0], "_Y": low[1] + pads[1], "FID": np.arange(count), "wkb_geometry": of_bytes(shapely.to_wkb(shapes)),
             "name": of_bytes([f"feature \"{number}\"" for number in range(count)])}
    for number in damaged:
        cells["wkb_geometry"][number] = cells["wkb_geometry"][number][:-1]
    create(name, dims, attrs, {**of_gdal, **metadata}, cells, allows_duplicates=True)


def make():
    import shapely

    layer("layer", FEATURES)
    # Another program has added features, of which GDAL's distances tell nothing.
    layer("foreign", 50, FEATURE_COUNT=49, PAD_X=0.0)
    layer("damaged", 50, damaged=[7])
    dims = [tiledb.Dim(axis, (-1e6, 1e6), 1e5, dtype="f8") for axis in ("_X", "_Y", "_Z")]
    cells = {axis: random.uniform(-1000, 1000, 500) for axis in ("_X", "_Y", "_Z")}
    create("points", dims, [tiledb.Attr("FID", dtype="i8")], {"dataset_type": "geometry"}, {**cells, "FID": np.arange(500)})
    dims = [tiledb.Dim(axis, (-1e308, 1e308), 100.0, dtype="f8") for axis in ("x", "y")] + [tiledb.Dim("soma_joinid", (0, 1000), 50, dtype="i8")]
    cells = {"x": random.uniform(0, 100, 60), "y": random.uniform(0, 100, 60), "soma_joinid": np.arange(60), "n": np.arange(60)}
    create("cloud", dims, [tiledb.Attr("n", dtype="i8")], {"soma_object_type": "SOMAPointCloudDataFrame", "soma_coordinate_space": SPACE}, cells)
    ends = [f"tiledb__internal__{axis}__{end}" for end in ("min", "max") for axis in "xy"]
    dims = [tiledb.Dim(end, (-1e308, 1e308), 2048.0, dtype="f8") for end in ends] + [tiledb.Dim("soma_joinid", (0, 1000), 50, dtype="i8")]
    low = random.uniform(0, 100, (2, 40))
    high = low + random.uniform(1, 5, (2, 40))
    shapes = of_bytes(shapely.to_wkb(shapely.box(*low, *high)))
    cells = {**dict(zip(ends, (*low, *high))), "soma_joinid": np.arange(40), "soma_geometry": shapes, "FID": np.arange(40)}
    attrs = [tiledb.Attr("soma_geometry", dtype="wkb", var=True), tiledb.Attr("FID", dtype="i8")]
    create("shapes", dims, attrs, {"soma_object_type": "SOMAGeometryDataFrame", "soma_coordinate_space": SPACE}, cells)
    make_own_names()
    print("layer foreign damaged points cloud shapes own_points own_features own_nulls")


# Columns that are called as what files of features have themselves.
OWN = {"bbox": "f8", "BBOX_2": "i4", "Geometry": "U0", "id": "i8", "type": "U0", "properties": "i8"}


def make_own_names():
    """Writes features and points with columns of such names; some geometries of features are empty or missing."""
    import shapely

    count = 60
    columns = {name: of_bytes([f"{name} {row}" for row in range(count)]) if kind == "U0" else (np.arange(count) * 2 - 7).astype(kind)
               for name, kind in OWN.items()}
    columns["id"][:3] = [2**53, 2**53 + 1, -(2**60)]
    attrs = [tiledb.Attr("FID", dtype="i8")] + [tiledb.Attr(name, dtype=kind, **({"var": True} if kind == "U0" else {})) for name, kind in OWN.items()]
    places = random.uniform(-50, 50, (2, count))
    dims = [tiledb.Dim(axis, (-360.0, 360.0), 18.0, dtype="f8") for axis in ("_X", "_Y")]
    fids = np.arange(count) + 2**53 - 30
    cells = {"_X": places[0], "_Y": places[1], "FID": fids, **columns}
    of_gdal = {"dataset_type": "geometry", "FID_ATTRIBUTE_NAME": "FID"}
    create("own_points", dims, attrs, of_gdal, dict(cells), allows_duplicates=True)
    shapes = [shapely.box(x - 1, y - 1, x + 1, y + 1) for x, y in places.T]
    shapes[1::6] = [shapely.Point(), shapely.Polygon(), shapely.GeometryCollection(), shapely.MultiPolygon(), shapely.LineString()] * 2
    cells["wkb_geometry"] = of_bytes([shapely.to_wkb(shape) for shape in shapes])
    attrs.append(tiledb.Attr("wkb_geometry", dtype="blob", var=True))
    create("own_features", dims, attrs, {**of_gdal, "GEOMETRY_ATTRIBUTE_NAME": "wkb_geometry", "GeometryType": "Unknown"}, dict(cells), allows_duplicates=True)
    attrs[-1] = tiledb.Attr("wkb_geometry", dtype="blob", var=True, nullable=True)
    # TileDB-Py cuts zeros off the ends of cells that can be null, such as those of empty geometries.
    cells["wkb_geometry"] = of_bytes([shapely.to_wkb(shapely.box(x - 1, y - 1, x + 1, y + 1)) for x, y in places.T])
    valid = {"wkb_geometry": (np.arange(count) % 5 != 2).astype("u1")}
    create("own_nulls", dims, attrs, of_gdal, dict(cells), valid, allows_duplicates=True)


def stored(name):
    """Returns the geometries that libtiledb reads, by the number of their feature."""
    import shapely

    with tiledb.open(name) as array:
        cells = array[:]
    number = next(key for key in ("FID", "n") if key in cells)
    if name in ("points", "cloud"):
        axes = [axis for axis in ("_X", "_Y", "_Z", "x", "y") if axis in cells]
        shapes = shapely.points(np.stack([cells[axis] for axis in axes], axis=1))
    else:
        geometry = next(key for key in cells if "geometry" in key)
        shapes = shapely.from_wkb([np.asarray(cell).tobytes() for cell in cells[geometry]])
    return dict(zip(cells[number].tolist(), shapes))


def same(found, expected, where):
    assert found.keys() == expected.keys(), f"{where}: {len(found)} of {len(expected)}"
    assert all(shape.equals_exact(expected[number], 0) and shape.has_z == expected[number].has_z for number, shape in found.items()), where


def is_near(shape, region):
    xmin, ymin, xmax, ymax = shape.bounds
    return xmin <= region[2] and xmax >= region[0] and ymin <= region[3] and ymax >= region[1]


def check_bounds(path, description):
    """Checks that the boxes are those of the geometries, and that the bounds of row groups hold; returns how many row groups have
    bounds."""
    import pyarrow.parquet
    import shapely

    file, counted = pyarrow.parquet.ParquetFile(path), 0
    assert description["covering"]["bbox"] == {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}
    for group in range(file.num_row_groups):
        rows = file.read_row_group(group)
        boxes = np.stack([rows["bbox"].combine_chunks().field(side).to_numpy() for side in ("xmin", "ymin", "xmax", "ymax")], axis=1)
        assert (boxes == shapely.bounds(shapely.from_wkb(rows[description["name"]].to_pylist()))).all(), path
        facts = file.metadata.row_group(group)
        columns = {facts.column(number).path_in_schema: facts.column(number) for number in range(facts.num_columns)}
        for number, side in enumerate(("xmin", "ymin", "xmax", "ymax")):
            known = columns[f"bbox.{side}"].statistics
            if known is not None and known.has_min_max:
                assert known.min <= boxes[:, number].min() and boxes[:, number].max() <= known.max, f"{path} {group} {side}"
                counted += 1
    return counted // 4


def check():
    import geopandas
    import pyarrow.dataset
    import pyarrow.parquet
    import shapely

    has = {}
    for name in "layer", "foreign", "points", "cloud", "shapes":
        path, expected = f"mnt_{name}/parquet/cells.parquet", stored(name)
        number = "n" if name == "cloud" else "FID"
        geo = json.loads(pyarrow.parquet.read_schema(path).metadata[b"geo"])
        assert geo["version"] == "1.1.0"
        [(column, description)] = geo["columns"].items()
        assert geo["primary_column"] == column
        has[name] = check_bounds(path, {"name": column, **description})
        whole = geopandas.read_parquet(path)
        same(dict(zip(whole[number], whole.geometry)), expected, path)
        all_bounds = shapely.total_bounds(list(expected.values())).tolist()
        if name == "points":
            assert [description["bbox"][place] for place in (0, 1, 3, 4)] == all_bounds and description["geometry_types"] == ["Point Z"]
        else:
            assert description.get("bbox") == all_bounds, description
        assert whole.crs is None or whole.crs == "EPSG:4326", whole.crs
        region = REGION if name in ("layer", "foreign") else (-50.0, 20.0, 60.0, 60.0)
        near = geopandas.read_parquet(path, bbox=region)
        same(dict(zip(near[number], near.geometry)), {key: shape for key, shape in expected.items() if is_near(shape, region)}, f"{path} {region}")
        lines = geopandas.read_file(f"GeoJSONSeq:mnt_{name}/text/cells.geojsonl", columns=[number]) if name != "layer" else None
        if lines is not None:
            same(dict(zip(map(int, lines[number]), lines.geometry)), expected, f"{name} GeoJSON")
    assert min(has.values()) > 0, has

    # A geometry that cannot be read makes no other column unreadable.
    columns = ["FID", "name", "wkb_geometry"]
    assert len(pyarrow.parquet.read_table("mnt_damaged/parquet/cells.parquet", columns=columns)) == 50
    for wrong in (lambda: pyarrow.parquet.read_table("mnt_damaged/parquet/cells.parquet"), lambda: open("mnt_damaged/text/cells.geojsonl").read()):
        try:
            wrong()
        except OSError:
            continue
        raise AssertionError("a damaged geometry is no error")

    # Readers of a region skip the row groups that are elsewhere.
    field = lambda side: pyarrow.dataset.field("bbox", side)
    nearby = (field("xmin") <= REGION[2]) & (field("xmax") >= REGION[0]) & (field("ymin") <= REGION[3]) & (field("ymax") >= REGION[1])
    [fragment] = pyarrow.dataset.dataset("mnt_layer/parquet/cells.parquet").get_fragments()
    everywhere, here = (len(fragment.split_by_row_group(condition)) for condition in (None, nearby))
    assert 0 < here < everywhere, f"{here} of {everywhere} row groups"
    lines = [json.loads(line) for line in open("mnt_layer/text/cells.geojsonl")]
    found = {line["properties"]["FID"]: shapely.geometry.shape(line["geometry"]) for line in lines}
    same({int(key): shape for key, shape in found.items()}, stored("layer"), "layer GeoJSON")
    assert lines[5]["type"] == "Feature" and lines[5]["properties"]["name"].startswith('feature "')
    part = [json.loads(line) for line in open("mnt_layer/slice/_X=10..14,_Y=20..26/text/cells.geojsonl")]
    assert 0 < len(part) < len(lines) and all(10 <= line["properties"]["_X"] <= 14 for line in part)


def own_names():
    """Checks that columns keep their names, features their identifiers, and missing geometries are null."""
    import geopandas
    import pyarrow.parquet
    import pyogrio
    import shapely

    for name in "own_points", "own_features", "own_nulls":
        with tiledb.open(name) as array:
            read = array[:]
        rows = {}
        for row, fid in enumerate(read["FID"].tolist()):
            if name == "own_points":
                shape = shapely.Point(read["_X"][row], read["_Y"][row])
            else:
                is_null = np.ma.getmaskarray(read["wkb_geometry"])[row]
                shape = None if is_null else shapely.from_wkb(np.asarray(np.ma.getdata(read["wkb_geometry"])[row]).tobytes())
            rows[fid] = shape, {column: read[column][row].item() if hasattr(read[column][row], "item") else read[column][row] for column in OWN}
        path = f"mnt_{name}/parquet/cells.parquet"
        geo = json.loads(pyarrow.parquet.read_schema(path).metadata[b"geo"])
        covering = geo["columns"][geo["primary_column"]]["covering"]["bbox"]["xmin"]
        assert covering == ["bbox_3", "xmin"], covering
        assert geo["primary_column"] == ("geometry_2" if name == "own_points" else "wkb_geometry"), geo
        whole = geopandas.read_parquet(path)
        assert len(whole) == len(rows)
        for fid, shape, *values in zip(whole["FID"], whole.geometry, *(whole[column] for column in OWN)):
            expected, own = rows[fid]
            assert (shape is None) == (expected is None) and (shape is None or shape.equals_exact(expected, 0)), (name, fid, shape, expected)
            assert values == list(own.values()), (name, fid)
        region = (-20.0, -20.0, 20.0, 20.0)
        # The boxes of empty and missing geometries are no numbers, which a filter of Arrow keeps.
        found = set(geopandas.read_parquet(path, bbox=region)["FID"])
        near = {fid for fid in found if rows[fid][0] is not None and not rows[fid][0].is_empty}
        box = shapely.box(*region)
        assert near == {fid for fid, (shape, _) in rows.items() if shape is not None and shape.intersects(box)}, name
        lines = f"mnt_{name}/text/cells.geojsonl"
        exact = lambda value: value if not isinstance(value, int) or abs(value) <= 2**53 else str(value)
        for line in open(lines, encoding="utf-8"):
            feature = json.loads(line)
            assert list(feature) == ["type", "id", "geometry", "properties"] and feature["type"] == "Feature", feature
            properties, fid = feature["properties"], int(feature["id"])
            shape, own = rows.pop(fid)
            assert feature["id"] == properties["FID"] == exact(fid), feature
            found = None if feature["geometry"] is None else shapely.from_geojson(json.dumps(feature["geometry"]))
            assert (found is None) == (shape is None) and (shape is None or found.equals(shape) or found.is_empty and shape.is_empty), feature
            assert {column: properties[column] for column in OWN} == {column: exact(value) for column, value in own.items()}, feature
        assert not rows
        assert len(pyogrio.read_dataframe(lines)) == len(whole)


@contextlib.contextmanager
def served(tilefs, name):
    """Serves an array, and gives the address of its folder."""
    server = subprocess.Popen([tilefs, "serve", name, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        yield "http://" + server.stdout.readline().rpartition("http://")[2].strip()
    finally:
        server.terminate()
        server.wait()


def streams():
    """Compares the features that are printed, and those that are downloaded, with what libtiledb reads."""
    import pyogrio
    import shapely

    tilefs = os.environ["TILEFS_PROGRAM"]
    printed = lambda name: subprocess.run([tilefs, "cat", name, "text/cells.geojsonl"], capture_output=True)
    for name in "foreign", "points", "cloud", "shapes":
        cat = printed(name)
        assert cat.returncode == 0, cat.stderr
        with served(tilefs, name) as url:
            download = urllib.request.urlopen(url + "text/cells.geojsonl").read()
        assert download == cat.stdout, name
        lines = [json.loads(line) for line in cat.stdout.splitlines()]
        number = "n" if name == "cloud" else "FID"
        found = {line["properties"][number]: shapely.geometry.shape(line["geometry"]) for line in lines}
        same({int(key): shape for key, shape in found.items()}, stored(name), f"{name} printed")
        with open(f"{name}.geojsonl", "wb") as file:
            file.write(download)
        assert pyogrio.read_info(f"{name}.geojsonl")["features"] == len(lines), name

    # The features before a damaged one are printed; a download that ends early is an error.
    cat = printed("damaged")
    assert cat.returncode != 0 and b"wkb_geometry" in cat.stderr, cat.stderr
    with served(tilefs, "damaged") as url:
        try:
            urllib.request.urlopen(url + "text/cells.geojsonl").read()
        except (OSError, http.client.HTTPException):
            return
        raise AssertionError("a damaged geometry is no error")


def query():
    """Asks DuckDB for a region, by the boxes."""
    import duckdb

    condition = "bbox.xmin <= 14 and bbox.xmax >= 10 and bbox.ymin <= 26 and bbox.ymax >= 20"
    found = duckdb.sql(f"select FID from 'mnt_layer/parquet/cells.parquet' where {condition}").fetchall()
    expected = {number for number, shape in stored("layer").items() if is_near(shape, REGION)}
    assert {number for number, in found} == expected and expected


{"make": make, "check": check, "streams": streams, "query": query, "own_names": own_names}[sys.argv[1]]()
