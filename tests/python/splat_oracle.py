"""Gaussian splatting in float64 with NumPy, written from the equations alone: images by fragments (a Gaussian at a pixel),
sorted by pixel and depth; gradients; the loss; Adam; both strategies. Slow and plain: what the instrument is held against.
Captures of a known model, as files that the instrument reads."""
import json
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products of 3 x 3 gain nothing from threads
import numpy as np  # noqa: E402

ATTRIBUTES = ("means", "sh0", "shN", "scaling", "rotation", "opacity")
TAPS = np.array([0.001028380123898387, 0.0075987582094967365, 0.036000773310661316, 0.10936068743467331, 0.21300552785396576,
                 0.26601171493530273, 0.21300552785396576, 0.10936068743467331, 0.036000773310661316, 0.0075987582094967365,
                 0.001028380123898387])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rotations(q):
    """Of unit quaternions, w first."""
    w, x, y, z = q.T
    return np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                     2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                     2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1).reshape(-1, 3, 3)


def harmonics(d, degree):
    x, y, z = d.T
    one = np.ones_like(x)
    b = [0.28209479177387814 * one]
    if degree > 0:
        b += [-0.48860251190291987 * y, 0.48860251190291987 * z, -0.48860251190291987 * x]
    if degree > 1:
        b += [1.0925484305920792 * x * y, -1.0925484305920792 * y * z, 0.94617469575755997 * z * z - 0.31539156525251999,
              -1.0925484305920792 * x * z, 0.54627421529603959 * (x * x - y * y)]
    if degree > 2:
        b += [0.59004358992664352 * y * (y * y - 3 * x * x), 2.8906114426405538 * x * y * z,
              0.45704579946446572 * y * (1 - 5 * z * z), 0.3731763325901154 * z * (5 * z * z - 3),
              0.45704579946446572 * x * (1 - 5 * z * z), 1.4453057213202769 * z * (x * x - y * y),
              0.59004358992664352 * x * (3 * y * y - x * x)]
    return np.stack(b, 1)


class View:
    def __init__(self, pose, focal, size, target=None):
        self.pose, self.target = np.asarray(pose, float), target  # world to camera, 3 x 4
        self.fx, self.fy, self.cx, self.cy = focal
        self.width, self.height = size
        self.centre = -self.pose[:, :3].T @ self.pose[:, 3]


class Picture:
    """One view of a model: the image, and with `back` its gradients."""

    def __init__(self, m, view, degree, ground=(0, 0, 0), most=0.999):
        self.m, self.view, self.degree, self.ground, self.most = m, view, degree, np.asarray(ground, float), most
        self.project()
        self.blend()

    def project(self):
        m, v = self.m, self.view
        turn = v.pose[:, :3]
        at = m["means"] @ turn.T + v.pose[:, 3]
        norm = np.sqrt((m["rotation"]**2).sum(1))
        o = sigmoid(m["opacity"])
        ok = (at[:, 2] >= 0.01) & (o >= 1 / 255) & (norm**2 >= 1e-8)
        rows = np.flatnonzero(ok)
        rows = rows[np.argsort(at[rows, 2].astype(np.float32), kind="stable")]
        self.at, self.o, self.norm = at[rows], o[rows], norm[rows]
        X, Y, Z = self.at.T
        self.x, self.y = X / Z, Y / Z
        self.tx = np.clip(self.x, (-0.15 * v.width - v.cx) / v.fx, (1.15 * v.width - v.cx) / v.fx)
        self.ty = np.clip(self.y, (-0.15 * v.height - v.cy) / v.fy, (1.15 * v.height - v.cy) / v.fy)
        self.unit = m["rotation"][rows] / self.norm[:, None]
        self.R, self.s = rotations(self.unit), np.exp(m["scaling"][rows])
        self.M = self.R * self.s[:, None, :]
        zero = np.zeros_like(Z)
        J = np.stack([v.fx / Z, zero, -v.fx * self.tx / Z, zero, v.fy / Z, -v.fy * self.ty / Z], 1).reshape(-1, 2, 3)
        self.T = J @ turn
        self.cov = self.M @ self.M.transpose(0, 2, 1)
        flat = self.T @ self.cov @ self.T.transpose(0, 2, 1) + 0.3 * np.eye(2)
        self.conic = np.linalg.inv(flat)
        self.u, self.v = self.x * v.fx + v.cx, self.y * v.fy + v.cy
        reach = np.sqrt(2 * np.log(255 * self.o))
        self.ex, self.ey = reach * np.sqrt(flat[:, 0, 0]), reach * np.sqrt(flat[:, 1, 1])
        self.way = m["means"][rows] - v.centre
        self.far = np.sqrt((self.way**2).sum(1))
        self.dir = self.way / self.far[:, None]
        self.basis = harmonics(self.dir, self.degree)
        self.sh = np.concatenate([m["sh0"][rows][:, None], m["shN"][rows][:, :self.basis.shape[1] - 1]], 1)
        self.raw = 0.5 + np.einsum("gk,gkc->gc", self.basis, self.sh)
        self.rows = rows

    def blend(self):
        v = self.view
        x0, x1 = (np.clip(np.floor(self.u + k * self.ex + (k > 0)), 0, v.width).astype(int) for k in (-1, 1))
        y0, y1 = (np.clip(np.floor(self.v + k * self.ey + (k > 0)), 0, v.height).astype(int) for k in (-1, 1))
        wide, high = np.maximum(x1 - x0, 0), np.maximum(y1 - y0, 0)
        each = wide * high
        self.seen = each > 0
        g = np.repeat(np.arange(len(each)), each)
        k = np.arange(len(g)) - np.repeat(np.cumsum(each) - each, each)
        i, j = y0[g] + k // wide[g], x0[g] + k % wide[g]
        dx, dy = self.u[g] - (j + 0.5), self.v[g] - (i + 0.5)
        A, B, C = self.conic[:, 0, 0][g], self.conic[:, 0, 1][g], self.conic[:, 1, 1][g]
        sigma = 0.5 * (A * dx * dx + C * dy * dy) + B * dx * dy
        alpha = np.minimum(self.o[g] * np.exp(-sigma), self.most)
        on = (sigma >= 0) & (alpha >= 1 / 255)
        pixel = i * v.width + j
        order = np.flatnonzero(on)
        order = order[np.argsort(pixel[order], kind="stable")]  # Gaussians are by depth already
        self.g, self.dx, self.dy, self.alpha, self.pixel = g[order], dx[order], dy[order], alpha[order], pixel[order]
        n = v.width * v.height
        ends = np.cumsum(np.bincount(self.pixel, minlength=n))
        self.first = np.concatenate([[0], ends[:-1]])
        left = np.log1p(-self.alpha)
        self.before = self.sum_before(left)
        self.keep = self.before + left >= math.log(1e-4)
        self.light = np.exp(self.before)
        self.w = np.where(self.keep, self.light * self.alpha, 0)
        self.colour = np.maximum(self.raw, 0)
        self.F = np.exp(np.bincount(self.pixel, np.where(self.keep, left, 0), n))
        image = np.stack([np.bincount(self.pixel, self.w * self.colour[self.g, c], n) for c in range(3)], 1)
        self.image = (image + self.F[:, None] * self.ground).reshape(v.height, v.width, 3)
        self.alpha_map = (1 - self.F).reshape(v.height, v.width)

    def sum_before(self, x):
        """Of the fragments of the same pixel that are nearer."""
        total = np.concatenate([[0], np.cumsum(x)])
        return total[:-1] - total[self.first[self.pixel]]

    def back(self, bar):
        """Gradients of all attributes, of the places on the image, and who was seen, for dL/dimage."""
        bar = bar.reshape(-1, 3)
        near = (bar[self.pixel] * self.colour[self.g]).sum(1)
        shine = self.w * near
        behind = np.bincount(self.pixel, shine, len(bar))[self.pixel] - self.sum_before(shine) - shine
        last = -(bar @ self.ground * self.F)[self.pixel]
        slope = np.where(self.keep, self.light * near + (last - behind) / (1 - self.alpha), 0)
        h = -self.alpha * slope
        n = len(self.u)
        add = lambda x: np.bincount(self.g, x, n)  # noqa: E731
        A, B, C = self.conic[:, 0, 0], self.conic[:, 0, 1], self.conic[:, 1, 1]
        hx, hy = add(h * self.dx), add(h * self.dy)
        gu, gv = A * hx + B * hy, B * hx + C * hy
        cross = 0.5 * add(h * self.dx * self.dy)
        by_conic = np.stack([0.5 * add(h * self.dx**2), cross, cross, 0.5 * add(h * self.dy**2)], 1).reshape(-1, 2, 2)
        by_o = -add(h) / self.o
        by_raw = np.stack([add(self.w * bar[self.pixel, c]) for c in range(3)], 1) * (self.raw >= 0)
        out = {a: np.zeros_like(self.m[a]) for a in ATTRIBUTES}
        self.back_shape(out, gu, gv, by_conic)
        self.back_colour(out, by_raw)
        out["opacity"][self.rows] = by_o * self.o * (1 - self.o)
        flat, seen = np.zeros((len(self.m["means"]), 2)), np.zeros(len(self.m["means"]), bool)
        flat[self.rows] = np.stack([gu, gv], 1)
        seen[self.rows] = self.seen
        return out, flat, seen

    def back_shape(self, out, gu, gv, by_conic):
        v = self.view
        turn = v.pose[:, :3]
        G2 = -self.conic @ by_conic @ self.conic
        G3 = self.T.transpose(0, 2, 1) @ G2 @ self.T
        J = 2 * G2 @ self.T @ self.cov @ turn.T
        Z = self.at[:, 2]
        gx = v.fx / Z * (gu - J[:, 0, 2] / Z)
        gy = v.fy / Z * (gv - J[:, 1, 2] / Z)
        gz = (-v.fx / Z * (self.x * gu + (J[:, 0, 0] - 2 * self.tx * J[:, 0, 2]) / Z) -
              v.fy / Z * (self.y * gv + (J[:, 1, 1] - 2 * self.ty * J[:, 1, 2]) / Z))
        out["means"][self.rows] = np.stack([gx, gy, gz], 1) @ turn
        by_M = 2 * G3 @ self.M
        out["scaling"][self.rows] = self.s * (by_M * self.R).sum(1)
        D = by_M * self.s[:, None, :]
        w, x, y, z = self.unit.T
        by_q = 2 * np.stack([
            -z * D[:, 0, 1] + y * D[:, 0, 2] + z * D[:, 1, 0] - x * D[:, 1, 2] - y * D[:, 2, 0] + x * D[:, 2, 1],
            y * D[:, 0, 1] + z * D[:, 0, 2] + y * D[:, 1, 0] - 2 * x * D[:, 1, 1] - w * D[:, 1, 2] + z * D[:, 2, 0] +
            w * D[:, 2, 1] - 2 * x * D[:, 2, 2],
            -2 * y * D[:, 0, 0] + x * D[:, 0, 1] + w * D[:, 0, 2] + x * D[:, 1, 0] + z * D[:, 1, 2] - w * D[:, 2, 0] +
            z * D[:, 2, 1] - 2 * y * D[:, 2, 2],
            -2 * z * D[:, 0, 0] - w * D[:, 0, 1] + x * D[:, 0, 2] + w * D[:, 1, 0] - 2 * z * D[:, 1, 1] + y * D[:, 1, 2] +
            x * D[:, 2, 0] + y * D[:, 2, 1]], 1)
        by_q -= self.unit * (self.unit * by_q).sum(1)[:, None]
        out["rotation"][self.rows] = by_q / self.norm[:, None]

    def back_colour(self, out, by_raw):
        by_sh = self.basis[:, :, None] * by_raw[:, None, :]
        out["sh0"][self.rows] = by_sh[:, 0]
        rest = np.zeros((len(self.rows),) + self.m["shN"].shape[1:])
        rest[:, :by_sh.shape[1] - 1] = by_sh[:, 1:]
        out["shN"][self.rows] = rest
        along = np.einsum("gkc,gc->gk", self.sh, by_raw)
        by_dir = np.zeros_like(self.dir)
        for e in range(3):  # a complex step: the slope without a difference
            moved = self.dir.astype(complex)
            moved[:, e] += 1e-30j
            by_dir[:, e] = (harmonics(moved, self.degree).imag * 1e30 * along).sum(1)
        by_dir -= self.dir * (self.dir * by_dir).sum(1)[:, None]
        out["means"][self.rows] += by_dir / self.far[:, None]


def blur(x):
    for axis in (0, 1):
        pad = [(0, 0)] * 3
        pad[axis] = (5, 5)
        y = np.pad(x, pad)
        n = x.shape[axis]
        x = sum(t * (y[k:k + n] if axis == 0 else y[:, k:k + n]) for k, t in enumerate(TAPS))
    return x


def loss_of(image, target, share=0.2):
    """Loss, L1, SSIM and the gradient of the loss by the image."""
    x, y = image, target
    mx, my = blur(x), blur(y)
    a, b = mx**2 + my**2 + 1e-4, blur(x * x) - mx**2 + blur(y * y) - my**2 + 9e-4
    c, d = 2 * mx * my + 1e-4, 2 * (blur(x * y) - mx * my) + 9e-4
    inside = np.zeros_like(x)
    crop = (slice(5, -5), slice(5, -5)) if min(x.shape[:2]) > 10 else (slice(None), slice(None))
    inside[crop] = 1 / inside[crop].size
    ssim = (inside * c * d / (a * b)).sum()
    by_mean = 2 * my * (d - c) / (a * b) - 2 * mx * c * d / (a * a * b) + 2 * mx * c * d / (a * b * b)
    by_square, by_product = -c * d / (a * b * b), 2 * c / (a * b)
    slope = blur(inside * by_mean) + 2 * x * blur(inside * by_square) + y * blur(inside * by_product)
    l1 = np.abs(x - y).mean()
    return ((1 - share) * l1 + share * (1 - ssim), l1, ssim,
            (1 - share) * np.sign(x - y) / x.size - share * slope)


def psnr(image, target):
    return -10 * math.log10(max(((np.clip(image, 0, 1) - target)**2).mean(), 1e-10))


class Trainer:
    """One training. `rules` are keys of the instrument's configs."""

    def __init__(self, model, views, scale, rules, seed=0, strategy="default"):
        self.m = {a: np.array(v, float) for a, v in model.items()}
        self.views, self.scale, self.r, self.strategy = views, scale, rules, strategy
        self.draw = np.random.default_rng(seed)
        self.moment = [{a: np.zeros_like(v) for a, v in self.m.items()} for _ in range(2)]
        self.count = dict.fromkeys(ATTRIBUTES, 0)
        self.iterations, self.degree = rules["iterations"], rules.get("degree", 0)
        self.rate = {"means": rules.get("means_lr", 1.6e-4) * scale, "sh0": 2.5e-3, "shN": 2.5e-3 / 20, "scaling": 5e-3,
                     "rotation": 1e-3, "opacity": 5e-2}
        self.visits, self.slopes = np.zeros(self.n), np.zeros(self.n)
        self.order = []

    @property
    def n(self):
        return len(self.m["means"])

    def next_view(self, iteration):
        if self.r.get("in_turn"):
            return (iteration - 1) % len(self.views)
        if not self.order:
            self.order = list(self.draw.permutation(len(self.views)))
        return self.order.pop()

    def step(self, iteration):
        view = self.views[self.next_view(iteration)]
        p = Picture(self.m, view, self.degree, self.r.get("ground", (0, 0, 0)))
        value, l1, ssim, bar = loss_of(p.image, view.target)
        grad, flat, seen = p.back(bar)
        mcmc = self.strategy == "mcmc"
        if mcmc:
            o, s = sigmoid(self.m["opacity"]), np.exp(self.m["scaling"])
            value += 0.01 * o.mean() + 0.01 * s.mean()
            grad["opacity"] += 0.01 * o * (1 - o) / self.n
            grad["scaling"] += 0.01 * s / (3 * self.n)
        self.visits += seen
        self.slopes += np.hypot(flat[:, 0] * view.width / 2, flat[:, 1] * view.height / 2) * seen
        replaced = self.refine_mcmc(iteration) if mcmc else self.refine_adc(iteration)
        if iteration < self.iterations:
            for a in ATTRIBUTES:
                if a not in replaced:
                    self.adam(a, grad[a])
        self.rate["means"] *= 0.01**(1 / self.iterations)
        return value, l1, ssim

    def adam(self, a, g):
        self.count[a] += 1
        m, v = self.moment[0][a], self.moment[1][a]
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        t = self.count[a]
        self.m[a] -= self.rate[a] / (1 - 0.9**t) * m / (np.sqrt(v) / math.sqrt(1 - 0.999**t) + 1e-15)

    def rows(self, take, fresh):
        """New rows from these old ones; moments of the fresh ones start at 0."""
        self.m = {a: v[take] for a, v in self.m.items()}
        for k in self.moment:
            for a in ATTRIBUTES:
                k[a] = k[a][take]
                k[a][fresh] = 0

    def is_due(self, iteration):
        r = self.r
        return r["start_refine"] < iteration < r["stop_refine"] and iteration % r["refine_every"] == 0

    def refine_adc(self, iteration):
        replaced = set()
        if self.is_due(iteration):
            high = self.slopes / np.maximum(self.visits, 1) > 2e-4
            small = np.exp(self.m["scaling"]).max(1) <= 0.01 * self.scale
            copied, split = np.flatnonzero(high & small), np.flatnonzero(high & ~small)
            room = self.r.get("max_cap", 1000000) - self.n
            assert len(copied) + len(split) <= room, "the oracle has no cap of its own"
            kept = np.setdiff1d(np.arange(self.n), split)
            take = np.concatenate([kept, copied, split, split])
            fresh = np.arange(len(take)) >= len(kept)
            self.rows(take, fresh)
            child = np.arange(len(take)) >= len(kept) + len(copied)
            unit = self.m["rotation"][child]
            unit = unit / np.sqrt((unit**2).sum(1))[:, None]
            s = np.exp(self.m["scaling"][child])
            self.m["means"][child] += np.einsum("gij,gj->gi", rotations(unit), s * self.draw.standard_normal(s.shape))
            self.m["scaling"][child] = np.log(s / 1.6)
            gone = sigmoid(self.m["opacity"]) < 0.005
            if iteration > self.r["reset_every"]:
                gone |= np.exp(self.m["scaling"]).max(1) > 0.1 * self.scale
            self.rows(np.flatnonzero(~gone), np.zeros(0, int))
            self.visits, self.slopes = np.zeros(self.n), np.zeros(self.n)
            if len(copied) + len(split) + gone.sum():
                replaced = set(ATTRIBUTES)
        if iteration < self.r["stop_refine"] and iteration % self.r["reset_every"] == 0:
            self.m["opacity"] = np.minimum(self.m["opacity"], math.log(0.01 / 0.99))
            for k in self.moment:
                k["opacity"][:] = 0
            replaced.add("opacity")
        return replaced

    def divide(self, drawn):
        """Parents of these draws: what a family of so many has in common."""
        ratio = np.minimum(1 + np.bincount(drawn, minlength=self.n), 51)
        for p in np.unique(drawn):
            o, r = sigmoid(self.m["opacity"][p]), int(ratio[p])
            new = -math.expm1(math.log1p(-o) / r)
            total = sum(math.comb(i - 1, k) * (-1)**k / math.sqrt(k + 1) * new**(k + 1) for i in range(1, r + 1)
                        for k in range(i))
            self.m["scaling"][p] += math.log(o / total)
            new = min(max(new, 0.005), 1 - 1e-7)
            self.m["opacity"][p] = math.log(new / (1 - new))
            for k in self.moment:
                for a in ATTRIBUTES:
                    k[a][p] = 0

    def refine_mcmc(self, iteration):
        replaced = set()
        if self.is_due(iteration):
            o = sigmoid(self.m["opacity"])
            dead = o <= 0.005
            if dead.any() and (~dead).any():
                chance = np.where(dead, 0, o)
                drawn = self.draw.choice(self.n, dead.sum(), p=chance / chance.sum())
                self.divide(drawn)
                for a in ATTRIBUTES:
                    self.m[a][dead] = self.m[a][drawn]
                    for k in self.moment:
                        k[a][dead] = 0
            more = min(self.r["max_cap"], int(np.float32(1.05) * np.float32(self.n))) - self.n
            if more > 0:
                o = sigmoid(self.m["opacity"])
                drawn = self.draw.choice(self.n, more, p=o / o.sum())
                self.divide(drawn)
                take = np.concatenate([np.arange(self.n), drawn])
                self.rows(take, np.arange(len(take)) >= len(take) - more)
                self.visits, self.slopes = np.zeros(self.n), np.zeros(self.n)
                replaced = set(ATTRIBUTES)
        o = sigmoid(self.m["opacity"])
        unit = self.m["rotation"] / np.sqrt((self.m["rotation"]**2).sum(1))[:, None]
        M = rotations(unit) * np.exp(self.m["scaling"])[:, None, :]
        e = np.einsum("gij,gkj,gk->gi", M, M, self.draw.standard_normal((self.n, 3)))
        self.m["means"] += self.rate["means"] * 5e5 / (1 + np.exp(100 * o - 0.5))[:, None] * e
        return replaced


def start_from(points, colours, strategy, degree):
    """Gaussians at points, as large as the r.m.s. distance to the three nearest; colours from 0 to 255."""
    apart = ((points[:, None] - points[None])**2).sum(2)
    near = np.sort(apart, 1)[:, 1:4].mean(1)
    opacity, size = {"default": (0.1, 1.0), "mcmc": (0.5, 0.1)}[strategy]
    n = len(points)
    return {"means": points, "sh0": (colours / 255 - 0.5) / 0.28209479177387814, "shN": np.zeros((n, (degree + 1)**2 - 1, 3)),
            "scaling": np.repeat(np.log(np.sqrt(near) * size)[:, None], 3, 1), "rotation": np.tile([1.0, 0, 0, 0], (n, 1)),
            "opacity": np.full(n, math.log(opacity / (1 - opacity)))}


# ---- captures of a known model ----

def known_model(n, degree, seed=1):
    """Half of it on a floor, half on a ball above."""
    r = np.random.default_rng(seed)
    a, z = 2 * np.pi * r.random(n), 2 * r.random(n) - 1
    ball = np.stack([np.sqrt(1 - z * z) * np.cos(a), z, np.sqrt(1 - z * z) * np.sin(a)], 1)
    out = 2.2 * np.sqrt(r.random(n))
    floor = np.stack([out * np.cos(a), np.ones(n), out * np.sin(a)], 1)
    on_floor = np.arange(n) % 2 == 0
    means = np.where(on_floor[:, None], floor, ball)
    check = (np.floor(2 * means[:, 0]) + np.floor(2 * means[:, 2])) % 2
    colour = np.where(on_floor[:, None], 0.2 + 0.5 * check[:, None] * [1, 0.9, 0.7], 0.5 + 0.4 * np.sin(3 * means + [0, 1, 2]))
    return {"means": means, "sh0": (colour - 0.5) / 0.28209479177387814,
            "shN": 0.08 * r.standard_normal((n, (degree + 1)**2 - 1, 3)),
            "scaling": np.log(2.4 / np.sqrt(n)) + 0.3 * r.standard_normal((n, 3)), "rotation": r.standard_normal((n, 4)),
            "opacity": 1 + 2 * r.random(n)}


def ring_of_views(count, width, height):
    """Around the middle, in two heights, looking inwards; y points down."""
    views = []
    for k in range(count):
        a, up = 2 * np.pi * k / count, -0.6 if k % 2 else -1.8
        eye = np.array([4 * np.cos(a), up, 4 * np.sin(a)])
        z = -eye / np.linalg.norm(eye)
        x = np.cross(z, [0, -1, 0])
        x /= np.linalg.norm(x)
        turn = np.stack([x, np.cross(z, x), z])
        pose = np.concatenate([turn, (-turn @ eye)[:, None]], 1).astype(np.float32)
        views.append(View(pose, (1.1 * width, 1.1 * width, width / 2, height / 2), (width, height)))
    return views


def scene_scale(views):
    centres = np.array([v.centre for v in views])
    return 1.1 * np.sqrt(((centres - centres.mean(0))**2).sum(1)).max()


def write_ply(path, m):
    n, k = len(m["means"]), m["shN"].shape[1]
    columns = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2", *(f"f_rest_{i}" for i in range(3 * k)), "opacity",
               *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]
    rows = np.concatenate([m["means"], np.zeros((n, 3)), m["sh0"], m["shN"].transpose(0, 2, 1).reshape(n, 3 * k),
                           m["opacity"][:, None], m["scaling"], m["rotation"]], 1).astype("<f4")
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {n}\n"
    head += "".join(f"property float {c}\n" for c in columns) + "end_header\n"
    path.write_bytes(head.encode() + rows.tobytes())


def read_ply(path):
    head, data = path.read_bytes().split(b"end_header\n", 1)
    names = [line.split()[2].decode() for line in head.splitlines() if line.startswith(b"property")]
    table = dict(zip(names, np.frombuffer(data, "<f4").reshape(-1, len(names)).T.astype(float)))
    several = lambda name, count: np.stack([table[f"{name}_{i}"] for i in range(count)], 1)  # noqa: E731
    rest = sum(name.startswith("f_rest_") for name in names)
    shN = several("f_rest", rest).reshape(-1, 3, rest // 3).transpose(0, 2, 1) if rest else np.zeros((len(table["x"]), 0, 3))
    return {"means": np.stack([table[c] for c in "xyz"], 1), "sh0": several("f_dc", 3), "shN": shN,
            "scaling": several("scale", 3), "rotation": several("rot", 4), "opacity": table["opacity"]}


def write_capture(folder, model, degree, views, points, write_png16, ground=(0, 0, 0)):
    """Images of the model as a transforms.json with points; targets are what the files hold, 16 bits."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for k, v in enumerate(views):
        image = np.clip(Picture(model, v, degree, ground).image, 0, 1)
        v.target = np.rint(image * 65535) / 65535
        write_png16(folder / f"view_{k:02d}.png", v.target)
        c2w = np.eye(4)
        c2w[:3, :3], c2w[:3, 3] = v.pose[:, :3].T, v.centre
        c2w[:3, 1:3] *= -1
        frames.append({"file_path": f"view_{k:02d}.png", "transform_matrix": c2w.tolist()})
    v = views[0]
    (folder / "transforms.json").write_text(json.dumps({"w": v.width, "h": v.height, "fl_x": v.fx, "fl_y": v.fy, "cx": v.cx,
                                                        "cy": v.cy, "frames": frames}))
    if points is not None:
        places, colours = points
        head = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(places)}\n"
        head += "".join(f"property float {c}\n" for c in "xyz")
        head += "".join(f"property uchar {c}\n" for c in ("red", "green", "blue")) + "end_header\n"
        rows = np.zeros(len(places), [("p", "<f4", 3), ("c", "u1", 3)])
        rows["p"], rows["c"] = places, colours
        (folder / "pointcloud.ply").write_bytes(head.encode() + rows.tobytes())
