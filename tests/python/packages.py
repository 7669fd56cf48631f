"""Packages that others open our files with, fetched from the package index into a folder of the build."""
import shutil
import subprocess
import sys


def fetch(folder, packages):
    """A virtual environment with the packages, made once; None, or why there is none."""
    stamp = folder / "packages.txt"
    if stamp.is_file() and stamp.read_text() == "\n".join(packages):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
    if made.returncode:
        return "python3-venv is not installed"
    got = subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *packages],
                         capture_output=True, text=True)
    if got.returncode:
        return f"the package index does not give them: {got.stderr.strip().splitlines()[-1][:200]}"
    stamp.write_text("\n".join(packages))
    return None
