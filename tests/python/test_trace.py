# test_trace.py - the timeline of a run as another program reads it: plain, packed, and cut short.
# seconds: 3
import gzip
import json
import os
import tempfile
import unittest

import numpy as np

import fathom


def run_traced(trace, turns=1):
    """A streamed program with a read, a product and a sum; its plan."""
    g = fathom.Graph(memory="64M", threads=2, trace=trace)
    g.axes(row=20000, col=16, out=8)
    x = np.random.default_rng(1).random((20000, 16))
    source = fathom.Source(x.shape, "f64", lambda lo, n: x[lo[0]:lo[0] + n[0], lo[1]:lo[1] + n[1]])
    X = g.input("X", source, "row col")
    W = g.input("W", np.ones((16, 8)), "col out")
    plan = g.plan(fathom.dot(X, W, "col").exp().sum("row"), memory="1M")
    for _ in range(turns):
        plan.run()
    return plan


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, trace, name):
        path = os.path.join(self.folder, name)
        trace.write(path)
        with open(path, "rb") as f:
            raw = f.read()
        return raw, json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)

    def test_steps_reads_and_memory(self):
        trace = fathom.Trace()
        plan = run_traced(trace)
        _, data = self.write(trace, "run.json")
        events = data["traceEvents"]
        self.assertEqual(data["otherData"]["dropped"], 0)
        steps = [e for e in events if e.get("cat") == "step"]
        self.assertEqual(len(steps), plan.info["steps"] * plan.info["chunks"])
        for e in steps:
            self.assertGreater(e["args"]["bytes"], 0)
            self.assertGreater(e["args"]["GB/s"], 0)
            self.assertGreater(e["args"]["flops"], 0)
            self.assertIn("test_trace.py:", e["args"]["at"])
            self.assertEqual(e["args"]["chunks"], plan.info["chunks"])
        reads = [e for e in events if e.get("cat") == "read"]
        self.assertEqual({e["name"] for e in reads}, {"X"})
        self.assertEqual(sum(e["args"]["bytes"] for e in reads), plan.report["read_bytes"])
        memory = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "cpu"]
        self.assertEqual({m["planned"] for m in memory}, {plan.info["peak_bytes"]})
        self.assertEqual({m["actual"] for m in memory}, {plan.info["peak_bytes"]})

    def test_packed_is_the_same(self):
        trace = fathom.Trace()
        run_traced(trace)
        raw, data = self.write(trace, "run.json")
        packed, same = self.write(trace, "run.json.gz")
        self.assertEqual(same, data)
        self.assertEqual(packed[:2], b"\x1f\x8b")
        self.assertLess(len(packed), len(raw) // 4)
        again, _ = self.write(trace, "again.json.gz")
        self.assertEqual(again, packed)

    def test_a_cap_drops_the_oldest_and_says_how_many(self):
        small, large = fathom.Trace(max_bytes="128K"), fathom.Trace()
        for trace in (small, large):
            run_traced(trace, turns=20)
        raw, data = self.write(small, "small.json")
        _, everything = self.write(large, "large.json")
        self.assertLessEqual(len(raw), 128 << 10)
        dropped = data["otherData"]["dropped"]
        self.assertGreater(dropped, 0)
        self.assertEqual(everything["otherData"]["dropped"], 0)

        def real(d):
            return [e for e in d["traceEvents"] if e["ph"] in "XC"]
        self.assertEqual(len(real(data)) + dropped, len(real(everything)))
        self.assertTrue(any(f"{dropped} older" in e["name"] for e in data["traceEvents"]))
        for page in (data, everything):  # never dropped, though it is the oldest
            notes = [e for e in page["traceEvents"] if e["name"] == "no device activity: run on cpu"]
            self.assertEqual(len(notes), 1)


if __name__ == "__main__":
    unittest.main()
