"""Negative binomial counts and sizes of cells: the program against NumPy, and against what made the counts.
seconds: 90"""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")

CONFIG = """
instrument: spatial
name: toy
seed: {seed}
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}}}
model: {{spatial: {spatial}, n_components: {factors}, lengthscale: 20, num_inducing: 60{model}}}
training: {{max_iter: {steps}, learning_rate: {rate}{training}}}
analyze: {{export: false}}
"""


def lgamma(x):
    """Stirling's series after eight steps of the recurrence."""
    x = np.asarray(x, float)
    shift = sum(np.log(x + k) for k in range(8))
    z = x + 8
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    return (z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi) + series - shift


def log_nb(y, mu, theta):
    return lgamma(y + theta) - lgamma(theta) - lgamma(y + 1) + theta * np.log(theta / (theta + mu)) + y * np.log(mu / (mu + theta))


def tensors(path):
    """The arrays of a safetensors file, and its metadata."""
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


def correlation(a, b):
    """The mean over the columns of b of the best correlation with one of a."""
    c = np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :]
    return c.max(0).mean()


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-nb-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def toy(self, name="toy", cells=300, genes=40, factors=3, seed=1, groups=1, **more):
        words = [w for k, v in more.items() for w in (f"--{k}", v)]
        folder = self.folder / name
        self.fathom("spatial", "toy", "-o", folder, "--cells", cells, "--genes", genes, "--factors", factors, "--groups", groups, "--lengthscale", 40, "--seed", seed, *words)
        return folder

    def config(self, toy, name, model="", training="", spatial="true", factors=3, steps=200, rate=0.05, seed=1):
        out = self.folder / f"out_{toy.name}"
        path = self.folder / f"{toy.name}_{name}.yaml"
        path.write_text(
            CONFIG.format(
                out=out, toy=toy, spatial=spatial, factors=factors, steps=steps, rate=rate, seed=seed, model=f", model_name_override: {name}, init: nmf{model}", training=training
            )
        )
        return path, out / name

    def trained(self, toy, name, *flags, stages=("preprocess", "train", "analyze"), **more):
        path, at = self.config(toy, name, **more)
        for stage in stages:
            self.fathom("spatial", stage, "-c", path, *flags)
        return at


class Export(Folder):
    """What rates need beside factors and loadings is in the h5ad file, as h5py reads it."""

    def test_sizes_and_dispersions_are_in_the_file(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("there is no h5py")
        toy = self.toy(cells=80, genes=12, dispersion=2, depth=4)
        at = self.trained(toy, "nb", model=", likelihood: nb, size_factors: total", steps=5)
        self.fathom("spatial", "export", "-c", self.folder / "toy_nb.yaml", "-o", self.folder / "nb.h5ad")
        with h5py.File(self.folder / "nb.h5ad") as f, open(at / "dispersion.csv") as table:
            np.testing.assert_array_equal(f["obs/fathom_nb_size_factor"][:], np.load(at / "size_factors.npy"))
            theta = [float(row["theta"]) for row in csv.DictReader(table)]
            np.testing.assert_array_equal(f["var/fathom_nb_dispersion"][:], theta)
            self.assertEqual(len(theta), 12)
            self.assertIn("fathom_nb_size_factor", f["obs"].attrs["column-order"])
            self.assertIn("fathom_nb_dispersion", f["var"].attrs["column-order"])
        self.trained(toy, "plain", steps=5)
        self.fathom("spatial", "export", "-c", self.folder / "toy_plain.yaml", "-o", self.folder / "plain.h5ad")
        with h5py.File(self.folder / "plain.h5ad") as f:
            self.assertFalse([name for frame in ("obs", "var") for name in f[frame] if "size" in name or "dispersion" in name])


class Reference(Folder):
    """One step of pnmf with noise that was recorded: objective, slopes and start of the dispersions."""

    def step(self, model, mode, loadings="softplus"):
        toy = self.toy(cells=60, genes=12, dispersion=2, depth=4)
        path, at = self.config(toy, "one", model=f"{model}, mode: {mode}, loadings_mode: {loadings}, E: 2", training=", optimizer: SGD, scheduler: none", spatial="false", steps=1, rate=1e-3)
        self.fathom("spatial", "preprocess", "-c", path)
        noise = self.folder / "noise.npz"
        self.fathom("spatial", "train", "-c", path, "--record", noise)
        after, meta = tensors(at / "model.safetensors")
        start = {k: np.asarray(v, float) for k, v in np.load(noise).items()}
        return toy, start, after, meta, np.load(at / "elbo_history.npy")[0]

    def value(self, p, y, v, eps, mode, nb):
        """The objective of parameters p, in double."""
        s = np.logaddexp(0, p["raw"])
        W = np.logaddexp(0, p["W"])
        f = p["mean"] + np.log(v)
        if mode == "lower-bound":
            rates = [(W @ np.exp(f), W @ np.exp(f + s * s / 2))]
        else:
            rates = [(W @ np.exp(f + e * s),) * 2 for e in eps]
        ell = 0.0
        for log_rate, rate in rates:
            if nb:
                theta = np.exp(p["theta_raw"])[:, None]
                each = log_nb(y.T, rate, theta) + y.T * (np.log(log_rate) - np.log(rate))
            else:
                linear = W @ np.exp(f + s * s / 2) if mode == "expanded" else rate
                each = y.T * np.log(log_rate) - linear - lgamma(y.T + 1)
            ell += each.sum() / len(rates)
        kl = (0.5 * (s * s + p["mean"] ** 2 - 1) - np.log(s)).sum()
        return ell - kl

    def test_objective_and_slopes(self):
        rng = np.random.default_rng(3)
        for nb in (True, False):
            for mode in ("simple", "lower-bound", "expanded"):
                with self.subTest(nb=nb, mode=mode):
                    toy, start, after, meta, elbo = self.step(f", likelihood: {'nb' if nb else 'poisson'}, size_factors: total", mode)
                    y = counts_of(toy)
                    total = y.sum(1)
                    median = np.median(total[total > 0])
                    self.assertAlmostEqual(float(meta["size_median"]), median)
                    v = np.where(total > 0, total, 1) / median
                    p = {"W": start["W_init"], "mean": start["init_mu"], "raw": start["init_sd_raw"]}
                    if nb:
                        p["theta_raw"] = start["init_theta_raw"]
                        np.testing.assert_allclose(np.exp(p["theta_raw"]), self.moments(y, v), rtol=1e-5)
                    eps = start["eps"][0] if "eps" in start else []
                    want = self.value(p, y, v, eps, mode, nb)
                    self.assertLess(abs(elbo - want), 1e-5 * abs(want))
                    for name, x in p.items():
                        slope = (np.asarray(after[name], float) - x) / 1e-3
                        scale = abs(slope).max()
                        for _ in range(4):
                            at = tuple(rng.integers(n) for n in x.shape)
                            h = 1e-5
                            up, down = x.copy(), x.copy()
                            up[at] += h
                            down[at] -= h
                            difference = (self.value(p | {name: up}, y, v, eps, mode, nb) - self.value(p | {name: down}, y, v, eps, mode, nb)) / (2 * h)
                            self.assertLess(abs(difference - slope[at]), 1e-3 * scale + 1e-2, f"{name}{at}")
                    self.setUp()

    @staticmethod
    def moments(y, v):
        m = y.sum(0) / v.sum()
        over = ((y - v[:, None] * m) ** 2).sum(0) - m * v.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.where(over > 0, np.clip(m**2 * (v**2).sum() / over, 0.1, 100), 100)
        return np.where(m > 0, theta, 1)


class Likelihood(Folder):
    def test_held_out_numbers_are_those_of_the_density(self):
        toy = self.toy(cells=200, genes=20, dispersion=2, depth=5)
        at = self.trained(toy, "nb", model=", likelihood: nb, size_factors: total", training=", holdout_fraction: 0.2", steps=60)
        y = counts_of(toy)
        F, S, W = (np.load(at / f"{n}.npy").astype(float) for n in ("factors", "scales", "loadings"))
        v = np.load(at / "size_factors.npy").astype(float)
        held = np.load(at / "held_out.npy")
        with open(at / "dispersion.csv") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([r["gene"] for r in rows], [f"gene_{i}" for i in range(20)])
        theta = np.array([float(r["theta"]) for r in rows])
        total = y.sum(1)
        np.testing.assert_allclose(v, np.where(total > 0, total, 1) / np.median(total[~held & (total > 0)]), rtol=1e-6)
        metrics = json.loads((at / "metrics.json").read_text())
        mean = v[:, None] * ((F * np.exp(S**2 / 2)) @ W.T)
        like = log_nb(y, mean, theta)
        holdout = metrics["holdout"]["log_likelihood_per_count"]
        self.assertAlmostEqual(holdout["mean"], like[held].sum() / y[held].sum(), places=5)
        self.assertAlmostEqual(holdout["training_mean"], like[~held].sum() / y[~held].sum(), places=5)

        def deviance(mu, rows):
            with np.errstate(divide="ignore", invalid="ignore"):
                first = np.where(y > 0, y * np.log(y / mu), 0)
            return 2 * (first - (y + theta) * np.log((y + theta) / (mu + theta)))[rows].mean()

        self.assertAlmostEqual(metrics["holdout"]["nb_deviance"]["mean"], deviance(mean, held), places=5)
        plain = v[:, None] * (F @ W.T)
        self.assertAlmostEqual(metrics["nb_deviance"]["mean"], deviance(plain, ~held), places=5)
        with np.errstate(divide="ignore", invalid="ignore"):
            poisson = 2 * (np.where(y > 0, y * np.log(y / mean), 0) - y + mean)
        self.assertAlmostEqual(metrics["holdout"]["exp_f_plus_half_s2"]["mean"], poisson[held].mean(), places=5)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(y > 0, y * np.log(y) - y - lgamma(y + 1), 0)
        self.assertAlmostEqual(metrics["holdout"]["mean"], 2 * (best - like)[held].mean(), places=5)
        error = np.linalg.norm((y - plain)[~held]) / np.linalg.norm(y[~held])
        self.assertAlmostEqual(metrics["reconstruction_error"], error, places=5)

    def test_overdispersed_counts_want_it(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                toy = self.toy(f"over{seed}", cells=400, genes=60, seed=seed, dispersion=1, density=0.6)
                like, deviance = self.compare(toy)
                self.assertGreater(like["nb"], like["poisson"] + 0.05)
                self.assertLess(deviance["nb"], deviance["poisson"])

    def test_poisson_counts_do_not_mind(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                toy = self.toy(f"plain{seed}", cells=400, genes=60, seed=seed, density=0.6)
                like, _ = self.compare(toy)
                self.assertLess(abs(like["nb"] - like["poisson"]), 0.01 * abs(like["poisson"]))

    def compare(self, toy):
        like, deviance = {}, {}
        for name in ("poisson", "nb"):
            at = self.trained(toy, name, model=f", likelihood: {name}", training=", holdout_fraction: 0.2")
            holdout = json.loads((at / "metrics.json").read_text())["holdout"]
            like[name], deviance[name] = holdout["log_likelihood_per_count"]["mean"], holdout["mean"]
        return like, deviance

    def test_the_dispersion_is_found(self):
        toy = self.toy(cells=900, genes=30, dispersion=2, density=0.9)
        at = self.trained(toy, "nb", model=", likelihood: nb, mode: lower-bound, scale_kl_NM: false", steps=300)
        theta = np.loadtxt(at / "dispersion.csv", delimiter=",", skiprows=1, usecols=1)
        self.assertLess(abs(np.log(np.median(theta) / 2)), 0.1)


class Sizes(Folder):
    def test_given_loadings_leave_dispersions_to_be_trained(self):
        toy = self.toy(cells=300, genes=20, dispersion=2)
        free = self.trained(toy, "free", model=", likelihood: nb", steps=100)
        np.save(self.folder / "given.npy", np.load(free / "loadings.npy"))
        fixed = f", likelihood: nb, loadings_file: {self.folder}/given.npy"
        start = self.trained(toy, "start", model=fixed, steps=1, rate=1e-9)
        given = self.trained(toy, "given", model=fixed, steps=100)
        theta = [np.loadtxt(at / "dispersion.csv", delimiter=",", skiprows=1, usecols=1) for at in (start, given)]
        self.assertGreater(np.abs(np.log(theta[1] / theta[0])).max(), 0.1)

    def test_cells_of_different_depth(self):
        """Tenfold differences of depth are in the factors, unless the model has sizes."""
        gain = []
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                toy = self.toy(f"depth{seed}", cells=400, genes=100, factors=10, seed=seed, depth=10, density=0.8)
                truth = np.exp(np.load(toy / "ground_truth_factors.npy").astype(float))
                found = {}
                for rule in ("none", "total"):
                    at = self.trained(toy, rule, model=f", size_factors: {rule}, scale_kl_NM: false", factors=10, steps=300)
                    found[rule] = correlation(np.load(at / "factors.npy").astype(float), truth)
                self.assertGreater(found["total"], found["none"])
                gain.append(found["total"] - found["none"])
                sizes = np.load(at / "size_factors.npy")
                self.assertGreater(np.corrcoef(np.log(sizes), np.log(np.load(toy / "ground_truth_sizes.npy")))[0, 1], 0.8)

        self.assertGreater(np.mean(gain), 0.05, gain)

    def test_new_cells_have_sizes_by_the_median_of_training(self):
        toy = self.toy(cells=200, genes=30, depth=5, density=0.7)
        at = self.trained(toy, "plain", model=", size_factors: total", spatial="false", steps=300)
        to = self.folder / "projected"
        self.fathom("spatial", "project", "-m", at / "model.safetensors", "--data", self.folder / "out_toy", "-o", to)
        again, before = np.load(to / "factors.npy"), np.load(at / "factors.npy")
        self.assertGreater(np.corrcoef(np.log(again).ravel(), np.log(before).ravel())[0, 1], 0.95)


class Same(Folder):
    """The bytes of a model depend on neither memory nor threads, and a sweep compares likelihoods."""

    def test_budgets_and_threads(self):
        toy = self.toy(cells=500, genes=40, dispersion=2, depth=3)
        bytes_of = []
        for name, flags in (("a", ("--threads", 1)), ("b", ("--threads", 2, "--memory", "200M"))):
            at = self.trained(toy, name, *flags, model=", likelihood: nb, size_factors: total", training=", batch_size: 200, y_batch_size: 20", steps=15)
            found, _ = tensors(at / "model.safetensors")
            bytes_of.append({k: v.tobytes() for k, v in found.items()} | {n: (at / n).read_bytes() for n in ("factors.npy", "loadings.npy", "dispersion.csv")})
        self.assertEqual(bytes_of[0].keys(), bytes_of[1].keys())
        for k in bytes_of[0]:
            self.assertEqual(bytes_of[0][k], bytes_of[1][k], k)

    def test_killed_and_resumed_ends_with_the_same_bytes(self):
        toy = self.toy(cells=100, genes=12, dispersion=2)
        more = {"model": ", likelihood: nb, size_factors: total", "training": ", batch_size: 60, checkpoint_interval: 5", "steps": 12}
        at = self.trained(toy, "nb", stages=("preprocess", "train"), **more)
        model = at / "model.safetensors"
        first = model.read_bytes()
        model.unlink()
        path, _ = self.config(toy, "nb", **more)
        words = [PROGRAM, "spatial", "train", "-c", path]
        killed = subprocess.run(words, capture_output=True, env={**os.environ, "FATHOM_KILL_AT": "iteration:8"})
        self.assertEqual(killed.returncode, -9)
        self.fathom(*words[1:])
        self.assertEqual(model.read_bytes(), first)

    def test_every_model_and_kind_of_loadings(self):
        toy = self.toy(cells=120, genes=15, groups=2, dispersion=2)
        for i, (more, spatial) in enumerate(
            (
                (", loadings_mode: multiplicative", "false"),
                (", loadings_mode: exp", "true"),
                (", groups: true, mode: lower-bound", "true"),
                (", local: true, K: 10", "true"),
                (", local: true, groups: true, K: 10, mode: simple", "true"),
            )
        ):
            at = self.trained(toy, f"m{i}", model=f", likelihood: nb, size_factors: total{more}", spatial=spatial, steps=20, training=", holdout_fraction: 0.1")
            history = np.load(at / "elbo_history.npy")
            self.assertTrue(np.isfinite(history).all())
            self.assertGreater(history[-3:].mean(), history[:3].mean())

    def test_a_sweep_compares_likelihoods(self):
        toy = self.toy(cells=200, genes=20, dispersion=1, density=0.6)
        path, _ = self.config(toy, "nb", training=", holdout_fraction: 0.2", steps=60)
        text = self.fathom("spatial", "sweep", "-c", path, "--over", "model.likelihood=poisson,nb", "--over", "model.size_factors=none,total")
        self.assertIn("ln L/count", text)
        runs = json.loads(next(self.folder.rglob("sweep.json")).read_text())["runs"]
        self.assertEqual(len(runs), 4)
        like = {(r["values"]["model.likelihood"], r["values"]["model.size_factors"]): r["holdout_log_likelihood_per_count"] for r in runs}
        self.assertGreater(like["nb", "none"], like["poisson", "none"])

    def test_mistakes(self):
        toy = self.toy(cells=50, genes=5)
        for more, words in ((", likelihood: gauss", "model.likelihood"), (", size_factors: mean", "model.size_factors")):
            path, _ = self.config(toy, "bad", model=more)
            self.assertIn(words, self.fathom("spatial", "train", "-c", path, code=2))
        self.assertIn("--depth", self.fathom("spatial", "toy", "-o", self.folder / "x", "--depth", "0.5", code=2))


if __name__ == "__main__":
    unittest.main()
