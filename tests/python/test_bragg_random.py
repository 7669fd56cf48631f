"""Random command lines of bragg against the second simulator of bragg_reference.py, in both modes;
and that simulator against the golden images.
seconds: 30"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import bragg_reference as reference

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path("tests/golden/bragg").resolve()
CASES = int(os.environ.get("FATHOM_BRAGG_CASES", "40"))
FIRST = int(os.environ.get("FATHOM_BRAGG_FIRST", "0"))


def number(r, low, high):
    return f"{r.uniform(low, high):.{r.choice((3, 8))}g}"  # many digits make a header of more than 512 bytes


class Command:
    """A command line drawn from a seed, with what makes sense together."""

    def __init__(self, seed, mode):
        r = self.r = random.Random(f"{seed} {mode}")
        self.words, self.mode = [], mode
        self.crystal()
        self.detector()
        self.beam()
        self.sampling()

    def add(self, *words):
        self.words += [str(w) for w in words]

    def maybe(self, chance, *words):
        if self.r.random() < chance:
            self.add(*words)

    def crystal(self):
        r = self.r
        kind = r.choice(["cell", "cell", "cell", "mat", "both"])
        if kind != "cell":
            self.add("-mat", "A.mat")
        if kind != "mat":
            edges = [number(r, 30, 60) for _ in range(3)]
            angles = r.choice([["90"] * 3, [number(r, 75, 110) for _ in range(3)], ["90", number(r, 80, 110), "90"], []])
            self.add("-cell", *edges, *angles)
        self.maybe(0.6, "-misset", *(number(r, -180, 180) for _ in range(3)))
        table = r.choice(["P1_full.hkl", "P1_full.hkl", "P1_sparse.hkl", "P1_tiny.hkl", None])
        if table:
            self.add("-hkl", table)
        if not table or r.random() < 0.3:
            self.add("-default_F", number(r, 1, 50))
        if r.random() < 0.15:
            self.add("-xtalsize", number(r, 5e-6, 3e-5))
        elif r.random() < 0.5:
            self.add("-N", r.randint(1, 8))
        else:
            for axis in "abc":
                self.add(f"-N{axis}", r.randint(1, 8))
        self.shape = r.choice(["-square_xtal", "-round_xtal", "-gauss_xtal", "-tophat_spots", None, None])
        if self.shape:
            self.add(self.shape)
            if self.shape == "-gauss_xtal" or self.shape == "-tophat_spots":
                self.add("-fudge", number(r, 0.005, 0.1))
            else:
                self.maybe(0.3, "-fudge", number(r, 0.5, 1.5))
        self.maybe(0.3, r.choice(["-interpolate", "-nointerpolate"]))
        if r.random() < 0.3:
            self.add("-mosaic", number(r, 0.1, 2))
            self.maybe(0.8, "-mosaic_dom", r.randint(1, 5))
            self.maybe(0.5, "-mosaic_seed", r.randint(1, 10**6))

    def detector(self):
        r = self.r
        self.add("-distance", number(r, 20, 120), "-pixel", number(r, 0.3, 0.9))
        self.add("-detpixels_f", r.randint(9, 24), "-detpixels_s", r.randint(9, 24))
        self.maybe(0.7, r.choice(["-mosflm", "-xds", "-adxv", "-denzo", "-dials"]))
        self.maybe(0.3, "-Xbeam", number(r, 2, 12))
        self.maybe(0.3, "-Ybeam", number(r, 2, 12))
        self.maybe(0.15, "-Xclose", number(r, 2, 12))
        self.maybe(0.15, "-ORGX", number(r, 2, 20))
        self.maybe(0.15, "-ORGY", number(r, 2, 20))
        for axis in "xyz":
            self.maybe(0.3, f"-detector_rot{axis}", number(r, -20, 20))
        self.maybe(0.25, "-twotheta", number(r, -20, 30))
        self.maybe(0.15, "-close_distance", number(r, 20, 100))
        if r.random() < 0.25:
            for flag, v in (("fdet", (0, 0, 1)), ("sdet", (0, -1, 0)), ("odet", (1, 0, 0)), ("beam", (1, 0, 0)),
                            ("polar", (0, 0, 1))):
                self.maybe(0.5, f"-{flag}_vector", *(f"{x + r.uniform(-0.1, 0.1):.3g}" for x in v))
            self.maybe(0.3, "-spindle_axis", *(number(r, -1, 1) for _ in range(3)))
        self.maybe(0.2, "-pivot", r.choice(["sample", "beam"]))
        if self.mode == "c":
            self.maybe(0.1, "-curved_det")
        self.maybe(0.1, "-point_pixel")
        if r.random() < 0.25:
            self.add("-detector_thick", number(r, 100, 500))
            self.maybe(0.7, "-detector_abs", number(r, 100, 900))
            self.maybe(0.6, "-thicksteps", r.randint(1, 4))
        self.maybe(0.2, "-roi", r.randint(0, 6), r.randint(7, 26), r.randint(-1, 6), r.randint(7, 26))

    def beam(self):
        r = self.r
        self.maybe(0.8, r.choice(["-lambda", "-wave"]), number(r, 0.8, 2.5))
        self.maybe(0.1, "-energy", number(r, 8000, 14000))
        if r.random() < 0.25:
            self.add("-dispersion", number(r, 0.5, 5))
            self.maybe(0.8, "-dispsteps", r.randint(1, 4))
        elif r.random() < 0.25:
            self.add("-hdivrange", number(r, 1, 20), "-hdivsteps", r.randint(1, 4))
            self.maybe(0.7, "-vdivrange", number(r, 1, 20), "-vdivsteps", r.randint(1, 4))
            self.maybe(0.4, "-square_div")
        elif r.random() < 0.15:
            self.add("-sourcefile", r.choice(["sources.txt", "sources_short.txt"]))
        self.maybe(0.3, "-fluence", "1e28")
        self.maybe(0.1, "-flux", "1e12", "-exposure", "0.1", "-beamsize", "0.00002")
        self.maybe(0.4, "-polar", number(r, -1, 1))
        self.maybe(0.15, "-nopolar")

    def sampling(self):
        r = self.r
        self.maybe(0.95, "-oversample", r.randint(1, 2))
        if r.random() < 0.4:
            self.add("-phi", r.choice(["0", "0", "-1", number(r, -90, 90)]))
            self.maybe(0.7, "-osc", r.choice(["2", number(r, 0.2, 5)]))
            self.maybe(0.7, "-phisteps", r.randint(1, 4))
        self.maybe(0.2, "-dmin", number(r, 1.5, 6))
        for name in ("thick", "polar", "omega"):
            self.maybe(0.12, f"-oversample_{name}")
        self.maybe(0.1, "-water", number(r, 0.01, 0.05))
        self.add("-noprogress", "-nonoise", "-nopgm", "-seed", "1")


class Random(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bragg-"))
        for file in (GOLDEN / "inputs").iterdir():
            (self.dir / file.name).symlink_to(file)
        self.home = os.getcwd()
        os.chdir(self.dir)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.dir)

    def compare(self, seed, mode):
        command = Command(seed, mode)
        text = f"seed {seed}: fathom bragg --compat {mode} " + " ".join(command.words)
        with np.errstate(all="ignore"):
            wanted = reference.image(command.words, reference.QUIRKS if mode == "c" else set())
            wanted = wanted.astype(np.float32).astype(float)
        for file in self.dir.glob("*image*"):
            file.unlink()
        pathlib.Path("Fdump.bin").unlink(missing_ok=True)  # compat c would read that of the case before
        done = subprocess.run([PROGRAM, "bragg", "--compat", mode, *command.words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, text + "\n" + done.stderr)
        self.headers(mode, text)
        got = np.fromfile("floatimage.bin", np.float32).astype(float)
        self.assertEqual(got.size, wanted.size, text)
        wanted = wanted.ravel()
        top = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
        close = np.abs(got - wanted) <= 1e-5 * np.abs(wanted) + 1e-9 * top
        close |= ~np.isfinite(wanted) & ~np.isfinite(got)
        allowed = 2 if command.shape == "-tophat_spots" else 0  # a threshold may round either way
        at = int(np.argmin(close))
        self.assertLessEqual(int((~close).sum()), allowed, f"{text}\npixel {at}: {got[at]} and not {wanted[at]}")
        return top > 0

    def headers(self, mode, text):
        """The header of the int image has the length it should have, and the pixels follow it."""
        file = pathlib.Path("intimage.img").read_bytes()
        end = file.index(b"}\f") + 2
        self.assertEqual(file[:15], b"{\nHEADER_BYTES=", text)
        said = int(file[15:file.index(b";")])
        if mode == "c":
            self.assertEqual(said, 512, text)
            size = max(end, 512)
        else:
            self.assertEqual(said, -(-end // 512) * 512, text)
            size = said
        self.long += size > 512
        self.assertEqual(file[end:size], b" " * (size - end), text)
        self.assertEqual(len(file) - size, os.path.getsize("floatimage.bin") // 2, text)

    def many(self, mode):
        lit = self.long = 0
        for seed in range(FIRST, FIRST + CASES):
            with self.subTest(seed=seed, mode=mode):
                lit += self.compare(seed, mode)
        self.assertGreater(lit, CASES // 2, "most of the images must not be empty")
        self.assertGreater(self.long, CASES // 8, "some of the headers must be long")

    def test_random_commands_of_compat_c(self):
        self.many("c")

    def test_random_commands_of_compat_spec(self):
        self.many("spec")


class Golden(unittest.TestCase):
    def test_the_second_simulator_gives_the_golden_images(self):
        home = os.getcwd()
        os.chdir(GOLDEN / "inputs")
        try:
            n = 0
            for case in json.loads((GOLDEN / "public/manifest.json").read_text()):
                file = GOLDEN / f"public/{case['name']}.float.bin"
                if not file.exists():
                    continue
                wanted = np.fromfile(file, np.float32).astype(float)
                got = reference.image(case["args"].split()).ravel()
                bad = np.abs(got - wanted) > 1e-5 * wanted + 1e-9 * wanted.max()
                self.assertEqual(int(bad.sum()), 0, case["name"])
                n += 1
            self.assertEqual(n, 44)
        finally:
            os.chdir(home)


if __name__ == "__main__":
    unittest.main()
