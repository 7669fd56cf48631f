"""Zarr arrays, OME-NGFF and workbooks as we write them, opened by zarr, ome-zarr-models and openpyxl; and arrays that
zarr writes, read by us. The packages are fetched from the package index into a folder of the build; without an index
there is nothing to try. FATHOM_LIBRARY names the shared library, FATHOM_PROGRAM the program.
seconds: 120"""
import ctypes as C
import itertools
import json
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import packages

SO = pathlib.Path(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so").resolve()
LIB = C.CDLL(str(SO))
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
VENV = SO.parents[1] / "zarr_reader"
PACKAGES = ["zarr==3.1.6", "numcodecs==0.16.6", "ome-zarr-models==1.7", "openpyxl==3.1.5"]
U8, U16, F32 = 1, 2, 7
PACKINGS = {"zstd": 0, "gzip": 1, "blosc": 2, "plain": 3}
Sizes = C.c_int64 * 8
LIB.fth_tensor_data.restype = C.c_void_p

# Arrays and groups in argv[2:]: what they hold, as JSON.
READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import ome_zarr_models, zarr
def array(a):
    return {"shape": a.shape, "chunks": a.chunks, "shards": a.shards, "dtype": str(a.dtype), "values": a[...].ravel().tolist()}
def group(path):
    g = zarr.open_group(path, mode="r")
    return {"kind": type(ome_zarr_models.open_ome_zarr(g)).__name__, "attributes": dict(g.attrs)}
json.dump([array(zarr.open_array(p[2:], mode="r")) if p.startswith("a:") else group(p[2:]) for p in sys.argv[1:]], sys.stdout)
"""
# Arrays of the list in argv[2], into the folder argv[1].
WRITE = """
import json, sys
import numcodecs, numpy as np, zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
for i, a in enumerate(json.loads(sys.argv[2])):
    data = ((np.arange(int(np.prod(a["shape"])), dtype=np.int64) * 7919 + 13) % 65521).reshape(a["shape"]).astype("u2")
    path = f"{sys.argv[1]}/{i}"
    if a["format"] == 2:
        packer = {"zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd(), "plain": None,
                  **{n: numcodecs.Blosc(cname=n) for n in ("lz4", "lz4hc", "blosclz")}}[a["packing"]]
        z = zarr.create_array(path, shape=data.shape, chunks=a["chunks"], dtype=a["endian"] + "u2", zarr_format=2, compressors=packer,
                              order=a["order"], chunk_key_encoding={"name": "v2", "separator": a["separator"]})
    else:
        codecs = [BytesCodec(endian="big" if a["endian"] == ">" else "little")]
        codecs += {"zlib": [GzipCodec()], "gzip": [GzipCodec(), Crc32cCodec()], "zstd": [ZstdCodec()], "plain": [],
                   **{n: [BloscCodec(cname=n, typesize=2)] for n in ("lz4", "lz4hc", "blosclz")}}[a["packing"]]
        if a["order"] == "F":
            codecs.insert(0, TransposeCodec(order=tuple(reversed(range(data.ndim)))))
        outer = a["chunks"]
        if a["shards"]:
            codecs = [ShardingCodec(chunk_shape=outer, codecs=codecs, index_location=a["shards"])]
            outer = [2 * n for n in outer]
        z = zarr.create(store=path, shape=data.shape, chunks=outer, dtype="uint16", zarr_format=3, codecs=codecs)
    z[...] = data
"""
SHEETS = """
import json, sys
import openpyxl
b = openpyxl.load_workbook(sys.argv[1])
json.dump({s.title: [[c.value for c in row] for row in s.rows] for s in b}, sys.stdout)
"""


class Array(C.Structure):
    _fields_ = [("format", C.c_int), ("dtype", C.c_int), ("n_axes", C.c_int), ("size", Sizes), ("chunk", Sizes),
                ("per_shard", Sizes), ("packing", C.c_int), ("axis", C.c_char_p * 8)]


class Image(C.Structure):
    _fields_ = [("version", C.c_int), ("dtype", C.c_int), ("t", C.c_int64), ("c", C.c_int64), ("z", C.c_int64),
                ("y", C.c_int64), ("x", C.c_int64), ("tile", C.c_int64), ("levels", C.c_int), ("packing", C.c_int),
                ("um_per_px", C.c_double), ("z_step_um", C.c_double), ("period_ms", C.c_double), ("name", C.c_char_p),
                ("channel", C.POINTER(C.c_char_p)), ("planned", C.c_bool)]


class Cell(C.Structure):
    _fields_ = [("kind", C.c_int), ("text", C.c_char_p), ("number", C.c_double)]


class Sheet(C.Structure):
    _fields_ = [("name", C.c_char_p), ("rows", C.c_int64), ("columns", C.c_int64), ("cell", C.POINTER(Cell))]


def setUpModule():
    why = packages.fetch(VENV, PACKAGES)
    if why:
        raise unittest.SkipTest(why)


def values(n):
    return [(i * 7919 + 13) % 65521 for i in range(n)]


def product(shape):
    n = 1
    for s in shape:
        n *= s
    return n


class Readers(unittest.TestCase):
    def setUp(self):
        self.mem = C.c_void_p()
        self.assertEqual(LIB.fth_mem_create(C.byref(self.mem), None, None), 0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def python(self, program, *args):
        done = subprocess.run([VENV / "bin/python", "-c", program, *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def put(self, sink, data):
        """All elements of a sink, and its end."""
        self.assertEqual(LIB.fth_sink_put(sink, data, None), 0)
        LIB.fth_sink_close(sink)

    def test_arrays_are_read_by_zarr(self):
        shape, chunk, made = (3, 20, 25), (1, 8, 8), []
        for format, packing, shards in itertools.product((2, 3), PACKINGS, (False, True)):
            if format == 2 and shards:
                continue
            path, sink = os.path.join(self.dir, f"{format}{packing}{shards}"), C.create_string_buffer(4096)
            array = Array(format=format, dtype=U16, n_axes=3, size=Sizes(*shape), chunk=Sizes(*chunk),
                          per_shard=Sizes(*((1, 2, 9) if shards else ())), packing=PACKINGS[packing])
            self.assertEqual(LIB.fth_zarr_create(sink, self.mem, path.encode(), C.byref(array), None), 0)
            self.put(sink, (C.c_uint16 * product(shape))(*values(product(shape))))
            made.append((path, [1, 16, 32] if shards else None))
        for (path, shards), found in zip(made, self.python(READ, *("a:" + p for p, _ in made))):
            self.assertEqual((found["shape"], found["chunks"], found["shards"]), (list(shape), list(chunk), shards), path)
            self.assertEqual(found["values"], values(product(shape)), path)

    def test_arrays_of_zarr_are_read(self):
        rng, wanted = random.Random(17), []
        for i in range(60):
            n = rng.randint(1, 4)
            format, shape = rng.choice((2, 3)), [rng.randint(1, 9) for _ in range(n)]
            wanted.append({"format": format, "shape": shape, "chunks": [rng.randint(1, s) for s in shape],
                           "packing": rng.choice(("zlib", "gzip", "zstd", "plain", "lz4", "lz4hc", "blosclz")),
                           "endian": rng.choice("<>"), "order": rng.choice("CF"), "separator": rng.choice("./"),
                           "shards": rng.choice(("", "start", "end"))})
        self.python(WRITE, self.dir, json.dumps(wanted))
        for i, a in enumerate(wanted):
            zarr, source, tensor = C.c_void_p(), C.create_string_buffer(4096), C.c_void_p()
            self.assertEqual(LIB.fth_zarr_open(C.byref(zarr), self.mem, f"{self.dir}/{i}".encode(), None), 0, a)
            self.assertEqual(LIB.fth_zarr_source(zarr, source, None), 0, a)
            self.assertEqual(LIB.fth_source_load(source, self.mem, b"a", C.byref(tensor), None), 0, a)
            n = product(a["shape"])
            found = struct.unpack(f"{n}H", C.string_at(LIB.fth_tensor_data(tensor), 2 * n))
            self.assertEqual(list(found), values(n), a)
            LIB.fth_source_close(source)
            LIB.fth_zarr_close(zarr)

    def test_images_are_valid(self):
        names = (C.c_char_p * 2)(b"BF", b"GFP")
        for version in (4, 5):
            path, sink = os.path.join(self.dir, f"image{version}"), C.create_string_buffer(4096)
            image = Image(version=version, dtype=U16, t=2, c=2, z=3, y=20, x=33, tile=16, um_per_px=3.25, z_step_um=50,
                          period_ms=1.9e6, name=b"a stack", channel=names)
            self.assertEqual(LIB.fth_ngff_create(sink, self.mem, path.encode(), C.byref(image), None), 0)
            n = 2 * 2 * 3 * 20 * 33
            self.put(sink, (C.c_uint16 * n)(*values(n)))
            group, *levels = self.python(READ, "g:" + path, *(f"a:{path}/{i}" for i in range(3)))
            ome = group["attributes"] if version == 4 else group["attributes"]["ome"]
            self.assertEqual(group["kind"], "Image")
            self.assertEqual([a["name"] for a in ome["multiscales"][0]["axes"]], list("tczyx"))
            scales = [d["coordinateTransformations"][0]["scale"] for d in ome["multiscales"][0]["datasets"]]
            self.assertEqual(scales, [[1900, 1, 50, 3.25 * k, 3.25 * k] for k in (1, 2, 4)])
            self.assertEqual([c["label"] for c in ome["omero"]["channels"]], ["BF", "GFP"])
            self.assertEqual([x["shape"][-2:] for x in levels], [[20, 33], [10, 17], [5, 9]])
            self.assertEqual(levels[0]["values"], values(n))
            v = levels[0]["values"]
            for y, x in itertools.product(range(10), range(16)):
                mean = (sum(v[(2 * y + j) * 33 + 2 * x + i] for j in (0, 1) for i in (0, 1)) + 2) // 4
                self.assertEqual(levels[1]["values"][y * 17 + x], mean)

    def test_plates_are_valid(self):
        wells = (C.c_char_p * 3)(b"A01", b"B12", b"A02")
        for version in (4, 5):
            path, plate = os.path.join(self.dir, f"plate{version}"), C.c_void_p()
            image = Image(version=version, dtype=U8, t=2, c=1, y=5, x=6)
            self.assertEqual(LIB.fth_ngff_plate_create(C.byref(plate), self.mem, path.encode(), C.byref(image), wells,
                                                       C.c_int64(3), C.c_int64(1), None), 0)
            for k in range(3):
                sink = C.create_string_buffer(4096)
                self.assertEqual(LIB.fth_ngff_plate_sink(plate, C.c_int64(k), C.c_int64(0), sink, None), 0)
                self.put(sink, bytes(i + 60 * k for i in range(60)))
            self.assertEqual(LIB.fth_ngff_plate_commit(plate, None), 0)
            group, field = self.python(READ, "g:" + path, f"a:{path}/B/12/0/0")
            ome = group["attributes"] if version == 4 else group["attributes"]["ome"]
            self.assertEqual(group["kind"], "HCS")
            self.assertEqual([(w["path"], w["rowIndex"], w["columnIndex"]) for w in ome["plate"]["wells"]],
                             [("A/1", 0, 0), ("B/12", 1, 2), ("A/2", 0, 1)])
            self.assertEqual(field["values"], list(range(60, 120)))

    def test_converted_plates_are_valid(self):
        """An experiment, as `fathom focus convert` writes it: fused images and raw stacks."""
        run = [PROGRAM, "focus"]
        where = ["--data-root", self.dir + "/d", "--exp", "20250101_toy"]
        yx1 = ["--microscope", "YX1"]
        for words in (["toy", "-o", self.dir + "/d", "--wells", "3", "--times", "2", "--planes", "3"],
                      ["run", *where, *yx1, "--image-format", "tif"]):
            subprocess.run([*run, *words], check=True, stdout=subprocess.DEVNULL)
        for version, packing in itertools.product(("0.4", "0.5"), ("none", "zstd", "blosc", "gzip")):
            for name, words, shape in (("fused", [], [2, 1, 64, 48]), ("raw", ["--stacks", *yx1], [2, 1, 3, 64, 48])):
                path = f"{self.dir}/{name}{version}{packing}.zarr"
                subprocess.run([*run, "convert", *where, *words, "--ngff", version, "--compressor", packing, "-o", path],
                               check=True, stdout=subprocess.DEVNULL)
                group, well, *levels = self.python(READ, "g:" + path, f"g:{path}/C/1", *(f"a:{path}/C/1/0/{i}" for i in range(3)))
                self.assertEqual((group["kind"], well["kind"]), ("HCS", "Well"))
                ome = group["attributes"] if version == "0.4" else group["attributes"]["ome"]
                self.assertEqual([w["path"] for w in ome["plate"]["wells"]], ["A/1", "B/1", "C/1"])
                self.assertEqual(levels[0]["shape"], shape)
                self.assertEqual([x["shape"][-2:] for x in levels], [[64, 48], [32, 24], [16, 12]])
                self.assertEqual(levels[0]["dtype"], "uint8" if name == "fused" else "uint16")
                if (version, packing) == ("0.4", "none"):
                    wanted = getattr(self, "wanted", {})
                    wanted[name] = levels
                    self.wanted = wanted
                self.assertEqual([x["values"] for x in levels], [x["values"] for x in self.wanted[name]])
                self.assertGreater(max(levels[0]["values"]), min(levels[0]["values"]))

    def test_workbooks_are_opened(self):
        path = os.path.join(self.dir, "book.xlsx")
        cells = (Cell * 6)(Cell(0, b"", 0), Cell(2, b"", 1.5), Cell(1, "ä & <b>".encode(), 0), Cell(3, b"", 1),
                           Cell(1, b" A ", 0), Cell(2, b"", -2))
        sheets = (Sheet * 2)(Sheet(b"genotype", 2, 3, cells), Sheet("ä & b".encode(), 1, 2, cells))
        self.assertEqual(LIB.fth_xlsx_save(self.mem, path.encode(), sheets, C.c_int64(2), None), 0)
        self.assertEqual(self.python(SHEETS, path), {"genotype": [[None, 1.5, "ä & <b>"], [True, " A ", -2]],
                                                     "ä & b": [[None, 1.5]]})


if __name__ == "__main__":
    unittest.main()
