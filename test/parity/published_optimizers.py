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


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., Symbolic Discovery of Optimization
    Algorithms (arXiv:2302.06675)."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad)
                p.sub_(lr * (update + group["weight_decay"] * p))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


def lion(groups, options):
    return Lion(groups, dict(lr=options["lr"], weight_decay=0.0,
                             betas=tuple(options.get("betas", (0.9, 0.99)))))


# By name: how it is made, the default weight decay, and the settings that are
# tried.
OPTIMIZERS = {
    "adamw": (adamw, 0.01, [dict(lr=1e-3, betas=[0.9, 0.95])]),
    "sgd": (sgd, 0.0, [
        dict(lr=0.05, momentum=0.9),
        dict(lr=0.3),
        dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
        dict(lr=0.1, momentum=0.8, dampening=0.3, weight_decay=0.01)]),
    "lion": (lion, 0.0, [
        dict(lr=3e-4, weight_decay=0.1),
        dict(lr=3e-4, betas=[0.95, 0.98])]),
}
