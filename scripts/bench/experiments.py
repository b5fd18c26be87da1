"""Makes TileDB-SOMA experiments of the shapes that users have: with TileDB-SOMA's own writers and their defaults."""

from .common import made

# The number of cells, of genes, the share of values that are not zero, and further matrices.
SHAPES = {
    "plain": (20_000, 3_000, 0.05, ["counts"]),
    "100 million values": (100_000, 20_000, 0.05, []),
    "60,000 genes": (10_000, 60_000, 0.02, ["counts"]),
    "appended in ten parts": (20_000, 3_000, 0.05, ["counts"]),
    "raw and two layers": (20_000, 3_000, 0.05, ["counts", "scaled"]),
}
# Read first by each process, so that it has loaded its libraries.
SMALL = "small"
RAW_GENES = 5_000
PARTS = 10


def experiment(shape):
    """Returns the path of the experiment of a shape, with X, layers, obs, var and obsm."""
    import numpy as np

    def make(path):
        import tiledbsoma.io

        random = np.random.default_rng(1)
        data = annotated(random, shape)
        if "parts" not in shape:
            tiledbsoma.io.from_anndata(path, data, measurement_name="RNA")
            return
        size = data.n_obs // PARTS
        parts = [data[first : first + size].copy() for first in range(0, data.n_obs, size)]
        tiledbsoma.io.from_anndata(path, parts[0], measurement_name="RNA")
        fields = {"measurement_name": "RNA", "obs_field_name": "obs_id", "var_field_name": "var_id"}
        mapping = tiledbsoma.io.register_anndatas(path, parts[1:], append_obsm_varm=True, **fields)
        mapping.prepare_experiment(path)
        for part in parts[1:]:
            tiledbsoma.io.from_anndata(path, part, measurement_name="RNA", registration_mapping=mapping)

    return made(f"experiment-{shape.replace(' ', '-').replace(',', '')}", make)


def annotated(random, shape):
    """Returns the annotated data of a shape."""
    import anndata
    import numpy as np
    import pandas as pd

    cells, genes, share, layers = SHAPES.get(shape, (200, 100, 0.05, ["counts"]))
    names = lambda letter, count: pd.Index([f"{letter}{number}" for number in range(count)])
    obs = pd.DataFrame(
        {"count": random.integers(0, 1000, cells), "kind": pd.Categorical(random.choice(list("abcdef"), cells))},
        index=names("c", cells),
    )
    var = pd.DataFrame({"gene": names("g", genes)}, index=names("G", genes))
    data = anndata.AnnData(X=matrix(random, cells, genes, share), obs=obs, var=var)
    for layer in layers:
        data.layers[layer] = matrix(random, cells, genes, share)
    if "raw" in shape:
        before = pd.DataFrame(index=names("G", RAW_GENES))
        data.raw = anndata.AnnData(X=matrix(random, cells, RAW_GENES, share), obs=obs, var=before)
    data.obsm["X_pca"] = random.normal(size=(cells, 50)).astype("f4")
    return data


def matrix(random, cells, genes, share, block=1_000):
    """Returns a matrix by compressed rows in which `share` of the values are not zero, made block by block."""
    import numpy as np
    import scipy.sparse as sp

    blocks = []
    for first in range(0, cells, block):
        rows, columns = np.nonzero(random.random((min(block, cells - first), genes), dtype="f4") < share)
        starts = np.searchsorted(rows, np.arange(min(block, cells - first) + 1))
        blocks.append((random.random(len(rows), dtype="f4"), columns.astype("i4"), starts))
    before = np.cumsum([0] + [len(values) for values, _, _ in blocks])
    starts = [starts[:-1] + first for (_, _, starts), first in zip(blocks, before)]
    values, columns = (np.concatenate([one[number] for one in blocks]) for number in (0, 1))
    return sp.csr_matrix((values, columns, np.concatenate([*starts, before[-1:]])), shape=(cells, genes))
