"""The dose study of ptycho: four arms as jobs, their files, and what happens when it is started again.
seconds: 20"""
import csv
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ARMS = ["high_nll", "high_mae", "low_nll", "low_mae"]
SMALL = ["--n-train", "34", "--n-test", "16", "--nepochs", "1", "--n_filters_scale", "1", "--N", "64", "--gridsize", "2"]


class Study(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.first = cls.start("study", "dose", "-v", "--out", "s", "--batch_size", "33", *SMALL)

    @classmethod
    def start(cls, *words):
        return subprocess.run([PROGRAM, "ptycho", *words], capture_output=True, text=True, cwd=cls.dir, timeout=600)

    def at(self, *names):
        return os.path.join(self.dir, *names)

    def test_four_arms(self):
        """The case that once failed: 33 groups a batch, with groups of four patterns."""
        self.assertEqual(self.first.returncode, 0, self.first.stdout + self.first.stderr)
        with open(self.at("s/summary.csv")) as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([r["arm"] for r in rows], ARMS)
        for r in rows:
            self.assertAlmostEqual(float(r["mean_counts"]) / float(r["nphotons"]), 1, delta=0.05)
            self.assertTrue(math.isfinite(float(r["loss"])))
            self.assertTrue(math.isfinite(float(r["mae_amplitude"])))
        with open(self.at("s/training_history.json")) as f:
            history = json.load(f)
        self.assertEqual(sorted(history), sorted(ARMS))
        for arm in ARMS:
            with open(self.at("s", arm + ".yaml")) as f:
                values = [line for line in f if ": " in line and not line.startswith("#")]
            shown = self.first.stdout.split(f"s/{arm}.yaml:\n")[1].split(".yaml:\n")[0]
            self.assertGreater(len(values), 10)
            self.assertEqual([v for v in values if v not in shown], [])
            self.assertEqual(len(history[arm]["loss"]), 1)
            for name in ("model.safetensors", "reconstruction.npz", "metrics.json"):
                self.assertTrue(os.path.exists(self.at("s", arm, name)), name)
            with np.load(self.at("s", arm, "reconstruction.npz")) as z:
                self.assertTrue(np.isfinite(z["reconstructed_object"]).all())
            with open(self.at("s", arm, "metrics.json")) as f:
                metrics = json.load(f)
            self.assertTrue(math.isnan(metrics["ssim"][1]))  # the object has no phase
            self.assertTrue(math.isfinite(metrics["ssim"][0]))

    def test_an_object_that_was_not_trained_on_and_a_beam_out_of_focus(self):
        r = self.start("study", "dose", "--out", "unseen", "--losses", "nll", "--doses", "1e5", "--algorithms", "lsqml",
                       "--iterations", "2", "--test_object_seed", "9", "--default_probe_scale", "0.7",
                       "--probe_curvature", "0.5", *SMALL)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        with np.load(self.at("unseen/data/dose_train.npz")) as train, np.load(self.at("unseen/data/dose_test.npz")) as test:
            self.assertFalse(np.allclose(train["objectGuess"], test["objectGuess"]))
            probe = train["probeGuess"].reshape(64, 64)
        y, x = np.mgrid[:64, :64] - 32
        lit = np.abs(probe) > 0.1
        np.testing.assert_allclose((probe * np.exp(-0.5j * np.pi * (x**2 + y**2) / 64))[lit].imag, 0, atol=1e-5)
        with open(self.at("unseen/summary.csv")) as f:
            rows = {r["arm"]: float(r["complex_correlation"]) for r in csv.DictReader(f)}
        self.assertGreater(rows["dose_lsqml"], rows["dose_nll"])
        self.assertLessEqual(rows["dose_lsqml"], 1)

    def test_figure_has_six_panels_at_300_dpi(self):
        with open(self.at("s/dose_comparison.png"), "rb") as f:
            head = f.read(24)
        self.assertEqual(struct.unpack(">II", head[16:24]), (4500, 3000))

    def test_both_losses_see_the_same_patterns(self):
        with np.load(self.at("s/data/high_train.npz")) as high, np.load(self.at("s/data/low_train.npz")) as low:
            np.testing.assert_array_equal(high["xcoords"], low["xcoords"])
            np.testing.assert_array_equal(high["objectGuess"], low["objectGuess"])
            self.assertFalse(np.array_equal(high["diff3d"], low["diff3d"]))
            amplitude = np.abs(high["objectGuess"])
        self.assertAlmostEqual(float(amplitude.max()), 1.5, places=6)
        self.assertGreaterEqual(float(amplitude.min()), 0.5)
        with np.load(self.at("s/data/high_test.npz")) as test, np.load(self.at("s/data/high_train.npz")) as train:
            self.assertFalse(np.isin(test["xcoords"], train["xcoords"]).any())
        for loss in ("nll", "mae"):
            with open(self.at("s", f"low_{loss}.yaml")) as f:
                self.assertIn("low_train.npz", f.read())

    def test_again_runs_nothing(self):
        before = {arm: os.stat(self.at("s", arm, "model.safetensors")).st_mtime_ns for arm in ARMS}
        again = self.start("study", "dose", "--out", "s", "--batch_size", "33", *SMALL)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        after = {arm: os.stat(self.at("s", arm, "model.safetensors")).st_mtime_ns for arm in ARMS}
        self.assertEqual(before, after)

    def test_missing_arms_and_mistakes(self):
        r = self.start("study", "dose", "--output-dir", "empty", "--skip-training", *SMALL)
        self.assertEqual(r.returncode, 0, r.stderr)
        with open(self.at("empty/summary.csv")) as f:
            self.assertEqual([row["loss"] for row in csv.DictReader(f)], ["", "", "", ""])
        self.assertTrue(os.path.exists(self.at("empty/dose_comparison.png")))
        r = self.start("study", "dose", "--out", "x", "--losses", "nll,msle")
        self.assertEqual(r.returncode, 2)
        self.assertIn("msle", r.stderr)
        r = self.start("study", "noise", "--out", "x")
        self.assertEqual(r.returncode, 2)
        self.assertFalse(os.path.exists(self.at("x")))


if __name__ == "__main__":
    unittest.main()
