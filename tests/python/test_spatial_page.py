"""`fathom spatial page`: what the page holds against the arrays it was made of.

seconds: 15"""
import base64
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CONFIG = """\
instrument: spatial
name: "a </script> name"
seed: 7
dataset: arrays
output_dir: {dir}/out
preprocessing: {{path: {dir}/toy}}
model: {{spatial: true, groups: true, prior: SVGP, n_components: 3, num_inducing: 40, lengthscale: 20.0}}
training: {{max_iter: 20, batch_size: 300, learning_rate: 0.05, device: cpu}}
"""


class Scripts(html.parser.HTMLParser):
    """The texts of all <script> elements with an id, and how many have none."""

    def __init__(self, text):
        super().__init__()
        self.at, self.text, self.others = None, {}, 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.at = dict(attrs).get("id")
            self.others += self.at is None

    def handle_endtag(self, tag):
        if tag == "script":
            self.at = None

    def handle_data(self, data):
        if self.at:
            self.text[self.at] = self.text.get(self.at, "") + data


def make(folder, cells=700, genes=30):
    """A tissue, a config of one model, and its results; the config."""
    config = folder / "config.yaml"
    subprocess.run([PROGRAM, "spatial", "toy", "--output", folder / "toy", "--cells", str(cells),
                    "--genes", str(genes), "--factors", "3", "--lengthscale", "20"], check=True,
                   capture_output=True)
    config.write_text(CONFIG.format(dir=folder))
    return config


def run(*args, fails=False):
    got = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True,
                         env=dict(os.environ, NO_COLOR="1"))
    if (got.returncode != 0) != fails:
        raise AssertionError(f"{args}: {got.returncode}\n{got.stdout}\n{got.stderr}")
    return got


def analyze(config):
    for stage in ("preprocess", "train", "analyze"):
        run("spatial", stage, "-c", config)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-page-"))
        cls.config = make(cls.dir)
        with np.load(cls.dir / "toy" / "Y.npz") as f:
            members = dict(f)
        members["data"] = members["data"].astype(np.float32)
        of = members["indices"]
        members["data"][of == 4] += 0.5      # not whole
        members["data"][of == 9] *= 300      # large
        np.savez(cls.dir / "toy" / "Y.npz", **members)
        analyze(cls.config)
        run("spatial", "genes", "-c", cls.config)
        cls.model = cls.dir / "out" / "mggp_svgp"
        cls.data = cls.dir / "out" / "preprocessed"
        cls.names = json.loads((cls.data / "metadata.json").read_text())
        with np.load(cls.data / "Y.npz") as f:
            cls.y = np.zeros(f["shape"])
            np.add.at(cls.y, (np.repeat(np.arange(len(cls.y)), np.diff(f["indptr"])), f["indices"]),
                      f["data"])
        cls.factors = np.load(cls.model / "factors.npy").astype(float)
        cls.loadings = np.load(cls.model / "loadings.npy").astype(float)
        cls.xy = np.load(cls.data / "X.npy").astype(float)
        run("spatial", "page", "-c", cls.config, "--genes", "gene_4,gene_9", "--top", "3")
        cls.text = (cls.model / "page.html").read_text()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def parse(self, text):
        scripts = Scripts(text)
        self.assertEqual(scripts.others, 1)  # the program; nothing ended an element early
        return json.loads(scripts.text["description"]), {
            name.removeprefix("array-"): base64.b64decode(data, validate=True)
            for name, data in scripts.text.items() if name.startswith("array-")}

    def check(self, text, rows):
        about, arrays = self.parse(text)
        n = len(rows)
        self.assertEqual((about["cells"], about["of"]), (n, len(self.y)))
        at = np.frombuffer(arrays["positions"], "<u2").reshape(n, 2)
        p = about["positions"]
        where = np.array([p["x"], p["y"]]) + at * p["step"]
        self.assertLess(np.abs(where - self.xy[rows]).max(), 0.5001 * p["step"] + 1e-5)
        self.assertEqual(at.max(), 65535)
        np.testing.assert_array_equal(np.frombuffer(arrays["groups"], "<u2"),
                                      np.load(self.data / "C.npy")[rows])
        for k, factor in enumerate(about["factors"]):
            codes = np.frombuffer(arrays[f"factor{k}"], "<u2")
            want = self.factors[rows, k]
            self.assertAlmostEqual(factor["most"] / want.max(), 1, 6)
            self.assertLess(np.abs(codes / 65535 * want.max() - want).max(),
                            0.5001 / 65535 * want.max())
        for k, gene in enumerate(about["genes"]):
            codes = np.frombuffer(arrays[f"gene{k}"], "u1")
            d = self.names["gene_names"].index(gene["name"])
            want = self.y[rows, d]
            if gene["code"] == "count":
                np.testing.assert_array_equal(codes, want)
            else:
                self.assertLess(np.abs(codes / 255 * np.log1p(want.max()) - np.log1p(want)).max(),
                                0.5001 / 255 * np.log1p(want.max()))
            np.testing.assert_allclose(gene["loadings"], self.loadings[d], rtol=1e-6)
        return about

    def test_arrays_are_the_results(self):
        about = self.check(self.text, np.arange(len(self.y)))
        self.assertEqual(about["title"], "a </script> name")
        self.assertEqual(about["model"], "mggp_svgp")
        names = [g["name"] for g in about["genes"]]
        codes = {g["name"]: g["code"] for g in about["genes"]}
        self.assertEqual((codes["gene_4"], codes["gene_9"]), ("log1p", "log1p"))
        self.assertIn("count", codes.values())
        self.assertEqual(len(names), len(set(names)))
        for k, factor in enumerate(about["factors"]):
            order = np.argsort(-self.loadings[:, k], kind="stable")[:3]
            self.assertEqual([t[0] for t in factor["top"]],
                             [self.names["gene_names"][d] for d in order])
            np.testing.assert_allclose([t[1] for t in factor["top"]], self.loadings[order, k],
                                       rtol=1e-6)
            for name, _ in factor["top"]:
                self.assertIn(name, names)
        want = np.loadtxt(self.model / "moran_i.csv", delimiter=",", skiprows=1)[:, 1]
        np.testing.assert_allclose([f["moran"] for f in about["factors"]], want, rtol=1e-6)
        lines = (self.model / "genes.csv").read_text().splitlines()
        of = {line.split(",")[0]: line.split(",") for line in lines[1:]}
        for gene in about["genes"]:
            np.testing.assert_allclose([gene["moran"], gene["q"], gene["share"]],
                                       [float(of[gene["name"]][c]) for c in (3, 6, 11)], rtol=1e-7)

    def test_groups_and_enriched_genes(self):
        about, _ = self.parse(self.text)
        self.assertEqual([g["name"] for g in about["groups"]], self.names["group_names"])
        for g in about["groups"]:
            self.assertRegex(g["colour"], "^#[0-9a-f]{6}$")
        want = json.loads((self.model / "gene_enrichment.json").read_text())
        for k, name in enumerate(self.names["group_names"]):
            for factor in range(3):
                top = want["factors"][f"factor_{factor}"]["groups"][name]["top_enriched"][:5]
                self.assertEqual([t[0] for t in about["enriched"][k][factor]],
                                 [t["gene"] for t in top])

    def test_thinned(self):
        paths = [self.dir / "thin1.html", self.dir / "thin2.html"]
        for path in paths:
            run("spatial", "page", "-c", self.config, "--cells", "123", "-o", path)
        self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())
        about, arrays = self.parse(paths[0].read_text())
        at = np.frombuffer(arrays["positions"], "<u2").reshape(-1, 2)
        where = np.array([about["positions"]["x"], about["positions"]["y"]]) + \
            at * about["positions"]["step"]
        rows = ((self.xy[None] - where[:, None]) ** 2).sum(2).argmin(1)
        self.assertEqual(len(set(rows)), 123)
        self.check(paths[0].read_text(), rows)

    def test_it_stands_alone(self):
        outside = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)[^"']*["']|https?://|@import|url\(""",
                             self.text)
        self.assertEqual(outside, [])
        self.assertIn("default-src 'none'", self.text)

    def test_same_bytes_for_every_budget(self):
        path = self.dir / "small.html"
        run("spatial", "page", "-c", self.config, "--genes", "gene_4,gene_9", "--top", "3", "-o",
            path, "--memory", "8M", "--threads", "1")
        self.assertEqual(path.read_text(), self.text)

    def test_plan(self):
        text = run("spatial", "page", "-c", self.config, "--plan", "-o", self.dir / "no.html").stdout
        self.assertIn("no.html", text)
        self.assertIn("memory", text)
        self.assertFalse((self.dir / "no.html").exists())

    def test_mistakes(self):
        for args, word in ((["--genes", "nobody"], '"nobody" is not a gene'),
                           (["--cells", "0"], "from 1 to"), (["--top", "99"], "from 1 to 50")):
            got = run("spatial", "page", "-c", self.config, *args, fails=True)
            self.assertEqual(got.returncode, 2, got.stderr)
            self.assertIn(word, got.stderr)
        got = run("spatial", "page", fails=True)
        self.assertIn("no config", got.stderr)


if __name__ == "__main__":
    unittest.main()
