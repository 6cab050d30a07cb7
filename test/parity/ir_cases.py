"""Programs as torch.export leaves them at each of its levels: as the model calls
operators, without writes in place, and decomposed to the core ATen set."""
import os

import export_cases
import harness
import jobs
from harness import check

LEVELS = ("training", "functional", "core")
OPAQUE = "[opaque-operator]"
# Those that write in place: masks, shifted labels, experts.
FUNCTIONAL = ("gqa", "mixtral", "bert", "t5", "whisper")


def _export_all(calls):
    """tools/export-model several times in this process."""
    for arguments in calls:
        export_cases._export(arguments)


def export_all(context, calls):
    harness.in_python(_export_all, [({}, (calls,))],
                      context.path("export.out"))


def planned(context, *arguments):
    """What accel-opt says of a plan; nothing may be opaque."""
    out = harness.run([context.binary("accel-opt"), "plan", *arguments])
    check(OPAQUE not in out, "an operator is not modelled: " + " ".join(
        line for line in out.splitlines() if OPAQUE in line))
    return out


def families(context, names):
    """Families decomposed, and some without writes in place: each operator is
    modelled. (The first level is what the cases of `export` train.)"""
    calls, rows = [], []
    for name in names:
        folder = context.path(name)
        config = jobs.ENCODERS.get(name) or jobs.MODELS[name]
        jobs.write_config(os.path.join(folder, "model"), config)
        layers = jobs.ENCODER_LAYERS[name] if name in jobs.ENCODERS else \
            jobs.LAYER_CLASS[config["model_type"]]
        keys = jobs.write_job(folder, jobs.accelerate_config(
            "fsdp", 2, layers), "fsdp.yaml")
        more = {"bert": ["--inputs", "token_type_ids"],
                "t5": ["--inputs", "attention_mask"]}.get(name, [])
        for level in LEVELS[1:] if name in FUNCTIONAL else LEVELS[2:]:
            path = os.path.join(folder, level + ".pt2")
            calls.append([os.path.join(folder, "model"), "-o", path, "--ir",
                          level, "--seq-len", "16", *more])
            rows.append((keys, path))
    export_all(context, calls)
    for keys, path in rows:
        planned(context, keys, "--model", path)
    return f"{len(rows)} programs, no operator is opaque"


def trained(context):
    """A decomposed program trains as the model's config.json does."""
    details = []
    for model in ("gqa", "mixtral", "t5"):
        folder = context.path(model)
        if model in jobs.ENCODERS:
            job = jobs.make_array_job(folder, model, steps=6)
        else:
            job = jobs.make_job(folder, jobs.MODELS[model], ranks=2, steps=6)
        job.pop("checkpoint", None)
        jobs.write_job(folder, job)
        export_all(context, [[os.path.join(folder, "model"), "-o",
                              os.path.join(folder, "core.pt2"), "--ir", "core",
                              "--weights", *export_cases.arguments_of(job)]])
        jobs.write_job(folder, dict(job, model="core.pt2"), "core.yaml")
        logs = []
        for name in ("core", "job"):
            path = os.path.join(folder, name)
            plan = harness.plan(context, path + ".yaml", path + ".json")
            logs.append(harness.execute(
                context, path + ".json", 2, path + ".jsonl", "--summary",
                path + ".summary.json"))
            harness.compare_memory(plan, path + ".summary.json")
        worst = harness.compare_logs(*logs, "loss", export_cases.LOSS)
        details.append(f"{model} {worst:.0e}")
    return ", ".join(details)


NET = '''
import torch
from torch.nn import functional as F
from transformers.activations import ACT2FN

class Net(torch.nn.Module):
    """Losses, activations, reductions and writes in place."""
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.down = torch.nn.Linear(4, 8)
        self.pair = torch.nn.Bilinear(8, 8, 3)
        self.slope = torch.nn.PReLU(8)
        self.head = torch.nn.Linear(8, 3)
        self.acts = torch.nn.ModuleList(
            ACT2FN[n] for n in sorted(ACT2FN) if n not in ("xielu", "prelu"))

    def features(self, images):
        x = self.conv(images)
        small = F.avg_pool2d(x, 2) + F.max_pool2d(x, 2)
        wide = F.interpolate(small, scale_factor=2, mode="bilinear")
        wide = wide + F.interpolate(small, size=(6, 6), mode="nearest")
        return self.down(F.adaptive_avg_pool2d(x + wide, 1).flatten(1))

    def forward(self, images, targets, scores):
        x = self.slope(self.features(images))
        # In place, and through views.
        y = x * 2
        y.add_(0.5).relu_()
        y = y + 0.125  # what relu_ saved is written no more
        y[:, :2] = x[:, 2:4]
        y.masked_fill_(x > 1.5, 0.25)
        y[:, 5].mul_(0.5)
        y[1] = y[0] * 2
        y.t()[6].add_(0.125)
        y.permute(1, 0)[:2].mul_(1.5)
        first, second, *_ = y.unbind(1)
        left, right = y.chunk(2, dim=1)
        top, where = y.topk(3, dim=1)
        ordered, _ = torch.sort(left, dim=1)
        kept = ordered.gather(1, where % 4)
        loss = F.mse_loss(first, second) + (kept * top).mean()
        loss = loss + (left.max(dim=1).values - right.min(dim=1).values).mean()
        # Activations and norms.
        for act in self.acts:
            loss = loss + 0.01 * act(x).mean()
        loss = loss + F.glu(x).mean() + F.logsigmoid(x).mean()
        unit = F.normalize(x, dim=1)
        loss = loss + torch.linalg.vector_norm(x, 3) + unit.std()
        loss = loss + (x[:, :3] + 2).prod(1).mean() + x.norm(dim=1).mean()
        loss = loss + x.amax() - x.amin() + (x > 0).any(1).float().mean()
        loss = loss + torch.addcmul(x, y, y, value=0.5).lerp(y, 0.25).mean()
        loss = loss + torch.remainder(x, 2).mean() + torch.atan2(x, y + 2).mean()
        # Losses.
        z = self.head(x) + self.pair(x, y)
        loss = loss + F.cross_entropy(z, targets)
        share = scores.sigmoid()
        loss = loss + F.binary_cross_entropy(z.sigmoid(), share)
        loss = loss + F.binary_cross_entropy_with_logits(z, share)
        loss = loss + F.binary_cross_entropy_with_logits(
            z, share, weight=share, pos_weight=torch.tensor([1.0, 2.0, 0.5]))
        loss = loss + F.huber_loss(z, scores) + F.smooth_l1_loss(z, scores)
        loss = loss + F.mse_loss(z, scores, reduction="sum") / 9
        loss = loss + F.l1_loss(z, scores)
        loss = loss + F.kl_div(z.log_softmax(1), scores.softmax(1),
                               reduction="batchmean")
        return loss

    @staticmethod
    def example_inputs(batch):
        return {"images": torch.zeros(batch, 1, 6, 6),
                "targets": torch.zeros(batch, dtype=torch.int64),
                "scores": torch.zeros(batch, 3)}
'''


def own_module(context):
    """A module of many operators, trained as PyTorch does."""
    import numpy as np
    import torch

    with open(context.path("net.py"), "w", encoding="utf-8") as f:
        f.write(NET)
    rng = np.random.default_rng(5)
    data = {"images": rng.standard_normal((8, 1, 6, 6)).astype(np.float32),
            "targets": rng.integers(0, 3, 8),
            "scores": rng.standard_normal((8, 3)).astype(np.float32)}
    for name, array in data.items():
        np.save(context.path(name + ".npy"), array)
    export_all(context, [[context.path("net.py") + ":Net", "-o",
                          context.path(level + ".pt2"), "--weights", "--batch",
                          "4", "--ir", level] for level in LEVELS[:2]])
    scope = {}
    exec(NET, scope)
    torch.manual_seed(0)
    model = scope["Net"]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0)
    losses = []
    for step in range(5):
        rows = [(step * 4 + i) % 8 for i in range(4)]
        loss = model(**{n: torch.as_tensor(a[rows]) for n, a in data.items()})
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    details = []
    for level in LEVELS[:2]:
        job = {"accelerate": jobs.accelerate_config("single", 1, ""),
               "model": level + ".pt2", "init": "pretrained",
               "data": {"arrays": {n: n + ".npy" for n in data},
                        "micro_batch": 4},
               "optimizer": {"name": "adamw", "lr": 3e-3, "weight_decay": 0.0},
               "schedule": {"steps": 5, "warmup_steps": 0,
                            "decay": "constant"}, "target": "cpu"}
        path = jobs.write_job(context.path(), job, level + ".yaml")
        plan_path = context.path(level + ".json")
        planned(context, path, "--emit", "plan", "-o", plan_path)
        log = harness.execute(context, plan_path, 1,
                              context.path(level + ".jsonl"))
        worst = max(harness.relative(line["loss"], want)
                    for line, want in zip(log, losses, strict=True))
        check(worst < export_cases.LOSS,
              f"{level}: losses {[line['loss'] for line in log]}, PyTorch "
              f"{losses}")
        details.append(f"{level} {worst:.0e}")
    return ", ".join(details)


KEPT, FURTHER = ([name for name in export_cases.FAMILIES
                  if (name in export_cases.REPEATED) == repeated]
                 for repeated in (False, True))
CASES = [("families are modelled", lambda context: families(context, KEPT)),
         ("further families are modelled",
          lambda context: families(context, FURTHER)),
         ("decomposed programs train the same", trained),
         ("operators of an own module", own_module)]

REPEATED = {"further families are modelled"}
