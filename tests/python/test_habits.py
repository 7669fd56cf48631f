"""Habits of people who run many jobs: a part of them, limits, retries, variants, a word at the end.
seconds: 60"""
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs as t
import test_runner


class Case(test_runner.Case):
    def states(self, *words):
        """{"job/stage": state} of what lies below OUT."""
        code, out, err = t.fathom("status", "--json", self.out(*words))
        self.assertEqual(code, 0, err)
        return {f"{task['job']}/{task['stage']}": task["state"] for task in json.loads(out)["tasks"]}


class Only(Case):
    def test_a_job_takes_the_stage_that_it_shares(self):
        self.config("a")
        self.config("b")
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--only", "a_plane")
        self.assertIn("2 completed in", out)
        self.assertEqual(self.states(), {"a/survey": "completed", "a_plane/fit": "completed"})
        self.assertFalse(os.path.exists(self.out("b")))
        self.assertFalse(os.path.exists(os.path.join(self.configs, "b", "plane.yaml")))
        with open(os.path.join(self.configs, "run_status.json")) as f: # where the whole run has it
            self.assertEqual(list(json.load(f)["jobs"]), [self.out("a", "plane")])

    def test_patterns_of_stages_and_several_of_them(self):
        self.config("a")
        self.config("b")
        words = ["run", "survey", "fit", "-c", self.configs]
        self.run_all(*words, "--only", "*/survey")
        self.assertEqual(self.states(), {"a/survey": "completed", "b/survey": "completed"})
        self.run_all(*words, "--only", "b_[pb]*/fit", "--only", "a_waves")
        self.assertEqual({name for name in self.states() if name.endswith("fit")},
                         {"b_plane/fit", "b_bowl/fit", "a_waves/fit"})

    def test_what_it_stands_on_is_not_run(self):
        self.config("a", model="plane")
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--only", "*/fit", code=1)
        self.assertIn("a_plane/fit: blocked: needs the results of 'survey': request them too, as "
                      "'survey fit', and let --only take them", out)
        self.assertIn("1 blocked in", out)

    def test_what_fits_nothing_is_refused_before_anything_is_made(self):
        self.config("liver")
        self.config("colon")
        before = self.tree()
        for pattern in ("livr_plane", "*/trian"):
            _, err = self.run_all("run", "fit", "-c", self.configs, "--only", pattern, "--only",
                                  "colon*", code=2)
            self.assertIn(f"--only {pattern}: no job and no job/stage of this run", err)
        _, err = self.run_all("run", "fit", "-c", self.configs, "--only", "livr_plane", code=2)
        self.assertRegex(err, "the nearest jobs are liver_plane,")
        self.assertEqual(self.tree(), before)

    def test_with_failed_names_stay_those_of_the_run(self):
        for name in ("x/s", "y/s"):
            self.config(name, model="plane", **{"drill.stage": "survey", "drill.kind": "error"})
        words = ["run", "survey", "-c", self.configs, "--skip-general"]
        self.run_all(*words, code=1)
        mended = [*words, "--failed", "--set", "drill.stage=none"]
        out, _ = self.run_all(*mended, "--only", "x_*")
        self.assertIn("1 completed in", out)
        self.assertFalse(os.path.exists(self.out("y", "s", "soundings.safetensors")))
        out, _ = self.run_all(*mended, "--only", "y_*") # the only one that failed
        self.assertIn("1 completed in", out)


class WholeRun(Case):
    LINE = r"(?m)^\d+ % done, \d+ of 4 tasks, [\d.:]+s? elapsed(, about [\d.:]+s? left)?$"

    def test_lines_have_it_now_and_then(self):
        self.config("a", model="plane", **{"drill.stage": "survey", "drill.kind": "slow",
                                           "drill.seconds": 2.2})
        run = t.start("run", "all", "-c", self.configs, "--skip-general", "--no-live")
        t.wait_for(lambda: t.processes(self.root), 10, "a stage")
        code, watched, err = t.fathom("status", self.out(), "--watch")
        out = run.communicate(timeout=60)[0]
        self.assertEqual((run.returncode, code), (0, 0), out + err)
        self.assertRegex(out, self.LINE)
        self.assertRegex(watched, self.LINE)
        lines = [line for line in out.splitlines() if "% done" in line]
        self.assertRegex(lines[0], "^[1-9][0-9]? % done, 1 of 4 tasks, 2.* elapsed")
        self.assertLessEqual(len(lines), 2) # at least two seconds apart

    def test_quiet_and_json_have_none(self):
        self.config("a", model="plane", **{"drill.stage": "survey", "drill.kind": "slow",
                                           "drill.seconds": 2.2})
        words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
        self.assertEqual(t.fathom(*words, "--quiet")[1], "")
        self.assertEqual(json.loads(t.fathom(*words, "--json", "--force")[1])["runner_pid"] > 0, True)


class TimeLimit(Case):
    SLOW = {"model": "plane", "drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 30}

    def test_a_stage_is_ended_and_named(self):
        self.config("a", **self.SLOW)
        self.config("b", model="plane")
        start = time.monotonic()
        out, err = self.run_all("run", "all", "-c", self.configs, "--skip-general", "--time-limit",
                                "fit=1s", "--time-limit", "1h", code=6)
        self.assertLess(time.monotonic() - start, 15)
        self.assertRegex(out, "a_plane/fit: interrupted after [12].*: time limit of 1s reached")
        self.assertIn("5 completed, 2 skipped, 1 interrupted", out)
        self.assertIn("interrupted: a_plane/fit", err)
        ledger = sqlite3.connect(self.out("a", ".fathom", "ledger.sqlite"))
        rows = ledger.execute("SELECT state, reason FROM tasks WHERE id = 'fit.plane'").fetchall()
        ledger.close()
        self.assertEqual(rows, [("interrupted", "time limit of 1s reached")])
        out, _ = self.run_all("run", "all", "-c", self.configs, "--skip-general", "--failed",
                              "--set", "drill.stage=none")
        self.assertIn("4 completed (1 cached)", out)

    def test_one_that_does_not_listen_is_killed(self):
        self.config("a", **{**self.SLOW, "drill.kind": "hang"})
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--skip-general",
                              "--time-limit", "0.5s", code=6)
        self.assertIn("time limit of 0.5s reached; it did not end by itself and was killed", out)

    def test_it_resumes_from_its_checkpoint(self):
        """The fit of the practice instrument saves its coefficients as it goes."""
        self.config("a", model="plane", **{"fit.iterations": 1000000})
        words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
        out, _ = self.run_all(*words, "--time-limit", "fit=1s", code=6)
        self.assertIn("time limit of 1s reached", out)
        out, _ = self.run_all(*words, "--time-limit", "fit=1s", code=6)
        log = self.read("a", "logs", "plane.log")
        stopped = re.findall(r"was stopped after iteration (\d+) of", log)
        self.assertEqual(re.findall(r"resuming after iteration (\d+) of", log), stopped[:1])
        self.assertEqual(len(stopped), 2)

    def test_configs_say_it_too_and_results_do_not_depend_on_it(self):
        a = self.config("a", **self.SLOW, time_limit="[fit=1s, 1h]")
        out, _ = self.run_all("run", "survey", "fit", "-c", a, code=6)
        self.assertIn("time limit of 1s reached", out)
        out, _ = self.run_all("run", "survey", "fit", "-c", a, "--time-limit", "fit=2s", code=6)
        self.assertIn("time limit of 2s reached", out) # the command line comes first
        a = self.config("a", **{**self.SLOW, "drill.stage": "none"}, time_limit="2h")
        self.run_all("run", "survey", "fit", "-c", a)
        a = self.config("a", **{**self.SLOW, "drill.stage": "none"}, time_limit="3h")
        self.assertIn("2 completed (2 cached)", self.run_all("run", "survey", "fit", "-c", a)[0])

    def test_mistakes(self):
        a = self.config("a", model="plane")
        for text, why in (("30", "a time with its unit"), ("train=", "a time with its unit"),
                          ("1m1h", "a time with its unit"), ("0s", "a time with its unit"),
                          ("=1h", "a time with its unit"), ("1h x", "a time with its unit"),
                          ("ft=1h", "--time-limit: there is no stage 'ft'")):
            _, err = self.run_all("run", "all", "-c", a, "--time-limit", text, code=2)
            self.assertIn(why, err)
        self.assertFalse(os.path.exists(self.out()))
        a = self.config("a", model="plane", time_limit="[fit=1h, 12]")
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertRegex(err, r"plane.yaml:\d+:13: time_limit: expected a time with its unit.*'12'")
        a = self.config("a", model="plane", time_limit="ft=1h")
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertIn("expected a stage of: survey fit analyze", err)


class Retries(Case):
    def kill_first(self, run):
        """SIGKILL to the first process of a fit, once it runs."""
        pids = []
        def fits():
            pids[:] = [int(pid) for _, pid, _, stage in t.starts(self.root) if stage == "fit"]
            return pids
        t.wait_for(fits, 20, "a fit")
        os.kill(pids[0], signal.SIGKILL)
        out, err = run.communicate(timeout=60)
        return run.returncode, out, err

    def changes(self, task):
        ledger = sqlite3.connect(self.out("a", ".fathom", "ledger.sqlite"))
        rows = ledger.execute("SELECT from_state, to_state, note FROM changes WHERE task = ? "
                              "ORDER BY number", (task,)).fetchall()
        reason, = ledger.execute("SELECT reason FROM tasks WHERE id = ?", (task,)).fetchone()
        ledger.close()
        return rows, reason

    def test_one_that_was_killed_is_started_again(self):
        self.config("a", model="plane", **{"drill.stage": "fit", "drill.kind": "slow",
                                           "drill.seconds": 1})
        run = t.start("run", "survey", "fit", "analyze", "-c", self.configs, "--skip-general",
                      "--no-live", "--retries", "2")
        code, out, err = self.kill_first(run)
        self.assertEqual(code, 0, out + err)
        why = "attempt 2 of 3, since attempt 1 failed: it was ended by SIGKILL"
        self.assertIn(f"warning: a_plane/fit: {why}", err)
        self.assertIn(f"a_plane/fit: pending after", out)
        self.assertRegex(out, "3 completed, 1 retry in")
        self.assertEqual(len(t.starts(self.root)), 4)
        rows, reason = self.changes("fit.plane")
        self.assertEqual([row[:2] for row in rows],
                         [("pending", "running"), ("running", "pending"), ("pending", "running"),
                          ("running", "completed")])
        self.assertIn(why, rows[1][2])
        self.assertIn(why, reason)
        log = self.read("a", "logs", "plane.log")
        self.assertIn(f"==== runs because: {why}", log)

    def test_not_without_being_asked(self):
        self.config("a", model="plane", **{"drill.stage": "fit", "drill.kind": "slow",
                                           "drill.seconds": 1})
        run = t.start("run", "survey", "fit", "-c", self.configs, "--skip-general", "--no-live")
        code, out, err = self.kill_first(run)
        self.assertEqual(code, 1, out + err)
        self.assertNotIn("attempt", out)

    def test_it_gives_up_and_what_waits_is_skipped_once(self):
        self.config("a", model="plane", **{"drill.stage": "fit", "drill.kind": "error"})
        out, err = self.run_all("run", "survey", "fit", "analyze", "-c", self.configs,
                                "--skip-general", "--retries", "2", code=1)
        self.assertEqual([line[3] for line in t.starts(self.root)], ["survey"] + 3 * ["fit"])
        self.assertIn("1 completed, 1 failed, 1 skipped, 2 retries in", out)
        self.assertRegex(out, r"(?m)^a_plane/fit: failed .*bad file \(attempt 3 of 3\)$")
        self.assertEqual(self.states()["a_plane/analyze"], "skipped")

    def test_what_comes_again_is_not_repeated(self):
        """A computation without an answer, and a plan that does not fit."""
        self.config("a", model="plane", **{"drill.stage": "survey", "drill.kind": "numeric"})
        words = ["run", "survey", "-c", self.configs, "--skip-general", "--retries", "3"]
        out, _ = self.run_all(*words, code=1)
        self.assertIn("(not started again: exit code 7 would come again)", out)
        self.assertEqual(len(t.starts(self.root)), 1)
        self.run_all(*words, "--memory", "1M", code=1)
        self.assertEqual(len(t.starts(self.root)), 1)

    def test_a_time_limit_is_no_failure(self):
        self.config("a", **TimeLimit.SLOW)
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--skip-general",
                              "--retries", "3", "--time-limit", "fit=1s", code=6)
        self.assertEqual([line[3] for line in t.starts(self.root)], ["survey", "fit"])


class Base(Case):
    def write(self, name, text):
        path = os.path.join(self.configs, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def values(self, *records):
        """{task: lines of the config in its record}"""
        found = t.records(self.root)
        return {task: found[key]["config"] for key in found for task in [key[1]]}

    def setUp(self):
        super().setUp()
        self.common = self.write("common.yaml", f"""instrument: sounding
seed: 3
survey:
  cells: 64
fit: {{iterations: 4, rate: 0.1}}
analyze.side: 8
drill.start_log: {self.root}/starts.log
""")
        self.text = f"base: ../common.yaml\nname: a\noutput_dir: {self.out('a')}\n" \
                    "model.basis: plane\nfit:\n  iterations: 5\n"

    def test_maps_merge_and_the_config_wins(self):
        a = self.write("a/plane.yaml", self.text)
        self.run_all("run", "survey", "fit", "-c", a)
        lines = self.values()["fit.plane"]
        self.assertIn("fit.iterations: 5\n", lines)
        self.assertIn("fit.rate: 0.1\n", lines)
        self.assertIn("(2 cached)", self.run_all("run", "survey", "fit", "-c", a)[0])

    def test_an_edit_of_the_base_is_an_edit(self):
        a = self.write("a/plane.yaml", self.text)
        self.run_all("run", "survey", "fit", "-c", a)
        with open(self.common) as f:
            text = f.read()
        self.write("common.yaml", text.replace("rate: 0.1", "rate: 0.2"))
        out, _ = self.run_all("run", "survey", "fit", "-c", a, "-n")
        self.assertIn("a/survey: cached", out)
        self.assertIn("a_plane/fit: would run (fit.rate was 0.1, is 0.2 (common.yaml:5:28))", out)
        self.assertIn("2 completed (1 cached)", self.run_all("run", "survey", "fit", "-c", a)[0])
        self.write("common.yaml", text.replace("rate: 0.1", "rate: 2e-1") + "# 0.2\n")
        self.assertIn("(2 cached)", self.run_all("run", "survey", "fit", "-c", a)[0])

    def test_a_list_of_them_and_bases_of_bases(self):
        self.write("more/first.yaml", "base: ../common.yaml\nfit.iterations: 6\nsurvey.cells: 65\n")
        self.write("more/second.yaml", "survey.cells: 66\n")
        a = self.write("a/plane.yaml", self.text.replace(
            "../common.yaml", "[../more/first.yaml, ../more/second.yaml]").replace("  iterations: 5", ""))
        self.run_all("run", "survey", "fit", "-c", a)
        values = self.values()
        self.assertIn("fit.iterations: 6\n", values["fit.plane"])
        self.assertIn("survey.cells: 66\n", values["survey"])

    def test_general_configs_and_their_files(self):
        a = self.write("a/general.yaml", self.text.replace("model.basis: plane\n", ""))
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs)
        self.assertIn("4 completed", out)
        with open(os.path.join(self.configs, "a", "bowl.yaml")) as f:
            text = f.read()
        self.assertIn("rate: 0.1", text)
        self.assertNotIn("base:", text)
        with open(self.common, "a") as f:
            f.write("fit.outlier: 7\n")
        self.run_all("run", "survey", "fit", "-c", a)
        with open(os.path.join(self.configs, "a", "bowl.yaml")) as f:
            self.assertIn("outlier: 7", f.read())

    def test_paths_start_where_they_are_written(self):
        """Of a base in another folder, also in files that are made of both."""
        self.write("far/paths.yaml", f"base: {self.common}\npaths: config\noutput_dir: out\n")
        a = self.write("a/general.yaml", "base: ../far/paths.yaml\nname: a\n")
        self.run_all("run", "survey", "fit", "-c", a)
        self.assertTrue(os.path.exists(os.path.join(self.configs, "far", "out", "plane")))
        with open(os.path.join(self.configs, "a", "plane.yaml")) as f:
            self.assertIn("output_dir: ../far/out\n", f.read())

    def test_in_a_folder_parts_are_no_jobs(self):
        os.rename(self.common, os.path.join(self.configs, "a_part.yaml"))
        self.write("plane.yaml", self.text.replace("../common", "a_part"))
        self.write("whole.yaml", self.text.replace("../common", "a_part").replace("/out/a", "/out/w"))
        self.write("fast.yaml", f"base: whole.yaml\noutput_dir: {self.out('fast')}\n")
        out, err = self.run_all("run", "survey", "-c", self.configs)
        self.assertEqual(sorted(self.states()), ["a/survey", "fast/survey", "w/survey"])
        self.assertEqual(err, "")
        _, err = self.run_all("run", "survey", "-c", os.path.join(self.configs, "a_part.yaml"), code=2)
        self.assertIn("required key 'name' is missing", err) # it was named

    def test_mistakes_name_their_file(self):
        a = self.write("a/plane.yaml", self.text)
        self.write("common.yaml", "instrument: sounding\nfit:\n  rate: fast\n  rte: 1\n")
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertIn("/a/../common.yaml:3:9: fit.rate: expected a number", err)
        self.assertIn("/a/../common.yaml:4:3: unknown key 'fit.rte'; did you mean 'fit.rate'?", err)
        self.write("common.yaml", "fit: [\n")
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertIn("/a/../common.yaml:2:1", err)

    def test_what_is_refused(self):
        for base, why in (("nowhere.yaml", r"plane.yaml:1:7: base: .*/a/nowhere.yaml: there is no such file"),
                          ("..", "base: .*: it is not a file"),
                          ("", "expected the path of a config, found nothing"),
                          ("{a: b}", "expected the path of a config, found a section"),
                          ("[[a]]", "expected the path of a config, found a list in a list"),
                          ("plane.yaml", "configs inherit from each other: .*/a/plane.yaml -> .*/a/plane.yaml"),
                          ("b.yaml\nbase: c.yaml", "base: it is given twice, first in line 1")):
            a = self.write("a/plane.yaml", self.text.replace("../common.yaml", base))
            _, err = self.run_all("run", "all", "-c", a, code=2)
            self.assertRegex(err, why)
        self.write("b.yaml", "base: c.yaml\n")
        self.write("c.yaml", "fit.rate: 1\nbase: a/../b.yaml\n")
        a = self.write("a/plane.yaml", self.text.replace("common", "b"))
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertRegex(err, r"c.yaml:2:7: base: configs inherit from each other: "
                              r"\S*/b.yaml -> \S*/c.yaml -> \S*/a/../b.yaml\s")
        for i in range(20):
            self.write(f"deep{i}.yaml", f"base: deep{i + 1}.yaml\n")
        a = self.write("a/plane.yaml", self.text.replace("common", "deep0"))
        _, err = self.run_all("run", "all", "-c", a, code=2)
        self.assertIn("base: more than 16 configs inherit from each other", err)
        self.assertFalse(os.path.exists(self.out()))


class Over(Case):
    def lines(self, name, task):
        return t.records(self.root)[self.out(name), task]["config"]

    def test_one_job_for_each_value(self):
        a = self.config("a", model="plane")
        before = [path for path in self.tree() if "/configs" in path]
        words = ["run", "survey", "fit", "-c", a, "--over", "fit.iterations=4,5,6"]
        out, _ = self.run_all(*words)
        self.assertIn("6 completed in", out)
        for n in (4, 5, 6):
            self.assertIn(f"fit.iterations: {n}\n", self.lines(f"a_iterations-{n}", "fit.plane"))
        self.assertEqual(sorted(self.states()),
                         sorted(f"a_iterations-{n}{stage}" for n in (4, 5, 6)
                                for stage in ("/survey", "_plane/fit")))
        self.assertFalse(os.path.exists(self.out("a")))
        self.assertEqual([path for path in self.tree() if "/configs" in path], before)
        self.assertIn("(6 cached)", self.run_all(*words)[0])
        out, _ = self.run_all(*words, "--only", "*-5_plane", "-n")
        self.assertIn("a_iterations-5_plane/fit: cached", out)
        self.assertIn("2 tasks; nothing was written", out)
        command = [line for line in self.read("a_iterations-5", "logs", "plane.log").splitlines()
                   if line.startswith("==== command: ")][0]
        self.assertIn("--set fit.iterations=5", command)
        self.assertIn(self.out("a_iterations-5"), command)

    def test_general_configs_and_combinations(self):
        self.config("a")
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--over", "seed=1,2",
                              "--over", "fit.rate=0.1,2e-1")
        self.assertIn("16 completed in", out) # four directories with a survey and three models
        self.assertIn("fit.rate: 0.2\n", self.lines("a_seed-2_rate-2e-1", "fit.waves"))
        with open(os.path.join(self.configs, "a", "bowl.yaml")) as f:
            self.assertNotIn("rate", f.read()) # as of --set, nothing is written to configs

    def test_values_with_commas_and_blanks(self):
        a = self.config("a", model="plane")
        self.run_all("run", "survey", "-c", a, "--over", "name='x, y',\"z\", [w]", code=2)
        out, _ = self.run_all("run", "survey", "-c", a, "--over", "name='x, y', \"z\"", "-n")
        self.assertIn("_name-_x__y_, from", out)
        self.assertIn("_name-_z_, from", out)
        self.assertIn("2 jobs, 2 tasks", out)

    def test_paths_of_the_config_and_folders_with_blanks(self):
        folder = os.path.join(self.root, "out", "my 'own' \\ \"place\"")
        a = self.config("a", model="plane", paths="config", output_dir="'../../out/b c'")
        self.run_all("run", "survey", "-c", a, "--over", "seed=1,2", cwd="/")
        self.assertTrue(os.path.exists(self.out("b c_seed-2", "soundings.safetensors")))
        a = self.config("q", model="plane", output_dir=json.dumps(folder))
        self.run_all("run", "survey", "-c", a, "--over", "seed=1,2")
        self.assertTrue(os.path.exists(folder + "_seed-1/soundings.safetensors"))

    def test_failed_ones_again(self):
        a = self.config("a", model="plane")
        words = ["run", "survey", "fit", "-c", a, "--over", "drill.kind=none,error"]
        self.run_all(*words, "--set", "drill.stage=fit", code=1)
        self.assertEqual(self.states()["a_kind-error_plane/fit"], "failed")
        out, _ = self.run_all(*words, "--failed", "--set", "drill.stage=none")
        self.assertEqual(set(self.states().values()), {"completed"})

    def test_mistakes(self):
        a = self.config("a", model="plane")
        for over, why in ((["fit.iteration=1,2"], "unknown key 'fit.iteration'; did you mean 'fit.iterations'?"),
                          (["fit.iterations=1,x"], "--over: fit.iterations: expected"),
                          (["fit.iterations=1,,2"], "a value is empty"),
                          (["fit.iterations="], "a value is empty"),
                          (["fit.iterations=1,2,1"], "two values would have one output directory"),
                          (["output_dir=a,b"], "this key cannot be varied"),
                          (["seed=1,2", "--over", "seed=3"], "this key is varied twice"),
                          (["seed=1,2", "--seed", "5"], "--set, or --seed, gives this key too"),
                          (["seed=" + ",".join(map(str, range(300))), "--over", "fit.iterations=" +
                            ",".join(map(str, range(1, 300)))], "more than 65536 combinations")):
            _, err = self.run_all("run", "survey", "-c", a, "--over", *over, code=2)
            self.assertIn(why, err)
        self.assertFalse(os.path.exists(self.out()))


class Notify(Case):
    SAY = ('printf "%s|%s|%s|%s|%s" "$FATHOM_STATUS" "$FATHOM_SUMMARY" "$FATHOM_COMPLETED" '
           '"$FATHOM_FAILED" "$FATHOM_EXIT_CODE" > "$SAID"; echo heard')

    def said(self, *words, code, **environment):
        path = os.path.join(self.root, "said")
        if os.path.exists(path):
            os.remove(path)
        out, err = self.run_all("run", *words, "-c", self.configs, "--skip-general", code=code,
                                SAID=path, **environment)
        if not os.path.exists(path):
            return None, out, err
        with open(path) as f:
            return f.read().split("|"), out, err

    def test_it_hears_how_the_run_ended(self):
        self.config("a", model="plane", **{"drill.stage": "fit", "drill.kind": "error"})
        got, out, err = self.said("all", "--notify", self.SAY, code=1)
        self.assertRegex(got.pop(1), r"^1 completed, 1 failed, 2 skipped in \d+\.\d s$")
        self.assertEqual(got, ["failed", "1", "1", "1"])
        self.assertIn("heard", err) # what it writes does not mix with results
        self.assertNotIn("heard", out)
        got, _, _ = self.said("survey", "--notify", self.SAY, code=0, FATHOM_STATUS="mine")
        self.assertEqual((got[0], got[2:]), ("completed", ["1", "0", "0"]))

    def test_its_failure_is_a_warning(self):
        self.config("a", model="plane")
        _, _, err = self.said("survey", "--notify", "exit 3", code=0)
        self.assertIn("warning: the command of --notify failed with exit code 3", err)
        _, _, err = self.said("survey", "--notify", "kill -9 $$", code=0)
        self.assertIn("warning: the command of --notify was ended by signal 9", err)

    def test_an_interrupted_run_says_so_too(self):
        self.config("a", **TimeLimit.SLOW)
        path = os.path.join(self.root, "said")
        run = t.start("run", "survey", "fit", "-c", self.configs, "--skip-general", "--no-live",
                      "--notify", self.SAY, SAID=path)
        t.wait_for(lambda: any(line[3] == "fit" for line in t.starts(self.root)), 20, "a fit")
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 6, err)
        with open(path) as f:
            self.assertRegex(f.read(), r"^interrupted\|.*1 interrupted in .*\|1\|0\|6$")

    def test_nothing_ran_nothing_is_said(self):
        self.config("a", model="plane")
        for words in (["survey", "-n"], ["survey", "--plan"]):
            self.assertIsNone(self.said(*words, "--notify", self.SAY, code=0)[0])
        self.assertIsNone(self.said("survey", "--set", "nokey=1", "--notify", self.SAY, code=2)[0])


COMPLETIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/completions")


class Completion(Case):
    """Each shell offers what it should when Tab is pressed."""

    def setUp(self):
        super().setUp()
        for name in ("liver", "colon $(touch x)"):
            self.config(name, model="plane")
        self.run_all("run", "survey", "fit", "-c", self.configs, "--skip-general")
        self.shell = {**os.environ, "PATH": os.path.dirname(t.PROGRAM) + ":" + os.environ["PATH"]}

    def call(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.root, env=self.shell,
                              timeout=30)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def check(self, complete):
        self.assertEqual(complete("run", "--rer"), ["--rerun"])
        self.assertEqual(complete("run", "sur"), ["survey"])
        self.assertEqual(complete("run", "--rerun", "sur"), ["survey"])
        self.assertEqual(complete("config", "docs", "sou"), ["sounding"])
        self.assertEqual(complete("config", "do"), ["docs"])
        self.assertEqual(complete("sounding", "sur"), ["survey"])
        self.assertEqual(complete("logs", "li"), ["liver", "liver_plane"])
        self.assertEqual(complete("cancel", "liver_plane/"), ["liver_plane/fit"])
        self.assertEqual(complete("run", "all", "--only", "liver_"), ["liver_plane"])
        self.assertEqual(complete("help", "stat"), ["status"])
        self.assertEqual(complete("status", "con"), ["configs/"])

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash(self):
        source = f"source '{COMPLETIONS}/fathom.bash'; "
        self.assertEqual(self.call("bash", "-c", source + "complete -p fathom"),
                         ["complete -F _fathom fathom"])
        def complete(*words):
            quoted = " ".join(f"'{word}'" for word in ("fathom", *words))
            return [line + "/" * os.path.isdir(os.path.join(self.root, line)) for line in self.call(
                "bash", "-c", f"{source} COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _fathom; "
                'printf "%s\\n" "${COMPREPLY[@]}"')]
        self.check(complete)
        self.assertEqual(complete("run", "--only", "=", "liver_"), ["liver_plane"])
        self.assertEqual(complete("cancel", "--dir", self.out("liver"), "l"), ["liver", "liver_plane"])
        self.assertEqual(complete("logs", "col"), [r"colon\ \$\(touch\ x\)", r"colon\ \$\(touch\ x\)_plane"])
        self.assertFalse(os.path.exists(os.path.join(self.root, "x"))) # names are never evaluated

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        def complete(*words):
            lines = self.call("fish", "--no-config", "-c", f"source {COMPLETIONS}/fathom.fish; "
                              f"complete -C 'fathom {' '.join(words)}'")
            return [line.split("\t")[0] for line in lines]
        self.check(complete)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        """On a terminal: after Tab the line becomes the arguments of a command that prints it."""
        with open(os.path.join(self.root, ".zshrc"), "w") as f:
            f.write(f"bindkey -e; fpath=({COMPLETIONS} $fpath)\n"
                    "autoload -Uz compinit && compinit -u -D\n")
        keys = {**self.shell, "ZDOTDIR": self.root, "TERM": "xterm", "HOME": self.root}
        said = os.path.join(self.root, "said")
        for line, want in (("run --rer", "run --rerun"), ("run sur", "run survey"),
                           ("config do", "config docs"), ("config docs sou", "config docs sounding"),
                           ("logs li", "logs liver"), ("cancel liver_plane/", "cancel liver_plane/fit"),
                           ("run --only liver_", "run --only liver_plane"), ("help stat", "help status")):
            pid, fd = pty.fork()
            if pid == 0:
                os.chdir(self.root)
                os.execvpe("zsh", ["zsh", "-i"], keys)
            os.write(fd, f"fathom {line}\t\x01print -r -- \x05 >said\nexit\n".encode())
            try:
                while os.read(fd, 4096):
                    pass
            except OSError: # its end
                pass
            os.waitpid(pid, 0)
            os.close(fd)
            with open(said) as f:
                self.assertEqual(f.read().strip().rstrip("="), f"fathom {want}")

    def test_names(self):
        names = self.call("fathom", "status", "--names")
        self.assertEqual([name for name in names if "li" in name and "/" not in name],
                         ["liver", "liver_plane"])
        self.assertIn("liver_plane/fit", names)
        self.assertEqual(self.call("fathom", "status", "--names", self.configs), [])
        code, _, err = t.fathom("status", "--names", "--watch")
        self.assertEqual(code, 2, err)


class Dry(Case):
    def test_the_letter_writes_nothing(self):
        self.config("a", model="plane")
        before = self.tree()
        out, _ = self.run_all("run", "all", "-n", "-c", self.configs)
        self.assertIn("nothing was written", out)
        self.assertEqual(self.tree(), before)
        self.run_all("run", "survey", "-c", self.configs)
        before = self.tree()
        code, out, err = t.fathom("clean", self.out(), "--all", "-n")
        self.assertEqual((code, self.tree()), (0, before), out + err)


if __name__ == "__main__":
    unittest.main()
