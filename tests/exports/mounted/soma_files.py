"""zarr-python and anndata open zarr/ of a mounted experiment in TileDB-SOMA's form: all values equal those that
libtiledb reads."""

import glob
import json
import shutil
import sys

import numpy as np
import tiledb
import zarr
from tiledb.sparse_array import _setitem_impl_sparse

CELLS, GENES, PEAKS = 70, 45, 12
FAR = 2**62
ALL = (0, FAR)
APPENDED = {
    "cells appended": [((0, 23), ALL), ((23, 41), ALL), ((41, 42), ALL), ((42, CELLS), ALL)],
    "cells in any order": [((41, CELLS), ALL), ((0, 23), ALL), ((23, 41), ALL)],
    "genes appended": [(ALL, (0, 11)), (ALL, (11, 30)), (ALL, (30, GENES))],
    "genes in any order": [(ALL, (30, GENES)), (ALL, (0, 11)), (ALL, (11, 30))],
    "both": [((30, CELLS), (20, GENES)), ((0, 30), (5, GENES)), ((0, 50), (0, 5)), ((30, CELLS), (5, 20)), ((50, CELLS), (0, 5))],
}
KINDS, SIZES, NUMBERED = ["B", "natural killer", "µ"], ["small", "large"], [10, 20, 30]
NULLABLE = ["size", "remark", "part", "share", "sure", "when"]
random = np.random.default_rng(5)


def group(path, kind, **metadata):
    tiledb.Group.create(path)
    with tiledb.Group(path, "w") as made:
        made.meta["soma_object_type"] = kind
        for key, value in metadata.items():
            made.meta[key] = value
        return path


def add(path, *names):
    with tiledb.Group(path, "w") as made:
        for name in names:
            made.add(name, name, relative=True)


def dimension(name, tile):
    return tiledb.Dim(name, (0, FAR), tile, dtype="i8")


def create(path, kind, dimensions, attributes, shape, enumerations=(), metadata=(), **options):
    """Creates an array that can grow; its current domain is its shape."""
    domain, context = tiledb.Domain(*dimensions), tiledb.default_ctx()
    schema = tiledb.ArraySchema(domain, attributes, sparse=True, enums=enumerations, **options)
    box, current = tiledb.NDRectangle(context, domain), tiledb.CurrentDomain(context)
    for dimension, length in zip(dimensions, shape):
        box.set_range(dimension.name, 0, length - 1)
    current.set_ndrectangle(box)
    schema.set_current_domain(current)
    tiledb.Array.create(path, schema)
    with tiledb.open(path, "w") as array:
        array.meta["soma_object_type"] = kind
        for key, value in metadata:
            array.meta[key] = value


def matrix(path, shape, share, dtype="f4", parts=1, extents=(2048, 2048), boxes=None, **options):
    """Writes a matrix; each part is a write of its own, and has any cells, or those of a box of rows and columns."""
    dimensions = [dimension(f"soma_dim_{axis}", extent) for axis, extent in enumerate(extents)]
    create(path, "SOMASparseNDArray", dimensions, [tiledb.Attr("soma_data", dtype=dtype)], shape, **options)
    places = np.flatnonzero(random.random(shape[0] * shape[1]) < share)
    random.shuffle(places)
    rows, columns = places // shape[1], places % shape[1]
    within = lambda own, ends: (own >= ends[0]) & (own < ends[1])
    writes = [places[within(rows, box[0]) & within(columns, box[1])] for box in boxes] if boxes else np.array_split(places, parts)
    for part in writes:
        with tiledb.open(path, "w") as array:
            array[part // shape[1], part % shape[1]] = {"soma_data": (random.random(len(part)) * 100 + 1).astype(dtype)}


def frame(path, rows, attributes, columns, nulls=(), parts=1, enumerations=(), metadata=()):
    """Writes a data frame. An attribute is a name, a type and further options; every third row of those in `nulls` is
    null."""
    attributes = [tiledb.Attr(name, dtype=dtype, nullable=True, **more) for name, dtype, more in attributes]
    create(path, "SOMADataFrame", [dimension("soma_joinid", 37)], attributes, [rows], enumerations, metadata)
    there = np.arange(rows) % 3 != 1
    for part in np.array_split(np.arange(rows), parts):
        valid = {name: (there | (name not in nulls))[part].astype("u1") for name in columns}
        with tiledb.open(path, "w") as array:
            _setitem_impl_sparse(array, (part,), {name: values[part] for name, values in columns.items()}, valid)


def text(values):
    return np.array(list(values), dtype="O")


def variables(path, rows, prefix, **options):
    names = text(f"{prefix}{row}" for row in range(rows))
    attributes = [("var_id", "U0", {"var": True}), ("length", "i4", {})]
    frame(path, rows, attributes, {"var_id": names, "length": random.integers(0, 9, rows, dtype="i4")}, **options)


def make():
    group("cells", "SOMAExperiment")
    text_type = {"var": True}
    attributes = [("obs_id", "U0", text_type), ("kind", "i1", {"enum_label": "kinds"}), ("size", "u1", {"enum_label": "sizes"}),
                  ("number", "i4", {"enum_label": "numbers"}), ("note", "U0", text_type), ("remark", "U0", text_type), ("whole", "i8", {}),
                  ("part", "u2", {}), ("share", "f4", {}), ("good", "bool", {}), ("sure", "bool", {}), ("when", "M8[us]", {}), ("raw bytes", "blob", text_type)]
    columns = {"obs_id": text(f"cell {row}" for row in range(CELLS)), "kind": random.integers(0, 3, CELLS, dtype="i1"),
               "size": random.integers(0, 2, CELLS, dtype="u1"), "number": random.integers(0, 3, CELLS, dtype="i4"),
               "note": text("é" * (row % 4) for row in range(CELLS)), "remark": text(f"row {row}" for row in range(CELLS)),
               "whole": random.integers(-9, 9, CELLS), "part": random.integers(0, 9, CELLS, dtype="u2"), "share": random.random(CELLS, dtype="f4"),
               "good": random.random(CELLS) > 0.5, "sure": random.random(CELLS) > 0.5, "when": random.integers(0, 10**15, CELLS).astype("M8[us]"),
               "raw bytes": text(bytes([row]) for row in range(CELLS))}
    enumerations = [tiledb.Enumeration("kinds", False, values=KINDS), tiledb.Enumeration("sizes", True, values=SIZES),
                    tiledb.Enumeration("numbers", False, values=np.array(NUMBERED, "i4"))]
    frame("cells/obs", CELLS, attributes, columns, NULLABLE, 3, enumerations)
    group("cells/ms", "SOMACollection")
    for measurement, rows in ("RNA", GENES), ("raw", GENES), ("ATAC", PEAKS):
        path = group(f"cells/ms/{measurement}", "SOMAMeasurement")
        variables(f"{path}/var", rows, measurement[0])
        group(f"{path}/X", "SOMACollection")
        matrix(f"{path}/X/data", (CELLS, rows), 0.2)
        add(f"{path}/X", "data")
        add(path, "var", "X")
    # Matrices in several tiles along both axes and written in parts, sorted by columns, and with a value in each cell.
    rna = "cells/ms/RNA"
    matrix(f"{rna}/X/parts", (CELLS, GENES), 0.3, "i2", 3, (16, 8))
    matrix(f"{rna}/X/columns", (CELLS, GENES), 0.3, "f8", 1, (2048, 16), cell_order="col-major", tile_order="col-major")
    matrix(f"{rna}/X/small", (CELLS + 5, GENES), 0.3)
    # Appended by cells, by genes, and by both, not at the ends of tiles, and not in the order of the rows or columns.
    for name, boxes in APPENDED.items():
        matrix(f"{rna}/X/{name}", (CELLS, GENES), 0.4, "i4", extents=(16, 8), boxes=boxes)
    add(f"{rna}/X", "parts", "columns", "small", *APPENDED)
    for collection, shape, share in ("obsm", (CELLS, 4), 2), ("varm", (GENES, 3), 0.5), ("obsp", (CELLS, CELLS), 0.1):
        group(f"{rna}/{collection}", "SOMACollection")
        matrix(f"{rna}/{collection}/one", shape, share, "f8")
        add(f"{rna}/{collection}", "one")
    group(f"{rna}/uns", "SOMACollection", answer=42, title="µ")
    frame(f"{rna}/uns/colors", 3, [("values", "U0", text_type)], {"values": text(["red", "", "blau"])}, metadata=[("soma_uns_outgest_hint", "array_1d")])
    frame(f"{rna}/uns/table", 3, [("other", "U0", text_type)], {"other": text("abc")})
    group(f"{rna}/uns/inner", "SOMACollection", share=0.5)
    add(f"{rna}/uns", "colors", "table", "inner")
    add(rna, "obsm", "varm", "obsp", "uns")
    add("cells/ms", "RNA", "raw", "ATAC")
    add("cells", "obs", "ms")
    # The same without the other measurement, and one experiment whose observations have gaps.
    for name in "plain", "gaps":
        group(name, "SOMAExperiment")
        frame(f"{name}/obs", 9, [("obs_id", "U0", text_type)], {"obs_id": text("abcdefghi")})
        group(f"{name}/ms", "SOMACollection")
        for measurement in "RNA", "raw":
            path = group(f"{name}/ms/{measurement}", "SOMAMeasurement")
            # The names of rows are in a column with its own name.
            genes = text(f"{measurement} {row}" for row in range(5))
            frame(f"{path}/var", 5, [("gene", "U0", text_type)], {"gene": genes}, metadata=[("soma_dataframe_original_index_name", '"gene"')])
            group(f"{path}/X", "SOMACollection")
            matrix(f"{path}/X/data", (9, 5), 0.5)
            add(f"{path}/X", "data")
            add(path, "var", "X")
        add(f"{name}/ms", "RNA", "raw")
        add(name, "obs", "ms")
    with tiledb.open("gaps/obs", "d") as array:
        array.query(cond="soma_joinid == 4").submit()
    shutil.copytree("plain", "damaged")
    [schema] = glob.glob("damaged/ms/RNA/X/data/__schema/__[0-9]*")
    with open(schema, "wb") as file:
        file.write(b"nothing")
    # A matrix without its values, but with its coordinates.
    shutil.copytree("plain", "lost")
    [values] = glob.glob("lost/ms/RNA/X/data/__fragments/*/a0.tdb")
    with open(values, "wb"):
        pass
    make_names()
    make_literal()
    print("cells plain gaps damaged lost names literal")


# Columns whose names have slashes, or are not allowed in Zarr.
NAMES = ["test.field", "a", "a/b", "a_b", "a_b_2", "BEST4/OTOP2 Cells", "BEST4/x/y", "c/", "..", "%", "é/ü"]


def make_names():
    """Makes an experiment with members that AnnData has no place for, and with unusual names."""
    group("names", "SOMAExperiment")
    columns = {name: np.arange(4, dtype="i8") * (number + 2) for number, name in enumerate(NAMES)}
    attributes = [("obs_id", "U0", {"var": True})] + [(name, "i8", {}) for name in NAMES]
    frame("names/obs", 4, attributes, {"obs_id": text("wxyz"), **columns})
    group("names/spatial", "SOMACollection")
    group("names/ms", "SOMACollection")
    for measurement in "RNA", "raw":
        path = group(f"names/ms/{measurement}", "SOMAMeasurement")
        variables(f"{path}/var", 5, measurement[0])
        for collection in "X", "obsm":
            group(f"{path}/{collection}", "SOMACollection")
        for layer in "data", "more":
            matrix(f"{path}/X/{layer}", (4, 5), 0.5)
        matrix(f"{path}/obsm/one", (4, 2), 0.5)
        add(f"{path}/X", "data", "more")
        add(f"{path}/obsm", "one")
        add(path, "var", "X", "obsm")
    add("names/ms", "RNA", "raw")
    add("names", "obs", "ms", "spatial")


# Names that readers of tables with quotes would change.
LITERAL = ["#c1", "NA", " before", "after ", "", '"quoted"', "it's", "a,b", "\\N", "null", "é"]


def make_literal():
    group("literal", "SOMAExperiment")
    frame("literal/obs", len(LITERAL), [("obs_id", "U0", {"var": True})], {"obs_id": text(LITERAL)})
    group("literal/ms", "SOMACollection")
    path = group("literal/ms/RNA", "SOMAMeasurement")
    columns = {"var_id": text(LITERAL), "gene_ids": text(reversed(LITERAL)), "feature_types": text(LITERAL[3:] + LITERAL[:3])}
    frame(f"{path}/var", len(LITERAL), [(name, "U0", {"var": True}) for name in columns], columns)
    group(f"{path}/X", "SOMACollection")
    matrix(f"{path}/X/data", (len(LITERAL), len(LITERAL)), 0.5)
    add(f"{path}/X", "data")
    add(path, "var", "X")
    add("literal/ms", "RNA")
    add("literal", "obs", "ms")


def table(path):
    """Returns the values that libtiledb reads from a data frame, with None for null and labels instead of codes."""
    with tiledb.open(path) as array:
        read = array.query(order="C")[:]
        labels = {name: array.enum(array.attr(name).enum_label).values() for name in read if array.schema.has_attr(name) and array.attr(name).enum_label}
    assert read.pop("soma_joinid").tolist() == list(range(len(next(iter(read.values())))))
    read.pop("raw bytes", None)
    found = {}
    for name, values in read.items():
        plain = [labels[name][code] for code in values.data] if name in labels else values.data.tolist()
        found[name] = [None if null else getattr(value, "item", lambda: value)() for value, null in zip(plain, np.ma.getmaskarray(values))]
    return found


def cells_of(path, shape):
    """Returns the values that libtiledb reads from a matrix, as an array of all its cells."""
    with tiledb.open(path) as array:
        read = array[:]
    values = np.zeros(shape, read["soma_data"].dtype)
    values[read["soma_dim_0"], read["soma_dim_1"]] = read["soma_data"]
    assert np.count_nonzero(values) == len(read["soma_data"]) > 0
    return values


def column(group, name):
    """Returns the values of a column of a data frame, decoded according to AnnData's encodings."""
    member = group[name]
    encoding = member.attrs["encoding-type"]
    if encoding == "categorical":
        categories = member["categories"][...].tolist()
        return [None if code < 0 else categories[code] for code in member["codes"][...].astype("i8").tolist()]
    if encoding.startswith("nullable-"):
        return [None if null else value for value, null in zip(member["values"][...].tolist(), member["mask"][...])]
    values = member[...]
    assert encoding == ("string-array" if values.dtype.kind in "OT" else "array"), name
    null = np.isnat(values) if values.dtype.kind == "M" else values != values
    return [None if none else value for value, none in zip(values.tolist(), null)]


def compressed(group):
    """Returns a sparse matrix as an array of all its cells."""
    shape, by_rows = group.attrs["shape"], group.attrs["encoding-type"] == "csr_matrix"
    data, indices, starts = (group[name][...] for name in ("data", "indices", "indptr"))
    assert len(starts) == shape[0 if by_rows else 1] + 1 and starts[0] == 0 and starts[-1] == len(data) == len(indices)
    values = np.zeros(shape, data.dtype)
    for number, (start, end) in enumerate(zip(starts, starts[1:])):
        assert (np.diff(indices[start:end]) > 0).all()
        place = (number, indices[start:end]) if by_rows else (indices[start:end], number)
        values[place] = data[start:end]
    return values


def same_frame(group, expected, index):
    order = [name for name in expected if name != index]
    assert group.attrs["encoding-type"] == "dataframe" and list(group.attrs["column-order"]) == order, order
    assert column(group, group.attrs["_index"]) == expected[index]
    for name in order:
        assert column(group, name) == expected[name], name


def reasons(path):
    return json.load(open(f"{path}/zarr.json"))["attributes"]["left_out"]


def merged_cells():
    """Returns how many cells the mount has gone through to find their order."""
    return json.load(open("mnt_cells/.tilefs/stats.json"))["merged_cells"]


def check():
    # Parts with boxes of their own are neither merged nor sorted.
    for name in APPENDED:
        assert compressed(zarr.open_group(f"mnt_cells/ms/RNA/X/{name}/zarr", mode="r")).any()
    assert merged_cells() == 0, merged_cells()
    expected = table("cells/obs")
    assert [name for name in expected if None in expected[name]] == NULLABLE
    matrices = {"X": "X/data", "layers/parts": "X/parts", "layers/columns": "X/columns", "varm/one": "varm/one", "obsp/one": "obsp/one"}
    matrices |= {f"layers/{name}": f"X/{name}" for name in APPENDED}
    shapes = {"varm/one": (GENES, 3), "obsp/one": (CELLS, CELLS)}
    group = zarr.open_group("mnt_cells/zarr/ms/RNA", mode="r")
    assert group.attrs["encoding-type"] == "anndata" and "obs" in dict(group.members())
    same_frame(group["obs"], expected, "obs_id")
    same_frame(group["var"], table("cells/ms/RNA/var"), "var_id")
    for name, stored in matrices.items():
        values = cells_of(f"cells/ms/RNA/{stored}", shapes.get(name, (CELLS, GENES)))
        got = compressed(group[name])
        assert got.dtype == values.dtype and np.array_equal(got, values), name
    assert group["layers/columns"].attrs["encoding-type"] == "csc_matrix"
    assert np.array_equal(group["obsm/one"][...], cells_of("cells/ms/RNA/obsm/one", (CELLS, 4)))
    assert group["obs/size"].attrs["ordered"] and not group["obs/kind"].attrs["ordered"]
    assert set(reasons("mnt_cells/zarr/ms/RNA")) == {"X/small"} and "soma_dim_0 7" in reasons("mnt_cells/zarr/ms/RNA")["X/small"]
    assert "3 measurements" in reasons("mnt_cells/zarr")["AnnData"]
    # Matrices and frames on their own.
    alone = zarr.open_group("mnt_cells/ms/RNA/X/parts/zarr", mode="r")
    assert np.array_equal(compressed(alone), cells_of("cells/ms/RNA/X/parts", (CELLS, GENES)))
    same_frame(zarr.open_group("mnt_cells/obs/zarr", mode="r"), expected, "obs_id")
    assert "raw bytes" in open("mnt_cells/obs/README.txt").read().split("Not here")[1]
    # A slice is not shown as a matrix, because it has no rows of its own.
    part = zarr.open_group("mnt_cells/ms/RNA/X/parts/slice/3..20,../zarr", mode="r")
    assert sorted(part.array_keys()) == ["soma_data", "soma_dim_0", "soma_dim_1"]
    plain = zarr.open_group("mnt_plain/zarr", mode="r")
    assert sorted(plain.group_keys()) == ["X", "obs", "raw", "var"] and plain["var"].attrs["_index"] == "gene"
    for name, measurement in ("", "RNA"), ("raw/", "raw"):
        same_frame(plain[f"{name}var"], table(f"plain/ms/{measurement}/var"), "gene")
        assert np.array_equal(compressed(plain[f"{name}X"]), cells_of(f"plain/ms/{measurement}/X/data", (9, 5)))
    for path in "mnt_gaps/zarr", "mnt_gaps/zarr/ms/RNA":
        assert "8 rows" in reasons(path)["AnnData"] and "without a gap" in reasons(path)["AnnData"], reasons(path)
    gaps = zarr.open_group("mnt_gaps/zarr", mode="r")
    assert np.array_equal(compressed(gaps["ms/RNA/X/data"]), cells_of("gaps/ms/RNA/X/data", (9, 5)))
    assert gaps["obs/soma_joinid"][...].tolist() == [0, 1, 2, 3, 5, 6, 7, 8] and "AnnData" in gaps["obs"].attrs["left_out"]
    for path in "mnt_damaged/zarr", "mnt_damaged/zarr/ms/RNA":
        assert "ms/RNA/X/data" in reasons(path)["AnnData"], reasons(path)
    same_frame(zarr.open_group("mnt_damaged/zarr/obs", mode="r"), table("damaged/obs"), "obs_id")
    left_out = reasons("mnt_names/zarr")
    assert set(left_out) == {"spatial", "raw/obsm", "raw/X/more"}, left_out
    renamed = reasons("mnt_names/zarr/obs")
    assert set(renamed) == {"a/b", "c/", ".."} and "a_b_3" in renamed["a/b"], renamed
    print(len(expected) + len(matrices))


def same_names(found, expected):
    """Checks that each column has its name, or one that `left_out` names."""
    known = {"a/b": "a_b_3", "c/": "c_", "..": "_.."}
    assert found.columns.tolist() == [known.get(name, name) for name in NAMES], found.columns
    for name in NAMES:
        assert found[known.get(name, name)].tolist() == expected[name], name


def same_table(found, expected, index):
    import pandas

    assert found.index.tolist() == expected[index] and found.columns.tolist() == [name for name in expected if name != index]
    for name in found.columns:
        values = found[name]
        if values.dtype.kind == "M":
            values = values.astype("M8[us]")
        stored = np.array(expected[name], dtype="O") if name == "when" else expected[name]
        got = [None if pandas.isna(value) else value for value in (values.to_numpy().astype("O") if name == "when" else values.tolist())]
        assert got == list(stored), (name, got, stored)


def annotated():
    """Checks what anndata reads from the experiment."""
    import anndata
    from scipy import sparse

    for folder in "zarr", "zarr2":
        same_names(anndata.read_zarr(f"mnt_names/{folder}").obs, table("names/obs"))
    expected = table("cells/obs")
    data = anndata.read_zarr("mnt_cells/zarr/ms/RNA")
    same_table(data.obs, expected, "obs_id")
    same_table(data.var, table("cells/ms/RNA/var"), "var_id")
    assert data.obs["kind"].cat.categories.tolist() == KINDS and data.obs["size"].cat.ordered
    assert data.X.shape == (CELLS, GENES) and np.array_equal(data.X.toarray(), cells_of("cells/ms/RNA/X/data", (CELLS, GENES)))
    for layer in "parts", "columns", *APPENDED:
        assert np.array_equal(data.layers[layer].toarray(), cells_of(f"cells/ms/RNA/X/{layer}", (CELLS, GENES)))
    assert sparse.issparse(data.layers["columns"]) and data.layers["columns"].format == "csc"
    assert np.array_equal(data.obsm["one"], cells_of("cells/ms/RNA/obsm/one", (CELLS, 4)))
    assert np.array_equal(data.obsp["one"].toarray(), cells_of("cells/ms/RNA/obsp/one", (CELLS, CELLS)))
    assert data.uns["answer"] == 42 and data.uns["title"] == "µ" and data.uns["inner"] == {"share": 0.5}
    assert list(data.uns["colors"]) == ["red", "", "blau"] and set(data.uns) == {"answer", "title", "colors", "inner", "table"}
    assert list(data.uns["table"].columns) == ["other"] and list(data.uns["table"]["other"]) == list("abc")
    # Slices by joinid equal anndata's own slices of the whole.
    for name, rows, columns in ("obs=0..9", slice(0, 10), slice(None)), ("obs=17..40,var=3..30", slice(17, 41), slice(3, 31)), ("var=44", slice(None), slice(44, 45)):
        part, cut = anndata.read_zarr(f"mnt_cells/slice/{name}/zarr/ms/RNA"), data[rows, columns]
        assert part.shape == cut.shape and part.obs.equals(cut.obs.copy()) and part.var.equals(cut.var.copy()), name
        for one, other in (part.X, cut.X), *((part.layers[layer], cut.layers[layer]) for layer in data.layers), *((part.obsp[key], cut.obsp[key]) for key in data.obsp):
            assert np.array_equal(one.toarray(), other.toarray()), name
        dense = lambda values: values.toarray() if sparse.issparse(values) else np.asarray(values)
        assert np.array_equal(dense(part.obsm["one"]), dense(cut.obsm["one"])) and np.array_equal(dense(part.varm["one"]), dense(cut.varm["one"])), name
    plain = anndata.read_zarr("mnt_plain/slice/obs=2..4,var=1/zarr")
    assert plain.shape == (3, 1) and plain.raw.shape == (3, 5)
    assert np.array_equal(plain.raw.X.toarray(), cells_of("plain/ms/raw/X/data", (9, 5))[2:5])
    other = anndata.read_zarr("mnt_cells/zarr/ms/ATAC")
    assert other.shape == (CELLS, PEAKS) and np.array_equal(other.X.toarray(), cells_of("cells/ms/ATAC/X/data", (CELLS, PEAKS)))
    plain = anndata.read_zarr("mnt_plain/zarr")
    assert plain.var_names.tolist() == [f"RNA {row}" for row in range(5)] and plain.var.index.name == "gene"
    assert np.array_equal(plain.raw.X.toarray(), cells_of("plain/ms/raw/X/data", (9, 5)))
    alone = anndata.io.read_elem(zarr.open_group("mnt_cells/ms/RNA/X/data/zarr", mode="r"))
    assert np.array_equal(alone.toarray(), data.X.toarray())
    print(len(expected))


def same_annotated(one, other, name):
    """Checks that two objects are equal, except for dates, which .h5ad files do not have."""
    import pandas
    from scipy import sparse

    def same(a, b):
        if isinstance(a, pandas.DataFrame):
            b = b.drop(columns=[column for column in b if b[column].dtype.kind == "M"])
            # anndata returns texts from HDF5 as pandas strings, and from Zarr as Python objects.
            texts = {column: a[column].dtype for column in a if isinstance(a[column].dtype, pandas.StringDtype)}
            assert all(b[column].dtype in ("O", dtype) for column, dtype in texts.items()), name
            pandas.testing.assert_frame_equal(a, b.astype(texts).set_axis(b.index.astype(a.index.dtype)))
        elif hasattr(a, "keys"):
            assert set(a) == set(b), name
            for key in a:
                same(a[key], b[key])
        elif sparse.issparse(a):
            assert a.format == b.format and a.dtype == b.dtype and a.shape == b.shape and (a != b).nnz == 0, name
        else:
            assert np.array_equal(a, b), (name, a, b)

    assert one.shape == other.shape
    for part in "obs", "var", "X", "layers", "obsm", "varm", "obsp", "varp", "uns":
        same(getattr(one, part), getattr(other, part))
    assert (one.raw is None) == (other.raw is None)
    if one.raw is not None:
        same(one.raw.X, other.raw.X)
        same(one.raw.var, other.raw.var)


def errors_of(mount):
    """Returns the number of requests that failed in a mount."""
    with open(f"{mount}/.tilefs/stats.prom") as file:
        return sum(int(line.split()[-1]) for line in file if line.startswith("tilefs_errors_total"))


def h5ad():
    """Checks that .h5ad files equal zarr/: the whole, slices, and reads without loading everything."""
    import os

    import anndata
    import h5py

    files = {"mnt_cells/h5ad/RNA.h5ad": "mnt_cells/zarr/ms/RNA", "mnt_cells/h5ad/ATAC.h5ad": "mnt_cells/zarr/ms/ATAC",
             "mnt_cells/h5ad/raw.h5ad": "mnt_cells/zarr/ms/raw", "mnt_plain/h5ad/RNA.h5ad": "mnt_plain/zarr",
             "mnt_cells/slice/obs=17..40,var=3..30/h5ad/RNA.h5ad": "mnt_cells/slice/obs=17..40,var=3..30/zarr/ms/RNA",
             "mnt_plain/slice/obs=2..4,var=1/h5ad/RNA.h5ad": "mnt_plain/slice/obs=2..4,var=1/zarr"}
    assert sorted(os.listdir("mnt_cells/h5ad")) == ["ATAC.h5ad", "RNA.h5ad", "raw.h5ad"] and "h5ad" in os.listdir("mnt_cells")
    for file, folder in files.items():
        whole = anndata.read_zarr(folder)
        same_annotated(anndata.read_h5ad(file), whole, file)
        backed = anndata.read_h5ad(file, backed="r")
        # Slices of backed data do not work with the newest scipy.
        assert backed.isbacked and backed.obs_names.tolist() == whole.obs_names.tolist(), file
        assert np.array_equal(backed.X.to_memory().toarray(), whole.X.toarray()), file
        backed.file.close()
        with open(file, "rb") as opened:
            content = opened.read()
            assert len(content) == os.stat(file).st_size
            for start in random.integers(0, len(content), 200):
                length = int(random.integers(1, 5000))
                opened.seek(start)
                assert opened.read(length) == content[start : start + length], (file, start, length)
    same_names(anndata.read_h5ad("mnt_names/h5ad/RNA.h5ad").obs, table("names/obs"))
    with h5py.File("mnt_names/h5ad/RNA.h5ad") as file:
        assert set(json.loads(file.attrs["left_out"])) == {"spatial", "raw/obsm", "raw/X/more"}
        assert set(json.loads(file["obs"].attrs["left_out"])) == {"a/b", "c/", ".."}
    with h5py.File("mnt_cells/h5ad/RNA.h5ad") as file:
        assert "when" in json.loads(file["obs"].attrs["left_out"]) and "X/small" in json.loads(file.attrs["left_out"])
        assert "when" not in file["obs"] and "when" not in file["obs"].attrs["column-order"]
    for wrong in "mnt_gaps/h5ad/RNA.h5ad", "mnt_damaged/h5ad/RNA.h5ad":
        try:
            anndata.read_h5ad(wrong)
        except OSError:
            continue
        raise AssertionError(f"{wrong} opens")
    # Reads that need the lost values fail. The mount counts the error, and reports it with its place.
    before = errors_of("mnt_lost")
    try:
        anndata.read_h5ad("mnt_lost/h5ad/RNA.h5ad")
    except OSError:
        assert errors_of("mnt_lost") > before
    else:
        raise AssertionError("lost values are read")
    with open("mnt_lost/.tilefs/errors.txt") as file:
        told = [line for line in file if "h5ad/RNA.h5ad" in line]
    assert told and all("ms/RNA/X/data" in line and "fragment __" in line and "a0.tdb" in line for line in told), told
    assert not os.path.exists("mnt_cells/h5ad/RNA") and not os.path.exists("mnt_cells/h5ad/none.h5ad") and not os.path.exists("mnt_cells/obs/h5ad")
    print(len(files))


def cell_ranger():
    """Checks that 10x/ has the matrix, the names and the types of zarr/, of the whole and of slices, as SciPy and R read them."""
    import gzip
    import os
    import subprocess

    import anndata
    import scipy.io

    folders = {"mnt_cells/10x/RNA": "mnt_cells/zarr/ms/RNA", "mnt_cells/10x/raw": "mnt_cells/zarr/ms/raw",
               "mnt_plain/10x/RNA": "mnt_plain/zarr", "mnt_names/10x/RNA": "mnt_names/zarr",
               "mnt_cells/slice/obs=17..40,var=3..30/10x/RNA": "mnt_cells/slice/obs=17..40,var=3..30/zarr/ms/RNA"}
    assert "10x" not in os.listdir("mnt_cells") and sorted(os.listdir("mnt_cells/10x")) == ["ATAC", "RNA", "raw"]
    for folder, annotated in folders.items():
        assert sorted(os.listdir(folder)) == ["barcodes.tsv.gz", "features.tsv.gz", "matrix.mtx.gz"], folder
        whole = anndata.read_zarr(annotated)
        if "X" not in zarr.open(annotated):
            continue
        texts = {}
        for name, plain in ("matrix.mtx", "matrix.mtx"), ("barcodes.tsv", "barcodes.tsv"), ("features.tsv", "genes.tsv"):
            with open(f"{folder}/{name}.gz", "rb") as file:
                stored = file.read()
                assert len(stored) == os.stat(f"{folder}/{name}.gz").st_size
                for start in random.integers(0, len(stored), 50):
                    file.seek(start)
                    assert file.read(300) == stored[start : start + 300], (folder, name, start)
            texts[name] = gzip.decompress(stored)
            with open(f"{folder}/plain/{plain}", "rb") as file:
                assert file.read() == texts[name], (folder, name)
        matrix = scipy.io.mmread(f"{folder}/matrix.mtx.gz").tocsc().T
        assert matrix.shape == whole.shape and np.array_equal(matrix.toarray().astype(whole.X.dtype), whole.X.toarray()), folder
        assert texts["barcodes.tsv"].decode().splitlines() == whole.obs_names.tolist(), folder
        features = [line.split("\t") for line in texts["features.tsv"].decode().splitlines()]
        assert [feature[1] for feature in features] == whole.var_names.tolist(), folder
        assert all(len(feature) == 3 and feature[2] == "Gene Expression" for feature in features), folder
        program = f"m <- Matrix::readMM(gzfile('{folder}/matrix.mtx.gz')); cat(dim(m), format(sum(m), digits = 15))"
        said = subprocess.run(["Rscript", "-e", program], check=True, capture_output=True, text=True).stdout.split()
        assert said[:2] == [str(length) for length in whole.shape[::-1]], folder
        # Both read decimal numbers as 64 bits, which are not exactly the 32 bits that they were printed from.
        assert np.isclose(float(said[2]), matrix.sum(), rtol=1e-12), (folder, said)
    with gzip.open("mnt_literal/10x/RNA/barcodes.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        assert file.read().split("\n") == [*LITERAL, ""]
    program = """
    folder <- 'mnt_literal/10x/RNA/'
    names <- readLines(gzfile(paste0(folder, 'barcodes.tsv.gz')), encoding = 'UTF-8')
    features <- read.delim(gzfile(paste0(folder, 'features.tsv.gz')), header = FALSE, quote = '', comment.char = '', na.strings = character(),
                           colClasses = 'character', blank.lines.skip = FALSE, encoding = 'UTF-8')
    con <- file('literal.txt', 'wb'); writeLines(c(names, features$V1, features$V2, features$V3), con, useBytes = TRUE); close(con)
    """
    subprocess.run(["Rscript", "-e", program], check=True)
    with open("literal.txt", encoding="utf-8", newline="") as file:
        assert file.read().split("\n")[:-1] == [*LITERAL, *reversed(LITERAL), *LITERAL, *LITERAL[3:], *LITERAL[:3]]
    for wrong in "mnt_gaps/10x/RNA/matrix.mtx.gz", "mnt_gaps/10x/RNA/barcodes.tsv.gz":
        try:
            open(wrong).close()
        except OSError:
            continue
        raise AssertionError(f"{wrong} opens")


if __name__ == "__main__":
    {"make": make, "check": check, "annotated": annotated, "h5ad": h5ad, "cell_ranger": cell_ranger}[sys.argv[1]]()
