"""A small Slurm in one file: sbatch, squeue, scancel, scontrol, sinfo, srun as links to this script.

State is a SQLite file in $FAKE_SLURM; `serve` in the test runs what is queued. What goes wrong is asked
for there as well, in the table `wish`: down (the controller), hide (a path that nodes do not see), size
(MaxArraySize), submit (jobs of a user), states (how the next elements that begin end, without running).
"""
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "sacct")


def database(folder):
    db = sqlite3.connect(os.path.join(folder, "db"), timeout=30, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS element (id INT, idx INT, state TEXT, reason TEXT, comment TEXT, "
               "script TEXT, cwd TEXT, depends TEXT, began INT DEFAULT 0, PRIMARY KEY (id, idx))")
    db.execute("CREATE TABLE IF NOT EXISTS wish (name TEXT PRIMARY KEY, value TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS calls (program TEXT, at REAL)")
    return db


def wish(db, name, otherwise=None):
    row = db.execute("SELECT value FROM wish WHERE name=?", (name,)).fetchone()
    return row[0] if row else otherwise


def indices(text):
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


# ---- the programs ----

def sbatch(db, words):
    with open(words[-1]) as f:
        options = dict(re.findall(r'^#SBATCH --([\w-]+)=?"?([^"\n]*)"?$', f.read(), re.M))
    if options.get("partition", "main") != "main":
        sys.exit("sbatch: error: invalid partition specified")
    if "nope" in (options.get("account"), options.get("qos")):
        sys.exit("allocation failure: Invalid account or account/partition combination specified")
    if "--test-only" in words:
        return
    numbers = indices(options["array"])
    if max(numbers) >= int(wish(db, "size", 1001)):
        sys.exit("sbatch: error: Batch job submission failed: Invalid job array specification")
    db.execute("BEGIN IMMEDIATE")
    queued = db.execute("SELECT count(*) FROM element WHERE state IN ('PENDING','RUNNING')").fetchone()[0]
    if queued + len(numbers) > int(wish(db, "submit", 10 ** 9)):
        sys.exit("sbatch: error: AssocMaxSubmitJobLimit")
    depends = "".join(w.split("=", 1)[1] for w in words if w.startswith("--dependency="))
    number = (db.execute("SELECT max(id) FROM element").fetchone()[0] or 0) + 1
    for k in numbers:
        db.execute("INSERT INTO element (id, idx, state, reason, comment, script, cwd, depends) VALUES "
                   "(?,?,'PENDING','None',?,?,?,?)", (number, k, options["comment"], words[-1], os.getcwd(), depends))
    db.execute("COMMIT")
    print(number)


def squeue(db, words):
    for row in db.execute("SELECT id, idx, state, reason, comment FROM element"):
        print("|".join(map(str, row)))


def scancel(db, words):
    for word in words:
        if word.startswith("-"):
            continue
        number, _, index = word.partition("_")
        where, values = ("id=? AND idx=?", (number, index)) if index else ("id=?", (number,))
        for began, in db.execute(f"SELECT began FROM element WHERE {where} AND state='RUNNING'", values):
            try:
                os.killpg(began, signal.SIGTERM)
            except ProcessLookupError:
                pass
        db.execute(f"UPDATE element SET state='CANCELLED' WHERE {where} AND state IN ('PENDING','RUNNING')", values)


def scontrol(db, words):
    if wish(db, "down"):
        sys.exit("slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)")
    if wish(db, "munge"):
        sys.exit("scontrol: error: If munged is up, restart with --num-threads=10\nscontrol: error: Munge encode failed\n"
                 "slurm_load_ctl_conf error: Protocol authentication error")
    print(f"AccountingStorageType   = accounting_storage/none\nClusterName             = fake\n"
          f"MaxArraySize            = {wish(db, 'size', 1001)}\nMinJobAge               = 300 sec\n"
          f"SLURM_VERSION           = 22.05.8")


def sinfo(db, words):
    print("main*|up|1-00:00:00|4000|4|(null)|2")


def srun(db, words):
    hidden = wish(db, "hide")
    if hidden:
        print("MISSING", hidden)
    else:
        sys.exit(subprocess.run(words[-3:]).returncode)


def sacct(db, words):
    sys.exit("Slurm accounting storage is disabled")


# ---- the cluster ----

class Cluster:
    """Runs what is queued, `most` at a time, until `stop`."""

    def __init__(self, folder, most=4):
        self.folder, self.most, self.ended = folder, most, False
        self.bin = os.path.join(folder, "bin")
        os.makedirs(self.bin)
        for name in PROGRAMS:
            with open(os.path.join(self.bin, name), "w") as f:
                f.write(f"#!/bin/sh\nFAKE_SLURM={folder} exec {sys.executable} -S -E {os.path.abspath(__file__)} {name} \"$@\"\n")
            os.chmod(os.path.join(self.bin, name), 0o755)
        self.db = database(folder)
        self.environment = {"PATH": self.bin + ":" + os.environ["PATH"]}
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def want(self, **wishes):
        for name, value in wishes.items():
            self.db.execute("INSERT OR REPLACE INTO wish VALUES (?,?)", (name, str(value)))

    def calls(self, program):
        return [at for at, in self.db.execute("SELECT at FROM calls WHERE program=? ORDER BY at", (program,))]

    def elements(self):
        return self.db.execute("SELECT id, idx, state, depends FROM element").fetchall()

    def stop(self):
        self.ended = True
        self.thread.join()
        self.db.close()

    def may_begin(self, db, index, depends):
        """True: now; None: never."""
        kind, _, rest = depends.partition(":")
        for word in filter(None, rest.split(":")):
            number, _, element = word.partition("_")
            row = db.execute("SELECT state FROM element WHERE id=? AND idx=?", (number, element or index)).fetchone()
            if not row or row[0] in ("PENDING", "RUNNING"):
                return False
            if row[0] != "COMPLETED":
                return None
        return True

    def serve(self):
        db = database(self.folder)
        running = {}
        while not self.ended or running:
            for key, p in list(running.items()):
                if p.poll() is None:
                    continue
                del running[key]
                db.execute("UPDATE element SET state=? WHERE id=? AND idx=? AND state='RUNNING'",
                           ("COMPLETED" if p.returncode == 0 else "FAILED", *key))
            for number, index, script, cwd, depends in db.execute(
                    "SELECT id, idx, script, cwd, depends FROM element WHERE state='PENDING' ORDER BY id, idx").fetchall():
                if len(running) >= self.most or self.ended:
                    break
                may = self.may_begin(db, index, depends)
                if may is None:
                    db.execute("UPDATE element SET state='CANCELLED', reason='DependencyNeverSatisfied' "
                               "WHERE id=? AND idx=?", (number, index))
                if not may:
                    continue
                state, _, rest = wish(db, "states", "").partition(" ")
                if state:
                    db.execute("UPDATE wish SET value=? WHERE name='states'", (rest,))
                    db.execute("UPDATE element SET state=? WHERE id=? AND idx=?", (state, number, index))
                    continue
                with open(script) as f:
                    output = re.search(r'--output="(.*)"', f.read())[1].replace("%%", "%")
                with open(output, "a") as out:
                    p = subprocess.Popen(["sh", script], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                         stderr=out, start_new_session=True,
                                         env={**os.environ, "SLURM_ARRAY_TASK_ID": str(index),
                                              "SLURM_JOB_ID": f"{number}.{index}", "SLURMD_NODENAME": "fake"})
                running[number, index] = p
                db.execute("UPDATE element SET state='RUNNING', began=? WHERE id=? AND idx=?", (p.pid, number, index))
            time.sleep(0.02)
        db.close()


if __name__ == "__main__":
    base = database(os.environ["FAKE_SLURM"])
    base.execute("INSERT INTO calls VALUES (?,?)", (sys.argv[1], time.time()))
    globals()[sys.argv[1]](base, sys.argv[2:])
