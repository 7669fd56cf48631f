"""Captures of lenses that bend straight lines, trained as they are (3DGUT), and antialiasing: PSNR beside that of a
pinhole's capture, the same bytes however it runs, what is refused.
seconds: 25"""
import json
import pathlib
import shutil
import struct
import tempfile
import unittest

import numpy as np
from test_splat_pose import errors, matrices, perturbed, read_images, refined, write_images
from test_splat_train import call

# number of COLMAP's model and its coefficients
CAMERAS = {"radial": (4, [-0.4, 0.12, 0.004, -0.006]), "fisheye": (5, [-0.2, 0.04, 0.0, 0.0])}
TRAIN = ["-i", 300, "--sh-degree", 1, "--strategy", "default", "--set", "start_refine=1000", "--quiet"]
FILES = ["splat_60.ply", "checkpoints/model.safetensors", "loss.csv"]


class Gut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        cls.must("splat", "toy", "-o", "pinhole", "--gaussians", 600, "--views", 16, "--size", "64x48")
        for name, (model, bends) in CAMERAS.items():
            shutil.copytree(cls.dir / "pinhole", cls.dir / name)
            path = cls.dir / name / "sparse/0/cameras.bin"
            head = struct.unpack_from("<QIiQQ4d", path.read_bytes())
            path.write_bytes(struct.pack(f"<QIiQQ{4 + len(bends)}d", *head[:2], model, *head[3:], *bends))
            cls.must("splat", "render", "pinhole/truth.ply", "-d", name, "-o", f"seen_{name}", "--gut", "--format", "png")
            if name == "fisheye":
                cls.must("splat", "render", "pinhole/truth.ply", "-d", name, "-o", "seen_npy", "--gut")
            for image in (cls.dir / f"seen_{name}").glob("*.png"):
                shutil.copy(image, cls.dir / name / "images")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @classmethod
    def must(cls, *words, code=0):
        done = call(*words, cwd=cls.dir)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    def train(self, data, out, *more):
        self.must("splat", "train", "-d", data, "-o", out, *TRAIN, *more)

    def psnr(self, model, data, *more):
        done = self.must("splat", "eval", model, "-d", data, "-o", "scores", "--no-images", "--json", *more)
        return json.loads(done.stdout)["psnr"]

    def test_bent_lenses_train_as_well_as_pinholes(self):
        self.train("pinhole", "plain", "--eval")
        plain = self.psnr("plain/splat_300.ply", "pinhole")
        for name in CAMERAS:
            self.train(name, f"of_{name}", "--eval", "--gut")
            self.train(name, f"no_{name}", "--eval", "--ignore-distortion")
            bent = self.psnr(f"of_{name}/splat_300.ply", name, "--gut")
            straight = self.psnr(f"no_{name}/splat_300.ply", name, "--ignore-distortion")
            self.assertGreater(bent, plain - 0.5)
            self.assertGreater(bent, straight + 0.7)

    def test_bytes_are_the_same(self):
        for strategy in ("default", "mcmc"):
            words = ["splat", "train", "-d", "radial", "--strategy", strategy, "--gut", "-a", "-i", 60, "--sh-degree", 1, "--set",
                     "start_refine=10", "--set", "refine_every=10", "--set", "grad_threshold=1e-5", "--quiet"]
            self.must(*words, "-o", strategy)
            self.must(*words, "-o", f"{strategy}_one", "--threads", 1, "--memory", "160M")
            self.must(*words, "-o", f"{strategy}_parts", "--max-minutes", 1e-6, code=6)
            for _ in range(60):
                if call(*words, "-o", f"{strategy}_parts", "--max-minutes", 1e-3, cwd=self.dir).returncode == 0:
                    break
            for other in ("one", "parts"):
                for file in FILES:
                    self.assertEqual((self.dir / f"{strategy}_{other}" / file).read_bytes(),
                                     (self.dir / strategy / file).read_bytes(), (strategy, other, file))
            first, last = ((self.dir / strategy / "loss.csv").read_text().splitlines()[k].split(",")[-1] for k in (1, -1))
            self.assertNotEqual(first, last)  # rows were added or removed on the way

    def test_what_is_refused(self):
        for words in (["train", "-d", "radial", "-o", "x"], ["eval", "pinhole/truth.ply", "-d", "radial", "-o", "x"],
                      ["render", "pinhole/truth.ply", "-d", "fisheye", "-o", "x"]):
            done = self.must("splat", *words, code=3)
            self.assertIn("16 of 16 views with it", done.stderr)
            self.assertIn("use --gut, or undistort", done.stderr)
            self.assertEqual(list(self.dir.glob("x/*.[pc]*")), [])

    def test_poses_come_back_along_rays(self):
        """Cameras with a fisheye, a little off; those that are written have the lens, too."""
        shutil.copytree(self.dir / "fisheye", self.dir / "off")
        true = read_images(self.dir / "fisheye/sparse/0/images.bin")
        off = perturbed(true, 0.04, 0.1)
        write_images(self.dir / "off/sparse/0/images.bin", off)
        words = ["splat", "train", "-d", "off", "-i", 300, "--gut", "--strategy", "default", "--set", "start_refine=1000",
                 "--init-scaling", 0.7, "--sh-degree", 1, "--pose-opt", "direct", "--pose-lr", 0.002, "--quiet"]
        self.must(*words, "-o", "posed")
        self.must(*words, "-o", "posed_one", "--threads", 1, "--memory", "160M")
        for file in ("splat_300.ply", "cameras_300.json", "checkpoints/model.safetensors"):
            self.assertEqual((self.dir / "posed" / file).read_bytes(), (self.dir / "posed_one" / file).read_bytes(), file)
        before, after = (errors(m, matrices(true)) for m in (matrices(off), refined(self.dir / "posed/cameras_300.json")))
        self.assertLess(after[0], before[0] / 1.5)
        self.assertLess(after[1], before[1] / 1.5)
        more = ["--gut", "--views", "all"]
        own = self.psnr("posed/splat_300.ply", "off", *more, "--cameras", "posed/cameras_300.json")
        self.assertGreater(own, self.psnr("posed/splat_300.ply", "off", *more) + 1)
        # the file alone is a camera with its lens
        self.must("splat", "render", "posed/splat_300.ply", "--cameras", "posed/cameras_300.json", "-o", "by_file", "--gut", "--format", "npy")
        apart = [np.square(np.clip(np.load(self.dir / f"by_file/view_{v:04}.npy"), 0, 1) - np.clip(
            np.load(self.dir / f"seen_npy/view_{v:04}.npy"), 0, 1)).mean() for v in range(16)]
        self.assertAlmostEqual(-10 * np.mean(np.log10(apart)), own, delta=0.1)

    def test_pinholes_may_be_seen_along_rays(self):
        """Gaussians of some pixels: all that is left is the blur of the ordinary projection."""
        self.must("splat", "toy", "-o", "large", "--gaussians", 300, "--views", 2, "--size", "200x150")
        for out, more in (("flat", []), ("rays", ["--gut"])):
            self.must("splat", "render", "large/truth.ply", "-d", "large", "-o", out, *more)
        a, b = (np.load(self.dir / out / "view_0001.npy") for out in ("flat", "rays"))
        self.assertLess(np.abs(a - b).mean(), 0.01)
        self.assertGreater(np.abs(a - b).max(), 0)

    def test_small_images_look_like_large_ones(self):
        """Antialiasing: an image of a quarter of the size is nearer to the average of the whole one."""
        for name, size in (("whole", "256x192"), ("quarter", "64x48")):
            self.must("splat", "toy", "-o", name, "--gaussians", 20000, "--views", 2, "--size", size)
        for out, data, more in (("true", "whole", []), ("plain", "quarter", []), ("dim", "quarter", ["-a"])):
            self.must("splat", "render", "whole/truth.ply", "-d", data, "-o", out, *more)
        true, plain, dim = (np.load(self.dir / out / "view_0000.npy") for out in ("true", "plain", "dim"))
        true = true.reshape(48, 4, 64, 4, 3).mean(axis=(1, 3))
        self.assertLess(((dim - true) ** 2).mean(), ((plain - true) ** 2).mean() / 3)


if __name__ == "__main__":
    unittest.main()
