"""Cameras and points of a real garden (data/splat), images of a known model: Gaussians at some of the points, seen by
splat_oracle.py. Training starts from other points and comes close to the images, by the oracle's eyes and by evaluation.
seconds: 15"""
import csv
import os
import pathlib
import subprocess
import tempfile
import unittest

import splat_oracle as oracle
import numpy as np
from test_splat import PROGRAM, write_png16

DATA = pathlib.Path(os.environ.get("FATHOM_DATA", "")) / "splat" / "test_garden.npz"
ITERATIONS, KNOWN, START, SMALLER = 400, 2000, 1500, 4


@unittest.skipUnless(DATA.exists(), "set FATHOM_DATA to a folder with splat/test_garden.npz")
class Garden(unittest.TestCase):
    def test_training_finds_the_known_model(self):
        with tempfile.TemporaryDirectory() as kept, np.load(DATA) as data:
            folder = pathlib.Path(kept)
            size = int(data["width"]) // SMALLER, int(data["height"]) // SMALLER
            lens = data["Ks"].astype(float)
            self.assertEqual(np.ptp(lens, 0).max(), 0)  # one camera
            focal = [float(v) / SMALLER for v in (lens[0, 0, 0], lens[0, 1, 1], lens[0, 0, 2], lens[0, 1, 2])]
            views = [oracle.View(pose[:3], focal, size) for pose in data["viewmats"]]
            pick = np.random.default_rng(1).permutation(len(data["means3d"]))
            places, colours = data["means3d"][pick].astype(float), data["colors"][pick]
            known = oracle.start_from(places[:KNOWN], colours[:KNOWN].astype(float), "default", 0)
            known["opacity"][:] = 2
            start = slice(KNOWN, KNOWN + START)
            oracle.write_capture(folder / "garden", known, 0, views, (places[start], colours[start]), write_png16)
            words = ["train", "-d", "garden", "-o", "out", "-i", ITERATIONS, "--sh-degree", 0, "--strategy", "default", "--quiet",
                     "--start-refine", 50, "--refine-every", 50, "--stop-refine", 350]
            done = subprocess.run([PROGRAM, "splat", *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(folder / "out/loss.csv", newline="") as f:
                loss = [float(row["loss"]) for row in csv.DictReader(f)]
            end = oracle.read_ply(folder / f"out/splat_{ITERATIONS}.ply")
            first = oracle.start_from(places[start], colours[start].astype(float), "default", 0)
            before, after = (np.mean([oracle.psnr(oracle.Picture(m, v, 0).image, v.target) for v in views]) for m in (first, end))
            print(f"\ngarden: {before:.2f} dB with {START} Gaussians, then {after:.2f} dB with {len(end['means'])}; loss "
                  f"{np.mean(loss[:3]):.4f}, then {np.mean(loss[-3:]):.4f}", flush=True)
            self.assertGreater(after, before + 8)
            self.assertGreater(after, 24)
            self.assertLess(np.mean(loss[-3:]), 0.4 * np.mean(loss[:3]))


if __name__ == "__main__":
    unittest.main()
