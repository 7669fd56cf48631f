"""One refinement of a model as people run it: the golden rows from given statistics and normals, MCMC, made-up rows
within their bound, and what is said of bad input.
seconds: 10"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/splat"
COLUMNS = (["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"] + [f"f_rest_{i}" for i in range(45)] +
           ["opacity"] + [f"scale_{i}" for i in range(3)] + [f"rot_{i}" for i in range(4)])


def call(*words, cwd):
    return subprocess.run([PROGRAM, "splat", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=60)


def golden(name):
    return np.load(GOLDEN / f"{name}.npy")


def write_ply(path):
    """The golden scene, with rotations that are units, as a PLY has them."""
    means, sh0, shN, scales, quats, opac = (golden("in_" + k) for k in ("means", "sh0", "shN", "scales", "quats", "opac"))
    n = len(means)
    rows = np.concatenate([means, np.zeros((n, 3)), sh0[:, 0], shN.transpose(0, 2, 1).reshape(n, 45),
                           opac.reshape(n, 1), scales, quats], 1).astype("<f4")
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {n}\n"
    head += "".join(f"property float {c}\n" for c in COLUMNS) + "end_header\n"
    path.write_bytes(head.encode() + rows.tobytes())


def read_ply(path):
    data = path.read_bytes()
    at = data.index(b"end_header\n") + 11
    rows = np.frombuffer(data[at:], "<f4").reshape(-1, len(COLUMNS))
    return {c: rows[:, i] for i, c in enumerate(COLUMNS)}


class Densify(unittest.TestCase):
    def setUp(self):
        self.box = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.box.name)
        write_ply(self.dir / "in.ply")
        grads = golden("adc_grads")
        np.save(self.dir / "stats.npy", np.stack([np.ones_like(grads), grads]).astype("f4"))

    def tearDown(self):
        self.box.cleanup()

    def refine(self, *words):
        return call("densify", "in.ply", "--iteration", 600, "--scene-scale", 20.4, "-o", "out.ply", *words, cwd=self.dir)

    def test_given_statistics_and_normals_give_the_golden_rows(self):
        done = self.refine("--stats", "stats.npy", "--noise", GOLDEN / "adc_noise.npy", "--canonical-order",
                           "--set", "prune_opacity=0.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), "dup 23 split 19 pruned 3 dead 0 added 0 n 135".split())
        rows, stay = read_ply(self.dir / "out.ply"), golden("adc_prune_mask_0.05") == 0
        means = np.stack([rows[k] for k in "xyz"], 1)
        np.testing.assert_allclose(means, golden("adc_out_means")[stay], rtol=2e-6, atol=2e-6)
        scales = np.stack([rows[f"scale_{k}"] for k in range(3)], 1)
        np.testing.assert_allclose(scales, golden("adc_out_scales")[stay], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(rows["opacity"], golden("adc_out_opac")[stay], rtol=1e-6)

    def test_threads_and_seeds(self):
        outs = []
        for words in (["--threads", 1], ["--threads", 2], ["--seed", 1]):
            done = self.refine("--stats", "stats.npy", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            outs.append((self.dir / "out.ply").read_bytes())
        self.assertEqual(outs[0], outs[1])
        self.assertNotEqual(outs[0], outs[2])

    def test_mcmc_moves_and_adds(self):
        done = self.refine("--strategy", "mcmc", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = json.loads(done.stdout)
        opacity = 1 / (1 + np.exp(-golden("in_opac").astype("f8")))
        dead = int(((opacity <= 0.005) | ((golden("in_quats") ** 2).sum(1) < 1e-8)).sum())
        self.assertEqual((facts["dead"], facts["added"], facts["n"]), (dead, 4, 100))
        self.assertEqual(len(read_ply(self.dir / "out.ply")["x"]), 100)

    def test_the_cap(self):
        done = self.refine("--stats", "stats.npy", "--set", "max_cap=100", "--set", "prune_opacity=0", "--json")
        facts = json.loads(done.stdout)
        self.assertEqual(facts["dup"] + facts["split"], 4)

    def test_bad_input(self):
        np.save(self.dir / "short.npy", np.zeros((2, 95), "f4"))
        np.save(self.dir / "few.npy", np.zeros((2, 3, 3)))
        for name, at, value in (("nan", (1, 7), np.nan), ("inf", (0, 95), np.inf), ("below", (0, 3), -1)):
            stats = np.load(self.dir / "stats.npy")
            stats[at] = value
            np.save(self.dir / f"{name}.npy", stats)
        for code, part, words in (
                (3, "short.npy: expected f32 or f64 of 2 x 96 statistics, found f32 of 2 x 95", ["--stats", "short.npy"]),
                (3, "nothing.npy", ["--stats", "nothing.npy"]),
                (3, "nan.npy: [1, 7]: expected a finite number from 0 on, found nan", ["--stats", "nan.npy"]),
                (3, "inf.npy: [0, 95]: expected a finite number from 0 on, found inf", ["--stats", "inf.npy"]),
                (3, "below.npy: [0, 3]: expected a finite number from 0 on, found -1", ["--stats", "below.npy"]),
                (3, "few.npy: expected 2 x 19 x 3 normals, as so many Gaussians are split, found 2 x 3 x 3",
                 ["--stats", "stats.npy", "--noise", "few.npy"]),
                (2, "--set: expected a key of the strategies and a value, found 'rate=1'", ["--set", "rate=1"]),
                (2, "--set prune_opacity: expected 0 to 0.5, found '2'", ["--set", "prune_opacity=2"]),
                (2, "--strategy: expected default or mcmc, found 'adc'", ["--strategy", "adc"]),
                (2, "--stats has no effect with MCMC", ["--strategy", "mcmc", "--stats", "stats.npy"])):
            done = self.refine(*words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse((self.dir / "out.ply").exists())

    def test_made_up_rows_keep_their_bound(self):
        for mode, after in (("split-all", 300000), ("split-10", 165000), ("dup-all", 300000), ("prune-half", 75000)):
            for adam in (0, 1):
                done = call("bench-densify", "--n", 150000, "--mode", mode, "--adam", adam, "--device", "cpu", "--json",
                            cwd=self.dir)
                self.assertEqual(done.returncode, 0, done.stderr)
                facts, row = json.loads(done.stdout), 708 if adam else 236
                bound = 1.01 * max(150000, after) * row + (64 << 20)
                self.assertEqual((facts["rows"], facts["rows_after"]), (150000, after))
                self.assertEqual(facts["ledger_bytes"], facts["planned_bytes"])
                self.assertLessEqual(facts["ledger_bytes"], bound)
                self.assertLess(abs(facts["bound_bytes"] - bound), 1000)
                self.assertLessEqual(facts["driver_bytes"], facts["ledger_bytes"] + (4 << 20))

    def test_rows_that_do_not_fit(self):
        done = call("bench-densify", "--n", 1000000, "--memory", "1G", "--device", "cpu", cwd=self.dir)
        self.assertEqual(done.returncode, 4)
        self.assertIn("1000000 rows that become 2000000 take 1.32 GiB of", done.stderr)


if __name__ == "__main__":
    unittest.main()
