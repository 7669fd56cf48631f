# peer_numpy.py N wall|cpu - the chain of fathom-bench with NumPy, one buffer, once per line of input.
import sys
import time

import numpy as np

n = int(sys.argv[1])
clock = time.process_time if sys.argv[2] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
x, y = rng.random(n, dtype="f4"), rng.random(n, dtype="f4")
t = np.zeros_like(x)
for _ in sys.stdin:
    start = clock()
    np.multiply(x, y, out=t)
    np.add(t, np.float32(0.5), out=t)
    np.multiply(t, t, out=t)
    np.multiply(t, np.float32(-0.5), out=t)
    np.exp(t, out=t)
    np.multiply(t, x, out=t)
    np.add(t, y, out=t)
    np.maximum(t, np.float32(0), out=t)
    print(clock() - start, flush=True)
