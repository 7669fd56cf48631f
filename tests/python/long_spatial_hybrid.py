"""Hybrid models find which genes are spatial: synthetic tissues with spatial factors and factors without positions,
and one of the public simulations of the NSF paper, which has spatial factors alone. Importance of genes, factors
found, and held-out deviance against purely spatial models. The numbers are in docs/spatial.md.
seconds: 300"""
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
DATA = pathlib.Path(os.environ.get("FATHOM_DATA", "")) / "spatial"
CONFIG = """
instrument: spatial
name: hybrid
seed: {seed}
dataset: {dataset}
output_dir: {folder}/out
preprocessing: {{{source}}}
model:
  spatial: true
  n_components: {L}
  nonspatial_components: {T}
  loadings_mode: multiplicative
  init: nmf
  lengthscale: {length}
  num_inducing: {points}
  diagonal_only: true
training: {{max_iter: {steps}, learning_rate: 0.1, holdout_fraction: 0.1, device: cpu}}
analyze: {{export: false}}
"""


def auc(high, low):
    """Chance that one of `high` is above one of `low`."""
    return (high[:, None] > low[None]).mean() + 0.5 * (high[:, None] == low[None]).mean()


def matched(known, found):
    """Correlations of known factors with those found, in the assignment of largest sum."""
    k = known.shape[1]
    c = np.corrcoef(known.T, found.T)[:k, k:]
    best = max(itertools.permutations(range(found.shape[1]), k), key=lambda p: sum(c[i, p[i]] for i in range(k)))
    return [c[i, best[i]] for i in range(k)]


class Long(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-hybrid-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fathom(self, *words):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def run_model(self, name, **keys):
        folder = self.folder / name
        folder.mkdir()
        config = folder / "c.yaml"
        config.write_text(CONFIG.format(folder=folder, **keys))
        for stage in ("preprocess", "train", "analyze"):
            self.fathom(stage, "-c", str(config))
        model = folder / "out" / "svgp"
        return model, json.loads((model / "metrics.json").read_text())["holdout"]["mean"]

    def toy(self, name, seed, others):
        path = self.folder / name
        self.fathom("toy", "-o", str(path), "--side", "40", "--genes", "160", "--factors", "4", "--nonspatial", str(others),
                    "--groups", "1", "--density", "0.6", "--lengthscale", "40", "--seed", str(seed))
        keys = dict(dataset="toy", source=f"path: {path}", seed=seed, length=40.0, points=250, steps=500)
        return path, keys

    def test_both_kinds_of_factors(self):
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                path, keys = self.toy(f"mixed{seed}", seed, 4)
                model, hybrid = self.run_model(f"hybrid{seed}", L=4, T=4, **keys)
                _, few = self.run_model(f"few{seed}", L=4, T=0, **keys)
                _, many = self.run_model(f"many{seed}", L=8, T=0, **keys)
                spatial = np.load(path / "ground_truth_loadings.npy")[:, :4].sum(1) > 0
                importance = np.load(model / "gene_shares.npy")[:, :4].sum(1)
                area = auc(importance[spatial], importance[~spatial])
                known, seen = np.load(path / "ground_truth_factors.npy"), ~np.load(model / "held_out.npy")
                found = np.log(np.load(model / "factors.npy"))
                space, cells = matched(known[seen, :4], found[seen, :4]), matched(known[seen, 4:], found[seen, 4:])
                print("seed", seed, "AUC", round(area, 4), "spatial", np.round(space, 3), "others", np.round(cells, 3),
                      "held out: hybrid %.4f, 4 spatial %.4f, 8 spatial %.4f" % (hybrid, few, many), flush=True)
                self.assertGreaterEqual(area, 0.95)
                self.assertGreater(np.mean(space), 0.9)
                self.assertGreater(np.mean(cells), 0.7)
                self.assertLess(hybrid, few)
                self.assertLess(hybrid, many)

    def test_spatial_factors_alone(self):
        """Factors that the data do not have do no harm: within a hundredth of the purely spatial model."""
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                _, keys = self.toy(f"pure{seed}", seed, 0)
                _, hybrid = self.run_model(f"hybrid{seed}", L=4, T=2, **keys)
                _, plain = self.run_model(f"plain{seed}", L=4, T=0, **keys)
                print("seed", seed, "held out: hybrid %.4f, spatial %.4f" % (hybrid, plain), flush=True)
                self.assertLess(hybrid, 1.01 * plain)

    @unittest.skipUnless((DATA / "nsf_S1.h5ad").exists(), "set FATHOM_DATA to a folder with spatial/nsf_S1.h5ad")
    def test_held_out_deviance_refuses_factors_that_take_over(self):
        keys = dict(dataset="anndata", source=f"path: {DATA / 'nsf_S1.h5ad'}, counts: counts, coord_key: spatial", seed=1, length=16.0,
                    points=600, steps=800)
        model, hybrid = self.run_model("hybrid", L=4, T=2, **keys)
        _, plain = self.run_model("plain", L=4, T=0, **keys)
        importance = np.load(model / "gene_shares.npy")[:, :4].sum(1)
        print("nsf_S1: held out hybrid %.4f, spatial %.4f; importance of genes: median %.3f, least %.3f"
              % (hybrid, plain, np.median(importance), importance.min()), flush=True)
        # patterns with sharp edges suit a factor without positions, which nothing ties to its neighbours; held-out cells tell
        self.assertGreater(np.median(importance), 0.8)
        self.assertLess(plain, hybrid)


if __name__ == "__main__":
    unittest.main()
