"""LPIPS of splat eval against VGG16 in NumPy, with made-up weights of few channels; odd sizes, masks, files that are wrong.
seconds: 5"""
import csv
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
from test_splat_look import write_png
from test_splat_train import call

# block and number of each convolution, and its channels here
LAYERS = [(1, 0, 4), (1, 2, 4), (2, 5, 5), (2, 7, 6), (3, 10, 7), (3, 12, 6), (3, 14, 8), (4, 17, 7), (4, 19, 6), (4, 21, 5),
          (5, 24, 6), (5, 26, 5), (5, 28, 4)]
VIEWS, WIDTH, HEIGHT = 3, 53, 38


def weights(seed):
    random, channels, out = np.random.default_rng(seed), 3, {}
    for k, (block, number, to) in enumerate(LAYERS):
        out[f"net.slice{block}.{number}.weight"] = random.normal(size=(to, channels, 3, 3), scale=np.sqrt(2 / (9 * channels)))
        out[f"net.slice{block}.{number}.bias"] = random.normal(size=to, scale=0.2)
        if k + 1 == len(LAYERS) or LAYERS[k + 1][0] != block:
            out[f"lin{block - 1}.model.1.weight"] = random.random((1, to, 1, 1))
        channels = to
    return {name: a.astype(np.float32) for name, a in out.items()}


def save(path, arrays):
    header, at = {}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values()))


def features(image, arrays):
    """After the last convolution of each block, length 1 in each pixel; image [i j c] from 0 to 1, in double."""
    v = ((2 * image - 1 - [-0.030, -0.088, -0.188]) / [0.458, 0.448, 0.450]).transpose(2, 0, 1)
    out = []
    for k, (block, number, _) in enumerate(LAYERS):
        w, b = (arrays[f"net.slice{block}.{number}.{what}"].astype(float) for what in ("weight", "bias"))
        if k and LAYERS[k - 1][0] != block:
            rows, columns = v.shape[1] // 2, v.shape[2] // 2
            v = v[:, :2 * rows, :2 * columns].reshape(len(v), rows, 2, columns, 2).max(axis=(2, 4))
        padded = np.pad(v, ((0, 0), (1, 1), (1, 1)))
        taps = np.stack([padded[:, y:y + v.shape[1], x:x + v.shape[2]] for y in range(3) for x in range(3)], 1)
        v = np.maximum(np.einsum("oct,ctyx->oyx", w.reshape(*w.shape[:2], 9), taps) + b[:, None, None], 0)
        if k + 1 == len(LAYERS) or LAYERS[k + 1][0] != block:
            out.append(v / (np.sqrt((v ** 2).sum(0)) + 1e-10))
    return out


def distance(a, b, arrays):
    pairs = zip(features(a, arrays), features(b, arrays))
    return sum((((x - y) ** 2) * arrays[f"lin{k}.model.1.weight"][0].astype(float)).sum(0).mean() for k, (x, y) in enumerate(pairs))


class Lpips(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        for words in (["toy", "-o", "toy", "--views", VIEWS, "--size", f"{WIDTH}x{HEIGHT}", "--gaussians", 200],
                      ["toy", "-o", "other", "--views", VIEWS, "--size", f"{WIDTH}x{HEIGHT}", "--gaussians", 150, "--seed", 3],
                      ["render", "other/truth.ply", "-d", "toy", "-o", "seen"],
                      ["render", "toy/truth.ply", "-d", "toy", "-o", "true"]):
            done = call("splat", *words, cwd=cls.dir)
            assert done.returncode == 0, done.stderr
        cls.arrays = weights(0)
        save(cls.dir / "vgg.safetensors", cls.arrays)
        clamped = [[np.clip(np.load(cls.dir / f"{name}/view_{v:04}.npy").astype(float), 0, 1) for v in range(VIEWS)]
                   for name in ("seen", "true")]
        cls.seen, cls.true = clamped[0], [np.rint(i * 255) / 255 for i in clamped[1]]

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def score(self, *more, data="toy", code=0):
        done = call("splat", "eval", "other/truth.ply", "-d", data, "-o", "scores", "--views", "all", "--no-images", "--json",
                    "--lpips-weights", "vgg.safetensors", *more, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else json.loads(done.stdout)["lpips"]

    def test_it_is_that_of_numpy(self):
        want = np.mean([distance(a, b, self.arrays) for a, b in zip(self.seen, self.true)])
        self.assertGreater(want, 0.05)
        got = self.score()
        self.assertAlmostEqual(got, want, delta=1e-4 * want)
        with open(self.dir / "scores/metrics.csv", newline="") as f:
            self.assertEqual(float(list(csv.DictReader(f))[-1]["lpips"]), got)
        for more in (["--threads", 1], ["--memory", "24M"]):
            self.assertEqual(self.score(*more), got, more)

    def test_trainings_have_it_too(self):
        words = ["splat", "train", "-d", "toy", "-i", 1, "--eval", "--test-every", 2, "--set", "eval_steps=[1]", "--quiet"]
        for out, more in (("with", ["--lpips-weights", "vgg.safetensors"]), ("without", [])):
            done = call(*words, "-o", out, *more, cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = call("splat", "eval", "with/splat_1.ply", "-d", "toy", "-o", "after", "--test-every", 2, "--no-images", "--json",
                    "--lpips-weights", "vgg.safetensors", cwd=self.dir)
        with open(self.dir / "with/metrics.csv", newline="") as f:
            self.assertAlmostEqual(float(list(csv.DictReader(f))[-1]["lpips"]), json.loads(done.stdout)["lpips"], places=6)
        self.assertEqual((self.dir / "with/splat_1.ply").read_bytes(), (self.dir / "without/splat_1.ply").read_bytes())
        done = call(*words, "-o", "wrong", "--lpips-weights", "toy/truth.ply", cwd=self.dir)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse((self.dir / "wrong/splat_1.ply").exists())

    def test_masks_leave_pixels_out(self):
        shutil.copytree(self.dir / "toy", self.dir / "masked")
        mask = np.full((HEIGHT, WIDTH), 255, np.uint8)
        mask[5:20, 10:40] = 0
        for v in range(VIEWS):
            write_png(self.dir / f"masked/masks/view_{v:04}.png", mask)
        want = np.mean([distance(np.where(mask[..., None] > 0, a, b), b, self.arrays) for a, b in zip(self.seen, self.true)])
        self.assertAlmostEqual(self.score(data="masked"), want, delta=1e-4 * want)

    def test_files_that_are_wrong_are_refused(self):
        shutil.copy(self.dir / "vgg.safetensors", self.dir / "kept.safetensors")
        less = {k: v for k, v in self.arrays.items() if k != "net.slice3.12.bias"}
        save(self.dir / "vgg.safetensors", less)
        self.assertIn("net.slice3.12.bias", self.score(code=3))
        save(self.dir / "vgg.safetensors", {**self.arrays, "lin2.model.1.weight": np.zeros((1, 9, 1, 1), np.float32)})
        self.assertIn("lin2.model.1.weight: expected 4 axes", self.score(code=3))
        shutil.copy(self.dir / "kept.safetensors", self.dir / "vgg.safetensors")
        done = call("splat", "eval", "other/truth.ply", "-d", "toy", "-o", "plain", "--views", "all", "--no-images", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.dir / "plain/metrics.csv", newline="") as f:
            self.assertEqual(list(csv.DictReader(f))[-1]["lpips"], "")


if __name__ == "__main__":
    unittest.main()
