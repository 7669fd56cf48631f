# test_refusals.py - what the binding cannot take is refused at the line that gave it, before anything is built.
# seconds: 2
import inspect
import json
import os
import tempfile
import unittest

import fathom
import numpy as np

HERE = os.path.abspath(__file__)


class Case(unittest.TestCase):
    def setUp(self):
        self.g = fathom.Graph(memory="64M", threads=1)
        self.g.axes(a=3, b=4)
        self.x = self.g.input("x", np.arange(12.0).reshape(3, 4), "a b")

    def refused(self, wrong, word, status=None):
        with self.assertRaises(fathom.Error) as caught:
            wrong()
        e = caught.exception
        self.assertIn(word, e.text + " | " + e.hint)
        self.assertEqual(os.path.abspath(e.site.file), HERE)
        if status:
            self.assertEqual(e.status, status)


class Contexts(Case):
    def test_a_closed_context_says_so(self):
        c = fathom.Context(memory="64M", threads=1)
        c.close()
        c.close()
        self.assertEqual(repr(c), "<fathom.Context, closed>")
        for use in (lambda: c.threads, lambda: c.device, lambda: c.device_reason, lambda: c.tensor(3),
                    lambda: fathom.Graph(c), lambda: fathom.Batches(c, np.ones((3, 2)), rows=1),
                    lambda: fathom.focus(np.ones((3, 20, 20), "u2"), context=c)):
            self.refused(use, "this context was closed at " + __file__, "STATE")


class Operands(Case):
    def test_every_function_of_values(self):
        """Each public function whose first parameter is a value, or a list of them, says what it got."""
        tried = 0
        for name in fathom.__all__:
            function = getattr(fathom, name)
            if isinstance(function, type) or not inspect.isfunction(function):
                continue
            words = list(inspect.signature(function).parameters.values())
            kinds = [str(p.annotation) for p in words]
            if not kinds or kinds[0] not in ("Value", "Param", "Iterable[Value]"):
                continue
            rest = ["lower" if p.name == "triangle" else 1 if k in ("int", "float") else "f4" if k == "DType" else
                    self.x if k in ("Value", "Operand") or k.startswith("Union[Value") else "a"
                    for p, k in zip(words[1:], kinds[1:]) if p.default is p.empty]
            for wrong in (np.ones(3), 5, "v", None):
                with self.subTest(name=name, wrong=wrong):
                    self.refused(lambda: function(wrong, *rest), "found " + type(wrong).__name__, "GRAPH_VALUE")
            tried += 1
        self.assertGreater(tried, 70)

    def test_arguments(self):
        g, x = self.g, self.x
        for wrong, word in [
                (lambda: fathom.concat([x], 3, "a"), "names of axes"), (lambda: fathom.concat(x, "a", "a"), "a list of values"),
                (lambda: fathom.stack(x, "k"), "a list of values"), (lambda: fathom.stack([x, np.ones(3)], "k"), "ndarray"),
                (lambda: fathom.custom("op", [x], b""), "expected an Op"),
                (lambda: fathom.axis_id("g", "a"), "expected a graph"),
                (lambda: x.sort("a", descending=np.ones(3)), "expected True or False, found ndarray float64 [3]"),
                (lambda: x.clip("0", 1), "expected a number"), (lambda: x.clip(0, 10**400), "not a number of f64"),
                (lambda: x.clip(0, 2**53 + 1), "9007199254740993, which is not a number of f64"),
                (lambda: x.pad("a", 1, "b", -2**53 - 1), "clip, pad and scatter of i64 do"),
                (lambda: g.scalar("s", 1.0).set("x"), "scalar 's': expected a number, found str 'x'"),
                (lambda: x.show("x"), "not a whole number"),
                (lambda: g.plan(x, stream=["n"]), "name of an axis"), (lambda: g.plan(x, updates=5), "found int 5"),
                (lambda: fathom.Context(device=1), "no text"), (lambda: fathom.Context(trace="t"), "fathom.Trace()"),
                (lambda: fathom.Context(log="t"), "no function"), (lambda: fathom.Context(scratch=5), "path of a file"),
                (lambda: fathom.Source(4, "f8", print), "a tuple"), (lambda: fathom.Source((4,), "f8", 3), "no function"),
                (lambda: fathom.schedule("cosine", "a", .1), "not a whole number"),
                (lambda: fathom.schedule("cosine", -1, .1), "not between 0"),
                (lambda: fathom.schedule("cosine", 1, .1, steps=0), "not between 1"),
                (lambda: fathom.schedule("cosine", 1, "a"), "schedule: rate: expected a number")]:
            self.refused(wrong, word)

    def test_equality_is_a_value_or_refused(self):
        x = self.x
        for wrong in (np.ones(4), [1], (1,), "text", b"x", {}, object()):
            self.refused(lambda: x == wrong, "expected a value of the graph, found " + type(wrong).__name__)
            self.refused(lambda: wrong != x, "expected a value of the graph, found " + type(wrong).__name__)
        self.assertIs(x == None, False)  # noqa: E711 - it is what is tested
        self.assertIs(None != x, True)  # noqa: E711
        self.assertNotIn(x, [None])
        for wrong in (lambda: x + np.ones(4), lambda: np.ones(4) + x, lambda: x < np.ones(4), lambda: [1] * x):
            self.refused(wrong, "g.input(name, array, axes)", "GRAPH_VALUE")
        self.assertEqual((x == 3).sum().item(), 1)


class Lists(Case):
    def test_rows_of_a_batch_are_whole_numbers(self):
        b = fathom.Batches(fathom.Context(memory="64M"), np.arange(6.0).reshape(3, 2), rows=3)
        for wrong, word in (([True, False, True], "np.flatnonzero"), ([1.9], "whole numbers"), ("ab", "whole numbers"),
                            (None, "whole numbers"), ([2**63], "whole numbers"), ([2**70], "whole numbers"),
                            ([[0, 1], [2]], "whole numbers"), ([[0], [1]], "(2, 1)")):
            with np.testing.suppress_warnings() as quiet:
                quiet.filter(getattr(np, "exceptions", np).VisibleDeprecationWarning)
                self.refused(lambda: b.ask(wrong), word)
        for rows in ([2, 0], np.array([2, 0], "u1"), []):
            b.ask(rows)
            np.testing.assert_array_equal(b.take(), np.arange(6.0).reshape(3, 2)[np.array(rows, int)])

    def test_row_pointers_are_whole_numbers(self):
        for wrong in ([0, 1.7, 2.9, 3], [0, 1, np.nan, 3], "abcd", [False, True, True, True], [0, 1, 2, 2**63]):
            self.refused(lambda: self.g.axis_ragged("e", "a", wrong), "whole numbers", "GRAPH_ATTR")
        self.g.axis_ragged("e", "a", np.array([0, 2, 2, 5], "i4"))
        self.assertEqual(self.g.axis_size("e"), 5)


class Text(Case):
    def test_c_sees_all_of_it(self):
        g, x = self.g, self.x
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "victim.npy")
            np.save(place, np.ones(3))
            np.savez(os.path.join(folder, "m.npz"), ab=np.ones(3))
            for wrong in (lambda: g.plan(x, into=place + "\0-backup.npy"),
                          lambda: g.plan(x, into=(os.path.join(folder, "o.npz"), "a\0b")),
                          lambda: g.input("f", place + "\0.npy", "a"),
                          lambda: g.input("f", (os.path.join(folder, "m.npz"), "ab\0cd"), "a"),
                          lambda: g.axis("q\0r", 3), lambda: x.sum("a\0"), lambda: x.label("l\0m"),
                          lambda: g.input("n\0", np.ones(3), "a"), lambda: g.param("n\0", np.ones(3), "a"),
                          lambda: fathom.Trace().write(place + "\0"), lambda: fathom.Context(scratch=folder + "\0"),
                          lambda: fathom.Context(memory="1G\0")):
                self.refused(wrong, "NUL")
            np.testing.assert_array_equal(np.load(place), np.ones(3))
        for wrong in (lambda: g.axis("q\ud800", 3), lambda: x.label("\ud800"),
                      lambda: g.input("f", "\ud800.npy", "a"), lambda: fathom.stack([x], "k\udfff")):
            self.refused(wrong, "surrogate")


class Data(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = lambda name: os.path.join(folder.name, name)

    def test_dtype_of_files(self):
        g = self.g
        np.save(self.at("f8.npy"), np.arange(3.0))
        np.save(self.at("u2.npy"), np.array([0x3f80, 0x4000, 0xc000], "u2"))
        self.refused(lambda: g.input("p", self.at("f8.npy"), "a", dtype="f32"), "holds f64, which cannot be f32", "DTYPE")
        self.assertEqual(g.input("q", self.at("f8.npy"), "a", dtype="f64").dtype, "f64")
        v = g.input("r", self.at("u2.npy"), "a", dtype="bf16")
        np.testing.assert_array_equal(v.cast("f64").numpy(), [1.0, 2.0, -2.0])
        for wrong in (lambda: self.x.cast(None), lambda: g.const(1, dtype=None), lambda: g.scalar("s", 1, dtype=None)):
            self.refused(wrong, "there is no dtype None", "DTYPE_OP")
        self.refused(lambda: g.input("u", np.zeros(3, "u8"), "a"), 'x.astype("i8")', "DTYPE_OP")

    def test_parameters_of_files_and_sources(self):
        g, w = self.g, np.arange(12.0).reshape(3, 4)
        np.save(self.at("w.npy"), w)
        np.savez(self.at("w.npz"), w=w)
        for i, data in enumerate([self.at("w.npy"), (self.at("w.npz"), "w"), fathom.Source(
                (3, 4), "f8", lambda lo, n: w[lo[0]:lo[0] + n[0], lo[1]:lo[1] + n[1]])]):
            p = g.param(f"w{i}", data, "a b")
            g.plan([], updates=fathom.assign(p, p * 2.0)).run()
            np.testing.assert_array_equal(p.array, 2 * w)
        np.testing.assert_array_equal(np.load(self.at("w.npy")), w)

        def read(lo, n):
            raise OSError("the disk is wet")
        self.refused(lambda: g.param("p", fathom.Source((3,), "f8", read), "a"), "the disk is wet", "FILE_READ")
        self.refused(lambda: g.param("p", self.at("none.npy"), "a"), "No such file", "FILE_OPEN")

    def test_names_of_arrays_that_end_as_files_do(self):
        one, two = np.arange(3.0), np.arange(3.0) + 5
        np.savez(self.at("m.npz"), **{"a.npy": one, "b": two, "b.npy": one})
        for name, want in (("a.npy", one), ("a.npy.npy", one), ("b", two), ("b.npy", two)):  # as np.load
            np.testing.assert_array_equal(self.g.input(name, (self.at("m.npz"), name), "a").numpy(), want)
        self.refused(lambda: self.g.input("n", (self.at("m.npz"), "c.npy"), "a"), "it holds: a.npy, b, b.npy", "FILE_KEY")

    def test_arrays_as_they_come(self):
        """Read-only, not contiguous, in Fortran's order, of the other byte order, without axes, empty."""
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(y=3, x=4, none=0)
        a = np.arange(12, dtype="f4").reshape(3, 4)
        locked = a.copy()
        locked.flags.writeable = False
        for i, x in enumerate((locked, np.repeat(a, 2, 1)[:, ::2], np.asfortranarray(a), a.astype(">f4"),
                               np.asfortranarray(a.astype(">f4")))):
            with self.subTest(i=i):
                v = g.input(f"x{i}", x, "y x")
                np.testing.assert_array_equal((v + 1).numpy(), a + 1)
                p = g.param(f"p{i}", x, "y x")
                g.plan([], updates=[fathom.assign(p, p + 1)]).run()
                np.testing.assert_array_equal(p.array, a + 1)
                np.testing.assert_array_equal(x, a)  # what was given stays
        for kind in "<>":
            for dtype in ("i8", "u2", "c16"):
                x = (a * 100).astype(kind + dtype)
                np.testing.assert_array_equal(g.input(kind + dtype, x, "y x").numpy(), x)
        self.assertEqual(g.input("0-d", np.array(2.5, ">f8"), "").item(), 2.5)
        self.assertEqual(g.input("empty", np.empty((0, 4)), "none x").sum("none").numpy().tolist(), [0] * 4)
        source = fathom.Source((3, 4), ">f4", lambda lo, n: a[lo[0]:lo[0] + n[0], lo[1]:lo[1] + n[1]].astype(">f4"))
        np.testing.assert_array_equal(g.input("source", source, "y x").numpy(), a)

    def test_what_is_no_array(self):
        g, a = self.g, np.ones(3)
        out = np.empty((3, 2))
        for wrong, word in ((a.astype("O"), 'x.astype("f8")'), (a.astype(np.longdouble), 'x.astype("f8")'),
                            (a.astype("u8"), "there is no dtype uint64"), ([[1], [1, 2]], "g.axis_ragged"),
                            ((i for i in range(3)), "generator"), ({"a": 1}, "dict {'a': 1} holds no numbers")):
            self.refused(lambda: g.input("w", wrong, "a"), word)
        locked = np.ones(3)
        locked.flags.writeable = False
        v = g.input("v", a, "a")
        for wrong, word in ((out[:, 0], "(3,), not C-contiguous"), (locked, "(3,), read-only"), (np.ones(4), "float64 (4,)")):
            self.refused(lambda: g.plan(v, into=wrong), word, "NO_SINK")
        with self.assertRaises(TypeError) as caught:
            g.plan(v, mem="1G")
        self.assertIn("there are memory, scratch", str(caught.exception))

    def test_attributes_of_arrays(self):
        v = self.g.input("v", np.ones(3), "a")
        for name, word in (("astype", "v.cast"), ("T", "v.layout"), ("reshape", "v.merge"), ("std", "v.variance(axes).sqrt()"),
                           ("ndim", "len(v.axes)"), ("tolist", "v.numpy()"), ("nothing", "a value has no 'nothing'")):
            self.assertFalse(hasattr(v, name))
            with self.assertRaises(AttributeError) as caught:
                getattr(v, name)
            self.assertIn(word, str(caught.exception))

    def test_names_of_axes(self):
        g = fathom.Graph(memory="64M", threads=1)
        self.refused(lambda: g.input("w", np.ones(3), "image"), "declare the axis once", "AXIS_NAME")
        g.axes(image=3, Channel=4, y=5)
        v = g.input("v", np.ones((3, 4)), "image Channel")
        for wrong, word in (("imag", "did you mean 'image'?"), ("iamge", "did you mean 'image'?"), ("channel", "did you mean 'Channel'?"),
                            ("Y", "did you mean 'y'?"), ("image,Channel", 'spaces between them: "y x"'),
                            ("z", "g.axis(..) first; declared are: image Channel y"),
                            ("z" * 90, "g.axis(..) first; declared are: image Channel y")):
            self.refused(lambda: v.sum(wrong), word, "AXIS_NAME")
        for shape, word in (((4, 3), 'as "Channel image"'), ((3,), "the data have 1 axes"), ((3, 6), "compare the sizes"),
                            ((4, 4), "compare the sizes")):
            self.refused(lambda: g.input("w", np.ones(shape), "image Channel"), word, "AXIS_SIZE")

    def test_numbers_without_a_sign(self):
        """u64 is read as i64, and a number that it does not hold is named."""
        for last in (2**63 - 1, 2**63 + 5):
            u = np.array([1, 2, last], "u8")
            np.save(self.at("u.npy"), u)
            np.savez(self.at("u.npz"), u=u)
            head = json.dumps({"u": {"dtype": "U64", "shape": [3], "data_offsets": [0, 24]}}).encode()
            with open(self.at("u.safetensors"), "wb") as f:
                f.write(len(head).to_bytes(8, "little") + head + u.tobytes())
            os.makedirs(self.at("u.zarr"), exist_ok=True)
            with open(self.at("u.zarr/.zarray"), "w") as f:
                json.dump({"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<u8", "compressor": None, "fill_value": 0,
                           "order": "C", "filters": None}, f)
            with open(self.at("u.zarr/0"), "wb") as f:
                f.write(u.tobytes())
            for place in (self.at("u.npy"), (self.at("u.npz"), "u"), (self.at("u.safetensors"), "u"), self.at("u.zarr")):
                v = self.g.input(f"{place}{last}", place, "a")
                if last < 2**63:
                    self.assertEqual(v.numpy().tolist(), u.tolist())
                    continue
                for word in ("found 9223372036854775813, and there is no dtype u64", "save the array as f64"):
                    self.refused(v.numpy, word, "FILE_FEATURE")

    def test_numbers_to_fill_with(self):
        self.g.axes(n=5)
        i = self.g.input("i", np.array([4, 0, 1], "i8"), "a")
        for dtype, fill in (("u2", -1), ("u2", 0.5), ("u2", 70000), ("f2", 70000), ("f8", 2**53 + 1)):
            v = self.g.input(f"v{dtype}{fill}", np.ones(3, dtype), "a")
            self.refused(lambda: v.scatter("a", i, "n", fill=fill), "not a number of", "GRAPH_ATTR")
        v = self.g.input("v", np.ones(3, "u2"), "a")
        np.testing.assert_array_equal(v.scatter("a", i, "n", fill=7).numpy(), [1, 1, 7, 7, 1])
        np.testing.assert_array_equal(v.scatter("a", i, "n", "min", np.inf).numpy(), [1, 1, 65535, 65535, 1])

    def test_an_array_in_place_stays_one(self):
        x = self.g.input("y", np.ones(3), "a")
        plan = self.g.plan(x * 2.0)
        x.set(np.ones(6)[::2])
        self.refused(plan.run, "arrays that are not contiguous", "PLAN_STALE")

    def test_hints_fit(self):
        g, x = self.g, self.x
        self.refused(lambda: fathom.grad(x.cast("i64").sum(), x), "cast what it is")
        self.refused(lambda: fathom.grad(x, x), "sum it over its axes first")
        self.refused(lambda: g.axis_ragged("e", "a", [0, 2, 1, 3]), "compare the sizes in the message", "AXIS_SIZE")
        for status, row in fathom._STATUS.items():
            self.assertNotRegex(row[2], r"--(memory|threads|device|scratch)", status)
        self.refused(lambda: x.window("a", 5, "b"), "of which 0 to 3 can be", "GRAPH_ATTR")

    def test_what_holds_no_numbers(self):
        class Sparse:
            tocsr = None
        self.refused(lambda: self.g.input("n", None, "a"), "None holds no numbers", "DTYPE_OP")
        self.refused(lambda: self.g.input("n", Sparse(), "a"), "g.axis_ragged takes indptr", "DTYPE_OP")

    def test_places_of_outputs(self):
        g, v, a = self.g, self.x + 1.0, np.zeros((3, 4))
        got = g.plan([v, self.x], into=[a, self.at("x.npy")]).run()
        self.assertIs(got[0], a)
        np.testing.assert_array_equal(a, np.load(self.at("x.npy")) + 1)
        self.assertEqual(g.plan([v, v], into=[None, a]).run()[0].shape, (3, 4))
        self.refused(lambda: g.plan([v, v], into=[a]), "1 places for 2 outputs", "NO_SINK")
        self.refused(lambda: g.plan([v, v], into=a), "'into' is ndarray float64 [3, 4], which", "NO_SINK")
        self.refused(lambda: g.plan([v, v], into=a), "{0: place, ..}", "NO_SINK")

    def test_a_folder_for_what_is_spilled(self):
        self.refused(lambda: fathom.Context(scratch=self.at("none")), "is no folder", "SCRATCH")
        fathom.Context(memory="64M", scratch=self.at(""))


if __name__ == "__main__":
    unittest.main()
