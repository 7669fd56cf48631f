"""Known factors of toy tissues: the consensus matches the truth at least as well as the median restart, and the number of
factors that is suggested is the true one for most seeds.
seconds: 900"""
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
FACTORS, SEEDS, OVER = 4, range(1, 6), "3,4,5,6"
CONFIG = """
instrument: spatial
name: toy
seed: {seed}
dataset: toy
output_dir: {folder}/{seed}
preprocessing: {{path: {folder}/toy{seed}}}
model: {{spatial: true, n_components: 4, loadings_mode: multiplicative, init: nmf, lengthscale: 20.0, num_inducing: 360,
        diagonal_only: true}}
training: {{max_iter: 400, learning_rate: 0.1, holdout_fraction: 0.1}}
analyze: {{export: false}}
"""


def match(found, truth):
    """Mean correlation of maps, paired so that it is largest."""
    c = np.corrcoef(found.T, truth.T)[:found.shape[1], found.shape[1]:]
    return max(np.mean([c[order[k], k] for k in range(len(order))]) for order in itertools.permutations(range(len(c))))


class Toys(unittest.TestCase):
    def test_consensus_and_choice(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-consensus-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        suggested = []
        for seed in SEEDS:
            subprocess.run([PROGRAM, "spatial", "toy", "--cells", "400", "--genes", "100", "--factors", str(FACTORS), "--groups",
                            "2", "--lengthscale", "20", "--alpha", "0.1", "--density", "0.9", "--seed", str(seed), "-o",
                            str(folder / f"toy{seed}")], check=True, capture_output=True)
            config = folder / f"{seed}.yaml"
            config.write_text(CONFIG.format(folder=folder, seed=seed))
            done = subprocess.run([PROGRAM, "spatial", "consensus", "-c", str(config), "--restarts", "8", "--over",
                                   f"model.n_components={OVER}", "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            suggested.append(json.loads(done.stdout)["suggested"])
            truth = np.exp(np.load(folder / f"toy{seed}" / "ground_truth_factors.npy"))
            at = folder / f"{seed}_consensus"
            single = [match(np.load(path), truth)
                      for path in sorted(at.glob(f"svgp_n_components-{FACTORS}_restart-*/factors.npy"))]
            consensus = match(np.load(at / f"svgp_n_components-{FACTORS}_consensus" / "factors.npy"), truth)
            print(f"seed {seed}: suggested {suggested[-1]}, consensus {consensus:.4f}, restarts {min(single):.4f} to "
                  f"{max(single):.4f}, median {np.median(single):.4f}", flush=True)
            self.assertEqual(len(single), 8)
            self.assertGreaterEqual(consensus, np.median(single))
        self.assertGreaterEqual(suggested.count(FACTORS), 4)


if __name__ == "__main__":
    unittest.main()
