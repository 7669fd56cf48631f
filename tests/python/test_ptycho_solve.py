"""solve of ptycho as people run it: ptypy's numbers, equal bytes, kills, positions, modes, masks, mistakes.
seconds: 40"""
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = os.path.join(ROOT, "tests/golden/ptycho")
AS_PTYPY = ("--precision double --scale_every 0 --object_init file --probe_power file --probe_start 0 "
            "--overlap_iterations 1 --power_bound auto --variant ptypy").split()


def object_of(size, seed=2):
    """Smooth, of amplitudes from 0.6 to 1 and phases of some tenths of a radian."""
    rng = np.random.RandomState(seed)
    k = np.fft.fftfreq(size)
    low = np.exp(-400 * (k[:, None] ** 2 + k**2))
    a, p = (np.fft.ifft2(np.fft.fft2(rng.randn(size, size)) * low).real for _ in range(2))
    return (1 - 0.1 * np.clip(a / a.std(), -2, 2) ** 2) * np.exp(0.3j * p / p.std())


def probe_of(n):
    y, x = np.mgrid[:n, :n] - n // 2
    return np.exp(-(x**2 + y**2) / 2 / (n / 6) ** 2) * np.exp(4j * (x**2 + y**2) / n**2)


def patterns_of(obj, modes, x, y, photons):
    """Counts of a scan, centred; fractions of positions move the probe."""
    n = modes[0].shape[0]
    f = np.fft.fftfreq(n)
    out = []
    for cy, cx in zip(y, x):
        r, c = int(np.rint(cy)), int(np.rint(cx))
        ramp = np.exp(-2j * np.pi * ((cy - r) * f[:, None] + (cx - c) * f))
        patch = obj[r - n // 2 : r + n // 2, c - n // 2 : c + n // 2]
        lit = [np.fft.ifft2(np.fft.fft2(p) * ramp) * patch for p in modes]
        out.append(np.fft.fftshift(sum(np.abs(np.fft.fft2(w, norm="ortho")) ** 2 for w in lit)))
    out = np.array(out)
    out *= photons / out.sum((1, 2)).mean()
    return np.random.RandomState(7).poisson(out).astype(float)


class Solve(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def at(self, name):
        return os.path.join(self.dir, name)

    def run_it(self, *words, code=0):
        r = subprocess.run([PROGRAM, "ptycho", "solve", "--pictures", "false", *words], capture_output=True, text=True, cwd=self.dir,
                           timeout=120)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def result(self, folder):
        with np.load(self.at(f"{folder}/reconstruction.npz")) as z:
            return dict(z)

    def bytes_of(self, folder):
        with open(self.at(f"{folder}/reconstruction.npz"), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def make_scan(self, name="scan.npz", n=32, patterns=80, fraction=False, modes=1, photons=1e6, **more):
        rng = np.random.RandomState(4)
        obj, probe = object_of(64 + n), probe_of(n)
        x, y = rng.uniform(n / 2 + 4, n / 2 + 60, (2, patterns))
        if not fraction:
            x, y = np.rint(x), np.rint(y)
        column = np.arange(n) - n // 2
        fields = [probe, 0.4 * column / 6 * probe][:modes]
        counts = patterns_of(obj, fields, x, y, photons)
        yy, xx = np.mgrid[:n, :n] - n // 2
        start = probe * np.exp(1j * (xx**2 + yy**2) / n**2)
        arrays = {"diff3d": np.sqrt(counts), "xcoords": x, "ycoords": y, "probeGuess": start, "objectGuess": obj}
        arrays.update(more)
        np.savez(self.at(name), **arrays)
        return arrays

    # ---- ptypy ----

    def test_engines_of_ptypy(self):
        with np.load(os.path.join(GOLDEN, "g9_ptypy_engines.npz")) as z:
            g = dict(z)
        n = 32
        y, x = np.mgrid[:n, :n]
        factor = g["pre"] * (-1.0) ** (y + x)
        np.savez(self.at("g9.npz"), diff3d=np.sqrt(g["diff"].astype(float)), mask=g["mask"],
                 xcoords=g["rowcol"][:, 1] + n / 2, ycoords=g["rowcol"][:, 0] + n / 2,
                 probeGuess=g["probe0"][0] * factor, objectGuess=g["obj0"][0])
        np.save(self.at("order.npy"), g["epie_order"])
        for name, words, most in (("dm1", "--algorithm dm --iterations 1", 1e-6),
                                  ("dm20", "--algorithm dm --iterations 20", 1e-2),
                                  ("raar20", "--algorithm raar --iterations 20", 1e-6),
                                  ("epie3", "--algorithm epie --iterations 3 --order order.npy", 1e-6)):
            self.run_it("g9.npz", "--out", name, *words.split(), *AS_PTYPY)
            r = self.result(name)
            ox, oy = (-r["canvas_origin"]).astype(int)
            want = g[f"{name}_obj"][0]
            found = r["reconstructed_object"][oy : oy + want.shape[0], ox : ox + want.shape[1]]
            self.assertLess(np.linalg.norm(found - want) / np.linalg.norm(want), most, name)
            want, found = g[f"{name}_probe"][0], r["reconstructed_probe"][0] / factor
            self.assertLess(np.linalg.norm(found - want) / np.linalg.norm(want), most, name)

    # ---- bytes ----

    def test_same_bytes_at_any_budget_and_threads(self):
        self.make_scan(fraction=True)
        for algorithm in ("lsqml --batch 7 --noise_model poisson", "epie", "rpie --batch 5 --modes 2", "dm", "raar", "pie",
                          "mpie --batch 2 --momentum_every 9"):
            seen = set()
            for limits in ("--threads 1", "--threads 2", "--threads 2 --memory 20M"):
                self.run_it("scan.npz", "--out", "out", "--force", "--iterations", "4", "--algorithm",
                            *algorithm.split(), *limits.split())
                seen.add(self.bytes_of("out"))
            self.assertEqual(len(seen), 1, algorithm)

    def test_exit_waves_on_the_disk(self):
        self.make_scan(n=64, patterns=150)
        words = ["--algorithm", "dm", "--iterations", "2", "--precision", "double"]
        self.run_it("scan.npz", "--out", "all", *words)
        words += ["--memory", "18M"]  # the waves are 9.4 MiB
        self.run_it("scan.npz", "--out", "not/there/less", *words)
        self.assertEqual(self.bytes_of("all"), self.bytes_of("not/there/less"))
        said = self.run_it("scan.npz", "--out", "x", *words, "--scratch", self.at("nowhere"), code=3)
        self.assertIn("nowhere/exit waves", said)
        self.assertFalse(os.path.exists(self.at("x")))
        # With memory for the waves, but then not for what a constraint needs, they are on the disk too.
        self.make_scan(patterns=400, modes=2)
        words = "scan.npz --out y --modes 2 --raster_period 2 --algorithm raar --iterations 1 --plan".split()
        for kib in range(13000, 15251, 250):
            self.run_it(*words, "--memory", f"{kib}K")

    def test_what_is_chosen_is_said(self):
        self.make_scan(patterns=20)
        words = ["--algorithm", "epie", "--iterations", "1", "--out", "x"]
        for flags, said in (([], "20 patterns of 32 x 32, amplitude unless --data.kind says otherwise, positions with sign +1"),
                            (["--data.kind", "counts", "--positions.sign", "-1"], "counts as declared, positions with sign -1")):
            self.assertIn(said, self.run_it("scan.npz", *words, *flags))
        said = self.run_it("scan.npz", *words, "--raster_period", "4,5", "--object_max", "1.6", "--centre_probe", "true")
        self.assertIn("keys: algorithm epie, iterations 1, object_max 1.6, raster_period 4 5, centre_probe true; the others by default\n",
                      said.replace("pictures false, ", ""))

    def test_more_memory_is_never_worse(self):
        """Pieces of patterns that fit must leave room for the transforms of a constraint: 8.5 MiB were refused where 8 were taken."""
        self.make_scan(patterns=400, modes=2)
        for algorithm in (["raar"], ["lsqml", "--batch", "16", "--momentum", "0.5"]):
            words = ["scan.npz", "--modes", "2", "--raster_period", "2", "--iterations", "1", "--algorithm", *algorithm]
            for kib in range(7000, 10001, 500):
                self.run_it(*words, "--out", "y", "--plan", "--memory", f"{kib}K")
            self.run_it(*words, "--out", algorithm[0])
            self.run_it(*words, "--out", algorithm[0] + "-little", "--memory", "7000K")
            self.assertEqual(self.bytes_of(algorithm[0]), self.bytes_of(algorithm[0] + "-little"))

    def test_pictures_cost_no_result(self):
        """What fits to be solved fits to be drawn, and the result is there before the first picture."""
        at = np.linspace(16, 796, 8)
        y, x = (v.ravel() for v in np.meshgrid(at, at))
        np.savez(self.at("wide.npz"), diff3d=np.random.RandomState(3).rand(64, 32, 32), xcoords=x, ycoords=y, probeGuess=probe_of(32))
        words = [PROGRAM, "ptycho", "solve", "wide.npz", "--iterations", "1", "--memory", "21M", "--quiet", "--out"]
        subprocess.run([*words, "a", "--plan"], cwd=self.dir, check=True, capture_output=True)
        subprocess.run([*words, "a"], cwd=self.dir, check=True)
        pictures = {"reconstructed_amplitude.png", "reconstructed_phase.png", "probe.png", "overlap.png"}
        self.assertLessEqual(pictures | {"reconstruction.npz", "errors.csv", "run.json"}, set(os.listdir(self.at("a"))))
        os.makedirs(self.at("b/reconstructed_amplitude.png/x"))
        self.assertNotEqual(subprocess.run([*words, "b"], cwd=self.dir, capture_output=True).returncode, 0)
        self.assertEqual(self.bytes_of("a"), self.bytes_of("b"))

    def test_killed_and_resumed(self):
        self.make_scan()
        for algorithm in ("lsqml --batch 8 --momentum 0.5", "dm", "mpie --momentum_every 70"):
            words = ["scan.npz", "--iterations", "60", "--algorithm", *algorithm.split(), "--rng", "compat"]
            self.run_it(*words, "--out", "whole")
            shutil.rmtree(self.at("cut"), ignore_errors=True)
            p = subprocess.Popen([PROGRAM, "ptycho", "solve", "--pictures", "false", *words, "--out", "cut"], cwd=self.dir,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 60
            while not os.path.exists(self.at("cut/checkpoint.safetensors")) and time.monotonic() < end:
                time.sleep(0.005)
            p.send_signal(signal.SIGKILL)
            p.wait()
            self.assertFalse(os.path.exists(self.at("cut/reconstruction.npz")))
            self.assertIn("resuming from the checkpoint", self.run_it(*words, "--out", "cut"))
            self.assertEqual(self.bytes_of("whole"), self.bytes_of("cut"), algorithm)
            self.assertFalse(os.path.exists(self.at("cut/checkpoint.safetensors")))

    def test_checkpoint_of_other_settings_or_damaged(self):
        self.make_scan()
        words = ["scan.npz", "--iterations", "8", "--algorithm", "lsqml", "--out", "out"]
        self.run_it(*words)
        want = self.bytes_of("out")
        with open(self.at("out/checkpoint.safetensors"), "wb") as f:
            f.write(b"\0" * 64)
        self.assertIn("starting over", self.run_it(*words))
        self.assertEqual(self.bytes_of("out"), want)

    # ---- what it finds ----

    def error(self, folder, truth, x, y):
        """Of the object between the positions, after scale, phase and a shift of whole pixels."""
        r = self.result(folder)
        ox, oy = r["canvas_origin"].astype(int)
        r0, r1, c0, c1 = int(y.min()) + 4, int(y.max()) - 4, int(x.min()) + 4, int(x.max()) - 4
        found = r["reconstructed_object"][r0 - oy : r1 - oy, c0 - ox : c1 - ox]
        best = 1.0
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                want = truth[r0 + dy : r1 + dy, c0 + dx : c1 + dx]
                a = np.vdot(found, want) / np.vdot(found, found)
                best = min(best, np.linalg.norm(a * found - want) / np.linalg.norm(want))
        return best

    def test_fractions_move_the_probe(self):
        a = self.make_scan(fraction=True, photons=1e7)
        last = {}
        for subpixel in ("fourier", "none"):
            self.run_it("scan.npz", "--out", subpixel, "--algorithm", "lsqml", "--batch", "10", "--iterations", "40",
                        "--subpixel", subpixel)
            last[subpixel] = self.result(subpixel)["error_history"][-1]
        self.assertLess(last["fourier"], 0.6 * last["none"])
        self.assertLess(self.error("fourier", a["objectGuess"], a["xcoords"], a["ycoords"]), 0.08)

    def test_positions_are_corrected(self):
        a = self.make_scan(fraction=True, photons=1e8, patterns=120)
        true = np.stack([a["xcoords"], a["ycoords"]], 1)
        start = true + np.random.RandomState(1).uniform(-1, 1, true.shape)
        np.savez(self.at("off.npz"), **{**a, "xcoords": start[:, 0], "ycoords": start[:, 1]})
        self.run_it("off.npz", "--out", "moved", "--algorithm", "lsqml", "--batch", "12", "--iterations", "100",
                    "--position_start", "3")
        off = [p - true - (p - true).mean(0) for p in (start, self.result("moved")["positions"])]
        before, after = (np.sqrt((d**2).sum(1).mean()) for d in off)
        self.assertLess(after, 0.25 * before)

    def test_modes(self):
        a = self.make_scan(modes=2, photons=1e8)
        found = {}
        for modes in ("1", "2"):
            self.run_it("scan.npz", "--out", modes, "--algorithm", "lsqml", "--batch", "10", "--iterations", "60",
                        "--modes", modes)
            found[modes] = self.result(modes)
        self.assertLess(found["2"]["error_history"][-1], 0.7 * found["1"]["error_history"][-1])
        p = found["2"]["reconstructed_probe"].reshape(2, -1).astype(complex)
        power = (np.abs(p) ** 2).sum(1)
        self.assertGreater(power[0], power[1])
        self.assertLess(abs(np.vdot(p[0], p[1])) / np.sqrt(power[0] * power[1]), 1e-4)
        self.assertLess(self.error("2", a["objectGuess"], a["xcoords"], a["ycoords"]), 0.08)

    def test_momentum(self):
        self.make_scan()
        last = []
        for momentum in ("0", "0.5"):
            self.run_it("scan.npz", "--out", "m" + momentum, "--algorithm", "lsqml", "--batch", "20", "--iterations",
                        "25", "--batching", "compact", "--momentum", momentum)
            last.append(self.result("m" + momentum)["error_history"][-1])
        self.assertLess(last[1], 0.9 * last[0])

    def test_goes_on_from_an_earlier_reconstruction(self):
        self.make_scan(fraction=True)
        words = ["scan.npz", "--algorithm", "lsqml", "--batch", "10"]
        self.run_it(*words, "--out", "first", "--iterations", "30")
        self.run_it(*words, "--out", "more", "--iterations", "1", "--start_from", "first/reconstruction.npz")
        self.run_it(*words, "--out", "anew", "--iterations", "1")
        first, more, anew = (self.result(name)["error_history"] for name in ("first", "more", "anew"))
        self.assertLess(more[0], 1.02 * first[-1])
        self.assertGreater(anew[0], 1.5 * more[0])
        # an object whose pixels lie half-way between those of the canvas, with a corner that nothing is known of
        r = self.result("first")
        o, origin = r["reconstructed_object"], r["canvas_origin"]
        between = (o[:-1, :-1] + o[1:, :-1] + o[:-1, 1:] + o[1:, 1:]) / 4
        between[:3, :3] = 0
        np.savez(self.at("between.npz"), reconstructed_object=between, canvas_origin=origin + 0.5,
                 reconstructed_probe=r["reconstructed_probe"])
        self.run_it(*words, "--out", "half", "--iterations", "1", "--start_from", "between.npz")
        self.assertLess(self.result("half")["error_history"][0], 1.2 * first[-1])
        # without its place, with another probe, with two first objects
        np.savez(self.at("nowhere.npz"), reconstructed_object=o)
        self.assertIn("no canvas_origin", self.run_it(*words, "--out", "x", "--start_from", "nowhere.npz", code=3))
        np.savez(self.at("wide.npz"), reconstructed_object=o, canvas_origin=origin,
                 reconstructed_probe=np.ones((1, 16, 16), complex))
        self.assertIn("has 16 x 16 pixels, the patterns have 32 x 32",
                      self.run_it(*words, "--out", "x", "--start_from", "wide.npz", code=3))
        self.assertIn("leave object_init out",
                      self.run_it(*words, "--out", "x", "--start_from", "first/reconstruction.npz", "--object_init",
                                  "ones", code=2))
        self.assertFalse(os.path.exists(self.at("x")))

    def test_kept_exit_waves_and_modes_stay_together(self):
        a = self.make_scan(modes=2, photons=1e7)
        np.savez(self.at("aside.npz"), **{**a, "probeGuess": np.roll(a["probeGuess"], (3, -2), (0, 1))})
        for algorithm in ("dm", "raar"):
            words = ("--algorithm", algorithm, "--iterations", "30")
            self.run_it("scan.npz", "--out", "on", *words, "--modes", "2")
            self.run_it("scan.npz", "--out", "off", *words, "--modes", "2", "--orthogonalise", "false")
            on, off = self.result("on"), self.result("off")
            # other modes of the same light: the same errors, the same object, and orthogonal at the end
            self.assertEqual(on["error_history"].tobytes(), off["error_history"].tobytes())
            self.assertEqual(on["reconstructed_object"].tobytes(), off["reconstructed_object"].tobytes())
            p, q = on["reconstructed_probe"], off["reconstructed_probe"]
            self.assertLess(abs(np.vdot(p[0], p[1])), 1e-5 * np.vdot(p, p).real)
            self.assertGreater(abs(np.vdot(q[0], q[1])), 1e-3 * np.vdot(q, q).real)
            self.assertTrue(np.allclose((np.abs(p) ** 2).sum(0), (np.abs(q) ** 2).sum(0), rtol=1e-3, atol=1e-5 * np.abs(q).max() ** 2))
            # the middle: probe and object move once, together
            self.run_it("aside.npz", "--out", "here", *words, "--centre_probe", "true")
            self.run_it("aside.npz", "--out", "there", *words)
            here, there = self.result("here"), self.result("there")
            self.assertEqual(here["error_history"].tobytes(), there["error_history"].tobytes())
            light = (np.abs(here["reconstructed_probe"][0]) ** 2)
            middle = [(light.sum(1 - k) * (np.arange(32) - 16)).sum() / light.sum() for k in (0, 1)]
            self.assertLess(np.abs(middle).max(), 0.51)
            self.assertFalse(np.array_equal(here["reconstructed_object"], there["reconstructed_object"]))

    def test_probes_that_differ_from_pattern_to_pattern(self):
        a = self.make_scan()
        rng, column, counts = np.random.RandomState(3), np.arange(32) - 16, []
        for x, y in zip(a["xcoords"], a["ycoords"]):
            p = probe_of(32) * (1 + 0.2 * rng.randn() + 0.3 * rng.randn() * column / 8)
            counts.append(patterns_of(a["objectGuess"], [p], [x], [y], 1e7 * (np.abs(p) ** 2).sum())[0])
        np.savez(self.at("differ.npz"), **{**a, "diff3d": np.sqrt(counts)})
        last = []
        for opr in ("0", "2"):
            self.run_it("differ.npz", "--out", "q" + opr, "--algorithm", "lsqml", "--batch", "20", "--iterations", "40",
                        "--opr", opr)
            last.append(self.result("q" + opr)["error_history"][-1])
        self.assertLess(last[1], 0.5 * last[0])
        self.assertNotIn("opr_weights", self.result("q0"))
        r, n = self.result("q2"), 32
        self.assertEqual((r["opr_probes"].shape, r["opr_weights"].shape), ((2, n, n), (len(counts), 3)))
        mean_square = (np.abs(r["opr_probes"]) ** 2).mean((1, 2))
        self.assertTrue(np.allclose(mean_square, 1, rtol=1e-4), mean_square)

        def error(weights):  # the model said again, from what the file holds
            above = 0.0
            for w, at, c in zip(weights, r["positions"], counts):
                x, y = np.rint(at - r["canvas_origin"]).astype(int) - n // 2
                p = w[0] * r["reconstructed_probe"][0] + np.tensordot(w[1:], r["opr_probes"], 1)
                wave = np.fft.fft2(p * r["reconstructed_object"][y:y + n, x:x + n], norm="ortho")
                above += ((np.fft.fftshift(np.abs(wave)) - np.sqrt(c)) ** 2).sum()
            return np.sqrt(above / np.sum(counts))

        self.assertLess(error(r["opr_weights"]), 1.05 * last[1])
        self.assertGreater(error(r["opr_weights"] * [1, 0, 0]), 2 * last[1])
        self.assertIn("has no eigenprobes", self.run_it("differ.npz", "--out", "x", "--opr", "1", code=2))

    def test_eigenprobes_of_a_probe_that_stays_do_no_harm(self):
        self.make_scan(photons=1e7)
        last = []
        for opr in ("0", "2", "3"):
            self.run_it("scan.npz", "--out", "s" + opr, "--algorithm", "lsqml", "--batch", "20", "--iterations", "60",
                        "--opr", opr)
            last.append(self.result("s" + opr)["error_history"][-1])
        self.assertLess(max(last[1:]), 1.2 * last[0], last)

    def test_errors_that_grow_are_told(self):
        self.make_scan(photons=1e7)
        said = self.run_it("scan.npz", "--out", "good", "--algorithm", "lsqml", "--batch", "20", "--iterations", "30")
        self.assertNotIn("warning: R grew", said)
        said = self.run_it("scan.npz", "--out", "bad", "--algorithm", "epie", "--probe_start", "3", "--probe_alpha", "2.5",
                           "--iterations", "8", "--start_from", "good/reconstruction.npz")
        r = self.result("bad")["error_history"]
        best = int(np.argmin(r))
        self.assertGreater(r[-1], 10 * r[best])
        self.assertIn(f"warning: R grew from {r[best]:.5f} in epoch {best + 1} to", said)

    def test_masked_pixels_are_not_looked_at(self):
        a = self.make_scan(photons=1e7)
        mask = np.ones((32, 32), bool)
        mask[6:9, 3:30] = False
        spoiled = a["diff3d"].copy()
        spoiled[:, ~mask] = 1e4
        np.savez(self.at("spoiled.npz"), **{**a, "diff3d": spoiled, "mask": mask})
        np.savez(self.at("zero.npz"), **{**a, "diff3d": np.where(mask, a["diff3d"], 0), "mask": mask})
        for name in ("spoiled", "zero"):
            self.run_it(f"{name}.npz", "--out", name, "--algorithm", "rpie", "--iterations", "30")
        one, other = self.result("spoiled"), self.result("zero")
        np.testing.assert_array_equal(one["reconstructed_object"], other["reconstructed_object"])
        self.assertLess(self.error("zero", a["objectGuess"], a["xcoords"], a["ycoords"]), 0.08)

    # ---- constraints ----

    def test_constraints_are_their_plain_statements(self):
        """An epoch with a constraint ends as the one without, constrained."""
        self.make_scan(fraction=True, modes=2, patterns=40)
        words = ["scan.npz", "--algorithm", "lsqml", "--modes", "2", "--iterations", "1", "--precision", "double"]

        def after(name, *flags):
            self.run_it(*words, "--out", name, *flags)
            r = self.result(name)
            return r["reconstructed_object"].astype(complex), r["reconstructed_probe"].astype(complex)

        def smooth(o, a):
            p = np.pad(o, 1, "edge")
            near = sum(p[i : i + o.shape[0], j : j + o.shape[1]] for i in range(3) for j in range(3)) - o
            return (1 - 8 * a) * o + a * near

        def variation(o, weight):
            dual = np.zeros((2, *o.shape), complex)
            div = lambda: np.diff(dual[0], axis=0, prepend=0) + np.diff(dual[1], axis=1, prepend=0)
            for _ in range(20):
                u = div() - o / weight
                g = np.stack([np.diff(u, axis=0, append=u[-1:]), np.diff(u, axis=1, append=u[:, -1:])])
                dual = (dual + g / 4) / (1 + np.sqrt((abs(g) ** 2).sum(0)) / 4)
            return o - weight * div()

        def lower_peaks(o, px, py):
            f, (h, w) = np.fft.fft2(o), o.shape
            for i in range(-int(py // 2), int(py // 2) + 1):
                for j in range(-int(px // 2), int(px // 2) + 1):
                    if abs(i * h / py) <= 3 and abs(j * w / px) <= 3:
                        continue
                    y, x = round(i * h / py), round(j * w / px)
                    box = np.ix_(np.arange(y - 3, y + 4) % h, np.arange(x - 3, x + 4) % w)
                    part = f[box]
                    ring = np.ones((7, 7), bool)
                    ring[2:5, 2:5] = False
                    most = abs(part[ring]).mean()
                    part[~ring] *= np.minimum(1, most / abs(part[~ring]))
                    f[box] = part
            return np.fft.ifft2(f)

        def blurred(a, s=3, reach=12):
            k = np.exp(-np.arange(-reach, reach + 1) ** 2 / (2 * s**2))
            line = lambda v: np.convolve(np.pad(v, reach, "symmetric"), k / k.sum(), "valid")
            return np.apply_along_axis(line, 1, np.apply_along_axis(line, 0, a))

        o, p = after("none")
        n = p.shape[-1]
        phase = np.clip(np.angle(o), -0.1, 0.2)
        y, x = np.mgrid[:n, :n] - n // 2 + 0.5
        disc = np.hypot(x, y) <= 6
        wide = np.hypot(*np.meshgrid(np.fft.fftfreq(n, 1 / n), np.fft.fftfreq(n, 1 / n))) <= 5.5
        amplitude = blurred(np.sqrt((abs(p) ** 2).sum(0)))
        cases = [("clip", ["--object_min", "0.9", "--object_max", "1.05"], o / abs(o) * np.clip(abs(o), 0.9, 1.05), p),
                 ("phase", ["--phase_min", "-0.1", "--phase_max", "0.2"], abs(o) * np.exp(1j * phase), p),
                 ("smooth", ["--object_smooth", "0.06"], smooth(o, 0.06), p),
                 ("tv", ["--object_tv", "0.05"], variation(o, 0.05), p),
                 ("raster", ["--raster_period", "6.5,4"], lower_peaks(o, 6.5, 4), p),
                 ("mask", ["--probe_mask", "true", "--probe_mask_diameter", "12", "--probe_mask_sigma", "0"], o, p * disc),
                 ("threshold", ["--probe_threshold", "0.4"], o, p * (amplitude >= 0.4 * amplitude.max())),
                 ("aperture", ["--probe_aperture", "11"], o, np.fft.ifft2(np.fft.fft2(p) * wide))]
        for name, flags, want_o, want_p in cases:
            self.assertGreater(abs(want_o - o).max() + abs(want_p - p).max() / abs(p).max(), 1e-4, name)
            got_o, got_p = after(name, *flags)
            self.assertLess(abs(got_o - want_o).max(), 2e-6, name)
            self.assertLess(abs(got_p - want_p).max(), 2e-6 * abs(p).max(), name)
        self.assertIn("expected at most phase_max", self.run_it(*words, "--phase_min", "1", "--phase_max", "0", code=2))
        seen = set()
        for limits in ("--threads 1", "--threads 2", "--threads 2 --memory 24M"):
            self.run_it(*words, "--out", "all", "--force", *limits.split(), *(w for _, flags, _, _ in cases for w in flags))
            seen.add(self.bytes_of("all"))
        self.assertEqual(len(seen), 1)

    def test_positions_keep_their_mean(self):
        self.make_scan(fraction=True, patterns=40)
        words = ["scan.npz", "--algorithm", "lsqml", "--iterations", "3", "--position_start", "0"]
        self.run_it(*words, "--out", "free")
        self.run_it(*words, "--out", "held", "--keep_mean_position", "true")
        with np.load(self.at("scan.npz")) as z:
            start = np.stack([z["xcoords"], z["ycoords"]], 1)
        free, held = (abs((self.result(name)["positions"] - start).mean(0)).max() for name in ("free", "held"))
        self.assertGreater(free, 1e-4)
        self.assertLess(held, 1e-9)

    # ---- mistakes ----

    def test_a_folder_belongs_to_one_run(self):
        self.make_scan()
        first = subprocess.Popen([PROGRAM, "ptycho", "solve", self.at("scan.npz"), "--out", self.at("one"),
                                  "--algorithm", "lsqml", "--iterations", "100000"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(self.at("one/.fathom/lock")):
                self.assertIsNone(first.poll())
                time.sleep(0.05)
            self.assertIn("another run has this directory", self.run_it("scan.npz", "--out", "one", code=2))
        finally:
            first.kill()
            first.wait()

    def test_mistakes(self):
        a = self.make_scan()
        self.assertIn("did you mean 'lsqml'", self.run_it("scan.npz", "--out", "x", "--algorithm", "lsqm", code=2))
        self.assertIn("does not correct positions", self.run_it("scan.npz", "--out", "x", "--algorithm", "dm",
                                                     "--position_start", "1", code=2))
        self.assertIn("power_bound", self.run_it("scan.npz", "--out", "x", "--power_bound", "much", code=2))
        np.save(self.at("order.npy"), np.full((1, 80), 80))
        self.assertIn("expected a pattern from 0 to 79, found 80",
                      self.run_it("scan.npz", "--out", "x", "--order", "order.npy", code=3))
        twice = np.array([np.arange(80), np.arange(80)[::-1]])
        twice[1, 7] = twice[1, 3]
        for order, said in ((twice, "row 1: expected every pattern once, found pattern 76 in columns 3 and 7"),
                            (twice[:, :79], "with all 80 patterns, found [2 79]"), (twice[0], "found i64 with 1 axes")):
            np.save(self.at("order.npy"), order)
            self.assertIn(said, self.run_it("scan.npz", "--out", "x", "--order", "order.npy", code=3))
        del a["objectGuess"]
        np.savez(self.at("bare.npz"), **a)
        self.assertIn("has no object", self.run_it("bare.npz", "--out", "x", "--object_init", "file", code=3))
        a["xcoords"] = a["xcoords"] * 1e7
        np.savez(self.at("far.npz"), **a)
        self.assertIn("too large for a canvas", self.run_it("far.npz", "--out", "x", code=4))
        np.savez(self.at("away.npz"), **{**a, "xcoords": a["xcoords"] / 1e7 + 1e13})
        self.assertIn("too far from 0", self.run_it("away.npz", "--out", "x", code=3))
        a["xcoords"] = a["xcoords"] / 1e3
        np.savez(self.at("wide.npz"), **{**a, "ycoords": a["ycoords"] * 1e3})
        self.assertIn("and its weights need", self.run_it("wide.npz", "--out", "x", "--memory", "64M", code=4))
        self.assertFalse(os.path.exists(self.at("x")))

    def test_no_number_ends_the_run(self):
        self.make_scan()
        out = self.run_it("scan.npz", "--out", "x", "--algorithm", "epie", "--object_alpha", "10", "--probe_alpha",
                          "10", "--iterations", "200", code=7)
        self.assertIn("not finite after epoch", out)
        self.assertFalse(os.path.exists(self.at("x/reconstruction.npz")))


if __name__ == "__main__":
    unittest.main()
