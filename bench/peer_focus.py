# peer_focus.py morphseq|log|log-smooth THREADS wall|cpu PLANES ROWS COLUMNS
#
# One stack fused in the public ways, with percentiles, metrics and an image of 8 bits: `morphseq`
# is MorphSeq's Build01 (NumPy, and two conv2d of PyTorch), the others are what one writes with
# OpenCV. Once per line of input; answers with seconds.
import os
import sys

way, threads, clock_name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
planes, rows, columns = (int(x) for x in sys.argv[4:7])
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = str(threads)

import time  # noqa: E402

import numpy as np  # noqa: E402

clock = time.process_time if clock_name == "cpu" else time.perf_counter

# The texture of focus.c: each column has its sharp plane.
rng = np.random.default_rng(1)
sharp = np.arange(columns) * planes // columns
off = np.abs(np.arange(planes)[:, None] - sharp)
noise = rng.integers(0, 4096, (planes, rows, columns), dtype=np.int32) // (1 + off[:, None, :])
stack = (2000 + np.arange(columns) + noise).astype(np.uint16)
del noise


def correlations(stack):
    found = []
    before = None
    for plane in stack:
        a = plane.astype(np.float32)
        a = (a - a.mean()) / (a.std() + 1e-8)
        if before is not None:
            found.append(float(np.dot(a.ravel(), before.ravel()) / a.size))
        before = a
    return found


def morphseq():
    g = torch.tensor([1.0, 2.0, 1.0]) / 4
    gauss = torch.outer(g, g)[None, None]
    laplace = torch.tensor([[2.0, 0, 2], [0, -8, 0], [2, 0, 2]])[None, None]

    def fuse():
        some = stack.ravel()[:: max(1, stack.size // 1000000)]
        lo, hi = np.percentile(some, [0.01, 99.99])
        scaled = ((np.clip(stack, lo, hi) - lo) / (hi - lo) * 65535).astype(np.uint16)
        t = torch.from_numpy(scaled.astype(np.float32))[:, None]
        energy = conv2d(conv2d(t, gauss, padding=1), laplace, padding=1).abs()[:, 0]
        index = energy.argmax(0)
        image = t[:, 0].gather(0, index[None])[0].clamp(0, 65535).numpy().astype(np.uint16)
        return image >> 8, energy.mean((1, 2)), correlations(scaled)

    return fuse


def by_opencv(sigma):
    def percentile(counts, q):
        h = (stack.size - 1) * q / 100
        return np.searchsorted(counts, np.floor(h), side="right")

    def fuse():
        counts = np.zeros((65536, 1), np.float32)
        best = index = image = None
        means = []
        for z, plane in enumerate(stack):
            counts += cv2.calcHist([plane], [0], None, [65536], [0, 65536])
            blurred = cv2.sepFilter2D(plane, cv2.CV_32F, half, half, borderType=cv2.BORDER_REPLICATE)
            energy = cv2.filter2D(blurred, cv2.CV_32F, laplace, borderType=cv2.BORDER_REPLICATE)
            energy = cv2.absdiff(energy, 0)
            means.append(cv2.mean(energy)[0])
            if sigma:
                energy = cv2.GaussianBlur(energy, (17, 17), sigma, borderType=cv2.BORDER_REFLECT)
            if z == 0:
                best, image, index = energy, plane.copy(), np.zeros(plane.shape, np.uint8)
                continue
            more = cv2.compare(energy, best, cv2.CMP_GT)
            cv2.copyTo(plane, more, image)
            cv2.max(energy, best, best)
            index[more > 0] = z
        total = np.cumsum(counts[:, 0], dtype=np.float64)
        lo, hi = percentile(total, 0.01), percentile(total, 99.99)
        scale = 255.0 / max(1, hi - lo)
        return cv2.convertScaleAbs(image, alpha=scale, beta=-lo * scale), index, means, correlations(stack)

    half = np.array([1, 2, 1], np.float32) / 4
    laplace = np.array([[2, 0, 2], [0, -8, 0], [2, 0, 2]], np.float32)
    return fuse


if way == "morphseq":
    import torch
    from torch.nn.functional import conv2d

    torch.set_num_threads(threads)
    fuse = morphseq()
else:
    import cv2

    cv2.setNumThreads(threads)
    fuse = by_opencv({"log": 0, "log-smooth": 2.0}[way])

for _ in sys.stdin:
    start = clock()
    fuse()
    print(clock() - start, flush=True)
