# peer_cuda.py
#
# Work of the cases of a device as it is written with PyTorch, TF32 off. Each line of input but "go"
# names the work to do next with its sizes; "go" does it once. Both answer with seconds of the host,
# from a synchronised device to a synchronised device, the bytes of the device that PyTorch had at
# most, and the seconds between CUDA events around the same call; 0 seconds: it cannot be done.
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.manual_seed(1)
if not torch.cuda.is_available():
    sys.exit("peer_cuda.py: PyTorch sees no GPU")
gpu = torch.device("cuda")


def rand(*size):
    return torch.rand(*size, device=gpu)


def copy(n):
    x, z = rand(int(n)), torch.empty(int(n), device=gpu)
    return lambda: z.copy_(x)


def chain(n, how):
    x, y = rand(int(n)), rand(int(n))

    def work(x, y):
        t = x * y + 0.5
        t = t * t * -0.5
        return torch.clamp(torch.exp(t) * x + y, min=0.0)

    if how == "compile":
        work = torch.compile(work)
    return lambda: work(x, y)


def total(a, b, c, axis):
    v = rand(int(a), int(b), int(c))
    return (lambda: v.sum()) if int(axis) < 0 else (lambda: v.sum(int(axis)))


def dot(batch, n):
    a, b = rand(int(batch), int(n), int(n)), rand(int(batch), int(n), int(n))
    if int(batch) == 1:
        a, b = a[0], b[0]
    c = torch.matmul(a, b)
    return lambda: torch.matmul(a, b, out=c)


# W is there whole; products are made for so many cells at a time.
def squares(cells, points, factors, chunk=10000):
    cells, points, factors = int(cells), int(points), int(factors)
    W, Lu = rand(cells, points), torch.tril(rand(factors, points, points))
    s = torch.empty(factors, cells, device=gpu)

    def work():
        for i in range(0, cells, chunk):
            u = torch.matmul(W[i : i + chunk], Lu)
            s[:, i : i + chunk] = (u * u).sum(2)

    return work


# Rows whose gradient is high become two samples of their Gaussian; the others stay.
def densify(rows):
    rows = int(rows)
    columns = {"means": 3, "sh0": 3, "shN": 45, "opacity": 1, "scaling": 3, "rotation": 4}
    old = {name: rand(rows, n) for name, n in columns.items()}
    seen = (torch.arange(rows, device=gpu) % 10 == 0).float()[:, None].expand(-1, 2).contiguous()

    def sample(scaling, rotation):
        v = torch.randn_like(scaling) * torch.exp(scaling)
        q = rotation / rotation.norm(dim=1, keepdim=True)
        w, u = q[:, :1], q[:, 1:]
        t = torch.linalg.cross(u, v) + w * v
        return v + 2 * torch.linalg.cross(u, t)

    def work():
        slope = seen[:, 0] / seen[:, 1].clamp(min=1)
        mask = (slope > 2e-4) & (torch.exp(old["scaling"]).max(1).values > 0.01)
        stay = ~mask
        part = {name: v[mask] for name, v in old.items()}
        new = {}
        for name, v in old.items():
            if name == "means":
                two = [part[name] + sample(part["scaling"], part["rotation"]) for _ in range(2)]
            elif name == "scaling":
                two = [part[name] - 0.47] * 2
            else:
                two = [part[name]] * 2
            new[name] = torch.cat([v[stay], *two])
        return new

    return work


makers = {
    "copy": copy,
    "chain": chain,
    "sum": total,
    "dot": dot,
    "squares": squares,
    "densify": densify,
}


def timed(work):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return time.perf_counter() - begin, start.elapsed_time(stop) / 1e3


work = None
with torch.no_grad():
    for line in sys.stdin:
        words = line.split()
        seconds, kernels = 1e-9, 0
        try:
            if words[0] != "go":
                work = None
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                work = makers[words[0]](*words[1:])
                for _ in range(3):
                    seconds, kernels = timed(work)
            elif work:
                seconds, kernels = timed(work)
        except Exception as e:
            print("peer_cuda.py:", line.strip(), repr(e)[:300], file=sys.stderr, flush=True)
            seconds = 0
        print(seconds, torch.cuda.max_memory_allocated(), kernels, flush=True)
