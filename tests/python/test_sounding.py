"""The practice instrument as people run it: stages by hand, kills, signals, exit codes; and its fit
and statistics against NumPy.
seconds: 30"""
import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom"
PROGRAM = os.path.abspath(PROGRAM)
STAGES = ["survey", "fit", "analyze", "figures"]
POINTS = ["stage_start", "stage_planned", "mid_run", "before_outputs", "after_outputs",
          "before_record", "after_record"]
CONFIG = """\
instrument: sounding
name: test
seed: 11
output_dir: out
survey: {cells: 3000, bumps: 9}
model: {basis: waves, order: 1}
fit: {iterations: 60, rate: 0.1, checkpoint: 20}
analyze: {side: 33}
figures: {dpi: 60}
"""


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    meta = header.pop("__metadata__", {})
    kinds = {"F32": np.float32, "F64": np.float64}
    out = {}
    for name, t in header.items():
        begin, end = (8 + n + v for v in t["data_offsets"])
        out[name] = np.frombuffer(data[begin:end], kinds[t["dtype"]]).reshape(t["shape"])
    return out, meta


def files_of(folder):
    """Results of a folder as {name: bytes}, without records."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*"))
            if p.is_file() and ".fathom" not in p.parts}


class Case(unittest.TestCase):
    reference = None  # files of an undisturbed run

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sounding-"))
        self.addCleanup(shutil.rmtree, self.dir, True)
        (self.dir / "job.yaml").write_text(CONFIG)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("FATHOM_KILL_AT", "NO_COLOR")}
        return dict(env, **more)

    def run_stage(self, stage, *args, expect=0, **env):
        r = subprocess.run([PROGRAM, "sounding", stage, "-c", "job.yaml", *args], cwd=self.dir,
                           env=self.env(**env), capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, expect, r.stdout + r.stderr)
        return r

    def run_all(self, *args, until="figures"):
        for stage in STAGES[:STAGES.index(until) + 1]:
            self.run_stage(stage, *args)

    def undisturbed(self):
        if Case.reference is None:
            here, self.dir = self.dir, pathlib.Path(tempfile.mkdtemp(prefix="sounding-"))
            self.addCleanup(shutil.rmtree, self.dir, True)
            (self.dir / "job.yaml").write_text(CONFIG)
            self.run_all()
            Case.reference = files_of(self.dir / "out")
            self.dir = here
        return Case.reference

    def same_bytes(self, only=None):
        want, got = self.undisturbed(), files_of(self.dir / "out")
        if only:
            want = {k: v for k, v in want.items() if k in got or k == only}
        self.assertEqual(sorted(want), sorted(got))
        for name in want:
            self.assertEqual(want[name], got[name], name)

    def has_record(self, stage):
        name = "survey.json" if stage == "survey" else f"{stage}.waves.json"
        return (self.dir / "out/.fathom" / name).exists()


class Pipeline(Case):
    def test_by_hand(self):
        self.run_all()
        self.same_bytes()
        out = self.dir / "out/waves"
        for name, start in (("soundings.png", b"\x89PNG"), ("map.png", b"\x89PNG"),
                            ("residuals.png", b"\x89PNG"), ("page.pdf", b"%PDF"),
                            ("loss.svg", b"<?xml")):
            self.assertEqual((out / name).read_bytes()[:len(start)], start)
        for stage in STAGES:
            record = json.loads((self.dir / "out/.fathom" / (
                "survey.json" if stage == "survey" else f"{stage}.waves.json")).read_text())
            self.assertGreaterEqual(record["planned_bytes"], record["growth_bytes"], stage)
        self.assertEqual(list(self.dir.rglob("*.tmp")), [])

    def test_budget_and_threads_change_nothing(self):
        self.run_all("--memory", "6784K", "--threads", "1")
        self.same_bytes()

    def test_plan_keeps_to_the_budget(self):
        for stage in STAGES:
            for mib in (7, 64):
                plan = json.loads(self.run_stage(stage, "--plan", "--json", "--memory", f"{mib}M",
                                                 "--set", "survey.cells=1e7").stdout)
                self.assertLessEqual(plan["planned_bytes"], mib << 20)

    def test_what_fits_is_told_and_fits(self):
        """At the budget that a refusal names a stage runs, and with the same bytes."""
        for stage in STAGES:
            r = self.run_stage(stage, "--memory", "2M", expect=4)
            self.assertIn("FTH-PLAN-002", r.stderr)
            self.assertFalse(self.has_record(stage))
            self.run_stage(stage, "--memory", r.stderr.split("would fit: --memory ")[1].split()[0])
        self.same_bytes()

    def test_plan_writes_nothing(self):
        for stage in STAGES:
            r = self.run_stage(stage, "--plan")
            self.assertIn(stage + ": ", r.stdout)
            plan = json.loads(self.run_stage(stage, "--plan", "--json").stdout)
            self.assertGreater(plan["planned_bytes"], 1 << 20)
            self.assertNotIn("seconds", plan)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["job.yaml"])

    def test_json_and_quiet(self):
        r = self.run_stage("survey", "--quiet")
        self.assertEqual(r.stdout + r.stderr, "")
        r = self.run_stage("survey", "--json", "--quiet")
        self.assertEqual(r.stderr, "")
        result = json.loads(r.stdout)
        self.assertEqual((result["stage"], result["device"]), ("survey", "cpu"))
        self.assertEqual(result["written_bytes"], 3000 * 16)
        r = self.run_stage("survey", "--json", "--set", "drill.stage=survey", "--set",
                           "drill.kind=chatter", "--set", "drill.bytes=200")
        self.assertEqual(json.loads(r.stdout)["stage"], "survey")
        self.assertIn("the quick brown fox", r.stderr)

    def test_trace(self):
        self.run_stage("survey", "--trace", "t.json")
        trace = json.loads((self.dir / "t.json").read_text())
        self.assertGreater(len(trace["traceEvents"]), 3)

    def test_general_config(self):
        (self.dir / "job.yaml").write_text(CONFIG.replace("basis: waves, ", ""))
        r = self.run_stage("fit", expect=2)
        self.assertIn("stands for 3 jobs", r.stderr)
        r = self.run_stage("plan", "--json")
        rows = json.loads(r.stdout)
        self.assertEqual([row["stage"] for row in rows], ["survey"] + 3 * STAGES[1:])
        self.assertTrue(all(row["fits"] for row in rows))
        r = self.run_stage("plan", "--json", "--memory", "2M", expect=4)  # rows all the same
        self.assertEqual([row["fits"] for row in json.loads(r.stdout)], len(rows) * [False])
        self.assertIn("FTH-PLAN-002", r.stderr)
        r = self.run_stage("plan", "--memory", "2M", expect=4)
        self.assertEqual(r.stdout.count("does not fit"), len(rows))
        self.run_stage("survey")  # what they share can be run
        self.run_stage("generate")
        made = sorted(p.name for p in self.dir.glob("*.yaml"))
        self.assertEqual(made, ["bowl.yaml", "job.yaml", "plane.yaml", "waves.yaml"])


class Numbers(Case):
    """Everything again in NumPy, from the formulas of the README."""

    def features(self, model, u, v):
        c = {k: model[k].astype(float) for k in ("power.u", "power.v", "wave.u", "wave.v", "shift")}
        u, v = u[..., None], v[..., None]
        return (u ** c["power.u"] * v ** c["power.v"] *
                np.cos(np.pi * (c["wave.u"] * u + c["wave.v"] * v) + c["shift"]))

    def adam(self, phi, wanted, limit=np.inf):
        """Weights and losses of 60 steps; beyond the limit a loss is a line."""
        w, m, s = np.zeros((3, phi.shape[1]))
        losses = []
        for step in range(60):
            rate = 0.1 * 0.5 * (1 + np.cos(np.pi * step / 59))
            error = phi @ w - wanted
            far = np.abs(error) > limit
            losses.append(np.mean(np.where(far, limit * (2 * np.abs(error) - limit) if far.any() else 0, error ** 2)))
            grad = 2 * phi.T @ np.clip(error, -limit, limit) / len(error)
            m = 0.9 * m + 0.1 * grad
            s = 0.999 * s + 0.001 * grad ** 2
            w = w - rate * m / (1 - 0.9 ** (step + 1)) / (
                np.sqrt(s / (1 - 0.999 ** (step + 1))) + 1e-8)
        return w, losses

    def test_outliers_pull_no_harder(self):
        """A tenth of the soundings are fish: with a limit the floor is found all the same."""
        self.run_stage("survey")
        data, _ = read_safetensors(self.dir / "out/soundings.safetensors")
        depths = data["depths"].copy()
        depths[::10] -= 3000
        rows = [f"{x!r},{y!r},{d!r}" for (x, y), d in zip(data["soundings"].tolist(), depths.tolist())]
        (self.dir / "fish.csv").write_text("\n".join(["x,y,depth"] + rows) + "\n")
        away = {}
        for limit in ("60", ".inf"):
            (self.dir / "job.yaml").write_text(CONFIG.replace("cells: 3000, bumps: 9", "cells: 3000, file: fish.csv")
                                               .replace(": out", ": out" + limit).replace("rate: 0.1,",
                                                                                        f"rate: 0.1, outlier: {limit},"))
            self.run_stage("survey")
            self.run_stage("fit")
            model, meta = read_safetensors(self.dir / ("out" + limit) / "waves/model.safetensors")
            self.assertEqual(meta["fit.outlier"], limit)
            at = data["soundings"].astype(float) * (2 / 10) - 1
            phi = self.features(model, at[:, 0], at[:, 1])
            w, losses = self.adam(phi, (4000 - depths.astype(float)) / 600, float(limit.strip(".")) / 600)
            np.testing.assert_allclose(model["loss"], losses, rtol=2e-5)
            np.testing.assert_allclose(model["weights"], w, atol=5e-5)
            found = 4000 - 600 * (phi @ model["weights"].astype(float))
            away[limit] = np.sqrt(np.mean((found - data["truth"]) ** 2))
        self.assertLess(away["60"], 0.75 * away[".inf"])

    def test_depths_of_all_models(self):
        (self.dir / "job.yaml").write_text(CONFIG.replace("basis: waves, ", ""))
        subprocess.run([PROGRAM, "run", "all", "-c", "job.yaml"], cwd=self.dir, env=self.env(), check=True,
                       capture_output=True)
        def ask(*words, code=0):
            r = subprocess.run([PROGRAM, "sounding", "depth", *words, "2.5", "7"], cwd=self.dir, capture_output=True,
                               text=True)
            self.assertEqual(r.returncode, code, r.stderr)
            return r.stdout if code == 0 else r.stderr
        one = {name: ask(f"out/{name}/model.safetensors") for name in ("bowl", "plane", "waves")}
        self.assertEqual(ask("out"), "".join(f"{name} {text}" for name, text in one.items()))
        facts = json.loads(ask("out", "--json"))
        for name, text in one.items():
            self.assertAlmostEqual(facts[name], float(text.split()[0]), delta=0.006)
        self.assertIn("no folder below it has a model.safetensors", ask("out/waves", code=3))

    def check(self, basis, terms):
        (self.dir / "job.yaml").write_text(CONFIG.replace("waves", basis))
        self.run_all(until="analyze")
        data, _ = read_safetensors(self.dir / "out/soundings.safetensors")
        folder = self.dir / "out" / basis
        model, meta = read_safetensors(folder / "model.safetensors")
        self.assertEqual(len(model["weights"]), terms)
        at = data["soundings"].astype(float) * (2 / 10) - 1
        phi = self.features(model, at[:, 0], at[:, 1])
        wanted = (4000 - data["depths"].astype(float)) / 600

        w, losses = self.adam(phi, wanted)
        # f32 against f64: a few hundred roundings of 6e-8 along the way
        np.testing.assert_allclose(model["loss"], losses, rtol=2e-5)
        np.testing.assert_allclose(model["weights"], w, atol=2e-5)
        best = np.linalg.lstsq(phi, wanted, rcond=None)[0]
        floor = np.mean((phi @ best - wanted) ** 2)
        self.assertGreaterEqual(losses[-1], floor * (1 - 1e-9))
        self.assertLess(losses[-1], 0.5 * losses[0])

        found = 4000 - 600 * (phi @ model["weights"].astype(float))
        residual = np.load(folder / "residuals.npy")
        # one f32 of 4000 m is 2.4e-4 m
        np.testing.assert_allclose(residual, data["depths"].astype(float) - found, atol=2e-3)
        r = residual.astype(float)
        table = dict(line.split(",")[:2] for line in (folder / "table.csv").read_text().splitlines())
        for name, value in (("soundings", 3000), ("terms", terms), ("last loss", model["loss"][-1]),
                            ("mean residual", r.mean()), ("standard deviation", r.std()),
                            ("root mean square", np.sqrt(np.mean(r ** 2))),
                            ("least residual", r.min()), ("largest residual", r.max()),
                            ("variance explained",
                             1 - r.var() / data["depths"].astype(float).var())):
            self.assertAlmostEqual(float(table[name]), value, delta=1e-6 * max(1, abs(value)), msg=name)
        at, grid = data["soundings"].astype(float), np.linspace(0, 10, 24)
        gaps = [[np.sqrt(((at - (x, y)) ** 2).sum(axis=1).min()) for x in grid] for y in grid]
        np.testing.assert_allclose(np.load(folder / "gaps.npy"), gaps, atol=1e-5)
        self.assertAlmostEqual(float(table["widest gap"]), np.max(gaps), delta=1e-5)
        truth = np.sqrt(np.mean((data["truth"] - found) ** 2))
        self.assertAlmostEqual(float(table["root mean square to the true floor"]), truth, delta=1e-3)
        side = np.linspace(-1, 1, 33)
        u, v = np.meshgrid(side, side)
        surface = 4000 - 600 * (self.features(model, u, v) @ model["weights"].astype(float))
        np.testing.assert_allclose(np.load(folder / "map.npy"), surface, atol=2e-3)
        for words, unit, text in (([], 1, " m"), (["--fathoms"], 1.8288, " fathoms")):
            r = subprocess.run([PROGRAM, "sounding", "depth", folder / "model.safetensors", "2.5",
                                "10", *words], capture_output=True, text=True, check=True)
            self.assertTrue(r.stdout.endswith(text + "\n"), r.stdout)
            self.assertAlmostEqual(float(r.stdout.split()[0]) * unit, surface[32, 8], delta=0.01)

    def test_plane(self):
        self.check("plane", 3)

    def test_bowl(self):
        self.check("bowl", 6)

    def test_waves(self):
        self.check("waves", 3 + 8)

    def test_survey(self):
        self.run_stage("survey", "--set", "survey.cells=40000")
        data, _ = read_safetensors(self.dir / "out/soundings.safetensors")
        at, noise = data["soundings"], data["depths"].astype(float) - data["truth"]
        self.assertTrue(((at >= 0) & (at < 10)).all())
        # 40000 draws: five standard errors
        self.assertLess(abs(at.mean() - 5), 5 * 10 / np.sqrt(12 * 80000))
        self.assertLess(abs(noise.mean()), 5 * 25 / 200)
        self.assertLess(abs(noise.std() - 25), 5 * 25 / np.sqrt(80000))
        self.assertLess(abs(np.corrcoef(at[:, 0], at[:, 1])[0, 1]), 5 / 200)
        self.run_stage("survey", "--seed", "12", "--set", "survey.cells=40000")
        other, _ = read_safetensors(self.dir / "out/soundings.safetensors")
        self.assertFalse((other["soundings"] == at).any(axis=1).mean() > 0.001)


class Table(Case):
    """Soundings from a file of lines x,y,depth, survey.file."""

    def write(self, more="", ending="\n", heading="x,y,depth"):
        """The soundings of a floor that was made up, as text that reads back as the same numbers."""
        if not (self.dir / "out/soundings.safetensors").exists():
            self.run_stage("survey")
        self.data, _ = read_safetensors(self.dir / "out/soundings.safetensors")
        rows = [f"{x!r},{y!r},{d!r}" for (x, y), d in zip(self.data["soundings"].tolist(),
                                                        self.data["depths"].tolist())]
        (self.dir / "table.csv").write_bytes((ending.join([heading] + rows) + ending + more).encode())

    def use(self, cells=5000):
        (self.dir / "job.yaml").write_text(CONFIG.replace(
            "cells: 3000, bumps: 9", f"cells: {cells}, file: table.csv").replace(": out", ": read"))

    def refused(self, what, **use):
        self.use(**use)
        self.assertIn(what, self.run_stage("survey", expect=3).stderr)
        self.assertFalse((self.dir / "read/soundings.safetensors").exists())
        self.assertEqual([p.name for p in (self.dir / "read").rglob("*") if p.is_file()], [])

    def test_same_as_made_up(self):
        """Whatever the budget, the lines' ends and the number of threads."""
        for words, ending in (([], "\n"), (["--memory", "6784K", "--threads", "1"], "\r\n")):
            self.write(ending=ending)
            self.use()
            self.run_all(*words)
            want, got = self.undisturbed(), files_of(self.dir / "read")
            self.assertEqual(sorted(want), sorted(got))
            for name in set(want) - {"soundings.safetensors", "waves/table.csv"}:
                self.assertEqual(want[name], got[name], name)
            read, _ = read_safetensors(self.dir / "read/soundings.safetensors")
            for name in ("soundings", "depths"):
                self.assertEqual(read[name].tobytes(), self.data[name].tobytes())
            self.assertTrue(np.isnan(read["truth"]).all())
            lines = want["waves/table.csv"].decode().splitlines()
            self.assertEqual([line for line in lines if "true floor" not in line],
                             got["waves/table.csv"].decode().splitlines())
            for name in ("survey.json", "analyze.waves.json"):
                record = json.loads((self.dir / "read/.fathom" / name).read_text())
                self.assertGreaterEqual(record["planned_bytes"], record["growth_bytes"], name)
            shutil.rmtree(self.dir / "read")
            (self.dir / "job.yaml").write_text(CONFIG)

    def test_it_is_an_input(self):
        self.write()
        self.use()
        self.run_stage("survey")
        self.write(more="1,2,3\n")
        self.assertIn("'survey' would run again", self.run_stage("fit").stdout)
        self.run_stage("survey")
        self.assertNotIn("would run again", self.run_stage("fit").stdout)

    def test_plan_is_a_bound(self):
        self.write()
        self.use()
        for stage, text in (("survey", "cell<=5000"), ("fit", "cell<=5000, term"), ("analyze", "cell<=5000, map")):
            self.assertIn(text, self.run_stage(stage, "--plan").stdout)

    def test_what_is_wrong_is_named(self):
        for more, what in (("1,2,3,4\n", 'table.csv:3002:7: expected the end of the line, found "4"'),
                           ("1,deep,3\n", 'table.csv:3002:3: expected a number from 0 to 10, found "deep"'),
                           ("1,10.5,3\n", 'found "10.5"'), ("1,2,nan\n", 'found "nan"'), ("1,2,1e9\n", 'found "1e9"'),
                           ("1,3", "table.csv:3002: expected x,y,depth"), ("\n,2,3", "table.csv:3003:1: expected"),
                           ("1,2,\0", "table.csv:3002")):
            with self.subTest(more=more):
                (self.dir / "job.yaml").write_text(CONFIG)
                self.write(more)
                self.refused(what)
        (self.dir / "job.yaml").write_text(CONFIG)
        self.write()
        self.refused("table.csv:3001: only 2999 rows were expected", cells=2999)
        for text, what in (("", "expected the heading x,y,depth"), ("x,y\n", "expected the heading x,y,depth"),
                           ("x,y,depth\n", "no soundings")):
            (self.dir / "table.csv").write_text(text)
            self.refused(what)
        (self.dir / "table.csv").unlink()
        self.refused("it is not there")


class Kills(Case):
    def test_every_point_of_every_stage(self):
        for stage in STAGES:
            for point in POINTS:
                at = point + ":35" if (stage, point) == ("fit", "mid_run") else point
                if stage == "fit":  # or there is nothing left to do
                    (self.dir / "out/waves/model.safetensors").unlink(missing_ok=True)
                with self.subTest(stage=stage, point=point):
                    self.run_stage(stage, FATHOM_KILL_AT=at, expect=-signal.SIGKILL)
                    self.assertEqual(self.has_record(stage), point == "after_record")
                    self.run_stage(stage)
                    self.assertTrue(self.has_record(stage))
        for left in self.dir.rglob("*.tmp"):  # what a killed writer leaves, for `fathom clean`
            left.unlink()
        self.same_bytes()

    def test_a_killed_fit_goes_on(self):
        self.run_stage("survey")
        self.run_stage("fit", FATHOM_KILL_AT="mid_run:45", expect=-signal.SIGKILL)
        r = self.run_stage("fit")
        self.assertIn("resuming after iteration 40 of 60", r.stdout)
        self.run_stage("analyze")
        self.run_stage("figures")
        self.same_bytes()

    def test_other_settings_start_over(self):
        self.run_all(until="fit")
        r = self.run_stage("fit", "--set", "fit.rate=0.2")
        self.assertIn("of another fit: fit.rate was 0.1", r.stdout)
        r = self.run_stage("fit", "--force")
        self.assertNotIn("resuming", r.stdout)
        self.same_bytes(only="waves/model.safetensors")

    def test_a_damaged_checkpoint_is_not_used(self):
        self.run_all(until="fit")
        model = self.dir / "out/waves/model.safetensors"
        data = bytearray(model.read_bytes())
        data[-3] ^= 1
        model.write_bytes(data)
        r = self.run_stage("fit")
        self.assertIn("starting over: the checkpoint is damaged", r.stdout)
        self.same_bytes(only="waves/model.safetensors")


class Ends(Case):
    def slow(self, stage, kind="slow"):
        return ["--set", f"drill.stage={stage}", "--set", f"drill.kind={kind}", "--set",
                "drill.seconds=60"]

    def start(self, stage, *args, **more):
        child = subprocess.Popen([PROGRAM, "sounding", stage, "-c", "job.yaml", *args], cwd=self.dir,
                                 env=self.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, **more)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.kill)
        return child

    def wait_for(self, path, child):
        for _ in range(1000):
            if (self.dir / path).exists():
                return time.sleep(0.1)
            self.assertIsNone(child.poll(), path)
            time.sleep(0.01)
        self.fail(f"{path} did not appear")

    def test_signals_save_the_state(self):
        self.run_stage("survey")
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start("fit", *self.slow("fit"), "--set", f"drill.start_log={number}.log")
            self.wait_for(f"{int(number)}.log", child)
            time.sleep(0.3)
            child.send_signal(number)
            out, err = child.communicate(timeout=30)
            self.assertEqual(child.returncode, 6, out + err)
            self.assertFalse(self.has_record("fit"))
        self.run_stage("fit")
        self.same_bytes(only="waves/model.safetensors")

    def test_a_fit_stopped_at_any_iteration_goes_on(self):
        self.run_stage("survey")
        for turn in range(6):
            child = self.start("fit", "--set", "fit.iterations=20000", "--set",
                               "fit.checkpoint=100000", "--set", f"drill.start_log={turn}.log")
            self.wait_for(f"{turn}.log", child)
            child.send_signal(signal.SIGTERM)
            out, err = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 6, out + err)
        self.assertIn("stopped after iteration", err)
        _, meta = read_safetensors(self.dir / "out/waves/model.safetensors")
        self.assertGreater(int(meta["step"]), 6)

    def test_a_second_interrupt_ends_it_at_once(self):
        child = self.start("survey", *self.slow("survey", "hang"), "--set", "drill.start_log=s.log")
        self.wait_for("s.log", child)
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=10)
        self.assertEqual(child.returncode, -signal.SIGINT)

    def test_exit_codes(self):
        self.assertIn("fit.iterations", self.run_stage("fit", "--set", "fit.iterations=0",
                                                       expect=2).stderr)
        self.assertIn("--force", self.run_stage("fit", "--forc", expect=2).stderr)
        self.run_stage("survey", "--resume", expect=2)
        self.assertIn("stage 'survey' makes it", self.run_stage("fit", expect=3).stderr)
        self.assertIn("FTH-DEV-001", self.run_stage("fit", "--device", "cuda", expect=5).stderr)
        r = self.run_stage("survey", "--memory", "4200K", expect=4)
        self.assertIn("FTH-PLAN-002", r.stderr)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["job.yaml"])
        self.run_stage("survey")
        r = self.run_stage("fit", "--set", "fit.rate=1e38", expect=7)
        self.assertIn("lower fit.rate", r.stderr)
        self.assertFalse(self.has_record("fit"))
        data = self.dir / "out/soundings.safetensors"
        data.write_bytes(data.read_bytes()[:-5])
        self.run_stage("fit", expect=3)

    def test_a_place_that_is_none(self):
        self.run_all(until="fit")
        for words, code in ((["1"], 2), (["1", "x"], 2), (["1", "10.5"], 2), (["1", "2", "3"], 2)):
            r = subprocess.run([PROGRAM, "sounding", "depth", self.dir / "out/waves/model.safetensors",
                                *words], capture_output=True, text=True)
            self.assertEqual(r.returncode, code, r.stderr)
            if len(words) == 1:
                self.assertIn("'fathom sounding depth' needs MODEL X Y, and has 2 words", r.stderr)
                self.assertIn("write 'fathom sounding depth MODEL X Y'", r.stderr)

    def test_a_file_in_the_place_of_a_folder(self):
        self.run_stage("survey")
        (self.dir / "out/waves").write_text("a file")
        self.assertIn("Not a directory", self.run_stage("fit", expect=3).stderr)

    def test_terminal(self):
        for colour in (True, False):
            master, slave = pty.openpty()
            env = {} if colour else {"NO_COLOR": "1"}
            child = subprocess.Popen(
                [PROGRAM, "sounding", "survey", "-c", "job.yaml", "--set", "drill.stage=survey",
                 "--set", "drill.kind=slow", "--set", "drill.seconds=0.6"], cwd=self.dir,
                env=self.env(**env), stdout=slave, stderr=slave)
            os.close(slave)
            text = b""
            while True:
                try:
                    piece = os.read(master, 4096)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            os.close(master)
            self.assertEqual(child.wait(), 0)
            self.assertIn(b"left", text)
            self.assertIn(b"###", text)
            self.assertEqual(b"\x1b[36m" in text, colour)


class Child(Case):
    """Started by a runner: --attempt."""

    def attempt(self, stage, *args, expect=0):
        read, write = os.pipe()
        def keep():
            os.dup2(write, 3)
        child = subprocess.Popen([PROGRAM, "sounding", stage, "-c", "job.yaml", "--attempt", "a-1",
                                  *args], cwd=self.dir, env=self.env(), preexec_fn=keep,
                                 pass_fds=[3] if write == 3 else [3, write],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(write)
        with os.fdopen(read) as pipe:
            lines = [json.loads(line) for line in pipe]
        out, _ = child.communicate()
        self.assertEqual(child.returncode, expect, out)
        return lines, out.decode()

    def test_progress_comes_on_descriptor_3(self):
        self.run_stage("survey")
        lines, out = self.attempt("fit")
        for line in lines:
            self.assertTrue(line["t"] > 1.5e9 and line["stage"] == "fit", line)
        plan, = [line for line in lines if line.get("event") == "plan"]
        self.assertEqual(set(plan), {"t", "event", "job", "stage", "bytes", "base_bytes",
                                     "device_bytes", "seconds", "device", "text"})
        end, = [line for line in lines if line.get("event") == "end"]
        self.assertEqual((end, end["status"]), (lines[-1], "FTH-OK"))
        steps = [line for line in lines if "iter" in line]
        self.assertEqual((steps[-1]["iter"], steps[-1]["total"]), (60, 60))
        self.assertGreater(steps[-1]["bytes"], 1 << 20)
        _, meta = read_safetensors(self.dir / "out/waves/model.safetensors")
        self.assertAlmostEqual(steps[-1]["loss"],
                               read_safetensors(self.dir / "out/waves/model.safetensors")[0]["loss"][-1])
        self.assertIn("device  cpu", out)
        record = json.loads((self.dir / "out/.fathom/fit.waves.json").read_text())
        self.assertEqual(record["attempt"], "a-1")
        lines, _ = self.attempt("fit", "--set", "drill.stage=fit", "--set", "drill.kind=error",
                                "--set", "fit.rate=0.3", expect=3)
        self.assertEqual(lines[-1]["status"], "FTH-FILE-004")

    def test_it_dies_with_its_parent(self):
        code = ("import subprocess, sys, time\n"
                "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                "print(p.pid, flush=True)\n"
                "time.sleep(60)\n")
        parent = subprocess.Popen(
            [sys.executable, "-c", code, PROGRAM, "sounding", "survey", "-c", "job.yaml", "--attempt",
             "a-2", "--set", "drill.stage=survey", "--set", "drill.kind=hang", "--set",
             "drill.seconds=60", "--set", "drill.start_log=s.log"], cwd=self.dir, env=self.env(),
            stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())
        for _ in range(500):
            if (self.dir / "s.log").exists():
                break
            time.sleep(0.02)
        self.assertEqual((self.dir / "s.log").read_text().split(), [
            "a-2", str(child), (self.dir / "s.log").read_text().split()[2], "survey"])
        parent.kill()
        parent.communicate()
        for _ in range(500):
            try:
                state = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except FileNotFoundError:
                return
            if state == "Z":
                return
            time.sleep(0.01)
        self.fail("it outlived its parent")


class Drills(Case):
    def drill(self, stage, kind, *more, expect):
        return self.run_stage(stage, "--set", f"drill.stage={stage}", "--set", f"drill.kind={kind}",
                              *more, expect=expect)

    def test_kinds(self):
        self.drill("survey", "error", expect=3)
        self.drill("survey", "numeric", expect=7)
        self.drill("survey", "crash", expect=-signal.SIGABRT)
        r = self.drill("survey", "chatter", "--set", "drill.bytes=200K", expect=0)
        self.assertAlmostEqual(len(r.stdout), 200 * 1024, delta=1500)
        self.drill("survey", "fill", expect=0)
        self.assertEqual(sorted(files_of(self.dir / "out")), ["soundings.safetensors"])
        start = time.time()
        self.drill("survey", "slow", "--set", "drill.seconds=0.5", expect=0)
        self.assertGreater(time.time() - start, 0.5)
        self.assertEqual([], [p for p in self.dir.rglob("*.tmp")])

    def test_drills_do_not_count_as_settings(self):
        self.run_all(until="fit")
        r = self.run_stage("analyze", "--set", "drill.stage=fit", "--set", "drill.kind=error")
        self.assertNotIn("notice", r.stdout)

    def test_chance_follows_its_formula(self):
        def hit(seed, chance):
            h = 0xCBF29CE484222325
            for c in b"/survey":  # a shared stage has no model
                h = ((h ^ c) * 0x100000001B3) % 2**64
            z = (seed + h + 0x9E3779B97F4A7C15) % 2**64
            z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) % 2**64
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
            return ((z ^ z >> 31) >> 11) / 2**53 < chance
        hits = [hit(seed, 0.5) for seed in range(12)]
        self.assertTrue(any(hits) and not all(hits))
        for seed, hurt in enumerate(hits):
            self.drill("survey", "error", "--set", "drill.chance=0.5", "--seed", str(seed),
                       expect=3 if hurt else 0)


if __name__ == "__main__":
    unittest.main()
