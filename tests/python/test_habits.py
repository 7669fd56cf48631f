"""Habits of people who run many jobs: a part of them, limits, retries, variants, a word at the end.
seconds: 40"""
import json
import os
import signal
import sqlite3
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
