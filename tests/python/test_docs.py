# test_docs.py - what the documentation quotes is what the programs are.
# seconds: 12
#
# A comment before a block says where it is from:
#   <!-- from FILE -->       the block stands in the file, line by line (indentation apart)
#   <!-- output of NAME -->  examples/NAME prints it, numbers apart: bytes and lines may move
#   <!-- python -->          the block runs as it is
# Every C, text and Python block of docs/engine.md must have one. The commands of docs/bragg.md run
# in a folder of their own, and its configs are checked.
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(os.environ.get("FATHOM_LIBRARY", "build/lib/x"))))


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def blocks(text):
    """(comment or None, language, code) of every fenced block."""
    found = []
    for m in re.finditer(r"(?:^<!-- (.*?) -->\n)?^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        found.append((m.group(1), m.group(2), m.group(3)))
    return found


def plain(text):
    """Lines without indentation."""
    return [line.strip() for line in textwrap.dedent(text).strip().splitlines()]


def shape(text):
    """Lines with numbers, units and charts taken out."""
    lines = []
    for line in plain(text):
        line = re.sub(r"(?<=\s)[.#]{20,}(?=\s)", "~", line)
        line = re.sub(r"[0-9][0-9.e+]*( [KMG]iB| B\b)?", "N", line)
        lines.append(" ".join(line.split()))
    return lines


def contains(lines, part):
    n = len(part)
    return any(lines[i:i + n] == part for i in range(len(lines) - n + 1))


class Engine(unittest.TestCase):
    found = blocks(read("docs", "engine.md"))

    def test_every_block_says_where_it_is_from(self):
        self.assertGreater(len(self.found), 12)
        for comment, language, code in self.found:
            if language in ("c", "text", "python"):
                self.assertIsNotNone(comment, code.splitlines()[0])

    def test_quotes_equal_the_files(self):
        for comment, _, code in self.found:
            if comment and comment.startswith("from "):
                with self.subTest(block=code.splitlines()[0]):
                    self.assertTrue(contains(plain(read(comment[5:])), plain(code)))

    def test_output(self):
        for comment, _, code in self.found:
            if not (comment and comment.startswith("output of ")):
                continue
            with self.subTest(block=code.splitlines()[0]):
                program = os.path.join(BUILD, "examples", comment[10:])
                out = subprocess.run([program], capture_output=True, text=True, cwd=ROOT, check=True)
                # workspaces come and go with kernels
                lines = [s for s in shape(out.stdout) if "(workspace)" not in s]
                want = [s for s in shape(code) if "(workspace)" not in s]
                self.assertTrue(contains(lines, want), "\n".join(lines))

    def test_python(self):
        for comment, _, code in self.found:
            if comment == "python":
                subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


class Bragg(unittest.TestCase):
    found = blocks(read("docs", "bragg.md"))

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="docs-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        shutil.copytree(os.path.join(ROOT, "configs"), os.path.join(self.dir, "configs"))
        self.env = dict(os.environ, PATH=os.path.join(BUILD, "bin") + ":" + os.environ["PATH"])

    def run_ok(self, words, **more):
        r = subprocess.run(words, cwd=self.dir, env=self.env, capture_output=True, text=True, **more)
        self.assertEqual(r.returncode, 0, f"{words}\n{r.stdout}{r.stderr}")

    def test_commands_and_programs(self):
        kinds = []
        for comment, language, code in self.found:
            kinds.append(language)
            with self.subTest(block=code.splitlines()[0]):
                if language == "sh":
                    self.run_ok(["bash", "-e", "-c", code])
                elif language == "yaml":
                    with open(os.path.join(self.dir, "job.yaml"), "w") as f:
                        f.write(code)
                    self.run_ok(["fathom", "config", "check", "job.yaml"])
                elif comment == "python":
                    self.run_ok([sys.executable, "-c", code])
        self.assertTrue({"sh", "yaml", "python"} <= set(kinds))
        for name in ("first.bin", "noise.img", "outputs/demo/bragg/series/frames.h5"):
            self.assertTrue(os.path.exists(os.path.join(self.dir, name)), name)

    def test_quirks_are_those_of_the_program(self):
        text, table = read("docs", "bragg.md"), read("instruments", "bragg", "quirks.def")
        names = re.findall(r'^BR_QUIRK\(\w+, "([a-z0-9-]+)"', table, re.M)
        text = text[text.index("| quirk |"):text.index("## Conventions")]
        self.assertEqual(re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.M), names)


if __name__ == "__main__":
    unittest.main()
