"""Write packed.h5, datasets of one formula through filters that libhdf5 lacks, and zstd.h5ad, a whole file as anndata packs it.

Element i of a dataset, counted in row-major order, is (i * 7 + 3) % 251; of "strings" it is the text "s<i>"; of "truth" whether
that number is odd. Needs h5py, hdf5plugin and anndata, see README.md.
"""
import pathlib

import anndata
import h5py
import hdf5plugin
import numpy as np
import pandas as pd
import scipy.sparse

HERE = pathlib.Path(__file__).resolve().parent
N, D = 12, 6  # the values of make.py
I, G = np.meshgrid(np.arange(N), np.arange(D), indexing="ij")
Y = (I * 7 + G * 3) % 5
Y = np.where(Y > 1, Y, 0)
XY = np.stack([10.0 * np.arange(N), 3.0 * (np.arange(N) % 4)], 1)
CODES = np.where(np.arange(N) == 5, -1, np.arange(N) % 3).astype("i1")
NAMES = ["b", "a", "c", "d"]
GENES = ["g0", "mt-g1", "g0", "MT-g3", "g0-1", "g5"]
PACKINGS = {
    "zstd": hdf5plugin.Zstd(clevel=3), "blosc_lz4": hdf5plugin.Blosc(cname="lz4"), "blosc_zstd_bits": hdf5plugin.Blosc(
        cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE), "blosc_zlib": hdf5plugin.Blosc(cname="zlib"),
    "blosc_blosclz": hdf5plugin.Blosc(cname="blosclz", shuffle=hdf5plugin.Blosc.NOSHUFFLE), "lz4": hdf5plugin.LZ4(),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="lz4"),
}


def values(shape, dtype):
    return ((np.arange(int(np.prod(shape))) * 7 + 3) % 251).reshape(shape).astype(dtype)


def packed(path):
    with h5py.File(path, "w", libver=("v110", "v110")) as f:
        for name, packing in PACKINGS.items():
            for dtype in ("u1", "<i4", ">i4", "<f8", ">f4"):
                kind = {"u1": "u8", "<i4": "i32", ">i4": "big_i32", "<f8": "f64", ">f4": "big_f32"}[dtype]
                f.create_dataset(f"{name}/{kind}", data=values((7, 11), dtype), chunks=(3, 4), track_times=False, **packing)
            f.create_dataset(f"{name}/line", data=values(100, "<i8"), chunks=(32,), track_times=False, **packing)
        for name in ("zstd", "lz4"):
            f.create_dataset(f"{name}/shuffled", data=values((7, 11), "<f4"), chunks=(3, 4), shuffle=True, track_times=False,
                             **PACKINGS[name])
        zstd = PACKINGS["zstd"]
        f.create_dataset("zstd/truth", data=values((20,), "i4") % 2 == 1, chunks=(8,), track_times=False, **zstd)
        f.create_dataset("zstd/sum", data=values((7, 11), "<i4"), chunks=(3, 4), fletcher32=True, track_times=False, **zstd)
        texts = np.array([f"s{i}" for i in range(20)], object)
        # hdf5plugin 7.1.0 crashes when Blosc packs strings
        f.create_dataset("zstd/strings", data=texts, dtype=h5py.string_dtype(), chunks=(8,), track_times=False, **zstd)
        # the frame of a chunk of 640 bytes states its size in another way than a smaller one
        f.create_dataset("zstd/names", data=np.array([f"s{i}" for i in range(40)], object), dtype=h5py.string_dtype(), chunks=(40,),
                         track_times=False, **zstd)
        # a chunk of which only some were written; one stored without its filter
        holes = f.create_dataset("zstd/holes", shape=(12,), dtype="<i4", chunks=(4,), fillvalue=-7, track_times=False, **zstd)
        holes[4:8] = values((12,), "i4")[4:8]
        plain = f.create_dataset("zstd/mask", shape=(8,), dtype="<i4", chunks=(4,), track_times=False, **zstd)
        plain[4:] = values((8,), "i4")[4:]
        plain.id.write_direct_chunk((0,), values((8,), "<i4")[:4].tobytes(), filter_mask=1)
        f.create_dataset("zstd/bad", data=values((8,), "<i4"), chunks=(4,), track_times=False, **zstd)
        f["zstd/bad"].id.write_direct_chunk((4,), b"no frame of Zstandard", filter_mask=0)


def whole(path):
    obs = pd.DataFrame({"type": pd.Categorical.from_codes(CODES, NAMES), "word": [f"w{i % 2}" for i in range(N)],
                        "good": np.arange(N) % 3 == 0}, index=[f"cell{i}" for i in range(N)])
    a = anndata.AnnData(scipy.sparse.csr_matrix(Y.astype("f4")), obs=obs, var=pd.DataFrame(index=GENES), obsm={"spatial": XY},
                        layers={"dense": Y.astype("i4")})
    a.write_h5ad(path, compression=hdf5plugin.FILTERS["zstd"])


if __name__ == "__main__":
    packed(HERE / "packed.h5")
    whole(HERE / "zstd.h5ad")
