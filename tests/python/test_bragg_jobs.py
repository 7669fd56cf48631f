"""Jobs of the instrument bragg as people run them: series and stills against single images of the
program, the container through h5py, kills and resumes to the byte.
seconds: 40"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ROOT / "configs/demo/bragg/small.hkl"
CONFIG = """\
instrument: bragg
name: test
output_dir: out
crystal: {hkl: small.hkl, cell: [28, 33, 38, 90, 95, 90], misset: [10, 20, 30], N: 5, mosaic: 0.5, domains: 3}
beam: {lambda: 1.0}
detector: {distance: 100, pixel: 0.8, pixels: [96, 80]}
scan: {osc: 1, steps: 3, frames: 4}
sampling: {oversample: 1}
figures: {dpi: 40}
"""
# the same as flags, without what changes from frame to frame
FLAGS = """-hkl small.hkl -cell 28 33 38 90 95 90 -N 5 -mosaic 0.5 -mosaic_domains 3 -lambda 1.0
-distance 100 -pixel 0.8 -detpixels_f 96 -detpixels_s 80 -oversample 1""".split()
POINTS = ["stage_start", "stage_planned", "mid_run", "mid_run:3", "before_outputs", "after_outputs",
          "before_record", "after_record"]


def files_of(folder):
    """Results of a folder as {name: bytes}, without records."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*"))
            if p.is_file() and ".fathom" not in p.parts}


def read_cbf(path):
    """Header and pixels of a CBF with byte offsets: this file's own reading of the format."""
    file = pathlib.Path(path).read_bytes()
    start = file.index(b"\x0c\x1a\x04\xd5") + 4
    text = file[:start].decode("latin-1")
    size = {key: int(value) for key, value in re.findall(r"X-Binary-Size(\S*): (\d+)", text)}
    packed = file[start:start + size[""]]
    pixels, at, last = [], 0, 0
    while at < len(packed):
        for width, escape in ((1, -0x80), (2, -0x8000), (4, None)):
            step = int.from_bytes(packed[at:at + width], "little", signed=True)
            at += width
            if step != escape:
                break
        last += step
        pixels.append(last)
    return text, np.array(pixels).reshape(size["-Second-Dimension"], size["-Fastest-Dimension"])


class Case(unittest.TestCase):
    config = CONFIG

    def setUp(self):
        self.dir = self.folder()

    def folder(self):
        path = pathlib.Path(tempfile.mkdtemp(prefix="bragg-"))
        self.addCleanup(shutil.rmtree, path, True)
        (path / "job.yaml").write_text(self.config)
        shutil.copy(SMALL, path / "small.hkl")
        return path

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if k != "FATHOM_KILL_AT"}
        return dict(env, **more)

    def fathom(self, *words, expect=0, folder=None, **env):
        r = subprocess.run([PROGRAM, *map(str, words)], cwd=folder or self.dir, env=self.env(**env),
                           capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, expect, r.stdout + r.stderr)
        return r

    def stage(self, name, *args, **more):
        return self.fathom("bragg", name, "-c", "job.yaml", *args, **more)

    def image(self, *words, compat="spec", **more):
        """A single image of the program: its float file."""
        self.fathom("bragg", "--compat", compat, *FLAGS, *words, "-floatfile", "one.bin", **more)
        return np.fromfile(self.dir / "one.bin", np.float32).reshape(80, 96)

    def h5(self, name="out/series/frames.h5"):
        if h5py is None:
            self.skipTest("python3-h5py is not installed")
        f = h5py.File(self.dir / name)
        self.addCleanup(f.close)
        return f


class Series(Case):
    def test_memory_keeps_to_the_plan(self):
        for args in ((), ("--set", "output.counts=true", "--set", "output.gzip=2", "--set",
                          "output.noise=true"), ("--memory", "20M")):
            for stage in ("render", "figures"):
                self.stage(stage, "--set", "detector.pixels=700", "--set", "scan.frames=2", *args)
                record = json.loads((self.dir / f"out/.fathom/{stage}.series.json").read_text())
                self.assertGreaterEqual(record["planned_bytes"], record["growth_bytes"], (stage, args))
            shutil.rmtree(self.dir / "out")

    def test_an_input_that_is_a_pipe(self):
        os.remove(self.dir / "small.hkl")
        os.mkfifo(self.dir / "small.hkl")  # nobody will write into it
        for code, words in ((1, ("run", "render", "--no-live")), (3, ("bragg", "render")), (3, ("bragg", "render", "--plan"))):
            done = self.fathom(*words, "-c", "job.yaml", expect=code)
            self.assertIn("needs a file, and this is a pipe", done.stdout + done.stderr)
        self.fathom("run", "render", "--dry-run", "-c", "job.yaml")

    def test_frames_are_images_of_the_program(self):
        for compat in ("spec", "c"):
            self.stage("render", "--set", f"compat={compat}")
            f = self.h5()
            for i in range(4):
                one = self.image("-misset", 10, 20, 30, "-phi", i, "-osc", 1, "-phisteps", 3,
                                 compat=compat)
                self.assertEqual(one.tobytes(), f["entry/data/data"][i].tobytes(), (compat, i))
            f.close()

    def test_frames_with_other_settings(self):
        turn = ["-misset", 10, 20, 30, "-osc", 1, "-phisteps", 3]
        self.image(*turn, "-intfile", "mask.img", "-adc", 0, "-scale", 1)
        pixels = np.fromfile(self.dir / "mask.img", "<u2", offset=512)
        pixels[:] = np.arange(len(pixels)) % 7 > 1  # two of seven pixels are masked
        header = (self.dir / "mask.img").read_bytes()[:512]
        (self.dir / "mask.img").write_bytes(header + pixels.tobytes())
        for config, flags in (
                (["crystal.N=2"], ["-N", 2]),  # interpolated; in c mode until the first gap
                (["detector.mask=mask.img"], ["-mask", "mask.img"]),
                (["detector.roi=[10, 70, 5, 60]", "sampling.dmin=4"], ["-roi", 10, 70, 5, 60, "-dmin", 4]),
                (["crystal.shape=gauss", "beam.dispersion=2", "beam.dispsteps=3", "beam.polar=0.9"],
                 ["-gauss_xtal", "-dispersion", 2, "-dispsteps", 3, "-polar", 0.9]),
                (["detector.thick=300", "detector.abs=200", "detector.layers=3", "crystal.water=0.01",
                  "detector.convention=xds", "detector.rot=[1, 2, 3]", "detector.org=[40, 50]"],
                 ["-detector_thick", 300, "-detector_abs", 200, "-detector_thicksteps", 3, "-water", 0.01,
                  "-xds", "-detector_rotx", 1, "-detector_roty", 2, "-detector_rotz", 3, "-ORGX", 40,
                  "-ORGY", 50])):
            for compat in ("spec", "c"):
                sets = [w for c in [*config, "scan.frames=2", f"compat={compat}"] for w in ("--set", c)]
                self.stage("render", *sets)
                f = self.h5()
                for i in range(2):
                    one = self.image(*turn, "-phi", i, *flags, compat=compat)
                    self.assertGreater(one.max(), 0)
                    self.assertEqual(one.tobytes(), f["entry/data/data"][i].tobytes(),
                                     (config, compat, i))
                f.close()

    def test_the_container_describes_itself(self):
        self.stage("render")
        f = self.h5()
        e = f["entry"]
        self.assertEqual(e["definition"][()], b"NXmx")
        for name, kind in (("", "NXentry"), ("data", "NXdata"), ("instrument", "NXinstrument"),
                           ("instrument/detector", "NXdetector"), ("instrument/beam", "NXbeam"),
                           ("instrument/detector/module", "NXdetector_module"),
                           ("sample", "NXsample"), ("fathom", "NXcollection")):
            self.assertEqual((e[name] if name else e).attrs["NX_class"], kind)
        self.assertEqual((f.attrs["default"], e.attrs["default"], e["data"].attrs["signal"]),
                         ("entry", "data", "data"))
        self.assertEqual(list(e["data"].attrs["axes"]), ["omega", ".", "."])
        self.assertEqual(e["data/data"].shape, (4, 80, 96))
        self.assertEqual(list(e["data/omega"]), [0, 1, 2, 3])
        self.assertEqual(list(e["sample/transformations/omega_end"]), [1, 2, 3, 4])
        d = e["instrument/detector"]
        self.assertAlmostEqual(d["distance"][()], 0.1)
        self.assertEqual(d["distance"].attrs["units"], "m")
        self.assertEqual((d["x_pixel_size"][()], d["beam_center_x"].attrs["units"]),
                         (0.8e-3, "pixel"))
        self.assertEqual([e[n][()] for n in ("start_time", "end_time_estimated", "instrument/name")],
                         [b"2000-01-01T00:00:00Z", b"2000-01-01T00:00:04Z", b"Fathom bragg"])
        self.assertEqual(d["sensor_material"][()], b"Si")
        self.assertGreater(d["sensor_thickness"][()], 0)
        self.assertAlmostEqual(d["beam_center_x"][()], 49)
        self.assertAlmostEqual(d["beam_center_y"][()], 41)
        self.assertAlmostEqual(e["instrument/beam/incident_wavelength"][()], 1.0)
        np.testing.assert_allclose(e["sample/unit_cell"], [28, 33, 38, 90, 95, 90], rtol=1e-12)
        own = e["fathom"]
        self.assertIn("crystal.misset: [10, 20, 30]", own["settings"][()].decode())
        for path in ("small.hkl", "output_dir", str(self.dir)):  # equal jobs, wherever they lie
            self.assertNotIn(path, own["settings"][()].decode())
        self.assertEqual(own["quirks"][()], 0)
        self.assertEqual(own["inputs/crystal.hkl"][()], b"small.hkl")
        self.assertEqual(len(own["inputs/crystal.hkl"].attrs["xxh64"]), 16)
        self.assertAlmostEqual(own["parameters/dist"][()], 100)
        self.assertEqual(own["parameters/dist"].attrs["units"], "mm")
        np.testing.assert_allclose(own["photons"], e["data/data"][()].astype(float).sum((1, 2)))
        np.testing.assert_array_equal(own["largest"], e["data/data"][()].max((1, 2)))

        def follow(place, chain):  # every transformation leads to the laboratory
            self.assertLess(len(chain), 5)
            return chain if place == "." else follow(f[place].attrs["depends_on"], chain + [place])
        for start in (d["depends_on"][()], e["sample/depends_on"][()],
                      d["module/fast_pixel_direction"].name, d["module/slow_pixel_direction"].name):
            self.assertGreater(len(follow(start, [])), 0)

    def indices(self, f, frame, phi):
        """h k l of the brightest pixel, from what stands in the container alone."""
        e = f["entry"]
        d = e["instrument/detector"]
        data = e["data/data"][frame]
        slow, fast = np.unravel_index(np.argmax(data), data.shape)

        def step(x):
            return x[()] * x.attrs["vector"]
        p = (step(d["transformations/translation"]) + (fast + 0.5) * step(d["module/fast_pixel_direction"])
             + (slow + 0.5) * step(d["module/slow_pixel_direction"]))
        q = (p / np.linalg.norm(p) - [0, 0, 1]) / e["instrument/beam/incident_wavelength"][()]
        u = e["sample/transformations/omega"].attrs["vector"]
        t = np.radians(-phi)
        q = u * (u @ q) * (1 - np.cos(t)) + q * np.cos(t) + np.cross(u, q) * np.sin(t)
        return np.linalg.solve(e["sample/ub_matrix"][frame], q)

    def test_spots_are_where_the_container_says(self):
        for convention in ("mosflm", "xds", "dials", "adxv", "denzo"):
            self.stage("render", "--set", f"detector.convention={convention}", "--set", "crystal.N=12",
                       "--set", "crystal.mosaic=~", "--set", "crystal.domains=~", "--set",
                       "scan.steps=1", "--set", "scan.frames=3", "--set", "detector.rot=[3, -4, 5]",
                       "--set", "detector.pixels=[192, 160]", "--set", "detector.pixel=0.4")
            f = self.h5()
            for i in range(3):
                hkl = self.indices(f, i, f["entry/data/omega"][i])
                self.assertLess(np.abs(hkl - np.round(hkl)).max(), 0.12, (convention, i, hkl))
                self.assertGreater(np.abs(np.round(hkl)).max(), 0)
            u = f["entry/sample/orientation_matrix"][0]
            np.testing.assert_allclose(u @ u.T, np.eye(3), atol=1e-9)
            self.assertAlmostEqual(np.linalg.det(u), 1)
            f.close()

    def test_files_of_each_frame(self):
        for compat in ("spec", "c"):
            self.stage("render", "--set", f"compat={compat}", "--set", "output.float=true", "--set",
                       "output.smv=true", "--set", "output.noise=true", "--set", "output.pgm=true",
                       "--set", "output.cbf=true", "--set", "scan.frames=2", "--set", "seed=7")
            for i in range(2):
                seed = 7 + i if compat == "c" else 7
                self.image("-misset", 10, 20, 30, "-phi", i, "-osc", 1, "-phisteps", 3, "-intfile",
                           "i.img", "-noisefile", "n.img", "-pgmfile", "p.pgm", "-seed", seed,
                           "-mosaic_seed", 7, "--cbf", "c.cbf", "--quirk", "auto-fdump=off", compat=compat)
                for mine, theirs in (("floatimage", "one.bin"), ("intimage", "i.img"),
                                     ("image", "p.pgm"), ("noiseimage", "n.img"), ("image", "c.cbf")):
                    end = theirs.split(".")[1]
                    if (mine == "noiseimage" or end == "cbf") and compat == "spec" and i:
                        continue  # the number of the frame is in the key of the noise
                    got = (self.dir / f"out/series/{mine}_{i + 1:05d}.{end}").read_bytes()
                    self.assertEqual(got, (self.dir / theirs).read_bytes(), (compat, i, mine))
            a, b = ((self.dir / f"out/series/noiseimage_{i:05d}.img").read_bytes() for i in (1, 2))
            self.assertNotEqual(a, b)
            left = {p.name for p in (self.dir / "out/series").iterdir()}
            self.assertFalse({n for n in left if n.startswith("frames") and n != "frames.h5"}, left)

    def test_a_cbf_of_each_frame(self):
        """Photons rounded; with counts, those of the container; the start of each frame in its header."""
        for counts in ("false", "true"):
            self.stage("render", "--set", "output.cbf=true", "--set", f"output.counts={counts}", "--set",
                       "scan.frames=3", "--set", "detector.roi=[0, 90, 0, 79]")
            data = self.h5()["entry/data/data"][()]
            for i in range(3):
                text, image = read_cbf(self.dir / f"out/series/image_{i + 1:05d}.cbf")
                self.assertIn(f"# Start_angle {i:.6f} deg.", text)
                self.assertIn("# Angle_increment 1.000000 deg.", text)
                self.assertTrue((image[:, 91:] == -1).all())
                want = np.floor(data[i] + 0.5) if counts == "false" else data[i]
                np.testing.assert_array_equal(image[:, :91], want[:, :91])
                self.assertGreater(image.max(), 1)

    def test_headers_of_a_series_have_one_length(self):
        """Frame 1 alone would have a header of 512 bytes; the angles of later ones need more."""
        many = ["--set", "detector.distance=123.456", "--set", "detector.beam=[38.1, 31.23]", "--set",
                "beam.lambda=0.97918", "--set", "detector.pixel=0.8", "--set", "scan.osc=0.123456", "--set",
                "output.noise=true", "--set", "output.int=true"]
        for compat, frames in (("spec", 1), ("spec", 3), ("c", 3)):
            more = ["--set", "detector.beam=[38.123456, 31.23456]"] if compat == "c" else []
            self.stage("render", *many, "--set", f"scan.frames={frames}", "--set", f"compat={compat}", *more)
            said, ends = [], []
            for i in range(frames):
                for kind in ("noiseimage", "intimage"):
                    file = (self.dir / f"out/series/{kind}_{i + 1:05d}.img").read_bytes()
                    said.append(int(file[15:file.index(b";")]))
                    ends.append(file.index(b"}\f") + 2)
                    size = said[-1] if compat == "spec" else max(512, ends[-1])
                    self.assertEqual(len(file) - size, 2 * 96 * 80, (compat, i))
            self.assertEqual(set(said), {512 if compat == "c" or frames == 1 else 1024})
            self.assertTrue(compat == "c" or max(ends[:2]) <= 512, ends)
            self.assertEqual(max(ends) > 512, frames > 1, (compat, ends))

    def test_another_name_of_the_container(self):
        for stage in ("render", "figures"):
            self.stage(stage, "--set", "output.container=scan_0001.nxs", "--set", "scan.frames=1")
        self.assertEqual(self.h5("out/series/scan_0001.nxs")["entry/data/data"].shape, (1, 80, 96))

    def test_grid(self):
        self.config = CONFIG.replace("distance: 100", "distance: [100, 150]")
        (self.dir / "job.yaml").write_text(self.config)
        self.assertIn("stands for 2 jobs", self.stage("render", expect=2).stderr)
        self.fathom("run", "all", "-c", "job.yaml", "--quiet")
        self.assertEqual(sorted(p.name for p in self.dir.glob("distance*.yaml")),
                         ["distance100.yaml", "distance150.yaml"])
        for name, value in (("distance100", 0.1), ("distance150", 0.15)):
            f = self.h5(f"out/{name}/frames.h5")
            self.assertAlmostEqual(f["entry/instrument/detector/distance"][()], value)
            for figure in ("preview", "montage", "radial", "photons"):
                self.assertEqual((self.dir / f"out/{name}/{figure}.png").read_bytes()[:4],
                                 b"\x89PNG")


class Counts(Case):
    config = CONFIG + "output: {counts: true, gzip: 4}\n"

    def test_counts_are_poisson(self):
        self.stage("render", "--set", "crystal.default_F=300", "--set", "crystal.water=0.02")
        f = self.h5()
        counts = f["entry/data/data"][()]
        self.assertEqual(counts.dtype, np.int32)
        self.assertEqual(f["entry/data/data"].compression, "gzip")
        self.stage("render", "--set", "crystal.default_F=300", "--set", "crystal.water=0.02",
                   "--set", "output.counts=false", "--set", "output_dir=mean")
        mean = self.h5("mean/series/frames.h5")["entry/data/data"][()].astype(float)
        z = (counts - mean) / np.sqrt(np.maximum(mean, 1e-9))
        z = z[mean > 5]
        self.assertGreater(len(z), 10000)
        self.assertLess(abs(z.mean()), 5 / np.sqrt(len(z)))
        self.assertLess(abs(z.std() - 1), 0.03)
        # frames are independent of each other
        a, b = ((counts[i] - mean[i]) / np.sqrt(np.maximum(mean[i], 1)) for i in (0, 1))
        self.assertLess(abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]), 5 / np.sqrt(a.size))

    def test_u16_is_cut_at_its_end(self):
        self.stage("render", "--set", "output.dtype=u16", "--set", "crystal.N=30")
        data = self.h5()["entry/data/data"][()]
        self.assertEqual((data.dtype, data.max()), (np.uint16, 65535))


class Stills(Case):
    config = CONFIG.replace("misset: [10, 20, 30], ", "").replace(
        "scan: {osc: 1, steps: 3, frames: 4}", "stills: {count: 5, seed: 9, spread: 0.2}")

    def test_every_frame_is_another_crystal(self):
        self.stage("render")
        f = self.h5("out/stills/frames.h5")
        e = f["entry"]
        u = e["sample/orientation_matrix"][()]
        fluence = e["fathom/fluence"][()]
        self.assertEqual(len({x.tobytes() for x in u}), 5)
        self.assertEqual(len(set(fluence)), 5)
        turn = e["fathom/lab_to_nexus"][()]
        self.image("-misset", 0, 0, 0)  # where the crystal lies before it is turned
        ub0 = np.linalg.inv([[28, 0, 0], [0, 33, 0],
                             [38 * np.cos(np.radians(95)), 0, 38 * np.sin(np.radians(95))]])
        for i in range(5):
            r = turn.T @ e["sample/ub_matrix"][i]  # columns a*, b*, c* in the laboratory
            # the reference puts a* along x and b* into the xy plane
            star = np.array([np.linalg.norm(r[:, k]) for k in range(3)])
            self.assertAlmostEqual(star[1], np.linalg.norm(ub0[:, 1]))
            base = np.array([[star[0], 0, star[2] * np.cos(np.radians(85))],
                             [0, star[1], 0], [0, 0, star[2] * np.sin(np.radians(85))]])
            m = r @ np.linalg.inv(base)
            x, y, z = (np.arctan2(m[2, 1], m[2, 2]), -np.arcsin(m[2, 0]), np.arctan2(m[1, 0], m[0, 0]))
            one = self.image("-misset", *(repr(float(np.degrees(a))) for a in (x, y, z)), "-fluence",
                             repr(float(fluence[i])))
            np.testing.assert_allclose(e["data/data"][i], one, rtol=1e-3, atol=1e-4 * one.max())


class Resume(Case):
    reference = {}  # files of an undisturbed run, by config

    def undisturbed(self, *args):
        if args not in Resume.reference:
            folder = self.folder()
            for stage in ("render", "figures"):
                self.stage(stage, *args, folder=folder)
            Resume.reference[args] = files_of(folder / "out")
        return Resume.reference[args]

    def same_bytes(self, *args):
        want, got = self.undisturbed(*args), files_of(self.dir / "out")
        self.assertEqual(sorted(want), sorted(got))
        for name in want:
            self.assertEqual(want[name], got[name], name)

    def test_kills(self):
        for args in ((), ("--set", "output.counts=true", "--set", "output.int=true")):
            for stage in ("render", "figures"):
                for point in POINTS:
                    r = self.stage(stage, *args, expect=-signal.SIGKILL, FATHOM_KILL_AT=point)
                    self.assertEqual((self.dir / f"out/.fathom/{stage}.series.json").exists(),
                                     point == "after_record", (stage, point))
                r = self.stage(stage, *args)
                if stage == "render" and not args:
                    self.assertIn("4 of 4 frames were there already", r.stdout)
            self.same_bytes(*args)
            shutil.rmtree(self.dir / "out")

    def test_it_goes_on_with_the_first_missing_frame(self):
        for done in (1, 2, 3):
            self.stage("render", "--set", "seed=3", expect=-signal.SIGKILL,
                       FATHOM_KILL_AT=f"mid_run:{done}")
            r = self.stage("render", "--set", "seed=3")
            self.assertIn(f"{done} of 4 frames were there already", r.stdout)
            shutil.rmtree(self.dir / "out")

    def test_headers_of_frames_that_were_there(self):
        """What only the header of a CBF tells is part of what a frame is."""
        words = ["--set", "output.cbf=true", "--set", "detector.thick=450", "--set", "detector.abs=300"]
        self.stage("render", *words, expect=-signal.SIGKILL, FATHOM_KILL_AT="mid_run:2")
        r = self.stage("render", *words, "--set", "detector.material=CdTe")
        self.assertNotIn("frames were there already", r.stdout)
        for i in range(4):
            text, _ = read_cbf(self.dir / f"out/series/image_{i + 1:05d}.cbf")
            self.assertIn("# CdTe sensor, thickness 0.00045 m", text)

    def test_signals_save_the_frames(self):
        child = subprocess.Popen([PROGRAM, "bragg", "render", "-c", "job.yaml", "--set",
                                  "scan.frames=5000"], cwd=self.dir, env=self.env(),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(1000):
            if len(list(self.dir.glob("out/series/frames/*.safetensors"))) > 3:
                break
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 6, out)
        self.assertIn("stopped after frame", out)
        r = self.stage("render")
        self.assertIn("4 of 4 frames were there already", r.stdout)
        self.stage("figures")
        self.same_bytes()

    def test_a_series_that_grows_keeps_its_frames(self):
        self.stage("render")
        r = self.stage("render", "--set", "scan.frames=6")
        self.assertIn("4 of 6 frames were there already", r.stdout)
        grown = (self.dir / "out/series/frames.h5").read_bytes()
        shutil.rmtree(self.dir / "out")
        self.assertNotIn("already", self.stage("render", "--set", "scan.frames=6").stdout)
        self.assertEqual((self.dir / "out/series/frames.h5").read_bytes(), grown)

    def test_what_changed_or_is_damaged_is_made_again(self):
        self.stage("render")
        path = self.dir / "out/series/frames.h5"
        good = path.read_bytes()
        self.assertNotIn("already", self.stage("render", "--set", "beam.lambda=1.01").stdout)
        self.assertNotIn("already", self.stage("render").stdout)
        self.assertEqual(path.read_bytes(), good)
        f = self.h5()
        at = f["entry/data/data"].id.get_chunk_info(2).byte_offset + 4000
        f.close()
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        self.assertIn("3 of 4 frames", self.stage("render").stdout)
        self.assertEqual(path.read_bytes(), good)
        path.write_bytes(good[:1000])
        self.assertNotIn("already", self.stage("render").stdout)
        self.assertEqual(path.read_bytes(), good)
        self.assertNotIn("already", self.stage("render", "--force").stdout)

    def test_budget_and_threads_change_nothing(self):
        for args in ((), ("--set", "output.counts=true", "--set", "output.int=true")):
            for stage in ("render", "figures"):
                self.stage(stage, *args, "--memory", "16M", "--threads", 1)
            self.same_bytes(*args)
            shutil.rmtree(self.dir / "out")

    def test_plan(self):
        big = ("--set", "detector.pixels=4000", "--set", "output.counts=true", "--set", "output.gzip=1")
        for stage in ("render", "figures"):
            for mib in (24, 200):
                plan = json.loads(self.stage(stage, "--plan", "--json", "--memory", f"{mib}M",
                                             *big).stdout)
                self.assertLessEqual(plan["planned_bytes"], mib << 20)
        self.assertIn("FTH-PLAN-002", self.stage("render", *big, "--memory", "5M", expect=4).stderr)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["job.yaml", "small.hkl"])

    def test_what_fits_is_told_and_fits(self):
        args = ("--set", "output.counts=true", "--set", "detector.pixels=600", "--set", "scan.frames=2")
        r = self.stage("render", *args, "--memory", "13M", expect=4)
        self.assertIn("FTH-PLAN-002", r.stderr)
        self.stage("render", *args, "--memory", r.stderr.split("would fit: --memory ")[1].split()[0])
        small = (self.dir / "out/series/frames.h5").read_bytes()
        record = json.loads((self.dir / "out/.fathom/render.series.json").read_text())
        self.assertGreaterEqual(record["planned_bytes"], record["growth_bytes"])
        shutil.rmtree(self.dir / "out")
        self.stage("render", *args)
        self.assertEqual(small, (self.dir / "out/series/frames.h5").read_bytes())

    def test_mistakes(self):
        self.assertIn("scan.osc", self.stage("render", "--set", "scan.osc=-1", expect=2).stderr)
        self.assertIn("nothing.hkl", self.stage("render", "--set", "crystal.hkl=nothing.hkl",
                                                expect=3).stderr)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["job.yaml", "small.hkl"])


if __name__ == "__main__":
    unittest.main()
