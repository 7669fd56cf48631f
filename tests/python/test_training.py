# test_training.py - gradients, parameters, assigns and Adam.
# seconds: 5
import os
import tempfile
import threading
import unittest

import fathom
import numpy as np

RNG = np.random.default_rng(7)


def regression(n=2000, d=5):
    x = RNG.normal(size=(n, d))
    y = x @ np.arange(1.0, d + 1) + 0.5
    g = fathom.Graph(memory="32M")
    g.axes(row=n, col=d)
    X, Y = g.input("X", x, "row col"), g.input("Y", y, "row")
    w, b = g.param("w", np.zeros(d), "col"), g.param("b", np.zeros(()), "")
    loss = ((X.dot(w, "col") + b - Y) ** 2).mean("row")
    return g, loss, w, b, x, y


class Gradients(unittest.TestCase):
    def test_against_the_formula(self):
        g, loss, w, b, x, y = regression()
        dw, db = fathom.grad(loss, [w, b])
        got = g.plan([dw, db, loss]).run()
        np.testing.assert_allclose(got[0], -2 * (x * y[:, None]).mean(0), rtol=1e-10)
        np.testing.assert_allclose(got[1], -2 * y.mean(), rtol=1e-10)
        np.testing.assert_allclose(got[2], (y ** 2).mean(), rtol=1e-10)
        self.assertEqual(fathom.grad(loss, w).axes, ("col",))

    def test_no_gradient_is_an_error_at_this_line(self):
        g, loss, w, b, x, y = regression(10)
        with self.assertRaises(fathom.Error) as caught:
            fathom.grad(w, b)
        self.assertTrue(caught.exception.site.file.endswith("test_training.py"))


class Parameters(unittest.TestCase):
    def test_assign_in_place(self):
        g = fathom.Graph()
        g.axis("i", 4)
        memory = np.arange(4.0)
        p = g.param("p", memory, "i")
        before = p * 1.0
        plan = g.plan(before, updates=[fathom.assign(p, p * 2.0)])
        np.testing.assert_array_equal(plan.run(), np.arange(4.0))
        np.testing.assert_array_equal(memory, 2 * np.arange(4.0))
        np.testing.assert_array_equal(plan.run(), 2 * np.arange(4.0))
        np.testing.assert_array_equal(p.array, 4 * np.arange(4.0))

    def test_second_assign_is_refused(self):
        g = fathom.Graph()
        p = g.param("p", np.zeros(()), "")
        fathom.assign(p, p + 1.0)
        with self.assertRaises(fathom.Error) as caught:
            fathom.assign(p, p + 2.0)
        self.assertEqual(caught.exception.status, "GRAPH_ASSIGN")

    def test_a_cancelled_run_changes_nothing(self):
        g, loss, w, b, x, y = regression()
        plan = g.plan(loss, updates=[fathom.assign(w, w - fathom.grad(loss, w) * 0.1)])
        with self.assertRaises(fathom.Error):
            plan.run(lambda p: False)
        np.testing.assert_array_equal(w.array, np.zeros(5))
        plan.run()
        self.assertTrue(np.all(w.array != 0))


class Training(unittest.TestCase):
    def train(self, **limits):
        g, loss, w, b, x, y = regression()
        rate, step = g.scalar("rate", 0.0), g.scalar("step", 0, "i64")
        updates = []
        for p, d in zip((w, b), fathom.grad(loss, [w, b])):
            updates += fathom.adam(p, d, rate, step)
        plan = g.plan(loss, updates, **limits)
        losses = []
        for i in range(200):
            rate.set(fathom.schedule("cosine", i, 0.5, 0.01, 200, warmup=10))
            step.set(i + 1)
            losses.append(float(plan.run()))
        return losses, w.array.copy(), g

    def test_adam(self):
        losses, w, g = self.train()
        self.assertLess(losses[-1], 1e-3 * losses[0])
        np.testing.assert_allclose(w, np.arange(1.0, 6), atol=0.05)
        self.assertEqual(set(g.params), {"w", "b", "w.m", "w.v", "b.m", "b.v"})

    def test_optimizers(self):
        """One step of each, from the formula."""
        for kind, move in {"sgd": lambda g: 0.1 * g, "adam": lambda g: 0.1 * g / (abs(g) + 1e-8),
                           "rmsprop": lambda g: 0.1 * g / (0.1 * abs(g) + 1e-8)}.items():
            with self.subTest(kind=kind):
                g, loss, w, b, x, y = regression()
                start = w.array.copy()
                d = fathom.grad(loss, w)
                rate, beta = g.scalar("rate", 0.1), g.scalar("beta", 0.9)
                step = g.scalar("step", 1, "i64")
                updates = fathom.optimizer(kind, w, d, rate, beta, step)
                slope = np.array(g.plan(d).run(), dtype=float)
                g.plan(loss, updates).run()
                np.testing.assert_allclose(w.array, start - move(slope), rtol=1e-5)

    def test_schedule(self):
        self.assertEqual(fathom.schedule("constant", 5, 0.1), 0.1)
        self.assertAlmostEqual(fathom.schedule("linear", 10, 1.0, 0.0, 10), 0.0)


class Batches(unittest.TestCase):
    def test_the_rows_asked_for(self):
        x = RNG.normal(size=(100, 3, 2))
        calls = []

        def read(lo, n):
            calls.append(n[0])
            return x[lo[0]:lo[0] + n[0]]
        context = fathom.Context(memory="16M")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy")
            np.save(path, x)
            kinds = [x, x[:, ::-1][:, ::-1], np.asfortranarray(x), path,
                     fathom.Source(x.shape, "f64", read),
                     fathom.Source(x.shape, "f64", None, read_rows=lambda index: x[index])]
            for data in kinds:
                b = fathom.Batches(context, data, rows=8)
                self.assertGreaterEqual(b.bytes, 2 * 8 * 6 * 8)
                before = None
                for turn in range(5):
                    rows = RNG.integers(0, 100, size=8 if turn else 3)
                    b.ask(rows)
                    got = b.take()
                    np.testing.assert_array_equal(got, x[rows])
                    if before is not None:
                        self.assertNotEqual(got.ctypes.data, before.ctypes.data)
                    before = got
                del b
                np.testing.assert_array_equal(got, x[rows])  # keeps its memory alive
        self.assertTrue(calls)
        del got, before
        context.close()  # raises when something is still held

    def test_training_reads_ahead_of_the_run(self):
        n, d, size = 4000, 5, 200
        x = RNG.normal(size=(n, d))
        y = x @ np.arange(1.0, d + 1)
        order = RNG.permutation(n).reshape(-1, size)
        reading, running = threading.Event(), threading.Event()

        def slow(index):
            reading.set()
            if len(losses) > 0 and not running.wait(20):  # ends only while a run is going on
                raise TimeoutError("no run began while this was read")
            return x[index]
        losses = []
        context = fathom.Context(memory="32M")
        bx = fathom.Batches(context, fathom.Source(x.shape, "f64", None, read_rows=slow), size)
        by = fathom.Batches(context, y, size)
        g = fathom.Graph(context)
        g.axes(row=size, col=d)
        for b in bx, by:
            b.ask(order[0])
        X, Y = g.input("x", bx.take(), "row col"), g.input("y", by.take(), "row")
        w = g.param("w", np.zeros(d), "col")
        rate, step = g.scalar("rate", 0.3), g.scalar("step", 1, "i64")
        loss = ((X.dot(w, "col") - Y) ** 2).mean("row")
        plan = g.plan(loss, updates=fathom.adam(w, fathom.grad(loss, w), rate, step))

        def progress(_):
            running.set()
            return reading.wait(20)  # False cancels
        want = np.zeros(d)
        m, v = np.zeros(d), np.zeros(d)
        for i, rows in enumerate([*order[1:], order[0]] * 4):
            reading.clear()
            running.clear()
            losses.append(None)
            for b in bx, by:
                b.ask(rows)
            step.set(i + 1)
            losses[-1] = float(plan.run(progress))
            self.assertEqual(plan.report["read_bytes"], 0)
            at = order[i % len(order)]
            grad = 2 * x[at].T @ (x[at] @ want - y[at]) / size
            m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad ** 2
            want -= 0.3 * m / (1 - 0.9 ** (i + 1)) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
            X.set(bx.take())
            Y.set(by.take())
        np.testing.assert_allclose(w.array, want, rtol=1e-6)
        self.assertLess(losses[-1], 0.05 * losses[0])

    def test_mistakes(self):
        def read(lo, n):
            raise ValueError(f"row {lo[0]} is gone")
        context = fathom.Context(memory="16M")
        b = fathom.Batches(context, fathom.Source((10, 2), "f32", read), 4)
        with self.assertRaises(fathom.Error) as caught:
            b.take()
        self.assertEqual(caught.exception.status, "USAGE")
        b.ask([7])
        with self.assertRaises(fathom.Error) as caught:
            b.ask([8])
        self.assertIn("test_training.py", caught.exception.text)
        with self.assertRaises(fathom.Error) as caught:
            b.take()
        self.assertEqual(caught.exception.status, "FILE_READ")
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.assertTrue(caught.exception.site.file.endswith("test_training.py"))
        for rows, status in (([10], "INDEX_RANGE"), ([0] * 5, "USAGE"), ([[1]], "USAGE")):
            with self.assertRaises(fathom.Error) as caught:
                b.ask(rows)
            self.assertEqual(caught.exception.status, status)
        with self.assertRaises(fathom.Error):
            fathom.Batches(context, np.zeros((1000000, 4)), 1000000)  # past the budget

    def test_an_input_takes_other_data(self):
        g = fathom.Graph()
        g.axes(row=3)
        x = g.input("x", np.arange(3.0), "row")
        y = g.input("y", fathom.Source((3,), "f64", lambda lo, n: np.ones(n)), "row")
        plan = g.plan(x + y)
        np.testing.assert_array_equal(plan.run(), [1, 2, 3])
        x.set(np.array([5.0, 5.0, 5.0]))
        y.set(fathom.Source((3,), "f64", lambda lo, n: np.zeros(n)))
        np.testing.assert_array_equal(plan.run(), [5, 5, 5])
        for bad in (np.zeros(4), np.zeros(3, np.float32), fathom.Source((3,), "f32", None)):
            with self.assertRaises(fathom.Error):
                x.set(bad)
        np.testing.assert_array_equal(plan.run(), [5, 5, 5])
        y.set(np.zeros(3))  # was read, and is memory now
        with self.assertRaises(fathom.Error) as caught:
            plan.run()
        self.assertEqual(caught.exception.status, "PLAN_STALE")


if __name__ == "__main__":
    unittest.main()
