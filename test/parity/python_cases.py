"""The FSDP2 file of --emit python: it runs, shards as it says, and the model
trains as one process does."""
import importlib.util
import os

import harness
import jobs
from harness import check

STEPS = 3


def load(path):
    spec = importlib.util.spec_from_file_location("fsdp2_plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(model_path, plan_path):
    """STEPS of AdamW on a fixed batch; [loss] and what was sharded. Without a
    plan, one process."""
    import torch
    import torch.distributed as dist
    import transformers

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model_path, dtype=torch.float32, attn_implementation="sdpa")
    model.config.use_cache = False
    model.train()
    plan, units = None, []
    if plan_path:
        dist.init_process_group("gloo")
        plan = load(plan_path)
        model = plan.apply(model, "cpu")
        from torch.distributed.fsdp import FSDPModule

        units = sorted(name.replace("._checkpoint_wrapped_module", "")
                       for name, m in model.named_modules()
                       if isinstance(m, FSDPModule) and name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.arange(64).reshape(2, 32) % model.config.vocab_size
    losses = []
    for _ in range(STEPS):
        if plan:
            plan.before_micro_batch(model, plan.ACCUMULATION - 1)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss))
    if plan_path:
        dist.destroy_process_group()
    return losses, units


def emitted(budget, expect, **kind):
    """Plans under a budget at this part of the way from the leanest setting to
    the configuration; the file has `expect`."""
    def case(context):
        import fsdp2

        jobs.make_job(context.path(), jobs.MODELS["gqa"], steps=1, **kind)
        accelerate = jobs.accelerate_config("fsdp", 2, "LlamaDecoderLayer")
        config = jobs.write_job(context.path(), accelerate, "fsdp.yaml")
        common = [context.binary("accel-opt"), "plan", config, "--model",
                  context.path("model"), "--target", "cpu", "--seq-len", "32",
                  "--micro-batch", "2", "--loss-chunks", "1", "--format",
                  "json"]
        import json

        # Between the leanest setting and the configuration.
        least = json.loads(harness.run([*common, "--tune=all",
                                        "--memory-budget", "1"], expect=2))
        low = least["tune"]["leanest_bytes"]
        high = least["memory"]["device_bytes"]
        allowed = int(low + (high - low) * budget)
        path = context.path("fsdp2_plan.py")
        harness.run([*common, "--memory-budget", str(allowed), "--tune=all",
                     "--emit", "python", "-o", path])
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for part in expect:
            check(part in text, f"{path} has no {part!r}")
        port = fsdp2.free_port()
        got = harness.in_python(
            train, [(fsdp2.rank_environment(rank, 2, port),
                     (context.path("model"), path)) for rank in range(2)],
            context.path("ranks.out"))
        [(want, _)] = harness.in_python(
            train, [({}, (context.path("model"), None))],
            context.path("one.out"))
        worst = 0.0
        for losses, units in got:
            check(len(units) > 2, f"only {units} are sharded")
            for a, b in zip(losses, want):
                worst = max(worst, harness.relative(a, b))
        check(worst <= 1e-5, f"losses {got[0][0]}, one process has {want}")
        return f"{len(got[0][1])} units, losses within {worst:.1e}"
    return case


CASES = [
    ("as-fast-as-can-be", emitted(4.0, ["UNITS = ["])),
    ("under-a-budget", emitted(0.3, ["\"full\"", "CHECKPOINT = {"])),
]
