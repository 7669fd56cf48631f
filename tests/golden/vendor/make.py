"""Output folders of MERSCOPE and CosMx, and shapes of SpatialData, of the structure that the vendors document, with made-up numbers.

    /usr/bin/python3 tests/golden/vendor/make.py

Cell i has the counts (i * (g + 1) + i) % 4 of gene g, with 10 and more for some, and lies at (10 i + 0.5, 7 (i % 5)). The table of cells has
its rows in another order, and a row of no cell; CosMx has a row of counts outside of cells for each field of view."""
import gzip
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tenx"))
from make import parquet  # noqa: E402

N, D = 12, 6
TYPES = ["Neuron", "Glia", "", "Neuron"]


def counts(n, features):
    y = np.array([[(i * (g + 1) + i) % 4 for g in range(features)] for i in range(n)], "i8")
    y[1::5] *= 12
    return y


def positions(n):
    return np.array([[10 * i + 0.5, 7.0 * (i % 5)] for i in range(n)])


def genes(kind, n):
    names = [f"Gene{g}" for g in range(n)]
    names[-2:] = ["Blank-1", "Blank-22"] if kind == "merscope" else ["NegPrb3", "SystemControl41"]
    return names


def cells(kind, n):
    """Names of the cells as they come out: EntityID, or cell_fov."""
    return [str(10 ** 17 + 7 * i) for i in range(n)] if kind == "merscope" else [f"{i // 3 + 1}_{i % 3 + 1}" for i in range(n)]


def write(path, lines):
    text = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def order(n):
    return list(range(n))[::-1]


def folder(path, kind, n=N, features=D, ending="csv", header="cell", prefix="", gz=False, quoted=False):
    """`ending` is that of the table of cells, `header` the name of the first column of the counts of MERSCOPE."""
    path.mkdir(parents=True, exist_ok=True)
    y, xy, names, ids, gz = counts(n, features), positions(n), genes(kind, features), cells(kind, n), ".gz" if gz else ""
    quote = (lambda s: f'"{s}"') if quoted else str
    kinds = [TYPES[i % 4] for i in range(n)]
    if kind == "merscope":
        write(path / f"{prefix}cell_by_gene.csv{gz}", [",".join([header, *map(quote, names)])] +
              [",".join([ids[i], *map(str, y[i])]) for i in range(n)])
        columns = {"EntityID": [], "fov": [], "volume": [], "center_x": [], "center_y": [], "type": []}
        for i in order(n) + [None]:
            row = (7, 0, 1.5, 1.0, 2.0, "Glia") if i is None else (int(ids[i]), i // 4, 100.5 + i, *map(float, xy[i]), kinds[i])
            for column, v in zip(columns.values(), row):
                column.append(v)
        if ending == "parquet":
            parquet(path / f"{prefix}cell_metadata.parquet", columns)
        else:  # older versions leave the name of the first column out
            head = [header if header != "cell" else "EntityID", *list(columns)[1:]]
            write(path / f"{prefix}cell_metadata.{ending}", [",".join(head)] + [",".join(map(str, r)) for r in zip(*columns.values())])
        return
    prefix = prefix or "Slide1_"
    rows = []
    for fov in (1, 2, 3):
        rows.append([fov, 0] + [9] * features)  # outside of cells
        rows += [[fov, i // 3 + 1, *y[i]] for i in range(n) if i % 3 + 1 == fov]
    write(path / f"{prefix}exprMat_file.csv{gz}", [",".join(map(quote, ["fov", "cell_ID", *names]))] + [",".join(map(str, r)) for r in rows])
    head = ["fov", "cell_ID", "Area", "CenterX_local_px", "CenterY_local_px", "CenterX_global_px", "CenterY_global_px", "type"]
    rows = [[i % 3 + 1, i // 3 + 1, 50 + i, i, i, *xy[i], quote(kinds[i])] for i in order(n)] + [[9, 1, 3, 1, 1, 5.5, 6.5, "Glia"]]
    write(path / f"{prefix}metadata_file.csv{gz}", [",".join(map(quote, head))] + [",".join(map(str, r)) for r in rows])


def rows(kind, n):
    """Which cell each row of the counts that is one has."""
    return list(range(n)) if kind == "merscope" else [i for fov in range(3) for i in range(n) if i % 3 == fov]


# ---- shapes of the cells of tests/golden/h5ad/store.zarr ----

def point(x, y, order="<", z=False):
    """A point in WKB; with z as EWKB writes it, behind its reference system."""
    head = struct.pack(order + "BI", order == "<", 1 | (0xA0000000 if z else 0)) + (struct.pack(order + "I", 4326) if z else b"")
    return head + struct.pack(order + "2d", x, y) + (struct.pack(order + "d", 9.0) if z else b"")


def polygon(rings, order="<"):
    return struct.pack(order + "BII", order == "<", 3, len(rings)) + b"".join(
        struct.pack(order + "I", len(ring)) + b"".join(struct.pack(order + "2d", *p) for p in ring) for ring in rings)


def box(x, y, a, b):
    return [(x, y), (x + a, y), (x + a, y + b), (x, y + b), (x, y)]


def several(polygons):
    return struct.pack("<BII", 1, 6, len(polygons)) + b"".join(polygons)


def outline(i):
    """Four ways to draw a cell whose centroid is (10 i, 3 (i % 4))."""
    x, y = 10.0 * i, 3.0 * (i % 4)
    return [polygon([box(x - 2, y - 1, 4, 2)]), polygon([box(x - 1.75, y - 2, 4, 4)[::-1], box(x, y - 1, 2, 2)], ">"),
            several([polygon([box(x - 4, y - 1, 2, 2)]), polygon([box(x + 2, y - 1, 2, 2)])]),
            polygon([[(x - 1, y), (x + 1, y), (x - 1, y)]])][i % 4]


def shapes(path):
    """Cells 0 to 5 are circles of the region left, in another order; the others outlines of right, beside one of no cell and
    one whose id a cell of the other region has."""
    for name in ("left", "right"):
        (path / name).mkdir(parents=True, exist_ok=True)
    at = [3, 0, 5, 1, 4, 2]
    parquet(path / "left/shapes.parquet", {"geometry": [point(10.0 * i, 3.0 * (i % 4), "><"[i % 2], i == 5) for i in at],
                                           "radius": [2.5] * 6, "__index_level_0__": at})
    at = [11, 9, 7, 77, 10, 8, 6]
    parquet(path / "right/shapes.parquet", {"geometry": [outline(i) for i in at] + [outline(78)], "cell_id": [str(i) for i in at] + ["2"]},
            rows_of_page={"geometry": 2})


if __name__ == "__main__":
    shapes(HERE / "shapes")
    folder(HERE / "merscope", "merscope", ending="parquet")
    folder(HERE / "cosmx", "cosmx", gz=True)
