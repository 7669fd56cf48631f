# test_numpy_functions.py - NumPy's functions of values build the operation that means the same, or
# say what to write; none makes an array of values.
# seconds: 6
import math
import os
import unittest

import fathom
import numpy as np

HERE = os.path.abspath(__file__)
UNARY = "exp expm1 log log1p sqrt sin cos tanh negative positive abs fabs square reciprocal sign floor ceil rint " \
    "isnan isfinite conjugate".split()
BINARY = "add subtract multiply divide power fmod minimum maximum arctan2 equal not_equal less less_equal greater " \
    "greater_equal".split()
REDUCTIONS = "sum prod max min mean var std count_nonzero".split()


class Case(unittest.TestCase):
    def setUp(self):
        self.g = fathom.Graph(memory="64M", threads=1)
        self.g.axes(a=3, b=4, c=5, n=6)
        self.a = np.arange(1, 13, dtype="f4").reshape(3, 4)
        self.b = self.a[::-1] * np.float32(0.5)
        self.x = self.g.input("x", self.a, "a b")
        self.y = self.g.input("y", self.b, "a b")

    def same(self, value, want):
        self.assertIsInstance(value, fathom.Value)
        np.testing.assert_allclose(value.numpy(), want, rtol=2e-6)


class Functions(Case):
    def test_elementwise(self):
        for name in UNARY:
            f = getattr(np, name)
            self.same(f(self.x), f(self.a))
        for name in BINARY:
            f = getattr(np, name)
            self.same(f(self.x, self.y), f(self.a, self.b))
            self.same(f(self.x, 2), f(self.a, 2))
            self.same(f(3.0, self.x), f(3.0, self.a))
            self.same(f(np.float32(3), self.x), f(np.float32(3), self.a))
        i = self.g.input("i", np.array([6, -5, 4], "i4"), "a")
        for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
            self.same(f(i, 3), f([6, -5, 4], 3))
        self.same(np.invert(i), [-7, 4, -5])
        self.same(np.logical_and(self.x > 2, np.logical_not(self.x > 7)), (self.a > 2) & (self.a <= 7))

    def test_operators_of_numpys_numbers(self):
        for number in (np.float32(2), np.float64(2), np.array(2.0)):
            for f in (lambda p, q: p + q, lambda p, q: p / q, lambda p, q: p ** q, lambda p, q: p < q, lambda p, q: p == q):
                self.same(f(number, self.x), f(2, self.a))
                self.same(f(self.x, number), f(self.a, 2))
        i = self.g.input("i", np.array([6, -5, 4], "i8"), "a")
        self.same(np.int64(7) // i, [1, -1, 1])  # as 7 // i: toward zero
        self.same(np.int64(7) % i, [1, 2, 3])
        self.assertIn("sqr", str(self.x ** np.array(2)) + str(self.g))

    def test_what_a_run_gives_is_a_number(self):
        total = self.x.sum().numpy()
        self.assertEqual(total.shape, ())
        self.same(self.x / total, self.a / self.a.sum())
        self.same(self.x.clip(total * 0, np.array(3.0)), self.a.clip(0, 3))
        self.same(self.g.const(total), total)
        s = self.g.scalar("s", np.array(2.5))
        s.set(np.array(3.5))
        self.same(s, 3.5)

    def test_reductions(self):
        for name in REDUCTIONS:
            f = getattr(np, name)
            self.same(f(self.x), f(self.a))
            self.same(f(self.x, axis="b"), f(self.a, axis=1))
            self.same(f(self.x, ["a"]), f(self.a, axis=0))
        for f in (np.argmax, np.argmin):
            self.same(f(self.x, axis="a"), f(self.a, axis=0))
        self.same(np.any(self.x > 11, "b"), [False, False, True])
        self.same(np.all(self.x > 4, "b"), [False, True, True])
        self.same(np.cumsum(self.x, axis="b"), self.a.cumsum(1))
        self.same(np.median(self.x, axis="b"), np.median(self.a, axis=1))
        self.same(np.quantile(self.x, 0.25, axis="b"), np.quantile(self.a, 0.25, axis=1))
        self.same(np.sort(self.y, axis="a"), np.sort(self.b, axis=0))

    def test_others(self):
        self.same(np.where(self.x > 3, self.x, 0), np.where(self.a > 3, self.a, 0))
        self.same(np.clip(self.x, 2, 5), self.a.clip(2, 5))
        self.same(np.clip(self.x, None, self.y), np.minimum(self.a, self.b))
        self.same(np.clip(self.x, 2, None), self.a.clip(2))
        self.same(np.round(self.y), np.round(self.b))
        self.same(np.flip(self.x, "a"), self.a[::-1])
        self.same(np.roll(self.x, 1, axis="a"), np.roll(self.a, 1, 0))
        self.assertEqual((np.shape(self.x), np.ndim(self.x), np.size(self.x)), ((3, 4), 2, 12))
        z = self.g.input("z", self.a + 1j * self.b, "a b")
        for f in (np.real, np.imag, np.angle, np.abs, np.exp):
            self.same(f(z), f(self.a + 1j * self.b))


class Refusals(Case):
    def refused(self, wrong, word, kind=TypeError):
        with self.assertRaises(kind) as caught:
            wrong()
        e = caught.exception
        self.assertIn(word, str(e))
        if kind is fathom.Error:
            self.assertEqual(os.path.abspath(e.site.file), HERE)

    def test_each_says_what_to_write(self):
        x, y, a = self.x, self.y, self.a
        for wrong, word in [
                (lambda: np.tan(x), "v.sin() / v.cos()"), (lambda: np.log10(x), "math.log(10)"),
                (lambda: np.floor_divide(x, y), "toward zero"), (lambda: np.remainder(x, 2), "np.fmod"),
                (lambda: np.divmod(x, 2), "v.numpy()"), (lambda: np.fmax(x, y), "fathom.minimum and maximum"),
                (lambda: np.dot(x, y), "a.dot(b, axes)"), (lambda: a @ x, "a.dot(b, axes)"), (lambda: x @ a, "a.dot(b, axes)"),
                (lambda: np.linalg.cholesky(x), "v.cholesky(..)"), (lambda: np.fft.fft(x), "v.fft(..)"),
                (lambda: np.concatenate([x, y]), "fathom.concat"), (lambda: np.stack([x, y]), "fathom.stack"),
                (lambda: np.reshape(x, 12), "v.merge"), (lambda: np.save("x.npy", x), "g.plan(v"),
                (lambda: np.add.reduce(x), "v.sum(axes)"), (lambda: np.multiply.outer(x, y), "expand"),
                (lambda: np.add.accumulate(x), "v.cumsum(axis)"), (lambda: np.add.at(a, 0, x), "v.scatter_add"),
                (lambda: np.exp(x, out=a), "no out="), (lambda: a.__iadd__(x), "no out="),
                (lambda: np.add(x, y, where=a > 1), "no where="), (lambda: np.sum(x, keepdims=True), "keepdims"),
                (lambda: np.mean(x, dtype="f8"), "dtype"), (lambda: np.where(x > 1), "condition, x, y"),
                (lambda: np.median(x), "takes a, axis"), (lambda: np.round(x, 2), "decimals"),
                (lambda: np.logical_and(x, y), "v != 0"), (lambda: np.unique(x), "v.numpy()"),
                (lambda: np.allclose(x, 1), "v.numpy()"), (lambda: np.zeros_like(x), "g.const"),
                (lambda: np.array([x, y]), "v.numpy()"), (lambda: np.array([x], dtype=object), "v.numpy()"),
                (lambda: np.sum([x, y]), "v.numpy()"), (lambda: np.full(3, x), "v.numpy()")]:
            self.refused(wrong, word)
        np.testing.assert_array_equal(a, np.arange(1, 13, dtype="f4").reshape(3, 4))

    def test_arrays_are_no_operands(self):
        x, a = self.x, self.a
        for wrong in (lambda: np.add(x, a), lambda: a * x, lambda: np.where(a > 1, x, 0), lambda: np.minimum([1] * 4, x),
                      lambda: np.where(x > 1, x, a), lambda: a == x, lambda: np.clip(a, 0, x), lambda: np.add(x, "a")):
            self.refused(wrong, "expected a value of the graph, found ", fathom.Error)
        self.refused(lambda: np.sum(x, axis=0), "not by number", fathom.Error)
        self.refused(lambda: np.sum(x, axis=(0, 1)), "not by number", fathom.Error)
        self.refused(lambda: np.argmax(x), "name one", fathom.Error)


class Whole(Case):
    """Whole numbers that no double is."""

    def setUp(self):
        super().setUp()
        self.big = 2**60 + 1
        self.v = np.array([5, 2**61 + 3, -2**62 - 1])
        self.i = self.g.input("i", self.v, "a")

    def test_clip(self):
        big, i = self.big, self.i
        for lo, hi in ((-big, big), (0, big), (-math.inf, big), (-big, math.inf), (np.int64(-big), np.array(big)), (big, 2**63 - 1)):
            with self.subTest(lo=lo, hi=hi):
                want = [max(min(x, hi), lo) for x in self.v.tolist()]
                self.assertEqual(i.clip(lo, hi).numpy().tolist(), [int(x) for x in want])
        for wrong, word in ((lambda: i.clip(big, 0), "the lower end comes first"), (lambda: i.clip(0.5, big), "does not fit i64"),
                            (lambda: i.clip("0", big), "expected a number"), (lambda: i.clip(0, 2**63), "does not fit i64"),
                            (lambda: i.clip(0, 2**64 + 1), "not a number of f64"), (lambda: self.x.clip(0, big), "not a number of f64")):
            with self.assertRaises(fathom.Error) as caught:
                wrong()
            self.assertIn(word, str(caught.exception))

    def test_pad(self):
        for value in (self.big, -self.big, 2**63 - 1, np.int64(-self.big)):
            self.assertEqual(self.i.pad("a", 1, "c", value).numpy().tolist(), [value, *self.v.tolist(), value])

    def test_scatter(self):
        at = self.g.input("at", np.array([4, 0, 4]), "a")
        for how, best in (("set", lambda old, new: new), ("min", min), ("max", max)):
            for fill in (self.big, -self.big, 2**63 - 1):
                want = [fill] * 6
                for place, x in zip((4, 0, 4), self.v.tolist()):
                    want[place] = best(want[place], x)
                self.assertEqual(self.i.scatter("a", at, "n", how, fill).numpy().tolist(), want)


if __name__ == "__main__":
    unittest.main()
