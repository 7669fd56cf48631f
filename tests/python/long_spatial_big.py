"""1.2 million cells with 492 genes: ten steps of every model within 8 GiB; on a card with FATHOM_BIG_DEVICE=cuda, and
FATHOM_BIG_STEPS of them. There plan, ledger and what the driver counts have to be the same.
FATHOM_BIG_TOY names a folder that 'fathom spatial toy' made before, FATHOM_BIG_MODELS some of the models.
seconds: 2400"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
CELLS = int(os.environ.get("FATHOM_BIG_CELLS", "1200000"))
MODELS = {"pnmf": "spatial: false", "svgp": "spatial: true", "mggp_svgp": "spatial: true, groups: true, inducing_allocation: derived",
          "lcgp": "spatial: true, local: true", "mggp_lcgp": "spatial: true, local: true, groups: true"}
DEVICE, STEPS = os.environ.get("FATHOM_BIG_DEVICE", "cpu"), int(os.environ.get("FATHOM_BIG_STEPS", "10"))
CHOSEN = (os.environ.get("FATHOM_BIG_MODELS") or " ".join(MODELS)).split()
CONFIG = """
instrument: spatial
name: big
dataset: toy
output_dir: {folder}/out
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

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-big-", dir=os.environ.get("FATHOM_BIG_DIR")))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.toy = os.environ.get("FATHOM_BIG_TOY")
        if not self.toy:
            self.toy = self.folder / "toy"
            self.fathom("toy", "-o", str(self.toy), "--cells", str(CELLS), "--genes", "492", "--density", "0.05")

    def test_ten_steps(self):
        for i, model in enumerate(CHOSEN):
            with self.subTest(model=model):
                config = self.folder / f"{model}.yaml"
                config.write_text(CONFIG.format(folder=self.folder, toy=self.toy, model=MODELS[model], steps=STEPS))
                if i == 0:
                    self.fathom("preprocess", "-c", str(config))
                text, seconds = self.fathom("train", "-c", str(config), device=DEVICE)
                found = json.loads((self.folder / "out" / model / "training.json").read_text())
                record = json.loads((self.folder / "out" / ".fathom" / f"train.{model}.json").read_text())
                process = re.search(r"process .*", text)
                print(f"{model}: {seconds:.0f} s, held {record['held_bytes']}, planned {record['planned_bytes']}; {process and process[0]}", flush=True)
                self.assertEqual(found["n_iterations"], STEPS)
                if DEVICE != "cpu":
                    print("    " + "\n    ".join(re.findall(r"(?m)^(?:ledger|growth|device).*", text)), flush=True)
                    self.assertNotIn("NOT AS PLANNED", text)
                    self.assertLessEqual(record["device_planned_bytes"], 8 << 30)
                    self.assertEqual(*re.search(r"ledger +(\d+) bytes, planned (\d+)", text).groups())
                self.assertLessEqual(record["planned_bytes"], 8 << 30)
                self.assertLessEqual(record["held_bytes"], record["planned_bytes"])
                shutil.rmtree(self.folder / "out" / model)


if __name__ == "__main__":
    unittest.main()
