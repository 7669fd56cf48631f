"""Images of the instrument bragg from Python: the bytes of the program's, errors, derivatives.
seconds: 5"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import fathom

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ROOT / "configs/demo/bragg/small.hkl"
FLAGS = """-cell 28 33 38 90 95 90 -N 5 -mosaic 0.5 -mosaic_domains 3 -lambda 1.0 -distance 100
-pixel 0.8 -detpixels_f 96 -detpixels_s 80 -oversample 1""".split()


class Images(unittest.TestCase):
    flags = dict(cell=[28, 33, 38, 90, 95, 90], N=5, mosaic=0.5, mosaic_domains=3, lambda_=1.0,
                 distance=100, pixel=0.8, detpixels_f=96, detpixels_s=80, oversample=1)

    def image(self, *words, compat):
        """The float file of the program."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bragg-"))
        self.addCleanup(shutil.rmtree, folder, True)
        r = subprocess.run([PROGRAM, "bragg", "--compat", compat, "-hkl", SMALL, *FLAGS,
                            *map(str, words), "-floatfile", "one.bin"], cwd=folder,
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return np.fromfile(folder / "one.bin", np.float32).reshape(80, 96)

    def test_the_image_of_the_program(self):
        for compat in ("spec", "c"):
            want = self.image("-misset", 10, 20, 30, compat=compat)
            for memory, threads in (("1G", 2), ("16M", 1)):
                image = fathom.bragg(hkl=SMALL, misset=(10, 20, 30), compat=compat,
                                     memory=memory, threads=threads, **self.flags)
                self.assertEqual(image.dtype, np.float32)
                self.assertEqual(image.tobytes(), want.tobytes())

    def test_switches_and_quirks(self):
        flags = dict(self.flags, default_F=100, phi=0, osc=2, phisteps=4)
        a = fathom.bragg(**flags)
        self.assertEqual(fathom.bragg(nopolar=False, **flags).tobytes(), a.tobytes())
        self.assertNotEqual(fathom.bragg(nopolar=True, **flags).tobytes(), a.tobytes())
        b = fathom.bragg(quirks={"phi-carryover": True}, **flags)
        self.assertNotEqual(b.tobytes(), a.tobytes())
        f = fathom.bragg(precision="f32", **flags)
        self.assertGreater(np.corrcoef(f.ravel(), a.ravel())[0, 1], 0.9999)
        r = [fathom.bragg(misset="random", seed=s, **flags).tobytes() for s in (1, 1, 2)]
        self.assertEqual(r[0], r[1])
        self.assertNotEqual(r[0], r[2])

    def test_files_that_are_named_are_those_of_the_program(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bragg-"))
        self.addCleanup(shutil.rmtree, folder, True)
        names = dict(floatfile="f.bin", intfile="i.img", noisefile="n.img", pgmfile="p.pgm", smv32="s.img",
                     cbf="c.cbf", dump="F.bin")
        for compat in ("spec", "c"):
            (folder / compat).mkdir()
            theirs = [w for k, v in names.items() for w in (("--" if k in ("smv32", "cbf") else "-") + k, v)]
            r = subprocess.run([PROGRAM, "bragg", "--compat", compat, "-hkl", SMALL, *FLAGS, *theirs, "-seed", "3",
                                "-adc", "12", "-scale", "2"], cwd=folder / compat, capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stderr)
            image = fathom.bragg(hkl=SMALL, compat=compat, seed=3, adc=12, scale=2, mosaic_seed=12345678,
                                 **{k: folder / v for k, v in names.items()}, **self.flags)
            for name in names.values():
                self.assertEqual((folder / name).read_bytes(), (folder / compat / name).read_bytes(), (compat, name))
                (folder / name).unlink()
            self.assertEqual(image.tobytes(), (folder / compat / "f.bin").read_bytes())
        # one alone, a device, and none: nothing else is written
        home = os.getcwd()
        self.addCleanup(os.chdir, home)
        os.chdir(folder)
        before = sorted(folder.rglob("*"))
        again = fathom.bragg(hkl=SMALL, intfile="/dev/null", **self.flags)
        self.assertEqual(fathom.bragg(hkl=SMALL, **self.flags).tobytes(), again.tobytes())
        self.assertEqual(sorted(folder.rglob("*")), before)
        fathom.bragg(hkl=SMALL, cbf="only.cbf", **self.flags)
        self.assertEqual(sorted(set(folder.rglob("*")) - set(before)), [folder / "only.cbf"])

    def test_outputs_without_an_effect_are_errors(self):
        good = dict(self.flags, default_F=100)
        for wrong, said in ((dict(adc=3), "adc: it is the offset"), (dict(scale=3), "scale: it is the scale"),
                            (dict(pgmscale=3), "pgmscale: it is the scale"), (dict(printout=True), "printout: it prints"),
                            (dict(printout_pixel=[1, 2]), "printout_pixel: it prints"),
                            (dict(progress=True), "progress: it prints"),
                            (dict(intfile="/nowhere/i.img"), "/nowhere/i.img")):
            with self.assertRaises(fathom.Error, msg=wrong) as e:
                fathom.bragg(**dict(good, **wrong))
            self.assertIn(said, str(e.exception))
        with self.assertRaises(fathom.Error) as e:
            fathom.bragg.jacobian(["a"], intfile="/dev/null", **good)
        self.assertIn("derivatives are not written to files", str(e.exception))

    def test_one_number_for_all_edges_or_one_for_each(self):
        flags = {k: v for k, v in self.flags.items() if k not in ("N", "detpixels_f", "detpixels_s")}
        flags.update(default_F=100)
        a = fathom.bragg(N=[36, 47, 29], detpixels=[96, 80], **flags)
        b = fathom.bragg(Na=36, Nb=47, Nc=29, detpixels_f=96, detpixels_s=80, **flags)
        self.assertEqual((a.shape, a.tobytes()), ((80, 96), b.tobytes()))
        a = fathom.bragg(xtalsize=[1e-5, 2e-5, 3e-5], detsize=(9.6, 8.0), **flags)
        b = fathom.bragg(xtal_thick=1e-5, xtal_width=2e-5, xtal_height=3e-5, detsize_f=9.6, detsize_s=8.0, **flags)
        self.assertEqual((a.shape, a.tobytes()), ((10, 12), b.tobytes()))
        for wrong in ([1, 2], [1, 2, 3, 4], [1.5, 2, 3]):
            with self.assertRaises(fathom.Error):
                fathom.bragg(N=wrong, detpixels=8, **flags)

    def test_mistakes_are_errors(self):
        good = dict(self.flags, default_F=100)
        for wrong, said in ((dict(distnace=1), "distance"), (dict(N="many"), "many"),
                            (dict(compat="b"), "spec"), (dict(quirks={"no": True}), "no"),
                            (dict(hkl="/nothing/here"), "/nothing/here")):
            with self.assertRaises(fathom.Error) as e:
                fathom.bragg(**dict(good, **wrong))
            self.assertIn(said, str(e.exception))
        with self.assertRaises(fathom.Error):
            fathom.bragg(cell=[1, 2, 3])
        with self.assertRaises(fathom.Error) as e:
            fathom.bragg(memory="1M", detpixels=5000, cell=[10], default_F=1)
        self.assertEqual(e.exception.exit_code, 4)

    def test_jacobian(self):
        flags = dict(self.flags, default_F=100, misset=(10, 20, 30))
        self.assertEqual(fathom.bragg.params["dist"], "mm")
        j = fathom.bragg.jacobian(["dist", "a", "mz"], **flags)
        self.assertEqual(j.shape, (80, 96, 3))
        one = fathom.bragg.jacobian("a", **flags)
        self.assertEqual(one[:, :, 0].tobytes(), np.ascontiguousarray(j[:, :, 1]).tobytes())

        def near(**change):
            return fathom.bragg(**dict(flags, **change)).astype(float)
        h = 1e-3
        for k, up, down in ((0, dict(distance=100 + h), dict(distance=100 - h)),
                            (1, dict(cell=[28 + h, 33, 38, 90, 95, 90]),
                             dict(cell=[28 - h, 33, 38, 90, 95, 90])),
                            (2, dict(misset=(10, 20, 30 + h)), dict(misset=(10, 20, 30 - h)))):
            slope = (near(**up) - near(**down)) / (2 * h)
            self.assertGreater(np.corrcoef(slope.ravel(), j[:, :, k].ravel())[0, 1], 0.9999)
            self.assertAlmostEqual(np.linalg.norm(slope) / np.linalg.norm(j[:, :, k]), 1, delta=0.01)
        with self.assertRaises(fathom.Error) as e:
            fathom.bragg.jacobian("distance", **flags)
        self.assertIn("dist", str(e.exception))


if __name__ == "__main__":
    unittest.main()
