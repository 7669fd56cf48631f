"""Make the images and plates of this folder with ome-zarr-py (0.18), from nothing but their shapes.

    python3 make_ngff.py [FOLDER]

Pixel i of an image, counted in row-major order of its own axes, is (7919 i + 13 + 1000 k) mod 65521, k the number of
the field in its plate.
"""
import pathlib
import sys

import numpy as np
import zarr
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.writer import write_multiscale, write_plate_metadata, write_well_metadata

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent
SPACE = {"z": 2.5, "y": 0.65, "x": 0.65, "c": 1.0, "t": 30.0}
KIND = {"t": ("time", "second"), "c": ("channel", None), "z": ("space", "micrometer"), "y": ("space", "micrometer"), "x": ("space", "micrometer")}


def data(shape, k=0):
    return ((np.arange(int(np.prod(shape)), dtype=np.int64) * 7919 + 13 + 1000 * k) % 65521).reshape(shape).astype("uint16")


def axes(names):
    return [{"name": n, "type": KIND[n][0], **({"unit": KIND[n][1]} if KIND[n][1] else {})} for n in names]


def put(group, names, shape, fmt, k=0, **more):
    write_multiscale([data(shape, k)], group, axes=axes(names), fmt=fmt,
                     coordinate_transformations=[[{"type": "scale", "scale": [SPACE[n] for n in names]}]], **more)


def root(name, fmt):
    return zarr.open_group(str(HERE / name), mode="w", zarr_format=fmt.zarr_format)


V4, V5 = FormatV04(), FormatV05()
g = root("ngff04_tczyx", V4)
put(g, "tczyx", (2, 2, 3, 4, 5), V4, metadata={"omero": {"channels": [{"label": n, "color": "FFFFFF", "window": {"start": 0, "end": 1, "min": 0, "max": 1}, "active": True} for n in ("BF", "GFP")]}})
put(root("ngff05_zyx", V5), "zyx", (3, 4, 5), V5)
for name, fmt, fields in (("plate04", V4, 2), ("plate05", V5, 1)):
    g = root(name, fmt)
    write_plate_metadata(g, ["A", "B"], ["1", "12"], ["A/1", "B/12"], field_count=fields, fmt=fmt)
    k = 0
    for row, col in (("A", "1"), ("B", "12")):
        well = g.require_group(row).require_group(col)
        write_well_metadata(well, [str(f) for f in range(fields)], fmt=fmt)
        for f in range(fields):
            put(well.require_group(str(f)), "tyx", (2, 4, 5), fmt, k)
            k += 1
