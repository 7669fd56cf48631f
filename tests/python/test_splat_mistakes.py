"""What splat says of settings, captures and models that cannot be right, or that a user could mean in another way: exit
codes, the file or key that is named, and that nothing is written.
seconds: 15"""
import json
import pathlib
import shutil
import tempfile
import unittest

from test_splat_train import call, rows_of

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

    def copy(self, name):
        shutil.copytree(self.dir / "toy", self.dir / name)
        return self.dir / name

    # ---- resuming ----

    def test_what_a_resumed_training_cannot_change(self):
        more = ["train", "-d", "toy", "-o", "on", "--resume", f"short/{CHECKPOINT}"]
        self.refused(2, *more, "-i", 30, "--sh-degree", 2, says=["sh_degree is 2", CHECKPOINT, "degree 1"])
        self.refused(2, *more, "-i", 10, says=["expected at most iteration 10", "found 20"])
        self.refused(2, *more, "-i", 30, "--fresh", says=["--fresh", "--resume"])
        self.assertFalse((self.dir / "on/training_config.json").exists())
        self.ok(*more, "-i", 30)
        told = json.loads((self.dir / "on/training_config.json").read_text())
        self.assertEqual(told["optimization"]["sh_degree"], 1)  # that of the rows, not the default

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

    # ---- settings ----

    def test_values_that_a_flag_hides(self):
        self.refused(2, "train", "-d", "toy", "-o", "x", "-i", 3, "--set", "iterations=abc",
                     says="--set iterations: expected an integer")
        self.refused(2, "train", "-d", "toy", "-o", "x", "--set", "foo=3", says="--set foo: there is no such key")
        (self.dir / "hidden.yaml").write_text("max_width: wide\n")
        self.refused(2, "train", "-d", "toy", "-o", "x", "-c", "hidden.yaml", "--max-width", 40, says="hidden.yaml:1:12: max_width")

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
        self.assertFalse((self.dir / "x").exists())


if __name__ == "__main__":
    unittest.main()
