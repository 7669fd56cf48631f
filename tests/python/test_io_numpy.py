"""Files between Fathom and NumPy, both ways, through the shared library.

seconds: 8

The library is driven with bare ctypes, so that this tests the files and not a
binding. FATHOM_LIBRARY names the shared library.
"""
import ctypes as C
import json
import os
import struct
import sys
import tempfile
import unittest
import zipfile

import numpy as np

DTYPES = ["bool", "u8", "u16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128", "u32", "i16", "i8"]
NUMPY = {"bool": "b1", "u8": "u1", "u16": "<u2", "i32": "<i4", "i64": "<i8", "f16": "<f2", "f32": "<f4", "f64": "<f8",
         "c64": "<c8", "c128": "<c16", "u32": "<u4", "i16": "<i2", "i8": "i1"}
ST = {"bool": "BOOL", "u8": "U8", "u16": "U16", "i32": "I32", "i64": "I64", "f16": "F16", "f32": "F32", "f64": "F64",
      "c64": "C64", "c128": "F64", "u32": "U32", "i16": "I16", "i8": "I8"}
SIZE = C.c_int64 * 8
READ = C.CFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(C.c_int64), C.POINTER(C.c_int64), C.c_void_p, C.c_void_p)
COMMIT = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)


class Source(C.Structure):
    _fields_ = [("kind", C.c_char_p), ("self", C.c_void_p), ("dtype", C.c_int), ("n_axes", C.c_int), ("size", SIZE),
                ("read", READ), ("read_rows", C.c_void_p), ("data", C.c_void_p), ("libraries", C.c_uint32),
                ("billed_bytes", C.c_uint64), ("concurrent", C.c_bool), ("part", SIZE), ("thread_bytes", C.c_uint64)]


class Sink(C.Structure):
    _fields_ = [("kind", C.c_char_p), ("self", C.c_void_p), ("dtype", C.c_int), ("n_axes", C.c_int), ("size", SIZE),
                ("write", READ), ("commit", COMMIT), ("abandon", C.c_void_p), ("data", C.c_void_p),
                ("libraries", C.c_uint32), ("billed_bytes", C.c_uint64), ("path", C.c_char_p), ("writer", C.c_void_p),
                ("concurrent", C.c_bool), ("part", SIZE), ("thread_bytes", C.c_uint64)]


class Site(C.Structure):
    _fields_ = [("file", C.c_char_p), ("func", C.c_char_p), ("line", C.c_int)]


class Item(C.Structure):
    _fields_ = [("name", C.c_char_p), ("dtype", C.c_int), ("n_axes", C.c_int), ("size", SIZE), ("axes", C.c_char_p)]


LIB = C.CDLL(os.environ["FATHOM_LIBRARY"])


def call(name, *args):
    status = getattr(LIB, name)(*args)
    if status:
        raise RuntimeError(f"{name} gave status {status}")


def sizes(shape):
    return SIZE(*(list(shape) + [0] * (8 - len(shape))))


def random_array(rng, dtype, shape):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("u32", "i16", "i8"):  # the whole range, its ends too
        ends = np.iinfo(NUMPY[dtype])
        return np.asarray(rng.choice([ends.min, ends.max, *rng.integers(ends.min, ends.max, 20)], shape)).astype(NUMPY[dtype])
    a = rng.normal(size=shape) * 50
    if dtype.startswith("c"):
        a = a + 1j * rng.normal(size=shape)
    return np.asarray(np.abs(a) if dtype.startswith("u") else a).astype(NUMPY[dtype])


def read_all(source):
    a = np.empty(list(source.size)[:source.n_axes], NUMPY[DTYPES[source.dtype]])
    if source.read(source.self, sizes([]), source.size, a.ctypes.data, None):
        raise RuntimeError("read failed")
    LIB.fth_source_close(C.byref(source))
    return a


def write_in_parts(sink, a):
    """Rows from the back, so that checksums cannot follow the writes."""
    a = np.ascontiguousarray(a)
    parts = [((), a.shape, a)] if a.ndim == 0 or a.shape[0] == 0 else [
        ([i] + [0] * (a.ndim - 1), (1,) + a.shape[1:], np.ascontiguousarray(a[i:i + 1])) for i in reversed(range(a.shape[0]))]
    for lo, n, part in parts:
        if sink.write(sink.self, sizes(lo), sizes(n), part.ctypes.data, None):
            raise RuntimeError("write failed")
    if sink.commit(sink.self, None):
        raise RuntimeError("commit failed")


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.mem = C.c_void_p()
        options = (C.c_char * 256)()
        LIB.fth_mem_options_default(options)
        call("fth_mem_create", C.byref(self.mem), options, None)
        self.rng = np.random.default_rng(7)

    def tearDown(self):
        call("fth_mem_destroy_", self.mem, Site(b"test_io_numpy.py", b"tearDown", 0), None)
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def cases(self):
        for dtype in NUMPY:
            for shape in ((), (0,), (5,), (4, 3), (2, 3, 4)):
                yield dtype, random_array(self.rng, dtype, shape)

    def test_npy_from_numpy(self):
        for dtype, a in self.cases():
            for b in (a, np.asfortranarray(a), a.astype(a.dtype.newbyteorder(">"))):
                path = self.path("a.npy")
                np.save(path, b)
                s = Source()
                call("fth_npy_open", C.byref(s), self.mem, path.encode(), None)
                np.testing.assert_array_equal(read_all(s), a)

    def test_npy_to_numpy(self):
        for dtype, a in self.cases():
            path = self.path("b.npy")
            k = Sink()
            call("fth_npy_create", C.byref(k), self.mem, path.encode(), DTYPES.index(dtype), a.ndim, sizes(a.shape), None)
            write_in_parts(k, a)
            LIB.fth_sink_close(C.byref(k))
            b = np.load(path)
            self.assertEqual(b.dtype, a.dtype)
            np.testing.assert_array_equal(b, a)

    def test_npz_from_numpy(self):
        arrays = {f"x{i}": a for i, (_, a) in enumerate(self.cases())}
        for save in (np.savez, np.savez_compressed):
            path = self.path("a.npz")
            save(path, **arrays)
            npz = C.c_void_p()
            call("fth_npz_open", C.byref(npz), self.mem, path.encode(), None)
            for name, a in arrays.items():
                s = Source()
                call("fth_npz_source", npz, name.encode(), C.byref(s), None)
                np.testing.assert_array_equal(read_all(s), a)
            LIB.fth_npz_close(npz)

    def items(self, arrays):
        return (Item * len(arrays))(*[
            Item(n.encode(), DTYPES.index(d), a.ndim, sizes(a.shape), None) for n, (d, a) in arrays.items()])

    def test_npz_to_numpy(self):
        arrays = {f"x{i}": c for i, c in enumerate(self.cases())}
        path = self.path("b.npz")
        w = C.c_void_p()
        call("fth_npz_create", C.byref(w), self.mem, path.encode(), self.items(arrays), C.c_int64(len(arrays)), None)
        for name, (_, a) in arrays.items():
            k = Sink()
            call("fth_npz_sink", w, name.encode(), C.byref(k), None)
            write_in_parts(k, a)
        call("fth_npz_commit", w, None)
        with zipfile.ZipFile(path) as z:
            self.assertIsNone(z.testzip())
        with np.load(path) as z:
            self.assertEqual(sorted(z.files), sorted(arrays))
            for name, (_, a) in arrays.items():
                self.assertEqual(z[name].dtype, a.dtype)
                np.testing.assert_array_equal(z[name], a)

    def test_more_members_than_16_bits(self):
        n = 66000
        arrays = {f"m{i}": ("u8", np.uint8(i % 251).reshape(())) for i in range(n)}
        path = self.path("many.npz")
        w = C.c_void_p()
        call("fth_npz_create", C.byref(w), self.mem, path.encode(), self.items(arrays), C.c_int64(n), None)
        k = Sink()
        for name, (_, a) in arrays.items():
            call("fth_npz_sink", w, name.encode(), C.byref(k), None)
            write_in_parts(k, a)
        call("fth_npz_commit", w, None)
        with zipfile.ZipFile(path) as z:
            self.assertEqual(len(z.namelist()), n)
            self.assertEqual(z.read("m65999.npy")[-1], 65999 % 251)

    def test_safetensors_to_struct_and_json(self):
        arrays = {f"x{i}": c for i, c in enumerate(self.cases())}
        path = self.path("a.safetensors")
        w = C.c_void_p()
        call("fth_safetensors_create", C.byref(w), self.mem, path.encode(), self.items(arrays), C.c_int64(len(arrays)), None,
             None)
        for name, (_, a) in arrays.items():
            k = Sink()
            call("fth_safetensors_sink", w, name.encode(), C.byref(k), None)
            write_in_parts(k, a)
        call("fth_safetensors_commit", w, None)
        with open(path, "rb") as f:
            length, = struct.unpack("<Q", f.read(8))
            head = json.loads(f.read(length))
            data = f.read()
        meta = head.pop("__metadata__")
        self.assertEqual((8 + length) % 64, 0)
        self.assertEqual(sorted(head), sorted(arrays))
        end = 0
        for name, e in sorted(head.items(), key=lambda x: x[1]["data_offsets"]):
            dtype, a = arrays[name]
            begin, end_here = e["data_offsets"]
            self.assertEqual((begin, e["dtype"]), (end, ST[dtype]))
            end = end_here
            item = min(a.dtype.itemsize, 8)
            self.assertEqual((8 + length + begin) % item, 0)
            parts = [2] if dtype == "c128" else []
            self.assertEqual(e["shape"], list(a.shape) + parts)
            np.testing.assert_array_equal(np.frombuffer(data[begin:end], a.dtype).reshape(a.shape), a)
            self.assertEqual(len(meta["xxh64." + name]), 16)
            if parts:
                self.assertEqual(meta["axes." + name].split()[-1], "ri")
        self.assertEqual(end, len(data))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
