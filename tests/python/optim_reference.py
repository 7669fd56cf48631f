# optim_reference.py - steps of torch.optim, printed as the table of tests/unit/test_optim.c.
#
# Run by hand (python3 tests/python/optim_reference.py) when the table has to be made again; torch
# is needed. Three numbers, eight steps of one cycle; the gradients are given, so a mistake in one
# step stays visible in the next. Rate and momentum are set by hand from the schedule, because
# OneCycleLR would also turn on a momentum in RMSprop. NAdam is torch's form for lists of tensors:
# up to torch 1.13 the other one counts the momentum of the step twice.
import math

import torch

STEPS, RATE = 8, 0.05
torch.set_default_dtype(torch.float64)  # NAdam keeps its product in the default


def cycle(i, low, high, end):
    top, bottom = 0.3 * STEPS - 1, STEPS - 1
    a, b, q = (low, high, i / top) if i <= top else (high, end, (i - top) / (bottom - top))
    return b + (a - b) / 2 * (1 + math.cos(math.pi * q))


def run(name, make, key):
    p = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    opt = make([p])
    for t in range(STEPS):
        group = opt.param_groups[0]
        group["lr"] = cycle(t, RATE / 25, RATE, RATE / 25 / 1e4)
        beta1 = cycle(t, 0.95, 0.85, 0.95)
        if key == "betas":
            group["betas"] = (beta1, group["betas"][1])
        elif key == "momentum":
            group["momentum"] = beta1
        p.grad = torch.tensor([math.sin(1 + 3 * t), 10 * math.cos(2 * t), 1e-4 * (t - 3)],
                              dtype=torch.float64)
        opt.step()
        print("        {" + ", ".join(f"{x:.17g}" for x in p.tolist()) + "},")


for name, make, key in (
        ("ADAM", lambda p: torch.optim.Adam(p), "betas"),
        ("ADAMW", lambda p: torch.optim.AdamW(p), "betas"),
        ("NADAM", lambda p: torch.optim.NAdam(p, foreach=True), "betas"),
        ("SGD", lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.9), "momentum"),
        ("RMSPROP", lambda p: torch.optim.RMSprop(p), None)):
    print(f"    [FTH_OPTIM_{name}] = {{")
    run(name, make, key)
    print("    },")
