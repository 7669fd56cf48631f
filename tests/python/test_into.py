# test_into.py - outputs that become files: formats, several in one file, streams, failures.
# seconds: 10
import os
import resource
import signal
import struct
import tempfile
import unittest
from unittest import mock

import fathom
import numpy as np

RNG = np.random.default_rng(11)
HERE = os.path.abspath(__file__)
CONTAINERS = (".npz", ".safetensors", ".h5", ".hdf5")
SINGLE = (".npy", ".zarr")


def safetensors_head(path):
    """The header, by the bytes alone."""
    import json
    with open(path, "rb") as f:
        return json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))


def ramp(size):
    """A source that is larger than anybody's memory; float32 [size 64]."""
    def read(lo, n):
        rows = np.arange(lo[0], lo[0] + n[0], dtype="f4")[:, None]
        return rows * 0.5 + np.arange(lo[1], lo[1] + n[1], dtype="f4")
    return fathom.Source((size, 64), "f4", read)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.x = RNG.normal(size=(300, 7)).astype("f4")
        self.g = fathom.Graph(memory="64M", threads=2)
        self.g.axes(cell=300, dim=7)
        self.X = self.g.input("X", self.x, "cell dim")

    def path(self, name):
        return os.path.join(self.folder, name)

    def left(self):
        return sorted(os.listdir(self.folder))

    def read(self, place, axes="cell dim"):
        g = fathom.Graph(memory="64M", threads=2)
        g.axes(cell=300, dim=7)
        return g.input("y", place, axes).numpy()

    def error(self, into, outputs=None, status=None):
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan(outputs or {"a": self.X * 2.0, "b": self.X.sum("dim")}, into=into)
        e = caught.exception
        self.assertEqual(os.path.abspath(e.site.file), HERE)
        if status:
            self.assertEqual(e.status, status)
        return e


class Formats(Files):
    def test_every_format_comes_back_through_the_library(self):
        values = {"f": (self.X * 2.0, self.x * 2), "b": (self.X > 0.0, self.x > 0),
                  "d": (self.X.cast("f64"), self.x.astype("f8")),
                  "i": ((self.X * 9.0).cast("i32"), (self.x * 9).astype("i4")),
                  "z": (fathom.complex_of(self.X, self.X), self.x + 1j * self.x)}
        for ending in CONTAINERS:
            path = self.path("out" + ending)
            plan = self.g.plan({k: v for k, (v, _) in values.items()}, into=path)
            got = plan.run()
            self.assertEqual(self.left(), ["out" + ending])
            for key, (_, expected) in values.items():
                self.assertEqual(got[key], (path, key))
                back = self.read(got[key])  # what run() gave back is a place to read from
                self.assertEqual(back.dtype, expected.dtype)
                np.testing.assert_array_equal(back, expected, f"{ending} {key}")
            os.remove(path)
        for ending in SINGLE:
            for key, (value, expected) in values.items():
                path = self.path(key + ending)
                self.assertEqual(self.g.plan(value, into=path).run(), path)
                np.testing.assert_array_equal(self.read(path), expected, f"{ending} {key}")

    def test_other_readers(self):
        outputs = {"a": self.X * 2.0, "total": self.X.sum("cell dim"), "none": self.X.sum("dim")}
        for ending in (".npz", ".safetensors", ".h5"):
            self.g.plan(outputs, into=self.path("o" + ending)).run()
        with np.load(self.path("o.npz")) as z:
            self.assertEqual(sorted(z.files), ["a", "none", "total"])
            np.testing.assert_array_equal(z["a"], self.x * 2)
            self.assertEqual(z["total"].shape, ())
        head = safetensors_head(self.path("o.safetensors"))
        self.assertEqual(head["a"]["shape"], [300, 7])
        meta = head["__metadata__"]
        self.assertEqual((meta["axes.a"], meta["axes.none"], meta["axes.total"]), ("cell dim", "cell", ""))
        try:
            import h5py
        except ImportError:
            return
        with h5py.File(self.path("o.h5")) as f:
            np.testing.assert_array_equal(f["a"], self.x * 2)
            self.assertEqual([d.label for d in f["a"].dims], ["cell", "dim"])
            self.assertEqual(f["total"].shape, ())

    def test_groups_of_hdf5(self):
        path = self.path("o.h5")
        self.g.plan([self.X * 2.0, self.X * 3.0, self.X * 4.0],
                    into={0: (path, "/deep/er/a"), 1: (path, "deep/b"), 2: (path, "c")}).run()
        for k, name in ((2, "deep/er/a"), (3, "/deep/b"), (4, "/c")):
            np.testing.assert_array_equal(self.read((path, name)), self.x * k)

    def test_zarr_names_its_axes(self):
        import json
        path = self.path("o.zarr")
        self.g.plan(self.X * 2.0, into=path).run()
        with open(os.path.join(path, "zarr.json")) as f:
            self.assertEqual(json.load(f)["dimension_names"], ["cell", "dim"])
        os.makedirs(self.path("group.zarr"))
        os.rename(path, self.path("group.zarr/a"))
        np.testing.assert_array_equal(self.read((self.path("group.zarr"), "a")), self.x * 2)

    def test_forms_of_into(self):
        y, total, whole = self.X * 2.0, self.X.sum("dim"), np.empty((300, 7), "f4")
        self.assertIs(self.g.plan(y, into=whole).run(), whole)  # one value: its place
        np.testing.assert_array_equal(whole, self.x * 2)
        self.assertEqual(self.g.plan(y, into=(self.path("a.npz"), "q")).run(), (self.path("a.npz"), "q"))
        parts = []
        self.g.plan(y, into=lambda lo, part: parts.append(part)).run()
        np.testing.assert_array_equal(np.concatenate(parts), self.x * 2)
        mixed = self.g.plan({"y": y, "t": total, "u": total * 2.0, "w": total * 3.0},
                            into={"y": self.path("y.npy"), "t": (self.path("b.npz"), "t"),
                                  "w": (self.path("b.npz"), "w")}).run()
        np.testing.assert_array_equal(mixed["u"], 2 * self.read(mixed["t"], "cell"))
        np.testing.assert_array_equal(mixed["u"] * np.float32(1.5), self.read(mixed["w"], "cell"))
        np.testing.assert_array_equal(np.load(mixed["y"]), self.x * 2)
        from pathlib import Path
        self.g.plan({"y": y}, into=Path(self.path("c.npz"))).run()
        self.g.plan({"y": y}, into={"y": (Path(self.path("c.safetensors")), "y")}).run()
        np.testing.assert_array_equal(self.read((self.path("c.npz"), "y")), self.x * 2)

    def test_one_value_to_two_files(self):
        y = self.X * 2.0
        self.g.plan([y, y, y], into={0: (self.path("a.npz"), "p"), 1: (self.path("a.npz"), "q"),
                                     2: self.path("y.npy")}).run()
        for place in ((self.path("a.npz"), "p"), (self.path("a.npz"), "q"), self.path("y.npy")):
            np.testing.assert_array_equal(self.read(place), self.x * 2)

    def test_sizes_of_nothing(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(none=0, one=1)
        outputs = {"a": g.index("none"), "b": g.index("one")}
        for ending in CONTAINERS:
            got = g.plan(outputs, into=self.path("n" + ending)).run()
            for key, size in (("a", 0), ("b", 1)):
                h = fathom.Graph(memory="64M", threads=1)
                h.axes(i=size)
                np.testing.assert_array_equal(h.input("x", got[key], "i").numpy(), np.arange(size))

    def test_a_plan_runs_again(self):
        for ending in CONTAINERS:
            path = self.path("o" + ending)
            plan = self.g.plan({"a": self.X * 2.0, "b": self.X.sum("dim")}, into=path)
            self.assertEqual(self.left(), [])  # planning writes nothing
            plan.run()
            with open(path, "rb") as f:
                first = f.read()
            plan.run()
            with open(path, "rb") as f:
                self.assertEqual(f.read(), first, ending)
            self.x += 1
            plan.run()
            np.testing.assert_array_equal(self.read((path, "a")), self.x * 2)
            os.remove(path)


class Refused(Files):
    def test_places_that_are_none(self):
        known = "'x.npz', 'x.safetensors', 'x.h5'"
        for into in ("x.csv", {"a": "x.dat"}, {"a": ("x.txt", "a")}, {"a": "x"}):
            e = self.error(into, status="FILE_FORMAT")
            self.assertIn(known, e.hint)
        for into in ({"a": 5}, {"a": ("x.npz", "a", "b")}, {"a": ("x.npz", 5)}, {"a": (1, "a")},
                     {"c": "x.npy"}, "x.npy", 5):
            self.error(into, status="NO_SINK")
        self.assertIn("'a', 'b'", self.error({"c": "x.npy"}).hint)
        for into in ({"a": "x.npz"}, {"a": ("x.npz", "")}, {"a": ("x.h5", "/")}, {"a": ("x.npy", "a")},
                     {"a": ("x.zarr", "a")}):
            self.error(into, status="FILE_FORMAT")
        self.assertIn("('x.npz', 'a')", self.error({"a": "x.npz"}).hint)
        self.assertEqual(self.left(), [])

    def test_one_place_for_two(self):
        os.mkdir(self.path("sub"))
        os.symlink(self.path("sub"), self.path("link"))
        for a, b in ((("x.npz", "q"), ("x.npz", "q")), (("x.npz", "q"), ("./x.npz", "q.npy")),
                     (("x.h5", "q"), ("x.h5", "/q")), (("x.h5", "q"), ("x.h5", "q/r")),
                     (("x.h5", "q/r"), ("x.h5", "q")), ("x.npy", "x.npy"), ("x.zarr", "sub/../x.zarr"),
                     ("sub/x.npy", "link/x.npy")):
            a, b = ((self.path(p[0]), p[1]) if isinstance(p, tuple) else self.path(p) for p in (a, b))
            e = self.error({"a": a, "b": b}, status="ALIAS")
            self.assertIn("'a' and 'b'", e.text)

    def test_folders_that_are_not_there_are_told_before_anything_is_computed(self):
        calls = []
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(i=5)
        x = g.input("x", fathom.Source((5,), "f8", lambda lo, n: calls.append(n) or np.ones(n)), "i") + 1.0
        for name in ("no/x.npy", "no/x.zarr", ("no/x.npz", "a"), ("no/x.safetensors", "a"), ("no/x.h5", "a")):
            place = (self.path(name[0]), name[1]) if isinstance(name, tuple) else self.path(name)
            with self.assertRaises(fathom.Error) as caught:
                g.plan(x, into=place).run()
            self.assertEqual(caught.exception.status, "FILE_WRITE")
            self.assertEqual(os.path.abspath(caught.exception.site.file), HERE)
        self.assertEqual((calls, self.left()), ([], []))

    def test_a_bad_name_in_one_file_leaves_nothing_of_the_others(self):
        for ending in (".npz", ".safetensors"):
            name = "x" * 2000 if ending == ".npz" else "__metadata__"
            plan = self.g.plan({"a": self.X * 2.0, "b": self.X.sum("dim"), "c": self.X * 1.5},
                               into={"a": (self.path("a.h5"), "a"), "b": (self.path("o" + ending), name),
                                     "c": self.path("c.npy")})
            with self.assertRaises(fathom.Error):
                plan.run()
            self.assertEqual(self.left(), [])

    def test_reading_what_is_none(self):
        for place in ("x.csv", ("x.npz",), ("a", "b", "c"), ("x.npz", 5), (5, "a"), "x.npz"):
            with self.assertRaises(fathom.Error) as caught:
                self.g.input("q", place, "cell dim")
            self.assertEqual(caught.exception.status, "FILE_FORMAT")
            self.assertEqual(os.path.abspath(caught.exception.site.file), HERE)


class Failures(Files):
    """Nothing new appears, what was there stays."""
    N = 40000

    def setUp(self):
        super().setUp()
        self.stop = None
        base = ramp(self.N).read

        def read(lo, n):
            if self.stop and lo[0] > self.N // 2:
                self.stop()
            return base(lo, n)
        self.g = fathom.Graph(memory="32M", threads=2)
        self.g.axes(cell=self.N, dim=64)
        self.X = self.g.input("X", fathom.Source((self.N, 64), "f4", read), "cell dim")
        self.w = self.g.param("w", np.ones(64, "f4"), "dim")

    def plan(self):
        y = self.X * self.w
        into = {"a": (self.path("o.npz"), "a"), "b": (self.path("o.safetensors"), "b"), "c": self.path("c.npy"),
                "d": (self.path("o.h5"), "d"), "e": (self.path("o.npz"), "e"), "f": self.path("f.zarr"),
                "g": (self.path("o.h5"), "g"), "h": (self.path("o.safetensors"), "h")}
        values = {"a": y, "b": y * 2.0, "c": y.sum("dim"), "d": y.sum("cell"), "e": y.sum("cell"),
                  "f": y.max("dim"), "g": y * 3.0, "h": y.sum("dim")}
        return self.g.plan(values, updates=[fathom.assign(self.w, self.w * 2.0)], into=into, memory="12M")

    def bytes_of_all(self):
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    found[os.path.relpath(os.path.join(folder, name), self.folder)] = f.read()
        return found

    def test_failed_and_cancelled(self):
        def fail():
            raise ValueError("the disk is wet")

        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
        plan = self.plan()
        self.assertGreater(plan.info["chunks"], 3)
        for old in (False, True):
            before = self.bytes_of_all()
            self.stop = fail
            with self.assertRaises(fathom.Error) as caught:
                plan.run()
            self.assertIn("the disk is wet", caught.exception.text)
            self.stop = interrupt
            with self.assertRaises(KeyboardInterrupt):
                plan.run()
            self.stop = None
            with self.assertRaises(fathom.Error) as caught:
                plan.run(lambda p: p.fraction < 0.5)
            self.assertEqual(caught.exception.status, "CANCELLED")
            self.assertEqual(self.bytes_of_all(), before)
            self.assertEqual(self.w.array[0], 2.0 if old else 1.0)
            if not old:
                plan.run()
                self.assertEqual(self.left(), ["c.npy", "f.zarr", "o.h5", "o.npz", "o.safetensors"])

    def test_a_disk_that_fills(self):
        plan = self.plan()
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
            with self.assertRaises(fathom.Error) as caught:
                plan.run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        self.assertEqual(caught.exception.status, "FILE_WRITE")
        self.assertEqual((self.left(), self.w.array[0]), ([], 1.0))

    def test_a_file_that_cannot_get_its_name_changes_no_parameter(self):
        for name in ("o.npz", "o.safetensors", "o.h5"):
            folder = self.path("for_" + name)
            os.mkdir(folder)
            path = os.path.join(folder, name)
            y = self.X * self.w
            plan = self.g.plan({"a": y, "b": y.sum("dim")}, updates=[fathom.assign(self.w, self.w * 2.0)],
                               into=path, memory="12M")

            def block(p, path=path):
                os.makedirs(os.path.join(path, "x"), exist_ok=True)
            with self.assertRaises(fathom.Error) as caught:
                plan.run(block)
            self.assertEqual(caught.exception.status, "FILE_WRITE", name)
            self.assertEqual((os.listdir(folder), self.w.array[0]), ([name], 1.0))
            self.g = fathom.Graph(memory="32M", threads=2)  # a parameter is assigned once per graph
            self.g.axes(cell=self.N, dim=64)
            self.X = self.g.input("X", ramp(self.N), "cell dim")
            self.w = self.g.param("w", np.ones(64, "f4"), "dim")


class Writers(Files):
    """What is shared by outputs of one file ends once, and nothing reaches for it afterwards."""

    def watched(self, plan):
        """(names of ends that were called, whether members could be abandoned) in a run."""
        lib, ends, open_ends = fathom._lib, [], []

        def watch(name):
            real = getattr(lib, name)
            return lambda *args: (ends.append(name[4:]), real(*args))[1]

        def run(p, sinks, *args, real=lib.fth_run):
            open_ends.extend(bool(s.abandon) for s in sinks if s.kind in (b"npz", b"safetensors", b"hdf5"))
            return real(p, sinks, *args)
        names = [f"fth_{kind}_{end}" for kind in ("npz", "safetensors", "h5") for end in ("commit", "abandon")]
        with mock.patch.multiple(lib, fth_run=run, **{name: watch(name) for name in names}):
            try:
                plan.run()
            except fathom.Error as e:
                ends.append(e.status)
        return ends, open_ends

    def test_each_ends_once(self):
        values = {"a": self.X * 2.0, "b": self.X.sum("dim"), "c": self.X * 3.0, "d": self.X * 4.0}
        for ending, kind in ((".npz", "npz"), (".safetensors", "safetensors"), (".h5", "h5")):
            folder = self.path("for" + ending)
            os.mkdir(folder)
            path, late = os.path.join(folder, "o" + ending), os.path.join(folder, "late.npy")
            plan = self.g.plan(values, into={"a": (path, "a"), "c": (path, "c"), "d": late})
            self.assertEqual(self.watched(plan), ([kind + "_commit"], [False, False]))
            os.remove(late)
            os.makedirs(os.path.join(late, "x"))  # what is committed last cannot get its name
            with self.assertRaises(fathom.Error):
                plan.run()
            self.assertEqual(sorted(os.listdir(folder)), ["late.npy", "o" + ending])
            np.testing.assert_array_equal(self.read((path, "c")), self.x * 3)

    def test_failed_runs_abandon(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(i=5)

        def read(lo, n):
            raise ValueError("no")
        x = g.input("x", fathom.Source((5,), "f8", read), "i")
        for ending, kind in ((".npz", "npz"), (".safetensors", "safetensors"), (".h5", "h5")):
            plan = g.plan({"a": x * 2.0, "b": x.sum()}, into=self.path("o" + ending))
            self.assertEqual(self.watched(plan), ([kind + "_abandon", "FILE_READ"], [False, False]))
        self.assertEqual(self.left(), [])

    def test_plans_know_the_libraries_of_files(self):
        for ending, library in ((".h5", "HDF5"), (".zarr", "zstd"), (".npz", None)):
            into = {"a": self.path("o" + ending)} if ending == ".zarr" else self.path("o" + ending)
            text = self.g.plan({"a": self.X * 2.0}, into=into).text
            for name in ("HDF5", "zstd"):
                self.assertEqual(name in text, name == library, (ending, name))


class Streamed(Files):
    N = (200 << 20) // 256  # 200 MiB of f4 [N 64]

    def test_files_larger_than_the_budget(self):
        for ending in (".npy", ".npz", ".safetensors", ".h5", ".zarr"):
            g = fathom.Graph(memory="24M", threads=2)
            g.axes(cell=self.N, dim=64)
            X = g.input("X", ramp(self.N), "cell dim")
            path = self.path("o" + ending)
            several = ending not in SINGLE
            plan = g.plan({"S": X * 2.0, "T": X.sum("dim")}, memory="16M",
                          into=path if several else {"S": path, "T": self.path("t.npy")})
            plan.run()
            report = plan.report
            self.assertEqual(report["ledger_bytes"], report["planned_bytes"], ending)
            self.assertLessEqual(report["planned_bytes"], 16 << 20)
            self.assertTrue(report["kept"], (ending, report))
            if ending != ".zarr":  # its chunks are packed
                self.assertGreaterEqual(os.path.getsize(path), 200 << 20)
            h = fathom.Graph(memory="24M", threads=2)
            h.axes(cell=self.N, dim=64)
            back = h.input("S", (path, "S") if several else path, "cell dim")
            same = back == h.input("X", ramp(self.N), "cell dim") * 2.0
            self.assertTrue(h.plan(same.all("cell dim"), memory="16M").run(), ending)
            os.system(f"rm -rf {path}")

    def test_same_bytes_at_any_budget(self):
        for ending in (".npy", ".npz", ".safetensors", ".h5"):
            found = set()
            for memory in ("1M", "3M", "60M"):
                g = fathom.Graph(memory="128M", threads=2)
                g.axes(cell=30000, dim=64)
                X = g.input("X", ramp(30000), "cell dim")
                path = self.path("o" + ending)
                if ending == ".npy":
                    g.plan(X * 2.0, into=path, memory=memory).run()
                else:
                    g.plan({"S": X * 2.0, "T": X.sum("cell"), "U": X.sum("dim")}, into=path, memory=memory).run()
                with open(path, "rb") as f:
                    found.add(hash(f.read()))
            self.assertEqual(len(found), 1, ending)

    def test_the_rooms_of_a_writer_are_planned(self):
        # A plan for all that is left of the budget leaves what packing a Zarr array takes.
        g = fathom.Graph(memory="24M", threads=2)
        g.axes(cell=self.N // 4, dim=64)
        X = g.input("X", ramp(self.N // 4), "cell dim")
        plan = g.plan({"S": X * 2.0}, into={"S": self.path("o.zarr")})
        plan.run()
        self.assertTrue(plan.report["kept"])
        self.assertLessEqual(plan.report["planned_bytes"] + plan.report["allowance_bytes"], 24 << 20)


if __name__ == "__main__":
    unittest.main()
