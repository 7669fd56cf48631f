"""Every output of the spatial instrument, opened from Python with NumPy, and with h5py where it is there.

The function `outputs` is what docs/spatial.md shows.
seconds: 34"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
SAMPLE = os.path.abspath("tests/golden/spatial/sample_v0_8.h5ad")
CONFIG = """\
instrument: spatial
name: outputs
seed: 7
dataset: osmfish
output_dir: {dir}
preprocessing: {{path: {source}, min_group_size: 5}}
model:
  spatial: true
  groups: true
  prior: SVGP
  n_components: 3
  num_inducing: 16
  lengthscale: 8.0
  loadings_mode: multiplicative
  inducing_allocation: derived
training: {{max_iter: 6, batch_size: 100, learning_rate: 0.01, device: cpu}}
figures: {{dpi: 40}}
"""


def tensors(path):
    """A .safetensors file as {name: array}, and its settings as {name: text}."""
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?"}
    data = pathlib.Path(path).read_bytes()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    settings = header.pop("__metadata__", {})
    arrays = {name: np.frombuffer(data[8 + n:][slice(*t["data_offsets"])], kinds[t["dtype"]])
              .reshape(t["shape"]) for name, t in header.items()}
    return arrays, settings


def outputs(folder, model):
    """Everything in an output directory, by name; what a model does not have is left out."""
    folder = pathlib.Path(folder)
    data, results = folder / "preprocessed", folder / model
    out = {"positions": np.load(data / "X.npy"),      # f32 [cell, 2]
           "groups": np.load(data / "C.npy"),         # i64 [cell]
           "rows": np.load(data / "rows.npy"),        # i64 [cell]: of the source
           "names": json.loads((data / "metadata.json").read_text())}
    with np.load(data / "Y.npz") as y:                # sparse rows; or scipy.sparse.load_npz
        out["counts"] = (y["data"], y["indices"], y["indptr"], tuple(y["shape"]))
    for name in ("factors", "scales", "loadings", "Z", "groupsZ", "Lu", "elbo_history",
                 "pca_gene_order", "pca_gene_order_by_celltype", "video_frames"):
        if (results / f"{name}.npy").exists():
            out[name] = np.load(results / f"{name}.npy", mmap_mode="r")
    for g in range(out["names"]["n_groups"]):
        for name, path in ((f"loadings_group_{g}", results / f"loadings_group_{g}.npy"),
                           (f"as_group_{g}", results / "groupwise_factors" / f"group_{g}.npy")):
            if path.exists():
                out[name] = np.load(path, mmap_mode="r")
    for name in ("training", "metrics", "gene_enrichment"):
        if (results / f"{name}.json").exists():
            out[name] = json.loads((results / f"{name}.json").read_text())
    if (results / "moran_i.csv").exists():
        out["moran"] = np.loadtxt(results / "moran_i.csv", delimiter=",", skiprows=1, ndmin=2)[:, 1]
    if (results / "model.safetensors").exists():
        out["model"], out["settings"] = tensors(results / "model.safetensors")
    return out


def fathom(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"fathom {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def stages():
    return fathom("help", "spatial")


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="outputs-"))
        self.out = self.dir / "out"
        self.config = self.dir / "config.yaml"
        self.config.write_text(CONFIG.format(dir=self.out, source=SAMPLE))

    def tearDown(self):
        shutil.rmtree(self.dir)


class Case(Base):
    def write_results(self, cells, genes):
        """Results as another program might write them: files alone connect the stages."""
        folder = self.out / "mggp_svgp"
        folder.mkdir()
        rng = np.random.default_rng(1)
        self.factors = rng.gamma(1, 1, (cells, 3)).astype(np.float32)
        self.loadings = rng.gamma(1, 1, (genes, 3)).astype(np.float32)
        np.save(folder / "factors.npy", self.factors)
        np.save(folder / "scales.npy", self.factors / 8)
        np.save(folder / "loadings.npy", self.loadings)
        (folder / "moran_i.csv").write_text("factor_idx,moran_i\n0,0.75\n1,0.5\n2,-0.125\n")
        (folder / "metrics.json").write_text('{"reconstruction_error": 0.5, "n_factors": 3}')

    def check_file(self, path, kept, names):
        with h5py.File(path) as f, h5py.File(SAMPLE) as source:
            factors = f["obsm/fathom_mggp_svgp_factors"][:]
            self.assertEqual(factors.dtype, np.float32)
            np.testing.assert_array_equal(factors[kept], self.factors)
            self.assertEqual(np.isnan(factors).all(axis=1).sum(), 300 - len(kept))
            marks = f["obs/fathom_kept"][:]
            self.assertEqual(marks.dtype, bool)
            np.testing.assert_array_equal(np.flatnonzero(marks), np.sort(kept))
            self.assertIn("fathom_kept", list(f["obs"].attrs["column-order"]))
            var = [name.decode() for name in f["var/_index"][:]]
            loadings = f["varm/fathom_mggp_svgp_loadings"][:]
            np.testing.assert_array_equal(loadings[[var.index(g) for g in names]], self.loadings)
            np.testing.assert_array_equal(f["uns/fathom/mggp_svgp/moran"][:], [0.75, 0.5, -0.125])
            self.assertEqual(f["uns/fathom/mggp_svgp/metrics/reconstruction_error"][()], 0.5)
            self.check_encodings(f)
            source.visititems(lambda name, o: self.assertIn(name, f))  # all that was there stays
            np.testing.assert_array_equal(f["X/data"][:], source["X/data"][:])

    def check_encodings(self, f):
        """What anndata looks for on every object that was added."""
        added = []
        f.visit(lambda name: added.append(name) if "fathom" in name else None)
        self.assertGreater(len(added), 8)
        for name in added:
            o = f[name]
            kind, version = o.attrs["encoding-type"], o.attrs["encoding-version"]
            wanted = ("dict", "0.1.0") if isinstance(o, h5py.Group) else (
                ("string" if o.dtype == object else "numeric-scalar", "0.2.0") if o.shape == () else (
                    "string-array" if o.dtype == object else "array", "0.2.0"))
            self.assertEqual((kind, version), wanted, name)

    @unittest.skipIf(h5py is None, "h5py is not there")
    def test_results_written_by_python_go_back_into_the_file(self):
        fathom("spatial", "preprocess", "-c", str(self.config))
        found = json.loads((self.out / "preprocessed/metadata.json").read_text())
        self.write_results(found["n_spots"], found["n_genes"])
        got = outputs(self.out, "mggp_svgp")
        np.testing.assert_array_equal(got["factors"], self.factors)
        self.assertEqual(got["counts"][3], (found["n_spots"], found["n_genes"]))
        self.assertEqual(got["counts"][2][-1], len(got["counts"][0]))
        fathom("spatial", "export", "-c", str(self.config), "-o", str(self.dir / "back.h5ad"))
        self.check_file(self.dir / "back.h5ad", got["rows"], found["gene_names"])

    def test_every_output_of_a_run_opens(self):
        if any(f"  {stage} " not in stages() for stage in ("train", "analyze", "figures")):
            self.skipTest("the program does not have all stages")
        for stage in ("preprocess", "train", "analyze", "figures"):
            fathom("spatial", stage, "-c", str(self.config))
        got = outputs(self.out, "mggp_svgp")
        n, d, g = (got["names"][key] for key in ("n_spots", "n_genes", "n_groups"))
        shapes = {"positions": (n, 2), "groups": (n,), "rows": (n,), "factors": (n, 3),
                  "scales": (n, 3), "loadings": (d, 3), "Z": (16, 2), "groupsZ": (16,),
                  "Lu": (3, 16, 16), "elbo_history": (6,), "pca_gene_order": (3, d),
                  "pca_gene_order_by_celltype": (g, d), "moran": (3,)}
        kinds = {"groups": np.int64, "groupsZ": np.int64, "rows": np.int64,
                 "elbo_history": np.float64, "moran": np.float64, "pca_gene_order": np.int64,
                 "pca_gene_order_by_celltype": np.int64}
        for name, shape in shapes.items():
            self.assertEqual(got[name].shape, shape, name)
            self.assertEqual(got[name].dtype, kinds.get(name, np.float32), name)
        for k in range(g):
            self.assertEqual(got[f"loadings_group_{k}"].shape, (d, 3))
            self.assertEqual(got[f"as_group_{k}"].shape, (n, 3))
        self.assertTrue((np.diff(got["moran"]) <= 0).all())
        self.assertTrue(np.isfinite(got["factors"]).all() and (got["factors"] > 0).all())
        self.assertEqual(got["metrics"]["n_factors"], 3)
        self.assertEqual(got["training"]["n_iterations"], 6)
        self.assertEqual(len(got["gene_enrichment"]["factors"]), 3)
        self.assertEqual(got["model"]["mu"].shape, (3, 16))
        figures = sorted(p.name for p in (self.out / "mggp_svgp/figures").glob("*.png"))
        self.assertEqual(len(figures), 10)


class HeldOut(Base):
    """Cells that training does not see have factors too, and a file says which they are."""

    def test_all_cells_have_factors(self):
        self.config.write_text(self.config.read_text().replace("device: cpu", "device: cpu, holdout_fraction: 0.1, video_interval: 3"))
        words = ["-c", str(self.config)]
        fathom("spatial", "preprocess", *words)
        fathom("spatial", "train", "--video", *words)
        for stage in ("analyze", "figures"):
            fathom("spatial", stage, *words)
        results = self.out / "mggp_svgp"
        held = np.load(results / "held_out.npy")
        out = outputs(self.out, "mggp_svgp")
        cells = out["names"]["n_spots"]
        self.assertEqual((held.shape, held.dtype), ((cells,), bool))
        self.assertEqual(held.sum(), cells - round(0.9 * cells))
        self.assertEqual(out["metrics"]["holdout"]["n_cells"], held.sum())
        self.assertEqual(out["metrics"]["n_spots"], cells)
        self.assertEqual(out["video_frames"].shape[1], (~held).sum())  # frames are of training
        self.assertTrue((results / "training_animation.gif").exists())
        for name in ("factors", "scales", "as_group_0", "as_group_1"):
            self.assertEqual(out[name].shape, (cells, 3), name)
            self.assertTrue((np.isfinite(out[name]) & (out[name] > 0)).all(), name)
        # the last frame is exp(f) of the training cells: their rows, in the order of the factors
        order = out["metrics"]["moran_i"]["sorted_indices"]
        np.testing.assert_array_equal(out["factors"][~held], out["video_frames"][-1][:, order])
        # the map as if of its own group is the cell's own factor
        own = np.stack([out[f"as_group_{g}"][i] for i, g in enumerate(out["groups"])])
        np.testing.assert_allclose(own, out["factors"], rtol=2e-4)
        # held-out cells are those that project gives
        fathom("spatial", "project", "-m", str(results / "model.safetensors"), "--data", str(self.out), "-o", str(self.dir / "p"))
        np.testing.assert_allclose(np.load(self.dir / "p" / "factors.npy"), out["factors"], rtol=1e-5)
        if h5py:
            with h5py.File(results / "results.h5ad") as f:
                marks, kept = f["obs/fathom_mggp_svgp_held_out"][:], f["obs/fathom_kept"][:]
                np.testing.assert_array_equal(np.flatnonzero(marks), np.sort(out["rows"][held]))
                self.assertEqual(kept.sum(), cells)
                self.assertFalse(np.isnan(f["obsm/fathom_mggp_svgp_factors"][:][kept]).any())
                self.assertEqual(list(f["obs"].attrs["column-order"])[-2:], ["fathom_kept", "fathom_mggp_svgp_held_out"])
        # without held-out cells there is no such file
        self.config.write_text(self.config.read_text().replace("holdout_fraction: 0.1", "holdout_fraction: 0"))
        for stage in ("train", "analyze"):
            fathom("spatial", stage, *words)
        self.assertFalse((results / "held_out.npy").exists())


class Rows(Base):
    """rows.npy decides where results go: it is recorded, and a file that was changed is not used."""

    def test_changed_rows_are_noticed(self):
        words = ["-c", str(self.config)]
        for stage in ("preprocess", "train", "analyze"):
            fathom("spatial", stage, *words)
        record = json.loads((self.out / ".fathom" / "preprocess.json").read_text())
        self.assertIn("preprocessed/rows.npy", [f["path"] for f in record["files"] if f["kind"] == "output"])
        rows = self.out / "preprocessed" / "rows.npy"
        right = np.load(rows)
        for wrong in (right[::-1], np.roll(right, 1)):
            np.save(rows, wrong)
            done = subprocess.run([PROGRAM, "spatial", "export", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("rows.npy: it was changed after preprocessing wrote it", done.stderr)
        np.save(rows, right)
        fathom("spatial", "export", *words)


if __name__ == "__main__":
    unittest.main()
