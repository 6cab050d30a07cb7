"""Jobs for the dry GPU: what is run on CPUs and, with the same data and weights,
on devices that do not exist.

A case is a dict of options. Every pair of values of two options occurs in
`chosen()`; `everything()` is their product over all families. tools/gpu-check
takes its jobs from here too.
"""
import copy
import itertools
import os
import random
import subprocess
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "parity"))
import jobs  # noqa: E402

STEPS = 4
LENGTH = 32
TARGET = "h200"
# name -> (ranks, replicas, kind, what shares samples)
MESHES = {"one": (1, 1, "single", {}), "two": (2, 1, "fsdp", {}),
          "four": (4, 1, "fsdp", {}), "hybrid": (4, 2, "fsdp", {}),
          "ddp": (2, 1, "ddp", {}), "zero1": (2, 1, "zero1", {}),
          "zero2": (2, 1, "zero2", {}), "tensor": (4, 1, "fsdp", {"tp": 2}),
          "context": (2, 1, "fsdp", {"cp": 2}),
          "context-tensor": (4, 1, "fsdp", {"cp": 2, "tp": 2}),
          "heads": (2, 1, "fsdp", {"sp": 2}),
          "heads-tensor": (4, 1, "fsdp", {"sp": 2, "tp": 2}),
          "stages": (2, 1, "fsdp", {"pp": 2}),
          "stages-two": (4, 1, "fsdp", {"pp": 2}),
          "stages-four": (4, 1, "fsdp", {"pp": 4}),
          "stages-tensor": (4, 1, "fsdp", {"pp": 2, "tp": 2}),
          "stages-chunks": (2, 1, "fsdp", {"pp": 2, "chunks": 2}),
          "stages-zero-bubble": (2, 1, "fsdp", {"pp": 2, "pipeline": "zb-h1"}),
          "stages-v": (2, 1, "fsdp", {"pp": 2, "pipeline": "zb-v"}),
          "experts": (2, 1, "fsdp", {"ep": 2}),
          "experts-two": (4, 1, "fsdp", {"ep": 2}),
          "experts-tensor": (4, 1, "fsdp", {"ep": 2, "tp": 2})}
OPTIONS = {
    "precision": ["fp32", "bf16", "fp16", "bf16-fp32"],
    "mesh": ["one", "two", "four", "hybrid", "ddp"],
    "accumulation": [1, 2],
    "recompute": ["pointwise", "none", "full"],
    "extra": ["none", "clip", "chunks", "lora", "dropout", "sgd", "lion"],
}
# Each has one case behind those of the others, which stay as they are.
LATER = ("arcee", "cohere2", "ernie4_5", "glm", "granitemoehybrid",
         "hunyuan_v1_dense",
         "ministral3", "olmoe", "seed_oss")
# torch._grouped_mm takes rows of a multiple of 16 bytes.
ROWS = {"mixtral": {"intermediate_size": 48},
        "halves-mixtral": {"intermediate_size": 48},
        "gpt-oss": {"intermediate_size": 48},
        "qwen2-moe": {"moe_intermediate_size": 24},
        "qwen3-moe": {"moe_intermediate_size": 24}}
PRECISIONS = {"fp32": None,
              "bf16": {"param": "bf16", "reduce": "bf16"},
              "fp16": {"param": "fp16", "reduce": "fp16"},
              "bf16-fp32": {"param": "bf16", "reduce": "fp32"}}
# Of a job's losses against the CPU plan's, relative.
TOLERANCE = {"fp32": 1e-6, "bf16": 5e-3, "fp16": 5e-3, "bf16-fp32": 5e-3}


def tolerance(case):
    hook = case["extra"].startswith("hook-")
    return TOLERANCE["bf16" if hook else case["precision"]]


def families():
    return sorted([*jobs.MODELS, *jobs.ENCODERS])


def name(case):
    return "-".join([case["family"], case["precision"], case["mesh"],
                     f"x{case['accumulation']}", case["recompute"],
                     case["extra"], *filter(None, [case.get("target")]),
                     *(["pt2"] if case.get("archive") else []),
                     *([f"await{case['await']}"] if "await" in case else []),
                     *([f"hold{case['hold']}"] if "hold" in case else [])])


def possible(case):
    """What a job can ask for; the others are refused by accel-opt itself."""
    encoder = case["family"] in jobs.ENCODERS
    mixture = case["family"] in ROWS
    if encoder and case["extra"] in ("chunks", "lora", "dropout"):
        return False
    if encoder and case["mesh"] in ("one", "ddp"):
        return False
    if mixture and case["extra"] in ("lora", "dropout"):
        return False
    return True


def pairs(case):
    return {((a, case[a]), (b, case[b]))
            for a, b in itertools.combinations(OPTIONS, 2)}


def everything():
    for family in families():
        for values in itertools.product(*OPTIONS.values()):
            case = {"family": family, **dict(zip(OPTIONS, values))}
            if possible(case):
                yield case
    yield from special()


# Models that two ranks divide.
SPLIT = [
    {"family": family, "precision": precision, "mesh": mesh,
     "accumulation": accumulation, "recompute": recompute, "extra": extra}
    for mesh, family, precision, accumulation, recompute, extra in [
        ("tensor", "halves", "fp32", 2, "pointwise", "clip"),
        ("tensor", "halves-tied", "bf16-fp32", 1, "full", "none"),
        ("tensor", "halves-phi3", "fp32", 1, "none", "lion"),
        ("tensor", "halves-dropout", "bf16", 1, "pointwise", "none"),
        ("context", "halves-dropout", "bf16", 1, "full", "none"),
        ("heads", "halves-dropout", "fp32", 1, "none", "none"),
        ("tensor", "halves-dropout", "fp32", 2, "full", "clip"),
        ("stages-zero-bubble", "six-dropout", "bf16", 2, "pointwise", "none"),
        ("context", "halves", "fp32", 2, "pointwise", "clip"),
        ("context", "halves-tied", "bf16", 1, "full", "none"),
        ("context-tensor", "halves", "bf16-fp32", 1, "pointwise", "none"),
        ("heads", "halves", "fp32", 1, "pointwise", "clip"),
        ("heads", "halves-tied", "bf16-fp32", 2, "none", "none"),
        ("heads-tensor", "halves", "bf16", 1, "full", "none"),
        ("heads", "halves-phi3", "bf16-fp32", 1, "none", "clip"),
        ("two", "mistral-window", "bf16", 2, "none", "none"),
        ("two", "halves", "fp32", 1, "pointwise", "adafactor"),
        ("four", "halves-tied", "bf16", 2, "none", "adafactor"),
        ("two", "halves", "fp32", 1, "pointwise", "muon"),
        ("stages", "halves", "fp32", 2, "pointwise", "clip"),
        ("stages-two", "halves-tied", "bf16-fp32", 2, "full", "clip"),
        ("stages-four", "six", "bf16", 6, "pointwise", "clip"),
        ("stages-tensor", "halves-tied", "fp32", 2, "pointwise", "clip"),
        ("stages-chunks", "six", "fp32", 2, "pointwise", "clip"),
        ("stages-zero-bubble", "six", "fp32", 2, "pointwise", "clip"),
        ("stages-v", "six", "fp32", 2, "pointwise", "clip"),
        ("experts", "halves-qwen3-moe", "fp32", 1, "pointwise", "clip"),
        ("experts", "halves-mixtral", "bf16", 2, "full", "none"),
        ("experts-two", "halves-qwen3-moe", "bf16-fp32", 2, "none", "clip"),
        ("experts-tensor", "even-mixtral", "fp32", 1, "pointwise", "clip"),
        # Values have a head size of their own.
        ("one", "deepseek-v3", "fp32", 1, "none", "clip"),
        ("two", "deepseek-v3", "fp32", 2, "pointwise", "none"),
        ("zero1", "halves-tied", "fp32", 2, "none", "none"),
        ("zero2", "halves", "bf16-fp32", 2, "pointwise", "clip"),
        ("ddp", "gqa", "fp32", 2, "pointwise", "hook-bf16"),
        ("ddp", "gqa", "fp32", 1, "none", "hook-fp16")]]

# Where torch takes FlashAttention 2, not cuDNN's kernel.
OLDER = [{"family": "gqa", "precision": precision, "mesh": mesh,
          "accumulation": 2, "recompute": recompute, "extra": extra,
          "target": "a100-80gb"}
         for mesh, precision, recompute, extra in [
             ("two", "bf16", "pointwise", "clip"),
             ("hybrid", "fp16", "none", "none")]]


# Of a .pt2, whose buffers are on the device for the run; in two micro-batches.
ARCHIVED = [{"family": "gqa", "precision": precision, "mesh": mesh,
             "accumulation": 2, "recompute": recompute, "extra": extra,
             "archive": True}
            for mesh, precision, recompute, extra in [
                ("two", "bf16", "pointwise", "clip"),
                ("one", "fp32", "full", "none")]]


# Reductions that end before the next backward: the first, and each; on a hybrid
# mesh sums over replicas follow them.
AWAITED = [{"family": "gqa", "precision": precision, "mesh": mesh,
            "accumulation": accumulation, "recompute": "pointwise",
            "extra": extra, "await": await_, "layers": 5}
           for mesh, precision, accumulation, extra, await_ in [
               ("two", "bf16", 1, "none", 2),
               ("hybrid", "bf16-fp32", 2, "clip", 1),
               ("two", "fp32", 1, "clip", 100)]]
# Gathers that start where they are needed: of the last layers, and each.
HELD = [{"family": "gqa", "precision": precision, "mesh": mesh,
         "accumulation": accumulation, "recompute": "pointwise",
         "extra": extra, "hold": hold, "layers": 5}
        for mesh, precision, accumulation, extra, hold in [
            ("two", "bf16", 1, "none", 2),
            ("hybrid", "bf16-fp32", 2, "clip", 100)]]


# What waits on the host; both kinds of update, all kinds of gathers.
OFFLOADED = [
    {"family": family, "precision": precision, "mesh": mesh,
     "accumulation": accumulation, "recompute": "pointwise", "extra": extra,
     "offload": offload, **more}
    for family, precision, mesh, accumulation, extra, offload, more in [
        ("gqa", "fp32", "one", 1, "none", ["states"], {}),
        ("gqa", "bf16", "two", 2, "clip", ["states"], {}),
        ("gqa", "fp32", "one", 2, "clip", ["states", "parameters"], {}),
        ("gqa", "bf16", "two", 1, "none", ["states", "parameters"], {}),
        ("halves-tied", "fp32", "hybrid", 1, "lion",
         ["states", "parameters"], {}),
        ("gqa", "bf16", "zero2", 2, "clip", ["states", "parameters"], {}),
        # States on a drive: more units than buffers, what every kind of gather
        # leaves for it, one buffer of which nothing is overlapped, and threads
        # instead of io_uring.
        ("gqa", "bf16", "two", 2, "clip", ["states"],
         {"nvme": {}, "layers": 5}),
        ("gqa", "bf16", "two", 1, "none", ["states", "parameters"],
         {"fit": True,
          "nvme": {"buffers": 4, "block_size": 8192, "threads": 2},
          "io": "threads", "layers": 5}),
        ("gqa", "fp32", "one", 1, "clip", ["states", "parameters"],
         {"fails": True,
          "nvme": {"buffers": 1, "read_ahead": False,
                   "write_behind": False}}),
        ("halves-tied", "bf16", "hybrid", 2, "lion", ["states"],
         {"nvme": {"buffers": 2, "write_behind": False,
                   "queue_depth": 2}}),
        ("gqa", "fp16", "one", 1, "none", ["states"], {"nvme": {}}),
        # No states, and the shard in memory: nothing is on the drive.
        ("gqa", "fp32", "one", 1, "plain", ["states", "parameters"],
         {"nvme": {}, "records": False}),
        ("gqa", "bf16", "two", 1, "lora", ["states", "activations"],
         {"nvme": {}, "layers": 5}),
        ("gqa", "fp32", "one", 1, "none", ["activations"],
         {"recompute": "none", "layers": 5}),
        ("gqa", "fp32", "two", 2, "clip", ["activations"],
         {"recompute": "full", "layers": 5}),
        ("halves-tied", "bf16", "hybrid", 2, "dropout", ["activations"],
         {"layers": 5}),
        ("gqa", "bf16-fp32", "four", 1, "none",
         ["states", "parameters", "activations"],
         {"recompute": "none", "layers": 5}),
        ("gqa", "bf16", "two", 1, "lora", ["states", "activations"],
         {"layers": 5}),
        ("halves", "fp32", "tensor", 2, "clip",
         ["states", "parameters", "activations"], {"layers": 5}),
        ("halves", "fp32", "context", 1, "clip",
         ["states", "parameters", "activations"], {"layers": 5})]]


# Hold for one more model or pair of options what other cases hold: left out of the
# hour that a change has, unless asked for.
REPEATED = {
    "halves-phi3-fp32-tensor-x1-none-lion",
    "halves-phi3-bf16-fp32-heads-x1-none-clip",
    "gqa-fp16-hybrid-x2-none-none-a100-80gb",
    "gqa-fp32-one-x2-full-none-pt2",
    "gqa-bf16-two-x1-pointwise-none-await2",
    "gqa-fp32-two-x1-pointwise-clip-await100",
    "gqa-bf16-two-x1-pointwise-none-hold2",
    "offload-states-parameters-nvme-gqa-bf16-two-x1-pointwise-none",
    "offload-states-parameters-activations-gqa-bf16-fp32-four-x1-none-none"}


def special():
    """What the options do not span."""
    return SPLIT + OLDER + ARCHIVED + AWAITED + HELD


def chosen():
    """Each family at least once, and every pair of options, in few cases; then
    what the options do not span."""
    return pairwise() + special()


def pairwise():
    draw = random.Random(14)
    missing = set()
    for values in itertools.product(*OPTIONS.values()):
        missing |= pairs(dict(zip(OPTIONS, values)))
    result, order = [], [f for f in families() if f not in LATER]
    draw.shuffle(order)

    def drawn(family):
        drawings = ({"family": family, **{k: draw.choice(v)
                                          for k, v in OPTIONS.items()}}
                    for _ in range(300))
        return [case for case in drawings if possible(case)]

    turn = 0
    while missing or turn < len(order):
        candidates = drawn(order[turn % len(order)])
        turn += 1
        best = max(candidates, key=lambda c: len(pairs(c) & missing))
        if not pairs(best) & missing and turn > len(order):
            continue
        missing -= pairs(best)
        result.append(best)
    return result + [drawn(family)[0] for family in LATER]


def export(folder, data):
    """The job's model as a .pt2."""
    subprocess.run(
        [sys.executable, os.path.join(ROOT, "tools", "export-model"),
         os.path.join(folder, "model"), "-o", os.path.join(folder, "model.pt2"),
         "--weights", "--batch", str(data["micro_batch"]), "--seq-len",
         str(data["sequence_length"])], check=True, stdout=subprocess.DEVNULL)
    return "model.pt2"


def write(folder, case):
    """The jobs of a case for CPUs and for GPUs; both paths, and the ranks."""
    ranks, replicas, kind, shares = MESHES[case["mesh"]]
    family, extra = case["family"], case["extra"]
    precision = PRECISIONS[case["precision"]]
    config = {**{**jobs.PEAKED, **jobs.ENCODERS}[family],
              **ROWS.get(family, {})}
    if "layers" in case:
        config["num_hidden_layers"] = case["layers"]
    optimizer = {"sgd": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
                 "plain": {"name": "sgd", "lr": 0.05},
                 "lion": {"name": "lion", "lr": 2e-4},
                 "adafactor": {"name": "adafactor", "lr": 1e-3, "beta1": 0.9,
                               "weight_decay": 0.1},
                 "muon": {"name": "muon", "lr": 1e-3}}.get(extra)
    clip = 0.5 if extra in ("clip", "lion") else None
    if family in jobs.ENCODERS:
        job = jobs.make_array_job(
            folder, family, ranks=ranks, steps=STEPS,
            accumulation=case["accumulation"], max_grad_norm=clip,
            precision=precision)
        if optimizer:
            job["optimizer"] = {**optimizer, **(
                {"max_grad_norm": clip} if clip else {})}
        if replicas > 1:
            job["accelerate"]["parallelism_config"] = {
                "parallelism_config_dp_replicate_size": replicas,
                "parallelism_config_dp_shard_size": ranks // replicas}
    else:
        if extra == "dropout":
            for key in ("attention_dropout", "resid_pdrop", "dropout"):
                if key in config or key == "attention_dropout":
                    config[key] = 0.1
        job = jobs.make_job(
            folder, config, kind=kind, ranks=ranks, replicate=replicas,
            steps=STEPS, sequence_length=LENGTH, **shares,
            accumulation=case["accumulation"], precision=precision,
            activation_checkpointing=(
                "pointwise" if kind != "fsdp" and case["recompute"] == "full"
                else case["recompute"]),
            max_grad_norm=clip, optimizer=optimizer,
            ddp=({"comm_hook": extra[5:]} if extra.startswith("hook-")
                 else None))
        if extra == "chunks":
            job["loss_chunks"] = 4
        if "await" in case:
            job["await_reductions"] = case["await"]
        if "hold" in case:
            job["hold_gathers"] = case["hold"]
        for key in case.get("offload", ()):
            job.setdefault("offload", {})[key] = "cpu"
        if "nvme" in case:
            job["offload"].update(states="nvme", nvme={
                "path": os.path.join(folder, "nvme"), **case["nvme"]})
        if extra == "lora":
            job["adapter"] = {"r": 4, "lora_alpha": 8,
                              "target_modules": "all-linear"}
    del job["checkpoint"]
    if case.get("archive"):
        job["model"] = export(folder, job["data"])
    gpu = copy.deepcopy(job)
    job.pop("offload", None)
    cpu = jobs.write_job(folder, job, "cpu.yaml")
    gpu["target"] = case.get("target", TARGET)
    gpu["accelerate"].pop("use_cpu", None)
    if kind == "ddp":
        gpu["accelerate"]["distributed_type"] = "MULTI_GPU"
    return cpu, jobs.write_job(folder, gpu, "gpu.yaml"), ranks
