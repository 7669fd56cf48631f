"""Write the files of this folder with NumPy, zipfile and struct alone.

Element k in row-major order is k for integers, k % 3 == 0 for bool, k/2 - 3
for real numbers and (k/2 - 3) - k j for complex ones.
"""
import json
import pathlib
import pickle
import struct
import zipfile

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def values(dtype, shape):
    k = np.arange(int(np.prod(shape)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        v = k % 3 == 0
    elif kind in "iu":
        v = k
    elif kind == "f":
        v = k / 2 - 3
    else:
        v = (k / 2 - 3) - 1j * k
    return v.astype(dtype).reshape(shape)


def npy():
    for name in ("b1", "u1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
        order = "|" if name in ("b1", "u1") else "<"
        np.save(HERE / f"c_{name}.npy", values(order + name, (3, 4)))
    for name in ("u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
        np.save(HERE / f"big_{name}.npy", values(">" + name, (3, 4)))
    np.save(HERE / "fortran_f4.npy", np.asfortranarray(values("<f4", (3, 4, 5))))
    np.save(HERE / "fortran_big_c8.npy", np.asfortranarray(values(">c8", (2, 3, 4))))
    np.save(HERE / "scalar_f8.npy", values("<f8", ()))
    np.save(HERE / "empty_f4.npy", values("<f4", (0, 3)))
    np.save(HERE / "vector_i8.npy", values("<i8", (7,)))
    for version in (2, 3):
        with open(HERE / f"version{version}_f4.npy", "wb") as f:
            np.lib.format.write_array(f, values("<f4", (3, 4)), version=(version, 0))
    for name in ("i1", "i2", "u4", "u8"):  # read as i32 and i64
        np.save(HERE / f"wide_{name}.npy", values("<" + name, (3, 4)))
        np.save(HERE / f"wide_big_{name}.npy", values(">" + name, (3, 4)))
    np.save(HERE / "wide_fortran_u4.npy", np.asfortranarray(values("<u4", (3, 4, 5))))
    np.save(HERE / "refused_f16.npy", np.zeros(2, "longdouble"))
    np.save(HERE / "refused_text.npy", np.array(["ab", "c"]))
    np.save(HERE / "refused_record.npy", np.zeros(2, [("x", "f4"), ("y", "f4")]))
    np.save(HERE / "refused_void.npy", np.zeros(2, "V2"))


class Unseekable:
    """A file like a pipe: sizes and checksums then follow each member."""

    def __init__(self, file):
        self.write, self.flush = file.write, file.flush

    def read(self):
        raise OSError("this file is only written")


def npz():
    arrays = {"coords": values("<f8", (5, 2)), "images": values("<u2", (4, 6, 6)), "scale": values("<f4", ())}
    np.savez(HERE / "stored.npz", **arrays)
    np.savez_compressed(HERE / "deflated.npz", **arrays)
    with zipfile.ZipFile(HERE / "refused_bzip2.npz", "w", zipfile.ZIP_BZIP2) as z:
        with z.open("a.npy", "w") as f:
            np.lib.format.write_array(f, values("<f4", (3, 4)))
    with open(HERE / "descriptor.npz", "wb") as f:
        np.savez_compressed(Unseekable(f), **arrays)
    edges = {"i1": [-128, 127], "i2": [-32768, 32767], "u4": [0, 2**32 - 1], "u8": [0, 2**63 - 1], "over": [1, 2**63]}
    np.savez(HERE / "edges.npz", **{k: np.array(v, "u8" if k == "over" else k) for k, v in edges.items()})
    metadata = json.dumps({"physics_parameters": {"nphotons": 1e5, "what": "X \u03bb" * 60}}, ensure_ascii=False)
    texts = {"bytes": np.array(b"csr"), "plain": np.array("\u03bb/2 \U0001f52c"), "list": np.array(["ab", "", "cde"]),
             "big": np.array("swap").astype(">U4"), "object": np.array(metadata, dtype=object),
             "short": np.array('{"a": 1}', dtype=object), "number": np.array(3.0)}
    np.savez(HERE / "texts.npz", **texts)
    with zipfile.ZipFile(HERE / "texts.npz", "a") as z:  # NumPy pickles with protocol 3, later ones have short texts
        head = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"
        head += b" " * ((-len(head) - 11) % 64) + b"\n"
        payload = pickle.dumps(np.array('{"b": 2}', dtype=object), protocol=4)
        z.writestr(zipfile.ZipInfo("later.npy"), b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + payload)
    # With these limits at zero, zipfile writes every zip64 record there is.
    limits = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = 0, 0
    np.savez(HERE / "zip64.npz", **arrays)
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limits
    # scipy.sparse.save_npz writes exactly these members.
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 3], [0, 0, 4, 0]], "<f4")
    rows = [np.flatnonzero(r) for r in dense]
    for name, index in (("csr_i32.npz", "<i4"), ("csr_i64.npz", "<i8")):
        np.savez_compressed(
            HERE / name, indices=np.concatenate(rows).astype(index),
            indptr=np.cumsum([0] + [len(r) for r in rows]).astype(index), format=np.array(b"csr"),
            shape=np.array(dense.shape), data=np.concatenate([d[r] for d, r in zip(dense, rows)]))


def safetensors():
    tensors = {"weight": ("F32", values("<f4", (3, 4))), "step": ("I64", values("<i8", ())),
               "mask": ("BOOL", values("b1", (5,))), "half": ("F16", values("<f2", (2, 2))),
               "wave": ("C64", values("<c8", (2, 3)))}
    head, data = {"__metadata__": {"made by": "struct and json", "axes.weight": "cell factor"}}, b""
    for name, (dtype, v) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(v.shape), "data_offsets": [len(data), len(data) + v.nbytes]}
        data += v.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    (HERE / "plain.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def records():
    """Records with fields of numbers, lists and strings, and an attribute that refers to them."""
    fields = [("name", "S4"), ("count", "<i8"), ("flag", "?"), ("xyz", "<f4", (3,))]
    with h5py.File(HERE / "records.h5", "w") as f:
        table = np.zeros(5, fields)
        table["name"] = [b"a", b"bb", b"", b"dddd", b"e"]
        table["count"], table["flag"] = values("<i8", (5,)), values("b1", (5,))
        table["xyz"] = values("<f4", (5, 3))
        f.create_dataset("table", data=table, chunks=(2,), compression="gzip", track_times=False)
        words = np.zeros(3, [("word", h5py.string_dtype()), ("n", "u1")])
        words["word"] = ["one", "zwei", "trois"]
        f.create_dataset("g/words", data=words, track_times=False)
        f["g"].attrs["refers"] = f["table"].ref
        f["g"].attrs["number"] = 3


npy()
npz()
safetensors()
records()
