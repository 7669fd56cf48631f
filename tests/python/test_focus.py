# test_focus.py - fathom.focus against a statement of the method in NumPy, and the program itself.
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

import fathom

GOLDEN = pathlib.Path("tests/golden/focus").resolve()
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))


def stack():
    return np.load(GOLDEN / "stack_u16.npy")


def program(*words, code=0, cwd=None):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


class Binding(unittest.TestCase):
    def test_log_is_the_largest_laplacian_of_gaussian(self):
        planes = stack()
        got = fathom.focus(planes, method="log", border="replicate", scale="none", threads=1)
        p = np.pad(planes.astype(np.int64), ((0, 0), (1, 1), (1, 1)), mode="edge")
        blur = sum(w * u * p[:, dy:dy + planes.shape[1], dx:dx + planes.shape[2]]
                   for dy, w in enumerate((1, 2, 1)) for dx, u in enumerate((1, 2, 1)))
        b = np.pad(blur, ((0, 0), (1, 1), (1, 1)), mode="edge")
        log = np.abs(2 * (b[:, :-2, :-2] + b[:, :-2, 2:] + b[:, 2:, :-2] + b[:, 2:, 2:]) - 8 * b[:, 1:-1, 1:-1])
        index = log.argmax(0)
        np.testing.assert_array_equal(got.index, index)
        np.testing.assert_array_equal(got.image, np.take_along_axis(planes, index[None], 0)[0])
        self.assertEqual((got.image.dtype, got.depth.dtype), (np.uint16, np.float32))

    def test_scaled_by_exact_percentiles(self):
        planes = stack()
        got = fathom.focus(planes, method="max")
        lo, hi = np.percentile(planes, [0.01, 99.99])
        self.assertAlmostEqual(got.metrics["lo"], lo, 9)
        self.assertAlmostEqual(got.metrics["hi"], hi, 9)
        n = np.trunc(np.clip((planes.max(0) - lo) / (hi - lo), 0, 1) * 65535).astype(np.uint16)
        np.testing.assert_array_equal(got.image, n)
        self.assertIsNone(got.index)

    def test_files_batches_and_options(self):
        one = fathom.focus(GOLDEN / "stack_u16.npy")
        same = fathom.focus(stack(), threads=2, memory="64M")
        np.testing.assert_array_equal(one.image, same.image)
        both = fathom.focus(np.stack([stack(), np.load(GOLDEN / "stackB_u16.npy")]))
        self.assertEqual(both.image.shape, (2,) + one.image.shape)
        np.testing.assert_array_equal(both.image[0], one.image)
        self.assertEqual(len(both.metrics["lo"]), 2)
        part = fathom.focus(stack(), z_range="3:5", z_step=10, index_map=True)
        self.assertEqual(set(np.unique(part.index)), {3, 4})
        self.assertTrue((part.depth >= 30).all() and (part.depth <= 40).all())
        self.assertTrue((one.confidence >= 1).all())
        big = fathom.focus(stack().astype(">u2"))  # as tifffile gives those of big-endian files
        np.testing.assert_array_equal(big.image, one.image)
        shared = fathom.focus(np.stack([stack(), stack()[::-1]]), scale="experiment", method="max")
        np.testing.assert_array_equal(shared.image[0], shared.image[1])
        self.assertAlmostEqual(shared.metrics["hi"][0], np.percentile(np.stack([stack()] * 2), 99.99))

    def test_mistakes(self):
        with self.assertRaisesRegex(fathom.Error, "(?s)no option 'methot'.*did you mean 'method'"):
            fathom.focus(stack(), methot="log")
        with self.assertRaisesRegex(fathom.Error, "did you mean 'lap-pyr'"):
            fathom.focus(stack(), method="lap-pry")
        with self.assertRaisesRegex(fathom.Error, "no such file"):
            fathom.focus("none.nd2")
        with self.assertRaisesRegex(fathom.Error, "u8, u16 or f32, found f64"):
            fathom.focus(stack().astype(float))
        bad = stack().astype(np.float32)
        bad[2, 4, 5] = np.nan
        with self.assertRaisesRegex(fathom.Error, "plane 2 has NaN at y=4 x=5"):
            fathom.focus(bad)


class Program(unittest.TestCase):
    def test_info_as_the_public_reader_sees_it(self):
        expected = json.loads((GOLDEN / "nd2_expected.json").read_text())["synth_T2P3Z5.nd2"]
        got = json.loads(program("focus", "info", GOLDEN / "synth_T2P3Z5.nd2", "--json", "--crc").stdout)
        self.assertEqual(got["frame_crc32"], expected["frame_crc32"])
        self.assertEqual(got["frame_time_ms"][7], expected["time_frame7_ms"])
        self.assertEqual({k.lower(): v for k, v in expected["sizes"].items()},
                         {k: v for k, v in got["sizes"].items() if k != "c"})
        self.assertEqual((got["um_per_px"], got["z_step_um"]), (1.5, 5))
        missing = json.loads(program("focus", "info", GOLDEN / "synth_T2P3Z5_missing.nd2", "--json",
                                     "--crc").stdout)
        self.assertEqual(missing["frame_crc32"].count(None), missing["frames"]["missing"])
        self.assertGreater(missing["frames"]["missing"], 0)

    def test_a_killed_run_resumes_to_the_same_bytes(self):
        def files(root):
            return {p.relative_to(root): p.read_bytes() for p in pathlib.Path(root).rglob("*")
                    if p.is_file() and p.name != "run.json" and "raw_image_data" not in p.parts}

        with tempfile.TemporaryDirectory() as d:
            for name in ("a", "b"):
                program("focus", "toy", "-o", f"{d}/{name}", "--wells", 8, "--times", 6, "--size", "72x64")
            words = ["--exp", "20250101_toy", "--microscope", "YX1", "--index-map", "--threads", 2]
            program("focus", "run", "--data-root", f"{d}/a", *words)
            whole = files(f"{d}/a")
            for pause in (0.05, 0.1, 0.2):
                child = subprocess.Popen([PROGRAM, "focus", "run", "--data-root", f"{d}/b", *map(str, words)],
                                         stdout=subprocess.DEVNULL)
                time.sleep(pause)
                child.send_signal(signal.SIGKILL)
                child.wait()
                for p in pathlib.Path(d, "b").rglob("*_stitch.jpg"):
                    self.assertEqual(p.read_bytes()[-2:], b"\xff\xd9")  # whole, or not there
            program("focus", "run", "--data-root", f"{d}/b", *words)
            again = files(f"{d}/b")
            left = [p for p in again if ".tmp" in p.name or p.name.startswith(".") and p.name != ".ff_complete"]
            self.assertEqual({k: v for k, v in again.items() if k not in left}, whole)
            with open(f"{d}/b/built_image_data/focus_runs/20250101_toy/metrics.csv") as f:
                self.assertEqual(len(list(csv.DictReader(f))), 48)

    def test_an_interrupted_run_ends_with_6_and_resumes(self):
        with tempfile.TemporaryDirectory() as d:
            program("focus", "toy", "-o", d, "--wells", 8, "--times", 12, "--size", "72x64")
            words = [PROGRAM, "focus", "run", "--data-root", d, "--exp", "20250101_toy", "--microscope", "YX1",
                     "--threads", "1", "--method", "depth"]
            child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            images = pathlib.Path(d, "built_image_data/stitched_FF_images/20250101_toy")
            while child.poll() is None and not list(images.glob("*.jpg")):
                time.sleep(0.005)
            child.send_signal(signal.SIGINT)
            child.communicate()
            self.assertIn(child.returncode, (0, 6))
            self.assertEqual((images / ".ff_complete").exists(), child.returncode == 0)
            self.assertEqual(subprocess.run(words, capture_output=True).returncode, 0)
            self.assertEqual(len(list(images.glob("*.jpg"))), 96)

    def test_memory_stays_within_the_plan_with_any_number_of_threads(self):
        with tempfile.TemporaryDirectory() as d:
            program("focus", "toy", "-o", d, "--wells", 24, "--times", 1, "--planes", 5, "--size", "160x120")
            images = set()
            for threads, kind in ((1, "jpg"), (4, "jpg"), (16, "jpg"), (16, "tif")):
                done = program("focus", "run", "--data-root", d, "--exp", "20250101_toy", "--microscope", "YX1",
                               "--image-format", kind, "--threads", threads, "--overwrite")
                self.assertRegex(done.stdout + done.stderr, "growth .* of at most")
                self.assertNotIn("TOO MUCH", done.stdout + done.stderr)
                made = sorted(pathlib.Path(d, "built_image_data").rglob("*_stitch.jpg"))
                images.add((len(made), made[0].read_bytes()))
            self.assertEqual(len(images), 1)

    def test_variables_of_morphseq(self):
        with tempfile.TemporaryDirectory() as d:
            program("focus", "toy", "-o", d, "--wells", 2, "--times", 1, "--planes", 2, "--size", "20x20")
            words = [PROGRAM, "focus", "run", "--exp", "20250101_toy", "--microscope", "YX1", "--json"]

            def images(**variables):
                done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables})
                return json.loads(done.stdout)["images"] if done.returncode == 0 else done.returncode

            root = {"MORPHSEQ_DATA_ROOT": d}
            self.assertEqual(images(**root)["done"], 2)
            self.assertEqual(images(**root, MSEQ_OVERWRITE_BUILD01="no")["skipped"], 2)
            self.assertEqual(images(**root, MSEQ_OVERWRITE_BUILD01="Yes")["done"], 2)
            self.assertEqual(images(**root, YX1_BF_CHANNEL_INDEX="3"), 2)
            self.assertEqual(images(), 2)

    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as d:
            source = GOLDEN / "stack_u16.npy"
            for code, words in ((2, ["--method", "best"]), (2, ["--filter-size", 4]), (2, ["--filter-size", 99]),
                                (2, ["--unknown"]), (4, ["--memory", "1M"]), (5, ["--device", "cuda:9"])):
                program("focus", "stack", source, "-o", f"{d}/a.png", *words, code=code)
            program("focus", "stack", source, "-o", f"{d}/no/a.png", code=3)
            program("focus", "stack", f"{d}/none.nd2", "-o", f"{d}/a.png", code=3)
            self.assertEqual(os.listdir(d), [])


if __name__ == "__main__":
    unittest.main()
