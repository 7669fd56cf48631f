"""Two ranks with one worker each against one rank with one worker, on two cores: rates of a large image and of an analysis.
seconds: 900"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_ranks as r

PAIRS = 5
LEAST = 0.9 # of twice the rate of one rank
SVGP = """instrument: spatial
name: toy
seed: 3
dataset: toy
output_dir: {out}
preprocessing: {{path: {toy}, rescale: false}}
model: {{spatial: true, prior: SVGP, n_components: 10, loadings_mode: multiplicative, lengthscale: 8.0, num_inducing: 1000}}
training: {{max_iter: 2, tol: 0, learning_rate: 2e-3, batch_size: 2000}}
"""


class Rates(r.Case):
    def seconds(self, ranks, *words):
        start = time.monotonic()
        self.call(ranks, *words, "--threads", "1", timeout=600)
        return time.monotonic() - start

    def call(self, ranks, *words, timeout=600):
        command = r.command(ranks)
        if ranks > 1: # a core for each
            command[1:2] = ["--bind-to", "core"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=timeout, cwd=self.root,
                              env={**os.environ, **r.AS_ROOT})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def compare(self, what, *words, before=lambda: None):
        if (os.cpu_count() or 1) < 2:
            self.skipTest("two cores are needed")
        best = {1: float("inf"), 2: float("inf")}
        for _ in range(PAIRS):
            for ranks in (1, 2):
                before()
                best[ranks] = min(best[ranks], self.seconds(ranks, *words))
        gain = best[1] / best[2]
        print(f"{what}: {best[1]:.2f} s on one rank, {best[2]:.2f} s on two, {gain:.2f} times as fast", file=sys.stderr)
        self.assertGreaterEqual(gain, 2 * LEAST)

    def test_an_image_of_a_hundred_domains(self):
        self.compare("bragg 4096^2, 100 domains", "bragg", "-cell", "70", "70", "70", "90", "90", "90", "-N", "5", "-default_F",
                     "100", "-lambda", "1", "-distance", "100", "-pixel", "0.05", "-detpixels", "4096", "-mosaic_spread", "1",
                     "-mosaic_domains", "100", "-floatfile", "f.bin", "-nonoise", "-nopgm", "--device", "cpu")

    def test_an_analysis(self):
        toy, config = os.path.join(self.root, "toy"), os.path.join(self.root, "svgp.yaml")
        self.call(1, "spatial", "toy", "-o", toy, "--cells", "200000", "--genes", "100", "--sampler", "near", "--device", "cpu")
        with open(config, "w") as f:
            f.write(SVGP.format(out=os.path.join(self.root, "out"), toy=toy))
        for stage in ("preprocess", "train"):
            self.call(1, "spatial", stage, "-c", config, "--device", "cpu")
        self.compare("svgp analyze", "spatial", "analyze", "-c", config, "--device", "cpu")


if __name__ == "__main__":
    unittest.main()
