"""Slurm itself, on emulated nodes of this machine (tools/slurm_up): results, kills, ends, many jobs.
seconds: 900
labels: cluster"""
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import jobs

TOOLS = os.path.join(HERE, "..", "..", "tools")
DIRS = int(os.environ.get("SLURM_TEST_DIRS", 67))  # three jobs each
KILLS = int(os.environ.get("SLURM_TEST_KILLS", 20))
MANY = int(os.environ.get("SLURM_TEST_MANY", 5000))


class Cluster:
    """A cluster in a folder of its own; `environment` is for programs that use it."""

    def __init__(self, nodes, accounting):
        self.folder = tempfile.mkdtemp(prefix="fathom-slurm-test-")
        shutil.rmtree(self.folder)
        done = subprocess.run([os.path.join(TOOLS, "slurm_up"), str(nodes), self.folder], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=120,
                              env={**os.environ, "ACCOUNTING": "1" if accounting else ""})
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.environment = {"SLURM_CONF": os.path.join(self.folder, "slurm.conf")}

    def call(self, *words):
        return subprocess.run(words, text=True, capture_output=True, timeout=60,
                              env={**os.environ, **self.environment}).stdout

    def down(self):
        subprocess.run([os.path.join(TOOLS, "slurm_down"), self.folder], timeout=60)


def outputs(root):
    """{path below ROOT/out: bytes} of all results: no logs, no histories."""
    found = {}
    top = os.path.join(root, "out")
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if f not in (".fathom", "logs")]
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, top)] = f.read().replace(root.encode(), b"ROOT")
    return found


def ledger(root):
    """{(directory, task): (state, reason)} and how often each task began to run."""
    rows, began = {}, {}
    for folder, _, files in os.walk(os.path.join(root, "out")):
        if "ledger.sqlite" not in files:
            continue
        db = sqlite3.connect(os.path.join(folder, "ledger.sqlite"))
        for task, state, reason in db.execute("SELECT id, state, reason FROM tasks"):
            rows[os.path.basename(os.path.dirname(folder)), task] = (state, reason)
        for task, n in db.execute("SELECT task, count(*) FROM changes WHERE to_state='completed' GROUP BY task"):
            began[os.path.basename(os.path.dirname(folder)), task] = n
        db.close()
    return rows, began


def run(cluster, root, *words, timeout=600, **environment):
    return jobs.fathom("run", *words, "-c", os.path.join(root, "configs"), "--executor", "slurm",
                       "--no-live", "--threads", "1", "--memory", "500M", cwd=root,
                       timeout=timeout, **cluster.environment, **environment)


def write_bragg(root, name, **keys):
    """A small config of an instrument that has kernels for GPUs: one still, 64 x 64 pixels."""
    folder = os.path.join(root, "configs", name)
    os.makedirs(folder, exist_ok=True)
    lines = {"instrument": "bragg", "name": name, "output_dir": os.path.join(root, "out", name), "model": "stills",
             "crystal": "{default_F: 100, cell: [100, 100, 100, 90, 90, 90], N: 2}", "beam.lambda": 1,
             "detector": "{distance: 100, pixel: 0.5, pixels: 64}", "stills.count": 1, **keys}
    with open(os.path.join(folder, "stills.yaml"), "w") as f:
        f.writelines(f"{key}: {value}\n" for key, value in lines.items())


class Slurm(unittest.TestCase):
    accounting = False

    @classmethod
    def setUpClass(cls):
        if not shutil.which("sbatch") or not shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin"):
            raise unittest.SkipTest("Slurm is not installed")
        cls.cluster = Cluster(4, cls.accounting)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="fathom-slurm-jobs-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)


class Ends(Slurm):
    def end(self, task="fit.plane"):
        return ledger(self.root)[0]["one", task]

    def config(self, **keys):
        jobs.write_config(self.root, "one", model="plane", **keys)

    def test_out_of_memory_is_named(self):
        # The limit of the job is what its plan needs; a prologue that holds memory as well breaks it.
        self.config()
        code, _, _ = run(self.cluster, self.root, "all", "--slurm",
                         "prologue=python3 -c 'x = bytearray(400 << 20); import time; time.sleep(20)' || exit 9")
        if "cgroup" not in self.cluster.call("scontrol", "show", "config").split("TaskPlugin ")[1].split("\n")[0]:
            self.skipTest("memory is not enforced by cgroups here")
        self.assertEqual(code, 1)
        state, reason = self.end("survey")
        self.assertEqual(state, "failed")
        self.assertIn("OUT_OF_MEMORY", reason)
        self.assertEqual(self.end()[0], "skipped")

    def test_timed_out_is_named_and_goes_on(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "hang", "drill.seconds": 200})
        code, _, _ = run(self.cluster, self.root, "all", "--slurm", "time=1")
        state, reason = self.end()
        self.assertEqual((code, state), (6, "interrupted"))
        self.assertIn("TIMEOUT", reason)
        self.config()
        code, out, err = run(self.cluster, self.root, "all", "--failed")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.end()[0], "completed")

    def test_cancelled_is_named(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 100})
        p = jobs.start("run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "slurm",
                       "--no-live", "--threads", "1", "--memory", "500M", cwd=self.root,
                       **self.cluster.environment)
        jobs.wait_for(lambda: os.path.exists(os.path.join(self.root, "out", "one", ".fathom"))
                      and self.end_or_none() == "running", 60, "the fit")
        code, out, err = jobs.fathom("cancel", "plane/fit", "--dir", os.path.join(self.root, "out"))
        self.assertEqual(code, 0, err)
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 6, out + err)
        state, reason = self.end()
        self.assertEqual(state, "interrupted")
        self.assertIn("cancelled", reason.lower())
        self.assertEqual(self.cluster.call("squeue", "-h", "-t", "PD,R").strip(), "")

    def end_or_none(self):
        try:
            return self.end()[0]
        except (KeyError, sqlite3.Error):
            return None

    def test_a_job_that_nobody_follows_is_cancelled(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 100})
        code, out, err = run(self.cluster, self.root, "all", "--detach")
        self.assertEqual(code, 0, out + err)
        jobs.wait_for(lambda: self.cluster.call("squeue", "-h", "-t", "R", "-n", "fathom-fit"), 60, "the fit")
        code, out, err = jobs.fathom("cancel", "plane/fit", "--dir", os.path.join(self.root, "out"),
                                     **self.cluster.environment)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.end(), ("interrupted", "cancelled by request"))
        self.assertEqual(self.end("analyze.plane")[0], "skipped")
        self.assertEqual(self.cluster.call("squeue", "-h", "-t", "PD,R").strip(), "")
        self.config()
        code, out, err = run(self.cluster, self.root, "all")
        self.assertEqual(code, 0, out + err)

    def test_scancel_by_hand_is_named(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "hang", "drill.seconds": 100})
        p = jobs.start("run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "slurm",
                       "--no-live", "--threads", "1", "--memory", "500M", cwd=self.root,
                       **self.cluster.environment)
        jobs.wait_for(lambda: self.end_or_none() == "running", 60, "the fit")
        self.cluster.call("scancel", "--name=fathom-fit")
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 6, out + err)
        self.assertEqual(self.end()[0], "interrupted")
        self.assertIn("CANCELLED", self.end()[1])

    def test_stopping_the_runner_cancels_its_jobs(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 100})
        p = jobs.start("run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "slurm",
                       "--no-live", "--threads", "1", "--memory", "500M", cwd=self.root,
                       **self.cluster.environment)
        jobs.wait_for(lambda: self.end_or_none() == "running", 60, "the fit")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 6, out + err)
        self.assertEqual(self.end()[0], "interrupted")
        self.assertEqual(self.cluster.call("squeue", "-h", "-t", "PD,R").strip(), "")
        self.assertFalse(os.path.exists(os.path.join(self.root, "out", "one", ".fathom", "slurm")))

    def test_detached_jobs_are_followed_later_and_shut_out_others(self):
        self.config(**{"drill.stage": "fit", "drill.kind": "slow", "drill.seconds": 6})
        code, out, err = run(self.cluster, self.root, "all", "--detach")
        self.assertEqual(code, 0, out + err)
        code, out, err = jobs.fathom("run", "all", "-c", os.path.join(self.root, "configs"))
        self.assertEqual(code, 2, out + err)
        self.assertIn("jobs of Slurm", err)
        code, out, err = run(self.cluster, self.root, "all")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(len(jobs.starts(self.root)), 4, "each stage began once")

    def test_tasks_that_can_use_a_gpu_are_given_one(self):
        self.config()  # of an instrument that cannot
        write_bragg(self.root, "lit", **{"slurm.gpus": "[render=1, 0]"})
        code, out, err = run(self.cluster, self.root, "all", "--slurm",
                             f"prologue=echo \"$SLURM_JOB_NAME ${{CUDA_VISIBLE_DEVICES-none}}\" >>{self.root}/gpus.log")
        self.assertEqual(code, 0, out + err)
        with open(os.path.join(self.root, "gpus.log")) as f:
            given = dict(line.rsplit(None, 1) for line in f)
        self.assertIn(given.pop("fathom-render"), ("0", "1"))
        self.assertEqual(set(given.values()), {"none"}, given)
        asked = dict(line.split("|") for line in self.cluster.call(
            "squeue", "-h", "-t", "all", "-o", "%j|%b").split("\n") if "|" in line)
        self.assertEqual(asked["fathom-render"], "gres:gpu:1")
        self.assertNotIn("gpu", asked["fathom-survey"])

    def test_ranks_that_srun_starts_write_the_bytes_of_one(self):
        kinds = subprocess.run(["srun", "--mpi=list"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                               env={**os.environ, **self.cluster.environment})
        if "pmix" not in kinds.stdout:
            self.skipTest("this srun has no PMIx")
        words = ["bragg", "-cell", "70", "70", "70", "90", "90", "90", "-N", "5", "-default_F", "100", "-lambda", "1", "-distance", "100",
                 "-pixel", "0.1", "-detpixels", "1024", "-nonoise", "-nopgm", "--device", "cpu", "--threads", "1"]
        made = []
        for ranks in (1, 2):
            path = os.path.join(self.root, f"{ranks}.bin")
            starter = ["srun", "--mpi=pmix", "-N", "1", "-n", str(ranks)] if ranks > 1 else []
            done = subprocess.run([*starter, jobs.PROGRAM, *words, "-floatfile", path], capture_output=True, text=True, timeout=120,
                                  cwd=self.root, env={**os.environ, **self.cluster.environment})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(path, "rb") as f:
                made.append(f.read())
            self.assertEqual(done.stdout.count("max_I = "), 1, done.stdout) # one rank speaks
        self.assertEqual(made[0], made[1])

    def test_mistakes_are_found_before_anything_is_submitted(self):
        self.config()
        for words, said in ((["partition=nope"], "no partition 'nope'"),
                            (["constraint=nope"], "Slurm refuses"), (["gres=gpu:9"], "Slurm refuses"),
                            (["partition=short", "time=60"], "beyond"), (["mem=5G"], "sets this option")):
            with self.subTest(words):
                before = self.cluster.call("squeue", "-h", "-t", "all", "-o", "%i")
                flags = [w for word in words for w in ("--slurm", word)]
                code, out, err = run(self.cluster, self.root, "all", "--slurm", "probe=false", *flags)
                self.assertIn(code, (2, 5), out + err)
                self.assertIn(said, err)
                self.assertEqual(self.cluster.call("squeue", "-h", "-t", "all", "-o", "%i"), before)


class EndsWithAccounting(Ends):
    accounting = True

    def test_unknown_accounts_are_refused(self):
        self.config()
        for word in ("account=nope", "qos=nope"):
            code, out, err = run(self.cluster, self.root, "all", "--slurm", word, "--slurm", "probe=false")
            self.assertEqual(code, 5, out + err)
            self.assertIn("Slurm refuses", err)


class Kills(Slurm):
    def test_a_runner_that_is_killed_loses_and_repeats_nothing(self):
        seed = int(os.environ.get("FTH_TEST_SEED", time.time_ns() % 1000000))
        draw = random.Random(seed)
        print(f"seed {seed}")
        other = tempfile.mkdtemp(prefix="fathom-slurm-local-")
        self.addCleanup(shutil.rmtree, other, ignore_errors=True)
        for root in (self.root, other):
            for k in range(DIRS):
                jobs.write_config(root, f"d{k:04d}", seed=k + 1)
        words = ["run", "all", "-c", os.path.join(self.root, "configs"), "--executor", "slurm", "--no-live",
                 "--threads", "1", "--memory", "500M", "--slurm", "probe=false"]
        kills = 0
        while True:
            p = jobs.start(*words, cwd=self.root, **self.cluster.environment)
            # early kills hit the submission, later ones the following
            wait = draw.uniform(0.05, 1.5) if kills < KILLS // 2 else draw.uniform(0.5, 4)
            if kills >= KILLS:
                wait = 900
            try:
                out, err = p.communicate(timeout=wait)
                break
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                kills += 1
        self.assertEqual(p.returncode, 0, out + err)
        print(f"{kills} kills")
        self.assertEqual(kills, KILLS, "the run ended too early to kill its runner that often")
        tasks = DIRS * 10
        rows, completed = ledger(self.root)
        self.assertEqual(len(rows), tasks)
        self.assertEqual({state for state, _ in rows.values()}, {"completed"})
        began = [(job, stage) for _, _, job, stage in jobs.starts(self.root)]
        self.assertEqual(len(began), tasks, "each task began")
        self.assertEqual(len(set(began)), tasks, "and none twice")
        self.assertEqual(set(completed.values()), {1})
        self.assertEqual(self.cluster.call("squeue", "-h", "-t", "PD,R").strip(), "")
        code, out, err = jobs.fathom("run", "all", "-c", os.path.join(other, "configs"), "--threads", "2",
                                     "--no-live", timeout=900)
        self.assertEqual(code, 0, out + err)
        mine, theirs = outputs(self.root), outputs(other)
        self.assertEqual(set(mine), set(theirs))
        self.assertEqual([path for path in mine if mine[path] != theirs[path]], [])


class Many(Slurm):
    def test_five_thousand_jobs_are_submitted_within_a_minute(self):
        for k in range(MANY):
            jobs.write_config(self.root, f"d{k:05d}", model="plane", seed=k + 1)
        counter = os.path.join(self.root, "bin")
        os.makedirs(counter)
        for name in ("squeue", "sbatch"):
            with open(os.path.join(counter, name), "w") as f:
                f.write(f"#!/bin/sh\ndate +%s.%N >>{self.root}/{name}.calls\nexec {shutil.which(name)} \"$@\"\n")
            os.chmod(os.path.join(counter, name), 0o755)
        self.cluster.call("scontrol", "update", "PartitionName=main", "State=DOWN")
        words = [jobs.PROGRAM, "run", "survey", "-c", os.path.join(self.root, "configs"), "--skip-general",
                 "--executor", "slurm", "--no-live", "--threads", "1", "--memory", "500M",
                 "--slurm", "probe=false"]
        began = time.monotonic()
        p = subprocess.Popen(words, cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, **self.cluster.environment,
                                  "PATH": counter + ":" + os.environ["PATH"]})
        queued = lambda: len(self.cluster.call("squeue", "-h", "-r", "-t", "PD", "-o", "%i").split())
        while queued() < MANY:
            self.assertIsNone(p.poll(), p.stderr.read() if p.poll() is not None else "")
            self.assertLess(time.monotonic() - began, 300)
            time.sleep(1)
        submitted = time.monotonic() - began
        time.sleep(30)
        with open(f"/proc/{p.pid}/status") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024
        with open(f"{self.root}/squeue.calls") as f:
            calls = [float(line) for line in f]
        gaps = [b - a for a, b in zip(calls, calls[1:])]
        print(f"{MANY} jobs: submitted in {submitted:.1f} s, runner {peak:.0f} MB, {len(calls)} squeue calls, "
              f"least gap {min(gaps):.1f} s")
        self.assertLessEqual(submitted, 60)
        self.assertLessEqual(peak, 100)
        self.assertGreaterEqual(min(gaps), 4.5)
        began = time.monotonic()
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=300)
        stopped = time.monotonic() - began
        print(f"stopped in {stopped:.1f} s")
        self.assertEqual(p.returncode, 6, err)
        self.assertLessEqual(stopped, 60)  # a ledger for each of the directories
        self.assertEqual(queued(), 0)
        self.cluster.call("scontrol", "update", "PartitionName=main", "State=UP")


if __name__ == "__main__":
    unittest.main()
