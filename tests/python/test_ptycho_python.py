# test_ptycho_python.py - fathom.ptycho: arrays in, arrays out, and the same bytes as the program.
# seconds: 12
import glob
import math
import os
import subprocess
import tempfile
import unittest

import numpy as np

import fathom

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))
SCAN = dict(N=32, size=96, lines=150, n_images=120, buffer=20, object_scale="half", phase="same", nphotons=1e7, seed=5)


class Ptycho(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scan = fathom.ptycho.simulate(**SCAN)
        cls.solved = fathom.ptycho.solve(cls.scan, algorithm="lsqml", iterations=10, seed=2, threads=1)

    def test_a_scan_is_solved_and_evaluated(self):
        r = self.solved
        self.assertEqual(self.scan["diff3d"].shape, (120, 32, 32))
        self.assertEqual(r.object.dtype, np.complex64)
        self.assertEqual(r.positions.shape, (120, 2))
        self.assertEqual(len(r.error_history), 10)
        self.assertLess(r.error_history[-1], 0.5 * r.error_history[0])
        m = fathom.ptycho.evaluate(r, self.scan, residuals=True)
        self.assertGreater(m["ssim"][0], 0.6)
        self.assertAlmostEqual(math.sqrt(m["fourier_error"]), r.error_history[-1], delta=0.5 * r.error_history[-1])
        truth = np.abs(self.scan["objectGuess"])
        self.assertAlmostEqual(float(truth.max()), 1.5, places=5)
        plain = fathom.ptycho.evaluate(self.scan["objectGuess"], self.scan["objectGuess"])
        self.assertEqual(plain["mae"], [0, 0])

    def test_the_program_gives_the_same(self):
        with tempfile.TemporaryDirectory() as d:
            np.savez(os.path.join(d, "scan.npz"), **self.scan)
            subprocess.run([PROGRAM, "ptycho", "solve", "scan.npz", "--algorithm", "lsqml", "--iterations", "10", "--seed", "2",
                            "--out", "o"], cwd=d, check=True, capture_output=True)
            with np.load(os.path.join(d, "o/reconstruction.npz")) as z:
                for name in ("reconstructed_object", "reconstructed_probe", "error_history"):
                    np.testing.assert_array_equal(z[name], self.solved.arrays[name])

    def test_training_and_inference(self):
        scan = fathom.ptycho.simulate(N=64, size=128, lines=60, n_images=24, buffer=34, nphotons=1e6)
        model = fathom.ptycho.train(scan, N=64, nepochs=1, n_groups=16, n_filters_scale=1)
        self.assertEqual(len(model.history["loss"]), 1)
        r = fathom.ptycho.infer(model, scan, n_groups=16)
        self.assertTrue(np.isfinite(r.object).all())
        with tempfile.TemporaryDirectory() as d:
            path = model.save(os.path.join(d, "m.safetensors"))
            again = fathom.ptycho.infer(path, scan, n_groups=16)
        np.testing.assert_array_equal(r.object, again.object)
        folder = os.path.dirname(model.path)
        del model
        self.assertFalse(os.path.exists(folder))

    def test_building_blocks(self):
        rng = np.random.default_rng(1)
        images = (rng.normal(size=(2, 16, 20)) + 1j * rng.normal(size=(2, 16, 20))).astype(np.complex64)
        still = fathom.ptycho.op("translate", {"images": images, "offsets_xy": np.zeros((2, 2), np.float32)})
        np.testing.assert_array_equal(still["out"], images)
        for nothing in (None, {}):
            self.assertEqual(fathom.ptycho.op("probe", nothing, N=32)["probe"].shape, (32, 32))
            self.assertEqual(fathom.ptycho.op("object", nothing, size=40)["object"].shape, (40, 40))
        with self.assertRaises(fathom.Error) as e:
            fathom.ptycho.op("translate", {"images": images, "offsets_xy": np.zeros((3, 2), np.float32)})
        self.assertIn("3", str(e.exception))

    def test_mistakes(self):
        with self.assertRaises(fathom.Error) as e:
            fathom.ptycho.solve(self.scan, algoritm="lsqml")
        self.assertIn("algorithm", str(e.exception))
        with self.assertRaises(fathom.Error) as e:
            fathom.ptycho.solve(self.scan, algorithm="lsq")
        self.assertIn("lsqml", str(e.exception))
        with self.assertRaises(fathom.Error) as e:
            fathom.ptycho.solve({k: v for k, v in self.scan.items() if k != "ycoords"})
        self.assertIn("ycoords", str(e.exception))
        # dots of keys are underscores
        r = fathom.ptycho.solve(self.scan, algorithm="epie", iterations=1, positions_use="true")
        self.assertTrue(np.isfinite(r.object).all())

    @classmethod
    def tearDownClass(cls):
        del cls.solved
        left = set(glob.glob(os.path.join(tempfile.gettempdir(), "tmp*", "printed.txt")))
        assert not left, left  # folders of calls are gone


if __name__ == "__main__":
    unittest.main()
