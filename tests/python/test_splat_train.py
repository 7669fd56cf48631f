"""Training splat as people run it: the golden curve through flags, the same bytes however it runs and is interrupted, what
is left in the folder, resuming with other settings, evaluation, jobs of a config, and what is said of bad input.
seconds: 40"""
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import zlib

import numpy as np
from test_splat import PROGRAM, golden, read_safetensors, write_golden

SHORT = ["-i", 120, "--sh-degree", 1, "--set", "sh_degree_interval=30", "--set", "start_refine=20", "--set",
         "refine_every=20", "--set", "stop_refine=90", "--set", "reset_every=50", "--max-cap", 1500, "--quiet"]
RESULTS = ["splat_120.ply", "checkpoints/model.safetensors", "loss.csv"]


def call(*words, cwd, timeout=120, env=None):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=timeout,
                          env={**os.environ, **(env or {})})


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def read_ply(path):
    head, data = pathlib.Path(path).read_bytes().split(b"end_header\n", 1)
    names = [line.split()[2].decode() for line in head.splitlines() if line.startswith(b"property")]
    table = np.frombuffer(data, "<f4").reshape(-1, len(names))
    return {name: table[:, i] for i, name in enumerate(names)}


def read_png(path):
    """A picture of 8 bits and three colours; each row is told from what is left of it and above it."""
    data, at, packed = pathlib.Path(path).read_bytes(), 8, b""
    while at < len(data):
        n, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body, at = data[at + 8:at + 8 + n], at + 12 + n
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            assert body[8:10] == b"\x08\x02", body
        packed += body if kind == b"IDAT" else b""
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    out = np.zeros((height + 1, width + 1, 3), int)
    for i in range(height):
        for j in range(width):
            a, b, c = out[i + 1, j], out[i, j + 1], out[i, j]
            da, db, dc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            paeth = np.where((da <= db) & (da <= dc), a, np.where(db <= dc, b, c))
            out[i + 1, j + 1] = (raw[i, 1 + 3 * j:4 + 3 * j] + (0, a, b, (a + b) // 2, paeth)[raw[i, 0]]) % 256
    return out[1:, 1:]


class Train(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        done = call("splat", "toy", "-o", "toy", "--views", 8, "--size", "64x48", "--gaussians", 600, cwd=cls.dir)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def train(self, out, *more, code=0, env=None):
        done = call("splat", "train", "-d", "toy", "-o", out, *more, cwd=self.dir, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def same(self, a, b, files=RESULTS):
        for name in files:
            self.assertEqual((self.dir / a / name).read_bytes(), (self.dir / b / name).read_bytes(), f"{b}/{name}")

    def test_golden_curve(self):
        folder = self.dir / "golden"
        folder.mkdir()
        write_golden(folder)
        info = call("splat", "info", "golden", "--json", cwd=self.dir)
        scale = json.loads(info.stdout)["scene_scale"]
        done = call("splat", "train", "-d", "golden", "-o", "sixty", "--init-ply", "golden/model.ply", "-i", 60, "--strategy",
                    "default", "--view-order", "in-turn", "--bg", "0.1,0.2,0.3", "--means-lr", 1.6e-4 / scale, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, want = rows_of(self.dir / "sixty/loss.csv"), golden("train60_curve")
        self.assertEqual([int(r["view"]) for r in rows], [i % 4 for i in range(60)])
        got = np.array([[float(r[k]) for k in ("loss", "l1", "ssim")] for r in rows])
        # poses of a transforms.json go through a double and back
        self.assertLess(np.abs(got - want).max(), 1e-3)

    def test_bytes_are_the_same(self):
        for strategy in ("default", "mcmc"):
            more = ["--strategy", strategy, "--checkpoint-every", 25, *SHORT]
            self.train(f"ref_{strategy}", *more)
            self.train(f"one_{strategy}", *more, "--threads", 1)
            self.train(f"many_{strategy}", *more, "--threads", 16)
            self.train(f"little_{strategy}", *more, "--memory", "160M")
            self.same(f"ref_{strategy}", f"one_{strategy}")
            self.same(f"ref_{strategy}", f"many_{strategy}")
            self.same(f"ref_{strategy}", f"little_{strategy}")
            rows = rows_of(self.dir / f"ref_{strategy}/loss.csv")
            self.assertEqual([int(r["iteration"]) for r in rows], list(range(1, 121)))
            self.assertGreater(int(rows[-1]["num_gaussians"]), int(rows[0]["num_gaussians"]))
            self.assertLess(float(rows[-1]["l1"]), float(rows[0]["l1"]))
            for row in rows_of(self.dir / f"ref_{strategy}/memory.csv"):
                planned, held = int(row["planned_bytes"]), int(row["ledger_bytes"])
                meanwhile = 2 * 3 * 64 * 48  # images that are decoded ahead while a step runs
                self.assertGreaterEqual(held, planned, row)
                self.assertLessEqual(held, 1.03 * planned + meanwhile, row)

    def test_interrupted_and_killed(self):
        for strategy in ("default", "mcmc"):
            more = ["--strategy", strategy, "--checkpoint-every", 10, *SHORT, "-d", "toy"]
            self.train(f"whole_{strategy}", *more[:-2])
            for how in (signal.SIGINT, signal.SIGKILL):
                out, starts = self.dir / f"{how.name}_{strategy}", 0
                for wait in (1, 31, 50, 64, 95):  # rows of loss.csv, from which on it is ended
                    p = subprocess.Popen([PROGRAM, "splat", "train", "-o", str(out), *map(str, more)], cwd=self.dir,
                                         stderr=subprocess.PIPE, text=True)
                    while p.poll() is None:
                        if (out / "loss.csv").exists() and (out / "loss.csv").read_bytes().count(b"\n") > wait:
                            p.send_signal(how)
                            break
                        time.sleep(0.005)
                    text = p.communicate(timeout=60)[1]
                    if how == signal.SIGINT and p.returncode != 0:
                        self.assertEqual(p.returncode, 6, text)
                        self.assertIn("the same command resumes after iteration", text)
                        starts += 1
                done = call("splat", "train", "-o", out, *more, cwd=self.dir)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.same(f"whole_{strategy}", out)

    def test_start_and_end(self):
        self.train("start", "-i", 0, "--quiet")
        ply = read_ply(self.dir / "start/splat_0.ply")
        self.assertEqual(len(ply["x"]), 300)
        self.assertTrue(np.all(ply["rot_0"] == 1) and np.all(ply["f_rest_0"] == 0))
        np.testing.assert_allclose(ply["opacity"], 0, atol=1e-6)  # MCMC starts with a half
        points = np.stack([ply[k] for k in "xyz"], 1).astype(float)
        squares = np.sort(((points[:, None] - points[None]) ** 2).sum(2), 1)[:, 1:4]
        np.testing.assert_allclose(np.exp(ply["scale_0"]), 0.1 * np.sqrt(squares.mean(1)), rtol=1e-5)
        for strategy in ("default", "mcmc"):
            self.train(f"end_{strategy}", "--strategy", strategy, *SHORT, "--set", "save_steps=[30,120]")
            names = sorted(p.name for p in (self.dir / f"end_{strategy}").iterdir() if p.name[0] != ".")
            self.assertEqual(names, ["checkpoints", "loss.csv", "memory.csv", "splat_120.ply", "splat_30.ply",
                                     "training_config.json"])
            state = read_safetensors(self.dir / f"end_{strategy}/checkpoints/model.safetensors")
            ply = read_ply(self.dir / f"end_{strategy}/splat_120.ply")
            np.testing.assert_array_equal(state["means"][:, 0], ply["x"])
            self.assertEqual(state["second.shN"].shape, (len(ply["x"]), 3, 3))
            self.assertNotIn("densify", state)

    def test_beyond_the_end(self):
        self.train("base", *SHORT)
        self.train("base", *SHORT)  # nothing is left to do
        done = self.train("base", *SHORT[2:], "-i", 130, code=2)
        self.assertIn("iterations was 120, is 130", done.stderr)
        self.assertIn("--fresh", done.stderr)
        for out in ("more_a", "more_b"):
            self.train(out, *SHORT[2:], "-i", 130, "--resume", "base/checkpoints/model.safetensors")
        rows = rows_of(self.dir / "more_a/loss.csv")
        self.assertEqual([int(r["iteration"]) for r in rows], list(range(121, 131)))
        self.same("more_a", "more_b", ["splat_130.ply", "loss.csv"])
        before = (self.dir / "base/splat_120.ply").read_bytes()
        self.train("base", *SHORT, "--fresh", "--seed", 5)
        self.assertNotEqual(before, (self.dir / "base/splat_120.ply").read_bytes())
        self.train("base", *SHORT[2:], "-i", 20, "--fresh")
        self.assertEqual(len(rows_of(self.dir / "base/loss.csv")), 20)  # none of the longer one

    def test_evaluation(self):
        self.train("scored", *SHORT, "--eval", "--test-every", 4, "--set", "eval_steps=[60,120]")
        rows = rows_of(self.dir / "scored/metrics.csv")
        self.assertEqual([r["iteration"] for r in rows], ["60", "120"])
        self.assertEqual(rows[1]["lpips"], "")
        done = call("splat", "eval", "scored/splat_120.ply", "-d", "toy", "-o", "again", "--seed", 1, cwd=self.dir)
        self.assertEqual(done.returncode, 2, done.stderr)  # nothing here is random
        done = call("splat", "eval", "scored/splat_120.ply", "-d", "toy", "-o", "again", "--test-every", 4, "--json",
                    cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["views"], 2)
        # rotations of a PLY are units
        self.assertAlmostEqual(answer["psnr"], float(rows[1]["psnr"]), places=3)
        self.assertEqual(sorted(p.name for p in (self.dir / "scored/eval_step_120").iterdir()), ["0.png", "1.png"])
        self.assertIn("best: PSNR", (self.dir / "scored/metrics_report.txt").read_text())
        views = {int(r["view"]) for r in rows_of(self.dir / "scored/loss.csv")}
        self.assertEqual(views, {1, 2, 3, 5, 6, 7})
        # PSNR by NumPy, of the images that `render` writes
        done = call("splat", "render", "scored/splat_120.ply", "-d", "toy", "--views", "test", "--test-every", 4, "-o", "seen",
                    cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_depth_of_evaluated_views(self):
        self.train("deep", *SHORT[2:], "-i", 20, "--eval", "--test-every", 4, "--save-depth", "--set", "eval_steps=[20]")
        names = sorted(p.name for p in (self.dir / "deep/eval_step_20/depth").iterdir())
        self.assertEqual(names, ["0.png", "1.png"])
        for verb in (["eval", "-o", "depths", "--save-depth"], ["render", "-o", "depths", "--depth"]):
            done = call("splat", verb[0], "toy/truth.ply", "-d", "toy", *verb[1:], "--views", "test", "--test-every", 4,
                        cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
        depth = np.load(self.dir / "depths/view_0004_depth.npy")
        t = ((depth - depth.min()) / (depth.max() - depth.min()))[..., None]
        want = np.where(t < 0.25, np.concatenate([0 * t, 4 * t, 0 * t + 1], 2),
                        np.where(t < 0.5, np.concatenate([0 * t, 0 * t + 1, 1 - 4 * (t - 0.25)], 2),
                                 np.where(t < 0.75, np.concatenate([4 * (t - 0.5), 0 * t + 1, 0 * t], 2),
                                          np.concatenate([0 * t + 1, 1 - 4 * (t - 0.75), 0 * t], 2))))
        got = read_png(self.dir / "depths/eval_step_0/depth/1.png")
        self.assertEqual(got.shape, want.shape)
        self.assertLessEqual(np.abs(got - want * 255).max(), 0.51)
        more = [*SHORT[2:], "-i", 20, "--eval", "--test-every", 4, "--set", "eval_steps=[20]", "--render-mode"]
        self.train("deeper", *more, "RGB_D")
        self.train("deepest", *more, "RGB_ED")  # depth over alpha
        deep, deeper, deepest = ((self.dir / k / "eval_step_20/depth/0.png").read_bytes() for k in ("deep", "deeper", "deepest"))
        self.assertEqual(deep, deeper)
        self.assertNotEqual(deep, deepest)
        self.train("deep2", *more, "D", code=2)

    def test_smaller_images(self):
        self.train("half", *SHORT[:-1], "-r", 2, "--eval", "--test-every", 4, "--set", "eval_steps=[120]")
        done = call("splat", "eval", "half/splat_120.ply", "-d", "toy", "-o", "half_again", "--test-every", 4, "-r", 2,
                    "--json", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["psnr"], float(rows_of(self.dir / "half/metrics.csv")[0]["psnr"]), places=3)
        png = (self.dir / "half/eval_step_120/0.png").read_bytes()
        self.assertEqual((int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), (2 * 32 + 4, 24))
        self.train("most", *SHORT[:-1], "--max-width", 32)  # the same sizes by another key
        self.assertEqual(len(rows_of(self.dir / "most/loss.csv")), 120)

    def test_timelapse_and_sog(self):
        self.train("lapse", *SHORT[2:], "-i", 60, "--timelapse-images", "view_0001,view_0003.png", "--timelapse-every", 25,
                   "--sog")
        for image in ("view_0001", "view_0003"):
            frames = sorted((self.dir / "lapse/timelapse" / image).iterdir())
            self.assertEqual([f.name for f in frames], ["000025.jpg", "000050.jpg"])
            self.assertEqual(frames[0].read_bytes()[:2], b"\xff\xd8")
        info = call("splat", "info", "lapse/sog/splat_60_sog.sog", "--json", cwd=self.dir)
        self.assertEqual(json.loads(info.stdout)["gaussians"], len(read_ply(self.dir / "lapse/splat_60.ply")["x"]))
        done = self.train("lapse2", *SHORT, "--timelapse-images", "none.png", code=3)
        self.assertIn("expected an image 'none.png'", done.stderr)

    def test_other_formats(self):
        self.train("formats", *SHORT[2:], "-i", 20, "--export", "spz,splat,html,sog", "--sog-iterations", 1)
        n = len(read_ply(self.dir / "formats/splat_20.ply")["x"])
        for name in ("splat_20.spz", "splat_20.splat", "sog/splat_20_sog.sog"):
            info = call("splat", "info", f"formats/{name}", "--json", cwd=self.dir)
            self.assertEqual(json.loads(info.stdout)["gaussians"], n, name)
        self.assertIn("<html", (self.dir / "formats/splat_20.html").read_text())
        call("splat", "convert", "formats/splat_20.ply", "ten.sog", cwd=self.dir)  # ten rounds of k-means
        self.assertNotEqual((self.dir / "ten.sog").read_bytes(), (self.dir / "formats/sog/splat_20_sog.sog").read_bytes())
        self.train("formats", *SHORT[2:], "-i", 20)  # what is written beside it makes no other training
        done = self.train("formats2", *SHORT, "--export", "spz,obj", code=2)
        self.assertIn("--export: expected ply, splat, spz, sog or html, found 'obj'", done.stderr)

    def test_views_by_name(self):
        """The images of a capture in another order than their names."""
        names = [f"view_000{v}.png" for v in (5, 2, 7, 0, 3, 1, 6, 4)]
        folder = self.dir / "mixed"
        shutil.copytree(self.dir / "toy", folder)
        data, at, records = (folder / "sparse/0/images.bin").read_bytes(), 8, {}
        for _ in range(8):  # id, pose, camera, name, points
            end = data.index(b"\0", at + 64)
            seen = int.from_bytes(data[end + 1:end + 9], "little")
            records[data[at + 64:end].decode()] = data[at:end + 9 + 24 * seen]
            at = end + 9 + 24 * seen
        (folder / "sparse/0/images.bin").write_bytes(data[:8] + b"".join(records[n] for n in names))

        def test_views(*more):
            shutil.rmtree(self.dir / "seen", ignore_errors=True)
            done = call("splat", "render", "toy/truth.ply", "-d", "mixed", "--views", "test", "--test-every", 4, "-o", "seen",
                        *more, cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
            return sorted(p.stem for p in (self.dir / "seen").iterdir())
        self.assertEqual(test_views(), ["view_0003", "view_0005"])
        self.assertEqual(test_views("--split-by", "name"), ["view_0000", "view_0004"])
        more = ["--eval", "--test-every", 4, "--set", "eval_steps=[20]", *SHORT[2:], "-i", 20]
        self.train("in_order", *more)  # the toy's views are in the order of their names
        done = call("splat", "train", "-d", "mixed", "-o", "by_name", "--split-by", "name", *more, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.same("in_order", "by_name", ["splat_20.ply", "loss.csv"])

    def test_lines_for_people(self):
        (self.dir / "log.txt").write_text("before\n")
        more = ["-i", 10, "--max-cap", 10, "--log-file", "log.txt"]
        done = self.train("told", *more)
        lines = [line for line in done.stdout.splitlines() if line.startswith(("max_cap", "told/"))]
        self.assertEqual(len(lines), 2, done.stdout)
        self.assertEqual((self.dir / "log.txt").read_text().splitlines()[0], "before")
        self.assertEqual((self.dir / "log.txt").read_text().splitlines()[1:], done.stdout.splitlines())
        before = (self.dir / "log.txt").read_text()
        for level in ("warn", "off"):
            done = self.train("told", *more, "--fresh", "--log-level", level)
            self.assertEqual(done.stdout, "")
        self.assertEqual((self.dir / "log.txt").read_text(), before)
        self.train("told", *more[:-1], "nowhere/log.txt", "--fresh", code=3)
        done = self.train("told", *more, "--fresh", "--log-level", "loud", code=2)
        self.assertIn("--log-level: expected trace, debug, info, warn, error, critical or off, found 'loud'", done.stderr)

    def test_files_of_lichtfeld(self):
        (self.dir / "lfs.json").write_text(json.dumps({
            "iterations": 40, "sh_degree_interval": 1000, "means_lr": 0.000016, "shs_lr": 0.0025, "opacity_lr": 0.05,
            "scaling_lr": 0.005, "rotation_lr": 0.001, "lambda_dssim": 0.2, "min_opacity": 0.005, "refine_every": 100,
            "start_refine": 500, "stop_refine": 15000, "grad_threshold": 0.0002, "sh_degree": 3, "opacity_reg": 0.0,
            "scale_reg": 0.0, "init_opacity": 0.1, "init_scaling": 1.0, "max_cap": 1000000, "eval_steps": [7000, 30000],
            "save_steps": [7000, 30000], "enable_eval": False, "enable_save_eval_images": True, "strategy": "default",
            "skip_intermediate": False, "use_bilateral_grid": False, "bilateral_grid_X": 16, "bilateral_grid_Y": 16,
            "bilateral_grid_W": 8, "bilateral_grid_lr": 0.002, "tv_loss_weight": 5, "prune_opacity": 0.005,
            "grow_scale3d": 0.01, "grow_scale2d": 0.05, "prune_scale3d": 0.1, "prune_scale2d": 0.15, "reset_every": 3000,
            "pause_refine_after_reset": 0, "revised_opacity": False, "steps_scaler": 0, "antialiasing": False,
            "random": False, "init_num_pts": 100000, "init_extent": 3.0, "pose_optimization": "none", "render_mode": "RGB",
            "bg_modulation": False}))
        self.train("lfs", "--config", "lfs.json", "--profile", "lichtfeld", "--quiet")
        told = json.loads((self.dir / "lfs/training_config.json").read_text())["optimization"]
        self.assertEqual((told["means_lr"], told["strategy"], told["init_opacity"]), (0.000016, "default", 0.1))
        done = self.train("lfs2", "--config", "lfs.json", "--strategy", "mcmc", code=2)
        self.assertIn("--strategy is mcmc, but lfs.json says default", done.stderr)

    def test_mistakes(self):
        cases = [(["-d", "nowhere", "-o", "x"], 3, "nowhere"), (["-d", "toy"], 2, "found no -o"),
                 (["-d", "toy", "-o", "x", "--render-mode", "ED"], 2, "expected RGB, RGB_D or RGB_ED"),
                 (["-d", "toy", "-o", "x", "--sh-degree", 4], 2, "--sh-degree"),
                 (["-d", "toy", "-o", "x", "--set", "grad_treshold=1"], 2, "grad_threshold"),
                 (["-d", "toy", "-o", "x", "--bg", "1,2,3"], 2, "--bg"),
                 (["-d", "toy", "-o", "x", "--max-cap", "many"], 2, "--max-cap"),
                 (["-d", "toy", "-o", "x", "--init-ply", "none.ply"], 3, "none.ply"),
                 (["-d", "toy", "-o", "x", "--resume", "toy/truth.ply", "-i", 5], 3, "truth.ply")]
        for words, code, text in cases:
            done = call("splat", "train", *words, cwd=self.dir)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(text, done.stderr)
            self.assertFalse((self.dir / "x/splat_5.ply").exists())
        shutil.copytree(self.dir / "toy", self.dir / "holes")
        for v in (1, 3):
            (self.dir / f"holes/images/view_000{v}.png").unlink()
        done = call("splat", "train", "-d", "holes", "-o", "x", cwd=self.dir)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("2 are missing: view_0001.png, view_0003.png", done.stderr)

    def test_not_finite(self):
        head, data = (self.dir / "toy/truth.ply").read_bytes().split(b"end_header\n", 1)
        table = np.frombuffer(data, "<f4").reshape(600, -1)

        def start_from(change, code, text, *more):
            rows = table.copy()
            change(rows)
            (self.dir / "bad.ply").write_bytes(head + b"end_header\n" + rows.tobytes())
            done = self.train("wild", *SHORT, "--init-ply", "bad.ply", "--strategy", "default", "--fresh", *more, code=code)
            self.assertIn(text, done.stderr)
            self.assertFalse((self.dir / "wild/splat_120.ply").exists())

        start_from(lambda t: t.__setitem__((3, 0), np.nan), 3, "row 3: expected finite numbers, found 1 of means")
        # so bright that the loss overflows
        start_from(lambda t: t.__setitem__((slice(None), slice(6, 9)), 3e38), 7, "the loss of view")
        # above all views
        start_from(lambda t: t.__setitem__((slice(None), 1), -1e7), 7, "the model collapsed")
        self.assertTrue((self.dir / "wild/checkpoints/model.safetensors").exists())

    def test_jobs(self):
        folder = self.dir / "jobs"
        folder.mkdir()
        (folder / "general.yaml").write_text("""instrument: splat
name: both
output_dir: jobs_out
toy: {gaussians: 400, views: 8, width: 48, height: 40}
iterations: 60
sh_degree: 1
start_refine: 10
refine_every: 20
stop_refine: 50
enable_eval: true
test_every: 4
eval_steps: [60]
""")
        done = call("splat", "plan", "-c", "jobs/general.yaml", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.dir / "jobs_out").exists())
        done = call("run", "all", "-c", "jobs", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for strategy in ("default", "mcmc"):
            model = self.dir / "jobs_out" / strategy
            for name in ("splat_60.ply", "loss.csv", "eval/metrics.csv", "loss.png", "gaussians.png", "memory.png", "psnr.png",
                         "scales.png", "opacities.png"):
                self.assertTrue((model / name).exists(), name)
        done = call("run", "all", "-c", "jobs", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = call("report", "jobs_out", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = "".join(p.read_text() for p in (self.dir / "jobs_out").rglob("*.html"))
        self.assertIn("view_0004.png: target and image, PSNR ", page)


if __name__ == "__main__":
    unittest.main()
