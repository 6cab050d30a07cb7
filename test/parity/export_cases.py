"""A .pt2 of torch.export is planned and trained like the same model's
config.json, and modules of one's own like PyTorch trains them."""
import importlib.machinery
import importlib.util
import json
import os

import harness
import jobs
from harness import check

LOSS = 1e-5      # relative; another order of sums where shapes differ
LOSS_BF16 = 2e-3
PEAK = 0.01      # of the predicted peak
EXPORTER = os.path.join(harness.ROOT, "tools", "export-model")


def _exporter():
    loader = importlib.machinery.SourceFileLoader("export_model", EXPORTER)
    spec = importlib.util.spec_from_loader("export_model", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _export(arguments):
    """tools/export-model in this process, which has torch already."""
    import sys

    module = _exporter()
    sys.argv = ["export-model", *arguments]
    module.main()


def export(context, *arguments):
    harness.in_python(_export, [({}, (list(arguments),))],
                      context.path("export.out"))


def compare_plans(got, want):
    """The same parameters, with their initial values and checkpoint names, in
    the same units; peaks within PEAK."""
    def parameters(plan):
        return {p["fqn"]: {k: v for k, v in p.items() if k != "offset"}
                for p in plan["parameters"]}
    a, b = parameters(got), parameters(want)
    check(list(a) == list(b), f"parameters {sorted(set(a) ^ set(b))[:6]} are on "
                              "one side only, or in another order")
    for name in a:
        check(a[name] == b[name], f"{name}: {a[name]}, of config.json {b[name]}")
    units = [[(u["name"], u["numel"]) for u in p["units"]]
             for p in (got, want)]
    check(units[0] == units[1], f"units {units[0]}, of config.json {units[1]}")
    peaks = [p["predicted"]["memory"]["peak_bytes"] for p in (got, want)]
    check(harness.relative(*peaks) <= PEAK,
          f"predicted peak {peaks[0]} bytes, of config.json {peaks[1]}")
    functions = [len(p["functions"]) for p in (got, want)]
    return f"peaks {peaks[0] / peaks[1]:.4f}, functions {functions}"


def arguments_of(job):
    """What tools/export-model must be told for the job's data."""
    data = job["data"]
    arrays = data.get("arrays", {})
    extra = [n for n in ("attention_mask", "token_type_ids") if n in arrays]
    result = ["--batch", str(data["micro_batch"])]
    if "sequence_length" in data:
        result += ["--seq-len", str(data["sequence_length"])]
    if "target_length" in data:
        result += ["--target-len", str(data["target_length"])]
    return result + (["--inputs", ",".join(extra)] if extra else [])


def no_opaque(context, job_path):
    """Every operator of a family is modelled."""
    said = harness.run([context.binary("accel-opt"), "plan", job_path])
    check("[opaque-operator]" not in said, said)


def _load(written, original):
    """transformers loads what a run of a .pt2 has written: the configuration
    is the model's, and no weight is missing."""
    import transformers

    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        written, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        check(not info[kind], f"{kind}: {info[kind]}")
    want = transformers.AutoConfig.from_pretrained(original).to_dict()
    got = transformers.AutoConfig.from_pretrained(written).to_dict()
    other = {k for k in want if want[k] != got.get(k)} - {
        "_name_or_path", "transformers_version", "dtype", "architectures"}
    check(not other, f"config.json differs in {sorted(other)}")


def same(context, model, weights=True, most=None, loads=False):
    """20 steps on 2 ranks from config.json and from the .pt2, whose layers of a
    kind share a function each: at most `most` in all."""
    if model in jobs.ENCODERS:
        job = jobs.make_array_job(context.path(), model, steps=20)
    else:
        job = jobs.make_job(context.path(), jobs.MODELS[model], ranks=2,
                            steps=20)
    job.pop("checkpoint", None)
    if not weights:
        job["init"] = {"seed": 3}
    jobs.write_job(context.path(), job)
    arguments = [context.path("model"), "-o", context.path("model.pt2")]
    export(context, *arguments,
           *(["--weights", *arguments_of(job)] if weights else ["--dynamic"]))
    jobs.write_job(context.path(), dict(job, model="model.pt2"),
                   "exported.yaml")
    plans, logs = [], []
    for name, job_name in (("exported", "exported.yaml"), ("config", "job.yaml")):
        plan_path = context.path(name + ".json")
        plans.append(harness.plan(context, context.path(job_name), plan_path))
        out = ["--out", context.path("out")] if loads and not logs else []
        logs.append(harness.execute(
            context, plan_path, 2, context.path(name + ".jsonl"),
            "--summary", context.path(name + ".summary.json"), *out))
    text = compare_plans(*plans)
    no_opaque(context, context.path("exported.yaml"))
    if most:
        check(len(plans[0]["functions"]) <= most,
              f"functions {[f['name'] for f in plans[0]['functions']]}")
    # Each step has other tokens.
    check(min(line["loss"] for line in logs[1][10:]) < logs[1][0]["loss"],
          "nothing was learnt")
    worst = harness.compare_logs(logs[0], logs[1], "loss", LOSS)
    if loads:
        harness.in_python(_load, [({}, (context.path("out", "model"),
                                        context.path("model")))],
                          context.path("load.out"))
    memory = harness.compare_memory(plans[0], context.path("exported.summary.json"))
    return f"loss {worst:.1e}, {text}, {memory}"


def mixed(context):
    """In bf16 too, where each side puts its own casts."""
    details = []
    for model in ("gemma2", "falcon-alibi", "olmo2", "t5"):
        os.makedirs(context.path(model), exist_ok=True)
        folder = os.path.join(context.path(), model)
        if model in jobs.ENCODERS:
            job = jobs.make_array_job(folder, model, steps=4, precision={"param": "bf16"})
        else:
            job = jobs.make_job(folder, jobs.MODELS[model], ranks=2, steps=4,
                                precision={"param": "bf16"})
        job.pop("checkpoint", None)
        jobs.write_job(folder, job)
        export(context, os.path.join(folder, "model"), "-o",
               os.path.join(folder, "model.pt2"), "--weights",
               *arguments_of(job))
        jobs.write_job(folder, dict(job, model="model.pt2"), "exported.yaml")
        logs, peaks = [], []
        for name in ("exported", "job"):
            path = os.path.join(folder, name)
            plan = harness.plan(context, path + ".yaml", path + ".json")
            peaks.append(plan["predicted"]["memory"]["peak_bytes"])
            logs.append(harness.execute(context, path + ".json", 2,
                                        path + ".jsonl"))
        worst = harness.compare_logs(*logs, "loss", LOSS_BF16)
        details.append(f"{model} {worst:.1e} {peaks[0] / peaks[1]:.3f}")
    return ", ".join(details)


NET = '''
import torch

class Net(torch.nn.Module):
    """A local class with sizes of its own, an operator that is not modelled,
    and a convolution."""
    def __init__(self, norm=False):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4) if norm else torch.nn.Identity()
        self.head = torch.nn.Linear(4, 3)

    def forward(self, images, targets):
        x = torch.celu(self.norm(self.conv(images)))
        return torch.nn.functional.cross_entropy(self.head(x.mean((2, 3))), targets)

    @staticmethod
    def example_inputs(batch):
        return {"images": torch.zeros(batch, 1, 6, 6),
                "targets": torch.zeros(batch, dtype=torch.int64)}
'''


FRAMES = '''
import torch

class Frames(torch.nn.Module):
    """Sizes open by name, a value without gradient, and a layer that the loss
    does not read."""
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(5, 6)
        self.head = torch.nn.Linear(6, 3)
        self.spare = torch.nn.Linear(4, 4)

    def forward(self, frames, targets):
        x = torch.tanh(self.proj(frames))
        x = x + (0.5 * x * x).detach()
        return torch.nn.functional.cross_entropy(self.head(x.mean(1)), targets)

    @staticmethod
    def example_inputs(batch):
        return {"frames": torch.zeros(batch, 7, 5),
                "targets": torch.zeros(batch, dtype=torch.int64)}

    @staticmethod
    def dynamic_shapes():
        batch = torch.export.Dim("batch")
        return {"frames": {0: batch, 1: torch.export.Dim("frames", max=50)},
                "targets": {0: batch}}
'''


def open_sizes(context):
    """Sizes by name, of arrays and by bounds; what the loss does not read stays
    as it is; lengths of examples that the model has positions for."""
    import numpy as np
    import torch

    rng = np.random.default_rng(6)
    data = {"frames": rng.standard_normal((8, 9, 5)).astype(np.float32),
            "targets": rng.integers(0, 3, 8)}
    for name, array in data.items():
        np.save(context.path(name + ".npy"), array)
    with open(context.path("net.py"), "w", encoding="utf-8") as f:
        f.write(FRAMES)
    os.makedirs(context.path("whisper"), exist_ok=True)
    config = dict(jobs.ENCODERS["whisper"], max_target_positions=24)
    with open(context.path("whisper/config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    harness.in_python(_export, [
        ({}, ([context.path("net.py") + ":Frames", "-o",
               context.path("net.pt2"), "--weights", "--dynamic"],)),
        ({}, ([context.path("whisper"), "-o", context.path("whisper.pt2")],)),
    ], context.path("export.out"))
    out = harness.run([EXPORTER, context.path("whisper"), "-o",
                       context.path("no.pt2"), "--seq-len", "25"], expect=1)
    check("--seq-len 25 is more than the 24 positions" in out, out[-600:])
    job = {"accelerate": jobs.accelerate_config("single", 1, ""),
           "model": "net.pt2", "init": "pretrained",
           "data": {"arrays": {n: n + ".npy" for n in data}, "micro_batch": 4},
           "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.1},
           "schedule": {"steps": 6, "warmup_steps": 0, "decay": "constant"},
           "checkpoint": {"dir": "out", "every": 6}, "target": "cpu"}
    jobs.write_job(context.path(), job)
    planner = [context.binary("accel-opt"), "plan"]
    out = harness.run([*planner, context.path("job.yaml")])
    for part in ("(frames.1) is taken to be 9, as in 'frames.npy'",
                 "2 parameters (spare.weight, spare.bias)"):
        check(part in out, f"no '{part}' in {out[-2000:]}")
    out = harness.run([*planner, context.path("job.yaml"), "--dim",
                       "frames.1=51"], expect=1)
    check("was exported as at most 50" in out, out[-600:])
    jobs.write_job(context.path(), dict(job["accelerate"]), "yaml.yaml")
    out = harness.run([*planner, context.path("yaml.yaml"), "--model",
                       context.path("net.pt2")])
    check("is taken to be its bound, 50" in out, out[-1000:])
    out = harness.run([*planner, context.path("yaml.yaml"), "--model",
                       context.path("whisper.pt2")])
    check("24 tokens" in out, out[-1000:])
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    log = harness.execute(context, plan_path, 1, context.path("run.jsonl"))
    scope = {}
    exec(FRAMES, scope)
    torch.manual_seed(0)
    model = scope["Frames"]()
    spare = model.spare.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for step, line in enumerate(log):
        rows = [(step * 4 + i) % 8 for i in range(4)]
        loss = model(*(torch.as_tensor(data[n][rows]) for n in data))
        check(harness.relative(loss.item(), line["loss"]) < LOSS,
              f"step {step}: loss {line['loss']}, PyTorch {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    check(torch.equal(model.spare.weight, spare), "PyTorch changes it too")
    from safetensors.torch import load_file
    weights = load_file(context.path("out/model/model.safetensors"))
    for name, value in model.state_dict().items():
        worst = (weights[name] - value).abs().max().item()
        check(worst <= (0 if "spare" in name else 1e-6), f"{name}: {worst}")


def _image_norms(folder):
    """A program in torch.export's training form with norms that torch calls by
    flags such as cudnn_enabled, and that program's model."""
    import torch
    from torch.nn import functional

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 8, 3)
            self.group = torch.nn.GroupNorm(2, 8)
            self.instance = torch.nn.InstanceNorm2d(8, affine=True)
            self.batch = torch.nn.BatchNorm2d(8)
            self.head = torch.nn.Linear(8, 3)

        def forward(self, images, targets):
            x = self.instance(self.group(self.conv(images)).relu())
            norm = self.batch  # frozen: its statistics are constants
            x = functional.batch_norm(x, norm.running_mean, norm.running_var,
                                      norm.weight, norm.bias, False, 0.0,
                                      norm.eps)
            return functional.cross_entropy(self.head(x.mean((2, 3))), targets)

    torch.manual_seed(0)
    model = Net().train()
    model.batch.running_mean.uniform_(-0.1, 0.1)
    model.batch.running_var.uniform_(0.5, 1.5)
    batch = {"images": torch.zeros(4, 1, 6, 6),
             "targets": torch.zeros(4, dtype=torch.int64)}
    program = torch.export.export(model, (), kwargs=batch)
    torch.export.save(program, os.path.join(folder, "net.pt2"))
    # In core operators, whose frozen batch norm has two empty results.
    torch.export.save(program.run_decompositions(),
                      os.path.join(folder, "core.pt2"))

    class Tracking(Net):
        """What its norms track, their call in the program does not say."""
        def __init__(self, batch):
            super().__init__()
            self.tracked = batch
            self.instance = torch.nn.InstanceNorm2d(
                8, affine=True, track_running_stats=not batch)

        def forward(self, images, targets):
            x = self.instance(self.conv(images))
            if self.tracked:
                norm = self.batch
                x = functional.batch_norm(x, norm.running_mean,
                                          norm.running_var, norm.weight,
                                          norm.bias, True)
            return functional.cross_entropy(self.head(x.mean((2, 3))), targets)

    for name, tracks in (("batch", True), ("instance", False)):
        torch.export.save(
            torch.export.export(Tracking(tracks).train(), (), kwargs=batch),
            os.path.join(folder, f"tracks-{name}.pt2"))
    return model


def _norms_job(context, name, data):
    jobs.write_job(context.path(), {
        "accelerate": jobs.accelerate_config("single", 1, ""),
        "model": name + ".pt2", "init": "pretrained",
        "data": {"arrays": {n: n + ".npy" for n in data}, "micro_batch": 4},
        "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.1},
        "schedule": {"steps": 6, "warmup_steps": 0, "decay": "constant"},
        "target": "cpu"}, name + ".yaml")
    return context.path(name + ".yaml")


def _train_norms(context, data, model, name):
    """The largest difference of a step's loss."""
    import torch

    path = context.path(name + ".json")
    harness.plan(context, _norms_job(context, name, data), path)
    log = harness.execute(context, path, 1, context.path(name + ".jsonl"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    worst = 0.0
    for step, line in enumerate(log):
        rows = [(step * 4 + i) % 8 for i in range(4)]
        loss = model(*(torch.as_tensor(data[n][rows]) for n in data))
        worst = max(worst, harness.relative(loss.item(), line["loss"]))
        check(worst < LOSS, f"{name}, step {step}: loss {line['loss']}, "
                            f"PyTorch {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return worst


def image_norms(context):
    """Group norm, instance norm and frozen batch norm of a .pt2 train as in
    PyTorch; norms that change their buffers in each step are refused."""
    import copy

    import numpy as np

    rng = np.random.default_rng(8)
    data = {"images": rng.standard_normal((8, 1, 6, 6)).astype(np.float32),
            "targets": rng.integers(0, 3, 8)}
    for name, array in data.items():
        np.save(context.path(name + ".npy"), array)
    start = _image_norms(context.path())
    worst = max(_train_norms(context, data, copy.deepcopy(start), name)
                for name in ("net", "core"))
    for name in ("batch", "instance"):
        said = harness.run([context.binary("accel-opt"), "plan",
                            _norms_job(context, f"tracks-{name}", data)],
                           expect=4)
        check(f"changes its buffer '{name}.running_mean' in each step" in said,
              said)
    return f"loss {worst:.1e}"


def _own_script(folder, config):
    """What docs/guide.md says of a script of one's own: the program as it was
    traced, and functional in core operators."""
    import torch
    import transformers

    class Job(torch.nn.Module):
        def __init__(self):
            super().__init__()
            kind = transformers.AutoConfig.for_model(**config)
            self.model = transformers.AutoModelForCausalLM.from_config(kind)

        def forward(self, input_ids, labels):
            return self.model(input_ids=input_ids, labels=labels,
                              shift_labels=labels, use_cache=False).loss

    torch.manual_seed(0)
    ids = torch.zeros(2, 12, dtype=torch.int64)
    program = torch.export.export(Job().train(), (), kwargs={
        "input_ids": ids, "labels": ids.clone()})
    torch.export.save(program, os.path.join(folder, "traced.pt2"))
    torch.export.save(program.run_decompositions(),
                      os.path.join(folder, "functional.pt2"))


def functional(context):
    """A program after run_decompositions() trains as the one before."""
    job = jobs.make_job(context.path(), jobs.MODELS["mixtral"], ranks=1, steps=3)
    job.pop("checkpoint", None)
    job["data"].update(sequence_length=12, micro_batch=2)
    config = {k: v for k, v in jobs.MODELS["mixtral"].items()
              if k != "architectures"}
    harness.in_python(_own_script, [({}, (context.path(), config))],
                      context.path("export.out"))
    logs = []
    for name in ("traced", "functional"):
        jobs.write_job(context.path(), dict(job, model=name + ".pt2"),
                       name + ".yaml")
        path = context.path(name + ".json")
        harness.plan(context, context.path(name + ".yaml"), path)
        logs.append(harness.execute(context, path, 1,
                                    context.path(name + ".jsonl")))
    worst = harness.compare_logs(*logs, "loss", LOSS)
    return f"loss {worst:.1e}"


def own_class(context):
    """A class of a file: trained as PyTorch trains it; batch norm, whose
    statistics change in each step, is refused with the reason."""
    import numpy as np
    import torch

    with open(context.path("net.py"), "w", encoding="utf-8") as f:
        f.write(NET)
    rng = np.random.default_rng(5)
    data = {"images": rng.standard_normal((8, 1, 6, 6)).astype(np.float32),
            "targets": rng.integers(0, 3, 8)}
    for name, array in data.items():
        np.save(context.path(name + ".npy"), array)
    job = {"accelerate": jobs.accelerate_config("single", 1, ""),
           "model": "net.pt2", "init": "pretrained",
           "data": {"arrays": {n: n + ".npy" for n in data}, "micro_batch": 4},
           "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.0},
           "schedule": {"steps": 6, "warmup_steps": 0, "decay": "constant"},
           "target": "cpu"}
    jobs.write_job(context.path(), job)
    source = context.path("net.py") + ":Net"
    export(context, source, "-o", context.path("net.pt2"), "--weights",
           "--batch", "4")
    out = harness.run([context.binary("accel-opt"), "plan",
                       context.path("job.yaml")])
    check("aten::celu" in out and "[opaque-operator]" in out,
          "the operator that is not modelled is not named")
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    log = harness.execute(context, plan_path, 1, context.path("run.jsonl"))
    scope = {}
    exec(NET, scope)
    torch.manual_seed(0)
    model = scope["Net"]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
    for step, line in enumerate(log):
        rows = [(step * 4 + i) % 8 for i in range(4)]
        loss = model(*(torch.as_tensor(data[n][rows])
                       for n in ("images", "targets")))
        check(harness.relative(loss.item(), line["loss"]) < LOSS,
              f"step {step}: loss {line['loss']}, PyTorch {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    export(context, source, "-o", context.path("net.pt2"), "--weights",
           "--batch", "4", "--args", '{"norm": true}')
    out = harness.run([context.binary("accel-opt"), "plan",
                       context.path("job.yaml")], expect=4)
    check("norm" in out and "[not-supported]" in out, out[-600:])


# By family; the functions that its layers make, with those of their neighbours.
FAMILIES = {
    "gqa": 9, "mistral-window": 9, "qwen2": 9, "qwen3": 9, "gemma": 9,
    "gemma2": 12, "gemma3": 12, "phi3": 9, "gpt2": 9, "gpt-neox": 9, "opt": 9,
    "falcon": 9, "falcon-alibi": 9, "mpt": 9, "olmo2": 9, "mixtral": 9,
    "qwen3-moe": 15, "bert": 9, "roberta": 9, "t5": 27, "vit": 9,
    "whisper": 18,
}


def case(model, **options):
    return lambda context: same(context, model, **options)


CASES = [("llama-open", case("gqa", weights=False, most=9)),
         ("own-class", own_class), ("image-norms", image_norms),
         ("open-sizes", open_sizes),
         ("functional", functional), ("bf16", mixed)]
CASES += [(name, case(name, most=most, loads=name == "gqa")) for name, most in FAMILIES.items()]

REPEATED = {"mistral-window", "qwen2", "qwen3", "gemma", "gemma2", "phi3",
            "gpt-neox", "opt", "falcon", "mpt", "olmo2", "qwen3-moe", "roberta"}
