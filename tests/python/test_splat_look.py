"""Masks, alpha and colours of images in the training of splat: what lies under a mask changes no byte, alpha is learned,
scores are of what is kept, what is said of masks that are not there; bilateral grids take up the colours of images, give the
same bytes however a training runs, and resume.
seconds: 15"""
import json
import pathlib
import shutil
import struct
import tempfile
import unittest
import zlib

import numpy as np
from test_splat import read_safetensors
from test_splat_train import call, rows_of

VIEWS, WIDTH, HEIGHT = 8, 48, 40
SHORT = ["-i", 60, "--sh-degree", 1, "--set", "sh_degree_interval=20", "--set", "start_refine=20", "--set",
         "refine_every=20", "--set", "stop_refine=50", "--max-cap", 600, "--quiet"]
MODEL, STATE = "splat_60.ply", "checkpoints/model.safetensors"


def write_png(path, image):
    """u8 [i j] or [i j c], stored: files of one shape have one size."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = image.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[image.shape[2] if image.ndim == 3 else 1]
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in image), 0)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)) +
                     chunk(b"IDAT", packed) + chunk(b"IEND", b""))


class Look(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.kept.name)
        for words in (["toy", "-o", "toy", "--views", VIEWS, "--size", f"{WIDTH}x{HEIGHT}", "--gaussians", 300],
                      ["render", "toy/truth.ply", "-d", "toy", "-o", "truth", "--alpha"]):
            done = call("splat", *words, cwd=cls.dir)
            assert done.returncode == 0, done.stderr
        cls.images = [np.load(cls.dir / f"truth/view_{v:04}.npy") for v in range(VIEWS)]
        cls.alphas = [np.load(cls.dir / f"truth/view_{v:04}_alpha.npy") for v in range(VIEWS)]
        rng = np.random.default_rng(0)
        cls.masks = [np.full((HEIGHT, WIDTH), 255, np.uint8) for v in range(VIEWS)]
        for m in cls.masks:
            y, x = rng.integers(0, 20, 2)
            m[y:y + 12, x:x + 18] = 127
        cls.garbage = [rng.integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8) for v in range(VIEWS)]

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def capture(self, name, images, masks=()):
        """The toy with other images, and masks."""
        shutil.copytree(self.dir / "toy", self.dir / name)
        for v, image in enumerate(images):
            write_png(self.dir / f"{name}/images/view_{v:04}.png", image)
        for v, mask in enumerate(masks):
            write_png(self.dir / f"{name}/masks/view_{v:04}.png", mask)

    def bytes_of(self, v):
        return np.rint(np.clip(self.images[v], 0, 1) * 255).astype(np.uint8)

    def train(self, data, out, *more, code=0):
        done = call("splat", "train", "-d", data, "-o", out, *SHORT, *more, cwd=self.dir)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def same(self, a, b, *files):
        for name in files or (MODEL, STATE, "loss.csv"):
            self.assertEqual((self.dir / a / name).read_bytes(), (self.dir / b / name).read_bytes(), f"{b}/{name}")

    def test_masks(self):
        plain = [self.bytes_of(v) for v in range(VIEWS)]
        spoiled = [np.where(self.masks[v][..., None] < 128, self.garbage[v], plain[v]) for v in range(VIEWS)]
        self.capture("clean", plain, self.masks)
        self.capture("spoiled", spoiled, self.masks)
        for strategy in ("default", "mcmc"):
            self.train("clean", f"clean_{strategy}", "--strategy", strategy)
            done = self.train("spoiled", f"spoiled_{strategy}", "--strategy", strategy, "--threads", 1, "--memory", "160M")
            self.same(f"clean_{strategy}", f"spoiled_{strategy}")
        self.train("spoiled", "bare", "--masks", "none")
        self.assertNotEqual((self.dir / "bare" / MODEL).read_bytes(), (self.dir / "clean_mcmc" / MODEL).read_bytes())
        # alpha as a mask is the same mask
        self.capture("cut", [np.dstack([spoiled[v], self.masks[v]]) for v in range(VIEWS)])
        self.train("cut", "cut_out", "--alpha", "mask")
        self.same("clean_mcmc", "cut_out", MODEL, "loss.csv")
        self.masks_by_name(spoiled)
        done = call("splat", "train", "-d", "clean", "-o", "said", "-i", 1, cwd=self.dir)
        self.assertIn(f"masks of {VIEWS} of {VIEWS} views are used", done.stdout + done.stderr)
        self.scores(spoiled)
        self.gradients()
        self.mistakes()

    def masks_by_name(self, spoiled):
        """mask_path of a transforms.json, without a folder of masks, is as good as the folder."""
        self.train("clean", "posed", "--pose-opt", "direct", "--pose-lr", 0)  # writes the cameras
        for name in ("held", "bare"):
            shutil.copytree(self.dir / "toy", self.dir / f"by_{name}", ignore=shutil.ignore_patterns("sparse"))
            cameras = json.loads((self.dir / "posed/cameras_60.json").read_text())
            for v, frame in enumerate(cameras["frames"]):
                frame["file_path"] = f"images/{frame['file_path']}"
                write_png(self.dir / f"by_{name}/images/view_{v:04}.png", spoiled[v])
                write_png(self.dir / f"by_{name}/held/cover_{v}.png", self.masks[v])
                if name == "held":
                    frame["mask_path"] = f"held/cover_{v}.png"
            cameras["ply_file_path"] = "sparse_pc.ply"
            (self.dir / f"by_{name}/transforms.json").write_text(json.dumps(cameras))
            (self.dir / f"by_{name}/sparse_pc.ply").write_text(
                "ply\nformat ascii 1.0\nelement vertex 60\nproperty float x\nproperty float y\nproperty float z\nend_header\n" +
                "".join(f"{np.cos(i)} {np.sin(3 * i)} {np.sin(i)}\n" for i in range(60)))
        for words in (["--seed", 1], ["--seed", 1, "--masks", "none"]):
            self.train("by_held", f"out_{len(words)}", *words)
        self.train("by_bare", "out_bare", "--seed", 1)
        files = [(self.dir / out / MODEL).read_bytes() for out in ("out_2", "out_4", "out_bare")]
        self.assertTrue(files[0] != files[2] and files[1] == files[2])

    def scores(self, spoiled):
        words = ["-d", "spoiled", "--views", "all", "--json"]
        done = call("splat", "render", f"clean_mcmc/{MODEL}", "-d", "toy", "-o", "seen", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        for masks in ("masks", "none"):
            done = call("splat", "eval", f"clean_mcmc/{MODEL}", "-o", f"scores_{masks}", *words, "--masks", masks, cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
            for v, row in enumerate(rows_of(self.dir / f"scores_{masks}/metrics_views.csv")):
                image = np.clip(np.load(self.dir / f"seen/view_{v:04}.npy").astype(float), 0, 1)
                apart = (image - spoiled[v] / 255) ** 2
                want = apart[self.masks[v] >= 128].mean() if masks == "masks" else apart.mean()
                self.assertAlmostEqual(float(row["psnr"]), -10 * np.log10(want), places=4)
        done = call("splat", "eval", f"clean_mcmc/{MODEL}", "-o", "scores_far", *words, "--masks", self.dir / "spoiled/masks", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        far, beside = (rows_of(self.dir / f"scores_{m}/metrics.csv")[0] for m in ("far", "masks"))
        self.assertEqual((far["psnr"], far["ssim"]), (beside["psnr"], beside["ssim"]))
        with_masks, without = (rows_of(self.dir / f"scores_{m}/metrics.csv")[0] for m in ("masks", "none"))
        self.assertGreater(float(with_masks["psnr"]), float(without["psnr"]) + 1)
        self.assertGreater(float(with_masks["ssim"]), float(without["ssim"]) + 0.05)

    def slopes(self, data, out, *more):
        done = call("splat", "render", "toy/truth.ply", "-d", data, "-o", out, "--gradients", *more, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(self.dir / out / f"view_{v:04}_gradients.safetensors").read_bytes() for v in range(VIEWS)]

    def gradients(self):
        """render --gradients leaves out what training leaves out."""
        clean = self.slopes("clean", "slopes")
        # what differs is not shown: a list of long bytes takes minutes to compare line by line
        self.assertTrue(self.slopes("spoiled", "slopes_spoiled") == clean)
        self.assertTrue(self.slopes("cut", "slopes_cut", "--image-alpha", "mask") == clean)
        for a, b in zip(self.slopes("spoiled", "slopes_bare", "--masks", "none"), clean):
            self.assertNotEqual(a, b)
        done = call("splat", "render", "toy/truth.ply", "-d", "clean", "-o", "wrong", "--masks", "masks", cwd=self.dir)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--masks applies to targets, which only --gradients has", done.stderr)

    def mistakes(self):
        (self.dir / "clean/empty").mkdir()
        for name, text in (("nowhere", "clean/nowhere: expected a folder of masks for 8 views"),
                           ("empty", "clean/empty: expected masks named after the images, as view_0000 or view_0000.png")):
            done = self.train("clean", "wrong", "--masks", name, code=3)
            self.assertIn(text, done.stderr)
        done = self.train("clean", "wrong", "--masks", "/nowhere/masks", code=3)
        self.assertIn(" /nowhere/masks: expected a folder of masks", done.stderr)
        write_png(self.dir / "spoiled/masks/view_0000.png", np.zeros((HEIGHT, WIDTH), np.uint8))
        done = call("splat", "eval", f"clean_mcmc/{MODEL}", "-d", "spoiled", "-o", "wrong", cwd=self.dir)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("masks/view_0000.png: expected pixels to compare", done.stderr)
        (self.dir / "spoiled/masks/view_0001.png").write_bytes(b"no image")
        done = self.train("spoiled", "wrong", code=3)
        self.assertIn("masks/view_0001.png", done.stderr)
        write_png(self.dir / "spoiled/masks/view_0001.png", np.full((HEIGHT // 2, WIDTH // 2), 255, np.uint8))
        self.train("spoiled", "half")  # of another size; a view of which nothing is kept

    def test_alpha_is_learned(self):
        colours = []
        for v in range(VIEWS):
            a = np.clip(self.alphas[v], 1 / 255, 1)[..., None]
            rgb = np.where(a > 0.02, np.clip(self.images[v] / a, 0, 1), self.garbage[v] / 255)
            colours.append(np.rint(255 * np.dstack([rgb, self.alphas[v]])).astype(np.uint8))
        self.capture("clear", colours)
        far = {}
        for mode in ("ignore", "background"):
            self.train("clear", mode, "--alpha", mode, "--bg", "0.2,0.5,0.9", "--strategy", "default")
            done = call("splat", "render", f"{mode}/{MODEL}", "-d", "toy", "-o", f"{mode}_seen", "--alpha", cwd=self.dir)
            self.assertEqual(done.returncode, 0, done.stderr)
            far[mode] = np.mean([np.abs(np.load(self.dir / f"{mode}_seen/view_{v:04}_alpha.npy") - self.alphas[v]).mean()
                                 for v in range(VIEWS)])
        self.assertLess(far["background"], 0.6 * far["ignore"], far)
        self.train("clear", "again", "--alpha", "background", "--bg", "0.2,0.5,0.9", "--strategy", "default", "--threads", 1,
                   "--memory", "160M")
        self.same("background", "again")
        rows = rows_of(self.dir / "background/loss.csv")
        self.assertGreater(float(rows[0]["loss"]), 0.8 * float(rows[0]["l1"]) + 0.2 * (1 - float(rows[0]["ssim"])) + 0.003)
        # the loss of render --gradients is that of training
        shown = ["--bg", "0.2,0.5,0.9", "--lambda-alpha", 0.3]
        self.train("clear", "first", "--init-ply", "toy/truth.ply", "--strategy", "default", "--alpha", "background", *shown)
        self.slopes("clear", "slopes_clear", "--image-alpha", "background", *shown)
        row = rows_of(self.dir / "first/loss.csv")[0]
        got = read_safetensors(self.dir / f"slopes_clear/view_{int(row['view']):04}_gradients.safetensors")["loss"]
        np.testing.assert_allclose(got, [float(row[k]) for k in ("loss", "l1", "ssim")], rtol=1e-6)
        self.assertGreater(got[0], 0.8 * got[1] + 0.2 * (1 - got[2]) + 1e-4)
        done = call("splat", "eval", f"background/{MODEL}", "-d", "clear", "-o", "clear_scores", "--alpha", "background", "--bg",
                    "0.2,0.5,0.9", "--json", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["psnr"], 15)

    def cast(self, name):
        """Images to train on have other colours each; those of test views have their own."""
        images = []
        for v in range(VIEWS):
            gain = 1 + 0.35 * np.sin(2.4 * v + 2 * np.arange(3)) if v % 4 else 1
            images.append(np.rint(np.clip(self.images[v] * gain + (0.05 * np.cos(v) if v % 4 else 0), 0, 1) * 255))
        self.capture(name, [i.astype(np.uint8) for i in images])

    def test_grids_take_up_colours(self):
        self.cast("cast")
        words = ["--init-ply", "toy/truth.ply", "--strategy", "default", "--set", "start_refine=100000", "--eval", "--test-every", 4]
        psnr = {}
        for name, more in (("fixed", []), ("free", ["--bilateral-grid", "--set", "bilateral_grid_lr=0.1", "--set",
                                                    "bilateral_grid_X=4", "--set", "bilateral_grid_Y=3"])):
            self.train("cast", name, *words, *more, "--set", "eval_steps=[60]")
            psnr[name] = float(rows_of(self.dir / name / "metrics.csv")[-1]["psnr"])
        self.assertGreater(psnr["free"], psnr["fixed"] + 2, psnr)
        state = read_safetensors(self.dir / "free" / STATE)
        self.assertEqual(state["bilateral_grid"].shape, (6, 12, 8, 3, 4))  # one for each view to train on
        self.assertEqual(state["steps.bilateral_grid"], [59])
        identity = np.eye(3, 4).reshape(1, 12, 1, 1, 1)
        self.assertTrue(np.all(np.abs(state["bilateral_grid"] - identity).max((1, 2, 3, 4)) > 0.05))
        self.assertTrue(np.isfinite(state["second.bilateral_grid"]).all())
        self.assertEqual(read_ply_head(self.dir / "free" / MODEL), read_ply_head(self.dir / "fixed" / MODEL))
        rows = rows_of(self.dir / "free/loss.csv")
        self.assertGreater(float(rows[-1]["loss"]), 0.8 * float(rows[-1]["l1"]) + 0.2 * (1 - float(rows[-1]["ssim"])) + 1e-6)

    def test_grids_have_the_same_bytes(self):
        self.cast("shades")
        for strategy in ("default", "mcmc"):
            words = ["--strategy", strategy, "--bilateral-grid", "--checkpoint-every", 20]
            self.train("shades", f"one_{strategy}", *words)
            self.train("shades", f"two_{strategy}", *words, "--threads", 1, "--memory", "160M")
            self.same(f"one_{strategy}", f"two_{strategy}")
            for _ in range(3):  # an iteration each
                done = self.train("shades", f"three_{strategy}", *words, "--max-minutes", 1e-9, code=6)
                self.assertIn("the same command resumes", done.stderr)
            self.train("shades", f"three_{strategy}", *words)
            self.same(f"one_{strategy}", f"three_{strategy}")
        self.train("shades", "without")
        self.assertNotEqual((self.dir / "without" / MODEL).read_bytes(), (self.dir / "one_mcmc" / MODEL).read_bytes())
        # a training without grids may go on with some, one with them not with grids of another size
        more = [w for w in SHORT if w not in ("-i", 60)]
        for start, code in (("without", 0), ("one_mcmc", 3)):
            done = call("splat", "train", "-d", "shades", "-o", f"on_{start}", *more, "-i", 70, "--resume", f"{start}/{STATE}",
                        "--bilateral-grid", "--set", "bilateral_grid_W=5", cwd=self.dir)
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("bilateral_grid", done.stderr)


def read_ply_head(path):
    return [line for line in path.read_bytes().split(b"end_header\n")[0].splitlines() if line.startswith(b"property")]


if __name__ == "__main__":
    unittest.main()
