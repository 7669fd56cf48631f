"""The factor models once more, by automatic differentiation: objective, gradients and optimiser of
every option in float64, from the equations alone. Random inputs come from a record of a run, so the
two histories of the objective can be compared step by step."""
import math

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def distance(a, b):
    return torch.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1) + 1e-12)


def covariance(o, a, ga, b, gb):
    d2 = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    nu = torch.ones_like(d2)
    if o["groups"]:
        apart = torch.where(ga[:, None] == gb[None, :], 0.0, 1.000002)
        nu = 1.0 / (abs(o["group_diff_param"]) * apart + 1.0)
    if o["kernel"] == "RBF":
        return o["sigma"] ** 2 * torch.exp(-nu * d2 / (2 * o["lengthscale"] ** 2)) * nu
    v = torch.sqrt(d2 + 1e-12) / o["lengthscale"] * torch.sqrt(nu)
    if o["kernel"] == "Matern32":
        v = v * math.sqrt(3)
        return o["sigma"] ** 2 * (1 + v) * torch.exp(-v) * nu**2.5
    v = v * math.sqrt(5)
    return o["sigma"] ** 2 * (1 + v + v * v / 3) * torch.exp(-v) * nu**3.5


class Pnmf:
    def __init__(self, o, data, record):
        self.mean = torch.tensor(record["init_mu"], dtype=torch.float64).requires_grad_()
        self.raw = torch.tensor(record["init_sd_raw"], dtype=torch.float64).requires_grad_()
        self.parameters = [self.mean, self.raw]

    def marginals(self, idx):
        return self.mean[:, idx], torch.nn.functional.softplus(self.raw[:, idx])

    def divergence(self, idx):
        f, s = self.marginals(idx)
        return (0.5 * (s**2 + f**2 - 1) - torch.log(s)).sum()


class Svgp:
    def __init__(self, o, data, record):
        self.o = o
        Z = torch.tensor(record["Z"], dtype=torch.float64)
        gZ = torch.tensor(record["gZ"]) if o["groups"] else None
        M = len(Z)
        K = covariance(o, Z, gZ, Z, gZ) + o["jitter"] * torch.eye(M)
        self.Lc = torch.linalg.cholesky(K)
        k = covariance(o, Z, gZ, data["X"], data["C"] if o["groups"] else None)
        self.w = torch.linalg.solve_triangular(self.Lc, k, upper=False)
        self.c = (o["sigma"] ** 2 - (self.w**2).sum(0)).clamp(min=0)
        self.mu = torch.tensor(record["init_mu"], dtype=torch.float64).requires_grad_()
        self.raw = torch.tensor(record["init_Lu_raw"], dtype=torch.float64).requires_grad_()
        self.parameters = [self.mu, self.raw]

    def factor(self):
        positive = torch.exp if self.o["cholesky_mode"] == "exp" else torch.nn.functional.softplus
        if self.o["diagonal_only"]:
            return torch.diag_embed(positive(self.raw))
        return torch.tril(self.raw, -1) + torch.diag_embed(positive(torch.diagonal(self.raw, dim1=1, dim2=2)))

    def whitened(self):
        Lu = self.factor()
        if self.o["parametrization"] == "whitened":
            return self.mu, Lu
        m = torch.linalg.solve_triangular(self.Lc, self.mu.T, upper=False).T
        return m, torch.linalg.solve_triangular(self.Lc.expand_as(Lu), Lu, upper=False)

    def marginals(self, idx):
        m, V = self.whitened()
        w = self.w[:, idx]
        variance = self.c[idx] + ((V.transpose(1, 2) @ w) ** 2).sum(1)
        return m @ w, torch.sqrt(variance.clamp(0, 100))

    def divergence(self, idx):
        m, V = self.whitened()
        return 0.5 * (-2 * torch.log(torch.diagonal(V, dim1=1, dim2=2)).sum() + (V**2).sum() + (m**2).sum() - m.numel())


class Local:
    def __init__(self, o, data, record):
        self.o, self.near = o, torch.tensor(record["nb_for_kl"].astype(np.int64))
        self.X, self.C = data["X"], data["C"]
        self.mu = torch.tensor(record["init_mu"], dtype=torch.float64).requires_grad_()
        self.lam = torch.tensor(record["init_Lu"], dtype=torch.float64).requires_grad_()
        self.parameters = [self.mu, self.lam]
        a, cp = [], []
        for j in range(len(self.X)):
            n = self.near[j]
            g = self.C if o["groups"] else None
            Kn = covariance(o, self.X[n], g[n] if o["groups"] else None, self.X[n], g[n] if o["groups"] else None)
            Kn = Kn + o["jitter"] * torch.eye(len(n))
            kx = covariance(o, self.X[n], g[n] if o["groups"] else None, self.X[j : j + 1], g[j : j + 1] if o["groups"] else None)[:, 0]
            a.append(torch.linalg.solve(Kn, kx))
            cp.append((o["sigma"] ** 2 - kx @ a[-1]).clamp(1e-6, 100))
        self.a, self.cp = torch.stack(a), torch.stack(cp)

    def marginals(self, idx):
        return self.mu[:, idx], torch.sqrt((self.lam[:, idx] ** 2).sum(-1).clamp(1e-3, 100))

    def divergence(self, idx):
        near, a, cp, eps = self.near[idx], self.a[idx], self.cp[idx], self.o["jitter"]
        La, lj = self.lam[:, near], self.lam[:, idx]  # [L B K R], [L B R]
        S = La @ La.transpose(-1, -2) + eps * torch.eye(La.shape[2])
        s = (La @ lj[..., None])[..., 0]
        h = torch.linalg.solve(S, s[..., None])[..., 0]
        cq = ((lj**2).sum(-1) - (s * h).sum(-1)).clamp(1e-6, 100)
        d = self.mu[:, idx] - (a * self.mu[:, near]).sum(-1)
        ep = lj - (La.transpose(-1, -2) @ a[None, :, :, None])[..., 0]
        extra = (d**2 + (ep**2).sum(-1) + eps * (a**2).sum(-1)) / cp
        return 0.5 * (torch.log(cp) - torch.log(cq) - 1 + extra).sum()


def rates_of(o, step):
    """Learning rate and momentum of a step, from 0."""
    T, top = o["max_iter"], o["learning_rate"]
    if o["scheduler"] != "one_cycle":
        return top, 0.0 if o["optimizer"] == "RMSprop" else 0.9
    t1, t2 = 0.3 * T - 1, T - 1
    first, last = top / 25, top / 25 / 1e4

    def between(a, b, q):
        return b + (a - b) / 2 * (1 + math.cos(math.pi * q))

    if step <= t1:  # with three steps or fewer t1 lies before the first
        return between(first, top, step / t1), between(0.95, 0.85, step / t1)
    q = (step - t1) / (t2 - t1)
    return between(top, last, q), between(0.85, 0.95, q)


class Optimiser:
    def __init__(self, o, parameters):
        self.o, self.p = o, parameters
        self.m = [torch.zeros_like(p) for p in parameters]
        self.v = [torch.zeros_like(p) for p in parameters]
        self.t, self.product = 0, 1.0

    def step(self, grads, lr, b1):
        self.t += 1
        kind, t, b2, eps = self.o["optimizer"], self.t, 0.999, 1e-8
        mu = b1 * (1 - 0.5 * 0.96 ** (t * 0.004))
        after = b1 * (1 - 0.5 * 0.96 ** ((t + 1) * 0.004))
        self.product *= mu
        with torch.no_grad():
            for p, g, m, v in zip(self.p, grads, self.m, self.v):
                if kind == "SGD":
                    m.copy_(g if t == 1 else b1 * m + g)
                    p -= lr * m
                    continue
                if kind == "RMSprop":
                    v.copy_(0.99 * v + 0.01 * g * g)
                    m.copy_(b1 * m + g / (torch.sqrt(v) + eps))
                    p -= lr * m
                    continue
                if kind == "AdamW":
                    p -= lr * 0.01 * p
                m.copy_(b1 * m + (1 - b1) * g)
                v.copy_(b2 * v + (1 - b2) * g * g)
                root = torch.sqrt(v / (1 - b2**t)) + eps
                if kind == "NAdam":
                    p -= lr * (1 - mu) / (1 - self.product) * g / root
                    p -= lr * after / (1 - self.product * after) * m / root
                else:
                    p -= lr * (m / (1 - b1**t)) / root


def loadings_of(o, raw):
    if o["loadings_mode"] == "softplus":
        return torch.nn.functional.softplus(raw)
    return torch.exp(raw) if o["loadings_mode"] == "exp" else raw


def likelihood(o, Y, W, f, s, eps):
    mhat = torch.exp(f + s**2 / 2)
    constant = torch.lgamma(Y + 1).sum()
    if o["mode"] == "lower-bound":
        return (Y * torch.log((W @ torch.exp(f)).clamp(min=1e-8))).sum() - (W @ mhat).sum() - constant
    total = 0.0
    for e in eps:
        rho = W @ torch.exp(f + e * s)
        total = total + (Y * torch.log(rho.clamp(min=1e-8))).sum() / len(eps)
        if o["mode"] == "simple":
            total = total - rho.sum() / len(eps)
    return total - constant - ((W @ mhat).sum() if o["mode"] == "expanded" else 0.0)


def multiplicative(o, Y, W, f, s, eps):
    if o["mode"] == "lower-bound":
        phi = [torch.exp(f)]
    else:
        phi = [torch.exp(f + e * s) for e in eps]
    num = sum((Y / (W @ p + 1e-8)) @ p.T for p in phi)
    if o["mode"] == "simple":
        den = sum(p.sum(1) for p in phi)
    else:
        num, den = num / len(phi), torch.exp(f + s**2 / 2).sum(1)
    return (W * num / (den + 1e-8)).clamp(min=1e-8)


def train(o, data, record):
    """History of the objective. `o`: options by their names in the config; data: X, C, Y."""
    prior = (Local if o["local"] else Svgp if o["spatial"] else Pnmf)(o, data, record)
    N, D = data["Y"].shape
    raw = torch.tensor(record["W_init"], dtype=torch.float64)
    trained = o["loadings_mode"] != "multiplicative"
    if trained:
        raw.requires_grad_()
    parameters = prior.parameters + ([raw] if trained else [])
    optimiser = Optimiser(o, parameters)
    history = []
    for it in range(len(record["idx"])):
        idx = torch.tensor(record["idx"][it].astype(np.int64))
        idy = torch.tensor(record["idy"][it].astype(np.int64))
        eps = torch.tensor(record["eps"][it], dtype=torch.float64) if "eps" in record else None
        Y = data["Y"][idx][:, idy].T
        a = (D / len(idy) if o["scale_ll_D"] else 1.0) * N / len(idx)
        b = N / len(idx)
        if o["spatial"] and not o["local"]:
            b = N / len(record["Z"]) if o["scale_kl_NM"] else 1.0
        f, s = prior.marginals(idx)
        W = loadings_of(o, raw)[idy]
        loss = b * prior.divergence(idx) - a * likelihood(o, Y, W, f, s, eps)
        grads = torch.autograd.grad(loss, parameters)
        lr, b1 = rates_of(o, it)
        optimiser.step(grads, lr, b1)
        with torch.no_grad():
            if not trained:
                raw[idy] = multiplicative(o, Y, W, f, s, eps)
            elif o["loadings_mode"] == "projected":
                raw.clamp_(min=0)
        history.append(-loss.item())
    return np.array(history)
