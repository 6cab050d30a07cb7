"""The jobs of tools/gpu-check: plans for one H200, data, and the losses of the
same jobs on CPUs."""
import copy
import json
import os
import shutil
import subprocess

import cases
import jobs

STEPS = 3
BASE = {"family": "gqa", "precision": "fp32", "mesh": "one", "accumulation": 1,
        "recompute": "pointwise", "extra": "none"}
# Of Llama-3.1-8B; layers and sizes of what is run of it.
LLAMA_8B = {**jobs.LLAMA, "vocab_size": 128256, "hidden_size": 4096,
            "intermediate_size": 14336, "num_attention_heads": 32,
            "num_key_value_heads": 8, "max_position_embeddings": 131072,
            "rope_parameters": jobs.ROPE_LLAMA3}


# Tensors from below a page of the allocator to many of them.
MIDDLE = {**LLAMA_8B, "vocab_size": 6000, "hidden_size": 768,
          "intermediate_size": 2048, "num_attention_heads": 12,
          "num_key_value_heads": 4, "num_hidden_layers": 2}
BF16 = {"param": "bf16", "reduce": "bf16"}
SEGMENTS = [
    {"name": name, "kind": kind, "ranks": ranks, "precision": precision,
     "tokens": tokens, "rows": rows, "accumulation": accumulation,
     "full": full, "clip": clip, "job": job,
     "fixed": ("roundup_power2_divisions:4" if name == "shards" else
               "max_split_size_mb:64" if name == "copies" else
               "expandable_segments:False")}
    for (name, kind, ranks, precision, tokens, rows, accumulation, full, clip,
         job) in [
        ("one", "single", 1, BF16, 1000, 1, 1, False, 1.0, {}),
        ("shards", "fsdp", 2, BF16, 300, 3, 2, False, None, {}),
        ("full", "fsdp", 2, None, 256, 2, 1, True, 1.0, {}),
        ("sums", "fsdp", 2, {"param": "bf16", "reduce": "fp32"}, 640, 1, 2,
         False, 1.0, {"loss_chunks": 4}),
        ("copies", "ddp", 2, BF16, 512, 1, 1, False, 1.0, {}),
        ("eval", "single", 1, {"param": "fp16", "reduce": "fp16"}, 700, 1, 1,
         False, 1.0, {"eval": {"tokens": "train.bin", "every": 2,
                               "batches": 1}}),
        ("muon", "fsdp", 2, BF16, 384, 1, 1, False, None,
         {"optimizer": {"name": "muon", "lr": 1e-3}}),
        ("drops", "single", 1, BF16, 900, 2, 1, False, 1.0, {})]]


def large_job(folder, case, config=None, steps=3):
    """A job that starts from drawn weights, for a GPU."""
    config = config or (
        {**MIDDLE, "attention_dropout": 0.1} if case.get("name") == "drops"
        else MIDDLE)
    jobs.write_config(os.path.join(folder, "model"), config)
    tokens, rows = case["tokens"], case["rows"]
    jobs.make_tokens(os.path.join(folder, "train.bin"),
                     (2 * steps * case["accumulation"] * case["ranks"] * rows
                      + 8) * tokens + 1, min(config["vocab_size"], 60000))
    precision = case["precision"]
    job = {
        "accelerate": jobs.accelerate_config(
            case["kind"], case["ranks"], "LlamaDecoderLayer",
            precision=precision["param"] if precision else "no",
            activation_checkpointing=case["full"],
            clipping="auto" if case["clip"] else 0.0),
        "model": "model", "init": {"seed": 0},
        "data": {"tokens": "train.bin", "dtype": "uint16",
                 "sequence_length": tokens, "micro_batch": rows},
        "gradient_accumulation_steps": case["accumulation"],
        **({"precision": precision} if precision else {}),
        "optimizer": {"name": "adamw", "lr": 1e-4,
                      **({"max_grad_norm": case["clip"]} if case["clip"]
                         else {})},
        "schedule": {"steps": steps, "warmup_steps": 0, "decay": "constant"},
        "target": "h200", **case["job"]}
    job["accelerate"].pop("use_cpu", None)
    if case["kind"] == "ddp":
        job["accelerate"]["distributed_type"] = "MULTI_GPU"
    return jobs.write_job(folder, job)


class Maker:
    def __init__(self, folder, binaries):
        self.folder, self.bin = folder, binaries

    def call(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, errors="replace",
                              env={**os.environ, "OMP_NUM_THREADS": "1",
                                   "NO_COLOR": "1"})
        if done.returncode not in (0, 2):
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}"
                             f"{done.stderr[-2000:]}")

    def plan(self, yaml, plan, *options):
        self.call(os.path.join(self.bin, "accel-opt"), "plan", yaml, "--emit",
                  "plan", "-o", plan, *options)

    def job(self, name, expects=True, change=None, **options):
        """A job of cases.py, with the losses to expect."""
        case = {**BASE, **options}
        folder = os.path.join(self.folder, name)
        cpu, gpu, ranks = cases.write(folder, case)
        if change:
            for path in (cpu, gpu):
                with open(path, encoding="utf-8") as f:
                    job = jobs.yaml.safe_load(f)
                change(job)
                jobs.write_job(folder, job, os.path.basename(path))
        self.plan(gpu, os.path.join(folder, "gpu.json"))
        if not expects:
            return
        self.plan(cpu, os.path.join(folder, "cpu.json"))
        log = os.path.join(folder, "cpu.jsonl")
        self.call(os.path.join(self.bin, "accel-run"),
                  os.path.join(folder, "cpu.json"), "--nproc", str(ranks),
                  "--log", log)
        with open(log, encoding="utf-8") as f:
            expected = [json.loads(line)["loss"] for line in f]
        with open(os.path.join(folder, "expected.json"), "w",
                  encoding="utf-8") as f:
            json.dump(expected, f)

    def large(self, name, config, tokens, steps):
        """A job that starts from drawn weights: nothing of it is carried."""
        folder = os.path.join(self.folder, name)
        yaml = large_job(folder, {
            "kind": "single", "ranks": 1, "precision": BF16, "tokens": tokens,
            "rows": 1, "accumulation": 1, "full": False, "clip": 1.0,
            "job": {}}, config, steps)
        self.plan(yaml, os.path.join(folder, "gpu.json"))
        return yaml


def prepare(folder, binaries, dry):
    """`dry`: a sample of families, and models that a CPU can hold."""
    shutil.rmtree(folder, ignore_errors=True)
    make = Maker(folder, binaries)
    for precision in ("fp32", "bf16", "fp16"):
        make.job(f"first-{precision}", precision=precision)
    families = cases.families()
    # The wide model says nothing new of an operator, and its weights are the
    # largest by far of what is carried.
    families = [f for f in families if f != "wide"]
    for family in families[::6] if dry else families:
        mesh = "two" if family in jobs.ENCODERS else "one"
        for precision in ("fp32", "bf16"):
            case = {**BASE, "family": family, "precision": precision}
            if mesh == "one":
                make.job(f"family-{family}-{precision}", **{
                    k: case[k] for k in ("family", "precision")})
    make.job("option-accumulation", accumulation=2)
    for extra in ("clip", "chunks", "lora", "sgd"):
        make.job(f"option-{extra}", extra=extra)
    make.job("dropout", expects=False, extra="dropout")
    make.job("resume", expects=False, change=lambda job: job.update(
        checkpoint={"dir": "out", "every": 2, "keep": 3}))
    make.job("two-fp32", mesh="two")
    make.job("long", expects=False, mesh="two", change=lambda job: job[
        "schedule"].update(steps=100000))
    small = copy.deepcopy(LLAMA_8B)
    if dry:
        small.update(vocab_size=1024, hidden_size=256, intermediate_size=512,
                     num_attention_heads=4, num_key_value_heads=2)
    memory = make.large("memory", {**small, "num_hidden_layers": 2},
                        128 if dry else 2048, 5)
    # As a torch asks for it that keeps the workspaces of cuBLAS.
    make.plan(memory, os.path.join(folder, "memory", "gpu-2.11.json"),
              "--torch-version", "2.11")
    make.large("layer", {**small, "num_hidden_layers": 2 if dry else 8},
               128 if dry else 8192, 5 if dry else 10)
    # Few weights to draw, and as many classes as the loss has a kernel for
    # that memory bounds.
    make.large("kernels", {**small, "num_hidden_layers": 1,
                           "vocab_size": 16384}, 128 if dry else 4096, 1)
    make.large("small", {**small, "num_hidden_layers": 2 if dry else 16,
                         "tie_word_embeddings": True,
                         **({} if dry else {"hidden_size": 2048,
                                            "intermediate_size": 8192})},
               64 if dry else 256, 5 if dry else 30)
