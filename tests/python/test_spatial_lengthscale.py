"""Trained lengthscales of spatial from outside: the slope of one step by NumPy, predictions of the model file, the files
that name them, toys of several lengthscales, the start that a sweep suggests, bits at budgets and threads.
seconds: 45"""
import csv
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
JITTER = 1e-5
CONFIG = """
instrument: spatial
name: lengths
seed: 3
dataset: toy
output_dir: {out}
preprocessing: {{path: {folder}/toy, rescale: false}}
model:
  spatial: true
  groups: {groups}
  n_components: 2
  mode: {mode}
  loadings_mode: projected
  init: nmf
  lengthscale: 40.0
  train_lengthscale: {trained}
  parametrization: {parametrization}
  num_inducing: 25
  local: {local}
  K: 12
  group_diff_param: 0.5
  scale_kl_NM: {scaled}
training: {{max_iter: {steps}, learning_rate: {rate}, optimizer: {optimizer}, scheduler: {scheduler}, lengthscale_warmup: {warmup},
  lengthscale_rate: 2.0, batch_size: {cells}, device: cpu}}
analyze: {{export: false}}
figures: {{dpi: 40}}
"""


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}
    return {k: np.frombuffer(data[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]], kinds[v["dtype"]]).reshape(v["shape"])
            for k, v in header.items() if k != "__metadata__"}


def counts(path):
    z = np.load(path, allow_pickle=True)
    Y = np.zeros(tuple(z["shape"]))
    for i in range(len(Y)):
        part = slice(z["indptr"][i], z["indptr"][i + 1])
        Y[i, z["indices"][part]] = z["data"][part]
    return Y


def covariance(a, ga, b, gb, ell):
    r = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1) + 1e-12)
    nu = np.ones_like(r) if ga is None else 1 / (0.5 * np.where(ga[:, None] == gb[None], 0, 1.000002) + 1)
    v = math.sqrt(3) * r / ell * np.sqrt(nu)
    return (1 + v) * np.exp(-v) * nu**2.5


def factor(m, l, ell, X, C, whitened, rest=None):
    """f, s^2 and KL of one factor with this lengthscale; `rest` is c where it is held."""
    Z, gZ = m["Z"].astype(float), m.get("gZ", m.get("groupsZ")) if C is not None else None
    Lc = np.linalg.cholesky(covariance(Z, gZ, Z, gZ, ell) + JITTER * np.eye(len(Z)))
    w = np.linalg.solve(Lc, covariance(Z, gZ, X, C, ell))
    c = np.maximum(1 - (w**2).sum(0), 0)
    mu, raw = m["mu"][l].astype(float), m["Lu_raw"][l].astype(float)
    Lu = np.tril(raw, -1) + np.diag(np.exp(np.diag(raw)))
    if not whitened:
        mu, Lu = np.linalg.solve(Lc, mu), np.linalg.solve(Lc, Lu)
    kl = 0.5 * (-2 * np.log(np.diag(Lu)).sum() + (Lu**2).sum() + (mu**2).sum() - len(mu))
    return mu @ w, (c if rest is None else rest) + ((Lu.T @ w) ** 2).sum(0), kl, c


def conditional(m, n, x, g, ell):
    """Weights of neighbours n of a place x, and the variance that they leave."""
    Z, gZ = m["Z"][n].astype(float), None if g is None else m["groupsZ"][n]
    x, g = x[None], None if g is None else np.array([g])
    k = covariance(Z, gZ, x, g, ell)[:, 0]
    K = covariance(Z, gZ, Z, gZ, ell)
    np.fill_diagonal(K, 1.0 + JITTER)
    a = np.linalg.solve(K, k)
    return a, 1 - k @ a


class Lengthscales(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-lengths-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.fathom("toy", "-o", str(cls.folder / "toy"), "--side", "14", "--genes", "30", "--factors", "2", "--groups", "2",
                   "--lengthscale", "25,80", "--density", "0.6", "--seed", "4")

    @classmethod
    def fathom(cls, *words, code=0):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            raise AssertionError(done.stderr + done.stdout)
        return done.stdout + done.stderr

    def make(self, name, *more, stages=("preprocess", "train"), **keys):
        config, out = self.folder / f"{name}.yaml", self.folder / name
        values = dict(groups="false", parametrization="whitened", scaled="false", steps=20, rate=0.05, optimizer="Adam", warmup=0.3,
                      scheduler="one_cycle", mode="expanded", trained="true", cells=196, local="false")
        values.update(keys)
        config.write_text(CONFIG.format(out=out, folder=self.folder, **values))
        for stage in stages:
            self.fathom(stage, "-c", str(config), *(more if stage == "train" else ()))
        kind = "lcgp" if values["local"] == "true" else "svgp"
        return out / (f"mggp_{kind}" if values["groups"] == "true" else kind), config

    def data(self, groups):
        X = np.load(self.folder / "toy/X.npy").astype(float)
        return X, np.load(self.folder / "toy/C.npy") if groups else None, counts(self.folder / "toy/Y.npz")

    # The optimiser is SGD, so the first step gives the slope itself.
    def slope(self, groups, whitened, scaled):
        name = f"slope_{groups}_{whitened}_{scaled}"
        record, rate = self.folder / f"{name}.npz", 1e-4
        at, _ = self.make(name, "--record", str(record), steps=1, rate=rate, optimizer="SGD", scheduler="none", warmup=0,
                          mode="lower-bound", groups=str(groups).lower(), scaled=str(scaled).lower(),
                          parametrization="whitened" if whitened else "raw")
        start = dict(np.load(record))
        end = tensors(at / "model.safetensors")["log_ell"].astype(float)
        np.testing.assert_allclose(np.exp(start["init_log_ell"]), 40, rtol=1e-6)
        found = (start["init_log_ell"].astype(float) - end) / (2 * rate)  # lengthscale_rate is 2
        X, C, Y = self.data(groups)
        m = {"mu": start["init_mu"], "Lu_raw": start["init_Lu_raw"], "Z": start["Z"], "gZ": start.get("gZ")}
        W, b = start["W_init"].astype(float), len(X) / len(m["Z"]) if scaled else 1.0
        held = [factor(m, l, 40.0, X, C, whitened)[3] for l in range(2)]

        def loss(log_ell):
            f, v, kl, _ = zip(*(factor(m, l, math.exp(log_ell[l]), X, C, whitened, held[l]) for l in range(2)))
            F, mean = np.exp(np.array(f)), np.exp(np.array(f) + np.array(v) / 2)
            return b * sum(kl) - (Y * np.log(np.maximum(F.T @ W.T, 1e-8))).sum() + (mean.T @ W.T).sum()

        for l in range(2):
            h = np.eye(2)[l] * 1e-5
            x = np.full(2, math.log(40.0))
            want = (loss(x + h) - loss(x - h)) / 2e-5
            self.assertGreater(abs(want), 1.0)  # or the file's rounding would hide it
            self.assertLess(abs(found[l] - want), 2e-3 * abs(want) + 0.02, (name, l, found[l], want))

    def test_the_slope_of_a_step_is_that_of_numpy(self):
        for groups in (False, True):
            for whitened in (False, True):
                for scaled in (False, True):
                    with self.subTest(groups=groups, whitened=whitened, scaled=scaled):
                        self.slope(groups, whitened, scaled)

    # One step of SGD from the state that the record has; KL is the only term with weights, and cp is held.
    def test_the_slope_of_a_local_step_is_that_of_numpy(self):
        for groups in (False, True):
            with self.subTest(groups=groups):
                name, rate = f"local_slope_{groups}", 1e-4
                record = self.folder / f"{name}.npz"
                at, _ = self.make(name, "--record", str(record), steps=1, rate=rate, optimizer="SGD", scheduler="none", warmup=0,
                                  groups=str(groups).lower(), local="true")
                start, end = dict(np.load(record)), tensors(at / "model.safetensors")
                found = (start["init_log_ell"].astype(float) - end["log_ell"].astype(float)) / (2 * rate)
                X, C, _ = self.data(groups)
                mu, Lam = start["init_mu"].astype(float), start["init_Lu"].astype(float)
                m = {"Z": X, "groupsZ": C}
                lists = end["nbr_kl"]

                def loss(l, log_ell):
                    total = 0.0
                    for j, n in enumerate(lists):
                        g = None if C is None else C[j]
                        cp = max(conditional(m, n, X[j], g, 40.0)[1], 1e-6)
                        a, _ = conditional(m, n, X[j], g, math.exp(log_ell))
                        ep = Lam[l, j] - Lam[l, n].T @ a
                        total += ((mu[l, j] - a @ mu[l, n]) ** 2 + ep @ ep + JITTER * a @ a) / (2 * cp)
                    return total

                for l in range(2):
                    x, h = math.log(40.0), 1e-4
                    want = (loss(l, x + h) - loss(l, x - h)) / (2 * h)
                    self.assertGreater(abs(want), 1.0)
                    self.assertLess(abs(found[l] - want), 2e-3 * abs(want) + 0.02, (groups, l, found[l], want))

    def test_predictions_of_local_models_have_the_lengthscale_of_each_factor(self):
        for groups in (False, True):
            with self.subTest(groups=groups):
                at, config = self.make(f"local_{groups}", stages=("preprocess", "train", "analyze"), groups=str(groups).lower(), local="true")
                m, (X, C, _) = tensors(at / "model.safetensors"), self.data(groups)
                ell, m["Z"] = np.exp(m["log_ell"].astype(float)), X
                if groups:
                    m["groupsZ"] = C
                self.assertTrue((np.abs(np.log(ell / 40)) > 1e-3).all(), ell)
                order = json.loads((at / "metrics.json").read_text())["moran_i"]["sorted_indices"]
                with open(at / "lengthscales.csv") as file:
                    np.testing.assert_allclose([float(r["lengthscale"]) for r in csv.DictReader(file)], ell[order], rtol=1e-9)
                factors, scales = np.load(at / "factors.npy"), np.load(at / "scales.npy")
                maps = [np.load(at / f"groupwise_factors/group_{g}.npy") for g in range(2 if groups else 0)]
                for l in range(2):
                    mu, Lam = m["mu"][order[l]].astype(float), m["Lam"][order[l]].astype(float)
                    for j in range(0, len(X), 7):
                        n = m["nbr_inf"][j]
                        a, c = conditional(m, n, X[j], None if C is None else C[j], ell[order[l]])
                        s2 = max(c, 0) + ((Lam[n].T @ a) ** 2).sum() + JITTER * a @ a
                        np.testing.assert_allclose(np.log(factors[j, l]), a @ mu[n], rtol=1e-4, atol=5e-5)
                        np.testing.assert_allclose(scales[j, l], math.sqrt(s2), rtol=1e-3, atol=5e-5)
                        for g, map_of in enumerate(maps):
                            a, _ = conditional(m, n, X[j], g, ell[order[l]])
                            np.testing.assert_allclose(np.log(map_of[j, l]), a @ mu[n], rtol=1e-3, atol=2e-4)
                projected = self.folder / f"local_projected_{groups}"
                self.fathom("project", "-m", str(at / "model.safetensors"), "--data", str(config.with_suffix("")), "-o", str(projected))
                self.assertEqual(np.load(projected / "factors.npy").shape, factors.shape)

    def test_predictions_and_files_have_the_lengthscale_of_each_factor(self):
        for groups in (False, True):
            with self.subTest(groups=groups):
                at, config = self.make(f"files_{groups}", stages=("preprocess", "train", "analyze"), groups=str(groups).lower())
                m, (X, C, _) = tensors(at / "model.safetensors"), self.data(groups)
                ell = np.exp(m["log_ell"].astype(float))
                self.assertTrue((np.abs(np.log(ell / 40)) > 1e-3).all(), ell)
                metrics, training = (json.loads((at / n).read_text()) for n in ("metrics.json", "training.json"))
                order = metrics["moran_i"]["sorted_indices"]
                with open(at / "lengthscales.csv") as file:
                    rows = list(csv.DictReader(file))
                self.assertEqual([int(r["factor_idx"]) for r in rows], [0, 1])
                np.testing.assert_allclose([float(r["lengthscale"]) for r in rows], ell[order], rtol=1e-9)
                np.testing.assert_allclose(metrics["lengthscales"], ell[order], rtol=1e-9)
                np.testing.assert_allclose(training["lengthscales"]["values"], ell, rtol=1e-9)
                self.assertEqual((training["lengthscales"]["start"], training["lengthscales"]["steps"]), (40.0, 14))
                self.assertIs(training["model_config"]["train_lengthscale"], True)
                factors, scales = np.load(at / "factors.npy"), np.load(at / "scales.npy")
                for l in range(2):
                    f, v, _, _ = factor(m, order[l], ell[order[l]], X, C, True)
                    np.testing.assert_allclose(np.log(factors[:, l]), f, rtol=1e-4, atol=2e-5)
                    np.testing.assert_allclose(scales[:, l], np.sqrt(v), rtol=1e-4, atol=2e-5)
                    Lc = np.linalg.cholesky(covariance(m["Z"].astype(float), m.get("groupsZ"), m["Z"].astype(float), m.get("groupsZ"),
                                                       ell[order[l]]) + JITTER * np.eye(25))
                    raw = m["Lu_raw"][order[l]].astype(float)
                    np.testing.assert_allclose(np.load(at / "Lu.npy")[l], Lc @ (np.tril(raw, -1) + np.diag(np.exp(np.diag(raw)))),
                                               rtol=1e-3, atol=1e-4)
                for g in range(2 if groups else 0):
                    maps = np.load(at / f"groupwise_factors/group_{g}.npy")
                    for l in range(2):
                        f = factor(m, order[l], ell[order[l]], X, np.full(len(X), g), True)[0]
                        np.testing.assert_allclose(np.log(maps[:, l]), f, rtol=1e-4, atol=5e-5)
                projected = self.folder / f"projected_{groups}"
                self.fathom("project", "-m", str(at / "model.safetensors"), "--data", str(config.with_suffix("")), "-o", str(projected))
                np.testing.assert_allclose(np.load(projected / "factors.npy"), factors, rtol=1e-5)
        self.make("files_False", stages=("train", "analyze"), trained="false")
        self.assertFalse((self.folder / "files_False/svgp/lengthscales.csv").exists())

    @unittest.skipIf(h5py is None, "no h5py")
    def test_an_export_has_them(self):
        at, config = self.make("export", stages=("preprocess", "train", "analyze"))
        self.fathom("export", "-c", str(config), "-o", str(self.folder / "e.h5ad"))
        with open(at / "lengthscales.csv") as file:
            want = [float(r["lengthscale"]) for r in csv.DictReader(file)]
        with h5py.File(self.folder / "e.h5ad") as h5:
            np.testing.assert_array_equal(h5["uns/fathom/svgp/lengthscales"][()], want)

    def test_budgets_and_threads_do_not_matter(self):
        found = []
        for local in ("false", "true"):
            for memory in ("64M", "1G"):
                for threads in ("1", "3"):
                    at, _ = self.make(f"bits_{local}_{memory}_{threads}", "--memory", memory, "--threads", threads, groups="true", cells=60,
                                      local=local)
                    found.append((at / "model.safetensors").read_bytes())
        self.assertEqual(len(set(found[:4])), 1)
        self.assertEqual(len(set(found[4:])), 1)

    def test_toys_have_several_lengthscales(self):
        whole = self.folder / "several"
        words = ("--cells", "150", "--genes", "5", "--factors", "3", "--groups", "2", "--seed", "9")
        for sampler in ("exact", "near"):
            self.fathom("toy", "-o", str(whole), *words, "--lengthscale", "20,60", "--sampler", sampler)
            np.testing.assert_array_equal(np.load(whole / "ground_truth_lengthscales.npy"), [20, 60, 20])
            self.assertEqual(json.loads((whole / "metadata.json").read_text())["toy"]["lengthscale"], [20, 60])
            for ell, columns in (("20", (0, 2)), ("60", (1,))):
                alone = self.folder / f"alone_{ell}"
                self.fathom("toy", "-o", str(alone), *words, "--lengthscale", ell, "--sampler", sampler)
                self.assertFalse((alone / "ground_truth_lengthscales.npy").exists())
                for name in ("ground_truth_factors.npy", "ground_truth_factors_group_1.npy"):
                    a, b = np.load(whole / name), np.load(alone / name)
                    for l in columns:
                        np.testing.assert_array_equal(a[:, l], b[:, l], (sampler, name))
        for bad in ("20,", "20,0", "20,x", "1,2,3,4", ""):
            self.assertIn("--lengthscale", self.fathom("toy", "-o", str(whole), *words, "--lengthscale", bad, code=2))

    def test_a_sweep_suggests_a_start(self):
        _, config = self.make("swept", stages=(), trained="false", steps=6)
        said = self.fathom("sweep", "-c", str(config), "--over", "model.lengthscale=10,40", "-o", str(self.folder / "sweep"))
        result = json.loads((self.folder / "sweep/sweep.json").read_text())
        best = next(r for r in result["runs"] if r["model"] == result["best"])["values"]["model.lengthscale"]
        self.assertEqual(result["suggested_start"], {"model.lengthscale": best, "model.train_lengthscale": "true",
                                                     "model.scale_kl_NM": "false", "model.parametrization": "whitened"})
        self.assertIn(f"lengthscale: {best}, train_lengthscale: true", said)

    def test_notes_and_refusals(self):
        _, config = self.make("notes", stages=("preprocess",), parametrization="raw", steps=2)
        self.assertIn("lengthscales are estimated best with parametrization: whitened", self.fathom("train", "-c", str(config)))
        said = self.fathom("train", "-c", str(config), "--set", "model.local=true")  # have no whitened parameters
        self.assertNotIn("lengthscales are estimated best", said)
        self.assertIn("local models find lengthscales of smooth factors too short", said)


if __name__ == "__main__":
    unittest.main()
