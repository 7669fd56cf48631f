"""One stage on several ranks of Open MPI, on the cores there are: the bytes of one process.
seconds: 150"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs as t

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TISSUE = os.path.join(ROOT, "configs/demo/spatial/tissue.h5ad")
REFLECTIONS = os.path.join(ROOT, "configs/demo/bragg/small.hkl")
MODELS = ("pnmf", "svgp", "lcgp", "mggp_svgp", "mggp_lcgp")
MPIRUN = shutil.which("mpirun")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

SPATIAL = """instrument: spatial
name: tissue
seed: 3
dataset: anndata
output_dir: {out}
preprocessing: {{path: {tissue}, coord_key: spatial, group_column: group}}
model: {{n_components: 4, mode: expanded, loadings_mode: multiplicative, E: 3, kernel: Matern32, lengthscale: 50.0, sigma: 1.0,
  num_inducing: 200, cholesky_mode: exp, K: 12, group_diff_param: 0.1, inducing_allocation: derived}}
training: {{max_iter: {steps}, learning_rate: 2e-2, optimizer: Adam, batch_size: 1200, checkpoint_interval: 5}}
"""
# Large enough that eight ranks have work in every model.
TOY = """instrument: spatial
name: toy
seed: 3
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}, rescale: false}}
model: {{n_components: 8, mode: expanded, loadings_mode: multiplicative, E: 3, kernel: Matern32, lengthscale: 50.0, sigma: 1.0,
  num_inducing: 200, cholesky_mode: exp, K: 40, group_diff_param: 0.1, inducing_allocation: derived}}
training: {{max_iter: 3, learning_rate: 2e-2, optimizer: Adam, batch_size: {cells}, checkpoint_interval: 2}}
"""
CELLS = {"pnmf": 16000, "svgp": 2600, "lcgp": 2600, "mggp_svgp": 2600, "mggp_lcgp": 2600}
SERIES = """instrument: bragg
name: stills
output_dir: {out}
crystal: {{hkl: {hkl}, cell: [28, 33, 38, 90, 95, 90], N: 8, shape: round, water: 0.01, mosaic: 0.5, domains: 20}}
beam: {{lambda: 1.3, dispersion: 1, dispsteps: 5}}
detector: {{convention: xds, distance: 110, pixel: 0.32, pixels: 300}}
stills: {{count: 3, spread: 0.3}}
sampling: {{oversample: 1}}
output: {{counts: true, gzip: 3, cbf: true, noise: true}}
"""
IMAGE = ("-cell", "70", "70", "70", "90", "90", "90", "-N", "5", "-default_F", "100", "-lambda", "1", "-distance", "100",
         "-detpixels", "400", "-seed", "7", "-mosaic_spread", "1", "-mosaic_domains", "4")


def command(ranks):
    return [MPIRUN, "--oversubscribe", "-n", str(ranks), t.PROGRAM] if ranks > 1 else [t.PROGRAM]


def pids(root, rank):
    """Processes of one rank below a folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                variables = f.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read()
        except OSError:
            continue
        if f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables and root.encode() in words and words.startswith(t.PROGRAM.encode()):
            found.append(int(pid))
    return found


class Case(unittest.TestCase):
    def setUp(self):
        if not MPIRUN:
            self.skipTest("there is no mpirun")
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="fathom-ranks-"))
        self.addCleanup(shutil.rmtree, self.root)

    def wait_for_end(self, seconds):
        """No rank of a run below this folder is alive after so long."""
        end = time.monotonic() + seconds
        while (alive := [p for r in range(3) for p in pids(self.root, r)]) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(alive, [])

    def call(self, ranks, *words, code=0, cwd=None, **environment):
        done = subprocess.run([*command(ranks), *words], capture_output=True, text=True, timeout=120, cwd=cwd or self.root,
                              env={**os.environ, **AS_ROOT, **environment})
        self.assertEqual(done.returncode, code, f"{ranks} ranks of {words}: {done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def tree(self, path):
        """Results below a folder: what was measured and where it was does not count."""
        files = {}
        for folder, _, names in os.walk(path):
            for name in names:
                file = os.path.join(folder, name)
                if "/.fathom/" in file or name == "config.yaml":
                    continue
                with open(file, "rb") as f:
                    files[os.path.relpath(file, path)] = f.read()
        return files

    def same(self, one, other, what):
        a, b = self.tree(one), self.tree(other)
        self.assertEqual(sorted(a), sorted(b), what)
        for name in a:
            if not name.endswith("metrics.json"): # seconds and bytes as measured
                self.assertEqual(a[name], b[name], f"{what}: {name}")

    def hidden(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names
                if name.startswith(".") or name.endswith((".tmp", ".part"))]


class Spatial(Case):
    def config(self, name, steps=12):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        general = os.path.join(path, "general.yaml")
        with open(general, "w") as f:
            f.write(SPATIAL.format(out=os.path.join(path, "out"), tissue=TISSUE, steps=steps))
        self.call(1, "spatial", "generate", "-c", general, "--quiet")
        return path

    def toy(self, cells):
        path = os.path.join(self.root, f"toy{cells}")
        self.call(1, "spatial", "toy", "-o", path, "--cells", str(cells), "--genes", "20", "--sampler", "near", "--device", "cpu")
        return path

    def shared(self, name, toy, cells):
        """A folder with configs of all models, its data preprocessed."""
        path = os.path.join(self.root, name)
        os.makedirs(path)
        general = os.path.join(path, "general.yaml")
        with open(general, "w") as f:
            f.write(TOY.format(out=os.path.join(path, "out"), toy=toy, cells=cells))
        self.call(1, "spatial", "generate", "-c", general, "--quiet")
        self.stage(path, 1, "preprocess", "svgp")
        return path

    def stage(self, path, ranks, stage, model, *words, **options):
        return self.call(ranks, "spatial", stage, "-c", os.path.join(path, f"{model}.yaml"), "--device", "cpu", *words, **options)

    def test_every_model_has_the_bytes_of_one_process(self):
        for cells in sorted(set(CELLS.values())):
            toy, models = self.toy(cells), [m for m in MODELS if CELLS[m] == cells]
            one = self.shared(f"one{cells}", toy, cells)
            for model in models:
                self.stage(one, 1, "train", model)
                self.stage(one, 1, "analyze", model)
            for ranks, memory in ((2, "64M"), (3, "1G"), (8, "64M")):
                path = self.shared(f"ranks{ranks}of{cells}", toy, cells)
                for model in models:
                    for stage in ("train", "analyze"):
                        out, _ = self.stage(path, ranks, stage, model, "--memory", memory)
                        share = re.search(r"ranks   (\d+) share (\d+) % of the work; each exchanges (\S+)", out)
                        self.assertEqual(int(share[1]), ranks, out)
                        self.assertGreater(int(share[2]), 5, f"{stage} of {model} on {ranks}: {out}")
                self.same(os.path.join(one, "out"), os.path.join(path, "out"), f"{ranks} ranks with {memory}")
        self.assertEqual([f for f in self.hidden() if "/.fathom/" not in f], [])

    def test_ranks_without_work_are_refused_before_anything_runs(self):
        path = self.config("tissue")
        for stage in ("preprocess", "train", "figures"):
            if stage == "train":
                self.stage(path, 1, "preprocess", "svgp")
            before = self.tree(path)
            _, err = self.stage(path, 2, stage, "pnmf", code=2)
            self.assertIn(f"stage '{stage}' has no work that 2 ranks would share", err)
            self.assertIn("start it without mpirun", err)
            self.assertEqual(err.count("FTH-PLAN-008"), 1, err)
            self.assertEqual(self.tree(path), before)
            if stage == "train":
                self.stage(path, 1, "train", "pnmf")
                self.stage(path, 1, "analyze", "pnmf")
        _, err = self.stage(path, 8, "train", "svgp", code=2)
        self.assertIn("stage 'train' can be shared by at most 4 ranks, and there are 8", err)
        self.assertIn("start at most 4", err)
        self.assertFalse(os.path.exists(os.path.join(path, "out", "svgp", "model.safetensors")))
        self.stage(path, 4, "train", "svgp")

    def test_a_killed_rank_ends_the_run_and_loses_nothing(self):
        one, two = self.config("one", 30), self.config("two", 30)
        for path in (one, two):
            self.stage(path, 1, "preprocess", "svgp")
        self.stage(one, 1, "train", "svgp")
        start = time.monotonic()
        self.stage(two, 3, "train", "svgp", code=137, FATHOM_KILL_AT="after_checkpoint:2", FATHOM_KILL_RANK="1")
        self.assertLess(time.monotonic() - start, 20)
        self.wait_for_end(10) # mpirun may be gone before the last of those it has killed
        out, _ = self.stage(two, 2, "train", "svgp") # on other ranks
        self.assertIn("continuing after iteration 10 of 30", out)
        self.same(os.path.join(one, "out"), os.path.join(two, "out"), "resumed")

    def test_a_signal_to_one_rank_stops_all_of_them(self):
        one, two = self.config("one", 200), self.config("two", 200)
        for path in (one, two):
            self.stage(path, 1, "preprocess", "svgp")
        self.stage(one, 1, "train", "svgp")
        process = subprocess.Popen([*command(3), "spatial", "train", "-c", os.path.join(two, "svgp.yaml"), "--device", "cpu"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **AS_ROOT})
        checkpoint = os.path.join(two, "out", "svgp")
        t.wait_for(lambda: os.path.isdir(checkpoint) and any(n.endswith(".safetensors") for n in os.listdir(checkpoint)), 60,
                   "the first checkpoint")
        os.kill(pids(two, 2)[0], signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 6, out + err)
        self.assertEqual(err.count("FTH-USE-002"), 1, err)
        self.assertIn("training was stopped after iteration", err)
        self.stage(two, 2, "train", "svgp")
        self.same(os.path.join(one, "out"), os.path.join(two, "out"), "stopped and resumed")


class Bragg(Case):
    def image(self, name, ranks, *words, **options):
        folder = os.path.join(self.root, name)
        os.makedirs(folder, exist_ok=True)
        return self.call(ranks, "bragg", *IMAGE, "-floatfile", "f.bin", "-intfile", "i.img", "-noisefile", "n.img", "-pgmfile",
                         "p.pgm", "--cbf", "c.cbf", "--device", "cpu", *words, cwd=folder, **options)

    def test_an_image_has_the_bytes_of_one_process(self):
        first, _ = self.image("one", 1)
        for ranks, memory in ((2, "12M"), (3, "1G"), (8, "12M")):
            name = f"ranks{ranks}"
            out, _ = self.image(name, ranks, "--memory", memory)
            self.same(os.path.join(self.root, "one"), os.path.join(self.root, name), f"{ranks} ranks")
            self.assertEqual(out.count("max_I"), first.count("max_I"))
        self.assertEqual(self.hidden(), [])

    def test_an_image_with_a_checkpoint(self):
        self.image("one", 1)
        self.image("two", 2, "--checkpoint", "16")
        self.same(os.path.join(self.root, "one"), os.path.join(self.root, "two"), "with a checkpoint")

    def test_a_seed_of_the_clock_is_the_same_on_all_ranks(self):
        """Every rank renders its rows of one crystal: the image is that of the angles that rank 0 prints."""
        words = [w for w in IMAGE if w not in ("-seed", "7")]
        out, _ = self.call(3, "bragg", *words, "--compat", "c", "-misset", "random", "-floatfile", "clock.bin", cwd=self.root)
        angles = re.search(r"misset angles: (\S+) (\S+) (\S+) deg", out).groups()
        self.call(1, "bragg", *words, "--compat", "c", "-misset", *angles, "-floatfile", "angles.bin", cwd=self.root)
        clock, again = (np.fromfile(os.path.join(self.root, f), np.float32) for f in ("clock.bin", "angles.bin"))
        self.assertGreater(clock.max(), 0)
        np.testing.assert_allclose(clock, again, atol=1e-3 * clock.max())  # angles are printed with six digits

    def test_a_series_has_the_bytes_of_one_process(self):
        for name, ranks, memory in (("one", 1, "1G"), ("two", 2, "48M"), ("three", 3, "1G"), ("eight", 8, "48M")):
            path = os.path.join(self.root, f"{name}.yaml")
            with open(path, "w") as f:
                f.write(SERIES.format(out=os.path.join(self.root, name), hkl=REFLECTIONS))
            self.call(ranks, "bragg", "render", "-c", path, "--device", "cpu", "--memory", memory)
            self.same(os.path.join(self.root, "one"), os.path.join(self.root, name), f"{ranks} ranks")

    def test_an_error_on_one_rank_ends_all_with_its_words(self):
        for name in ("a", "b"):
            os.makedirs(os.path.join(self.root, name))
        shutil.copy(REFLECTIONS, os.path.join(self.root, "a", "own.hkl"))
        words = [t.PROGRAM, "bragg", "-hkl", "own.hkl", "-cell", "28", "33", "38", "90", "95", "90", "-N", "5", "-lambda", "1",
                 "-distance", "100", "-detpixels", "64", "-floatfile", os.path.join(self.root, "f.bin")]
        done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", "-wdir", os.path.join(self.root, "a"), *words, ":", "-n", "1",
                               "-wdir", os.path.join(self.root, "b"), *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **AS_ROOT})
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"rank 2 on \S+: error FTH-FILE-001")
        self.assertIn("own.hkl", done.stderr)
        self.assertNotIn("rank 0 on", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.root, "f.bin")))


class Plans(Case):
    IMAGE = ("bragg", *IMAGE, "-detpixels", "1024", "--device", "cpu", "--threads", "1")

    def test_a_plan_for_ranks_needs_no_mpi(self):
        out, err = self.call(1, *self.IMAGE, "--plan", "--ranks", "64", LD_DEBUG="libs")
        self.assertNotIn("libmpi", err)
        self.assertRegex(out, r"64 ranks share \d+ of \d+ passes")
        self.assertFalse(os.listdir(self.root))

    def test_a_stage_is_planned_for_ranks(self):
        path = os.path.join(self.root, "stills.yaml")
        with open(path, "w") as f:
            f.write(SERIES.format(out=os.path.join(self.root, "out"), hkl=REFLECTIONS))
        out, _ = self.call(1, "bragg", "render", "-c", path, "--plan", "--json", "--ranks", "8", "--device", "cpu")
        ranks = json.loads(out)["ranks"]
        self.assertEqual(ranks["count"], 8)
        self.assertGreater(ranks["seconds_shared"], 0.5 * ranks["seconds_alone"])
        self.assertGreater(ranks["exchanged_bytes"], 3 * 4 * 300 * 300) # images of three frames go to rank 0
        self.assertLess(ranks["seconds_together"], ranks["seconds_alone"])
        out, _ = self.call(1, "bragg", "render", "-c", path, "--plan", "--ranks", "8", "--device", "cpu")
        self.assertIn("8 ranks: each takes that memory and exchanges", out)
        out, _ = self.call(1, "plan", "-c", path, "--ranks", "8", "--device", "cpu")
        self.assertRegex(out, r"render .*; 8 ranks: [1-8]\.\d times as fast")
        out, _ = self.call(1, "bragg", "render", "-c", path, "--plan", "--json", "--device", "cpu")
        self.assertNotIn("ranks", json.loads(out))

    def test_plans_are_shown_for_any_number_of_ranks(self):
        path = os.path.join(self.root, "stills.yaml")
        with open(path, "w") as f:
            f.write(SERIES.format(out=os.path.join(self.root, "out"), hkl=REFLECTIONS))
        out, _ = self.call(1, "bragg", "render", "-c", path, "--device", "cpu", "--plan", "--ranks", "2000")
        self.assertRegex(out, r"2000 ranks: .* at most \d+ of them")

    def test_an_image_of_few_rows_refuses_many_ranks(self):
        words = ("bragg", *IMAGE, "-detpixels", "4", "-floatfile", "f.bin", "--device", "cpu")
        _, err = self.call(5, *words, code=2)
        self.assertRegex(err, r"the image (can be shared by at most 4 ranks, and there are 5|has no work that 5 ranks would share)")
        self.assertEqual(os.listdir(self.root), [])

    def test_ranks_without_a_plan_are_a_mistake(self):
        _, err = self.call(1, *self.IMAGE, "--ranks", "4", code=2)
        self.assertIn("mpirun -n 4", err)
        _, err = self.call(1, *self.IMAGE, "--plan", "--ranks", "0", code=2)
        self.assertIn("at least one rank", err)


class Program(Case):
    def test_mistakes_are_told_once(self):
        _, err = self.call(3, "spatial", "train", "-c", "missing.yaml", code=3)
        self.assertEqual(err.count("FTH-FILE-001"), 1, err)
        self.assertIn("rank 0 on", err)

    def test_commands_of_one_process_refuse(self):
        _, err = self.call(2, "status", code=2)
        self.assertIn("mpirun is for one stage", err)
        _, err = self.call(2, "focus", "stack", "x", code=2)
        self.assertIn("the instrument focus does not divide its work among ranks", err)

    def test_other_starters_are_named(self):
        _, err = self.call(1, "bragg", *IMAGE, code=2, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
        self.assertIn("srun started 4 tasks without MPI", err)
        self.assertIn("--mpi=pmix", err)
        _, err = self.call(1, "bragg", *IMAGE, code=2, PMI_SIZE="2", PMI_RANK="0")
        self.assertIn("mpiexec of another MPI", err)

    def test_mpi_is_loaded_under_mpirun_only(self):
        words = ("bragg", *IMAGE, "-floatfile", "f.bin")
        _, err = self.call(1, *words, LD_DEBUG="libs")
        self.assertIn("libfathom", err)
        self.assertNotIn("libmpi", err)
        _, err = self.call(2, *words, LD_DEBUG="libs")
        self.assertIn("libmpi", err)


if __name__ == "__main__":
    unittest.main()
