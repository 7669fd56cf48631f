# peer_spatial_local.py CELLS BATCH FACTORS K RANK GENES THREADS wall|cpu [--device cuda] - a step of lcgp with PyTorch, once per line of input.
#
# The equations as tensor programs write them: rows of the neighbours gathered into [factor batch K rank], batched
# products and Cholesky factors, dense counts of the batch, autograd, Adam over all parameters; f32.
import os
import sys
import time

cells, batch, factors, K, rank, genes, threads = map(int, sys.argv[1:8])
by_cpu = sys.argv[8] == "cpu"
clock = time.process_time if by_cpu else time.perf_counter
with open("/proc/cpuinfo") as f:  # a BLAS older than the processor picks kernels of 2004
    flags = f.read()
if "avx512dq" in flags:
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
elif "avx2" in flags:
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = str(threads)

import torch  # noqa: E402

torch.set_num_threads(threads)
device = sys.argv[10] if sys.argv[9:10] == ["--device"] else "cpu"
on_card = device != "cpu"
if on_card:
    torch.set_default_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
jitter, ell, draws = 1e-5, 8.0, 3
side = int(cells**0.5) + 1
at = torch.arange(cells)
xy = torch.stack([at % side, at // side], 1).float() * (200.0 / side) + 0.1 * torch.rand(cells, 2)
# The nearest places of a grid around each cell: near enough to the K nearest for timing.
reach = torch.arange(-5 - K // 10, 6 + K // 10)
step = torch.stack(torch.meshgrid(reach, reach, indexing="ij"), -1).reshape(-1, 2)
step = step[torch.argsort((step**2).sum(-1))][1:K + 1]
near = (at[:, None] + step[None, :, 0] * side + step[None, :, 1]) % cells
mu = torch.randn(factors, cells, requires_grad=True)
Lam = (0.1 * torch.randn(factors, cells, rank)).requires_grad_()
W = torch.rand(2 * genes, factors) * 0.1
Y = (torch.rand(genes, batch) < 0.03).float()
constant = torch.lgamma(Y + 1).sum()
optimiser = torch.optim.Adam([mu, Lam], lr=2e-3)
eye = torch.eye(K)


def kernel(a, b):
    v = (3**0.5 / ell) * (((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(-1) + 1e-12).sqrt()
    return (1 + v) * torch.exp(-v)


def divergence(idx):
    n = near[idx]
    with torch.no_grad():
        Kn = torch.linalg.cholesky(kernel(xy[n], xy[n]) + jitter * eye)
        kx = kernel(xy[n], xy[idx][:, None])
        a = torch.cholesky_solve(kx, Kn)[..., 0]
        cp = (1 - (kx[..., 0] * a).sum(-1)).clamp(1e-6, 100)
    La, lj = Lam[:, n], Lam[:, idx]
    S = torch.linalg.cholesky(La @ La.mT + jitter * eye)
    w = torch.linalg.solve_triangular(S, La @ lj[..., None], upper=False)
    cq = ((lj**2).sum(-1) - (w[..., 0] ** 2).sum(-1)).clamp(1e-6, 100)
    ep = lj - (a[:, None, :] @ La)[..., 0, :]
    d = mu[:, idx] - (a * mu[:, n]).sum(-1)
    trace = (ep**2).sum(-1) + jitter * (a**2).sum(-1)
    return 0.5 * (torch.log(cp) - torch.log(cq) - 1 + (d**2 + trace) / cp).sum()


for _ in sys.stdin:
    idx = torch.randperm(cells)[:batch].sort().values
    idy = torch.randperm(2 * genes)[:genes].sort().values
    start = clock()
    optimiser.zero_grad()
    f = mu[:, idx]
    s = (Lam[:, idx] ** 2).sum(-1).clamp(1e-3, 100).sqrt()
    phi = torch.exp(f) * torch.exp(torch.randn(draws, factors, batch) * s)
    rho, mean = W[idy] @ phi, torch.exp(f + s**2 / 2)
    fit = (Y * torch.log(rho.clamp(min=1e-8))).sum() / draws - (W[idy] @ mean).sum() - constant
    loss = (cells / batch) * (divergence(idx) - 2.0 * fit)
    loss.backward()
    optimiser.step()
    with torch.no_grad():
        top = ((Y / (rho + 1e-8)) @ phi.mT).mean(0)
        W[idy] = (W[idy] * top / (mean.sum(-1) + 1e-8)).clamp(min=1e-8)
    if on_card:
        torch.cuda.synchronize()
        print(clock() - start, torch.cuda.max_memory_allocated(), flush=True)
        continue
    seconds = clock() - start
    print(seconds / threads if by_cpu else seconds, flush=True)
