"""Every kind of file of bragg, opened by the packages that others open them with: fabio and pycbf
(images), nxmx, which DIALS reads containers with, and nexusformat, whose nxvalidate compares a
container with the definition NXmx. They are fetched from the package index into a folder of the
build; without an index there is nothing to try. DIALS itself (dxtbx) is no package of the index:
where some Python of this machine has it, it opens the CBF images too.
seconds: 200"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import packages

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(PROGRAM).parents[1] / "readers"
PACKAGES = ["fabio==2026.6.0", "pycbf==0.9.6.7", "nxmx==0.0.8", "nexusformat==2.1.0"]
CONFIG = """\
instrument: bragg
name: readers
output_dir: out
crystal: {hkl: small.hkl, cell: [28, 33, 38, 90, 95, 90], misset: [10, 20, 30], N: 5}
beam: {lambda: 0.97918}
detector: {distance: 123.456, pixel: 0.8, pixels: [96, 80], beam: [38.124, 31.2345]}
scan: {osc: 0.125, steps: 1, frames: 3}
sampling: {oversample: 1}
output: {int: true, noise: true, cbf: true}
"""
# What the packages make of a file: written by a process that has them.
READER = """
import json, sys
import numpy as np
kind, path = sys.argv[1:]
if kind == "fabio":
    import fabio
    image = fabio.open(path)
    found = {"kind": type(image).__name__, "dtype": str(image.data.dtype), "pixels": image.data.tolist()}
elif kind == "pycbf":
    import pycbf
    h = pycbf.cbf_handle_struct()
    h.read_file(path.encode(), pycbf.MSG_DIGEST)
    h.rewind_datablock(), h.find_category(b"array_data"), h.find_column(b"data"), h.select_row(0)
    shape = h.get_integerarrayparameters_wdims_fs()[9:11]
    pixels = np.frombuffer(h.get_integerarray_as_string(), np.int32).reshape(shape[1], shape[0])
    h.find_column(b"header_contents")
    found = {"pixels": pixels.tolist(), "text": h.get_value().decode()}
else:
    import h5py, nxmx
    entry = nxmx.NXmx(h5py.File(path)).entries[0]
    instrument, sample = entry.instruments[0], entry.samples[0]
    d, module = instrument.detectors[0], instrument.detectors[0].modules[0]
    chain = nxmx.get_dependency_chain(module.fast_pixel_direction.depends_on)
    found = {"start": entry.start_time.isoformat(), "end": entry.end_time_estimated.isoformat(),
             "name": instrument.name, "material": d.sensor_material,
             "thickness": float(d.sensor_thickness.to("m").magnitude),
             "distance": float(d.distance.to("m").magnitude), "frame_time": float(d.frame_time.to("s").magnitude),
             "wavelength": float(instrument.beams[0].incident_wavelength.to("angstrom").magnitude),
             "pixel": float(module.fast_pixel_direction[()].to("mm").magnitude.item()),
             "origin": nxmx.get_cumulative_transformation(chain)[0, :3, 3].tolist(),
             "start_angles": sample.depends_on[()].to("degree").magnitude.tolist(),
             "end_angles": sample.depends_on.end[()].to("degree").magnitude.tolist(),
             "shape": entry.data[0][entry.data[0].signal].shape}
json.dump(found, sys.stdout)
"""


# What DIALS makes of images that belong together.
DXTBX = """
import json, sys
from dxtbx.model.experiment_list import ExperimentListFactory
found = ExperimentListFactory.from_filenames(sys.argv[1:])
e, panel = found[0], found[0].detector[0]
json.dump({"experiments": len(found), "frames": len(e.imageset), "size": panel.get_image_size(),
           "distance": panel.get_distance(), "pixel": panel.get_pixel_size(),
           "wavelength": e.beam.get_wavelength(), "beam": panel.get_beam_centre_px(e.beam.get_s0()),
           "oscillation": e.scan.get_oscillation(),
           "pixels": [e.imageset.get_raw_data(i)[0].as_numpy_array().tolist() for i in range(len(e.imageset))]}, sys.stdout)
"""


def call(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="readers-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)
        (cls.dir / "job.yaml").write_text(CONFIG)
        shutil.copy(ROOT / "configs/demo/bragg/small.hkl", cls.dir)

    def fathom(self, *words):
        done = call(PROGRAM, *words, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)

    def read(self, kind, name):
        done = call(VENV / "bin/python", "-c", READER, kind, self.dir / name, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def pixels(self, name, code, size):
        """What is behind the header, by this test."""
        file = (self.dir / name).read_bytes()
        n = 80 * 96 * size
        flat = memoryview(file[len(file) - n:]).cast(code).tolist()
        return [flat[96 * row:96 * row + 96] for row in range(80)]

    def test_a_series(self):
        self.fathom("bragg", "render", "-c", "job.yaml", "--quiet")
        for frame in (1, 2, 3):
            for kind in ("intimage", "noiseimage"):
                name = f"out/series/{kind}_{frame:05d}.img"
                found, said = self.read("fabio", name)
                self.assertEqual(found["dtype"], "uint16")
                self.assertEqual(found["pixels"], self.pixels(name, "H", 2))
            counts = [[v - 40 for v in row] for row in found["pixels"]]
            cbf = f"out/series/image_{frame:05d}.cbf"
            for reader in ("fabio", "pycbf"):
                found, said = self.read(reader, cbf)
                self.assertEqual(found["pixels"], counts, reader)
            self.assertIn("# Beam_xy (39.5431, 48.1550) pixels", found["text"])
            self.assertIn(f"# Start_angle {0.125 * (frame - 1):.6f} deg.", found["text"])
        found, said = self.read("nxmx", "out/series/frames.h5")
        near = {key: found.pop(key) for key in ("thickness", "distance", "frame_time", "wavelength", "pixel", "origin")}
        self.assertEqual(found, {
            "start": "2000-01-01T00:00:00+00:00", "end": "2000-01-01T00:00:03+00:00", "name": "Fathom bragg",
            "material": "Si", "start_angles": [0.0, 0.125, 0.25], "end_angles": [0.125, 0.25, 0.375],
            "shape": [3, 80, 96]})
        for key, want in (("thickness", 1e-6), ("distance", 0.123456), ("frame_time", 1), ("wavelength", 0.97918),
                          ("pixel", 0.8)):
            self.assertAlmostEqual(near[key], want, 9, key)
        # of the corner of the image, in mm: x of NeXus is the fast axis of MOSFLM, y the slow one
        for got, want in zip(near["origin"], (-(31.2345 + 0.4), -(38.124 + 0.4), 123.456)):
            self.assertAlmostEqual(got, want, 6)

    def opened_by_dials(self, *names):
        for python in (sys.executable, "/usr/bin/python3"):
            if call(python, "-c", "import dxtbx").returncode == 0:
                done = call(python, "-c", DXTBX, *names, cwd=self.dir)
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                return json.loads(done.stdout)
        self.skipTest("no Python here has dxtbx")

    def test_dials_opens_cbf_images(self):
        words = ["-hkl", "small.hkl", "-cell", 28, 33, 38, 90, 95, 90, "-N", 5, "-pixel", "0.172", "-distance", "123.456",
                 "-lambda", "0.97918", "-oversample", 1, "-seed", 1, "-phi", 5, "-osc", "0.5", "-phisteps", 1]
        for fast, slow in ((64, 64), (487, 195)):  # the second is the size of a real detector's module
            self.fathom("bragg", "--quiet", *words, "-detpixels_f", fast, "-detpixels_s", slow, "--cbf", "dials_00001.cbf")
            found = self.opened_by_dials("dials_00001.cbf")
            self.assertEqual(found.pop("pixels"), [self.read("fabio", "dials_00001.cbf")[0]["pixels"]])
            want = {"experiments": 1, "frames": 1, "size": [fast, slow], "distance": 123.456, "pixel": [0.172, 0.172],
                    "wavelength": 0.97918, "beam": [fast / 2 + 1, slow / 2 + 1], "oscillation": [5, 0.5]}
            self.close_to(found, want)
        self.fathom("bragg", "render", "-c", "job.yaml", "--quiet", "--set", "output_dir=dials")
        names = [f"dials/series/image_{frame:05d}.cbf" for frame in (1, 2, 3)]
        found = self.opened_by_dials(*names)
        self.assertEqual(found.pop("pixels"), [self.read("fabio", name)[0]["pixels"] for name in names])
        self.close_to(found, {"experiments": 1, "frames": 3, "size": [96, 80], "distance": 123.456, "pixel": [0.8, 0.8],
                              "wavelength": 0.97918, "beam": [39.5431, 48.1550], "oscillation": [0, 0.125]})

    def close_to(self, found, want):
        self.assertEqual(set(found), set(want))
        for key in want:
            for a, b in zip(*((v if isinstance(v, list) else [v]) for v in (found[key], want[key]))):
                self.assertAlmostEqual(a, b, 4, key)

    def test_the_container_is_what_nxmx_defines(self):
        for name, more in (("rotation", []), ("stills", ["--set", "stills.count=2", "--set", "scan.frames=1", "--set", "crystal.misset=~"]),
                           ("counts", ["--set", "output.counts=true", "--set", "output.gzip=4"]),
                           ("sensor", ["--set", "detector.thick=450", "--set", "detector.material=CdTe"])):
            self.fathom("bragg", "render", "-c", "job.yaml", "--quiet", "--set", f"output_dir={name}", *more)
            file = next((self.dir / name).glob("*/frames.h5"))
            done = call(VENV / "bin/nxvalidate", "-a", "NXmx", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout + done.stderr, r"Total number of errors: 0\b", (name, done.stdout))

    def test_single_images(self):
        words = ["-hkl", "small.hkl", "-cell", 28, 33, 38, 90, 95, 90, "-N", 5, "-pixel", "0.8", "-detpixels_f", 96,
                 "-detpixels_s", 80, "-distance", "123.456", "-lambda", "0.97918", "-oversample", 1, "-seed", 1]
        for name, geometry, compat in (("short", [], "c"), ("brief", [], "spec"),
                                       ("long", ["-Xbeam", "38.12345", "-Ybeam", "31.23456"], "spec")):
            self.fathom("bragg", "--quiet", "--compat", compat, *words, *geometry, "-floatfile", "f.bin", "-intfile",
                        f"{name}.img", "-noisefile", "n.img", "--smv32", f"{name}32.img", "--cbf", f"{name}.cbf")
            for file, code, size, dtype in ((f"{name}.img", "H", 2, "uint16"), (f"{name}32.img", "i", 4, "int32")):
                found, said = self.read("fabio", file)
                self.assertEqual((found["dtype"], found["pixels"] == self.pixels(file, code, size)), (dtype, True), file)
                self.assertNotIn("invalid/unsupported", said)
            self.assertEqual(self.read("pycbf", f"{name}.cbf")[0]["pixels"],
                             self.read("fabio", f"{name}.cbf")[0]["pixels"])
        for bits, code, size, dtype in ((16, "H", 2, "uint16"), (32, "i", 4, "int32")):
            self.fathom("bragg", "noisify", "-bin", "f.bin", "-detpixels_x", 96, "-detpixels_y", 80, "-bits", bits,
                        "-noisefile", "camera.img", "-intfile", "expected.img", "-seed", 1)
            for file in ("camera.img", "expected.img"):
                found, said = self.read("fabio", file)
                self.assertEqual((found["dtype"], found["pixels"] == self.pixels(file, code, size)), (dtype, True), file)


if __name__ == "__main__":
    why = packages.fetch(VENV, PACKAGES)
    if why:
        print(f"SKIP: {why}")
        sys.exit(77)
    unittest.main()
