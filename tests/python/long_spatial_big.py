"""1.2 million cells with 492 genes within 8 GiB: ten steps of every model, of models of four sections and of every option; analyze,
genes and permutations of types. On a card with FATHOM_BIG_DEVICE=cuda, and FATHOM_BIG_STEPS of them: there plan, ledger and what
the driver counts have to be the same. FATHOM_BIG_TOYS names a folder where the made-up cells stay for the next time, FATHOM_BIG_MODELS
some of the models.
seconds: 5400"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CELLS = int(os.environ.get("FATHOM_BIG_CELLS", "1200000"))
MODELS = {"pnmf": "spatial: false", "svgp": "spatial: true", "mggp_svgp": "spatial: true, groups: true, inducing_allocation: derived",
          "lcgp": "spatial: true, local: true", "mggp_lcgp": "spatial: true, local: true, groups: true"}
WHITENED = "spatial: true, train_lengthscale: true, parametrization: whitened, scale_kl_NM: false"
OPTIONS = {"svgp nb": ("svgp", "spatial: true, likelihood: nb, size_factors: total"),
           "svgp hybrid": ("svgp", "spatial: true, nonspatial_components: 3"),
           "svgp lengthscales": ("svgp", WHITENED),
           "lcgp lengthscales": ("lcgp", "spatial: true, local: true, train_lengthscale: true"),
           "pnmf natural": ("pnmf", "spatial: false, training_mode: natural")}
DEVICE, STEPS = os.environ.get("FATHOM_BIG_DEVICE", "cpu"), int(os.environ.get("FATHOM_BIG_STEPS", "10"))
CHOSEN = (os.environ.get("FATHOM_BIG_MODELS") or " ".join(MODELS)).split()
CONFIG = """
instrument: spatial
name: big
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}, rescale: false}}
model: {{{model}, n_components: 10, loadings_mode: multiplicative, lengthscale: 8.0}}
training: {{max_iter: {steps}, tol: 0, learning_rate: 2e-3, batch_size: 7000, y_batch_size: 2000}}
"""


class Big(unittest.TestCase):
    def fathom(self, *words, device="cpu"):
        start = time.time()
        there = () if device == "cpu" else ("--device-memory", "8G")
        done = subprocess.run([PROGRAM, "spatial", *words, "--memory", "8G", "--device", device, *there], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout + done.stderr, time.time() - start

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-big-", dir=os.environ.get("FATHOM_BIG_DIR")))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def toy(self, name):
        """A folder of made-up cells, made once: "one" section, or its quarters as "four"."""
        made = pathlib.Path(os.environ.get("FATHOM_BIG_TOYS") or self.folder) / f"toy_{name}"
        if made.exists():
            return made
        if name == "one":
            self.fathom("toy", "-o", str(made), "--genes", "492", "--density", "0.05", "--cells", str(CELLS))
            return made
        shutil.copytree(self.toy("one"), made)
        X = np.load(made / "X.npy")
        right, above = (X > np.median(X, axis=0)).T
        np.save(made / "S.npy", right + np.int64(2) * above)
        about = json.loads((made / "metadata.json").read_text())
        about["section_names"] = ["south-west", "south-east", "north-west", "north-east"]
        (made / "metadata.json").write_text(json.dumps(about))
        return made

    def train(self, toy, name, model, settings):
        """The config of a few steps, whose memory was as planned and within 8 GiB."""
        out = self.folder / f"out_{toy.name}"
        config = self.folder / f"{name.replace(' ', '_')}.yaml"
        config.write_text(CONFIG.format(out=out, toy=toy, model=settings, steps=STEPS))
        if not (out / ".fathom" / "preprocess.json").exists():
            self.fathom("preprocess", "-c", str(config))
        text, seconds = self.fathom("train", "-c", str(config), "--force", device=DEVICE)
        found = json.loads((out / model / "training.json").read_text())
        record = json.loads((out / ".fathom" / f"train.{model}.json").read_text())
        process = re.search(r"process .*", text)
        print(f"{name}: {seconds:.0f} s, held {record['held_bytes']}, planned {record['planned_bytes']}; {process and process[0]}", flush=True)
        self.assertEqual(found["n_iterations"], STEPS)
        if DEVICE != "cpu":
            print("    " + "\n    ".join(re.findall(r"(?m)^(?:ledger|growth|device).*", text)), flush=True)
            self.assertNotIn("NOT AS PLANNED", text)
            self.assertLessEqual(record["device_planned_bytes"], 8 << 30)
            self.assertEqual(*re.search(r"ledger +(\d+) bytes, planned (\d+)", text).groups())
        self.check(record)
        return config, out / model

    def check(self, record):
        self.assertLessEqual(record["planned_bytes"], 8 << 30)
        self.assertLessEqual(record["held_bytes"], record["planned_bytes"])

    def test_ten_steps(self):
        toy = self.toy("one")
        for model in CHOSEN:
            with self.subTest(model=model):
                shutil.rmtree(self.train(toy, model, model, MODELS[model])[1])

    def test_options(self):
        toy = self.toy("one")
        for name, (model, settings) in OPTIONS.items():
            with self.subTest(option=name):
                if model in CHOSEN:
                    shutil.rmtree(self.train(toy, name, model, settings)[1])

    def test_sections(self):
        """Four sections in one model, then its analysis and p-values of genes in types of cells."""
        toy = self.toy("four")
        for model in CHOSEN:
            with self.subTest(sections=model):
                config, folder = self.train(toy, f"sections {model}", model, MODELS[model])
                about = json.loads((folder.parent / "preprocessed" / "metadata.json").read_text())
                self.assertEqual(len(about["sections"]["cells"]), 4)
                if model == "mggp_svgp":
                    self.analyze(config, folder)
                shutil.rmtree(folder)

    def analyze(self, config, folder):
        _, seconds = self.fathom("analyze", "-c", str(config), device=DEVICE)
        record = json.loads((folder.parent / ".fathom" / f"analyze.{folder.name}.json").read_text())
        print(f"analyze: {seconds:.0f} s, held {record['held_bytes']}, planned {record['planned_bytes']}", flush=True)
        self.check(record)
        text, seconds = self.fathom("genes", "-c", str(config), "--enrichment-permutations", "20")
        growth = re.search(r"process .*", text)
        print(f"genes with 20 permutations: {seconds:.0f} s; {growth and growth[0]}", flush=True)
        self.assertTrue((folder / "enrichment_p.csv").exists())


if __name__ == "__main__":
    unittest.main()
