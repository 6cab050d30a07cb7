"""Llama-3.1-8B in its own size, one job for each way to spread its parameters
and to keep its activations: what a step launches, copies and waits for, which
follows from sizes too (an update takes its elements in chunks), its order, its
bytes and its seconds. Nothing computes values, so that no tensor takes memory,
and every parameter starts with zeros, which nobody draws: a job takes a second
or two, where the plan would have needed hundreds of gigabytes."""
import hashlib
import json
import os
import re
import shutil

import checks
import gpu_jobs
import steps_table
from checks import check

STEPS = checks.SETTLED + 1
BASE = {"kind": "fsdp", "ranks": 8, "tokens": 8192, "rows": 1,
        "precision": gpu_jobs.BF16, "accumulation": 1, "full": False,
        "clip": 1.0, "job": {}}
JOBS = {
    "8b-x8": {},
    "8b-x2": {"ranks": 2},
    # Each layer is recomputed from its input; the sums of two micro-batches.
    "8b-x8-full-two": {"full": True, "accumulation": 2},
    "8b-x8-chunks": {"job": {"loss_chunks": 4}},
    "8b-x8-unclipped-2k": {"clip": None, "tokens": 2048},
    "8b-x2-fp32-sums": {"ranks": 2, "tokens": 2048,
                        "precision": {"param": "bf16", "reduce": "fp32"}},
}
DRAWN = re.compile(r',"init":\{"normal":[^}]*\}')
HASH = re.compile(r'\n"hash": "sha256:[0-9a-f]*",')


def start_at_zero(path):
    """The plan without the initial values of its matrices, and its hash, which
    is of all but its own line."""
    with open(path, encoding="utf-8") as f:
        text, drawn = DRAWN.subn("", f.read())
    check(drawn > 0, f"{path} draws no parameter")
    head, rest = HASH.split(text)
    digest = hashlib.sha256((head + rest).encode()).hexdigest()
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'{head}\n"hash": "sha256:{digest}",{rest}')


def examine(tools, name):
    case = {**BASE, **JOBS[name]}
    folder = os.path.join(tools.work, "full-size-" + name)
    path = os.path.join(folder, "gpu.json")
    plan = tools.plan(gpu_jobs.large_job(
        folder, case, {**gpu_jobs.LLAMA_8B, "num_hidden_layers": 32}, STEPS),
        path)
    start_at_zero(path)
    summary = os.path.join(folder, "summary.json")
    _, reports = tools.run_dry(path, case["ranks"], folder, "--summary",
                               summary, values=False)
    checks.in_order(reports)
    with open(summary, encoding="utf-8") as f:
        measured = json.load(f)["measured"]
    checks.own_peak(tools, plan, measured)
    checks.as_reserved(tools, plan, measured)
    checks.in_time(tools, folder)
    counts = steps_table.counts(reports[0], checks.SETTLED)
    for key in ("cudaMalloc", "cudaHostAlloc", "copies of pageable memory"):
        check(counts[key] == "0", f"{key} in a settled step: {counts[key]}")
    shutil.rmtree(folder)
    return counts, (f"{counts['launches']} launches, "
                    f"{measured['own_peak_bytes']} bytes at the peak")
