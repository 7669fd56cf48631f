# test_focus_rules.py - the device rules R1 to R7 of focus, and each defect of MorphSeq that it must not have.
# seconds: 12
import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np

import fathom

GOLDEN = pathlib.Path("tests/golden/focus").resolve()
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM", "build/bin/fathom"))
EXP = "20250101_toy"
QUIET = {k: v for k, v in os.environ.items() if k not in ("FATHOM_DEBUG", "MSEQ_YX1_DEBUG")}


def call(*words, code=0, cwd=None, **variables):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=cwd,
                          env={**QUIET, **variables})
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def has_gpu():
    return json.loads(call("doctor", "--json").stdout)["cuda"]["usable"]


class Plate(unittest.TestCase):
    """A small made-up plate of its own for every test."""
    SIZE = "40x56"

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.root = pathlib.Path(self.dir.name)
        call("focus", "toy", "-o", self.root, "--wells", 3, "--times", 2, "--planes", 3, "--size", self.SIZE)
        self.images = self.root / "built_image_data/stitched_FF_images" / EXP
        self.runs = self.root / "built_image_data/focus_runs" / EXP

    def run_it(self, *words, code=0, verb="run", **variables):
        return call("focus", verb, "--data-root", self.root, "--exp", EXP, "--microscope", "YX1", *words, code=code,
                    **variables)

    def record(self):
        return json.loads((self.runs / "run.json").read_text())

    def bytes_of_images(self):
        return {p.name: p.read_bytes() for p in sorted(self.images.glob("*_stitch.*"))}


class Rules(Plate):
    def test_R1_the_device_of_every_plan_is_the_one_of_the_run(self):
        said = self.run_it("--device", "cpu", verb="plan").stdout
        self.assertRegex(said, r"device  cpu \(asked for")
        self.assertIn("plan on cpu", said)

    def test_R2_the_device_is_resolved_once_said_and_recorded(self):
        said = self.run_it().stdout
        record = self.record()
        self.assertRegex(said, r"(?m)^device  " + re.escape(record["device"]))
        self.assertIn(record["device_reason"], said)
        self.assertEqual(record["config_sources"]["program"]["device"], "default")
        self.run_it("--device", "cuda:9", "--overwrite", code=5)  # never a fallback
        self.assertEqual(self.record(), record)
        if not has_gpu():
            self.run_it("--require-gpu", "--overwrite", code=5)
            self.run_it("--device", "cuda", "--overwrite", code=5)

    def test_R3_a_device_that_cannot_be_used_has_a_reason(self):
        if has_gpu():
            self.skipTest("there is a GPU")
        self.assertRegex(self.run_it().stdout, r"device  cpu \(auto: .{10,}\)")
        block = self.run_it("--overwrite", FATHOM_DEBUG="1").stderr
        self.assertRegex(block, r"(?s)DEVICE DIAGNOSTICS - focus\nCUDA available: no.*\n  .+To do: .+\n"
                                r"CUDA device count: 0   CUDA_VISIBLE_DEVICES: ")
        self.assertIn("DEVICE DIAGNOSTICS", self.run_it("--overwrite", MSEQ_YX1_DEBUG="on").stderr)
        self.assertNotIn("DEVICE DIAGNOSTICS", self.run_it("--overwrite", FATHOM_DEBUG="0").stderr)
        self.assertNotIn("DEVICE", self.run_it("--overwrite", "--log", "warn", FATHOM_DEBUG="1").stderr)  # flags win

    def test_R4_every_run_ends_with_what_bounded_it(self):
        last = self.run_it().stdout.rstrip().splitlines()[-1]
        self.assertRegex(last, r"^bound: (\w+ \d+ %(, )?){5}$")
        self.assertEqual(last.split(": ", 1)[1], self.record()["bound"])

    def test_R5_workers_are_threads_of_one_process(self):
        code = ("import subprocess, sys, pathlib, time\n"
                "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                "seen = ''\n"
                "while child.poll() is None:\n"
                "    for t in pathlib.Path(f'/proc/{child.pid}/task').glob('*/children'):\n"
                "        try: seen += t.read_text()\n"
                "        except OSError: pass\n"
                "    time.sleep(0.002)\n"
                "sys.exit(9 if seen.strip() else child.returncode)\n")
        done = subprocess.run(["python3", "-c", code, PROGRAM, "focus", "run", "--data-root", self.root, "--exp", EXP,
                               "--microscope", "YX1", "--workers", "4,4"])
        self.assertEqual(done.returncode, 0)

    def test_R6_memory_is_as_planned(self):
        self.run_it("--strict")
        record = self.record()
        self.assertEqual(record["planned_bytes"], record["peak_bytes"])

    def test_R7_images_do_not_depend_on_how_they_are_run(self):
        self.run_it("--threads", 1)
        first = self.bytes_of_images()
        self.assertEqual(len(first), 6)
        for words in (["--threads", 2], ["--workers", "1,3"], ["--memory", "64M"], ["--log", "debug"]):
            self.run_it("--overwrite", *words)
            self.assertEqual(self.bytes_of_images(), first, words)
        for well in ("A01", "B01", "C01"):  # other batches
            self.run_it("--overwrite", "--force-config", "--wells", well)
        self.assertEqual(self.bytes_of_images(), first)


class Told(Plate):
    def test_sources_of_values(self):
        call("focus", "run", "--exp", EXP, "--microscope", "YX1", "--method", "log", "--threads", 1,
             MORPHSEQ_DATA_ROOT=str(self.root), YX1_BF_CHANNEL_INDEX="0")
        sources = self.record()["config_sources"]
        self.assertEqual(sources["input"]["data_root"], "environment MORPHSEQ_DATA_ROOT")
        self.assertEqual(sources["focus"]["channel"], "environment YX1_BF_CHANNEL_INDEX")
        self.assertEqual((sources["focus"]["method"], sources["focus"]["sigma"]), ("flag", "default"))
        self.assertEqual((sources["program"]["threads"], sources["program"]["memory"]), ("flag", "default"))
        config = self.root / "c.yaml"
        config.write_text(f"instrument: focus\nname: x\noutput_dir: {self.root}/out\npaths: config\n"
                          f"input: {{data_root: {self.root}, exp: {EXP}, microscope: YX1}}\nfocus: {{method: max}}\n")
        call("run", "all", "-c", config, "--quiet", code=1)  # images of other settings are there
        config.write_text(config.read_text().replace("method: max", "method: max, overwrite: true"))
        call("run", "all", "-c", config, "--quiet")
        sources = self.record()["config_sources"]
        self.assertEqual((sources["focus"]["method"], sources["focus"]["sigma"]), ("config", "default"))

    def test_variables_hold_for_a_plan_too(self):
        self.run_it()
        plan = json.loads(self.run_it("--json", verb="plan", MSEQ_OVERWRITE_BUILD01="1").stdout)
        self.assertEqual(plan["images"]["todo"], 6)
        self.assertEqual(json.loads(self.run_it("--json", verb="plan").stdout)["images"]["todo"], 0)
        self.assertEqual(plan["device"], self.record()["device"])

    def test_a_stack_that_failed_has_a_name(self):
        data = bytearray((GOLDEN / "synth_T2P3Z5_zlib.nd2").read_bytes())
        at = data.index(b"ImageDataSeq|7!") + 4072 + 8  # frame 7 is z=2 of p=1, t=0: its packed pixels
        data[at + 4:at + 12] = bytes(8)
        raw = self.root / "damaged.nd2"
        raw.write_bytes(data)
        done = call("focus", "stack", raw, "-o", f"{self.root}/out/", code=1)
        self.assertRegex(done.stdout, r"(?m)^failed: damaged_p001_t0000: .*frame 7")
        self.assertEqual(len(list((self.root / "out").glob("*.png"))), 5)

    def test_images_that_wait_have_not_failed(self):
        path = self.images / f"B01_t0000_ch00_stitch.jpg"
        path.mkdir(parents=True)  # cannot be replaced: the run ends there
        done = subprocess.run([PROGRAM, "focus", "run", "--data-root", self.root, "--exp", EXP, "--microscope", "YX1"],
                              capture_output=True, env=QUIET)
        self.assertNotEqual(done.returncode, 0)
        record = self.record()
        self.assertEqual((record["images"]["total"], record["images"]["failed"]), (6, 0))
        self.assertGreater(record["images_waiting"], 0)

    def test_monitor_and_timelines_lie_in_the_run_folder(self):
        with tempfile.TemporaryDirectory() as cwd:
            call("focus", "run", "--data-root", self.root, "--exp", EXP, "--microscope", "YX1", "--monitor", 1,
                 "--trace-stacks", 2, cwd=cwd)
            self.assertEqual(os.listdir(cwd), [])
        names = {p.name for p in self.runs.iterdir()}
        self.assertLessEqual({"host_monitor.csv", "trace_run.json", "profiler_trace_stack_000.json",
                              "profiler_trace_stack_001.json"}, names)

        def refuse(word):
            raise ValueError(word)

        for name in names:
            if name.startswith(("trace", "profiler")):
                doc = json.loads((self.runs / name).read_text(), parse_constant=refuse)
                for event in doc["traceEvents"]:
                    self.assertIsInstance(event["pid"], int)
                    self.assertIsInstance(event["tid"], int)
                    self.assertIn(event["ph"], "XBEiCMstfbne")
                stages = {e["name"].split()[0] for e in doc["traceEvents"] if e.get("cat") == "fathom_stage"}
                self.assertLessEqual({"read", "encode", "write"}, stages)
                self.assertIn("no device activity: run on cpu", [e["name"] for e in doc["traceEvents"]])

    def test_a_scale_bar_is_burned_in(self):
        self.run_it("--image-format", "png")
        plain = self.bytes_of_images()
        self.run_it("--image-format", "png", "--scalebar", 20, code=2)  # other settings
        self.run_it("--image-format", "png", "--scalebar", 20, "--overwrite")
        self.assertTrue(all(plain[k] != v for k, v in self.bytes_of_images().items()))

    def test_a_mosaic_has_one_bar_and_its_tiles_none(self):
        def images(*words):
            call("focus", "run", "--data-root", root, "--exp", EXP, "--microscope", "Keyence", "--image-format", "npy", *words)
            found = {p.name: np.load(p) for p in root.glob("built_image_data/**/*.npy")}
            return {k: v for k, v in found.items() if "stitch" in k}, {k: v for k, v in found.items() if "stitch" not in k}

        root = self.root / "k"
        call("focus", "toy", "-o", root, "--microscope", "Keyence", "--wells", 1, "--times", 1)
        mosaic, tiles = images()
        barred, same = images("--scalebar", 100, "--overwrite")
        for k in tiles:
            np.testing.assert_array_equal(tiles[k], same[k])
        (a,), (b,) = mosaic.values(), barred.values()
        changed = np.argwhere(a != b)
        self.assertGreater(len(changed), 0)
        self.assertTrue((changed.min(0) > np.array(a.shape) // 2).all())  # in the lower right
        call("focus", "run", "--data-root", root, "--exp", EXP, "--microscope", "Keyence", "--scalebar", 99999,
             "--overwrite", code=2)

    def test_two_configs_whose_images_meet_collide(self):
        for name, method in (("a", "log"), ("b", "max")):
            (self.root / f"{name}.yaml").write_text(
                f"instrument: focus\nname: {name}\noutput_dir: {self.root}/out_{name}\n"
                f"input: {{data_root: {self.root}, exp: {EXP}, microscope: YX1}}\nfocus: {{method: {method}}}\n")
        done = call("run", "all", "-c", self.root / "a.yaml", "-c", self.root / "b.yaml", code=2)
        self.assertRegex(done.stderr, "(?s)a.yaml and .*b.yaml would both write to .*stitched_FF_images/" + EXP)
        self.assertFalse(self.images.exists() or (self.root / "out_a").exists())

    def test_a_stage_by_hand_has_its_directory(self):
        config = self.root / "c.yaml"
        config.write_text(f"instrument: focus\nname: x\noutput_dir: {self.root}/out\n"
                          f"input: {{data_root: {self.root}, exp: {EXP}, microscope: YX1}}\n")
        call("focus", "index", "-c", config)
        self.assertFalse((self.root / "out/.fathom/lock").exists())  # given back
        lock = (f"fathom lock 1\nhost elsewhere\nboot b\npid 77\nstart 5\nspace 6\nrun r\nbeats yes\n"
                f"since_ms 1700000000000\n")
        (self.root / "out/.fathom/lock").write_text(lock)
        self.assertIn("elsewhere", call("focus", "fuse", "-c", config, code=2).stderr)


class Doctor(Plate):
    def examine(self, *words, code=0):
        said = call("doctor", "--json", "--data-root", self.root, "--exp", EXP, *words, code=code).stdout
        return {f["about"]: f for f in json.loads(said)["data"]["findings"]}

    def test_data_that_can_be_run(self):
        found = self.examine()
        self.assertEqual({k: v["finding"] for k, v in found.items() if k != "time"},
                         dict.fromkeys(("input", "frames", "times", "plate", "outputs"), "ok"))
        self.assertIn("t=2 p=3 z=3 y=40 x=56 u16", found["input"]["text"])
        self.assertRegex(found["time"]["text"], r"storage .* GB at .* GB/s = .*kernels .*encoding .*on \d+ thread")
        self.assertEqual(found["time"]["text"].count("<- bound"), 1)
        self.assertFalse(self.images.exists())

    def test_data_that_cannot(self):
        raw = next((self.root / "raw_image_data/YX1" / EXP).glob("*.nd2"))
        raw.write_bytes(raw.read_bytes()[:9000])
        self.assertEqual(self.examine(code=3)["input"]["finding"], "FAIL")
        call("doctor", "--data-root", self.root, code=2)

    def test_tiles(self):
        call("focus", "toy", "-o", self.root / "k", "--microscope", "Keyence", "--wells", 1, "--times", 1)
        said = call("doctor", "--data-root", self.root / "k", "--exp", EXP).stdout
        self.assertRegex(said, r"(?s)\[ok\]   input    \S+ of Keyence.*\[ok\]   outputs  1 images to make")


class Defects(Plate):
    """Number n of the list of defects of MorphSeq's Build01."""

    def test_01_no_silent_default_of_the_device(self):
        self.assertRegex(self.run_it().stdout, r"(?m)^device  \S+ \(.+\)")
        self.assertIn("device", call("focus", "stack", GOLDEN / "stack_u16.npy", "-o", self.root / "a.png").stdout)

    def test_02_inverting_does_not_wrap(self):
        planes = np.full((2, 16, 16), 1000, np.uint16)
        planes[:, 3, 4] = 0
        planes[:, 9, 9] = 60000
        image = fathom.focus(planes, method="max", low=0, high=100, polarity="invert").image
        self.assertEqual((image[3, 4], image[9, 9]), (65535, 0))  # the darkest becomes white

    def test_03_each_stack_is_normalised_alone(self):
        a, b = np.load(GOLDEN / "stack_u16.npy"), np.load(GOLDEN / "stackB_u16.npy")
        both = fathom.focus(np.stack([a, b])).image
        np.testing.assert_array_equal(both[0], fathom.focus(a).image)
        np.testing.assert_array_equal(both[1], fathom.focus(b).image)

    def test_04_dark_16_bit_data_are_not_scrambled(self):
        ramp = np.arange(256, dtype=np.uint16).reshape(1, 16, 16)
        image = fathom.focus(ramp, method="max", low=0, high=100).image
        self.assertTrue((np.diff(image.ravel().astype(int)) > 0).all())

    def test_05_bytes_come_from_both_sides_of_a_plane(self):
        def planned(rows, columns):
            np.save(self.root / "s.npy", np.zeros((3, rows, columns), np.uint16))
            said = call("focus", "stack", self.root / "s.npy", "-o", self.root / "a.png", "--plan", "--json").stdout
            return json.loads(said)["planned_bytes"]

        small, wide, high = planned(64, 64), planned(64, 2048), planned(2048, 64)
        self.assertLess(abs(wide - high), 0.2 * wide)
        self.assertGreater(wide - small, 3 * 64 * 1984 * 2)  # the stack itself

    def test_06_height_is_of_y_and_width_of_x(self):
        self.run_it()
        with open(self.root / f"metadata/built_metadata_files/{EXP}_metadata.csv") as f:
            row = next(csv.DictReader(f))
        self.assertEqual((row["Height (px)"], row["Width (px)"]), ("40", "56"))
        self.assertAlmostEqual(float(row["Height (um)"]) / 40, float(row["Width (um)"]) / 56)

    def test_07_a_bright_plane_is_not_sharp_at_the_border(self):
        planes = np.stack([np.full((24, 24), v, np.uint16) for v in (1000, 60000)])
        planes[0, 10:14, 10:14] = 2000
        for method in ("log", "log-smooth"):
            index = fathom.focus(planes, method=method, index_map=True).index
            self.assertTrue((index[0] == 0).all() and (index[:, -1] == 0).all(), method)

    def test_08_an_empty_image_is_not_done(self):
        self.run_it()
        first = self.bytes_of_images()
        (self.images / "B01_t0001_ch00_stitch.jpg").write_bytes(b"")
        done = json.loads(self.run_it("--json").stdout)["images"]
        self.assertEqual((done["done"], done["skipped"]), (1, 5))
        self.assertEqual(self.bytes_of_images(), first)

    def test_10_metadata_alone(self):
        self.run_it("--metadata-only")
        self.assertEqual(self.bytes_of_images(), {})
        self.assertTrue((self.root / f"metadata/built_metadata_files/{EXP}_metadata.csv").exists())

    def test_10_metadata_alone_of_a_keyence(self):
        call("focus", "toy", "-o", self.root / "k", "--microscope", "Keyence", "--wells", 1, "--times", 1)
        call("focus", "run", "--data-root", self.root / "k", "--exp", EXP, "--microscope", "Keyence", "--metadata-only")
        self.assertTrue((self.root / f"k/metadata/built_metadata_files/{EXP}_metadata.csv").exists())
        self.assertEqual(list(self.root.glob("k/**/*_stitch.*")), [])

    def test_11_the_name_of_a_microscope_is_checked(self):
        done = call("focus", "run", "--data-root", self.root, "--exp", EXP, "--microscope", "YX2", code=2)
        self.assertIn("YX1", done.stderr)
        raw = next((self.root / "raw_image_data/YX1" / EXP).glob("*.nd2"))
        raw.unlink()
        self.assertIn("nd2", self.run_it(code=3).stderr)  # raw files are looked at

    def test_12_a_row_for_each_well_and_time_once(self):
        self.run_it()
        with open(self.root / f"metadata/built_metadata_files/{EXP}_metadata.csv") as f:
            rows = [(r["well"], r["time_int"]) for r in csv.DictReader(f)]
        self.assertEqual((len(rows), len(set(rows))), (6, 6))

    def test_13_an_image_that_cannot_be_saved_is_an_error(self):
        (self.images / "C01_t0001_ch00_stitch.jpg").mkdir(parents=True)
        done = subprocess.run([PROGRAM, "focus", "run", "--data-root", self.root, "--exp", EXP, "--microscope", "YX1"],
                              capture_output=True, text=True, env=QUIET)
        self.assertIn(done.returncode, (1, 3))
        self.assertIn("C01_t0001_ch00_stitch.jpg", done.stderr)
        self.assertFalse((self.images / ".ff_complete").exists())

    def test_14_reference_coordinates_are_the_users(self):
        self.run_it("--map", "xy", "--ref-xy", self.root / "none.csv", code=3)
        self.run_it()  # none are needed where the plate has a sheet

    def test_15_a_failed_check_is_no_warning(self):
        table = next((self.root / "metadata/well_metadata").iterdir())
        lines = table.read_text().splitlines()
        table.write_text("\n".join(x.replace(",22,", ",,") if x.startswith("C01") else x for x in lines) + "\n")
        self.run_it(code=3)
        self.assertFalse(self.images.exists())

    def test_16_a_missing_frame_with_padded_rows_is_left_out(self):
        out = self.root / "out/"
        call("focus", "stack", GOLDEN / "synth_T2P3Z5_missing.nd2", "-o", f"{out}/")
        self.assertTrue(any(out.iterdir()))


if __name__ == "__main__":
    unittest.main()
