"""Habits of people who run many jobs: a part of them, limits, retries, variants, a word at the end.
seconds: 40"""
import json
import os
import re
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
        got, out, err = self.said("survey", "fit", "analyze", "--notify", self.SAY, code=1)
        self.assertRegex(got.pop(1), r"^1 completed, 1 failed, 1 skipped in \d+\.\d s$")
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
