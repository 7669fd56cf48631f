"""What splat says of settings, captures and models that cannot be right, or that a user could mean in another way: exit
codes, the file or key that is named, and that nothing is written.
seconds: 25"""
import gzip
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np
from test_splat import PROGRAM
from test_splat_look import write_png
from test_splat_train import call, read_ply, rows_of

CHECKPOINT = "checkpoints/model.safetensors"


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        cls.ok(cls, "toy", "-o", "toy", "--views", 4, "--size", "48x40", "--gaussians", 300)
        cls.ok(cls, "train", "-d", "toy", "-o", "short", "-i", 20, "--sh-degree", 1, "--quiet")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def ok(self, *words):
        done = call("splat", *words, cwd=self.dir)
        assert done.returncode == 0, (words, done.stderr)
        return done

    def refused(self, code, *words, says=()):
        """The command fails with this code, and its message has each text."""
        done = call("splat", *words, cwd=self.dir)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr, words)
        return done

    def said(self, *words):
        done = self.ok(*words)
        return done.stdout + done.stderr

    def no_results(self, folder):
        """A folder may have been claimed, but holds nothing."""
        self.assertEqual([p.name for p in (self.dir / folder).glob("*") if p.name[0] != "."], [])

    def names(self, folder):
        """Files, in all folders of it, that are not hidden."""
        top = self.dir / folder
        return sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file() and p.name[0] != ".")

    def copy(self, name):
        shutil.copytree(self.dir / "toy", self.dir / name)
        return self.dir / name

    def test_the_first_step_takes_what_was_planned(self):
        for i in range(6):  # one that is decoded beside the step is counted in about every third run
            self.ok("train", "-d", "toy", "-o", f"step_{i}", "-i", 2, "--sh-degree", 1, "--quiet", "--threads", 2)
            row = rows_of(self.dir / f"step_{i}/memory.csv")[0]
            self.assertEqual(row["ledger_bytes"], row["planned_bytes"])

    # ---- resuming ----

    def test_what_a_resumed_training_cannot_change(self):
        more = ["train", "-d", "toy", "-o", "on", "--resume", f"short/{CHECKPOINT}"]
        self.refused(2, *more, "-i", 30, "--sh-degree", 2, says=["sh_degree is 2", CHECKPOINT, "degree 1"])
        self.refused(2, *more, "-i", 10, says=["expected at most iteration 10", "found 20"])
        self.refused(2, *more, "-i", 30, "--fresh", says=["--fresh", "--resume"])
        self.refused(3, *more[:-1], "short/splat_20.ply", "-i", 30, says=["expected a checkpoint, found a model (ply)", "--init-ply"])
        self.refused(3, *more[:-1], "toy", "-i", 30, says=f"toy/{CHECKPOINT}")
        self.assertFalse((self.dir / "on/training_config.json").exists())
        self.ok(*more, "-i", 30)
        self.ok(*more[:3], "-o", "on_too", "--resume", "short", "-i", 30)  # the folder of a training
        self.assertEqual((self.dir / "on_too/splat_30.ply").read_bytes(), (self.dir / "on/splat_30.ply").read_bytes())
        told = json.loads((self.dir / "on/training_config.json").read_text())
        self.assertEqual(told["optimization"]["sh_degree"], 1)  # that of the rows, not the default

    def test_a_resumed_training_goes_on_where_it_was_interrupted(self):
        more = ["train", "-d", "toy", "-i", 26, "--resume", f"short/{CHECKPOINT}", "--checkpoint-every", 1]
        self.ok(*more, "-o", "at_once")
        for last in (21, 22):  # as many iterations as a moment has
            done = self.refused(6, *more, "-o", "in_steps", "--set", "max_minutes=1e-9",
                                says=[f"the same command resumes after iteration {last}"])
            self.assertIn(f"resuming after iteration {last - 1} of 26", done.stdout + done.stderr)
        self.refused(2, *more, "-o", "in_steps", "--set", "means_lr=-1")  # leaves the checkpoint
        self.assertIn("resuming after iteration 22 of 26", self.said(*more, "-o", "in_steps"))
        for name in ("splat_26.ply", "loss.csv", CHECKPOINT):
            self.assertEqual((self.dir / "in_steps" / name).read_bytes(), (self.dir / "at_once" / name).read_bytes(), name)
        self.assertIn("resuming after iteration 26 of 26", self.said(*more, "-o", "in_steps"))  # nothing is left to do
        # other settings and another checkpoint begin where --resume says
        self.assertIn("resuming after iteration 20 of 26", self.said(*more, "-o", "in_steps", "--seed", 3))
        self.ok("train", "-d", "toy", "-o", "longer", "-i", 21, "--sh-degree", 1, "--quiet")
        more[more.index("--resume") + 1] = "longer"
        self.assertIn("resuming after iteration 21 of 26", self.said(*more, "-o", "in_steps", "--seed", 3))
        # so does a checkpoint that was cut short
        path = self.dir / "in_steps" / CHECKPOINT
        path.write_bytes(path.read_bytes()[:-8])
        self.assertIn("resuming after iteration 21 of 26", self.said(*more, "-o", "in_steps", "--seed", 3))

    def test_temporary_files_of_a_killed_training_go(self):
        shutil.copytree(self.dir / "short", self.dir / "killed")
        dead = subprocess.Popen(["true"])
        dead.wait()
        own = ["checkpoints/.model.safetensors", ".splat_20.ply", ".training_config.json", "sog/.splat_20_sog.sog",
               "eval_step_20/.0.png", "timelapse/a/.000010.jpg"]
        foreign = [f".report.csv.{dead.pid}-5f3a.tmp", f"mine/.splat_20.ply.{dead.pid}-5f3a.tmp", ".splat_20.ply.old.tmp",
                   f"checkpoints/.model.safetensors.{os.getpid()}-5f3a.tmp"]  # the last is of a process that lives
        for name in [f"{n}.{dead.pid}-5f3a.tmp" for n in own] + foreign:
            path = self.dir / "killed" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"half")
        self.ok("train", "-d", "toy", "-o", "killed", "-i", 20, "--sh-degree", 1, "--quiet")
        left = [str(p.relative_to(self.dir / "killed")) for p in (self.dir / "killed").rglob(".*.tmp")]
        self.assertEqual(sorted(left), sorted(foreign))

    def test_models_with_numbers_that_are_not_finite(self):
        head, data = (self.dir / "short/splat_20.ply").read_bytes().split(b"end_header\n", 1)
        names = [line.split()[2].decode() for line in head.splitlines() if line.startswith(b"property")]
        good = np.frombuffer(data, "<f4").reshape(-1, len(names))

        def write(*cells):
            table = good.copy()
            for row, column, value in cells:
                table[row, names.index(column)] = value
            (self.dir / "odd.ply").write_bytes(head + b"end_header\n" + table.tobytes())

        verbs = [["render", "odd.ply", "-d", "toy", "-o", "odd"], ["eval", "odd.ply", "-d", "toy", "-o", "odd"],
                 ["densify", "odd.ply", "--iteration", 9, "--strategy", "mcmc", "-o", "odd_out.ply"],
                 *(["convert", "odd.ply", f"odd_out.{e}"] for e in ("ply", "splat", "spz", "sog", "html"))]
        write((7, "y", np.nan), (9, "x", np.inf))
        for words in verbs:
            self.refused(3, *words, says="odd.ply: row 7, y: expected a finite number, found nan, as 2 of the file are")
        self.assertEqual([p.name for p in self.dir.glob("odd*") if p.name != "odd.ply"], [])
        self.assertIn("warning: 2 numbers of odd.ply are not finite, the first in row 7, y: nan", self.said("info", "odd.ply"))
        self.assertEqual(json.loads(self.ok("info", "odd.ply", "--json").stdout)["not_finite"], 2)
        for column in ("f_dc_2", "f_rest_4", "scale_1", "rot_3"):
            write((5, column, -np.inf))
            self.refused(3, *verbs[3], says=f"row 5, {column}: expected a finite number, found -inf, as 1 of the file is")
        write((5, "opacity", np.nan))
        self.refused(3, *verbs[3], says="row 5, opacity")
        write((5, "opacity", np.inf))  # a logit of 1
        self.assertNotIn("finite", self.said("info", "odd.ply") + self.said(*verbs[0]))

    def test_what_differs_is_told_by_name(self):
        again = ["train", "-d", "toy", "-o", "short", "-i", 20, "--sh-degree", 1]
        self.refused(2, *again, "--bg", "1,1,1", "--seed", 3, "--max-cap", 200, says=[
            "seed was 0, is 3", "bg was not given, is 1,1,1", "max_cap was not given, is 200", "--fresh starts over"])
        self.ok("toy", "-o", "other", "--views", 3, "--size", "48x40", "--gaussians", 200)
        folder = self.copy("moved")
        (folder / "images/view_0001.png").write_bytes((folder / "images/view_0001.png").read_bytes() + b" ")
        for data, says in (("other", ["it has 3 views, had 4", "it has 100 points, had 150"]),
                           ("moved", ["of the capture: it has images whose files have other sizes\n"])):
            again[2] = data
            done = self.refused(2, *again, says=says)
            self.assertNotRegex(done.stderr, "[0-9a-f]{12}")  # no hashes
        told = self.said("train", "-d", "other", "-o", "elsewhere", "-i", 22, "--resume", f"short/{CHECKPOINT}", "--seed", 3)
        self.assertIn("continuing with other settings: seed was 0, is 3; iterations was 20, is 22", told)
        self.assertIn(f"warning: this is not the capture of short/{CHECKPOINT}: it has 3 views, had 4", told)

    def test_parts_that_a_resumed_training_would_drop(self):
        self.ok("train", "-d", "toy", "-o", "parts", "-i", 4, "--pose-opt", "mlp", "--bilateral-grid", "--sh-degree", 0)
        more = ["train", "-d", "toy", "-o", "fewer", "-i", 6, "--resume", f"parts/{CHECKPOINT}"]
        self.refused(2, *more, says=["it has refined poses", "--pose-opt mlp", "--set pose_optimization=none"])
        self.refused(2, *more, "--pose-opt", "mlp", says=["it has bilateral grids", "--bilateral-grid"])
        self.refused(3, *more, "--pose-opt", "direct", "--bilateral-grid", says=["'poses': expected [pose=36]", "found [pose="])
        self.refused(3, *more, "--pose-opt", "mlp", "--bilateral-grid", "--bilateral-grid-X", 4, says=[
            "'bilateral_grid': expected [image=4 affine=12 luma=8 cell_row=16 cell_column=4]", "cell_column=16]", "--init-ply"])
        told = self.said(*more, "--pose-opt", "none", "--set", "use_bilateral_grid=false")
        self.assertIn("warning: the refined poses of", told)
        self.assertIn("warning: the bilateral grids of", told)
        self.ok(*more[:3], "-o", "all", *more[5:], "--pose-opt", "mlp", "--bilateral-grid")

    def test_checkpoints_that_are_in_the_way(self):
        shutil.copytree(self.dir / "short", self.dir / "damaged")
        self.refused(2, "train", "-d", "toy", "-o", "damaged", "-i", 20, "--sh-degree", 1, "--max-cap", 500,
                     says=["max_cap was not given, is 500", "--resume"])
        file = self.dir / "damaged" / CHECKPOINT
        data = bytearray(file.read_bytes())
        data[-5] ^= 255
        file.write_bytes(data)
        done = self.refused(3, "train", "-d", "toy", "-o", "damaged", "-i", 20, "--sh-degree", 1, says="--fresh starts over")
        self.assertNotIn("--resume", done.stderr)  # it cannot be read at all

    def test_starting_over_leaves_nothing_of_the_training_before(self):
        few = ["train", "-d", "toy", "-o", "over", "--sh-degree", 1]
        self.ok(*few, "-i", 12, "--save-steps", "[6,12]", "--eval", "--test-every", 2, "--set", "eval_steps=[6]",
                "--save-eval-images", "--export", "spz,splat,html,sog", "--timelapse-images", "view_0001", "--timelapse-every", 6)
        (self.dir / "over/cameras_12.json").write_text("{}")  # poses are not trained with --eval
        mine = ("splat_best.ply", "splat_007.ply", "cameras_old.json", "sog/mine.sog", "notes.txt", "timelapse/film/01.jpg")
        (self.dir / "over/timelapse/film").mkdir()
        for name in mine:
            (self.dir / "over" / name).write_text("mine")
        before = self.names("over")
        for name in ("splat_12.html", "sog/splat_6_sog.sog", "eval_step_6/0.png", "metrics_report.txt",
                     "timelapse/view_0001/000012.jpg"):
            self.assertIn(name, before)
        self.ok(*few, "-i", 4, "--fresh")
        self.assertFalse((self.dir / "over/timelapse/view_0001").exists())
        self.ok("train", "-d", "toy", "-o", "clean", "--sh-degree", 1, "-i", 4)
        self.assertEqual(self.names("over"), sorted({*self.names("clean"), *mine}))
        (self.dir / "over/splat_007.ply").unlink()
        self.assertIn("model: over/splat_4.ply\n", self.said("eval", "over", "-d", "toy", "-o", "scores"))
        self.assertIn("model: over/splat_4.ply\n", self.said("convert", "over", "over.spz"))
        self.assertIn("model: over/splat_4.ply\n", self.said("render", "over", "-d", "toy", "-o", "seen", "--views", "test"))
        self.assertIn("model: over/splat_4.ply\n", self.said("densify", "over", "--iteration", 600, "--strategy", "mcmc", "-o",
                                                             "denser.ply"))
        # the model that it starts from is no result of its own
        self.ok(*few[:-2], "-i", 2, "--fresh", "--init-ply", "over/../over/splat_4.ply")
        self.assertEqual([n for n in self.names("over") if n.startswith("splat_")],
                         ["splat_2.ply", "splat_4.ply", "splat_best.ply"])

    def test_losses_of_a_training_that_resumes_its_own_file(self):
        shutil.copytree(self.dir / "short", self.dir / "onward")
        before = (self.dir / "onward/loss.csv").read_text()
        more = ["train", "-d", "toy", "-o", "onward", "-i", 24, "--resume", f"onward/../onward/{CHECKPOINT}"]
        self.ok(*more)
        after = (self.dir / "onward/loss.csv").read_text()
        self.assertTrue(after.startswith(before))
        self.assertEqual([int(r["iteration"]) for r in rows_of(self.dir / "onward/loss.csv")], list(range(1, 25)))
        self.ok(*more)  # nothing is left to do
        self.assertEqual((self.dir / "onward/loss.csv").read_text(), after)
        (self.dir / "onward/loss.csv").unlink()
        more[more.index(24)] = 26
        self.assertIn("onward/loss.csv lacks rows up to iteration 24", self.said(*more))
        self.assertEqual([int(r["iteration"]) for r in rows_of(self.dir / "onward/loss.csv")], [25, 26])

    def test_an_interrupted_training_is_a_model(self):
        shutil.copytree(self.dir / "short", self.dir / "half")
        (self.dir / "half/splat_20.ply").unlink()
        self.assertIn(f"half/{CHECKPOINT}\n", self.said("info", "half"))
        told = self.said("eval", "half", "-d", "toy", "-o", "of_half", "--no-images")
        self.assertIn(f"model: half/{CHECKPOINT}\n", told)
        self.assertIn(told.splitlines()[-1], self.said("eval", "short", "-d", "toy", "-o", "of_short", "--no-images"))
        self.assertEqual(rows_of(self.dir / "of_half/metrics.csv")[0]["iteration"], "20")
        (self.dir / "half" / CHECKPOINT).unlink()
        self.refused(3, "eval", "half", "-d", "toy", "-o", "none", says="nor the checkpoint of a training")

    def test_folders_stand_for_the_settings_of_their_training(self):
        flags = ["-a", "--bg", "1,0.5,0", "--raster", "classic", "-r", 2, "--test-every", 2]
        self.ok("train", "-d", "toy", "-o", "looks", "-i", 20, *flags, "--eval", "--eval-steps", 20, "--init-ply", "toy/truth.ply")
        want = float(rows_of(self.dir / "looks/metrics.csv")[0]["psnr"])

        def psnr(*words):
            shutil.rmtree(self.dir / "looked", ignore_errors=True)
            done = self.ok("eval", *words, "-o", "looked", "--no-images", "--json")
            return json.loads(done.stdout)["psnr"]
        self.assertAlmostEqual(psnr("looks"), want, places=3)  # rotations of a PLY are units
        self.assertEqual(psnr("looks"), psnr("looks/splat_20.ply", "-d", "toy", *flags))
        self.assertEqual(psnr("looks", "--bg", "0,0,0"), psnr("looks/splat_20.ply", "-d", "toy", "-a", "--bg", "0,0,0", *flags[3:]))
        self.assertGreater(abs(psnr("looks/splat_20.ply", "-d", "toy") - want), 0.1)
        told = self.said("render", "looks", "-o", "shown", "--views", "test")
        self.assertIn("settings of looks/training_config.json: --bg 1,0.5,0, --raster classic, --antialiasing, --test-every 2, "
                      "--data-path toy\n", told)
        self.ok("render", "looks/splat_20.ply", "-d", "toy", *flags[:5], "-o", "shown2", "--test-every", 2, "--views", "test")
        self.assertEqual(self.names("shown"), self.names("shown2"))
        for name in self.names("shown"):
            self.assertEqual((self.dir / "shown" / name).read_bytes(), (self.dir / "shown2" / name).read_bytes())
        (self.dir / "looks/training_config.json").write_text('{"iterationen": 3}')
        self.assertIn("warning: settings of the training are not known", self.said("eval", "looks", "-d", "toy", "-o", "looked"))

    # ---- settings ----

    def test_values_that_a_flag_hides(self):
        self.refused(2, "train", "-d", "toy", "-o", "x", "-i", 3, "--set", "iterations=abc",
                     says="--set iterations: expected an integer")
        self.refused(2, "train", "-d", "toy", "-o", "x", "--set", "foo=3", says="--set foo: there is no such key")
        (self.dir / "hidden.yaml").write_text("max_width: wide\n")
        self.refused(2, "train", "-d", "toy", "-o", "x", "-c", "hidden.yaml", "--max-width", 40, says="hidden.yaml:1:12: max_width")

    def test_settings_without_effect(self):
        def warned(*more):
            told = self.said("train", "-d", "toy", "-o", "idle", "-i", 2, "--fresh", *more)
            return [line[9:] for line in told.splitlines() if line.startswith("warning: ")]
        self.assertEqual(warned("--strategy", "default", "--min-opacity", 0.1, "--pose-lr", 1e-3, "--set", "prune_ratio=0.5"), [
            "--pose-lr has no effect without --pose-opt direct or mlp",
            "--prune-ratio has no effect without --enable-sparsity",
            "--min-opacity has no effect without --strategy mcmc"])
        self.assertEqual(warned("--grad-threshold", 1e-3, "--sog-iterations", 1, "--lambda-alpha", 1, "--alpha", "mask"), [
            "--lambda-alpha has no effect without --alpha background", "--sog-iterations has no effect without --sog",
            "--grad-threshold has no effect without --strategy default",
            "--alpha mask has no effect: no image has alpha"])
        self.assertEqual(warned("--export", "sog", "--sog-iterations", 1, "--pose-lr", 1e-5, "--stop-refine", 15000), [])
        self.assertEqual(warned("--init-ply", "toy/truth.ply", "--init-num-pts", 5, "--sh-degree", 3), [
            "--init-num-pts has no effect with --init-ply", "sh_degree 3 has no effect: toy/truth.ply has degree 1"])
        self.assertEqual(warned("-c", "idle/training_config.json"), ["--init-num-pts has no effect with --init-ply"])
        self.assertEqual(warned("--eval", "--test-every", 2), [
            "no test view will be evaluated: eval_steps has no step up to iteration 2: give --eval-steps 2"])
        self.assertEqual(warned("--eval", "--test-every", 2, "--eval-steps", 2), [])

    def test_configs(self):
        self.ok("train", "-d", "toy", "-o", "again", "-c", "short/training_config.json")
        for name in ("splat_20.ply", CHECKPOINT, "loss.csv"):
            self.assertEqual((self.dir / "again" / name).read_bytes(), (self.dir / "short" / name).read_bytes(), name)
        self.ok("train", "-c", "again/training_config.json")  # nothing is left to do
        nested = {"dataset": {"data_path": "toy", "output_path": "theirs", "images": "images", "max_width": 3840},
                  "optimization": {"iterations": 3, "strategy": "default"}, "timestamp": "2025-10-17"}
        (self.dir / "theirs.json").write_text(json.dumps(nested))
        self.ok("train", "-c", "theirs.json")
        self.assertEqual(len(rows_of(self.dir / "theirs/loss.csv")), 3)
        nested["optimization"]["iteration"] = nested["optimization"].pop("iterations")
        (self.dir / "theirs.json").write_text(json.dumps(nested, indent=1))
        line = (self.dir / "theirs.json").read_text().split('"iteration"')[0].count("\n") + 1
        self.refused(2, "train", "-c", "theirs.json", says=f"theirs.json:{line}:3: unknown key 'iteration'")
        (self.dir / "theirs.json").write_text(json.dumps({**nested, "datasets": {}}))
        self.refused(2, "train", "-c", "theirs.json", says="found 'datasets'")
        for text in ("", "{}", "# iterations: 3\n"):
            (self.dir / "none.json").write_text(text)
            self.refused(2, "train", "-d", "toy", "-o", "x", "-c", "none.json", says="expected keys in none.json")
        (self.dir / "flat.json").write_text('{"iterations": 3}')
        done = self.refused(2, "train", "-c", "flat.json", says="found no -d")
        self.assertNotIn("spatial", done.stderr)
        self.refused(2, "train", "-d", "toy", "-o", "x", "--lenient", says="--lenient goes with the config of a job, not with --data-path")
        self.refused(2, "eval", "-d", "toy", "-o", "x", says="expected MODEL, found none")
        (self.dir / "job.yaml").write_text("instrument: splat\nname: a\noutput_path: x\nstrategy: mcmc\n")
        self.refused(2, "train", "-c", "job.yaml", says=["output_path", "output_dir"])
        self.no_results("x")

    # ---- captures ----

    def write_transforms(self, name, change=lambda root: None):
        """A capture with a transforms.json of two frames, without points."""
        folder = self.dir / name
        folder.mkdir()
        for v in range(2):
            shutil.copy(self.dir / f"toy/images/view_000{v}.png", folder / f"{v}.png")
        pose = np.eye(4)
        pose[2, 3] = 4
        root = {"w": 48, "h": 40, "fl_x": 40, "fl_y": 40,
                "frames": [{"file_path": f"{v}.png", "transform_matrix": pose.tolist()} for v in range(2)]}
        change(root)
        (folder / "transforms.json").write_text(json.dumps(root))
        return folder

    def test_two_views_of_one_image(self):
        self.write_transforms("twins", lambda r: r["frames"][1].update(file_path="0.png"))
        for words in (["info", "twins"], ["train", "-d", "twins", "-o", "x", "-i", 2],
                      ["render", "toy/truth.ply", "--cameras", "twins/transforms.json", "-o", "x"]):
            self.refused(3, *words, says=["'0.png'", "views 0 and 1"])
        folder = self.write_transforms("stems", lambda r: r["frames"][1].update(file_path="0.jpg"))
        shutil.copy(folder / "1.png", folder / "0.jpg")
        self.ok("info", "stems")  # results of a rendering would be one file, the images are two
        self.refused(3, "render", "toy/truth.ply", "-d", "stems", "-o", "x", says=["'0.jpg'", "without its ending"])
        self.no_results("x")

    def test_numbers_of_captures(self):
        self.write_transforms("no_focal", lambda r: r.pop("fl_y"))
        self.refused(3, "info", "no_focal", says=["frames[0].fl_y", "found no number"])
        self.write_transforms("no_pose", lambda r: r["frames"][1]["transform_matrix"].pop())
        self.write_transforms("short_pose", lambda r: r["frames"][1]["transform_matrix"][2].pop())
        self.refused(3, "info", "short_pose", says=["frames[1].transform_matrix", "found no number"])
        folder = self.copy("nan")
        points = folder / "sparse/0/points3D.bin"
        data = bytearray(points.read_bytes())
        track = struct.unpack_from("<Q", data, 8 + 43)[0]
        second = 8 + 51 + 8 * track
        struct.pack_into("<d", data, second + 8, float("nan"))
        points.write_bytes(data)
        self.refused(3, "info", "nan", says=[f"points3D.bin, byte {second}: point", "expected a finite position, found nan"])
        (folder / "sparse/0/cameras.txt").write_text("1 PINHOLE 48 40 40 40 24 20\n")
        (folder / "sparse/0/images.txt").write_text("1 1 0 0 0 0 0 4 1 view_0000.png\n\n")
        (folder / "sparse/0/points3D.txt").write_text("# points\n1 0 0 0 1 2 3 0\n2 0 inf 0 1 2 3 0\n")
        points.unlink()
        self.refused(3, "info", "nan", says="points3D.txt:3: point 2: expected a finite position")

    def test_values_of_another_kind_in_transforms(self):
        """A key that is not read would be another camera, without a word."""
        inf = float("inf")
        for k, (key, value, says) in enumerate((
                ("k1", "0.1", 'expected a finite number, found the text "0.1"'), ("k1", inf, "expected a finite number"),
                ("p2", None, "expected a finite number"), ("k4", [0.1], "expected a finite number"),
                ("camera_angle_x", "0.6", "expected a finite number"), ("camera_model", 5, "expected a name in quotes"),
                ("is_fisheye", 1, "expected true or false"))):
            self.write_transforms(f"kind_{k}", lambda r: r.update({key: value}))
            self.refused(3, "info", f"kind_{k}", says=[f"transforms.json: frames[0].{key}: {says}", f"correct {key}"])
        self.write_transforms("kind_of_frame", lambda r: (r.update(k1=0.1), r["frames"][1].update(k1="0")))
        self.refused(3, "info", "kind_of_frame", says="frames[1].k1")
        self.write_transforms("both", lambda r: r.update(camera_model="OPENCV", is_fisheye=True))
        self.refused(3, "info", "both", says="frames[0].is_fisheye: expected false with camera_model OPENCV, found true")

    def test_points_of_transforms(self):
        self.write_transforms("none")
        train, warning = ["train", "-d", "none", "-i", 1], "no point cloud: using"
        self.assertIn(warning, self.said("info", "none"))
        self.assertIn(warning, self.said(*train, "-o", "none_a"))
        self.assertNotIn(warning, self.said(*train, "-o", "none_b", "--random", "--init-num-pts", 50))
        self.assertEqual(len(read_ply(self.dir / "none_b/splat_1.ply")["x"]), 50)
        self.assertNotIn(warning, self.said(*train, "-o", "none_c", "--init-ply", "toy/truth.ply"))
        self.assertNotIn(warning, self.said("render", "toy/truth.ply", "-d", "none", "-o", "none_d"))
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "p.ply").write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\n"
                                          b"property float y\nproperty float z\nend_header\n" + struct.pack("<3f", 1, 2, 3))
        image = str(self.dir / "toy/images/view_0000.png")

        def change(root):
            root["ply_file_path"] = str(elsewhere / "p.ply")
            root["frames"][0]["file_path"] = image
        self.write_transforms("absolute", change)
        self.assertEqual(json.loads(self.ok("info", "absolute", "--json").stdout)["points"], 1)
        (elsewhere / "p.ply").write_bytes((elsewhere / "p.ply").read_bytes()[:-4] + struct.pack("<f", float("inf")))
        self.refused(3, "info", "absolute", says=["p.ply, byte 115: point 0", "found inf as z"])

    def test_images_that_are_missing(self):
        folder = self.copy("holes")
        (folder / "images/view_0002.png").unlink()
        done = self.refused(3, "info", "holes", says="1 are missing: view_0002.png")
        self.assertNotIn("--images", done.stderr)
        self.refused(3, "info", "holes", "--images", "pictures", says=["4 are missing", "--images"])
        self.write_transforms("lost", lambda r: r["frames"][0].update(file_path="far/0.png"))
        self.refused(3, "info", "lost", says=["far/0.png", "starts at the folder of the json file"])

    def test_masks(self):
        folder = self.copy("masked")
        masks, train = folder / "masks", ["train", "-d", "masked", "-o", "x", "-i", 6]
        images = [f"view_000{v}.png" for v in range(4)]
        masks.mkdir()
        self.assertNotIn("masks", self.said(*train[:4], "unmasked", "-i", 1))  # an empty folder
        for v, name in ((0, "black.png"), (255, "white.png")):
            write_png(self.dir / name, np.full((40, 48, 3), v, np.uint8))
        black, white = ((self.dir / name).read_bytes() for name in ("black.png", "white.png"))
        (masks / "mask_0.png").write_bytes(white)
        for words in (train, ["eval", "toy/truth.ply", "-d", "masked", "-o", "x"]):
            self.refused(3, *words, says=["masked/masks: expected masks named after the images", "view_0000 or view_0000.png",
                                          "found mask_0.png", "--masks none"])
        (masks / "mask_0.png").unlink()
        for name in images:
            (masks / name).write_bytes(white)
        for v, name in enumerate(images[1:3]):  # heads are looked at before anything else
            (masks / name).write_bytes([b"no image", white[:20]][v])
        self.refused(3, *train, says=["2 of 4 are not: view_0001.png, view_0002.png", "the first: masked/masks/view_0001.png"])
        for name in images:
            (masks / name).write_bytes(black)
        self.refused(3, *train, says=["4 of 4 views fully masked: masked/masks/view_0000.png, masked/masks/view_0001.png",
                                      "inverted?"])
        self.no_results("x")
        (masks / images[3]).write_bytes(white)
        train[4] = "covered"
        told = self.said(*train).splitlines()
        for v in range(4):
            line = f"warning: view '{images[v]}' is not trained on: masked/masks/{images[v]} leaves no pixel"
            self.assertEqual(told.count(line), v < 3)
        self.refused(3, *train, "--fresh", "--eval", "--test-every", 2, says="2 of 2 views fully masked")

    def test_sizes_of_captures(self):
        def turn(root):
            root["frames"][1].update(w=40, h=48, file_path="2.png")
        self.write_transforms("turned", turn)
        self.ok("toy", "-o", "upright", "--views", 1, "--size", "40x48", "--gaussians", 10)
        shutil.copy(self.dir / "upright/images/view_0000.png", self.dir / "turned/2.png")
        self.assertIn("size      48 x 40 px (1 view), 40 x 48 px (1 view)\n", self.ok("info", "turned").stdout)
        self.assertIn("size      48 x 40 px\n", self.ok("info", "toy").stdout)
        self.ok("train", "-d", "turned", "-o", "turned_out", "-i", 6)  # portrait and landscape

    # ---- models ----

    def test_matrices(self):
        rows = [[0, 0, 2, 1], [0, 2, 0, 0], [-2, 0, 0, 0]]
        for more in ([], [[0, 0, 0, 2]], [[0, 0, 1, 1]], [[0, 0, 0]], [[0, 0, 0, 1], [0, 0, 0, 1]]):
            (self.dir / "matrix.json").write_text(json.dumps(rows + more))
            self.refused(3, "convert", "toy/truth.ply", "moved.ply", "--transform", "matrix.json",
                         says=["matrix.json", "0 0 0 1 as the fourth row"])
        (self.dir / "matrix.json").write_text(json.dumps(rows + [[0, 0, 0, 1]]))
        self.ok("convert", "toy/truth.ply", "moved.ply", "--transform", "matrix.json")
        before, after = read_ply(self.dir / "toy/truth.ply"), read_ply(self.dir / "moved.ply")
        np.testing.assert_allclose(after["x"], 2 * before["z"] + 1, atol=1e-5)

    def test_boxes(self):
        self.refused(3, "convert", "toy/truth.ply", "cut.ply", "--crop", "90,90,90,91,91,91",
                     says=["found none of 300", "its means lie in"])
        self.assertFalse((self.dir / "cut.ply").exists())
        self.refused(3, "convert", "toy/truth.ply", "nowhere/cut.ply", says="make its folder first")
        self.refused(2, "convert", "toy/truth.ply", "cut.xyz", says=[".ply", ".spz", ".html"])

    def test_checkpoints_and_folders_as_models(self):
        self.ok("convert", f"short/{CHECKPOINT}", "from_state.ply")
        self.assertEqual((self.dir / "from_state.ply").read_bytes(), (self.dir / "short/splat_20.ply").read_bytes())
        facts = json.loads(self.ok("info", f"short/{CHECKPOINT}", "--json").stdout)
        self.assertEqual((facts["format"], facts["gaussians"], facts["sh_degree"]), ("checkpoint", 150, 1))
        scores = [json.loads(self.ok("eval", model, "-d", "toy", "-o", "scores", "--views", "all", "--json").stdout)["psnr"]
                  for model in ("short", "short/splat_20.ply", f"short/{CHECKPOINT}")]
        self.assertEqual(scores[0], scores[1])
        self.assertAlmostEqual(scores[0], scores[2], places=4)  # rotations of a PLY are units
        self.assertEqual([r["iteration"] for r in rows_of(self.dir / "scores/metrics.csv")], ["20", "20", "20"])
        shutil.copy(self.dir / "toy/truth.ply", self.dir / "short/splat_3.ply")  # the number decides, not the time
        self.assertIn("short/splat_20.ply", self.ok("info", "short").stdout)
        self.assertEqual(json.loads(self.ok("info", "short", "--json").stdout)["gaussians"], 150)
        self.ok("train", "-d", "toy", "-o", "from_state", "--init-ply", f"short/{CHECKPOINT}", "-i", 1)
        self.assertIn("starting from short/splat_20.ply\n",
                      self.said("train", "-d", "toy", "-o", "from_folder", "--init-ply", "short", "-i", 0))
        self.assertEqual((self.dir / "from_folder/splat_0.ply").read_bytes(), (self.dir / "short/splat_20.ply").read_bytes())
        self.refused(3, "train", "-d", "toy", "-o", "x", "--init-ply", "toy", says="toy: expected a model, found a folder")
        self.ok("convert", "short", "short_sog/meta.json")
        self.ok("train", "-d", "toy", "-o", "from_sog", "--init-ply", "short_sog", "-i", 1)
        data = (self.dir / f"short/{CHECKPOINT}").read_bytes()
        (self.dir / "bad.safetensors").write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        self.refused(3, "convert", "bad.safetensors", "bad.ply", says=["bad.safetensors, byte", "is damaged"])
        (self.dir / "bad.safetensors").write_bytes(data.replace(b'"rotation"', b'"rotatoin"', 1))
        self.refused(3, "convert", "bad.safetensors", "bad.ply", says="found no 'rotation'")
        (self.dir / "bad.safetensors").write_bytes(data[:len(data) // 2])
        self.refused(3, "info", "bad.safetensors", says="bad.safetensors")
        self.refused(2, "convert", "toy/truth.ply", "out.safetensors", says="out.safetensors")
        self.refused(3, "eval", "toy", "-d", "toy", "-o", "x", says=["toy: expected a model", "splat_<iteration>.ply"])
        self.assertFalse((self.dir / "bad.ply").exists())

    def test_counts_that_are_not_there(self):
        """Files that promise more than they hold are refused within twice their size and 64 MiB: not for want of memory."""
        ply = (self.dir / "toy/truth.ply").read_bytes()
        files = {"many.ply": ply.replace(b"vertex 300", b"vertex 99999999", 1)}
        header = struct.pack("<IIIBBBB", 0x5053474e, 3, 40000000, 3, 12, 0, 0)
        files["many.spz"] = gzip.compress(header + bytes(10000))
        self.ok("convert", "toy/truth.ply", "few/meta.json")
        shutil.copytree(self.dir / "few", self.dir / "many")
        meta = json.loads((self.dir / "few/meta.json").read_text())
        (self.dir / "many/meta.json").write_text(json.dumps({**meta, "count": 90000000}))
        files["many.safetensors"] = (self.dir / f"short/{CHECKPOINT}").read_bytes().replace(b"[150,3]", b"[15e,3]", 1)
        for name, data in files.items():
            (self.dir / name).write_bytes(data)
        for name in [*files, "many"]:
            path = self.dir / name
            size = sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
            self.refused(3, "convert", name, "many_out.ply", "--memory", 2 * size + (64 << 20), says=name)
        for name, at in (("cameras", 0), ("images", 0), ("points3D", 0)):
            folder = self.copy(f"many_{name}")
            file = folder / f"sparse/0/{name}.bin"
            file.write_bytes(struct.pack("<Q", 10**9) + file.read_bytes()[8:])
            self.refused(3, "info", folder.name, "--memory", "65M", says=[f"{name}.bin, byte 0", "1000000000"])

    def test_flags_of_verbs(self):
        for words, text in ((["eval", "-o", "x", "-r", 3], "expected auto, 1, 2, 4 or 8, found '3'"),
                            (["render", "-o", "x", "--bg", "2,0,0"], "--bg: expected r,g,b from 0 to 1"),
                            (["render", "--video", "x.mp4"], "the extension .avi, found 'x.mp4'"),
                            (["render", "--video", "x.avi", "--render-mode", "D"], "RGB_D")):
            self.refused(2, words[0], "toy/truth.ply", "-d", "toy", *words[1:], says=text)
        told = self.said("render", "toy/truth.ply", "-d", "toy", "-o", "idle_flags", "--fps", 9, "--test-every", 2)
        self.assertIn("warning: --fps has no effect without --video\nwarning: --test-every has no effect without --views\n", told)
        self.refused(2, "densify", "toy/truth.ply", "--iteration", 600, "--strategy", "mcmc", "-o", "x.html", says="splat convert")
        self.refused(2, "bench-densify", "--n", 10**10, says="expected 1 to 1000000000 rows")
        self.refused(2, "densify", "toy/truth.ply", "-o", "x.ply", says="--iteration")
        self.refused(4, "train", "-d", "toy", "-o", "x", "--memory", "1K", says="raise --memory")
        self.copy("own")
        before = (self.dir / "own/images/view_0000.png").read_bytes()
        for words in (["train", "-d", "own", "-o", "own/", "-i", 2], ["eval", "toy/truth.ply", "-d", "own", "-o", "own"],
                      ["render", "toy/truth.ply", "-d", "own", "-o", "own/images", "--format", "png"]):
            self.refused(3, *words, says="it is read")
        self.assertEqual((self.dir / "own/images/view_0000.png").read_bytes(), before)
        self.no_results("x")

    def test_more_rows_than_the_cap(self):
        text = self.said("train", "-d", "toy", "-o", "capped", "-i", 2, "--max-cap", 10)
        self.assertIn("max_cap is 10, below the 150 Gaussians", text)
        text = self.said("densify", "toy/truth.ply", "--iteration", 600, "--strategy", "mcmc", "--set", "max_cap=10", "-o", "same.ply")
        self.assertIn("max_cap is 10, below the 300 Gaussians of toy/truth.ply", text)
        done = self.ok("densify", "toy/truth.ply", "--iteration", 600, "--strategy", "mcmc", "--set", "min_opacity=1", "-o",
                       "same.ply")
        self.assertIn("dead 300 ", done.stdout)  # none could be moved

    def test_what_an_interrupted_training_says(self):
        p = subprocess.Popen([PROGRAM, "splat", "train", "-d", "toy", "-o", "ended", "-i", "90000"], cwd=self.dir,
                             stderr=subprocess.PIPE, text=True)
        while not (self.dir / "ended/loss.csv").exists() and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        text = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, 6, text)
        self.assertRegex(text, r"interrupted after iteration \d+ of 90000")
        self.assertNotIn("%", text)  # of one step, which nobody asked for


if __name__ == "__main__":
    unittest.main()
