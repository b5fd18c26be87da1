"""An experiment of TileDB-SOMA as annotated data: anndata.read_zarr of a mount compared with tiledbsoma.io.to_anndata, from
a disk, from a bucket (the same S3 server for both, without latency) and with a full disk cache."""

import os
import tempfile

from .cloud import server, settings
from .common import alternate, made, mounted, ratio, seconds, table, timed, warm

CELLS, GENES, BEFORE, SHARE = 20_000, 3_000, 5_000, 0.05


def experiment():
    """20,000 cells x 3,000 genes with one layer, and the original 5,000 genes in raw; one value in 20 is not zero."""

    def make(path):
        import anndata
        import numpy as np
        import pandas as pd
        import scipy.sparse as sp
        import tiledbsoma.io

        random = np.random.default_rng(1)
        matrix = lambda genes: sp.random(CELLS, genes, density=SHARE, format="csr", dtype="f4", random_state=random)
        names = lambda letter, count: [f"{letter}{number}" for number in range(count)]
        obs = pd.DataFrame({"count": random.integers(0, 1000, CELLS), "kind": pd.Categorical(random.choice(list("abcdef"), CELLS))}, index=names("c", CELLS))
        var = pd.DataFrame({"gene": names("g", GENES)}, index=names("G", GENES))
        data = anndata.AnnData(X=matrix(GENES), obs=obs, var=var, layers={"counts": matrix(GENES)})
        data.raw = anndata.AnnData(X=matrix(BEFORE), obs=obs, var=pd.DataFrame(index=names("G", BEFORE)))
        data.obsm["X_pca"] = random.normal(size=(CELLS, 50)).astype("f4")
        tiledbsoma.io.from_anndata(path, data, measurement_name="RNA")

    return made("experiment", make)


def read_zarr(mount):
    import anndata

    data = anndata.read_zarr(f"{mount.path}/zarr")
    assert data.shape == (CELLS, GENES) and data.layers["counts"].nnz and data.raw.shape == (CELLS, BEFORE)
    return data


def to_anndata(uri, config=None):
    """Reads what to_anndata returns: without raw, of which it returns only the matrix."""
    import tiledbsoma
    import tiledbsoma.io

    context = tiledbsoma.SOMATileDBContext(tiledb_config=config or {})
    with tiledbsoma.Experiment.open(uri, context=context) as opened:
        data = tiledbsoma.io.to_anndata(opened, "RNA", extra_X_layer_names=["counts"])
        opened.ms["raw"].X["data"].read().coos((CELLS, BEFORE)).concat().to_scipy().tocsr()
    return data


def same(ours, theirs):
    assert (ours.X != theirs.X).nnz == 0 and (ours.layers["counts"] != theirs.layers["counts"]).nnz == 0
    assert list(ours.obs_names) == list(theirs.obs_names) and (ours.obsm["X_pca"] == theirs.obsm["X_pca"]).all()


def run():
    path = experiment()
    warm(path)

    def ours(array, *options):
        with mounted(array, *options) as mount:
            return timed(lambda: read_zarr(mount))

    with mounted(path) as mount:
        same(read_zarr(mount), to_anndata(path))
    rows = []

    def compare(what, one, other):
        a, b = alternate(one, other)
        rows.append([what, seconds(a), seconds(b), ratio(a, b)])

    compare("from a disk", lambda: ours(path), lambda: timed(lambda: to_anndata(path)))
    with tempfile.TemporaryDirectory() as folder, server(folder) as port:
        os.mkdir(f"{folder}/bench")
        os.symlink(path, f"{folder}/bench/experiment")
        with open(f"{folder}/config", "w") as file:
            file.writelines(f"{name} {value}\n" for name, value in settings(port).items())
        uri, options = "s3://bench/experiment", ["--config", f"{folder}/config"]
        theirs = lambda: timed(lambda: to_anndata(uri, settings(port)))
        compare("from a bucket", lambda: ours(uri, *options), theirs)
        cached = [*options, "--disk-cache", f"{folder}/cache"]
        ours(uri, *cached)
        compare("from a bucket, all of it in the disk cache", lambda: ours(uri, *cached), theirs)
    title = f"single_cell: {CELLS} x {GENES}, X, one layer, raw, obsm; new mounts"
    table(title, ["where it is", "read_zarr: median (best)", "to_anndata: median (best)", "faster by"], rows)
