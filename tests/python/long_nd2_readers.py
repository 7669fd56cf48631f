"""ND2 files as we write them, opened by the public reader of that name: pixels, sizes, times, stage
and calibration. It is fetched from the package index into a folder of the build; without an index
there is nothing to try. FATHOM_LIBRARY names the shared library.
seconds: 60"""
import ctypes as C
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import packages

LIB = C.CDLL(os.path.abspath(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so"))
VENV = pathlib.Path(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so").resolve().parents[1] / "nd2_reader"
PACKAGES = ["nd2==0.12.0"]
U8, U16, F32 = 1, 2, 7
DTYPES = {"uint8": U8, "uint16": U16, "float32": F32}
READER = """
import json, sys
import nd2
with nd2.ND2File(sys.argv[1]) as f:
    n = f._rdr._seq_count()
    at = [f.frame_metadata(i).channels[0] for i in range(n)]
    json.dump({"axes": "".join(f.sizes).lower(), "sizes": list(f.sizes.values()), "dtype": str(f.dtype),
               "pixels": f.asarray().astype(float).ravel().tolist(), "voxel": list(f.voxel_size()),
               "bits": f.attributes.bitsPerComponentSignificant, "channels": [c.channel.name for c in f.metadata.channels],
               "objective": f.metadata.channels[0].microscope.objectiveName,
               "times": [c.time.relativeTimeMs for c in at], "stage": [c.position.stagePositionUm for c in at],
               "names": [c.position.name for c in at]}, sys.stdout)
"""


class Position(C.Structure):
    _fields_ = [("name", C.c_char_p), ("x", C.c_double), ("y", C.c_double), ("z", C.c_double)]


class Options(C.Structure):
    _fields_ = [("size", C.c_int64 * 6), ("dtype", C.c_int), ("order", C.c_char_p), ("packed", C.c_bool),
                ("rgb", C.c_bool), ("significant_bits", C.c_int), ("row_multiple", C.c_int), ("um_per_px", C.c_double),
                ("z_step_um", C.c_double), ("period_ms", C.c_double), ("unix_seconds", C.c_double),
                ("magnification", C.c_double), ("objective", C.c_char_p), ("description", C.c_char_p),
                ("channel", C.POINTER(C.c_char_p)), ("position", C.POINTER(Position)),
                ("time_ms", C.POINTER(C.c_double))]


DRAW = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_int64, C.c_int64, C.c_int64, C.c_void_p, C.POINTER(C.c_bool), C.c_void_p)
ELEMENTS = {"uint8": C.c_uint8, "uint16": C.c_uint16, "float32": C.c_float}


def setUpModule():
    why = packages.fetch(VENV, PACKAGES)
    if why:
        raise unittest.SkipTest(why)


class Readers(unittest.TestCase):
    def setUp(self):
        self.mem = C.c_void_p()
        self.assertEqual(LIB.fth_mem_create(C.byref(self.mem), None, None), 0)
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def value(self, size, at, dtype):
        k = 0
        for s, i in zip(size, at):
            k = k * s + i
        return (k * 7919 + 13) % (251 if dtype == "uint8" else 65521)

    def write(self, size, dtype, **more):
        """A file of that size, t p z c y x; what the public reader says of it."""
        options = Options(size=(C.c_int64 * 6)(*size), dtype=DTYPES[dtype], **more)
        path = os.path.join(self.dir.name, "made.nd2")

        def draw(user, t, p, z, pixels, present, err):
            to = C.cast(pixels, C.POINTER(ELEMENTS[dtype]))
            for i, at in enumerate(itertools.product(*map(range, size[3:]))):
                to[i] = self.value(size, (t, p, z, *at), dtype)
            return 0
        self.assertEqual(LIB.fth_nd2_write(self.mem, path.encode(), C.byref(options), DRAW(draw), None, None), 0)
        done = subprocess.run([VENV / "bin/python", "-c", READER, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_pixels(self, found, size, dtype):
        self.assertEqual(found["dtype"], dtype)
        full = dict(zip("tpzcyx", size))
        if "s" in found["axes"]:
            full["s"] = full["c"]
        self.assertEqual(found["sizes"], [full[a] for a in found["axes"]])
        for i, at in enumerate(itertools.product(*map(range, found["sizes"]))):
            place = dict(zip(found["axes"].replace("s", "c"), at))
            wanted = self.value(size, [place.get(a, 0) for a in "tpzcyx"], dtype)
            self.assertEqual(found["pixels"][i], wanted, (found["axes"], at))

    def test_layouts(self):
        for dtype, c, x, packed in itertools.product(DTYPES, (1, 2), (8, 9), (False, True)):
            size = (2, 2, 3, c, 4, x)
            self.check_pixels(self.write(size, dtype, packed=packed), size, dtype)

    def test_orders_of_loops(self):
        for order in ("tpz", "pzt", "ztp"):
            size = (2, 3, 4, 1, 2, 4)
            found = self.write(size, "uint16", order=order.encode())
            self.assertEqual(found["axes"], order + "yx")
            self.check_pixels(found, size, "uint16")

    def test_few_axes(self):
        for size in ((1, 1, 1, 1, 4, 4), (3, 1, 1, 1, 4, 4), (1, 1, 3, 2, 4, 4)):
            self.check_pixels(self.write(size, "uint16"), size, "uint16")

    def test_colour(self):
        size = (1, 1, 2, 3, 4, 5)
        self.check_pixels(self.write(size, "uint8", rgb=True), size, "uint8")

    def test_metadata(self):
        size = (2, 2, 3, 2, 4, 4)
        points = (Position * 2)(Position("A01".encode(), -52000.5, 31000, 1990), Position("Säule".encode(), 1, 2, 3))
        times = (C.c_double * 12)(*(10.5 * i + 0.25 for i in range(12)))
        names = (C.c_char_p * 2)(b"EYES - Dia", b"GFP")
        found = self.write(size, "uint16", position=points, time_ms=times, channel=names, um_per_px=3.2347,
                           z_step_um=25, period_ms=1.9e6, significant_bits=12, objective=b"Plan Apo 4x")
        self.check_pixels(found, size, "uint16")
        self.assertEqual(found["voxel"], [3.2347, 3.2347, 25])
        self.assertEqual((found["bits"], found["channels"], found["objective"]), (12, ["EYES - Dia", "GFP"], "Plan Apo 4x"))
        self.assertEqual(found["times"], list(times))
        self.assertEqual(found["names"], (["A01"] * 3 + ["Säule"] * 3) * 2)
        self.assertEqual(found["stage"], ([[-52000.5, 31000, 1965]] * 3 + [[1, 2, -22]] * 3) * 2)


if __name__ == "__main__":
    unittest.main()
