"""Scans through the program: every layout of NPZ and HDF5, what is refused and with which words, check, convert
and simulate, against files and models made with NumPy and h5py.
seconds: 60"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time
import unittest
import zipfile

import h5py
import numpy as np

PROGRAM = os.path.abspath(os.environ.get("FATHOM_PROGRAM") or "build/bin/fathom")
EV = 1.602176634e-19


def run(*words, code=0, cwd=None):
    done = subprocess.run([PROGRAM, "ptycho", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == code, f"{words}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def info(path, *flags):
    return json.loads(run("info", path, "--json", *flags))


def arrays(M=30, N=16, seed=0):
    r = np.random.RandomState(seed)
    y, x = np.mgrid[:N, :N] - N / 2
    probe = np.exp(-(x**2 + y**2) / (2 * (N / 6) ** 2)) * np.exp(0.05j * (x**2 + y**2) + 0.2j * x)
    return {"xcoords": r.uniform(20, 40, M), "ycoords": r.uniform(20, 40, M), "diff3d": r.uniform(0.1, 9, (M, N, N)),
            "probeGuess": probe.astype("c16"), "objectGuess": (r.rand(60, 62) + 1j * r.rand(60, 62)).astype("c8")}


def lz4(data):
    """A block of LZ4: copies from one byte back where bytes repeat, literals elsewhere."""
    out, at, start = b"", 0, 0

    def command(literals, copy):
        more = lambda n: b"" if n < 15 else b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])
        head = bytes([min(len(literals), 15) << 4 | min(max(copy - 4, 0), 15)]) + more(len(literals)) + literals
        return head + (b"\x01\x00" + more(copy - 4) if copy else b"")

    while at < len(data):
        run_of = 0
        while at and at + run_of < len(data) and data[at + run_of] == data[at - 1]:
            run_of += 1
        if run_of < 4 or at + run_of > len(data) - 5:
            at += 1
            continue
        out += command(data[start:at], run_of)
        at += run_of
        start = at
    return out + command(data[start:], 0)


def packed(chunk, shuffled, block=64):
    """A chunk as the HDF5 filters LZ4 (32004) and Bitshuffle with LZ4 (32008) write it."""
    item, flat = chunk.itemsize, chunk.ravel()
    n = flat.size // 8 * 8 if shuffled else flat.size
    out = struct.pack(">QI", flat.nbytes, block * item)
    for at in range(0, n, block):
        part = flat[at:min(at + block, n)]
        raw = part.tobytes()
        if shuffled:
            bits = np.unpackbits(np.frombuffer(raw, "u1").reshape(part.size, item), axis=1, bitorder="little")
            raw = np.packbits(bits.T, axis=1, bitorder="little").tobytes()
        small = lz4(raw)
        small = small if shuffled or len(small) < len(raw) else raw  # Bitshuffle packs every block
        out += struct.pack(">I", len(small)) + small
    return out + flat[n:].tobytes()


def put_packed(f, name, data, chunk, shuffled, until=None):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    values = (0, 4, data.itemsize, 0, 2) if shuffled else (0,)
    plist.set_filter(32008 if shuffled else 32004, h5py.h5z.FLAG_OPTIONAL, values)
    f.require_group(name.rpartition("/")[0] or "/")
    space = h5py.h5s.create_simple(data.shape)
    h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(data.dtype), space, plist)
    for corner in np.ndindex(*(-(-n // c) for n, c in zip(data.shape, chunk))):
        lo = [k * c for k, c in zip(corner, chunk)]
        if until and lo[0] >= until:
            continue
        part = np.zeros(chunk, data.dtype)
        here = data[tuple(slice(a, a + c) for a, c in zip(lo, chunk))]
        part[tuple(slice(0, n) for n in here.shape)] = here
        f[name].id.write_direct_chunk(tuple(lo), packed(part, shuffled))


class Scans(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ptycho-"))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def save(self, name="scan.npz", packed=False, **changes):
        d = {**arrays(), **changes}
        d = {k: v for k, v in d.items() if v is not None}
        path = self.dir / name
        (np.savez_compressed if packed else np.savez)(path, **d)
        return path

    def same(self, path, d, *flags, atol=0.0):
        """The file, converted to an NPZ of ours, holds these arrays."""
        out = self.dir / "same.npz"
        run("convert", path, out, "--quiet", *flags)
        got = np.load(out)
        np.testing.assert_allclose(got["diff3d"], d["diff3d"], rtol=1e-6, atol=atol)
        np.testing.assert_allclose(got["xcoords"], d["xcoords"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(got["ycoords"], d["ycoords"], rtol=1e-9, atol=1e-9)
        if "probeGuess" in got.files:
            np.testing.assert_allclose(got["probeGuess"], d["probeGuess"].astype("c8"))
        return got

    # ---- layouts ----

    def test_every_dtype_order_and_layout_of_npz(self):
        base = arrays()
        whole = np.round(base["diff3d"])
        for dtype in ("<f4", "<f8", ">f4", ">f8", "|u1", "<u2", ">u2", "<u4", ">u4", "|i1", ">i2", "<i4", "<i8"):
            diff = whole.astype(dtype)
            for packed in (False, True):
                path = self.save(diff3d=diff, packed=packed)
                self.same(path, {**base, "diff3d": whole})
                self.assertEqual(info(path)["kind"], "amplitude" if "f" in dtype else "counts")
        f32 = base["diff3d"].astype("f4")
        for diff in (np.asfortranarray(f32), f32[..., None], np.moveaxis(f32, 0, 2), np.moveaxis(f32, 0, 2)[..., None],
                     np.asfortranarray(np.moveaxis(f32, 0, 2))):
            for packed in (False, True):
                self.same(self.save(diff3d=diff, packed=packed), {**base, "diff3d": f32})
        self.same(self.save(diff3d=None, diffraction=f32), {**base, "diff3d": f32})
        for probe in (base["probeGuess"].astype("c8"), base["probeGuess"][..., None], np.asfortranarray(base["probeGuess"])):
            self.save(probeGuess=probe)
            self.same(self.dir / "scan.npz", {**base, "diff3d": f32}, atol=1e-6)
        self.assertEqual(info(self.save(probeGuess=np.stack([base["probeGuess"]] * 3)))["modes"], 3)

    def test_what_info_says(self):
        meta = {"physics_parameters": {"nphotons": 12345.0, "N": 16, "gridsize": 2}}
        d = arrays()
        for text in (np.array(json.dumps(meta)), np.array(json.dumps(meta), dtype=object)):
            got = info(self.save(_metadata=text, mask=np.ones((16, 16), bool)))
            self.assertEqual((got["patterns"], got["size"], got["nphotons"], got["object"]), (30, 16, 12345.0, [60, 62]))
            self.assertTrue(got["mask"])
            self.assertAlmostEqual(got["mean_counts"] / (d["diff3d"] ** 2).sum((1, 2)).mean(), 1, 6)
            self.assertAlmostEqual(got["x"][0], d["xcoords"].min())
            self.assertEqual(got["warnings"], [])
        near = [sorted(np.hypot(d["xcoords"] - a, d["ycoords"] - b))[1] for a, b in zip(d["xcoords"], d["ycoords"])]
        self.assertAlmostEqual(got["step"], sorted(near)[15])
        got = info(self.save(_metadata=np.array("no JSON")))
        self.assertIn("_metadata", got["warnings"][0])
        got = info(self.save(Y=np.zeros((3, 16, 16), "c8")))
        self.assertIn("'Y' has 3 patches", got["warnings"][0])
        path = self.save(_metadata=np.array(json.dumps(meta)))
        self.assertIn("nphotons", info(path, "--nphotons", "1e5")["warnings"][0])
        self.assertIn("nphotons is 100000", run("info", path, "--nphotons", "1e5", "--strict", "true", code=3))
        got = info(self.save(Mask=np.ones((16, 16), bool), notes=np.zeros(3)))
        self.assertEqual(got["warnings"], ["'Mask' is ignored: did you mean 'mask'?"])
        diff = d["diff3d"].copy()
        diff[4] = 0
        path = self.save(diff3d=diff)
        self.assertIn("1 of 30 patterns are zero everywhere, the first is 4", run("check", path))
        self.assertIn("zero everywhere", run("check", path, "--strict", "true", code=3))
        for dtype, most in (("u1", 255), ("u2", 65535), ("i4", 2**31 - 1), ("u4", 2**32 - 1)):
            diff = np.round(d["diff3d"]).astype(dtype)
            diff[3:5, 7, 9] = most
            path = self.save(diff3d=diff)
            self.assertRegex(run("check", path), rf"2 pixels have {most}.* \[3 7 9\]")
            mask = np.ones((16, 16), bool)
            mask[7, 9] = False
            self.assertNotIn("pixels have", run("check", self.save(diff3d=diff, mask=mask)))
        for dtype in ("f4", "f8"):
            path = self.save(diff3d=(np.round(d["diff3d"]) + 0.3).astype(dtype))
            self.assertIn("not integers", run("check", path, "--data.kind", "counts"))
        square = arrays(M=16)
        got = info(self.save(**square))
        self.assertIn("using the first as the scan", got["warnings"][0])

    def test_probes_are_brought_to_size(self):
        N = 16
        y, x = np.mgrid[:24, :24] - 12
        whole = np.exp(-(x**2 + y**2) / 40) * np.exp(0.03j * (x**2 + y**2) + 0.4j)

        def resized(probe, steps):
            run("convert", self.save(probeGuess=probe), self.dir / "b.npz", "--probe_resize", steps, "--quiet")
            return np.load(self.dir / "b.npz")["probeGuess"]

        small = whole[6:18, 6:18]
        np.testing.assert_allclose(resized(small, "pad:16"), np.pad(small, 2).astype("c8"))
        two = resized(np.stack([small, 2 * small]), "pad:16")
        np.testing.assert_allclose(two[1], 2 * two[0])
        far = resized(small, "pad_extrapolate:16")  # the edge of the amplitude goes on, the phase is the parabola's
        phase = np.angle(far / np.exp(1j * np.angle(whole[4:20, 4:20])))
        self.assertLess(abs(phase).max(), 1e-5)
        np.testing.assert_allclose(abs(far), np.pad(abs(small), 2, "edge"), rtol=1e-6)
        fine = resized(whole, "interp:16")  # edge to edge: pixel i lies at 23 i / 15
        r, s = np.meshgrid(np.arange(N) * 23 / 15 - 12, np.arange(N) * 23 / 15 - 12, indexing="ij")
        want = np.exp(-(r**2 + s**2) / 40) * np.exp(0.03j * (r**2 + s**2) + 0.4j)
        self.assertLess(abs(fine - want).max(), 5e-3)
        smooth = resized(np.pad(small, 2), "smooth:1")
        from_padded = np.pad(small, 2)
        k = np.exp(-np.arange(-4, 5) ** 2 / 2)
        k /= k.sum()
        blur = lambda a: np.apply_along_axis(lambda v: np.convolve(np.pad(v, 4, "symmetric"), k, "valid"), 0, a)
        np.testing.assert_allclose(smooth, blur(blur(from_padded).T).T, atol=1e-6)
        text = run("info", self.save(probeGuess=small), code=3)
        self.assertIn("smooth:0.5|pad:16", text)
        self.assertIn("interp:16", run("info", self.save(probeGuess=whole), code=3))
        np.testing.assert_allclose(resized(whole, "crop:16"), whole[4:20, 4:20].astype("c8"))
        for steps in ("pad:8", "crop:14", "pad:17", "blur:3", "pad", "interp:x", "smooth:-1"):
            self.assertIn("is not a step", run("info", self.save(probeGuess=small), "--probe_resize", steps, code=2))

    def test_positions_are_turned_as_asked(self):
        d = arrays()
        path = self.save(xcoords_start=d["xcoords"] + 1, ycoords_start=d["ycoords"] - 1)
        x, y = d["xcoords"], d["ycoords"]
        for flags, ex, ey in ((["--flip_x", "true"], -x, y), (["--positions.sign", "-1"], -x, -y),
                              (["--swap_xy", "true", "--coord_scale", "2"], 2 * y, 2 * x),
                              (["--flip_y", "true", "--swap_xy", "true"], -y, x)):
            self.same(path, {**d, "xcoords": ex, "ycoords": ey}, *flags)
        got = self.same(path, d)
        np.testing.assert_array_equal(got["xcoords_start"], x + 1)

    def test_declared_units(self):
        text = lambda a, b: {"scale_contract_version": a and np.array(a), "measurement_domain": b and np.array(b)}
        counts = text("ci_intensity_v2", "count_intensity")
        path = self.save(**counts)
        self.assertEqual((info(path)["kind"], info(path)["kind_is_declared"]), ("counts", True))
        self.assertIn("data.kind is amplitude", run("info", path, "--data.kind", "amplitude", code=3))
        self.assertEqual(info(self.save(**text("legacy_v1", "normalized_amplitude")))["kind"], "amplitude")
        self.assertIn("only half declared", run("info", self.save(**text("legacy_v1", None)), code=3))
        self.assertIn("only half declared", run("info", self.save(**text(None, "count_intensity")), code=3))
        self.assertIn("'v9'", run("info", self.save(**text("v9", "count_intensity")), code=3))

    def test_masks_are_cut_and_binned_with_the_frames(self):
        r = np.random.RandomState(3)
        bad = r.rand(30, 24, 24) < 0.05
        d = {**arrays(), "diff3d": r.poisson(9, (30, 24, 24)).astype("u2"), "objectGuess": None, "probeGuess": np.ones((24, 24), "c8")}

        def cut(a, bin=1, fill=0):
            a = np.pad(a, ((0, 0), (4, 4), (4, 4)), constant_values=fill)[:, 6:26, 7:27]  # about (13, 12)
            return a.reshape(len(a), 20 // bin, bin, 20 // bin, bin)

        with h5py.File(self.dir / "a.h5", "w") as f:
            f["d"], f["x"], f["y"], f["m"], f["each"] = d["diff3d"], d["xcoords"], d["ycoords"], bad[0].astype("u4") * 8, bad
        where = ["--hdf5.data", "d", "--hdf5.x", "x", "--hdf5.y", "y", "--hdf5.mask"]
        centre = ["--crop", "20", "--centre_x", "13", "--centre_y", "12", "--probe_guess", "default", "--quiet"]
        for bin in (1, 2):
            for mask, given in ((bad[:1], "m"), (bad, "each")):
                files = [(self.dir / "a.h5", where + [given]), (self.save(**{**d, "mask": ~(bad[0] if given == "m" else bad)}), [])]
                for path, flags in files:
                    run("convert", path, self.dir / "o.npz", *flags, *centre, "--bin", bin)
                    got = np.load(self.dir / "o.npz")
                    np.testing.assert_array_equal(got["diff3d"], cut(d["diff3d"], bin).sum((2, 4)))
                    want = ~cut(mask, bin).any((2, 4))
                    np.testing.assert_array_equal(got["mask"], want[0] if given == "m" else want)
        self.assertIn("[24 24]", run("info", self.save(**{**d, "mask": bad[0, 1:]}), *centre[:-1], code=3))

    def test_pixels_grow_when_frames_are_cut(self):
        d = arrays()
        path = self.save()
        got = info(path, "--crop", "12", "--probe_guess", "default", "--data.kind", "counts")
        np.testing.assert_allclose(got["x"], [0.75 * d["xcoords"].min(), 0.75 * d["xcoords"].max()])
        self.assertEqual(got["object"], [])
        self.assertRegex(" ".join(got["warnings"]), "1.33.* times as large.*its pixels differ")
        got = info(path, "--bin", "2", "--probe_guess", "default", "--data.kind", "counts")
        np.testing.assert_allclose(got["x"], [d["xcoords"].min(), d["xcoords"].max()])
        self.assertEqual((got["object"], got["warnings"]), ([60, 62], []))
        self.assertIn("interp:12", run("info", path, "--crop", "12", code=3))
        self.assertIn("crop:8", run("info", path, "--bin", "2", "--data.kind", "counts", code=3))
        run("convert", path, self.dir / "a.h5", *self.physics)
        with h5py.File(self.dir / "a.h5", "a") as f:
            del f["raw_data"].attrs["detector_pixel_m"]
        self.assertAlmostEqual(info(self.dir / "a.h5", "--crop", "12", "--probe_guess", "default")["pixel_m"] / self.pixel * 0.75, 1, 9)

    # ---- what is refused ----

    def test_bad_input_is_refused_within_a_second(self):
        d = arrays()

        def bent(name, at, value):
            a = d[name].copy()
            a[at] = value
            return {name: a}

        def holes(shape, at):
            a = np.ones(shape, "f4")
            a[at] = np.nan
            return a

        cases = [
            ({"xcoords": None}, ["xcoords", "ycoords, diff3d"]), ({"diff3d": None}, ["'diff3d'"]),
            ({"probeGuess": None}, ["'probeGuess'", "xcoords"]),
            ({"ycoords": d["ycoords"][:-1]}, ["'xcoords' has 30", "'ycoords' has 29"]),
            ({"xcoords": d["xcoords"][:9], "ycoords": d["ycoords"][:9]}, ["[30 16 16]", "9 positions"]),
            ({"diff3d": d["diff3d"][:, :, :14]}, ["16 x 14", "square"]),
            ({"diff3d": d["diff3d"][:, :15, :15]}, ["15 x 15", "even"]),
            ({"probeGuess": d["probeGuess"][:8, :8]}, ["[8 8]", "16 x 16"]),
            (bent("xcoords", 7, np.nan), ["'xcoords'", "[7]"]), (bent("probeGuess", (3, 4), np.inf), ["'probeGuess'", "[0 3 4]"]),
            ({"probeGuess": np.zeros((16, 16), "c8")}, ["'probeGuess'", "zero"]),
            ({"diff3d": d["diff3d"].astype("c8")}, ["'diff3d'", "c64"]), ({"diff3d": d["diff3d"][0]}, ["[16 16]"]),
            ({"mask": np.ones((15, 16), bool)}, ["'mask'", "[15 16]", "[16 16]"]),
            ({"mask": np.zeros((16, 16), bool)}, ["'mask'", "no good pixel"]),
            ({"mask": holes((16, 16), (5, 6))}, ["'mask' is NaN at [5 6]"]),
            ({"xcoords_start": d["xcoords"][:4], "ycoords_start": d["ycoords"][:4]}, ["'xcoords_start' has 4", "30"]),
            ({"scan_index": np.arange(4)}, ["'scan_index' has 4", "30"]), ({"objectGuess": np.ones(5, "c8")}, ["'objectGuess'", "[5]"]),
        ]
        read = [  # only a look at the patterns finds these
            (bent("diff3d", (4, 5, 6), np.nan), ["'diff3d' is NaN", "[4 5 6]"]), (bent("diff3d", (29, 15, 15), -1), ["negative", "[29 15 15]"]),
            (bent("diff3d", (0, 0, 1), np.inf), ["infinite", "[0 0 1]"]), ({"diff3d": np.zeros((30, 16, 16), "f4")}, ["all 30 patterns"]),
            ({"mask": holes((30, 16, 16), (7, 5, 6))}, ["'mask' is NaN at [7 5 6]"]),
        ]
        for verb, some in (("info", cases), ("check", cases + read)):
            for changes, words in some:
                path = self.save(**changes)
                start = time.time()
                text = run(verb, path, code=3)
                self.assertLess(time.time() - start, 1)
                for word in [str(path), *words]:
                    self.assertIn(word, text)
                self.assertEqual([p.name for p in self.dir.iterdir()], ["scan.npz"])

    def test_masked_pixels_may_be_anything(self):
        d = arrays()
        mask = np.ones((16, 16), bool)
        mask[5, 6] = False
        diff = d["diff3d"].copy()
        diff[:, 5, 6] = np.nan
        run("check", self.save(diff3d=diff, mask=mask))
        each = np.ones((30, 16, 16), bool)
        each[3, 5, 6] = False
        diff = d["diff3d"].copy()
        diff[3, 5, 6] = -1
        run("check", self.save(diff3d=diff, mask=each))
        self.assertIn("[3 5 6]", run("check", self.save(diff3d=diff, mask=~each, packed=True), code=3))
        run("check", self.save(diff3d=diff, mask=~each), "--mask.convention", "true_is_bad")

    def test_cut_and_damaged_files(self):
        for packed in (False, True):
            path = self.save(packed=packed)
            whole = path.read_bytes()
            for n in (0, 3, 10, 100, len(whole) // 2, len(whole) - 1):
                path.write_bytes(whole[:n])
                self.assertIn(str(path), run("check", path, code=3))
            at = len(whole) // 2
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            self.assertRegex(run("check", path, code=3), "checksum|damaged|NaN|negative|deflated")
        for name in ("objectGuess", "probeGuess"):  # damaged near their end
            for packed in (False, True):
                path = self.save(packed=packed)
                with zipfile.ZipFile(path) as z:
                    member = z.getinfo(name + ".npy")
                whole = bytearray(path.read_bytes())
                names, more = struct.unpack("<HH", whole[member.header_offset + 26:member.header_offset + 30])
                whole[member.header_offset + 30 + names + more + member.compress_size - 9] ^= 0x10
                path.write_bytes(whole)
                self.assertIn(name, run("check", path, code=3))
        (self.dir / "text.npz").write_text("this is no archive\n")
        self.assertIn("neither an NPZ nor an HDF5", run("info", self.dir / "text.npz", code=3))
        self.assertIn("No such file", run("info", self.dir / "none.npz", code=3))

    def test_keys_and_flags(self):
        path = self.save()
        self.assertIn("--flip_x", run("info", path, "--flip-x", "true", code=2))
        self.assertIn("did you mean 'counts'", run("info", path, "--data.kind", "count", code=2))
        self.assertIn("even", run("info", path, "--crop", "7", code=2))
        (self.dir / "a.yaml").write_text("flip_x: true\ncoord_scale: 3\n")
        got = info(path, "-c", self.dir / "a.yaml", "--set", "coord_scale=4", "--flip_y", "true")
        d = arrays()
        np.testing.assert_allclose((got["x"], got["y"]), (sorted(-4 * np.array([d["xcoords"].min(), d["xcoords"].max()])),
                                                          sorted(-4 * np.array([d["ycoords"].min(), d["ycoords"].max()]))))
        (self.dir / "b.yaml").write_text("flip_w: true\n")
        self.assertRegex(run("info", path, "-c", self.dir / "b.yaml", code=2), r"b\.yaml:1:1.*flip_w[\s\S]*flip_")

    # ---- HDF5 ----

    physics = ["--energy_eV", "8000", "--distance_m", "2", "--detector_pixel_m", "75e-6"]
    pixel = 1.23984193e-6 / 8000 * 2 / (16 * 75e-6)

    def test_round_trips_through_cxi_and_product(self):
        d = arrays()
        d["diff3d"] = np.sqrt(np.random.RandomState(2).poisson(d["diff3d"] ** 2)).astype("f4")
        mask = np.ones((16, 16), bool)
        mask[2, 3] = False
        index = np.arange(30) // 7
        path = self.save(diff3d=d["diff3d"], mask=mask, scan_index=index)
        self.assertIn("--energy_eV", run("convert", path, self.dir / "a.cxi", code=3))
        self.assertFalse((self.dir / "a.cxi").exists())
        each = np.random.RandomState(5).rand(30, 16, 16) < 0.9
        for name in ("b.cxi", "b.h5"):
            run("convert", self.save("b.npz", diff3d=d["diff3d"], mask=each), self.dir / name, *self.physics)
            run("convert", self.dir / name, self.dir / "b.npz", "--quiet")
            np.testing.assert_array_equal(np.load(self.dir / "b.npz")["mask"], each)
        for name in ("a.cxi", "a.h5"):
            out = self.dir / name
            run("convert", path, out, *self.physics)
            got = info(out)
            self.assertAlmostEqual(got["pixel_m"] / self.pixel, 1, 9)
            self.assertAlmostEqual(got["energy_eV"], 8000, 6)
            self.assertEqual(got["positions_sign"], -1 if name == "a.cxi" else 1)
            self.assertEqual(got["kind"], "counts" if name == "a.cxi" else "amplitude")
            want = {**d, "diff3d": d["diff3d"] ** 2} if name == "a.cxi" else d
            back = self.same(out, want)
            np.testing.assert_array_equal(back["mask"], mask)
        np.testing.assert_array_equal(back["scan_index"], index)  # of the product: CXI has no place for it
        with h5py.File(self.dir / "a.h5", "a") as f:
            del f["raw_data/scan_index"]
            f["raw_data/scan_index"] = index[:4]
        self.assertIn("'/raw_data/scan_index' has 4 numbers for 30", run("info", self.dir / "a.h5", code=3))
        with h5py.File(self.dir / "a.h5") as f:
            self.assertEqual(f["probe"].shape, (1, 1, 16, 16))
            self.assertEqual(f["object"].shape, (1, 60, 62))
            self.assertEqual(f.attrs["probe_energy_eV"], 8000)
            self.assertEqual(f["raw_data/diffraction"].attrs["axis_canonical"], "NHW")
            np.testing.assert_allclose(f["probe_position_x_m"][:], d["xcoords"] * self.pixel, rtol=1e-9)
            np.testing.assert_allclose(f["probe"][0, 0], d["probeGuess"].astype("c8"))
        np.testing.assert_allclose(np.load(self.dir / "same.npz")["objectGuess"], d["objectGuess"])
        with h5py.File(self.dir / "a.cxi") as f:
            np.testing.assert_allclose(f["entry_1/data_1/translation"][:, 1], -d["ycoords"] * self.pixel, rtol=1e-9)
            self.assertAlmostEqual(f["entry_1/instrument_1/source_1/energy"][()] / EV, 8000, 6)

    def counts(self):
        d = arrays()
        return {**d, "diff3d": np.random.RandomState(1).poisson(20, (30, 16, 16)).astype("u2")}

    def test_cxi_of_others(self):
        d = self.counts()
        path = self.dir / "a.cxi"
        with h5py.File(path, "w") as f:
            f["cxi_version"] = 150
            e = f.create_group("entry_1")
            e["instrument_1/source_1/energy"] = 8000 * EV
            e["instrument_1/detector_1/distance"] = 2000.0
            e["instrument_1/detector_1/distance"].attrs["units"] = "mm"
            e["instrument_1/detector_1/x_pixel_size"] = 75e-6
            e.create_dataset("instrument_1/detector_1/data", data=d["diff3d"], chunks=(4, 16, 16), compression="gzip", shuffle=True)
            e["data_1/data"] = h5py.SoftLink("/entry_1/instrument_1/detector_1/data")
            mask = np.zeros((16, 16), "u4")
            mask[1, 1] = 0x200
            e["instrument_1/detector_1/mask"] = mask
            e["sample_1/geometry_1/translation"] = -np.stack([d["xcoords"], d["ycoords"], 0 * d["xcoords"]], 1) * self.pixel
        got = self.same(path, d)
        self.assertFalse(got["mask"][1, 1])
        self.assertEqual(got["mask"].sum(), 255)
        self.assertEqual(info(path)["modes"], 0)
        got = info(path, "--positions.sign", "1", "--energy_eV", "4000")
        np.testing.assert_allclose(got["x"], sorted(-np.array([d["xcoords"].max(), d["xcoords"].min()]) / 2))
        run("check", path)
        for unit, factor in (("um", 1e6), ("mm", 1e3), ("m", 1)):
            with h5py.File(path, "a") as f:
                del f["entry_1/sample_1"]
                place = "entry_1/sample_1/geometry_1/translation"
                f[place] = -np.stack([d["xcoords"], d["ycoords"]], 1) * self.pixel * factor
                f[place].attrs["units"] = unit
            self.same(path, d)
        with h5py.File(path, "a") as f:
            del f["entry_1/instrument_1/source_1/energy"]
        self.assertRegex(run("info", path, code=3), r"not known without energy\n")
        with h5py.File(path, "a") as f:
            f["entry_1/instrument_1/beam_1/incident_wavelength"] = 1.23984193e-6 / 8000 * 1e10
            f["entry_1/instrument_1/beam_1/incident_wavelength"].attrs["units"] = "angstrom"
        self.assertAlmostEqual(info(path)["energy_eV"], 8000, 6)
        with h5py.File(path, "a") as f:
            f[place].attrs["units"] = "furlong"
        self.assertIn("'furlong'", info(path)["warnings"][0])
        with h5py.File(path, "a") as f:
            del f["entry_1/sample_1"]
        self.assertIn("translation", run("info", path, code=3))

    def test_ptyd_in_chunks(self):
        d = self.counts()
        path = self.dir / "a.ptyd"
        with h5py.File(path, "w") as f:
            f["meta/energy"], f["meta/distance"], f["meta/psize"] = 8.0, 2.0, np.array([75e-6, 75e-6])
            for k, lo in enumerate(range(0, 30, 3)):  # ten chunks: "10" would sort before "2"
                g = f.create_group(f"chunks/{k}")
                g["data"] = d["diff3d"][lo:lo + 3]
                g["positions"] = np.stack([d["ycoords"], d["xcoords"]], 1)[lo:lo + 3] * self.pixel
                weights = np.ones((3, 16, 16), "f4")
                weights[0, 0, k] = 0
                g["weights"] = weights
        got = self.same(path, d)
        self.assertEqual(got["mask"].shape, (30, 16, 16))
        self.assertEqual((~got["mask"]).sum(), 10)
        self.assertFalse(got["mask"][27, 0, 9])
        run("check", path)
        with h5py.File(path, "a") as f:  # as ptypy writes it where all frames share their weights
            for k in range(10):
                del f[f"chunks/{k}/weights"]
                f[f"chunks/{k}/weights"] = np.zeros(0)
            f["common/weight2d"] = np.pad(np.ones((14, 16)), ((0, 2), (0, 0)))
        self.assertEqual((~self.same(path, d)["mask"]).sum(), 32)
        with h5py.File(path, "a") as f:
            del f["chunks/4/positions"]
            f["chunks/4/positions"] = np.zeros((2, 2))
        self.assertIn("29 positions for 30 frames", run("info", path, code=3))

    def test_velociprobe(self):
        d = self.counts()
        frames = np.zeros((30, 20, 24), "u4")
        frames[:, 3:19, 5:21] = d["diff3d"]
        pixel = 1.23984193e-6 / 8000 * 2 / (16 * 75e-6)
        with h5py.File(self.dir / "part.h5", "w") as f:
            f["d"] = frames[:20]
        path = self.dir / "a.h5"
        with h5py.File(path, "w") as f:
            f["entry/data/data_000000"] = h5py.ExternalLink("part.h5", "/d")
            f["entry/data/data_000001"] = frames[20:]
            f["entry/data/data_000002"] = h5py.ExternalLink("gone.h5", "/d")
            g = f.create_group("entry/instrument/detector")
            g["detector_distance"], g["x_pixel_size"], g["beam_center_x"], g["beam_center_y"] = 2.0, 75e-6, 13.0, 11.0
            g["detectorSpecific/photon_energy"] = 8000.0
        rows = []
        for k in range(30):
            for shift in (-3, 1, 2):  # of each trigger the mean counts
                rows.append([0, d["xcoords"][k] * pixel * 1e9 + shift, 7, 0, 0, d["ycoords"][k] * pixel * 1e9 - shift, 0, k + 5])
        (self.dir / "p.csv").write_text("".join(",".join(map(repr, map(float, r))) + "\n" for r in rows))
        self.assertIn("--positions.file", run("info", path, code=3))
        flags = ["--positions.file", self.dir / "p.csv"]
        self.assertIn("20 x 24", run("info", path, *flags, code=3))
        self.same(path, d, *flags, "--crop", 16)
        self.assertIn("data_000002", info(path, *flags, "--crop", 16)["warnings"][0])
        dead = np.zeros((20, 24), "u4")
        dead[4, 7] = 1
        with h5py.File(path, "a") as f:
            f["entry/instrument/detector/detectorSpecific/pixel_mask"] = dead
        mask = self.same(path, d, *flags, "--crop", 16)["mask"]
        self.assertEqual(list(map(tuple, np.argwhere(~mask))), [(1, 2)])
        (self.dir / "p.csv").write_text("".join(",".join(map(repr, map(float, r))) + "\n" for r in rows[:-3]))
        self.assertRegex(run("info", path, *flags, "--crop", 16, code=3), "29 triggers.*30 frames")
        (self.dir / "p.csv").write_text("1,2,3\n")
        self.assertIn("p.csv:1: 3 columns, expected 8", run("info", path, *flags, code=3))

    def test_rasters_of_a_microscope(self):
        d = self.counts()
        path = self.dir / "a.h5"
        y, x = np.divmod(np.arange(30.0), 6)
        cube = {**d, "xcoords": 1.5 * x, "ycoords": 1.5 * y}
        with h5py.File(path, "w") as f:
            f["cube/data"] = d["diff3d"].reshape(5, 6, 16, 16)
            f["flat"], f["x"], f["y"] = d["diff3d"], d["xcoords"], d["ycoords"]
        self.same(path, cube, "--hdf5.data", "cube/data", "--positions.step", "1.5")
        self.same(path, d, "--hdf5.data", "cube/data", "--hdf5.x", "x", "--hdf5.y", "y")
        metres = ["--energy_eV", "8000", "--distance_m", "2", "--detector_pixel_m", "75e-6", "--positions.unit", "nm"]
        self.same(path, cube, "--hdf5.data", "cube/data", "--positions.step", repr(1.5 * self.pixel * 1e9), *metres)
        half = self.dir / "half.npz"
        run("convert", path, half, "--hdf5.data", "cube/data", "--positions.step", "2", "--subset", "odd", "--quiet")
        np.testing.assert_array_equal(np.load(half)["diff3d"], d["diff3d"][1::2])
        self.assertIn("[30 16 16]", run("info", path, "--hdf5.data", "flat", "--positions.step", "2", code=3))
        self.same(self.save(diff3d=d["diff3d"].reshape(5, 6, 16, 16)), d)

    def test_chunks_of_lz4_and_bitshuffle(self):
        d = self.counts()
        path = self.dir / "a.h5"
        where = ["--hdf5.data", "g/d", "--hdf5.x", "x", "--hdf5.y", "y"]
        for dtype in ("u2", "u4", ">u2"):
            for shuffled in (False, True):
                for chunk in ((1, 16, 16), (7, 5, 16)):
                    with h5py.File(path, "w") as f:
                        put_packed(f, "g/d", d["diff3d"].astype(dtype), chunk, shuffled)
                        f["x"], f["y"] = d["xcoords"], d["ycoords"]
                    self.same(path, d, *where, "--memory", "16M")
        whole = path.read_bytes()
        at = whole.index(struct.pack(">QI", 7 * 5 * 16 * 2, 64 * 2)) + 12
        path.write_bytes(whole[:at] + b"\xff\xff" + whole[at + 2:])
        self.assertRegex(run("check", path, *where, code=3), r"g/d: the chunk that begins at row 0 is damaged \(at \[0 0 0\]\)")
        with h5py.File(path, "w") as f:  # chunks that were never written are zero
            put_packed(f, "g/d", d["diff3d"], (7, 16, 16), True, until=14)
            f["x"], f["y"] = d["xcoords"], d["ycoords"]
        d["diff3d"][14:] = 0
        self.same(path, d, *where)

    def test_generic_hdf5_crop_and_bin(self):
        d = self.counts()
        frames = np.zeros((30, 40, 37), "u2")
        frames[:, 4:36, 3:35] = np.repeat(np.repeat(d["diff3d"], 2, 1), 2, 2)
        path = self.dir / "a.h5"
        with h5py.File(path, "w") as f:
            f["det/frames"], f["pos/x"], f["pos/y"] = frames, d["xcoords"], d["ycoords"]
            f["both"] = np.stack([d["xcoords"], d["ycoords"]], 1)
        self.assertIn("'det', 'pos'", run("info", path, code=3))
        where = ["--hdf5.data", "det/frames", "--hdf5.x", "pos/x", "--hdf5.y", "pos/y"]
        self.assertIn("40 x 37", run("info", path, *where, code=3))
        cut = ["--crop", "32", "--bin", "2", "--centre_x", "19", "--centre_y", "20"]
        self.same(path, {**d, "diff3d": 4 * d["diff3d"]}, *where, *cut)
        self.same(path, {**d, "diff3d": 4 * d["diff3d"]}, "--hdf5.data", "det/frames", "--hdf5.x", "both", "--hdf5.y", "both", *cut)
        with h5py.File(path, "a") as f:
            f["pos/x"].attrs["units"] = f["pos/y"].attrs["units"] = "um"
            f["pos/x"][:], f["pos/y"][:] = (d[k] * self.pixel * 1e6 for k in ("xcoords", "ycoords"))
        self.same(path, {**d, "diff3d": 4 * d["diff3d"]}, *where, *cut, *self.physics[:-1], "37.5e-6")
        self.assertIn("pixel size", run("info", path, *where, *cut, code=3))
        with h5py.File(path, "a") as f:
            f["pos/x"].attrs["units"] = "nm"
        self.assertIn("different units", run("info", path, *where, *cut, code=3))
        self.same(path, {**d, "diff3d": 4 * d["diff3d"]}, *where, *cut, *self.physics[:-1], "37.5e-6", "--positions.unit", "um")
        with h5py.File(path, "a") as f:
            f["pos/x"].attrs["units"] = f["pos/y"].attrs["units"] = "px"
            f["pos/x"][:], f["pos/y"][:] = d["xcoords"], d["ycoords"]
        self.same(path, {**d, "diff3d": 4 * d["diff3d"]}, *where, *cut, *self.physics)
        self.assertIn("'pos/z'", run("info", path, *where[:4], "--hdf5.y", "pos/z", code=3))
        self.assertIn("--hdf5.y", run("info", path, *where[:4], code=2))
        larger = ["--crop", "48", "--centre_x", "19", "--centre_y", "20"]
        out = self.dir / "large.npz"
        run("convert", path, out, *where, *larger, "--quiet")
        want = np.zeros((30, 48, 48))
        want[:, 4:44, 5:42] = frames
        np.testing.assert_array_equal(np.load(out)["diff3d"], want)
        self.assertIn("amplitudes cannot be binned; expected counts", run("info", path, *where, *cut, "--data.kind", "amplitude", code=3))

    # ---- simulate and check ----

    def test_simulated_patterns_are_those_of_the_model(self):
        flags = ["--size", 96, "--N", 32, "--n_images", 60, "--nphotons", "1e6", "--seed", 5, "--phase", "tanh", "--default_probe_scale", 1.5]
        run("simulate", self.dir / "a.npz", *flags, "--noise", "false", "--units", "counts", "--quiet")
        run("simulate", self.dir / "b.npz", *flags, "--units", "counts", "--quiet")
        run("simulate", self.dir / "c.npz", *flags, "--quiet", "--memory", "16M", "--threads", 2)
        run("simulate", self.dir / "d.npz", *flags, "--quiet", "--threads", 1)
        self.assertEqual((self.dir / "c.npz").read_bytes(), (self.dir / "d.npz").read_bytes())
        a, b, c = (np.load(self.dir / f"{k}.npz") for k in "abc")
        np.random.seed(5)
        buffer = 0.35 * 96
        np.testing.assert_allclose(a["xcoords"], np.random.uniform(buffer, 96 - buffer, 60), rtol=1e-15)
        np.testing.assert_allclose(a["ycoords"], np.random.uniform(buffer, 96 - buffer, 60), rtol=1e-15)
        N = 32
        O, P = np.pad(a["objectGuess"].astype("c16"), N), a["probeGuess"].astype("c16")
        waves = []
        for x, y in zip(a["xcoords"], a["ycoords"]):
            r, s = np.arange(N) + y + N / 2, np.arange(N) + x + N / 2
            i, j = np.floor(r).astype(int), np.floor(s).astype(int)
            u, v = (r - i)[:, None], (s - j)[None]
            O_j = sum(wy * wx * O[np.ix_(i + k, j + m)] for k, wy in ((0, 1 - u), (1, u)) for m, wx in ((0, 1 - v), (1, v)))
            waves.append(P * O_j)
        waves = np.array(waves)
        s = np.sqrt(1e6 / (abs(waves) ** 2).sum((1, 2)).mean())
        A = s * abs(np.fft.fftshift(np.fft.fft2(waves), axes=(1, 2))) / N
        self.assertLess(abs(A - a["diff3d"]).max() / A.max(), 1e-6)
        k = b["diff3d"].astype("f8") ** 2
        self.assertLess(abs(k - np.round(k)).max(), 0.2)
        I = A**2
        bright = I > 20
        self.assertAlmostEqual((((k - I) ** 2) / I)[bright].mean(), 1, 1)
        self.assertAlmostEqual(k.sum() / I.sum(), 1, 3)
        np.testing.assert_allclose(c["diff3d"] * s, b["diff3d"], rtol=2e-6)
        self.assertAlmostEqual(info(self.dir / "c.npz")["mean_counts"] / 1e6, 1, 2)

    def test_scans_and_objects_of_every_kind(self):
        for kind in ("lines", "grf", "points", "diagonals"):
            run("simulate", self.dir / "a.npz", "--object", kind, "--size", 64, "--N", 16, "--n_images", 9, "--quiet")
            self.assertEqual(info(self.dir / "a.npz")["object"], [64, 64])
        for kind in ("raster", "spiral", "fermat"):
            run("simulate", self.dir / "a.npz", "--scan", kind, "--size", 64, "--N", 16, "--n_images", 50, "--quiet")
            got = np.load(self.dir / "a.npz")
            self.assertGreater(got["xcoords"].min(), 4)
            self.assertLess(got["xcoords"].max(), 60)
            self.assertGreater(info(self.dir / "a.npz")["step"], 1.5)
        image = np.random.RandomState(0).rand(40, 50) + 0.5j
        np.save(self.dir / "o.npy", image)
        flags = ["--N", 16, "--n_images", 4, "--quiet", "--object", "image"]
        run("simulate", self.dir / "b.npz", *flags, "--object_file", self.dir / "o.npy")
        np.testing.assert_allclose(np.load(self.dir / "b.npz")["objectGuess"], image.astype("c8"))
        self.assertIn("--object_file", run("simulate", self.dir / "e.npz", *flags, code=2))
        out = self.dir / "folder"
        run("simulate", "--out", out, "--size", 64, "--N", 16, "--n_images", 4)
        self.assertEqual([p.name for p in out.iterdir()], ["scan.npz"])
        text = run("simulate", "--out", self.dir / "none", "--size", 64, "--plan")
        self.assertFalse((self.dir / "none").exists())
        self.assertIn("scan.npz", text)

    def test_check_finds_the_orientation(self):
        d = arrays(N=32)
        np.save(self.dir / "p.npy", d["probeGuess"])
        path = self.dir / "a.npz"
        run("simulate", path, "--N", 32, "--probe_file", self.dir / "p.npy", "--size", 96, "--n_images", 100, "--scan", "raster", "--buffer", 30,
            "--nphotons", "1e6", "--phase", "tanh", "--object_scale", "half", "--quiet")
        got = json.loads(run("check", path, "--json"))
        self.assertEqual((got["best"], got["another_fits_better"], got["warnings"]), (0, False, []))
        for flags, best in ((["--flip_x", "true"], [True, False, False]), (["--positions.sign", "-1"], [True, True, False]),
                            (["--swap_xy", "true"], [False, False, True])):
            got = json.loads(run("check", path, "--json", *flags))
            self.assertTrue(got["another_fits_better"])
            o = got["orientations"][got["best"]]
            self.assertEqual([o["flip_x"], o["flip_y"], o["swap_xy"]], best)
        self.assertIn("--flip_x false --flip_y false --swap_xy false", run("check", path, "--swap_xy", "true", "--flip_x", "true"))
        self.assertIn("fits better", run("check", path, "--flip_x", "true", "--strict", "true", code=3))

    def test_check_doubts_what_is_most_likely_not_meant(self):
        """Files that can be read, and whose pictures would be wrong without a word."""
        path, ok = self.dir / "s.npz", arrays()
        y, x = np.mgrid[:16, :16] - 8
        ok["diff3d"] = (ok["diff3d"] * np.exp(-(x**2 + y**2) / 20)).astype("f4")
        shifted = lambda v: np.fft.fftshift(v, (-2, -1))
        hot = ok["diff3d"].copy()
        hot[7, 3, 4] = 1e4
        counts = np.round(20 * ok["diff3d"]).astype("f4")
        cases = [({}, None), ({"diff3d": counts}, "every amplitude of 'diff3d' is an integer.*--data.kind counts"),
                 ({"diff3d": shifted(ok["diff3d"])}, "in the corners of the patterns"),
                 ({"probeGuess": shifted(ok["probeGuess"])}, "the probe's light is in the corners"),
                 ({"diff3d": hot}, "pattern 7 has .* times the light of the others"),
                 ({"xcoords": ok["xcoords"] * 1e-8, "ycoords": ok["ycoords"] * 1e-8}, "all positions lie within 1.94e-07 pixels"),
                 ({"xcoords": ok["xcoords"] * 30, "ycoords": ok["ycoords"] * 30}, "about .* apart and patterns 16 wide: they do not overlap")]
        for change, want in cases:
            np.savez(path, **{**ok, **change})
            said = run("check", path)
            seen = [line for line in said.splitlines() if line.startswith("warning") and "sign of the pos" not in line
                    and "fits better" not in line]
            self.assertEqual(len(seen), want is not None, said)
            if want:
                self.assertRegex(seen[0], want)
        np.savez(path, **{**ok, "diff3d": counts})
        self.assertNotIn("whole number", run("check", path, "--data.kind", "counts"))

    def test_what_is_packed_or_turned_is_solved_alike(self):
        path = self.dir / "a.npz"
        run("simulate", path, "--size", 96, "--N", 32, "--n_images", 40, "--nphotons", "1e6", "--quiet")
        d = dict(np.load(path))
        results = []
        for k, change in enumerate((d["diff3d"], d["diff3d"], np.asfortranarray(d["diff3d"]), np.moveaxis(d["diff3d"], 0, 2), d["diff3d"][..., None])):
            (np.savez_compressed if k else np.savez)(self.dir / "b.npz", **{**d, "diff3d": change})
            run("solve", self.dir / "b.npz", "--iterations", 2, "--out", self.dir / "r", "--quiet", "--pictures", "false")
            results.append(np.load(self.dir / "r" / "reconstruction.npz")["reconstructed_object"])
            shutil.rmtree(self.dir / "r")
            self.assertTrue(np.array_equal(results[0], results[-1]))
            self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["a.npz", "b.npz"])

    def test_a_stage_and_a_verb_of_one_name(self):
        (self.dir / "job.yaml").write_text("instrument: ptycho\nname: job\noutput_dir: out\nsize: 64\nN: 16\nn_images: 20\niterations: 2\n")
        self.assertIn("--set algorithm=", run("solve", "-c", "job.yaml", "--algorithm", "epie", code=2, cwd=self.dir))
        self.assertIn("--lenient", run("solve", "scan.npz", "--lenient", code=2, cwd=self.dir))
        self.assertIn("config", run("solve", code=2, cwd=self.dir))
        run("data", "-c", "job.yaml", cwd=self.dir)
        run("solve", "-c", "job.yaml", "--set", "algorithm=epie", cwd=self.dir)
        self.assertTrue((self.dir / "out" / "ptycho" / "reconstruction.npz").exists())
        run("solve", "out/ptycho/scan.npz", "-c", "job.yaml", "--set", "algorithm=epie", "--out", "r", "--quiet", cwd=self.dir)
        np.testing.assert_array_equal(*(np.load(self.dir / p / "reconstruction.npz")["reconstructed_object"] for p in ("r", "out/ptycho")))

    def test_large_scans_stay_within_the_budget(self):
        path = self.save(diff3d=np.ones((1500, 64, 64), "f4"), xcoords=np.arange(1500.0), ycoords=np.arange(1500.0),
                         probeGuess=np.ones((64, 64), "c8"), packed=True)
        bad = np.ones((1500, 64, 64), "f4")
        bad[1499, 63, 63] = -1
        other = self.save("b.npz", diff3d=np.moveaxis(bad, 0, 2), xcoords=np.arange(1500.0), ycoords=np.arange(1500.0),
                          probeGuess=np.ones((64, 64), "c8"))
        self.assertEqual(info(path, "--memory", "16M")["patterns"], 1500)
        self.assertIn("[1499 63 63]", run("check", other, "--memory", "16M", code=3))
        self.assertIn("[1499 63 63]", run("convert", other, self.dir / "c.npz", "--memory", "16M", code=3))
        self.assertFalse((self.dir / "c.npz").exists())
        mask = np.ones((64, 64), bool)
        mask[63, 63] = False
        other = self.save("b.npz", diff3d=np.moveaxis(bad, 0, 2), xcoords=np.arange(1500.0), ycoords=np.arange(1500.0),
                          probeGuess=np.ones((64, 64), "c8"), mask=mask)
        run("convert", other, self.dir / "c.npz", "--memory", "16M", "--quiet")
        np.testing.assert_array_equal(np.load(self.dir / "c.npz")["diff3d"], bad)


if __name__ == "__main__":
    unittest.main()
