"""The program spatial from outside: configs that it writes, and stages on the sample data.
seconds: 40"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
GOLDEN = pathlib.Path("tests/golden/spatial").resolve()
DEMO = pathlib.Path("configs/demo/spatial").resolve()
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
                self.assertEqual(ours, theirs | {"model.init": "nmf"})  # theirs start from random numbers
                self.assertEqual(top, ["name", "seed", "dataset", "output_dir", "preprocessing", "model", "training"])

    def test_a_start_that_is_given_is_kept(self):
        general = self.folder / "general_test.yaml"
        general.write_text((GOLDEN / "configs" / "general_test.yaml").read_text().replace("model:\n", "model:\n  init: random\n"))
        self.fathom("spatial", "generate", "-c", str(general))
        for model in MODELS:
            self.assertEqual(entries(self.folder / f"{model}.yaml")[0]["model.init"], "random")

    def test_an_edited_config_is_kept(self):
        general = self.folder / "general_test.yaml"
        shutil.copy(GOLDEN / "configs" / "general_test.yaml", general)
        self.fathom("spatial", "generate", "-c", str(general))
        edited = self.folder / "svgp.yaml"
        edited.write_text(edited.read_text().replace("num_inducing: 500", "num_inducing: 50"))
        self.fathom("spatial", "generate", "-c", str(general))
        self.assertIn("num_inducing: 50\n", edited.read_text())


class Settings(Folder):
    """Device and budget of a config: the flags win, and asking for a device is never forgotten."""

    def config(self, device):
        path = self.folder / "pnmf.yaml"
        path.write_text(f"instrument: spatial\nname: a\ndataset: anndata\noutput_dir: {self.folder}/out\n"
                        f"preprocessing: {{path: {DEMO}/tissue.h5ad, coord_key: spatial}}\n"
                        f"model: {{spatial: false}}\ntraining: {{max_iter: 2, {device}}}\n")
        return str(path)

    def test_gpu_is_auto_with_a_notice(self):
        config = self.config("device: gpu")
        self.assertIn("gpu is taken as auto", self.fathom("spatial", "preprocess", "-c", config))
        self.fathom("run", "train", "-c", config, "--no-live")

    @unittest.skipIf(shutil.which("nvidia-smi"), "there is a GPU")
    def test_cuda_is_never_replaced(self):
        config = self.config("device: cuda:0")
        self.fathom("spatial", "preprocess", "-c", config, code=5)
        text = self.fathom("run", "all", "-c", config, "--no-live", code=1)
        self.assertIn("cuda:0", text)
        self.fathom("run", "preprocess", "-c", config, "--no-live", "--device", "cpu")

    def test_budget(self):
        config = self.config("memory_budget: 1M")
        self.fathom("spatial", "preprocess", "-c", config, code=4)
        self.assertNotEqual(subprocess.run([PROGRAM, "run", "preprocess", "-c", config, "--no-live"], capture_output=True).returncode, 0)
        self.fathom("spatial", "preprocess", "-c", config, "--memory", "1G")


class Changed(Folder):
    """A source or a key that changed since: 'fathom run' makes it again, a stage by hand asks first."""

    def toy(self, seed):
        self.fathom("spatial", "toy", "-o", str(self.folder / "toy"), "--side", "12", "--genes", "20", "--factors", "2",
                    "--seed", str(seed), "--h5ad", str(self.folder / "t.h5ad"))

    def write(self, name="c", scale=200):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ndataset: anndata\noutput_dir: {self.folder}/out\npreprocessing:\n"
                        f"  path: {self.folder}/t.h5ad\n  spatial_scale: {scale}\n"
                        "model:\n  spatial: false\n  n_components: 2\ntraining:\n  max_iter: 20\n")
        return str(path)

    def run_them(self, *stages, config, code=0):
        return self.fathom("run", *stages, "-c", config, "--no-live", code=code)

    def states(self):
        view = json.loads(self.fathom("status", str(self.folder / "out"), "--json"))
        exported = json.loads((self.folder / "out" / "run_status.json").read_text())["jobs"]
        stages = {name: stage["status"] for job in exported.values() for name, stage in job["stages"].items()}
        ours = {task["stage"]: task["state"] for task in view["tasks"]}
        self.assertEqual(ours, stages)  # both say the same
        return ours

    def test_what_changed_is_made_again(self):
        self.toy(1)
        config = self.write()
        self.run_them("preprocess", "train", config=config)
        self.toy(2)
        out = self.fathom("spatial", "preprocess", "-c", config, code=2)
        self.assertIn("was made otherwise: source", out)
        self.assertIn("2 completed in", self.run_them("preprocess", "train", config=config))
        config = self.write(scale=100)
        self.assertIn("2 completed in", self.run_them("preprocess", "train", config=config))
        self.assertIn("(2 cached)", self.run_them("preprocess", "train", config=config))
        self.toy(4)  # trained again on a folder that is none of this source any more
        self.run_them("train", "--rerun", "train", config=config)
        self.assertEqual(self.states(), {"preprocess": "stale", "train": "stale"})
        (self.folder / "t.h5ad").write_bytes(b"no tissue")
        self.run_them("preprocess", config=config, code=1)
        self.assertEqual(self.states(), {"preprocess": "failed", "train": "stale"})
        self.toy(3)
        self.assertIn("2 completed in", self.run_them("preprocess", "train", config=config))
        self.assertEqual(self.states(), {"preprocess": "completed", "train": "completed"})

    def test_a_folder_of_another_program_is_not_replaced(self):
        self.toy(1)
        config = self.write()
        self.run_them("preprocess", config=config)
        metadata = self.folder / "out" / "preprocessed" / "metadata.json"
        text = json.loads(metadata.read_text())
        del text["fathom"]
        metadata.write_text(json.dumps(text))
        self.toy(2)
        self.assertIn("it was not written by this program", self.run_them("preprocess", config=config, code=1))


class Diverged(Folder):
    def test_a_rate_that_is_too_high_is_told(self):
        """Every number is finite, and the model is worse than where it started."""
        self.fathom("spatial", "toy", "-o", str(self.folder / "toy"), "--cells", "200", "--genes", "30", "--factors", "2")
        for rate in (10, 0.01):
            config = self.folder / f"{rate}.yaml"
            config.write_text(f"""instrument: spatial
name: rate
dataset: toy
output_dir: {self.folder / str(rate)}
preprocessing: {{path: {self.folder / "toy"}}}
model: {{spatial: true, n_components: 3, num_inducing: 100, lengthscale: 30}}
training: {{max_iter: 60, learning_rate: {rate}, scheduler: none, device: cpu}}
""")
            self.fathom("spatial", "preprocess", "-c", str(config))
            said = self.fathom("spatial", "train", "-c", str(config))
            facts = json.loads((self.folder / str(rate) / "svgp" / "training.json").read_text())
            self.assertEqual("training diverged" in said, rate == 10, said)
            self.assertEqual(facts.get("diverged_since"), 2 if rate == 10 else None)
            if rate == 10:
                self.assertIn("Lower training.learning_rate, which was 10", said)


class Demo(Folder):
    """All five models on the tissue of the demo: what they leave, and what it says."""

    def results(self, out):
        """Bytes of every result; not of logs, records, and the copy of the config."""
        return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()
                and not {".fathom", "logs"} & set(path.parts)
                and path.name not in ("run_status.json", "config.yaml")}

    def check_places(self, out):
        """No result says when, where or on which machine it was made."""
        day, host = time.strftime("%Y-%m-%d"), f'"{os.uname().nodename}"'
        for path, data in self.results(out).items():
            for word in (str(self.folder), str(DEMO), host, day):
                self.assertFalse(word.encode() in data, f"{word} in {path}")

    def check_again(self, general, out):
        """Preprocessing that leaves the same bytes makes nothing run after it."""
        before = self.results(out)
        text = self.fathom("run", "all", "-c", str(general), "--set", f"output_dir={out}", "--set",
                           "figures.dpi=75", "--no-live", "--rerun", "preprocess")
        self.assertIn("16 completed (15 cached)", text)
        self.assertEqual(self.results(out), before)

    def test_all_models(self):
        general = self.folder / "general.yaml"
        general.write_text((DEMO / "general.yaml").read_text())
        out = self.folder / "out"
        self.fathom("run", "all", "-c", str(general), "--set", f"output_dir={out}", "--set", "figures.dpi=75", "--no-live")
        for model in MODELS:
            with self.subTest(model=model):
                folder = out / model
                factors, scales = (np.load(folder / f"{name}.npy") for name in ("factors", "scales"))
                self.assertEqual((factors.shape, factors.dtype), ((1296, 4), np.float32))
                self.assertTrue((factors > 0).all() and (scales > 0).all())
                metrics = json.loads((folder / "metrics.json").read_text())
                moran = metrics["moran_i"]["values"]
                self.assertEqual(moran, sorted(moran, reverse=True))
                self.assertLess(metrics["poisson_deviance"]["mean"], 1.2)
                record = json.loads((out / ".fathom" / f"analyze.{model}.json").read_text())
                self.assertGreater(record["held_bytes"], 0)
                self.assertLessEqual(record["held_bytes"], record["planned_bytes"])
                for figure in ("factors_spatial", "scales_spatial", "diagnostics", "points", "top_genes", "gene_enrichment"):
                    self.assertTrue((folder / "figures" / f"{figure}.png").stat().st_size > 2000, figure)
                self.assertTrue((folder / "results.h5ad").exists())
        self.check_places(out)
        self.check_again(general, out)


if __name__ == "__main__":
    unittest.main()
