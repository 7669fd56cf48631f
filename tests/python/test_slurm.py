"""`fathom run --executor slurm` against a small Slurm of our own (fake_slurm.py); the real one is long_slurm.py.
seconds: 120"""
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fake_slurm
import jobs
from long_slurm import ledger, outputs, write_bragg


class Slurm(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="fathom-slurm-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        folder = os.path.join(self.root, "cluster")
        os.makedirs(folder)
        self.cluster = fake_slurm.Cluster(folder)
        self.addCleanup(self.cluster.stop)

    def words(self, *more):
        return ["run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "slurm", "--no-live",
                "--threads", "1", "--memory", "500M", *more]

    def run_all(self, *more, **environment):
        return jobs.fathom(*self.words(*more), cwd=self.root, **{**self.cluster.environment, **environment})

    def fails(self, code, said, *more, **environment):
        done, out, err = self.run_all(*more, **environment)
        self.assertEqual(done, code, out + err)
        self.assertIn(said, err)
        return err

    def config(self, **keys):
        jobs.write_config(self.root, "one", model="plane", **keys)

    def row(self, task):
        return ledger(self.root)[0]["one", task]

    # ---- what works ----

    def test_results_are_those_of_local_processes(self):
        for name, seed in (("one", 1), ("two", 2)):
            jobs.write_config(self.root, name, seed=seed)
        self.cluster.want(size=3)  # 0, 1, 2
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)
        rows, completed = ledger(self.root)
        self.assertEqual({state for state, _ in rows.values()}, {"completed"})
        self.assertEqual((len(rows), set(completed.values())), (20, {1}))
        began = [(job, stage) for _, _, job, stage in jobs.starts(self.root)]
        self.assertEqual((len(began), len(set(began))), (20, 20))
        waits = {d.partition(":")[0] for _, _, _, d in self.cluster.elements()}
        self.assertEqual(waits, {"", "afterok", "aftercorr"})  # two directories, three models in each
        gaps = self.cluster.calls("squeue")
        self.assertTrue(all(b - a > 4.5 for a, b in zip(gaps, gaps[1:])), gaps)
        self.assertFalse(os.path.exists(os.path.join(self.root, "out", "one", ".fathom", "slurm.d")))
        mine = outputs(self.root)
        shutil.rmtree(os.path.join(self.root, "out"))
        code, out, err = jobs.fathom("run", "all", "-c", os.path.join(self.root, "configs"), "--no-live", "--threads", "2")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(mine, outputs(self.root))
        code, out, err = self.run_all()
        self.assertIn("20 cached", out + err)

    def test_more_jobs_follow_when_the_site_takes_no_more(self):
        for k in range(3):
            jobs.write_config(self.root, f"d{k}", model="plane", seed=k)
        self.cluster.want(submit=6)
        p = jobs.start(*self.words(), cwd=self.root, **self.cluster.environment)
        jobs.wait_for(lambda: len(self.cluster.calls("sbatch")) >= 4, 30, "the first refusal")
        out, err = p.communicate(timeout=150)
        self.assertEqual(p.returncode, 0, out + err)
        self.assertEqual({state for state, _ in ledger(self.root)[0].values()}, {"completed"})

    def test_values_of_over_and_retries_reach_the_nodes(self):
        self.config(**{"drill.stage": "analyze", "drill.kind": "crash"})
        code, out, err = self.run_all("--over", "fit.iterations=3,5", "--retries", "1")
        self.assertEqual(code, 1, out + err)
        began = [stage for _, _, _, stage in jobs.starts(self.root)]
        self.assertEqual((began.count("fit"), began.count("analyze")), (2, 4))
        failed = [reason for state, reason in ledger(self.root)[0].values() if state == "failed"]
        self.assertEqual(len(failed), 2)
        self.assertIn("attempt 2 of 2", failed[0])

    def test_a_dry_run_writes_scripts_and_submits_nothing(self):
        self.config()
        code, out, err = self.run_all("--dry-run", "--slurm", "account=lab", "--slurm", "modules=gcc")
        self.assertEqual(code, 0, out + err)
        self.assertIn("array0001: 1 x sounding fit, 1 CPU,", out)
        self.assertIn("aftercorr array0000", out)
        self.assertFalse(os.path.exists(os.path.join(self.root, "out")))
        with open(os.path.join(self.root, "fathom-slurm", "array0000.sh")) as f:
            script = f.read()
        for line in ("#SBATCH --account=lab\n", "#!/bin/bash\n", "module load gcc || exit 1\n", "#SBATCH --array=0\n", "#SBATCH --mem="):
            self.assertIn(line, script)
        self.assertEqual(self.cluster.elements(), [])

    def test_a_dry_run_says_what_slurm_would_refuse(self):
        self.config()
        code, out, err = self.run_all("--dry-run", "--slurm", "account=nope")
        self.assertEqual(code, 5, out + err)
        self.assertIn("Slurm refuses stage survey", err)
        self.assertEqual(self.cluster.elements(), [])

    def test_a_script_that_fails_before_its_stage_is_explained(self):
        self.config()
        for setting, word in (("modules=nowhere/1", "module"), ("prologue=echo no disk; exit 3", "no disk")):
            code, out, err = self.run_all("--slurm", setting)
            self.assertEqual(code, 1, out + err)
            said = re.search(r"failed before its stage began.*; its output: (\S+array0000\.out)", out + err)
            self.assertTrue(said, out + err)
            with open(said[1]) as f:
                self.assertIn(word, f.read())
            self.assertNotIn("Slurm: None", out)

    def script(self, number):
        with open(os.path.join(self.root, "fathom-slurm", f"array{number:04d}.sh")) as f:
            return f.read()

    def test_configs_say_what_they_ask_of_slurm(self):
        base = os.path.join(self.root, "site.yaml")
        with open(base, "w") as f:
            f.write("slurm: {account: lab, time: '1:30:00', cpus: 2, modules: [gcc, hdf5]}\n")
        for name, keys in (("a", {}), ("b", {}), ("c", {"slurm.time": 20, "slurm.options": "[exclusive, nice=7]"})):
            jobs.write_config(self.root, name, model="plane", base=base, **keys)
        code, out, err = self.run_all("--dry-run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("array0000: 2 x sounding survey, 2 CPUs", out)  # a and b are one class, c another
        self.assertIn("array0001: 1 x sounding survey, 2 CPUs", out)
        first, other = self.script(0), self.script(1)
        for script, minutes in ((first, 90), (other, 20)):
            for line in ("#SBATCH --account=lab\n", f"#SBATCH --time={minutes}\n", "module load gcc || exit 1\nmodule load hdf5 || exit 1\n"):
                self.assertIn(line, script)
        for line in ("#SBATCH --exclusive\n", "#SBATCH --nice=7\n"):
            self.assertIn(line, other)
            self.assertNotIn(line, first)
        code, out, err = self.run_all("--dry-run", "--slurm", "time=30", "--slurm", "modules=clang", "--slurm", "cpus=1",
                                      "--slurm", "nice=8")
        self.assertEqual(code, 0, out + err)
        for script in (self.script(0), self.script(1)):
            for line in ("#SBATCH --time=30\n", "module load clang || exit 1\n", "--cpus-per-task=1\n", "--nice=8\n"):
                self.assertIn(line, script)
            self.assertNotIn("gcc", script)
            self.assertNotIn("--nice=7", script)

    def test_tasks_that_can_use_a_gpu_are_a_class_of_their_own(self):
        self.config()  # an instrument without kernels for GPUs
        write_bragg(self.root, "lit")
        for word, render, figures in (("gpus=2", ", 2 GPUs", ", 2 GPUs"), ("gpus=render=1", ", 1 GPU", "")):
            code, out, err = self.run_all("--dry-run", "--slurm", word)
            self.assertEqual(code, 0, out + err)
            said = dict(re.findall(r"1 x (\w+ \w+), 1 CPU, \d+ MB(, \d GPUs?)?, \d+ min", out))
            self.assertEqual((said["bragg render"], said["bragg figures"], said["sounding survey"]), (render, figures, ""))
            number = int(re.search(r"array(\d+): 1 x bragg render", out)[1])
            self.assertIn(f"#SBATCH --gres=gpu:{render.split()[1]}\n", self.script(number))

    def test_slurm_in_a_config_is_checked_and_no_matter_to_local_runs(self):
        words = ("run", "all", "-c", os.path.join(self.root, "configs"), "--no-live", "--threads", "2")
        for keys, said in (({"slurm.partiton": "long"}, "unknown key 'slurm.partiton'; did you mean 'slurm.partition'?"),
                           ({"slurm.time": "soon"}, "plane.yaml:10:13: slurm.time: expected a time"),
                           ({"slurm.options": "[mem=4G]"}, "slurm.options: Fathom sets this option itself"),
                           ({"slurm.gpus": "[train=1]"}, "slurm.gpus: there is no such stage"),
                           ({"slurm": "long"}, "expected a section")):
            self.config(**keys)
            code, out, err = jobs.fathom(*words)
            self.assertEqual(code, 2, out + err)
            self.assertIn(said, out + err)
        self.config()
        code, out, err = jobs.fathom(*words)
        self.assertEqual(code, 0, out + err)
        self.config(**{"slurm.partition": "nope"})  # nothing depends on it: all is cached
        code, out, err = jobs.fathom(*words)
        self.assertEqual(code, 0, out + err)
        self.assertIn("4 cached", out)
        self.config(**{"slurm.partition": "nope", "fit.iterations": 5})
        self.fails(5, "no partition 'nope'")

    # ---- how tasks end ----

    def test_ends_are_named_as_slurm_names_them(self):
        ends = {"TIMEOUT": "interrupted", "OUT_OF_MEMORY": "failed", "NODE_FAIL": "interrupted",
                "PREEMPTED": "interrupted", "CANCELLED": "interrupted", "DEADLINE": "interrupted",
                "BOOT_FAIL": "interrupted"}
        for k in range(len(ends)):
            jobs.write_config(self.root, f"d{k}", model="plane", seed=k)
        self.cluster.want(states=" ".join(ends))
        code, out, err = self.run_all()
        self.assertEqual(code, 1, out + err)
        rows = ledger(self.root)[0]
        for k, (state, ours) in enumerate(ends.items()):
            with self.subTest(state):
                self.assertEqual(rows[f"d{k}", "survey"][0], ours)
                self.assertIn(state, rows[f"d{k}", "survey"][1])
                self.assertEqual(rows[f"d{k}", "fit.plane"][0], "skipped")

    def test_a_failed_stage_says_why_and_is_run_again(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "error"})
        code, out, err = self.run_all()
        self.assertEqual(code, 1, out + err)
        self.assertEqual((self.row("survey")[0], self.row("fit.plane")[0], self.row("analyze.plane")[0]),
                         ("completed", "failed", "skipped"))
        self.config()
        code, out, err = self.run_all("--failed")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.row("analyze.plane")[0], "completed")

    def test_a_signal_ends_the_jobs(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 60})
        p = jobs.start(*self.words(), cwd=self.root, **self.cluster.environment)
        jobs.wait_for(lambda: any(stage == "fit" for _, _, _, stage in jobs.starts(self.root)), 30, "the fit")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 6, out + err)
        self.assertEqual(self.row("fit.plane")[0], "interrupted")
        self.assertNotIn("PENDING", [state for _, _, state, _ in self.cluster.elements()])

    # ---- the runner goes ----

    def test_a_killed_runner_finds_its_jobs_again(self):
        for point in ("before_sbatch:2", "after_sbatch:1", "after_sbatch:3", "slurm_ended:1"):
            with self.subTest(point):
                for name in ("out", "starts.log"):
                    path = os.path.join(self.root, name)
                    shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
                # slow, so that the job is still there when the next runner looks for it
                self.config(**{"drill.stage": "survey", "drill.kind": "slow", "drill.seconds": 3})
                code, out, err = self.run_all(FATHOM_KILL_AT=point)
                self.assertEqual(code, -signal.SIGKILL, out + err)
                code, out, err = self.run_all()
                self.assertEqual(code, 0, out + err)
                began = [(job, stage) for _, _, job, stage in jobs.starts(self.root)]
                self.assertEqual((len(began), len(set(began))), (4, 4), began)
                self.assertEqual({state for state, _ in ledger(self.root)[0].values()}, {"completed"})

    def test_an_end_that_nobody_followed_is_said_once(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "error"})
        self.assertEqual(self.run_all("--detach")[0], 0)
        jobs.wait_for(lambda: not {s for _, _, s, _ in self.cluster.elements()} & {"PENDING", "RUNNING"}, 30, "the end")
        self.config()  # repaired meanwhile
        submitted = len(self.cluster.calls("sbatch"))
        code, out, err = self.run_all()
        self.assertEqual(code, 1, out + err)
        self.assertEqual(len(self.cluster.calls("sbatch")), submitted, "nothing is submitted behind it")
        self.assertIn("1 failed", out)
        self.assertEqual(len(jobs.starts(self.root)), 2, "what failed is said, and not run in the same breath")
        self.assertEqual((self.row("fit.plane")[0], self.row("analyze.plane")[0]), ("failed", "skipped"))
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)

    def test_status_knows_what_ended_while_nobody_followed(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 4})
        self.assertEqual(self.run_all("--detach")[0], 0)
        jobs.wait_for(lambda: [e for e in self.cluster.elements() if e[2] == "COMPLETED"], 30, "the survey")
        code, out, err = jobs.fathom("status", os.path.join(self.root, "out"))
        self.assertRegex(out, r"one +survey +cpu +completed")
        self.assertRegex(out, r"one_plane +analyze +pending .*with Slurm: squeue shows it, the same 'fathom run' follows it")
        code, out, err = jobs.fathom("logs", "one_plane/analyze", cwd=self.root)
        self.assertIn("it is pending (with Slurm", err)
        self.assertEqual(self.run_all()[0], 0)

    def test_an_end_in_the_ledger_is_not_said_again(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "error"})
        code, out, err = self.run_all(FATHOM_KILL_AT="before_release")
        self.assertEqual(code, -signal.SIGKILL, out + err)
        self.assertEqual(self.row("fit.plane")[0], "failed")
        self.config()
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("failed", out + err)
        began = [stage for _, _, _, stage in jobs.starts(self.root)]
        self.assertEqual((began.count("survey"), began.count("fit")), (1, 2))

    def cancel(self, name):
        return jobs.fathom("cancel", name, "--dir", os.path.join(self.root, "out"), **self.cluster.environment)

    def mark(self):
        return os.path.join(self.root, "out", "one", ".fathom", "slurm")

    def test_jobs_that_nobody_follows_are_cancelled(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 60})
        self.assertEqual(self.run_all("--detach")[0], 0)
        self.assertRegex(jobs.fathom("status", os.path.join(self.root, "out"))[1], r"[34] pending")  # the survey may have completed
        jobs.wait_for(lambda: any(stage == "fit" for _, _, _, stage in jobs.starts(self.root)), 30, "the fit")
        code, out, err = self.cancel("plane/fit")
        self.assertEqual(code, 0, out + err)
        self.assertIn("cancelled the job of Slurm", out)
        self.assertEqual(self.row("fit.plane"), ("interrupted", "cancelled by request"))
        self.assertEqual(self.row("analyze.plane"), ("skipped", "one_plane/fit was interrupted"))
        self.assertFalse(set(s for _, _, s, _ in self.cluster.elements()) & {"PENDING", "RUNNING"})
        self.assertFalse(os.path.exists(self.mark()), "the directory is free")
        self.assertEqual(self.cancel("plane/fit")[0], 2, "there is nothing left to end")
        self.config()
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)

    def test_a_killed_runner_is_not_needed_to_cancel(self):
        jobs.write_config(self.root, "one", model="plane", **{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 60})
        p = jobs.start(*self.words(), cwd=self.root, **self.cluster.environment)
        jobs.wait_for(lambda: self.row_or_none("fit.plane") == "running", 30, "the fit")
        p.kill()
        p.communicate()
        self.assertIn("running", jobs.fathom("status", os.path.join(self.root, "out"))[1])
        code, out, err = self.cancel("plane/fit")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.row("fit.plane")[0], "interrupted")
        self.assertFalse(os.path.exists(self.mark()))

    def row_or_none(self, task):
        try:
            return self.row(task)[0]
        except (KeyError, sqlite3.Error):
            return None

    def test_clean_removes_folders_of_runs_that_ended(self):
        for name in ("one", "two"):  # the folder of the run is in the first
            jobs.write_config(self.root, name, model="plane", **{"drill.stage": "fit", "drill.kind": "error"})
        self.assertEqual(self.run_all()[0], 1)
        folder = os.path.join(self.root, "out", "one", ".fathom", "slurm.d")
        run = os.path.join(folder, os.listdir(folder)[0])
        other = os.path.join(self.root, "out", "two", ".fathom", "slurm")
        with open(other, "w") as f:
            f.write(run)  # as if jobs of the second were under way
        code, out, err = jobs.fathom("clean", os.path.join(self.root, "out", "one"), "--all", "--yes")
        self.assertEqual(code, 0, out + err)
        self.assertTrue(os.path.exists(run))
        os.remove(other)
        code, out, err = jobs.fathom("clean", os.path.join(self.root, "out", "one"), "--all", "--yes")
        self.assertEqual(code, 0, out + err)
        self.assertFalse(os.path.exists(folder))

    def test_a_config_that_changed_meanwhile_is_run_again(self):
        self.config()
        code, out, err = self.run_all("--detach")
        self.assertEqual(code, 0, out + err)
        jobs.wait_for(lambda: {s for _, _, s, _ in self.cluster.elements()} == {"COMPLETED"}, 30, "the end")
        self.config(**{"fit.iterations": 5})
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)
        self.assertEqual([stage for _, _, _, stage in jobs.starts(self.root)].count("fit"), 2)
        self.assertEqual([stage for _, _, _, stage in jobs.starts(self.root)].count("survey"), 1)

    def test_local_runs_and_stages_by_hand_stay_out(self):
        self.config(**{"drill.stage": "survey", "drill.kind": "slow", "drill.seconds": 8})
        code, out, err = self.run_all("--detach")
        self.assertEqual(code, 0, out + err)
        self.assertIn("4 with Slurm", out)
        config = os.path.join(self.root, "configs", "one", "plane.yaml")
        for words in (["run", "all", "-c", config], ["sounding", "survey", "-c", config],
                      ["clean", os.path.join(self.root, "out"), "--yes"]):
            code, out, err = jobs.fathom(*words)
            self.assertEqual(code, 2, out + err)
            self.assertIn("jobs of Slurm", err)
        code, out, err = jobs.fathom("run", "survey", "-c", config, "--executor", "slurm", "--threads", "1",
                                     "--memory", "500M", cwd=self.root, **self.cluster.environment)
        self.assertEqual(code, 2, "the other stages are still queued: " + out + err)
        code, out, err = self.run_all()
        self.assertEqual(code, 0, out + err)

    def test_the_command_of_the_batch_scripts_is_in_no_list(self):
        self.assertNotRegex(jobs.fathom("help")[1], r"(?m)^  task ")
        self.assertIn("fathom task", jobs.fathom("help", "task")[1])
        self.assertIn("list of tasks", jobs.fathom("task")[2])

    def test_a_second_job_of_one_task_does_nothing(self):
        self.config()
        code, out, err = self.run_all("--dry-run")
        folder = os.path.join(self.root, "fathom-slurm")
        for name in ("start", "live", "end"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "start", "0_0"), "w") as f:
            f.write("77")
        code, out, err = jobs.fathom("task", os.path.join(folder, "array0000.json"), "0", cwd=self.root, SLURM_JOB_ID="78")
        self.assertEqual(code, 2, out + err)
        self.assertIn("begun by job 77", err)
        self.assertEqual(jobs.starts(self.root), [])

    # ---- mistakes ----

    def test_mistakes_are_found_before_anything_is_submitted(self):
        self.config()
        self.fails(5, "no sbatch on PATH", PATH="/nowhere")
        self.fails(5, "no partition 'nope'", "--slurm", "partition=nope")
        self.fails(5, "Invalid account", "--slurm", "account=nope", "--slurm", "probe=false")
        self.fails(5, "beyond the 1440 minutes", "--slurm", "time=2-0")
        self.fails(2, "Fathom sets this option", "--slurm", "mem=4G")
        self.assertIn("did you mean 'partition'?", self.fails(2, "there is no such key", "--slurm", "partiton=main"))
        self.cluster.want(hide=os.path.join(self.root, "out"))
        self.fails(5, "does not see")
        self.cluster.want(down=1)
        self.fails(5, "Unable to contact slurm controller")
        self.cluster.want(down="", munge=1)
        self.assertIn("munge -n | unmunge", self.fails(5, "Protocol authentication error"))
        self.assertEqual(self.cluster.elements(), [])
        code, out, err = jobs.fathom("run", "all", "-c", os.path.join(self.root, "configs"), "--slurm", "account=lab")
        self.assertEqual(code, 2)
        self.assertIn("--executor slurm", err)
        code, out, err = jobs.fathom("run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "cloud")
        self.assertEqual(code, 2)
        self.assertIn("no executor 'cloud'", err)


if __name__ == "__main__":
    unittest.main()
