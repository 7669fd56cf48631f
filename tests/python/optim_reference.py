# optim_reference.py - steps of torch.optim, printed as the table of tests/unit/test_optim.c.
#
# Run by hand (python3 tests/python/optim_reference.py) when the table has to be made again; torch
# is needed. Three numbers, eight steps of one cycle; the gradients are given, so a mistake in one
# step stays visible in the next. Rate and momentum are those of OneCycleLR, which turns on a
# momentum in RMSprop too; `cycle` is its formula, and is compared with it. NAdam is torch's form
# for lists of tensors: up to torch 1.13 the other one counts the momentum of the step twice.
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
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=RATE, total_steps=STEPS)
    for t in range(STEPS):
        group = opt.param_groups[0]
        beta1 = group["betas"][0] if key == "betas" else group["momentum"]
        assert math.isclose(group["lr"], cycle(t, RATE / 25, RATE, RATE / 25 / 1e4))
        assert math.isclose(beta1, cycle(t, 0.95, 0.85, 0.95))
        p.grad = torch.tensor([math.sin(1 + 3 * t), 10 * math.cos(2 * t), 1e-4 * (t - 3)],
                              dtype=torch.float64)
        opt.step()
        if t + 1 < STEPS:
            schedule.step()
        print("        {" + ", ".join(f"{x:.17g}" for x in p.tolist()) + "},")


for name, make, key in (
        ("ADAM", lambda p: torch.optim.Adam(p), "betas"),
        ("ADAMW", lambda p: torch.optim.AdamW(p), "betas"),
        ("NADAM", lambda p: torch.optim.NAdam(p, foreach=True), "betas"),
        ("SGD", lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.9), "momentum"),
        ("RMSPROP", lambda p: torch.optim.RMSprop(p), "momentum")):
    print(f"    [FTH_OPTIM_{name}] = {{")
    run(name, make, key)
    print("    },")
