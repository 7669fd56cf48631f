"""Skipped Python cases are counted as skips, with their reasons, by run_cases and tools/test_summary.
seconds: 2"""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
SUMMARY = HERE.parent.parent / "tools" / "test_summary"

CASES = """
import unittest

class Some(unittest.TestCase):
    def test_passes(self): pass
    def test_skips(self): self.skipTest("no wind")
    def test_fails(self): self.fail("on purpose")
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                if number == 1: self.skipTest("not this one")

@unittest.skipIf(True, "no class today")
class Skipped(unittest.TestCase):
    def test_one(self): pass
    def test_two(self): pass

class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no setup")
    def test_one(self): pass

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("on purpose")
    def test_one(self): pass
"""


class Counting(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_cases(self, text, *names):
        path = os.path.join(self.folder.name, "cases.py")
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        done = subprocess.run([sys.executable, HERE / "run_cases", path, *names], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        return done.returncode, done.stdout

    def summary(self, status, output, *options):
        path = os.path.join(self.folder.name, "result.xml")
        with open(path, "w") as f:
            f.write(f'<testsuite><testcase name="python/x" status="{status}">'
                    f"<system-out>{escape(output)}</system-out></testcase></testsuite>")
        done = subprocess.run([sys.executable, SUMMARY, *options, "0", "0", path], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    def test_outcomes_are_counted_by_case(self):
        code, out = self.run_cases(CASES)
        self.assertEqual(code, 1)
        self.assertEqual(out.splitlines()[-1], "cases: 1 passed, 2 failed, 5 skipped")
        code, out = self.summary("fail", out)
        self.assertEqual(code, 1)
        self.assertEqual(out.splitlines()[-1], "1 passed, 2 failed, 5 skipped")
        for reason in ("no wind", "not this one", "no class today", "no setup"):
            self.assertIn(f"python/x: {reason}", out)

    def test_a_file_of_skips_is_a_skip(self):
        code, out = self.run_cases(CASES, "test_skips")
        self.assertEqual(code, 77)
        code, out = self.summary("notrun", out)
        self.assertEqual((code, out.splitlines()[-1]), (0, "0 passed, 0 failed, 1 skipped"))

    def test_a_skip_that_is_not_allowed_fails(self):
        allowed = os.path.join(self.folder.name, "allowed.txt")
        with open(allowed, "w") as f:
            f.write("python/x: another reason\n")
        _, out = self.run_cases(CASES, "test_skips", "test_passes")
        code, out = self.summary("run", out, "--allow", allowed)
        self.assertEqual((code, out.splitlines()[-1]), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_file_without_a_case_fails(self):
        code, out = self.run_cases("x = 1\n")
        self.assertEqual(code, 1)
        self.assertIn("has no case", out)

    def test_output_without_counts_is_no_pass(self):
        """Cases that unittest ran by itself would hide their skips."""
        code, out = self.summary("run", "Ran 12 tests in 0.1s\n\nOK (skipped=10)\n")
        self.assertEqual(code, 1)
        self.assertIn("run_cases", out)


if __name__ == "__main__":
    unittest.main()
