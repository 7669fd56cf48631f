"""The tissue image of a source: what preprocess copies of it, where figures draw it, what pages hold, and what cannot be used.

Coloured blocks stand in an image where single spots lie; figures with the image alone and with the spots alone have to agree.
seconds: 45"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, str(pathlib.Path("tests/golden/tenx").resolve()))
import make as tenx  # noqa: E402
from test_pictures import tool as pictures  # noqa: E402
from test_spatial_page import Scripts  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
SCALE, SPOT = 0.125, 120.0
MARKED = {3: (0, 160, 255), 150: (255, 0, 200), 290: (0, 140, 0)}  # spots with a colour, and an image block, of their own
SHAPE = (500, 420)  # rows and columns of the image
CONFIG = """\
instrument: spatial
name: image
seed: 3
dataset: {dataset}
output_dir: {dir}/out
preprocessing: {{path: {path}, {more}}}
model: {{spatial: false, n_components: 2}}
training: {{max_iter: 5, device: cpu}}
figures: {{{figures}}}
"""


def places():
    """Spots on a grid that has no symmetry, in pixels of the full image."""
    x, y = np.meshgrid(np.arange(18) * 170.0 + 200, np.arange(17) * 190.0 + 300)
    at = np.stack([x.ravel(), y.ravel()], 1)
    return at[(at[:, 0] + at[:, 1] < 5900)]


def image():
    """White with a block as large as a spot around each marked one."""
    out = np.full(SHAPE + (3,), 255, np.uint8)
    for cell, colour in MARKED.items():
        x, y = places()[cell] * SCALE
        half = SPOT * SCALE / 2
        out[round(y - half):round(y + half), round(x - half):round(x + half)] = colour
    return out


def shrink(pixels, side=2048):
    """Means over areas, by matrices of shares."""
    h, w = pixels.shape[:2]
    if max(h, w) <= side:
        return pixels.astype(float)
    new = [-(-n * side // max(h, w)) for n in (h, w)]
    out = np.tensordot(pictures.shares(h, new[0]), pixels.astype(float), (1, 0))
    return np.tensordot(pictures.shares(w, new[1]), out, (1, 1)).swapaxes(0, 1)


class Image(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-image-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.config = self.dir / "c.yaml"
        self.h5ad = self.dir / "t.h5ad"

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1"))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def configure(self, path=None, more="group_column: kind, min_group_size: 1", figures="", dataset="anndata"):
        self.config.write_text(CONFIG.format(dir=self.dir, path=path or self.h5ad, more=more, figures=figures, dataset=dataset))

    def preprocess(self, *flags, code=0):
        return self.fathom("spatial", "preprocess", "-c", self.config, *flags, code=code)

    def metadata(self):
        return json.loads((self.dir / "out/preprocessed/metadata.json").read_text())

    def make(self, libraries=None, at=None):
        """An AnnData whose marked spots are groups of their own; libraries: {name: {size: (pixels, scale)}}."""
        at = places() if at is None else at
        n, rng = len(at), np.random.default_rng(1)
        with h5py.File(self.h5ad, "w") as f:
            f["X"] = rng.poisson(2, (n, 8)).astype("f4")
            for frame, key, names in (("obs", "cell", [f"c{i}" for i in range(n)]), ("var", "gene", [f"g{i}" for i in range(8)])):
                g = f.create_group(frame)
                g.attrs["_index"] = key
                g[key] = np.array(names, "S")
            kinds = np.full(n, 0, "i1")
            for k, cell in enumerate(MARKED):
                kinds[cell] = k + 1
            g = f.create_group("obs/kind")
            g.attrs["encoding-type"] = "categorical"
            g["codes"], g["categories"] = kinds, np.array(["all", "a", "b", "c"], "S")
            f["obsm/spatial"] = at
            f["uns/kind_colors"] = np.array(["#ffffff"] + ["#%02x%02x%02x" % c for c in MARKED.values()], "S")
            for name, sizes in ({"V1": {"hires": (image(), SCALE)}} if libraries is None else libraries).items():
                for size, (pixels, scale) in sizes.items():
                    f[f"uns/spatial/{name}/images/{size}"] = pixels
                    if scale:
                        f[f"uns/spatial/{name}/scalefactors/tissue_{size}_scalef"] = scale
                f[f"uns/spatial/{name}/scalefactors/spot_diameter_fullres"] = SPOT

    # ---- what preprocess copies ----

    def test_every_kind_of_pixels_is_copied(self):
        want = image()
        alpha = np.concatenate([want, np.full(SHAPE + (1,), 255, np.uint8)], 2)
        alpha[:40, :50, 3] = 0
        on_white = want.copy()
        on_white[:40, :50] = 255
        grey = want.astype(float).mean(2)
        beyond, cut = (want / 255).astype("f4"), want.copy()
        beyond[:5], beyond[5:9] = -0.3, np.nan
        cut[:5], cut[5:9] = 0, 255
        for name, pixels, expected in (("u8", want, want), ("f32", (want / 255).astype("f4"), want), ("f64", want / 255, want),
                                       ("f32 to 255", want.astype("f4"), want), ("u16", want.astype("u2") * 257, want),
                                       ("i64", want.astype("i8"), want), ("dark i32", (want > 100).astype("i4"), want > 100),
                                       ("beyond", beyond, cut), ("alpha", alpha, on_white),
                                       ("f32 alpha", (alpha / 255).astype("f4"), on_white),
                                       ("grey", grey / 255, np.repeat(np.round(grey).astype(np.uint8)[..., None], 3, 2))):
            with self.subTest(name):
                self.make({"V1": {"hires": (pixels, SCALE)}})
                self.configure()
                said = self.preprocess("--force")
                self.assertIn("tissue image uns/spatial/V1/images/hires: 420 x 500 pixels", said)
                got = pictures.read_png(self.dir / "out/preprocessed/image.png")
                np.testing.assert_array_equal(got, expected)
                place = self.metadata()["image"]
                self.assertEqual(place["low"], [0, 0])
                np.testing.assert_allclose(place["high"], [420 / SCALE, 500 / SCALE])
                self.assertEqual(place["spot_diameter"], SPOT)

    def test_a_large_image_is_reduced_by_areas_in_any_budget(self):
        rng = np.random.default_rng(5)
        pixels = rng.integers(0, 256, (2500, 3001, 3), np.uint8)
        self.make({"V1": {"hires": (pixels, 0.9)}})
        self.configure()
        files = []
        for flags in ((), ("--memory", "96M", "--threads", "1"), ("--memory", "1G", "--threads", "3")):
            self.preprocess("--force", *flags)
            files.append((self.dir / "out/preprocessed/image.png").read_bytes())
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])
        got, want = pictures.read_png(self.dir / "out/preprocessed/image.png"), shrink(pixels)
        self.assertEqual(got.shape, (1707, 2048, 3))
        self.assertLess(np.abs(got - want).max(), 0.5001)
        np.testing.assert_allclose(self.metadata()["image"]["high"], [3001 / 0.9, 2500 / 0.9])

    def test_a_source_without_an_image_has_none(self):
        self.make({})
        self.configure()
        said = self.preprocess()
        self.assertNotIn("image", said)
        self.assertNotIn("image", self.metadata())
        self.assertEqual(sorted(p.name for p in (self.dir / "out/preprocessed").iterdir()),
                         ["C.npy", "X.npy", "Y.npz", "metadata.json", "rows.npy"])

    def test_libraries_are_named(self):
        two = {"A": {"hires": (image(), SCALE)}, "B": {"lowres": (image()[::2, ::2], SCALE / 2)}, "none": {}}
        self.make(two)
        self.configure()
        said = self.fathom("spatial", "info", self.h5ad)
        self.assertIn("  A hires, 420 x 500 pixels\n  B lowres, 210 x 250 pixels\n  preprocessing.image_library", said)
        self.assertEqual([i["library"] for i in json.loads(self.fathom("spatial", "info", self.h5ad, "--json"))["images"]], ["A", "B"])
        said = self.preprocess()
        self.assertIn("note: there is no tissue image", said)
        self.assertIn("2 libraries of uns['spatial'] have images", said)
        self.assertIn("preprocessing.image_library: one of A, B", said)
        self.assertNotIn("image", self.metadata())
        self.configure(figures="image: true")
        self.assertIn("one of A, B", self.preprocess("--force", code=3))
        for key in ("more", "figures"):
            more = "group_column: kind, min_group_size: 1"
            self.configure(**{"more": more + ", image_library: B"} if key == "more" else {"figures": "image_library: B"})
            self.preprocess("--force")
            self.assertEqual(self.metadata()["image"]["from"], "uns/spatial/B/images/lowres")
            np.testing.assert_allclose(self.metadata()["image"]["high"], [420 / SCALE, 500 / SCALE])
        self.configure(more="group_column: kind, min_group_size: 1, image_library: C")
        said = self.preprocess("--force", code=3)
        self.assertIn("the library 'C' of uns['spatial'] has no image", said)
        self.configure(more="group_column: kind, min_group_size: 1, image_library: A")
        self.assertIn("image_library: \"B\" in the folder, \"A\" now", self.preprocess(code=2))

    def test_images_that_cannot_be_used(self):
        bad = {"no scale": ((image(), 0), "tissue_hires_scalef"), "two channels": ((image()[..., :2], SCALE), "of 2 channels"),
               "an empty one": ((image()[:0], SCALE), "0 x 420 pixels"),
               "too bright": ((image().astype("f4") * 100, SCALE), "found 25500")}
        for name, (pixels, word) in bad.items():
            with self.subTest(name):
                self.make({"V1": {"hires": pixels}})
                self.configure()
                said = self.preprocess("--force")
                self.assertIn("note: there is no tissue image", said)
                self.assertIn(word, said)
                self.assertNotIn("image", self.metadata())
                self.configure(figures="image: true")
                said = self.preprocess("--force", code=3)
                self.assertIn(word, said)
                self.assertNotIn("the message lists", said)
                self.assertIn("figures.image: auto goes on without", said)

    def test_an_image_of_other_positions(self):
        self.make(at=places() * 30)
        self.configure()
        said = self.preprocess()
        self.assertIn("0 of 298 cells lie on it: its scale factor 0.125 makes it 3360 by 4000, from 0, 0 on, and cells are 86700 by 91200, "
                      "from 6000, 9000 on: does it belong to these positions?", said)

    def test_a_scale_that_makes_the_image_too_large(self):
        for times, small in ((1 / 100, True), (1 / 9, True), (1 / 3, False), (1, False)):
            self.make({"V1": {"hires": (image(), SCALE * times)}})
            self.configure()
            said = self.preprocess("--force")
            self.assertEqual("all cells lie in a small part of it: its scale factor %g makes it %g by %g, from 0, 0 on, and cells are 2890 by 3040, from"
                             % (SCALE * times, 3360 / times, 4000 / times) in said, small, said)
            self.assertEqual("note" in said, small)
        self.make({})
        self.configure()
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config, *(["--force"] if stage == "preprocess" else []))
        pictures.write_png(self.dir / "mine.png", image())
        self.configure(figures=f"image_file: {self.dir / 'mine.png'}, image_scale: {SCALE / 100}")
        said = self.fathom("spatial", "figures", "-c", self.config)
        self.assertIn("note: tissue image: all cells lie in a small part of it: its scale factor 0.00125 makes it 336000 by 400000", said)
        self.assertIn("cells are 2890 by 3040, from 200, 300 on", said)

    def test_figures_fit_in_what_they_plan(self):
        self.make({"V1": {"hires": (np.random.default_rng(3).integers(0, 256, (2500, 2100, 3), np.uint8), SCALE * 5)}})
        self.configure(figures="dpi: 60")
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        said = self.fathom("spatial", "figures", "-c", self.config, "--memory", "16M", code=4)
        self.fathom("spatial", "figures", "-c", self.config, "--memory", said.split("would fit: --memory ")[1].split()[0])

    def test_folders_of_arrays(self):
        self.make()
        self.configure()
        self.preprocess()
        first, meta = self.dir / "first", self.metadata()
        shutil.move(self.dir / "out/preprocessed", first)
        self.configure(first, "min_group_size: 1", dataset="arrays")
        self.assertIn("tissue image image.png: 420 x 500", self.preprocess())  # positions were rescaled: most lie on it
        self.assertEqual((self.dir / "out/preprocessed/image.png").read_bytes(), (first / "image.png").read_bytes())
        self.assertEqual({**self.metadata()["image"], "from": 0}, {**meta["image"], "from": 0})
        np.save(first / "image.npy", image()[::2])
        for bad in ({"file": "../image.png"}, {"low": [0]}, {"high": [0, 0]}, {"high": ["a", 1]}):
            (first / "metadata.json").write_text(json.dumps({**meta, "image": {**meta["image"], **bad}}))
            self.assertIn("expected the corners 'low' and 'high'", self.preprocess("--force"))
            self.assertNotIn("image", self.metadata())
        (first / "metadata.json").write_text(json.dumps({**meta, "image": {**meta["image"], "file": "image.npy"}}))
        self.assertIn("tissue image image.npy: 420 x 250", self.preprocess("--force"))

    def test_a_made_up_one(self):
        for folder in ("one", "two"):
            said = self.fathom("spatial", "toy", "-o", self.dir / folder, "--side", 20, "--genes", 6, "--factors", 2, "--image")
        plain = self.fathom("spatial", "toy", "-o", self.dir / "plain", "--side", 20, "--genes", 6, "--factors", 2)
        self.assertEqual(said.split(":")[1], plain.split(":")[1])
        for name in ("image.png", "Y.npz", "metadata.json"):
            self.assertEqual((self.dir / "one" / name).read_bytes(), (self.dir / "two" / name).read_bytes())
        self.assertEqual((self.dir / "one/Y.npz").read_bytes(), (self.dir / "plain/Y.npz").read_bytes())
        self.assertFalse((self.dir / "plain/image.png").exists())
        self.assertNotIn("image", json.loads((self.dir / "plain/metadata.json").read_text()))
        self.configure(self.dir / "one", "min_group_size: 1", dataset="toy")
        self.assertIn("tissue image image.png: 1000 x 1000", self.preprocess())

    # ---- Space Ranger ----

    def test_folders_of_space_ranger(self):
        data = self.dir / "data"
        for kind in ("visium", "visium_hd"):
            for size, shape in (("lowres", (20, 60)), ("hires", (40, 120))):
                if size == "lowres":
                    shutil.rmtree(data, ignore_errors=True)
                    tenx.folder(data, kind)
                pixels = np.random.default_rng(2).integers(0, 256, shape + (3,), np.uint8)
                pictures.write_png(data / f"spatial/tissue_{size}_image.png", pixels)
                path = data / "spatial/scalefactors_json.json"
                scales = json.loads(path.read_text()) if path.exists() else {}
                path.write_text(json.dumps(dict(scales, tissue_lowres_scalef=0.5, tissue_hires_scalef=1.0, spot_diameter_fullres=8.5)))
                self.configure(data, "min_group_size: 1", dataset=kind)
                said = self.preprocess(*(["--force"] if kind == "visium_hd" or size == "hires" else []))
                self.assertIn(f"tissue image tissue_{size}_image.png", said)
                self.assertIn(f"tissue image\n  {data}/spatial/tissue_{size}_image.png", self.fathom("spatial", "info", data))
                np.testing.assert_array_equal(pictures.read_png(self.dir / "out/preprocessed/image.png"), pixels)
                self.assertEqual(self.metadata()["image"]["high"], [120, 40])
                self.assertEqual(self.metadata()["image"]["spot_diameter"], 8.5)
            self.preprocess()  # kept
            pictures.write_png(data / "spatial/tissue_hires_image.png", pixels[::-1])
            self.assertIn("source", self.preprocess(code=2))  # and of other bytes it is made again
        whole = (data / "spatial/tissue_hires_image.png").read_bytes()
        for n in (0, 20, 60, len(whole) - 40):
            (data / "spatial/tissue_hires_image.png").write_bytes(whole[:n])
            said = self.preprocess("--force")
            self.assertIn("note: there is no tissue image", said)
            self.assertIn("tissue_hires_image.png", said)
            self.assertFalse((self.dir / "out/preprocessed/image.png").exists())

    # ---- figures ----

    def draw(self, figures):
        self.configure(figures=figures + ", dpi: 200")
        self.fathom("spatial", "figures", "-c", self.config)
        return pictures.read_png(self.dir / "out/pnmf/figures/points.png").astype(int)

    def blob(self, picture, colour, tint=30):
        """Centre and extent of the pixels nearest to a colour, in the panel alone."""
        near = np.abs(picture - np.array(colour)).max(2) < tint
        near[:, int(0.8 * near.shape[1]):] = False  # the legend
        y, x = np.nonzero(near)
        self.assertGreater(len(x), 20, colour)
        return np.array([x.mean(), y.mean()]), np.array([np.ptp(x) + 1, np.ptp(y) + 1])

    def test_spots_lie_on_their_pixels(self):
        self.make()
        self.configure()
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        spots = self.draw("image: false")
        alone = self.draw("dot_alpha: 0.01")
        both = self.draw("image_alpha: 0.02, dot_alpha: 1")
        centres = []
        for colour in MARKED.values():
            at_spot, _ = self.blob(spots, colour)
            at_block, block = self.blob(alone, colour)
            at_real, real = self.blob(both, colour)
            self.assertLess(np.abs(at_spot - at_block).max(), 1.5, colour)
            self.assertLess(np.abs(at_spot - at_real).max(), 1, colour)
            self.assertLess(np.abs(block - real).max(), 3.5, colour)  # spots have their diameter
            centres.append(at_spot)
        cells = list(MARKED)
        down = places()[cells[2]] - places()[cells[0]]
        self.assertTrue((np.sign(centres[2] - centres[0]) == np.sign(down)).all())  # y grows downwards
        large = self.draw("image_alpha: 0.02, dot_alpha: 1, dot_scale: 1.3")
        self.assertLess(np.abs(self.blob(large, MARKED[150])[1] - 1.3 * self.blob(both, MARKED[150])[1]).max(), 2)
        # half of an image is half of its colour
        tint = self.draw("dot_alpha: 0.01, image_alpha: 0.5")
        x, y = self.blob(alone, MARKED[150])[0].round().astype(int)
        np.testing.assert_allclose(tint[y, x], (np.array(MARKED[150]) + 255) / 2, atol=6)

    def test_a_file_of_your_own(self):
        self.make({})
        self.configure()
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        spots = self.draw("image: auto")
        pixels = np.full((530, 480, 3), 255, np.uint8)
        pixels[30:, 60:] = image()  # its corner is at (-480, -240)
        path = self.dir / "mine.png"
        pictures.write_png(path, pixels)
        alone = self.draw(f"image_file: {path}, image_scale: {SCALE}, image_offset: [-480, -240], dot_alpha: 0.01")
        for colour in MARKED.values():
            self.assertLess(np.abs(self.blob(spots, colour)[0] - self.blob(alone, colour)[0]).max(), 1.5, colour)
        self.configure(figures=f"image_file: {path}, image_scale: 10")
        self.assertIn("image_scale and image_offset say where it lies", self.fathom("spatial", "figures", "-c", self.config))
        self.configure(figures=f"image_file: {self.dir / 'none.png'}")
        self.assertIn("none.png", self.fathom("spatial", "figures", "-c", self.config, code=3))
        said = self.fathom("spatial", "page", "-c", self.config, "-o", self.dir / "no.html", code=3)
        self.assertIn("figures.image: false draws without", said)
        self.configure(figures="image: true")
        self.assertIn("there is no image.png here", self.fathom("spatial", "figures", "-c", self.config, code=3))
        self.configure(figures="image_scale: 2")
        self.assertIn("figures.image_file", self.fathom("spatial", "figures", "-c", self.config, code=2))
        self.configure(figures=f"image_file: {path}, image_offset: [1]")
        self.assertIn("two numbers, not 1", self.fathom("spatial", "figures", "-c", self.config, code=2))
        path.write_bytes(path.read_bytes()[:400])
        self.configure(figures=f"image_file: {path}")
        self.assertIn("mine.png", self.fathom("spatial", "figures", "-c", self.config, code=3))

    def test_figures_are_the_same_in_any_budget_and_format(self):
        self.make()
        self.configure(figures="formats: [png, svg, pdf]")
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        made = []
        for flags in (("--memory", "64M", "--threads", "1"), ("--memory", "1G", "--threads", "2")):
            self.fathom("spatial", "figures", "-c", self.config, "--force", *flags)
            made.append({p.name: p.read_bytes() for p in (self.dir / "out/pnmf/figures").iterdir()})
        self.assertEqual(made[0], made[1])
        self.assertIn(b"<image", made[0]["factors_spatial.svg"])
        self.assertIn(b"/Image", made[0]["factors_spatial.pdf"])

    # ---- pages ----

    def test_pages(self):
        self.make()
        self.configure()
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        page = self.dir / "page.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", page)
        scripts = Scripts(page.read_text())
        about = json.loads(scripts.text["description"])
        jpeg = base64.b64decode(scripts.text["array-image0"], validate=True)
        self.assertEqual(jpeg[:3] + jpeg[-2:], b"\xff\xd8\xff\xff\xd9")
        (place,), codes = about["images"], np.frombuffer(base64.b64decode(scripts.text["array-positions"]), "<u2").reshape(-1, 2)
        per = np.array([place["right"] - place["left"], place["bottom"] - place["top"]]) / (np.array(SHAPE[::-1]) / SCALE)
        np.testing.assert_allclose(per[0], per[1], rtol=1e-6)
        np.testing.assert_allclose(codes, places() * per + [place["left"], place["top"]], atol=0.6)
        np.testing.assert_allclose(about["over_images"]["spot"], SPOT * per[0], rtol=1e-6)
        again = self.dir / "again.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", again, "--memory", "64M", "--threads", "1")
        self.assertEqual(page.read_bytes(), again.read_bytes())
        self.configure(figures="image: false")
        self.fathom("spatial", "page", "-c", self.config, "-o", again)
        scripts = Scripts(again.read_text())
        self.assertNotIn("images", json.loads(scripts.text["description"]))
        self.assertNotIn("array-image0", scripts.text)

    def test_a_page_has_a_limit(self):
        self.make({"V1": {"hires": (np.random.default_rng(3).integers(0, 256, (2000, 1901, 3), np.uint8), SCALE * 4)}})
        self.configure()
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        page = self.dir / "page.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", page)
        scripts = Scripts(page.read_text())
        self.assertLessEqual(len(base64.b64decode(scripts.text["array-image0"])), 3 << 20)
        place, = json.loads(scripts.text["description"])["images"]
        side = np.array([place["right"] - place["left"], place["bottom"] - place["top"]])
        np.testing.assert_allclose(side[0] / side[1], 1901 / 2000, rtol=2e-3)


if __name__ == "__main__":
    unittest.main()
