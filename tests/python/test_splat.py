"""splat as people run it: a made-up capture, its images, gradients against NumPy, the same bytes with every number of
threads and in little memory, and what is said of bad input.
seconds: 20"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/splat"


def call(*words, cwd):
    return subprocess.run([PROGRAM, "splat", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=60)


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    n, = struct.unpack("<Q", data[:8])
    header, out = json.loads(data[8:8 + n]), {}
    for name, item in header.items():
        if name != "__metadata__":
            dtype = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[item["dtype"]]
            lo, hi = item["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + lo:8 + n + hi], dtype).reshape(item["shape"])
    return out


def golden(name):
    return np.load(GOLDEN / f"{name}.npy")


def write_png16(path, image):
    """Numbers from 0 to 1 as a PNG of 16 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = image.shape
    rows = np.rint(image * 65535).astype(">u2").reshape(height, -1)
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)) +
                     chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def write_golden(folder):
    """The golden scene as a PLY and a transforms.json with its four views and targets."""
    means, sh0, shN, scales, quats, opac = (golden("in_" + k) for k in ("means", "sh0", "shN", "scales", "quats", "opac"))
    n = len(means)
    columns = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2", *(f"f_rest_{i}" for i in range(45)),
               "opacity", *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]
    rows = np.concatenate([means, np.zeros((n, 3)), sh0[:, 0], shN.transpose(0, 2, 1).reshape(n, 45),
                           opac.reshape(n, 1), scales, quats], 1).astype("<f4")
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {n}\n"
    head += "".join(f"property float {c}\n" for c in columns) + "end_header\n"
    (folder / "model.ply").write_bytes(head.encode() + rows.tobytes())
    frames = []
    for v, (w2c, intrinsics) in enumerate(zip(golden("in_w2c").astype(float), golden("in_intr").astype(float))):
        c2w = np.linalg.inv(w2c)
        c2w[:3, 1:3] *= -1
        frames.append({"file_path": f"images/view_{v:02}.png", "transform_matrix": c2w.tolist(),
                       **dict(zip(("fl_x", "fl_y", "cx", "cy"), intrinsics)), "w": 50, "h": 42})
    (folder / "transforms.json").write_text(json.dumps({"frames": frames}))
    (folder / "images").mkdir()
    for v, target in enumerate(golden("in_gt")):
        write_png16(folder / f"images/view_{v:02}.png", target)


class Splat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        done = call("toy", "-o", "toy", "--views", 4, "--size", "61x47", "--gaussians", 700, cwd=cls.dir)
        assert done.returncode == 0, done.stderr
        (cls.dir / "golden").mkdir()
        write_golden(cls.dir / "golden")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def must(self, *words):
        done = call(*words, cwd=self.dir)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def test_a_toy_is_a_capture_of_its_model(self):
        about = json.loads(self.must("info", "toy", "--json"))
        self.assertEqual((about["views"], about["points"], about["width"], about["height"]), (4, 350, 61, 47))
        self.assertEqual(json.loads(self.must("info", "toy/truth.ply", "--json"))["gaussians"], 700)
        self.must("render", "toy/truth.ply", "-d", "toy", "-o", "pictures", "--format", "png")
        for v in range(4):  # the images are those of the model
            name = f"view_{v:04}.png"
            self.assertEqual((self.dir / "pictures" / name).read_bytes(), (self.dir / "toy/images" / name).read_bytes())
        self.must("toy", "-o", "again", "--views", 4, "--size", "61x47", "--gaussians", 700)
        for path in sorted((self.dir / "toy").rglob("*")):
            if path.is_file():
                self.assertEqual(path.read_bytes(), (self.dir / "again" / path.relative_to(self.dir / "toy")).read_bytes())
        self.must("toy", "-o", "other", "--views", 4, "--size", "61x47", "--gaussians", 700, "--seed", 5)
        self.assertNotEqual((self.dir / "toy/truth.ply").read_bytes(), (self.dir / "other/truth.ply").read_bytes())

    def test_images_and_gradients_of_the_golden_scene(self):
        self.must("render", "golden/model.ply", "-d", "golden", "-o", "g", "--bg", "0.1,0.2,0.3", "--alpha", "--gradients")
        image = np.load(self.dir / "g/images/view_00.npy")
        self.assertEqual((image.shape, image.dtype), ((42, 50, 3), np.float32))
        self.assertLess(np.abs(image - golden("fwd_deg3_image")).max(), 2e-5)
        self.assertLess(np.abs(np.load(self.dir / "g/images/view_00_alpha.npy") - golden("fwd_deg3_alpha")).max(), 2e-5)
        got = read_safetensors(self.dir / "g/images/view_00_gradients.safetensors")
        self.assertLess(abs(got["loss"] - [0.07919250573009748, 0.035664799622663154, 0.7466966698401653]).max(), 1e-5)
        for ours, theirs in (("means", "means"), ("sh0", "sh0"), ("shN", "shN"), ("scaling", "scales"),
                             ("rotation", "quats"), ("opacity", "opac"), ("mean2d", "m2")):
            want = golden("fwd_deg3_grad_" + theirs)
            self.assertEqual(got[ours].shape, want.shape, ours)
            self.assertLess(np.abs(got[ours] - want).max(), 5e-4 * np.abs(want).max(), ours)
        seen = golden("fwd_deg3_n_tiles") > 0
        np.testing.assert_array_equal(got["densify"][0], seen.astype(np.float32))
        length = np.hypot(got["mean2d"][:, 0] * 25, got["mean2d"][:, 1] * 21)
        np.testing.assert_allclose(got["densify"][1], length, rtol=1e-6, atol=1e-12)
        for name in ("means", "sh0", "shN", "scaling", "rotation", "opacity", "mean2d"):
            self.assertFalse(got[name][~seen].any(), name)

    def test_threads_and_memory_change_no_byte(self):
        def files(*more):
            shutil.rmtree(self.dir / "r", ignore_errors=True)
            self.must("render", "toy/truth.ply", "-d", "toy", "-o", "r", "--gradients", "--alpha", *more)
            return {p.name: p.read_bytes() for p in sorted((self.dir / "r").iterdir())}
        first = files("--threads", 1)
        self.assertEqual(len(first), 12)
        for more in (["--threads", 2], ["--threads", 5], ["--memory", "8M"]):
            self.assertEqual(files(*more), first)

    def test_bad_input_is_refused_and_nothing_is_left(self):
        cut = self.dir / "cut.ply"
        cut.write_bytes((self.dir / "golden/model.ply").read_bytes()[:-9])
        shutil.copytree(self.dir / "toy", self.dir / "less", dirs_exist_ok=True)
        (self.dir / "less/images/view_0001.png").unlink()
        (self.dir / "bent.json").write_text((self.dir / "golden/transforms.json").read_text().replace(
            '"frames"', '"k1": -0.2, "frames"'))
        for code, words, part in (
                (3, ("info", "nowhere"), "nowhere"), (3, ("info", "cut.ply"), "cut.ply, byte 1"),
                (3, ("render", "cut.ply", "-d", "toy", "-o", "bad"), "cut.ply"),
                (3, ("render", "toy/truth.ply", "-d", "less", "-o", "bad"), "1 are missing: view_0001.png"),
                (3, ("render", "toy/truth.ply", "--cameras", "bent.json", "-o", "bad"), "--ignore-distortion"),
                (2, ("render", "toy/truth.ply", "-o", "bad"), "-d or --cameras"),
                (2, ("render", "toy/truth.ply", "-d", "toy", "-o", "bad", "--views", "some"), "all, test or train"),
                (2, ("render", "toy/truth.ply", "-d", "toy", "-o", "bad", "--bg", "1,2"), "r,g,b"),
                (4, ("render", "toy/truth.ply", "-d", "toy", "-o", "bad", "--memory", "100K"), "memory"),
                (2, ("convert", "toy/truth.ply", "bad.xyz"), ".ply, .splat, .spz, .sog"),
                (2, ("convert", "toy/truth.ply", "bad.ply", "--sh-degree", "2"), "at most the degree"),
                (3, ("convert", "less", "bad.ply"), "less")):
            done = call(*words, cwd=self.dir)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(part, done.stderr)
            self.assertEqual([p for p in self.dir.glob("bad*")], [], words)


if __name__ == "__main__":
    unittest.main()
