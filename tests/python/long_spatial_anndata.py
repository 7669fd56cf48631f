"""fathom.spatial with anndata and scanpy: every block of docs/spatial-tutorial.md, objects in memory, backed objects, views,
what is written and read again. The packages are fetched from the package index into a folder of the build; without an
index there is nothing to try. FATHOM_LIBRARY names the shared library, FATHOM_PROGRAM the program.
seconds: 240"""
import os
import pathlib
import subprocess
import tempfile
import unittest

import packages
from test_docs import ROOT, blocks, read

SO = pathlib.Path(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so").resolve()
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
VENV = SO.parents[1] / "spatial_anndata"
PACKAGES = ["anndata==0.12.6", "scanpy==1.11.5", "pandas==2.3.3"]

# Objects of each kind give the same numbers, and come back from files as they were.
OBJECTS = """
import warnings
import anndata, fathom, numpy as np, pandas as pd, scipy.sparse
small = dict(num_inducing=20, max_iter=8, device="cpu", seed=3)
def fit(adata, **keys):
    return fathom.spatial.fit(adata, "mggp_svgp", 3, **{"groups": "group", **small, **keys})
first = anndata.read_h5ad("tissue.h5ad")
assert isinstance(first.obs["group"].dtype, pd.CategoricalDtype)
r = fit(first)
np.testing.assert_array_equal(r.factors, np.load("cli/mggp_svgp/factors.npy"))
assert open(r.model_path, "rb").read() == open("cli/mggp_svgp/model.safetensors", "rb").read()
for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.csc_array, lambda x: x.toarray()):
    other = anndata.read_h5ad("tissue.h5ad")
    other.X = form(other.X)
    np.testing.assert_array_equal(fit(other).factors, r.factors)
# labels as texts, positions as a data frame, a view
other = anndata.read_h5ad("tissue.h5ad")
other.obs["group"] = other.obs["group"].astype(str)
other.obsm["spatial"] = pd.DataFrame(other.obsm["spatial"], index=other.obs_names)
np.testing.assert_array_equal(fit(other).factors, r.factors)
part = anndata.read_h5ad("tissue.h5ad")[:150]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that a view became an object
    assert fit(part, min_group_size=1).factors.shape == (150, 3)
assert part.obsm["fathom_factors"].shape == (150, 3)
# a backed object
backed = anndata.read_h5ad("tissue.h5ad", backed="r")
np.testing.assert_array_equal(fit(backed).factors, r.factors)
assert backed.isbacked and backed.obsm["fathom_factors"].shape == (196, 3)
for mistake, text in ((lambda: fit(backed[:100]), "a view"),
                      (lambda: fit(first, layer="counts"), "found nothing"),
                      (lambda: fathom.spatial.fit(first, spatial_key="x"), "expected 'x', found 'spatial', 'fathom_factors'")):
    try:
        mistake()
        raise AssertionError(text)
    except fathom.Error as e:
        assert text in e.text, e.text
# files
first.write_h5ad("fitted.h5ad")
again = anndata.read_h5ad("fitted.h5ad")
for name in ("fathom_factors", "fathom_scales"):
    np.testing.assert_array_equal(again.obsm[name], first.obsm[name])
np.testing.assert_array_equal(again.varm["fathom_loadings"], r.loadings)
np.testing.assert_array_equal(again.uns["fathom"]["elbo"], r.elbo)
assert again.uns["fathom"]["settings"]["n_components"] == 3 and again.obs["fathom_kept"].all()
assert again.uns["fathom"]["metrics"]["moran_i"]["values"].shape == (3,)
np.testing.assert_array_equal(fit(again).factors, r.factors)
"""


class Peers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why = packages.fetch(VENV, PACKAGES)
        if why:
            raise unittest.SkipTest(why)
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.dir = cls.kept.name
        cls.env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "bindings/python"), FATHOM_LIBRARY=str(SO), MPLBACKEND="agg",
                       PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"], HOME=cls.dir)

    def call(self, *command):
        done = subprocess.run(command, cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_tutorial(self):
        code, many = "", 0
        for _, language, block in blocks(read("docs/spatial-tutorial.md")):
            if language == "sh":
                code += f"import subprocess\nsubprocess.run({block!r}, shell=True, check=True)\n"
            elif language == "python":
                many += 1
                code += block
        self.assertGreater(many, 12)
        self.call(str(VENV / "bin/python"), "-W", "error::UserWarning:__main__", "-c", code)
        for name in ("figures/spatial_factors.png", "results/svgp/figures/factors_spatial.png", "fitted.h5ad"):
            self.assertTrue(os.path.exists(os.path.join(self.dir, name)), name)

    def test_objects(self):
        self.call(PROGRAM, "spatial", "toy", "-o", "toy", "--h5ad", "tissue.h5ad", "--side", "14", "--genes", "12",
                  "--factors", "3")
        pathlib.Path(self.dir, "cli.yaml").write_text(
            "instrument: spatial\nname: t\nseed: 3\ndataset: anndata\noutput_dir: cli\n"
            "preprocessing: {path: tissue.h5ad, coord_key: spatial, group_column: group}\n"
            "model: {spatial: true, groups: true, n_components: 3, init: nmf, loadings_mode: multiplicative, lengthscale: 8, "
            "num_inducing: 20}\ntraining: {max_iter: 8, device: cpu}\n")
        for stage in ("preprocess", "train", "analyze"):
            self.call(PROGRAM, "spatial", stage, "-c", "cli.yaml")
        self.call(str(VENV / "bin/python"), "-c", OBJECTS)


if __name__ == "__main__":
    unittest.main()
