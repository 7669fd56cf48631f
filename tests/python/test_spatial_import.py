"""A model.pth of the public project, written here without torch: imported, it gives the results of the model it was made of.
seconds: 30"""
import collections
import io
import json
import math
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")


def module(name):
    return sys.modules.setdefault(name, types.ModuleType(name))


TORCH, UTILS = module("torch"), module("torch._utils")
for kind in ("Float", "Double", "Long"):
    setattr(TORCH, f"{kind}Storage", type(f"{kind}Storage", (), {"__module__": "torch"}))


def _rebuild_tensor_v2():
    pass


_rebuild_tensor_v2.__module__ = "torch._utils"
UTILS._rebuild_tensor_v2 = _rebuild_tensor_v2


class Storage:
    def __init__(self, array):
        self.array = array


class Tensor:
    """Pickled as torch.save does; `turned`: with the strides of a transposed view."""

    def __init__(self, array, turned=False):
        self.size = array.shape
        self.storage = Storage(np.ascontiguousarray(array.T if turned else array))
        strides = self.storage.array.strides
        self.stride = tuple(n // array.itemsize for n in (strides[::-1] if turned else strides))

    def __reduce_ex__(self, protocol):
        return _rebuild_tensor_v2, (self.storage, 0, self.size, self.stride, False, collections.OrderedDict())


class Writer(pickle.Pickler):
    def __init__(self, to):
        super().__init__(to, protocol=2)
        self.stores = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        self.stores.append(value.array)
        name = {"f4": "Float", "f8": "Double", "i8": "Long"}[value.array.dtype.str[1:]]
        return "storage", getattr(TORCH, f"{name}Storage"), str(len(self.stores) - 1), "cpu", value.array.size


def save(path, value, root=None):
    text = io.BytesIO()
    writer = Writer(text)
    writer.dump(value)
    root = root or pathlib.Path(path).stem
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(f"{root}/data.pkl", text.getvalue())
        z.writestr(f"{root}/byteorder", "little")
        for i, array in enumerate(writer.stores):
            z.writestr(f"{root}/data/{i}", array.tobytes())
        z.writestr(f"{root}/version", "3\n")


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header, at = json.loads(data[8 : 8 + n]), 8 + n
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}
    out = {"": header["__metadata__"]}
    for name, one in header.items():
        if name != "__metadata__":
            low, high = one["data_offsets"]
            out[name] = np.frombuffer(data[at + low : at + high], kinds[one["dtype"]]).reshape(one["shape"])
    return out


def as_public(model, spatial, local, groups):
    """The dictionary that the public project saves."""
    prior = collections.OrderedDict()
    if not spatial:
        prior["mean"], prior["scale._raw"] = Tensor(model["mean"]), Tensor(model["raw"])
    else:
        prior["Z"], prior["mu"] = Tensor(model["Z"]), Tensor(model["mu"])
        prior["Lu" if local else "Lu._raw"] = Tensor(model["Lam" if local else "Lu_raw"])
        prior["kernel.lengthscale"] = Tensor(np.array(float(model[""]["lengthscale"]), "<f4"))
        prior["kernel.sigma"] = Tensor(np.array([float(model[""]["sigma"])], "<f4"))
        if groups:
            prior["groupsZ"] = Tensor(model["groupsZ"].astype("<i8"))
            prior["kernel.group_diff_param"] = Tensor(np.array(float(model[""]["group_diff_param"]), "<f4"))
    return {"model_state_dict": collections.OrderedDict(), "prior_state_dict": prior,
            "components": Tensor(model["W"].T, turned=True),
            "hyperparameters": {"n_components": 2, "mode": "expanded", "tol": 1e-4, "groups": groups, "K": None,
                                "long": 1 << 40, "list": [1, -2, (3,)]}}


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-import-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.fathom("toy", "-o", str(self.folder / "toy"), "--cells", "144", "--genes", "12", "--factors", "2",
                    "--groups", "3", "--lengthscale", "30")

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, "spatial", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def config(self, name, model, out="out"):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: t\nseed: 3\ndataset: toy\noutput_dir: {self.folder}/{out}\n"
                        f"preprocessing: {{path: {self.folder}/toy}}\n"
                        f"model: {{model_name_override: {name}, {model}}}\n"
                        "training: {max_iter: 4}\nanalyze: {export: false}\n")
        return str(path)

    def round_trip(self, spatial, local, groups):
        model = f"spatial: {spatial}, local: {local}, groups: {groups}".lower()
        extra = ", n_components: 2, lengthscale: 25, num_inducing: 20, K: 5, group_diff_param: 0.5"
        ours = self.config("ours", model + (extra if spatial else ", n_components: 2"))
        theirs = self.config("theirs", model + (", num_inducing: 30, K: 5" if spatial else ""))
        if not (self.folder / "out").exists():
            self.fathom("preprocess", "-c", ours)
        self.fathom("train", "-c", ours, "--force")
        before = tensors(self.folder / "out/ours/model.safetensors")
        save(self.folder / "model.pth", as_public(before, spatial, local, groups))
        said = self.fathom("train", "-c", theirs, "--force", "--import", str(self.folder / "model.pth"))
        after = tensors(self.folder / "out/theirs/model.safetensors")
        for name, array in before.items():
            if name and not name.startswith("adam_") and name != "elbo_history":
                np.testing.assert_array_equal(after[name], array, name)
        for name in ("ours", "theirs"):
            self.fathom("analyze", "-c", str(self.folder / f"{name}.yaml"))
        for name in ("factors.npy", "scales.npy", "loadings.npy"):
            a, b = (np.load(self.folder / "out" / run / name) for run in ("ours", "theirs"))
            np.testing.assert_array_equal(a, b, name)
        return said

    def test_results_are_those_of_the_model(self):
        said = self.round_trip(True, False, False)
        self.assertIn("n_components is 2 in the file, and was 10 in the config", said)
        self.assertIn("lengthscale is 25 in the file, and was 1 in the config", said)
        self.assertIn("num_inducing is 20 in the file, and was 30 in the config", said)
        self.round_trip(False, False, False)
        self.round_trip(True, False, True)
        self.round_trip(True, True, False)
        self.round_trip(True, True, True)
        self.fathom("train", "-c", str(self.folder / "theirs.yaml"), "--resume", code=2)  # other settings

    def test_a_kernel_may_have_a_lengthscale_of_each_factor(self):
        for local, name in ((False, "num_inducing: 20"), (True, "local: true, K: 5")):
            with self.subTest(local=local):
                public = self.import_lengthscales(local, "spatial: true, " + name)
        public = self.import_lengthscales(False, "spatial: true, num_inducing: 20")
        public["prior_state_dict"]["kernel.lengthscale"] = Tensor(np.array([3.0, 0.0], "<f4"))
        self.refused(public, "lengthscale 1 of the kernel is 0")
        public["prior_state_dict"]["kernel.lengthscale"] = Tensor(np.array([3.0, 2.0, 1.0], "<f4"))
        self.refused(public, "axis 0 of kernel.lengthscale has 3 elements; 1 are expected")

    def import_lengthscales(self, local, model):
        ours = self.config("ours", model + ", n_components: 2, lengthscale: 25, train_lengthscale: true")
        theirs = self.config("theirs", model)
        self.fathom("preprocess", "-c", ours, "--force")
        self.fathom("train", "-c", ours, "--force")
        before = tensors(self.folder / "out/ours/model.safetensors")
        public = as_public(before, True, local, False)
        apart = (before["log_ell"].astype(float) + [0.0, 0.25]).astype("<f4")  # four steps keep them close
        public["prior_state_dict"]["kernel.lengthscale"] = Tensor(np.exp(apart.astype(float)).astype("<f4"))
        save(self.folder / "model.pth", public)
        said = self.fathom("train", "-c", theirs, "--force", "--import", str(self.folder / "model.pth"))
        self.assertIn("train_lengthscale is 1 in the file", said)
        after = tensors(self.folder / "out/theirs/model.safetensors")
        np.testing.assert_allclose(after["log_ell"], apart, rtol=1e-6)
        self.assertAlmostEqual(float(after[""]["lengthscale"]), math.exp(apart.astype(float).mean()), places=3)
        self.fathom("analyze", "-c", theirs)
        public["prior_state_dict"]["kernel.lengthscale"] = Tensor(np.exp(before["log_ell"].astype(float)).astype("<f4"))
        save(self.folder / "model.pth", public)
        self.fathom("train", "-c", theirs, "--force", "--import", str(self.folder / "model.pth"))
        for name in ("ours", "theirs"):
            self.fathom("analyze", "-c", str(self.folder / f"{name}.yaml"), "--force")
        a, b = (np.load(self.folder / "out" / run / "factors.npy") for run in ("ours", "theirs"))
        np.testing.assert_allclose(a, b, rtol=1e-5)
        return public

    def refused(self, value, about, root=None, model=""):
        config = self.config("x", "spatial: true, num_inducing: 20" + model)
        if not (self.folder / "out").exists():
            self.fathom("preprocess", "-c", config)
        path = self.folder / "bad.pth"
        if isinstance(value, bytes):
            with zipfile.ZipFile(path, "w") as z:
                z.writestr("bad/data.pkl", value)
        else:
            save(path, value, root)
        done = subprocess.run([PROGRAM, "spatial", "train", "-c", config, "--import", str(path)],
                              capture_output=True, text=True)
        self.assertNotIn(done.returncode, (0, -6, -11), done.stderr)
        self.assertIn(about, done.stdout + done.stderr)
        self.assertFalse((self.folder / "out/x/model.safetensors").exists())

    def test_what_cannot_be_read_is_refused_by_name(self):
        self.refused({"a": os.system}, "posix.system, which is not read")
        self.refused({"a": complex(1, 2)}, "builtin")
        self.refused({"a": 1}, "neither mean nor Lu")
        self.refused({"a": 1}, "no data.pkl", root="elsewhere")
        self.refused({"mean": Tensor(np.zeros((2, 144), "<f4"))}, "is a model pnmf, but the config is of svgp")
        wrong = {"components": Tensor(np.zeros((2, 12), "<f4")), "Lu._raw": Tensor(np.zeros((2, 5, 5), "<f4")),
                 "Z": Tensor(np.zeros((5, 2), "<f4")), "mu": Tensor(np.zeros((2, 4), "<f4"))}
        for newer in ("likelihood: nb", "size_factors: total", "nonspatial_components: 2"):
            self.refused(wrong, "models of the public project have no nonspatial_components", model=", " + newer)
        self.refused(wrong, "axis 1 of mu has 4 elements; 5 are expected")
        wrong["mu"] = Tensor(np.full((2, 5), np.nan, "<f4"))
        self.refused(wrong, "mu has a number that is not finite")
        outside = Tensor(np.zeros((2, 5), "<f4"))
        outside.stride = (1000, 1)
        self.refused(dict(wrong, mu=outside), "mu is not a tensor that lies inside its storage")
        self.refused(b"\x80\x02", "it ends inside a value")
        self.refused(b"\x80\x05.", "protocol 5")
        self.refused(b"\x80\x02t.", "a mark is missing")
        self.refused(b"\x80\x02h\x05.", "was not remembered")
        self.refused(b"\x80\x02i", "opcode 0x69")

    def test_every_cut_and_every_changed_byte_is_survived(self):
        """In process would be faster; the fuzz target does the bulk."""
        text = io.BytesIO()
        Writer(text).dump({"mean": Tensor(np.zeros((2, 3), "<f4")), "b": [1, 2.5, True]})
        whole = text.getvalue()
        config = self.config("x", "spatial: false")
        self.fathom("preprocess", "-c", config)
        for cut in range(0, len(whole), 9):
            with zipfile.ZipFile(self.folder / "cut.pth", "w") as z:
                z.writestr("cut/data.pkl", whole[:cut])
            done = subprocess.run([PROGRAM, "spatial", "train", "-c", config, "--import",
                                   str(self.folder / "cut.pth")], capture_output=True)
            self.assertGreater(done.returncode, 0, (cut, done.stderr))


if __name__ == "__main__":
    unittest.main()
