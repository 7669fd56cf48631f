"""Natural gradients of pnmf: steps of the program against NumPy, bounds of the variance, files, and the fit beside `standard`.
seconds: 60"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
TOP = -(1 / 100 + 1e-6) / 2  # theta2 of the largest variance

CONFIG = """
instrument: spatial
name: toy
seed: {seed}
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}}}
model: {{spatial: false, n_components: {factors}, training_mode: {mode}, model_name_override: {name}{model}}}
training: {{max_iter: {steps}, learning_rate: {rate}{training}}}
analyze: {{export: false}}
"""


def tensors(path):
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8 : 8 + n])
    kinds = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
    meta = head.pop("__metadata__")
    return {
        k: np.frombuffer(raw[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]], kinds[v["dtype"]]).reshape(v["shape"]) for k, v in head.items()
    }, meta


def counts_of(folder):
    z = np.load(folder / "Y.npz")
    y = np.zeros(z["shape"])
    for i in range(len(z["indptr"]) - 1):
        at = slice(z["indptr"][i], z["indptr"][i + 1])
        y[i, z["indices"][at]] += z["data"][at]
    return y


def moments(theta1, theta2):
    variance = -1 / (2 * theta2 + 1e-6)
    return variance * theta1, np.sqrt(np.maximum(variance, 1e-6))


class Reference:
    """Model 20 in double precision, with the multiplicative update of the loadings."""

    def __init__(self, y, record, mode, rate, sizes=None):
        self.y, self.mode, self.rate = y, mode, rate
        self.log_size = np.zeros(len(y)) if sizes is None else np.log(sizes)
        self.W = record["W_init"].astype(float)
        self.theta1, self.theta2 = (record[f"init_theta{i}"].astype(float) for i in (1, 2))
        self.cut = 0

    def likelihood(self, y, W, f, s, eps):
        """Value without the constant of the counts, slopes in f and s (model 8.1, 8.2), and the next W (model 9.2)."""
        mhat, t = np.exp(f + s * s / 2), W.sum(0)[:, None]
        draws = [np.zeros_like(f)] if self.mode == "lower-bound" else eps
        n = len(draws)
        value, df, ds, up, down = 0.0, np.zeros_like(f), np.zeros_like(f), np.zeros_like(W), 0.0
        for e in draws:
            phi = np.exp(f + e * s)
            rho = W @ phi
            Q = np.where((y.T > 0) & (rho >= 1e-8), y.T / rho, 0)
            H = phi * (W.T @ Q)
            value += (y.T * np.log(np.maximum(rho, 1e-8))).sum() / n
            df += H / n
            ds += e * H / n
            up += (y.T / (rho + 1e-8)) @ phi.T
            if self.mode == "simple":
                value -= rho.sum() / n
                df -= t * phi / n
                ds -= t * e * phi / n
                down += phi.sum(1)
        if self.mode != "simple":
            value -= (t * mhat).sum()
            df -= t * mhat
            ds -= t * s * mhat
            up /= n
            down = mhat.sum(1)
        return value, df, ds, np.maximum(W * up / (down + 1e-8), 1e-8)

    def step(self, idx, idy, eps):
        N, D = self.y.shape
        b = N / len(idx)
        a = b * D / len(idy)
        f, s = moments(self.theta1[:, idx], self.theta2[:, idx])
        value, df, ds, W = self.likelihood(self.y[np.ix_(idx, idy)], self.W[idy], f + self.log_size[idx], s, eps)
        kl = (0.5 * (s * s + f * f - 1) - np.log(s)).sum()
        gf, gs = b * f - a * df, b * (s - 1 / s) - a * ds
        g2 = gs / (2 * s + 1e-8)
        g1 = gf - 2 * f * g2
        move1, move2 = 0.1 * self.rate * g1, 0.1 * self.rate * g2
        old1, old2 = self.theta1[:, idx], self.theta2[:, idx]
        most = np.minimum(old2 / 2, TOP)
        beyond = old2 - move2 > most
        self.cut += beyond.sum()
        share = np.where(beyond, (old2 - most) / np.where(beyond, move2, 1), 1)
        self.theta1[:, idx] = old1 - share * move1
        self.theta2[:, idx] = np.where(beyond, most, old2 - move2)
        self.W[idy] = W
        return a * value - b * kl


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-natural-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def toy(self, name="toy", cells=300, genes=40, factors=3, seed=1, **more):
        words = [w for k, v in more.items() for w in (f"--{k}", v)]
        folder = self.folder / name
        if not folder.exists():
            self.fathom("spatial", "toy", "-o", folder, "--cells", cells, "--genes", genes, "--factors", factors, "--groups", 1, "--lengthscale", 40, "--seed", seed, *words)
        return folder

    def config(self, toy, name, mode="natural", model="", training="", factors=3, steps=200, rate=0.05, seed=1):
        out = self.folder / f"out_{toy.name}"
        path = self.folder / f"{toy.name}_{name}.yaml"
        path.write_text(CONFIG.format(out=out, toy=toy, mode=mode, factors=factors, steps=steps, rate=rate, seed=seed, name=name, model=model, training=training))
        return path, out / name

    def trained(self, toy, name, *flags, stages=("preprocess", "train"), **more):
        path, at = self.config(toy, name, **more)
        for stage in stages:
            self.fathom("spatial", stage, "-c", path, *(flags if stage == "train" else ()))
        return at


class Steps(Folder):
    def compare(self, name, mode, rate, steps=6, batches=True, size="none", cut=False):
        toy = self.toy(cells=90, genes=14, depth=3)
        record = self.folder / f"{name}.npz"
        at = self.trained(
            toy,
            name,
            "--record",
            record,
            steps=steps,
            rate=rate,
            model=f", init: nmf, loadings_mode: multiplicative, mode: {mode}, E: 2, size_factors: {size}",
            training=", scheduler: none, tol: 0" + (", batch_size: 50, y_batch_size: 9" if batches else ""),
        )
        found, meta = tensors(at / "model.safetensors")
        start = dict(np.load(record))
        np.testing.assert_allclose(start["init_theta2"], -5, rtol=1e-6)
        self.assertFalse({"mean", "raw", "adam_m.theta1", "adam_m.mean", "init_mu"} & (found.keys() | start.keys()))
        y = counts_of(toy)
        total = y.sum(1)
        sizes = np.where(total > 0, total, 1) / np.median(total[total > 0]) if size == "total" else None
        want = Reference(y, start, mode, rate, sizes)
        history = np.load(at / "elbo_history.npy")
        for i in range(steps):
            idx, idy = start["idx"][i], start["idy"][i]
            before = want.theta1.copy(), want.theta2.copy()
            value = want.step(idx, idy, start["eps"][i] if "eps" in start else None)
            part = y[np.ix_(idx, idy)]
            logs = np.array([sum(np.log(np.arange(1, int(v) + 1))) for v in part.ravel()]).sum()
            value -= logs * len(y) / len(idx) * y.shape[1] / len(idy)
            self.assertLess(abs(history[i] - value), 2e-5 * abs(value), (name, i))
            outside = np.setdiff1d(np.arange(len(y)), idx)
            np.testing.assert_array_equal(before[0][:, outside], want.theta1[:, outside])
        for key, ours in (("theta1", want.theta1), ("theta2", want.theta2), ("W", want.W)):
            scale = abs(ours).max()
            self.assertLess(abs(found[key] - ours).max(), 2e-4 * scale, (name, key))
        self.assertEqual(want.cut > 0, cut, (name, want.cut))
        self.assertTrue((found["theta2"] <= TOP * (1 - 1e-6)).all())  # TOP < 0
        return found, start

    def test_steps_are_those_of_the_formulas(self):
        for mode in ("expanded", "simple", "lower-bound"):
            with self.subTest(mode=mode):
                self.compare(mode, mode, 0.05)
        self.compare("sized", "expanded", 0.05, size="total")

    def test_they_start_with_the_means_of_standard(self):
        toy = self.toy(cells=90, genes=14)
        for init in ("nmf", "random"):
            start = {}
            for mode in ("standard", "natural"):
                self.trained(toy, f"{mode}_{init}", "--record", self.folder / "noise.npz", mode=mode, steps=1, model=f", init: {init}")
                start[mode] = dict(np.load(self.folder / "noise.npz"))
            np.testing.assert_array_equal(start["standard"]["W_init"], start["natural"]["W_init"])
            np.testing.assert_allclose(start["natural"]["init_theta1"], 10 * start["standard"]["init_mu"], rtol=1e-6)
            np.testing.assert_array_equal(start["natural"]["init_theta2"], -5)

    def test_cells_outside_the_batch_do_not_move(self):
        found, start = self.compare("one", "expanded", 0.05, steps=1)
        outside = np.setdiff1d(np.arange(90), start["idx"][0])
        self.assertEqual(len(outside), 40)
        for i in (1, 2):
            np.testing.assert_array_equal(found[f"theta{i}"][:, outside], start[f"init_theta{i}"][:, outside])
            self.assertTrue((found[f"theta{i}"][:, start["idx"][0]] != start[f"init_theta{i}"][:, start["idx"][0]]).all())

    def test_variances_at_most_double(self):
        """At a rate at which variances would be negative after the first step."""
        found, start = self.compare("far", "expanded", 15, steps=1, batches=False, cut=True)
        self.assertGreater((found["theta2"] == start["init_theta2"] / 2).sum(), 0)
        self.compare("long", "expanded", 2, steps=8, batches=False, cut=True)
        path, _ = self.config(self.toy(), "told", rate=15, steps=2)
        self.assertIn("natural steps of 0.1 learning_rate cells/batch_size = 1.5 are above 1", self.fathom("spatial", "train", "-c", path))


class Fit(Folder):
    """As good as `standard` after as many steps, each at a learning rate that suits it."""

    @staticmethod
    def correlation(a, b):
        c = np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :]
        return c.max(0).mean()

    def test_the_fit_is_as_good(self):
        for seed in (1, 2, 3):
            toy = self.toy(f"toy{seed}", cells=400, genes=60, seed=seed)
            truth = np.load(toy / "ground_truth_factors.npy")
            end, found = {}, {}
            for mode, rate in (("standard", 0.05), ("natural", 0.3)):
                at = self.trained(
                    toy, mode, mode=mode, rate=rate, steps=300, seed=seed, stages=("preprocess", "train", "analyze"), model=", init: nmf, loadings_mode: multiplicative", training=", scheduler: none, tol: 0"
                )
                history = np.load(at / "elbo_history.npy")
                self.assertTrue(np.isfinite(history).all())
                end[mode] = history[-30:].mean()
                self.assertGreater(end[mode], history[0])
                found[mode] = self.correlation(np.load(at / "factors.npy"), truth)
            print(f"seed {seed}: ELBO {end}, correlation {found}")
            self.assertGreater(end["natural"], end["standard"] - 2e-3 * abs(end["standard"]))

    def test_with_negative_binomial_counts_and_sizes(self):
        toy = self.toy(cells=200, genes=20, dispersion=2, depth=3)
        at = self.trained(toy, "nb", rate=0.5, steps=60, model=", init: nmf, likelihood: nb, size_factors: total, loadings_mode: multiplicative", training=", batch_size: 100, holdout_fraction: 0.1", stages=("preprocess", "train", "analyze", "figures"))
        history = np.load(at / "elbo_history.npy")
        self.assertGreater(history[-5:].mean(), history[:5].mean())
        model, _ = tensors(at / "model.safetensors")
        f, s = moments(model["theta1"].astype(float), model["theta2"].astype(float))
        held = np.load(at / "held_out.npy")
        F, S = np.load(at / "factors.npy")[~held], np.load(at / "scales.npy")[~held]
        np.testing.assert_allclose(np.sort(F.sum(0)), np.sort(np.exp(f).sum(1)), rtol=1e-4)
        np.testing.assert_allclose(np.sort(S.sum(0)), np.sort(s.sum(1)), rtol=1e-4)


class Files(Folder):
    MORE = {"model": ", init: nmf, loadings_mode: multiplicative", "steps": 15, "rate": 0.5}

    def test_budgets_and_threads(self):
        toy = self.toy(cells=500, genes=40)
        bytes_of = []
        for name, flags in (("a", ("--threads", 1)), ("b", ("--threads", 2, "--memory", "200M"))):
            at = self.trained(toy, name, *flags, training=", batch_size: 200, y_batch_size: 20", **self.MORE)
            bytes_of.append({k: v.tobytes() for k, v in tensors(at / "model.safetensors")[0].items()})
        self.assertEqual(bytes_of[0], bytes_of[1])

    def test_killed_and_resumed_ends_with_the_same_bytes(self):
        toy = self.toy(cells=100, genes=12)
        more = self.MORE | {"training": ", batch_size: 60, checkpoint_interval: 5, restarts: 2"}
        at = self.trained(toy, "natural", **more)
        model = at / "model.safetensors"
        first = model.read_bytes()
        model.unlink()
        path, _ = self.config(toy, "natural", **more)
        words = [PROGRAM, "spatial", "train", "-c", path]
        killed = subprocess.run(words, capture_output=True, env={**os.environ, "FATHOM_KILL_AT": "iteration:8"})
        self.assertEqual(killed.returncode, -9)
        self.fathom(*words[1:])
        self.assertEqual(model.read_bytes(), first)

    def test_a_replay_is_the_same_run(self):
        toy = self.toy(cells=100, genes=12)
        more = self.MORE | {"training": ", batch_size: 60"}
        noise = self.folder / "noise.npz"
        a = self.trained(toy, "a", "--record", noise, **more)
        b = self.trained(toy, "b", "--replay", noise, **(more | {"seed": 99}))
        for name in ("theta1", "theta2", "W"):
            np.testing.assert_array_equal(tensors(a / "model.safetensors")[0][name], tensors(b / "model.safetensors")[0][name])

    def test_new_cells_are_projected(self):
        toy = self.toy(cells=200, genes=20)
        self.trained(toy, "natural", stages=("preprocess", "train", "analyze"), **(self.MORE | {"steps": 60}))
        path, at = self.config(toy, "natural", **(self.MORE | {"steps": 60}))
        self.fathom("spatial", "project", "-m", at / "model.safetensors", "--data", self.folder / "out_toy" / "preprocessed", "-o", self.folder / "new")
        new, own = np.load(next((self.folder / "new").rglob("factors.npy"))), np.load(at / "factors.npy")
        for l in range(3):
            self.assertGreater(np.corrcoef(new[:, l], own[:, l])[0, 1], 0.9)

    def test_spatial_priors_are_refused(self):
        toy = self.toy(cells=50, genes=5)
        path, _ = self.config(toy, "bad")
        for more in ("spatial: true", "spatial: true, nonspatial_components: 2", "spatial: true, local: true"):
            path.write_text(path.read_text().replace("spatial: false", more))
            told = self.fathom("spatial", "train", "-c", path, code=2)
            self.assertIn("natural gradients are those of pnmf", told)
            self.assertIn("set model.training_mode: standard", told)
        self.assertFalse((self.folder / "out_toy").exists())


if __name__ == "__main__":
    unittest.main()
