# peer_order.py NAME ROWS COLUMNS DTYPE wall|cpu - a case of bench/order.c with NumPy, once per line of input.
import sys
import time

import numpy as np

name, rows, columns, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
clock = time.process_time if sys.argv[5] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
if dtype.startswith("f"):
    x = rng.random((rows, columns), dtype=dtype)
else:
    x = rng.integers(0, np.iinfo(dtype).max, (rows, columns), dtype=dtype)
run = {"argmax_last": lambda: x.argmax(1), "max_first": lambda: x.max(0), "sort_rows": lambda: np.sort(x, 1),
       "order_rows": lambda: np.argsort(x, 1, kind="stable")}[name]
for _ in sys.stdin:
    start = clock()
    run()
    print(clock() - start, flush=True)
