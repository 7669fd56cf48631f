# peer_filter.py SIDE TAPS MODE wall|cpu lines|square|dilation|erosion - the filters of fathom-bench with SciPy, once per line of input.
import sys
import time

import numpy as np
from scipy import ndimage

side, taps, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
clock = time.process_time if sys.argv[4] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
image, weights = rng.random((side, side), dtype="f4"), rng.random(taps)
square = rng.random((taps, taps))
truths, block = image < 0.9, np.ones((taps, taps), bool)
lines, out = np.zeros_like(image), np.zeros_like(image)
for _ in sys.stdin:
    start = clock()
    if sys.argv[5] == "square":
        ndimage.correlate(image, square, output=out, mode=mode)
    elif sys.argv[5] == "dilation":
        ndimage.maximum_filter1d(image, taps, axis=1, output=out, mode=mode)
    elif sys.argv[5] == "erosion":
        ndimage.binary_erosion(truths, block, border_value=1)
    else:
        ndimage.correlate1d(image, weights, axis=1, output=lines, mode=mode)
        ndimage.correlate1d(lines, weights, axis=0, output=out, mode=mode)
    print(clock() - start, flush=True)
