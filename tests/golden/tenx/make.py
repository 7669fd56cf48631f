"""Output folders of 10x Genomics, of the structure that the vendor documents, with made-up numbers.

    /usr/bin/python3 tests/golden/tenx/make.py

Cell i has the counts (i * (g + 1) + i) % 4 of gene g and lies at (10 i + 0.5, 7 (i % 5)). Tables of positions have their rows in
another order, and rows of no cell. Parquet is written here, plain and not packed: a page and a dictionary are tests/golden/io's."""
import gzip
import json
import pathlib
import struct

import h5py
import numpy as np

HERE = pathlib.Path(__file__).parent
N, D = 12, 6
INSIDE = [i not in (3, 7) for i in range(N)]
CONTROLS = ["Negative Control Probe", "Unassigned Codeword"]


def counts(n, features):
    return np.array([[(i * (g + 1) + i) % 4 for g in range(features)] for i in range(n)], "i4")


def barcodes(kind, n):
    return [{"visium_hd": f"s_008um_{i:05d}_{i % 3:05d}-1", "visium": f"ACGT{i:04d}-1", "xenium": f"aaaabbb{i:x}-1"}[kind]
            for i in range(n)]


def names(kind, n):
    genes = [f"Gene{g}" for g in range(n)]
    types = ["Gene Expression"] * n
    if kind == "xenium":
        genes[-2:], types[-2:] = ["NegControlProbe_0", "UnassignedCodeword_1"], CONTROLS
    return genes, types


def positions(n):
    return np.array([[10 * i + 0.5, 7.0 * (i % 5)] for i in range(n)])


# ---- Parquet ----

def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def thrift(fields):
    """A struct of (id, value): int is i32, a pair ("i64", n) is i64, bytes, a list of structs or of ints, a struct is bytes in a tuple."""
    out, last = b"", 0
    for key, v in fields:
        kind = 5 if isinstance(v, int) else 8 if isinstance(v, bytes) else 9 if isinstance(v, list) else 6 if v[0] == "i64" else 12
        out += bytes([(key - last) << 4 | kind])
        last = key
        zigzag = lambda n: varint(n << 1 if n >= 0 else (-n << 1) - 1)
        if kind == 5:
            out += zigzag(v)
        elif kind == 6:
            out += zigzag(v[1])
        elif kind == 8:
            out += varint(len(v)) + v
        elif kind == 12:
            out += v[0]
        else:
            element = 5 if v and isinstance(v[0], int) else 8 if v and isinstance(v[0], str) else 12
            out += bytes([(len(v) if len(v) < 15 else 15) << 4 | element]) + (varint(len(v)) if len(v) > 14 else b"")
            out += b"".join(zigzag(e) if element == 5 else varint(len(e)) + e.encode() if element == 8 else e for e in v)
    return out + b"\0"


def parquet(path, columns, rows_of_group=5, rows_of_page=None):
    """Columns by name: lists of int (INT64), float (DOUBLE), str or bytes (BYTE_ARRAY). A column of rows_of_page has several pages in a group."""
    n = len(next(iter(columns.values())))
    kind = {k: {int: 2, float: 5, str: 6, bytes: 6}[type(v[0])] for k, v in columns.items()}
    data, groups = b"PAR1", []
    for first in range(0, n, rows_of_group):
        chunks, rows = [], min(rows_of_group, n - first)
        for name, values in columns.items():
            part = [v.encode() if isinstance(v, str) else v for v in values[first:first + rows]]
            each, pages = (rows_of_page or {}).get(name, rows), b""
            for page in (part[k:k + each] for k in range(0, rows, each)):
                plain = b"".join(struct.pack("<q", v) if kind[name] == 2 else struct.pack("<d", v) if kind[name] == 5 else
                                 struct.pack("<i", len(v)) + v for v in page)
                pages += thrift([(1, 0), (2, len(plain)), (3, len(plain)), (5, (thrift([(1, len(page)), (2, 0), (3, 3), (4, 3)]),))]) + plain
            meta = thrift([(1, kind[name]), (2, [0]), (3, [name]), (4, 0), (5, ("i64", rows)),
                           (6, ("i64", len(pages))), (7, ("i64", len(pages))), (9, ("i64", len(data)))])
            chunks.append(thrift([(2, ("i64", len(data))), (3, (meta,))]))
            data += pages
        groups.append(thrift([(1, chunks), (2, ("i64", 0)), (3, ("i64", rows))]))
    schema = [thrift([(4, b"schema"), (5, len(columns))])]
    schema += [thrift([(1, kind[k]), (3, 0), (4, k.encode())]) for k in columns]
    footer = thrift([(1, 1), (2, schema), (3, ("i64", n)), (4, groups)])
    pathlib.Path(path).write_bytes(data + footer + struct.pack("<i", len(footer)) + b"PAR1")


def csv(path, columns, header=True):
    lines = [",".join(columns)] if header else []
    lines += [",".join(str(v) for v in row) for row in zip(*columns.values())]
    text = ("\n".join(lines) + "\n").encode()
    pathlib.Path(path).write_bytes(gzip.compress(text, mtime=0) if str(path).endswith(".gz") else text)


# ---- folders ----

def put(group, name, data, **how):
    group.create_dataset(name, data=data, track_times=False, **how)


def h5(path, kind, n, features):
    y = counts(n, features)
    genes, types = names(kind, features)
    with h5py.File(path, "w") as f:
        m = f.create_group("matrix")
        put(m, "barcodes", np.array(barcodes(kind, n), "S"))
        put(m, "data", y[y != 0])
        put(m, "indices", np.nonzero(y)[1].astype("<i8"))
        put(m, "indptr", np.concatenate([[0], np.cumsum((y != 0).sum(1))]).astype("<i8"))
        put(m, "shape", np.array([features, n], "<i4"))
        g = m.create_group("features")
        put(g, "name", np.array(genes, "S"))
        put(g, "feature_type", np.array(types, "S"))


def mtx(path, kind, n, features, packed=True):
    y, (genes, types) = counts(n, features), names(kind, features)
    entries = [f"{g + 1} {i + 1} {y[i, g]}" for i in range(n) for g in range(features) if y[i, g]]
    path.mkdir(parents=True, exist_ok=True)
    for name, lines in {
            "matrix.mtx": ["%%MatrixMarket matrix coordinate integer general", "%metadata_json: {}",
                           f"{features} {n} {len(entries)}", *entries],
            "features.tsv": [f"ENSG{g}\t{genes[g]}\t{types[g]}" for g in range(features)],
            "barcodes.tsv": barcodes(kind, n)}.items():
        text = ("\n".join(lines) + "\n").encode()
        (path / (name + (".gz" if packed else ""))).write_bytes(gzip.compress(text, mtime=0) if packed else text)


def table(kind, n, inside=INSIDE):
    """Columns of the table of positions, rows from the last to the first, one of no cell in front."""
    at, cells = positions(n), barcodes(kind, n)
    order = list(range(n))[::-1]
    if kind == "xenium":
        return {"cell_id": ["zzzzzzzz-1"] + [cells[i] for i in order],
                "x_centroid": [1.5] + [float(at[i, 0]) for i in order],
                "y_centroid": [2.5] + [float(at[i, 1]) for i in order],
                "transcript_counts": [0] + order}
    return {"barcode": ["none-1"] + [cells[i] for i in order],
            "in_tissue": [0] + [int(inside[i % len(inside)]) for i in order],
            "array_row": [0] + order,
            "array_col": [0] + order,
            "pxl_row_in_fullres": [1.0] + [float(at[i, 1]) for i in order],
            "pxl_col_in_fullres": [2.0] + [float(at[i, 0]) for i in order]}


def folder(path, kind, n=N, features=None, text=False, ending=None, inside=INSIDE):
    """A whole folder; `text`: counts as matrix.mtx.gz; `ending` of the table: parquet, csv, csv.gz, list.csv."""
    path = pathlib.Path(path)
    features = features or (D + 2 if kind == "xenium" else D)
    ending = ending or ("csv" if kind == "visium" else "parquet")
    (path / "spatial").mkdir(parents=True, exist_ok=True)
    stem = "cell_feature_matrix" if kind == "xenium" else "filtered_feature_bc_matrix"
    if text:
        mtx(path / stem, kind, n, features)
    else:
        h5(path / f"{stem}.h5", kind, n, features)
    columns = table(kind, n, inside)
    where = path / ("cells" if kind == "xenium" else "spatial/tissue_positions")
    if ending == "parquet":
        parquet(f"{where}.parquet", columns)
    elif ending == "list.csv":
        csv(f"{where}_list.csv", columns, header=False)
    else:
        csv(f"{where}.{ending}", columns)
    if kind == "xenium":
        (path / "spatial").rmdir()
    else:
        scale = {"spot_diameter_fullres": 12.5, "tissue_hires_scalef": 0.1}
        if kind == "visium_hd":
            scale |= {"bin_size_um": 8.0, "microns_per_pixel": 0.25}
        (path / "spatial" / "scalefactors_json.json").write_text(json.dumps(scale))


if __name__ == "__main__":
    folder(HERE / "visium_hd", "visium_hd")
    folder(HERE / "visium", "visium", ending="list.csv")
    folder(HERE / "xenium", "xenium", text=True)
