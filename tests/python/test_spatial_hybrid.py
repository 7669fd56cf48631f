"""Hybrid models of spatial from outside: the objective by NumPy from a record of a run, held-out deviance,
spatial importance, the order of factors, bits at budgets and threads, export, projection, figures.
seconds: 20"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
L, T, JITTER = 2, 3, 1e-5
CONFIG = """
instrument: spatial
name: hybrid
seed: 3
dataset: toy
output_dir: {out}
preprocessing: {{path: {folder}/toy}}
model:
  spatial: true
  groups: {groups}
  local: {local}
  n_components: 2
  nonspatial_components: {T}
  loadings_mode: {loadings}
  init: {init}
  lengthscale: 40.0
  num_inducing: 20
  K: 5
  group_diff_param: 0.5
  scale_kl_NM: {scaled}
training: {{max_iter: {steps}, learning_rate: 0.05, batch_size: 60, y_batch_size: 17, holdout_fraction: {held}, device: cpu}}
analyze: {{export: false}}
figures: {{dpi: 40}}
"""


def sparse(path):
    z = np.load(path, allow_pickle=True)
    Y = np.zeros(tuple(z["shape"]))
    for i in range(len(Y)):
        part = slice(z["indptr"][i], z["indptr"][i + 1])
        Y[i, z["indices"][part]] = z["data"][part]
    return Y


def covariance(a, ga, b, gb):
    """Matern32 with the multi-group kernel; ga None: without groups."""
    r = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1) + 1e-12)
    nu = np.ones_like(r) if ga is None else 1 / (0.5 * np.where(ga[:, None] == gb[None], 0, 1.000002) + 1)
    v = math.sqrt(3) * r / 40.0 * np.sqrt(nu)
    return (1 + v) * np.exp(-v) * nu**2.5


def svgp(record, X, C, idx):
    """f, s of a batch and KL of the factors with inducing points."""
    Z, gZ = record["Z"].astype(float), record["gZ"] if C is not None else None
    Lc = np.linalg.cholesky(covariance(Z, gZ, Z, gZ) + JITTER * np.eye(len(Z)))
    w = np.linalg.solve(Lc, covariance(Z, gZ, X[idx], None if C is None else C[idx]))
    rest = np.maximum(1 - (w**2).sum(0), 0)
    f, s, kl = [], [], 0.0
    for mu, raw in zip(record["init_mu"].astype(float), record["init_Lu_raw"].astype(float)):
        m, V = np.linalg.solve(Lc, mu), np.linalg.solve(Lc, np.tril(raw, -1) + np.diag(np.exp(np.diag(raw))))
        f.append(m @ w)
        s.append(np.sqrt(np.clip(rest + ((V.T @ w) ** 2).sum(0), 0, 100)))
        kl += 0.5 * (-2 * np.log(np.diag(V)).sum() + (V**2).sum() + (m**2).sum() - len(m))
    return np.array(f), np.array(s), kl


def local(record, X, C, idx):
    """The same where each cell is conditioned on its neighbours."""
    f, s, kl = [], [], 0.0
    for mu, lam in zip(record["init_mu"].astype(float), record["init_Lu"].astype(float)):
        f.append(mu[idx])
        s.append(np.sqrt(np.clip((lam[idx] ** 2).sum(1), 1e-3, 100)))
        for j in idx:
            n = record["nb_for_kl"][j]
            g = None if C is None else C[n]
            k = covariance(X[n], g, X[j : j + 1], None if C is None else C[j : j + 1])[:, 0]
            a = np.linalg.solve(covariance(X[n], g, X[n], g) + JITTER * np.eye(len(n)), k)
            cp = np.clip(1 - k @ a, 1e-6, 100)
            S, c = lam[n] @ lam[n].T + JITTER * np.eye(len(n)), lam[n] @ lam[j]
            cq = np.clip((lam[j] ** 2).sum() - c @ np.linalg.solve(S, c), 1e-6, 100)
            d, e = mu[j] - a @ mu[n], lam[j] - lam[n].T @ a
            kl += 0.5 * (np.log(cp) - np.log(cq) - 1 + (d**2 + e @ e + JITTER * a @ a) / cp)
    return np.array(f), np.array(s), kl


class Hybrid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-hybrid-"))
        cls.fathom("toy", "-o", str(cls.folder / "toy"), "--side", "14", "--genes", "40", "--factors", "2", "--nonspatial", "3",
                   "--groups", "3", "--lengthscale", "40", "--density", "0.6", "--seed", "4")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def fathom(cls, *words, code=0):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            raise AssertionError(done.stderr + done.stdout)
        return done.stdout + done.stderr

    def make(self, name, *more, stages=("preprocess", "train"), **keys):
        config, out = self.folder / f"{name}.yaml", self.folder / name
        values = dict(groups="false", local="false", loadings="multiplicative", init="nmf", scaled="true", steps=25, held=0, T=T)
        values.update(keys)
        config.write_text(CONFIG.format(folder=self.folder, out=out, **values))
        for stage in stages:
            self.fathom(stage, "-c", str(config), *(more if stage == "train" else ()))
        kind = ("mggp_" if values["groups"] == "true" else "") + ("lcgp" if values["local"] == "true" else "svgp")
        return config, out, out / kind

    def test_truth_of_the_toy(self):
        """A gene belongs to one kind of factors; those without positions are independent standard normal."""
        F, W = (np.load(self.folder / "toy" / f"ground_truth_{what}.npy") for what in ("factors", "loadings"))
        self.assertEqual(F.shape, (196, L + T))
        spatial = np.arange(40) % (L + T) < L
        self.assertTrue((W[spatial][:, :L] > 0).all() and (W[spatial][:, L:] == 0).all())
        self.assertTrue((W[~spatial][:, :L] == 0).all() and (W[~spatial][:, L:] > 0).all())
        self.assertLess(np.abs(F[:, L:].mean(0)).max(), 0.3)
        self.assertLess(np.abs(F[:, L:].std(0) - 1).max(), 0.2)

    def test_objective(self):
        """a ELL - b KL - N/Nb KL of the others, at the first step, where all parameters are known."""
        for n, keys in enumerate([dict(), dict(groups="true", scaled="false", loadings="exp", init="random"),
                                  dict(local="true", loadings="projected"), dict(groups="true", local="true", init="nndsvd")]):
            with self.subTest(**keys):
                path = self.folder / f"record{n}.npz"
                _, out, model = self.make(f"objective{n}", "--record", str(path), steps=3, **keys)
                record, X = np.load(path), np.load(out / "preprocessed" / "X.npy").astype(float)
                Y, C = sparse(out / "preprocessed" / "Y.npz"), np.load(out / "preprocessed" / "C.npy")
                idx, idy, eps = record["idx"][0], record["idy"][0], record["eps"][0].astype(float)
                (N, D), Nb, Db = Y.shape, len(idx), len(idy)
                is_local = keys.get("local") == "true"
                f, s, kl = (local if is_local else svgp)(record, X, C if keys.get("groups") == "true" else None, idx)
                ft, st = record["init_mean"][:, idx].astype(float), np.log1p(np.exp(record["init_sd_raw"][:, idx].astype(float)))
                self.assertEqual((len(f), len(ft), eps.shape[1]), (L, T, L + T))
                f, s = np.concatenate([f, ft]), np.concatenate([s, st])
                W = record["W_init"].astype(float)
                W = (np.exp(W) if keys.get("loadings") == "exp" else W)[idy]
                y = Y[np.ix_(idx, idy)].T
                ell = -sum(math.lgamma(v + 1) for v in y.flat) - (W @ np.exp(f + s**2 / 2)).sum()
                ell += sum((y * np.log(np.maximum(W @ np.exp(f + e * s), 1e-8))).sum() for e in eps) / len(eps)
                b = N / Nb if is_local else N / len(record["Z"]) if keys.get("scaled") != "false" else 1.0
                cells = (0.5 * (st**2 + ft**2 - 1) - np.log(st)).sum()
                want = N / Nb * D / Db * ell - b * kl - N / Nb * cells
                found = np.load(model / "elbo_history.npy")[0]
                self.assertLess(abs(found - want), 3e-5 * abs(want))

    def test_record_is_replayed(self):
        path = self.folder / "again.npz"
        _, _, one = self.make("again1", "--record", str(path), steps=6)
        _, _, two = self.make("again2", "--replay", str(path), steps=6)
        self.assertEqual((one / "elbo_history.npy").read_bytes(), (two / "elbo_history.npy").read_bytes())

    def test_results(self):
        for n, keys in enumerate([dict(), dict(groups="true", local="true")]):
            with self.subTest(**keys):
                config, out, model = self.make(f"results{n}", stages=("preprocess", "train", "analyze"), steps=120, held=0.15, **keys)
                self.check_results(config, out, model)

    def check_results(self, config, out, model):
        metrics = json.loads((model / "metrics.json").read_text())
        rows = list(csv.DictReader((model / "moran_i.csv").read_text().splitlines()))
        self.assertEqual([r["spatial"] for r in rows], ["true"] * L + ["false"] * T)
        I = [float(r["moran_i"]) for r in rows]
        self.assertEqual(I[:L], sorted(I[:L], reverse=True))
        self.assertEqual(I[L:], sorted(I[L:], reverse=True))
        self.assertEqual((metrics["n_factors"], metrics["n_spatial_factors"], metrics["n_nonspatial_factors"]), (L + T, L, T))
        self.assertEqual(sorted(metrics["moran_i"]["sorted_indices"][:L]), list(range(L)))
        F, S, W = (np.load(model / f"{what}.npy").astype(float) for what in ("factors", "scales", "loadings"))
        held, Y = np.load(model / "held_out.npy"), sparse(out / "preprocessed" / "Y.npz")
        # unseen cells have the means of factors without positions
        expected = F * np.exp(S ** 2 / 2)
        for values in (F, expected):
            np.testing.assert_allclose(values[held][:, L:], np.broadcast_to(values[~held][:, L:].mean(0), (held.sum(), T)), rtol=1e-5)
        self.assertEqual(np.load(model / "Lu.npy").shape[0], L)
        mu = np.maximum((F[held] * np.exp(S[held] ** 2 / 2)) @ W.T, 1e-10)
        y = Y[held]
        deviance = 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mu), 0) - y + mu).mean()
        self.assertLess(abs(metrics["holdout"]["mean"] - deviance), 1e-5 * deviance)
        # importance: shares of the mean rate over the training cells
        share = W * F[~held].mean(0)
        share /= share.sum(1, keepdims=True)
        np.testing.assert_allclose(np.load(model / "gene_shares.npy"), share, rtol=2e-5, atol=1e-7)
        table = list(csv.DictReader((model / "gene_importance.csv").read_text().splitlines()))
        np.testing.assert_allclose([float(r["importance"]) for r in table], share[:, :L].sum(1), rtol=2e-5, atol=1e-7)
        self.assertEqual([int(r["top_factor"]) - 1 for r in table], list(share.argmax(1)))
        self.assertEqual([r["gene"] for r in table], [f"gene_{i}" for i in range(40)])
        # figures, with the page of importance
        self.fathom("figures", "-c", str(config))
        self.assertTrue((model / "figures" / "gene_importance.png").stat().st_size > 1000)
        for g in range(3):
            path = model / "groupwise_factors" / f"group_{g}.npy"
            if path.exists():
                np.testing.assert_array_equal(np.load(path)[~held][:, L:], np.load(model / "factors.npy")[~held][:, L:])

    def test_plain_model_has_no_such_files(self):
        config, _, model = self.make("plain", stages=("preprocess", "train", "analyze"), T=0, steps=4)
        self.assertEqual((model / "moran_i.csv").read_text().splitlines()[0], "factor_idx,moran_i")
        self.assertFalse((model / "gene_importance.csv").exists())
        config.write_text(config.read_text().replace("nonspatial_components: 0", "nonspatial_components: 1"))
        for stage in ("train", "analyze"):
            self.fathom(stage, "-c", str(config), "--force")
        self.assertTrue((model / "gene_importance.csv").exists())
        config.write_text(config.read_text().replace("nonspatial_components: 1", "nonspatial_components: 0"))
        for stage in ("train", "analyze"):
            self.fathom(stage, "-c", str(config), "--force")
        self.assertFalse((model / "gene_importance.csv").exists())
        self.assertFalse((model / "gene_shares.npy").exists())

    def test_bits(self):
        files = ("model.safetensors", "factors.npy", "scales.npy", "gene_shares.npy", "metrics.json")
        for n, keys in enumerate([dict(), dict(groups="true", local="true")]):
            config, _, one = self.make(f"bits{n}a", stages=("preprocess",), steps=8, **keys)
            other, _, two = self.make(f"bits{n}b", stages=("preprocess",), steps=8, **keys)
            for stage in ("train", "analyze"):
                self.fathom(stage, "-c", str(config), "--threads", "1", "--memory", "64M")
                self.fathom(stage, "-c", str(other), "--threads", "4", "--memory", "2G")
            for name in files:
                self.assertEqual((one / name).read_bytes(), (two / name).read_bytes(), name)

    def test_sweep_and_projection(self):
        config, out, model = self.make("sweep", stages=("preprocess", "train", "analyze"), steps=20, held=0.1)
        said = self.fathom("sweep", "-c", str(config), "--over", "model.nonspatial_components=0,2")
        self.assertIn("best: svgp_nonspatial_components-", said)
        said = self.fathom("project", "-m", str(model / "model.safetensors"), "--data", str(out), "-o", str(self.folder / "new"))
        self.assertIn("positions say nothing of the last 3 factors", said)
        new, own = np.load(self.folder / "new" / "factors.npy"), np.load(model / "factors.npy")
        np.testing.assert_allclose(new[:, :L], own[:, :L], rtol=1e-4)
        held = np.load(model / "held_out.npy")
        np.testing.assert_allclose(new[:, L:], np.broadcast_to(own[~held][:, L:].mean(0), new[:, L:].shape), rtol=1e-5)

    def test_given_loadings(self):
        """A column for each factor of either kind, spatial ones first; none is moved or taken for another."""
        W = np.random.default_rng(1).gamma(1, 1, (40, L + T))
        for name, given in (("few", W[:, :L]), ("given", W)):
            np.save(self.folder / f"{name}.npy", given)
            config, _, model = self.make(name, stages=("preprocess",), steps=5)
            config.write_text(config.read_text().replace("model:", f"model:\n  loadings_file: {self.folder}/{name}.npy", 1))
            said = self.fathom("train", "-c", str(config), code=3 if name == "few" else 0)
            if name == "few":
                self.assertIn("loadings f32 or f64 [40 5] were expected, f64 [40 2] was found", said)
        self.fathom("analyze", "-c", str(config))
        order = json.loads((model / "metrics.json").read_text())["moran_i"]["sorted_indices"]
        np.testing.assert_allclose(np.load(model / "loadings.npy"), W[:, order], rtol=1e-6)
        self.assertEqual(sorted(order[:L]), list(range(L)))
        # factors start from the fit of each cell to these loadings: each belongs to its column
        config.write_text(config.read_text().replace("max_iter: 5", "max_iter: 1").replace("learning_rate: 0.05", "learning_rate: 1e-9"))
        self.fathom("train", "-c", str(config))
        self.fathom("analyze", "-c", str(config))
        order = json.loads((model / "metrics.json").read_text())["moran_i"]["sorted_indices"]
        F, Y, V = np.load(model / "factors.npy").astype(float), sparse(self.folder / "given/preprocessed/Y.npz"), W[:, order]
        best = np.repeat(Y.sum(1, keepdims=True) / W.sum(), L + T, 1)
        for _ in range(100):
            best *= (Y / (best @ V.T)) @ V / V.sum(0)
        for k in range(L, L + T):
            self.assertGreater(np.corrcoef(np.log(F[:, k]), np.log(best[:, k] + 0.01 * best[:, k].mean()))[0, 1], 0.99)

    def test_consensus_is_refused(self):
        config, _, _ = self.make("agree", stages=())
        said = self.fathom("consensus", "-c", str(config), "--restarts", "2", code=2)
        self.assertIn("model.nonspatial_components is 3", said)
        self.assertFalse((self.folder / "agree_consensus").exists())

    def test_pnmf_says_that_it_has_none(self):
        config, _, _ = self.make("pnmf", stages=("preprocess",), steps=3)
        config.write_text(config.read_text().replace("spatial: true", "spatial: false", 1))
        said = self.fathom("train", "-c", str(config))
        self.assertIn("nonspatial_components 3 -> 0", said)

    def test_range_is_checked(self):
        config, _, _ = self.make("range", stages=(), steps=3, T=-1)
        said = self.fathom("train", "-c", str(config), code=2)
        self.assertIn("nonspatial_components", said)

    @unittest.skipUnless(h5py, "needs h5py")
    def test_export(self):
        config, out, model = self.make("export", stages=("preprocess", "train", "analyze"), steps=10)
        path = self.folder / "results.h5ad"
        self.fathom("export", "-c", str(config), "-o", str(path))
        with h5py.File(path) as f:
            column = f["var/fathom_svgp_importance"][()]
            self.assertIn("fathom_svgp_importance", list(f["var"].attrs["column-order"]))
            shares = f["varm/fathom_svgp_shares"][()]
            self.assertEqual(f["uns/fathom/svgp/metrics/n_nonspatial_factors"][()], T)
        np.testing.assert_allclose(column, shares[:, :L].sum(1), rtol=1e-6)
        np.testing.assert_array_equal(shares, np.load(model / "gene_shares.npy"))


if __name__ == "__main__":
    unittest.main()
