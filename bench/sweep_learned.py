#!/usr/bin/env python3
"""sweep_learned.py [--sweep NAMES] [--seeds 1,2,3] [--out DIR] [--jobs N] [--device cuda] [--set KEY=VALUE ...]

The search for configs/ptycho/learned.yaml: every variant of it, at both doses and with both losses, beside LSQ-ML on
the same patterns. What is done is not done again. Prints the complex correlation of every arm with an object that was
not trained on: of every seed, and of the worst.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
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
    "disc22": {"default_probe_scale": 0.7},
    "disc44": {"default_probe_scale": 0.35},
    # overlap: fewer patterns on the same area, each seen more often
    "sparse4": {"n_images": 2000, "n_groups": 2000, "nepochs": 12},
    "sparse16": {"n_images": 500, "n_groups": 500, "nepochs": 48},
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
    "batch64": {"batch_size": 64, "learning_rate": 2e-3},
    "long": {"batch_size": 64, "learning_rate": 2e-3, "nepochs": 8},
    "longest": {"batch_size": 64, "learning_rate": 2e-3, "nepochs": 25, "n_filters_scale": 2},
    "fast": {"learning_rate": 2e-3},
    "slow": {"learning_rate": 5e-4},
    "wide": {"n_filters_scale": 2},
    "torch": {"flavour": "torch"},
    "group4": {"gridsize": 2, "neighbor_count": 7},
    "probe": {"probe_trainable": "true"},
}

TEST = 2000  # patterns of the test scan, where a variant does not say how many there are
GROUPS = ("gridsize", "neighbor_count")
DATA = ("probe_curvature", "default_probe_scale", "n_images", "object_scale", "phase", "nphotons", "size", "lines")
LEARN = ("n_groups", "nepochs", "probe_scale", "amp_activation", "scheduler", "warmup_epochs", "lr_min_ratio", "batch_size",
         "learning_rate", "n_filters_scale", "flavour", "gridsize", "neighbor_count", "probe_trainable", "keep")


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


def arm(name, seed, dose, way, out, args):
    """The complex correlation of one arm, and the seconds of its training or solution."""
    keys = {**VARIANTS[name], **dict(s.split("=", 1) for s in args.set), "nphotons": dose}
    folder = out / f"{name}-{dose}-{way}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "metrics.json").exists():  # done before
        return json.loads((folder / "metrics.json").read_text())["complex_correlation"], 0.0
    train, test = folder / "train.npz", folder / "test.npz"
    # positions and noise of the test scan are its own, as the object is
    fathom(args, "simulate", test, *flags_of({"n_images": TEST, **keys}, DATA), "--object_seed", 2, "--seed", 100 + seed)
    begin = time.monotonic()
    if way == "lsqml":
        fathom(args, "solve", test, "--out", folder, "--seed", seed, "--nphotons", dose)
    else:
        fathom(args, "simulate", train, *flags_of(keys, DATA), "--seed", seed)
        begin = time.monotonic()
        fathom(args, "train", train, *flags_of(keys, LEARN), "--nphotons", dose, "--seed", seed, "--out", folder,
               "--nll_weight", int(way == "nll"), "--mae_weight", int(way == "mae"))
        fathom(args, "infer", folder / "model.safetensors", test, *flags_of(keys, GROUPS), "--out", folder)
    seconds = time.monotonic() - begin
    fathom(args, "evaluate", folder / "reconstruction.npz", test, "--out", folder)
    return json.loads((folder / "metrics.json").read_text())["complex_correlation"], seconds


def attempt(*what):
    try:
        return what, *arm(*what), ""
    except RuntimeError as e:
        return what, float("nan"), 0.0, str(e)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sweep", default="all", help="names of variants, or all")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--doses", default="1e5,1e3")
    p.add_argument("--losses", default="nll,mae")
    p.add_argument("--out", default="outputs/ptycho/sweep")
    p.add_argument("--no-solver", action="store_true", help="without LSQ-ML")
    p.add_argument("--jobs", type=int, default=1, help="arms at a time")
    p.add_argument("--device", help="of the trainings")
    p.add_argument("--threads", type=int)
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of every variant")
    args = p.parse_args()
    names = list(VARIANTS) if args.sweep == "all" else args.sweep.split(",")
    unknown = [n for n in names if n not in VARIANTS]
    if unknown:
        sys.exit(f"no variant {unknown[0]}: {', '.join(VARIANTS)}")
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    ways = ["lsqml"] * (not args.no_solver) + args.losses.split(",")
    table, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(attempt, n, int(s), d, w, out, args)
                for w in ways for n in names for s in args.seeds.split(",") for d in args.doses.split(",")
                if w != "lsqml" or n == "shipped" or not set(VARIANTS[n]) <= set(LEARN)]  # a solver does not care how others learn
        for job in concurrent.futures.as_completed(jobs):
            (name, seed, dose, way, *_), found, seconds, why = job.result()
            table.setdefault((name, dose, way), {})[seed] = found
            print(f"{name:10} {dose} {way:5} seed {seed} {found:.4f} {seconds:6.1f} s {why}", flush=True)
            failed += bool(why)
    print("\nvariant, photons, way, worst of the seeds, all")
    for (name, dose, way), seeds in sorted(table.items(), key=lambda t: (names.index(t[0][0]), t[0][1:])):
        values = [v for _, v in sorted(seeds.items())]
        print(f"{name:10} {dose} {way:5} {min(values):.4f}  {' '.join(f'{v:.4f}' for v in values)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
