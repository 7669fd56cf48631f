# test_exchange.py - memory shared with NumPy and DLPack, and files as inputs.
# seconds: 5
import ctypes as C
import os
import tempfile
import unittest

import fathom
import numpy as np


class Lender:
    """A DLPack producer that is not NumPy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Tensors(unittest.TestCase):
    def setUp(self):
        self.context = fathom.Context(memory="16M")

    def test_numpy_sees_the_same_memory(self):
        t = self.context.tensor((3, 4), "f32")
        a = np.asarray(t)
        a[...] = np.arange(12).reshape(3, 4)
        self.assertTrue(a.flags.writeable)
        np.testing.assert_array_equal(t.numpy(), a)
        self.assertEqual(t.numpy().ctypes.data, a.ctypes.data)

    def test_dlpack_out_every_dtype(self):
        for dtype, (_, numpy, _) in fathom.DTYPES.items():
            if dtype in ("bf16", "bool"):  # NumPy 1.24 takes neither
                continue
            with self.subTest(dtype=dtype):
                t = self.context.tensor((2, 3), dtype)
                np.asarray(t)[...] = 1
                b = np.from_dlpack(t)
                self.assertEqual(b.dtype, np.dtype(numpy))
                self.assertEqual(b.ctypes.data, np.asarray(t).ctypes.data)
                np.testing.assert_array_equal(b, np.ones((2, 3)))
        self.assertEqual(t.__dlpack_device__(), (1, 0))

    def test_lent_memory_outlives_the_tensor(self):
        t = self.context.tensor((1000,), "f64")
        np.asarray(t)[...] = 3
        b = np.from_dlpack(t)
        del t
        self.assertEqual(b.sum(), 3000)
        self.assertEqual(len(fathom._exports), 1)
        del b
        self.assertEqual(len(fathom._exports), 0)
        self.context.close()  # raises LEAK if the block were still held

    def test_a_capsule_nobody_takes(self):
        t = self.context.tensor((10,))
        capsule = t.__dlpack__()
        self.assertEqual(len(fathom._exports), 1)
        del capsule
        self.assertEqual(len(fathom._exports), 0)
        del t
        self.context.close()

    def test_only_the_host_without_a_copy(self):
        t = self.context.tensor((10,))
        for wrong in ({"copy": True}, {"dl_device": (2, 0)}, {"stream": 1}):
            with self.assertRaises(BufferError):
                t.__dlpack__(**wrong)

    def test_the_budget_counts_tensors(self):
        with self.assertRaises(fathom.Error) as caught:
            self.context.tensor((1 << 30,), "f64")
        self.assertEqual(caught.exception.status, "BUDGET")
        self.assertEqual(os.path.basename(__file__),
                         os.path.basename(caught.exception.site.file)
                         if caught.exception.site else os.path.basename(__file__))


class Inputs(unittest.TestCase):
    def graph(self):
        g = fathom.Graph(memory="16M")
        g.axes(i=6, j=4)
        return g

    def test_dlpack_in(self):
        a = np.arange(24, dtype="f4").reshape(6, 4)
        g = self.graph()
        v = g.input("a", Lender(a), "i j")
        w = g.input("b", Lender(np.arange(24, dtype="f4").reshape(4, 6).T), "i j")
        self.assertEqual(g.plan(v + 1.0).info["foreign_bytes"], 2 * a.nbytes)
        np.testing.assert_array_equal((v + 1.0).numpy(), a + 1)
        np.testing.assert_array_equal((w + 0.0).numpy(), np.arange(24).reshape(4, 6).T)

    def test_tensors_and_bf16(self):
        g = self.graph()
        t = g.context.tensor((6, 4), "bf16")
        np.asarray(t)[...] = 0x3fc0  # 1.5
        v = g.input("t", t, "i j")
        self.assertEqual(v.dtype, "bf16")
        np.testing.assert_array_equal(v.cast("f32").numpy(), np.full((6, 4), 1.5))
        bits = g.input("bits", np.full((6, 4), 0xbf80, "u2"), "i j", dtype="bf16")
        self.assertEqual(bits.cast("f64").sum("i j").item(), -24.0)
        self.assertEqual(v.numpy().dtype, np.uint16)

    def test_a_device_that_is_not_the_host(self):
        class Far(Lender):
            def __dlpack_device__(self):
                return (2, 0)
        with self.assertRaises(fathom.Error) as caught:
            self.graph().input("a", Far(np.zeros((6, 4), "f4")), "i j")
        self.assertEqual(caught.exception.status, "DEVICE")

    def test_buffers(self):
        g = self.graph()
        v = g.input("a", memoryview(np.arange(6.0)), "i")
        np.testing.assert_array_equal((v * 2.0).numpy(), np.arange(6) * 2.0)
        c = g.input("c", (C.c_double * 6)(*range(6)), "i")
        np.testing.assert_array_equal((c * 2.0).numpy(), np.arange(6) * 2.0)

    def test_files(self):
        a = np.random.default_rng(1).normal(size=(6, 4))
        with tempfile.TemporaryDirectory() as folder:
            npy, npz = os.path.join(folder, "a.npy"), os.path.join(folder, "a.npz")
            np.save(npy, a)
            np.savez(npz, first=a, second=a + 1)
            g = self.graph()
            x = g.input("x", npy, "i j")
            y = g.input("y", (npz, "second"), "i j")
            np.testing.assert_array_equal((y - x).numpy(), a + 1 - a)
            with self.assertRaises(fathom.Error) as caught:
                g.input("z", os.path.join(folder, "no.npy"), "i j")
            self.assertEqual((caught.exception.status, caught.exception.exit_code),
                             ("FILE_OPEN", 3))
            with self.assertRaises(fathom.Error) as caught:
                g.input("z", (npz, "third"), "i j")
            self.assertEqual(caught.exception.status, "FILE_KEY")
            with self.assertRaises(fathom.Error) as caught:
                g.input("z", os.path.join(folder, "a.csv"), "i j")
            self.assertEqual(caught.exception.status, "FILE_FORMAT")


if __name__ == "__main__":
    unittest.main()
