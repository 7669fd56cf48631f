"""Poses that are trained: perturbed cameras come back, on views with true poses the model is better than without; the same
bytes on any number of threads and after an interruption; refined cameras are read by render and eval; what is refused.
seconds: 8"""
import json
import math
import pathlib
import shutil
import struct
import tempfile
import unittest

import numpy as np
from test_splat import read_safetensors
from test_splat_train import call

TRAIN = ["--strategy", "default", "--set", "start_refine=1000", "--init-scaling", 0.7, "--sh-degree", 1, "--quiet"]
POSES = ["--pose-opt", "direct", "--pose-lr", 0.001]


def rotation(q):
    r, x, y, z = np.array(q) / np.linalg.norm(q)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y)],
                     [2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x)],
                     [2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)]])


def read_images(path):
    """(number, quaternion and translation, camera, name) of each view."""
    data, at, views = path.read_bytes(), 8, []
    for _ in range(struct.unpack_from("<Q", data)[0]):
        numbers, end = struct.unpack_from("<I7dI", data, at), data.index(b"\0", at + 64)
        views.append((numbers[0], np.array(numbers[1:8]), numbers[8], data[at + 64:end]))
        at = end + 9 + 24 * struct.unpack_from("<Q", data, end + 1)[0]
    return views


def write_images(path, views):
    path.write_bytes(struct.pack("<Q", len(views)) + b"".join(
        struct.pack("<I7dI", number, *pose, camera) + name + b"\0" + struct.pack("<Q", 0)
        for number, pose, camera, name in views))


def perturbed(views, angle, distance):
    """Each camera rotated by an angle about some axis, and translated."""
    random, out = np.random.default_rng(1), []
    for number, pose, camera, name in views:
        axis, along = random.normal(size=3), random.normal(size=3)
        x, y, z = axis * (angle / 2 / np.linalg.norm(axis))
        product = np.array([[1, -x, -y, -z], [x, 1, -z, y], [y, z, 1, -x], [z, -y, x, 1]])  # from the left
        q = product @ pose[:4]
        out.append((number, np.concatenate([q / np.linalg.norm(q), pose[4:] + along * (distance / np.linalg.norm(along))]),
                    camera, name))
    return out


def matrices(views):
    return [np.column_stack([rotation(pose[:4]), pose[4:]]) for _, pose, _, _ in views]


def refined(path):
    out = []
    for frame in json.loads(path.read_text())["frames"]:
        c2w = np.array(frame["transform_matrix"])
        c2w[:3, 1:3] *= -1
        out.append(np.linalg.inv(c2w)[:3])
    return out


def errors(got, want):
    """Mean angle in degrees, and mean distance of the centres."""
    angles, ways = [], []
    for a, b in zip(got, want):
        cosine = (np.trace(a[:, :3] @ b[:, :3].T) - 1) / 2
        angles.append(math.degrees(math.acos(min(1, max(-1, cosine)))))
        ways.append(np.linalg.norm(a[:, :3].T @ a[:, 3] - b[:, :3].T @ b[:, 3]))
    return np.mean(angles), np.mean(ways)


class Poses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        done = call("splat", "toy", "-o", "toy", "--views", 16, "--size", "80x60", "--gaussians", 400, cwd=cls.dir)
        assert done.returncode == 0, done.stderr
        shutil.copytree(cls.dir / "toy", cls.dir / "off")
        cls.true = read_images(cls.dir / "toy/sparse/0/images.bin")
        cls.off = perturbed(cls.true, 0.04, 0.1)
        write_images(cls.dir / "off/sparse/0/images.bin", cls.off)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def train(self, out, *more, code=0):
        done = call("splat", "train", "-d", "off", "-o", out, *TRAIN, *more, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def psnr(self, model, data, *more):
        done = call("splat", "eval", model, "-d", data, "-o", "scores", "--views", "all", "--no-images", "--json", *more,
                    cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["psnr"]

    def test_poses_come_back(self):
        self.train("still", "-i", 600)
        self.train("moved", "-i", 600, *POSES)
        before, after = errors(matrices(self.off), matrices(self.true)), \
            errors(refined(self.dir / "moved/cameras_600.json"), matrices(self.true))
        self.assertLess(after[0], before[0] / 2)
        self.assertLess(after[1], before[1] / 2)
        true = self.psnr("moved/splat_600.ply", "toy")
        self.assertGreater(true, self.psnr("still/splat_600.ply", "toy") + 1)
        # the cameras of the capture are off, and its model does not fit them; the refined ones are where it posed
        own = self.psnr("moved/splat_600.ply", "off", "--cameras", "moved/cameras_600.json")
        self.assertGreater(own, self.psnr("moved/splat_600.ply", "off") + 1)
        self.assertFalse((self.dir / "still/cameras_600.json").exists())
        done = call("splat", "render", "moved/splat_600.ply", "--cameras", "moved/cameras_600.json", "-o", "views",
                    "--format", "npy", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list((self.dir / "views").glob("*.npy"))), 16)

    def test_bytes_are_the_same(self):
        files = ["splat_60.ply", "cameras_60.json", "checkpoints/model.safetensors", "loss.csv"]
        for kind in ("direct", "mlp"):
            more = ["-i", 60, "--pose-opt", kind, "--pose-lr", 0.002, "--checkpoint-every", 25]
            self.train(f"whole_{kind}", *more)
            self.train(f"one_{kind}", *more, "--threads", 1, "--memory", "160M")
            # ended again and again, also where no checkpoint would be
            for _ in range(3):
                self.train(f"cut_{kind}", *more, "--max-minutes", 1e-6, code=6)
            self.train(f"cut_{kind}", *more)
            for out in ("one", "cut"):
                for name in files:
                    self.assertEqual((self.dir / f"whole_{kind}" / name).read_bytes(),
                                     (self.dir / f"{out}_{kind}" / name).read_bytes(), f"{out}_{kind}/{name}")
            state = read_safetensors(self.dir / f"whole_{kind}/checkpoints/model.safetensors")
            self.assertEqual(state["poses"].shape, (16 * 9 if kind == "direct" else 16 * 64 + 2 * 65 * 64 + 65 * 9,))
            self.assertEqual(state["steps.poses"].tolist(), [59])  # the last iteration makes no step
            self.assertGreater(np.abs(state["poses"]).max(), 0.001)

    def test_a_rate_of_0_changes_no_bit(self):
        self.train("none", "-i", 40)
        self.train("zero", "-i", 40, "--pose-opt", "direct", "--pose-lr", 0)
        for name in ("splat_40.ply", "loss.csv"):
            self.assertEqual((self.dir / "none" / name).read_bytes(), (self.dir / "zero" / name).read_bytes())

    def test_what_is_refused(self):
        done = self.train("no", "-i", 1, *POSES, "--eval", code=2)
        self.assertIn("poses are not trained together with enable_eval", done.stderr)
        self.train("few", "-i", 1, *POSES)
        cameras = json.loads((self.dir / "few/cameras_1.json").read_text())
        cameras["frames"][3]["file_path"] = "another.png"
        (self.dir / "other.json").write_text(json.dumps(cameras))
        done = call("splat", "eval", "few/splat_1.ply", "-d", "off", "-o", "no", "--cameras", "other.json", cwd=self.dir)
        self.assertEqual(done.returncode, 3)
        self.assertIn("frames[3]: expected the camera of 'view_0003.png', found 'another.png'", done.stderr)
        del cameras["frames"][3]
        (self.dir / "other.json").write_text(json.dumps(cameras))
        done = call("splat", "eval", "few/splat_1.ply", "-d", "off", "-o", "no", "--cameras", "other.json", cwd=self.dir)
        self.assertEqual(done.returncode, 3)
        self.assertIn("expected cameras of 16 views, found 15", done.stderr)


if __name__ == "__main__":
    unittest.main()
