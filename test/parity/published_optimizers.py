"""The optimizers that accel-run executes, as torch has them or as published.

Each is a function of parameter groups and of the `optimizer` section of a
job.yaml that returns a torch.optim.Optimizer, and a case of optimizer_cases.py
for each list of settings.
"""
import torch


def adamw(groups, options):
    return torch.optim.AdamW(groups, lr=options["lr"],
                             betas=tuple(options.get("betas", (0.9, 0.999))),
                             eps=options.get("eps", 1e-8), fused=True)


# By name: how it is made, the default weight decay, and the settings that are
# tried.
OPTIMIZERS = {
    "adamw": (adamw, 0.01, [dict(lr=1e-3, betas=[0.9, 0.95])]),
}
