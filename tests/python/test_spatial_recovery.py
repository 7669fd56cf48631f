"""Known factors of a small tissue are found from every seed, with the start that `generate` writes.
seconds: 10"""
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


if __name__ == "__main__":
    unittest.main()
