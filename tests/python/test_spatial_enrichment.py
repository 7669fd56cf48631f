"""p-values of enrichment by permutations: `fathom spatial genes --enrichment-permutations` and --gene-sets against NumPy, under
the null hypothesis and where genes are enriched. seconds: 90"""
import csv
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CONFIG = """\
instrument: spatial
name: enrichment
seed: {seed}
dataset: toy
output_dir: {dir}/out
preprocessing: {{path: {dir}/toy, min_group_size: 0}}
model: {{spatial: false, n_components: 3, init: nmf{model}}}
training: {{max_iter: 30, learning_rate: 0.05, device: cpu{training}}}
analyze: {{export: false}}
"""


def write_counts(path, y, split=False):
    """With `split` counts of two or more are two entries of one place."""
    i, j = np.nonzero(y)
    data = y[i, j]
    if split:
        more = data >= 2
        order = np.argsort(np.concatenate([np.arange(len(i)), np.flatnonzero(more)]), kind="stable")
        data = np.concatenate([np.where(more, 1, data), data[more] - 1])[order]
        i, j = np.concatenate([i, i[more]])[order], np.concatenate([j, j[more]])[order]
    np.savez(path, data=data.astype(np.float32), indices=j.astype(np.int32), indptr=np.searchsorted(i, np.arange(len(y) + 1)).astype(np.int64),
             shape=np.array(y.shape), format=np.array(b"csr"))


def benjamini_hochberg(p):
    q, ok = np.full(len(p), np.nan), np.flatnonzero(~np.isnan(p))
    order = ok[np.argsort(p[ok], kind="stable")]
    raised = p[order] * len(ok) / np.arange(1, len(ok) + 1)
    q[order] = np.minimum.accumulate(raised[::-1])[::-1].clip(max=1)
    return q


def shares(W, pseudo):
    w = np.maximum(W, 1e-10) + pseudo
    return w / w.sum(1, keepdims=True)


def log_ratios(y, F, W, group):
    """[group, gene, factor]: after one step of the Poisson update from W (model 14.13a)."""
    q = y / np.maximum(F @ W.T, 1e-10)
    one = W * (q.T @ F) / F.sum(0)
    out = []
    for g in range(group.max() + 1):
        own = W * (q[group == g].T @ F[group == g]) / F[group == g].sum(0)
        out.append(np.log2(shares(own, 0.1 * one.mean()) / shares(one, 0.1 * one.mean())))
    return np.array(out)


def studentised(y, F, W, group):
    """[group, gene, factor]: residuals of each cell, written out (model 14.13c)."""
    rate = np.maximum(F @ W.T, 1e-10)
    q = y / rate
    out = np.zeros((group.max() + 1, *W.shape))
    for g in range(len(out)):
        at = group == g
        level, rest = y[at].sum(0) / rate[at].sum(0), y[~at].sum(0) / rate[~at].sum(0)
        centre = level[:, None] * np.where(rest[:, None] > 0, (q[~at].T @ F[~at]) / F[~at].sum(0) / np.where(rest > 0, rest, 1)[:, None], 1)
        each = F[at][:, None, :] * (q[at][:, :, None] - centre[None])
        with np.errstate(invalid="ignore", divide="ignore"):
            out[g] = np.where(level[:, None] > 0, each.sum(0) / np.sqrt((each**2).sum(0)), 0)
    return out


class Tissue(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-enrichment-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def fathom(self, *args, code=0):
        got = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True)
        self.assertEqual(got.returncode, code, got.stdout + got.stderr)
        return got.stdout + got.stderr

    def made(self, seed, groups="random", planted=0, cells=600, genes=60, n_groups=3, training="", model="", truth=True, few=()):
        """Counts of known factors and loadings, with groups of our own; the results hold the truth."""
        rng = np.random.default_rng(seed)
        toy = self.dir / "toy"
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        shutil.rmtree(toy, ignore_errors=True)
        self.fathom("spatial", "toy", "-o", toy, "--cells", cells, "--genes", genes, "--factors", 3, "--groups", n_groups, "--lengthscale", 40, "--seed", seed)
        F, W = (np.load(toy / f"ground_truth_{n}.npy").astype(np.float32) for n in ("factors", "loadings"))
        if F.min() < 0:
            F = np.exp(F)
        cells = len(F)
        if planted:  # factors that vary within each group: what is enriched in one of them can be told from the rest
            F = np.exp(0.5 * rng.standard_normal(F.shape)).astype(np.float32)
            W[:planted, 0] *= 0.1
        if groups == "random":
            group = rng.integers(0, n_groups, cells)
        else:  # where a factor is strong, so that groups have other factors and the same loadings
            group = np.argsort(np.argsort(F[:, 0] + 0.3 * F[:, 0].std() * rng.standard_normal(cells))) * n_groups // cells
        for g, n in enumerate(few, n_groups - len(few)):  # the last groups have so many cells
            group[np.flatnonzero(group == g)[n:]] = 0
        rate = 0.5 * F.astype(float) @ W.T
        more = W.astype(float).copy()
        more[:planted, 0] += 3 * W.mean()
        rate[group == 0] = 0.5 * F[group == 0].astype(float) @ more.T
        self.y = rng.poisson(rate).astype(float)
        write_counts(toy / "Y.npz", self.y)
        np.save(toy / "C.npy", group.astype(np.load(toy / "C.npy").dtype))
        self.config = self.dir / "config.yaml"
        self.config.write_text(CONFIG.format(dir=self.dir, seed=seed, training=training, model=model))
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        self.results = self.dir / "out" / "pnmf"
        if truth:
            np.save(self.results / "factors.npy", F)
            np.save(self.results / "loadings.npy", (0.5 * W).astype(np.float32))
        self.F, self.W = (np.load(self.results / f"{n}.npy").astype(float) for n in ("factors", "loadings"))
        self.group = np.load(self.dir / "out" / "preprocessed" / "C.npy")
        return self

    def measured(self, permutations, *flags, name="p.csv"):
        path = self.dir / name
        self.said = self.fathom("spatial", "genes", "-c", self.config, "--enrichment-permutations", permutations, "--enrichment", path, "-o", self.dir / "genes.csv", *flags)
        with open(path, newline="") as f:
            rows = list(csv.DictReader(f))
        shape = (self.W.shape[1], self.group.max() + 1, len(self.W))
        self.assertEqual(len(rows), np.prod(shape))
        self.assertEqual([r["gene"] for r in rows[:2]], ["gene_0", "gene_1"])
        return {k: np.array([float(r[k]) if r[k] else np.nan for r in rows]).reshape(shape).transpose(1, 2, 0) for k in ("lfc", "score", "p", "q")}


class Numbers(Tissue):
    def test_they_are_those_of_the_formulas(self):
        self.made(4, planted=5)
        got = self.measured(199)
        np.testing.assert_allclose(got["lfc"], log_ratios(self.y, self.F, self.W, self.group), rtol=1e-5, atol=1e-6)
        rng, T = np.random.default_rng(1), studentised(self.y, self.F, self.W, self.group)
        np.testing.assert_allclose(got["score"], T, rtol=1e-6, atol=1e-9)
        T = np.abs(T)
        beyond = np.zeros_like(T)
        for _ in range(999):
            beyond += np.abs(studentised(self.y, self.F, self.W, rng.permutation(self.group))) >= T
        want, p = (1 + beyond) / 1000, got["p"]
        both = (200 * p + 1000 * want) / 1200
        sd = np.sqrt(both * (1 - both) * (1 / 200 + 1 / 1000))
        self.assertLess((np.abs(p - want) / np.maximum(sd, 1e-3)).max(), 5)
        self.assertAlmostEqual(p.mean(), want.mean(), delta=0.02)
        np.testing.assert_allclose(p * 200, np.round(p * 200), atol=1e-9)
        np.testing.assert_allclose(got["q"].ravel(), benjamini_hochberg(p.ravel()), rtol=1e-12)

    def test_entries_of_one_place_add(self):
        self.made(4)
        path = self.dir / "out" / "preprocessed" / "Y.npz"  # preprocess adds them up: as another program might write it
        write_counts(path, self.y, split=True)
        with np.load(path) as f:
            first, second = f["indptr"][:-1], f["indptr"][:-1] + 1
            self.assertGreater(np.sum(f["indices"][first] == f["indices"][second]), 10)  # the first of a row among them
            self.assertGreater(len(f["data"]), np.count_nonzero(self.y))
        got = self.measured(9)
        np.testing.assert_allclose(got["score"], studentised(self.y, self.F, self.W, self.group), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(got["lfc"], log_ratios(self.y, self.F, self.W, self.group), rtol=1e-5, atol=1e-6)

    def test_groups_with_fewer_cells_than_factors_have_no_ratios(self):
        self.made(4, n_groups=4, few=(2, 3))
        self.assertEqual(list(np.bincount(self.group)[2:]), [2, 3])
        self.assertEqual(self.W.shape[1], 3)
        got = self.measured(9)
        none = np.array([self.y[self.group == g].sum(0) == 0 for g in range(4)])  # of genes without counts in the group
        self.assertGreater(none[3].sum(), 0)
        none[2] = True
        for name in ("lfc", "score", "p", "q"):
            np.testing.assert_array_equal(np.isnan(got[name]), np.repeat(none[:, :, None], 3, 2), name)
        want = log_ratios(self.y, self.F, self.W, self.group)
        np.testing.assert_allclose(got["lfc"][~none], want[~none], rtol=1e-5, atol=1e-6)

    def test_sizes_of_cells(self):
        self.made(4, model=", size_factors: total", truth=False)
        got = self.measured(9)
        sizes = np.load(self.results / "size_factors.npy").astype(float)
        np.testing.assert_allclose(got["lfc"], log_ratios(self.y, self.F * sizes[:, None], self.W, self.group), rtol=1e-4, atol=1e-5)

    def test_same_bytes_for_every_budget_and_number_of_threads(self):
        self.made(2, cells=1600, genes=300, training=", holdout_fraction: 0.1", truth=False)
        bytes_of, passes = [], set()
        for flags in (("--threads", 1), ("--threads", 2), ("--memory", "24M"), ("--memory", "17M", "--threads", 1)):
            self.measured(150, *flags)
            bytes_of.append((self.dir / "p.csv").read_bytes())
            passes.add(self.said.split(" permutations in ")[1].split()[0])
        self.assertEqual(len(set(bytes_of)), 1)
        self.assertGreater(len(passes), 1)

    def test_mistakes(self):
        self.made(2, n_groups=1, groups="random")
        words = ("spatial", "genes", "-c", self.config, "--enrichment-permutations")
        self.assertIn("whole number", self.fathom(*words, "x", code=2))
        said = self.fathom(*words, "9", code=2)
        self.assertIn("groups of cells are permuted, and the data have one", said)
        self.assertIn("set preprocessing.group_column", said)
        self.assertFalse((self.results / "enrichment_p.csv").exists())


class Chance(Tissue):
    """p-values are uniform where groups say nothing, and small where genes are enriched."""

    def chosen(self, seeds, **more):
        """One number of each gene: those of a gene are not independent."""
        out = []
        for seed in seeds:
            self.made(seed, **more)
            p = self.measured(199)["p"]
            rng = np.random.default_rng(seed)
            genes = np.arange(p.shape[1])
            out.append(p[rng.integers(0, p.shape[0], len(genes)), genes, rng.integers(0, p.shape[2], len(genes))])
        return np.concatenate(out)

    @staticmethod
    def distance(p):
        """Of Kolmogorov and Smirnov, from the uniform distribution."""
        p = np.sort(p)
        n = len(p)
        return max((np.arange(1, n + 1) / n - p).max(), (p - np.arange(n) / n).max())

    def test_random_groups(self):
        p = self.chosen(range(1, 7))
        d = self.distance(p)
        print(f"random groups: {len(p)} p-values, distance {d:.3f}, {np.mean(p <= 0.05):.3f} up to 0.05")
        self.assertEqual(len(p), 360)
        self.assertLess(d, 1.95 / np.sqrt(len(p)))  # chance 1e-3

    def test_groups_with_other_factors_and_equal_loadings(self):
        """Groups are not exchangeable then: the studentised score is what keeps p honest."""
        p = self.chosen(range(1, 7), groups="by factor")
        print(f"groups by factor: distance {self.distance(p):.3f}, {np.mean(p <= 0.05):.3f} up to 0.05")
        self.assertLess(np.mean(p <= 0.05), 0.05 + 4 * np.sqrt(0.05 * 0.95 / len(p)))

    def test_enriched_genes(self):
        for seed in (1, 2, 3):
            self.made(seed, planted=6, cells=1600)
            got = self.measured(199)
            print(f"enriched genes, seed {seed}: p", *got["p"][0, :6, 0])
            self.assertEqual(list(got["p"][0, :6, 0]), [0.005] * 6)
            self.assertLess(np.mean(got["p"][1:, 6:, 1:] <= 0.05), 0.1)
            self.assertTrue((got["score"][0, :6, 0] > 2).all())


class Sets(Tissue):
    def test_permuted_genes(self):
        self.made(3)
        rng = np.random.default_rng(5)
        share = shares(self.W, 0.1 * self.W.mean())
        z = (share - share.mean(0)) / share.std(0)
        best = np.argsort(-z[:, 1])[:8]
        sets = {"best": best, "any": rng.choice(60, 8, replace=False), "all": np.arange(60), "one": [7], "none": []}
        path, scores = self.dir / "sets.gmt", self.dir / "scores.csv"
        path.write_text("".join(f"{k}\t-\t" + "\t".join(f"gene_{g}" for g in v) + ("\tother" if k == "none" else "") + "\n" for k, v in sets.items()))
        words = ("spatial", "genes", "-c", self.config, "--gene-sets", path, "--scores", scores, "-o", self.dir / "genes.csv")
        self.fathom(*words)
        plain = scores.read_text()
        self.assertTrue(plain.startswith("factor,set,genes,known,score,hits,p,q,hit_genes\n"))
        self.fathom(*words, "--permutations", 199)
        with open(scores, newline="") as f:
            rows = list(csv.DictReader(f))
        first = scores.read_bytes()
        p = np.array([float(r["p_permutation"] or "nan") for r in rows])
        np.testing.assert_allclose([float(r["q_permutation"] or "nan") for r in rows], benjamini_hochberg(p), rtol=1e-12)
        for r, got in zip(rows, p):
            at, l = sets[r["set"]], int(r["factor"]) - 1
            if r["set"] == "none":
                self.assertTrue(np.isnan(got))
                continue
            score = z[at, l].mean()
            drawn = np.array([z[rng.permutation(60)[: len(at)], l].mean() for _ in range(2000)])
            want = (drawn >= score - 1e-9).mean()
            self.assertLess(abs(got - want), 5 * np.sqrt(want * (1 - want) / 199) + 0.011, r)
            if r["set"] == "all":
                self.assertEqual(got, 1)
            if r["set"] == "best" and l == 1:
                self.assertEqual(got, 0.005)
        self.fathom(*words, "--permutations", 199, "--threads", 1)
        self.assertEqual(scores.read_bytes(), first)


if __name__ == "__main__":
    unittest.main()
