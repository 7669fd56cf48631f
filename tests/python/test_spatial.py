"""The program spatial from outside: configs that it writes, and stages on the sample data.
seconds: 40"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path("tests/golden/spatial").resolve()
MODELS = ("pnmf", "svgp", "mggp_svgp", "lcgp", "mggp_lcgp")


def entries(path):
    """section.key = value of a config, and its top keys in order."""
    found, top, section = {}, [], ""
    for line in path.read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        key, _, value = line.strip().partition(":")
        if not line.startswith(" "):
            section = "" if value.strip() else key
            top.append(key)
        if value.strip():
            found[f"{section}.{key}" if line.startswith(" ") else key] = value.strip()
    return found, top


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-spatial-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Generate(Folder):
    def test_configs_are_those_of_the_public_project(self):
        general = self.folder / "general_test.yaml"
        shutil.copy(GOLDEN / "configs" / "general_test.yaml", general)
        self.fathom("spatial", "generate", "-c", str(general))
        for model in MODELS:
            with self.subTest(model=model):
                ours, top = entries(self.folder / f"{model}.yaml")
                theirs, _ = entries(GOLDEN / "configs" / f"{model}.yaml")
                self.assertEqual(ours, theirs)
                self.assertEqual(top, ["name", "seed", "dataset", "output_dir", "preprocessing", "model", "training"])

    def test_an_edited_config_is_kept(self):
        general = self.folder / "general_test.yaml"
        shutil.copy(GOLDEN / "configs" / "general_test.yaml", general)
        self.fathom("spatial", "generate", "-c", str(general))
        edited = self.folder / "svgp.yaml"
        edited.write_text(edited.read_text().replace("num_inducing: 500", "num_inducing: 50"))
        self.fathom("spatial", "generate", "-c", str(general))
        self.assertIn("num_inducing: 50\n", edited.read_text())


if __name__ == "__main__":
    unittest.main()
