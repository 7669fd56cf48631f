"""Lengthscales of known factors: toys with factors of lengthscale 25 and 80 are trained from 45. On each of three seeds
the order is right and each is within a factor of 1.6 of the truth, and held-out cells are predicted better than with a
lengthscale of 80 for all.
seconds: 150"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CONFIG = """
instrument: spatial
name: toy
seed: 3
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}, rescale: false}}
model: {{spatial: true, n_components: 2, init: nmf, loadings_mode: multiplicative, num_inducing: 200, parametrization: whitened,
  scale_kl_NM: false, lengthscale: {start}, train_lengthscale: {trained}}}
training: {{max_iter: 500, learning_rate: 0.04, batch_size: 1000, holdout_fraction: 0.1, device: cpu}}
analyze: {{export: false}}
"""


class Lengthscales(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-lengths-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fathom(self, *words):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def train(self, toy, name, start, trained):
        config, out = self.folder / f"{name}.yaml", self.folder / name
        config.write_text(CONFIG.format(out=out, toy=toy, start=start, trained=trained))
        for stage in ("preprocess", "train", "analyze"):
            self.fathom(stage, "-c", str(config))
        return out / "svgp", json.loads((out / "svgp/metrics.json").read_text())

    def test_each_factor_finds_its_own(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                toy = self.folder / f"toy{seed}"
                self.fathom("toy", "-o", str(toy), "--cells", "2500", "--genes", "60", "--factors", "2", "--groups", "1",
                            "--lengthscale", "25,80", "--seed", str(seed))
                at, trained = self.train(toy, f"trained{seed}", 45, "true")
                wrong = self.train(toy, f"wrong{seed}", 80, "false")[1]
                truth, factors = np.load(toy / "ground_truth_factors.npy"), np.log(np.load(at / "factors.npy"))
                match = np.corrcoef(factors.T, truth.T)[:2, 2:]
                order = [0, 1] if match[0, 0] + match[1, 1] > match[0, 1] + match[1, 0] else [1, 0]
                found = [trained["lengthscales"][order[l]] for l in range(2)]
                print(f"seed {seed}: {found[0]:.1f} and {found[1]:.1f}, correlations {match[order[0], 0]:.3f} {match[order[1], 1]:.3f}, "
                      f"held-out {trained['holdout']['mean']:.5f}, with 80 {wrong['holdout']['mean']:.5f}")
                for value, want in zip(found, np.load(toy / "ground_truth_lengthscales.npy")):
                    self.assertLess(abs(np.log(value / want)), np.log(1.6))
                self.assertLess(trained["holdout"]["mean"], wrong["holdout"]["mean"])


if __name__ == "__main__":
    unittest.main()
