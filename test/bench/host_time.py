#!/usr/bin/env python3
"""What an operator of an eager model takes of the CPU, by real torch over the
stand-in GPU.

    test/bench/host_time.py [--build build] [--steps 8]

Each job is the forward and backward of a model of transformers whose tensors are
so small that the host decides. Its seconds of one CPU, divided by the operators
that `plan` counts (those that launch, views as half of one, and what a
checkpointed layer takes beside), are what `dispatch_seconds` of the targets
says. What a checkpointed layer takes beside what is counted is told in operators.
The stand-in's launch takes 1.5 us of an operator, a driver's 2 to 3.

What wrappers take beside is told in operators of the same model alone: for each
unit of FSDP2 and FSDP1, each gradient of ZeRO 2, and each module that has
parameters of ZeRO 3 (DeepSpeed of .deepspeed, where it is), which gathers all of
them, as it does matrices of more elements than these have.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS = 16
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": LAYERS,
         "num_attention_heads": 4, "vocab_size": 128}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 16}
MODELS = {
    "llama": {**GROUPED, "model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "qwen3": {**GROUPED, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]},
    "qwen2": {**GROUPED, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]},
    "gpt_neox": {**SMALL, "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"]},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": LAYERS,
             "n_embd": 64, "n_head": 4, "vocab_size": 128},
}
# What is trained, and the options of `plan` that say so.
WAYS = {
    "bf16": ("no", ["--dtype", "bf16"]),
    "autocast": ("bf16", ["--dtype", "f32"]),
    "LoRA": ("no", ["--dtype", "bf16", "--lora-r", "8"]),
    "checkpoints": ("no", ["--dtype", "bf16", "--gradient-checkpointing"]),
    "reentrant": ("no", ["--dtype", "bf16", "--gradient-checkpointing", "--reentrant"]),
}
CHECKPOINTED = ("checkpoints", "reentrant")
WHAT = {"fsdp2": "units", "fsdp1": "units", "zero2": "gradients", "zero3": "modules"}
WRAPPERS = tuple(WHAT)
DEEPSPEED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".deepspeed")
TOKENS = 8
UNIT = 1e-3  # seconds of an operator in the target that counts them


def wrapped(model, way):
    """What computes a loss and its gradients, of one rank, and how many of what
    the wrapper has."""
    import torch

    if way.startswith("zero"):
        import deepspeed

        deepspeed.init_distributed(dist_backend="nccl")
        count = (sum(any(True for _ in m.parameters(recurse=False)) for m in model.modules())
                 if way == "zero3" else sum(1 for _ in model.parameters()))
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=torch.optim.AdamW(model.parameters()), config={
                "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1000,
                "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
                "zero_optimization": {"stage": int(way[-1]),
                                      "stage3_param_persistence_threshold": 0}})
        return engine, engine.backward, count
    torch.distributed.init_process_group("nccl")
    model.cuda()
    layers = model.base_model.layers
    if way == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for layer in layers:
            fully_shard(layer)
        return fully_shard(model), lambda loss: loss.backward(), LAYERS + 1
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    flat = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({type(layers[0])}), use_orig_params=True,
        device_id=0)
    return flat, lambda loss: loss.backward(), LAYERS + 1


def measure(folder, way, steps):
    """Prints the CPU seconds of a forward and backward, the least of three
    means. In a process of its own, over the stand-ins."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.set_num_threads(1)
    autocast = way == "autocast"
    model = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(folder),
        dtype=torch.float32 if autocast else torch.bfloat16)
    if way == "LoRA":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear"))
    if way in CHECKPOINTED:
        model.gradient_checkpointing_enable({"use_reentrant": way == "reentrant"})
        model.enable_input_require_grads()
    model.train()
    count, backward = 0, lambda loss: loss.backward()
    if way in WRAPPERS:
        torch.cuda.set_device(0)
        model, backward, count = wrapped(model, way)
    else:
        model.cuda()
    ids = torch.zeros((1, TOKENS), dtype=torch.long, device="cuda")
    trained = [p for p in model.parameters() if p.requires_grad]

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = model(input_ids=ids, labels=ids).loss
        backward(loss)
        if not way.startswith("zero"):
            for parameter in trained:
                parameter.grad = None

    for _ in range(3):
        step()
    means = []
    for _ in range(3):
        begin = time.process_time()
        for _ in range(steps):
            step()
        means.append((time.process_time() - begin) / steps)
    print(min(means), count, flush=True)
    os._exit(0)  # what wrappers leave running is not waited for


def run(folder, way, options, environment):
    """Seconds, and how many of what a wrapper has."""
    done = subprocess.run(
        [sys.executable, __file__, folder, way, str(options.steps)], check=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    seconds, count = done.stdout.split()[-2:]
    return float(seconds), int(count)


def counted(program, target, folder, way):
    """Operators of a forward and backward, as `plan` counts them."""
    precision, options = WAYS[way]
    config = os.path.join(folder, way + ".yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"distributed_type: 'NO'\nmixed_precision: '{precision}'\n"
                "num_processes: 1\n")
    done = subprocess.run(
        [program, "plan", config, "--model", folder, "--target", target, "--seq-len",
         str(TOKENS), "--micro-batch", "1", "--format", "json", *options],
        check=True, stdout=subprocess.PIPE)
    seconds = json.loads(done.stdout)["time"]
    return (seconds["step_s"] - seconds["optimizer_s"]) / UNIT


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    binaries = os.path.abspath(os.path.join(options.build, "bin"))
    program = os.path.join(binaries, "accel-opt")
    environment = {**os.environ, "LD_PRELOAD": os.path.join(binaries, "dry-gpu.so"),
                   "LD_LIBRARY_PATH": os.path.join(binaries, "dry"), "DRY_DEVICES": "1"}
    alone, times, rest = {}, [], {way: [] for way in CHECKPOINTED}
    with tempfile.TemporaryDirectory() as work:
        shown = subprocess.run([program, "targets", "h200", "--format", "yaml"], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        lines = shown.splitlines()
        at = lines.index("dispatch_seconds:")
        lines[at + 1] = f"  value: {UNIT}"
        target = os.path.join(work, "counts.yaml")
        with open(target, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        print(f"{'model':10}{'trained':13}{'operators':>10}{'CPU, ms':>10}{'us each':>9}")
        for name, config in MODELS.items():
            folder = os.path.join(work, name)
            os.mkdir(folder)
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            for way in WAYS:
                seconds, _ = run(folder, way, options, environment)
                operators = counted(program, target, folder, way)
                each = seconds / operators
                print(f"{name:10}{way:13}{operators:10.0f}{1e3 * seconds:10.1f}"
                      f"{1e6 * each:9.1f}", flush=True)
                if way in CHECKPOINTED:
                    rest[way].append((seconds / plain - operators) / LAYERS)
                    continue
                times.append(each)
                if way == "bf16":
                    plain = each
                    alone[name] = seconds, each
        exchange = os.path.join(work, "exchange")
        os.mkdir(exchange)
        for way in WRAPPERS:
            if way.startswith("zero") and not os.path.isdir(DEEPSPEED):
                continue
            more = []
            for name in ("llama", "qwen2", "gpt_neox"):
                own = {**environment, "DRY_EXCHANGE": exchange, "RANK": "0", "WORLD_SIZE": "1",
                       "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": free_port(), "DS_ACCELERATOR": "cuda",
                       "PYTHONPATH": DEEPSPEED}
                seconds, count = run(os.path.join(work, name), way, options, own)
                before, each = alone[name]
                more.append((seconds - before) / each / count)
            shown = ", ".join(f"{m:.0f}" for m in more)
            print(f"{way}: {shown} operators more for each of the {WHAT[way]} of llama, "
                  "qwen2 and gpt_neox", flush=True)
    print(f"an operator: {1e6 * statistics.median(times):.1f} us in the median, "
          f"{1e6 * min(times):.1f} to {1e6 * max(times):.1f}")
    for way, layers in rest.items():
        print(f"{way}: a layer takes {statistics.median(layers):+.0f} operators more than are "
              f"counted in the median, {min(layers):+.0f} to {max(layers):+.0f}")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] in (*WAYS, *WRAPPERS):
        measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
