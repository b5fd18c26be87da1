"""Makes the arrays that the tests of the page look at, and prints what TileDB reads from these and from real ones.

usage: arrays.py FOLDER DEMO CORPUS
"""

import json
import pathlib
import struct
import sys
import zlib

import numpy as np
import tiledb
from tiledb.sparse_array import _setitem_impl_sparse

folder, demo, corpus = sys.argv[1:]
SCRIPT = "<script>window.ran = 1</script>"
NAMES = [SCRIPT, '"><img src=x onerror="window.ran = 2">', "\u202egnp.exe", "שלום", "🐘 & 'quotes'", "a%2Cb,c=d+e"]


def make(name, shape, attributes, metadata=(), tile=4, dtype=np.int32, names=None):
    dimensions = [tiledb.Dim(names[at] if names else f"d{at}", domain=(0, length - 1), tile=min(tile, length), dtype=dtype) for at, length in enumerate(shape)]
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dimensions), attrs=attributes)
    tiledb.Array.create(f"{folder}/{name}", schema)
    if metadata:
        with tiledb.open(f"{folder}/{name}", "w") as array:
            for key, value in metadata:
                array.meta[key] = value
    return f"{folder}/{name}"


def floats(name="a"):
    return [tiledb.Attr(name, dtype=np.float32)]


def write(path, values):
    with tiledb.open(path, "w") as array:
        array[:] = values


tiledb.group_create(f"{folder}")
named = make("names", (4, 4), [tiledb.Attr(name, dtype=np.int32) for name in NAMES], [(name, SCRIPT) for name in NAMES])
write(named, {name: np.arange(16, dtype=np.int32).reshape(4, 4) for name in NAMES})
make(SCRIPT.replace("/", "%2F"), (2,), floats())
# Nothing is written to these, or only not-a-number.
make("empty", (100, 100), floats(), tile=50)
write(make("nan", (60, 60), floats(), tile=60), np.full((60, 60), np.nan, np.float32))
enormous = make("enormous", (2**31, 2**31), floats(), tile=1024, dtype=np.uint64)
with tiledb.open(enormous, "w") as array:
    array[:1, :1] = np.zeros((1, 1), np.float32)
make("many", (4,), [tiledb.Attr(f"a{at:06}", dtype=np.int8) for at in range(100_000)])
single = make("single", (1, 1), [tiledb.Attr("a", dtype=np.float64)])
write(single, np.array([[0.1]]))
cube = make("cube", (3, 5, 7), [tiledb.Attr("a", dtype=np.int64)])
write(cube, np.arange(105, dtype=np.int64).reshape(3, 5, 7) + 2**53)
texts = make("texts", (3, 4), [tiledb.Attr("a", dtype="U0")])
write(texts, np.array([[f"{SCRIPT}{row}{column}" for column in range(4)] for row in range(3)], dtype="O"))
complexes = make("complex", (3, 4), [tiledb.Attr("a", dtype=np.complex128)])
write(complexes, np.arange(12).reshape(3, 4) * (1 - 2j))
first = np.datetime64("2020-01-01T00:00:00.123456701", "ns")
time = tiledb.Dim("time", domain=(first, first + np.timedelta64(9, "ns")), tile=np.timedelta64(10, "ns"), dtype="datetime64[ns]")
tiledb.Array.create(f"{folder}/times", tiledb.ArraySchema(domain=tiledb.Domain(time), attrs=[tiledb.Attr("a", dtype=np.int16)]))
write(f"{folder}/times", np.arange(10, dtype=np.int16))
schema = tiledb.ArraySchema(
    domain=tiledb.Domain(tiledb.Dim("y", domain=(0, 999), tile=100, dtype=np.int32), tiledb.Dim("x", domain=(0, 999), tile=100, dtype=np.int32)),
    attrs=[tiledb.Attr("v", dtype=np.float64)], sparse=True)
tiledb.Array.create(f"{folder}/points", schema)
# The page tells the time of the last commit, and is compared with a picture.
WRITTEN = 1_700_000_000_000
[schema_file] = [one for one in pathlib.Path(f"{folder}/points/__schema").iterdir() if one.is_file()]
schema_file.rename(schema_file.with_name(f"__{WRITTEN}_{WRITTEN}_" + schema_file.name.split("_")[-1]))
with tiledb.open(f"{folder}/points", "w", timestamp=WRITTEN) as array:
    array[np.arange(0, 1000, 2), np.arange(0, 1000, 2)[::-1]] = np.arange(500) / 4

# A raster as GDAL describes it: classes with colours and names, cells without data, pixels twice as wide as high.
PALETTE = [(200, 0, 0), (0, 160, 0), (0, 0, 220), (220, 220, 0), (150, 0, 150)]
CLASSES = ["urban", "forest", SCRIPT, "crop", "heath"]
entries = "".join(f'<Entry c1="{red}" c2="{green}" c3="{blue}" c4="255"/>' for red, green, blue in PALETTE)
categories = "".join("<Category>" + name.replace("<", "&lt;") + "</Category>" for name in CLASSES)
classes = make("classes", (60, 100), [tiledb.Attr("TDB_VALUES", dtype=np.uint8)], [("_gdal", (
    "<PAMDataset><GeoTransform>10.0, 0.5, 0.0, 50.0, 0.0, -0.25</GeoTransform><PAMRasterBand band='1'>"
    f"<NoDataValue>255</NoDataValue><ColorInterp>Palette</ColorInterp><ColorTable>{entries}</ColorTable>"
    f"<CategoryNames>{categories}</CategoryNames></PAMRasterBand></PAMDataset>"))], tile=60)
rows_of, columns_of = np.mgrid[:60, :100]
kinds = ((columns_of // 20 + rows_of // 20) % 5).astype(np.uint8)
kinds[:10, :10] = 255
write(classes, kinds)
# Groups of CF: coordinates are arrays of their own, and times are days since a day. Rows go to the south in one, and to
# the north in the other.
LENGTHS = {"time": 4, "lat": 30, "lon": 50}


def of_group(group, name, dimensions, data, metadata):
    axes = [tiledb.Dim(one, domain=(0, LENGTHS[one] - 1), tile=LENGTHS[one], dtype=np.uint64) for one in dimensions]
    attribute = tiledb.Attr(name if name not in dimensions else f"{name}.data", dtype=data.dtype)
    tiledb.Array.create(f"{group}/{name}", tiledb.ArraySchema(domain=tiledb.Domain(*axes), attrs=[attribute]))
    with tiledb.open(f"{group}/{name}", "w") as array:
        array[:] = data
        for key, value in metadata.items():
            array.meta[key] = value
    with tiledb.Group(group, "w") as opened:
        opened.add(name, name, relative=True)


field = (np.arange(4 * 30 * 50).reshape(4, 30, 50) / 8).astype(np.float32)
field[:, :3, :3] = -999
for name, north in [("cf", 72.5), ("south", -72.5)]:
    group = f"{folder}/{name}"
    tiledb.group_create(group)
    of_group(group, "tas", ["time", "lat", "lon"], field, {"_FillValue": np.float32(-999), "units": "K"})
    of_group(group, "time", ["time"], np.array([0.0, 31.0, 60.0, 90.5]), {"units": "days since 2020-01-01"})
    of_group(group, "lat", ["lat"], np.linspace(north, -north, 30), {"units": "degrees_north"})
    of_group(group, "lon", ["lon"], np.arange(50) * 7.5 - 180, {"units": "degrees_east"})

# Temperatures as GDAL describes them: hundredths of a degree above 273.15 K, in metres of UTM, with padding.
ZONE = ('PROJCS["ETRS89 / UTM zone 32N",GEOGCS["ETRS89",DATUM["European_Terrestrial_Reference_System_1989",SPHEROID["GRS 1980",6378137,298.257222101]],'
        'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
        'PARAMETER["central_meridian",9],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],PARAMETER["false_northing",0],'
        'UNIT["metre",1],AXIS["Easting",EAST],AXIS["Northing",NORTH],AUTHORITY["EPSG","25832"]]')
warm = make("warm", (64, 96), [tiledb.Attr("TDB_VALUES", dtype=np.int16)], [("_gdal", (
    f"<PAMDataset><SRS>{ZONE}</SRS><GeoTransform>500000.0, 30.0, 0.0, 5600000.0, 0.0, -30.0</GeoTransform>"
    '<Metadata domain="IMAGE_STRUCTURE"><MDI key="X_SIZE">90</MDI><MDI key="Y_SIZE">50</MDI></Metadata>'
    "<PAMRasterBand band='1'><NoDataValue>-9999</NoDataValue><UnitType>K</UnitType><Offset>273.15</Offset><Scale>0.01</Scale></PAMRasterBand></PAMDataset>"))], tile=32)
degrees = (np.add.outer(np.arange(64) * 10, np.arange(96) * 3) - 500).astype(np.int16)
degrees[50:], degrees[:, 90:] = 7777, 7777
degrees[:4, :4] = -9999
write(warm, degrees)
# A group of CF in the form that TileDB-CF makes by itself: variables with the same dimensions are one array.
collected = f"{folder}/collected"
tiledb.group_create(collected)
for name, dimensions, cells, notes in [
    ("array0", ["lat", "lon"], {"tas": field[0], "pr": field[1]}, {"__tiledb_attr.tas.units": "K", "__tiledb_attr.pr.units": "mm"}),
    ("array1", ["lat"], {"lat.data": np.linspace(72.5, -72.5, 30)}, {"__tiledb_attr.lat.data.units": "degrees_north"}),
    ("array2", ["lon"], {"lon.data": np.arange(50) * 7.5 - 180}, {"__tiledb_attr.lon.data.units": "degrees_east"}),
]:
    axes = [tiledb.Dim(one, domain=(0, LENGTHS[one] - 1), tile=LENGTHS[one], dtype=np.uint64) for one in dimensions]
    attributes = [tiledb.Attr(one, dtype=data.dtype) for one, data in cells.items()]
    tiledb.Array.create(f"{collected}/{name}", tiledb.ArraySchema(domain=tiledb.Domain(*axes), attrs=attributes))
    with tiledb.open(f"{collected}/{name}", "w") as array:
        array[:] = cells if len(cells) > 1 else next(iter(cells.values()))
        for key, value in notes.items():
            array.meta[key] = value
    with tiledb.Group(collected, "w") as opened:
        opened.add(name, name, relative=True)
# Points as GDAL writes them: the first dimension goes to the right.
gdal_points = f"{folder}/gdal_points"
axes = [tiledb.Dim(one, domain=(-1000.0, 1000.0), tile=100.0, dtype=np.float64) for one in ("_X", "_Y")]
tiledb.Array.create(gdal_points, tiledb.ArraySchema(tiledb.Domain(*axes), attrs=[tiledb.Attr("FID", dtype=np.int64)], sparse=True, allows_duplicates=True))
with tiledb.open(gdal_points, "w") as array:
    array[np.array([0.0, 400.0, 400.0, 0.0]), np.array([0.0, 0.0, 100.0, 100.0])] = {"FID": np.arange(4)}

# Labels of dimensions, which the array itself stores: latitudes with steps that grow, days, and texts.
LATITUDES = np.round(-60 + np.arange(36.0) ** 1.3, 2)
DAYS = np.arange("2019-12-30", "2020-02-28", dtype="M8[D]")
GENES = np.array(["<b>A</b>", "BRCA1", "EGFR", "TP53", "Z"], "S")
labelled = f"{folder}/labels"
dimensions = [tiledb.Dim("y", domain=(0, 35), tile=12, dtype=np.int32), tiledb.Dim("x", domain=(0, 59), tile=20, dtype=np.int32)]
labels = {0: {"lat": tiledb.DimLabelSchema("increasing", np.dtype("f8"), np.dtype("i4"), 12)},
          1: {"day": tiledb.DimLabelSchema("increasing", np.dtype("M8[D]"), np.dtype("i4"), 20)}}
tiledb.Array.create(labelled, tiledb.ArraySchema(tiledb.Domain(*dimensions), [tiledb.Attr("t", dtype=np.int32)], dim_labels=labels))
write(labelled, {"t": np.arange(36 * 60, dtype=np.int32).reshape(36, 60), "lat": LATITUDES, "day": DAYS})
genes = f"{folder}/genes"
labels = {0: {"gene": tiledb.DimLabelSchema("increasing", np.dtype("S"), np.dtype("i4"), 2)}}
dimension = tiledb.Dim("g", domain=(0, 4), tile=2, dtype=np.int32)
tiledb.Array.create(genes, tiledb.ArraySchema(tiledb.Domain(dimension), [tiledb.Attr("n", dtype=np.int32)], dim_labels=labels))
write(genes, {"n": np.arange(5, dtype=np.int32) * 10, "gene": GENES})

# A picture of two stains, as TileDB-BioImaging describes it: each channel has a colour and a range.
stains = f"{folder}/stains"
tiledb.group_create(stains)
intensity = np.stack([np.add.outer(np.arange(40) * 10, np.arange(60) * 5), np.add.outer(np.arange(40)[::-1] * 20, np.zeros(60))]).astype(np.uint16)
write(make("stains/l_0.tdb", (2, 40, 60), [tiledb.Attr("intensity", dtype=np.uint16)], tile=60, names="CYX"), intensity)
CHANNELS = [{"name": "DAPI", "color": {"red": 200, "green": 0, "blue": 255, "alpha": 255}, "min": 0.0, "max": 500.0},
            {"name": SCRIPT, "color": {"red": 0, "green": 255, "blue": 0, "alpha": 255}, "min": 100.0, "max": 800.0}]
with tiledb.Group(stains, "w") as opened:
    opened.add("l_0.tdb", "l_0.tdb", relative=True)
    opened.meta["dataset_type"] = "bioimg"
    opened.meta["levels"] = json.dumps([{"level": 0, "name": "l_0.tdb", "axes": "CYX", "shape": [2, 40, 60]}])
    opened.meta["metadata"] = json.dumps({"channels": {"intensity": CHANNELS}})

# A table with a column of each kind, written twice: of rows with the same place, the newer one counts.
SHAPES = np.array(["circle", "square, <b>", "a+b=c", "50%", "", "x..y"])
def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# Two by two pixels.
PNG = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)) + png_chunk(b"IDAT", zlib.compress(bytes([0, 255, 0, 0, 0, 255, 0] * 2))) + png_chunk(b"IEND", b"")
TEXTS = np.array(["plain", "two\nlines", "\u202egnp.exe", "x" * 500, "größe", "null"], "O")


def table(path, count):
    attributes = [
        tiledb.Attr("n", dtype=np.int16), tiledb.Attr("x", dtype=np.float64, nullable=True), tiledb.Attr("text", dtype="U0", nullable=True),
        tiledb.Attr("shape", dtype=np.uint8, enum_label="shapes"), tiledb.Attr("day", dtype="M8[D]"), tiledb.Attr("ok", dtype=bool), tiledb.Attr("picture", dtype="blob", var=True),
    ]
    domain = tiledb.Domain(tiledb.Dim("id", domain=(0, 10**6), tile=1000, dtype=np.int64))
    schema = tiledb.ArraySchema(domain, attributes, sparse=True, capacity=100, enums=[tiledb.Enumeration("shapes", False, values=SHAPES)])
    tiledb.Array.create(path, schema)
    generator = np.random.default_rng(7)
    for first, last in [(0, count), (count // 2, count + 50)]:
        ids = np.arange(first, last)
        length = len(ids)
        with tiledb.open(path, "w") as array:
            blobs = np.empty(length, "O")
            blobs[:] = [PNG if one % 50 == 0 else bytes([one % 256, 0, 255]) for one in ids]
            cells = {
                "n": generator.integers(-9, 10, length).astype(np.int16), "x": generator.normal(size=length).round(3),
                "text": TEXTS[generator.integers(0, len(TEXTS), length)], "shape": generator.integers(0, len(SHAPES), length).astype(np.uint8),
                "day": np.datetime64("2020-01-01") + generator.integers(0, 400, length), "ok": generator.random(length) < 0.5, "picture": blobs,
            }
            valid = {name: (generator.random(length) < 0.9).astype("u1") for name in ("x", "text")}
            _setitem_impl_sparse(array, (ids,), cells, valid)


table(f"{folder}/people", 2000)
# More rows than one file of rows has.
long = f"{folder}/long"
LONG = 1_200_000
schema = tiledb.ArraySchema(
    tiledb.Domain(tiledb.Dim("id", domain=(0, 10**8), tile=10**5, dtype=np.int64)),
    [tiledb.Attr("group", dtype=np.uint8), tiledb.Attr("x", dtype=np.float32)], sparse=True, capacity=50_000)
tiledb.Array.create(long, schema)
LONG_GROUP = (np.arange(LONG) * 7919 % 12).astype(np.uint8)
LONG_X = np.random.default_rng(5).normal(size=LONG).astype(np.float32)
with tiledb.open(long, "w") as array:
    array[np.arange(LONG)] = {"group": LONG_GROUP, "x": LONG_X}


def people():
    """Returns the rows of the table as TileDB reads them; nulls are None, and days and labels texts."""
    with tiledb.open(f"{folder}/people") as array:
        read = array[:]
    shapes = read["shape"]
    read["shape"] = SHAPES[np.asarray(shapes)] if np.asarray(shapes).dtype.kind in "iu" else np.asarray(shapes).astype(str)
    columns = {}
    for name, cells in read.items():
        cells, missing = np.ma.getdata(cells), np.ma.getmaskarray(np.ma.asarray(cells))
        plain = {"day": lambda one: str(np.datetime64(one, "D")), "picture": lambda one: bytes(one).hex(), "ok": bool, "x": float, "n": int, "id": int}.get(name, str)
        columns[name] = [None if null else plain(cell) for cell, null in zip(cells, missing)]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def values(array):
    return [None if not np.isfinite(value) else value for value in np.asarray(array).ravel().tolist()]


def rows(path, columns):
    """Returns the rows of a sparse array; dates are whole days."""
    with tiledb.open(path) as array:
        read = array[:]
        shown = []
        for column in columns:
            cells = np.ma.asarray(read[column])
            if cells.dtype.kind == "M":
                cells = [str(np.datetime64(cell, "D")) for cell in cells.data]
            else:
                cells = [None if cell is np.ma.masked else cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
            shown.append(cells)
    return [[None if cell != cell else cell for cell in row] for row in zip(*shown)]


def at(path, attribute, timestamp=None):
    with tiledb.open(path, timestamp=timestamp) as array:
        read = array[:]
        read = read[attribute] if isinstance(read, dict) else read
        return {"shape": list(read.shape), "values": values(read)}


json.dump({
    "people": people(),
    "long": {"rows": LONG, "groups": np.bincount(LONG_GROUP).tolist(), "least": int(LONG_X.argmin()), "greatest": int(LONG_X.argmax()), "above": int((LONG_X >= np.float32(3.5)).sum()),
             "in_group": int(((LONG_GROUP == 3) & (LONG_X >= 2)).sum())},
    "latitudes": LATITUDES.tolist(),
    "days": [str(day) for day in DAYS],
    "genes": [gene.decode() for gene in GENES],
    "names": NAMES,
    "warm": at(f"{folder}/warm", "TDB_VALUES"),
    "pr": at(f"{collected}/array0", "pr"),
    "classes": at(f"{folder}/classes", "TDB_VALUES"),
    "class_names": CLASSES,
    "palette": PALETTE,
    "stains": at(f"{stains}/l_0.tdb", "intensity"),
    "channels": CHANNELS,
    "tas": at(f"{folder}/cf/tas", "tas"),
    "demo": at(demo, "temp"),
    "demo_before": at(demo, "temp", 1704067200000),
    "elevation": at(f"{corpus}/real/dem_jacksboro", "elevation"),
    "photo": at(f"{corpus}/real/photo_china_rgb", ""),
    "stocks": rows(f"{corpus}/real/stocks", ["Date", "IBM", "AAPL"]),
    "obs": rows(f"{corpus}/real/pbmc_soma/obs", ["soma_joinid", "obs_id", "bulk_labels", "n_genes"]),
}, sys.stdout)
