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


# A filter over both axes, mirrored at the ends, or one axis after the other, around them.
def filter(side, taps, passes):
    side, taps = int(side), int(taps)
    v, w, line = rand(1, 1, side, side), rand(1, 1, taps, taps), rand(taps)
    conv2d, pad = torch.nn.functional.conv2d, torch.nn.functional.pad
    lo, hi = taps // 2, taps - 1 - taps // 2
    if passes == "square":
        return lambda: conv2d(pad(v, (lo, hi, lo, hi), mode="reflect"), w)

    def work():
        rows = conv2d(pad(v, (lo, hi, 0, 0), mode="circular"), line.view(1, 1, 1, taps))
        return conv2d(pad(rows, (0, 0, lo, hi), mode="circular"), line.view(1, 1, taps, 1))

    return work


def dot(batch, n, dtype):
    to = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    a, b = (rand(int(batch), int(n), int(n)).to(to) for _ in range(2))
    if int(batch) == 1:
        a, b = a[0], b[0]
    c = torch.matmul(a, b)
    return lambda: torch.matmul(a, b, out=c)


# A 3x3 convolution with zeros around, or one of its gradients alone.
def conv(face, batch, channels, side):
    batch, channels, side = int(batch), int(channels), int(side)
    v, bar = rand(batch, channels, side, side), rand(batch, channels, side, side)
    w = rand(channels, channels, 3, 3)
    if face == "forward":
        return lambda: torch.nn.functional.conv2d(v, w, padding=1)
    mask = [face == "input", face == "weight", False]
    rest = [None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask]
    return lambda: torch.ops.aten.convolution_backward(bar, v, w, *rest)


# Not into an array that is there: PyTorch would copy the result.
def fft2(images, n):
    z = torch.view_as_complex(rand(int(images), int(n), int(n), 2))
    return lambda: torch.fft.fft2(z)


def definite(*size, dtype):
    a = torch.rand(*size, device=gpu, dtype=getattr(torch, dtype))
    a.diagonal(dim1=-2, dim2=-1).fill_(size[-1])
    return a


# Factors of many small matrices, and the systems with them solved: both triangles.
def small_systems(batch, n):
    a, b = definite(int(batch), int(n), int(n), dtype="float32"), rand(int(batch), int(n), 1)
    return lambda: torch.cholesky_solve(b, torch.linalg.cholesky(a))


def cholesky(n, dtype):
    a = definite(int(n), int(n), dtype=dtype)
    return lambda: torch.linalg.cholesky(a)


def solve(n, columns, dtype):
    a = torch.tril(definite(int(n), int(n), dtype=dtype))
    b = torch.rand(int(n), int(columns), device=gpu, dtype=a.dtype)
    return lambda: torch.linalg.solve_triangular(a, b, upper=False)


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


# One stack of a plate fused with percentiles and metrics: `conv` by conv2d, `compile` by shifted
# additions that torch.compile puts together. The stack is on the device already.
def focus(method, how, planes=17, rows=2189, columns=1152):
    from torch.nn.functional import conv2d, pad

    off = (torch.arange(planes)[:, None] - torch.arange(columns) * planes // columns).abs()
    noise = torch.randint(0, 4096, (planes, rows, columns)) // (1 + off[:, None, :])
    stack = (2000 + torch.arange(columns) + noise).to(torch.int32).to(gpu)
    bytes16 = stack.to(torch.uint16)
    g = torch.tensor([1.0, 2.0, 1.0], device=gpu) / 4
    gauss = torch.outer(g, g)[None, None]
    laplace = torch.tensor([[2.0, 0, 2], [0, -8, 0], [2, 0, 2]], device=gpu)[None, None]
    taps = torch.exp(-0.5 * (torch.arange(-8, 9, device=gpu) / 2.0) ** 2)
    taps = taps / taps.sum()

    def energy_conv(v):
        blurred = conv2d(pad(v[:, None], (1, 1, 1, 1), mode="replicate"), gauss)
        return conv2d(pad(blurred, (1, 1, 1, 1), mode="replicate"), laplace).abs()[:, 0]

    def energy_shifts(v):
        p = pad(v[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        h = p[:, :, :-2] + p[:, :, 2:] + 2 * p[:, :, 1:-1]
        blurred = (h[:, :-2] + h[:, 2:] + 2 * h[:, 1:-1]) / 16
        q = pad(blurred[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        corners = q[:, :-2, :-2] + q[:, :-2, 2:] + q[:, 2:, :-2] + q[:, 2:, 2:]
        return (2 * corners - 8 * blurred).abs()

    def smooth(e):
        e = conv2d(pad(e[:, None], (8, 8, 8, 8), mode="reflect"), taps.view(1, 1, 1, 17))
        return conv2d(e, taps.view(1, 1, 17, 1))[:, 0]

    def decide(v):
        e = (energy_conv if how == "conv" else energy_shifts)(v)
        means = e.mean((1, 2))
        if method == "log-smooth":
            e = smooth(e)
        return means, e.argmax(0)

    def correlate(v):
        d = v - v.mean((1, 2), keepdim=True)
        spread = d.square().mean((1, 2)).sqrt() + 1e-8
        return (d[1:] * d[:-1]).mean((1, 2)) / (spread[1:] * spread[:-1])

    if how == "compile":
        decide, correlate = torch.compile(decide), torch.compile(correlate)

    def work():
        v = bytes16.to(torch.float32)
        means, index = decide(v)
        counts = torch.bincount(bytes16.view(torch.int16).to(torch.int32).flatten() & 65535, minlength=65536)
        total = counts.cumsum(0)
        ends = torch.tensor([0.0001, 0.9999], device=gpu, dtype=torch.float64) * (stack.numel() - 1)
        lo, hi = torch.searchsorted(total, ends.to(torch.int64), right=True)
        picked = v.gather(0, index[None])[0]
        return ((picked - lo) / (hi - lo)).clamp(0, 1).mul(255).to(torch.uint8), means, correlate(v)

    return work


# The terms of a batch of lcgp: rows of the neighbours gathered, batched products and Cholesky factors.
def local_terms(cells, batch, factors, K, rank, jitter=1e-3):
    cells, batch, factors, K, rank = int(cells), int(batch), int(factors), int(K), int(rank)
    Lam, mu = 0.1 * torch.randn(factors, cells, rank, device=gpu), torch.randn(factors, cells, device=gpu)
    idx = torch.arange(batch, device=gpu) * cells // batch
    near = (idx[:, None] + torch.arange(1, K + 1, device=gpu)) % cells
    a, cp, eye = 0.02 * rand(batch, K), 0.1 + rand(batch), jitter * torch.eye(K, device=gpu)

    def work():
        rows, own = Lam[:, near], Lam[:, idx]
        factor = torch.linalg.cholesky(rows @ rows.mT + eye)
        h = torch.cholesky_solve(rows @ own[..., None], factor)[..., 0]
        eq = own - (h[..., None, :] @ rows)[..., 0, :]
        ep = own - (a[:, None, :] @ rows)[..., 0, :]
        d = mu[:, idx] - (a * mu[:, near]).sum(-1)
        cq = ((eq * eq).sum(-1) + jitter * (h * h).sum(-1)).clamp(1e-6, 100)
        trace = (ep * ep).sum(-1) + jitter * (a * a).sum(-1)
        kl = 0.5 * (torch.log(cp) - torch.log(cq) - 1 + (d * d + trace) / cp)
        return eq / cq[..., None], ep / cp[:, None], h, d / cp, kl

    return work


# The Poisson likelihood of a batch with all its slopes, counts dense.
def poisson(cells, genes, factors, draws, density=0.03):
    cells, genes, factors, draws = int(cells), int(genes), int(factors), int(draws)
    Y, W = (rand(genes, cells) < density).float(), rand(genes, factors)
    phi, eps = torch.exp(rand(draws, factors, cells)), torch.randn(draws, factors, cells, device=gpu)

    def work():
        rho = W @ phi
        fit = (Y * torch.log(rho.clamp(min=1e-8))).sum(1).mean(0)
        Q = Y / rho
        slope = (W.mT @ Q) * phi
        return fit, slope.mean(0), (slope * eps).mean(0), (Q @ phi.mT).sum(0)

    return work


makers = {
    "local_terms": local_terms,
    "poisson": poisson,
    "focus": focus,
    "copy": copy,
    "chain": chain,
    "sum": total,
    "filter": filter,
    "dot": dot,
    "conv": conv,
    "fft2": fft2,
    "small_systems": small_systems,
    "cholesky": cholesky,
    "solve": solve,
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
