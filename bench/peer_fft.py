# peer_fft.py SHAPE DTYPE THREADS wall|cpu - a case of bench/fft.c with PyTorch, once per line of input: the first number of
# SHAPE (as 32x512x512) is a batch.
import sys
import time

import torch

shape = [int(n) for n in sys.argv[1].split("x")]
dtype = {"c64": torch.complex64, "c128": torch.complex128, "f32": torch.float32, "f64": torch.float64}[sys.argv[2]]
threads = int(sys.argv[3])
torch.set_num_threads(threads)
x = torch.randn(shape, dtype=dtype)
axes = tuple(range(1, len(shape)))
transform = torch.fft.fftn if dtype.is_complex else torch.fft.rfftn
clock = (lambda: time.process_time() / threads) if sys.argv[4] == "cpu" else time.perf_counter
y = None
for _ in sys.stdin:
    start = clock()
    y = transform(x, dim=axes, out=y) if y is not None else transform(x, dim=axes)
    print(clock() - start, flush=True)
