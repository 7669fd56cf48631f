"""The page of `fathom spatial page` in Chromium: clicks, keys, pixels, and 100000 cells.

seconds: 240
"""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chromium  # noqa: E402
from test_pictures import tool as pictures  # noqa: E402
from test_spatial_page import analyze, make, run  # noqa: E402

FRAME = "new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(f))))"
PIXEL = """(() => { const [x, y] = %s, t = transform(), r = window.devicePixelRatio || 1;
    return [...map.getContext('2d').getImageData(Math.round((t.x0 + x * t.s) * r),
        Math.round((t.y0 + y * t.s) * r), 1, 1).data]; })()"""


GROUND = PIXEL.replace("map.getContext", "document.getElementById('ground').getContext")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="fathom-page-"))
        cls.config = make(cls.dir)
        analyze(cls.config)
        cls.model = cls.dir / "out" / "mggp_svgp"
        run("spatial", "genes", "-c", cls.config)
        run("spatial", "page", "-c", cls.config)
        cls.browser = chromium.Chromium().__enter__()
        cls.factors = np.load(cls.model / "factors.npy")

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        shutil.rmtree(cls.dir)

    def open(self, path=None, **shape):
        page = self.browser.page(**shape)
        page.go("file://" + str(path or self.model / "page.html"))
        page.wait("document.documentElement.dataset.thumbnails === 'yes'", 60)
        # reading pixels is the test's own doing, and Chromium has advice about it
        self.addCleanup(lambda: self.assertEqual(
            [c for c in page.complaints if "willReadFrequently" not in c], []))
        return page

    def pixel(self, page, cell):
        page.eval(FRAME)
        return page.eval(PIXEL % f"[places[2 * {cell}], places[2 * {cell} + 1]]")[:3]

    def colour(self, page, level):
        text = page.eval(f"ramp()[{level}]")
        return [int(v) for v in text[4:-1].split(",")]

    def press(self, page, key, text=""):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def test_pixels_are_the_factors(self):
        page = self.open(width=1400, height=900)
        for k in range(3):
            page.eval(f"document.querySelectorAll('#factors button')[{k}].click()")
            f = self.factors[:, k].astype(np.float64)
            high = np.sort(f)[int(0.99 * (len(f) - 1))]
            for cell in (f.argmax(), f.argmin(), 17, 400):
                level = min(63, int(f[cell] / high * 64))
                got = self.pixel(page, cell)
                near = [self.colour(page, i) for i in range(max(0, level - 1), min(63, level + 1) + 1)]
                self.assertLessEqual(min(max(abs(a - b) for a, b in zip(got, c)) for c in near), 2,
                                     (k, cell, got, near))
            self.assertEqual(page.eval("document.getElementById('caption').textContent"),
                             f"Factor {k + 1}")

    def test_from_a_factor_to_its_gene_and_a_group(self):
        page = self.open(width=1400, height=900)
        name = page.eval("about.factors[0].top[0][0]")
        page.eval("document.querySelector('#details .rows button').click()")
        self.assertEqual(page.eval("document.querySelector('#details h2').textContent"), name)
        self.assertEqual(page.eval("location.hash"), f"#gene={name}")
        self.assertIn("Deviance explained", page.eval("document.getElementById('details').textContent"))
        cell = page.eval("(() => { const v = values('gene', chosen.i); return v.indexOf(Math.max(...v)); })()")
        self.assertEqual(self.pixel(page, cell), self.colour(page, 63))
        page.eval("[...document.querySelectorAll('#groups button')][2].click()")
        inside = page.eval("groupOf.indexOf(1)")
        want = page.eval("about.groups[1].colour")
        self.assertEqual("#%02x%02x%02x" % tuple(self.pixel(page, inside)), want)

    def test_search_and_keys(self):
        page = self.open(width=1400, height=900)
        self.press(page, "/", "/")
        self.assertEqual(page.eval("document.activeElement.id"), "search")
        page.call("Input.insertText", text="GENE_1")
        shown = page.eval("[...document.querySelectorAll('#genes button')].filter((b) => !b.hidden).map((b) => b.textContent)")
        self.assertTrue(shown and all("gene_1" in s for s in shown), shown)
        self.press(page, "Enter")
        self.assertEqual(page.eval("document.getElementById('caption').textContent"), shown[0])
        page.call("Input.insertText", text="nothing like it")
        self.assertIn("--genes", page.eval("document.getElementById('none').textContent"))
        self.press(page, "Escape")
        self.assertTrue(page.eval("document.getElementById('none').hidden"))
        page.eval("document.querySelector('#factors button').focus()")
        self.press(page, "ArrowRight")
        self.assertEqual(page.eval("document.getElementById('caption').textContent"), "Factor 2")
        page.eval("map.focus()")
        self.press(page, "+", "+")
        self.assertGreater(page.eval("view.zoom"), 1)
        self.press(page, "ArrowLeft")
        self.assertLess(page.eval("view.x"), 0)
        self.press(page, "0", "0")
        self.assertEqual(page.eval("[view.x, view.y, view.zoom]"), [0, 0, 1])

    def test_pointing_at_a_cell(self):
        page = self.open(width=1400, height=900)
        x, y = page.eval("(() => { const t = transform(), b = map.getBoundingClientRect(); "
                         "return [b.x + t.x0 + places[600] * t.s, b.y + t.y0 + places[601] * t.s]; })()")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        tip = page.eval("document.getElementById('tip').textContent")
        self.assertIn(page.eval("about.groups[groupOf[300]].name"), tip)
        self.assertIn(page.eval("format(values('factor', 0)[300])"), tip)

    def test_dark_light_and_a_phone(self):
        dark = self.open(width=1400, height=900, dark=True)
        before = dark.eval("getComputedStyle(document.body).backgroundColor")
        dark.eval("document.getElementById('theme').click()")
        self.assertNotEqual(dark.eval("getComputedStyle(document.body).backgroundColor"), before)
        phone = self.open(width=360, height=740)
        self.assertLessEqual(phone.eval("document.documentElement.scrollWidth"), 360)

    def test_the_tissue_image(self):
        folder = self.dir / "tissue"
        folder.mkdir()
        config = make(folder)
        at = np.load(folder / "toy" / "X.npy")
        side, low = np.ptp(at, 0).max(), at.min(0)
        pixels = np.full((300, 300, 3), 255, np.uint8)
        marked = {17: (0, 160, 0), 400: (255, 0, 200)}  # blocks of the image around two cells
        for cell, colour in marked.items():
            x, y = np.round((at[cell] - low) / side * 280).astype(int) + 10
            pixels[max(y - 8, 0):y + 8, max(x - 8, 0):x + 8] = colour
        pictures.write_png(folder / "tissue.png", pixels)
        corner = low - 10 * side / 280
        with config.open("a") as f:
            f.write(f"figures: {{image_file: {folder}/tissue.png, image_scale: {280 / side}, "
                    f"image_offset: [{corner[0]}, {corner[1]}], dot_alpha: 0.4}}\n")
        analyze(config)
        path = folder / "page.html"
        run("spatial", "page", "-c", config, "-o", path)
        page = self.open(path, width=1400, height=900)
        page.wait("document.documentElement.dataset.image === 'yes'", 30)
        page.eval(FRAME)
        for zoom in (1, 3):
            for cell, colour in marked.items():
                page.eval(f"view.zoom = {zoom}; view.x = places[2 * {cell}] - boxW / 2; view.y = places[2 * {cell} + 1] - boxH / 2; redraw()")
                page.eval(FRAME)
                got = page.eval(GROUND % f"[places[2 * {cell}], places[2 * {cell} + 1]]")
                self.assertLess(np.abs(np.array(got[:3]) - colour).max(), 12, (zoom, cell, got))
        self.assertEqual(page.eval("getComputedStyle(map).opacity"), "0.4")
        # the keyboard: the slider, the check box, and a key of its own
        page.eval("document.getElementById('tissue-cells').focus()")
        self.press(page, "ArrowRight")
        self.press(page, "ArrowRight")
        page.eval(FRAME)
        self.assertEqual(page.eval("getComputedStyle(map).opacity"), "0.42")
        page.eval("document.getElementById('tissue-shown').focus()")
        self.press(page, " ", " ")
        page.eval(FRAME)
        self.assertTrue(page.eval("document.getElementById('ground').hidden"))
        self.assertEqual(page.eval("getComputedStyle(map).opacity"), "1")
        page.eval("map.focus()")
        self.press(page, "i", "i")
        page.eval(FRAME)
        self.assertFalse(page.eval("document.getElementById('ground').hidden"))
        self.assertTrue(page.eval("document.getElementById('tissue-shown').checked"))
        page.eval("document.getElementById('search').focus()")
        self.press(page, "i", "i")
        self.assertFalse(page.eval("document.getElementById('ground').hidden"))
        plain = self.open(width=1400, height=900)
        self.assertTrue(plain.eval("document.getElementById('tissue').hidden"))
        phone = self.open(path, width=360, height=740)
        self.assertLessEqual(phone.eval("document.documentElement.scrollWidth"), 360)

    def test_a_hundred_thousand_cells(self):
        folder = self.dir / "large"
        folder.mkdir()
        config = make(folder, cells=120000, genes=20)
        config.write_text(config.read_text().replace("max_iter: 20", "max_iter: 2"))
        analyze(config)
        path = folder / "large.html"
        run("spatial", "page", "-c", config, "-o", path)
        page = self.open(path, width=1400, height=900)
        self.assertIn("100,000 of 120,000 cells", page.eval("document.getElementById('thinned').textContent"))
        ms = page.eval("(() => { const t = performance.now(); for (let i = 0; i < 10; i++) draw(); "
                       "map.getContext('2d').getImageData(0, 0, 1, 1); return (performance.now() - t) / 10; })()")
        print(f"a frame of 100000 cells: {ms:.0f} ms")
        self.assertLess(ms, 100)


if __name__ == "__main__":
    if not chromium.PROGRAM:
        print("SKIP: chromium is not installed (tools/packages-long.txt)")
        sys.exit(77)
    unittest.main()
