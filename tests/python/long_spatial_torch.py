"""Models that torch itself saved, as state dictionaries of the public project: imported, they give the results of the models they
were made of. FATHOM_TORCH_PYTHON names an interpreter that has torch. seconds: 60"""
import os
import pathlib
import pickle
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_spatial_import as written

PYTHON = os.environ.get("FATHOM_TORCH_PYTHON", sys.executable)
SAVE = """
import collections, pickle, sys, torch
def made(v):
    if isinstance(v, dict):
        return collections.OrderedDict((k, made(x)) for k, x in v.items()) if type(v) is not dict else {k: made(x) for k, x in v.items()}
    if not (isinstance(v, tuple) and v and v[0] == "tensor"):
        return v
    t = torch.from_numpy(v[1].copy())
    return t.t().contiguous().t() if v[2] else torch.nn.Parameter(t) if t.is_floating_point() and t.dim() > 1 else t
torch.save(made(pickle.load(sys.stdin.buffer)), sys.argv[1])
"""


def save(path, value, root=None):
    done = subprocess.run([PYTHON, "-c", SAVE, str(path)], input=pickle.dumps(value), capture_output=True)
    if done.returncode:
        raise AssertionError(done.stderr.decode())


def setUpModule():
    done = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if done.returncode:
        raise unittest.SkipTest(f"{PYTHON} has no torch")
    print("torch", done.stdout.strip(), flush=True)
    written.Tensor = lambda array, turned=False: ("tensor", array, turned)
    written.save = save


class Saved(unittest.TestCase):
    def test_results_are_those_of_the_model(self):
        case = written.Import("test_results_are_those_of_the_model")
        result = unittest.TestResult()
        case.run(result)
        self.assertEqual([], [text for _, text in result.failures + result.errors])


if __name__ == "__main__":
    unittest.main()
