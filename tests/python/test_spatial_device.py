"""Every model of spatial on a device, from preprocessing to project: the CPU's numbers, and equal bytes for any
budget, number of workers and interruption. FATHOM_TEST_DEVICE names the backend. seconds: 240"""
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
BACKEND = os.environ.get("FATHOM_TEST_DEVICE", "")
MODELS = ("pnmf", "svgp", "mggp_svgp", "lcgp", "mggp_lcgp")
CONFIG = """instrument: spatial
name: toy
seed: 1
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}}}
model: {{n_components: 3, num_inducing: 30, K: 6, lengthscale: 20}}
training: {{max_iter: 12, learning_rate: 0.01, batch_size: 64, y_batch_size: 24, checkpoint_interval: 5}}
"""


def setUpModule():
    if not BACKEND:
        raise unittest.SkipTest("FATHOM_TEST_DEVICE names no backend")


def is_card():
    return os.path.basename(BACKEND) == "libfathom_cuda.so"


class Tissue(unittest.TestCase):
    """A small tissue, and the program with the backend beside its library."""
    made = ()  # further options of the toy

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-spatial-device-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        home = cls.folder / "lib"
        home.mkdir()
        for library in glob.glob(os.path.join(os.path.dirname(os.environ["FATHOM_LIBRARY"]), "libfathom.so*")):
            os.symlink(os.path.realpath(library), home / os.path.basename(library))
        os.symlink(BACKEND, home / "libfathom_cuda.so")
        # kernels are compiled, and kept here, for a card alone: an emulated one interprets them
        cache = {"XDG_CACHE_HOME": str(cls.folder / "cache")} if is_card() else {"XDG_CACHE_HOME": "", "HOME": ""}
        beside = os.path.dirname(os.environ["FATHOM_LIBRARY"])  # of a bundle: the libraries that ours need
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": f"{home}:{beside}", **cache}
        toy = ("spatial", "toy", "--cells", "200", "--genes", "40", "--factors", "3", "--groups", "3",
               "--lengthscale", "20", "--seed", "5", *cls.made, "-o", str(cls.folder / "toy"))
        if is_card():
            said = cls.fathom(*toy, "--device", "cuda", "--plan", code=None)
            if "FTH-DEV-001" in said:
                raise unittest.SkipTest("there is no card that can be used")
        cls.fathom(*toy, "--device", "cpu")
        for name in ("cpu", "card"):
            place = cls.folder / name
            place.mkdir()
            general = place / "toy.yaml"
            general.write_text(CONFIG.format(out=place / "out", toy=cls.folder / "toy"))
            cls.fathom("spatial", "generate", "-c", str(general))
            cls.fathom("spatial", "preprocess", "-c", str(general), "--device", "cpu")

    @classmethod
    def fathom(cls, *words, code=0, **more):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=200,
                              env={**cls.environment, **more})
        if code is not None and done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def stage(self, where, stage, model, *words, device="cuda", code=0, **more):
        place = "cpu" if where == "cpu" else "card"
        memory = () if "--device-memory" in words or where == "cpu" else ("--device-memory", "256M")
        return self.fathom("spatial", stage, "-c", str(self.folder / place / f"{model}.yaml"), "--force", "--memory",
                           "1G", "--device", "cpu" if where == "cpu" else device, *memory, *words, code=code, **more)

    def path(self, where, model, name):
        return self.folder / where / "out" / model / name

    def digest(self, model, name="model.safetensors"):
        return hashlib.sha256(self.path("card", model, name).read_bytes()).hexdigest()


def tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    kinds = {"F32": "f4", "F64": "f8", "I32": "i4", "I64": "i8"}
    return {name: np.frombuffer(data[slice(*of["data_offsets"])], kinds[of["dtype"]])
            for name, of in header.items() if name != "__metadata__" and of["dtype"] in kinds}


def apart(a, b):
    """The largest difference, as a share of the largest number."""
    return float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30))


class Agreement(Tissue):
    # Covariances of neighbours are close to singular, and Adam divides small slopes by their size: of the local
    # models means and loadings are compared. Golden cases compare all of them (golden/test_spatial_train.c).
    def agree(self, model):
        self.stage("cpu", "train", model)
        said = self.stage("card", "train", model)
        self.assertRegex(said, r"device +[0-9.]+ s of kernels in [0-9.]+ s .*, bound by")
        ours, theirs = (tensors(self.path(where, model, "model.safetensors")) for where in ("card", "cpu"))
        self.assertEqual(sorted(ours), sorted(theirs))
        for name in ("W", "mean", "raw", "mu") + (() if "lcgp" in model else ("Lu_raw",)):
            if name in ours:
                self.assertLess(apart(theirs[name], ours[name]), 1e-5, name)
        self.assertLess(apart(theirs["elbo_history"], ours["elbo_history"]), 1e-4)
        self.stage("cpu", "analyze", model)
        self.assertIn("bound by", self.stage("card", "analyze", model))
        for name in ("factors.npy", "loadings.npy"):
            a, b = (np.load(self.path(where, model, name)) for where in ("cpu", "card"))
            self.assertLess(apart(a, b), 1e-5, name)
        projected = self.folder / f"projected_{model}"
        self.fathom("spatial", "project", "-m", str(self.path("card", model, "model.safetensors")), "--data",
                    str(self.folder / "card" / "out"), "-o", str(projected), "--device", "cuda", "--memory", "1G",
                    "--device-memory", "256M")
        if model != "pnmf":  # which is fitted anew
            factors = np.load(self.path("card", model, "factors.npy"))
            self.assertLess(apart(factors, np.load(projected / "factors.npy")), 1e-5)


class Models(Agreement):
    pass


class Sections(Agreement):
    """Covariances end at the gap between sections."""
    made = ("--sections", "2")


def add(to, model):
    setattr(to, f"test_{model}_is_that_of_the_cpu", lambda self: self.agree(model))


for each in MODELS:
    add(Models, each)
for each in ("svgp", "mggp_svgp", "lcgp"):
    add(Sections, each)


class Bytes(Tissue):
    def test_budgets_workers_and_looks_change_nothing(self):
        for model in ("pnmf", "mggp_svgp", "lcgp"):
            self.stage("card", "train", model)
            first = self.digest(model)
            for words in (("--threads", "1"), ("--device-memory", "4M"), ("--set", "training.log_every=1"),
                          ("--set", "training.log_every=7")):
                with self.subTest(model=model, words=words):
                    self.stage("card", "train", model, *words)
                    self.assertEqual(self.digest(model), first)

    def test_small_budgets_hold_less_and_give_the_same(self):
        """Down to the smallest that is not refused; each refusal says what would fit."""
        for model in ("pnmf", "lcgp"):
            self.stage("card", "train", model)
            first, tried = self.digest(model), 0
            least = 1024
            for _ in range(2):  # one for what is computed once, one for the steps
                said = self.stage("card", "train", model, "--plan", "--device-memory", str(least), code=None)
                fits = re.search(r"would fit: --device-memory (\d+)", said)
                least = int(fits.group(1)) if fits else least
            for bytes_ in (least, least + 4096, least + 20000, 2 * least):
                with self.subTest(model=model, bytes=bytes_):
                    self.stage("card", "train", model, "--device-memory", str(bytes_))
                    self.assertEqual(self.digest(model), first)
                    tried += 1
            self.assertEqual(tried, 4)

    def test_killed_and_resumed_ends_with_the_same_bytes(self):
        for model in ("pnmf", "svgp"):
            self.stage("card", "train", model)
            first = self.digest(model)
            for point in ("iteration:3", "after_checkpoint:1", "iteration:8"):
                with self.subTest(model=model, point=point):
                    os.remove(self.path("card", model, "model.safetensors"))
                    self.stage("card", "train", model, code=-9, FATHOM_KILL_AT=point)
                    self.fathom("spatial", "train", "-c", str(self.folder / "card" / f"{model}.yaml"), "--memory",
                                "1G", "--device", "cuda", "--device-memory", "256M")
                    self.assertEqual(self.digest(model), first)


class Natural(Tissue):
    """Natural gradients of pnmf."""

    SETS = ("--set", "model.training_mode=natural", "--set", "training.learning_rate=0.5")

    def test_they_are_those_of_the_cpu(self):
        self.stage("cpu", "train", "pnmf", *self.SETS)
        self.stage("card", "train", "pnmf", *self.SETS)
        first = self.digest("pnmf")
        ours, theirs = (tensors(self.path(where, "pnmf", "model.safetensors")) for where in ("card", "cpu"))
        for name in ("W", "theta1", "theta2"):
            self.assertLess(apart(theirs[name], ours[name]), 1e-4, name)
        self.assertLess(apart(theirs["elbo_history"], ours["elbo_history"]), 1e-4)
        for words in (("--threads", "1"), ("--device-memory", "4M"), ("--set", "training.log_every=7")):
            with self.subTest(words=words):
                self.stage("card", "train", "pnmf", *self.SETS, *words)
                self.assertEqual(self.digest("pnmf"), first)


class Dispersed(Tissue):
    """Negative binomial counts and sizes of cells."""

    SETS = ("--set", "model.likelihood=nb", "--set", "model.size_factors=total")

    def test_they_are_those_of_the_cpu(self):
        for model in ("pnmf", "svgp"):
            with self.subTest(model=model):
                self.stage("cpu", "train", model, *self.SETS)
                self.stage("card", "train", model, *self.SETS)
                first = self.digest(model)
                ours, theirs = (tensors(self.path(where, model, "model.safetensors")) for where in ("card", "cpu"))
                for name in ("W", "theta_raw"):
                    self.assertLess(apart(theirs[name], ours[name]), 1e-4, name)
                self.assertLess(apart(theirs["elbo_history"], ours["elbo_history"]), 1e-4)
                for words in (("--threads", "1"), ("--device-memory", "4M")):
                    self.stage("card", "train", model, *self.SETS, *words)
                    self.assertEqual(self.digest(model), first)
                self.stage("cpu", "analyze", model, *self.SETS)
                self.stage("card", "analyze", model, *self.SETS)
                a, b = (json.loads(self.path(where, model, "metrics.json").read_text()) for where in ("cpu", "card"))
                self.assertLess(abs(a["nb_deviance"]["mean"] / b["nb_deviance"]["mean"] - 1), 1e-4)


class Lengthscales(Tissue):
    """A lengthscale of each factor that is trained."""

    def test_they_are_those_of_the_cpu(self):
        for model, more in (("svgp", ("model.parametrization=whitened", "model.likelihood=nb")), ("mggp_svgp", ("model.nonspatial_components=1",)),
                            ("lcgp", ()), ("mggp_lcgp", ("model.nonspatial_components=1",))):
            with self.subTest(model=model):
                sets = [w for each in ("model.train_lengthscale=true", *more) for w in ("--set", each)]
                self.stage("cpu", "train", model, *sets)
                self.stage("card", "train", model, *sets)
                first = self.digest(model)
                ours, theirs = (tensors(self.path(where, model, "model.safetensors")) for where in ("card", "cpu"))
                self.assertEqual(len(ours["log_ell"]), 3)
                self.assertGreater(apart(np.full(3, np.log(20)), ours["log_ell"]), 1e-3)
                for name in ("W", "log_ell", "mu") + (() if "lcgp" in model else ("Lu_raw",)):
                    self.assertLess(apart(theirs[name], ours[name]), 1e-4, name)
                self.assertLess(apart(theirs["elbo_history"], ours["elbo_history"]), 1e-4)
                for words in (("--threads", "1"), ("--device-memory", "4M"), ("--set", "training.log_every=1"), ("--set", "training.log_every=7")):
                    self.stage("card", "train", model, *sets, *words)
                    self.assertEqual(self.digest(model), first, words)
                for point in ("iteration:2", "iteration:4", "after_checkpoint:1"):
                    os.remove(self.path("card", model, "model.safetensors"))
                    self.stage("card", "train", model, *sets, code=-9, FATHOM_KILL_AT=point)
                    self.fathom("spatial", "train", "-c", str(self.folder / "card" / f"{model}.yaml"), "--memory", "1G", "--device", "cuda",
                                "--device-memory", "256M", *sets)
                    self.assertEqual(self.digest(model), first, point)
                for where in ("cpu", "card"):
                    self.stage(where, "analyze", model, *sets)
                a, b = (np.load(self.path(where, model, "factors.npy")) for where in ("cpu", "card"))
                self.assertLess(apart(a, b), 1e-4)


class Refusals(Tissue):
    def test_too_little_memory_is_told_before_anything_runs(self):
        said = self.stage("card", "train", "svgp", "--device-memory", "10K", code=4)
        self.assertIn("10.00 KiB (10240 bytes) are allowed", said)
        self.assertRegex(said, r"would fit: --device-memory \d+")
        self.assertFalse(self.path("card", "svgp", "model.safetensors").exists())

    def test_a_plan_says_what_the_device_holds(self):
        said = self.stage("card", "train", "svgp", "--plan")
        held = re.search(r"foreign ([0-9.]+ \w+)", said).group(1)
        self.assertNotEqual(held, "0 B", said)


if __name__ == "__main__":
    unittest.main()
