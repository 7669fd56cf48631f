"""Quality control and highly variable genes of every dataset against NumPy: rules, flavors, lists of genes, what is written, budgets,
mistakes. The loess of seurat_v3 is written here again, from the description (model 2.7).
seconds: 20"""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
N, D = 260, 320


def make(seed=3, n=N, d=D):
    """Counts with groups, depths, mitochondrial genes, an empty cell and genes that do not vary."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    effect = np.exp(rng.normal(0, 1, (3, d)) * (rng.random(d) < 0.2))
    rate = rng.gamma(3, 1 / 3, n)[:, None] * rng.gamma(0.4, 1.5, d)[None] * effect[group]
    y = rng.poisson(rng.gamma(2, rate / 2)).astype("f4")
    y[7, :60] = rng.poisson(200, 60)  # values that seurat_v3 cuts
    y[:, 5] = 0
    y[:, 6] = 2
    y[:, 10:13] = rng.poisson(rng.gamma(2, 2, n)[:, None], (n, 3))  # mitochondrial
    y[3] = 0
    names = [f"Gene{g}" for g in range(d)]
    for g in (10, 11, 12):
        names[g] = f"mt-Nd{g}"
    return y, names, rng.uniform(0, 100, (n, 2)), group


def write_h5ad(path, y, names, xy, group, form):
    with h5py.File(path, "w") as f:
        if form == "dense":
            f["X"] = y
        else:
            m = y if form == "csr" else y.T
            g = f.create_group("X")
            g.attrs["encoding-type"] = form + "_matrix"
            g.attrs["encoding-version"] = "0.1.0"
            g.attrs["shape"] = y.shape
            g["data"] = m[m != 0]
            g["indices"] = np.nonzero(m)[1].astype("i4")
            g["indptr"] = np.concatenate([[0], np.cumsum((m != 0).sum(1))]).astype("i4")
        text = h5py.string_dtype()
        f.create_dataset("var/_index", data=names, dtype=text)
        f.create_dataset("obs/_index", data=[f"cell{i}" for i in range(len(y))], dtype=text)
        f.create_dataset("obs/type", data=[f"t{g}" for g in group], dtype=text)
        for frame, columns in (("obs", ["type"]), ("var", [])):
            f[frame].attrs.update({"_index": "_index", "encoding-type": "dataframe", "encoding-version": "0.2.0"})
            f[frame].attrs.create("column-order", columns, dtype=text)
            for name in ["_index", *columns]:
                f[frame][name].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        f["obsm/spatial"] = xy


def loess(x, y, span=0.3):
    """Fits at the vertices of a k-d tree of x, cubics between them; plain loops."""
    n = len(x)
    near, leaf = int(n * span + 1e-5), int(n * span * 0.2)
    s = np.sort(x)
    margin = 0.005 * (s[-1] - s[0])
    at, cells = [s[0] - margin, s[-1] + margin], [(0, n - 1, s[0] - margin, s[-1] + margin)]
    while cells:
        low, high, left, right = cells.pop()
        if high - low + 1 <= leaf:
            continue
        middle = (low + high) // 2
        for k in (j for i in range(n) for j in ((i, -i) if i else (0,))):  # the nearest gap, the upper one first
            if middle + k >= high or middle + k < low:
                break
            if s[middle + k] < s[middle + k + 1]:
                middle += k
                break
        if s[middle] in (left, right):
            continue
        at.append(s[middle])
        cells += [(low, middle, left, s[middle]), (middle + 1, high, s[middle], right)]
    at = np.array(sorted(at))
    value, slope = [], []
    for q in at:
        d = np.abs(x - q)
        w = np.clip(1 - (d / np.sort(d)[near - 1]) ** 3, 0, None) ** 1.5
        a = np.stack([np.ones(n), x - q, (x - q) ** 2], 1) * w[:, None]
        scale = np.sqrt((a * a).sum(0))
        beta = np.linalg.lstsq(a / scale, w * y, rcond=2.2e-14)[0] / scale
        value.append(beta[0])
        slope.append(beta[1])
    value, slope = np.array(value), np.array(slope)
    k = np.clip(np.searchsorted(at, x) - 1, 0, len(at) - 2)
    wide = at[k + 1] - at[k]
    h = (x - at[k]) / wide
    return ((1 - h) ** 2 * (1 + 2 * h) * value[k] + h * h * (3 - 2 * h) * value[k + 1] +
            (h * (1 - h) ** 2 * slope[k] - h * h * (1 - h) * slope[k + 1]) * wide)


def seurat_v3(y):
    n = len(y)
    mean, var = y.mean(0), y.var(0, ddof=1)
    ok = var > 0
    scale = np.ones(len(mean))
    scale[ok] = np.sqrt(10 ** loess(np.log10(mean[ok]), np.log10(var[ok])))
    cut = np.minimum(y, scale * np.sqrt(n) + mean)
    return ((cut - mean) ** 2).sum(0) / ((n - 1) * scale ** 2)


def seurat(y):
    total = y.sum(1, keepdims=True)
    y = np.divide(y, total, out=np.zeros_like(y), where=total > 0) * 1e4
    mean, var = y.mean(0), y.var(0, ddof=1)
    mean[mean == 0] = 1e-12
    with np.errstate(divide="ignore"):
        ratio = np.log(var / mean)
    ratio[np.isinf(ratio)] = np.nan
    x = np.log1p(mean)
    edges = np.linspace(x.min(), x.max(), 21)
    k = np.clip(np.searchsorted(edges, x) - 1, 0, 19)
    out = np.full(len(x), np.nan)
    for b in range(20):
        v = ratio[(k == b) & ~np.isnan(ratio)]
        if len(v) == 1:
            out[k == b] = ratio[k == b] / v[0]
        elif len(v) > 1:
            out[k == b] = (ratio[k == b] - v.mean()) / v.std(ddof=1)
    return out


def deviance(y):
    mu = y.sum(1, keepdims=True) * y.sum(0) / y.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * (np.where(y > 0, y * np.log(y / mu), 0) - (y - mu)).sum(0)


FLAVORS = {"seurat_v3": ("variance_norm", seurat_v3), "seurat": ("dispersion_norm", seurat), "deviance": ("deviance", deviance)}


class Variable(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-variable-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.y, self.names, self.xy, self.group = make()
        write_h5ad(self.folder / "a.h5ad", self.y, self.names, self.xy, self.group, "csr")

    def preprocess(self, *keys, code=0, flags=(), path="a.h5ad", dataset="anndata"):
        out, config = self.folder / "out", self.folder / "c.yaml"
        if "--keep" not in flags and "--force" not in flags:
            shutil.rmtree(out, ignore_errors=True)
        config.write_text("\n".join(["instrument: spatial", "name: v", f"dataset: {dataset}", f"output_dir: {out}", "preprocessing:",
                                     f"  path: {self.folder / path}", *("  " + k for k in keys)]) + "\n")
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(config), *flags], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr, out / "preprocessed"

    def result(self, out):
        meta, z = json.loads((out / "metadata.json").read_text()), np.load(out / "Y.npz")
        y = np.zeros(z["shape"], "f4")
        for i in range(len(y)):
            s = slice(z["indptr"][i], z["indptr"][i + 1])
            y[i, z["indices"][s]] = z["data"][s]
        return y, meta

    def table(self, out):
        with open(out / "gene_selection.csv") as f:
            return list(csv.DictReader(f))

    # ---- rules ----

    def test_rules_that_are_given_act_for_every_dataset(self):
        mt = np.array([n.startswith("mt-") for n in self.names])
        total, genes = self.y.sum(1, dtype="f8"), (self.y > 0).sum(1)
        with np.errstate(invalid="ignore"):
            share = 100 * self.y[:, mt].sum(1, dtype="f8") / total
        cut = float(np.median(share[total > 0]))
        cells = {"min_counts: 150": total >= 150, "min_genes: 70": genes >= 70, f"max_mt_percent: {cut}": share < cut}
        for some in (list(cells), *([k] for k in cells), ["min_counts: 150", "min_cells: 100", "filter_mt: true"], ["min_cells: 40"],
                     ["filter_mt: true"], ["filter_mt: false"], ["min_cells: 0", "min_counts: 0"]):
            with self.subTest(keys=some):
                keep = np.logical_and.reduce([np.ones(N, bool), *(cells[k] for k in some if k in cells)])
                least = next((int(k.split()[1]) for k in some if k.startswith("min_cells")), 0)
                stay = (self.y[keep] > 0).sum(0) >= least
                if "filter_mt: true" in some:
                    stay &= ~mt
                said, out = self.preprocess(*some)
                y, meta = self.result(out)
                np.testing.assert_array_equal(y, self.y[keep][:, stay])
                self.assertEqual(meta["gene_names"], [n for n, s in zip(self.names, stay) if s])
                np.testing.assert_array_equal(np.load(out / "rows.npy"), np.flatnonzero(keep))
                by, removed = meta["fathom"]["removed_genes_by"], meta["fathom"]["removed_cells"]
                self.assertEqual(sum(by.values()), meta["fathom"]["removed_genes"])
                self.assertEqual(by["min_cells"], ((self.y[keep] > 0).sum(0) < least).sum())
                self.assertEqual(sum(removed.values()), (~keep).sum())
                self.assertEqual("min_genes" in removed, any("min_genes" in k for k in some))
                if some == list(cells):  # a cell counts for the first rule that drops it
                    self.assertEqual(removed["mitochondrial"], (~(share < cut)).sum())
                    self.assertEqual(removed["min_counts"], ((share < cut) & (total < 150)).sum())
                    self.assertIn(f"with {cut:g} % mitochondrial counts or more", said)

    def test_without_keys_nothing_changes(self):
        _, out = self.preprocess()
        y, meta = self.result(out)
        np.testing.assert_array_equal(y, self.y)
        self.assertNotIn("removed_genes_by", meta["fathom"])
        self.assertNotIn("min_genes", meta["fathom"]["removed_cells"])
        self.assertFalse((out / "gene_selection.csv").exists())
        for key in ("min_genes", "max_mt_percent", "genes", "highly_variable", "highly_variable_flavor", "min_counts", "min_cells", "filter_mt",
                    "in_tissue", "feature_types"):
            self.assertNotIn(key, meta["fathom"]["preprocessing"])

    def again(self, *keys):
        """The same folder with other keys: what differs, or that it is the same."""
        config = self.folder / "c.yaml"
        head = config.read_text().split(".h5ad\n")[0] + ".h5ad\n"
        config.write_text(head + "".join(f"  {k}\n" for k in keys))
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(config)], capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_metadata_lists_what_acted(self):
        for keys, has, lacks in ((("min_counts: 150",), {"min_counts": 150, "min_group_size": 10, "spatial_scale": 50}, ("min_cells", "filter_mt")),
                                 (("min_group_fraction: 0.1",), {"min_group_fraction": 0.1}, ("min_group_size", "min_counts")),
                                 (("rescale: false",), {"rescale": False}, ("spatial_scale",))):
            _, out = self.preprocess(*keys)
            listed = self.result(out)[1]["fathom"]["preprocessing"]
            self.assertEqual({k: listed[k] for k in has}, has)
            self.assertFalse(set(lacks) & set(listed))
        _, out = self.preprocess(dataset="tenxvisium")
        listed = self.result(out)[1]["fathom"]["preprocessing"]
        self.assertEqual([listed[k] for k in ("min_counts", "min_cells", "filter_mt")], [100, 10, True])

    def test_a_default_that_is_given_makes_another_folder(self):
        same = "made with the same settings"
        self.preprocess("min_genes: 3", "min_counts: 100")
        self.assertIn(same, self.again("min_genes: 3", "min_counts: 100"))
        self.assertIn("preprocessing.min_counts: 100 in the folder, not given now", self.again("min_genes: 3"))
        _, out = self.preprocess("min_genes: 3")
        self.assertIn("preprocessing.min_counts: not given in the folder, 100 now", self.again("min_genes: 3", "min_counts: 100"))
        # earlier versions wrote defaults that did not act
        meta = json.loads((out / "metadata.json").read_text())
        meta["fathom"]["preprocessing"].update(min_counts=100, min_cells=10, filter_mt=True, in_tissue=True, feature_types=["Gene Expression"])
        (out / "metadata.json").write_text(json.dumps(meta))
        self.assertIn(same, self.again("min_genes: 3"))
        self.assertIn("preprocessing.min_counts: not given in the folder, 100 now", self.again("min_genes: 3", "min_counts: 100"))

    def test_keys_without_effect_are_told(self):
        flavor, share = "highly_variable_flavor has no effect without", "max_mt_percent has no effect but on cells without counts"
        self.assertIn(flavor, self.preprocess("highly_variable_flavor: seurat")[0])
        self.assertNotIn(flavor, self.preprocess("highly_variable_flavor: seurat", "highly_variable: 9")[0])
        self.assertNotIn(share, self.preprocess("max_mt_percent: 50")[0])
        y, names, xy, group = make()
        write_h5ad(self.folder / "plain.h5ad", y, [n.replace("mt-", "MTX") for n in names], xy, group, "csr")
        self.assertIn(share, self.preprocess("max_mt_percent: 50", path="plain.h5ad")[0])
        self.assertNotIn(share, self.preprocess("min_counts: 3", path="plain.h5ad")[0])

    def test_presets_keep_their_rules(self):
        mt = np.array([n.startswith("mt-") for n in self.names])
        total = self.y.sum(1, dtype="f8")
        with np.errstate(invalid="ignore"):
            share = 100 * self.y[:, mt].sum(1, dtype="f8") / total
        for keys, most in (((), 20), (("max_mt_percent: 3",), 3)):
            keep = (share < most) & (total >= 100)
            stay = ((self.y[keep] > 0).sum(0) >= 10) & ~mt
            _, out = self.preprocess(*keys, dataset="tenxvisium")
            y, meta = self.result(out)
            np.testing.assert_array_equal(y, self.y[keep][:, stay])
            self.assertEqual("removed_genes_by" in meta["fathom"], bool(keys))

    def test_a_folder_that_ignored_the_keys_is_not_used(self):
        _, out = self.preprocess("min_counts: 150")
        meta = json.loads((out / "metadata.json").read_text())
        del meta["fathom"]["removed_genes_by"]  # as an earlier version wrote it
        (out / "metadata.json").write_text(json.dumps(meta))
        config = self.folder / "c.yaml"
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(config)], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("quality control: only that of the dataset in the folder, that of the keys now", done.stderr)

    # ---- lists of genes ----

    def test_genes_by_name(self):
        (self.folder / "list.txt").write_text("# a panel\nGene40\n\nGene7,with more,columns\nGene30\tand tabs, with commas\n")
        wanted = {"genes: [Gene9, Gene300, Gene1]": [1, 9, 300], f"genes_file: {self.folder}/list.txt": [7, 30, 40]}
        keys = list(wanted)
        for some in ([keys[0]], [keys[1]], keys):
            _, out = self.preprocess(*some)
            y, meta = self.result(out)
            at = sorted(g for k in some for g in wanted[k])
            np.testing.assert_array_equal(y, self.y[:, at])
            self.assertEqual(meta["fathom"]["removed_genes_by"]["not_listed"], D - len(at))
        _, out = self.preprocess("genes: [Gene5, Gene9]", "min_cells: 1")  # no cell has Gene5
        self.assertEqual(self.result(out)[1]["gene_names"], ["Gene9"])

    def test_unknown_genes_are_named_with_the_nearest(self):
        said, _ = self.preprocess("genes: [Gene1, Gene3O, MT-ND10]", code=3)
        self.assertIn("2 of the 3 names in preprocessing.genes are no genes of it: 'Gene3O', 'MT-ND10'", said)
        self.assertIn("perhaps 'Gene3' in place of 'Gene3O'", said)
        (self.folder / "list.txt").write_text("Actb\nGapdh\nMalat1\nXist\n")
        said, _ = self.preprocess(f"genes_file: {self.folder}/list.txt", code=3)
        self.assertIn("4 of the 4 names in", said)
        self.assertIn("'Actb', 'Gapdh', 'Malat1' ...", said)
        self.assertIn("its first gene is 'Gene0'", said)
        (self.folder / "list.txt").write_text("# nothing\n")
        said, _ = self.preprocess(f"genes_file: {self.folder}/list.txt", code=3)
        self.assertIn("expected a gene on each line, found none", said)

    def test_another_list_makes_another_folder(self):
        (self.folder / "list.txt").write_text("Gene40\n")
        self.preprocess(f"genes_file: {self.folder}/list.txt")
        (self.folder / "list.txt").write_text("Gene41\n")
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(self.folder / "c.yaml")], capture_output=True, text=True)
        self.assertIn("source: other bytes", done.stderr)

    def test_a_long_list_that_differs_at_its_end_makes_another_folder(self):
        names = [f"Gene{g}" for g in range(100, 300)]
        self.preprocess(f"genes: [{', '.join(names)}]")
        config = self.folder / "c.yaml"
        for text, same in ((config.read_text(), True), (config.read_text().replace("Gene299", "Gene300"), False)):
            config.write_text(text)
            done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", str(config)], capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, same, done.stderr)
            self.assertEqual("preprocessing.genes: " in done.stderr, not same)

    # ---- variable genes ----

    def check(self, out, flavor, keep, stay, most):
        column, score = FLAVORS[flavor]
        values, at = score(self.y[keep][:, stay].astype("f8")), np.flatnonzero(stay)
        rows = self.table(out)
        self.assertEqual([r["gene"] for r in rows], self.names)
        ours = np.array([float(rows[g][column]) for g in at])
        np.testing.assert_allclose(ours, values, rtol=1e-9, atol=1e-9)
        order = at[np.argsort(np.where(np.isnan(ours), np.inf, -ours), kind="stable")]
        self.assertEqual([int(rows[g]["rank"]) for g in order], list(range(1, len(at) + 1)))
        chosen = sorted(order[:most])
        y, meta = self.result(out)
        self.assertEqual(meta["gene_names"], [self.names[g] for g in chosen])
        np.testing.assert_array_equal(y, self.y[keep][:, chosen])
        for g, r in enumerate(rows):
            self.assertEqual(r["removed_by"] == "", g in chosen)
            self.assertEqual(r["rank"] == "", not stay[g])
        if flavor != "seurat":
            np.testing.assert_allclose([float(rows[g]["mean"]) for g in at], self.y[keep][:, stay].mean(0, dtype="f8"), rtol=1e-12)
            np.testing.assert_allclose([float(rows[g]["variance"]) for g in at], self.y[keep][:, stay].var(0, dtype="f8", ddof=1),
                                       rtol=1e-9, atol=1e-15)
        return meta

    def test_every_flavor(self):
        everything = np.ones(N, bool), np.ones(D, bool)
        for flavor in FLAVORS:
            with self.subTest(flavor=flavor):
                said, out = self.preprocess("highly_variable: 50", f"highly_variable_flavor: {flavor}")
                self.assertIn(f"kept the 50 most variable of {D} genes by {flavor}", said)
                meta = self.check(out, flavor, *everything, 50)
                self.assertEqual(meta["fathom"]["removed_genes_by"]["not_variable"], D - 50)
        _, out = self.preprocess("highly_variable: 50")
        self.check(out, "seurat_v3", *everything, 50)

    def test_after_all_other_rules(self):
        """Cells of small groups and genes that were dropped have no part in it."""
        self.group[:] = 0
        self.group[:60] = np.arange(60) % 20
        self.group[7] = 0  # it stays, so that seurat_v3 has counts to cut
        write_h5ad(self.folder / "a.h5ad", self.y, self.names, self.xy, self.group, "csr")
        keep = (self.y.sum(1) >= 150) & (self.group == 0)
        stay = (self.y[self.y.sum(1) >= 150] > 0).sum(0) >= 20
        stay &= [not n.startswith("mt-") for n in self.names]
        for flavor in FLAVORS:
            _, out = self.preprocess("highly_variable: 30", f"highly_variable_flavor: {flavor}", "min_counts: 150", "min_cells: 20",
                                     "filter_mt: true", "group_column: type", "min_group_size: 40")
            self.check(out, flavor, keep, stay, 30)

    def test_more_than_there_are(self):
        said, out = self.preprocess("highly_variable: 5000")
        self.assertIn(f"kept the {D} most variable of {D} genes", said)
        np.testing.assert_array_equal(self.result(out)[0], self.y)

    def test_same_bytes_for_layouts_budgets_and_threads(self):
        for form in ("csr", "csc", "dense"):
            write_h5ad(self.folder / f"{form}.h5ad", self.y, self.names, self.xy, self.group, form)
        for flavor in FLAVORS:
            files = []
            for form, flags in (("csr", ()), ("csc", ("--memory", "64M", "--threads", "1")), ("dense", ("--memory", "96M")),
                                ("csc", ("--threads", "3"))):
                _, out = self.preprocess("highly_variable: 40", f"highly_variable_flavor: {flavor}", path=f"{form}.h5ad", flags=flags)
                files.append([(out / f).read_bytes() for f in ("X.npy", "Y.npz", "gene_selection.csv")])
            for other in files[1:]:
                self.assertEqual(files[0], other)

    def test_ranges_are_checked(self):
        for key in ("highly_variable: 0", "highly_variable_flavor: seurat_v4", "max_mt_percent: 101", "min_genes: -1"):
            said, _ = self.preprocess(key, code=2)
            self.assertIn("preprocessing." + key.split(":")[0], said)


if __name__ == "__main__":
    unittest.main()
