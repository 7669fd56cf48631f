"""Sparse opacities by ADMM after the training: the count that was promised, a better model than pruning without it, the
training before it unchanged, the same bytes on any number of threads and after interruptions, also of other checkpoints.
seconds: 8"""
import json
import pathlib
import tempfile
import unittest

import numpy as np
from test_splat import read_safetensors
from test_splat_train import call, read_ply, rows_of

BASE = ["--sh-degree", 1, "--set", "start_refine=20", "--set", "refine_every=20", "--max-cap", 800, "--quiet"]
SPARSE = ["--enable-sparsity", "--sparsify-steps", 130, "--init-rho", 0.02]


class Sparsity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        done = call("splat", "toy", "-o", "toy", "--views", 6, "--size", "48x36", "--gaussians", 400, cwd=cls.dir)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def train(self, out, *more, code=0):
        done = call("splat", "train", "-d", "toy", "-o", out, *BASE, *more, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def same(self, a, b, files=("splat_230.ply", "checkpoints/model.safetensors", "loss.csv")):
        for name in files:
            self.assertEqual((self.dir / a / name).read_bytes(), (self.dir / b / name).read_bytes(), f"{b}/{name}")

    def psnr(self, model):
        done = call("splat", "eval", model, "-d", "toy", "-o", "scores", "--views", "all", "--no-images", "--json", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["psnr"]

    def test_the_share_is_removed(self):
        for strategy in ("default", "mcmc"):
            how = ["-i", 100, "--strategy", strategy]
            self.train(f"plain_{strategy}", *how)
            self.train(f"sparse_{strategy}", *how, *SPARSE, "--set", "save_steps=[100,230]")
            rows, plain = rows_of(self.dir / f"sparse_{strategy}/loss.csv"), rows_of(self.dir / f"plain_{strategy}/loss.csv")
            self.assertEqual(rows[:100], plain)  # it comes behind, and changes nothing before
            self.assertEqual([int(r["iteration"]) for r in rows], list(range(1, 231)))
            counts = {int(r["num_gaussians"]) for r in rows[100:-1]}
            self.assertEqual(len(counts), 1)  # no refinement
            n = counts.pop()
            left = read_ply(self.dir / f"sparse_{strategy}/splat_230.ply")
            self.assertEqual(len(left["x"]), n - int(0.6 * n))
            self.assertEqual(int(rows[-1]["num_gaussians"]), len(left["x"]))
            state = read_safetensors(self.dir / f"sparse_{strategy}/checkpoints/model.safetensors")
            self.assertEqual(len(state["second.opacity"]), len(left["x"]))
            self.assertFalse([name for name in state if name.startswith("sparsity")])

    def test_it_is_better_than_pruning_alone(self):
        how = ["-i", 200, "--strategy", "default", "--enable-sparsity", "--sparsify-steps", 200, "--prune-ratio", 0.85]
        self.train("drawn", *how)
        self.train("left", *how, "--init-rho", 0)
        self.assertGreater(self.psnr("drawn/splat_400.ply"), self.psnr("left/splat_400.ply") + 2)

    def test_bytes_are_the_same(self):
        more = ["-i", 100, "--strategy", "default", *SPARSE]
        self.train("whole", *more)
        self.train("one", *more, "--threads", 1, "--memory", "160M")
        self.same("whole", "one")
        at, done, ends = 0, 6, []
        while done == 6:  # one iteration at a time around the start and the first update of u
            slow = any(first <= at < last for first, last in ((98, 101), (148, 151)))
            done = call("splat", "train", "-d", "toy", "-o", "cut", *BASE, *more, "--max-minutes", 1e-6 if slow else 0.001,
                        cwd=self.dir).returncode
            if done == 6:
                at = int(read_meta(self.dir / "cut/checkpoints/model.safetensors")["iteration"])
                ends.append(at)
        self.assertEqual(done, 0)
        self.assertTrue([e for e in ends if 100 < e < 150] and [e for e in ends if 150 < e < 230], ends)
        self.same("whole", "cut")

    def test_a_trained_model_is_made_sparse(self):
        self.train("full", "-i", 100)
        self.train("later", "-i", 100, *SPARSE, "--resume", "full/checkpoints/model.safetensors")
        n = len(read_ply(self.dir / "full/splat_100.ply")["x"])
        self.assertEqual(len(read_ply(self.dir / "later/splat_230.ply")["x"]), n - int(0.6 * n))
        # in the middle of these iterations, of a checkpoint that knows nothing of them
        self.train("within", "-i", 40, *SPARSE, "--resume", "full/checkpoints/model.safetensors")
        self.assertEqual(len(read_ply(self.dir / "within/splat_170.ply")["x"]), n - int(0.6 * n))
        self.train("start", "-i", 0, "--init-ply", "full/splat_100.ply", *SPARSE)
        self.assertEqual(len(read_ply(self.dir / "start/splat_130.ply")["x"]), n - int(0.6 * n))

    def test_what_is_refused(self):
        done = self.train("no", "-i", 1, *SPARSE, "--prune-ratio", 1, code=2)
        self.assertIn("--prune-ratio: expected a number in [0, 1)", done.stderr)


def read_meta(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]


if __name__ == "__main__":
    unittest.main()
