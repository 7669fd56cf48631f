"""fathom.splat: models as arrays, images of them as the program renders them, checkpoints by name.
seconds: 10"""
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np

from test_splat import call, golden, write_golden

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import fathom  # noqa: E402


def write_safetensors(path, arrays, metadata):
    import json
    header, at = {"__metadata__": metadata}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values()))


class SplatPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        (cls.dir / "golden").mkdir()
        write_golden(cls.dir / "golden")
        fx, fy, cx, cy = golden("in_intr")[0][:4]
        cls.camera = {"width": 50, "height": 42, "fx": fx, "fy": fy, "cx": cx, "cy": cy, "w2c": golden("in_w2c")[0]}
        cls.background = (0.1, 0.2, 0.3)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def test_an_image_is_that_of_the_program_and_the_golden_one(self):
        model = fathom.splat.load(self.dir / "golden/model.ply")
        self.assertEqual((model.degree, model.shN.shape), (3, (len(model), 15, 3)))
        image, alpha, depth = fathom.splat.render(model, self.camera, self.background, alpha=True, depth=True)
        self.assertEqual((image.shape, image.dtype), ((42, 50, 3), np.float32))
        self.assertLess(np.abs(image - golden("fwd_deg3_image")).max(), 2e-5)
        self.assertLess(np.abs(alpha - golden("fwd_deg3_alpha")).max(), 2e-5)
        done = call("render", "golden/model.ply", "-d", "golden", "-o", "p", "--bg", "0.1,0.2,0.3", "--depth", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_allclose(image, np.load(self.dir / "p/images/view_00.npy"), atol=2e-6)
        np.testing.assert_allclose(depth, np.load(self.dir / "p/images/view_00_depth.npy"), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(model.render(self.camera, background=self.background), image)
        np.testing.assert_array_equal(fathom.splat.render(self.dir / "golden/model.ply", self.camera, self.background), image)

    def test_arrays_are_a_model(self):
        loaded = fathom.splat.load(self.dir / "golden/model.ply")
        arrays = {name: loaded[name] for name in loaded.keys()}
        np.testing.assert_allclose(arrays["means"], golden("in_means"), atol=1e-6)
        image = fathom.splat.render(arrays, self.camera, self.background)
        np.testing.assert_array_equal(image, loaded.render(self.camera, background=self.background))
        del arrays["shN"]
        self.assertEqual(fathom.splat.model(arrays).degree, 0)
        with self.assertRaisesRegex(fathom.Error, "rotation: expected"):
            fathom.splat.model({**arrays, "rotation": np.zeros((3, 4))})
        with self.assertRaisesRegex(fathom.Error, "focal lengths above 0"):
            fathom.splat.render(loaded, {**self.camera, "fx": 0, "fy": 0})
        with self.assertRaisesRegex(fathom.Error, "w2c of 4x4 or 3x4"):
            fathom.splat.render(loaded, {**self.camera, "w2c": np.eye(3)})
        with self.assertRaises(fathom.Error):
            fathom.splat.load(self.dir / "none.ply")

    def test_mistakes_are_told(self):
        model = fathom.splat.load(self.dir / "golden/model.ply")

        def refused(text, f):
            with self.assertRaisesRegex(fathom.Error, text):
                f()
        for key in ("width", "fx", "w2c"):
            camera = {k: v for k, v in self.camera.items() if k != key}
            refused(f"camera: expected width, height, fx, w2c, and fy, .* found no '{key}'", lambda: model.render(camera))
        refused("found a key 'fov'", lambda: model.render({**self.camera, "fov": 1}))
        refused("whole pixels, found 50.5 x 42", lambda: model.render({**self.camera, "width": 50.5}))
        refused("expected a model: a path.*found NoneType", lambda: fathom.splat.render(None, self.camera))
        refused("found no sh0, scaling", lambda: fathom.splat.model({k: model[k] for k in ("means", "rotation", "opacity")}))
        refused("means: arrays of a model stay as they are", lambda: setattr(model, "means", model.means + 1))
        with self.assertRaises(ValueError):
            model.means[0] = 1  # else it would change and its images would not
        moved = fathom.splat.model({**model, "means": model.means + np.float32(100)})
        self.assertGreater(np.abs(moved.render(self.camera) - model.render(self.camera)).max(), 0.01)

    def test_lenses_are_those_of_the_program(self):
        """Every camera model that a capture may have, with its coefficients in the order of COLMAP."""
        model = fathom.splat.load(self.dir / "golden/model.ply")
        lenses = {"SIMPLE_RADIAL": [-0.1], "RADIAL": [-0.1, 0.02], "OPENCV": [-0.1, 0.02, 0.003, -0.004],
                  "FULL_OPENCV": [-0.1, 0.02, 0.003, -0.004, 0.01, 0.05, 0.01, 0.002], "FISHEYE": [],
                  "SIMPLE_RADIAL_FISHEYE": [0.03], "RADIAL_FISHEYE": [0.03, -0.01],
                  "OPENCV_FISHEYE": [0.03, -0.01, 0.002, 0.001]}
        (self.dir / "bent/sparse/0").mkdir(parents=True)
        pose = np.vstack([np.asarray(self.camera["w2c"], float)[:3], [0, 0, 0, 1]])
        camera = {**self.camera, "w2c": pose}
        w = np.sqrt(max(0, 1 + np.trace(pose[:3, :3]))) / 2
        q = [w, *((pose[b, a] - pose[a, b]) / (4 * w) for a, b in ((1, 2), (2, 0), (0, 1)))]
        self.assertGreater(w, 0.1)
        folder, seen = self.dir / "bent/sparse/0", []
        (folder / "points3D.txt").write_text("")
        (folder / "images.txt").write_text("1 %s 1 a.png\n\n" % " ".join(repr(float(v)) for v in (*q, *pose[:3, 3])))
        (self.dir / "bent/images").mkdir()
        (self.dir / "bent/images/a.png").write_bytes((self.dir / "golden/images/view_00.png").read_bytes())
        for name, bends in lenses.items():
            focal = [camera["fx"]] if "SIMPLE" in name or name.startswith("RADIAL") else [camera["fx"], camera["fy"]]
            numbers = [*focal, camera["cx"], camera["cy"], *bends]
            (folder / "cameras.txt").write_text(f"1 {name} 50 42 " + " ".join(repr(float(v)) for v in numbers) + "\n")
            done = call("render", "golden/model.ply", "-d", "bent", "-o", "p", "--gut", "-a", "--bg", "0.1,0.2,0.3",
                        "--alpha", cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
            one = {**camera, "fy": focal[-1], "model": name, "distortion": bends}
            image, alpha = fathom.splat.render(model, one, self.background, alpha=True, gut=True, antialiased=True)
            np.testing.assert_allclose(image, np.load(self.dir / "p/a.npy"), atol=2e-5)
            np.testing.assert_allclose(alpha, np.load(self.dir / "p/a_alpha.npy"), atol=2e-5)
            seen.append(image)
        for i, image in enumerate(seen):
            self.assertGreater(min(np.abs(image - other).max() for other in seen[:i] + seen[i + 1:]), 1e-3)
        plain = fathom.splat.render(model, camera, gut=True)
        self.assertGreater(np.abs(plain - fathom.splat.render(model, camera, gut=True, antialiased=True)).max(), 1e-6)
        self.assertGreater(np.abs(plain - fathom.splat.render(model, camera)).max(), 1e-6)
        np.testing.assert_array_equal(fathom.splat.render(model, {**camera, "model": "PINHOLE"}, gut=True), plain)

    def test_lenses_that_cannot_be_are_refused(self):
        model = fathom.splat.load(self.dir / "golden/model.ply")
        for more, options, text in (({"model": "OPENCV", "distortion": [0.1, 0, 0, 0]}, {}, "without distortion, found OPENCV"),
                                    ({"model": "OPENCV", "distortion": [0.1]}, {"gut": True}, "expected 4 coefficients"),
                                    ({"model": "EUCM", "distortion": [0.5, 1]}, {"gut": True}, "found 'EUCM'"),
                                    ({"distortion": [0.1]}, {"gut": True}, "expected a model such as 'OPENCV'"),
                                    ({"model": "SIMPLE_RADIAL", "distortion": [np.nan]}, {"gut": True}, "finite coefficients")):
            with self.assertRaisesRegex(fathom.Error, text):
                fathom.splat.render(model, {**self.camera, **more}, **options)

    def test_files_that_are_saved_load_again(self):
        model = fathom.splat.load(self.dir / "golden/model.ply")
        for name in ("a.ply", "a.spz", "a.sog", "a.splat"):
            again = fathom.splat.load(model.save(self.dir / name))
            self.assertEqual(len(again), len(model), name)
        (self.dir / "trained").mkdir()
        for name in ("splat_5.ply", "splat_40.ply"):
            fathom.splat.load(self.dir / "a.splat" if "5" in name else self.dir / "a.ply").save(self.dir / "trained" / name)
        np.testing.assert_array_equal(fathom.splat.load(self.dir / "trained").shN, model.shN)  # the newest of a training
        model.save(self.dir / "a.html")
        self.assertIn("webgl2", (self.dir / "a.html").read_text())
        with self.assertRaisesRegex(fathom.Error, "no format"):
            model.save(self.dir / "a.xyz")

    def test_a_checkpoint_opens_as_named_arrays(self):
        model = fathom.splat.load(self.dir / "golden/model.ply")
        arrays = {name: model[name] for name in model.keys()}
        write_safetensors(self.dir / "c.safetensors", {**arrays, "densify": np.zeros((2, 5), np.float32)}, {"iteration": "7"})
        found = fathom.splat.checkpoint(self.dir / "c.safetensors")
        self.assertEqual(found["__metadata__"]["iteration"], "7")
        self.assertEqual(found["densify"].shape, (2, 5))
        np.testing.assert_array_equal(found["means"], model.means)
        again = fathom.splat.load(self.dir / "c.safetensors")
        np.testing.assert_array_equal(again.shN, model.shN)


if __name__ == "__main__":
    unittest.main()
