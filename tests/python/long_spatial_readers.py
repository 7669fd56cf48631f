"""The folders of MERSCOPE, CosMx, Visium and Xenium beside squidpy's and scanpy's readers, and SpatialData stores that the package spatialdata
writes, in Zarr 2 and 3, with positions in the table or in shapes alone, and with images whose pixels under the cells are those of spatialdata. The packages are fetched from the package index into a folder of the
build; without an index there is nothing to try. FATHOM_PROGRAM names the program.
seconds: 600"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import h5py
import numpy as np
import packages
from test_pictures import tool as pictures
from test_spatial_vendor import vendor

import make  # of tests/golden/tenx, which test_spatial_vendor puts into the path

PROGRAM = pathlib.Path(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom").absolute()
VENV = PROGRAM.parents[1] / "spatial_readers"
PACKAGES = ["squidpy==1.8.2", "spatialdata==0.7.3", "scanpy==1.11.5"]
N, D = 500, 40

# argv: what to read, its folder, the file to write
READ = """
import sys, warnings
warnings.simplefilter("ignore")
import glob, os
import numpy as np, pandas as pd, scanpy, squidpy
kind, folder, out = sys.argv[1:]
only = lambda part: os.path.basename(glob.glob(f"{folder}/*{part}*")[0])
if kind == "merscope":
    a = squidpy.read.vizgen(folder, counts_file=only("cell_by_gene"), meta_file=only("cell_metadata"))
    xy, labels = a.obsm["spatial"], a.obs["type"]
elif kind == "cosmx":
    a = squidpy.read.nanostring(folder, counts_file=only("exprMat"), meta_file=only("metadata_file"))
    a = a[:, ~a.var_names.str.startswith(("NegPrb", "SystemControl"))]
    xy, labels = a.obsm["spatial_fov"], a.obs["type"]
elif kind == "visium":
    from PIL import Image  # without images it reads no positions
    for size in ("hires", "lowres"):
        Image.new("RGB", (4, 4)).save(f"{folder}/spatial/tissue_{size}_image.png")
    a = squidpy.read.visium(folder, counts_file="filtered_feature_bc_matrix.h5")
    a = a[a.obs["in_tissue"] == 1]
    xy, labels = a.obsm["spatial"], None
else:
    a = scanpy.read_10x_h5(folder + "/cell_feature_matrix.h5")
    cells = pd.read_csv(folder + "/cells.csv.gz", index_col="cell_id").loc[a.obs_names]
    xy, labels = cells[["x_centroid", "y_centroid"]].to_numpy(), None
labels = [] if labels is None else labels.astype(object).where(labels.notna(), "").astype(str).to_numpy()
np.savez(out, y=a.X.toarray() if hasattr(a.X, "toarray") else a.X, xy=np.asarray(xy, "f8"), labels=np.array(labels, "U"),
         cells=np.array(a.obs_names, "U"), genes=np.array(a.var_names, "U"))
"""

# argv: the folder. A store for each format, with a table of positions, of circles and of outlines.
WRITE = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, geopandas, numpy as np, pandas as pd, scipy.sparse, shapely, spatialdata
from spatialdata.models import ShapesModel, TableModel
from spatialdata._io.format import SpatialDataContainerFormatV01, SpatialDataContainerFormatV02
rng = np.random.default_rng(4)
n, d = 120, 9
xy, ids, order = rng.uniform(0, 100, (n, 2)), np.arange(100, 100 + n), rng.permutation(n)
ring = lambda x, y: [(x + r * np.cos(t), y + r * np.sin(t)) for t, r in zip(np.linspace(0, 6.2, 9)[:-1], rng.uniform(1, 3, 8))]
outlines = geopandas.GeoDataFrame(geometry=[shapely.Polygon(ring(x, y)) if i % 3 else
                                            shapely.MultiPolygon([shapely.Polygon(ring(x, y)), shapely.Polygon(ring(x + 9, y))])
                                            for i, (x, y) in enumerate(xy)], index=[f"cell{i}" for i in range(n)])
y = rng.poisson(1.0, (n, d)).astype("f4")
def table(region, instances, form, places=None):
    a = anndata.AnnData(form(y), obs=pd.DataFrame({"region": pd.Categorical([region] * n), "id": instances,
                                                   "type": pd.Categorical(["ab"[i % 2] for i in range(n)])},
                                                  index=[f"row{i}" for i in range(n)]), var=pd.DataFrame(index=[f"g{i}" for i in range(d)]))
    if places is not None:
        a.obsm["spatial"] = places
    return TableModel.parse(a, region=region, region_key="region", instance_key="id")
tables = {"own": table("circles", ids[order], scipy.sparse.csr_matrix, xy), "of_circles": table("circles", ids[order], scipy.sparse.csc_matrix),
          "of_outlines": table("outlines", [f"cell{i}" for i in order], np.asarray)}
centres = np.array([(c.x, c.y) for c in outlines.geometry.centroid])
np.savez(sys.argv[1] + "/truth.npz", y=y, own=xy, of_circles=xy[order], of_outlines=centres[order])
for name, how in (("v2", SpatialDataContainerFormatV01()), ("v3", SpatialDataContainerFormatV02())):
    s = spatialdata.SpatialData(shapes={"circles": ShapesModel.parse(xy, geometry=0, radius=2.0, index=ids),
                                        "outlines": ShapesModel.parse(outlines)}, tables=tables)
    s.write(f"{sys.argv[1]}/{name}.zarr", sdata_formats=how)
"""

# argv: the folder. Stores of a table and images; pixels under the cells as spatialdata finds them, by its own transformations.
IMAGES = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np, pandas as pd, spatialdata
from spatialdata.models import Image2DModel, Labels2DModel, ShapesModel, TableModel
from spatialdata.transformations import Affine, Identity, Scale, Sequence, Translation, get_transformation_between_coordinate_systems
from spatialdata._io.format import SpatialDataContainerFormatV01, SpatialDataContainerFormatV02
rng = np.random.default_rng(4)
n, xy = 200, rng.uniform(20, 80, (200, 2))
angle = 0.3
turn = Affine(np.array([[np.cos(angle), -np.sin(angle), 12.0], [np.sin(angle), np.cos(angle), -40.0], [0, 0, 1]]), input_axes=("x", "y"), output_axes=("x", "y"))
quarter = Affine(np.array([[0, -0.5, 100.0], [0.5, 0, -3.0], [0, 0, 1]]), input_axes=("x", "y"), output_axes=("x", "y"))
places = {"plain": Identity(), "scaled": Scale([0.5, 0.25], axes=("x", "y")), "moved": Sequence([Scale([0.5, 0.5], axes=("x", "y")), Translation([-7.0, 4.0], axes=("x", "y"))]),
          "turned": Sequence([Scale([0.5, 0.5], axes=("x", "y")), turn]), "quarter": quarter}
y, x = np.mgrid[0:400, 0:360]
def wave(h, w, k):
    y, x = np.mgrid[0:h, 0:w]
    return np.stack([127 + 120 * np.sin(x / w * 5 + k), 127 + 120 * np.cos(y / h * 4 - k), 127 + 120 * np.sin((x / w + y / h) * 3)]).astype(np.uint8)
images = {name: Image2DModel.parse(wave(400, 360, k), dims=("c", "y", "x"), c_coords=["r", "g", "b"], transformations={"global": t})
          for k, (name, t) in enumerate(places.items())}
images["large"] = Image2DModel.parse(wave(3300, 5001, 9), dims=("c", "y", "x"), c_coords=["r", "g", "b"], scale_factors=[2, 2],
                                     transformations={"global": Scale([0.04, 0.04], axes=("x", "y"))})
a = anndata.AnnData(rng.poisson(1.0, (n, 5)).astype("f4"), obs=pd.DataFrame({"region": pd.Categorical(["circles"] * n), "id": np.arange(n)}, index=[f"r{i}" for i in range(n)]),
                    obsm={"spatial": xy})
table = TableModel.parse(a, region="circles", region_key="region", instance_key="id")
shapes = ShapesModel.parse(xy, geometry=0, radius=1.0, index=np.arange(n), transformations={"global": Scale([1.2, 1.1], axes=("x", "y"))})
out = {}
for name, how in (("v2", SpatialDataContainerFormatV01()), ("v3", SpatialDataContainerFormatV02())):
    s = spatialdata.SpatialData(images=images, shapes={"circles": shapes}, tables={"table": table})
    s.write(f"{sys.argv[1]}/{name}.zarr", sdata_formats=how)
    s = spatialdata.read_zarr(f"{sys.argv[1]}/{name}.zarr")
    for image in images:
        m = get_transformation_between_coordinate_systems(s, s["circles"], s[image]).to_affine_matrix(("x", "y"), ("x", "y"))
        out[f"{name}_{image}"] = xy @ m[:2, :2].T + m[:2, 2]
np.savez(sys.argv[1] + "/theirs.npz", **out, **{"pixels_" + k: wave(400, 360, i) for i, k in enumerate(places)}, pixels_large=wave(3300, 5001, 9))
"""


class Readers(unittest.TestCase):
    def setUp(self):
        why = packages.fetch(VENV, PACKAGES)
        if why:
            self.skipTest(why)

    def preprocess(self, folder, dataset, **keys):
        config, out = pathlib.Path(folder, "c.json"), pathlib.Path(folder, "out")
        config.write_text(json.dumps({"instrument": "spatial", "name": "x", "dataset": dataset, "output_dir": str(out), "preprocessing": {
            "rescale": False, "min_group_size": 1, **keys}}))
        done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", config, "--force"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = out / "preprocessed"
        meta, z = json.loads((out / "metadata.json").read_text()), np.load(out / "Y.npz")
        y = np.zeros(z["shape"])
        for i in range(len(y)):
            s = slice(z["indptr"][i], z["indptr"][i + 1])
            y[i, z["indices"][s]] = z["data"][s]
        return y, np.load(out / "X.npy"), np.load(out / "C.npy"), meta

    def test_folders_of_vendors(self):
        for kind in ("merscope", "cosmx", "visium", "xenium"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                data = pathlib.Path(folder, "data")
                if kind in ("merscope", "cosmx"):
                    vendor.folder(data, kind, n=N, features=D)
                else:
                    make.folder(data, kind, n=N, features=D, ending="csv.gz" if kind == "xenium" else "csv")
                    with h5py.File(next(data.glob("*.h5")), "r+") as f:  # what these readers ask for beside
                        f.attrs["library_ids"] = np.array(["slide"], "S")
                        for name, value in (("id", "ENSG{}"), ("genome", "mm10")):
                            f["matrix/features"][name] = np.array([value.format(g) for g in range(D)], "S")
                if kind == "visium":  # squidpy reads the size of a pixel, and no picture
                    (data / "spatial/scalefactors_json.json").write_text('{"spot_diameter_fullres": 1.0, "tissue_hires_scalef": 1.0, '
                                                                         '"fiducial_diameter_fullres": 1.0, "tissue_lowres_scalef": 1.0}')
                done = subprocess.run([VENV / "bin/python", "-c", READ, kind, data, f"{folder}/peer.npz"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                peer = np.load(f"{folder}/peer.npz")
                grouped = {"group_column": "type"} if len(peer["labels"]) else {}
                y, xy, code, meta = self.preprocess(folder, kind, path=str(data), **grouped)
                names = list(peer["cells"])
                at = [names.index(c) for c in meta["spot_names"]]
                if grouped:  # cells without a label are dropped
                    self.assertEqual(len(at), sum(peer["labels"] != ""))
                    self.assertEqual([meta["group_names"][c] for c in code], list(peer["labels"][at]))
                else:
                    self.assertEqual(len(at), len(names))
                self.assertEqual(meta["gene_names"], list(peer["genes"]))
                np.testing.assert_array_equal(y, peer["y"][at])
                np.testing.assert_array_equal(xy, peer["xy"][at].astype("f4"))
                print(kind, y.shape, "the same")

    def test_stores_of_spatialdata(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([VENV / "bin/python", "-c", WRITE, folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = np.load(f"{folder}/truth.npz")
            for version in ("v2", "v3"):
                for table in ("own", "of_circles", "of_outlines"):
                    with self.subTest(version=version, table=table):
                        y, xy, code, meta = self.preprocess(folder, "spatialdata", path=f"{folder}/{version}.zarr", table=table,
                                                            group_column="type")
                        np.testing.assert_array_equal(y, truth["y"])
                        np.testing.assert_allclose(xy, truth[table], rtol=1e-6, atol=1e-5)
                        self.assertEqual(meta["group_names"], ["a", "b"])
                        self.assertEqual(list(code[:3]), [0, 1, 0])
                        print(version, table, "largest difference", np.abs(xy - truth[table]).max())

    def test_images_of_spatialdata(self):
        """The colour under each cell, at the pixel where spatialdata has the cell; waves are long, so neighbours differ little."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([VENV / "bin/python", "-c", IMAGES, folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            theirs = np.load(f"{folder}/theirs.npz")
            for version in ("v2", "v3"):
                for image in ("plain", "scaled", "moved", "turned", "quarter", "large"):
                    with self.subTest(version=version, image=image):
                        _, xy, _, meta = self.preprocess(folder, "spatialdata", path=f"{folder}/{version}.zarr", image=image)
                        place, ours = meta["image"], pictures.read_png(pathlib.Path(folder, "out/preprocessed/image.png")).astype(float)
                        at = (xy - place["low"]) / (np.array(place["high"]) - place["low"]) * ours.shape[1::-1]
                        there, want = theirs[f"{version}_{image}"], theirs["pixels_" + image].transpose(1, 2, 0).astype(float)
                        inside = ((there >= 1) & (there < np.array(want.shape[1::-1]) - 1)).all(1)
                        self.assertGreater(inside.sum(), 50)
                        i, j = np.floor(at[inside]).astype(int), np.floor(there[inside]).astype(int)
                        away = np.abs(ours[i[:, 1], i[:, 0]] - want[j[:, 1], j[:, 0]])
                        self.assertLess(away.max(), 4, (version, image))
                        print(version, image, ours.shape, inside.sum(), "cells, largest difference", away.max(), "mean", away.mean())


if __name__ == "__main__":
    unittest.main()
