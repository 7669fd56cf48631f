"""Parquet files that pyarrow and polars write, read by us and compared value by value: types, nulls, encodings, codecs, versions and
sizes of pages at random, and a folder of Visium HD with a table of pyarrow. The packages are fetched from the package index into a folder
of the build; without an index there is nothing to try. FATHOM_LIBRARY names the shared library, FATHOM_PROGRAM the program.
seconds: 120"""
import ctypes as C
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import packages

SO = pathlib.Path(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so").resolve()
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
LIB = C.CDLL(str(SO))
VENV = SO.parents[1] / "parquet_reader"
PACKAGES = ["pyarrow==26.0.1", "polars==2.1.0"]

# Files 0 to argv[2] in the folder argv[1]; what they hold, as JSON: names and values, None for a null.
WRITE = """
import json, random, sys
import polars, pyarrow as pa, pyarrow.parquet as pq
rng, held = random.Random(5), []
KINDS = {"b": pa.bool_(), "i": pa.int32(), "l": pa.int64(), "u": pa.uint32(), "f": pa.float32(), "d": pa.float64(), "s": pa.string()}
def value(k, wide):
    if k == "b": return rng.random() < 0.3
    if k in "il":
        top = 2 ** (31 if k == "i" else 63) - 1 if wide else 300
        return rng.randint(-top, top)
    if k == "u": return rng.randint(0, 2**32 - 1 if wide else 9)
    if k in "fd": return rng.randint(-2**20, 2**20) / 8 if wide else rng.randint(0, 5) / 4
    return "".join(rng.choice("abc\\u00e4-") for _ in range(rng.randint(0, 30 if wide else 2)))
for n in range(int(sys.argv[2])):
    rows = rng.choice([0, 1, 7, 100, 1000, 9000])
    columns, schema = {}, []
    for k, kind in KINDS.items():
        wide, nulls = rng.random() < 0.5, rng.choice([0, 0, 0.1, 0.9, 1])
        columns[k] = [None if rng.random() < nulls else value(k, wide) for _ in range(rows)]
        schema.append(pa.field(k, kind, nullable=nulls > 0 or rng.random() < 0.5))
    table = pa.table(columns, schema=pa.schema(schema))
    path = f"{sys.argv[1]}/{n}.parquet"
    if n % 4 == 3:
        polars.from_arrow(table).write_parquet(path, compression=rng.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
                                               row_group_size=rng.choice([None, 10, 500]), data_page_size=rng.choice([None, 300]))
    else:
        plain = rng.random() < 0.5
        encoding = {k: e for k, e in {"i": rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
                                      "l": rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
                                      "u": rng.choice(["PLAIN", "DELTA_BINARY_PACKED"]), "f": rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"]),
                                      "d": rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"]), "b": rng.choice(["PLAIN", "RLE"]),
                                      "s": rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY"])}.items()}
        pq.write_table(table, path, compression=rng.choice(["none", "snappy", "gzip", "zstd", "lz4"]), use_dictionary=not plain,
                       column_encoding=encoding if plain else None, data_page_version=rng.choice(["1.0", "2.0"]),
                       row_group_size=rng.choice([10, 500, 100000]), data_page_size=rng.choice([100, 2000, 2**20]),
                       write_batch_size=rng.choice([3, 1024]), write_page_checksum=rng.random() < 0.5,
                       dictionary_pagesize_limit=rng.choice([100, 2**20]))
    held.append(columns)
json.dump(held, sys.stdout)
"""
# The columns of argv[1] as a table argv[2].
TABLE = """
import json, sys
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table(json.load(open(sys.argv[1]))), sys.argv[2], compression=sys.argv[3])
"""


class Text(C.Structure):
    _fields_ = [("chars", C.c_void_p), ("bytes", C.c_int64)]


class Block(C.Structure):
    _fields_ = [("first", C.c_int64), ("n", C.c_int64), ("bools", C.POINTER(C.c_uint8)), ("i32", C.POINTER(C.c_int32)),
                ("i64", C.POINTER(C.c_int64)), ("f32", C.POINTER(C.c_float)), ("f64", C.POINTER(C.c_double)),
                ("text", C.POINTER(Text)), ("present", C.POINTER(C.c_uint8))]


def setUpModule():
    why = packages.fetch(VENV, PACKAGES)
    if why:
        raise unittest.SkipTest(why)


class Readers(unittest.TestCase):
    def setUp(self):
        self.mem = C.c_void_p()
        self.assertEqual(LIB.fth_mem_create(C.byref(self.mem), None, None), 0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def python(self, program, *args):
        done = subprocess.run([VENV / "bin/python", "-c", program, *map(str, args)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    def column(self, file, name):
        at, column, values = LIB.fth_parquet_find(file, name.encode()), C.c_void_p(), []
        self.assertEqual(LIB.fth_parquet_column_open(C.byref(column), file, C.c_int64(at), None), 0, name)
        while True:
            b = Block()
            self.assertEqual(LIB.fth_parquet_next(column, C.byref(b), None), 0, name)
            if b.n == 0:
                break
            self.assertEqual(b.first, len(values))
            for k in range(b.n):
                if b.present and not b.present[k]:
                    values.append(None)
                elif b.text:
                    values.append(C.string_at(b.text[k].chars, b.text[k].bytes).decode() if b.text[k].bytes else "")
                else:
                    number = next(a for a in (b.bools, b.i32, b.i64, b.f32, b.f64) if a)[k]
                    values.append(bool(number) if b.bools else number)
        LIB.fth_parquet_column_close(column)
        return values

    def test_random_tables(self):
        held = self.python(WRITE, self.dir, 60)
        for n, columns in enumerate(held):
            file = C.c_void_p()
            self.assertEqual(LIB.fth_parquet_open(C.byref(file), self.mem, f"{self.dir}/{n}.parquet".encode(), None), 0)
            for name, wanted in columns.items():
                with self.subTest(file=n, column=name):
                    found = self.column(file, name)
                    if name == "f":
                        wanted = [None if v is None else struct.unpack("f", struct.pack("f", v))[0] for v in wanted]
                    self.assertEqual(found, wanted)
            LIB.fth_parquet_close(file)

    def test_a_folder_of_visium_hd(self):
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(pathlib.Path("tests/golden/tenx").resolve()))
        import make
        import numpy as np
        for kind in ("visium_hd", "xenium"):
            for codec in ("snappy", "zstd", "gzip", "none", "lz4"):
                data, out = self.dir / "data", self.dir / "out"
                shutil.rmtree(data, ignore_errors=True)
                shutil.rmtree(out, ignore_errors=True)
                n = 5000
                make.folder(data, kind, n=n)
                (self.dir / "table.json").write_text(json.dumps(make.table(kind, n)))
                where = "cells.parquet" if kind == "xenium" else "spatial/tissue_positions.parquet"
                self.python(TABLE, self.dir / "table.json", data / where, codec)
                (self.dir / "c.yaml").write_text(f"instrument: spatial\nname: t\ndataset: {kind}\noutput_dir: {out}\n"
                                                 f"preprocessing: {{path: {data}, rescale: false, in_tissue: false}}\n"
                                                 "model: {spatial: false}\n")
                done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", self.dir / "c.yaml"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                np.testing.assert_array_equal(np.load(out / "preprocessed/X.npy"), make.positions(n).astype("f4"))


if __name__ == "__main__":
    unittest.main()
