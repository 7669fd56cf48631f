# test_focus_keyence.py - a plate of tiles: compat against a statement in NumPy, kills, and variables.
# seconds: 6
import csv
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))
EXP = "20250101_toy"
WHITE = 65535


def program(*words, code=0, **variables):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def toy(root, *words):
    program("focus", "toy", "-o", root, "--microscope", "Keyence", *words)


def run(root, *words, **more):
    return program("focus", "run", "--data-root", root, "--exp", EXP, "--microscope", "Keyence", *words, **more)


def places(root):
    with open(f"{root}/built_image_data/focus_runs/{EXP}/stitch.csv") as file:
        return list(csv.DictReader(file))


class Compat(unittest.TestCase):
    ROWS, COLUMNS, PLANES = 72, 96, 4

    def planes(self, folder):
        """[tile z y x] as the files have it, zeros where there is none."""
        out, deepest = np.zeros((3, self.PLANES, self.ROWS, self.COLUMNS), np.float32), 0
        for path in folder.iterdir():
            tile, plane = int(path.name.split("_")[2]), int(path.name.split("_")[3][1:])
            data = path.read_bytes()
            end = data.index(b"<Data>")
            pixels = np.frombuffer(data[end - self.ROWS * self.COLUMNS:end], np.uint8)
            out[tile - 1, plane - 1] = pixels.reshape(self.ROWS, self.COLUMNS)
            deepest = max(deepest, plane)
        return out[:, :deepest]

    @staticmethod
    def correlate(v, kernel):
        p = np.pad(v, ((0, 0), (1, 1), (1, 1)))
        return sum(np.float32(kernel[i][j]) * p[:, i:i + v.shape[1], j:j + v.shape[2]] for i in range(3) for j in range(3))

    def fuse(self, n):
        """The fused tile, and where no other plane is nearly as sharp."""
        g = np.outer([1, 2, 1], [1, 2, 1]) / 16
        e = np.abs(self.correlate(self.correlate(n, g), [[2, 0, 2], [0, -8, 0], [2, 0, 2]]))
        best = np.sort(e, 0)
        sure = best[-1] - best[-2] > 1e-5 * best[-1]
        return np.take_along_axis(n, e.argmax(0)[None], 0)[0], sure

    def test_tiles_share_a_range_of_floats_of_16_bits(self):
        with tempfile.TemporaryDirectory() as root:
            toy(root, "--wells", 2, "--times", 1, "--planes", self.PLANES, "--size", f"{self.ROWS}x{self.COLUMNS}")
            raw = pathlib.Path(root, "raw_image_data/Keyence", EXP)
            (raw / "XY01/T0001/toy_XY01_00001_Z002_CH1.tif").unlink()  # a plane of zeros, which takes part
            (raw / "XY01/T0001/toy_XY01_00003_Z004_CH1.tif").unlink()
            for path in raw.glob("XY02/T0001/*_Z004_*"):  # this well has a plane less, and no zeros
                path.unlink()
            built = pathlib.Path(root, "built_image_data")
            run(root, "--compat", "morphseq", "--image-format", "npy")
            with open(built / "focus_runs" / EXP / "metrics.csv") as file:
                totals = {row["name"][3:6]: int(row["n_total"]) for row in csv.DictReader(file)}
            self.assertEqual(totals, {"A01": self.PLANES, "B01": self.PLANES - 1})
            for well, folder in (("A01", "XY01"), ("B01", "XY02")):
                n, tiles = self.scaled(raw / folder / "T0001"), []
                for m in range(3):
                    got = np.load(built / f"Keyence/FF_images/{EXP}/ff_{well}_t0001/im_p{m:04}.npy")
                    ff, sure = self.fuse(n[m])
                    self.assertGreater(sure.mean(), 0.99)
                    np.testing.assert_array_equal(got[sure], np.floor(ff * np.float32(WHITE)).astype(np.uint16)[sure])
                    tiles.append(got.astype(float))
                image = np.load(built / f"stitched_FF_images/{EXP}/{well}_t0001_stitch.npy")
                rows = [row for row in places(root) if row["well"] == well]
                np.testing.assert_array_equal(image, self.mosaic(tiles, rows))
            (built / f"Keyence/FF_images/{EXP}/ff_A01_t0001/im_p0001.npy").unlink()
            before = np.load(built / f"Keyence/FF_images/{EXP}/ff_A01_t0001/im_p0002.npy")
            run(root, "--compat", "morphseq", "--image-format", "npy")  # a tile alone has another range
            self.assertTrue((built / f"Keyence/FF_images/{EXP}/ff_A01_t0001/im_p0001.npy").exists())
            again = np.load(built / f"Keyence/FF_images/{EXP}/ff_A01_t0001/im_p0001.npy")
            ff, sure = self.fuse(self.scaled(raw / "XY01/T0001")[1])
            np.testing.assert_array_equal(again[sure], np.floor(ff * np.float32(WHITE)).astype(np.uint16)[sure])
            np.testing.assert_array_equal(
                np.load(built / f"Keyence/FF_images/{EXP}/ff_A01_t0001/im_p0002.npy"), before)

    def scaled(self, folder):
        """Tiles of a well as floats of 16 bits: one range for all of them."""
        v = self.planes(folder)
        lo, hi = np.percentile(v, [0.1, 99.9])
        return np.clip((v - np.float32(lo)) / np.float32(hi - lo), 0, 1).astype(np.float16).astype(np.float32)

    def mosaic(self, tiles, rows):
        """Gamma, drawing, canvas and inversion."""
        at = [(int(float(row["y"])), int(float(row["x"]))) for row in rows]

        def overlap(i, j):
            y0, x0 = np.maximum(at[i], at[j])
            y1, x1 = np.minimum(at[i], at[j]) + np.array([self.ROWS, self.COLUMNS])
            return tiles[i][y0 - at[i][0]:y1 - at[i][0], x0 - at[i][1]:x1 - at[i][1]]

        for i in (0, 2):
            wanted, mine = overlap(1, i).mean(), overlap(i, 1)
            step = 0.02 if mine.mean() > wanted else -0.02
            gammas = [1 + step * k for k in range(400) if 0 < 1 + step * k < 5]
            ratios = [(WHITE * (mine / WHITE) ** gamma).mean() / wanted for gamma in gammas]
            near = [k for k, ratio in enumerate(ratios) if 0.98 < ratio < 1.02]
            gamma = gammas[near[0] if near else int(np.argmin(np.abs(np.array(ratios) - 1)))]
            tiles[i] = WHITE * (tiles[i] / WHITE) ** gamma if gamma != 1 else tiles[i]
        out = np.zeros((max(y for y, _ in at) + self.ROWS, max(x for _, x in at) + self.COLUMNS))
        for (y, x), tile in zip(at, tiles):
            out[y:y + self.ROWS, x:x + self.COLUMNS] = np.floor(tile)
        out = out.T  # in a row since 2024
        height, width = int(1140 * self.COLUMNS / 640), int(480 * self.COLUMNS / 640)
        y, x = (out.shape[0] - height) // 2, (out.shape[1] - width) // 2
        return (WHITE - out[y:y + height, x:x + width]).astype(np.uint16)

    def test_jpegs_of_quality_75(self):
        with tempfile.TemporaryDirectory() as root:
            toy(root, "--wells", 1, "--times", 1, "--planes", 2, "--size", "48x64")
            run(root, "--compat", "morphseq")
            data = pathlib.Path(root, "built_image_data/stitched_FF_images", EXP, "A01_t0001_stitch.jpg").read_bytes()
            table = data.index(b"\xff\xdb")
            self.assertEqual(list(data[table + 5:table + 9]), [8, 6, 6, 7])  # Annex K at quality 75
            run(root, "--compat", "morphseq", "--filter-size", 5, code=2)  # made with another kernel


class Resume(unittest.TestCase):
    def test_a_killed_run_resumes_to_the_same_bytes(self):
        def files(root):
            return {p.relative_to(root): p.read_bytes() for p in pathlib.Path(root).rglob("*")
                    if p.is_file() and p.name != "run.json" and "raw_image_data" not in p.parts}

        with tempfile.TemporaryDirectory() as d:
            for name in ("a", "b"):
                toy(f"{d}/{name}", "--wells", 4, "--times", 3, "--planes", 3, "--size", "48x64")
            run(f"{d}/a", "--stitch-z", "--threads", 2)
            whole = files(f"{d}/a")
            words = [PROGRAM, "focus", "run", "--data-root", f"{d}/b", "--exp", EXP, "--microscope", "Keyence",
                     "--stitch-z", "--threads", "2"]
            built = pathlib.Path(d, "b/built_image_data")
            # while tiles are made, when places are known, while images are made
            for pattern, count in (("Keyence/FF_images/*/*/*.jpg", 2), ("Keyence/FF_images/*/*/*.jpg", 20),
                                   ("stitched_FF_images/*/*.jpg", 2), ("Keyence_stitched_z/*/*.tif", 6)):
                child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while child.poll() is None and len(list(built.glob(pattern))) < count:
                    time.sleep(0.001)
                child.send_signal(signal.SIGKILL)
                child.wait()
                for p in built.rglob("*.jpg"):
                    self.assertEqual(p.read_bytes()[-2:], b"\xff\xd9")  # whole, or not there
            subprocess.run(words, check=True, capture_output=True)
            self.assertEqual(files(f"{d}/b"), whole)  # with nothing left of what the kills broke off

    def test_variables_of_morphseq(self):
        with tempfile.TemporaryDirectory() as root:
            toy(root, "--wells", 1, "--times", 1, "--planes", 2, "--size", "48x64")
            stack = pathlib.Path(root, "built_image_data/Keyence_stitched_z", EXP, "A01_t0001_stack.tif")

            def images(**variables):
                return json.loads(run(root, "--json", **variables).stdout)["images"]

            self.assertEqual(images(MSEQ_SKIP_Z_STITCH="1")["done"], 1)
            self.assertFalse(stack.exists())
            self.assertEqual(images(MSEQ_OVERWRITE_STITCH="no")["skipped"], 1)
            self.assertEqual(images(MSEQ_OVERWRITE_STITCH="on")["done"], 1)
            self.assertEqual(images(MSEQ_SKIP_Z_STITCH="0")["done"], 1)
            self.assertTrue(stack.exists())


if __name__ == "__main__":
    unittest.main()
