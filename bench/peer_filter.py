# peer_filter.py SIDE TAPS MODE wall|cpu lines|square - the filters of fathom-bench with SciPy, once per line of input.
import sys
import time

import numpy as np
from scipy import ndimage

side, taps, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
clock = time.process_time if sys.argv[4] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
image, weights = rng.random((side, side), dtype="f4"), rng.random(taps)
square = rng.random((taps, taps))
lines, out = np.zeros_like(image), np.zeros_like(image)
for _ in sys.stdin:
    start = clock()
    if sys.argv[5] == "square":
        ndimage.correlate(image, square, output=out, mode=mode)
    else:
        ndimage.correlate1d(image, weights, axis=1, output=lines, mode=mode)
        ndimage.correlate1d(lines, weights, axis=0, output=out, mode=mode)
    print(clock() - start, flush=True)
