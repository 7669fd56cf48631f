"""The dose study of ptycho end to end with 200 patterns and two epochs, at the batch sizes where it once failed: four arms
that end with numbers, reconstructions and the figure. seconds: 900"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ARMS = ["high_nll", "high_mae", "low_nll", "low_mae"]


class Study(unittest.TestCase):
    def test_200_patterns_two_epochs_four_arms(self):
        for batch in ("16", "32", "33"):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="ptycho-study-"))
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            r = subprocess.run([PROGRAM, "ptycho", "study", "dose", "--out", str(folder), "--n-train", "200", "--n-test", "64",
                                "--nepochs", "2", "--batch_size", batch], capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            with open(folder / "summary.csv") as f:
                rows = {row["arm"]: row for row in csv.DictReader(f)}
            self.assertEqual(list(rows), ARMS)
            history = json.loads((folder / "training_history.json").read_text())
            for arm in ARMS:
                self.assertTrue(all(map(math.isfinite, history[arm]["loss"] + history[arm]["val_loss"])))
                self.assertEqual(len(history[arm]["loss"]), 2)
                self.assertTrue(math.isfinite(float(rows[arm]["ssim_amplitude"])))
                with np.load(folder / arm / "reconstruction.npz") as z:
                    self.assertTrue(np.isfinite(z["reconstructed_object"]).all())
                    self.assertGreater(np.abs(z["reconstructed_object"]).max(), 0)
            self.assertGreater((folder / "dose_comparison.png").stat().st_size, 100000)
            for dose in ("high", "low"):  # both losses saw the same patterns
                self.assertEqual(rows[dose + "_nll"]["mean_counts"], rows[dose + "_mae"]["mean_counts"])


if __name__ == "__main__":
    unittest.main()
