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
flat = x.ravel()
place = np.arange(rows, dtype=np.int64) * 40503 % 65536
ascending = (np.arange(65536) / 65536).astype(dtype)
run = {
    "argmax_last": lambda: x.argmax(1),
    "argmax_first": lambda: x.argmax(0),
    "max_last": lambda: x.max(1),
    "max_first": lambda: x.max(0),
    "sort_rows": lambda: np.sort(x, 1),
    "sort_columns": lambda: np.sort(x, 0),
    "order_rows": lambda: np.argsort(x, 1, kind="stable"),
    "topk_rows": lambda: np.sort(np.partition(x, columns - 10, 1)[:, columns - 10:], 1),
    "median_rows": lambda: np.median(x, 1),
    "median_first": lambda: np.median(x, 0),
    "quantile_rows": lambda: np.quantile(x, 0.9, 1),
    "searchsorted": lambda: np.searchsorted(ascending, flat),
    "cumsum_last": lambda: np.cumsum(x, 1),
    "cumsum_first": lambda: np.cumsum(x, 0),
    "histogram": lambda: np.histogram(flat, 100, (0, 1)),
    "collect_max": lambda: np.maximum.reduceat(x, np.arange(0, rows, 16), 0),
    "collect_argmax": lambda: np.maximum.reduceat(x, np.arange(0, rows, 16), 0),
    "scatter_max": lambda: np.maximum.at(np.zeros((65536, columns), dtype), place, x),
}[name]
for _ in sys.stdin:
    start = clock()
    run()
    print(clock() - start, flush=True)
