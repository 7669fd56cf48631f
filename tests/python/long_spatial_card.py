"""spatial on a card at sizes that matter there: equal bytes at 256 MiB, 8 GiB and 64 GiB and after being killed, how busy
the card is over 20,000 steps of a real size, several jobs at a time. FATHOM_CARD_STEPS and FATHOM_CARD_CELLS make it
smaller, FATHOM_CARD_DEVICE=cpu tries the cases themselves.
FATHOM_TEST_DEVICE names the backend. seconds: 300"""
import hashlib
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
BACKEND = os.environ.get("FATHOM_TEST_DEVICE", "")
STEPS = int(os.environ.get("FATHOM_CARD_STEPS", "20000"))
DEVICE = os.environ.get("FATHOM_CARD_DEVICE", "cuda")
CELLS = int(os.environ.get("FATHOM_CARD_CELLS", "20000"))
MODELS = {"pnmf": "spatial: false", "svgp": "spatial: true", "lcgp": "spatial: true, local: true"}
CONFIG = """instrument: spatial
name: card
seed: 1
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}}}
model: {{{model}, n_components: 10, num_inducing: {points}, K: 20, lengthscale: 20}}
training: {{max_iter: {steps}, learning_rate: 0.002, batch_size: {batch[0]}, y_batch_size: {batch[1]}, checkpoint_interval: 20, tol: 0}}
"""


def setUpModule():
    if not BACKEND:
        raise unittest.SkipTest("FATHOM_TEST_DEVICE names no backend")


class Tissue(unittest.TestCase):
    cells, genes, density, points, batch = CELLS, 400, "0.2", 300, (4000, 200)

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-card-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.fathom("toy", "--cells", str(cls.cells), "--genes", str(cls.genes), "--factors", "10", "--sampler", "near",
                   "--density", cls.density,
                   "-o", str(cls.folder / "toy"), "--device", "cpu")
        config = cls.config("svgp", 10)
        said = cls.fathom("train", "-c", str(config), "--plan", "--device", DEVICE, code=None)
        if "FTH-DEV-001" in said:
            raise unittest.SkipTest("no card: it cannot be used")
        cls.fathom("preprocess", "-c", str(config), "--device", "cpu")

    @classmethod
    def config(cls, model, steps, name=None):
        path = cls.folder / f"{name or model}.yaml"
        path.write_text(CONFIG.format(out=cls.folder / "out", toy=cls.folder / "toy", model=MODELS[model], steps=steps,
                                      points=cls.points, batch=cls.batch))
        return path

    @classmethod
    def fathom(cls, *words, code=0, verb="spatial", **more):
        done = subprocess.run([PROGRAM, *([verb] if verb else []), *words], capture_output=True, text=True, env={**os.environ, **more})
        if code is not None and done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def train(self, model, steps, *words, code=0, force=True, **more):
        start = time.time()
        said = self.fathom("train", "-c", str(self.config(model, steps)), "--device", DEVICE, *(("--force",) if force else ()),
                           *words, code=code, **more)
        return said, time.time() - start

    def digest(self, model):
        return hashlib.sha256((self.folder / "out" / model / "model.safetensors").read_bytes()).hexdigest()


class Bytes(Tissue):
    def test_budgets_change_nothing(self):
        for model in MODELS:
            digests = {}
            for budget in ("256M", "8G", "64G"):
                said, seconds = self.train(model, 60, "--device-memory", budget)
                digests[budget] = self.digest(model)
                print(f"{model} within {budget}: {seconds:.1f} s, {re.search('ledger.*', said)[0]}, {re.search('growth.*', said)[0]}", flush=True)
                self.assertNotIn("NOT AS PLANNED", said)
            self.assertEqual(len(set(digests.values())), 1, model)

    def test_killed_and_resumed(self):
        for model in MODELS:
            self.train(model, 60)
            first = self.digest(model)
            os.remove(self.folder / "out" / model / "model.safetensors")
            self.train(model, 60, code=-9, FATHOM_KILL_AT="iteration:47")
            self.train(model, 60, force=False)
            self.assertEqual(self.digest(model), first, model)


class Busy(Tissue):
    """The tissue whose steps bench/spatial_device.c times."""
    cells, genes, density, points, batch = 2 * CELLS + 1786, 4018, "0.05", 1000, (7000, 2000)

    def test_the_card_is_busy(self):
        said, seconds = self.train("svgp", STEPS, "--monitor", "1", "--set", "training.checkpoint_interval=5000")
        rows = []
        log = self.folder / "out" / "svgp" / "gpu_monitor.log"
        heads = []
        for line in (log.read_text().splitlines() if log.exists() else []):
            words = line.split()
            if words[:2] == ["#", "gpu"] or words[:1] == ["#gpu"]:
                heads = line.replace("#", " ").split()
            elif words and not line.startswith("#") and "sm" in heads:
                value = words[heads.index("sm")]
                if value.isdigit():
                    rows.append(int(value))
        rows = rows[2:-2]  # reading and writing
        device = re.search(r"device +([0-9.]+) s of kernels in ([0-9.]+) s", said)
        share = sum(rows) / len(rows) if rows else float("nan")
        print(f"{STEPS} steps of svgp in {seconds:.1f} s; kernels {device[1]} s of {device[2]} s; NVML says busy {share:.1f} % of the "
              f"time ({len(rows)} samples)", flush=True)
        self.assertGreaterEqual(share, 90.0)


class Jobs(Tissue):
    def test_several_at_a_time(self):
        steps = min(STEPS, 600)
        general = self.folder / "jobs"
        general.mkdir()
        for model in MODELS:
            text = self.config(model, steps).read_text().replace(str(self.folder / "out"), str(self.folder / f"out_{model}"))
            text = text.replace("checkpoint_interval: 20", "checkpoint_interval: 5000")  # it is not about the disk
            (general / f"{model}.yaml").write_text(text)
        start = time.time()
        said = self.fathom("-c", str(general), "--skip-general", "--device", DEVICE, "--no-live", "preprocess", "train", "analyze",
                           verb="run")
        status = json.loads((general / "run_status.json").read_text())
        spans = {}
        for name, job in status["jobs"].items():
            self.assertEqual(job["status"], "completed", said)
            spans[name] = {stage: (of.get("device"), round(of["elapsed"], 1)) for stage, of in job["stages"].items()}
            self.assertIn(DEVICE, json.dumps(job), name)
        print(f"{len(spans)} jobs in {time.time() - start:.1f} s: {spans}", flush=True)
        self.assertEqual(len(spans), len(MODELS))


if __name__ == "__main__":
    unittest.main()
