"""Many jobs as their users meet them: collisions, devices, full disks, signals, requests.
seconds: 75"""
import collections
import json
import os
import pty
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs as t


class Case(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="fathom-runner-")
        self.configs = os.path.join(self.root, "configs")
        self.killed = False # a runner that was killed cannot tidy up
        self.addCleanup(self.look_behind)

    def look_behind(self):
        t.wait_for(lambda: not t.processes(self.root), 10, "the end of all stages")
        passing = ("lock", "live.json", "live.json.tmp", "ledger.sqlite-wal", "ledger.sqlite-shm")
        left = [path for path in self.tree() if os.path.basename(path) in passing]
        if not self.killed:
            self.assertEqual(left, [])
        self.assertEqual([path for path in t.temporary_files(self.root) if path not in left], [])
        shutil.rmtree(self.root)

    def config(self, name="a", **keys):
        return t.write_config(self.root, name, **keys)

    def run_all(self, *words, code=0, **options):
        got, out, err = t.fathom(*words, "--no-live", **options)
        self.assertEqual(got, code, out + err)
        return out, err

    def out(self, *parts):
        return os.path.join(self.root, "out", *parts)

    def read(self, *parts):
        with open(self.out(*parts)) as f:
            return f.read()

    def tree(self):
        return sorted(os.path.join(folder, name) for folder, folders, files in os.walk(self.root)
                      for name in folders + files)


class Collisions(Case): # F4
    def refused(self, *paths):
        before = self.tree()
        words = [word for path in paths for word in ("-c", path)]
        out, err = self.run_all("run", "all", *words, code=2)
        for path in paths:
            self.assertIn(os.path.basename(os.path.dirname(path)), err)
        self.assertEqual(self.tree(), before)
        return err

    def test_one_directory_is_two_jobs_only_once(self):
        a = self.config("a", model="plane")
        b = self.config("b", model="plane", output_dir=self.out("a"))
        self.assertIn("FTH-JOB-002", self.refused(a, b))

    def test_links_and_dots_do_not_hide_it(self):
        a = self.config("a", model="plane")
        os.makedirs(self.out("a"))
        os.symlink(self.out("a"), self.out("link"))
        self.refused(a, self.config("b", model="plane", output_dir=self.out("link")))
        self.refused(a, self.config("c", model="plane", output_dir=self.out("x", "..", "a")))

    def test_one_survey_has_one_set_of_settings(self):
        a = self.config("a", model="plane")
        self.refused(a, self.config("b", model="bowl", output_dir=self.out("a"),
                                    **{"survey.cells": 65}))

    def test_two_directories_are_two_jobs(self):
        self.config("a", model="plane")
        self.config("b", model="plane")
        out, _ = self.run_all("run", "survey", "-c", self.configs + "/", "--skip-general")
        self.assertIn("2 completed", out)
        self.assertIn(f"status in {self.configs}/run_status.json", out)


class TwoCommands(Case): # F4, one after the other
    def test_results_of_another_config_are_not_replaced(self):
        a = self.config("a", model="plane")
        b = self.config("b", model="plane", output_dir=self.out("a"), **{"fit.iterations": 5})
        self.run_all("run", "all", "-c", a)
        before = {path: os.path.getmtime(path) for path in self.tree() if "/out/" in path}
        for words in (["run", "all"], ["run", "all", "--dry-run"], ["run", "fit", "--rerun", "fit"]):
            _, err = self.run_all(*words, "-c", b, code=2)
            self.assertIn("FTH-JOB-002", err)
            self.assertIn(a, err)
            self.assertIn(b, err)
            self.assertIn("fit.iterations was 4, is 5 (plane.yaml:6:17)", err)
            self.assertIn("--force", err)
        got, out, err = t.fathom("sounding", "fit", "-c", b)
        self.assertEqual(got, 2, out + err)
        self.assertIn("fit.iterations was 4, is 5", err)
        other = ["-c", b, "--set", "survey.cells=65"]
        self.assertEqual(t.fathom("sounding", "survey", *other)[0], 2)
        self.assertEqual({path: os.path.getmtime(path) for path in self.tree() if "/out/" in path},
                         before)
        out, _ = self.run_all("run", "all", "-c", b, "--force")
        self.assertIn("4 completed in", out)
        self.run_all("run", "all", "-c", a, code=2) # now they are those of b
        got, out, err = t.fathom("sounding", "survey", "-c", a, "--set", "survey.cells=65", "--force")
        self.assertEqual(got, 0, out + err) # by hand too

    def test_the_same_keys_in_another_file_are_cached(self):
        self.run_all("run", "all", "-c", self.config("a", model="plane"))
        b = self.config("b", model="plane", output_dir=self.out("a"))
        self.assertIn("4 completed (4 cached)", self.run_all("run", "all", "-c", b)[0])

    def test_the_same_file_may_be_edited(self):
        self.run_all("run", "all", "-c", self.config("a", model="plane"))
        a = self.config("a", model="plane", **{"survey.cells": 65})
        self.assertIn("4 completed in", self.run_all("run", "all", "-c", a)[0])
        self.run_all("run", "all", "-c", a, "--set", "survey.cells=66")

    def test_what_set_gave_is_not_replaced_by_what_a_file_says(self):
        a = self.config("a", model="plane")
        b = self.config("b", model="plane", output_dir=self.out("a"))
        self.run_all("run", "survey", "-c", a, "--set", "survey.cells=65")
        _, err = self.run_all("run", "survey", "-c", b, code=2)
        self.assertIn("survey.cells was 65, is 64", err)
        self.run_all("run", "survey", "-c", a)
        self.assertIn("(1 cached)", self.run_all("run", "survey", "-c", b)[0])

    def test_a_project_may_be_moved_and_copied(self):
        old, new = (os.path.join(self.root, name) for name in ("old", "new"))
        os.makedirs(old)
        text = "instrument: sounding\nname: c\noutput_dir: out\nmodel.basis: plane\nsurvey.cells: 64\n"
        with open(os.path.join(old, "c.yaml"), "w") as f:
            f.write(text)
        words = ["run", "survey", "-c", "c.yaml"]
        self.run_all(*words, cwd=old)
        shutil.copytree(old, new, copy_function=shutil.copy2)
        third = os.path.join(self.root, "third")
        for cells, folder, of, why in ((65, new, old, "has another output_dir today"),
                                       (66, third, new, "is not there any more")):
            if folder == third:
                os.rename(new, third)
            self.assertIn("(1 cached)", self.run_all(*words, cwd=folder)[0])
            with open(os.path.join(folder, "c.yaml"), "w") as f:
                f.write(text.replace("64", str(cells)))
            _, err = self.run_all(*words, cwd=folder)
            self.assertIn(f"were made by {of}/c.yaml, which {why}; they are replaced", err)

    def test_results_of_another_config_are_not_gone_on_with(self):
        a = self.config("a", model="plane")
        b = self.config("b", model="plane", output_dir=self.out("a"), **{"survey.cells": 65})
        self.run_all("run", "survey", "-c", a)
        before = self.tree()
        _, err = self.run_all("run", "fit", "-c", b, code=2)
        self.assertIn("'fit' of", err)
        self.assertIn("would build on the results of 'survey'", err)
        self.assertIn("survey.cells was 64, is 65", err)
        self.run_all("run", "fit", "--dry-run", "-c", b, code=2)
        self.assertEqual(t.fathom("sounding", "fit", "-c", b)[0], 2)
        self.assertEqual(self.tree(), before)
        self.run_all("run", "fit", "-c", b, "--force")
        self.run_all("run", "fit", "-c", a, "--force")
        a = self.config("a", model="plane", **{"survey.cells": 65}) # its own, edited: with a word
        _, err = self.run_all("run", "fit", "-c", a)
        self.assertIn("'fit' uses the results of 'survey' as they are, since that stage was not "
                      "requested: survey.cells was 64, is 65", err)

    def test_a_general_config_may_be_edited(self):
        self.run_all("run", "survey", "fit", "-c", self.config("a"))
        self.run_all("run", "survey", "fit", "-c", self.config("a", **{"survey.cells": 65}))
        bowl = os.path.join(self.configs, "a", "bowl.yaml") # the survey was run for plane.yaml
        self.assertIn("(2 cached)", self.run_all("run", "survey", "fit", "-c", bowl)[0])
        out, err = self.run_all("run", "survey", "-c", bowl, "--set", "survey.cells=66", code=2)
        self.assertIn("plane.yaml", err)

    def test_what_stands_on_a_changed_survey_is_stale(self):
        plane = self.config("a", model="plane")
        bowl = self.config("a", model="bowl", **{"survey.cells": 64})
        self.run_all("run", "survey", "fit", "analyze", "-c", bowl, "-c", plane)
        states = lambda: {task["id"]: task["state"] for task in json.loads(
            self.run_all_status("--json")[1])["tasks"]}
        self.assertEqual(set(states().values()), {"completed"})
        bowl = self.config("a", model="bowl", **{"survey.cells": 65})
        self.run_all("run", "survey", "fit", "-c", bowl, "--force")
        want = {"survey": "completed", "fit.bowl": "completed", "analyze.bowl": "stale",
                "fit.plane": "stale", "analyze.plane": "stale"}
        self.assertEqual(states(), want)
        self.assertRegex(self.run_all_status()[1], r"stale .*soundings.safetensors changed")
        with open(self.out("a", "run_status.json")) as f:
            jobs = json.load(f)["jobs"]
        self.assertEqual({key: (job["name"], job["model"], job["output_dir"], job["status"])
                          for key, job in jobs.items()},
                         {self.out("a", "bowl"): ("a_bowl", "bowl", self.out("a"), "stale"),
                          self.out("a", "plane"): ("a_plane", "plane", self.out("a"), "stale")})
        stages = jobs[self.out("a", "plane")]["stages"]
        self.assertEqual({name: stage["status"] for name, stage in stages.items()},
                         {"survey": "completed", "fit": "stale", "analyze": "stale"})
        t.fathom("report", self.out("a"), "-o", self.out("report.html"))
        with open(self.out("report.html")) as f:
            self.assertIn("3 stale", f.read())
        # by hand, the ledger does not hear of it, but its record does
        plane = self.config("a", model="plane", **{"survey.cells": 65})
        self.assertEqual(t.fathom("sounding", "fit", "-c", plane)[0], 0)
        self.assertEqual(states(), {**want, "fit.plane": "completed"})
        self.assertRegex(self.run_all_status()[1], r"a_plane +fit +\S+ +completed .*run by hand")
        task, record = self.task("fit.plane"), json.loads(self.read("a", ".fathom", "fit.plane.json"))
        for name in ("started", "ended", "seconds", "io_seconds", "compute_seconds"):
            self.assertAlmostEqual(task[name], record[name], delta=1e-3, msg=name)
        self.assertEqual((task["attempt"], task["cached"]), ("", False))
        self.assertEqual(task["planned_bytes"], record["planned_bytes"])
        self.assertEqual(task["input_hash"], record["input_hash"])
        self.assertNotIn("run by hand", json.dumps(self.task("fit.bowl")))
        # and once more: what it stands on now is not what its record says
        words = ["-c", plane, "--set", "survey.cells=66", "--force"]
        self.assertEqual(t.fathom("sounding", "survey", *words)[0], 0)
        self.assertEqual(states()["fit.plane"], "stale")
        self.run_all("run", "all", "-c", bowl, "-c", plane)
        self.assertEqual(set(states().values()), {"completed"})

    def task(self, name):
        return next(task for task in json.loads(self.run_all_status("--json")[1])["tasks"] if task["id"] == name)

    def test_a_stage_by_hand_is_in_the_status_of_runs_of_others(self):
        """run_status.json has the tasks that a run leaves alone, with the times of 'fathom status'."""
        plane = self.config("a", model="plane")
        self.run_all("run", "survey", "fit", "-c", plane)
        before = self.task("fit.plane")
        self.assertEqual(t.fathom("sounding", "fit", "-c", plane, "--force")[0], 0)
        self.assertGreater(self.task("fit.plane")["started"], before["ended"])
        self.run_all("run", "survey", "-c", plane)
        with open(self.out("a", "run_status.json")) as f:
            fit = next(iter(json.load(f)["jobs"].values()))["stages"]["fit"]
        self.assertEqual(fit["status"], "completed")
        self.assertAlmostEqual(fit["elapsed"], self.task("fit.plane")["seconds"], delta=1e-3)
        # a damaged record changes nothing
        with open(self.out("a", ".fathom", "fit.plane.json"), "a") as f:
            f.write("}")
        self.assertEqual(self.task("fit.plane")["started"], before["started"])

    def run_all_status(self, *words):
        return t.fathom("status", self.out(), *words)

    def test_an_entry_of_run_status_is_of_one_job(self):
        # both are "a_plane" in their own run
        status = os.path.join(self.root, "status.json")
        for folder in ("one", "two"):
            path = self.config("a", model="plane", output_dir=self.out(folder, "a"))
            self.run_all("run", "survey", "-c", path, "--status", status)
        with open(status) as f:
            self.assertEqual(len(json.load(f)["jobs"]), 2)

    def test_folders_of_models_that_are_links_to_one_place(self):
        a = self.config("a", model="plane")
        b = self.config("b", model="bowl")
        os.makedirs(self.out("shared"))
        os.makedirs(self.out("a"))
        os.makedirs(self.out("b"))
        os.symlink(self.out("shared"), self.out("a", "plane"))
        os.symlink(self.out("shared"), self.out("b", "bowl"))
        _, err = self.run_all("run", "all", "-c", a, "-c", b, code=2)
        self.assertIn("FTH-JOB-002", err)
        self.assertIn(self.out("shared"), err)
        c = self.config("c", model="waves", output_dir=self.out("a", "plane"))
        _, err = self.run_all("run", "all", "-c", a, "-c", c, code=2)
        self.assertIn("would write to one place", err)


class Forced(Case):
    def log(self):
        return self.read("a", "logs", "plane.log")

    def test_force_and_rerun_compute(self):
        self.config(model="plane")
        words = ["run", "all", "-c", self.configs, "--skip-general"]
        self.run_all(*words)
        self.run_all(*words, "--rerun", "fit")
        self.run_all(*words, "--force")
        log = self.log()
        self.assertEqual(log.count("a_plane/fit  attempt"), 3)
        self.assertNotIn("resuming after", log)
        self.assertEqual(log.count(" --force "), 4) # of fit, then of fit, analyze and figures
        self.assertEqual(self.read("a", "logs", "survey.log").count(" --force "), 1)
        self.run_all(*words, "--rerun", "fit", "--rerun", "figures")
        self.assertEqual(self.log().count(" --force "), 6)
        os.remove(self.out("a", ".fathom", "fit.plane.json")) # without it the checkpoint serves
        self.run_all(*words)
        self.assertIn("resuming after iteration 4 of 4", self.log())

    def test_every_stage_takes_it_by_hand(self):
        path = self.config(model="plane")
        for stage in ("survey", "fit", "analyze", "figures"):
            got, out, err = t.fathom("sounding", stage, "-c", path, "--force")
            self.assertEqual(got, 0, out + err)

    def test_a_name_that_is_none(self):
        self.config(model="plane")
        before = self.tree()
        words = ["-c", self.configs, "--skip-general"]
        _, err = self.run_all("run", "all", *words, "--rerun", "fti", code=2)
        self.assertIn("--rerun: there is no stage 'fti'", err)
        self.assertIn("did you mean 'fit'?", err)
        _, err = self.run_all("run", "survey", *words, "--rerun", "fit", code=2)
        self.assertIn("'fit' is not one of the stages to run: survey", err)
        self.run_all("run", "all", *words, "--rerun", "all", code=2)
        self.assertEqual(self.tree(), before)

    def test_results_of_an_older_algorithm_are_made_again(self):
        self.config(model="plane")
        words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
        self.run_all(*words)
        record = self.out("a", ".fathom", "fit.plane.json")
        with open(record) as f:
            text = f.read()
        self.assertIn('"algorithm": 1,', text)
        text = text.replace('"algorithm": 1,', '"algorithm": 0,')
        body = text[:text.rindex(',\n  "check"')]
        with open(record, "w") as f:
            f.write(body + f',\n  "check": "{t.xxh64(body.encode()):016x}"\n}}\n')
        out, _ = self.run_all(*words, "--dry-run")
        self.assertIn("fit: would run (algorithm 0 -> 1)", out)


class Devices(Case): # F9
    def test_a_gpu_that_is_not_there_is_an_error_before_anything_is_read(self):
        code, out, err = t.fathom("run", "all", "-c", "/nowhere", "--device", "cuda")
        self.assertEqual((code, out), (5, ""))
        self.assertIn("FTH-DEV-001", err)
        self.config()
        before = self.tree()
        self.run_all("run", "all", "-c", self.configs, "--device", "cuda", code=5)
        self.assertEqual(self.tree(), before)

    def test_auto_says_what_it_chose_and_why(self):
        self.config(model="plane")
        out, _ = self.run_all("run", "survey", "-c", self.configs, "--skip-general")
        line = out.splitlines()[0]
        self.assertRegex(line, r"^device: (cpu|cuda:\d) \(auto: .+\)$")
        self.assertRegex(out, r"(?m)^(cpu|cuda:\d): 1 tasks, \S+ s; compute \d+ %")
        out, _ = self.run_all("run", "survey", "-c", self.configs, "--skip-general")
        self.assertNotIn("tasks,", out) # nothing ran

    def test_a_monitor_writes_beside_the_results(self):
        self.config(model="plane")
        self.run_all("run", "survey", "-c", self.configs, "--skip-general", "--monitor", "1")
        with open(os.path.join(self.configs, "host_monitor.csv")) as table:
            self.assertEqual(table.readline(), "time,rss,read_bytes,write_bytes,cpu%\n")
            self.assertGreater(int(table.readline().split(",")[1]), 1 << 20)

    def test_a_monitor_of_a_new_directory(self):
        path = self.config(output_dir=self.out("not", "yet", "there"))
        self.run_all("run", "survey", "-c", path, "--monitor", "1")
        with open(self.out("not", "yet", "there", "host_monitor.csv")) as table:
            self.assertEqual(table.readline(), "time,rss,read_bytes,write_bytes,cpu%\n")

    def test_a_monitor_of_what_fails(self):
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "error"})
        words = ["-c", self.configs, "--skip-general", "--monitor", "1"]
        _, err = self.run_all("run", "survey", *words, code=1)
        self.assertIn("FTH-JOB-001", err)
        self.assertIn("monitor: ", err)

    def test_only_gpus_without_one(self):
        self.config()
        _, err = self.run_all("run", "all", "-c", self.configs, "--gpu-only", "--device", "cpu",
                              code=5)
        self.assertIn("none is usable", err)


class Caching(Case):
    def reasons(self, *words):
        out, _ = self.run_all("run", *words, "-c", self.configs, "--dry-run")
        return out

    def test_what_changed_runs_again_and_says_why(self):
        self.config(model="plane")
        words = ["--skip-general"]
        self.run_all("run", "all", "-c", self.configs, *words)
        self.assertEqual(len(t.starts(self.root)), 4)
        self.assertIn("4 completed (4 cached)",
                      self.run_all("run", "all", "-c", self.configs, *words)[0])
        self.assertEqual(len(t.starts(self.root)), 4)
        self.assertIn("fit: would run (fit.iterations was 4",
                      self.reasons("all", *words, "--set", "fit.iterations=5"))
        os.remove(self.out("a", "plane", "map.npy"))
        out = self.reasons("all", *words)
        self.assertRegex(out, r"analyze: would run \(.*map.npy")
        self.assertRegex(out, r"figures: would run \(after a_plane/analyze\)")
        self.run_all("run", "all", "-c", self.configs, *words)
        # analyze left the same bytes as before: nothing after it runs
        self.assertEqual([line[3] for line in t.starts(self.root)[4:]], ["analyze"])
        self.assertIn("fit: would run (--rerun)", self.reasons("all", *words, "--rerun", "fit"))
        self.run_all("run", "all", "-c", self.configs, *words, "--force")
        self.assertEqual(len(t.starts(self.root)), 9)

    def test_the_seed_is_part_of_what_is_cached(self):
        self.config(model="plane")
        words = ["run", "survey", "-c", self.configs, "--skip-general"]
        self.run_all(*words, "--seed", "5")
        self.assertIn("(1 cached)", self.run_all(*words, "--seed", "5")[0])
        self.assertIn("seed was 5", self.run_all(*words, "--dry-run")[0])

    def test_a_dry_run_writes_nothing(self):
        self.config()
        before = self.tree()
        out = self.reasons("all")
        self.assertEqual(self.tree(), before)
        self.assertIn("3 jobs, 10 tasks; nothing was written", out)
        self.assertIn("a/survey: would run", out)
        self.assertIn(self.out("a"), out)
        self.assertRegex(out, r"predicted: memory \d+\.\d+ [KM]iB")
        view = json.loads(t.fathom("run", "all", "-c", self.configs, "--dry-run", "--json")[1])
        self.assertEqual(len(view["tasks"]), 10)
        self.run_all("run", "all", "-c", self.configs, "--plan") # as of every command
        self.assertEqual(self.tree(), before)

    def test_json_is_all_that_is_written(self):
        self.config(model="plane")
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--skip-general", "--json")
        self.assertEqual([task["state"] for task in json.loads(out)["tasks"]], 2 * ["completed"])

    def test_verify_reads_what_only_looks_the_same(self):
        self.config(model="plane")
        words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
        self.run_all(*words)
        path = self.out("a", "soundings.safetensors")
        st = os.stat(path)
        with open(path, "r+b") as f: # another value of the same length
            f.seek(-1, os.SEEK_END)
            last = f.read(1)
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last[0] ^ 1]))
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        out, _ = self.run_all(*words, "--dry-run")
        self.assertIn("fit: cached", out)
        out, _ = self.run_all(*words, "--dry-run", "--verify")
        self.assertIn("fit: would run (input soundings.safetensors changed)", out)
        self.run_all(*words, "--verify")
        self.assertIn(" --verify ", self.read("a", "logs", "plane.log"))

    def test_a_stage_that_was_not_asked_for_must_have_run(self):
        self.config(model="plane")
        out, err = self.run_all("run", "analyze", "-c", self.configs, "--skip-general", code=1)
        self.assertIn("blocked", out)
        self.assertIn("needs the results of 'survey fit'", out)
        self.assertEqual(t.starts(self.root), [])

    def test_the_log_has_the_line_that_does_it_by_hand(self):
        self.config(model="plane", name="it's a name")
        self.run_all("run", "survey", "-c", self.configs, "--skip-general")
        log = self.read("it's a name", "logs", "survey.log")
        line = [x for x in log.splitlines() if x.startswith("==== command: ")][0][14:]
        record = self.out("it's a name", ".fathom", "survey.json")
        os.remove(record)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(record))
        self.assertIn("ended: exit 0 after", log)


class Failures(Case):
    def test_others_go_on_and_the_error_is_told(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "error", "drill.chance": 1})
        self.config("b")
        out, err = self.run_all("run", "survey", "fit", "analyze", "-c", self.configs, code=1)
        self.assertIn("8 completed, 3 failed, 3 skipped", out)
        self.assertIn("FTH-JOB-001", err)
        self.assertIn("asked to find a bad file", out)
        self.assertIn("error FTH-FILE-004", self.read("a", "logs", "plane.log"))
        # --failed: the configs of those three, and of no other
        shutil.rmtree(self.out("b"))
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--failed", "--set",
                              "drill.stage=none")
        self.assertIn("4 completed (1 cached)", out)
        self.assertFalse(os.path.exists(self.out("b")))
        out, _ = self.run_all("run", "survey", "fit", "-c", self.configs, "--failed")
        self.assertIn("nothing to re-run", out)

    def test_failed_ones_whose_config_is_gone_or_not_named(self):
        keys = {"model": "plane", "drill.stage": "survey", "drill.kind": "error", "drill.chance": 1}
        a, b, c = (self.config(name, **keys) for name in "abc")
        words = ["run", "survey", "--skip-general", "--status", os.path.join(self.root, "s.json")]
        self.run_all(*words, "-c", self.configs, code=1)
        os.remove(b)
        mended = ["--failed", "--set", "drill.stage=none"]
        out, err = self.run_all(*words, "-c", a, *mended)
        self.assertIn("1 completed", out)
        self.assertIn(f"{b}: the config of this failed job no longer exists", err)
        self.assertFalse(os.path.exists(self.out("c", ".fathom", "survey.json")))
        out, _ = self.run_all(*words, "-c", self.configs, *mended)
        self.assertIn("1 completed", out)
        self.assertTrue(os.path.exists(self.out("c", ".fathom", "survey.json")))
        self.assertIn("nothing to re-run", self.run_all(*words, "-c", self.configs, *mended)[0])

    def test_failed_without_a_run_before(self):
        self.config()
        _, err = self.run_all("run", "all", "-c", self.configs, "--failed", code=3)
        self.assertIn("run_status.json", err)

    def test_a_crash_is_named_by_its_signal(self):
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "crash"})
        out, _ = self.run_all("run", "survey", "-c", self.configs, "--skip-general", code=1)
        self.assertIn("SIGABRT", out)
        self.assertIn("ended: SIGABRT", self.read("a", "logs", "survey.log"))

    def test_what_never_fits_fails_at_once(self):
        self.config(model="plane")
        out, _ = self.run_all("run", "survey", "-c", self.configs, "--skip-general", "--memory",
                              "1M", code=1)
        self.assertRegex(out, r"(?m)^a/survey: failed: the smallest plan needs [^?\n]*$")
        with open(os.path.join(self.configs, "run_status.json")) as f:  # which has the rest
            self.assertIn("\n", next(iter(json.load(f)["jobs"].values()))["error"])
        self.assertEqual(t.starts(self.root), [])

    def test_a_missing_input(self):
        self.config(model="plane")
        self.run_all("run", "survey", "-c", self.configs, "--skip-general")
        os.remove(self.out("a", "soundings.safetensors"))
        out, _ = self.run_all("run", "fit", "-c", self.configs, "--skip-general", code=1)
        self.assertIn("soundings.safetensors", out)

    def test_a_full_disk(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "fill",
                                      "drill.bytes": "64M"})
        self.config("b", model="plane")
        done = subprocess.run([t.PROGRAM, "run", "survey", "-c", self.configs, "--skip-general",
                               "--no-live"], capture_output=True, text=True,
                              preexec_fn=small_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 completed, 1 failed", done.stdout)
        self.assertIn("File too large", self.read("a", "logs", "survey.log"))

    def test_a_disk_without_room(self):
        mount = os.path.join(self.root, "out")
        os.makedirs(mount)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", mount],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"a small file system cannot be mounted here: {done.stderr.strip()}")
        try:
            self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "fill",
                                          "drill.bytes": "64M"})
            out, err = self.run_all("run", "survey", "-c", self.configs, "--skip-general", code=1)
            self.assertIn("No space left on device", out + err)
            filler = os.open(os.path.join(mount, "filler"), os.O_WRONLY | os.O_CREAT)
            with self.assertRaises(OSError):
                while True:
                    os.write(filler, bytes(4096))
            os.close(filler)
            code, out, err = t.fathom("run", "survey", "-c", self.configs, "--skip-general",
                                      "--no-live")
            self.assertIn(code, (1, 3), out + err) # the ledger itself has no room
            os.remove(os.path.join(mount, "filler"))
            self.run_all("run", "survey", "-c", self.configs, "--skip-general", "--set",
                         "drill.stage=none")
        finally:
            subprocess.run(["umount", mount])

    def limited(self, kind, bytes, *words):
        return subprocess.run([t.PROGRAM, *words], capture_output=True, text=True, timeout=20,
                              preexec_fn=lambda: resource.setrlimit(kind, (bytes, bytes)))

    def test_a_limit_of_addresses(self):
        path = self.config(model="plane")
        if json.loads(t.fathom("version", "--json")[1])["build"]["sanitizers"]:
            self.skipTest("a sanitizer takes all addresses")
        for size in (120 << 20, 200 << 20):
            done = self.limited(resource.RLIMIT_AS, size, "run", "all", "-c", path, "--no-live")
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("ulimit -v", done.stderr)

    def test_a_limit_of_files(self):
        """Once SIGXFSZ ended the runner at its first line, and nothing was said."""
        path = self.config(model="plane")
        for size in (0, 4096, 65536):
            done = self.limited(resource.RLIMIT_FSIZE, size, "run", "all", "-c", path, "--no-live")
            self.assertIn(done.returncode, (1, 3), done.stdout + done.stderr)
            self.assertIn("error FTH-", done.stderr)
            self.assertRegex(done.stdout + done.stderr, "could not be written|File too large")
            self.killed = True # what cannot be written cannot be tidied up either
        self.run_all("run", "all", "-c", path)

    def test_pipes_in_place_of_files(self):
        """Whoever opens one waits for the other end."""
        for name, code in ((".fathom/ledger.sqlite", 3), (".fathom/ledger.sqlite-wal", 3),
                           (".fathom/lock", 0), (".fathom/live.json", 0), (".fathom/survey.json", 0),
                           ("run_status.json", 0), ("logs/survey.log", 0),
                           ("soundings.safetensors", 1)):
            path = self.config(model="plane", output_dir=self.out("p"))
            place = self.out("p", name)
            os.makedirs(os.path.dirname(place))
            os.mkfifo(place)
            got, out, err = t.fathom("run", "survey", "-c", path, "--no-live", timeout=20)
            self.assertEqual(got, code, name + out + err)
            if code:
                self.assertIn(place, out + err)
            t.fathom("status", self.out("p"), timeout=20)
            t.fathom("logs", "survey", "--dir", self.out("p"), timeout=20)
            shutil.rmtree(self.out("p"))

    def test_long_paths(self):
        for size in (470, 520, 1200, 4000):
            deep = self.out()
            while len(deep) < size:
                deep = os.path.join(deep, "d" * min(100, size - len(deep)))
            path = self.config(model="plane", output_dir=deep)
            code = 0 if size < 480 else 3
            _, err = self.run_all("run", "survey", "-c", path, code=code)
            if code:
                self.assertIn("choose an output_dir of at most", err)
                self.assertEqual(t.starts(self.root)[1:], []) # nothing was started
                self.assertFalse(os.path.exists(os.path.join(deep, ".fathom"))) # or made

    def test_a_place_for_the_status_or_the_trace_that_is_none(self):
        path = self.config(model="plane")
        mine = os.path.join(self.root, "mine.json")
        with open(mine, "w") as f:
            f.write('{"name": "of somebody else"}')
        words = ["run", "survey", "-c", path]
        before = self.tree()
        for place, why in ((self.root, "it is a folder"), (mine, "it is no run_status.json"),
                           (os.path.join(self.root, "no", "s.json"), "No such file")):
            _, err = self.run_all(*words, "--status", place, code=3)
            self.assertIn(why, err)
        link = os.path.join(self.root, "trace.json")
        os.symlink(path, link)
        for place in (path, link):
            _, err = self.run_all(*words, "--trace", place, code=2)
            self.assertIn("would replace the config", err)
        os.remove(link)
        self.assertEqual(self.tree(), before)
        with open(mine) as f:
            self.assertIn("somebody", f.read())

    def test_a_directory_that_cannot_be_written(self):
        self.config(model="plane", output_dir="/proc/fathom-out")
        _, err = self.run_all("run", "survey", "-c", self.configs, "--skip-general", code=3)
        self.assertIn("/proc/fathom-out", err) # there is no other
        self.config("b", model="plane")
        out, err = self.run_all("run", "survey", "fit", "-c", self.configs, "--skip-general", code=1)
        self.assertIn("2 completed, 2 failed", out)
        self.assertIn("not in the ledger of /proc/fathom-out: fathom-out/survey failed, "
                      "fathom-out_plane/fit failed (", out)
        self.assertEqual([line[2:] for line in t.starts(self.root)],
                         [["b", "survey"], ["b_plane", "fit"]])
        self.assertFalse(os.path.exists(self.out("b", ".fathom", "lock")))

    def test_a_ledger_that_is_held_for_a_while(self):
        for name in "ab":
            self.config(name, model="plane")
        words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
        self.run_all(*words)
        holder = sqlite3.connect(self.out("a", ".fathom", "ledger.sqlite"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        runner = t.start(*words, "--force", "--no-live")
        self.addCleanup(runner.kill)
        # b goes on to its end, while a waits after its first task
        t.wait_for(lambda: [line[2:] for line in t.starts(self.root)[4:]].count(["b_plane", "fit"]),
                   what="the fit of b")
        self.assertNotIn(["a_plane", "fit"], [line[2:] for line in t.starts(self.root)[4:]])
        holder.execute("ROLLBACK")
        holder.close()
        out, err = runner.communicate(timeout=30)
        self.assertEqual(runner.returncode, 0, out + err)
        self.assertIn("4 completed in", out)
        self.assertIn("is held by another program", err)
        self.assertNotIn("not in the ledger", out)
        view = json.loads(t.fathom("status", self.out("a"), "--json")[1])
        self.assertEqual([task["state"] for task in view["tasks"]], ["completed"] * 2)
        # what waited was told once, and as it was in the end
        self.assertEqual([(change["task"], change["to"]) for change in view["changes"][4:]][-2:],
                         [(1, "running"), (1, "completed")])
        self.assertEqual([change["to"] for change in view["changes"][4:]
                          if change["task"] == 0][-1:], ["completed"])
        for task in (0, 1): # each change begins where the one before ended
            mine = [change for change in view["changes"] if change["task"] == task]
            self.assertEqual([change["from"] for change in mine[1:]],
                             [change["to"] for change in mine[:-1]])

    def test_a_full_disk_of_one_directory(self):
        mount = self.out("a")
        os.makedirs(mount)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mount],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"a small file system cannot be mounted here: {done.stderr.strip()}")
        try:
            for name in "ab":
                self.config(name, model="plane")
            words = ["run", "survey", "fit", "-c", self.configs, "--skip-general"]
            self.run_all(*words)
            with open(os.path.join(mount, "filler"), "wb", buffering=0) as filler:
                with self.assertRaises(OSError):
                    while True:
                        filler.write(bytes(4096))
            out, err = self.run_all(*words, "--force", code=1, FATHOM_LEDGER_WAIT="1")
            self.assertRegex(out, r"2 completed, \d failed") # those of b, and none of a
            self.assertNotRegex(out, r"b\S*/\S+: failed")
            view = json.loads(t.fathom("status", self.out("b"), "--json")[1])
            self.assertEqual([task["state"] for task in view["tasks"]], ["completed"] * 2)
            os.remove(os.path.join(mount, "filler"))
            self.assertIn("4 completed", self.run_all(*words)[0])
        finally:
            subprocess.run(["umount", mount])

    def test_a_read_only_directory(self):
        os.makedirs(self.out("a"))
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", self.out("a")],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"nothing can be mounted read-only here: {done.stderr.strip()}")
        try:
            self.config(model="plane")
            _, err = self.run_all("run", "survey", "-c", self.configs, "--skip-general", code=3)
            self.assertIn("Read-only file system", err)
        finally:
            subprocess.run(["umount", self.out("a")])


class Signals(Case):
    def begin(self, kind, seconds=60, n=1, **environment):
        for i in range(n):
            self.config(f"d{i}", model="plane",
                        **{"drill.stage": "survey", "drill.kind": kind, "drill.seconds": seconds})
        before = len(t.starts(self.root))
        runner = t.start("run", "survey", "fit", "-c", self.configs, "--skip-general", "--no-live",
                         "--jobs", "2", **environment)
        self.addCleanup(runner.kill)
        t.wait_for(lambda: len(t.starts(self.root)) >= before + min(n, 2), what="the start of a stage")
        return runner

    def test_a_stopped_run_saves_its_state_and_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            runner = self.begin("slow", n=3)
            runner.send_signal(number)
            out, err = runner.communicate(timeout=30)
            self.assertEqual(runner.returncode, 6, out + err)
            self.assertIn("6 interrupted", out)
            self.assertEqual(t.processes(self.root), [])
            with open(os.path.join(self.configs, "run_status.json")) as f:
                status = json.load(f)
            self.assertEqual({job["status"] for job in status["jobs"].values()}, {"failed"})
        self.run_all("run", "survey", "fit", "-c", self.configs, "--failed", "--skip-general",
                     "--set", "drill.stage=none")
        self.assertEqual(len(t.records(self.root)), 6)

    def test_a_second_signal_kills_what_does_not_listen(self):
        runner = self.begin("hang")
        runner.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(runner.poll())
        runner.send_signal(signal.SIGINT)
        out, err = runner.communicate(timeout=5)
        self.assertEqual(runner.returncode, 6, out + err)

    def test_ctrl_z_stops_the_stages_too(self):
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "slow",
                                      "drill.seconds": 2})
        runner = subprocess.Popen(
            [t.PROGRAM, "run", "survey", "-c", self.configs, "--skip-general", "--no-live"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
        self.addCleanup(runner.kill)
        t.wait_for(lambda: t.starts(self.root), what="the start of a stage")
        stage = int(t.starts(self.root)[0][1])

        runner.send_signal(signal.SIGTSTP)
        t.wait_for(lambda: t.state(stage) == "T" and t.state(runner.pid) == "T", 5, "the pause")
        time.sleep(2.5)  # longer than the stage would take
        self.assertEqual((t.state(stage), t.state(runner.pid)), ("T", "T"))
        runner.send_signal(signal.SIGCONT)
        t.wait_for(lambda: t.state(stage) != "T", 5, "the end of the pause")
        out, err = runner.communicate(timeout=30)
        self.assertEqual(runner.returncode, 0, out + err)

    def test_ctrl_z_again(self):
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "slow",
                                      "drill.seconds": 60})
        runner = subprocess.Popen(
            [t.PROGRAM, "run", "survey", "-c", self.configs, "--skip-general", "--quiet"],
            stderr=subprocess.DEVNULL, process_group=0)
        self.addCleanup(runner.kill)
        t.wait_for(lambda: t.starts(self.root), what="the start of a stage")
        both = int(t.starts(self.root)[0][1]), runner.pid

        def stopped():
            return [t.state(pid) == "T" for pid in both]
        for _ in range(2):
            runner.send_signal(signal.SIGTSTP)
            t.wait_for(lambda: all(stopped()), 5, "the pause")
            runner.send_signal(signal.SIGCONT)
            t.wait_for(lambda: not any(stopped()), 5, "the end of the pause")
            time.sleep(0.5)
            self.assertEqual(stopped(), [False, False]) # one signal is one pause
        runner.send_signal(signal.SIGTERM)
        self.assertEqual(runner.wait(timeout=30), 6)

    def test_a_hangup_ends_it_unless_it_is_ignored(self):
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "slow",
                                      "drill.seconds": 60})
        for ignored in (True, False):
            before = len(t.starts(self.root))
            runner = subprocess.Popen(
                [t.PROGRAM, "run", "survey", "-c", self.configs, "--skip-general", "--quiet"],
                stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored
                                                 else signal.SIG_DFL))
            self.addCleanup(runner.kill)
            t.wait_for(lambda: len(t.starts(self.root)) > before, what="the start of a stage")
            runner.send_signal(signal.SIGHUP)
            if ignored: # as nohup does
                time.sleep(0.5)
                self.assertIsNone(runner.poll())
                runner.send_signal(signal.SIGTERM)
            self.assertEqual(runner.wait(timeout=30), 6)

    def test_children_die_with_the_runner(self):
        self.killed = True
        runner = self.begin("hang")
        runner.kill()
        runner.communicate()
        t.wait_for(lambda: not t.processes(self.root), 5, "the end of the stage")

    def test_what_a_killed_runner_was_writing_goes_with_the_next(self):
        self.config("d0", model="plane")
        half = self.out("d0", ".fathom", "live.json.tmp")
        os.makedirs(os.path.dirname(half))
        with open(half, "w") as f:
            f.write('{"pid":')
        self.run_all("run", "survey", "-c", self.configs, "--skip-general")
        self.assertFalse(os.path.exists(half))

    def test_what_a_killed_runner_left(self):
        self.killed = True
        plane = self.config("a", model="plane")
        bowl = self.config("a", model="bowl", **{"drill.stage": "fit", "drill.kind": "hang"})
        runner = t.start("run", "survey", "fit", "-c", bowl, "--no-live")
        self.addCleanup(runner.kill)
        runs = lambda: '"running"' in t.fathom("status", self.out("a"), "--json")[1]
        t.wait_for(lambda: len(t.starts(self.root)) == 2 and runs(), what="the start of the fit")
        runner.kill()
        runner.communicate()
        t.wait_for(lambda: not t.processes(self.root), 5, "the end of the stage")
        # of a job that the next run does not have, too
        self.run_all("run", "survey", "fit", "-c", plane)
        with open(self.out("a", "run_status.json")) as f:
            job = json.load(f)["jobs"][self.out("a", "bowl")]
        self.assertEqual((job["status"], job["stages"]["fit"]["status"]), ("failed", "interrupted"))
        # a lock alone tells that files may be left, whatever the ledger says
        runner = t.start("run", "survey", "fit", "-c", bowl, "--no-live")
        self.addCleanup(runner.kill)
        t.wait_for(lambda: len(t.starts(self.root)) == 4, what="the start of the fit")
        runner.kill()
        runner.communicate()
        t.wait_for(lambda: not t.processes(self.root), 5, "the end of the stage")
        left = self.out("a", "plane", f".model.safetensors.{runner.pid}-5f3a.tmp")
        with open(left, "w") as f:
            f.write("half")
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
            if os.path.exists(self.out("a", ".fathom", name)):
                os.remove(self.out("a", ".fathom", name))
        self.run_all("run", "survey", "fit", "-c", plane)
        self.assertFalse(os.path.exists(left))

    def test_two_runners_on_one_directory(self):
        runner = self.begin("slow")
        _, err = self.run_all("run", "survey", "-c", self.configs, "--skip-general", code=2)
        self.assertIn("FTH-JOB-003", err)
        self.assertIn(f"process {runner.pid} ", err)
        self.assertIsNone(runner.poll())
        runner.send_signal(signal.SIGTERM)
        runner.communicate(timeout=30)

    def test_cancel_ends_one_job(self):
        runner = self.begin("slow", n=2)
        _, err = self.run_all_cancel("nothing-like-it", code=2)
        self.run_all_cancel("d0/survey")
        t.wait_for(lambda: len(t.processes(self.root)) == 1, what="the end of one stage")
        self.assertIsNone(runner.poll())
        self.run_all_cancel("d1/survey")
        out, err = runner.communicate(timeout=30)
        self.assertEqual(runner.returncode, 6, out + err)
        self.assertIn("cancelled by request", out)
        self.assertIn("2 skipped, 2 interrupted", out)
        self.run_all_cancel("d0/survey", code=2) # nobody runs there now

    def run_all_cancel(self, name, code=0):
        got, out, err = t.fathom("cancel", name, "--dir", self.out())
        self.assertEqual(got, code, out + err)
        return out, err


class Report(Case):
    def counts(self):
        """What the report and run_status.json say of how many jobs there are in which state."""
        with open(self.out("a", "run_status.json")) as f:
            status = collections.Counter(job["status"] for job in json.load(f)["jobs"].values())
        self.run_all_report()
        with open(self.out("a", "report.html")) as f:
            text = re.search(r'<noscript><p class="wide">(.*?);', f.read())[1]
        n, *states = text.split(", ")
        shown = collections.Counter({state: int(k) for k, state in map(str.split, states)})
        self.assertEqual(n, f"{sum(shown.values())} jobs")
        return shown, status

    def run_all_report(self):
        got, out, err = t.fathom("report", self.out("a"))
        self.assertEqual(got, 0, out + err)

    def test_it_counts_as_run_status_does(self):
        seed = next(s for s in range(99) if sum(t.hit(s, m, "fit", 0.5) for m in t.MODELS) == 1)
        path = self.config("a", seed=seed, **{"drill.stage": "fit", "drill.kind": "error",
                                              "drill.chance": 0.5})
        self.run_all("run", "all", "-c", path, code=1)
        shown, status = self.counts()
        self.assertEqual(shown, status)
        self.assertEqual(status, {"completed": 2, "failed": 1})
        self.assertEqual(sum(status.values()), 3) # the survey is no job of its own
        self.run_all("run", "all", "-c", path, "--set", "drill.stage=none") # some are cached
        shown, status = self.counts()
        self.assertEqual(shown, status)
        self.assertEqual(status, {"completed": 3})


class Terminal(Case):
    EVIL = "\x1b]0;evil\x07\x1b[2J\x9b31m\u009b5A\x08"

    def on_terminal(self, *words, typed=""):
        """What a terminal gets; both outputs are it."""
        master, slave = pty.openpty()
        done = subprocess.Popen([t.PROGRAM, *words], stdin=slave, stdout=slave, stderr=slave,
                                env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
        os.close(slave)
        os.write(master, typed.encode())
        text = b""
        try:
            while piece := os.read(master, 65536):
                text += piece
        except OSError:
            pass # the end of a terminal
        os.close(master)
        done.wait(30)
        return text.replace(b"\r\n", b"\n")

    def quiet(self, text, *ours):
        for escape in ours:
            text = re.sub(escape, b"", text)
        self.assertNotRegex(text, rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|[^\xc2-\xf4\x80-\xbf][\x80-\xbf]")
        return text

    def test_texts_of_others_cannot_steer_it(self):
        evil = self.EVIL.encode("latin-1", "replace") + "\u009b31m".encode()
        path = self.config("a", model="plane")
        self.run_all("run", "survey", "-c", path)
        log = self.out("a", "logs", "survey.log")
        with open(log, "ab") as f:
            f.write(b"<" + evil + b">one\rtwo\r\nl\xc3\xa9s\n")
        with open(log, "rb") as f:
            raw = f.read()
        shown = self.quiet(self.on_terminal("logs", "a/survey", "--all", "--dir", self.out("a")))
        self.assertIn(b">one\ntwo\nl\xc3\xa9s\n", shown)
        self.assertIn(b"?]0;evil?", shown)
        piped = subprocess.run([t.PROGRAM, "logs", "a/survey", "--all", "--dir", self.out("a")],
                               capture_output=True, timeout=20)
        self.assertEqual(piped.stdout, raw) # a file gets every byte

    def test_names_and_errors(self):
        name = "b\x1b[31m\x07"
        folder = os.path.join(self.configs, name)
        os.renames(self.config(model="plane",
                               output_dir='"' + self.out("c") + '\\x1b[31m\\x07"'),
                   path := os.path.join(folder, "plane.yaml"))
        for words in (("config", "check", path), ("config", "check", path + "\x1b[2J"),
                      ("config", "check", path, "--set", "model.basis=\x1b[2J"),
                      ("run", "survey", "-c", path, "--dry-run"), ("\x1b[2J",),
                      ("config", "docs", "x\x1b[2J")):
            self.quiet(self.on_terminal(*words))
        table = rb"\x1b\[[0-9]*[AJK]|\r"
        self.assertRegex(self.on_terminal("run", "survey", "-c", path), rb"\x1b\[K") # it draws
        self.quiet(self.on_terminal("run", "survey", "-c", path), table)
        self.quiet(self.on_terminal("status", self.out()), table)
        self.quiet(self.on_terminal("clean", self.out(), "--all", typed="n\n"))
        before = self.tree()
        for typed in ("n\n", "\n", "maybe\n"):
            self.assertIn(b"Remove them?", self.on_terminal("clean", self.out(), "--all", typed=typed))
            self.assertEqual(self.tree(), before)
        self.on_terminal("clean", self.out(), "--all", typed="y\n")
        self.assertLess(len(self.tree()), len(before))


if __name__ == "__main__":
    unittest.main()
