"""Images of a SpatialData store: cells lie on their pixels through the transformations of image and region, a level of the pyramid is
chosen, channels of a microscope become colours, and what is not supported is refused.

An image has its column in red and its row in green, so a pixel says where it was. long_spatial_readers.py does the same with stores of spatialdata.
seconds: 20"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_pictures import tool as pictures  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
XY = np.stack([10.0 * np.arange(12), 3.0 * (np.arange(12) % 4)], 1)  # of tests/golden/h5ad/store.zarr
H, W = 190, 250


def node(path, **members):
    path.mkdir(parents=True, exist_ok=True)
    (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, **members}))


def array(path, pixels, rows):
    shutil.rmtree(path, ignore_errors=True)
    node(path, node_type="array", shape=pixels.shape, data_type=str(pixels.dtype), fill_value=0, attributes={},
         chunk_grid={"name": "regular", "configuration": {"chunk_shape": [*pixels.shape[:-2], rows, pixels.shape[-1]]}},
         chunk_key_encoding={"name": "default", "configuration": {"separator": "/"}}, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}])
    for k in range(-(-pixels.shape[-2] // rows)):
        part = pixels[..., k * rows:(k + 1) * rows, :]
        part = np.concatenate([part, np.zeros((*part.shape[:-2], rows - part.shape[-2], part.shape[-1]), part.dtype)], -2)
        file = path.joinpath("c", *(["0"] if pixels.ndim == 3 else []), str(k), "0")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(np.ascontiguousarray(part).tobytes())


def space(axes):
    return {"name": axes, "axes": [{"name": a, "type": "channel" if a == "c" else "space"} for a in axes]}


def to(system, kind, axes="cyx", out=None, **values):
    return {"type": kind, **values, "input": space(axes), "output": {**space(out or axes), "name": system}}


def scale(system, x, y, axes="cyx"):
    return to(system, "scale", axes, scale=[{"x": x, "y": y, "c": 1}[a] for a in axes])


def move(system, x, y, axes="cyx"):
    return to(system, "translation", axes, translation=[{"x": x, "y": y, "c": 0}[a] for a in axes])


def coded(h=H, w=W):
    y, x = np.mgrid[0:h, 0:w]
    return np.stack([x, y, np.full((h, w), 77)]).astype(np.uint8)


class Store(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-store-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.store = self.dir / "s.zarr"
        shutil.copytree("tests/golden/h5ad/store.zarr", self.store)
        shutil.rmtree(self.store / "tables/other")
        node(self.store / "images", node_type="group", attributes={})

    def region(self, name, maps, kind="shapes"):
        at = {"coordinateTransformations": maps}
        node(self.store / kind / name, node_type="group", attributes=at if kind == "shapes" else {"ome": {"multiscales": [at]}})

    def regions(self, maps):
        self.region("left", maps)
        self.region("right", maps, "labels")

    def image(self, name, levels, maps, channels=("r", "g", "b"), axes="cyx", rows=50):
        folder = self.store / "images" / name
        node(folder, node_type="group", attributes={"ome": {"omero": {"channels": [{"label": c} for c in channels]}, "multiscales": [{
            "axes": space(axes)["axes"], "datasets": [{"path": f"s{k}"} for k in range(len(levels))], "coordinateTransformations": maps}]}})
        for k, pixels in enumerate(levels):
            array(folder / f"s{k}", pixels, rows)

    def preprocess(self, *flags, code=0, figures="", **keys):
        config = self.dir / "c.json"
        config.write_text(json.dumps({"instrument": "spatial", "name": "t", "dataset": "spatialdata", "output_dir": str(self.dir / "out"),
                                      "preprocessing": {"path": str(self.store), "min_group_size": 1, **keys}, "figures": {"image": figures or "auto"}}))
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", config, *(flags or ["--force"])], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.out = self.dir / "out/preprocessed"
        return done.stdout + done.stderr

    def place(self):
        return json.loads((self.out / "metadata.json").read_text())["image"]

    def under(self, xy=None):
        """The pixels of image.png under the cells."""
        place, pixels = self.place(), pictures.read_png(self.out / "image.png").astype(float)
        low, high = np.array(place["low"]), np.array(place["high"])
        meta = json.loads((self.out / "metadata.json").read_text())
        raw = np.load(self.out / "X.npy") / meta["scale"] + meta["offset"] if xy is None else np.array(xy)
        at = np.floor((raw - low) / (high - low) * pixels.shape[1::-1] + 1e-4).astype(int)
        return pixels[at[:, 1], at[:, 0]]

    def check(self, want, near=0.0):
        """want: column and row of the first level under each cell."""
        rows = np.load(self.out / "rows.npy")
        got = self.under()
        self.assertLessEqual(np.abs(got[:, :2] - np.floor(want[rows] + 1e-4)).max(), near)
        np.testing.assert_array_equal(got[:, 2], 77)

    # ---- transformations ----

    def test_cells_lie_on_their_pixels(self):
        turn = [[0, 2.0, -3], [-2.0, 0, 260]]  # from x, y: turned by 90 degrees
        affine = to("global", "affine", "cyx", "cyx", affine=[[1, 0, 0, 0], [0, 0, -2.0, 260], [0, 2.0, 0, -3]])
        other = to("global", "affine", "cyx", "cxy", affine=[[1, 0, 0, 0], [0, 2.0, 0, -3], [0, 0, -2.0, 260]])
        both = to("global", "sequence", transformations=[scale("global", 0.5, 0.25), move("global", -1, -2)])
        bare = {"type": "sequence", "transformations": [{"type": "scale", "scale": [1, 0.25, 0.5]}, {"type": "translation", "translation": [0, -2, -1]}],
                "input": space("cyx"), "output": {**space("cyx"), "name": "global"}}
        one = [to("global", "identity", "xy")]
        for name, of_image, of_region, want in (
                ("identity", [to("global", "identity")], one, XY),
                ("none", [], [], XY),
                ("scale", [scale("global", 0.5, 0.25)], one, XY / [0.5, 0.25]),
                ("region", [to("global", "identity")], [scale("global", 2, 3, "xy")], XY * [2, 3]),
                ("translation", [move("global", -20, -40)], one, XY + [20, 40]),
                ("sequence", [both], one, (XY + [1, 2]) / [0.5, 0.25]),
                ("inner axes", [bare], one, (XY + [1, 2]) / [0.5, 0.25]),
                ("two", [scale("global", 3, 3)], [to("global", "sequence", "xy", transformations=[scale("global", 6, 6, "xy"), move("global", 30, 60, "xy")])],
                 XY * 2 + [10, 20])):
            with self.subTest(name):
                self.image("he", [coded()], of_image)
                self.regions(of_region)
                said = self.preprocess()
                self.assertIn("tissue image images/he: 250 x 190 pixels", said)
                self.check(want)
        for name, of_image in (("turned", affine), ("axes of the output", other)):
            with self.subTest(name):
                self.image("he", [coded()], [of_image])
                self.regions(one)
                self.preprocess()
                back = np.linalg.inv(np.array(turn)[:, :2])
                self.check((XY - [-3, 260]) @ back.T, near=1)
                self.assertEqual(pictures.read_png(self.out / "image.png").shape, (W, H, 3))
                self.assertEqual((self.place()["low"], self.place()["high"]), ([-3, -240], [377, 260]))
        with self.subTest("mirrored"):
            self.image("he", [coded()], [to("global", "affine", affine=[[1, 0, 0, 0], [0, 1, 0, -9], [0, 0, -1, 200]])])
            self.preprocess()
            np.testing.assert_array_equal(pictures.read_png(self.out / "image.png"), coded().transpose(1, 2, 0)[:, ::-1])
            self.assertEqual((self.place()["low"], self.place()["high"]), ([-50, -9], [200, 181]))
        with self.subTest("turned by an angle"):  # corners beside it are white
            c, s = np.cos(0.4), np.sin(0.4)
            self.image("he", [coded()], [to("global", "affine", affine=[[1, 0, 0, 0], [0, c, s, -80], [0, -s, c, -20]])])
            self.preprocess()
            self.check(np.linalg.solve([[c, -s], [s, c]], (XY - [-20, -80]).T).T, near=2)
            np.testing.assert_array_equal(pictures.read_png(self.out / "image.png")[0, 0], 255)

    def test_coordinate_systems(self):
        self.image("he", [coded()], [scale("a", 2, 2), to("global", "identity"), scale("b", 4, 4)])
        self.regions([to("a", "identity", "xy"), to("b", "identity", "xy")])
        said = self.preprocess()
        self.assertIn("note: there is no tissue image", said)
        self.assertIn("share more than one coordinate system: the image is in a, global, b, the region in a, b", said)
        for system, by in (("a", 2), ("b", 4)):
            self.preprocess(coordinate_system=system)
            self.check(XY / by)
        self.assertIn("do not share a coordinate system 'c'", self.preprocess(coordinate_system="c", figures="true", code=3))
        self.regions([to("b", "identity", "xy")])
        self.preprocess()
        self.check(XY / 4)
        self.regions([scale("b", 2, 2, "xy"), scale("global", 1.5, 1.5, "xy")])
        self.preprocess()  # global is chosen
        self.check(XY * 1.5)
        self.regions([to("z", "identity", "xy")])
        self.assertIn("do not share a coordinate system", self.preprocess())

    def test_regions(self):
        self.image("he", [coded()], [to("global", "identity")])
        self.region("left", [to("global", "identity", "xy")])
        self.assertIn("region 'right' of the table is neither in shapes nor in labels", self.preprocess())
        self.region("right", [scale("global", 2, 2, "xy")])
        self.assertIn("lies elsewhere for region 'right'", self.preprocess())
        self.preprocess(region="right")
        self.check(XY * 2)
        self.preprocess(region="left")
        self.check(XY)

    # ---- pixels ----

    def test_levels(self):
        """The smallest with 2048 pixels on a side is read; all cover the same place."""
        levels = [np.full((3, 40 >> k, 5000 >> k), 50 * k + 20, np.uint8) for k in range(4)]
        self.image("he", levels, [scale("global", 0.1, 1)], rows=16)
        self.regions([to("global", "identity", "xy")])
        said = self.preprocess()
        self.assertIn("tissue image images/he: 2048 x 17 pixels of 2500 x 20", said)
        np.testing.assert_array_equal(self.under(), 70)
        np.testing.assert_allclose(self.place()["high"], [500, 40])
        self.assertIn("kept", self.preprocess("--threads", "1"))
        chunk = self.store / "images/he/s1/c/0/1/0"
        chunk.write_bytes(bytes(len(chunk.read_bytes())))
        self.assertIn("source: other bytes", self.preprocess("--threads", "1", code=2))  # what is read is part of the source
        made = []
        for flags in (["--force"], ["--force", "--memory", "64M", "--threads", "1"]):
            self.preprocess(*flags)
            made.append((self.out / "image.png").read_bytes())
        self.assertEqual(made[0], made[1])

    def test_channels(self):
        y, x = np.mgrid[0:H, 0:W]
        stain = np.stack([x * 10, y * 20, x * 0 + 7, x + y, x * 3]).astype(np.uint16)
        stain[:, 0, 0] = 60000  # a hot pixel
        self.image("if", [stain], [to("global", "identity")], ("DAPI", "CD3", "CD8", "PanCK", "5"))
        self.regions([to("global", "identity", "xy")])
        said = self.preprocess()
        self.assertIn("it has 5 channels", said)
        self.assertIn("preprocessing.image_channels lists one to three for red, green and blue: of DAPI, CD3, CD8, PanCK, 5", said)
        self.assertIn("it has no channel 'CD4'", self.preprocess(image="if", image_channels=["CD4"], code=3))
        self.assertIn("one to three channels can be drawn, not 4", self.preprocess(image="if", image_channels=["0", "1", "2", "3"], code=2))
        self.preprocess(image_channels=["PanCK", "DAPI"])
        got = pictures.read_png(self.out / "image.png").astype(float)
        for k, of in ((0, stain[3]), (1, stain[0])):
            top = np.quantile(of, 0.998)
            want = np.minimum(of / top, 1) * 255
            self.assertLess(np.abs(got[..., k] - want).max(), 4, k)
        np.testing.assert_array_equal(got[..., 2], 0)
        self.preprocess(image_channels=["1"])
        grey = pictures.read_png(self.out / "image.png")
        np.testing.assert_array_equal(grey[..., 0], grey[..., 2])
        self.assertGreater(np.ptp(grey[5:, 5:, 0]), 200)
        np.testing.assert_array_equal(grey[100, :, 0], grey[100, 0, 0])  # of rows: CD3
        # one channel is grey; of u8 as it is
        self.image("if", [stain[1]], [to("global", "identity", "yx")], (), axes="yx")
        self.preprocess()
        np.testing.assert_array_equal(pictures.read_png(self.out / "image.png"), grey)
        self.image("if", [coded()[:1]], [to("global", "identity")], ("x",))
        self.preprocess()
        np.testing.assert_array_equal(pictures.read_png(self.out / "image.png")[..., 1], coded()[0])

    def test_photographs(self):
        four = np.concatenate([coded(), np.full((1, H, W), 255, np.uint8)])
        self.regions([to("global", "identity", "xy")])
        for channels, pixels, well in ((("r", "g", "b"), coded(), True), (("R", "G", "B"), coded(), True), (("red", "green", "blue"), coded(), True), ((), coded(), True),
                                       (("0", "1", "2"), coded(), True), (("r", "g", "b", "a"), four, True), (("0", "1", "2", "3"), four, False),
                                       (("DAPI", "CD3", "CD8"), coded(), False), (("r", "g", "x"), coded(), False)):
            with self.subTest(channels):
                self.image("he", [pixels], [to("global", "identity")], channels)
                said = self.preprocess()
                self.assertEqual("channels\n" in said, not well, said)
                if well:
                    self.check(XY)

    def test_the_plan_holds(self):
        """In the memory that the plan asks for, a large turned image is made."""
        rng = np.random.default_rng(2)
        self.image("he", [rng.integers(0, 256, (3, 2600, 2300), np.uint8)], [to("global", "affine", affine=[[1, 0, 0, 0], [0, 0.04, -0.1, 90], [0, 0.1, 0.04, -90]])], rows=999)
        self.regions([to("global", "identity", "xy")])
        memory = "16M"
        for _ in range(3):  # rooms for chunks are a share of what is allowed
            memory = self.preprocess("--force", "--memory", memory, code=4).split("would fit: --memory ")[1].split()[0]
            if subprocess.run([PROGRAM, "spatial", "preprocess", "-c", self.dir / "c.json", "--memory", memory, "--plan"], capture_output=True).returncode == 0:
                break
        self.preprocess("--force", "--memory", memory)
        self.assertEqual(max(pictures.read_png(self.out / "image.png").shape), 2048)

    # ---- what is refused ----

    def test_several_images(self):
        self.regions([to("global", "identity", "xy")])
        self.image("a", [coded()], [to("global", "identity")])
        self.image("b", [coded()[:, ::-1]], [to("global", "identity")])
        said = self.preprocess()
        self.assertIn("it has 2 images", said)
        self.assertIn("preprocessing.image is one of: a, b", said)
        self.assertNotIn('"image"', (self.out / "metadata.json").read_text())
        self.preprocess(image="a")
        self.check(XY)
        self.assertEqual(self.place()["from"], "images/a")
        self.assertIn("there is no image 'c'", self.preprocess(image="c", code=3))
        self.assertIn("are not drawn: it has several sections", self.preprocess(section_column="region", code=3))  # of which each is too small

    def test_what_is_refused(self):
        good, one = [to("global", "identity")], [to("global", "identity", "xy")]
        for word, maps in (("of the type 'mapAxis'", [to("global", "mapAxis", mapAxis={"x": "y", "y": "x"})]),
                           ("of the type ''", [{"output": {"name": "global"}, "input": space("cyx")}]),
                           ("'scale': expected a number for each axis", [to("global", "scale", scale=[1, 2])]),
                           ("of scales other than 0", [scale("global", 0, 1)]),
                           ("its input has no axes x and y", [{"type": "scale", "scale": [1, 2], "output": {"name": "global"}}]),
                           ("expected a row for x and one for y", [to("global", "affine", affine=[[1, 0, 0, 0], [0, 1, 0, 0]])]),
                           ("a number for each input axis and one more", [to("global", "affine", affine=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])]),
                           ("an axis that is neither", [to("global", "affine", affine=[[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])]),
                           ("not finite", [to("global", "affine", affine=[[1, 0, 0, 0], [0, None, 0, 0], [0, 0, 1, 0]])]),
                           ("has no inverse", [to("global", "affine", affine=[[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0]])])):
            with self.subTest(word):
                self.image("he", [coded()], maps)
                self.regions(one)
                said = self.preprocess()
                self.assertIn("note: there is no tissue image", said)
                self.assertIn(word, said)
                self.preprocess(figures="true", code=3)
        self.image("he", [coded()], good)
        self.regions([to("global", "affine", "xy", affine=[[1, 1, 0], [1, 1, 0]])])
        self.assertIn("has no inverse", self.preprocess())
        self.regions(one)
        self.image("he", [coded()[None]], good, axes="tcyx")
        self.assertIn("expected a picture with the axes c y x or y x", self.preprocess())
        path = self.store / "images/he/zarr.json"
        self.image("he", [coded()], good)
        whole = json.loads(path.read_text())
        for level in ("..", "../a", "", "missing"):
            broken = json.loads(json.dumps(whole))
            broken["attributes"]["ome"]["multiscales"][0]["datasets"][0]["path"] = level
            path.write_text(json.dumps(broken))
            self.assertIn("note: there is no tissue image", self.preprocess())
        del broken["attributes"]["ome"]["multiscales"]
        path.write_text(json.dumps(broken))
        self.assertIn("it is no image of OME-NGFF", self.preprocess())


if __name__ == "__main__":
    unittest.main()
