# test_custom_op.py - operations from shared objects: loaded by name, used in graphs, checked.
# seconds: 20
#
# examples/custom_op.c is built as a shared object, as a user would.
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import fathom
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LIAR = """
#include <fathom/fathom.h>
static fth_status infer(fth_node *node, fth_err *err) { return fth_infer_like(node, FTH_F32, 1, err); }
static fth_status both(fth_node *node, fth_err *err)
{
    const fth_status s = infer(node, err);
    node->n_out = 2;
    node->out[1] = node->out[0];
    return s;
}
/* the sum of an element and the one before, and says that it needs one element alone */
static fth_status run(const fth_call *c)
{
    const float *v = c->in[0].data;
    float *out = c->out[0].data;
    for (int64_t x = 0; x < c->out[0].extent[0]; x++) {
        const int64_t at = c->out[0].origin[0] + x;
        out[x * c->out[0].stride[0]] = v[x * c->in[0].stride[0]] + (at > 0 ? v[(x - 1) * c->in[0].stride[0]] : 0);
    }
    return FTH_OK;
}
/* v, and 2 v */
static fth_status twice(const fth_call *c)
{
    for (int k = 0; k < 2; k++)
        for (int64_t x = 0; c->out[k].data && x < c->out[k].extent[0]; x++)
            ((float *)c->out[k].data)[x * c->out[k].stride[0]] =
                (float)(k + 1) * ((const float *)c->in[0].data)[x * c->in[0].stride[0]];
    return FTH_OK;
}
/* the last operand, which has to ascend */
static fth_status rise(const fth_call *c)
{
    const fth_tile *in = &c->in[c->node->n_in - 1], *out = &c->out[0];
    for (int64_t x = 0; x < out->extent[0]; x++) {
        const float v = ((const float *)in->data)[x * in->stride[0]];
        if (v != (float)(in->origin[0] + x)) return FTH_FAIL(c->err, FTH_E_NUMERIC, "it does not rise");
        ((float *)out->data)[x * out->stride[0]] = v;
    }
    return FTH_OK;
}
static const fth_op ascending = {.name = "ascending", .infer = infer, .relation = fth_relation_same,
                                 .flags = FTH_OP_MAY_FAIL, .run = rise};
FTH_OP_EXPORT(rising, &ascending);
const fth_op liar = {.name = "liar", .infer = infer, .relation = fth_relation_same, .run = run};
static const fth_op pair = {.name = "pair", .infer = both, .relation = fth_relation_same, .run = twice};
FTH_OP_EXPORT(two, &pair);
FTH_API const fth_op_export old;
const fth_op_export old = {FTH_OP_MAGIC, FTH_OP_ABI + 7, sizeof(fth_op), sizeof(fth_node), sizeof(fth_call), &pair};
const long small[2] = {1, 2};
"""


class CustomOp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("cc"):
            raise unittest.SkipTest("there is no C compiler")
        cls.folder = tempfile.TemporaryDirectory()
        cls.example = cls.build(os.path.join(ROOT, "examples/custom_op.c"), "libmine.so")
        source = os.path.join(cls.folder.name, "liar.c")
        with open(source, "w") as f:
            f.write(LIAR)
        cls.liar = cls.build(source, "libliar.so")

    @classmethod
    def build(cls, source, name):
        out = os.path.join(cls.folder.name, name)
        lib = os.path.dirname(fathom._lib._path)
        subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I" + os.path.join(ROOT, "include"), source,
                        "-o", out, "-L" + lib, "-lfathom", "-Wl,-rpath," + lib, "-lm"], check=True)
        return out

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def graph(self, **axes):
        g = fathom.Graph(memory="256M")
        g.axes(**axes)
        return g

    def test_the_example_computes_differentiates_and_keeps_its_promises(self):
        op = fathom.Op(self.example, "second_difference")
        x = np.random.default_rng(1).normal(size=(50, 40)).astype("f4")
        g = self.graph(y=50, x=40)
        v = g.input("v", x, "y x")
        attr = struct.pack("i", fathom.axis_id(g, "y"))
        w = fathom.custom(op, [v], attr)
        want = -2 * x
        want[1:] += x[:-1]
        want[:-1] += x[1:]
        np.testing.assert_allclose(g.plan(w).run(), want, atol=1e-5)
        slope = fathom.grad((w * w).sum("y").sum("x"), [v])[0]
        self.assertEqual(g.plan(slope).run().shape, (50, 40))
        tried = fathom.op_check(op, v, attr)
        self.assertEqual(tried["axes"], 2)
        self.assertGreater(tried["calls"], 100)
        self.assertGreaterEqual(tried["gradient_error"], 0)
        fathom.op_check(op, [v], attr, inputs=[x], seed=3)

    def test_several_outputs(self):
        op = fathom.Op(self.liar, "two")
        g = self.graph(x=9)
        v = np.arange(9, dtype="f4")
        a, b = fathom.custom(op, g.input("v", v, "x"), outputs=2)
        one, two = g.plan([a, b]).run()
        np.testing.assert_array_equal(one, v)
        np.testing.assert_array_equal(two, 2 * v)
        self.assertEqual(fathom.op_check(op, a.graph.input("w", v, "x"))["gradient_error"], -1)

    def test_inputs_of_a_check_are_taken_as_they_are(self):
        op = fathom.Op(self.liar, "rising")
        g = self.graph(x=6)
        v = g.input("v", np.zeros(6, "f4"), "x")
        with self.assertRaises(fathom.Error) as told:
            fathom.op_check(op, v, gradient=-1)
        self.assertIn("it does not rise", str(told.exception))
        ramp = np.arange(6, dtype="f4")
        fathom.op_check(op, v, inputs=[ramp], gradient=-1)
        fathom.op_check(op, v, inputs=[np.repeat(ramp, 2)[::2]], gradient=-1)  # elements apart
        fathom.op_check(op, [v, v], inputs=[None, ramp], gradient=-1)  # the first is drawn

    def test_a_lie_is_told_at_the_line(self):
        op = fathom.Op(self.liar, "liar")
        g = self.graph(x=30)
        with self.assertRaises(fathom.Error) as told:
            fathom.op_check(op, g.input("v", np.zeros(30, "f4"), "x"))
        self.assertEqual(told.exception.code, "FTH-GRAPH-007")
        self.assertIn("when cut, axis 'x' at", str(told.exception))
        self.assertIn("outside of the part that relation asks for", str(told.exception))
        self.assertTrue(told.exception.site.file.endswith("test_custom_op.py"))

    def refused(self, *words, **call):
        with self.assertRaises(fathom.Error) as told:
            fathom.Op(*call["of"])
        for word in words:
            self.assertIn(word, str(told.exception))

    def test_what_cannot_be_loaded_is_refused(self):
        self.refused("no file", of=(os.path.join(self.folder.name, "none.so"), "two"))
        self.refused("cannot be loaded", of=("libnobodyhasthis.so", "two"))
        before = os.getcwd()
        os.chdir(os.path.dirname(self.liar))
        try:
            self.refused("not in this folder", "./", of=(os.path.basename(self.liar), "two"))
        finally:
            os.chdir(before)
        self.refused("no symbol 'three'", "FTH_OP_EXPORT", of=(self.liar, "three"))
        self.refused("another fathom/op.h", "version", of=(self.liar, "old"))
        self.refused("another fathom/op.h", "size", of=(self.liar, "small"))

    def test_wrong_inputs_are_refused(self):
        op = fathom.Op(self.liar, "two")
        g = self.graph(x=5)
        v = g.input("v", np.zeros(5, "f4"), "x")
        with self.assertRaises(fathom.Error):
            fathom.op_check(op, v, inputs=[np.zeros(4, "f4")])
        with self.assertRaises(fathom.Error) as told:
            fathom.op_check(op, v, inputs=[np.zeros(5, "f8")])
        self.assertIn("input 0 is float64 [5], the operand f32 [5]", str(told.exception))
        with self.assertRaises(fathom.Error):
            fathom.custom(op, [])
        with self.assertRaises(fathom.Error):
            fathom.axis_id(g, "nowhere")


if __name__ == "__main__":
    unittest.main()
