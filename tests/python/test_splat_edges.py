"""Edges of splat: captures with no, one or equal points, views that see nothing, images smaller than the window of SSIM or
a tile, degree 0, views that cannot be parted, equal names in two folders, too little memory, a full disk.
seconds: 15

All edges, and where they are tested beside this file:
  missing data and images               test_splat_mistakes: test_images_that_are_missing; test_splat_train: test_mistakes
  zero, one and coincident points       here: test_few_points; golden/splat_steps: neighbours
  small images, partial tiles           here: test_small_images; golden and property/splat_pixels: 50 x 42 and others
  nothing visible                       here: test_nothing_in_view
  all dead, collapsed                   property/splat_strategy: where_all_are_dead; test_splat_train: test_not_finite
  losses and rows that are not finite   test_splat_train: test_not_finite; golden/splat_steps: what_is_not_finite
  memory                                here: test_too_little_memory, test_the_least_memory; test_splat_train: bytes in 160M; property/splat_pixels
  disk full, Ctrl-C                     here: test_full_disk; fault/splat_train; test_splat_train: test_interrupted
  degree 0                              here: test_degree_0
  portrait and landscape                here: test_portrait_and_landscape
  test_every, no training view, names   here: test_views_that_cannot_be_parted, test_names_in_folders"""
import json
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np
from test_splat import PROGRAM, read_safetensors, write_png16
from test_splat_train import call, read_ply, rows_of

WINDOW = np.array([0.001028380123898387, 0.0075987582094967365, 0.036000773310661316, 0.10936068743467331,
                   0.21300552785396576, 0.26601171493530273])
WINDOW = np.concatenate([WINDOW, WINDOW[-2::-1]])


def blurred(x):
    """By the window along rows and columns, zeros around it."""
    for axis in (0, 1):
        padded = np.pad(x, [(5, 5) if a == axis else (0, 0) for a in range(3)])
        x = sum(WINDOW[k] * np.take(padded, range(k, k + x.shape[axis]), axis) for k in range(11))
    return x


def ssim(x, y):
    m, n = blurred(x), blurred(y)
    s, t, st = blurred(x * x) - m * m, blurred(y * y) - n * n, blurred(x * y) - m * n
    out = (2 * m * n + 1e-4) * (2 * st + 9e-4) / ((m * m + n * n + 1e-4) * (s + t + 9e-4))
    if min(x.shape[:2]) > 10:
        out = out[5:-5, 5:-5]
    return out.mean()


class Edges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        cls.ok(cls, "toy", "-o", "toy", "--views", 4, "--size", "48x40", "--gaussians", 300)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def ok(self, *words):
        done = call("splat", *words, cwd=self.dir)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def refused(self, code, *words, says):
        done = call("splat", *words, cwd=self.dir)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        self.assertIn(says, done.stderr)

    def write_points(self, name, points):
        """The toy with other points."""
        folder = self.dir / name
        shutil.copytree(self.dir / "toy", folder)
        rows = [struct.pack("<Q3d3BdQ", i, *map(float, p), 10, 20, 30, 0.0, 0) for i, p in enumerate(points)]
        (folder / "sparse/0/points3D.bin").write_bytes(struct.pack("<Q", len(rows)) + b"".join(rows))

    def start(self, name, *more):
        text = self.ok("train", "-d", name, "-o", f"{name}_out", "-i", 0, "--strategy", "default", *more)
        return read_ply(self.dir / f"{name}_out/splat_0.ply"), text

    def test_few_points(self):
        self.write_points("none", [])
        rows, text = self.start("none", "--init-num-pts", 40)
        self.assertEqual(len(rows["x"]), 40)
        self.assertIn("warning: ", text)
        self.assertIn("random", text)
        self.write_points("one", [(0.5, 0, 0)])
        rows, text = self.start("one")
        self.assertNotIn("warning", text)
        np.testing.assert_allclose(np.exp(rows["scale_0"]), 0.01, rtol=1e-6)
        # two pairs of equal points at a distance of 0.3: of four neighbours two are at the place itself
        self.write_points("pairs", [(0, 0, 0), (0, 0, 0), (0.3, 0, 0), (0.3, 0, 0)])
        rows, _ = self.start("pairs")
        np.testing.assert_allclose(np.exp(rows["scale_0"]), 0.3, rtol=1e-6)
        self.write_points("heap", [(1, 1, 1)] * 5)  # the nearest four are all at the place itself
        rows, _ = self.start("heap")
        np.testing.assert_allclose(np.exp(rows["scale_0"]), 0.01, rtol=1e-6)
        for name in ("one", "heap"):
            self.ok("train", "-d", name, "-o", f"{name}_run", "-i", 12, "--set", "start_refine=2", "--set", "refine_every=3")

    def write_view(self, name, width, height, back=False, target=None):
        """One view of the toy's model, from the front or turned away, and its image."""
        folder = self.dir / name
        folder.mkdir()
        pose = np.diag([-1.0, 1, -1, 1]) if back else np.eye(4)
        pose[2, 3] = 4
        root = {"w": width, "h": height, "fl_x": width, "fl_y": width, "frames": [
            {"file_path": "0.png", "transform_matrix": pose.tolist()}]}
        (folder / "transforms.json").write_text(json.dumps(root))
        if target is None:
            target = np.random.default_rng(1).random((height, width, 3))
        write_png16(folder / "0.png", target)
        return np.rint(target * 65535) / 65535

    def test_small_images(self):
        for width, height in ((1, 1), (9, 9), (10, 33), (33, 10), (11, 11), (17, 12), (33, 9)):
            name = f"w{width}h{height}"
            target = self.write_view(name, width, height)
            self.ok("render", "toy/truth.ply", "-d", name, "-o", f"{name}_out", "--gradients")
            image = np.load(self.dir / f"{name}_out/0.npy").astype(float)
            self.assertEqual(image.shape, (height, width, 3))
            got = read_safetensors(self.dir / f"{name}_out/0_gradients.safetensors")["loss"]
            l1, s = np.abs(image - target).mean(), ssim(image, target)
            np.testing.assert_allclose(got, [0.8 * l1 + 0.2 * (1 - s), l1, s], atol=2e-6)
        self.ok("train", "-d", "w9h9", "-o", "tiny", "-i", 5, "--quiet")

    def test_nothing_in_view(self):
        self.write_view("away", 40, 30, back=True)
        self.ok("render", "toy/truth.ply", "-d", "away", "-o", "away_out", "--gradients", "--alpha", "--bg", "0.25,0.5,0.75")
        image = np.load(self.dir / "away_out/0.npy")
        self.assertTrue((image == np.float32([0.25, 0.5, 0.75])).all())
        self.assertFalse(np.load(self.dir / "away_out/0_alpha.npy").any())
        got = read_safetensors(self.dir / "away_out/0_gradients.safetensors")
        for name in ("means", "sh0", "shN", "scaling", "rotation", "opacity", "mean2d", "densify"):
            self.assertFalse(got[name].any(), name)

    def test_degree_0(self):
        for strategy in ("default", "mcmc"):
            more = ["-d", "toy", "--strategy", strategy, "--sh-degree", 0, "--set", "sh_degree_interval=5", "--set",
                    "start_refine=5", "--set", "refine_every=5", "--set", "grad_threshold=0.00002", "--checkpoint-every", 10]
            self.ok("train", "-o", f"flat_{strategy}", "-i", 30, *more)
            rows = read_ply(self.dir / f"flat_{strategy}/splat_30.ply")
            self.assertNotIn("f_rest_0", rows)
            self.assertGreater(len(rows["x"]), 150)
            state = read_safetensors(self.dir / f"flat_{strategy}/checkpoints/model.safetensors")
            self.assertNotIn("shN", state)
            self.ok("train", "-o", f"flat_{strategy}_on", "-i", 40, "--resume",
                    f"flat_{strategy}/checkpoints/model.safetensors", *more)
            for ending in ("spz", "sog", "splat", "html"):
                self.ok("convert", f"flat_{strategy}/splat_30.ply", f"flat.{ending}")

    def test_views_that_cannot_be_parted(self):
        for n in (0, 1):
            self.refused(2, "train", "-d", "toy", "-o", "x", "--eval", "--test-every", n, says="--test-every")
        self.write_view("single", 20, 20)
        self.refused(3, "train", "-d", "single", "-o", "x", "--eval", says="expected a view to train on")
        self.assertFalse((self.dir / "x/training_config.json").exists())

    def test_names_in_folders(self):
        folder = self.dir / "folders"
        shutil.copytree(self.dir / "toy", folder)
        for v, name in enumerate(("left/a", "right/a", "left/b", "b")):
            (folder / "images" / name).parent.mkdir(exist_ok=True)
            (folder / f"images/view_000{v}.png").rename(folder / f"images/{name}.png")
        images = folder / "sparse/0/images.bin"
        data = images.read_bytes()
        for v, name in enumerate((b"left/a", b"right/a", b"left/b", b"b")):
            data = data.replace(b"view_000%d.png\0" % v, name + b".png\0")
        images.write_bytes(data)
        self.ok("render", "toy/truth.ply", "-d", "folders", "-o", "seen")
        self.assertEqual(sorted(str(p.relative_to(self.dir / "seen")) for p in (self.dir / "seen").rglob("*.npy")),
                         ["b.npy", "left/a.npy", "left/b.npy", "right/a.npy"])
        self.ok("render", "toy/truth.ply", "-d", "toy", "-o", "plain")
        self.assertEqual((self.dir / "seen/right/a.npy").read_bytes(), (self.dir / "plain/view_0001.npy").read_bytes())
        self.ok("train", "-d", "folders", "-o", "folders_out", "-i", 5)

    def test_portrait_and_landscape(self):
        folder = self.dir / "both"
        folder.mkdir()
        pose = np.eye(4)
        pose[2, 3] = 4
        frames = []
        for v, (w, h) in enumerate(((48, 30), (30, 48), (48, 30), (64, 20))):
            write_png16(folder / f"{v}.png", np.full((h, w, 3), 0.5))
            frames.append({"file_path": f"{v}.png", "w": w, "h": h, "fl_x": 40, "fl_y": 40, "transform_matrix": pose.tolist()})
        (folder / "transforms.json").write_text(json.dumps({"frames": frames}))
        more = ["train", "-d", "both", "-i", 40, "--init-ply", "toy/truth.ply", "--set", "start_refine=1000"]
        self.ok(*more, "-o", "both_out")
        # a plan is made when views get larger than any before, not for each that has another shape
        self.assertLess(len(rows_of(self.dir / "both_out/memory.csv")), 8)
        self.ok(*more, "-o", "both_one", "--threads", 1)
        for name in ("splat_40.ply", "loss.csv"):
            self.assertEqual((self.dir / "both_out" / name).read_bytes(), (self.dir / "both_one" / name).read_bytes())

    def test_log_in_the_folder_of_results(self):
        self.ok("train", "-d", "toy", "-o", "logged", "-i", 2, "--log-file", "logged/log.txt")
        self.assertIn("logged/", (self.dir / "logged/log.txt").read_text())
        self.refused(3, "train", "-d", "toy", "-o", "unlogged", "-i", 2, "--log-file", "nowhere/log.txt", says="nowhere/log.txt")
        self.assertEqual(list((self.dir / "unlogged").glob("*.ply")), [])
        self.ok("train", "-d", "toy", "-o", "unlogged", "-i", 2)  # the folder is free again

    def test_all_counts_are_scaled(self):
        words = ["-i", 4, "--enable-sparsity", "--sparsify-steps", 6, "--steps-scaler", 0.5]
        self.ok("train", "-d", "toy", "-o", "scaled", *words)
        self.assertEqual(len(rows_of(self.dir / "scaled/loss.csv")), 2 + 3)
        self.assertTrue((self.dir / "scaled/splat_5.ply").is_file())

    def test_too_little_memory(self):
        for bytes_ in ("200K", "400K", "800K", "1M"):
            done = call("splat", "train", "-d", "toy", "-o", "little", "-i", 3, "--memory", bytes_, cwd=self.dir)
            self.assertEqual(done.returncode, 4, (bytes_, done.stdout, done.stderr))
            self.assertRegex(done.stderr, r"\d+ bytes|\d+(\.\d+)? [KM]iB")
            self.assertFalse(list((self.dir / "little").glob("splat_*")), bytes_)

    def test_the_least_memory_is_named(self):
        """The budget that a refusal names is enough for all iterations and files, a page less for neither plan nor run."""
        few = ["-i", 8, "--start-refine", 1, "--refine-every", 3]
        for more in (["--strategy", "default", "--gut", "--bilateral-grid"],
                     ["--init-ply", "toy/truth.ply", "-r", 2, "--enable-sparsity", "--sparsify-steps", 5],
                     ["--eval", "--eval-steps", 8, "--export", "spz,splat", "--max-cap", "auto", "--threads", 1]):
            named, done = set(), {}
            for plan in (["--plan"], []):
                words = ["splat", "train", "-d", "toy", "-o", "least", "--fresh", *few, *more, *plan, "--memory"]
                done[len(plan)] = words
                refused = call(*words, "1M", cwd=self.dir)
                self.assertEqual(refused.returncode, 4, refused.stderr)
                named.add(int(re.search(r"use --memory (\d+)", refused.stderr)[1]))
            self.assertEqual(len(named), 1, more)
            least = named.pop()
            for words in done.values():
                enough, less = (call(*words, n, cwd=self.dir) for n in (least, least - 4096))
                self.assertEqual((enough.returncode, less.returncode), (0, 4), (more, enough.stderr, less.stderr))

    def test_full_disk(self):
        """A limit on the size of files ends the training in the middle of a checkpoint; the old one stays."""
        more = ["train", "-d", "toy", "-i", 60, "--checkpoint-every", 5, "--quiet", "--set", "start_refine=10", "--set",
                "refine_every=10"]
        self.ok(*more, "-o", "whole")
        p = subprocess.Popen([PROGRAM, "splat", *map(str, more), "-o", "disk"], cwd=self.dir)
        file = self.dir / "disk/checkpoints/model.safetensors"
        while not file.exists() and p.poll() is None:
            time.sleep(0.002)
        p.send_signal(signal.SIGKILL)
        p.wait(timeout=60)
        before = file.read_bytes()

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a failed write, not the end
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2,) * 2)
        done = subprocess.run([PROGRAM, "splat", *map(str, more), "-o", "disk"], cwd=self.dir, capture_output=True, text=True,
                              preexec_fn=limit, restore_signals=False, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("model.safetensors", done.stderr)
        self.assertEqual(file.read_bytes(), before)
        self.assertFalse((self.dir / "disk/splat_60.ply").exists())
        self.assertEqual([p.name for p in file.parent.iterdir()], [file.name])
        self.ok(*more, "-o", "disk")
        for name in ("splat_60.ply", "loss.csv", "checkpoints/model.safetensors"):
            self.assertEqual((self.dir / "disk" / name).read_bytes(), (self.dir / "whole" / name).read_bytes(), name)


if __name__ == "__main__":
    unittest.main()
