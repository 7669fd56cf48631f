# test_focus_convert.py - fathom focus convert: fused plates and raw stacks as OME-NGFF and OME-TIFF, pixel by pixel.
# seconds: 6
import csv
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zlib

import numpy as np

import fathom

GOLDEN = pathlib.Path("tests/golden/focus").resolve()
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))
TOY = ["--exp", "20250101_toy"]


def program(*words, code=0, cwd=None):
    done = subprocess.run([PROGRAM, "focus", *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def save_tiff(path, pixels):
    """One grey picture, not packed, as few tags as a TIFF can have."""
    rows, columns = pixels.shape
    tags = [(256, 3, columns), (257, 3, rows), (258, 3, 8 * pixels.itemsize), (259, 3, 1), (262, 3, 1),
            (273, 4, 8 + 2 + 9 * 12 + 4), (277, 3, 1), (278, 3, rows), (279, 4, pixels.nbytes)]
    head = b"II*\0" + struct.pack("<IH", 8, len(tags))
    head += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags) + bytes(4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + pixels.astype(pixels.dtype.newbyteorder("<")).tobytes())


def halved(a):
    """Means of 2 x 2, of those there are at an odd edge, rounded half up."""
    a = np.pad(a.astype(np.int64), [(0, n % 2) for n in a.shape], mode="edge")
    return (a[::2, ::2] + a[1::2, ::2] + a[::2, 1::2] + a[1::2, 1::2] + 2) // 4


def zarr2(folder):
    """An array of Zarr 2 that is not packed, by its definition alone."""
    meta = json.loads((folder / ".zarray").read_text())
    assert meta["compressor"] is None
    shape, chunk = meta["shape"], meta["chunks"]
    out = np.zeros(shape, meta["dtype"])
    for index in np.ndindex(*[-(-n // m) for n, m in zip(shape, chunk)]):
        data = np.fromfile(folder / meta.get("dimension_separator", ".").join(map(str, index)), meta["dtype"])
        where = tuple(slice(i * m, min((i + 1) * m, n)) for i, m, n in zip(index, chunk, shape))
        out[where] = data.reshape(chunk)[tuple(slice(w.stop - w.start) for w in where)]
    return out


def left_in(folder):
    return sorted(p.name for p in pathlib.Path(folder).iterdir())


class Fused(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.kept.name)

    def tearDown(self):
        self.kept.cleanup()

    def make(self, dtype, skip=()):
        """Wells A01 and C11, times 0 and 2, two channels of y=13 x=10."""
        rng, out = np.random.default_rng(7), {}
        for well in ("A01", "C11"):
            for t in (0, 2):
                for c in (0, 1):
                    pixels = rng.integers(0, np.iinfo(dtype).max, (13, 10), dtype, endpoint=True)
                    if (well, t, c) not in skip:
                        save_tiff(self.dir / "in" / f"{well}_t{t:04}_ch{c:02}_stitch.tif", pixels)
                        out[well, t, c] = pixels
        return out

    def test_a_plate_of_every_dtype(self):
        for dtype, tile in ((np.uint8, 0), (np.uint16, 4)):
            pictures = self.make(dtype, skip=[("C11", 2, 1)])
            done = program("convert", self.dir / "in", "-o", self.dir / "p.zarr", "--ngff", "0.4", "--compressor", "none",
                           "--um-per-px", "1.5", "--overwrite", *(["--tile", tile] if tile else []))
            self.assertIn("1 images are missing", done.stdout)
            plate = json.loads((self.dir / "p.zarr/.zattrs").read_text())["plate"]
            self.assertEqual([w["path"] for w in plate["wells"]], ["A/1", "C/11"])
            for well, path in (("A01", "A/1/0"), ("C11", "C/11/0")):
                image = json.loads((self.dir / "p.zarr" / path / ".zattrs").read_text())
                self.assertEqual([a["name"] for a in image["multiscales"][0]["axes"]], ["t", "c", "y", "x"])
                self.assertEqual(image["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"][2:],
                                 [1.5, 1.5])
                self.assertEqual([c["label"] for c in image["omero"]["channels"]], ["ch00", "ch01"])
                levels = [zarr2(self.dir / "p.zarr" / path / str(l)) for l in range(3)]
                self.assertEqual([a.shape for a in levels], [(2, 2, 13, 10), (2, 2, 7, 5), (2, 2, 4, 3)])
                for t, number in enumerate((0, 2)):
                    for c in (0, 1):
                        want = pictures.get((well, number, c), np.zeros((13, 10), dtype))
                        for level in levels:
                            np.testing.assert_array_equal(level[t, c], want)
                            want = halved(want)
                self.assertEqual(levels[0].dtype, dtype)
            self.assertEqual(left_in(self.dir), ["in", "p.zarr"])

    def test_versions_and_packings_hold_the_same(self):
        self.make(np.uint8)
        words = ["convert", self.dir / "in", "--compressor"]
        for i, (ngff, packing) in enumerate((("0.5", "zstd"), ("0.4", "blosc"), ("0.5", "gzip"), ("0.5", "none"))):
            program(*words, packing, "--ngff", ngff, "-o", self.dir / f"{i}.zarr")
            program("convert", self.dir / f"{i}.zarr", "-o", self.dir / f"{i}b.zarr", "--ngff", "0.4", "--compressor", "none")
            for path in ("A/1/0/0", "C/11/0/0"):
                np.testing.assert_array_equal(zarr2(self.dir / f"{i}b.zarr" / path), zarr2(self.dir / "0b.zarr" / path))
        self.assertTrue((self.dir / "0.zarr/A/1/0/0/c/1/0/0/0").is_file(), "a shard for each time point")

    def test_channels_that_are_not_neighbours(self):
        want = {}
        for c in range(4):
            want[c] = np.full((6, 5), 10 * c + 1, np.uint8)
            save_tiff(self.dir / "in" / f"A01_t0000_ch{c:02}_stitch.tif", want[c])
        program("convert", self.dir / "in", "-o", self.dir / "a.zarr")
        for out, channels, chosen in (("b", "0,2,3", (0, 2, 3)), ("c", "ch03,ch01", (1, 3))):
            program("convert", self.dir / "a.zarr", "-o", self.dir / f"{out}.zarr", "--channels", channels, "--ngff", "0.4",
                    "--compressor", "none")
            got = zarr2(self.dir / f"{out}.zarr/A/1/0/0")
            np.testing.assert_array_equal(got[0], [want[c] for c in chosen])

    def test_selections(self):
        pictures = self.make(np.uint8)
        program("convert", self.dir / "in", "-o", self.dir / "p.zarr", "--ngff", "0.4", "--compressor", "none",
                "--wells", "C11", "--times", "2:", "--channels", "1", "--levels", 1)
        got = zarr2(self.dir / "p.zarr/C/11/0/0")
        np.testing.assert_array_equal(got, pictures["C11", 2, 1][None, None])
        self.assertFalse((self.dir / "p.zarr/A").exists() or (self.dir / "p.zarr/C/11/0/1").exists())
        done = program("convert", self.dir / "in", "-o", self.dir / "q.zarr", "--wells", "D04", code=3)
        self.assertIn("no images such as", done.stderr)

    def test_names_without_a_channel(self):
        """As stitched tiles of a Keyence are named; maps beside them are no images."""
        pixels = np.arange(30, dtype=np.uint8).reshape(5, 6)
        save_tiff(self.dir / "in" / "B07_t0003_stitch.tif", pixels)
        save_tiff(self.dir / "in" / "B07_t0003_stitch.index.tif", pixels + 1)
        program("convert", self.dir / "in", "-o", self.dir / "p.zarr", "--ngff", "0.4", "--compressor", "none")
        np.testing.assert_array_equal(zarr2(self.dir / "p.zarr/B/7/0/0"), pixels[None, None])
        self.assertNotIn("omero", json.loads((self.dir / "p.zarr/B/7/0/.zattrs").read_text()))

    def test_files_with_times(self):
        program("toy", "-o", self.dir / "d", "--wells", 2, "--times", 3, "--planes", 2)
        for layout in ("legacy", "v2"):
            where = ["--data-root", self.dir / "d", *TOY, "--layout", layout]
            program("run", *where, "--microscope", "YX1", "--image-format", "tif", "--overwrite")
            table = next((self.dir / "d").glob(f"**/{'20250101_toy_metadata' if layout == 'legacy' else 'scope_metadata'}.csv"))
            rows = list(csv.DictReader(table.read_text().splitlines()))
            for row in rows:  # a clock that does not start at zero
                for column in {"Time (s)", "experiment_time_s"} & row.keys():
                    row[column] = float(row[column]) + 500
            with table.open("w") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader(), writer.writerows(rows)
            program("convert", *where, "-o", str(self.dir / layout) + "/")
            self.assertEqual(left_in(self.dir / layout), ["A01.ome.tif", "B01.ome.tif"])
            data = (self.dir / layout / "B01.ome.tif").read_bytes()
            self.assertIn(b'PhysicalSizeX="3.2347"', data)
            self.assertEqual(re.findall(rb'DeltaT="(\d+)', data), [b"0", b"1900", b"3800"])
            self.assertIn(b'Name="BF"' if layout == "v2" else b'Name="ch00"', data)
            image = next((self.dir / "d").glob("**/B01_t0002*.tif" if layout == "legacy" else "**/B01_BF_t0002.tif"))
            self.assertIn(data[-64 * 48:], image.read_bytes(), "the pixels of the last time point are the last of the file")
            attributes = program("convert", *where, "-o", self.dir / f"{layout}.zarr", "--json")
            facts = json.loads(attributes.stdout)
            self.assertEqual((facts["wells"], facts["times"], facts["missing"]), (2, 3, 0))
            self.assertEqual(facts["planned_bytes"], facts["peak_bytes"])
            scale = json.loads((self.dir / f"{layout}.zarr/A/1/0/zarr.json").read_text())
            scale = scale["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
            self.assertEqual(scale, [1900, 1, 3.2347, 3.2347])


class Raw(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.kept.name)
        self.crc = json.loads((GOLDEN / "nd2_expected.json").read_text())

    def tearDown(self):
        self.kept.cleanup()

    def test_frames_of_an_nd2_file(self):
        """Checksums are of another reader."""
        want = self.crc["synth_T2P3Z5.nd2"]["frame_crc32"]
        for p in range(3):
            program("convert", GOLDEN / "synth_T2P3Z5.nd2", "-o", self.dir / f"{p}.zarr", "--wells", f"P{p + 1}",
                    "--ngff", "0.4", "--compressor", "none", "--tile", 16)
            got = zarr2(self.dir / f"{p}.zarr/0")
            self.assertEqual(got.shape, (2, 1, 5, 48, 39))
            for t in range(2):
                for z in range(5):
                    self.assertEqual(zlib.crc32(got[t, 0, z].tobytes()), want[(t * 3 + p) * 5 + z])
        program("convert", GOLDEN / "synth_T2P3Z5.nd2", "-o", self.dir / "late.zarr", "--wells", "P2", "--times", "1:",
                "--ngff", "0.4", "--compressor", "none")
        late = zarr2(self.dir / "late.zarr/0")
        self.assertEqual([zlib.crc32(late[0, 0, z].tobytes()) for z in range(5)], want[20:25])

    def test_channels_and_files(self):
        program("convert", GOLDEN / "synth_Z5C2.nd2", "-o", self.dir / "a.zarr", "--ngff", "0.4", "--compressor", "none")
        program("convert", GOLDEN / "synth_Z5C2.nd2", "-o", self.dir / "a.ome.tif")
        program("convert", self.dir / "a.ome.tif", "-o", self.dir / "b.zarr", "--ngff", "0.4", "--compressor", "none")
        program("convert", GOLDEN / "synth_Z5C2.nd2", "-o", self.dir / "bf.zarr", "--ngff", "0.4", "--compressor", "none",
                "--channels", "BF")
        a = zarr2(self.dir / "a.zarr/0")
        self.assertEqual(a.shape, (1, 2, 5, 48, 38))
        for z in range(5):
            for c in range(2):
                plane = fathom.focus(GOLDEN / "synth_Z5C2.nd2", method="max", scale="none", channel=str(c), z_range=f"{z}:{z + 1}")
                np.testing.assert_array_equal(a[0, c, z], plane.image)
        np.testing.assert_array_equal(zarr2(self.dir / "b.zarr/0"), a)
        np.testing.assert_array_equal(zarr2(self.dir / "bf.zarr/0"), a[:, 1:])
        b = json.loads((self.dir / "b.zarr/.zattrs").read_text())
        self.assertEqual([c["label"] for c in b["omero"]["channels"]], ["EYES - GFP", "BF"])
        self.assertEqual(b["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"], [600, 1, 5, 1.5, 1.5])

    def test_an_experiment_at_every_budget(self):
        program("toy", "-o", self.dir / "d", "--wells", 2, "--times", 2, "--planes", 3, "--size", "320x256")
        where = ["convert", "--data-root", self.dir / "d", *TOY, "--stacks", "--microscope", "YX1"]
        program(*where, "-o", self.dir / "all.zarr")
        files = [p for p in sorted((self.dir / "all.zarr").rglob("*")) if p.is_file()]
        self.assertTrue((self.dir / "all.zarr/B/1/0/0/c/1/0/0/0/0").is_file())
        for memory, threads in (("12M", 1), ("9024K", 2), ("8724K", 3)):
            program(*where, "-o", self.dir / "less.zarr", "--memory", memory, "--threads", threads, "--overwrite")
            again = [p for p in sorted((self.dir / "less.zarr").rglob("*")) if p.is_file()]
            self.assertEqual([p.relative_to(self.dir / "all.zarr") for p in files],
                             [p.relative_to(self.dir / "less.zarr") for p in again])
            for one, other in zip(files, again):
                self.assertEqual(one.read_bytes(), other.read_bytes(), one)
        done = program(*where, "-o", self.dir / "none.zarr", "--memory", "3M", code=4)
        self.assertFalse((self.dir / "none.zarr").exists())
        program(*where, "-o", self.dir / "none.zarr", "--plan")
        self.assertEqual(left_in(self.dir), ["all.zarr", "d", "less.zarr"])


class Tiles(unittest.TestCase):
    def test_raw_stacks_of_a_keyence(self):
        """Tiles are fields of their well; what is missing is black and told."""
        with tempfile.TemporaryDirectory() as d:
            program("toy", "-o", "d", "--microscope", "Keyence", "--wells", 2, "--times", 2, "--planes", 2,
                    "--size", "24x40", cwd=d)
            raw = pathlib.Path(d, "d/raw_image_data/Keyence/20250101_toy")
            os.remove(raw / "XY02/T0002/toy_XY02_00003_Z001_CH1.tif")
            words = ["convert", "--data-root", "d", *TOY, "--stacks", "--microscope", "Keyence"]
            said = program(*words, "-o", "p.zarr", "--ngff", "0.4", "--compressor", "none", "--levels", 1, cwd=d).stdout
            self.assertIn("p.zarr: 2 wells, t=2 c=1 z=2 y=24 x=40 u8", said)
            self.assertIn("3 tiles of each become its fields", said)
            self.assertIn("1 images are missing", said)
            plate = json.loads(pathlib.Path(d, "p.zarr/.zattrs").read_text())["plate"]
            self.assertEqual((plate["field_count"], [w["path"] for w in plate["wells"]]), (3, ["A/1", "B/1"]))
            for well, folder in (("A/1", "XY01"), ("B/1", "XY02")):
                for tile in range(3):
                    pixels = zarr2(pathlib.Path(d, "p.zarr", well, str(tile), "0"))
                    self.assertEqual(pixels.shape, (2, 1, 2, 24, 40))
                    for t, z in np.ndindex(2, 2):
                        file = raw / folder / f"T{t + 1:04}/toy_{folder}_{tile + 1:05}_Z{z + 1:03}_CH1.tif"
                        want = fathom.focus(file, method="max", scale="none").image if file.exists() else 0
                        self.assertTrue((pixels[t, 0, z] == want).all(), file)
            program(*words, "-o", "f/", "--wells", "B01", "--times", "1:2", cwd=d)
            self.assertEqual(left_in(d + "/f"), [f"B01_p000{i}.ome.tif" for i in range(3)])
            info = json.loads(program("info", "f/B01_p0001.ome.tif", "--json", cwd=d).stdout)
            self.assertEqual(info["sizes"], {"t": 1, "p": 1, "z": 2, "c": 1, "y": 24, "x": 40})
            self.assertAlmostEqual(info["um_per_px"], 3.77, places=6)


class Mistakes(unittest.TestCase):
    def test_all_are_told_before_anything_is_written(self):
        nd2 = GOLDEN / "synth_T2P3Z5.nd2"
        with tempfile.TemporaryDirectory() as d:
            pathlib.Path(d, "old.zarr").mkdir()
            pathlib.Path(d, "old.zarr/.zgroup").write_text('{"zarr_format": 2}')
            pathlib.Path(d, "notes").mkdir()
            pathlib.Path(d, "notes/plan.txt").write_text("x")
            before = left_in(d)
            for words, text, code in (([nd2, "-o", "a.zarr"], "3 positions have no such names", 2),
                                      ([nd2, "-o", "a.ome.tif"], "one file holds one well, and there are 3", 2),
                                      ([nd2, "-o", "a.png"], "expected OUT.zarr, OUT.ome.tif or FOLDER/", 2),
                                      ([nd2, "-o", "old.zarr", "--wells", "P1"], "old.zarr exists", 2),
                                      ([nd2, "-o", "notes.zarr/x.zarr", "--wells", "P1"], "no such folder", 3),
                                      ([nd2, "-o", "a.zarr", "--wells", "P1,P9,P8"], "nothing is called 'P8'", 2),
                                      ([nd2, "-o", "a.zarr", "--times", "5:"], "there are 2 time points", 2),
                                      ([nd2, "-o", "a.zarr", "--times", "2:1"], "expected A:B", 2),
                                      ([nd2, "-o", "a.zarr", "--ngff", "0.3"], "expected one of 0.4 0.5", 2),
                                      ([nd2, "-o", "a.zarr", "--compressor", "lz"], "none zstd blosc gzip", 2),
                                      ([nd2, "-o", "a.ome.tif", "--tile", 512], "--tile is for OUT.zarr", 2),
                                      ([nd2], "one input and one output", 2), (["-o", "a.zarr"], "one input and one output", 2),
                                      ([nd2, "--exp", "e", "-o", "a.zarr"], "one input and one output", 2),
                                      ([nd2, "-o", "a.zarr", "--map", "xy"], "--map needs --stacks", 2),
                                      ([nd2, "-o", "a.zarr", "--stacks"], "--stacks needs an experiment", 2),
                                      (["none.nd2", "-o", "a.zarr"], "no such file or folder", 3),
                                      (["notes", "-o", "a.zarr"], "no images such as", 3),
                                      ([nd2, "-o", "a.zarr", "--um-per-px", "-1"], "expected a number of um", 2)):
                done = program("convert", *words, code=code, cwd=d)
                self.assertIn(text, done.stderr, words)
                self.assertEqual(left_in(d), before, words)
            save_tiff(pathlib.Path(d, "in/A01_t0000_ch00_stitch.tif"), np.zeros((4, 5), np.uint8))
            save_tiff(pathlib.Path(d, "in/A01_t0001_ch00_stitch.tif"), np.zeros((4, 6), np.uint8))
            save_tiff(pathlib.Path(d, "in/A01_t0002_ch00_stitch.tif"), np.zeros((4, 5), np.uint16))
            pathlib.Path(d, "in/A01_t0003_ch00_stitch.jpg").write_bytes(b"no picture")
            done = program("convert", "in", "-o", "a.zarr", code=3, cwd=d)
            for text in ("found y=4 x=6 u8", "found y=4 x=5 u16", "t0003_ch00_stitch.jpg"):
                self.assertIn(text, done.stderr)
            pathlib.Path(d, "in/A01_t0003_ch00_stitch.jpg").unlink()
            save_tiff(pathlib.Path(d, "in/A01/A01_t0000_ch00_stitch.tif"), np.zeros((4, 5), np.uint8))
            self.assertIn("are the same image", program("convert", "in", "-o", "a.zarr", code=3, cwd=d).stderr)
            self.assertEqual(left_in(d), sorted(before + ["in"]))

    def test_replaced_only_when_asked(self):
        with tempfile.TemporaryDirectory() as d:
            words = ["convert", GOLDEN / "synth_T2P3Z5.nd2", "--wells", "P1"]
            for out in ("a.zarr", "a.ome.tif", "f/"):
                program(*words, "-o", out, cwd=d)
                self.assertIn(" exists", program(*words, "-o", out, cwd=d, code=2).stderr)
                program(*words, "-o", out, "--times", "1:", "--overwrite", cwd=d)
                path = "f/P1.ome.tif" if out == "f/" else out
                self.assertIn("axes      t=1 ", program("info", path, cwd=d).stdout)
            self.assertEqual(left_in(d), ["a.ome.tif", "a.zarr", "f"])

    def test_ended_by_the_user(self):
        with tempfile.TemporaryDirectory() as d:
            program("toy", "-o", "d", "--wells", 2, "--times", 4, "--planes", 6, "--size", "800x800", cwd=d)
            run = subprocess.Popen([PROGRAM, "focus", "convert", "--data-root", "d", *TOY, "--stacks", "--microscope", "YX1",
                                    "-o", "a.zarr", "--threads", "1", "--memory", "24M", "--compressor", "gzip"],
                                   cwd=d, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            end = time.time() + 60
            while run.poll() is None and time.time() < end and not any(p.endswith(".tmp") for p in os.listdir(d)):
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), 6)
            self.assertEqual(left_in(d), ["d"])

    def start(self, d, out):
        """A copy that has begun to write under names that were not there."""
        folder = os.path.join(d, out) if out.endswith("/") else d
        before = os.listdir(folder) if os.path.isdir(folder) else []
        run = subprocess.Popen([PROGRAM, "focus", "convert", "--data-root", "d", *TOY, "--stacks", "--microscope", "YX1",
                                "-o", out, "--threads", "1", "--memory", "24M"],
                               cwd=d, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.time() + 60
        while run.poll() is None and time.time() < end:
            names = os.listdir(folder) if os.path.isdir(folder) else []
            if any(p.endswith((".tmp", ".part")) for p in set(names) - set(before)):
                return run
            time.sleep(0.002)
        self.fail("it was too fast, or wrote nothing")

    def test_what_a_killed_one_left_is_removed_by_the_next(self):
        with tempfile.TemporaryDirectory() as d:
            program("toy", "-o", "d", "--wells", 2, "--times", 4, "--planes", 6, "--size", "800x800", cwd=d)
            words = ["convert", "--data-root", "d", *TOY, "--stacks", "--microscope", "YX1"]
            for out in ("a.zarr", "f/"):
                folder = os.path.join(d, out) if out.endswith("/") else d
                run = self.start(d, out)
                run.send_signal(signal.SIGKILL)
                run.wait(60)
                left = [p for p in os.listdir(folder) if p.endswith((".tmp", ".part"))]
                self.assertTrue(left)
                stopped = self.start(d, out)  # another one, which lives, and is slow
                stopped.send_signal(signal.SIGSTOP)
                try:
                    self.assertFalse(set(left) & set(os.listdir(folder)))
                    its = [p for p in os.listdir(folder) if p.endswith((".tmp", ".part"))]
                    self.assertTrue(its)
                    program(*words, "-o", out, cwd=d)
                    self.assertLessEqual(set(its), set(os.listdir(folder)))
                finally:
                    stopped.send_signal(signal.SIGKILL)
                    stopped.send_signal(signal.SIGCONT)
                    stopped.wait(60)
                program(*words, "-o", out, "--overwrite", cwd=d)
                self.assertEqual([p for p in os.listdir(folder) if p.startswith(".")], [])
            self.assertEqual(left_in(d), ["a.zarr", "d", "f"])
            self.assertEqual(left_in(d + "/f"), ["A01.ome.tif", "B01.ome.tif"])

    def test_a_plan_writes_nothing(self):
        with tempfile.TemporaryDirectory() as d:
            program("toy", "-o", "d", "--wells", 2, "--times", 1, "--planes", 3, "--size", "40x40", cwd=d)
            os.mkdir(d + "/out")
            os.mkdir(d + "/foreign.zarr")
            words = ["convert", "--data-root", "d", *TOY, "--stacks", "--microscope", "YX1", "--plan"]
            before = os.stat(d + "/out").st_mtime_ns  # of any name that comes or goes
            for out in ("out/a.zarr", "out/a.zarr --wells A01", "out/new/", "out/b.ome.tif --wells A01"):
                self.assertIn("plan on cpu", program(*words, "-o", *out.split(), cwd=d).stdout)
                self.assertEqual(os.stat(d + "/out").st_mtime_ns, before, out)
            said = program(*words, "-o", "foreign.zarr", "--overwrite", cwd=d, code=3).stderr
            self.assertIn("no Zarr folder", said)


if __name__ == "__main__":
    unittest.main()
