# test_mistakes.py - mistakes that are caught leave the graph as it was; numbers that do not fit,
# arrays that are used twice, and children of fork are told.
# seconds: 4
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import fathom
import numpy as np

HERE = os.path.abspath(__file__)


class Surprises(unittest.TestCase):
    """What NumPy's habits make of a value is refused with what to write."""

    def setUp(self):
        self.g = fathom.Graph(memory="64M", threads=1)
        self.g.axes(a=3, b=4)
        self.x = self.g.input("x", np.ones((3, 4), "f4"), "a b")

    def test_python_asks_for_numbers(self):
        x = self.x
        for wrong, word in [(lambda: x[0], "v.slice"), (lambda: x[0, 1:], "v.slice"), (lambda: list(x), "iterable"),
                            (lambda: x @ x, "a.dot"), (lambda: np.ones((4, 3)) @ x, "a.dot"),
                            (lambda: np.asarray(x), "v.numpy()"), (lambda: np.allclose(x, 1), "numpy"),
                            (lambda: float(x.sum()), "v.item()"), (lambda: int(x.sum()), "v.item()"),
                            (lambda: range(3)[x.sum()], "v.item()"), (lambda: bool(x.sum()), "v.item()")]:
            with self.assertRaises(TypeError) as caught:
                wrong()
            self.assertIn(word, str(caught.exception))
        self.assertEqual((np.float32(2) * x).dtype, "f32")  # numbers of NumPy's are numbers

    def refused(self, wrong, word, status=None):
        with self.assertRaises(fathom.Error) as caught:
            wrong()
        e = caught.exception
        self.assertIn(word, e.text + " " + e.hint)
        self.assertEqual(os.path.abspath(e.site.file), HERE)
        if status:
            self.assertEqual(e.status, status)

    def test_what_is_no_value(self):
        g, x = self.g, self.x
        self.refused(lambda: g.plan(None), "NoneType", "GRAPH_VALUE")
        self.refused(lambda: g.plan("x"), "str", "GRAPH_VALUE")
        self.refused(lambda: g.plan(np.ones(3)), "g.input", "GRAPH_VALUE")
        self.refused(lambda: g.plan([x, 5]), "int 5", "GRAPH_VALUE")
        self.refused(lambda: g.plan(x, updates=[x, 5]), "updates", "GRAPH_VALUE")
        self.refused(lambda: g.plan(x, updates=x), "assign", "GRAPH_VALUE")
        self.refused(lambda: fathom.grad(5.0, x), "grad", "GRAPH_VALUE")
        self.refused(lambda: fathom.grad(x.sum(), [x, 1]), "grad", "GRAPH_VALUE")
        self.refused(lambda: g.input("y", x, "a b"), "v.numpy()", "GRAPH_VALUE")
        self.refused(lambda: g.const("5"), "number", "GRAPH_VALUE")
        self.refused(lambda: g.const(np.ones(3)), "g.input", "GRAPH_VALUE")
        self.refused(lambda: g.input("y", None, "a"), "no numbers", "DTYPE_OP")
        self.refused(lambda: g.input("y", np.array(["a", "b", "c"]), "a"), "no numbers", "DTYPE_OP")
        self.refused(lambda: g.input(5, np.ones(3), "a"), "name of an input", "GRAPH_NAME")
        self.refused(lambda: x.label(5), "no text", "GRAPH_NAME")
        self.refused(lambda: fathom.Graph("1G"), 'Graph(memory="1G")', "USAGE")
        self.refused(lambda: fathom.Graph(g.context, memory="1G"), "those of the context", "USAGE")
        self.refused(lambda: fathom.Context(log=print, log_level="loud"), "'debug'", "GRAPH_ATTR")
        self.refused(lambda: x.cast("i32") + 0.5, 'cast("f64")', "GRAPH_ATTR")
        w = g.param("w", np.ones(4, "f4"), "b")
        self.refused(lambda: fathom.adam(w, w, 0.1, 1), "g.scalar", "GRAPH_VALUE")
        self.refused(lambda: fathom.optimizer("sgd", w, w, 0.1, 0.9, 1), "g.scalar", "GRAPH_VALUE")
        new = fathom.assign(w, w * 2.0)
        self.refused(lambda: g.plan([x, new]), "updates=", "GRAPH_VALUE")
        g.plan([], updates=new).run()  # one update is a list of one
        np.testing.assert_array_equal(w.array, np.full(4, 2.0))
        self.assertEqual(g.plan(v for v in [x, x]).run()[1].shape, (3, 4))  # any iterable is a list

    def test_hints_are_python(self):
        g, x = self.g, self.x
        self.refused(lambda: x.sum("q"), "declare it with g.axis(..) first; declared are: a b", "AXIS_NAME")
        self.refused(lambda: x.rename("a", "b"), 'g.axis_like("b", "a")', "AXIS_SIZE")
        self.refused(lambda: fathom.Context(threads=-1), "help(fathom)", "USAGE")
        g.axis_like("a2", "a")
        y, z = g.input("y", np.eye(3), "a a2"), g.input("z", np.ones(3), "a")
        self.refused(lambda: fathom.solve(y, z, "a", "a2"), 'mark(A, "lower"')
        for status, row in fathom._STATUS.items():
            self.assertNotRegex(row[2], r"fth_\w|FTH_[A-Z]", status)

    def test_sources_of_another_shape(self):
        def made(read):
            v = self.g.input(f"s{id(read)}", fathom.Source((3, 4), "f8", read), "a b")
            return self.g.plan(v + 0.0).run()
        for wrong in (lambda lo, n: np.zeros((1, 1)), lambda lo, n: np.zeros(4), lambda lo, n: np.zeros((4, 3)),
                      lambda lo, n: np.zeros((3, 4, 1)), lambda lo, n: [1.0]):
            with self.assertRaises(fathom.Error) as caught:
                made(wrong)
            self.assertIn("(3, 4) was asked for", caught.exception.text)
            self.assertIn("your read()", caught.exception.hint)
        np.testing.assert_array_equal(made(lambda lo, n: 2.5), np.full((3, 4), 2.5))  # one number for all

    def test_sinks_that_fail(self):
        def put(lo, part):
            raise RuntimeError("full")
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan(self.x * 2.0, into=put).run()
        self.assertEqual((caught.exception.status, type(caught.exception.__cause__)), ("FILE_WRITE", RuntimeError))
        self.assertIn("your write()", caught.exception.hint)


class Threads(unittest.TestCase):
    """Threads of Python may share a graph: they take turns."""

    def test_one_graph(self):
        g, found = fathom.Graph(memory="256M", threads=1), []
        g.axes(i=1000)
        x = g.input("x", np.ones(1000), "i")

        def work(k):
            try:
                for j in range(100):
                    v = (x * float(k) + float(j)).sum()
                    if g.plan(v).run() != 1000 * (k + j) or v.shape != () or "f64" not in repr(v):
                        found.append((k, j))
            except BaseException as e:
                found.append(e)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(found, [])

    def test_a_source_cannot_use_the_graph_that_reads_it(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(i=10)
        other = fathom.Graph(memory="64M", threads=1)
        other.axes(i=10)
        inner = {"of": g}

        def read(lo, n):
            return inner["of"].index("i").numpy().astype("f8")[lo[0]:lo[0] + n[0]]
        plan = g.plan(g.input("x", fathom.Source((10,), "f8", read), "i") * 2.0)
        with self.assertRaises(fathom.Error) as caught:  # and does not wait for ever
            plan.run()
        self.assertEqual(caught.exception.__cause__.status, "STATE")
        inner["of"] = other
        np.testing.assert_array_equal(plan.run(), np.arange(10) * 2.0)


class Caught(unittest.TestCase):
    def test_every_kind_of_mistake_is_forgotten(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(a=3, b=4)
        x = g.input("x", np.ones((3, 4), "f4"), "a b")
        n = g.input("n", np.arange(3), "a")
        w = g.param("w", np.ones(4, "f4"), "b")
        step, rate = g.scalar("step", 1, "i64"), g.scalar("rate", 0.1)
        total = (x * w).sum("a b")
        mistakes = [
            lambda: x.sum("c"), lambda: x + n, lambda: x.cast("f99"), lambda: g.axis("a", 7),
            lambda: g.axis("1a", 7), lambda: g.input("x", np.ones(3), "a"),
            lambda: g.input("y", np.ones(5), "a"), lambda: g.param("w", np.ones(4), "b"),
            lambda: g.const(0.5, "i32"), lambda: g.const(300, "u8"), lambda: x.out(4),
            lambda: fathom.assign(x, x), lambda: fathom.grad(x, w), lambda: g.index("zz"),
            lambda: fathom.adam(w, x, rate, step), lambda: x.slice("a", 2, "b"),
            lambda: fathom.optimizer("nadam", w, x, rate, rate, step), lambda: g.plan(x.sort("a"), memory=1),
            lambda: g.axis_ragged("e", "a", [0, 2, 1, 3]), lambda: g.axis_like("q", "nowhere")]
        for i, mistake in enumerate(mistakes):
            with self.assertRaises(fathom.Error, msg=i):
                mistake()
            self.assertEqual(g.plan(total).run(), 12.0, i)
        # what a refused step had begun is there for the next one
        updates = fathom.adam(w, fathom.grad(total, w), rate, step)
        g.plan(total, updates=updates).run()
        np.testing.assert_allclose(w.array, 0.9, rtol=1e-6)

    def test_whole_numbers_that_do_not_fit(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(a=3, b=2)
        x = g.input("x", np.arange(3, dtype="u1"), "a")
        s, t = g.scalar("s", 1, "i32"), g.scalar("t", 1, "u8")
        y = x.cast("f32")
        for wrong in [
                lambda: g.const(2 ** 64, "i64"), lambda: g.const(2 ** 63, "i64"),
                lambda: g.const(-2 ** 63 - 1, "i64"), lambda: g.const(2 ** 31, "i32"),
                lambda: g.const(2 ** 7, "i8"), lambda: g.const(-2 ** 7 - 1, "i8"),
                lambda: g.const(2 ** 15, "i16"), lambda: g.const(-2 ** 15 - 1, "i16"),
                lambda: g.const(2 ** 32, "u32"), lambda: g.const(-1, "u32"),
                lambda: g.const(-1, "u8"), lambda: g.const(-1, "u16"), lambda: g.const(2, "bool"),
                lambda: g.const(10 ** 400, "f64"), lambda: g.const(70000, "f16"),
                lambda: g.const(2 ** 64 + 3, "u8"), lambda: x + 256, lambda: x * (2 ** 64 + 1),
                lambda: x < 2 ** 40, lambda: 300 - x, lambda: g.axis("c", 2 ** 64 + 5),
                lambda: g.axis("c", 2.5), lambda: g.axis("c", -1), lambda: g.axis("c", 2 ** 63),
                lambda: g.axis_at_most("c", 2 ** 65), lambda: x.slice("a", 2 ** 64, "b"),
                lambda: x.slice("a", 0.5, "b"), lambda: y.pad("b", 2 ** 64, "a"),
                lambda: y.window("a", 2 ** 64, "b"), lambda: y.pool_sum("a", 2 ** 64 + 3, "b"),
                lambda: y.upsample("a", 2 ** 64 + 1, "b"), lambda: x.out(2 ** 32),
                lambda: g.uniform("a", seed=2 ** 64), lambda: g.uniform("a", stream=2 ** 64),
                lambda: g.scalar("u", 2 ** 40, "i32"), lambda: g.scalar("u", 2.5, "i64"),
                lambda: s.set(2 ** 31), lambda: s.set(0.5), lambda: t.set(256), lambda: t.set(-1),
                lambda: g.plan(x, memory=2 ** 65), lambda: g.plan(x, threads=2 ** 32 + 1),
                lambda: fathom.Context(threads=2 ** 32 + 1), lambda: fathom.Context(memory=-5)]:
            with self.assertRaises(fathom.Error):
                wrong()
        with self.assertRaises(fathom.Error) as caught:
            g.const(2 ** 70, "i64")
        self.assertEqual(caught.exception.status, "GRAPH_ATTR")
        self.assertEqual(os.path.abspath(caught.exception.site.file), HERE)
        # and those that do are what they were
        g.axis("c", np.int32(4))
        g.axis("d", 5.0)
        self.assertEqual((g.axis_size("c"), g.axis_size("d")), (4, 5))
        s.set(-2 ** 31)
        self.assertEqual(s.item(), -2 ** 31)
        self.assertEqual(g.const(2 ** 63 - 1, "i64").item(), 2 ** 63 - 1)
        for dtype in ("i8", "u8", "i16", "u16", "i32", "u32"):
            for end in (np.iinfo(fathom.DTYPES[dtype][1]).min, np.iinfo(fathom.DTYPES[dtype][1]).max):
                self.assertEqual(g.const(int(end), dtype).item(), end)
        self.assertEqual(g.const(2 ** 100, "f64").item(), 2.0 ** 100)
        np.testing.assert_array_equal((x + 253).numpy(), [253, 254, 255])


class Places(unittest.TestCase):
    N = 1000

    def setUp(self):
        self.g = fathom.Graph(memory="64M", threads=2)
        self.g.axes(i=self.N)
        self.x = np.arange(self.N, dtype="f4")
        self.X = self.g.input("x", self.x, "i")

    def refused(self, outputs, into, *words):
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan(outputs, into=into).run()
        self.assertEqual(caught.exception.status, "ALIAS")
        for word in words:
            self.assertIn(word, caught.exception.text)
        np.testing.assert_array_equal(self.x, np.arange(self.N))  # nothing was written

    def test_one_array_for_two_outputs(self):
        y = np.empty(self.N, "f4")
        both = {"a": self.X + 1.0, "b": self.X + 2.0}
        self.refused(both, {"a": y, "b": y}, "output 0", "output 1", "test_mistakes.py:")
        z = np.empty(self.N + 10, "f4")
        self.refused(both, {"a": z[:-10], "b": z[10:]}, "same memory")
        self.g.plan(both, into={"a": z[:500].repeat(2), "b": y}).run()

    def test_one_file_for_two_outputs(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "y.npy")
            both = {"a": self.X + 1.0, "b": self.X + 2.0}
            os.mkdir(os.path.join(d, "s"))
            os.symlink(d, os.path.join(d, "link"))
            for other in (path, os.path.join(d, "s", "..", "y.npy"),
                          os.path.join(d, "link", "y.npy")):
                self.refused(both, {"a": path, "b": other}, "the file", "y.npy")
                self.assertEqual(sorted(os.listdir(d)), ["link", "s"])
            self.g.plan(both, into={"a": path, "b": os.path.join(d, "s", "y.npy")}).run()
            np.testing.assert_array_equal(np.load(path), self.x + 1)

    def test_the_input_as_output(self):
        # safe: each element from the same element
        self.g.plan(self.X * 2.0 + 1.0, into={0: self.x}).run()
        np.testing.assert_array_equal(self.x, np.arange(self.N) * 2 + 1)
        self.x[:] = np.arange(self.N)
        # not safe: from others
        self.refused(self.X.flip("i"), {0: self.x}, "input 'x'", "output 0", "same memory")
        self.refused(self.X.cumsum("i"), {0: self.x}, "input 'x'")
        z = np.empty(self.N + 8, "f4")
        z[8:] = self.x
        Z = self.g.input("z", z[8:], "i")
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan(Z * 2.0, into={0: z[:-8]}).run()
        self.assertIn("overlap", caught.exception.text)
        # safe: everything was read before
        total = self.X.sum("i")
        y = np.empty((), "f4")
        plan = self.g.plan([self.g.index("i").cast("f32") + total], into={0: self.x})
        plan.run()
        np.testing.assert_allclose(self.x, np.arange(self.N) + 499500.0, rtol=1e-6)
        del y

    def test_in_place_at_every_budget(self):
        for threads in (1, 2):
            g = fathom.Graph(memory="64M", threads=threads)
            n = 200000
            g.axes(i=n)
            a = np.arange(n, dtype="f4")
            A = g.input("a", a, "i")
            B = g.input("b", fathom.Source((n,), "f4", lambda lo, k: np.full(k, 3, "f4")), "i")
            plan = g.plan(A * B + 1.0, into={0: a}, memory=8 * n + 60000, stream="i")
            self.assertGreater(plan.info["chunks"], 2)
            plan.run()
            np.testing.assert_array_equal(a, np.arange(n, dtype="f4") * 3 + 1)

    def test_a_strided_input_as_output(self):
        base = np.arange(2 * self.N, dtype="f4")
        S = self.g.input("s", base[::2], "i")
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan(S + 1.0, into={0: base[:self.N]}).run()
        self.assertEqual(caught.exception.status, "ALIAS")
        np.testing.assert_array_equal(base, np.arange(2 * self.N))

    def test_the_file_that_is_read_may_be_replaced(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "x.npy")
            np.save(path, np.arange(100000.0))
            g = fathom.Graph(memory="64M", threads=2)
            g.axes(i=100000)
            plan = g.plan(g.input("x", path, "i") * 2.0, into={0: path}, memory="500K")
            self.assertGreater(plan.info["chunks"], 2)
            plan.run()
            np.testing.assert_array_equal(np.load(path), np.arange(100000.0) * 2)

    def test_parameters(self):
        w = np.ones(self.N, "f4")
        W = self.g.param("w", w, "i")
        update = fathom.assign(W, W + self.X)
        with self.assertRaises(fathom.Error) as caught:
            self.g.plan([W * 2.0], updates=[update], into={0: w}).run()
        self.assertEqual(caught.exception.status, "ALIAS")
        self.assertIn("parameter 'w'", caught.exception.text)
        np.testing.assert_array_equal(w, 1)
        self.g.plan([W * 2.0], updates=[update]).run()
        np.testing.assert_array_equal(w, 1 + self.x)


class Sources(unittest.TestCase):
    def test_what_failed_is_named(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(row=20000, col=8)

        def read(lo, n):
            if lo[0] >= 5000:
                raise OSError("the disk is wet")
            return np.zeros(n, "f4")
        line = sys._getframe().f_lineno + 1
        v = g.input("wet", fathom.Source((20000, 8), "f4", read), "row col") + 1.0
        with self.assertRaises(fathom.Error) as caught:
            g.plan(v.sum("row col"), stream="row", memory=200000).run()
        e = caught.exception
        self.assertRegex(e.text, r"^input 'wet' \[row \d+:\d+, col 0:8\]: OSError: the disk is wet")
        self.assertEqual((os.path.abspath(e.site.file), e.site.line), (HERE, line))
        self.assertIsInstance(e.__cause__, OSError)

    def test_what_does_not_fit_is_refused(self):
        for dtype, value in (("u8", 300), ("i32", -2.7), ("i32", np.nan), ("f4", 1e39), ("f8", None),
                             ("f8", 1j), ("bool", 2), ("f8", "3")):
            g = fathom.Graph(memory="64M")
            g.axes(n=4)
            made = fathom.Source((4,), dtype, lambda lo, n: np.full(n, value))
            with self.assertRaises(fathom.Error) as caught:
                g.input("made", made, "n").numpy()
            self.assertRegex(caught.exception.text, r"input 'made' \[n 0:4\]: \w+Error: read returned")
        g = fathom.Graph(memory="64M")
        g.axes(n=4)
        made = fathom.Source((4,), "f4", lambda lo, n: np.arange(4))  # whole numbers that fit
        np.testing.assert_array_equal(g.input("made", made, "n").numpy(), np.arange(4, dtype="f4"))

    def test_bools_of_any_byte(self):
        b = np.array([0, 1, 2, 255, 0, 7], "u1").view(bool)
        want = np.array([0, 1, 1, 1, 0, 1])
        for data in (b, np.repeat(b, 2)[::2], fathom.Source((6,), "bool", lambda lo, n: b)):
            g = fathom.Graph(memory="64M")
            g.axes(n=6)
            x = g.input("b", data, "n")
            np.testing.assert_array_equal(x.cast("i64").numpy(), want)
            np.testing.assert_array_equal(x.cast("i64").numpy(no_fuse=True), want)
            np.testing.assert_array_equal((~x).numpy(), want == 0)
            self.assertEqual((x.sum("n").item(), x.cast("i64").sum("n").item()), (4, 4))
        g = fathom.Graph(memory="64M")
        g.axes(n=6)
        self.assertEqual(g.param("p", b.copy(), "n").cast("i64").sum("n").item(), 4)

    def test_masks_are_not_dropped(self):
        g = fathom.Graph(memory="64M")
        g.axes(n=3)
        with self.assertRaisesRegex(fathom.Error, "masked array"):
            g.input("m", np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "n")

    def test_long_names(self):
        g = fathom.Graph(memory="64M")
        g.axes(n=3)
        w, b = (g.input("encoder.layers.0.self_attention." + k, np.ones(3), "n") for k in "wb")
        w.set(np.zeros(3))
        self.assertEqual((w + b).sum("n").item(), 3.0)
        with self.assertRaisesRegex(fathom.Error, "has 128 bytes; at most 127"):
            g.input("x" * 128, np.ones(3), "n")

    def test_a_sink_that_failed(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(row=10)

        def write(lo, part):
            raise OSError("the tape is full")
        v = (g.index("row") + 1).label("tall")
        with self.assertRaises(fathom.Error) as caught:
            g.plan(v, into={0: write}).run()
        self.assertIn("output 'tall' [row 0:10]: OSError: the tape is full", caught.exception.text)


class Fork(unittest.TestCase):
    def test_a_child_is_told(self):
        program = """
import os, signal, sys
import fathom, numpy as np
g = fathom.Graph(memory="64M", threads=3)
g.axes(i=4)
plan = g.plan(g.input("x", np.ones(4), "i") * 2.0)
plan.run()
child = os.fork()
if child == 0:
    signal.alarm(20)
    for use in (plan.run, lambda: g.plan(g.index("i")), lambda: fathom.Graph(g.context),
                lambda: plan.info, lambda: str(plan)):
        try:
            use()
            print("no error")
        except fathom.Error as e:
            print(e.status, "fork" in e.text)
    print(fathom.Graph(memory="64M").const(2.0, "f64").item(), flush=True)
    sys.exit(0)  # finalisers run here
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), plan.run())
"""
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        self.assertEqual(out.stdout.splitlines(),
                         ["STATE True"] * 5 + ["2.0", "0 [2. 2. 2. 2.]"])


if __name__ == "__main__":
    unittest.main()
