"""What the tests of many jobs share: configs of the practice instrument, and what is left of a run."""
import json
import os
import subprocess
import time

PROGRAM = os.environ.get("FATHOM_PROGRAM") or os.path.join(
    os.path.dirname(os.environ.get("FATHOM_LIBRARY", "build/lib/libfathom.so")), "../bin/fathom")
PROGRAM = os.path.abspath(PROGRAM)
MODELS = ("plane", "bowl", "waves")


def write_config(root, name, seed=1, model=None, **keys):
    """A small config in ROOT/configs/NAME; general unless a model is given."""
    folder = os.path.join(root, "configs", name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{model or 'general'}.yaml")
    lines = {"instrument": "sounding", "name": name, "seed": seed,
             "output_dir": os.path.join(root, "out", name), "survey.cells": 64,
             "fit.iterations": 4, "analyze.side": 8,
             "drill.start_log": os.path.join(root, "starts.log")}
    if model:
        lines["model.basis"] = model
    lines.update(keys)
    with open(path, "w") as f:
        f.writelines(f"{key}: {value}\n" for key, value in lines.items())
    return path


def fathom(*words, cwd=None, timeout=120, **environment):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=timeout,
                          cwd=cwd, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def start(*words, cwd=None, **environment):
    return subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, cwd=cwd, env={**os.environ, **environment})


def hit(seed, model, stage, chance):
    """Whether the drill happens to this task: the formula of src/job/stage/drill.c."""
    mask = (1 << 64) - 1
    h = 0xcbf29ce484222325
    for byte in f"{model}/{stage}".encode():
        h = ((h ^ byte) * 0x100000001b3) & mask
    z = (seed + h + 0x9e3779b97f4a7c15) & mask
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & mask
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
    return ((z ^ (z >> 31)) >> 11) * 2.0 ** -53 < chance


def starts(root):
    """Lines of the start log: attempt, pid, job, stage."""
    path = os.path.join(root, "starts.log")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [line.split() for line in f]


def records(root):
    """{(directory, task): record} of every record below ROOT/out."""
    found = {}
    for folder, _, files in os.walk(os.path.join(root, "out")):
        if os.path.basename(folder) != ".fathom":
            continue
        for name in files:
            if name.endswith(".json") and name != "live.json":
                with open(os.path.join(folder, name)) as f:
                    found[os.path.dirname(folder), name[:-5]] = json.load(f)
    return found


def processes(root):
    """Pids of stages that work below ROOT."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"--attempt" in words and any(word.startswith(root.encode()) for word in words):
            found.append(int(pid))
    return found


def state(pid):
    """The letter that the kernel has for what a process does; "gone": it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def wait_for(condition, seconds=20, what="it"):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen in {seconds} s")
        time.sleep(0.01)


def temporary_files(root):
    return [os.path.join(folder, name) for folder, _, files in os.walk(root) for name in files
            if name.endswith(".tmp")]


def xxh64(data, seed=0):
    """The hash of records, written from its description."""
    mask = (1 << 64) - 1
    p = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
         2870177450012600261)
    rot = lambda v, n: ((v << n) | (v >> (64 - n))) & mask
    turn = lambda acc, word: rot((acc + word * p[1]) & mask, 31) * p[0] & mask
    word = lambda at, n: int.from_bytes(data[at:at + n], "little")
    at, n = 0, len(data)
    if n >= 32:
        v = [(seed + p[0] + p[1]) & mask, (seed + p[1]) & mask, seed, (seed - p[0]) & mask]
        while at + 32 <= n:
            v = [turn(v[i], word(at + 8 * i, 8)) for i in range(4)]
            at += 32
        h = sum(rot(v[i], (1, 7, 12, 18)[i]) for i in range(4)) & mask
        for part in v:
            h = ((h ^ turn(0, part)) * p[0] + p[3]) & mask
    else:
        h = (seed + p[4]) & mask
    h = (h + n) & mask
    while at + 8 <= n:
        h = (rot(h ^ turn(0, word(at, 8)), 27) * p[0] + p[3]) & mask
        at += 8
    if at + 4 <= n:
        h = (rot(h ^ word(at, 4) * p[0] & mask, 23) * p[1] + p[2]) & mask
        at += 4
    for byte in data[at:]:
        h = rot(h ^ byte * p[4] & mask, 11) * p[0] & mask
    h = (h ^ (h >> 33)) * p[1] & mask
    h = (h ^ (h >> 29)) * p[2] & mask
    return h ^ (h >> 32)
