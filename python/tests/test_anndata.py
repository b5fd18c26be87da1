"""Experiments of TileDB-SOMA in memory. The values to compare with are read by TileDB's library, cell by cell."""

import json
import os
import pickle
from importlib.metadata import version

import numpy as np
import pandas
import pytest
from conftest import tiledb

import tilefs
from tilefs.fs import TilefsFileSystem

anndata = pytest.importorskip("anndata")

CELLS, GENES = 300, 40


def matrix(folder, name, values, *, domain=None, extent=(64, 16), is_by_column=False):
    """Writes a matrix of SOMA in several fragments."""
    domain = domain or values.shape
    dims = [tiledb.Dim(f"soma_dim_{axis}", domain=(0, domain[axis] - 1), tile=min(extent[axis], domain[axis]), dtype=np.int64) for axis in (0, 1)]
    order = "col-major" if is_by_column else "row-major"
    schema = tiledb.ArraySchema(
        tiledb.Domain(*dims), [tiledb.Attr("soma_data", dtype=values.dtype)], sparse=True, capacity=100, cell_order=order, tile_order=order
    )
    tiledb.Array.create(f"{folder}/{name}", schema)
    rows, columns = np.nonzero(values)
    for part in np.array_split(np.arange(len(rows)), 3):
        with tiledb.open(f"{folder}/{name}", "w") as array:
            array[rows[part], columns[part]] = values[rows[part], columns[part]]


def frame(folder, name, columns, index=None, **enumerations):
    dim = tiledb.Dim("soma_joinid", domain=(0, 10**6), tile=100, dtype=np.int64)
    attrs = [
        tiledb.Attr(key, dtype=str if one.dtype == object else one.dtype, var=one.dtype == object, enum_label=key if key in enumerations else None)
        for key, one in columns.items()
    ]
    enums = [tiledb.Enumeration(key, False, np.array(labels)) for key, labels in enumerations.items()]
    tiledb.Array.create(f"{folder}/{name}", tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, enums=enums))
    with tiledb.open(f"{folder}/{name}", "w") as array:
        array[np.arange(len(next(iter(columns.values()))))] = columns
        array.meta["soma_object_type"] = "SOMADataFrame"
        if index:
            array.meta["soma_dataframe_original_index_name"] = json.dumps(index)


def group(path, **metadata):
    tiledb.Group.create(str(path))
    with tiledb.Group(str(path), "w") as opened:
        for name in sorted(os.listdir(path)):
            if not name.startswith("__"):
                opened.add(name, name, relative=True)
        for key, value in metadata.items():
            opened.meta[key] = value


@pytest.fixture(scope="module")
def values():
    random = np.random.default_rng(1)
    whole = random.random((CELLS, GENES)).astype("f4")
    return {
        "data": np.where(random.random((CELLS, GENES)) < 0.1, whole, 0).astype("f4"),
        "counts": random.poisson(0.2, (CELLS, GENES)).astype("i4"),
        "raw": random.poisson(0.2, (CELLS, GENES + 5)).astype("f4"),
        "pca": random.random((CELLS, 7)),
        "near": np.where(random.random((CELLS, CELLS)) < 0.02, 1.5, 0),
        "n": random.integers(0, 1000, CELLS),
        "tissue": random.integers(0, 3, CELLS).astype("i1"),
    }


@pytest.fixture(scope="module")
def experiment(tmp_path_factory, values):
    root = tmp_path_factory.mktemp("soma") / "experiment"
    for folder in ("ms/RNA/X", "ms/RNA/obsm", "ms/RNA/obsp", "ms/RNA/uns/inner", "ms/raw/X"):
        (root / folder).mkdir(parents=True)
    rna, raw = root / "ms/RNA", root / "ms/raw"
    matrix(rna, "X/data", values["data"])
    matrix(rna, "X/counts", values["counts"], is_by_column=True)
    matrix(rna, "obsm/pca", values["pca"])
    matrix(rna, "obsp/near", values["near"])
    matrix(raw, "X/data", values["raw"])
    names = lambda letter, count: np.array([f"{letter}{number}" for number in range(count)], dtype=object)
    frame(root, "obs", {"obs_id": names("c", CELLS), "n": values["n"], "tissue": values["tissue"]}, tissue=["lung", "heart", "skin"])
    frame(rna, "var", {"gene": names("g", GENES), "length": np.arange(GENES)}, index="gene")
    frame(raw, "var", {"var_id": names("g", GENES + 5)})
    frame(rna, "uns/words", {"values": names("w", 3)})
    with tiledb.open(str(rna / "uns/words"), "w") as array:
        array.meta["soma_uns_outgest_hint"] = "array_1d"
    frame(rna, "uns/markers", {"name": names("m", 4), "score": np.arange(4) / 2, "kind": np.array([0, 1, 1, 0], "i1")}, index="name", kind=["up", "down"])
    group(rna / "uns/inner", soma_object_type="SOMACollection", depth=2.5, colour="red")
    kinds = {"ms/RNA": "SOMAMeasurement", "ms/raw": "SOMAMeasurement", ".": "SOMAExperiment"}
    for folder in ("ms/RNA/uns", "ms/RNA/X", "ms/RNA/obsm", "ms/RNA/obsp", "ms/RNA", "ms/raw/X", "ms/raw", "ms", "."):
        group(root / folder, soma_object_type=kinds.get(folder, "SOMACollection"))
    return root


def test_everything_is_as_it_was_written(experiment, values):
    data = tilefs.open(experiment).to_anndata("RNA", layers=["counts"])
    assert data.X.format == data.layers["counts"].format == "csr" and data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X.toarray(), values["data"])
    np.testing.assert_array_equal(data.layers["counts"].toarray(), values["counts"])
    assert data.layers["counts"].dtype == np.int32 and data.X.indices.dtype == np.int32
    np.testing.assert_array_equal(data.obsm["pca"], values["pca"])
    np.testing.assert_array_equal(data.obsp["near"].toarray(), values["near"])
    np.testing.assert_array_equal(data.raw.X.toarray(), values["raw"])
    assert data.obs_names[:2].tolist() == ["c0", "c1"] and data.obs_names.name is None
    assert data.var_names.name == "gene" and data.var["length"].tolist() == list(range(GENES))
    assert data.obs["n"].tolist() == values["n"].tolist()
    assert data.obs["tissue"].dtype == "category" and data.obs["tissue"].cat.codes.tolist() == values["tissue"].tolist()
    markers = data.uns["markers"]
    assert markers.index.tolist() == ["m0", "m1", "m2", "m3"] and markers["kind"].tolist() == ["up", "down", "down", "up"]
    assert data.uns["words"].tolist() == ["w0", "w1", "w2"] and data.uns["inner"] == {"depth": 2.5, "colour": "red"}


def test_frames_of_uns_are_in_files_of_anndata(experiment, tmp_path):
    files = TilefsFileSystem(str(experiment))
    (tmp_path / "RNA.h5ad").write_bytes(files.cat_file("h5ad/RNA.h5ad"))
    expected = tilefs.open(experiment).to_anndata().uns
    found = anndata.read_h5ad(tmp_path / "RNA.h5ad").uns
    assert sorted(found) == sorted(expected) and found["words"].tolist() == expected["words"].tolist()
    pandas.testing.assert_frame_equal(found["markers"], expected["markers"], check_index_type=False, check_column_type=False)
    attributes = json.loads(files.cat_file("zarr/uns/markers/zarr.json"))["attributes"]
    assert attributes["encoding-type"] == "dataframe" and attributes["encoding-version"] == "0.2.0"


DOUBLED = 24


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """An experiment whose ``uns`` has 24 collections within each other, each with two names for the next: 2^24 paths."""
    root = tmp_path_factory.mktemp("doubled") / "experiment"
    for folder in ("ms/RNA/X", "ms/RNA/uns" + "/n" * (DOUBLED - 1)):
        (root / folder).mkdir(parents=True)
    matrix(root / "ms/RNA", "X/data", np.ones((3, 2), dtype="f4"))
    frame(root, "obs", {"obs_id": np.array(["a", "b", "c"], dtype=object)})
    frame(root / "ms/RNA", "var", {"var_id": np.array(["d", "e"], dtype=object)})
    folders = [root / ("ms/RNA/uns" + "/n" * depth) for depth in range(DOUBLED)]
    for depth, folder in reversed(list(enumerate(folders))):
        tiledb.group_create(str(folder))
        with tiledb.Group(str(folder), "w") as stored:
            stored.meta.update({"soma_object_type": "SOMACollection", "depth": depth})
            for name in ("a", "b") if depth + 1 < DOUBLED else ():
                stored.add("n", name=name, relative=True)
    kinds = {"ms/RNA/X": "SOMACollection", "ms/RNA": "SOMAMeasurement", "ms": "SOMACollection", ".": "SOMAExperiment"}
    for folder, kind in kinds.items():
        group(root / folder, soma_object_type=kind, soma_encoding_version="1.1.0")
    return root


def test_a_collection_with_many_names_is_read_once(doubled):
    with pytest.warns(UserWarning, match="under another name"):
        inner = tilefs.open(doubled).to_anndata("RNA").uns
    for depth in range(DOUBLED):
        assert inner["depth"] == depth and "b" not in inner
        inner = inner.get("a")
    from tilefs.fs import TilefsFileSystem

    files = TilefsFileSystem(doubled)
    described = json.loads(files.cat_file("zarr/zarr.json"))
    collections = [path for path in described["consolidated_metadata"]["metadata"] if path.startswith("uns/") and path.endswith("/a")]
    left_out = described["attributes"]["left_out"]
    assert len(collections) == DOUBLED - 1 and len([name for name in left_out if name.endswith("/b")]) == DOUBLED - 1
    found = [path for path, _, _ in files.walk("ms/RNA/uns") if path.rsplit("/", 1)[-1] in ("a", "b")]
    assert len(found) == DOUBLED - 1
    assert len(tilefs.walk(str(doubled))) < 2 * DOUBLED
    import xarray
    from tilefs._xarray import TilefsBackendEntrypoint

    with pytest.warns(UserWarning, match="under another name"):
        groups = xarray.open_groups(str(doubled / "ms/RNA/uns"), engine=TilefsBackendEntrypoint)
    assert len(groups) == DOUBLED


QUERIES = [
    ("tissue == 'lung' and n > 500", None),
    (None, "length < 10 or gene == 'g20'"),
    ("n < 900", "length >= 5"),
    ("n > 5000", "length < 3"),
]


@pytest.mark.parametrize("obs_query, var_query", QUERIES)
def test_queries_select_cells_and_genes(experiment, values, obs_query, var_query):
    data = tilefs.open(experiment).to_anndata(obs_query=obs_query, var_query=var_query, layers=True)
    rows, columns = np.arange(CELLS), np.arange(GENES)
    if obs_query:
        chosen = {
            QUERIES[0][0]: (values["tissue"] == 0) & (values["n"] > 500), QUERIES[2][0]: values["n"] < 900, QUERIES[3][0]: values["n"] > 5000
        }
        rows = np.flatnonzero(chosen[obs_query])
    if var_query:
        chosen = {QUERIES[1][1]: (columns < 10) | (columns == 20), QUERIES[2][1]: columns >= 5, QUERIES[3][1]: columns < 3}
        columns = np.flatnonzero(chosen[var_query])
    assert data.shape == (len(rows), len(columns)) and data.obs_names.tolist() == [f"c{row}" for row in rows]
    np.testing.assert_array_equal(data.X.toarray(), values["data"][np.ix_(rows, columns)])
    np.testing.assert_array_equal(data.layers["counts"].toarray(), values["counts"][np.ix_(rows, columns)])
    np.testing.assert_array_equal(data.obsm["pca"], values["pca"][rows])
    np.testing.assert_array_equal(data.obsp["near"].toarray(), values["near"][np.ix_(rows, rows)])
    np.testing.assert_array_equal(data.raw.X.toarray(), values["raw"][rows])


@pytest.mark.parametrize("layer", ["data", "counts"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_have_each_cell_once(experiment, values, layer, shuffle):
    batches = tilefs.open(experiment).batches(32, layer=layer, shuffle=shuffle, seed=7, columns=["n"])
    seen = []
    for cells, obs in batches:
        assert cells.format == "csr" and cells.shape == (len(obs), GENES) and obs.columns.tolist() == ["n"]
        rows = [int(name[1:]) for name in obs.index]
        np.testing.assert_array_equal(cells.toarray(), values[layer][rows])
        assert obs["n"].tolist() == values["n"][rows].tolist()
        seen += rows
    assert sorted(seen) == list(range(CELLS)) and (seen != sorted(seen)) == shuffle and len(batches) == 10
    with pytest.raises(IndexError, match="10 batches"):
        batches[10]


def read_batch(batches, number):
    return batches[number][0].sum()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_read_batches(experiment, method):
    import multiprocessing

    batches = tilefs.open(experiment).batches(64, obs_query="n > 200")
    batches[0]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.starmap(read_batch, [(batches, number) for number in range(len(batches))])
    assert found == [batches[number][0].sum() for number in range(len(batches))]
    assert len(pickle.dumps(tilefs.open(experiment))) < 1000


def test_wrong_names_are_exceptions(experiment):
    opened = tilefs.open(experiment)
    for wrong, error, match in (
        (lambda: opened.to_anndata("ATAC"), KeyError, "no member 'ATAC'"),
        (lambda: opened.to_anndata(X="none"), KeyError, "no layer 'none'; it has counts, data"),
        (lambda: opened.to_anndata(layers=["x"]), KeyError, "no layer 'x'"),
        (lambda: opened.to_anndata(obs_query="nn > 3"), tilefs.UsageError, "did you mean 'n'"),
        (lambda: opened["ms"].to_anndata(), tilefs.UsageError, "no experiment"),
        (lambda: opened.batches(0), ValueError, "at least one"),
    ):
        with pytest.raises(error, match=match):
            wrong()
    assert opened.to_anndata(X=None).X is None


def test_a_real_experiment_is_that_of_the_tree():
    path = os.environ.get("TILEFS_TEST_EXPERIMENT")
    if not path:
        pytest.skip("no experiment of TileDB-SOMA was given")
    zarr = pytest.importorskip("zarr")
    import fsspec

    fsspec.register_implementation("tilefs", "tilefs.fs.TilefsFileSystem", clobber=True)
    store = zarr.storage.FsspecStore.from_url("tilefs://zarr", storage_options={"uri": path}, read_only=True)
    expected, found = anndata.read_zarr(store), tilefs.open(path).to_anndata(layers=True)
    assert (expected.X != found.X).nnz == 0 and expected.obs_names.tolist() == found.obs_names.tolist()
    assert expected.obs.columns.tolist() == found.obs.columns.tolist() and set(expected.obsm) == set(found.obsm)
    for name in expected.obsm:
        np.testing.assert_array_equal(expected.obsm[name], found.obsm[name])


def test_matrices_may_stay_where_they_are():
    path = os.environ.get("TILEFS_TEST_EXPERIMENT")
    if not path:
        pytest.skip("no experiment of TileDB-SOMA was given")
    opened = tilefs.open(path)
    whole, data = opened.to_anndata(layers=True), opened.to_anndata(layers=True, backed=True)
    assert not hasattr(data.X, "data") and data.shape == whole.shape and set(data.layers) == set(whole.layers)
    np.testing.assert_array_equal(data.X.to_memory().toarray(), whole.X.toarray())
    queries = {"obs_query": "n_genes > 1200", "var_query": "n_counts > 100"}
    chosen, expected = opened.to_anndata(**queries, backed=True), opened.to_anndata(**queries)
    assert chosen.is_view and chosen.obs_names.equals(expected.obs_names) and chosen.var_names.equals(expected.var_names)
    # Older ones cannot take rows out of stored matrices with this version of SciPy.
    if tuple(map(int, version("anndata").split(".")[:3])) >= (0, 12, 19):
        np.testing.assert_array_equal(chosen.to_memory().X.toarray(), expected.X.toarray())
        np.testing.assert_array_equal(data.X[5:50].toarray(), whole.X[5:50].toarray())


def numbered(root, kind, ids):
    """Writes an experiment of three cells whose row numbers are these."""
    (root / "ms/RNA/X").mkdir(parents=True)
    names = np.array([f"c{number}" for number in range(len(ids))])
    dim = tiledb.Dim("obs_id", domain=(None, None), tile=None, dtype="ascii") if kind == "by name" else tiledb.Dim("soma_joinid", domain=(-5, 99), tile=10, dtype=np.int64)
    attr = tiledb.Attr("soma_joinid", dtype=np.int64) if kind == "by name" else tiledb.Attr("obs_id", dtype=str, var=True)
    schema = tiledb.ArraySchema(tiledb.Domain(dim), [attr], sparse=True, allows_duplicates=kind == "with duplicates")
    tiledb.Array.create(str(root / "obs"), schema)
    with tiledb.open(str(root / "obs"), "w") as array:
        array[names if kind == "by name" else ids] = ids if kind == "by name" else names.astype(object)
        array.meta["soma_object_type"] = "SOMADataFrame"
    frame(root / "ms/RNA", "var", {"var_id": np.array(["g0", "g1"], dtype=object)})
    matrix(root / "ms/RNA", "X/data", np.arange(6, dtype="f4").reshape(3, 2))
    for folder in ("ms/RNA/X", "ms/RNA", "ms", "."):
        group(root / folder)
    return root


@pytest.mark.parametrize("kind", ["by name", "with duplicates"])
@pytest.mark.parametrize("ids", [[0, 0, 2], [0, 2, 2], [1, 2, 3], [-1, 0, 1], [0, 1, 3], [0, 0, 0]])
@pytest.mark.parametrize("condition", [None, "obs_id == 'c1'"])
def test_cells_that_are_not_numbered_are_refused(tmp_path, kind, ids, condition):
    experiment = tilefs.open(numbered(tmp_path / "experiment", kind, np.array(ids)))
    for read in (lambda: experiment.to_anndata(obs_query=condition), lambda: experiment.batches(2, obs_query=condition)):
        with pytest.raises(tilefs.UnsupportedError, match="counts them from 0 without a gap"):
            read()


@pytest.mark.parametrize("kind", ["by name", "with duplicates"])
@pytest.mark.parametrize("ids", [[0, 1, 2], [2, 0, 1]])
def test_cells_in_another_order_have_their_own_values(tmp_path, kind, ids):
    data = tilefs.open(numbered(tmp_path / "experiment", kind, np.array(ids))).to_anndata()
    assert data.obs_names.tolist() == [f"c{ids.index(row)}" for row in range(3)]
    np.testing.assert_array_equal(data.X.toarray(), np.arange(6).reshape(3, 2))
