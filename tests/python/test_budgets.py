"""A budget is refused before anything has begun, or it is enough: a stage of every instrument and the
image of bragg, at some budgets around the smallest that is predicted. All of them: long_budgets.py.
seconds: 40"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
HKL = ROOT / "tests/golden/bragg/inputs/P1_full.hkl"
NO_FIT = "FTH-PLAN-002"
BELOW, ABOVE = 16, 64  # KiB around the smallest budget

CONFIGS = {
    "bragg": """
crystal: {hkl: small.hkl, cell: [28, 33, 38, 90, 95, 90], N: 5, mosaic: 0.5, domains: 3}
beam: {lambda: 1.0}
detector: {distance: 100, pixel: 0.8, pixels: [96, 80]}
scan: {osc: 1, steps: 3, frames: 2}
figures: {dpi: 40}
""",
    "sounding": """
survey: {cells: 3000, bumps: 9}
model: {basis: waves, order: 1}
fit: {iterations: 10}
analyze: {side: 33}
figures: {dpi: 60}
""",
    "spatial": f"""
dataset: anndata
preprocessing: {{path: {ROOT}/configs/demo/spatial/tissue.h5ad, coord_key: spatial, group_column: group}}
model: {{n_components: 4, spatial: true, num_inducing: 60, lengthscale: 50.0}}
training: {{max_iter: 4, batch_size: 600}}
""",
    "ptycho": """
losses: [nll]
algorithms: [lsqml]
N: 64
size: 160
lines: 40
n_images: 40
buffer: 20
nphotons: 1e7
iterations: 4
batch: 16
gridsize: 1
n_groups: 40
n_filters_scale: 1
nepochs: 1
""",
    "splat": """
toy: {gaussians: 200, views: 8, width: 48, height: 40}
iterations: 20
sh_degree: 1
start_refine: 5
refine_every: 5
stop_refine: 15
enable_eval: true
test_every: 4
eval_steps: [20]
""",
    "focus": """
input: {data_root: out/data, exp: 20250101_toy, microscope: YX1}
toy: {wells: 3, times: 2, planes: 4}
focus: {method: log-smooth, index_map: true}
""",
}
STAGES = {
    "bragg": [("general", s) for s in ("render", "figures")],
    "sounding": [("general", s) for s in ("survey", "fit", "analyze", "figures")],
    "spatial": [("general", s) for s in ("preprocess", "train", "analyze", "figures")],
    "ptycho": [("lsqml", s) for s in ("data", "solve", "evaluate", "figures")] +
              [("nll", s) for s in ("train", "infer", "evaluate", "figures")],
    "splat": [("default", "data")] +
             [(c, s) for c in ("default", "mcmc") for s in ("train", "eval", "figures")],
    "focus": [("general", s) for s in ("index", "fuse", "stitch", "figures")],
}
CRYSTAL = ["-cell", "40", "45", "50", "90", "90", "90", "-hkl", str(HKL), "-N", "6", "-lambda", "1",
           "-distance", "61.3", "-pixel", "0.4", "-noprogress", "-seed", "1"]
# what is drawn at the end; the image in memory, beside every pass; rows of a packed file
IMAGES = {
    "preview": ["--preview", "image.png", "-detpixels", "64"],
    "in memory": ["--preview", "image.png", "-detpixels", "600", "-floatfile", "/dev/null"],
    "packed": ["--cbf", "image.cbf", "-detpixels", "256"],
    "printed": ["-printout_pixel", "3", "4", "-detpixels", "64", "-phisteps", "9", "-osc", "1"],
}


def fathom(*words, cwd):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=cwd, capture_output=True, text=True,
                          timeout=300)


def records(folder):
    return {p.name for p in folder.rglob(".fathom/*.json")}


class Case(unittest.TestCase):
    """`begun`: how far a command that fails had come."""

    def folder(self):
        path = pathlib.Path(tempfile.mkdtemp(prefix="budgets-"))
        self.addCleanup(shutil.rmtree, path, True)
        return path

    def finished(self, instrument):
        """A folder in which every stage of the instrument has run."""
        path = self.folder()
        (path / "general.yaml").write_text(
            f"instrument: {instrument}\nname: job\nseed: 3\noutput_dir: out\n{CONFIGS[instrument]}")
        shutil.copy(ROOT / "configs/demo/bragg/small.hkl", path)
        done = fathom("run", "all", "-c", "general.yaml", "--quiet", "--device", "cpu", cwd=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def smallest(self, words, cwd):
        low, high = 64, 1 << 20  # KiB
        while high - low > 1:
            middle = (low + high) // 2
            done = fathom(*words, "--plan", "--memory", f"{middle}K", cwd=cwd)
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high

    def outcome(self, done, begun, what):
        """Done, or refused as too little for a plan before anything was touched."""
        if done.returncode == 0:
            return True
        code = re.search("error (FTH-[A-Z]+-[0-9]+)", done.stderr)
        self.assertEqual((done.returncode, code and code[1], begun), (4, NO_FIT, False),
                         f"{what}: {done.stderr}")
        return False

    def budgets(self, least, random_ones):
        """From the one below the smallest on; a few at random, or every one."""
        if random_ones is None:
            return range(least - BELOW, least + ABOVE + 1)
        return sorted({least - 1, least} |
                      {random_ones.randint(least - BELOW, least + ABOVE) for _ in range(3)})

    def stage(self, origin, instrument, config, stage, random_ones=None):
        words = [instrument, stage, "-c", config + ".yaml", "--force", "--device", "cpu",
                 "--threads", "2"]
        least = self.smallest(words, origin)
        for budget in self.budgets(least, random_ones):
            here = self.folder()
            shutil.copytree(origin, here, dirs_exist_ok=True)
            before = records(here)
            done = fathom(*words, "--memory", f"{budget}K", cwd=here)
            fits = self.outcome(done, records(here) < before, f"{instrument} {stage} {budget}K")
            self.assertEqual(fits, budget >= least, f"{instrument} {stage} {budget}K")
            shutil.rmtree(here)

    def image(self, name, random_ones=None):
        words = ["bragg", "--compat", "c", "--device", "cpu", "--threads", "2", *IMAGES[name], *CRYSTAL]
        here = self.folder()

        def at(budget):
            for path in here.iterdir():
                path.unlink()
            done = fathom(*words, "--memory", f"{budget}K", cwd=here)
            return self.outcome(done, bool(done.stdout) or any(here.iterdir()), f"{name} {budget}K")

        low, high = 2048, 1 << 20  # a smaller budget has no room for structure factors
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) else (middle, high)
        for budget in self.budgets(high, random_ones):
            self.assertEqual(at(budget), budget >= high, f"{name} {budget}K")

    def view(self, random_ones=None):
        words = ["ptycho", "view", "r.npz", "--out", "v", "--device", "cpu"]
        here = self.folder()
        found, = self.finished("ptycho").glob("out/lsqml/reconstruction.npz")
        shutil.copy(found, here / "r.npz")

        def at(budget):
            shutil.rmtree(here / "v", True)
            done = fathom(*words, "--memory", f"{budget}K", cwd=here)
            return self.outcome(done, (here / "v").exists(), f"ptycho view {budget}K")

        low, high = 4096, 1 << 20  # a smaller budget has no room for the arrays
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) else (middle, high)
        for budget in self.budgets(high, random_ones):
            self.assertEqual(at(budget), budget >= high, f"ptycho view {budget}K")


class Budgets(Case):
    def setUp(self):
        seed = os.environ.get("FTH_TEST_SEED") or str(random.randrange(1 << 32))
        print(f"FTH_TEST_SEED={seed}")
        self.random = random.Random(seed)

    def test_stages(self):
        for instrument, stages in STAGES.items():
            with self.subTest(instrument):
                self.stage(self.finished(instrument), instrument, *self.random.choice(stages),
                           random_ones=self.random)

    def test_images(self):
        for name in IMAGES:
            with self.subTest(name):
                self.image(name, self.random)

    def test_view(self):
        self.view(self.random)


if __name__ == "__main__":
    unittest.main()
