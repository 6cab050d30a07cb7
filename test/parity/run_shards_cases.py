"""`accel-opt checkpoint merge` of accel-run's own checkpoints: the weights that
accel-run writes at its end."""
import hashlib
import json
import os
import shutil
import subprocess

import yaml

import harness
import jobs
from harness import check
from merge_cases import equal, loaded, merge


def trained(context, model, ranks, **options):
    """A run's folder, with a checkpoint of its last step."""
    jobs.make_job(context.path(), model, ranks=ranks, steps=4,
                  checkpoint_every=2, **options)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
    harness.execute(context, context.path("plan.json"), ranks,
                    context.path("run.jsonl"))
    return context.path("out")


def as_trained(model, ranks, **options):
    def case(context):
        import torch
        out = trained(context, model, ranks, **options)
        last = os.path.join(out, "step-00000004")
        want = loaded(os.path.join(out, "model"))
        answer = merge(context, last, context.path("merged"))["merged"]
        equal(loaded(context.path("merged")), want)
        check(answer["left_out"] == 2 * len(want), answer)
        merge(context, last, context.path("half"), "--dtype", "bf16",
              "--max-shard-size", "4096")
        equal(loaded(context.path("half")),
              {n: t.to(torch.bfloat16) for n, t in want.items()})
        return f"{len(want)} tensors as accel-run's own model has them"

    return case


def _with_buffers(folder):
    """A program whose model saves buffers beside its parameters: a frozen batch
    norm's statistics and counter, a mask, and one that it does not save."""
    import numpy as np
    import torch
    from torch.nn import functional

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(6, 8)
            self.norm = torch.nn.BatchNorm1d(8)
            self.head = torch.nn.Linear(8, 3)
            self.register_buffer("mask", torch.tensor([True, False] * 4))
            self.register_buffer("scale", torch.rand(8), persistent=False)

        def forward(self, rows, targets):
            norm = self.norm
            x = functional.batch_norm(self.inner(rows), norm.running_mean,
                                      norm.running_var, norm.weight, norm.bias,
                                      False, 0.0, norm.eps)
            x = torch.where(self.mask, x, x.relu()) * self.scale
            return functional.cross_entropy(self.head(x), targets)

    torch.manual_seed(0)
    model = Net().train()
    model.norm.running_mean.uniform_(-0.1, 0.1)
    model.norm.running_var.uniform_(0.5, 1.5)
    model.norm.num_batches_tracked.fill_(7)
    rng = np.random.default_rng(8)
    data = {"rows": rng.standard_normal((32, 6)).astype(np.float32),
            "targets": rng.integers(0, 3, 32)}
    for name, array in data.items():
        np.save(os.path.join(folder, name + ".npy"), array)
    torch.export.save(torch.export.export(
        model, (), kwargs={"rows": torch.zeros(4, 6),
                           "targets": torch.zeros(4, dtype=torch.int64)}),
        os.path.join(folder, "net.pt2"))
    return model


def buffers(context):
    """What a model saves beside its parameters, from checkpoints written at once
    and behind the steps, for torch's own loader and for torch's checkpoints."""
    import torch
    model = _with_buffers(context.path())
    for name, background in (("once", False), ("behind", True)):
        jobs.write_job(context.path(), {
            "accelerate": jobs.accelerate_config("fsdp", 2, "Linear"),
            "model": "net.pt2", "init": "pretrained",
            "data": {"arrays": {n: n + ".npy" for n in ("rows", "targets")},
                     "micro_batch": 4},
            "optimizer": {"name": "adamw", "lr": 1e-2},
            "schedule": {"steps": 4, "warmup_steps": 0, "decay": "constant"},
            "checkpoint": {"dir": name, "every": 2, "keep": 2,
                           "background": background},
            "target": "cpu"}, name + ".yaml")
        plan = context.path(name + ".json")
        harness.plan(context, context.path(name + ".yaml"), plan)
        harness.execute(context, plan, 2, context.path(name + ".jsonl"))
        harness.execute(context, plan, 2, context.path(name + ".jsonl"),
                        "--resume", context.path(name, "step-00000002"))
        last = context.path(name, "step-00000004")
        merge(context, last, context.path(name + "-merged"))
        got = loaded(context.path(name + "-merged"))
        # strict: all that the model saves, and nothing else.
        model.load_state_dict(got)
        equal(got, loaded(context.path(name, "model")))
        check(got["norm.num_batches_tracked"].item() == 7, got)
        merge(context, last, context.path(name + "-half"), "--dtype", "bf16")
        half = loaded(context.path(name + "-half"))
        check(half["mask"].dtype == torch.bool
              and half["norm.running_mean"].dtype == torch.bfloat16, half)
        harness.run([context.binary("accel-opt"), "checkpoint", "convert", last,
                     "--to", "dcp", "-o", context.path(name + "-dcp")])
        from torch.distributed.checkpoint.state_dict_loader import \
            _load_state_dict_from_keys
        import torch.distributed.checkpoint as dcp
        state = _load_state_dict_from_keys(
            storage_reader=dcp.FileSystemReader(context.path(name + "-dcp")))
        equal(state["model"], got)
    # A checkpoint of a model that had no such buffer yet.
    del state["model"]["mask"]
    dcp.save(state, checkpoint_id=context.path("without"), no_dist=True)
    harness.run([context.binary("accel-opt"), "checkpoint", "convert",
                 context.path("without"), "--to", "accel-run", "--samples", "32",
                 "-o", context.path("lacking")])
    text = harness.run([context.binary("accel-run"), plan, "--nproc", "2", "--resume",
                        context.path("lacking"), "--out", context.path("more"),
                        "--steps", "5"])
    note = "the checkpoint has no buffer 'mask': the plan's initial value counts"
    check(text.count(note) == 1 and text.count("has no buffer") == 1, text)
    return f"{len(got)} tensors"


def mixture(context):
    """Experts stand fused in shards; transformers loads them so too."""
    import torch
    from transformers import AutoModelForCausalLM
    out = trained(context, jobs.MODELS["mixtral"], 2)
    merge(context, os.path.join(out, "step-00000004"), context.path("merged"))
    shutil.copy(os.path.join(out, "model", "config.json"), context.path("merged"))
    states = [AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).state_dict()
              for path in (context.path("merged"), os.path.join(out, "model"))]
    equal(*states)
    return f"{len(states[0])} tensors as transformers loads them"


def sealed(folder, change, at=0):
    """Changes an entry of a shard's layout, and its hashes with it, as an
    attacker can."""
    path = os.path.join(folder, "rank-00000.safetensors")
    with open(path, "rb") as f:
        data = f.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    layout = json.loads(header["__metadata__"]["layout"])
    change(layout[0]["pieces"][at])
    header["__metadata__"]["layout"] = json.dumps(layout)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = len(text).to_bytes(8, "little") + text + data[8 + size:]
    with open(path, "wb") as f:
        f.write(data)
    path = os.path.join(folder, "state.json")
    with open(path, encoding="utf-8") as f:
        state = json.load(f)
    del state["sha256"]
    state["files"][0].update(bytes=len(data),
                             sha256=hashlib.sha256(data).hexdigest())
    text = json.dumps(state, separators=(",", ":"))
    state["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    with open(path, "w", encoding="utf-8") as f:
        json.dump(state, f)


def damage(context):
    """What the run has not written is refused, and leaves nothing."""
    out = trained(context, jobs.MODELS["gqa"], 2)
    last = os.path.join(out, "step-00000004")

    def refused(name, *words, folder=None, code="invalid-checkpoint"):
        answer = merge(context, folder or context.path(name), context.path("no"),
                       expect=4 if code == "not-supported" else 1)
        finding = answer["diagnostics"][0]
        check(finding["code"] == code
              and all(w in finding["message"] for w in words), f"{name}: {finding}")
        left = [n for n in os.listdir(context.work) if n.startswith("no")]
        check(answer["merged"] is None and not left, left)

    def copied(name):
        shutil.copytree(last, context.path(name))
        return context.path(name)

    folder = copied("bit")
    with open(os.path.join(folder, "rank-00001.safetensors"), "r+b") as f:
        f.seek(-5, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-5, os.SEEK_END)
        f.write(bytes([byte ^ 1]))
    refused("bit", "its hash differs")
    os.remove(os.path.join(copied("gone"), "rank-00001.safetensors"))
    refused("gone", "state.json names it")
    path = os.path.join(copied("state"), "state.json")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace('"step": 4', '"step": 3'))
    refused("state", "its hash differs")
    refused("above", "shards of accel-run", folder=out, code="not-supported")

    jobs.make_job(context.path("lora"), jobs.MODELS["gqa"], ranks=2, steps=2)
    path = context.path("lora", "job.yaml")
    with open(path, "a", encoding="utf-8") as f:
        f.write("\nadapter: {r: 2, target_modules: [q_proj]}\n")
    harness.plan(context, path, context.path("lora", "plan.json"))
    harness.execute(context, context.path("lora", "plan.json"), 2,
                    context.path("lora.jsonl"))
    refused("lora", "adapter", code="not-supported",
            folder=context.path("lora", "out", "step-00000002"))

    def changed(**values):
        return lambda entry: entry.update(values)

    sealed(copied("same"), changed())
    merge(context, context.path("same"), context.path("same-out"))
    equal(loaded(context.path("same-out")), loaded(os.path.join(out, "model")))
    for name, change in (
            ("begin", changed(begin=-1)), ("end", changed(end=1 << 40)),
            ("offset", changed(offset=1 << 62)),
            ("runs", changed(runs=1 << 24, stride=1 << 45)),
            ("shape", changed(shape=[1 << 40, 1 << 40])),
            ("stride", changed(runs=2, stride=0)),
            ("text", changed(begin="0")), ("name", changed(fqn="x"))):
        sealed(copied(name), change)
        refused(name, "layout" if name not in ("name",) else "are missing")
    return "each by its file"


def overlap(context):
    """Elements that are twice there while as many are missing: the sum of the
    bytes is right."""
    out = trained(context, jobs.MODELS["gqa"], 2)
    folder = os.path.join(out, "step-00000004")
    ranges = []

    def later(entry):
        """What rank 0 has of the parameter that is cut between the ranks."""
        entry.update(begin=entry["begin"] + 3, end=entry["end"] + 3)
        ranges.extend((entry["fqn"], entry["begin"], entry["end"]))

    sealed(folder, later, at=-1)
    name, begin, end = ranges
    words = (f"its elements [{end - 3}, ", f" of '{name}' overlap "
             f"[{begin}, {end}) of rank-00000.safetensors")
    finding = merge(context, folder, context.path("no"), expect=1)["diagnostics"][0]
    check(finding["code"] == "invalid-checkpoint"
          and finding["file"].endswith("rank-00001.safetensors")
          and all(w in finding["message"] for w in words), finding)

    # One rank reads both files' parts at once.
    jobs.make_job(context.path("one"), jobs.MODELS["gqa"], ranks=1, steps=6)
    plan = context.path("one", "plan.json")
    harness.plan(context, context.path("one", "job.yaml"), plan)
    done = subprocess.run(
        [context.binary("accel-run"), plan, "--nproc", "1", "--resume", folder],
        capture_output=True, text=True, timeout=120)
    check(done.returncode == 1 and "rank-00001.safetensors: " in done.stderr
          and all(w in done.stderr for w in words), (done.returncode, done.stderr))
    return f"'{name}' by both readers"


def resumed_buffers(context):
    """A run that begins elsewhere goes on with its checkpoint's buffers; a
    converted checkpoint has them too."""
    import torch
    from safetensors.torch import load_file, save_file
    jobs.make_job(context.path(), jobs.PEAKED["deepseek-v3"], ranks=2, steps=4,
                  checkpoint_every=2)
    path = context.path("model", "model.safetensors")
    weights = load_file(path)
    biases = {n: torch.linspace(-.4, .3, t.numel()).to(t.dtype).reshape(t.shape)
              for n, t in weights.items() if n.endswith("e_score_correction_bias")}
    check(biases, sorted(weights))
    save_file({**weights, **biases}, path, metadata={"format": "pt"})

    def planned(name, **changes):
        with open(context.path("job.yaml"), encoding="utf-8") as f:
            job = {**yaml.safe_load(f), **changes}
        with open(context.path(name + ".yaml"), "w", encoding="utf-8") as f:
            yaml.safe_dump(job, f)
        harness.plan(context, context.path(name + ".yaml"),
                     context.path(name + ".json"))
        return context.path(name + ".json")

    want = harness.execute(context, planned("first"), 2, context.path("l.jsonl"))
    middle = context.path("out", "step-00000002")
    convert = [context.binary("accel-opt"), "checkpoint", "convert"]
    harness.run([*convert, middle, "-o", context.path("own"), "--to", "accel-run"])
    harness.run([*convert, middle, "-o", context.path("dcp"), "--to", "dcp"])
    harness.run([*convert, context.path("dcp"), "-o", context.path("back"),
                 "--to", "accel-run", "--samples", "8"])
    # Without the pretrained weights a plan's buffers are zeros.
    plan = planned("second", init={"seed": 3})
    for name in (middle, "own", "back"):
        out = context.path("out-" + os.path.basename(name))
        got = harness.execute(context, plan, 2, context.path("r.jsonl"),
                              "--resume", context.path(name), "--out", out)
        check([r["loss"] for r in got] == [r["loss"] for r in want[2:]],
              (name, got, want))
        saved = loaded(os.path.join(out, "model"))
        check(all(torch.equal(saved[n], t) for n, t in biases.items()), name)
    return f"{len(biases)} buffers by three ways"


CASES = [
    ("merge-run", as_trained(jobs.MODELS["gqa"], 2)),
    ("merge-run-tied-3-ranks", as_trained(jobs.MODELS["tied"], 3)),
    ("merge-run-hybrid", as_trained(jobs.MODELS["gqa"], 4, replicate=2)),
    ("merge-run-tp2", as_trained(jobs.PEAKED["halves-bias"], 4, tp=2)),
    ("merge-run-tp2-packed", as_trained(jobs.PEAKED["halves-phi3"], 4, tp=2)),
    ("merge-run-mixture", mixture),
    ("merge-run-buffers", buffers),
    ("resume-buffers", resumed_buffers),
    ("merge-run-damage", damage),
    ("merge-run-overlap", overlap),
]
