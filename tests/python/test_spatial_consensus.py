"""fathom spatial consensus: clusters, density, medians and silhouettes against NumPy; the same bytes whatever the
number of jobs and threads, the budget, and a kill; what is refused.
seconds: 40"""
import csv
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
RESTARTS, FACTORS = 5, 3
CONFIG = """
instrument: spatial
name: toy
seed: 3
dataset: toy
output_dir: {folder}/{name}
preprocessing: {{path: {folder}/toy}}
model:
  spatial: {spatial}
  n_components: {factors}
  loadings_mode: multiplicative
  init: random
  lengthscale: 30.0
  num_inducing: 40
  diagonal_only: true
training: {{max_iter: 60, learning_rate: 0.1, checkpoint_interval: 10, holdout_fraction: 0.1}}
analyze: {{export: false}}
"""
FILES = ["consensus_loadings.npy", "consensus_loadings.csv", "fixed_loadings.npy", "stability.csv", "spectra.csv",
         "consensus.json", "consensus.png", "model.safetensors", "factors.npy", "loadings.npy", "metrics.json"]


# ---- the reference: numpy alone, from the definitions ----

def unit(spectra):
    return spectra / np.linalg.norm(spectra, axis=1, keepdims=True)


def distances(x):
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))


def density(x, restarts):
    near = max(1, int(0.3 * restarts))
    return np.sort(distances(x), axis=1)[:, 1:near + 1].mean(1)


def silhouettes(x, label):
    d, out = distances(x), np.zeros(len(x))
    for i, own in enumerate(label):
        mine = label == own
        if mine.sum() < 2:
            continue
        inside = d[i, mine].sum() / (mine.sum() - 1)
        other = min(d[i, label == k].mean() for k in set(label) - {own})
        out[i] = (other - inside) / max(inside, other)
    return out


def inertia(x, label):
    return sum(((x[label == k] - x[label == k].mean(0)) ** 2).sum() for k in set(label))


def lloyd(x, k, rng):
    centre = x[rng.choice(len(x), k, replace=False)]
    for _ in range(100):
        label = ((x[:, None] - centre[None]) ** 2).sum(-1).argmin(1)
        centre = np.array([x[label == j].mean(0) if (label == j).any() else centre[j] for j in range(k)])
    return label


def matched(a, b):
    """Mean correlation of columns, paired so that it is largest: by trying all orders."""
    c = np.corrcoef(a.T, b.T)[:a.shape[1], a.shape[1]:]
    best = max(itertools.permutations(range(a.shape[1])), key=lambda o: sum(c[i, o[i]] for i in range(len(o))))
    return np.array([c[i, best[i]] for i in range(len(best))]), best


def table(path):
    with open(path) as f:
        return list(csv.DictReader(f))


class Consensus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-consensus-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([PROGRAM, "spatial", "toy", "--cells", "144", "--genes", "40", "--factors", str(FACTORS), "--groups",
                        "2", "--lengthscale", "30", "--density", "0.9", "--seed", "2", "-o", str(cls.folder / "toy")],
                       check=True, capture_output=True)
        cls.first = cls.make("first")
        cls.run_it(cls.first, "--jobs", "2")
        # now, because analyze by hand writes factors again, which BLAS may round in another way
        cls.bytes_of = {file: (cls.folder_of(cls, "first") / file).read_bytes() for file in FILES}

    @classmethod
    def make(cls, name, **keys):
        path = cls.folder / f"{name}.yaml"
        path.write_text(CONFIG.format(folder=cls.folder, name=name, **{"spatial": "true", "factors": FACTORS, **keys}))
        return path

    @classmethod
    def run_it(cls, config, *words, restarts=RESTARTS, code=0):
        done = subprocess.run([PROGRAM, "spatial", "consensus", "-c", str(config), "--restarts", str(restarts), *words],
                              capture_output=True, text=True)
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done

    def folder_of(self, name, model="svgp_consensus"):
        return self.folder / f"{name}_consensus" / model

    def same(self, name):
        for file in FILES:
            self.assertEqual(self.bytes_of[file], (self.folder_of(name) / file).read_bytes(), file)

    # ---- numbers ----

    def test_numbers_are_those_of_numpy(self):
        at = self.folder_of("first")
        restarts = [np.load(self.folder_of("first", f"svgp_restart-{r:02}") / "loadings.npy").astype(float)
                    for r in range(RESTARTS)]
        raw = np.concatenate([w.T for w in restarts])
        x, rows = unit(raw), table(at / "spectra.csv")
        self.assertEqual([(int(r["restart"]), int(r["factor"])) for r in rows],
                         [(r, k) for r in range(RESTARTS) for k in range(FACTORS)])
        want = density(x, RESTARTS)
        np.testing.assert_allclose([float(r["density"]) for r in rows], want, atol=1e-7)
        label = np.array([int(r["consensus_factor"]) for r in rows])
        np.testing.assert_array_equal(label >= 0, want < 0.5)
        kept, of = x[label >= 0], label[label >= 0]
        self.assertEqual(set(of), set(range(FACTORS)))
        centres = np.array([kept[of == k].mean(0) for k in range(FACTORS)])
        np.testing.assert_array_equal(((kept[:, None] - centres[None]) ** 2).sum(-1).argmin(1), of)
        rng = np.random.default_rng(1)
        self.assertLessEqual(inertia(kept, of), min(inertia(kept, lloyd(kept, FACTORS, rng)) for _ in range(40)) + 1e-9)
        each = silhouettes(kept, of)
        np.testing.assert_allclose([float(r["silhouette"]) for r in rows if r["consensus_factor"] != "-1"], each, atol=1e-6)
        medians = np.array([np.median(kept[of == k], axis=0) for k in range(FACTORS)])
        medians /= medians.sum(1, keepdims=True)
        got = np.load(at / "consensus_loadings.npy")
        self.assertEqual(got.dtype, np.float32)
        np.testing.assert_allclose(got, medians.T, rtol=1e-5, atol=1e-9)
        # the loadings of the model: each times the median of the sums of its spectra
        sums = raw.sum(1)[label >= 0]
        scale = [np.median(sums[of == k]) for k in range(FACTORS)]
        np.testing.assert_allclose(np.load(at / "loadings.npy"), got * scale, rtol=1e-4)
        numbers = json.loads((at / "consensus.json").read_text())
        self.assertAlmostEqual(numbers["silhouette"], each.mean(), 6)
        self.assertEqual(numbers["kept"], int((want < 0.5).sum()))
        pairs = [matched(restarts[a], restarts[b])[0].mean() for a in range(RESTARTS) for b in range(a)]
        self.assertAlmostEqual(numbers["reproducibility"], np.mean(pairs), 6)
        held = [json.loads((self.folder_of("first", f"svgp_restart-{r:02}") / "metrics.json").read_text())["holdout"]["mean"]
                for r in range(RESTARTS)]
        self.assertAlmostEqual(numbers["holdout_mean"], np.mean(held), 12)
        self.assertAlmostEqual(numbers["holdout_sd"], np.std(held, ddof=1), 12)

        stability = table(at / "stability.csv")
        agree = [matched(got, w) for w in restarts]
        np.testing.assert_allclose([float(r["loadings_correlation"]) for r in stability], np.mean([a[0] for a in agree], 0),
                                   atol=1e-6)
        np.testing.assert_allclose([float(r["loadings_correlation_min"]) for r in stability],
                                   np.min([a[0] for a in agree], 0), atol=1e-6)
        mine, maps = np.load(at / "factors.npy"), []
        for r, (_, order) in enumerate(agree):
            theirs = np.load(self.folder_of("first", f"svgp_restart-{r:02}") / "factors.npy")
            maps.append([np.corrcoef(mine[:, k], theirs[:, order[k]])[0, 1] for k in range(FACTORS)])
        np.testing.assert_allclose([float(r["factor_correlation"]) for r in stability], np.mean(maps, 0), atol=1e-5)
        for k, row in enumerate(stability):
            self.assertEqual(int(row["spectra"]), (of == k).sum())
            self.assertAlmostEqual(float(row["silhouette"]), each[of == k].mean(), 5)
        names = table(at / "consensus_loadings.csv")
        np.testing.assert_allclose([[float(r[f"factor_{k}"]) for k in range(FACTORS)] for r in names], got, rtol=1e-6)
        self.assertGreater((at / "consensus.png").stat().st_size, 1000)

    # ---- the same bytes ----

    def test_jobs_threads_and_memory_change_nothing(self):
        self.run_it(self.make("narrow"), "--jobs", "1", "--threads", "1", "--memory", "200M")
        self.same("narrow")

    def test_a_kill_changes_nothing(self):
        config = self.make("killed")
        words = [PROGRAM, "spatial", "consensus", "-c", str(config), "--restarts", str(RESTARTS)]
        log = self.folder / "killed_consensus" / "svgp_restart-01" / "model.safetensors"
        run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(2000):  # until a checkpoint of the second restart is there
            if log.exists() or run.poll() is not None:
                break
            time.sleep(0.005)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        self.run_it(config)
        self.same("killed")
        again = self.run_it(config)  # nothing is trained twice
        self.assertNotIn("running", again.stdout + again.stderr)
        self.same("killed")

    # ---- other stages take the model ----

    def test_figures_and_export_take_the_model(self):
        config = self.folder / "first_consensus" / "svgp_consensus.yaml"
        for verb in ("analyze", "figures"):
            done = subprocess.run([PROGRAM, "spatial", verb, "-c", str(config)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((self.folder_of("first") / "figures" / "factors_spatial.png").exists())
        done = subprocess.run([PROGRAM, "spatial", "export", "-c", str(config)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    # ---- the choice, plans, answers ----

    def test_choice_of_factors(self):
        config = self.make("choice")
        done = self.run_it(config, "--over", "model.n_components=2,3", "--json", restarts=3)
        answer = json.loads(done.stdout)
        self.assertIn("largest number of factors", answer["rule"])
        self.assertEqual([r["n_components"] for r in answer["runs"]], [2, 3])
        for file in answer["files"]:
            self.assertTrue(pathlib.Path(file["path"]).exists(), file)
        rows = table(self.folder / "choice_consensus" / "choice.csv")
        best = max(float(r["stability"]) for r in rows)
        least = min(rows, key=lambda r: float(r["holdout_mean"]))
        most = float(least["holdout_mean"]) + float(least["holdout_standard_error"])
        stable = [r for r in rows if float(r["stability"]) >= best - 0.05]
        both = [r for r in stable if float(r["holdout_mean"]) <= most]
        want = max(both, key=lambda r: int(r["n_components"])) if both else min(stable, key=lambda r: float(r["holdout_mean"]))
        self.assertEqual(answer["suggested"], int(want["n_components"]))
        self.assertEqual([r["suggested"] for r in rows].count("1"), 1)
        self.assertTrue((self.folder / "choice_consensus" / "choice.png").exists())

    def test_the_plan_has_all_tasks(self):
        done = self.run_it(self.make("planned"), "--plan", "--json", restarts=3)
        tasks = json.loads(done.stdout)["tasks"]
        self.assertEqual([t["stage"] for t in tasks].count("train"), 4)
        self.assertEqual([t["stage"] for t in tasks].count("clusters"), 1)
        self.assertFalse((self.folder / "planned_consensus").exists())

    # ---- what is refused ----

    def test_mistakes(self):
        self.assertIn("--restarts 1", self.run_it(self.first, restarts=1, code=2).stderr)
        self.assertIn("from 2 to 100", self.run_it(self.first, restarts=101, code=2).stderr)
        self.assertIn("model.n_components is 1", self.run_it(self.make("one", factors=1), code=2).stderr)
        self.assertIn("--density", self.run_it(self.first, "--density", "x", code=2).stderr)
        self.assertIn("sweep", self.run_it(self.first, "--over", "model.lengthscale=4,8", code=2).stderr)

    def test_restarts_that_failed_are_left_out(self):
        in_the_way = self.folder / "hurt_consensus" / "svgp_restart-01" / "training.json" / "x"
        in_the_way.mkdir(parents=True)
        done = self.run_it(self.make("hurt"), restarts=3)
        self.assertRegex(done.stdout + done.stderr, "svgp_restart-01 is left out: .*training.json")
        numbers = json.loads((self.folder_of("hurt") / "consensus.json").read_text())
        self.assertEqual(numbers["used"], [0, 2])
        self.assertEqual(numbers["spectra"], 2 * FACTORS)

    def test_all_diverge(self):
        config = self.make("diverged")
        config.write_text(config.read_text().replace("learning_rate: 0.1", "learning_rate: 1.0e30"))
        done = self.run_it(config, restarts=2, code=1)
        self.assertIn("svgp_restart-01 is left out: the loss is not finite", done.stdout + done.stderr)
        self.assertIn("0 of 2 restarts were trained to the end", done.stderr)


if __name__ == "__main__":
    unittest.main()
