"""Reads TileDB-SOMA experiments of several shapes into memory as AnnData, with the Python package and with
tiledbsoma.io.to_anndata, each in a new process: as a whole, and the 5 % of the cells that a condition selects. A process
reads a small experiment before, so that its libraries are loaded. Compares the results, the seconds, and the most memory
that each needs, as a multiple of the result."""

import json
import statistics
import subprocess
import sys
import textwrap

from .common import alternate, ratio, seconds, table, warm
from .experiments import SHAPES, SMALL, experiment

#: 5 % of the cells: `count` is random, below 1000.
CONDITION = "count < 50"

COMMON = """
    import hashlib, json, resource, sys, time
    import anndata, numpy, pandas, pyarrow, scipy.sparse
    small, uri, layers, condition = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4] or None

    def parts(data):
        for matrix in (data.X, *(data.layers[name] for name in layers)):
            # Rows of the one may be in another order than those of the other.
            matrix.sort_indices()
            yield from (matrix.data, matrix.indices.astype("i4"), matrix.indptr.astype("i8"))
        yield data.obsm["X_pca"]

    def bytes_of(data):
        matrices = [data.X, *(data.layers[name] for name in layers), *([data.raw.X] if data.raw is not None else [])]
        stored = sum(part.nbytes for one in matrices for part in (one.data, one.indices, one.indptr))
        return stored + data.obsm["X_pca"].nbytes + sum(int(one.memory_usage(deep=True).sum()) for one in (data.obs, data.var))

    def peak():
        # The most memory so far, in bytes: of this process alone, and not of the one that forked it.
        return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024

    read(small, ["counts"], condition)
    before, start = peak(), time.perf_counter()
    data = read(uri, layers, condition)
    elapsed = time.perf_counter() - start
    more = peak() - before
    size = bytes_of(data)
    digest = hashlib.sha256()
    for part in parts(data):
        digest.update(numpy.ascontiguousarray(part))
    digest.update(repr((list(data.obs_names), list(data.var_names), data.obs["kind"].astype(str).tolist())).encode())
    print(json.dumps([elapsed, more, size, digest.hexdigest()]))
"""

OURS = """
    def read(uri, layers, condition):
        return tilefs.open(uri).to_anndata("RNA", layers=layers, obs_query=condition)
    import tilefs
"""

# This returns no raw, so its matrix is read in addition.
THEIRS = """
    def read(uri, layers, condition):
        with tiledbsoma.Experiment.open(uri) as opened:
            if condition is None:
                data, cells = tiledbsoma.io.to_anndata(opened, "RNA", extra_X_layer_names=layers), slice(None)
            else:
                with opened.axis_query("RNA", obs_query=tiledbsoma.AxisQuery(value_filter=condition)) as query:
                    data = query.to_anndata("data", X_layers=layers, obsm_layers=["X_pca"])
                    cells = query.obs_joinids().to_numpy()
            if "raw" in opened.ms:
                raw = opened.ms["raw"].X["data"]
                found = raw.read((cells,)).coos().concat().to_scipy().tocsr()
                rows = found[: data.n_obs] if condition is None else found[cells]
                data.raw = anndata.AnnData(rows, obs=data.obs)
        return data
    import tiledbsoma, tiledbsoma.io
"""


def measured(script, *arguments):
    """Returns what a new process measures: seconds, bytes that it needs, bytes of the result, and a digest."""
    whole = textwrap.dedent(script) + textwrap.dedent(COMMON)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", whole, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def run():
    rows = []
    for shape, (*_, layers) in SHAPES.items():
        path = experiment(shape)
        warm(path)
        for condition in ("", CONDITION):
            found = {OURS: [], THEIRS: []}

            def side(script):
                found[script].append(measured(script, experiment(SMALL), path, json.dumps(layers), condition))
                return found[script][-1][0]

            ours, theirs = alternate(lambda: side(OURS), lambda: side(THEIRS))
            digests = {one[3] for runs in found.values() for one in runs}
            assert len(digests) == 1, f"{shape}: the results differ"
            memory = [f"{statistics.median(more / size for _, more, size, _ in found[script]):.2f}" for script in (OURS, THEIRS)]
            rows.append([shape, condition or "all", seconds(ours), seconds(theirs), ratio(ours, theirs), *memory])
    header = ["experiment", "cells", "tilefs", "tiledbsoma", "", "memory / result", "of tiledbsoma"]
    table("An experiment as AnnData in process: median (best)", header, rows)
