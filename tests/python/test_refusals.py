# test_refusals.py - what the binding cannot take is refused at the line that gave it, before anything is built.
# seconds: 2
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


if __name__ == "__main__":
    unittest.main()
