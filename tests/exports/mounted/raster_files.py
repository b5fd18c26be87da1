"""GDAL, rasterio and xarray open rasters of a mount: they find what GDAL finds in a GeoTIFF of the same raster.

`make` writes arrays as GDAL's TileDB driver does, with the metadata text that GDAL itself writes for the GeoTIFF, and
`check` opens them in their mounts.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import rasterio
import tiledb
import xarray
from rasterio.enums import ColorInterp
from rasterio.shutil import copy

BLOCK = 32


class Raster:
    def __init__(self, name, system, transform, interleave="BAND", bands=1, dtype="u1", size=(70, 90), plain=False, palette=False):
        self.palette, self.name, self.system, self.transform, self.interleave = palette, name, system, transform, interleave
        self.bands, self.dtype, self.plain, (self.width, self.height) = bands, np.dtype(dtype), plain, size
        self.tif = f"{name}.tif"

    def values(self):
        band, y, x = np.indices((self.bands, self.height, self.width))
        return (band * 40 + y + x // 4).astype(self.dtype)

    def make(self):
        self.make_tif()
        self.make_array()

    def make_tif(self):
        with rasterio.open(self.tif, "w", driver="GTiff", width=self.width, height=self.height, count=self.bands, dtype=self.dtype,
                           crs=self.system, transform=self.transform) as tif:
            tif.write(self.values())
            if self.palette:
                tif.write_colormap(1, {value: (value, 255 - value, value // 3, 255) for value in range(256)})
            if self.plain:
                return
            tif.nodata = 7
            tif.scales, tif.offsets = [0.5] * self.bands, [-100.25] * self.bands
            tif.descriptions = [f"band <{number}> & more" for number in range(self.bands)]
            tif.units = ["m"] * self.bands
            if self.bands == 3:
                tif.colorinterp = [ColorInterp.blue, ColorInterp.green, ColorInterp.red]

    def pam(self):
        """Returns the auxiliary metadata that GDAL writes beside formats that cannot hold what a GeoTIFF has, with the
        additions of its TileDB driver."""
        picture = f"{self.name}.jpg"
        if self.palette:
            # rasterio reports an error if colours are only in the file beside the picture.
            subprocess.run(["gdal_translate", "-q", "-of", "JPEG", self.tif, picture], check=True, capture_output=True)
        else:
            copy(self.tif, picture, driver="JPEG")
        text = open(f"{picture}.aux.xml").read()
        if self.bands == 3:
            # JPEG has its own colours.
            for number, colour in enumerate(["Blue", "Green", "Red"], 1):
                text = text.replace(f'<PAMRasterBand band="{number}">', f'<PAMRasterBand band="{number}">\n    <ColorInterp>{colour}</ColorInterp>')
        structure = {"NBITS": 8 * self.dtype.itemsize, "DATA_TYPE": "Byte", "X_SIZE": self.width, "Y_SIZE": self.height,
                     "INTERLEAVE": self.interleave}
        items = "".join(f'    <MDI key="{key}">{value}</MDI>\n' for key, value in structure.items())
        text = re.sub(r'  <Metadata domain="IMAGE_STRUCTURE">.*?</Metadata>\n', "", text, flags=re.S)
        return text.replace("</PAMDataset>", f'  <Metadata domain="IMAGE_STRUCTURE">\n{items}  </Metadata>\n</PAMDataset>')

    def make_array(self):
        up = lambda length: -(-length // BLOCK) * BLOCK
        dim = lambda name, low, high, tile: tiledb.Dim(name=name, domain=(low, high), tile=tile, dtype=np.uint64)
        y, x = dim("Y", 0, up(self.height) - 1, BLOCK), dim("X", 0, up(self.width) - 1, BLOCK)
        bands = dim("BANDS", 1, self.bands, 1)
        dims = {"BAND": [bands, y, x], "PIXEL": [y, x, bands], "ATTRIBUTES": [y, x]}[self.interleave]
        flat = self.interleave == "ATTRIBUTES"
        names = [f"TDB_VALUES_{number + 1}" for number in range(self.bands)] if flat else ["TDB_VALUES"]
        schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr(name, dtype=self.dtype) for name in names])
        tiledb.Array.create(self.name, schema)
        whole = np.zeros((self.bands, up(self.height), up(self.width)), self.dtype)
        whole[:, : self.height, : self.width] = self.values()
        with tiledb.open(self.name, "w") as array:
            if flat:
                array[:] = {name: whole[number] for number, name in enumerate(names)}
            else:
                array[:] = whole if self.interleave == "BAND" else np.moveaxis(whole, 0, -1).copy()
            # The driver stores bytes.
            array.meta._array_or_group._put_metadata("_gdal", np.frombuffer(self.pam().encode(), "u1"))


UTM = rasterio.Affine(10, 0, 444650, 0, -10, 4640510)
RASTERS = [
    Raster("utm", "EPSG:26716", UTM),
    Raster("lonlat", "EPSG:4326", rasterio.Affine(0.25, 0, -120.5, 0, -0.125, 45)),
    # Its first axis is the northing.
    Raster("northing", "EPSG:31467", rasterio.Affine(25, 0, 3500000, 0, -25, 5600000)),
    Raster("pixel", "EPSG:26716", UTM, "PIXEL", 3),
    Raster("flat", "EPSG:26716", UTM, "ATTRIBUTES", 3),
    Raster("whole", "EPSG:31467", rasterio.Affine(25, 0, 3500000, 0, -25, 5600000), size=(64, 96), plain=True),
    Raster("colours", "EPSG:26716", UTM, palette=True),
    Raster("feet", "EPSG:2263", rasterio.Affine(1, 0, 980000, 0, -1, 200000), size=(64, 96), plain=True),
]


# What GDAL 3.6's own TileDB driver wrote into an array, with another system, and without the sizes of the raster. The
# same items are read back from `.vrt` and TIFF as from a picture beside which GDAL finds this text.
SAID = """<PAMDataset>
  @place
  <Metadata><MDI key="AREA_OR_POINT">Point</MDI><MDI key="LINES">a
b</MDI><MDI key="TIFFTAG_SOFTWARE">mine &lt;a&gt; &amp; b</MDI><MDI key="TITLE">größer</MDI></Metadata>
  <Metadata domain="of mine"><MDI key="k">v &amp; w</MDI></Metadata>
  <Metadata domain="xml:doc" format="xml"><a><b c="d">e &amp;amp; f</b></a></Metadata>
  <Metadata domain="RPC"><MDI key="LINE_OFF">45</MDI><MDI key="LINE_SCALE">45</MDI><MDI key="SAMP_OFF">35</MDI><MDI key="SAMP_SCALE">35</MDI>
    <MDI key="LAT_OFF">1</MDI><MDI key="LONG_OFF">2</MDI><MDI key="HEIGHT_OFF">0</MDI><MDI key="LAT_SCALE">1</MDI><MDI key="LONG_SCALE">1</MDI>
    <MDI key="HEIGHT_SCALE">1</MDI><MDI key="LINE_NUM_COEFF">@ones</MDI><MDI key="LINE_DEN_COEFF">@ones</MDI>
    <MDI key="SAMP_NUM_COEFF">@ones</MDI><MDI key="SAMP_DEN_COEFF">@ones</MDI></Metadata>
  <PAMRasterBand band="1">
    <Description>band &lt;1&gt;</Description><NoDataValue>7.00000000000000E+00</NoDataValue><UnitType>m</UnitType><Offset>1</Offset><Scale>0.5</Scale>
    <ColorInterp>Red</ColorInterp><Metadata><MDI key="STATISTICS_MEAN">1.5</MDI><MDI key="wavelength">100 nm</MDI></Metadata>
  </PAMRasterBand>
  <PAMRasterBand band="2">
    <Description>band &lt;2&gt;</Description><UnitType>m</UnitType><Offset>2</Offset><ColorInterp>Green</ColorInterp>
    <CategoryNames><Category>sea</Category><Category>land &amp; more</Category></CategoryNames>
    <GDALRasterAttributeTable tableType="thematic"><FieldDefn index="0"><Name>Value</Name><Type>0</Type><Usage>5</Usage></FieldDefn>
      <FieldDefn index="1"><Name>Name</Name><Type>2</Type><Usage>2</Usage></FieldDefn>
      <Row index="0"><F>1</F><F>one</F></Row><Row index="1"><F>2</F><F>two &lt;x&gt;</F></Row></GDALRasterAttributeTable>
    <Metadata><MDI key="wavelength">200 nm</MDI></Metadata><Metadata domain="other"><MDI key="p">q</MDI></Metadata>
  </PAMRasterBand>
  <PAMRasterBand band="3"><NoDataValue>9.00000000000000E+00</NoDataValue><ColorInterp>Blue</ColorInterp></PAMRasterBand>
</PAMDataset>
""".replace("@ones", " ".join(["1"] * 20))
WGS84 = """GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],
    UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]"""
PLACES = {
    "said": f"<SRS dataAxisToSRSAxisMapping='2,1'>{WGS84}</SRS><GeoTransform>10.0, 0.5, 0.0, 50.0, 0.0, -0.25</GeoTransform>",
    "points": f"""<GCPList Projection='{WGS84}' dataAxisToSRSAxisMapping="2,1">
      <GCP Id="a" Pixel="0.5" Line="0.5" X="1" Y="2"><Info>here &lt;</Info></GCP><GCP Id="b" Pixel="60.5" Line="0.5" X="7" Y="2"/>
      <GCP Id="c" Pixel="0.5" Line="80.5" X="1" Y="9"/></GCPList>""",
}
HEIGHT, WIDTH = 90, 70


def make_said(name):
    """Writes a picture with a text beside it, and an array with the same text and the same values."""
    band, y, x = np.indices((3, HEIGHT, WIDTH))
    values = (band * 40 + y + x // 4).astype("u1")
    text = SAID.replace("@place", PLACES[name])
    with rasterio.open(f"{name}.png", "w", driver="PNG", width=WIDTH, height=HEIGHT, count=3, dtype="uint8") as picture:
        picture.write(values)
    open(f"{name}.png.aux.xml", "w").write(text)
    dims = [tiledb.Dim(axis, (first, first + length - 1), min(length, BLOCK), dtype="u8") for axis, first, length in
            (("BANDS", 1, 3), ("Y", 0, 96), ("X", 0, 96))]
    tiledb.Array.create(name, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("TDB_VALUES", dtype="u1")]))
    whole = np.zeros((3, 96, 96), "u1")
    whole[:, :HEIGHT, :WIDTH] = values
    sizes = f'<Metadata domain="IMAGE_STRUCTURE"><MDI key="X_SIZE">{WIDTH}</MDI><MDI key="Y_SIZE">{HEIGHT}</MDI></Metadata></PAMDataset>'
    with tiledb.open(name, "w") as array:
        array[:] = whole
        array.meta._array_or_group._put_metadata("_gdal", np.frombuffer(text.replace("</PAMDataset>", sizes).encode(), "u1"))


def items(path):
    """Returns everything that GDAL says of a raster, except how its file stores it."""
    found = json.loads(subprocess.run(["gdalinfo", "-json", "-mdd", "all", path], check=True, capture_output=True).stdout)
    storage = "IMAGE_STRUCTURE", "DERIVED_SUBDATASETS"
    domains = lambda all: {name: content for name, content in (all or {}).items() if name not in storage and content}
    keys = "description", "unit", "noDataValue", "scale", "offset", "categories", "rat", "colorInterpretation"
    bands = [{**{key: band.get(key) for key in keys}, "metadata": domains(band.get("metadata"))} for band in found["bands"]]
    place = {key: found.get(key) for key in ("size", "geoTransform", "gcps")}
    return {**place, "metadata": domains(found.get("metadata")), "bands": bands}


def check_said(name):
    expected = items(f"{name}.png")
    assert [band["noDataValue"] for band in expected["bands"]] == [7, None, 9] and expected["metadata"][""]["LINES"] == "a\nb"
    assert (expected["gcps"] is None) == (name == "said") and "of mine" in expected["metadata"] and "RPC" in expected["metadata"]
    for path in f"mnt_{name}/TDB_VALUES.vrt", f"mnt_{name}/tiff/TDB_VALUES.tif":
        found = items(path)
        for key in expected:
            assert found[key] == expected[key], f"{path} {key}: {found[key]}, not {expected[key]}"
        # The values that are missing do not count.
        with rasterio.open(path) as got, rasterio.open(f"{name}.png") as picture:
            for band in 1, 2, 3:
                ours, theirs = got.read(band, masked=True), picture.read(band, masked=True)
                assert ours.mean() == theirs.mean() and ours.count() == theirs.count(), f"{path} {band}"
    assert sorted(os.listdir(f"mnt_{name}/tiff")) == ["TDB_VALUES.tif", "TDB_VALUES.tif.aux.xml"]
    # Without the file beside it, a TIFF still has what its tags can hold.
    shutil.copyfile(f"mnt_{name}/tiff/TDB_VALUES.tif", "alone.tif")
    alone = items("alone.tif")
    assert alone["metadata"][""] == expected["metadata"][""] and alone["metadata"]["of mine"] == expected["metadata"]["of mine"]
    assert alone["bands"][0]["metadata"] == expected["bands"][0]["metadata"], alone["bands"][0]
    assert alone["geoTransform"] == expected["geoTransform"], alone["geoTransform"]
    # What was said of all pixels does not hold for a part of them.
    part = items(f"mnt_{name}/islice/..,10:30,4:60:2/TDB_VALUES.vrt")
    assert part["bands"][0]["metadata"] == {"": {"wavelength": "100 nm"}}, part["bands"][0]
    sensor = part["metadata"]["RPC"]
    assert [float(sensor[key]) for key in ("LINE_OFF", "LINE_SCALE", "SAMP_OFF", "SAMP_SCALE")] == [35, 45, 15.5, 17.5], sensor
    header = open(f"mnt_{name}/TDB_VALUES.u8.hdr").read()
    assert "data ignore value" not in header and "the bands mark missing values by different numbers" in header, header


def info(path, *more):
    found = json.loads(subprocess.run(["gdalinfo", "-json", "-checksum", *more, path], check=True, capture_output=True).stdout)
    keys = "description", "unit", "noDataValue", "scale", "offset", "colorInterpretation", "colorTable", "checksum", "type"
    found["said"] = [{key: band.get(key) for key in keys} for band in found["bands"]]
    return found


def near(got, expected, what, tolerance=1e-6):
    assert np.allclose(got, expected, rtol=0, atol=tolerance), f"{what}: {got}, not {expected}"


def same_place(path, got, expected):
    near([*got["cornerCoordinates"].values()], [*expected["cornerCoordinates"].values()], f"{path} corners")
    near(got["wgs84Extent"]["coordinates"], expected["wgs84Extent"]["coordinates"], f"{path} on the Earth")


def check(raster):
    expected = info(raster.tif)
    flat = raster.interleave == "ATTRIBUTES"
    for number in range(raster.bands if flat else 1):
        stem = f"mnt_{raster.name}/TDB_VALUES" + (f"_{number + 1}" if flat else "")
        said = expected["said"][number : number + 1] if flat else expected["said"]
        if flat:
            said[0]["colorInterpretation"] = ["Blue", "Green", "Red"][number]
        elif raster.bands == 1:
            # A GeoTIFF of one band is gray by default.
            said[0]["colorInterpretation"] = info(f"{stem}.vrt")["said"][0]["colorInterpretation"]
        found = info(f"{stem}.vrt")
        assert found["size"] == expected["size"], f"{stem}.vrt: {found['size']}"
        assert found["said"] == said, f"{stem}.vrt: {found['said']}, not {said}"
        same_place(f"{stem}.vrt", found, expected)
        with rasterio.open(f"{stem}.vrt") as got, rasterio.open(raster.tif) as tif:
            assert got.crs == tif.crs and got.bounds == tif.bounds and got.transform == tif.transform, f"{stem}: {got.profile}"
            near(got.lnglat(), tif.lnglat(), f"{stem} in the middle")
            assert np.array_equal(got.read(), tif.read([number + 1] if flat else None)), stem
        check_tiff(raster, expected, said, number, stem)
        # Warping moves every pixel to its place in the coordinate system.
        options = ["-q", "-overwrite", "-t_srs", "EPSG:4326", "-r", "near"]
        subprocess.run(["gdalwarp", *options, f"{stem}.vrt", "got.tif"], check=True)
        band = ["-b", str(number + 1)] if flat else []
        subprocess.run(["gdal_translate", "-q", *band, raster.tif, "one.tif"], check=True)
        subprocess.run(["gdalwarp", *options, "one.tif", "warped.tif"], check=True)
        with rasterio.open("got.tif") as got, rasterio.open("warped.tif") as warped:
            assert got.transform == warped.transform and np.array_equal(got.read(), warped.read()), f"{stem} warped"
        # The lines in an ENVI header have the length of the file, so only the upper left corner and the size of pixels
        # are the same.
        envi = info(f"{stem}.u8")
        near(envi["cornerCoordinates"]["upperLeft"], expected["cornerCoordinates"]["upperLeft"], f"{stem} ENVI")
        near(envi["geoTransform"], expected["geoTransform"], f"{stem} ENVI")
        if not raster.plain:
            assert [band.get("noDataValue") for band in envi["bands"]] == [7] * len(said), f"{stem}: {envi['bands']}"
            assert [band["description"] for band in envi["bands"]] == [band["description"] for band in said], f"{stem}: {envi['bands']}"
        if raster.width % BLOCK == 0:
            same_place(f"{stem} ENVI", envi, expected)
            with rasterio.open(f"{stem}.u8") as got, rasterio.open(raster.tif) as tif:
                assert got.bounds == tif.bounds and np.array_equal(got.read(), tif.read()), f"{stem} ENVI"
                near(got.lnglat(), tif.lnglat(), f"{stem} ENVI in the middle")
        check_netcdf(raster, expected, number, stem.rsplit("/")[-1])
    check_readme(raster)


def check_readme(raster):
    """Checks that the commands of README.txt show the raster without the padding of its tiles."""
    mount = f"mnt_{raster.name}"
    commands = open(f"{mount}/README.txt").read().split("What you can do here")[1].split("Before copying")[0]
    commands = [line.strip() for line in commands.splitlines() if line.startswith("    ")]
    found = {}
    for command in commands:
        if not command.startswith(("python3", "Rscript")):
            found[command.split()[0]] = subprocess.run(["bash", "-ec", command], cwd=mount, check=True, capture_output=True, text=True).stdout
    values = raster.values()[0] if raster.interleave == "ATTRIBUTES" else raster.values()
    near(float(found["awk"]), values.mean(), f"{raster.name} mean by awk", tolerance=1e-3)
    assert f"Size is {raster.width}, {raster.height}\n" in found["gdalinfo"], found["gdalinfo"]
    loaded = [re.search(r'numpy.load\("([^"]*)"', command) for command in commands]
    (npy,) = [match[1] for match in loaded if match]
    in_order = np.moveaxis(raster.values(), 0, -1) if raster.interleave == "PIXEL" else values
    assert np.array_equal(np.load(f"{mount}/{npy}").reshape(in_order.shape), in_order), npy


def check_tiff(raster, expected, said, number, stem):
    folder, name = stem.rsplit("/", 1)
    path = f"{folder}/tiff/{name}.tif"
    found = info(path)
    assert found["driverShortName"] == "GTiff" and found["size"] == expected["size"], found
    if len(said) == 1 and said[0]["colorInterpretation"] == "Undefined":
        # A GeoTIFF of one band is gray by default.
        said = [{**said[0], "colorInterpretation": "Gray"}]
    assert found["said"] == said, f"{path}: {found['said']}, not {said}"
    same_place(path, found, expected)
    assert found["bands"][0]["block"] == [BLOCK, BLOCK], found["bands"][0]
    with rasterio.open(path) as got, rasterio.open(raster.tif) as tif:
        assert got.crs == tif.crs and got.bounds == tif.bounds and got.transform == tif.transform, f"{path}: {got.profile}"
        assert got.is_tiled and np.array_equal(got.read(), tif.read([number + 1] if raster.interleave == "ATTRIBUTES" else None)), path
    subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BSQ", path, "got.raw"], check=True)
    values = raster.values()[number : number + 1] if raster.interleave == "ATTRIBUTES" else raster.values()
    assert open("got.raw", "rb").read() == values.tobytes(), path


def check_netcdf(raster, expected, number, name):
    path = f"mnt_{raster.name}/netcdf/array.nc"
    with xarray.open_dataset(path, mask_and_scale=False) as file:
        values = file[name]
        axes = {"BAND": ("BANDS", "Y", "X"), "PIXEL": ("Y", "X", "BANDS"), "ATTRIBUTES": ("Y", "X")}[raster.interleave]
        assert values.dims == axes, values.dims
        rows, columns = np.arange(raster.height) + 0.5, np.arange(raster.width) + 0.5
        near(file.X.values, raster.transform.c + columns * raster.transform.a, f"{path} X")
        near(file.Y.values, raster.transform.f + rows * raster.transform.e, f"{path} Y")
        in_order = lambda cells: np.moveaxis(cells, -1, 0) if raster.interleave == "PIXEL" else cells
        got = in_order(values.values.view("u1"))
        assert np.array_equal(got, raster.values()[number] if raster.interleave == "ATTRIBUTES" else raster.values()), f"{path} {name}"
        geographic = raster.system == "EPSG:4326"
        assert file.X.standard_name == ("longitude" if geographic else "projection_x_coordinate"), file.X
        assert file.Y.units == {"EPSG:4326": "degrees_north", "EPSG:2263": "US_survey_foot"}.get(raster.system, "m"), file.Y
        crs = file[values.grid_mapping]
        assert rasterio.crs.CRS.from_wkt(crs.crs_wkt) == rasterio.crs.CRS.from_user_input(raster.system), crs
        if not raster.plain:
            assert values.attrs["_FillValue"] == 7 and values.units == "m" and values.scale_factor == 0.5 and values.add_offset == -100.25, values
    if not raster.plain:
        with xarray.open_dataset(path) as file:
            decoded = in_order(file[name].values)
            assert np.isnan(decoded[got == 7]).all() and np.array_equal(decoded[got != 7], got[got != 7] * 0.5 - 100.25), f"{path} decoded"
    if raster.interleave != "PIXEL":
        same_place(path, info(f'NETCDF:"{path}":{name}'), expected)


if sys.argv[1] == "make":
    for raster in RASTERS:
        raster.make()
    for name in PLACES:
        make_said(name)
    print(*(raster.name for raster in RASTERS), *PLACES)
else:
    for raster in RASTERS:
        check(raster)
        # Nothing is said of these that a TIFF cannot hold, except that one colour of the palette is transparent.
        beside = [name for name in os.listdir(f"mnt_{raster.name}/tiff") if not name.endswith(".tif")]
        assert beside == (["TDB_VALUES.tif.aux.xml"] if raster.palette else []), f"{raster.name}: {beside}"
    for name in PLACES:
        check_said(name)
    print(len(RASTERS) + len(PLACES))
