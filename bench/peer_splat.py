# peer_splat.py - iterations of gsplat (pip install gsplat==1.5.3) on the scene of splat.c, with PyTorch's own Adam.
#
# "splat N ssim|l1" makes the scene of N Gaussians and takes some steps of training; "go" takes one more; "end" forgets it.
# All answer with seconds of the host from a synchronised device to a synchronised device, the bytes that PyTorch had at
# most, and the seconds between CUDA events. Rows are packed or not, whichever is faster; SSIM is separable convolutions of 15 channels,
# with l1 it is left out. 0 seconds: it cannot be done.
import math
import sys
import time

import torch
from gsplat import rasterization

WIDTH, HEIGHT, FOCAL = 1920, 1080, 1500.0
EYE, UP = (4.0, -1.0, 0.5), (0.0, -1.0, 0.0)
RATES = (("means", 1.6e-4), ("sh0", 2.5e-3), ("shN", 2.5e-3 / 20), ("scaling", 5e-3), ("rotation", 1e-3), ("opacity", 5e-2))
gpu = torch.device("cuda")
torch.set_default_device(gpu)


def uniform(n, k):
    x = (128 * torch.arange(n, dtype=torch.int64) + k) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    x = x ^ (x >> 16)
    return (x >> 8).double() / 2**24


def scene(n):
    u = lambda k: uniform(n, k)  # noqa: E731
    several = lambda first, count: torch.stack([u(first + i) for i in range(count)], 1)  # noqa: E731
    kind, a, z = u(0), 2 * math.pi * u(1), 2 * u(3) - 1
    r, out = (1 - z * z).sqrt(), 6 * u(2).sqrt()
    ball = torch.stack([r * a.cos(), z, r * a.sin()], 1)
    disc = torch.stack([out * a.cos(), torch.ones(n, dtype=torch.float64), out * a.sin()], 1)
    on_disc, on_ball = kind < 0.5, kind < 0.75
    place = torch.where(on_disc[:, None], disc, torch.where(on_ball[:, None], ball, 15 * ball))
    area = torch.where(on_disc, 72.0, torch.where(on_ball, 16.0, 3600.0)) * math.pi / n
    size = (0.7 * area.sqrt()).log()
    normal = torch.stack([(-2 * (1 - u(4 + 2 * i)).log()).sqrt() * (2 * math.pi * u(5 + 2 * i)).cos() for i in range(3)], 1)
    shN = torch.empty(n, 15, 3)
    for i in range(45):
        shN[:, i // 3, i % 3] = 0.2 * (2 * u(22 + i) - 1)
    rows = {
        "means": place + size.exp()[:, None] * (2 * several(10, 3) - 1),
        "sh0": (2 * several(19, 3) - 1)[:, None, :],
        "shN": shN,
        "scaling": size[:, None] + 0.6 * normal - torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64),
        "rotation": 2 * several(14, 4) - 1,
        "opacity": 6 * u(18) - 3,
    }
    return {name: torch.nn.Parameter(v.float().contiguous()) for name, v in rows.items()}


def camera():
    eye, up = (torch.tensor(v, dtype=torch.float64) for v in (EYE, UP))
    z = -eye / eye.norm()
    x = torch.linalg.cross(z, up)
    x = x / x.norm()
    turn = torch.stack([x, torch.linalg.cross(z, x), z])
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, :3], pose[:3, 3] = turn, -turn @ eye
    lens = torch.tensor([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
    return pose.float()[None], lens[None]


taps = torch.exp(-((torch.arange(11.0) - 5) ** 2) / 4.5)
taps = (taps / taps.sum()).repeat(15, 1, 1, 1)


def ssim(x, y):
    maps = torch.cat([x, y, x * x, y * y, x * y])[None]
    maps = torch.nn.functional.conv2d(maps, taps, groups=15)
    m = torch.nn.functional.conv2d(maps, taps.transpose(2, 3), groups=15)[0].view(5, 3, HEIGHT - 10, WIDTH - 10)
    xx, yy, xy = m[0] * m[0], m[1] * m[1], m[0] * m[1]
    above = (2 * xy + 1e-4) * (2 * (m[4] - xy) + 9e-4)
    return (above / ((xx + yy + 1e-4) * (m[2] - xx + m[3] - yy + 9e-4))).mean()


def trainer(n, loss_name, packed):
    rows = scene(n)
    pose, lens = camera()
    target = torch.rand(HEIGHT, WIDTH, 3)
    plain = target.permute(2, 0, 1).contiguous()
    adam = [torch.optim.Adam([rows[name]], lr=rate, eps=1e-15, fused=True) for name, rate in RATES]

    def step():
        image, _, _ = rasterization(
            rows["means"], rows["rotation"], rows["scaling"].exp(), rows["opacity"].sigmoid(),
            torch.cat([rows["sh0"], rows["shN"]], 1), pose, lens, WIDTH, HEIGHT, sh_degree=3, packed=packed,
        )  # fmt: skip
        loss = (image[0] - target).abs().mean()
        if loss_name == "ssim":
            loss = 0.8 * loss + 0.2 * (1 - ssim(image[0].permute(2, 0, 1), plain))
        loss.backward()
        for a in adam:
            a.step()
            a.zero_grad(set_to_none=True)
        return loss

    return step


def timed(work):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    start.record()
    loss = work()
    stop.record()
    torch.cuda.synchronize()
    return time.perf_counter() - begin, start.elapsed_time(stop) / 1e3, loss


def forget():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


# Packed or not: some steps of each, and the better one made again.
def prepare(n, loss_name):
    best = None
    for packed in (False, True):
        work, seconds = trainer(n, loss_name, packed), []
        for i in range(6):
            took, _, loss = timed(work)
            seconds.append(took)
            if i == 0:
                print("peer_splat.py: %d Gaussians, %s, packed %s: loss %.6f" % (n, loss_name, packed, loss.item()), file=sys.stderr)
        if best is None or min(seconds) < best[0]:
            best = (min(seconds), packed)
        work = None
        forget()
    return trainer(n, loss_name, best[1])


work = None
for line in sys.stdin:
    words = line.split()
    seconds, kernels = 1e-9, 0
    try:
        if words[0] == "end":
            work = None
            forget()
        elif words[0] == "splat":
            work = None
            forget()
            work = prepare(int(words[1]), words[2])
            for _ in range(3):
                seconds, kernels, _ = timed(work)
        elif work:
            seconds, kernels, _ = timed(work)
    except Exception as e:
        print("peer_splat.py:", line.strip(), repr(e)[:300], file=sys.stderr, flush=True)
        seconds = 0
    print(seconds, torch.cuda.max_memory_allocated(), kernels, flush=True)
