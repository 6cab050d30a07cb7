#!/usr/bin/env python3
"""accel-run beside PyTorch's FSDP2 on one GPU, the same job.

  gpu_vs_fsdp2.py JOB... [--bin DIR] [--torch DIR] [--out FILE]

JOB is a folder that `tools/gpu-check prepare` makes (DIR/layer, DIR/small): a
plan, its model's config.json and tokens. The reference is transformers' model
with fully_shard around each layer, [norm, head] and the rest, bf16 parameters
and reductions, fused AdamW and the same clipping, eager and with each layer
compiled; a process of its own each, as the allocator is. Needs torch and
transformers, and no network.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
STEPS, WARM = 12, 4


def peer(folder, compiled):
    """Prints what FSDP2 takes: seconds of a step and bytes at the peak."""
    import numpy
    import torch
    import transformers
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    with open(os.path.join(folder, "job.yaml"), encoding="utf-8") as f:
        import yaml
        job = yaml.safe_load(f)
    torch.cuda.set_device(0)
    torch.distributed.init_process_group(
        "nccl", init_method=f"file://{tempfile.mktemp()}", rank=0,
        world_size=1, device_id=torch.device("cuda", 0))
    config = transformers.AutoConfig.from_pretrained(
        os.path.join(folder, "model"))
    config.use_cache = False
    torch.set_default_dtype(torch.float32)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM._from_config(
            config, dtype=torch.float32)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                  reduce_dtype=torch.bfloat16)
    for layer in model.model.layers:
        if compiled:
            layer.compile()
        fully_shard(layer, mp_policy=policy)
    if not config.tie_word_embeddings:
        fully_shard([model.model.norm, model.lm_head], mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rows, length = job["data"]["micro_batch"], job["data"]["sequence_length"]
    tokens = torch.from_numpy(numpy.fromfile(
        os.path.join(folder, "train.bin"), dtype=numpy.uint16).astype(
            numpy.int64))
    norm = job["optimizer"].get("max_grad_norm")
    seconds = []
    for step in range(STEPS):
        at = (step * rows * length) % (len(tokens) - rows * length)
        batch = tokens[at:at + rows * length].view(rows, length).cuda()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        if norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), norm)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        if step == WARM - 1:
            torch.cuda.reset_peak_memory_stats()
    stats = torch.cuda.memory_stats()
    print(json.dumps({
        "step_s": statistics.median(seconds[WARM:]),
        "peak_bytes": stats["allocated_bytes.all.peak"],
        "reserved_bytes": stats["reserved_bytes.all.peak"],
        "loss": loss.item()}))


def last_line(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env,
                          timeout=240, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout[-1000:]}"
                         f"{done.stderr[-1500:]}")
    return done.stdout.strip().splitlines()[-1]


def ours(folder, args):
    env = {**os.environ, "OMP_NUM_THREADS": str(os.cpu_count())}
    if args.torch:
        site = os.path.dirname(os.path.abspath(args.torch))
        nvidia = os.path.join(site, "nvidia")
        env["LD_LIBRARY_PATH"] = ":".join(
            [os.path.join(args.torch, "lib")] +
            [os.path.join(nvidia, n, "lib") for n in os.listdir(nvidia)])
    with tempfile.TemporaryDirectory() as out:
        summary = os.path.join(out, "summary.json")
        last_line([os.path.join(args.bin, "accel-run"),
                   os.path.join(folder, "gpu.json"), "--nproc", "1",
                   "--summary", summary], env)
        with open(summary, encoding="utf-8") as f:
            figures = json.load(f)
    measured = figures["measured"]
    return {"step_s": measured["step_s"],
            "peak_bytes": measured["peak_bytes"],
            "reserved_bytes": measured["reserved_peak_bytes"],
            "predicted_step_s": figures["predicted"]["step_s"]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("jobs", nargs="+", metavar="JOB")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"),
                        help="folder of accel-run (default build/bin)")
    parser.add_argument("--torch", help="folder of the torch package")
    parser.add_argument("--out", help="the figures, as JSON")
    parser.add_argument("--peer", choices=["eager", "compiled"],
                        help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args.jobs[0], args.peer == "compiled")
    result = {}
    for folder in args.jobs:
        name = os.path.basename(os.path.abspath(folder))
        row = {"accel-run": ours(folder, args)}
        for kind in ("eager", "compiled"):
            row[kind] = json.loads(last_line(
                [sys.executable, __file__, folder, "--peer", kind]))
        result[name] = row
        for kind, figures in row.items():
            ratio = figures["step_s"] / row["accel-run"]["step_s"]
            bytes_ = row["accel-run"]["peak_bytes"] / figures["peak_bytes"]
            print(f"{name:8} {kind:10} {figures['step_s'] * 1e3:8.1f} ms "
                  f"{figures['peak_bytes'] / 2**30:7.2f} GiB; accel-run's "
                  f"tokens/s {ratio:.3f}, peak {bytes_:.3f} of it", flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
