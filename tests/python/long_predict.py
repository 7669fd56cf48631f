"""Rates that --calibrate measures, and predictions by them against runs. Wants a quiet machine.
seconds: 900"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs as t

BENCH = os.path.join(os.path.dirname(t.PROGRAM), "fathom-bench")
KEPT = {"core_cache", "stretch", "step", "iteration"}  # nothing measures these


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cache = os.path.join(cls.folder.name, "fathom")
        env = dict(os.environ, XDG_CACHE_HOME=cls.folder.name)
        done = subprocess.run([t.PROGRAM, "doctor", "--json", "--device", "cpu"], env=env,
                              capture_output=True, text=True, check=True)
        cls.built_in = json.loads(done.stdout)["rates"]
        subprocess.run([t.PROGRAM, "doctor", "--calibrate", "--device", "cpu"], env=env,
                       stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(cls.cache, "rates.json")) as f:
            cls.rates = json.load(f)["rates"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_rate_of_processors_is_measured(self):
        same = {name for name, rate in self.rates.items()
                if not name.startswith("gpu_") and rate == self.built_in[name]}
        self.assertLessEqual(same, KEPT)
        self.assertTrue(all(rate > 0 for rate in self.rates.values()))

    def test_predictions_are_near_what_runs_take(self):
        out = subprocess.run([BENCH, "--predict", "--filter", "predict_", "--rates", self.cache],
                             capture_output=True, text=True, check=True).stdout
        print(out)
        found = re.search(r"cases, measured rates: (\d+) of (\d+) within 30 %", out)
        self.assertIsNotNone(found, out)
        near, cases = map(int, found.groups())
        self.assertGreaterEqual(near, 0.75 * cases, out)


if __name__ == "__main__":
    unittest.main()
