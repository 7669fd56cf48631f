"""The tissue image beside squidpy's drawing of it: AnnData writes an object with an image as h5ad and as Zarr, squidpy draws it, and
circles, pixels under them and diameters are compared with what preprocess kept.

squidpy has the centre of the first pixel at position 0, ours has its edge there: they differ by half a pixel of the image.
seconds: 300"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import packages  # noqa: E402
from long_spatial_squidpy import PACKAGES, VENV  # noqa: E402
from test_pictures import tool as pictures  # noqa: E402
from test_spatial_page import PROGRAM  # noqa: E402

PEER = """
import sys, warnings
warnings.simplefilter("ignore")
import matplotlib
matplotlib.use("agg")
import anndata, numpy as np, squidpy
folder = sys.argv[1]
rng = np.random.default_rng(4)
n, scale, spot = 200, 0.17, 95.0
cells = anndata.AnnData(rng.poisson(2, (n, 6)).astype(np.float32))
cells.obsm["spatial"] = rng.uniform(200, 2200, (n, 2)) * [1, 0.7]
y, x = np.mgrid[0:330, 0:450]
image = np.stack([x / 450, y / 330, (np.sin(x / 9) * np.cos(y / 7) + 1) / 2], 2).astype(np.float32)
cells.uns["spatial"] = {"V1": {"images": {"hires": image}, "metadata": {},
                               "scalefactors": {"tissue_hires_scalef": scale, "spot_diameter_fullres": spot}}}
cells.write_h5ad(folder + "/t.h5ad")
cells.write_zarr(folder + "/t.zarr")
ax = squidpy.pl.spatial_scatter(cells, library_id="V1", return_ax=True)
ax = ax[0] if isinstance(ax, (list, tuple)) else ax
drawn = ax.images[0]
circles = ax.collections[0]
centres, widths = [], []
for path, transform in zip(circles.get_paths(), [circles.get_transform()] * n):
    box = ax.transData.inverted().transform_bbox(path.get_extents(transform))
    centres.append([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    widths.append([abs(box.x1 - box.x0), abs(box.y1 - box.y0)])
np.savez(folder + "/theirs.npz", image=np.asarray(drawn.get_array()), extent=drawn.get_extent(), centres=centres, widths=widths,
         down=ax.get_ylim()[0] > ax.get_ylim()[1])
"""


class Image(unittest.TestCase):
    def test_same_spots_over_the_same_pixels(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            done = subprocess.run([VENV / "bin/python", "-c", PEER, folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            theirs = np.load(folder / "theirs.npz")
            self.assertTrue(theirs["down"])
            files = []
            for source in ("t.h5ad", "t.zarr"):
                config = folder / "c.yaml"
                config.write_text(f"instrument: spatial\nname: t\ndataset: anndata\noutput_dir: {folder}/{source}.out\n"
                                  f"preprocessing: {{path: {folder}/{source}}}\nmodel: {{spatial: false}}\n")
                done = subprocess.run([PROGRAM, "spatial", "preprocess", "-c", config], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                out = folder / f"{source}.out/preprocessed"
                files.append((out / "image.png").read_bytes())
                meta = json.loads((out / "metadata.json").read_text())
                place, pixels = meta["image"], pictures.read_png(out / "image.png").astype(float)
                self.assertLess(np.abs(pixels / 255 - theirs["image"][..., :3]).max(), 0.5001 / 255)
                raw = np.load(out / "X.npy") / meta["scale"] + meta["offset"]
                size = np.array(pixels.shape[1::-1])
                edge = (raw - place["low"]) / (np.array(place["high"]) - place["low"]) * size  # in pixels, from the edge
                away = (edge - 0.5) - theirs["centres"]
                np.testing.assert_allclose(away, -0.5, atol=2e-3)
                wide = place["spot_diameter"] / (np.array(place["high"]) - place["low"]) * size
                np.testing.assert_allclose(theirs["widths"], np.broadcast_to(wide, (len(raw), 2)), rtol=1e-3)
                under = pixels[edge[:, 1].astype(int), edge[:, 0].astype(int)]
                at = np.round(theirs["centres"]).astype(int)
                self.assertLess(np.abs(under / 255 - theirs["image"][at[:, 1], at[:, 0], :3]).max(), 0.11)
            self.assertEqual(files[0], files[1])
            print(f"{len(raw)} spots, circles {wide[0]:.2f} pixels wide, half a pixel apart")


def setUpModule():
    why = packages.fetch(VENV, PACKAGES)
    if why:
        print("SKIP:", why)
        sys.exit(77)


if __name__ == "__main__":
    unittest.main()
