# peer_sharpest.py MODE wall|cpu - the sharpest plane of fathom-bench with SciPy, once per line of input.
import sys
import time

import numpy as np
from scipy import ndimage

mode = sys.argv[1]
clock = time.process_time if sys.argv[2] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
stack = rng.integers(0, 1 << 14, (8, 1024, 1024), dtype="u2")
taps, smooth = rng.random(9), rng.random(5)
floats, lines, sharp = (np.zeros(stack.shape, "f4") for _ in range(3))


def both_ways(v, weights, out):
    ndimage.correlate1d(v, weights, axis=2, output=lines, mode=mode)
    ndimage.correlate1d(lines, weights, axis=1, output=out, mode=mode)


for _ in sys.stdin:
    start = clock()
    floats[:] = stack
    both_ways(floats, taps, sharp)
    np.subtract(floats, sharp, out=sharp)
    np.square(sharp, out=sharp)
    both_ways(sharp, smooth, sharp)
    at = sharp.argmax(axis=0)
    best = np.take_along_axis(stack, at[None], axis=0)[0]
    print(clock() - start, flush=True)
