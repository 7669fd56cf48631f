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
    """Whether the drill happens to this task: the formula of instruments/sounding/drill.c."""
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


def wait_for(condition, seconds=20, what="it"):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen in {seconds} s")
        time.sleep(0.01)


def temporary_files(root):
    return [os.path.join(folder, name) for folder, _, files in os.walk(root) for name in files
            if name.endswith(".tmp")]
