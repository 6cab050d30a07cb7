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


class Gathered:
    """An optimizer that takes no DTensors, on whole parameters that every rank
    has."""

    def __init__(self, groups, make):
        self.pairs, whole = [], []
        for group in groups:
            copies = [torch.nn.Parameter(full(p).detach().clone())
                      for p in group["params"]]
            self.pairs += zip(group["params"], copies)
            whole.append({**group, "params": copies})
        self.inner = make(whole)
        self.param_groups = self.inner.param_groups

    @torch.no_grad()
    def step(self):
        for p, whole in self.pairs:
            whole.grad = None if p.grad is None else full(p.grad)
        self.inner.step()
        for p, whole in self.pairs:
            if hasattr(p, "full_tensor"):
                own = torch.distributed.tensor.distribute_tensor(
                    whole.detach(), p.device_mesh, p.placements)
                p.to_local().copy_(own.to_local())
            else:
                p.copy_(whole)

    def zero_grad(self, set_to_none=True):
        for p, _ in self.pairs:
            p.grad = None


def full(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def adafactor(groups, options):
    """As transformers' Trainer makes it."""
    import transformers

    return Gathered(groups, lambda whole: transformers.Adafactor(
        whole, lr=options["lr"], scale_parameter=False, relative_step=False,
        eps=tuple(options.get("eps", (1e-30, 1e-3))),
        clip_threshold=options.get("clip_threshold", 1.0),
        decay_rate=options.get("decay_rate", -0.8),
        beta1=options.get("beta1") or None))


class Muon:
    """torch.optim.Muon for matrices, AdamW for the rest."""

    def __init__(self, groups, options):
        def of(dimensions):
            chosen = [{**group, "params": [p for p in group["params"]
                                           if (p.ndim == 2) == dimensions]}
                      for group in groups]
            return [group for group in chosen if group["params"]]
        self.optimizers = [
            torch.optim.Muon(of(True), lr=options["lr"],
                             momentum=options.get("momentum", 0.95),
                             nesterov=options.get("nesterov", True),
                             ns_steps=options.get("ns_steps", 5)),
            torch.optim.AdamW(of(False), lr=options["lr"],
                              betas=tuple(options.get("betas", (0.9, 0.999))),
                              eps=options.get("adamw_eps", 1e-8), fused=True)]
        self.param_groups = [group for optimizer in self.optimizers
                             for group in optimizer.param_groups]

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def muon(groups, options):
    return Gathered(groups, lambda whole: Muon(whole, options))


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
    "adafactor": (adafactor, 0.0, [
        dict(lr=1e-3, beta1=0.9, weight_decay=0.1)]),
    "muon": (muon, 0.1, [dict(lr=2e-3, betas=[0.9, 0.95])]),
}
