#!/usr/bin/env python3
"""start_learned.py RECON SCAN [--epochs 1,2,5,10,20,40] [--device cuda]

What the network's object and probe are worth as the start of LSQ-ML: after so many epochs on SCAN, the complex
correlation with its true object from ones and the probe of the file, and from RECON (`fathom ptycho infer`).
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FATHOM_PROGRAM") or str(ROOT / "build/bin/fathom")
CONFIG = str(ROOT / "configs/ptycho/learned.yaml")


def fathom(*words):
    subprocess.run([PROGRAM, "ptycho", *map(str, words), "-c", CONFIG], check=True, stdout=subprocess.DEVNULL)


def correlation(recon, scan, folder):
    fathom("evaluate", recon, scan, "--out", folder)
    return json.loads((folder / "metrics.json").read_text())["complex_correlation"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recon")
    p.add_argument("scan")
    p.add_argument("--epochs", default="1,2,5,10,20,40")
    p.add_argument("--device")
    args = p.parse_args()
    device = ["--device", args.device] if args.device else []
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        print(f"the network alone {correlation(args.recon, args.scan, out):.4f}\nepochs     ones  network")
        for epochs in map(int, args.epochs.split(",")):
            found = []
            for start in ([], ["--start_from", args.recon]):
                fathom("solve", args.scan, "--iterations", epochs, "--out", out / "solve", "--force", *start, *device)
                found.append(correlation(out / "solve/reconstruction.npz", args.scan, out))
            print(f"{epochs:6} {found[0]:8.4f} {found[1]:8.4f}", flush=True)


if __name__ == "__main__":
    main()
