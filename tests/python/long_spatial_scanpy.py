"""Quality control and highly variable genes beside scanpy's. The packages are fetched from the package index into a folder of the build;
without an index there is nothing to try. FATHOM_PROGRAM names the program.
seconds: 240"""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import packages
from test_spatial_variable import make, write_h5ad

PROGRAM = pathlib.Path(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom").absolute()
VENV = PROGRAM.parents[1] / "scanpy_variable"
PACKAGES = ["scanpy==1.11.5", "scikit-misc==0.5.3", "pandas==2.3.3", "anndata==0.12.19"]
KEEP = 250
PEER = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np, scanpy as sc
folder, keep = sys.argv[1], int(sys.argv[2])
y = anndata.read_h5ad(folder + "/a.h5ad")
y.var["mt"] = y.var_names.str.lower().str.startswith("mt-")
sc.pp.calculate_qc_metrics(y, qc_vars=["mt"], inplace=True, percent_top=None, log1p=False)
y = y[(y.obs["pct_counts_mt"] < 8).to_numpy()].copy()
sc.pp.filter_cells(y, min_counts=120)
sc.pp.filter_cells(y, min_genes=60)
sc.pp.filter_genes(y, min_cells=15)
y = y[:, ~y.var["mt"]].copy()
out = {"cells": list(y.obs_names), "genes": list(y.var_names)}
for flavor, column in (("seurat_v3", "variances_norm"), ("seurat", "dispersions_norm")):
    x = y.copy()
    x.X = x.X.astype(np.float64)
    if flavor == "seurat":
        sc.pp.normalize_total(x, target_sum=1e4)
        sc.pp.log1p(x)
    sc.pp.highly_variable_genes(x, flavor=flavor, n_top_genes=keep)
    np.save(f"{folder}/{flavor}.npy", x.var[column].to_numpy(np.float64))
    out[flavor] = list(x.var_names[x.var["highly_variable"]])
import json
json.dump(out, open(folder + "/theirs.json", "w"))
"""


class Scanpy(unittest.TestCase):
    def test_same_cells_genes_and_scores(self):
        why = packages.fetch(VENV, PACKAGES)
        if why:
            self.skipTest(why)
        for seed, n, d in ((3, 400, 700), (4, 2000, 1500), (5, 300, 4000)):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                write_h5ad(f"{folder}/a.h5ad", *make(seed, n, d), "csr")
                done = subprocess.run([VENV / "bin/python", "-c", PEER, folder, str(KEEP)], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.compare(folder, json.loads(pathlib.Path(folder, "theirs.json").read_text()))

    def compare(self, folder, theirs):
        # scanpy keeps normalised dispersions in f32
        for flavor, column, error in (("seurat_v3", "variance_norm", 1e-12), ("seurat", "dispersion_norm", 1e-6)):
            config = pathlib.Path(folder, "c.json")
            config.write_text(json.dumps({"instrument": "spatial", "name": "x", "dataset": "anndata", "output_dir": f"{folder}/out", "preprocessing": {
                "path": f"{folder}/a.h5ad", "max_mt_percent": 8, "min_counts": 120, "min_genes": 60, "min_cells": 15, "filter_mt": True,
                "highly_variable": KEEP, "highly_variable_flavor": flavor}}))
            done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", config, "--force"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            meta = json.loads(pathlib.Path(folder, "out/preprocessed/metadata.json").read_text())
            self.assertEqual(meta["spot_names"], theirs["cells"])
            self.assertEqual(meta["gene_names"], theirs[flavor])
            with open(f"{folder}/out/preprocessed/gene_selection.csv") as f:
                rows = [r for r in csv.DictReader(f) if r["rank"]]
            self.assertEqual([r["gene"] for r in rows], theirs["genes"])
            ours, other = np.array([float(r[column]) for r in rows]), np.load(f"{folder}/{flavor}.npy")
            np.testing.assert_allclose(ours, other, rtol=error, atol=error)
            print(flavor, len(rows), "genes, largest difference", np.nanmax(np.abs(ours - other)))


if __name__ == "__main__":
    unittest.main()
