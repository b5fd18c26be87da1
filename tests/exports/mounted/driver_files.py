"""GDAL reads from the TIFF and the virtual raster of each raster of its own TileDB driver what that driver reads from the array.

`make` copies the fixtures `rasters/` into the folder, and `check` compares what `gdalinfo` says of the files in their mounts with
the recorded words of the driver (`rasters/expected/`).
"""

import json
import os
import shutil
import subprocess
import sys

import pyproj

# In newer versions, the driver calls what unwritten cells of a type hold a marker of missing values. tilefs does so only if a writer
# chose it, because it may be a value like any other.
DEFAULT_FILLS = {"Byte": 255, "Int16": -32768}


def info(path):
    words = ["gdalinfo", "-json", "-checksum", "-mdd", "all", path]
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)


def comparable(info):
    """Returns what a raster says of itself, in the form of the driver's words."""
    kept = {key: info[key] for key in ("size", "geoTransform", "gcps", "rat", "rpc") if key in info}
    system = info.get("coordinateSystem")
    if system:
        # In one version of well-known text: a TIFF has the code of a system, and PROJ knows more of it than some texts.
        text = pyproj.CRS.from_wkt(system["wkt"]).to_wkt("WKT1_GDAL")
        kept["system"] = (text, system.get("dataAxisToSRSAxisMapping"), system.get("coordinateEpoch"))
    kept["metadata"] = {name: items for name, items in info["metadata"].items() if name not in ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS")}
    # Without a word about them, pixels are areas: a TIFF with a coordinate system says so.
    items = kept["metadata"].get("", {})
    if items.get("AREA_OR_POINT") == "Area":
        del items["AREA_OR_POINT"]
    if not items:
        kept["metadata"].pop("", None)
    kept["bands"] = [{key: value for key, value in band.items() if key not in ("block", "overviews", "mask")} for band in info["bands"]]
    for band in kept["bands"]:
        if band.get("noDataValue", 0) == DEFAULT_FILLS.get(band["type"]):
            del band["noDataValue"]
    return kept


def set_colours(wanted, found):
    """Sets what tilefs says of colours where the driver takes bands for a picture that need not be one."""
    bands = wanted["bands"]
    if len(bands) in (3, 4) and bands[0]["type"] == "Byte":
        return
    for band, own in zip(bands, found["bands"]):
        # Among other bands, each has the colour that was stored, if any.
        band["colorInterpretation"] = own["colorInterpretation"] if len(bands) > 1 else "Palette" if "colorTable" in band else "Gray"


def same(name, file, wanted):
    found = comparable(info(file))
    set_colours(wanted, found)
    for key in sorted(wanted.keys() | found.keys()):
        assert found.get(key) == wanted.get(key), f"{name} {key} of {file}:\n{found.get(key)}\n{wanted.get(key)}"


def check(name):
    with open(f"rasters/expected/{name}.json") as file:
        text = file.read()
    wanted = lambda: comparable(json.loads(text))
    folder = f"mnt_{name}"
    if os.path.exists(f"{folder}/tiff/TDB_VALUES.tif"):
        for file in (f"{folder}/tiff/TDB_VALUES.tif", f"{folder}/TDB_VALUES.vrt"):
            same(name, file, wanted())
        return
    # Each band is an attribute.
    for number, band in enumerate(wanted()["bands"], 1):
        for file in (f"{folder}/tiff/TDB_VALUES_{number}.tif", f"{folder}/TDB_VALUES_{number}.vrt"):
            same(name, file, {**wanted(), "bands": [{**band, "band": 1}]})


if sys.argv[1] == "make":
    shutil.copytree(f"{os.environ['TILEFS_FIXTURES']}/rasters", "rasters")

names = sorted(name.removesuffix(".json") for name in os.listdir("rasters/expected"))
if sys.argv[1] == "make":
    for name in names:
        os.rename(f"rasters/{name}", name)
    print(*names)
else:
    for name in names:
        check(name)
