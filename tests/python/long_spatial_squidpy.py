"""Moran's I of genes beside squidpy's, which scanpy normalises for.

Its p is that of the tail the statistic lies in, so ours is 1 - p where I is below its mean.
seconds: 300"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import packages  # noqa: E402
from test_spatial_genes import table  # noqa: E402
from test_spatial_page import PROGRAM, analyze, make, run  # noqa: E402

PACKAGES = ["squidpy==1.8.2"]
VENV = pathlib.Path(PROGRAM).parents[1] / "squidpy"
PEER = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np, scanpy, scipy.sparse, squidpy
folder, raw, out = sys.argv[1:]
cells = anndata.AnnData(scipy.sparse.load_npz(folder + "/Y.npz").astype(np.float64))
cells.obsm["spatial"] = np.load(folder + "/X.npy").astype(np.float64)
if raw == "log1p":
    scanpy.pp.normalize_total(cells)
    scanpy.pp.log1p(cells)
squidpy.gr.spatial_neighbors(cells, n_neighs=6, coord_type="generic")
squidpy.gr.spatial_autocorr(cells, mode="moran", n_perms=None)
found = cells.uns["moranI"].loc[cells.var_names]
np.save(out, found[["I", "pval_norm", "pval_norm_fdr_bh"]].to_numpy())
"""


class Squidpy(unittest.TestCase):
    def test_same_statistic_and_p(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            config = make(folder, cells=3000, genes=60)
            rng = np.random.default_rng(3)  # a lattice has neighbours at the same distance
            at = np.load(folder / "toy" / "X.npy")
            np.save(folder / "toy" / "X.npy", (at + rng.normal(0, 1, at.shape)).astype(np.float32))
            analyze(config)
            for how in ("log1p", "raw"):
                run("spatial", "genes", "-c", config, "--normalise", how, "-o", folder / "ours.csv")
                subprocess.run([VENV / "bin/python", "-c", PEER, folder / "out/preprocessed", how,
                                folder / "theirs.npy"], check=True, capture_output=True)
                ours, theirs = table(folder / "ours.csv"), np.load(folder / "theirs.npy")
                np.testing.assert_allclose(ours["moran_i"], theirs[:, 0], rtol=0, atol=1e-7)
                p = np.where(ours["z"] > 0, ours["p"], 1 - ours["p"])
                np.testing.assert_allclose(p, theirs[:, 1], rtol=1e-4, atol=1e-12)
                print(how, "I", np.abs(ours["moran_i"] - theirs[:, 0]).max(), "p",
                      np.abs(p - theirs[:, 1]).max(), f"{(ours['q'] < 0.05).sum()} genes vary")


def setUpModule():
    why = packages.fetch(VENV, PACKAGES)
    if why:
        raise unittest.SkipTest(why)


if __name__ == "__main__":
    unittest.main()
