# test_plan.py - planning, running, budgets, errors at the caller's line, cancelling.
# seconds: 10
import gc
import inspect
import os
import subprocess
import sys
import tempfile
import unittest
import weakref
from unittest import mock

import fathom
import numpy as np

RNG = np.random.default_rng(5)
HERE = os.path.abspath(__file__)


def line():
    return inspect.currentframe().f_back.f_lineno


class Plans(unittest.TestCase):
    def setUp(self):
        self.x = RNG.normal(size=(3000, 40)).astype("f4")
        self.g = fathom.Graph(memory="64M", threads=2)
        self.g.axes(cell=3000, dim=40)
        self.X = self.g.input("X", self.x, "cell dim")

    def test_forms_of_outputs(self):
        a, b = self.X.sum("dim"), self.X.sum("cell")
        one = self.g.plan(a).run()
        many = self.g.plan([a, b]).run()
        named = self.g.plan({"a": a, "b": b}).run()
        self.assertIsInstance(many, list)
        self.assertEqual(list(named), ["a", "b"])
        for got in (one, many[0], named["a"]):
            np.testing.assert_allclose(got, self.x.sum(1), rtol=1e-4, atol=1e-4)
            self.assertTrue(got.flags.owndata)
        np.testing.assert_array_equal(many[1], named["b"])

    def test_each_run_returns_its_own_arrays(self):
        plan = self.g.plan(self.X * 2.0)
        first = plan.run()
        kept = first.copy()
        self.x += 1
        second = plan.run()
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(second, self.x * 2)

    def test_input_and_output_without_a_copy(self):
        out = np.full((3000, 40), np.nan, "f4")
        plan = self.g.plan(self.X + 1.0, into={0: out})
        self.assertIs(plan.run(), out)
        np.testing.assert_array_equal(out, self.x + 1)
        self.assertLess(plan.info["peak_bytes"], self.x.nbytes // 2)  # workspace, no copy
        self.assertEqual(plan.info["foreign_bytes"], 2 * self.x.nbytes)

    def test_info_text_json(self):
        plan = self.g.plan(self.X.sum("cell").label("total"))
        self.assertEqual(set(plan.info), {n for n, _ in fathom.PlanInfo._fields_})
        self.assertGreater(plan.info["steps"], 0)
        self.assertIn("arena", plan.text)
        self.assertEqual(str(plan), plan.text)
        self.assertIn("budget", plan.json)
        plan.run()
        self.assertEqual(plan.report["planned_bytes"], plan.info["peak_bytes"])
        self.assertGreater(plan.report["seconds"], 0)

    def test_strided_arrays_are_read_in_pieces(self):
        v = self.g.input("T", self.x.T, "dim cell") + 0.0
        np.testing.assert_array_equal(v.numpy(), self.x.T)

    def test_output_to_a_function_and_to_a_file(self):
        whole = np.zeros((3000, 40), "f4")

        def write(lo, part):
            at = tuple(slice(a, a + n) for a, n in zip(lo, part.shape))
            whole[at] = part
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "y.npy")
            a, b = self.X * 3.0, self.X * 4.0
            self.g.plan({"a": a, "b": b}, into={"a": write, "b": path}).run()
            np.testing.assert_array_equal(whole, self.x * 3)
            np.testing.assert_array_equal(np.load(path), self.x * 4)
            g = fathom.Graph()
            g.axes(cell=3000, dim=40)
            self.assertEqual((g.input("y", path, "cell dim") * 0.25 - g.input("x", self.x, "cell dim"))
                             .max("cell dim").item(), 0)


class Streaming(unittest.TestCase):
    N, M = 60000, 64

    def program(self, **options):
        g = fathom.Graph(**options)
        g.axes(cell=self.N, dim=2, induce=self.M)
        calls = []

        def read(lo, n):
            calls.append(n)
            i = np.arange(lo[0], lo[0] + n[0])[:, None] * 2 + np.arange(lo[1], lo[1] + n[1])
            return np.sin(i).astype("f4")
        X = g.input("X", fathom.Source((self.N, 2), "f4", read), "cell dim")
        Z = g.input("Z", np.linspace(-1, 1, 2 * self.M, dtype="f4").reshape(self.M, 2),
                    "induce dim")
        d = X.expand("induce") - Z.expand("cell").layout("induce cell dim")
        K = ((d * d).sum("dim") * -0.5).exp()
        return g, {"K": K.sum("induce"), "total": K.sum("induce cell")}, calls

    def test_same_bits_at_any_budget(self):
        g, outs, _ = self.program(memory="1G")
        whole = g.plan(outs).run()
        g, outs, calls = self.program(memory="1G")
        plan = g.plan(outs, memory="1500K")
        self.assertGreater(plan.info["chunks"], 1)
        self.assertLessEqual(plan.info["peak_bytes"] + plan.info["foreign_bytes"], 1500 << 10)
        small = plan.run()
        self.assertGreater(len(calls), 1)
        for key in outs:
            self.assertEqual(whole[key].tobytes(), small[key].tobytes(), key)

    def test_refusal_comes_before_reading(self):
        g, outs, calls = self.program(memory="1G")
        with self.assertRaises(fathom.Error) as caught:
            g.plan(outs, memory="1K", no_spill=True)
        self.assertEqual((caught.exception.status, caught.exception.code),
                         ("NO_FIT", "FTH-PLAN-002"))
        self.assertEqual(caught.exception.exit_code, 4)
        self.assertEqual(calls, [])

    def test_refusals_speak_of_keywords(self):
        g, outs, _ = self.program(memory="1G")
        with self.assertRaises(fathom.Error) as caught:
            g.plan(outs, memory="1K", no_spill=True)
        word, number = caught.exception.hint.split("would fit: ")[1].split("=")
        self.assertEqual(word, "memory")
        g.plan(outs, memory=int(number), no_spill=True)

    def test_one_value_wanted_twice(self):
        g = fathom.Graph(memory="1G", threads=1)
        x = np.arange(60000, dtype=np.float32).reshape(20000, 3)
        g.axes(row=20000, col=3)
        y = (g.input("x", x, "row col") * 1e-4).exp()
        parts = []
        plan = g.plan({"a": y, "b": y, "c": y}, into={"c": lambda lo, part: parts.append(part)})
        got = plan.run()
        self.assertEqual(got["a"].tobytes(), got["b"].tobytes())
        self.assertEqual(got["a"].tobytes(), np.concatenate(parts).tobytes())
        np.testing.assert_allclose(got["b"], np.exp(x * np.float32(1e-4)), rtol=1e-6)

    def test_progress_and_cancel(self):
        g, outs, _ = self.program(memory="1G")
        plan = g.plan(outs, memory="1500K")
        seen = []
        plan.run(lambda p: seen.append(p.fraction))
        self.assertEqual(seen, sorted(seen))
        self.assertTrue(seen and 0 <= seen[0] and seen[-1] <= 1)
        with self.assertRaises(fathom.Error) as caught:
            plan.run(lambda p: False)
        self.assertEqual(caught.exception.status, "CANCELLED")

        def interrupt(p):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            plan.run(interrupt)
        plan.run()

    def test_exception_in_a_source(self):
        g = fathom.Graph()
        g.axis("i", 100)

        def read(lo, n):
            raise ValueError("the disk is wet")
        v = g.input("v", fathom.Source((100,), "f8", read), "i") + 1.0
        with self.assertRaises(fathom.Error) as caught:
            v.numpy()
        self.assertIn("the disk is wet", str(caught.exception))
        self.assertIsInstance(caught.exception.__cause__, ValueError)


class Errors(unittest.TestCase):
    def setUp(self):
        self.g = fathom.Graph()
        self.g.axes(a=3, b=4)
        self.A = self.g.input("A", np.zeros(3, "f4"), "a")
        self.B = self.g.input("B", np.zeros(4, "f4"), "b")

    def test_subset_rule_names_this_line(self):
        with self.assertRaises(fathom.Error) as caught:
            here = line(); self.A + self.B
        e = caught.exception
        self.assertEqual((e.status, e.code, e.exit_code), ("AXIS_MISMATCH", "FTH-AXIS-003", 2))
        self.assertEqual((os.path.abspath(e.site.file), e.site.line), (HERE, here))
        self.assertIn("A f32 [a=3]", e.text)
        self.assertTrue(e.hint)

    def test_second_size_names_both_lines(self):
        with self.assertRaises(fathom.Error) as caught:
            self.g.axis("a", 5)
        self.assertEqual(caught.exception.status, "AXIS_SIZE")
        self.assertEqual(caught.exception.text.count("test_plan.py"), 1)
        self.assertIsNotNone(caught.exception.site)

    def test_no_silent_conversion(self):
        with self.assertRaises(fathom.Error) as caught:
            self.A + self.A.cast("f64")
        self.assertEqual(caught.exception.status, "DTYPE")
        with self.assertRaises(fathom.Error) as caught:
            self.A.cast("i32") + 0.5
        self.assertEqual(caught.exception.status, "GRAPH_ATTR")

    def test_wrong_size_unknown_axis_other_graph(self):
        with self.assertRaises(fathom.Error) as caught:
            self.g.input("C", np.zeros(5, "f4"), "a")
        self.assertEqual(caught.exception.status, "AXIS_SIZE")
        with self.assertRaises(fathom.Error) as caught:
            self.A.sum("nowhere")
        self.assertIn(caught.exception.status, ("AXIS_NAME", "AXIS_MISSING"))
        other = fathom.Graph()
        with self.assertRaises(fathom.Error) as caught:
            self.A + other.const(1.0)
        self.assertEqual(caught.exception.status, "GRAPH_VALUE")

    def test_dtypes_of_arrays(self):
        with self.assertRaises(fathom.Error) as caught:
            self.g.input("C", np.zeros(3, "u8"), "a")
        self.assertEqual(caught.exception.status, "DTYPE_OP")
        with self.assertRaisesRegex(fathom.Error, r"found ndarray float32 \[3\][^$]*g\.input"):
            self.A + np.zeros(3, "f4")
        with self.assertRaises(TypeError):
            bool(self.A == self.A)

    def test_item_checks(self):
        with self.assertRaises(fathom.Error):
            self.A.item()
        self.assertEqual(self.A.sum("a").item(), 0.0)


class Lifetimes(unittest.TestCase):
    def test_arrays_and_contexts_go(self):
        class Watched(np.ndarray):
            pass
        x = np.zeros(1000, "f4").view(Watched)
        seen = weakref.ref(x)
        g = fathom.Graph()
        context = g.context
        g.axis("i", 1000)
        v = g.input("x", x, "i") + 1.0
        w = g.param("w", np.zeros(1000, "f4"), "i")
        plan = g.plan(v + w)
        plan.run()
        del x, v, w, plan, g
        self.assertIsNone(seen())  # at once: large arrays cannot wait for the collector
        context.close()  # raises LEAK if a block were still held

    def test_plan_keeps_its_graph(self):
        def make():
            g = fathom.Graph()
            g.axis("i", 10)
            return g.plan(g.input("x", np.arange(10.0), "i") * 2.0)
        plan = make()
        gc.collect()
        np.testing.assert_array_equal(plan.run(), np.arange(10.0) * 2)


    def test_garbage_in_any_order(self):
        ends = []

        def watch(name):
            real = getattr(fathom._lib, name)

            def call(*args):
                ends.append(name)
                return real(*args)
            return call
        names = ["fth_plan_destroy_", "fth_graph_destroy_", "fth_context_destroy_"]
        with mock.patch.multiple(fathom._lib, **{name: watch(name) for name in names}):
            for first in range(4):
                context = fathom.Context()
                g = fathom.Graph(context)
                g.axis("i", 10)
                t = context.tensor((10,), "f64")
                plan = g.plan(g.input("x", t, "i") * 2.0)
                plan.run()
                cycle = [context, t, g, plan]
                cycle = cycle[first:] + cycle[:first]
                cycle.append(cycle)
                del context, g, t, plan, cycle
                gc.collect()
                self.assertEqual(ends, names)
                ends.clear()

    def test_a_program_ends(self):
        # Its globals are a cycle, because of the function; then Python asks nobody for an order.
        program = """
import fathom, numpy as np
g = fathom.Graph(memory="64M")
g.axes(i=4)
def double(v): return v * 2.0
if {more}:
    t = g.context.tensor((4,), "f64")
    b = fathom.Batches(g.context, fathom.Source((9, 4), "f64", lambda lo, n: np.ones(n)), 1)
    b.ask([3])
    lent = np.from_dlpack(t)
x = g.input("x", np.ones(4), "i")
plan = g.plan(double(x))
print(plan.run())
"""
        for more in (False, True):
            out = subprocess.run([sys.executable, "-c", program.replace("{more}", str(more))],
                                 capture_output=True, text=True, timeout=60)
            self.assertEqual((out.returncode, out.stdout, out.stderr),
                             (0, "[2. 2. 2. 2.]\n", ""))

    def test_close_while_in_use(self):
        context = fathom.Context()
        g = fathom.Graph(context)
        g.axis("i", 3)
        with self.assertRaises(fathom.Error) as caught:
            context.close()
        self.assertEqual(caught.exception.status, "LEAK")
        np.testing.assert_array_equal(g.index("i").numpy(), [0, 1, 2])  # as if nothing had been
        del g
        context.close()
        context.close()


class Sessions(unittest.TestCase):
    def test_a_typo_does_not_poison_the_graph(self):
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(cell=5)
        x = g.input("x", np.arange(5.0), "cell")
        with self.assertRaises(fathom.Error) as caught:
            x.sum("cel")
        self.assertEqual(caught.exception.code, "FTH-AXIS-001")
        self.assertEqual(g.plan(x.sum("cell")).run(), 10.0)

    def test_device_and_log(self):
        lines = []
        ctx = fathom.Context(memory="64M", threads=2, device="auto",
                             log=lambda level, line: lines.append((level, line)))
        self.assertEqual(ctx.device, "cpu")
        self.assertTrue(ctx.device_reason.startswith("auto: "))
        self.assertIn(("info", "memory budget 64.00 MiB: as asked"), lines)
        g = fathom.Graph(ctx)
        g.axes(cell=5)
        plan = g.plan(g.input("x", np.arange(5.0), "cell").sum("cell"))
        plan.run()
        self.assertTrue(any("run of the plan at " + HERE in line for _, line in lines))
        self.assertEqual({level for level, _ in lines}, {"info"})
        with self.assertRaises(fathom.Error) as caught:
            fathom.Context(device="cuda:0")
        self.assertEqual(caught.exception.code, "FTH-DEV-001")

    def test_the_report_says_what_was_kept(self):
        g = fathom.Graph(memory="64M", threads=2)
        g.axes(cell=500000)
        plan = g.plan(g.input("x", np.ones(500000), "cell").exp().sum("cell"))
        plan.run()
        self.assertTrue(plan.report["kept"])
        self.assertEqual(plan.report["ledger_bytes"], plan.info["peak_bytes"])
        self.assertGreater(plan.report["allowance_bytes"], 0)
        self.assertEqual(plan.report["allowance_bytes"], plan.info["allowance_bytes"])


if __name__ == "__main__":
    unittest.main()
