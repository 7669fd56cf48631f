# test_pictures.py - every picture of docs/ is shown by a page, listed in docs/pictures.md, and made by its commands.
# seconds: 10
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOOL = ROOT / "tools/make_pictures"


def load_tool():
    spec = spec_from_loader("make_pictures", SourceFileLoader("make_pictures", str(TOOL)))
    module = module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


tool = load_tool()
SECTIONS = tool.sections()


def sections_of(test):
    """Sections that the page says this test runs."""
    return [name for name, (why, _, _) in SECTIONS.items() if f"{test} runs it" in why]


def make(names, out):
    done = subprocess.run([sys.executable, str(TOOL), "--out", out, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compare(case, name, out):
    """The pictures of a section, made again: the size is the same, and so are nearly all pixels."""
    for picture, _, _ in SECTIONS[name][2]:
        with case.subTest(picture=picture):
            made, kept = pathlib.Path(out, picture), DOCS / picture
            if made.read_bytes() == kept.read_bytes():
                continue  # the usual case; other processors may round in another way
            a, b = tool.read_png(made).astype(int), tool.read_png(kept).astype(int)
            case.assertEqual(a.shape, b.shape)
            far = (abs(a - b).max(axis=2) > 16).mean()
            case.assertLess(far, 0.01, f"{far:.1%} of the pixels differ; 'make pictures' makes them again")


class Pictures(unittest.TestCase):
    kept = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.png"))
    listed = [picture for _, _, rows in SECTIONS.values() for picture, _, _ in rows]

    def test_each_is_listed_once(self):
        self.assertEqual(sorted(self.listed), self.kept)

    def test_each_row_is_read(self):
        rows = re.findall(r"^\| `\S+\.png` \|", tool.PAGE.read_text(), re.M)
        self.assertEqual(len(rows), len(self.listed))

    def test_each_section_is_made_by_a_test(self):
        quick, slow = sections_of("test_pictures.py"), sections_of("long_pictures.py")
        self.assertEqual(sorted(quick + slow), sorted(SECTIONS))
        self.assertGreaterEqual(len(quick), 3)

    def test_each_is_shown(self):
        shown = set()
        for page in [ROOT / "README.md", *DOCS.glob("*.md")]:
            for link in re.findall(r"!?\[[^]]*\]\(([^)\s]+\.png)\)|<img [^>]*?src=\"([^\"]+)\"", page.read_text()):
                path = pathlib.Path(os.path.normpath(page.parent / (link[0] or link[1])))
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(path.exists())
                if path.is_relative_to(DOCS):
                    shown.add(str(path.relative_to(DOCS)))
        self.assertEqual(set(self.kept) - shown, set())

    def test_sizes(self):
        for picture in self.kept:
            data = (DOCS / picture).read_bytes()
            with self.subTest(picture=picture):
                self.assertLessEqual(struct.unpack(">I", data[16:20])[0], 1200 if picture == "report.png" else 1000)
                self.assertLessEqual(len(data), 300_000)


class Made(unittest.TestCase):
    def test_quick_sections(self):
        with tempfile.TemporaryDirectory() as out:
            make(sections_of("test_pictures.py"), out)
            for name in sections_of("test_pictures.py"):
                compare(self, name, out)

    def test_png_of_the_tool(self):
        """What the tool writes, it reads; a picture of one colour stays that colour when it is reduced."""
        with tempfile.TemporaryDirectory() as out:
            pixels = tool.numpy.full((30, 41, 3), (200, 10, 77), tool.numpy.uint8)
            tool.write_png(f"{out}/a.png", tool.shrink(pixels, 17))
            small = tool.read_png(f"{out}/a.png")
            self.assertEqual(small.shape, (12, 17, 3))
            self.assertTrue((small == (200, 10, 77)).all())
            noise = tool.numpy.random.default_rng(5).integers(0, 256, (9, 8, 1)).astype(tool.numpy.uint8)
            tool.write_png(f"{out}/b.png", noise)
            self.assertTrue((tool.read_png(f"{out}/b.png") == noise).all())


if __name__ == "__main__":
    unittest.main()
