"""evaluate, compare and view of ptycho as people run them: golden numbers, files, frames, mistakes.
seconds: 20"""
import csv
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = os.path.join(ROOT, "tests/golden/ptycho")


def smooth(rows, cols, y0=0.0, x0=0.0):
    """A field of low frequencies, as it is at (row + y0, col + x0)."""
    y, x = np.mgrid[:rows, :cols].astype(float)
    y, x = y + y0, x + x0
    amplitude = 1 + 0.3 * np.sin(y / 5.1) * np.cos(x / 6.3) + 0.2 * np.sin((x + y) / 9)
    phase = 0.8 * np.sin(x / 8.2) + 0.5 * np.cos(y / 7.7 + x / 20)
    return (amplitude * np.exp(1j * phase)).astype(np.complex64)


class Evaluate(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        with np.load(os.path.join(GOLDEN, "g7_metrics.npz")) as z:
            np.savez(self.at("recon.npz"), reconstructed_object=z["recon"])
            np.save(self.at("truth.npy"), z["truth"])
            np.savez(self.at("only.npz"), something=z["truth"], number=np.arange(3.0))
        with open(os.path.join(GOLDEN, "g7_metrics.json")) as f:
            self.golden = json.load(f)

    def at(self, name):
        return os.path.join(self.dir, name)

    def run_it(self, *words, code=0):
        r = subprocess.run([PROGRAM, "ptycho", *words], capture_output=True, text=True, cwd=self.dir, timeout=120)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def metrics(self, folder):
        with open(self.at(f"{folder}/metrics.json")) as f:
            return json.load(f)

    def compare(self, found, want):
        for name in ("mae", "mse", "psnr", "ssim", "ms_ssim", "frc50", "frc1over7"):
            for got, wanted in zip(found[name], want[name]):
                tolerance = 1e-3 if name == "psnr" else 1e-4 * abs(wanted)
                self.assertAlmostEqual(got, wanted, delta=tolerance, msg=name)
        np.testing.assert_allclose(found["frc"], want["frc"], atol=1e-4)

    def test_golden_numbers(self):
        self.run_it("evaluate", "recon.npz", "truth.npy", "--out", "plane")
        found = self.metrics("plane")
        self.compare(found, self.golden["after_registration_plane"])
        np.testing.assert_allclose(found["shift_found_yx"], self.golden["shift_found_yx"], atol=1e-6)
        # an NPZ with one complex image needs no name
        self.run_it("evaluate", "recon.npz", "only.npz", "--out", "mean", "--skip_registration", "true",
                    "--phase_align", "mean")
        self.compare(self.metrics("mean"), self.golden["unregistered_mean"])
        with open(self.at("mean/metrics.csv")) as f:
            rows = {r["metric"]: r for r in csv.DictReader(f)}
        self.assertEqual(float(rows["ssim"]["phase"]), self.metrics("mean")["ssim"][1])
        with open(self.at("mean/frc_curves.csv")) as f:
            curve = [float(r["amplitude"]) for r in csv.DictReader(f)]
        self.assertEqual(curve, self.metrics("mean")["frc"][0])

    def test_complex_correlation(self):
        """Of deviations from the mean, whatever the scale, the phase and its ramp: as NumPy has it."""
        truth = smooth(90, 80)
        noisy = truth + 0.2 * np.random.default_rng(1).normal(size=truth.shape + (2,)).view(complex)[..., 0]
        y, x = np.mgrid[:90, :80]
        np.save(self.at("truth.npy"), truth)
        np.save(self.at("noisy.npy"), (0.3j * noisy * np.exp(1j * (0.11 * x - 0.07 * y))).astype(np.complex64))
        np.save(self.at("flat.npy"), np.full_like(truth, 1 + 2j))
        found = {}
        for name in ("noisy", "flat"):
            self.run_it("evaluate", f"{name}.npy", "truth.npy", "--out", name, "--skip_registration", "true")
            found[name] = self.metrics(name)["complex_correlation"]
        a, b = truth[2:-2, 2:-2] - truth[2:-2, 2:-2].mean(), noisy[2:-2, 2:-2] - noisy[2:-2, 2:-2].mean()
        want = abs(np.vdot(a, b)) / np.linalg.norm(a) / np.linalg.norm(b)
        self.assertGreater(want, 0.8)
        self.assertAlmostEqual(found["noisy"], want, delta=2e-3)
        self.assertTrue(np.isnan(found["flat"]))

    def test_frames(self):
        """A canvas is laid on the object by its origin, and only what was scanned is compared."""
        truth = smooth(120, 140)
        x, y = np.meshgrid(np.arange(50, 91, 8.0), np.arange(40, 81, 8.0))
        positions = np.c_[x.ravel(), y.ravel()]
        canvas = smooth(80, 90, y0=22, x0=27)
        canvas[:3] = 7  # nobody looked there
        np.savez(self.at("canvas.npz"), reconstructed_object=canvas * 2.5, positions=positions,
                 canvas_origin=np.array([27.0, 22.0]))
        np.savez(self.at("scan.npz"), objectGuess=truth, xcoords=positions[:, 0], ycoords=positions[:, 1],
                 diff3d=np.ones((len(positions), 16, 16), np.float32), probeGuess=np.ones((16, 16), np.complex64))
        self.run_it("evaluate", "canvas.npz", "scan.npz", "--out", "o")
        m = self.metrics("o")
        self.assertEqual(m["shift_found_yx"], [0, 0])
        self.assertEqual(m["compared"], [40 + 20 - 8, 40 + 20 - 8])
        self.assertLess(m["mae"][0], 1e-5)
        self.assertGreater(m["ssim"][1], 0.9999)
        # the same canvas against a .npy of the whole object
        np.save(self.at("whole.npy"), truth)
        self.run_it("evaluate", "canvas.npz", "whole.npy", "--out", "w")
        self.assertLess(self.metrics("w")["mae"][0], 1e-5)
        np.savez(self.at("far.npz"), reconstructed_object=canvas, canvas_origin=np.array([900.0, 0.0]))
        self.assertIn("do not overlap", self.run_it("evaluate", "far.npz", "scan.npz", "--out", "x", code=3))

    def test_patterns_without_a_truth(self):
        """R of a model that explains its patterns is zero, and twice the probe is R = 1."""
        rng = np.random.default_rng(3)
        n, side = 6, 16
        truth = smooth(64, 64)
        yy, xx = np.mgrid[:side, :side] - side / 2
        probe = 20 * np.exp(-(xx**2 + yy**2) / 20) * np.exp(0.05j * (xx**2 + 3 * yy))
        pos = np.c_[rng.integers(10, 50, n), rng.integers(10, 50, n)].astype(float)
        waves = [np.fft.fft2(probe * truth[int(y) - 8:int(y) + 8, int(x) - 8:int(x) + 8], norm="ortho") for x, y in pos]
        diff = np.fft.fftshift(np.abs(waves), axes=(1, 2)).astype(np.float32)
        np.savez(self.at("scan.npz"), diff3d=diff, xcoords=pos[:, 0], ycoords=pos[:, 1],
                 probeGuess=probe.astype(np.complex64))
        origin = np.array([0.0, 0.0])
        np.savez(self.at("good.npz"), reconstructed_object=truth, reconstructed_probe=probe.astype(np.complex64),
                 positions=pos, canvas_origin=origin)
        np.savez(self.at("double.npz"), reconstructed_object=truth, reconstructed_probe=2 * probe.astype(np.complex64),
                 positions=pos, canvas_origin=origin)
        self.run_it("evaluate", "good.npz", "scan.npz", "--out", "g")
        self.run_it("evaluate", "double.npz", "scan.npz", "--out", "d")
        self.assertLess(self.metrics("g")["r_factor"], 1e-5)
        self.assertEqual(self.metrics("g")["patterns"], n)
        self.assertAlmostEqual(self.metrics("d")["r_factor"], 1, places=5)
        self.assertAlmostEqual(self.metrics("d")["model_scale"], 0.5, places=5)
        self.assertLess(self.metrics("d")["fourier_error_scaled"], 1e-9)
        self.assertIn("no probe", self.run_it("evaluate", "recon.npz", "scan.npz", "--out", "x", code=3))
        self.assertFalse(os.path.exists(self.at("x")))

    def test_constant_truth_is_nan_with_a_reason(self):
        np.save(self.at("flat.npy"), np.full((72, 72), 0.5 + 0j, np.complex64))
        self.run_it("evaluate", "recon.npz", "flat.npy", "--out", "o")
        m = self.metrics("o")
        self.assertTrue(math.isnan(m["ssim"][0]) and math.isnan(m["frc50"][1]))
        self.assertIn("constant", m["undefined"]["ssim"][0])
        self.assertTrue(math.isfinite(m["mae"][0]))

    def test_halves(self):
        rng = np.random.default_rng(5)
        for name in "ab":
            noise = rng.normal(size=(96, 96, 2)) @ [1, 1j] * 0.1
            np.save(self.at(name + ".npy"), (smooth(96, 96) + noise).astype(np.complex64))
        self.run_it("evaluate", "a.npy", "b.npy", "--halves", "true", "--out", "h")
        h = self.metrics("h")["halves"]
        self.assertGreater(h["frc"][2], 0.95)
        self.assertLess(np.mean(h["frc"][36:46]), 0.3)
        self.assertAlmostEqual(h["resolution_px"], 96 / h["frc_half_bit"])

    def test_halves_of_a_scan(self):
        """--subset odd takes patterns 1, 3, ...: the same as a file that holds only them."""
        self.run_it("simulate", "all.npz", "--N", "32", "--size", "96", "--n_images", "41", "--buffer", "20",
                    "--object_scale", "half", "--nphotons", "1e6")
        with np.load(self.at("all.npz")) as z:
            whole = {name: z[name] for name in z.files}
        for name, first, count in (("odd", 1, 20), ("even", 0, 21)):
            part = {k: v[first::2] if v.ndim and len(v) == 41 else v for k, v in whole.items()}
            self.assertEqual(len(part["xcoords"]), count)
            np.savez(self.at(name + ".npz"), **part)
            solve = ["--algorithm", "lsqml", "--iterations", "3"]
            self.run_it("solve", name + ".npz", *solve, "--out", name)
            self.assertTrue(os.path.exists(self.at(name + "/probe.png")))
            with open(self.at(name + "/run.json")) as f:
                self.assertEqual(json.load(f)["scan"], name + ".npz")
            self.run_it("solve", "all.npz", "--subset", name, *solve, "--out", name + "_of_all", "--pictures", "false")
            self.assertFalse(os.path.exists(self.at(name + "_of_all/probe.png")))
            with np.load(self.at(name + "/reconstruction.npz")) as a, np.load(self.at(name + "_of_all/reconstruction.npz")) as b:
                np.testing.assert_array_equal(a["reconstructed_object"], b["reconstructed_object"])
                np.testing.assert_array_equal(a["positions"], b["positions"])
        self.run_it("evaluate", "odd/reconstruction.npz", "even/reconstruction.npz", "--halves", "true", "--out", "both")
        self.assertGreater(self.metrics("both")["halves"]["frc"][1], 0.5)

    def test_compare_and_view(self):
        np.save(self.at("other.npy"), smooth(72, 72))
        self.run_it("compare", "truth.npy", "first=recon.npz", "other.npy", "--out", "c")
        with open(self.at("c/comparison_metrics.csv")) as f:
            rows = {r["metric"]: r for r in csv.DictReader(f)}
        wanted = self.golden["after_registration_plane"]["ssim"][0]
        self.assertAlmostEqual(float(rows["ssim"]["first_amplitude"]), wanted, delta=1e-4)
        self.assertIn("other_phase", rows["mae"])
        with np.load(self.at("c/reconstructions.npz")) as z:
            self.assertEqual(z["first_complex"].shape, (72, 72))
            np.testing.assert_allclose(np.abs(z["first_complex"]), z["first_amplitude"], rtol=1e-6)
        with np.load(self.at("c/reconstructions_aligned.npz")) as z:
            self.assertEqual(z["first_complex"].shape, z["ground_truth_complex"].shape)
        for name in ("comparison_plot.png", "frc.png", "first_frc_curves.csv", "other_frc_curves.csv"):
            self.assertGreater(os.path.getsize(self.at("c/" + name)), 100)
        self.run_it("compare", "truth.npy", "recon.npz", "recon=recon.npz", "--out", "n", code=2)
        self.run_it("view", "recon.npz", "--out", "v")
        for name in ("reconstructed_amplitude.png", "reconstructed_phase.png"):
            with open(self.at("v/" + name), "rb") as f:
                self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

    def test_mistakes(self):
        np.savez(self.at("none.npz"), a=np.ones((3, 4), np.complex64), b=np.ones((3, 4), np.complex64))
        text = self.run_it("evaluate", "none.npz", "truth.npy", "--out", "x", code=3)
        self.assertIn("a, b", text)
        self.assertIn("none.npz:NAME", text)
        text = self.run_it("evaluate", "none.npz:a", "truth.npy", "--out", "x", code=3)
        self.assertIn("3 x 4", text)
        np.save(self.at("cube.npy"), np.ones(7))
        self.assertIn("two axes", self.run_it("evaluate", "cube.npy", "truth.npy", "--out", "x", code=3))
        with open(self.at("recon.npz"), "rb") as whole, open(self.at("cut.npz"), "wb") as f:
            f.write(whole.read()[:4000])
        self.run_it("evaluate", "cut.npz", "truth.npy", "--out", "x", code=3)
        text = self.run_it("evaluate", "recon.npz", "truth.npy", "--phase_align", "plan", "--out", "x", code=2)
        self.assertIn("'plane'", text)
        self.assertFalse(os.path.exists(self.at("x")))

    def test_same_bytes_for_any_threads(self):
        for threads in "12":
            self.run_it("evaluate", "recon.npz", "truth.npy", "--out", "t" + threads, "--threads", threads)
        for name in ("metrics.json", "metrics.csv", "frc_curves.csv", "frc.png", "evaluation.png"):
            with open(self.at("t1/" + name), "rb") as a, open(self.at("t2/" + name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)


if __name__ == "__main__":
    unittest.main()
