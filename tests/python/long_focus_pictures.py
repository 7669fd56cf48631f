"""Pictures of focus, opened by the packages that others open them with: Pillow and tifffile, where they
are installed. JPEG files are those that Pillow writes of the same pixels, but for the size of a pixel.
seconds: 20"""
import importlib.util
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "focus"


def need(test, package):
    if importlib.util.find_spec(package) is None:
        test.skipTest(f"{package} is not installed")


def fuse(folder, name, *flags):
    """The fused scene as a file of this name."""
    path = pathlib.Path(folder) / name
    subprocess.run([PROGRAM, "focus", "stack", GOLDEN / "stack_u16.tif", "-o", path, "--um-per-px", "3.2347", *flags],
                   check=True, stdout=subprocess.DEVNULL)
    return path


def segments(data):
    """The markers of a JPEG file up to its coded data, which are the last."""
    at, found = 2, []
    while data[at + 1] != 0xDA:
        n = int.from_bytes(data[at + 2:at + 4], "big")
        found.append((data[at + 1], data[at + 4:at + 2 + n]))
        at += 2 + n
    return found + [(0xDA, data[at:])]


class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_one_picture_in_every_format(self):
        need(self, "PIL")
        need(self, "numpy")
        import numpy as np
        from PIL import Image
        png = np.array(Image.open(fuse(self.folder, "a.png")))
        wide = np.load(fuse(self.folder, "a.npy"))
        self.assertEqual(png.dtype, np.uint8)
        self.assertTrue((png == wide >> 8).all())
        self.assertTrue((np.array(Image.open(fuse(self.folder, "a.tif"))) == png).all())
        for name, kind in (("b.png", "png16"), ("b.tif", "tif16")):
            with self.subTest(kind=kind):
                found = np.array(Image.open(fuse(self.folder, name, "--image-format", kind)))
                self.assertTrue((found == wide).all())
        with Image.open(pathlib.Path(self.folder) / "a.tif") as image:
            self.assertAlmostEqual(float(image.tag_v2[282]), 1e4 / 3.2347, places=3)

    def test_jpeg_is_that_of_pillow(self):
        need(self, "PIL")
        from PIL import Image
        pixels = Image.open(fuse(self.folder, "a.png"))
        for quality in (75, 90):
            with self.subTest(quality=quality):
                ours = fuse(self.folder, "a.jpg", "--image-format", f"jpg:{quality}").read_bytes()
                theirs = pathlib.Path(self.folder) / "pillow.jpg"
                pixels.save(theirs, quality=quality)
                a, b = segments(ours), segments(theirs.read_bytes())
                self.assertEqual(a[0][1][:5], b"JFIF\0")
                self.assertEqual(a[0][1][7:12], bytes([2, 0x0c, 0x13, 0x0c, 0x13]))  # 3091 pixels in a cm
                self.assertEqual(a[1:], b[1:])

    def test_tifffile_reads_what_is_written(self):
        need(self, "tifffile")
        import numpy as np
        import tifffile
        wide = np.load(fuse(self.folder, "a.npy"))
        found = tifffile.imread(fuse(self.folder, "a.tif", "--image-format", "tif16"))
        self.assertTrue((found == wide).all())

    def test_tifffile_reads_what_is_converted(self):
        need(self, "tifffile")
        import tifffile
        nd2 = GOLDEN / "synth_Z5C2.nd2"
        path = pathlib.Path(self.folder) / "a.ome.tif"
        subprocess.run([PROGRAM, "focus", "convert", nd2, "-o", path], check=True, stdout=subprocess.DEVNULL)
        with tifffile.TiffFile(path) as file:
            self.assertTrue(file.is_ome)
            self.assertEqual((file.series[0].axes, file.series[0].shape), ("ZCYX", (5, 2, 48, 38)))
            self.assertIn('PhysicalSizeX="1.5"', file.ome_metadata)
            self.assertIn('PhysicalSizeZ="5"', file.ome_metadata)


if __name__ == "__main__":
    unittest.main()
