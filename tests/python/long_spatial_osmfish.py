"""Five seeds of every model on osmFISH, against the golden runs: the mean objective of the last twenty
iterations, within three pooled standard errors. FATHOM_OSMFISH_MODELS chooses some of the models,
FATHOM_OSMFISH_DEVICE=cuda trains on a card, and then also against the same seeds on the CPU.
seconds: 400"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
DATA = pathlib.Path(os.environ.get("FATHOM_DATA", "")) / "spatial" / "osmfish.h5ad"
GOLDEN = pathlib.Path("tests/golden/spatial/osmfish_runs.json")
MODELS = {"pnmf": (False, False, False), "svgp": (True, False, False), "mggp_svgp": (True, True, False),
          "lcgp": (True, False, True), "mggp_lcgp": (True, True, True)}
CHOSEN = (os.environ.get("FATHOM_OSMFISH_MODELS") or " ".join(MODELS)).split()
SEEDS = [1, 2, 3, 4, 5]
DEVICE = os.environ.get("FATHOM_OSMFISH_DEVICE", "cpu")
CONFIG = """
instrument: spatial
name: osmfish
dataset: osmfish
output_dir: {folder}/out
preprocessing: {{path: {path}, min_group_fraction: 0.01}}
model:
  n_components: 10
  spatial: {spatial}
  groups: {groups}
  local: {local}
  loadings_mode: multiplicative
  lengthscale: 8.0
  num_inducing: 200
  K: 15
  group_diff_param: 1.0
  inducing_allocation: derived
training: {{max_iter: 300, learning_rate: 0.02, batch_size: 1000}}
"""


def standard_errors(a, b):
    """Distance of two means in pooled standard errors."""
    n, m = len(a), len(b)
    pooled = (np.sum((a - np.mean(a)) ** 2) + np.sum((b - np.mean(b)) ** 2)) / (n + m - 2)
    return abs(np.mean(a) - np.mean(b)) / np.sqrt(pooled * (1 / n + 1 / m))


@unittest.skipUnless(DATA.exists(), "set FATHOM_DATA to a folder with spatial/osmfish.h5ad")
class Objectives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-osmfish-"))
        cls.golden = json.loads(GOLDEN.read_text())["runs"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def fathom(self, *words):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def run_model(self, model):
        spatial, groups, local = (str(x).lower() for x in MODELS[model])
        config = self.folder / f"{model}.yaml"
        config.write_text(CONFIG.format(folder=self.folder, path=DATA, spatial=spatial, groups=groups, local=local))
        self.fathom("preprocess", "-c", str(config))
        ours = self.train(config, model, DEVICE)
        theirs = [r["elbo_last20"] for r in self.golden if r["model"] == model]
        self.compare(model, ours, "golden", theirs)
        if DEVICE != "cpu":
            self.compare(model, ours, "CPU", self.train(config, model, "cpu"))

    def train(self, config, model, device):
        ends = []
        for seed in SEEDS:
            self.fathom("train", "-c", str(config), "--seed", str(seed), "--force", "--device", device)
            history = np.load(self.folder / "out" / model / "elbo_history.npy")
            self.assertEqual(len(history), 300)
            ends.append(history[-20:].mean())
        return ends

    def compare(self, model, ours, whose, theirs):
        far = standard_errors(ours, theirs)
        print(f"{model} on {DEVICE}: {np.mean(ours):.0f} +- {np.std(ours, ddof=1):.0f} ({len(ours)} seeds), {whose} "
              f"{np.mean(theirs):.0f} ({len(theirs)}): {far:.2f} standard errors", flush=True)
        self.assertLessEqual(far, 3.0)

    def test_models(self):
        for model in CHOSEN:
            with self.subTest(model=model):
                self.run_model(model)


if __name__ == "__main__":
    unittest.main()
