"""The files of the example `figures`, read by other people's parsers.

seconds: 3

Only Python's own library: zlib for PNG, expat for SVG, a look at the table of a PDF. Two runs of the
program give the same bytes.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
import zlib

PROGRAM = pathlib.Path(os.environ["FATHOM_LIBRARY"]).parent.parent / "examples" / "figures"


def chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
        yield kind, body
        at += size + 12


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([str(PROGRAM), folder], check=True, stdout=subprocess.DEVNULL)
                cls.made.append({p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir()})

    def test_two_runs_give_the_same_bytes(self):
        self.assertEqual(sorted(self.made[0]), ["maps.png", "page.pdf", "page.png", "page.svg"])
        for name, data in self.made[0].items():
            self.assertEqual(data, self.made[1][name], name)

    def test_png(self):
        for name, width, height in (("page.png", 1575, 810), ("maps.png", 2250, 900)):
            data = self.made[0][name]
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            parts = list(chunks(data))
            self.assertEqual(struct.unpack(">IIBBBBB", parts[0][1]), (width, height, 8, 2, 0, 0, 0))
            self.assertEqual(struct.unpack(">IIB", dict(parts)[b"pHYs"]), (5906, 5906, 1))  # 150 dpi
            raw = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
            self.assertEqual(len(raw), height * (3 * width + 1))
            self.assertEqual({kind for kind, _ in parts}, {b"IHDR", b"pHYs", b"IDAT", b"IEND"})

    def test_svg(self):
        root = ET.fromstring(self.made[0]["page.svg"])
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(root.get("viewBox"), "0 0 756.000 388.800")
        images = root.findall(".//{http://www.w3.org/2000/svg}image")
        self.assertEqual(len(images), 3)  # image, heat map, 30000 points
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        self.assertEqual(len(ids), len(set(ids)))

    def test_pdf(self):
        data = self.made[0]["page.pdf"]
        start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", data).group(1))
        self.assertEqual(data[start:start + 4], b"xref")
        count = int(re.match(rb"xref\n0 (\d+)\n", data[start:]).group(1))
        rows = data[start:].split(b"\n")[2:2 + count]
        for number, row in enumerate(rows[1:], 1):
            at = int(row[:10])
            self.assertTrue(data[at:].startswith(b"%d 0 obj" % number))
        self.assertNotIn(b"Date", data)
        self.check_streams(data, [int(row[:10]) for row in rows])

    def check_streams(self, data, offsets):
        """Every stream has its length and unpacks; the page opens and closes its states."""
        page, pictures = [], 0
        for start in offsets[1:]:
            head = re.match(rb"\d+ 0 obj\n<< (.*?)/Length (\d+) 0 R >>\nstream\n", data[start:], re.S)
            if not head:
                continue
            at = start + head.end()
            size = int(re.match(rb"\d+ 0 obj\n(\d+)\n", data[offsets[int(head.group(2))]:]).group(1))
            self.assertEqual(data[at + size:at + size + 11], b"\nendstream\n")
            content = zlib.decompress(data[at:at + size])
            width = re.search(rb"/Width (\d+) /Height (\d+)", head.group(1))
            if width:
                channels = 3 if b"DeviceRGB" in head.group(1) else 1
                self.assertEqual(len(content), int(width.group(1)) * int(width.group(2)) * channels)
                pictures += channels == 3
            else:
                page.append(content)
        words = b"\n".join(page).split()
        self.assertEqual(words.count(b"q"), words.count(b"Q"))
        self.assertEqual(words.count(b"Do"), pictures)
        self.assertEqual(pictures, 3)
        self.assertGreater(words.count(b"S"), 100)


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
