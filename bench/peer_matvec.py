# peer_matvec.py right|left ROWS COLUMNS DTYPE wall|cpu THREADS - a case of bench/matvec.c with NumPy, once per line of input.
import os
import sys
import time

side, rows, columns, dtype, clock_name, threads = sys.argv[1:7]
os.environ["OPENBLAS_NUM_THREADS"] = threads

import numpy as np  # noqa: E402 (OpenBLAS reads its threads when it starts)

clock = (lambda: time.process_time() / int(threads)) if clock_name == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
a = rng.random((int(rows), int(columns)), dtype=dtype)
x = rng.random(int(rows if side == "left" else columns), dtype=dtype)
for _ in sys.stdin:
    start = clock()
    x @ a if side == "left" else a @ x
    print(clock() - start, flush=True)
