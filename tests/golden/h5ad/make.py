"""Write small h5ad files of every layout that the reader knows, with h5py alone.

Cell i and gene g have the count ((i * 7 + g * 3) % 5) where that is above 1, else 0; cell i is at
(10 i, 3 (i % 4)), its type is number i % 3 of b, a, c (d is there and never used), and missing
for cell 5.
"""
import pathlib

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
N, D = 12, 6
I, G = np.meshgrid(np.arange(N), np.arange(D), indexing="ij")
Y = (I * 7 + G * 3) % 5
Y = np.where(Y > 1, Y, 0)
XY = np.stack([10.0 * np.arange(N), 3.0 * (np.arange(N) % 4)], 1)
CODES = np.where(np.arange(N) == 5, -1, np.arange(N) % 3).astype("i1")
NAMES = ["b", "a", "c", "d"]
GENES = ["g0", "mt-g1", "g0", "MT-g3", "g0-1", "g5"]
TEXT = h5py.string_dtype()


def put(group, name, data, **kw):
    return group.create_dataset(name, data=data, track_times=False, **kw)


def texts(group, name, values, encoded=True):
    d = put(group, name, np.array(values, object), dtype=TEXT)
    if encoded:
        d.attrs["encoding-type"], d.attrs["encoding-version"] = "string-array", "0.2.0"
    return d


def sparse(group, name, m, columns, index="<i4", **kw):
    g = group.create_group(name)
    g.attrs["encoding-type"] = "csc_matrix" if columns else "csr_matrix"
    g.attrs["encoding-version"] = "0.1.0"
    g.attrs["shape"] = np.array(m.shape)
    a = m.T if columns else m
    put(g, "data", a[a != 0].astype(kw.pop("dtype", "<f4")), **kw)
    put(g, "indices", np.nonzero(a)[1].astype(index), **kw)
    put(g, "indptr", np.concatenate([[0], np.cumsum((a != 0).sum(1))]).astype(index), **kw)


def frame(f, name, index, columns=(), key="_index"):
    g = f.create_group(name)
    g.attrs["encoding-type"], g.attrs["encoding-version"] = "dataframe", "0.2.0"
    g.attrs["_index"] = key
    g.attrs["column-order"] = np.array(columns, object) if columns else np.array([], "f8")
    texts(g, key, index)
    return g


def categorical(g, name):
    c = g.create_group(name)
    c.attrs["encoding-type"], c.attrs["encoding-version"] = "categorical", "0.2.0"
    c.attrs["ordered"] = False
    put(c, "codes", CODES)
    texts(c, "categories", NAMES)


def start(name, columns=("type",)):
    f = h5py.File(HERE / name, "w")
    f.attrs["encoding-type"], f.attrs["encoding-version"] = "anndata", "0.1.0"
    obs = frame(f, "obs", [f"cell{i}" for i in range(N)], list(columns), "barcode")
    categorical(obs, "type")
    frame(f, "var", GENES)
    f.create_group("obsm"), f.create_group("layers")
    return f, obs


def new_files():
    f, obs = start("csc.h5ad", ["type", "word", "number", "truth", "real", "maybe", "x", "y"])
    sparse(f, "X", Y, True, compression="gzip", chunks=(5,), shuffle=True, fletcher32=True)
    sparse(f["layers"], "wide", Y, True, "<i8", dtype="<i8")
    sparse(f["layers"], "rows", Y, False, "<i8", dtype="<f8", compression="lzf")
    put(f["layers"], "dense", Y.astype("<u2"), chunks=(5, 4), compression="gzip")
    put(f["layers"], "doubles", (Y / 1.0).astype("<f8"))
    put(f["obsm"], "spatial", XY, chunks=(5, 1))
    raw = f.create_group("raw")
    frame(raw, "var", [f"r{g}" for g in range(D + 2)])
    sparse(raw, "X", np.concatenate([Y, Y[:, :2]], 1), False)
    texts(obs, "word", ["zoe" if i % 2 else "\u00e4rger" for i in range(N)])
    put(obs, "number", np.arange(N, dtype="u1") % 11)
    put(obs, "truth", np.arange(N) % 2 == 0)
    put(obs, "real", np.where(np.arange(N) == 3, np.nan, np.arange(N) % 3 / 2))
    maybe = obs.create_group("maybe")
    maybe.attrs["encoding-type"], maybe.attrs["encoding-version"] = "nullable-integer", "0.1.0"
    put(maybe, "values", np.arange(N, dtype="<i8") % 2)
    put(maybe, "mask", np.arange(N) == 7)
    put(obs, "x", XY[:, 0].astype("<f4")), put(obs, "y", XY[:, 1].astype("<i4"))
    at = frame(f["obsm"], "places", [f"k{(i * 5) % N:02d}" for i in range(N)], ["a", "b"])
    put(at, "a", XY[:, 0]), put(at, "b", XY[:, 1])
    put(f["obsm"], "flat", XY[:, 0])
    f.close()


def old_file():
    """As versions before 0.7 wrote it: tables of records, categories in uns or referred to."""
    with h5py.File(HERE / "old.h5ad", "w") as f:
        obs = np.zeros(N, [("index", "S8"), ("type", "i1"), ("size", "<f4")])
        obs["index"], obs["type"] = [f"cell{i}".encode() for i in range(N)], CODES
        obs["size"] = np.arange(N) / 2
        put(f, "obs", obs)
        var = np.zeros(D, [("index", "S8")])
        var["index"] = [g.encode() for g in GENES]
        put(f, "var", var), put(f, "raw.var", var)
        put(f.create_group("uns"), "type_categories", np.array(NAMES, "S4"))
        obsm = np.zeros(N, [("spatial", "<f8", (2,)), ("X_pca", "<f4", (3,))])
        obsm["spatial"] = XY
        put(f, "obsm", obsm)
        put(f, "X", Y.astype("<f4"), chunks=(5, 4), compression="gzip")
        sparse(f, "raw.X", Y, False)
        for k in list(f["raw.X"].attrs):
            del f["raw.X"].attrs[k]
        f["raw.X"].attrs["h5sparse_format"], f["raw.X"].attrs["h5sparse_shape"] = "csr", (N, D)


def middle_file():
    """As 0.7 wrote it: frames are groups, a column of codes refers to its categories."""
    with h5py.File(HERE / "middle.h5ad", "w") as f:
        obs = f.create_group("obs")
        obs.attrs["_index"], obs.attrs["encoding-type"] = "_index", "dataframe"
        texts(obs, "_index", [f"cell{i}" for i in range(N)], False)
        names = texts(obs.create_group("__categories"), "type", NAMES, False)
        put(obs, "type", CODES).attrs["categories"] = names.ref
        var = f.create_group("var")
        var.attrs["_index"] = "_index"
        put(var, "_index", np.array(GENES, "S8"))
        put(f.create_group("obsm"), "spatial", XY.astype("<f4"))
        sparse(f, "X", Y, False, compression="lzf")


def tenx_file():
    """A 10x file: sparse columns of [gene spot]; the table of positions has spots beside, in another order."""
    (HERE / "tenx").mkdir(exist_ok=True)
    with h5py.File(HERE / "tenx" / "filtered_feature_bc_matrix.h5", "w") as f:
        m = f.create_group("matrix")
        put(m, "barcodes", np.array([f"cell{i}-1" for i in range(N)], "S10"))
        put(m, "data", Y[Y != 0].astype("<i4"), chunks=(16,), compression="gzip")
        put(m, "indices", np.nonzero(Y)[1].astype("<i8"))
        put(m, "indptr", np.concatenate([[0], np.cumsum((Y != 0).sum(1))]).astype("<i8"))
        put(m, "shape", np.array([D, N], "<i4"))
        put(m.create_group("features"), "name", np.array(GENES, "S8"))
    rows = [f"cell{i}-1,1,{i},{i},{int(3 * (i % 4))},{10 * i}" for i in reversed(range(N))]
    rows.insert(3, "none-1,0,0,0,7,7")
    (HERE / "tenx" / "tissue_positions_list.csv").write_text("\n".join(rows) + "\n")


new_files()
tenx_file()
old_file()
middle_file()
