"""Output folders of Space Ranger and of the Xenium Analyzer, made here in every variant, preprocessed by the program and compared with
NumPy; what `info` says about them; what is missing or does not fit.
seconds: 25"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path("tests/golden/tenx").resolve()))
import make  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
KINDS = ("visium", "visium_hd", "xenium")


def rows(path):
    """Y.npz as a dense array."""
    z = np.load(path)
    y = np.zeros(z["shape"], "f4")
    for i in range(y.shape[0]):
        s = slice(z["indptr"][i], z["indptr"][i + 1])
        y[i, z["indices"][s]] = z["data"][s]
    return y


class Tenx(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-tenx-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def preprocess(self, kind, *keys, code=0, flags=()):
        config = self.folder / "c.yaml"
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        config.write_text("\n".join(["instrument: spatial", "name: tenx", f"dataset: {kind}", f"output_dir: {out}",
                                     "preprocessing:", f"  path: {self.data}", "  rescale: false",
                                     *("  " + k for k in keys), "model: {spatial: false}"]) + "\n")
        said = self.fathom("spatial", "preprocess", "-c", str(config), *flags, code=code)
        return said, out / "preprocessed"

    def check(self, kind, n, features, done, inside=None, genes=None):
        said, out = done
        keep = [i for i in range(n) if inside is None or inside[i % len(inside)]]
        genes = features if genes is None else genes
        meta = json.loads((out / "metadata.json").read_text())
        np.testing.assert_array_equal(np.load(out / "X.npy"), make.positions(n)[keep].astype("f4"))
        np.testing.assert_array_equal(rows(out / "Y.npz"), make.counts(n, features)[keep][:, :genes])
        np.testing.assert_array_equal(np.load(out / "rows.npy"), keep)
        self.assertEqual(meta["spot_names"], [make.barcodes(kind, n)[i] for i in keep])
        self.assertEqual(meta["gene_names"], make.names(kind, features)[0][:genes])
        return meta

    def test_every_variant_is_read(self):
        variants = {"visium": ("csv", "list.csv", "csv.gz", "parquet"), "visium_hd": ("parquet", "csv"),
                    "xenium": ("parquet", "csv.gz", "csv")}
        for kind in KINDS:
            for ending in variants[kind]:
                for text in (False, True):
                    with self.subTest(kind=kind, ending=ending, text=text):
                        shutil.rmtree(self.data, ignore_errors=True)
                        make.folder(self.data, kind, ending=ending, text=text)
                        done = self.preprocess(kind)
                        if kind == "xenium":
                            self.assertIn("left out 1 Negative Control Probe, 1 Unassigned Codeword", done[0])
                            meta = self.check(kind, make.N, make.D + 2, done, genes=make.D)
                            self.assertEqual(meta["display"]["unit"], "um")
                        else:
                            self.assertIn("left out 2 spots that are not under tissue", done[0])
                            meta = self.check(kind, make.N, make.D, done, make.INSIDE)
                            self.assertEqual(meta["display"]["unit"], "px")
                            self.assertEqual(meta["display"].get("unit_microns"), 0.25 if kind == "visium_hd" else None)

    def test_spots_beside_the_tissue_and_other_features_are_asked_for(self):
        make.folder(self.data, "visium_hd")
        self.check("visium_hd", make.N, make.D, self.preprocess("visium_hd", "in_tissue: false"))
        shutil.rmtree(self.data)
        make.folder(self.data, "xenium")
        self.check("xenium", make.N, make.D + 2, self.preprocess("xenium", "feature_types: [all]"))

    def test_any_budget_and_number_of_threads_gives_the_same_bytes(self):
        n, features = 3000, 40
        for kind, text in (("visium_hd", False), ("xenium", True)):
            shutil.rmtree(self.data, ignore_errors=True)
            make.folder(self.data, kind, n=n, features=features, text=text)
            files = []
            for flags in ((), ("--memory", "96M", "--threads", "1"), ("--memory", "1G", "--threads", "3")):
                done = self.preprocess(kind, flags=flags)
                if not files:
                    self.check(kind, n, features, done, make.INSIDE if kind == "visium_hd" else None,
                               features - 2 if kind == "xenium" else features)
                files.append([(done[1] / f).read_bytes() for f in ("X.npy", "Y.npz", "rows.npy")])
            self.assertEqual(files[0], files[1])
            self.assertEqual(files[0], files[2])

    def test_another_table_is_named(self):
        make.folder(self.data, "visium_hd")
        shutil.move(self.data / "spatial/tissue_positions.parquet", self.folder / "bins.parquet")
        said, _ = self.preprocess("visium_hd", code=3)
        self.assertIn("there is no spatial/tissue_positions.parquet in this folder", said)
        self.assertIn("preprocessing.positions_path", said)
        done = self.preprocess("visium_hd", f"positions_path: {self.folder / 'bins.parquet'}")
        self.check("visium_hd", make.N, make.D, done, make.INSIDE)

    def test_info_prints_keys_that_read_it(self):
        for kind in KINDS:
            for text in (False, True):
                shutil.rmtree(self.data, ignore_errors=True)
                make.folder(self.data, kind, text=text)
                said = self.fathom("spatial", "info", str(self.data))
                self.assertIn(f"  dataset: {kind}\n", said)
                self.assertIn(f"    path: {self.data}\n", said)
                self.assertIn("features         6: 6 Gene Expression\n" if kind != "xenium" else
                              "features         8: 6 Gene Expression, 1 Negative Control Probe, 1 Unassigned Codeword\n", said)
                self.assertIn(f"rows             {make.N + 1}\n", said)
                if kind != "xenium":
                    self.assertIn("under tissue     10\n", said)
                config = self.folder / "info.yaml"
                lines = said.split("a config that reads it\n")[1].splitlines()
                config.write_text("\n".join(line[2:] for line in lines) + "\n")
                out = self.folder / "again"
                shutil.rmtree(out, ignore_errors=True)
                self.fathom("spatial", "preprocess", "-c", str(config), "--set", f"output_dir={out}", "--set",
                            "preprocessing.rescale=false")
                answer = json.loads(self.fathom("spatial", "info", str(self.data), "--json"))
                self.assertIn(kind, json.dumps(answer))

    def test_the_whole_instrument_runs_on_them(self):
        make.folder(self.data, "visium_hd", n=60, features=8)
        self.preprocess("visium_hd")
        config = self.folder / "c.yaml"
        config.write_text(config.read_text().replace("model: {spatial: false}", "model: {spatial: false, n_components: 2}\n"
                                                     "training: {max_iter: 5}"))
        self.fathom("run", "all", "-c", str(config))
        found = list((self.folder / "out").rglob("factors.npy"))
        self.assertEqual(np.load(found[0]).shape[1], 2)

    # ---- what does not fit ----

    def refused(self, kind, *parts, keys=(), code=3):
        said, out = self.preprocess(kind, *keys, code=code)
        for part in parts:
            self.assertIn(part, said)
        self.assertFalse(out.exists())

    def test_what_is_missing_is_named(self):
        self.refused("visium_hd", f"{self.data}: stage 'preprocess' needs this file, and it is not there")
        make.folder(self.data / "square_008um", "visium_hd")
        self.refused("visium_hd", "neither filtered_feature_bc_matrix.h5 nor filtered_feature_bc_matrix/matrix.mtx.gz",
                     f"write preprocessing.path: {self.data}/square_008um")
        shutil.rmtree(self.data)
        make.folder(self.data, "xenium", text=True)
        (self.data / "cell_feature_matrix/features.tsv.gz").unlink()
        self.refused("xenium", "there is no features.tsv.gz in this folder")
        (self.data / "cells.parquet").unlink()
        self.refused("xenium", "there is no cells.parquet in this folder")
        shutil.rmtree(self.data)
        self.data.write_text("")
        self.refused("visium", "found a file", "dataset: tenx")

    def test_columns_that_are_missing_are_named(self):
        for kind, ending, column in (("visium_hd", "parquet", "pxl_col_in_fullres"), ("xenium", "parquet", "cell_id"),
                                     ("xenium", "csv.gz", "y_centroid"), ("visium", "csv", "in_tissue")):
            with self.subTest(kind=kind, ending=ending):
                shutil.rmtree(self.data, ignore_errors=True)
                make.folder(self.data, kind, ending=ending)
                columns = make.table(kind, make.N)
                del columns[column]
                stem = self.data / ("cells" if kind == "xenium" else "spatial/tissue_positions")
                (make.parquet if ending == "parquet" else make.csv)(f"{stem}.{ending}", columns)
                self.refused(kind, f"there is no column '{column}'", "its first column is '")

    def test_tables_of_other_samples_are_refused(self):
        for kind in KINDS:
            shutil.rmtree(self.data, ignore_errors=True)
            make.folder(self.data, kind)
            columns = make.table(kind, make.N)
            key = next(iter(columns))
            stem = self.data / ("cells" if kind == "xenium" else "spatial/tissue_positions")
            write = lambda: (make.csv(f"{stem}.csv", columns) if kind == "visium" else make.parquet(f"{stem}.parquet", columns))
            columns[key][2] = "other-1"
            write()
            self.refused(kind, "has no row for 1 of the 12 barcodes", f"'{make.barcodes(kind, make.N)[10]}' for one")
            columns[key] = [f"other{i}-1" for i in range(make.N + 1)]
            write()
            self.refused(kind, "none of its names is a barcode", "'other0-1' here, '" + make.barcodes(kind, 1)[0] + "' there",
                         "the same bin size")
            columns[key] = [make.barcodes(kind, make.N)[0]] * (make.N + 1)
            write()
            self.refused(kind, f"row 2 repeats '{make.barcodes(kind, 1)[0]}'")

    def test_no_spot_under_tissue(self):
        make.folder(self.data, "visium", inside=[False])
        self.refused("visium", "none of the 12 spots", "is under tissue", "preprocessing.in_tissue: false")

    def test_positions_that_are_missing_drop_their_cells(self):
        make.folder(self.data, "xenium", ending="csv")
        text = (self.data / "cells.csv").read_text().replace(",30.5,", ",,")
        (self.data / "cells.csv").write_text(text)
        _, out = self.preprocess("xenium")
        np.testing.assert_array_equal(np.load(out / "rows.npy"), [i for i in range(make.N) if i != 3])
        (self.data / "cells.csv").write_text(text.replace(",20.5,", ",twenty,"))
        self.refused("xenium", "cells.csv:12:", "expected a number, found \"twenty\"")

    def test_texts_that_are_damaged_are_refused(self):
        matrix = self.data / "cell_feature_matrix/matrix.mtx.gz"
        make.folder(self.data, "xenium", text=True)
        good = make.gzip.decompress(matrix.read_bytes()).decode()
        lines = good.splitlines()
        for change, part in (
                ("%%MatrixMarket matrix array real general\n", "expected '%%MatrixMarket matrix coordinate integer general'"),
                ("\n".join(lines[:-1]) + "\n", "entries, found "),
                (good + "1 12 1\n", "entries, found more"),
                (good.replace(lines[5], "9 1 1", 1), "expected "),
                ("\n".join(lines[:3] + lines[:2:-1]) + "\n", "expected entries by ascending cell"),
                ("\n".join(lines[:3] + ["1 1"] + lines[4:]) + "\n", "expected a feature, a cell and a count, found fewer numbers")):
            matrix.write_bytes(make.gzip.compress(change.encode()))
            self.refused("xenium", "matrix.mtx.gz", part)
        matrix.write_bytes(make.gzip.compress(good.encode())[:-9])
        self.refused("xenium", "matrix.mtx.gz", "before its packed stream does")


if __name__ == "__main__":
    unittest.main()
