"""Training with options drawn at random, step by step against spatial_reference.py.
seconds: 300"""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

try:
    import torch
    import spatial_reference as reference
except ImportError:
    torch = None

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
SAMPLE = pathlib.Path("tests/golden/spatial/sample_v0_8.h5ad").resolve()
CASES = int(os.environ.get("FATHOM_SPATIAL_CASES", "60"))
FIRST = int(os.environ.get("FATHOM_SPATIAL_FIRST", "0"))

MODELS = {
    "pnmf": dict(spatial=False, groups=False, local=False),
    "svgp": dict(spatial=True, groups=False, local=False),
    "mggp_svgp": dict(spatial=True, groups=True, local=False),
    "lcgp": dict(spatial=True, groups=False, local=True),
    "mggp_lcgp": dict(spatial=True, groups=True, local=True),
}


def draw(seed):
    """A model and its options."""
    r = random.Random(seed)
    name = r.choice(list(MODELS))
    o = dict(MODELS[name])
    o.update(
        n_components=r.choice([1, 2, 3, 5, 8]),
        mode=r.choice(["expanded", "simple", "lower-bound"]),
        loadings_mode=r.choice(["multiplicative", "multiplicative", "projected", "softplus", "exp"]),
        E=r.choice([1, 3, 4]),
        init=r.choice(["random", "random", "nndsvda", "k-means"]),
        scale_ll_D=r.random() < 0.7,
    )
    if o["spatial"]:
        o.update(
            kernel=r.choice(["Matern32", "Matern52", "RBF"]),
            lengthscale=r.choice([4.0, 8.0, 20.0]),
            sigma=r.choice([0.7, 1.0, 1.5]),
            jitter=r.choice([1e-5, 1e-3]),
        )
    if o["groups"]:
        o.update(group_diff_param=r.choice([0.1, 1.0, 10.0]))
    if o["spatial"] and not o["local"]:
        o.update(
            num_inducing=r.choice([12, 30, 64]),
            scale_kl_NM=r.random() < 0.5,
            cholesky_mode=r.choice(["exp", "softplus"]),
            diagonal_only=r.random() < 0.3,
            parametrization=r.choice(["raw", "raw", "whitened"]),
        )
    if o["groups"] and not o["local"]:
        o.update(inducing_allocation=r.choice(["proportional", "equal", "derived"]))
    if o["local"]:
        o.update(K=r.choice([1, 4, 9]), rank=r.choice(["K", "3", "12"]), init_mu=r.choice(["random", "smooth"]))
    t = dict(
        max_iter=r.choice([2, 3, 8, 15]),
        learning_rate=r.choice([2e-3, 2e-2]),
        optimizer=r.choice(["Adam", "Adam", "AdamW", "NAdam", "SGD", "RMSprop"]),
        scheduler=r.choice(["one_cycle", "one_cycle", "none"]),
        tol=0,
    )
    if t["optimizer"] == "SGD":
        t["learning_rate"] = 1e-7
    if r.random() < 0.7:
        t["batch_size"] = r.choice([37, 120, 299])
    if r.random() < 0.6:
        t["y_batch_size"] = r.choice([5, 16])
    return name, o, t


def scalar(v):
    return {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)


def write_config(path, folder, o, t, seed):
    lines = [f"name: case\nseed: {seed}\ndataset: anndata\noutput_dir: {folder}"]
    lines.append(f"preprocessing:\n  path: {SAMPLE}\n  coord_key: spatial\n  group_column: ClusterName\n  min_group_size: 2")
    lines.append("model:\n" + "\n".join(f"  {k}: {scalar(v)}" for k, v in o.items()))
    lines.append("training:\n" + "\n".join(f"  {k}: {scalar(v)}" for k, v in t.items()))
    path.write_text("\n".join(lines) + "\n")


def read_counts(path):
    z = np.load(path)
    Y = np.zeros(z["shape"])
    for i in range(len(Y)):
        part = slice(z["indptr"][i], z["indptr"][i + 1])
        Y[i, z["indices"][part]] = z["data"][part]
    return Y


@unittest.skipIf(torch is None, "the reference needs Debian's python3-torch")
class Training(unittest.TestCase):
    def run_case(self, seed):
        name, o, t = draw(seed)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-spatial-"))
        try:
            write_config(folder / "case.yaml", folder / "out", o, t, seed)
            for words in (["preprocess"], ["train", "--record", str(folder / "record.npz")]):
                done = subprocess.run([PROGRAM, "spatial", words[0], "-c", str(folder / "case.yaml"), "--quiet"] + words[1:],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"case {seed} {name} {o} {t}\n{done.stderr}{done.stdout}")
            record = dict(np.load(folder / "record.npz"))
            pre = folder / "out" / "preprocessed"
            data = dict(X=torch.tensor(np.load(pre / "X.npy"), dtype=torch.float64), C=torch.tensor(np.load(pre / "C.npy")),
                        Y=torch.tensor(read_counts(pre / "Y.npz")))
            options = dict(cholesky_mode="exp", diagonal_only=False, parametrization="raw", scale_kl_NM=True, group_diff_param=10.0)
            options.update(o)
            options.update(t)
            ours = np.load(folder / "out" / name / "elbo_history.npy")
            theirs = reference.train(options, data, record)[: len(ours)]
            worst = np.max(np.abs(ours - theirs) / np.abs(theirs))
            self.assertLess(worst, 1e-4, f"case {seed} {name} {o} {t}: {ours} {theirs}")
            return worst
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def test_histories_agree(self):
        for seed in range(FIRST, FIRST + CASES):
            with self.subTest(case=seed):
                self.run_case(seed)


if __name__ == "__main__":
    unittest.main()
