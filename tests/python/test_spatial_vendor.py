"""Output folders of MERSCOPE and CosMx, made here in every variant, preprocessed by the program and compared with NumPy; what `info` says
about them; what is missing or does not fit.
seconds: 30"""
import importlib.util
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
_spec = importlib.util.spec_from_file_location("vendor", "tests/golden/vendor/make.py")
vendor = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(vendor)

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
KINDS = ("merscope", "cosmx")


class Vendor(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fathom-vendor-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"

    def fathom(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def make(self, kind, **keys):
        shutil.rmtree(self.data, ignore_errors=True)
        vendor.folder(self.data, kind, **keys)

    def preprocess(self, kind, *keys, code=0, flags=()):
        config, out = self.folder / "c.yaml", self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        config.write_text("\n".join(["instrument: spatial", "name: v", f"dataset: {kind}", f"output_dir: {out}", "preprocessing:",
                                     f"  path: {self.data}", "  rescale: false", *("  " + k for k in keys), "model: {spatial: false}"]) + "\n")
        return self.fathom("spatial", "preprocess", "-c", str(config), *flags, code=code), out / "preprocessed"

    def check(self, kind, n, features, done, genes=None, keep=None):
        said, out = done
        z = np.load(out / "Y.npz")
        y = np.zeros(z["shape"], "f4")
        for i in range(len(y)):
            s = slice(z["indptr"][i], z["indptr"][i + 1])
            y[i, z["indices"][s]] = z["data"][s]
        at = [i for i in vendor.rows(kind, n) if keep is None or keep(i)]
        genes = features - 2 if genes is None else genes
        meta = json.loads((out / "metadata.json").read_text())
        np.testing.assert_array_equal(y, vendor.counts(n, features)[at][:, :genes])
        np.testing.assert_array_equal(np.load(out / "X.npy"), vendor.positions(n)[at].astype("f4"))
        self.assertEqual(meta["spot_names"], [vendor.cells(kind, n)[i] for i in at])
        self.assertEqual(meta["gene_names"], vendor.genes(kind, features)[:genes])
        return meta

    def test_every_variant_is_read(self):
        variants = {"merscope": [dict(ending=e, header=h, prefix=p, gz=g) for e in ("csv", "parquet", "csv.gz") for h in ("cell", "")
                                 for p, g in (("", False), ("Slice1_", True)) if not (e == "parquet" and not h)],
                    "cosmx": [dict(prefix=p, gz=g, quoted=q) for p, g, q in (("", False, False), ("S5_", True, True))]}
        for kind in KINDS:
            for keys in variants[kind]:
                with self.subTest(kind=kind, **keys):
                    self.make(kind, **keys)
                    done = self.preprocess(kind)
                    self.assertIn("left out 2 Blank" if kind == "merscope" else "left out 1 Negative, 1 SystemControl", done[0])
                    self.assertEqual("left out 3 rows of counts outside of cells" in done[0], kind == "cosmx")
                    meta = self.check(kind, vendor.N, vendor.D, done)
                    self.assertEqual(meta["display"]["unit"], "um" if kind == "merscope" else "px")
                    self.assertEqual(meta["display"].get("unit_microns"), None if kind == "merscope" else 0.12028)

    def test_controls_groups_and_the_size_of_a_pixel(self):
        for kind in KINDS:
            for ending in ("csv", "parquet") if kind == "merscope" else ("csv",):
                self.make(kind, ending=ending)
                self.check(kind, vendor.N, vendor.D, self.preprocess(kind, "feature_types: [all]"), genes=vendor.D)
                said, out = self.preprocess(kind, "group_column: type", "min_group_size: 1", "pixel_microns: 0.18")
                typed = lambda i: vendor.TYPES[i % 4] != ""
                meta = self.check(kind, vendor.N, vendor.D, (said, out), keep=typed)
                self.assertEqual(meta["group_names"], ["Glia", "Neuron"])
                at = [i for i in vendor.rows(kind, vendor.N) if typed(i)]
                np.testing.assert_array_equal(np.load(out / "C.npy"), [["Glia", "Neuron"].index(vendor.TYPES[i % 4]) for i in at])
                self.assertEqual(meta["display"].get("unit_microns"), None if kind == "merscope" else 0.18)
                # fields of view are numbers
                _, out = self.preprocess(kind, "group_column: fov", "min_group_size: 1")
                names = json.loads((out / "metadata.json").read_text())["group_names"]
                self.assertEqual(names, ["0", "1", "2"] if kind == "merscope" else ["1", "2", "3"])

    def test_labels_are_in_the_order_of_the_cells(self):
        """A table that names the cells in another order is refused: labels would go to other cells."""
        n = 40
        self.make("merscope", n=n)
        names = vendor.cells("merscope", n)
        part = {name: "xy"[i >= n // 2] for i, name in enumerate(names)}
        keys = (f"labels_path: {self.folder}/labels.csv", "section_column: part", "group_column: part")
        for first in (names, range(n), range(1, n + 1), ["a"] * n):
            rows = [f"{a},{part[b]}" for a, b in zip(first, names)]
            (self.folder / "labels.csv").write_text("\n".join(["cell,part", *rows]) + "\n")
            _, out = self.preprocess("merscope", *keys)
            self.assertEqual(np.load(out / "S.npy").tolist(), [int(i >= n // 2) for i in vendor.rows("merscope", n)])
        rows = [f"{name},{part[name]}" for name in names[:3] + names[:2:-1]]
        (self.folder / "labels.csv").write_text("\n".join(["cell,part", *rows]) + "\n")
        said, _ = self.preprocess("merscope", *keys, code=3)
        for word in ("labels.csv:5: expected the labels of cell '" + names[3], "found those of '" + names[-1], "sort the table"):
            self.assertIn(word, said)

    def test_sections_of_the_table_of_cells(self):
        for kind in KINDS:
            for ending in ("csv", "parquet") if kind == "merscope" else ("csv",):
                self.make(kind, n=48, ending=ending)
                at = vendor.rows(kind, 48)
                fov = [i // 4 for i in at] if kind == "merscope" else [i % 3 + 1 for i in at]
                if kind == "cosmx":
                    _, out = self.preprocess(kind, "section_column: fov")
                    meta, S = json.loads((out / "metadata.json").read_text()), np.load(out / "S.npy")
                    self.assertEqual((meta["section_names"], S.tolist()), (["1", "2", "3"], [k - 1 for k in fov]))
                    np.testing.assert_allclose(np.load(out / "X.npy") + np.array(meta["sections"]["offsets"])[S], vendor.positions(48)[at], atol=1e-2)
                else:  # fields of view of 4 cells
                    self.refused(kind, "4 cells of section '1' are left", keys=("section_column: fov", "sections: ['1', '0']"))
                # both columns at once; a cell without a label has no section
                _, out = self.preprocess(kind, "section_column: type", "group_column: fov", "min_group_size: 1")
                typed = [k for k, i in enumerate(at) if vendor.TYPES[i % 4]]
                meta = json.loads((out / "metadata.json").read_text())
                self.assertEqual(meta["section_names"], ["Glia", "Neuron"])
                self.assertEqual(np.load(out / "S.npy").tolist(), [meta["section_names"].index(vendor.TYPES[at[k] % 4]) for k in typed])
                self.assertEqual([int(meta["group_names"][c]) for c in np.load(out / "C.npy")], [fov[k] for k in typed])
                self.assertEqual(meta["fathom"]["removed_cells"]["missing_section"], 48 - len(typed))
                self.refused(kind, "there is no column 'slice'", keys=("section_column: slice",))

    def test_any_budget_and_number_of_threads_gives_the_same_bytes(self):
        n, features = 4000, 60
        for kind in KINDS:
            self.make(kind, n=n, features=features, gz=kind == "cosmx")
            files = []
            for flags in ((), ("--memory", "40M", "--threads", "1"), ("--memory", "1G", "--threads", "3")):
                done = self.preprocess(kind, "group_column: type", "highly_variable: 20", flags=flags)
                files.append([(done[1] / f).read_bytes() for f in ("X.npy", "Y.npz", "C.npy", "rows.npy", "gene_selection.csv")])
                if len(files) == 1:
                    done = self.preprocess(kind, "group_column: type")
                    self.check(kind, n, features, done, keep=lambda i: vendor.TYPES[i % 4] != "")
            self.assertEqual(files[0], files[1])
            self.assertEqual(files[0], files[2])

    def test_planned_memory_is_enough(self):
        self.make("merscope", n=20000, features=50)
        self.preprocess("merscope", "group_column: type")
        plan = json.loads(self.fathom("plan", "-c", str(self.folder / "c.yaml"), "--json"))
        self.assertIn("preprocess", json.dumps(plan))
        said, _ = self.preprocess("merscope", "group_column: type", flags=("--memory", "40M"))
        grown, planned = (float(said.split(w)[0].split()[-2]) for w in (" grown", " planned"))
        self.assertLess(grown, planned)

    def test_info_prints_keys_that_read_it(self):
        for kind in KINDS:
            self.make(kind)
            said = self.fathom("spatial", "info", str(self.data))
            self.assertIn(f"  dataset: {kind}\n", said)
            self.assertIn("features         6: 4 Gene Expression, " + ("2 Blank\n" if kind == "merscope" else "1 Negative, 1 SystemControl\n"),
                          said)
            self.assertIn(f"rows             {vendor.N + 1}\n", said)
            config = self.folder / "info.yaml"
            lines = said.split("a config that reads it\n")[1].splitlines()
            config.write_text("\n".join(line[2:] for line in lines) + "\n")
            self.fathom("spatial", "preprocess", "-c", str(config), "--set", f"output_dir={self.folder / kind}")
            self.assertIn(f'"dataset": "{kind}"', json.dumps(json.loads(self.fathom("spatial", "info", str(self.data), "--json"))))

    def test_info_of_several_in_one_folder_names_them(self):
        for kind, counts in (("merscope", "cell_by_gene"), ("cosmx", "exprMat_file")):
            self.make(kind, prefix="A_")
            vendor.folder(self.data, kind, prefix="B_")
            said = self.fathom("spatial", "info", str(self.data), code=3)
            for part in (f"A_{counts}.csv, B_{counts}.csv", "into a folder of its own", "preprocessing.paths"):
                self.assertIn(part, said)
            for i in range(40):
                (self.data / f"slide_number_{i}_{counts}.csv").write_text("x\n")
            self.assertRegex(self.fathom("spatial", "info", str(self.data), code=3), rf"_{counts}.csv, \.\.\.\n")
        shutil.rmtree(self.data)
        self.data.mkdir()
        self.assertIn("no dataset, model or result", self.fathom("spatial", "info", str(self.data), code=3))

    def test_the_whole_instrument_runs_on_them(self):
        self.make("cosmx", n=60, features=8)
        self.preprocess("cosmx", "group_column: type")
        config = self.folder / "c.yaml"
        config.write_text(config.read_text().replace("model: {spatial: false}", "model: {spatial: false, n_components: 2}\n"
                                                     "training: {max_iter: 5}"))
        shutil.rmtree(self.folder / "out")
        self.fathom("plan", "-c", str(config))  # knows the number of groups from the table
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
        for kind, counts, cells in (("merscope", "cell_by_gene", "cell_metadata"), ("cosmx", "exprMat_file", "metadata_file")):
            self.make(kind)
            file = next(self.data.glob(f"*{cells}*"))
            shutil.copy(file, self.folder / "cells.csv")
            file.unlink()
            self.refused(kind, f"there is no {cells}.csv in this folder", "preprocessing.positions_path")
            self.check(kind, vendor.N, vendor.D, self.preprocess(kind, f"positions_path: {self.folder / 'cells.csv'}"))
            file = next(self.data.glob(f"*{counts}*"))
            shutil.copy(file, self.data / f"A_{counts}.csv")
            shutil.copy(file, self.data / f"B_{counts}.csv")
            file.unlink()
            self.refused(kind, f"there are several files like {counts}.csv", f"A_{counts}.csv, B_{counts}.csv", "preprocessing.paths")
            shutil.rmtree(self.data)
            self.data.mkdir()
            self.refused(kind, f"there is no {counts}.csv in this folder")

    def change(self, kind, part, old, new, count=1):
        file = next(self.data.glob(f"*{part}*"))
        text = file.read_text()
        self.assertIn(old, text)
        file.write_text(text.replace(old, new, count))

    def test_tables_that_are_damaged_are_refused(self):
        id3 = vendor.cells("merscope", 4)[3]
        row = f"{id3}," + ",".join(map(str, vendor.counts(4, vendor.D)[3]))
        for new, *parts in (
                (row + ",1", ":5: expected 7 columns as in the first line, found more", "cut while it was copied"),
                (row[:-2], ":5: expected 7 columns as in the first line, found 6"),
                (row[:-1] + "x", ':5:', 'expected a count, found "x"'),
                (row[:-1], ":5:", 'expected a count, found ""'),
                (row[:-1] + "-3", "has the count -3 of gene 'Blank-22'"),
                (row[:-1] + "inf", "has the count inf"),
                ("," + row.split(",", 1)[1], ":5:1: expected a cell, found \"\"")):
            self.make("merscope")
            self.change("merscope", "cell_by_gene", row, new)
            self.refused("merscope", "cell_by_gene.csv", *parts, keys=("feature_types: [all]",))
        for text, part in (("", "an empty file"), ("cell\n1\n", "one column")):
            next(self.data.glob("cell_by_gene.csv")).write_text(text)
            self.refused("merscope", part)
        self.make("cosmx")
        self.change("cosmx", "exprMat", "cell_ID", "cell_number")
        self.refused("cosmx", "expected the columns fov, cell_ID and genes, found no cell_ID")
        self.make("cosmx", gz=True)
        file = next(self.data.glob("*exprMat*"))
        file.write_bytes(file.read_bytes()[:-9])
        self.refused("cosmx", "before its packed stream does")

    def test_cells_that_do_not_fit(self):
        ids = vendor.cells("merscope", vendor.N)
        self.make("merscope")
        self.change("merscope", "cell_metadata", ids[5], "77")
        said, out = self.preprocess("merscope")
        self.assertIn("left out 1 cells without a row in", said)
        self.check("merscope", vendor.N, vendor.D, (said, out), keep=lambda i: i != 5)
        self.change("merscope", "cell_metadata", ids[4], ids[3])
        self.refused("merscope", f"repeats '{ids[3]}'")
        self.make("merscope")
        self.change("merscope", "cell_by_gene", ids[4], ids[3])
        self.refused("merscope", f"the barcode '{ids[3]}' is there twice")
        self.make("merscope")
        self.change("merscope", "cell_metadata", ids[0][:10], "9" * 10, -1)
        self.refused("merscope", "none of its names is a barcode", f"'{ids[0]}' there")
        self.make("merscope")
        self.change("merscope", "cell_metadata", "center_y", "y")
        self.refused("merscope", "there is no column 'center_y'")
        self.make("cosmx")
        self.refused("cosmx", "there is no column 'Type'", keys=("group_column: Type",))

    def test_a_column_of_numbers_is_no_group(self):
        self.make("merscope", n=5000)
        for key, what in (("group_column", "cell types"), ("section_column", "tissue sections")):
            self.refused("merscope", "column 'volume' has more than 4096 different values", f"preprocessing.{key} names a column of {what}",
                         keys=(f"{key}: volume",))


if __name__ == "__main__":
    unittest.main()
