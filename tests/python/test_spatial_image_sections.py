"""Tissue images of several sections: each lies under its own section in figures and on pages, and sections without one stay plain.

A section has one spot of a colour of its own, and its image a block of that colour under it.
seconds: 60"""
import base64
import json
import os
import pathlib
import shutil
import sys
import unittest

import h5py
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_spatial_image as one  # noqa: E402
from test_spatial_image import MARKED, SCALE, SPOT, pictures, places, tenx  # noqa: E402
from test_spatial_page import Scripts  # noqa: E402

COLOURS = list(MARKED.values())
CELLS = [40, 150, 260]  # the marked spot of each section
SHIFT = [np.array([0.0, 0.0]), np.array([900.0, -200.0]), np.array([-4000.0, 7000.0])]  # sections have places of their own
CONFIG = one.CONFIG.replace("path: {path}", "{path}")


def at(k):
    """Positions of section k; the third is half as wide."""
    return places() * ([0.5, 1] if k == 2 else [1, 1]) + SHIFT[k]


def picture(k, scale=SCALE, shape=(560, 520)):
    """White, and the corner of the tissue is at pixel 0: positions of the first two sections start near 0."""
    out = np.full(shape + (3,), 255, np.uint8)
    x, y = at(k)[CELLS[k]] * scale
    half = SPOT * scale / 2
    out[round(y - half):round(y + half), round(x - half):round(x + half)] = COLOURS[k]
    return out


class Sections(unittest.TestCase):
    setUp, fathom, preprocess, metadata = (getattr(one.Image, name) for name in ("setUp", "fathom", "preprocess", "metadata"))

    def configure(self, path, figures="", dataset="anndata"):
        self.config.write_text(CONFIG.format(dir=self.dir, path=path, more="group_column: kind, min_group_size: 1", figures=figures, dataset=dataset))

    def write(self, path, sections, libraries):
        """An AnnData of these sections; libraries: {name: (pixels, scale)}."""
        n, rng = len(places()), np.random.default_rng(1)
        with h5py.File(path, "w") as f:
            f["X"] = rng.poisson(2, (n * len(sections), 8)).astype("f4")
            for frame, key, names in (("obs", "cell", [f"c{k}-{i}" for k in sections for i in range(n)]), ("var", "gene", [f"g{i}" for i in range(8)])):
                g = f.create_group(frame)
                g.attrs["_index"] = key
                g[key] = np.array(names, "S")
            kinds = np.zeros((len(sections), n), "i1")
            for row, k in enumerate(sections):
                kinds[row, CELLS[k]] = k + 1
            columns = (("kind", kinds.ravel(), ["all", "a", "b", "c"]), ("slice", np.repeat(np.arange(len(sections)), n), [f"S{k}" for k in sections]))
            for name, codes, categories in columns:
                g = f.create_group("obs/" + name)
                g.attrs["encoding-type"] = "categorical"
                g["codes"], g["categories"] = codes.astype("i1"), np.array(categories, "S")
            f["obsm/spatial"] = np.concatenate([at(k) for k in sections])
            f["uns/kind_colors"] = np.array(["#ffffff"] + ["#%02x%02x%02x" % c for c in COLOURS], "S")
            for name, (pixels, scale) in libraries.items():
                f[f"uns/spatial/{name}/images/hires"] = pixels
                f[f"uns/spatial/{name}/scalefactors/tissue_hires_scalef"] = scale
                f[f"uns/spatial/{name}/scalefactors/spot_diameter_fullres"] = SPOT

    def files(self, images=(0, 1)):
        for k in range(3):
            self.write(self.dir / f"S{k}.h5ad", [k], {"V": (picture(k), SCALE)} if k in images else {})
        return "paths: [" + ", ".join(str(self.dir / f"S{k}.h5ad") for k in range(3)) + "]"

    def draw(self, path, figures):
        self.configure(path, figures + ", dpi: 200")
        self.fathom("spatial", "figures", "-c", self.config)
        return pictures.read_png(self.dir / "out/pnmf/figures/points.png").astype(int)

    def test_figures_and_pages(self):
        path = self.files()
        self.configure(path)
        said = self.preprocess()
        for k in range(2):
            self.assertIn(f"tissue image uns/spatial/V/images/hires of section S{k}: 520 x 560 pixels of 520 x 560", said)
            np.testing.assert_array_equal(pictures.read_png(self.dir / f"out/preprocessed/image_{k}.png"), picture(k))
        self.assertNotIn("section S2: 520", said)
        self.assertFalse((self.dir / "out/preprocessed/image_2.png").exists())
        meta = self.metadata()
        self.assertNotIn("image", meta)
        self.assertEqual([(i["section"], i["file"], i["low"], i["high"], i["spot_diameter"]) for i in meta["images"]],
                         [(f"S{k}", f"image_{k}.png", [0, 0], [520 / SCALE, 560 / SCALE], SPOT) for k in range(2)])
        self.write(self.h5ad, [0, 1, 2], {f"S{k}": (picture(k), SCALE) for k in range(2)})  # files have no common colours
        path = f"path: {self.h5ad}, section_column: slice"
        self.configure(path)
        self.preprocess("--force")
        self.assertEqual([{**i, "from": 0} for i in self.metadata()["images"]], [{**i, "from": 0} for i in meta["images"]])
        for stage in ("train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        spots, alone = self.draw(path, "image: false"), self.draw(path, "dot_alpha: 0.01")
        for k in range(2):
            here, there = (one.Image.blob(self, p, COLOURS[k]) for p in (spots, alone))
            self.assertLess(np.abs(here[0] - there[0]).max(), 1.5, k)
        self.assertEqual((np.abs(alone - np.array(COLOURS[2])).max(2)[:, :int(0.8 * alone.shape[1])] < 30).sum(), 0)  # it stays plain
        # the page: cells and corners in one plane, spots as large as the smaller ones
        with h5py.File(self.h5ad, "r+") as f:
            f["uns/spatial/S1/scalefactors/spot_diameter_fullres"][...] = 3 * SPOT
        self.configure(path)
        self.preprocess("--force")
        for stage in ("train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config, "--force")
        page = self.dir / "page.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", page)
        scripts = Scripts(page.read_text())
        about = json.loads(scripts.text["description"])
        codes = np.frombuffer(base64.b64decode(scripts.text["array-positions"]), "<u2").reshape(3, -1, 2).astype(float)
        self.assertEqual(len(about["images"]), 2)
        step = about["sections"][0]["step"]  # of the source, in one of the page
        for k, place in enumerate(about["images"]):
            jpeg = base64.b64decode(scripts.text[f"array-image{k}"], validate=True)
            self.assertEqual(jpeg[:3] + jpeg[-2:], b"\xff\xd8\xff\xff\xd9")
            box = about["sections"][k]["box"]
            low = at(k).min(0) + (np.array([place["left"], place["top"]]) - codes[k].min(0)) * step  # of the part that is drawn, in positions
            self.assertLess(np.abs(low * SCALE - np.round(low * SCALE)).max(), 0.02)  # whole pixels
            self.assertTrue((low >= -1e-6 / SCALE).all())
            margin = [(box[0] - place["left"]) / (box[2] - box[0]), (place["right"] - box[2]) / (box[2] - box[0])]
            self.assertLess(max(margin), 0.06)
            self.assertGreater(min(margin), -0.01)
        self.assertGreater(about["images"][1]["left"], about["images"][0]["right"])  # images of neighbours do not meet
        self.assertAlmostEqual(about["over_images"]["spot"] * step, SPOT, delta=0.01)
        self.assertNotIn("array-image2", scripts.text)
        again = self.dir / "again.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", again, "--memory", "64M", "--threads", "1")
        self.assertEqual(page.read_bytes(), again.read_bytes())

    def test_libraries_with_the_names_of_sections(self):
        self.write(self.h5ad, [0, 1, 2], {"S1": (picture(1), SCALE), "S0": (picture(0), SCALE), "other": (picture(0), SCALE)})
        self.configure(f"path: {self.h5ad}, section_column: slice")
        self.preprocess()
        self.assertEqual([i["section"] for i in self.metadata()["images"]], ["S0", "S1"])
        for k in range(2):
            np.testing.assert_array_equal(pictures.read_png(self.dir / f"out/preprocessed/image_{k}.png"), picture(k))
        # other sections, in another order
        self.configure(f"path: {self.h5ad}, section_column: slice, sections: [S2, S1]")
        self.preprocess("--force")
        place, = self.metadata()["images"]
        self.assertEqual((place["section"], place["file"]), ("S1", "image_1.png"))
        # and the folder is a source itself
        first = self.dir / "first"
        shutil.move(self.dir / "out/preprocessed", first)
        self.configure(f"path: {first}", dataset="arrays")
        self.assertIn("tissue image image_1.png of section S1: 520 x 560", self.preprocess())
        self.assertEqual({**self.metadata()["images"][0], "from": 0}, {**place, "from": 0})
        np.testing.assert_array_equal(pictures.read_png(self.dir / "out/preprocessed/image_1.png"), picture(1))
        meta = json.loads((first / "metadata.json").read_text())
        for key, value, word in (("file", "../x.png", "'file'"), ("file", "image_x.png", "'file'"), ("section", "", "'section'"),
                                 ("section", 300 * "x", "less than 200 bytes"), ("low", [0], "'low'")):
            (first / "metadata.json").write_text(json.dumps({**meta, "images": [{**place, key: value}]}))
            self.configure(f"path: {first}", dataset="arrays", figures="image: true")
            self.assertIn(word, self.preprocess("--force", code=3))

    def test_without_an_image(self):
        path = self.files(images=())
        self.configure(path)
        self.assertNotIn("tissue image", self.preprocess())
        self.assertNotIn("images", self.metadata())
        self.configure(path, "image: true")
        self.assertIn("none of the 3 files of preprocessing.paths has a tissue image", self.preprocess("--force", code=3))
        self.files(images=(1,))
        self.configure(path, "image: true")
        self.preprocess("--force")  # one is enough
        self.assertEqual([i["file"] for i in self.metadata()["images"]], ["image_1.png"])
        self.files(images=())
        self.write(self.h5ad, [0, 1], {"V": (picture(0), SCALE)})
        self.configure(f"path: {self.h5ad}, section_column: slice", "image: true")
        self.assertIn("no section has a tissue image", self.preprocess("--force", code=3))
        # a file of one's own is of one section
        self.configure(path)
        for stage in ("preprocess", "train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config, *(["--force"] if stage == "preprocess" else []))
        pictures.write_png(self.dir / "mine.png", picture(0))
        self.configure(path, f"image_file: {self.dir / 'mine.png'}")
        self.assertIn("figures.image_file is not drawn: it is of one section", self.fathom("spatial", "figures", "-c", self.config))
        page = self.dir / "page.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", page)
        self.assertNotIn('"images"', page.read_text())

    def test_an_image_of_all_sections_together(self):
        self.fathom("spatial", "toy", "-o", self.dir / "toy", "--side", 8, "--genes", 6, "--factors", 2, "--sections", 2, "--image")
        self.config.write_text(CONFIG.format(dir=self.dir, path=f"path: {self.dir / 'toy'}", more="min_group_size: 1", figures="", dataset="toy"))
        self.assertNotIn("tissue image", self.preprocess())
        self.assertNotIn("image", self.metadata())

    def test_one_that_cannot_be_used_and_one_beside_its_section(self):
        path = self.files()
        with h5py.File(self.dir / "S0.h5ad", "r+") as f:
            del f["uns/spatial/V/scalefactors/tissue_hires_scalef"]
        with h5py.File(self.dir / "S1.h5ad", "r+") as f:
            f["uns/spatial/V/scalefactors/tissue_hires_scalef"][...] = SCALE * 30  # all cells but some are beside it
        self.configure(path)
        said = self.preprocess()
        self.assertIn("note: there is no tissue image: uns/spatial/V/images/hires: its scale factor 'tissue_hires_scalef' is missing", said)
        self.assertIn("note: tissue image uns/spatial/V/images/hires of section S1: 0 of 298 cells lie on it: its scale factor 3.75 makes it "
                      "138.667 by 149.333", said)
        for stage in ("train", "analyze", "figures"):
            self.fathom("spatial", stage, "-c", self.config)  # drawn without
        self.configure(path, "image: true")
        self.assertIn("tissue_hires_scalef", self.preprocess("--force", code=3))

    def test_folders_of_space_ranger(self):
        folders = []
        for k, size in enumerate(("hires", "lowres", None)):
            data = self.dir / f"slide{k}"
            tenx.folder(data, "visium")
            folders.append(data)
            if size:
                pictures.write_png(data / f"spatial/tissue_{size}_image.png", np.full((40 + k, 120, 3), 60 + k, np.uint8))
            (data / "spatial/scalefactors_json.json").write_text(json.dumps({"tissue_hires_scalef": 1.0, "tissue_lowres_scalef": 0.5}))
        self.config.write_text(CONFIG.format(dir=self.dir, path=f"paths: {json.dumps([str(f) for f in folders])}", more="min_group_size: 1", figures="",
                                             dataset="visium"))
        self.preprocess()
        self.assertEqual([(i["section"], i["from"], i["high"]) for i in self.metadata()["images"]],
                         [("slide0", "tissue_hires_image.png", [120, 40]), ("slide1", "tissue_lowres_image.png", [240, 82])])
        self.assertEqual(pictures.read_png(self.dir / "out/preprocessed/image_1.png").shape, (41, 120, 3))
        pictures.write_png(folders[1] / "spatial/tissue_lowres_image.png", np.full((41, 120, 3), 1, np.uint8))
        self.assertIn("source", self.preprocess(code=2))  # of other bytes it is made again

    def test_all_together_are_bounded(self):
        """Nine images of noise: a page has 3 MiB for all, a folder the pixels of four of 2048 on a side; any budget gives the same bytes."""
        n, rng, paths = 9, np.random.default_rng(3), []
        for k in range(n):
            paths.append(str(self.dir / f"N{k}.h5ad"))
            self.write(paths[-1], [0], {"V": (rng.integers(0, 256, (1500, 1400, 3), np.uint8), 0.35)})
        path = "paths: [" + ", ".join(paths) + "]"
        self.configure(path)
        made = []
        for flags in ((), ("--memory", "130M", "--threads", "1")):
            self.preprocess("--force", *flags)
            made.append([(self.dir / f"out/preprocessed/image_{k}.png").read_bytes() for k in range(n)])
        self.assertEqual(made[0], made[1])
        self.assertEqual(pictures.read_png(self.dir / "out/preprocessed/image_8.png").shape, (1365, 1274, 3))
        for stage in ("train", "analyze"):
            self.fathom("spatial", stage, "-c", self.config)
        page = self.dir / "page.html"
        self.fathom("spatial", "page", "-c", self.config, "-o", page)
        scripts = Scripts(page.read_text())
        sizes = [len(base64.b64decode(scripts.text[f"array-image{k}"])) for k in range(n)]
        self.assertLessEqual(sum(sizes), 3 << 20)
        self.assertGreater(min(sizes), 60000)


if __name__ == "__main__":
    unittest.main()
