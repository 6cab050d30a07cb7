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


def sgd(groups, options):
    return torch.optim.SGD(groups, lr=options["lr"],
                           momentum=options.get("momentum", 0.0),
                           dampening=options.get("dampening", 0.0),
                           nesterov=options.get("nesterov", False))


# By name: how it is made, the default weight decay, and the settings that are
# tried.
OPTIMIZERS = {
    "adamw": (adamw, 0.01, [dict(lr=1e-3, betas=[0.9, 0.95])]),
    "sgd": (sgd, 0.0, [
        dict(lr=0.05, momentum=0.9),
        dict(lr=0.3),
        dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
        dict(lr=0.1, momentum=0.8, dampening=0.3, weight_decay=0.01)]),
}
