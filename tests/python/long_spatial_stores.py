"""Counts and cell types that anndata writes, packed in every way and as Zarr 2 and 3, read by `fathom spatial preprocess`. The packages are
fetched from the package index into a folder of the build; without an index there is nothing to try. FATHOM_PROGRAM names the program.
seconds: 180"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import packages

PROGRAM = pathlib.Path(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom").absolute()
VENV = PROGRAM.parents[1] / "anndata_writer"
PACKAGES = ["anndata==0.12.19", "h5py==3.16.0", "hdf5plugin==7.1.0"]
CELLS, GENES = 301, 40

# Into the folder argv[1]: a file or store for each name, and what it holds.
WRITE = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, hdf5plugin, numpy as np, pandas as pd, scipy.sparse
rng = np.random.default_rng(3)
n, d = %d, %d
y = rng.poisson(0.7, (n, d))
xy = rng.uniform(0, 1000, (n, 2))
obs = pd.DataFrame({"type": pd.Categorical(rng.choice(["b", "a", "c"], n))}, index=[f"cell{i}" for i in range(n)])
var = pd.DataFrame(index=[f"gene{i}" for i in range(d)])
np.savez(sys.argv[1] + "/truth.npz", y=y, xy=xy, codes=obs["type"].cat.codes)
forms = {"csr": scipy.sparse.csr_matrix(y.astype("f4")), "csc": scipy.sparse.csc_matrix(y.astype("i4")), "dense": y.astype("f8")}
for form, x in forms.items():
    a = anndata.AnnData(x, obs=obs, var=var, obsm={"spatial": xy})
    for name, packing in {"gzip": "gzip", "lzf": "lzf", "zstd": hdf5plugin.FILTERS["zstd"], "lz4": hdf5plugin.FILTERS["lz4"]}.items():
        a.write_h5ad(f"{sys.argv[1]}/{form}_{name}.h5ad", compression=packing)
    for version in (2, 3):
        anndata.settings.zarr_write_format = version
        a.write_zarr(f"{sys.argv[1]}/{form}_v{version}.zarr", chunks=(64, 16))
""" % (CELLS, GENES)


class Written(unittest.TestCase):
    def test_every_form_and_packing(self):
        why = packages.fetch(VENV, PACKAGES)
        if why:
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([VENV / "bin/python", "-c", WRITE, folder], capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            truth = np.load(f"{folder}/truth.npz")
            sources = sorted(p for p in pathlib.Path(folder).iterdir() if p.suffix in (".h5ad", ".zarr"))
            self.assertEqual(len(sources), 18)
            for source in sources:
                with self.subTest(source=source.name):
                    self.check(folder, source, truth)

    def check(self, folder, source, truth):
        out, config = f"{folder}/out", f"{folder}/config.json"
        pathlib.Path(config).write_text(json.dumps({"instrument": "spatial", "name": "x", "dataset": "anndata", "output_dir": out, "preprocessing": {
            "path": str(source), "group_column": "type", "min_group_size": 1, "rescale": False}}))
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", config, "--force", "--memory", "64M"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        y = np.load(f"{out}/preprocessed/Y.npz")
        dense = np.zeros((CELLS, GENES))
        for i in range(CELLS):
            span = slice(y["indptr"][i], y["indptr"][i + 1])
            dense[i, y["indices"][span]] = y["data"][span]
        np.testing.assert_array_equal(dense, truth["y"])
        np.testing.assert_array_equal(np.load(f"{out}/preprocessed/X.npy"), truth["xy"].astype("f4"))
        np.testing.assert_array_equal(np.load(f"{out}/preprocessed/C.npy"), truth["codes"])
        meta = json.loads(pathlib.Path(f"{out}/preprocessed/metadata.json").read_text())
        self.assertEqual(meta["group_names"], ["a", "b", "c"])
        self.assertEqual(meta["spot_names"][300], "cell300")
        self.assertEqual(meta["gene_names"][39], "gene39")


if __name__ == "__main__":
    unittest.main()
