# peer_spatial.py step|analyze THREADS wall|cpu CELLS GENES FACTORS POINTS BATCH GENE_BATCH [--device cuda]
#
# A step of training, or predictions at all cells, of the inducing-point factor model as they are
# written with PyTorch: kernel matrix, its Cholesky factor and the whitening of Lu in each step,
# dense rates of all genes and cells of the batch, automatic differentiation, Adam, f32. Once per
# line of input; answers with seconds and with the bytes the process grew by at most. On a device all
# tensors are there, TF32 is off, seconds end when it is done, and the bytes are those of its memory.
import os
import resource
import sys

what, threads, clock_name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
cells, genes, factors, points, batch, gene_batch = (int(x) for x in sys.argv[4:10])
with open("/proc/cpuinfo") as f:  # a BLAS older than the processor picks kernels of 2004
    flags = f.read()
if "avx512dq" in flags:
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
elif "avx2" in flags:
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = str(threads)

import time  # noqa: E402

import torch  # noqa: E402

torch.set_num_threads(threads)
device = sys.argv[11] if sys.argv[10:11] == ["--device"] else "cpu"
on_card = device != "cpu"
if on_card:
    torch.set_default_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
clock = time.process_time if clock_name == "cpu" else time.perf_counter
jitter, length, draws = 1e-5, 8.0, 3
X = torch.rand(cells, 2) * 200 - 100
Z = X[:: cells // points][:points].clone()
mu = torch.randn(factors, points).requires_grad_()
raw = (0.01 * torch.randn(factors, points, points)).requires_grad_()
W = torch.rand(genes, factors)


def kernel(a, b):
    r2 = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    v = 3**0.5 / length * torch.sqrt(r2.clamp(min=0) + 1e-12)
    return (1 + v) * torch.exp(-v)


def lower(p):
    return torch.tril(p, -1) + torch.diag_embed(torch.exp(torch.diagonal(p, dim1=1, dim2=2)))


def whiten():
    Lc = torch.linalg.cholesky(kernel(Z, Z) + jitter * torch.eye(points))
    V = torch.linalg.solve_triangular(Lc, lower(raw), upper=False)
    m = torch.linalg.solve_triangular(Lc, mu.T, upper=False)
    return Lc, V, m


def marginals(Lc, V, m, x):
    w = torch.linalg.solve_triangular(Lc, kernel(Z, x), upper=False)
    U = V.transpose(1, 2) @ w  # factor, point, cell
    variance = (1 - (w * w).sum(0)).clamp(min=0) + (U * U).sum(1)
    return m.T @ w, torch.sqrt(variance.clamp(0, 100))


if what == "step":
    density = 0.03
    Y = (torch.rand(gene_batch, batch) < density).float()
    adam = torch.optim.Adam([mu, raw], lr=2e-3)
    scale = genes / gene_batch * cells / batch


def step():
    global W
    idx = torch.randperm(cells)[:batch]
    idy = torch.randperm(genes)[:gene_batch]
    Wb = W[idy]
    Lc, V, m = whiten()
    f, s = marginals(Lc, V, m, X[idx])
    kl = 0.5 * (
        -2 * torch.log(torch.diagonal(V, dim1=1, dim2=2)).sum()
        + (V * V).sum()
        + (m * m).sum()
        - factors * points
    )
    eps = torch.randn(draws, factors, batch)
    phi = torch.exp(f) * torch.exp(eps * s)
    rate = Wb @ phi  # draw, gene, cell
    mean = torch.exp(f + 0.5 * s * s)
    ell = (Y * torch.log(rate.clamp(min=1e-8))).sum() / draws - (Wb @ mean).sum()
    loss = cells / points * kl - scale * ell
    adam.zero_grad()
    loss.backward()
    adam.step()
    with torch.no_grad():
        num = ((Y / (rate + 1e-8)) @ phi.transpose(1, 2)).mean(0)
        W[idy] = (Wb * num / (mean.sum(1) + 1e-8)).clamp(min=1e-8)


@torch.no_grad()
def analyze(chunk=10000):
    Lc, V, m = whiten()
    f, s = torch.empty(factors, cells), torch.empty(factors, cells)
    for i in range(0, cells, chunk):
        f[:, i : i + chunk], s[:, i : i + chunk] = marginals(Lc, V, m, X[i : i + chunk])


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


before = resident()
for _ in sys.stdin:
    start = clock()
    if what == "step":
        step()
    else:
        analyze()
    if on_card:
        torch.cuda.synchronize()
        print(clock() - start, torch.cuda.max_memory_allocated(), flush=True)
        continue
    seconds = (clock() - start) / (threads if clock_name == "cpu" else 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(seconds, max(0, peak - before), flush=True)
