# test_docs.py - what the documentation quotes is what the programs are.
# seconds: 5
#
# A comment before a block says where it is from:
#   <!-- from FILE -->       the block stands in the file, line by line (indentation apart)
#   <!-- output of NAME -->  examples/NAME prints it, numbers apart: bytes and lines may move
# Commands, configs and Python programs run in test_docs_pages.py, which also sees to it that every
# block is tried.
import glob
import os
import re
import subprocess
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(os.environ.get("FATHOM_LIBRARY", "build/lib/x"))))
PAGES = ["README.md"] + sorted(os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, "docs", "*.md")))


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


class Quotes(unittest.TestCase):
    found = [(page, *block) for page in PAGES for block in blocks(read(page))]

    def test_quotes_equal_the_files(self):
        n = 0
        for page, comment, _, code in self.found:
            if comment and comment.startswith("from "):
                n += 1
                with self.subTest(page=page, block=code.splitlines()[0]):
                    self.assertTrue(contains(plain(read(comment[5:])), plain(code)))
        self.assertGreater(n, 15)

    def test_output(self):
        n = 0
        for page, comment, _, code in self.found:
            if not (comment and comment.startswith("output of ")):
                continue
            n += 1
            with self.subTest(page=page, block=code.splitlines()[0]):
                program = os.path.join(BUILD, "examples", comment[10:])
                out = subprocess.run([program], capture_output=True, text=True, cwd=ROOT, check=True)
                # workspaces come and go with kernels
                lines = [s for s in shape(out.stdout) if "(workspace)" not in s]
                want = [s for s in shape(code) if "(workspace)" not in s]
                self.assertTrue(contains(lines, want), "\n".join(lines))
        self.assertGreater(n, 2)


class Bragg(unittest.TestCase):
    def test_quirks_are_those_of_the_program(self):
        text, table = read("docs", "bragg.md"), read("instruments", "bragg", "geometry", "quirks.def")
        names = re.findall(r'^BR_QUIRK\(\w+, "([a-z0-9-]+)"', table, re.M)
        text = text[text.index("| quirk |"):text.index("## Conventions")]
        self.assertEqual(re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.M), names)


if __name__ == "__main__":
    unittest.main()
