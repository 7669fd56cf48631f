"""Write v2.zarr and v3.zarr, the values of make.py as anndata keeps them in Zarr, and store.zarr, a SpatialData store with two tables.

Needs anndata and zarr, see README.md.
"""
import json
import pathlib
import shutil

import anndata
import numpy as np
import pandas as pd
import scipy.sparse

HERE = pathlib.Path(__file__).resolve().parent
N, D = 12, 6  # the values of make.py
I, G = np.meshgrid(np.arange(N), np.arange(D), indexing="ij")
Y = (I * 7 + G * 3) % 5
Y = np.where(Y > 1, Y, 0)
XY = np.stack([10.0 * np.arange(N), 3.0 * (np.arange(N) % 4)], 1)
CODES = np.where(np.arange(N) == 5, -1, np.arange(N) % 3).astype("i1")
NAMES = ["b", "a", "c", "d"]


def tissue(matrix, regions=None):
    obs = pd.DataFrame({"type": pd.Categorical.from_codes(CODES, NAMES), "maybe": pd.array([None if i == 2 else i for i in range(N)], "Int64"),
                        "region": pd.Categorical(["left" if i < 6 else "right" for i in range(N)]), "cell_id": np.arange(N)},
                       index=[f"cell{i}" for i in range(N)])
    a = anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=[f"g{i}" for i in range(D)]), obsm={"spatial": XY})
    if regions:
        a.uns["spatialdata_attrs"] = {"region": regions, "region_key": "region", "instance_key": "cell_id"}
    return a


def group(path, attributes):
    path.mkdir(parents=True, exist_ok=True)
    (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": attributes}))


if __name__ == "__main__":
    for name, version, matrix in (("v2.zarr", 2, scipy.sparse.csr_matrix(Y.astype("f4"))), ("v3.zarr", 3, scipy.sparse.csc_matrix(Y.astype("i4")))):
        shutil.rmtree(HERE / name, ignore_errors=True)
        anndata.settings.zarr_write_format = version
        tissue(matrix).write_zarr(HERE / name, chunks=(5, 4))
    store = HERE / "store.zarr"
    shutil.rmtree(store, ignore_errors=True)
    group(store, {"spatialdata_attrs": {"version": "0.2"}})
    group(store / "tables", {"tables": ["counts", "other"]})
    tissue(Y.astype("f4"), ["left", "right"]).write_zarr(store / "tables/counts")
    tissue(Y.astype("f4"), ["left"]).write_zarr(store / "tables/other")
