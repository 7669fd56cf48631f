# test_training.py - gradients, parameters, assigns and Adam.
# seconds: 5
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

    def test_schedule(self):
        self.assertEqual(fathom.schedule("constant", 5, 0.1), 0.1)
        self.assertAlmostEqual(fathom.schedule("linear", 10, 1.0, 0.0, 10), 0.0)


if __name__ == "__main__":
    unittest.main()
