"""`fathom spatial genes` against NumPy: Moran's I, deviance, permutations, budgets, mistakes.

seconds: 30"""
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CONFIG = """\
instrument: spatial
name: genes
seed: 7
dataset: arrays
output_dir: {dir}/out
preprocessing: {{path: {dir}/toy}}
model: {{spatial: true, prior: SVGP, n_components: 3, num_inducing: 40, lengthscale: 20.0}}
training: {{max_iter: 60, batch_size: 300, learning_rate: 0.05, device: cpu, holdout_fraction: 0.1}}
"""


def neighbours(xy, k=6):
    """Indices of the k nearest other cells."""
    d = ((xy[:, None, :].astype(np.float64) - xy[None].astype(np.float64)) ** 2).sum(2)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :min(k, len(xy) - 1)]


def moran(x, near):
    """I, z and one-sided p of every column of x, by the definition (model 14.2)."""
    n, k = near.shape
    w = np.zeros((n, n))
    w[np.arange(n)[:, None], near] = 1 / k
    z = x - x.mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        i = n / w.sum() * (z * (w @ z)).sum(0) / (z * z).sum(0)
    s0, s1 = w.sum(), 0.5 * ((w + w.T) ** 2).sum()
    s2 = ((w.sum(0) + w.sum(1)) ** 2).sum()
    e = -1 / (n - 1)
    v = (n * n * s1 - n * s2 + 3 * s0 * s0) / ((n * n - 1) * s0 * s0) - e * e
    score = (i - e) / math.sqrt(v)
    return i, score, np.array([math.erfc(s / math.sqrt(2)) / 2 if s == s else np.nan for s in score])


def benjamini_hochberg(p):
    """q-values; NaN stays NaN and does not count."""
    q, ok = np.full(len(p), np.nan), np.flatnonzero(~np.isnan(p))
    order = ok[np.argsort(p[ok], kind="stable")]
    raised = p[order] * len(ok) / np.arange(1, len(ok) + 1)
    q[order] = np.minimum.accumulate(raised[::-1])[::-1].clip(max=1)
    return q


def log1p_of_depth(y):
    """As scanpy: every cell scaled to the median depth of cells that have counts, then log1p."""
    depth = y.sum(1)
    with np.errstate(divide="ignore"):
        scale = np.where(depth > 0, np.median(depth[depth > 0]) / depth, 0)
    return np.log1p(y * scale[:, None])


def table(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    out = {"gene": [r["gene"] for r in rows]}
    for name in rows[0]:
        if name != "gene":
            out[name] = np.array([float(r[name]) if r[name] else np.nan for r in rows])
    return out


class Genes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-genes-"))
        cls.fathom("spatial", "toy", "--output", cls.dir / "toy", "--cells", "900", "--genes", "40",
                   "--factors", "3", "--lengthscale", "20")
        # a gene that no cell has, one that all have alike, entries of one place, stored zeros
        data = cls.dir / "toy"
        with np.load(data / "Y.npz") as f:
            y = np.zeros(f["shape"], np.float32)
            rows = np.repeat(np.arange(len(y)), np.diff(f["indptr"]))
            np.add.at(y, (rows, f["indices"]), f["data"])
        y[:, 5] = 0
        y[:, 6] = 2
        cls.write_counts(data / "Y.npz", y)
        cls.config = cls.dir / "config.yaml"
        cls.config.write_text(CONFIG.format(dir=cls.dir))
        for stage in ("preprocess", "train", "analyze"):
            cls.fathom("spatial", stage, "-c", cls.config)
        cls.results = cls.dir / "out" / "svgp"
        cls.data = cls.dir / "out" / "preprocessed"
        with np.load(cls.data / "Y.npz") as f:
            cls.y = np.zeros(f["shape"])
            np.add.at(cls.y, (np.repeat(np.arange(len(cls.y)), np.diff(f["indptr"])), f["indices"]),
                      f["data"])
        cls.seen = ~np.load(cls.results / "held_out.npy")
        cls.xy = np.load(cls.data / "X.npy")
        cls.fathom("spatial", "genes", "-c", cls.config)
        cls.bytes = (cls.results / "genes.csv").read_bytes()
        cls.got = table(cls.results / "genes.csv")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @staticmethod
    def write_counts(path, y, split=True):
        """Sparse rows with every count of two or more as two entries, and some stored zeros."""
        data, indices, indptr = [], [], [0]
        for i, row in enumerate(y):
            for g, v in enumerate(row):
                parts = [1, v - 1] if v >= 2 and split else [v] if v or (i + g) % 50 == 0 else []
                data += parts
                indices += [g] * len(parts)
            indptr.append(len(data))
        np.savez(path, data=np.array(data, np.float32), indices=np.array(indices, np.int32),
                 indptr=np.array(indptr, np.int64), shape=np.array(y.shape),
                 format=np.array(b"csr"))

    @classmethod
    def fathom(cls, *args, fails=None):
        got = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True,
                             env=dict(os.environ, NO_COLOR="1"))
        if (got.returncode == 0) != (fails is None):
            raise AssertionError(f"{args}: {got.returncode}\n{got.stdout}\n{got.stderr}")
        return got.stdout + got.stderr if fails is None else (got.returncode, got.stderr)

    def close(self, name, want, rtol=1e-9, atol=1e-12, got=None):
        np.testing.assert_allclose((got or self.got)[name], want, rtol=rtol, atol=atol,
                                   err_msg=name)

    def test_moran_is_that_of_the_definition(self):
        self.assertTrue(0 < self.seen.sum() < len(self.seen))
        y = self.y[self.seen]
        near = neighbours(self.xy[self.seen])
        i, score, p = moran(log1p_of_depth(y), near)
        empty = (y == 0).all(0)
        i[empty] = score[empty] = p[empty] = np.nan
        self.close("moran_i", i, rtol=1e-9, atol=1e-10)
        self.close("z", score, rtol=1e-9, atol=1e-8)
        self.close("p", p, rtol=1e-6)
        self.close("q", benjamini_hochberg(self.got["p"]))
        self.close("mean", y.mean(0))
        self.close("fraction", (y > 0).mean(0))
        self.assertTrue(np.isnan(self.got["p_permutation"]).all())

    def edited(self, name, y, *flags, loadings=None, split=True, fails=None):
        """The table of a copy of the results with other counts, as another program might write them."""
        other, config = self.dir / name, self.dir / f"{name}.yaml"
        if not other.exists():
            shutil.copytree(self.dir / "out", other)
        config.write_text(CONFIG.format(dir=self.dir).replace("/out", f"/{name}"))
        self.write_counts(other / "preprocessed" / "Y.npz", y, split)
        if loadings is not None:
            np.save(other / "svgp" / "loadings.npy", loadings)
        said = self.fathom("spatial", "genes", "-c", config, *flags, fails=fails)
        return table(other / "svgp" / "genes.csv") if fails is None else said

    def test_entries_of_one_place_add_and_cells_may_be_empty(self):
        y = self.y.copy()
        y[:, 7] = np.random.default_rng(2).integers(0, 9000, len(y)) / 8  # every depth is another
        empty = np.flatnonzero(self.seen)[40:50]
        y[empty] = 0
        got, y = self.edited("odd", y), y[self.seen]
        self.assertEqual(np.sum(y.sum(1) > 0) % 2, 0)  # the median lies between two depths
        i, _, _ = moran(log1p_of_depth(y), neighbours(self.xy[self.seen]))
        i[(y == 0).all(0)] = np.nan
        self.close("moran_i", i, rtol=1e-9, atol=1e-10, got=got)
        self.close("mean", y.mean(0), got=got)
        self.close("fraction", (y > 0).mean(0), got=got)

    def test_stored_zeros_and_genes_without_loadings(self):
        """Zeros have no logarithm; counts of a gene without loadings have the least rate."""
        loadings = np.load(self.results / "loadings.npy")
        loadings[12] = 0
        got, y = self.edited("zeros", self.y, loadings=loadings, split=False), self.y[self.seen]
        with np.load(self.dir / "zeros" / "preprocessed" / "Y.npz") as f:
            self.assertGreater(np.sum(f["data"] == 0), 10)
        mu = np.load(self.results / "factors.npy")[self.seen].astype(float) @ loadings.T.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = 2 * (np.where(y > 0, y * np.log(y / np.maximum(mu, 1e-10)), 0) - y + mu).sum(0)
        self.assertGreater(y[:, 12].sum(), 0)
        self.close("deviance", deviance, rtol=1e-9, atol=1e-6, got=got)
        self.assertTrue(np.isnan(got["top_factor_share"][12]))

    def test_genes_that_all_cells_have_alike_vary_nowhere(self):
        """Sums of many equal numbers are rounded: what differs by that alone is equal."""
        y, alike = self.y.copy(), {5: 0, 6: 2, 8: 0.3, 9: 3, 10: 7, 11: 5, 12: 1}
        for g, v in alike.items():
            y[:, g] = np.float32(v)
        got = self.edited("alike", y, "--normalise", "raw", split=False)
        for g in range(len(got["gene"])):
            for name in ("moran_i", "z", "p", "q", "share"):
                self.assertEqual(np.isnan(got[name][g]), g in alike, (name, g))
            self.assertEqual(got["null_deviance"][g] == 0, g in alike, g)

    def test_permutations_that_are_equal_count(self):
        """Of a gene that one cell has, I depends on how many cells have that one as a neighbour: there are many ties."""
        y, near = self.y.copy(), neighbours(self.xy[self.seen])
        arrows = np.bincount(near.ravel(), minlength=len(near))
        cell = np.flatnonzero(arrows == np.bincount(arrows).argmax())[0]
        y[:, 13] = 0
        y[np.flatnonzero(self.seen)[cell], 13] = 4
        p = self.edited("ties", y, "--permutations", "999")["p_permutation"][13]
        want, without = np.mean(arrows <= arrows[cell]), np.mean(arrows < arrows[cell])
        self.assertGreater(want - without, 0.2)
        self.assertLess(abs(p - want), 0.08)  # 5 deviations

    def test_counts_that_are_none_are_refused(self):
        for value in (-1, np.inf, np.nan):
            y = self.y.copy()
            y[np.flatnonzero(self.seen)[3], 2] = value
            _, said = self.edited("bad", y, fails=True)
            self.assertRegex(said, r"cell 3, gene 2: a count is -?(1|inf|nan), not a finite number from 0 on")
            self.assertIn("preprocess counts", said)

    def test_raw_counts(self):
        path = self.dir / "raw.csv"
        self.fathom("spatial", "genes", "-c", self.config, "--normalise", "raw", "-o", path)
        y = self.y[self.seen]
        i, score, p = moran(y, neighbours(self.xy[self.seen]))
        i[y.min(0) == y.max(0)] = np.nan
        self.assertEqual(np.isnan(i).sum(), 2)
        got = table(path)
        self.close("moran_i", i, atol=1e-12, got=got)

    def test_deviance_adds_up_to_that_of_the_model(self):
        y, f = self.y[self.seen], np.load(self.results / "factors.npy")[self.seen].astype(float)
        w = np.load(self.results / "loadings.npy").astype(float)
        mu, rate = np.maximum(f @ w.T, 1e-10), y.mean(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = 2 * (np.where(y > 0, y * np.log(y / mu), 0) - y + mu).sum(0)
            null = 2 * np.where(y > 0, y * np.log(y / rate), 0).sum(0)
        self.close("deviance", deviance, rtol=1e-9, atol=1e-6)
        self.close("null_deviance", np.maximum(null, 0), rtol=1e-9, atol=1e-9)
        some = np.flatnonzero(null > 1e-6)
        self.assertEqual(list(np.flatnonzero(np.isnan(self.got["share"]))), [5, 6])
        np.testing.assert_allclose(self.got["share"][some], 1 - deviance[some] / null[some],
                                   rtol=1e-6)
        metrics = json.loads((self.results / "metrics.json").read_text())
        np.testing.assert_allclose(self.got["deviance"].sum(),
                                   metrics["poisson_deviance"]["total"], rtol=1e-9)
        part = f.sum(0) * w
        self.assertEqual(list(self.got["top_factor"]), list(part.argmax(1) + 1))
        some = part.sum(1) > 0
        np.testing.assert_allclose(self.got["top_factor_share"][some],
                                   part[some].max(1) / part[some].sum(1), rtol=1e-12)

    def test_sizes_multiply_rates(self):
        config = self.dir / "sizes.yaml"
        config.write_text(CONFIG.format(dir=self.dir).replace("/out", "/sizes").replace(
            "n_components: 3", "n_components: 3, size_factors: total"))
        for stage in ("preprocess", "train", "analyze", "genes"):
            self.fathom("spatial", stage, "-c", config)
        results = self.dir / "sizes" / "svgp"
        seen = ~np.load(results / "held_out.npy")
        size = np.load(results / "size_factors.npy")[seen].astype(float)
        self.assertGreater(size.std(), 0.05)
        y, f = self.y[seen], size[:, None] * np.load(results / "factors.npy")[seen]
        w = np.load(results / "loadings.npy").astype(float)
        mu = np.maximum(f @ w.T, 1e-10)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = 2 * (np.where(y > 0, y * np.log(y / mu), 0) - y + mu).sum(0)
        got = table(results / "genes.csv")
        self.close("deviance", deviance, rtol=1e-9, atol=1e-6, got=got)
        part = f.sum(0) * w
        some = part.sum(1) > 0
        np.testing.assert_allclose(got["top_factor_share"][some],
                                   part[some].max(1) / part[some].sum(1), rtol=1e-12)
        metrics = json.loads((results / "metrics.json").read_text())
        np.testing.assert_allclose(got["deviance"].sum(), metrics["poisson_deviance"]["total"],
                                   rtol=1e-9)

    def test_permutations(self):
        path = self.dir / "shuffled.csv"
        self.fathom("spatial", "genes", "-c", self.config, "--permutations", "99", "-o", path)
        got = table(path)
        p = got["p_permutation"]
        ok = ~np.isnan(p)
        self.assertTrue((np.isnan(p) == np.isnan(got["moran_i"])).all())
        np.testing.assert_allclose(p[ok] * 100, np.round(p[ok] * 100), atol=1e-9)
        self.close("q_permutation", benjamini_hochberg(p), got=got)
        # both tests of one hypothesis: far from a disagreement that 99 draws could not explain
        self.assertLess(np.abs(p[ok] - got["p"][ok]).max(), 0.25)
        self.assertTrue((p[ok & (got["p"] < 1e-6)] == 0.01).all())
        self.close("moran_i", self.got["moran_i"], rtol=0, atol=0, got=got)

    def test_same_bytes_for_every_budget_and_number_of_threads(self):
        data, config = self.dir / "wide", self.dir / "wide.yaml"
        self.fathom("spatial", "toy", "--output", data, "--cells", "4000", "--genes", "400",
                    "--factors", "3", "--density", "0.5")
        config.write_text(CONFIG.format(dir=self.dir).replace("/out", "/wide_out")
                          .replace("/toy", "/wide").replace("max_iter: 60", "max_iter: 2"))
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", config)
        first, passes = None, {}
        for name, flags in {"all": [], "one": ["--threads", "1"], "small": ["--memory", "7M"],
                            "tiny": ["--memory", "6M", "--threads", "2"],
                            "least": ["--memory", "5.9M", "--threads", "2"]}.items():
            path = self.dir / f"{name}.csv"
            facts = json.loads(self.fathom("spatial", "genes", "-c", config, "-o", path, "--json",
                                           "--permutations", "2", *flags))
            first = first or path.read_bytes()
            self.assertEqual(path.read_bytes(), first, name)
            passes[name] = facts["passes"]
        self.assertEqual(passes["all"], 2)
        self.assertGreater(passes["tiny"], 2)
        self.assertGreater(passes["least"], 300)  # hardly more than a gene at a time

    def test_plan_names_files_and_memory(self):
        text = self.fathom("spatial", "genes", "-c", self.config, "--plan")
        for word in ("genes.csv", "factors.npy", "memory"):
            self.assertIn(word, text)

    def grown(self, *args):
        """What the program printed, and its largest resident size less that of one that does nothing."""
        # a child counts what its parent had when it was forked: the parent is one without NumPy
        launch = "import os, sys; p = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); r = os.wait4(p, 0); print(r[2].ru_maxrss, r[1], file=sys.stderr)"

        def largest(*words):
            got = subprocess.run([sys.executable, "-S", "-E", "-c", launch, PROGRAM, *map(str, words)], capture_output=True, text=True)
            most, status = got.stderr.split()[-2:]
            self.assertEqual(status, "0", got.stderr)
            return got.stdout, int(most) << 10
        text, most = largest(*args)
        return text, most - largest("version")[1]

    def test_the_process_stays_within_its_plan(self):
        """Memory of one part is returned before the next takes its own, and the library counts."""
        if json.loads(self.fathom("version", "--json"))["build"]["sanitizers"]:
            self.skipTest("a sanitizer takes memory of its own")
        rng, data, (n, d) = np.random.default_rng(5), self.dir / "large", (20000, 150)
        data.mkdir()
        indptr = np.arange(n + 1, dtype=np.int64) * (d // 2)
        np.savez(data / "Y.npz", data=rng.integers(1, 5, indptr[-1]).astype(np.float32), shape=np.array((n, d)), indptr=indptr,
                 indices=(rng.integers(0, 2, (n, d // 2)) + np.arange(0, d, 2)).ravel().astype(np.int32), format=np.array(b"csr"))
        np.save(data / "X.npy", rng.uniform(0, 100, (n, 2)).astype(np.float32))
        np.save(data / "C.npy", np.zeros(n, np.int64))
        (data / "metadata.json").write_text(json.dumps({"n_spots": n, "n_genes": d, "n_groups": 1, "spot_names": None,
                                                        "group_names": ["All"], "gene_names": [f"g{i}" for i in range(d)]}))
        config = self.dir / "large.yaml"
        config.write_text(f"instrument: spatial\nname: large\nseed: 1\ndataset: arrays\noutput_dir: {self.dir}/large_out\n"
                          f"preprocessing: {{path: {data}}}\nmodel: {{spatial: false, n_components: 3}}\n"
                          "training: {max_iter: 1, batch_size: 300, device: cpu}\nanalyze: {export: false}\n")
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", config)
        for flags in ((), ("--memory", "24M")):
            words = ("spatial", "genes", "-c", config, "--threads", "2", "--json", *flags)
            planned = json.loads(self.grown(*words, "--plan")[0])["planned_bytes"]
            growth = self.grown(*words)[1]
            print(f"genes {' '.join(flags)}: {planned / 2**20:.1f} MiB planned, {growth / 2**20:.1f} grown")
            self.assertLessEqual(growth, planned, flags)
            self.assertGreater(growth, planned / 2, flags)

    def score(self, text, *flags, fails=None):
        path, out = self.dir / "sets.gmt", self.dir / "scores.csv"
        path.write_bytes(text)
        got = self.fathom("spatial", "genes", "-c", self.config, "--gene-sets", path, "--scores",
                          out, "-o", self.dir / "again.csv", *flags, fails=fails)
        if fails is not None:
            return got
        with open(out, newline="") as f:
            return got, list(csv.DictReader(f))

    def test_scores_of_gene_sets(self):
        names = self.got["gene"]
        sets = {"odd": names[1::2], "few": [names[3], names[8]], "strange": ["X", "Y", "X"],
                'with, "comma"': names[10:14] + ["X"]}
        text = "".join(f"{n}\tabout it\t" + "\t".join(g) + "\r\n" for n, g in sets.items())
        text = text.replace('with, "comma"', '"with, ""comma"""') + "\n"
        said, rows = self.score(text.encode(), "--top", "9")
        self.assertIn("1 of them has no gene of the data: strange", said)
        w = np.load(self.results / "loadings.npy").astype(float)
        w = np.maximum(w, 1e-10) + 0.1 * w.mean()
        share = w / w.sum(1, keepdims=True)
        z = (share - share.mean(0)) / share.std(0)
        n, top, want_p = len(names), 9, []
        self.assertEqual(len(rows), 3 * len(sets))
        for row, (factor, name) in zip(rows, [(k, s) for k in range(3) for s in sets]):
            known = [names.index(g) for g in sets[name] if g in names]
            order = list(np.argsort(-share[:, factor], kind="stable")[:top])
            hits = [d for d in order if d in known]
            self.assertEqual((int(row["factor"]), row["set"]), (factor + 1, name))
            self.assertEqual((int(row["known"]), int(row["hits"])), (len(known), len(hits)))
            self.assertEqual(int(row["genes"]), len(sets[name]))
            self.assertEqual([g for g in row["hit_genes"].split(";") if g],
                             [names[d] for d in hits])
            if not known:
                self.assertEqual((row["score"], row["p"], row["q"]), ("", "", ""))
                want_p.append(np.nan)
                continue
            self.assertAlmostEqual(float(row["score"]), z[known, factor].mean(), 6)
            want_p.append(sum(math.comb(len(known), k) * math.comb(n - len(known), top - k)
                              for k in range(len(hits), min(len(known), top) + 1)
                              if top - k <= n - len(known)) / math.comb(n, top))
            self.assertAlmostEqual(float(row["p"]) / want_p[-1], 1, 9)
        q = benjamini_hochberg(np.array([float(r["p"]) if r["p"] else np.nan for r in rows]))
        np.testing.assert_allclose([float(r["q"]) if r["q"] else np.nan for r in rows], q)

    def test_mistakes_of_gene_sets(self):
        for text, words in ((b"", "there is no set of genes"), (b"\n\n", "there is no set of genes"),
                            (b"a\tb\tc\n\nd\te\n", "sets.gmt:3: a set has no genes"),
                            (b"a\tb\tc\nalone\n", "sets.gmt:2: a set has no genes"),
                            (b"\tb\tc\n", "sets.gmt:1: a set has no name"),
                            (b"a\tb\tc\na\tb\td\n", "sets.gmt:2: a set of that name"),
                            (b"a\tb\tc\0d\n", "sets.gmt:1"),
                            (b"a\tb" + b"\tgene" * 300000, "sets.gmt:1")):
            code, said = self.score(text, fails=True)
            self.assertIn(words, said)
        _, said = self.score(b"a\tb\tc\n", "--top", "0", fails=True)
        self.assertIn("from 1 to", said)

    def test_mistakes(self):
        for args, code, words in (
                (["--normalise", "sqrt"], 2, ["log1p or raw"]),
                (["--permutations", "x"], 2, ["whole number"])):
            got, text = self.fathom("spatial", "genes", "-c", self.config, *args, fails=True)
            self.assertEqual(got, code, text)
            for word in words:
                self.assertIn(word, text)
        other = self.dir / "other.yaml"
        other.write_text(CONFIG.format(dir=self.dir).replace("/out", "/nowhere"))
        _, text = self.fathom("spatial", "genes", "-c", other, fails=True)
        self.assertIn("nowhere", text)
        broken = self.dir / "broken"
        shutil.copytree(self.dir / "out", broken)
        other.write_text(CONFIG.format(dir=self.dir).replace("/out", "/broken"))
        np.save(broken / "svgp" / "factors.npy", np.zeros((3, 3), np.float32))
        _, text = self.fathom("spatial", "genes", "-c", other, fails=True)
        self.assertIn("[cell=900, factor] was expected", text)
        (broken / "svgp" / "factors.npy").unlink()
        _, text = self.fathom("spatial", "genes", "-c", other, fails=True)
        self.assertIn("fathom run all", text)


if __name__ == "__main__":
    unittest.main()
