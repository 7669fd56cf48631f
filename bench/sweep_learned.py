#!/usr/bin/env python3
"""sweep_learned.py [--sweep NAMES] [--seeds 1,2,3] [--out DIR] [--jobs N] [--device cuda] [--set KEY=VALUE ...]

The search for configs/ptycho/learned.yaml: every variant of it, at both doses and with both losses, beside LSQ-ML on
the same patterns. What is done is not done again. Prints the complex correlation of every arm with an object that was
not trained on: of every seed, and of the worst.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FATHOM_PROGRAM") or str(ROOT / "build/bin/fathom")
CONFIG = str(ROOT / "configs/ptycho/learned.yaml")

# Each changes one thing about the config.
VARIANTS = {
    "shipped": {},
    # light: in focus, half and more than a shadow; the dot of the published study, a smaller and a larger disc
    "focus": {"probe_curvature": 0},
    "curve0.5": {"probe_curvature": 0.5},
    "curve1.5": {"probe_curvature": 1.5},
    "dot": {"probe_curvature": 0, "default_probe_scale": 4},
    "disc22": {"default_probe_scale": 0.7, "stitch_crop": 20},
    "disc44": {"default_probe_scale": 0.35},
    # overlap: fewer patterns on the same area, each seen more often
    "sparse4": {"n_images": 2000, "n_groups": 2000, "nepochs": 12},
    "sparse16": {"n_images": 500, "n_groups": 500, "nepochs": 48},
    "dense": {"n_images": 32000, "n_groups": 32000, "nepochs": 2},
    # normalisation: where amplitudes lie on the sigmoid, and another function
    "scale4": {"probe_scale": 4},
    "scale1": {"probe_scale": 1},
    "softplus": {"amp_activation": "softplus"},
    # object: weak contrast, a grey one without phase
    "half": {"object_scale": "half"},
    "grey": {"phase": "none"},
    # schedule and network
    "constant": {"scheduler": "constant"},
    "plateau": {"scheduler": "plateau"},
    "cosine": {"scheduler": "warmupcosine", "warmup_epochs": 1, "lr_min_ratio": 0.02},
    "batch64": {"batch_size": 64, "learning_rate": 2e-3, "nepochs": 4},
    "calm64": {"batch_size": 64, "nepochs": 8},
    "even64": {"batch_size": 64, "nepochs": 5},
    "slow64": {"batch_size": 64, "nepochs": 5, "learning_rate": 5e-4},
    "rise32": {"batch_size": 32, "nepochs": 5, "scheduler": "warmupcosine", "warmup_epochs": 1, "lr_min_ratio": 0.05},
    "clip": {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "agc"},
    "long": {"nepochs": 8},
    "fast": {"learning_rate": 2e-3},
    "slow": {"learning_rate": 5e-4},
    "wide": {"n_filters_scale": 2},
    "torch": {"flavour": "torch"},
    "probe": {"probe_trainable": "true"},
    # what a patch must explain: one pattern, or several that lie nearest to each other
    "group1": {"gridsize": 1},
    "group4": {"gridsize": 2, "neighbor_count": 4},  # the config's
    "group9": {"gridsize": 3, "neighbor_count": 9},
    "group16": {"gridsize": 4, "neighbor_count": 16},
    # what is asked of the object itself: smoothness, and for comparison the truth
    "smooth1": {"realspace_weight": 1, "tv_weight": 1e-6},
    "smooth4": {"realspace_weight": 1, "tv_weight": 4e-6},
    "smooth16": {"realspace_weight": 1, "tv_weight": 16e-6},
    "taught": {"realspace_weight": 1, "realspace_mae_weight": 1},
}

GROUPS = ("gridsize", "neighbor_count")
PLACE = GROUPS + ("stitch_crop",)
DATA = ("probe_curvature", "default_probe_scale", "n_images", "object_scale", "phase", "nphotons", "size", "lines")
LEARN = GROUPS + ("n_groups", "nepochs", "probe_scale", "amp_activation", "scheduler", "warmup_epochs", "lr_min_ratio", "batch_size",
                  "learning_rate", "n_filters_scale", "flavour", "probe_trainable", "keep", "realspace_weight", "tv_weight",
                  "realspace_mae_weight", "gradient_clip_val", "gradient_clip_algorithm")
making = collections.defaultdict(threading.Lock)  # by scan, which arms share


def fathom(args, verb, *words):
    """One verb with the config; raises with what it said."""
    device = ["--device", args.device] if args.device and verb in ("train", "infer", "solve") else []
    threads = ["--threads", str(args.threads)] if args.threads else []
    run = subprocess.run([PROGRAM, "ptycho", verb, *map(str, words), "-c", CONFIG, *device, *threads],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{verb}: {(run.stdout + run.stderr)[-400:]}")


def flags_of(keys, section):
    return [w for k, v in keys.items() if k in section for w in ("--" + k, v)]


def scan(keys, out, args, *seeds):
    """A simulated scan; equal ones are made once."""
    words = [*flags_of(keys, DATA), "--object_seed", seeds[0], "--seed", seeds[1]]
    path = out / ("scan" + "".join(map(str, words)).replace("--", "-") + ".npz")
    with making[path]:
        if not path.exists():
            fathom(args, "simulate", path, *words)
    return path


def keys_of(name, args):
    """What a variant sets; several are joined by '+'."""
    keys = {k: v for part in name.split("+") for k, v in VARIANTS[part].items()}
    return {**dict(s.split("=", 1) for s in args.set), **keys}


def arm(name, seed, dose, way, out, args):
    """The complex correlation of one arm on each test scan, and the seconds of its training or solution."""
    keys = {**keys_of(name, args), "nphotons": dose}
    found, seconds = [], 0.0
    folder = out / f"{name}-{dose}-{way}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for tests in map(int, args.tests.split(",")):
        # positions and noise of the test scan are its own, as the object is
        test, at = scan({**keys, "n_images": tests}, out, args, 2, 100 + seed), folder / str(tests)
        if not (at / "metrics.json").exists():
            train = None if way == "lsqml" else scan({"n_images": 8000, **keys}, out, args, 1, seed)
            begin = time.monotonic()
            if way == "lsqml":
                fathom(args, "solve", test, "--out", at, "--seed", seed, "--nphotons", dose)
            else:
                if not (folder / "training_history.json").exists():
                    fathom(args, "train", train, *flags_of(keys, LEARN), "--nphotons", dose, "--seed", seed, "--out",
                           folder, "--nll_weight", int(way == "nll"), "--mae_weight", int(way == "mae"))
                fathom(args, "infer", folder / "model.safetensors", test, *flags_of(keys, PLACE), "--n_groups", tests,
                       "--out", at)
            seconds += time.monotonic() - begin
            fathom(args, "evaluate", at / "reconstruction.npz", test, "--out", at)
        found.append(json.loads((at / "metrics.json").read_text())["complex_correlation"])
    return found, seconds


def attempt(*what):
    try:
        return what, *arm(*what), ""
    except RuntimeError as e:
        return what, [], 0.0, str(e)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sweep", default="all", help="names of variants, or all; a+b is both at once")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--doses", default="1e5,1e3")
    p.add_argument("--losses", default="nll,mae")
    p.add_argument("--tests", default="2000", help="patterns of the test scans, of all on the same area")
    p.add_argument("--out", default="outputs/ptycho/sweep")
    p.add_argument("--no-solver", action="store_true", help="without LSQ-ML")
    p.add_argument("--jobs", type=int, default=1, help="arms at a time")
    p.add_argument("--device", help="of the trainings")
    p.add_argument("--threads", type=int)
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of every variant that does not set it")
    args = p.parse_args()
    names = list(VARIANTS) if args.sweep == "all" else args.sweep.split(",")
    unknown = [n for n in "+".join(names).split("+") if n not in VARIANTS]
    if unknown:
        sys.exit(f"no variant {unknown[0]}: {', '.join(VARIANTS)}")
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    ways = ["lsqml"] * (not args.no_solver) + args.losses.split(",")
    table, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(attempt, n, int(s), d, w, out, args)
                for w in ways for s in args.seeds.split(",") for n in names for d in args.doses.split(",")
                if w != "lsqml" or n == names[0] or not set(keys_of(n, args)) <= set(LEARN)]  # a solver does not care how others learn
        for job in concurrent.futures.as_completed(jobs):
            (name, seed, dose, way, *_), found, seconds, why = job.result()
            for tests, value in zip(args.tests.split(","), found or [float("nan")]):
                table.setdefault((name, dose, way, tests), {})[seed] = value
            print(f"{name:16} {dose} {way:5} seed {seed} {' '.join(f'{v:.4f}' for v in found)} {seconds:6.1f} s {why}", flush=True)
            failed += bool(why)
    print("\nvariant, photons, way, patterns of the test, worst of the seeds, all")
    for (name, dose, way, tests), seeds in sorted(table.items(), key=lambda t: (names.index(t[0][0]), t[0][1:])):
        values = [v for _, v in sorted(seeds.items())]
        print(f"{name:16} {dose} {way:5} {tests:5} {min(values):.4f}  {' '.join(f'{v:.4f}' for v in values)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
