"""The learned path of ptycho on a card at full size: the published dose study (2000 patterns, 50 epochs, four arms), and
configs/ptycho/learned.yaml, under which an unseen object is recovered at both doses with three seeds.
FATHOM_CARD_EPOCHS makes it smaller, FATHOM_CARD_DEVICE=cpu tries the cases themselves.
FATHOM_TEST_DEVICE names the backend. seconds: 600"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
BACKEND = os.environ.get("FATHOM_TEST_DEVICE", "")
DEVICE = os.environ.get("FATHOM_CARD_DEVICE", "cuda")
EPOCHS = os.environ.get("FATHOM_CARD_EPOCHS", "")
CONFIG = str(ROOT / "configs/ptycho/learned.yaml")


def setUpModule():
    if not BACKEND:
        raise unittest.SkipTest("FATHOM_TEST_DEVICE names no backend")


class Card(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ptycho-card-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def study(self, name, *words):
        few = ["--nepochs", EPOCHS] if EPOCHS else []
        begin = time.monotonic()
        r = subprocess.run([PROGRAM, "ptycho", "study", "dose", "--out", str(self.dir / name), "--device", DEVICE, *few,
                            *words], capture_output=True, text=True)
        said = r.stdout + r.stderr
        if "FTH-DEV-001" in said:
            self.skipTest("no card: it cannot be used")
        self.assertEqual(r.returncode, 0, said)
        print(f"{name}: {time.monotonic() - begin:.0f} s\n{said[-1200:]}", flush=True)
        with open(self.dir / name / "summary.csv") as f:
            return {row["arm"]: row for row in csv.DictReader(f)}

    def test_published_study(self):
        """With its probe, a dot, nobody learns anything: every arm ends with numbers and nearly no likeness."""
        arms = self.study("published")
        self.assertEqual(sorted(arms), ["high_mae", "high_nll", "low_mae", "low_nll"])
        for row in arms.values():
            self.assertTrue(math.isfinite(float(row["loss"])))
            self.assertLess(abs(float(row["ssim_amplitude"])), 0.3)
        history = json.loads((self.dir / "published/training_history.json").read_text())
        self.assertEqual({len(h["loss"]) for h in history.values()} - set(range(1, 51)), set())
        self.assertTrue((self.dir / "published/dose_comparison.png").exists())

    def test_learning_that_works(self):
        worst = {}
        for seed in ("1", "2", "3"):
            arms = self.study("learned" + seed, "-c", CONFIG, "--doses", "1e5,1e3", "--algorithms", "lsqml", "--seed", seed)
            for arm, row in arms.items():
                worst[arm] = min(worst.get(arm, 1), float(row["complex_correlation"]))
        print(worst, flush=True)
        if EPOCHS:
            return
        self.assertGreaterEqual(worst["high_nll"], 0.9)
        self.assertGreaterEqual(worst["low_nll"], 0.9)


if __name__ == "__main__":
    unittest.main()
