"""Every solver of ptycho for three epochs in double beside its rules in NumPy: batches, fractions of positions, one to
three modes, a mask for all patterns and one for each.
seconds: 10"""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from laid_on import error

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
N, PATTERNS, EPOCHS = 24, 20, 3
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/ptycho/g10_solver_case.npz"
PLAIN = "--precision double --scale_every 0 --probe_power file --orthogonalise false --rescale_probe false --quiet --force".split()


def to(waves):
    return np.fft.fft2(waves, norm="ortho")


def back(waves):
    return np.fft.ifft2(waves, norm="ortho")


def shift(probe, dy, dx):
    f = np.fft.fftfreq(N)
    return back(to(probe) * np.exp(-2j * np.pi * (f[:, None] * dy + f * dx)))


def power(field):
    return (np.abs(field) ** 2).sum(0)


def make_scan(modes, fractions, masks):
    """Counts in FFT order, and a first probe that is wrong in its curvature and in the power of its modes. Frames of 16 pixels
    would leave models of 1e-16 where there are counts: rounding alone would decide."""
    rng, side = np.random.default_rng(0), 60
    k = np.fft.fftfreq(side)
    images = np.fft.ifft2(np.fft.fft2(rng.normal(size=(2, side, side))) * np.exp(-200 * (k[:, None] ** 2 + k**2))).real
    images /= images.std((1, 2), keepdims=True)
    obj = (1 - 0.05 * np.clip(images[0], -2, 2) ** 2) * np.exp(0.4j * images[1])
    y, x = np.mgrid[:N, :N] - N // 2
    probe = np.exp(-(x**2 + y**2) / 2 / (N / 6) ** 2 + 4j * (x**2 + y**2) / N**2)
    probe = np.array([probe, 0.4 * probe * x / (N / 6), 0.3 * probe * y / (N / 6)])[:modes]
    probe *= np.sqrt(1e5 / (np.abs(probe) ** 2).sum())
    places = rng.uniform(N / 2 + 2, side - N / 2 - 3, (2, PATTERNS))
    if not fractions:
        places = np.rint(places)
    counts = []
    for py, px in places.T:
        r, c = int(np.rint(py)), int(np.rint(px))
        counts.append(power(to(shift(probe, py - r, px - c) * obj[r - N // 2 : r + N // 2, c - N // 2 : c + N // 2])))
    good = rng.uniform(size=(max(masks, 1), N, N)) > (0.1 if masks else -1)
    start = probe * np.exp(1j * (x**2 + y**2) / N**2) * np.array([1, 0.7, 0.5])[:modes, None, None]
    return {"counts": rng.poisson(counts).astype(float), "y": places[0], "x": places[1], "probe": start, "good": good}


class Model:
    """Object of ones and first probe of a scan, on the canvas that the program chose."""

    def __init__(self, scan, origin, shape):
        self.counts, self.probe, self.object = scan["counts"], scan["probe"].copy(), np.ones(shape, complex)
        self.good = np.broadcast_to(scan["good"], self.counts.shape)
        self.origin = origin[::-1]
        self.place(np.array([scan["y"], scan["x"]]).T)

    def place(self, positions):
        whole = np.rint(positions)
        self.positions, self.fraction = positions, positions - whole
        self.corner = (whole - N // 2 - self.origin).astype(int)

    def patch(self, j):
        r, c = self.corner[j]
        return slice(r, r + N), slice(c, c + N)

    def wave(self, j):
        probe, patch = shift(self.probe, *self.fraction[j]), self.object[self.patch(j)]
        return probe, patch, to(probe * patch)

    def change(self, j, eps):
        """Shifted probe, patch, and what the modulus projection adds to the exit wave."""
        probe, patch, wave = self.wave(j)
        factor = np.sqrt(self.counts[j]) / (np.sqrt(power(wave)) + eps) - 1
        return probe, patch, back(wave * np.where(self.good[j], factor, 0))


def position_steps(parts):
    """Of the patterns of a batch, (y, x): how far along each slope of the object the change of the wave lies."""
    f, steps = 2j * np.pi * np.fft.fftfreq(N), []
    for probe, patch, chi in parts:
        slopes = [probe[0] * back(to(patch) * by) for by in (f[:, None], f)]
        steps.append([(u.conj() * chi[0]).real.sum() / (np.abs(u) ** 2).sum() for u in slopes])
    steps = np.array(steps)
    limit = np.minimum(0.1, 10 * np.median(np.abs(steps - np.median(steps, 0)), 0))
    return np.clip(steps, -limit, limit)


class Momentum:
    """Of mPIE: every few updates, whatever the epoch, object and probe go on the way that they went."""

    def __init__(self, m, every, shares):
        self.every, self.shares, self.done = every, shares, 0
        self.saved, self.speed = [m.object.copy(), m.probe.copy()], [0, 0]

    def after_update(self, m):
        self.done += 1
        if self.done % self.every:
            return
        for k, field in enumerate((m.object, m.probe)):
            self.speed[k] = self.shares[k] * self.speed[k] + field - self.saved[k]
            field += self.shares[k] * self.speed[k]
            self.saved[k] = field.copy()


def pie(m, order, batch, kind, alpha, beta, moves=False, momentum=None):
    moved = m.positions.copy()
    for at in range(0, PATTERNS, batch):
        chosen = order[at : at + batch]
        d_object, d_probe = np.zeros_like(m.object), np.zeros_like(m.probe)
        parts = [m.change(j, 1e-7) for j in chosen]
        if moves:
            moved[chosen] += position_steps(parts)
        for j, (probe, patch, chi) in zip(chosen, parts):
            light, seen = power(probe), np.abs(patch) ** 2
            if kind == "epie":
                below, beside = light.max() / alpha, seen.max() / beta
            elif kind == "pie":
                below, beside = (np.sqrt(p.max()) * (p + s * p.max()) / np.sqrt(p) for s, p in ((alpha, light), (beta, seen)))
            else:
                below, beside = ((1 - s) * p + s * p.max() for s, p in ((alpha, light), (beta, seen)))
            d_object[m.patch(j)] += (probe.conj() * chi).sum(0) / below
            d_probe += shift(patch.conj() * chi / beside, *-m.fraction[j])
        m.object += d_object
        m.probe += d_probe / len(chosen)
        if momentum:
            momentum.after_update(m)
    m.place(moved)


def poisson_changes(m, chosen, alpha):
    """As changes of LSQ-ML; `alpha`, a step for each pattern of the scan, goes on from epoch to epoch."""
    parts = []
    for j in chosen:
        probe, patch, wave = m.wave(j)
        rate = power(wave)
        parts.append((probe, patch, wave, rate, (1 - m.counts[j] / (rate + 1e-6)) * m.good[j]))
    for _ in range(2):
        mean = alpha[chosen].mean()
        for j, (_, _, _, rate, xi) in zip(chosen, parts):
            ratio = (xi * (rate - m.counts[j] / (1 - mean * xi))).sum() / (xi**2 * rate).sum()
            alpha[j] = np.clip(mean / 2 + ratio / 2, 0, 1)
    return [(probe, patch, back(-alpha[j] * xi * wave)) for j, (probe, patch, wave, _, xi) in zip(chosen, parts)]


def lsqml(m, orders, batch, noise, once=False):
    """`once`: the object moves after an epoch, along all directions by the shortest step; the probe by a share of its own."""
    alpha, light, share = np.full(PATTERNS, 0.5), None, 1 / -(-PATTERNS // batch) if once else 1
    for order in orders:
        now = np.zeros(m.object.shape)
        for j in range(PATTERNS):
            now[m.patch(j)] += np.abs(m.probe[0]) ** 2
        light = now if light is None else light / 2 + now / 2
        held, shortest = np.zeros_like(m.object), np.inf
        for at in range(0, PATTERNS, batch):
            chosen = order[at : at + batch]
            parts = poisson_changes(m, chosen, alpha) if noise == "poisson" else [m.change(j, 1e-9) for j in chosen]
            d_object, d_probe = np.zeros_like(m.object), np.zeros_like(m.probe)
            for j, (probe, patch, chi) in zip(chosen, parts):
                d_object[m.patch(j)] += (probe.conj() * chi).sum(0)
                d_probe += shift(patch.conj() * chi, *-m.fraction[j]) / len(chosen)
            d_object /= np.sqrt(light**2 + (0.1 * light.max()) ** 2)
            u = np.array([d_object[m.patch(j)] * probe[0] for j, (probe, _, _) in zip(chosen, parts)])
            v = np.array([d_probe[0] * patch for _, patch, _ in parts])
            chi = np.array([c[0] for _, _, c in parts])
            a11, a22 = ((np.abs(w) ** 2 + 1.2e-7 / N**2).sum((1, 2)) for w in (u, v))
            a12 = (u * v.conj()).sum((1, 2))
            left = np.array([[a11 + 0.1 * a11.mean(), a12], [a12.conj(), a22 + 0.1 * a22.mean()]]).transpose(2, 0, 1)
            right = np.array([(w.conj() * chi).real.sum((1, 2)) for w in (u, v)]).T
            steps = 0.9 * np.maximum(np.linalg.solve(left, right[..., None])[..., 0].real, 0)
            cut = len(chosen) // 10
            step = np.sort(steps[:, 0])[cut : len(chosen) - cut].mean() / len(m.probe)
            if once:
                held, shortest = held + d_object, min(step, shortest)
            else:
                m.object += step * d_object
            m.probe += share * steps[:, 1].mean() * d_probe
        if once:
            m.object += shortest * held


def exit_waves(m, a, b, c):
    """DM and RAAR; the probe is held for two iterations."""
    inertia = 1e-4 * np.where(m.good, m.counts, 0).mean(), 1e-9 * PATTERNS
    waves = np.array([m.probe * m.object[m.patch(j)] for j in range(PATTERNS)])
    for iteration in range(EPOCHS):
        for j in range(PATTERNS):
            now = m.probe * m.object[m.patch(j)]
            there = to((1 - c) * waves[j] + c * now)
            factor = np.where(m.good[j], np.sqrt(m.counts[j]) / (np.sqrt(power(there)) + 1e-10), 1)
            waves[j] += b * back(there * factor) + a * now - (a + b) * waves[j]
        for _ in range(10):
            above, below = inertia[0] * m.object, np.full(m.object.shape, inertia[0])
            for j in range(PATTERNS):
                above[m.patch(j)] += (m.probe.conj() * waves[j]).sum(0)
                below[m.patch(j)] += power(m.probe)
            m.object = above / below
            if iteration < 2:
                break
            patches = np.array([m.object[m.patch(j)] for j in range(PATTERNS)])
            new = (inertia[1] * m.probe + (patches.conj()[:, None] * waves).sum(0)) / (inertia[1] + power(patches))
            moved, m.probe = np.linalg.norm(new - m.probe) / np.linalg.norm(new), new
            if moved < 0.05:
                break


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.orders = np.array([np.random.default_rng(e).permutation(PATTERNS) for e in range(EPOCHS)])
        np.save(self.dir / "order.npy", self.orders)

    def compare(self, scan, rule, *words):
        arrays = {"diff3d": np.fft.fftshift(np.sqrt(scan["counts"]), (1, 2)), "xcoords": scan["x"], "ycoords": scan["y"],
                  "probeGuess": scan["probe"]}
        if not scan["good"].all():
            arrays["mask"] = np.fft.fftshift(scan["good"], (1, 2))
            arrays["mask"] = arrays["mask"][0] if len(scan["good"]) == 1 else arrays["mask"]
        np.savez(self.dir / "scan.npz", **arrays)
        words = ["scan.npz", "--out", "out", "--iterations", EPOCHS, "--algorithm", *words]
        done = subprocess.run([PROGRAM, "ptycho", "solve", *map(str, words), *PLAIN], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.dir / "out/reconstruction.npz") as z:
            model = Model(scan, z["canvas_origin"], z["reconstructed_object"].shape)
            rule(model)
            for found, want in ((z["reconstructed_object"], model.object), (z["reconstructed_probe"], model.probe)):
                self.assertGreater(np.abs(want - want.flat[0]).max(), 0.1)
                self.assertLess(np.abs(found - want).max(), 2e-7 * np.abs(want).max(), (words, scan["probe"].shape))  # stored in single
            np.testing.assert_allclose(z["positions"], model.positions[:, ::-1], atol=1e-9)
            return z["positions"]

    def test_pattern_by_pattern(self):
        for modes, fractions, masks in ((1, False, 0), (3, True, 1), (2, True, PATTERNS)):
            scan = make_scan(modes, fractions, masks)
            for kind, batch, alpha, beta in (("epie", 1, 1, 1), ("epie", 4, 0.5, 0.7), ("rpie", 1, 0.05, 0.5), ("rpie", 7, 0.2, 0.3),
                                             ("pie", 1, 0.05, 0.5), ("pie", 6, 0.3, 0.1)):
                def rule(m):
                    for order in self.orders:
                        pie(m, order, batch, kind, alpha, beta)

                self.compare(scan, rule, kind, "--batch", batch, "--object_alpha", alpha, "--probe_alpha", beta, "--order", "order.npy")

    def test_momentum(self):
        """Counted over epochs of 20 and of 7 updates; more than an epoch has, and after each."""
        for modes, fractions, masks in ((1, False, 0), (2, True, PATTERNS)):
            scan = make_scan(modes, fractions, masks)
            for batch, every, shares in ((1, 7, (0.9, 0.75)), (3, 9, (0.5, 0.6)), (1, 1, (0.2, 0.3)), (1, 30, (0.9, 0.75))):
                def rule(m):
                    momentum = Momentum(m, every, shares)
                    for order in self.orders:
                        pie(m, order, batch, "rpie", 0.2, 0.5, momentum=momentum)
                    self.assertGreaterEqual(momentum.done, every)

                self.compare(scan, rule, "mpie", "--batch", batch, "--object_alpha", 0.2, "--probe_alpha", 0.5, "--order", "order.npy",
                             "--momentum_every", every, "--object_momentum", shares[0], "--probe_momentum", shares[1])

    def test_positions(self):
        scan = make_scan(2, True, 1)
        scan["x"], scan["y"] = (p + np.random.default_rng(5).uniform(-0.5, 0.5, PATTERNS) for p in (scan["x"], scan["y"]))

        def rule(m):
            for epoch, order in enumerate(self.orders):
                pie(m, order, 6, "rpie", 0.1, 0.2, moves=epoch >= 1)

        found = self.compare(scan, rule, "rpie", "--batch", 6, "--object_alpha", 0.1, "--probe_alpha", 0.2, "--order", "order.npy",
                             "--position_start", 1)
        self.assertGreater(np.abs(found - np.array([scan["x"], scan["y"]]).T).max(), 0.1)

    def test_lsqml(self):
        for modes, fractions, masks in ((1, False, 0), (3, True, 1), (2, True, PATTERNS)):
            scan = make_scan(modes, fractions, masks)
            for noise, batch in (("gaussian", 8), ("gaussian", 20), ("poisson", 13)):
                self.compare(scan, lambda m: lsqml(m, self.orders, batch, noise), "lsqml", "--batch", batch, "--noise_model", noise,
                             "--order", "order.npy")

    def test_compact_batches(self):
        for modes, fractions, masks in ((1, False, 0), (2, True, PATTERNS)):
            scan = make_scan(modes, fractions, masks)
            for batch in (6, 20):
                self.compare(scan, lambda m: lsqml(m, self.orders, batch, "gaussian", once=True), "lsqml", "--batch", batch, "--batching",
                             "compact", "--order", "order.npy")

    def test_exit_waves(self):
        for modes, masks in ((1, 0), (3, 1), (2, PATTERNS)):
            scan = make_scan(modes, False, masks)
            for words, factors in ((["dm"], (-1, 1, 2)), (["dm", "--dm_alpha", 0.7], (-0.7, 1, 1.7)),
                                   (["raar", "--raar_beta", 0.9], (-0.8, 0.9, 2))):
                self.compare(scan, lambda m: exit_waves(m, *factors), *words)

    def test_error_at_1e9_photons(self):
        """The row of LSQ-ML in the table of the specification, 0.0012 with an R of 0.0014. Object and probe drift together by
        some hundredths of a pixel, another way with every order, which no data can tell: that shift is taken off."""
        with np.load(GOLDEN) as z:
            truth, probe, corners, rows = z["obj"], z["probe"], z["rowcol"], np.nonzero(z["roi"])[0]
        n = len(probe)
        counts = np.array([np.abs(to(probe * truth[r : r + n, c : c + n])) ** 2 for r, c in corners])
        counts = np.random.default_rng(1).poisson(counts * 1e9 / counts.sum((1, 2)).mean())
        y, x = np.mgrid[:n, :n] - n // 2
        np.savez(self.dir / "scan.npz", diff3d=np.fft.fftshift(np.sqrt(counts), (1, 2)), xcoords=corners[:, 1] + n / 2,
                 ycoords=corners[:, 0] + n / 2, probeGuess=probe * np.exp(0.003j * (x**2 + y**2)))
        words = "scan.npz --algorithm lsqml --iterations 60 --batch 12 --out out --quiet".split()
        done = subprocess.run([PROGRAM, "ptycho", "solve", *words], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        inner = (rows.min(), rows.max() + 1)
        with np.load(self.dir / "out/reconstruction.npz") as z:
            self.assertLess(error(z["reconstructed_object"], z["canvas_origin"][::-1], truth, inner, inner), 0.0012)
            self.assertLess(z["error_history"][-1], 0.0014)


if __name__ == "__main__":
    unittest.main()
