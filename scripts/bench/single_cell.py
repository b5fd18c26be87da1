"""Reads a TileDB-SOMA experiment as AnnData: compares anndata.read_zarr on a mount with tiledbsoma.io.to_anndata, from
a disk, from a bucket (the same S3 server for both, without latency) and with a full disk cache. Compares the
experiment's .h5ad file with to_anndata and with the raw columns. Compares experiments of several shapes, without a saved
index. Measures how long it takes to open the .h5ad file of a large experiment for the first time.

TILEFS_BENCH_NONZEROS is the number of values in the large experiment (1e8)."""

import os
import resource
import statistics
import tempfile

from . import experiments
from .cloud import server, settings
from .common import alternate, cat, made, mounted, ratio, seconds, show, table, timed, warm

NONZEROS = int(float(os.environ.get("TILEFS_BENCH_NONZEROS", "1e8")))
CELLS, GENES, BEFORE, SHARE = 20_000, 3_000, 5_000, 0.05


def experiment():
    """Returns the path of an experiment with 20,000 cells x 3,000 genes, one layer, and the original 5,000 genes in
    raw. One value in 20 is not zero."""

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
    """Reads with to_anndata, which returns no raw, so this reads the matrix of raw in addition."""
    import tiledbsoma
    import tiledbsoma.io

    context = tiledbsoma.SOMATileDBContext(tiledb_config=config or {})
    with tiledbsoma.Experiment.open(uri, context=context) as opened:
        data = tiledbsoma.io.to_anndata(opened, "RNA", extra_X_layer_names=["counts"])
        opened.ms["raw"].X["data"].read().coos((CELLS, BEFORE)).concat().to_scipy().tocsr()
    return data


def same(ours, theirs, layers=("counts",)):
    assert (ours.X != theirs.X).nnz == 0 and all((ours.layers[name] != theirs.layers[name]).nnz == 0 for name in layers)
    assert list(ours.obs_names) == list(theirs.obs_names) and list(ours.var_names) == list(theirs.var_names)
    assert all((ours.obs[name].astype(str) == theirs.obs[name].astype(str)).all() for name in ("count", "kind"))
    assert (ours.obsm["X_pca"] == theirs.obsm["X_pca"]).all()


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
    h5ad(path)
    shapes()
    first_open(large())


def shapes():
    """Compares what a reader gets from a fresh mount without an index of an earlier one with to_anndata, which reads the
    same matrices: wall time, and processor time of the reader with its mount."""
    rows, ratios = [], []
    for shape in experiments.SHAPES:
        path = experiments.experiment(shape)
        warm(path)
        sides = Sides(shape, path)
        sides.check()
        times = alternate(sides.read_h5ad, sides.read_zarr, sides.to_anndata)
        spent = [statistics.median(sides.spent[name]) for name in ("read_h5ad", "read_zarr", "to_anndata")]
        rows.append([shape, *map(seconds, times), ratio(times[0], times[2]), ratio(times[1], times[2]), " ".join(map(show, spent)), f"{sides.memory:.0f} MiB"])
        ratios += [statistics.median(times[2]) / statistics.median(times[side]) for side in (0, 1)]
    rows.append(["geometric mean", "", "", "", f"{statistics.geometric_mean(ratios[::2]):.2f}x", f"{statistics.geometric_mean(ratios[1::2]):.2f}x", "", ""])
    header = ["shape", "read_h5ad", "read_zarr", "to_anndata", ".h5ad faster by", "zarr faster by", "processor time of these", "peak memory of a mount"]
    table("single_cell: fresh mounts with --index-dir none", header, rows)


class Sides:
    """The ways to read an experiment. Each returns its seconds, and notes its processor time."""

    def __init__(self, shape, path):
        self.shape, self.path = shape, path
        self.layers = experiments.SHAPES[shape][3]
        self.spent, self.memory = {}, 0

    def read_h5ad(self):
        import anndata

        return self.through_mount("read_h5ad", lambda mount: anndata.read_h5ad(f"{mount.path}/h5ad/RNA.h5ad"))

    def read_zarr(self):
        import anndata

        return self.through_mount("read_zarr", lambda mount: anndata.read_zarr(f"{mount.path}/zarr"))

    def to_anndata(self):
        import tiledbsoma
        import tiledbsoma.io

        def read():
            with tiledbsoma.Experiment.open(self.path) as opened:
                self.data = tiledbsoma.io.to_anndata(opened, "RNA", extra_X_layer_names=self.layers)
                if "raw" in self.shape:
                    # to_anndata returns no raw.
                    shape = (self.data.n_obs, experiments.RAW_GENES)
                    self.raw = opened.ms["raw"].X["data"].read().coos(shape).concat().to_scipy().tocsr()

        return self.noted("to_anndata", read)

    def through_mount(self, name, read):
        with mounted(self.path, "--index-dir", "none") as mount:

            def kept():
                self.data = read(mount)

            took = self.noted(name, kept, mount)
            self.memory = max(self.memory, mount.memory())
        return took

    def noted(self, name, action, mount=None):
        self.data = self.raw = None
        own = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) + (mount.cpu_seconds() if mount else 0)
        before = own()
        took = timed(action)
        self.spent.setdefault(name, []).append(own() - before)
        return took

    def check(self):
        """Compares the results of all ways with each other. They are not measured."""
        self.to_anndata()
        theirs, raw = self.data, self.raw
        for read in self.read_h5ad, self.read_zarr:
            read()
            same(self.data, theirs, self.layers)
            assert raw is None or (self.data.raw.X != raw).nnz == 0
        self.spent.clear()


def h5ad(path):
    """Reads the .h5ad file, which holds X, a layer and raw, through fresh mounts."""
    import anndata

    def read():
        with mounted(path) as mount:
            return timed(lambda: anndata.read_h5ad(f"{mount.path}/h5ad/RNA.h5ad"))

    rows = []
    ours, theirs = alternate(read, lambda: timed(lambda: to_anndata(path)))
    rows.append(["read_h5ad, beside to_anndata", seconds(ours), seconds(theirs), ratio(ours, theirs)])
    matrices = ["RNA/X/data", "RNA/X/counts", "raw/X/data"]
    columns = [f"ms/{matrix}/by-row/{column}" for matrix in matrices for column in ("soma_data.f32", "dims/soma_dim_1.i64")]
    sizes = {}

    def per_byte(*files):
        """Returns a function that reads the files and returns the seconds per GB."""

        def read():
            with mounted(path) as mount:
                paths = [f"{mount.path}/{file}" for file in files]
                took = timed(lambda: [cat(one) for one in paths])
                sizes[files] = sum(os.path.getsize(one) for one in paths)
            return took / sizes[files] * 1e9

        return read

    ours, theirs = alternate(per_byte("h5ad/RNA.h5ad"), per_byte(*columns))
    rows.append(["cat of a GB, beside the columns of its matrices", seconds(ours), seconds(theirs), ratio(ours, theirs)])
    table("single_cell: .h5ad", ["what", ".h5ad: median (best)", "other: median (best)", "faster by"], rows)


def large():
    """Returns the path of an experiment with one matrix of NONZEROS values, which is written in blocks of rows."""

    def make(path):
        import numpy as np
        import pandas as pd
        import pyarrow as pa
        import tiledbsoma

        genes, per_cell, block = 30_000, 1_000, 10_000
        cells = NONZEROS // per_cell
        random = np.random.default_rng(2)
        with tiledbsoma.Experiment.create(path) as experiment:
            frame = lambda count, letter: pa.Table.from_pandas(
                pd.DataFrame({"soma_joinid": np.arange(count), "name": [f"{letter}{number}" for number in range(count)]}), preserve_index=False
            )
            obs, var = frame(cells, "c"), frame(genes, "G")
            with experiment.add_new_dataframe("obs", schema=obs.schema, domain=[[0, cells - 1]]) as one:
                one.write(obs)
            measurement = experiment.add_new_collection("ms").add_new_collection("RNA", tiledbsoma.Measurement)
            with measurement.add_new_dataframe("var", schema=var.schema, domain=[[0, genes - 1]]) as one:
                one.write(var)
            layers = measurement.add_new_collection("X")
            layers.add_new_sparse_ndarray("data", type=pa.float32(), shape=(cells, genes)).close()
        step = genes // per_cell
        for start in range(0, cells, block):
            rows = np.repeat(np.arange(start, start + block), per_cell)
            columns = (np.arange(per_cell) * step + random.integers(0, step, (block, per_cell))).reshape(-1)
            values = random.integers(1, 50, len(rows)).astype("f4")
            with tiledbsoma.SparseNDArray.open(f"{path}/ms/RNA/X/data", "w") as one:
                one.write(pa.table({"soma_dim_0": rows, "soma_dim_1": columns, "soma_data": values}))

    return made(f"experiment-{NONZEROS}", make)


def first_open(path):
    """Opens the .h5ad file of a large experiment without reading its values, and then reads 1,000 rows: first through a
    mount with an empty index folder, then through one that finds the index that the first mount saved."""
    import anndata

    rows = []
    with tempfile.TemporaryDirectory() as index:
        for what in "first mount", "second mount":
            with mounted(path, "--index-dir", index) as mount:
                opened = []
                opening = timed(lambda: opened.append(anndata.read_h5ad(f"{mount.path}/h5ad/RNA.h5ad", backed="r")))
                [data] = opened
                some = data.n_obs // 2
                reading = timed(lambda: data[some : some + 1000].X.sum())
                rows.append([what, f"{opening:.2f} s", f"{reading:.2f} s", f"{mount.memory():.0f} MiB"])
                data.file.close()
    table(f"single_cell: .h5ad of {NONZEROS:,} values, backed", ["what", "open", "1,000 rows", "peak memory"], rows)
