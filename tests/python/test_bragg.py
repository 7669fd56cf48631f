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
