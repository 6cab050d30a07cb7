"""Llama-2-7B on 8 ranks of 36 GB: the joint search against a published plan.

  galvatron_plan.py [--build-dir DIR]

Galvatron (github.com/PKU-DAIR/Hetu-Galvatron, galvatron/models/gpt/configs/
galvatron_config_llama2-7b_1nodes_8gpus_per_node_36GB_bf16.json) answers this job
after a search of 201 s: ZeRO-3 over all 8 ranks in every layer, no tensor or
pipeline parallelism but the vocabulary over 2 ranks, 2 sequences of 2048 tokens
a rank, and activation checkpointing of whole layers in 20 of 32.

Both plans are judged by the profile that the published one was made from
(galvatron_profile.py). accel-opt searches once, on a target with that profile's
compute time and bandwidth; of the Pareto front it prints, the fastest setting
that fits by the profile counts. A layer that is recomputed in part costs
the share of its forward, and keeps the share of its bytes, that accel-opt
predicts. Exit code 1 if it is slower than the published plan, does not fit, or
takes a second to find.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import yaml

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
PARITY = os.path.join(ROOT, "test", "parity")
sys.path[:0] = [BENCH, PARITY]
import galvatron_profile  # noqa: E402
import jobs  # noqa: E402
from galvatron_profile import Layers  # noqa: E402

RANKS, BATCH, LAYERS, CHECKPOINTED, SECONDS = 8, 2, 32, 20, 201
BUDGET_MB = 36 * 1024 * (1 - galvatron_profile.CACHE_SHARE)


def accel_opt(args, *options):
    start = time.perf_counter()
    done = subprocess.run(
        [os.path.join(args.build_dir, "bin", "accel-opt"), *options],
        stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 2):  # 2: does not fit
        sys.exit(f"accel-opt {options[0]}: exit code {done.returncode}\n{done.stdout.decode()[-2000:]}")
    return done.stdout, time.perf_counter() - start


def calibrated(target, profile, compute_seconds):
    """The target with the profile's compute time and bandwidth."""
    speed = compute_seconds / (profile.compute_ms(LAYERS, BATCH) / 1e3)
    for kind in ("f32", "bf16", "f16", "tf32"):
        target["compute"][kind]["flops"] *= speed
    target["memory"]["bandwidth"]["value"] *= speed
    link = target["links"]["intra_node"]
    link["bandwidth"] = profile.p["all_reduce_gb_s"]["8"] * 1e9
    link.pop("short_messages", None)
    target["name"] = "profiled"
    return target


def ways_of(setting):
    """A setting of accel-opt in the profile's terms."""
    kept_gathered = setting["layers_kept_gathered"]
    ways = []
    # Recomputed layers come first, layers that stay gathered last.
    for part in reversed([c for c in setting["checkpointing"]
                          if c["of"] == "LlamaDecoderLayer"]):
        zero2 = min(kept_gathered, part["calls"])
        kept_gathered -= zero2
        for count, zero3 in ((zero2, False), (part["calls"] - zero2, True)):
            if count:
                ways.append(Layers(count, zero3, part["saved_share"],
                                   part["recompute_share"]))
    return ways


def in_profile(setting):
    """Whether the profile's model covers the setting."""
    return (setting["wrap"] == "a layer" and not setting["parameter_offload"]
            and not setting["optimizer_offload"]
            and not setting["activation_offload_layers"]
            and setting["mesh"] == {"shard": RANKS, "replicate": 1})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    profile = galvatron_profile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        config = jobs.accelerate_config("fsdp", RANKS, "LlamaDecoderLayer",
                                        precision="bf16")
        path = jobs.write_job(folder, config, "fsdp.yaml")
        target = os.path.join(folder, "profiled.yaml")

        def plan(of, *options):
            text, seconds = accel_opt(
                args, "plan", path, "--model",
                os.path.join(PARITY, "configs", "llama-2-7b"), "--seq-len",
                "2048", "--micro-batch", str(BATCH), "--target", of,
                "--memory-budget", "36GiB", "--format", "json", *options)
            return json.loads(text), seconds

        plain, _ = plan("a100-80gb")
        shipped, _ = accel_opt(args, "targets", "a100-80gb", "--format",
                               "yaml")
        with open(target, "w", encoding="utf-8") as f:
            yaml.safe_dump(calibrated(yaml.safe_load(shipped), profile,
                                      plain["time"]["compute_s"]), f)
        tuned, seconds = plan(target, "--tune=all", "--global-batch", "16",
                              "--loss-chunks", "1")

    theirs = [Layers(CHECKPOINTED, True, profile.checkpointed, 1.0),
              Layers(LAYERS - CHECKPOINTED)]
    step = profile.step_seconds(theirs, BATCH, split=2)
    print(f"published plan: {step:.3f} s a step, "
          f"{profile.memory_mb(theirs, BATCH, split=2) / 1024:.2f} of "
          f"{BUDGET_MB / 1024:.2f} GiB, found in {SECONDS} s")
    best = None
    for entry in tuned["tune"]["front"]:
        setting = entry["setting"]
        if not in_profile(setting):
            continue
        of = (ways_of(setting), setting["micro_batch"],
              setting["accumulation_steps"])
        memory = profile.memory_mb(*of)
        if memory <= BUDGET_MB and (not best
                                    or profile.step_seconds(*of) < best[0]):
            best = (profile.step_seconds(*of), memory, entry)
    if not best:
        sys.exit("no setting of the front fits by the profile")
    print(f"accel-opt:      {best[0]:.3f} s a step, {best[1] / 1024:.2f} of "
          f"{BUDGET_MB / 1024:.2f} GiB, found in {seconds:.2f} s: "
          f"{best[2]['change']} (its own prediction: "
          f"{best[2]['step_s']:.3f} s, "
          f"{best[2]['device_bytes'] / 2**30:.2f} GiB)")
    return 0 if best[0] <= step and seconds < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
