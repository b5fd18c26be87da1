"""Writes the arrays and groups that the pages in docs/ read, into the current folder.

usage: samples.py REPOSITORY
"""

import importlib.util
import sys

import numpy as np
import tiledb

HEADER = """##fileformat=VCFv4.3
##contig=<ID=1,length=248956422>
##contig=<ID=2,length=242193529>
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Quality of the genotype">
#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT {sample}
"""
RECORDS = {
    "HG00280": "1 12141 . C T 50 PASS DP=10 GT:GQ 0/1:40\n1 12546 rs1 G A 61 PASS DP=12 GT:GQ 1/1:33\n2 200 . A AT 9 . DP=3 GT:GQ 0/1:7\n",
    "HG01762": "1 12546 rs1 G A 58 PASS DP=9 GT:GQ 0/1:21\n1 14000 . T C 44 PASS DP=8 GT:GQ 0/1:30\n",
}
GENOME = "ACGTTGCAAC"
BLOCKS = """##fileformat=VCFv4.3
##contig=<ID=1,length=10>
##INFO=<ID=END,Number=1,Type=Integer,Description="Last position">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">
#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT NA12878
1 1 . A <NON_REF> . . END=5 GT:DP 0/0:31
1 6 . G C,<NON_REF> 50 . . GT:DP 0/1:30
1 7 . C <NON_REF> . . END=10 GT:DP 0/0:28
"""
# What GDAL's driver keeps beside the values.
PAM = """<PAMDataset>
  <SRS>GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]</SRS>
  <GeoTransform>6.0, 0.001, 0.0, 46.0, 0.0, -0.001</GeoTransform>
  <Metadata domain="IMAGE_STRUCTURE">
    <MDI key="NBITS">16</MDI>
    <MDI key="DATA_TYPE">Int16</MDI>
    <MDI key="X_SIZE">400</MDI>
    <MDI key="Y_SIZE">300</MDI>
    <MDI key="INTERLEAVE">BAND</MDI>
  </Metadata>
  <PAMRasterBand band="1">
    <Description>height</Description>
    <UnitType>m</UnitType>
  </PAMRasterBand>
</PAMDataset>"""


def write_cohort(repository):
    spec = importlib.util.spec_from_file_location("variants", f"{repository}/tests/fixtures/generators/variants.py")
    variants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(variants)
    with open("ref.fa", "w") as file:
        file.write(f">1\n{GENOME}\n")
    text = lambda sample: (HEADER.format(sample=sample).splitlines(), RECORDS[sample].splitlines())
    tabs = lambda line: line if line.startswith("##") else line.replace(" ", "\t")
    files = [variants.Vcf("\n".join([tabs(line) for part in text(sample) for line in part]) + "\n") for sample in RECORDS]
    variants.write_dataset("cohort", files)
    blocks = "\n".join(line if line.startswith("##") else line.replace(" ", "\t") for line in BLOCKS.splitlines())
    variants.write_dataset("gvcf", [variants.Vcf(blocks + "\n")])


def write_dem():
    dim = lambda name, high: tiledb.Dim(name, domain=(0, high), tile=100, dtype=np.uint64)
    bands = tiledb.Dim("BANDS", domain=(1, 1), tile=1, dtype=np.uint64)
    domain = tiledb.Domain(bands, dim("Y", 299), dim("X", 399))
    tiledb.Array.create("dem.tdb", tiledb.ArraySchema(domain, [tiledb.Attr("TDB_VALUES", dtype=np.int16, filters=[tiledb.ZstdFilter()])]))
    y, x = np.mgrid[:300, :400]
    with tiledb.open("dem.tdb", "w") as array:
        array[:] = (1000 + 2 * y + x)[None].astype("i2")
        array.meta._array_or_group._put_metadata("_gdal", np.frombuffer(PAM.encode(), "u1"))


def write_climate():
    axes = {"time": np.arange(365.0), "lat": np.arange(40, 50.5, 0.5), "lon": np.arange(0, 20.5, 0.5)}
    said = {
        "time": {"units": "days since 2001-01-01", "calendar": "standard"},
        "lat": {"units": "degrees_north", "standard_name": "latitude"},
        "lon": {"units": "degrees_east", "standard_name": "longitude"},
        "t2m": {"units": "K", "long_name": "temperature at 2 m"},
    }
    shape = [len(values) for values in axes.values()]
    season = 10 * np.sin(2 * np.pi * (axes["time"] - 100) / 365)
    field = 285 + season[:, None, None] - 0.5 * (axes["lat"] - 45)[None, :, None] + 0 * axes["lon"][None, None, :]
    variables = {name: ([name], values) for name, values in axes.items()} | {"t2m": (list(axes), field.astype("f4"))}
    tiledb.group_create("climate")
    with tiledb.Group("climate", "w") as group:
        group.meta["title"] = "A year of temperatures"
        for name, (dimensions, values) in variables.items():
            dims = [tiledb.Dim(d, (0, len(axes[d]) - 1), tile=len(axes[d]) if d != "time" else 73, dtype="u8") for d in dimensions]
            attribute = name if name not in axes else f"{name}.data"
            schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr(attribute, dtype=values.dtype)])
            tiledb.Array.create(f"climate/{name}", schema)
            with tiledb.open(f"climate/{name}", "w") as array:
                array[:] = values
                for key, value in said[name].items():
                    array.meta[f"__tiledb_attr.{attribute}.{key}"] = value
            group.add(name, name=name, relative=True)
    assert shape == [365, 21, 41]


def write_orders():
    """Writes a table in two commits."""
    dim = tiledb.Dim("id", domain=(0, 2**32), tile=1000, dtype=np.int64)
    attributes = [
        tiledb.Attr("day", dtype="datetime64[D]"),
        tiledb.Attr("country", dtype=str),
        tiledb.Attr("amount", dtype=np.float64),
    ]
    tiledb.Array.create("orders.tdb", tiledb.ArraySchema(tiledb.Domain(dim), attributes, sparse=True, capacity=1000))
    countries = np.array(["DE", "FR", "日本", "US"], dtype=object)
    for commit, ids in enumerate([np.arange(6000), np.arange(6000, 10_000)]):
        with tiledb.open("orders.tdb", "w", timestamp=1_700_000_000_000 + 86_400_000 * commit) as array:
            array[ids] = {
                "day": np.datetime64("2023-01-01") + ids // 100,
                "country": countries[ids % 4],
                "amount": (ids % 1000) / 4,
            }


if __name__ == "__main__":
    write_cohort(sys.argv[1])
    write_dem()
    write_climate()
    write_orders()
