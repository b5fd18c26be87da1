"""Changes the inputs of what tilefs shows, one after the other.

    changed_inputs.py FOLDER NAME...

Writes datasets of these names into FOLDER, and prints the name of each as a line `dataset NAME`. Then makes one change of it for each
line of standard input, and prints the change's name.
"""

import base64
import glob
import sys
import time

import numpy as np
import tiledb
import variants

ROWS = 300


def put(uri, **cells):
    with tiledb.open(uri, "w") as array:
        array[:] = cells if len(cells) > 1 else next(iter(cells.values()))


def metadata(uri, **items):
    with tiledb.open(uri, "w") as array:
        for key, value in items.items():
            if value is None:
                del array.meta[key]
            else:
                array.meta[key] = value


def texts(prefix, count=ROWS):
    cells = np.empty(count, dtype=object)
    cells[:] = [prefix * (1 + number % 5) for number in range(count)]
    return cells


def codes(seed=0):
    return ((np.arange(ROWS) + seed) % 2).astype(np.uint8)


def extend_enumeration(uri, values):
    with tiledb.open(uri) as array:
        extended = array.enum("colour").extend(values)
    evolution = tiledb.ArraySchemaEvolution(tiledb.Ctx())
    evolution.extend_enumeration(extended)
    evolution.array_evolve(uri)


def add_attribute(uri):
    evolution = tiledb.ArraySchemaEvolution(tiledb.Ctx())
    evolution.add_attribute(tiledb.Attr("later", dtype=np.int32))
    evolution.array_evolve(uri)


def merge(uri):
    tiledb.consolidate(uri)
    tiledb.vacuum(uri)


def write_labels(uri, values):
    [label] = glob.glob(f"{uri}/__labels/*")
    with tiledb.open(label, "w") as array:
        array[:] = values


def of_table(uri, sparse, has_labels):
    """A table with texts and an enumeration, and with a label or another schema later: libtiledb supports no both."""
    rows = np.arange(ROWS, dtype=np.uint64)
    dimension = tiledb.Dim("x", domain=(0, ROWS - 1), tile=100, dtype=np.uint64)
    labels = {"dim_labels": {0: {"place": dimension.create_label_schema("increasing", np.int64)}}} if has_labels else {}
    schema = tiledb.ArraySchema(
        domain=tiledb.Domain(dimension), sparse=sparse, enums=[tiledb.Enumeration("colour", False, values=["red", "blue"])],
        attrs=[tiledb.Attr("number", dtype=np.int32), tiledb.Attr("text", dtype="ascii", var=True),
               tiledb.Attr("code", dtype=np.uint8, enum_label="colour")], **labels)
    tiledb.Array.create(uri, schema)

    def write(seed, **more):
        numbers = np.arange(ROWS, dtype=np.int32) * 10**seed
        cells = {"number": numbers, "text": texts("ab"[seed % 2]), "code": codes(seed), **more}
        with tiledb.open(uri, "w") as array:
            if sparse:
                array[rows] = cells
            else:
                array[:] = cells

    write(1)
    if has_labels:
        write_labels(uri, np.arange(ROWS, dtype=np.int64))
    yield
    if has_labels:
        write_labels(uri, np.arange(ROWS, dtype=np.int64) + 10**15)
        yield "a label"
    write(2)
    yield "cells"
    if has_labels:
        write_labels(uri, np.arange(ROWS, dtype=np.int64) * 1000 - 5)
        yield "a label again"
    else:
        extend_enumeration(uri, ["a long name of a colour"])
        yield "more values of an enumeration"
        write(3, code=codes() + 1)
        yield "codes of new values"
    metadata(uri, note="a note")
    yield "metadata"
    if sparse:
        with tiledb.open(uri, "d") as array:
            array.query(cond="number < 5000").submit()
        yield "deleted cells"
    merge(uri)
    yield "consolidation"
    metadata(uri, note=None)
    yield "no metadata"
    if not has_labels:
        add_attribute(uri)
        yield "one more attribute"


def of_geometries(uri):
    """Points whose geometries the metadata alone name."""
    dimensions = [tiledb.Dim(name, domain=(-100.0, 100.0), tile=10.0, dtype=np.float64) for name in ("_X", "_Y")]
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dimensions), sparse=True, attrs=[
        tiledb.Attr("wkb_geometry", dtype="blob", var=True), tiledb.Attr("shape", dtype="blob", var=True),
        tiledb.Attr("name", dtype="U0", var=True)])
    tiledb.Array.create(uri, schema)
    along = np.linspace(-50, 50, 40)

    def points(by):
        point = [b"\1\1\0\0\0" + np.array([at * by, at / 3 - by]).tobytes() for at in along]
        cells = np.empty(len(point), dtype=object)
        cells[:] = point
        return cells

    with tiledb.open(uri, "w") as array:
        array[along, along / 2] = {"wkb_geometry": points(1), "shape": points(1000.5), "name": texts("n", len(along))}
    metadata(uri, GEOMETRY_ATTRIBUTE_NAME="wkb_geometry", dataset_type="geometry")
    yield
    metadata(uri, GEOMETRY_ATTRIBUTE_NAME="shape")
    yield "the name of the geometries"
    metadata(uri, GEOMETRY_ATTRIBUTE_NAME=None)
    yield "no name of the geometries"
    metadata(uri, soma_geometry=2.5, soma_geometry_type="radius")
    yield "a radius"
    metadata(uri, CRS="EPSG:4326")
    yield "a coordinate system"


def of_raster(uri):
    """A raster with overviews."""
    shape = (1100, 60)
    dimensions = [tiledb.Dim(name, domain=(0, length - 1), tile=length // 2, dtype=np.uint64)
                  for name, length in zip(("Y", "X"), shape)]
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dimensions), attrs=[tiledb.Attr("value", dtype=np.uint8)])
    tiledb.Array.create(uri, schema)
    pixels = np.add.outer(*map(np.arange, shape)).astype(np.uint8)
    put(uri, value=pixels)
    yield
    put(uri, value=pixels + 1)
    yield "pixels"
    metadata(uri, _gdal="<GDALTiles><PAMRasterBand band='1'><NoDataValue>3</NoDataValue></PAMRasterBand></GDALTiles>")
    yield "metadata of GDAL"
    metadata(uri, PhotometricInterpretation="MINISWHITE")
    yield "other metadata"


def group(uri, kind):
    tiledb.Group.create(uri)
    with tiledb.Group(uri, "w") as made:
        made.meta["soma_object_type"] = kind


def soma_array(uri, kind, dimensions, attribute):
    schema = tiledb.ArraySchema(sparse=True, attrs=[attribute], domain=tiledb.Domain(*[
        tiledb.Dim(name, domain=(0, length - 1), tile=16, dtype=np.int64) for name, length in dimensions]))
    tiledb.Array.create(uri, schema)
    metadata(uri, soma_object_type=kind)


def of_experiment(uri):
    """An experiment of TileDB-SOMA."""
    cells, genes = 60, 40
    group(uri, "SOMAExperiment")
    group(f"{uri}/ms", "SOMACollection")
    group(f"{uri}/ms/RNA", "SOMAMeasurement")
    group(f"{uri}/ms/RNA/X", "SOMACollection")
    for place, member in ((uri, "ms"), (f"{uri}/ms", "RNA"), (f"{uri}/ms/RNA", "X")):
        with tiledb.Group(place, "w") as made:
            made.add(member, name=member, relative=True)
    obs, var, matrix = f"{uri}/obs", f"{uri}/ms/RNA/var", f"{uri}/ms/RNA/X/data"
    soma_array(obs, "SOMADataFrame", [("soma_joinid", cells)], tiledb.Attr("obs_id", dtype="U0", var=True))
    soma_array(var, "SOMADataFrame", [("soma_joinid", genes)], tiledb.Attr("var_id", dtype="U0", var=True))
    soma_array(matrix, "SOMASparseNDArray", [("soma_dim_0", cells), ("soma_dim_1", genes)], tiledb.Attr("soma_data", dtype=np.float32))
    for array in (obs, var, matrix):
        place, member = array.rsplit("/", 1)
        with tiledb.Group(place, "w") as made:
            made.add(member, name=member, relative=True)

    def name_rows(place, attribute, prefix, count):
        with tiledb.open(place, "w") as array:
            array[np.arange(count)] = {attribute: texts(prefix, count)}

    def count_cells(step):
        places = np.arange(0, cells * genes, step)
        with tiledb.open(matrix, "w") as array:
            array[places // genes, places % genes] = {"soma_data": (places + step).astype(np.float32)}

    name_rows(obs, "obs_id", "cell", cells)
    name_rows(var, "var_id", "gene", genes)
    count_cells(3)
    yield
    name_rows(obs, "obs_id", "barcode", cells)
    yield "the names of observations"
    name_rows(var, "var_id", "g", genes)
    yield "the names of variables"
    count_cells(7)
    yield "more cells"
    metadata(obs, soma_dataframe_original_index_name='"barcode"')
    yield "the name of an index"
    with tiledb.Group(uri, "w") as made:
        made.meta["note"] = "a note"
    yield "metadata of the group"
    with tiledb.Group(f"{uri}/ms", "w") as made:
        made.remove("RNA")
    with tiledb.Group(f"{uri}/ms", "w") as made:
        made.add("RNA", name="renamed", relative=True)
    yield "the name of a measurement"
    merge(matrix)
    yield "consolidation"


HEAD = """##fileformat=VCFv4.2
##FILTER=<ID=q10,Description="x">
##INFO=<ID=END,Number=1,Type=Integer,Description="x">
##INFO=<ID=DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##contig=<ID=chr1,length=120>
##contig=<ID=chr2,length=120>
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"""


def of_variants(uri, layout):
    """A dataset of TileDB-VCF with a reference genome beside it."""
    reference = f"{uri}.fa"

    def bases(one, other):
        with open(reference, "w") as fasta:
            fasta.write(f">chr1\n{one * 120}\n>chr2\n{other * 120}\n")

    bases("A", "C")
    records = "".join(
        f"{contig}\t{at}\t.\t{base}\t<NON_REF>\t.\tq10\tEND={at + 20};DP={at}\tGT\t0/0\n"
        for contig, base in (("chr1", "A"), ("chr2", "C")) for at in (1, 40))
    files = [variants.Vcf(f"{HEAD}{name}\n{records}") for name in ("one", "two")]
    variants.write_dataset(uri, files, layout, 1000)
    yield
    headers = f"{uri}/metadata/vcf_headers"

    def write_headers(change):
        cells = np.empty(2, dtype=object)
        cells[:] = [change(vcf.header, number).encode() for number, vcf in enumerate(files)]
        with tiledb.open(headers, "w") as array:
            if layout == 4:
                array[variants.objects([b"one", b"two"])] = {"header": cells}
            else:
                array[0:2] = cells

    if layout == 2:
        write_headers(lambda text, _: text.replace("q10", "a_longer_name"))
        yield "the names of filters"
        metadata(f"{uri}/data", sample_ids=listed("one\t1", "two\t0"))
        yield "samples with each other's names"
    if layout == 3:
        write_headers(lambda text, number: text.replace("q10", "another") if number else text)
        yield "the header of one sample"
        metadata(f"{uri}/data", contig_offsets=listed("chr2\t0", "chr1\t120"))
        yield "contigs that changed places"
    if layout == 4:
        write_headers(lambda text, number: text.replace("q10", "another_one") if number else text)
        yield "the header of one sample"
        bases("A", "T")
        yield "other bases of the reference"
        with open(reference, "w") as fasta:
            fasta.write(">chr1\n" + "A" * 120 + "\n")
        yield "a contig less in the reference"
        with open(f"{reference}.fai", "w") as index:
            index.write("chr1\t100\t6\t120\t121\n")
        yield "an index of the reference"


def listed(*values):
    return np.bytes_(base64.b64encode(",".join(values).encode()))


def main():
    folder, *names = sys.argv[1:]
    datasets = {
        "dense": lambda uri: of_table(uri, False, False),
        "sparse": lambda uri: of_table(uri, True, False),
        "labels": lambda uri: of_table(uri, False, True),
        "labels_of_rows": lambda uri: of_table(uri, True, True),
        "geometries": of_geometries,
        "raster": of_raster,
        "experiment": of_experiment,
        "variants2": lambda uri: of_variants(uri, 2),
        "variants3": lambda uri: of_variants(uri, 3),
        "variants4": lambda uri: of_variants(uri, 4),
    }
    for name in names:
        changes = datasets[name](f"{folder}/{name}")
        next(changes)
        print(f"dataset {name}", flush=True)
        for line in sys.stdin:
            # Each commit has a time of its own.
            time.sleep(0.005)
            change = next(changes, None)
            if change is None:
                break
            print(change, flush=True)


if __name__ == "__main__":
    main()
