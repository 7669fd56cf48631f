"""Building blocks of ptycho through the program: the golden files, an independent statement in
NumPy, groups that do not meet each other, and refusals.
seconds: 40"""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "ptycho"


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="ptycho-op-")
        self.dir = pathlib.Path(self.tmp.name)

    def tearDown(self):
        self.tmp.cleanup()

    def fathom(self, *args, code=0):
        r = subprocess.run([PROGRAM, "ptycho", *map(str, args)], capture_output=True, text=True)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def op(self, name, arrays, *flags):
        given, made = self.dir / "in.npz", self.dir / "out.npz"
        if isinstance(arrays, dict):
            np.savez(given, **arrays)
        else:
            given = arrays
        self.fathom("op", name, given, made, *flags)
        with np.load(made) as z:
            return {k: z[k] for k in z.files}

    def near(self, a, b, tolerance):
        self.assertEqual(a.shape, b.shape)
        self.assertLessEqual(np.abs(a.astype(np.complex128) - b).max(), tolerance)


class Golden(Case):
    def test_translate(self):
        want = np.load(GOLDEN / "g1_translate.npz")
        got = self.op("translate", GOLDEN / "g1_translate.npz")["out"]
        self.assertEqual(got.dtype, np.complex64)
        self.near(got, want["out"], 1e-5)

    def test_merge_in_three_ways_and_extract(self):
        path = GOLDEN / "g2_reassemble.npz"
        want = np.load(path)
        for kind, name in (("central", "merged_torch"), ("tf", "merged_tf_rule"), ("probe", "merged_probe")):
            got = self.op("merge", path, "--merge", kind)["merged"]
            self.near(got, want[name], 2e-5 * max(1, np.abs(want[name]).max()))
        got = self.op("extract", {"region": want["merged_torch"], "coords_relative": want["coords_relative"],
                                  "N": np.int64(32)})["patches"]
        self.near(got, want["extracted_torch"], 2e-5)

    def test_diffract_and_loss(self):
        path = GOLDEN / "g3_diffract_loss.npz"
        want = np.load(path)
        got = self.op("diffract", path)["amplitude"]
        self.near(got, want["amplitude"], 1e-5 * want["amplitude"].max())
        loss = self.op("loss", path)
        self.assertAlmostEqual(float(loss["mae"]), float(want["mae"]), delta=1e-5 * float(want["mae"]))
        a, seen = (want[k].astype(float) for k in ("amplitude", "observed_amp"))
        nll = (a**2 - seen**2 * np.log(a**2)).mean()
        self.assertAlmostEqual(float(loss["nll"]), nll, delta=1e-5 * abs(nll))

    def test_groups(self):
        z = np.load(GOLDEN / "g4_grouping.npz")
        cases = {"rand": ["--gridsize", 2, "--n_groups", 12, "--seed", 11],
                 "seq": ["--gridsize", 2, "--n_groups", 10, "--neighbor_count", 7, "--sequential_sampling", "true"],
                 "over": ["--gridsize", 2, "--n_groups", 60, "--neighbor_count", 7, "--seed", 5,
                          "--enable_oversampling", "true"],
                 "gs1": ["--gridsize", 1, "--n_groups", 12, "--seed", 11]}
        for name, flags in cases.items():
            with self.subTest(name):
                got = self.op("group", {"xcoords": z[name + "_x"], "ycoords": z[name + "_y"]}, *flags)
                np.testing.assert_array_equal(got["idx"], z[name + "_nn"])
                np.testing.assert_allclose(got["off"], z[name + "_off"][:, 0, :, 0], atol=1e-12)
                np.testing.assert_allclose(got["rel"], z[name + "_rel"][:, 0].transpose(0, 2, 1), atol=1e-12)

    def test_probes_and_objects(self):
        want = np.load(GOLDEN / "g5_probes.npz")
        for n in (64, 128):
            for scale in ("0.7", "4.0"):
                self.fathom("op", "probe", self.dir / "p.npz", "--N", n, "--default_probe_scale", scale)
                self.near(np.load(self.dir / "p.npz")["probe"], want[f"default_N{n}_s{scale}"], 1e-6)
        want = np.load(GOLDEN / "g6_objects.npz")
        for name, flags in {"lines_N64_n10_seed1": ["lines", "--lines", 10, "--seed", 1],
                            "points_N64_seed3": ["points", "--seed", 3],
                            "diags_N64_seed3": ["diagonals", "--seed", 3]}.items():
            self.fathom("op", "object", self.dir / "o.npz", "--size", 64, "--object", *flags)
            self.near(np.load(self.dir / "o.npz")["object"], want[name], 1e-6)

    def test_network(self):
        for chan in (1, 4):
            path = GOLDEN / f"g8_cnn_N64_C{chan}.npz"
            want = np.load(path)
            got = self.op("cnn", path, "--n_filters_scale", 1, "--flavour", "torch")
            self.near(got["amp"], want["amp"], 1e-4)
            self.near(got["phase"], want["phase"], 1e-4)


def translate(image, t):
    """The rule of the specification in f64; t is (x, y)."""
    rows, cols = image.shape
    y, x = np.arange(rows) - t[1], np.arange(cols) - t[0]
    out = np.zeros(image.shape, complex)
    for dy in (0, 1):
        for dx in (0, 1):
            r, c = np.floor(y).astype(int) + dy, np.floor(x).astype(int) + dx
            wy, wx = (y - np.floor(y)), (x - np.floor(x))
            w = np.outer(wy if dy else 1 - wy, wx if dx else 1 - wx)
            ok = np.outer((r >= 0) & (r < rows), (c >= 0) & (c < cols))
            out += np.where(ok, w * image[np.ix_(r.clip(0, rows - 1), c.clip(0, cols - 1))], 0)
    return out


class Stitch(Case):
    def canvas(self, patches, places, weight, rectangle):
        """The middle 8 pixels of each patch at its place, x and y, on a canvas that holds them all."""
        d = places - places.mean(0)
        reach = np.abs(d.astype(np.float32))
        pad = np.ceil(np.broadcast_to(reach.max(0 if rectangle else None), 2)).astype(int)[::-1]
        pad += pad % 2
        num, den = np.zeros((2, *(8 + 2 * pad)), complex)
        rows, cols = slice(pad[0], pad[0] + 8), slice(pad[1], pad[1] + 8)
        for p, t in zip(patches, d):
            frame, lit = np.zeros((2, *num.shape), complex)
            frame[rows, cols], lit[rows, cols] = (weight * p)[4:12, 4:12], weight[4:12, 4:12]
            num += translate(frame, t)
            den += translate(lit, t)
        return num / (den + 1e-9), places.mean(0) - np.array(num.shape[::-1]) / 2

    def compare(self, patches, places, arrays, *flags):
        y, x = np.mgrid[:16, :16] - 8
        modes = np.array([np.exp(-(x**2 + y**2) / 20 + 1j * x), 0.2j * x * np.exp(-(x**2 + y**2) / 20)])
        light = (np.abs(modes) ** 2).sum(0)
        for weight, name in ((np.ones((16, 16)), "uniform"), (light / light.max(), "probe")):
            for kind in ("square", "rectangle"):
                got = self.op("stitch", {**arrays, "probe": modes}, "--stitch_crop", 8, "--stitch.weight", name, "--stitch.canvas", kind,
                              *flags)
                want, origin = self.canvas(patches, places, weight, kind == "rectangle")
                self.near(got["canvas"], want, 1e-4)
                np.testing.assert_allclose(got["canvas_origin"], origin, atol=1e-9)

    def test_canvas_is_the_sum_of_moved_patches(self):
        rng = np.random.default_rng(1)
        patches = rng.normal(size=(7, 16, 16)) + 1j * rng.normal(size=(7, 16, 16))
        off = rng.uniform(-9, 9, size=(7, 2)) * [1, 0.4] + [100, 50]
        self.compare(patches, off, {"patches": patches, "off": off})

    def test_every_patch_of_a_group_has_its_place(self):
        rng = np.random.default_rng(2)
        patches = rng.normal(size=(5, 4, 16, 16)) + 1j * rng.normal(size=(5, 4, 16, 16))
        off, rel = rng.uniform(-9, 9, size=(5, 2)) * [0.5, 1], rng.uniform(-3, 3, size=(5, 4, 1, 2))
        places = (off[:, None] - rel[:, :, 0]).reshape(-1, 2)
        self.compare(patches.reshape(-1, 16, 16), places, {"patches": patches, "off": off, "coords_relative": rel}, "--stitch.patches", "all")
        np.savez(self.dir / "in.npz", patches=patches, off=off[:4], coords_relative=rel)
        said = self.fathom("op", "stitch", self.dir / "in.npz", self.dir / "out.npz", "--stitch.patches", "all", code=3)
        self.assertIn("axis 'group' is 5 in patches [group=5 chan=4 row=16 col=16] but 4 in off [group=4 xy=2]", said)


class GroupsDoNotMeet(Case):
    """The founding report: from 16 groups of four on, one canvas held all of them."""

    def test_merge_of_any_number_of_groups_gives_each_the_same_bytes(self):
        rng = np.random.default_rng(2)
        patches = (rng.normal(size=(65, 4, 64, 64)) + 1j * rng.normal(size=(65, 4, 64, 64))).astype(np.complex64)
        rel = rng.uniform(-6, 6, size=(65, 4, 1, 2)).astype(np.float32)
        all_of_them = None
        for n in (65, 64, 63, 17, 16, 15, 1):
            got = self.op("merge", {"patches": patches[:n], "coords_relative": rel[:n], "M": 78})["merged"]
            self.assertEqual(got.shape, (n, 78, 78))
            all_of_them = got if all_of_them is None else all_of_them
            self.assertEqual(got.tobytes(), all_of_them[:n].tobytes())
        got = self.op("merge", {"patches": patches, "coords_relative": rel, "M": 78}, "--memory", "24M",
                      "--threads", 1)["merged"]
        self.assertEqual(got.tobytes(), all_of_them.tobytes())

    def test_offsets_of_another_number_are_refused_with_both_shapes(self):
        np.savez(self.dir / "in.npz", images=np.zeros((128, 78, 78), np.complex64), offsets_xy=np.zeros((32, 2), np.float32))
        said = self.fathom("op", "translate", self.dir / "in.npz", self.dir / "out.npz", code=3)
        self.assertIn("axis 'flat' is 128 in images [flat=128 row=78 col=78] but 32 in offsets_xy [flat=32 xy=2]", said)
        self.assertFalse((self.dir / "out.npz").exists())

    def test_wrong_axes_are_refused(self):
        good = {"patches": np.zeros((3, 4, 32, 32), np.complex64), "coords_relative": np.zeros((3, 4, 1, 2), np.float32),
                "M": np.int64(38)}
        wrong = [("merge", {**good, "coords_relative": np.zeros((3, 2, 1, 2), np.float32)}, "chan"),
                 ("merge", {**good, "coords_relative": np.zeros((2, 4, 1, 2), np.float32)}, "group"),
                 ("merge", {**good, "M": np.int64(20)}, "smaller than a patch"),
                 ("merge", {**good, "patches": np.zeros((3, 32, 32), np.complex64)}, "shape (3, 32, 32)"),
                 ("diffract", {"obj": np.zeros((4, 32, 32), np.complex64), "probe": np.zeros((16, 16), np.complex64)}, "row"),
                 ("loss", {"amplitude": np.zeros((4, 8)), "observed_amp": np.zeros((5, 8))}, "'a' is 4"),
                 ("translate", {"images": np.zeros((4, 8, 8))}, "offsets_xy"),
                 ("translate", {"images": np.zeros((4, 8, 8)), "offsets_xy": np.zeros((4, 3))}, "xy"),
                 ("stitch", {"patches": np.ones((3, 32, 32), np.complex64), "off": [[1, 2], [3, 4], [5, np.nan]]},
                  "y of the position of patch 2 is NaN"),
                 ("cnn", {"X": np.zeros((1, 1, 32, 32), np.float32)}, "64, 128, 256 or 512")]
        for name, arrays, part in wrong:
            with self.subTest(name=name, part=part):
                np.savez(self.dir / "in.npz", **arrays)
                self.assertIn(part, self.fathom("op", name, self.dir / "in.npz", self.dir / "out.npz", code=3))
                self.assertFalse((self.dir / "out.npz").exists())

    def test_unknown_blocks_and_flags_are_refused(self):
        said = self.fathom("op", "transslate", "a.npz", "b.npz", code=2)
        self.assertIn("translate", said)
        self.fathom("op", "merge", "a.npz", "b.npz", "--merge", "centrl", code=2)
        self.fathom("op", "merge", "a.npz", code=2)
        self.fathom("op", "merge", self.dir / "missing.npz", self.dir / "b.npz", code=3)


class Step(Case):
    def arrays(self, groups=2, seed=3):
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[:64, :64] - 31.5
        probe = np.exp(-(x**2 + y**2) / 150) * np.exp(1j * x / 20)
        return {"X": rng.gamma(1, 1, size=(groups, 4, 64, 64)).astype(np.float32),
                "coords_relative": rng.uniform(-3, 3, size=(groups, 4, 1, 2)).astype(np.float32),
                "probe": probe.astype(np.complex64)}

    def test_loss_and_prediction_go_together(self):
        a = self.arrays()
        flags = ["--n_filters_scale", 1, "--nphotons", 1e5]
        got = self.op("step", a, *flags)
        names = [k for k in got if k.startswith("grad.")]
        self.assertEqual(len(names), 44)
        f = np.sqrt(32**2 / (a["X"].astype(float)**2).sum((2, 3)).mean())
        seen = np.sqrt(1e5) / 32 * f * a["X"]
        rate = got["pred"].astype(float)**2
        want = (rate - seen**2 * np.log(rate)).mean()
        self.assertAlmostEqual(float(got["loss"]), want, delta=1e-5 * abs(want))
        mae = self.op("step", a, *flags, "--mae_weight", 1, "--nll_weight", 0)
        self.assertAlmostEqual(float(mae["loss"]), np.abs(got["pred"] - seen).mean(), delta=1e-4)

    def test_single_and_double_agree(self):
        a = self.arrays(1)
        flags = ["--n_filters_scale", 1, "--nphotons", 1e5]
        double, single = self.op("step", a, *flags), self.op("step", a, *flags, "--precision", "single")
        self.assertEqual((double["grad_w"].dtype, single["grad_w"].dtype), (np.float64, np.float32))
        for name, want in double.items():
            self.assertLess(np.abs(single[name] - want).max(), 0.02 * np.abs(want).max(), name)
        self.assertAlmostEqual(float(single["loss"]), float(double["loss"]), delta=1e-4 * abs(double["loss"]))


if __name__ == "__main__":
    unittest.main()
