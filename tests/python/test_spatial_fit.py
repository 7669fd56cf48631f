"""fathom.spatial: models of AnnData objects, with the bytes of the program; mistakes; Ctrl+C; other places.
seconds: 30"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import typing
import unittest
import warnings
from unittest import mock

import numpy as np

from small_anndata import AnnData, Categorical, Sparse, read_h5ad, sparse
from test_pictures import tool as pictures

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import fathom  # noqa: E402

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
SMALL = {"num_inducing": 20, "max_iter": 8, "device": "cpu", "seed": 3}
FILES = ["factors.npy", "scales.npy", "loadings.npy", "elbo_history.npy", "model.safetensors", "metrics.json",
         "moran_i.csv", "top_genes.csv"]


def made_up(cells=60, genes=7, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.5, (cells, genes)).astype(np.float32)
    counts[:, 0] += 1
    return AnnData(sparse(counts), {"kind": np.array(["b", "a"] * (cells // 2))}, {"spatial": rng.uniform(0, 30, (cells, 2))})


class Fit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.dir = pathlib.Path(cls.kept.name)
        # a shell lets its background jobs ignore Ctrl+C
        cls.addClassCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        cls.program("toy", "-o", "toy", "--h5ad", "tissue.h5ad", "--side", "14", "--genes", "12", "--factors", "3")
        cls.file = cls.dir / "tissue.h5ad"

    @classmethod
    def program(cls, *words):
        done = subprocess.run([PROGRAM, "spatial", *words], cwd=cls.dir, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def object(self):
        if h5py is None:
            self.skipTest("there is no h5py")
        return read_h5ad(self.file)

    def by_program(self, name, model, groups=True, **keys):
        """The same by the command line, from the h5ad file."""
        text = {"pnmf": "spatial: false", "svgp": "spatial: true", "lcgp": "spatial: true, local: true"}
        kind = ", groups: true" if model.startswith("mggp_") else ""
        train = ", ".join(f"{k}: {v}" for k, v in keys.items())
        (self.dir / f"{name}.yaml").write_text(
            f"instrument: spatial\nname: t\nseed: 3\ndataset: anndata\noutput_dir: {name}\n"
            f"preprocessing: {{path: tissue.h5ad, coord_key: spatial{', group_column: group' if groups else ''}}}\n"
            f"model: {{{text[model.removeprefix('mggp_')]}{kind}, n_components: 3, init: nmf, loadings_mode: "
            f"multiplicative{'' if model == 'pnmf' else ', lengthscale: 8.0'}"
            f"{', num_inducing: 20' if 'svgp' in model else ', K: 8' if 'lcgp' in model else ''}}}\n"
            f"training: {{max_iter: 8, device: cpu{', ' + train if train else ''}}}\n")
        for stage in ("preprocess", "train", "analyze"):
            self.program(stage, "-c", f"{name}.yaml")
        return self.dir / name / model

    def test_results_have_the_bytes_of_the_program(self):
        for model in ("pnmf", "svgp", "mggp_svgp", "mggp_lcgp"):
            with self.subTest(model=model):
                adata, small = self.object(), dict(SMALL)
                if "svgp" not in model:
                    small.pop("num_inducing")
                if "lcgp" in model:
                    small["K"] = 8
                theirs = self.by_program(f"cli_{model}", model, holdout_fraction=0.1)
                r = fathom.spatial.fit(adata, model, 3, groups="group", holdout_fraction=0.1, **small)
                ours = pathlib.Path(r.model_path).parent
                for name in FILES + ["held_out.npy", "loadings_group_1.npy"]:
                    if name == "top_genes.csv":  # is written with the h5ad file
                        continue
                    self.assertEqual((ours / name).read_bytes(), (theirs / name).read_bytes(), name)
                np.testing.assert_array_equal(adata.obsm["fathom_factors"], np.load(theirs / "factors.npy"))
                np.testing.assert_array_equal(adata.varm["fathom_loadings"], np.load(theirs / "loadings.npy"))
                np.testing.assert_array_equal(adata.obs["fathom_held_out"], np.load(theirs / "held_out.npy"))
                self.assertTrue(adata.obs["fathom_kept"].all())
                self.assertEqual(adata.uns["fathom"]["metrics"]["n_factors"], 3)
                np.testing.assert_array_equal(adata.uns["fathom"]["elbo"], np.load(theirs / "elbo_history.npy"))
                np.testing.assert_array_equal(adata.uns["fathom"]["moran"], r.moran)
                self.assertEqual(adata.uns["fathom"]["settings"]["n_components"], 3)
                self.assertEqual(len(r.elbo), 8)
        folder = r.output_dir
        self.assertTrue(os.path.isdir(folder))
        del r
        self.assertFalse(os.path.exists(folder))  # was temporary

    def test_a_backed_object_is_read_from_its_file(self):
        self.object()
        adata = read_h5ad(self.file, backed="r")
        theirs = self.by_program("cli_backed", "svgp")
        r = fathom.spatial.fit(adata, "svgp", 3, groups="group", **SMALL)
        for name in FILES[:-1]:
            self.assertEqual((pathlib.Path(r.model_path).parent / name).read_bytes(), (theirs / name).read_bytes(), name)
        self.assertIsNone(adata.X)
        self.assertEqual(adata.obsm["fathom_factors"].shape, (196, 3))
        # what was changed in memory is not in the file
        for change in ("obsm", "obs"):
            other = read_h5ad(self.file, backed="r")
            if change == "obsm":
                other.obsm["spatial"] = other.obsm["spatial"] + 5
            else:
                other.obs["group"] = Categorical(np.roll(other.obs["group"].codes, 1), other.obs["group"].categories)
            with self.assertRaisesRegex(fathom.Error, "changed after it was opened"):
                fathom.spatial.fit(other, "svgp", 3, groups="group", **SMALL)
        view = read_h5ad(self.file, backed="r")
        view.is_view = True
        with self.assertRaisesRegex(fathom.Error, "a view"):
            fathom.spatial.fit(view, "svgp", 3, **SMALL)
        # counts in the file that are not whole
        half = self.dir / "half.h5ad"
        half.write_bytes(self.file.read_bytes())
        with h5py.File(half, "r+") as f:
            f["X/data"][3] = 1.5
        with self.assertRaisesRegex(fathom.Error, r"half.h5ad: expected counts, whole numbers from 0, found 1.5"):
            fathom.spatial.fit(read_h5ad(half, backed="r"), "svgp", 3, **SMALL)

    def test_forms_of_counts_give_the_same(self):
        adata = made_up()
        dense = adata.X.toarray()
        first = fathom.spatial.fit(adata, "svgp", 2, **SMALL).factors
        forms = {f"{t}": dense.astype(t) for t in ("u1", "i1", "u2", "i2", "u4", "i8", "u8", "f2", "f8", ">f4", ">i4")}
        forms.update(csc=sparse(dense, "csc"), fortran=np.asfortranarray(dense), strided=np.repeat(dense, 2, 1)[:, ::2])
        wide = sparse(dense.astype(np.int64))
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        shuffled = sparse(dense)  # unordered, with a zero that is stored
        shuffled.indices[:shuffled.indptr[1]] = shuffled.indices[:shuffled.indptr[1]][::-1]
        shuffled.data[:shuffled.indptr[1]] = shuffled.data[:shuffled.indptr[1]][::-1]
        forms.update(wide=wide, shuffled=shuffled)
        for name, x in forms.items():
            with self.subTest(form=name):
                again = made_up()
                again.X = x
                np.testing.assert_array_equal(fathom.spatial.fit(again, "svgp", 2, **SMALL).factors, first)
        layered = made_up()
        layered.X, layered.layers["counts"] = None, sparse(dense)
        layered.shape = dense.shape
        np.testing.assert_array_equal(fathom.spatial.fit(layered, "svgp", 2, layer="counts", **SMALL).factors, first)

    def test_counts_are_not_copied(self):
        rng = np.random.default_rng(1)
        n, d = 20000, 400
        x = Sparse("csr", rng.integers(1, 9, n * 100).astype(np.float32), rng.integers(0, d, n * 100).astype(np.int32),
                   np.arange(n + 1) * 100, (n, d))
        counts = fathom._Counts(x, "adata.X")
        tracemalloc.start()
        counts.check(range(n), range(d))
        size = counts.save(self.dir / "Y.npz")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(most, 16 << 20)
        self.assertGreater(x.data.nbytes + x.indices.nbytes, most)
        self.assertEqual(counts.copied, 0)
        self.assertLess(abs(size - x.data.nbytes - x.indices.nbytes - x.indptr.nbytes), 4096)
        with np.load(self.dir / "Y.npz") as z:
            np.testing.assert_array_equal(z["data"], x.data)
            self.assertEqual((z["format"].item(), z["shape"].tolist()), (b"csr", [n, d]))
        adata = made_up()
        adata.X = sparse(adata.X.toarray(), "csc")
        r = fathom.spatial.fit(adata, "svgp", 2, **SMALL)
        csr = adata.X.tocsr()
        self.assertIn(f"{csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes} bytes copied in memory", r.log[0])

    def test_labels_are_numbered_as_in_files(self):
        for column, codes, names in (
                (np.array(["b", "a", "b"]), [1, 0, 1], ["a", "b"]), (np.array([10, 9, 10]), [1, 0, 1], ["9", "10"]),
                (np.array(["é", None, "z"], dtype=object), [1, -1, 0], ["z", "é"]),
                (np.array([1.5, np.nan, 1.0]), [1, -1, 0], ["1.0", "1.5"]), (np.array([True, False]), [1, 0], ["False", "True"]),
                (Categorical([2, -1, 0], ["x", "never", "a"]), [2, -1, 0], ["x", "never", "a"])):
            found = fathom._labels(column, "adata.obs['g']")
            self.assertEqual((found[0].tolist(), found[1]), (codes, names))

    def test_dropped_cells_are_nan_and_told(self):
        adata = made_up()
        adata.obs["kind"][:5] = "rare"
        with self.assertWarnsRegex(UserWarning, "removed 5 cells of small groups"):
            r = fathom.spatial.fit(adata, "mggp_svgp", 2, groups="kind", min_group_size=6, key_added="m", **SMALL)
        self.assertEqual(r.rows.tolist(), list(range(5, 60)))
        self.assertTrue(np.isnan(adata.obsm["m_factors"][:5]).all())
        np.testing.assert_array_equal(adata.obsm["m_factors"][5:], r.factors)
        self.assertEqual(adata.obs["m_kept"].tolist(), [False] * 5 + [True] * 55)
        self.assertEqual((r.group_names, adata.uns["m"]["model"]), (["a", "b"], "mggp_svgp"))

    def test_dropped_genes_are_nan(self):
        adata = made_up(genes=6)
        adata.var_names = np.array(["a", "b", "a", "a-1", "c", "a"])
        fit = fathom.spatial.fit(adata, n_components=2, **SMALL, genes=["a-2", "c", "a-3"])
        self.assertEqual(fit.gene_names, ["a-2", "c", "a-3"])
        loadings = adata.varm["fathom_loadings"]
        self.assertTrue(np.array_equal(loadings[[2, 4, 5]], fit.loadings))
        self.assertTrue(np.isnan(loadings[[0, 1, 3]]).all())
        fit = fathom.spatial.fit(adata, n_components=2, **SMALL, highly_variable=4)
        self.assertEqual(np.isnan(adata.varm["fathom_loadings"]).all(1).sum(), 2)

    def test_the_tissue_image_goes_with_the_object(self):
        adata = made_up()
        pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
        library = {"images": {"hires": pixels}, "scalefactors": {"tissue_hires_scalef": 1.5, "spot_diameter_fullres": 2.0}}
        adata.uns["spatial"] = {"V1": library, "other": {"metadata": {}}}
        result = fathom.spatial.fit(adata, "pnmf", 2, output_dir=self.dir / "with_image", max_iter=2, device="cpu")
        folder = pathlib.Path(result.output_dir) / "preprocessed"
        np.testing.assert_array_equal(pictures.read_png(folder / "image.png"), pixels)
        place = json.loads((folder / "metadata.json").read_text())["image"]
        self.assertEqual((place["low"], place["spot_diameter"]), ([0, 0], 2))
        np.testing.assert_allclose(place["high"], [50 / 1.5, 40 / 1.5])
        drawn = next(f for f in result.figures(dpi=60) if f.endswith("points.png"))
        colours = len(np.unique(pictures.read_png(drawn).reshape(-1, 3), axis=0))
        drawn = next(f for f in result.figures(dpi=60, image=False) if f.endswith("points.png"))
        self.assertGreater(colours, 3 * len(np.unique(pictures.read_png(drawn).reshape(-1, 3), axis=0)))
        # two libraries: one is named, or none is taken
        adata.uns["spatial"]["V2"] = {"images": {"lowres": pixels[::2] / 255}, "scalefactors": {"tissue_lowres_scalef": 0.75}}
        for wanted, shape in ((None, None), ("V2", (20, 50, 3))):
            more = {} if wanted is None else {"image_library": wanted}
            result = fathom.spatial.fit(adata, "pnmf", 2, output_dir=self.dir / f"image_{wanted}", max_iter=2, device="cpu", **more)
            path = pathlib.Path(result.output_dir) / "preprocessed/image.png"
            self.assertEqual(path.exists() and pictures.read_png(path).shape, shape or False)
        with self.assertRaisesRegex(fathom.Error, "library 'V3', found one of 'V1', 'V2'"):
            fathom.spatial.fit(adata, "pnmf", 2, max_iter=2, device="cpu", image_library="V3")

    def test_mistakes(self):
        def change(**what):
            adata = made_up()
            for name, value in what.items():
                setattr(adata, name, value)
            return adata

        def counts(dtype, value):
            adata = made_up()
            x = adata.X.toarray().astype(dtype)
            x[3, 2] = value
            adata.X = x
            return adata
        ones = np.ones((60, 7))
        at = r"\(cell 3, 'c3', gene 2, 'g2'\), which is "
        for adata, keys, text in (
                (counts("f4", 1.25), {}, r"adata.X: expected counts, whole numbers from 0, found 1.25 " + at + "not a whole"),
                (counts("f8", np.nan), {}, "found nan " + at + "not finite"), (counts("f8", np.inf), {}, "found inf " + at),
                (counts("i4", -2), {}, "found -2 " + at + "a negative"), (counts("f4", -1), {}, at + "a negative"),
                (change(X=ones.astype(complex)), {}, "expected counts as integers or floats, found complex128"),
                (change(X=np.ones(60)), {}, r"found the shape \(60,\)"), (change(X=[[1]]), {}, "found builtins.list"),
                (change(X=np.ones((59, 7))), {}, "expected 60 cells and 7 genes, as the object has, found 59 and 7"),
                (change(obsm={}), {}, r"adata.obsm: expected 'spatial', found nothing"),
                (made_up(), {"spatial_key": "pos"}, r"expected 'pos', found 'spatial'"),
                (made_up(), {"layer": "counts"}, "adata.layers: expected 'counts', found nothing"),
                (change(obsm={"spatial": np.zeros((59, 2))}), {}, r"positions of 60 cells on 2 axes, found float64 \[59, 2\]"),
                (change(obsm={"spatial": np.zeros((60, 3))}), {}, r"found float64 \[60, 3\]"),
                (change(obsm={"spatial": np.full((60, 2), np.nan)}), {}, r"found \[nan, nan\] \(cell 0, 'c0'\)"),
                (made_up(), {"groups": "type"}, "adata.obs: expected 'type', found 'kind'"),
                (change(obs={"kind": np.array(["a"])}), {"groups": "kind"}, "a label for each of 60 cells, found 1"),
                (made_up(), {"model": "mggp_svgp"}, "mggp_svgp needs groups"),
                (made_up(), {"model": "nmf"}, "no model 'nmf'"), (made_up(), {"lenghtscale": 8}, "did you mean 'lengthscale'"),
                (made_up(), {"sample_id": "x"}, "'sample_id' is not a key of fit"),
                (made_up(), {"model_spatial": True}, "'model_spatial' is not a key of fit"),
                (made_up(), {"lengthscale": -1}, "lengthscale"), (made_up(), {"n_components": 0}, "n_components"),
                (made_up(), {"memory": "1M"}, "memory"), (change(X=np.zeros((60, 7))), {}, "is 0")):
            with self.subTest(text=text):
                with tempfile.TemporaryDirectory() as own, mock.patch.object(tempfile, "tempdir", own):
                    with self.assertRaisesRegex(fathom.Error, text):
                        fathom.spatial.fit(adata, **{**SMALL, "num_inducing": 10, **keys})
                    self.assertEqual(os.listdir(own), [])
                self.assertNotIn("fathom_factors", adata.obsm)
        three = change(obsm={"spatial": np.column_stack([np.zeros(60), made_up().obsm["spatial"]])})
        plain = fathom.spatial.fit(made_up(), "svgp", 2, **SMALL)
        np.testing.assert_array_equal(fathom.spatial.fit(three, "svgp", 2, coord_axes=[1, 2], **SMALL).factors, plain.factors)

    def test_sizes_and_dispersions_are_columns(self):
        adata = made_up()
        adata.X = sparse(adata.X.toarray() * np.arange(1, 61)[:, None] % 7 + (np.arange(60) != 5)[:, None])
        r = fathom.spatial.fit(adata, "pnmf", 2, likelihood="nb", size_factors="total", genes=["g1", "g6", "g3", "g0"],
                               max_iter=8, device="cpu", seed=3)
        folder = pathlib.Path(r.model_path).parent
        kept = adata.obs["fathom_kept"]
        np.testing.assert_array_equal(adata.obs["fathom_size_factor"][kept], np.load(folder / "size_factors.npy"))
        np.testing.assert_array_equal(np.isnan(adata.obs["fathom_size_factor"]), ~kept)
        lines = dict(line.split(",") for line in (folder / "dispersion.csv").read_text().splitlines()[1:])
        self.assertEqual(set(lines), {"g1", "g6", "g3", "g0"})
        for name, theta in zip(adata.var_names, adata.var["fathom_dispersion"]):
            self.assertEqual(theta, float(lines[name])) if name in lines else self.assertTrue(np.isnan(theta))
        plain = made_up()
        r = fathom.spatial.fit(plain, "pnmf", 2, max_iter=8, device="cpu", seed=3)
        self.assertIsNone(r.size_factors)
        self.assertIsNone(r.dispersions)
        self.assertNotIn("fathom_size_factor", plain.obs)
        self.assertEqual(plain.var, {})

    def test_every_stage_ends_with_all_of_its_parts_done(self):
        for model in ("pnmf", "svgp"):  # svgp runs a graph in its last part, which reports on its own
            last, small = {}, {k: v for k, v in SMALL.items() if model == "svgp" or k != "num_inducing"}

            def keep(p):
                last[p.stage] = p
            fathom.spatial.fit(made_up(), model, 2, progress=keep, **small)
            self.assertEqual(list(last), ["preprocess", "train", "analyze"])
            for p in last.values():
                self.assertEqual(p.done, p.total, p)
            self.assertEqual((last["analyze"].done, last["analyze"].what), (7, "write"))

    def test_an_interrupted_fit_resumes(self):
        keys = {**SMALL, "max_iter": 400}
        whole = fathom.spatial.fit(made_up(), "svgp", 2, **keys)
        how = {"output_dir": str(self.dir / "stopped")}

        def after(p):
            if p.stage == "train" and p.what == "iteration" and p.done < 400:
                return stop(p)
        for stop, kind in ((lambda p: False, fathom.Error), (lambda p: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt),
                           (lambda p: 1 / 0, ZeroDivisionError)):
            with self.subTest(kind=kind), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                adata = made_up()
                try:
                    fathom.spatial.fit(adata, "svgp", 2, progress=after, **keys, **how)
                except kind:
                    stopped = True
                else:
                    stopped = False  # it was too fast to be asked
                self.assertFalse(stopped and "fathom_factors" in adata.obsm)
            if stopped and kind is not ZeroDivisionError:
                self.assertIn(f"output_dir={how['output_dir']!r} resumes", str(told[-1].message))
        r = fathom.spatial.fit(made_up(), "svgp", 2, **keys, **how)
        self.assertEqual(pathlib.Path(r.model_path).read_bytes(), pathlib.Path(whole.model_path).read_bytes())
        np.testing.assert_array_equal(r.factors, whole.factors)

    def test_the_state_of_a_temporary_folder_is_kept(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                fathom.spatial.fit(made_up(), "svgp", 2, **{**SMALL, "max_iter": 10**6, "tol": 0})
        folder = str(told[-1].message).split("'")[1]
        self.assertTrue(os.path.exists(os.path.join(folder, "svgp", "model.safetensors")))
        import shutil
        shutil.rmtree(folder)

    def test_other_places(self):
        adata = made_up()
        for model, groups in (("svgp", None), ("mggp_svgp", "kind"), ("lcgp", None)):
            with self.subTest(model=model):
                keys = {**SMALL, "K": 8}
                keys.pop("num_inducing" if model == "lcgp" else "K")
                r = fathom.spatial.fit(adata, model, 2, groups=groups, **keys)
                labels = adata.obs["kind"] if groups else None
                factors, scales = r.predict(adata.obsm["spatial"], labels, scales=True)
                np.testing.assert_allclose(factors, r.factors, rtol=2e-3 if model == "lcgp" else 2e-5)
                self.assertEqual(scales.shape, (60, 2))
                self.assertEqual(r.predict([[3.0, 4.0]], "a" if groups else None).shape, (1, 2))
                self.assertEqual(r.predict(np.zeros((0, 2)), [] if groups else None).shape, (0, 2))
        r = fathom.spatial.fit(adata, "mggp_svgp", 2, groups="kind", **SMALL)
        for xy, groups, text in (([1, 2], "a", "finite positions"), ([[1, np.nan]], "a", "finite"), ([[1, 2]], None, "found 0"),
                                 ([[1, 2]], "c", "'c'")):
            with self.assertRaisesRegex(fathom.Error, text):
                r.predict(xy, groups)
        p = fathom.spatial.fit(adata, "pnmf", 2, max_iter=4, device="cpu")
        with self.assertRaisesRegex(fathom.Error, "pnmf does not use positions"):
            p.predict([[1, 2]])

    def test_results_are_saved_and_read(self):
        adata = made_up()
        r = fathom.spatial.fit(adata, "svgp", 2, model_name_override="mine", **SMALL)
        folder = r.save(self.dir / "saved")
        factors, places = r.factors, r.predict([[5.0, 5.0]])
        del r
        for path in (folder, os.path.join(folder, "mine")):
            again = fathom.spatial.read(path)
            self.assertEqual(again.save(folder), folder)
            np.testing.assert_array_equal(again.factors, factors)
            np.testing.assert_array_equal(again.predict([[5.0, 5.0]]), places)
        self.assertFalse(os.path.exists(os.path.join(folder, "source")))
        drawn = again.figures(dpi=40)
        self.assertIn("factors_spatial.png", [os.path.basename(p) for p in drawn])
        with self.assertRaisesRegex(fathom.Error, "did you mean 'dpi'"):
            again.figures(dip=40)
        with self.assertRaisesRegex(fathom.Error, "found no model.safetensors"):
            fathom.spatial.read(self.dir / "toy")
        # the program goes on with the same folder
        done = subprocess.run([PROGRAM, "spatial", "analyze", "-c", f"{folder}/mine.yaml"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(fathom.spatial.read(folder).factors, factors)

    def test_what_goes_into_uns_can_be_written(self):
        adata = made_up()
        fathom.spatial.fit(adata, "svgp", 2, **SMALL)

        def look(value, at):
            if isinstance(value, dict):
                for k, v in value.items():
                    self.assertNotIn("/", k)
                    look(v, f"{at}.{k}")
            else:
                self.assertIsInstance(value, (str, bool, int, float, np.ndarray), at)
        look(adata.uns["fathom"], "uns")
        json.dumps(adata.uns["fathom"]["settings"])

    def test_help(self):
        for word in ("spatial_key", "groups", "progress", "output_dir", "obsm", "Ctrl+C"):
            self.assertIn(word, fathom.spatial.fit.__doc__)
        self.assertEqual(typing.get_type_hints(fathom.spatial.fit)["n_components"], int)


if __name__ == "__main__":
    unittest.main()
