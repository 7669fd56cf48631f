"""What splat writes for others: depth against NumPy, a video walked chunk by chunk, a page whose rows are those of a
.splat, SOG members, and the same model through every format.
seconds: 20"""
import base64
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

import numpy as np

from test_splat import call, golden, write_golden


def walk(data, at, end):
    """Chunks of a RIFF file: name, kind of a list, first byte, length."""
    while at < end:
        name, n = struct.unpack("<4sI", data[at:at + 8])
        kind = data[at + 8:at + 12] if name in (b"RIFF", b"LIST") else None
        yield name, kind, at + 8, n
        if kind:
            yield from walk(data, at + 12, at + 8 + n)
        at += 8 + n + n % 2


def blend_depth():
    """The sum of weight times depth of the golden view, in double, from its projected Gaussians."""
    m2, conic, op, depth = (golden("fwd_deg3_" + k) for k in ("m2", "conic", "op", "depth"))
    seen = golden("fwd_deg3_n_tiles") > 0
    j, i = np.meshgrid(np.arange(50) + 0.5, np.arange(42) + 0.5)
    left, sums, stopped = np.ones((42, 50)), np.zeros((42, 50)), np.zeros((42, 50), bool)
    for g in np.argsort(depth, kind="stable"):
        if not seen[g]:
            continue
        dx, dy = m2[g, 0] - j, m2[g, 1] - i
        a, b, c = conic[g]
        sigma = 0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy
        alpha = np.minimum(op[g] * np.exp(-sigma), 0.999)
        use = (sigma >= 0) & (alpha >= 1 / 255) & ~stopped
        stopped |= use & (left * (1 - alpha) < 1e-4)
        use &= ~stopped
        sums += np.where(use, left * alpha * depth[g], 0)
        left *= np.where(use, 1 - alpha, 1)
    return sums, 1 - left


class SplatFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        done = call("toy", "-o", "toy", "--views", 5, "--size", "61x47", "--gaussians", 1500, cwd=cls.dir)
        assert done.returncode == 0, done.stderr
        (cls.dir / "golden").mkdir()
        write_golden(cls.dir / "golden")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def must(self, *words):
        done = call(*words, cwd=self.dir)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def test_depth_is_weight_times_depth(self):
        want, alpha = blend_depth()
        self.assertLess(np.abs(alpha - golden("fwd_deg3_alpha")).max(), 1e-9)  # the oracle is right
        self.must("render", "golden/model.ply", "-d", "golden", "-o", "d", "--depth", "--alpha", "--bg", "0.3,0.4,0.5")
        got = np.load(self.dir / "d/images/view_00_depth.npy")
        self.assertEqual((got.shape, got.dtype), ((42, 50), np.float32))
        self.assertLess(np.abs(got - want).max(), 2e-5 * want.max())
        self.must("render", "golden/model.ply", "-d", "golden", "-o", "e", "--render-mode", "ED")
        self.assertFalse((self.dir / "e/images/view_00.npy").exists())  # depth alone
        expected = np.load(self.dir / "e/images/view_00_depth.npy")
        seen = alpha > 1e-3
        self.assertLess(np.abs(expected - want / np.maximum(alpha, 1e-10))[seen].max(), 1e-4 * want.max())

    def test_a_video_is_its_pictures(self):
        self.must("render", "toy/truth.ply", "-d", "toy", "-o", "j", "--format", "jpg", "--video", "tour.avi", "--fps", 12)
        data = (self.dir / "tour.avi").read_bytes()
        parts = list(walk(data, 0, len(data)))
        self.assertEqual([p[:2] for p in parts[:2]], [(b"RIFF", b"AVI "), (b"LIST", b"hdrl")])
        self.assertEqual(parts[0][3], len(data) - 8)
        head = {p[0]: data[p[2]:p[2] + p[3]] for p in parts}
        fields = struct.unpack("<10I", head[b"avih"][:40])
        self.assertEqual((fields[0], fields[4], fields[8], fields[9]), (1000000 // 12, 5, 61, 47))
        self.assertEqual(head[b"strh"][:8], b"vidsMJPG")
        self.assertEqual(struct.unpack("<II", head[b"strh"][20:28]), (1, 12))
        self.assertEqual(struct.unpack("<Iii", head[b"strf"][:12]), (40, 61, 47))
        frames = [p for p in parts if p[0] == b"00dc"]
        pictures = [data[at:at + n] for _, _, at, n in frames]
        self.assertEqual(pictures, [(self.dir / f"j/view_{v:04}.jpg").read_bytes() for v in range(5)])
        movi = next(p[2] for p in parts if p[1] == b"movi")
        index = np.frombuffer(head[b"idx1"], "<u4").reshape(-1, 4)
        self.assertEqual([(movi + at + 8, n) for _, _, at, n in index.tolist()], [p[2:] for p in frames])
        self.must("render", "toy/truth.ply", "-d", "toy", "--video", "orbit.avi", "--orbit", 7)
        data = (self.dir / "orbit.avi").read_bytes()
        self.assertEqual(sum(p[0] == b"00dc" for p in walk(data, 0, len(data))), 7)
        bad = call("render", "toy/truth.ply", "-d", "toy", "--video", "no.avi", "--orbit", 0, cwd=self.dir)
        self.assertEqual(bad.returncode, 2)
        self.assertFalse((self.dir / "no.avi").exists())

    def test_a_page_holds_the_model_and_a_viewer(self):
        self.must("convert", "toy/truth.ply", "a.splat")
        self.must("convert", "toy/truth.ply", "a.html")
        text = (self.dir / "a.html").read_text()
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.S)
        self.assertEqual(len(scripts), 2)
        self.assertEqual(base64.b64decode(scripts[0][1], validate=True), (self.dir / "a.splat").read_bytes())
        self.assertNotRegex(text, r"https?://|\bimport\b|src=|href=")  # nothing comes from elsewhere
        for word in ("webgl2", "new Worker(", "pointermove", "wheel", "gl.drawArraysInstanced"):
            self.assertIn(word, scripts[1][1])
        self.assertTrue(text.rstrip().endswith("</html>"))
        if shutil.which("node"):
            (self.dir / "viewer.js").write_text(scripts[1][1])
            done = subprocess.run(["node", "--check", "viewer.js"], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_formats_look_alike(self):
        self.must("render", "toy/truth.ply", "-d", "toy", "-o", "first", "--views", "test", "--test-every", 5)
        want = np.load(self.dir / "first/view_0000.npy")
        for name, most in (("m.ply", 0), ("m.spz", 0.02), ("m.sog", 0.02), ("m/meta.json", 0.02)):
            self.must("convert", "toy/truth.ply", name)
            about = json.loads(self.must("info", name, "--json"))
            self.assertEqual((about["gaussians"], about["sh_degree"]), (1500, 1), name)
            self.must("render", name, "-d", "toy", "-o", "again", "--views", "test", "--test-every", 5)
            error = np.sqrt(np.mean((np.load(self.dir / "again/view_0000.npy") - want) ** 2))
            self.assertLessEqual(error, most, name)
        self.assertEqual(json.loads(self.must("info", "m", "--json"))["gaussians"], 1500)  # a folder

    def test_a_planned_conversion_fits_its_memory(self):
        self.must("toy", "-o", "large", "--views", 1, "--size", "16x16", "--gaussians", 70000)
        for name in ("l.ply", "l.splat", "l.spz", "l.sog", "l.html"):
            plan = json.loads(self.must("convert", "large/truth.ply", name, "--plan", "--json"))
            self.assertFalse((self.dir / name).exists())
            self.must("convert", "large/truth.ply", name, "--memory", plan["planned_bytes"])
        bad = call("convert", "large/truth.ply", "no.sog", "--memory", "5M", cwd=self.dir)
        self.assertEqual(bad.returncode, 4, bad.stderr)
        self.assertFalse((self.dir / "no.sog").exists())

    def test_members_of_a_sog(self):
        self.must("convert", "toy/truth.ply", "z.sog")
        with zipfile.ZipFile(self.dir / "z.sog") as z:
            self.assertIsNone(z.testzip())
            meta = json.loads(z.read("meta.json"))
            files = [f for part in meta.values() if isinstance(part, dict) for f in part["files"]]
            self.assertEqual(sorted(files + ["meta.json"]), sorted(z.namelist()))
            for name in files:
                head = z.read(name)[:25]
                self.assertEqual((head[:4], head[8:16]), (b"RIFF", b"WEBPVP8L"))
                bits, = struct.unpack("<I", head[21:25])
                size = (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1
                palette = (64 * 3, -(-meta["shN"]["count"] // 64))
                self.assertEqual(size, palette if name == "shN_centroids.webp" else (40, 40), name)
        self.assertEqual((meta["version"], meta["count"], meta["shN"]["bands"], meta["shN"]["count"]), (2, 1500, 1, 1024))
        self.assertEqual([len(meta[k]["codebook"]) for k in ("scales", "sh0", "shN")], [256] * 3)


if __name__ == "__main__":
    unittest.main()
