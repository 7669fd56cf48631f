# peer_ptycho_net.py train|infer GROUPS THREADS wall|cpu [--device cuda] - a step of ptycho's network with PyTorch, or
# a pass without gradients, once per line of input.
#
# N 64, four patterns a group, n_filters_scale 2, the heads of TensorFlow's flavour: convolutions by the library,
# translation by grid_sample, merge, extraction, diffraction by its FFT, Poisson likelihood, autograd, Adam; f32.
import os
import sys
import time

what, groups, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
by_cpu = sys.argv[4] == "cpu"
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
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(threads)
device = sys.argv[6] if sys.argv[5:6] == ["--device"] else "cpu"
on_card = device != "cpu"
if on_card:
    torch.set_default_device(device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.manual_seed(1)
N, C, f, M = 64, 4, 2, 72


class Pair(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(32 * f - 4, C, 3, padding=1), nn.Conv2d(32 * f, C, 3, padding=1)
        self.conv_up_block = Pair(4, 32 * f)
        border = torch.ones(N, N)
        border[N // 4:3 * N // 4, N // 4:3 * N // 4] = 0
        self.register_buffer("border", border)

    def forward(self, y, act):
        middle = F.pad(act(self.conv1(y[:, :-4])), [N // 4] * 4)
        around = self.conv2(F.interpolate(self.conv_up_block(y[:, -4:]), scale_factor=2))
        return middle + F.silu(around) * self.border


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([Pair(C, 32 * f), Pair(32 * f, 64 * f), Pair(64 * f, 128 * f)])
        self.decoders = nn.ModuleList([nn.ModuleList([Pair(128 * f, 64 * f), Pair(64 * f, 32 * f)]) for _ in range(2)])
        self.heads = nn.ModuleList([Head(), Head()])
        self.w = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        for block in self.encoder:
            x = F.max_pool2d(block(x), 2)
        out = []
        for decoder, head, act in zip(self.decoders, self.heads, (torch.sigmoid, lambda v: torch.pi * torch.tanh(v))):
            y = x
            for block in decoder:
                y = F.interpolate(block(y), scale_factor=2)
            out.append(head(y, act))
        return torch.complex(out[0] * torch.cos(out[1]), out[0] * torch.sin(out[1]))  # amplitudes may be negative


def translate(images, t):
    """[n row col] complex moved by t [n xy]."""
    n, rows, cols = images.shape
    y, x = torch.meshgrid(torch.arange(rows, dtype=torch.float32), torch.arange(cols, dtype=torch.float32), indexing="ij")
    grid = torch.stack([2 * (x - t[:, 0, None, None]) / (cols - 1) - 1, 2 * (y - t[:, 1, None, None]) / (rows - 1) - 1], -1)
    moved = F.grid_sample(torch.view_as_real(images).permute(0, 3, 1, 2), grid, align_corners=True)
    return torch.view_as_complex(moved.permute(0, 2, 3, 1).contiguous())


def region_of(patches, rel):
    pad = (M - N) // 2
    square = torch.zeros(M, M)
    square[M // 2 - N // 4:M // 2 + N // 4, M // 2 - N // 4:M // 2 + N // 4] = 1
    t = -rel.reshape(-1, 2)
    placed = translate(F.pad(patches.reshape(-1, N, N), [pad] * 4), t).reshape(-1, C, M, M)
    weight = translate(square.to(torch.complex64).expand(len(t), M, M), t).real.reshape(-1, C, M, M)
    total = weight.sum(1)
    return torch.where(total > 1e-6, 1 / (total + 1e-3), torch.zeros(())) * (placed * weight).sum(1)


def amplitude(patches, rel, probe):
    region = region_of(patches, rel)
    pad = (M - N) // 2
    seen = translate(region[:, None].expand(-1, C, M, M).reshape(-1, M, M), rel.reshape(-1, 2))
    seen = seen[:, pad:pad + N, pad:pad + N].reshape(-1, C, N, N)
    return torch.fft.fftshift(torch.fft.fft2(seen * probe, norm="ortho"), dim=(-2, -1)).abs()


net = Net()
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-7)
x = torch.rand(groups, C, N, N) * 2
rel = torch.rand(groups, C, 2) * 6 - 3
side = torch.arange(N) - 31.5
probe = torch.exp(-(side[:, None]**2 + side[None]**2) / 200).to(torch.complex64)


def step():
    optimiser.zero_grad(set_to_none=True)
    scale = torch.exp(net.w)
    rate = (scale * amplitude(net(x / scale), rel, probe)) ** 2
    loss = (rate - x**2 * torch.log(rate.clamp_min(1e-12))).mean()
    loss.backward()
    optimiser.step()
    return loss


def infer():
    with torch.no_grad():
        region = region_of(net(x / torch.exp(net.w)), rel)
        pad = (M - N) // 2
        return region[:, pad:pad + N, pad:pad + N]


def done():
    if on_card:
        torch.cuda.synchronize()


work = step if what == "train" else infer
for line in sys.stdin:
    done()
    begin = clock()
    work()
    done()
    print(clock() - begin, flush=True)
