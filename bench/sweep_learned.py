#!/usr/bin/env python3
"""sweep_learned.py [--sweep NAMES] [--seeds 1,2,3] [--out DIR] [--jobs N] [--device cuda] [--set KEY=VALUE ...]

The search for configs/ptycho/learned.yaml: every variant of it, at both doses and with both losses, beside LSQ-ML on
the same patterns. A variant with a seed is one `fathom ptycho study dose`; what is done is not done again. Prints the
complex correlation with the unseen object of every arm: of every seed, and of the worst.
"""
import argparse
import concurrent.futures
import csv
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FATHOM_PROGRAM") or str(ROOT / "build/bin/fathom")

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
    # overlap: half as many and a quarter as many patterns on the same area
    "sparse2": {"n_images": 1000, "n_test_images": 1000, "n_groups": 1000, "nepochs": 40},
    "sparse4": {"n_images": 500, "n_test_images": 500, "n_groups": 500, "nepochs": 80},
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
    "fast": {"learning_rate": 2e-3},
    "slow": {"learning_rate": 5e-4},
    "wide": {"n_filters_scale": 2},
    "torch": {"flavour": "torch"},
    "group4": {"gridsize": 2, "neighbor_count": 7},
    "probe": {"probe_trainable": "true"},
}


def study(name, seed, out, args):
    """Correlations by arm of one variant and seed, and the seconds that it took."""
    folder = out / f"{name}-{seed}"
    keys = {**VARIANTS[name], **dict(s.split("=", 1) for s in args.set)}
    words = [PROGRAM, "ptycho", "study", "dose", "-c", str(ROOT / "configs/ptycho/learned.yaml"), "--out", str(folder),
             "--doses", args.doses, "--losses", args.losses, "--algorithms", "lsqml", "--seed", str(seed)]
    for key, value in keys.items():
        words += ["--" + key, str(value)]
    if args.device:
        words += ["--device", args.device]
    if args.threads:
        words += ["--threads", str(args.threads)]
    begin = time.monotonic()
    run = subprocess.run(words, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if run.returncode != 0 or not (folder / "summary.csv").exists():
        return name, seed, {}, seconds, (run.stdout + run.stderr)[-600:]
    with open(folder / "summary.csv") as f:
        found = {r["arm"]: float(r["complex_correlation"] or "nan") for r in csv.DictReader(f)}
    return name, seed, found, seconds, ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sweep", default="all", help="names of variants, or all")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--doses", default="1e5,1e3")
    p.add_argument("--losses", default="nll,mae")
    p.add_argument("--out", default="outputs/ptycho/sweep")
    p.add_argument("--jobs", type=int, default=1, help="studies at a time")
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
    table, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(study, n, int(s), out, args) for n in names for s in args.seeds.split(",")]
        for job in concurrent.futures.as_completed(jobs):
            name, seed, found, seconds, why = job.result()
            table.setdefault(name, {})[seed] = found
            row = " ".join(f"{arm} {v:.4f}" for arm, v in found.items())
            print(f"{name:10} seed {seed} {seconds:6.1f} s  {row or why}", flush=True)
            failed += not found
    print("\nvariant, arm, worst of the seeds, all")
    for name in names:
        seeds = table[name]
        for arm in next((f for f in seeds.values() if f), {}):
            values = [f.get(arm, float("nan")) for _, f in sorted(seeds.items())]
            print(f"{name:10} {arm:12} {min(values):.4f}  {' '.join(f'{v:.4f}' for v in values)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
