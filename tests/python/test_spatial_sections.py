"""Tissue sections in one model: the plane by NumPy, the prior block by block, bits at budgets and threads, numbers and
comparisons of sections, several ways to name them, new cells, export, errors.
seconds: 40"""
import csv
import gzip
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

from small_anndata import read_h5ad

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import fathom  # noqa: E402
sys.path.insert(0, str(pathlib.Path("tests/golden/tenx").resolve()))
import make  # noqa: E402

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
JITTER, LENGTHSCALE, ALPHA = 1e-5, 60.0, 0.5
CONFIG = """
instrument: spatial
name: sections
seed: 3
dataset: {dataset}
output_dir: {out}
preprocessing: {{{source}}}
model:
  spatial: true
  groups: {groups}
  local: {local}
  n_components: 2
  nonspatial_components: {T}
  loadings_mode: multiplicative
  init: nmf
  lengthscale: 60.0
  num_inducing: {M}
  K: {K}
  group_diff_param: 0.5
  kernel: {kernel}
  neighbors: {neighbors}
  inducing_allocation: {allocation}
  size_factors: {sizes}
  likelihood: {likelihood}
training: {{max_iter: {steps}, learning_rate: 0.05, batch_size: 90, holdout_fraction: {held}, device: cpu}}
analyze: {{export: false}}
figures: {{dpi: 40}}
"""


def covariance(a, ga, sa, b, gb, sb, kernel="Matern32"):
    """Of places of groups g and sections s: nothing between sections, whatever their distance. g None: without groups."""
    r2 = ((a[:, None].astype(float) - b[None].astype(float)) ** 2).sum(-1)
    nu = np.ones_like(r2) if ga is None else 1 / (ALPHA * np.where(ga[:, None] == gb[None], 0, 1.000002) + 1)
    if kernel == "RBF":
        k = np.exp(-r2 * nu / LENGTHSCALE**2 / 2) * nu
    else:
        v = math.sqrt(3) * np.sqrt(r2 + 1e-12) / LENGTHSCALE * np.sqrt(nu)
        k = (1 + v) * np.exp(-v) * nu**2.5
    return np.where(sa[:, None] == sb[None], k, 0)


def tensors(path):
    """The tensors and metadata of a model's file."""
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + n])
    meta = header.pop("__metadata__")
    kinds = {"F32": np.float32, "F64": np.float64, "I32": np.int32}
    return {name: np.frombuffer(raw[8 + n + t["data_offsets"][0] : 8 + n + t["data_offsets"][1]], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}, meta


def moran(x, xy):
    """Of one section, on the graph of six nearest others; ties by the lower number."""
    d = ((xy[:, None].astype(float) - xy[None].astype(float)) ** 2).sum(-1)
    np.fill_diagonal(d, np.inf)
    near = np.argsort(d, 1, kind="stable")[:, :6]
    z = x - x.mean(0)
    return (z * z[near].mean(1)).sum(0) / (z**2).sum(0)


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def write_h5ad(path, counts, genes, xy, group, section=None, layout="dense"):
    """A small AnnData file."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as f:
        f.attrs["encoding-type"] = "anndata"
        if layout == "dense":
            f["X"] = counts
        else:
            rows, columns = np.nonzero(counts)
            order = np.lexsort((columns, rows) if layout == "csr" else (rows, columns))
            major, minor = (rows, columns) if layout == "csr" else (columns, rows)
            x = f.create_group("X")
            x.attrs["encoding-type"], x.attrs["shape"] = layout + "_matrix", counts.shape
            x["data"], x["indices"] = counts[rows[order], columns[order]], minor[order].astype(np.int32)
            x["indptr"] = np.searchsorted(major[order], np.arange(counts.shape[layout == "csc"] + 1))
        f.create_dataset("var/_index", data=[g.encode() for g in genes], dtype=text)
        f.create_dataset("obs/_index", data=[f"cell{i}".encode() for i in range(len(xy))], dtype=text)
        f.create_dataset("obs/kind", data=[g.encode() for g in group], dtype=text)
        if section is not None:
            f.create_dataset("obs/sample", data=[g.encode() for g in section], dtype=text)
        for frame in ("var", "obs"):
            f[frame].attrs["_index"] = "_index"
        f["obsm/spatial"] = xy


class Sections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-sections-"))
        cls.fathom("toy", "-o", str(cls.folder / "toy"), "--sections", "3", "--side", "11", "--genes", "40", "--factors", "2", "--groups", "3",
                   "--lengthscale", "60", "--density", "0.6", "--seed", "4", "--h5ad", str(cls.folder / "toy.h5ad"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def fathom(cls, *words, code=0):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}\n" + done.stderr + done.stdout)
        return done.stdout + done.stderr

    def make(self, name, *more, stages=("preprocess", "train"), **keys):
        config, out = self.folder / f"{name}.yaml", self.folder / name
        values = dict(groups="false", local="false", steps=25, held=0, T=0, M=30, K=9, kernel="Matern32", neighbors="knn", likelihood="poisson",
                      allocation="proportional", sizes="none", dataset="toy", source=f"path: {self.folder}/toy")
        values.update(keys)
        config.write_text(CONFIG.format(out=out, **values))
        for stage in stages:
            self.fathom(stage, "-c", str(config), *(more if stage == "train" else ()))
        kind = ("mggp_" if values["groups"] == "true" else "") + ("lcgp" if values["local"] == "true" else "svgp")
        return config, out, out / kind

    def edit(self, name, change):
        """A copy of the toy's h5ad file, changed."""
        path = self.folder / f"{name}.h5ad"
        shutil.copy(self.folder / "toy.h5ad", path)
        with h5py.File(path, "r+") as f:
            change(f)
        return path

    # ---- data ----

    def test_truth_of_the_toy(self):
        """Maps of two sections are independent draws, and have the same loadings."""
        S, F = np.load(self.folder / "toy/S.npy"), np.load(self.folder / "toy/ground_truth_factors.npy")
        self.assertEqual(np.bincount(S).tolist(), [121] * 3)
        for a in range(3):
            for b in range(a):
                self.assertGreater(np.abs(F[S == a] - F[S == b]).max(), 0.5)
        self.assertEqual(np.load(self.folder / "toy/ground_truth_loadings.npy").shape, (40, 2))

    def test_plane(self):
        """One scale, each section centred in its tile, apart; and back to the source."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(7)
        places = rng.normal(size=(363, 2)) * np.repeat([[30, 10], [3, 4], [5, 50]], 121, 0) + np.repeat([[1000, 0], [0, 0], [-3, 77]], 121, 0)
        places = places.astype(np.float32)
        path = self.edit("plane", lambda f: f["obsm/spatial"].__setitem__(..., places))
        _, out, _ = self.make("plane", stages=("preprocess",), dataset="anndata", source=f"path: {path}, section_column: section")
        X, S = np.load(out / "preprocessed/X.npy"), np.load(out / "preprocessed/S.npy")
        meta = json.loads((out / "preprocessed/metadata.json").read_text())
        self.assertEqual(meta["section_names"], ["section_0", "section_1", "section_2"])
        self.assertNotIn("offset", meta)
        extent = np.array([np.ptp(places[S == s].astype(float), axis=0) for s in range(3)])
        scale = 200 / math.exp(np.log(extent).mean())
        self.assertAlmostEqual(meta["scale"] / scale, 1, places=12)
        diagonal = np.hypot(*(extent * scale).T).max()
        self.assertAlmostEqual(meta["sections"]["gap"] / (1.5 * diagonal), 1, places=12)
        middle = np.array([(X[S == s].min(0) + X[S == s].max(0)) / 2 for s in range(3)])
        pitch = (extent * scale).max(0) + 2 * diagonal
        np.testing.assert_allclose(middle, np.array([[-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5]]) * pitch, rtol=1e-5)
        np.testing.assert_allclose(X / meta["scale"] + np.array(meta["sections"]["offsets"])[S], places, atol=2e-3)
        for s in range(3):
            mine, others = X[S == s].astype(float), X[S != s].astype(float)
            self.assertLess(np.hypot(*(mine[:, None] - mine).T).max(), meta["sections"]["gap"])
            self.assertGreater(np.hypot(*(mine[:, None] - others).T).min(), meta["sections"]["gap"])

    def test_unscaled(self):
        _, out, _ = self.make("unscaled", stages=("preprocess",), source=f"path: {self.folder}/toy, rescale: false")
        meta = json.loads((out / "preprocessed/metadata.json").read_text())
        X, S = np.load(out / "preprocessed/X.npy"), np.load(out / "preprocessed/S.npy")
        self.assertEqual(meta["scale"], 1)
        for s in range(3):
            np.testing.assert_allclose(np.ptp(X[S == s], axis=0), 200, rtol=1e-5)

    def test_which_sections(self):
        """`sections` chooses and orders; a cell without one is dropped and counted; one section may be left."""
        if h5py is None:
            self.skipTest("needs h5py")

        def change(f):
            f["obs/section/codes"][5] = -1
            f["obs/section/codes"][300] = -1
        path = self.edit("some", change)
        _, out, _ = self.make("some", stages=("preprocess",), dataset="anndata",
                              source=f"path: {path}, section_column: section, sections: [section_2, section_0]")
        meta = json.loads((out / "preprocessed/metadata.json").read_text())
        S, rows = np.load(out / "preprocessed/S.npy"), np.load(out / "preprocessed/rows.npy")
        self.assertEqual(meta["section_names"], ["section_2", "section_0"])
        self.assertEqual(meta["fathom"]["removed_cells"]["missing_section"], 2)
        self.assertEqual(meta["sections"]["cells"], [120, 120])
        np.testing.assert_array_equal(S, np.where(rows >= 242, 0, 1))

        def leave_out(f):
            f["obs/section/codes"][121:242] = 0
        path = self.edit("unused", leave_out)  # a category without cells, as a part of an AnnData object has them
        names = np.repeat(["a", "nan", "b"], [9, 2, 9])  # the text that writers of missing names leave
        write_h5ad(self.folder / "text.h5ad", np.ones((20, 3), np.float32), list("xyz"), np.random.default_rng(3).uniform(0, 9, (20, 2)), ["u"] * 20, names)
        _, out, _ = self.make("text", stages=("preprocess",), dataset="anndata", source=f"path: {self.folder}/text.h5ad, section_column: sample")
        self.assertEqual(np.load(out / "preprocessed/S.npy").tolist(), [0] * 9 + [1] * 9)
        source = f"path: {path}, section_column: section"
        _, out, _ = self.make("unused", stages=("preprocess",), dataset="anndata", source=source)
        self.assertEqual(json.loads((out / "preprocessed/metadata.json").read_text())["section_names"], ["section_0", "section_2"])
        config, _, _ = self.make("unused2", stages=(), dataset="anndata", source=source + ", sections: [section_0, section_1]")
        self.assertIn("no cell is of the section 'section_1'", self.fathom("preprocess", "-c", str(config), code=3))
        _, out, _ = self.make("one", stages=("preprocess", "train"), source=f"path: {self.folder}/toy, sections: [section_1]")
        self.assertEqual(np.load(out / "preprocessed/X.npy").shape, (121, 2))

    def test_table_of_labels(self):
        """A column of a CSV file beside the data."""
        lines = ["cell,slice"] + [f"c{i},{'ab'[i % 2] if i != 7 else 'nan'}" for i in range(363)]
        (self.folder / "labels.csv").write_text("\n".join(lines) + "\n")
        _, out, _ = self.make("labels", stages=("preprocess",),
                              source=f"path: {self.folder}/toy, labels_path: {self.folder}/labels.csv, section_column: slice")
        np.testing.assert_array_equal(np.load(out / "preprocessed/S.npy"), np.delete(np.arange(363) % 2, 7))  # "nan" is none

    def test_several_files(self):
        """A file for each section gives what one file with a column gives: genes that all have, types by their names."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        genes = [["a", "b", "c", "d", "e"], ["x", "e", "c", "a", "y", "b"], ["b", "a", "e", "c"]]
        cells, kinds, common = [30, 25, 40], ["uv", "vw", "wu"], ["a", "b", "c", "e"]
        counts = [rng.poisson(2, (n, len(g))).astype(np.float32) for n, g in zip(cells, genes)]
        xy = [rng.uniform(0, 10 + 5 * i, (n, 2)) for i, n in enumerate(cells)]
        kind = [[kinds[i][k % 2] for k in range(n)] for i, n in enumerate(cells)]
        for i, layout in enumerate(("dense", "csr", "csc")):
            write_h5ad(self.folder / f"part{i}.h5ad", counts[i], genes[i], xy[i], kind[i], layout=layout)
        write_h5ad(self.folder / "whole.h5ad", np.concatenate([c[:, [g.index(x) for x in common]] for c, g in zip(counts, genes)]), common,
                   np.concatenate(xy), sum(kind, []), np.repeat(["part0", "part1", "part2"], cells))
        paths = ", ".join(str(self.folder / f"part{i}.h5ad") for i in range(3))
        more = "group_column: kind, min_group_size: 1"
        config, out, model = self.make("files", stages=(), dataset="anndata", source=f"paths: [{paths}], {more}", M=12, steps=5)
        said = self.fathom("preprocess", "-c", str(config))
        for i, gone in enumerate(("1 of its 5", "2 of its 6")):
            self.assertIn(f"part{i}.h5ad: {gone} genes are not in all files", said)
        _, whole, _ = self.make("whole", stages=("preprocess",), dataset="anndata", source=f"path: {self.folder}/whole.h5ad, section_column: sample, {more}")
        for name in ("X.npy", "C.npy", "S.npy", "Y.npz", "rows.npy"):
            self.assertEqual((out / "preprocessed" / name).read_bytes(), (whole / "preprocessed" / name).read_bytes(), name)
        one, other = (json.loads((d / "preprocessed/metadata.json").read_text()) for d in (out, whole))
        for key in ("gene_names", "group_names", "section_names", "sections", "scale"):
            self.assertEqual(one[key], other[key], key)
        for stage in ("train", "analyze", "figures"):
            self.fathom(stage, "-c", str(config))
        ratios = {}
        for row in table(model / "section_comparison.csv"):
            ratios.setdefault((row["factor"], row["group"]), []).append(2 ** float(row["log2_ratio"]))
        self.assertEqual([len(r) for r in ratios.values()], [3, 2, 2, 2] * 2)  # a section without cells of a type has no row,
        np.testing.assert_allclose([np.mean(r) for r in ratios.values()], 1, rtol=1e-4)  # and no part in the mean
        names = [f"cell{k}-part{i}" for i, n in enumerate(cells) for k in range(n)]  # as anndata.concat(index_unique="-") has them
        self.assertEqual(one["spot_names"], names)
        self.fathom("export", "-c", str(config), "-o", str(self.folder / "files_to.h5ad"))
        with h5py.File(self.folder / "files_to.h5ad") as f:
            self.assertEqual([name.decode() for name in f["obs/_index"][:]], names)
            np.testing.assert_allclose(f["obsm/spatial"][:], np.concatenate(xy), rtol=1e-4, atol=1e-4)
            self.assertEqual(f["obs/section/codes"][:].tolist(), np.repeat([0, 1, 2], cells).tolist())
        _, out, _ = self.make("called", stages=("preprocess",), dataset="anndata", source=f"paths: [{paths}], sections: [B, A, C], {more}")
        meta = json.loads((out / "preprocessed/metadata.json").read_text())
        self.assertEqual(meta["section_names"], ["B", "A", "C"])
        self.assertEqual([meta["spot_names"][i] for i in (0, 30, 94)], ["cell0-B", "cell0-A", "cell39-C"])
        # made again only where a file changed
        config, _, _ = self.make("files", stages=(), dataset="anndata", source=f"paths: [{paths}], {more}", M=12, steps=5)
        self.assertIn("made with the same settings", self.fathom("preprocess", "-c", str(config)))
        write_h5ad(self.folder / "part2.h5ad", counts[2] + 1, genes[2], xy[2], kind[2])
        self.assertIn("other bytes", self.fathom("preprocess", "-c", str(config), code=2))

    def test_several_folders(self):
        """Output folders of Space Ranger and Xenium, counts as HDF5 and as text: a section each."""
        if h5py is None:
            self.skipTest("needs h5py")
        for kind, inside in (("visium", np.flatnonzero(make.INSIDE)), ("xenium", np.arange(make.N))):
            paths = [self.folder / f"{kind}_{i}" for i in range(2)]
            for i, path in enumerate(paths):
                make.folder(path, kind, text=i == 1)
            config, out, _ = self.make(kind, stages=(), dataset=kind, source="paths: [" + ", ".join(map(str, paths)) + "]")
            config.write_text(config.read_text().replace("preprocessing: {", "preprocessing: {min_counts: 0, min_cells: 0, "))
            self.fathom("preprocess", "-c", str(config))
            meta = json.loads((out / "preprocessed/metadata.json").read_text())
            self.assertEqual(meta["section_names"], [path.name for path in paths])
            self.assertEqual(meta["sections"]["cells"], [len(inside)] * 2)
            self.assertEqual(np.load(out / "preprocessed/rows.npy").tolist(), [*inside, *(np.asarray(inside) + make.N)])
            z = np.load(out / "preprocessed/Y.npz")
            half = z["indptr"][len(inside)]
            np.testing.assert_array_equal(z["data"][:half], z["data"][half:])
            np.testing.assert_array_equal(z["indices"][:half], z["indices"][half:])

    def test_several_with_gaps(self):
        """A cell without a type in one of the files is dropped, and so is a gene that is none in one of them."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        paths = [self.folder / f"gaps{i}.h5ad" for i in range(2)]
        for path in paths:
            write_h5ad(path, rng.poisson(2, (20, 3)).astype(np.float32), list("abc"), rng.uniform(0, 9, (20, 2)), ["u", "v"] * 10)
        with h5py.File(paths[1], "r+") as f:
            del f["obs/kind"]
            kind = f.create_group("obs/kind")
            kind.attrs["encoding-type"] = "categorical"
            kind["codes"] = np.where(np.arange(20) == 3, -1, np.arange(20) % 2).astype(np.int8)
            kind.create_dataset("categories", data=[b"v", b"u"], dtype=h5py.string_dtype())
        _, out, _ = self.make("gaps", stages=("preprocess",), dataset="anndata",
                              source=f"paths: [{paths[0]}, {paths[1]}], group_column: kind, min_group_size: 1")
        self.assertEqual(np.load(out / "preprocessed/rows.npy").tolist(), [i for i in range(40) if i != 23])
        self.assertEqual(json.loads((out / "preprocessed/metadata.json").read_text())["group_names"], ["u", "v"])
        np.testing.assert_array_equal(np.load(out / "preprocessed/C.npy"), np.delete(np.r_[np.arange(20) % 2, 1 - np.arange(20) % 2], 23))
        paths = [self.folder / f"types{i}" for i in range(2)]
        for path in paths:
            make.folder(path, "visium", text=True)
        file = next(paths[1].rglob("features.tsv.gz"))
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        lines[2] = lines[2].replace("Gene Expression", "Antibody Capture")
        file.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
        config, out, _ = self.make("types", stages=(), dataset="visium", source=f"paths: [{paths[0]}, {paths[1]}]")
        config.write_text(config.read_text().replace("preprocessing: {", "preprocessing: {min_counts: 0, min_cells: 0, filter_mt: false, "))
        self.fathom("preprocess", "-c", str(config))
        genes = [line.split("\t")[1] for line in lines]
        self.assertEqual(json.loads((out / "preprocessed/metadata.json").read_text())["gene_names"], genes[:2] + genes[3:])

    def test_several_preprocessed(self):
        """Folders that were rescaled before, each in its own way, come together at the scale of their sources."""
        places, paths = [], []
        for i, (scale, offset) in enumerate((((3, 2), (5, 40)), ((0.5, 4), (-70, 9)))):
            folder = self.folder / f"scaled_{i}"
            self.fathom("toy", "-o", str(folder), "--side", "9", "--genes", "12", "--factors", "2", "--groups", "2", "--seed", str(4 + i))
            places.append((np.load(folder / "X.npy") * scale + offset).astype(np.float32))
            np.save(folder / "X.npy", places[i])
            _, out, _ = self.make(f"rescaled_{i}", stages=("preprocess",), source=f"path: {folder}")
            self.assertGreater(np.abs(np.load(out / "preprocessed/X.npy") - places[i]).max(), 10)
            paths.append(str(out / "preprocessed"))
        _, out, _ = self.make("rescaled", stages=("preprocess",), source=f"paths: [{', '.join(paths)}], sections: [a, b]")
        meta, X, S = json.loads((out / "preprocessed/metadata.json").read_text()), np.load(out / "preprocessed/X.npy"), np.load(out / "preprocessed/S.npy")
        np.testing.assert_allclose(X / meta["scale"] + np.array(meta["sections"]["offsets"])[S], np.concatenate(places), atol=2e-3)

    def test_mistakes_of_several_files(self):
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        (self.folder / "d").mkdir(exist_ok=True)
        for name, genes in (("one", "abc"), ("d/one", "abc"), ("other", "xyz")):
            write_h5ad(self.folder / f"{name}.h5ad", rng.poisson(2, (20, 3)).astype(np.float32), list(genes), rng.uniform(0, 9, (20, 2)), ["u"] * 20)

        def refuse(name, source, *what):
            config, _, _ = self.make(name, stages=(), dataset="anndata", source=source)
            done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(config)], capture_output=True, text=True, timeout=100)
            self.assertNotEqual(done.returncode, 0)
            for word in what:
                self.assertIn(word, done.stderr)
        at = self.folder
        refuse("f1", f"paths: [{at}/one.h5ad, {at}/other.h5ad]", "other.h5ad has no gene that all files before it have", "'x'", "'a'")
        refuse("f2", f"paths: [{at}/one.h5ad, {at}/d/one.h5ad]", "would both be the section 'one'", "preprocessing.sections: [A, B]")
        refuse("f3", f"paths: [{at}/one.h5ad, {at}/other.h5ad], sections: [A]", "2 files have 1 names")
        refuse("f4", f"paths: [{at}/one.h5ad, {at}/other.h5ad], section_column: kind", "every file of paths is a section of its own")
        refuse("f5", "paths: []", "at least one file is expected")
        (at / "link.h5ad").symlink_to(at / "one.h5ad")
        for name, again in (("f10", f"{at}/one.h5ad"), ("f11", f"{at}/d/../one.h5ad"), ("f12", f"{at}/link.h5ad")):
            refuse(name, f"paths: [{at}/one.h5ad, {at}/d/one.h5ad, {again}], sections: [A, B, C]", "is the same as", "list every file once")
        refuse("f6", f"paths: [{at}/one.h5ad, {at}/nowhere.h5ad]", "nowhere.h5ad")
        # a file that cannot be a section, and what to do about it
        for name, genes, xy in (("few", "abc", rng.uniform(0, 9, (5, 2))), ("lost", "abc", np.full((20, 2), np.nan)),
                                ("less", "ab", rng.uniform(0, 9, (20, 2)))):
            write_h5ad(self.folder / f"{name}.h5ad", rng.poisson(2, (len(xy), len(genes))).astype(np.float32), list(genes), xy, ["u"] * len(xy))
        refuse("f7", f"paths: [{at}/one.h5ad, {at}/few.h5ad]", "few.h5ad: 5 cells of section 'few' are left", "leave it out: of preprocessing.paths")
        refuse("f8", f"paths: [{at}/one.h5ad, {at}/lost.h5ad]", "section 'lost' has no cells with a finite position", "leave it out: of preprocessing.paths")
        refuse("f9", f"paths: [{at}/one.h5ad, {at}/less.h5ad], genes: [a, c]", "1 of the 2 names", "'c' is left out: not all files")

    def test_names_of_several_files_are_unique(self):
        """Also where a file repeats its own, and where a name and a section together are another name and section."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        own = (["c"] * 3 + ["c-1"] + [f"d{i}" for i in range(16)], ["c-x"] + [f"d{i}" for i in range(19)])
        for i, names in enumerate(own):
            write_h5ad(self.folder / f"u{i}.h5ad", rng.poisson(2, (20, 3)).astype(np.float32), list("abc"), rng.uniform(0, 9, (20, 2)), ["u"] * 20)
            with h5py.File(self.folder / f"u{i}.h5ad", "r+") as f:
                f["obs/_index"][...] = [n.encode() for n in names]
        config, out, _ = self.make("unique", stages=(), dataset="anndata", source=f"paths: [{self.folder}/u0.h5ad, {self.folder}/u1.h5ad], sections: [x-y, y]")
        self.assertIn("3 cells had the name of another", self.fathom("preprocess", "-c", str(config)))
        names = json.loads((out / "preprocessed/metadata.json").read_text())["spot_names"]
        self.assertEqual(names[:5], ["c-x-y", "c-x-y-1", "c-x-y-2", "c-1-x-y", "d0-x-y"])
        self.assertEqual(names[20:22], ["c-x-y-3", "d0-y"])
        self.assertEqual(len(set(names)), 40)

    def test_unique_names_are_planned(self):
        """Long names of sections, many cells: the process grows by no more than its plan."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        n = 60000
        for i in range(2):
            write_h5ad(self.folder / f"many{i}.h5ad", rng.poisson(1, (n, 2)).astype(np.float32), list("ab"), rng.uniform(0, 9, (n, 2)), ["u"] * n, layout="csr")
        names = [letter * 150 for letter in "pq"]
        config, _, _ = self.make("many", stages=(), dataset="anndata",
                                 source=f"paths: [{self.folder}/many0.h5ad, {self.folder}/many1.h5ad], sections: [{names[0]}, {names[1]}]")
        said = self.fathom("preprocess", "-c", str(config))
        grown, planned = (float(said.split(w)[0].split()[-2]) for w in (" grown", " planned"))
        self.assertLess(grown, planned, said)

    def test_every_file_counts_what_it_dropped(self):
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        for i, gone in enumerate((3, 2)):
            write_h5ad(self.folder / f"drop{i}.h5ad", rng.poisson(2, (20, 3)).astype(np.float32), list("abc"), rng.uniform(0, 9, (20, 2)),
                       ["nan"] * gone + ["u"] * (20 - gone))
        _, out, _ = self.make("dropped", stages=("preprocess",), dataset="sdmbench",
                              source=f"paths: [{self.folder}/drop0.h5ad, {self.folder}/drop1.h5ad], region_column: kind")
        meta = json.loads((out / "preprocessed/metadata.json").read_text())
        self.assertEqual((meta["fathom"]["removed_cells"]["missing_region"], meta["sections"]["cells"]), (5, [17, 18]))

    def test_a_section_without_counts_is_told(self):
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        for name, rate in (("some", 2), ("zero", 0)):
            write_h5ad(self.folder / f"rate_{name}.h5ad", rng.poisson(rate, (20, 3)).astype(np.float32), list("abc"), rng.uniform(0, 9, (20, 2)), ["u"] * 20)
        config, _, _ = self.make("zero", stages=(), dataset="anndata", source=f"paths: [{self.folder}/rate_some.h5ad, {self.folder}/rate_zero.h5ad]")
        said = self.fathom("preprocess", "-c", str(config))
        self.assertIn("every count of section rate_zero is 0", said)
        self.assertNotIn("every count of section rate_some", said)

    def test_extents_that_differ_much(self):
        """Positions in two units are told: one scale is for all sections."""
        if h5py is None:
            self.skipTest("needs h5py")
        rng = np.random.default_rng(2)
        for name, extent in (("um", 1900), ("px", 3000), ("mm", 1)):
            write_h5ad(self.folder / f"{name}.h5ad", rng.poisson(2, (20, 3)).astype(np.float32), list("abc"), rng.uniform(0, extent, (20, 2)), ["u"] * 20)
        for other, told in (("px", False), ("mm", True)):
            config, _, _ = self.make(f"unit_{other}", stages=(), dataset="anndata", source=f"paths: [{self.folder}/um.h5ad, {self.folder}/{other}.h5ad]")
            said = self.fathom("preprocess", "-c", str(config))
            self.assertEqual("times as large as mm, and all have one scale" in said, told)
            self.assertEqual("in the same unit?" in said, told)

    def test_one_tissue_keeps_its_bytes(self):
        """Without sections nothing of this is in any file, and tables of an earlier analysis go."""
        folder = self.folder / "plain"
        self.fathom("toy", "-o", str(folder), "--side", "9", "--genes", "12", "--factors", "2", "--groups", "2", "--seed", "4")
        config, out, model = self.make("tissue", source=f"path: {folder}")
        self.assertFalse((out / "preprocessed/S.npy").exists())
        for name in ("sections.csv", "section_comparison.csv"):
            (model / name).write_text("old\n")
        self.fathom("analyze", "-c", str(config))
        for name in ("sections.csv", "section_comparison.csv"):
            self.assertFalse((model / name).exists(), name)
        for path in (out / "preprocessed/metadata.json", model / "model.safetensors", model / "metrics.json", model / "training.json"):
            self.assertNotIn(b"section", path.read_bytes(), path)

    # ---- the prior ----

    def svgp(self, m, X, C, S, kernel):
        """f and s at all cells, from the file of a model."""
        Z, g = m["Z"], m.get("groupsZ")
        near = ((Z[:, None].astype(float) - X[None].astype(float)) ** 2).sum(-1).argmin(1)
        sZ = S[near]
        K = covariance(Z, g, sZ, Z, g, sZ, kernel)
        Lc = np.linalg.cholesky(K + JITTER * np.eye(len(Z)))
        k = covariance(Z, g, sZ, X, None if g is None else C, S, kernel)
        w = np.linalg.solve(Lc, k)
        f, s = [], []
        for mu, raw in zip(m["mu"].astype(float), m["Lu_raw"].astype(float)):
            V = np.linalg.solve(Lc, np.tril(raw, -1) + np.diag(np.exp(np.diag(raw))))
            f.append(np.linalg.solve(Lc, mu) @ w)
            s.append(np.sqrt(np.clip(np.maximum(1 - (w**2).sum(0), 0) + ((V.T @ w) ** 2).sum(0), 0, 100)))
        return np.array(f).T, np.array(s).T, K, sZ

    def test_block_by_block(self):
        """Predictions of a trained model are those of a block-diagonal prior, exactly independent across sections."""
        for n, keys in enumerate([dict(), dict(groups="true"), dict(groups="true", allocation="derived"), dict(kernel="RBF"),
                                  dict(groups="true", allocation="equal")]):
            with self.subTest(**keys):
                _, out, model = self.make(f"block{n}", stages=("preprocess", "train", "analyze"), **keys)
                m, meta = tensors(model / "model.safetensors")
                X, C, S = (np.load(out / "preprocessed" / f"{name}.npy") for name in "XCS")
                f, s, K, sZ = self.svgp(m, X, C, S, keys.get("kernel", "Matern32"))
                order = json.loads((model / "metrics.json").read_text())["moran_i"]["sorted_indices"]
                np.testing.assert_allclose(np.load(model / "factors.npy"), np.exp(f[:, order]), rtol=2e-4)
                np.testing.assert_allclose(np.load(model / "scales.npy"), s[:, order], rtol=2e-3, atol=2e-4)
                self.assertTrue((K[sZ[:, None] != sZ[None]] == 0).all())
                self.assertEqual(np.bincount(sZ).tolist(), [10, 10, 10])  # each has its share
                self.assertEqual(meta["n_sections"], "3")
                if keys.get("groups"):
                    pairs = {(s, g) for s, g in zip(sZ, m["groupsZ"])}
                    self.assertEqual(pairs, {(s, g) for s, g in zip(S, C)})  # every type of every section has a point

    def test_one_section_alone(self):
        """The prior of a section does not know of the others: predictions of the joint model with the parameters of one are the same."""
        _, out, model = self.make("joint", stages=("preprocess", "train", "analyze"))
        m, _ = tensors(model / "model.safetensors")
        X, S = (np.load(out / "preprocessed" / f"{name}.npy") for name in "XS")
        f, _, K, sZ = self.svgp(m, X, None, S, "Matern32")
        for s in range(3):
            at = sZ == s
            own = covariance(m["Z"][at], None, sZ[at], X[S == s], None, S[S == s])
            alone = m["mu"][:, at].astype(float) @ np.linalg.solve(K[np.ix_(at, at)] + JITTER * np.eye(at.sum()), own)
            np.testing.assert_allclose(alone.T, f[S == s], rtol=1e-6, atol=1e-9)

    def test_neighbours(self):
        """Lists of local models stay in the section, nearest or drawn; K follows the smallest one."""
        for neighbors in ("knn", "probabilistic"):
            _, out, model = self.make(neighbors, local="true", groups="true", neighbors=neighbors, K=60)
            m, _ = tensors(model / "model.safetensors")
            S = np.load(out / "preprocessed/S.npy")
            for lists in (m["nbr_kl"], m["nbr_inf"]):
                self.assertTrue((S[lists] == S[:, None]).all())
        done = self.make("small", "--force", local="true", K=200, stages=("preprocess",))[0]
        said = self.fathom("train", "-c", str(done))
        self.assertIn("K 200 -> 120 (cells of the smallest section other than the cell itself)", said)

    def test_same_bits(self):
        """Any budget and number of threads; and what was planned is what was held."""
        for n, keys in enumerate([dict(), dict(groups="true", held=0.2), dict(local="true", T=2), dict(likelihood="nb", sizes="total", T=1)]):
            with self.subTest(**keys):
                files = []
                for k, words in enumerate([("--threads", "1"), ("--threads", "4", "--memory", "64M")]):
                    config, _, model = self.make(f"bits{n}{k}", stages=("preprocess",), **keys)
                    said = self.fathom("train", "-c", str(config), *words)
                    ledger = [line for line in said.splitlines() if line.startswith("ledger")][0].split()
                    self.assertEqual(ledger[1], ledger[4], said)
                    self.fathom("analyze", "-c", str(config), *words)
                    files.append([(model / name).read_bytes() for name in ("model.safetensors", "factors.npy", "sections.csv", "section_comparison.csv")])
                self.assertEqual(files[0], files[1])

    # ---- numbers ----

    def test_numbers(self):
        config, out, model = self.make("numbers", stages=("preprocess", "train", "analyze"), groups="true", held=0.2, sizes="total")
        F, W = np.load(model / "factors.npy").astype(float), np.load(model / "loadings.npy").astype(float)
        X, C, S = (np.load(out / "preprocessed" / f"{name}.npy") for name in "XCS")
        held, sizes, meta = np.load(model / "held_out.npy"), np.load(model / "size_factors.npy"), json.loads((out / "preprocessed/metadata.json").read_text())
        metrics = json.loads((model / "metrics.json").read_text())
        z = np.load(out / "preprocessed/Y.npz")
        Y = np.zeros(tuple(z["shape"]))
        for i in range(len(Y)):
            part = slice(z["indptr"][i], z["indptr"][i + 1])
            Y[i, z["indices"][part]] = z["data"][part]

        def deviance(at, F):
            mu = np.maximum(F[at] @ W.T * sizes[at, None], 1e-10)
            return 2 * (np.where(Y[at] > 0, Y[at] * np.log(np.maximum(Y[at], 1) / mu), 0) - Y[at] + mu).mean()
        expected = F * np.exp(np.load(model / "scales.npy").astype(float) ** 2 / 2)
        rows = table(model / "sections.csv")
        self.assertEqual(len(rows), 6)
        for s, of in enumerate(metrics["sections"]):
            seen = (S == s) & ~held
            self.assertEqual((of["name"], of["n_cells"], of["n_held_out"]), (f"section_{s}", seen.sum(), ((S == s) & held).sum()))
            self.assertAlmostEqual(of["poisson_deviance"] / deviance(seen, F), 1, places=5)
            self.assertAlmostEqual(of["holdout_deviance"] / deviance((S == s) & held, expected), 1, places=5)
            np.testing.assert_allclose(of["moran_i"], moran(F[seen], X[seen]), rtol=1e-6)
            share = F[seen].mean(0) * W.sum(0)
            for l in range(2):
                row = rows[2 * s + l]
                self.assertEqual((row["section"], row["factor"], row["cells"]), (f"section_{s}", str(l + 1), str(seen.sum())))
                np.testing.assert_allclose([float(row[k]) for k in ("mean", "sd", "share", "moran_i")],
                                           [F[seen, l].mean(), F[seen, l].std(), share[l] / share.sum(), of["moran_i"][l]], rtol=1e-5)
        rows = table(model / "section_comparison.csv")
        self.assertEqual(len(rows), 2 * 3 * 4)
        for row in rows:
            s, l = int(row["section"][-1]), int(row["factor"]) - 1
            of = ~held if row["group"] == "" else ~held & (C == meta["group_names"].index(row["group"]))
            means = [F[of & (S == k), l].mean() for k in range(3)]
            self.assertEqual(int(row["cells"]), (of & (S == s)).sum())
            np.testing.assert_allclose([float(row["mean"]), float(row["log2_ratio"])], [means[s], np.log2(means[s] / np.mean(means))], rtol=1e-4, atol=1e-6)
        said = self.fathom("figures", "-c", str(config), "--set", "figures=all")
        for name in ("factors_spatial.png", "factors_by_section.png", "inducing_points.png"):
            self.assertTrue((model / "figures" / name).exists(), said)

    def test_maps_as_of_one_group(self):
        """As if of another type, a cell stays in its section."""
        _, out, model = self.make("groupwise", stages=("preprocess", "train", "analyze"), groups="true")
        m, _ = tensors(model / "model.safetensors")
        X, C, S = (np.load(out / "preprocessed" / f"{name}.npy") for name in "XCS")
        order = json.loads((model / "metrics.json").read_text())["moran_i"]["sorted_indices"]
        for g in range(3):
            f, _, _, _ = self.svgp(m, X, np.full_like(C, g), S, "Matern32")
            np.testing.assert_allclose(np.load(model / f"groupwise_factors/group_{g}.npy"), np.exp(f[:, order]), rtol=2e-4)

    # ---- new cells ----

    def test_project(self):
        """Cells go to the section of their name; those of another one have the prior."""
        for keys in (dict(), dict(local="true", groups="true")):
            name = "project" + "".join(keys)
            _, out, model = self.make(name, stages=("preprocess", "train", "analyze"), **keys)
            self.make(name + "2", stages=("preprocess",), source=f"path: {self.folder}/toy, sections: [section_1]")
            to = self.folder / (name + "_to")
            self.fathom("project", "-m", str(model / "model.safetensors"), "--data", str(self.folder / (name + "2")), "-o", str(to))
            S = np.load(out / "preprocessed/S.npy")
            np.testing.assert_allclose(np.load(to / "factors.npy"), np.load(model / "factors.npy")[S == 1], rtol=1e-3)
            meta = self.folder / (name + "2") / "preprocessed/metadata.json"
            meta.write_text(meta.read_text().replace("section_1", "elsewhere"))
            said = self.fathom("project", "-m", str(model / "model.safetensors"), "--data", str(self.folder / (name + "2")), "-o", str(to))
            self.assertIn("121 cells are of no section of the model", said)
            self.assertTrue((np.load(to / "factors.npy") == 1).all())
            np.testing.assert_allclose(np.load(to / "scales.npy"), 1, rtol=1e-5)

    def test_project_one_file(self):
        """One file in `paths` is one section: its cells go where the section of that name is."""
        if h5py is None:
            self.skipTest("needs h5py")
        with h5py.File(self.folder / "toy.h5ad") as f:
            xy, group = f["obsm/spatial"][121:242], ["u"] * 121
        write_h5ad(self.folder / "alone.h5ad", np.ones((121, 3), np.float32), list("abc"), xy, group)
        _, out, model = self.make("project_of", stages=("preprocess", "train", "analyze"))
        _, new, _ = self.make("project_file", stages=("preprocess",), dataset="anndata", source=f"paths: [{self.folder}/alone.h5ad], sections: [section_1]")
        meta = json.loads((new / "preprocessed/metadata.json").read_text())
        self.assertEqual((meta["section_names"], meta["spot_names"][5]), (["section_1"], "cell5-section_1"))
        to = self.folder / "project_file_to"
        said = self.fathom("project", "-m", str(model / "model.safetensors"), "--data", str(new), "-o", str(to))
        self.assertNotIn("of no section", said)
        S = np.load(out / "preprocessed/S.npy")
        np.testing.assert_allclose(np.load(to / "factors.npy"), np.load(model / "factors.npy")[S == 1], rtol=1e-3)

    def test_export_and_page(self):
        if h5py is None:
            self.skipTest("needs h5py")

        def change(f):
            f["obs/section/codes"][5] = -1
        path = self.edit("export", change)
        config, out, model = self.make("export", stages=("preprocess", "train", "analyze"), dataset="anndata", source=f"path: {path}, section_column: section")
        self.fathom("export", "-c", str(config), "-o", str(self.folder / "export_to.h5ad"))
        with h5py.File(self.folder / "export_to.h5ad") as f:
            code = f["obs/fathom_section/codes"][:]
            self.assertEqual(code[5], -1)
            np.testing.assert_array_equal(np.delete(code, 5), np.delete(np.repeat([0, 1, 2], 121), 5))
            self.assertIn("fathom_section", list(f["obs"].attrs["column-order"]))
        with h5py.File(path) as f, h5py.File(self.folder / "toy.h5ad") as g:
            np.testing.assert_allclose(f["obsm/spatial"][:121], f["obsm/spatial"][121:242], atol=1e-4)  # as the source has them: overlapping
            self.assertEqual(np.abs(g["obsm/spatial"][:]).max(), 100)
        self.fathom("page", "-c", str(config), "-o", str(self.folder / "page.html"))
        text = (self.folder / "page.html").read_text()
        self.assertIn('"section_1"', text)
        said = self.fathom("info", str(path))
        self.assertIn("section_column: section", said)

    def test_binding(self):
        """fit(section=) has the bytes of the program; predict(section=) is at the places of that section."""
        if h5py is None:
            self.skipTest("needs h5py")
        keys = dict(num_inducing=30, max_iter=8, device="cpu", seed=3, lengthscale=60.0)
        adata = read_h5ad(self.folder / "toy.h5ad")
        adata.obs["section"] = np.repeat([f"section_{i}" for i in range(3)], 121)
        fit = fathom.spatial.fit(adata, "svgp", 2, section="section", sections=["section_0", "section_2"], **keys)
        self.assertEqual(fit.section_names, ["section_0", "section_2"])
        config = self.folder / "binding.yaml"
        config.write_text(f"""{{instrument: spatial, name: b, seed: 3, dataset: anndata, output_dir: {self.folder}/binding,
  preprocessing: {{path: {self.folder}/toy.h5ad, section_column: section, sections: [section_0, section_2]}},
  model: {{spatial: true, n_components: 2, init: nmf, loadings_mode: multiplicative, lengthscale: 60.0, num_inducing: 30}},
  training: {{max_iter: 8, device: cpu}}}}""")
        for stage in ("preprocess", "train", "analyze"):
            self.fathom(stage, "-c", str(config))
        model = self.folder / "binding/svgp"
        self.assertEqual(pathlib.Path(fit.model_path).read_bytes(), (model / "model.safetensors").read_bytes())
        self.assertTrue(np.isnan(adata.obsm["fathom_factors"][121:242]).all())
        xy = np.asarray(adata.obsm["spatial"])
        np.testing.assert_allclose(fit.predict(xy[242:], section="section_2"), adata.obsm["fathom_factors"][242:], rtol=1e-3)
        with self.assertRaisesRegex(Exception, "sections of the model are section_0, section_2"):
            fit.predict(xy)
        backed = read_h5ad(self.folder / "toy.h5ad", backed="r")  # read by the library from its file
        backed.obs["section"] = adata.obs["section"]
        other = fathom.spatial.fit(backed, "svgp", 2, section="section", sections=["section_0", "section_2"], **keys)
        self.assertEqual(pathlib.Path(other.model_path).read_bytes(), (model / "model.safetensors").read_bytes())

    # ---- mistakes ----

    def test_mistakes(self):
        def refuse(name, what, stage="preprocess", **keys):
            config, _, _ = self.make(name, stages=("preprocess",) if stage != "preprocess" else (), **keys)
            done = subprocess.run([PROGRAM, "spatial", stage, "-c", str(config)], capture_output=True, text=True, timeout=100)
            self.assertNotEqual(done.returncode, 0)
            for word in what:
                self.assertIn(word, done.stderr)
        toy = f"path: {self.folder}/toy"
        refuse("e1", ["no cell is of the section 'nowhere'", "section_0, section_1, section_2"], source=toy + ", sections: [nowhere]")
        refuse("e2", ["the section 'section_0' is listed twice", "list every section once"], source=toy + ", sections: [section_0, section_0]")
        refuse("e3", ["section_column is 'sample'", "preprocessing.labels_path"], source=toy + ", section_column: sample")
        refuse("e4", ["model.num_inducing is 2", "3 sections", "at least 3"], stage="train", M=2)
        refuse("e5", ["no column says of which one a cell is", "preprocessing.section_column"], dataset="anndata",
               source=f"path: {self.folder}/toy.h5ad, sections: [a]")
        lines = ["cell,slice,line,few"] + [f"c{i},{'ab'[i % 2]},{i % 11 if i < 22 else 'x'},{'a' if i < 5 else 'b'}" for i in range(363)]
        (self.folder / "wrong.csv").write_text("\n".join(lines) + "\n")
        table = f"{toy}, labels_path: {self.folder}/wrong.csv, section_column: "
        refuse("e6", ["section '0' has no extent on axis 0", "preprocessing.sections"], source=table + "line")
        refuse("e7", ["section 'a' has no extent on axis 1", "preprocessing.sections"], source=table + "few")
        np.save(self.folder / "Z.npy", np.full((30, 2), 1e5, np.float32))
        refuse("e11", ["inducing point 0 at (100000, 100000) lies in no section", "X.npy"], stage="train",
               M=f"30\n  inducing_file: {self.folder}/Z.npy")
        refuse("e8", ["the smallest section has", "at least 8 are needed"], stage="train", held=0.9, source=toy + ", subsample: 5")
        _, _, model = self.make("e9")
        folder = self.folder / "unnamed"
        self.fathom("toy", "-o", str(folder), "--side", "9", "--genes", "40", "--factors", "2", "--groups", "2", "--seed", "4")
        self.make("e10", stages=("preprocess",), source=f"path: {folder}")
        said = subprocess.run([PROGRAM, "spatial", "project", "-m", str(model / "model.safetensors"), "--data", str(self.folder / "e10")],
                              capture_output=True, text=True, timeout=100)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("does not say of which section its cells are", said.stderr)
        self.assertIn("preprocessing.section_column", said.stderr)
        self.assertIn("preprocessing.paths: [FILE] and sections: [NAME]", said.stderr)

    def test_too_few_points_name_section_and_type(self):
        for allocation in ("proportional", "derived"):
            config, out, _ = self.make(f"points_{allocation}", stages=("preprocess",), groups="true", allocation=allocation, M=7)
            C, S = np.load(out / "preprocessed/C.npy"), np.load(out / "preprocessed/S.npy")
            types = json.loads((out / "preprocessed/metadata.json").read_text())["group_names"]
            cells = np.bincount(3 * S + C, minlength=9)
            least = sorted(sorted(range(9), key=lambda g: (-cells[g], g))[7:])  # the smallest go without
            names = ", ".join(f"'{types[g % 3]} of section section_{g // 3}'" for g in least)
            said = self.fathom("train", "-c", str(config), code=2)
            self.assertIn(f"7 inducing points for 9 groups: groups {names} would have none", said)
            self.assertIn("at least 9", said)

    def test_a_section_without_held_out_cells(self):
        """holdout: last takes those of the last section alone; the others have no such number, not NaN."""
        config, _, model = self.make("last", stages=("preprocess",), held=0.2, steps=3)
        config.write_text(config.read_text().replace("holdout_fraction: 0.2", "holdout_fraction: 0.2, holdout: last"))
        for stage in ("train", "analyze"):
            self.fathom(stage, "-c", str(config))
        text = (model / "metrics.json").read_text()
        self.assertNotIn("NaN", text)
        found = json.loads(text)["sections"]
        self.assertEqual([of["n_held_out"] for of in found], [0, 0, 73])
        self.assertEqual(["holdout_deviance" in of for of in found], [False, False, True])

    def test_damaged_folders(self):
        """A cell outside of its section would be a neighbour of another one: refused."""
        config, out, _ = self.make("damaged", stages=("preprocess",))
        X = np.load(out / "preprocessed/X.npy")
        X[7] = X[-1]
        np.save(out / "preprocessed/X.npy", X)
        done = subprocess.run([PROGRAM, "spatial", "train", "-c", str(config)], capture_output=True, text=True, timeout=100)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cell 7 lies outside of its section 'section_0'", done.stderr)


if __name__ == "__main__":
    unittest.main()
