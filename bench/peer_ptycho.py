# peer_ptycho.py lsqml|epie PATTERNS N BATCH THREADS wall|cpu SPAN [--device cuda] - an epoch with PyTorch, once per line of input.
#
# The rules of the solvers as tensor programs write them: patches gathered by index, batched transforms, updates put
# back with index_put; c64. Patterns are random numbers: the clock does not mind.
import os
import sys
import time

algorithm = sys.argv[1]
patterns, n, batch, threads = map(int, sys.argv[2:6])
by_cpu = sys.argv[6] == "cpu"
clock = time.process_time if by_cpu else time.perf_counter
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import torch  # noqa: E402

torch.set_num_threads(threads)
span = int(sys.argv[7])
device = sys.argv[9] if sys.argv[8:9] == ["--device"] else "cpu"
on_card = device != "cpu"
if on_card:
    torch.set_default_device(device)
torch.manual_seed(1)
side = n + span + 2
corner = torch.randint(0, span, (patterns, 2))
amplitude = 10 * torch.rand(patterns, n, n)
y, x = torch.meshgrid(torch.arange(n) - n // 2, torch.arange(n) - n // 2, indexing="ij")
r2 = (x**2 + y**2).float()
probe = torch.exp(-r2 / 700) * torch.exp(1j * r2 / 500)
probe = probe * (amplitude.square().sum((1, 2)).mean().sqrt() / probe.abs().square().sum().sqrt())
obj = torch.ones(side, side, dtype=torch.complex64)
rows = corner[:, 0, None, None] + torch.arange(n)[None, :, None]
cols = corner[:, 1, None, None] + torch.arange(n)[None, None, :]
light = None


def change(patch):
    psi = probe * patch
    wave = torch.fft.fft2(psi, norm="ortho")
    return wave, psi


def project(wave, psi, seen, eps):
    return torch.fft.ifft2(wave * (seen / (wave.abs() + eps)), norm="ortho") - psi


def epie_epoch(order):
    global obj, probe
    for s in range(0, patterns, batch):
        at = order[s : s + batch]
        patch = obj[rows[at], cols[at]]
        chi = project(*change(patch), amplitude[at], 1e-7)
        step = probe.conj() * chi / probe.abs().square().max()
        most = patch.abs().square().amax((1, 2), keepdim=True)
        probe = probe + 0.5 * (patch.conj() * chi / most).mean(0)
        obj.index_put_((rows[at], cols[at]), 0.5 * step, accumulate=True)


def lsqml_epoch(order):
    global obj, probe, light
    now = torch.zeros(side, side)
    now.index_put_((rows, cols), probe.abs().square().expand(patterns, n, n), accumulate=True)
    light = now if light is None else 0.5 * (light + now)
    weight = 1 / (light.square() + (0.1 * light.max()).square()).sqrt()
    for s in range(0, patterns, batch):
        at = order[s : s + batch]
        patch = obj[rows[at], cols[at]]
        chi = project(*change(patch), amplitude[at], 1e-9)
        dp = (patch.conj() * chi).mean(0)
        do = torch.zeros_like(obj)
        do.index_put_((rows[at], cols[at]), probe.conj() * chi, accumulate=True)
        do *= weight
        u, v = do[rows[at], cols[at]] * probe, dp * patch
        a11, a22 = u.abs().square().sum((1, 2)), v.abs().square().sum((1, 2))
        a12 = (u * v.conj()).sum((1, 2))
        b1, b2 = (u.conj() * chi).real.sum((1, 2)), (v.conj() * chi).real.sum((1, 2))
        a11, a22 = a11 + 0.1 * a11.mean(), a22 + 0.1 * a22.mean()
        det = a11 * a22 - a12.abs().square()
        ao = (0.9 * (a22 * b1 - a12.real * b2) / det).clamp(min=0)
        ap = (0.9 * (a11 * b2 - a12.real * b1) / det).clamp(min=0)
        cut = len(at) // 10
        obj += ao.sort().values[cut : len(at) - cut].mean() * do
        probe = probe + ap.mean() * dp


def epoch():
    start = clock()
    with torch.no_grad():
        (lsqml_epoch if algorithm == "lsqml" else epie_epoch)(torch.randperm(patterns))
    if on_card:
        torch.cuda.synchronize()
    return (clock() - start) / (threads if by_cpu else 1)


epoch()
for line in sys.stdin:
    print(epoch(), flush=True)
