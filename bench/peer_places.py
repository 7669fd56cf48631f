# peer_places.py take|add PLACES TABLE ROW DTYPE wall|cpu - a case of bench/places.c with NumPy, once per line of input.
import sys
import time

import numpy as np

what, places, table, row, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
clock = time.process_time if sys.argv[6] == "cpu" else time.perf_counter
rng = np.random.default_rng(1)
at = rng.integers(0, table, places)


def numbers(n):
    shape = (n, row) if row > 1 else n
    return rng.integers(0, 977, shape) if dtype == "i8" else rng.random(shape, dtype=dtype)


x = numbers(places if what == "add" else table)
y = np.zeros_like(x, shape=(table if what == "add" else places, *x.shape[1:]))


def add():
    y.fill(0)
    np.add.at(y, at, x)


# "clip" is the mode that takes into an array without a buffer
run = add if what == "add" else lambda: np.take(x, at, 0, out=y, mode="clip")
for _ in sys.stdin:
    start = clock()
    run()
    print(clock() - start, flush=True)
