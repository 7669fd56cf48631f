"""Known factors of a small tissue are found from every seed, with the start that `generate` writes.
seconds: 20"""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
SIDE, GENES, SEEDS = 18, 48, range(1, 6)
GENERAL = """
instrument: spatial
name: blocks
dataset: arrays
output_dir: {folder}/out
preprocessing: {{path: {folder}/data}}
model:
  n_components: 4
  loadings_mode: multiplicative
  lengthscale: 16.0
  num_inducing: 324
  diagonal_only: true
  K: 8
training: {{max_iter: 150, learning_rate: 0.1}}
analyze: {{export: false}}
"""


def blocks():
    """Four patterns of blocks on a grid, exp space [cell, factor], and counts of them."""
    rng = np.random.default_rng(2)
    y, x = np.divmod(np.arange(SIDE * SIDE), SIDE)
    truth = np.full((SIDE * SIDE, 4), 0.1)
    for factor, (rows, cols) in enumerate([((0, 6), (0, 18)), ((3, 12), (3, 9)), ((3, 12), (8, 15)), ((11, 18), (2, 16))]):
        truth[(y >= rows[0]) & (y < rows[1]) & (x >= cols[0]) & (x < cols[1]), factor] = 4.0
    loadings = np.full((GENES, 4), 0.1)
    loadings[np.arange(GENES), rng.integers(0, 4, GENES)] = 2.0
    places = np.stack([x, y], 1).astype(np.float32)
    return truth, rng.poisson(truth @ loadings.T).astype(np.float32), places


def write_arrays(folder, counts, places, kept=None):
    """A folder as `dataset: arrays` reads it, of all cells or of some."""
    kept = np.arange(len(places)) if kept is None else kept
    counts, places = counts[kept], places[kept]
    folder.mkdir()
    np.save(folder / "X.npy", places)
    np.save(folder / "C.npy", np.zeros(len(kept), np.int64))
    rows, genes = np.nonzero(counts)
    np.savez(folder / "Y.npz", data=counts[rows, genes], indices=genes.astype(np.int32), format=np.array(b"csr"),
             indptr=np.concatenate([[0], np.cumsum((counts > 0).sum(1))]).astype(np.int32), shape=np.array(counts.shape))
    (folder / "metadata.json").write_text(json.dumps({
        "n_spots": len(kept), "n_genes": GENES, "n_groups": 1, "spot_names": None, "group_names": ["All"],
        "gene_names": [f"g{i}" for i in range(GENES)]}))


def correlation(found, truth):
    """Mean over the factors, matched so that it is largest."""
    each = np.corrcoef(found.T, truth.T)[:4, 4:]
    return max(np.mean([each[order[k], k] for k in range(4)]) for order in itertools.permutations(range(4)))


class Blocks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-recovery-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.truth, self.counts, self.places = blocks()
        write_arrays(self.folder / "data", self.counts, self.places)
        self.config = self.folder / "general.yaml"
        self.config.write_text(GENERAL.format(folder=self.folder))
        self.fathom("generate", "-c", str(self.config))

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def train(self, model, seed, *words):
        config = ["-c", str(self.folder / f"{model}.yaml"), "--set", f"seed={seed}", *words]
        for stage in ("preprocess", "train", "analyze"):
            self.fathom(stage, *config)
        return np.load(self.folder / "out" / model / "factors.npy")

    def test_every_seed_finds_them(self):
        for model in ("svgp", "lcgp", "pnmf"):
            found = [correlation(self.train(model, seed), self.truth) for seed in SEEDS]
            print(model, np.round(found, 4))
            self.assertGreater(min(found), 0.98 if model == "svgp" else 0.95, f"{model}: {found}")

    def test_stability_is_in_the_order_of_the_factors(self):
        self.train("svgp", 1, "--set", "training.restarts=3", "--set", "training.max_iter=12")
        results = self.folder / "out" / "svgp"
        metrics = json.loads((results / "metrics.json").read_text())
        order = metrics["moran_i"]["sorted_indices"]
        self.assertNotEqual(order, sorted(order), "choose a seed whose factors change places")
        file = (results / "model.safetensors").read_bytes()
        n = int.from_bytes(file[:8], "little")
        begin, end = json.loads(file[8:8 + n])["stability"]["data_offsets"]
        kept = np.frombuffer(file[8 + n + begin:8 + n + end], np.float32)
        self.assertEqual(len(set(kept)), 4)
        np.testing.assert_allclose(metrics["stability"]["values"], kept[order], rtol=1e-5)
        self.assertAlmostEqual(metrics["stability"]["mean"], kept.mean(), 5)
        self.assertAlmostEqual(metrics["stability"]["min"], kept.min(), 5)

    def project(self, model, data, *words, code=0):
        return self.fathom("project", "-m", str(self.folder / "out" / model / "model.safetensors"), "--data", str(data),
                           "-o", str(self.folder / "projected"), *words, code=code)

    def projected(self):
        return np.load(self.folder / "projected" / "factors.npy"), np.load(self.folder / "projected" / "scales.npy")

    def test_projected_cells_have_the_factors_of_training(self):
        """A part of the tissue, preprocessed by itself: other offset and scale, the same factors in the same order."""
        part = np.flatnonzero((self.places[:, 0] < 10) & (self.places[:, 1] >= 5))
        moved = self.places * np.float32(3) + np.float32([100, -50])  # in the units of another camera
        write_arrays(self.folder / "part", self.counts, moved, part)
        write_arrays(self.folder / "whole", self.counts, moved)
        self.config.write_text(self.config.read_text().replace(f"{self.folder}/data", f"{self.folder}/whole"))
        self.fathom("generate", "-c", str(self.config))
        for model in ("svgp", "lcgp", "pnmf"):
            with self.subTest(model=model):
                factors = self.train(model, 1)
                scales = np.load(self.folder / "out" / model / "scales.npy")
                metadata = json.loads((self.folder / "out" / "preprocessed" / "metadata.json").read_text())
                places = (moved - np.array(metadata["offset"])) * metadata["scale"]
                self.assertLess(np.abs(places - np.load(self.folder / "out" / "preprocessed" / "X.npy")).max(), 1e-4)
                order = json.loads((self.folder / "out" / model / "metrics.json").read_text())["moran_i"]["sorted_indices"]
                self.project(model, self.folder / "out")
                own = self.projected()
                self.fathom("preprocess", "-c", str(self.folder / f"{model}.yaml"), "--set", f"preprocessing.path={self.folder}/part",
                            "--set", f"output_dir={self.folder}/part_out")
                self.project(model, self.folder / "part_out")
                other = self.projected()
                if model == "pnmf":  # a fit with noise, of its own counts
                    for k in range(4):
                        self.assertGreater(np.corrcoef(own[0][:, k], factors[:, k])[0, 1], 0.995)
                        self.assertGreater(np.corrcoef(other[0][:, k], factors[part, k])[0, 1], 0.99)
                    continue
                self.assertNotEqual(order, sorted(order), "choose a seed whose factors change places")
                np.testing.assert_array_equal(own[0], factors)
                np.testing.assert_array_equal(own[1], scales)
                np.testing.assert_allclose(other[0], factors[part], rtol=1e-4)
                np.testing.assert_allclose(other[1], scales[part], rtol=1e-3)
                self.assertGreater(correlation(other[0], self.truth[part]), 0.98)
                (self.folder / "out" / model / "metrics.json").unlink()  # the order is then worked out
                self.project(model, self.folder / "out")
                np.testing.assert_array_equal(self.projected()[0], factors)

    def test_cells_that_were_held_out_do_not_count_for_the_order(self):
        factors = self.train("lcgp", 1, "--set", "training.holdout_fraction=0.2")
        (self.folder / "out" / "lcgp" / "metrics.json").unlink()  # it is worked out as analyze did
        self.project("lcgp", self.folder / "out")
        self.assertTrue(np.load(self.folder / "out" / "lcgp" / "held_out.npy").any())
        np.testing.assert_allclose(self.projected()[0], factors, rtol=1e-4)

    def test_other_cells_are_analyzed_where_training_had_them(self):
        """--allow-other-data: positions of the other folder are brought to the scale of training too."""
        part = np.flatnonzero((self.places[:, 0] < 10) & (self.places[:, 1] >= 5))
        write_arrays(self.folder / "part", self.counts, self.places, part)
        factors = self.train("svgp", 1)
        words = ["-c", str(self.folder / "svgp.yaml"), "--set", f"preprocessing.path={self.folder}/part"]
        self.fathom("preprocess", "--force", *words)
        self.fathom("analyze", "--allow-other-data", *words)
        found = np.load(self.folder / "out" / "svgp" / "factors.npy")
        self.assertGreater(correlation(found, factors[part]), 0.99999)

    def test_a_folder_without_a_scale_is_refused(self):
        self.train("svgp", 1)
        write_arrays(self.folder / "other", self.counts, self.places + np.float32(1))
        self.assertIn("does not say how its positions were rescaled", self.project("svgp", self.folder / "other", code=3))

    def test_analyze_stays_within_its_plan(self):
        """Two predictions, of the training cells and of those held out, with 1231 inducing points."""
        side = 36
        y, x = np.divmod(np.arange(side * side), side)
        counts = np.random.default_rng(3).poisson(1.0, (side * side, GENES)).astype(np.float32)
        write_arrays(self.folder / "large", counts, np.stack([x, y], 1).astype(np.float32))
        words = ["--set", f"preprocessing.path={self.folder}/large", "--set", "model.num_inducing=1231",
                 "--set", "training.holdout_fraction=0.05", "--set", "training.max_iter=2"]
        self.train("svgp", 1, *words)
        for threads in ("1", "2"):
            self.fathom("analyze", "-c", str(self.folder / "svgp.yaml"), "--set", "seed=1", *words, "--threads", threads)
            record = json.loads((self.folder / "out" / ".fathom" / "analyze.svgp.json").read_text())
            self.assertGreater(record["growth_bytes"], 40 << 20)
            self.assertLessEqual(record["growth_bytes"], record["planned_bytes"], f"{threads} threads")


if __name__ == "__main__":
    unittest.main()
