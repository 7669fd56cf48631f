# test_values.py - every builder of the binding against NumPy, with named axes.
# seconds: 5
import math
import unittest

import fathom
import numpy as np

RNG = np.random.default_rng(3)


def graph(**arrays):
    """A graph with inputs; a key "x__cell_dim" makes input x over the axes cell and dim."""
    g = fathom.Graph(memory="256M")
    values = {}
    for key, array in arrays.items():
        name, axes = key.split("__")
        axes = axes.split("_") if axes else []
        for axis, size in zip(axes, array.shape):
            if g.axis_size(axis) is None:
                g.axis(axis, size)
        values[name] = g.input(name, array, axes)
    return g, *values.values()


class Elementwise(unittest.TestCase):
    def check(self, value, expected, rtol=2e-6):
        got = value.numpy()
        self.assertEqual(got.dtype, np.asarray(expected).dtype)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-6)

    def test_operators(self):
        a = RNG.uniform(0.5, 2, (5, 3)).astype("f4")
        b = RNG.uniform(0.5, 2, 3).astype("f4")
        g, x, y = graph(a__r_c=a, b__c=b)
        for value, expected in [
                (x + y, a + b), (y - x, b - a), (x * y, a * b), (x / y, a / b), (x ** y, a ** b),
                (x ** 2, a ** 2), (2.0 - x, 2 - a), (1.0 / x, 1 / a), (2.0 ** x, 2 ** a),
                (x % 0.3, np.fmod(a, np.float32(0.3))), (-x, -a), (abs(y - x), abs(b - a)),
                (3 * x + 1, 3 * a + 1)]:
            self.check(value, expected.astype("f4"))
        for value, expected in [(x < y, a < b), (x <= 1.0, a <= 1), (x > y, a > b),
                                (x >= y, a >= b), (x == x, a == a), (x != y, a != b),
                                ((x < y) & (x > 1.0), (a < b) & (a > 1)),
                                ((x < y) | (x > 1.0), (a < b) | (a > 1)),
                                ((x < y) ^ (x > 1.0), (a < b) ^ (a > 1)), (~(x < y), ~(a < b))]:
            self.assertTrue(np.array_equal(value.numpy(), expected))

    def test_integers(self):
        a, b = RNG.integers(-50, 50, 20), RNG.integers(1, 9, 20)
        g, x, y = graph(a__i=a, b__i=b)
        self.check(x // y, np.trunc(a / b).astype("i8"))
        self.check(x % y, np.fmod(a, b))
        self.check(x & 7, a & 7)
        self.check(~x, ~a)

    def test_functions(self):
        a = RNG.uniform(0.1, 3, 50)
        g, x = graph(a__i=a)
        for name, f in [("sqrt", np.sqrt), ("exp", np.exp), ("expm1", np.expm1), ("log", np.log),
                        ("log1p", np.log1p), ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh),
                        ("floor", np.floor), ("ceil", np.ceil), ("round", np.rint),
                        ("sign", np.sign), ("sqr", np.square), ("recip", np.reciprocal),
                        ("rsqrt", lambda v: 1 / np.sqrt(v)), ("neg", np.negative),
                        ("sigmoid", lambda v: 1 / (1 + np.exp(-v))),
                        ("softplus", lambda v: np.log1p(np.exp(v))),
                        ("relu", lambda v: np.maximum(v, 0)),
                        ("erf", np.vectorize(math.erf)), ("lgamma", np.vectorize(math.lgamma))]:
            with self.subTest(function=name):
                self.check(getattr(fathom, name)(x), f(a), 1e-12)
                self.check(getattr(x, name)(), f(a), 1e-12)
        step = 1e-5
        slope = (np.vectorize(math.lgamma)(a + step) - np.vectorize(math.lgamma)(a - step))
        self.check(fathom.digamma(x), slope / (2 * step), 1e-6)
        self.check(fathom.trigamma(x), (fathom.digamma(x + step).numpy()
                                        - fathom.digamma(x - step).numpy()) / (2 * step), 1e-5)
        self.check(fathom.minimum(x, 1.0), np.minimum(a, 1))
        self.check(fathom.maximum(1.0, x), np.maximum(a, 1))
        self.check(fathom.atan2(x, 2.0), np.arctan2(a, 2))
        self.check(fathom.fma(x, x, 1.0), a * a + 1)
        self.check(fathom.where(x > 1.0, x, 0.0), np.where(a > 1, a, 0))
        self.check(fathom.isnan(x), np.isnan(a))
        self.check(fathom.isfinite(x / 0.0), np.zeros(50, bool))
        self.check(fathom.logical_not(x > 1.0), ~(a > 1))
        self.check(x.clip(0.5, 2), np.clip(a, 0.5, 2))
        self.check(x.clip(1, math.inf), np.maximum(a, 1))
        self.check(x.stop_gradient(), a)
        self.check(x.roll("i", 2), np.roll(a, 2))
        self.check(x.roll("i", -1), np.roll(a, -1))
        self.check(x.column("i", 3), a[3])

    def test_complex(self):
        a, b = RNG.normal(size=30), RNG.normal(size=30)
        c = a + 1j * b
        g, x, y, z = graph(a__i=a, b__i=b, c__i=c)
        for value, expected in [(fathom.complex_of(x, y), c), (z * z, c * c), (z * 2j, c * 2j),
                                (z.conj(), c.conj()), (z.real(), a), (z.imag(), b),
                                (z.abs(), abs(c)), (z.abs2(), abs(c) ** 2), (z.arg(), np.angle(c)),
                                (z.exp(), np.exp(c))]:
            self.check(value, expected, 1e-12)

    def test_cast(self):
        a = np.array([0.0, 1.7, -2.9], "f4")
        g, x = graph(a__i=a)
        self.check(x.cast("i32"), np.array([0, 1, -2], "i4"))
        self.check(x.cast(np.float64), a.astype("f8"))
        self.check(x.cast("bool"), a != 0)
        self.assertEqual(x.cast("f16").dtype, "f16")

    def test_bool_sum_is_a_count(self):
        g, x = graph(a__i=np.array([True, False, True]))
        self.assertEqual(x.sum("i").dtype, "i64")
        self.assertEqual(x.sum("i").item(), 2)


class AllAxes(unittest.TestCase):
    """Reductions without axes go over all of them."""

    def test_against_numpy(self):
        a = RNG.normal(size=(4, 3, 5)).astype("f4")
        g, x = graph(a__p_q_r=a)
        d = a.astype("f8")
        for value, expected in [
                (x.sum(), d.sum()), (x.mean(), d.mean()), (x.max(), d.max()), (x.min(), d.min()),
                (x.prod(), d.prod()), (x.variance(), d.var()), (fathom.mean(x), d.mean()),
                (x.logsumexp(), np.log(np.exp(d).sum())), (fathom.logsumexp(x), np.log(np.exp(d).sum())),
                (fathom.variance(x), d.var())]:
            self.assertEqual((value.axes, value.dtype), ((), "f32"))
            np.testing.assert_allclose(value.item(), expected, rtol=3e-6)
        self.assertEqual((x > 0.0).any().item(), True)
        self.assertEqual((x > 9.0).any().item(), False)
        self.assertEqual((x > 0.0).all().item(), False)
        self.assertEqual(((x > 0.0).count().item(), x.count().item()), ((a > 0).sum(), 60))
        self.assertEqual((x > 0.0).sum().item(), (a > 0).sum())

    def test_axes_as_sequences(self):
        a = RNG.integers(0, 9, (4, 3, 5))
        g, x = graph(a__p_q_r=a)
        for axes in ("p r", ["p", "r"], ("p", "r"), {"p": 0, "r": 1}, (n for n in "pr"), ["r", "p"]):
            np.testing.assert_array_equal(x.sum(axes).numpy(), a.sum((0, 2)))
        np.testing.assert_array_equal(x.layout(["r", "p", "q"]).numpy(), a.transpose(2, 0, 1))
        np.testing.assert_array_equal(x.sum([]).numpy(), a)  # no axes are not all axes
        np.testing.assert_array_equal(x.sum("").numpy(), a)

    def test_a_value_without_axes(self):
        g = fathom.Graph(memory="64M", threads=1)
        for dtype, number in (("f32", 2.5), ("i32", 3), ("u8", 7), ("bool", True)):
            x = g.const(number, dtype)
            total = x.sum()
            self.assertEqual((total.item(), total.dtype), (number, "f32" if dtype == "f32" else "i64"))
            if dtype != "bool":
                self.assertEqual((x.max().item(), x.max().dtype), (number, dtype))
        self.assertEqual(g.const(2.5).mean().item(), 2.5)

    def test_positions(self):
        a = RNG.normal(size=(4, 3))
        g, x, y = graph(a__p_q=a, b__r=a.ravel())
        self.assertEqual((y.argmax().item(), y.argmin().item()), (a.argmax(), a.argmin()))
        with self.assertRaises(fathom.Error) as caught:
            x.argmax()
        self.assertIn("merge", caught.exception.hint)
        g.axis("flat", 12)  # what the hint says
        self.assertEqual(x.merge("p q", "flat").argmax("flat").item(), a.argmax())

    def test_mistakes_name_axes(self):
        g, x = graph(a__p_q=np.ones((2, 3)))
        for wrong in (lambda: x.sum(0), lambda: x.sum((0, 1)), lambda: x.sum(-1), lambda: x.argmax(1),
                      lambda: x.expand(3), lambda: x.sort(["p"]), lambda: g.index(0), lambda: x.merge("p q", 4)):
            with self.assertRaises(fathom.Error) as caught:
                wrong()
            self.assertEqual(caught.exception.status, "AXIS_NAME")
            self.assertIn("by name", caught.exception.hint)
            self.assertEqual(caught.exception.site.file, __file__)


class Operands(unittest.TestCase):
    """What is no value, no number and no known word is told as a mistake of the caller's line."""

    def test_refused(self):
        a = np.ones((2, 3), "f4")
        g, x = graph(a__p_q=a)
        for wrong, word in [
                (lambda: x.dot(a, "q"), "ndarray float32 [2, 3]"), (lambda: fathom.where(x > 0.0, a, x), "ndarray"),
                (lambda: fathom.where(a > 0, x, x), "ndarray"), (lambda: fathom.minimum(x, a), "ndarray"),
                (lambda: fathom.minimum(1.0, 2.0), "none of the operands"), (lambda: fathom.stack([x, a], "k"), "ndarray"),
                (lambda: fathom.concat([], "p", "k"), "no values"), (lambda: x.gather("p", [0, 1]), "list [0, 1]"),
                (lambda: x.clip("0", 1), "expected a number"), (lambda: x.scan("p", "mean"), "'mean'"),
                (lambda: x.scatter("p", g.index("p"), "q", how="sum"), "'sum'"),
                (lambda: x.window("p", 1, "q", border="edge"), "'edge'"), (lambda: x.mark("lo", "p", "q"), "'lo'"),
                (lambda: fathom.schedule("step", 1, 0.1), "'step'"), (lambda: x.quantile("p", None), "expected a number"),
                (lambda: x.numpy().sum() and fathom.fma(x, a, x), "ndarray")]:
            with self.assertRaises(fathom.Error) as caught:
                wrong()
            self.assertIn(word, caught.exception.text)
            self.assertEqual(caught.exception.site.file, __file__)
        np.testing.assert_array_equal(fathom.fma(2.0, x, x).numpy(), 3 * a)
        np.testing.assert_array_equal(fathom.where(x > 2.0, 5.0, x).numpy(), a)


class Axes(unittest.TestCase):
    def test_expand_rename_layout(self):
        a, b = RNG.normal(size=(4, 2)), RNG.normal(size=(3, 2))
        g, x, y = graph(a__p_d=a, b__q_d=b)
        d = x.expand("q") - y.expand("p").layout("q p d")
        self.assertEqual(set(d.axes), {"p", "q", "d"})
        got = (d * d).sum("d").layout("p q").numpy()
        np.testing.assert_allclose(got, ((a[:, None] - b[None]) ** 2).sum(-1), rtol=1e-12)
        g.axis_like("p2", "p")
        self.assertEqual(x.rename("p", "p2").axes, ("p2", "d"))
        np.testing.assert_array_equal(x.layout("d p").numpy(), a.T)

    def test_merge_split(self):
        a = RNG.normal(size=(4, 3, 2))
        g, x = graph(a__group_chan_y=a)
        g.axis("patch", 12)
        m = x.merge("group chan", "patch")
        np.testing.assert_array_equal(m.numpy(), a.reshape(12, 2))
        np.testing.assert_array_equal(m.split("patch").numpy(), a)

    def test_index_and_shapes(self):
        g, x = graph(a__r_c=np.zeros((2, 3), "f4"))
        self.assertEqual((x.shape, x.axes, x.dtype), ((2, 3), ("r", "c"), "f32"))
        np.testing.assert_array_equal(g.index("c").numpy(), np.arange(3))
        self.assertEqual(repr(x.label("picture")), "picture f32 [r=2 c=3]")
        self.assertIn("picture", x.show())


class Reductions(unittest.TestCase):
    def test_reductions(self):
        a = RNG.normal(size=(6, 5)) + 2
        g, x = graph(a__r_c=a)
        g.axis("bin", 4)
        for value, expected in [
                (x.sum("c"), a.sum(1)), (x.sum("r c"), a.sum()), (x.prod("r"), a.prod(0)),
                (x.min("c"), a.min(1)), (x.max("r"), a.max(0)), (x.mean("r"), a.mean(0)),
                (x.variance("c"), a.var(1)), (x.logsumexp("c"), np.log(np.exp(a).sum(1))),
                (x.cumsum("r"), a.cumsum(0)), (x.scan("c", "max"), np.maximum.accumulate(a, 1)),
                (x.scan("c", reverse=True), a[:, ::-1].cumsum(1)[:, ::-1])]:
            np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12)
        for value, expected in [
                (x.argmin("c"), a.argmin(1)), (x.argmax("r"), a.argmax(0)),
                (x.count("c"), np.count_nonzero(a, 1)),
                ((x > 2.0).any("c"), (a > 2).any(1)), ((x > 2.0).all("r"), (a > 2).all(0)),
                (x.histogram("c", "bin", 0.0, 4.0),
                 np.array([np.histogram(r, 4, (0, 4))[0] for r in a]))]:
            np.testing.assert_array_equal(value.numpy(), expected)


class Matrices(unittest.TestCase):
    def test_dot(self):
        a, b = RNG.normal(size=(3, 4, 5)), RNG.normal(size=(3, 5, 6))
        g, x, y = graph(a__n_i_k=a, b__n_k_j=b)
        v = x.dot(y, "k")
        np.testing.assert_allclose(v.layout("n i j").numpy(), a @ b, rtol=1e-12)

    def test_cholesky_and_solves(self):
        m = RNG.normal(size=(5, 5))
        a, b = m @ m.T + 5 * np.eye(5), RNG.normal(size=(5, 2))
        g = fathom.Graph()
        g.axes(i=5, rhs=2)
        g.axis_like("j", "i")
        A, b_ = g.input("A", a, "i j"), g.input("b", b, "i rhs")
        L = A.cholesky("i", "j")
        np.testing.assert_allclose(L.numpy(), np.linalg.cholesky(a), rtol=1e-12)
        y = fathom.solve(L, b_, "i", "j")
        x = fathom.solve_t(L, y, "i", "j")
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-9)

    def test_small_factorizations(self):
        m = RNG.normal(size=(4, 3, 3))
        a = m + m.transpose(0, 2, 1)
        g = fathom.Graph()
        g.axes(n=4, i=3)
        g.axis_like("j", "i")
        A = g.input("A", a, "n i j")
        w, _ = A.eigh("i", "j")
        np.testing.assert_allclose(w.numpy(), np.linalg.eigvalsh(a), atol=1e-10)
        inv, logdet = A.inverse("i", "j")
        np.testing.assert_allclose(inv.numpy(), np.linalg.inv(a), rtol=1e-8)
        np.testing.assert_allclose(logdet.numpy(), np.linalg.slogdet(a)[1], rtol=1e-9)


class Moving(unittest.TestCase):
    def test_gather_scatter_compact(self):
        a, k = RNG.normal(size=(6, 3)), np.array([5, 0, 0, 2])
        g, x, i = graph(a__r_c=a, k__s=k)
        np.testing.assert_array_equal(x.gather("r", i).numpy(), a[k])
        picked = x.gather("r", i)
        g.axis_like("r2", "r")
        expected = np.zeros((6, 3))
        np.add.at(expected, k, a[k])
        np.testing.assert_allclose(picked.scatter_add("s", i, "r2").numpy(), expected)
        keep = a[:, 0] > 0
        g.axis("kept", int(keep.sum()))
        mask = g.input("mask", keep, "r")
        np.testing.assert_array_equal(x.compact("r", mask, "kept").numpy(), a[keep])

    def test_entries_of_rows(self):
        dense = RNG.poisson(0.4, (50, 30)).astype("f4")
        row, col = np.nonzero(dense)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=50))])
        a = RNG.uniform(1, 2, (50, 4)).astype("f4")
        g = fathom.Graph(memory="256M")
        g.axes(cell=50, gene=30, factor=4)
        g.axis_ragged("entry", "cell", indptr)
        y = g.input("y", dense[row, col], "entry")
        c = g.input("col", col.astype("i4"), "entry")
        x = g.input("x", a, "cell factor")
        np.testing.assert_allclose(y.collect("entry").numpy(), dense.sum(1))
        np.testing.assert_allclose(y.scatter_add("entry", c, "gene").numpy(), dense.sum(0))
        np.testing.assert_array_equal(x.spread("entry").numpy(), a[row])
        with self.assertRaisesRegex(fathom.Error, "49 row pointers for 50 rows"):
            g.axis_ragged("other", "cell", indptr[:-2])

    def test_concat_slice_pad_flip(self):
        a, b = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))
        g, x, y = graph(a__m_c=a, b__n_c=b)
        g.axes(mn=7, part=2, wide=9)
        both = fathom.concat([x, y], "m n", "mn")
        np.testing.assert_array_equal(both.numpy(), np.concatenate([a, b]))
        np.testing.assert_array_equal(both.slice("mn", 4, "part").numpy(), b[1:3])
        np.testing.assert_array_equal(both.flip("mn").numpy(), np.concatenate([a, b])[::-1])
        np.testing.assert_array_equal(both.pad("mn", 1, "wide", 7.0).numpy(),
                                      np.pad(np.concatenate([a, b]), ((1, 1), (0, 0)),
                                             constant_values=7))

    def test_stack(self):
        a, b = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3))
        g, x, y = graph(a__m_c=a, b__c_m=b)
        g.axis("layer", 3)
        np.testing.assert_array_equal(fathom.stack([x, y, x], "layer").numpy(), np.stack([a, b.T, a]))
        with self.assertRaisesRegex(fathom.Error, "2 values along 'layer', which has 3 elements"):
            fathom.stack([x, y], "layer")

    def test_a_graph_in_words(self):
        g, x = graph(x__i=RNG.normal(size=5))
        (2.0 * x).sum("i")
        self.assertRegex(g.text, r"   1  x = input  f64 \[i=5\]  .*test_values.py:\d+\n")
        self.assertRegex(str(g), r"= mul\(.*\)  f64 \[i=5\]")

    def test_window(self):
        a = RNG.normal(size=6)
        g, x = graph(a__x=a)
        g.axis("tap", 3)
        padded = np.pad(a, 1)
        np.testing.assert_array_equal(x.window("x", 1, "tap").numpy(),
                                      np.stack([padded[i:i + 3] for i in range(6)]))

    def test_search_and_quantile(self):
        rng = np.random.default_rng(3)
        a, b = np.sort(rng.normal(size=(4, 50)), 1), rng.normal(size=(4, 9))
        g = fathom.Graph()
        g.axes(r=4, n=50, k=9, into=6)
        x = g.input("a", a, "r n")
        for right in (False, True):
            at = x.searchsorted("n", g.input(f"b{right}", b, "r k"), right).numpy()
            want = [np.searchsorted(a[r], b[r], "right" if right else "left") for r in range(4)]
            np.testing.assert_array_equal(at, want)
        np.testing.assert_array_equal(x.quantile("n", 0.3).numpy(), np.quantile(a, 0.3, axis=1))
        np.testing.assert_array_equal(x.median("n").numpy(), np.quantile(a, 0.5, axis=1))

    def test_median_beside_infinity(self):
        inf = np.inf
        for line in ([1, inf], [-inf, 1], [-inf, inf], [inf, inf], [1, np.nan], [-inf, -inf, 2, 3]):
            g = fathom.Graph()
            g.axes(n=len(line))
            x = g.input("a", np.array(line), "n")
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(x.median("n").numpy(), np.median(line))
        g = fathom.Graph()
        g.axes(n=2)
        x = g.input("a", np.array([1, inf]), "n")
        self.assertEqual([x.quantile("n", q).item() for q in (0.0, 0.25, 0.75, 1.0)], [1, inf, inf, inf])

    def test_least_integer(self):
        least = np.iinfo("i8").min
        g = fathom.Graph()
        g.axes(n=2)
        x = g.input("a", np.array([least, 5]), "n")
        np.testing.assert_array_equal(x.clip(least, 3).numpy(), [least, 3])
        np.testing.assert_array_equal((x >= float(least)).numpy(), [True, True])

    def test_scatter_and_collect(self):
        rng = np.random.default_rng(4)
        a, at = rng.normal(size=(50, 3)), rng.integers(0, 5, 50)
        row_ptr = np.array([0, 20, 20, 50])
        g = fathom.Graph()
        g.axes(row=3, into=6, c=3)
        g.axis_ragged("n", "row", row_ptr)
        x, index = g.input("a", a, "n c"), g.input("at", at, "n")
        want = np.full((6, 3), 7.0)
        want[at] = a
        np.testing.assert_array_equal(x.scatter("n", index, "into", fill=7).numpy(), want)
        for how, join in (("max", np.maximum), ("min", np.minimum)):
            want = np.zeros((6, 3))
            join.at(want, at, a)
            np.testing.assert_array_equal(x.scatter("n", index, "into", how).numpy(), want)
        largest, place = (v.numpy() for v in x.collect_max("n"))
        smallest, _ = (v.numpy() for v in x.collect_min("n"))
        np.testing.assert_array_equal(largest[2], a[20:].max(0))
        np.testing.assert_array_equal(place[2], 20 + a[20:].argmax(0))
        np.testing.assert_array_equal(largest[1], np.full(3, -np.inf))
        np.testing.assert_array_equal(place[1], np.full(3, -1))
        np.testing.assert_array_equal(smallest[0], a[:20].min(0))

    def test_sort_topk(self):
        a = RNG.normal(size=(4, 7))
        g, x = graph(a__r_c=a)
        g.axis("k", 2)
        v, order = x.sort("c")
        np.testing.assert_array_equal(v.numpy(), np.sort(a, 1))
        np.testing.assert_array_equal(order.numpy(), np.argsort(a, 1, kind="stable"))
        v, at = x.topk("c", "k")
        np.testing.assert_array_equal(v.numpy(), -np.sort(-a, 1)[:, :2])
        np.testing.assert_array_equal(at.numpy(), np.argsort(-a, 1)[:, :2])


class Transforms(unittest.TestCase):
    def test_fft(self):
        a = RNG.normal(size=(3, 8)) + 1j * RNG.normal(size=(3, 8))
        g, z, r = graph(a__n_x=a, b__n_x=a.real.copy())
        g.axis_like("f", "x")
        g.axis("h", 5)
        np.testing.assert_allclose(z.fft("x", "f").numpy(), np.fft.fft(a), atol=1e-12)
        np.testing.assert_allclose(z.fft("x", "f").ifft("f", "x").numpy(), a, atol=1e-12)
        np.testing.assert_allclose(r.rfft("x", "h").numpy(), np.fft.rfft(a.real), atol=1e-12)
        np.testing.assert_allclose(r.rfft("x", "h").irfft("h", "x").numpy(), a.real, atol=1e-12)

    def test_transforms_over_three_axes(self):
        a = RNG.normal(size=(5, 4, 6)) + 1j * RNG.normal(size=(5, 4, 6))
        g, z, r = graph(z__x_y_w=a, r__x_y_w=a.real.astype("f4"))
        for name, n in (("u", 5), ("v", 4), ("f", 6), ("h", 4)):
            g.axis(name, n)
        np.testing.assert_allclose(z.fft("x y w", "u v f").numpy(), np.fft.fftn(a), atol=1e-12)
        np.testing.assert_allclose(z.ifft("x y w", "u v f").numpy(), np.fft.ifftn(a), atol=1e-12)
        half = r.rfft("x y w", "u v h")
        np.testing.assert_allclose(half.numpy(), np.fft.rfftn(a.real), atol=2e-5)
        np.testing.assert_allclose(half.irfft("u v h", "x y w").numpy(), a.real, atol=1e-5)

    def test_conv2d(self):
        v, w = RNG.normal(size=(2, 3, 6, 5)), RNG.normal(size=(4, 3, 3, 3))
        g, x, k = graph(v__b_chan_y_x=v, w__o_chan_ky_kx=w)
        got = fathom.conv2d(x, k, pad_y=1, pad_x=1).layout("b o y x").numpy()
        p = np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1)))
        expected = sum(np.einsum("bcyx,oc->boyx", p[:, :, i:i + 6, j:j + 5], w[:, :, i, j])
                       for i in range(3) for j in range(3))
        np.testing.assert_allclose(got, expected, atol=1e-10)

    def test_conv2d_tiled(self):
        """By Winograd's way, which rounds otherwise, and with errors like those of the plain way."""
        v, w = RNG.normal(size=(2, 64, 9, 12)).astype("f"), RNG.normal(size=(32, 64, 3, 3)).astype("f")
        g, x, k = graph(v__b_chan_y_x=v, w__o_chan_ky_kx=w)
        p = np.pad(v.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
        expected = sum(np.einsum("bcyx,oc->boyx", p[:, :, i:i + 9, j:j + 12], w[:, :, i, j].astype(float))
                       for i in range(3) for j in range(3))
        got = [fathom.conv2d(x, k, pad_y=1, pad_x=1, tiled=t).layout("b o y x").numpy() for t in (False, True)]
        error = [np.sqrt(np.mean((a - expected)**2)) for a in got]
        self.assertFalse(np.array_equal(*got))
        self.assertLess(error[1], 2 * error[0])

    def test_pool_upsample(self):
        a = RNG.normal(size=(3, 8))
        g, x = graph(a__n_x=a)
        g.axis("half", 4)
        blocks = a.reshape(3, 4, 2)
        np.testing.assert_allclose(x.pool_mean("x", 2, "half").numpy(), blocks.mean(-1))
        np.testing.assert_allclose(x.pool_sum("x", 2, "half").numpy(), blocks.sum(-1))
        np.testing.assert_array_equal(x.pool_max("x", 2, "half").numpy(), blocks.max(-1))
        np.testing.assert_array_equal(
            x.pool_max("x", 2, "half").upsample("half", 2, "x").numpy(),
            np.repeat(blocks.max(-1), 2, 1))


class Random(unittest.TestCase):
    def test_random(self):
        g = fathom.Graph()
        g.axis("i", 20000)
        seed = g.scalar("seed", 1, "i64")
        u, n = g.uniform("i", seed), g.normal("i", seed, dtype="f64")
        first = u.numpy()
        self.assertTrue(0 <= first.min() and first.max() < 1 and abs(first.mean() - 0.5) < 0.01)
        self.assertLess(abs(n.numpy().std() - 1), 0.02)
        np.testing.assert_array_equal(u.numpy(), first)
        seed.set(2)
        self.assertFalse(np.array_equal(u.numpy(), first))
        self.assertEqual(g.random_bits("i").dtype, "i64")
        p = fathom.poisson(g.const(4.0).expand("i"), seed)
        self.assertEqual(p.dtype, "i64")
        self.assertLess(abs(p.numpy().mean() - 4), 0.1)


if __name__ == "__main__":
    unittest.main()
