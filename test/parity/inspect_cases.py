"""`accel-opt checkpoint inspect` against torch: what it says of a checkpoint is
what torch's own reader finds in it, and damage is named."""
import glob
import json
import os
import sys

import harness
from harness import check


def inspect(context, folder, expect=0):
    return json.loads(harness.run(
        [context.binary("accel-opt"), "checkpoint", "inspect", folder,
         "--format", "json"], expect=expect))


def described(tensors):
    return {t["name"]: (t["dtype"], t["shape"], t["bytes"], t["shards"])
            for t in tensors}


def distributed(context):
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    folder = context.path("dcp")
    harness.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                 "--nproc-per-node", "2",
                 os.path.join(harness.HERE, "checkpoint_writer.py"), folder])
    found = inspect(context, folder)["checkpoint"]
    check(found["format"] == "torch-dcp", found["format"])
    part, = found["parts"]
    entries = FileSystemReader(folder).read_metadata().state_dict_metadata
    want = {name: (str(e.properties.dtype).removeprefix("torch."),
                   list(e.size), e.size.numel() * e.properties.dtype.itemsize,
                   len(e.chunks))
            for name, e in entries.items()
            if isinstance(e, TensorStorageMetadata)}
    check(described(part["tensors"]) == want, f"{part['tensors']}\n{want}")
    check(part["objects"] == len(entries) - len(want), part["objects"])
    check(any(t[3] == 2 for t in want.values()), "nothing is sharded")
    # A shard file that is cut, then one that is gone.
    shards = sorted(glob.glob(os.path.join(folder, "*.distcp")))
    os.truncate(shards[0], 100)
    os.remove(shards[1])
    damaged = inspect(context, folder, expect=1)
    messages = [d["message"] for d in damaged["diagnostics"]]
    check(damaged["checkpoint"] is None and len(messages) == 2
          and "is cut: it has 100 bytes" in messages[0]
          and "are missing" in messages[1], messages)
    return f"{len(want)} tensors, {part['objects']} other values"


def saved(context):
    """Files of torch.save, tensors in nested dictionaries."""
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(5, 7),
                                torch.nn.Linear(7, 3, dtype=torch.bfloat16))
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    os.makedirs(context.path("saved"))
    torch.save(model.state_dict(), context.path("saved", "model.bin"))
    torch.save(optimizer.state_dict(), context.path("saved", "optimizer.bin"))
    torch.save({"p": torch.nn.Parameter(torch.ones(2)),
                "q": torch.zeros(3, dtype=torch.float8_e4m3fn)},
               context.path("saved", "other.bin"))
    parts = {p["path"]: described(p["tensors"])
             for p in inspect(context, context.path("saved"))
             ["checkpoint"]["parts"]}

    def row(t):
        return (str(t.dtype).removeprefix("torch."), list(t.shape), t.nbytes, 1)

    want = {name: row(t) for name, t in model.state_dict().items()}
    check(parts["model.bin"] == want, f"{parts['model.bin']}\n{want}")
    want = {f"state.{i}.{name}": row(t)
            for i, state in optimizer.state_dict()["state"].items()
            for name, t in state.items()}
    check(parts["optimizer.bin"] == want, f"{parts['optimizer.bin']}\n{want}")
    check(parts["other.bin"] == {"p": ("float32", [2], 8, 1),
                                 "q": ("float8_e4m3fn", [3], 3, 1)},
          parts["other.bin"])
    return f"{sum(map(len, parts.values()))} tensors"


def attack(context):
    """A pickle that would create a file is named, and creates none."""
    import torch
    os.makedirs(context.path("attack"))
    made = context.path("made")

    class Attack:
        def __reduce__(self):
            return os.mkdir, (made,)

    torch.save({"weight": Attack()}, context.path("attack", "model.bin"))
    answer = inspect(context, context.path("attack"), expect=1)
    finding, = answer["diagnostics"]
    check(finding["code"] == "foreign-pickle" and "mkdir" in finding["message"],
          finding)
    check(not os.path.exists(made), "the pickle ran")
    return finding["message"]


def layouts(context):
    """Folders are told apart by their files; token files are none of them."""
    import torch
    from safetensors.torch import save_file

    def found(name, *files):
        os.makedirs(context.path(name))
        for file in files:
            path = context.path(name, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if file.endswith(".safetensors"):
                save_file({"w": torch.ones(2)}, path)
            elif file.endswith(".json"):
                with open(path, "w", encoding="utf-8") as f:
                    json.dump({"global_step": 30}, f)
            elif file.endswith("tokens.bin"):
                with open(path, "wb") as f:
                    f.write(bytes(64))
            else:
                torch.save({"w": torch.ones(2)}, path)
        return inspect(context, context.path(name))["checkpoint"]

    for want, *files in (
            ("accelerate", "model.safetensors", "random_states_0.pkl"),
            ("accelerate", "pytorch_model_fsdp.bin", "random_states_0.pkl"),
            ("deepspeed", "global_step5/mp_rank_00_model_states.pt"),
            ("trainer", "model.safetensors", "trainer_state.json"),
            ("huggingface", "model.safetensors", "config.json"),
            ("safetensors", "a.safetensors", "tokens.bin")):
        answer = found(want + str(len(os.listdir(context.work))), *files)
        check(answer["format"] == want, f"{files}: {answer['format']}")
        check(answer["step"] == (30 if want == "trainer" else None), answer)
        check("tokens.bin" not in [p["path"] for p in answer["parts"]], answer)
    return "six layouts"


def recorded(context):
    """A trace that torch.profiler wrote of steps on CPUs, beside the prediction:
    bytes as its allocator counts them."""
    import jobs
    folder, trace = context.path("model"), context.path("trace.json")
    jobs.write_config(folder, jobs.MODELS["gqa"])
    harness.in_python(_profile, [({}, (folder, trace, 16, 256))],
                      context.path("torch.out"), timeout=240)
    config = jobs.write_job(context.path(), {
        "distributed_type": "NO", "num_processes": 1, "use_cpu": True,
        "mixed_precision": "no"}, "one.yaml")
    figures = json.loads(harness.run(
        [context.binary("accel-opt"), "compare", config, trace, "--model",
         folder, "--seq-len", "256", "--micro-batch", "16", "--target", "cpu",
         "--format", "json"]))["figures"]
    peak, step = figures["peak_bytes"], figures["step_s"]
    apart = peak["predicted"] / peak["measured"] - 1
    check(abs(apart) < 0.05, peak)
    check(0 < step["measured"] < 60 and step["predicted"] > 0, step)
    return f"{peak['measured']:.0f} bytes, {apart:+.1%}"


def _profile(folder, path, batch, length):
    import torch
    import tracked_step
    model = tracked_step.build(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    ids = torch.randint(0, model.config.vocab_size, (batch, length))
    with torch.profiler.profile(
            profile_memory=True,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=3),
            on_trace_ready=lambda p: p.export_chrome_trace(path)) as profiler:
        for _ in range(4):
            tracked_step.one_step(model, optimizer, ids)
            profiler.step()


CASES = [("trace-beside-plan", recorded), ("inspect-layouts", layouts), ("inspect-dcp", distributed), ("inspect-torch-save", saved),
         ("inspect-attack", attack)]
