#!/usr/bin/env python3
"""start_learned.py STUDY [--epochs 1,2,5,10,20,40] [--arms high_nll,low_nll] [--device cuda]

What the network's object and probe are worth as the start of LSQ-ML: after so many epochs, the complex correlation
with the true object from ones and the probe of the file, and from the reconstruction of each arm of a dose study
(`fathom ptycho study dose -c configs/ptycho/learned.yaml --out STUDY`). The patterns are those of the test scan.
"""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FATHOM_PROGRAM") or str(ROOT / "build/bin/fathom")


def fathom(*words):
    subprocess.run([PROGRAM, "ptycho", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def correlation(folder, scan):
    fathom("evaluate", folder / "reconstruction.npz", scan, "--out", folder)
    return json.loads((folder / "metrics.json").read_text())["complex_correlation"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("study", type=pathlib.Path)
    p.add_argument("--epochs", default="1,2,5,10,20,40")
    p.add_argument("--arms", default="high_nll,low_nll")
    p.add_argument("--noise_model", default="gaussian")
    p.add_argument("--device")
    args = p.parse_args()
    device = ["--device", args.device] if args.device else []
    for arm in args.arms.split(","):
        scan = args.study / "data" / (arm.split("_")[0] + "_test.npz")
        alone = json.loads((args.study / arm / "metrics.json").read_text())["complex_correlation"]
        print(f"{arm}: the network alone {alone:.4f}\nepochs     ones  network")
        for epochs in map(int, args.epochs.split(",")):
            found = []
            for start in ([], ["--start_from", args.study / arm / "reconstruction.npz"]):
                out = args.study / "start"
                fathom("solve", scan, "--algorithm", "lsqml", "--noise_model", args.noise_model, "--iterations", epochs,
                       "--out", out, "--force", *start, *device)
                found.append(correlation(out, scan))
            print(f"{epochs:6} {found[0]:8.4f} {found[1]:8.4f}", flush=True)


if __name__ == "__main__":
    main()
