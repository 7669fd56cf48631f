"""fathom.pyi by mypy --strict: itself, and the programs of the documentation that import fathom. mypy is fetched from the
package index into a folder of the build; without an index there is nothing to try. FATHOM_LIBRARY names the shared library.
seconds: 120"""
import os
import pathlib
import subprocess
import tempfile
import unittest

import packages
from test_docs import PAGES, ROOT, blocks, read

BUILD = pathlib.Path(os.environ.get("FATHOM_LIBRARY") or "build/lib/libfathom.so").resolve().parents[1]
VENV = BUILD / "mypy"
PACKAGES = ["mypy==2.4.1", "numpy"]
# A reader's program need not have types of its own; what it imports beside may have none.
FLAGS = ["--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--ignore-missing-imports",
         "--disable-error-code=import-untyped"]
WRONG = """
import fathom
g = fathom.Graph(memory="1G")
x = g.const(1.0)
x.sum(axis=0)
x + [1]
x.exp(2)
g.plan(x, into=5.0)
fathom.Context(memry="1G")
"""


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why = packages.fetch(VENV, PACKAGES)
        if why:
            raise unittest.SkipTest(why)

    def check(self, *args):
        env = dict(os.environ, MYPYPATH=os.path.join(ROOT, "bindings/python"))
        done = subprocess.run([str(VENV / "bin/mypy"), "--cache-dir", str(VENV / "cache"), *args], env=env, cwd=self.folder,
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_the_stub(self):
        self.assertIn("Success", self.check("--strict", os.path.join(ROOT, "bindings/python/fathom.pyi")))

    def test_programs_of_the_documentation(self):
        n = 0
        for page in PAGES:
            for _, language, code in blocks(read(page)):
                if language == "python" and "import fathom" in code:
                    n += 1
                    with open(os.path.join(self.folder, f"block{n}.py"), "w") as f:
                        f.write(code)
                    with self.subTest(page=page, block=code.splitlines()[0]):
                        self.assertIn("Success", self.check(*FLAGS, f"block{n}.py"))
        self.assertGreater(n, 5)

    def test_mistakes_are_found(self):
        with open(os.path.join(self.folder, "wrong.py"), "w") as f:
            f.write(WRONG)
        self.assertIn("Found 5 errors", self.check("--strict", "wrong.py"))


if __name__ == "__main__":
    unittest.main()
