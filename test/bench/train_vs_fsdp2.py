"""accel-run against PyTorch, the same job, interleaved.

  train_vs_fsdp2.py [--case A|B|both|tp|sp|cp|shared|pp] [--rounds N]
                    [--compiled] [--build-dir DIR]

A: 2 x 512 tokens a rank (compute-bound). B: 1 x 128 (communication-bound), both
against FSDP2. Both ranks share 2 x 512 tokens: tp, against DTensor's tensor
parallelism with a loss of sharded logits; sp, with sequence parallelism beside
it; cp, against the ring attention of torch's context parallelism called on the
CPU's kernel, with FSDP2 (test/parity/torch_split.py). pp: two stages by 1F1B,
8 micro-batches of 2 x 512 tokens, against torch.distributed.pipelining's
Schedule1F1B over the same layers (test/parity/torch_pipeline.py), and the part of
a step in which each stage does not compute, of one step of --profile.
27.4 M parameters, 2 Gloo ranks, one thread each. The reference is set up with
care: fused AdamW; embedding, each layer and [norm, head] as units. Rounds
alternate between the two, so that a machine that drifts hits both; each ratio
is the median over rounds of that round's ratio. The tensor peak of FSDP2 is
counted in a run of its own (test/parity/counting_allocator.cpp). --compiled: A
and B against FSDP2 with torch.compile for each layer, as a second peer in each
round; it compiles in the warm-up steps.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
PARITY = os.path.join(ROOT, "test", "parity")
sys.path[:0] = [BENCH, PARITY]
import harness  # noqa: E402
import jobs  # noqa: E402
import torch_pipeline  # noqa: E402
import watch  # noqa: E402

MODEL = jobs.variant(vocab_size=4096, hidden_size=512, intermediate_size=1376,
                     num_hidden_layers=8, num_attention_heads=8,
                     num_key_value_heads=4, max_position_embeddings=1024)
SHARED = {"tokens_per_s": 1.15, "peak_bytes": 0.8}
# name: (sequence length, micro-batch, steps, warm-up steps, target ratios)
CASES = {
    "tp": (512, 2, 12, 3, SHARED), "sp": (512, 2, 12, 3, SHARED),
    "cp": (512, 2, 12, 3, SHARED),
    "pp": (512, 2, 7, 2, SHARED),
    "A": (512, 2, 12, 3, {"tokens_per_s": 1.2, "peak_bytes": 0.7,
                          "rss": 0.45}),
    "B": (128, 1, 40, 5, {"tokens_per_s": 1.9, "peak_bytes": 0.9,
                          "rss": 0.45}),
}
# Against FSDP2 with compiled layers.
COMPILED = {"A": {"tokens_per_s": 1.15}, "B": {"tokens_per_s": 1.7}}
RANKS = 2
MICRO_BATCHES = 8  # of a pipeline's step


def counting_library(build):
    """Compiles the counting allocator once; its path."""
    source = os.path.join(PARITY, "counting_allocator.cpp")
    library = os.path.join(build, "bench", "libaccel_count.so")
    if os.path.exists(library) and \
            os.path.getmtime(library) >= os.path.getmtime(source):
        return library
    torch = glob.glob(os.path.join(ROOT, ".venv", "lib", "python3*",
                                   "site-packages", "torch"))[0]
    os.makedirs(os.path.dirname(library), exist_ok=True)
    subprocess.run(["g++", "-O2", "-std=c++20", "-shared", "-fPIC",
                    f"-I{torch}/include", source, "-o", library,
                    f"-L{torch}/lib", "-lc10", f"-Wl,-rpath,{torch}/lib"],
                   check=True)
    return library


def bench(name, rounds, build, compiled=False):
    """{peer: summary} of `rounds` rounds, in each of which all run in turn."""
    length, batch, steps, warm, targets = CASES[name]
    folder = os.path.join(build, "bench", name)
    job_path = os.path.join(folder, "job.yaml")
    split = {"tp": {"tp": RANKS}, "sp": {"tp": RANKS}, "cp": {"cp": RANKS},
             "pp": {"pp": RANKS, "accumulation": MICRO_BATCHES}}
    job = jobs.make_job(folder, MODEL, ranks=RANKS, steps=steps,
                        sequence_length=length, micro_batch=batch, lr=1e-3,
                        **split.get(name, {}))
    del job["checkpoint"]  # a folder takes one run
    if name == "sp":
        job["sequence_parallel"] = True
    jobs.write_job(folder, job, "job.yaml")
    plan_path = os.path.join(folder, "plan.json")
    context = harness.Context(build, folder)
    plan = harness.plan(context, job_path, plan_path)
    environment = harness.clean_environment()
    # Workers that compile would be taken for ranks.
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    reference = [sys.executable, os.path.join(PARITY, "fsdp2.py"), job_path,
                 *(["--share", name] if name in split else [])]
    if name == "pp":
        begins = torch_pipeline.begins_of(plan)
        reference = [sys.executable, torch_pipeline.__file__, job_path,
                     "--begins", ",".join(map(str, begins))]
    peers = {peer(name): reference}
    if compiled and name not in split:
        peers["compiled"] = [*reference, "--compile"]
    log = os.path.join(folder, "fsdp2.jsonl")
    # Three steps: the peak is the same in each from the second on.
    counted = {title: watch.job([*command, "--log", log, "--steps", "5",
                                 "--count-memory", counting_library(build)],
                                log, RANKS, 1, 600, environment)
               for title, command in peers.items()}
    results = {title: [] for title in peers}
    for number in range(rounds):
        measured = {}
        for title, command in peers.items():
            measured[title] = watch.job([*command, "--log", log], log, RANKS,
                                        warm, 1200, environment)
            measured[title]["peak_bytes"] = counted[title]["peak_bytes"]
        own_log = os.path.join(folder, "accel.jsonl")
        summary = os.path.join(folder, "summary.json")
        ours = watch.job([context.binary("accel-run"), plan_path, "--nproc",
                          str(RANKS), "--log", own_log, "--summary", summary,
                          *(["--profile", os.path.join(folder, "trace.json")]
                            if name == "pp" else [])], own_log, RANKS, warm,
                         1200, environment)
        with open(summary, encoding="utf-8") as f:
            figures = json.load(f)
        ours["stages"] = [figures[kind].get("stages", [])
                          for kind in ("predicted", "measured")]
        for title, theirs in measured.items():
            results[title].append((ours, theirs))
        print(f"{name} round {number + 1} of {rounds}: "
              f"accel-run {ours['step_s'] * 1e3:.0f} ms a step, " + ", ".join(
                  f"{title} {theirs['step_s'] * 1e3:.0f} ms"
                  for title, theirs in measured.items()), flush=True)
    return {title: report(name, title, plan, pairs,
                          COMPILED[name] if title == "compiled" else targets)
            for title, pairs in results.items()}


def peer(name):
    return {"tp": "DTensor", "sp": "DTensor", "cp": "ring",
            "pp": "1F1B"}.get(name, "FSDP2")


def report(name, title, plan, results, targets):
    length, batch = CASES[name][:2]
    whose = "of both ranks" if targets is SHARED else "a rank"
    if name == "pp":
        whose = f"in {MICRO_BATCHES} micro-batches"
    print(f"\ncase {name}: {batch} x {length} tokens {whose}, {RANKS} ranks")
    print(f"{'':26}{'accel-run':>14}{title:>14}{'ratio':>9}{'target':>9}")
    rows = [("tokens_per_s", "tokens/s", 1), ("step_s", "ms a step", 1e3),
            ("cpu_s", "CPU ms a step and rank", 1e3),
            ("peak_bytes", "tensor peak, MiB", 2**-20),
            ("rss", "peak RSS, MiB", 2**-20),
            ("faults", "page faults a step, rank", 1)]
    summary = {}
    for key, row, scale in rows:
        ours = statistics.median(r[0][key] for r in results)
        theirs = statistics.median(r[1][key] for r in results)
        ratio = statistics.median(r[0][key] / max(r[1][key], 1e-9)
                                  for r in results)
        target = targets.get(key)
        print(f"{row:26}{ours * scale:14.1f}{theirs * scale:14.1f}"
              f"{ratio:9.3f}{target if target else '':>9}")
        summary[key] = {"accel_run": ours, "peer": theirs, "ratio": ratio,
                        "target": target}
    ours, theirs = results[-1]
    worst = max(harness.relative(a, b)
                for a, b in zip(ours["losses"], theirs["losses"]))
    predicted = plan["predicted"]["memory"]["peak_bytes"]
    print(f"losses: {'bit-equal' if worst == 0 else f'within {worst:.1e}'} over "
          f"{len(ours['losses'])} steps ({ours['losses'][0]:.3f} to "
          f"{ours['losses'][-1]:.3f})")
    for stage, use in enumerate(ours["stages"][0]):
        measured = [r[0]["stages"][1][stage] for r in results]
        idle = statistics.median(m["idle_share"] for m in measured)
        print(f"stage {stage} does not compute in {use['idle_share']:.1%} of a "
              f"step as predicted, {idle:.1%} measured")
        summary[f"stage{stage}_idle"] = {"predicted": use["idle_share"],
                                         "measured": idle}
    print(f"predicted peak {predicted} bytes, measured {ours['peak_bytes']} "
          f"({predicted / max(1, ours['peak_bytes']) - 1:+.3%})\n", flush=True)
    summary["loss_difference"] = worst
    summary["predicted_peak_bytes"] = predicted
    return summary


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    groups = {"both": ["A", "B"], "shared": ["tp", "sp", "cp"]}
    parser.add_argument("--case", choices=[*CASES, *groups], default="both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compiled", action="store_true",
                        help="A and B: FSDP2 with compiled layers too")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    names = groups.get(args.case, [args.case])
    figures = {name: bench(name, args.rounds, args.build_dir, args.compiled)
               for name in names}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(figures, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
