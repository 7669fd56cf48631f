"""Building blocks of ptycho at sizes that the golden files lack, beside a statement of their rules in NumPy: groups of
four, nine and sixteen in every way of drawing them, merges of them, frames of any even side, several modes.
seconds: 12"""
import itertools
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")


def nearest(x, y, seed, k):
    """The k nearest others, ties by the lower number; of a scan of at most k patterns the first k, itself too."""
    order = np.lexsort((np.arange(len(x)), (x - x[seed]) ** 2 + (y - y[seed]) ** 2))[: k + 1]
    return order[:k] if len(x) <= k else order[1:]


def groups(x, y, gridsize, n, k, sequential, seed):
    size, m, random = gridsize**2, len(x), np.random.RandomState(0 if sequential else seed)
    seeds = np.arange(min(n, m))
    if not sequential and n < m:
        seeds = random.permutation(m)[:n]
    if size == 1:
        return seeds[:, None]
    out = []
    for s in seeds:
        near = nearest(x, y, s, k)
        out.append(near[random.permutation(len(near))[:size]])
    return np.array(out)


def oversampled(x, y, gridsize, n, k, sequential, seed):
    size, m, random = gridsize**2, len(x), np.random.RandomState(seed)
    n_seeds = min(2 * max(1, -(-n // math.comb(k, size))), m)
    seeds = random.permutation(m)[:n_seeds] if not sequential and n_seeds < m else np.arange(n_seeds)
    every = itertools.chain.from_iterable(itertools.combinations(nearest(x, y, s, k), size) for s in seeds)
    pool = np.array(list(itertools.islice(every, 2 * n)))
    return pool[random.permutation(len(pool))[:n] if len(pool) >= n else random.choice(len(pool), n)]


def translate(image, t):
    """Content moved by (x, y), bilinear, zeros from outside."""
    out = image.astype(complex)
    for axis, by in ((0, t[1]), (1, t[0])):
        at = np.arange(image.shape[axis]) - by
        low = np.floor(at).astype(int)
        padded = np.concatenate([out, np.zeros_like(out.take([0], axis))], axis)
        end = image.shape[axis]
        a, b = (padded.take(np.where((i >= 0) & (i < end), i, end), axis) for i in (low, low + 1))
        part = (at - low)[:, None] if axis == 0 else at - low
        out = (1 - part) * a + part * b
    return out


def merge(patches, rel, side, kind, probe):
    n = patches.shape[-1]
    before = (side - n) // 2
    weight = (np.abs(probe) ** 2).sum(0)
    if kind != "probe":
        weight = np.zeros((n, n))
        weight[n // 4 : n // 4 + n // 2, n // 4 : n // 4 + n // 2] = 1
    out = []
    for group, places in zip(patches, rel[:, :, 0]):
        sums = np.zeros((3, side, side), complex)
        for patch, place in zip(group, places):
            p, w = (translate(np.pad(a, (before, side - n - before)), -place) for a in (patch, weight))
            sums += [p, p * w, w]
        moved, weighted, total = sums[0], sums[1], sums[2].real
        out.append({"tf": moved / (total + 0.001), "central": (total > 1e-6) * weighted / (total + 0.001),
                    "probe": (total > 1e-6 * total.max()) * weighted / np.maximum(total, 1e-12)}[kind])
    return np.array(out)


class Blocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(7)

    def op(self, name, arrays, *flags):
        np.savez(self.dir / "in.npz", **arrays)
        words = [PROGRAM, "ptycho", "op", name, self.dir / "in.npz", self.dir / "out.npz", *map(str, flags)]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.dir / "out.npz") as z:
            return dict(z)

    def complex(self, *shape):
        return self.rng.normal(size=shape) + 1j * self.rng.normal(size=shape)

    def near(self, found, want, what):
        self.assertEqual(found.shape, want.shape, what)
        self.assertLess(np.abs(found - want).max(), 1e-12 * np.abs(want).max(), what)

    def compare_groups(self, x, y, want, gridsize, n, k, sequential, *flags):
        with self.subTest(patterns=len(x), gridsize=gridsize, n=n, k=k, sequential=sequential, flags=flags):
            found = self.op("group", {"xcoords": x, "ycoords": y}, "--gridsize", gridsize, "--n_groups", n, "--neighbor_count", k,
                            "--sequential_sampling", str(sequential).lower(), "--seed", 3, *flags)
            idx = want(x, y, gridsize, n, k, sequential, 3)
            np.testing.assert_array_equal(found["idx"], idx)
            places = np.stack([x, y], -1)[idx]
            np.testing.assert_allclose(found["off"], places.mean(1), rtol=1e-12)
            np.testing.assert_allclose(found["rel"], places.mean(1, keepdims=True) - places, atol=1e-9 * np.ptp(x))

    def test_groups_of_any_size(self):
        raster = [a.ravel().astype(float) for a in np.meshgrid(np.arange(9), np.arange(8))]  # many are equally near
        for x, y in (self.rng.uniform(0, 100, (2, 60)), raster, self.rng.uniform(0, 100, (2, 60)) + 1e6):
            for gridsize, n, k in ((1, 30, 4), (2, 30, 7), (3, 30, 9), (3, len(x), 12), (4, 5, 20)):
                for sequential in (False, True):
                    self.compare_groups(x, y, groups, gridsize, n, k, sequential)
        few = self.rng.uniform(0, 10, (2, 6))
        for k in (4, 5, 6, 8):
            self.compare_groups(*few, groups, 2, 6, k, False)

    def test_oversampled_groups(self):
        x, y = self.rng.uniform(0, 100, (2, 60))
        for gridsize, n, k in ((2, 200, 5), (2, 300, 4), (3, 100, 10), (3, 3000, 12)):
            for sequential in (False, True):
                self.compare_groups(x, y, oversampled, gridsize, n, k, sequential, "--enable_oversampling", "true")

    def test_merge_and_extract(self):
        for chan, n, side in ((9, 48, 66), (9, 32, 45), (4, 34, 51), (1, 30, 30), (16, 20, 40)):
            patches, rel, probe = self.complex(3, chan, n, n), self.rng.uniform(-7, 7, (3, chan, 1, 2)), self.complex(2, n, n)
            for kind in ("central", "tf", "probe"):
                found = self.op("merge", {"patches": patches, "coords_relative": rel, "M": side, "probe": probe}, "--merge", kind)
                self.near(found["merged"], merge(patches, rel, side, kind, probe), (chan, n, side, kind))
            region, start = self.complex(3, side, side), (side - n) // 2
            want = np.array([[translate(r, t)[start : start + n, start : start + n] for t in ts] for r, ts in zip(region, rel[:, :, 0])])
            self.near(self.op("extract", {"region": region, "coords_relative": rel, "N": n})["patches"], want, (chan, n, side))

    def test_translate_to_the_nearest(self):
        rng = np.random.default_rng(4)
        images, by = rng.normal(size=(9, 12, 17)).astype(np.float32), rng.uniform(-5, 5, size=(9, 2)).astype(np.float32)
        by[:3] = [[0.5, -1.5], [2, -3], [-2.5, 0.5]]
        found = self.op("translate", {"images": images, "offsets_xy": by}, "--interpolation", "nearest")["out"]
        for image, t, got in zip(images, by, found):
            y, x = np.arange(12) - float(t[1]), np.arange(17) - float(t[0])
            inside = np.outer((y >= 0) & (y <= 11), (x >= 0) & (x <= 16))
            at = np.ix_(np.rint(y).astype(int).clip(0, 11), np.rint(x).astype(int).clip(0, 16))
            np.testing.assert_array_equal(got, np.where(inside, image[at], 0))

    def test_translate(self):
        images = self.complex(6, 33, 20)
        by = np.array([[0, 0], [1e4, 0], [-3.5, 2.25], [19.999, -32.999], [0.5, -0.5], [7, -5]])
        want = np.array([translate(i, t) for i, t in zip(images, by)])
        self.near(self.op("translate", {"images": images, "offsets_xy": by})["out"], want, "complex")
        found = self.op("translate", {"images": images.real, "offsets_xy": by})["out"]
        self.assertEqual(found.dtype, float)
        self.near(found, want.real, "real")

    def test_diffract(self):
        for n in (10, 48, 96, 220):
            objects, probe = self.complex(2, n, n), self.complex(3, n, n)
            for modes in (probe, probe[:1]):
                waves = np.fft.fft2(modes * objects[:, None], norm="ortho")
                want = np.sqrt(np.fft.fftshift((np.abs(waves) ** 2).sum(1), (1, 2)))
                self.near(self.op("diffract", {"obj": objects, "probe": modes})["amplitude"], want, (n, len(modes)))


if __name__ == "__main__":
    unittest.main()
