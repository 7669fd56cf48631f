"""The network of ptycho and one step of its training beside a statement in PyTorch, in double: patches of every setting,
and loss, predictions and all gradients of groups of one, four and nine with one mode and two.
seconds: 60"""
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ACTIVATIONS = {"sigmoid": lambda v: torch.sigmoid(v), "swish": lambda v: F.silu(v), "softplus": lambda v: F.softplus(v),
               "relu": lambda v: F.relu(v)}


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("PyTorch is not installed")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)


class Weights(dict):
    """Parameters by the formula of the specification, made when they are first used."""

    def parameter(self, name, *shape):
        if name not in self:
            fan = math.prod(shape[1:]) if len(shape) > 1 else 16
            values = 1.2 * np.sin(0.37 * np.arange(math.prod(shape)) + 0.11 * len(name)) / math.sqrt(fan)
            self[name] = torch.tensor(values.astype(np.float32).reshape(shape), dtype=torch.float64, requires_grad=True)
        return self[name]

    def conv(self, name, x, out):
        return F.conv2d(x, self.parameter(name + ".weight", out, x.shape[1], 3, 3), self.parameter(name + ".bias", out), padding=1)

    def block(self, name, x, out):
        return F.relu(self.conv(name + ".conv2", F.relu(self.conv(name + ".conv1", x, out)), out))


def network(weights, x, flavour="tf", amp_activation="sigmoid", probe_big=True, pad_object=True, scale=1):
    n, chan, first = x.shape[-1], x.shape[1], x
    levels = int(math.log2(n)) - 3
    for i in range(levels):
        first = F.max_pool2d(weights.block(f"encoder.blocks.{i}", first, 128 * scale >> (levels - 1 - i)), 2)
    outside = 4 if flavour == "tf" else chan
    hidden = scale * (2048 // n if flavour == "tf" else 32)
    border = torch.ones(n, n)
    border[n // 4 : 3 * n // 4, n // 4 : 3 * n // 4] = 0
    out = []
    for kind, last in (("amp", ACTIVATIONS[amp_activation]), ("phase", lambda v: math.pi * torch.tanh(v))):
        y, head = first, f"decoder_{kind}.{kind}"
        for i in range(levels - 1):
            y = F.interpolate(weights.block(f"decoder_{kind}.blocks.{i}", y, 32 * scale << (levels - 2 - i)), scale_factor=2)
        if not pad_object:
            up = F.interpolate(weights.block(head + ".conv_up_block", y, hidden), scale_factor=2)
            out.append(last(weights.conv(head + ".conv2", up, chan)))
            continue
        image = F.pad(last(weights.conv(head + ".conv1", y[:, : 32 * scale - outside], chan)), [n // 4] * 4)
        if probe_big:
            up = F.interpolate(weights.block(head + ".conv_up_block", y[:, 32 * scale - outside :], hidden), scale_factor=2)
            image = image + F.silu(weights.conv(head + ".conv2", up, chan)) * border
        out.append(image)
    return out


def translate(image, t):
    for axis, by in ((-2, t[1]), (-1, t[0])):
        low = math.floor(-by)
        part, end = -by - low, image.shape[axis]

        def moved(m):
            at = torch.arange(end) + m
            inside = ((at >= 0) & (at < end)).reshape([-1, 1] if axis == -2 else [-1])
            return image.index_select(axis, at.clamp(0, end - 1)) * inside

        image = (1 - part) * moved(low) + part * moved(low + 1)
    return image


def merged(patches, rel, weight, kind):
    """What each pattern of a group sees of the region that the patches of all make."""
    n = patches.shape[-1]
    before = math.ceil(np.abs(rel).max())
    before += before % 2
    rows = slice(before, before + n)
    pad = [before] * 4
    out = []
    for group, places in zip(patches, rel):
        p = [translate(torch.complex(F.pad(a.real, pad), F.pad(a.imag, pad)), -t) for a, t in zip(group, places)]
        w = [translate(F.pad(weight, pad), -t) for t in places]
        total, weighted = sum(w), sum(a * b for a, b in zip(p, w))
        region = {"tf": lambda: sum(p) / (total + 0.001), "central": lambda: (total > 1e-6) * weighted / (total + 0.001),
                  "probe": lambda: (total > 1e-6 * total.max()) * weighted / total.clamp_min(1e-12)}[kind]()
        out.append(torch.stack([translate(region, t)[rows, rows] for t in places]))
    return torch.stack(out)


def step(given, nphotons, merge="central", nll_weight=1, mae_weight=0, **settings):
    weights, x, n = Weights(), torch.tensor(given["X"], dtype=torch.float64), given["X"].shape[-1]
    probe = torch.tensor(given["probe"], dtype=torch.complex128)
    probe = probe / (4 * probe.abs().mean())
    scale = math.sqrt(nphotons) / (n / 2)
    seen = scale * math.sqrt((n / 2) ** 2 / (x**2).sum((2, 3)).mean()) * x
    w = torch.tensor(math.log(scale), requires_grad=True)
    amp, phase = network(weights, seen / torch.exp(w), **settings)
    weight = torch.zeros(n, n)
    weight[n // 4 : 3 * n // 4, n // 4 : 3 * n // 4] = 1
    if merge == "probe":
        weight = (probe.abs() ** 2).sum(0)
    lit = merged(amp * torch.exp(1j * phase), given["coords_relative"][:, :, 0].astype(float), weight, merge)
    rate = (torch.fft.fft2(probe * lit[:, :, None], norm="ortho").abs() ** 2).sum(2)
    pred = torch.exp(w) * torch.sqrt(torch.fft.fftshift(rate, (2, 3)))
    nll = (pred**2 - seen**2 * torch.log((pred**2).clamp_min(1e-12))).mean()
    loss = nll_weight * nll + mae_weight * (pred - seen).abs().mean()
    loss.backward()
    return {"loss": loss, "pred": pred, "grad_w": w.grad, **{"grad." + k: v.grad for k, v in weights.items()}}


class Network(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(3)

    def op(self, name, arrays, settings, *flags):
        np.savez(self.dir / "in.npz", **arrays)
        for key, value in settings.items():
            flags += ("--" + key, str(value).lower())
        done = subprocess.run([PROGRAM, "ptycho", "op", name, self.dir / "in.npz", self.dir / "out.npz", "--n_filters_scale", "1", *flags],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.dir / "out.npz") as z:
            return dict(z)

    def patterns(self, *shape):
        return self.rng.gamma(1, 1, size=shape).astype(np.float32)

    def test_patches(self):
        cases = [(64, 9, {}), (64, 9, {"flavour": "torch"}), (64, 4, {"probe_big": False}), (64, 4, {"pad_object": False}),
                 (128, 1, {}), (128, 4, {"flavour": "torch"}), (256, 1, {})]
        for n, chan, settings in cases + [(64, 1, {"amp_activation": a}) for a in ACTIVATIONS]:
            with self.subTest(n=n, chan=chan, **settings):
                x = self.patterns(1, chan, n, n)
                found = self.op("cnn", {"X": x}, settings)
                with torch.no_grad():
                    want = network(Weights(), torch.tensor(x, dtype=torch.float64), **settings)
                for name, image in zip(("amp", "phase"), want):
                    np.testing.assert_allclose(found[name], image.numpy(), atol=1e-13)

    def test_gradients(self):
        y, x = np.mgrid[:64, :64] - 31.5
        probe = np.exp(-(x**2 + y**2) / 150 + 1j * x / 20)
        probe = np.array([probe, probe * x / 20]).astype(np.complex64)
        for chan, modes, settings in ((9, 1, {}), (9, 2, {"flavour": "torch"}), (1, 2, {}), (4, 1, {"merge": "probe"}),
                                      (4, 1, {"merge": "tf"}), (4, 1, {"nll_weight": 0, "mae_weight": 1})):
            with self.subTest(chan=chan, modes=modes, **settings):
                given = {"X": self.patterns(2, chan, 64, 64), "probe": probe[:modes],
                         "coords_relative": self.rng.uniform(-5, 5, (2, chan, 1, 2)).astype(np.float32)}
                found, want = self.op("step", given, settings, "--nphotons", "1e5"), step(given, 1e5, **settings)
                self.assertEqual(found.keys(), want.keys())
                for name, value in want.items():
                    value = value.detach().numpy()
                    self.assertLess(np.abs(found[name] - value).max(), 1e-8 * np.abs(value).max(), name)


if __name__ == "__main__":
    unittest.main()
