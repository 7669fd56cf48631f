# test_focus_verbs.py - fathom focus bench: what is measured, and what is refused.
# seconds: 2
import json
import os
import subprocess
import unittest

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))


def program(*words, code=0, cwd=None):
    done = subprocess.run([PROGRAM, "focus", *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


class Bench(unittest.TestCase):
    SMALL = ["bench", "--z", 3, "--height", 40, "--width", 30, "--batch", 2]

    def test_a_row_for_each_device(self):
        done = program(*self.SMALL, "--iters", 2, "--devices", "cpu,cpu", "--seed", 5)
        head, *rows = done.stdout.splitlines()
        self.assertEqual(head, "device,batch,iterations,total_s,sec_per_iter")
        self.assertEqual(len(rows), 2)
        for row in rows:
            device, batch, iterations, total, each = row.split(",")
            self.assertEqual((device, batch, iterations), ("cpu", "2", "2"))
            self.assertAlmostEqual(float(each) * 2, float(total), delta=2e-6)
            self.assertGreater(float(total), 0)

    def test_json_of_every_method(self):
        for method in ("log", "depth", "lap-pyr", "cwt", "best-plane"):
            facts = json.loads(program(*self.SMALL, "--iters", 1, "--warmup", 0, "--devices", "cpu",
                                       "--method", method, "--json").stdout)
            self.assertEqual(facts["method"], method)
            row, = facts["devices"]
            self.assertEqual((row["device"], row["batch"], row["iterations"]), ("cpu", 2, 1))
            self.assertGreaterEqual(row["total_s"], row["kernel_s"])
            self.assertLessEqual(row["ledger_bytes"], row["planned_bytes"])

    def test_refusals(self):
        for words, text, code in ((["--devices", "tpu"], "'tpu' is not a device", 5),
                                  (["--devices", ","], "expected names such as cpu,cuda:0", 2),
                                  (["--iters", 0], "--iters: expected 1 to", 2),
                                  (["--method", "lap-pry"], "did you mean 'lap-pyr'", 2),
                                  (["--filter-size", 4], "expected an odd number", 2),
                                  (["--memory", "100K", "--filter-size", 3], "memory", 4)):
            done = program(*self.SMALL, *words, code=code)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
