"""Kills of jobs and of the runner, at every named point and at random: nothing is lost, nothing
finished runs twice. The seed is printed; FATHOM_KILL_SEED=N replays it. seconds: 60"""
import json
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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs as t

POINTS = ["before_lock", "after_lock", "before_spawn", "after_spawn", "child_running",
          "child_exited", "before_ledger", "after_ledger", "during_export", "after_export"]
LAST_POINTS = ["before_release", "at_end"] # reached once, when all is done
STAGE_POINTS = ["stage_start", "stage_planned", "after_outputs", "before_record", "after_record"]
CHANCE = 0.15


class Campaign:
    """One set of jobs that is killed again and again, then left to end."""

    def __init__(self, seed, n_dirs, random_kills):
        self.random = random.Random(seed)
        self.root = tempfile.mkdtemp(prefix="fathom-kills-")
        self.n_dirs = n_dirs
        self.random_kills = random_kills
        self.finished = {}  # (directory, task): attempt, as seen after each kill
        self.killed = set() # points at which the runner really was
        for i in range(n_dirs):
            t.write_config(self.root, f"d{i:03}", seed=seed + i, **{
                "drill.stage": "fit", "drill.kind": "error", "drill.chance": CHANCE})
        self.seed = seed

    def words(self):
        return ["run", "survey", "fit", "-c", os.path.join(self.root, "configs"), "--no-live",
                "--jobs", "3"]

    def start(self, **environment):
        return subprocess.Popen([t.PROGRAM, *self.words()], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **environment})

    def after_kill(self):
        """No orphan lives on; what is done stays as it is."""
        t.wait_for(lambda: not t.processes(self.root), 10, "the end of all stages")
        seen = {key: record["attempt"] for key, record in t.records(self.root).items()}
        for key, attempt in self.finished.items():
            assert seen.get(key) == attempt, f"{key} was finished by {attempt}, now {seen.get(key)}"
        self.finished = seen

    def kill_at(self, point, times):
        runner = self.start(FATHOM_KILL_AT=f"{point}:{times}")
        code = self.wait(runner)
        if code == -signal.SIGKILL:
            self.killed.add(point)
        self.after_kill()
        return code

    def wait(self, runner):
        try:
            _, text = runner.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            runner.kill()
            raise AssertionError("the runner hangs")
        if runner.returncode not in (0, 1, 6, -signal.SIGKILL):
            raise AssertionError(f"exit {runner.returncode}: {text}")
        return runner.returncode

    def kill_at_random(self):
        """The runner, or one of its jobs, after a random time."""
        runner = self.start()
        end = time.monotonic() + self.random.uniform(0.05, 0.8)
        victim = self.random.random() < 0.5
        while time.monotonic() < end and runner.poll() is None:
            time.sleep(0.005)
        if victim: # jobs, until the runner is through or has had enough
            for _ in range(3):
                for pid in t.processes(self.root)[:1]:
                    try:
                        os.kill(pid, self.random.choice([signal.SIGKILL, signal.SIGTERM]))
                    except ProcessLookupError:
                        pass
                time.sleep(0.05)
        runner.send_signal(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        self.wait(runner)
        self.after_kill()

    def run(self):
        points = POINTS[:]
        self.random.shuffle(points)
        for point in points:
            times = 1 if point.endswith("_lock") else self.random.randint(1, 4)
            assert self.kill_at(point, times) == -signal.SIGKILL, point
        for point in STAGE_POINTS: # every stage that comes there dies; then the runner goes on
            runner = self.start(FATHOM_KILL_AT=point)
            time.sleep(self.random.uniform(0.3, 0.6))
            runner.send_signal(signal.SIGTERM)
            self.wait(runner)
            self.after_kill()
        for _ in range(self.random_kills):
            self.kill_at_random()
        for point in LAST_POINTS:
            assert self.kill_at(point, 1) == -signal.SIGKILL, point
        runner = self.start()
        self.last_code = self.wait(runner)
        self.after_kill()

    # ---- the oracle ----

    def expected(self):
        """{(directory, task): whether it completes}."""
        result = {}
        for i in range(self.n_dirs):
            folder = os.path.join(self.root, "out", f"d{i:03}")
            result[folder, "survey"] = True
            for model in t.MODELS:
                result[folder, f"fit.{model}"] = not t.hit(self.seed + i, model, "fit", CHANCE)
        return result

    def check(self, test):
        expected = self.expected()
        records = t.records(self.root)
        test.assertEqual({key for key, good in expected.items() if good}, set(records))
        test.assertEqual(self.last_code, 1 if not all(expected.values()) else 0)
        self.check_outputs(test, records)
        self.check_starts(test, records)
        self.check_ledgers(test, expected, records)
        test.assertEqual(t.temporary_files(self.root), [])
        test.assertEqual(t.processes(self.root), [])
        test.assertEqual([path for path in self.all_files() if path.endswith("/.fathom/lock")], [])
        with open(os.path.join(self.root, "configs", "run_status.json")) as f:
            status = json.load(f)
        states = sorted(job["status"] for job in status["jobs"].values())
        test.assertEqual(set(states) - {"completed", "failed"}, set())

    def all_files(self):
        return [os.path.join(folder, name) for folder, _, files in os.walk(self.root)
                for name in files]

    def check_outputs(self, test, records):
        """Every output is there, with the size that was recorded: no half file."""
        for (folder, task), record in records.items():
            outputs = [f for f in record["files"] if f["kind"] != "input"]
            test.assertTrue(outputs, (folder, task))
            for f in outputs:
                path = os.path.join(folder, f["path"])
                test.assertEqual(os.path.getsize(path), f["bytes"], path)

    def check_starts(self, test, records):
        """The start that a record tells of is the last one of its task."""
        last = {}
        for attempt, _, job, stage in t.starts(self.root):
            folder, _, model = job.partition("_") # of a shared stage only the folder
            last[os.path.join(self.root, "out", folder),
                 stage if stage == "survey" else f"{stage}.{model}"] = attempt
        for key, record in records.items():
            test.assertEqual(last[key], record["attempt"], key)

    def check_ledgers(self, test, expected, records):
        for i in range(self.n_dirs):
            folder = os.path.join(self.root, "out", f"d{i:03}")
            ledger = sqlite3.connect(os.path.join(folder, ".fathom", "ledger.sqlite"))
            test.assertEqual(ledger.execute("pragma integrity_check").fetchall(), [("ok",)])
            tasks = ledger.execute("select id, state, attempt from tasks").fetchall()
            test.assertEqual({(folder, name) for name, _, _ in tasks},
                             {key for key in expected if key[0] == folder})
            for name, state, attempt in tasks:
                key = folder, name
                test.assertEqual(state, "completed" if expected[key] else "failed", key)
                if expected[key]:
                    test.assertEqual(attempt, records[key]["attempt"], key)
                self.replay(test, key, state, ledger.execute(
                    "select from_state, to_state from changes where task = ? order by number",
                    (name,)).fetchall())
            ledger.close()

    def replay(self, test, key, state, changes):
        """The history leads, step by step, to the state; after the end nothing runs."""
        now, completed = None, False
        for before, after in changes:
            if now is not None:
                test.assertEqual(before, now, (key, changes))
            now = after
            if now == "running":
                test.assertFalse(completed, f"{key} ran again after it was completed")
            completed = completed or now == "completed"
        test.assertEqual(now, state, key)


    def check_bytes(self, test):
        """The results are those of a run that nobody killed."""
        out = os.path.join(self.root, "out")
        os.rename(out, out + ".killed")
        test.assertEqual(self.wait(self.start()), self.last_code)
        n = 0
        for (folder, task), record in t.records(self.root).items():
            for f in record["files"]:
                if f["kind"] == "input":
                    continue
                path = os.path.join(folder, f["path"])
                with open(path, "rb") as good, open(path.replace(out, out + ".killed"), "rb") as got:
                    test.assertEqual(good.read(), got.read(), path)
                n += 1
        test.assertGreater(n, self.n_dirs)


def fight(test, seed, n_dirs, random_kills, compare=False):
    print(f"seed {seed}", flush=True)
    campaign = Campaign(seed, n_dirs, random_kills)
    try:
        campaign.run()
        campaign.check(test)
        test.assertEqual(campaign.killed, set(POINTS + LAST_POINTS))
        if compare:
            campaign.check_bytes(test)
    except BaseException:
        print(f"seed {seed} failed; what it left is in {campaign.root}", flush=True)
        raise
    shutil.rmtree(campaign.root)


def seed_of_today():
    return int(os.environ.get("FATHOM_KILL_SEED") or time.time())


class Kills(unittest.TestCase):
    def test_a_hundred_jobs_or_two(self):
        fight(self, seed_of_today(), 67 if os.environ.get("FTH_TEST_FULL") else 33, 20)


if __name__ == "__main__":
    unittest.main()
